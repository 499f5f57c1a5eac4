"""What a perturbation is: a named function of an array, a strength and a generator.

    @attack
    def hum(x, strength, rng, *, sample_rate=16000, hertz=50.0, level=0.1):
        # mains hum
        t = np.arange(x.shape[-1]) / sample_rate
        return x + strength * level * np.sin(2 * np.pi * hertz * t)

Strength runs from 0 to 1: 0 returns the input exactly, 1 is what the settings say. A perturbation has a text form
like a metric: `noise(snr=15)`, `noise(snr=15, strength=0.5)`. All random draws come from the generator that it is
given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hitmiss.attacks.arrays import Array, Number
from hitmiss.core import registry
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.metric_spec import MetricSpec, Setting, parse

F = TypeVar("F", bound=Callable[..., Array])


@dataclass(frozen=True)
class Attack:
    """A registered perturbation: its name, its function and the defaults of its settings."""

    name: str
    function: Callable[..., Array]
    defaults: Mapping[str, Setting] = field(hash=False)

    @property
    def medium(self) -> str:
        """What it changes: audio, text, image or ecg; "any" for a plug-in's, whose medium is unknown."""
        package, _, name = self.function.__module__.rpartition(".")
        return name if package == "hitmiss.attacks" else "any"

    @property
    def about(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.function) or self.name).splitlines()[0]

    def apply(
        self, x: NDArray[Number], strength: float, rng: np.random.Generator, **settings: object
    ) -> NDArray[Number]:
        """Return the perturbed array: a copy of `x` at strength 0; NaN and infinities in the result are refused."""
        check_strength(self.name, strength)
        for key in settings:
            if key not in self.defaults:
                raise UnknownName(f"setting of {self.name}", key, self.defaults)
        if strength == 0.0:
            return x.copy()
        y = np.asarray(self.function(x, strength, rng, **settings))
        if not np.isfinite(y).all():
            raise DataError.of("not-finite", name=f"{self.name} at strength {strength:g}")
        return y.astype(x.dtype, copy=False)


@dataclass(frozen=True)
class Perturbation:
    """An attack with its strength and settings bound: `perturbation("noise(snr=15)")`."""

    attack: Attack
    strength: float = 1.0
    settings: Mapping[str, Setting] = field(default_factory=dict, hash=False)

    def __call__(self, x: NDArray[Number], rng: np.random.Generator, **more: object) -> NDArray[Number]:
        """Return the perturbed array; `more` are settings that only the caller knows, such as the sample rate."""
        known = {key: value for key, value in more.items() if key in self.attack.defaults}
        return self.attack.apply(x, self.strength, rng, **{**known, **self.settings})

    def __str__(self) -> str:
        strength = {} if self.strength == 1.0 else {"strength": self.strength}
        return str(MetricSpec.of(self.attack.name, **self.settings, **strength))


def attack(function: F) -> F:
    """Register a perturbation `f(x, strength, rng, *, settings…)` under its own name.

    Parameters
    ----------
    function
        Changes x by a strength from 0 to 1, with a random generator; its keywords are settings with defaults.

    Returns
    -------
    function
        The same function; `detect --manipulate NAME` and `attack --family NAME` know it.

    Raises
    ------
    UsageError
        If the function takes other positional arguments, or the name is taken.

    >>> import hitmiss.core.registry
    >>> @attack
    ... def halve(x, strength, rng, *, depth=0.5):
    ...     return x * (1 - strength * depth)
    >>> find_attack("halve").apply(np.ones(2), 0.5, np.random.default_rng(0)).tolist()
    [0.75, 0.75]
    >>> hitmiss.core.registry.forget("halve", "attack")
    """
    name = function.__name__
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    if positional != ["x", "strength", "rng"]:
        raise UsageError.of("bad-attack-signature", name=name, positional=positional)
    defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    registry.add("attack", name, Attack(name, function, defaults), origin=function.__module__)
    return function


def all_attacks() -> dict[str, Attack]:
    """Return every known attack by name."""
    return registry.all_of("attack")


def find_attack(name: str) -> Attack:
    """Return the attack of that name, ignoring case, or raise UnknownName with the nearest name."""
    known = all_attacks()
    if name.lower() not in known:
        raise UnknownName("attack", name, known)
    return known[name.lower()]


def perturbation(text: str | MetricSpec | Perturbation) -> Perturbation:
    """Return a perturbation from its text: a name with settings, including `strength`.

    Parameters
    ----------
    text
        A name with settings, `hum(hertz=60, strength=0.5)`.

    Returns
    -------
    Perturbation
        A function of a signal, a random generator and the sample rate.

    Raises
    ------
    UsageError
        For an unknown name or setting, or a strength outside 0..1.

    >>> str(perturbation("gain(db=-6, strength=0.5)"))
    'gain(db=-6, strength=0.5)'
    """
    if isinstance(text, Perturbation):
        return text
    spec = parse(text)
    found, settings = find_attack(spec.name), dict(spec.settings)
    strength = settings.pop("strength", 1.0)
    if isinstance(strength, bool) or not isinstance(strength, int | float):
        raise UsageError.of("bad-strength", spec=spec)
    check_strength(found.name, strength)
    for key in settings:
        if key not in found.defaults:
            raise UnknownName(f"setting of {found.name}", key, found.defaults)
    return Perturbation(found, float(strength), settings)


def check_strength(name: str, strength: float) -> None:
    """Refuse a strength outside 0..1."""
    if isinstance(strength, bool) or not isinstance(strength, int | float | np.number):
        raise UsageError.of("out-of-range", name=f"the strength of {name}", low=0, high=1, found=strength)
    if not 0.0 <= strength <= 1.0:
        raise UsageError.of("out-of-range", name=f"the strength of {name}", low=0, high=1, found=strength)
