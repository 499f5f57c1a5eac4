"""Pictures of a detector's scores: histogram, ROC and DET. The numbers are made apart from the drawing.

Below the protocols, because documented functions draw (`evaluate_from_file(…, plot_results=True)`); reports may use it too.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError
from hitmiss.core.tally import Floats
from hitmiss.metrics.curves import DetCurve, RocCurve, det_curve, roc_curve
from hitmiss.metrics.detection import eer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REAL, FAKE, MARK, GREY = "#0072B2", "#D55E00", "#222222", "#888888"
"""Colours that people with colour-blindness can tell apart (Okabe & Ito)."""
TICKS: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.995, 0.999)
FLOOR: Final = 5e-4


@dataclass(frozen=True, eq=False)
class Scores:
    """What the pictures show: the bins, each class's share in them, the curves, the EER and the rates at the threshold."""

    edges: Floats
    real: Floats
    fake: Floats
    roc: RocCurve
    det: DetCurve
    eer: float
    threshold: float
    far: float
    frr: float
    n_real: int
    n_fake: int
    names: tuple[str, str]


def scores_of(
    label: ArrayLike, score: ArrayLike, threshold: float, names: tuple[str, str] = ("real", "fake"), bins: int = 0
) -> Scores:
    """The numbers of the pictures; decisions are `score > threshold`. `bins` 0: as many as suit the number of scores.

    >>> s = scores_of([1, 1, 0, 0], [0.9, 0.6, 0.4, 0.1], 0.4, bins=2)
    >>> s.real.tolist(), s.fake.tolist(), s.far
    ([0.0, 1.0], [1.0, 0.0], 0.0)
    """
    is_real, values = np.asarray(label) == 1, np.asarray(score, dtype=np.float64)
    finite = values[np.isfinite(values)]
    if is_real.all() or not is_real.any() or not len(finite):
        raise DataError("pictures of scores need finite scores of both classes")
    edges = np.histogram_bin_edges(finite, bins or int(np.clip(3 * len(finite) ** (1 / 3), 12, 60)))
    inside = np.clip(values, edges[0], edges[-1])
    shares = [np.histogram(inside[mask], edges)[0] / mask.sum() for mask in (is_real, ~is_real)]
    taken = values > threshold
    return Scores(
        edges, shares[0], shares[1], roc_curve(label, score), det_curve(label, score), eer(label, score), threshold,
        float(taken[~is_real].mean()), float((~taken[is_real]).mean()), int(is_real.sum()), int((~is_real).sum()), names,
    )  # fmt: skip


def histogram_figure(s: Scores) -> Figure:
    """The scores of both classes, and the threshold."""
    figure, axes = _figure((6.4, 3.6))
    for shares, color, name, n in (
        (s.fake, FAKE, s.names[1], s.n_fake),
        (s.real, REAL, s.names[0], s.n_real),
    ):
        axes.stairs(shares, s.edges, fill=True, color=color, alpha=0.35, linewidth=0)
        axes.stairs(shares, s.edges, color=color, linewidth=1.4, label=f"{name} (n = {n:,})")
    axes.axvline(s.threshold, color=MARK, linewidth=1.2, linestyle="--", label=f"threshold {s.threshold:.4g}")
    axes.set_xlabel(f"score (higher = {s.names[0]})")
    axes.set_ylabel("share of the class in each bin")
    axes.set_ylim(0, 1.08 * max(float(s.real.max()), float(s.fake.max())))
    axes.set_title(f"Scores: FAR {s.far:.1%}, FRR {s.frr:.1%} at the threshold", fontsize=10.5, loc="left")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8.5)
    return figure


def roc_figure(s: Scores) -> Figure:
    """The receiver operating characteristic, and the point of the threshold."""
    figure, axes = _figure((4.6, 4.6))
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1.0, linestyle=":", label="guessing")
    axes.plot(s.roc.fpr, s.roc.tpr, color=REAL, linewidth=1.8, label=f"AUC {s.roc.area:.4f}")
    axes.plot([s.far], [1 - s.frr], "o", color=MARK, markersize=6, label="at the threshold", zorder=5, clip_on=False)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel(f"FAR: {s.names[1]} accepted")
    axes.set_ylabel(f"{s.names[0]} accepted")
    axes.set_title("ROC", fontsize=10.5, loc="left")
    axes.legend(loc="lower right", frameon=False, fontsize=8.5)
    return figure


def det_figure(s: Scores) -> Figure:
    """The detection error trade-off on normal-deviate axes, where Gaussian scores give a straight line."""
    from scipy.special import ndtri

    figure, axes = _figure((4.6, 4.6))
    far, frr = s.det.probit(FLOOR)
    low, high = _det_range(s)
    ends = (float(ndtri(low)), float(ndtri(high)))
    axes.plot(ends, ends, color=GREY, linewidth=1.0, linestyle=":")
    axes.plot(far, frr, color=REAL, linewidth=1.8, drawstyle="steps-post", label="errors at each threshold")
    at = float(ndtri(np.clip(s.eer, low, high)))
    axes.plot([at], [at], "s", color=FAKE, markersize=6, label=f"EER {s.eer:.2%}", zorder=5)
    point = [float(ndtri(np.clip(v, low, high))) for v in (s.far, s.frr)]
    axes.plot(
        point[:1], point[1:], "o", color=MARK, markersize=6, mfc="none", mew=1.6, label="at the threshold", zorder=6
    )
    ticks = [t for t in TICKS if low <= t <= high]
    places, texts = ndtri(np.array(ticks)), [f"{100 * t:g}" for t in ticks]
    axes.set_xticks(places, texts)
    axes.set_yticks(places, texts)
    axes.set(xlim=ends, ylim=ends, aspect="equal")
    axes.set_xlabel(f"FAR in % ({s.names[1]} accepted)")
    axes.set_ylabel(f"FRR in % ({s.names[0]} rejected)")
    axes.set_title("DET", fontsize=10.5, loc="left")
    axes.legend(loc="upper right", frameon=False, fontsize=8.5)
    return figure


def _det_range(s: Scores) -> tuple[float, float]:
    """The rates worth showing: from the smallest above 0, to a little above a half or the EER."""
    rates = np.concatenate([s.det.far, s.det.frr])
    some = rates[rates > 0]
    low = max(float(some.min()) / 1.6, FLOOR) if len(some) else FLOOR
    return min(low, 0.1), min(max(0.6, 1.3 * s.eer, 1.1 * s.far, 1.1 * s.frr), 1 - FLOOR)


FIGURES: Final[dict[str, Callable[[Scores], Any]]] = {
    "histogram": histogram_figure,
    "roc": roc_figure,
    "det": det_figure,
}


def save_figures(
    folder: str | Path, label: ArrayLike, score: ArrayLike, threshold: float, names: tuple[str, str] = ("real", "fake")
) -> list[Path]:
    """Draw every picture into a folder, as PNG; the paths."""
    numbers = scores_of(label, score, threshold, names)
    Path(folder).mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, draw in FIGURES.items():
        drawn.append(Path(folder) / f"{name}.png")
        buffer = io.BytesIO()
        draw(numbers).savefig(buffer, format="png", dpi=150)
        artifacts.write(drawn[-1], buffer.getvalue())
    return drawn


def _figure(size: tuple[float, float]) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
