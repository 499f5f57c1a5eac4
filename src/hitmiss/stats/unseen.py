"""Bounds for a sample without a single error, where resampling shows no width and DeLong no variance.

For n trials of a class, the share of the population beyond the most extreme one exceeds u with probability (1 − u)ⁿ,
whatever the distribution (rule of three: u ≈ 3 / n). If the classes are separated, a threshold between them misses at
most the positives below the lowest one seen, and accepts at most the negatives above the highest one seen."""

from __future__ import annotations

import math


def unseen_share(n: int, level: float = 0.95) -> float:
    """Return the largest share beyond the extreme of n trials that is not ruled out, with half of 1 − level per class.

    u = 1 − ((1 − level) / 2)^(1/n)

    >>> round(unseen_share(20), 4), round(unseen_share(1000), 5)
    (0.1684, 0.00368)
    """
    return 1.0 - math.exp(math.log((1.0 - level) / 2.0) / n)


def equal_error_at_most(n_positive: int, n_negative: int, level: float = 0.95) -> float:
    """Return the upper end for an EER of 0: at a threshold between the classes neither error rate is above it.

    >>> round(equal_error_at_most(20, 1000), 4)
    0.1684
    """
    return max(unseen_share(n_positive, level), unseen_share(n_negative, level))
