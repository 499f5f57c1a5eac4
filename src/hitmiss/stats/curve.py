"""The error curve of one system in many replicates, known at the ends of small pieces and, where needed, inside them.

This is the part of the paired bootstrap (see `paired_replicates`) that concerns one system: pieces of scores,
cumulative counts at their ends, and the numbers read from them, each with the replicates in which it is not certain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Array, Floats
from hitmiss.stats.counts import PACK, Counts
from hitmiss.stats.forms.crossing import Crossing
from hitmiss.stats.forms.least_cost import MinimumCost
from hitmiss.stats.windows import Indices, Mask, Windows

Packed = NDArray[np.uint16]


# Both classes share one 16-bit number: positives in the low byte, negatives in the high byte. So one sum counts both.
UNPACK: tuple[Callable[[Packed], Array], ...] = (lambda counts: counts & 255, lambda counts: counts >> 8)


@dataclass(frozen=True, eq=False)
class Draw:
    """Some replicates: counts of the trials drawn one by one, and of the categories that all other trials belong to.

    `packed` (trial × replicate) holds how often a positive was drawn, or 256 times that for a negative, and a last row
    of 0; `others` holds the counts of positives and of negatives (replicate × category), and `sizes` the class sizes.
    """

    packed: Packed
    others: list[Counts]
    sizes: tuple[Counts, Counts]

    @property
    def is_even(self) -> bool:
        """Whether all replicates have the same class sizes."""
        return bool((self.sizes[0] == self.sizes[0][:1]).all())


@dataclass(frozen=True, eq=False)
class Axis:
    """One system's scores cut into pieces, from low to high: closed stretches, and pieces of a few drawn trials each.

    `rows` lists the drawn trials of each piece in packs of 16 (padded); `inside` lists the trials of a small piece in
    order, and `ends` says whether a group of equal scores ends there.
    """

    windows: Windows
    rows: Indices
    first_pack: Indices
    inside: Indices
    ends: Mask
    certain: Mask
    small: Mask
    first_piece: Indices
    category: Indices

    @classmethod
    def of(cls, windows: Windows, score: Floats, category_stretch: Indices) -> Axis:
        """Arrange the drawn trials (given their scores) along this system's scores."""
        n = len(score)
        order = np.argsort(score, kind="stable")
        values = score[order]
        stretch = windows.stretch_of(values)
        new_group = np.append(True, values[1:] != values[:-1])[:n]
        starts = _piece_starts(new_group, stretch, windows.is_open)
        per_stretch = np.where(windows.is_open, np.bincount(stretch[starts], minlength=len(windows.is_open)), 1)
        first_piece = np.cumsum(per_stretch) - per_stretch
        local = np.cumsum(starts) - 1
        begins = np.searchsorted(stretch, np.arange(len(per_stretch)))  # first drawn trial of each stretch
        piece = first_piece[stretch] + local - local[begins[stretch]] if n else stretch
        size = np.bincount(piece, minlength=int(per_stretch.sum()))
        offset = np.arange(n) - (np.cumsum(size) - size)[piece]
        packs = np.maximum(-(-size // PACK), 1)
        first_pack = np.append(0, np.cumsum(packs))
        rows = np.full(first_pack[-1] * PACK, n, dtype=np.intp)
        rows[first_pack[piece] * PACK + offset] = order
        groups = np.bincount(piece[new_group], minlength=len(size))
        closed = first_piece[~windows.is_open]
        groups[closed] = np.diff(windows.cuts)[~windows.is_open]
        small = groups > 1
        small[closed] = False
        width = PACK * int(packs[small].max(initial=1))
        inside = np.full((len(size), width), n, dtype=np.intp)
        ends = np.zeros((len(size), width), dtype=bool)
        fits = small[piece]
        inside[piece[fits], offset[fits]] = order[fits]
        ends[piece[fits], offset[fits]] = np.append(new_group[1:], True)[:n][fits]
        return cls(
            windows, rows, first_pack, inside, ends, groups == 1, small, first_piece, first_piece[category_stretch]
        )

    def curve(self, draw: Draw) -> Curve:
        """Return the cumulative counts of the replicates at the ends of the pieces."""
        replicates = draw.packed.shape[1]
        # Summing 16 trials at a time in 16-bit numbers is much less work than widening every count first, and a byte
        # practically never overflows (see `PACK`).
        packs = draw.packed.take(self.rows, axis=0).reshape(-1, PACK, replicates).sum(axis=1, dtype=np.uint16)
        first = packs.take(self.first_pack[:-1], axis=0)
        wide = np.flatnonzero(np.diff(self.first_pack) > 1)
        counts = []
        for unpack, others in zip(UNPACK, draw.others, strict=True):
            each = unpack(first).astype(np.float64)
            for k in wide:
                each[k] = unpack(packs[self.first_pack[k] : self.first_pack[k + 1]]).sum(axis=0)
            for k in np.unique(self.category):
                each[k] += others[:, self.category == k].sum(axis=1)
            counts.append(_from_zero(each))
        return Curve(self, draw.packed, *counts)


def _piece_starts(new_group: Mask, stretch: Indices, is_open: Mask) -> Mask:
    """Return where pieces begin: at every stretch, and inside open ones after about 16 trials and around big groups."""
    n = len(stretch)
    begins = np.append(True, stretch[1:] != stretch[:-1])[:n]
    group = np.flatnonzero(new_group | begins)
    size = np.diff(np.append(group, n))
    base = np.maximum.accumulate(np.where(begins, np.arange(n), 0))[group]
    bin_ = (group - base) // PACK
    big = size > PACK
    apart = np.append(True, (bin_[1:] != bin_[:-1]) | big[1:] | big[:-1])[: len(group)]
    starts = begins.copy()
    starts[group] |= apart & is_open[stretch[group]]
    return starts


def _from_zero(counts: Floats) -> Floats:
    """Return cumulative counts, replicate × (piece + 1)."""
    out = np.zeros((counts.shape[1], counts.shape[0] + 1))
    np.cumsum(counts.T, axis=1, out=out[:, 1:])
    return out


@dataclass(frozen=True, eq=False)
class Curve:
    """The error curves of some replicates, known at the ends of the pieces."""

    axis: Axis
    packed: Packed
    cp: Floats
    cn: Floats

    @property
    def n1(self) -> float:
        """The number of positives in any replicate."""
        return float(self.cp[0, -1])

    @property
    def n0(self) -> float:
        """The number of negatives in any replicate."""
        return float(self.cn[0, -1])

    def look_inside(self, replicate: Indices, piece: Indices) -> tuple[Floats, Floats, Mask]:
        """Return the cumulative counts after each trial of small pieces, and which of them are points of the curve."""
        drawn = self.packed[self.axis.inside[piece], replicate[:, None]]
        cp, cn = (np.cumsum(unpack(drawn), axis=1, dtype=np.float64) for unpack in UNPACK)
        return self.cp[replicate, piece][:, None] + cp, self.cn[replicate, piece][:, None] + cn, self.axis.ends[piece]

    def at(self, threshold: float) -> tuple[Floats, Floats]:
        """Return the positives and negatives below a fixed threshold, which is the end of a stretch."""
        axis = self.axis
        point = axis.windows.tally.point_at(threshold)
        k = int(np.append(axis.first_piece, len(axis.certain))[np.searchsorted(axis.windows.cuts, point)])
        return self.cp[:, k], self.cn[:, k]

    def least_cost(self, form: MinimumCost) -> tuple[Floats, Mask]:
        """Return the least cost; it is in doubt if a closed stretch could hold a lower one."""
        a, b = form.miss / self.n1, form.false_alarm / self.n0
        missed, accepted = a * self.cp, b * (self.n0 - self.cn)
        least = (missed + accepted).min(axis=1)
        # Inside a piece, misses are at least those at its start and false alarms at least those at its end. So this is
        # a lower bound of every cost in the piece, and only pieces whose bound is below the best cost must be examined.
        bound = missed[:, :-1] + accepted[:, 1:]
        replicate, piece = np.nonzero((bound < least[:, None]) & ~self.axis.certain)
        small = self.axis.small[piece]
        cp, cn, is_point = self.look_inside(replicate[small], piece[small])
        cost = np.where(is_point, a * cp + b * (self.n0 - cn), np.inf)
        np.minimum.at(least, replicate[small], cost.min(axis=1))
        doubtful = np.zeros(len(least), dtype=bool)
        doubtful[replicate[~small & (bound[replicate, piece] < least[replicate])]] = True
        return least / form.unit + form.fixed, doubtful

    def at_crossing(self, form: Crossing) -> tuple[Floats, Mask]:
        """Return the number at the crossing; it is in doubt if the crossing lies in a closed stretch."""
        n1, n0, zero = self.n1, self.n0, np.zeros(len(self.cp))
        values = form.at_ends(n1, n0, zero)
        crossing = np.flatnonzero(~form.past(zero, zero, n1, n0) & form.past(zero + n1, zero + n0, n1, n0))
        piece = self._crossing_piece(form, crossing)
        left, right = (
            (self.cp[crossing, piece], self.cn[crossing, piece]),
            (self.cp[crossing, piece + 1], self.cn[crossing, piece + 1]),
        )
        values[crossing] = form.read(*left, right[0] - left[0], right[1] - left[1], n1, n0)
        small = self.axis.small[piece]
        values[crossing[small]] = self._crossing_inside(form, crossing[small], piece[small])
        doubtful = np.zeros(len(values), dtype=bool)
        doubtful[crossing] = ~small & ~self.axis.certain[piece]
        return values, doubtful

    def _crossing_piece(self, form: Crossing, replicate: Indices) -> Indices:
        """Return the piece at whose end the condition first holds, by bisection."""
        low, high = np.zeros(len(replicate), dtype=np.intp), np.full(len(replicate), self.cp.shape[1] - 1)
        while (high - low > 1).any():
            middle = (low + high) // 2
            passed = form.passed(self.cp[replicate, middle], self.cn[replicate, middle], self.n1, self.n0)
            low, high = np.where(passed, low, middle), np.where(passed, middle, high)
        return low

    def _crossing_inside(self, form: Crossing, replicate: Indices, piece: Indices) -> Floats:
        """Read the crossing inside small pieces, at the first group of equal scores after which the condition holds."""
        cp, cn, is_point = self.look_inside(replicate, piece)
        passed = form.past(cp, cn, self.n1, self.n0) & is_point
        rows, after = np.arange(len(replicate)), np.argmax(passed, axis=1)
        earlier = is_point & (np.arange(is_point.shape[1]) < after[:, None])
        last = is_point.shape[1] - 1 - np.argmax(earlier[:, ::-1], axis=1)
        any_ = earlier.any(axis=1)
        left_p = np.where(any_, cp[rows, last], self.cp[replicate, piece])
        left_n = np.where(any_, cn[rows, last], self.cn[replicate, piece])
        inside = (cp[rows, after] - left_p, cn[rows, after] - left_n)
        return np.asarray(form.read(left_p, left_n, *inside, self.n1, self.n0))
