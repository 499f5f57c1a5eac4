"""Sources that know their columns: JSON lines, Parquet files, and frames of polars and pandas."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import polars as pl

from hitmiss import artifacts
from hitmiss.errors import DataError, UsageError
from hitmiss.io.files import Content
from hitmiss.io.findings import Ledger, Place
from hitmiss.io.layouts import is_number
from hitmiss.io.shapes import Row, Shape

SAMPLE_ROWS = 50
LACKING = "lack some of the names"


def look_at_frame(source: Any, ledger: Ledger) -> Shape:
    """A polars or pandas frame."""
    frame = frame_of(source)
    if not frame.height:
        raise ledger.stop("empty-file", "the table holds no rows", "give a table with rows", [Place("table")])
    return Shape("table", head_of(frame), tuple(frame.columns), frame=frame)


def look_at_parquet(content: Content, ledger: Ledger) -> Shape:
    """A Parquet file."""
    try:
        if content.is_arrow:
            frame = pl.read_ipc(io.BytesIO(content.data))
        else:
            refuse_bomb(pl.scan_parquet(io.BytesIO(content.data)), len(content.data), content.name, ledger)
            frame = pl.read_parquet(io.BytesIO(content.data))
    except (pl.exceptions.PolarsError, OSError) as error:
        what = f"the {'Arrow' if content.is_arrow else 'Parquet'} file is damaged ({str(error).splitlines()[0]})"
        raise ledger.stop("unreadable-file", what, "make or fetch it again", [Place(content.name)]) from None
    if not frame.height:
        raise ledger.stop("empty-file", "the file holds no rows", "give a file with rows", [Place(content.name)])
    return Shape(content.name, head_of(frame), tuple(frame.columns), content=content, frame=frame)


def refuse_bomb(lazy: pl.LazyFrame, packed: int, name: str, ledger: Ledger, *, is_streamed: bool = False) -> None:
    """Stop before a Parquet file is unfolded that says it has more rows than so many bytes can reasonably hold."""
    rows, width = int(lazy.select(pl.len()).collect().item()), len(lazy.collect_schema())
    limit = artifacts.unfolded(packed, is_streamed)
    if rows * width * 8 > limit:
        what = f"its {rows:,} rows of {width} columns unfold beyond {limit:,} bytes"
        raise ledger.stop("oversized-archive", what, "write it again as CSV if you trust it", [Place(name)])


def look_at_json(content: Content, ledger: Ledger) -> Shape:
    """A file of JSON: an object per line, an array of objects, or one object of id -> score.

    Numbers stay the text that stands there; an absent key is empty text.
    """
    rows = _array(content, ledger) if content.data.lstrip()[:1] == b"[" else _lines(content, ledger)
    names = tuple(dict.fromkeys(name for _, row in rows for name in row))
    frame = pl.DataFrame(
        {name: [row.get(name, "") for _, row in rows] for name in names}, schema=dict.fromkeys(names, pl.String)
    )
    short = sum(len(row) != len(names) for _, row in rows)
    if short:
        ledger.notes.append(
            f"{content.name}: {short:,} of {len(rows):,} lines {LACKING} {', '.join(names)}; read as empty"
        )
    return Shape(
        content.name,
        head_of(frame),
        names,
        content=content,
        frame=frame,
        lines=np.array([n for n, _ in rows], dtype=np.int64),
    )


Rows = list[tuple[int, dict[str, str]]]


def _lines(content: Content, ledger: Ledger) -> Rows:
    rows: Rows = []
    wrong: list[Place] = []
    for n, line in enumerate(content.data.split(b"\n"), 1):
        if line.strip():
            try:
                rows.append((n, _json_row(strict_json(line))))
            except (ValueError, RecursionError) as error:
                wrong.append(Place(content.name, n, _why(line, error)))
    if (len(rows) + len(wrong) > 1 and wrong) or (len(rows) == 1 and not wrong):
        single = _one_object(content)
        if single is not None:
            return single
    if wrong:
        what = f"{{n}} line{{s}} that hold no JSON object with one value per name ({wrong[0].value})"
        raise ledger.stop("ragged-row", what, "write one object per line", wrong, each="a JSON object was expected")
    return rows


def _one_object(content: Content) -> Rows | None:
    """The rows of a file that is one object of id -> score; None where it is anything else."""
    try:
        whole = strict_json(content.data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole, dict) or len(whole) < 2 or {name.lower() for name in whole} & {"score", "label", "item"}:
        return None
    if not all(isinstance(value, str) and is_number(value) for value in whole.values()):
        return None
    return [(1, {"item": name, "score": value}) for name, value in whole.items()]


def _array(content: Content, ledger: Ledger) -> Rows:
    """The objects of an array, each at the line on which it begins."""
    fix = "write an array of objects, or one object per line"
    try:
        found = strict_json(content.data)
    except (ValueError, RecursionError) as error:
        row = getattr(error, "lineno", 1)
        line = content.data.split(b"\n")[row - 1]
        raise ledger.stop(
            "ragged-row", f"the JSON array cannot be read ({_why(line, error)})", fix, [Place(content.name, row)]
        ) from None
    wrong = [Place(content.name, 1, str(value)[:40]) for value in found if not isinstance(value, dict)]
    if wrong or not found:
        kind, what = (
            ("ragged-row", "{n} value{s} of the JSON array that are no objects")
            if wrong
            else ("empty-file", "the JSON array is empty")
        )
        raise ledger.stop(kind, what, fix, wrong or [Place(content.name, 1)])
    return [(line, _json_row(value)) for line, value in zip(_starts(content.data, len(found)), found, strict=True)]


def _starts(data: bytes, n: int) -> list[int]:
    """The lines on which the objects of an array begin."""
    text, decoder, lines = data.decode(), json.JSONDecoder(), []
    at, line, seen = text.index("[") + 1, 1, 0
    for _ in range(n):
        at = text.index("{", at)
        line += text.count("\n", seen, at)
        seen = at
        lines.append(line)
        at = decoder.raw_decode(text, at)[1]
    return lines


def strict_json(text: bytes | str) -> Any:
    """JSON with numbers as the texts that stand there; a name that occurs twice in an object is refused, with both values.

    >>> strict_json('{"a": 0.10, "b": [1]}')
    {'a': '0.10', 'b': ['1']}
    """
    return json.loads(text, parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_no_repeats)


def _why(line: bytes, error: Exception) -> str:
    """Why a text is no JSON, in words that help."""
    if isinstance(error, json.JSONDecodeError):
        for python, meant in (
            ("nan", "null"),
            ("None", "null"),
            ("True", "true"),
            ("False", "false"),
            ("inf", "a number"),
        ):
            if line[error.pos if error.lineno == 1 else error.colno - 1 :].startswith(python.encode()):
                return f"{python} is no JSON, write {meant}"
        if b"'" in line and b'"' not in line:
            return "names and texts stand in double quotes in JSON"
    return str(error).partition(":")[0] if isinstance(error, json.JSONDecodeError) else str(error)


def frame_of(source: Any) -> pl.DataFrame:
    """A polars frame from what the caller has: a polars or a pandas frame."""
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, pl.DataFrame):
        return source
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        return pl.DataFrame([_from_pandas(str(name), source.iloc[:, i]) for i, name in enumerate(source.columns)])
    raise UsageError(f"trials are read from paths and from polars or pandas frames; found a {type(source).__name__}")


def settle(column: pl.Series, is_number: bool) -> pl.Series:
    """A column as the door wants it: text, save for numbers where a number is wanted. Nothing becomes null but scores."""
    kind = column.dtype
    if is_number and kind.is_numeric():
        return _exact(column)
    if kind == pl.Binary:
        try:
            return column.cast(pl.String).fill_null("")
        except pl.exceptions.PolarsError:
            raise DataError(
                f"the column {column.name} holds bytes that are no text (UTF-8); write it as text", code="not-text"
            ) from None
    if kind.is_nested() or kind in (pl.Object, pl.Duration):
        return pl.Series(column.name, ["" if v is None else str(v) for v in column.to_list()], dtype=pl.String)
    return column.cast(pl.String).fill_null("")


def is_plain_number(kind: pl.DataType) -> bool:
    """Whether every value of a type is a number that a float holds exactly."""
    return kind.is_numeric() and kind not in (pl.Int64, pl.UInt64, pl.Int128)


def _exact(column: pl.Series) -> pl.Series:
    """Numbers as floats; whole numbers that would lose their last digits, and so tie, are refused."""
    floats = column.cast(pl.Float64)
    if column.dtype.is_integer() and not is_plain_number(column.dtype):
        lost = (floats.cast(pl.Int128) != column.cast(pl.Int128)).fill_null(False)
        if lost.any():
            raise DataError(
                f"{int(lost.sum()):,} values of {column.name} are whole numbers of more than 15 digits, the first is "
                f"{column.filter(lost)[0]}: as scores they would lose their last digits; scale them, or write them as floats",
                code="inexact-number",
            )
    return floats


def _json_row(row: object) -> dict[str, str]:
    if not isinstance(row, dict):
        raise ValueError("no object")
    return {name: value if isinstance(value, str) else _json_text(value) for name, value in row.items()}


def _json_text(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in pairs:
        if name in row:
            raise ValueError(f"the name {name[:40]!r} occurs twice, as {str(row[name])[:40]!r} and {str(value)[:40]!r}")
        row[name] = value
    return row


def _from_pandas(name: str, column: Any) -> pl.Series:
    values = column.to_numpy()
    if values.dtype.kind in "fiub":
        return pl.Series(name, values)
    absent = column.isna().to_numpy()
    texts = [None if gone else str(v) for v, gone in zip(column.tolist(), absent.tolist(), strict=True)]
    return pl.Series(name, texts, dtype=pl.String)


def head_of(frame: pl.DataFrame) -> tuple[Row, ...]:
    """The first rows of a frame as text."""
    return tuple(tuple("" if v is None else str(v) for v in row) for row in frame.head(SAMPLE_ROWS).iter_rows())
