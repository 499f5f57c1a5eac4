"""Turn sources into tables of text: separated text, JSON lines, Parquet, frames, nested rows. No type is inferred."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core import artifacts, registry
from hitmiss.core.classes import named_classes
from hitmiss.core.columns import prefixed
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.trials import FIXED
from hitmiss.io.columns import is_number, looks_headed, mixed_note
from hitmiss.io.parse import (
    Content,
    Kinds,
    Ledger,
    Meter,
    Pieced,
    Place,
    Row,
    Shape,
    Stop,
    Table,
    blocks,
    digest,
    fetch,
    fetch_head,
    read_plain,
    read_quoted,
)

# ----------------------------------------------------------------------
# Sources with named columns: JSON lines, Parquet files, and frames of polars and pandas.

if TYPE_CHECKING:
    import pandas as pd

SAMPLE_ROWS = 50
LACKING = "lack some of the names"


def look_at_frame(source: object, ledger: Ledger) -> Shape:
    """Take a first look at a polars or pandas frame."""
    frame = frame_of(source)
    if not frame.height:
        raise ledger.stop("empty-file", "the table holds no rows", "give a table with rows", [Place("table")])
    return Shape("table", head_of(frame), tuple(frame.columns), frame=frame)


def look_at_parquet(content: Content, ledger: Ledger) -> Shape:
    """Take a first look at a Parquet file."""
    try:
        if content.is_arrow:
            frame = pl.read_ipc(io.BytesIO(content.data))
        else:
            refuse_bomb(pl.scan_parquet(io.BytesIO(content.data)), len(content.data), content.name, ledger)
            frame = pl.read_parquet(io.BytesIO(content.data))
    except (pl.exceptions.PolarsError, OSError) as error:
        what = f"the {'Arrow' if content.is_arrow else 'Parquet'} file is damaged ({str(error).splitlines()[0]})"
        raise ledger.stop("unreadable-file", what, "make or fetch it again", [Place(content.name)]) from None
    if not frame.height:
        raise ledger.stop("empty-file", "the file holds no rows", "give a file with rows", [Place(content.name)])
    return Shape(content.name, head_of(frame), tuple(frame.columns), content=content, frame=frame)


def refuse_bomb(lazy: pl.LazyFrame, packed: int, name: str, ledger: Ledger, *, is_streamed: bool = False) -> int:
    """Stop before decompressing a Parquet file that claims more rows than its size can reasonably hold; return the rows."""
    rows, width = int(lazy.select(pl.len()).collect().item()), len(lazy.collect_schema())
    limit = artifacts.unfolded(packed, is_streamed)
    if rows * width * 8 > limit:
        what = f"its {rows:,} rows of {width} columns unfold beyond {limit:,} bytes"
        raise ledger.stop("oversized-archive", what, "write it again as CSV if you trust it", [Place(name)])
    return rows


def look_at_json(content: Content, ledger: Ledger, before: int = 0) -> Shape:
    """Take a first look at a JSON file: one object per line, an array of objects, or one object of id -> score.

    Numbers are kept as their original text; an absent key becomes empty text. `before`: lines before this part.
    """
    rows = _array(content, ledger) if content.data.lstrip()[:1] == b"[" else _lines(content, ledger, before)
    names = tuple(dict.fromkeys(name for _, row in rows for name in row))
    frame = pl.DataFrame(
        {name: [row.get(name, "") for _, row in rows] for name in names}, schema=dict.fromkeys(names, pl.String)
    )
    short = sum(len(row) != len(names) for _, row in rows)
    if short:
        ledger.notes.append(
            f"{content.name}: {short:,} of {len(rows):,} lines {LACKING} {', '.join(names)}; read as empty"
        )
    return Shape(
        content.name,
        head_of(frame),
        names,
        content=content,
        frame=frame,
        lines=np.array([n for n, _ in rows], dtype=np.int64),
    )


Rows = list[tuple[int, dict[str, str]]]


def _lines(content: Content, ledger: Ledger, before: int) -> Rows:
    rows: Rows = []
    wrong: list[Place] = []
    for n, line in enumerate(content.data.split(b"\n"), before + 1):
        if line.strip():
            try:
                rows.append((n, _json_row(strict_json(line))))
            except (ValueError, RecursionError) as error:
                wrong.append(Place(content.name, n, _why(line, error)))
    if not before and ((len(rows) + len(wrong) > 1 and wrong) or (len(rows) == 1 and not wrong)):
        single = _one_object(content)
        if single is not None:
            return single
    if wrong:
        what = f"{{n}} line{{s}} without a JSON object that has one value per name ({wrong[0].value})"
        raise ledger.stop("ragged-row", what, "write one object per line", wrong, each="a JSON object was expected")
    return rows


def _one_object(content: Content) -> Rows | None:
    """Return the rows of a file that is one object of id -> score; None for any other content."""
    try:
        whole = strict_json(content.data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole, dict) or len(whole) < 2 or {name.lower() for name in whole} & {"score", "label", "item"}:
        return None
    if not all(isinstance(value, str) and is_number(value) for value in whole.values()):
        return None
    return [(1, {"item": name, "score": value}) for name, value in whole.items()]


def _array(content: Content, ledger: Ledger) -> Rows:
    """Return the objects of an array, each with the line on which it begins."""
    fix = "write an array of objects, or one object per line"
    try:
        found = strict_json(content.data)
    except (ValueError, RecursionError) as error:
        row = getattr(error, "lineno", 1)
        line = content.data.split(b"\n")[row - 1]
        raise ledger.stop(
            "ragged-row", f"the JSON array cannot be read ({_why(line, error)})", fix, [Place(content.name, row)]
        ) from None
    assert isinstance(found, list)  # the text begins with [
    wrong = [Place(content.name, 1, str(value)[:40]) for value in found if not isinstance(value, dict)]
    if wrong or not found:
        kind, what = (
            ("ragged-row", "{n} value{s} of the JSON array that are no objects")
            if wrong
            else ("empty-file", "the JSON array is empty")
        )
        raise ledger.stop(kind, what, fix, wrong or [Place(content.name, 1)])
    return [(line, _json_row(value)) for line, value in zip(_starts(content.data, len(found)), found, strict=True)]


def _starts(data: bytes, n: int) -> list[int]:
    """Return the lines on which the objects of an array begin."""
    text, decoder, lines = data.decode(), json.JSONDecoder(), []
    at, line, seen = text.index("[") + 1, 1, 0
    for _ in range(n):
        at = text.index("{", at)
        line += text.count("\n", seen, at)
        seen = at
        lines.append(line)
        at = decoder.raw_decode(text, at)[1]
    return lines


def strict_json(text: bytes | str) -> object:
    """Parse JSON, keeping numbers as their original text; refuse a repeated name in an object, showing both values.

    >>> strict_json('{"a": 0.10, "b": [1]}')
    {'a': '0.10', 'b': ['1']}
    """
    return json.loads(text, parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_no_repeats)


def _why(line: bytes, error: Exception) -> str:
    """Explain why a text is not JSON, in words that help to fix it."""
    if isinstance(error, json.JSONDecodeError):
        for python, meant in (
            ("nan", "null"),
            ("None", "null"),
            ("True", "true"),
            ("False", "false"),
            ("inf", "a number"),
        ):
            if line[error.pos if error.lineno == 1 else error.colno - 1 :].startswith(python.encode()):
                return f"{python} is not JSON, write {meant}"
        if b"'" in line and b'"' not in line:
            return "names and texts need double quotes in JSON"
    return str(error).partition(":")[0] if isinstance(error, json.JSONDecodeError) else str(error)


def frame_of(source: object) -> pl.DataFrame:
    """Return a polars frame from a polars or pandas frame."""
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, pl.DataFrame):
        return source
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        return _from_pandas(source)
    raise UsageError(f"trials are read from paths and from polars or pandas frames; found a {type(source).__name__}")


def settle(column: pl.Series, is_number: bool) -> pl.Series:
    """Return a column as text, or as numbers where a number is expected. Only scores may become null."""
    kind = column.dtype
    if is_number and kind.is_numeric():
        return _exact(column)
    if kind == pl.Binary:
        try:
            return column.cast(pl.String).fill_null("")
        except pl.exceptions.PolarsError:
            raise DataError(
                f"the column {column.name} holds bytes that are not UTF-8 text; write it as text", code="not-text"
            ) from None
    if kind.is_nested() or kind in (pl.Object, pl.Duration):
        return pl.Series(column.name, ["" if v is None else str(v) for v in column.to_list()], dtype=pl.String)
    texts = column.cast(pl.String)
    return texts.fill_null("") if texts.null_count() else texts


def is_plain_number(kind: pl.DataType) -> bool:
    """Return whether every value of a type is a number that a float holds exactly."""
    return kind.is_numeric() and kind not in (pl.Int64, pl.UInt64, pl.Int128)


def _exact(column: pl.Series) -> pl.Series:
    """Return numbers as floats; refuse integers that would lose digits, because distinct values could then tie."""
    floats = column.cast(pl.Float64)
    if column.dtype.is_integer() and not is_plain_number(column.dtype):
        lost = (floats.cast(pl.Int128) != column.cast(pl.Int128)).fill_null(False)
        if lost.any():
            raise DataError(
                f"{int(lost.sum()):,} values of {column.name} are whole numbers of more than 15 digits, the first is "
                f"{column.filter(lost)[0]}: as scores they would lose their last digits; scale them, or write them as floats",
                code="inexact-number",
            )
    return floats


def _json_row(row: object) -> dict[str, str]:
    if not isinstance(row, dict):
        raise ValueError("no object")
    return {name: value if isinstance(value, str) else _json_text(value) for name, value in row.items()}


def _json_text(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


class Repeated(ValueError):
    """A JSON object that has the same name twice."""

    def __init__(self, name: str, one: str, other: str) -> None:
        self.name, self.one, self.other = name[:40], one[:40], other[:40]
        super().__init__(f"the name {self.name!r} occurs twice, as {self.one!r} and {self.other!r}")


def _no_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    row: dict[str, object] = {}
    for name, value in pairs:
        if name in row:
            raise Repeated(name, str(row[name]), str(value))
        row[name] = value
    return row


def _from_pandas(frame: pd.DataFrame) -> pl.DataFrame:
    return pl.DataFrame([_pandas_column(str(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns)])


def _pandas_column(name: str, column: pd.Series) -> pl.Series:
    values = column.to_numpy()
    if values.dtype.kind in "fiub":
        return pl.Series(name, values)
    absent = column.isna().to_numpy()
    texts = [None if gone else str(v) for v, gone in zip(column.tolist(), absent.tolist(), strict=True)]
    return pl.Series(name, texts, dtype=pl.String)


def head_of(frame: pl.DataFrame) -> tuple[Row, ...]:
    """Return the first rows of a frame as text."""
    return tuple(tuple("" if v is None else str(v) for v in row) for row in frame.head(SAMPLE_ROWS).iter_rows())


# ----------------------------------------------------------------------
# Sources to tables of text: no type is inferred, no value is treated as missing, no row is lost.
#
# A source is first inspected (`look`: its first rows and its separator), then read (`load`: the requested columns under
# our names). In between, `columns.recognise` decides what the columns are.

SEPARATORS: Final = ("\t", ";", ",", "|", " ")
SAMPLE_BYTES: Final = 2**17
T = TypeVar("T")


def look(source: object, options: ReadSpec, ledger: Ledger, memory: int | None = None) -> Shape:
    """Open a path or a frame and take a first look; with a bound on the memory, files are left to be read in pieces."""
    if not isinstance(source, str | Path):
        return look_at_frame(source, ledger)
    if memory is not None and (shape := _look_at_pieces(source, options, ledger, memory)) is not None:
        return shape
    content = fetch(source, options.encoding, ledger)
    return look_at_parquet(content, ledger) if content.is_parquet else look_at_text(content, options, ledger)


def look_at_text(content: Content, options: ReadSpec, ledger: Ledger) -> Shape:
    """Take a first look at a text."""
    start = content.data.lstrip()[:2]
    if start[:1] == b"{" or (start[:1] == b"[" and content.data.lstrip()[1:].lstrip()[:1] in (b"{", b"]")):
        return look_at_json(content, ledger)
    sample = _sample_lines(content.data)
    separator = options.separator or guess_separator(sample)
    return Shape(content.name, _sample_rows(sample, separator), separator=separator, content=content)


def _look_at_pieces(path: str | Path, options: ReadSpec, ledger: Ledger, memory: int) -> Shape | None:
    """Take a first look at a file that is read in pieces; None for JSON that cannot be cut into lines of one object."""
    content = fetch_head(path, ledger)
    start = content.data.lstrip()[:1]
    if start == b"[" or (start == b"{" and find_reshaping(options) is None):  # its last line may have another name
        return None
    shape = look_at_head(path, options, ledger)
    whole = replace(shape.content or content, sha256=digest(path)[0])
    return replace(shape, content=whole, frame=None, lines=None, pieced=Pieced(path, memory))


def load(
    shape: Shape,
    has_header: bool,
    picks: Mapping[str, int],
    numeric: frozenset[str],
    ledger: Ledger,
    kinds: Kinds | None = None,
) -> Table:
    """Read the columns `picks` (our name -> position) of a source; `numeric` ones keep numbers of typed sources.

    `kinds` are the types of text columns if no value is irregular. A caller that passes them must read again without
    them before it reports the content of a cell (see `quick_or_careful`).
    """
    if shape.frame is not None:
        series = [shape.frame.to_series(at).alias(ours) for ours, at in picks.items()]
        return Table(shape.name, pl.DataFrame([settle(s, s.name in numeric) for s in series]), lines=shape.lines)
    assert shape.content is not None  # a shape has either a frame or a content
    if shape.pieced is None:
        table = _of_block(shape, shape.content.data, has_header, picks, ledger, kinds)
    else:
        held: list[Table] = []
        for piece in pieces(shape.pieced.path, shape, has_header, numeric, picks, Read(), ledger, kinds):
            held.append(piece)
            refuse_many(sum(int(one.frame.estimated_size()) for one in held), shape.pieced.memory)
        if any(
            one.frame.schema != held[0].frame.schema for one in held
        ):  # a cell that is not a number: texts throughout
            return load(shape, has_header, picks, numeric, ledger)
        table = Table(shape.name, pl.concat([one.frame for one in held]), lines=lines_of(held))
    if not table.frame.height:
        what = "there is a header and no row under it"
        raise ledger.stop("empty-file", what, "give a file with rows", [Place(shape.name, 1)])
    return table


def _of_block(
    shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Ledger, kinds: Kinds | None
) -> Table:
    """Read a text, or whole lines of one."""
    if b'"' in data:
        return read_quoted(shape, data, has_header, picks, ledger)
    return read_plain(shape, data, has_header, picks, ledger, kinds)


# ----------------------------------------------------------------------
# The same for files that are not kept: a look at the head, then the rows in pieces, each read as a whole file is.

PIECE_ROWS: Final = 2**19
"""Rows of a Parquet file that are read at a time."""
COPIES: Final = 4
"""How often the rows that are kept are held at most, while they are checked and joined."""


def refuse_many(size: int, memory: int) -> None:
    """Refuse rows that do not fit into memory, given the bytes of those read so far."""
    if size * COPIES > memory:
        raise UsageError(
            f"these figures need every row at once, and the rows read so far take {size * COPIES / 1e6:,.0f} MB; raise "
            "--memory, or give fewer rows",
            code="rows-beyond-memory",
        )


def lines_of(held: Sequence[Table]) -> NDArray[np.int64]:
    """Return the line of the file on which each row of several tables begins."""
    return np.concatenate(
        [
            one.first_line + np.arange(one.frame.height, dtype=np.int64) if one.lines is None else one.lines
            for one in held
        ]
    )


@dataclass
class Read:
    """A reading in progress: what was read so far, for the record and for progress reports."""

    rows: int = 0
    bytes: int = 0
    sha256: str = ""


def look_at_head(path: str | Path, options: ReadSpec, ledger: Ledger) -> Shape:
    """Take a first look at a file without reading all of it."""
    content = fetch_head(path, ledger)
    return _look_at_parquet_head(path, ledger) if content.is_parquet else look_at_text(content, options, ledger)


def _look_at_parquet_head(path: str | Path, ledger: Ledger) -> Shape:
    name = Path(path).name
    try:
        lazy = pl.scan_parquet(path, glob=False)
        rows = refuse_bomb(lazy, Path(path).stat().st_size, name, ledger, is_streamed=True)
        head = lazy.head(SAMPLE_ROWS).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise damaged_parquet(name, error, ledger) from None
    if not head.height:
        raise ledger.stop("empty-file", "the file holds no rows", "give a file with rows", [Place(name)])
    return Shape(name, head_of(head), tuple(head.columns), rows=rows)


def damaged_parquet(name: str, error: Exception, ledger: Ledger) -> Exception:
    """Return the finding that a Parquet file cannot be read, to be raised."""
    what = f"the Parquet file is damaged ({str(error).splitlines()[0]})"
    return ledger.stop("unreadable-file", what, "make or fetch it again", [Place(name)])


def pieces(
    path: str | Path,
    shape: Shape,
    has_header: bool,
    numeric: frozenset[str],
    picks: Mapping[str, int],
    read: Read,
    ledger: Ledger,
    kinds: Kinds | None = None,
) -> Iterator[Table]:
    """Yield the columns `picks` (our name -> position) of a file in pieces; every row once, in order.

    `kinds` are types that columns of text may be parsed as at once; see `io.parse.read_plain`.
    """
    read.rows, read.bytes, read.sha256 = 0, 0, ""
    if shape.is_read and shape.content is not None:
        read.bytes, read.sha256 = Path(path).stat().st_size, shape.content.sha256
        found = iter([load(shape, has_header, picks, numeric, ledger, kinds)])
    elif shape.content is None or shape.content.is_parquet:
        found = _of_parquet(path, shape, numeric, picks, read, ledger)
    else:
        found = _of_text(path, shape, has_header, numeric, picks, read, ledger, kinds)
    for piece in found:
        read.rows += piece.frame.height
        yield piece


def _of_parquet(
    path: str | Path, shape: Shape, numeric: frozenset[str], picks: Mapping[str, int], read: Read, ledger: Ledger
) -> Iterator[Table]:
    assert shape.names is not None
    read.bytes = Path(path).stat().st_size
    lazy = pl.scan_parquet(path, glob=False).select(pl.col(shape.names[at]).alias(ours) for ours, at in picks.items())
    try:
        for frame in lazy.collect_batches(chunk_size=PIECE_ROWS, maintain_order=True):
            series = [settle(s, s.name in numeric) for s in frame.iter_columns()]
            yield Table(shape.name, pl.DataFrame(series), first_line=1 + read.rows)
    except pl.exceptions.PolarsError as error:
        raise damaged_parquet(shape.name, error, ledger) from None


def _of_text(
    path: str | Path,
    shape: Shape,
    has_header: bool,
    numeric: frozenset[str],
    picks: Mapping[str, int],
    read: Read,
    ledger: Ledger,
    kinds: Kinds | None,
) -> Iterator[Table]:
    with Meter(path) as meter:
        for data, before in blocks(meter, path, ledger, is_quoted=shape.names is None):
            if data[:4096].strip() or data.strip():
                if shape.names is not None:
                    yield _of_json(shape, data, before, picks, numeric, ledger)
                else:
                    table = _of_block(shape, data, has_header and not before, picks, ledger, kinds)
                    yield (
                        replace(table, first_line=table.first_line + before)
                        if table.lines is None
                        else replace(table, lines=table.lines + before)
                    )
            read.bytes = meter.bytes
        read.sha256, read.bytes = meter.sha256, meter.bytes


def _of_json(
    shape: Shape, data: bytes, before: int, picks: Mapping[str, int], numeric: frozenset[str], ledger: Ledger
) -> Table:
    """Read JSON lines: with polars if the result surely equals that of the in-memory reader, else line by line."""
    assert shape.names is not None
    wanted = {ours: shape.names[at] for ours, at in picks.items()}
    quick = _quick_json(data, wanted, numeric)
    if quick is not None:
        return Table(shape.name, quick, first_line=1 + before)
    seen = look_at_json(Content(shape.name, "", data, "utf-8"), ledger, before)
    assert seen.frame is not None
    empty = pl.lit("")
    frame = seen.frame.select(
        (pl.col(theirs) if theirs in seen.frame.columns else empty).alias(ours) for ours, theirs in wanted.items()
    )
    return Table(shape.name, frame, lines=seen.lines)


def _quick_json(data: bytes, wanted: Mapping[str, str], numeric: frozenset[str]) -> pl.DataFrame | None:
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
        kind.is_float() or kind.is_integer() if ours in numeric else kind in (pl.String, pl.Int64)
        for ours, kind in kinds.items()
    )
    if not fits or any(frame[theirs].null_count() for theirs in wanted.values()):
        return None
    series = [settle(frame[theirs].alias(ours), ours in numeric) for ours, theirs in wanted.items()]
    return pl.DataFrame(series)


def quick_or_careful(read: Callable[[Ledger, Kinds], T], kinds: Kinds, ledger: Ledger) -> T:
    """Apply `read` to a source: first the fast path, then the careful path if needed.

    The first attempt uses the types that columns have if no value is irregular. If it finds any fault, everything is
    read again as text: only the text shows the exact content of a cell, so faults are always reported from that second
    pass.
    """
    if kinds:
        trial = Ledger()
        with suppress(Stop):
            found = read(trial, kinds)
            if not trial.findings:
                ledger.take(trial)
                return found
    return read(ledger, {})


def load_all(shape: Shape, ledger: Ledger, has_header: bool = True, names: Sequence[str] | None = None) -> Table:
    """Read all columns of a source as text, under their own names or `names` (columns with an empty name are dropped)."""
    called = names or shape.names or shape.first[0]
    picks = {name: at for at, name in enumerate(called) if name or names is None}
    return load(shape, has_header, picks, frozenset(), ledger)


@dataclass(frozen=True)
class Stack:
    """The tables of several sources concatenated: the shards of one run.

    `rows` maps rows back to the files after filtering; `is_unique` records that no item occurs twice.
    """

    tables: tuple[Table, ...]
    frame: pl.DataFrame
    rows: NDArray[np.int64] | None = None
    is_unique: bool = False
    theirs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Sequence[Table], theirs: Mapping[str, str]) -> Stack:
        """Concatenate tables that have the same columns; `theirs` maps our names to those in the file."""
        frames = [t.frame for t in tables]
        if any(
            frame.schema != frames[0].schema for frame in frames
        ):  # Parquet together with text: numbers become their text form
            frames = [frame.with_columns(pl.all().cast(pl.String).fill_null("")) for frame in frames]
        frame = pl.concat(frames) if len(tables) > 1 else frames[0]
        return cls(tuple(tables), frame, theirs=theirs)

    def title(self, name: str) -> str:
        """Return the file's own name for one of our columns, for use in messages."""
        return self.theirs.get(name, name)

    def place(self, row: int) -> Place:
        """Return the place of one row of the frame in the files."""
        return self.at(pl.Series([row]))[0]

    def places(self, where: pl.Series, column: str | None = None) -> list[Place]:
        """Return the places of all rows for which `where` is true, with the values of a column."""
        return self.at(where.arg_true(), column)

    def at(self, rows: pl.Series, column: str | None = None) -> list[Place]:
        """Return the places of rows given by position in the frame, with their ids and the values of a column."""
        frame = self.frame[rows]
        nothing = [None] * len(rows)
        values = [None if v is None else str(v) for v in frame[column]] if column else nothing
        items = frame["item"].to_list() if "item" in frame.columns else nothing
        lines = self._lines(rows.to_numpy() if self.rows is None else self.rows[rows.to_numpy()])
        return [Place(*line, value, item) for line, value, item in zip(lines, values, items, strict=True)]

    def _lines(self, rows: NDArray[np.int64]) -> list[tuple[str, int]]:
        """Return the file and line of rows of the whole stack."""
        ends = np.cumsum([table.frame.height for table in self.tables])
        which = np.searchsorted(ends, rows, side="right")
        starts = np.concatenate([[0], ends])
        pairs = zip(which.tolist(), (rows - starts[which]).tolist(), strict=True)
        return [(self.tables[t].name, self.tables[t].line(row)) for t, row in pairs]

    def keep(self, where: pl.Series) -> Stack:
        """Return the rows for which `where` is true; their line numbers are kept."""
        rows = where.arg_true().to_numpy().astype(np.int64)
        return replace(self, frame=self.frame.filter(where), rows=rows if self.rows is None else self.rows[rows])

    def renamed(self, names: Mapping[str, str]) -> Stack:
        """Return the same rows with some columns renamed."""
        theirs = {names.get(ours, ours): theirs for ours, theirs in self.theirs.items()}
        tables = tuple(replace(t, frame=t.frame.rename(dict(names), strict=False)) for t in self.tables)
        return replace(self, tables=tables, frame=self.frame.rename(dict(names), strict=False), theirs=theirs)

    def put(self, *columns: pl.Series | pl.Expr) -> Stack:
        """Return the same rows with columns added or replaced."""
        return replace(self, frame=self.frame.with_columns(*columns))


def guess_separator(lines: Sequence[str]) -> str:
    """Return the separator that splits all lines into equally many fields; tab before `;` before `,` before space.

    >>> guess_separator(["a b 0.5", "c d 0.6"]), guess_separator(["filename,score", "a b,1"])
    (' ', ',')
    >>> guess_separator(["E_1 0,5", "E_2 0,25"])  # a decimal comma separates nothing
    ' '
    """
    if any('"' in line for line in lines):
        lines = [_outside_quotes(lines[0])]  # later lines may begin inside a quoted field
    fields = {sep: _count_fields(lines[0], sep) for sep in SEPARATORS}
    steady = [s for s, n in fields.items() if n > 1 and all(_count_fields(line, s) == n for line in lines)]
    if "," in steady and " " in steady and _are_decimal_commas(lines):
        return " "
    return steady[0] if steady else max(SEPARATORS, key=fields.__getitem__)


def _count_fields(line: str, separator: str) -> int:
    return len(_cut(line)) if separator == " " else line.count(separator) + 1


def _are_decimal_commas(lines: Sequence[str]) -> bool:
    parts = [line.split(",") for line in lines]
    return all(a[-1:].isdigit() and b[:1].isdigit() for cut in parts for a, b in pairwise(cut))


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])


def _cut(line: str) -> list[str]:
    return [cell for cell in line.split(" ") if cell]


def _sample_lines(data: bytes) -> list[str]:
    head = data[:SAMPLE_BYTES].decode("utf-8", "ignore")
    lines = head.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    whole = lines[:-1] if len(data) > SAMPLE_BYTES and len(lines) > 1 else lines
    return list(islice((line for line in whole if line.strip(" ")), SAMPLE_ROWS))


def _sample_rows(lines: Sequence[str], separator: str) -> tuple[Row, ...]:
    if any('"' in line for line in lines):
        return tuple(tuple(row) for row in csv.reader(lines, delimiter=separator) if row)
    return tuple(tuple(_cut(line) if separator == " " else line.split(separator)) for line in lines)


# ----------------------------------------------------------------------
# A table exactly as in its file: every column as text under its own name, with the line numbers.


@dataclass(frozen=True, eq=False)
class TextRows:
    """The rows, the name of the file and the SHA-256 of its bytes (empty for a frame)."""

    stack: Stack
    name: str
    sha256: str

    @property
    def frame(self) -> pl.DataFrame:
        """The columns, as text."""
        return self.stack.frame

    def line(self, row: int) -> int:
        """Return the line of the file on which a row begins."""
        return self.stack.place(row).row or 0


# ----------------------------------------------------------------------
# Files with nested rows: a layout may flatten them before the reader recognises their columns.


@dataclass(frozen=True)
class Conflict:
    """A row (from 0) with two values for one fact: in its own field `name` and in a nested field, or twice in one."""

    row: int
    name: str
    one: str
    other: str
    where: str
    is_inside: bool = False


@dataclass(frozen=True)
class BadCell:
    """A row (from 0) with a field that cannot be read: the kind of fault, the cell, what is wrong, and how to fix it."""

    row: int
    kind: str
    name: str
    value: str
    what: str
    each: str
    fix: str


@dataclass(frozen=True)
class Reshaped:
    """A flat table, its run columns and numeric columns, and facts for the provenance in the header."""

    frame: pl.DataFrame
    runs: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    conditions: Mapping[str, Mapping[str, Sequence[object]]] = field(default_factory=dict)
    """For each run, under which conditions its answers were given: the values of each setting."""
    classes: tuple[str, str] | None = None
    """The layout's names of the classes, if the caller's words for them were replaced."""
    faults: tuple[BadCell, ...] = ()


class Flattening(Protocol):
    """A file that is being flattened, piece by piece; the result does not depend on how it was cut."""

    def add(self, texts: pl.DataFrame) -> None:
        """Add the next rows, as text columns; all pieces have the same columns."""

    @property
    def bytes(self) -> int:
        """The memory that is held."""

    def flat(self) -> Reshaped:
        """Return the flat table of all rows."""


@dataclass(frozen=True)
class Reshaping:
    """A layout for files with nested rows: `flatten` begins to turn a table of text columns into a flat table."""

    name: str
    title: str
    flatten: Callable[[ReadSpec], Flattening]
    names: Mapping[str, str] = field(default_factory=dict)
    """The layout's names of the columns that a caller may declare: `item` -> `id`."""


def find_reshaping(options: ReadSpec) -> Reshaping | None:
    """Return the reshaping that the options name as their layout, if it is one."""
    reader = registry.find("reader", options.layout) if options.layout is not None else None
    return reader if isinstance(reader, Reshaping) else None


def reshape(
    shapes: Sequence[Shape], reshaping: Reshaping, options: ReadSpec, ledger: Ledger
) -> tuple[list[Shape], ReadSpec, dict[str, object]]:
    """Return flat shapes, the options with the runs and numbers that were found, and the merged facts of all files."""
    if not all(shape.names is not None or looks_headed(shape, options) for shape in shapes):
        return list(shapes), options, {}
    found = [_flattened(shape, reshaping, options, ledger) for shape in shapes]
    made = _aligned([table for table, _, _ in found])
    flat = [
        replace(shape, first=head_of(t.frame), names=(*t.frame.columns,), frame=t.frame, lines=lines, is_settled=True)
        for shape, t, (_, lines, _) in zip(shapes, made, found, strict=True)
    ]
    _refuse_conflicts(flat, made, ledger)
    _refuse_cells(flat, made, ledger)
    runs = dict.fromkeys((*options.runs, *(name for table in made for name in table.runs)))
    numbers = dict.fromkeys((*options.numbers, *(name for table in made for name in table.numbers)))
    # the layout knows which columns may be absent
    ledger.notes[:] = [note for note in ledger.notes if LACKING not in note]
    ledger.notes += [f"{shape.name}: {note}" for shape, t in zip(shapes, made, strict=True) for note in t.notes]
    ledger.notes += _mixed([table.conditions for table in made])
    known = {name for _, _, names in found for name in names}
    unknown = {ours: theirs for ours, theirs in options.columns.items() if theirs not in known}
    changed = options.changed(runs=tuple(runs), numbers=tuple(numbers), columns=unknown)
    if made[0].classes is not None:
        own, other = named_classes(options.positive or "", options.negative or "")
        ledger.notes.append(
            f"{own} is read as {made[0].classes[0]}, {other} as {made[0].classes[1]}: the figures have the names of the document"
        )
        changed = changed.changed(positive=made[0].classes[0], negative=made[0].classes[1])
    return flat, changed, merged([table.facts for table in made])


def _mixed(conditions: Sequence[Mapping[str, Mapping[str, Sequence[object]]]]) -> list[str]:
    """Return a warning for each run whose answers, in all files together, were given under different conditions."""
    found: dict[str, dict[str, list[object]]] = {}
    for own in conditions:
        for run, settings in own.items():
            for name, values in settings.items():
                known = found.setdefault(run, {}).setdefault(name, [])
                known += [value for value in values if value not in known]
    several = {run: {n: v for n, v in settings.items() if len(v) > 1} for run, settings in found.items()}
    return [mixed_note(run, settings, are_columns=False) for run, settings in several.items() if settings]


def _flattened(
    shape: Shape, reshaping: Reshaping, options: ReadSpec, ledger: Ledger
) -> tuple[Reshaped, NDArray[np.int64], Row]:
    """Return a source as a flat table, with the line of each row and the names of all its columns."""
    names = shape.names or shape.first[0]
    while True:
        made, lines = reshaping.flatten(options), list[NDArray[np.int64]]()
        for piece in _texts(shape, ledger):
            new = tuple(name for name in piece.frame.columns if name not in names)
            if new:  # a line of JSON lines has a name that none before it has: all pieces need the same columns
                names = (*names, *new)
                break
            absent = [pl.lit("").alias(name) for name in names if name not in piece.frame.columns]
            made.add(_called(piece.frame.with_columns(absent).select(names), reshaping, options))
            lines.append(lines_of([piece]))
            if shape.pieced is not None:
                refuse_many(made.bytes, shape.pieced.memory)
        else:
            return made.flat(), np.concatenate(lines), names


def _texts(shape: Shape, ledger: Ledger) -> Iterator[Table]:
    """Yield every column of a source as text under its own name, in pieces if it is read so."""
    names = shape.names or shape.first[0]
    picks = {name: at for at, name in enumerate(names)}
    if shape.pieced is None:
        yield load(shape, True, picks, frozenset(), ledger)
    elif shape.content is not None and not shape.content.is_parquet and shape.names is not None:
        path = shape.pieced.path
        with Meter(path) as meter:
            for data, before in blocks(meter, path, ledger, is_quoted=False):
                if data.strip():
                    seen = look_at_json(Content(shape.name, "", data, "utf-8"), ledger, before)
                    yield load(seen, True, {name: at for at, name in enumerate(seen.names or ())}, frozenset(), ledger)
    else:
        yield from pieces(shape.pieced.path, shape, True, frozenset(), picks, Read(), ledger)


def _called(frame: pl.DataFrame, reshaping: Reshaping, options: ReadSpec) -> pl.DataFrame:
    """Rename declared columns to the layout's names; columns that already had those names are put aside."""
    told = {
        theirs: reshaping.names.get(ours, ours) for ours, theirs in options.columns.items() if theirs in frame.columns
    }
    moved = {name: prefixed(name) for name in told.values() if name in frame.columns and name not in told}
    return frame.rename({**moved, **{name: ours for name, ours in told.items() if name != ours}})


def _refuse_conflicts(shapes: Sequence[Shape], made: Sequence[Reshaped], ledger: Ledger) -> None:
    """Refuse rows that state the same fact twice with different values."""
    for shape, flat in zip(shapes, made, strict=True):
        lines = [] if shape.lines is None else shape.lines.tolist()
        for name in dict.fromkeys(conflict.name for conflict in flat.conflicts):
            own = [c for c in flat.conflicts if c.name == name]
            places = [Place(shape.name, lines[c.row], f"{c.one} and {c.other}") for c in own]
            first = own[0]
            said = f"with another {name} in {first.where} than beside it ({first.other} and {first.one})"
            twice = f"with {name} twice in {first.where}, as {first.one} and {first.other}"
            what = f"{{n}} row{{s}} {twice if first.is_inside else said}"
            ledger.add("column-conflict", what, "keep the right one, or rename the other", places, name)


def _refuse_cells(shapes: Sequence[Shape], made: Sequence[Reshaped], ledger: Ledger) -> None:
    """Refuse fields that cannot be read, with their files and lines."""
    for shape, flat in zip(shapes, made, strict=True):
        lines = [] if shape.lines is None else shape.lines.tolist()
        alike: dict[tuple[str, ...], list[Place]] = {}
        for bad in flat.faults:
            place = Place(shape.name, lines[bad.row], bad.value)
            alike.setdefault((bad.kind, bad.what, bad.fix, bad.name, bad.each), []).append(place)
        for (kind, what, fix, name, each), places in alike.items():
            ledger.add(kind, what, fix, places, name, each)


def _aligned(made: Sequence[Reshaped]) -> list[Reshaped]:
    """Give all tables the same slices and numbers: null numbers and `-` where a file has none."""
    extra = {name: kind for t in made for name, kind in t.frame.schema.items() if name not in FIXED}
    fills = {name: pl.lit(None if kind.is_numeric() else "-", kind).alias(name) for name, kind in extra.items()}
    return [
        replace(t, frame=t.frame.with_columns(fill for name, fill in fills.items() if name not in t.frame.columns))
        for t in made
    ]


def merged(facts: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Merge facts of several files: equal values stay, different values become a list of all values.

    >>> merged([{"cache": "on", "models": {"agent": "a"}}, {"cache": "off", "models": {"agent": "a"}}])
    {'cache': ['off', 'on'], 'models': {'agent': 'a'}}
    """
    found: dict[str, object] = {}
    for name in dict.fromkeys(name for one in facts for name in one):
        values = [one[name] for one in facts if name in one]
        tables = [value for value in values if isinstance(value, Mapping)]
        if len(tables) == len(values):
            found[name] = merged(tables)
        else:
            distinct = sorted((value for i, value in enumerate(values) if value not in values[:i]), key=str)
            found[name] = distinct[0] if len(distinct) == 1 else distinct
    return found
