"""Random draws that depend only on the seed and on what is drawn.

They never depend on order, thread count, machine or numpy version. numpy promises an unchanging stream for only two
things: the raw words of a named bit generator, and the methods of `RandomState`, which is frozen (NEP 19, "Legacy random
generation" in numpy's manual). The methods of `Generator` may change with any release, and have changed. So `Random`
builds everything that the statistics draw from these two sources:

    raw            64-bit words of PCG64, as they come
    random         the upper 53 bits of a word, as a fraction                                    (RandomState)
    bytes          the words, lowest byte first; `integers` takes their lower, then their upper 32 bits
    integers       Lemire's multiply and shift, with rejection: exactly uniform                  (here)
    permutation    the order of as many words, equal words by place                              (here)
    binomial       inversion below np = 30, else BTPE (Kachitvichyanukul & Schmeiser 1988)       (RandomState)
    multinomial    one binomial per category, of what the categories before it left              (RandomState)
    standard_normal, choice with odds                                                            (RandomState)

`tests/stats/test_seeds.py` holds the same algorithms in plain Python, from the PCG64 recurrence on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.random import PCG64, BitGenerator, Generator, RandomState, SeedSequence
from numpy.typing import NDArray

from hitmiss.core.errors import UsageError
from hitmiss.core.sorting import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Table: TypeAlias = Floats | csr_array


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
        kept, draw = odds[likely], super().multinomial

        def one(total: int, times: int | None = None) -> NDArray[np.generic]:
            if total == 0:  # numpy 2.5 takes a word to draw nothing, earlier versions take none
                return np.zeros((len(kept),) if times is None else (times, len(kept)), dtype=np.int64)
            return draw(total, kept, size=times)

        if isinstance(n, int | np.integer):
            drawn = np.asarray(one(int(n), size), dtype=np.int64)
        elif len(n) and (n == n[0]).all():  # the same draws as one by one, in a single call
            drawn = np.asarray(one(int(n[0]), len(n)), dtype=np.int64)
        else:
            drawn = np.array([one(total) for total in n.tolist()], dtype=np.int64).reshape(len(n), len(kept))
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

    Its output is written to files and certified there by a digest; it is never drawn again to check a number. So it
    need not be the same in every version of numpy.
    """
    return np.random.default_rng(_sequence(seed, names))


def _sequence(seed: int, names: Sequence[object]) -> SeedSequence:
    if seed < 0:
        raise UsageError.of("out-of-range/least", name="a seed", least=0, found=seed)
    text = "\x1f".join(map(str, names)).encode()
    words = np.frombuffer(hashlib.sha256(text).digest(), dtype="<u4")
    return SeedSequence([seed, *(int(w) for w in words)])
