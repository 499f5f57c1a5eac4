"""Bands of curves over whole units: at every point, how many independent trials its rates are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit, logit

from hitmiss.core.sorting import Floats
from hitmiss.core.trials import Trials
from hitmiss.engine.interval import share_interval
from hitmiss.metrics.confidence import bin_of
from hitmiss.reports.displays.det import DetDisplay
from hitmiss.reports.displays.display import Display
from hitmiss.reports.displays.reliability import ReliabilityDisplay
from hitmiss.reports.displays.roc import RocDisplay
from hitmiss.stats.effective_trials import effective_trials


def over_units(display: Display, trials: Trials, unit: Sequence[str], level: float = 0.95) -> Display:
    """Return a display with bands over units; unchanged if it has none, or if units are not known or too few."""
    if not unit or not trials.has_rows or trials.header.weight is not None or unit == ("item",):
        return display
    codes = [
        trials.frame[trials.own(name)].cast(pl.String).rank("dense").to_numpy().astype(np.int64) - 1 for name in unit
    ]
    over = " × ".join(unit)
    if isinstance(display, DetDisplay | RocDisplay):
        rates = (display.far, display.frr) if isinstance(display, DetDisplay) else (display.fpr, 1.0 - display.tpr)
        positive, score = trials.label == 1, trials.score
        accepted = _worth(~positive, -score, codes, rates[0], level)
        missed = _worth(positive, score, codes, rates[1], level)
        if accepted is None or missed is None:
            return display
        return replace(display, worth_negative=accepted, worth_positive=missed, over=over)
    if isinstance(display, ReliabilityDisplay) and display.of == "probability":
        return _reliability(display, trials, codes, over, level)
    return display


def _worth(
    mine: NDArray[np.bool_], score: Floats, codes: Sequence[NDArray[np.int64]], rates: Floats, level: float
) -> Floats | None:
    """Return how many trials of one class each rate is worth: the share of those with the lowest scores."""
    order = np.argsort(score[mine], kind="stable")
    edges = np.round(rates * len(order)).astype(np.int64)
    kept = np.argsort(edges, kind="stable")
    at = np.searchsorted(edges[kept], np.arange(len(order)), side="right")  # the first rate that includes each trial
    by_unit = []
    for code in codes:
        own = code[mine][order]
        counts = np.zeros((int(code.max(initial=0)) + 1, len(edges) + 1))
        np.add.at(counts, (own, at), 1.0)
        hits = np.empty((len(counts), len(edges)))
        hits[:, kept] = np.cumsum(counts, axis=1)[:, : len(edges)]
        by_unit.append((hits, counts.sum(axis=1)))
    return effective_trials(by_unit, level)


def _reliability(
    display: ReliabilityDisplay, trials: Trials, codes: Sequence[NDArray[np.int64]], over: str, level: float
) -> ReliabilityDisplay:
    """Return the shares of bins of a probability with intervals over units; a bin of few units keeps none."""
    kind, positive = trials.header.score_kind, (trials.label == 1).astype(np.float64)
    shift = float(logit(positive.mean())) if kind == "llr" else 0.0
    stated = trials.score if kind == "probability" else expit(trials.score + shift)
    low, high = display.low.copy(), display.high.copy()
    place = bin_of(stated, BINS, "left")
    for i, b in enumerate(np.unique(place).tolist()):
        own = place == b
        by_unit = [
            (np.bincount(c[own], positive[own]).astype(np.float64)[:, None], np.bincount(c[own]).astype(np.float64))
            for c in codes
        ]
        worth = effective_trials(by_unit, level)
        low[i], high[i] = np.nan, np.nan
        if worth is not None:
            low[i], high[i] = share_interval(float(display.happened[i] * worth[0]), float(worth[0]), level)
    return replace(display, low=low, high=high, over=over)


BINS = 10
