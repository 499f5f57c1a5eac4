"""Samples of trials with sampling weights: every count is a sum of weights, and rows are drawn with their weights.

The weights are scaled to a mean of 1, so that their unit is the trial and no number depends on their scale. A row is
the unit of resampling unless the caller names another, so its weight is the size of its unit: what is known of units of
unequal size (effective numbers, Student's intervals, shares over units) holds for rows of unequal weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Remark
from hitmiss.core.metric import Metric
from hitmiss.core.metric_spec import Setting
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.core.weights import kish
from hitmiss.engine.columns import Columns, OneClassColumns, Rows, Sample
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.metrics.counts import OUTCOMES, Counts
from hitmiss.stats.delong import RocSteps
from hitmiss.stats.enough_units import Sizes
from hitmiss.stats.units import UnitSample

MOST_WEIGHTS: Final = 1 << 28
"""The largest product of replicates and rows that is drawn."""
UNDRAWN: Final = Remark.of("no-interval/weights-undrawn")


@singledispatch
def columns_of_trials(trials: Trials, one_class: OneClassColumns | None = None, pools_targets: bool = False) -> Columns:
    """Return the columns of trials, with or without sampling weights; each kind of trials has its own."""
    kind = Columns if trials.header.weight is None else WeightedColumns
    return kind(trials, one_class or OneClassColumns(), pools_targets)


def weighted_plan(trials: Trials, plan: SamplingPlan) -> SamplingPlan:
    """Return the plan of intervals for trials with sampling weights: rows are units, unless the caller names others."""
    if plan.bootstrap * len(trials) > MOST_WEIGHTS:
        raise UsageError.of(
            "too-many-draws", bootstrap=plan.bootstrap, n_trials=len(trials), MOST_WEIGHTS=MOST_WEIGHTS // len(trials)
        )
    return plan if plan.unit else replace(plan, unit=("item",))


def needs_whole_trials(metric: Metric, settings: Mapping[str, Setting]) -> bool:
    """Return whether a metric goes through trials one by one, so that a weight can only be a number of trials."""
    return metric.one_by_one or settings.get("ties") == "official"


def refuse_unweighted(question: PreparedMetric) -> None:
    """Refuse a metric that counts trials one by one, where they have sampling weights."""
    name = question.metric.name
    if needs_whole_trials(question.metric, question.settings):
        raise UsageError.of("sampling-weights/refused", name=name, name_2=one_by_one(name, question.settings))


def one_by_one(name: str, settings: Mapping[str, Setting]) -> str:
    """Say why a metric cannot use sampling weights, and what to do about it."""
    why, instead = "goes through the trials one by one", "leave it out, or declare frequency weights"
    if settings.get("ties") == "official":
        why, instead = "with ties=official goes through tied trials one by one", f"ask for {name}(ties=grouped)"
    return f"{why}, and sampling weights are no numbers of trials; {instead}"


@dataclass(frozen=True, eq=False)
class WeightedColumns(Columns):
    """The columns of trials with sampling weights."""

    def __post_init__(self) -> None:
        """Accept the weights, which the samples use."""

    @cached_property
    def weight(self) -> Floats:
        """The weights, with a mean of 1."""
        assert self.trials.weights is not None
        return self.trials.weights * self.scale

    @cached_property
    def scale(self) -> float:
        """What the given weights are multiplied by."""
        assert self.trials.weights is not None
        return float(len(self.trials) / self.trials.weights.sum())

    def sample(
        self, rows: Rows, run: Mapping[str, str] | None = None, slice: Mapping[str, str] | None = None
    ) -> Sample:
        """Return the sample of some rows."""
        return WeightedSample(self, rows, run or {}, slice or {})


@dataclass(frozen=True, eq=False)
class WeightedSample(Sample):
    """Some trials of one run, with their weights."""

    columns: WeightedColumns

    @cached_property
    def weight(self) -> Floats:
        """The weight of each of its trials."""
        return np.asarray(self._own(self.columns.weight), dtype=np.float64)

    @cached_property
    def mass(self) -> float:
        """The sum of the weights of its trials."""
        return float(self.weight.sum())

    @property
    def totals(self) -> tuple[float, float]:
        """The sums of the given weights of all its trials and of the positive ones."""
        scale = self.columns.scale
        return self.mass / scale, float(self.weight[self.positive].sum()) / scale

    @property
    def size_of_pairs(self) -> float:
        """The sum over pairs of a positive and a negative trial of the products of their weights."""
        positive = float(self.weight[self.positive].sum())
        return positive * (self.mass - positive)

    @cached_property
    def tally(self) -> Tally:
        """The sums of the weights at each of its scores."""
        return Tally.of(self.positive, self.score, self.weight)

    @cached_property
    def steps(self) -> RocSteps:
        """What its AUC needs, with weights that add up to the effective number of trials, for a rough interval."""
        scale = kish(self.weight) / self.mass
        return RocSteps.of_tally(Tally.of(self.positive, self.score, self.weight * scale))

    @cached_property
    def outcomes(self) -> Floats:  # type: ignore[override]  # sums of weights, not counts
        """The sum of the weights of each outcome of a decision."""
        happened = self._own(self.columns.outcome)
        return np.asarray(np.bincount(happened, weights=self.weight, minlength=OUTCOMES), dtype=np.float64)

    @property
    def seen(self) -> Counts[float]:
        """Its decisions, counted, whatever they weigh."""
        return Counts(*np.bincount(self._own(self.columns.outcome), minlength=OUTCOMES).tolist())

    @cached_property
    def placements(self) -> Floats:
        """For each trial, the share of the other class, by weight, that its score is ordered correctly against."""
        group = np.searchsorted(self.tally.score, self.score)
        middle = [0.5 * (own[:-1] + own[1:])[group] for own in (self.tally.positives, self.tally.negatives)]
        with np.errstate(divide="ignore", invalid="ignore"):
            under, over = middle[1] / self.tally.n_negative, 1.0 - middle[0] / self.tally.n_positive
        return np.where(self.positive, under, over)

    def unit_sample(self, unit: NDArray[np.int64], n_units: int) -> UnitSample:
        """Return its trials with the unit and the weight of each."""
        return UnitSample.of(self.positive, self.score, unit[self.rows], n_units, self.weight)

    def unit_sizes(self, unit: NDArray[np.int64]) -> Sizes:
        """Return the sum of the weights of the positives and of the negatives in each unit."""
        own, n = unit[self.rows], int(unit[self.rows].max(initial=-1)) + 1
        found = [np.bincount(own[m], self.weight[m], n) for m in (self.positive, ~self.positive)]
        return found[0], found[1]

    def unit_outcomes(self, unit: NDArray[np.int64], n_units: int) -> Floats:  # type: ignore[override]
        """Return the sum of the weights of each outcome of a decision per unit (unit × outcome)."""
        place = unit[self.rows] * OUTCOMES + self.columns.outcome[self.rows]
        found = np.bincount(place, self.weight, n_units * OUTCOMES).reshape(n_units, OUTCOMES)
        return np.asarray(found, dtype=np.float64)
