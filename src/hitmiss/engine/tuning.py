"""Choose thresholds on one set and evaluate them on another, per group: what tuning gains, and how much remains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.registry import find_metric
from hitmiss.core.results import Estimate
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.scale import ScoreScale
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.core.weights import refuse_sampling
from hitmiss.derive.operating_points import (
    CAPACITY,
    FALSE_ALARMS,
    GUARANTEED,
    KEPT,
    capacity_threshold,
    guaranteed_threshold,
    kept_threshold,
)
from hitmiss.derive.thresholds import SEARCHES, ThresholdChoice, best_threshold, figures_at
from hitmiss.engine.at_prevalence import at_prevalence
from hitmiss.engine.measure import measure_design
from hitmiss.engine.requirement import Requirement, parse_requirement
from hitmiss.metrics.counts import flag_rate, precision, recall
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
class Bench:
    """What thresholds are chosen by, and where they will be used.

    Parameters
    ----------
    maximize, search
        The metric, and how its best threshold is searched for.
    guarantee
        A rate to keep on data not seen yet, instead.
    keep
        A limit that thresholds must keep on validation, such as `recall >= 0.9`.
    prevalence, volume, capacity
        In use, by group (`""`: every group): the share of positives, the number of items of a period, and how many of
        them people can review. A capacity chooses the threshold.
    """

    maximize: str = OBJECTIVE
    search: str = "exact"
    guarantee: Guarantee | None = None
    keep: Requirement | None = None
    prevalence: Mapping[str, float] = field(default_factory=dict)
    volume: Mapping[str, float] = field(default_factory=dict)
    capacity: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.search not in SEARCHES:
            raise UnknownName("search", self.search, SEARCHES)
        if sum(map(bool, (self.guarantee, self.keep, self.capacity))) > 1:
            raise UsageError.of("one-way-to-choose")
        if self.capacity and not self.volume:
            raise UsageError.of("no-volume")
        if any(not 0.0 < share < 1.0 for share in self.prevalence.values()):
            raise UsageError.of("bad-prevalence-in-use")
        if any(not v > 0.0 for own in (self.volume, self.capacity) for v in own.values()):
            raise UsageError.of("bad-volume-in-use")
        if self.keep is not None and (self.keep.target.cells or self.keep.target.average or self.keep.prevalence):
            raise UsageError.of("bad-keep", text=str(self.keep))

    @property
    def metric(self) -> str:
        """The number that is shown on validation and on test."""
        return self.guarantee.rate if self.guarantee else recall.__name__ if self.capacity else self.maximize

    @property
    def kind(self) -> str:
        """How the threshold is chosen, in one word."""
        return GUARANTEED if self.guarantee else KEPT if self.keep else CAPACITY if self.capacity else self.search

    def check_groups(self, groups: Sequence[str]) -> None:
        """Refuse groups that are not there, and one volume or capacity for several groups."""
        for name, own in (("prevalence", self.prevalence), ("volume", self.volume), ("capacity", self.capacity)):
            unknown = [group for group in own if group and group not in groups]
            if unknown:
                raise UnknownName(f"group in --{name}", unknown[0], groups)
            lacking = [group for group in groups if group not in own]
            if own and lacking and (("" in own and name != "prevalence" and len(groups) > 1) or "" not in own):
                raise UsageError.of("each-group-its-own", name=name, group=lacking[0])

    def in_use(self, group: str, own: Trials) -> InUse:
        """Return where the threshold of a group will be used; without a prevalence, that of its validation rows."""
        share = self.prevalence.get(group, self.prevalence.get(""))
        volume, capacity = (known.get(group, known.get("")) for known in (self.volume, self.capacity))
        return InUse(own.n_positive / len(own) if share is None else share, share is not None, volume, capacity)

    def choose(self, tally: Tally, use: InUse, scale: ScoreScale) -> dict[str, ThresholdChoice]:
        """Return the threshold by each search, or the one that keeps what must be kept."""
        if self.guarantee is not None:
            rate = self.guarantee
            kept = guaranteed_threshold(tally, rate.rate, rate.limit, level=rate.level, scale=scale)
        elif self.keep is not None:
            limit = self.keep
            keeps = np.frompyfunc(lambda value: not limit.is_broken(value), 1, 1)
            kept = kept_threshold(
                tally, self.maximize, lambda v: keeps(v).astype(bool), str(limit.target.metric), scale
            )
        elif use.capacity is not None and use.volume is not None:
            kept = capacity_threshold(tally, use.capacity / use.volume, use.prevalence, scale)
        else:
            return {kind: best_threshold(tally, maximize=self.maximize, search=kind, scale=scale) for kind in SEARCHES}
        return dict.fromkeys(SEARCHES, kept)


@dataclass(frozen=True)
class InUse:
    """Where a threshold will be used: the share of positives, whether that was said, items of a period, capacity."""

    prevalence: float
    is_said: bool
    volume: float | None = None
    capacity: float | None = None


@dataclass(frozen=True)
class Load:
    """What a threshold means in use, with intervals: recall, the share that is flagged, precision and the queue.

    `is_judged`: measured on test data; otherwise on the data that the threshold was chosen on, which is optimistic.
    """

    recall: Known
    flag_rate: Known
    precision: Known
    queue: Known | None
    is_judged: bool


@dataclass(frozen=True)
class Known:
    """A number and its interval."""

    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, e: Estimate, times: float = 1.0) -> Known:
        """Take a number and its interval, times something."""
        return cls(*(None if v is None else v * times for v in (e.value, e.low, e.high)))


def load_of(decided: Trials, use: InUse, plan: SamplingPlan, is_judged: bool) -> Load:
    """Return what decisions mean in use, from recall and false alarms, which do not depend on the share of positives."""
    rates = measure_design(decided, Design.by_plan(plan, [recall.__name__, FALSE_ALARMS]))
    caught, alarms = rates.one(recall.__name__), rates.one(FALSE_ALARMS)
    known = (find_metric(m.__name__) for m in (flag_rate, precision))
    flagged, precise = (at_prevalence(metric, use.prevalence, caught, alarms) for metric in known)
    queue = None if use.volume is None else Known.of(flagged, use.volume)
    return Load(Known.of(caught), Known.of(flagged), Known.of(precise), queue, is_judged)


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
    use: InUse | None = None
    load: Load | None = None

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
    validation: Trials, column: str, groups: Sequence[str], *, test: Trials | None = None, by: Bench | None = None
) -> list[Tuned]:
    """Return the threshold of each group of `validation`, evaluated on the same group of `test` if it is given.

    >>> t = Trials.of([1, 0, 1, 0], [0.8, 0.3, 0.6, 0.7], language=["en", "en", "es", "es"])
    >>> [(row.group, row.chosen.threshold) for row in tune(t, "language", ["en", "es"])]
    [('en', 0.8), ('es', 0.6)]
    """
    by = by or Bench()
    by.check_groups(groups)
    rows = []
    for group in groups:
        own = validation.where(**{column: group})
        other = test.where(**{column: group}) if test is not None else None
        if own.n_positive in (0, len(own)):
            only = own.header.positive if own.n_positive else own.header.negative
            raise DataError.of("one-class/validation", group=group, only=only)
        if other is not None and not len(other):
            raise DataError.of("no-test-rows", group=group)
        rows.append(_tuned(group, own, other, by))
    return rows


def _tuned(group: str, own: Trials, other: Trials | None, by: Bench) -> Tuned:
    tally, scale, metric = _tally(own), own.header.scale, by.metric
    use = by.in_use(group, own)
    try:
        choices = by.choose(tally, use, scale)
    except DataError as error:
        raise DataError.of("group-refused", group=group, error=error.found) from None
    at_default = _figure(tally, scale.to_inside(DEFAULT), metric)
    row = Tuned(group, len(own), own.n_positive, choices, by.search, at_default, use=use)
    if other is None:
        return row
    judged = _tally(other)
    at_chosen, at_half = (_figure(judged, scale.to_inside(t), metric) for t in (row.chosen.threshold, DEFAULT))
    return replace(row, test_n=len(other), test=at_chosen, test_at_default=at_half)


def _tally(trials: Trials) -> Tally:
    refuse_sampling(trials, "a search for thresholds")
    positive = np.asarray(trials.label == 1)
    return Tally.of_classes(trials.score[positive], trials.score[~positive])


def _figure(tally: Tally, threshold: float, metric: str) -> float:
    """Return a number at a threshold; an empty denominator counts as 0, as in the table."""
    value = float(figures_at(tally, [threshold], metric)[0])
    return 0.0 if math.isnan(value) else value
