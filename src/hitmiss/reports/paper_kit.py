"""The paper kit: tables of systems × conditions, matrices and figures in the form of a paper.

Tables are for booktabs, siunitx and colortbl: a row per system, a column per condition, one table per metric, with a
caption and a label; more conditions than a page is wide become several tables, more systems than a page is long a
longtable. A number is bold only where a saved comparison shows it to be better.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from hitmiss._version import __version__
from hitmiss.core.registry import metric_of
from hitmiss.core.results import Estimate, Results
from hitmiss.core.tex import tex
from hitmiss.core.text import escape_invisible
from hitmiss.engine.ranking import Ranking
from hitmiss.findings.wording import explain, figure, interval, is_share, places
from hitmiss.reports.evaluations import Evaluation
from hitmiss.reports.exports import verdict_of
from hitmiss.reports.grids import RUN, groupings, runs
from hitmiss.reports.heat import heat_map
from hitmiss.reports.latex import Float, latex_figure, latex_table, latex_verdict
from hitmiss.reports.plate import Plate
from hitmiss.reports.ranking_tables import groups_of
from hitmiss.reports.significance import Marks
from hitmiss.reports.slice_plates import forest_plate, heat_plate, ranks_plate
from hitmiss.reports.table import Table, TableCell

MOST_ACROSS: Final = 8
"""Conditions side by side; this many numbers of four digits fit one of two columns."""
MOST_FOREST: Final = 60
"""Maximum conditions of a forest plot; more do not fit a page."""
PACKAGES: Final = ("booktabs", "siunitx", "longtable", "colortbl", "xcolor", "adjustbox")
CITE: Final = f"hitmiss {__version__} (CITATION.cff in its repository); give the short signature beside the numbers"


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
    parts += [f"% cite: {CITE}", latex_verdict(verdict_of(evaluation))]
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
    from hitmiss.reports.displays.kinds import KINDS
    from hitmiss.reports.matplots import COLUMN, draw, save, together

    written = []
    for kind in KINDS:
        lines = evaluation.lines(kind)
        if not lines or (KINDS[kind].reading.single and len(lines) > 1):
            continue
        written.append(folder / f"{kind}{ending}")
        save(together(kind, lines), written[-1])
    for name, plate, tall in _more_plates(evaluation, ranked):
        written.append(folder / f"{name}{ending}")
        save(draw(plate, size=(COLUMN[0], tall)), written[-1])
    return written


def figure_floats(written: Sequence[Path]) -> str:
    """Return LaTeX that shows the figures, each with its caption and its label."""
    from hitmiss.reports.displays.kinds import KINDS

    parts = ["% needs \\usepackage{graphicx}"]
    for path in written:
        caption = tex(
            KINDS[path.stem].reading.title if path.stem in KINDS else path.stem.replace("_", " ").capitalize()
        )
        parts.append(latex_figure(path.name, f"{caption}.", f"fig:{_slug(path.stem)}"))
    return "\n".join(parts)


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
        yield "ranks", ranks_plate(whole_, *groups_of(ranked, whole_)), 0.8 + 0.17 * len(whole_)


def _named(metric: str, results: Results) -> str:
    """Return the name of a metric in papers: the protocol's name, its symbol, or its title."""
    called = next((e.title for e in results if e.metric == metric and e.title), "")
    unit = r", \%" if is_share(metric) else ""
    return f"{tex(called) or _symbol(metric)}{unit}"


def _systems(evaluation: Evaluation, metric: str, names: tuple[str, ...], marks: Marks) -> list[str]:
    """Write systems as rows and conditions as columns, the pooled value first, each with its interval below it."""
    own = [e for e in evaluation.results if e.metric == metric and e.average is None]
    at = {
        (e.run.get(RUN, ""), e.slice.get(names[0], "") if names else ""): e
        for e in own
        if tuple(e.slice) in ((), names)
    }
    systems = list(dict.fromkeys(run for run, _ in at))
    conditions = list(dict.fromkeys(condition for _, condition in at if condition))
    pooled = [""] if any(condition == "" for _, condition in at) else []
    scale = 100.0 if is_share(metric) else 1.0
    digits = min(places(own, scale), 4)
    form = _format(own, digits, scale)
    made = []
    for part in range(0, max(len(conditions), 1), MOST_ACROSS):
        columns = [*(pooled if part == 0 else []), *conditions[part : part + MOST_ACROSS]]
        rows = tuple(
            (
                TableCell(run or evaluation.members[0].name),
                *(_cell(at.get((run, c)), digits, scale, marks) for c in columns),
            )
            for run in systems
        )
        number = f"{part // MOST_ACROSS + 1}" if len(conditions) > MOST_ACROSS else ""
        label = "-".join(filter(None, (f"tab:{_slug(metric)}-{_slug(names[0] if names else 'all')}", number)))
        of = tex(f" by {names[0]}") if names else ""
        caption = f"{_named(metric, evaluation.results)}{of}{f' ({number})' if number else ''}. {_settings(own, evaluation)}".strip()
        table = Table("", ("System", *(c or "pooled" for c in columns)), rows)
        made.append(latex_table(table, Float(caption, label, form)))
    return made


def _settings(own: Sequence[Estimate], evaluation: Evaluation) -> str:
    """Say how many trials there are, and what the intervals are."""
    whole = max((e for e in own if not e.slice), key=lambda e: e.n, default=None)
    if whole is None:
        return ""
    design = evaluation.sources[0].results.design
    drawn = design is not None and any(e.low is not None for e in own)
    ends = rf" In brackets: {100 * design.level:g}\,\% intervals." if design is not None and drawn else ""
    n, positive = (f"{count:,}".replace(",", r"\,") for count in (whole.n, whole.n_positive))
    return f"$n = {n}$ trials, {positive} {tex(evaluation.counted)}.{ends}"


def _format(own: Sequence[Estimate], digits: int, scale: float) -> str:
    whole = max((len(str(int(abs(scale * e.value)))) for e in own if e.value is not None), default=1)
    return f"{whole}.{digits}"


def _cell(e: Estimate | None, digits: int, scale: float, marks: Marks) -> TableCell:
    if e is None or e.value is None:
        return TableCell("" if e is None else "–")
    return TableCell(figure(e.value, digits, scale), interval(e, digits, scale), mark=marks.of(e))


def _matrix(evaluation: Evaluation, metric: str, names: tuple[str, str]) -> list[str]:
    """Write two crossed conditions, the cells shaded from best to worst; one matrix per run."""
    made = list[str]()
    for run in dict.fromkeys(tuple(e.run.items()) for e in evaluation.results if e.metric == metric):
        found = heat_map(evaluation.results, names, metric, dict(run))
        if found is None or not found.is_crossed:
            continue
        own = [e for e in evaluation.results if e.metric == metric and tuple(e.slice) == names and e.value is not None]
        form = _format(own, 1, 100.0 if is_share(metric) else 1.0)
        for part in range(0, len(found.columns), 2 * MOST_ACROSS):
            chosen = slice(part, part + 2 * MOST_ACROSS)
            rows = tuple(
                (
                    TableCell(name),
                    *(TableCell(c.text, shade=c.shade if c.shade.isdigit() else "") for c in cells[chosen]),
                )
                for name, cells in found.rows
            )
            who = f" of {tex(', '.join(v for _, v in run))}" if run else ""
            caption = (
                f"{_named(metric, evaluation.results)}{who} by {tex(names[0])} and {tex(names[1])}; darker is worse."
            )
            label = f"tab:{_slug(metric)}-{_slug('-'.join(names))}-{len(made) + 1}"
            table = Table("", (found.down, *found.columns[chosen]), rows)
            made.append(latex_table(table, Float(caption, label, form)))
    return made


def _slug(text: str) -> str:
    """Return a label that LaTeX accepts.

    >>> _slug("min_dcf(c_fa=10)")
    'min-dcf-c-fa-10'
    """
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in text).split()).lower()
