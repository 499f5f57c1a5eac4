"""The one model of a table: cells of text under a header.

Renderers write it for a terminal (`terminal`), a page (the template), a notebook, LaTeX, Markdown and sheets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hitmiss.core.text import escape_invisible

ARROW = {"low": "↓", "high": "↑"}
LABEL, COUNT, FIGURE = "label", "count", "figure"
MOST_ROWS: Final = 400
"""Maximum rows of a table on a page; of more, the first and last half are shown, with the number left out."""


@dataclass(frozen=True)
class Bar:
    """An interval on a scale of 0..100: its ends, the number, and the pooled number for comparison."""

    low: float
    high: float
    at: float
    pooled: float | None = None


@dataclass(frozen=True)
class TableCell:
    """A number and its interval as text, with what a page or a paper adds; control characters are escaped.

    `strong` highlights it, `about` is its tooltip, `mark` its superscript, `bar` its drawn interval, `shade` how dark it is
    (0 to 9).
    """

    text: str
    below: str = ""
    strong: bool = False
    about: str = ""
    mark: str = ""
    bar: Bar | None = None
    shade: str = ""

    def __post_init__(self) -> None:
        for name in ("text", "below"):
            object.__setattr__(self, name, escape_invisible(getattr(self, name)))


@dataclass(frozen=True)
class Table:
    """A title, a header and rows of cells.

    The first `labels` columns are names, the next `counts` numbers of trials, the others estimates. `kinds` holds for each
    row which average it is (`pooled`, `macro`, …; empty for a slice), `weak` the rows that a test showed to be worse
    than the others, `abouts` the tooltip of each head, and `name` is how an export asks for the table.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    labels: int = 1
    counts: int = 0
    kinds: tuple[str, ...] = ()
    weak: frozenset[int] = frozenset()
    abouts: tuple[str, ...] = ()
    note: str = ""
    name: str = ""

    @property
    def caption(self) -> str:
        """The title as a sentence begins; the name of a metric keeps its letters."""
        is_metric = self.title.partition(" ")[2].startswith(tuple(ARROW.values()))
        return self.title if is_metric else self.title[:1].upper() + self.title[1:]

    @property
    def heads(self) -> list[tuple[str, str, str]]:
        """Return text, kind and tooltip of each head."""
        kinds = [LABEL] * self.labels + [COUNT] * self.counts
        kinds += [FIGURE] * (len(self.header) - len(kinds))
        abouts = self.abouts or ("",) * len(self.header)
        return [(head or "note", kind, about) for head, kind, about in zip(self.header, kinds, abouts, strict=True)]

    @property
    def body(self) -> list[tuple[str, bool, tuple[TableCell, ...]]]:
        """Return for each row its kind, whether it is weak, and its cells."""
        kinds = self.kinds or ("",) * len(self.rows)
        return [(kind, i in self.weak, row) for i, (kind, row) in enumerate(zip(kinds, self.rows, strict=True))]

    def cut(self, most: int = MOST_ROWS, end: int | None = None) -> Table:
        """Return the table with at most this many rows, `end` of them from its end, and a note about the others."""
        left_out = len(self.rows) - most
        if left_out <= 0:
            return self
        last = most // 2 if end is None else end
        kept = [*range(most - last), *range(len(self.rows) - last, len(self.rows))]
        said = f"{left_out:,} rows in the middle are left out; the results file has them all."
        return replace(
            self,
            rows=tuple(self.rows[i] for i in kept),
            kinds=tuple(self.kinds[i] for i in kept) if self.kinds else (),
            weak=frozenset(at for at, i in enumerate(kept) if i in self.weak),
            note=" ".join(filter(None, (self.note, said))),
        )

    def columns(self, kept: Sequence[int]) -> Table:
        """Return the table with some of its columns, in this order; labels stay labels."""
        return replace(
            self,
            header=tuple(self.header[i] for i in kept),
            rows=tuple(tuple(row[i] for i in kept) for row in self.rows),
            labels=sum(i < self.labels for i in kept),
            counts=sum(self.labels <= i < self.labels + self.counts for i in kept),
            abouts=tuple(self.abouts[i] for i in kept) if self.abouts else (),
        )

    def trimmed(self) -> Table:
        """Return the table without empty columns of numbers."""
        every = range(len(self.header))
        return self.columns([i for i in every if i < self.labels or any(r[i].text or r[i].below for r in self.rows)])

    def turned(self) -> Table:
        """Transpose the table: one line per column of numbers, one column per row."""
        names = [" · ".join(filter(None, (c.text for c in row[: self.labels]))) for row in self.rows]
        abouts = self.abouts or ("",) * len(self.header)
        rows = tuple(
            (TableCell(self.header[i] or "note", about=abouts[i]), *(replace(row[i], bar=None) for row in self.rows))
            for i in range(self.labels, len(self.header))
        )
        return Table(self.title, ("metric" if self.abouts else "", *names), rows, 1, note=self.note, name=self.name)


def crossed(
    title: str,
    names: Sequence[str],
    cells: Iterable[tuple[tuple[str, ...], str, TableCell]],
    columns: Sequence[str] = (),
    missing: str = "",
) -> Table:
    """Return cells as rows × columns, given each with the labels of its row and the head of its column.

    Rows come in the order in which they first occur, columns too unless they are given.

    >>> made = crossed("t", ("run",), [(("a",), "eer", TableCell("0.1")), (("b",), "auc", TableCell("0.9"))], missing="–")
    >>> made.header, [[c.text for c in row] for row in made.rows]
    (('run', 'eer', 'auc'), [['a', '0.1', '–'], ['b', '–', '0.9']])
    """
    at = {(row, column): cell for row, column, cell in cells}
    across = tuple(columns) or tuple(dict.fromkeys(column for _, column in at))
    rows = [
        (*map(TableCell, row), *(at.get((row, column), TableCell(missing)) for column in across))
        for row in dict.fromkeys(row for row, _ in at)
    ]
    return Table(title, (*names, *across), tuple(rows), len(names))
