"""What stated probabilities and confidences are worth: reliability, and risk against coverage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from hitmiss.core.errors import DataError
from hitmiss.core.kinds import FAILED
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.core.weights import effective_weights
from hitmiss.engine.interval import share_interval
from hitmiss.metrics.confidence import binned, judged
from hitmiss.metrics.selective import risk_coverage
from hitmiss.reports.displays import Display, facts, light, tally_of
from hitmiss.reports.thinning import PIXELS


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
    over: str = ""
    """The units that intervals are over, if whole units are drawn."""

    @classmethod
    def from_trials(cls, trials: Trials, *, bins: int = 10, tally: Tally | None = None) -> ReliabilityDisplay:
        """Compute it from stated confidences if there are any, else from scores: probabilities, log-odds or LLRs.

        An LLR becomes a probability at the share of positives in these trials.
        """
        if "confidence" in trials.frame.columns and "decision" in trials.frame.columns:
            tally = _judged(trials)
            made = cls._from_tally(tally, facts(trials, tally)[:2], bins, "confidence")
            pooled = trials.retitle(runs=())
            return made._by_items(pooled, bins) if pooled.is_repeated else made
        kind, tally = trials.header.score_kind, tally_of(trials, tally)
        if kind == "raw":
            raise DataError.of("raw-scores-state")
        shift = float(logit(tally.n_positive / (tally.n_positive + tally.n_negative))) if kind == "llr" else 0.0
        stated = tally if kind == "probability" else tally.rescored(expit(tally.score + shift))
        return cls._from_tally(stated, facts(trials, tally)[:2], bins, "probability")

    def _by_items(self, trials: Trials, bins: int) -> ReliabilityDisplay:
        """Recompute intervals over items: rows of one item are not independent, and Wilson's would be too narrow."""
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
        ends = np.array([share_interval(r, n) for r, n in zip(found.right[held], found.n[held], strict=True)]).reshape(
            -1, 2
        )
        n = found.n[held]
        shares = found.stated[held] / n, found.right[held] / n, ends[:, 0], ends[:, 1], n
        return cls(names[0], names[1], int(tally.n_positive), int(tally.n_negative), *shares, of)


def _judged(trials: Trials) -> Tally:
    decision = trials.column("decision").fill_null(FAILED).to_numpy()
    confidence = trials.column("confidence").cast(float).fill_null(np.nan).to_numpy()
    return judged(trials.label, decision, confidence, effective_weights(trials))


@dataclass(frozen=True, eq=False)
class RiskCoverageDisplay(Display):
    """The share of wrong verdicts among the answers that are kept, the most confident first."""

    kind: ClassVar[str] = "risk_coverage"
    coverage: Floats
    risk: Floats
    confidence: Floats

    @classmethod
    def from_trials(cls, trials: Trials) -> RiskCoverageDisplay:
        """Compute the curve of trials with decisions and confidences."""
        tally = _judged(trials)
        if not len(tally.score):
            raise DataError.of("no-answered-trial-confidence")
        decision = trials.column("decision").fill_null(FAILED).to_numpy()
        confidence = trials.column("confidence").cast(float).fill_null(np.nan).to_numpy()
        curve = risk_coverage(trials.label, decision, confidence, effective_weights(trials))
        kept = light(PIXELS * curve.coverage, PIXELS * curve.risk)
        lines = curve.coverage[kept], curve.risk[kept], curve.threshold[kept]
        return cls(*facts(trials, tally), *lines)
