"""Flatten files with nested rows by their layout, before the reader recognises their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.classes import named_classes
from hitmiss.core.columns import prefixed
from hitmiss.core.finding import Place, has_code
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.trials import FIXED
from hitmiss.io.blocks import HashingFile, blocks
from hitmiss.io.columns import looks_headed
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.frames import head_of
from hitmiss.io.json_lines import look_at_json
from hitmiss.io.layouts import FlatRows, Layout
from hitmiss.io.run_columns import mixed_note
from hitmiss.io.source import ReadProgress, Row, SourceBytes, SourceHead, Table
from hitmiss.io.tables import lines_of, load, pieces, refuse_many


def expand_rows(
    shapes: Sequence[SourceHead], layout: Layout, options: ReadSpec, ledger: Diagnostics
) -> tuple[list[SourceHead], ReadSpec, dict[str, object]]:
    """Return flat shapes, the options with the runs and numbers that were found, and the merged facts of all files."""
    if not all(shape.names is not None or looks_headed(shape, options) for shape in shapes):
        return list(shapes), options, {}
    found = [_flattened(shape, layout, options, ledger) for shape in shapes]
    made = _aligned([table for table, _, _ in found])
    flat = [
        replace(shape, first=head_of(t.frame), names=(*t.frame.columns,), frame=t.frame, lines=lines, is_settled=True)
        for shape, t, (_, lines, _) in zip(shapes, made, found, strict=True)
    ]
    _refuse_conflicts(flat, made, ledger)
    _refuse_cells(flat, made, ledger)
    runs = dict.fromkeys((*options.runs, *(name for table in made for name in table.runs)))
    numbers = dict.fromkeys((*options.numbers, *(name for table in made for name in table.numbers)))
    # the layout knows which columns may be absent
    ledger.notes[:] = [note for note in ledger.notes if not has_code(note, "lines-lack-names")]
    ledger.notes += [f"{shape.name}: {note}" for shape, t in zip(shapes, made, strict=True) for note in t.notes]
    ledger.notes += _mixed([table.conditions for table in made])
    known = {name for _, _, names in found for name in names}
    unknown = {ours: theirs for ours, theirs in options.columns.items() if theirs not in known}
    changed = options.changed(runs=tuple(runs), numbers=tuple(numbers), columns=unknown)
    if made[0].classes is not None:
        own, other = named_classes(options.positive or "", options.negative or "")
        ledger.notes.append(
            f"{own} is read as {made[0].classes[0]} and {other} as {made[0].classes[1]}, as in the names of the metrics"
        )
        changed = changed.changed(positive=made[0].classes[0], negative=made[0].classes[1])
    return flat, changed, merged([table.facts for table in made])


def _mixed(conditions: Sequence[Mapping[str, Mapping[str, Sequence[object]]]]) -> list[str]:
    """Return a warning for each run whose answers, in all files together, were given under different conditions."""
    found: dict[str, dict[str, list[object]]] = {}
    for own in conditions:
        for run, settings in own.items():
            for name, values in settings.items():
                known = found.setdefault(run, {}).setdefault(name, [])
                known += [value for value in values if value not in known]
    several = {run: {n: v for n, v in settings.items() if len(v) > 1} for run, settings in found.items()}
    return [mixed_note(run, settings, are_columns=False) for run, settings in several.items() if settings]


def _flattened(
    shape: SourceHead, layout: Layout, options: ReadSpec, ledger: Diagnostics
) -> tuple[FlatRows, NDArray[np.int64], Row]:
    """Return a source as a flat table, with the line of each row and the names of all its columns."""
    names = shape.names or shape.first[0]
    assert layout.expand is not None  # only such layouts come here
    while True:
        made, lines = layout.expand(options), list[NDArray[np.int64]]()
        for piece in _texts(shape, ledger):
            new = tuple(name for name in piece.frame.columns if name not in names)
            if new:  # a line of JSON lines has a name that none before it has: all pieces need the same columns
                names = (*names, *new)
                break
            absent = [pl.lit("").alias(name) for name in names if name not in piece.frame.columns]
            made.add(_called(piece.frame.with_columns(absent).select(names), layout, options))
            lines.append(lines_of([piece]))
            if shape.pieced is not None:
                refuse_many(made.bytes, shape.pieced.memory)
        else:
            return made.flat(), np.concatenate(lines), names


def _texts(shape: SourceHead, ledger: Diagnostics) -> Iterator[Table]:
    """Yield every column of a source as text under its own name, in pieces if it is read so."""
    names = shape.names or shape.first[0]
    picks = {name: at for at, name in enumerate(names)}
    if shape.pieced is None:
        yield load(shape, True, picks, frozenset(), ledger)
    elif shape.content is not None and not shape.content.is_parquet and shape.names is not None:
        path = shape.pieced.path
        with HashingFile(path) as meter:
            for data, before in blocks(meter, path, ledger, is_quoted=False):
                if data.strip():
                    seen = look_at_json(SourceBytes(shape.name, "", data, "utf-8"), ledger, before)
                    yield load(seen, True, {name: at for at, name in enumerate(seen.names or ())}, frozenset(), ledger)
    else:
        yield from pieces(shape.pieced.path, shape, True, frozenset(), picks, ReadProgress(), ledger)


def _called(frame: pl.DataFrame, layout: Layout, options: ReadSpec) -> pl.DataFrame:
    """Rename declared columns to the layout's names; columns that already had those names are put aside."""
    told = {
        theirs: layout.declares.get(ours, ours) for ours, theirs in options.columns.items() if theirs in frame.columns
    }
    moved = {name: prefixed(name) for name in told.values() if name in frame.columns and name not in told}
    return frame.rename({**moved, **{name: ours for name, ours in told.items() if name != ours}})


def _refuse_conflicts(shapes: Sequence[SourceHead], made: Sequence[FlatRows], ledger: Diagnostics) -> None:
    """Refuse rows that state the same fact twice with different values."""
    for shape, flat in zip(shapes, made, strict=True):
        lines = [] if shape.lines is None else shape.lines.tolist()
        for name in dict.fromkeys(conflict.name for conflict in flat.conflicts):
            own = [c for c in flat.conflicts if c.name == name]
            places = [Place(shape.name, lines[c.row], f"{c.one} and {c.other}") for c in own]
            first = own[0]
            code = "column-conflict/twice" if first.is_inside else "column-conflict/beside"
            told = {"name": name, "inside": first.where, "one": first.one, "other": first.other}
            ledger.add(code, places, name, **told)


def _refuse_cells(shapes: Sequence[SourceHead], made: Sequence[FlatRows], ledger: Diagnostics) -> None:
    """Refuse fields that cannot be read, with their files and lines."""
    is_understood = any(flat.n_understood for flat in made)
    for shape, flat in zip(shapes, made, strict=True):
        lines = [] if shape.lines is None else shape.lines.tolist()
        alike: dict[tuple[str, str], list[Place]] = {}
        for bad in (bad for bad in flat.faults if not (bad.if_all and is_understood)):
            alike.setdefault((bad.code, bad.name), []).append(Place(shape.name, lines[bad.row], bad.value))
        for (code, name), places in alike.items():
            ledger.add(code, places, name, name=name)


def _aligned(made: Sequence[FlatRows]) -> list[FlatRows]:
    """Give all tables the same slices and numbers: null numbers, and texts as in rows that do not say."""
    extra = {name: kind for t in made for name, kind in t.frame.schema.items() if name not in FIXED}
    texts = {name: text for t in made for name, text in t.fills.items()}
    fills = {
        name: pl.lit(None if kind.is_numeric() else texts.get(name, "-"), kind).alias(name)
        for name, kind in extra.items()
    }
    return [
        replace(t, frame=t.frame.with_columns(fill for name, fill in fills.items() if name not in t.frame.columns))
        for t in made
    ]


def merged(facts: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Merge facts of several files: equal values stay, different values become a list of all values.

    >>> merged([{"cache": "on", "models": {"agent": "a"}}, {"cache": "off", "models": {"agent": "a"}}])
    {'cache': ['off', 'on'], 'models': {'agent': 'a'}}
    """
    found: dict[str, object] = {}
    for name in dict.fromkeys(name for one in facts for name in one):
        values = [one[name] for one in facts if name in one]
        tables = [value for value in values if isinstance(value, Mapping)]
        if len(tables) == len(values):
            found[name] = merged(tables)
        else:
            distinct = sorted((value for i, value in enumerate(values) if value not in values[:i]), key=str)
            found[name] = distinct[0] if len(distinct) == 1 else distinct
    return found
