"""Sources to tables of text: no type is inferred, no value is treated as missing, no row is lost.

A source is first inspected (`look`: its first rows and its separator), then read (`load`: the requested columns under
our names). In between, `columns.recognise` decides what the columns are. Files that are not kept are read in pieces,
each as a whole file is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Place
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io.blocks import HashingFile, blocks, digest, fetch_head
from hitmiss.io.diagnostics import Diagnostics, Stop
from hitmiss.io.fetch import fetch
from hitmiss.io.frames import (
    as_codes,
    as_text_or_numbers,
    look_at_frame,
    look_at_parquet,
    look_at_parquet_head,
    read_parquet_pieces,
)
from hitmiss.io.json_lines import look_at_json, read_json_block
from hitmiss.io.layouts import find_expanding
from hitmiss.io.separated import guess_separator, read_plain, read_quoted, sample_lines, sample_rows
from hitmiss.io.source import Kinds, Pieced, ReadProgress, SourceBytes, SourceHead, Table

T = TypeVar("T")


def look(source: object, options: ReadSpec, ledger: Diagnostics, memory: int | None = None) -> SourceHead:
    """Open a path or a frame and take a first look; with a bound on the memory, files are left to be read in pieces."""
    if isinstance(source, SourceHead):  # the log of another tool, which is a table already
        return source
    if not isinstance(source, str | Path):
        return look_at_frame(source, ledger)
    if memory is not None and (shape := _look_at_pieces(source, options, ledger, memory)) is not None:
        return shape
    content = fetch(source, options.encoding, ledger)
    if content.encoding == "xlsx":
        from hitmiss.io.xlsx import look_at_workbook  # slow to import, and needed for such files only

        return look_at_workbook(content, ledger)
    return look_at_parquet(content, ledger) if content.is_parquet else look_at_text(content, options, ledger)


def look_at_text(content: SourceBytes, options: ReadSpec, ledger: Diagnostics) -> SourceHead:
    """Take a first look at a text."""
    start = content.data.lstrip()[:2]
    if start[:1] == b"{" or (start[:1] == b"[" and content.data.lstrip()[1:].lstrip()[:1] in (b"{", b"]")):
        return look_at_json(content, ledger)
    sample = sample_lines(content.data)
    separator = options.separator or guess_separator(sample)
    return SourceHead(content.name, sample_rows(sample, separator), separator=separator, content=content)


def _look_at_pieces(path: str | Path, options: ReadSpec, ledger: Diagnostics, memory: int) -> SourceHead | None:
    """Take a first look at a file that is read in pieces; None for JSON that cannot be cut into lines of one object."""
    content = fetch_head(path, ledger)
    start = content.data.lstrip()[:1]
    if start == b"[" or (start == b"{" and find_expanding(options) is None):  # its last line may have another name
        return None
    shape = look_at_head(path, options, ledger)
    whole = replace(shape.content or content, sha256=digest(path)[0])
    return replace(shape, content=whole, frame=None, lines=None, pieced=Pieced(path, memory))


def load(
    shape: SourceHead,
    has_header: bool,
    picks: Mapping[str, int],
    numeric: frozenset[str],
    ledger: Diagnostics,
    kinds: Kinds | None = None,
) -> Table:
    """Read the columns `picks` (our name -> position) of a source; `numeric` ones keep numbers of typed sources.

    `kinds` are the types of text columns if no value is irregular. A caller that passes them must read again without
    them before it reports the content of a cell (see `quick_or_careful`).
    """
    if shape.frame is not None:
        series = [shape.frame.to_series(at).alias(ours) for ours, at in picks.items()]
        coded = {name for name, kind in (kinds or {}).items() if kind == pl.Categorical}
        read = [as_codes(s) if s.name in coded else as_text_or_numbers(s, s.name in numeric) for s in series]
        return Table(shape.name, pl.DataFrame(read), lines=shape.lines)
    assert shape.content is not None  # a shape has either a frame or a content
    if shape.pieced is None:
        table = _of_block(shape, shape.content.data, has_header, picks, ledger, kinds)
    else:
        held: list[Table] = []
        for piece in pieces(shape.pieced.path, shape, has_header, numeric, picks, ReadProgress(), ledger, kinds):
            held.append(piece)
            refuse_many(sum(int(one.frame.estimated_size()) for one in held), shape.pieced.memory)
        if any(
            one.frame.schema != held[0].frame.schema for one in held
        ):  # a cell that is not a number: texts throughout
            return load(shape, has_header, picks, numeric, ledger)
        table = Table(shape.name, pl.concat([one.frame for one in held]), lines=lines_of(held))
    if not table.frame.height:
        raise ledger.stop("empty-file/header", [Place(shape.name, 1)])
    return table


def _of_block(
    shape: SourceHead, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Diagnostics, kinds: Kinds | None
) -> Table:
    """Read a text, or whole lines of one."""
    if b'"' in data:
        return read_quoted(shape, data, has_header, picks, ledger)
    return read_plain(shape, data, has_header, picks, ledger, kinds)


COPIES: Final = 4
"""How often the rows that are kept are held at most, while they are checked and joined."""


def refuse_many(size: int, memory: int) -> None:
    """Refuse rows that do not fit into memory, given the bytes of those read so far."""
    if size * COPIES > memory:
        raise UsageError.of("rows-beyond-memory", size=size * COPIES / 1000000.0)


def lines_of(held: Sequence[Table]) -> NDArray[np.int64]:
    """Return the line of the file on which each row of several tables begins."""
    return np.concatenate(
        [
            one.first_line + np.arange(one.frame.height, dtype=np.int64) if one.lines is None else one.lines
            for one in held
        ]
    )


def look_at_head(path: str | Path, options: ReadSpec, ledger: Diagnostics) -> SourceHead:
    """Take a first look at a file without reading all of it."""
    content = fetch_head(path, ledger)
    return look_at_parquet_head(path, ledger) if content.is_parquet else look_at_text(content, options, ledger)


def pieces(
    path: str | Path,
    shape: SourceHead,
    has_header: bool,
    numeric: frozenset[str],
    picks: Mapping[str, int],
    read: ReadProgress,
    ledger: Diagnostics,
    kinds: Kinds | None = None,
) -> Iterator[Table]:
    """Yield the columns `picks` (our name -> position) of a file in pieces; every row once, in order.

    `kinds` are types that columns of text may be parsed as at once; see `io.separated.read_plain`.
    """
    read.rows, read.bytes, read.sha256 = 0, 0, ""
    if shape.is_read and shape.content is not None:
        read.bytes, read.sha256 = Path(path).stat().st_size, shape.content.sha256
        found = iter([load(shape, has_header, picks, numeric, ledger, kinds)])
    elif shape.content is None or shape.content.is_parquet:
        found = read_parquet_pieces(path, shape, numeric, picks, read, ledger)
    else:
        found = _of_text(path, shape, has_header, numeric, picks, read, ledger, kinds)
    for piece in found:
        read.rows += piece.frame.height
        yield piece


def _of_text(
    path: str | Path,
    shape: SourceHead,
    has_header: bool,
    numeric: frozenset[str],
    picks: Mapping[str, int],
    read: ReadProgress,
    ledger: Diagnostics,
    kinds: Kinds | None,
) -> Iterator[Table]:
    with HashingFile(path) as meter:
        for data, before in blocks(meter, path, ledger, is_quoted=shape.names is None):
            if data[:4096].strip() or data.strip():
                if shape.names is not None:
                    yield read_json_block(shape, data, before, picks, numeric, ledger)
                else:
                    table = _of_block(shape, data, has_header and not before, picks, ledger, kinds)
                    yield (
                        replace(table, first_line=table.first_line + before)
                        if table.lines is None
                        else replace(table, lines=table.lines + before)
                    )
            read.bytes = meter.bytes
        read.sha256, read.bytes = meter.sha256, meter.bytes


def quick_or_careful(read: Callable[[Diagnostics, Kinds], T], kinds: Kinds, ledger: Diagnostics) -> T:
    """Apply `read` to a source: first the fast path, then the careful path if needed.

    The first attempt uses the types that columns have if no value is irregular. If it finds any fault, everything is
    read again as text: only the text shows the exact content of a cell, so faults are always reported from that second
    pass.
    """
    if kinds:
        trial = Diagnostics()
        with suppress(Stop):
            found = read(trial, kinds)
            if not trial.findings:
                ledger.take(trial)
                return found
    return read(ledger, {})


def load_all(
    shape: SourceHead, ledger: Diagnostics, has_header: bool = True, names: Sequence[str] | None = None
) -> Table:
    """Read all columns of a source as text, under their own names or `names` (columns with an empty name are dropped)."""
    called = names or shape.names or shape.first[0]
    picks = {name: at for at, name in enumerate(called) if name or names is None}
    return load(shape, has_header, picks, frozenset(), ledger)
