"""What single trials or units add to an estimate: its variance, skewness and degrees of freedom without each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally

if TYPE_CHECKING:
    from hitmiss.stats.cells import Cells
    from hitmiss.stats.forms.base import Form


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A number without one unit (or block of units) at a time: the jackknife's view of where its error comes from.

    Parameters
    ----------
    groups
        The numbers without one unit each, per group of units that vary on their own: one group, the units of either
        class if every unit holds one class, or the two units that are crossed.
    effective
        The effective number of units of each group.
    apart
        Whether units are drawn within each group; otherwise the sizes of the groups vary too.
    cells
        For crossed units, the numbers without one block of pairs of units each.
    between
        For one group of unequal units, the effective number of units if all variance is between units and if all is
        inside them; what units add shows where in between the truth lies. None: `effective` is known.
    is_pooled
        Whether several units are left out at a time, because they are many: a variance of so few blocks is no better than
        that of replicates.
    """

    groups: tuple[Floats, ...]
    effective: tuple[float, ...]
    apart: bool = True
    cells: Floats | None = None
    between: tuple[float, float] | None = None
    is_pooled: bool = False

    @classmethod
    def mean(cls, several: Sequence[LeftOut]) -> LeftOut:
        """Return that of the mean of several numbers, from the same units."""
        groups = tuple(np.mean(own, axis=0) for own in zip(*(one.groups for one in several), strict=True))
        cells = [one.cells for one in several if one.cells is not None]
        effective = tuple(max(own) for own in zip(*(one.effective for one in several), strict=True))
        return cls(
            groups,
            effective,
            several[0].apart,
            np.mean(cells, axis=0) if cells else None,
            several[0].between,
            several[0].is_pooled,
        )

    def each(self, change: Callable[[Floats], Floats]) -> LeftOut:
        """Return the same with all numbers changed alike."""
        cells = None if self.cells is None else change(self.cells)
        return replace(self, groups=tuple(map(change, self.groups)), cells=cells)

    @cached_property
    def _shares(self) -> list[float]:
        """The part of the variance that comes from each group."""
        if self.apart:
            return [_jackknife_variance(values, values) for values in self.groups]
        every = np.concatenate(self.groups)
        return [_jackknife_variance(values, every) for values in self.groups]

    @property
    def variance(self) -> float:
        """The variance of the number; of crossed units, what both count is counted once (Cameron et al. 2011)."""
        return sum(self._shares) - self._inside

    @cached_property
    def _inside(self) -> float:
        """The variance inside pairs of crossed units, which both units count; neither can hold more of it than its own."""
        return 0.0 if self.cells is None else min(_jackknife_variance(self.cells, self.cells), *self._shares)

    @property
    def narrowing(self) -> float:
        """By how much the replicates of crossed units vary too much: as a factor of their deviation, at most 1.

        Products of the weights of two units count the variance inside the pairs three times (Owen 2007).
        """
        return math.sqrt(self.variance / (self.variance + 2.0 * self._inside)) if self.variance > 0.0 else 1.0

    @property
    def degrees(self) -> float:
        """The degrees of freedom of the variance (Satterthwaite 1946): each group counts by its share.

        For unequal units of one group they lie halfway (as a product) between what is known beforehand and what units
        show: 3 (Σ d²)² / Σ d⁴ over what they add, d, which is their number if that is normal, within the two ends that
        their sizes allow.
        """
        if self.between is not None and len(self.groups) == 1 and len(self.groups[0]) > 1:
            gained = self.groups[0] - self.groups[0].mean()
            largest = float(np.max(np.abs(gained)))
            scaled = gained / largest if largest > 0.0 else gained
            squares = scaled * scaled  # a power of 4 takes numpy 30 times as long
            fourths = float(np.sum(squares * squares))
            seen = 3.0 * float(np.sum(squares)) ** 2 / fourths if fourths > 0.0 else 0.0
            return math.sqrt(min(max(seen, self.between[0]), self.between[1]) * min(self.effective)) - 1.0
        total = sum(self._shares)
        lost = 1.0 if self.apart else 0.0
        # an effective number close to 1 would divide by nearly 0 and let one group decide alone, hence the floor
        per_group = [
            own * own / max(n - lost, 0.5) for own, n in zip(self._shares, self.effective, strict=True) if own > 0.0
        ]
        if len(self.groups) == 1 or not total > 0.0 or not sum(per_group) > 0.0:
            return min(self.effective) - 1.0
        return total * total / sum(per_group) - (1.0 - lost)

    @property
    def acceleration(self) -> float:
        """The skewness of what single units add: above 0 if some raise the number far more than any lowers it."""
        every = np.concatenate(self.groups)
        gained = [(own.mean() if self.apart else every.mean()) - own for own in self.groups if len(own)]
        return _acceleration(np.concatenate(gained), np.ones(len(every))) if gained else 0.0


def _jackknife_variance(values: Floats, every: Floats) -> float:
    """Return what these units add to the jackknife variance of all of them."""
    n = len(every)
    return float(np.sum((values - every.mean()) ** 2)) * (n - 1.0) / n if n > 1 else 0.0


def acceleration_of_trials(form: Form, cells: Cells) -> float:
    """Return the acceleration for trials stratified by class, by the jackknife over cells of equal influence.

    a = Σ_c Σ_i l³ / n_c³ / (6 · (Σ_c Σ_i l² / n_c²)^1.5), l the influence of a trial of class c.
    """
    coarse = cells.coarse()
    whole = form.value(coarse)
    influences, weights = [], []
    for counts, n, positive in (
        (cells.positives, coarse.n_positive, True),
        (cells.negatives, coarse.n_negative, False),
    ):
        if n:  # a slice may hold one class only
            held = np.flatnonzero(counts)
            without = np.array([form.value(_without(coarse, int(k), positive)) for k in held])
            with np.errstate(invalid="ignore", over="ignore"):
                influences.append((whole - without) * ((n - 1) / n))
            weights.append(counts[held])
    return _acceleration(np.concatenate(influences), np.concatenate(weights)) if influences else 0.0


def _acceleration(influence: Floats, weight: Floats) -> float:
    """Return Σ w l³ / (6 (Σ w l²)^1.5). Influences are scaled first, because the cube of a large one would overflow.

    An influence that is not finite carries no information about the skewness and is left out.
    """
    finite = np.isfinite(influence)
    influence, weight = influence[finite], weight[finite]
    largest = float(np.max(np.abs(influence), initial=0.0))
    if not largest:
        return 0.0
    scaled = influence / largest
    cubes, squares = (float(np.sum(weight * scaled**power)) for power in (3, 2))
    return cubes / (6.0 * math.pow(squares, 1.5))


def _without(tally: Tally, group: int, positive: bool) -> Tally:
    """Return the tally without one trial of a class in a group."""
    p, q = tally.positives.astype(np.float64), tally.negatives.astype(np.float64)
    # counts are cumulative: one trial fewer lowers every count after its group
    (p if positive else q)[group + 1 :] -= 1.0
    return Tally(tally.score, p, q)


def acceleration_of_units(values: Floats) -> float:
    """Return the acceleration from the numbers without one unit (or block) each.

    It is Σ d³ / (6 (Σ d²)^1.5), d = mean − value.
    """
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0
    with np.errstate(over="ignore"):
        d = values.mean() - values
    return _acceleration(d, np.ones(len(d)))
