"""Files to trials and back. `read` is the way in, `examine` the same way with a report instead of an error.

Names are imported when first used: whoever reads one kind of file need not wait for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hitmiss.io.door import Examination, examine, read
    from hitmiss.io.layouts import Layout
    from hitmiss.io.scorefiles import write_official_scores
    from hitmiss.readspec import ReadSpec

__all__ = ["Examination", "Layout", "ReadSpec", "examine", "read", "write_official_scores"]

_HOMES = {
    "Examination": "hitmiss.io.door",
    "Layout": "hitmiss.io.layouts",
    "ReadSpec": "hitmiss.readspec",
    "examine": "hitmiss.io.door",
    "read": "hitmiss.io.door",
    "write_official_scores": "hitmiss.io.scorefiles",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hitmiss.io' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
