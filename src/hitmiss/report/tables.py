"""Results arranged as tables of text; how they are drawn is another file's business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hitmiss.results import Estimate, Results, number
from hitmiss.visible import visible

ARROW = {"low": "↓", "high": "↑"}


@dataclass(frozen=True)
class Cell:
    """A figure and its interval as text, and whether it stands out; characters that a terminal would obey are escaped."""

    text: str
    below: str = ""
    strong: bool = False

    def __post_init__(self) -> None:
        for name in ("text", "below"):
            object.__setattr__(self, name, visible(getattr(self, name)))


@dataclass(frozen=True)
class Table:
    """A title, a header and rows of cells; the first `labels` columns are names, the others figures."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    labels: int = 1


def tables(results: Results, positive: str = "positives") -> list[Table]:
    """Every table that the results hold: the whole, then one a grouping, then the gap."""
    found = [overall(results, positive), *over_repeats(results, ())]
    for names in groupings(results):
        found += [by_slice(results, names, run, positive) for run in runs(results)]
        found += over_repeats(results, names)
    gaps = [e for e in results if e.average == "gap"]
    return [_without_empty(t) for t in (*found, *([_gap_table(gaps)] if gaps else []))]


def over_repeats(results: Results, names: tuple[str, ...]) -> list[Table]:
    """Mean, deviation, least and greatest over repeated runs, where the results hold them."""
    kinds = ("mean", "sd", "min", "max")
    rows = [e for e in results if e.average in kinds and tuple(e.slice) == names]
    if not rows:
        return []
    cells = list(dict.fromkeys((tuple(e.run.items()), tuple(e.slice.values()), titled(e)) for e in rows))
    at = {(tuple(e.run.items()), tuple(e.slice.values()), titled(e), e.average): e for e in rows}
    runs_ = tuple(dict.fromkeys(k for e in rows for k in e.run))
    lines = []
    for run, slice_, metric in cells:
        own = [at.get((run, slice_, metric, kind)) for kind in kinds]
        figures = [Cell(number(e.value) if e is not None and e.value is not None else "–") for e in own]
        named = (*(dict(run).get(k, "") for k in runs_), *slice_, metric)
        lines.append((*map(Cell, named), *figures, Cell(own[0].note or "" if own[0] else "")))
    title = "over runs" + (f" by {' × '.join(names)}" if names else "")
    return [Table(title, (*runs_, *names, "metric", *kinds, ""), tuple(lines), len(runs_) + len(names) + 1)]


def _without_empty(table: Table) -> Table:
    """The table less the columns of figures that hold nothing."""
    kept = [
        i
        for i in range(len(table.header))
        if i < table.labels or any(row[i].text or row[i].below for row in table.rows)
    ]
    rows = tuple(tuple(row[i] for i in kept) for row in table.rows)
    return Table(table.title, tuple(table.header[i] for i in kept), rows, table.labels)


def overall(results: Results, positive: str) -> Table:
    """The pooled figures: a row a metric for one run, a row a run for several."""
    rows = [e for e in results if not e.slice and e.average is None]
    if len(runs(results)) == 1:
        single = [(Cell(titled(e)), *_figure_cells(e), *_sizes(e), Cell(e.note or "")) for e in rows]
        return Table("all trials", ("metric", "value", _level(rows), "n", positive, ""), tuple(single))
    names = tuple(dict.fromkeys(k for e in rows for k in e.run))
    metrics = list(dict.fromkeys(titled(e) for e in rows))
    lines: list[tuple[Cell, ...]] = []
    for run in runs(results):
        own = {titled(e): e for e in rows if dict(e.run) == run}
        cells = [_joint(own[m]) if m in own else Cell("") for m in metrics]
        lines.append((*(Cell(run.get(k, "")) for k in names), *_sizes(next(iter(own.values()))), *cells))
    return Table("all trials", (*names, "n", positive, *metrics), tuple(lines), len(names))


def by_slice(results: Results, names: tuple[str, ...], run: Mapping[str, str], positive: str) -> Table:
    """One row a slice, then the pooled row, the macro average and the worst slice."""
    own = [e for e in results if dict(e.run) == run]
    inside = [e for e in own if tuple(e.slice) == names]
    cells = [e for e in inside if e.average is None]
    metrics = list(dict.fromkeys(titled(e) for e in cells))
    keys = list(dict.fromkeys(tuple(e.slice.values()) for e in cells))
    rows = [_slice_row(key, [e for e in cells if tuple(e.slice.values()) == key], metrics) for key in keys]
    blank = ("",) * (len(names) - 1)
    pooled = [e for e in own if not e.slice and e.average is None]
    rows.append(_slice_row(("pooled", *blank), pooled, metrics))
    rows.append(_slice_row(("macro", *blank), [e for e in inside if e.average == "macro"], metrics, sizes=False))
    worst = {titled(e): Cell(number(e.value), " × ".join(e.slice.values())) for e in inside if e.average == "worst"}
    rows.append((Cell("worst"), *(Cell(b) for b in (*blank, "", "")), *(worst.get(m, Cell("")) for m in metrics)))
    rows = rows[: len(keys)] + [row for row in rows[len(keys) :] if any(c.text for c in row[len(names) + 2 :])]
    title = f"by {' × '.join(names)}" + (f" ({_named(run)})" if run else "")
    return Table(title, (*names, "n", positive, *metrics), tuple(rows), len(names))


def matrix(results: Results, rows: str, columns: str, metric: str, run: Mapping[str, str] | None = None) -> Table:
    """One metric as a matrix: the values of one slice column down, of another across, pooled at both ends."""
    own = [e for e in results if e.metric == metric and e.average is None and dict(e.run) == (run or {})]
    at = {frozenset(e.slice.items()): e for e in own}
    down = sorted({e.slice[rows] for e in own if rows in e.slice})
    across = sorted({e.slice[columns] for e in own if columns in e.slice})
    lines: list[tuple[Cell, ...]] = []
    for r in (None, *down):
        keys = [frozenset([(k, v) for k, v in ((rows, r), (columns, c)) if v is not None]) for c in (None, *across)]
        lines.append((Cell(r or "pooled"), *(_joint(at[k]) if k in at else Cell("") for k in keys)))
    best = next((e.best for e in own), "low")
    return Table(f"{metric} {ARROW[best]} by {rows} × {columns}", (rows, "pooled", *across), tuple(lines))


def runs(results: Results) -> list[dict[str, str]]:
    """The runs in the results, in order; summaries over runs are not runs."""
    return [dict(r) for r in dict.fromkeys(tuple(e.run.items()) for e in results if e.average is None)]


def groupings(results: Results) -> list[tuple[str, ...]]:
    """The slice columns that the results are grouped by, in order."""
    return list(dict.fromkeys(tuple(e.slice) for e in results if e.slice and e.average is None))


def titled(e: Estimate) -> str:
    """A metric's name with the direction that is better."""
    return f"{e.shown} {ARROW[e.best]}"


def short_interval(e: Estimate) -> str:
    """`[.0821, .0863]`: an interval without leading zeros, as tables have little room."""
    if e.low is None or e.high is None:
        return ""
    return f"[{_short(e.low)}, {_short(e.high)}]"


def _short(value: float) -> str:
    text = f"{value:.4f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def _slice_row(key: Sequence[str], own: list[Estimate], metrics: list[str], sizes: bool = True) -> tuple[Cell, ...]:
    figures = {titled(e): e for e in own}
    cells = [_joint(figures[m]) if m in figures else Cell("") for m in metrics]
    n = _sizes(own[0]) if own and sizes else (Cell(""), Cell(""))
    return (*(Cell(k) for k in key), *n, *cells)


def _joint(e: Estimate) -> Cell:
    mark = "*" if e.value is not None and e.note and e.note.startswith("only") else ""
    return Cell(number(e.value) + mark if e.value is not None else "–", short_interval(e))


def _figure_cells(e: Estimate) -> tuple[Cell, Cell]:
    return Cell(number(e.value), strong=True), Cell(short_interval(e))


def _sizes(e: Estimate) -> tuple[Cell, Cell]:
    return Cell(f"{e.n:,}"), Cell(f"{e.n_positive:,}")


def _level(rows: Sequence[Estimate]) -> str:
    methods = [e.method for e in rows if e.method and e.method.startswith("bootstrap")]
    return f"{float(methods[0].split(',')[3]):.0%} interval" if methods else "interval"


def _named(run: Mapping[str, str]) -> str:
    return ", ".join(f"{k} {v}" for k, v in run.items())


def _gap_table(gaps: list[Estimate]) -> Table:
    names = tuple(dict.fromkeys(k for e in gaps for k in e.run))
    rows = [
        (*(Cell(e.run.get(k, "")) for k in names), Cell(titled(e)), *_figure_cells(e), Cell(e.note or "")) for e in gaps
    ]
    column, label = next(iter(gaps[0].slice.items()))
    return Table(f"gap: {column} {label}", (*names, "metric", "out − in", "interval", ""), tuple(rows), len(names) + 1)
