"""A counting question as SQL, in the dialect of DuckDB; other dialects are made of it by a compiler of dialects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hitmiss.scale.plan import Question, Window
from hitmiss.stats.sketch import EXACT

SCORE: Final = "score"
PLACE: Final = "place"
PART: Final = "part"
COUNT: Final = "n"
TRIALS: Final = "hitmiss_trials"  # not the name of a table: Snowflake would take that for a recursion


def counts(question: Question, source: str, window: Window) -> str:
    """How many trials each cell has of each score, or of each bin of scores; `source` is a table in SQL.

    >>> print(counts(Question({"label": "key", "score": "llr"}), '"t"', Window()))
    WITH hitmiss_trials AS (SELECT COALESCE(CAST("key" AS VARCHAR), '') AS "label", CAST("llr" AS DOUBLE) AS "score" FROM "t")
    SELECT "label", "score", COUNT(*) AS "n"
    FROM hitmiss_trials
    GROUP BY "label", "score"
    """
    groups = [quoted(name) for name in question.cells]
    shown = list(groups)
    if window.bits == EXACT:
        groups, shown = [*groups, quoted(SCORE)], [*shown, quoted(SCORE)]
    else:
        made = [_place(window.bits), *([_part(window.cuts)] if window.cuts else [])]
        names = [quoted(name) for name in (PLACE, PART)[: len(made)]]
        shown += [f"{expression} AS {name}" for expression, name in zip(made, names, strict=True)]
        groups += made
    total = "COUNT(*)" if question.count is None else f"SUM({quoted(COUNT)})"
    where = _inside(window, question)
    lines = [
        f"WITH {TRIALS} AS ({trials(question, source)})",
        f"SELECT {', '.join(shown)}, {total} AS {quoted(COUNT)}",
        f"FROM {TRIALS}",
        *([f"WHERE {where}"] if where else []),
        f"GROUP BY {', '.join(groups)}",
    ]
    return "\n".join(lines)


def repeats(question: Question, source: str) -> str:
    """The ids that are there more than once, or are empty: none, or the counts are of no use.

    >>> print(repeats(Question({"item": "utt"}, identity=("item",)), '"t"'))
    SELECT "utt" AS "item", COUNT(*) AS "n" FROM "t" GROUP BY "utt" HAVING COUNT(*) > 1 OR COALESCE(CAST("utt" AS VARCHAR), '') = ''
    """
    theirs = [quoted(question.columns[name]) for name in question.identity if name in question.columns]
    shown = [f"{quoted(question.columns[n])} AS {quoted(n)}" for n in question.identity if n in question.columns]
    empty = f"{_text(question.columns['item'])} = ''"
    return (
        f"SELECT {', '.join(shown)}, COUNT(*) AS {quoted(COUNT)} FROM {source} "
        f"GROUP BY {', '.join(theirs)} HAVING COUNT(*) > 1 OR {empty}"
    )


def trials(question: Question, source: str) -> str:
    """The trials of a table under our names: cells as texts, scores as doubles that point the right way."""
    columns = [f"{_cell(name, question)} AS {quoted(name)}" for name in question.cells if name != "decision"]
    score = _turned(f"CAST({quoted(question.columns[SCORE])} AS DOUBLE)", question)
    if question.nan == "worst":
        low = f"{_cell('label', question)} IN ({', '.join(map(text, question.positive))})"
        score = f"CASE WHEN {_is_nan(score)} THEN CASE WHEN {low} THEN {number(float('-inf'))} ELSE {number(float('inf'))} END ELSE {score} END"
    columns.append(f"{score} AS {quoted(SCORE)}")
    if "decision" in question.cells:
        columns.append(f"{_decision(score, question)} AS {quoted('decision')}")
    if question.count is not None:
        columns.append(f"{quoted(question.count)} AS {quoted(COUNT)}")
    return f"SELECT {', '.join(columns)} FROM {source}"


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


def number(value: float) -> str:
    """A double in SQL, to the last bit: a bare literal would be a decimal number."""
    return f"CAST('{value!r}' AS DOUBLE)"


def _text(column: str) -> str:
    return f"COALESCE(CAST({quoted(column)} AS VARCHAR), '')"


def _cell(name: str, question: Question) -> str:
    if name in question.constants:
        return text(question.constants[name])
    value = _text(question.columns[name])
    renamed = question.rename.get(name, {})
    if not renamed:
        return value
    cases = " ".join(f"WHEN {text(old)} THEN {text(new)}" for old, new in renamed.items())
    return f"CASE {value} {cases} ELSE {value} END"


def _turned(score: str, question: Question) -> str:
    return {"": score, "sign": f"-{score}", "complement": f"1 - {score}"}[question.turn]


def _is_nan(score: str) -> str:
    return f"{score} IS NULL OR ISNAN({score})"


def _decision(score: str, question: Question) -> str:
    if question.threshold is not None:
        return f"CASE WHEN {score} >= {number(question.threshold)} THEN '1' ELSE '0' END"
    word = _cell("decision", question)
    if not question.positive:  # the words as they are: whoever asked knows what they mean
        return word
    said = f"WHEN {word} IN ({', '.join(map(text, question.positive))}) THEN '1'"
    silent = ", ".join(map(text, ("abstain", "uncertain", "-1")))
    return f"CASE WHEN {word} = '' THEN '' WHEN {word} IN ({silent}) THEN '-1' {said} ELSE '0' END"


def _place(bits: int) -> str:
    """The highest bits of a double as they are; −0.0 is 0.0, and NaN has one spelling."""
    score = quoted(SCORE)
    zero, nan = f"WHEN {score} = 0 THEN {number(0.0)}", f"WHEN ISNAN({score}) THEN {number(float('nan'))}"
    plain = f"CASE {zero} {nan} ELSE {score} END"
    return f"(CAST(CAST({plain} AS BIT) AS UBIGINT) >> {EXACT - bits})"


def _part(cuts: Sequence[float]) -> str:
    """How many cuts a score has reached."""
    return " + ".join(f"CASE WHEN {quoted(SCORE)} >= {number(cut)} THEN 1 ELSE 0 END" for cut in sorted(cuts))


def _inside(window: Window, question: Question) -> str:
    """Which trials are counted; those without a score always, unless they are dropped: whoever asked looks at them."""
    lost = _is_nan(quoted(SCORE))
    conditions = [f"NOT ({lost})"] if question.nan == "drop" else []
    if window.ranges is not None:
        inside = [f"{quoted(SCORE)} BETWEEN {number(a)} AND {number(b)}" for a, b in window.ranges]
        conditions.append(_any([*inside, *([] if question.nan == "drop" else [lost])]))
    return " AND ".join(conditions)


def _any(conditions: Iterable[str]) -> str:
    return "(" + (" OR ".join(conditions) or "FALSE") + ")"
