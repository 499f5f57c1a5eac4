"""The rows of several sources together, each with its place in its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.finding import Place
from hitmiss.io.source import Table


@dataclass(frozen=True)
class LoadedRows:
    """The tables of several sources concatenated: the shards of one run.

    `rows` maps rows back to the files after filtering; `is_unique` records that no item occurs twice.
    """

    tables: tuple[Table, ...]
    frame: pl.DataFrame
    rows: NDArray[np.int64] | None = None
    is_unique: bool = False
    theirs: Mapping[str, str] = field(default_factory=dict)
    by_question: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of columns that hold several columns of the file below each other: the file's column, by the row's question."""

    @classmethod
    def of(cls, tables: Sequence[Table], theirs: Mapping[str, str]) -> LoadedRows:
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
        named = self.by_question.get(column or "", {})
        columns = [named.get(str(asked)) for asked in frame["target"]] if named else nothing
        parts = zip(lines, values, items, columns, strict=True)
        return [Place(*line, value, item, own) for line, value, item, own in parts]

    def _lines(self, rows: NDArray[np.int64]) -> list[tuple[str, int]]:
        """Return the file and line of rows of the whole stack."""
        ends = np.cumsum([table.frame.height for table in self.tables])
        which = np.searchsorted(ends, rows, side="right")
        starts = np.concatenate([[0], ends])
        pairs = zip(which.tolist(), (rows - starts[which]).tolist(), strict=True)
        return [(self.tables[t].name, self.tables[t].line(row)) for t, row in pairs]

    def keep(self, where: pl.Series) -> LoadedRows:
        """Return the rows for which `where` is true; their line numbers are kept."""
        rows = where.arg_true().to_numpy().astype(np.int64)
        return replace(self, frame=self.frame.filter(where), rows=rows if self.rows is None else self.rows[rows])

    def renamed(self, names: Mapping[str, str]) -> LoadedRows:
        """Return the same rows with some columns renamed."""
        theirs = {names.get(ours, ours): theirs for ours, theirs in self.theirs.items()}
        tables = tuple(replace(t, frame=t.frame.rename(dict(names), strict=False)) for t in self.tables)
        return replace(self, tables=tables, frame=self.frame.rename(dict(names), strict=False), theirs=theirs)

    def put(self, *columns: pl.Series | pl.Expr) -> LoadedRows:
        """Return the same rows with columns added or replaced."""
        return replace(self, frame=self.frame.with_columns(*columns))
