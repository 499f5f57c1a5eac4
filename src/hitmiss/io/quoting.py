"""Separated text whose fields may stand in double quotes, over several lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

import numpy as np
import polars as pl

from hitmiss.io.findings import Ledger, Place, Stop
from hitmiss.io.plain import read_plain
from hitmiss.io.shapes import Shape, Table, refuse_ragged

LONGEST_FIELD: Final = 2**27
CHUNK: Final = 50_000


def read_quoted(shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Ledger) -> Table:
    """Read by the rules of CSV. Outside CSV, where they fail and quotes as ordinary characters do not: so, with a note."""
    trial = Ledger()
    plain = _try_plain(shape, data, has_header, picks) if shape.separator != "," else None
    try:
        table, spans_lines = _read_records(shape, data, has_header, picks, trial)
    except Stop:
        if plain is None:
            ledger.findings += trial.findings
            raise
        ledger.notes.append(f"{shape.name}: its quote characters enclose no fields and were read as text")
        return plain
    # Text with stray quotes can also pass for CSV, by swallowing the lines between two of them.
    if spans_lines and plain is not None:
        what = "the quote characters can be read in two ways: round fields of several lines, or as ordinary characters"
        raise ledger.stop("ambiguous-quotes", what, "write the file as CSV with commas", [Place(shape.name)])
    return table


def _read_records(
    shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Ledger
) -> tuple[Table, bool]:
    """The table, and whether any record goes over several lines."""
    reader = csv.reader(io.StringIO(data.decode("utf-8"), newline=""), delimiter=shape.separator, strict=True)
    records = _numbered(reader, shape, ledger)
    lines: list[int] = []
    frames = [pl.DataFrame(schema=dict.fromkeys(picks, pl.String))]
    wrong: list[tuple[int, int]] = []
    spans_lines = False
    with _long_fields():
        for _ in islice(records, int(has_header)):
            pass
        while chunk := list(islice(records, CHUNK)):
            wrong += [(first, len(row)) for first, _, row in chunk if len(row) != shape.width]
            spans_lines |= any(last > first for first, last, _ in chunk)
            if not wrong:
                frames.append(pl.DataFrame({ours: [row[at] for _, _, row in chunk] for ours, at in picks.items()}))
                lines += [first for first, _, _ in chunk]
    refuse_ragged(shape, wrong, ledger)
    return Table(shape.name, pl.concat(frames), lines=np.array(lines, dtype=np.int64)), spans_lines


def _numbered(reader: Any, shape: Shape, ledger: Ledger) -> Iterator[tuple[int, int, list[str]]]:
    """Records with the lines that each begins and ends on; blank lines are none."""
    first = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            what = f"the quotes do not follow the rules of CSV ({error})"
            fix = "double the quotes inside quoted fields"
            raise ledger.stop("bad-quotes", what, fix, [Place(shape.name, first)]) from None
        if row:
            yield first, reader.line_num, row
        first = reader.line_num + 1


def _try_plain(shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int]) -> Table | None:
    text = data.replace(b"\r\n", b"\n")
    try:
        return read_plain(shape, text, has_header, picks, Ledger()) if b"\r" not in text else None
    except Stop:
        return None


@contextmanager
def _long_fields() -> Iterator[None]:
    before = csv.field_size_limit(LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)
