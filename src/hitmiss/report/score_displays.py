"""What scores and confidences are worth, as objects that hold numbers and can draw themselves.

Histograms of both classes, reliability, Bayes error rate (APE), Tippett, and risk against coverage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from scipy.special import expit, logit

from hitmiss.core.errors import DataError
from hitmiss.core.tally import Floats, Tally
from hitmiss.core.trials import Trials
from hitmiss.core.values import FAILED
from hitmiss.metrics.confidence import binned, judged
from hitmiss.metrics.detection import pav_blocks
from hitmiss.metrics.selective import risk_coverage
from hitmiss.report.displays import Display, Point, facts, light, operating_points, tally_of
from hitmiss.report.thinning import PIXELS
from hitmiss.stats.intervals import wilson
from hitmiss.stats.sketch import COARSE, bins_of, first_key, keys_of, scores_of

if TYPE_CHECKING:
    pass

BINS: Final = 60
PRIORS: Final = np.linspace(-7.0, 7.0, 141)
"""Prior log-odds at which Bayes error rates are shown: 0.1 % to 99.9 %."""
TAIL: Final = 0.0005
"""Share of the scores at each end that a histogram puts into its outer bins, so that a stray one cannot squash it."""


@dataclass(frozen=True, eq=False)
class HistogramDisplay(Display):
    """The scores of both classes in bins, each class as shares of itself. The outer bins hold what lies beyond.

    >>> h = HistogramDisplay.from_trials(Trials.of([1, 1, 0, 0], [1.0, 2.0, 0.0, 1.0]), bins=2)
    >>> h.edges.tolist(), h.positives.tolist(), h.negatives.tolist()
    ([0.0, 1.0, 2.0], [0.0, 1.0], [0.5, 0.5])
    """

    kind: ClassVar[str] = "histogram"
    edges: Floats
    positives: Floats
    negatives: Floats
    points: tuple[Point, ...] = ()

    @classmethod
    def from_trials(cls, trials: Trials, *, bins: int = BINS) -> HistogramDisplay:
        """The histogram of scored trials; the threshold of the EER, or the one that was decided at, is marked."""
        tally = tally_of(trials)
        limit = trials.header.threshold
        marks = operating_points(tally, threshold=limit.value if limit else None)
        return cls.from_tally(tally, *facts(trials, tally)[:2], bins=bins, points=marks)

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        positive: str = "positive",
        negative: str = "negative",
        *,
        bins: int = BINS,
        points: tuple[Point, ...] = (),
    ) -> HistogramDisplay:
        """The histogram of a tally."""
        edges = _edges(tally, bins)
        counts = _spread(tally, edges) if tally.is_short else _placed(tally, edges)
        shares = counts[0] / tally.n_positive, counts[1] / tally.n_negative
        return cls(positive, negative, int(tally.n_positive), int(tally.n_negative), edges, *shares, points)


def _placed(tally: Tally, edges: Floats) -> list[Floats]:
    """How many scores of each class lie between the edges."""
    inner, bins = np.clip(tally.score, edges[0], edges[-1]), len(edges) - 1
    place = np.minimum(np.searchsorted(edges, inner, side="right") - 1, bins - 1)
    counts = [np.bincount(place, weights=c, minlength=bins) for c in (tally.positive_counts, tally.negative_counts)]
    return [c.astype(np.float64) for c in counts]


def _spread(tally: Tally, edges: Floats) -> list[Floats]:
    """The same of scores that are known by their bins: those of a bin are taken to lie evenly in it."""
    keys = keys_of(tally.score)
    above = np.minimum(first_key(bins_of(keys, COARSE) + np.uint64(1), COARSE), keys_of([np.inf]))
    ends = np.minimum(scores_of(above), np.append(tally.score[1:], np.inf))
    points = np.clip(np.column_stack([tally.score, ends]), edges[0], edges[-1]).ravel()
    found = []
    for below in (tally.positives, tally.negatives):
        held = np.interp(edges, points, np.column_stack([below[:-1], below[1:]]).ravel().astype(np.float64))
        held[0], held[-1] = 0.0, float(below[-1])
        found.append(np.diff(held))
    return found


def _edges(tally: Tally, bins: int) -> Floats:
    """Equal bins over the scores but for their outermost share."""
    finite = np.isfinite(tally.score)
    if not finite.any():
        raise DataError("there is no finite score to draw")
    score = tally.score[finite]
    below = np.cumsum((tally.positive_counts + tally.negative_counts)[finite])
    low, high = (float(score[np.searchsorted(below, share * below[-1])]) for share in (TAIL, 1 - TAIL))
    if low == high:
        low, high = float(score[0]), float(score[-1])
    half = 0.5 if low == high else 0.0
    return np.linspace(low - half, high + half, bins + 1)


@dataclass(frozen=True, eq=False)
class ReliabilityDisplay(Display):
    """What was stated against what happened, in bins of the statement, with Wilson intervals.

    `of` is `probability` (of the positive class, from scores) or `confidence` (that the verdict is right).
    """

    kind: ClassVar[str] = "reliability"
    stated: Floats
    happened: Floats
    low: Floats
    high: Floats
    n: Floats
    of: str = "probability"

    @classmethod
    def from_trials(cls, trials: Trials, *, bins: int = 10) -> ReliabilityDisplay:
        """From stated confidences where there are any, else from scores that are probabilities, log-odds or LLRs.

        An LLR becomes a probability at the share of positives in these trials.
        """
        if "confidence" in trials.frame.columns and "decision" in trials.frame.columns:
            tally = _judged(trials)
            made = cls._from_tally(tally, facts(trials, tally)[:2], bins, "confidence")
            pooled = trials.retitle(runs=())
            return made._by_items(pooled, bins) if pooled.is_repeated else made
        kind, tally = trials.header.score_kind, tally_of(trials)
        if kind == "raw":
            raise DataError("raw scores state no probability; calibrate them first")
        shift = float(logit(tally.n_positive / (tally.n_positive + tally.n_negative))) if kind == "llr" else 0.0
        stated = tally if kind == "probability" else tally.rescored(expit(tally.score + shift))
        return cls._from_tally(stated, facts(trials, tally)[:2], bins, "probability")

    def _by_items(self, trials: Trials, bins: int) -> ReliabilityDisplay:
        """The same with intervals over items: rows of one item are not independent, and Wilson's would be too narrow."""
        from hitmiss.verdicts.reliability import reliability

        found = [b for b in reliability(trials, bins=bins) if b.n]
        if len(found) != len(self.n):
            return self
        low, high = (np.array([getattr(b, name) for b in found]) for name in ("low", "high"))
        return replace(self, low=low, high=high)

    @classmethod
    def _from_tally(cls, tally: Tally, names: tuple[str, ...], bins: int, of: str) -> ReliabilityDisplay:
        found = binned(tally, bins)
        held = found.n > 0
        ends = np.array([wilson(r, n) for r, n in zip(found.right[held], found.n[held], strict=True)]).reshape(-1, 2)
        n = found.n[held]
        shares = found.stated[held] / n, found.right[held] / n, ends[:, 0], ends[:, 1], n
        return cls(names[0], names[1], int(tally.n_positive), int(tally.n_negative), *shares, of)


def _judged(trials: Trials) -> Tally:
    decision = trials.column("decision").fill_null(FAILED).to_numpy()
    confidence = trials.column("confidence").cast(float).fill_null(np.nan).to_numpy()
    return judged(trials.label, decision, confidence)


@dataclass(frozen=True, eq=False)
class BayesErrorDisplay(Display):
    """Applied probability of error (APE): the error rate of Bayes decisions over a range of priors.

    `actual` takes the scores as the LLRs they claim to be, `least` after the best monotone recalibration (PAV),
    `default` decides by the prior alone. Between actual and least lies what miscalibration costs.
    """

    kind: ClassVar[str] = "bayes_error"
    prior: Floats
    actual: Floats
    least: Floats
    default: Floats

    @classmethod
    def from_trials(cls, trials: Trials) -> BayesErrorDisplay:
        """The error rates of LLR scores."""
        tally = tally_of(_llrs(trials, "a Bayes error rate"))
        return cls.from_tally(tally, *facts(trials, tally)[:2])

    @classmethod
    def from_tally(cls, tally: Tally, positive: str = "positive", negative: str = "negative") -> BayesErrorDisplay:
        """The error rates of a tally of LLRs."""
        chance = expit(PRIORS)
        at = np.searchsorted(tally.score, -PRIORS, side="left")
        miss = tally.positives[at] / tally.n_positive
        alarm = (tally.n_negative - tally.negatives[at]) / tally.n_negative
        p, q = pav_blocks(tally)
        frr = np.concatenate([[0.0], np.cumsum(p) / tally.n_positive])
        far = 1.0 - np.concatenate([[0.0], np.cumsum(q) / tally.n_negative])
        least = np.min(chance[:, None] * frr + (1 - chance)[:, None] * far, axis=1)
        lines = PRIORS, chance * miss + (1 - chance) * alarm, least, np.minimum(chance, 1 - chance)
        return cls(positive, negative, int(tally.n_positive), int(tally.n_negative), *lines)


def _llrs(trials: Trials, what: str) -> Trials:
    if trials.header.score_kind != "llr":
        raise DataError(
            f"{what} needs llr scores and these are declared {trials.header.score_kind!r}; declare the kind if you know "
            "better, or calibrate on a development set"
        )
    return trials


@dataclass(frozen=True, eq=False)
class TippettDisplay(Display):
    """Tippett plot: the share of each class whose likelihood ratio is at least x, x in powers of ten."""

    kind: ClassVar[str] = "tippett"
    positive_lr: Floats
    positive_share: Floats
    negative_lr: Floats
    negative_share: Floats

    @classmethod
    def from_trials(cls, trials: Trials) -> TippettDisplay:
        """The cumulative shares of LLR scores."""
        tally = tally_of(_llrs(trials, "a Tippett plot"))
        return cls.from_tally(tally, *facts(trials, tally)[:2])

    @classmethod
    def from_tally(cls, tally: Tally, positive: str = "positive", negative: str = "negative") -> TippettDisplay:
        """The cumulative shares of a tally of LLRs."""
        finite = np.isfinite(tally.score)
        tens = tally.score[finite] / np.log(10.0)
        scale = PIXELS / max(float(np.ptp(tens)), 1e-9) if len(tens) else 1.0
        sides: list[Floats] = []
        for below, n in ((tally.positives, tally.n_positive), (tally.negatives, tally.n_negative)):
            share = (n - below[:-1][finite]) / n
            kept = light(scale * tens, PIXELS * share)
            sides += [tens[kept], share[kept]]
        return cls(positive, negative, int(tally.n_positive), int(tally.n_negative), *sides)


@dataclass(frozen=True, eq=False)
class RiskCoverageDisplay(Display):
    """The share of wrong verdicts among the answers that are kept, the most confident first."""

    kind: ClassVar[str] = "risk_coverage"
    coverage: Floats
    risk: Floats
    confidence: Floats

    @classmethod
    def from_trials(cls, trials: Trials) -> RiskCoverageDisplay:
        """The curve of trials with decisions and confidences."""
        tally = _judged(trials)
        if not len(tally.score):
            raise DataError("no answered trial has a confidence")
        decision = trials.column("decision").fill_null(FAILED).to_numpy()
        confidence = trials.column("confidence").cast(float).fill_null(np.nan).to_numpy()
        curve = risk_coverage(trials.label, decision, confidence)
        kept = light(PIXELS * curve.coverage, PIXELS * curve.risk)
        lines = curve.coverage[kept], curve.risk[kept], curve.threshold[kept]
        return cls(*facts(trials, tally), *lines)


def read_display(data: Mapping[str, Any]) -> Display:
    """A display of any kind from its JSON form."""
    from hitmiss.report.displays import DetDisplay, PrDisplay, RocDisplay

    known: tuple[type[Display], ...] = (
        DetDisplay, RocDisplay, PrDisplay, HistogramDisplay, ReliabilityDisplay, BayesErrorDisplay, TippettDisplay, RiskCoverageDisplay,
    )  # fmt: skip
    kinds = {display.kind: display for display in known}
    if data.get("kind") not in kinds:
        raise DataError(f"unknown kind of curve {data.get('kind')!r}; known: {', '.join(kinds)}")
    return kinds[str(data["kind"])].from_dict(data)  # type: ignore[no-any-return]
