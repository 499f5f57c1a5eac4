"""Which word of a column of labels names which class, and which class is positive: one table and one rule.

The positive class is declared: by the caller, by a protocol, or by label words whose meaning a field fixes (bonafide
and spoof, target and nontarget, toxic and non-toxic). Labels 1 and 0, or true and false, say it themselves: 1 and true
are positive. Everything else is refused with the two declarations to choose from, because fields and even documents
read the same words in opposite ways (real and fake).

`Real`, `FAKE` and `bona-fide` are known words in another spelling: case, hyphen, underscore and inner space do not
matter. Any other word that is close to a known word is refused, with that word as a suggestion: guessing here could
silently drop a class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import Final

from hitmiss.core.errors import DataError, UnknownName, UsageError, nearest
from hitmiss.core.finding import Finding

Words = tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """Two classes and the words for each, the usual name first.

    `fixed` are the words that declare which class is positive wherever they are used, the first of each class being
    the one of `positive` and `negative`. `one` says whether a field fixes the label 1 to be the first class.
    """

    positive: Words
    negative: Words
    fixed: Words = ()
    one: bool = True

    @property
    def words(self) -> Words:
        """All words of both classes."""
        return self.positive + self.negative

    def sides(self, positive: str | None) -> tuple[Words, Words]:
        """Return the words of the positive class and of the other class; `positive` names one (None: the usual)."""
        is_other = positive is not None and spelt(positive) in spellings(self.negative)
        return (self.negative, self.positive) if is_other else (self.positive, self.negative)


NON_TOXIC: Final = ("non-toxic", "nontoxic", "not-toxic", "non_toxic", "not_toxic")
FAMILIES: Final = (
    Family(
        ("bonafide", "real", "genuine", "human"),
        ("spoof", "spoofed", "fake", "deepfake"),
        fixed=("bonafide", "spoof", "spoofed"),
        one=False,  # some corpora and documents code fakes as 1, others reals
    ),
    # speaker verification with spoofing: both count as non-target
    Family(("target",), ("nontarget", "spoof"), fixed=("target", "nontarget", "spoof")),
    Family(("toxic",), NON_TOXIC, fixed=("toxic", *NON_TOXIC)),
    Family(("hateful",), ("non-hateful", "nonhateful", "not-hateful")),
    Family(("offensive",), ("not-offensive", "non-offensive")),
    Family(("abnormal",), ("normal",)),
    Family(("positive",), ("negative",), fixed=("positive", "negative")),
)
"""The words that are known. Without a declaration only those of `fixed` say which class is positive."""

SPELLINGS: Final = {"1": ("1", "1.0", "true", "True", "TRUE"), "0": ("0", "0.0", "false", "False", "FALSE")}
"""Labels that name no class: 1 and true mean the positive class, unless something else is declared."""
OPPOSITE: Final = {"1": "0", "0": "1"}


def code_of(word: str) -> str | None:
    """Return `1` or `0` if a label is one of these, or says true or false; None if it is a word of its own.

    >>> code_of("1.0"), code_of("False"), code_of("real"), code_of("2")
    ('1', '0', None, None)
    """
    text = word.lower()
    return next((code for code, known in SPELLINGS.items() if text in known), None)


def class_name(declared: str | None) -> str | None:
    """Return the declared positive class if it is a name; None if it is a value, such as 1.

    >>> class_name("toxic"), class_name("1"), class_name(None)
    ('toxic', None, None)
    """
    return None if declared is None or code_of(declared) is not None else declared


Declaration = Mapping[str, str]
"""Options of a reader that declare the positive class: `{"positive": "fake"}`."""
UNDECLARED: Final = "undeclared-positive"
"""The kind of a problem with words that do not say which class is positive."""
AMBIGUOUS: Final = "ambiguous-label"
"""The kind of a problem with 0 and 1 beside words, or where a declared class has neither as its value."""


@dataclass(frozen=True)
class Problem:
    """A word that a label column must not hold: what is wrong with it, and which word was probably meant."""

    kind: str
    word: str
    meant: str | None = None


@dataclass(frozen=True)
class Reading:
    """How the words of a label column are interpreted.

    `settled` says how the positive class was found if the caller did not name it; `choices` are the declarations to
    choose from if nothing says which class is positive.
    """

    positive: str
    negative: str
    positive_words: Words
    negative_words: Words
    problems: tuple[Problem, ...] = ()
    settled: str = ""
    choices: tuple[Declaration, ...] = ()

    def question(self, column: str = "label") -> tuple[str, Finding]:
        """Return the kind of the problem that `choices` settle, and what is open."""
        own = [p for p in self.problems if p.kind in (AMBIGUOUS, UNDECLARED)]
        kind = own[0].kind
        words = f"{'s are' if len(own) > 1 else ' is'} {' and '.join(repr(p.word) for p in own)}"
        values = {"column": column, "words": words, "positive": self.positive}
        return kind, Finding("open-class/number" if kind == AMBIGUOUS else "open-class/word", values=values)

    def refusal(self, way: str = "") -> DataError:
        """Return the error about what is open, with its choices; `way` is a further way to settle it."""
        kind, question = self.question()
        found = Finding("which-class/label", values={"question": question, "way": way})
        return DataError.coded(found, kind).settled_by(self.choices)


def understand(
    found: Sequence[str], positive: str | None = None, negative: str | None = None, value: str | None = None
) -> Reading:
    """Interpret the distinct words of a label column, given what the caller has declared.

    >>> r = understand(["spoof", "bonafide"])
    >>> r.positive, r.negative
    ('bonafide', 'spoof')
    >>> understand(["fake", "real"], positive="fake").negative_words[:2]
    ('bonafide', 'real')
    >>> understand(["fake", "real"]).choices
    ({'positive': 'real'}, {'positive': 'fake'})
    >>> understand(["Bona-fide", "SPOOF"]).positive_words[-1]
    'Bona-fide'
    >>> understand(["0", "1"]).positive_words[0], understand(["True", "False"], positive="toxic").positive
    ('1', 'toxic')
    >>> understand(["bonafied", "spoof"]).problems
    (Problem(kind='unknown-label', word='bonafied', meant='bonafide'),)
    """
    if positive is None and value is None and negative is not None:
        positive = _opposite(found, negative)
    if value is None and positive is not None and _is_value(positive, negative, found):
        value, positive = positive, None  # `--positive 1` names a value, not a class
    if value is not None and (any(_are_one(value, word) for word in found) or not any(map(is_word, found))):
        return _by_value(found, positive, negative, value)
    family = family_of(found, positive)
    if any(map(code_of, found)) and not any(map(is_word, found)):
        return _by_code(found, family, positive, negative)
    if family is not None and (positive is not None or _is_fixed(found, family)):
        return _by_family(found, family, positive, negative)
    if positive is not None:
        return _by_declaration(found, positive, negative)
    return _undeclared(found, family, negative)


def family_of(found: Iterable[str], positive: str | None = None) -> Family | None:
    """Return the family of the declared class, or else the family of most of the words.

    >>> family_of(["target", "nontarget", "spoof"]).positive
    ('target',)
    >>> family_of(["cat"]) is None
    True
    """
    words = {spelt(w) for w in found}
    if positive is not None:
        known = [f for f in FAMILIES if spelt(positive) in spellings(f.words)]
        return max(known, key=lambda f: len(words & spellings(f.words)), default=None)
    best = max(FAMILIES, key=lambda f: len(words & spellings(f.words)))
    return best if words & spellings(best.words) else None


def is_word(text: str) -> bool:
    """Return whether the text names a class in any family, ignoring case; used to recognise a label column.

    >>> is_word("Bonafide"), is_word("A17")
    (True, False)
    """
    return spelt(text) in _known()


def same_class(one: str, other: str) -> bool:
    """Return whether two words name the same class of one family, in any spelling.

    >>> same_class("real", "Bona-fide"), same_class("real", "fake"), same_class("Cat", "cat")
    (True, False, True)
    """
    pair = {spelt(one), spelt(other)}
    return len(pair) == 1 or any(pair <= spellings(side) for f in FAMILIES for side in (f.positive, f.negative))


def named_classes(positive: str, negative: str) -> tuple[str, str]:
    """Return the names of two classes; a negative of another family than the positive one is replaced by its own.

    >>> named_classes("toxic", "real"), named_classes("fake", "real"), named_classes("machine", "person")
    (('toxic', 'non-toxic'), ('fake', 'real'), ('machine', 'person'))
    """
    own, other = family_of((), positive), family_of((), negative)
    return (positive, negative) if own is None or own is other else (positive, own.sides(positive)[1][0])


def about_spoofing(positive: str) -> bool:
    """Return whether a declared class is one of genuine and faked recordings, rather than one of speakers.

    >>> about_spoofing("Bona fide"), about_spoofing("target")
    (True, False)
    """
    return spelt(positive) in spellings(FAMILIES[0].words)


def spelt(word: str) -> str:
    """Return a word without case, hyphen, underscore and inner space; outer space and numbers stay unchanged.

    >>> spelt("Bona Fide"), spelt("non_toxic"), spelt("real "), spelt("-1")
    ('bonafide', 'nontoxic', 'real ', '-1')
    """
    is_plain = word == word.strip() and any(map(str.isalpha, word))
    return word.lower().translate({ord(c): None for c in "-_ "}) if is_plain else word


def spellings(words: Iterable[str]) -> set[str]:
    """Return the words of a class without what does not matter in their spelling."""
    return {spelt(word) for word in words}


def _all_words() -> set[str]:
    return {w for f in FAMILIES for w in f.words}


@cache
def _known() -> set[str]:
    return spellings(_all_words())


def _are_one(value: str, word: str) -> bool:
    """Return whether a declared value is a label of the file: the same word, or the same of 1 and 0."""
    code = code_of(value)
    return code == code_of(word) if code is not None else value == word or (spelt(value) == spelt(word) != "")


def _is_value(positive: str, negative: str | None, found: Sequence[str]) -> bool:
    """Return whether the declared class is a value, such as 1, or the other value of a pair such as 1 and -1."""
    is_paired = negative is not None and code_of(negative) is not None
    return code_of(positive) is not None or (is_paired and any(_are_one(positive, word) for word in found))


def _opposite(found: Sequence[str], negative: str) -> str | None:
    """Return the class that is positive if the caller has named only the other one."""
    code = code_of(negative)
    if code is not None:
        return OPPOSITE[code]
    others = [word for word in found if not _are_one(negative, word) and not _is_blank(word)]
    family = family_of(found, negative)
    if family is not None:
        return _name(family.sides(negative)[1], found)
    return others[0] if len(others) == 1 else None


def _is_fixed(found: Sequence[str], family: Family) -> bool:
    """Return whether the words of a family that a file uses say themselves which class is positive."""
    used = {spelt(word) for word in found} & spellings(family.words)
    return used <= spellings(family.fixed)


def _by_value(
    found: Sequence[str], positive: str | None, negative: str | None, value: str, settled: str | None = None
) -> Reading:
    """Read labels of which one value is declared to be the positive class."""
    code = code_of(value)
    ours = SPELLINGS[code] if code else (value,)
    ours = tuple(dict.fromkeys((*ours, *(w for w in found if _are_one(value, w)))))
    others = [w for w in found if w not in ours]
    if negative is not None and any(_are_one(negative, w) for w in others):
        allowed = tuple(w for w in others if _are_one(negative, w))
    elif code is not None:
        allowed = tuple(dict.fromkeys((*SPELLINGS[OPPOSITE[code]], *(w for w in others if code_of(w)))))
    else:  # an unknown value among several others is a typo somewhere: only a single other value can be the other class
        allowed = tuple(others) if len(others) == 1 else ()
    wrong = tuple(_problem(w, (*ours, *allowed)) for w in others if w not in allowed)
    shown = next((w for w in found if w in ours), value)
    named = f"positive = {positive}, which is the label {shown}" if positive else f"positive = the label {shown}"
    other = negative if negative is not None and not code_of(negative) else None
    return Reading(
        positive or "positive", other or "negative", ours, allowed, wrong, named if settled is None else settled
    )


def _by_code(found: Sequence[str], family: Family | None, positive: str | None, negative: str | None) -> Reading:
    """Read labels 1 and 0, or true and false, of which nobody has said what they mean: 1 is the positive class.

    A declared class of a family in which 1 means either class needs its value, and so does a pair like 1 and -1.
    """
    others = [word for word in found if not code_of(word) and not _is_blank(word)]
    if positive is None and len(others) == 1 and len({*map(code_of, found)} - {None}) == 1:
        pair = (next(w for w in found if code_of(w)), others[0])
        both = tuple({"positive": a, "negative": b} for a, b in (pair, pair[::-1]))
        return _open(found, "positive", "negative", both)
    if positive is None or family is None or (family.one and spelt(positive) in spellings(family.positive)):
        return _by_value(found, positive, negative, "1")
    coded = [w for w in found if code_of(w)]
    both = tuple({"positive": positive, "positive_value": code} for code in ("1", "0"))
    wrong = tuple(Problem(AMBIGUOUS, w) if w in coded else _problem(w, coded) for w in found)
    return Reading(positive, negative or family.sides(positive)[1][0], (), (), wrong, choices=both)


def _by_family(found: Sequence[str], family: Family, positive: str | None, negative: str | None) -> Reading:
    ours, theirs = family.sides(positive)
    if negative is not None and spelt(negative) in spellings(ours):
        raise UsageError.of("same-class", positive=positive or ours[0], negative=negative)
    extra = (negative,) if negative is not None and spelt(negative) not in spellings(theirs) else ()
    theirs = (*theirs, *extra)
    ours, theirs = ((*side, *_respelt(found, side)) for side in (ours, theirs))
    wrong = tuple(_problem(w, (*ours, *theirs)) for w in found if w not in ours and w not in theirs)
    names = (_named(positive, ours, found), _named(negative, theirs, found))
    used = [w for w in found if w in ours or w in theirs]
    said = f"positive = {names[0]}, as the label{'s' if len(used) > 1 else ''} {' and '.join(used)} say"
    settled = "" if positive is not None else said if len(used) > 1 else f"{said}s"
    return Reading(*names, ours, theirs, wrong, settled)


def _named(declared: str | None, side: Words, found: Sequence[str]) -> str:
    """Return the name of a class: the declared one in its usual spelling, else the file's own word for it."""
    if declared is None:
        return _name(side, found)
    return declared if declared in side else next((w for w in side if spelt(w) == spelt(declared)), declared)


def _by_declaration(found: Sequence[str], positive: str, negative: str | None) -> Reading:
    ours = (positive, *_respelt(found, (positive,)))
    others = [w for w in found if w not in ours]
    if negative is None and len(others) == 1 and not _is_near(others[0], positive) and not code_of(others[0]):
        negative = others[0]
    theirs = (negative, *_respelt(found, (negative,))) if negative is not None else ()
    if len(others) > 1 and not theirs and not set(ours) & set(found):
        raise UnknownName("positive class", positive, [word for word in others if not _is_blank(word)])
    wrong = tuple(_problem(w, (*ours, *theirs)) for w in others if w not in theirs)
    return Reading(positive, negative or f"not {positive}", ours, theirs, wrong)


def _undeclared(found: Sequence[str], family: Family | None, negative: str | None) -> Reading:
    """Return the reading of words that do not say which class is positive, with the declarations to choose from."""
    own = [w for w in found if not _is_blank(w)]
    known = _by_family(found, family, None, None) if family is not None else None
    foreign = [p for p in known.problems if p.word in own and not p.meant] if known is not None else []
    if len(own) == 2 and len(foreign) == 1:  # one word of a field beside a word of the user's own: human and AI
        blank = tuple(_problem(w, own) for w in found if w not in own)
        both = tuple({"positive": a, "negative": b} for a, b in (own, own[::-1]))
        made = _open(own, own[0], own[1], both)
        return Reading(own[0], own[1], (own[0],), (own[1],), (*blank, *made.problems), choices=both)
    if known is not None:
        both = tuple({"positive": name} for name in (known.positive, known.negative))
        open_ = _open(found, known.positive, known.negative, both)
        near = tuple(p for p in known.problems if p.kind != UNDECLARED)
        words = {p.word for p in near}
        return Reading(
            known.positive,
            known.negative,
            known.positive_words,
            known.negative_words,
            (*near, *(p for p in open_.problems if p.word not in words)),
            choices=both,
        )
    if len(own) == 2 and not _is_near(*own):
        first, second = sorted(own, key=lambda w: negative is not None and spelt(w) == spelt(negative))
        blank = tuple(_problem(w, own) for w in found if w not in own)
        made = _open(own, first, second, ({"positive": first}, {"positive": second}))
        return Reading(first, second, (first,), (second,), (*blank, *made.problems), choices=made.choices)
    return Reading("positive", "negative", (), (), tuple(_problem(w, _all_words()) for w in found))


def _open(found: Sequence[str], positive: str, negative: str, choices: tuple[Declaration, ...]) -> Reading:
    problems = tuple(Problem(UNDECLARED, word) for word in found)
    return Reading(positive, negative, (), (), problems, choices=choices)


def _is_blank(word: str) -> bool:
    return word.strip().lower() in ("", "na", "n/a", "nan", "null", "none", "<na>", "-")


def _respelt(found: Sequence[str], side: Words) -> Words:
    """Return the words of a file that are words of a class in another spelling."""
    known = spellings(side)
    return tuple(word for word in found if word not in side and spelt(word) in known)


def _name(side: Words, found: Sequence[str]) -> str:
    """Return the word that a file uses for the class, in its usual spelling; the usual name if it uses several."""
    used = dict.fromkeys(spelt(w) for w in side if w in found)
    return next(w for w in side if spelt(w) in used) if len(used) == 1 else side[0]


def _is_near(word: str, other: str) -> bool:
    return SequenceMatcher(None, word.lower(), other.lower()).ratio() >= 0.8


def _problem(word: str, known: Iterable[str]) -> Problem:
    words = sorted(known)
    if code_of(word) and word not in words:
        return Problem(AMBIGUOUS, word)
    by_case = [w for w in words if w.lower() == word.strip().lower()]
    if by_case and word.strip() != by_case[0]:
        return Problem("label-case", word, by_case[0])
    return Problem("unknown-label", word, by_case[0] if by_case else nearest(word, words))
