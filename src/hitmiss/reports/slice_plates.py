"""Slices, systems and crossed conditions as plates: a forest of intervals, ranks, a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hitmiss.core.results import Estimate
from hitmiss.engine.ranking import RankedRun
from hitmiss.findings.wording import format_estimate
from hitmiss.findings.wording import is_share as of_share
from hitmiss.reports.heat import HeatMap
from hitmiss.reports.plate import Axis, Block, Dots, GuideLine, Mark, Plate, ticks


def forest_plate(
    rows: Sequence[tuple[str, Estimate]],
    title: str,
    pooled: float | None = None,
    label: str = "pooled",
    *,
    is_share: bool | None = None,
) -> Plate:
    """Draw values with their intervals on one axis, one below the other, and the pooled value as a line.

    `label` names that line; `is_share`: whether the values lie in 0..1 and are written in per cent, by default as the
    metric says.

    >>> rows = [("C01", Estimate("eer", 0.2, 0.1, 0.3)), ("C02", Estimate("eer", 0.1, 0.05, 0.15))]
    >>> forest_plate(rows, "EER", 0.15).y.ticks
    ((1.0, 'C01'), (0.0, 'C02'))
    """
    known = [(name, e) for name, e in rows if e.value is not None]
    at = np.arange(len(known), dtype=np.float64)[::-1]
    value = np.array([e.value for _, e in known], dtype=np.float64)
    low, high = (
        np.array([v if (end := getattr(e, part)) is None else end for (_, e), v in zip(known, value, strict=True)])
        for part in ("low", "high")
    )
    left, right = (float(low.min()), float(high.max())) if len(known) else (0.0, 1.0)
    room = 0.05 * (right - left) or 0.05
    marks: list[Mark] = [GuideLine(pooled, True, label)] if pooled is not None else []
    about = tuple(f"{name}: {format_estimate(e)}" for name, e in known)
    marks.append(Dots(value, at, 0, low=low, high=high, about=about, is_hollow=False, is_sideways=True))
    share = (bool(known) and of_share(known[0][1].metric)) if is_share is None else is_share
    left, right = (max(left - room, 0.0), min(right + room, 1.0)) if share else (left - room, right + room)
    x = Axis(title, left, right, ticks(left, right, percent=share))
    return Plate(
        x,
        Axis("", -0.6, len(known) - 0.4, tuple((float(y), n) for y, (n, _) in zip(at, known, strict=True))),
        tuple(marks),
        rows=len(known),
    )


def ranks_plate(standings: Sequence[RankedRun], kind: str, groups: Mapping[str, str]) -> Plate:
    """Draw the ranks of many systems with simultaneous intervals and groups, instead of a critical-difference diagram.

    `kind` and `groups` are those of the table (`ranking_tables.groups_of`): systems that share a letter, or a tier with its
    best system, were not shown to differ. An interval holds the true rank, of all systems at once.
    """
    own = [s for s in standings if s.value is not None and s.rank_low is not None and s.rank_high is not None]
    at = np.arange(len(own), dtype=np.float64)[::-1]
    rank = np.arange(1, len(own) + 1, dtype=np.float64)
    low, high = (np.array([getattr(s, part) for s in own], dtype=np.float64) for part in ("rank_low", "rank_high"))
    dots = Dots(rank, at, 0, low=low, high=high, is_hollow=False, is_sideways=True, about=tuple(s.run for s in own))
    names = tuple(
        (float(y), f"{s.run} ({'tier ' if kind == 'tier' else ''}{groups[s.run]})")
        for y, s in zip(at, own, strict=True)
    )
    ends = tuple((float(k), str(k)) for k in range(1, len(own) + 1, max(1, len(own) // 10)))
    x = Axis("rank, the best first", 0.5, len(own) + 0.5, ends)
    return Plate(x, Axis("", -0.6, len(own) - 0.4, names), (dots,), rows=len(own))


def heat_plate(found: HeatMap) -> Plate:
    """Draw a map of two crossed columns: cells shaded from the best to the worst, each with its number."""
    down = len(found.rows)
    marks = tuple(
        Block(
            (j, j + 1.0),
            (down - i - 1.0, float(down - i)),
            1,
            c.text,
            c.about,
            int(c.shade) / 9 if c.shade.isdigit() else 0.0,
        )
        for i, (_, cells) in enumerate(found.rows)
        for j, c in enumerate(cells)
    )
    x = Axis(found.across, 0.0, float(len(found.columns)), tuple((j + 0.5, c) for j, c in enumerate(found.columns)))
    names = tuple((down - i - 0.5, name) for i, (name, _) in enumerate(found.rows))
    return Plate(x, Axis(found.down, 0.0, float(down), names), marks, is_bare=True)
