"""Files to trials and back. `read` is the way in, `examine` the same way with a report instead of an error."""

from __future__ import annotations

from hitmiss import registry
from hitmiss.io.door import Examination, examine, read
from hitmiss.io.layouts import LAYOUTS, Layout
from hitmiss.io.options import ReadOptions
from hitmiss.io.scorefiles import write_official_scores
from hitmiss.io.triage import LAYOUT as TRIAGE

__all__ = ["Examination", "Layout", "ReadOptions", "examine", "read", "write_official_scores"]

for layout in (*LAYOUTS, TRIAGE):
    registry.add("reader", layout.name, layout)
del layout
