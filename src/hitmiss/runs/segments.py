"""Append-only segments: one file per writer, one JSON object per line, each line written by one call.

If a process is killed, every record whose `append` has returned is kept; if the machine loses power, at most the
records since the last fsync (0.5 s or 64 lines) are lost. An incomplete last line is recognised and cut off.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, Fault
from hitmiss.runs.owner import file_locks

SYNC_SECONDS: Final = 0.5
SYNC_LINES: Final = 64
SAFE: Final = "what was written before is safe: free some space and run again with --resume"


class SegmentWriter:
    """Writes one segment. While open it holds a lock on the file, which other processes can see."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self._fd = _create(folder)
        self._size = self._unsynced = 0
        self._synced_at = time.monotonic()
        artifacts.sync_folder(folder)

    def append(self, record: Mapping[str, object]) -> None:
        """Write one record. Once this returns, killing the process cannot lose it."""
        line = json.dumps(record, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        write_whole(self._fd, line, self._size)
        self._size += len(line)
        self._unsynced += 1
        if self._unsynced >= SYNC_LINES or time.monotonic() - self._synced_at >= SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Flush the written records to disk."""
        if self._unsynced and self._fd >= 0:
            self._unsynced = 0
            self._synced_at = time.monotonic()
            os.fsync(self._fd)

    def close(self) -> None:
        """Sync and close; a segment without a line is removed."""
        if self._fd < 0:
            return
        with suppress(OSError):
            self.sync()
        if not self._size:
            with suppress(OSError):
                self.path.unlink()
        os.close(self._fd)
        self._fd = -1


@dataclass
class SegmentReader:
    """Reads the complete records of a segment, and continues from there on the next call."""

    path: Path
    offset: int = 0
    line: int = 0

    def records(self) -> Iterator[dict[str, object]]:
        """Yield the complete records since the last call. Anything after the last complete one is left for later."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            for raw in file:
                record = _record(raw)
                if record is None:
                    self._refuse_damage(raw, file.read())
                    return
                self.offset += len(raw)
                self.line += 1
                yield record

    def _refuse_damage(self, raw: bytes, rest: bytes) -> None:
        """Refuse a line that is not a record, unless it is an incomplete tail: no complete record follows it."""
        if any(_record(line) is not None for line in rest.splitlines(keepends=True)):
            fault = Fault(
                "damaged-run", "the line is not a record", self.path.name, self.line + 1, value=repr(raw[:60])
            )
            raise DataError.of("damaged-run/line", fault=str(fault)).at(fault)


def cut_torn_tail(path: Path) -> int:
    """Cut off what follows the last complete record of a segment without a running writer; return the bytes removed."""
    if is_live(path):
        return 0
    reader = SegmentReader(path)
    for _ in reader.records():
        pass
    torn = path.stat().st_size - reader.offset
    if torn:
        with path.open("r+b") as file:
            file.truncate(reader.offset)
            os.fsync(file.fileno())
    return torn


def is_live(path: Path) -> bool:
    """Return whether a running process holds the file."""
    fd = os.open(path, os.O_RDWR)
    try:
        return not _lock(fd)
    finally:
        os.close(fd)


def write_whole(fd: int, data: bytes, size: int) -> None:
    """Write all of `data` in one call; if the disk takes less, cut the file back to `size` and report a disk error."""
    try:
        if artifacts.push(fd, data) == len(data):
            return
        reason = "the disk took only a part of a record"
    except OSError as error:
        if error.errno not in artifacts.FULL:
            raise
        reason = os.strerror(error.errno or 0)
    with suppress(OSError):
        os.ftruncate(fd, size)
    raise artifacts.disk_full(reason, then=SAFE)


def replace_file(path: Path, data: bytes | Iterable[bytes], *, is_final: bool = False) -> None:
    """Replace a file of a run atomically: completely or not at all."""
    artifacts.write(path, data, then=SAFE, is_state=True, is_final=is_final)


def _record(raw: bytes) -> dict[str, object] | None:
    if not raw.endswith(b"\n"):
        return None
    try:
        record = json.loads(raw)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _create(folder: Path) -> tuple[Path, int]:
    """Create a file with the next free number, locked by this process."""
    number = 1 + max((int(p.stem) for p in folder.glob("*.jsonl") if p.stem.isdigit()), default=0)
    while True:
        path = folder / f"{number:06d}.jsonl"
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | artifacts.BINARY, 0o644)
        except FileExistsError:
            number += 1
            continue
        _lock(fd)
        return path, fd


def _lock(fd: int) -> bool:
    fcntl = file_locks()
    if fcntl is None:
        return True  # no other process can hold it: sharing a run between processes requires locks (see `Claims`)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
