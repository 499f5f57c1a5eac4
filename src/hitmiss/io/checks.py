"""Check ids and repeats, and join scores with their key."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np
import polars as pl

from hitmiss.core.classes import Reading
from hitmiss.core.columns import FIXED, INNER
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io.cells import understand
from hitmiss.io.parse import Ledger, Place, Stop, counted, quoted
from hitmiss.io.tables import Stack

# ----------------------------------------------------------------------
# The checks of one side: ids and repeats. They work on whole columns; single rows are only inspected on a fault.

FIRST: Final = 1000


def check_ids(stack: Stack, ledger: Ledger) -> None:
    """Check that every row has an id."""
    empty = stack.frame["item"].str.len_bytes() == 0
    if empty.any():
        what = "{n} row{s} without an id"
        places = [Place(p.file, p.row) for p in stack.places(empty)]
        ledger.add("empty-id", what, "give every row its id", places, stack.title("item"), "the id is empty")


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
    _refuse_conflicts(stack, groups, key, is_key, ledger)
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


SHOWN_COLUMNS: Final = 4


def _telling_apart(groups: pl.DataFrame, key: Sequence[str]) -> list[str]:
    """Return the columns that differ inside groups of rows with one id, those first that tell all their rows apart."""
    texts = [name for name, kind in groups.schema.items() if kind in (pl.String, pl.Categorical)]
    others = [name for name in texts if name not in (*FIXED, *key) and not name.startswith(INNER)]
    if not others:
        return []
    distinct = groups.select(pl.col(name).n_unique().over(key).alias(name) for name in others)
    size = groups.select(pl.len().over(key).alias(INNER))[INNER]
    varying = [name for name in others if (distinct[name] > 1).any()]
    return sorted(varying, key=lambda name: not (distinct[name] == size).all())


def _refuse_conflicts(stack: Stack, groups: pl.DataFrame, key: Sequence[str], is_key: bool, ledger: Ledger) -> None:
    both = groups.filter(pl.col(":labels") > 1)[":row"]
    differ = groups.filter((pl.col(":rows") > 1) & (pl.col(":labels") == 1))[":row"]
    fix = "keep the right row of each; rows that differ are never merged"
    apart_by = [] if is_key else _telling_apart(groups, key)
    if apart_by:
        names = [stack.title(name) for name in apart_by[:SHOWN_COLUMNS]]
        fix += f". They differ in {', '.join(names)}: if that says which run answered, say --run-column {names[0]}"
    each, has_both = "the id has another row that differs", "the id has both labels"
    if len(both):
        ledger.add(
            "both-labels", "{n} row{s} of ids with both labels", fix, stack.at(both), stack.title("label"), has_both
        )
    if len(differ):
        kind = "conflicting-in-key" if is_key else "conflicting-id"
        ledger.add(kind, "{n} differing row{s} of shared ids", fix, stack.at(differ), stack.title("item"), each)


def check_one_label(stack: Stack, question: Sequence[str], reading: Reading, ledger: Ledger) -> None:
    """Report items that have one label in one run and the other label in another: an item has one label."""
    is_positive = stack.frame["label"].is_in(list(reading.positive_words)).alias(":positive")
    both = stack.frame.select(*question, is_positive).select(
        (pl.col(":positive").min() != pl.col(":positive").max()).over(question)
    )
    places = stack.places(both.to_series(), "label")
    if not places:
        return
    first = places[0]
    is_first = (
        (stack.frame["item"] == first.item)
        & both.to_series()
        & (is_positive != is_positive[both.to_series().arg_max() or 0])
    )
    other = stack.places(is_first, "label")[0]
    where = f"row {other.row}" if other.file == first.file else f"{other.file}, row {other.row}"
    what = f"{{n}} row{{s}} of ids with two labels in different runs (here {quoted(first.value)}, {quoted(other.value)} in {where})"
    fix = "an item has one label: correct the files"
    ledger.add("both-labels", what, fix, places, stack.title("label"), "another run has another label for this id")


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
        first = scores.frame["item"].filter(unlisted).to_list(), key.frame["item"].gather(absent).to_list()
        note_missing(int(unlisted.sum()), len(absent), total, ledger, first)
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


def note_missing(
    unlisted: int,
    absent: int,
    total: int,
    ledger: Ledger,
    first: tuple[Sequence[str], Sequence[str]] = ((), ()),
    what: str = "trials",
) -> None:
    """Note how much of the key is scored, and how many scores the key does not list; `first` are ids of both."""
    if absent:
        ledger.choices.append(f"coverage:{total - absent}/{total}")
        said = f"{total - absent:,} of {total:,} {what} of the key have a score"
        ledger.notes.append(f"{said}: {absent:,} without one were left out{_named(first[1])}")
    if unlisted:
        ledger.choices.append(f"unlisted:{unlisted}")
        ledger.notes.append(f"{unlisted:,} scored ids are not in the key and were left out{_named(first[0])}")


def _named(ids: Sequence[str]) -> str:
    shown_ids = list(dict.fromkeys(ids))[:SHOWN_IDS]
    return f", as {', '.join(map(quoted, shown_ids))}" if shown_ids else ""


SHOWN_IDS: Final = 3


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
