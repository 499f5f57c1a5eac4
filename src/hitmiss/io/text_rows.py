"""A table exactly as in its file: every column as text under its own name, with the line numbers."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from hitmiss.core.read_spec import ReadSpec
from hitmiss.io import loaded, tables
from hitmiss.io.columns import Match, looks_headed, refuse_twins, refuse_undeclared
from hitmiss.io.diagnostics import Diagnostics, Stop
from hitmiss.io.layouts import find_positional
from hitmiss.io.loaded import LoadedRows
from hitmiss.io.sides import look
from hitmiss.io.where import keep_rows


@dataclass(frozen=True, eq=False)
class TextRows:
    """The rows, the name of the file and the SHA-256 of its bytes (empty for a frame)."""

    stack: LoadedRows
    name: str
    sha256: str

    @property
    def frame(self) -> pl.DataFrame:
        """The columns, as text."""
        return self.stack.frame

    def line(self, row: int) -> int:
        """Return the line of the file on which a row begins."""
        return self.stack.place(row).row or 0


def read_rows(source: object, options: ReadSpec | None = None, *, is_key: bool = False) -> TextRows:
    """Read a table without interpretation: every column as text under its own name; no value is treated as missing.

    Parameters
    ----------
    source
        A path to CSV, TSV, JSON lines or Parquet, or a frame.
    options
        How to read; columns that the caller declares get the declared names.
    is_key
        Whether a file without a header may be a key in a known layout, which then names the columns.

    >>> read_rows(pl.DataFrame({"id": ["007"], "text": ["NA"]})).frame.row(0)
    ('007', 'NA')
    """
    said, ledger = (options or ReadSpec()).for_key, Diagnostics()
    try:
        shape = look(source, "key", said, ledger)
        is_headed = not is_key or shape.names is not None or looks_headed(shape, said)
        layout = None if is_headed else find_positional(shape.first, "label")
        names = layout.columns if layout is not None else shape.names or shape.first[0]
        if is_key:
            refuse_twins([name for name in names if name], shape.name, ledger)
            refuse_undeclared(said, tuple(names), shape.name, ledger)
        called = {theirs: ours for ours, theirs in said.columns.items()}
        table = tables.load_all(shape, ledger, layout is None, [called.get(n, n) for n in names] if is_key else names)
    except Stop:
        raise ledger.error() from None
    picks = {name: at for at, name in enumerate(table.frame.columns)}
    stack = keep_rows(loaded.LoadedRows.of([table], {}), Match("rows", layout is None, picks), said)
    if said.dedupe:
        stack = stack.keep(stack.frame.select(pl.struct(pl.all()).is_first_distinct()).to_series())
    return TextRows(stack, shape.name, shape.content.sha256 if shape.content else "")
