"""What a source looks like before it is read (`Shape`) and after (`Table`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.io.files import Content
from hitmiss.io.findings import Ledger, Place, quoted

Row = tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """What a source shows at first sight: its first rows, and its column names where its format has them."""

    name: str
    first: tuple[Row, ...]
    names: Row | None = None
    separator: str = ""
    content: Content | None = None
    frame: pl.DataFrame | None = None
    lines: NDArray[np.int64] | None = None
    is_settled: bool = False
    """Whether a layout has made the names of the columns ours."""

    @property
    def encoding(self) -> str:
        """How the bytes were read; `memory` for tables that came from no file."""
        return self.content.encoding if self.content else "memory"

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.names) if self.names is not None else len(self.first[0])


@dataclass(frozen=True)
class Table:
    """The wanted columns of one source, and the line of the file that each row stands on.

    >>> Table("s.tsv", pl.DataFrame({"item": ["a"]}), first_line=2).line(0)
    2
    """

    name: str
    frame: pl.DataFrame
    first_line: int = 1
    lines: NDArray[np.int64] | None = None

    def line(self, row: int) -> int:
        """The line of the file, from 1, that a row (from 0) begins on."""
        return int(self.lines[row]) if self.lines is not None else self.first_line + row


def refuse_ragged(shape: Shape, wrong: Sequence[tuple[int, int]], ledger: Ledger) -> None:
    """Stop where rows, given as (line, number of fields), differ in length from the first row."""
    if wrong:
        places = [Place(shape.name, line, f"{fields} field{'s' if fields != 1 else ''}") for line, fields in wrong]
        what = f"{{n}} row{{s}} with another number of fields than the {shape.width} of the first row"
        fix = f"mend them, or say --separator (it was taken to be {quoted(shape.separator)})"
        raise ledger.stop("ragged-row", what, fix, places, each=f"{shape.width} fields were expected")
