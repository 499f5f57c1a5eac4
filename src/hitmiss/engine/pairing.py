"""Pair two runs on the same questions, row by row; questions without a partner or with another label are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from hitmiss.core.completeness import ROW, Completeness, completeness, in_rounds, lacks_items
from hitmiss.core.errors import DataError, Fault
from hitmiss.core.finding import Finding, Value
from hitmiss.core.trials import Trials

REPEATS: Final = ("trial", "seed", "repeat", "epoch")
"""Run columns that number repetitions of one run. Two runs with the same repetitions are paired one by one. Otherwise
each repetition of one run is paired with each of the other, so that the means over repetitions are compared."""
SHOWN: Final = 3


@dataclass(frozen=True, eq=False)
class Pair:
    """The trials of two runs in the order of the key: row i of both is the same question.

    `key` names the columns by which they were matched; `left_out` counts the questions that only one run has.
    """

    a: Trials
    b: Trials
    names: tuple[str, str] = ("A", "B")
    key: tuple[str, ...] = ("item", "target")
    left_out: tuple[int, int] = (0, 0)
    first: tuple[str, ...] = ()
    """Ids of the first questions that only one run has."""
    there: Completeness | None = None
    """How many pairs there are, of how many that there should be, if this was counted (see `completed`)."""

    def __len__(self) -> int:
        return len(self.a)

    @property
    def repeats(self) -> tuple[str, ...]:
        """The columns that number repetitions."""
        return tuple(name for name in self.key if name in REPEATS)


def pair(
    a: Trials,
    b: Trials,
    *,
    names: tuple[str, str] = ("A", "B"),
    allow_missing: bool = False,
    scores: bool = True,
    ordered: bool = True,
) -> Pair:
    """Match two runs by (item, target), and by repetition if runs were repeated (see `REPEATS`).

    Pairs are in the order of their ids; without `ordered`, in the order of `a`, for a caller that orders many runs at
    once.

    Refused are: files without ids; different classes, directions or (if `scores` are compared) score kinds; questions
    that one run lacks, with both lists (`allow_missing` leaves them out and counts them); different labels.

    >>> a = Trials.of([1, 0], [0.9, 0.1], item=["x", "y"])
    >>> b = Trials.of([0, 1], [0.3, 0.6], item=["y", "x"])
    >>> pair(a, b).b.score.tolist()
    [0.6, 0.3]
    """
    for trials, name in zip((a, b), names, strict=True):
        _refuse_unpaired(trials, name)
    _refuse_headers(a, b, names, scores)
    for column in REPEATS:
        # Repetitions with the same names are partners (the same seed, say). Others have no natural partner: every one of
        # them meets every one of the other run, and the means are compared.
        if _repetitions(a, column) != _repetitions(b, column):
            a, b = _crossed(a, b, column, names, allow_missing)
    key = _key(a, b, names)
    _refuse_weights(a, b, key, names)
    first, second, left_out, ids = _match(a, b, key, names, allow_missing)
    _refuse_labels(first, second, names)
    first, second = in_order((first, second), key) if ordered else (first, second)
    return Pair(first, second, names, key, left_out, ids)


def completed(runs: Sequence[Trials], key: Sequence[str]) -> tuple[list[Trials], Completeness]:
    """Complete runs of the same rows whose repetitions lack items, so that every item counts the same.

    Each question that some repetition lacks is answered by those that have it, in turn (`core.completeness.in_rounds`).
    Also returned is how many pairs there are, of how many that there should be.
    """
    repeats = [name for name in key if name in REPEATS]
    first, rest = runs[0].frame, [name for name in key if name not in (*REPEATS, "item", "target")]
    there = completeness(first, [*rest, *repeats])
    if not repeats or there.is_full:
        return list(runs), there
    numbered = first.select(*key).with_row_index(ROW)
    parts = [own for _, own in numbered.group_by(rest, maintain_order=True)] if rest else [numbered]
    made = pl.concat([in_rounds(own, repeats)[0] if lacks_items(own, repeats) else own for own in parts])
    tables = [run.frame[made[ROW]].with_columns(made[ROW], *(made[name] for name in repeats)) for run in runs]
    return [replace(run, frame=table, unique_over=None) for run, table in zip(runs, tables, strict=True)], there


def size_of(trials: Trials) -> tuple[int, int]:
    """Return the number of trials, and of those that are positive, without the copies that a completed run has."""
    rows = trials.frame.unique(ROW) if ROW in trials.frame.columns else trials.frame
    return rows.height, int(rows["label"].sum())


def incomplete(there: Completeness) -> list[str]:
    """Say that repetitions lack items, and what is compared then."""
    if there.is_full:
        return []
    return [f"{there.text}; each item counts the same, by the mean of its own answers"]


def in_order(runs: Sequence[Trials], key: tuple[str, ...]) -> list[Trials]:
    """Return runs of the same rows in the order of their ids, so that draws do not depend on the order of the files."""
    first = runs[0]
    # Files of challenges are usually sorted by id: looking is far cheaper than sorting millions of texts again.
    if len(key) == 2 and not first.has_targets and first.frame["item"].is_sorted():
        return list(runs)
    order = first.frame.select(pl.arg_sort_by(*key)).to_series()
    return [Trials(run.frame[order], run.header) for run in runs]


def _refuse_unpaired(trials: Trials, name: str) -> None:
    # Rows of two files in the same order are no proof that they answer the same questions, so line numbers do not pair.
    file = trials.header.unnamed
    if file is not None:
        raise DataError.of("no-ids", name=name, file=file)


def _refuse_headers(a: Trials, b: Trials, names: tuple[str, str], scores: bool) -> None:
    one, other = a.header, b.header
    # Exchanged classes get a message of their own: with them every number of one run would be turned round.
    if (one.positive, one.negative) == (other.negative, other.positive):
        raise DataError.of(
            "other-direction", positive=one.positive, names=names[0], positive_2=other.positive, names_2=names[1]
        )
    for field in ("positive", "negative"):
        ours, theirs = getattr(one, field), getattr(other, field)
        if ours != theirs:
            raise DataError.of("other-classes", field=field, ours=ours, names=names[0], theirs=theirs, names_2=names[1])
    if scores and one.score_kind != other.score_kind:
        raise DataError.of(
            "other-score-kind",
            names=names[0],
            score_kind=one.score_kind,
            names_2=names[1],
            score_kind_2=other.score_kind,
        )


def _refuse_weights(a: Trials, b: Trials, key: tuple[str, ...], names: tuple[str, str]) -> None:
    """Refuse pairs whose rows weigh differently in the two runs."""
    for kind, field in (("sampling", "weight"), ("frequency", "repeated_by")):
        ours, theirs = getattr(a.header, field), getattr(b.header, field)
        if (ours is None) != (theirs is None):
            has, lacks = names if theirs is None else names[::-1]
            raise DataError.of("other-weights", has=has, kind=kind, lacks=lacks)
        if ours is None:
            continue
        sides = (t.frame.select(*key, pl.col(own).alias(":weight")) for t, own in ((a, ours), (b, theirs)))
        both = next(sides).join(next(sides), on=list(key), how="inner")
        other = both.filter(pl.col(":weight") != pl.col(":weight_right"))
        if other.height:
            item, one, two = other.select("item", ":weight", ":weight_right").row(0)
            raise DataError.of(
                "other-weights/rows", height=other.height, names=names[0], names_2=names[1], item=item, one=one, two=two
            )


def _repetitions(trials: Trials, column: str) -> list[str]:
    """Return the repetitions of a run, in order; empty if it was made once, whatever that repetition is called."""
    found = trials.frame[column].unique().sort().to_list() if column in trials.header.runs else []
    # A run that was made once is a run, whatever its only repetition is called ("1", "seed 0").
    return found if len(found) > 1 else []


def _crossed(a: Trials, b: Trials, column: str, names: tuple[str, str], allow_missing: bool) -> tuple[Trials, Trials]:
    """Pair each repetition of one run with each of the other, on the questions that both answer."""
    question = ["item", "target"]
    only = [x.frame.join(y.frame, on=question, how="anti").select(question).unique() for x, y in ((a, b), (b, a))]
    if (only[0].height or only[1].height) and not allow_missing:
        raise _missing(only[0].sort(question), only[1].sort(question), ("item", "target"), names)
    values = [_repetitions(t, column) or [""] for t in (a, b)]
    own = [
        t.frame if len(v) > 1 else t.frame.with_columns(pl.lit("").alias(column))
        for t, v in zip((a, b), values, strict=True)
    ]
    # Both sides get one name per pair of repetitions, "own/other": the join then finds each pair once.
    first = own[0].join(pl.DataFrame({"_other": values[1]}), how="cross")
    second = own[1].join(pl.DataFrame({"_other": values[0]}), how="cross")
    frames = [
        first.with_columns(pl.concat_str(column, "_other", separator="/").alias(column)).drop("_other"),
        second.with_columns(pl.concat_str("_other", column, separator="/").alias(column)).drop("_other"),
    ]
    on = [*question, column]
    kept = (frames[0].join(frames[1], on=on, how="semi"), frames[1].join(frames[0], on=on, how="semi"))
    return _again(a, kept[0], column), _again(b, kept[1], column)


def _again(trials: Trials, frame: pl.DataFrame, column: str) -> Trials:
    runs = tuple(dict.fromkeys((*trials.header.runs, column)))
    # Rows now occur once per pair of repetitions, so what was known of their uniqueness no longer holds.
    return replace(trials.retitle(runs=runs), frame=frame, unique_over=None)


def _key(a: Trials, b: Trials, names: tuple[str, str]) -> tuple[str, ...]:
    """Return item, target and every run column with several values, which must have the same values in both runs."""
    several = [_several(a), _several(b)]
    for own, other, name in ((several[0], several[1], names[0]), (several[1], several[0], names[1])):
        for column, values in own.items():
            if column not in other:
                what = "repetitions" if column in REPEATS else "runs"
                raise DataError.of(
                    "several-runs/in-one",
                    name=name,
                    n_values=len(values),
                    what=what,
                    column=column,
                    values_2=tuple(values[:SHOWN]),
                    part=" …" if len(values) > SHOWN else "",
                    values_3=values[0],
                )
    return ("item", "target", *several[0])


def _several(trials: Trials) -> dict[str, list[str]]:
    found = {name: trials.frame[name].unique().sort().to_list() for name in trials.header.runs}
    return {name: values for name, values in found.items() if len(values) > 1}


def _match(
    a: Trials, b: Trials, key: tuple[str, ...], names: tuple[str, str], allow_missing: bool
) -> tuple[Trials, Trials, tuple[int, int], tuple[str, ...]]:
    """Return the matched rows of both runs, how many of each have no partner, and the first ids of those."""
    _refuse_repeats(a, key, names[0])
    _refuse_repeats(b, key, names[1])
    # The usual case: two files of one corpus in the same order need no join.
    if all(a.frame[name].equals(b.frame[name]) for name in key):
        return a, b, (0, 0), ()
    places = b.frame.select(*key).with_row_index("_at")
    at = a.frame.select(*key).join(places, on=list(key), how="left", maintain_order="left")["_at"]
    only_a = a.frame.select(*key).filter(at.is_null())
    only_b = b.frame.select(*key).join(a.frame.select(*key), on=list(key), how="anti")
    # Nothing in common is another mistake than a few missing ids: the lists would fill the screen and say nothing.
    if only_a.height == len(a):
        raise DataError.of(
            "no-pairs/ids", names=names[0], only_a=_ids(only_a, key), names_2=names[1], only_b=_ids(only_b, key)
        )
    if (only_a.height or only_b.height) and not allow_missing:
        raise _missing(only_a, only_b, key, names)
    first, second = a.frame.filter(at.is_not_null()), b.frame[at.drop_nulls()]
    ids = pl.concat([only_a["item"], only_b["item"]]).unique(maintain_order=True).head(SHOWN)
    return Trials(first, a.header), Trials(second, b.header), (only_a.height, only_b.height), tuple(ids)


def _refuse_repeats(trials: Trials, key: tuple[str, ...], name: str) -> None:
    # Ids that occur once each cannot repeat a question; only otherwise the whole key is looked at.
    if {*(trials.unique_over or ("",))} <= {*key} or trials.frame["item"].n_unique() == len(trials):
        return
    twice = trials.frame.select(*key).filter(trials.frame.select(pl.struct(key).is_duplicated()).to_series())
    if twice.height:
        raise DataError.of("repeated-questions", name=name, height=twice.height, ids=_ids(twice[:1], key))


def _missing(only_a: pl.DataFrame, only_b: pl.DataFrame, key: tuple[str, ...], names: tuple[str, str]) -> DataError:
    """Return the error with both lists of questions: counted in the message, complete in the faults."""
    parts: list[Finding] = []
    faults: list[Fault] = []
    for rows, own, other in ((only_a, *names), (only_b, *names[::-1])):
        if rows.height:
            values: dict[str, Value] = {"n": rows.height, "own": own, "other": other, "ids": _ids(rows, key)}
            parts.append(Finding("only-in-one", values=values))
            faults += [
                Fault(f"only-in-{own}", f"only in {own}", column="item", value=_id(row))
                for row in rows.select(_shown(rows, key)).iter_rows()
            ]
    found = Finding("different-samples", values={"parts": tuple(parts)})
    return DataError.coded(found, faults[0].kind).with_faults(faults)


def _ids(rows: pl.DataFrame, key: tuple[str, ...]) -> str:
    shown = [_id(row) for row in rows.head(SHOWN).select(_shown(rows, key)).iter_rows()]
    return ", ".join(shown) + (" …" if rows.height > SHOWN else "")


def _shown(rows: pl.DataFrame, key: tuple[str, ...]) -> list[str]:
    """Return the questions as text; the target is left out if there is only one."""
    return [name for name in key if name != "target" or rows["target"].n_unique() > 1]


def _id(row: tuple[object, ...]) -> str:
    return " / ".join(map(str, row))


def _refuse_labels(a: Trials, b: Trials, names: tuple[str, str]) -> None:
    differ = a.frame["label"] != b.frame["label"]
    n = int(differ.sum())
    if not n:
        return
    # If all labels differ, the truth is the same and the classes are exchanged; a list of all items would hide that.
    if n == len(a):
        raise DataError.of("reversed-labels", names=names[0], names_2=names[1])
    faults = [
        Fault("label-conflict", f"{names[0]} and {names[1]} have other labels", column="label", value=item)
        for item in a.frame.filter(differ)["item"]
    ]
    values: dict[str, Any] = {"n": n, "total": len(a), "a": names[0], "b": names[1], "first": faults[0].value}
    raise DataError.of("label-conflict", **values).with_faults(faults)
