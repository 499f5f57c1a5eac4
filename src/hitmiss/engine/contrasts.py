"""One metric on one paired sample: both values, their difference, its interval, its test, and how often each run wins.

| test        | for                                                                    | by default                        |
|-------------|------------------------------------------------------------------------|-----------------------------------|
| mcnemar     | shares of the same trials in both runs (accuracy, slip rate, recall …) | yes, where trials are independent |
| delong      | ROC AUC                                                                | yes, where trials are independent |
| permutation | any metric: a unit's answers are exchanged between the runs            | for shares drawn by units         |
| bootstrap   | any metric: the interval turned round                                  | for everything else               |

Metrics that resampling inflates (calibration errors) get neither an interval nor a test. With fewer units than the
level needs (`stats.enough_units`) there is no interval, and only an exact test (McNemar, permutation), which stays valid
with little data. Except for an AUC, the interval comes from the paired replicates (see `engine.interval`), also for least
costs: the optimism of a single least cost is nearly the same in both runs and cancels (measured in docs/intervals.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.finding import Remark, joined
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.sorting import Array, Floats
from hitmiss.engine.columns import Sample
from hitmiss.engine.drawn import Drawn
from hitmiss.engine.exchange import permuted
from hitmiss.engine.few_errors import too_few_errors
from hitmiss.engine.interval import ONE_UNIT, choose_interval
from hitmiss.engine.paired_costs import discordant_costs
from hitmiss.engine.paired_draws import PairedDraws
from hitmiss.engine.paired_samples import Both, PairedSample, Part, outcomes
from hitmiss.engine.paired_shares import Mask, discordant, shared_denominator
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.engine.shares import share_of
from hitmiss.stats import mcnemar
from hitmiss.stats.delong import difference_of_placements
from hitmiss.stats.enough_units import LEAST_EFFECTIVE, effective, enough
from hitmiss.stats.forms.base import Form, Functional, Located
from hitmiss.stats.forms.composite import Difference
from hitmiss.stats.forms.least_cost import MinimumCost
from hitmiss.stats.jackknife import LeftOut
from hitmiss.stats.p_value import p_of_replicates


def too_few(question: Both, sample: PairedSample, draws: PairedDraws) -> str | None:
    """Say why a difference gets no interval because it rests on too little data; None if there is enough.

    Shares of the same trials rest on these trials, numbers that do not use labels on all trials, and everything else on
    both classes. What counts is the number of trials, or of units; of two crossed units, the rarer.
    """
    behind = _behind(question, sample, draws)
    n, unit, whose = min(((len(sizes), u, w) for sizes, u, w in behind if len(sizes)), default=(0, "", ""))
    if n >= enough(draws.plan.level):
        known = degrees(question, sample, draws) + 1.0
        if not unit or known >= LEAST_EFFECTIVE:
            return None
        return Remark.of("no-interval/unequal-units", n=n, unit=unit, known=known, part=f" of {whose}" if whose else "")
    kind = "unit" if unit else "trial" if whose else "pair"
    of = f" ({unit})" if unit else ""
    trials = f" of {whose} trials" if unit and whose else f" of {whose}" if whose else ""
    return Remark.of("no-interval/one-of-kinds", part=f"one {kind}" if n == 1 else f"{n} {kind}s", of=of, trials=trials)


def degrees(question: Both, sample: PairedSample, draws: PairedDraws) -> float:
    """Return the degrees of freedom of the standard error of a difference: the effective number of units minus one."""
    return min((effective(sizes) - 1.0 for sizes, _, _ in _behind(question, sample, draws) if len(sizes)), default=1.0)


def _behind(question: Both, sample: PairedSample, draws: PairedDraws) -> list[tuple[Array, str, str]]:
    """Return how many pairs each unit (or trial) contributes to a number, with the unit and the class."""
    head = sample.parts[0].a.columns.trials.header
    shared = shared_denominator(question, sample)
    positive = [part.positive for part in sample.parts]
    if shared is not None:
        stands_on = {"": [inside for inside, _, _ in shared]}
    elif "label" in question[0].metric.columns:
        stands_on = {head.positive: positive, head.negative: [~mask for mask in positive]}
    else:
        stands_on = {"": [np.ones_like(mask) for mask in positive]}
    names = draws.plan.unit or ("",)
    found = [(_held(sample, masks, draws, unit), unit, whose) for whose, masks in stands_on.items() for unit in names]
    if len(names) < 2:
        return found
    return [row for row in found if len(row[0]) > 1] or found  # bona fide trials all have the same attack value


def _held(sample: PairedSample, masks: list[Mask], draws: PairedDraws, unit: str) -> Array:
    """Return how many of the marked pairs each unit holds, for units that hold any; 1 each if trials are drawn."""
    rows = np.concatenate([part.a.rows[mask] for part, mask in zip(sample.parts, masks, strict=True)])
    if not unit:
        return np.ones(len(rows))
    pairs = zip(sample.parts, masks, strict=True)
    weights = [part.a.weight[mask] for part, mask in pairs if part.a.weight is not None]
    sizes = np.bincount(draws.a.codes(unit)[rows], np.concatenate(weights) if weights else None)
    return sizes[sizes > 0]


TESTS: Final = ("auto", "mcnemar", "delong", "bootstrap", "permutation")
NO_TEST: Final = ""
"""For a metric whose replicates do not show how uncertain it is."""
RIGHT: Final = (0, 3)
"""Outcomes that are correct decisions: true positive, true negative."""
EXACT: Final = ("mcnemar", "permutation")
"""Exact tests: with few pairs, their p value is never small."""
WALD: Final = "wald"
"""The test of two costs of which one shows too few errors for draws."""
NO_WIDTH: Final = "the replicates hardly differ"
"""For an interval whose ends are equal, which does not mean certainty."""


@dataclass(frozen=True)
class Contrast:
    """Numbers of both runs and second minus first; NaN if undefined.

    `error` is the standard error of the difference.
    """

    a: float
    b: float
    test: str
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    error: float = math.nan
    wins: int = 0
    ties: int = 0
    losses: int = 0
    note: str = ""
    is_too_few: bool = False

    @property
    def delta(self) -> float:
        """Second minus first."""
        return self.b - self.a


def choose_test(question: Both, sample: PairedSample, wanted: str, by_units: bool) -> str:
    """Return the test of a metric on a sample; a test that does not apply is refused."""
    if wanted not in TESTS:
        raise UnknownName("test", wanted, TESTS)
    if not question[0].metric.interval:
        return NO_TEST
    independent = not by_units and len(sample.parts) == 1
    is_share, is_area = shared_denominator(question, sample) is not None, question[0].form.is_area
    if wanted == "auto":
        if is_share:
            return "mcnemar" if independent else "permutation"
        return "delong" if is_area and independent else "bootstrap"
    fits = {"mcnemar": is_share and independent, "delong": is_area and independent}
    if not fits.get(wanted, True):
        needs = {"mcnemar": "a share of the same trials in both runs", "delong": "the ROC AUC"}[wanted]
        raise UsageError.of("test-not-allowed", wanted=wanted, needs=needs, text=question[0].text)
    return wanted


def contrast(question: Both, sample: PairedSample, test: str, draws: PairedDraws, deltas: Floats | None) -> Contrast:
    """Compute the difference of one metric; `deltas` are its replicates, if they were drawn."""
    a, b = (0.0 if math.isnan(v) and draws.is_zeroed(question) else v for v in sample.values(question))
    found = Contrast(a, b, test)
    if math.isnan(found.delta):
        return found
    found = _with_wins(found, question, sample)
    if test == NO_TEST:
        return replace(found, note=Remark.of("no-interval/biased-difference", metric_name=question[0].metric.name))
    if deltas is not None:
        drawn = drawn_difference([(question, sample)], deltas, found.delta, draws)
        own = choose_interval(Difference(question[0].form, paired=True), drawn, draws.plan)
        found = replace(found, low=own.ends[0], high=own.ends[1], error=_deviation(deltas), note=own.note or "")
    found = _tested(found, question, sample, draws, deltas)
    if deltas is None and test != "delong":
        return found
    little = too_few(question, sample, draws)
    if (
        little is None
        and deltas is not None
        and draws.plan.unit
        and np.isfinite(deltas).any()
        and math.isnan(found.low)
    ):
        little = ONE_UNIT
    rare = None if little else _unseen(question, sample, found.high - found.low)
    if rare is not None and (counted := discordant_costs(question, sample, draws)) is not None:
        return _by_counting(found, counted, question, draws.plan)
    return replace(_as_known(found, little or rare), is_too_few=little is not None)


def _by_counting(found: Contrast, counted: tuple[float, float], question: Both, plan: SamplingPlan) -> Contrast:
    """Return a difference of costs with the interval and the test of the trials on which the runs differ."""
    delta, error = counted
    known = choose_interval(Difference(question[0].form, paired=True), Drawn(delta, error=error), plan)
    low, high = min(known.ends[0], found.delta), max(known.ends[1], found.delta)
    p = math.erfc(abs(delta) / error / math.sqrt(2.0))
    return replace(found, test=WALD, low=low, high=high, error=error, p_value=p, note=Remark.of("few-errors-counted"))


def _unseen(question: Both, sample: PairedSample, width: float) -> str | None:
    """Say why a difference of costs gets no interval because a run shows no error of some kind (see docs/intervals.md)."""
    if not isinstance(question[0].form, Form):  # for decisions, the run that does show errors makes the interval
        return None
    sides = [(q.form, side) for part in sample.parts for q, side in zip(question, (part.a, part.b), strict=True)]
    return next(filter(None, (too_few_errors(form, side, width, fewest=1) for form, side in sides)), None)


def drawn_difference(
    parts: Sequence[tuple[Both, PairedSample]], deltas: Floats, delta: float, draws: PairedDraws
) -> Drawn:
    """Return what is known about a difference, or about a mean of the differences of slices, which share their units."""
    held = [degrees(*own, draws) for own in parts]
    if draws.plan.unit:
        left = [draws.left_out(*own) for own in parts]
        known = [own for own in left if own is not None]
        without = LeftOut.mean(known) if len(known) == len(left) else None
        return Drawn(delta, replicates=deltas, degrees=max(held), by_units=True, without=lambda _: without)
    least = any(isinstance(question[0].form, MinimumCost) for question, _ in parts)
    defined = deltas[~np.isnan(deltas)]
    halfway = least and len(defined) > 0 and bool(np.isfinite(defined).all())
    # the trials of several slices add up
    centre = (delta + float(defined.mean())) / 2.0 if halfway else delta
    return Drawn(delta, replicates=deltas, centre=centre, degrees=math.fsum(held))


def p_of_difference(form: Functional, drawn: Drawn) -> float:
    """Return the p value of a difference from its replicates, to which its interval belongs (see `engine.interval`)."""
    assert drawn.replicates is not None
    is_read = isinstance(form, Located)
    if not drawn.by_units and not is_read:
        return p_of_replicates(drawn.replicates, drawn.degrees)
    without = drawn.without(form)
    if without is None:
        return p_of_replicates(drawn.replicates, drawn.degrees, drawn.middle)
    left = without.each(lambda own: own[np.isfinite(own)])
    return p_of_replicates(drawn.replicates, left.degrees, drawn.middle, 1.0 if is_read else left.narrowing)


def _as_known(found: Contrast, too_little: str | None) -> Contrast:
    """Return the contrast without an interval that cannot be known: from too little data, or of zero width."""
    if too_little is not None:
        p = found.p_value if found.test in EXACT else math.nan
        found = replace(found, low=math.nan, high=math.nan, error=math.nan)
        return replace(found, p_value=p, note=too_little)
    if found.low != found.high:
        return found
    alike = found.delta == 0.0 and not found.wins and not found.losses
    why = Remark.of("no-interval/alike", part="the answers are alike" if alike else NO_WIDTH)
    return replace(found, low=math.nan, high=math.nan, note=joined(found.note, why) or why)


def _deviation(deltas: Floats) -> float:
    known = deltas[np.isfinite(deltas)]
    return float(np.std(known, ddof=1)) if len(known) > 1 else math.nan


def _tested(
    found: Contrast, question: Both, sample: PairedSample, draws: PairedDraws, deltas: Floats | None
) -> Contrast:
    if found.test == "delong":
        part = sample.parts[0]
        area = difference_of_placements(part.positive, *part.placements)
        known = Drawn(area.delta, (-1.0, 1.0), error=area.error)
        low, high = choose_interval(Difference(question[0].form, paired=True), known, draws.plan).ends
        note = "no variance to judge by" if math.isnan(area.p_value) else found.note
        return replace(found, low=low, high=high, p_value=area.p_value, error=area.error, note=note)
    if found.test == "mcnemar":
        n, only_a, only_b = discordant(question, sample)
        error = math.sqrt(max(only_a + only_b - (only_a - only_b) ** 2 / n, 0.0)) / n if n else math.nan
        return replace(found, p_value=mcnemar.exact(only_a, only_b), error=error)
    if found.test == "permutation":
        return replace(found, p_value=permuted(question, sample, draws))
    if deltas is None:
        return found
    drawn = drawn_difference([(question, sample)], deltas, found.delta, draws)
    return replace(found, p_value=p_of_difference(question[0].form, drawn))


def _with_wins(found: Contrast, question: Both, sample: PairedSample) -> Contrast:
    gains = [_gains(question, part) for part in sample.parts]
    known = [g for g in gains if g is not None]
    if len(known) < len(gains):
        return found
    gain = np.concatenate(known)[sample.once]
    gain = gain[~np.isnan(gain)]
    wins, losses = int((gain > 0).sum()), int((gain < 0).sum())
    return replace(found, wins=wins, losses=losses, ties=len(gain) - wins - losses)


def _gains(question: Both, part: Part) -> Floats | None:
    """Return for each pair how much better the second run is (above 0 it wins); None if single trials show nothing.

    NaN for pairs that the metric does not use.
    """
    first, second = (_merits(q, side) for q, side in zip(question, (part.a, part.b), strict=True))
    if first is None or second is None:
        return None
    inside = ~(np.isnan(first) | np.isnan(second))
    with np.errstate(invalid="ignore"):
        return np.where(inside, np.nan_to_num(second - first, nan=0.0), np.nan)


def _merits(question: PreparedMetric, sample: Sample) -> Floats | None:
    """Return how good each answer is for a metric, higher = better; NaN for trials that the metric does not use."""
    form, best = question.form, question.metric.best
    if form.kind != "decisions":
        return form.merits(sample, best)
    code, share = outcomes(sample), share_of(form)
    if share is None or share[1][:2] != share[1][2:4]:  # for precision, the decision determines whether a trial counts
        return np.asarray(np.isin(code, RIGHT), dtype=np.float64)
    hits = np.asarray(share[0])[code] * (1.0 if best == "high" else -1.0)
    return np.where(np.asarray(share[1])[code] > 0, hits, np.nan)
