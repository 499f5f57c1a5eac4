"""Attacks that only ask the model for answers: a random search of our own, and what HopSkipJump (`hop_skip_jump`) needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hitmiss.attack.gradient import within_budget
from hitmiss.errors import UsageError

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Margin = Callable[[NDArray[np.int64], Floats], Floats]
"""Records (by place) and changed signals to how far each is from success; 0 or less has succeeded."""

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "random_search": {"eps_max": 0.05, "queries": 200},
    "hop_skip_jump": {"eps_max": 1.0, "iterations": 10, "evaluations": 100},
}
MOST_CLASSES: Final = 12


def margins(
    log_odds: Floats, threshold: Floats, clean: NDArray[Any], target: NDArray[np.int64], value: Floats
) -> Floats:
    """How far records are from success: the nearest bit to the other side, or the target bit to its aim.

    >>> margins(np.array([[2.0, -0.5]]), np.zeros(2), np.array([[1, 0]]), np.array([-1]), np.zeros(1)).tolist()
    [0.5]
    """
    away = log_odds - threshold
    nearest = np.where(clean == 1, away, -away).min(axis=1)
    at = away[np.arange(len(away)), np.maximum(target, 0)]
    return np.where(target < 0, nearest, np.where(value > 0.5, -at, at))


def random_search(
    x: Floats,
    margin: Margin,
    budget: Floats,
    window: Floats,
    rngs: Sequence[Generator],
    *,
    queries: int = 200,
    shape: Callable[[Floats], Floats] = lambda delta: delta,
) -> tuple[Floats, int]:
    """Changes within an L∞ budget, found by trying: one lead's stretch at a time is set to ±budget, and kept if it helps.

    In the manner of the Square attack (Andriushchenko et al. 2020), for signals. Every record draws from its own generator;
    a record that has succeeded asks no more. The second figure is how many answers were asked for.
    """
    n, samples, leads = x.shape

    def change(rows: Any, field: Floats) -> Floats:
        return within_budget(shape(field) * window[rows], budget[rows], "linf")  # derived leads may be over it

    signs = np.stack([_stripes(rng, samples, leads) for rng in rngs])
    field = signs * budget[:, None, None]
    rows = np.arange(n)
    best = margin(rows, x + change(rows, field))
    n_queries = n
    for query in range(queries - 1):
        rows = np.flatnonzero(best > 0)
        if not len(rows):
            break
        tried = field[rows].copy()
        for i, at in enumerate(rows.tolist()):
            _patch(tried[i], rngs[at], budget[at], query / queries)
        found = margin(rows, x[rows] + change(rows, tried))
        n_queries += len(rows)
        better = found < best[rows]
        field[rows[better]], best[rows[better]] = tried[better], found[better]
    return change(np.arange(n), field), n_queries


def _stripes(rng: Generator, samples: int, leads: int) -> Floats:
    """A start: stretches of random sign in each lead."""
    size = max(samples // 20, 1)
    signs = rng.choice([-1.0, 1.0], (-(-samples // size), leads))
    return np.repeat(signs, size, axis=0)[:samples]


def _patch(field: Floats, rng: Generator, budget: float, progress: float) -> None:
    """Set a stretch of one lead to plus or minus the budget; stretches shorten as the search goes on."""
    samples, leads = field.shape
    share = 0.3 * (1.0 - progress) ** 2 + 0.01
    size = max(int(share * samples), 1)
    start, lead = int(rng.integers(samples - size + 1)), int(rng.integers(leads))
    field[start : start + size, lead] = budget * rng.choice([-1.0, 1.0])


def to_pattern(bits: Any) -> NDArray[np.int64]:
    """Bits (record × class) as the number of their pattern.

    >>> to_pattern([[1, 0, 1], [0, 0, 0]]).tolist()
    [5, 0]
    """
    rows = np.atleast_2d(np.asarray(bits)).astype(np.int64)
    if rows.shape[1] > MOST_CLASSES:
        raise UsageError(f"the powerset of {rows.shape[1]} classes is too large; at most {MOST_CLASSES}")
    return np.asarray(rows @ (1 << np.arange(rows.shape[1])))


def powerset(bits: Any) -> Floats:
    """Bits as one-hot rows over all 2^C patterns: what ART takes for the probabilities of classes."""
    rows = np.atleast_2d(np.asarray(bits))
    return np.eye(1 << rows.shape[1], dtype=np.float64)[to_pattern(rows)]
