"""Counted shards to trials as `measure` takes them: labels understood, the header written, oddities noted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from hitmiss.core.errors import DataError, UnknownName
from hitmiss.core.trials import Header, Source, Threshold
from hitmiss.engine.counted import TalliedTrials
from hitmiss.io.columns import Reading, same_class, understand
from hitmiss.io.diagnostics import quoted
from hitmiss.io.reader import SATURATED
from hitmiss.scale.cells import ExactCells
from hitmiss.scale.plan import ShardPlan
from hitmiss.scale.tallies import Binned, Cell, ShardTally
from hitmiss.stats.sketch import keys_of, scores_of


def assemble(
    tally: ShardTally, plan: ShardPlan, how: str = "stream", singles: Mapping[Cell, float] = MappingProxyType({})
) -> TalliedTrials:
    """The trials of a merged tally; where it holds bins, they stand for the scores until those are fetched.

    `how` they were counted goes into the header's choices, and so into the signature. `singles`: see `single_scores`.
    """
    if not tally.cells:
        raise DataError("there are no trials to measure")
    reading = _read_words(tally, plan)
    order = sorted(tally.cells)
    binned = [tally.cells[cell] for cell in order]
    notes = (*_unpaired(tally), *_notes(order, binned, plan, reading, singles))
    header = _header(tally, plan, reading, notes, how)
    frame = _frame(order, tally.names, reading)
    size = np.array([b.total for b in binned], dtype=np.int64)
    return TalliedTrials.of_cells(frame, header, size, ExactCells(binned))


def _read_words(tally: ShardTally, plan: ShardPlan) -> Reading:
    """What the labels of all shards mean, understood together."""
    options = plan.options
    words = sorted({cell[0] for cell in tally.cells})
    reading = understand(words, options.positive, options.negative, options.positive_value)
    if reading.problems:
        word = reading.problems[0].word
        n = sum(binned.total for cell, binned in tally.cells.items() if cell[0] == word)
        known = ", ".join((*reading.positive_words, *reading.negative_words)) or "none"
        raise DataError(
            f"{n:,} rows have the label {quoted(word)}, which beside the labels of the other shards names no class; known "
            f"here: {known}. Declare the classes with --positive and --negative, or say --positive-value"
        )
    higher = options.higher
    if higher is not None and not any(same_class(higher, name) for name in (reading.positive, reading.negative)):
        raise UnknownName("class for a higher score", higher, (reading.positive, reading.negative))
    is_turned = higher is not None and same_class(higher, reading.negative) and not same_class(higher, reading.positive)
    if is_turned != plan.turned:
        raise DataError(
            "the first rows of the shards do not show which class is positive; declare it with --positive and --negative"
        )
    return reading


def _frame(order: Sequence[Cell], names: Sequence[str], reading: Reading) -> pl.DataFrame:
    columns: dict[str, Any] = {name: [cell[i] for cell in order] for i, name in enumerate(names)}
    columns["label"] = [int(word in reading.positive_words) for word in columns["label"]]
    if "decision" in columns:
        columns["decision"] = [None if text == "" else int(text) for text in columns["decision"]]
    frame = pl.DataFrame(
        columns, schema_overrides={"label": pl.Int8, "decision": pl.Int8} if "decision" in columns else None
    )
    return frame.with_columns(score=pl.lit(0.0))


def _header(tally: ShardTally, plan: ShardPlan, reading: Reading, notes: tuple[str, ...], how: str) -> Header:
    options = plan.options
    fixed = ("label", "target", "decision", *options.runs)
    choices = [f"{name}({n})" for name, n in sorted(tally.noted.items())]
    if plan.turned:
        choices.append(f"higher:{reading.negative}")
    first = {s.sha256: s for s in reversed(tally.shards)}.values()  # of several systems in a file the first
    shards = [s for s in tally.shards if s in first]
    files = [{"name": s.name, "sha256": s.sha256, "rows": s.rows, "bytes": s.bytes, **s.facts} for s in shards]
    return Header(
        positive=reading.positive,
        negative=reading.negative,
        score_kind=options.kind,
        runs=options.runs,
        slices=tuple(name for name in tally.names if name not in fixed),
        threshold=None if plan.threshold is None else Threshold(plan.threshold, "given"),
        sources=tuple(Source(s.name, s.sha256) for s in shards),
        choices=(*choices, how),
        notes=notes,
        provenance={
            "files": files,
            "rename": {name: dict(values) for name, values in options.rename.items()},
            how: {"plan": tally.plan, "bits": plan.bits},
        },
    )


def _unpaired(tally: ShardTally) -> Iterator[str]:
    """What the door says of files without ids."""
    first = tally.shards[0]
    if first.facts.get("has_ids") is False:
        yield f"{first.name}: unpaired, it has no ids; rows are numbered, and cannot be matched with other files"


def _notes(
    order: Sequence[Cell], binned: Sequence[Binned], plan: ShardPlan, reading: Reading, singles: Mapping[Cell, float]
) -> Iterator[str]:
    """What the door says about trials that are sound but odd (see `io.notes`)."""
    if plan.turned:
        how = "1 - p" if plan.options.score_kind == "probability" else "their sign changed"
        yield f"a higher score meant {reading.negative} in the file: the scores were turned round ({how})"
    positive = sum(b.total for cell, b in zip(order, binned, strict=True) if cell[0] in reading.positive_words)
    n = sum(b.total for b in binned)
    if positive in (0, n):
        name = reading.positive if positive else reading.negative
        yield f"all {n:,} trials are {name}: nothing that compares the classes is defined"
    for run, who, own in _runs(order, binned, plan):
        for note in _score_notes(own, plan, singles.get(run)):
            yield who + note


def _runs(order: Sequence[Cell], binned: Sequence[Binned], plan: ShardPlan) -> Iterator[tuple[Cell, str, list[Binned]]]:
    """The cells of each run, and how a note begins that is about it; systems in the order in which they were named."""
    names = plan.options.runs
    groups: dict[Cell, list[Binned]] = {(system,): [] for system in plan.options.score_columns if len(names) == 1}
    for cell, own in zip(order, binned, strict=True):
        groups.setdefault(cell[1 : 1 + len(names)], []).append(own)
    for run, members in groups.items():
        if members:
            yield run, "".join(f"{name} {value}: " for name, value in zip(names, run, strict=True)), members


def _score_notes(binned: Sequence[Binned], plan: ShardPlan, single: float | None) -> Iterator[str]:
    n = sum(b.total for b in binned)
    ends = [(b.bins[0], b.bins[-1]) for b in binned if len(b.bins)]
    low, high = min(e[0] for e in ends), max(e[1] for e in ends)
    if low == high and plan.is_exact:
        single = scores_of(np.array([low], dtype=np.uint64))[0].item()
    if single is not None and n > 1:
        yield f"all {n:,} scores are {single!r}: they do not tell the classes apart"
    infinite = _count_at(binned, -np.inf) + _count_at(binned, np.inf)
    if infinite:
        yield f"{infinite:,} scores are infinite: metrics of the order are defined, those of the value are not"
    stuck = (_count_at(binned, 0.0) + _count_at(binned, 1.0)) / n
    if plan.options.score_kind == "probability" and stuck > SATURATED:
        yield f"{stuck:.1%} of the probabilities are exactly 0 or 1, so their order is lost; give log-odds if there are any"


def _count_at(binned: Sequence[Binned], score: float) -> int:
    """How many trials have this score. Bins of the infinities, of 0 and (for probabilities) of 1 hold nothing else."""
    key = keys_of([score])[0]
    total = 0
    for b in binned:
        at = int(np.searchsorted(b.bins, key))
        if at < len(b.bins) and b.bins[at] == key:
            total += int(b.each[at])
    return total
