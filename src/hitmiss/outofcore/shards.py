"""Read shards in pieces, with the same cells as the in-memory reader."""

from __future__ import annotations

import gzip
import hashlib
import io
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import polars as pl

from hitmiss.core import artifacts, registry
from hitmiss.core.question import SYSTEM, ReadSpec
from hitmiss.core.trials import Header, Source
from hitmiss.io import tables
from hitmiss.io.checks import stems
from hitmiss.io.columns import SYSTEM_PREFIX, Match, Role, recognise
from hitmiss.io.parse import (
    GZIP,
    HEAD_BYTES,
    NUL,
    NUL_FIX,
    PARQUET,
    STDIN,
    Content,
    Kinds,
    Ledger,
    Place,
    Shape,
    Table,
    expand,
    one_line_end,
    read_plain,
    read_quoted,
    refuse_format,
)
from hitmiss.io.tables import frame_of, look_at_text
from hitmiss.outofcore.plan import Shard

# ----------------------------------------------------------------------
# A shard read in pieces: the same cells as the in-memory reader, at most a few hundred thousand at a time.

BLOCK: Final = 2**22
"""Bytes of text that are read at a time: more would not stay in the cache."""
LONGEST: Final = 2**26
"""The maximum length of a line in bytes: a compressed line could expand without end."""
ROWS: Final = 2**19
"""Rows of a Parquet file that are read at a time."""
HEAD: Final = 2**17
PACKED: Final = 6
"""How much longer a compressed text becomes, roughly."""
CONSTANT: Final = -1
"""The position of a column that the file does not have: the name of the system."""
BOM: Final = b"\xef\xbb\xbf"
UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Opened:
    """A shard whose columns are known: its first rows and what they were recognised as.

    `by_stem`: its ids are read without folder and suffix.
    """

    shard: Shard
    shape: Shape
    match: Match
    by_stem: bool = field(default=False, kw_only=True)

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return Path(self.shard.path).name

    @property
    def is_parquet(self) -> bool:
        """Whether the file is a Parquet file."""
        return self.shape.content is None


class Meter:
    """A file whose bytes are hashed and counted as they are read."""

    def __init__(self, path: str) -> None:
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


def open_shard(shard: Shard, options: ReadSpec, ledger: Ledger, role: Role = "both") -> Opened:
    """Look at the beginning of a file and recognise its columns, like the in-memory reader."""
    options = options.for_key if role == "key" else options
    if str(shard.path) == STDIN:
        what = "stdin can be read once, and streaming may read a file twice"
        raise ledger.stop("unreadable-file", what, "write it to a file, or leave --stream out", [Place("stdin")])
    artifacts.note_input(shard.path)
    with Path(shard.path).open("rb") as file:
        start = file.read(HEAD_BYTES)
    refuse_format(start, Path(shard.path).name, ledger, is_streamed=True)
    is_parquet = start.startswith(PARQUET)
    shape = _look_at_parquet(shard, ledger) if is_parquet else _look_at_text(shard, options, ledger)
    match = recognise(shape, role, options, ledger)
    match = match if shard.system is None else _of_one_system(match, shard.system)
    return Opened(shard, shape, match, by_stem=options.matching == "stem")


def _of_one_system(match: Match, system: str) -> Match:
    """Return a match with one system's scores as the scores, and its name as the run."""
    column = SYSTEM_PREFIX + system
    picks = {name: at for name, at in match.picks.items() if not name.startswith(SYSTEM_PREFIX)}
    if column in match.picks:  # otherwise the absence is reported later: see `keyed`
        picks["score"] = match.picks[column]
    return replace(match, picks={**picks, SYSTEM: CONSTANT}, theirs={**match.theirs, "score": system})


def rows_of_parquet(path: str) -> int:
    """Return the number of rows that a Parquet file declares."""
    return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())


def trials_expected(opened: Sequence[Opened]) -> int:
    """Estimate the number of trials: from the row counts of Parquet files, and from the size of texts."""
    return sum(rows_of_parquet(o.shard.path) if o.is_parquet else _lines_expected(o) for o in opened)


def _lines_expected(opened: Opened) -> int:
    path = Path(opened.shard.path)
    with path.open("rb") as file:
        times = PACKED if file.read(2) == GZIP else 1
    shown = opened.shape.content.data if opened.shape.content else b"\n"
    return int(path.stat().st_size * times * max(shown.count(b"\n"), 1) / max(len(shown), 1)) + 1


def _look_at_parquet(shard: Shard, ledger: Ledger) -> Shape:
    name = Path(shard.path).name
    try:
        lazy = pl.scan_parquet(shard.path, glob=False)
        tables.refuse_bomb(lazy, Path(shard.path).stat().st_size, name, ledger, is_streamed=True)
        head = lazy.head(tables.SAMPLE_ROWS).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise damaged_parquet(name, error, ledger) from None
    if not head.height:
        raise ledger.stop("empty-file", "the file holds no rows", "give a file with rows", [Place(name)])
    return Shape(name, tables.head_of(head), tuple(head.columns))


def _look_at_text(shard: Shard, options: ReadSpec, ledger: Ledger) -> Shape:
    name = Path(shard.path).name
    with Meter(shard.path) as file, _unpacked(file, shard.path) as text:
        try:
            head = text.read(HEAD).removeprefix(BOM)
        except (OSError, EOFError, zlib.error) as error:
            raise _damaged(name, error, ledger) from None
    if head.startswith(UTF16):
        what = "the text is UTF-16, and only UTF-8 is streamed"
        raise ledger.stop("unreadable-encoding", what, "convert the file, or leave --stream out", [Place(name)])
    lines = head if len(head) < HEAD - len(BOM) or b"\n" not in head else head[: head.rindex(b"\n") + 1]
    if not lines.strip():
        raise ledger.stop("empty-file", "the file holds no rows", "give a file with rows", [Place(name)])
    settled = one_line_end(_utf8(lines, name, 0, ledger), name, ledger)
    return look_at_text(Content(name, "", settled, "utf-8"), options, ledger)


def _unpacked(file: Meter, path: str) -> Meter | gzip.GzipFile:
    with Path(path).open("rb") as start:
        is_packed = start.read(2) == GZIP
    return gzip.GzipFile(fileobj=file) if is_packed else file  # type: ignore[call-overload]


def damaged_parquet(name: str, error: Exception, ledger: Ledger) -> Exception:
    """Return the finding that a Parquet file cannot be read, to be raised."""
    what = f"the Parquet file is damaged ({str(error).splitlines()[0]})"
    return ledger.stop("unreadable-file", what, "make or fetch it again", [Place(name)])


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


def digest(path: str) -> tuple[str, int]:
    """Return the hash and the number of a file's bytes."""
    with Meter(path) as meter:
        while meter.read(HEAD * 8):
            pass
        return meter.sha256, meter.bytes


@dataclass
class Read:
    """A reading in progress: what was read so far, for the record and for progress reports."""

    rows: int = 0
    bytes: int = 0
    sha256: str = ""

    def begin(self) -> None:
        """Start from the beginning."""
        self.rows, self.bytes, self.sha256 = 0, 0, ""


def pieces(
    opened: Opened,
    picks: Mapping[str, int],
    read: Read,
    ledger: Ledger,
    kinds: Kinds = MappingProxyType({}),
) -> Iterator[Table]:
    """Yield the columns `picks` (our name -> position) of a shard in pieces; every row once, in order.

    `kinds` are types that columns of text may be parsed as at once; see `io.parse.read_plain`.
    """
    own = {name: at for name, at in picks.items() if at != CONSTANT}
    parts = _of_parquet(opened, own, read, ledger) if opened.is_parquet else _of_text(opened, own, read, ledger, kinds)
    added = [pl.lit(opened.shard.system).alias(SYSTEM)] if len(own) < len(picks) else []
    added += [stems(pl.col("item"))] if opened.by_stem and "item" in own else []
    for piece in parts:
        read.rows += piece.frame.height
        yield replace(piece, frame=piece.frame.with_columns(added)) if added else piece


def _of_parquet(opened: Opened, picks: Mapping[str, int], read: Read, ledger: Ledger) -> Iterator[Table]:
    path, names = opened.shard.path, opened.shape.names
    assert names is not None
    read.bytes = Path(path).stat().st_size
    lazy = pl.scan_parquet(path, glob=False).select(pl.col(names[at]).alias(ours) for ours, at in picks.items())
    row = 0
    for frame in _sound(lazy.collect_batches(chunk_size=ROWS, maintain_order=True), opened.name, ledger):
        series = [tables.settle(s, s.name in opened.match.numeric) for s in frame.iter_columns()]
        yield Table(opened.name, pl.DataFrame(series), first_line=1 + row)
        row += frame.height


def _sound(frames: Iterator[pl.DataFrame], name: str, ledger: Ledger) -> Iterator[pl.DataFrame]:
    """Yield the frames; an unreadable page of a Parquet file is a fault of the file."""
    try:
        yield from frames
    except pl.exceptions.PolarsError as error:
        raise damaged_parquet(name, error, ledger) from None


def _of_text(opened: Opened, picks: Mapping[str, int], read: Read, ledger: Ledger, kinds: Kinds) -> Iterator[Table]:
    lines, shape, match = 0, opened.shape, opened.match
    with Meter(opened.shard.path) as meter, _unpacked(meter, opened.shard.path) as text:
        for block in _blocks(text, opened.name, ledger):
            data = one_line_end(_utf8(block, opened.name, lines, ledger), opened.name, ledger)
            has_header = match.has_header and not lines
            if not (data[:4096].strip() or data.strip()):
                pass
            elif shape.names is not None:
                yield _moved(_of_json(shape, data, picks, match, ledger), lines)
            elif b'"' in data:
                yield _moved(read_quoted(shape, data, has_header, picks, ledger), lines)
            else:
                yield _moved(read_plain(shape, data, has_header, picks, ledger, kinds), lines)
            lines, read.bytes = lines + block.count(b"\n"), meter.bytes
        while meter.read(HEAD):  # bytes after the end of the archive are part of the file's hash too
            pass
        read.sha256, read.bytes = meter.sha256, meter.bytes


def _blocks(text: Meter | gzip.GzipFile, name: str, ledger: Ledger) -> Iterator[bytes]:
    """Yield whole lines, many at a time; a line end inside quotes does not end a line."""
    is_first = True
    while True:
        try:
            data = text.read(BLOCK)
            if data and not data.endswith(b"\n"):
                data += text.readline(LONGEST)
            while len(data) < LONGEST and b'"' in data and data.count(b'"') % 2:  # a quoted field continues
                more = text.readline(LONGEST)
                if not more:
                    break
                data += more
        except (OSError, EOFError, zlib.error) as error:
            raise _damaged(name, error, ledger) from None
        if len(data) >= LONGEST:
            what = f"a line, or a quoted field, is longer than {LONGEST:,} bytes"
            raise ledger.stop("oversized-line", what, "give a table of scores", [Place(name)])
        if not data:
            return
        yield data.removeprefix(BOM) if is_first else data
        is_first = False


def _of_json(shape: Shape, data: bytes, picks: Mapping[str, int], match: Match, ledger: Ledger) -> Table:
    """Read JSON lines: with polars if the result surely equals that of the in-memory reader, else line by line."""
    assert shape.names is not None
    wanted = {ours: shape.names[at] for ours, at in picks.items()}
    quick = _quick_json(data, wanted, match)
    if quick is not None:
        return Table(shape.name, quick)
    seen = tables.look_at_json(Content(shape.name, "", data, "utf-8"), ledger)
    assert seen.frame is not None
    empty = pl.lit("")
    frame = seen.frame.select(
        (pl.col(theirs) if theirs in seen.frame.columns else empty).alias(ours) for ours, theirs in wanted.items()
    )
    return Table(shape.name, frame, lines=seen.lines)


def _quick_json(data: bytes, wanted: Mapping[str, str], match: Match) -> pl.DataFrame | None:
    n = data.count(b"\n") + (not data.endswith(b"\n"))
    if b"\n\n" in data or any(data.count(f'"{theirs}"'.encode()) != n for theirs in wanted.values()):
        return None
    try:
        frame = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
    except pl.exceptions.PolarsError:
        return None
    if frame.height != n or any(theirs not in frame.columns for theirs in wanted.values()):
        return None
    kinds = {ours: frame.schema[theirs] for ours, theirs in wanted.items()}
    fits = all(
        kind.is_float() or kind.is_integer() if ours in match.numeric else kind in (pl.String, pl.Int64)
        for ours, kind in kinds.items()
    )
    if not fits or any(frame[theirs].null_count() for theirs in wanted.values()):
        return None
    series = [tables.settle(frame[theirs].alias(ours), ours in match.numeric) for ours, theirs in wanted.items()]
    return pl.DataFrame(series)


def _moved(table: Table, lines: int) -> Table:
    """Return the same rows with line numbers increased by `lines`."""
    if not lines:
        return table
    if table.lines is not None:
        return replace(table, lines=np.asarray(table.lines + lines))
    return replace(table, first_line=table.first_line + lines)


# ----------------------------------------------------------------------
# Files that need a plug-in's reader, streamed: temporarily converted to Parquet files of the same names.


@dataclass(frozen=True)
class Plugged:
    """What to count, how to read it, and the original file of each (by the hash of the converted file)."""

    scores: Any
    options: ReadSpec
    made_from: Mapping[str, Source] = field(default_factory=dict)

    def named(self, header: Header) -> Header:
        """Return a header whose sources are the original files."""
        return replace(header, sources=tuple(self.made_from.get(s.sha256, s) for s in header.sources))


@contextmanager
def plugged(scores: Any, options: ReadSpec, scratch: str | None) -> Iterator[Plugged]:
    """Convert files of a plug-in's reader to tables in a folder made in `scratch`; leave other files unchanged."""
    reader = registry.find("reader", options.layout) if options.layout is not None else None
    if not callable(reader):
        yield Plugged(scores, options)
        return
    with tempfile.TemporaryDirectory(prefix="hitmiss-", dir=scratch) as folder:
        made = [_made(reader, path, Path(folder) / str(at)) for at, path in enumerate(map(str, expand(scores)))]
        yield Plugged(
            [str(path) for path, _, _ in made], replace(options, layout=None), {sha: was for _, sha, was in made}
        )


def _made(reader: Callable[..., Any], path: str | Path, folder: Path) -> tuple[Path, str, Source]:
    folder.mkdir()
    table = folder / Path(path).name
    frame_of(reader(path)).write_parquet(table)
    return table, digest(str(table))[0], Source(table.name, digest(str(path))[0])
