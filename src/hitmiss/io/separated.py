"""Separated text to columns of text: plain, the form of almost every score file, on a fast path; and with quotes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from hitmiss.core.finding import Place, Remark

if TYPE_CHECKING:
    from _csv import Reader

from itertools import pairwise
from typing import TYPE_CHECKING

from hitmiss.io.diagnostics import Diagnostics, Stop
from hitmiss.io.frames import SAMPLE_ROWS, may_be_inexact
from hitmiss.io.source import Kinds, Row, SourceHead, Table, refuse_ragged

COUNTED_BYTES: Final = 2**20


def read_plain(
    shape: SourceHead,
    data: bytes,
    has_header: bool,
    picks: Mapping[str, int],
    ledger: Diagnostics,
    kinds: Kinds | None = None,
) -> Table:
    """Read the columns `picks` (our name -> position) of every row, as text or as the types in `kinds`.

    The types are only a request: if any cell does not have its type, all columns are returned as text.
    """
    if data.endswith(b"\n\n"):
        data = data.rstrip(b"\n") + b"\n"
    frame = read_even(shape, data, has_header, picks, kinds) if kinds else None
    frame = read_even(shape, data, has_header, picks) if frame is None else frame
    if frame is None:
        return _read_uneven(shape, data, has_header, picks, ledger)
    return Table(shape.name, frame, 1 + has_header)


def read_even(
    shape: SourceHead, data: bytes, has_header: bool, picks: Mapping[str, int], kinds: Kinds | None = None
) -> pl.DataFrame | None:
    """Read with the fast path; return None if rows differ in length or a cell does not have its type.

    An empty cell of a typed column is null; numbers are exact, as Python's `float` reads them.

    Polars silently pads short rows and, if not all columns are requested, cuts long ones. A short row shows as an empty
    last field, so the last column is always read: if it has no empty field, no row is short, and the number of
    separators shows that no row is long. If the last column has empty fields, whole rows are read: the parser then
    refuses long rows, and the number of separators shows that no row is short.
    """
    last = shape.width - 1
    wanted = {picks[ours]: kind for ours, kind in (kinds or {}).items() if ours in picks}
    positions, everything = sorted({*picks.values(), last}), list(range(shape.width))
    schema = {str(at): wanted.get(at, pl.String) for at in everything} if wanted else None
    try:
        frame = parse_columns(data, shape.separator, has_header, positions, schema)
        end = frame[str(last)]
        may_be_short = bool(end.null_count() or (end.dtype == pl.String and (end == "").any()))
        if may_be_short and wanted:
            return None
        # As text it can be told whether a number was written that no float holds, such as 1e400 or 2^53 + 1.
        if any(column.dtype.is_float() and may_be_inexact(column) for column in frame.iter_columns()):
            return None
        if any(column.dtype == pl.Categorical and column.null_count() for column in frame.iter_columns()):
            return None  # an empty word is a word of its own as text, and none as a code
        if may_be_short:
            # Without a schema the first row would say how many columns there are, however long it is; and of a last
            # line without an end the parser does not refuse an empty field too many.
            whole = data if data.endswith(b"\n") else data + b"\n"
            frame = parse_columns(
                whole, shape.separator, has_header, everything, {str(at): pl.String for at in everything}
            )
    except pl.exceptions.PolarsError:
        return None
    # With a schema, and if every column is read, the parser has already refused long rows.
    is_even = wanted and len(positions) == shape.width
    if not is_even and _count(data, shape.separator) != (frame.height + has_header) * last:
        return None
    # Merge the text into one chunk: gathering rows from the parser's many chunks takes seven times as long.
    return _picked(frame, picks) if wanted else _picked(frame, picks).rechunk()


def _count(data: bytes, separator: str) -> int:
    """Count the separator in the text, like `bytes.count` but in a fifth of the time."""
    if len(separator.encode()) != 1:
        return data.count(separator.encode())
    view, sought = np.frombuffer(data, dtype=np.uint8), ord(separator)
    return sum(
        int(np.count_nonzero(view[at : at + COUNTED_BYTES] == sought)) for at in range(0, len(view), COUNTED_BYTES)
    )


def parse_columns(
    data: bytes, separator: str, has_header: bool, positions: list[int], schema: Kinds | None = None
) -> pl.DataFrame:
    """Parse the columns of even text, named by position; all stay text unless a schema for all columns is given."""
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


def _read_uneven(
    shape: SourceHead, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Diagnostics
) -> Table:
    """Read with the careful path: skip blank lines, treat runs of spaces as one, find rows of a different length."""
    separator = shape.separator.encode()
    rows = [(n, line) for n, line in enumerate(data.split(b"\n"), 1) if line.strip(b" ")]
    if separator == b" ":
        rows = [(n, b" ".join(filter(None, line.split(b" ")))) for n, line in rows]
    widths = [(n, line.count(separator) + 1) for n, line in rows]
    refuse_ragged(shape, [(n, width) for n, width in widths if width != shape.width], ledger)
    body = rows[has_header:]
    if not body:
        return Table(shape.name, pl.DataFrame(schema=dict.fromkeys(picks, pl.String)))
    frame = parse_columns(b"\n".join(line for _, line in body), shape.separator, False, list(range(shape.width)))
    return Table(shape.name, _picked(frame, picks).rechunk(), lines=np.array([n for n, _ in body], dtype=np.int64))


LONGEST_FIELD: Final = 2**27
RECORDS_AT_ONCE: Final = 50_000


def read_quoted(
    shape: SourceHead, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Diagnostics
) -> Table:
    """Read by the rules of CSV.

    If a file that is not CSV fails these rules but can be read with quotes as ordinary characters, read it that way and
    add a note.
    """
    trial = Diagnostics()
    plain = _try_plain(shape, data, has_header, picks) if shape.separator != "," else None
    try:
        table, spans_lines = _read_records(shape, data, has_header, picks, trial)
    except Stop:
        if plain is None:
            ledger.findings += trial.findings
            raise
        ledger.notes.append(Remark.of("quotes-as-text", file=shape.name))
        return plain
    # Text with stray quotes can also parse as CSV, by swallowing the lines between two quotes.
    if spans_lines and plain is not None:
        raise ledger.stop("ambiguous-quotes", [Place(shape.name)])
    return table


def _read_records(
    shape: SourceHead, data: bytes, has_header: bool, picks: Mapping[str, int], ledger: Diagnostics
) -> tuple[Table, bool]:
    """Return the table, and whether any record spans several lines."""
    reader = csv.reader(io.StringIO(data.decode("utf-8"), newline=""), delimiter=shape.separator, strict=True)
    records = _numbered(reader, shape, ledger)
    lines: list[int] = []
    frames = [pl.DataFrame(schema=dict.fromkeys(picks, pl.String))]
    wrong: list[tuple[int, int]] = []
    spans_lines = False
    with _long_fields():
        for _ in islice(records, int(has_header)):
            pass
        while chunk := list(islice(records, RECORDS_AT_ONCE)):
            wrong += [(first, len(row)) for first, _, row in chunk if len(row) != shape.width]
            spans_lines |= any(last > first for first, last, _ in chunk)
            if not wrong:
                frames.append(pl.DataFrame({ours: [row[at] for _, _, row in chunk] for ours, at in picks.items()}))
                lines += [first for first, _, _ in chunk]
    refuse_ragged(shape, wrong, ledger)
    return Table(shape.name, pl.concat(frames), lines=np.array(lines, dtype=np.int64)), spans_lines


def _numbered(reader: Reader, shape: SourceHead, ledger: Diagnostics) -> Iterator[tuple[int, int, list[str]]]:
    """Yield records with the lines on which each begins and ends; blank lines are skipped."""
    first = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ledger.stop("bad-quotes", [Place(shape.name, first)], reason=str(error)) from None
        if row:
            yield first, reader.line_num, row
        first = reader.line_num + 1


def _try_plain(shape: SourceHead, data: bytes, has_header: bool, picks: Mapping[str, int]) -> Table | None:
    text = data.replace(b"\r\n", b"\n")
    try:
        return read_plain(shape, text, has_header, picks, Diagnostics()) if b"\r" not in text else None
    except Stop:
        return None


@contextmanager
def _long_fields() -> Iterator[None]:
    before = csv.field_size_limit(LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


SEPARATORS: Final = ("\t", ";", ",", "|", " ")
SAMPLE_BYTES: Final = 2**17


def guess_separator(lines: Sequence[str]) -> str:
    """Return the separator that splits all lines into equally many fields; tab before `;` before `,` before space.

    >>> guess_separator(["a b 0.5", "c d 0.6"]), guess_separator(["filename,score", "a b,1"])
    (' ', ',')
    >>> guess_separator(["E_1 0,5", "E_2 0,25"])  # a decimal comma separates nothing
    ' '
    """
    if any('"' in line for line in lines):
        lines = ["".join(lines[0].split('"')[::2])]  # later lines may begin inside a quoted field
    fields = {sep: _count_fields(lines[0], sep) for sep in SEPARATORS}
    steady = [s for s, n in fields.items() if n > 1 and all(_count_fields(line, s) == n for line in lines)]
    if "," in steady and " " in steady and _are_decimal_commas(lines):
        return " "
    return steady[0] if steady else max(SEPARATORS, key=fields.__getitem__)


def _count_fields(line: str, separator: str) -> int:
    return len(_cut(line)) if separator == " " else line.count(separator) + 1


def _are_decimal_commas(lines: Sequence[str]) -> bool:
    parts = [line.split(",") for line in lines]
    return all(a[-1:].isdigit() and b[:1].isdigit() for cut in parts for a, b in pairwise(cut))


def _cut(line: str) -> list[str]:
    return [cell for cell in line.split(" ") if cell]


def sample_lines(data: bytes) -> list[str]:
    size = SAMPLE_BYTES
    while data[:size].count(b"\n") < 2 and size < len(data):  # names of many columns are longer
        size *= 4
    head = data[:size].decode("utf-8", "ignore")
    lines = head.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    whole = lines[:-1] if len(data) > size and len(lines) > 1 else lines
    return list(islice((line for line in whole if line.strip(" ")), SAMPLE_ROWS))


def sample_rows(lines: Sequence[str], separator: str) -> tuple[Row, ...]:
    if any('"' in line for line in lines):
        return tuple(tuple(row) for row in csv.reader(lines, delimiter=separator) if row)
    return tuple(tuple(_cut(line) if separator == " " else line.split(separator)) for line in lines)
