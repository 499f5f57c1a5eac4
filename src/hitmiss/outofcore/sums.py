"""Figures that need every score, computed while the scores are streamed in ascending order."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from hitmiss.core import shared
from hitmiss.core.errors import DataError, EnvironmentFault, UsageError
from hitmiss.core.tally import EXACT, Floats, Keys, Tally
from hitmiss.outofcore.count import put as put_pass
from hitmiss.outofcore.count import second_pass
from hitmiss.outofcore.plan import (
    NOTHING,
    Binned,
    Cell,
    Counts,
    ExactCells,
    Executor,
    Shard,
    ShardPlan,
    ShardTally,
    Window,
    counted,
    merge_binned,
    merge_tallies,
    ordered,
    ranges_of,
    shares_disk,
)
from hitmiss.stats.forms import Form, Passing
from hitmiss.stats.intervals import Steps, standing, whole_sum

# ----------------------------------------------------------------------
# The AUC and its variance, computed while the scores are streamed in ascending order (others: `stats.forms.Passing`).
#
# The scores of a sample come as tallies of one stretch after the other. Sums are added in exactly the same order as in
# memory, because floating-point addition depends on the order: this makes the figures equal to the last bit.


@dataclass(eq=False)
class Pairs:
    """Correctly ordered pairs, counted in whole numbers; and the spread of the shares around a guess of their mean."""

    n_positive: int
    n_negative: int
    guess: float
    below: tuple[int, int] = (0, 0)
    twice: int = 0
    tied: int = 0
    moments: Floats = field(default_factory=lambda: np.zeros(4))

    def add(self, part: Tally) -> None:
        """Add the next stretch of scores."""
        p0, q0 = self.below
        p, q = part.positives.astype(np.int64) + p0, part.negatives.astype(np.int64) + q0
        gained, lost = part.positive_counts, part.negative_counts
        under, over = q[:-1] + q[1:], p[:-1] + p[1:]
        self.twice += int(whole_sum(gained.astype(np.int64), under))
        self.tied += int((gained + lost)[(gained > 0) & (lost > 0)].sum())
        # Moments are taken around a guess of the mean: the variance below subtracts two sums, and around 0 these would be
        # large and nearly equal, so that most digits cancel.
        right = (0.5 / max(self.n_negative, 1)) * under - self.guess
        wrong = (1.0 - self.guess) - (0.5 / max(self.n_positive, 1)) * over
        for i, (counts, share) in enumerate(((gained, right), (lost, wrong))):
            self.moments[2 * i] += float(np.sum(counts * share))
            self.moments[2 * i + 1] += float(np.sum(counts * share * share))
        self.below = int(p[-1]), int(q[-1])

    def add_classes(self, positive: Keys, negative: Keys) -> None:
        """Add the next stretch, given as ascending keys of each class: only the positives are looped over."""
        p0, q0 = self.below
        held, below, upto = standing(positive, negative)
        under, tied = below + upto + 2 * q0, upto - below
        self.twice += int(whole_sum(held, under))
        self.tied += int(np.sum((held + tied)[tied > 0]))
        own = (0.5 / max(self.n_negative, 1)) * under - self.guess
        passed = np.append(0, np.cumsum(held)) + p0  # positives before each step and after the last
        between = np.append(below, len(negative)) - np.append(0, upto)
        apart, level = ((1.0 - self.guess) - p / max(self.n_positive, 1) for p in (passed, passed[:-1] + 0.5 * held))
        self.moments[0] += float(np.sum(held * own))
        self.moments[1] += float(np.sum(held * own * own))
        self.moments[2] += float(np.sum(between * apart)) + float(np.sum(tied * level))
        self.moments[3] += float(np.sum(between * apart * apart)) + float(np.sum(tied * level * level))
        self.below = p0 + len(positive), q0 + len(negative)

    @property
    def tied_mass(self) -> float:
        """The share of trials whose score occurs in both classes."""
        return self.tied / max(self.n_positive + self.n_negative, 1)

    def steps(self) -> Steps:
        """Return the AUC, exact to the last bit, and its variance."""
        return KnownSteps.of(self)


@dataclass(frozen=True, eq=False)
class KnownSteps(Steps):
    """An AUC whose area and variance are known."""

    @classmethod
    def of(cls, pairs: Pairs) -> KnownSteps:
        """Make it from counted pairs."""
        nothing = np.zeros(0, dtype=np.int64)
        made = cls(nothing, nothing, nothing, pairs.n_positive, pairs.n_negative, True)
        total = pairs.n_positive * pairs.n_negative
        made.__dict__["area"] = pairs.twice / (2 * total) if total else math.nan
        made.__dict__["variance"] = _variance(pairs)
        return made


def _variance(pairs: Pairs) -> float:
    if pairs.n_positive < 2 or pairs.n_negative < 2:
        return math.nan
    found = 0.0
    for n, (first, second) in zip(
        (pairs.n_positive, pairs.n_negative), pairs.moments.reshape(2, 2).tolist(), strict=True
    ):
        found += (second - first * first / n) / (n - 1) / n
    return found


# ----------------------------------------------------------------------
# Figures that need every score (AUC, Cllr, Brier, PAV), for all samples of a measurement in one stream of scores.

SampleKey = tuple[tuple[int, ...], tuple[int, ...]]
"""A sample, given by its positive and its negative cells."""
PIECE: Final = 1 << 18


@dataclass(frozen=True, eq=False)
class Sums:
    """The figures that needed every score, per sample."""

    figures: Mapping[SampleKey, Mapping[Form, float]] = field(default_factory=dict)
    areas: Mapping[SampleKey, Steps] = field(default_factory=dict)
    tied: Mapping[SampleKey, float] = field(default_factory=dict)


def read_sums(
    binned: Sequence[Binned],
    asked: Mapping[SampleKey, Tally],
    forms: Sequence[Form],
    stretches: Callable[[Sequence[Binned]], Iterator[list[Binned]]],
) -> Sums:
    """Compute the figures of all samples. `stretches` yields the scores of all cells, one stretch after the other."""
    readers: dict[SampleKey, tuple[dict[Form, Passing], Pairs]] = {}
    for key, tally in asked.items():
        n1, n0 = int(tally.n_positive), int(tally.n_negative)
        own = {form: found for form in forms if (found := form.passing(n1, n0)) is not None}
        readers[key] = own, Pairs(n1, n0, Steps.of_tally(tally).area if n1 and n0 else 0.5)
    passes: Any = stretches(binned)
    with closing(passes):
        for part in passes:
            for key, (own, pairs) in readers.items():
                _read(ExactCells(part), key, own, pairs)
    figures = {key: {form: reader.value() for form, reader in own.items()} for key, (own, _) in readers.items()}
    counted = {key: pairs for key, (_, pairs) in readers.items()}
    return Sums(figures, {k: p.steps() for k, p in counted.items()}, {k: p.tied_mass for k, p in counted.items()})


def _read(part: ExactCells, key: SampleKey, own: Mapping[Form, Passing], pairs: Pairs) -> None:
    positive, negative = (np.array(rows, dtype=np.intp) for rows in key)
    classes = None if own else part.classes(positive, negative)
    if classes is not None:
        pairs.add_classes(*classes)
        return
    for piece in _in_pieces(part.tally(positive, negative)):
        pairs.add(piece)
        for reader in own.values():
            reader.add(piece)


def _in_pieces(tally: Tally) -> Iterator[Tally]:
    """Split a tally into several, from low to high, so that intermediate arrays stay small."""
    for start in range(0, len(tally.score), PIECE):
        p, q = (c[start : start + PIECE + 1] for c in (tally.positives, tally.negatives))
        yield Tally(tally.score[start : start + PIECE], p - p[0], q - q[0])


# ----------------------------------------------------------------------
# Every score of all shards once more, in ascending order, one stretch at a time.
#
# If the passes share a disk with this process, one pass writes the scores there, partitioned by range, and each part is
# read once: two readings, however many trials there are. Otherwise one pass per stretch transfers its scores here.

STRETCH_BYTES: Final = 96
"""The memory per score of a stretch: its key, copies of it while sorting, and its entries in tallies."""
MOST: Final = 1000
"""The maximum number of parts; each is one file per shard."""
DISK_BYTES: Final = 8
"""The disk space per score: its key."""
SPARE: Final = 1.05
"""The factor by which free disk space must exceed what will be written."""
CHANGED: Final = "the files changed while they were read; evaluate them again when no other process writes to them"


@dataclass(frozen=True)
class Stretches:
    """The scores of shards in stretches: `Stretches(…)(binned)` yields the scores of each cell, from low to high.

    `scratch` is the folder in which the temporary folder is made.
    """

    shards: Sequence[Shard]
    plan: ShardPlan
    run: Executor
    cells: tuple[Cell, ...]
    memory: int
    scratch: str | None = None

    def __call__(self, binned: Sequence[Binned]) -> Iterator[list[Binned]]:
        """Yield all stretches; `binned` says how many trials lie where. Close the generator if it is left early."""
        n = sum(b.total for b in binned)
        first = firsts_of(binned, max(self.memory // STRETCH_BYTES, n // MOST, 1))
        found = self._from_disk(first, n) if shares_disk(self.run) else self._fetched(first)
        held = 0
        for part in shared.each(range(len(first)), "reading sums over all scores"):
            cells = next(found)
            held += sum(b.total for b in cells)
            # The first pass knows how many trials there are: another number means that a file has changed since.
            if held > n or (part + 1 == len(first) and held < n):
                raise DataError(CHANGED)
            yield cells

    def _from_disk(self, first: Keys, n: int) -> Iterator[list[Binned]]:
        with scratch_folder(self.scratch, n * DISK_BYTES) as folder:
            names = [Path(folder) / str(at) for at in range(len(self.shards))]
            lowest = tuple(first.tolist())
            calls = [(s, self.plan, self.cells, lowest, str(at)) for s, at in zip(self.shards, names, strict=True)]
            written: list[Counts] = []
            try:
                for held in self.run(put_pass, calls):
                    written.append(held)
                    shared.tell("scores put in order", len(written), len(calls))
            except OSError as error:
                raise EnvironmentFault(
                    f"the scores cannot be written to {Path(folder).parent} ({error.strerror}); name a folder with more "
                    "room by --scratch, or allow more by --memory",
                    code="no-room",
                ) from None
            for part in range(len(first)):
                files = [(name / str(part), held[:, part]) for name, held in zip(names, written, strict=True)]
                yield self._read([(path, held) for path, held in files if held.any()])
                for path, _ in files:
                    path.unlink(missing_ok=True)

    def _read(self, files: Sequence[tuple[Path, Counts]]) -> list[Binned]:
        """Return the scores of one part: files of keys, and how many of them each piece and cell has."""
        counted_so_far, waiting = [NOTHING] * len(self.cells), [list[Keys]() for _ in self.cells]
        room = 2 * self.memory // STRETCH_BYTES
        for path, held in files:
            keys = np.memmap(path, dtype=np.uint64, mode="r")
            for piece, rows in zip(np.split(keys, np.cumsum(held.sum(axis=1))[:-1]), held, strict=True):
                for own, block in zip(waiting, np.split(piece, np.cumsum(rows)[:-1]), strict=True):
                    own.append(block)
                room -= len(piece)
                if room < 0:  # many trials share few scores
                    counted_so_far = _added(counted_so_far, waiting)
                    waiting, room = [[] for _ in self.cells], 2 * self.memory // STRETCH_BYTES
        return _added(counted_so_far, waiting)

    def _fetched(self, first: Keys) -> Iterator[list[Binned]]:
        last = np.append(first[1:] - np.uint64(1), np.uint64(2**64 - 1))
        calls = [(shard, self.plan, Window(EXACT, (ends,))) for ends in ranges_of(first, last) for shard in self.shards]
        found = self.run(second_pass, calls)
        for _ in first:
            tally: ShardTally = merge_tallies(islice(found, len(self.shards)))
            yield [tally.cells.get(cell, NOTHING) for cell in self.cells]


def _added(known: Sequence[Binned], more: Sequence[Sequence[Keys]]) -> list[Binned]:
    """Return the counts of each cell with further keys."""
    return [
        merge_binned([old, counted(ordered(np.concatenate(new)))]) if new else old
        for old, new in zip(known, more, strict=True)
    ]


def firsts_of(binned: Sequence[Binned], rows: int) -> Keys:
    """Return the lowest keys of stretches with about `rows` trials each; a stretch begins at the start of a bin.

    >>> b = Binned(np.array([5, 7, 9], dtype=np.uint64), np.array([4, 4, 4]))
    >>> firsts_of([b], 8).tolist(), firsts_of([b], 100).tolist()
    ([0, 9], [0])
    """
    keys = np.concatenate([b.bins for b in binned])
    bins, place = np.unique(keys, return_inverse=True)
    total = np.cumsum(np.bincount(place, weights=np.concatenate([b.each for b in binned]), minlength=len(bins)))
    number = (total - 1) // rows
    starts = np.flatnonzero(number[1:] != number[:-1]) + 1
    return np.append(np.uint64(0), bins[starts])


@contextmanager
def scratch_folder(within: str | None, size: int) -> Iterator[str]:
    """Make a folder with room for `size` bytes; it is always removed afterwards, except after kill −9.

    `within` is the folder that it is made in; None: the system's folder for temporary files (TMPDIR).
    """
    from hitmiss.detection.loop import stop_on_terminate

    base = within or tempfile.gettempdir()
    if not Path(base).is_dir():
        raise UsageError(f"--scratch {base}: there is no such folder; make it, or name another one")
    free = shutil.disk_usage(base).free
    if free < SPARE * size:
        raise EnvironmentFault(
            f"{SPARE * size / 1e9:.1f} GB of temporary disk space are needed and {base} has {free / 1e9:.1f} GB; "
            "name a folder with more room by --scratch, or allow more by --memory"
        )
    with stop_on_terminate():
        try:
            folder = tempfile.mkdtemp(prefix="hitmiss-", dir=base)
        except OSError as error:
            raise EnvironmentFault(
                f"{base} cannot be written to ({error.strerror}); name another folder by --scratch"
            ) from None
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
