"""MeanOf: the mean of several numbers of the same scores (detection costs at several operating points)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.stats.forms.base import Drawn, Form, Mask

if TYPE_CHECKING:
    from hitmiss.stats.curve import Curve


@dataclass(frozen=True)
class MeanOf(Form):
    """The mean of forms that are read at fixed thresholds."""

    parts: tuple[Form, ...]
    needs_both = True
    by_value = True

    @property
    def single(self) -> tuple[Form, ...]:
        """The parts."""
        return self.parts

    def value(self, tally: Tally) -> float:
        """Return the mean."""
        return _mean([part.value(tally) for part in self.parts]).item()

    def replicates(self, drawn: Drawn) -> Floats:
        """Return the mean of every replicate, whose parts come from the same draws."""
        return _mean([part.replicates(drawn) for part in self.parts])

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Those of the parts."""
        return tuple(dict.fromkeys(t for part in self.parts for t in part.thresholds))

    def points(self, tally: Tally) -> list[int]:
        """Return the points of the parts."""
        return [point for part in self.parts for point in part.points(tally)]

    def can_hold(self, cp: Floats, cn: Floats, n1: float, n0: float, deviations: float) -> Mask:
        """Return where a part can be determined."""
        return np.asarray(np.logical_or.reduce([part.can_hold(cp, cn, n1, n0, deviations) for part in self.parts]))

    def on_curve(self, curve: Curve) -> tuple[Floats, Mask] | None:
        """Return the mean of the parts; one in doubt leaves the mean in doubt."""
        found = [part.on_curve(curve) for part in self.parts]
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            return None
        return _mean([values for values, _ in known]), np.logical_or.reduce([doubt for _, doubt in known])


@dataclass(frozen=True)
class LeastMeanOf(MeanOf):
    """The mean of minimum costs, each at its own best threshold."""

    by_value = False
    by_rank = True
    is_least = True


def _mean(parts: Sequence[float] | Sequence[Floats]) -> Floats:
    return np.asarray(reduce(np.add, parts) / len(parts), dtype=np.float64)
