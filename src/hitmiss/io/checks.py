"""Interpret labels, check columns, and join scores with their key."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np
import polars as pl

from hitmiss.core.classes import AMBIGUOUS, ONE_OF_THESE, UNDECLARED, Problem, Reading, understand
from hitmiss.core.question import INNER, ReadSpec, shown
from hitmiss.core.shared import ABSTAIN
from hitmiss.io.columns import ABSENT, FALSE, SYSTEM_PREFIX
from hitmiss.io.parse import Ledger, Place, Stop, counted, quoted
from hitmiss.io.tables import Stack

# ----------------------------------------------------------------------
# The checks of one side: ids, scores, labels, repeats. They work on whole columns; single rows are only inspected on a
# fault.

PERCENT: Final = re.compile(r"percent|per_cent|pct|%")
"""Matches column names that announce numbers up to 100."""
DECIMAL_COMMA: Final = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
ABSTAINED: Final = ("abstain", "uncertain", str(ABSTAIN))
FIRST: Final = 1000
NAN_FIX: Final = "fix them, or choose --on-nan drop, or --on-nan worst (the worst score for the trial's own class)"


def score_names(frame: pl.DataFrame) -> list[str]:
    """Return the columns with scores: one, or one per system."""
    return [name for name in frame.columns if name == "score" or name.startswith(SYSTEM_PREFIX)]


def check_ids(stack: Stack, ledger: Ledger) -> None:
    """Check that every row has an id."""
    empty = stack.frame["item"].str.len_bytes() == 0
    if empty.any():
        what = "{n} row{s} without an id"
        places = [Place(p.file, p.row) for p in stack.places(empty)]
        ledger.add("empty-id", what, "give every row its id", places, stack.title("item"), "the id is empty")


def to_numbers(texts: pl.Series, decimal: str = ".") -> tuple[pl.Series, pl.Series]:
    """Convert a column to float64, bit for bit as Python's `float`, and mark rows that hold no number; empty is null.

    A number that is too large for a float is none: 1e400 and 1e500 would both be infinite, and equal.

    >>> numbers, wrong = to_numbers(pl.Series(["0.1", " -Infinity", "1_0", "nan", "", "1e400"]))
    >>> numbers.to_list(), wrong.to_list()
    ([0.1, -inf, None, nan, None, None], [False, False, True, False, False, True])
    """
    if texts.dtype != pl.String:
        return texts, texts.is_null() & False
    if decimal == ",":
        texts = texts.str.replace(",", ".", literal=True)
    numbers = texts.cast(pl.Float64, strict=False)
    if not numbers.null_count() and not numbers.is_infinite().any():
        return numbers, numbers.is_null()
    trimmed = texts.str.strip_chars()
    numbers = trimmed.cast(pl.Float64, strict=False)
    is_too_large = numbers.is_infinite().fill_null(False) & ~trimmed.str.contains(r"(?i)^[+-]?inf")
    numbers = numbers.set(is_too_large, None)
    return numbers, numbers.is_null() & (trimmed.str.len_bytes() > 0)


def numbers_of(
    stack: Stack, name: str, decimal: str, ledger: Ledger, absent: Sequence[str] = ("",), what: str = ""
) -> tuple[pl.Series, pl.Series]:
    """Convert a column to numbers, null where absent (texts in `absent`, lower case), and mark words.

    Words are recorded as findings; a decimal comma is named as such.
    """
    cells = stack.frame[name]
    numbers, wrong = to_numbers(cells, decimal)
    if not numbers.null_count():
        return numbers, wrong
    if cells.dtype == pl.String and wrong.any():
        wrong &= ~cells.str.strip_chars().str.to_lowercase().is_in(list(absent))
    if wrong.any():
        places = stack.places(wrong, name)
        has_comma = all(DECIMAL_COMMA.fullmatch(p.value or "") for p in places)
        first = f"fix them (the first is {quoted(places[0].value)})"
        fix = "they have a decimal comma: use --decimal ," if has_comma else first
        what = what or f"{shown(name)}{{s}}"
        ledger.add("not-a-number", f"{{n}} unreadable {what}", fix, places, stack.title(name), "it is not a number")
    return numbers, wrong


def check_scores(stack: Stack, options: ReadSpec, ledger: Ledger) -> Stack:
    """Convert scores to numbers; report NaN, empty and impossible ones. If they are allowed, empty ones become NaN."""
    for name in score_names(stack.frame):
        column = stack.title(name)
        numbers, wrong = numbers_of(stack, name, options.decimal_sign, ledger, what="score{s}")
        if options.nan_rule == "refuse":
            _refuse_nan(stack, name, numbers, wrong, column, ledger)
        if options.score_kind == "probability":
            _refuse_beyond(stack, name, numbers, column, ledger)
        stack = stack.put(numbers.fill_null(float("nan")).alias(name))
    return stack


def _refuse_nan(stack: Stack, name: str, numbers: pl.Series, wrong: pl.Series, column: str, ledger: Ledger) -> None:
    nan = numbers.is_nan().fill_null(False)
    if nan.any():
        places = stack.places(nan, name)
        ledger.add("nan-score", "{n} NaN score{s}", NAN_FIX, places, column, "the score is NaN")
    if numbers.null_count() > wrong.sum():
        places = stack.places(numbers.is_null() & ~wrong, name)
        ledger.add("empty-score", "{n} empty score{s}", NAN_FIX, places, column, "the score is empty")


def _refuse_beyond(stack: Stack, name: str, numbers: pl.Series, column: str, ledger: Ledger) -> None:
    beyond = ((numbers < 0) | (numbers > 1)).fill_null(False) & numbers.is_not_nan().fill_null(False)
    if beyond.any():
        is_score = name != "confidence"
        percent = (
            f"if they are in per cent, say --column confidence_percent={column}; "
            f"if they are something else, --column rating={column}"
        )
        fix = "declare another score kind (raw, logit or llr), or fix them" if is_score else percent
        what = f"{{n}} {'score' if is_score else name}{{s}} outside 0..1"
        ledger.add("not-a-probability", what, fix, stack.places(beyond, name), column)


def check_numbers(stack: Stack, names: Sequence[str], options: ReadSpec, ledger: Ledger) -> Stack:
    """Check further numeric columns; empty and `-` count as absent."""
    for name in names:
        if name == "confidence":
            stack = stack.put(_confidences(stack, options, ledger))
            continue
        what = f"value{{s}} of {shown(name)}"
        numbers, _ = numbers_of(stack, name, options.decimal_sign, ledger, ("", "-"), what)
        stack = stack.put(numbers.alias(name))
    return stack


def _confidences(stack: Stack, options: ReadSpec, ledger: Ledger) -> pl.Series:
    """Return confidences from 0 to 1, null if absent: such a verdict counts, but is left out of calibration."""
    column, title = stack.frame["confidence"], stack.title("confidence")
    if column.dtype == pl.String:
        column = column.str.strip_chars()
        is_share = column.str.ends_with("%")
        numbers, wrong = to_numbers(column.str.strip_chars_end("% "), options.decimal_sign)
        absent = column.str.to_lowercase().is_in(list(ABSENT))
        wrong &= ~absent
        if wrong.any():
            first = quoted(stack.places(wrong, "confidence")[0].value)
            ledger.notes.append(
                f"{wrong.sum():,} values of {title} are not numbers, the first is {first}: "
                "these answers count, and are left out of calibration"
            )
    else:
        numbers, is_share = column, pl.Series([False]).new_from_index(0, len(column))
    if PERCENT.search(title.lower()) or "confidence_percent" in options.columns:
        is_share = is_share | True
    numbers = pl.select(pl.when(is_share).then(numbers / 100).otherwise(numbers)).to_series().fill_nan(None)
    _refuse_beyond(stack, "confidence", numbers, title, ledger)
    return numbers.alias("confidence")


def without_false(errors: pl.Series) -> pl.Series:
    """Return errors as text, empty if the column says, in any spelling, that there was no error.

    >>> without_false(pl.Series("error", ["", "False", "none", "0", "timeout", "true"])).to_list()
    ['', '', '', '', 'timeout', 'true']
    """
    nothing = errors.str.strip_chars().str.to_lowercase().is_in([*ABSENT, *FALSE])
    return pl.select(pl.when(nothing).then(pl.lit("")).otherwise(errors).alias(errors.name)).to_series()


def plain_numbers(texts: pl.Series) -> pl.Series:
    """Return whole numbers in one spelling; other texts unchanged.

    >>> plain_numbers(pl.Series("trial", ["0", "00", "0.0", "1e0", "a", ""])).to_list()
    ['0', '0', '0', '1', 'a', '']
    """
    numbers = texts.str.strip_chars().cast(pl.Float64, strict=False)
    is_whole = numbers.is_finite() & (numbers == numbers.round(0)) & (numbers.abs() < 2**53)
    whole = pl.when(is_whole).then(numbers.fill_nan(None).cast(pl.Int64, strict=False).cast(pl.String))
    return pl.select(whole.otherwise(texts).alias(texts.name)).to_series()


def check_labels(stack: Stack, column: str, reading: Reading, ledger: Ledger, abstain: Sequence[str] = ()) -> Stack:
    """Convert words to 1 and 0 (and -1 for an abstention); report words that are not understood."""
    words, silent = stack.frame[column], [*ABSTAINED, *abstain]
    for problem in reading.problems:
        if reading.choices and problem.kind in (AMBIGUOUS, UNDECLARED):
            continue
        where = words == problem.word
        if where.any() and not (column == "decision" and problem.word in ("", *silent)):
            _refuse_word(stack, column, where, problem, reading, ledger)
    refuse_undeclared_class(stack, column, reading, ledger)
    values = words.is_in(list(reading.positive_words)).cast(pl.Int8)
    if column == "decision":
        abstained = words.is_in(silent)
        known = pl.when(abstained).then(ABSTAIN).when(words == "").then(None).otherwise(values)
        values = pl.select(known.cast(pl.Int8)).to_series()
    return stack.put(values.alias(column))


def refuse_undeclared_class(stack: Stack, column: str, reading: Reading, ledger: Ledger) -> None:
    """Report once that nothing says which class is positive, with the declarations to choose from."""
    if not reading.choices or any(finding.choices for finding in ledger.findings):
        return
    kind, what = reading.question(column)
    place = Place(stack.tables[0].name)
    ledger.add(kind, what, ONE_OF_THESE, [place], stack.title(column), what, reading.choices)


def _refuse_word(
    stack: Stack, column: str, where: pl.Series, problem: Problem, reading: Reading, ledger: Ledger
) -> None:
    places, word = stack.places(where, column), quoted(problem.word)
    if problem.kind == "ambiguous-label":
        what, each = f"{{n}} {column}{{s}} {word} without a known meaning", f"the {column} names no class"
        fix = "words and numbers are mixed: write all of them in one way, or say which value is positive with --positive-value 1"
    else:
        known = ", ".join((*reading.positive_words, *reading.negative_words)) or "none"
        hint = f"did you mean {quoted(problem.meant)}?" if problem.meant else f"known here: {known}"
        what, each = f"{{n}} row{{s}} with the unknown {column} {word}", f"the {column} is not known, {hint}"
        fix = f"{hint}{'' if problem.meant else '.'} Fix the file, or declare the class with --positive or --negative"
    ledger.add(problem.kind, what, fix, places, stack.title(column), each)


def check_repeats(
    stack: Stack, key: Sequence[str], is_key: bool, options: ReadSpec, ledger: Ledger, twin: Stack | None = None
) -> Stack:
    """Report ids that occur more than once. Identical rows are merged if the caller allows it, different ones never.

    `twin` is the other side: if it has the same ids in the same order, its result also holds here.
    """
    frame = stack.frame
    if _has_unique_items(frame, twin):
        return replace(stack, is_unique=True)
    repeated = frame.select(pl.struct(key).is_duplicated()).to_series()
    if not repeated.any():
        return stack
    groups = frame.filter(repeated).with_columns(repeated.arg_true().alias(":row"))
    every = pl.struct(frame.columns).n_unique().over(key)
    labels = pl.col("label").n_unique().over(key) if "label" in frame.columns else pl.lit(1)
    groups = groups.with_columns(every.alias(":rows"), labels.alias(":labels"))
    _refuse_conflicts(stack, groups, is_key, ledger)
    identical = groups.filter(pl.col(":rows") == 1)[":row"]
    return _merge(stack, identical, is_key, options, ledger) if len(identical) else stack


def _has_unique_items(frame: pl.DataFrame, twin: Stack | None) -> bool:
    items = frame["item"]
    if twin is not None and twin.is_unique and _same(items, twin.frame["item"]):
        return True
    # As many distinct hashes as rows prove that all ids differ, at less cost than comparing ids; equal hashes prove
    # nothing.
    return _ascend(items) or items.hash().n_unique() == len(items)


def _ascend(items: pl.Series) -> bool:
    """Return whether each id is longer than the previous one, or equally long and greater, as with row numbers.

    If so, no id occurs twice. Works chunk by chunk: comparing all neighbours at once makes polars copy the column
    first.

    >>> _ascend(pl.Series(["8", "9", "10", "11"])), _ascend(pl.Series(["8", "9", "9"]))
    (True, False)
    """
    if len(items) > FIRST and not _ascend(items.head(FIRST)):
        return False
    before = (0, "")
    for ids in items.get_chunks():
        if not len(ids):
            continue
        n, lengths = len(ids) - 1, ids.str.len_bytes()
        short, long = lengths.head(n), lengths.tail(n)
        if (
            before >= (lengths[0], ids[0])
            or not ((long > short) | ((long == short) & (ids.tail(n) > ids.head(n)))).all()
        ):
            return False
        before = (lengths[n], ids[n])
    return True


def _refuse_conflicts(stack: Stack, groups: pl.DataFrame, is_key: bool, ledger: Ledger) -> None:
    both = groups.filter(pl.col(":labels") > 1)[":row"]
    differ = groups.filter((pl.col(":rows") > 1) & (pl.col(":labels") == 1))[":row"]
    fix = "keep the right row of each; rows that differ are never merged"
    each, has_both = "the id has another row that differs", "the id has both labels"
    if len(both):
        ledger.add(
            "both-labels", "{n} row{s} of ids with both labels", fix, stack.at(both), stack.title("label"), has_both
        )
    if len(differ):
        kind = "conflicting-in-key" if is_key else "conflicting-id"
        ledger.add(kind, "{n} differing row{s} of shared ids", fix, stack.at(differ), stack.title("item"), each)


def _merge(stack: Stack, identical: pl.Series, is_key: bool, options: ReadSpec, ledger: Ledger) -> Stack:
    frame = stack.frame
    if not options.dedupe:
        kind = "duplicate-in-key" if is_key else "duplicate-id"
        what, each = "{n} repeated row{s}", "the row occurs more than once"
        ledger.add(kind, what, "merge identical rows with --dedupe", stack.at(identical), stack.title("item"), each)
        return stack
    first = frame.select(pl.struct(pl.all()).is_first_distinct()).to_series()
    ledger.choices.append(f"dedupe{'-key' if is_key else ''}({frame.height - first.sum()})")
    return stack.keep(first)


# ----------------------------------------------------------------------
# Join scores and key into one table: each id must be on both sides, and a finding lists the ids that are not.

MENDS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("without the spaces around them", str.strip),
    ("without regard to case", str.lower),
    ("without their folder", lambda text: text.replace("\\", "/").rpartition("/")[2]),
    ("without their file suffix", lambda text: re.sub(r"\.[A-Za-z][A-Za-z0-9]{1,4}$", "", text)),
    ("without folder and file suffix", lambda text: re.sub(r"^.*/|\.[A-Za-z][A-Za-z0-9]{1,4}$", "", text)),
    ("in one Unicode form", lambda text: unicodedata.normalize("NFC", text)),
)
Coverage = tuple[int, int]
SUFFIX: Final = r"\.[A-Za-z][A-Za-z0-9]{1,4}$"
AT: Final = f"{INNER}at"


Texts = TypeVar("Texts", pl.Series, pl.Expr)


def stems(items: Texts) -> Texts:
    """Return ids without their folder and file suffix.

    >>> stems(pl.Series("item", ["a/E_1.flac", r"c:\\x\\E_2.wav", "E_3", "v1.5"])).to_list()
    ['E_1', 'E_2', 'E_3', 'v1.5']
    """
    return items.str.replace_all("\\", "/", literal=True).str.replace(r"^.*/", "").str.replace(SUFFIX, "")


def join(
    scores: Stack, key: Stack, runs: Sequence[str], options: ReadSpec, ledger: Ledger
) -> tuple[pl.DataFrame, Coverage | None]:
    """Join the columns of the key to the scores, in the order of the scores; return the coverage if ids are missing.

    Columns that both sides have must agree. The frame holds the rows that matched: use it only if the ledger has no
    finding.
    """
    on = _shared_key(scores, key, ledger)
    if not runs and _same_order(scores.frame, key.frame, on):
        return _beside(scores, key.frame, on, ledger), None
    listed = key.frame.select(on).with_row_index(AT)
    if not key.is_unique:  # a repeated id has already been reported; here it counts once
        listed = listed.unique(on, keep="first", maintain_order=True)
    at = scores.frame.select(on).join(listed, on=on, how="left", maintain_order="left")[AT]
    if at.null_count() == len(at):
        scored, listed_ids = scores.frame["item"].to_list(), key.frame["item"].to_list()
        raise no_common_id(scored, listed_ids, [scores.place(0), key.place(0)], ledger)
    unlisted, absent = at.is_null(), _absent(scores.frame.select(runs), listed[AT], at, key.frame.height)
    total = listed.height * (scores.frame.select(runs).n_unique() if runs else 1)
    if options.allow_missing:
        note_missing(int(unlisted.sum()), len(absent), total, ledger)
    else:
        refuse_missing(scores.places(unlisted), key.at(absent), scores.title("item"), ledger)
    coverage = (total - len(absent), total) if len(absent) else None
    matched = scores.keep(~unlisted) if unlisted.any() else scores
    # In one chunk: gathering rows from the parser's many chunks takes seven times as long.
    return _beside(matched, key.frame.rechunk()[at.drop_nulls()], on, ledger), coverage


def _shared_key(scores: Stack, key: Stack, ledger: Ledger) -> list[str]:
    """Return the columns that identify a question. An item asked about several targets needs them on both sides."""
    has_target = ["target" in side.frame.columns for side in (scores, key)]
    if all(has_target):
        return ["item", "target"]
    with_target = scores if has_target[0] else key
    if any(has_target) and with_target.frame["target"].n_unique() > 1 and not with_target.is_unique:
        without = key if has_target[0] else scores
        fix = "say which one it is with --column target=NAME"
        raise ledger.stop("missing-column", "there is no column for the target", fix, [without.place(0)], "target")
    return ["item"]


def _same_order(scores: pl.DataFrame, key: pl.DataFrame, on: Sequence[str]) -> bool:
    return all(_same(scores[name], key[name]) for name in on)


def _same(a: pl.Series, b: pl.Series) -> bool:
    """Return whether two columns are equal; piece by piece, as polars copies columns that are divided differently."""
    if len(a) != len(b):
        return False
    ends = np.cumsum([0, *map(len, b.get_chunks())]).tolist()
    return all(a.slice(at, end - at).equals(b.slice(at, end - at)) for at, end in pairwise(ends))


def _absent(runs: pl.DataFrame, listed: pl.Series, at: pl.Series, height: int) -> pl.Series:
    """Return the rows of the key without a score, once for each run that lacks them."""
    if not runs.width:
        seen = np.zeros(height, dtype=np.bool_)
        seen[at.drop_nulls().to_numpy()] = True
        return listed.filter(~seen[listed.to_numpy()])
    found = runs.with_columns(at.alias(AT)).drop_nulls().unique()
    every = runs.unique(maintain_order=True).join(pl.DataFrame({AT: listed}), how="cross")
    return every.join(found, on=every.columns, how="anti", maintain_order="left")[AT]


def note_missing(unlisted: int, absent: int, total: int, ledger: Ledger) -> None:
    """Note how much of the key is scored, and how many scores the key does not list."""
    if absent:
        ledger.choices.append(f"coverage:{total - absent}/{total}")
    if unlisted:
        ledger.choices.append(f"unlisted:{unlisted}")
        ledger.notes.append(f"{unlisted:,} scored ids are not in the key and were left out")


def no_common_id(scored: list[str], listed: list[str], places: list[Place], ledger: Ledger) -> Stop:
    """Return the finding that no id matches, to be raised."""
    hint = _hint(scored, listed)
    if "folder" in hint or "suffix" in hint:
        hint += ": say --match stem"
    return ledger.stop("no-common-id", "no id is in both files", hint or "check that they belong together", places)


def refuse_missing(
    extra: list[Place], absent: list[Place], column: str, ledger: Ledger, sizes: tuple[int, int] | None = None
) -> None:
    """Report ids that only one side has; `sizes` gives their numbers if not all places are given."""
    n_extra, n_absent = sizes or (len(extra), len(absent))
    hint = _hint([p.item or "" for p in extra], [p.item or "" for p in absent])
    if "folder" in hint or "suffix" in hint:
        hint += ": say --match stem"
    fix = f"{hint}; or score" if hint else "complete the files, or score"
    fix += " what both have with --allow-missing, and every table says so"
    lacking = _numbered("{n} id{s} of the key without a score", n_absent, absent)
    unknown = _numbered("{n} scored id{s} missing from the key", n_extra, extra)
    ledger.add("only-in-key", lacking, fix, absent, None, "the id has no score")
    ledger.add(
        "only-in-scores",
        unknown,
        fix,
        extra,
        column,
        "the id is not in the key",
    )


def _numbered(what: str, n: int, places: list[Place]) -> str:
    return what if n == len(places) else counted(what, n)


def _hint(extra: list[str], absent: list[str]) -> str:
    """Say whether unmatched ids would match after a common difference between files is removed.

    >>> _hint(["E_1.flac"], ["E_1"])
    '1 would match without their file suffix'
    """
    for how, mend in MENDS:
        n = len({mend(item) for item in extra} & {mend(item) for item in absent})
        if n:
            return f"{n:,} would match {how}"
    return ""


def _beside(scores: Stack, key: pl.DataFrame, on: list[str], ledger: Ledger) -> pl.DataFrame:
    """Return the columns of the key beside the scores. Facts that both sides state must agree."""
    for name in [c for c in key.columns if c in scores.frame.columns and c not in on]:
        refuse_conflicts(scores, name, scores.frame[name].ne_missing(key[name]), ledger)
    new = key.select(name for name in key.columns if name not in scores.frame.columns)
    return pl.concat([scores.frame, new], how="horizontal")


def refuse_conflicts(scores: Stack, name: str, differ: pl.Series, ledger: Ledger) -> None:
    """Report rows whose column `name` says something else than the key."""
    if differ.any():
        places = scores.places(differ, name)
        conflict(places, len(places), name, scores.title(name), ledger)


def differing(ours: pl.Series, theirs: pl.Series, options: ReadSpec) -> tuple[pl.Series, Reading | None]:
    """Return where two columns of texts differ; two spellings of one class are the same. Labels come with their meaning."""
    if ours.name != "label":
        return ours != theirs, None
    words = sorted({*ours.unique(), *theirs.unique()})
    reading = understand(words, options.positive, options.negative, options.positive_value)
    is_positive = [side.is_in(list(reading.positive_words)) for side in (ours, theirs)]
    return is_positive[0] != is_positive[1], reading


def conflict(places: list[Place], n: int, name: str, column: str, ledger: Ledger) -> None:
    """Report `n` rows, some of them by their places, whose column `name` says something else than the key."""
    kind = "label-conflict" if name == "label" else "column-conflict"
    what = _numbered(f"{{n}} row{{s}} with another {name} than in the key", n, places)
    fix = "make both files say the same, or take the column out of one"
    ledger.add(kind, what, fix, places, column, f"the key says another {name}")
