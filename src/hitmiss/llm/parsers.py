"""Parsers: how the text of an answer becomes a verdict. Answers are kept, so a run can be read again at no cost.

A parser has a version, which is in every row that it made; `hitmiss llm --reparse --parser strict` reads the answers of
a run again and sends no request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.llm.answers import Answer, read_answer
from hitmiss.llm.question import USUAL, Question

ENDS: Final = {
    "max_tokens": ": it was cut off at the most tokens that an answer may have (--max-tokens)",
    "model_length": ": it was cut off where the model takes no more",
    "content_filter": ": the provider held it back",
}
"""Why an answer may have ended too early."""


@dataclass(frozen=True)
class Parser:
    """A way to read answers; another version may read the same text differently."""

    name: str
    version: int
    about: str
    read: Callable[[str, Question], Answer]
    words: Mapping[str, float] = field(default_factory=dict)
    """The numbers that words for a confidence stand for, as the user declares them."""

    def __str__(self) -> str:
        declared = ", ".join(f"{word}={number:g}" for word, number in self.words.items())
        return f"{self.name} {self.version}{f' ({declared})' if declared else ''}"


def read_strictly(text: str, question: Question = USUAL) -> Answer:
    """Return the verdict of an answer that is exactly the JSON object that was asked for.

    >>> read_strictly('{"verdict": "fake", "confidence": 0.9, "rationale": "a grid"}').verdict
    'fake'
    >>> read_strictly('Sure! {"verdict": "fake", "confidence": 0.9, "rationale": ""}').problem
    'the answer is not the one JSON object that was asked for'
    """
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    is_whole = isinstance(found, dict) and set(found) == {"verdict", "confidence", "rationale"}
    if not is_whole or found["verdict"] not in question.words:
        return Answer(None, None, "", "the answer is not the one JSON object that was asked for")
    confidence = found["confidence"]
    is_share = isinstance(confidence, int | float) and not isinstance(confidence, bool) and 0 <= confidence <= 1
    if not is_share or not isinstance(found["rationale"], str):
        return Answer(None, None, "", "the answer is not the one JSON object that was asked for")
    return Answer(question.read(found["verdict"]), float(confidence), found["rationale"])


LENIENT: Final = Parser(
    "lenient",
    3,
    "a verdict wherever it is stated (docs/llm.md lists the shapes)",
    lambda text, question: read_answer(text, question.read),
)
STRICT: Final = Parser("strict", 1, "exactly the JSON object that was asked for", read_strictly)
PARSERS: Final = {parser.name: parser for parser in (LENIENT, STRICT)}


def find_parser(name: str, words: Mapping[str, float] | None = None) -> Parser:
    """Return a parser by its name, which takes words for a confidence as these numbers.

    >>> str(find_parser("lenient", {"high": 0.9}))
    'lenient 3 (high=0.9)'
    """
    if name not in PARSERS:
        raise UnknownName("parser", name, PARSERS)
    return replace(PARSERS[name], words=dict(words or {}))


def confidence_words(text: str) -> dict[str, float]:
    """Read what words for a confidence stand for.

    >>> confidence_words("high=0.9, fairly sure=0.7")
    {'high': 0.9, 'fairly sure': 0.7}
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        word, equals, number = part.partition("=")
        try:
            share = float(number)
        except ValueError:
            share = -1.0
        if not equals or not word.strip() or word.strip().lower() in found or not 0.0 <= share <= 1.0:
            raise UsageError.of("bad-confidence-words", text=text)
        found[word.strip().lower()] = share
    return found


def parse_record(record: Mapping[str, object], parser: Parser, question: Question = USUAL) -> dict[str, object]:
    """Return a record with its answer read by a parser; one without an answer (a function's, a failure) is unchanged."""
    if record.get("answer") is None or "error" in record:
        return dict(record)
    text = str(record["answer"])
    found = parser.read(text, question)
    kept = {name: value for name, value in record.items() if name not in ("problem", "confidence_word")}
    verdict = {"prediction": found.verdict, "confidence": found.confidence, "rationale": found.rationale}
    if found.confidence_word:
        kept["confidence_word"] = found.confidence_word
    if found.confidence_word in parser.words:
        return {**kept, **verdict, "confidence": parser.words[found.confidence_word]}
    if not found.problem:
        return {**kept, **verdict}
    why = "" if found.is_parsed else ENDS.get(str(record.get("stop_reason")), "")
    return {**kept, **verdict, "problem": found.problem + why}
