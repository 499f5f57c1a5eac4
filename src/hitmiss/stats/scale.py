"""Scales on which a bounded quantity has no bounds: logit, log, plain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hitmiss.core.sorting import Floats

Ends = tuple[float, float]
"""The lower and the upper end of an interval, or the bounds of a quantity."""


def on_scale_or_slope(values: Floats, centre: float, scale: Scale) -> Floats:
    """Return values on a scale; by its slope if some lie on a bound, where the scale is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = scale.to(values)
    return moved if np.isfinite(moved).all() else values * scale.slope(centre)


@dataclass(frozen=True)
class Scale:
    """A scale on which a bounded number has no bounds."""

    to: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]
    slope: Callable[[float], float]

    @classmethod
    def between(cls, low: float, high: float) -> Scale:
        """Return logit between two bounds, log with one bound, plain without bounds."""
        if math.isfinite(low) and math.isfinite(high):
            # the exponent is cut at 700 here and below, because exp overflows a double from 710 on
            width = high - low
            return cls(
                lambda v: np.log(v - low) - np.log(high - v),
                lambda t: low + width / (1.0 + np.exp(-np.maximum(t, -700.0))),
                lambda v: width / ((v - low) * (high - v)),
            )
        if math.isfinite(low):
            return cls(
                lambda v: np.log(v - low), lambda t: low + np.exp(np.minimum(t, 700.0)), lambda v: 1.0 / (v - low)
            )
        return cls(lambda v: v, lambda t: t, lambda v: 1.0)
