"""Signals as thin lines of an SVG, with the paper of an ECG behind them and the change that an attack made."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.sorting import Floats
from hitmiss.reports.embedded_media import Media
from hitmiss.reports.thinning import thin

TRACE_WIDTH, TRACE_HEIGHT = 480, 56
"""Height of a drawn signal per lead, in units."""
TRACE_GRAIN, TRACE_TOLERANCE = 4, 0.8
MOST_LEADS: Final = 3
SHOWN_LEADS: Final = {"II": 1, "V1": 6, "V5": 10}
"""The leads of the standard twelve that a small picture shows."""


def trace_of(x: ArrayLike, rate: float, after: ArrayLike | None = None, how: str = "") -> Media:
    """Draw a signal (sample × lead) as thin lines; of the standard twelve leads, three.

    `after`: the same as `how` says it was changed; the change of the first lead is drawn below, on a scale of its own (it is
    often too small to be seen on that of the signal), in the unit of the signal, which is mV.

    >>> drawn = trace_of(np.sin(np.arange(500) / 20)[:, None], 100.0)
    >>> drawn.kind, len(drawn.traces), drawn.ticks[:2]
    ('trace', 1, (96.0, 192.0))
    """
    signal = np.asarray(x, dtype=np.float64)
    chosen = list(SHOWN_LEADS.items()) if signal.shape[1] == 12 else _numbered(signal.shape[1])
    kept = signal[:, [at for _, at in chosen]]
    kept = kept - np.median(kept, axis=0)
    scale = (TRACE_HEIGHT / 2 - 2) / max(float(np.abs(kept).max(initial=0.0)), 1e-9)
    across = np.linspace(0.0, TRACE_WIDTH, len(kept))

    def drawn(values: Floats) -> tuple[str, ...]:
        return tuple(_path(across, TRACE_HEIGHT / 2 - scale * values[:, i]) for i in range(len(chosen)))

    traces = tuple(zip((name for name, _ in chosen), drawn(kept), strict=True))
    change: tuple[str, str] | None = None
    over: tuple[str, ...] = ()
    if after is not None:
        changed = np.asarray(after, dtype=np.float64)
        change = _change(across, (changed - signal)[:, chosen[0][1]], chosen[0][0], how)
        at = [i for _, i in chosen]
        over = drawn(changed[:, at] - np.median(signal[:, at], axis=0))
    seconds = len(kept) / rate
    ticks = tuple(round(TRACE_WIDTH * s / seconds, 1) for s in range(1, int(np.ceil(seconds))))
    size = (TRACE_WIDTH, TRACE_HEIGHT * (len(traces) + (change is not None)))
    about = f"{seconds:.3g} s; a square is 0.2 s × 0.5 mV" + (", attacked over clean" if over else "")
    paper = _paper(seconds, scale, len(traces))
    return Media("trace", about=about, size=size, traces=traces, ticks=ticks, change=change, over=over, paper=paper)


def _paper(seconds: float, scale: float, leads: int) -> str:
    """Return the lines of ECG paper: vertical every 0.2 s, horizontal every 0.5 mV from the middle of each lead."""
    step, mv = TRACE_WIDTH * 0.2 / seconds, 0.5 * scale
    if step < 1.5 or mv < 1.5:
        return ""
    upright = "".join(f"M{x:.1f} 0V{TRACE_HEIGHT * leads}" for x in np.arange(step, TRACE_WIDTH, step))
    half = int(TRACE_HEIGHT / 2 / mv)
    middles = [TRACE_HEIGHT * (i + 0.5) for i in range(leads)]
    across = "".join(f"M0 {m + k * mv:.1f}H{TRACE_WIDTH}" for m in middles for k in range(-half, half + 1))
    return upright + across


def _change(across: Floats, delta: Floats, lead: str, how: str) -> tuple[str, str]:
    """Describe a change in words, with its greatest size in µV, and return its path."""
    most = float(np.abs(delta).max(initial=0.0))
    middle, half = TRACE_HEIGHT - 20, 17  # space above for the words
    path = _path(across, middle - half / max(most, 1e-9) * delta)
    return f"{lead} {how}: changed by up to {1000 * most:.3g} µV".strip(), path


def _numbered(n: int) -> list[tuple[str, int]]:
    return [(f"lead {i + 1}" if n > 1 else "", i) for i in range(min(n, MOST_LEADS))]


def _path(x: Floats, y: Floats) -> str:
    """Return an SVG path through the visible points, as steps from each to the next, in quarters of a unit."""
    at = thin(x, y, TRACE_TOLERANCE)
    points: Sequence[tuple[int, int]] = [
        (round(TRACE_GRAIN * a), round(TRACE_GRAIN * b)) for a, b in zip(x[at], y[at], strict=True)
    ]
    steps = [f"{b[0] - a[0]} {b[1] - a[1]}" for a, b in pairwise(points)]
    return f"M{points[0][0]} {points[0][1]}l{' '.join(steps).replace(' -', '-')}" if points else ""
