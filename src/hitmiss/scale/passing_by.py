"""Every score of all shards once more, in ascending order, a stretch at a time.

Where the passes share a disk with us, one of them puts the scores there in parts by their range, and each part is read
once: two readings, however many trials there are. Elsewhere a pass a stretch brings its scores here.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core import progress
from hitmiss.core.errors import DataError, EnvironmentFault, UsageError
from hitmiss.scale.passes import put_pass, second_pass
from hitmiss.scale.plan import Shard, ShardPlan, Window
from hitmiss.scale.running import Executor, shares_disk
from hitmiss.scale.tallies import NOTHING, Binned, Cell, ShardTally, binned_by, merge_tallies, ranges_of
from hitmiss.stats.sketch import EXACT, Keys, keys_of

STRETCH_BYTES: Final = 96
"""What a score costs while its stretch is worked on: its key, copies of it while it is sorted, and its place in tallies."""
MOST: Final = 1000
"""Parts; each is a file for every shard."""
DISK_BYTES: Final = 13
"""What a score takes on disk: itself, the number of its cell, and what the file says about them."""
SPARE: Final = 1.05
"""How much more than what will be written must be free."""
CHANGED: Final = "the files changed while they were read; evaluate them again when nobody writes to them"


@dataclass(frozen=True)
class Stretches:
    """The scores of shards, stretch by stretch: `Stretches(…)(binned)` gives the scores of each cell, from low to high.

    `scratch` is the folder in which a folder for a while is made.
    """

    shards: Sequence[Shard]
    plan: ShardPlan
    run: Executor
    cells: tuple[Cell, ...]
    memory: int
    scratch: str | None = None

    def __call__(self, binned: Sequence[Binned]) -> Iterator[list[Binned]]:
        """All stretches; `binned` tells how many trials lie where. Close it where it is left before its end."""
        n = sum(b.total for b in binned)
        first = firsts_of(binned, max(self.memory // STRETCH_BYTES, n // MOST, 1))
        found = self._from_disk(first, n) if shares_disk(self.run) else self._fetched(first)
        held = 0
        for part in progress.each(range(len(first)), "reading sums over all scores"):
            cells = next(found)
            held += sum(b.total for b in cells)
            if held > n or (part + 1 == len(first) and held < n):
                raise DataError(CHANGED)
            yield cells

    def _from_disk(self, first: Keys, n: int) -> Iterator[list[Binned]]:
        with scratch_folder(self.scratch, n * DISK_BYTES) as folder:
            lowest = tuple(ends[0] for ends in ranges_of(first, first))
            names = [str(Path(folder) / str(at)) for at in range(len(self.shards))]
            calls = [
                (shard, self.plan, self.cells, lowest, name) for shard, name in zip(self.shards, names, strict=True)
            ]
            for done, _ in enumerate(self.run(put_pass, calls), 1):
                progress.tell("scores put in order", done, len(calls))
            for part in range(len(first)):
                paths = [Path(name) / f"part={part}" for name in names]
                yield self._read([path for path in paths if path.exists()])
                for path in paths:
                    shutil.rmtree(path, ignore_errors=True)

    def _read(self, folders: Sequence[Path]) -> list[Binned]:
        if not folders:
            return [NOTHING] * len(self.cells)
        lazy = pl.scan_parquet([path / "*.parquet" for path in folders])
        if lazy.select(pl.len()).collect().item() * STRETCH_BYTES > 2 * self.memory:  # many trials share few scores
            lazy = lazy.group_by("code", "score").agg(n=pl.len())
        found = lazy.collect(engine="streaming")
        counts = found["n"].cast(pl.Int64).to_numpy() if "n" in found.columns else None
        return binned_by(found["code"].to_numpy(), keys_of(found["score"].to_numpy()), counts, len(self.cells))

    def _fetched(self, first: Keys) -> Iterator[list[Binned]]:
        last = np.append(first[1:] - np.uint64(1), np.uint64(2**64 - 1))
        calls = [(shard, self.plan, Window(EXACT, (ends,))) for ends in ranges_of(first, last) for shard in self.shards]
        found = self.run(second_pass, calls)
        for _ in first:
            tally: ShardTally = merge_tallies(islice(found, len(self.shards)))
            yield [tally.cells.get(cell, NOTHING) for cell in self.cells]


def firsts_of(binned: Sequence[Binned], rows: int) -> Keys:
    """The lowest keys of stretches with about so many trials each; a stretch begins where a bin does.

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
    """A new folder with room for so many bytes, gone afterwards, whatever happens (but for kill −9).

    `within` is the folder that it is made in; None: the system's folder for temporary files (TMPDIR).
    """
    from hitmiss.detect.loop import stop_on_terminate

    base = within or tempfile.gettempdir()
    if not Path(base).is_dir():
        raise UsageError(f"--scratch {base}: there is no such folder; make it, or name another one")
    free = shutil.disk_usage(base).free
    if free < SPARE * size:
        raise EnvironmentFault(
            f"{SPARE * size / 1e9:.1f} GB of disk are needed for a while and {base} has {free / 1e9:.1f} GB; "
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
