"""What is done to every record: families at strengths, searches for the least strength, controls, and the seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hitmiss.attack.config import PerturbationConfig
from hitmiss.attack.table import MINIMAL, run_of
from hitmiss.errors import UsageError
from hitmiss.robustness.campaign import CLEAN


@dataclass(frozen=True)
class Plan:
    """What is done: configurations, searches for the least strength, controls, and the seed."""

    configs: tuple[PerturbationConfig, ...]
    searches: tuple[PerturbationConfig, ...] = ()
    control: bool = True
    rounds: int = 7
    seed: int = 0

    @cached_property
    def steps(self) -> list[tuple[str, PerturbationConfig | None]]:
        """Every step in order: the clean records, the attacks, the searches."""
        named = [(str(c), c) for c in self.configs]
        named += [(f"{MINIMAL} {c}", c) for c in self.searches]
        if len({name for name, _ in named}) != len(named):
            twice = next(name for name, _ in named if [n for n, _ in named].count(name) > 1)
            raise UsageError(f"the attack {twice!r} is asked for twice")
        return [(CLEAN, None), *named]

    @cached_property
    def cells(self) -> dict[str, dict[str, str]]:
        """The values of the run columns of each step; an attack that is there with several settings is called with them."""
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
    def pinned(self) -> dict[str, Any]:
        """What a resumed run must agree on."""
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
    extra: dict[str, dict[str, Any]] | None = None,
) -> tuple[PerturbationConfig, ...]:
    """Every family at every strength, and at every aim (class, mode) where there are some; `extra` by family.

    >>> [str(c) for c in sweep(["band_noise"], [0.1, 0.2])]
    ['band_noise 0.1', 'band_noise 0.2']
    """
    made = []
    for family in families:
        own = dict((extra or {}).get(family, {}))
        for aim, mode in aims or ((None, None),):
            made += [PerturbationConfig(family, s, center_time, window_seconds, aim, mode, own) for s in strengths]
    return tuple(made)
