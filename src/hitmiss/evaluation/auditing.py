"""Audit samples: precision, recall and prevalence of decisions from labels of a stratified sample, and how many to label.

A platform knows how many items its classifier flagged and passed, by language and stratum, and can label a few of them.
Items of each stratum are drawn at random, so its share of positives has Wilson's interval, and strata are independent: the
totals of positives among flagged and among passed items, and what is made of them, have intervals by MOVER (Zou & Donner
2008). A stratum of which every item was labelled is known exactly. Wilson's interval holds where no positive was found,
which is usual among passed items, and where an error by linearisation would be 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from hitmiss.core.errors import DataError, UsageError
from hitmiss.engine.interval import share_interval
from hitmiss.io.text_rows import read_rows
from hitmiss.io.words import flag

FLAGGED: Final = "flagged"
SIZE: Final = "n"
EXPECTED: Final = "expected"
LABEL: Final = ("label", "y_true", "toxic", "violates")
LEAST: Final = 10
"""The fewest items of a stratum that a plan labels, if it has so many."""
Ends = tuple[float, float, float]
"""A number with the ends of its interval."""


@dataclass(frozen=True)
class Stratum:
    """Items that were sampled alike: all flagged or all passed; how many there are, were labelled, and were positive."""

    cells: Mapping[str, str]
    flagged: bool
    n: int
    labelled: int = 0
    positive: float = 0
    expected: float | None = None

    @property
    def name(self) -> str:
        """Its values, and whether it was flagged."""
        return ", ".join((*self.cells.values(), FLAGGED if self.flagged else "passed"))

    def total(self, level: float) -> Ends:
        """Return how many of its items are positive, with an interval."""
        if self.labelled >= self.n:
            return float(self.positive), float(self.positive), float(self.positive)
        low, high = share_interval(self.positive, self.labelled, level)
        return tuple(self.n * v for v in (self.positive / self.labelled, low, high))  # type: ignore[return-value]


@dataclass(frozen=True)
class Audited:
    """A group, such as a language: items, labels, and numbers with their intervals (None: undefined)."""

    group: Mapping[str, str]
    n: int
    flagged: int
    labelled: int
    precision: Ends | None
    recall: Ends | None
    prevalence: Ends


@dataclass(frozen=True)
class PlannedStratum:
    """How many items of a stratum to label, and at which rate that samples it."""

    stratum: Stratum
    labels: int

    @property
    def rate(self) -> float:
        """The share of its items that is labelled."""
        return self.labels / self.stratum.n


def read_strata(population: str, sample: str | None = None, label: str | None = None) -> list[Stratum]:
    """Read the strata of a population, and count the labels of a sample in each.

    Parameters
    ----------
    population
        A table with one row per stratum: `n` items, `flagged` (yes or no), optionally the `expected` share of positives;
        every other column (language, score band) is part of its name.
    sample
        A table with one row per labelled item: the same columns that name strata, `flagged` and the label.
    label
        The column of the label, where it is not a usual one.
    """
    rows, name = read_rows(population).frame, Path(population).name
    for needed in (SIZE, FLAGGED):
        if needed not in rows.columns:
            raise DataError.of("audit-column", name=name, column=needed, columns=tuple(rows.columns))
    names = [c for c in rows.columns if c not in (SIZE, FLAGGED, EXPECTED)]
    found: dict[tuple[str, ...], Stratum] = {}
    for at, row in enumerate(rows.iter_rows(named=True), start=2):
        is_flagged, size = _yes(row[FLAGGED], name, at, FLAGGED), _count(row[SIZE], name, at)
        expected = _share(row[EXPECTED], name, at) if row.get(EXPECTED) else None
        key = (*(str(row[c]) for c in names), str(is_flagged))
        if key in found:
            raise DataError.of("audit-stratum-twice", name=name, row=at)
        found[key] = Stratum({c: str(row[c]) for c in names}, is_flagged, size, expected=expected)
    return list(_counted(found, names, sample, label).values()) if sample else list(found.values())


def _counted(
    found: dict[tuple[str, ...], Stratum], names: Sequence[str], sample: str, label: str | None
) -> dict[tuple[str, ...], Stratum]:
    rows, file = read_rows(sample).frame, Path(sample).name
    own = [label] if label else [c for c in rows.columns if c.strip().lower() in LABEL]
    lacking = [c for c in (*names, FLAGGED, *(own or ["label"])) if c not in rows.columns]
    if lacking or len(own) != 1:
        column = lacking[0] if lacking else "label"
        raise DataError.of("audit-column", name=file, column=column, columns=tuple(rows.columns))
    for at, row in enumerate(rows.iter_rows(named=True), start=2):
        key = (*(str(row[c]) for c in names), str(_yes(row[FLAGGED], file, at, FLAGGED)))
        if key not in found:
            raise DataError.of("audit-unknown-stratum", name=file, row=at, stratum=", ".join(key[:-1]))
        one, is_positive = found[key], _yes(row[own[0]], file, at, own[0])
        found[key] = replace(one, labelled=one.labelled + 1, positive=one.positive + is_positive)
    for one in found.values():
        if one.labelled > one.n or (one.n and not one.labelled):
            raise DataError.of("audit-labels", stratum=one.name, labelled=one.labelled, n=one.n)
    return found


def _yes(cell: object, name: str, row: int, column: str) -> bool:
    if (found := flag(cell)) is None:
        raise DataError.of("audit-cell", name=name, row=row, column=column, value=str(cell))
    return found


def _count(cell: object, name: str, row: int) -> int:
    text = str(cell).strip()
    if not text.isascii() or not text.isdigit():
        raise DataError.of("audit-cell", name=name, row=row, column=SIZE, value=text)
    return int(text)


def _share(cell: object, name: str, row: int) -> float:
    try:
        value = float(str(cell))
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise DataError.of("audit-cell", name=name, row=row, column=EXPECTED, value=str(cell))
    return value


def audit(strata: Sequence[Stratum], by: Sequence[str] = (), level: float = 0.95) -> list[Audited]:
    """Return precision, recall and prevalence of each group of strata, and of all of them last.

    >>> strata = [Stratum({}, True, 100, 50, 40), Stratum({}, False, 900, 90, 1)]
    >>> [round(x, 3) for x in audit(strata)[0].recall]
    [0.889, 0.595, 0.979]
    """
    known = {c for one in strata for c in one.cells}
    if unknown := [c for c in by if c not in known]:
        raise UsageError.of("audit-by", column=unknown[0], columns=tuple(sorted(known)))
    groups: dict[tuple[str, ...], list[Stratum]] = {}
    for one in strata:
        if by:
            groups.setdefault(tuple(one.cells[c] for c in by), []).append(one)
    rows = [_audited(dict(zip(by, key, strict=True)), own, level) for key, own in groups.items()]
    return [*rows, _audited({}, list(strata), level)] if len(rows) != 1 else rows


def _audited(group: Mapping[str, str], strata: list[Stratum], level: float) -> Audited:
    flagged, passed = ([one for one in strata if one.flagged == side and one.n] for side in (True, False))
    n, n_flagged = sum(one.n for one in strata), sum(one.n for one in flagged)
    caught, missed = (_sum([one.total(level) for one in own]) for own in (flagged, passed))
    precision = _of(caught, (0.0, 0.0, 0.0), lambda tp, _: tp / n_flagged) if n_flagged else None
    recall = _of(caught, missed, lambda tp, fn: tp / (tp + fn)) if caught[0] + missed[0] > 0 else None
    prevalence = _of(caught, missed, lambda tp, fn: (tp + fn) / n)
    return Audited(group, n, n_flagged, sum(one.labelled for one in strata), precision, recall, prevalence)


def _sum(totals: Sequence[Ends]) -> Ends:
    """Return a sum of independent totals, with an interval by MOVER."""
    value = math.fsum(t[0] for t in totals)
    below, above = (math.sqrt(math.fsum((t[k] - t[0]) ** 2 for t in totals)) for k in (1, 2))
    return value, max(value - below, 0.0), value + above


def _of(one: Ends, other: Ends, function: Callable[[float, float], float]) -> Ends:
    """Return a function of two independent totals that rises or falls with each, with an interval by MOVER."""
    value = function(one[0], other[0])
    steps = [[function(end, other[0]) for end in one[1:]], [function(one[0], end) for end in other[1:]]]
    low, high = (
        value + sign * math.hypot(*(max(0.0, *(sign * (step - value) for step in own)) for own in steps))
        for sign in (-1.0, 1.0)
    )
    return value, max(low, 0.0), min(high, 1.0)


def plan_audit(
    strata: Sequence[Stratum],
    by: Sequence[str] = (),
    *,
    labels: int | None = None,
    width: float | None = None,
    level: float = 0.95,
) -> list[PlannedStratum]:
    """Return how many items of each stratum to label, so that recall and precision are known best.

    With `labels` they are shared out in each group in proportion to what a stratum adds to the error of recall (Neyman);
    with `width` the fewest are taken with which the intervals of recall and precision of every group are that narrow, if
    the share of positives is the expected one.
    """
    if (labels is None) == (width is None):
        raise UsageError.of("no-audit-plan")
    if lacking := next((one for one in strata if one.expected is None), None):
        raise UsageError.of("audit-expected", stratum=lacking.name)
    if labels is not None:
        return _shared(strata, labels)
    assert width is not None
    groups: dict[tuple[str, ...], list[Stratum]] = {}
    for one in strata:
        groups.setdefault(tuple(one.cells[c] for c in by), []).append(one)
    return [row for own in groups.values() for row in _narrow(own, width, level)]


def _narrow(strata: list[Stratum], width: float, level: float) -> list[PlannedStratum]:
    low, high = 0, sum(one.n for one in strata)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _width(_shared(strata, middle), level) <= width else (middle + 1, high)
    return _shared(strata, low)


def _width(plan: list[PlannedStratum], level: float) -> float:
    """Return the widest interval of recall and precision that a plan gives with the expected shares."""
    seen = [replace(p.stratum, labelled=p.labels, positive=p.labels * (p.stratum.expected or 0.0)) for p in plan]
    row = _audited({}, seen, level)
    return max((found[2] - found[1] for found in (row.recall, row.precision) if found is not None), default=0.0)


def _shared(strata: Sequence[Stratum], labels: int) -> list[PlannedStratum]:
    """Share labels out (Neyman): by size, spread and what a positive there does to recall; at least `LEAST` each."""
    caught, missed = (
        math.fsum(one.n * (one.expected or 0.0) for one in strata if one.flagged == side) for side in (True, False)
    )
    whole = caught + missed or 1.0
    share = [min(max(one.expected or 0.0, 0.5 / max(one.n, 1)), 0.999) for one in strata]
    slope = [(missed or whole / 10.0) / whole**2 if one.flagged else caught / whole**2 for one in strata]
    need = np.array([c * one.n * math.sqrt(p * (1 - p)) for c, one, p in zip(slope, strata, share, strict=True)])
    least = np.array([min(LEAST, one.n) for one in strata])
    most = np.array([one.n for one in strata])
    rest = max(labels - int(least.sum()), 0)
    given = least + np.floor(rest * need / (need.sum() or 1.0)).astype(int)
    return [PlannedStratum(one, int(n)) for one, n in zip(strata, np.minimum(given, most), strict=True)]
