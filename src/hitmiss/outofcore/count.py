"""Count one shard with an engine: read, check like the reader, count; find ids that repeat or have no partner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import polars as pl

from hitmiss.core import shared
from hitmiss.core.errors import EnvironmentFault, UnknownName
from hitmiss.core.question import INNER, SYSTEM, ReadSpec
from hitmiss.core.tally import EXACT, Keys, keys_of
from hitmiss.core.trials import Source
from hitmiss.engine.resample import TalliedTrials
from hitmiss.io.checks import (
    ABSTAINED,
    check_ids,
    check_labels,
    check_scores,
    no_common_id,
    note_missing,
    refuse_missing,
)
from hitmiss.io.columns import Reading, understand
from hitmiss.io.parse import Finding, Ledger, Place, Stop, Table
from hitmiss.io.reader import worst_scores
from hitmiss.io.tables import Stack, is_plain_number
from hitmiss.outofcore.keyed import (
    AT,
    ID,
    LISTED,
    NOBODY,
    UNLISTED,
    Joined,
    Key,
    Sheet,
    conflicts,
    decided,
    door_pieces,
    hashed_id,
    id_columns,
    key_of,
    needed,
    open_sheet,
)
from hitmiss.outofcore.plan import (
    EACH,
    PART,
    PLACE,
    Binned,
    Cell,
    Counts,
    Executor,
    Question,
    Shard,
    ShardFact,
    ShardPlan,
    ShardTally,
    Window,
    cells_of_counts,
    ordered,
)
from hitmiss.outofcore.shards import ROWS, Opened, Read, damaged_parquet, digest, pieces, rows_of_parquet

# ----------------------------------------------------------------------
# A counting question as SQL in DuckDB's dialect; a SQL dialect compiler translates it into other dialects.

SCORE: Final = "score"
LOW: Final = f"{INNER}low"
HIGH: Final = f"{INNER}high"
CODE: Final = f"{INNER}code"
COUNT: Final = "n"
# must differ from the name of a user's table: Snowflake would treat an equal name as recursion
TRIALS: Final = "hitmiss_trials"


def counts(question: Question, source: str, window: Window, each: str | None = COUNT) -> str:
    """Return SQL that counts the trials of each cell by score, or by bin of scores.

    `source` is a table in SQL, `each` the name of the column with the count; None: one row per trial, not counted.

    >>> print(counts(Question({"label": "key", "score": "llr"}), '"t"', Window()))
    WITH hitmiss_trials AS (SELECT COALESCE(CAST("key" AS VARCHAR), '') AS "label", CAST("llr" AS DOUBLE) AS "score" FROM "t")
    SELECT "label", "score", COUNT(*) AS "n"
    FROM hitmiss_trials
    GROUP BY "label", "score"
    """
    groups = [quoted(name) for name in question.cells]
    shown = list(groups)
    if window.bits == EXACT:
        groups, shown = [*groups, quoted(SCORE)], [*shown, quoted(SCORE)]
    else:
        made = [_place(window.bits), *([_part(window.cuts)] if window.cuts else [])]
        names = [quoted(name) for name in (PLACE, PART)[: len(made)]]
        shown += [f"{expression} AS {name}" for expression, name in zip(made, names, strict=True)]
        groups += made
    total = "COUNT(*)" if question.count is None else f"SUM({quoted(COUNT)})"
    where = _inside(window, question)
    lines = [
        f"WITH {TRIALS} AS ({trials(question, source)})",
        f"SELECT {', '.join(shown if each is None else [*shown, f'{total} AS {quoted(each)}'])}",
        f"FROM {TRIALS}",
        *([f"WHERE {where}"] if where else []),
        *([f"GROUP BY {', '.join(groups)}"] if each is not None else []),
    ]
    return "\n".join(lines)


def repeats(question: Question, source: str) -> str:
    """Return SQL that finds ids that are repeated or empty; unless there are none, the counts cannot be used.

    >>> print(repeats(Question({"item": "utt"}, identity=("item",)), '"t"'))
    SELECT "utt" AS "item", COUNT(*) AS "n" FROM "t" GROUP BY "utt" HAVING COUNT(*) > 1 OR COALESCE(CAST("utt" AS VARCHAR), '') = ''
    """
    theirs = [quoted(question.columns[name]) for name in question.identity if name in question.columns]
    shown = [f"{quoted(question.columns[n])} AS {quoted(n)}" for n in question.identity if n in question.columns]
    empty = f"{_text(question.columns['item'])} = ''"
    return (
        f"SELECT {', '.join(shown)}, COUNT(*) AS {quoted(COUNT)} FROM {source} "
        f"GROUP BY {', '.join(theirs)} HAVING COUNT(*) > 1 OR {empty}"
    )


def trials(question: Question, source: str) -> str:
    """Return SQL for the trials of a table under our names: cells as texts, scores as doubles, higher = positive."""
    columns = [f"{_cell(name, question)} AS {quoted(name)}" for name in question.cells if name != "decision"]
    score = _turned(f"CAST({quoted(question.columns[SCORE])} AS DOUBLE)", question)
    if question.nan == "worst":
        low = f"{_cell('label', question)} IN ({', '.join(map(text, question.positive))})"
        score = f"CASE WHEN {_is_nan(score)} THEN CASE WHEN {low} THEN {number(float('-inf'))} ELSE {number(float('inf'))} END ELSE {score} END"
    columns.append(f"{score} AS {quoted(SCORE)}")
    if "decision" in question.cells:
        columns.append(f"{_decision(score, question)} AS {quoted('decision')}")
    if question.count is not None:
        columns.append(f"{quoted(question.count)} AS {quoted(COUNT)}")
    return f"SELECT {', '.join(columns)} FROM {source}"


def quoted(name: str) -> str:
    """Return a name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a text as a SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def number(value: float) -> str:
    """Return an exact double in SQL: a bare literal would be a decimal number."""
    return f"CAST('{value!r}' AS DOUBLE)"


def _text(column: str) -> str:
    return f"COALESCE(CAST({quoted(column)} AS VARCHAR), '')"


def _cell(name: str, question: Question) -> str:
    if name in question.constants:
        return text(question.constants[name])
    value = _text(question.columns[name])
    renamed = question.rename.get(name, {})
    if not renamed:
        return value
    cases = " ".join(f"WHEN {text(old)} THEN {text(new)}" for old, new in renamed.items())
    return f"CASE {value} {cases} ELSE {value} END"


def _turned(score: str, question: Question) -> str:
    return {"": score, "sign": f"-{score}", "complement": f"1 - {score}"}[question.turn]


def _is_nan(score: str) -> str:
    return f"{score} IS NULL OR ISNAN({score})"


def _decision(score: str, question: Question) -> str:
    if question.threshold is not None:
        return f"CASE WHEN {score} >= {number(question.threshold)} THEN '1' ELSE '0' END"
    word = _cell("decision", question)
    if not question.positive:  # keep the words: the caller knows what they mean
        return word
    said = f"WHEN {word} IN ({', '.join(map(text, question.positive))}) THEN '1'"
    silent = ", ".join(map(text, ("abstain", "uncertain", "-1")))
    return f"CASE WHEN {word} = '' THEN '' WHEN {word} IN ({silent}) THEN '-1' {said} ELSE '0' END"


def _place(bits: int) -> str:
    """Return the highest bits of a double; −0.0 counts as 0.0, and all NaNs are made equal."""
    score = quoted(SCORE)
    zero, nan = f"WHEN {score} = 0 THEN {number(0.0)}", f"WHEN ISNAN({score}) THEN {number(float('nan'))}"
    plain = f"CASE {zero} {nan} ELSE {score} END"
    return f"(CAST(CAST({plain} AS BIT) AS UBIGINT) >> {EXACT - bits})"


def _part(cuts: Sequence[float]) -> str:
    """Return how many cuts a score has reached."""
    return " + ".join(f"CASE WHEN {quoted(SCORE)} >= {number(cut)} THEN 1 ELSE 0 END" for cut in sorted(cuts))


def _inside(window: Window, question: Question) -> str:
    """Return which trials are counted.

    Trials without a score are always included unless they are dropped, so that the caller can examine them.
    """
    lost = _is_nan(quoted(SCORE))
    conditions = [f"NOT ({lost})"] if question.nan == "drop" else []
    if window.ranges is not None:
        inside = [f"{quoted(SCORE)} BETWEEN {number(a)} AND {number(b)}" for a, b in window.ranges]
        conditions.append(_any([*inside, *([] if question.nan == "drop" else [lost])]))
    return " AND ".join(conditions)


def _any(conditions: Iterable[str]) -> str:
    return "(" + (" OR ".join(conditions) or "FALSE") + ")"


# ----------------------------------------------------------------------
# Engines that answer counting questions: how many trials of a shard have each score, or lie in each bin of scores.
#
# Each takes a sheet and a window. All engines return the same rows (see `cells_of_counts`); they differ only in time.


class Engine(Protocol):
    """Counts the trials of a sheet."""

    def __call__(self, sheet: Sheet, window: Window, /) -> pl.DataFrame:
        """Return the rows: the cells, then `score`, or `place` (and `part` with cuts), and `n` if grouped.

        A score that is null or NaN is counted as such, inside or outside the window. For probabilities in bins, `low`
        and `high` are the lowest and the highest score of each row.
        """


def by_polars(sheet: Sheet, window: Window) -> pl.DataFrame:
    """Count in this process, on all cores, one piece of the file at a time.

    Whole scores are returned ungrouped, one row per trial: sorting them takes less memory than grouping them. Bins are
    grouped.
    """
    plan, cells, score = sheet.plan, sheet.plan.cells, pl.col("score")
    texts = [pl.col(name).cast(pl.Categorical) for name in cells]
    if window.bits == EXACT and window.ranges is None and sheet.carry:
        return sheet.rows.select(*texts, score, *id_columns(sheet)).collect(engine="streaming")
    trials = sheet.trials
    if window.ranges is not None:
        lost = score.fill_null(float("nan")).is_nan()
        trials = trials.filter(pl.any_horizontal(lost, *(score.is_between(a, b) for a, b in window.ranges)))
    if window.bits == EXACT:
        return trials.select(*texts, score).collect(engine="streaming")
    place = score.map_batches(places_of(window.bits), return_dtype=pl.Int64, is_elementwise=True)
    groups = [*(pl.col(name) for name in cells), place.alias(PLACE)]
    if window.cuts:
        groups.append(pl.sum_horizontal(score >= cut for cut in sorted(window.cuts)).alias(PART))
    ends = [score.min().alias(LOW), score.max().alias(HIGH)] if plan.options.score_kind == "probability" else []
    return trials.group_by(groups).agg(pl.len().cast(pl.Int64).alias(EACH), *ends).collect(engine="streaming")


def by_duckdb(sheet: Sheet, window: Window) -> pl.DataFrame:
    """Count in DuckDB, which by itself spills to disk what a grouping cannot hold in memory."""
    connection = _database().cursor()
    try:
        asked = _direct(sheet)
        source = f"read_parquet({text(sheet.opened.shard.path)})"
        # DuckDB would read this file differently from our reader: give it the rows as our reader reads them
        if asked is None:
            asked, source = Question({n: n for n in (*sheet.plan.cells, "score")}, sheet.plan.cells), '"sheet"'
            _fill(connection, sheet)
        # whole scores are sorted in less time than grouped, as in `by_polars`
        each = None if window.bits == EXACT else EACH
        answer = pl.DataFrame(connection.sql(counts(asked, source, window, each)).to_arrow_table())
        whole = [name for name in (PLACE, PART, EACH) if name in answer.columns]
        answer = answer.with_columns(pl.col(whole).cast(pl.Int64), pl.col(asked.cells).cast(pl.Categorical))
        if window.bits == EXACT or sheet.plan.options.score_kind != "probability":
            return answer
        ends = connection.execute(f'SELECT min("score"), max("score") FROM ({trials(asked, source)})').fetchone()
        return answer.with_columns(
            pl.lit(ends[0], dtype=pl.Float64).alias(LOW), pl.lit(ends[1], dtype=pl.Float64).alias(HIGH)
        )
    finally:
        connection.close()


def _direct(sheet: Sheet) -> Question | None:
    """Return the question about a Parquet file read by DuckDB itself.

    Return None if its columns are not plain texts and numbers, or if a key is joined.
    """
    opened, plan = sheet.opened, sheet.plan
    names = opened.shape.names
    if not opened.is_parquet or plan.key is not None or names is None or "score" not in opened.match.picks:
        return None
    schema = pl.read_parquet_schema(opened.shard.path)
    columns = {n: names[at] for n, at in opened.match.picks.items() if n in (*plan.cells, "score") and at >= 0}
    texts = [schema[theirs] for ours, theirs in columns.items() if ours != "score"]
    if not is_plain_number(schema[columns["score"]]) or any(kind != pl.String for kind in texts):
        return None
    constants = {n: str(opened.shard.system) for n, at in opened.match.picks.items() if at < 0 and n in plan.cells}
    return Question(
        columns,
        plan.cells,
        constants=constants,
        rename=plan.options.rename,
        turn=plan.turn,
        threshold=plan.threshold,
    )


def _fill(connection: Any, sheet: Sheet) -> None:
    """Fill a table with the trials as our reader reads them."""
    columns = [*sheet.plan.cells, "score"]
    kinds = ", ".join(f"{quoted(name)} {'DOUBLE' if name == 'score' else 'VARCHAR'}" for name in columns)
    connection.execute(f'CREATE OR REPLACE TEMP TABLE "sheet" ({kinds})')
    for piece in sheet.trials.select(columns).collect_batches(engine="streaming"):
        connection.register("piece", piece)
        connection.execute('INSERT INTO "sheet" SELECT * FROM piece')
        connection.unregister("piece")


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
"""The memory that DuckDB may use; the rest of a grouping goes to its own temporary files."""


def find_engine(name: str) -> Engine:
    """Return the engine of a name."""
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    return ENGINES[name]


def places_of(bits: int) -> Callable[[pl.Series], pl.Series]:
    """Return a function that takes the highest bits of scores: another encoding of bins (see `bins_from_places`)."""

    def places(score: pl.Series) -> pl.Series:
        values = score.to_numpy() + 0.0  # −0.0 + 0.0 is 0.0; null becomes NaN here and null again below
        with np.errstate(invalid="ignore", over="ignore"):
            is_odd = np.isnan(np.add.reduce(values))  # true if a score is NaN, or if both infinities occur
        if is_odd:
            values[np.isnan(values)] = np.nan  # NaN has many bit patterns, some with nothing in the highest bits
        found = pl.Series(score.name, values.view(np.int64) >> np.int64(EXACT - bits) & np.int64((1 << bits) - 1))
        return found.set(score.is_null(), None) if score.null_count() else found

    return places


# ----------------------------------------------------------------------
# One pass over a shard: open its table under our names, count it with an engine, and examine rows only if needed.
#
# The engine groups. This module decides which counts are requested and whether they can be trusted. Rows are examined
# one by one only if the counts show a problem (a NaN score, a label that is not understood): then the file is read
# again as the in-memory reader reads it, and the reader's own checks report what is wrong and where.

ENOUGH: Final = 1000
"""The number of faults after which a shard is not read any further."""


def count(shard: Shard, plan: ShardPlan, window: Window | None = None) -> ShardTally:
    """Count a shard by a plan: all trials, or those in a window. Faults are in the findings of the tally."""
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
    """The result of counting: the cells, the hashes of ids if requested, and the changes made to scores."""

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
        if sheet.ids.wanted and sheet.ids.first is None:  # a Parquet file: the ids have not been read yet
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
    """Return whether the counts show something that the reader would examine or refuse."""
    options = sheet.plan.options
    column = answer["score"] if "score" in answer.columns else answer[PLACE]
    if column.null_count() or (options.nan_rule == "refuse" and _is_nan_text(answer, sheet.plan.bits).any()):
        return True
    if options.score_kind == "probability" and answer.height:
        low, high = (LOW, HIGH) if LOW in answer.columns else ("score", "score")
        if not (answer[low].fill_nan(None).min() or 0.0) >= 0.0 or (answer[high].fill_nan(None).max() or 0.0) > 1.0:  # type: ignore[operator]
            return True
    return bool(_words(answer, options).problems) or conflicts(sheet.lazy, sheet.plan.key, options)


def _words(answer: pl.DataFrame, options: ReadSpec) -> Reading:
    words = [w for name in ("label", "decision") if name in answer.columns for w in answer[name].unique().to_list()]
    labels = set(answer["label"].unique().to_list()) if "label" in answer.columns else set()
    decided = {w for w in words if w not in ("", "0", "1", "-1", *ABSTAINED, *options.abstain)}
    return understand(sorted(labels | decided), options.positive, options.negative, options.positive_value)


def _is_nan_text(answer: pl.DataFrame, bits: int) -> pl.Series:
    if "score" in answer.columns:
        return answer["score"].is_nan().fill_null(True)
    return (answer[PLACE] & ((1 << (bits - 1)) - 1) > (0x7FF << (bits - 12))).fill_null(True)


def look_closely(sheet: Sheet, ledger: Ledger) -> None:
    """Read a shard like the in-memory reader, with its checks; faults go into the ledger, with their rows."""
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
    """Yield the rows of a shard as the in-memory reader reads them."""
    if plan.key is None:
        picks = {name: at for name, at in opened.match.picks.items() if name in names}
        yield from pieces(opened, picks, Read(), ledger)
        return
    assert isinstance(opened, Joined)
    yield from door_pieces(opened, names, key_of(plan.key, plan.options), plan.options, ledger)


def _declared(options: ReadSpec) -> tuple[str | None, str | None, str | None]:
    return options.positive, options.negative, options.positive_value


def _settled(answer: pl.DataFrame, sheet: Sheet, window: Window) -> tuple[pl.DataFrame, dict[str, int]]:
    """Apply the caller's choices: drop trials without a score or give them the worst one; interpret decision words."""
    plan = sheet.plan
    reading = _words(answer, plan.options)
    if "decision" in plan.cells and plan.threshold is None:
        answer = answer.with_columns(decision=_said(reading, plan.options))
    nan, rule = _is_nan_text(answer, window.bits), plan.options.nan_rule
    if not nan.any():
        return answer, {}
    n = int(answer.filter(nan)[EACH].sum()) if EACH in answer.columns else int(nan.sum())
    lost, answer = answer.filter(nan), answer.filter(~nan)
    if rule == "worst":
        answer = pl.concat([answer, _worst(lost, plan, window, reading)])
    return answer, {f"on-nan:{rule}": n}


def _said(reading: Reading, options: ReadSpec) -> pl.Expr:
    """Return a decision as text: 1, 0, -1 for an abstention, empty if the call failed."""
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
    """Return the trials without a score with the worst score of their class, if that lies in the window."""
    is_low = lost["label"].cast(pl.String).is_in(list(reading.positive_words))
    low, high = worst_scores(plan.options.score_kind)
    ends = [e for e in (low, high) if window.ranges is None or _covers(window, e)]
    score = pl.select(pl.when(is_low).then(low).otherwise(high)).to_series()
    lost = lost.with_columns(score.alias("score")).filter(score.is_in(ends))
    if "decision" in plan.cells and plan.threshold is not None:
        lost = lost.with_columns(decision=decided(plan.threshold).cast(lost.schema["decision"]))
    if window.bits == EXACT:
        return lost
    place = places_of(window.bits)(lost["score"]).alias(PLACE)
    if window.cuts:
        lost = lost.with_columns(
            pl.sum_horizontal(pl.col("score") >= c for c in window.cuts).cast(lost.schema[PART]).alias(PART)
        )
    return lost.drop("score").with_columns(place)


def _covers(window: Window, score: float) -> bool:
    return any(first <= score <= last for first, last in window.ranges or ())


def put(shard: Shard, plan: ShardPlan, cells: tuple[Cell, ...], firsts: tuple[int, ...], folder: str) -> Counts:
    """Write the keys of all scores of a shard to disk, and return how many each block has.

    `firsts` are the lowest keys of the parts, ascending; part k is the file `folder/k`, written piece by piece, the keys
    of one piece ordered by cell. The result has the shape (pieces, parts, cells).
    """
    trials, edges = open_sheet(shard, plan, Ledger()).trials, np.array(firsts, dtype=np.uint64)
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
    known = pl.DataFrame(dict(zip(plan.cells, zip(*cells, strict=True), strict=True))).with_row_index(CODE)
    coded = trials.join(known.lazy(), on=list(plan.cells)).select(CODE, "score")
    size, found = len(firsts) * len(cells), list[Counts]()
    Path(folder).mkdir()
    for frame in coded.collect_batches(chunk_size=ROWS, engine="streaming"):
        keys, at = keys_of(frame["score"].to_numpy()), frame[CODE].to_numpy().astype(np.int64)
        at += (np.searchsorted(edges, keys, side="right") - 1) * len(cells)
        held = np.bincount(at, minlength=size).reshape(-1, len(cells))
        keys = keys[np.argsort(at.astype(np.uint16) if size < 2**16 else at, kind="stable")]
        ends = np.cumsum(held.sum(axis=1))
        for part, block in enumerate(np.split(keys, ends[:-1])):
            if len(block):
                with (Path(folder) / str(part)).open("ab") as file:
                    block.tofile(file)
        found.append(held)
    return np.array(found, dtype=np.int64).reshape(-1, len(firsts), len(cells))


def hashes_of(shard: Shard, plan: ShardPlan, low: int = 0, high: int = 2**64 - 1) -> Keys:
    """Return the hashes of a shard's ids that lie in a range; an empty id counts twice, so that it gets reported."""
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
# The passes over a shard as plain functions: the tallies are the same wherever they are run.
#
# first_pass    count every trial, by score or by bin of scores
# second_pass   count the trials of some scores again, by whole score or by finer bins
# put_pass      write every score to disk, partitioned by range
# hashes_of     collect the hashes of ids, if the tallies do not carry them
# locate        find the places of ids, given their hashes, to report what is repeated


def first_pass(shard: Shard, plan: ShardPlan) -> ShardTally:
    """Count every trial of a shard: per cell, how many have each key (or bin). Faults are in the tally's findings."""
    return count(shard, plan)


def second_pass(shard: Shard, plan: ShardPlan, window: Window) -> ShardTally:
    """Count the trials of a shard that lie in a window, as finely as the window says."""
    return count(shard, plan, window)


# ----------------------------------------------------------------------
# Ids that occur in the shards more than once: found by their hashes, reported with file and row.

T = TypeVar("T")
HASH_BYTES = 32
"""The memory per hash while hashes are examined: the hash, and copies of it while hashes are sorted."""
MOST = 1000
"""The number of repeated ids that are looked up; more would add no information."""


def refuse_repeats(tally: ShardTally, shards: Sequence[Shard], plan: ShardPlan, run: Executor, memory: int) -> None:
    """Refuse an id that occurs twice in all shards. Equal hashes prove nothing: the ids themselves are compared.

    Hashes that the tallies do not carry are collected now, one range after the other, as many at a time as fit in
    memory.
    """
    if are_ascending(tally):
        return
    if tally.ids is not None:
        refuse_hashes(repeated(ordered(tally.ids)), shards, plan, run)
        return
    if not all(shard.facts.get("has_ids") for shard in tally.shards):
        return
    rows = sum(shard.rows for shard in tally.shards)
    for hashed in _collected(shards, plan, run, rows, memory):
        refuse_hashes(repeated(ordered(hashed)), shards, plan, run)


def _collected(shards: Sequence[Shard], plan: ShardPlan, run: Executor, rows: int, memory: int) -> Iterator[Keys]:
    """Yield the hashes of all ids, as many at a time as fit; equal hashes are in the same batch."""
    n = max(-(-rows * HASH_BYTES // memory), 1)
    ranges = [(part * 2**64 // n, (part + 1) * 2**64 // n - 1) for part in range(n)]
    calls = [(shard, plan, *ends) for ends in ranges for shard in shards]
    found = _told(run(hashes_of, calls), len(calls))
    for _ in ranges:
        yield np.concatenate(list(islice(found, len(shards))))


def _told(found: Iterator[T], total: int) -> Iterator[T]:
    for done, one in enumerate(found, 1):
        shared.tell("looking for repeated ids", done, total)
        yield one


def are_ascending(tally: ShardTally) -> bool:
    """Return whether the ids of every shard ascend strictly and the shards' id ranges do not overlap: no id repeats."""
    ranges = sorted(tuple(shard.facts["ids"]) for shard in tally.shards if shard.facts.get("ids"))
    if len(ranges) != len(tally.shards):
        return False
    return all(a[1] < b[0] for a, b in pairwise(ranges))


def repeated(hashes: Keys) -> Keys:
    """Return the hashes that occur more than once, given hashes in ascending order.

    >>> repeated(np.array([1, 4, 4, 4, 9], dtype=np.uint64)).tolist()
    [4]
    """
    return np.unique(hashes[1:][hashes[1:] == hashes[:-1]])


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


def settle_coverage(tally: ShardTally, shards: Sequence[Shard], plan: ShardPlan, run: Executor) -> Covering:
    """Refuse ids that are scored twice and, unless the caller allows it, ids on one side only."""
    assert plan.key is not None and tally.ids is not None
    key, ledger = key_of(plan.key, plan.options), Ledger()
    ids = ordered(tally.ids)
    listed = ids[: int(np.searchsorted(ids, np.uint64(UNLISTED)))]
    seen = np.zeros(key.height, dtype=bool)
    seen[listed.astype(np.int64) % key.height] = True
    # The scores of several systems are in the same rows: an id without a row is missing for all systems.
    systems = max(len(plan.options.score_columns), 1)
    unlisted, absent = (len(ids) - len(listed)) // systems, np.flatnonzero(~seen)
    if not len(listed):
        raise _nothing_common(key, shards, plan, run, ledger)
    refuse_hashes(repeated(listed), shards, plan, run)
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
