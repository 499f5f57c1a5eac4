"""Join scores and key into one table: each id must be on both sides, and a finding lists the ids that are not."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np
import polars as pl

from hitmiss.core.classes import Reading
from hitmiss.core.columns import INNER
from hitmiss.core.finding import Finding, Place, Remark
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.text import quoted
from hitmiss.io.diagnostics import Diagnostics, Stop
from hitmiss.io.labels import understand
from hitmiss.io.loaded import LoadedRows

BY_STEM: Final = ("without their folder", "without their file suffix", "without folder and file suffix")
"""The differences that `--match stem` removes."""
ID_VARIANTS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("without the spaces around them", str.strip),
    ("without regard to case", str.lower),
    (BY_STEM[0], lambda text: text.replace("\\", "/").rpartition("/")[2]),
    (BY_STEM[1], lambda text: re.sub(r"\.[A-Za-z][A-Za-z0-9]{1,4}$", "", text)),
    (BY_STEM[2], lambda text: re.sub(r"^.*/|\.[A-Za-z][A-Za-z0-9]{1,4}$", "", text)),
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
    scores: LoadedRows,
    key: LoadedRows,
    runs: Sequence[str],
    options: ReadSpec,
    ledger: Diagnostics,
    *,
    by_item: bool = False,
) -> tuple[pl.DataFrame, Coverage | None]:
    """Join the columns of the key to the scores, in the order of the scores; return the coverage if ids are missing.

    `by_item`: every item has the same questions, so that items that one side lacks are named and counted once.
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
    total, named, what = listed.height, unlisted, "trials"
    if by_item:
        first_rows = key.frame["item"].is_first_distinct().arg_true()
        total, what, absent = len(first_rows), "texts", absent.filter(absent.is_in(first_rows.implode()))
        named = unlisted & scores.frame["item"].is_first_distinct()
    total *= scores.frame.select(runs).n_unique() if runs else 1
    if options.allow_missing:
        first = scores.frame["item"].filter(named).to_list(), key.frame["item"].gather(absent).to_list()
        note_missing(int(named.sum()), len(absent), total, ledger, first, what)
    else:
        refuse_missing(scores.places(named), key.at(absent), scores.title("item"), ledger)
    coverage = (total - len(absent), total) if len(absent) else None
    matched = scores.keep(~unlisted) if unlisted.any() else scores
    # In one chunk: gathering rows from the parser's many chunks takes seven times as long.
    return _beside(matched, key.frame.rechunk()[at.drop_nulls()], on, ledger), coverage


def _shared_key(scores: LoadedRows, key: LoadedRows, ledger: Diagnostics) -> list[str]:
    """Return the columns that identify a question. An item asked about several targets needs them on both sides."""
    has_target = ["target" in side.frame.columns for side in (scores, key)]
    if all(has_target):
        return ["item", "target"]
    with_target = scores if has_target[0] else key
    if any(has_target) and with_target.frame["target"].n_unique() > 1 and not with_target.is_unique:
        without = key if has_target[0] else scores
        raise ledger.stop("missing-column/target", [without.place(0)], "target")
    return ["item"]


def _same_order(scores: pl.DataFrame, key: pl.DataFrame, on: Sequence[str]) -> bool:
    return all(same_values(scores[name], key[name]) for name in on)


def same_values(a: pl.Series, b: pl.Series) -> bool:
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
    ledger: Diagnostics,
    first: tuple[Sequence[str], Sequence[str]] = ((), ()),
    what: str = "trials",
) -> None:
    """Note how much of the key is scored, and how many scores the key does not list; `first` are ids of both."""
    if absent:
        ledger.choices.append(f"coverage:{total - absent}/{total}")
        ledger.notes.append(
            Remark.of(
                "unscored-left-out", n=total - absent, total=total, what=what, absent=absent, ids=_named(first[1])
            )
        )
    if unlisted:
        ledger.choices.append(f"unlisted:{unlisted}")
        ledger.notes.append(Remark.of("unlisted-left-out", n=unlisted, ids=_named(first[0])))


def _named(ids: Sequence[str]) -> str:
    shown_ids = list(dict.fromkeys(ids))[:SHOWN_IDS]
    return f", as {', '.join(map(quoted, shown_ids))}" if shown_ids else ""


SHOWN_IDS: Final = 3


def no_common_id(scored: list[str], listed: list[str], places: list[Place], ledger: Diagnostics) -> Stop:
    """Return the finding that no id matches, to be raised."""
    return ledger.stop("no-common-id", places, hint=_hint(scored, listed) or Finding("check-pair"))


def refuse_missing(
    extra: list[Place], absent: list[Place], column: str, ledger: Diagnostics, sizes: tuple[int, int] | None = None
) -> None:
    """Report ids that only one side has; `sizes` gives their numbers if not all places are given."""
    n_extra, n_absent = sizes or (len(extra), len(absent))
    hint = _hint([p.item or "" for p in extra], [p.item or "" for p in absent]) or Finding("complete-files")
    ledger.add("only-in-key", absent, hint=hint, **_numbered(n_absent, absent))
    ledger.add("only-in-scores", extra, column, hint=hint, **_numbered(n_extra, extra))


def _numbered(n: int, places: list[Place]) -> dict[str, int]:
    """Return the number of faults if not all of their places are given."""
    return {} if n == len(places) else {"n": n}


def _hint(extra: list[str], absent: list[str]) -> Finding | None:
    """Say whether unmatched ids would match after a common difference between files is removed.

    >>> print(_hint(["E_1.flac"], ["E_1"]))
    1 would match without their file suffix: say match='stem'
    """
    for how, mend in ID_VARIANTS:
        n = len({mend(item) for item in extra} & {mend(item) for item in absent})
        if n:
            return Finding("would-match/stem" if how in BY_STEM else "would-match", values={"n": n, "how": how})
    return None


def _beside(scores: LoadedRows, key: pl.DataFrame, on: list[str], ledger: Diagnostics) -> pl.DataFrame:
    """Return the columns of the key beside the scores. Facts that both sides state must agree."""
    for name in [c for c in key.columns if c in scores.frame.columns and c not in on]:
        refuse_conflicts(scores, name, scores.frame[name].ne_missing(key[name]), ledger)
    new = key.select(name for name in key.columns if name not in scores.frame.columns)
    return pl.concat([scores.frame, new], how="horizontal")


def refuse_conflicts(scores: LoadedRows, name: str, differ: pl.Series, ledger: Diagnostics) -> None:
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


def conflict(places: list[Place], n: int, name: str, column: str, ledger: Diagnostics) -> None:
    """Report `n` rows, some of them by their places, whose column `name` says something else than the key."""
    code = "label-conflict/key" if name == "label" else "column-conflict/key"
    ledger.add(code, places, column, name=name, **_numbered(n, places))
