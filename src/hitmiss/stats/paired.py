"""Two systems on the same resampled trials: paired replicates, and what a difference shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hitmiss.core import progress
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally
from hitmiss.stats.bootstrap import PACK, Counts, Random, class_sizes, uniform_counts
from hitmiss.stats.forms import Bound, Crossing, Form, MinimumCost, Summed

# ----------------------------------------------------------------------
# Which stretches of scores must be examined trial by trial in a paired bootstrap, and for which counts are enough.
#
# This choice is a guess from the sample. It only decides how much is drawn: every replicate is checked afterwards.

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

CELLS = 4096
"""Number of cells of the grid on which stretches are chosen."""
DEVIATIONS = 4.5
"""How many standard deviations replicates are expected to stay within; the few others are computed by brute force."""
BIG_GROUP = 2048
"""A group of equal scores with more trials than this is counted as a whole, because no threshold lies inside it."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Stretch k holds the distinct scores cuts[k] .. cuts[k+1] − 1; trials in open stretches are drawn one by one."""

    tally: Tally
    cuts: Indices
    is_open: Mask

    def stretch_of(self, score: Floats) -> Indices:
        """Return the stretch that contains each score."""
        return np.searchsorted(self.tally.score[self.cuts[1:-1]], score, side="right")


def choose_windows(tally: Tally, forms: Sequence[Form], even: int = 1) -> Windows:
    """Open the stretches where a crossing or a least cost can lie; elsewhere make blocks as wide as the bounds allow.

    A block holds at most about 1/`even` of the trials.
    """
    bounds = [bound for f in forms if (bound := f.bound(tally, DEVIATIONS)) is not None]
    fixed = np.array([tally.point_at(t) for f in forms for t in f.thresholds], dtype=np.intp)
    shares = np.arange(1, even) / even * (float(tally.n_positive) + float(tally.n_negative))
    fixed = np.append(fixed, np.searchsorted(tally.positives + tally.negatives, shares))
    groups = len(tally.score)
    # Fixed thresholds must be ends of stretches: there the counts of every replicate are known without opening any.
    grid = np.unique(np.concatenate([np.linspace(0, groups, min(groups, CELLS) + 1).astype(np.intp), fixed]))
    low, high = grid[:-1], grid[1:]
    closed = _all_hold(bounds, low, high)
    for form in forms:
        groups_of = form.expected(tally, DEVIATIONS)
        if groups_of is not None:
            closed &= (high <= groups_of[0]) | (low > groups_of[1])
    return _with_big_groups(tally, _merged(tally, bounds, grid, closed, fixed))


def _all_hold(bounds: Sequence[Bound], low: Indices, high: Indices) -> Mask:
    hold = np.ones(len(high), dtype=bool)
    for bound in bounds:
        hold &= bound.cannot_win(low, high)
    return hold


def _merged(tally: Tally, bounds: Sequence[Bound], grid: Indices, closed: Mask, fixed: Indices) -> Windows:
    """Merge neighbouring open cells into one stretch, and neighbouring closed cells into as few blocks as possible."""
    cuts, is_open = [0], []
    stops = np.flatnonzero(np.append((closed[1:] != closed[:-1]) | np.isin(grid[1:-1], fixed), True)) + 1
    start = 0
    for stop in stops:
        while start < stop:
            end = int(stop)
            if closed[start]:
                # A wider block is cheaper but has a weaker bound: take the widest block for which all bounds still
                # hold.
                fine = _all_hold(bounds, grid[start : start + 1], grid[start + 1 : stop + 1])
                end = start + (len(fine) if fine.all() else max(int(np.argmin(fine)), 1))
            cuts.append(int(grid[end]))
            is_open.append(not closed[start])
            start = end
    return Windows(tally, np.array(cuts, dtype=np.intp), np.array(is_open, dtype=bool))


def _with_big_groups(tally: Tally, windows: Windows) -> Windows:
    """Make big groups inside open stretches closed stretches of their own."""
    size = tally.positive_counts + tally.negative_counts
    big = np.flatnonzero(size > BIG_GROUP)
    big = big[windows.is_open[np.searchsorted(windows.cuts, big, side="right") - 1]]
    cuts = np.unique(np.concatenate([windows.cuts, big, big + 1]))
    is_open = windows.is_open[np.searchsorted(windows.cuts, cuts[:-1], side="right") - 1]
    is_open[np.searchsorted(cuts, big)] = False
    return Windows(tally, cuts, is_open)


# ----------------------------------------------------------------------
# The error curve of one system in many replicates, known at the ends of small pieces and, where needed, inside them.
#
# This is the part of the paired bootstrap (see `paired_replicates`) that concerns one system: pieces of scores,
# cumulative counts at their ends, and the figures read from them, each with the replicates in which it is not certain.

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
        return least / form.unit, doubtful

    def at_crossing(self, form: Crossing) -> tuple[Floats, Mask]:
        """Return the figure at the crossing; it is in doubt if the crossing lies in a closed stretch."""
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


# ----------------------------------------------------------------------
# Replicates of sums over all trials (Cllr, Brier, AUC) for two systems at once, from the counts of joint categories.
#
# Every trial of a category is equally likely to be drawn, so the sums over a category have a known mean and a known
# covariance, also between the systems and between the figures. The mean is used exactly; the covariance within
# categories is added as Gaussian noise. Trials drawn one by one, among them the most extreme, count exactly. The AUC is
# a sum of placements (for each trial, the share of the other class that it is ordered correctly against); the part of
# its variance that this leaves out is less than a hundredth in samples of the size for which this method is used.

LEAST = 5000
"""With at least this many trials in each class, sums are drawn by category; with fewer, every trial is drawn."""
EXTREMES = 16
"""How many trials at each end of each class and system are drawn one by one: a few extreme terms can dominate a sum."""
_ROWS = 4096


def by_category(positive: Mask, forms: Sequence[Form]) -> list[int]:
    """Return which forms are drawn as sums by category."""
    n1 = int(positive.sum())
    large = min(n1, len(positive) - n1) >= LEAST
    return [i for i, form in enumerate(forms) if large and form.is_summed]


def extreme_trials(positive: Mask, scores: Sequence[Floats], forms: Sequence[Summed]) -> Indices:
    """Return the trials at the ends of each class, and all trials with an infinite term."""
    found = []
    for score in scores:
        for members in (np.flatnonzero(positive), np.flatnonzero(~positive)):
            order = np.argpartition(score[members], [EXTREMES, len(members) - EXTREMES])
            found += [members[order[:EXTREMES]], members[order[-EXTREMES:]]]
        found += [np.flatnonzero(~np.isfinite(f.terms(positive, score))) for f in forms]
    return np.unique(np.concatenate(found))


@dataclass(frozen=True, eq=False)
class OfClass:
    """The terms of one class: those of trials drawn one by one, and mean and covariance of each category of the others.

    There is one row per system and form; infinite terms are 0 in `drawn` and marked in `infinite`.
    """

    rows: slice
    drawn: Floats
    infinite: Mask
    mean: Floats
    covariance: Floats

    @classmethod
    def of(
        cls, terms: Sequence[Floats], rows: slice, drawn: Indices, members: Indices, category: Array, size: int
    ) -> OfClass:
        """Gather the terms of trials `drawn` one by one, and summarise those of the `members` of categories."""
        single = np.array([t[drawn] for t in terms])
        count = np.maximum(np.bincount(category, minlength=size), 1)
        others = [t[members] for t in terms]
        mean = np.array([np.bincount(category, weights=t, minlength=size) / count for t in others])
        covariance = np.zeros((size, len(terms), len(terms)))
        rest = [t - m[category] for t, m in zip(others, mean, strict=True)]
        for i, one in enumerate(rest):
            for j, other in enumerate(rest[: i + 1]):
                both = np.bincount(category, weights=one * other, minlength=size) / count
                covariance[:, i, j] = covariance[:, j, i] = both
        infinite = ~np.isfinite(single)
        return cls(rows, np.where(infinite, 0.0, single), infinite, mean, covariance)

    def sums(self, draw: Draw, which: int, rng: Random) -> Floats:
        """Return replicates of the sums, (system, form) × replicate."""
        others = draw.others[which].astype(np.float64)
        total = np.einsum("mk,rk->mr", self.mean, others)
        for start in range(self.rows.start, self.rows.stop, _ROWS):
            part = slice(start, min(start + _ROWS, self.rows.stop))
            counts = UNPACK[which](draw.packed[part]).astype(np.float64)
            here = slice(part.start - self.rows.start, part.stop - self.rows.start)
            total += np.einsum("mt,tr->mr", self.drawn[:, here], counts)
            for m, t in np.argwhere(self.infinite[:, here]):
                total[m, counts[t] > 0] = np.inf
        spread, axes = np.linalg.eigh(np.einsum("rk,kij->rij", others, self.covariance))
        spread = np.where(spread > 1e-12 * spread[:, -1:], spread, 0.0)  # rounding, as when both systems are the same
        noise = rng.standard_normal(spread.shape) * np.sqrt(spread)
        return np.asarray(total + np.einsum("rij,rj->ir", axes, noise))


@dataclass(frozen=True, eq=False)
class JointSums:
    """The sums of some forms for both systems."""

    forms: list[Summed]
    classes: list[OfClass]
    areas: list[float]

    @classmethod
    def of(
        cls, positive: Mask, scores: Sequence[Floats], forms: list[Summed], drawn: Indices, category: Array, size: int
    ) -> JointSums:
        """Compute the terms of both systems; `drawn` lists positives first, and `category` is −1 for these trials."""
        terms = [form.terms(positive, score) for score in scores for form in forms]
        first = int(positive[drawn].sum())
        classes = []
        for mask, rows in ((positive, slice(0, first)), (~positive, slice(first, len(drawn)))):
            members = np.flatnonzero(mask & (category >= 0))
            classes.append(OfClass.of(terms, rows, drawn[rows], members, category[members], size))
        areas = [float(t[positive].mean()) for t in terms]  # for placements: the AUC
        return cls(forms, classes, areas)

    def figures(self, draw: Draw, rng: Random) -> Iterator[tuple[int, int, Floats]]:
        """Yield the index and the replicates of each system and form."""
        sum1, sum0 = (c.sums(draw, which, rng) for which, c in enumerate(self.classes))
        sizes = [size.astype(np.float64) for size in draw.sizes]
        for k in range(2 * len(self.forms)):
            system, place = divmod(k, len(self.forms))
            form = self.forms[place]
            yield system, place, np.asarray(form.of_sums(sum1[k], sizes[0], sum0[k], sizes[1], self.areas[k]))


# ----------------------------------------------------------------------
# Paired bootstrap: two systems on the same resampled trials.
#
# Replicate r of both systems comes from one draw of trials within each class, so the difference of the two is a
# replicate of the difference. Trials near a system's crossing or least cost are drawn one by one. All other trials
# matter only through how many of them lie between two scores of one system and two scores of the other; these counts
# are one multinomial. Every replicate is checked: its crossings must lie among trials that were drawn, and no cost
# elsewhere may be lower than the least one found. A replicate that fails this check (which is rare), and every
# replicate of figures that need the whole curve (AP), is completed: its counts are distributed to the single trials.
# The distribution is exactly that of resampling trials. Sums over all trials (Cllr, Brier, AUC) are completed too in
# small samples, and drawn by category in large ones (see `JointSums`).

Pair = tuple[list[Floats], list[Floats]]
NUMBERS_AT_A_TIME = 1 << 22
EVEN_BLOCKS = 24
"""Number of parts that the scores of each system are cut into if sums over all trials are asked for."""
DEAR_CATEGORY = 24
"""A category with fewer trials than this is drawn trial by trial, which is then cheaper than counting it."""


def paired_replicates(
    positive: Mask,
    score_a: Floats,
    score_b: Floats,
    forms: Sequence[Form],
    replicates: int,
    rng: Random,
    by_class: bool = True,
    tallies: tuple[Tally, Tally] | None = None,
) -> Pair:
    """Return replicates of each form for both systems, with the same trials resampled for both.

    Trials are drawn within each class, or from all trials. In the second case class sizes vary between replicates, so
    every figure except sums is completed trial by trial. `tallies`: those of the two systems, if they are known.
    """
    if positive.all() or not positive.any():
        nothing = [np.full(replicates, np.nan) for _ in forms]
        return nothing, [v.copy() for v in nothing]
    plan = Plan.of(positive, (score_a, score_b), forms, tallies)
    values = np.full((2, len(forms), replicates), np.nan)
    step = max(8, min(replicates, NUMBERS_AT_A_TIME // max(len(plan.drawn), 1)))
    for start in range(0, replicates, step):
        progress.report("replicates", start, replicates)
        part = values[:, :, start : start + step]
        _fill(part, plan, forms, plan.draw(part.shape[2], rng, by_class), rng)
    if np.array_equal(score_a, score_b):  # equal systems get equal figures, to the last bit
        values[1] = values[0]
    return list(values[0]), list(values[1])


@dataclass(frozen=True, eq=False)
class Ordered:
    """Trials sorted by one system's score: any counts of trials become a tally without another sort."""

    order: Indices
    positive: Mask
    score: Floats
    ends: Indices

    @classmethod
    def of(cls, positive: Mask, score: Floats) -> Ordered:
        """Sort the trials once."""
        order = np.argsort(score, kind="stable")
        values = score[order]
        ends = np.flatnonzero(np.append(values[1:] != values[:-1], True))
        return cls(order, positive[order], values[ends], ends)

    def tally(self, counts: Array) -> Tally:
        """Return the tally in which trial i counts counts[i] times."""
        held = counts[self.order]
        both, positives = np.cumsum(held)[self.ends], np.cumsum(held * self.positive)[self.ends]
        return Tally(self.score, np.append(0, positives), np.append(0, both - positives))


def _figures(systems: Sequence[Ordered], forms: Sequence[Form], counts: Array) -> list[list[float]]:
    return [[form.value(tally) for form in forms] for tally in (s.tally(counts) for s in systems)]


@dataclass(frozen=True, eq=False)
class Plan:
    """Which trials are drawn one by one, and the categories of the other trials of each class."""

    positive: Mask
    scores: tuple[Floats, Floats]
    axes: list[Axis]
    drawn: Indices
    category: NDArray[np.int32]
    sizes: list[Counts]
    summed: list[int]
    sums: JointSums | None

    @classmethod
    def of(
        cls,
        positive: Mask,
        scores: tuple[Floats, Floats],
        forms: Sequence[Form],
        tallies: tuple[Tally, Tally] | None = None,
    ) -> Plan:
        """Choose the windows of both systems and sort the trials into them."""
        summed = by_category(positive, forms)
        of_sums = [f for f in (forms[i] for i in summed) if isinstance(f, Summed)]
        counted = tallies or tuple(Tally.of_classes(s[positive], s[~positive]) for s in scores)
        windows = [choose_windows(t, forms, EVEN_BLOCKS if summed else 1) for t in counted]
        stretch = [w.stretch_of(s) for w, s in zip(windows, scores, strict=True)]
        width = len(windows[1].is_open)
        # A category is a pair of stretches, one of each system. A trial is drawn one by one if either system must look
        # at it, or if its category is too small to be worth counting.
        joint = (stretch[0] * width + stretch[1]).astype(np.int32)
        one_by_one = (windows[0].is_open[:, None] | windows[1].is_open).reshape(-1)
        one_by_one |= np.bincount(joint, minlength=len(one_by_one)) < DEAR_CATEGORY
        active = one_by_one[joint]
        if summed:
            active[extreme_trials(positive, scores, of_sums)] = True
        drawn = np.flatnonzero(active)
        drawn = np.concatenate([drawn[positive[drawn]], drawn[~positive[drawn]]])
        used = [
            np.bincount(joint[mask], minlength=len(one_by_one)) for mask in (positive & ~active, ~(positive | active))
        ]
        kept = np.flatnonzero(~one_by_one & (used[0] + used[1] > 0))
        rank = np.full(len(one_by_one), -1, dtype=np.int32)
        rank[kept] = np.arange(len(kept))
        axes = [Axis.of(w, s[drawn], k) for w, s, k in zip(windows, scores, (kept // width, kept % width), strict=True)]
        category = np.where(active, -1, rank[joint]).astype(np.int32)
        sums = JointSums.of(positive, scores, of_sums, drawn, category, len(kept)) if summed else None
        return cls(positive, scores, axes, drawn, category, [u[kept] for u in used], summed, sums)

    def draw(self, replicates: int, rng: Random, by_class: bool = True) -> Draw:
        """Draw new replicates, one column each."""
        parts, others = [], []
        is_positive = self.positive[self.drawn]
        active = int(is_positive.sum()), int((~is_positive).sum())
        held = [int(sizes.sum()) + own for sizes, own in zip(self.sizes, active, strict=True)]
        drawn = class_sizes(held[0], held[1], replicates, rng, by_class)
        for sizes, own, n, size in zip(self.sizes, active, held, drawn, strict=True):
            counts = rng.multinomial(size, np.append(sizes, own) / n)
            others.append(counts[:, :-1])
            parts.append(uniform_counts(own, counts[:, -1], rng))
        packed = np.zeros((len(self.drawn) + 1, replicates), dtype=np.uint16)  # the last row stays 0: padding
        middle = len(parts[0])
        packed[:middle] = parts[0]
        np.left_shift(parts[1], 8, out=packed[middle:-1], dtype=np.uint16)
        return Draw(packed, others, drawn)

    @cached_property
    def ordered(self) -> list[Ordered]:
        """Both systems sorted completely, for replicates that must be completed."""
        return [Ordered.of(self.positive, s) for s in self.scores]

    @cached_property
    def members(self) -> list[Indices]:
        """The trials of each class that are not drawn one by one, in order of category."""
        rest = [np.flatnonzero(mask & (self.category >= 0)) for mask in (self.positive, ~self.positive)]
        return [i[np.argsort(self.category[i], kind="stable")] for i in rest]

    def completed(self, draw: Draw, replicate: int, rng: Random) -> Counts:
        """Return how often every trial is drawn: the counts of categories are distributed to their trials."""
        counts = np.zeros(len(self.positive), dtype=np.int64)
        column = draw.packed[:-1, replicate]
        counts[self.drawn] = (column & 255) + (column >> 8)
        for members, sizes, others in zip(self.members, self.sizes, draw.others, strict=True):
            dealt = others[replicate]
            first = np.repeat(np.cumsum(sizes) - sizes, dealt)
            counts += np.bincount(members[first + rng.integers(0, np.repeat(sizes, dealt))], minlength=len(counts))
        return counts


def _fill(values: Floats, plan: Plan, forms: Sequence[Form], draw: Draw, rng: Random) -> None:
    """Compute all figures of some replicates (system × form × replicate); by brute force where one is in doubt."""
    doubtful = np.zeros(values.shape[2], dtype=bool)
    unread: list[int] = []
    if not draw.is_even:
        unread = [i for i in range(len(forms)) if i not in plan.summed]
    for system, axis in enumerate(plan.axes if draw.is_even else ()):
        curve = axis.curve(draw)
        answers = [form.on_curve(curve) for form in forms]
        unread = [i for i, answer in enumerate(answers) if answer is None and i not in plan.summed]
        for i, answer in enumerate(answers):
            if answer is not None:
                values[system, i] = answer[0]
                doubtful |= answer[1]
    # Completing a replicate uses the counts already drawn, so its other figures stay consistent with the same draw.
    for r in range(values.shape[2]) if unread else np.flatnonzero(doubtful):
        counts = plan.completed(draw, int(r), rng)
        again = [i for i in range(len(forms)) if i not in plan.summed] if doubtful[r] else unread
        values[:, again, r] = _figures(plan.ordered, [forms[i] for i in again], counts)
    if plan.sums:
        for system, place, figures in plan.sums.figures(draw, rng):
            values[system, plan.summed[place]] = figures


# ----------------------------------------------------------------------
# What a difference shows: its p value from replicates, and the least difference that this many pairs could detect.


def p_of_replicates(
    deltas: Floats, degrees: float = math.inf, delta: float | None = None, factor: float = 1.0
) -> float:
    """Return the two-sided p value of a difference from its bootstrap replicates.

    It is the level at which a percentile interval would touch 0: min(1, 2 (k + 1) / (m + 1)), where k is the number of
    replicates on the rarer side of 0, and zeros count on both sides. If there is no replicate on that side, the p value
    follows the tail of Student's t with `degrees` of freedom (units less one) at the studentised mean, so that a family
    of many tests does not need more replicates. With `delta`, the difference itself, the tail at delta / (`factor` ·
    deviation) is always used: the replicates of few units vary too little, and those of figures that are read at a
    threshold of their own (EER, least costs) lie nearer to 0 than the difference does. Undefined replicates are left
    out; the result is NaN if none is defined.

    >>> p_of_replicates(np.array([1.0, 2.0, 3.0, -1.0, 2.0, 1.0, 4.0]))
    0.5
    >>> p_of_replicates(np.zeros(100))
    1.0
    >>> p_of_replicates(np.random.default_rng(0).normal(10.0, 1.0, 1000)) < 1e-20
    True
    """
    known = deltas[~np.isnan(deltas)]
    if not len(known):
        return math.nan
    rarer = min(int((known <= 0.0).sum()), int((known >= 0.0).sum()))
    p = min(1.0, 2.0 * (rarer + 1) / (len(known) + 1))
    if delta is not None and (known != known[0]).any():
        return min(1.0, _tail(known, degrees, delta, factor))
    return p if rarer else min(p, _tail(known, degrees, float(known.mean()), factor))


def _tail(known: Floats, degrees: float, centre: float, factor: float) -> float:
    """Return the two-sided p value of centre / deviation; 1 if the deviation is 0."""
    error = float(np.std(known, ddof=1)) * factor if len(known) > 1 and np.isfinite(known).all() else 0.0
    if not error > 0.0:
        return 1.0
    t = abs(centre) / error
    shrunk = 1.0 if math.isinf(degrees) else math.sqrt(max(degrees, 1.0) / (max(degrees, 1.0) + 1.0))
    from scipy.special import stdtr  # slow to import, and needed only for tests

    return 2.0 * float(stdtr(max(min(degrees, len(known) - 1.0), 1.0), -t * shrunk))


def detectable(error: float, level: float = 0.95, power: float = 0.8) -> float | None:
    """Return the minimum detectable difference: (z₁₋α⸝₂ + z_power) · error.

    `error` is the standard error of the paired difference. A two-sided test at 1 − level finds a true difference of
    this size in a share `power` of all repetitions (normal approximation, with the error as estimated here). None if
    there is no error, or if it is 0: runs that never differed show nothing about which difference could have been seen.

    >>> round(detectable(0.01), 6)
    0.028016
    >>> detectable(0.0) is None
    True
    """
    if not error > 0.0 or math.isinf(error):
        return None
    normal = NormalDist()
    return (normal.inv_cdf(0.5 + level / 2) + normal.inv_cdf(power)) * error
