"""Results pivoted to grids, arranged as tables, and written as text that fits its output."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TextIO

from hitmiss.core import progress
from hitmiss.core.results import Estimate, Results, number
from hitmiss.core.text import encodable, escape_invisible, wrap
from hitmiss.findings.wording import PLACES, Entry, explain, figure, interval, places

if TYPE_CHECKING:
    from hitmiss.core.verdict import Verdict


# ----------------------------------------------------------------------
# What each metric means, for readers who do not know it: taken from the docstrings, so that there is one source.


def glossary(metrics: Iterable[str]) -> list[Entry]:
    """Return the metrics that were shown, each once, by title."""
    found = {explain(m).title: explain(m) for m in dict.fromkeys(metrics)}
    return sorted(found.values(), key=lambda entry: entry.title.lower())


# ----------------------------------------------------------------------
# The one model of a table: cells of text under a header. Renderers write it for a terminal (below), a page (the
# template), a notebook, LaTeX, Markdown and sheets (`exports`).

ARROW = {"low": "↓", "high": "↑"}
LABEL, COUNT, FIGURE = "label", "count", "figure"
MOST_ROWS: Final = 400
"""Maximum rows of a table on a page; of more, the first and last half are shown, with the number left out."""


@dataclass(frozen=True)
class Bar:
    """An interval on a scale of 0..100: its ends, the figure, and the pooled figure for comparison."""

    low: float
    high: float
    at: float
    pooled: float | None = None


@dataclass(frozen=True)
class Cell:
    """A figure and its interval as text, with what a page or a paper adds; control characters are escaped.

    `strong` highlights it, `about` is its tooltip, `mark` its superscript, `bar` its drawn interval.
    """

    text: str
    below: str = ""
    strong: bool = False
    about: str = ""
    mark: str = ""
    bar: Bar | None = None

    def __post_init__(self) -> None:
        for name in ("text", "below"):
            object.__setattr__(self, name, escape_invisible(getattr(self, name)))


@dataclass(frozen=True)
class Table:
    """A title, a header and rows of cells.

    The first `labels` columns are names, the next `counts` numbers of trials, the others figures. `kinds` holds for each
    row which average it is (`pooled`, `macro`, …; empty for a slice), `weak` the rows that a test showed to be worse
    than the others, `abouts` the tooltip of each head, and `name` is how an export asks for the table.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
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
    def body(self) -> list[tuple[str, bool, tuple[Cell, ...]]]:
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
        """Return the table without empty columns of figures."""
        every = range(len(self.header))
        return self.columns([i for i in every if i < self.labels or any(r[i].text or r[i].below for r in self.rows)])

    def turned(self) -> Table:
        """Transpose the table: one line per column of figures, one column per row."""
        names = [" · ".join(filter(None, (c.text for c in row[: self.labels]))) for row in self.rows]
        abouts = self.abouts or ("",) * len(self.header)
        rows = tuple(
            (Cell(self.header[i] or "note", about=abouts[i]), *(replace(row[i], bar=None) for row in self.rows))
            for i in range(self.labels, len(self.header))
        )
        return Table(self.title, ("metric" if self.abouts else "", *names), rows, 1, note=self.note, name=self.name)


def crossed(
    title: str,
    names: Sequence[str],
    cells: Iterable[tuple[tuple[str, ...], str, Cell]],
    columns: Sequence[str] = (),
    missing: str = "",
) -> Table:
    """Return cells as rows × columns, given each with the labels of its row and the head of its column.

    Rows come in the order in which they first occur, columns too unless they are given.

    >>> made = crossed("t", ("run",), [(("a",), "eer", Cell("0.1")), (("b",), "auc", Cell("0.9"))], missing="–")
    >>> made.header, [[c.text for c in row] for row in made.rows]
    (('run', 'eer', 'auc'), [['a', '0.1', '–'], ['b', '–', '0.9']])
    """
    at = {(row, column): cell for row, column, cell in cells}
    across = tuple(columns) or tuple(dict.fromkeys(column for _, column in at))
    rows = [
        (*map(Cell, row), *(at.get((row, column), Cell(missing)) for column in across))
        for row in dict.fromkeys(row for row, _ in at)
    ]
    return Table(title, (*names, *across), tuple(rows), len(names))


def _no_mark(e: Estimate) -> str:
    del e
    return ""


@dataclass(frozen=True)
class Look:
    """How figures are written: with the digits that their intervals support (`exact`) or with four, which in per cent,
    with which marks; a single run by metric, in words; which figures are highlighted; intervals as bars too."""

    exact: bool = True
    intervals: bool = True
    percent: tuple[str, ...] = ()
    mark: Callable[[Estimate], str] = _no_mark
    by_metric: bool = False
    is_page: bool = False

    def scale(self, metric: str) -> float:
        """Return 100 for metrics in per cent, else 1."""
        return 100.0 if metric.split("(")[0] in self.percent or metric in self.percent else 1.0

    def digits(self, own: Sequence[Estimate]) -> int:
        """Return the decimal places of a column."""
        return places(own, self.scale(own[0].metric)) if self.exact and own else PLACES

    def value(self, e: Estimate | None, digits: int) -> str:
        """Format a figure; empty if there is none."""
        if e is None:
            return ""
        return figure(e.value, digits, self.scale(e.metric)) if self.exact else number(e.value)

    def ends(self, e: Estimate, digits: int) -> str:
        """Format the interval of a figure; empty if it has none."""
        if not self.intervals or e.value is None:
            return ""
        return interval(e, digits, self.scale(e.metric)) if self.exact else short_interval(e)

    def cell(self, e: Estimate | None, digits: int, average: str | None = None) -> Cell:
        """Return the cell of a figure; of the worst slice with where that is (`average`: which average its row is)."""
        if e is None or e.value is None:
            return Cell("") if e is None else Cell("–", about=e.note or "undefined")
        mark, few = self.mark(e), e.note is not None and e.note.startswith("only") and (self.is_page or not self.exact)
        where = " × ".join(e.slice.values()) if average == "worst" else ""
        below = (
            (where if self.is_page else f"({where})")
            if where and self.exact
            else f"{where} {self.ends(e, digits)}".strip()
        )
        strong = self.is_page or mark.startswith("*")
        about = ", ".join(filter(None, (self.ends(e, digits) if where else "", e.note)))
        return Cell(self.value(e, digits) + "*" * few, below, strong, about, mark)


TEXT: Final = Look(exact=False, by_metric=True)
"""How a terminal shows figures."""
PAGE: Final = Look(by_metric=True, is_page=True)
"""How a page shows figures."""
MOST_ACROSS: Final = 8
"""Maximum metrics side by side on a page; with more, a table is transposed if that makes it narrower."""
MARGIN: Final = 0.04


def tables(results: Results, positive: str = "positives", look: Look = TEXT) -> list[Table]:
    """Return every table of the results: all trials, then one per grouping, then the gap."""
    found = [overall_table(results, positive, look), *over_repeats(results, (), look)]
    for names in groupings(results):
        found += [slice_table(results, names, run, positive, look) for run in runs(results)]
        found += over_repeats(results, names, look)
    return [t for t in (*found, *gap_tables(results, look)) if t.rows]


def overall_table(results: Results, positive: str, look: Look = TEXT) -> Table:
    """Return the pooled figures: one row per metric for one run, one row per run for several."""
    grid = overall(results)
    if look.by_metric and len(grid.rows) == 1 and not grid.names:
        return _by_metric(grid, positive, look)
    table = of_grid(grid, positive, look)
    is_wide = look.is_page and len(grid.metrics) > MOST_ACROSS and len(grid.rows) <= MOST_ACROSS
    return replace(table.turned() if is_wide else table, name="all")


def slice_table(
    results: Results, names: tuple[str, ...], run: Mapping[str, str], positive: str, look: Look = TEXT
) -> Table:
    """Return one row per slice, then the pooled row, the averages and the worst slice."""
    grid = by_slice(results, names, run)
    named = f" ({', '.join(f'{k} {v}' for k, v in run.items())})" if run else ""
    return of_grid(replace(grid, title=grid.title + named), positive, look)


def _by_metric(grid: Grid, positive: str, look: Look) -> Table:
    """Return the figures of one run: one row per metric; on a page also in words."""
    own = [e for e in grid.rows[0].cells if e is not None]
    rows = []
    for e in own:
        digits, sizes = look.digits([e]), (Cell(f"{e.n:,}"), Cell(f"{e.n_positive:,}"))
        shown = look.cell(e, digits)
        if look.is_page:
            words = explain(e.metric).title
            rows.append((Cell(titled(e), strong=True), Cell(words if words != e.metric else ""), shown, *sizes))
        else:
            rows.append((Cell(titled(e)), Cell(look.value(e, digits), strong=True), Cell(look.ends(e, digits)), *sizes))
    middle = ("in words", "value") if look.is_page else ("value", _level(own))
    made = tuple((*row, Cell(e.note or "")) for row, e in zip(rows, own, strict=True))
    table = Table(grid.title, ("metric", *middle, "n", positive, ""), made, 2 if look.is_page else 1, name="all")
    return table.trimmed()


def of_grid(
    grid: Grid, positive: str, look: Look, *, bars: bool = False, weak: Collection[tuple[str, ...]] = ()
) -> Table:
    """Return a grid as a table, with the number of trials, and of those that are `positive` unless that is empty.

    `weak` are the labels of the rows that were shown to be worse than the others.
    """
    columns = [grid.column(i) for i in range(len(grid.metrics))]
    digits = [look.digits(own) for own in columns]
    scales = [_ends(own) if bars else None for own in columns]
    pooled = next((row for row in grid.rows if row.average == "pooled"), None)
    sizes = tuple(filter(None, ("n", positive))) if any(row.n is not None for row in grid.rows) else ()

    def cells(row: Row) -> tuple[Cell, ...]:
        counts = [Cell(f"{n:,}" if n is not None else "") for n in (row.n, row.n_positive)[: len(sizes)]]
        # where one slice is the worst by every metric, it is named once, and its intervals are in their column
        worst = {" × ".join(e.slice.values()) for e in row.cells if e is not None} if row.average == "worst" else set()
        named_once = len(worst) == 1 and not look.exact
        labels = (f"{row.labels[0]} {worst.pop()}", *row.labels[1:]) if named_once else row.labels
        average = None if named_once else row.average
        made = [look.cell(e, d, average) for e, d in zip(row.cells, digits, strict=True)]
        for i, (e, scale) in enumerate(zip(row.cells, scales, strict=True)):
            beside = pooled.cells[i] if pooled is not None and i < len(pooled.cells) else None
            made[i] = replace(made[i], bar=_bar(e, row, scale, beside))
        return (*map(Cell, labels), *counts, *made)

    named = list(zip(grid.titles, grid.metrics, grid.best, strict=True))
    units = ["" if look.scale(m) == 1.0 else ", %" for m in grid.metrics]
    heads = [f"{title}{unit} {ARROW[best]}" for (title, _, best), unit in zip(named, units, strict=True)]
    abouts = (*("" for _ in grid.names), *(f"trials{f' that are {s}' * (s != 'n')}" for s in sizes))
    rows, kinds = tuple(map(cells, grid.rows)), tuple(row.average or "" for row in grid.rows)
    is_weak = frozenset(i for i, row in enumerate(grid.rows) if row.average is None and row.labels in weak)
    table = Table(grid.title, (*grid.names, *sizes, *heads), rows, len(grid.names), len(sizes), kinds, is_weak)
    gists = tuple(explain(m).gist for m in grid.metrics) if look.is_page else ("",) * len(named)
    return replace(table, abouts=(*abouts, *gists), name=",".join(grid.names)).trimmed()


def _bar(e: Estimate | None, row: Row, scale: tuple[float, float] | None, pooled: Estimate | None) -> Bar | None:
    if scale is None or e is None or row.average == "worst":
        return None
    if e.low is None or e.high is None or e.value is None or not all(map(math.isfinite, (e.low, e.high, e.value))):
        return None
    start, width = scale[0], scale[1] - scale[0]

    def place(value: float) -> int:  # a hundredth of the scale is one pixel of the drawn bar
        return round(min(max(100 * (value - start) / width, 0.0), 100.0))

    beside = place(pooled.value) if pooled is not None and pooled.value is not None else None
    return Bar(place(e.low), place(e.high), place(e.value), beside)


def _ends(own: Sequence[Estimate]) -> tuple[float, float] | None:
    """Return the ends of a column's common scale."""
    ends = [v for e in own for v in (e.low, e.high) if v is not None and math.isfinite(v)]
    if not ends or min(ends) == max(ends):
        return None
    room = MARGIN * (max(ends) - min(ends))
    return min(ends) - room, max(ends) + room


def over_repeats(results: Results, names: tuple[str, ...], look: Look = TEXT) -> list[Table]:
    """Return mean, standard deviation, minimum and maximum over repeated runs, if the results have them."""
    own = [e for e in results if e.average in REPEATS and tuple(e.slice) == names]
    if not own:
        return []
    runs_ = tuple(dict.fromkeys(k for e in own for k in e.run))
    digits = {e.metric: look.digits([o for o in own if o.metric == e.metric]) for e in own}
    cells = []
    for e in own:
        key = (*(e.run.get(k, "") for k in runs_), *e.slice.values(), titled(e))
        cells.append((key, e.average or "", Cell("–" if e.value is None else look.value(e, digits[e.metric]))))
        cells += [(key, "", Cell(e.note))] if e.note and e.average == "mean" else []
    title = "over runs" + (f" by {' × '.join(names)}" if names else "")
    table = crossed(title, (*runs_, *names, "metric"), cells, (*REPEATS, ""))
    return [replace(table, name="runs").trimmed()]


def gap_tables(results: Results, look: Look = TEXT) -> list[Table]:
    """Return figures outside a domain minus those inside it, if the results have them; one table per domain."""
    own = [e for e in results if e.average == "gap"]
    names = tuple(dict.fromkeys(k for e in own for k in e.run))
    made = []
    for domain in dict.fromkeys(tuple(e.slice.items()) for e in own):
        rows = []
        for e in (e for e in own if tuple(e.slice.items()) == domain):
            digits = look.digits([e])
            ends = Cell(look.value(e, digits), strong=True), Cell(look.ends(e, digits)), Cell(e.note or "")
            rows.append((*(Cell(e.run.get(k, "")) for k in names), Cell(titled(e)), *ends))
        title = f"gap: {', '.join(f'{column} {label}' for column, label in domain)}"
        header = (*names, "metric", "out − in", "interval", "")
        made.append(Table(title, header, tuple(rows), len(names) + 1, name="gap").trimmed())
    return made


def matrix(results: Results, rows: str, columns: str, metric: str, run: Mapping[str, str] | None = None) -> Table:
    """Return one metric as a matrix: values of one slice column as rows, of another as columns, pooled at both ends."""
    own = [e for e in results if e.metric == metric and e.average is None and dict(e.run) == (run or {})]
    inside = [e for e in own if set(e.slice) <= {rows, columns}]
    ordered = sorted(inside, key=lambda e: (rows in e.slice, e.slice.get(rows, "")))
    cells = [((e.slice.get(rows, "pooled"),), e.slice.get(columns, "pooled"), TEXT.cell(e, PLACES)) for e in ordered]
    across = ("pooled", *sorted({e.slice[columns] for e in inside if columns in e.slice}))
    best = next((e.best for e in own), "low")
    return crossed(f"{metric} {ARROW[best]} by {rows} × {columns}", (rows,), cells, across)


def runs(results: Results) -> list[dict[str, str]]:
    """Return the runs in the results, in order; summaries over runs are not runs."""
    return [dict(r) for r in dict.fromkeys(tuple(e.run.items()) for e in results if e.average is None)]


def groupings(results: Results) -> list[tuple[str, ...]]:
    """Return the slice columns by which the results are grouped, in order."""
    return list(dict.fromkeys(tuple(e.slice) for e in results if e.slice and e.average is None))


def titled(e: Estimate) -> str:
    """Return a metric's name with an arrow for the better direction."""
    return f"{e.shown} {ARROW[e.best]}"


def short_interval(e: Estimate) -> str:
    """Format an interval without leading zeros, `[.0821, .0863]`, because tables have little room."""
    return "" if e.low is None or e.high is None else bracketed(e.low, e.high)


def bracketed(low: float | None, high: float | None) -> str:
    """Format the ends of an interval without leading zeros; empty if it has none.

    >>> bracketed(0.0821, -0.5), bracketed(None, 1.0), bracketed(float("nan"), 1.0)
    ('[.0821, -.5000]', '', '')
    """
    if low is None or high is None or math.isnan(low):
        return ""
    return f"[{_short(low)}, {_short(high)}]"


def _short(value: float) -> str:
    text = f"{value:.4f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def _level(rows: Sequence[Estimate]) -> str:
    methods = [e.method for e in rows if e.method and e.method.startswith("bootstrap")]
    return f"{float(methods[0].split(',')[3]):.0%} interval" if methods else "interval"


# ----------------------------------------------------------------------
# Results pivoted for people: a grid has rows of slices or runs and one column per metric; cells are estimates.
#
# How many digits a figure deserves follows from the width of its interval.

AVERAGES: Final = ("pooled", "macro", "within", "worst")
REPEATS: Final = ("mean", "sd", "min", "max")


@dataclass(frozen=True)
class Row:
    """A slice, a run or an average: its labels, its size, and at most one estimate per metric."""

    labels: tuple[str, ...]
    cells: tuple[Estimate | None, ...]
    average: str | None = None

    @property
    def n(self) -> int | None:
        """The number of trials, if the row is one set of trials."""
        found = next((e for e in self.cells if e is not None), None)
        return found.n if found is not None and self.average in (None, "pooled") else None

    @property
    def n_positive(self) -> int | None:
        """The number of positive trials."""
        found = next((e for e in self.cells if e is not None), None)
        return found.n_positive if found is not None and self.average in (None, "pooled") else None


@dataclass(frozen=True)
class Grid:
    """Rows with the same label columns and the same metrics."""

    title: str
    names: tuple[str, ...]
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]

    def column(self, i: int) -> list[Estimate]:
        """Return the estimates of one metric."""
        return [e for row in self.rows if (e := row.cells[i]) is not None]

    @property
    def titles(self) -> tuple[str, ...]:
        """Return the names of the metrics: those of the protocol (APCER for fpr), else their own."""
        return tuple(own[0].shown if (own := self.column(i)) else m for i, m in enumerate(self.metrics))

    @property
    def best(self) -> tuple[str, ...]:
        """Return the better direction of a metric."""
        return tuple(self.column(i)[0].best if self.column(i) else "low" for i in range(len(self.metrics)))


def overall(results: Results) -> Grid:
    """Return all trials: one row per run."""
    own = [e for e in results if not e.slice and e.average is None]
    names = tuple(dict.fromkeys(k for e in own for k in e.run))
    rows = [
        _row(tuple(run.get(k, "") for k in names), [e for e in own if dict(e.run) == run], own) for run in runs(results)
    ]
    return Grid("all trials", names, _metrics(own), tuple(row for row in rows if any(row.cells)))


def by_slice(results: Results, names: tuple[str, ...], run: Mapping[str, str]) -> Grid:
    """Return one run by slice columns: one row per slice, then the averages."""
    own = [e for e in results if dict(e.run) == dict(run)]
    inside = [e for e in own if tuple(e.slice) == names]
    cells = [e for e in inside if e.average is None]
    keys = list(dict.fromkeys(tuple(e.slice.values()) for e in cells))
    rows = [_row(key, [e for e in cells if tuple(e.slice.values()) == key], cells) for key in keys]
    ends = {kind: [e for e in inside if e.average == kind] for kind in AVERAGES}
    ends["pooled"] = [e for e in own if not e.slice and e.average is None]
    called = {kind: kind for kind in AVERAGES}
    if not ends["pooled"]:  # for repeated trials the mean represents the whole
        ends["pooled"], called["pooled"] = [e for e in own if not e.slice and e.average == "mean"], "mean of the trials"
    blank = ("",) * (len(names) - 1)
    rows += [_row((called[kind], *blank), found, cells, kind) for kind, found in ends.items() if found]
    title = f"by {' × '.join(names)}"
    return Grid(title, names, _metrics(cells), tuple(row for row in rows if any(row.cells)))


def _metrics(own: Iterable[Estimate]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(e.metric for e in own))


def _row(labels: tuple[str, ...], own: Sequence[Estimate], of: Sequence[Estimate], average: str | None = None) -> Row:
    at = {e.metric: e for e in own}
    return Row(labels, tuple(at.get(metric) for metric in _metrics(of)), average)


def is_campaign(results: Results) -> bool:
    """Say whether the runs of some results are attacks at strengths."""
    found = runs(results)
    return bool(found) and all({"attack", "strength"} <= set(run) for run in found)


# ----------------------------------------------------------------------
# Tables as text that fits its output: never wider than the terminal; in a pipe, one line per row.
#
# No figure is ever cut, and no row loses the labels that identify it. A table that is too wide is tried in
# this order: intervals below their figures; transposed, if it has few rows; in parts below each other, each with the
# labels of the rows; and if not even one column fits beside the labels, one block per row. Texts wrap at words.

AVERAGE_ROWS: Final = ("pooled", "macro")
"""The rows with which the averages begin."""
GAP: Final = 2
"""Spaces between columns."""
LEAST_TEXT: Final = 14
"""Minimum width of a wrapped column of text, in characters."""
FEW_ROWS: Final = 4
"""Maximum number of rows of a table that may be transposed."""


def write(tables: Sequence[Table], stream: TextIO | None = None) -> None:
    """Write tables to a stream in the form that suits it."""
    progress.clear()
    out = stream or sys.stdout
    terminal = out.isatty() and os.environ.get("TERM") != "dumb"
    width = width_of(out) if terminal else 0
    styled = terminal and not os.environ.get("NO_COLOR")
    for table in tables:
        drawn = fitted(table, width) if width else [TextRow(line) for line in lines(table)]
        title = [
            TextRow(line, "bold")
            for line in (wrap(escape_invisible(table.title), width) if width else [escape_invisible(table.title)])
        ]
        note = escape_invisible(table.note)
        below = [TextRow(line) for line in (wrap(note, width) if width else [note])] if note else []
        text = "\n".join(row.drawn(styled) for row in [TextRow(""), *title, *drawn, *below])
        out.write(encodable(text, out.encoding) + "\n")


def conclude(
    found: Verdict, warnings: Iterable[str] = (), stream: TextIO | None = None, *, brief: bool = False
) -> None:
    """Write the conclusions, question by question, and the warnings that no answer repeats; `brief`: only warnings."""
    progress.clear()
    out = stream or sys.stdout
    width = (width_of(out) if out.isatty() else 0) or 100
    said = [] if brief else ["", *wrap(escape_invisible(found.headline).replace("\u00a0", " "), width)]
    for title, answers in () if brief else found.sections:
        said += ["", title]
        for line in answers:
            name = f"{line.name}: " if line.name else ""
            said += wrap(f"  {line.mark} {name}{escape_invisible(line.text)}".replace("\u00a0", " "), width, "    ")
    answered = set() if brief else {line.text for _, lines in found.sections for line in lines}
    for warning in (w for w in warnings if w not in answered):
        said += ["", *wrap(f"! {escape_invisible(warning)}", width, "  ")]
    if said:
        out.write(encodable("\n".join(said), out.encoding) + "\n")


def width_of(out: TextIO) -> int:
    """Return the width of the terminal of a stream; the variable COLUMNS overrides it."""
    try:
        here = os.get_terminal_size(out.fileno()).columns
    except (OSError, ValueError, AttributeError):
        here = 0
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isdecimal() and int(asked) > 0 else here or shutil.get_terminal_size((80, 24)).columns


@dataclass(frozen=True)
class TextRow:
    """A line of text and its style."""

    text: str
    style: str = ""

    def drawn(self, styled: bool) -> str:
        """Return the line for a terminal."""
        text = self.text.rstrip()
        codes = {"bold": "\x1b[1m", "dim": "\x1b[2m"}
        return f"{codes[self.style]}{text}\x1b[0m" if styled and self.style and text else text


def lines(table: Table) -> list[str]:
    """Format a table as aligned lines of plain text, one per row.

    >>> lines(Table("t", ("codec", "eer ↓"), ((Cell("C01"), Cell("0.1", "[.09, .11]")), (Cell("NONE"), Cell("0.05")))))
    ['codec             eer ↓', 'C01     0.1  [.09, .11]', 'NONE   0.05']
    """
    values = [max((len(row[i].text) for row in table.rows), default=0) for i in range(len(table.header))]
    texts = [[c.text if i < table.labels else _one_line(c, values[i]) for i, c in enumerate(row)] for row in table.rows]
    full = [max(len(t) for t in (h, *(row[i] for row in texts))) for i, h in enumerate(table.header)]
    wide = [any(row[i].below for row in table.rows) for i in range(len(table.header))]

    def line(cells: list[str], is_header: bool = False) -> str:
        parts = []
        for i, cell in enumerate(cells):
            left = i < table.labels or (wide[i] and not is_header) or not table.header[i]
            parts.append(cell.ljust(full[i]) if left else cell.rjust(full[i]))
        return "  ".join(parts).rstrip()

    return [line(list(table.header), True), *(line(row) for row in texts)]


def _one_line(cell: Cell, width: int) -> str:
    return f"{cell.text.rjust(width)}  {cell.below}" if cell.below else cell.text.rjust(width) if cell.text else ""


def fitted(table: Table, width: int) -> list[TextRow]:
    """Format a table as lines, none wider than `width`.

    >>> t = Table("t", ("codec", "eer ↓"), ((Cell("C01"), Cell("0.1", "[.09, .11]")), (Cell("NONE"), Cell("0.05"))))
    >>> [row.text for row in fitted(t, 20)]
    ['codec       eer ↓', '─────────────────', 'C01           0.1', '       [.09, .11]', 'NONE         0.05']
    """
    plain = lines(table)
    if max(map(len, plain)) <= width:
        return _ruled(plain, table)
    columns = [_Column.of(table, i) for i in range(len(table.header))]
    stacked = _stacked(table, columns, width)
    if stacked is not None:
        return stacked
    if len(table.rows) <= FEW_ROWS < len(table.header) - table.labels:
        turned = table.turned()
        if (found := _stacked(turned, [_Column.of(turned, i) for i in range(len(turned.header))], width)) is not None:
            return found
    return _in_parts(table, columns, width) or list(_blocks(table, width))


@dataclass(frozen=True)
class _Column:
    """A column: the width that it needs, and whether it is text that may be wrapped."""

    least: int
    full: int
    is_text: bool

    @classmethod
    def of(cls, table: Table, i: int) -> _Column:
        cells = [row[i] for row in table.rows]
        texts = [table.header[i], *(t for c in cells for t in (c.text, c.below) if t)]
        full = max(map(len, texts), default=0)
        is_text = i < table.labels or not table.header[i] or any(_is_words(c.text) for c in cells)
        return cls(min(full, LEAST_TEXT) if is_text else full, full, is_text)


def _is_words(text: str) -> bool:
    """Say whether a cell holds words, which may be wrapped, and not a figure, which may not."""
    return " " in text.strip() and not any(c.isdigit() for c in text.split()[0])


def _widths(columns: Sequence[_Column], width: int) -> list[int] | None:
    """Choose a width for each column, wrapping texts as far as needed; None if figures do not fit."""
    room = width - GAP * (len(columns) - 1)
    if sum(c.full for c in columns) <= room:
        return [c.full for c in columns]
    fixed = sum(c.full for c in columns if not c.is_text)
    texts = [c for c in columns if c.is_text]
    if not texts or fixed + sum(c.least for c in texts) > room:
        return None
    left, shares = room - fixed, dict[int, int]()
    for c in sorted(texts, key=lambda c: c.full):  # short ones get what they need, the longest share the rest
        shares[id(c)] = min(c.full, max(c.least, left // (len(texts) - len(shares))))
        left -= shares[id(c)]
    return [shares.get(id(c), c.full) for c in columns]


def _stacked(table: Table, columns: Sequence[_Column], width: int) -> list[TextRow] | None:
    """Put intervals below their figures and wrap texts; None if that is still too wide."""
    widths = _widths(columns, width)
    if widths is None:
        return None
    head = _cell_lines([Cell(h) for h in table.header], columns, widths, table)
    drawn = [TextRow(line, "bold") for line, _ in head] + [
        TextRow("─" * (sum(widths) + GAP * (len(widths) - 1)), "dim")
    ]
    last = _last_slice(table)
    for at, row in enumerate(table.rows):
        own = _cell_lines(row, columns, widths, table)
        drawn += [TextRow(line, "dim" if below else "") for line, below in own]
        if at == last:
            drawn.append(TextRow("─" * (sum(widths) + GAP * (len(widths) - 1)), "dim"))
    return drawn


def _cell_lines(
    row: Sequence[Cell], columns: Sequence[_Column], widths: Sequence[int], table: Table
) -> list[tuple[str, bool]]:
    """Return the lines of one row, and whether each holds only what is below figures."""
    parts = []
    for cell, column, width in zip(row, columns, widths, strict=True):
        texts = wrap(cell.text, width) if column.is_text else [cell.text]
        parts.append([*texts, *(wrap(cell.below, width) if cell.below else [])])
    height = max(map(len, parts))
    made = []
    for y in range(height):
        line = []
        for i, (part, width) in enumerate(zip(parts, widths, strict=True)):
            text = part[y] if y < len(part) else ""
            left = i < table.labels or not table.header[i] or columns[i].is_text
            line.append(text.ljust(width) if left else text.rjust(width))
        made.append(
            (
                (" " * GAP).join(line).rstrip(),
                y > 0 and all(not c.is_text or len(p) <= y for c, p in zip(columns, parts, strict=True)),
            )
        )
    return made


def _in_parts(table: Table, columns: Sequence[_Column], width: int) -> list[TextRow]:
    """Split the table into parts, each with the labels of its rows and as many columns of figures as fit."""
    labels = list(range(table.labels))
    rest = list(range(table.labels, len(table.header)))
    drawn: list[TextRow] = []
    while rest:
        for n in range(len(rest), 0, -1):
            chosen = [*labels, *rest[:n]]
            found = _stacked(table.columns(chosen), [columns[i] for i in chosen], width)
            if found is not None:
                drawn += [*([TextRow("")] if drawn else []), *found]
                rest = rest[n:]
                break
        else:
            return []
    return drawn


def _blocks(table: Table, width: int) -> Iterator[TextRow]:
    """Return one block per row: its labels, then one line per figure."""
    for row in table.rows:
        name = " · ".join(filter(None, (c.text for c in row[: table.labels])))
        yield from (TextRow(line, "bold") for line in wrap(name, width))
        for head, cell in zip(table.header[table.labels :], row[table.labels :], strict=True):
            if cell.text or cell.below:
                said = " ".join(filter(None, (f"{head}:" if head else "", cell.text, cell.below)))
                yield from map(TextRow, wrap(f"  {said}", width, "    "))


def _ruled(plain: Sequence[str], table: Table) -> list[TextRow]:
    """Draw lines with a rule below the header and before the averages."""
    rule = TextRow("─" * max(map(len, plain)), "dim")
    last = _last_slice(table)
    drawn = [TextRow(plain[0], "bold"), rule]
    for at, line in enumerate(plain[1:]):
        drawn += [TextRow(line), *([rule] if at == last else [])]
    return drawn


def _last_slice(table: Table) -> int | None:
    """Return the index of the row before the averages, where a rule is drawn."""
    names = [row[0].text for row in table.rows]
    first = next((i for i, name in enumerate(names) if name in AVERAGE_ROWS), 0)
    return first - 1 if first > 0 else None
