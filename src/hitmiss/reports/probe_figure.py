"""The figure of a probe: accuracy layer by layer, with its interval and the level of guessing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.results import Results
from hitmiss.core.sorting import Floats
from hitmiss.reports.matplots import FORMATS, draw, save
from hitmiss.reports.plate import MUTED, Axis, Curve, Dots, GuideLine, Mark, Plate, ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_probe(results: Results, path: str | Path) -> None:
    """Draw the probe's curve into a file; the extension (.png, .svg, .pdf) decides the format."""
    check_format(path)
    save(probe_figure(results), path, dpi=150)


def check_format(path: str | Path) -> None:
    """Refuse an extension that is not a picture format, before any work is done."""
    if Path(path).suffix.lower() not in FORMATS:
        raise UsageError.of("figure-format", name=Path(path).name, formats=tuple(FORMATS))


def probe_figure(results: Results) -> Figure:
    """Return the probe's curve as a matplotlib figure."""
    plate = probe_plate(results)
    axes = draw(plate, size=(max(6.0, min(12.0, 2.8 + 0.42 * plate.x.high)), 4.2))
    longest = max((len(text) for _, text in plate.x.ticks), default=0)
    if longest > 4 and len(plate.x.ticks) > 6:
        axes.tick_params(axis="x", rotation=40)
    return axes.figure  # type: ignore[return-value]


def probe_plate(results: Results) -> Plate:
    """Draw accuracy and balanced accuracy along the layers, the share of the largest class, and shuffled labels."""
    layers = list(dict.fromkeys(e.slice.get("layer", "") for e in results if e.metric == "probe_accuracy"))
    if not layers:
        raise DataError.of("no-probe")
    at = np.arange(len(layers), dtype=np.float64)
    accuracy, low, high = (_along(results, "probe_accuracy", layers, part) for part in ("value", "low", "high"))
    marks: list[Mark] = [
        Curve(at, accuracy, 0, "accuracy", band=(at, low, at, high)),
        Dots(at, accuracy, 0, low=low, high=high, is_hollow=False),
        Curve(at, _along(results, "probe_balanced_accuracy", layers), 1, "balanced accuracy", "dash"),
        GuideLine(float(_along(results, "probe_majority", layers)[0]), False, "largest class"),
    ]
    key = [(0, "", "accuracy, 95 % interval"), (1, "dash", "balanced accuracy")]
    shuffled = _along(results, "probe_shuffled", layers)
    if np.isfinite(shuffled).any():
        marks.append(Curve(at, shuffled, MUTED, "shuffled labels"))
        key.append((MUTED, "", "shuffled labels"))
    every = max(1, -(-len(layers) // 26))
    named = tuple((float(i), layers[i]) for i in range(0, len(layers), every))
    n = next(e.n for e in results if e.metric == "probe_accuracy")
    finding = f"Domain probe: lower carries less of the domain (n = {n:,})"
    y = Axis("accuracy of the probe", 0.0, 1.03, ticks(0.0, 1.0))
    return Plate(Axis("layer", -0.5, len(layers) - 0.5, named), y, tuple(marks), finding, key=tuple(key))


def _along(results: Results, metric: str, layers: Sequence[str], part: str = "value") -> Floats:
    """Return one number per layer; NaN where it is undefined."""
    found = [getattr(results.one(metric, **({"layer": layer} if layer else {})), part) for layer in layers]
    return np.array([np.nan if value is None else value for value in found])
