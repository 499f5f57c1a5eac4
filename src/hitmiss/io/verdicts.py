"""What a three-way verdict says: fake, real, uncertain, or nothing that is understood."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hitmiss.core.classes import FAMILIES, about_spoofing, family_of, named_classes
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io.json_lines import strict_json
from hitmiss.io.labels import word_of
from hitmiss.io.words import is_absent

UNCERTAIN: Final = "uncertain"
VERDICT_WORDS: Final = {
    **dict.fromkeys(FAMILIES[0].negative, "fake"),
    **dict.fromkeys(FAMILIES[0].positive, "real"),
    **dict.fromkeys(("ai-generated", "ai generated", "ai", "synthetic", "manipulated", "tampered", "tamper"), "fake"),
    **dict.fromkeys(("authentic", "natural"), "real"),
    **dict.fromkeys((UNCERTAIN, "inconclusive", "unknown", "undetermined", "unsure", "not sure", "abstain"), UNCERTAIN),
    **dict.fromkeys(("cannot determine", "cant determine", "impossible to tell"), UNCERTAIN),
    **dict.fromkeys(("gefalscht", "falschung", "ki-generiert", "manipuliert", "synthetisch"), "fake"),  # German
    **dict.fromkeys(("echt", "authentisch"), "real"),
    **dict.fromkeys(("unsicher", "unklar", "unentschieden"), UNCERTAIN),
    **dict.fromkeys(("faux", "truque", "falsifie", "genere par ia", "manipule", "synthetique"), "fake"),  # French
    **dict.fromkeys(("reel", "authentique"), "real"),
    **dict.fromkeys(("incertain", "indetermine"), UNCERTAIN),
    **dict.fromkeys(("falso", "falsificado", "generado por ia", "manipulado", "sintetico"), "fake"),  # Spanish, …
    **dict.fromkeys(("gerado por ia", "generato da ia", "falsificato", "manipolato"), "fake"),  # Portuguese, Italian
    **dict.fromkeys(("autentico", "reale"), "real"),
    **dict.fromkeys(("incierto", "indeterminado", "incerto", "indeterminato"), UNCERTAIN),
}
"""The words that detectors use, as the runner of the triage evaluation document understands them, and those of five other
languages, without accents. A word that could mean something else (German `falsch`, wrong) is not among them."""


def read_verdict(text: str | None) -> str | None:
    """Return `fake`, `real` or `uncertain`; None if the text is empty or means none of these.

    >>> [read_verdict(t) for t in ("AI-Generated.", " authentic", "can't determine", "Gefälscht", "purple", "")]
    ['fake', 'real', 'uncertain', 'fake', None, None]
    """
    bare = unicodedata.normalize("NFKD", (text or "").strip().lower())  # accents apart, and left out below
    plain = re.sub(r"[^a-z0-9\-\s]", "", re.sub(r"[\s_]+", " ", bare))
    return VERDICT_WORDS.get(" ".join(plain.split()))


@dataclass(frozen=True)
class VerdictWords:
    """The words for labels and verdicts: those that the caller has declared come before the ones that detectors use.

    Words outside the known families, such as `machine` and `person`, are mapped to fake and real, because the numbers
    of the triage evaluation are about those two classes.
    """

    declared: Mapping[str, str]
    is_own: bool = False

    @classmethod
    def of(cls, options: ReadSpec) -> VerdictWords:
        """Make it from the names of the classes and the words for an abstention."""
        positive, negative = named_classes(options.positive or "fake", options.negative or "real")
        is_own = not (about_spoofing(positive) and about_spoofing(negative))
        classes = ("fake", "real") if is_own else (positive, negative)
        family = family_of((), positive)
        sides = family.sides(positive) if is_own and family is not None else ((), ())
        declared = {folded(word): name for name, side in zip(classes, sides, strict=True) for word in side}
        declared |= dict(zip(map(folded, (positive, negative)), classes, strict=True))
        if is_own and options.negative is not None:  # a word of the caller's, beside that of the positive one's family
            declared.setdefault(folded(options.negative), classes[1])
        code = MEANING_OF_CODE.get(word_of(options.positive_value or ""))
        if code is not None:  # verdicts may be codes if labels are
            declared |= {word: classes[0] if own == code else classes[1] for word, own in MEANING_OF_CODE.items()}
        return cls({**declared, **{folded(word): UNCERTAIN for word in options.abstain}}, is_own)

    def read(self, text: str | None) -> str | None:
        """Return the class that a verdict names, `uncertain`, or None if it is not understood."""
        plain = verdict_in(text or "")
        return self.declared.get(folded(plain)) or self.declared.get(word_of(plain)) or read_verdict(plain)

    def label(self, text: str) -> str:
        """Return the class that a label names if its words are the caller's own; else the label unchanged."""
        return self.declared.get(folded(text), text) if self.is_own else text


MEANING_OF_CODE: Final = {"1": True, "true": True, "0": False, "false": False}
"""Verdicts that name no class; which one they mean is said by --positive-value."""
INSIDE: Final = ("verdict", "prediction", "label", "decision", "answer")
"""The fields of an object that may hold its verdict."""
VERDICT_FIELDS: Final = INSIDE[:2]


def verdict_in(text: str) -> str:
    """Return the verdict that a cell holds: as it is, or inside JSON; empty for an object without a verdict.

    >>> verdict_in("fake"), verdict_in('"real"'), verdict_in('{"verdict": "fake", "confidence": 0.9}'), verdict_in("{}")
    ('fake', 'real', 'fake', '')
    """
    if not text.lstrip().startswith(("{", '"', "[")):
        return text
    found = json_or_text(text)
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    if isinstance(found, Mapping):
        said = [found[name] for name in INSIDE if not is_absent(found.get(name))]
        found = said[0] if said and not isinstance(said[0], Mapping | list) else ""
    return text if isinstance(found, list) else str(found)


def folded(word: str) -> str:
    return " ".join(word.casefold().split())


def json_or_text(text: str) -> object:
    try:
        return strict_json(text)
    except ValueError:
        return text
