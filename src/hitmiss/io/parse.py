"""Turn paths and addresses into bytes, bytes into UTF-8 text, text into cells; collect faults with their places."""

from __future__ import annotations

import codecs
import csv
import fnmatch
import glob
import gzip
import hashlib
import io
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.datatypes import DataTypeClass

from hitmiss._version import __version__
from hitmiss.core import artifacts, progress
from hitmiss.core.errors import DataError, EnvironmentFault, Fault, HitmissError, UsageError

if TYPE_CHECKING:
    from _csv import Reader

    from obstore.store import ObjectStore

Kinds = Mapping[str, DataTypeClass | pl.DataType]
"""The types of columns, by name."""

# ----------------------------------------------------------------------
# What the reader finds wrong: findings group places, are reported in one sentence, and can be listed one by one.

SHOWN: Final = 5
LONGEST: Final = 60
LISTED: Final = 12


@dataclass(frozen=True)
class Place:
    """The place of a fault: file, line (from 1), the value found there and the id of its row."""

    file: str | None = None
    row: int | None = None
    value: str | None = None
    item: str | None = None


@dataclass(frozen=True)
class Finding:
    """One kind of fault with all its places. `what` may use {n} and {s} (the plural s); `fix` says what to do."""

    kind: str
    what: str
    fix: str
    places: tuple[Place, ...]
    column: str | None = None
    each: str = ""
    choices: tuple[Mapping[str, str], ...] = ()

    @property
    def likeness(self) -> tuple[str | None, ...]:
        """What findings have in common that are reported as one; the fix for words as numbers quotes the first word."""
        return self.kind, self.what, self.fix if self.kind != "not-a-number" else "", self.column, self.each

    @property
    def count(self) -> str:
        """Return what is wrong, how often, and the first ids."""
        n = len(self.places)
        return counted(self.what, n) + _ids(self.places)

    @property
    def sentence(self) -> str:
        """Return one sentence: where, what, how often, the first ids, and how to fix it."""
        return f"{_where(self.places)}{self.count}; {self.fix}"

    def faults(self) -> Iterable[Fault]:
        """Yield one fault per place."""
        message = self.each or counted(self.what, 1)
        for p in self.places:
            about = f"{message}, id {quoted(p.item)}" if p.item is not None else message
            yield Fault(self.kind, about, p.file, p.row, self.column, p.value)


@dataclass
class Ledger:
    """The findings, notes and choices collected while reading."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)

    def add(
        self,
        kind: str,
        what: str,
        fix: str,
        places: Sequence[Place],
        column: str | None = None,
        each: str = "",
        choices: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Record a finding; a finding without places is ignored, and one like an earlier one is merged with it.

        `choices` are options of which one settles the question.

        >>> ledger = Ledger()
        >>> for row in (2, 9):
        ...     ledger.add("nan-score", "{n} NaN score{s}", "fix them", [Place("s.tsv", row)])
        >>> [len(finding.places) for finding in ledger.findings]
        [2]
        """
        if places:
            self._record(Finding(kind, what, fix, tuple(places), column, each, tuple(choices)))

    def _record(self, new: Finding) -> None:
        for at, known in enumerate(self.findings):
            if known.likeness == new.likeness:
                self.findings[at] = replace(known, places=(*known.places, *new.places))
                return
        self.findings.append(new)

    def stop(
        self,
        kind: str,
        what: str,
        fix: str,
        places: Sequence[Place],
        column: str | None = None,
        each: str = "",
    ) -> Stop:
        """Record a finding after which reading cannot continue, and return the exception to raise."""
        self.add(kind, what, fix, places, column, each)
        return Stop()

    def take(self, other: Ledger) -> None:
        """Append the contents of another ledger to this one."""
        for finding in other.findings:
            self._record(finding)
        self.notes += other.notes
        self.choices += other.choices

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Return every fault at every place."""
        return tuple(fault for finding in self.findings for fault in finding.faults())

    def error(self) -> DataError:
        """Return all findings as one error: the sentence of the first, then a summary of the others."""
        first, *others = self.findings
        more = "".join(f"; also {f.count}" for f in others[:SHOWN])
        more += f"; and {len(others) - SHOWN:,} more kinds of faults" if len(others) > SHOWN else ""
        return DataError(first.sentence + more, self.faults, choices=self.open_choices)

    @property
    def open_choices(self) -> tuple[Mapping[str, str], ...]:
        """Return the options of which one settles what is open."""
        return next((finding.choices for finding in self.findings if finding.choices), ())


class Stop(Exception):
    """Reading cannot continue; the ledger says why. This exception never leaves the package."""


def counted(what: str, n: int) -> str:
    """Fill in the number. `str.format` cannot be used: the text may quote a file that contains braces.

    >>> counted("{n} label{s} '{x}'", 2)
    "2 labels '{x}'"
    """
    return what.replace("{n}", f"{n:,}").replace("{s}", "" if n == 1 else "s")


def quoted(text: str | None) -> str:
    r"""Return text from a file in the form shown in messages: quoted, control characters escaped, shortened if long.

    >>> print(quoted("E_01\x1b[31m\u202e"))
    'E_01\x1b[31m\u202e'
    >>> quoted("x" * 100)[-4:]
    "xx…'"
    """
    text = text or ""
    return repr(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def listed(names: Sequence[str]) -> str:
    """Return the first names of a list, quoted, and how many more there are.

    >>> listed(["id", "score"]), listed([str(i) for i in range(99)])[-11:]
    ("'id', 'score'", 'and 87 more')
    """
    rest = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(quoted, names[:LISTED])) + rest


def shown(name: str) -> str:
    r"""Return a file's name with its control characters escaped.

    >>> print(shown("a\x1b[2J.tsv"), shown("scores.tsv"))
    a\x1b[2J.tsv scores.tsv
    """
    return name if name.isprintable() else repr(name)[1:-1]


def _where(places: Sequence[Place]) -> str:
    first = places[0]
    file = f"{shown(first.file)}" if first.file else ""
    row = f"row {first.row}" if first.row is not None else ""
    place = ", ".join(filter(None, (file, row)))
    return f"{place}: " if place else ""


def _ids(places: Sequence[Place]) -> str:
    ids = list(dict.fromkeys(p.item for p in places if p.item is not None))
    if not ids:
        return ""
    dots = ", …" if len(ids) > SHOWN else ""
    return f" (id{'s' if len(ids) > 1 else ''} {', '.join(map(quoted, ids[:SHOWN]))}{dots})"


# ----------------------------------------------------------------------
# Paths and addresses to bytes, bytes to UTF-8 text, text to cells.

# ----------------------------------------------------------------------
# Addresses: files in object stores and on the web (`s3://`, `gs://`, `az://`, `https://`), and tables of engines.
#
# The bytes of a remote file are read in the same way as those of a local file.
#
# Every byte is read, because the digest of the data covers every byte. Only the name of a file leaves this module: the
# users, passwords and queries of an address (which may hold a signature) never appear in a result, message or log.

ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://\S")
TABLE: Final = re.compile(r"(spark|duckdb):(?!//)(.+)", re.DOTALL)
WEB: Final = ("http", "https")
STORES: Final = ("s3", "gs", "az")
DOWNLOAD_PIECE: Final = 4 * 2**20
SECONDS: Final = 30
"""How long a server may be silent."""


def is_remote(path: object) -> bool:
    """Return whether a path is a network address; an existing local file with such a name counts as a file.

    >>> is_remote("s3://bucket/scores.parquet"), is_remote("scores.parquet"), is_remote("C:/scores.parquet")
    (True, False, False)
    """
    return isinstance(path, str) and ADDRESS.match(path) is not None and not Path(path).exists()


@dataclass(frozen=True)
class TableAddress:
    """The address of a table: `engine:table`, for DuckDB `duckdb:FILE#table`."""

    engine: str
    place: str
    table: str

    @property
    def name(self) -> str:
        """The name of the table in results."""
        return self.table.rstrip("/").rpartition("/")[2]


def table_of(given: str) -> TableAddress | None:
    """Return the table that an argument names, or None if it is a file.

    >>> table_of("spark:lake.trials")
    TableAddress(engine='spark', place='', table='lake.trials')
    >>> table_of("duckdb:/data/results.db#trials")
    TableAddress(engine='duckdb', place='/data/results.db', table='trials')
    >>> table_of("scores.parquet"), table_of("s3://bucket/x")
    (None, None)
    """
    found = TABLE.fullmatch(given)
    if found is None or Path(given).exists():
        return None
    engine, rest = found.groups()
    if engine == "spark":
        return TableAddress(engine, "", rest)
    place, mark, table = rest.rpartition("#")
    if not (place and mark and table):
        raise UsageError(f"{given}: a table of DuckDB is named duckdb:FILE#TABLE", code="bad-address")
    return TableAddress(engine, place, table)


def name_of(address: str) -> str:
    """Return the name of the file at an address.

    >>> name_of("https://host/a/scores%201.csv?X-Amz-Signature=secret")
    'scores 1.csv'
    """
    return unquote(urlsplit(address).path).rstrip("/").rpartition("/")[2] or "index"


def address_shown(address: str) -> str:
    """Return an address without the parts that may be secret: user, password, query and fragment.

    >>> address_shown("https://me:word@host:8080/a.csv?token=1#x")
    'https://host:8080/a.csv'
    """
    parts = urlsplit(address)
    return urlunsplit(SplitResult(parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def said(path: str) -> str:
    """Return a source as messages may show it: an address without its secrets, anything else unchanged."""
    return address_shown(path) if is_remote(path) else path


def addresses_in(pattern: str) -> list[str]:
    """Return the addresses that match a pattern in a store (`s3://bucket/run-*/part-?.parquet`), in order."""
    parts = urlsplit(pattern.replace("?", "%3F"))
    if parts.scheme not in STORES:
        return [pattern]
    path = unquote(parts.path).lstrip("/")
    if not glob.has_magic(path):
        return [pattern]
    fixed = re.split(r"[*?\[]", path, maxsplit=1)[0].rpartition("/")[0]
    with _told(pattern):
        store = _store(parts)
        found = [str(one["path"]) for batch in store.list(fixed or None) for one in batch]
    depth = path.count("/")  # as in a shell, * does not match across folders
    hits = sorted(one for one in found if fnmatch.fnmatchcase(one, path) and one.count("/") == depth)
    if not hits:
        raise UsageError(f"no file matches {address_shown(pattern)!r}", code="no-match")
    return [f"{parts.scheme}://{parts.netloc}/{one}" for one in hits]


def pieces(address: str) -> Iterator[bytes]:
    """Yield the bytes of the file at an address, a few megabytes at a time."""
    parts = urlsplit(address)
    if parts.scheme not in (*WEB, *STORES):
        raise UsageError(
            f"{address_shown(address)}: files are read from this machine, from {', '.join(f'{s}://' for s in STORES)} and "
            f"https://; fetch it first and give its path",
            code="remote-file",
        )
    done, name = 0, name_of(address)
    with _told(address):
        for piece in _of_web(address, parts) if parts.scheme in WEB else _of_store(parts):
            done += len(piece)
            progress.report(f"fetching {name}, MB", done / 1e6)
            yield piece


@contextmanager
def fetched(given: object, scratch: str | None) -> Iterator[object]:
    """Yield what was given, with remote sources downloaded for the block.

    They become files of the same names in a temporary folder inside `scratch`.
    """
    sources = list(given) if isinstance(given, list | tuple) else [given]
    if not any(map(is_remote, sources)):
        yield given
        return
    sources = [one for source in sources for one in (addresses_in(str(source)) if is_remote(source) else [source])]
    with tempfile.TemporaryDirectory(prefix="hitmiss-", dir=scratch) as folder:
        yield [_kept(str(one), Path(folder) / str(at)) if is_remote(one) else one for at, one in enumerate(sources)]


def _kept(address: str, folder: Path) -> str:
    folder.mkdir()
    path = folder / name_of(address)
    with path.open("wb") as file:
        file.writelines(pieces(address))
    return str(path)


def _of_web(address: str, parts: SplitResult) -> Iterator[bytes]:
    if "@" in parts.netloc:
        raise UsageError(
            f"{address_shown(address)}: an address with a password in it is not read, since addresses are kept in shells and "
            f"logs; use a signed link, or fetch the file first",
            code="password-in-address",
        )
    import urllib.request  # slow to import, and needed only for the web

    request = urllib.request.Request(address, headers={"User-Agent": f"hitmiss/{__version__}"})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        length, done = answer.headers.get("Content-Length"), 0
        while piece := answer.read(DOWNLOAD_PIECE):
            done += len(piece)
            yield piece
    # when reading in pieces, Python does not notice a truncated response
    if length is not None and done != int(length):
        raise DataError(f"{address_shown(address)}: {done:,} of {length} bytes came; try again", code="cut-short")


def _of_store(parts: SplitResult) -> Iterator[bytes]:
    path = unquote(parts.path).lstrip("/")
    for piece in _store(parts).get(path).stream(min_chunk_size=DOWNLOAD_PIECE):
        yield bytes(piece)


def _store(parts: SplitResult) -> ObjectStore:
    """Open the bucket of an address. Credentials are found where the store's own tools look for them."""
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise EnvironmentFault(
            f"{parts.scheme}:// needs the package 'obstore' ({error}): pip install 'hitmiss[remote]'"
        ) from None
    more: dict[str, object] = {}
    if parts.scheme == "s3" and not {"AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE"} & os.environ.keys():
        more = _profile()
    retry = {"max_retries": 3}
    return from_url(f"{parts.scheme}://{parts.netloc}", client_options=_client(), retry_config=retry, **more)


def _client() -> dict[str, object]:
    is_plain = any(os.environ.get(name, "").startswith("http://") for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT"))
    return {"timeout": f"{SECONDS}s", "connect_timeout": f"{SECONDS}s", "allow_http": is_plain}


def _profile() -> dict[str, object]:
    """Return the credentials of the profiles in ~/.aws, if boto3 is installed to read them."""
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider

        return {"credential_provider": Boto3CredentialProvider()}
    except (ImportError, ValueError):  # no boto3, or it finds no credentials: a public bucket, or the machine's role
        return {}


@contextmanager
def _told(address: str) -> Iterator[None]:
    """Turn errors on the way into one sentence, without the secrets that libraries put into their messages."""
    import http.client
    import urllib.error

    try:
        yield
    except HitmissError:
        raise
    except urllib.error.HTTPError as error:
        error.close()
        raise _refused(address, error.code) from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise _unreachable(address, getattr(error, "reason", None) or type(error).__name__) from None
    except Exception as error:
        code = {
            "NotFoundError": 404,
            "FileNotFoundError": 404,
            "PermissionDeniedError": 403,
            "UnauthenticatedError": 401,
        }
        name = type(error).__name__
        if name in code:
            raise _refused(address, code[name]) from None
        if type(error).__module__.partition(".")[0] not in ("obstore", "builtins", "botocore"):
            raise
        raise _unreachable(address, name) from None


def _refused(address: str, status: int) -> DataError:
    if status in (401, 403):
        what = (
            "may not be read with the credentials that are set here (AWS_ACCESS_KEY_ID and the like), or is not there"
        )
        return DataError(f"{address_shown(address)} {what}", code="forbidden-file")
    what = "is not there" if status in (404, 410) else f"is not given out (HTTP status {status})"
    return DataError(f"{address_shown(address)} {what}", code="missing-file")


def _unreachable(address: str, why: object) -> EnvironmentFault:
    return EnvironmentFault(f"{address_shown(address)} cannot be reached ({why})", code="unreachable")


# ----------------------------------------------------------------------
# Paths to bytes, bytes to UTF-8 text, text to cells: encodings, separators, quotes.

# ----------------------------------------------------------------------
# Paths to bytes, and bytes to UTF-8 text with `\n` line ends, or a finding that says where decoding fails.

STDIN: Final = "-"
BOMS: Final = (  # UTF-32 comes before UTF-16: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
NUL: Final = "the text holds a NUL byte"
NUL_FIX: Final = "fix the file, or say --encoding"
BLANK: Final = b" \t\r\n\0"
GZIP: Final = b"\x1f\x8b"
PARQUET: Final = b"PAR1"
ARROW: Final = b"ARROW1"
HEAD_BYTES: Final = 16
PIECE: Final = 64 * 2**20
"""Bytes of a large file that are read between progress reports."""


@dataclass(frozen=True)
class Content:
    """A file's bytes, decompressed and converted to UTF-8, with the hash of the file as it is on disk."""

    name: str
    sha256: str
    data: bytes
    encoding: str

    @property
    def is_parquet(self) -> bool:
        """Whether the bytes are a table of typed columns (Parquet or Arrow) rather than text."""
        return self.encoding in ("parquet", "arrow")

    @property
    def is_arrow(self) -> bool:
        """Whether the bytes are an Arrow (Feather) file."""
        return self.encoding == "arrow"


def expand(given: object) -> list[object]:
    """Return the single sources that an argument names: lists flattened, patterns expanded, frames unchanged."""
    if isinstance(given, list | tuple):
        found = [source for part in given for source in expand(part)]
        if not found:
            raise UsageError("no file was given")
        return found
    if is_remote(given):
        return [*addresses_in(str(given))]
    if isinstance(given, str) and given != STDIN and glob.has_magic(given) and not Path(given).exists():
        matches = sorted(glob.glob(given))  # noqa: PTH207  # patterns may be absolute, which Path.glob refuses
        if not matches:
            raise UsageError(f"no file matches {given!r}")
        return [Path(match) for match in matches]
    return [given]


def fetch(path: str | Path, encoding: str | None, ledger: Ledger) -> Content:
    """Read a file's content, once."""
    name = "stdin" if str(path) == STDIN else name_of(str(path)) if is_remote(path) else Path(path).name
    raw = _read(path, name, ledger)
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
    _refuse_empty(text, name, ledger)  # the file may have held only a byte-order mark
    return Content(name, sha, one_line_end(text, name, ledger), used)


def _read(path: str | Path, name: str, ledger: Ledger) -> bytes:
    """Read the bytes of a source unchanged."""
    if str(path) == STDIN:
        return sys.stdin.buffer.read()
    if is_remote(path):
        return b"".join(pieces(str(path)))
    if table_of(str(path)) is not None:
        raise UsageError(
            f"{path} is a table, which `hitmiss score` alone has counted; write it as a Parquet file for this",
            code="table-address",
        )
    if Path(path).is_dir():
        what, fix = "it is a folder, but not a run of hitmiss", "give the files in it, as 'FOLDER/*.csv'"
        raise ledger.stop("unreadable-file", what, fix, [Place(name or str(path))])
    artifacts.note_input(path)
    return _read_whole(Path(path))


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
"""The first bytes of files that are not text, what the files are, and what to do."""
TABLES: Final = (".parquet", ".pq", ".arrow", ".feather")


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
        raise DataError(f"{changed[0]} changed while it was read; evaluate again when no other process writes to it")


def refuse_format(start: bytes, name: str, ledger: Ledger, *, is_streamed: bool = False) -> None:
    """Stop at a file whose first bytes show a format that is not read here."""
    if is_streamed and start.startswith(ARROW):
        what, fix = "it is an Arrow file, which is read whole", "write it as Parquet, or leave --stream out"
        raise ledger.stop("binary-file", what, fix, [Place(name)])
    if start.startswith(b"PK") and name.endswith(".tally"):
        what = "it is a tally, which this version does not read"
        fix = "score the folder of its run: hitmiss score RUN --stream"
        raise ledger.stop("binary-file", what, fix, [Place(name)])
    for magic, kind, fix in BINARY:
        if start.startswith(magic) and (
            b"\0" in start or not start.isascii() or magic in (b"%PDF", b"SQLite format 3")
        ):
            raise ledger.stop("binary-file", f"it is {kind}, not text", fix, [Place(name)])
    suffix = Path(name).suffix
    if suffix.lower() in TABLES and not start.startswith((PARQUET, ARROW)) and not _is_text(start):
        what = f"its name ends in {suffix}, and its content is neither such a table nor text"
        raise ledger.stop("unreadable-file", what, "make or fetch it again", [Place(name)])


def _is_text(start: bytes) -> bool:
    """Return whether the first bytes of a file are UTF-8; its last character may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return True


def _refuse_empty(data: bytes, name: str, ledger: Ledger) -> None:
    if not data[:4096].strip(BLANK) and not data.strip(BLANK):
        raise ledger.stop("empty-file", "the file holds no rows", "give a file with rows", [Place(name)])


def _read_whole(path: Path) -> bytes:
    """Read the bytes of a file, with progress reports if it is large."""
    size = path.stat().st_size
    if size <= PIECE:
        return path.read_bytes()
    pieces, done = [], 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            pieces.append(piece)
            done += len(piece)
            progress.report(f"reading {path.name}, MB", done / 1e6, size / 1e6)
    return b"".join(pieces)


def _unpack(raw: bytes, name: str, ledger: Ledger) -> bytes:
    """Decompress gzip; stop at a file that expands beyond reason before it fills the memory."""
    out = io.BytesIO()
    limit = artifacts.unfolded(len(raw))
    try:
        packed_at = io.BytesIO(raw)
        with gzip.GzipFile(fileobj=packed_at) as packed:
            while chunk := packed.read(2**22):
                out.write(chunk)
                progress.report(f"unpacking {name}, MB", packed_at.tell() / 1e6, len(raw) / 1e6)
                if out.tell() > limit:
                    fix = "unpack it by hand if you trust it"
                    raise ledger.stop(
                        "oversized-archive", f"the archive unfolds beyond {limit:,} bytes", fix, [Place(name)]
                    )
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(name, error, ledger) from None
    return out.getvalue()


def _settle(data: bytes, name: str, encoding: str | None, ledger: Ledger) -> tuple[bytes, str]:
    """Return UTF-8 bytes without a byte-order mark, and the original encoding of the file."""
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
    """Decode text with NUL bytes: UTF-16 without a mark if every second byte at the start is NUL, else damaged."""
    head = data[:4096]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if len(data) % 2 == 0 and min(even, odd) == 0 and max(even, odd) * 2.5 >= len(head) / 2:
        used = "utf-16-le" if odd else "utf-16-be"
        ledger.notes.append(f"{name}: read as {used}, which its NUL bytes show; it has no byte-order mark")
        return _decode(data, used, name, ledger), used
    raise _unreadable(NUL, data, data.index(b"\0"), name, ledger, NUL_FIX)


def _settle_latin(data: bytes, start: int, name: str, ledger: Ledger) -> tuple[bytes, str]:
    # In latin-1 these bytes are invisible control characters: the file has another encoding, and guessing would misread
    # ids.
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
            f"the {encoding} text holds half a character", data, 0, name, ledger, "fix the file"
        ) from None
    if b"\0" in text:
        raise _unreadable(NUL, text, text.index(b"\0"), name, ledger, NUL_FIX)
    return text


def _unreadable(what: str, data: bytes, at: int, name: str, ledger: Ledger, fix: str) -> Stop:
    row = data.count(b"\n", 0, at) + 1
    value = f"byte 0x{data[at]:02x}" if at < len(data) else None
    return ledger.stop("unreadable-encoding", what, fix, [Place(name, row, value)])


def one_line_end(text: bytes, name: str, ledger: Ledger) -> bytes:
    """Convert `\\r\\n` and a lone `\\r` to `\\n`; keep files with quotes, as quoted fields may hold either."""
    if b"\r" not in text or b'"' in text:
        return text
    text = text.replace(b"\r\n", b"\n")
    if b"\r" not in text:
        return text
    if b"\n" not in text:
        return text.replace(b"\r", b"\n")
    row = text.count(b"\n", 0, text.index(b"\r")) + 1
    raise ledger.stop(
        "stray-line-end", "a line contains a lone carriage return", "use one kind of line end", [Place(name, row)]
    )


# ----------------------------------------------------------------------
# A file in blocks of whole lines, hashed on the way, for readers that do not keep it: the bytes are those of `fetch`.

BLOCK: Final = 2**22
"""Bytes of text that are read at a time: more would not stay in the cache."""
LONGEST_LINE: Final = 2**26
"""The maximum length of a line in bytes: a compressed line could expand without end."""
HEAD: Final = 2**17
UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Meter:
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

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def sha256(self) -> str:
        """The hash of what was read."""
        return self._sha.hexdigest()


def fetch_head(path: str | Path, ledger: Ledger) -> Content:
    """Read the first lines of a text, or nothing of a Parquet file."""
    if str(path) == STDIN:
        what = "stdin can be read once, and streaming may read a file twice"
        raise ledger.stop("unreadable-file", what, "write it to a file, or leave --stream out", [Place("stdin")])
    name = Path(path).name
    artifacts.note_input(path)
    with Path(path).open("rb") as file:
        start = file.read(HEAD_BYTES)
    refuse_format(start, name, ledger, is_streamed=True)
    if start.startswith(PARQUET):
        return Content(name, "", b"", "parquet")
    with Meter(path) as meter, unpacked(meter, path) as text:
        try:
            head = text.read(HEAD).removeprefix(codecs.BOM_UTF8)
        except (OSError, EOFError, zlib.error) as error:
            raise _damaged(name, error, ledger) from None
    if head.startswith(UTF16):
        what = "the text is UTF-16, and only UTF-8 is streamed"
        raise ledger.stop("unreadable-encoding", what, "convert the file, or leave --stream out", [Place(name)])
    lines = head if len(head) < HEAD - len(codecs.BOM_UTF8) or b"\n" not in head else head[: head.rindex(b"\n") + 1]
    _refuse_empty(lines, name, ledger)
    return Content(name, "", one_line_end(_utf8(lines, name, 0, ledger), name, ledger), "utf-8")


def blocks(meter: Meter, path: str | Path, ledger: Ledger, *, is_quoted: bool = True) -> Iterator[tuple[bytes, int]]:
    """Yield the text of a file, many whole lines at a time, each with the number of lines before it.

    `is_quoted`: a line end inside quotes does not end a row. In JSON lines it always does, and quotes need not pair.
    """
    name, before = Path(path).name, 0
    with unpacked(meter, path) as text:
        for block in _whole_lines(text, name, ledger, is_quoted):
            yield one_line_end(_utf8(block, name, before, ledger), name, ledger), before
            before += block.count(b"\n")
        while meter.read(HEAD):  # bytes after the end of the archive are part of the file's hash too
            pass


def unpacked(file: Meter, path: str | Path) -> Meter | gzip.GzipFile:
    """Return the file, decompressed if it is an archive."""
    with Path(path).open("rb") as start:
        is_packed = start.read(2) == GZIP
    return gzip.GzipFile(fileobj=file) if is_packed else file  # type: ignore[call-overload]


def _damaged(name: str, error: Exception, ledger: Ledger) -> Exception:
    what = f"the gzip archive is damaged ({error})"
    return ledger.stop("unreadable-file", what, "make or fetch it again", [Place(name)])


def _utf8(data: bytes, name: str, lines_before: int, ledger: Ledger) -> bytes:
    at = data.find(b"\0")
    if at < 0 and not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            at = error.start
    if at >= 0:
        row = lines_before + data.count(b"\n", 0, at) + 1
        what = NUL if data[at] == 0 else "the text is not UTF-8, and only UTF-8 is streamed"
        fix = NUL_FIX if data[at] == 0 else "convert the file, or leave --stream out"
        raise ledger.stop("unreadable-encoding", what, fix, [Place(name, row, f"byte 0x{data[at]:02x}")])
    return data


def digest(path: str | Path) -> tuple[str, int]:
    """Return the hash and the number of a file's bytes."""
    with Meter(path) as meter:
        while meter.read(HEAD * 8):
            pass
        return meter.sha256, meter.bytes


def _whole_lines(text: Meter | gzip.GzipFile, name: str, ledger: Ledger, is_quoted: bool) -> Iterator[bytes]:
    """Yield whole lines, many at a time."""
    is_first = True
    while True:
        try:
            data = text.read(BLOCK)
            if data and not data.endswith(b"\n"):
                data += text.readline(LONGEST_LINE)
            while is_quoted and len(data) < LONGEST_LINE and data.count(b'"') % 2:  # a quoted field continues
                more = text.readline(LONGEST_LINE)
                if not more:
                    break
                data += more
        except (OSError, EOFError, zlib.error) as error:
            raise _damaged(name, error, ledger) from None
        if len(data) >= LONGEST_LINE:
            what = f"a line, or a quoted field, is longer than {LONGEST_LINE:,} bytes"
            raise ledger.stop("oversized-line", what, "give a table of scores", [Place(name)])
        if not data:
            return
        yield data.removeprefix(codecs.BOM_UTF8) if is_first else data
        is_first = False


# ----------------------------------------------------------------------
# A source before it is read (`Shape`) and after (`Table`).

Row = tuple[str, ...]


@dataclass(frozen=True)
class Pieced:
    """A file that is read in pieces, and the memory that may be used for what is kept of its rows."""

    path: str | Path
    memory: int


@dataclass(frozen=True)
class Shape:
    """The first look at a source: its first rows, and its column names if its format has them."""

    name: str
    first: tuple[Row, ...]
    names: Row | None = None
    separator: str = ""
    content: Content | None = None
    frame: pl.DataFrame | None = None
    lines: NDArray[np.int64] | None = None
    is_settled: bool = False
    """Whether a layout has already given the columns our names."""
    pieced: Pieced | None = None
    """The file, if its rows are read in pieces; `content` then holds its first lines."""
    rows: int = 0
    """How many rows a Parquet file declares that has not been read."""

    @property
    def is_read(self) -> bool:
        """Whether a plug-in has read the file, so that `frame` holds all its rows."""
        return self.frame is not None and self.content is not None and not self.content.data

    @property
    def encoding(self) -> str:
        """The encoding of the bytes; `memory` for tables that do not come from a file."""
        return self.content.encoding if self.content else "memory"

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.names) if self.names is not None else len(self.first[0])


@dataclass(frozen=True)
class Table:
    """The requested columns of one source, and the line of the file on which each row begins.

    >>> Table("s.tsv", pl.DataFrame({"item": ["a"]}), first_line=2).line(0)
    2
    """

    name: str
    frame: pl.DataFrame
    first_line: int = 1
    lines: NDArray[np.int64] | None = None

    def line(self, row: int) -> int:
        """Return the line of the file (from 1) on which a row (from 0) begins."""
        return int(self.lines[row]) if self.lines is not None else self.first_line + row


def refuse_ragged(shape: Shape, wrong: Sequence[tuple[int, int]], ledger: Ledger) -> None:
    """Stop if rows, given as (line, number of fields), differ in length from the first row."""
    if wrong:
        places = [Place(shape.name, line, f"{fields} field{'s' if fields != 1 else ''}") for line, fields in wrong]
        what = f"{{n}} row{{s}} with another number of fields than the {shape.width} of the first row"
        fix = f"fix them, or say --separator (it was taken to be {quoted(shape.separator)})"
        raise ledger.stop("ragged-row", what, fix, places, each=f"{shape.width} fields were expected")


# ----------------------------------------------------------------------
# Separated text without quotes: the form of almost every score file, so it gets the fast path.

PLAIN_PIECE: Final = 2**20


def read_plain(
    shape: Shape,
    data: bytes,
    has_header: bool,
    picks: Mapping[str, int],
    ledger: Ledger,
    kinds: Kinds | None = None,
) -> Table:
    """Read the columns `picks` (our name -> position) of every row, as text or as the types in `kinds`.

    The types are only a request: if any cell does not have its type, all columns are returned as text.
    """
    if data.endswith(b"\n\n"):
        data = data.rstrip(b"\n") + b"\n"
    frame = read_even(shape, data, has_header, picks, kinds) if kinds else None
    frame = read_even(shape, data, has_header, picks) if frame is None else frame
    if frame is None:
        return _read_uneven(shape, data, has_header, picks, ledger)
    return Table(shape.name, frame, 1 + has_header)


def read_even(
    shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int], kinds: Kinds | None = None
) -> pl.DataFrame | None:
    """Read with the fast path; return None if rows differ in length or a cell does not have its type.

    An empty cell of a typed column is null; numbers are exact, as Python's `float` reads them.

    Polars silently pads short rows and, if not all columns are requested, cuts long ones. A short row shows as an empty
    last field, so the last column is always read: if it has no empty field, no row is short, and the number of
    separators shows that no row is long. If the last column has empty fields, whole rows are read: the parser then
    refuses long rows, and the number of separators shows that no row is short.
    """
    last = shape.width - 1
    wanted = {picks[ours]: kind for ours, kind in (kinds or {}).items() if ours in picks}
    positions, everything = sorted({*picks.values(), last}), list(range(shape.width))
    schema = {str(at): wanted.get(at, pl.String) for at in everything} if wanted else None
    try:
        frame = parse(data, shape.separator, has_header, positions, schema)
        end = frame[str(last)]
        may_be_short = bool(end.null_count() or (end.dtype == pl.String and (end == "").any()))
        if may_be_short and wanted:
            return None
        # As text it can be told whether an infinity was written or a number such as 1e400, which no float holds.
        if any(column.dtype.is_float() and column.is_infinite().any() for column in frame.iter_columns()):
            return None
        if any(column.dtype == pl.Categorical and column.null_count() for column in frame.iter_columns()):
            return None  # an empty word is a word of its own as text, and none as a code
        if may_be_short:
            # Without a schema the first row would say how many columns there are, however long it is; and of a last
            # line without an end the parser does not refuse an empty field too many.
            whole = data if data.endswith(b"\n") else data + b"\n"
            frame = parse(whole, shape.separator, has_header, everything, {str(at): pl.String for at in everything})
    except pl.exceptions.PolarsError:
        return None
    # With a schema, and if every column is read, the parser has already refused long rows.
    is_even = wanted and len(positions) == shape.width
    if not is_even and _count(data, shape.separator) != (frame.height + has_header) * last:
        return None
    # Merge the text into one chunk: gathering rows from the parser's many chunks takes seven times as long.
    return _picked(frame, picks) if wanted else _picked(frame, picks).rechunk()


def _count(data: bytes, separator: str) -> int:
    """Count the separator in the text, like `bytes.count` but in a fifth of the time."""
    if len(separator.encode()) != 1:
        return data.count(separator.encode())
    view, sought = np.frombuffer(data, dtype=np.uint8), ord(separator)
    return sum(int(np.count_nonzero(view[at : at + PLAIN_PIECE] == sought)) for at in range(0, len(view), PLAIN_PIECE))


def parse(
    data: bytes, separator: str, has_header: bool, positions: list[int], schema: Kinds | None = None
) -> pl.DataFrame:
    """Parse the columns of even text, named by position; all stay text unless a schema for all columns is given."""
    frame = pl.read_csv(
        data,
        separator=separator,
        has_header=False,
        skip_lines=int(has_header),
        columns=positions,
        quote_char=None,
        infer_schema=False,
        schema=schema,
        empty_string_is_null=False,
        raise_if_empty=False,
    )
    frame.columns = [str(at) for at in positions]
    return frame


def _picked(frame: pl.DataFrame, picks: Mapping[str, int]) -> pl.DataFrame:
    return pl.DataFrame([frame.get_column(str(at)).alias(ours) for ours, at in picks.items()])


def _read_uneven(shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Ledger) -> Table:
    """Read with the careful path: skip blank lines, treat runs of spaces as one, find rows of a different length."""
    separator = shape.separator.encode()
    rows = [(n, line) for n, line in enumerate(data.split(b"\n"), 1) if line.strip(b" ")]
    if separator == b" ":
        rows = [(n, b" ".join(filter(None, line.split(b" ")))) for n, line in rows]
    widths = [(n, line.count(separator) + 1) for n, line in rows]
    refuse_ragged(shape, [(n, width) for n, width in widths if width != shape.width], ledger)
    body = rows[has_header:]
    if not body:
        return Table(shape.name, pl.DataFrame(schema=dict.fromkeys(picks, pl.String)))
    frame = parse(b"\n".join(line for _, line in body), shape.separator, False, list(range(shape.width)))
    return Table(shape.name, _picked(frame, picks).rechunk(), lines=np.array([n for n, _ in body], dtype=np.int64))


# ----------------------------------------------------------------------
# Separated text whose fields may be in double quotes, and may span several lines.

LONGEST_FIELD: Final = 2**27
CHUNK: Final = 50_000


def read_quoted(shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Ledger) -> Table:
    """Read by the rules of CSV.

    If a file that is not CSV fails these rules but can be read with quotes as ordinary characters, read it that way and
    add a note.
    """
    trial = Ledger()
    plain = _try_plain(shape, data, has_header, picks) if shape.separator != "," else None
    try:
        table, spans_lines = _read_records(shape, data, has_header, picks, trial)
    except Stop:
        if plain is None:
            ledger.findings += trial.findings
            raise
        ledger.notes.append(f"{shape.name}: its quote characters enclose no fields and were read as text")
        return plain
    # Text with stray quotes can also parse as CSV, by swallowing the lines between two quotes.
    if spans_lines and plain is not None:
        what = "the quote characters can be read in two ways: round fields of several lines, or as ordinary characters"
        raise ledger.stop("ambiguous-quotes", what, "write the file as CSV with commas", [Place(shape.name)])
    return table


def _read_records(
    shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Ledger
) -> tuple[Table, bool]:
    """Return the table, and whether any record spans several lines."""
    reader = csv.reader(io.StringIO(data.decode("utf-8"), newline=""), delimiter=shape.separator, strict=True)
    records = _numbered(reader, shape, ledger)
    lines: list[int] = []
    frames = [pl.DataFrame(schema=dict.fromkeys(picks, pl.String))]
    wrong: list[tuple[int, int]] = []
    spans_lines = False
    with _long_fields():
        for _ in islice(records, int(has_header)):
            pass
        while chunk := list(islice(records, CHUNK)):
            wrong += [(first, len(row)) for first, _, row in chunk if len(row) != shape.width]
            spans_lines |= any(last > first for first, last, _ in chunk)
            if not wrong:
                frames.append(pl.DataFrame({ours: [row[at] for _, _, row in chunk] for ours, at in picks.items()}))
                lines += [first for first, _, _ in chunk]
    refuse_ragged(shape, wrong, ledger)
    return Table(shape.name, pl.concat(frames), lines=np.array(lines, dtype=np.int64)), spans_lines


def _numbered(reader: Reader, shape: Shape, ledger: Ledger) -> Iterator[tuple[int, int, list[str]]]:
    """Yield records with the lines on which each begins and ends; blank lines are skipped."""
    first = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            what = f"the quotes do not follow the rules of CSV ({error})"
            fix = "double the quotes inside quoted fields"
            raise ledger.stop("bad-quotes", what, fix, [Place(shape.name, first)]) from None
        if row:
            yield first, reader.line_num, row
        first = reader.line_num + 1


def _try_plain(shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int]) -> Table | None:
    text = data.replace(b"\r\n", b"\n")
    try:
        return read_plain(shape, text, has_header, picks, Ledger()) if b"\r" not in text else None
    except Stop:
        return None


@contextmanager
def _long_fields() -> Iterator[None]:
    before = csv.field_size_limit(LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)
