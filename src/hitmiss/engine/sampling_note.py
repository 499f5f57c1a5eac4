"""What the intervals of a table treat as random: one sentence under the table, from the methods of its estimates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hitmiss.core.finding import has_code
from hitmiss.core.results import Estimate
from hitmiss.core.sampling import BY_CLASS, OF_ALL
from hitmiss.engine.interval import FEW_ERRORS, OVER_UNITS
from hitmiss.findings.render import brief

PLAIN = {
    "wilson": "shares of independent trials (Wilson)",
    OVER_UNITS: "shares of whole units (Wilson)",
    "delong": "independent trials of both classes (DeLong)",
    "newcombe": "independent trials of both classes (Newcombe)",
    "order statistics": "independent trials (order statistics)",
    FEW_ERRORS: "what so few errors leave open (Jeffreys)",
    "unseen": "what so few trials leave open",
}


def sampling(estimates: Iterable[Estimate]) -> str | None:
    """Say what is random in the intervals, metric by metric; None if there is no interval.

    >>> e = Estimate("f1", 0.5, 0.4, 0.6, method="bootstrap 1000,trials from all,auto,0.95,seed=0")
    >>> sampling([e])
    'intervals: 1,000 draws of all trials, so how many are positive varies too (f1)'
    """
    told: dict[str, dict[str, None]] = {}
    for e in estimates:
        if e.low is not None and e.method:
            told.setdefault(_method_text(e), {})[e.metric] = None
    if not told:
        return None
    if len(told) > 1 or len(next(iter(told.values()))) == 1:
        parts = [f"{how} ({', '.join(names)})" for how, names in told.items()]
        return f"intervals: {'; '.join(parts)}"
    return f"intervals: {next(iter(told))}"


def units_text(estimates: Iterable[Estimate]) -> str | None:
    """Say how many units the intervals are based on, if units are resampled.

    >>> units_text([Estimate("eer", 0.1, units=12, units_effective=9.62)])
    '12 units, as many as 9.6 of equal size'
    """
    held = [(e.units, e.units_effective) for e in estimates if e.units is not None and e.units_effective is not None]
    if not held:
        return None
    fewest, most = min(held), max(held)
    if fewest[0] != most[0]:
        return f"{fewest[0]} to {most[0]} units"
    alike = "" if round(fewest[1], 1) == fewest[0] else f", as many as {fewest[1]:.1f} of equal size"
    return f"{fewest[0]} units{alike}"


def under(estimates: Iterable[Estimate]) -> str | None:
    """Return the lines under a table: what is random, from how many units, and why slices have no interval."""
    rows = list(estimates)
    said, units = sampling(rows), units_text(rows)
    if said is None:
        return None
    return "\n".join([said if units is None else f"{said}; {units}", *_missing(rows)])


NAMED_SLICES: Final = 3
"""How many slices without an interval are named under a table; the others are counted."""


def _missing(rows: Sequence[Estimate]) -> list[str]:
    """Say which slices have no interval, and why: a table by slices has no room for it.

    >>> from hitmiss.core.finding import Remark
    >>> alone = Remark.of("no-interval/one-unit-only", unit="unit")
    >>> cells = [Estimate("eer", 0.1, slice={"codec": f"C{i}"}, note=alone) for i in range(5)]
    >>> print("\\n".join(_missing(cells)[2:]))
    no interval for eer, codec C2: one unit alone
    no interval for 2 more (--json says why)
    """
    found = [e for e in rows if e.slice and e.low is None and has_code(e.note, "no-interval")]
    found.sort(key=lambda e: e.average is None)
    lines = [
        f"no interval for {e.title or e.metric}, {_place(e)}: {'; '.join(map(brief, e.findings))}"
        for e in found[:NAMED_SLICES]
    ]
    more = len(found) - len(lines)
    return [*lines, f"no interval for {more:,} more (--json says why)"] if more else lines


def _place(e: Estimate) -> str:
    """Name the slice of an estimate, or the slices that it is an average of.

    >>> _place(Estimate("eer", 0.1, slice={"codec": "C1"})), _place(Estimate("eer", 0.1, slice={"codec": "*"}, average="macro"))
    ('codec C1', 'macro over codec')
    """
    if e.average is not None and "*" in e.slice.values():
        return f"{e.average} over {' × '.join(e.slice)}"
    own = ", ".join(f"{name} {value}" for name, value in e.slice.items())
    return own if e.average is None else f"{e.average} {own}"


def _method_text(e: Estimate) -> str:
    how = e.how
    if not how.is_drawn:
        return PLAIN.get(e.method or "", e.method or "")
    what = how.drawn
    if how.draws is None:  # `bootstrap over source`, of a drift table
        return f"draws of whole units ({what.removeprefix('over ')})"
    draws = f"{how.draws:,} draws of "
    if what == f"trials {BY_CLASS}":
        return f"{draws}trials within each class"
    if what == f"trials {OF_ALL}":
        return f"{draws}all trials, so how many are positive varies too"
    unit, _, within = what.removeprefix("unit=").partition(" ")
    return f"{draws}whole units ({unit.replace('*', ' × ')}){f', {within}' if within else ''}"
