"""One pass over a shard.

Rows are examined one by one only if the counts show a problem (a NaN score, a label that is not understood): then the
file is read again as text, and the reader's own checks report what is wrong and where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import polars as pl

from hitmiss.core import progress
from hitmiss.core.finding import Place
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.score_keys import keys_of
from hitmiss.io.blocks import digest
from hitmiss.io.cells import read_cells, score_rules
from hitmiss.io.checks import (
    check_ids,
)
from hitmiss.io.diagnostics import Diagnostics, Stop
from hitmiss.io.labels import Words, check_labels, read_words
from hitmiss.io.loaded import LoadedRows
from hitmiss.io.reader import normalise_values
from hitmiss.io.scores import worst_scores
from hitmiss.io.source import Table
from hitmiss.outofcore.binned import NOTHING, Binned, merge_binned
from hitmiss.outofcore.engines import COUNT, ENGINES, Piece, ShardReader, group_hashes, wrong_counts
from hitmiss.outofcore.executors import Executor, sequential
from hitmiss.outofcore.plan import Shard, ShardPlan
from hitmiss.outofcore.shard_tally import Cell, ShardFact, ShardTally, cells_of, merge_tallies

RANGE: Final = "ids"
"""The fact about a shard that its ids ascend, from the first to the last."""
ENOUGH_FAULTS: Final = 1000
"""The number of faults after which a shard is not read any further."""
Counter = Callable[[Shard, ShardPlan], Iterator[ShardTally]]


def count(shard: Shard, plan: ShardPlan) -> Iterator[ShardTally]:
    """Count a shard piece by piece. The last tally says which file it was, and holds the faults."""
    ledger, fact = Diagnostics(), ShardFact(shard.name, "", 0, 0)
    cells, noted, unlisted = dict[Cell, Binned](), dict[str, int](), list[Place]()
    with suppress(Stop):
        sheet, quick = ShardReader(shard, plan, ledger), Diagnostics()
        seen, match, unlisted = Counting(plan, sheet.late), sheet.opened.match, sheet.unlisted
        facts: dict[str, Any] = {"layout": match.layout, "columns": dict(match.theirs)}
        facts |= {"layout": "counts"} if plan.is_counted else {"has_ids": "item" in match.picks}
        fact = replace(fact, facts=facts)
        with suppress(Stop):
            for piece in ENGINES[plan.engine](sheet, quick):
                yield ShardTally((), seen.cells(piece), seen.ids(piece))
        if quick.findings or seen.is_odd or seen.is_unclear or seen.repeated is not None:
            look_closely(sheet, seen, ledger)
            ledger.findings = ledger.findings or quick.findings
        rows = sheet.opened.trials if sheet.opened.is_parquet else sheet.read.rows
        sha, size = digest(shard.path) if sheet.opened.is_parquet else (sheet.read.sha256, sheet.read.bytes)
        fact = replace(fact, rows=rows, sha256=sha, bytes=size, facts={**fact.facts, **seen.range})
        if not rows and not ledger.findings:
            raise ledger.stop("empty-file/header", [Place(fact.name, 1)])
        cells, noted = ({}, {}) if ledger.findings else seen.lost()
    yield ShardTally((fact,), cells, None, tuple(ledger.findings), noted, tuple(unlisted))


def tallies(
    shards: Sequence[Shard], plan: ShardPlan, run: Executor, counter: Counter = count, step: str = "shards counted"
) -> Iterator[ShardTally]:
    """Yield the tallies of all shards: piece by piece if they are counted here, else one per shard."""
    found = None if run is sequential else run(first_pass, [(shard, plan, counter) for shard in shards])
    for shard in progress.each(shards, step):
        yield from counter(shard, plan) if found is None else [next(found)]


def first_pass(shard: Shard, plan: ShardPlan, counter: Counter = count) -> ShardTally:
    """Count every trial of a shard: per cell, how many have each score. Faults are in the tally's findings."""
    return merge_tallies(counter(shard, plan))


class Counting:
    """The trials of one table counted, and what the rows show beside: words, scores that are missing, ids in order."""

    def __init__(self, plan: ShardPlan, late: ReadSpec) -> None:
        self.plan, self._late, self.is_odd, self.is_out_of_order = plan, late, False, False
        self._words: dict[str, set[str]] = {"label": set(), "decision": set()}
        self._lost: dict[Cell, int] = {}
        self._groups: list[pl.Series] = []
        self._ends: tuple[str, str] | None = None

    def cells(self, piece: Piece) -> dict[Cell, Binned]:
        """Return the scores of each cell, turned so that a higher one means positive."""
        plan, score, code = self.plan, piece.score, piece.code
        self.is_odd |= piece.is_odd
        cells = normalise_values(LoadedRows.of([Table("", piece.cells.cast(pl.String))], {}), self._late).frame.rows()
        values = score.to_numpy()
        if plan.are_probabilities:
            self.is_odd |= bool(((values < 0) | (values > 1)).any())
        values = plan.scale.turned(values)
        if plan.decides:
            at = plan.cells.index("decision")
            cells = [(*cell[:at], said, *cell[at:]) for cell in cells for said in "01"]
            code = 2 * code + plan.scale.accepts(values, plan.threshold or 0.0)
        for name in self._words.keys() & set(plan.cells):
            self._words[name] |= {cell[plan.cells.index(name)] for cell in cells}
        nan, counts = np.isnan(values), None if piece.counts is None else piece.counts.to_numpy()
        if nan.any():
            self.is_odd |= plan.options.nan_rule == "refuse" or bool(score.null_count())
            lost = np.bincount(code[nan], None if counts is None else counts[nan], minlength=len(cells))
            for cell, n in zip(cells, lost.astype(int).tolist(), strict=True):
                self._lost[cell] = self._lost.get(cell, 0) + n
            values, code, counts = values[~nan], code[~nan], None if counts is None else counts[~nan]
        return cells_of(cells, code, values, counts)

    def ids(self, piece: Piece) -> Binned | None:
        """Return the hashes of ids; nothing of ids that could ascend, since then none of them repeats."""
        ids = piece.ids
        if ids is None or not len(ids):
            return None
        if self.plan.is_counted:
            self._groups.append(ids)
        elif ids.dtype == pl.UInt64:
            return Binned(ids.to_numpy(), is_sorted=False)
        elif not self.is_out_of_order:
            follows = self._ends is None or ids[0] > self._ends[1]
            self.is_out_of_order = not (follows and (ids[1:] > ids[:-1]).all())
            self._ends = ids[0] if self._ends is None else self._ends[0], ids[-1]
        return None

    @property
    def range(self) -> dict[str, tuple[str, str]]:
        """The first and the last id if all ascend."""
        return {RANGE: self._ends} if self._ends is not None and not self.is_out_of_order else {}

    @property
    def repeated(self) -> pl.Series | None:
        """The hashes of groups that are counted in more than one row; None if there are none."""
        groups = pl.concat(self._groups) if self._groups else pl.Series(dtype=pl.UInt64)
        return None if groups.n_unique() == len(groups) else groups.filter(groups.is_duplicated()).unique()

    @cached_property
    def words(self) -> Words:
        """The meaning of the words, when all have been seen."""
        return words_of(self._words["label"], self._words["decision"], self.plan)

    @property
    def is_unclear(self) -> bool:
        """Whether some word names no class."""
        return any(one.problems for one in self.words.values())

    def lost(self) -> tuple[dict[Cell, Binned], dict[str, int]]:
        """Return the trials without a score as the caller wants them counted, and what to note about them."""
        rule, n, plan = self.plan.options.nan_rule, sum(self._lost.values()), self.plan
        if rule != "worst" or not n:
            return {}, {f"on-nan:{rule}": n} if n else {}
        low, high = worst_scores(plan.options.score_kind)
        found: dict[Cell, Binned] = {}
        for cell, own in self._lost.items():
            score = low if cell[0] in self.words["label"].positive_words else high
            if plan.decides:
                at = plan.cells.index("decision")
                cell = (*cell[:at], "01"[bool(plan.scale.accepts(score, plan.threshold or 0.0))], *cell[at + 1 :])
            found[cell] = merge_binned([found.get(cell, NOTHING), Binned(keys_of([score]), np.array([own]))])
        return {cell: one for cell, one in found.items() if one.total}, {f"on-nan:{rule}": n}


def look_closely(sheet: ShardReader, seen: Counting, ledger: Diagnostics) -> None:
    """Read a shard like the in-memory reader, with its checks; faults go into the ledger, with their rows."""
    options, repeated = sheet.plan.options, seen.repeated
    for stack in sheet.stacks(ledger, options):
        if repeated is not None:
            again = group_hashes(stack).is_in(repeated.implode())
            ledger.add("repeated-group", [Place(p.file, p.row) for p in stack.places(again)])
        if "item" in stack.frame.columns:
            check_ids(stack, ledger)
        stack = read_cells(stack, score_rules(stack.frame), options, ledger)
        if sheet.plan.is_counted:
            check_counts(stack, ledger)
        if sheet.key is not None:
            stack = sheet.key.joined(stack, sheet.key.rows_of(stack.frame), options, ledger)
            stack = stack.put(pl.col(pl.Categorical).cast(pl.String))
        for name in [n for n in seen.words if n in stack.frame.columns and seen.is_unclear]:
            check_labels(stack, name, seen.words[name], ledger, options.abstain)
        if sum(len(f.places) for f in ledger.findings) >= ENOUGH_FAULTS:
            break


def check_counts(stack: LoadedRows, ledger: Diagnostics) -> None:
    """Report counts that are none."""
    places = [Place(p.file, p.row, p.value) for p in stack.places(wrong_counts(stack.frame), COUNT)]
    ledger.add("bad-count/rows", places, stack.title(COUNT))


def words_of(labels: Iterable[str], decisions: Iterable[str], plan: ShardPlan) -> Words:
    """Return the meaning of the words of labels and decisions; decisions at a threshold are our own words."""
    return read_words(sorted(labels), sorted(decisions) if plan.threshold is None else (), plan.options)
