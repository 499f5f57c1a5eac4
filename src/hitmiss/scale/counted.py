"""Counts by score that another program made (see `sql`): read, checked, measured as trials are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hitmiss.core.errors import UsageError
from hitmiss.core.question import Design, Protocol, ReadSpec
from hitmiss.evaluation.protocol import measure_trials
from hitmiss.io.checks import check_labels, check_scores
from hitmiss.io.columns import understand
from hitmiss.io.diagnostics import Ledger, Place, Stop
from hitmiss.io.parse import Table, expand
from hitmiss.io.tables import Stack
from hitmiss.scale.assembling import assemble
from hitmiss.scale.looking import found_columns, is_turned
from hitmiss.scale.plan import Shard, ShardPlan
from hitmiss.scale.reading import Opened, Read, digest, open_shard, pieces
from hitmiss.scale.statements import COUNT
from hitmiss.scale.streaming import (
    Streamed,
    asked_columns,
    asked_design,
    kept_columns,
    read_options,
    refuse_what_needs_trials,
)
from hitmiss.scale.tallies import Binned, Cell, ShardFact, ShardTally, merge_binned, merge_tallies
from hitmiss.stats.sketch import EXACT, keys_of


def evaluate_counts(
    files: Any,
    protocol: str | Path | Protocol | None = None,
    *,
    reading: ReadSpec | Mapping[str, object] | None = None,
    design: Design | None = None,
    **asked: object,
) -> Streamed:
    """As `evaluate_streamed`, for tables with a row a (slice, label, score) and a column `n` that counts its trials."""
    design = design or asked_design(protocol, asked)
    chosen, threshold = design.protocol, design.threshold
    wanted = list(design.metrics) or list(chosen.metrics if chosen else ())
    reads = read_options(chosen, reading)
    columns = asked_columns(design)
    refuse_what_needs_trials(design, wanted, columns, reads)
    if reads.score_columns:
        raise UsageError(
            "a file of counts has one column of scores; name it with --column score=NAME", code="several-scores"
        )
    ledger = Ledger()
    try:
        opened = [open_shard(Shard(str(path)), reads, ledger) for path in expand(files)]
    except Stop:
        raise ledger.error() from None
    keep = kept_columns(opened[0], wanted, found_columns(columns, opened[0]), threshold, reads)
    plan = ShardPlan(reads, keep, EXACT, turned=is_turned(opened, reads), threshold=threshold, ids=False)
    tally = merge_tallies(_read(one, plan, ledger) for one in opened)
    trials = assemble(tally, plan, "counts").retitle(reading=reads)
    return Streamed(measure_trials(trials, design), trials)


def _read(opened: Opened, plan: ShardPlan, ledger: Ledger) -> ShardTally:
    """One file of counts as a tally."""
    picks = opened.match.picks
    has_decision = plan.threshold is not None
    needed = ["label", "score", COUNT, *(name for name in plan.keep if not (name == "decision" and has_decision))]
    absent = [name for name in needed if name not in picks]
    if absent:
        raise UsageError(
            f"{opened.name} has no column {absent[0]!r}; a file of counts has the label, the score, the slices and n (see hitmiss sql)",
            code="missing-column",
        )
    parts: dict[Cell, list[Binned]] = {}
    read = Read()
    try:
        groups = _Groups(opened.name)
        for table in pieces(opened, picks, read, ledger):  # every column: rows may differ in one that is not asked for
            groups.add(table)
            frame = checked_counts(Stack.of([table], opened.match.theirs), plan.options, ledger)
            if not ledger.findings:
                add_counts(frame, plan, parts)
        groups.refuse_repeated(ledger)
    except Stop:
        pass
    if ledger.findings:
        raise ledger.error()
    sha, size = digest(opened.shard.path)
    fact = ShardFact(opened.name, sha, read.rows, size, {"layout": "counts", "columns": dict(opened.match.theirs)})
    cells = {cell: merge_binned(binned) for cell, binned in parts.items()}
    return ShardTally(plan.fingerprint, ("label", *plan.keep), (fact,), cells)


class _Groups:
    """The groups that were counted: a GROUP BY has each of them in one row."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._hashes: list[pl.Series] = []
        self._tables: list[Table] = []

    def add(self, table: Table) -> None:
        """Note the groups of some rows."""
        self._hashes.append(table.frame.drop(COUNT).hash_rows())
        self._tables.append(replace(table, frame=table.frame.select(COUNT)))

    def refuse_repeated(self, ledger: Ledger) -> None:
        """Two rows for one group: counts were put together twice, or never added up."""
        hashes = pl.concat(self._hashes)
        if hashes.n_unique() == len(hashes):
            return
        lines = [table.line(row) for table in self._tables for row in range(table.frame.height)]
        places = [Place(self._file, lines[row]) for row in hashes.is_duplicated().arg_true()]
        what = "{n} row{s} of groups that are counted in another row too"
        ledger.add(
            "repeated-group", what, "take out what is there twice, or add up the counts of each group first", places
        )


def checked_counts(stack: Stack, options: ReadSpec, ledger: Ledger) -> pl.DataFrame:
    """Rows of counts with faults found, and values put in other words where that is asked for."""
    for name, values in options.rename.items():
        if name in stack.frame.columns:
            stack = stack.put(pl.col(name).replace(dict(values)))
    stack = check_scores(stack, options, ledger)
    words = sorted(stack.frame["label"].unique().to_list())
    reading = understand(words, options.positive, options.negative, options.positive_value)
    if reading.problems:
        check_labels(stack, "label", reading, ledger)
    counts = stack.frame[COUNT].cast(pl.Float64, strict=False)
    wrong = counts.is_null() | (counts <= 0) | (counts != counts.floor()) | (counts >= 2**53)
    if wrong.any():
        places = [Place(p.file, p.row, p.value) for p in stack.places(wrong, COUNT)]
        ledger.add(
            "bad-count",
            "{n} row{s} with a count that is no whole number above 0",
            "fix them",
            places,
            stack.title(COUNT),
        )
    return stack.frame.with_columns(counts.alias(COUNT))


def add_counts(frame: pl.DataFrame, plan: ShardPlan, parts: dict[Cell, list[Binned]]) -> None:
    """Put rows of counts into the cells that they belong to."""
    if plan.options.nan_rule != "refuse":
        frame = frame.filter(pl.col("score").is_not_nan())
    if plan.turned:
        is_probability = plan.options.score_kind == "probability"
        frame = frame.with_columns(score=1 - pl.col("score") if is_probability else -pl.col("score"))
    if "decision" in plan.keep and plan.threshold is not None:
        said = pl.when(pl.col("score") >= plan.threshold).then(pl.lit("1")).otherwise(pl.lit("0"))
        frame = frame.with_columns(decision=said)
    for key, group in frame.group_by(["label", *plan.keep], maintain_order=True):
        keys = keys_of(group["score"].to_numpy())
        order = np.argsort(keys, kind="stable")
        counts = group[COUNT].to_numpy().astype(np.int64)[order]
        first = np.append(True, keys[order][1:] != keys[order][:-1])
        binned = Binned(keys[order][first], np.add.reduceat(counts, np.flatnonzero(first)))
        parts.setdefault(tuple(str(v) for v in key), []).append(binned)
