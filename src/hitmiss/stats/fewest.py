"""How many units an interval needs: of fewer nothing can be resampled.

What k units show that lie symmetrically about the truth is all on the same side of it with probability 2^(1 − k), and what is
drawn from them then is too. So even the whole range of k units is an interval at no higher level than 1 − 2^(1 − k) (the
sign test): 50 % of two, 93.75 % of five.
"""

from __future__ import annotations

from itertools import count


def enough(level: float) -> int:
    """The fewest units whose range can be an interval at this level: the least k with 1 − 2^(1 − k) ≥ level.

    >>> enough(0.9), enough(0.95), enough(0.99)
    (5, 6, 8)
    """
    return next(k for k in count(2) if 1.0 - 2.0 ** (1 - k) >= level)
