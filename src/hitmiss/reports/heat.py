"""Heat maps without a picture: two slice columns as a table whose cells have one of ten shades and a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hitmiss.core.results import Estimate, Results
from hitmiss.findings.wording import PLACES
from hitmiss.reports.table_style import PAGE

SHADES: Final = 10
NO_SHADE: Final = "none"
POOLED: Final = "pooled"
MOST_CELLS: Final = 60
"""Maximum rows and columns of a map; further ones are left out, with a note."""


@dataclass(frozen=True)
class HeatCell:
    """A number, its shade (0 the best, 9 the worst), and the text of its tooltip."""

    text: str
    shade: str
    about: str


@dataclass(frozen=True)
class HeatMap:
    """One metric over two columns; the first row and column are pooled if that was measured."""

    title: str
    metric: str
    down: str
    across: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]
    best: str
    worst: str
    left_out: int = 0

    @property
    def is_crossed(self) -> bool:
        """Say whether the columns really cross; if one determines the other, most cells of the map would be empty."""
        inside = [
            [bool(c.text) for n, c in zip(self.columns, row, strict=True) if n != POOLED]
            for r, row in self.rows
            if r != POOLED
        ]
        return any(sum(row) > 1 for row in inside) and any(sum(column) > 1 for column in zip(*inside, strict=True))


def heat_map(results: Results, names: tuple[str, str], metric: str, run: Mapping[str, str]) -> HeatMap | None:
    """Return the map of one metric; None if nothing in it is defined."""
    own = [e for e in results if e.metric == metric and e.average is None and dict(e.run) == dict(run)]
    at = {tuple(e.slice.items()): e for e in own}
    cells = [e for e in own if tuple(e.slice) == names]
    values = [e.value for e in cells if e.value is not None]
    if not values:
        return None
    down, across = (sorted({e.slice[name] for e in cells}) for name in names)
    ends = (min(values), max(values)) if cells[0].best == "low" else (max(values), min(values))

    def cell(r: str | None, c: str | None) -> HeatCell:
        key = tuple((name, value) for name, value in zip(names, (r, c), strict=True) if value is not None)
        return _cell(at.get(key), key, ends)

    has_rows = any(tuple(e.slice) == names[:1] for e in own)
    has_columns = any(tuple(e.slice) == names[1:] for e in own)
    shown_columns: list[str | None] = [*([None] if has_rows else []), *across[:MOST_CELLS]]
    shown_rows: list[str | None] = [*([None] if has_columns else []), *down[:MOST_CELLS]]
    rows = tuple((r or POOLED, tuple(cell(r, c) for c in shown_columns)) for r in shown_rows)
    left_out = len(cells) - sum(
        e.slice[names[0]] in down[:MOST_CELLS] and e.slice[names[1]] in across[:MOST_CELLS] for e in cells
    )
    unit = ", %" if PAGE.unit(metric) else ""
    title = f"{metric}{unit} by {names[0]} × {names[1]}"
    columns = tuple(c or POOLED for c in shown_columns)
    texts = [PAGE.value(next(e for e in cells if e.value == end), PLACES) for end in ends]
    return HeatMap(title, metric, names[0], names[1], columns, rows, texts[0], texts[1], left_out)


def _cell(e: Estimate | None, key: tuple[tuple[str, str], ...], ends: tuple[float, float]) -> HeatCell:
    if e is None:
        return HeatCell("", NO_SHADE, "")
    where = ", ".join(f"{k} {v}" for k, v in key) or "all trials"
    about = " · ".join(filter(None, (where, PAGE.ends(e, PLACES), f"n = {e.n:,}", e.note or "")))
    if e.value is None:
        return HeatCell("–", NO_SHADE, about)
    return HeatCell(PAGE.value(e, PLACES), str(shade(e.value, ends)), about)


def shade(value: float, ends: tuple[float, float]) -> int:
    """Return the shade of a value between the best and the worst.

    >>> shade(0.1, (0.1, 0.3)), shade(0.25, (0.0, 0.5)), shade(0.3, (0.1, 0.3)), shade(0.9, (0.9, 0.5))
    (0, 5, 9, 0)
    """
    best, worst = ends
    share = (value - best) / (worst - best) if best != worst else 0.0
    return min(max(int(share * SHADES), 0), SHADES - 1)
