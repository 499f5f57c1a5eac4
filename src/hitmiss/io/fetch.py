"""Paths to the bytes of files, each read once."""

from __future__ import annotations

import glob
import hashlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from hitmiss.core import artifacts, progress
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.finding import Place
from hitmiss.io.addresses import STDIN, is_remote, name_of, table_of
from hitmiss.io.decode import one_line_end, refuse_empty, to_utf8, unpack_gzip
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.formats import ARROW, GZIP, HEAD_BYTES, PARQUET, ZIP, refuse_format
from hitmiss.io.remote import addresses_in, remote_pieces
from hitmiss.io.source import SourceBytes

STREAMS: Final = ("/dev/null", "/dev/stdin", "/dev/tty")
"""Devices that may be read: they end."""
PROGRESS_BYTES: Final = 64 * 2**20
"""Bytes of a large file that are read between progress reports."""


def expand(given: object) -> list[object]:
    """Return the single sources that an argument names: lists flattened, patterns expanded, frames unchanged."""
    if isinstance(given, list | tuple):
        found = [source for part in given for source in expand(part)]
        if not found:
            raise UsageError.of("missing-file/given")
        return found
    if is_remote(given):
        return [*addresses_in(str(given))]
    if isinstance(given, str) and given != STDIN and glob.has_magic(given) and not Path(given).exists():
        matches = sorted(glob.glob(given))  # noqa: PTH207  # patterns may be absolute, which Path.glob refuses
        if not matches:
            raise UsageError.of("no-match", pattern=given)
        return [Path(match) for match in matches]
    return [given]


def fetch(path: str | Path, encoding: str | None, ledger: Diagnostics) -> SourceBytes:
    """Read a file's content, once."""
    name = "stdin" if str(path) == STDIN else name_of(str(path)) if is_remote(path) else Path(path).name
    raw = _read(path, name, ledger)
    sha = hashlib.sha256(raw).hexdigest()
    data = unpack_gzip(raw, name, ledger) if raw.startswith(GZIP) else raw
    refuse_empty(data, name, ledger)
    if data.startswith(PARQUET) and data.endswith(PARQUET):
        return SourceBytes(name, sha, data, "parquet")
    if data.startswith(ARROW):
        return SourceBytes(name, sha, data, "arrow")
    if data.startswith(ZIP) and _is_workbook(data):
        return SourceBytes(name, sha, data, "xlsx")
    refuse_format(data[:HEAD_BYTES], name, ledger)
    if data.startswith(PARQUET) and b"\0" in data:
        raise ledger.stop("unreadable-file/cut", [Place(name)])
    text, used = to_utf8(data, name, encoding, ledger)
    refuse_empty(text, name, ledger)  # the file may have held only a byte-order mark
    return SourceBytes(name, sha, one_line_end(text, name, ledger), used)


def _is_workbook(data: bytes) -> bool:
    from hitmiss.io.xlsx import is_workbook  # slow to import, and needed for such files only

    return is_workbook(data)


def _read(path: str | Path, name: str, ledger: Diagnostics) -> bytes:
    """Read the bytes of a source unchanged."""
    if str(path) == STDIN:
        return sys.stdin.buffer.read()
    if is_remote(path):
        return _joined(remote_pieces(str(path)), name, ledger)
    if table_of(str(path)) is not None:
        raise UsageError.of("table-address", path=path)
    if Path(path).is_dir():
        raise ledger.stop("unreadable-file/folder", [Place(name or str(path))])
    if Path(path).is_char_device() and str(path) not in STREAMS:
        raise ledger.stop("unreadable-file/device", [Place(name or str(path))])
    artifacts.note_input(path)
    return _read_whole(Path(path))


def _joined(pieces: Iterable[bytes], name: str, ledger: Diagnostics) -> bytes:
    """Join the pieces of a remote file; one that is larger than what is read into memory is refused on the way."""
    found, done = [], 0
    for piece in pieces:
        found.append(piece)
        done += len(piece)
        if done > artifacts.MOST_BYTES:
            raise ledger.stop("unreadable-file/large", [Place(name)], most=artifacts.MOST_BYTES)
    return b"".join(found)


Stamp = tuple[int, int] | None


def stamp(path: str) -> Stamp:
    """Return the size and the modification time of a file; None if it is not there."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def refuse_changes(noted: Mapping[str, Stamp]) -> None:
    """Refuse files that were written to since their stamps were noted: those that are read several times must not change."""
    changed = [path for path, one in noted.items() if stamp(path) != one]
    if changed:
        raise DataError.of("changed-while-read", changed=changed[0])


def _read_whole(path: Path) -> bytes:
    """Read the bytes of a file, with progress reports if it is large."""
    size = path.stat().st_size
    if size <= PROGRESS_BYTES:
        return path.read_bytes()
    remote_pieces, done = [], 0
    with path.open("rb") as file:
        while piece := file.read(PROGRESS_BYTES):
            remote_pieces.append(piece)
            done += len(piece)
            progress.report(f"reading {path.name}, MB", done / 1e6, size / 1e6)
    return b"".join(remote_pieces)
