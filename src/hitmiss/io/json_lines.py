"""JSON files as tables: one object per line, an array of objects, an object that holds one, or one of id -> score."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core.finding import Place, Remark
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.frames import as_text_or_numbers, head_of
from hitmiss.io.layouts import is_number
from hitmiss.io.source import SourceBytes, SourceHead, Table

HOLDERS: Final = ("results", "data", "rows", "items", "predictions", "samples", "records", "examples", "answers")
"""Names of a list of rows inside one object."""


def look_at_json(content: SourceBytes, ledger: Diagnostics, before: int = 0) -> SourceHead:
    """Take a first look at a JSON file: one object per line, an array of objects, or one object of id -> score.

    Numbers are kept as their original text; an absent key becomes empty text. `before`: lines before this part.
    """
    rows = _array(content, ledger) if content.data.lstrip()[:1] == b"[" else _lines(content, ledger, before)
    names = tuple(dict.fromkeys(name for _, row in rows for name in row))
    frame = pl.DataFrame(
        {name: [row.get(name, "") for _, row in rows] for name in names}, schema=dict.fromkeys(names, pl.String)
    )
    short = sum(len(row) != len(names) for _, row in rows)
    if short:
        ledger.notes.append(
            Remark.of("lines-lack-names", file=content.name, n=short, total=len(rows), names=tuple(names))
        )
    return SourceHead(
        content.name,
        head_of(frame),
        names,
        content=content,
        frame=frame,
        lines=np.array([n for n, _ in rows], dtype=np.int64),
    )


Rows = list[tuple[int, dict[str, str]]]


def _lines(content: SourceBytes, ledger: Diagnostics, before: int) -> Rows:
    rows: Rows = []
    wrong: list[Place] = []
    for n, line in enumerate(content.data.split(b"\n"), before + 1):
        if line.strip():
            try:
                rows.append((n, _json_row(strict_json(line))))
            except (ValueError, RecursionError) as error:
                wrong.append(Place(content.name, n, _why(line, error)))
    if not before and ((len(rows) + len(wrong) > 1 and wrong) or (len(rows) == 1 and not wrong)):
        single = _one_object(content)
        if single is not None:
            return single
    if wrong and not before and _are_results(content.data):
        raise ledger.stop("results-file", [Place(content.name, 1)])
    if wrong:
        raise ledger.stop("ragged-row/json", wrong, why=wrong[0].value)
    return rows


def _are_results(data: bytes) -> bool:
    """Return whether a file is one that hitmiss wrote with its numbers."""
    try:
        whole = strict_json(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(whole, dict) and {"schema", "signature"} <= whole.keys()


def _one_object(content: SourceBytes) -> Rows | None:
    """Return the rows of a file that is one object: of id -> score, or with one list of objects; None for any other."""
    try:
        whole = strict_json(content.data)
    except (ValueError, RecursionError):
        return None
    inside = [v for k, v in whole.items() if k.lower() in HOLDERS and _are_rows(v)] if isinstance(whole, dict) else []
    if len(inside) == 1:
        return [(n, _json_row(row)) for n, row in enumerate(inside[0], 1)]
    if not isinstance(whole, dict) or len(whole) < 2 or {name.lower() for name in whole} & {"score", "label", "item"}:
        return None
    if not all(isinstance(value, str) and is_number(value) for value in whole.values()):
        return None
    return [(1, {"item": name, "score": value}) for name, value in whole.items()]


def _are_rows(value: object) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(isinstance(row, dict) for row in value)


def _array(content: SourceBytes, ledger: Diagnostics) -> Rows:
    """Return the objects of an array, each with the line on which it begins."""
    try:
        found = strict_json(content.data)
    except (ValueError, RecursionError) as error:
        row = getattr(error, "lineno", 1)
        line = content.data.split(b"\n")[row - 1]
        raise ledger.stop("ragged-row/array", [Place(content.name, row)], why=_why(line, error)) from None
    assert isinstance(found, list)  # the text begins with [
    wrong = [Place(content.name, 1, str(value)[:40]) for value in found if not isinstance(value, dict)]
    if wrong or not found:
        raise ledger.stop("ragged-row/values" if wrong else "empty-file/array", wrong or [Place(content.name, 1)])
    return [(line, _json_row(value)) for line, value in zip(_starts(content.data, len(found)), found, strict=True)]


def _starts(data: bytes, n: int) -> list[int]:
    """Return the lines on which the objects of an array begin."""
    text, decoder, lines = data.decode(), json.JSONDecoder(), []
    at, line, seen = text.index("[") + 1, 1, 0
    for _ in range(n):
        at = text.index("{", at)
        line += text.count("\n", seen, at)
        seen = at
        lines.append(line)
        at = decoder.raw_decode(text, at)[1]
    return lines


def strict_json(text: bytes | str) -> object:
    """Parse JSON, keeping numbers as their original text; refuse a repeated name in an object, showing both values.

    >>> strict_json('{"a": 0.10, "b": [1]}')
    {'a': '0.10', 'b': ['1']}
    """
    return json.loads(text, parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_no_repeats)


def _why(line: bytes, error: Exception) -> str:
    """Explain why a text is not JSON, in words that help to fix it."""
    if isinstance(error, json.JSONDecodeError):
        for python, meant in (
            ("nan", "null"),
            ("None", "null"),
            ("True", "true"),
            ("False", "false"),
            ("inf", "a number"),
        ):
            if line[error.pos if error.lineno == 1 else error.colno - 1 :].startswith(python.encode()):
                return f"{python} is not JSON, write {meant}"
        if b"'" in line and b'"' not in line:
            return "names and texts need double quotes in JSON"
    return str(error).partition(":")[0] if isinstance(error, json.JSONDecodeError) else str(error)


def _json_row(row: object) -> dict[str, str]:
    if not isinstance(row, dict):
        raise ValueError("no object")
    return {name: cell_text(value) for name, value in row.items()}


def cell_text(value: object) -> str:
    """Return a value of JSON as the text of a cell: empty for null, anything but a text as JSON."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Repeated(ValueError):
    """A JSON object that has the same name twice."""

    def __init__(self, name: str, one: str, other: str) -> None:
        self.name, self.one, self.other = name[:40], one[:40], other[:40]
        super().__init__(f"the name {self.name!r} occurs twice, as {self.one!r} and {self.other!r}")


def _no_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    row: dict[str, object] = {}
    for name, value in pairs:
        if name in row:
            raise Repeated(name, str(row[name]), str(value))
        row[name] = value
    return row


def read_json_block(
    shape: SourceHead, data: bytes, before: int, picks: Mapping[str, int], numeric: frozenset[str], ledger: Diagnostics
) -> Table:
    """Read JSON lines: with polars if the result surely equals that of the in-memory reader, else line by line."""
    assert shape.names is not None
    wanted = {ours: shape.names[at] for ours, at in picks.items()}
    quick = _quick_json(data, wanted, numeric)
    if quick is not None:
        return Table(shape.name, quick, first_line=1 + before)
    seen = look_at_json(SourceBytes(shape.name, "", data, "utf-8"), ledger, before)
    assert seen.frame is not None
    empty = pl.lit("")
    frame = seen.frame.select(
        (pl.col(theirs) if theirs in seen.frame.columns else empty).alias(ours) for ours, theirs in wanted.items()
    )
    return Table(shape.name, frame, lines=seen.lines)


def _quick_json(data: bytes, wanted: Mapping[str, str], numeric: frozenset[str]) -> pl.DataFrame | None:
    n = data.count(b"\n") + (not data.endswith(b"\n"))
    if b"\n\n" in data or any(data.count(f'"{theirs}"'.encode()) != n for theirs in wanted.values()):
        return None
    try:
        frame = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
    except pl.exceptions.PolarsError:
        return None
    if frame.height != n or any(theirs not in frame.columns for theirs in wanted.values()):
        return None
    kinds = {ours: frame.schema[theirs] for ours, theirs in wanted.items()}
    fits = all(
        kind.is_float() or kind.is_integer() if ours in numeric else kind in (pl.String, pl.Int64)
        for ours, kind in kinds.items()
    )
    if not fits or any(frame[theirs].null_count() for theirs in wanted.values()):
        return None
    series = [as_text_or_numbers(frame[theirs].alias(ours), ours in numeric) for ours, theirs in wanted.items()]
    return pl.DataFrame(series)
