"""Forms of decisions, confidences and other columns, which a tally of scores does not determine."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import cast

import numpy as np

from hitmiss.core.rates import Rate
from hitmiss.core.sorting import Array, Floats, Number
from hitmiss.stats.forms.base import DrawnTrials, Functional, Indices, Mask, Sampled

MOST_WEIGHTS = 1 << 20
"""Number of weights of trials that are held at a time."""
MOST_OF_UNITS = 10_000_000
"""The same where units are drawn."""


class OfTrials(Functional):
    """A number that cannot be computed from a tally of scores."""

    @abstractmethod
    def drawn(self, trials: DrawnTrials) -> Floats:
        """Return the number of every replicate."""


@dataclass(frozen=True)
class OfCounts(OfTrials):
    """Any function of the counts of decisions; vectorised over replicates."""

    function: Callable[..., Number]
    kind = "decisions"
    is_spread = True  # percentiles are too narrow where errors are few
    fewest_errors = 1

    def measure(self, sample: Sampled) -> float:
        """Return the number of the counted decisions."""
        return cast(float, self.function(sample.counts))  # of numbers it is a number, of arrays an array

    def of_counts(self, counts: object) -> Floats:
        """Return the number of counts that hold one entry per replicate."""
        return np.asarray(self.function(counts), dtype=np.float64)

    def drawn(self, trials: DrawnTrials) -> Floats:
        """Return the number of every replicate."""
        return self.of_counts(trials.counts())


@dataclass(frozen=True, eq=False)
class OfColumns(OfTrials):
    """A function of arrays (columns of the trials), called again for each replicate.

    `one_by_one`: a weight can only be a number of trials.
    """

    function: Callable[..., float]
    columns: tuple[str, ...]
    settings: Mapping[str, object] = field(default_factory=dict)
    one_by_one: bool = field(default=False, kw_only=True)
    kind = "columns"

    def measure(self, sample: Sampled) -> float:
        """Return the function of the columns of a sample."""
        return self.of_arrays(sample.arrays(self.columns), sample.weight)

    def of_arrays(self, arrays: Mapping[str, Array], weight: Array | None = None) -> float:
        """Return the function of arrays; `weight` says how often each trial counts."""
        weighed = {} if weight is None else {"weight": weight}
        return self.function(**arrays, **weighed, **self.settings)

    def of_draws(self, arrays: Mapping[str, Array], places: Iterable[Indices]) -> Floats:
        """Return the number of the trials at each list of indices."""
        return np.array([self.of_arrays({c: a[d] for c, a in arrays.items()}) for d in places])

    def drawn(self, trials: DrawnTrials) -> Floats:
        """Return the number of every replicate."""
        return trials.rows(self)


@dataclass(frozen=True, eq=False)
class OfConfidences(OfColumns):
    """A metric of confidences; `judged` computes it from `metrics.confidence.Judged`, for many replicates at once."""

    judged: Callable[..., Floats] = field(kw_only=True)
    is_spread = True

    def drawn(self, trials: DrawnTrials) -> Floats:
        """Return the number of every replicate, from how often each confidence was right and wrong."""
        return trials.confidences(lambda found: self.judged(found, **self.settings))


@dataclass(frozen=True, eq=False)
class OfTerms(OfColumns):
    """A sum over trials divided by another; `terms(**columns)` returns what each trial adds to both.

    `is_share`: each trial adds 0 or 1, so two runs can be tested like shares.
    """

    terms: Callable[..., tuple[Floats, Floats]] = field(kw_only=True)
    is_share: bool = field(default=False, kw_only=True)
    is_spread = True  # skewed as sums of positive terms are

    def measure(self, sample: Sampled) -> float:
        """Return the ratio of the sums over a sample, each trial with its weight."""
        if sample.weight is None:
            return super().measure(sample)
        above, below = (math.fsum(term * sample.weight) for term in self.terms(**sample.arrays(self.columns)))
        return Rate(above, below) if self.is_share else above / below if below else math.nan

    def of_draws(self, arrays: Mapping[str, Array], places: Iterable[Indices]) -> Floats:
        """Return the ratio of the sums over the trials at each list of indices."""
        above, below = self.terms(**arrays)
        sums = np.array([(above[d].sum(), below[d].sum()) for d in places])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(sums[:, 0] / sums[:, 1])

    def drawn(self, trials: DrawnTrials) -> Floats:
        """Return the ratio of the sums of every replicate."""
        return trials.ratio(self)

    def shares(self, sample: Sampled) -> tuple[Mask, Mask] | None:
        """Return, for a share of trials, which trials are hits, and which trials it is a share of."""
        if not self.is_share:
            return None
        above, below = self.terms(**sample.arrays(self.columns))
        return above > 0, below > 0

    def merits(self, sample: Sampled, best: str) -> Floats | None:
        """Return what each trial adds to the sum; NaN for trials that do not count."""
        above, below = self.terms(**sample.arrays(self.columns))
        return np.where(below > 0, above if best == "high" else -above, np.nan)


@dataclass(frozen=True, eq=False)
class OfWeights(OfColumns):
    """A function of columns that takes the weights of many replicates at once (replicate × trial)."""

    @abstractmethod
    def of_weights(self, arrays: Mapping[str, Array], weights: Floats) -> Floats:
        """Return the number of every replicate."""

    def of_draws(self, arrays: Mapping[str, Array], places: Iterable[Indices]) -> Floats:
        """Return the number of the trials at each list of indices."""
        return np.concatenate([self.of_weights(arrays, some) for some in self.drawn_weights(arrays, places)])

    def drawn_weights(self, arrays: Mapping[str, Array], places: Iterable[Indices]) -> Iterator[Floats]:
        """Yield how often each trial is drawn (replicate × trial), some replicates at a time."""
        n = len(next(iter(arrays.values())))
        rest, step = iter(places), max(1, MOST_WEIGHTS // max(1, n))
        while drawn := list(islice(rest, step)):
            yield np.stack([np.bincount(d, minlength=n) for d in drawn]).astype(np.float64)

    def of_units(self, arrays: Mapping[str, Array], unit: Indices, weights: Array, weight: Floats | None) -> Floats:
        """Return the number of every replicate, given how often each unit is drawn (replicate × unit).

        `weight` is the sampling weight of each trial, if they have any.
        """
        step = max(1, MOST_OF_UNITS // max(1, len(unit)))
        parts = (weights[i : i + step, unit].astype(np.float64) for i in range(0, len(weights), step))
        return np.concatenate([self.of_weights(arrays, p if weight is None else p * weight) for p in parts])

    def drawn(self, trials: DrawnTrials) -> Floats:
        """Return the number of every replicate, some at a time."""
        return trials.weighed(self)
