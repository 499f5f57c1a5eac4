"""Check the ids of one side, and rows that repeat an id.

The checks work on whole columns; single rows are only inspected on a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from hitmiss.core.classes import Reading
from hitmiss.core.columns import FIXED, INNER
from hitmiss.core.finding import Finding, Place
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.stacked import stacked
from hitmiss.core.text import quoted
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.join import same_values
from hitmiss.io.loaded import LoadedRows

FIRST_IDS: Final = 1000


def check_ids(stack: LoadedRows, ledger: Diagnostics) -> None:
    """Check that every row has an id."""
    empty = stack.frame["item"].str.len_bytes() == 0
    if empty.any():
        ledger.add("empty-id", [Place(p.file, p.row) for p in stack.places(empty)], stack.title("item"))


def check_repeats(
    stack: LoadedRows,
    key: Sequence[str],
    is_key: bool,
    options: ReadSpec,
    ledger: Diagnostics,
    twin: LoadedRows | None = None,
) -> LoadedRows:
    """Report ids that occur more than once. Identical rows are merged if the caller allows it, different ones never.

    `twin` is the other side: if it has the same ids in the same order, its result also holds here.
    """
    frame = stack.frame
    if _has_unique_items(frame, twin):
        return replace(stack, is_unique=True)
    n = stacked(frame) if "target" in key else None
    if n is not None and _has_unique_items(frame.head(n), None):
        return stack
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


def _has_unique_items(frame: pl.DataFrame, twin: LoadedRows | None) -> bool:
    items = frame["item"]
    if twin is not None and twin.is_unique and same_values(items, twin.frame["item"]):
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
    if len(items) > FIRST_IDS and not _ascend(items.head(FIRST_IDS)):
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


def _refuse_conflicts(
    stack: LoadedRows, groups: pl.DataFrame, key: Sequence[str], is_key: bool, ledger: Diagnostics
) -> None:
    both = groups.filter(pl.col(":labels") > 1)[":row"]
    differ = groups.filter((pl.col(":rows") > 1) & (pl.col(":labels") == 1))[":row"]
    names = [stack.title(name) for name in ([] if is_key else _telling_apart(groups, key))[:SHOWN_COLUMNS]]
    apart = Finding("told-apart-by", values={"names": names, "one": names[0]}) if names else None
    if len(both):
        ledger.add("both-labels/ids", stack.at(both), stack.title("label"), apart=apart)
    if len(differ):
        code = "conflicting-in-key" if is_key else "conflicting-id"
        ledger.add(code, stack.at(differ), stack.title("item"), apart=apart)


def check_one_label(stack: LoadedRows, question: Sequence[str], reading: Reading, ledger: Diagnostics) -> None:
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
    here = {"here": quoted(first.value), "other": quoted(other.value), "place": where}
    ledger.add("both-labels/runs", places, stack.title("label"), **here)


def _merge(stack: LoadedRows, identical: pl.Series, is_key: bool, options: ReadSpec, ledger: Diagnostics) -> LoadedRows:
    frame = stack.frame
    if not options.dedupe:
        code = "duplicate-in-key" if is_key else "duplicate-id/repeated"
        ledger.add(code, stack.at(identical), stack.title("item"))
        return stack
    first = frame.select(pl.struct(pl.all()).is_first_distinct()).to_series()
    ledger.choices.append(f"dedupe{'-key' if is_key else ''}({frame.height - first.sum()})")
    return stack.keep(first)
