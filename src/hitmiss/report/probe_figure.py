"""The picture of a probe: accuracy layer by layer, with its interval and what guessing gets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.results import Estimate, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
ACCURACY, BALANCED, BASELINE, SHUFFLED = "#0072B2", "#D55E00", "#555555", "#999999"
"""Colours that people with colour-blindness can tell apart (Okabe & Ito)."""


def plot_probe(results: Results, path: str | Path) -> None:
    """Draw the probe's curve into a file; the ending (.png, .svg, .pdf) decides the format."""
    check_format(path)
    probe_figure(results).savefig(path, dpi=150)


def check_format(path: str | Path) -> None:
    """Refuse an ending that no picture has, before any work is done."""
    if Path(path).suffix.lower() not in FORMATS:
        raise UsageError(f"{Path(path).name} must end in one of {', '.join(FORMATS)}")


def probe_figure(results: Results) -> Figure:
    """The probe's curve as a matplotlib figure."""
    from matplotlib.figure import Figure

    layers = list(dict.fromkeys(e.slice.get("layer", "") for e in results if e.metric == "probe_accuracy"))
    if not layers:
        raise DataError("these results hold no probe_accuracy; make them with `hitmiss probe`")
    figure = Figure(figsize=(max(6.0, min(12.0, 2.8 + 0.42 * len(layers))), 4.2), layout="constrained")
    axes = figure.add_subplot()
    _draw_curves(axes, results, layers)
    _draw_baselines(axes, results, layers)
    _label(axes, layers, results)
    columns = 5 if figure.get_figwidth() > 7 else 3
    figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=8.5)
    return figure


def _draw_curves(axes: Axes, results: Results, layers: Sequence[str]) -> None:
    places = range(len(layers))
    accuracy = _along(results, "probe_accuracy", layers)
    low = [_or_nan(e.low) for e in accuracy]
    high = [_or_nan(e.high) for e in accuracy]
    values = [_or_nan(e.value) for e in accuracy]
    if len(layers) == 1:
        axes.vlines([0], low, high, color=ACCURACY, linewidth=2, label="95% interval")
    else:
        axes.fill_between(places, low, high, color=ACCURACY, alpha=0.18, linewidth=0, label="95% interval")
    axes.plot(places, values, color=ACCURACY, marker="o", markersize=5, linewidth=1.8, label="accuracy", zorder=4)
    balanced = [_or_nan(e.value) for e in _along(results, "probe_balanced_accuracy", layers)]
    style: dict[str, Any] = {"color": BALANCED, "marker": "D", "markersize": 3.0, "linewidth": 1.2, "dashes": (3, 3)}
    axes.plot(places, balanced, label="balanced accuracy", zorder=5, **style)


def _draw_baselines(axes: Axes, results: Results, layers: Sequence[str]) -> None:
    majority = _or_nan(_along(results, "probe_majority", layers)[0].value)
    axes.axhline(majority, color=BASELINE, linewidth=1.1, linestyle=":", label="largest class")
    shuffled = [_or_nan(e.value) for e in _along(results, "probe_shuffled", layers)]
    if any(value == value for value in shuffled):
        style: dict[str, Any] = {"color": SHUFFLED, "marker": "x", "markersize": 5, "linewidth": 1.0}
        axes.plot(range(len(layers)), shuffled, label="shuffled labels", **style)


def _label(axes: Axes, layers: Sequence[str], results: Results) -> None:
    first = _along(results, "probe_accuracy", layers)[0]
    every = max(1, -(-len(layers) // 26))
    longest = max(map(len, layers))
    turn: dict[str, Any] = {"rotation": 40, "ha": "right"} if longest > 4 and len(layers) > 6 else {}
    axes.set_xticks(range(0, len(layers), every), layers[::every], **turn)
    axes.set_xlim(-0.5, len(layers) - 0.5)
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("layer")
    axes.set_ylabel("accuracy of the probe")
    axes.set_title(f"Domain probe: lower carries less of the domain  (n = {first.n:,})", fontsize=10.5, loc="left")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _along(results: Results, metric: str, layers: Sequence[str]) -> list[Estimate]:
    cells = [{"layer": layer} if layer else {} for layer in layers]
    return [results.one(metric, **cell) for cell in cells]


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value
