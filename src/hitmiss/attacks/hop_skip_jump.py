"""HopSkipJump through ART (an extra): the smallest change of a record that flips a bit, found by queries only.

ART's attacks assume one class per record. The label-powerset view makes every pattern of bits a class of its own (2⁵
= 32 for five diagnoses), so that "another class" is exactly "any bit changed".

ART searches for the smallest flip and has no budget, takes its first guess from a generator that cannot be seeded,
and stops in the middle of a step. So the first guess is made here, and after each ART step the change is moved back
along the line to the clean record until it only just flips. The smallest such change is the result if it fits the
budget. Otherwise it is scaled down to the budget; whether it then still flips is decided by the model afterwards, as
for every attack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from hitmiss.attacks.criteria import Bits
from hitmiss.attacks.methods import Floats
from hitmiss.attacks.queries import powerset
from hitmiss.detection.detector import need

SIZES: Final = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Sizes of first guesses: white noise with these multiples of the record's own deviation."""
TRIES: Final = 20
"""First guesses of each size."""
HALVINGS: Final = 12
BEYOND: Final = 1.001
"""How far beyond the boundary the result lies, so that rounding in another batch does not undo the flip."""
OVER: Final = (
    "hop_skip_jump: where the smallest flip found is over the budget, it is scaled down to it and judged as that"
)
NO_START: Final = "hop_skip_jump: where no noise flips a record, it is left as it is"


@dataclass(frozen=True, eq=False)
class RecordUnderAttack:
    """One record: its signal, how a field becomes a change, the model's answers, the budget, and its generator."""

    x: Floats
    shape: Callable[[Floats], Floats]
    """Maps a free change (… × sample × lead) to the change of the signal: windowed, leads derived."""
    bits_of: Callable[[Floats], Bits]
    budget: float
    rng: Generator

    def bits(self, free: Floats) -> Bits:
        """Return the model's bits for the record with free changes."""
        return self.bits_of(self.x + self.shape(free))

    def size(self, free: Floats) -> float:
        """Return the L2 norm of the change of the signal."""
        return float(np.linalg.norm(self.shape(free)))


def hop_skip_jump(aim: RecordUnderAttack, *, iterations: int, evaluations: int, early_stop: bool) -> tuple[Floats, str]:
    """Return the change of one record, within its budget, and a remark ("" if the smallest flip found fits).

    Uses ART's HopSkipJump (Chen, Jordan & Wainwright 2020) in its L2 form. `early_stop`: stop once a flip fits the
    budget.
    """
    clean = aim.bits(np.zeros_like(aim.x)[None])[0]

    def flips(free: Floats) -> NDArray[np.bool_]:
        return np.asarray((aim.bits(free) != clean).any(axis=1))

    start = _start(aim, flips)
    if start is None:
        return np.zeros_like(aim.x), NO_START
    best = start
    for found in _steps(aim, start, iterations, evaluations):
        nearest = _nearest(found, flips)
        best = nearest if aim.size(nearest) < aim.size(best) else best
        if early_stop and aim.size(best) * BEYOND <= aim.budget:
            break
    beyond = best * BEYOND
    best = beyond if aim.size(beyond) <= aim.budget and flips(beyond[None])[0] else best
    size = aim.size(best)
    return (aim.shape(best), "") if size <= aim.budget else (aim.shape(best) * (aim.budget / size), OVER)


def _start(aim: RecordUnderAttack, flips: Callable[[Floats], NDArray[np.bool_]]) -> Floats | None:
    """Find noise of the smallest size that flips the record, moved back until it only just does."""
    scale = float(aim.x.std()) or 1.0
    for size in SIZES:
        tried = size * scale * aim.rng.standard_normal((TRIES, *aim.x.shape))
        hit = np.flatnonzero(flips(tried))
        if len(hit):
            return _nearest(tried[hit[0]], flips)
    return None


def _nearest(free: Floats, flips: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """Shrink a change that flips until it only just does."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if flips(middle * free[None])[0] else (middle, high)
    return high * free


def _steps(aim: RecordUnderAttack, start: Floats, iterations: int, evaluations: int) -> Iterator[Floats]:
    """Yield ART's results, one of its iterations after another."""
    estimators = need("art.estimators.classification", "art")
    evasion = need("art.attacks.evasion", "art")
    clean, bound = aim.x.astype(np.float32)[None], float(np.abs(aim.x).max()) * 4.0 + 1.0

    def predict(batch: ArrayLike) -> Floats:
        return powerset(aim.bits(np.asarray(batch, dtype=np.float64) - aim.x))

    classes = powerset(aim.bits(np.zeros_like(aim.x)[None])).shape[1]
    wrapped = estimators.BlackBoxClassifier(predict, aim.x.shape, classes, clip_values=(-bound, bound))
    attack = evasion.HopSkipJump(
        wrapped, norm=2, max_iter=1, max_eval=evaluations * 10, init_eval=evaluations, verbose=False
    )
    seed, found = int(aim.rng.integers(2**31)), start
    for step in range(iterations):
        with _seeded((seed + step) % 2**32):
            given = (aim.x + found).astype(np.float32)[None]
            found = attack.generate(clean, x_adv_init=given, resume=step > 0)[0].astype(np.float64) - aim.x
        yield found


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed numpy's global generator, from which ART draws, and restore it afterwards."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
