"""One pass over a shard: its table opened under our names, counted by an engine, and looked at row by row where it is odd.

The engine groups; what is ours is which counts are asked for and whether they may be trusted. Nothing is looked at row
by row unless the counts themselves show that something is odd (a score that is NaN, a label that is not understood): then
the file is read again as the door reads it, and the door's own checks tell what is wrong and where.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.question import SYSTEM, ReadSpec
from hitmiss.io.checks import ABSTAINED, check_ids, check_labels, check_scores
from hitmiss.io.columns import Reading, understand
from hitmiss.io.diagnostics import Finding, Ledger, Place, Stop
from hitmiss.io.parse import Table
from hitmiss.io.reader import worst_scores
from hitmiss.io.tables import Stack
from hitmiss.scale.engines import find_engine, places_of
from hitmiss.scale.keyfile import AT, Joined, conflicts, door_pieces, key_of
from hitmiss.scale.plan import Shard, ShardPlan, Window
from hitmiss.scale.reading import Opened, Read, damaged_parquet, digest, pieces, rows_of_parquet
from hitmiss.scale.sheets import ID, LISTED, NOBODY, Sheet, decided, hashed_id, id_columns, needed, open_sheet
from hitmiss.scale.tallies import Binned, Cell, ShardFact, ShardTally, cells_of_counts
from hitmiss.stats.sketch import EXACT, Keys

ENOUGH: Final = 1000
"""Faults after which a shard is not read any further."""


def count(shard: Shard, plan: ShardPlan, window: Window | None = None) -> ShardTally:
    """Count a shard by a plan: all trials, or those in a window. What is wrong with it is in the tally's findings."""
    ledger, is_first = Ledger(), window is None
    asked = Window(plan.bits, None, plan.cuts) if window is None else window
    found = _Found()
    facts: dict[str, Any] = {}
    name, rows = shard.name, 0
    sha, size = "", 0
    try:
        sheet = open_sheet(shard, plan, ledger, carry=is_first and plan.ids)
        opened = sheet.opened
        facts = {"layout": opened.match.layout, "columns": dict(opened.match.theirs)}
        facts["has_ids"] = "item" in opened.match.picks
        if shard.system is not None:
            facts[SYSTEM] = shard.system
        found = _counted(sheet, asked, is_first, ledger)
        if opened.is_parquet:
            rows = rows_of_parquet(shard.path)
            sha, size = digest(shard.path) if is_first else ("", 0)
        else:
            rows, sha, size = sheet.read.rows, sheet.read.sha256, sheet.read.bytes
        if not rows and not ledger.findings:
            what = "there is a header and no row under it"
            raise ledger.stop("empty-file", what, "give a file with rows", [Place(opened.name, 1)])
        if sheet.ids.range is not None:
            facts["ids"] = sheet.ids.range
    except Stop:
        found = _Found()
    fact = ShardFact(name, sha if is_first else "", rows, size, facts)
    made_by = plan.fingerprint + ("" if window is None else window.mark)
    return ShardTally(made_by, plan.cells, (fact,), found.cells, found.ids, joined(ledger.findings), found.noted)


@dataclass(frozen=True, eq=False)
class _Found:
    """What was counted: the cells, the hashes of ids where they were asked for, what was done to scores."""

    cells: Mapping[Cell, Binned] = field(default_factory=dict)
    ids: Keys | None = None
    noted: Mapping[str, int] = field(default_factory=dict)


def _counted(sheet: Sheet, window: Window, is_first: bool, ledger: Ledger) -> _Found:
    plan, ids, is_odd = sheet.plan, None, False
    sheet.ids.wanted = is_first and not plan.ids and not plan.is_exact and sheet.identity == ["item"]
    try:
        answer = find_engine(plan.engine)(sheet, window)
        if sheet.carry:
            carried = (
                answer if ID in answer.columns else sheet.rows.select(id_columns(sheet)).collect(engine="streaming")
            )
            ids, is_odd = carried[ID].to_numpy(), bool(carried[NOBODY].any())
            if ID in answer.columns:
                answer = answer.filter(pl.col(LISTED)).drop(ID, NOBODY, LISTED)
        if sheet.ids.wanted and sheet.ids.first is None:  # a Parquet file: nobody has seen the ids yet
            for frame in sheet.lazy.select("item").collect_batches(maintain_order=True, engine="streaming"):
                sheet.ids.note(frame["item"])
                if not sheet.ids.is_ascending:
                    break
        if is_first and (is_odd or _is_odd(answer, sheet)):
            look_closely(sheet, ledger)
    except pl.exceptions.PolarsError as error:
        raise damaged_parquet(sheet.opened.name, error, ledger) from None
    if ledger.findings:
        return _Found()
    answer, noted = _settled(answer, sheet, window)
    return _Found(cells_of_counts(answer, plan.cells, window), ids, noted if is_first else {})


def _is_odd(answer: pl.DataFrame, sheet: Sheet) -> bool:
    """Whether the counts show something that the door would look at, or refuse."""
    options = sheet.plan.options
    column = answer["score"] if "score" in answer.columns else answer["place"]
    if column.null_count() or (options.nan_rule == "refuse" and _is_nan(answer, sheet.plan.bits).any()):
        return True
    if options.score_kind == "probability" and answer.height:
        low, high = ("low", "high") if "low" in answer.columns else ("score", "score")
        if not (answer[low].fill_nan(None).min() or 0.0) >= 0.0 or (answer[high].fill_nan(None).max() or 0.0) > 1.0:  # type: ignore[operator]
            return True
    return bool(_words(answer, options).problems) or conflicts(sheet.lazy, sheet.plan.key, options)


def _words(answer: pl.DataFrame, options: ReadSpec) -> Reading:
    words = [w for name in ("label", "decision") if name in answer.columns for w in answer[name].unique().to_list()]
    labels = set(answer["label"].unique().to_list()) if "label" in answer.columns else set()
    decided = {w for w in words if w not in ("", "0", "1", "-1", *ABSTAINED, *options.abstain)}
    return understand(sorted(labels | decided), options.positive, options.negative, options.positive_value)


def _is_nan(answer: pl.DataFrame, bits: int) -> pl.Series:
    if "score" in answer.columns:
        return answer["score"].is_nan().fill_null(True)
    return (answer["place"] & ((1 << (bits - 1)) - 1) > (0x7FF << (bits - 12))).fill_null(True)


def look_closely(sheet: Sheet, ledger: Ledger) -> None:
    """Read a shard as the door does, with the door's checks: what is wrong goes into the ledger, with its row."""
    plan, opened, words = sheet.plan, sheet.opened, set[str]()
    for table in _door_pieces(opened, needed(opened, plan, ledger), plan, ledger):
        stack = Stack.of([table], opened.match.theirs)
        for name, values in plan.options.rename.items():
            if name in stack.frame.columns:
                stack = stack.put(pl.col(name).replace(dict(values)))
        if "item" in stack.frame.columns:
            check_ids(stack, ledger)
        stack = check_scores(stack, plan.options, ledger)
        if AT in stack.frame.columns:
            stack = stack.keep(stack.frame[AT].is_not_null())
        columns = [name for name in ("label", "decision") if name in stack.frame.columns]
        words |= {w for name in columns for w in stack.frame[name].unique().to_list()}
        reading = understand(sorted(words), *_declared(plan.options))
        for name in columns if reading.problems else ():
            check_labels(stack, name, reading, ledger, plan.options.abstain)
        if sum(len(f.places) for f in ledger.findings) >= ENOUGH:
            break


def _door_pieces(opened: Opened, names: Sequence[str], plan: ShardPlan, ledger: Ledger) -> Iterator[Table]:
    """The rows of a shard as the door reads them."""
    if plan.key is None:
        picks = {name: at for name, at in opened.match.picks.items() if name in names}
        yield from pieces(opened, picks, Read(), ledger)
        return
    assert isinstance(opened, Joined)
    yield from door_pieces(opened, names, key_of(plan.key, plan.options), plan.options, ledger)


def _declared(options: ReadSpec) -> tuple[str | None, str | None, str | None]:
    return options.positive, options.negative, options.positive_value


def _settled(answer: pl.DataFrame, sheet: Sheet, window: Window) -> tuple[pl.DataFrame, dict[str, int]]:
    """What the door does when told to: trials without a score dropped or given the worst one; words of decisions read."""
    plan = sheet.plan
    reading = _words(answer, plan.options)
    if "decision" in plan.cells and plan.threshold is None:
        answer = answer.with_columns(decision=_said(reading, plan.options))
    nan, rule = _is_nan(answer, window.bits), plan.options.nan_rule
    if not nan.any():
        return answer, {}
    n = int(answer.filter(nan)["n"].sum()) if "n" in answer.columns else int(nan.sum())
    lost, answer = answer.filter(nan), answer.filter(~nan)
    if rule == "worst":
        answer = pl.concat([answer, _worst(lost, plan, window, reading)])
    return answer, {f"on-nan:{rule}": n}


def _said(reading: Reading, options: ReadSpec) -> pl.Expr:
    """A decision as text: 1, 0, -1 where it was withheld, empty where the call failed."""
    words = pl.col("decision").cast(pl.String)
    said = pl.when(words.is_in(list(reading.positive_words))).then(pl.lit("1")).otherwise(pl.lit("0"))
    return (
        pl.when(words == "")
        .then(words)
        .when(words.is_in([*ABSTAINED, *options.abstain]))
        .then(pl.lit("-1"))
        .otherwise(said)
    )


def _worst(lost: pl.DataFrame, plan: ShardPlan, window: Window, reading: Reading) -> pl.DataFrame:
    """Trials without a score with the worst one of their class, if that lies in the window."""
    is_low = lost["label"].cast(pl.String).is_in(list(reading.positive_words))
    low, high = worst_scores(plan.options.score_kind)
    ends = [e for e in (low, high) if window.ranges is None or _covers(window, e)]
    score = pl.select(pl.when(is_low).then(low).otherwise(high)).to_series()
    lost = lost.with_columns(score.alias("score")).filter(score.is_in(ends))
    if "decision" in plan.cells and plan.threshold is not None:
        lost = lost.with_columns(decision=decided(plan.threshold).cast(lost.schema["decision"]))
    if window.bits == EXACT:
        return lost
    place = places_of(window.bits)(lost["score"]).alias("place")
    if window.cuts:
        lost = lost.with_columns(
            part=pl.sum_horizontal(pl.col("score") >= c for c in window.cuts).cast(lost.schema["part"])
        )
    return lost.drop("score").with_columns(place)


def _covers(window: Window, score: float) -> bool:
    return any(first <= score <= last for first, last in window.ranges or ())


def put(shard: Shard, plan: ShardPlan, cells: tuple[Cell, ...], firsts: tuple[float, ...], folder: str) -> int:
    """Put every score of a shard on disk, in parts by its range, with the number of its cell; how many there were.

    `firsts` are the lowest scores of the parts, ascending. Part k is `folder/…/part=k/*.parquet`.
    """
    ledger = Ledger()
    sheet = open_sheet(shard, plan, ledger)
    edges: NDArray[np.float64] = np.array(firsts)
    part = pl.col("score").map_batches(
        lambda s: pl.Series(s.name, (np.searchsorted(edges, s.to_numpy(), side="right") - 1).astype(np.int32)),
        return_dtype=pl.Int32,
        is_elementwise=True,
    )
    known = pl.DataFrame(dict(zip(plan.cells, zip(*cells, strict=True), strict=True))).with_row_index("code")
    trials = sheet.trials
    if "decision" in plan.cells and plan.threshold is None:
        words = trials.select(pl.col("label", "decision").unique().implode()).collect(engine="streaming")
        reading = _words(words.explode("label").explode("decision"), plan.options)
        trials = trials.with_columns(decision=_said(reading, plan.options))
    if plan.options.nan_rule == "worst":
        reading = understand(sorted({cell[0] for cell in cells}), *_declared(plan.options))
        low, high = worst_scores(plan.options.score_kind)
        worst = pl.when(pl.col("label").is_in(list(reading.positive_words))).then(low).otherwise(high)
        lost = pl.col("score").fill_null(float("nan")).is_nan()
        trials = trials.with_columns(score=pl.when(lost).then(worst).otherwise("score"))
    trials = trials.filter(pl.col("score").is_not_nan())
    lazy = trials.join(known.lazy(), on=list(plan.cells)).select("code", "score", part.alias("part"))
    lazy.sink_parquet(
        pl.PartitionBy(folder, key="part", include_key=False), mkdir=True, compression="lz4", engine="streaming"
    )
    return sheet.read.rows


def hashes_of(shard: Shard, plan: ShardPlan, low: int = 0, high: int = 2**64 - 1) -> Keys:
    """The hashes of a shard's ids that lie in a range; an empty id counts twice, so that it is looked up."""
    ledger = Ledger()
    try:
        sheet = open_sheet(shard, plan, ledger, _naming(plan))
        hashed = sheet.lazy.select(hashed_id(sheet).alias(ID), (pl.col("item") == "").alias(NOBODY))
        found = hashed.filter(pl.col(ID).is_between(low, high)).collect(engine="streaming")
    except pl.exceptions.PolarsError as error:
        ledger.findings or damaged_parquet(shard.name, error, ledger)
        raise ledger.error() from None
    except Stop:
        raise ledger.error() from None
    return np.concatenate([found[ID].to_numpy(), found.filter(pl.col(NOBODY))[ID].to_numpy()])


def locate(shard: Shard, plan: ShardPlan, wanted: frozenset[int]) -> list[tuple[int, Place]]:
    """The rows of a shard whose ids have these hashes: (hash, place), in the order of the file."""
    ledger, found = Ledger(), list[tuple[int, Place]]()
    sheet = open_sheet(shard, plan, ledger, _naming(plan))
    among = pl.Series(sorted(wanted), dtype=pl.UInt64).implode()
    for table in _door_pieces(sheet.opened, _naming(plan), plan, ledger):
        hashed = table.frame.select(hashed_id(sheet).alias(ID))[ID]
        for row in hashed.is_in(among).arg_true().to_list():
            found.append((int(hashed[row]), Place(table.name, table.line(row), item=table.frame["item"][row])))
    return found


def _naming(plan: ShardPlan) -> list[str]:
    """The columns that may name a trial."""
    return ["item", "target", *plan.options.runs]


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
