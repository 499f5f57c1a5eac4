"""Files that we write for people: whole or not at all, text exact, and safe for spreadsheets where that is asked for."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

import polars as pl

from hitmiss import artifacts

FORMULA: Final = r"^[=+\-@\t\r]"
"""How a cell begins that a spreadsheet would compute instead of show."""
NUMBER: Final = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def write_csv(frame: pl.DataFrame, path: str | Path) -> None:
    """A frame as CSV; numbers in their shortest exact form, texts as they are, null as nothing."""
    exact = [
        pl.Series(c.name, ["" if v is None else repr(v) for v in c.to_list()], dtype=pl.String)
        if c.dtype.is_float()
        else c
        for c in frame.get_columns()
    ]
    artifacts.write(path, pl.DataFrame(exact).write_csv(line_terminator="\n", quote_style="necessary"))


def parquet(frame: pl.DataFrame) -> bytes:
    """A frame as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def spreadsheet_safe(frame: pl.DataFrame) -> pl.DataFrame:
    """Texts that begin like a formula get a `'` in front; numbers and a lone `-` stay.

    >>> spreadsheet_safe(pl.DataFrame({"text": ["=1+1", "-0.5", "-", "@a", "fine"]}))["text"].to_list()
    ["'=1+1", '-0.5', '-', "'@a", 'fine']
    """
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]

    def quoted(name: str) -> pl.Expr:
        cell = pl.col(name)
        is_plain = cell.str.contains(NUMBER) | (cell == "-")
        return pl.when(cell.str.contains(FORMULA) & ~is_plain).then("'" + cell).otherwise(cell).alias(name)

    return frame.with_columns(quoted(name) for name in texts)
