"""The one choice of interval: from a form, what its draws show and the plan to the two ends, the method and a note.

No other module calls the formulas (`stats.intervals`). The first rule that applies decides:

    none, with its reason                          the metric forbids it; fitted; items repeat; too few units
    Wilson, order statistics                       a share, a quantile of independent trials
    DeLong, Newcombe at the ends                   an area without draws, single or paired
    DeLong over units                              the areas of identities and their means, over units
    exact bound; Wilson over units                 no error seen; all hits in one unit
    percentile, BCa                                asked for
    Student on the form's scale                    units
    spread; corrected least cost; from both sides  areas and decisions; minimum costs; unpaired `Difference`
    all pairs at once (Tukey & Kramer, MOVER)      a `Spread` of slices
    percentile; reflected                          an `Expression` over trials; with a greatest or least part
    BCa, else percentile                           other forms

Estimates that are made of others (`stats.forms.composite`) pass through here like any other, with the replicates of
their parts combined.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Remark, joined
from hitmiss.core.method import Method
from hitmiss.core.rates import Quantile, Rate
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.engine.drawn import NO_BOUNDS, Drawn, effective_of
from hitmiss.stats import intervals
from hitmiss.stats.delong import RocSteps
from hitmiss.stats.enough_units import LEAST_EFFECTIVE
from hitmiss.stats.forms.at_threshold import AtThreshold
from hitmiss.stats.forms.base import Form, Functional, Located
from hitmiss.stats.forms.composite import Composite, Difference, Expression, Extreme, Mean, Spread
from hitmiss.stats.forms.crossing import Crossing
from hitmiss.stats.forms.least_cost import MinimumCost
from hitmiss.stats.forms.trials import OfColumns, OfConfidences
from hitmiss.stats.group_spread import level_of_pairs, ratio_interval, spread_interval
from hitmiss.stats.influence import Expansion
from hitmiss.stats.jackknife import LeftOut
from hitmiss.stats.optimism import growth_of_least_cost
from hitmiss.stats.scale import Ends
from hitmiss.stats.students_t import MANY, t_quantile

__all__ = [
    "AT_END",
    "DELONG_OVER_UNITS",
    "FEW_ERRORS",
    "NO_ERROR",
    "ONE_UNIT",
    "OVER_UNITS",
    "SAME",
    "Interval",
    "area_interval",
    "area_without_draws",
    "both_intervals",
    "choose_interval",
    "difference_interval",
    "ends_of_draws",
    "expanded_interval",
    "share_interval",
]

SAME: Final = Remark.of("no-interval/same-replicates")
ONE_UNIT: Final = Remark.of("no-interval/one-unit")
OVER_UNITS: Final = "wilson over units"
DELONG_OVER_UNITS: Final = "delong over units"
FEW_ERRORS: Final = "jeffreys"
TUKEY: Final = "tukey-kramer"
NO_ERROR: Final = "no error seen: the end is what so few trials leave open"
AT_END: Final = Remark.of("no-interval/at-end")
SOME: Final = 1e-9
"""A share of a unit's weight that is more than rounding."""
ROUNDING: Final = 1e-12
"""Ends with a smaller relative difference than this differ only by rounding."""
BEYOND: Final = 5.0
"""How many replicates must lie beyond each end of an interval for a percentile interval."""
HARDLY: Final = 0.5
"""A distance from the end of a scale that fewer errors than this make up, in trials of the rarer class."""
ENOUGH_DEGREES: Final = 9.0
"""With fewer degrees of freedom Student's quantile is wide enough for what is skewed, too."""
MOST_AT_END: Final = 0.025
"""The share of replicates at an end of the range of a number above which a gap of it rests on too few errors."""
FEWEST_VALUES: Final = 10
"""How many different values the replicates of a number must have that is one of the values of a column."""
UNKNOWN: Final[Ends] = (math.nan, math.nan)


@dataclass(frozen=True)
class Interval:
    """An interval, or the reason why there is none."""

    low: float | None = None
    high: float | None = None
    method: str | None = None
    note: str | None = None

    @classmethod
    def of(cls, ends: Ends, method: str, note: str | None = None) -> Interval:
        """Make an interval from computed ends; NaN means unknown.

        >>> Interval.of((0.25, 0.5), "wilson").high, Interval.of((math.nan, math.nan), "delong").high
        (0.5, None)
        """
        return cls(note=note) if math.isnan(ends[0]) else cls(*ends, method, note)

    @property
    def ends(self) -> Ends:
        """Both ends; NaN if there is no interval."""
        return UNKNOWN if self.low is None or self.high is None else (self.low, self.high)


def choose_interval(form: Functional | Composite, drawn: Drawn, plan: SamplingPlan) -> Interval:
    """Return the interval of an estimate, with its method, or the reason why it has none."""
    if drawn.reason is not None:
        return Interval(note=drawn.reason)
    if isinstance(form, Extreme):
        return _of_worst(form, drawn, plan)
    if isinstance(form, Spread):
        return _of_spread(form, drawn, plan)
    if isinstance(form, Expression):
        return _of_expression(form, drawn, plan)
    if isinstance(form, Mean | Difference) and _is_paired(form):
        return _of_pairs(form, drawn, plan)
    if isinstance(form, Difference) and not plan.unit and plan.method == "auto" and _both_known(drawn):
        return _of_both_sides(form, drawn, plan)
    if isinstance(form, Difference | Mean):
        return _of_averages(form, drawn, plan)
    return _of_sample(form, drawn, plan)


def _is_paired(form: Mean | Difference) -> bool:
    """Return whether a form is a difference on the same trials, or a mean of such differences."""
    inner = form.of if isinstance(form, Mean) else form
    return isinstance(inner, Difference) and inner.paired


def share_interval(hits: float, of: float, level: float = 0.95) -> Ends:
    """Return the interval of a share of independent trials; (NaN, NaN) without trials."""
    return intervals.wilson(hits, of, level)


def area_interval(of: RocSteps | Tally, level: float = 0.95) -> Ends:
    """Return the interval of the area under a ROC curve without draws, by DeLong's variance, on the logit scale.

    (NaN, NaN) with fewer than two trials of a class. On the plain scale 95 % intervals of a high AUC held the truth 80
    to 92 % of the time, on this one 94 to 98 % (docs/intervals.md). If the variance is 0 (no pair is wrongly ordered, all
    are, or all scores are equal), DeLong's interval has no width, although the AUC is not certain. Newcombe's score
    interval is used then.

    >>> [round(x, 3) for x in area_interval(Tally.of([1, 1, 1, 0, 0, 0], [0.9, 0.8, 0.3, 0.6, 0.2, 0.1]))]
    [0.2, 0.996]
    """
    steps = RocSteps.of_tally(of) if isinstance(of, Tally) else of
    deviation = math.sqrt(steps.variance)
    if math.isnan(deviation):
        return UNKNOWN
    if not deviation:
        return intervals.area_score_interval(steps.area, int(steps.n), int(steps.n_other), level)
    return intervals.on_scale(steps.area, deviation, (0.0, 1.0), level, steps.degrees)


def area_without_draws(of: RocSteps | Tally, level: float = 0.95) -> Interval:
    """Return the same interval with the name of its method."""
    steps = RocSteps.of_tally(of) if isinstance(of, Tally) else of
    return Interval.of(area_interval(steps, level), "delong" if steps.variance else "newcombe")


def expanded_interval(value: float, of: Expansion, level: float = 0.95) -> Interval:
    """Return the interval of an area, or of a mean of areas, by what units add to it, on the scale of `area_interval`.

    The degrees of freedom are those of units (see `students_t`). If no unit adds anything, the value is not certain, but
    nothing shows how uncertain it is.
    """
    variance = of.variance
    if not variance > 0.0 or not 0.0 < value < 1.0:
        return Interval(note=Remark.of("no-interval/no-error-shown"))
    if not of.degrees > 0.0:
        return Interval(note=ONE_UNIT)
    ends = intervals.on_scale(value, math.sqrt(variance), (0.0, 1.0), level, of.degrees)
    return Interval.of(ends, DELONG_OVER_UNITS if of.shares else "delong")


def difference_interval(delta: float, error: float, level: float = 0.95, degrees: float = math.inf) -> Interval:
    """Return Student's interval of a difference of areas on the same trials, by its error; normal without degrees."""
    quantile = t_quantile(0.5 + level / 2.0, min(degrees, MANY))
    return Interval.of((max(delta - quantile * error, -1.0), min(delta + quantile * error, 1.0)), "delong")


def both_intervals(
    one: tuple[float, float | None, float | None], other: tuple[float, float | None, float | None]
) -> Interval:
    """Return the interval of other − one, each with its own interval, as of two independent samples (MOVER)."""
    (a, a_low, a_high), (b, b_low, b_high) = one, other
    if a_low is None or a_high is None or b_low is None or b_high is None:
        return Interval()
    return Interval.of(intervals.of_difference((a, a_low, a_high), (b, b_low, b_high)), "both")


def _of_sample(form: Functional, drawn: Drawn, plan: SamplingPlan) -> Interval:
    """Return the interval of one metric on one sample."""
    value = drawn.value
    if isinstance(value, Rate) and not plan.unit:
        return Interval.of(share_interval(value.hits, value.of, plan.level), "wilson")
    if isinstance(value, Quantile) and not plan.unit:
        return Interval.of(intervals.quantile_interval(value.ordered, value.share, plan.level), "order statistics")
    if plan.bootstrap and not (form.is_area and drawn.is_delong and not plan.unit):
        return _of_draws(form, drawn, plan)
    if form.is_area and not plan.unit:
        steps = drawn.steps()
        assert steps is not None
        return area_without_draws(steps, plan.level)
    return Interval()


def _of_draws(form: Functional, drawn: Drawn, plan: SamplingPlan) -> Interval:
    """Return the interval from replicates, unless they do not show how uncertain the estimate is."""
    little = drawn.too_few()
    if little is not None:
        return Interval(note=little)
    assert drawn.replicates is not None
    value = drawn.value
    low, high = ends_of_draws(form, drawn, plan)
    is_by_one_unit = drawn.by_units and len(plan.unit) == 1 and plan.method == "auto"
    if isinstance(value, Rate) and 0.0 < value < 1.0 and is_by_one_unit:
        widest = _share_of_units(drawn, value, plan)
        if widest is not None and widest[1]:
            return Interval.of(widest[0], OVER_UNITS)
        if widest is not None and not drawn.is_weighted:  # weights may go with the outcome: it is too narrow then
            low, high = max(low, widest[0][0]), min(high, widest[0][1])
    if math.isclose(low, high, rel_tol=ROUNDING):  # equal replicates do not make the estimate certain
        return _without_width(form, drawn, plan)
    rare = AT_END if float(value) in drawn.bounds else drawn.rare(high - low)
    if rare is not None:
        return _of_few_errors(form, drawn, plan) or Interval(note=rare)
    if plan.unit and math.isnan(low) and drawn.lost < len(drawn.replicates):
        return Interval(note=ONE_UNIT)
    if (few := _few_values(form, drawn)) is not None:
        return Interval(note=few)
    return Interval.of((low, high), f"bootstrap {drawn.described(plan)}", _lost(drawn))


def _few_values(form: Functional, drawn: Drawn) -> str | None:
    """Say why a number that is one of few values gets no interval (the threshold of the EER of tied scores).

    Which of them it is says too little about how near the next one was: 95 % intervals held the truth 73 % of the time.
    """
    if not isinstance(form, OfColumns) or form.is_spread or drawn.replicates is None:
        return None
    values = len(np.unique(drawn.replicates[np.isfinite(drawn.replicates)]))
    return Remark.of("no-interval/few-values", values=values) if values < FEWEST_VALUES else None


def _of_few_errors(form: Functional, drawn: Drawn, plan: SamplingPlan) -> Interval | None:
    """Return the interval of a function of two error rates by what so few errors leave open; None for other forms.

    The half error that Jeffreys adds to each kind does most of what the optimism of a least cost needs, so its lower end
    stays; moving it up as well lost coverage.
    """
    rates = drawn.rates(plan.level) if plan.method == "auto" else None
    if rates is None:
        return None
    seen, of = (rates.missed, rates.accepted), (rates.positives, rates.negatives)
    low, high = intervals.of_two_rates(seen, of, rates.of, plan.level)
    value = float(drawn.value)
    if isinstance(form, MinimumCost) and drawn.replicates is not None:
        high = min(high + value * (growth_of_least_cost(drawn.replicates, value) - 1.0), form.trivial)
    return Interval.of((min(low, value), max(high, value)), FEW_ERRORS)


def _lost(drawn: Drawn) -> str | None:
    return f"{drawn.lost} replicates without a class left out" if drawn.lost else None


def ends_of_draws(form: Functional, drawn: Drawn, plan: SamplingPlan) -> Ends:
    """Return the ends from replicates, as the plan or the form asks, whether or not they show enough."""
    replicates, value, bounds, level = drawn.replicates, float(drawn.value), drawn.bounds, plan.level
    assert replicates is not None
    if plan.method == "bca" and not isinstance(form, Form):
        raise UsageError.of("no-bca")
    # Without a value there is nothing to correct towards; replicates may still be defined.
    if plan.method == "percentile" or math.isnan(value):
        return intervals.percentile(replicates, level)
    if plan.method == "bca" and isinstance(form, Form):
        return intervals.bca(replicates, value, drawn.acceleration(form), level)
    if drawn.by_units:
        return _of_units(form, drawn, level)
    if form.is_area:
        steps = drawn.steps()
        assert steps is not None
        return intervals.of_spread(replicates, value, bounds, level, steps.degrees)
    if isinstance(form, MinimumCost) and drawn.beside is not None:
        return _of_least_cost(form, drawn, level)
    if form.is_least:
        return _of_other_least(form, drawn, level)
    if isinstance(form, Form):
        return intervals.bca(replicates, value, drawn.acceleration(form), level)
    if form.is_spread:
        return _reaching(intervals.of_spread(replicates, value, bounds, level, drawn.degrees), drawn, level)
    return intervals.percentile(replicates, level)


def _reaching(ends: Ends, drawn: Drawn, level: float) -> Ends:
    """Return ends that reach a bound where more replicates lie on it than an interval leaves out on a side.

    On the scale of the bounds an end never reaches them, but the truth may lie there: a coverage of 1 at an accuracy that
    the system has anyway.
    """
    assert drawn.replicates is not None
    (least, most), tail = drawn.bounds, (1.0 - level) / 2.0
    known = drawn.replicates[np.isfinite(drawn.replicates)]
    low = least if np.mean(known <= least) > tail else ends[0]
    return low, most if np.mean(known >= most) > tail else ends[1]


def _of_other_least(form: Functional, drawn: Drawn, level: float) -> Ends:
    """Return the interval of another minimum over thresholds (a-DCF, a mean of costs), too low in its own sample.

    Replicates lie lower still: their spread is moved to the value, and both up by the optimism. In simulations of 60 to
    500 trials a class such intervals held the truth 92 to 93 % of the time at 95 %, percentiles 80 to 86 %.
    """
    value, raised = float(drawn.value), drawn.for_averages(form)
    assert raised.replicates is not None
    low, high = intervals.of_spread(raised.replicates, raised.middle, drawn.bounds, level)
    return min(low, value), max(high, value)


def _of_least_cost(form: MinimumCost, drawn: Drawn, level: float) -> Ends:
    """Return the interval of a least cost over trials, corrected for the optimism of its threshold.

    A threshold that was chosen on these trials suits them too well, and one chosen on a replicate even more so: its
    costs lie too low. The cost at the fixed threshold has no such bias, so it gives the spread.
    """
    assert drawn.beside is not None and drawn.replicates is not None
    fixed, costs = drawn.beside
    value = float(drawn.value)
    low, high = intervals.of_least_cost(drawn.replicates, costs, value, drawn.acceleration(fixed), level)
    # No least cost is above that of the trivial system; the value itself stays inside.
    return low, min(high, max(form.trivial, value))


def _of_units(form: Functional, drawn: Drawn, level: float) -> Ends:
    """Return Student's interval, which is valid with few units, on the form's scale."""
    value, replicates = float(drawn.value), drawn.replicates
    assert replicates is not None
    if form.is_least:
        raised, growth = drawn.for_averages(form), growth_of_least_cost(replicates, value)
        assert raised.replicates is not None
        left = drawn.without(form)
        left = None if left is None else left.each(lambda own: own * growth)
        low, high = intervals.student(raised.replicates, raised.middle, drawn.degrees, drawn.bounds, level, left)
        return min(low, value), max(high, value)
    if not isinstance(form, MinimumCost) or drawn.beside is None:
        left, smooth = drawn.without(form), not isinstance(form, Located)
        found = intervals.student(replicates, value, drawn.degrees, drawn.bounds, level, left, smooth)
        return found if isinstance(form, Form) else _reaching(found, drawn, level)
    # Of the cost at the best threshold, moved up by the optimism of choosing it. What is left out is raised like the
    # rest: the spread then belongs to the same scale as the centre.
    fixed, costs = drawn.beside
    growth = growth_of_least_cost(replicates, value)
    left = drawn.without(fixed)
    lifted = None if left is None else left.each(lambda own: own * growth)
    bounds = (form.fixed, form.trivial)
    low, high = intervals.student(costs * growth, value * growth, drawn.degrees, bounds, level, lifted)
    return min(low, value), max(min(high, form.trivial), value)


def _share_of_units(drawn: Drawn, value: Rate, plan: SamplingPlan) -> tuple[Ends, bool] | None:
    """Return the widest interval that a share over whole units can need, and whether it is the only one it can have.

    At worst all trials of a unit are right or wrong together. The share is then one of units, and Wilson's interval of as
    many as its denominator effectively has holds it; trials that differ inside units only make it narrower. Where all
    hits, or all misses, are those of one unit, nothing shows how much units differ, so there is no other interval.
    None if the units are too few, or unknown.
    """
    behind = drawn.shares()
    n = effective_of(behind)
    if n < LEAST_EFFECTIVE:
        return None
    alone = any(min(np.count_nonzero(hits), np.count_nonzero(of - hits > SOME * of)) < 2 for hits, of in behind)
    return share_interval(value * n, n, plan.level), alone


def _without_width(form: Functional, drawn: Drawn, plan: SamplingPlan) -> Interval:
    """Return the interval of an estimate that is the same in every replicate: a bound by counting, if there is one.

    A share of 0 or 1 over whole units gets Wilson's interval of that many units: at worst all trials of a new unit are
    wrong together, so units bound the share. Other estimates over units have no such bound.
    """
    value = drawn.value
    if drawn.by_units and isinstance(value, Rate) and value in (0.0, 1.0):
        found = _share_of_units(drawn, value, plan)
        return Interval(note=SAME) if found is None else Interval.of(found[0], OVER_UNITS)
    if plan.unit:
        return _of_few_errors(form, drawn, plan) or Interval(note=SAME)
    if form.is_area:
        steps = drawn.steps()
        assert steps is not None
        return Interval.of(area_interval(steps, plan.level), "newcombe")
    if not isinstance(form, MinimumCost) and (counted := _of_few_errors(form, drawn, plan)) is not None:
        return counted
    most = form.most_unseen(*drawn.sizes, plan.level)
    least = form.fixed if isinstance(form, MinimumCost) else 0.0
    # Only the least possible estimate, with perfectly separated classes, is bounded by what was not seen; any other one
    # that never varies does so for a reason that counting does not know. Trials of decisions have no scores to order.
    if value != least or most is None or (steps := drawn.steps()) is None or steps.area != 1.0:
        return _of_few_errors(form, drawn, plan) or Interval(note=SAME)
    return Interval(least, most, "unseen", NO_ERROR)


def _of_averages(form: Mean | Difference, drawn: Drawn, plan: SamplingPlan) -> Interval:
    """Return the interval of a mean, or of a difference of samples, from its value in each replicate.

    With trials as units it is a percentile interval, or that of the spread of confidences; with other units it is Student's, on the scale of the metric (the
    plain scale for a difference), with its value without one unit each. If it does not contain the estimate, because
    the parts are optimistic, the note gives both.
    """
    assert drawn.replicates is not None
    inner = form.of
    assert isinstance(inner, Functional)
    if plan.unit and plan.method == "auto":
        left = _of_quantile(inner, drawn.without(inner))
        low, high = intervals.student(
            drawn.replicates,
            drawn.middle,
            drawn.degrees,
            drawn.bounds,
            plan.level,
            left,
            not isinstance(inner, Crossing),
        )
        if isinstance(form, Difference) and isinstance(inner, Crossing):
            # What units add to what is read at a quantile does not show how skewed it is; its scale does.
            low, high = _on_both_scales(drawn, (low, high))
        elif isinstance(form, Difference) and drawn.degrees >= ENOUGH_DEGREES and _is_near_end(drawn):
            # Far more skewed than what units add shows: the wider of both holds the truth.
            skewed = _on_both_scales(drawn, (low, high))
            low, high = min(low, skewed[0]), max(high, skewed[1])
    else:
        low, high = intervals.percentile(drawn.replicates, plan.level)
        if isinstance(form, Mean) and isinstance(inner, OfConfidences) and plan.method == "auto":
            own = intervals.of_spread(drawn.replicates, drawn.middle, drawn.bounds, plan.level, drawn.degrees)
            low, high = min(low, own[0]), max(high, own[1])
    if isinstance(form, Mean) and plan.method == "auto" and _is_read_off(inner):
        low, high = _reaching((low, high), drawn, plan.level)
    little = drawn.too_few()
    silence = little or (SAME if math.isclose(low, high, rel_tol=ROUNDING) else drawn.rare(high - low))
    if silence is None and plan.unit and isinstance(form, Difference) and _is_at_end(inner, drawn):
        silence = AT_END
    if silence and not little and isinstance(form, Difference) and plan.method == "auto" and _both_known(drawn):
        return _of_both_sides(form, drawn, plan)  # each side is known by counting
    if silence:
        return Interval(note=silence)
    said = replace(plan, method="auto" if plan.unit and plan.method == "auto" else "percentile")
    return _with_centre(Interval.of((low, high), f"bootstrap {drawn.described(said)}"), drawn)


def _is_read_off(form: Functional) -> bool:
    """Return whether a number is read off a curve, often at an end of its range, and nothing bounds it by counting there."""
    return isinstance(form, OfConfidences) or (isinstance(form, Crossing) and form.unseen is None)


def _is_at_end(form: Functional, drawn: Drawn) -> bool:
    """Return whether a side of a difference over units lies at an end of its range, from which only draws show how far.

    A sum over all scores (AUC) is not at its end where a single pair is wrongly ordered, but many of its replicates are.
    """
    if _is_read_off(form):
        return any(float(part.value) in part.bounds for part in drawn.parts)
    if not isinstance(form, Form) or isinstance(form, AtThreshold | Located) or drawn.degrees < ENOUGH_DEGREES:
        return False
    return any(np.mean(_known(part) == end) > MOST_AT_END for part in drawn.parts for end in part.bounds)


def _on_both_scales(drawn: Drawn, ends: Ends) -> Ends:
    one, other = ((own.middle, _known(own)) for own in drawn.parts)
    return intervals.on_both_scales(ends, one, other, drawn.parts[0].bounds)


def _is_near_end(drawn: Drawn) -> bool:
    """Return whether a side of a difference is so near to an end of its scale that it rests on hardly an error."""
    return any(
        all(map(math.isfinite, part.bounds))
        and min(float(part.value) - part.bounds[0], part.bounds[1] - float(part.value)) * min(part.sizes) < HARDLY
        for part in drawn.parts
    )


def _of_quantile(form: Functional, left: LeftOut | None) -> LeftOut | None:
    """Return what units add, less the pairs of crossed units for what is read at a quantile: no error follows from it."""
    return replace(left, cells=None) if left is not None and isinstance(form, Located) else left


def _known(part: Drawn) -> Floats:
    assert part.replicates is not None
    return part.replicates


def _with_centre(found: Interval, drawn: Drawn) -> Interval:
    """Add a note if an interval does not contain its own estimate: a minimum is too low in its own sample."""
    if found.low is None or found.high is None or found.low <= drawn.value <= found.high:
        return found
    why = f"optimistic: chosen on the same trials; about {drawn.middle:.4f} without that, which the interval is of"
    return replace(found, note=why)


def _both_known(drawn: Drawn) -> bool:
    """Return whether both sides of a difference have finite intervals of their own."""
    return all(part.ends is not None and all(map(math.isfinite, part.ends)) for part in drawn.parts)


def _of_both_sides(form: Difference, drawn: Drawn, plan: SamplingPlan) -> Interval:
    """Return the interval of a difference of two samples without a common trial, from the interval of each.

    That is better than percentiles of the difference. Rates of few errors change in steps, so either may be too short:
    the wider end is used.
    """
    one, other = drawn.parts
    assert one.ends is not None and other.ends is not None
    low, high = intervals.of_difference((one.middle, *one.ends), (other.middle, *other.ends))
    if not isinstance(form.of, Crossing):
        steps = intervals.percentile(form.combine([_known(one), _known(other)]), plan.level)
        low, high = min(low, steps[0]), max(high, steps[1])
    return _with_centre(Interval(low, high, one.method), drawn)


def _of_worst(form: Extreme, drawn: Drawn, plan: SamplingPlan) -> Interval:
    """Return the interval of the true value of the worst slice, which allows for having picked it.

    The end on the side of worse values is that of the slice's own interval; see `intervals.tail_of_worst` for the other.
    """
    sign, parts = form.sign, drawn.parts
    value = sign * np.array([float(part.value) for part in parts])
    low, high = (sign * np.array([(part.ends or UNKNOWN)[k] for part in parts]) for k in (0, 1))
    low, high = (low, high) if sign > 0.0 else (high, low)
    worst = parts[int(np.argmax(value))]
    said = Remark.of("worst-of", n=len(parts))
    if worst.ends is None or len(parts) == 1:
        low_end, high_end = worst.ends or (None, None)
        return Interval(low_end, high_end, worst.method, said)
    tail, several = intervals.tail_of_worst(value, low, high, plan.level, drawn.degrees)
    if several == 1:  # it keeps its own interval
        return Interval(*worst.ends, worst.method, Remark.of("worst-of/clear", n=len(parts)))
    said = Remark.of("worst-of/several", n=len(parts), several=several)
    found = _at_level(form.of, worst, plan, 1.0 - 2.0 * tail)
    if found.low is None:
        return Interval(note=joined(said, found.note))
    own = (found.low, worst.ends[1]) if sign > 0.0 else (worst.ends[0], found.high)
    return Interval(*own, found.method, said)


def _of_spread(form: Spread, drawn: Drawn, plan: SamplingPlan) -> Interval:
    """Return the interval of the spread of true values, from intervals of slices with which all pairs hold at once."""
    level = level_of_pairs(len(drawn.parts), plan.level)
    found = [_at_level(form.of, part, plan, level) for part in drawn.parts]
    if (lacking := next((own for own in found if own.low is None), None)) is not None:
        return Interval(note=lacking.note or Remark.of("no-interval/of-a-group"))
    value = np.array([part.middle for part in drawn.parts])
    low, high = (np.array([own.ends[k] for own in found]) for k in (0, 1))
    ends = (ratio_interval if form.is_ratio else spread_interval)(value, low, high)
    return Interval(max(ends[0], drawn.bounds[0]), min(ends[1], drawn.bounds[1]), TUKEY)


def _at_level(form: Functional, drawn: Drawn, plan: SamplingPlan, level: float) -> Interval:
    """Return an interval at another level.

    If too few replicates lie beyond its ends to estimate them, Student's interval is used, which needs only their
    spread.
    """
    plan = replace(plan, level=level)
    found = choose_interval(form, drawn, plan)
    beyond = plan.bootstrap * (1.0 - level) / 2.0
    if plan.unit or beyond >= BEYOND or found.method is None or not Method.read(found.method).is_drawn:
        return found
    own, value = drawn.for_averages(form), float(drawn.value)
    low, high = intervals.student(_known(own), own.middle, MANY, drawn.bounds, level)
    if _is_read_off(form):
        low, high = _reaching((low, high), drawn, level)
    return Interval.of((min(low, value), max(high, value)), found.method, found.note)


def _of_expression(form: Expression, drawn: Drawn, plan: SamplingPlan) -> Interval:
    """Return the interval of an expression: over units Student's, with its value without one unit each.

    Over trials it is the percentile interval; where a greatest or least part is taken, that reflected at its value, over
    units moved apart as Student's distribution is wider than the normal one, and by what resampling G units does not
    show of their variance.
    """
    assert drawn.replicates is not None
    value, little, said = float(drawn.value), drawn.too_few(), f"bootstrap {replace(plan, method='percentile')}"
    if plan.unit and not form.is_extreme and plan.method == "auto":
        left = drawn.left
        ends = intervals.student(drawn.replicates, value, drawn.degrees, drawn.bounds, plan.level, left, form.is_smooth)
        known = little is None and ends[0] < ends[1]
        return Interval.of(ends, f"bootstrap {plan}") if known else Interval(note=little or SAME)
    normal = t_quantile(0.5 + plan.level / 2.0, MANY)
    factor = t_quantile(0.5 + plan.level / 2.0, drawn.degrees) / normal * math.sqrt(1.0 + 1.0 / drawn.degrees)
    low, high = (value + factor * (end - value) for end in intervals.percentile(drawn.replicates, plan.level))
    if little is not None or not low < high:
        return Interval(note=little or SAME)
    if not form.is_extreme:
        return Interval(low, high, f"{said}, percentile")
    least, most = drawn.bounds
    return Interval(max(2 * value - high, least), min(2 * value - low, most), f"{said}, reflected")


def _of_pairs(form: Mean | Difference, drawn: Drawn, plan: SamplingPlan) -> Interval:
    """Return the interval of a difference of two runs on the same trials, or of a mean of such differences.

    An area whose error is known: normal. Of trials: percentiles; for what is read at a threshold of its own (EER, TPR at
    an FPR), the studentised difference, because replicates lie nearer to 0 than the difference does (tests by
    percentiles rejected 2 % instead of 5 %). A difference of least costs varies more than its replicates, whose mean lies
    nearer to 0; studentised, the difference rejects too often and the mean too seldom, so what is halfway between them
    is. Of units, which may be few: Student's.
    """
    if drawn.error is not None:
        return Interval.of(intervals.normal(drawn.value, drawn.error, drawn.bounds, plan.level), "delong")
    assert drawn.replicates is not None
    inner = form.of.of if isinstance(form.of, Difference) else form.of
    assert isinstance(inner, Functional)
    known = drawn.replicates[np.isfinite(drawn.replicates)]
    is_read = isinstance(inner, Located)
    if not (is_read or plan.unit) or not len(known) or not np.ptp(known):
        ends = intervals.percentile(drawn.replicates, plan.level)
    else:
        left = _of_quantile(inner, drawn.without(inner))
        ends = intervals.student(known, drawn.middle, drawn.degrees, NO_BOUNDS, plan.level, left, not is_read)
    return Interval.of(ends, "bootstrap", _lost(drawn))
