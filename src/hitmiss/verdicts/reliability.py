"""The reliability table: trials by stated confidence, and how often those verdicts were right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hitmiss.core.errors import UsageError
from hitmiss.core.question import Plan, names_of
from hitmiss.core.tally import Array, Floats
from hitmiss.core.trials import Trials
from hitmiss.engine.resample import Columns, Sample, samples_of_runs
from hitmiss.metrics.confidence import bin_of
from hitmiss.stats.bootstrap import generator, unit_share
from hitmiss.stats.intervals import wilson


@dataclass(frozen=True)
class Bin:
    """Verdicts with a confidence between two edges: how many, the mean confidence, the share right, its interval."""

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
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
) -> list[Bin]:
    """Return the non-empty bins of every run.

    Intervals are Wilson's, or over items if those repeat, or over `unit`.

    >>> t = Trials.of([1, 1, 0, 0], decision=[1, 1, 0, 1], confidence=[0.9, 0.9, 0.7, 0.7])
    >>> [(b.edges, b.n, b.confidence, b.accuracy) for b in reliability(t)]
    [((0.7, 0.8), 2, 0.7, 0.5), ((0.9, 1.0), 2, 0.9, 1.0)]
    """
    columns = Columns(trials)
    plan = Plan(bootstrap, names_of(unit) or (("item",) if columns.is_repeated else ()), seed, level)
    return [b for sample in samples_of_runs(columns) for b in _bins(sample, bins, closed, plan)]


def _bins(sample: Sample, bins: int, closed: str, plan: Plan) -> list[Bin]:
    stated, happened = sample.columns.named("confidence")[sample.rows], sample.columns.outcome[sample.rows]
    used = np.flatnonzero((happened < 4) & ~np.isnan(stated))
    right = np.isin(happened[used], (0, 3)).astype(np.float64)
    place = bin_of(stated[used], bins, closed)
    n = np.bincount(place, minlength=bins)
    hits, sums = (np.bincount(place, weights=w, minlength=bins) for w in (right, stated[used]))
    ends = _by_units(sample, used, place, right, bins, plan) if plan.unit else None
    found = []
    for b in np.flatnonzero(n).tolist():
        low, high = wilson(hits[b], n[b], plan.level) if ends is None else ends[b]
        method = "wilson" if ends is None else f"bootstrap {plan.bootstrap},unit={'*'.join(plan.unit)}"
        shares = float(sums[b] / n[b]), float(hits[b] / n[b])
        found.append(Bin(dict(sample.run), (b / bins, (b + 1) / bins), int(n[b]), *shares, low, high, method))
    return found


def _by_units(
    sample: Sample, used: Array, place: Array, right: Floats, bins: int, plan: Plan
) -> list[tuple[float, float]]:
    """Return intervals of the share right in each bin by resampling units (items with their trials, or wider)."""
    if len(plan.unit) > 1:
        raise UsageError("bins of reliability are drawn over one unit; name one", code="crossed-bins")
    codes, values = sample.columns.asked_codes(plan.unit[0])
    where = codes[sample.rows][used] * bins + place
    size = len(values) * bins
    hits, sizes = (
        np.bincount(where, weights=w, minlength=size).reshape(-1, bins).astype(np.float64)
        for w in (right, np.ones_like(right))
    )
    rng = generator(plan.seed, "unit", plan.unit[0])
    return [unit_share(hits[:, b], sizes[:, b], plan.bootstrap, rng, plan.level) for b in range(bins)]
