"""What a model answered: a verdict with its confidence, read from the shapes that language models use.

A verdict is read where it is stated: in an object, in a marked line (`Verdict: fake`), or as a word alone on its line.
Prose is never turned into a verdict, two verdicts that disagree are none, and a confidence that is missing or cannot be
read leaves the verdict as it is. What was not understood is `unparsed`, with its text kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Final

from hitmiss.io.verdicts import read_verdict
from hitmiss.io.words import flag
from hitmiss.llm.loose_json import Pairs, objects_and_rest, pairs_of, unquoted

VERDICTS: Final = ("real", "fake", "uncertain")
Words = Callable[[str], str | None]
"""What a word means: fake, real, uncertain, or nothing."""
OWN_NAMES: Final = ("verdict", "final_verdict", "urteil", "veredicto", "veredito", "verdetto")
"""Names of the verdict that mean nothing else: a value that cannot be read there is a fault of the answer."""
OTHER_NAMES: Final = ("prediction", "classification", "decision", "conclusion", "answer", "label")
OTHER_CONFIDENCES: Final = ("konfidenz", "sicherheit", "confiance", "confianza", "confiança", "confidenza")
CONFIDENCES: Final = {
    **dict.fromkeys(("confidence", "confidence_score", "certainty", *OTHER_CONFIDENCES), 1.0),
    "confidence_percent": 100.0,
}
"""Names of the confidence, and the number that stands for certain."""
REASONS: Final = ("rationale", "reasoning", "explanation", "reason")
IN_WORDS: Final = re.compile(r"[^\W\d_]+(?:[ -][^\W\d_]+){0,2}")
"""A confidence that is stated in words."""
ROUNDING: Final = 1e-6
"""How far above 1 a confidence may be by rounding."""
THOUGHTS: Final = re.compile(r"<(think|thinking)>.*?</\1>", re.DOTALL | re.IGNORECASE)
MARKED: Final = re.compile(
    r"^[\s*_#>-]*(?:(?:final|my|overall)\s+)?(verdict|classification|conclusion|answer|confidence|"
    rf"{'|'.join((*OWN_NAMES[2:], *OTHER_CONFIDENCES))})[\s*_]*[:=][\s*_]*(.*?)[\s*_]*$",
    re.IGNORECASE | re.MULTILINE,
)
TAGS: Final = re.compile(r"<(verdict|confidence)>\s*([^<]*?)\s*</\1>", re.IGNORECASE)
ALONE: Final = re.compile(r"^[\s*_#>]*([^\W\d_][^\W\d_' -]*(?:[' -]+[^\W\d_]+)*)[\s*_.!]*$", re.MULTILINE)


def schema_of(words: Sequence[str] = VERDICTS) -> dict[str, object]:
    """Return the JSON schema of an answer whose verdict is one of three words, the abstention last."""
    listed = f"{', '.join(words[:-1])}, or {words[-1]}"
    return {
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": list(words), "description": listed},
            "confidence": {"type": "number", "description": "from 0 to 1: the probability that the verdict is right"},
            "rationale": {"type": "string", "description": "the evidence, in a few sentences"},
        },
        "required": ["verdict", "confidence", "rationale"],
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class Answer:
    """A verdict with its confidence and rationale; the problem says what of it could not be understood."""

    verdict: str | None
    confidence: float | None
    rationale: str
    problem: str = ""
    confidence_word: str = ""
    """A confidence that was stated in words: "high"."""

    @property
    def is_parsed(self) -> bool:
        """Whether there is a verdict."""
        return self.verdict is not None


def read_answer(text: str, words: Words = read_verdict) -> Answer:
    """Return the verdict in an answer; docs/llm.md lists the shapes that are read. `words`: what a word means.

    >>> read_answer('{"verdict": "fake", "confidence": 0.9, "rationale": "a grid"}').verdict
    'fake'
    >>> read_answer("Verdict: **real**").verdict
    'real'
    >>> read_answer("I believe it is real.").problem
    'the answer states no verdict: neither an object with one, nor a line such as "Verdict: fake"'
    """
    if not text.strip():
        return _unparsed("the answer is empty")
    objects, rest = objects_and_rest(unquoted(THOUGHTS.sub("", text)))
    stated = [answer for found in objects for answer in _stated(found, words)]
    stated += _marked(rest, words)
    return _agreed(stated or list(_alone(rest, words)))


def answer_of(said: Mapping[str, object], words: Words = read_verdict) -> Answer:
    """Return the verdict in a mapping that a function gave; it is read as an object in an answer is."""
    return _agreed(list(_stated(pairs_of(said), words)))


def _agreed(stated: Sequence[Answer]) -> Answer:
    """Return the one answer that all statements give; a verdict of which two disagree is none."""
    verdicts = {answer.verdict for answer in stated}
    if verdicts <= {""}:
        return _unparsed('the answer states no verdict: neither an object with one, nor a line such as "Verdict: fake"')
    unread = next((answer for answer in stated if answer.verdict is None), None)
    if unread is not None:
        return unread
    verdicts.discard("")  # a line that states a confidence alone
    if len(verdicts) > 1:
        return _unparsed(f"the answer holds {len(verdicts)} verdicts that disagree")
    confidences = {answer.confidence for answer in stated if answer.confidence is not None}
    first = next(answer for answer in stated if answer.verdict)
    if len(confidences) > 1:
        return replace(first, confidence=None, problem=f"the answer holds {len(confidences)} confidences")
    problem = next((answer.problem for answer in stated if answer.problem), "")
    words = {answer.confidence_word for answer in stated if answer.confidence_word}
    word = words.pop() if len(words) == 1 else ""
    return replace(first, confidence=next(iter(confidences), None), problem=problem, confidence_word=word)


def _stated(found: object, words: Words, outer: Sequence[tuple[str, object]] = ()) -> Iterator[Answer]:
    """Yield what an object states, and what the objects inside it do; these may leave the confidence to the outer one."""
    if isinstance(found, list) and not isinstance(found, Pairs):
        for part in found:
            yield from _stated(part, words, outer)
    if not isinstance(found, Pairs):
        return
    confidences = [(name, value) for name, value in found if _plain(name) in CONFIDENCES] or list(outer)
    rationale = next((v for name, v in found if _plain(name) in REASONS and isinstance(v, str)), "")
    for said in _verdicts(found, words):
        yield said if said.verdict is None else _with_confidence(replace(said, rationale=rationale), confidences)
    for _, value in found:
        yield from _stated(value, words, confidences)


def _verdicts(found: Pairs, words: Words) -> Iterator[Answer]:
    """Yield each verdict that the fields of one object state."""
    read = [(_plain(name), value, _read(_plain(name), value, words)) for name, value in found if not _is_nested(value)]
    own = [(value, word) for name, value, word in read if name in OWN_NAMES]
    others = [(value, word) for name, value, word in read if name in OTHER_NAMES]
    unread = [value for value, word in own if word is None]
    is_silent = not any(word for _, _, word in read)
    if unread or (is_silent and others):
        yield _unparsed(f"the verdict is {_shown([*unread, *(v for v, _ in others)][0])}, not real, fake or uncertain")
        return
    yield from (Answer(word, None, "") for _, _, word in read if word is not None)


def _read(name: str, value: object, words: Words = read_verdict) -> str | None:
    """Return the verdict of a field: a word, 0 or 1 (1 is the positive class, fake), or a question with yes or no.

    >>> _read("verdict", "AI-generated"), _read("label", 1), _read("is_real", False), _read("rationale", "fake")
    ('fake', 'fake', 'fake', None)
    """
    if name in OWN_NAMES or name in OTHER_NAMES:
        return verdict_of(value, words)
    asked, answered = words(name.removeprefix("is_")), _yes(value)
    if asked not in ("fake", "real") or answered is None:
        return None
    return asked if answered else {"fake": "real", "real": "fake"}[asked]


def verdict_of(value: object, words: Words = read_verdict) -> str | None:
    """Return what a value means as a verdict; None if it means none.

    >>> verdict_of("Synthetic."), verdict_of("0"), verdict_of(True), verdict_of(0.7)
    ('fake', 'real', 'fake', None)
    """
    if isinstance(value, str) and (word := words(value)) is not None:
        return word
    said = _yes(value)
    return None if said is None else "fake" if said else "real"


def _yes(value: object) -> bool | None:
    return flag(value) if isinstance(value, str | Real) else None


def _is_nested(value: object) -> bool:
    return isinstance(value, Pairs) or (isinstance(value, list) and any(isinstance(part, Pairs) for part in value))


def _with_confidence(answer: Answer, given: Sequence[tuple[str, object]]) -> Answer:
    """Return the answer with its confidence, if there is one and it can be read."""
    if len({repr(value) for _, value in given}) > 1:
        return replace(answer, problem=f"the answer holds {len(given)} confidences")
    for name, value in given:
        found = _confidence(value, CONFIDENCES[_plain(name)])
        if found is None and value is not None:
            why = f"the confidence is {_shown(value)}, not a number from 0 to 1"
            word = value.strip().lower() if isinstance(value, str) and IN_WORDS.fullmatch(value.strip()) else ""
            return replace(answer, problem=f"{why}; the verdict counts without it", confidence_word=word)
        return replace(answer, confidence=found)
    return answer


def _confidence(value: object, whole: float = 1.0) -> float | None:
    """Return a confidence from 0 to 1; per cent count as such only where the name or the value says so.

    >>> _confidence("90%"), _confidence(90, 100.0), _confidence("0.9"), _confidence(90), _confidence("high")
    (0.9, 0.9, 0.9, None, None)
    """
    if isinstance(value, str):
        text = value.strip()
        number, whole = (text[:-1], 100.0) if text.endswith("%") else (text, whole)
        try:
            value = float(number)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        return None
    share = float(value) / whole
    return min(share, 1.0) if 0.0 <= share <= 1.0 + ROUNDING else None


def _marked(text: str, words: Words) -> Iterator[Answer]:
    """Yield what the marked lines and the tags of a text state: a verdict, or a confidence alone."""
    for name, value in [(m[1].lower(), m[2]) for pattern in (MARKED, TAGS) for m in pattern.finditer(text)]:
        if name in CONFIDENCES:
            yield _with_confidence(Answer("", None, ""), [(name, value)])
        elif (word := verdict_of(value, words)) is not None:
            yield Answer(word, None, "")


def _alone(text: str, words: Words) -> Iterator[Answer]:
    """Yield each verdict that stands alone on its line."""
    yield from (Answer(word, None, "") for m in ALONE.finditer(text) if (word := words(m[1])) is not None)


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _unparsed(problem: str) -> Answer:
    return Answer(None, None, "", problem)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
