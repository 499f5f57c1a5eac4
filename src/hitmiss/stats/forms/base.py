"""What every form of a metric has: its value, its replicates, its errors, and what engines ask before they draw."""

# ruff: noqa: ARG002  (a method of the base class answers for the forms that need nothing)

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Array, Floats, Number
from hitmiss.core.tally import Tally
from hitmiss.stats.delong import RocSteps
from hitmiss.stats.optimism import growth_of_least_cost

if TYPE_CHECKING:
    from hitmiss.stats.curve import Curve
    from hitmiss.stats.forms.least_cost import Bound
    from hitmiss.stats.forms.sums import ClassSums
    from hitmiss.stats.forms.trials import OfColumns, OfTerms, OfWeights
    from hitmiss.stats.forms.whole import Whole
    from hitmiss.stats.search import Stretches

Kind = Literal["scores", "decisions", "columns"]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]
CHUNK = 1 << 15  # whole-array temporaries cost several times a chunked pass (page faults)
FINE_GRID = 128
"""Number of stretches with equal numbers of trials per class, for sums over all trials."""


class Sampled(Protocol):
    """The trials of one sample, as a form uses them."""

    @property
    def positive(self) -> Mask: ...
    @property
    def score(self) -> Floats: ...
    @property
    def tally(self) -> Tally: ...
    @property
    def steps(self) -> RocSteps: ...
    @property
    def counts(self) -> object: ...
    @property
    def placements(self) -> Floats: ...
    @property
    def weight(self) -> Floats | None: ...

    def arrays(self, names: Sequence[str]) -> dict[str, Array]: ...


class Drawn(Protocol):
    """Replicates of one sample, as a form of scores uses them (see `bootstrap.DrawnCells` and `bootstrap.ByUnits`)."""

    def searched(self, form: Located) -> Floats: ...
    def counts_at(self, threshold: float) -> tuple[Floats, Floats, Floats, Floats]: ...
    def class_sums(self, form: ClassSums) -> tuple[Floats, Floats, Floats, Floats]: ...
    def pair_share(self) -> Floats: ...
    def whole(self, form: Whole) -> Floats: ...


class DrawnTrials(Protocol):
    """Replicates of one sample's trials, as forms of decisions and columns use them."""

    def counts(self) -> object: ...
    def confidences(self, function: Callable[..., Floats]) -> Floats: ...
    def rows(self, form: OfColumns) -> Floats: ...
    def ratio(self, form: OfTerms) -> Floats: ...
    def weighed(self, form: OfWeights) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Replicated:
    """A number with its replicates; `beside`: the second form that it asked for (`Form.beside`), and its replicates."""

    value: float
    replicates: Floats
    beside: tuple[Form, Floats] | None = None


class Errors(NamedTuple):
    """Errors of one kind behind an estimate: their name, how often they occurred, and by how much one more changes it."""

    name: str
    seen: int
    effect: float


class Passing(Protocol):
    """A number that is computed while the scores of a sample are read in ascending order, stretch by stretch."""

    def add(self, part: Tally) -> None:
        """Read the next stretch of scores."""

    def value(self) -> float:
        """Return the number, after all scores were read."""


L = TypeVar("L")
Left = Callable[["Functional"], L | None]
"""Returns the numbers of a form without one unit each; None without units."""


class Functional(ABC):
    """A number as a function of the trials of a sample."""

    kind: ClassVar[Kind]
    is_fitted: bool = False
    """Whether it is a minimum over something fitted to the sample, so that draws do not show how uncertain it is."""
    is_area: ClassVar[bool] = False
    """Whether it is the ROC AUC, for which DeLong's variance is known."""
    needs_both: bool = False
    """Whether it is undefined with one class."""
    by_rank: ClassVar[bool] = False
    """Whether only the order of the scores matters."""
    is_least: ClassVar[bool] = False
    """Whether it is a minimum over thresholds (but not a `MinimumCost`), so that it and its replicates lie too low."""
    is_spread: ClassVar[bool] = False
    """Whether the deviation of its replicates, on its scale, gives a better interval than their percentiles."""
    fewest_errors: ClassVar[int] = 0
    """How many errors of each kind an interval needs (see `errors`), because draws contain none that was not seen."""
    most_of_width: ClassVar[float] = 0.2
    """With fewer errors of a kind: how much of an interval's width one more of them may add to the number."""

    @abstractmethod
    def measure(self, sample: Sampled) -> float:
        """Return the number of a sample."""

    def for_averages(self, of: Replicated) -> Floats:
        """Return replicates for numbers that are made of several numbers.

        Those of a minimum over thresholds lie lower still than its value: they are moved to it, and both up by the optimism.
        """
        if not self.is_least:
            return of.replicates
        return (of.replicates + (of.value - float(np.nanmean(of.replicates)))) * self.growth(of)

    def left_for_averages(self, of: Replicated, left: Left[Floats]) -> Floats | None:
        """Return the numbers without one unit each, for numbers that are made of several numbers."""
        values = left(self)
        return values * self.growth(of) if self.is_least and values is not None else values

    def corrected(self, of: Replicated) -> float:
        """Return the number without the optimism that it has in its own sample."""
        return of.value * self.growth(of) if self.is_least else of.value

    def growth(self, of: Replicated) -> float:
        """Return by how much a minimum over thresholds grows on other trials."""
        return growth_of_least_cost(of.replicates, of.value)

    def most_unseen(self, n_positive: int, n_negative: int, level: float) -> float | None:
        """Return the upper end if the number is 0 and no error was seen; None if no bound is known."""
        return None

    def merits(self, sample: Sampled, best: str) -> Floats | None:
        """Return how good each answer is for the number, higher = better; None if single trials show nothing."""
        return None

    def errors(self, sample: Sampled) -> tuple[Errors, ...]:
        """Return the errors that the number counts; empty if it is not made of errors at a threshold."""
        return ()


class Form(Functional):
    """A number that a tally of scores determines."""

    kind = "scores"
    every_score: ClassVar[bool] = False
    """Whether it depends on every score, not only on those around a threshold."""
    is_summed: ClassVar[bool] = False
    """Whether it is made of one sum over positives and one over negatives."""
    fine_unit_cells: ClassVar[bool] = False
    """Whether replicates by units need many cells as well."""
    by_value: ClassVar[bool] = False
    """Whether the values of the scores matter, so that two systems exchange their scores and not their ranks."""

    @abstractmethod
    def value(self, tally: Tally) -> float:
        """Return the number of a tally; NaN if it is undefined."""

    @abstractmethod
    def replicates(self, drawn: Drawn) -> Floats:
        """Return the number of every replicate."""

    def measure(self, sample: Sampled) -> float:
        """Return the number of a sample."""
        return self.value(sample.tally)

    def beside(self, tally: Tally) -> Form | None:
        """Return a second form whose replicates the interval needs as well."""
        return None

    def linearised(self, tally: Tally) -> Form | None:
        """Return a smooth form with the same influence of each trial, if this one is read at a quantile."""
        return None

    def merits(self, sample: Sampled, best: str) -> Floats | None:
        """Return the share of the other class that each score is ordered correctly against."""
        return sample.placements

    def exchanged(self, positive: Mask, score: Floats) -> float:
        """Return the number after two systems exchanged answers."""
        return self.value(Tally.of_classes(score[positive], score[~positive]))

    # What the engines ask a form before they draw.

    @property
    def single(self) -> tuple[Form, ...]:
        """The forms that it is made of; itself, if of no other."""
        return (self,)

    def place(self, tally: Tally) -> int | None:
        """Return the point of the error curve at which it is read; None if it is read at no single one."""
        return None

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The fixed thresholds at which it is read."""
        return ()

    def points(self, tally: Tally) -> list[int]:
        """Return the points of the error curve at which cells must be cut."""
        return []

    def can_hold(self, cp: Floats, cn: Floats, n1: float, n0: float, deviations: float) -> Mask:
        """Return between which neighbouring points the number of the sample or of a replicate can be determined."""
        return np.zeros(len(cp) - 1, dtype=bool)

    def bound(self, tally: Tally, deviations: float) -> Bound | None:
        """Return the bound that excludes stretches that cannot determine the number; None if there is none."""
        return None

    def expected(self, tally: Tally, deviations: float) -> tuple[int, int] | None:
        """Return the first and last group in which replicates are expected to determine the number.

        None without a range.
        """
        return None

    def on_curve(self, curve: Curve) -> tuple[Floats, Mask] | None:
        """Return the numbers of paired replicates and which are in doubt; None for forms that need every trial."""
        return None

    def passing(self, n_positive: int, n_negative: int) -> Passing | None:
        """Return the object that computes it from scores read in stretches; None for a form that needs few scores."""
        return None


class Located(Form):
    """A form that one place of the error curve determines: the search for this place in all replicates at once."""

    needs_both = True
    by_rank = True

    @abstractmethod
    def open_between(self, cp: Floats, cn: Floats, n1: Number, n0: Number) -> Mask:
        """Return between which neighbouring points (last axis) of a curve the number can be determined."""

    @abstractmethod
    def begin(self, cp: Floats, cn: Floats) -> tuple[Floats, Mask]:
        """Return what the points of curves (replicate × point) show, and between which of them it is still open."""

    @abstractmethod
    def can_be_in(self, found: Floats, s: Stretches, n1: Floats, n0: Floats) -> Mask:
        """Return whether the number can be determined inside stretches, given what was found so far."""

    def note_point(self, found: Floats, replicate: Indices, cp: Floats, cn: Floats, n1: Floats, n0: Floats) -> None:
        """Record a further point of the curves of some replicates."""

    def note_groups(self, found: Floats, s: Stretches, n1: Floats, n0: Floats) -> None:
        """Record stretches of one group of equal scores in which the number can be determined."""

    @abstractmethod
    def note_inside(self, found: Floats, s: Stretches, cp: Floats, cn: Floats, n1: Floats, n0: Floats) -> None:
        """Record every point (stretch × point) inside stretches, the last being their ends."""

    def replicates(self, drawn: Drawn) -> Floats:
        """Return what the search found."""
        return drawn.searched(self)
