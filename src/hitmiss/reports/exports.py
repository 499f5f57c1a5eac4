"""Export results as LaTeX, Markdown, CSV, XLSX, JSON or a model card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.results import Results
from hitmiss.core.verdict import Verdict
from hitmiss.engine.comparison import Comparison
from hitmiss.engine.ranking import Ranking
from hitmiss.reports import campaigns
from hitmiss.reports.evaluations import Evaluation, RunData, evaluations
from hitmiss.reports.latex import latex, latex_verdict
from hitmiss.reports.markdown import markdown, markdown_verdict
from hitmiss.reports.model_card import model_card
from hitmiss.reports.result_tables import tables
from hitmiss.reports.sheets import about, csv_text, frame_of_tables, workbook, xlsx_bytes
from hitmiss.reports.significance import Marks, read_marks
from hitmiss.reports.summary import summarize
from hitmiss.reports.table import Table
from hitmiss.reports.table_style import TableStyle
from hitmiss.reports.triage_tables import beside_tables


def export_tables(
    tables: Sequence[Table], to: str, signature: str = "", *, raw: bool = False, verdict: Verdict | None = None
) -> str | bytes:
    """Export tables that are not of one run, with their verdict: a comparison, a ranking, a gate."""
    if to == "latex":
        return latex(tables, signature, verdict=latex_verdict(verdict) if verdict is not None else "")
    if to == "markdown":
        return markdown(tables, signature, verdict=markdown_verdict(verdict) if verdict is not None else "")
    if to == "csv":
        return frame_of_tables(tables, raw=raw).write_csv(line_terminator="\n")
    if to == "xlsx":
        return workbook(frame_of_tables(tables, raw=raw), [*about(verdict), ("signature", signature)])
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
        raise UsageError.of("mixed-protocols", to=how.to, n_found=len(found))
    results = _chosen(found[0].results, how.metrics)
    if how.to == "json":
        return results.to_json() + "\n"
    if how.to == "model-card":
        return model_card(results, how.model, how.dataset, str(verdict_of(found[0])))
    return (
        csv_text(results, raw=how.raw)
        if how.to == "csv"
        else xlsx_bytes(results, raw=how.raw, verdict=verdict_of(found[0]))
    )


def _paper(evaluation: Evaluation, how: Export) -> str:
    results = _chosen(evaluation.results, how.metrics)
    marks = read_marks(how.comparison, results.estimates) if how.comparison else Marks()
    style = TableStyle(intervals=how.intervals, percent=how.percent, mark=marks.of)
    found = tables(results, "", style)
    extras = [s.extras for s in evaluation.sources if s.extras is not None]
    found += [replace(t, name=t.title) for own in extras for t in beside_tables(own)]
    chosen = _wanted(found, how.tables)
    verdict = verdict_of(replace(evaluation, results=results), _saved(how.comparison))
    brief = bool(how.tables or how.metrics or not how.intervals)
    if how.to == "latex":
        return latex(chosen, results.signature, marks.legend, latex_verdict(verdict, brief=brief))
    return markdown(chosen, results.signature, marks.legend, markdown_verdict(verdict, brief=brief))


def verdict_of(evaluation: Evaluation, compared: Comparison | Ranking | None = None) -> Verdict:
    """Return the verdict on the runs of an evaluation; `compared` is a saved comparison of them."""
    if evaluation.is_campaign:
        return campaigns.summarize(evaluation).verdict
    return summarize(evaluation, compared).verdict


def _saved(path: str | None) -> Comparison | Ranking | None:
    """Read the comparison that marks the tables, if one was given."""
    from hitmiss.reports.contests import read_contest

    found = read_contest(path) if path is not None else None
    return None if isinstance(found, list) else found


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
