"""Sources to tables of text: no type is inferred, no value taken for missing, no row lost.

A source is first looked at (`look`: its first rows and its separator), then read (`load`: the wanted columns under
our names). In between, `scorefiles.recognise` decides what the columns are.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.io import typed
from hitmiss.io.files import Content, fetch
from hitmiss.io.findings import Ledger, Place
from hitmiss.io.plain import read_plain
from hitmiss.io.quoting import read_quoted
from hitmiss.io.shapes import Row, Shape, Table
from hitmiss.readspec import ReadSpec

SEPARATORS: Final = ("\t", ";", ",", "|", " ")
SAMPLE_BYTES: Final = 2**17


def look(source: Any, options: ReadSpec, ledger: Ledger) -> Shape:
    """Open a path or a frame and see what it shows."""
    if not isinstance(source, str | Path):
        return typed.look_at_frame(source, ledger)
    content = fetch(source, options.encoding, ledger)
    return typed.look_at_parquet(content, ledger) if content.is_parquet else look_at_text(content, options, ledger)


def look_at_text(content: Content, options: ReadSpec, ledger: Ledger) -> Shape:
    """What a text shows at first sight."""
    start = content.data.lstrip()[:2]
    if start[:1] == b"{" or (start[:1] == b"[" and content.data.lstrip()[1:].lstrip()[:1] in (b"{", b"]")):
        return typed.look_at_json(content, ledger)
    sample = _sample_lines(content.data)
    separator = options.separator or guess_separator(sample)
    return Shape(content.name, _sample_rows(sample, separator), separator=separator, content=content)


def load(shape: Shape, has_header: bool, picks: Mapping[str, int], numeric: frozenset[str], ledger: Ledger) -> Table:
    """The columns `picks` (our name -> position) of a source. Those in `numeric` keep the numbers of typed sources."""
    if shape.frame is not None:
        series = [shape.frame.to_series(at).alias(ours) for ours, at in picks.items()]
        return Table(shape.name, pl.DataFrame([typed.settle(s, s.name in numeric) for s in series]), lines=shape.lines)
    assert shape.content is not None  # a shape has a frame or a content
    data = shape.content.data
    table = (read_quoted if b'"' in data else read_plain)(shape, data, has_header, picks, ledger)
    if not table.frame.height:
        what = "there is a header and no row under it"
        raise ledger.stop("empty-file", what, "give a file with rows", [Place(shape.name, 1)])
    return table


@dataclass(frozen=True)
class Stack:
    """The tables of several sources one upon the other: the shards of one run.

    `rows` leads back to the files after filtering; `is_unique` remembers that no item occurs twice.
    """

    tables: tuple[Table, ...]
    frame: pl.DataFrame
    rows: NDArray[np.int64] | None = None
    is_unique: bool = False
    theirs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Sequence[Table], theirs: Mapping[str, str]) -> Stack:
        """Stack tables that have the same columns, of which `theirs` tells the names in the file."""
        frames = [t.frame for t in tables]
        if any(
            frame.schema != frames[0].schema for frame in frames
        ):  # Parquet beside text: numbers as the texts that name them
            frames = [frame.with_columns(pl.all().cast(pl.String).fill_null("")) for frame in frames]
        frame = pl.concat(frames) if len(tables) > 1 else frames[0]
        return cls(tuple(tables), frame, theirs=theirs)

    def title(self, name: str) -> str:
        """What the file calls one of our columns: what a message should call it."""
        return self.theirs.get(name, name)

    def place(self, row: int) -> Place:
        """Where one row of the frame stands in the files."""
        return self.at(pl.Series([row]))[0]

    def places(self, where: pl.Series, column: str | None = None) -> list[Place]:
        """The places of all rows for which `where` is true, with the values of a column."""
        return self.at(where.arg_true(), column)

    def at(self, rows: pl.Series, column: str | None = None) -> list[Place]:
        """The places of rows given by their positions in the frame, with their ids and the values of a column."""
        frame = self.frame[rows]
        nothing = [None] * len(rows)
        values = [None if v is None else str(v) for v in frame[column]] if column else nothing
        items = frame["item"].to_list() if "item" in frame.columns else nothing
        lines = self._lines(rows.to_numpy() if self.rows is None else self.rows[rows.to_numpy()])
        return [Place(*line, value, item) for line, value, item in zip(lines, values, items, strict=True)]

    def _lines(self, rows: NDArray[np.int64]) -> list[tuple[str, int]]:
        """File and line of rows of the whole stack."""
        ends = np.cumsum([table.frame.height for table in self.tables])
        which = np.searchsorted(ends, rows, side="right")
        starts = np.concatenate([[0], ends])
        pairs = zip(which.tolist(), (rows - starts[which]).tolist(), strict=True)
        return [(self.tables[t].name, self.tables[t].line(row)) for t, row in pairs]

    def keep(self, where: pl.Series) -> Stack:
        """The rows for which `where` is true; they still know their lines."""
        rows = where.arg_true().to_numpy().astype(np.int64)
        return replace(self, frame=self.frame.filter(where), rows=rows if self.rows is None else self.rows[rows])

    def renamed(self, names: Mapping[str, str]) -> Stack:
        """The same rows with other names for some columns."""
        theirs = {names.get(ours, ours): theirs for ours, theirs in self.theirs.items()}
        tables = tuple(replace(t, frame=t.frame.rename(dict(names), strict=False)) for t in self.tables)
        return replace(self, tables=tables, frame=self.frame.rename(dict(names), strict=False), theirs=theirs)

    def put(self, *columns: pl.Series | pl.Expr) -> Stack:
        """The same rows with columns added or replaced."""
        return replace(self, frame=self.frame.with_columns(*columns))


def guess_separator(lines: Sequence[str]) -> str:
    """The separator that cuts every line into the same number of fields; tab before `;` before `,` before space.

    >>> guess_separator(["a b 0.5", "c d 0.6"]), guess_separator(["filename,score", "a b,1"])
    (' ', ',')
    >>> guess_separator(["E_1 0,5", "E_2 0,25"])  # a decimal comma separates nothing
    ' '
    """
    if any('"' in line for line in lines):
        lines = [_outside_quotes(lines[0])]  # further lines may begin inside a quoted field
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
    return list(islice((line for line in whole if line.strip(" ")), typed.SAMPLE_ROWS))


def _sample_rows(lines: Sequence[str], separator: str) -> tuple[Row, ...]:
    if any('"' in line for line in lines):
        return tuple(tuple(row) for row in csv.reader(lines, delimiter=separator) if row)
    return tuple(tuple(_cut(line) if separator == " " else line.split(separator)) for line in lines)
