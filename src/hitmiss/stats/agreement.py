"""Agreement of people beyond chance: Krippendorff's alpha for nominal answers, with an interval over the items."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import UsageError
from hitmiss.stats.bootstrap import generator

Counts = NDArray[np.float64]
Answers = Iterable[Mapping[str, str]]
MOST_UNDEFINED: Final = 0.05
"""With a larger share of undefined replicates than this, the others give no valid interval."""
AT_ONCE: Final = 2**22
"""How many numbers are drawn at a time."""


@dataclass(frozen=True)
class Agreement:
    """Alpha with its interval, the share of pairs that agree, and how many items and answers could be paired.

    `alpha` is None if it is undefined, and `note` says why; the same holds for the interval.
    """

    alpha: float | None
    low: float | None
    high: float | None
    agreeing: float | None
    n_items: int
    n_answers: int
    note: str = ""


def answer_counts(items: Answers, missing: Iterable[str] = ()) -> Counts:
    """Count how many people gave which answer, item × answer. `items`: for each item, each person's answer.

    >>> answer_counts([{"ann": "fake", "bob": "real"}, {"ann": "fake", "bob": "?"}], missing=["?"]).tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """
    left_out, rows = set(missing), [list(item.values()) for item in items]
    values = sorted({answer for row in rows for answer in row} - left_out)
    return np.array([[row.count(value) for value in values] for row in rows], dtype=np.float64).reshape(
        len(rows), len(values)
    )


def krippendorff_alpha(counts: NDArray[np.floating]) -> float:
    """Return Krippendorff's alpha for nominal answers; people may have left items out.

    α = 1 − D_o / D_e. With n_u answers to item u (items with fewer than two are left out), n_uc of them c, n_c and n in
    all: D_o = Σ_u (n_u² − Σ_c n_uc²) / (n_u − 1) / n and D_e = (n² − Σ_c n_c²) / (n (n − 1)). Best: 1; 0 is agreement
    by chance; below 0 is less than chance. Undefined (NaN) if no item has two answers, or all answers are the same:
    then nothing shows that people can distinguish the classes. Reference: Krippendorff 2011, "Computing Krippendorff's
    Alpha-Reliability".

    >>> krippendorff_alpha(np.array([[2, 0], [0, 2], [1, 1], [0, 1]]))
    0.4444444444444444
    """
    answers = _pairable(_checked(counts))
    return float(_alphas(answers, np.ones((1, len(answers))))[0])


def agreement(counts: NDArray[np.floating], *, bootstrap: int = 1000, seed: int = 0, level: float = 0.95) -> Agreement:
    """Return alpha with a percentile interval from items drawn with replacement, each with all its answers.

    >>> agreement(np.array([[2, 0], [2, 0]])).note
    'all answers are the same'
    """
    answers = _pairable(_checked(counts))
    n_items, n = len(answers), int(answers.sum())
    if not n_items:
        return Agreement(None, None, None, None, 0, 0, "no item has two answers")
    sizes = answers.sum(axis=1)
    pairs = (sizes * (sizes - 1)).sum()
    agreeing = float((answers * (answers - 1)).sum() / pairs)
    alpha = float(_alphas(answers, np.ones((1, n_items)))[0])
    if math.isnan(alpha):
        return Agreement(None, None, None, agreeing, n_items, n, "all answers are the same")
    low, high, note = _interval(answers, bootstrap, seed, level)
    return Agreement(alpha, low, high, agreeing, n_items, n, note)


def _checked(counts: NDArray[np.floating]) -> Counts:
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or not (np.isfinite(table).all() and (table >= 0).all() and (table == np.floor(table)).all()):
        raise UsageError("answers must be counts, item × answer: whole numbers from 0 on")
    return table


def _pairable(answers: Counts) -> Counts:
    return np.asarray(answers[answers.sum(axis=1) >= 2])


def _alphas(answers: Counts, weights: Counts) -> Counts:
    """Return alpha for each row of weights, which say how often each item was drawn."""
    sizes = answers.sum(axis=1)
    apart = (sizes**2 - (answers**2).sum(axis=1)) / np.maximum(sizes - 1.0, 1.0)
    values = weights @ answers
    n = values.sum(axis=1)
    expected = n**2 - (values**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 1.0 - (n - 1.0) * (weights @ apart) / expected
    return np.asarray(np.where(expected > 0, found, np.nan))


def _interval(answers: Counts, bootstrap: int, seed: int, level: float) -> tuple[float | None, float | None, str]:
    n_items = len(answers)
    if bootstrap <= 0:
        return None, None, "no bootstrap was asked for"
    if n_items < 2:
        return None, None, "one item has no spread"
    rng = generator(seed, "krippendorff_alpha")
    step = max(1, AT_ONCE // n_items)
    parts = []
    for start in range(0, bootstrap, step):
        drawn = rng.multinomial(n_items, np.full(n_items, 1.0 / n_items), size=min(step, bootstrap - start))
        parts.append(_alphas(answers, drawn.astype(np.float64)))
    found = np.concatenate(parts)
    defined = found[~np.isnan(found)]
    if 1.0 - len(defined) / bootstrap > MOST_UNDEFINED:
        return None, None, f"{bootstrap - len(defined):,} of {bootstrap:,} replicates hold one answer alone"
    low, high = np.quantile(defined, [(1.0 - level) / 2, (1.0 + level) / 2])
    return float(low), float(high), ""
