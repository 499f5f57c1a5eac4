"""Manipulations of whatever an item is, sound, text or picture, as one kind of function: (item, sample rate, generator) -> item.

What a family is for is known: `typos` on sound, or `noise` on a text, is refused with the families that would fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from hitmiss.attack import audio, image, text
from hitmiss.attack.channel import Chain, is_chain
from hitmiss.attack.family import Perturbation, all_attacks, perturbation
from hitmiss.errors import DataError, UnknownName, UsageError

Transform = Callable[[Any, int, Generator], Any]
MEDIA: Final = ("audio", "image", "text")
SUITES: Final = {"audio": audio.SUITE, "image": image.SUITE, "text": text.SUITE}
"""The manipulations of a drift table unless others are named, by what an item is."""


def transform(given: str | Perturbation | Callable[..., Any], medium: str = "audio") -> Transform:
    """A text as `typos(rate=0.1)`, a perturbation, or a callable as a function of items of a medium.

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
        raise UsageError(
            f"{bound.attack.name} changes {kind} and the items are {medium}; for these there are {fitting}"
        )


class _Bound:
    """A perturbation of texts or pictures; a class, so that worker processes can be sent it."""

    def __init__(self, bound: Perturbation, medium: str) -> None:
        self.bound, self.medium = bound, medium

    def __call__(self, item: Any, sample_rate: int, rng: Generator) -> Any:  # noqa: ARG002  (all media are called alike)
        if self.medium == "text":
            return text.perturb_text(_text(item), self.bound, rng)
        return self.bound(_picture(item), rng)

    def __str__(self) -> str:
        return str(self.bound)


class _Called:
    """Somebody's callable on texts or pictures."""

    def __init__(self, function: Callable[..., Any], medium: str) -> None:
        if not callable(function):
            raise UsageError(
                f"a manipulation is a text as typos(rate=0.1) or a callable; found {type(function).__name__}"
            )
        self.function, self.medium = function, medium
        self.n_given = min(max(len(audio.parameters_of(function)), 1), 2)

    def __call__(self, item: Any, sample_rate: int, rng: Generator) -> Any:  # noqa: ARG002
        with audio.seeded(rng):
            changed = self.function(*(item, rng)[: self.n_given])
        return _text(changed) if self.medium == "text" else _picture(changed)

    def __str__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


def _text(item: Any) -> str:
    if not isinstance(item, str):
        raise DataError(f"a text is needed; found {type(item).__name__}")
    return item


def _picture(item: Any) -> Any:
    pixels = np.asarray(item)
    if pixels.ndim not in (2, 3) or pixels.dtype.kind not in "iuf":
        raise DataError(f"a picture is height × width, with or without channels; found the shape {pixels.shape}")
    return pixels
