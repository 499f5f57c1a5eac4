"""Read files into trials and write them back. `read` is the entry point; `examine` reports faults instead of raising.

Names are imported on first use, so that reading one kind of file does not load the code for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hitmiss.core.read_spec import ReadSpec
    from hitmiss.io.layouts import Layout
    from hitmiss.io.reader import Examination, examine, read
    from hitmiss.io.write import write_official_scores

__all__ = ["Examination", "Layout", "ReadSpec", "examine", "read", "write_official_scores"]
_HOMES = {
    "Examination": "hitmiss.io.reader",
    "Layout": "hitmiss.io.layouts",
    "ReadSpec": "hitmiss.core.read_spec",
    "examine": "hitmiss.io.reader",
    "read": "hitmiss.io.reader",
    "write_official_scores": "hitmiss.io.write",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hitmiss.io' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
