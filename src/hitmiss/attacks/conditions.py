"""Manipulations of any kind of item, and the conditions of a whole corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np
from numpy.random import Generator

from hitmiss.attacks import audio, image, text
from hitmiss.attacks.arrays import Array
from hitmiss.attacks.audio import SUITE
from hitmiss.attacks.channels import Chain, is_chain
from hitmiss.attacks.codec_plan import UNCODED, Condition
from hitmiss.attacks.family import Perturbation, all_attacks, perturbation
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detection.detector import Item
from hitmiss.media.audio import Clip
from hitmiss.stats.random import noise_generator

# ----------------------------------------------------------------------
# Manipulations of any item (sound, text or picture) as one kind of function: (item, sample rate, generator) -> item.
#
# The medium of a family is known: `typos` on sound, or `noise` on a text, is refused with a list of suitable families.

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
        raise UsageError.of("changes-items", attack_name=bound.attack.name, kind=kind, medium=medium, fitting=fitting)


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
            raise UsageError.of("manipulation-text-typos-rate", name=type(function).__name__)
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
        raise DataError.of("text-needed", name=type(item).__name__)
    return item


def _picture(item: object) -> Array:
    pixels = np.asarray(item)
    if pixels.ndim not in (2, 3) or pixels.dtype.kind not in "iuf":
        raise DataError.of("picture-height-width-without", shape=pixels.shape)
    return pixels


# ----------------------------------------------------------------------
# Conditions of a whole corpus: the rows that they need, and what is done to the clip of each row.
#
# `manifest.crossed(codecs.columns)` makes the rows, `detect(…, transform=codecs)` does the work:
#
#     codecs = CodedRows(read_codec_plan("codec_plan.tsv"))
#     trials = detect(model, manifest.crossed(codecs.columns), transform=codecs, load=…, output="run")
#
# Both kinds can be sent to worker processes, and their random draws depend only on the seed and the row.

Row = Mapping[str, str]
CLEAN: Final = "clean"


class CodedRows:
    """Sends clips through the codec that their row names in `codec` and `codec_q`; `NONE` stays unchanged."""

    def __init__(self, conditions: Iterable[Condition], sample_rate: int = 16000) -> None:
        self.conditions = tuple(dict.fromkeys([UNCODED, *conditions]))
        self.sample_rate = sample_rate
        self._known = {tuple(c.columns.values()): c for c in self.conditions}

    @property
    def columns(self) -> list[dict[str, str]]:
        """The values of `codec` and `codec_q` for each condition, uncoded first: for `Manifest.crossed`."""
        return [condition.columns for condition in self.conditions]

    @property
    def pinned(self) -> dict[str, object]:
        """What a resumed run must agree on: every codec, its name and its rate."""
        return {
            str(c): [c.codec.name, c.codec.sample_rate, c.codec.rate_of(c.quality)] for c in self.conditions if c.codec
        }

    def __call__(self, clip: Clip, row: Row) -> Clip:
        wanted = (row["codec"], row["codec_q"])
        if wanted not in self._known:
            raise UnknownName("codec and quality", "-q".join(wanted), map(str, self.conditions))
        return self._known[wanted](clip, self.sample_rate)


class ManipulatedRows:
    """Changes items as their row says in `manipulation`; `clean` stays unchanged.

    `medium` is the kind of item: audio, text or image. `only` names the class whose items are changed (the documented
    fakes-only mode: `only="fake"`); None changes all.
    """

    def __init__(
        self,
        manipulations: Iterable[str | Perturbation] | Mapping[str, Callable[..., object]] = SUITE,
        *,
        medium: str = "audio",
        sample_rate: int = 16000,
        only: str | None = None,
        seed: int = 0,
    ) -> None:
        named = manipulations if isinstance(manipulations, Mapping) else {str(m): m for m in manipulations}
        if CLEAN in named:
            raise UsageError.of("name-items", CLEAN=CLEAN)
        self.transforms = {name: transform(given, medium) for name, given in named.items()}
        self.sample_rate, self.only, self.seed = sample_rate, only, seed

    @property
    def columns(self) -> list[dict[str, str]]:
        """The values of `manipulation`, clean first: for `Manifest.crossed`."""
        return [{"manipulation": name} for name in (CLEAN, *self.transforms)]

    @property
    def pinned(self) -> dict[str, object]:
        """What a resumed run must agree on."""
        return {"manipulations": list(self.transforms), "only": self.only, "seed": self.seed}

    def __call__(self, item: Item, row: Row) -> Item:
        name = row["manipulation"]
        if name == CLEAN or (self.only is not None and row["label"] != self.only):
            return item
        if name not in self.transforms:
            raise UnknownName("manipulation", name, self.transforms)
        rng = noise_generator(self.seed, "manipulation", name, row.get("source", row["item"]))
        return self.transforms[name](item, self.sample_rate, rng)
