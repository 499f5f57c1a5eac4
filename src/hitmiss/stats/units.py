"""Bootstrap over units: speakers, patients, recordings are drawn with all their trials.

A replicate is a weight for each unit (how often it was drawn). Counts per cell are then one matrix product, and only
the cells that hold a crossing or can hold a lower cost are looked at trial by trial, with the gathered weights. EER and
minimum costs equal brute force on the same weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitmiss.errors import DataError
from hitmiss.progress import tell
from hitmiss.stats.bootstrap import counts_at, read_whole
from hitmiss.stats.cells import Cells, cut_finely, cut_for_units
from hitmiss.stats.forms import ClassSums, Form, Located, Whole
from hitmiss.stats.refine import Ints, Search, Stretches, begin_search
from hitmiss.stats.seeds import Random
from hitmiss.stats.sums import ordered_pairs
from hitmiss.tally import Array, Floats, Tally

CHUNK_VALUES = 1 << 24
AT_ONCE = 1 << 16  # units drawn at a time
"""Numbers that are held at once (128 MB)."""


@dataclass(frozen=True, eq=False)
class UnitSample:
    """Trials in ascending order of score with the unit of each."""

    tally: Tally
    positive: NDArray[np.bool_]
    score: Floats
    unit: Ints
    n_units: int

    @classmethod
    def of(cls, positive: NDArray[np.bool_], score: Floats, unit: Ints, n_units: int) -> UnitSample:
        """Sort trials given as arrays; `unit` counts from 0."""
        order = np.argsort(score, kind="stable")
        values, is_positive = score[order], positive[order]
        last = np.append(values[1:] != values[:-1], True) if len(values) else np.zeros(0, dtype=bool)
        ends = np.flatnonzero(last) + 1
        seen = np.concatenate([[0], np.cumsum(is_positive, dtype=np.int64)])
        at = np.concatenate([[0], ends])
        return cls(Tally(values[last], seen[at], at - seen[at]), is_positive, values, unit[order], n_units)


def draw_units(
    unit: Ints, positive: NDArray[np.bool_], n_units: int, replicates: int, rng: Random, *, by_class: bool = True
) -> NDArray[np.uint16]:
    """How often each unit is drawn (replicate × unit).

    Units that hold both classes are drawn from all units; where every unit holds one class, within each class. Without
    `by_class` always from all, as a figure that depends on prevalence needs it.
    """
    sides = unit_sides(unit, positive, n_units)
    weights = np.zeros((replicates, n_units), dtype=np.uint16)
    mixed = not by_class or (sides == 3).any()
    groups = [np.flatnonzero(sides > 0)] if mixed else [np.flatnonzero(sides == s) for s in (1, 2)]
    for members in groups:
        n = len(members)
        step = max(1, AT_ONCE // max(n, 1))
        for start in range(0, replicates if n else 0, step):
            rows = min(step, replicates - start)
            drawn = rng.integers(0, n, size=(rows, n)) + n * np.arange(rows)[:, None]
            weights[start : start + rows, members] = np.bincount(drawn.reshape(-1), minlength=rows * n).reshape(rows, n)
    return weights


def unit_sides(unit: Ints, positive: NDArray[np.bool_], n_units: int) -> Ints:
    """Which classes each unit holds: 1 positives, 2 negatives, 3 both, 0 none."""
    has = [np.bincount(unit[mask], minlength=n_units) > 0 for mask in (positive, ~positive)]
    return has[0] * 1 + has[1] * 2


def refuse_mixed_strata(unit: Ints, positive: NDArray[np.bool_], n_units: int, name: str) -> None:
    """Stratifying by class contradicts drawing units that hold both classes."""
    mixed = int((unit_sides(unit, positive, n_units) == 3).sum())
    if mixed:
        raise DataError(
            f"cannot stratify by class while drawing whole units of {name!r}: {mixed} of {n_units} hold both classes; "
            "leave out the stratification or choose another unit"
        )


def unit_replicates(sample: UnitSample, forms: Sequence[Form], weights: Array) -> list[Floats]:
    """Replicates of each form under given unit weights (replicate × unit), so many at a time as memory allows."""
    if not sample.tally.has_both_classes:
        return [np.full(len(weights), np.nan) for _ in forms]
    held = np.unique(sample.unit)
    sample = replace(sample, unit=np.searchsorted(held, sample.unit), n_units=len(held))
    cells = cut_for_units(sample.tally, forms)
    tables = class_tables(sample, cells)
    parts = [_some_replicates(sample, forms, cells, tables, w[:, held].astype(np.float64)) for w in _told(weights)]
    return [np.concatenate(values) for values in zip(*parts, strict=True)]


def in_chunks(weights: Array) -> Iterator[Array]:
    """The replicates in parts that stay small as numbers, however many units there are."""
    step = max(1, CHUNK_VALUES // max(1, weights.shape[1]))
    return (weights[i : i + step] for i in range(0, len(weights), step))


def _told(weights: Array) -> Iterator[Array]:
    """`in_chunks`, with a word on how far it is."""
    done = 0
    for chunk in in_chunks(weights):
        tell("replicates", done, len(weights))
        yield chunk
        done += len(chunk)


def weighted_totals(weights: Array, table: Array) -> Floats:
    """weights @ table (replicate × column), a part at a time."""
    return np.concatenate([w.astype(np.float64) @ table.astype(np.float64) for w in in_chunks(weights)])


def _some_replicates(
    sample: UnitSample, forms: Sequence[Form], cells: Cells, tables: tuple[Any, Any], weights: Floats
) -> list[Floats]:
    p, q = cell_counts(tables, weights)
    empty = (p.sum(axis=1) == 0) | (q.sum(axis=1) == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        search, stretches = begin_search(cells, p, q, forms)
        _look_inside(sample, cells, search, stretches, weights)
        drawn = ByUnits(sample, cells, p, q, search, weights)
        values = [form.replicates(drawn) for form in forms]
    return [np.where(empty, np.nan, v) for v in values]


def class_tables(sample: UnitSample, cells: Cells) -> tuple[Any, Any]:
    """How many positives and negatives each unit has in each cell; sparse where most units are in few cells."""
    cell = np.repeat(np.arange(len(cells)), np.diff(_trial_starts(sample.tally, cells)))
    shape = (sample.n_units, len(cells))
    masks = (sample.positive, ~sample.positive)
    if shape[0] * shape[1] > CHUNK_VALUES:
        from scipy.sparse import coo_array

        sparse = [coo_array((np.ones(int(m.sum())), (sample.unit[m], cell[m])), shape=shape).tocsr() for m in masks]
        return sparse[0], sparse[1]
    place = sample.unit * shape[1] + cell
    p, q = (np.bincount(place[m], minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64) for m in masks)
    return p, q


def cell_counts(tables: tuple[Any, Any], weights: Floats) -> tuple[Floats, Floats]:
    """Positives and negatives per cell (replicate × cell) under unit weights."""
    return np.asarray(weights @ tables[0]), np.asarray(weights @ tables[1])


def _trial_starts(tally: Tally, cells: Cells) -> Ints:
    return (tally.positives[cells.cuts] + tally.negatives[cells.cuts]).astype(np.int64)


def _look_inside(sample: UnitSample, cells: Cells, search: Search, stretches: Stretches, weights: Floats) -> None:
    """Settle the open cells, those open in most replicates first, so that later ones are often settled by the bound."""
    starts = _trial_starts(sample.tally, cells)
    cell = np.searchsorted(cells.cuts, stretches.low)
    for k in np.argsort(-np.bincount(cell, minlength=len(cells)), kind="stable"):
        here = stretches.keep(cell == k)
        if not len(here):
            break
        matters = search.matters(here)
        if matters.any():
            _settle(sample, search, here.keep(matters), slice(starts[k], starts[k + 1]), weights)


def _settle(sample: UnitSample, search: Search, s: Stretches, trials: slice, weights: Floats) -> None:
    """Every point inside one cell, for the replicates in which it matters."""
    drawn = weights[s.replicate][:, sample.unit[trials]]
    score, positive = sample.score[trials], sample.positive[trials]
    ends = np.flatnonzero(np.append(score[1:] != score[:-1], True))
    cp = s.cp[:, None] + np.cumsum(drawn * positive, axis=1)[:, ends]
    cn = s.cn[:, None] + np.cumsum(drawn * ~positive, axis=1)[:, ends]
    search.note_inside(s, cp, cn)


@dataclass(frozen=True, eq=False)
class ByUnits:
    """Replicates by units as forms read them: counts per cell, the search inside cells, and the weights of units."""

    sample: UnitSample
    cells: Cells
    p: Floats
    q: Floats
    search: Search
    weights: Floats

    def searched(self, form: Located) -> Floats:
        """See `forms.Drawn`."""
        return self.search.replicates(form)

    def counts_at(self, threshold: float) -> tuple[Floats, Floats, Floats, Floats]:
        """See `forms.Drawn`."""
        return counts_at(threshold, self.cells, self.p, self.q)

    def class_sums(self, form: ClassSums) -> tuple[Floats, Floats, Floats, Floats]:
        """See `forms.Drawn`."""
        mask = self.sample.positive
        positive = _unit_sum(self.sample, mask, form.positive, self.weights)
        negative = _unit_sum(self.sample, ~mask, form.negative, self.weights)
        return positive, self.p.sum(axis=1), negative, self.q.sum(axis=1)

    def pair_share(self) -> Floats:
        """See `forms.Drawn`."""
        return ordered_pairs(self.cells, self.p, self.q, None)

    def whole(self, form: Whole) -> Floats:
        """See `forms.Drawn`."""
        finely = cut_finely(self.sample.tally)
        return read_whole(form, finely, *cell_counts(class_tables(self.sample, finely), self.weights))


def _unit_sum(sample: UnitSample, mask: NDArray[np.bool_], term: Callable[[Floats], Floats], weights: Floats) -> Floats:
    """Σ term(score) over one class: a sum per unit, then a weighted sum of units; infinite terms counted apart."""
    values, unit = term(sample.score[mask]), sample.unit[mask]
    certain = np.isfinite(values)
    total = weights @ np.bincount(unit[certain], weights=values[certain], minlength=sample.n_units)
    if certain.all():
        return total
    infinite = weights @ np.bincount(unit[~certain], minlength=sample.n_units).astype(np.float64)
    return np.where(infinite > 0, np.inf, total)
