"""What is known about the uncertainty of an estimate: its replicates, its values without one unit each, its errors.

The choice of interval (`engine.interval`) reads nothing else. What costs time is a function here, and is computed when a
rule asks for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.sorting import Floats
from hitmiss.engine.columns import Sample
from hitmiss.engine.draws import Draws
from hitmiss.engine.few_errors import TwoRates, too_few_errors, two_rates
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.engine.shares import units_behind
from hitmiss.stats.delong import RocSteps
from hitmiss.stats.enough_units import effective
from hitmiss.stats.forms.base import Form, Functional, Located, Replicated
from hitmiss.stats.forms.trials import OfConfidences
from hitmiss.stats.jackknife import LeftOut
from hitmiss.stats.scale import Ends
from hitmiss.stats.students_t import MANY

NO_BOUNDS: Ends = (-math.inf, math.inf)


def nothing(*_: object) -> None:
    """Return None: what an estimate does not have."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """What is known about the uncertainty of one estimate, or of one that is made of several (`parts`)."""

    value: float
    """The estimate; a `Rate` or a `Quantile` says what it is a share or a quantile of."""
    bounds: Ends = NO_BOUNDS
    reason: str | None = None
    """Why it can have no interval, whatever its draws show."""
    replicates: Floats | None = None
    centre: float | None = None
    """The estimate without the optimism of a threshold that was chosen on the same trials; None: the estimate itself."""
    beside: tuple[Form, Floats] | None = None
    """The second form that an interval needs, with its replicates (see `Form.beside`)."""
    degrees: float = MANY
    """The degrees of freedom of an error that units show."""
    error: float | None = None
    """The standard error, where it is known without draws."""
    by_units: bool = False
    is_weighted: bool = False
    """Whether its trials have sampling weights, which may go with the outcome."""
    without: Callable[[Functional], LeftOut | None] = nothing
    """The values without one unit (or block) each, of a form."""
    left: LeftOut | None = None
    """The same of an expression, which has no form of its own."""
    acceleration: Callable[[Form], float] = nothing  # type: ignore[assignment]
    steps: Callable[[], RocSteps | None] = nothing
    """For an area: what DeLong's variance needs."""
    shares: Callable[[], Sequence[tuple[Floats, Floats]]] = tuple
    """For a share: the hits of each unit and what they are a share of, by each column of units."""
    too_few: Callable[[], str | None] = nothing
    """Why its units are too few for the level."""
    rare: Callable[[float], str | None] = nothing
    """Why it rests on too few errors for an interval of a given width."""
    rates: Callable[[float], TwoRates | None] = nothing
    """The estimate as a function of two error rates, at a level: what counting shows where errors are few."""
    sizes: tuple[int, int] = (0, 0)
    """The numbers of positive and of negative trials."""
    described: Callable[[SamplingPlan], str] = str
    """How the replicates were drawn, in the words of the signature."""
    is_delong: bool = False
    """Whether a protocol asks for DeLong's interval of an area, also where trials are drawn."""
    parts: tuple[Drawn, ...] = ()
    """What it is made of, in the order of the form."""
    ends: Ends | None = None
    """The interval that a part has on its own."""
    method: str | None = None
    """How the interval of a part was found."""

    @property
    def middle(self) -> float:
        """The estimate without optimism."""
        return float(self.value) if self.centre is None else self.centre

    @property
    def lost(self) -> int:
        """How many replicates are undefined."""
        return 0 if self.replicates is None else int(np.isnan(self.replicates).sum())

    def for_averages(self, form: Functional) -> Drawn:
        """Return the same for an estimate that is made of several: replicates and centre without optimism."""
        assert self.replicates is not None
        of = Replicated(float(self.value), self.replicates, self.beside)
        return Drawn(
            self.value,
            self.bounds,
            replicates=form.for_averages(of),
            centre=form.corrected(of),
            ends=self.ends,
            method=self.method,
        )


def drawn_of(
    draws: Draws,
    question: PreparedMetric,
    sample: Sample,
    value: float,
    replicates: Floats | None,
    reason: str | None = None,
    is_delong: bool = False,
) -> Drawn:
    """Return what is known about the estimate of one metric on one sample."""
    form, labelled = question.form, question.labelled
    by_units = draws.weights is not None

    def without(own: Functional) -> LeftOut | None:
        if len(draws.plan.unit) > 1 and isinstance(own, Located):
            return left_of_crossed(draws, question, sample, own)
        return draws.left_out(question, [sample], draws.left(own, sample))

    def shares() -> list[tuple[Floats, Floats]]:
        return [units_behind(form, sample, draws.codes(name)) for name in draws.plan.unit]

    return Drawn(
        value,
        question.metric.range,
        reason,
        replicates,
        beside=None if replicates is None else draws.replicated(question, sample, float(value), replicates).beside,
        degrees=degrees_of(draws, question, sample) if replicates is not None else MANY,
        by_units=by_units,
        is_weighted=sample.weight is not None,
        without=without,
        acceleration=lambda own: draws.acceleration(own, sample),
        steps=lambda: sample.steps,
        shares=shares,
        too_few=lambda: draws.too_few(sample, labelled),
        rare=lambda width: too_few_errors(form, sample, width),
        rates=lambda level: two_rates(
            form, sample, draws.unit if by_units else None, lambda: draws.unit_sample(sample), level
        ),
        sizes=(sample.n_positive, sample.n - sample.n_positive),
        described=lambda plan: draws.describe(question, plan),
        is_delong=is_delong,
    )


FEWEST_WRONG: Final = 6.0


def degrees_of(draws: Draws, question: PreparedMetric, sample: Sample) -> float:
    """Return the degrees of freedom of an error: those of units; of confidences, as many as there are wrong answers.

    What a number of confidences varies by is where its wrong answers stand; with ten of them, normal quantiles held the
    truth 88 to 90 % of the time.
    """
    if draws.weights is not None:
        return draws.degrees(sample, question.labelled)
    if not isinstance(question.form, OfConfidences):
        return MANY
    return max(float(sample.seen.fn + sample.seen.fp), FEWEST_WRONG)


def left_of_crossed(draws: Draws, question: PreparedMetric, sample: Sample, form: Form) -> LeftOut | None:
    """Return what crossed units add to an estimate that is read at a quantile, by a smooth form with equal influences.

    Without such a form only the shares of the two units are known, and the error comes from the replicates.
    """
    smooth = draws.left_smooth(form, sample)
    if smooth is not None:
        return draws.left_out(question, [sample], smooth[1])
    found = draws.left_out(question, [sample], draws.left(form, sample))
    return None if found is None else replace(found, cells=None)


def effective_of(shares: Sequence[tuple[Floats, Floats]]) -> float:
    """Return how many units of equal size are behind a share; of crossed units, the fewer."""
    return min(effective(of) for _, of in shares)
