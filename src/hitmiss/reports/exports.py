"""Export results as LaTeX, Markdown, CSV, XLSX, JSON or a model card."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.convert import declare, fit
from hitmiss.core.errors import DataError, EnvironmentFault, UnknownName, UsageError
from hitmiss.core.results import SCHEMA, Estimate, Results
from hitmiss.core.text import escape_invisible
from hitmiss.engine.compare import Difference
from hitmiss.engine.rank import Standing
from hitmiss.io.write import csv_of, spreadsheet_safe
from hitmiss.reports.evaluations import Evaluation, RunData, evaluations, signature_part
from hitmiss.reports.tabular import COUNT, LABEL, Cell, Look, Table, tables
from hitmiss.reports.triage_tables import beside_tables

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

# ----------------------------------------------------------------------
# Significance marks for tables: what a saved comparison (`hitmiss compare -o`) says about the figures of a run.
#
# A comparison belongs to a figure if one of its sides has exactly that value; a comparison of other runs is refused.

LEVELS: Final = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


@dataclass(frozen=True)
class Marks:
    """Marks by metric, slice and value, and the sentence that explains them."""

    at: Mapping[tuple[str, tuple[tuple[str, str], ...]], Sequence[tuple[float, str]]] = field(default_factory=dict)
    legend: str = ""

    def of(self, e: Estimate) -> str:
        """Return the mark of an estimate; empty if it has none."""
        if e.value is None or e.average is not None:
            return ""
        found = self.at.get((e.metric, tuple(sorted(e.slice.items()))), ())
        return next((mark for value, mark in found if math.isclose(value, e.value, rel_tol=1e-9, abs_tol=1e-12)), "")


def read_marks(path: str | Path, estimates: Sequence[Estimate]) -> Marks:
    """Read the marks of a saved comparison of two runs (stars) or more (letters)."""
    data = artifacts.load(path, "comparison")
    if data.get("schema") != SCHEMA or data.get("kind") not in ("comparison", "ranking"):
        raise DataError(
            f"{Path(path).name} is not a comparison; write one with `hitmiss compare A B -o {Path(path).name}`"
        )
    try:
        made = _stars(data) if data["kind"] == "comparison" else _letters(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{Path(path).name} is not of the form of a comparison: {error}") from None
    if not any(_belongs(data, e) for e in estimates):
        raise DataError(f"{Path(path).name} compares other runs: none of its figures is in these results")
    return made


def _belongs(data: dict[str, object], e: Estimate) -> bool:
    if e.value is None or e.average is not None:
        return False
    rows = _rows(data, "differences" if data["kind"] == "comparison" else "pairs")
    values = [row[side] for row in rows if row["metric"] == e.metric for side in ("a", "b")]
    return any(isinstance(v, float) and math.isclose(v, e.value, rel_tol=1e-9, abs_tol=1e-12) for v in values)


def _rows(data: Mapping[str, object], name: str) -> list[dict[str, object]]:
    return fit(list[dict[str, object]], data[name], (name,))


def _stars(data: dict[str, object]) -> Marks:
    """Put stars at the better of two figures; the smaller the adjusted p, the more stars."""
    at: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, str]]] = {}
    for row in (declare(Difference, row) for row in _rows(data, "differences")):
        better = {"A better": row.a, "B better": row.b}.get(row.verdict)
        star = next((mark for level, mark in LEVELS if (row.p_adjusted or 0.0) < level), "")
        if better is not None and star and row.average is None:
            at.setdefault((row.metric, tuple(sorted(row.slice.items()))), []).append((better, star))
    tested = "" if data["correction"] == "none" else f", {data['correction']}-adjusted within a table"
    legend = f"better of {data['a']} and {data['b']}: * p < 0.05, ** p < 0.01, *** p < 0.001 (paired{tested})"
    return Marks(at, legend)


def _letters(data: dict[str, object]) -> Marks:
    at: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, str]]] = {}
    for row in (declare(Standing, row) for row in _rows(data, "standings")):
        if row.value is not None and row.letters:
            at.setdefault((row.metric, ()), []).append((row.value, row.letters))
    return Marks(
        at, f"runs that share a letter were not shown to differ ({data['correction']}-adjusted over all pairs)"
    )


# ----------------------------------------------------------------------
# Tables for papers and pull requests: LaTeX and Markdown.

SPECIAL: Final = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "×": r"$\times$", "−": "$-$", "–": "--", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "∞": r"$\infty$", "|": r"\textbar{}",
    "≤": r"$\le$", "≥": r"$\ge$", "[": "{[}", "]": "{]}", "*": "{*}", "-": "{-}", "'": "{'}", "`": r"\textasciigrave{}",
}  # fmt: skip
"""How LaTeX prints a character literally: after `\\\\` a bracket or a star would be an option, and two hyphens a dash."""
PLAIN: Final = "\u017f"
"""The last letter (Latin Extended-A) that pdfLaTeX supports without packages."""
TYPED: Final = "‐–—‘’‚“”„†‡•…‰‹›€™"
"""Further characters that it supports."""
OTHERS: Final = (
    "% some names have letters that pdfLaTeX does not know: compile with LuaLaTeX or XeLaTeX and a font that has them"
)


def latex(tables: Sequence[Table], signature: str = "", legend: str = "") -> str:
    """Return tables for a paper that loads booktabs; bold where a saved comparison shows a figure to be better."""
    text = "\n".join(_latex_table(table, legend) for table in tables)
    head = ["% needs \\usepackage{booktabs}"]
    head += [f"% {escape_invisible(line)}" for line in signature.splitlines()]
    told = [OTHERS] if any(c > PLAIN and c not in TYPED for c in text) else []
    return "\n".join([*head, *told, "", text])


def _latex_table(table: Table, legend: str) -> str:
    columns = "l" * table.labels + "r" * (len(table.header) - table.labels)
    kinds = [kind for _, kind, _ in table.heads]
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{tex(table.caption + '.')}}}"]
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [" & ".join(r"$n$" if head == "n" else tex(head) for head in table.header) + r" \\", r"\midrule"]
    for row_kind, _, row in table.body:
        if row_kind == "pooled" and len(table.rows) > 1:
            lines.append(r"\midrule")
        lines.append(" & ".join(map(_tex_cell, row, kinds)) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {tex(legend)}"] if legend else []
    return "\n".join([*lines, r"\end{table}", ""])


def tex(text: str) -> str:
    r"""Escape text so that LaTeX prints it literally.

    >>> print(tex("codec_q 50% <b>"))
    codec\_q 50\% \textless{}b\textgreater{}
    """
    return "".join(SPECIAL.get(c, c) for c in escape_invisible(text))


def _tex_cell(cell: Cell, kind: str) -> str:
    if kind == LABEL:
        return tex(" ".join(filter(None, (cell.text, cell.below))))
    if kind == COUNT:
        return cell.text.replace(",", r"\,")
    value = tex(cell.text)
    if not any(c.isalpha() for c in cell.text):
        value = value.replace(SPECIAL["-"], SPECIAL["−"])  # in a number it is a minus sign
    ends = cell.below.replace("-", SPECIAL["−"]) if cell.below.startswith("[") else tex(cell.below)
    shown = rf"\textbf{{{value}}}" if cell.strong and cell.mark else value
    above = rf"$^{{{_superscript(cell.mark)}}}$" if cell.mark else ""
    beside = rf" {{\scriptsize {ends}}}" if ends else ""
    return f"{shown}{above}{beside}"


def _superscript(mark: str) -> str:
    return mark if mark.startswith("*") else rf"\mathrm{{{mark}}}"


def markdown(tables: Sequence[Table], signature: str = "", legend: str = "") -> str:
    """Return Markdown tables, as GitHub and others show them."""
    found = []
    for table in tables:
        align = [":--" if i < table.labels else "--:" for i in range(len(table.header))]
        lines = [f"**{md(table.title)}**", "", _line(list(map(md, table.header))), _line(align)]
        lines += [_line(list(map(_md_cell, row))) for row in table.rows]
        found.append("\n".join(lines))
    ends = [f"_{md(legend)}_"] if legend else []
    ends += [f"`{escape_invisible(line).replace('`', chr(39))}`" for line in signature.splitlines()]
    return "\n\n".join([*found, *ends]) + "\n"


def md(text: str) -> str:
    r"""Escape text so that Markdown shows it literally.

    >>> print(md("a|b <i> *c*"))
    a\|b &lt;i&gt; \*c\*
    """
    escaped = escape_invisible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", escaped)


def _md_cell(cell: Cell) -> str:
    shown = f"**{md(cell.text)}**" if cell.strong and cell.mark else md(cell.text)
    below = cell.below if cell.below.startswith("[") else md(cell.below)
    return " ".join(filter(None, (shown + cell.mark.replace("*", r"\*"), below)))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


# ----------------------------------------------------------------------
# Results as sheets: CSV and XLSX, one row per estimate; numbers stay numbers, and no text is read as a formula.

WIDEST: Final = 40


def frame_of(results: Results, *, raw: bool = False) -> pl.DataFrame:
    """Return one row per estimate, with runs and slices as columns; settings and the better direction come last.

    Unless `raw`, texts and names of columns that begin like a formula get a `'` in front.
    """
    settings = [", ".join(f"{k}={v}" for k, v in e.settings.items()) for e in results]
    frame = results.to_polars()
    more: list[tuple[str, list[str]]] = [("settings", settings), ("best", [str(e.best) for e in results])]
    if any(e.title for e in results):  # the protocol's name of a metric, such as APCER for fpr
        more.append(("title", [e.shown for e in results]))
    for name, values in more:
        frame = frame.with_columns(pl.Series(f"{name}_" if name in frame.columns else name, values))
    if raw:
        return frame
    heads = pl.DataFrame({"name": frame.columns})
    names = dict(zip(frame.columns, spreadsheet_safe(heads)["name"].to_list(), strict=True))
    return spreadsheet_safe(frame).rename(names)


def frame_of_tables(tables: Sequence[Table], *, raw: bool = False) -> pl.DataFrame:
    """Return tables in long form, one row per cell: the table, the labels of its row, its column, its text, and what is
    below it."""
    rows = []
    for table in tables:
        for cells in table.rows:
            label = " · ".join(filter(None, (c.text for c in cells[: table.labels])))
            pairs = list(zip(table.header, cells, strict=True))[table.labels if table.labels < len(cells) else 1 :]
            rows += [(table.title, label, head, c.text, c.below) for head, c in pairs if c.text or c.below]
    names = ("table", "row", "column", "value", "below")
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    return frame if raw else spreadsheet_safe(frame)


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


def csv_text(results: Results, *, raw: bool = False) -> str:
    """Return results as CSV; full precision, blank where undefined. `raw`: texts exactly as they are."""
    return csv_of(frame_of(results, raw=raw))


def xlsx_bytes(results: Results, *, raw: bool = False) -> bytes:
    """Return results as a workbook: typed cells, frozen header, filters; a second sheet with warnings and signature."""
    about = [("signature", results.signature), ("protocol", results.protocol or "")]
    return _workbook(frame_of(results, raw=raw), [*about, *(("warning", w) for w in results.warnings)])


def _workbook(shown: pl.DataFrame, about: Sequence[tuple[str, str]]) -> bytes:
    try:
        import xlsxwriter
    except ImportError:
        raise EnvironmentFault(
            "XLSX needs the package xlsxwriter: pip install 'hitmiss[xlsx]', or export to csv"
        ) from None
    packed = io.BytesIO()
    settings = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(packed, settings) as book:
        bold = book.add_format({"bold": True})
        sheet = book.add_worksheet("results")
        for j, column in enumerate(shown.get_columns()):
            sheet.write_string(0, j, column.name, bold)
            for i, value in enumerate(column.to_list(), start=1):
                write_cell(sheet, i, j, value)
            longest = max([len(column.name), *(len(str(v)) for v in column.head(200).to_list() if v is not None)])
            sheet.set_column(j, j, min(longest + 2, WIDEST))
        sheet.freeze_panes(1, 1)
        sheet.autofilter(0, 0, shown.height, shown.width - 1)
        second = book.add_worksheet("about")
        for i, (name, text) in enumerate(about):
            second.write_string(i, 0, name, bold)
            second.write_string(i, 1, text[:32_000])
        second.set_column(0, 0, 12)
        second.set_column(1, 1, 2 * WIDEST)
    return packed.getvalue()


def write_cell(sheet: Worksheet, i: int, j: int, value: object) -> None:
    """Write a number as a number, a text as a text, and nothing for None."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        sheet.write_number(i, j, value)
    else:
        sheet.write_string(i, j, str(value)[:32_000])


# ----------------------------------------------------------------------
# Results as the metadata of a model card: the `model-index` block that model hubs read.

TASKS: Final = {
    "asvspoof5": "audio-classification",
    "deepfake-audio": "audio-classification",
    "toxicity": "text-classification",
    "triage": "image-classification",
    "ecg-attacks": "time-series-classification",
}


def model_card(results: Results, model: str, dataset: str | None = None) -> str:
    """Return the YAML block between `---` lines: pooled figures with their intervals, then those of single slices."""
    from ruamel.yaml import YAML

    protocol = results.protocol or "custom"
    data = signature_part(results.signature, "data") or "unknown"
    shown = [e for e in results if e.average in (None, "macro") and e.value is not None]
    groups: dict[tuple[tuple[str, str], ...], list[Estimate]] = {}
    for e in shown:
        groups.setdefault((*e.run.items(), *e.slice.items()), []).append(e)
    task = {"type": TASKS.get(protocol, "other"), "name": protocol}
    entries = []
    for cell, own in groups.items():
        where = ", ".join(f"{k}={v}" for k, v in cell)
        named: dict[str, object] = {"name": dataset or protocol, "type": protocol, "revision": data}
        if where:
            named["split"] = where
        entries.append({"task": task, "dataset": named, "metrics": [_metric(e) for e in own]})
    block = {"model-index": [{"name": model, "results": entries}]}
    text = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 10_000
    yaml.representer.ignore_aliases = lambda _: True
    yaml.dump(block, text)
    comment = "".join(f"# {line}\n" for line in results.signature.splitlines())
    return f"---\n{text.getvalue()}{comment}---\n"


def _metric(e: Estimate) -> dict[str, object]:
    made: dict[str, object] = {
        "type": e.metric.split("(")[0],
        "name": e.metric if e.average is None else f"{e.metric} ({e.average})",
    }
    made["value"] = float(e.value) if e.value is not None else None
    if e.low is not None and e.high is not None:
        made["interval"] = [float(e.low), float(e.high)]
    made["n"] = e.n
    return made


# ----------------------------------------------------------------------
# Export results as LaTeX, Markdown, CSV, XLSX, JSON or a model card.

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
    look = Look(intervals=how.intervals, percent=how.percent, mark=marks.of)
    found = tables(results, "", look)
    asides = [s.asides for s in dict.fromkeys(lane.source for lane in evaluation.lanes) if s.asides is not None]
    found += [replace(t, name=t.title) for own in asides for t in beside_tables(own)]
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
