"""SamplingPlan: how intervals are made; what is resampled, and which intervals are computed from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from hitmiss.core.convert import InvalidField, fit_field
from hitmiss.core.errors import UnknownName, UsageError

Method = Literal["auto", "percentile", "bca"]
METHODS: Final = ("auto", "percentile", "bca")
BY_CLASS: Final = "within classes"
OF_ALL: Final = "from all"
"""How trials or units are drawn: with fixed class sizes, or with class sizes that vary as in a new sample."""


@dataclass(frozen=True)
class SamplingPlan:
    """How intervals are made: replicates, the unit that is resampled, the seed, the level and the kind of interval."""

    bootstrap: int = 0
    unit: tuple[str, ...] = ()
    seed: int = 0
    level: float = 0.95
    method: Method = "auto"
    stratify: bool | None = None

    def __post_init__(self) -> None:
        if self.bootstrap < 0 or self.bootstrap == 1:
            raise UsageError.of("bad-bootstrap", bootstrap=self.bootstrap)
        if not 0.0 < self.level < 1.0:
            raise UsageError.of("bad-level", level=self.level)
        if self.method not in METHODS:
            raise UnknownName("kind of interval", self.method, METHODS)
        if len(self.unit) > 2:
            raise UsageError.of("bad-unit/crossed", unit=tuple(self.unit))

    def by_class(self, prevalence: bool) -> bool:
        """Return whether trials (or units of one class) are resampled within each class.

        They are if an estimate does not depend on prevalence. Otherwise the number of positives is random too, so trials
        are drawn from both classes together.
        """
        return not prevalence if self.stratify is None else self.stratify

    def within(self, grouping: Sequence[str]) -> SamplingPlan:
        """Return the plan for slices by some columns: a unit that a slice consists of is given, and only others are drawn.

        >>> SamplingPlan(100, ("speaker", "attack")).within(["attack"]).unit
        ('speaker',)
        """
        drawn = tuple(unit for unit in self.unit if unit not in grouping)
        return self if drawn == self.unit else replace(self, unit=drawn)

    def describe(self, prevalence: bool, whole: bool = False) -> str:
        """Describe how the replicates of a number were drawn; `whole`: units hold both classes."""
        what = f"unit={'*'.join(self.unit)}" if self.unit else "trials"
        how = "" if whole else f" {BY_CLASS if self.by_class(prevalence) else OF_ALL}"
        return f"{self.bootstrap},{what}{how},{self._rest}"

    def __str__(self) -> str:
        if not self.bootstrap:
            return "none"
        kind = f"unit={'*'.join(self.unit)}" if self.unit else "trials"
        asked = {None: "", True: f" {BY_CLASS}", False: f" {OF_ALL}"}[self.stratify]
        return f"{self.bootstrap},{kind}{asked},{self._rest}"

    @classmethod
    def parse(cls, text: str) -> SamplingPlan:
        """Read a plan from its text in a signature; older versions write `stratified` for trials.

        >>> str(SamplingPlan.parse("100,unit=speaker within classes,auto,0.9,seed=7"))
        '100,unit=speaker within classes,auto,0.9,seed=7'
        """
        try:
            count, kind, method, level, seed = text.split(",")
            drawn = next((how for how in (BY_CLASS, OF_ALL) if kind.endswith(f" {how}")), "")
            what = kind.removesuffix(drawn).strip()
            return cls(
                int(count),
                tuple(what.removeprefix("unit=").split("*")) if what.startswith("unit=") else (),
                int(seed.removeprefix("seed=")),
                float(level),
                fit_field(cls, "method", method),
                {BY_CLASS: True, OF_ALL: False}.get(drawn),
            )
        except (ValueError, InvalidField):
            raise UsageError.of("bad-draws", text=text) from None

    @property
    def _rest(self) -> str:
        return f"{self.method},{self.level:g},seed={self.seed}"
