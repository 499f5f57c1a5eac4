"""OfThreeClasses: numbers of the error rates of targets, nontargets and spoofs along one score (a-DCF, SASV-EER).

Trials are sorted once and cut into cells. The counts of each class per cell give the error rates at the cuts of all
replicates; single trials are looked at only in the cells that can hold the minimum or the crossing of a replicate.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError
from hitmiss.core.sorting import Array, Floats
from hitmiss.stats.forms.base import Indices, Mask
from hitmiss.stats.forms.trials import MOST_OF_UNITS, MOST_WEIGHTS, OfWeights

CLASSES: Final = ("target", "nontarget", "spoof")
CELLS: Final = 512
"""Number of cells into which the distinct scores are cut."""
Rejected = tuple[Floats, Floats, Floats]
"""The weight of each class that is rejected at points (replicate × point), from none to all."""
Inside = Callable[[Indices, Indices], Floats]
"""Returns the weights of trials (replicate × trial), given the replicates and the trials by their place."""


def class_codes(kind: Array) -> NDArray[np.int8]:
    """Return the class of each trial as its place in `CLASSES`."""
    codes = np.full(len(kind), -1, dtype=np.int8)
    for code, name in enumerate(CLASSES):
        codes[np.asarray(kind, dtype=object) == name] = code
    if len(codes) and codes.min() < 0:
        wrong = kind[int(np.argmin(codes))]
        raise DataError.of("bad-asv-label/word", word=str(wrong))
    return codes


@dataclass(frozen=True, eq=False)
class OrderedTrials:
    """Trials of three classes in ascending order of their scores, cut into cells of distinct scores."""

    order: Indices
    codes: NDArray[np.int8]
    """The class of each trial, in this order."""
    ends: Indices
    """Where the trials of each distinct score end, after a 0."""
    cuts: Indices
    """Which of these ends are cuts: cell i holds the scores from cut i to cut i + 1."""

    @classmethod
    def of(cls, kind: Array, score: Array) -> OrderedTrials:
        """Sort trials; NaN scores are refused."""
        values = np.asarray(score, dtype=np.float64)
        if np.isnan(values).any():
            raise DataError.of("nan-score", n=int(np.isnan(values).sum()), total=len(values))
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, len(ordered))
        ends = np.append(0, ends) if len(ordered) else ends
        cuts = np.unique(np.linspace(0, len(ends) - 1, CELLS + 1).astype(np.intp))
        return cls(order, class_codes(kind)[order], ends, cuts)

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self.cuts) - 1

    def cells_of_trials(self) -> Indices:
        """Return for each trial, in the order that it was given in, its class and cell as one number."""
        sizes = np.diff(self.ends[self.cuts])
        found = np.empty(len(self.order), dtype=np.intp)
        found[self.order] = self.codes.astype(np.intp) * self.n_cells + np.repeat(np.arange(self.n_cells), sizes)
        return found

    def at_cuts(self, counts: Floats) -> Rejected:
        """Return what is rejected at the cuts, given the weight per class and cell (replicate × class and cell)."""
        below = np.zeros((3, len(counts), self.n_cells + 1))
        np.cumsum(counts.reshape(len(counts), 3, self.n_cells).swapaxes(0, 1), axis=2, out=below[:, :, 1:])
        return below[0], below[1], below[2]

    def inside(
        self, cell: int, rows: Indices, at_cuts: Rejected, weights: Inside
    ) -> Iterator[tuple[Indices, Rejected]]:
        """Yield replicates with what is rejected at every point of a cell, from its first cut to its last."""
        low, high = self.cuts[cell], self.cuts[cell + 1]
        first, last = self.ends[low], self.ends[high]
        trials, codes, places = self.order[first:last], self.codes[first:last], self.ends[low : high + 1] - first
        step = max(1, MOST_WEIGHTS // max(1, len(trials)))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            drawn = weights(some, trials)
            below = np.zeros((len(some), len(trials) + 1))
            found = []
            for code, cut in enumerate(at_cuts):
                np.cumsum(drawn * (codes == code), axis=1, out=below[:, 1:])
                found.append(cut[some, cell][:, None] + below[:, places])
            yield some, (found[0], found[1], found[2])


@dataclass(frozen=True, eq=False)
class OfThreeClasses(OfWeights):
    """A number of the error rates of three classes at the thresholds of one score, for many replicates at once.

    `needs` are the classes without which it is undefined.
    """

    needs: tuple[str, ...] = field(default=CLASSES, kw_only=True)

    @abstractmethod
    def begin(self, rejected: Rejected) -> tuple[Floats, Mask]:
        """Return what the cuts show, and which cells must be looked at (replicate × cell)."""

    @abstractmethod
    def note(self, found: Floats, rows: Indices, rejected: Rejected, totals: Rejected) -> None:
        """Record what all points of a cell show for some replicates."""

    def of_weights(self, arrays: Mapping[str, Array], weights: Floats) -> Floats:
        """Return the number of every replicate; NaN for one without trials of a needed class."""
        return self._of_trials(self._ordered(arrays), weights)

    def of_draws(self, arrays: Mapping[str, Array], places: Iterable[Indices]) -> Floats:
        """Return the number of the trials at each list of indices."""
        trials = self._ordered(arrays)
        return np.concatenate([self._of_trials(trials, some) for some in self.drawn_weights(arrays, places)])

    def of_units(self, arrays: Mapping[str, Array], unit: Indices, weights: Array, weight: Floats | None) -> Floats:
        """Return the number of every replicate, given how often each unit is drawn."""
        trials = self._ordered(arrays)
        code, size = trials.cells_of_trials(), 3 * trials.n_cells
        if weights.shape[1] * size > MOST_OF_UNITS:
            return super().of_units(arrays, unit, weights, weight)
        table = np.bincount(unit * size + code, weight, weights.shape[1] * size).reshape(-1, size)
        counts = weights.astype(np.float64) @ table.astype(np.float64)

        def inside(rows: Indices, own: Indices) -> Floats:
            drawn = weights[rows[:, None], unit[own]].astype(np.float64)
            return drawn if weight is None else drawn * weight[own]

        return self._found(trials, counts, inside)

    def _ordered(self, arrays: Mapping[str, Array]) -> OrderedTrials:
        kind, score = (arrays[name] for name in self.columns)
        return OrderedTrials.of(kind, score)

    def _of_trials(self, trials: OrderedTrials, weights: Floats) -> Floats:
        code, size = trials.cells_of_trials(), 3 * trials.n_cells
        counts = np.stack([np.bincount(code, own, size) for own in weights]).astype(np.float64)
        return self._found(trials, counts, lambda rows, own: weights[rows[:, None], own])

    def _found(self, trials: OrderedTrials, counts: Floats, weights: Inside) -> Floats:
        """Return the number of every replicate, from its counts per class and cell."""
        at_cuts = trials.at_cuts(counts)
        totals = at_cuts[0][:, -1:], at_cuts[1][:, -1:], at_cuts[2][:, -1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            found, is_open = self.begin(at_cuts)
            for cell in np.flatnonzero(is_open.any(axis=0) & (np.diff(trials.cuts) > 1)).tolist():
                rows = np.flatnonzero(is_open[:, cell])
                for some, rejected in trials.inside(cell, rows, at_cuts, weights):
                    own = totals[0][some], totals[1][some], totals[2][some]
                    self.note(found, some, rejected, own)
        missing = [totals[CLASSES.index(name)][:, 0] <= 0 for name in self.needs]
        return np.where(np.logical_or.reduce(missing), np.nan, found)


@dataclass(frozen=True, eq=False)
class LeastCost(OfThreeClasses):
    """The least of  miss · P_miss + nontarget · P_fa + spoof · P_fa,spoof  over thresholds, in units of `unit`."""

    miss: float = field(kw_only=True)
    nontarget: float = field(kw_only=True)
    spoof: float = field(kw_only=True)
    unit: float = field(kw_only=True)
    is_least: ClassVar[bool] = True

    def begin(self, rejected: Rejected) -> tuple[Floats, Mask]:
        """Return the least cost at the cuts; misses at the first cut and false alarms at the last bound a cell."""
        missed, accepted = self._parts(rejected, (rejected[0][:, -1:], rejected[1][:, -1:], rejected[2][:, -1:]))
        least = (missed + accepted).min(axis=1)
        return least / self.unit, missed[:, :-1] + accepted[:, 1:] < least[:, None]

    def note(self, found: Floats, rows: Indices, rejected: Rejected, totals: Rejected) -> None:
        """Keep a lower cost."""
        missed, accepted = self._parts(rejected, totals)
        found[rows] = np.minimum(found[rows], (missed + accepted).min(axis=1) / self.unit)

    def _parts(self, rejected: Rejected, totals: Rejected) -> tuple[Floats, Floats]:
        missed, nontarget, spoof = (own / n for own, n in zip(rejected, totals, strict=True))
        return self.miss * missed, self.nontarget * (1.0 - nontarget) + self.spoof * (1.0 - spoof)


@dataclass(frozen=True, eq=False)
class EqualErrors(OfThreeClasses):
    """Where the miss rate of targets meets the false-alarm rate of other classes, on straight lines between points."""

    against: tuple[int, ...] = field(kw_only=True)
    """The classes that count as false alarms, by their place in `CLASSES`, pooled as they come."""

    def begin(self, rejected: Rejected) -> tuple[Floats, Mask]:
        """Return the crossing of the lines between cuts, and the cell that it is in."""
        miss, accepted = self._rates(rejected, (rejected[0][:, -1:], rejected[1][:, -1:], rejected[2][:, -1:]))
        after = np.argmax(miss >= accepted, axis=1)
        is_open = np.zeros((len(miss), miss.shape[1] - 1), dtype=bool)
        rows = np.flatnonzero(after > 0)
        is_open[rows, after[rows] - 1] = True
        return np.where(np.isnan(accepted[:, -1]), np.nan, _crossing(miss, accepted)), is_open

    def note(self, found: Floats, rows: Indices, rejected: Rejected, totals: Rejected) -> None:
        """Read the crossing between the points of its cell."""
        found[rows] = _crossing(*self._rates(rejected, totals))

    def _rates(self, rejected: Rejected, totals: Rejected) -> tuple[Floats, Floats]:
        others, of = (np.sum([own[k] for k in self.against], axis=0) for own in (rejected, totals))
        return rejected[0] / totals[0], np.asarray(1.0 - others / of)


def _crossing(miss: Floats, accepted: Floats) -> Floats:
    """Return where the miss rate meets the false-alarm rate, on straight lines between points (replicate × point)."""
    gap = miss - accepted
    after = np.argmax(gap >= 0, axis=1)
    rows, before = np.arange(len(gap)), np.maximum(after - 1, 0)
    low, high = gap[rows, before], gap[rows, after]
    part = np.where(high > low, -low / (high - low), 0.0)
    return np.asarray(miss[rows, before] + part * (miss[rows, after] - miss[rows, before]))
