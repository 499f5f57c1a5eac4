"""Cut trials into the samples on which metrics are computed: one per run and slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.columns import find_column, user_name
from hitmiss.core.design import Grouping
from hitmiss.core.errors import UnknownName
from hitmiss.core.text_codes import blocks, combined
from hitmiss.core.trials import Trials
from hitmiss.engine.columns import Columns, Rows, Sample, Span


def by_target(trials: Trials, groupings: Sequence[Grouping]) -> bool:
    """Return whether numbers by target are asked for; the target is then a slice like any other.

    A column with the same values as the target (the types of toxicity of a text) means the target too.
    """
    names, columns = {name for grouping in groupings for name in grouping}, trials.frame.columns
    if "target" in names and find_column("target", columns) == "target":
        return True
    own = [column for name in names if (column := find_column(name, columns)) is not None]
    return bool(own) and trials.has_targets and any(trials.frame[c].equals(trials.frame["target"]) for c in own)


def samples_of_runs(columns: Columns) -> list[Sample]:
    """Return one sample per run (and per target, unless targets are slices); runs are never pooled."""
    trials = columns.trials
    names = [*trials.header.runs]
    if trials.has_targets and not columns.pools_targets:
        names.append("target")
    everything = np.arange(trials.frame.height)
    if not names:
        return [columns.sample(everything)]
    return [columns.sample(rows, run=key) for key, rows in _split(columns, everything, tuple(names))]


def samples_of_slices(whole: Sample, grouping: Grouping) -> list[Sample]:
    """Cut the sample of one run by slice columns.

    For a column that only negatives have (an attack), each slice takes all positives with the same other columns, which
    is the official rule; for a column of positives it is the reverse.
    """
    columns = whole.columns
    known = columns.trials.frame.columns
    for name in grouping:
        if find_column(name, known) is None:
            raise UnknownName("column to group by", name, map(user_name, columns.trials.header.slices))
    negative, positive, grouping = (
        tuple(columns.trials.own(name) for name in names) for names in (*columns.one_class.of(grouping), grouping)
    )
    if negative and positive:
        return list(_crossed_slices(whole, grouping, negative, positive))
    if not (negative or positive):
        parts = _split(columns, whole.rows, grouping, whole._span)
        return [columns.sample(rows, whole.run, key) for key, rows in parts]
    return list(_paired_slices(whole, grouping, negative or positive, whole.positive == bool(positive)))


def _crossed_slices(whole: Sample, grouping: Grouping, negative: Grouping, positive: Grouping) -> Iterator[Sample]:
    """Yield every pair of a slice of positives and a slice of negatives with the same other columns."""
    columns, free = whole.columns, tuple(c for c in grouping if c not in (*negative, *positive))
    sides = [
        _split(columns, whole.rows[whole.positive == is_positive], (*own, *free))
        for is_positive, own in ((True, positive), (False, negative))
    ]
    names = list(map(user_name, free))
    for ours, rows in sides[0]:
        for theirs, others in sides[1]:
            if all(ours[name] == theirs[name] for name in names):
                key = {user_name(c): {**ours, **theirs}[user_name(c)] for c in grouping}
                yield columns.sample(np.concatenate([rows, others]), whole.run, key)


def _paired_slices(
    whole: Sample, grouping: Grouping, bound: Grouping, told_apart: NDArray[np.bool_]
) -> Iterator[Sample]:
    free = tuple(c for c in grouping if c not in bound)
    others = whole.rows[~told_apart]
    # Bona fide trials have no attack: each slice of an attack is measured against all of them, or against those with the
    # same other columns (an attack in one codec against bona fide trials in that codec).
    shared: dict[tuple[tuple[str, str], ...], Rows] = {(): others}
    if free:
        shared = {tuple(k.items()): rows for k, rows in _split(whole.columns, others, free)}
    nobody = np.zeros(0, dtype=np.intp)
    for key, rows in _split(whole.columns, whole.rows[told_apart], grouping):
        rest = tuple((user_name(c), key[user_name(c)]) for c in free)
        yield whole.columns.sample(np.concatenate([shared.get(rest, nobody), rows]), whole.run, key)


def _split(
    columns: Columns, rows: Rows, names: Grouping, span: Span | None = None
) -> list[tuple[dict[str, str], Rows]]:
    """Split rows by the values of columns of the frame, in the order of the sorted values, with the user's names.

    `span`: the rows, if they are adjacent.
    """
    own = rows if span is None else span
    coded = [columns.codes(name) for name in names]
    code, size = combined((numbers[own], len(distinct)) for numbers, distinct in coded)

    def key(row: int) -> dict[str, str]:
        return {user_name(name): distinct[numbers[row]] for name, (numbers, distinct) in zip(names, coded, strict=True)}

    together = blocks(code, size)
    if together is not None:
        return [(key(rows[part.start]), rows[part]) for _, part in together]
    if size < 2**16:  # small integers are sorted by radix, a byte at a time
        order = np.argsort(code.astype(np.uint8 if size < 2**8 else np.uint16), kind="stable")
        ends = np.cumsum(np.bincount(code, minlength=size)).tolist()
        starts = [0, *ends[:-1]]
    else:
        order = np.argsort(code, kind="stable")
        starts = np.unique(code[order], return_index=True)[1].tolist()
        ends = [*starts[1:], len(order)]
    if span is None:
        order = rows[order]
    elif span.start:
        order += span.start
    return [(key(order[a]), order[a:b]) for a, b in zip(starts, ends, strict=True) if b > a]
