"""Perturbations of texts, behind the same interface: a text is an array of its code points.

    perturb_text("you are fine", "typos(rate=0.2)", np.random.default_rng(0))

Strength scales the share of letters that are changed. Spaces and line ends stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hitmiss.attacks.arrays import Array
from hitmiss.attacks.family import Perturbation, attack, perturbation

SUITE: Final = ("typos(rate=0.05)", "typos(rate=0.1)", "homoglyphs(rate=0.1)", "homoglyphs(rate=0.3)")
"""The default manipulations of a drift table of texts."""
KEYS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
LOOKALIKES: Final = {
    "a": "а", "c": "с", "e": "е", "i": "і", "j": "ј", "o": "о", "p": "р", "s": "ѕ", "x": "х", "y": "у",
    "A": "А", "B": "В", "C": "С", "E": "Е", "H": "Н", "I": "І", "K": "К", "M": "М", "O": "О", "P": "Р", "T": "Т", "X": "Х",
}  # fmt: skip
"""Latin letters and the Cyrillic ones that look like them."""


def encode(text: str) -> NDArray[np.int32]:
    """Return a text as an array of code points.

    >>> decode(encode("naïve 🙂"))
    'naïve 🙂'
    """
    return np.array([ord(c) for c in text], dtype=np.int32)


def decode(points: Iterable[int]) -> str:
    """Return the text of an array of code points."""
    return "".join(chr(int(p)) for p in points)


def perturb_text(text: str, how: str | Perturbation, rng: Generator) -> str:
    """Return a changed text: `typos`, `homoglyphs`, or any attack on code points.

    >>> perturb_text("a cab", "homoglyphs(rate=1)", np.random.default_rng(0)) == "а саb"
    True
    """
    return decode(perturbation(how)(encode(text), rng))


@attack
def homoglyphs(x: Array, strength: float, rng: Generator, *, rate: float = 0.3) -> Array:
    """Replace letters by Cyrillic ones that look the same, strength × `rate` of those that have one."""
    out = x.copy()
    chosen = rng.random(len(x)) < strength * rate
    for at in np.flatnonzero(chosen):
        out[at] = ord(LOOKALIKES.get(chr(int(x[at])), chr(int(x[at]))))
    return out


@attack
def typos(x: Array, strength: float, rng: Generator, *, rate: float = 0.1) -> Array:
    """Make typing errors in strength × `rate` of the letters: neighbouring key, omission, doubling or exchange."""
    hit = rng.random(len(x)) < strength * rate
    kinds = rng.integers(4, size=len(x))
    picks = rng.random(len(x))
    out: list[int] = []
    for at, point in enumerate(x.tolist()):
        letter = chr(point)
        if not hit[at] or not letter.isalpha():
            out.append(point)
            continue
        out += _slip(letter, int(kinds[at]), float(picks[at]), out)
    return np.array(out, dtype=x.dtype)


def _slip(letter: str, kind: int, pick: float, before: list[int]) -> list[int]:
    """Return what replaces a letter: another key, nothing, the letter twice, or the last two exchanged."""
    if kind == 0:
        return [ord(_neighbour(letter, pick))]
    if kind == 1:
        return []
    if kind == 2 or not before or not chr(before[-1]).isalpha():
        return [ord(letter)] * 2
    return [ord(letter), before.pop()]


def _neighbour(letter: str, pick: float) -> str:
    """Return a key beside this one on the same row; letters that are on no row stay."""
    row = next((r for r in KEYS if letter.lower() in r), None)
    if row is None:
        return letter
    at = row.index(letter.lower())
    near = [row[i] for i in (at - 1, at + 1) if 0 <= i < len(row)]
    found = near[int(pick * len(near))]
    return found.upper() if letter.isupper() else found
