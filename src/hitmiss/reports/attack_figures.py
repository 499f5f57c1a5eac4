"""The figures of the ECG attack evaluation document: success over strength, norms, classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from hitmiss.attacks.result import AttackResult
from hitmiss.core.errors import DataError, UnknownName
from hitmiss.core.sorting import Array
from hitmiss.engine.interval import share_interval
from hitmiss.reports.displays.robustness import RobustnessDisplay, StrengthLine
from hitmiss.reports.matplots import GREY, PALETTE, axes_for, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _axes(ax: Axes | None, size: tuple[float, float] = (5.4, 3.8)) -> tuple[Figure, Axes]:
    """Return these axes with their figure, or new ones."""
    axes = axes_for(ax, size)
    return cast("Figure", axes.figure), axes


def _plain(axes: Axes) -> Axes:
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _some(results: Sequence[AttackResult]) -> Sequence[AttackResult]:
    if not results:
        raise DataError.of("nothing-to-draw/results")
    return results


def asr_vs_strength(results: Sequence[AttackResult], ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw the share of changed predictions against strength, one line per family, with Wilson's 95 % intervals."""
    lines = []
    for family in sorted({r.ptype for r in _some(results)}):
        own = [r for r in results if r.ptype == family]
        strengths = sorted({r.strength for r in own})
        hits = np.array(
            [sum(r.untargeted_success for r in own if r.strength == s) for s in strengths], dtype=np.float64
        )
        of = np.array([sum(r.strength == s for r in own) for s in strengths], dtype=np.float64)
        ends = np.array([share_interval(a, n) for a, n in zip(hits, of, strict=True)])
        name = f"{family} (n = {int(of.max())})"
        lines.append(StrengthLine(name, np.array(strengths), hits / of, ends[:, 0], ends[:, 1], of=name))
    axes = RobustnessDisplay("changed", "strength", tuple(lines), best="low").plot(ax)
    axes.set(ylabel="success rate (any bit changed)", ylim=(-0.03, 1.03))
    return cast("Figure", axes.figure), axes


def norm_distributions(results: Sequence[AttackResult], ax: Axes | None = None) -> tuple[Figure, Axes | Array]:
    """Draw box plots of the norms by family and strength: L2 on the left, L∞ on the right (only L2 in given axes)."""
    keys = sorted({(r.ptype, r.strength) for r in _some(results)})
    own = {key: [r for r in results if (r.ptype, r.strength) == key] for key in keys}
    return norm_boxes(
        {key: ([r.delta_norm_l2 for r in group], [r.delta_norm_linf for r in group]) for key, group in own.items()}, ax
    )


def norm_boxes(
    norms: Mapping[tuple[str, float], tuple[Sequence[float], Sequence[float]]], ax: Axes | None = None
) -> tuple[Figure, Axes | Array]:
    """Draw the same from the L2 and L∞ norms (mV) of each family and strength."""
    twos = {key: two for key, (two, _) in norms.items()}
    if ax is not None:
        _boxes(ax, twos, "L2 norm of the change (mV)")
        return cast("Figure", ax.figure), ax
    require_matplotlib()
    from matplotlib.figure import Figure

    is_crowded = len(norms) > 6
    size = (max(6.0, 1.5 + 0.55 * len(norms)), 6.4) if is_crowded else (8.4, 3.8)
    figure = Figure(figsize=size, layout="constrained")
    both = figure.subplots(2, 1) if is_crowded else figure.subplots(1, 2)
    _boxes(_plain(both[0]), twos, "L2 norm of the change (mV)")
    _boxes(
        _plain(both[1]),
        {key: [1000.0 * v for v in peak] for key, (_, peak) in norms.items()},
        "L∞ norm of the change (µV)",
    )
    return figure, both


def _boxes(axes: Axes, norms: Mapping[tuple[str, float], Sequence[float]], title: str) -> None:
    families = sorted({family for family, _ in norms})
    drawn = axes.boxplot(
        list(norms.values()),
        patch_artist=True,
        widths=0.6,
        medianprops={"color": "#000000"},
        flierprops={"markersize": 3},
    )
    for box, (family, _) in zip(drawn["boxes"], norms, strict=True):
        box.set(facecolor=PALETTE[families.index(family) % 7], alpha=0.45)
    is_crowded = len(norms) > 5
    between = " " if is_crowded else "\n"
    names = [f"{family}{between}{strength:g}" for family, strength in norms]
    axes.set_xticks(range(1, len(names) + 1), names, fontsize=7.5)
    if is_crowded:
        axes.tick_params(axis="x", labelrotation=60)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
    axes.set_ylabel(title)
    axes.set_ylim(bottom=0)


def classwise_metric_bars(
    metrics: Mapping[str, Mapping[str, Mapping[str, float]]], metric: str = "auc", ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """Draw one group of bars per class, one bar per condition; an undefined number has a cross instead of a bar."""
    if not metrics:
        raise DataError.of("nothing-to-draw/metrics")
    figure, axes = _axes(ax, (6.4, 3.6))
    first = next(iter(metrics.values()))
    classes = [name for name in first if name != "macro"] + (["macro"] if "macro" in first else [])
    for condition, found in metrics.items():
        if set(found) != set(first):
            raise DataError.of("other-classes/condition", condition=condition, found=tuple(found), first=tuple(first))
    if metric not in first[classes[0]]:
        raise UnknownName("metric of the bars", metric, first[classes[0]])
    width = 0.8 / len(metrics)
    for i, (condition, figures) in enumerate(metrics.items()):
        values = np.array([figures[name][metric] for name in classes], dtype=np.float64)
        places = np.arange(len(classes)) + (i - (len(metrics) - 1) / 2) * width
        color = GREY if condition == "clean" else PALETTE[(i - ("clean" in metrics)) % 7]  # attacks as in the curves
        axes.bar(places, np.nan_to_num(values), width * 0.92, color=color, label=condition)
        axes.plot(
            places[np.isnan(values)], np.full(int(np.isnan(values).sum()), 0.02), "x", color="#000000", markersize=6
        )
    axes.set_xticks(range(len(classes)), classes)
    axes.set(ylabel=metric.upper() if metric == "auc" else metric, ylim=(0, 1.03))
    axes.grid(axis="x", visible=False)
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside upper center",
        ncols=min(len(metrics), 5 if max(map(len, metrics)) < 12 else 2),
        frameon=False,
        fontsize=8.5,
    )
    return figure, axes
