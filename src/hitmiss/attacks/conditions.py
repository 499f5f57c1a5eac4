"""Conditions of a whole corpus: the rows that they need, and what is done to the clip of each row.

`manifest.crossed(codecs.columns)` makes the rows, `detect(…, transform=codecs)` does the work:

    codecs = CodedRows(read_codec_plan("codec_plan.tsv"))
    trials = detect(model, manifest.crossed(codecs.columns), transform=codecs, load=…, output="run")

Both kinds can be sent to worker processes, and their random draws depend only on the seed and the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from hitmiss.attacks.audio import SUITE
from hitmiss.attacks.codec_plan import UNCODED, Condition
from hitmiss.attacks.family import Perturbation
from hitmiss.attacks.manipulation import transform
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.detection.detector import Item
from hitmiss.media.audio import Clip
from hitmiss.stats.random import noise_generator

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
            raise UsageError.of("reserved-name/clean", CLEAN=CLEAN)
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
