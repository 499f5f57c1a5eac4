"""Fields inside nested cells, by their path: `categories.hate.score`, `results.0.category_scores.hate`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from hitmiss.core.read_spec import ReadSpec
from hitmiss.io.frames import head_of
from hitmiss.io.json_lines import cell_text, strict_json
from hitmiss.io.source import SourceHead

MOST_LEAVES: Final = 30
"""Fields of nested columns that are shown."""


def paths_in(options: ReadSpec) -> list[str]:
    """Return the columns that a caller names and that may be paths: those with a dot."""
    named = (
        *options.columns.values(),
        *options.key_columns.values(),
        *options.score_columns,
        *options.pairs.keys(),
        *options.pairs.values(),
        *options.runs,
        *options.numbers,
        *(options.slices or ()),
        *options.where,
        *((options.weight,) if options.weight else ()),
    )
    return [name for name in dict.fromkeys(named) if "." in name]


def with_fields(shape: SourceHead, paths: Sequence[str]) -> SourceHead:
    """Return a source with a column for each path that leads into one of its nested columns."""
    if shape.frame is None or shape.names is None:
        return shape
    columns = [pl.Series(path, cells, pl.String) for path in paths if (cells := _cells(shape.frame, path)) is not None]
    return with_columns(shape, columns) if columns else shape


def with_leaves(shape: SourceHead) -> SourceHead:
    """Return a source with its columns of objects replaced by a column for each field in them, by its path."""
    if shape.frame is None or shape.names is None:
        return shape
    paths = {name: _leaves(name, next(opened(shape.frame[name].head(1)), None)) for name in shape.names}
    nested = {name: found for name, found in paths.items() if found != [name]}
    made = with_fields(shape, [path for found in nested.values() for path in found][:MOST_LEAVES])
    return made if made is shape else with_columns(made, (), [*nested])


def _leaves(path: str, value: object) -> list[str]:
    """Return the paths of the plain values inside objects; an answer with a verdict is read as a whole."""
    if not isinstance(value, Mapping) or "verdict" in value:
        return [path]
    return [leaf for name, inner in value.items() for leaf in _leaves(f"{path}.{name}", inner)]


def with_columns(shape: SourceHead, columns: Sequence[pl.Series], dropped: Collection[str] = ()) -> SourceHead:
    """Return a source that is a frame, with columns added and others dropped."""
    assert shape.frame is not None
    frame = shape.frame.drop(dropped).with_columns(columns)
    return replace(shape, first=head_of(frame), names=tuple(frame.columns), frame=frame)


def _cells(frame: pl.DataFrame, path: str) -> list[str] | None:
    """Return the texts at a path, empty where a row has none; None if no row has it, or it is a column itself."""
    parts = path.split(".")
    heads = [".".join(parts[:n]) for n in range(len(parts) - 1, 0, -1)]
    head = next((name for name in heads if name in frame.columns), None)
    if path in frame.columns or head is None:
        return None
    inner = path[len(head) + 1 :]
    found = [field_at(value, inner) for value in opened(frame[head])]
    return None if all(value is None for value in found) else [cell_text(value) for value in found]


def opened(column: pl.Series) -> Iterator[object]:
    """Yield the values of a column, texts that are JSON objects or lists parsed."""
    for value in column.to_list():
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            try:
                yield strict_json(value)
                continue
            except ValueError:
                pass
        yield value


def field_at(value: object, path: str) -> object:
    """Return what stands at a path inside a value; None if nothing does. A name may itself have dots.

    >>> field_at({"a": [{"b.c": "7"}]}, "a.0.b.c"), field_at({"a": 1}, "b")
    ('7', None)
    """
    if not path:
        return value
    parts = path.split(".")
    if isinstance(value, list) and parts[0].isdecimal() and int(parts[0]) < len(value):
        return field_at(value[int(parts[0])], ".".join(parts[1:]))
    if isinstance(value, Mapping):
        for n in range(len(parts), 0, -1):
            name = ".".join(parts[:n])
            if name in value:
                return field_at(value[name], ".".join(parts[n:]))
    return None
