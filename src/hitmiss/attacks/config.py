"""One perturbation, configured as in the ECG attack evaluation document."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from hitmiss.attacks.batched import batched_families
from hitmiss.attacks.criteria import CRITERIA, Criterion
from hitmiss.attacks.family import all_attacks, check_strength
from hitmiss.attacks.methods import FIXED, METHODS, SETTINGS, Method
from hitmiss.attacks.queries import BLACKBOX_SETTINGS
from hitmiss.core.errors import UnknownName, UsageError, nearest
from hitmiss.core.metric_spec import MetricSpec, Setting

MODES: Final = ("force", "suppress")
STEERING: Final = (
    "target_mode",
    "target_value",
    "attack_from",
    "target_loss",
    "early_stop",
    "lead_consistent",
    "loss",
)
"""Keys of `extra` that say how an attack aims, for every family."""
ABOUT: Final = ("record_id", "note")
"""Keys of `extra` that describe the record and change nothing."""
FROM: Final = ("y_true", "prediction")
LOSSES: Final = ("bit", "vector")
SINGLE_LOSSES: Final = ("cross_entropy", "margin")
PAIRS: Final = {"f_range": ("low", "high"), "band": ("low", "high")}
"""Keys of `extra` under which the ECG attack evaluation document's own code gives two settings at once."""


@dataclass(frozen=True)
class PerturbationConfig:
    """What to do to a record, how strongly and where.

    `ptype` is a family, in any case; `strength` runs from 0 (nothing) to 1. A window is a Hann taper of
    `window_seconds` around `center_time`; None is the whole record. `target_class` with `target_mode` targets one
    class: `force` its bit to 1 (the default) or `suppress` it. `extra` holds the family's own settings (`beta`,
    `steps`, …), and:

    attack_from      y_true (default): move away from the truth; prediction: away from the clean prediction
    target_loss      bit (default): only the target bit; vector: y_true with that bit set, as documented for ECGs
    early_stop       stop with a record once it has flipped
    lead_consistent  change the eight independent leads and derive the other four

    >>> PerturbationConfig("Band_Noise", 0.5, center_time=5.0).family
    'band_noise'
    """

    ptype: str
    strength: float
    center_time: float
    window_seconds: float | None = None
    target_class: str | None = None
    target_mode: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.family not in families():
            refuse_other_media(self.family)
            raise UnknownName("perturbation", self.ptype, families())
        check_strength(self.ptype, self.strength)
        if not isinstance(self.target_class, str | None):
            raise UsageError.of("bad-target", target_class=self.target_class)
        told = self.extra.get("target_mode")
        if told is not None and self.target_mode is not None and told != self.target_mode:
            raise UsageError.of("bad-target/mode", target_mode=self.target_mode, told=told)
        for key, value, known in (
            ("target_mode", self.mode, MODES),
            ("attack_from", self.attack_from, FROM),
            ("target_loss", self.target_loss, LOSSES),
            ("loss", self.loss, SINGLE_LOSSES),
        ):
            if value is not None and value not in known:
                raise UnknownName(key, str(value), known)
        if self.target_class is None and (self.target_mode or told):
            raise UsageError.of("bad-target/none", target_mode=self.target_mode or told)
        known_keys = [*settings_of(self.family), *STEERING, *ABOUT]
        for key in self.free:
            if nearest(key, known_keys) is not None:  # a typing error must not be taken for a note
                raise UnknownName(f"key of extra for {self.family}", key, known_keys)
        for key in self.settings:
            check_setting(self.family, key, self.settings[key], defaults_of(self.family).get(key))

    @property
    def family(self) -> str:
        """The family's name."""
        return self.ptype.lower()

    @property
    def mode(self) -> str | None:
        """`force` or `suppress`; None without a target class."""
        if self.target_class is None:
            return None
        return str(self.target_mode or self.extra.get("target_mode") or "force")

    @property
    def target_value(self) -> float:
        """The wanted value of the target bit, from `extra`, or else from the mode."""
        own = 0.0 if self.mode == "suppress" else 1.0
        return float(self.extra.get("target_value", own))

    @property
    def attack_from(self) -> str:
        """What an untargeted attack moves away from."""
        return str(self.extra.get("attack_from", "y_true"))

    @property
    def target_loss(self) -> str:
        """What a targeted attack optimises."""
        return str(self.extra.get("target_loss", "bit"))

    @property
    def loss(self) -> str:
        """The loss of an attack on exclusive classes: cross_entropy, or the margin to the best other."""
        return str(self.extra.get("loss", "cross_entropy"))

    @property
    def criterion(self) -> Criterion:
        """When it has succeeded."""
        return CRITERIA[self.mode]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the family itself."""
        own = settings_of(self.family)
        found = {k: v for k, v in self.extra.items() if k in own}
        for key, names in PAIRS.items():
            if key in self.extra and key not in own and set(names) <= set(own):
                found |= dict(zip(names, _pair(key, self.extra[key]), strict=True))
        return found

    @property
    def free(self) -> list[str]:
        """Keys of `extra` that change nothing and are kept with the result, such as `trial`."""
        own = settings_of(self.family)
        pairs = [key for key, names in PAIRS.items() if set(names) <= set(own)]
        return [k for k in self.extra if k not in (*own, *STEERING, *ABOUT, *pairs)]

    @property
    def needs_gradient(self) -> bool:
        """Whether the model must have gradients."""
        return self.family in METHODS

    @property
    def needs_model(self) -> bool:
        """Whether making the perturbation uses the model at all."""
        return self.family not in batched_families()

    @property
    def call(self) -> str:
        """The family with the given settings, in text form.

        >>> PerturbationConfig("band_noise", 0.5, 0.0, extra={"beta": 2}).call
        'band_noise(beta=2)'
        """
        own = {k: v for k, v in self.extra.items() if k not in (*ABOUT, *self.free, "target_mode", "target_value")}
        return str(MetricSpec.of(self.family, **own))

    @property
    def kind(self) -> str:
        """A text that is equal for configurations that may share a batch: all but strength, place and target."""
        shared = {
            k: str(v)
            for k, v in sorted(self.extra.items())
            if k not in (*ABOUT, *self.free, "target_mode", "target_value")
        }
        return json.dumps([self.family, shared])

    def __str__(self) -> str:
        where = "" if self.window_seconds is None else f" @{self.center_time:g}s±{self.window_seconds / 2:g}"
        aim = "" if self.target_class is None else f" {self.mode} {self.target_class}"
        shown = {k: v for k, v in self.extra.items() if k not in (*ABOUT, "target_mode")}
        extra = f" {json.dumps(shown, sort_keys=True, default=str)}" if shown else ""
        return f"{self.family} {self.strength:g}{where}{aim}{extra}"


def _pair(key: str, value: Iterable[float]) -> tuple[float, float]:
    """Return two numbers, the lower first."""
    try:
        low, high = (float(v) for v in value)
    except (TypeError, ValueError):
        raise UsageError.of("bad-pair", key=key, value=value) from None
    return low, high


def families() -> list[str]:
    """Return every family that a configuration may name."""
    return sorted({*batched_families(), *METHODS, *BLACKBOX_SETTINGS})


def refuse_other_media(family: str) -> None:
    """Refuse a known family that is not for records."""
    known = all_attacks()
    if family in known and family not in families():
        raise UsageError.of("wrong-medium", family=family, medium=known[family].medium)


def settings_of(family: str) -> list[str]:
    """Return the settings that a family takes."""
    return list(defaults_of(family))


def defaults_of(family: str) -> dict[str, Setting]:
    """Return the settings that a family takes, with their defaults."""
    batched = batched_families()
    if family in batched:
        return dict(batched[family].defaults)
    if family in METHODS:
        own = {f: getattr(METHODS[family], f) for f in Method.__dataclass_fields__ if f not in FIXED}
        return own | {theirs: own[ours] for theirs, ours in SETTINGS.items()}
    return dict(BLACKBOX_SETTINGS[family])


def check_setting(family: str, key: str, value: object, default: object) -> None:
    """Refuse a setting that must be a number, or a positive whole number for counts, and is not."""
    if isinstance(default, str):
        return
    if value is None and default is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 <= float(value) < np.inf:
        raise UsageError.of("out-of-range/least", name=f"{key} of {family}", least=0, found=repr(value))
    if isinstance(default, int) and (float(value) < 1 or float(value) != int(value)):
        raise UsageError.of("not-a-whole-number", key=key, family=family, value=value)


def same_kind(configs: Sequence[PerturbationConfig]) -> dict[str, list[int]]:
    """Return positions of configurations by kind: those of one kind are processed in one batch."""
    groups: dict[str, list[int]] = {}
    for at, config in enumerate(configs):
        groups.setdefault(config.kind, []).append(at)
    return groups
