"""Replicates of a sample's trials, for forms that cannot be computed from a tally of scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Array, Floats
from hitmiss.engine.columns import Sample
from hitmiss.metrics.counts import Counts
from hitmiss.stats.forms.trials import OfColumns, OfTerms, OfWeights
from hitmiss.stats.judged import Judged
from hitmiss.stats.random import Random
from hitmiss.stats.replicates import count_replicates, trial_draws
from hitmiss.stats.units import weighted_totals

if TYPE_CHECKING:
    from hitmiss.engine.draws import Draws

MOST_CELLS = 10_000_000
"""Number of counts that are held at a time."""


@dataclass(frozen=True, eq=False)
class SampleDraws:
    """Replicates of a sample's trials, for forms that cannot be computed from a tally of scores."""

    draws: Draws
    sample: Sample
    rng: Random
    by_class: bool = True

    def counts(self) -> Counts[Floats]:
        """Return the counted decisions of every replicate."""
        draws, sample = self.draws, self.sample
        if draws.weights is None or draws.unit is None:
            return Counts(*count_replicates(sample.outcomes, draws.plan.bootstrap, self.rng, self.by_class).T)
        return self._unit_counts

    @cached_property
    def _unit_counts(self) -> Counts[Floats]:
        """The counted decisions under the unit weights; these are drawn once, so all numbers of a sample share them."""
        draws, sample = self.draws, self.sample
        assert draws.weights is not None and draws.unit is not None
        return Counts(*weighted_totals(draws.weights, sample.unit_outcomes(draws.unit, draws.n_units)).T)

    def confidences(self, function: Callable[[Judged], Array]) -> Floats:
        """Compute a function of how often each confidence was right and wrong, some replicates at a time."""
        confidence, code = self.sample.judged
        counted = self._cells(code, 1 + 2 * len(confidence))
        return np.concatenate([np.asarray(function(self.sample.judge(counts)), np.float64) for counts in counted])

    def _cells(self, code: NDArray[np.int64], cells: int) -> Iterator[Floats]:
        """Yield how often trials of each code are drawn (replicate × code), some replicates at a time."""
        draws, sample, step = self.draws, self.sample, max(1, MOST_CELLS // cells)
        if draws.weights is None or draws.unit is None:
            for start in range(0, draws.plan.bootstrap, step):
                size = min(step, draws.plan.bootstrap - start)
                yield drawn_cells(code, cells, sample.positive, size, self.rng, self.by_class)
            return
        unit = draws.unit[sample.rows]
        parts = (draws.weights[start : start + step] for start in range(0, len(draws.weights), step))
        if draws.n_units * cells > MOST_CELLS:  # a count per unit and code would not fit
            for part in parts:
                yield np.stack([np.bincount(code, weights=self._weighed(w[unit]), minlength=cells) for w in part])
            return
        held = np.bincount(unit * cells + code, sample.weight, draws.n_units * cells).reshape(draws.n_units, cells)
        yield from (weighted_totals(part, held) for part in parts)

    def ratio(self, form: OfTerms) -> Floats:
        """Return the ratio of two sums over the drawn trials."""
        draws = self.draws
        arrays, order = self._arrays(form)
        if draws.weights is None or draws.unit is None:
            return form.of_draws(arrays, self._places(order))
        unit = draws.unit[self.sample.rows[order]]
        terms = [self._weighed(t, order) for t in form.terms(**arrays)]
        table = np.stack([np.bincount(unit, weights=t, minlength=draws.n_units) for t in terms], axis=1)
        sums = weighted_totals(draws.weights, table)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(sums[:, 0] / sums[:, 1])

    def rows(self, form: OfColumns) -> Floats:
        """Compute a function of columns for each replicate."""
        draws = self.draws
        arrays, order = self._arrays(form)
        if draws.weights is None or draws.unit is None:
            return form.of_draws(arrays, self._places(order))
        unit = draws.unit[self.sample.rows[order]]
        return np.array([form.of_arrays(arrays, self._weighed(w[unit], order)) for w in draws.weights])

    def weighed(self, form: OfWeights) -> Floats:
        """Compute a function of columns and of the weights of many replicates."""
        draws, sample = self.draws, self.sample
        arrays, order = self._arrays(form)
        if draws.weights is None or draws.unit is None:
            return form.of_draws(arrays, self._places(order))
        weight = None if sample.weight is None else sample.weight[order]
        return form.of_units(arrays, draws.unit[sample.rows[order]], draws.weights, weight)

    def _weighed(self, each: Array, order: NDArray[np.int64] | None = None) -> Array:
        """Return numbers of the sample's trials (last axis, in the order given) times their sampling weights."""
        weight = self.sample.weight
        if weight is None:
            return each
        return each * (weight if order is None else weight[order])

    def _arrays(self, form: OfColumns) -> tuple[dict[str, Array], NDArray[np.int64]]:
        """Return the columns of a form in an order that does not depend on that of the rows, and the order."""
        arrays = self.sample.arrays(form.columns)
        order = _settled(arrays)
        return {name: array[order] for name, array in arrays.items()}, order

    def _places(self, order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        return trial_draws(self.sample.positive[order], self.draws.plan.bootstrap, self.rng, self.by_class)


def drawn_cells(
    code: NDArray[np.int64],
    cells: int,
    positive: NDArray[np.bool_],
    replicates: int,
    rng: Random,
    by_class: bool,
) -> Floats:
    """Return how often trials of each code are drawn (replicate × code), within each class or from all trials."""
    drawn = np.zeros((replicates, cells))
    for side in (positive, ~positive) if by_class else (np.ones_like(positive),):
        have = np.bincount(code[side], minlength=cells)
        if have.sum():
            drawn += rng.multinomial(int(have.sum()), have / have.sum(), size=replicates)
    return drawn


def _settled(arrays: Mapping[str, Array]) -> NDArray[np.int64]:
    """Return an order of trials that depends on their values alone, so that the order of rows changes no draw."""
    keys = [column for array in arrays.values() for column in array.reshape(len(array), -1).T]
    return np.lexsort([key.astype(str) if key.dtype == object else key for key in keys])
