"""Trials of a speaker verifier beside those of a countermeasure: its error rates, in every slice anew."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.metric_spec import Setting
from hitmiss.core.sorting import Array, Floats
from hitmiss.metrics.tandem import asv_rates
from hitmiss.stats.forms.three_classes import CLASSES

OWN: Final = "own"
"""The setting by which trials without ids give the rates of each attack."""


@dataclass(frozen=True, eq=False)
class AsvTrials:
    """Scores of a speaker verifier, the class of each (its place in `CLASSES`), and their slice columns.

    A slice whose columns they lack has the rates of all trials. Trials of 2019 have no ids: they are pooled over slices,
    unless a metric asks for the rates of each attack (`asv=own`).
    """

    kind: NDArray[np.int8]
    score: Floats
    slices: Mapping[str, Array] = field(default_factory=dict)
    is_pooled: bool = False
    _known: dict[tuple[tuple[str, str], ...], Mapping[str, Setting]] = field(default_factory=dict)

    def settings(
        self, slice: Mapping[str, str], negative_only: Collection[str], positive_only: Collection[str], asv: Setting
    ) -> Mapping[str, Setting]:
        """Return the error rates as settings of `min_t_dcf`, None each if a class has no trial; `asv` is its setting.

        Columns that only spoofs have (an attack) restrict spoofs, columns that only bona fide trials have restrict
        targets and nontargets, and all others restrict both.
        """
        slice = {} if self.is_pooled and asv != OWN else slice
        key = tuple(sorted(slice.items()))
        if key not in self._known:
            bonafide, spoof = np.ones(len(self.kind), dtype=bool), np.ones(len(self.kind), dtype=bool)
            for name, value in slice.items():
                if name not in self.slices:
                    continue
                has = self.slices[name] == value
                bonafide &= has if name not in negative_only else True
                spoof &= has if name not in positive_only else True
            own = [self.score[(self.kind == code) & (spoof if code == 2 else bonafide)] for code in range(len(CLASSES))]
            self._known[key] = _as_settings(own)
        return {**self._known[key], "asv": OWN if asv == OWN else "trials"}


def _as_settings(scores: list[Floats]) -> Mapping[str, Setting]:
    if not all(len(own) for own in scores):
        return {"asv_miss": None, "asv_fa": None, "asv_fa_spoof": None}
    rates = asv_rates(*scores)
    return {"asv_miss": rates.p_miss, "asv_fa": rates.p_fa, "asv_fa_spoof": rates.p_fa_spoof}
