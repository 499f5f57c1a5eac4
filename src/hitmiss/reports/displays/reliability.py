"""Stated probabilities and confidences against what happened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from hitmiss.core.errors import DataError
from hitmiss.core.kinds import FAILED
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.core.weights import effective_weights
from hitmiss.engine.interval import share_interval
from hitmiss.findings.wording import per_cent
from hitmiss.metrics.confidence import binned, judged
from hitmiss.reports.displays.display import Display, facts, tally_of
from hitmiss.reports.displays.lines import Lines, NumberRows, PlateOptions, key_of, mark_styles, share_axis
from hitmiss.reports.plate import MUTED, Curve, Dots, Mark, Plate
from hitmiss.reports.readings import Reading


@dataclass(frozen=True, eq=False)
class ReliabilityDisplay(Display):
    """What was stated against what happened, in bins of the statement, with Wilson intervals.

    `of` is `probability` (of the positive class, from scores) or `confidence` (that the verdict is right).
    """

    kind: ClassVar[str] = "reliability"
    reading: ClassVar[Reading] = Reading(
        "Reliability",
        "What was stated against what happened. On the diagonal, stated probabilities are right.",
    )
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
            tally = judged(*verdict_columns(trials))
            made = cls._from_tally(tally, facts(trials, tally)[:2], bins, "confidence")
            pooled = trials.retitle(runs=())
            return made._by_items(pooled, bins) if pooled.is_repeated else made
        kind, tally = trials.header.score_kind, tally_of(trials, tally)
        if kind == "raw":
            raise DataError.of("raw-scores/state")
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

    @staticmethod
    def plate(lines: Lines[ReliabilityDisplay], how: PlateOptions) -> Plate:
        """Draw all runs in one plate."""
        first: ReliabilityDisplay = lines[0][1]
        styles = mark_styles(lines, lambda d: float(np.abs(d.stated - d.happened).max(initial=0.0)), how)
        marks: list[Mark] = [Curve(np.array([0.0, 1.0]), np.array([0.0, 1.0]), MUTED, dash="dot", width=1)]
        for (name, d), style in zip(lines, styles, strict=True):
            marks.append(Curve(d.stated, d.happened, style.color, name, width=1.2))
            about = tuple(
                f"{name}: stated {per_cent(s)}, happened {per_cent(h)}, n = {int(n):,}"
                for s, h, n in zip(d.stated, d.happened, d.n, strict=True)
            )
            ends = (d.low, d.high) if how.independent or d.over else (None, None)
            marks.append(
                Dots(d.stated, d.happened, style.color, low=ends[0], high=ends[1], about=about, is_hollow=False)
            )
        confident = first.of == "confidence"
        x = share_axis("stated confidence" if confident else f"stated probability of {first.positive}")
        y = share_axis("verdicts that are right" if confident else f"share that is {first.positive}")
        note = "No intervals: the rows repeat, and Wilson's would be too narrow."
        if first.over:
            note = f"95 % intervals over whole units ({first.over})."
        elif how.independent:
            note = "95 % Wilson intervals."
        key = key_of(styles, [n for n, _ in lines])
        return Plate(x, y, tuple(marks), _reliability_finding(lines), True, key, note)

    @staticmethod
    def numbers(lines: Lines[ReliabilityDisplay]) -> NumberRows:
        """Return the numbers behind the figure."""
        rows = [
            (name, [f"{s:.3f}", f"{h:.3f}", f"[{low:.3f}, {high:.3f}]", f"{int(n):,}"])
            for name, d in lines
            for s, h, low, high, n in zip(d.stated, d.happened, d.low, d.high, d.n, strict=True)
        ]
        return ("stated", "happened", "95\u00a0% interval", "n"), rows


def _reliability_finding(lines: Lines[ReliabilityDisplay]) -> str:
    if len(lines) > 1:
        return ""
    d = lines[0][1]
    away = float((d.n * (d.stated - d.happened)).sum() / d.n.sum()) if d.n.sum() else 0.0
    side = "too high" if away > 0 else "too low"
    return (
        f"Statements are {per_cent(abs(away))} {side} on average"
        if abs(away) >= 0.005
        else "On average, statements match what happened"
    )


def verdict_columns(trials: Trials) -> tuple[NDArray[np.int8], NDArray[np.int8], Floats, Floats | None]:
    """Return the labels, decisions, stated confidences (NaN where none was) and weights of trials."""
    decision = trials.column("decision").fill_null(FAILED).to_numpy()
    confidence = trials.column("confidence").cast(float).fill_null(np.nan).to_numpy()
    return trials.label, decision, confidence, effective_weights(trials)
