"""Paths to bytes, and bytes to settled text: UTF-8 with `\\n` line ends, or a finding that says where it fails."""

from __future__ import annotations

import codecs
import glob
import gzip
import hashlib
import io
import re
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hitmiss import artifacts, progress
from hitmiss.errors import UsageError
from hitmiss.io.findings import Ledger, Place, Stop

STDIN: Final = "-"
BOMS: Final = (  # UTF-32 before UTF-16, whose little-endian mark it begins with
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
NUL: Final = "a NUL byte stands in the text"
NUL_FIX: Final = "mend the file, or say --encoding"
BLANK: Final = b" \t\r\n\0"
GZIP: Final = b"\x1f\x8b"
PARQUET: Final = b"PAR1"
ARROW: Final = b"ARROW1"
HEAD_BYTES: Final = 16
REMOTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/{1,2}\S")
PIECE: Final = 16 * 2**20
"""Bytes of a large file that are read before a word is said on how far it is."""


@dataclass(frozen=True)
class Content:
    """A file's bytes, unpacked and settled, with the hash of what lies on the disk."""

    name: str
    sha256: str
    data: bytes
    encoding: str

    @property
    def is_parquet(self) -> bool:
        """Whether the bytes are a table of typed columns, Parquet or Arrow, and not text."""
        return self.encoding in ("parquet", "arrow")

    @property
    def is_arrow(self) -> bool:
        """Whether the bytes are an Arrow (Feather) file."""
        return self.encoding == "arrow"


def expand(given: Any) -> list[Any]:
    """The single sources that an argument stands for: lists flattened, patterns expanded, frames left alone."""
    if isinstance(given, list | tuple):
        found = [source for part in given for source in expand(part)]
        if not found:
            raise UsageError("no file was given")
        return found
    if isinstance(given, str) and given != STDIN and glob.has_magic(given) and not Path(given).exists():
        matches = sorted(glob.glob(given))  # noqa: PTH207  # patterns may be absolute, which Path.glob refuses
        if not matches:
            raise UsageError(f"no file matches {given!r}")
        return [Path(match) for match in matches]
    return [given]


def fetch(path: str | Path, encoding: str | None, ledger: Ledger) -> Content:
    """A file's content, read once."""
    is_stdin = str(path) == STDIN
    name = "stdin" if is_stdin else Path(path).name
    if not is_stdin and Path(path).is_dir():
        what, fix = "it is a folder, and no run of hitmiss", "give the files in it, as 'FOLDER/*.csv'"
        raise ledger.stop("unreadable-file", what, fix, [Place(name or str(path))])
    if not is_stdin:
        refuse_remote(path)
    artifacts.note_input(path)
    raw = sys.stdin.buffer.read() if is_stdin else _read_whole(Path(path))
    sha = hashlib.sha256(raw).hexdigest()
    data = _unpack(raw, name, ledger) if raw.startswith(GZIP) else raw
    _refuse_empty(data, name, ledger)
    if data.startswith(PARQUET) and data.endswith(PARQUET):
        return Content(name, sha, data, "parquet")
    if data.startswith(ARROW):
        return Content(name, sha, data, "arrow")
    refuse_format(data[:HEAD_BYTES], name, ledger)
    if data.startswith(PARQUET) and b"\0" in data:
        what = "it begins as a Parquet file and does not end as one"
        raise ledger.stop("unreadable-file", what, "make or fetch it again", [Place(name)])
    text, used = _settle(data, name, encoding, ledger)
    _refuse_empty(text, name, ledger)  # a byte-order mark may have been all there was
    return Content(name, sha, one_line_end(text, name, ledger), used)


BINARY: Final = (
    (b"\x93NUMPY", "a NumPy array (.npy)", "save ids and scores as CSV"),
    (b"PK\x03\x04", "a zip archive (.npz, .xlsx, .zip)", "save ids and scores as CSV or Parquet"),
    (b"\x80\x02", "a Python pickle", "pickles are not opened, as they can run programs; save ids and scores as CSV"),
    (b"\x80\x03", "a Python pickle", "pickles are not opened, as they can run programs; save ids and scores as CSV"),
    (b"\x80\x04", "a Python pickle", "pickles are not opened, as they can run programs; save ids and scores as CSV"),
    (b"\x80\x05", "a Python pickle", "pickles are not opened, as they can run programs; save ids and scores as CSV"),
    (b"SQLite format 3", "an SQLite database", "export the table as CSV"),
    (b"\x89HDF", "an HDF5 file", "save ids and scores as CSV or Parquet"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it"),
    (b"\xd0\xcf\x11\xe0", "an old workbook (.xls)", "save the table as CSV"),
    (b"ORC", "an ORC file", "save it as Parquet"),
    (b"FEA1", "a Feather file of version 1", "save it as Parquet"),
    (b"%PDF", "a PDF", "give the table itself, as CSV"),
    (b"BZh", "a bzip2 archive", "unpack it"),
    (b"\xfd7zXZ", "an xz archive", "unpack it"),
)
"""How files begin that hold no text, what they are, and what to do."""


def refuse_remote(path: str | Path) -> None:
    """Stop at an address of a network, which a path would make a folder of."""
    text = str(path)
    if REMOTE.match(text) and not Path(text).exists():
        raise UsageError(
            f"{text} is an address: files are read from this machine alone; fetch it first (curl -O, aws s3 cp, "
            "gsutil cp, huggingface-cli download) and give its path",
            code="remote-file",
        )


def refuse_format(start: bytes, name: str, ledger: Ledger, *, is_streamed: bool = False) -> None:
    """Stop at a file whose first bytes say that it is no table that is read here."""
    if is_streamed and start.startswith(ARROW):
        what, fix = "it is an Arrow file, which is read whole", "write it as Parquet, or leave --stream out"
        raise ledger.stop("binary-file", what, fix, [Place(name)])
    for magic, kind, fix in BINARY:
        if start.startswith(magic) and (
            b"\0" in start or not start.isascii() or magic in (b"%PDF", b"SQLite format 3")
        ):
            raise ledger.stop("binary-file", f"it is {kind}, not text", fix, [Place(name)])


def _refuse_empty(data: bytes, name: str, ledger: Ledger) -> None:
    if not data[:4096].strip(BLANK) and not data.strip(BLANK):
        raise ledger.stop("empty-file", "the file holds no rows", "give a file with rows", [Place(name)])


def _read_whole(path: Path) -> bytes:
    """The bytes of a file; how far it is is told where it is large."""
    size = path.stat().st_size
    if size <= PIECE:
        return path.read_bytes()
    pieces, done = [], 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            pieces.append(piece)
            done += len(piece)
            progress.tell(f"reading {path.name}, MB", done / 1e6, size / 1e6)
    return b"".join(pieces)


def _unpack(raw: bytes, name: str, ledger: Ledger) -> bytes:
    """Gunzip, giving up on what unfolds beyond reason before it fills the memory."""
    out = io.BytesIO()
    limit = artifacts.unfolded(len(raw))
    try:
        packed_at = io.BytesIO(raw)
        with gzip.GzipFile(fileobj=packed_at) as packed:
            while chunk := packed.read(2**22):
                out.write(chunk)
                progress.tell(f"unpacking {name}, MB", packed_at.tell() / 1e6, len(raw) / 1e6)
                if out.tell() > limit:
                    fix = "unpack it by hand if you trust it"
                    raise ledger.stop(
                        "oversized-archive", f"the archive unfolds beyond {limit:,} bytes", fix, [Place(name)]
                    )
    except (OSError, EOFError, zlib.error) as error:
        what = f"the gzip archive is damaged ({error})"
        raise ledger.stop("unreadable-file", what, "make or fetch it again", [Place(name)]) from None
    return out.getvalue()


def _settle(data: bytes, name: str, encoding: str | None, ledger: Ledger) -> tuple[bytes, str]:
    """UTF-8 bytes without a byte-order mark, and the encoding that the file had."""
    if encoding is not None:
        return _decode(data, encoding, name, ledger), encoding
    for mark, used in BOMS:
        if data.startswith(mark):
            return _decode(data[len(mark) :], used, name, ledger), f"{used} with BOM"
    if b"\0" in data:
        return _settle_nul(data, name, ledger)
    if data.isascii():
        return data, "utf-8"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _settle_latin(data, error.start, name, ledger)
    return data, "utf-8"


def _settle_nul(data: bytes, name: str, ledger: Ledger) -> tuple[bytes, str]:
    """Text with NUL bytes is UTF-16 without its mark where every second byte of the start is NUL, else damaged."""
    head = data[:4096]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if len(data) % 2 == 0 and min(even, odd) == 0 and max(even, odd) * 2.5 >= len(head) / 2:
        used = "utf-16-le" if odd else "utf-16-be"
        ledger.notes.append(f"{name}: read as {used}, which its NUL bytes show; it has no byte-order mark")
        return _decode(data, used, name, ledger), used
    raise _unreadable(NUL, data, data.index(b"\0"), name, ledger, NUL_FIX)


def _settle_latin(data: bytes, start: int, name: str, ledger: Ledger) -> tuple[bytes, str]:
    # In latin-1 these bytes are invisible controls: the file is something else, and guessing would misread ids.
    if any(bytes((code,)) in data for code in range(0x80, 0xA0)):
        raise _unreadable(
            "the text is neither UTF-8 nor latin-1", data, start, name, ledger, "say --encoding, as cp1252"
        )
    ledger.notes.append(f"{name}: not UTF-8, read as latin-1; say --encoding if that is wrong")
    return data.decode("latin-1").encode(), "latin-1"


def _decode(data: bytes, encoding: str, name: str, ledger: Ledger) -> bytes:
    try:
        if encoding == "utf-8":
            data.decode(encoding)
            text = data
        else:
            text = data.decode(encoding).removeprefix("\ufeff").encode()
    except LookupError:
        raise UsageError(f"unknown encoding {encoding!r}") from None
    except UnicodeDecodeError as error:
        raise _unreadable(f"the text is not {encoding}", data, error.start, name, ledger, "say --encoding") from None
    except UnicodeEncodeError:
        raise _unreadable(
            f"the {encoding} text holds half a character", data, 0, name, ledger, "mend the file"
        ) from None
    if b"\0" in text:
        raise _unreadable(NUL, text, text.index(b"\0"), name, ledger, NUL_FIX)
    return text


def _unreadable(what: str, data: bytes, at: int, name: str, ledger: Ledger, fix: str) -> Stop:
    row = data.count(b"\n", 0, at) + 1
    value = f"byte 0x{data[at]:02x}" if at < len(data) else None
    return ledger.stop("unreadable-encoding", what, fix, [Place(name, row, value)])


def one_line_end(text: bytes, name: str, ledger: Ledger) -> bytes:
    """`\\r\\n` and the lone `\\r` of old files become `\\n`; quoted fields may hold either, so those files stay."""
    if b"\r" not in text or b'"' in text:
        return text
    text = text.replace(b"\r\n", b"\n")
    if b"\r" not in text:
        return text
    if b"\n" not in text:
        return text.replace(b"\r", b"\n")
    row = text.count(b"\n", 0, text.index(b"\r")) + 1
    raise ledger.stop(
        "stray-line-end", "a lone carriage return stands inside a line", "use one kind of line end", [Place(name, row)]
    )
