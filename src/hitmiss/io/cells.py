"""The single values of prediction files: labels, scores, decisions, thresholds. A missing value is told from a wrong one.

Missing is blank, `NA` and the like, and -1 as a label (unlabelled); a caller may drop such rows. Wrong is 0.7 as a label,
1.7 as a probability, a word as a number; nobody may drop those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from hitmiss.columns import apart, shown
from hitmiss.io.checks import DECIMAL_COMMA, to_numbers
from hitmiss.io.findings import Ledger, quoted
from hitmiss.io.tables import Stack
from hitmiss.io.words import ABSENT, FAMILIES

if TYPE_CHECKING:
    from hitmiss.io.predictions import PredictionRules

DROP: Final = "mend them, or leave such rows out with --missing drop"
TOXIC: Final = next(f for f in FAMILIES if "toxic" in f.positive)
CODES: Final = {
    **dict.fromkeys(("1", "true", *TOXIC.positive), 1),
    **dict.fromkeys(("0", "false", *TOXIC.negative), 0),
}
"""What the words of labels and decisions mean, in small letters; spreadsheets write TRUE."""


def is_absent(texts: pl.Series) -> pl.Series:
    """Which cells say nothing.

    >>> is_absent(pl.Series(["", " NA", "0", "None", "nan", "no"])).to_list()
    [True, True, False, True, True, False]
    """
    return texts.str.strip_chars().str.to_lowercase().is_in(list(ABSENT))


def labels(stack: Stack, may_miss: bool, ledger: Ledger) -> pl.Series:
    """1 and 0, null where missing."""
    column = stack.title("label")
    values, absent, wrong = _binary(stack.frame["label"])
    unlabelled = _equals(stack.frame["label"], -1.0) if wrong.any() else wrong
    wrong &= ~unlabelled
    fix = "a label is 1 or toxic, 0 or non-toxic; mend them"
    each = "it is neither 1 nor 0"
    ledger.add("bad-label", "{n} label{s} neither 1 nor 0", fix, stack.places(wrong, "label"), column, each)
    if not may_miss:
        places = stack.places(absent, "label")
        ledger.add("missing-label", "{n} missing label{s}", DROP, places, column, "the label is missing")
        what, each = "{n} label{s} of -1, which marks rows without a label", "-1 marks a row without a label"
        ledger.add("unlabelled", what, DROP, stack.places(unlabelled, "label"), column, each)
    return values


def decisions(stack: Stack, may_miss: bool, ledger: Ledger) -> pl.Series:
    """1 and 0; null where missing. A column that is all blank is none."""
    column = stack.title("decision")
    values, absent, wrong = _binary(stack.frame["decision"])
    fix = "a decision is 1 or toxic, 0 or non-toxic; mend them"
    what, each = "{n} decision{s} neither 1 nor 0", "it is neither 1 nor 0"
    ledger.add("bad-decision", what, fix, stack.places(wrong, "decision"), column, each)
    if absent.all():
        ledger.notes.append(f"{stack.tables[0].name}: the column {column} is blank and counts as absent")
    elif not may_miss:
        places = stack.places(absent, "decision")
        ledger.add("missing-decision", "{n} missing decision{s}", DROP, places, column, "the decision is missing")
    return values


def _binary(texts: pl.Series) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Values 1, 0 or null; which cells are absent; which are something else."""
    one, zero = texts == "1", texts == "0"
    nothing = pl.Series([False]).new_from_index(0, len(texts))
    if (one | zero).all():
        return one.cast(pl.Int8), nothing, nothing
    words = texts.str.strip_chars().str.to_lowercase()
    values = words.replace_strict(CODES, default=None, return_dtype=pl.Int8)
    numbers = texts.str.strip_chars().cast(pl.Float64, strict=False)
    values = pl.select(pl.when(numbers == 1).then(1).when(numbers == 0).then(0).otherwise(values)).to_series()
    absent = is_absent(texts)
    return values.cast(pl.Int8), absent, values.is_null() & ~absent


def _equals(texts: pl.Series, number: float) -> pl.Series:
    return (texts.str.strip_chars().cast(pl.Float64, strict=False) == number).fill_null(False)


def scores(stack: Stack, rules: PredictionRules, ledger: Ledger) -> pl.Series:
    """Exact float64, null where missing; probabilities unless the caller allows any number."""
    numbers, absent = _numbers(stack, "score", rules.decimal, ledger)
    if rules.missing == "refuse":
        places = stack.places(absent, "score")
        ledger.add("missing-score", "{n} missing score{s}", DROP, places, stack.title("score"), "the score is missing")
    if not rules.any_scores:
        outside = ((numbers < 0) | (numbers > 1)).fill_null(False)
        fix = "if they are logits, allow them with --scores any and give a --threshold; nothing is squashed by guess"
        ledger.add(
            "score-outside",
            "{n} score{s} outside 0..1",
            fix,
            stack.places(outside, "score"),
            stack.title("score"),
            "it is outside 0..1",
        )
    return numbers


def thresholds(stack: Stack, rules: PredictionRules, ledger: Ledger) -> pl.Series:
    """The threshold that stands in each row, null where blank."""
    numbers, _ = _numbers(stack, "threshold", rules.decimal, ledger)
    if not rules.any_scores:
        outside = ((numbers < 0) | (numbers > 1)).fill_null(False)
        places = stack.places(outside, "threshold")
        ledger.add(
            "bad-threshold",
            "{n} threshold{s} outside 0..1",
            "mend them",
            places,
            stack.title("threshold"),
            "it is outside 0..1",
        )
    return numbers


def shares(stack: Stack, name: str, decimal: str, ledger: Ledger) -> pl.Series:
    """A column of the user's with shares from 0 to 1, null where blank."""
    numbers, _ = _numbers(stack, apart(name), decimal, ledger)
    outside = ((numbers < 0) | (numbers > 1)).fill_null(False)
    places = stack.places(outside, apart(name))
    what, each = f"{{n}} value{{s}} of {name} outside 0..1", "it is outside 0..1"
    ledger.add("share-outside", what, "mend them", places, name, each)
    return numbers


def _numbers(stack: Stack, ours: str, decimal: str, ledger: Ledger) -> tuple[pl.Series, pl.Series]:
    """A column as numbers, null where absent, and which cells are absent; words are found."""
    cells = stack.frame[ours]
    if cells.dtype == pl.String:
        numbers, wrong = to_numbers(cells, decimal)
    else:
        numbers, wrong = cells, cells.is_null() & False
    numbers = numbers.fill_nan(None)
    empty = numbers.is_null()
    if not empty.any():
        return numbers, empty
    absent = is_absent(cells) if cells.dtype == pl.String else empty
    wrong &= ~absent
    if wrong.any():
        places = stack.places(wrong, ours)
        has_comma = all(DECIMAL_COMMA.fullmatch(p.value or "") for p in places)
        fix = "they have a decimal comma: say --decimal ," if has_comma else f"the first is {quoted(places[0].value)}"
        ledger.add(
            "not-a-number", f"{{n}} unreadable {shown(ours)}{{s}}", fix, places, stack.title(ours), "it is no number"
        )
    return numbers, absent


def check_groups(stack: Stack, ledger: Ledger) -> None:
    """Every row needs a group."""
    blank = stack.frame["group"].str.strip_chars() == ""
    what, fix = "{n} row{s} without a value to group by", "give every row its value"
    places = stack.places(blank, "group")
    ledger.add("empty-group", what, fix, places, stack.title("group"), "there is nothing to group by")


def check_thresholds(frame: pl.DataFrame, stack: Stack, rules: PredictionRules, ledger: Ledger) -> None:
    """One threshold a group, compared as numbers, unless the rule says otherwise; some blank ones are noted.

    Where each row has its own and scores may be any number, nothing can stand in for a blank one.
    """
    rule = rules.threshold_rule
    bound, column = frame["threshold"], stack.title("threshold")
    if bound.null_count() == frame.height or (not bound.null_count() and bound.min() == bound.max()):
        return
    facts = frame.group_by("group", maintain_order=True).agg(
        low=pl.col("threshold").min(),
        high=pl.col("threshold").max(),
        first=pl.col("threshold").drop_nulls().first(),
        blank=pl.col("threshold").null_count(),
        distinct=pl.col("threshold").drop_nulls().n_unique(),
        n=pl.len(),
    )
    for row in facts.iter_rows(named=True):
        several = row["distinct"] > 1
        spread = f"{row['distinct']:,} values of {column} from {row['low']!r} to {row['high']!r}"
        if several and rule == "same":
            other = frame.filter(pl.col("group") == row["group"], pl.col("threshold") != row["first"])
            what = f"{row['group']} has {spread}, and one is meant"
            fix = "choose --threshold_rule first or --threshold_rule per-row"
            ledger.add("thresholds-differ", what, fix, stack.at(other["row"], "threshold"), column, "it is another one")
        elif several and rule == "first":
            ledger.notes.append(f"{row['group']}: {spread}; the first, {row['first']!r}, was used for all rows")
        if 0 < row["blank"] < row["n"] and rule == "per-row" and rules.any_scores:
            lacking = (pl.col("group") == row["group"]) & pl.col("threshold").is_null() & pl.col("decision").is_null()
            places = stack.at(frame.filter(lacking)["row"], "threshold")
            what, fix = "{n} row{s} without a threshold", "give each its own: no default fits scores of any kind"
            ledger.add("missing-threshold", what, fix, places, column, "the threshold is missing")
        elif 0 < row["blank"] < row["n"]:
            used = "the default was used there" if rule == "per-row" else f"{row['first']!r} was used there too"
            ledger.notes.append(f"{row['group']}: {column} is blank in {row['blank']:,} of {row['n']:,} rows; {used}")
