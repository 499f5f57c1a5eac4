"""Trials in a table of Spark or DuckDB: the engine counts them there, and only the counts are transferred."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

import numpy as np
import polars as pl

from hitmiss.core.columns import find_column
from hitmiss.core.design import Design
from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Finding, Place
from hitmiss.core.read_spec import ReadSpec
from hitmiss.engine.natural_unit import natural_candidates
from hitmiss.evaluation.protocol import measure_trials
from hitmiss.io.addresses import TableAddress
from hitmiss.io.aliases import says_probability
from hitmiss.io.cells import read_cells, score_rules, to_numbers
from hitmiss.io.columns import Match, Role, recognise, refuse_undeclared
from hitmiss.io.diagnostics import Diagnostics, FaultGroup, Stop
from hitmiss.io.frames import INEXACT, as_text_or_numbers, head_of, may_be_inexact
from hitmiss.io.join import SHOWN_IDS, conflict, differing, no_common_id, refuse_missing
from hitmiss.io.labels import check_labels, understand
from hitmiss.io.loaded import LoadedRows
from hitmiss.io.reader import normalise_values as settle_stack
from hitmiss.io.source import SourceHead, Table
from hitmiss.outofcore.assemble import assemble
from hitmiss.outofcore.counting import Counting
from hitmiss.outofcore.coverage import KeyCoverage
from hitmiss.outofcore.databases import Query, open_duckdb, open_spark
from hitmiss.outofcore.engines import COUNT, Piece, sql_name, sql_text
from hitmiss.outofcore.plan import Shard, ShardPlan
from hitmiss.outofcore.shard_tally import ShardFact, ShardTally, cell_codes, merge_tallies
from hitmiss.outofcore.shards import OpenedShard, found_columns, is_negated
from hitmiss.outofcore.statements import (
    KEY,
    SCORE,
    SCORES,
    Pair,
    compiled,
    counts_of,
    repeats_statement,
    score_of,
    source_of,
    text_of,
)
from hitmiss.outofcore.stream import (
    MEMORY,
    Streamed,
    asked_design,
    covered,
    kept_columns,
    read_options,
    refuse_what_needs_trials,
)

LOOK: Final = 100
"""Rows that are inspected before anything is counted."""
ROW_BYTES: Final = 56
"""The memory per row of counts: its cell, its score and its count, and the key of its score."""
FAULTS: Final = 1000
"""Rows with a fault that are fetched; more would add no information."""


def evaluate_table(
    address: TableAddress,
    *,
    key: TableAddress | None = None,
    reading: ReadSpec | Mapping[str, object] | None = None,
    design: Design | None = None,
    memory: int = MEMORY,
    **asked: object,
) -> Streamed:
    """Evaluate like `evaluate_streamed`, for a table that Spark or DuckDB counts.

    Parameters
    ----------
    address
            The address of the table, from `table_of`.
    key
            The address of the table with the labels, if the first one has only scores; the engine joins them.
    reading, design, asked
        As in `evaluate_streamed`.
    memory
            Bound (in bytes) on the counts that are transferred.

    Returns
    -------
    Streamed
        The numbers, and the counted trials behind them.

    Raises
    ------
    DataError
            For NaN scores, unknown labels, repeated ids and ids that only one table has, with the ids; for anything that
            the engine refuses to read.
    UsageError
            For numbers that cannot be computed from counts.
    """
    design = design or asked_design(None, asked)
    wanted = list(design.metrics) or list(design.protocol.metrics if design.protocol else ())
    reads, ledger = read_options(design.protocol, reading), Diagnostics()
    columns = list(dict.fromkeys((*design.columns, *reads.where)))
    refuse_what_needs_trials(design, wanted, columns, reads)
    if reads.score_columns:
        raise UsageError.of("several-scores/table")
    if key is not None and (key.engine, key.place) != (address.engine, address.place):
        raise UsageError.of("other-database")
    with (open_spark if address.engine == "spark" else open_duckdb)(address.place) as query:
        asking = _Asking(query, address, source_of(address.table, address.engine))
        try:
            opened = asking.look(reads, ledger, "both" if key is None else "scores")
            if key is not None:
                listing = _Asking(query, key, source_of(key.table, key.engine))
                asking, opened, covering = _joined(asking, opened, listing, reads, ledger)
        except Stop:
            raise ledger.error() from None
        there = opened.match.picks
        natural = [unit for unit in natural_candidates(design) if all(find_column(name, there) for name in unit)]
        columns = found_columns([*columns, *(name for unit in natural for name in unit)], there)
        keep = kept_columns(there, wanted, columns, design.threshold, reads)
        bounded = says_probability(opened.match.theirs.get(SCORE, ""), reads.score_kind)
        plan = ShardPlan(
            reads,
            keep,
            turned=is_negated([opened], reads),
            threshold=design.threshold,
            ids=False,
            are_probabilities=bounded,
        )
        tally = asking.tally(opened.match, plan, memory)
    if tally.findings:
        raise Diagnostics(list(tally.findings)).error()
    trials = assemble(tally, plan, "stream").retitle(reading=reads)
    trials = trials.retitle(notes=(*dict.fromkeys(ledger.notes), *trials.header.notes))
    if key is not None:
        files = [*cast(list[object], trials.header.provenance["files"]), {"name": key.name, "role": "key"}]
        trials = covered(trials, covering).retitle(provenance={**trials.header.provenance, "files": files})
    return Streamed(measure_trials(trials, design), trials)


@dataclass(frozen=True)
class _Asking:
    """The questions that are sent to a table."""

    query: Query
    address: TableAddress
    source: str
    key: str | None = None
    """The name of the table with the labels, if the source is a join with one."""

    def look(self, options: ReadSpec, ledger: Diagnostics, role: Role = "both") -> OpenedShard:
        """Recognise the table's columns like those of a file."""
        frame = self._answer(f"SELECT * FROM {self.source} LIMIT {LOOK}")
        name = self.address.name
        if not frame.height:
            raise ledger.stop("empty-file/table", [Place(name)])
        shape = SourceHead(name, head_of(frame), tuple(frame.columns), frame=frame)
        match = recognise(shape, role, options, ledger)
        if role == "both":
            refuse_undeclared(options, tuple(frame.columns), name, ledger)
        names = {ours: frame.columns[at] for ours, at in match.picks.items()}
        return OpenedShard(Shard(name), shape, replace(match, theirs=names))

    def tally(self, match: Match, plan: ShardPlan, memory: int) -> ShardTally:
        """Return the counts, checked."""
        cells = plan.read_cells
        identity = _identity(match, plan.options.runs)
        if self.key is None:  # of two tables each was asked before
            self.refuse_repeats(identity)
        most = max(memory // ROW_BYTES, 10**6)
        frame = self._answer(f"{counts_of(match.theirs, cells, self.source)}\nLIMIT {most + 1}")
        if frame.height > most:
            raise UsageError.of("needs-more-memory", table=self.address.table, most=most)
        frame = _plain(frame, cells)
        self._refuse_faults(frame, match.theirs, plan.options)
        seen, ledger = Counting(plan, plan.options), Diagnostics()
        code, own = cell_codes(frame, cells)
        found = seen.cells(Piece(own, code, frame[SCORE], frame[COUNT]))
        if seen.is_odd:
            rows_read = LoadedRows.of([Table(self.address.name, frame)], match.theirs)
            read_cells(rows_read, score_rules(frame), plan.options, ledger)
        facts = {"layout": self.address.engine, "columns": dict(match.theirs), "has_ids": bool(identity)}
        rows = int(frame[COUNT].sum())
        fact = ShardFact(self.address.name, _digest(frame), rows, 0, facts)
        findings = tuple(map(_without_rows, ledger.findings))
        lost, noted = seen.lost()
        parts = [ShardTally((), cells) for cells in (found, lost)]
        return merge_tallies([*parts, ShardTally((fact,), {}, None, findings, noted)])

    def refuse_repeats(self, identity: Mapping[str, str], *, is_key: bool = False) -> None:
        if not identity:
            return
        asked = repeats_statement(self.address.table, identity, dialect=self.address.engine)
        found = self.query(f"{asked} LIMIT {FAULTS}")
        if found.height:
            code = "duplicate-in-key/table" if is_key else "duplicate-id/table"
            how = "that the table has more than once" if found["item"][0] else "repeated or empty"
            places = [Place(self.address.name, item=str(item or "")) for item in found["item"]]
            ledger = Diagnostics()
            ledger.add(code, places, identity["item"], how=how)
            raise ledger.error()

    def _refuse_faults(self, frame: pl.DataFrame, columns: Mapping[str, str], options: ReadSpec) -> None:
        """Refuse NaN scores and unknown labels, with the ids of their trials."""
        told = understand(sorted(frame["label"].unique()), options.positive, options.negative, options.positive_value)
        words = [problem.word for problem in told.problems]
        has_nan = options.nan_rule == "refuse" and frame[SCORE].is_nan().any()
        lost = self._lost_digits(columns[SCORE]) if may_be_inexact(frame[SCORE]) else []
        if not (words or has_nan or lost):
            return
        names = dict.fromkeys(("item", "label", SCORE))
        shown_columns = {n: columns[n] for n in names if n in columns}
        score = score_of(columns[SCORE])
        bad = [f"{score} IS NULL OR ISNAN({score})"] if has_nan else []
        bad += [f"{text_of(columns['label'])} IN ({', '.join(map(sql_text, words))})"] if words else []
        bad += [f"{text_of(columns[SCORE])} IN ({', '.join(map(sql_text, lost))})"] if lost else []
        selected = ", ".join(f"{sql_name(theirs)} AS {sql_name(ours)}" for ours, theirs in shown_columns.items())
        found = self._answer(f"SELECT {selected} FROM {self.source} WHERE {' OR '.join(bad)} LIMIT {FAULTS}")
        found = pl.DataFrame([as_text_or_numbers(column, column.name == SCORE) for column in found])
        ledger = Diagnostics()
        rows_read = LoadedRows.of([Table(self.address.name, found)], shown_columns)
        read_cells(rows_read, score_rules(found), options, ledger)
        if words:
            labels = LoadedRows.of([Table(self.key or self.address.name, found)], shown_columns)
            check_labels(labels, "label", told, ledger)
        ledger.findings = [_without_rows(finding) for finding in ledger.findings]
        raise ledger.error()

    def _lost_digits(self, column: str) -> list[str]:
        """Return whole numbers, some of them, that the cast to floats rounds: distinct ones could then tie."""
        asked = f"{text_of(column)} AS {sql_name(SCORE)} FROM {self.source} WHERE ABS({score_of(column)}) >= {INEXACT}"
        texts = self._answer(f"SELECT DISTINCT {asked}")[SCORE]
        return sorted(texts.filter(to_numbers(texts)[1]))[:FAULTS]

    def places(self, plain: str) -> tuple[list[Place], int]:
        """Return where the ids are that a statement finds, some of them, and how many there are."""
        n = int(self._answer(f'SELECT COUNT(*) AS {sql_name(COUNT)} FROM ({plain}) AS "hitmiss_found"')[COUNT][0])
        found = self._answer(f"{plain} LIMIT {FAULTS}")["item"].to_list() if n else []
        return [Place(self.address.name, item=str(item)) for item in sorted(found)], n

    def _answer(self, plain: str) -> pl.DataFrame:
        return self.query(compiled(plain, self.address.engine))


def _identity(match: Match, runs: Sequence[str] = ()) -> dict[str, str]:
    """Return the table's columns that identify a trial; nothing without ids."""
    named = [name for name in ("item", "target", *runs) if name in match.picks]
    return {name: match.theirs[name] for name in named if "item" in named}


def _joined(
    scores: _Asking, opened: OpenedShard, key: _Asking, options: ReadSpec, ledger: Diagnostics
) -> tuple[_Asking, OpenedShard, KeyCoverage]:
    """Return the trials that both tables have as a table, its columns, and how much of the key is scored."""
    listed = key.look(options.for_key, ledger, "key")
    ours, theirs = opened.match, listed.match
    refuse_undeclared(options, (*(opened.shape.names or ()), *(listed.shape.names or ())), scores.address.name, ledger)
    if set(options.runs):
        raise UsageError.of("key-of-runs")
    on = {n: (ours.theirs[n], theirs.theirs[n]) for n in ("item", "target") if n in ours.picks and n in theirs.picks}
    pair = Pair(scores.source, key.source, on)
    for asking, match, is_key in ((scores, ours, False), (key, theirs, True)):
        asking.refuse_repeats(_identity(match), is_key=is_key)
        if len(on) < len(_identity(match)):  # trials of several targets, and the other table does not say which
            asking.refuse_repeats({"item": match.theirs["item"]}, is_key=is_key)
    absent, n_absent = key.places(pair.alone(KEY))
    extra, n_extra = scores.places(pair.alone(SCORES))
    total = int(key._answer(f"SELECT COUNT(*) AS {sql_name(COUNT)} FROM {key.source}")[COUNT][0])
    if n_absent == total:
        no_common_id([p.item or "" for p in extra], [p.item or "" for p in absent], [extra[0], absent[0]], ledger)
    elif not options.allow_missing:
        refuse_missing(extra, absent, on["item"][0], ledger, (n_extra, n_absent))
    shared = [name for name in theirs.picks if name in ours.picks and name not in ("item", *on)]
    for name in [] if ledger.findings else shared:
        _refuse_conflict(scores, pair, name, (ours.theirs[name], theirs.theirs[name]), options, ledger)
    if ledger.findings:
        ledger.findings = list(map(_by_a_view, ledger.findings))
        raise ledger.error()
    taken = {name: (SCORES, own) for name, own in ours.theirs.items()}
    taken |= {name: (KEY, own) for name, own in theirs.theirs.items() if name not in on}
    # the joined table has our names; its labels are those of the first rows of the key
    match = replace(theirs, theirs={name: name for name in taken}, picks={**dict.fromkeys(taken, 0), **theirs.picks})
    both = replace(scores, source=pair.joined(taken), key=key.address.name)
    first = tuple(tuple(place.item or "" for place in side[:SHOWN_IDS]) for side in (extra, absent))
    return both, replace(listed, match=match), KeyCoverage(total - n_absent, total, n_extra, (first[0], first[1]))


def _refuse_conflict(
    scores: _Asking, pair: Pair, name: str, columns: tuple[str, str], options: ReadSpec, ledger: Diagnostics
) -> None:
    """Refuse trials for which a column that both tables have says something else in the key."""
    a, b = (sql_name(letter) for letter in "ab")
    both = pair.joined({"item": (SCORES, pair.on["item"][0]), "a": (SCORES, columns[0]), "b": (KEY, columns[1])})
    differ = f"{text_of('a')} <> {text_of('b')}"
    found = scores._answer(
        f"SELECT DISTINCT {text_of('a')} AS {a}, {text_of('b')} AS {b} FROM {both} WHERE {differ} LIMIT {FAULTS}"
    )
    sides = [
        settle_stack(LoadedRows.of([Table("", found.select(pl.col(c).alias(name)))], {}), options).frame[name]
        for c in "ab"
    ]
    wrong = found.filter(differing(sides[0], sides[1], options)[0]).rows()
    if not wrong:
        return
    pairs = " OR ".join(f"({text_of('a')} = {sql_text(x)} AND {text_of('b')} = {sql_text(y)})" for x, y in wrong)
    places, n = scores.places(f'SELECT {text_of("item")} AS "item" FROM {both} WHERE {pairs}')
    conflict(places, n, name, columns[0], ledger)


def _by_a_view(finding: FaultGroup) -> FaultGroup:
    """Return a finding whose hint on ids that nearly match says what helps where both sides are tables."""
    hint = finding.values.get("hint")
    if not isinstance(hint, Finding) or hint.code != "would-match/stem":
        return finding
    values = {**finding.values, "hint": replace(hint, code="would-match/view")}
    return replace(finding, values=values)


def _without_rows(finding: FaultGroup) -> FaultGroup:
    """Return a finding without line numbers, which a table does not have."""
    return replace(finding, places=tuple(replace(place, row=None) for place in finding.places))


def _plain(frame: pl.DataFrame, cells: Sequence[str]) -> pl.DataFrame:
    """Return an answer in order, with the types of counts; −0.0 becomes 0.0, and NULL scores become NaN."""
    score = pl.col(SCORE).cast(pl.Float64).fill_null(float("nan")) + 0.0
    frame = frame.select(
        *(pl.col(name).cast(pl.String).fill_null("") for name in cells), score, pl.col(COUNT).cast(pl.Int64)
    )
    return frame.group_by([*cells, SCORE]).agg(pl.col(COUNT).sum()).sort([*cells, SCORE])


def _digest(frame: pl.DataFrame) -> str:
    """Return a hash of sorted counts, which depends only on them."""
    sha = hashlib.sha256()
    for column in frame:
        if column.dtype == pl.String:
            data = "\0".join(column.to_list()).encode()
        else:
            data = column.to_numpy().astype(np.dtype(column.to_numpy().dtype).newbyteorder("<")).tobytes()
        sha.update(f"{column.name}\0{len(data)}\0".encode() + data)
    return sha.hexdigest()
