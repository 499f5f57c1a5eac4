"""The file layouts known by name, for the registry; imported when a reader is first requested by name."""

from __future__ import annotations

from hitmiss.core import registry
from hitmiss.io.layouts import LAYOUTS
from hitmiss.io.triage import LAYOUT as TRIAGE

for layout in (*LAYOUTS, TRIAGE):
    registry.add("reader", layout.name, layout)
del layout
