"""Manipulations of any item (sound, text or picture) as one kind of function: (item, sample rate, generator) -> item.

The medium of a family is known: `typos` on sound, or `noise` on a text, is refused with a list of suitable families.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.random import Generator

from hitmiss.attacks import audio, image, text
from hitmiss.attacks.arrays import Array
from hitmiss.attacks.channels import Chain, is_chain
from hitmiss.attacks.family import Perturbation, all_attacks, perturbation
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detection.detector import Item

Transform = Callable[..., Item]
MEDIA: Final = ("audio", "image", "text")
SUITES: Final = {"audio": audio.SUITE, "image": image.SUITE, "text": text.SUITE}
"""The default manipulations of a drift table, by medium."""


def transform(given: str | Perturbation | Callable[..., object], medium: str = "audio") -> Transform:
    """Return a text such as `typos(rate=0.1)`, a perturbation, or a callable as a function of items of a medium.

    A callable takes the item, or the item and a generator; for sound see `audio.transform`.
    """
    if medium not in MEDIA:
        raise UnknownName("medium", medium, MEDIA)
    if medium == "audio" and isinstance(given, str) and is_chain(given):
        return Chain(given)
    if isinstance(given, str | Perturbation):
        bound = perturbation(given)
        _refuse_other(bound, medium)
        return audio.transform(bound) if medium == "audio" else _Bound(bound, medium)
    return audio.transform(given) if medium == "audio" else _Called(given, medium)


def _refuse_other(bound: Perturbation, medium: str) -> None:
    own = bound.attack.medium
    if own not in ("any", medium):
        fitting = ", ".join(name for name, attack in all_attacks().items() if attack.medium in ("any", medium))
        kind = {"ecg": "an ECG (see `hitmiss attack`)"}.get(own, own)
        raise UsageError.of(
            "wrong-medium/items", attack_name=bound.attack.name, kind=kind, medium=medium, fitting=fitting
        )


class _Bound:
    """A perturbation of texts or pictures; a class, so that it can be sent to worker processes."""

    def __init__(self, bound: Perturbation, medium: str) -> None:
        self.bound, self.medium = bound, medium

    def __call__(self, item: Item, sample_rate: int, rng: Generator) -> Item:  # noqa: ARG002  (all media are called alike)
        if self.medium == "text":
            return text.perturb_text(_text(item), self.bound, rng)
        return self.bound(_picture(item), rng)

    def __str__(self) -> str:
        return str(self.bound)


class _Called:
    """A user's callable on texts or pictures."""

    def __init__(self, function: Callable[..., object], medium: str) -> None:
        if not callable(function):
            raise UsageError.of("bad-manipulation", example="typos(rate=0.1)", name=type(function).__name__)
        self.function, self.medium = function, medium
        self.n_given = min(max(len(audio.parameters_of(function)), 1), 2)

    def __call__(self, item: Item, sample_rate: int, rng: Generator) -> Item:  # noqa: ARG002
        with audio.seeded(rng):
            changed = self.function(*(item, rng)[: self.n_given])
        return _text(changed) if self.medium == "text" else _picture(changed)

    def __str__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


def _text(item: object) -> str:
    if not isinstance(item, str):
        raise DataError.of("not-text", name=type(item).__name__)
    return item


def _picture(item: object) -> Array:
    pixels = np.asarray(item)
    if pixels.ndim not in (2, 3) or pixels.dtype.kind not in "iuf":
        raise DataError.of(
            "wrong-shape", name="a picture", form="height × width, with or without channels", shape=str(pixels.shape)
        )
    return pixels
