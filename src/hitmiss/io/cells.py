"""What single cells say: one rule each for labels, decisions, scores, thresholds, shares, confidences and numbers.

Every reader uses these rules, so a cell means the same, or is refused with the same code, in every command. They work
on whole columns; single rows are only inspected on a fault.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from hitmiss.core import classes
from hitmiss.core.classes import AMBIGUOUS, ONE_OF_THESE, UNDECLARED, Problem, Reading
from hitmiss.core.columns import user_name
from hitmiss.core.kinds import ABSTAIN
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.weights import not_allowed
from hitmiss.io.columns import ABSENT, FALSE, SYSTEM_PREFIX, flag, is_absent
from hitmiss.io.parse import Ledger, Place, quoted
from hitmiss.io.tables import Stack

# ----------------------------------------------------------------------
# Labels and decisions: the words and codes that name a class.

ABSTAINED: Final = ("abstain", "uncertain", str(ABSTAIN))
TRUTH: Final = {"true": "1", "false": "0"}
CODE: Final = {"1": "true", "0": "false"}
UNLABELLED: Final = "-1"
"""The code that marks a row without a label."""
MANY: Final = 20
"""More unknown words than this are reported as one finding."""
NO_LABEL: Final = ("missing-label", "unlabelled")
"""The problems of cells without a label, whose rows may be left out; other problems are always refused."""


def word_of(cell: str, declared: Collection[str] = ()) -> str:
    """Return the word or code that a cell holds, in one spelling; empty if it means "missing".

    Outer spaces do not matter, whole numbers have one spelling, truth values are in small letters. A word that the
    caller has declared stays as it is.

    >>> [word_of(cell) for cell in (" toxic ", "1.0", "+1e0", "TRUE", "-1.0", "0.7", "NA", "1_0")]
    ['toxic', '1', '1', 'true', '-1', '0.7', '', '1_0']
    >>> word_of("none", declared=["none"])
    'none'
    """
    text = cell.strip()
    if text in declared:
        return text
    small = text.lower()
    if small in ABSENT:
        return ""
    if small in TRUTH:
        return small
    number = number_in(small)
    return text if number is None or number % 1 else str(int(number))


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


def understand(
    found: Sequence[str], positive: str | None = None, negative: str | None = None, value: str | None = None
) -> Reading:
    """Interpret the distinct cells of a column of labels or decisions, given what the caller has declared.

    The reading lists the cells as they stand in the file. Codes and words may be mixed if the caller says what the code
    of the positive class is.

    >>> understand([" 1", "0.0", "FALSE", "toxic"], "toxic", value="1").positive_words[-2:]
    ('toxic', ' 1')
    >>> [p.kind for p in understand(["1", "0", "", "-1", "2"], "toxic", value="1").problems]
    ['missing-label', 'unlabelled', 'unknown-label']
    """
    declared = {word for word in (positive, negative, value) if word is not None}
    words = {cell: word_of(cell, declared) for cell in found}
    is_code = UNLABELLED in declared or (not declared and not {"0", "false"} & {*words.values()})
    kept = [w for w in dict.fromkeys(words.values()) if w and (w != UNLABELLED or is_code)]
    respelt = CODE if {*kept} & {*TRUTH} and not {*kept} & {*CODE} else TRUTH  # where a file has both, they are codes
    words = {cell: word if respelt is CODE else TRUTH.get(word, word) for cell, word in words.items()}
    kept = list(dict.fromkeys(w if respelt is CODE else TRUTH.get(w, w) for w in kept))
    said = [None if w is None else _as_in_file(w, kept, respelt) for w in (positive, negative, value)]
    reading = _read(kept, *said)
    problems = {problem.word: problem for problem in reading.problems}
    return replace(
        reading,
        positive=positive if positive and reading.positive == said[0] else reading.positive,
        negative=negative if negative and reading.negative == said[1] else reading.negative,
        positive_words=_spelt(words, reading.positive_words),
        negative_words=_spelt(words, reading.negative_words),
        problems=tuple(
            replace(problem, word=cell)
            for cell, word in words.items()
            if (problem := _problem(word, problems, kept)) is not None
        ),
    )


def _as_in_file(declared: str, kept: Sequence[str], respelt: Mapping[str, str]) -> str:
    """Return a code that the caller declares in the spelling of the file: 1 and true are one code."""
    if declared in kept:
        return declared
    word = word_of(declared) or declared
    return respelt.get(word, word) if word in CODE or word in TRUTH else declared


def _read(words: Sequence[str], positive: str | None, negative: str | None, value: str | None) -> Reading:
    """Interpret words in one spelling; if the code of the positive class is known, words may stand among the codes."""
    codes = [word for word in words if word in CODE or word in TRUTH]
    others = [word for word in words if word not in codes]
    is_mixed = bool(codes) and any(map(classes.is_word, others))
    if not is_mixed or (value is None and positive is None):
        return classes.understand(words, positive, negative, value)
    one = classes.understand(codes, positive, negative, value)
    if one.problems:  # nothing says what the codes mean
        return classes.understand(words, positive, negative, value)
    two = classes.understand(others, one.positive, one.negative)
    return replace(
        one,
        positive_words=(*one.positive_words, *two.positive_words),
        negative_words=(*one.negative_words, *two.negative_words),
        problems=(*one.problems, *two.problems),
    )


def _spelt(words: Mapping[str, str], known: Sequence[str]) -> tuple[str, ...]:
    """Return known words, and the cells that hold one of them in another spelling."""
    return tuple(dict.fromkeys((*known, *(cell for cell, word in words.items() if word in known))))


def _problem(word: str, problems: Mapping[str, Problem], kept: Sequence[str]) -> Problem | None:
    if not word:
        return Problem("missing-label", word)
    if word == UNLABELLED and word not in kept:
        return Problem("unlabelled", word)
    return problems.get(word)


def is_silent(cell: str, abstain: Sequence[str] = ()) -> bool:
    """Return whether a cell of decisions says that there is no answer: with our words, or with those of the caller.

    >>> is_silent(" Uncertain"), is_silent("pass", ["PASS"]), is_silent("0"), is_silent("")
    (True, True, False, False)
    """
    return cell.strip().lower() in {word.strip().lower() for word in (*ABSTAINED, *abstain)}


def check_labels(
    stack: Stack,
    column: str,
    reading: Reading,
    ledger: Ledger,
    abstain: Sequence[str] = (),
    *,
    is_dropped: bool = False,
    is_needed: bool = False,
    fix: str = "",
) -> Stack:
    """Convert cells to 1 and 0 (and -1 for an abstention); report those that are not understood.

    `is_dropped`: rows without a label or decision are left out later, so that their cells become null here.
    `is_needed`: a decision may not be missing, unless all are; `fix` says what else can be done about missing cells.
    """
    cells = stack.frame[column]
    absent, silent = [p.word for p in reading.problems if p.kind in NO_LABEL], []
    if column == "decision":
        found = cells.unique().to_list()
        silent = [cell for cell in found if is_silent(cell, abstain)]
        absent = [cell for cell in found if not word_of(cell, (*reading.positive_words, *reading.negative_words))]
        is_dropped = is_dropped or not is_needed or len(absent) == len(found)
    problems = [p for p in reading.problems if p.word not in (*silent, *absent) or p.kind not in NO_LABEL]
    if is_needed and column == "decision":  # a binary column: -1, which some tools write for a class, is no abstention
        unclear = [cell for cell in silent if word_of(cell) == UNLABELLED and cell.strip() not in abstain]
        silent = [cell for cell in silent if cell not in unclear]
        problems += [Problem("unknown-label", cell) for cell in unclear]
    if not is_dropped:
        kinds = {p.word: p for p in reading.problems}
        problems = [*problems, *(kinds.get(cell, Problem("missing-label", cell)) for cell in absent)]
    if reading.choices:
        problems = [p for p in problems if p.kind not in (AMBIGUOUS, UNDECLARED)]
    _refuse_words(stack, column, [p for p in problems if p.word not in silent], reading, ledger, fix)
    _refuse_undeclared(stack, column, reading, ledger)
    values = cells.is_in(list(reading.positive_words)).cast(pl.Int8)
    for cell in absent:
        values = values.set(cells == cell, None)
    for cell in silent:
        values = values.set(cells == cell, ABSTAIN)
    return stack.put(values.alias(column))


def _refuse_undeclared(stack: Stack, column: str, reading: Reading, ledger: Ledger) -> None:
    """Report once that nothing says which class is positive, with the declarations to choose from."""
    if not reading.choices or any(finding.choices for finding in ledger.findings):
        return
    kind, what = reading.question(column)
    place = Place(stack.tables[0].name)
    ledger.add(
        kind,
        what,
        f"{ONE_OF_THESE}, or once for all commands with `hitmiss init FILE`",
        [place],
        stack.title(column),
        what,
        reading.choices,
    )


def _refuse_words(
    stack: Stack, column: str, problems: Sequence[Problem], reading: Reading, ledger: Ledger, fix: str
) -> None:
    """Report problems word by word, or many unknown words as one finding."""
    cells = stack.frame[column]
    unknown = [p.word for p in problems if p.kind == "unknown-label"]
    numbers = [word for word in unknown if number_in(word.strip()) is not None]
    among = cells.is_in(numbers) if numbers else None
    if among is not None and among.any():
        what, each = f"{{n}} {column}{{s}} neither 1 nor 0", "it is neither 1 nor 0"
        cure = f"a {column} is 1 or {reading.positive}, 0 or {reading.negative}; fix them"
        ledger.add(f"unknown-{column}", what, cure, stack.places(among, column), stack.title(column), each)
    words = [word for word in unknown if word not in numbers]
    if len(words) > MANY and (where := cells.is_in(words)).any():
        what = f"{{n}} row{{s}} with {len(words):,} unknown {column}s, as {quoted(words[0])}"
        cure = f"check that {quoted(stack.title(column))} is the column of {column}s"
        ledger.add(
            f"unknown-{column}",
            what,
            cure,
            stack.places(where, column),
            stack.title(column),
            f"the {column} is not known",
        )
        numbers = unknown
    for problem in problems:
        if problem.word not in numbers and (where := cells == problem.word).any():
            _refuse_word(stack, column, where, problem, reading, ledger, fix)


def _refuse_word(
    stack: Stack, column: str, where: pl.Series, problem: Problem, reading: Reading, ledger: Ledger, fix: str
) -> None:
    places, word = stack.places(where, column), quoted(problem.word)
    is_cell = problem.kind in ("missing-label", "unknown-label")  # the others are about what was declared
    kind = problem.kind.replace("label", column) if is_cell else problem.kind
    if problem.kind == "missing-label":
        what, each = f"{{n}} missing {column}{{s}}", f"the {column} is missing"
        fix = fix or f"fix them{f', or say --negative {problem.word} if it is a class' if problem.word.strip() else ''}"
    elif problem.kind == "unlabelled":
        what, each = "{n} label{s} of -1, which marks rows without a label", "-1 marks a row without a label"
        fix = fix or "fix them, or say --negative -1 if it is a class"
    elif problem.kind == "ambiguous-label":
        what, each = f"{{n}} {column}{{s}} {word} without a known meaning", f"the {column} names no class"
        fix = (
            "words and numbers are mixed: write all of them in one way, or say which value is positive with "
            "--positive-value 1"
        )
    else:
        known = ", ".join(dict.fromkeys(map(str.strip, (*reading.positive_words, *reading.negative_words)))) or "none"
        hint = f"did you mean {quoted(problem.meant)}?" if problem.meant else f"known here: {known}"
        what, each = f"{{n}} row{{s}} with the unknown {column} {word}", f"the {column} is not known, {hint}"
        fix = f"{hint}{'' if problem.meant else '.'} Fix the file, or declare the class with --positive or --negative"
    ledger.add(kind, what, fix, places, stack.title(column), each)


# ----------------------------------------------------------------------
# Scores, thresholds, shares and other numbers.

PERCENT: Final = re.compile(r"percent|per_cent|pct|%")
"""Matches column names that announce numbers up to 100."""
DECIMAL_COMMA: Final = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
IN_PERCENT: Final = re.compile(r"\s*[-+]?[\d.,]+\s*%\s*")
NAN_FIX: Final = "fix them, or choose --on-nan drop, or --on-nan worst (the worst score for the trial's own class)"
OUTSIDE: Final = "it is outside 0..1"


def score_names(frame: pl.DataFrame) -> list[str]:
    """Return the columns with scores: one, or one per system."""
    return [name for name in frame.columns if name == "score" or name.startswith(SYSTEM_PREFIX)]


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
    stack: Stack, name: str, decimal: str, ledger: Ledger, absent: Sequence[str] = ABSENT, what: str = ""
) -> tuple[pl.Series, pl.Series]:
    """Convert a column to numbers, null where absent (texts in `absent`, lower case), and mark words.

    Words are recorded as findings; a decimal comma and per cent are named as such.
    """
    cells = stack.frame[name]
    numbers, wrong = to_numbers(cells, decimal)
    if not numbers.null_count():
        return numbers, wrong
    if cells.dtype == pl.String and wrong.any():
        wrong &= ~cells.str.strip_chars().str.to_lowercase().is_in(list(absent))
    if wrong.any():
        places = stack.places(wrong, name)
        what = what or f"{user_name(name)}{{s}}"
        fix = _fix_of([p.value or "" for p in places])
        ledger.add("not-a-number", f"{{n}} unreadable {what}", fix, places, stack.title(name), "it is not a number")
    return numbers, wrong


def _fix_of(cells: Sequence[str]) -> str:
    if all(map(DECIMAL_COMMA.fullmatch, cells)):
        return "they have a decimal comma: use --decimal ,"
    if all(map(IN_PERCENT.fullmatch, cells)):
        return f"they are in per cent (the first is {quoted(cells[0])}): write them as shares, 0.4 for 40%"
    return f"fix them (the first is {quoted(cells[0])})"


def check_scores(stack: Stack, options: ReadSpec, ledger: Ledger) -> Stack:
    """Convert scores to numbers; report NaN, empty and impossible ones. If they are allowed, empty ones become NaN."""
    for name in score_names(stack.frame):
        numbers = read_scores(stack, name, options, ledger, is_probability=options.score_kind == "probability")
        stack = stack.put(numbers.fill_null(float("nan")).alias(name))
    return stack


def read_scores(
    stack: Stack,
    name: str,
    options: ReadSpec,
    ledger: Ledger,
    *,
    is_probability: bool,
    fix: str = NAN_FIX,
    range_fix: str = "declare another score kind (raw, logit or llr), or fix them",
) -> pl.Series:
    """Return scores as exact float64, null or NaN where missing, which is reported unless such rows are left out."""
    numbers, wrong = numbers_of(stack, name, options.decimal_sign, ledger, what="score{s}")
    if options.nan_rule == "refuse" and options.missing != "drop":
        _refuse_missing(stack, name, numbers, wrong, fix, ledger)
    if is_probability:
        refuse_outside(stack, name, numbers, "not-a-probability", "score{s}", range_fix, ledger)
    return numbers


def _refuse_missing(stack: Stack, name: str, numbers: pl.Series, wrong: pl.Series, fix: str, ledger: Ledger) -> None:
    column, nan = stack.title(name), numbers.is_nan().fill_null(False)
    if nan.any():
        ledger.add("nan-score", "{n} NaN score{s}", fix, stack.places(nan, name), column, "the score is NaN")
    if numbers.null_count() > wrong.sum():
        places = stack.places(numbers.is_null() & ~wrong, name)
        ledger.add("empty-score", "{n} empty score{s}", fix, places, column, "the score is empty")


def refuse_outside(stack: Stack, name: str, numbers: pl.Series, kind: str, what: str, fix: str, ledger: Ledger) -> None:
    """Report numbers outside 0..1."""
    least, most = numbers.min(), numbers.max()
    if isinstance(least, int | float) and isinstance(most, int | float) and least >= 0 and most <= 1:
        return
    outside = ((numbers < 0) | (numbers > 1)).fill_null(False) & numbers.is_not_nan().fill_null(False)
    if outside.any():
        ledger.add(kind, f"{{n}} {what} outside 0..1", fix, stack.places(outside, name), stack.title(name), OUTSIDE)


def read_thresholds(stack: Stack, options: ReadSpec, ledger: Ledger, *, is_probability: bool) -> pl.Series:
    """Return the threshold given in each row, null where blank."""
    numbers = numbers_of(stack, "threshold", options.decimal_sign, ledger)[0].fill_nan(None)
    if is_probability:
        refuse_outside(stack, "threshold", numbers, "bad-threshold", "threshold{s}", "fix them", ledger)
    return numbers


def read_shares(stack: Stack, name: str, options: ReadSpec, ledger: Ledger) -> pl.Series:
    """Return a column of shares from 0 to 1, null where blank; yes and no, in any spelling, are 1 and 0."""
    cells = stack.frame[name]
    if cells.dtype == pl.Boolean:
        return cells.cast(pl.Float64)
    if cells.dtype == pl.String:
        said = {cell: str(int(meant)) for cell in cells.unique() if (meant := flag(cell)) is not None}
        stack = stack.put(cells.replace(said)) if said else stack
    numbers = numbers_of(stack, name, options.decimal_sign, ledger)[0].fill_nan(None)
    refuse_outside(stack, name, numbers, "share-outside", f"value{{s}} of {user_name(name)}", "fix them", ledger)
    return numbers


def check_numbers(stack: Stack, names: Sequence[str], options: ReadSpec, ledger: Ledger) -> Stack:
    """Check further numeric columns; empty, `NA` and the like, and `-` count as absent."""
    for name in names:
        if name == "confidence":
            stack = stack.put(_confidences(stack, options, ledger))
            continue
        what = f"value{{s}} of {user_name(name)}"
        numbers, _ = numbers_of(stack, name, options.decimal_sign, ledger, (*ABSENT, "-"), what)
        stack = stack.put(numbers.alias(name))
    return stack


def check_weight(stack: Stack, name: str | None, options: ReadSpec, ledger: Ledger) -> Stack:
    """Check the column of weights, if this side has one; every row needs a weight that its kind allows."""
    if name is None or options.weight_kind is None:
        return stack
    numbers, unread = numbers_of(stack, name, options.decimal_sign, ledger, what="weight{s}")
    wrong, allowed = not_allowed(numbers, options.weight_kind)
    wrong &= ~unread
    if wrong.any():
        places = stack.places(wrong, name)
        fix = f"a {options.weight_kind} weight is {allowed}"
        ledger.add("bad-weight", "{n} weight{s} that cannot be used", fix, places, stack.title(name), fix)
    return stack.put(numbers.alias(name))


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
    fix = (
        f"if they are in per cent, say --column confidence_percent={title}; "
        f"if they are something else, --column rating={title}"
    )
    refuse_outside(stack, "confidence", numbers, "not-a-probability", "confidence{s}", fix, ledger)
    return numbers.alias("confidence")


UNITS: Final = {
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1000),
}
"""The units of a duration, and how many of them a second has."""
WITH_UNIT: Final = re.compile(r"\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def amount_in(value: object, *, is_seconds: bool) -> tuple[float | None, str]:
    """Return the amount that a field of a nested row holds, None if it is absent, and what is wrong with it.

    Durations may have a unit; others than seconds are converted. No amount is below 0.

    >>> amount_in("1500 ms", is_seconds=True), amount_in(None, is_seconds=True), amount_in("2", is_seconds=False)
    ((1.5, ''), (None, ''), (2.0, ''))
    >>> amount_in("-1", is_seconds=True)[1], amount_in("3 min", is_seconds=True)[1], amount_in("many", is_seconds=False)[1]
    ('it is below 0', 'it is not a number of seconds', 'it is not a number')
    """
    if is_absent(value) or value == "-":
        return None, ""
    found = WITH_UNIT.fullmatch(str(value)) if is_seconds else None
    unit = found[2].lower() if found else ""
    number = number_in(found[1] if found else str(value).strip())
    if number is None or unit not in UNITS or isinstance(value, bool):
        return None, "it is not a number of seconds" if is_seconds else "it is not a number"
    return number / UNITS[unit], "it is below 0" if number < 0 else ""


# ----------------------------------------------------------------------
# Texts that say whether something happened, and repeats that are numbered.


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
