"""What reveals the answer without looking at the item: names, formats, sizes and metadata.

Names never reach an LLM, but a user's own detector may see them. Formats, sizes and metadata are in the file, so
every model sees them. Each is judged by guessing: how often is the label right if each item is given the label that
most other items with the same value have (leave one out), averaged over the two classes?
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from hitmiss.core.convert import fit
from hitmiss.core.errors import DataError
from hitmiss.io.verdicts import VERDICT_WORDS
from hitmiss.llm.items import Item

TELLING: Final = 0.95
FEWEST: Final = 4
"""Items per class below which nothing is reported."""
CLASS_WORDS: Final = frozenset(
    w for w, v in VERDICT_WORDS.items() if v in ("fake", "real") and w.isalpha() and len(w) > 2
)
MORE_WORDS: Final = frozenset(("generated", "diffusion", "gan", "deepfake", "midjourney", "dalle", "spoofed"))
_TOKEN: Final = re.compile(r"[a-z]+")


def find_leaks(items: Sequence[Item]) -> list[str]:
    """Return a sentence for each leak that was found."""
    labels = [item.label for item in items]
    if min((labels.count("fake"), labels.count("real"))) < FEWEST:
        return []
    return [*_names(items, labels), *_properties(items, labels)]


def _names(items: Sequence[Item], labels: Sequence[str]) -> list[str]:
    told = []
    for what, texts in (("ids", [i.id for i in items]), ("file names", [i.file for i in items])):
        word = telling_word(texts, labels)
        if word is not None:
            told.append(
                f"the {what} give the answer away ({word!r}); they are not sent to an LLM, but a detector that reads "
                f"paths could use them"
            )
    return told


def telling_word(texts: Sequence[str], labels: Sequence[str]) -> str | None:
    """Return a word that separates the classes, or names one; None if there is none.

    >>> telling_word(["fake_1", "fake_2", "a_1", "a_2"], ["fake", "fake", "real", "real"])
    'fake'
    """
    sets: list[set[str]] = [set(_TOKEN.findall(text.lower())) for text in texts]
    counts = Counter(word for own in sets for word in own)
    enough = (2 * TELLING - 1) * min(
        labels.count("fake"), labels.count("real")
    )  # of each class, so that the mean is meaningful
    for word in sorted(
        (w for w, n in counts.items() if n >= enough), key=lambda w: (w not in CLASS_WORDS | MORE_WORDS, w)
    ):
        values = [word in own for own in sets]
        if len(set(values)) == 2 and guessed(values, labels) >= TELLING:
            return word
    named = (w for w, n in counts.most_common() if w in CLASS_WORDS | MORE_WORDS and 2 <= n < len(texts))
    return next(named, None)


def _properties(items: Sequence[Item], labels: Sequence[str]) -> list[str]:
    known = [_facts(item) for item in items]
    told = []
    for name in sorted(set().union(*known)):
        values = [str(own.get(name)) for own in known]
        score = guessed(values, labels)
        if len(set(values)) > 1 and score >= TELLING:
            shown = ", ".join(f"{v} ({lab})" for v, lab in _examples(values, labels))
            told.append(
                f"{name} alone gives the answer away in {score:.0%} of the items: {shown}; the model may see it"
            )
    return told


def _facts(item: Item) -> dict[str, object]:
    """Return what a file shows without looking at its content."""
    facts: dict[str, object] = {"the format": item.media_type}
    if item.kind == "text" and item.text is not None:
        return {"the length of the text": len(item.text) // 50}
    if item.kind != "image":
        return facts
    from hitmiss.llm.tools.pictures import metadata

    try:
        told = metadata(item.load())
    except DataError:
        return {**facts, "being readable": False}
    size = f"{told['width']}x{told['height']}"
    words = _class_words({**fit(dict[str, str], told["exif"]), **fit(dict[str, str], told["texts"])})
    return {**facts, "the size": size, "having EXIF": bool(told["exif"]), "the words of the metadata": words}


def _class_words(texts: Mapping[str, str]) -> str:
    found = set(_TOKEN.findall(" ".join(texts.values()).lower())) & (CLASS_WORDS | MORE_WORDS)
    return " ".join(sorted(found)) or "none"


def guessed(values: Sequence[object], labels: Sequence[str]) -> float:
    """Return how often the label is guessed from the value, leaving the item itself out; the mean of the two classes.

    >>> guessed(["png", "png", "jpg", "jpg"], ["fake", "fake", "real", "real"])
    1.0
    >>> guessed([1, 2, 3, 4], ["fake", "fake", "real", "real"])  # no two alike: nothing can be learned
    0.0
    """
    counts = Counter(zip(values, labels, strict=True))
    hits: Counter[str] = Counter()
    for value, label in zip(values, labels, strict=True):
        other = "real" if label == "fake" else "fake"
        hits[label] += counts[(value, label)] - 1 > counts[(value, other)]
    return sum(hits[c] / labels.count(c) for c in ("fake", "real")) / 2


def _examples(values: Sequence[str], labels: Sequence[str]) -> list[tuple[str, str]]:
    pairs = Counter(zip(values, labels, strict=True))
    return [pair for pair, _ in pairs.most_common(3)]
