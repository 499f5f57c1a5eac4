"""Significance marks for tables: what a saved comparison (`hitmiss compare -o`) says about the numbers of a run.

A comparison belongs to a number if one of its sides has exactly that value; a comparison of other runs is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hitmiss.claims.open import load_contest
from hitmiss.core.convert import declare, fit
from hitmiss.core.errors import DataError
from hitmiss.core.results import Estimate
from hitmiss.engine.comparison import Difference
from hitmiss.engine.ranking import RankedRun

LEVELS: Final = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


@dataclass(frozen=True)
class Marks:
    """Marks by metric, slice and value, and the sentence that explains them."""

    at: Mapping[tuple[str, tuple[tuple[str, str], ...]], Sequence[tuple[float, str]]] = field(default_factory=dict)
    legend: str = ""

    def of(self, e: Estimate) -> str:
        """Return the mark of an estimate; empty if it has none."""
        if e.value is None or e.average is not None:
            return ""
        found = self.at.get((e.metric, tuple(sorted(e.slice.items()))), ())
        return next((mark for value, mark in found if math.isclose(value, e.value, rel_tol=1e-9, abs_tol=1e-12)), "")


def read_marks(path: str | Path, estimates: Sequence[Estimate]) -> Marks:
    """Read the marks of a saved comparison of two runs (stars) or more (letters)."""
    data = load_contest(path)
    try:
        made = _stars(data) if data["kind"] == "comparison" else _letters(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError.of("not-a-comparison", name=Path(path).name, error=error) from None
    if not any(_belongs(data, e) for e in estimates):
        raise DataError.of("other-comparison", name=Path(path).name)
    return made


def _belongs(data: dict[str, object], e: Estimate) -> bool:
    if e.value is None or e.average is not None:
        return False
    rows = _rows(data, "differences" if data["kind"] == "comparison" else "pairs")
    values = [row[side] for row in rows if row["metric"] == e.metric for side in ("a", "b")]
    return any(isinstance(v, float) and math.isclose(v, e.value, rel_tol=1e-9, abs_tol=1e-12) for v in values)


def _rows(data: Mapping[str, object], name: str) -> list[dict[str, object]]:
    return fit(list[dict[str, object]], data[name], (name,))


def _stars(data: dict[str, object]) -> Marks:
    """Put stars at the better of two numbers; the smaller the adjusted p, the more stars."""
    at: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, str]]] = {}
    for row in (declare(Difference, row) for row in _rows(data, "differences")):
        better = {"A better": row.a, "B better": row.b}.get(row.verdict)
        star = next((mark for level, mark in LEVELS if (row.p_adjusted or 0.0) < level), "")
        if better is not None and star and row.average is None:
            at.setdefault((row.metric, tuple(sorted(row.slice.items()))), []).append((better, star))
    tested = "" if data["correction"] == "none" else f", {data['correction']}-adjusted within a table"
    legend = f"better of {data['a']} and {data['b']}: * p < 0.05, ** p < 0.01, *** p < 0.001 (paired{tested})"
    return Marks(at, legend)


def _letters(data: dict[str, object]) -> Marks:
    at: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, str]]] = {}
    for row in (declare(RankedRun, row) for row in _rows(data, "standings")):
        if row.value is not None and row.letters:
            at.setdefault((row.metric, ()), []).append((row.value, row.letters))
    return Marks(
        at, f"runs that share a letter were not shown to differ ({data['correction']}-adjusted over all pairs)"
    )
