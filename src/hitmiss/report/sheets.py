"""Results as sheets: CSV and XLSX, one row an estimate, numbers as numbers and texts that no spreadsheet computes."""

from __future__ import annotations

import io
import math
from typing import Any, Final

import polars as pl

from hitmiss.core.errors import EnvironmentFault
from hitmiss.core.results import Results
from hitmiss.io.write import spreadsheet_safe

WIDEST: Final = 40


def frame_of(results: Results, *, raw: bool = False) -> pl.DataFrame:
    """One row an estimate, runs and slices as columns; the settings and what is better at the end.

    Unless `raw`, texts and names of columns that begin like a formula get a `'` in front.
    """
    settings = [", ".join(f"{k}={v}" for k, v in e.settings.items()) for e in results]
    frame = results.to_polars()
    more = [("settings", settings), ("best", [e.best for e in results])]
    if any(e.title for e in results):  # what the protocol calls a metric, as APCER for fpr
        more.append(("title", [e.shown for e in results]))
    for name, values in more:
        frame = frame.with_columns(pl.Series(f"{name}_" if name in frame.columns else name, values))
    if raw:
        return frame
    heads = pl.DataFrame({"name": frame.columns})
    names = dict(zip(frame.columns, spreadsheet_safe(heads)["name"].to_list(), strict=True))
    return spreadsheet_safe(frame).rename(names)


def csv_text(results: Results, *, raw: bool = False) -> str:
    """Results as CSV; full precision, blank where undefined. `raw`: texts exactly as they are."""
    exact = [
        pl.Series(c.name, ["" if v is None else repr(v) for v in c.to_list()], dtype=pl.String)
        if c.dtype.is_float()
        else c
        for c in frame_of(results, raw=raw).get_columns()
    ]
    return pl.DataFrame(exact).write_csv(line_terminator="\n")


def xlsx_bytes(results: Results, *, raw: bool = False) -> bytes:
    """Results as a workbook: typed cells, a frozen header, filters; a second sheet with warnings and the signature."""
    try:
        import xlsxwriter
    except ImportError:
        raise EnvironmentFault(
            "XLSX needs the package xlsxwriter: pip install 'hitmiss[xlsx]', or export to csv"
        ) from None
    packed = io.BytesIO()
    shown = frame_of(results, raw=raw)
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
        _about(book.add_worksheet("about"), results, bold)
    return packed.getvalue()


def write_cell(sheet: Any, i: int, j: int, value: Any) -> None:
    """A number as a number, a text as a text, nothing as nothing."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        sheet.write_number(i, j, value)
    else:
        sheet.write_string(i, j, str(value)[:32_000])


def _about(sheet: Any, results: Results, bold: Any) -> None:
    rows = [("signature", results.signature), ("protocol", results.protocol or "")]
    rows += [("warning", w) for w in results.warnings]
    for i, (name, text) in enumerate(rows):
        sheet.write_string(i, 0, name, bold)
        sheet.write_string(i, 1, text[:32_000])
    sheet.set_column(0, 0, 12)
    sheet.set_column(1, 1, 2 * WIDEST)
