"""Separated text whose fields may stand in double quotes, over several lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Final

import numpy as np
import polars as pl

from hitmiss.io.findings import Ledger, Place, Stop
from hitmiss.io.plain import read_plain
from hitmiss.io.shapes import Shape, Table, refuse_ragged

LONGEST_FIELD: Final = 2**27
CHUNK: Final = 50_000


def read_quoted(shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Ledger) -> Table:
    """Read by the rules of CSV; where they do not hold and quotes as ordinary characters do, by those, with a note."""
    trial = Ledger()
    try:
        table = _read_records(shape, data, has_header, picks, trial)
    except Stop:
        plain = _try_plain(shape, data, has_header, picks)
        if plain is None:
            ledger.findings += trial.findings
            raise
        ledger.notes.append(f"{shape.name}: its quote characters enclose no fields and were read as text")
        return plain
    # Text with stray quotes can also pass for CSV, by swallowing the lines between two of them.
    if shape.separator != "," and _spans_lines(table) and _try_plain(shape, data, has_header, picks) is not None:
        what = "the quote characters can be read in two ways: round fields of several lines, or as ordinary characters"
        raise ledger.stop("ambiguous-quotes", what, "write the file as CSV with commas", [Place(shape.name)])
    return table


def _read_records(shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Ledger) -> Table:
    reader = csv.reader(io.StringIO(data.decode("utf-8"), newline=""), delimiter=shape.separator, strict=True)
    records = _numbered(reader, shape, ledger)
    if has_header:
        next(records, None)
    lines: list[int] = []
    frames = [pl.DataFrame(schema=dict.fromkeys(picks, pl.String))]
    wrong: list[tuple[int, int]] = []
    with _long_fields():
        while chunk := list(islice(records, CHUNK)):
            wrong += [(line, len(row)) for line, row in chunk if len(row) != shape.width]
            if not wrong:
                frames.append(pl.DataFrame({ours: [row[at] for _, row in chunk] for ours, at in picks.items()}))
                lines += [line for line, _ in chunk]
    refuse_ragged(shape, wrong, ledger)
    return Table(shape.name, pl.concat(frames), lines=np.array(lines, dtype=np.int64))


def _numbered(reader: Iterator[list[str]], shape: Shape, ledger: Ledger) -> Iterator[tuple[int, list[str]]]:
    """Records with the line that each begins on; blank lines are none."""
    line = 0
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            what = f"the quotes do not follow the rules of CSV ({error})"
            raise ledger.stop(
                "bad-quotes", what, "double the quotes inside quoted fields", [Place(shape.name, line + 1)]
            ) from None
        if row:
            yield line + 1, row
        line = reader.line_num  # type: ignore[attr-defined]  # csv readers count the lines they have used


def _try_plain(shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int]) -> Table | None:
    text = data.replace(b"\r\n", b"\n")
    try:
        return read_plain(shape, text, has_header, picks, Ledger()) if b"\r" not in text else None
    except Stop:
        return None


def _spans_lines(table: Table) -> bool:
    lines = table.lines
    return lines is not None and len(lines) > 0 and bool((np.diff(lines) > 1).any())


@contextmanager
def _long_fields() -> Iterator[None]:
    before = csv.field_size_limit(LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)
