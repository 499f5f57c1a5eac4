"""Separated text without quotes: the way of almost every score file, so the quick one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl

from hitmiss.io.findings import Ledger
from hitmiss.io.shapes import Shape, Table, refuse_ragged

PIECE: Final = 2**20


def read_plain(shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Ledger) -> Table:
    """The columns `picks` (our name -> position) as text, every row."""
    if data.endswith(b"\n\n"):
        data = data.rstrip(b"\n") + b"\n"
    frame = _read_even(shape, data, has_header, picks)
    if frame is None or _count(data, shape.separator) != (frame.height + has_header) * (shape.width - 1):
        return _read_uneven(shape, data, has_header, picks, ledger)
    return Table(shape.name, frame, 1 + has_header)


def read_typed(shape: Shape, data: bytes, picks: Mapping[str, int], kinds: Mapping[int, Any]) -> pl.DataFrame | None:
    """The columns `picks` of text with a header, those at the positions `kinds` as what these say; None where it cannot be.

    An empty cell of a typed column is null; numbers are exact, as Python's `float` reads them. Nothing is found here: the
    caller reads by `read_plain` where he gets None.
    """
    last = shape.width - 1
    positions = sorted({*picks.values(), last})
    try:
        schema = {str(at): kinds.get(at, pl.String) for at in range(shape.width)}
        frame = parse(data, shape.separator, True, positions, schema)
    except pl.exceptions.PolarsError:
        return None
    if len(positions) < shape.width and _count(data, shape.separator) != (frame.height + 1) * last:
        return None  # where all columns are read, the parser has refused long rows itself (see `_read_even`)
    end = frame[str(last)]  # null or empty at the end of a row: the row may be short (see `_read_even`)
    if end.null_count() or (end.dtype == pl.String and (end == "").any()):
        return None
    return _picked(frame, picks)


def _count(data: bytes, separator: str) -> int:
    """How often the separator stands in the text: `bytes.count`, at a fifth of the time."""
    if len(separator.encode()) != 1:
        return data.count(separator.encode())
    view, sought = np.frombuffer(data, dtype=np.uint8), ord(separator)
    return sum(int(np.count_nonzero(view[at : at + PIECE] == sought)) for at in range(0, len(view), PIECE))


def _read_even(shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int]) -> pl.DataFrame | None:
    """The quick way, or None where some row is longer than the others.

    Polars fills short rows and, where not all columns are asked for, cuts long ones, without a word. A short row
    shows as an empty last field, so that column is always read: where it has no empty field no row is short, and the
    caller's count of the separators shows that none is long. Where it has, whole rows are read, which refuses long
    ones, and the count shows that none is short.
    """
    last = shape.width - 1
    few, all_ = sorted({*picks.values(), last}), list(range(shape.width))
    try:
        frame = parse(data, shape.separator, has_header, few)
        if len(few) < shape.width and (frame[str(last)] == "").any():
            frame = parse(data, shape.separator, has_header, all_)
    except pl.exceptions.PolarsError:
        return None
    # One chunk: gathering rows from the many that the parser leaves takes seven times as long.
    return _picked(frame, picks).rechunk()


def parse(
    data: bytes, separator: str, has_header: bool, positions: list[int], schema: Mapping[str, Any] | None = None
) -> pl.DataFrame:
    """Columns of even text, named by their positions; everything stays text unless a schema of all columns is given."""
    frame = pl.read_csv(
        data,
        separator=separator,
        has_header=False,
        skip_lines=int(has_header),
        columns=positions,
        quote_char=None,
        infer_schema=False,
        schema=schema,
        empty_string_is_null=False,
        raise_if_empty=False,
    )
    frame.columns = [str(at) for at in positions]
    return frame


def _picked(frame: pl.DataFrame, picks: Mapping[str, int]) -> pl.DataFrame:
    return pl.DataFrame([frame.get_column(str(at)).alias(ours) for ours, at in picks.items()])


def _read_uneven(shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Ledger) -> Table:
    """The careful way: blank lines left out, runs of spaces taken as one, rows of another length found."""
    separator = shape.separator.encode()
    rows = [(n, line) for n, line in enumerate(data.split(b"\n"), 1) if line.strip(b" ")]
    if separator == b" ":
        rows = [(n, b" ".join(filter(None, line.split(b" ")))) for n, line in rows]
    widths = [(n, line.count(separator) + 1) for n, line in rows]
    refuse_ragged(shape, [(n, width) for n, width in widths if width != shape.width], ledger)
    body = rows[has_header:]
    if not body:
        return Table(shape.name, pl.DataFrame(schema=dict.fromkeys(picks, pl.String)))
    frame = parse(b"\n".join(line for _, line in body), shape.separator, False, list(range(shape.width)))
    return Table(shape.name, _picked(frame, picks).rechunk(), lines=np.array([n for n, _ in body], dtype=np.int64))
