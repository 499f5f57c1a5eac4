"""What labels and decisions say: the words and codes that name a class.

The rules work on whole columns; single rows are only inspected on a fault."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from hitmiss.core import classes
from hitmiss.core.classes import AMBIGUOUS, UNDECLARED, Problem, Reading, is_word
from hitmiss.core.finding import Finding, Place
from hitmiss.core.kinds import ABSTAIN
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.text import quoted
from hitmiss.io.cells import (
    number_in,
)
from hitmiss.io.diagnostics import Diagnostics, listed, near_or_listed
from hitmiss.io.loaded import LoadedRows
from hitmiss.io.words import ABSENT

ABSTAINED: Final = ("abstain", "uncertain", str(ABSTAIN))
CODE_OF_TRUTH_VALUE: Final = {"true": "1", "false": "0"}
TRUTH_VALUE_OF_CODE: Final = {"1": "true", "0": "false"}
UNLABELLED: Final = "-1"
"""The code that marks a row without a label."""
MOST_LISTED_WORDS: Final = 20
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
    if small in CODE_OF_TRUTH_VALUE:
        return small
    number = number_in(small)
    return text if number is None or number % 1 else str(int(number))


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
    respelt = (
        TRUTH_VALUE_OF_CODE
        if {*kept} & {*CODE_OF_TRUTH_VALUE} and not {*kept} & {*TRUTH_VALUE_OF_CODE}
        else CODE_OF_TRUTH_VALUE
    )  # where a file has both, they are codes
    words = {
        cell: word if respelt is TRUTH_VALUE_OF_CODE else CODE_OF_TRUTH_VALUE.get(word, word)
        for cell, word in words.items()
    }
    kept = list(dict.fromkeys(w if respelt is TRUTH_VALUE_OF_CODE else CODE_OF_TRUTH_VALUE.get(w, w) for w in kept))
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
    return respelt.get(word, word) if word in TRUTH_VALUE_OF_CODE or word in CODE_OF_TRUTH_VALUE else declared


def _read(words: Sequence[str], positive: str | None, negative: str | None, value: str | None) -> Reading:
    """Interpret words in one spelling; if the code of the positive class is known, words may stand among the codes."""
    codes = [word for word in words if word in TRUTH_VALUE_OF_CODE or word in CODE_OF_TRUTH_VALUE]
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
    stack: LoadedRows,
    column: str,
    reading: Reading,
    ledger: Diagnostics,
    abstain: Sequence[str] = (),
    *,
    is_dropped: bool = False,
    is_needed: bool = False,
) -> LoadedRows:
    """Convert cells to 1 and 0 (and -1 for an abstention); report those that are not understood.

    `is_dropped`: rows without a label or decision are left out later, so that their cells become null here.
    `is_needed`: a decision may not be missing, unless all are.
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
    if problems := [p for p in problems if p.word not in silent]:
        _refuse_words(stack, column, problems, reading, ledger)
    if reading.choices and not any(finding.choices for finding in ledger.findings):
        _refuse_undeclared(stack, column, reading, ledger)
    values = cells.is_in(list(reading.positive_words)).cast(pl.Int8)
    for cell in absent:
        values = values.set(cells == cell, None)
    for cell in silent:
        values = values.set(cells == cell, ABSTAIN)
    return stack.put(values.alias(column))


def _refuse_undeclared(stack: LoadedRows, column: str, reading: Reading, ledger: Diagnostics) -> None:
    """Report once that nothing says which class is positive, with the declarations to choose from."""
    kind, question = reading.question(column)
    code = "ambiguous-label/open" if kind == AMBIGUOUS else "undeclared-positive"
    ledger.add(code, [Place(stack.tables[0].name)], stack.title(column), reading.choices, question=question)


def _refuse_words(
    stack: LoadedRows, column: str, problems: Sequence[Problem], reading: Reading, ledger: Diagnostics
) -> None:
    """Report problems word by word, or many unknown words as one finding."""
    cells = stack.frame[column]
    unknown = [p.word for p in problems if p.kind == "unknown-label"]
    numbers = [word for word in unknown if number_in(word.strip()) is not None]
    among = cells.is_in(numbers) if numbers else None
    if among is not None and among.any():
        told = {"column": column, "positive": reading.positive, "negative": reading.negative}
        ledger.add(f"unknown-{column}/number", stack.places(among, column), stack.title(column), **told)
    words = [word for word in unknown if word not in numbers]
    if 2 < len(words) <= MOST_LISTED_WORDS and not reading.positive_words:
        told = {"column": column, "words": listed(sorted(words)), "title": quoted(stack.title(column))}
        places = stack.places(cells.is_in(words), column)[:1]
        ledger.add(f"unknown-{column}/several", places, stack.title(column), **told)
        numbers = unknown
    if len(words) > MOST_LISTED_WORDS and (where := cells.is_in(words)).any():
        many = {"many": len(words), "column": column, "word": quoted(words[0]), "title": quoted(stack.title(column))}
        ledger.add(f"unknown-{column}/many", stack.places(where, column), stack.title(column), **many)
        numbers = unknown
    for problem in problems:
        if problem.word not in numbers and (where := cells == problem.word).any():
            _refuse_word(stack, column, where, problem, reading, ledger)


def _refuse_word(
    stack: LoadedRows, column: str, where: pl.Series, problem: Problem, reading: Reading, ledger: Diagnostics
) -> None:
    places, word = stack.places(where, column), quoted(problem.word)
    told: dict[str, object] = {"column": column}
    if problem.kind == "missing-label":
        code = f"missing-{column}"
        is_word = bool(problem.word.strip())
        told["if_class"] = Finding("negative-if-class", values={"word": problem.word}) if is_word else None
    elif problem.kind == "unlabelled":
        code = problem.kind
    elif problem.kind == AMBIGUOUS:
        code = "ambiguous-label/word"
        told["word"] = word
    else:
        code = f"unknown-{column}/word"
        known = list(dict.fromkeys(map(str.strip, (*reading.positive_words, *reading.negative_words)))) or ["none"]
        way = "declare-class" if not reading.positive_words else "negative-if-other"
        told |= {
            "word": word,
            "hint": near_or_listed(problem.meant, ())
            if problem.meant
            else Finding("known-here", values={"known": known}),
            "stop": "" if problem.meant else ".",
            "way": Finding(way, values={"word": problem.word}),
        }
    ledger.add(code, places, stack.title(column), **told)


Words = Mapping[str, Reading]
"""The meaning of the words in the columns `label` and `decision`."""


def read_words(labels: Sequence[str], decisions: Sequence[str], options: ReadSpec) -> Words:
    """Interpret the distinct words of labels and decisions: together, or separately if only one of them has codes.

    >>> read_words(["0", "1"], ["toxic"], ReadSpec(positive="toxic", positive_value="1"))["decision"].positive_words
    ('toxic',)
    """
    classes = (options.positive, options.negative)
    declared = [word for word in (*classes, options.positive_value) if word is not None]
    said = [cell for cell in decisions if word_of(cell, declared) and not is_silent(cell, options.abstain)]
    if options.positive_value is not None and _has_words(said) and not _has_words(labels):
        own = understand(labels, *classes, options.positive_value)
        return {"label": own, "decision": understand(said, own.positive, own.negative)}
    if options.positive_value is not None and _are_codes(said) and not _are_codes([options.positive_value, *labels]):
        own = understand(labels, *classes, options.positive_value)
        return {"label": own, "decision": understand(said, own.positive, own.negative, "1")}
    alone = understand(labels, *classes, options.positive_value)
    if alone.choices or not said:  # decisions may hold further words, which settle nothing
        return {"label": alone, "decision": alone}
    together = understand(list(dict.fromkeys((*labels, *said))), *classes, options.positive_value)
    return {"label": together, "decision": together}


def _has_words(cells: Sequence[str]) -> bool:
    return any(is_word(word_of(cell)) for cell in cells)


def _are_codes(cells: Sequence[str]) -> bool:
    """Return whether some cells are 0, 1, true or false, in any spelling."""
    return any(word_of(cell) in ("0", "1", "true", "false") for cell in cells)
