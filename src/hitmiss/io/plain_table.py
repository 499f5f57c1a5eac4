"""Read a table with a header as texts, whatever its columns mean."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from hitmiss.core.read_spec import ReadSpec
from hitmiss.io import tables
from hitmiss.io.diagnostics import Diagnostics, Stop

__all__ = ["read_table"]


def read_table(path: str | Path) -> pl.DataFrame:
    """Return the rows of a file of any format that hitmiss reads, every cell as text."""
    ledger = Diagnostics()
    try:
        shape = tables.look(path, ReadSpec(), ledger)
        names = list(shape.names or shape.first[0])
        return tables.load(shape, True, {name: i for i, name in enumerate(names)}, frozenset(), ledger).frame
    except Stop:
        raise ledger.error() from None
