"""MinimumCost: the least of  a · miss rate + b · false-alarm rate  over all thresholds (minDCF, min t-DCF)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hitmiss.core.sorting import Array, Floats, Number, let_go
from hitmiss.core.tally import Tally
from hitmiss.stats.unseen import unseen_share

if TYPE_CHECKING:
    from hitmiss.stats.curve import Curve
    from hitmiss.stats.search import Stretches
from hitmiss.stats.forms.at_threshold import AtThreshold
from hitmiss.stats.forms.base import (
    CHUNK,
    Errors,
    Form,
    Indices,
    Left,
    Located,
    Mask,
    Replicated,
    Sampled,
)


@dataclass(frozen=True, eq=False)
class Bound:
    """A bound on the costs between two points, compared with the cost at the sample's best point."""

    tally: Tally
    form: MinimumCost
    best: int
    deviations: float

    def cannot_win(self, low: Indices, high: Indices) -> Mask:
        """Return whether costs are higher even with the misses at `low` and false alarms at `high`, in likely draws."""
        t = self.tally
        best = float(t.positives[self.best]), float(t.negatives[self.best])
        return self.form.cannot_win(
            t.positives[low] - best[0], t.negatives[high] - best[1], t.n_positive, t.n_negative, self.deviations
        )


@dataclass(frozen=True)
class MinimumCost(Located):
    """The minimum over thresholds of (miss · FRR + false_alarm · FAR) / unit, plus a fixed cost.

    `fixed` is in units already: the cost that no threshold avoids, as that of the speaker verifier in a tandem.
    """

    miss: float
    false_alarm: float
    unit: float = 1.0
    fixed: float = 0.0
    fewest_errors, most_of_width = 2, 0.1  # with one error, intervals held the truth 90 % of the time, with none 45 %

    def value(self, tally: Tally) -> float:
        """Return the least cost; NaN without both classes."""
        return self.cost(tally, self.best_point(tally)) if tally.has_both_classes else float("nan")

    def cost(self, tally: Tally, point: int) -> float:
        """Return the cost at one point of the error curve."""
        missed = float(tally.positives[point]) / tally.n_positive
        accepted = (tally.n_negative - float(tally.negatives[point])) / tally.n_negative
        return (self.miss * missed + self.false_alarm * accepted) / self.unit + self.fixed

    def costs(self, cp: Number, cn: Number, n1: Number, n0: Number) -> Number:
        """Return the costs at points that reject these numbers of each class."""
        return (self.miss * (cp / n1) + self.false_alarm * ((n0 - cn) / n0)) / self.unit + self.fixed

    def at_best(self, tally: Tally) -> AtThreshold:
        """Return the cost at the threshold that is best for these trials, as a form with this threshold fixed."""

        def cost(missed: Number, positives: Number, accepted: Number, negatives: Number) -> Number:
            rates = self.miss * (missed / positives) + self.false_alarm * (accepted / negatives)
            return rates / self.unit + self.fixed

        return AtThreshold(tally.threshold_of(self.best_point(tally)), cost)

    @property
    def trivial(self) -> float:
        """The cost of the better trivial system; no least cost is higher."""
        return min(self.miss, self.false_alarm) / self.unit + self.fixed

    def place(self, tally: Tally) -> int:
        """Return the first point of least cost."""
        return self.best_point(tally)

    def best_point(self, tally: Tally) -> int:
        """Return the first point of least cost."""
        if self not in tally.places:
            tally.places[self] = self._best_point(tally)
        return tally.places[self]

    def _best_point(self, tally: Tally) -> int:
        # FAR is 1 − rejected / negatives: without the constant the least place is the same and a pass is saved. Only a lower
        # cost replaces an earlier one, so that of equal costs the first point counts, whatever the chunks are.
        a, b = self.miss / tally.n_positive, self.false_alarm / tally.n_negative
        best, place = np.inf, 0
        for start in range(0, len(tally.positives), CHUNK):
            part = slice(start, start + CHUNK)
            cost = a * tally.positives[part] - b * tally.negatives[part]
            index = int(np.argmin(cost))
            if cost[index] < best:
                best, place = float(cost[index]), start + index
            let_go(tally.positives, tally.negatives)
        return place

    def beside(self, tally: Tally) -> Form | None:
        """Return the cost at the sample's best threshold, which the interval needs as well."""
        return self.at_best(tally)

    def errors(self, sample: Sampled) -> tuple[Errors, ...]:
        """Return the errors at the sample's best threshold."""
        return self.at_best(sample.tally).errors(sample) if sample.tally.has_both_classes else ()

    def for_averages(self, of: Replicated) -> Floats:
        """Return the costs at the best threshold, without the optimism."""
        return of.replicates if of.beside is None else of.beside[1] * self.growth(of)

    def left_for_averages(self, of: Replicated, left: Left[Floats]) -> Floats | None:
        """Return the costs at the best threshold without one unit each, without the optimism."""
        costs = left(self if of.beside is None else of.beside[0])
        return None if costs is None else costs * self.growth(of)

    def corrected(self, of: Replicated) -> float:
        """Return the least cost without the optimism of choosing the threshold."""
        return of.value * self.growth(of)

    def growth(self, of: Replicated) -> float:
        """Return by how much a least cost grows on other trials; 1 if costs at the best threshold were not drawn."""
        return 1.0 if of.beside is None else super().growth(of)

    def most_unseen(self, n_positive: int, n_negative: int, level: float) -> float | None:
        """Return the cost with both unseen shares as errors, or that of the trivial system.

        >>> round(MinimumCost(0.95, 0.5, 0.5).most_unseen(1000, 1000, 0.95), 4)
        0.0107
        """
        missed, accepted = unseen_share(n_positive, level), unseen_share(n_negative, level)
        return min((self.miss * missed + self.false_alarm * accepted) / self.unit + self.fixed, self.trivial)

    def open_between(self, cp: Floats, cn: Floats, n1: Number, n0: Number) -> Mask:
        """Return where the misses of the low end and the false alarms of the high end cost less than the best point."""
        missed, accepted = self.miss * (cp / n1), self.false_alarm * ((n0 - cn) / n0)
        # Misses only rise along the scores and false alarms only fall, so no point inside costs less than this sum.
        return np.asarray(missed[..., :-1] + accepted[..., 1:] < (missed + accepted).min(axis=-1, keepdims=True))

    def begin(self, cp: Floats, cn: Floats) -> tuple[Floats, Mask]:
        """Return the least cost at the cuts, and the cells that could contain a lower one."""
        n1, n0 = cp[:, -1:], cn[:, -1:]
        missed, accepted = self.miss * (cp / n1), self.false_alarm * ((n0 - cn) / n0)
        least = ((missed + accepted) / self.unit + self.fixed).min(axis=1)
        # Strictly: a cell that can only equal the least cost changes nothing.
        return least, (missed[:, :-1] + accepted[:, 1:]) / self.unit + self.fixed < least[:, None]

    def can_be_in(self, found: Floats, s: Stretches, n1: Floats, n0: Floats) -> Mask:
        """Return whether a cost inside could still be lower than the best one known.

        The bound combines the misses of the low end with the false alarms of the high end, which no point inside can
        undercut.
        """
        return np.asarray(self.costs(s.cp, s.cn + s.q, n1, n0) < found[s.replicate])

    def note_point(self, found: Floats, replicate: Indices, cp: Floats, cn: Floats, n1: Floats, n0: Floats) -> None:
        """Keep the cost at the point if it is lower."""
        # A replicate may have several stretches here; plain indexing would keep the last one only.
        np.minimum.at(found, replicate, self.costs(cp, cn, n1, n0))

    def note_inside(self, found: Floats, s: Stretches, cp: Floats, cn: Floats, n1: Floats, n0: Floats) -> None:
        """Keep the least cost of these points."""
        least = np.min(self.costs(cp, cn, n1[:, None], n0[:, None]), axis=1)
        np.minimum.at(found, s.replicate, least)

    def points(self, tally: Tally) -> list[int]:
        """Return the sample's own best point."""
        return [self.best_point(tally)]

    def cannot_win(self, missed: Array, rejected: Array, n1: float, n0: float, deviations: float) -> Mask:
        """Return whether this many more misses and rejected negatives than at the best point cost more.

        This holds for likely draws: within `deviations` standard deviations.
        """
        a, b = self.miss, self.false_alarm
        more, fewer = missed / n1, rejected / n0
        # Two points of one replicate share the trials below both: their difference varies only with the trials between them,
        # far less than either count does.
        spread = np.sqrt(a * a * np.abs(more) / n1 + b * b * np.abs(fewer) / n0)
        return np.asarray(a * more - b * fewer > deviations * spread)

    def can_hold(self, cp: Floats, cn: Floats, n1: float, n0: float, deviations: float) -> Mask:
        """Return where the misses of the low end and false alarms of the high end can cost less than the best edge."""
        best = int(np.argmin(self.miss / n1 * cp - self.false_alarm / n0 * cn))
        return ~self.cannot_win(cp[:-1] - cp[best], cn[1:] - cn[best], n1, n0, deviations)

    def bound(self, tally: Tally, deviations: float) -> Bound | None:
        """See `Bound`."""
        return Bound(tally, self, self.best_point(tally), deviations)

    def on_curve(self, curve: Curve) -> tuple[Floats, Mask] | None:
        """See `Curve.least_cost`."""
        return curve.least_cost(self)
