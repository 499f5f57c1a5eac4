"""By how much a minimum over thresholds is too low in the sample that chose the threshold."""

from __future__ import annotations

import numpy as np

from hitmiss.core.sorting import Floats

OPTIMISM = 1.0 / (2.0 ** (2.0 / 3.0) - 1.0)
"""How many times the optimism of a minimum exceeds what the bootstrap sees of it (1.70).

Near its minimum the cost curve is a parabola plus the noise of counting, W(t) in the sample and W(t) + W'(t) in a
replicate. The expected depth of such a minimum grows as the 4/3 power of the noise's deviation, so a replicate's is
2^(2/3) times the sample's, and the bootstrap sees 2^(2/3) − 1 of it (cube-root asymptotics, Kim & Pollard 1990).
"""


def growth_of_least_cost(least: Floats, estimate: float) -> float:
    """Return the factor by which a least cost is too low; 1 if the cost is 0."""
    if not estimate > 0.0:
        return 1.0
    return 1.0 + OPTIMISM * max(estimate - float(np.nanmean(least)), 0.0) / estimate
