"""The paper kit: tables of systems × conditions, matrices and figures in the form of a paper.

Tables are for booktabs, siunitx and colortbl: a row per system, a column per condition, one table per metric, with a
caption and a label; more conditions than a page is wide become several tables, more systems than a page is long a
longtable. A figure is bold only where a saved comparison shows it to be better.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from hitmiss._version import __version__
from hitmiss.core.registry import metric_of
from hitmiss.core.results import Estimate, Results
from hitmiss.core.text import escape_invisible
from hitmiss.engine.ranking import Ranking
from hitmiss.findings.wording import explain, figure, is_share, places
from hitmiss.reports.evaluations import RUN, Evaluation
from hitmiss.reports.grids import groupings, runs
from hitmiss.reports.heat import heat_map
from hitmiss.reports.latex import tex
from hitmiss.reports.plate import Plate
from hitmiss.reports.significance import Marks
from hitmiss.reports.slice_plates import forest_plate, heat_plate, ranks_plate

MOST_ACROSS: Final = 8
"""Conditions side by side; this many figures of four digits fit one of two columns."""
ONE_COLUMN: Final = (
    r"\makeatletter\if@twocolumn\onecolumn\def\hitmissback{\twocolumn}\else\let\hitmissback\relax\fi\makeatother"
)
"""A longtable needs a one-column page; in a two-column paper it gets a separate page."""
MOST_DOWN: Final = 40
"""Maximum systems in a float; more become a longtable, which may run over pages."""
MOST_FOREST: Final = 60
"""Maximum conditions of a forest plot; more do not fit a page."""
PACKAGES: Final = ("booktabs", "siunitx", "longtable", "colortbl", "xcolor", "adjustbox")


CITE: Final = f"hitmiss {__version__} (CITATION.cff in its repository); give the short signature beside the figures"


def _symbol(metric: str) -> str:
    """Return the name of a metric in papers."""
    entry = metric_of(metric)
    return (entry.symbol if entry is not None else "") or tex(explain(metric).title)


def short_signatures(results: Results) -> list[str]:
    """Return the signature of each run in at most 60 characters."""
    return [replace(results, signature=line).short_signature for line in results.signature.splitlines() if line]


def paper_tables(evaluation: Evaluation, metrics: Sequence[str] = (), marks: Marks | None = None) -> str:
    """Return every table of an evaluation as LaTeX."""
    results = evaluation.results
    sliced = list(dict.fromkeys(e.metric for e in results if e.slice and e.average is None))
    whole = list(dict.fromkeys(e.metric for e in results if not e.slice and e.average is None))
    wanted = [m for m in (metrics or (sliced or whole)) if m in (*sliced, *whole)]
    parts = ["% needs " + ", ".join(r"\usepackage{" + name + "}" for name in PACKAGES)]
    parts += [f"% {line}" for line in results.signature.splitlines()]
    parts += [f"% short signature, for the caption: {escape_invisible(line)}" for line in short_signatures(results)]
    parts += [f"% cite: {CITE}"]
    singles: list[tuple[str, ...]] = [names for names in groupings(results) if len(names) == 1]
    for metric in wanted:
        for names in singles or [()]:
            parts += _systems(evaluation, metric, names, marks or Marks())
        for pair in (n for n in groupings(results) if len(n) == 2):
            parts += _matrix(evaluation, metric, (pair[0], pair[1]))
    return "\n\n".join(parts) + "\n"


def write_figures(
    evaluation: Evaluation, folder: Path, ending: str = ".pdf", ranked: Ranking | None = None
) -> list[Path]:
    """Write every figure of an evaluation with the width of a paper's column, all runs in the same axes."""
    from hitmiss.reports.matplots import COLUMN, draw, save, together
    from hitmiss.reports.readings import READINGS

    written = []
    for kind in READINGS:
        lines = evaluation.lines(kind)
        if not lines or (READINGS[kind].single and len(lines) > 1):
            continue
        written.append(folder / f"{kind}{ending}")
        save(together(kind, lines), written[-1])
    for name, plate, tall in _more_plates(evaluation, ranked):
        written.append(folder / f"{name}{ending}")
        save(draw(plate, size=(COLUMN[0], tall)), written[-1])
    return written


def _more_plates(evaluation: Evaluation, ranked: Ranking | None) -> Iterator[tuple[str, Plate, float]]:
    """Draw a forest per grouping of the primary metric, maps of crossed conditions, and the ranks of many systems."""
    results, metric = evaluation.results, evaluation.primary
    for names in groupings(results):
        for run in runs(results):
            own = [e for e in results if e.metric == metric and dict(e.run) == run and e.average is None]
            rows = [(" × ".join(e.slice.values()), e) for e in own if tuple(e.slice) == names and e.value is not None]
            who = f"_{_slug(run[RUN])}" if RUN in run else ""
            if len(names) == 1 and 1 < len(rows) <= MOST_FOREST:
                rows.sort(key=lambda row: (row[1].value or 0.0) * (-1 if row[1].best == "low" else 1))
                whole = next((e.value for e in own if not e.slice), None)
                plate = forest_plate(rows, explain(metric).title, whole)
                yield f"forest_{_slug(names[0])}{who}", plate, 0.8 + 0.17 * len(rows)
            crossed = heat_map(results, (names[0], names[1]), metric, run) if len(names) == 2 else None
            if crossed is not None and crossed.is_crossed:
                yield f"heat_{_slug('-'.join(names))}{who}", heat_plate(crossed), 0.8 + 0.2 * len(crossed.rows)
    if ranked is not None:
        whole_ = [s for s in ranked.standings if s.metric == metric and not s.slice and not s.average]
        yield "ranks", ranks_plate(whole_), 0.8 + 0.17 * len(whole_)


def _named(metric: str, results: Results) -> str:
    """Return the name of a metric in papers: the protocol's name, its symbol, or its title."""
    called = next((e.title for e in results if e.metric == metric and e.title), "")
    unit = r", \%" if is_share(metric) else ""
    return f"{tex(called) or _symbol(metric)}{unit}"


def _systems(evaluation: Evaluation, metric: str, names: tuple[str, ...], marks: Marks) -> list[str]:
    """Write systems as rows and conditions as columns, the pooled figure first."""
    own = [e for e in evaluation.results if e.metric == metric and e.average is None]
    at = {
        (e.run.get(RUN, ""), e.slice.get(names[0], "") if names else ""): e
        for e in own
        if tuple(e.slice) in ((), names)
    }
    runs = list(dict.fromkeys(run for run, _ in at))
    conditions = list(dict.fromkeys(condition for _, condition in at if condition))
    pooled = [""] if any(condition == "" for _, condition in at) else []
    scale = 100.0 if is_share(metric) else 1.0
    digits = min(places(own, scale), 4)
    made = []
    for part in range(0, max(len(conditions), 1), MOST_ACROSS):
        columns = [*(pooled if part == 0 else []), *conditions[part : part + MOST_ACROSS]]
        rows = [
            [_run(run, evaluation), *(_cell(at.get((run, c)), digits, scale, marks) for c in columns)] for run in runs
        ]
        of = f" by {names[0]}" if names else ""
        more = f" ({part // MOST_ACROSS + 1})" if len(conditions) > MOST_ACROSS else ""
        label = f"tab:{_slug(metric)}-{_slug(names[0] if names else 'all')}" + (
            f"-{part // MOST_ACROSS + 1}" if more else ""
        )
        caption = f"{_named(metric, evaluation.results)}{tex(of)}{more}."
        made.append(
            _table(
                ["System", *(tex(c) or "pooled" for c in columns)], rows, caption, label, _format(own, digits, scale)
            )
        )
    return made


def _run(run: str, evaluation: Evaluation) -> str:
    return tex(run or evaluation.members[0].name)


def _format(own: Sequence[Estimate], digits: int, scale: float) -> str:
    whole = max((len(str(int(abs(scale * e.value)))) for e in own if e.value is not None), default=1)
    return f"{whole}.{digits}"


def _cell(e: Estimate | None, digits: int, scale: float, marks: Marks) -> str:
    """Format a figure for an S column; text that is not a number is put in braces."""
    if e is None:
        return "{}"
    if e.value is None:
        return "{--}"
    value = figure(e.value, digits, scale)
    if not value.replace("-", "").replace(".", "").isdigit():
        return f"{{{tex(value)}}}"
    mark = marks.of(e)
    return rf"\bfseries {value}" if mark.startswith("*") else value


def _table(heads: list[str], rows: list[list[str]], caption: str, label: str, form: str) -> str:
    columns = f"l*{{{len(heads) - 1}}}{{S[table-format={form},detect-weight]}}"
    head = " & ".join([heads[0], *(f"{{{h}}}" for h in heads[1:])]) + r" \\"
    body = [" & ".join(row) + r" \\" for row in rows]
    return _placed(columns, head, body, caption, label)


def _placed(columns: str, head: str, body: list[str], caption: str, label: str) -> str:
    """Return a float that is never wider than its column, or a longtable, which runs over pages, for many rows."""
    ruled = [r"\toprule", head, r"\midrule"]
    if len(body) > MOST_DOWN:
        title = rf"\caption{{{caption}}}\label{{{label}}}\\"
        first = [rf"\begin{{longtable}}{{{columns}}}", title, *ruled, r"\endfirsthead", *ruled, r"\endhead"]
        return "\n".join([ONE_COLUMN, *first, *body, r"\bottomrule", r"\end{longtable}", r"\hitmissback"])
    top = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\label{{{label}}}"]
    box = [r"\begin{adjustbox}{max width=\linewidth}", rf"\begin{{tabular}}{{{columns}}}", *ruled, *body]
    return "\n".join([*top, *box, r"\bottomrule", r"\end{tabular}", r"\end{adjustbox}", r"\end{table}"])


def _matrix(evaluation: Evaluation, metric: str, names: tuple[str, str]) -> list[str]:
    """Write two crossed conditions, the cells shaded from best to worst; one matrix per run."""
    made = list[str]()
    for run in dict.fromkeys(tuple(e.run.items()) for e in evaluation.results if e.metric == metric):
        found = heat_map(evaluation.results, names, metric, dict(run))
        if found is None or not found.is_crossed:
            continue
        for part in range(0, len(found.columns), 2 * MOST_ACROSS):
            chosen = slice(part, part + 2 * MOST_ACROSS)
            heads = [tex(found.down), *(tex(c) for c in found.columns[chosen])]
            rows = [[tex(name), *(_shaded(c.text, c.shade) for c in cells[chosen])] for name, cells in found.rows]
            columns = "l" + "r" * (len(heads) - 1)
            who = f" of {tex(', '.join(v for _, v in run))}" if run else ""
            caption = f"{_named(metric, evaluation.results).split(',')[0]}{who} by {tex(names[0])} and {tex(names[1])}; darker is worse."
            label = f"tab:{_slug(metric)}-{_slug('-'.join(names))}-{len(made) + 1}"
            body = [" & ".join(row) + r" \\" for row in rows]
            made.append(_placed(columns, " & ".join(heads) + r" \\", body, caption, label))
    return made


def _shaded(text: str, shade: str) -> str:
    return rf"\cellcolor{{orange!{7 * int(shade)}}}{tex(text)}" if shade.isdigit() and text else tex(text)


def _slug(text: str) -> str:
    """Return a label that LaTeX accepts.

    >>> _slug("min_dcf(c_fa=10)")
    'min-dcf-c-fa-10'
    """
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in text).split()).lower()
