"""What comparisons and rankings have in common: rows with a verdict, as JSON, tables and a figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from typing import Generic, TypeVar

import polars as pl

from hitmiss.core.errors import UsageError
from hitmiss.core.rows import Presented, Row, rows_named
from hitmiss.core.verdict import Verdict

R = TypeVar("R", bound=Row)


class JudgedRows(Presented, Generic[R]):
    """Rows with a verdict. A class that derives from it says which field holds the rows, and what its JSON form is."""

    @property
    def _rows(self) -> tuple[R, ...]:
        raise NotImplementedError

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[R]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        """Return whether there are rows of this name, or this row."""
        if key in self._rows:
            return True
        try:
            return bool(rows_named(self._rows, key))
        except UsageError:
            return False

    @property
    def verdict(self) -> Verdict:
        """What this allows to conclude, as data: which run is better, and every slice, label or average in which it is worse."""
        made: Verdict = import_module("hitmiss.conclude.verdict").conclude_comparison(self)  # by name: a higher layer
        return made

    def plot(self, ax: object = None) -> object:
        """Draw the rows with their intervals, one below the other (needs matplotlib)."""
        return import_module("hitmiss.reports.forest").forest(self, ax)  # by name: a higher layer

    def to_polars(self) -> pl.DataFrame:
        """Return a polars frame with one row for each; slices become columns."""
        names = sorted({k for row in self for k in row.slice})
        rows = [{**asdict(row), **{k: row.slice.get(k) for k in names}} for row in self]  # type: ignore[call-overload]
        return pl.DataFrame([{k: v for k, v in row.items() if k != "slice"} for row in rows], infer_schema_length=None)
