"""Protocols: a declaration (TOML) for each, and the functions that the five evaluation documents name."""

from functools import partial
from pathlib import Path

from hitmiss.core.registry import Later, add
from hitmiss.evaluation.protocol import load_protocol

for _path in sorted(Path(__file__).parent.glob("*.toml")):
    add("protocol", _path.stem, Later(partial(load_protocol, _path)))
