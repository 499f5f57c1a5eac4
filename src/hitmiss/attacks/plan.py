"""What is done to every record: families at strengths, searches for the minimum strength, controls, and the seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hitmiss.attacks.config import PerturbationConfig
from hitmiss.core.errors import UsageError
from hitmiss.robustness.campaign import CLEAN

MINIMAL: Final = "minimal"


def run_of(name: str, config: PerturbationConfig | None) -> dict[str, str]:
    """Return the values of the run columns of one step."""
    if config is None:
        return {"attack": CLEAN, "strength": "0", "aim": "any", "place": "whole"}
    aim = "any" if config.target_class is None else f"{config.mode} {config.target_class}"
    place = "whole" if config.window_seconds is None else f"{config.center_time:g} s"
    strength = MINIMAL if name.startswith(f"{MINIMAL} ") else f"{config.strength:g}"
    return {"attack": config.family, "strength": strength, "aim": aim, "place": place}


@dataclass(frozen=True)
class AttackPlan:
    """What is done: configurations, searches for the minimum strength, controls, and the seed."""

    configs: tuple[PerturbationConfig, ...]
    searches: tuple[PerturbationConfig, ...] = ()
    control: bool = True
    rounds: int = 7
    seed: int = 0

    @cached_property
    def steps(self) -> list[tuple[str, PerturbationConfig | None]]:
        """Return every step in order: the clean records, the attacks, the searches."""
        named = [(str(c), c) for c in self.configs]
        named += [(f"{MINIMAL} {c}", c) for c in self.searches]
        if len({name for name, _ in named}) != len(named):
            twice = next(name for name, _ in named if [n for n, _ in named].count(name) > 1)
            raise UsageError.of("attack-twice", twice=twice)
        return [(CLEAN, None), *named]

    @cached_property
    def cells(self) -> dict[str, dict[str, str]]:
        """Return the run columns of each step; an attack used with several settings is named with its settings."""
        found = {CLEAN: run_of(CLEAN, None)}
        for group in (self.configs, self.searches):
            kinds: dict[str, set[str]] = {}
            for config in group:
                kinds.setdefault(config.family, set()).add(config.kind)
            for config in group:
                name = str(config) if group is self.configs else f"{MINIMAL} {config}"
                found[name] = run_of(name, config)
                if len(kinds[config.family]) > 1:
                    found[name]["attack"] = config.call
        return found

    @property
    def pinned(self) -> dict[str, object]:
        """Return what a resumed run must agree on."""
        return {
            "attacks": [name for name, _ in self.steps],
            "control": self.control,
            "rounds": self.rounds,
            "seed": self.seed,
        }


def sweep(
    families: Sequence[str],
    strengths: Sequence[float],
    *,
    center_time: float = 0.0,
    window_seconds: float | None = None,
    aims: Sequence[tuple[str, str]] = (),
    extra: Mapping[str, Mapping[str, object]] | None = None,
) -> tuple[PerturbationConfig, ...]:
    """Return every family at every strength, and at every aim (class, mode) if there are any; `extra` is by family.

    >>> [str(c) for c in sweep(["band_noise"], [0.1, 0.2])]
    ['band_noise 0.1', 'band_noise 0.2']
    """
    made = []
    for family in families:
        own = dict((extra or {}).get(family, {}))
        for aim, mode in aims or ((None, None),):
            made += [PerturbationConfig(family, s, center_time, window_seconds, aim, mode, own) for s in strengths]
    return tuple(made)
