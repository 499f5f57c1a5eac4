"""Results and tables as sheets: CSV and XLSX; numbers stay numbers, and no text is read as a formula."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import polars as pl

from hitmiss.core.packages import need_package
from hitmiss.core.results import Results
from hitmiss.core.verdict import Verdict
from hitmiss.findings.render import TERMINAL
from hitmiss.io.write import csv_of, spreadsheet_safe
from hitmiss.reports.table import Table
from hitmiss.reports.verdict_lines import telling

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet


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


def csv_text(results: Results, *, raw: bool = False) -> str:
    """Return results as CSV; full precision, blank where undefined. `raw`: texts exactly as they are."""
    return csv_of(frame_of(results, raw=raw))


def xlsx_bytes(results: Results, *, raw: bool = False, verdict: Verdict | None = None) -> bytes:
    """Return results as a workbook: typed cells, frozen header, filters; a second sheet with verdict, warnings, signature."""
    facts = [*about(verdict), ("signature", results.signature), ("protocol", results.protocol or "")]
    return workbook(frame_of(results, raw=raw), [*facts, *(("warning", w) for w in results.warnings)])


def about(verdict: Verdict | None) -> list[tuple[str, str]]:
    """Return a verdict as rows of the second sheet: the headline, then what speaks for it and against it."""
    if verdict is None:
        return []
    lines = [(title, text) for title, text in telling(verdict, TERMINAL)]
    return [("verdict", verdict.headline), ("status", verdict.status), *lines]


def workbook(shown: pl.DataFrame, facts: Sequence[tuple[str, str]]) -> bytes:
    """Return a workbook of one table, with facts about it on a second sheet."""
    xlsxwriter = need_package("xlsxwriter", "XLSX", "hitmiss[xlsx]")
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
        for i, (name, text) in enumerate(facts):
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
