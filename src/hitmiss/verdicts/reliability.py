"""The reliability table: trials by stated confidence, and how often those verdicts were right."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from hitmiss.core.protocol import Protocol
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.engine.columns import Columns, Sample
from hitmiss.engine.draws import Draws
from hitmiss.engine.measurement import Measurement
from hitmiss.engine.prepare import prepare_metric
from hitmiss.engine.samples import samples_of_runs
from hitmiss.metrics.confidence import bin_of
from hitmiss.verdicts.stability import USUAL


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


def reliability(trials: Trials, plan: SamplingPlan = USUAL, *, bins: int = 10, closed: str = "left") -> list[Bin]:
    """Return the non-empty bins of every run: the accuracy of the answers whose confidence lies in each.

    Intervals are Wilson's, or over items if those repeat, or over the unit of the plan.

    >>> t = Trials.of([1, 1, 0, 0], decision=[1, 1, 0, 1], confidence=[0.9, 0.9, 0.7, 0.7])
    >>> [(b.edges, b.n, b.confidence, b.accuracy) for b in reliability(t)]
    [((0.7, 0.8), 2, 0.7, 0.5), ((0.9, 1.0), 2, 0.9, 1.0)]
    """
    columns = Columns(trials)
    asked, found = [prepare_metric("accuracy_answered", trials, Protocol())], []
    for sample in samples_of_runs(columns):
        over = plan.unit or (("item",) if sample.is_repeated else ())
        drawn = replace(plan, unit=over, bootstrap=plan.bootstrap if over else 0)
        work = Measurement(columns, asked, Draws.prepare(drawn, columns, sample.rows))
        found += _bins(work, sample, bins, closed)
    return found


def _bins(work: Measurement, sample: Sample, bins: int, closed: str) -> list[Bin]:
    stated, happened = sample.columns.named("confidence")[sample.rows], sample.columns.outcome[sample.rows]
    used = np.flatnonzero((happened < 4) & ~np.isnan(stated))
    place = bin_of(stated[used], bins, closed)
    found = []
    for b in np.unique(place).tolist():
        own = used[place == b]
        (e,) = work.estimates(sample.columns.sample(sample.rows[own], sample.run, {"confidence": str(b)}))
        low, high = (math.nan if end is None else end for end in (e.low, e.high))
        shares = math.fsum(stated[own]) / len(own), float(e.value or 0.0)
        edges = b / bins, (b + 1) / bins
        found.append(Bin(dict(sample.run), edges, len(own), *shares, low=low, high=high, method=e.method or ""))
    return found
