"""Resampling: draws of trials and units, tallies cut into cells, and exact replicates of crossings, minima and sums."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.random import PCG64, BitGenerator, Generator, RandomState, SeedSequence
from numpy.typing import NDArray

from hitmiss.core import progress
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.score_keys import Keys, scores_of
from hitmiss.core.sorting import Array, Floats, let_go, order_of
from hitmiss.core.tally import Tally
from hitmiss.stats.forms import FINE_GRID, ClassSums, DiskTally, Form, Located, Whole

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Table: TypeAlias = Floats | csr_array

# ----------------------------------------------------------------------
# Random draws that depend only on the seed and on what is drawn, never on order, thread count, machine or numpy
# version.
#
# numpy promises an unchanging stream for only two things: the raw words of a named bit generator, and the methods of
# `RandomState`, which is frozen (NEP 19, "Legacy random generation" in numpy's manual). The methods of `Generator` may
# change with any release, and have changed. So `Random` builds everything that the statistics draw from these two
# sources:
#
#     raw            64-bit words of PCG64, as they come
#     random         the upper 53 bits of a word, as a fraction                                    (RandomState)
#     bytes          the words, lowest byte first; `integers` takes their lower, then their upper 32 bits
#     integers       Lemire's multiply and shift, with rejection: exactly uniform                  (here)
#     permutation    the order of as many words, equal words by place                              (here)
#     binomial       inversion below np = 30, else BTPE (Kachitvichyanukul & Schmeiser 1988)       (RandomState)
#     multinomial    one binomial per category, of what the categories before it left              (RandomState)
#     standard_normal, choice with odds                                                            (RandomState)
#
# `tests/stats/test_seeds.py` holds the same algorithms in plain Python, from the PCG64 recurrence on.

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_WORD = 1 << 32
_BLOCK = 1 << 15  # how many numbers are processed at a time, few enough to stay in the CPU cache


class Random(RandomState):
    """A source of draws that gives the same numbers with every version of numpy."""

    def __init__(self, bits: BitGenerator) -> None:
        super().__init__(bits)
        self._bits = bits
        self._half: NDArray[np.uint32] = np.zeros(0, dtype=np.uint32)

    def raw(self, n: int) -> Words:
        """Return the next `n` words of 64 bits."""
        return np.asarray(self._bits.random_raw(n), dtype=np.uint64)

    def integers(self, low: int, high: int | Ints | None = None, size: int | Sequence[int] | None = None) -> Ints:
        """Draw uniform integers from `low` up to, but not including, `high` (an array: one integer per bound).

        With one argument: from 0 up to, but not including, it.
        """
        first, end = (0, low) if high is None else (low, high)
        if size is None:
            bounds = np.asarray(end, dtype=np.int64) - first
            return self._below(bounds.reshape(-1)).reshape(bounds.shape) + first
        shape = (size,) if isinstance(size, int | np.integer) else tuple(size)
        return self._below_one(int(end) - first, int(np.prod(shape, dtype=np.int64))).reshape(shape) + first

    def _below_one(self, bound: int, n: int) -> Ints:
        if bound < 1:
            raise ValueError(f"there is no whole number from 0 to below {bound}")
        if bound == 1:
            return np.zeros(n, dtype=np.int64)
        if bound > _WORD:
            return self._below_large(bound, n)
        found = np.empty(n, dtype=np.uint64)
        for start in range(0, n, _BLOCK):
            self._fill_below(bound, found[start : start + _BLOCK])
        return found.view(np.int64)

    def _fill_below(self, bound: int, out: Words) -> None:
        """Fill `out` by Lemire's method.

        Products whose lower half is below 2³² mod bound are rejected, because keeping them would make some numbers more
        likely.
        """
        spare, done = _WORD % bound, 0
        while done < len(out):
            product = np.multiply(self._halves(len(out) - done), np.uint64(bound), dtype=np.uint64)
            lower = product.astype(np.uint32)
            if lower.min() < spare:
                product = product[lower >= spare]
            np.right_shift(product, np.uint64(32), out=out[done : done + len(product)])
            done += len(product)

    def _below(self, bounds: Ints) -> Ints:
        """Draw one number below each bound; rejected ones are drawn again after all the others."""
        if len(bounds) and (bounds.min() < 1 or bounds.max() > _WORD):
            raise ValueError("bounds of whole numbers lie between 1 and 2**32")
        found = np.zeros(len(bounds), dtype=np.int64)
        open_at = np.flatnonzero(bounds > 1)
        while len(open_at):
            wide = bounds[open_at].astype(np.uint64)
            product = self._halves(len(open_at)).astype(np.uint64) * wide
            kept = (product & np.uint64(_WORD - 1)) >= np.uint64(_WORD) % wide
            found[open_at[kept]] = (product[kept] >> np.uint64(32)).astype(np.int64)
            open_at = open_at[~kept]
        return found

    def _below_large(self, bound: int, n: int) -> Ints:
        """Draw below a bound of more than 32 bits: take the lowest bits of whole words, and reject those too large."""
        mask = np.uint64((1 << (bound - 1).bit_length()) - 1)
        parts: list[Words] = []
        while n:
            words = self.raw(n) & mask
            parts.append(words[words < np.uint64(bound)])
            n -= len(parts[-1])
        return np.concatenate([*parts, np.zeros(0, dtype=np.uint64)]).astype(np.int64)

    def _halves(self, n: int) -> NDArray[np.uint32]:
        """Return the next `n` half words; the unused half of the last word is kept for the next call."""
        words = self.raw((n - len(self._half) + 1) // 2)
        halves = words.astype("<u8", copy=False).view("<u4")
        if len(self._half):
            halves = np.concatenate([self._half, halves])
        self._half = halves[n:].copy()
        return halves[:n]

    def bytes(self, length: int) -> bytes:
        """Return random bytes."""
        return self.raw(-(-length // 8)).astype("<u8", copy=False).tobytes()[:length]

    def heads(self, n: int) -> NDArray[np.bool_]:
        """Throw a fair coin `n` times."""
        bits = np.unpackbits(np.frombuffer(self.bytes(-(-n // 8)), dtype=np.uint8), count=n)
        return bits.astype(bool)

    def permutation(self, x: int | NDArray[np.generic]) -> NDArray[np.int64]:  # type: ignore[override]
        """Return the numbers below `x`, or the elements of `x`, in random order."""
        order = np.argsort(self.raw(x if isinstance(x, int | np.integer) else len(x)), kind="stable")
        return order if isinstance(x, int | np.integer) else np.asarray(x)[order]

    def multinomial(self, n: int | Ints, pvals: NDArray[np.float64], size: int | None = None) -> Ints:  # type: ignore[override]
        """Draw how often each category occurs (replicate × category), among `n` draws, or n[r] in replicate r."""
        odds = np.asarray(pvals, dtype=np.float64)
        likely = np.flatnonzero(np.append(odds[:-1] > 0.0, True))  # impossible categories use no random words
        kept, one = odds[likely], super().multinomial
        if isinstance(n, int | np.integer):
            drawn = np.asarray(one(int(n), kept, size=size), dtype=np.int64)
        elif len(n) and (n == n[0]).all():  # the same draws as one by one, in a single call
            drawn = np.asarray(one(int(n[0]), kept, size=len(n)), dtype=np.int64)
        else:
            drawn = np.array([one(total, kept) for total in n.tolist()], dtype=np.int64).reshape(len(n), len(kept))
        if len(likely) == len(odds):
            return drawn
        spread = np.zeros((*drawn.shape[:-1], len(odds)), dtype=np.int64)
        spread[..., likely] = drawn
        return spread


def generator(seed: int, *names: object) -> Random:
    """Return the random source for a named purpose: equal names and seed give equal draws, whatever else is drawn.

    >>> generator(0, "eer", "C01").integers(100, size=3).tolist() == generator(0, "eer", "C01").integers(100, size=3).tolist()
    True
    """
    return Random(PCG64(_sequence(seed, names)))


def noise_generator(seed: int, *names: object) -> Generator:
    """Return a numpy Generator for draws that go into sounds, signals and simulated data.

    Its output is written to files and certified there by a digest; it is never drawn again to check a figure. So it
    need not be the same in every version of numpy.
    """
    return np.random.default_rng(_sequence(seed, names))


def _sequence(seed: int, names: Sequence[object]) -> SeedSequence:
    if seed < 0:
        raise UsageError(f"a seed is 0 or more; found {seed}", code="bad-seed")
    text = "\x1f".join(map(str, names)).encode()
    words = np.frombuffer(hashlib.sha256(text).digest(), dtype="<u4")
    return SeedSequence([seed, *(int(w) for w in words)])


# ----------------------------------------------------------------------
# Draw many trials with replacement: how often each trial was drawn, for many replicates at once.

Bytes = NDArray[np.uint8]
Counts = NDArray[np.int64]

PACK = 16
"""How many trials are summed in one byte: the chance that 16 trials are drawn 256 times or more is below 1e-180."""
_DRAWS_BLOCK = 1 << 16  # how many numbers are processed at a time, few enough to stay in the CPU cache
_LEVELS = 1 << 16


def uniform_counts(n: int, totals: Counts, rng: Random) -> Bytes:
    """Draw how often each of `n` trials is drawn (trial × replicate), if replicate r draws totals[r] trials uniformly.

    The counts are exactly multinomial: independent Poisson counts given their sum are multinomial, and they stay so
    when single draws are added. So one Poisson number is drawn per trial, at a rate at which the sum rarely exceeds the
    total, and the missing draws are added one by one. The totals must be such that a trial is drawn about once on
    average.
    """
    out = np.zeros((n, len(totals)), dtype=np.uint8)
    # Below 1 by several standard deviations of the sum, so that the sum hardly ever exceeds the total.
    rate = 1.0 - 5.0 * math.sqrt(2.0 / max(n, 1))
    if rate > 0.0:
        _fill_poisson(out.reshape(-1), rate, rng)
    have = _column_sums(out)
    # The rare replicate with too many draws starts again from zero, and all its trials are drawn one by one.
    beyond = have > totals
    out[:, beyond] = 0
    missing = np.where(beyond, totals, totals - have)
    row = rng.integers(0, max(n, 1), size=int(missing.sum()))
    np.add.at(out.reshape(-1), row * len(totals) + np.repeat(np.arange(len(totals)), missing), np.uint8(1))
    return out


def _fill_poisson(out: Bytes, rate: float, rng: Random) -> None:
    """Draw Poisson numbers from 16 random bits each.

    The probabilities are rounded down to multiples of 2⁻¹⁶. The few draws that fall into the remainder are drawn again
    from exactly the probabilities that the rounding left over, so the result is exact.
    """
    odds = _LEVELS * _poisson_odds(rate)
    whole = np.floor(odds)
    rest = (odds - whole) / np.sum(odds - whole)
    steps = np.cumsum(whole[whole > 0]).astype(np.uint16)
    above = np.empty(_DRAWS_BLOCK, dtype=bool)
    for start in range(0, len(out), _DRAWS_BLOCK):
        part = out[start : start + _DRAWS_BLOCK]
        bits = np.frombuffer(rng.bytes(2 * len(part)), dtype="<u2")
        mask = above[: len(part)]
        for step in steps[:-1]:
            np.greater_equal(bits, step, out=mask)
            np.add(part, mask.view(np.uint8), out=part)
        again = np.flatnonzero(np.greater_equal(bits, steps[-1], out=mask))
        part[again] = rng.choice(len(rest), size=len(again), p=rest)


def _poisson_odds(rate: float) -> Floats:
    """Return the probabilities of 0, 1, 2 …, up to where they vanish in double precision."""
    return np.array([math.exp(-rate + k * math.log(rate) - math.lgamma(k + 1)) for k in range(60)])


def _column_sums(counts: Bytes) -> Counts:
    whole = len(counts) // PACK * PACK
    packs = counts[:whole].reshape(-1, PACK, counts.shape[1]).sum(axis=1, dtype=np.uint8)
    return np.asarray(packs.sum(axis=0, dtype=np.int64) + counts[whole:].sum(axis=0, dtype=np.int64))


# ----------------------------------------------------------------------
# Cells: a tally cut into stretches of scores, so that a replicate is a few counts instead of a new list of trials.

Indices = NDArray[np.intp]
GRID = 32
"""Number of stretches with equal numbers of trials per class, for figures that depend on single thresholds."""
UNIT_GRID = 256
"""… for units and figures that are read off the stretches: their cells are cheap to count (a matrix product)."""
WHOLE_GRID = 1024
"""… for figures that depend on the whole curve."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A tally with cuts: cell k holds the distinct scores cuts[k] .. cuts[k+1] − 1."""

    tally: Tally
    cuts: Indices

    @cached_property
    def positives(self) -> Floats:
        """The number of positives in each cell."""
        return np.diff(self.tally.positives[self.cuts]).astype(np.float64)

    @cached_property
    def negatives(self) -> Floats:
        """The number of negatives in each cell."""
        return np.diff(self.tally.negatives[self.cuts]).astype(np.float64)

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def index_of(self, point: int) -> int:
        """Return the index of the cut at a point of the error curve."""
        return int(np.searchsorted(self.cuts, point))

    def coarse(self) -> Tally:
        """Return a tally with each cell as one group at its middle score, for figures that need the whole curve."""
        middle = (self.cuts[:-1] + self.cuts[1:] - 1) // 2
        return Tally(self.tally.score[middle], self.tally.positives[self.cuts], self.tally.negatives[self.cuts])


def cut(tally: Tally, forms: Sequence[Form], grid: int | None = None) -> Cells:
    """Cut a tally where the forms need it: sample points, fixed thresholds, infinite scores and an even grid."""
    if grid is None and forms and all(f.thresholds for f in forms):
        grid = 1  # what is read at fixed thresholds depends on nothing between them
    elif grid is None:
        grid = FINE_GRID if any(f.is_summed for f in forms) else GRID
    return Cells(tally, _cuts(tally, [*(p for form in forms for p in form.points(tally)), *_even(tally, grid)]))


def cut_for_units(tally: Tally, forms: Sequence[Form]) -> Cells:
    """Cut on an even grid: coarse for figures at one place of the curve, because open cells are divided further."""
    return cut(tally, forms, UNIT_GRID if any(f.fine_unit_cells for f in forms) else GRID)


def cut_finely(tally: Tally) -> Cells:
    """Cut on an even grid in both classes, for figures that depend on the whole curve."""
    return Cells(tally, _cuts(tally, _even(tally, WHOLE_GRID)))


def _cuts(tally: Tally, points: Iterable[int]) -> Indices:
    inside = np.unique(np.asarray([0, len(tally.score), *points], dtype=np.intp))
    return inside[(inside >= 0) & (inside <= len(tally.score))]


def _even(tally: Tally, grid: int) -> list[int]:
    if len(tally.score) <= grid:
        return list(range(len(tally.score) + 1))
    shares = np.arange(1, grid) / grid
    by_class = [np.searchsorted(c, _as_counts(shares * c[-1], c)) for c in (tally.positives, tally.negatives)]
    return [int(i) for i in np.concatenate(by_class)]


def _as_counts(values: Floats, counts: Array) -> Array:
    """Return values with the type of counts, rounded up: numpy would turn all whole counts into floats to find them."""
    return np.ceil(values).astype(counts.dtype) if counts.dtype.kind in "iu" else values


# ----------------------------------------------------------------------
# Exact bootstrap of crossings and minima without visiting most trials.
#
# A bootstrap replicate that is stratified by class draws n trials of a class with replacement: the counts are
# multinomial. The counts in stretches of scores are multinomial too, and the split of a stretch is binomial with the
# share of its left part. So the counts of all replicates are drawn for coarse cells first. A cell is split further only
# where the two error rates cross, or where a lower cost than the best one found so far is still possible. The
# distribution is exactly that of resampling trials; counts that are not needed are never drawn.


@dataclass(frozen=True, eq=False)
class Stretches:
    """Stretches of scores that are being examined, one row per replicate and stretch.

    A row covers groups low .. high − 1 of the tally; `cp`, `cn` count the replicate's trials below, `p`, `q` those
    inside.
    """

    replicate: Ints
    low: Ints
    high: Ints
    cp: Floats
    cn: Floats
    p: Floats
    q: Floats

    def keep(self, mask: NDArray[np.bool_] | Ints | slice) -> Stretches:
        """Return the stretches where a mask is true, or at some places."""
        return Stretches(*(getattr(self, name)[mask] for name in self.__dataclass_fields__))

    def __len__(self) -> int:
        return len(self.replicate)


@dataclass(eq=False)
class Search:
    """What is known so far about the places that determine some forms, for all replicates."""

    forms: Sequence[Located]
    n1: Floats
    n0: Floats
    found: list[Floats]

    def sizes(self, s: Stretches) -> tuple[Floats, Floats]:
        """Return the numbers of positives and negatives in the replicates of the stretches."""
        return self.n1[s.replicate], self.n0[s.replicate]

    def note_point(self, s: Stretches, cp: Floats, cn: Floats) -> None:
        """Record one point of the error curve inside each stretch."""
        sizes = self.sizes(s)
        for form, found in zip(self.forms, self.found, strict=True):
            form.note_point(found, s.replicate, cp, cn, *sizes)

    def matters(self, s: Stretches) -> NDArray[np.bool_]:
        """Return the stretches in which some form can still be determined."""
        sizes, matters = self.sizes(s), np.zeros(len(s), dtype=bool)
        for form, found in zip(self.forms, self.found, strict=True):
            matters |= form.can_be_in(found, s, *sizes)
        return matters

    def unsettled(self, s: Stretches) -> Stretches:
        """Return the stretches that can still matter; single groups are read and finished."""
        single = s.high - s.low == 1
        sizes, matters = self.sizes(s), np.zeros(len(s), dtype=bool)
        for form, found in zip(self.forms, self.found, strict=True):
            inside = form.can_be_in(found, s, *sizes)
            groups = s.keep(inside & single)
            form.note_groups(found, groups, *self.sizes(groups))
            matters |= inside
        return s.keep(matters & ~single)

    def note_inside(self, s: Stretches, cp: Floats, cn: Floats) -> None:
        """Record every point (stretch × point) inside stretches."""
        sizes = self.sizes(s)
        for form, found in zip(self.forms, self.found, strict=True):
            form.note_inside(found, s, cp, cn, *sizes)

    def replicates(self, form: Located) -> Floats:
        """Return what was found for one form."""
        return self.found[next(i for i, f in enumerate(self.forms) if f is form)]


def search_stratified(cells: Cells, p: Floats, q: Floats, forms: Sequence[Form], rng: Random) -> Search:
    """Find the places that determine the forms in all replicates, splitting cells as needed.

    The replicates are given by their counts per cell (replicate × cell).
    """
    search, stretches = begin_search(cells, p, q, forms)
    # Each round halves all open stretches of all replicates at once, so there are about log2(scores per cell) rounds.
    while len(stretches):
        stretches = _split(stretches, cells, search, rng)
        stretches = search.unsettled(stretches)
    return search


def begin_search(cells: Cells, p: Floats, q: Floats, forms: Sequence[Form]) -> tuple[Search, Stretches]:
    """Return what the cuts alone show, and the cells that are still open."""
    cp, cn = _before(p), _before(q)
    located = [f for f in forms if isinstance(f, Located)]
    search = Search(located, cp[:, -1], cn[:, -1], [])
    is_open = np.zeros(p.shape, dtype=bool)
    for form in located:
        found, can_be_in = form.begin(cp, cn)
        search.found.append(found)
        is_open |= can_be_in
    row, cell = np.nonzero(is_open)
    inside = (cp[row, cell], cn[row, cell], p[row, cell], q[row, cell])
    return search, search.unsettled(Stretches(row, cells.cuts[cell], cells.cuts[cell + 1], *inside))


def _split(s: Stretches, cells: Cells, search: Search, rng: Random) -> Stretches:
    """Split each stretch into two halves; the counts of the halves are drawn given the count of the whole."""
    cp, cn = cells.tally.positives, cells.tally.negatives
    middle = (s.low + s.high) // 2
    a = _draw_left(rng, s.p, cp[s.low], cp[middle], cp[s.high])
    b = _draw_left(rng, s.q, cn[s.low], cn[middle], cn[s.high])
    search.note_point(s, s.cp + a, s.cn + b)
    left = Stretches(s.replicate, s.low, middle, s.cp, s.cn, a, b)
    right = Stretches(s.replicate, middle, s.high, s.cp + a, s.cn + b, s.p - a, s.q - b)
    return Stretches(*(np.concatenate([getattr(left, n), getattr(right, n)]) for n in s.__dataclass_fields__))


def _draw_left(rng: Random, count: Floats, low: Ints, middle: Ints, high: Ints) -> Floats:
    """Draw how many of `count` trials fall left of the middle: a binomial with the left part's share of the sample."""
    inside = np.maximum(high - low, 1)
    return rng.binomial(count.astype(np.int64), (middle - low) / inside).astype(np.float64)


def _before(counts: Floats) -> Floats:
    """Return cumulative counts along the cells, starting at 0."""
    out = np.zeros((counts.shape[0], counts.shape[1] + 1))
    np.cumsum(counts, axis=1, out=out[:, 1:])
    return out


# ----------------------------------------------------------------------
# Replicates of sums over all trials (Cllr, Brier, ROC AUC) from the counts of cells.
#
# Inside a cell every trial is equally likely to be drawn, so the sum over the drawn trials of a cell has a known mean
# and a known variance. The mean is used exactly; the variance within cells is added as Gaussian noise. Without it the
# replicates would vary too little.


def class_sum(cells: Cells, counts: Array, drawn: Floats, term: Callable[[Floats], Floats], rng: Random) -> Floats:
    """Return replicates of Σ term(score) over one class, from `counts` per score and `drawn` trials per cell."""
    present = np.flatnonzero(counts)
    values = term(cells.tally.score[present])
    certain = np.isfinite(values)
    place = np.searchsorted(cells.cuts, present, side="right") - 1
    with np.errstate(over="ignore", invalid="ignore"):  # sums of very large numbers may overflow
        mean, spread = _mean_and_variance(values[certain], counts[present[certain]], place[certain], len(cells))
        total = drawn @ mean + rng.standard_normal(len(drawn)) * np.sqrt(drawn @ spread)
    if certain.all():
        return total
    infinite = np.zeros(len(cells), dtype=bool)  # infinite scores have cells of their own
    infinite[place[~certain]] = True
    return np.where((drawn[:, infinite] > 0).any(axis=1), np.inf, total)


def _mean_and_variance(values: Floats, weights: Array, place: Array, size: int) -> tuple[Floats, Floats]:
    total = np.bincount(place, weights=weights, minlength=size)
    safe = np.maximum(total, 1)
    mean = np.bincount(place, weights=weights * values, minlength=size) / safe
    return mean, np.bincount(place, weights=weights * (values - mean[place]) ** 2, minlength=size) / safe


def ordered_pairs(cells: Cells, p: Floats, q: Floats, rng: Random | None) -> Floats:
    """Return replicates of the ROC AUC.

    Pairs in different cells are counted; pairs inside a cell use their exact share. With `rng` the variance of the
    share inside cells is added, as in `class_sum`.
    """
    share, by_positive, by_negative = _pairs_inside(cells)
    below = np.cumsum(q, axis=1) - q
    with np.errstate(divide="ignore", invalid="ignore"):
        all_pairs = p.sum(axis=1) * q.sum(axis=1)
        area: Floats = (np.einsum("rk,rk->r", p, below) + (p * q) @ share) / all_pairs
        if rng is None:
            return area
        noise = (p * q**2) @ by_positive + (p**2 * q) @ by_negative
        area += rng.standard_normal(len(p)) * np.sqrt(noise) / all_pairs
        return area


def _pairs_inside(cells: Cells) -> tuple[Floats, Floats, Floats]:
    """Return, per cell, the share of ordered pairs and the variances of a positive's and of a negative's share."""
    found, first = [], 0
    while first < len(cells):  # some cells at a time, so that there is no copy of a long tally
        end = max(int(np.searchsorted(cells.cuts, cells.cuts[first] + PART, side="right")) - 1, first + 1)
        found.append(_pairs_inside_some(cells, slice(first, end)))
        let_go(cells.tally.positives, cells.tally.negatives)
        first = end
    share, by_positive, by_negative = (np.concatenate([np.zeros(0), *parts]) for parts in zip(*found, strict=True))
    return share, by_positive, by_negative


def _pairs_inside_some(cells: Cells, some: slice) -> tuple[Floats, Floats, Floats]:
    cuts, size = cells.cuts[some.start : some.stop + 1], some.stop - some.start
    groups = slice(cuts[0], cuts[-1] + 1)
    p, q = cells.tally.positives[groups], cells.tally.negatives[groups]
    place = np.repeat(np.arange(size), np.diff(cuts))
    n1, n0 = np.maximum(cells.positives[some], 1)[place], np.maximum(cells.negatives[some], 1)[place]
    start1, start0 = p[cuts[:-1] - cuts[0]][place], q[cuts[:-1] - cuts[0]][place]
    under = (0.5 * (q[:-1] + q[1:].astype(np.float64)) - start0) / n0
    over = (n1 - (0.5 * (p[:-1] + p[1:].astype(np.float64)) - start1)) / n1
    share, by_positive = _mean_and_variance(under, np.diff(p), place, size)
    _, by_negative = _mean_and_variance(over, np.diff(q), place, size)
    return share, by_positive, by_negative


# ----------------------------------------------------------------------
# Bootstrap replicates of metrics.
#
#     trial_replicates        trials are the units, within each class or from all      (lazy, exact; see `Search`)
#     unit_replicates         speakers, patients … are the units, with their trials    (exact on the given weights)
#     count_replicates        metrics of decisions                                     (exact)
#
# Replicates are vectorised, never threaded, so the same generator gives the same digits on any machine with any number
# of threads. `resampled` computes them by brute force, on the trials from `trial_draws`; the tests compare against it.


def trial_replicates(
    tally: Tally, forms: Sequence[Form], replicates: int, rng: Random, by_class: bool = True
) -> list[Floats]:
    """Return replicates of each form, all from the same draws: trials resampled with replacement.

    `by_class`: within each class. Otherwise from all trials, so that the number of positives varies as in a new sample.
    """
    if not tally.has_both_classes:
        return [np.full(replicates, np.nan) for _ in forms]
    drawn = DrawnCells.draw(tally, forms, replicates, rng, by_class)
    empty = (drawn.p.sum(axis=1) == 0) | (drawn.q.sum(axis=1) == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = [form.replicates(drawn) for form in forms]
    return [np.where(empty, np.nan, v) for v in values] if empty.any() else values


def class_sizes(n1: int, n0: int, replicates: int, rng: Random, by_class: bool) -> tuple[Ints, Ints]:
    """Return the numbers of positives and negatives in each replicate: those of the sample, or a binomial draw."""
    if by_class:
        return np.full(replicates, n1), np.full(replicates, n0)
    drawn = rng.binomial(n1 + n0, n1 / (n1 + n0), size=replicates)
    return drawn, n1 + n0 - drawn


def draw_cells(cells: Cells, replicates: int, rng: Random, by_class: bool = True) -> tuple[Floats, Floats]:
    """Draw the positives and negatives per cell (replicate × cell)."""
    n1, n0 = int(cells.tally.n_positive), int(cells.tally.n_negative)
    sizes = class_sizes(n1, n0, replicates, rng, by_class)
    p = rng.multinomial(sizes[0], cells.positives / n1).astype(np.float64)
    return p, rng.multinomial(sizes[1], cells.negatives / n0).astype(np.float64)


@dataclass(frozen=True, eq=False)
class DrawnCells:
    """Replicates of trials in the form of `forms.Drawn`: counts per cell, and the search inside cells."""

    cells: Cells
    p: Floats
    q: Floats
    search: Search
    rng: Random
    by_class: bool = True

    @classmethod
    def draw(
        cls, tally: Tally, forms: Sequence[Form], replicates: int, rng: Random, by_class: bool = True
    ) -> DrawnCells:
        """Draw the cells, and search them for the places that determine the forms."""
        cells = cut(tally, forms)
        p, q = draw_cells(cells, replicates, rng, by_class)
        return cls(cells, p, q, search_stratified(cells, p, q, forms, rng), rng, by_class)

    def searched(self, form: Located) -> Floats:
        """See `forms.Drawn`."""
        return self.search.replicates(form)

    def counts_at(self, threshold: float) -> tuple[Floats, Floats, Floats, Floats]:
        """See `forms.Drawn`."""
        return counts_at(threshold, self.cells, self.p, self.q)

    def class_sums(self, form: ClassSums) -> tuple[Floats, Floats, Floats, Floats]:
        """See `forms.Drawn`."""
        tally = self.cells.tally
        positive = class_sum(self.cells, tally.positive_counts, self.p, form.positive, self.rng)
        negative = class_sum(self.cells, tally.negative_counts, self.q, form.negative, self.rng)
        return positive, self.p.sum(axis=1), negative, self.q.sum(axis=1)

    def pair_share(self) -> Floats:
        """See `forms.Drawn`."""
        return ordered_pairs(self.cells, self.p, self.q, self.rng)

    def whole(self, form: Whole) -> Floats:
        """See `forms.Drawn`."""
        finely = cut_finely(self.cells.tally)
        return read_whole(form, finely, *draw_cells(finely, len(self.p), self.rng, self.by_class))


def counts_at(threshold: float, cells: Cells, p: Floats, q: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return missed and all positives, accepted and all negatives at a fixed threshold, which is one of the cuts."""
    k = cells.index_of(cells.tally.point_at(threshold))
    return p[:, :k].sum(axis=1), p.sum(axis=1), q[:, k:].sum(axis=1), q.sum(axis=1)


def read_whole(form: Whole, cells: Cells, p: Floats, q: Floats) -> Floats:
    """Compute a figure that depends on the whole curve, on at most a few thousand cells.

    Coarse cells shift the figure slightly, so the replicates are moved by the difference between the full and coarse
    values.
    """
    coarse = cells.coarse()
    shift = form.value(cells.tally) - form.value(coarse)
    if form.of_cells is not None:
        step = max(1, CHUNK_VALUES // max(8 * len(cells), 1))
        parts = [form.of_cells(p[i : i + step], q[i : i + step]) for i in range(0, len(p), step)]
        return np.concatenate([*parts, np.zeros(0)]) + shift
    return np.array([form.value(_with_counts(coarse, a, b)) for a, b in zip(p, q, strict=True)]) + shift


def _with_counts(tally: Tally, p: Floats, q: Floats) -> Tally:
    return Tally(tally.score, np.concatenate([[0.0], np.cumsum(p)]), np.concatenate([[0.0], np.cumsum(q)]))


def count_replicates(outcomes: NDArray[np.int64], replicates: int, rng: Random, by_class: bool = True) -> Floats:
    """Return replicates (replicate × outcome) of the outcome counts, within each class or of all trials.

    The outcomes are those of `metrics.counts`.
    """
    drawn = np.zeros((replicates, len(outcomes)))
    for members in (slice(0, None, 2), slice(1, None, 2)) if by_class else (slice(0, None),):
        have = outcomes[members]
        if have.sum():
            drawn[:, members] = rng.multinomial(int(have.sum()), have / have.sum(), size=replicates)
    return drawn


def trial_draws(
    positive: NDArray[np.bool_], replicates: int, rng: Random, by_class: bool = True
) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of the trials drawn, replicate by replicate, within each class or from all trials."""
    classes = [np.flatnonzero(positive), np.flatnonzero(~positive)] if by_class else [np.arange(len(positive))]
    for done in range(replicates):
        progress.report("replicates", done, replicates)
        yield np.concatenate(
            [members[rng.integers(0, len(members), size=len(members))] for members in classes if len(members)]
        )


def resampled(
    metric: Callable[[NDArray[np.int8], Floats], float],
    positive: NDArray[np.bool_],
    score: Floats,
    replicates: int,
    rng: Random,
    by_class: bool = True,
) -> Floats:
    """Return replicates of any function of (label, score), by drawing trials and computing it again each time."""
    label = positive.astype(np.int8)
    places = trial_draws(positive, replicates, rng, by_class)
    return np.array([metric(label[drawn], score[drawn]) for drawn in places])


# ----------------------------------------------------------------------
# Bootstrap over units: speakers, patients or recordings are drawn with all their trials.
#
# A replicate is a weight for each unit (how often it was drawn). The counts per cell are then one matrix product. Only
# the cells that contain a crossing or can contain a lower cost are examined trial by trial, with the weights of their
# units. EER and minimum costs are equal to those of brute force on the same weights.

CHUNK_VALUES = 1 << 24
AT_ONCE = 1 << 16  # how many units are drawn at a time
"""At most `CHUNK_VALUES` numbers are held at once (128 MB)."""
PART = 1 << 20
"""Number of trials that are looked at together; what is computed from them is as small, wherever the trials are."""


@dataclass(frozen=True, eq=False)
class UnitSample:
    """Trials in ascending order of score, with the unit of each as its place among the units that have trials here.

    The arrays are in memory, or on disk as memory maps: only a part of them is looked at at a time.
    """

    tally: Tally
    positive: NDArray[np.bool_]
    score: Floats
    unit: NDArray[np.integer]
    units: Ints
    weight: Floats | None = None
    """The sampling weight of each trial; None: 1 each. The tally counts trials, whatever they weigh."""

    @cached_property
    def weighed(self) -> Tally:
        """The tally with the weights of its trials in place of their number."""
        if self.weight is None:
            return self.tally
        ends = _trials_below(self.tally, np.arange(len(self.tally.score) + 1))
        sums = (np.append(0.0, np.cumsum(self.weight * own))[ends] for own in (self.positive, ~self.positive))
        return Tally(self.tally.score, *sums)

    @classmethod
    def of(
        cls,
        positive: NDArray[np.bool_],
        score: Floats,
        unit: Ints,
        n_units: int,
        weight: Floats | None = None,
    ) -> UnitSample:
        """Sort trials given as arrays; `unit` counts from 0."""
        order = order_of(score)  # equal scores are one group, so their order changes nothing
        values, is_positive = score[order], positive[order]
        held = np.bincount(unit, minlength=n_units) > 0
        place = unit[order] if held.all() else (np.cumsum(held) - 1)[unit[order]]
        own = None if weight is None else weight[order]
        return cls(Tally.of_ordered(values, is_positive), is_positive, values, place, np.flatnonzero(held), own)

    @classmethod
    def stored(cls, parts: Iterable[UnitSample], units: Ints, folder: str | None) -> UnitSample:
        """Write parts into files without a name, each with higher scores than the one before, as one sample."""
        kinds: tuple[type[np.generic], ...] = (np.float64, np.int64, np.int64, np.bool_, np.float64, np.int32)
        with ExitStack() as opened:
            files = [opened.enter_context(TemporaryFile(prefix="hitmiss-", dir=folder)) for _ in kinds]
            below = [0, 0]
            for count in files[1:3]:
                count.write(bytes(8))
            for part in parts:
                counts = [
                    c[1:].astype(np.int64) + n
                    for c, n in zip((part.tally.positives, part.tally.negatives), below, strict=True)
                ]
                place = np.searchsorted(units, part.units)[part.unit]
                columns = part.tally.score, *counts, part.positive, part.score, place
                for file, kind, column in zip(files, kinds, columns, strict=True):
                    file.write(np.ascontiguousarray(column, dtype=kind).data)
                below = [int(own[-1]) for own in counts]
            for file in files:
                file.flush()
            maps: list[Array] = [np.memmap(file, kind, "r") for file, kind in zip(files, kinds, strict=True)]
        return cls(DiskTally(*maps[:3]), maps[3], maps[4], maps[5], units)

    def parts(self, start: int = 0, stop: int | None = None) -> Iterator[slice]:
        """Yield where the trials of each part are; of arrays on disk only one part is in memory at a time."""
        stop = len(self.unit) if stop is None else stop
        for first in range(start, stop, PART):
            yield slice(first, min(first + PART, stop))
            let_go(self.positive, self.score, self.unit)


# ----------------------------------------------------------------------
# Trials that memory does not hold: they are written to disk as they come, and a sample of them is put together there.

RUN = 1 << 20
"""Number of trials that are sorted and written at a time."""
STRETCH = 1 << 20
"""Number of trials that are read back at a time."""
STEP = 1 << 10
"""Every so many keys on disk, one is looked at to divide all keys into stretches."""
HIGHEST = np.uint64(2**64 - 1)
Numbers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Run:
    """Trials on disk: for each group of cells ascending keys, and the cell of each trial; where the groups end."""

    keys: Keys
    cells: Numbers
    ends: Ints

    def of(self, group: int) -> slice:
        """Return where the trials of a group are; a group that was seen later has none here."""
        ends = np.append(0, self.ends)[[min(group, len(self.ends)), min(group + 1, len(self.ends))]]
        return slice(*ends.tolist())


@dataclass(eq=False)
class StoredTrials:
    """Trials on disk, given by the keys of their scores, each with the number of its cell: one class and one unit.

    `groups` has the group of each cell. Trials of some groups are read without reading those of others.
    """

    folder: str | None
    groups: list[int] = field(default_factory=list)
    _waiting: list[tuple[Keys, Numbers]] = field(default_factory=list)
    _runs: list[_Run] = field(default_factory=list)

    def add(self, keys: Keys, cells: Numbers) -> None:
        """Take further trials, in any order."""
        self._waiting.append((keys, cells))
        if sum(len(own) for own, _ in self._waiting) >= RUN:
            self._write()

    def _write(self) -> None:
        keys, cells = (np.concatenate(columns) for columns in zip(*self._waiting, strict=True))
        self._waiting.clear()
        group = np.array(self.groups)[cells]
        order = np.lexsort((keys, group))
        maps = []
        for column in (keys[order], cells[order]):
            with TemporaryFile(prefix="hitmiss-", dir=self.folder) as file:
                file.write(column.data)
                file.flush()
                maps.append(np.memmap(file, column.dtype, "r"))
        self._runs.append(_Run(maps[0], maps[1], np.cumsum(np.bincount(group))))

    def sample(self, cells: Indices, positive: NDArray[np.bool_], unit: Ints, n_units: int) -> UnitSample:
        """Return the trials of some cells, which are all cells of their groups; with the class and unit of each cell."""
        if self._waiting:
            self._write()
        own = np.zeros((2, len(self.groups)), dtype=np.int64)
        own[:, cells] = positive, unit
        groups = np.unique(np.array(self.groups)[cells]).tolist()
        spans = [(run, span) for run in self._runs for group in groups if (span := run.of(group)).start < span.stop]
        parts = (
            UnitSample.of(own[0][cell] == 1, scores_of(keys), own[1][cell], n_units) for keys, cell in _stretches(spans)
        )
        return UnitSample.stored(parts, np.unique(unit), self.folder)


def _stretches(spans: Sequence[tuple[_Run, slice]]) -> Iterator[tuple[Keys, Numbers]]:
    """Yield the keys of spans with their cells, from low to high, some at a time; equal keys stay together."""
    seen = [np.array(run.keys[span][::STEP]) for run, span in spans]
    sizes = [np.diff(np.append(np.arange(span.start, span.stop, STEP), span.stop)) for _, span in spans]
    keys = np.concatenate(seen)
    order = np.argsort(keys, kind="stable")
    number = np.cumsum(np.concatenate(sizes)[order]) // STRETCH
    first = np.unique(np.append(keys[order][1:][np.diff(number) > 0], np.uint64(0)))
    for low, high in zip(first, np.append(first[1:] - np.uint64(1), HIGHEST), strict=True):
        found = []
        for run, span in spans:
            own = run.keys[span]
            some = slice(np.searchsorted(own, low), np.searchsorted(own, high, side="right"))
            found.append((own[some], run.cells[span][some]))
        part = np.concatenate([k for k, _ in found]), np.concatenate([c for _, c in found])
        let_go(*(array for run, _ in spans for array in (run.keys, run.cells)))
        if len(part[0]):
            yield part


def draw_units(
    unit: Ints, positive: NDArray[np.bool_], n_units: int, replicates: int, rng: Random, *, by_class: bool = True
) -> NDArray[np.uint16]:
    """Draw how often each unit is drawn (replicate × unit).

    If some unit holds both classes, units are drawn from all units; if every unit holds one class, within each class.
    Without `by_class` they are always drawn from all, which figures that depend on prevalence need.
    """
    sides = unit_sides(unit, positive, n_units)
    weights = np.zeros((replicates, n_units), dtype=np.uint16)
    mixed = not by_class or (sides == 3).any()
    groups = [np.flatnonzero(sides > 0)] if mixed else [np.flatnonzero(sides == s) for s in (1, 2)]
    for members in groups:
        n = len(members)
        step = max(1, AT_ONCE // max(n, 1))
        for start in range(0, replicates if n else 0, step):
            rows = min(step, replicates - start)
            drawn = rng.integers(0, n, size=(rows, n)) + n * np.arange(rows)[:, None]
            weights[start : start + rows, members] = np.bincount(drawn.reshape(-1), minlength=rows * n).reshape(rows, n)
    return weights


def unit_sides(unit: Ints, positive: NDArray[np.bool_], n_units: int) -> Ints:
    """Return which classes each unit holds: 1 positives, 2 negatives, 3 both, 0 none."""
    has = [np.bincount(unit[mask], minlength=n_units) > 0 for mask in (positive, ~positive)]
    return has[0] * 1 + has[1] * 2


def refuse_mixed_strata(unit: Ints, positive: NDArray[np.bool_], n_units: int, name: str) -> None:
    """Refuse to stratify by class if units hold both classes: such a unit cannot be drawn within one class."""
    mixed = int((unit_sides(unit, positive, n_units) == 3).sum())
    if mixed:
        raise DataError(
            f"cannot stratify by class while drawing whole units of {name!r}: {mixed} of {n_units} hold both classes; "
            "leave out the stratification or choose another unit"
        )


def unit_replicates(sample: UnitSample, forms: Sequence[Form], weights: Array) -> list[Floats]:
    """Return replicates of each form under unit weights (replicate × unit), as many at a time as memory allows."""
    if not sample.tally.has_both_classes:
        return [np.full(len(weights), np.nan) for _ in forms]
    cells, held = cut_for_units(sample.tally, forms), sample.units
    tables = class_tables(sample, cells)
    parts = [_some_replicates(sample, forms, cells, tables, w[:, held].astype(np.float64)) for w in _told(weights)]
    return [np.concatenate(values) for values in zip(*parts, strict=True)]


def in_chunks(weights: Array) -> Iterator[Array]:
    """Yield the replicates in parts of limited size, however many units there are."""
    step = max(1, CHUNK_VALUES // max(1, weights.shape[1]))
    return (weights[i : i + step] for i in range(0, len(weights), step))


def _told(weights: Array) -> Iterator[Array]:
    """Do the same as `in_chunks`, and report progress."""
    done = 0
    for chunk in in_chunks(weights):
        progress.report("replicates", done, len(weights))
        yield chunk
        done += len(chunk)


def weighted_totals(weights: Array, table: Array) -> Floats:
    """Return weights @ table (replicate × column), computed in parts."""
    return np.concatenate([w.astype(np.float64) @ table.astype(np.float64) for w in in_chunks(weights)])


def _some_replicates(
    sample: UnitSample, forms: Sequence[Form], cells: Cells, tables: tuple[Table, Table], weights: Floats
) -> list[Floats]:
    p, q = cell_counts(tables, weights)
    # With few units a replicate may contain one class only; its figures are undefined.
    empty = (p.sum(axis=1) == 0) | (q.sum(axis=1) == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        search, stretches = begin_search(cells, p, q, forms)
        _look_inside(sample, search, stretches, weights)
        drawn = ByUnits(sample, cells, p, q, search, weights)
        values = [form.replicates(drawn) for form in forms]
    return [np.where(empty, np.nan, v) for v in values]


def class_tables(sample: UnitSample, cells: Cells) -> tuple[Table, Table]:
    """Return how many positives and negatives each unit has in each cell; sparse if the table would be large."""
    starts, shape = _trials_below(sample.tally, cells.cuts), (len(sample.units), len(cells))
    counted = [_count_sparse, _count][shape[0] * shape[1] <= CHUNK_VALUES]
    found: list[Table] = []
    for part in sample.parts():
        inside: Ints = np.clip(starts, part.start, part.stop)
        cell = np.repeat(np.arange(len(cells)), np.diff(inside))
        unit, positive = sample.unit[part].astype(np.intp), sample.positive[part]
        weight = None if sample.weight is None else sample.weight[part]
        more = [
            counted(unit[mask], cell[mask], shape, None if weight is None else weight[mask])
            for mask in (positive, ~positive)
        ]
        found = [one + other for one, other in zip(found, more, strict=True)] if found else more
    return found[0], found[1]


def _count(unit: Ints, cell: Ints, shape: tuple[int, int], weight: Floats | None) -> Table:
    found = np.bincount(unit * shape[1] + cell, weights=weight, minlength=shape[0] * shape[1])
    return found.reshape(shape).astype(np.float64)


def _count_sparse(unit: Ints, cell: Ints, shape: tuple[int, int], weight: Floats | None) -> Table:
    from scipy.sparse import coo_array

    return coo_array((np.ones(len(unit)) if weight is None else weight, (unit, cell)), shape=shape).tocsr()


def cell_counts(tables: tuple[Table, Table], weights: Floats) -> tuple[Floats, Floats]:
    """Return positives and negatives per cell (replicate × cell) under unit weights."""
    return np.asarray(weights @ tables[0]), np.asarray(weights @ tables[1])


PARTS = 8
"""An open stretch is divided into this many parts, so that few trials of it must be looked at one by one."""
FEW = 64
"""A stretch of at most this many distinct scores is not divided any further."""
MANY = 4096
"""… unless it holds more trials than this, many of which have equal scores."""
OPEN_AT_ONCE = 1 << 19
"""Number of parts of stretches, or of trials inside them, that are examined at a time."""


def _look_inside(sample: UnitSample, search: Search, s: Stretches, weights: Floats) -> None:
    """Examine open stretches: first the ends of parts of them, then every point inside the parts that still matter.

    Those that are open in most replicates come first: lower costs that are found early rule out others.
    """
    few = (s.high - s.low <= FEW) & (_trials_below(sample.tally, s.high) - _trials_below(sample.tally, s.low) <= MANY)
    _settle(sample, search, s.keep(few), weights)
    s = s.keep(~few)
    place, open_in = np.unique(s.low, return_inverse=True, return_counts=True)[1:]
    s = s.keep(np.lexsort((place, -open_in[place])))
    for start in range(0, len(s), OPEN_AT_ONCE // PARTS):
        some = s.keep(slice(start, start + OPEN_AT_ONCE // PARTS))
        parts = _divided(sample, some.keep(search.matters(some)), weights)
        search.note_point(parts, parts.cp + parts.p, parts.cn + parts.q)
        _look_inside(sample, search, search.unsettled(parts), weights)


def _divided(sample: UnitSample, s: Stretches, weights: Floats) -> Stretches:
    """Divide stretches into parts and count their trials; stretches of several replicates with equal ends are adjacent."""
    begins = np.flatnonzero(np.append(True, s.low[1:] != s.low[:-1])[: len(s)])
    cuts = s.low[begins, None] + (s.high - s.low)[begins, None] * np.arange(PARTS + 1) // PARTS
    trials = _trials_below(sample.tally, cuts)
    # Counts below 2^24 are exact in single precision, which takes half the time.
    exact = float(s.cp.max(initial=0.0) + s.cn.max(initial=0.0) + (s.p + s.q).max(initial=0.0)) < 2.0**24
    whole = sample.weight is None and bool((weights == np.floor(weights)).all())
    kind = np.float32 if exact and whole else np.float64
    light: Array = weights.astype(kind)
    inside = np.empty((len(s), 2 * PARTS))
    # Stretch by stretch for all its replicates: how many trials each unit has in each part, weighted by one product.
    for i, (first, last) in enumerate(pairwise([*begins.tolist(), len(s)])):
        held, table = _part_table(sample, trials[i])
        drawn = s.replicate[first:last]
        rows = light[drawn] if held is None else light[drawn[:, None], held]
        inside[first:last] = rows @ table.astype(kind)
    p, q = (np.ascontiguousarray(inside[:, k : k + PARTS]) for k in (0, PARTS))
    earlier = np.triu(np.ones((PARTS, PARTS)), 1)  # sums of short rows are faster as a product
    of = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(s))))
    before = (own[:, None] + counts @ earlier for own, counts in ((s.cp, p), (s.cn, q)))
    parts = (np.repeat(s.replicate, PARTS), cuts[of, :-1], cuts[of, 1:], *before, p, q)
    return Stretches(*(np.ravel(part) for part in parts))


def _part_table(sample: UnitSample, starts: Ints) -> tuple[Ints | None, Array]:
    """Return the units with trials in a stretch, and how many positives and negatives each has in its parts.

    None for all units. `starts` are the places of the first trials of the parts, and the end.
    """
    held = None
    if 4 * (starts[-1] - starts[0]) < len(sample.units):  # most units have no trial here
        held = np.unique(sample.unit[starts[0] : starts[-1]])
    n = len(sample.units) if held is None else len(held)
    table = np.zeros(n * 2 * PARTS, dtype=np.int64 if sample.weight is None else np.float64)
    for some in sample.parts(int(starts[0]), int(starts[-1])):
        unit = sample.unit[some].astype(np.intp) if held is None else np.searchsorted(held, sample.unit[some])
        inside: Ints = np.clip(starts, some.start, some.stop)
        part = np.repeat(np.arange(PARTS), np.diff(inside))
        weight = None if sample.weight is None else sample.weight[some]
        table += np.bincount((2 * unit + ~sample.positive[some]) * PARTS + part, weight, len(table))
    return held, table.reshape(n, 2 * PARTS)


def _settle(sample: UnitSample, search: Search, s: Stretches, weights: Floats) -> None:
    """Record every point inside stretches, those of similar width together."""
    width = np.ceil(np.log2(np.maximum(s.high - s.low, 1)))
    for one in np.unique(width):
        alike = s.keep(width == one)
        ends = np.cumsum(_trials_below(sample.tally, alike.high) - _trials_below(sample.tally, alike.low))
        for start, stop in pairwise([*np.searchsorted(ends, np.arange(0, ends[-1], OPEN_AT_ONCE)), len(alike)]):
            some = alike.keep(slice(start, stop))
            search.note_inside(some, *_points_inside(sample, some, weights))


def _points_inside(sample: UnitSample, s: Stretches, weights: Floats) -> tuple[Floats, Floats]:
    """Return the positives and negatives up to every point inside stretches (stretch × point).

    The end of a stretch with fewer points is repeated.
    """
    groups = s.high - s.low
    width = int(groups.max())
    row, group = _numbered(groups)
    place, score = row * width + group, s.low[row] + group
    first = _trials_below(sample.tally, score)
    at, within = _numbered(_trials_below(sample.tally, score + 1) - first)  # the trials with each of these scores
    trial, place = first[at] + within, place[at]
    drawn = weights.take(s.replicate[row[at]] * weights.shape[1] + sample.unit[trial])
    if sample.weight is not None:
        drawn = drawn * sample.weight[trial]
    accepted = drawn * sample.positive[trial]
    let_go(sample.unit, sample.positive)
    both = []
    for own, before in ((accepted, s.cp), (drawn - accepted, s.cn)):
        counts = np.asarray(np.bincount(place, own, len(s) * width), dtype=np.float64).reshape(len(s), width)
        counts[:, 0] += before
        both.append(np.cumsum(counts, axis=1, out=counts))
    return both[0], both[1]


def _numbered(sizes: Ints) -> tuple[Ints, Ints]:
    """Return, for the members of groups of these sizes, the group and the number within it.

    >>> [a.tolist() for a in _numbered(np.array([2, 0, 3]))]
    [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    of = np.repeat(np.arange(len(sizes)), sizes)
    return of, np.arange(len(of)) - (np.cumsum(sizes) - sizes)[of]


def _trials_below(tally: Tally, group: Ints) -> Ints:
    """Return how many trials have a lower score than these distinct scores."""
    return (tally.positives[group] + tally.negatives[group]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ByUnits:
    """Replicates by units in the form of `forms.Drawn`: counts per cell, the search, and the unit weights."""

    sample: UnitSample
    cells: Cells
    p: Floats
    q: Floats
    search: Search
    weights: Floats

    def searched(self, form: Located) -> Floats:
        """See `forms.Drawn`."""
        return self.search.replicates(form)

    def counts_at(self, threshold: float) -> tuple[Floats, Floats, Floats, Floats]:
        """See `forms.Drawn`."""
        return counts_at(threshold, self.cells, self.p, self.q)

    def class_sums(self, form: ClassSums) -> tuple[Floats, Floats, Floats, Floats]:
        """See `forms.Drawn`."""
        positive = _unit_sum(self.sample, True, form.positive, self.weights)
        negative = _unit_sum(self.sample, False, form.negative, self.weights)
        return positive, self.p.sum(axis=1), negative, self.q.sum(axis=1)

    def pair_share(self) -> Floats:
        """See `forms.Drawn`."""
        return ordered_pairs(self.cells, self.p, self.q, None)

    def whole(self, form: Whole) -> Floats:
        """See `forms.Drawn`."""
        finely = cut_finely(self.sample.tally)
        weighed = Cells(self.sample.weighed, finely.cuts)
        return read_whole(form, weighed, *cell_counts(class_tables(self.sample, finely), self.weights))


def _unit_sum(sample: UnitSample, is_positive: bool, term: Callable[[Floats], Floats], weights: Floats) -> Floats:
    """Return Σ term(score) over one class: a sum per unit, then a weighted sum of units.

    Infinite terms count separately.
    """
    total, infinite = np.zeros(len(sample.units)), np.zeros(len(sample.units))
    for part in sample.parts():
        own = sample.positive[part] == is_positive
        values, unit = term(sample.score[part][own]), sample.unit[part][own]
        if sample.weight is not None:
            values = values * sample.weight[part][own]
        certain = np.isfinite(values)
        np.add.at(total, unit[certain], values[certain])  # in ascending order of score, whatever the parts are
        np.add.at(infinite, unit[~certain], 1.0)
    return np.where(weights @ infinite > 0, np.inf, weights @ total) if infinite.any() else weights @ total
