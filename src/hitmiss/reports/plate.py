"""The one model of a figure: axes, and marks on them. Renderers draw it: `svg` for a page, `matplots` for a paper.

A plate does not depend on SVG or matplotlib. Places on its axes are plain numbers; an axis may be transformed (the normal
deviates of a DET plot), and holds the places and the texts of its ticks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from hitmiss.core.sorting import Floats

MUTED: Final = -1
"""The colour of reference marks."""


@dataclass(frozen=True)
class Axis:
    """A title, the ends, and the ticks as (place, text)."""

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, eq=False)
class Curve:
    """A line; `band` holds its lower and upper bounds, `label` is the text at its end."""

    x: Floats
    y: Floats
    color: int
    name: str = ""
    dash: str = ""
    width: float = 2.0
    band: tuple[Floats, Floats, Floats, Floats] | None = None
    label: str = ""


@dataclass(frozen=True, eq=False)
class Bars:
    """Adjoining bars: their edges, and the height of each."""

    edges: Floats
    height: Floats
    color: int
    label: str = ""


@dataclass(frozen=True, eq=False)
class Dots:
    """Points, each with the ends of its interval if it has one."""

    x: Floats
    y: Floats
    color: int
    shape: str = "circle"
    low: Floats | None = None
    high: Floats | None = None
    about: tuple[str, ...] = ()
    label: str = ""
    is_hollow: bool = True
    is_sideways: bool = False
    """Whether intervals are horizontal instead of vertical."""


@dataclass(frozen=True)
class GuideLine:
    """A thin dotted line across the plate with a word beside it."""

    at: float
    is_upright: bool = True
    label: str = ""


@dataclass(frozen=True)
class Block:
    """A filled box between two places on each axis, with words beside it."""

    x: tuple[float, float]
    y: tuple[float, float]
    color: int
    label: str = ""
    about: str = ""
    depth: float | None = None
    """How dark a cell of a map is shaded, 0..1; its label is then inside it."""


@dataclass(frozen=True)
class Ribbon:
    """A band that flows from a part of one vertical line to a part of another."""

    x: tuple[float, float]
    start: tuple[float, float]
    end: tuple[float, float]
    color: int
    about: str = ""


Mark = Curve | Bars | Dots | GuideLine | Block | Ribbon


@dataclass(frozen=True)
class Plate:
    """A figure. `key` names colours where there is no room for a word at the mark itself."""

    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    finding: str = ""
    is_square: bool = False
    key: tuple[tuple[int, str, str], ...] = field(default=())
    note: str = ""
    is_bare: bool = False
    """Whether it has no frame and no grid, because places on its axes are not quantities."""
    rows: int = 0
    """Number of names one below the other at its left, each of which needs its line."""


def ticks(low: float, high: float, percent: bool = False, most: int = 6) -> tuple[tuple[float, str], ...]:
    """Return round places between two ends."""
    if not high > low:
        return ((low, f"{low:g}"),)
    raw = (high - low) / most
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw)
    first = np.ceil(low / step - 1e-9) * step
    found = np.arange(first, high + 1e-9 * step, step)
    return tuple(
        (float(v), f"{100 * v:g} %" if percent else f"{v:.6g}".replace("-", "−")) for v in np.round(found, 12) + 0.0
    )
