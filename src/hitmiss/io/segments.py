"""Append-only segments: one file a writer, one JSON object a line, each line written by one call.

A process that is killed loses nothing that `append` has returned from; a machine that loses power loses at most what was
written since the last fsync (0.5 s or 64 lines). A torn last line is recognised and cut off.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hitmiss import artifacts
from hitmiss.errors import DataError, Fault
from hitmiss.io.locks import file_locks

SYNC_SECONDS: Final = 0.5
SYNC_LINES: Final = 64
SAFE: Final = "what was written before is safe: make room and run again with --resume"


class SegmentWriter:
    """Writes one segment of its own. While it lives it holds a lock on the file; others can see that it does."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self._fd = _create(folder)
        self._size = self._unsynced = 0
        self._synced_at = time.monotonic()
        artifacts.sync_folder(folder)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record. When this returns, killing the process cannot lose it."""
        line = json.dumps(record, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        write_whole(self._fd, line, self._size)
        self._size += len(line)
        self._unsynced += 1
        if self._unsynced >= SYNC_LINES or time.monotonic() - self._synced_at >= SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Have the disk hold what was written."""
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
    """Reads a segment as far as it is whole, and goes on from there when asked again."""

    path: Path
    offset: int = 0
    line: int = 0

    def records(self) -> Iterator[dict[str, Any]]:
        """The whole records since the last call. What follows the last whole one is left for later."""
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
        """A line that is no record is a torn tail only where no whole record follows it."""
        if any(_record(line) is not None for line in rest.splitlines(keepends=True)):
            fault = Fault("damaged-run", "the line is no record", self.path.name, self.line + 1, value=repr(raw[:60]))
            raise DataError(f"the run is damaged: {fault}; the lines after it are whole", [fault])


def cut_torn_tail(path: Path) -> int:
    """Cut off what follows the last whole record of a segment whose writer is gone; how many bytes that was."""
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
    """Whether a living process holds the file."""
    fd = os.open(path, os.O_RDWR)
    try:
        return not _lock(fd)
    finally:
        os.close(fd)


def write_whole(fd: int, data: bytes, size: int) -> None:
    """One write call for all of `data`; where the disk takes less, the file is cut back to `size` and the disk is blamed."""
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


def replace_file(path: Path, data: bytes, *, is_final: bool = False) -> None:
    """Put a file of a run in place whole or not at all."""
    artifacts.write(path, data, then=SAFE, is_state=True, is_final=is_final)


def _record(raw: bytes) -> dict[str, Any] | None:
    if not raw.endswith(b"\n"):
        return None
    try:
        record = json.loads(raw)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _create(folder: Path) -> tuple[Path, int]:
    """The next free number as a new file, held by this process."""
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
        return True  # nobody else can hold it, as a run that several processes share needs locks (see `Claims`)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
