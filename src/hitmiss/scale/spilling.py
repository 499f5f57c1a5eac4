"""Whole numbers put on disk in parts by their range, so that each part fits into memory: written once, read once.

with scratch_folder(None, n_bytes) as folder:
    parts = Parts(folder, first=(0, 2**63), code="u1")
    writer = Writer(parts)                       # any number of these, in any process that sees the folder
    writer.add(keys, codes)
    writer.flush()
    for keys, codes in parts.read(0, 10**6):     # the numbers below 2**63
        ...
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import EnvironmentFault, UsageError
from hitmiss.stats.sketch import COARSE, EXACT, Keys

Codes = NDArray[Any]
BUFFER: Final = 1 << 20
"""Numbers that a writer holds back before it writes: fewer would make too many small writes."""
SPARE: Final = 1.05
"""How much more than what will be written must be free."""


@dataclass(frozen=True)
class Parts:
    """Where numbers are put: a value that travels to whoever writes.

    first    the lowest number of each part, ascending; the first one is 0
    code     the numpy type of a small number that goes with each (`u1`, `u2`, `u4`); empty: none does
    """

    folder: str
    first: tuple[int, ...]
    code: str = ""

    def __len__(self) -> int:
        return len(self.first)

    def of(self, keys: Keys) -> NDArray[np.uint16]:
        """The part that each number belongs to. Most are told by their highest bits, which is quicker than a search."""
        found: NDArray[np.uint16] = self._table[(keys >> np.uint64(EXACT - COARSE)).view(np.int64)]
        unsure = np.flatnonzero(found == self._unsure)
        if len(unsure):
            found[unsure] = np.searchsorted(self._edges, keys[unsure], side="right") - 1
        return found

    @cached_property
    def _edges(self) -> Keys:
        return np.array(self.first, dtype=np.uint64)

    @cached_property
    def _unsure(self) -> int:
        return 2**16 - 1

    @cached_property
    def _table(self) -> NDArray[np.uint16]:
        lowest = np.arange(1 << COARSE, dtype=np.uint64) << np.uint64(EXACT - COARSE)
        highest = lowest | np.uint64((1 << (EXACT - COARSE)) - 1)
        low, high = (np.searchsorted(self._edges, ends, side="right") - 1 for ends in (lowest, highest))
        return np.where(low == high, low, self._unsure).astype(np.uint16)

    def read(self, part: int, most: int) -> Iterator[tuple[Keys, Codes]]:
        """The numbers of a part, at most so many at a time, in no order; with their codes where there are any."""
        for path in sorted(Path(self.folder).glob(f"{part:05d}-*.keys")):
            n = path.stat().st_size // 8
            for start in range(0, n, most):
                keys = np.fromfile(path, dtype=np.uint64, count=most, offset=8 * start)
                yield keys, self._codes(path, start, len(keys))

    def _codes(self, path: Path, start: int, n: int) -> Codes:
        if not self.code:
            return np.zeros(n, dtype=np.uint8)
        kind = np.dtype(self.code)
        return np.fromfile(path.with_suffix(".codes"), dtype=kind, count=n, offset=kind.itemsize * start)

    def size(self, part: int) -> int:
        """How many numbers a part holds."""
        return sum(path.stat().st_size // 8 for path in Path(self.folder).glob(f"{part:05d}-*.keys"))

    def drop(self, part: int) -> None:
        """Give back the disk space of a part."""
        for path in Path(self.folder).glob(f"{part:05d}-*"):
            path.unlink()


class Writer:
    """Puts numbers into parts; one a thread. What it wrote since it was made can be taken back."""

    def __init__(self, parts: Parts, buffer: int = BUFFER) -> None:
        self._parts, self._buffer = parts, buffer
        self._who = f"{os.getpid()}-{threading.get_ident()}"
        self._keys: list[Keys] = []
        self._codes: list[Codes] = []
        self._held = 0
        self._before: dict[Path, int] = {}

    def add(self, keys: Keys, codes: Codes | None = None) -> None:
        """Put some numbers."""
        self._keys.append(keys)
        if codes is not None:
            self._codes.append(codes.astype(self._parts.code))
        self._held += len(keys)
        if self._held >= self._buffer:
            self.flush()

    def flush(self) -> None:
        """Write what was held back."""
        if not self._held:
            return
        keys = np.concatenate(self._keys)
        part = self._parts.of(keys)
        order = np.argsort(part, kind="stable")  # of so small numbers it is a radix sort
        columns = {"keys": keys[order]}
        if self._codes:
            columns["codes"] = np.concatenate(self._codes)[order]
        ends = np.cumsum(np.bincount(part, minlength=len(self._parts))).tolist()
        for number, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            for suffix, column in columns.items() if end > start else ():
                self._append(f"{number:05d}-{self._who}.{suffix}", column[start:end])
        self._keys, self._codes, self._held = [], [], 0

    def _append(self, name: str, column: Codes) -> None:
        path = Path(self._parts.folder) / name
        try:
            with path.open("ab") as file:
                self._before.setdefault(path, file.tell())
                file.write(column.data)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise EnvironmentFault(_full(path.parent)) from None

    def discard(self) -> None:
        """Take back all that was put: the file is read again in another way."""
        self._keys, self._codes, self._held = [], [], 0
        for path, size in self._before.items():
            os.truncate(path, size)


def code_type(n: int) -> str:
    """The smallest type for so many codes.

    >>> code_type(1), code_type(24), code_type(300)
    ('', 'u1', 'u2')
    """
    return "" if n < 2 else "u1" if n <= 2**8 else "u2" if n <= 2**16 else "u4"


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


def _full(folder: Path) -> str:
    return f"the disk of {folder} is full; name a folder with more room by --scratch, or allow more by --memory"
