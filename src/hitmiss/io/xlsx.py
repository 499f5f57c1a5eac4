"""Workbooks (.xlsx) as tables of text: the first sheet that has rows, every cell as the text that the file holds."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from xml.etree import ElementTree

import numpy as np
import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.finding import Place, Remark
from hitmiss.core.text import quoted
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.frames import head_of
from hitmiss.io.source import SourceBytes, SourceHead

WORKBOOK: Final = "xl/workbook.xml"
STRINGS: Final = "xl/sharedStrings.xml"
LINKS: Final = "xl/_rels/workbook.xml.rels"
SHEET: Final = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
LINK: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
CELL: Final = re.compile(r"([A-Z]+)(\d+)")


def is_workbook(data: bytes) -> bool:
    """Return whether the bytes of a file are a workbook."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return WORKBOOK in archive.namelist()
    except zipfile.BadZipFile:
        return False


def look_at_workbook(content: SourceBytes, ledger: Diagnostics) -> SourceHead:
    """Read the first sheet with rows; its first row names the columns. Other sheets with rows are named in a note."""
    try:
        with zipfile.ZipFile(io.BytesIO(content.data)) as archive:
            _refuse_bomb(archive, content, ledger)
            strings = _strings(archive)
            sheets = [(name, _rows(archive, path, strings)) for name, path in _sheets(archive)]
    except (
        zipfile.BadZipFile,
        ElementTree.ParseError,
        KeyError,
        ValueError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ledger.stop("unreadable-file/broken", [Place(content.name)], what="workbook", reason=reason) from None
    filled = [(name, rows) for name, rows in sheets if len(rows) > 1]
    if not filled:
        raise ledger.stop("empty-file/workbook", [Place(content.name)])
    (name, rows), *others = filled
    if others:
        left = ", ".join(quoted(other) for other, _ in others)
        ledger.notes.append(Remark.of("other-sheets", file=content.name, sheet=quoted(name), left=left))
    return _head(content, rows, ledger)


def _head(content: SourceBytes, rows: list[tuple[int, dict[int, str]]], ledger: Diagnostics) -> SourceHead:
    (_, titles), *body = rows
    width = max(titles) + 1
    names = [titles.get(at, "") for at in range(width)]
    unnamed = [at for at, title in enumerate(names) if not title.strip()]
    twice = [name for name in names if name.strip() and names.count(name) > 1]
    if twice:
        raise ledger.stop("ambiguous-column/twins", [Place(content.name, 1, twice[0])], name=quoted(twice[0]))
    columns = {names[at]: [cells.get(at, "") for _, cells in body] for at in range(width) if at not in unnamed}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    lines = np.array([line for line, _ in body], dtype=np.int64)
    read = replace(content, data=b"")
    return SourceHead(content.name, head_of(frame), tuple(frame.columns), content=read, frame=frame, lines=lines)


def _refuse_bomb(archive: zipfile.ZipFile, content: SourceBytes, ledger: Diagnostics) -> None:
    limit = artifacts.unfolded(len(content.data))
    if sum(one.file_size for one in archive.infolist()) > limit:
        raise ledger.stop("oversized-archive/workbook", [Place(content.name)], limit=limit)


def _sheets(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Yield the name of each sheet, and where it is in the archive."""
    targets = {link.get("Id"): link.get("Target", "") for link in ElementTree.fromstring(archive.read(LINKS))}
    for sheet in ElementTree.fromstring(archive.read(WORKBOOK)).iter(f"{SHEET}sheet"):
        target = targets[sheet.get(LINK)]
        yield sheet.get("name", ""), target.lstrip("/") if target.startswith("/") else f"xl/{target}"


def _strings(archive: zipfile.ZipFile) -> list[str]:
    if STRINGS not in archive.namelist():
        return []
    return [_text(entry) for entry in ElementTree.fromstring(archive.read(STRINGS)).iter(f"{SHEET}si")]


def _text(entry: ElementTree.Element) -> str:
    """Return the text of a cell: its runs joined, without the reading aids that stand beside it."""
    aids = {part for aid in entry.iter(f"{SHEET}rPh") for part in aid.iter(f"{SHEET}t")}
    return "".join(part.text or "" for part in entry.iter(f"{SHEET}t") if part not in aids)


def _rows(archive: zipfile.ZipFile, path: str, strings: list[str]) -> list[tuple[int, dict[int, str]]]:
    """Return the rows that hold something: the number of each, and its cells by column."""
    found = []
    for n, row in enumerate(ElementTree.fromstring(archive.read(path)).iter(f"{SHEET}row"), 1):
        cells: dict[int, str] = {}
        for cell in row.iter(f"{SHEET}c"):
            place = CELL.fullmatch(cell.get("r", ""))
            at = _column(place[1]) if place else len(cells)
            text = _value(cell, strings)
            if text:
                cells[at] = text
        if cells:
            found.append((int(row.get("r", n)), cells))
    return found


def _column(letters: str) -> int:
    """Return the position of a column, from 0.

    >>> _column("A"), _column("Z"), _column("AB")
    (0, 25, 27)
    """
    at = 0
    for letter in letters:
        at = 26 * at + ord(letter) - ord("A") + 1
    return at - 1


def _value(cell: ElementTree.Element, strings: list[str]) -> str:
    kind, inner = cell.get("t", "n"), cell.find(f"{SHEET}v")
    if kind == "inlineStr":
        return _text(cell)
    text = (inner.text or "") if inner is not None else ""
    if kind == "s" and text:
        return strings[int(text)]
    if kind == "b":
        return "true" if text == "1" else "false"
    return "" if kind == "e" else text
