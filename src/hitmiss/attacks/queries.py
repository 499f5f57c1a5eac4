"""Attacks that only query the model: random searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from hitmiss.attacks.criteria import Bits
from hitmiss.attacks.gradient import within_budget
from hitmiss.attacks.methods import Floats
from hitmiss.core.errors import UsageError

Margin = Callable[[NDArray[np.int64], Floats], Floats]
"""Maps records (by position) and changed signals to the distance of each from success; 0 or less has succeeded."""
BLACKBOX_SETTINGS: Final[dict[str, dict[str, float | int]]] = {
    "random_search": {"eps_max": 0.05, "queries": 200},
    "square": {"eps_max": 0.05, "queries": 500, "share": 0.8},
    "worst_case": {"eps_max": 0.05, "steps": 50, "restarts": 3, "queries": 500},
    "hop_skip_jump": {"eps_max": 1.0, "iterations": 10, "evaluations": 100},
}
MOST_CLASSES: Final = 12


def margins(log_odds: Floats, threshold: Floats, clean: Bits, target: NDArray[np.int64], value: Floats) -> Floats:
    """Return how far records are from success: the bit nearest to its threshold, or the target bit.

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
    share: float | None = None,
    shape: Callable[[Floats], Floats] = lambda delta: delta,
) -> tuple[Floats, int]:
    """Find changes within an L∞ budget by random search: set one segment at a time to ±budget, and keep it if it helps.

    With `share` it is the Square attack (Andriushchenko et al. 2020, algorithm 2): a segment covers all leads, each
    with its own sign, starts as that share of the record and shrinks as published. Without `share`, a segment covers
    one lead. Every record draws from its own generator; a record that has succeeded makes no more queries. The second
    result is the number of queries.
    """
    n, samples, leads = x.shape

    def change(rows: NDArray[np.int64], field: Floats) -> Floats:
        return within_budget(shape(field) * window[rows], budget[rows], "linf")  # derived leads may exceed it

    width = max(samples // 20, 1) if share is None else 1
    signs = np.stack([_stripes(rng, samples, leads, width) for rng in rngs])
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
            if share is None:
                _patch(tried[i], rngs[at], budget[at], query / queries)
            else:
                _square(tried[i], rngs[at], budget[at], share * halved_share(query, queries))
        found = margin(rows, x[rows] + change(rows, tried))
        n_queries += len(rows)
        better = found < best[rows]
        field[rows[better]], best[rows[better]] = tried[better], found[better]
    return change(np.arange(n), field), n_queries


def _stripes(rng: Generator, samples: int, leads: int, size: int) -> Floats:
    """Return a start: segments of random sign in each lead."""
    signs = rng.choice([-1.0, 1.0], (-(-samples // size), leads))
    return np.repeat(signs, size, axis=0)[:samples]


def _patch(field: Floats, rng: Generator, budget: float, progress: float) -> None:
    """Set a segment of one lead to plus or minus the budget; segments shorten as the search goes on."""
    samples, leads = field.shape
    share = 0.3 * (1.0 - progress) ** 2 + 0.01
    size = max(int(share * samples), 1)
    start, lead = int(rng.integers(samples - size + 1)), int(rng.integers(leads))
    field[start : start + size, lead] = budget * rng.choice([-1.0, 1.0])


def _square(field: Floats, rng: Generator, budget: float, share: float) -> None:
    """Set a segment of all leads to plus or minus the budget, with one sign per lead."""
    samples, leads = field.shape
    size = min(max(round(share * samples), 1), samples)
    start = int(rng.integers(samples - size + 1))
    field[start : start + size] = budget * rng.choice([-1.0, 1.0], leads)


def halved_share(query: int, queries: int) -> float:
    """Return the current share of the first segment: halved after 10, 50, 200, … of every 10,000 queries, as published.

    >>> halved_share(0, 10000), halved_share(60, 10000), halved_share(9000, 10000)
    (1.0, 0.25, 0.00390625)
    """
    scaled = query * 10000 // queries
    return 0.5 ** sum(scaled > at for at in (10, 50, 200, 1000, 2000, 4000, 6000, 8000))


def to_pattern(bits: ArrayLike) -> NDArray[np.int64]:
    """Return the pattern number of bits (record × class).

    >>> to_pattern([[1, 0, 1], [0, 0, 0]]).tolist()
    [5, 0]
    """
    rows = np.atleast_2d(np.asarray(bits)).astype(np.int64)
    if rows.shape[1] > MOST_CLASSES:
        raise UsageError.of("powerset-too-large", shape=rows.shape[1], MOST_CLASSES=MOST_CLASSES)
    return np.asarray(rows @ (1 << np.arange(rows.shape[1])))


def powerset(bits: ArrayLike) -> Floats:
    """Return bits as one-hot rows over all 2^C patterns: the class probabilities that ART expects."""
    rows = np.atleast_2d(np.asarray(bits))
    return np.eye(1 << rows.shape[1], dtype=np.float64)[to_pattern(rows)]
