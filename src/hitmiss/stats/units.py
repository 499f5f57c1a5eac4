"""Bootstrap over units: speakers, patients or recordings are drawn with all their trials.

A replicate is a weight for each unit (how often it was drawn). The counts per cell are then one matrix product. Only
the cells that contain a crossing or can contain a lower cost are examined trial by trial, with the weights of their
units. EER and minimum costs are equal to those of brute force on the same weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError
from hitmiss.core.progress import report
from hitmiss.core.sorting import Array, Floats, let_go, order_of
from hitmiss.core.tally import Tally
from hitmiss.stats.forms.base import Form, Located
from hitmiss.stats.forms.sums import ClassSums
from hitmiss.stats.forms.tallies import DiskTally
from hitmiss.stats.forms.whole import Whole

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Table: TypeAlias = Floats | csr_array
from hitmiss.stats.cells import PART, Cells, cut_finely, cut_for_units
from hitmiss.stats.random import Ints, Random
from hitmiss.stats.replicates import CHUNK_VALUES, counts_at, read_whole
from hitmiss.stats.search import Search, Stretches, begin_search
from hitmiss.stats.sums import ordered_pairs

AT_ONCE = 1 << 16  # how many units are drawn at a time
"""At most `CHUNK_VALUES` numbers are held at once (128 MB)."""


@dataclass(frozen=True, eq=False)
class UnitSample:
    """Trials in ascending order of score, with the unit of each as its place among the units that have trials here.

    The arrays are in memory, or on disk as memory maps: only a part of them is looked at at a time.
    """

    tally: Tally
    positive: NDArray[np.bool_]
    score: Floats
    unit: NDArray[np.integer]
    units: Ints
    weight: Floats | None = None
    """The sampling weight of each trial; None: 1 each. The tally counts trials, whatever they weigh."""

    @cached_property
    def weighed(self) -> Tally:
        """The tally with the weights of its trials in place of their number."""
        if self.weight is None:
            return self.tally
        ends = _trials_below(self.tally, np.arange(len(self.tally.score) + 1))
        sums = (np.append(0.0, np.cumsum(self.weight * own))[ends] for own in (self.positive, ~self.positive))
        return Tally(self.tally.score, *sums)

    @classmethod
    def of(
        cls,
        positive: NDArray[np.bool_],
        score: Floats,
        unit: Ints,
        n_units: int,
        weight: Floats | None = None,
    ) -> UnitSample:
        """Sort trials given as arrays; `unit` counts from 0."""
        order = order_of(score)  # equal scores are one group, so their order changes nothing
        values, is_positive = score[order], positive[order]
        held = np.bincount(unit, minlength=n_units) > 0
        place = unit[order] if held.all() else (np.cumsum(held) - 1)[unit[order]]
        own = None if weight is None else weight[order]
        return cls(Tally.of_ordered(values, is_positive), is_positive, values, place, np.flatnonzero(held), own)

    @classmethod
    def stored(cls, parts: Iterable[UnitSample], units: Ints, folder: str | None) -> UnitSample:
        """Write parts into files without a name, each with higher scores than the one before, as one sample."""
        kinds: tuple[type[np.generic], ...] = (np.float64, np.int64, np.int64, np.bool_, np.float64, np.int32)
        with ExitStack() as opened:
            files = [opened.enter_context(TemporaryFile(prefix="hitmiss-", dir=folder)) for _ in kinds]
            below = [0, 0]
            for count in files[1:3]:
                count.write(bytes(8))
            for part in parts:
                counts = [
                    c[1:].astype(np.int64) + n
                    for c, n in zip((part.tally.positives, part.tally.negatives), below, strict=True)
                ]
                place = np.searchsorted(units, part.units)[part.unit]
                columns = part.tally.score, *counts, part.positive, part.score, place
                for file, kind, column in zip(files, kinds, columns, strict=True):
                    file.write(np.ascontiguousarray(column, dtype=kind).data)
                below = [int(own[-1]) for own in counts]
            for file in files:
                file.flush()
            maps: list[Array] = [np.memmap(file, kind, "r") for file, kind in zip(files, kinds, strict=True)]
        return cls(DiskTally(*maps[:3]), maps[3], maps[4], maps[5], units)

    def parts(self, start: int = 0, stop: int | None = None) -> Iterator[slice]:
        """Yield where the trials of each part are; of arrays on disk only one part is in memory at a time."""
        stop = len(self.unit) if stop is None else stop
        for first in range(start, stop, PART):
            yield slice(first, min(first + PART, stop))
            let_go(self.positive, self.score, self.unit)


def draw_units(
    unit: Ints, positive: NDArray[np.bool_], n_units: int, replicates: int, rng: Random, *, by_class: bool = True
) -> NDArray[np.uint16]:
    """Draw how often each unit is drawn (replicate × unit).

    If some unit holds both classes, units are drawn from all units; if every unit holds one class, within each class.
    Without `by_class` they are always drawn from all, which metrics that depend on prevalence need.
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
    """Return which classes each unit holds: 1 positives, 2 negatives, 3 both, 0 none."""
    has = [np.bincount(unit[mask], minlength=n_units) > 0 for mask in (positive, ~positive)]
    return has[0] * 1 + has[1] * 2


def refuse_mixed_strata(unit: Ints, positive: NDArray[np.bool_], n_units: int, name: str) -> None:
    """Refuse to stratify by class if units hold both classes: such a unit cannot be drawn within one class."""
    mixed = int((unit_sides(unit, positive, n_units) == 3).sum())
    if mixed:
        raise DataError.of("strata-and-units", name=name, mixed=mixed, n_units=n_units)


def unit_replicates(sample: UnitSample, forms: Sequence[Form], weights: Array) -> list[Floats]:
    """Return replicates of each form under unit weights (replicate × unit), as many at a time as memory allows."""
    if not sample.tally.has_both_classes:
        return [np.full(len(weights), np.nan) for _ in forms]
    cells, held = cut_for_units(sample.tally, forms), sample.units
    tables = class_tables(sample, cells)
    parts = [_some_replicates(sample, forms, cells, tables, w[:, held].astype(np.float64)) for w in _told(weights)]
    return [np.concatenate(values) for values in zip(*parts, strict=True)]


def in_chunks(weights: Array) -> Iterator[Array]:
    """Yield the replicates in parts of limited size, however many units there are."""
    step = max(1, CHUNK_VALUES // max(1, weights.shape[1]))
    return (weights[i : i + step] for i in range(0, len(weights), step))


def _told(weights: Array) -> Iterator[Array]:
    """Do the same as `in_chunks`, and report progress."""
    done = 0
    for chunk in in_chunks(weights):
        report("replicates", done, len(weights))
        yield chunk
        done += len(chunk)


def weighted_totals(weights: Array, table: Array) -> Floats:
    """Return weights @ table (replicate × column), computed in parts."""
    return np.concatenate([w.astype(np.float64) @ table.astype(np.float64) for w in in_chunks(weights)])


def _some_replicates(
    sample: UnitSample, forms: Sequence[Form], cells: Cells, tables: tuple[Table, Table], weights: Floats
) -> list[Floats]:
    p, q = cell_counts(tables, weights)
    # With few units a replicate may contain one class only; its numbers are undefined.
    empty = (p.sum(axis=1) == 0) | (q.sum(axis=1) == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        search, stretches = begin_search(cells, p, q, forms)
        _look_inside(sample, search, stretches, weights)
        drawn = ByUnits(sample, cells, p, q, search, weights)
        values = [form.replicates(drawn) for form in forms]
    return [np.where(empty, np.nan, v) for v in values]


def class_tables(sample: UnitSample, cells: Cells) -> tuple[Table, Table]:
    """Return how many positives and negatives each unit has in each cell; sparse if the table would be large."""
    starts, shape = _trials_below(sample.tally, cells.cuts), (len(sample.units), len(cells))
    counted = [_count_sparse, _count][shape[0] * shape[1] <= CHUNK_VALUES]
    found: list[Table] = []
    for part in sample.parts():
        inside: Ints = np.clip(starts, part.start, part.stop)
        cell = np.repeat(np.arange(len(cells)), np.diff(inside))
        unit, positive = sample.unit[part].astype(np.intp), sample.positive[part]
        weight = None if sample.weight is None else sample.weight[part]
        more = [
            counted(unit[mask], cell[mask], shape, None if weight is None else weight[mask])
            for mask in (positive, ~positive)
        ]
        found = [one + other for one, other in zip(found, more, strict=True)] if found else more
    return found[0], found[1]


def _count(unit: Ints, cell: Ints, shape: tuple[int, int], weight: Floats | None) -> Table:
    found = np.bincount(unit * shape[1] + cell, weights=weight, minlength=shape[0] * shape[1])
    return found.reshape(shape).astype(np.float64)


def _count_sparse(unit: Ints, cell: Ints, shape: tuple[int, int], weight: Floats | None) -> Table:
    from scipy.sparse import coo_array

    return coo_array((np.ones(len(unit)) if weight is None else weight, (unit, cell)), shape=shape).tocsr()


def cell_counts(tables: tuple[Table, Table], weights: Floats) -> tuple[Floats, Floats]:
    """Return positives and negatives per cell (replicate × cell) under unit weights."""
    return np.asarray(weights @ tables[0]), np.asarray(weights @ tables[1])


PARTS = 8
"""An open stretch is divided into this many parts, so that few trials of it must be looked at one by one."""
FEW = 64
"""A stretch of at most this many distinct scores is not divided any further."""
MANY = 4096
"""… unless it holds more trials than this, many of which have equal scores."""
OPEN_AT_ONCE = 1 << 19
"""Number of parts of stretches, or of trials inside them, that are examined at a time."""


def _look_inside(sample: UnitSample, search: Search, s: Stretches, weights: Floats) -> None:
    """Examine open stretches: first the ends of parts of them, then every point inside the parts that still matter.

    Those that are open in most replicates come first: lower costs that are found early rule out others.
    """
    few = (s.high - s.low <= FEW) & (_trials_below(sample.tally, s.high) - _trials_below(sample.tally, s.low) <= MANY)
    _settle(sample, search, s.keep(few), weights)
    s = s.keep(~few)
    place, open_in = np.unique(s.low, return_inverse=True, return_counts=True)[1:]
    s = s.keep(np.lexsort((place, -open_in[place])))
    for start in range(0, len(s), OPEN_AT_ONCE // PARTS):
        some = s.keep(slice(start, start + OPEN_AT_ONCE // PARTS))
        parts = _divided(sample, some.keep(search.matters(some)), weights)
        search.note_point(parts, parts.cp + parts.p, parts.cn + parts.q)
        _look_inside(sample, search, search.unsettled(parts), weights)


def _divided(sample: UnitSample, s: Stretches, weights: Floats) -> Stretches:
    """Divide stretches into parts and count their trials; stretches of several replicates with equal ends are adjacent."""
    begins = np.flatnonzero(np.append(True, s.low[1:] != s.low[:-1])[: len(s)])
    cuts = s.low[begins, None] + (s.high - s.low)[begins, None] * np.arange(PARTS + 1) // PARTS
    trials = _trials_below(sample.tally, cuts)
    # Counts below 2^24 are exact in single precision, which takes half the time.
    exact = float(s.cp.max(initial=0.0) + s.cn.max(initial=0.0) + (s.p + s.q).max(initial=0.0)) < 2.0**24
    whole = sample.weight is None and bool((weights == np.floor(weights)).all())
    kind = np.float32 if exact and whole else np.float64
    light: Array = weights.astype(kind)
    inside = np.empty((len(s), 2 * PARTS))
    # Stretch by stretch for all its replicates: how many trials each unit has in each part, weighted by one product.
    for i, (first, last) in enumerate(pairwise([*begins.tolist(), len(s)])):
        held, table = _part_table(sample, trials[i])
        drawn = s.replicate[first:last]
        rows = light[drawn] if held is None else light[drawn[:, None], held]
        inside[first:last] = rows @ table.astype(kind)
    p, q = (np.ascontiguousarray(inside[:, k : k + PARTS]) for k in (0, PARTS))
    earlier = np.triu(np.ones((PARTS, PARTS)), 1)  # sums of short rows are faster as a product
    of = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(s))))
    before = (own[:, None] + counts @ earlier for own, counts in ((s.cp, p), (s.cn, q)))
    parts = (np.repeat(s.replicate, PARTS), cuts[of, :-1], cuts[of, 1:], *before, p, q)
    return Stretches(*(np.ravel(part) for part in parts))


def _part_table(sample: UnitSample, starts: Ints) -> tuple[Ints | None, Array]:
    """Return the units with trials in a stretch, and how many positives and negatives each has in its parts.

    None for all units. `starts` are the places of the first trials of the parts, and the end.
    """
    held = None
    if 4 * (starts[-1] - starts[0]) < len(sample.units):  # most units have no trial here
        held = np.unique(sample.unit[starts[0] : starts[-1]])
    n = len(sample.units) if held is None else len(held)
    table = np.zeros(n * 2 * PARTS, dtype=np.int64 if sample.weight is None else np.float64)
    for some in sample.parts(int(starts[0]), int(starts[-1])):
        unit = sample.unit[some].astype(np.intp) if held is None else np.searchsorted(held, sample.unit[some])
        inside: Ints = np.clip(starts, some.start, some.stop)
        part = np.repeat(np.arange(PARTS), np.diff(inside))
        weight = None if sample.weight is None else sample.weight[some]
        table += np.bincount((2 * unit + ~sample.positive[some]) * PARTS + part, weight, len(table))
    return held, table.reshape(n, 2 * PARTS)


def _settle(sample: UnitSample, search: Search, s: Stretches, weights: Floats) -> None:
    """Record every point inside stretches, those of similar width together."""
    width = np.ceil(np.log2(np.maximum(s.high - s.low, 1)))
    for one in np.unique(width):
        alike = s.keep(width == one)
        ends = np.cumsum(_trials_below(sample.tally, alike.high) - _trials_below(sample.tally, alike.low))
        for start, stop in pairwise([*np.searchsorted(ends, np.arange(0, ends[-1], OPEN_AT_ONCE)), len(alike)]):
            some = alike.keep(slice(start, stop))
            search.note_inside(some, *_points_inside(sample, some, weights))


def _points_inside(sample: UnitSample, s: Stretches, weights: Floats) -> tuple[Floats, Floats]:
    """Return the positives and negatives up to every point inside stretches (stretch × point).

    The end of a stretch with fewer points is repeated.
    """
    groups = s.high - s.low
    width = int(groups.max())
    row, group = _numbered(groups)
    place, score = row * width + group, s.low[row] + group
    first = _trials_below(sample.tally, score)
    at, within = _numbered(_trials_below(sample.tally, score + 1) - first)  # the trials with each of these scores
    trial, place = first[at] + within, place[at]
    drawn = weights.take(s.replicate[row[at]] * weights.shape[1] + sample.unit[trial])
    if sample.weight is not None:
        drawn = drawn * sample.weight[trial]
    accepted = drawn * sample.positive[trial]
    let_go(sample.unit, sample.positive)
    both = []
    for own, before in ((accepted, s.cp), (drawn - accepted, s.cn)):
        counts = np.asarray(np.bincount(place, own, len(s) * width), dtype=np.float64).reshape(len(s), width)
        counts[:, 0] += before
        both.append(np.cumsum(counts, axis=1, out=counts))
    return both[0], both[1]


def _numbered(sizes: Ints) -> tuple[Ints, Ints]:
    """Return, for the members of groups of these sizes, the group and the number within it.

    >>> [a.tolist() for a in _numbered(np.array([2, 0, 3]))]
    [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    of = np.repeat(np.arange(len(sizes)), sizes)
    return of, np.arange(len(of)) - (np.cumsum(sizes) - sizes)[of]


def _trials_below(tally: Tally, group: Ints) -> Ints:
    """Return how many trials have a lower score than these distinct scores."""
    return (tally.positives[group] + tally.negatives[group]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ByUnits:
    """Replicates by units in the form of `forms.Drawn`: counts per cell, the search, and the unit weights."""

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
        positive = _unit_sum(self.sample, True, form.positive, self.weights)
        negative = _unit_sum(self.sample, False, form.negative, self.weights)
        return positive, self.p.sum(axis=1), negative, self.q.sum(axis=1)

    def pair_share(self) -> Floats:
        """See `forms.Drawn`."""
        return ordered_pairs(self.cells, self.p, self.q, None)

    def whole(self, form: Whole) -> Floats:
        """See `forms.Drawn`."""
        finely = cut_finely(self.sample.tally)
        weighed = Cells(self.sample.weighed, finely.cuts)
        return read_whole(form, weighed, *cell_counts(class_tables(self.sample, finely), self.weights))


def _unit_sum(sample: UnitSample, is_positive: bool, term: Callable[[Floats], Floats], weights: Floats) -> Floats:
    """Return Σ term(score) over one class: a sum per unit, then a weighted sum of units.

    Infinite terms count separately.
    """
    total, infinite = np.zeros(len(sample.units)), np.zeros(len(sample.units))
    for part in sample.parts():
        own = sample.positive[part] == is_positive
        values, unit = term(sample.score[part][own]), sample.unit[part][own]
        if sample.weight is not None:
            values = values * sample.weight[part][own]
        certain = np.isfinite(values)
        np.add.at(total, unit[certain], values[certain])  # in ascending order of score, whatever the parts are
        np.add.at(infinite, unit[~certain], 1.0)
    return np.where(weights @ infinite > 0, np.inf, weights @ total) if infinite.any() else weights @ total
