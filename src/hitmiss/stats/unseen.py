"""What a sample without a single error leaves open, where resampling shows no width and DeLong no variance.

Of n trials of a class the share of all such trials beyond the most extreme one is above u with probability (1 − u)ⁿ,
whatever the distribution (rule of three: u ≈ 3 / n). Where the classes stand apart, a threshold between them misses no
more than the positives below the lowest one seen, and accepts no more than the negatives above the highest one seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist


def unseen_share(n: int, level: float = 0.95) -> float:
    """The largest share beyond the extreme of n trials that is not ruled out, half of 1 − level for each class.

    u = 1 − ((1 − level) / 2)^(1/n)

    >>> round(unseen_share(20), 4), round(unseen_share(1000), 5)
    (0.1684, 0.00368)
    """
    return 1.0 - math.exp(math.log((1.0 - level) / 2.0) / n)


def equal_error_at_most(n_positive: int, n_negative: int, level: float = 0.95) -> float:
    """The upper end for an EER of 0: at a threshold between the classes neither error rate is above this.

    >>> round(equal_error_at_most(20, 1000), 4)
    0.1684
    """
    return max(unseen_share(n_positive, level), unseen_share(n_negative, level))


def area_score_interval(area: float, n_positive: int, n_negative: int, level: float = 0.95) -> tuple[float, float]:
    """Score interval of an AUC: all θ with |area − θ| ≤ z √V(θ), which has a width at 0, ½ and 1 as well.

    V(θ) = θ (1 − θ) (1 + k ((1 − θ) / (2 − θ) + θ / (1 + θ))) / (n⁺ n⁻), k = (n⁺ + n⁻) / 2 − 1

    Reference: Newcombe 2006, Statistics in Medicine 25, 559–573 (method 5).

    >>> [round(end, 4) for end in area_score_interval(1.0, 20, 20)]
    [0.8987, 1.0]
    """
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    k = (n_positive + n_negative) / 2.0 - 1.0

    def is_inside(theta: float) -> bool:
        spread = 1.0 + k * ((1.0 - theta) / (2.0 - theta) + theta / (1.0 + theta))
        return abs(area - theta) <= z * math.sqrt(theta * (1.0 - theta) * spread / (n_positive * n_negative))

    return _edge(area, 0.0, is_inside), _edge(area, 1.0, is_inside)


def _edge(inside: float, outside: float, is_inside: Callable[[float], bool]) -> float:
    """Where, between a value that belongs to a set and an end, the set stops; by bisection."""
    for _ in range(64):
        middle = (inside + outside) / 2.0
        inside, outside = (middle, outside) if is_inside(middle) else (inside, middle)
    return inside
