"""The band of a DET or ROC curve: the interval of each rate by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.engine.interval import share_interval
from hitmiss.reports.displays.lines import PlateOptions

if TYPE_CHECKING:
    from hitmiss.reports.displays.det import DetDisplay
    from hitmiss.reports.displays.roc import RocDisplay


def band_of(
    d: DetDisplay | RocDisplay,
    held: slice,
    far: Floats,
    frr: Floats,
    place: Callable[[Floats], Floats],
    how: PlateOptions,
) -> tuple[Floats, Floats, Floats, Floats] | None:
    """Return the band of a curve: of as many independent trials as its rates are worth over units, or of its trials."""
    if not d.over and not how.independent:
        return None
    counts = np.full(len(far), float(d.n_negative)), np.full(len(frr), float(d.n_positive))
    worth = (d.worth_negative[held], d.worth_positive[held]) if d.over else counts
    ends = [
        np.array([share_interval(float(r * n), float(n)) for r, n in zip(rates, own, strict=True)]).reshape(-1, 2)
        for rates, own in zip((far, frr), worth, strict=True)
    ]
    return place(ends[0][:, 0]), place(ends[1][:, 0]), place(ends[0][:, 1]), place(ends[1][:, 1])


def band_note(shown: Sequence[DetDisplay | RocDisplay], how: PlateOptions) -> str:
    """Say what the bands of curves are, or why there are none."""
    over = next((d.over for d in shown if d.over), "")
    if len(shown) > 2:
        return ""
    if over:
        return f"Band: 95 % of each rate by itself, over whole units ({over})."
    if how.independent:
        return "Band: 95 % of each rate by itself (Wilson)."
    return "No bands: trials were drawn in whole units, and these would be too narrow."
