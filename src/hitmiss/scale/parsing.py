"""Even text with plain numbers, parsed at once: what nearly every score file is."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from hitmiss.io.parse import Shape


def parsed_text(shape: Shape, data: bytes, has_header: bool, picks: Mapping[str, int]) -> pl.DataFrame | None:
    """The columns of even text with scores that are plain numbers; None where the careful way must be gone."""
    separator = shape.separator.encode()
    if shape.names is not None or b'"' in data or "score" not in picks or data.endswith(b"\n\n"):
        return None
    last = shape.width - 1
    positions = sorted({*picks.values(), last})
    at = {name: positions.index(position) for name, position in picks.items()}
    kinds = {f"column_{i}": pl.Float64 if i == picks["score"] else pl.String for i in range(shape.width)}
    try:
        frame = pl.read_csv(
            data,
            separator=shape.separator,
            has_header=False,
            skip_lines=int(has_header),
            columns=positions,
            quote_char=None,
            schema=kinds,
            empty_string_is_null=False,
            raise_if_empty=False,
        )
    except pl.exceptions.PolarsError:
        return None
    # Where all columns are read polars refuses long rows itself, and short ones show as an empty last field.
    is_even = len(positions) == shape.width or data.count(separator) == (frame.height + has_header) * (shape.width - 1)
    if not frame.height or not is_even:
        return None
    named = frame.select(frame.to_series(i).alias(name) for name, i in at.items())
    ends = frame.to_series(positions.index(last))
    is_short = ends.null_count() > 0 if ends.dtype == pl.Float64 else bool((ends == "").any())
    return None if is_short else named
