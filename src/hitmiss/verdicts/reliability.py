"""The reliability table: trials by stated confidence, and how often those verdicts were right."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hitmiss.core.tally import Array, Floats
from hitmiss.core.trials import Trials
from hitmiss.engine.resample import Columns, Sample, samples_of_runs
from hitmiss.metrics.confidence import bin_of
from hitmiss.stats import intervals
from hitmiss.stats.bootstrap import draw_units, generator
from hitmiss.stats.intervals import wilson


@dataclass(frozen=True)
class Bin:
    """Verdicts whose confidence lies between two edges: how many, the mean confidence, the share right, its interval."""

    run: dict[str, str]
    edges: tuple[float, float]
    n: int
    confidence: float
    accuracy: float
    low: float
    high: float
    method: str


def reliability(
    trials: Trials,
    *,
    bins: int = 10,
    closed: str = "left",
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> list[Bin]:
    """The bins of every run that hold trials; intervals are Wilson's, or over items where those repeat.

    >>> t = Trials.of([1, 1, 0, 0], decision=[1, 1, 0, 1], confidence=[0.9, 0.9, 0.7, 0.7])
    >>> [(b.edges, b.n, b.confidence, b.accuracy) for b in reliability(t)]
    [((0.7, 0.8), 2, 0.7, 0.5), ((0.9, 1.0), 2, 0.9, 1.0)]
    """
    columns = Columns(trials)
    return [b for sample in samples_of_runs(columns) for b in _bins(sample, bins, closed, (bootstrap, seed, level))]


def _bins(sample: Sample, bins: int, closed: str, plan: tuple[int, int, float]) -> list[Bin]:
    stated, happened = sample.columns.named("confidence")[sample.rows], sample.columns.outcome[sample.rows]
    used = np.flatnonzero((happened < 4) & ~np.isnan(stated))
    right = np.isin(happened[used], (0, 3)).astype(np.float64)
    place = bin_of(stated[used], bins, closed)
    n = np.bincount(place, minlength=bins)
    hits, sums = (np.bincount(place, weights=w, minlength=bins) for w in (right, stated[used]))
    ends = _by_items(sample, used, place, right, bins, plan) if sample.columns.is_repeated else None
    found = []
    for b in np.flatnonzero(n).tolist():
        low, high = wilson(hits[b], n[b], plan[2]) if ends is None else ends[b]
        method = "wilson" if ends is None else f"bootstrap {plan[0]},unit=item"
        shares = float(sums[b] / n[b]), float(hits[b] / n[b])
        found.append(Bin(dict(sample.run), (b / bins, (b + 1) / bins), int(n[b]), *shares, low, high, method))
    return found


def _by_items(
    sample: Sample,
    used: Array,
    place: Array,
    right: Floats,
    bins: int,
    plan: tuple[int, int, float],
) -> list[tuple[float, float]]:
    """Intervals of the share right in each bin when items are drawn as wholes."""
    bootstrap, seed, level = plan
    codes, values = sample.columns.codes("item")
    item = codes[sample.rows]
    rng = generator(seed, "unit", "item")
    weights = draw_units(item, sample.positive, len(values), bootstrap, rng, by_class=False)
    where = item[used] * bins + place
    size = len(values) * bins
    tables = [np.bincount(where, weights=w, minlength=size).reshape(-1, bins) for w in (right, np.ones_like(right))]
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = (weights @ tables[0]) / (weights @ tables[1])
    return [
        intervals.percentile(drawn[:, b], level) if not np.isnan(drawn[:, b]).all() else (math.nan, math.nan)
        for b in range(bins)
    ]
