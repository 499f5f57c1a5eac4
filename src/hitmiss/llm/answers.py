"""What a model answered: the one JSON object that the schema asks for, or the reason why it is not there.

The verdict comes from the schema's field and from nowhere else. An answer that does not fit is never turned into a
verdict: it is `unparsed`, with its text kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

VERDICTS: Final = ("real", "fake", "uncertain")
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": list(VERDICTS), "description": "real, fake, or uncertain"},
        "confidence": {"type": "number", "description": "from 0 to 1: the probability that the verdict is right"},
        "rationale": {"type": "string", "description": "the evidence, in a few sentences"},
    },
    "required": ["verdict", "confidence", "rationale"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Answer:
    """A verdict with its confidence and rationale, or none and the problem."""

    verdict: str | None
    confidence: float | None
    rationale: str
    problem: str = ""

    @property
    def is_parsed(self) -> bool:
        """Whether the answer could be understood."""
        return self.verdict is not None


def read_answer(text: str) -> Answer:
    """The verdict in an answer.

    The whole text, a fenced block, or one object within prose may hold it. Two objects that disagree are no answer.

    >>> read_answer('{"verdict": "fake", "confidence": 0.9, "rationale": "a grid"}').verdict
    'fake'
    >>> read_answer("It is real.").problem
    'the answer holds no JSON object with a verdict'
    """
    if not text.strip():
        return _unparsed("the answer is empty")
    found = [value for value in objects(text) if "verdict" in value]
    if not found:
        return _unparsed("the answer holds no JSON object with a verdict")
    answers = [answer_of(value) for value in found]
    if len({(a.verdict, a.confidence, a.problem) for a in answers}) > 1:
        return _unparsed(f"the answer holds {len(answers)} verdicts that disagree")
    return answers[0]


def answer_of(value: Mapping[str, Any]) -> Answer:
    """An answer from the fields of the schema, each of which must be as the schema says."""
    verdict, confidence, rationale = (value.get(name) for name in ("verdict", "confidence", "rationale"))
    if not isinstance(verdict, str) or verdict.strip().lower() not in VERDICTS:
        return _unparsed(f"the verdict is {_shown(verdict)}, not real, fake or uncertain")
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not math.isfinite(confidence):
        return _unparsed(f"the confidence is {_shown(confidence)}, not a number")
    if not 0.0 <= confidence <= 1.0:
        return _unparsed(f"the confidence is {_shown(confidence)}, not from 0 to 1")
    return Answer(verdict.strip().lower(), float(confidence), rationale if isinstance(rationale, str) else "")


def objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, outermost ones only, from left to right.

    >>> list(objects('so: {"a": {"b": 1}} and {"c": 2}'))
    [{'a': {'b': 1}}, {'c': 2}]
    """
    decoder, at = json.JSONDecoder(), 0
    while (start := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
            continue
        if isinstance(value, dict):
            yield value


def _unparsed(problem: str) -> Answer:
    return Answer(None, None, "", problem)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
