"""The scores of cells, in memory or on disk, and the figures that are read from them.

A score is kept as an integer key that has the same order (`core.tally.keys_of`), so that scores can be cut at any key
and merged in any order. What does not fit into memory is written to disk as runs of ascending keys; reading the same
range of every run gives the scores of that range in order.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from hitmiss.core import progress
from hitmiss.core.errors import DataError, EnvironmentFault, UsageError
from hitmiss.core.tally import COARSE, EXACT, Keys, Tally, bins_of, first_key, in_order, keys_of, let_go, scores_of
from hitmiss.engine.measure import ties_differ
from hitmiss.engine.resample import Rows
from hitmiss.stats.bootstrap import UnitSample
from hitmiss.stats.forms import Form, Passing, ReadTally
from hitmiss.stats.intervals import PassingSteps, Steps
from hitmiss.stats.sketch import LEVELS, condense, heavy_bins, leaves, opened, thresholds

# ----------------------------------------------------------------------
# Keys with their counts: in memory (`Binned`), or as several runs on disk (`Several`).

Counts = NDArray[np.int64]
Cell = TypeVar("Cell", bound=Hashable)
LOWEST: Final = keys_of([-np.inf])[0]
HIGHEST: Final = np.uint64(2**64 - 1)
NO_KEYS: Final[Keys] = np.zeros(0, dtype=np.uint64)
FEW_RUNS: Final = 16
"""So many ascending runs are merged in less time than they are sorted."""


@dataclass(frozen=True, eq=False)
class Binned:
    """Keys (or the lowest keys of bins), ascending, and the number of trials with each; None: one each.

    `is_sorted` is false for keys as they were read, in any order and with repeats; merging sorts them.
    """

    bins: Keys
    counts: Counts | None = None
    is_sorted: bool = True

    @property
    def total(self) -> int:
        """The number of trials."""
        return len(self.bins) if self.counts is None else int(self.counts.sum())

    @property
    def each(self) -> Counts:
        """The number of trials at each key."""
        return np.ones(len(self.bins), dtype=np.int64) if self.counts is None else self.counts

    @property
    def ends(self) -> tuple[np.uint64, np.uint64]:
        """The lowest and the highest key."""
        return self.bins[0], self.bins[-1]

    def between(self, first: np.uint64, last: np.uint64) -> Binned:
        """Return the trials from one key to another, both included."""
        own = slice(int(np.searchsorted(self.bins, first)), int(np.searchsorted(self.bins, last, side="right")))
        return Binned(self.bins[own], None if self.counts is None else self.counts[own])

    def pieces(self, first: np.uint64, last: np.uint64) -> list[Binned]:
        """Return the same as a list."""
        return [self.between(first, last)]

    def coarse(self, cuts: tuple[float, ...]) -> Binned:
        """Return the same trials in the coarsest bins; a cut begins a new bin."""
        return self.by_bits(COARSE, cuts)

    def by_bits(self, bits: int, cuts: tuple[float, ...]) -> Binned:
        """Return the same trials in bins of so many bits."""
        if bits == EXACT or not len(self.bins):
            return self
        changed = np.diff(self.bins >> np.uint64(EXACT - bits)) != 0
        starts = np.flatnonzero(np.append(True, changed))
        if cuts:
            starts = np.unique(np.append(starts, np.searchsorted(self.bins, keys_of(cuts))))
            starts = starts[starts < len(self.bins)]
        sums = (
            np.diff(np.append(starts, len(self.bins))) if self.counts is None else np.add.reduceat(self.counts, starts)
        )
        return Binned(truncated(self.bins[starts], bits, cuts), sums)


NOTHING: Final = Binned(NO_KEYS)


@dataclass(frozen=True, eq=False)
class Several:
    """The trials of several runs on disk (memory maps), and how many of them are in each of the coarsest bins."""

    parts: tuple[Binned, ...]
    bins: Binned

    @property
    def total(self) -> int:
        """The number of trials."""
        return self.bins.total

    @property
    def ends(self) -> tuple[np.uint64, np.uint64]:
        """The lowest and the highest key."""
        return min(part.ends[0] for part in self.parts), max(part.ends[1] for part in self.parts)

    def between(self, first: np.uint64, last: np.uint64) -> Binned:
        """Return the trials from one key to another, both included."""
        return merge_binned(self.pieces(first, last))

    def pieces(self, first: np.uint64, last: np.uint64) -> list[Binned]:
        """Return the same, run by run, each in memory."""
        found = []
        for part in self.parts:
            own = part.between(first, last)
            found.append(Binned(np.array(own.bins), None if own.counts is None else np.array(own.counts)))
            let_go(part.bins)
        return found

    def coarse(self, _: tuple[float, ...]) -> Binned:
        """Return the same trials in the coarsest bins, which were counted when they were written."""
        return self.bins


Kept = Binned | Several
"""The scores of a cell, wherever they are."""


def merge_kept(parts: Sequence[Kept]) -> Kept:
    """Return the trials of all parts, which are all in memory or all on disk."""
    runs = [part for part in parts if isinstance(part, Several)]
    if not runs:
        return merge_binned([part for part in parts if isinstance(part, Binned)])
    return Several(tuple(run for part in runs for run in part.parts), merge_binned([part.bins for part in runs]))


def merge_binned(parts: Sequence[Binned]) -> Binned:
    """Add up the counts of equal keys.

    >>> a, b = Binned(np.array([1, 4], dtype=np.uint64)), Binned(np.array([4, 9], dtype=np.uint64))
    >>> merge_binned([a, b]).bins.tolist(), merge_binned([a, b]).each.tolist()
    ([1, 4, 9], [1, 2, 1])
    """
    parts = [part for part in parts if len(part.bins)] or [NOTHING]
    if len(parts) == 1 and parts[0].is_sorted:
        return parts[0]
    single, counted = ([part for part in parts if (part.counts is None) == is_single] for is_single in (True, False))
    if single and counted:  # many trials of few scores are counted before they are merged with others
        own = merge_binned(single)
        parts = [Binned(own.bins, own.each), *counted]
    keys = np.concatenate([part.bins for part in parts])
    if not counted:
        return _summed(ordered(keys, len(parts) if all(part.is_sorted for part in parts) else None), None)
    order = np.argsort(keys, kind="stable")
    return _summed(keys[order], np.concatenate([part.each for part in parts])[order])


def _summed(keys: Keys, counts: Counts | None) -> Binned:
    """Add up the counts of ascending keys with repeats."""
    is_first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    if is_first.all():
        return Binned(keys, counts)
    starts = np.flatnonzero(is_first)
    sums = np.diff(np.append(starts, len(keys))) if counts is None else np.add.reduceat(counts, starts)
    return Binned(keys[starts], sums)


def ordered(keys: Keys, runs: int | None = None) -> Keys:
    """Sort keys in ascending order; `runs` is how many ascending runs they consist of, if that is known."""
    if runs is not None and runs <= FEW_RUNS:
        return np.sort(keys, kind="stable")  # finds the runs and merges them
    return in_order(keys)


def truncated(keys: Keys, bits: int, cuts: tuple[float, ...]) -> Keys:
    """Return the lowest key of each key's bin; a cut begins a new bin.

    >>> truncated(keys_of([1.0, 1.3, 1.4]), 14, (1.35,)) == keys_of([1.0, 1.25, 1.35])
    array([ True,  True,  True])
    """
    if bits == EXACT:
        return keys
    lowest: Keys = np.maximum(first_key(bins_of(keys, bits), bits), LOWEST)
    for cut in keys_of(sorted(cuts)) if cuts else ():
        lowest[(keys >= cut) & (lowest < cut)] = cut
    return lowest


# ----------------------------------------------------------------------
# The disk.

DISK_BYTES: Final = 16
"""The disk space per trial: the keys of its score and of its id."""
SPARE: Final = 1.05
"""The factor by which free disk space must exceed what will be written."""


@contextmanager
def writing(folder: str | None) -> Iterator[None]:
    """Report a disk that cannot be written to."""
    try:
        yield
    except OSError as error:
        raise EnvironmentFault(
            f"the scores cannot be written to {folder or tempfile.gettempdir()} ({error.strerror}); name a folder with more "
            "room by --scratch, or allow more by --memory",
            code="no-room",
        ) from None


@dataclass(frozen=True)
class Disk:
    """Where keys go when memory holds more than `room` of them; `cuts` begin new bins in their coarse counts."""

    folder: str | None
    room: int
    cuts: tuple[float, ...] = ()

    def refuse_small(self, trials: int, each: int = DISK_BYTES) -> None:
        """Refuse a folder that is not there, or that has no room for so many trials of so many bytes each."""
        base, size = self.folder or tempfile.gettempdir(), SPARE * each * trials
        if not Path(base).is_dir():
            raise UsageError(f"--scratch {base}: there is no such folder; make it, or name another one")
        free = shutil.disk_usage(base).free
        if trials > self.room and free < size:
            raise EnvironmentFault(
                f"{size / 1e9:.1f} GB of temporary disk space are needed and {base} has {free / 1e9:.1f} GB; "
                "name a folder with more room by --scratch, or allow more by --memory"
            )

    def moved(self, cells: Mapping[Cell, Kept]) -> dict[Cell, Kept]:
        """Write the keys of cells, which are in memory, into a file without a name, and return them as they are there."""
        found, at = dict[Cell, Kept](), 0
        with writing(self.folder), tempfile.TemporaryFile(prefix="hitmiss-", dir=self.folder) as file:
            for kept in cells.values():
                for column in (kept.bins, kept.counts) if isinstance(kept, Binned) else ():
                    file.write(np.ascontiguousarray(column if column is not None else NO_KEYS).data)
            file.flush()
            whole = np.memmap(file, np.uint64, "r") if file.tell() else NO_KEYS
        for cell, kept in cells.items():
            assert isinstance(kept, Binned)  # what is on disk already is not merged with what is in memory
            keys, end = whole[at : at + len(kept.bins)], at + len(kept.bins)
            at = end if kept.counts is None else end + len(kept.bins)
            run = Binned(keys, None if kept.counts is None else whole[end:at].view(np.int64))
            found[cell] = Several((run,) if len(keys) else (), kept.coarse(self.cuts))
        return found


Ends = tuple[np.uint64, np.uint64]
"""The first and the last key of a stretch."""


def stretches(binned: Sequence[Binned], rows: int) -> list[Ends]:
    """Return stretches with about `rows` trials each, from low to high; a stretch begins at the start of a bin.

    >>> b = Binned(np.array([5, 7, 9], dtype=np.uint64), np.array([4, 4, 4]))
    >>> [(int(first), int(last)) for first, last in stretches([b], 8)] == [(0, 8), (9, int(HIGHEST))]
    True
    """
    every = merge_binned(binned)
    number = (np.cumsum(every.each) - 1) // max(rows, 1)
    first = np.append(np.uint64(0), every.bins[np.flatnonzero(number[1:] != number[:-1]) + 1])
    return list(zip(first, np.append(first[1:] - np.uint64(1), HIGHEST), strict=True))


# ----------------------------------------------------------------------
# Cells whose scores are all in memory, as the source of tallies for `measure`.

SPARSE: Final = 4
"""Scores with fewer repeats than this on average are written out one by one: sorting them is faster."""


@dataclass(frozen=True, eq=False)
class ExactCells:
    """Cells whose scores are all known."""

    binned: Sequence[Binned]
    is_short: ClassVar[bool] = False

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """Return the scores of some positive and some negative cells, counted together."""
        return tally_together(self._sides(positive, negative))

    def steps(self, positive: Rows, negative: Rows) -> Steps:
        """Return what the AUC of some cells and its variance need."""
        # keys have the order of the scores, and the AUC needs only the order
        classes = classes_of(self._sides(positive, negative))
        return Steps.of_tally(self.tally(positive, negative)) if classes is None else Steps.of_classes(*classes)

    def unit_sample(self, rows: Rows, positive: NDArray[np.bool_], unit: Counts, n_units: int) -> UnitSample:
        """Return the trials of some cells with their units."""
        keys = [np.repeat(own.bins, own.each) for own in (self.binned[row] for row in rows)]
        sizes, score = list(map(len, keys)), scores_of(np.concatenate([NO_KEYS, *keys]))
        return UnitSample.of(np.repeat(positive, sizes), score, np.repeat(unit, sizes), n_units)

    def _sides(self, positive: Rows, negative: Rows) -> list[list[Binned]]:
        return [[self.binned[row] for row in rows] for rows in (positive, negative)]


def classes_of(sides: Sequence[Sequence[Binned]]) -> tuple[Keys, Keys] | None:
    """Return the keys of both classes, ascending, with repeats; None if they repeat often."""
    total, held = (sum(f(b) for side in sides for b in side) for f in (lambda b: b.total, lambda b: len(b.bins)))
    return (_in_order(sides[0]), _in_order(sides[1])) if total <= SPARSE * held else None


def tally_together(sides: Sequence[Sequence[Binned]]) -> Tally:
    """Return the tally of both classes, each of which may be in several parts."""
    classes = classes_of(sides)
    if classes is not None:
        return Tally.of_sorted(scores_of(classes[0]), scores_of(classes[1]))
    return tally_of([merge_binned(side) for side in sides])


def tally_of(sides: Sequence[Binned]) -> Tally:
    """Return the tally of the positives and the negatives."""
    keys = merge_binned(sides).bins
    return Tally(scores_of(keys), *(_below(keys, side) for side in sides))


def _below(keys: Keys, side: Binned) -> Counts:
    """Return, for every i, how many trials of a side have one of the `i` lowest keys."""
    counts = np.zeros(len(keys) + 1, dtype=np.int64)
    np.add.at(counts, 1 + np.searchsorted(keys, side.bins), side.each)
    return np.cumsum(counts, out=counts)


def _in_order(side: Sequence[Binned]) -> Keys:
    """Return every key as often as it occurs, ascending."""
    keys = [b.bins if b.counts is None else np.repeat(b.bins, b.counts) for b in side]
    if len(keys) < 2:
        return keys[0] if keys else NO_KEYS
    return ordered(np.concatenate(keys), len(keys))


# ----------------------------------------------------------------------
# Cells with very many trials: every figure is that of the exact scores, and a sample needs little memory.
#
# 1  The coarse bins of a sample are counted finer where they hold much of it.
# 2  The scores of leaves (see `stats.sketch`) that may contain a crossing or a minimum cost, of the sample or of a
#    replicate, are fetched; everywhere else bins are enough.
# 3  Figures that need every score (AUC, Cllr, PAV) are computed while the scores are read in ascending order.

TIED: Final = 32
"""A bin with this many bits that is still heavy is probably one score with many trials: its scores are counted."""
ROW_BYTES: Final = 96
"""The memory per fetched score: its key, two copies while sorting, and its entry in a tally."""
STRETCH_BYTES: Final = 96
"""The memory per score of a stretch: its key, copies of it while sorting, and its entries in tallies."""
MOST: Final = 1000
"""The maximum number of stretches."""
PIECE: Final = 1 << 18
SampleKey = tuple[tuple[int, ...], tuple[int, ...]]
"""A sample, given by its positive and its negative cells."""


@dataclass(frozen=True, eq=False)
class CoarseCells:
    """Cells with very many trials: tallies are exact where it matters and hold the figures that need every score."""

    cells: Sequence[Kept]
    forms: tuple[Form, ...]
    memory: int
    _known: dict[SampleKey, tuple[Tally, Steps]] = field(default_factory=dict)
    is_short: ClassVar[bool] = True

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """Return the tally of some cells, shortened, with its figures."""
        return self._sample(positive, negative)[0]

    def steps(self, positive: Rows, negative: Rows) -> Steps:
        """Return the steps of the AUC of some cells; from their bins if nothing depends on its exact value."""
        return self._sample(positive, negative)[1]

    def unit_sample(self, rows: Rows, positive: NDArray[np.bool_], unit: Counts, n_units: int) -> UnitSample:
        """Refuse: the trials of these cells are not known by their units (see `outofcore.units`)."""
        del rows, positive, unit, n_units
        raise UsageError("drawing units needs every score at once, and these are too many to keep; raise --memory")

    def _sample(self, positive: Rows, negative: Rows) -> tuple[Tally, Steps]:
        key = tuple(positive.tolist()), tuple(negative.tolist())
        if key not in self._known:
            self._known[key] = self._read([[self.cells[row] for row in rows] for rows in key])
        return self._known[key]

    def _read(self, sides: list[list[Kept]]) -> tuple[Tally, Steps]:
        cuts = thresholds(self.forms)
        binned = self._refined(sides, [merge_binned([kept.coarse(cuts) for kept in side]) for side in sides], cuts)
        coarse = tally_of(binned)
        short = condense(tally_of(self._opened(sides, binned, coarse, cuts)), self.forms)
        steps, figures, tied = Steps.of_tally(coarse), dict[Form, float](), None
        # besides figures, warnings about reversed scores and about ties quote a value that needs every score
        is_quoted = short.has_both_classes and (steps.area < 0.51 or ties_differ(short))
        if is_quoted or any(form.every_score for form in self.forms):
            n1, n0 = int(coarse.n_positive), int(coarse.n_negative)
            own = {form: found for form in self.forms if (found := form.passing(n1, n0)) is not None}
            pairs = PassingSteps(n1, n0, steps.area if n1 and n0 else 0.5)
            self._sum(sides, stretches(binned, max(self.memory // STRETCH_BYTES, (n1 + n0) // MOST)), own, pairs)
            figures, steps = {form: one.value() for form, one in own.items()}, pairs.whole()
            tied = pairs.tied / max(n1 + n0, 1)
        return ReadTally(short.score, short.positives, short.negatives, figures, tied), steps

    def _refined(self, sides: list[list[Kept]], binned: list[Binned], cuts: tuple[float, ...]) -> list[Binned]:
        """Return the bins of a sample; those that are heavy are counted by finer bins, level by level."""
        for bits, next_bits in pairwise(LEVELS):
            first = heavy_bins(tally_of(binned), bits)
            if not len(first):
                break
            last, finer = first | np.uint64((1 << (EXACT - bits)) - 1), EXACT if bits >= TIED else next_bits
            binned = [_replaced(own, side, first, last, finer, cuts) for own, side in zip(binned, sides, strict=True)]
            if finer == EXACT:
                break
        return binned

    def _opened(
        self, sides: list[list[Kept]], binned: list[Binned], tally: Tally, cuts: tuple[float, ...]
    ) -> list[Binned]:
        """Return the bins with the scores of leaves that may contain a crossing or a minimum cost."""
        starts, lowest = leaves(tally, cuts)
        is_open, first = opened(tally, starts, self.forms), keys_of(lowest)
        last = np.append(first[1:], HIGHEST) - np.uint64(1)
        edges = (tally.positives + tally.negatives)[np.append(starts, len(tally.score))]
        rows = int(np.diff(edges)[is_open].sum())
        if rows * ROW_BYTES > self.memory:
            raise DataError(
                f"about {rows:,} trials lie where the figures are decided, which is more than the memory allowed; "
                f"raise --memory to {rows * ROW_BYTES / 1e9 + 0.4:.1f}GB, or group by less"
            )
        first, last = first[is_open], last[is_open]
        return [_replaced(own, side, first, last, EXACT, ()) for own, side in zip(binned, sides, strict=True)]

    def _sum(self, sides: list[list[Kept]], ends: list[Ends], own: Mapping[Form, Passing], pairs: PassingSteps) -> None:
        """Read all scores of a sample in ascending order, one stretch after the other."""
        for low, high in progress.each(ends, "reading sums over all scores"):
            held = [[piece for kept in side for piece in kept.pieces(low, high)] for side in sides]
            classes = None if own else classes_of(held)
            if classes is not None:
                for both in _class_pieces(*classes):
                    pairs.add(Steps.of_classes(*both, is_positive=True))
                continue
            for piece in _in_pieces(tally_together(held)):
                pairs.add(Steps.of_tally(piece, is_positive=True))
                for reader in own.values():
                    reader.add(piece)


def _replaced(
    binned: Binned, side: Sequence[Kept], first: Keys, last: Keys, bits: int, cuts: tuple[float, ...]
) -> Binned:
    """Return bins whose content between some keys is replaced by that of finer bins (or by the scores)."""
    at = np.searchsorted(first, binned.bins, side="right")
    outside = (at == 0) | (binned.bins > np.append(last, HIGHEST)[at - 1]) if len(first) else np.ones(len(at), bool)
    runs = np.flatnonzero(np.append(True, first[1:] != last[:-1] + np.uint64(1))[: len(first)])
    ends = zip(first[runs], last[np.append(runs[1:], len(first)) - 1] if len(first) else NO_KEYS, strict=True)
    inside = [kept.between(low, high).by_bits(bits, cuts) for low, high in ends for kept in side]
    return merge_binned([Binned(binned.bins[outside], binned.each[outside]), *inside])


def _in_pieces(tally: Tally) -> Iterator[Tally]:
    """Split a tally into several, from low to high, so that intermediate arrays stay small."""
    for start in range(0, len(tally.score), PIECE):
        p, q = (c[start : start + PIECE + 1] for c in (tally.positives, tally.negatives))
        yield Tally(tally.score[start : start + PIECE], p - p[0], q - q[0])


def _class_pieces(positive: Keys, negative: Keys) -> Iterator[tuple[Keys, Keys]]:
    """Split ascending keys into pieces with few positives each, so that intermediate arrays stay small; ties stay together."""
    cuts = positive[PIECE::PIECE]
    ends = [np.append(np.searchsorted(keys, cuts), len(keys)) for keys in (positive, negative)]
    at = 0, 0
    for end in zip(*ends, strict=True):
        yield positive[at[0] : end[0]], negative[at[1] : end[1]]
        at = end
