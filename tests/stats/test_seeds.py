"""Generators depend on the seed and on what is drawn, and on nothing else: not on numpy's version either.

The second half of the file holds the algorithms once more in plain Python integers and floats, from the seeding of PCG64
to the binomial, written from their papers. `HITMISS_NUMPY` may name the Python of another environment (another numpy):
then its draws are compared as well.
"""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys

import numpy as np
import pytest

from hitmiss.core.errors import UsageError
from hitmiss.stats.random import generator

DRAW = "from hitmiss.stats.random import generator; print(generator(7, 'eer', 'C01').integers(2**62, size=4).tolist())"


def numbers(seed: int, *names: object) -> list[int]:
    return generator(seed, *names).integers(2**62, size=4).tolist()


def test_same_seed_and_names_give_the_same_digits() -> None:
    assert numbers(0, "eer", "C01") == numbers(0, "eer", "C01")


@pytest.mark.parametrize("other", [(1, "eer", "C01"), (0, "eer", "C02"), (0, "eer"), (0, "C01", "eer"), (0, "eerC01")])
def test_another_seed_or_name_gives_other_digits(other: tuple[int, ...]) -> None:
    assert numbers(*other) != numbers(0, "eer", "C01")


def test_a_seed_below_zero_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        generator(-1, "eer")
    assert refused.value.code == "out-of-range"


def test_what_was_drawn_before_does_not_matter() -> None:
    alone = numbers(3, "b")
    generator(3, "a").random(1000)
    np.random.default_rng(0).random(10)
    assert numbers(3, "b") == alone


def test_another_process_draws_the_same() -> None:
    """Python's own `hash` of text differs from process to process; the generator must not lean on it."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", DRAW],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": h},
        )
        for h in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout == f"{numbers(7, 'eer', 'C01')}\n"


def test_named_streams_are_uncorrelated() -> None:
    streams = np.array([generator(0, "codec", k).standard_normal(2000) for k in range(20)])
    correlation = np.corrcoef(streams)[np.triu_indices(20, 1)]
    assert np.abs(correlation).max() < 4.5 / np.sqrt(2000)


# In plain Python.

MASK32, MASK64, MASK128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1


def seed_words(entropy: list[int], n: int) -> list[int]:
    """O'Neill's seed_seq with a pool of four words, as numpy's SeedSequence; `n` words of 32 bits."""
    constant = 0x43B0D7E5

    def hashed(value: int) -> int:
        nonlocal constant
        value ^= constant
        constant = constant * 0x931E8875 & MASK32
        value = value * constant & MASK32
        return value ^ value >> 16

    def mixed(x: int, y: int) -> int:
        value = (0xCA01F9DD * x - 0x4973F715 * y) & MASK32
        return value ^ value >> 16

    pool = [hashed(entropy[i] if i < len(entropy) else 0) for i in range(4)]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = mixed(pool[target], hashed(pool[source]))
    for extra in entropy[4:]:
        for target in range(4):
            pool[target] = mixed(pool[target], hashed(extra))
    constant, words = 0x8B51F9DD, []
    for i in range(n):
        value = pool[i % 4] ^ constant
        constant = constant * 0x58F38DED & MASK32
        value = value * constant & MASK32
        words.append(value ^ value >> 16)
    return words


class Plain:
    """PCG64 (XSL-RR, 128 bits of state) and what `Random` draws from it."""

    def __init__(self, seed: int, *names: object) -> None:
        digest = hashlib.sha256("\x1f".join(map(str, names)).encode()).digest()
        entropy = [seed, *(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 32, 4))]
        w = seed_words(entropy, 8)
        quarter = [w[2 * i] | w[2 * i + 1] << 32 for i in range(4)]
        self.step = (quarter[2] << 64 | quarter[3]) << 1 & MASK128 | 1
        self.state = self.step + (quarter[0] << 64 | quarter[1]) & MASK128
        self.advance()
        self.halves: list[int] = []

    def advance(self) -> None:
        self.state = self.state * 0x2360ED051FC65DA44385DF649FCCF645 + self.step & MASK128

    def word(self) -> int:
        self.advance()
        value, turn = (self.state >> 64 ^ self.state) & MASK64, self.state >> 122
        return value >> turn | value << (64 - turn) & MASK64

    def half(self) -> int:
        if not self.halves:
            word = self.word()
            self.halves = [word & MASK32, word >> 32]
        return self.halves.pop(0)

    def fraction(self) -> float:
        return (self.word() >> 11) * 2.0**-53

    def below(self, bound: int) -> int:
        while bound > 1:
            product = self.half() * bound
            if product & MASK32 >= (1 << 32) % bound:
                return product >> 32
        return 0

    def binomial(self, n: int, p: float) -> int:
        if p > 0.5:
            return n - self.binomial(n, 1.0 - p)
        return self.inverted(n, p) if n * p <= 30.0 else self.btpe(n, p)

    def inverted(self, n: int, p: float) -> int:
        """The distribution function is walked up from 0, and begun again beyond ten deviations."""
        q = 1.0 - p
        first = math.exp(n * math.log(q))
        bound = int(min(float(n), n * p + 10.0 * math.sqrt(n * p * q + 1)))
        k, weight, u = 0, first, self.fraction()
        while u > weight:
            k += 1
            if k > bound:
                k, weight, u = 0, first, self.fraction()
            else:
                u -= weight
                weight = (n - k + 1) * p * weight / (k * q)
        return k

    def btpe(self, n: int, p: float) -> int:
        """Kachitvichyanukul & Schmeiser 1988, "Binomial random variate generation", steps 0 to 6."""
        q = 1.0 - p
        mode, spread = math.floor(n * p + p), n * p * q
        p1 = math.floor(2.195 * math.sqrt(spread) - 4.6 * q) + 0.5
        centre = mode + 0.5
        left, right = centre - p1, centre + p1
        c = 0.134 + 20.5 / (15.3 + mode)
        a = (n * p + p - left) / (n * p + p - left * p)
        slope_left = a * (1.0 + a / 2.0)
        a = (right - (n * p + p)) / (right * q)
        slope_right = a * (1.0 + a / 2.0)
        p2 = p1 * (1.0 + 2.0 * c)
        p3 = p2 + c / slope_left
        p4 = p3 + c / slope_right
        while True:
            u, v = self.fraction() * p4, self.fraction()
            if u <= p1:
                return math.floor(centre - p1 * v + u)
            if u <= p2:
                x = left + (u - p1) / c
                v = v * c + 1.0 - abs(mode - x + 0.5) / p1
                if v > 1.0:
                    continue
                y = math.floor(x)
            elif u <= p3:
                y = math.floor(left + math.log(v) / slope_left)
                if y < 0 or v == 0.0:
                    continue
                v = v * (u - p2) * slope_left
            else:
                y = math.floor(right - math.log(v) / slope_right)
                if y > n or v == 0.0:
                    continue
                v = v * (u - p3) * slope_right
            if math.log(v) <= self.log_ratio(n, p, mode, y) if v > 0.0 else True:
                return y

    @staticmethod
    def log_ratio(n: int, p: float, mode: int, y: int) -> float:
        """Log of how much less likely y is than the mode."""
        of = [math.lgamma(k + 1) + math.lgamma(n - k + 1) for k in (mode, y)]
        return of[0] - of[1] + (y - mode) * math.log(p / (1.0 - p))

    def multinomial(self, n: int, odds: list[float]) -> list[int]:
        counts, share = [0] * len(odds), 1.0
        for k, p in enumerate(odds[:-1]):
            if n > 0 and p > 0.0:
                counts[k] = self.binomial(n, p / share)
            n, share = n - counts[k], share - p
        counts[-1] = n
        return counts


def test_the_words_are_those_of_pcg64() -> None:
    plain = Plain(7, "eer", "C01")
    assert generator(7, "eer", "C01").raw(50).tolist() == [plain.word() for _ in range(50)]


@pytest.mark.parametrize("bound", [1, 2, 3, 1000, 2**31 + 1, 3 * 2**30, 2**32])
def test_whole_numbers_are_lemires(bound: int) -> None:
    ours, plain = generator(1, bound), Plain(1, bound)
    for size in (1, 7, 40):  # odd sizes leave half a word to the next draw
        assert ours.integers(0, bound, size=size).tolist() == [plain.below(bound) for _ in range(size)]


def test_many_whole_numbers_are_lemires_too() -> None:
    """More than one block, with a bound that rejects every second product."""
    ours, plain = generator(2, "many"), Plain(2, "many")
    assert ours.integers(2**31 + 1, size=70_000).tolist() == [plain.below(2**31 + 1) for _ in range(70_000)]


def test_a_bound_for_each() -> None:
    ours, plain = generator(3), Plain(3)
    bounds = [1, 5, 1, 2, 9, 1000]
    assert ours.integers(0, np.array(bounds)).tolist() == [plain.below(b) for b in bounds]


@pytest.mark.parametrize(("n", "p"), [(5, 0.3), (40, 0.9), (1000, 0.02), (200, 0.5), (100_000, 0.37), (10**7, 0.999)])
def test_binomials_are_by_inversion_and_by_btpe(n: int, p: float) -> None:
    ours, plain = generator(4, n, p), Plain(4, n, p)
    assert ours.binomial(n, p, size=300).tolist() == [plain.binomial(n, p) for _ in range(300)]


@pytest.mark.parametrize("n", [0, 3, 1000, 250_000])
@pytest.mark.parametrize("odds", [[0.1, 0.0, 0.25, 0.4, 0.0, 0.25], [0.0, 0.5, 0.5, 0.0], [1.0]])
def test_multinomials_are_a_chain_of_binomials(n: int, odds: list[float]) -> None:
    ours, plain = generator(5, n), Plain(5, n)
    drawn = ours.multinomial(n, np.array(odds), size=50)
    assert drawn.tolist() == [plain.multinomial(n, odds) for _ in range(50)]


def test_multinomials_of_unlike_totals_come_one_by_one() -> None:
    totals, odds = [100, 3, 0, 5000, 40], [0.5, 0.0, 0.2, 0.3]
    ours, plain = generator(6), Plain(6)
    assert ours.multinomial(np.array(totals), np.array(odds)).tolist() == [plain.multinomial(n, odds) for n in totals]


def test_coins_bytes_and_orders() -> None:
    ours, plain = generator(8), Plain(8)
    assert ours.bytes(11) == (plain.word() | plain.word() << 64).to_bytes(16, "little")[:11]
    word = plain.word().to_bytes(8, "little")
    assert ours.heads(20).tolist() == [bool(word[i // 8] >> (7 - i % 8) & 1) for i in range(20)]
    words = [plain.word() for _ in range(30)]
    assert ours.permutation(30).tolist() == sorted(range(30), key=lambda i: words[i])


SCRIPT = """
from hitmiss.stats.random import generator
import hashlib, numpy as np
r = generator(9, "versions")
parts = [r.multinomial(10**6, np.full(50, 0.02), size=40), r.binomial(np.arange(500), 0.3), r.integers(777, size=999),
         np.round(r.standard_normal(500), 12), r.choice(5, size=99, p=[0.1, 0.2, 0.3, 0.2, 0.2]), r.random(9), r.permutation(99)]
print(hashlib.sha256(b"".join(np.asarray(p, dtype="<f8").tobytes() for p in parts)).hexdigest())
"""


@pytest.mark.skipif("HITMISS_NUMPY" not in os.environ, reason="HITMISS_NUMPY names no Python with another numpy")
def test_another_numpy_draws_the_same() -> None:
    runs = [
        subprocess.run([python, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
        for python in (sys.executable, os.environ["HITMISS_NUMPY"])
    ]
    assert runs[0] == runs[1]
