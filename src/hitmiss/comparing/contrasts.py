"""One metric on one paired sample: both figures, their difference, its interval, its test, and who wins how often.

| test        | for                                                                    | by default                     |
|-------------|------------------------------------------------------------------------|--------------------------------|
| mcnemar     | shares of the same trials in both runs (accuracy, slip rate, recall …)  | yes, where trials are independent |
| delong      | ROC AUC                                                                | yes, where trials are independent |
| permutation | any metric: a unit's answers are exchanged between the runs             | for shares drawn by units      |
| bootstrap   | any metric: the percentile interval turned round                        | for everything else            |

Metrics that resampling inflates (calibration errors) get neither an interval nor a test; what stands on too few units
(see `few`) gets no interval, and only an exact test. The interval of everything but
an AUC is the percentile interval of the paired replicates, also for least costs: the optimism that a single one has
is nearly the same in both runs and cancels (measured in docs/intervals.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.comparing.few import degrees, too_few
from hitmiss.comparing.paired_samples import OUTCOMES, Both, PairedDraws, PairedSample, Part, outcomes
from hitmiss.comparing.shares import Mask, discordant, share_of, shared_denominator
from hitmiss.design import Plan
from hitmiss.errors import UnknownName, UsageError
from hitmiss.measuring.grouping import Sample
from hitmiss.measuring.uncertainty import Question
from hitmiss.metrics.counts import Counts
from hitmiss.stats import intervals, mcnemar
from hitmiss.stats.delong import difference_of_placements
from hitmiss.stats.differences import p_of_replicates
from hitmiss.stats.forms import Form, Functional, OfCounts
from hitmiss.stats.permutation import sign_flip, swap
from hitmiss.stats.seeds import generator
from hitmiss.tally import Floats

TESTS: Final = ("auto", "mcnemar", "delong", "bootstrap", "permutation")
NO_TEST: Final = ""
"""Of a metric whose replicates are no guide to how sure it is."""
RIGHT: Final = (0, 3)
"""Outcomes of decisions that are right: true positive, true negative."""
EXACT: Final = ("mcnemar", "permutation")
"""Tests that know how few pairs they have: among few, their p is never small."""
NO_WIDTH: Final = "the replicates hardly differ"
"""Of an interval whose ends are the same: that is no certainty."""
PERMUTATIONS: Final = 10_000
"""Ways that a permutation test draws where no number of replicates is given."""


@dataclass(frozen=True)
class Contrast:
    """Figures of both runs, second less first; NaN where undefined. `error` is the standard error of the difference."""

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
        """Second less first."""
        return self.b - self.a


def choose_test(question: Both, sample: PairedSample, wanted: str, by_units: bool) -> str:
    """The test of a metric on a sample; one that does not apply is refused."""
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
        raise UsageError(
            f"the test {wanted!r} is for {needs}, each trial once and independent; {question[0].text} here is not that, take another test"
        )
    return wanted


def contrast(question: Both, sample: PairedSample, test: str, draws: PairedDraws, deltas: Floats | None) -> Contrast:
    """The difference of one metric; `deltas` are its replicates where they were drawn."""
    a, b = (0.0 if math.isnan(v) and draws.is_zeroed(question) else v for v in sample.values(question))
    found = Contrast(a, b, test)
    if math.isnan(found.delta):
        return found
    found = _with_wins(found, question, sample)
    if test == NO_TEST:
        return replace(found, note=f"no interval and no test: resampling biases {question[0].metric.name}")
    if deltas is not None:
        low, high = ends_of(deltas, found.delta, degrees(question, sample, draws), draws.plan)
        lost = int(np.isnan(deltas).sum())
        note = f"{lost} replicates without a class left out" if lost else ""
        found = replace(found, low=low, high=high, error=_deviation(deltas), note=note)
    found = _tested(found, question, sample, draws, deltas)
    return _as_known(found, too_few(question, sample, draws)) if deltas is not None or test == "delong" else found


def ends_of(deltas: Floats, delta: float, freedom: float, plan: Plan) -> tuple[float, float]:
    """The interval of a difference: percentile for trials, Student's for units, of which there may be few."""
    known = deltas[np.isfinite(deltas)]
    if not plan.unit or not len(known) or not np.ptp(known):
        return intervals.percentile(deltas, plan.level)
    return intervals.student(known, delta, freedom, level=plan.level)


def _as_known(found: Contrast, too_little: str | None) -> Contrast:
    """The contrast without an interval that nobody can know: from too little, or of no width."""
    if too_little is not None:
        p = found.p_value if found.test in EXACT else math.nan
        found = replace(found, low=math.nan, high=math.nan, error=math.nan)
        return replace(found, p_value=p, note=too_little, is_too_few=True)
    if found.low != found.high:
        return found
    alike = found.delta == 0.0 and not found.wins and not found.losses
    why = f"no interval: {'the answers are alike' if alike else NO_WIDTH}"
    return replace(found, low=math.nan, high=math.nan, note="; ".join(filter(None, (found.note, why))))


def _deviation(deltas: Floats) -> float:
    known = deltas[np.isfinite(deltas)]
    return float(np.std(known, ddof=1)) if len(known) > 1 else math.nan


def _tested(
    found: Contrast, question: Both, sample: PairedSample, draws: PairedDraws, deltas: Floats | None
) -> Contrast:
    if found.test == "delong":
        part = sample.parts[0]
        area = difference_of_placements(part.positive, *part.placements)
        low, high = area.interval(draws.plan.level)
        note = "no variance to judge by" if math.isnan(area.p_value) else found.note
        return replace(found, low=low, high=high, p_value=area.p_value, error=area.error, note=note)
    if found.test == "mcnemar":
        n, only_a, only_b = discordant(question, sample)
        error = math.sqrt(max(only_a + only_b - (only_a - only_b) ** 2 / n, 0.0)) / n if n else math.nan
        return replace(found, p_value=mcnemar.exact(only_a, only_b), error=error)
    if found.test == "permutation":
        return replace(found, p_value=_permuted(question, sample, draws))
    if deltas is None:
        return found
    return replace(found, p_value=p_of_replicates(deltas, degrees(question, sample, draws), bool(draws.plan.unit)))


def _with_wins(found: Contrast, question: Both, sample: PairedSample) -> Contrast:
    gains = [_gains(question, part) for part in sample.parts]
    known = [g for g in gains if g is not None]
    if len(known) < len(gains):
        return found
    gain = np.concatenate(known)
    wins, losses = int((gain > 0).sum()), int((gain < 0).sum())
    return replace(found, wins=wins, losses=losses, ties=len(gain) - wins - losses)


def _gains(question: Both, part: Part) -> Floats | None:
    """For each pair how much better the second run does: above 0 it wins. None where single trials say nothing."""
    first, second = (_merits(q, side) for q, side in zip(question, (part.a, part.b), strict=True))
    if first is None or second is None:
        return None
    inside = ~(np.isnan(first) | np.isnan(second))
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(second[inside] - first[inside], nan=0.0)


def _merits(question: Question, sample: Sample) -> Floats | None:
    """How good each answer is for a metric, higher = better; NaN for trials that the metric does not look at."""
    form, best = question.form, question.metric.best
    if form.kind != "decisions":
        return form.merits(sample, best)
    code, share = outcomes(sample), share_of(form)
    if share is None or share[1][:2] != share[1][2:4]:  # of precision, what is said decides whether it counts
        return np.asarray(np.isin(code, RIGHT), dtype=np.float64)
    hits = np.asarray(share[0])[code] * (1.0 if best == "high" else -1.0)
    return np.where(np.asarray(share[1])[code] > 0, hits, np.nan)


def _permuted(question: Both, sample: PairedSample, draws: PairedDraws) -> float:
    """Exchange the answers of units (trials, or what is drawn) between the runs."""
    replicates = max(draws.plan.bootstrap, PERMUTATIONS)
    rng = generator(draws.plan.seed, "permutation", question[0].text, sorted(sample.slice.items()))
    rows = [part.a.rows for part in sample.parts]
    unit = draws.a.unit
    codes, first = np.unique(np.concatenate(rows) if unit is None else unit[np.concatenate(rows)], return_inverse=True)
    units = np.split(first, np.cumsum([len(r) for r in rows])[:-1])
    shared = shared_denominator(question, sample)
    if shared is not None:
        gained = np.zeros(len(codes))
        for (inside, hit_a, hit_b), own in zip(shared, units, strict=True):
            terms = (hit_b.astype(np.float64) - hit_a) * inside / max(int(inside.sum()), 1)
            gained += np.bincount(own, weights=terms, minlength=len(codes))
        return sign_flip(gained, replicates, rng)
    if question[0].form.kind == "columns":
        raise UsageError(f"{question[0].text} has no form to exchange answers in; take the bootstrap")
    sides = [_Exchange.of(question, part) for part in sample.parts]

    def statistic(swapped: Mask) -> float:
        deltas = [side.delta(swapped[own]) for side, own in zip(sides, units, strict=True)]
        return math.fsum(deltas) / len(deltas)

    return swap(statistic, len(codes), max(draws.plan.bootstrap, 1_000), rng)


@dataclass(frozen=True, eq=False)
class _Exchange:
    """Both runs' answers to the same trials, ready to be exchanged."""

    question: Both
    positive: Mask
    a: NDArray[np.float64] | NDArray[np.int64]
    b: NDArray[np.float64] | NDArray[np.int64]

    @classmethod
    def of(cls, question: Both, part: Part) -> _Exchange:
        """Outcomes of decisions; scores where the metric is about their value, else their ranks within each run."""
        form = question[0].form
        if not isinstance(form, Form):
            codes = [outcomes(s) for s in (part.a, part.b)]
            return cls(question, part.positive, codes[0], codes[1])
        scores = [s.score if form.by_value else _ranks(s.score) for s in (part.a, part.b)]
        return cls(question, part.positive, scores[0], scores[1])

    def delta(self, swapped: Mask) -> float:
        """The difference after exchanging the trials marked."""
        sides = (np.where(swapped, self.b, self.a), np.where(swapped, self.a, self.b))
        first, second = (self._figure(q.form, side) for q, side in zip(self.question, sides, strict=True))
        return second - first

    def _figure(self, form: Functional, side: NDArray[np.float64] | NDArray[np.int64]) -> float:
        if isinstance(form, Form):
            return form.exchanged(self.positive, side.astype(np.float64))
        assert isinstance(form, OfCounts)  # forms of columns are refused before
        return float(form.function(Counts(*(c.item() for c in np.bincount(side, minlength=OUTCOMES)))))


def _ranks(score: Floats) -> Floats:
    """Mean ranks: the order of the scores without their scale, so that two systems' answers can be exchanged."""
    ordered = np.sort(score)
    below, upto = (np.searchsorted(ordered, score, side=side) for side in ("left", "right"))
    return np.asarray(0.5 * (below + upto), dtype=np.float64)
