"""A table as it stands in its file: every column as text under its own name, with the lines it came from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from hitmiss.io import tables
from hitmiss.io.findings import Ledger, Stop
from hitmiss.io.shapes import Table
from hitmiss.readspec import ReadSpec


@dataclass(frozen=True, eq=False)
class TextRows:
    """The rows, the name of the file and the SHA-256 of its bytes (empty for a frame)."""

    table: Table
    name: str
    sha256: str

    @property
    def frame(self) -> pl.DataFrame:
        """Text columns."""
        return self.table.frame

    def line(self, row: int) -> int:
        """The line of the file that a row stands on."""
        return self.table.line(row)


def read_rows(source: str | Path | Any) -> TextRows:
    """Read CSV, TSV, JSON lines or Parquet; nothing is inferred, nothing taken for missing.

    >>> read_rows(pl.DataFrame({"id": ["007"], "text": ["NA"]})).frame.row(0)
    ('007', 'NA')
    """
    ledger = Ledger()
    try:
        shape = tables.look(source, ReadSpec(), ledger)
        names = shape.names or shape.first[0]
        table = tables.load(shape, True, {name: at for at, name in enumerate(names)}, frozenset(), ledger)
    except Stop:
        raise ledger.error() from None
    return TextRows(table, shape.name, shape.content.sha256 if shape.content else "")
