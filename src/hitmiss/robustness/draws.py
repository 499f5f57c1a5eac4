"""Draws of records or patients, and what they make of a share, a figure or a median: its value and its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import UsageError
from hitmiss.metrics.robustness import Floats, Terms
from hitmiss.robustness.campaign import Campaign
from hitmiss.stats.bootstrap import draw_units, generator
from hitmiss.stats.intervals import percentile, quantile_interval, wilson

Mask = NDArray[np.bool_]


class Figure(NamedTuple):
    """What an estimate says of a figure (value, interval, method, note), and the figure of every replicate."""

    facts: dict[str, Any]
    drawn: Floats | None = None


@dataclass(frozen=True, eq=False)
class Draws:
    """Weights a replicate and record, and how an interval is made."""

    weights: Floats
    codes: NDArray[np.int64]
    unit: str
    is_independent: bool
    level: float
    text: str

    @classmethod
    def of(cls, campaign: Campaign, bootstrap: int, unit: str | None, seed: int, level: float) -> Draws:
        if bootstrap < 0 or bootstrap == 1:
            raise UsageError(f"an interval needs at least 2 replicates (0 for none); found {bootstrap}")
        name, codes = campaign.unit_codes(unit)
        n = int(codes.max()) + 1
        drawn = draw_units(codes, np.ones(len(codes), dtype=bool), n, bootstrap, generator(seed, "attacks"))
        text = f"bootstrap {bootstrap},unit={name},percentile,{level:g},seed={seed}"
        return cls(drawn[:, codes].astype(np.float64), codes, name, n == len(codes), level, text)

    def rate(self, terms: Terms, mask: Mask) -> Figure:
        """The value and the interval of a share of some of the records."""
        kept = terms.where(mask)
        rate = kept.rate
        if math.isnan(rate):
            return Figure({"value": None, "note": "undefined: no record counts here"})
        found: dict[str, Any] = {"value": float(rate), "of": rate.of}
        drawn = kept.replicates(self.weights) if len(self.weights) else None
        if rate in (0.0, 1.0) and not self.is_independent:  # every replicate would say the same, which is no interval
            n = len(np.unique(self.codes[kept.of > 0]))
            low, high = wilson(float(rate) * n, n, self.level)
            return Figure(found | {"low": low, "high": high, "method": f"wilson over {n} of {self.unit}"}, drawn)
        if self.is_independent:
            low, high = wilson(rate.hits, rate.of, self.level)
            return Figure(found | {"low": low, "high": high, "method": "wilson"}, drawn)
        if drawn is not None:
            return Figure(found | self._ends(drawn), drawn)
        return Figure(
            found | {"note": f"no interval: a {self.unit} has several records; draw them with --bootstrap 1000"}
        )

    def figure(self, value: float, replicates: Callable[[], Floats], of: float) -> Figure:
        """A figure that only replicates give an interval."""
        if math.isnan(value):
            return Figure({"value": None, "note": "undefined: one class only, or nothing to average"})
        drawn = replicates() if len(self.weights) and math.isfinite(value) else None
        return Figure({"value": value, "of": of} | ({} if drawn is None else self._ends(drawn)), drawn)

    def median(self, values: Floats, mask: Mask) -> Figure:
        """The (lower) median of some of the records; infinite values are values."""
        order = np.flatnonzero(mask)[np.argsort(values[mask], kind="stable")]
        ordered = values[order]
        never = f"{int(np.isinf(ordered).sum())} of {len(ordered)} records never flip"
        found: dict[str, Any] = {
            "value": float(ordered[(len(ordered) - 1) // 2]),
            "of": float(len(ordered)),
            "note": never,
        }
        if self.is_independent:
            low, high = quantile_interval(ordered.tolist(), 0.5, self.level)
            return Figure(
                found if math.isnan(low) else found | {"low": low, "high": high, "method": "order statistics"}
            )
        if not len(self.weights):
            return Figure(found)
        below = np.cumsum(self.weights[:, order], axis=1)
        drawn = ordered[np.argmax(below >= below[:, -1:] / 2, axis=1)]
        return Figure(self._ends(drawn) | found, drawn)

    def mean(self, figures: Sequence[Figure]) -> Figure:
        """The simple mean of figures of the same draws, where they are defined."""
        known = [f for f in figures if f.facts["value"] is not None]
        if not known:
            return Figure({"value": None, "note": "undefined: in no group defined"})
        value = float(np.mean([f.facts["value"] for f in known]))
        note = {} if len(known) == len(figures) else {"note": f"over {len(known)} of {len(figures)} groups"}
        drawn = [f.drawn for f in known if f.drawn is not None]
        if len(drawn) < len(known) or not math.isfinite(value):
            return Figure({"value": value} | note)
        return Figure({"value": value} | self._ends(np.mean(drawn, axis=0)) | note)

    def _ends(self, replicates: Floats) -> dict[str, Any]:
        known = replicates[np.isfinite(replicates)]
        if len(known) and known.min() == known.max() and len(known) == np.sum(~np.isnan(replicates)):
            return {"note": "no interval: every replicate gives the same"}
        low, high = percentile(replicates, self.level)
        return {} if math.isnan(low) else {"low": low, "high": high, "method": self.text}
