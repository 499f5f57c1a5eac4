"""Sources that know their columns: JSON lines, Parquet files, and frames of polars and pandas."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import polars as pl

from hitmiss.errors import UsageError
from hitmiss.io.files import Content
from hitmiss.io.findings import Ledger, Place
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
        frame = pl.read_parquet(io.BytesIO(content.data))
    except (pl.exceptions.PolarsError, OSError) as error:
        what = f"the Parquet file is damaged ({str(error).splitlines()[0]})"
        raise ledger.stop("unreadable-file", what, "make or fetch it again", [Place(content.name)]) from None
    if not frame.height:
        raise ledger.stop("empty-file", "the file holds no rows", "give a file with rows", [Place(content.name)])
    return Shape(content.name, head_of(frame), tuple(frame.columns), content=content, frame=frame)


def look_at_json_lines(content: Content, ledger: Ledger) -> Shape:
    """A file with one JSON object a line. Numbers stay the text that stands there; an absent key is empty text."""
    rows: list[tuple[int, dict[str, str]]] = []
    wrong: list[Place] = []
    for n, line in enumerate(content.data.split(b"\n"), 1):
        if line.strip():
            try:
                rows.append((n, _json_row(line)))
            except (ValueError, RecursionError) as error:
                wrong.append(Place(content.name, n, str(error)))
    if wrong:
        what = "{n} line{s} that hold no JSON object with one value a name"
        raise ledger.stop("ragged-row", what, "write one object a line", wrong, each="a JSON object was expected")
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
    if is_number and column.dtype.is_numeric():
        return column.cast(pl.Float64)
    if column.dtype.is_nested() or column.dtype == pl.Object:
        return pl.Series(column.name, ["" if v is None else str(v) for v in column.to_list()], dtype=pl.String)
    return column.cast(pl.String).fill_null("")


def _json_row(line: bytes) -> dict[str, str]:
    row = json.loads(line, parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_no_repeats)
    if not isinstance(row, dict):
        raise ValueError("no object")
    return {name: value if isinstance(value, str) else _json_text(value) for name, value in row.items()}


def _json_text(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        raise ValueError("a name occurs twice")
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
