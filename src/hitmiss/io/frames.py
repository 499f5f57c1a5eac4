"""Tables with typed columns: frames of polars and pandas, and Parquet files."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.finding import Place
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.source import Row, SourceBytes, SourceHead, Table

if TYPE_CHECKING:
    import pandas as pd
from hitmiss.io.source import ReadProgress

SAMPLE_ROWS = 50


def look_at_frame(source: object, ledger: Diagnostics) -> SourceHead:
    """Take a first look at a polars or pandas frame."""
    frame = frame_of(source)
    if not frame.height:
        raise ledger.stop("empty-file/table", [Place("table")])
    return SourceHead("table", head_of(frame), tuple(frame.columns), frame=frame)


def look_at_parquet(content: SourceBytes, ledger: Diagnostics) -> SourceHead:
    """Take a first look at a Parquet file."""
    try:
        if content.is_arrow:
            frame = pl.read_ipc(io.BytesIO(content.data))
        else:
            refuse_bomb(pl.scan_parquet(io.BytesIO(content.data)), len(content.data), content.name, ledger)
            frame = pl.read_parquet(io.BytesIO(content.data))
    except (pl.exceptions.PolarsError, OSError) as error:
        told = {"what": f"{'Arrow' if content.is_arrow else 'Parquet'} file", "reason": str(error).splitlines()[0]}
        raise ledger.stop("unreadable-file/broken", [Place(content.name)], **told) from None
    if not frame.height:
        raise ledger.stop("empty-file", [Place(content.name)])
    return SourceHead(content.name, head_of(frame), tuple(frame.columns), content=content, frame=frame)


def refuse_bomb(lazy: pl.LazyFrame, packed: int, name: str, ledger: Diagnostics, *, is_streamed: bool = False) -> int:
    """Stop before decompressing a Parquet file that claims more rows than its size can reasonably hold; return the rows."""
    rows, width = int(lazy.select(pl.len()).collect().item()), len(lazy.collect_schema())
    limit = artifacts.unfolded(packed, is_streamed)
    if rows * width * 8 > limit:
        raise ledger.stop("oversized-archive/table", [Place(name)], rows=rows, width=width, limit=limit)
    return rows


def frame_of(source: object) -> pl.DataFrame:
    """Return a polars frame from a polars or pandas frame."""
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, pl.DataFrame):
        return source
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        return _from_pandas(source)
    raise UsageError.of("bad-source", name=type(source).__name__)


def as_text_or_numbers(column: pl.Series, is_number: bool) -> pl.Series:
    """Return a column as text, or as numbers where a number is expected. Only scores may become null."""
    kind = column.dtype
    if is_number and kind.is_numeric():
        return _exact(column)
    if kind == pl.Binary:
        try:
            return column.cast(pl.String).fill_null("")
        except pl.exceptions.PolarsError:
            raise DataError.of("not-utf8/column", column_name=column.name) from None
    if kind.is_nested() or kind in (pl.Object, pl.Duration):
        return pl.Series(column.name, ["" if v is None else str(v) for v in column.to_list()], dtype=pl.String)
    texts = column.cast(pl.String)
    return texts.fill_null("") if texts.null_count() else texts


def as_codes(column: pl.Series) -> pl.Series:
    """Return a column of few different values as codes of their texts: a fraction of the memory, and of the time."""
    return column if column.dtype == pl.Categorical else as_text_or_numbers(column, False).cast(pl.Categorical)


def is_plain_number(kind: pl.DataType) -> bool:
    """Return whether every value of a type is a number that a float holds exactly."""
    return kind.is_float() or kind in (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32)


INEXACT: Final = 2**53
"""From here on a float does not hold every whole number."""


def may_be_inexact(floats: pl.Series) -> bool:
    """Return whether some number is so large that a float need not be what was written; an infinity is."""
    least, most = floats.min(), floats.max()
    return isinstance(least, float) and isinstance(most, float) and (most >= INEXACT or least <= -INEXACT)


def _exact(column: pl.Series) -> pl.Series:
    """Return numbers as floats; as text if digits could be lost, so that the rules of cells find where."""
    floats = column.cast(pl.Float64)
    if is_plain_number(column.dtype) or not may_be_inexact(floats):
        return floats
    return column.cast(pl.String).fill_null("")


def _from_pandas(frame: pd.DataFrame) -> pl.DataFrame:
    return pl.DataFrame([_pandas_column(str(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns)])


def _pandas_column(name: str, column: pd.Series) -> pl.Series:
    values = column.to_numpy()
    if values.dtype.kind in "fiub":
        return pl.Series(name, values)
    absent = column.isna().to_numpy()
    texts = [None if gone else str(v) for v, gone in zip(column.tolist(), absent.tolist(), strict=True)]
    return pl.Series(name, texts, dtype=pl.String)


def head_of(frame: pl.DataFrame) -> tuple[Row, ...]:
    """Return the first rows of a frame as text."""
    return tuple(tuple("" if v is None else str(v) for v in row) for row in frame.head(SAMPLE_ROWS).iter_rows())


PIECE_ROWS: Final = 2**19
"""Rows of a Parquet file that are read at a time."""


def look_at_parquet_head(path: str | Path, ledger: Diagnostics) -> SourceHead:
    name = Path(path).name
    try:
        lazy = pl.scan_parquet(path, glob=False)
        rows = refuse_bomb(lazy, Path(path).stat().st_size, name, ledger, is_streamed=True)
        head = lazy.head(SAMPLE_ROWS).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise damaged_parquet(name, error, ledger) from None
    if not head.height:
        raise ledger.stop("empty-file", [Place(name)])
    return SourceHead(name, head_of(head), tuple(head.columns), rows=rows)


def damaged_parquet(name: str, error: Exception, ledger: Diagnostics) -> Exception:
    """Return the finding that a Parquet file cannot be read, to be raised."""
    reason = str(error).splitlines()[0]
    return ledger.stop("unreadable-file/broken", [Place(name)], what="Parquet file", reason=reason)


def read_parquet_pieces(
    path: str | Path,
    shape: SourceHead,
    numeric: frozenset[str],
    picks: Mapping[str, int],
    read: ReadProgress,
    ledger: Diagnostics,
) -> Iterator[Table]:
    assert shape.names is not None
    read.bytes = Path(path).stat().st_size
    lazy = pl.scan_parquet(path, glob=False).select(pl.col(shape.names[at]).alias(ours) for ours, at in picks.items())
    try:
        for frame in lazy.collect_batches(chunk_size=PIECE_ROWS, maintain_order=True):
            series = [as_text_or_numbers(s, s.name in numeric) for s in frame.iter_columns()]
            yield Table(shape.name, pl.DataFrame(series), first_line=1 + read.rows)
    except pl.exceptions.PolarsError as error:
        raise damaged_parquet(shape.name, error, ledger) from None
