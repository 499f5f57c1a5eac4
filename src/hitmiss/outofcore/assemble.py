"""From counted shards to trials for `measure`: interpret labels, write the header, note unusual data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hitmiss.core.classes import Reading
from hitmiss.core.columns import SYSTEM, find_column
from hitmiss.core.errors import DataError, UnknownName
from hitmiss.core.header import Header, Source, Threshold
from hitmiss.core.score_keys import keys_of, scores_of
from hitmiss.core.text import quoted
from hitmiss.derive.decisions import describe_threshold
from hitmiss.engine.counted import TalliedTrials
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.labels import Words, check_labels
from hitmiss.io.loaded import LoadedRows
from hitmiss.io.reader import unpaired_note
from hitmiss.io.scores import is_reversed, note_oddities, refuse_other_direction, reversed_note
from hitmiss.io.source import Table
from hitmiss.outofcore.binned import KeptKeys
from hitmiss.outofcore.coarse_cells import CoarseCells
from hitmiss.outofcore.counting import RANGE, words_of
from hitmiss.outofcore.exact_cells import ExactCells
from hitmiss.outofcore.plan import ShardPlan
from hitmiss.outofcore.shard_tally import Cell, ShardTally
from hitmiss.outofcore.units import UnitRuns
from hitmiss.stats import sketch
from hitmiss.stats.forms.base import Form


def assemble(
    tally: ShardTally,
    plan: ShardPlan,
    how: str,
    forms: Sequence[Form] | None = None,
    memory: int = 0,
    units: UnitRuns | None = None,
) -> TalliedTrials:
    """Return the trials of a merged tally. `how` they were counted goes into the header's choices and the signature.

    `forms` are those of the metrics that will be measured, if not every score is needed to draw replicates. `units` has
    the trials with their units, if they were counted without.
    """
    if not tally.cells:
        raise DataError.of("no-trials")
    tally, chosen = keep_cells(tally, plan)
    words = _read_words(tally, plan)
    order = sorted(tally.cells)
    kept = [tally.cells[cell] for cell in order]
    header = _header(tally, plan, words["label"], how)
    frame = _frame(order, words, plan)
    notes = _notes(tally, kept, frame, header, plan)
    header = replace(header, notes=tuple(notes), choices=(*chosen, *header.choices))
    size = np.array([one.total for one in kept], dtype=np.int64)
    is_short = forms is not None and tally.n > sketch.LARGE
    scored = CoarseCells(kept, tuple(forms or ()), memory) if is_short else ExactCells(kept)  # type: ignore[arg-type]
    trials = TalliedTrials.of_cells(frame, header, size, scored)
    return trials if units is None else units.spread(trials, order)


def _read_words(tally: ShardTally, plan: ShardPlan) -> Words:
    """Interpret the labels of all shards together."""
    options = plan.options
    own = plan.cells.index("decision") if "decision" in plan.cells else None
    decisions = () if own is None else {cell[own] for cell in tally.cells}
    words = words_of({cell[0] for cell in tally.cells}, decisions, plan)
    reading = words["label"]
    if reading.choices:
        raise reading.refusal(", or once for all commands with `hitmiss init FILE`")
    if reading.problems:
        word = reading.problems[0].word
        n = sum(binned.total for cell, binned in tally.cells.items() if cell[0] == word)
        known = ", ".join((*reading.positive_words, *reading.negative_words)) or "none"
        raise DataError.of("labels-name-no-class/shards", n=n, word=quoted(word), known=known)
    columns = tally.shards[0].facts.get("columns") if tally.shards else None
    if options.higher is None:
        refuse_other_direction(str(columns.get("score", "")) if isinstance(columns, Mapping) else "", reading)
    if (options.higher is not None and is_reversed(reading, options.higher)) != plan.turned:
        raise DataError.of("which-class/shards")
    return words


def _frame(order: Sequence[Cell], words: Words, plan: ShardPlan) -> pl.DataFrame:
    """Return the cells as a table, with labels and decisions as numbers."""
    cells = pl.DataFrame(order, dict.fromkeys(plan.cells, pl.String), orient="row")
    stack = check_labels(LoadedRows.of([Table("", cells)], {}), "label", words["label"], Diagnostics())
    if plan.decides:
        stack = stack.put(pl.col("decision").cast(pl.Int8))
    elif "decision" in plan.cells:
        stack = check_labels(stack, "decision", words["decision"], Diagnostics(), plan.options.abstain)
    return stack.frame.with_columns(score=pl.lit(0.0))


def _header(tally: ShardTally, plan: ShardPlan, reading: Reading, how: str) -> Header:
    options = plan.options
    fixed = ("label", "target", "decision", *options.runs)
    choices = [f"{name}({n})" for name, n in sorted(tally.noted.items())]
    if plan.turned:
        choices.append(f"higher:{reading.negative}")
    shards = tally.shards
    files = [{"name": s.name, "sha256": s.sha256, "rows": s.rows, "bytes": s.bytes, **s.facts} for s in shards]
    files = [{name: fact for name, fact in one.items() if name != RANGE} for one in files]  # no id of a trial is kept
    sources = [Source(s.name, s.sha256) for s in shards]
    if plan.key is not None:
        keys = [Source(Path(path).name, sha) for path, sha in zip(plan.key.paths, plan.key.sha256, strict=True)]
        sources, files = sources + keys, files + [{"name": k.name, "sha256": k.sha256, "role": "key"} for k in keys]
    bound = None if plan.threshold is None else Threshold(plan.threshold, "given")
    header = Header(
        positive=reading.positive,
        negative=reading.negative,
        settled=reading.settled,
        score_kind=options.kind,
        runs=options.runs,
        slices=tuple(name for name in plan.cells if name not in fixed),
        threshold=bound,
        scale=plan.scale,
        sources=tuple(sources),
        choices=(*choices, how),
        provenance={
            "files": files,
            "rename": {name: dict(values) for name, values in options.rename.items()},
        },
    )
    return header if bound is None else replace(header, decided=describe_threshold(bound, header))


def _notes(
    tally: ShardTally, kept: Sequence[KeptKeys], frame: pl.DataFrame, header: Header, plan: ShardPlan
) -> list[str]:
    """Return the reader's notes about trials that are valid but unusual."""
    first, ledger = tally.shards[0], Diagnostics()
    if first.facts.get("has_ids") is False:
        ledger.notes.append(unpaired_note(first.name))
    if plan.turned:
        ledger.notes.append(reversed_note(header))
    ends = scores_of(np.array([one.ends for one in kept], dtype=np.uint64))
    inf, edges = (
        [sum(one.between(k, k).total for k in keys_of(at)) for one in kept] for at in ((-np.inf, np.inf), (0.0, 1.0))
    )
    named: dict[str, Any] = {
        ":low": ends[:, 0],
        ":high": ends[:, 1],
        ":inf": inf,
        ":at": edges,
        ":n": [one.total for one in kept],
    }
    table = frame.with_columns(pl.Series(name, values) for name, values in named.items())
    if plan.options.score_columns:  # systems in the order in which they were named
        place = {system: at for at, system in enumerate(plan.options.score_columns)}
        table = table.sort(pl.col(SYSTEM).replace_strict(place))
    n = pl.col(":n")
    facts = (
        pl.col(":low").min(),
        pl.col(":high").max(),
        pl.col(":inf").sum(),
        (pl.col(":at").sum() / n.sum()).alias(":ends"),
        n.sum(),
    )
    note_oddities(table, header, ledger, facts, n)
    return ledger.notes


def keep_cells(tally: ShardTally, plan: ShardPlan) -> tuple[ShardTally, list[str]]:
    """Return the cells that `where` keeps, and its entry in the signature.

    Trials are first counted by the columns of `where`, then selected.
    """
    cells, options, said = tally.cells, plan.options, list[str]()
    for name, values in options.where.items():
        column = find_column(name, plan.cells) or name
        at, renamed = plan.cells.index(column), options.rename.get(column, {})
        wanted, known = {*values, *(renamed.get(v, v) for v in values)}, {*(cell[at] for cell in cells), *renamed}
        unknown = [value for value in values if value not in known]
        if unknown:
            raise UnknownName(f"value of {name}", unknown[0], sorted(known)[:20])
        whole = sum(cell.total for cell in cells.values())
        cells = {cell: own for cell, own in cells.items() if cell[at] in wanted}
        n = sum(cell.total for cell in cells.values())
        if not n:
            raise DataError.of("no-rows/where", name=name, values_2=values[0])
        said.append(f"where:{name}={' & '.join(values)}({n}/{whole})")
    return (replace(tally, cells=cells) if options.where else tally), said
