"""What a metric says about itself: its title, formula, range, direction, chance level, what it needs, when undefined."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.metric_spec import MetricSpec, Setting

if TYPE_CHECKING:
    from hitmiss.core.sorting import Floats

Best = Literal["low", "high"]
Of = Literal["", "all", "answered", "positives", "negatives", "both"]
"""The trials that a metric is over; `both` if it compares the classes, empty if it is not said."""
CHANCE: Final = "chance"
TRIVIAL: Final = "accepting or rejecting everything"
COMMONER: Final = "always saying the commoner class"


@dataclass(frozen=True)
class Chance:
    """The value of a metric without any detector, and what gives that value.

    The value is a number, or a function of the share of positives and of the settings; None if it is not determined.

    >>> Chance(0.5).level(None, {}), Chance(lambda share, settings: share).level(0.2, {})
    (0.5, 0.2)
    """

    value: float | Callable[[float, Mapping[str, object]], float | None]
    by: str = CHANCE

    def level(self, share: float | None, settings: Mapping[str, object]) -> float | None:
        """Return the value for a share of positives (None if there is one class only) and settings."""
        if not callable(self.value):
            return self.value
        return self.value(share if share is not None else float("nan"), settings)


def commoner(share: float, _: Mapping[str, object]) -> float:
    """Return the share of the commoner class, which is the accuracy of always saying that class."""
    return max(share, 1.0 - share)


@dataclass(frozen=True)
class Metric:
    """Everything about a metric: the function, what it needs, what its values mean, and how it is explained.

    `hitmiss.metric` explains the fields. `title`, `gist`, `formula`, `undefined` and `text` are those of the
    declaration, or else read from the docstring of the function: its first line is `Title: gist`, the paragraph after
    it begins with the formula and has the sentence `Undefined (NaN) …`.
    """

    name: str
    function: Callable[..., float]
    best: Best
    range: tuple[float, float]
    columns: tuple[str, ...]
    defaults: dict[str, Setting] = field(hash=False)
    form: Callable[..., object] | None = None
    kinds: tuple[str, ...] = ()
    positive: str | None = None
    interval: bool = True
    judged: Callable[..., Floats] | None = None
    prevalence: bool = True
    one_by_one: bool = False
    zero: bool = False
    also: tuple[str, ...] = ()
    two_sided: bool = False
    ends: Callable[..., tuple[float, float]] | None = None
    stated_title: str = ""
    stated_formula: str = ""
    stated_undefined: str = ""
    symbol: str = ""
    chance: Chance | None = None
    of: Of = ""
    share: bool = False
    ranks: bool = False
    answered: str = ""
    covers: Of = ""
    brought: tuple[str, ...] = ()
    tied: str = ""
    from_rates: bool = False
    at_best: str = ""
    by_chance: str = ""

    @property
    def title(self) -> str:
        """The name in words."""
        head, colon, _ = self._first_line.partition(": ")
        words = self.name.replace("_", " ")
        return self.stated_title or (head.strip() if colon else words[:1].upper() + words[1:])

    @property
    def gist(self) -> str:
        """What it is, in one sentence."""
        head, colon, rest = self._first_line.partition(": ")
        return rest.strip() if colon else head.strip()

    @property
    def text(self) -> str:
        """What else there is to say: formula, range, when it is undefined, where it comes from."""
        said = "\n".join(" ".join(part.split()) for part in self._rest.split(">>>")[0].strip().split("\n\n"))
        stated = [self.stated_formula, f"Undefined (NaN) {self.stated_undefined}" if self.stated_undefined else ""]
        return "\n".join(filter(None, (*stated, said)))

    @property
    def formula(self) -> str:
        """How it is computed."""
        first = self._rest.strip().partition("\n\n")[0]
        return self.stated_formula or " ".join(re.split(r"\bBest: |\bUndefined \(NaN\)", first)[0].split()).rstrip(". ")

    @property
    def undefined(self) -> str:
        """When it is undefined, as it follows after "undefined "."""
        found = re.search(r"Undefined \(NaN\)\s+(.*?)[.;](\s|$)", " ".join(self._rest.split()))
        return self.stated_undefined or (found[1] if found else "")

    @property
    def _first_line(self) -> str:
        return (inspect.getdoc(self.function) or self.name).replace("**", "").partition("\n")[0]

    @property
    def _rest(self) -> str:
        return (inspect.getdoc(self.function) or "").replace("**", "").partition("\n")[2]

    def chance_level(self, share: float | None, settings: Mapping[str, object]) -> float | None:
        """Return the value without any detector, for a share of positives; None if the metric does not say it."""
        level = None if self.chance is None else self.chance.level(share, {**self.defaults, **settings})
        return level if level is not None and level == level else None

    def is_telling(self, n_positive: float, n: float) -> bool:
        """Return whether the value can differ between detectors: precision without positives is 0 whatever they do."""
        if 0 < n_positive < n or not n:
            return True
        return self.of in ("", "all", "answered", "positives" if n_positive else "negatives")

    def range_of(self, settings: Mapping[str, object]) -> tuple[float, float]:
        """Return the least and greatest possible values with these settings."""
        return self.range if self.ends is None else self.ends(**{**self.defaults, **settings})

    def settings(self, spec: MetricSpec) -> dict[str, Setting]:
        """Return the default settings, overridden by those of the spec; an unknown setting is an error."""
        for key, _ in spec.settings:
            if key not in self.defaults:
                raise UnknownName(f"setting of {self.name}", key, self.defaults)
        for key, value in spec.settings:
            default = self.defaults[key]
            if isinstance(default, bool) and not isinstance(value, bool):
                raise UsageError.of("bad-setting", spec_name=spec.name, key=key, value=value)
            if isinstance(value, str) and isinstance(default, int | float) and not isinstance(default, bool):
                raise UsageError.of("bad-setting/number", spec_name=spec.name, key=key, value=value)
        return {**self.defaults, **dict(spec.settings)}
