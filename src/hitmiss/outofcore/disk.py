"""Runs of sorted keys on disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from hitmiss.core.errors import EnvironmentFault, UsageError
from hitmiss.outofcore.binned import NO_KEYS, Binned, Cell, KeptKeys, Several

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
        raise EnvironmentFault.of("no-room", folder=folder or tempfile.gettempdir(), strerror=error.strerror) from None


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
            raise UsageError.of("no-folder/scratch", base=base)
        free = shutil.disk_usage(base).free
        if trials > self.room and free < size:
            raise EnvironmentFault.of("no-room/needed", size=size / 1000000000.0, base=base, free=free / 1000000000.0)

    def moved(self, cells: Mapping[Cell, KeptKeys]) -> dict[Cell, KeptKeys]:
        """Write the keys of cells, which are in memory, into a file without a name, and return them as they are there."""
        found, at = dict[Cell, KeptKeys](), 0
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
