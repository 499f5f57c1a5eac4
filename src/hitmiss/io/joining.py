"""Scores and key become one table: every id once on each side, or a finding that lists those that are not."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import polars as pl

from hitmiss.columns import INNER
from hitmiss.io.findings import Ledger, Place, Stop, counted
from hitmiss.io.tables import Stack
from hitmiss.readspec import ReadSpec

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


def stems(items: pl.Series) -> pl.Series:
    """Ids without their folder and file ending.

    >>> stems(pl.Series("item", ["a/E_1.flac", r"c:\\x\\E_2.wav", "E_3", "v1.5"])).to_list()
    ['E_1', 'E_2', 'E_3', 'v1.5']
    """
    return items.str.replace_all("\\", "/", literal=True).str.replace(r"^.*/", "").str.replace(SUFFIX, "")


def join(
    scores: Stack, key: Stack, runs: Sequence[str], options: ReadSpec, ledger: Ledger
) -> tuple[pl.DataFrame, Coverage | None]:
    """Scores with the columns of the key beside them, in the order of the scores; the coverage where ids are missing.

    Columns that both sides have must agree. The frame has the rows that matched: it is of use only where the ledger
    is clean.
    """
    on = _shared_key(scores, key, ledger)
    if not runs and _same_order(scores.frame, key.frame, on):
        return _beside(scores, key.frame, on, ledger), None
    listed = key.frame.select(on).with_row_index(AT)
    if not key.is_unique:  # a repeated id is a fault by now: it counts once here
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
    return _beside(matched, key.frame[at.drop_nulls()], on, ledger), coverage


def _shared_key(scores: Stack, key: Stack, ledger: Ledger) -> list[str]:
    """The columns that name a question. An item that is asked about several targets needs them on both sides."""
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
    return all(scores[name].equals(key[name]) for name in on)


def _absent(runs: pl.DataFrame, listed: pl.Series, at: pl.Series, height: int) -> pl.Series:
    """The rows of the key that have no score, once for each run that lacks them."""
    if not runs.width:
        seen = np.zeros(height, dtype=np.bool_)
        seen[at.drop_nulls().to_numpy()] = True
        return listed.filter(~seen[listed.to_numpy()])
    found = runs.with_columns(at.alias(AT)).drop_nulls().unique()
    every = runs.unique(maintain_order=True).join(pl.DataFrame({AT: listed}), how="cross")
    return every.join(found, on=every.columns, how="anti", maintain_order="left")[AT]


def note_missing(unlisted: int, absent: int, total: int, ledger: Ledger) -> None:
    """Write down how much of the key is scored, and how many scores it does not list."""
    if absent:
        ledger.choices.append(f"coverage:{total - absent}/{total}")
    if unlisted:
        ledger.choices.append(f"unlisted:{unlisted}")
        ledger.notes.append(f"{unlisted:,} scored ids are not in the key and were left out")


def no_common_id(scored: list[str], listed: list[str], places: list[Place], ledger: Ledger) -> Stop:
    """The finding that nothing matches; to be raised."""
    hint = _hint(scored, listed)
    if "folder" in hint or "suffix" in hint:
        hint += ": say --match stem"
    return ledger.stop("no-common-id", "no id is in both files", hint or "check that they belong together", places)


def refuse_missing(
    extra: list[Place], absent: list[Place], column: str, ledger: Ledger, sizes: tuple[int, int] | None = None
) -> None:
    """Find the ids of one side alone; `sizes` tells how many there are where not all places are given."""
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
    """Whether ids that do not match would, but for something that files often differ in.

    >>> _hint(["E_1.flac"], ["E_1"])
    '1 would match without their file suffix'
    """
    for how, mend in MENDS:
        n = len({mend(item) for item in extra} & {mend(item) for item in absent})
        if n:
            return f"{n:,} would match {how}"
    return ""


def _beside(scores: Stack, key: pl.DataFrame, on: list[str], ledger: Ledger) -> pl.DataFrame:
    """The columns of the key beside the scores. What both say must be the same."""
    for name in [c for c in key.columns if c in scores.frame.columns and c not in on]:
        differ = scores.frame[name].ne_missing(key[name])
        if differ.any():
            kind = "label-conflict" if name == "label" else "column-conflict"
            what = f"{{n}} row{{s}} with another {name} than in the key"
            fix = "make both files say the same, or take the column out of one"
            ledger.add(kind, what, fix, scores.places(differ, name), scores.title(name), f"the key says another {name}")
    new = key.select(name for name in key.columns if name not in scores.frame.columns)
    return pl.concat([scores.frame, new], how="horizontal")
