"""Which columns say which run a row belongs to, and where one run mixes several conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from hitmiss.core.columns import user_name
from hitmiss.core.finding import Remark
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io import loaded
from hitmiss.io.aliases import (
    ANSWERED_BY,
    MADE_BY,
    REPETITIONS,
    is_condition,
    may_name_runs,
    numbers_repetitions,
    plain,
)
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.sides import Side
from hitmiss.io.where import rows_among


def mixed_note(run: str, values: Mapping[str, Sequence[object]], *, are_columns: bool) -> Remark:
    """Return the warning that a run mixes answers that were given under different conditions.

    `are_columns`: the conditions are columns of the file, so that rows can be chosen by them.
    """
    told = [f"{name} ({', '.join(sorted(map(str, own))[:SHOWN_VALUES])})" for name, own in values.items()]
    who = f"{run} mixes" if run else "this file mixes"
    fix = "choose one with --where, or make them runs with --run-column" if are_columns else "score them one by one"
    what = f"{who} answers that were given under different conditions, and they are pooled here: {'; '.join(told)}"
    return Remark.of("mixed-conditions", what=what, fix=fix)


SHOWN_VALUES: Final = 4


def with_runs(scores: Side, options: ReadSpec, ledger: Diagnostics) -> ReadSpec:
    """Return the options with the columns that say which run a row belongs to, as their names and values show.

    Answers of two models are never pooled. A column `model` may also say how an item was made: it names runs if items
    occur under several of its values, or if there are no ids and each of its values has both classes.
    """
    named = [name for name in scores.match.slices if may_name_runs(name) and name not in options.runs]
    frame = _kept_rows(scores, options) if named else scores.stack.frame
    several = [name for name in named if frame[name].n_unique() > 1]
    if not several:
        return options
    order = (*ANSWERED_BY, *MADE_BY, *REPETITIONS)
    runs = list(options.runs)
    for name in sorted(several, key=lambda name: order.index(plain(user_name(name)))):
        if _names_runs(frame, name, runs):
            runs.append(name)
        elif plain(user_name(name)) in MADE_BY and _has_both(frame, name):
            values = ", ".join(frame[name].unique().sort().to_list()[:SHOWN_RUNS])
            ledger.notes.append(
                f"{user_name(name)} has {frame[name].n_unique()} values ({values}), and no id occurs under two of them: they "
                f"were taken as a property of the items and pooled; say --run-column {user_name(name)} if they are runs"
            )
    return options.changed(runs=tuple(runs))


SHOWN_RUNS: Final = 3


def note_conditions(stack: loaded.LoadedRows, slices: Sequence[str], runs: Sequence[str], ledger: Diagnostics) -> None:
    """Say where a run mixes prompts, temperatures or versions; repetitions belong to one run."""
    named = [name for name in slices if is_condition(name) and name in stack.frame.columns and name not in runs]
    several = [name for name in named if 1 < stack.frame[name].n_unique() < stack.frame.height]
    if not several:
        return
    rest = [name for name in runs if not numbers_repetitions(name)]
    parts = stack.frame.group_by(rest, maintain_order=True) if rest else [((), stack.frame)]
    for key, own in parts:
        values = {user_name(name): own[name].unique().to_list() for name in several if own[name].n_unique() > 1}
        if values:
            ledger.notes.append(mixed_note(", ".join(map(str, key)), values, are_columns=True))


def _kept_rows(scores: Side, options: ReadSpec) -> pl.DataFrame:
    """Return the rows of the scores that `where` keeps, by the columns that the scores have."""
    frame = scores.stack.frame
    for name, values in options.where.items():
        column = scores.match.own(name)
        if column is not None:
            frame = frame.filter(rows_among(frame[column], name, values, options)[0])
    return frame


def _names_runs(frame: pl.DataFrame, name: str, runs: Sequence[str]) -> bool:
    """Return whether the values of a column are runs, beside those that other columns name already."""
    if "item" not in frame.columns:
        return not numbers_repetitions(name) and _has_both(frame, name)
    identity = [column for column in ("item", "target", *runs) if column in frame.columns]
    if frame["item"].n_unique() < frame.height and frame[name].n_unique() < frame.height:
        again = frame.filter(pl.struct(identity).is_duplicated())
        if again.height and again.select((pl.col(name).n_unique().over(identity) > 1).any()).item():
            return True
    return plain(user_name(name)) in ANSWERED_BY and frame[name].n_unique() < frame.height


def _has_both(frame: pl.DataFrame, name: str) -> bool:
    """Return whether each value of a column has rows with several labels; not if the labels are in another file."""
    if "label" not in frame.columns:
        return False
    return bool(frame.group_by(name).agg(pl.col("label").n_unique() > 1)["label"].all())
