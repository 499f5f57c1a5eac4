"""The words that name classes, and what a column of labels says; and what a text says that is yes, no or nothing.

`Real`, `FAKE` and `bona-fide` are the known words in another spelling: case, hyphen, underscore and space inside a word
do not matter. Anything else that is near a known word is refused with that word: a scorer that guesses there is a scorer
that drops a class in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from hitmiss.errors import UsageError, nearest

Words = tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """Two classes and the words for each, the usual name first. The positive one is so by custom of its field."""

    positive: Words
    negative: Words

    @property
    def words(self) -> Words:
        """All words of both classes."""
        return self.positive + self.negative

    def sides(self, positive: str | None) -> tuple[Words, Words]:
        """The words of the positive class and of the other, where `positive` names one (None: the custom)."""
        return (self.negative, self.positive) if positive in self.negative else (self.positive, self.negative)


FAMILIES: Final = (
    Family(("bonafide", "real", "genuine", "human"), ("spoof", "spoofed", "fake", "deepfake")),
    Family(("target",), ("nontarget", "spoof")),  # speaker verification with spoofing: both count as impostors
    Family(("toxic",), ("non-toxic", "nontoxic", "not-toxic", "non_toxic", "not_toxic")),
    Family(("hateful",), ("non-hateful", "nonhateful", "not-hateful")),
    Family(("offensive",), ("not-offensive", "non-offensive")),
    Family(("abnormal",), ("normal",)),
    Family(("positive",), ("negative",)),
)

CODES: Final = {
    "1": "0",
    "0": "1",
    "1.0": "0.0",
    "0.0": "1.0",
    "true": "false",
    "false": "true",
    "True": "False",
    "False": "True",
}
"""Labels that name no class, each with its counterpart. Which class they mean must be declared."""
ABSENT: Final = ("", "na", "n/a", "nan", "null", "none", "<na>")
"""Texts, in small letters, that say nothing."""
TRUE: Final = ("true", "1", "1.0", "yes", "y", "on", "t")
FALSE: Final = ("false", "0", "0.0", "no", "n", "off", "f")


def flag(value: object) -> bool | None:
    """What a text or a value says that means yes or no; None where it says neither.

    >>> flag("True"), flag("false"), flag(0), flag("1.0"), flag("none"), flag(None), flag("timeout")
    (True, False, False, True, None, None, None)
    """
    text = str(value).strip().lower()
    return True if text in TRUE else False if text in FALSE else None


def is_absent(value: object) -> bool:
    """Whether a text or a value says nothing.

    >>> is_absent(None), is_absent(" NaN"), is_absent("0"), is_absent("no")
    (True, True, False, False)
    """
    return value is None or str(value).strip().lower() in ABSENT


@dataclass(frozen=True)
class Problem:
    """A word that a label column must not hold: how it fails, and what was probably meant."""

    kind: str
    word: str
    meant: str | None = None


@dataclass(frozen=True)
class Reading:
    """How the words of a label column are understood."""

    positive: str
    negative: str
    positive_words: Words
    negative_words: Words
    problems: tuple[Problem, ...] = ()


def understand(
    found: Sequence[str], positive: str | None = None, negative: str | None = None, value: str | None = None
) -> Reading:
    """What the distinct words of a label column mean, given what the caller has declared.

    >>> r = understand(["spoof", "bonafide"])
    >>> r.positive, r.negative
    ('bonafide', 'spoof')
    >>> understand(["fake", "real"], positive="fake").negative_words[:2]
    ('bonafide', 'real')
    >>> understand(["Bona-fide", "SPOOF"]).positive_words[-1]
    'Bona-fide'
    >>> understand(["bonafied", "spoof"]).problems
    (Problem(kind='unknown-label', word='bonafied', meant='bonafide'),)
    """
    if value is not None and (value in found or not any(map(is_word, found))):
        return _by_value(found, positive or "positive", negative or "negative", value)
    family = family_of(found, positive)
    if family is not None:
        return _by_family(found, family, positive, negative)
    if positive is not None:
        return _by_declaration(found, positive, negative)
    return Reading("positive", "negative", (), (), tuple(_problem(w, _all_words()) for w in found))


def family_of(found: Iterable[str], positive: str | None = None) -> Family | None:
    """The family that the declared class belongs to, else the one that most of the words belong to.

    >>> family_of(["target", "nontarget", "spoof"]).positive
    ('target',)
    >>> family_of(["cat"]) is None
    True
    """
    words = {_spelt(w) for w in found}
    if positive is not None:
        known = [f for f in FAMILIES if positive in f.words]
        return max(known, key=lambda f: len(words & _spellings(f.words)), default=None)
    best = max(FAMILIES, key=lambda f: len(words & _spellings(f.words)))
    return best if words & _spellings(best.words) else None


def is_word(text: str) -> bool:
    """Whether the text names a class in any family, whatever its case: what recognition of a column looks at.

    >>> is_word("Bonafide"), is_word("A17")
    (True, False)
    """
    return _spelt(text) in _spellings(_all_words())


def same_class(one: str, other: str) -> bool:
    """Whether two words name the same class of one family.

    >>> same_class("real", "bonafide"), same_class("real", "fake"), same_class("cat", "cat")
    (True, False, True)
    """
    return one == other or any({one, other} <= set(side) for f in FAMILIES for side in (f.positive, f.negative))


def _all_words() -> set[str]:
    return {w for f in FAMILIES for w in f.words}


def _by_value(found: Sequence[str], positive: str, negative: str, value: str) -> Reading:
    ours = next((pair for pair in (("1", "1.0"), ("0", "0.0")) if value in pair), (value,))
    others = [w for w in found if w not in ours]
    # An unknown value with several others around it is a typo somewhere: only a lone counterpart can be the negative.
    allowed = tuple(CODES[w] for w in ours) if value in CODES else tuple(others) if len(others) == 1 else ()
    wrong = tuple(_problem(w, (*ours, *allowed)) for w in others if w not in allowed)
    return Reading(positive, negative, ours, allowed, wrong)


def _by_family(found: Sequence[str], family: Family, positive: str | None, negative: str | None) -> Reading:
    ours, theirs = family.sides(positive)
    if negative is not None and negative in ours:
        raise UsageError(f"{positive or ours[0]!r} and {negative!r} name the same class")
    extra = (negative,) if negative is not None and negative not in theirs else ()
    theirs = (*theirs, *extra)
    ours, theirs = ((*side, *_respelt(found, side)) for side in (ours, theirs))
    wrong = tuple(_problem(w, (*ours, *theirs)) for w in found if w not in ours and w not in theirs)
    return Reading(positive or _name(ours, found), negative or _name(theirs, found), ours, theirs, wrong)


def _by_declaration(found: Sequence[str], positive: str, negative: str | None) -> Reading:
    others = [w for w in found if w != positive]
    if negative is None and len(others) == 1 and not _is_near(others[0], positive) and others[0] not in CODES:
        negative = others[0]
    theirs = (negative,) if negative is not None else ()
    wrong = tuple(_problem(w, (positive, *theirs)) for w in others if w not in theirs)
    return Reading(positive, negative or f"not {positive}", (positive,), theirs, wrong)


def _spelt(word: str) -> str:
    """A word without case, hyphen, underscore and inner space; one with space around it stays what it is."""
    return word.lower().translate({ord(c): None for c in "-_ "}) if word == word.strip() else word


def _spellings(words: Iterable[str]) -> set[str]:
    return {_spelt(word) for word in words}


def _respelt(found: Sequence[str], side: Words) -> Words:
    """The words of a file that are words of a class in another spelling."""
    known = _spellings(side)
    return tuple(word for word in found if word not in side and _spelt(word) in known)


def _name(side: Words, found: Sequence[str]) -> str:
    """The file's own word where it uses one alone, else the usual name."""
    used = [w for w in side if w in found]
    return used[0] if len(used) == 1 else side[0]


def _is_near(word: str, other: str) -> bool:
    return SequenceMatcher(None, word.lower(), other.lower()).ratio() >= 0.8


def _problem(word: str, known: Iterable[str]) -> Problem:
    words = sorted(known)
    if word in CODES and word not in words:
        return Problem("ambiguous-label", word)
    by_case = [w for w in words if w.lower() == word.strip().lower()]
    if by_case and word.strip() != by_case[0]:
        return Problem("label-case", word, by_case[0])
    return Problem("unknown-label", word, by_case[0] if by_case else nearest(word, words))
