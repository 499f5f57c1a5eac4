"""Cut two runs into the paired samples on which differences are computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.columns import find_column
from hitmiss.core.completeness import ROW
from hitmiss.core.design import Grouping
from hitmiss.core.errors import DataError
from hitmiss.core.sorting import Floats
from hitmiss.core.trials import Trials
from hitmiss.engine.columns import Columns, OneClassColumns, Sample
from hitmiss.engine.pairing import REPEATS, Pair
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.engine.samples import samples_of_runs, samples_of_slices
from hitmiss.engine.weighted import columns_of_trials

Both = tuple[PreparedMetric, PreparedMetric]
"""A metric, prepared for each of the two runs."""


@dataclass(frozen=True, eq=False)
class Part:
    """The same trials answered by both runs, each trial once."""

    a: Sample
    b: Sample

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Which trials are positive."""
        return self.a.positive

    @cached_property
    def placements(self) -> tuple[Floats, Floats]:
        """For both runs, the share of the other class that each trial is ordered correctly against."""
        return self.a.placements, self.b.placements

    def values(self, question: Both) -> tuple[float, float]:
        """Return the numbers of both runs; NaN if a number is undefined."""
        return float(question[0].value(self.a)), float(question[1].value(self.b))


@dataclass(frozen=True, eq=False)
class PairedSample:
    """Paired trials of one slice: one part, or one part per repetition.

    The numbers of repetitions are averaged; their trials are never pooled.
    """

    parts: tuple[Part, ...]
    slice: Mapping[str, str]

    @property
    def n(self) -> int:
        """The number of pairs."""
        return len(self.once)

    @property
    def n_positive(self) -> int:
        """The number of positive pairs."""
        return int(np.concatenate([p.positive for p in self.parts])[self.once].sum())

    @cached_property
    def once(self) -> NDArray[np.intp]:
        """The places of the pairs in all parts together, each once; a completed run repeats some of them."""
        return each_once([p.a for p in self.parts])

    def values(self, question: Both) -> tuple[float, float]:
        """Return the numbers of both runs, as means over repetitions."""
        pairs = [p.values(question) for p in self.parts]
        return math.fsum(a for a, _ in pairs) / len(pairs), math.fsum(b for _, b in pairs) / len(pairs)


def each_once(parts: Sequence[Sample]) -> NDArray[np.intp]:
    """Return the places of the rows of some samples, counted through, without the copies that completed runs have."""
    rows, frame = np.concatenate([part.rows for part in parts]), parts[0].columns.trials.frame
    if ROW not in frame.columns:
        return np.arange(len(rows))
    return np.unique(frame[ROW].to_numpy()[rows], return_index=True)[1]


def columns_of(
    pair: Pair, names: Sequence[str], one_class: OneClassColumns, pools_targets: bool = False
) -> tuple[Columns, Columns]:
    """Return the columns of both runs; those to group or resample by must be equal, or exist in only one run."""
    a, b = same_columns((pair.a, pair.b), pair.names, pair.key, names, one_class)
    return (replace(a, pools_targets=True), replace(b, pools_targets=True)) if pools_targets else (a, b)


def same_columns(
    runs: Sequence[Trials],
    titles: Sequence[str],
    key: Sequence[str],
    names: Sequence[str],
    one_class: OneClassColumns,
) -> list[Columns]:
    """Return the columns of runs on the same questions.

    The columns in `names` must be equal in all runs that have them, and are copied to the others.
    """
    made = [run.retitle(runs=tuple(n for n in key if n not in ("item", "target"))) for run in runs]
    for name in names:
        own = {i: mine for i, run in enumerate(made) if (mine := find_column(name, run.frame.columns)) is not None}
        if not own:
            continue
        first, *others = own
        column = made[first].frame[own[first]]
        for i in others:
            other = made[i].frame[own[i]]
            if not column.equals(other):
                n = int((column != other).sum())
                raise DataError.of("column-conflict", n=n, name=name, first=titles[first], other=titles[i])
        made = [run if i in own else replace(run, frame=run.frame.with_columns(column)) for i, run in enumerate(made)]
    return [columns_of_trials(run, one_class) for run in made]


def wholes(a: Columns, b: Columns) -> list[PairedSample]:
    """Return all pairs: one sample, or one for each run and target that both have."""
    found: dict[tuple[tuple[str, str], ...], list[Part]] = {}
    for sample in samples_of_runs(a):
        shared = tuple((k, v) for k, v in sample.run.items() if k not in REPEATS)
        found.setdefault(shared, []).append(_part(sample, b))
    return [PairedSample(tuple(parts), dict(shared)) for shared, parts in found.items()]


def slices(whole: PairedSample, grouping: Grouping) -> list[PairedSample]:
    """Cut the pairs by slice columns; a slice that only some repetitions have uses those."""
    found: dict[tuple[tuple[str, str], ...], list[Part]] = {}
    for part in whole.parts:
        for sample in samples_of_slices(part.a, grouping):
            found.setdefault(tuple(sample.slice.items()), []).append(_part(sample, part.b.columns))
    return [PairedSample(tuple(parts), {**whole.slice, **dict(key)}) for key, parts in found.items()]


def _part(sample: Sample, b: Columns) -> Part:
    return Part(sample, b.sample(sample.rows, sample.run, sample.slice))


def outcomes(sample: Sample) -> NDArray[np.int64]:
    """Return the outcome of each decision of a sample."""
    return sample.columns.outcome[sample.rows].astype(np.int64)
