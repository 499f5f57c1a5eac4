"""A file in blocks of whole lines, hashed on the way, for readers that do not keep it: the bytes are those of `fetch`."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hitmiss.core import artifacts
from hitmiss.core.finding import Place
from hitmiss.io.addresses import STDIN
from hitmiss.io.decode import check_utf8, damaged_gzip, one_line_end, refuse_empty
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.formats import GZIP, HEAD_BYTES, PARQUET, refuse_format
from hitmiss.io.source import SourceBytes

BLOCK_BYTES: Final = 2**22
"""Bytes of text that are read at a time: more would not stay in the cache."""
LONGEST_LINE: Final = 2**26
"""The maximum length of a line in bytes: a compressed line could expand without end."""
PEEK_BYTES: Final = 2**17
UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class HashingFile:
    """A file whose bytes are hashed and counted as they are read."""

    def __init__(self, path: str | Path) -> None:
        self._file = Path(path).open("rb")  # noqa: SIM115  # closed on leaving
        self._sha = hashlib.sha256()
        self.bytes = 0

    def read(self, n: int = -1) -> bytes:
        """Read some bytes."""
        return self._noted(self._file.read(n))

    def readline(self, n: int = -1) -> bytes:
        """Read the bytes up to the next line end, at most `n`."""
        return self._noted(self._file.readline(n))

    def _noted(self, data: bytes) -> bytes:
        self._sha.update(data)
        self.bytes += len(data)
        return data

    def __enter__(self) -> HashingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def sha256(self) -> str:
        """The hash of what was read."""
        return self._sha.hexdigest()


def fetch_head(path: str | Path, ledger: Diagnostics) -> SourceBytes:
    """Read the first lines of a text, or nothing of a Parquet file."""
    if str(path) == STDIN:
        raise ledger.stop("unreadable-file/stdin", [Place("stdin")])
    name = Path(path).name
    artifacts.note_input(path)
    with Path(path).open("rb") as file:
        start = file.read(HEAD_BYTES)
    refuse_format(start, name, ledger, is_streamed=True)
    if start.startswith(PARQUET):
        return SourceBytes(name, "", b"", "parquet")
    with HashingFile(path) as meter, unpacked(meter, path) as text:
        try:
            head = text.read(PEEK_BYTES)
            while head.count(b"\n") < 2 and len(head) < LONGEST_LINE and (more := text.read(len(head))):
                head += more  # names of many columns are longer
            is_whole = len(head) < PEEK_BYTES or not text.read(1)
            head = head.removeprefix(codecs.BOM_UTF8)
        except (OSError, EOFError, zlib.error) as error:
            raise damaged_gzip(name, error, ledger) from None
    if head.startswith(UTF16):
        raise ledger.stop("unreadable-encoding/utf16", [Place(name)])
    lines = head if is_whole or b"\n" not in head else head[: head.rindex(b"\n") + 1]
    refuse_empty(lines, name, ledger)
    return SourceBytes(name, "", one_line_end(check_utf8(lines, name, 0, ledger), name, ledger), "utf-8")


def blocks(
    meter: HashingFile, path: str | Path, ledger: Diagnostics, *, is_quoted: bool = True
) -> Iterator[tuple[bytes, int]]:
    """Yield the text of a file, many whole lines at a time, each with the number of lines before it.

    `is_quoted`: a line end inside quotes does not end a row. In JSON lines it always does, and quotes need not pair.
    """
    name, before = Path(path).name, 0
    with unpacked(meter, path) as text:
        for block in _whole_lines(text, name, ledger, is_quoted):
            yield one_line_end(check_utf8(block, name, before, ledger), name, ledger), before
            before += block.count(b"\n")
        while meter.read(PEEK_BYTES):  # bytes after the end of the archive are part of the file's hash too
            pass


def unpacked(file: HashingFile, path: str | Path) -> HashingFile | gzip.GzipFile:
    """Return the file, decompressed if it is an archive."""
    with Path(path).open("rb") as start:
        is_packed = start.read(2) == GZIP
    return gzip.GzipFile(fileobj=file) if is_packed else file  # type: ignore[call-overload]


def digest(path: str | Path) -> tuple[str, int]:
    """Return the hash and the number of a file's bytes."""
    with HashingFile(path) as meter:
        while meter.read(PEEK_BYTES * 8):
            pass
        return meter.sha256, meter.bytes


def _whole_lines(text: HashingFile | gzip.GzipFile, name: str, ledger: Diagnostics, is_quoted: bool) -> Iterator[bytes]:
    """Yield whole lines, many at a time."""
    is_first = True
    while True:
        try:
            data = text.read(BLOCK_BYTES)
            if data and not data.endswith(b"\n"):
                data += text.readline(LONGEST_LINE)
            while is_quoted and len(data) < LONGEST_LINE and data.count(b'"') % 2:  # a quoted field continues
                more = text.readline(LONGEST_LINE)
                if not more:
                    break
                data += more
        except (OSError, EOFError, zlib.error) as error:
            raise damaged_gzip(name, error, ledger) from None
        if len(data) >= LONGEST_LINE:
            raise ledger.stop("oversized-line", [Place(name)], most=LONGEST_LINE)
        if not data:
            return
        yield data.removeprefix(codecs.BOM_UTF8) if is_first else data
        is_first = False
