"""Lets the tests of this folder, and the worker processes that they start, import `detect_parts`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
