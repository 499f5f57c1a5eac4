"""Count one shard with an engine: read, check like the reader, count; find ids that repeat or have no partner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import polars as pl

from hitmiss.core.errors import EnvironmentFault, UnknownName
from hitmiss.core.question import SYSTEM
from hitmiss.core.tally import Keys
from hitmiss.core.trials import Source
from hitmiss.engine.resample import TalliedTrials
from hitmiss.io.checks import (
    check_ids,
    check_labels,
    check_scores,
    no_common_id,
    note_missing,
    refuse_missing,
)
from hitmiss.io.parse import Finding, Ledger, Place, Stop, Table, digest
from hitmiss.io.reader import Words, read_words, worst_scores
from hitmiss.io.tables import PIECE_ROWS, Read, Stack, damaged_parquet, is_plain_number
from hitmiss.outofcore.cells import Binned, Disk, Kept, merge_binned, stretches
from hitmiss.outofcore.keyed import (
    AT,
    ID,
    LISTED,
    NOBODY,
    UNLISTED,
    Joined,
    Key,
    Opened,
    Sheet,
    conflicts,
    door_pieces,
    hashed_id,
    key_of,
    needed,
    open_sheet,
    pieces,
    rows_of_parquet,
)
from hitmiss.outofcore.plan import Cell, Executor, Shard, ShardFact, ShardPlan, ShardTally, cells_of, merge_tallies

# ----------------------------------------------------------------------
# Engines read the rows of a shard, join them with the key, and give each its cell, its score and the hash of its id.


class Engine(Protocol):
    """Reads the rows of a sheet."""

    def __call__(self, sheet: Sheet, /) -> Iterator[pl.DataFrame]:
        """Yield the rows, as `Sheet.asked` describes them, some at a time."""


def by_polars(sheet: Sheet) -> Iterator[pl.DataFrame]:
    """Read in this process, on all cores."""
    yield from sheet.asked(sheet.lazy).collect_batches(chunk_size=PIECE_ROWS, maintain_order=True, engine="streaming")


def by_duckdb(sheet: Sheet) -> Iterator[pl.DataFrame]:
    """Read by DuckDB; a file that it would read differently from our reader is read by ours."""
    columns = _direct(sheet)
    if columns is None:
        yield from by_polars(sheet)
        return
    taken = ", ".join(f"{quoted(theirs)} AS {quoted(ours)}" for ours, theirs in columns.items())
    path = sheet.opened.shard.path.replace("'", "''")
    connection = _database().cursor()
    try:
        found = connection.sql(f"SELECT {taken} FROM read_parquet('{path}')")
        # the method had another name before DuckDB 2
        for batch in (found.to_arrow_reader if hasattr(found, "to_arrow_reader") else found.fetch_arrow_reader)(
            PIECE_ROWS
        ):
            yield sheet.asked(pl.DataFrame(batch).lazy().with_columns(pl.col(pl.String).fill_null(""))).collect()
    finally:
        connection.close()


def _direct(sheet: Sheet) -> dict[str, str] | None:
    """Return the columns of a Parquet file for DuckDB to read; None if some are not plain texts and numbers."""
    opened, names = sheet.opened, sheet.opened.shape.names
    if not opened.is_parquet or names is None or opened.by_stem or sheet.plan.key is not None:
        return None
    own = {name: opened.match.picks.get(name, -1) for name in sheet.columns}
    if any(at < 0 for at in own.values()):
        return None
    schema = pl.read_parquet_schema(opened.shard.path)
    kinds = {name: schema[names[at]] for name, at in own.items()}
    is_plain = all(is_plain_number(kind) if name == "score" else kind == pl.String for name, kind in kinds.items())
    return {name: names[at] for name, at in own.items()} if is_plain else None


def quoted(name: str) -> str:
    """Return a name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


@cache
def _database() -> Any:
    """Return the database in memory of this process: opening one takes as long as counting 100,000 trials."""
    try:
        import duckdb
    except ImportError as error:
        raise EnvironmentFault(f"--engine duckdb needs a package ({error}): pip install 'hitmiss[duckdb]'") from None
    return duckdb.connect(config={"memory_limit": LIMIT})


ENGINES: Final[dict[str, Engine]] = {"polars": by_polars, "duckdb": by_duckdb}
LIMIT: Final = "500MB"
"""The memory that DuckDB may use."""


def find_engine(name: str) -> Engine:
    """Return the engine of a name."""
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    return ENGINES[name]


# ----------------------------------------------------------------------
# One pass over a shard. Rows are examined one by one only if the counts show a problem (a NaN score, a label that is
# not understood): then the file is read again as the in-memory reader reads it, and the reader's own checks report what
# is wrong and where.

RANGE: Final = "ids"
"""The fact about a shard that its ids ascend, from the first to the last."""
ENOUGH: Final = 1000
"""The number of faults after which a shard is not read any further."""


def first_pass(shard: Shard, plan: ShardPlan) -> ShardTally:
    """Count every trial of a shard: per cell, how many have each score. Faults are in the tally's findings."""
    return merge_tallies(count(shard, plan))


def count(shard: Shard, plan: ShardPlan) -> Iterator[ShardTally]:
    """Count a shard piece by piece. The last tally says which file it was, and holds the faults."""
    ledger, made_by = Ledger(), (plan.fingerprint, plan.cells)
    fact = ShardFact(shard.name, "", 0, 0)
    seen = _Seen(plan)
    try:
        sheet = open_sheet(shard, plan, ledger)
        opened = sheet.opened
        facts: dict[str, Any] = {"layout": opened.match.layout, "columns": dict(opened.match.theirs)}
        facts["has_ids"] = "item" in opened.match.picks
        fact = replace(fact, facts=facts if shard.system is None else {**facts, SYSTEM: shard.system})
        try:
            for frame in find_engine(plan.engine)(sheet):
                yield ShardTally(*made_by, (), cells_of(seen.trials(frame), plan.cells), seen.ids(frame))
            if seen.is_out_of_order:
                yield from (ShardTally(*made_by, (), {}, ids) for ids in _hashes(sheet))
            if seen.is_odd or are_unclear(seen.reading) or conflicts(sheet.lazy, plan.key, plan.options):
                look_closely(sheet, ledger)
        except pl.exceptions.PolarsError as error:
            raise damaged_parquet(opened.name, error, ledger) from None
        rows = rows_of_parquet(shard.path) if opened.is_parquet else sheet.read.rows
        sha, size = digest(shard.path) if opened.is_parquet else (sheet.read.sha256, sheet.read.bytes)
        fact = replace(fact, rows=rows, sha256=sha, bytes=size, facts={**fact.facts, **seen.range})
        if not rows and not ledger.findings:
            what = "there is a header and no row under it"
            raise ledger.stop("empty-file", what, "give a file with rows", [Place(opened.name, 1)])
    except Stop:
        pass
    cells, noted = ({}, {}) if ledger.findings else seen.lost()
    yield ShardTally(*made_by, (fact,), cells, None, joined(ledger.findings), noted)


class _Seen:
    """What the rows of a shard show beside their counts: words, scores that are missing, values that are no scores."""

    def __init__(self, plan: ShardPlan) -> None:
        self.plan, self.is_odd = plan, False
        self._words: dict[str, set[str]] = {"label": set(), "decision": set()}
        self._lost: list[pl.DataFrame] = []
        self._ends: tuple[str, str] | None = None
        self.is_out_of_order = False

    def ids(self, frame: pl.DataFrame) -> Binned | None:
        """Return the hashes of ids; nothing of ids that could ascend, since then none of them repeats."""
        ids = frame[ID] if ID in frame.columns else pl.Series()
        if ids.dtype == pl.UInt64:
            return Binned(ids.to_numpy(), is_sorted=False)
        if len(ids) and not self.is_out_of_order:
            follows = self._ends is None or ids[0] > self._ends[1]
            self.is_out_of_order = not (follows and (ids[1:] > ids[:-1]).all())
            self._ends = ids[0] if self._ends is None else self._ends[0], ids[-1]
        return None

    @property
    def range(self) -> dict[str, tuple[str, str]]:
        """The first and the last id if all ascend."""
        return {RANGE: self._ends} if self._ends is not None and not self.is_out_of_order else {}

    def trials(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows that are trials with a score, and take note of the others."""
        options = self.plan.options
        if ID in frame.columns:
            self.is_odd |= bool(frame[NOBODY].any())
        if LISTED in frame.columns:
            frame = frame.filter(LISTED)
        for name in self._words.keys() & set(frame.columns):
            self._words[name] |= set(frame[name].unique().to_list())
        score = frame["score"]
        if options.score_kind == "probability":
            ends = score.fill_nan(None).min() or 0.0, score.fill_nan(None).max() or 0.0
            self.is_odd |= not (ends[0] >= 0.0 and ends[1] <= 1.0)  # type: ignore[operator]
        nan = score.fill_null(float("nan")).is_nan()
        if not nan.any():
            return frame
        self.is_odd |= options.nan_rule == "refuse" or bool(score.null_count())
        self._lost.append(frame.filter(nan).select(self.plan.cells))
        return frame.filter(~nan)

    @property
    def reading(self) -> Words:
        """The meaning of the words."""
        return words_of(self._words["label"], self._words["decision"], self.plan)

    def lost(self) -> tuple[dict[Cell, Binned], dict[str, int]]:
        """Return the trials without a score as the caller wants them counted, and what to note about them."""
        if not self._lost:
            return {}, {}
        frame, rule = pl.concat(self._lost), self.plan.options.nan_rule
        noted = {f"on-nan:{rule}": frame.height}
        if rule != "worst":
            return {}, noted
        low, high = worst_scores(self.plan.options.score_kind)
        is_low = pl.col("label").cast(pl.String).is_in(list(self.reading["label"].positive_words))
        frame = frame.with_columns(score=pl.when(is_low).then(low).otherwise(high))
        return cells_of(self.plan.decided(frame.lazy()).collect(), self.plan.cells), noted


def look_closely(sheet: Sheet, ledger: Ledger) -> None:
    """Read a shard like the in-memory reader, with its checks; faults go into the ledger, with their rows."""
    plan, opened = sheet.plan, sheet.opened
    words: dict[str, set[str]] = {"label": set(), "decision": set()}
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
        for name in columns:
            words[name] |= set(stack.frame[name].unique().to_list())
        reading = words_of(words["label"], words["decision"], plan)
        for name in columns if are_unclear(reading) else ():
            check_labels(stack, name, reading[name], ledger, plan.options.abstain)
        if sum(len(f.places) for f in ledger.findings) >= ENOUGH:
            break


def _door_pieces(opened: Opened, names: Sequence[str], plan: ShardPlan, ledger: Ledger) -> Iterator[Table]:
    """Yield the rows of a shard as the in-memory reader reads them."""
    if plan.key is None:
        picks = {name: at for name, at in opened.match.picks.items() if name in names}
        yield from pieces(opened, picks, Read(), ledger)
        return
    assert isinstance(opened, Joined)
    yield from door_pieces(opened, names, key_of(plan.key, plan.options), plan.options, ledger)


def words_of(labels: Iterable[str], decisions: Iterable[str], plan: ShardPlan) -> Words:
    """Return the meaning of the words of labels and decisions; decisions at a threshold are our own words."""
    return read_words(sorted(labels), sorted(decisions) if plan.threshold is None else (), plan.options)


def are_unclear(reading: Words) -> bool:
    """Return whether some word names no class."""
    return any(one.problems for one in reading.values())


def _hashes(sheet: Sheet) -> Iterator[Binned]:
    """Yield the hashes of all ids of a shard."""
    hashed = sheet.lazy.select(hashed_id(sheet).alias(ID))
    for frame in hashed.collect_batches(chunk_size=PIECE_ROWS, engine="streaming"):
        yield Binned(frame[ID].to_numpy(), is_sorted=False)


def hashes_of(shard: Shard, plan: ShardPlan) -> ShardTally:
    """Return a tally of nothing but the ids of a shard."""
    sheet = open_sheet(shard, plan, Ledger(), _naming(plan))
    return ShardTally(plan.fingerprint, plan.cells, (), {}, merge_binned(list(_hashes(sheet))))


def every_id(
    tally: ShardTally, shards: Sequence[Shard], plan: ShardPlan, run: Executor, disk: Disk | None
) -> Kept | None:
    """Return the hashes of all ids; None if there are none, or if ids ascend from shard to shard and none can repeat."""
    ranges = sorted(tuple(shard.facts[RANGE]) for shard in tally.shards if RANGE in shard.facts)
    if not ranges:
        return tally.ids
    if len(ranges) == len(tally.shards) and all(a[1] < b[0] for a, b in pairwise(ranges)):
        return None
    return merge_tallies(run(hashes_of, [(shard, plan) for shard in shards]), disk).ids


def locate(shard: Shard, plan: ShardPlan, wanted: frozenset[int]) -> list[tuple[int, Place]]:
    """Return the rows of a shard whose ids have these hashes: (hash, place), in the order of the file."""
    ledger, found = Ledger(), list[tuple[int, Place]]()
    sheet = open_sheet(shard, plan, ledger, _naming(plan))
    among = pl.Series(sorted(wanted), dtype=pl.UInt64).implode()
    for table in _door_pieces(sheet.opened, _naming(plan), plan, ledger):
        hashed = table.frame.select(hashed_id(sheet).alias(ID))[ID]
        for row in hashed.is_in(among).arg_true().to_list():
            found.append((int(hashed[row]), Place(table.name, table.line(row), item=table.frame["item"][row])))
    return found


def _naming(plan: ShardPlan) -> list[str]:
    """Return the columns that may identify a trial."""
    return ["item", "target", *plan.options.runs]


def joined(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Merge findings of one kind into one, with all their places.

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


# ----------------------------------------------------------------------
# Ids that occur in the shards more than once: found by their hashes, reported with file and row.

HASH_BYTES = 32
"""The memory per hash while hashes are examined: the hash, and copies of it while hashes are sorted."""
MOST = 1000
"""The number of repeated ids that are looked up; more would add no information."""


def refuse_repeats(ids: Kept | None, shards: Sequence[Shard], plan: ShardPlan, run: Executor, memory: int) -> None:
    """Refuse an id that occurs twice in all shards. Equal hashes prove nothing: the ids themselves are compared."""
    for part in _in_parts(ids, memory):
        refuse_hashes(part.bins[part.each > 1], shards, plan, run)


def _in_parts(ids: Kept | None, memory: int) -> Iterator[Binned]:
    """Yield the hashes of all ids, as many at a time as fit; equal hashes are in the same part."""
    if ids is not None:
        yield from (ids.between(*ends) for ends in stretches([ids], max(memory // HASH_BYTES, 1)))


def refuse_hashes(twice: Keys, shards: Sequence[Shard], plan: ShardPlan, run: Executor) -> None:
    """Look up repeated hashes in the shards, and refuse the ids that are really repeated."""
    if not len(twice):
        return
    wanted = frozenset(twice[:MOST].tolist())
    groups: dict[tuple[int, str], list[Place]] = {}
    for found in run(locate, [(shard, plan, wanted) for shard in shards]):
        for hashed, place in found:
            groups.setdefault((hashed, place.item or ""), []).append(place)
    empty = [Place(p.file, p.row) for (_, item), group in groups.items() if not item for p in group]
    places = [place for (_, item), group in groups.items() if item and len(group) > 1 for place in group]
    if empty or places:
        ledger = Ledger()
        ledger.add("empty-id", "{n} row{s} without an id", "give every row its id", empty, "item", "the id is empty")
        ledger.add(
            "duplicate-id",
            "{n} row{s} of repeated ids",
            "each trial must occur once: take the others out, or merge identical rows without --stream and with --dedupe",
            places,
            "item",
            "the id occurs more than once",
        )
        raise ledger.error()


# ----------------------------------------------------------------------
# Which trials of a key have a score, over all shards: ids on one side only, and ids that are scored twice.

MOST_TOLD: Final = 1000
"""The number of ids on one side only that are listed, per shard and for the key; beyond that they are only counted."""


@dataclass(frozen=True)
class Covering:
    """How much of a key is scored."""

    scored: int
    listed: int
    unlisted: int


def settle_coverage(ids: Kept, shards: Sequence[Shard], plan: ShardPlan, run: Executor, memory: int) -> Covering:
    """Refuse ids that are scored twice and, unless the caller allows it, ids on one side only."""
    assert plan.key is not None
    key, ledger = key_of(plan.key, plan.options), Ledger()
    seen, twice, unlisted = np.zeros(key.height, dtype=bool), list[Keys](), 0
    for part in _in_parts(ids, memory):
        is_listed = part.bins != np.uint64(UNLISTED)
        seen[part.bins[is_listed].astype(np.int64) % key.height] = True
        twice.append(part.bins[is_listed & (part.each > 1)])
        unlisted += int(part.each[~is_listed].sum())
    # The scores of several systems are in the same rows: an id without a row is missing for all systems.
    unlisted //= max(len(plan.options.score_columns), 1)
    absent = np.flatnonzero(~seen)
    if not seen.any():
        raise _nothing_common(key, shards, plan, run, ledger)
    refuse_hashes(np.concatenate(twice), shards, plan, run)
    if not plan.options.allow_missing and (unlisted or len(absent)):
        extra, column = _places_of_unlisted(shards, plan, run) if unlisted else ([], "item")
        places = key.stack.at(pl.Series(absent[:MOST_TOLD]))
        refuse_missing(extra, places, column, ledger, (unlisted, len(absent)))
        raise ledger.error()
    return Covering(key.height - len(absent), key.height, unlisted)


def _nothing_common(key: Key, shards: Sequence[Shard], plan: ShardPlan, run: Executor, ledger: Ledger) -> Exception:
    extra, _ = _places_of_unlisted(shards, plan, run)
    try:
        scored = [place.item or "" for place in extra]
        raise no_common_id(scored, key.stack.frame["item"].to_list(), [extra[0], key.stack.place(0)], ledger)
    except Stop:
        return ledger.error()


def _places_of_unlisted(shards: Sequence[Shard], plan: ShardPlan, run: Executor) -> tuple[list[Place], str]:
    """Return the places of ids that the key lacks, the first of each shard; and the files' name for the id column."""
    found = list(run(unlisted_of, [(shard, plan) for shard in shards if shard.system == shards[0].system]))
    return [place for places, _ in found for place in places], found[0][1]


def unlisted_of(shard: Shard, plan: ShardPlan) -> tuple[list[Place], str]:
    """Return the first rows of a shard whose ids the key lacks."""
    ledger, places = Ledger(), list[Place]()
    assert plan.key is not None
    opened = open_sheet(shard, plan, ledger, ["item"]).opened
    assert isinstance(opened, Joined)
    for piece in door_pieces(opened, ["item"], key_of(plan.key, plan.options), plan.options, ledger):
        rows = piece.frame[AT].is_null().arg_true().to_list()
        places += [
            Place(piece.name, piece.line(row), item=piece.frame["item"][row]) for row in rows[: MOST_TOLD - len(places)]
        ]
        if len(places) >= MOST_TOLD:
            break
    return places, opened.match.theirs["item"]


def with_key(trials: TalliedTrials, plan: ShardPlan, covering: Covering) -> TalliedTrials:
    """Return counted trials whose header describes the key: its files, and how much of it the scores cover."""
    assert plan.key is not None
    ledger, head = Ledger(), trials.header
    absent = covering.listed - covering.scored
    note_missing(covering.unlisted, absent, covering.listed, ledger)
    named = [(Path(path).name, sha) for path, sha in zip(plan.key.paths, plan.key.sha256, strict=True)]
    provenance: dict[str, Any] = dict(head.provenance)
    provenance["files"] = [*provenance["files"], *({"name": name, "sha256": sha, "role": "key"} for name, sha in named)]
    header = replace(
        head,
        sources=(*head.sources, *(Source(name, sha) for name, sha in named)),
        notes=(*ledger.notes, *head.notes),
        choices=(*ledger.choices, *head.choices),
        coverage=(covering.scored, covering.listed) if absent else None,
        provenance=provenance,
    )
    return replace(trials, header=header)
