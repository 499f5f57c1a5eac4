"""Export results as LaTeX, Markdown, CSV, XLSX, JSON or a model card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.results import Results
from hitmiss.reports.evaluations import Evaluation, RunData, evaluations
from hitmiss.reports.latex import latex
from hitmiss.reports.markdown import markdown
from hitmiss.reports.model_card import model_card
from hitmiss.reports.result_tables import tables
from hitmiss.reports.sheets import _workbook, csv_text, frame_of_tables, xlsx_bytes
from hitmiss.reports.significance import Marks, read_marks
from hitmiss.reports.table import Table
from hitmiss.reports.table_style import TableStyle
from hitmiss.reports.triage_tables import beside_tables


def export_tables(tables: Sequence[Table], to: str, signature: str = "", *, raw: bool = False) -> str | bytes:
    """Export tables that are no figures of one run: a comparison, a ranking, a gate."""
    if to == "latex":
        return latex(tables, signature)
    if to == "markdown":
        return markdown(tables, signature)
    if to == "csv":
        return frame_of_tables(tables, raw=raw).write_csv(line_terminator="\n")
    if to == "xlsx":
        return _workbook(frame_of_tables(tables, raw=raw), [("signature", signature)])
    raise UnknownName("format of a comparison", to, ("latex", "markdown", "csv", "xlsx"))


FORMATS: Final = ("latex", "markdown", "csv", "xlsx", "json", "model-card")


@dataclass(frozen=True)
class Export:
    """What is exported and how."""

    to: str
    metrics: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    percent: tuple[str, ...] = ()
    intervals: bool = True
    comparison: str | None = None
    raw: bool = False
    model: str = "model"
    dataset: str | None = None
    more: dict[str, object] = field(default_factory=dict)


def export(sources: Sequence[RunData], how: Export) -> str | bytes:
    """Export results in another form; several files are shown side by side if they belong together."""
    if how.to not in FORMATS:
        raise UnknownName("format", how.to, FORMATS)
    found = evaluations(sources)
    if how.to in ("latex", "markdown"):
        return "\n".join(_paper(evaluation, how) for evaluation in found)
    if len(found) > 1:
        raise UsageError(f"{how.to} takes runs of one protocol on the same trials; these are of {len(found)} kinds")
    results = _chosen(found[0].results, how.metrics)
    if how.to == "json":
        return results.to_json() + "\n"
    if how.to == "model-card":
        return model_card(results, how.model, how.dataset)

    return csv_text(results, raw=how.raw) if how.to == "csv" else xlsx_bytes(results, raw=how.raw)


def _paper(evaluation: Evaluation, how: Export) -> str:
    results = _chosen(evaluation.results, how.metrics)
    marks = read_marks(how.comparison, results.estimates) if how.comparison else Marks()
    look = TableStyle(intervals=how.intervals, percent=how.percent, mark=marks.of)
    found = tables(results, "", look)
    extras = [s.extras for s in evaluation.sources if s.extras is not None]
    found += [replace(t, name=t.title) for own in extras for t in beside_tables(own)]
    write = latex if how.to == "latex" else markdown
    return write(_wanted(found, how.tables), results.signature, marks.legend)


def _wanted(found: Sequence[Table], wanted: Sequence[str]) -> list[Table]:
    """Return the requested tables: `all`, `codec`, `codec,codec_q`, `runs`, `gap`; every table if none was named."""
    names = dict.fromkeys(t.name for t in found)
    for name in wanted:
        if name not in names:
            raise UnknownName("table", name, names)
    return [t for t in found if not wanted or t.name in wanted]


def _chosen(results: Results, metrics: Sequence[str]) -> Results:
    if not metrics:
        return results
    known = dict.fromkeys(e.metric for e in results)
    for metric in metrics:
        if metric not in known:
            raise UnknownName("metric in these results", metric, known)
    return replace(results, estimates=tuple(e for e in results if e.metric in metrics))
