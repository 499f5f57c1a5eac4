"""Files whose rows are nested: a layout may flatten them before the door recognises their columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from hitmiss import registry
from hitmiss.columns import apart
from hitmiss.io import tables
from hitmiss.io.findings import Ledger, Place
from hitmiss.io.scorefiles import looks_headed
from hitmiss.io.shapes import Shape, Table
from hitmiss.io.typed import LACKING, head_of
from hitmiss.readspec import ReadSpec
from hitmiss.trials import FIXED


@dataclass(frozen=True)
class Conflict:
    """A row (from 0) that says one fact twice: by its own field `name`, and in a nested field."""

    row: int
    name: str
    one: str
    other: str
    where: str


@dataclass(frozen=True)
class Reshaped:
    """A flat table, which of its columns name the run and which are numbers, and facts for the header's provenance."""

    frame: pl.DataFrame
    runs: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    classes: tuple[str, str] | None = None
    """What the layout calls the classes, where the caller's words for them were put into its own."""


@dataclass(frozen=True)
class Reshaping:
    """A layout for files with nested rows: `flatten` makes a flat table of one with a text column a name."""

    name: str
    title: str
    flatten: Callable[[pl.DataFrame, ReadSpec], Reshaped]
    names: Mapping[str, str] = field(default_factory=dict)
    """What the layout calls the columns that a caller may name: `item` -> `id`."""


def find_reshaping(options: ReadSpec) -> Reshaping | None:
    """The reshaping that the options name as their layout, if it is one."""
    reader = registry.find("reader", options.layout) if options.layout is not None else None
    return reader if isinstance(reader, Reshaping) else None


def reshape(
    shapes: Sequence[Shape], reshaping: Reshaping, options: ReadSpec, ledger: Ledger
) -> tuple[list[Shape], ReadSpec, dict[str, Any]]:
    """Flat shapes, the options with the runs and numbers that were found, and the facts of all files together."""
    if not all(shape.names is not None or looks_headed(shape, options) for shape in shapes):
        return list(shapes), options, {}
    texts = [_texts(shape, ledger) for shape in shapes]
    frames = [_called(table.frame, reshaping, options) for table in texts]
    made = _aligned([reshaping.flatten(frame, options) for frame in frames])
    _refuse_conflicts(shapes, texts, made, ledger)
    flat = [_flat(*parts) for parts in zip(shapes, texts, made, strict=True)]
    runs = dict.fromkeys((*options.runs, *(name for table in made for name in table.runs)))
    numbers = dict.fromkeys((*options.numbers, *(name for table in made for name in table.numbers)))
    ledger.notes[:] = [note for note in ledger.notes if LACKING not in note]  # the layout knows what may be lacking
    ledger.notes += [f"{shape.name}: {note}" for shape, t in zip(shapes, made, strict=True) for note in t.notes]
    known = {name for table in texts for name in table.frame.columns}
    unknown = {ours: theirs for ours, theirs in options.columns.items() if theirs not in known}
    changed = options.changed(runs=tuple(runs), numbers=tuple(numbers), columns=unknown)
    if made[0].classes is not None:
        ledger.notes.append(
            f"{options.positive} is read as {made[0].classes[0]}, {options.negative} as {made[0].classes[1]}"
        )
        changed = changed.changed(positive=made[0].classes[0], negative=made[0].classes[1])
    return flat, changed, merged([table.facts for table in made])


def _texts(shape: Shape, ledger: Ledger) -> Table:
    """Every column of a source as text under its own name."""
    names = shape.names or shape.first[0]
    return tables.load(shape, True, {name: at for at, name in enumerate(names)}, frozenset(), ledger)


def _called(frame: pl.DataFrame, reshaping: Reshaping, options: ReadSpec) -> pl.DataFrame:
    """A table with the columns that the caller has named called as the layout calls them; what was called so is put aside."""
    told = {
        theirs: reshaping.names.get(ours, ours) for ours, theirs in options.columns.items() if theirs in frame.columns
    }
    moved = {name: apart(name) for name in told.values() if name in frame.columns and name not in told}
    return frame.rename({**moved, **{name: ours for name, ours in told.items() if name != ours}})


def _refuse_conflicts(
    shapes: Sequence[Shape], texts: Sequence[Table], made: Sequence[Reshaped], ledger: Ledger
) -> None:
    """Rows that say one thing twice, and differently."""
    for shape, table, flat in zip(shapes, texts, made, strict=True):
        for name in dict.fromkeys(conflict.name for conflict in flat.conflicts):
            own = [c for c in flat.conflicts if c.name == name]
            places = [Place(shape.name, table.line(c.row), f"{c.one} and {c.other}") for c in own]
            what = (
                f"{{n}} row{{s}} with another {name} in {own[0].where} than beside it ({own[0].other} and {own[0].one})"
            )
            ledger.add("column-conflict", what, "keep the right one, or rename the other", places, name)


def _aligned(made: Sequence[Reshaped]) -> list[Reshaped]:
    """The same slices and numbers in all tables: empty numbers and `-` where a file has none."""
    extra = {name: kind for t in made for name, kind in t.frame.schema.items() if name not in FIXED}
    fills = {name: pl.lit(None if kind.is_numeric() else "-", kind).alias(name) for name, kind in extra.items()}
    return [
        replace(t, frame=t.frame.with_columns(fill for name, fill in fills.items() if name not in t.frame.columns))
        for t in made
    ]


def _flat(shape: Shape, texts: Table, made: Reshaped) -> Shape:
    lines = np.array([texts.line(row) for row in range(texts.frame.height)], dtype=np.int64)
    return replace(
        shape,
        first=head_of(made.frame),
        names=tuple(made.frame.columns),
        frame=made.frame,
        lines=lines,
        is_settled=True,
    )


def merged(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Facts of several files: what they agree on stays, what they do not becomes a list of all values.

    >>> merged([{"cache": "on", "models": {"agent": "a"}}, {"cache": "off", "models": {"agent": "a"}}])
    {'cache': ['on', 'off'], 'models': {'agent': 'a'}}
    """
    found: dict[str, Any] = {}
    for name in dict.fromkeys(name for one in facts for name in one):
        values = [one[name] for one in facts if name in one]
        if all(isinstance(value, Mapping) for value in values):
            found[name] = merged(values)
        else:
            distinct = [value for i, value in enumerate(values) if value not in values[:i]]
            found[name] = distinct[0] if len(distinct) == 1 else distinct
    return found
