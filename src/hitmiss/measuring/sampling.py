"""What the intervals of a table take to be random: one sentence under it, from the methods of its estimates."""

from __future__ import annotations

from collections.abc import Iterable

from hitmiss.design import BY_CLASS, OF_ALL
from hitmiss.results import Estimate

PLAIN = {
    "wilson": "shares of independent trials (Wilson)",
    "delong": "independent trials of both classes (DeLong)",
    "newcombe": "independent trials of both classes (Newcombe)",
    "order statistics": "independent trials (order statistics)",
    "unseen": "what so few trials leave open",
}


def sampling(estimates: Iterable[Estimate]) -> str | None:
    """What is random in the intervals, metric by metric; None where there is no interval.

    >>> e = Estimate("f1", 0.5, 0.4, 0.6, method="bootstrap 1000,trials from all,auto,0.95,seed=0")
    >>> sampling([e])
    'intervals: 1,000 draws of all trials, so how many are positive varies too (f1)'
    """
    told: dict[str, dict[str, None]] = {}
    for e in estimates:
        if e.low is not None and e.method:
            told.setdefault(_said(e), {})[e.metric] = None
    if not told:
        return None
    if len(told) > 1 or len(next(iter(told.values()))) == 1:
        parts = [f"{how} ({', '.join(names)})" for how, names in told.items()]
        return f"intervals: {'; '.join(parts)}"
    return f"intervals: {next(iter(told))}"


def units_said(estimates: Iterable[Estimate]) -> str | None:
    """How many units stand behind the intervals, where units are drawn.

    >>> units_said([Estimate("eer", 0.1, units=12, units_effective=9.62)])
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
    """The line under a table: what is random, and from how many units."""
    rows = list(estimates)
    said, units = sampling(rows), units_said(rows)
    return said if said is None or units is None else f"{said}; {units}"


def _said(e: Estimate) -> str:
    kind, _, rest = (e.method or "").partition(" ")
    if kind != "bootstrap":
        return PLAIN.get(e.method or "", e.method or "")
    if "," not in rest:  # `bootstrap over source`, of a drift table
        return f"draws of whole {rest.removeprefix('over ')}"
    count, what = rest.split(",")[:2]
    draws = f"{int(count):,} draws of "
    if what == f"trials {BY_CLASS}":
        return f"{draws}trials within each class"
    if what == f"trials {OF_ALL}":
        return f"{draws}all trials, so how many are positive varies too"
    unit, _, how = what.removeprefix("unit=").partition(" ")
    return f"{draws}whole {unit.replace('*', ' × ')}{f', {how}' if how else ''}"
