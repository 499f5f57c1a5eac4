"""Frames as the bytes of files."""

from __future__ import annotations

import io

import polars as pl


def parquet(frame: pl.DataFrame) -> bytes:
    """Return a frame as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
