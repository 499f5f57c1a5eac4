"""One pass over a shard: read, check as the door does, count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core import progress
from hitmiss.core.errors import UsageError
from hitmiss.core.question import SYSTEM, ReadSpec
from hitmiss.core.tally import Floats
from hitmiss.core.trials import combined
from hitmiss.io.checks import ABSTAINED, check_ids, check_labels, check_scores
from hitmiss.io.columns import Reading, understand
from hitmiss.io.diagnostics import Finding, Ledger, Place, Stop, quoted
from hitmiss.io.tables import Stack
from hitmiss.scale.counters import Codes, Counter, KeepAll, ToDisk, counter
from hitmiss.scale.ids import EMPTY, hashes, identity
from hitmiss.scale.joining import AT, UNLISTED, joined_pieces, open_joined
from hitmiss.scale.plan import KeyRanges, Shard, ShardPlan
from hitmiss.scale.quick import Odd, Quick, Unseen, is_sound, placed
from hitmiss.scale.reading import Opened, Read, digest, trials_expected
from hitmiss.scale.tallies import Binned, Cell, ShardFact, ShardTally
from hitmiss.scale.windows import opening_of
from hitmiss.stats.sketch import Keys

MOST_CELLS: Final = 200_000
"""Combinations of slices (and units) that are counted apart; each costs a kilobyte or so, whatever it holds."""
ENOUGH: Final = 1000
"""Faults after which a shard is not read any further."""


def count(shard: Shard, plan: ShardPlan, window: KeyRanges | None, sink: ToDisk | None = None) -> ShardTally:
    """Count a shard by a plan: all trials, or those in a window by their whole keys; or put all trials into a sink."""
    ledger, read = Ledger(), Read()
    names = ("label", *plan.keep)
    is_first = window is None and sink is None
    counting = _Counting(plan, window, ledger, sink)
    facts: dict[str, object] = {}
    try:
        opened = open_joined(shard, plan, ledger)
        facts = {
            "layout": opened.match.layout,
            "columns": dict(opened.match.theirs),
            "has_ids": "item" in opened.match.picks,
        }
        if shard.system is not None:
            facts[SYSTEM] = shard.system
        wanted = needed(opened, plan, is_first, ledger)
        try:
            try:
                counting.add_quickly(Quick.of(opened, plan), read)
            except Unseen:
                read, counting = Read(), counting.begun_again()
                counting.add_quickly(Quick.of(opened, plan, is_all=True), read)
        except Odd:
            read, counting = Read(), counting.begun_again()
            _carefully(counting, opened, wanted, read)
        if not read.rows and not ledger.findings:
            what = "there is a header and no row under it"
            raise ledger.stop("empty-file", what, "give a file with rows", [Place(opened.name, 1)])
        if is_first and not read.sha256:
            read.sha256, read.bytes = digest(shard.path)
    except Stop:
        pass
    if counting.is_ascending and counting.id_range is not None:
        facts["ids"] = list(counting.id_range)
    fact = ShardFact(_name(shard), read.sha256, read.rows, read.bytes, facts)
    cells = {} if ledger.findings else counting.cells()
    ids = counting.ids() if plan.ids and is_first and not ledger.findings else None
    made_by = plan.fingerprint + (window.mark if window is not None else "")
    return ShardTally(made_by, names, (fact,), cells, ids, joined(ledger.findings), counting.noted)


def _carefully(counting: _Counting, opened: Opened, wanted: dict[str, int], read: Read) -> None:
    """Every row looked at, as the door does."""
    ledger, expected = counting.ledger, trials_expected([opened])
    for table in joined_pieces(opened, wanted, read, ledger, counting.plan.options, quick=True):
        if not table.is_parsed or not counting.add_parsed(table.frame):
            counting.add(Stack.of([table.careful(ledger)], opened.match.theirs))
        progress.tell(f"rows of {opened.name}", min(read.rows, expected), expected)
        if sum(len(f.places) for f in ledger.findings) >= ENOUGH:
            break


def needed(opened: Opened, plan: ShardPlan, is_first: bool, ledger: Ledger) -> dict[str, int]:
    """The columns that a pass reads (ids only the first); one that the plan keeps and the file lacks is a fault."""
    picks = opened.match.picks
    has_decision = plan.threshold is not None or "decision" in picks
    absent = [name for name in plan.keep if name not in picks and not (name == "decision" and has_decision)]
    if absent:
        there = ", ".join(map(quoted, picks))
        what = f"there is no column {quoted(absent[0])}; there are {there}"
        raise ledger.stop(
            "missing-column",
            what,
            f"say which one it is with --column {absent[0]}=NAME",
            [Place(opened.name, 1)],
            absent[0],
        )
    names = ["item", "target", "label", "score", *plan.keep, *plan.options.runs]
    names = names[0 if is_first else 2 :]
    return {name: picks[name] for name in dict.fromkeys(names) if name in picks}


class _Counting:
    """A pass under way."""

    def __init__(self, plan: ShardPlan, window: KeyRanges | None, ledger: Ledger, sink: ToDisk | None = None) -> None:
        self.plan, self.ledger = plan, ledger
        self._given = window, sink
        self._is_first = window is None and sink is None
        self.noted: dict[str, int] = {}
        self._window = opening_of(window) if window is not None else None
        self._counter: Counter = counter(plan.bits, plan.cuts) if window is None else KeepAll(window.bits, plan.cuts)
        self._columns: dict[str, list[str]] = {name: [] for name in ("label", *plan.keep)}
        self._cells: dict[Cell, int] = {}
        if sink is not None:
            self._counter = sink.begun(self._cells)
        self._raw: dict[str, list[str]] = {name: [] for name in ("label", *plan.keep)}
        self._ids: list[Keys] = [] if plan.key is None else [np.zeros(0, dtype=np.uint64)]
        self.is_ascending = True
        self.has_gap = False
        self.id_range: tuple[str, str] | None = None

    def begun_again(self) -> _Counting:
        """The same pass from its beginning, for a file that must be read in another way."""
        return _Counting(self.plan, self._given[0], self.ledger, self._given[1])

    def add(self, stack: Stack) -> None:
        """Check and count some rows."""
        options, ledger = self.plan.options, self.ledger
        for name, values in options.rename.items():
            if name in stack.frame.columns:
                stack = stack.put(pl.col(name).replace(dict(values)))
        if "item" in stack.frame.columns:
            check_ids(stack, ledger)
        stack = check_scores(stack, options, ledger)
        is_keyed = AT in stack.frame.columns
        if is_keyed:
            self._note_rows(stack.frame[AT])
            stack = stack.keep(stack.frame[AT] != UNLISTED)
            if not stack.frame.height:
                return
        reading = self._check_words(stack)
        if ledger.findings:
            return
        if not is_keyed and self._is_first and "item" in stack.frame.columns:
            self._leave_order()
            if self.plan.ids:
                self._ids.append(hashes(stack.frame, options))
        frame = _settled(stack.frame, self.plan, reading, self.noted)
        cell = self._codes(frame, self._columns)
        self._count(cell, frame["score"].to_numpy() if "score" in frame.columns else np.zeros(frame.height))

    def add_quickly(self, quick: Quick, read: Read) -> None:
        """Count all rows of a sound file."""
        cells = quick.cells
        number = np.array([self._cells.setdefault(cell, len(self._cells)) for cell in cells], dtype=np.int64)
        with_ids = self._is_first and "item" in quick.opened.match.picks and (self.plan.ids or quick.begins_in_order)
        if not with_ids:
            self._leave_order()
        expected = trials_expected([quick.opened])
        for piece in quick.pieces(with_ids):
            read.rows += len(piece.score)
            progress.tell(f"rows of {quick.opened.name}", min(read.rows, expected), expected)
            if piece.items is not None and not self._note_ids(piece.items):
                raise Odd
            self._count(number[piece.code], piece.score)

    def add_parsed(self, frame: pl.DataFrame) -> bool:
        """Count rows whose scores are numbers already; False, and nothing counted, where something is odd about them."""
        plan, score = self.plan, frame["score"].to_numpy()
        is_keyed = AT in frame.columns
        if is_keyed and (frame[AT] == UNLISTED).any():
            return False
        if (
            "decision" in plan.keep
            or any(c not in frame.columns for c in plan.keep)
            or not is_sound(score, plan.options)
        ):
            return False
        code = self._codes(frame, self._raw)
        reading = understand(sorted(self._raw["label"]), *_declared(plan.options))
        if reading.problems:
            return False
        ids = not is_keyed and "item" in frame.columns and self._is_first
        if is_keyed:
            self._note_rows(frame[AT])
        is_plain = identity(frame, plan.options) == ["item"]
        if ids and (not self._note_ids(frame["item"]) if is_plain else plan.ids):
            return False
        if ids and not is_plain:
            self._leave_order()
        if plan.turned:
            score = 1 - score if plan.options.score_kind == "probability" else -score
        self._count(code, score)
        return True

    def _note_rows(self, rows: pl.Series) -> None:
        """Carry along which rows of the key were scored."""
        if self._is_first:
            self._ids.append(rows.to_numpy())

    def _note_ids(self, items: pl.Series) -> bool:
        """Note that ids go on in ascending order, or else carry their hashes along; False where one is empty.

        Where the order breaks off after a while the hashes of what came before are missing: none are carried then.
        """
        if self.is_ascending and self._follows(items):
            self.id_range = (items[0] if self.id_range is None else self.id_range[0], items[-1])
            return self.id_range[0] != ""
        self._leave_order()
        if not self.plan.ids:
            return True  # the hashes are collected later, and tell what is empty
        hashed = items.hash().to_numpy()
        self._ids.append(hashed)
        return not (hashed == EMPTY).any()

    def _leave_order(self) -> None:
        self.has_gap |= self.is_ascending and self.id_range is not None
        self.is_ascending = False

    def _follows(self, items: pl.Series) -> bool:
        is_after = self.id_range is None or items[0] > self.id_range[1]
        return is_after and bool((items[1:] > items[:-1]).all())

    def _count(self, cell: Codes, score: Floats) -> None:
        if self._window is not None:
            inside = self._window.places(cell, score, list(self._cells))
            cell, score = cell[inside], score[inside]
        if len(score):
            self._counter.add(cell, score)

    def _check_words(self, stack: Stack) -> Reading:
        options = self.plan.options
        columns = [name for name in ("label", "decision") if name in stack.frame.columns]
        words = [
            *self._columns["label"],
            *self._raw["label"],
            *(w for name in columns for w in stack.frame[name].unique().to_list()),
        ]
        reading = understand(sorted(set(words)), *_declared(options))
        if reading.problems:
            for name in columns:
                check_labels(stack, name, reading, self.ledger)
        return reading

    def _codes(self, frame: pl.DataFrame, columns: dict[str, list[str]]) -> Codes:
        """The number of each row's cell; `columns` lists the values known so far, and learns."""
        places: list[tuple[Codes, int]] = []
        for name, known in columns.items():
            try:
                place = placed(frame[name], known)
            except Unseen:
                known += sorted(set(frame[name].unique().to_list()) - set(known))
                place = placed(frame[name], known)
            places.append((place, len(known)))
        code, size = combined(places)
        row_of, place_of = _distinct(code, size)
        rename = self.plan.options.rename if columns is self._raw else {}
        numbers = np.array([self._number(row, places, columns, rename) for row in row_of.tolist()], dtype=np.int64)
        if len(self._cells) > MOST_CELLS:
            raise UsageError(
                f"{', '.join(self.plan.keep)} have more than {MOST_CELLS:,} combinations of values, too many to be counted apart; "
                "leave one of them out, or --stream"
            )
        return numbers[place_of]

    def _number(
        self,
        row: int,
        places: list[tuple[Codes, int]],
        columns: dict[str, list[str]],
        rename: Mapping[str, Mapping[str, str]],
    ) -> int:
        """The number of the cell that a row lies in."""
        found = [(name, known[place[row]]) for (name, known), (place, _) in zip(columns.items(), places, strict=True)]
        values = tuple(rename.get(name, {}).get(value, value) for name, value in found)
        return self._cells.setdefault(values, len(self._cells))

    def cells(self) -> dict[Cell, Binned]:
        """The bins of each cell."""
        found = self._counter.result()
        return {cell: found[i] for cell, i in self._cells.items() if i < len(found) and len(found[i].bins)}

    def ids(self) -> Keys | None:
        """The hashes of all ids; None where they were not carried along, or not all."""
        parts, self._ids = self._ids, []
        return np.concatenate(parts) if parts and not self.has_gap else None


def _declared(options: ReadSpec) -> tuple[str | None, str | None, str | None]:
    return options.positive, options.negative, options.positive_value


def _settled(frame: pl.DataFrame, plan: ShardPlan, reading: Reading, noted: dict[str, int]) -> pl.DataFrame:
    """What the door does to scores when told to: NaN settled, scores turned round; and decisions made."""
    if "score" in frame.columns:
        frame = _without_nan(frame, plan, reading, noted)
        if plan.turned:
            turned = 1 - pl.col("score") if plan.options.score_kind == "probability" else -pl.col("score")
            frame = frame.with_columns(score=turned)
    if "decision" in plan.keep:
        frame = frame.with_columns(decision=_decision(plan, reading))
    if "target" in plan.keep and "target" not in frame.columns:
        frame = frame.with_columns(target=pl.lit(reading.positive))
    return frame


def _without_nan(frame: pl.DataFrame, plan: ShardPlan, reading: Reading, noted: dict[str, int]) -> pl.DataFrame:
    rule = plan.options.nan_rule
    n = 0 if rule == "refuse" else int(frame["score"].is_nan().sum())
    if not n:
        return frame
    noted[f"on-nan:{rule}"] = noted.get(f"on-nan:{rule}", 0) + n
    nan = pl.col("score").is_nan()
    if rule == "drop":
        return frame.filter(~nan)
    low_is_worst = pl.col("label").is_in(list(reading.positive_words))
    if plan.turned:  # the worst score is still to be turned round
        low_is_worst = ~low_is_worst
    worst = pl.when(low_is_worst).then(-float("inf")).otherwise(float("inf"))
    return frame.with_columns(score=pl.when(nan).then(worst).otherwise(pl.col("score")))


def _decision(plan: ShardPlan, reading: Reading) -> pl.Expr:
    """The decision as text: 1, 0, -1 where it was withheld, empty where the call failed."""
    if plan.threshold is not None:
        return pl.when(pl.col("score") >= plan.threshold).then(pl.lit("1")).otherwise(pl.lit("0"))
    words = pl.col("decision")
    said = pl.when(words.is_in(list(reading.positive_words))).then(pl.lit("1")).otherwise(pl.lit("0"))
    return pl.when(words == "").then(words).when(words.is_in(list(ABSTAINED))).then(pl.lit("-1")).otherwise(said)


def _distinct(code: Codes, size: int) -> tuple[Codes, Codes]:
    """A row of each distinct code, and for each row the place of its code among them."""
    if size > 1 << 20:
        _, row, place = np.unique(code, return_index=True, return_inverse=True)
        return row, place
    row_of = np.full(size, -1, dtype=np.int64)
    row_of[code] = np.arange(len(code))
    held = np.flatnonzero(row_of >= 0)
    at = np.zeros(size, dtype=np.int64)
    at[held] = np.arange(len(held))
    return row_of[held], at[code]


def joined(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings of one kind as one, with all their places.

    >>> a, b = (Finding("nan-score", "{n} NaN score{s}", "mend", (Place("s.tsv", row),)) for row in (2, 9))
    >>> [len(f.places) for f in joined([a, b])]
    [2]
    """
    groups: dict[tuple[object, ...], Finding] = {}
    for found in findings:
        key = (found.kind, found.what, found.fix if found.kind != "not-a-number" else "", found.column, found.each)
        known = groups.get(key)
        groups[key] = found if known is None else replace(known, places=(*known.places, *found.places))
    return tuple(groups.values())


def _name(shard: Shard) -> str:
    return shard.path.replace("\\", "/").rpartition("/")[2]
