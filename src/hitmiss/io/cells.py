"""What numbers in cells say: scores, thresholds, shares, weights, confidences, durations and others.

Every reader uses these rules, so a cell means the same, or is refused with the same code, in every command. They work
on whole columns; single rows are only inspected on a fault.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import polars as pl

from hitmiss.core.columns import user_name
from hitmiss.core.finding import Finding
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.text import quoted
from hitmiss.core.weights import not_allowed
from hitmiss.io.aliases import SYSTEM_PREFIX, says_probability
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.frames import INEXACT, may_be_inexact
from hitmiss.io.loaded import LoadedRows
from hitmiss.io.words import ABSENT, FALSE, flag, is_absent


def number_in(text: str) -> float | None:
    """Return the number that a text holds; None if it holds none, or one that is not finite.

    Python's `float` would also accept full-width digits and 1_0.

    >>> number_in("1e-1"), number_in("1_0"), number_in("inf"), number_in("")
    (0.1, None, None, None)
    """
    try:
        number = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


PERCENT: Final = re.compile(r"percent|per_cent|pct|%")
"""Matches column names that announce numbers up to 100."""
DECIMAL_COMMA: Final = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
IN_PERCENT: Final = re.compile(r"\s*[-+]?[\d.,]+\s*%\s*")


def score_names(frame: pl.DataFrame) -> list[str]:
    """Return the columns with scores: one, or one per system."""
    return [name for name in frame.columns if name == "score" or name.startswith(SYSTEM_PREFIX)]


def to_numbers(texts: pl.Series, decimal: str = ".") -> tuple[pl.Series, pl.Series]:
    """Convert a column to float64, bit for bit as Python's `float`, and mark rows that hold no number; empty is null.

    A number that is too large for a float is none: 1e400 and 1e500 would both be infinite, and equal. Nor is a whole
    number of which a float would lose digits.

    >>> numbers, wrong = to_numbers(pl.Series(["0.1", " -Infinity", "1_0", "nan", "", "1e400", "9007199254740993"]))
    >>> numbers.to_list(), wrong.to_list()
    ([0.1, -inf, None, nan, None, None, None], [False, False, True, False, False, True, True])
    """
    if texts.dtype != pl.String:
        return texts, texts.is_null() & False
    if decimal == ",":
        texts = texts.str.replace(",", ".", literal=True)
    numbers = texts.cast(pl.Float64, strict=False)
    if not numbers.null_count() and not may_be_inexact(numbers):
        return numbers, numbers.is_null()
    trimmed = texts.str.strip_chars()
    numbers = trimmed.cast(pl.Float64, strict=False)
    is_too_large = numbers.is_infinite().fill_null(False) & ~trimmed.str.contains(r"(?i)^[+-]?inf")
    numbers = numbers.set(is_too_large | _loses_digits(trimmed, numbers), None)
    return numbers, numbers.is_null() & (trimmed.str.len_bytes() > 0)


WHOLE: Final = r"^[+-]?[0-9]+$"


def _loses_digits(texts: pl.Series, numbers: pl.Series) -> pl.Series:
    """Mark whole numbers, written without a point or an exponent, that a float does not hold exactly."""
    is_large = ((numbers.abs() >= INEXACT) & numbers.is_finite() & texts.str.contains(WHOLE)).fill_null(False)
    rows = is_large.arg_true()
    lost = [int(text) != int(number) for text, number in zip(texts[rows], numbers[rows], strict=True)]
    return is_large.scatter(rows, lost) if lost else is_large


def _refuse_lost_digits(stack: LoadedRows, name: str, wrong: pl.Series, ledger: Diagnostics) -> pl.Series:
    """Report whole numbers that would be rounded, since distinct ones could then tie; return the other wrong cells."""
    is_whole = wrong & stack.frame[name].str.strip_chars().str.contains(WHOLE)
    if is_whole.any():
        ledger.add("inexact-number", stack.places(is_whole, name), stack.title(name), name=user_name(name))
    return wrong & ~is_whole


def numbers_of(
    stack: LoadedRows, name: str, decimal: str, ledger: Diagnostics, absent: Sequence[str] = ABSENT, what: str = ""
) -> tuple[pl.Series, pl.Series]:
    """Convert a column to numbers, null where absent (texts in `absent`, lower case), and mark words.

    Words are recorded as findings, and a decimal comma is named as such. Cells that are all in per cent are shares.
    """
    cells = stack.frame[name]
    numbers, wrong = to_numbers(cells, decimal)
    if not numbers.null_count():
        return numbers, wrong
    if cells.dtype == pl.String and wrong.any():
        wrong &= ~cells.str.strip_chars().str.to_lowercase().is_in(list(absent))
    unread = _refuse_lost_digits(stack, name, wrong, ledger) if wrong.any() else wrong
    if unread.any() and (shares := _in_percent(cells, unread, decimal)) is not None:
        ledger.notes.append(
            f"values of {quoted(stack.title(name))} in per cent were read as shares: {cells[0]} is {shares[0]:g}"
        )
        return shares, wrong & False
    if unread.any():
        places = stack.places(unread, name)
        fix = _fix_of([p.value or "" for p in places])
        ledger.add("not-a-number/cells", places, stack.title(name), what=what or user_name(name), fix=fix)
    return numbers, wrong


def _in_percent(cells: pl.Series, wrong: pl.Series, decimal: str) -> pl.Series | None:
    """Return the shares of a column whose cells are all in per cent, as 40%; None if one is not."""
    if not wrong.all() or not cells.str.contains(f"^(?:{IN_PERCENT.pattern})$").all():
        return None
    numbers, unread = to_numbers(cells.str.strip_chars().str.strip_chars_end("%").str.strip_chars(), decimal)
    return None if unread.any() else numbers / 100


def _fix_of(cells: Sequence[str]) -> Finding:
    if all(map(DECIMAL_COMMA.fullmatch, cells)):
        return Finding("fix-decimal-comma")
    code = "fix-per-cent" if all(map(IN_PERCENT.fullmatch, cells)) else "fix-words"
    return Finding(code, values={"first": quoted(cells[0])})


def read_cells(rows: LoadedRows, rules: Mapping[str, str], options: ReadSpec, diagnostics: Diagnostics) -> LoadedRows:
    """Read the cells of columns by their rules, in the order given; columns that the rows lack are passed over."""
    for name, rule in rules.items():
        if name in rows.frame.columns:
            rows = rows.put(RULES[rule](rows, name, options, diagnostics).alias(name))
    return rows


def score_rules(frame: pl.DataFrame) -> dict[str, str]:
    """Return the rule of each column with scores: one, or one per system."""
    return dict.fromkeys(score_names(frame), "score")


def read_score(rows: LoadedRows, name: str, options: ReadSpec, diagnostics: Diagnostics) -> pl.Series:
    """Return scores; NaN where missing. Those of a column that is named as probabilities lie in 0..1."""
    is_probability = says_probability(rows.title(name).removeprefix(SYSTEM_PREFIX), options.score_kind)
    return _scores(rows, name, options, diagnostics, is_probability, "detector").fill_null(float("nan"))


def read_probability(rows: LoadedRows, name: str, options: ReadSpec, diagnostics: Diagnostics) -> pl.Series:
    """Return the scores of a classifier, null where missing: probabilities, unless the caller says otherwise."""
    is_probability = options.score_kind in (None, "probability")
    return _scores(rows, name, options, diagnostics, is_probability, "classifier").fill_nan(None)


def _scores(
    rows: LoadedRows,
    name: str,
    options: ReadSpec,
    diagnostics: Diagnostics,
    is_probability: bool,
    of: str,
) -> pl.Series:
    """Return scores as exact float64, null or NaN where missing, which is reported unless such rows are left out."""
    numbers, wrong = numbers_of(rows, name, options.decimal_sign, diagnostics, what="score")
    if options.nan_rule == "refuse" and options.missing != "drop":
        _refuse_missing(rows, name, numbers, wrong, of, diagnostics)
    if is_probability:
        refuse_outside(rows, name, numbers, RANGE_OF[of], diagnostics)
    return numbers


RANGE_OF: Final = {"detector": "not-a-probability/score", "classifier": "not-a-probability/classifier"}
NAN_OF: Final = {"detector": "nan-score/cells", "classifier": "nan-score/classifier"}
EMPTY_OF: Final = {"detector": "empty-score/cells", "classifier": "empty-score/classifier"}
"""The codes of scores that cannot be used: what can be done about them differs."""


def _refuse_missing(
    stack: LoadedRows, name: str, numbers: pl.Series, wrong: pl.Series, of: str, ledger: Diagnostics
) -> None:
    column, nan = stack.title(name), numbers.is_nan().fill_null(False)
    if nan.any():
        ledger.add(NAN_OF[of], stack.places(nan, name), column)
    if numbers.null_count() > wrong.sum():
        ledger.add(EMPTY_OF[of], stack.places(numbers.is_null() & ~wrong, name), column)


def refuse_outside(
    stack: LoadedRows, name: str, numbers: pl.Series, code: str, ledger: Diagnostics, /, **values: object
) -> None:
    """Report numbers outside 0..1 under a code."""
    least, most = numbers.min(), numbers.max()
    if isinstance(least, int | float) and isinstance(most, int | float) and least >= 0 and most <= 1:
        return
    outside = ((numbers < 0) | (numbers > 1)).fill_null(False) & numbers.is_not_nan().fill_null(False)
    if outside.any():
        ledger.add(code, stack.places(outside, name), stack.title(name), **values)


def read_threshold(rows: LoadedRows, name: str, options: ReadSpec, diagnostics: Diagnostics) -> pl.Series:
    """Return the threshold given in each row, null where blank; on probabilities it lies in 0..1 too."""
    numbers = numbers_of(rows, name, options.decimal_sign, diagnostics)[0].fill_nan(None)
    if options.score_kind in (None, "probability"):
        refuse_outside(rows, name, numbers, "bad-threshold/outside", diagnostics)
    return numbers


def read_share(stack: LoadedRows, name: str, options: ReadSpec, ledger: Diagnostics) -> pl.Series:
    """Return a column of shares from 0 to 1, null where blank; yes and no, in any spelling, are 1 and 0."""
    cells = stack.frame[name]
    if cells.dtype == pl.Boolean:
        return cells.cast(pl.Float64)
    if cells.dtype == pl.String:
        said = {cell: str(int(meant)) for cell in cells.unique() if (meant := flag(cell)) is not None}
        stack = stack.put(cells.replace(said)) if said else stack
    numbers = numbers_of(stack, name, options.decimal_sign, ledger)[0].fill_nan(None)
    refuse_outside(stack, name, numbers, "share-outside", ledger, name=user_name(name))
    return numbers


def cut_labels(stack: LoadedRows, options: ReadSpec, ledger: Diagnostics) -> LoadedRows:
    """Turn labels that are shares of annotators into 1 and 0, if the caller says where they are cut; blank ones stay."""
    if options.label_cut is None or "label" not in stack.frame.columns:
        return stack
    texts = stack.frame["label"].cast(pl.String).fill_null("")
    shares, _ = to_numbers(texts, options.decimal_sign)
    is_blank = texts.str.strip_chars().str.to_lowercase().is_in(list(ABSENT))
    wrong = ~is_blank & ~shares.is_between(0.0, 1.0).fill_null(False)
    if wrong.any():
        places = stack.places(wrong, "label")
        comma = Finding("if-decimal-comma") if all("," in (p.value or "") for p in places) else None
        ledger.add("bad-share/labels", places, stack.title("label"), comma=comma)
    made = pl.when(is_blank).then(pl.lit("")).when(shares >= options.label_cut).then(pl.lit("1")).otherwise(pl.lit("0"))
    return stack.put(pl.select(made.alias("label")).to_series())


def read_number(rows: LoadedRows, name: str, options: ReadSpec, diagnostics: Diagnostics) -> pl.Series:
    """Return a further numeric column; empty, `NA` and the like, and `-` count as absent."""
    what = f"value{{s}} of {user_name(name)}"
    return numbers_of(rows, name, options.decimal_sign, diagnostics, (*ABSENT, "-"), what)[0]


def read_weight(rows: LoadedRows, name: str, options: ReadSpec, diagnostics: Diagnostics) -> pl.Series:
    """Return the weights; every row needs one that its kind allows."""
    numbers, unread = numbers_of(rows, name, options.decimal_sign, diagnostics, what="weight")
    assert options.weight_kind is not None  # a weight is never read without its kind
    wrong, allowed = not_allowed(numbers, options.weight_kind)
    wrong &= ~unread
    if wrong.any():
        told = {"kind": options.weight_kind, "allowed": allowed}
        diagnostics.add("bad-weight/cells", rows.places(wrong, name), rows.title(name), **told)
    return numbers


def read_confidence(stack: LoadedRows, name: str, options: ReadSpec, ledger: Diagnostics) -> pl.Series:
    """Return confidences from 0 to 1, null if absent: such a verdict counts, but is left out of calibration."""
    column, title = stack.frame[name], stack.title(name)
    if column.dtype == pl.String:
        column = column.str.strip_chars()
        is_share = column.str.ends_with("%")
        numbers, wrong = to_numbers(column.str.strip_chars_end("% "), options.decimal_sign)
        absent = column.str.to_lowercase().is_in(list(ABSENT))
        wrong = _refuse_lost_digits(stack, name, wrong & ~absent, ledger)
        if wrong.any():
            first = quoted(stack.places(wrong, name)[0].value)
            ledger.notes.append(
                f"{wrong.sum():,} values of {title} are not numbers, the first is {first}: "
                "these answers count, and are left out of calibration"
            )
    else:
        numbers, is_share = column, pl.Series([False]).new_from_index(0, len(column))
    if PERCENT.search(title.lower()) or "confidence_percent" in options.columns:
        is_share = is_share | True
    numbers = pl.select(pl.when(is_share).then(numbers / 100).otherwise(numbers)).to_series().fill_nan(None)
    refuse_outside(stack, name, numbers, "not-a-probability/confidence", ledger, title=title)
    return numbers


UNITS: Final = {
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1000),
}
"""The units of a duration, and how many of them a second has."""
WITH_UNIT: Final = re.compile(r"\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def amount_in(value: object, *, is_seconds: bool) -> tuple[float | None, str]:
    """Return the amount that a field of a nested row holds, None if it is absent, and the code of what is wrong with it.

    Durations may have a unit; others than seconds are converted. No amount is below 0.

    >>> amount_in("1500 ms", is_seconds=True), amount_in(None, is_seconds=True), amount_in("2", is_seconds=False)
    ((1.5, ''), (None, ''), (2.0, ''))
    >>> amount_in("-1", is_seconds=True)[1], amount_in("3 min", is_seconds=True)[1], amount_in("many", is_seconds=False)[1]
    ('bad-number/negative', 'bad-number/seconds', 'bad-number/text')
    """
    if is_absent(value) or value == "-":
        return None, ""
    found = WITH_UNIT.fullmatch(str(value)) if is_seconds else None
    unit = found[2].lower() if found else ""
    number = number_in(found[1] if found else str(value).strip())
    if number is None or unit not in UNITS or isinstance(value, bool):
        return None, "bad-number/seconds" if is_seconds else "bad-number/text"
    return number / UNITS[unit], "bad-number/negative" if number < 0 else ""


def without_false(errors: pl.Series) -> pl.Series:
    """Return errors as text, empty if the column says, in any spelling, that there was no error.

    >>> without_false(pl.Series("error", ["", "False", "none", "0", "timeout", "true"])).to_list()
    ['', '', '', '', 'timeout', 'true']
    """
    nothing = errors.str.strip_chars().str.to_lowercase().is_in([*ABSENT, *FALSE])
    return pl.select(pl.when(nothing).then(pl.lit("")).otherwise(errors).alias(errors.name)).to_series()


def read_error(rows: LoadedRows, name: str, options: ReadSpec, diagnostics: Diagnostics) -> pl.Series:
    """Return why calls failed, empty where they did not."""
    del options, diagnostics  # every text is an error or none
    return without_false(rows.frame[name])


def plain_numbers(texts: pl.Series) -> pl.Series:
    """Return whole numbers in one spelling; other texts unchanged.

    >>> plain_numbers(pl.Series("trial", ["0", "00", "0.0", "1e0", "a", ""])).to_list()
    ['0', '0', '0', '1', 'a', '']
    """
    numbers = texts.str.strip_chars().cast(pl.Float64, strict=False)
    is_whole = numbers.is_finite() & (numbers == numbers.round(0)) & (numbers.abs() < 2**53)
    whole = pl.when(is_whole).then(numbers.fill_nan(None).cast(pl.Int64, strict=False).cast(pl.String))
    return pl.select(whole.otherwise(texts).alias(texts.name)).to_series()


Rule = Callable[[LoadedRows, str, ReadSpec, Diagnostics], pl.Series]
RULES: Final[Mapping[str, Rule]] = {
    "score": read_score,
    "probability": read_probability,
    "threshold": read_threshold,
    "share": read_share,
    "number": read_number,
    "weight": read_weight,
    "confidence": read_confidence,
    "error": read_error,
}
"""How the cells of a column are read: each rule owns words, range, missing values and codes. Labels and decisions, which
are understood together, have theirs in `labels`."""
