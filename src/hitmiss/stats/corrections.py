"""Many tests at once: p values adjusted so that the family as a whole keeps its level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from hitmiss.core.errors import UnknownName
from hitmiss.core.sorting import Floats


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values by Holm's step-down method, which keeps the chance of any false alarm at the level.

    It holds whatever the dependence of the tests. In ascending order, p₍ᵢ₎ · (m − i + 1), never below the one before,
    at most 1. Reference: Holm 1979.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    return _in_order(p_values, lambda p: np.maximum.accumulate(p * np.arange(len(p), 0, -1)))


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjust p values by Benjamini–Hochberg: the expected share of false findings stays at the level.

    In descending order, p₍ᵢ₎ · m / i, never above the one after, at most 1. Reference: Benjamini & Hochberg 1995.

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    return _in_order(p_values, _step_up)


def _step_up(p: Floats) -> Floats:
    scaled = p * (len(p) / np.arange(1, len(p) + 1))
    return np.minimum.accumulate(scaled[::-1])[::-1]


def _in_order(p_values: Sequence[float], adjust: Callable[[Floats], Floats]) -> list[float]:
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(adjust(p[order]), 1.0)
    return [float(x) for x in adjusted]


CORRECTIONS: Final[dict[str, Callable[[Sequence[float]], list[float]]]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": lambda p: [float(x) for x in p],
}


def adjusted(p_values: Sequence[float | None], correction: str) -> list[float | None]:
    """Adjust the p values of one family; undefined ones stay undefined and do not count.

    >>> adjusted([0.01, None, 0.04], "holm")
    [0.02, None, 0.04]
    """
    if correction not in CORRECTIONS:
        raise UnknownName("correction", correction, CORRECTIONS)
    known = iter(CORRECTIONS[correction]([p for p in p_values if p is not None]))
    return [None if p is None else next(known) for p in p_values]
