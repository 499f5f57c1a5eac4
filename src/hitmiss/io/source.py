"""A source before it is read (`SourceHead`) and after (`Table`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.datatypes import DataTypeClass

from hitmiss.core.finding import Place
from hitmiss.core.text import quoted
from hitmiss.io.diagnostics import Diagnostics

Kinds = Mapping[str, DataTypeClass | pl.DataType]
"""The types of columns, by name."""


@dataclass(frozen=True)
class SourceBytes:
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


Row = tuple[str, ...]


@dataclass(frozen=True)
class Pieced:
    """A file that is read in pieces, and the memory that may be used for what is kept of its rows."""

    path: str | Path
    memory: int


@dataclass(frozen=True)
class SourceHead:
    """The first look at a source: its first rows, and its column names if its format has them."""

    name: str
    first: tuple[Row, ...]
    names: Row | None = None
    separator: str = ""
    content: SourceBytes | None = None
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


def refuse_ragged(shape: SourceHead, wrong: Sequence[tuple[int, int]], ledger: Diagnostics) -> None:
    """Stop if rows, given as (line, number of fields), differ in length from the first row."""
    if wrong:
        places = [Place(shape.name, line, f"{fields} field{'s' if fields != 1 else ''}") for line, fields in wrong]
        raise ledger.stop("ragged-row", places, width=shape.width, separator=quoted(shape.separator))


@dataclass
class ReadProgress:
    """A reading in progress: what was read so far, for the record and for progress reports."""

    rows: int = 0
    bytes: int = 0
    sha256: str = ""
