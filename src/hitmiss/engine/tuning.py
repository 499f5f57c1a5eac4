"""Choose thresholds on one set and evaluate them on another, per group: what tuning gains, and how much remains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.core.weights import refuse_sampling
from hitmiss.derive.operating_points import FALSE_ALARMS, guaranteed_threshold
from hitmiss.derive.thresholds import SEARCHES, ThresholdChoice, best_threshold, figures_at
from hitmiss.engine.requirement import parse_requirement
from hitmiss.metrics.usual import OBJECTIVE

DEFAULT = 0.5


@dataclass(frozen=True)
class Guarantee:
    """A rate, `fpr` or `recall`, its limit, and how often a validation set gives a threshold that keeps it."""

    rate: str
    limit: float
    level: float = 0.95

    @classmethod
    def parse(cls, text: str, level: float = 0.95) -> Guarantee:
        """Read a guarantee from its text.

        >>> Guarantee.parse("fpr <= 1%")
        Guarantee(rate='fpr', limit=0.01, level=0.95)
        """
        found = parse_requirement(text)
        rate = str(found.target.metric)
        if found.is_upper != (rate == FALSE_ALARMS) or found.target.cells or found.target.average:
            raise UsageError.of("bad-guarantee", rate=text, limit=found.limit)
        return cls(rate, found.limit, level)

    def __str__(self) -> str:
        return (
            f"{self.rate} {'<=' if self.rate == FALSE_ALARMS else '>='} {self.limit:g}, guaranteed at {self.level:.0%}"
        )


@dataclass(frozen=True)
class Tuned:
    """The thresholds of one group, and the number on both sets; the chosen one is that of `search`."""

    group: str
    n: int
    n_positive: int
    choices: dict[str, ThresholdChoice]
    search: str
    at_default: float
    test_n: int | None = None
    test: float | None = None
    test_at_default: float | None = None
    test_low: float | None = None
    test_high: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    units: int | None = None
    note: str | None = None

    @property
    def chosen(self) -> ThresholdChoice:
        """The threshold that is written."""
        return self.choices[self.search]

    @property
    def gain(self) -> float | None:
        """The number on the other set at the chosen threshold minus that at 0.5; interval: `gain_low`, `gain_high`."""
        return None if self.test is None or self.test_at_default is None else self.test - self.test_at_default

    @property
    def drop(self) -> float | None:
        """The number on the set that the threshold was chosen on minus the number on the other set."""
        return None if self.test is None else self.chosen.value - self.test


def tune(
    validation: Trials,
    column: str,
    groups: Sequence[str],
    *,
    maximize: str = OBJECTIVE,
    search: str = "exact",
    test: Trials | None = None,
    guarantee: Guarantee | None = None,
) -> list[Tuned]:
    """Return the best threshold of each group of `validation`, evaluated on the same group of `test` if it is given.

    With a `guarantee`, each is the threshold that keeps its rate on data not seen yet; `maximize` then names this rate.

    >>> t = Trials.of([1, 0, 1, 0], [0.8, 0.3, 0.6, 0.7], language=["en", "en", "es", "es"])
    >>> [(row.group, row.chosen.threshold) for row in tune(t, "language", ["en", "es"])]
    [('en', 0.8), ('es', 0.6)]
    """
    if search not in SEARCHES:
        raise UnknownName("search", search, SEARCHES)
    rows = []
    for group in groups:
        own = validation.where(**{column: group})
        other = test.where(**{column: group}) if test is not None else None
        if own.n_positive in (0, len(own)):
            only = own.header.positive if own.n_positive else own.header.negative
            raise DataError.of("one-class/validation", group=group, only=only)
        if other is not None and not len(other):
            raise DataError.of("no-test-rows", group=group)
        rows.append(_tuned(group, own, other, maximize, search, guarantee))
    return rows


def _tuned(
    group: str, own: Trials, other: Trials | None, maximize: str, search: str, guarantee: Guarantee | None
) -> Tuned:
    tally, scale = _tally(own), own.header.scale
    try:
        if guarantee is None:
            choices = {kind: best_threshold(tally, maximize, kind, scale) for kind in SEARCHES}
        else:
            kept = guaranteed_threshold(tally, guarantee.rate, guarantee.limit, level=guarantee.level, scale=scale)
            choices = dict.fromkeys(SEARCHES, kept)
    except DataError as error:
        raise DataError.of("group-refused", group=group, error=error.found) from None
    at_default = _figure(tally, scale.to_inside(DEFAULT), maximize)
    row = Tuned(group, len(own), own.n_positive, choices, search, at_default)
    if other is None:
        return row
    judged = _tally(other)
    at_chosen, at_half = (_figure(judged, scale.to_inside(t), maximize) for t in (row.chosen.threshold, DEFAULT))
    return replace(row, test_n=len(other), test=at_chosen, test_at_default=at_half)


def _tally(trials: Trials) -> Tally:
    refuse_sampling(trials, "a search for thresholds")
    positive = np.asarray(trials.label == 1)
    return Tally.of_classes(trials.score[positive], trials.score[~positive])


def _figure(tally: Tally, threshold: float, metric: str) -> float:
    """Return a number at a threshold; an empty denominator counts as 0, as in the table."""
    value = float(figures_at(tally, [threshold], metric)[0])
    return 0.0 if math.isnan(value) else value
