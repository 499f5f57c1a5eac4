"""Results pivoted to grids, and arranged as tables of text, with the meaning of each metric."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from hitmiss.core.errors import UsageError
from hitmiss.core.registry import find_metric
from hitmiss.core.results import Estimate, Results, number
from hitmiss.core.schema import parse
from hitmiss.core.values import visible

# ----------------------------------------------------------------------
# What each metric means, for people who did not grow up with it: from the docstrings, so that there is one source.

SHARES: Final = frozenset(
    (
        "eer", "accuracy", "balanced_accuracy", "recall", "precision", "specificity", "fpr", "fnr", "tpr_at_fpr",
        "fpr_at_tpr", "accuracy_answered", "accuracy_at_coverage", "coverage", "coverage_fake", "coverage_real",
        "coverage_at_accuracy", "abstain_rate", "error_rate", "unparsed_rate", "fake_catch_rate", "fake_slip_rate",
        "real_pass_rate", "real_false_flag_rate", "recall_fake", "recall_real", "precision_fake", "precision_real",
        "probe_accuracy", "probe_balanced_accuracy", "flip_rate", "hard_flip_rate", "far", "frr", "changed", "changed_correct", "exact_match",
        "robust_accuracy", "target_success", "target_eligible", "target_base", "flipped", "lost", "induced",
    )
)  # fmt: skip
"""Metrics that are shares of trials: these alone are shown in per cent in a headline."""
WORDS: Final = {
    "far": ("False acceptance", "Share of the fakes accepted at the frozen threshold", "Best: low. Range: 0..1."),
    "frr": ("False rejection", "Share of the reals rejected at the frozen threshold", "Best: low. Range: 0..1."),
    "ece_by_chance": (
        "Calibration error by chance",
        "What a calibrated detector with these confidences exceeds in one of twenty cases",
        "An ECE below it shows nothing.",
    ),
}
"""Figures that are shown under names of their own: title, gist and what else is to be said."""


@dataclass(frozen=True)
class Entry:
    """A metric explained: its name in tables, its title, one sentence, the rest, which way is better."""

    name: str
    title: str
    gist: str
    text: str = ""
    best: str = ""


def explain(metric: str) -> Entry:
    """The explanation of a metric as tables name it; one that is not known here is its own title.

    >>> explain("eer(ties=grouped)").title, explain("no_such_metric").title
    ('Equal error rate', 'no_such_metric')
    """
    try:
        entry = find_metric(parse(metric).name)
    except UsageError:
        return Entry(metric, *WORDS.get(metric, (metric, "", "")))
    first, _, rest = (inspect.getdoc(entry.function) or entry.name).replace("**", "").partition("\n")
    title, colon, gist = first.partition(": ")
    body = "\n".join(" ".join(part.split()) for part in rest.split(">>>")[0].strip().split("\n\n"))
    if not colon:
        name = entry.name.replace("_", " ")
        return Entry(metric, name[:1].upper() + name[1:], first.strip(), body, entry.best)
    return Entry(metric, title.strip(), gist.strip(), body, entry.best)


def is_share(metric: str) -> bool:
    """Whether a metric is a share of trials."""
    try:
        return parse(metric).name in SHARES
    except UsageError:
        return False


def glossary(metrics: Iterable[str]) -> list[Entry]:
    """The metrics that were shown, each once, by title."""
    found = {explain(m).title: explain(m) for m in dict.fromkeys(metrics)}
    return sorted(found.values(), key=lambda entry: entry.title.lower())


# ----------------------------------------------------------------------
# Results arranged as tables of text; how they are drawn is another file's business.

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
    found = [overall_table(results, positive), *over_repeats(results, ())]
    for names in groupings(results):
        found += [slice_table(results, names, run, positive) for run in runs(results)]
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


def overall_table(results: Results, positive: str) -> Table:
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


def slice_table(results: Results, names: tuple[str, ...], run: Mapping[str, str], positive: str) -> Table:
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


# ----------------------------------------------------------------------
# Results pivoted for people: a grid has rows of slices or runs and a column a metric; cells are the estimates themselves.
#
# How a grid is written (HTML, LaTeX, Markdown, a sheet) is another file's business; how many digits a figure deserves is
# settled here, from the width of its interval.

PLACES: Final = 4
"""Places of a figure that has no interval."""
MOST_PLACES: Final = 6
AVERAGES: Final = ("pooled", "macro", "within", "worst")
REPEATS: Final = ("mean", "sd", "min", "max")


@dataclass(frozen=True)
class Row:
    """A slice, a run or an average: its labels, its size, and one estimate (or none) a metric."""

    labels: tuple[str, ...]
    cells: tuple[Estimate | None, ...]
    average: str | None = None

    @property
    def n(self) -> int | None:
        """How many trials, where the row is one set of trials."""
        found = next((e for e in self.cells if e is not None), None)
        return found.n if found is not None and self.average in (None, "pooled") else None

    @property
    def n_positive(self) -> int | None:
        """How many of them are positive."""
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
        """The estimates of one metric."""
        return [e for row in self.rows if (e := row.cells[i]) is not None]

    @property
    def titles(self) -> tuple[str, ...]:
        """What the metrics are called: as the protocol calls them (APCER for fpr), else by their names."""
        return tuple(own[0].shown if (own := self.column(i)) else m for i, m in enumerate(self.metrics))

    @property
    def best(self) -> tuple[str, ...]:
        """Which direction is better, a metric."""
        return tuple(self.column(i)[0].best if self.column(i) else "low" for i in range(len(self.metrics)))

    def best_value(self, i: int) -> float | None:
        """The best figure of a metric, averages apart; None where there is nothing to choose from."""
        values = [e.value for row in self.rows if row.average is None and (e := row.cells[i]) is not None]
        known = [value for value in values if value is not None]
        if len(known) < 2:
            return None
        return min(known) if self.best[i] == "low" else max(known)


def overall(results: Results) -> Grid:
    """All trials: a row a run."""
    own = [e for e in results if not e.slice and e.average is None]
    names = tuple(dict.fromkeys(k for e in own for k in e.run))
    rows = [
        _row(tuple(run.get(k, "") for k in names), [e for e in own if dict(e.run) == run], own) for run in runs(results)
    ]
    return Grid("all trials", names, _metrics(own), tuple(row for row in rows if any(row.cells)))


def by_slice(results: Results, names: tuple[str, ...], run: Mapping[str, str]) -> Grid:
    """One run by slice columns: a row a slice, then the averages."""
    own = [e for e in results if dict(e.run) == dict(run)]
    inside = [e for e in own if tuple(e.slice) == names]
    cells = [e for e in inside if e.average is None]
    keys = list(dict.fromkeys(tuple(e.slice.values()) for e in cells))
    rows = [_row(key, [e for e in cells if tuple(e.slice.values()) == key], cells) for key in keys]
    ends = {kind: [e for e in inside if e.average == kind] for kind in AVERAGES}
    ends["pooled"] = [e for e in own if not e.slice and e.average is None]
    called = {kind: kind for kind in AVERAGES}
    if not ends["pooled"]:  # of repeated trials the mean stands for the whole
        ends["pooled"], called["pooled"] = [e for e in own if not e.slice and e.average == "mean"], "mean of the trials"
    blank = ("",) * (len(names) - 1)
    rows += [_row((called[kind], *blank), found, cells, kind) for kind, found in ends.items() if found]
    title = f"by {' × '.join(names)}"
    return Grid(title, names, _metrics(cells), tuple(row for row in rows if any(row.cells)))


def repeats(results: Results) -> Grid | None:
    """Mean, standard deviation, least and greatest over repeated runs, where the results hold them."""
    own = [e for e in results if e.average in REPEATS]
    if not own:
        return None
    names = tuple(dict.fromkeys(k for e in own for k in (*e.run, *e.slice)))
    keys = list(dict.fromkeys((tuple({**e.run, **e.slice}.items()), e.average or "") for e in own))
    rows = []
    for cell, kind in keys:
        found = [e for e in own if tuple({**e.run, **e.slice}.items()) == cell and e.average == kind]
        rows.append(_row((*(dict(cell).get(k, "all") for k in names), kind), found, own, kind))
    return Grid("over repeated runs", (*names, "over runs"), _metrics(own), tuple(rows))


def gaps(results: Results) -> Grid | None:
    """Figures outside a domain less those inside it, where the results hold them."""
    own = [e for e in results if e.average == "gap"]
    if not own:
        return None
    keys = list(dict.fromkeys((tuple(e.run.values()), *e.slice.items()) for e in own))
    names = tuple(dict.fromkeys(k for e in own for k in e.run))
    rows = []
    for run, *cell in keys:
        found = [e for e in own if tuple(e.run.values()) == run and list(e.slice.items()) == cell]
        rows.append(_row((*run, ", ".join(f"{k}: {v}" for k, v in cell)), found, own, "gap"))
    return Grid("gap, out − in", (*names, "domain"), _metrics(own), tuple(rows))


def grids(results: Results) -> list[Grid]:
    """Every grid that the results hold: all trials, each grouping of each run, repeats, gaps."""
    found = [overall(results)]
    for names in groupings(results):
        for run in runs(results):
            grid = by_slice(results, names, run)
            named = f" ({', '.join(f'{k} {v}' for k, v in run.items())})" if run else ""
            found += [Grid(grid.title + named, grid.names, grid.metrics, grid.rows)] if grid.rows else []
    return [g for g in (*found, repeats(results), gaps(results)) if g is not None and g.rows]


def _metrics(own: Iterable[Estimate]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(e.metric for e in own))


def _row(labels: tuple[str, ...], own: Sequence[Estimate], of: Sequence[Estimate], average: str | None = None) -> Row:
    at = {e.metric: e for e in own}
    return Row(labels, tuple(at.get(metric) for metric in _metrics(of)), average)


def places(estimates: Iterable[Estimate], scale: float = 1.0) -> int:
    """How many decimal places figures deserve: two significant digits of the half width of their interval.

    The median decides for a column, so that its figures line up. Without intervals: four (two for percentages).

    >>> places([Estimate("eer", 0.07741, 0.0758, 0.0791)])
    4
    >>> places([Estimate("eer", 0.0774, 0.04, 0.12)]), places([Estimate("eer", 0.0774)])
    (3, 4)
    """
    halves = [scale * (e.high - e.low) / 2 for e in estimates if e.low is not None and e.high is not None]
    known = [half for half in halves if math.isfinite(half) and half > 0]
    if not known:
        return PLACES if scale == 1.0 else PLACES - 2
    return min(max(1 - math.floor(math.log10(median(known))), 0), MOST_PLACES)


def figure(value: float | None, digits: int, scale: float = 1.0) -> str:
    """A figure with so many places; `–` where it is undefined.

    >>> figure(0.07741, 4), figure(None, 4), figure(0.07741, 2, 100), figure(-0.00001, 2)
    ('0.0774', '–', '7.74', '0.00')
    """
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    text = f"{scale * value:.{digits}f}"
    return text.removeprefix("-") if text.startswith("-") and not text.strip("-0.") else text


def interval(e: Estimate, digits: int, scale: float = 1.0) -> str:
    """`[0.0758, 0.0791]`, or nothing."""
    if e.low is None or e.high is None:
        return ""
    return f"[{figure(e.low, digits, scale)}, {figure(e.high, digits, scale)}]"


def is_campaign(results: Results) -> bool:
    """Whether the runs of some results are attacks at strengths."""
    found = runs(results)
    return bool(found) and all({"attack", "strength"} <= set(run) for run in found)
