"""Files that we write for people: whole or not at all, text exact, and safe for spreadsheets where that is asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import polars as pl

from hitmiss.errors import UsageError

FORMULA: Final = r"^[=+\-@\t\r]"
"""How a cell begins that a spreadsheet would compute instead of show."""
NUMBER: Final = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def write_text(text: str, path: str | Path) -> None:
    """Write a file beside its place and move it there: a reader sees the old one or the new one."""
    target = Path(path)
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {target.parent} to write {target.name} into")
    if target.is_dir():
        raise UsageError(f"{target} is a folder; name a file in it")
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(text.encode("utf-8"))
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def write_csv(frame: pl.DataFrame, path: str | Path) -> None:
    """A frame as CSV; numbers in their shortest exact form, texts as they are, null as nothing."""
    exact = [
        pl.Series(c.name, ["" if v is None else repr(v) for v in c.to_list()], dtype=pl.String)
        if c.dtype.is_float()
        else c
        for c in frame.get_columns()
    ]
    write_text(pl.DataFrame(exact).write_csv(line_terminator="\n", quote_style="necessary"), path)


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
