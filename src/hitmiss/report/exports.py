"""Results to whatever people paste them into: LaTeX, Markdown, CSV, XLSX, JSON, a model card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.results import Results
from hitmiss.report.evaluations import Evaluation, RunData, evaluations
from hitmiss.report.marks import read_marks
from hitmiss.report.papers import Style, latex, markdown
from hitmiss.report.tables import Grid, grids

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
    more: dict[str, Any] = field(default_factory=dict)


def export(sources: Sequence[RunData], how: Export) -> str | bytes:
    """Results in another form; several files stand side by side where they belong together."""
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
        from hitmiss.report.model_card import model_card

        return model_card(results, how.model, how.dataset)
    from hitmiss.report import sheets

    return sheets.csv_text(results, raw=how.raw) if how.to == "csv" else sheets.xlsx_bytes(results, raw=how.raw)


def _paper(evaluation: Evaluation, how: Export) -> str:
    results = _chosen(evaluation.results, how.metrics)
    marks = read_marks(how.comparison, results.estimates) if how.comparison else None
    style = Style(how.percent, how.intervals, marks) if marks is not None else Style(how.percent, how.intervals)
    write = latex if how.to == "latex" else markdown
    return write(_tables(results, how.tables), style, results.signature)


def _tables(results: Results, wanted: Sequence[str]) -> list[Grid]:
    """The tables that were asked for: `all`, `codec`, `codec,codec_q`, `runs`, `gap`; every one where none was named."""
    found = grids(results)
    if not wanted:
        return found
    names = {_handle(g): g for g in found}
    unknown = [w for w in wanted if not any(h == w for h in names)]
    if unknown:
        raise UnknownName("table", unknown[0], names)
    return [g for g in found if _handle(g) in wanted]


def _handle(grid: Grid) -> str:
    """How a table is asked for."""
    if grid.title.startswith("by "):
        return ",".join(grid.names)
    return {"all trials": "all", "over repeated runs": "runs"}.get(grid.title, "gap")


def _chosen(results: Results, metrics: Sequence[str]) -> Results:
    if not metrics:
        return results
    known = dict.fromkeys(e.metric for e in results)
    for metric in metrics:
        if metric not in known:
            raise UnknownName("metric in these results", metric, known)
    return replace(results, estimates=tuple(e for e in results if e.metric in metrics))
