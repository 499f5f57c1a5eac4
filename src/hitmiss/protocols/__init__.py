"""Protocols: a declaration (TOML) of each, and the documented names of the five documents."""

from pathlib import Path

from hitmiss.core.registry import add
from hitmiss.evaluation.protocol import load_protocol

for _path in sorted(Path(__file__).parent.glob("*.toml")):
    add("protocol", _path.stem, load_protocol(_path))
