"""Displays drawn with matplotlib: its Figure objects alone, no global state, sized for a column of a two-column paper."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import ndtri

from hitmiss.core import artifacts
from hitmiss.core.errors import UsageError
from hitmiss.core.values import visible
from hitmiss.drawing.scores import FAKE, GREY, REAL, TICKS
from hitmiss.report.displays import area_text
from hitmiss.report.tables import explain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hitmiss.report.displays import DetDisplay, PrDisplay, RocDisplay
    from hitmiss.report.robustness_display import RobustnessDisplay
    from hitmiss.report.score_displays import (
        BayesErrorDisplay,
        HistogramDisplay,
        ReliabilityDisplay,
        RiskCoverageDisplay,
        TippettDisplay,
    )

COLUMN: Final = (3.4, 2.9)
"""Inches: the width of a column of a two-column paper."""
PALETTE: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe & Ito: colours that people with colour-blindness can tell apart."""
DASHES: Final = ("-", (0, (5, 2)), (0, (1, 1.4)))
FORMATS: Final = (".svg", ".pdf", ".png")
MARKS: Final = {"EER": "s", "min DCF": "v", "act DCF": "o", "threshold": "D"}
LONGEST: Final = 48
"""Characters of a name that a figure has room for."""
STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "lines.linewidth": 1.4,
    "pdf.fonttype": 42,
    "svg.hashsalt": "hitmiss",
}
"""Small type for small figures, fonts that publishers accept, and the same bytes for the same figure."""


def save(figure: Figure | Axes, path: str | Path, *, dpi: int = 300) -> None:
    """Write a figure (or the figure of these axes); the ending .svg, .pdf or .png decides the format."""
    from matplotlib import rc_context

    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise UsageError(f"{target.name} must end in one of {', '.join(FORMATS)}")
    whole: Any = getattr(figure, "figure", None) or figure
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(target.suffix.lower(), {})
    with rc_context(STYLE):
        buffer = io.BytesIO()
        whole.savefig(buffer, format=target.suffix.lower()[1:], dpi=dpi, metadata=undated)
    artifacts.write(target, buffer.getvalue())


def axes_for(ax: Axes | None, size: tuple[float, float] = COLUMN) -> Axes:
    """These axes, or new ones in a figure of their own."""
    if ax is not None:
        return ax
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        made = Figure(figsize=size, layout="constrained").add_subplot()
        made.grid(color="#e2e2e2", linewidth=0.5)
        made.set_axisbelow(True)
        made.spines[["top", "right"]].set_visible(False)
    return made


def label_of(text: str) -> str:
    """A name as matplotlib shows it letter for letter: no mathematics, no label that is hidden for its underscore.

    >>> label_of("$x$"), label_of("_a"), label_of("fine")
    ('\\\\$x\\\\$', ' _a', 'fine')
    """
    whole = visible(text)
    shown = (whole if len(whole) <= LONGEST else f"{whole[: LONGEST - 1]}…").replace("$", "\\$")
    return f" {shown}" if shown.startswith("_") else shown


def color_at(ax: Axes, color: str | None) -> str:
    """The colour that was asked for, or the first of the palette that these axes do not show yet."""
    if color is not None:
        return color
    used = {line.get_color() for line in ax.get_lines()}
    return next((shade for shade in PALETTE if shade not in used), PALETTE[0])


def finish(ax: Axes, x: str, y: str, place: Any = "above") -> Axes:
    """Names of the axes, and a legend where something has a label: inside, or above the axes where lines fill them."""
    small = STYLE["legend.fontsize"]
    ax.set_xlabel(label_of(x), fontsize=STYLE["axes.labelsize"])
    ax.set_ylabel(label_of(y), fontsize=STYLE["axes.labelsize"])
    labels = ax.get_legend_handles_labels()[1]
    if labels and place == "above":
        columns = 1 if max(map(len, labels)) > 26 else 2 if max(map(len, labels)) > 14 else 3
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=columns, frameon=False, fontsize=small)
    elif labels:
        ax.legend(loc=place, frameon=False, fontsize=small)
    return ax


def det_range(rates: Any) -> tuple[float, float]:
    """The rates that a DET plot shows: from a little below the least worth telling to a little above a half.

    >>> det_range(np.array([0.3, 0.02]))
    (0.01, 0.6)
    """
    some = rates[rates > 0]
    low = float(np.clip(some.min() / 2, 2e-4, 0.1)) if len(some) else 1e-3
    return low, 0.6


def draw_det(d: DetDisplay, ax: Axes | None, name: str | None, color: str | None) -> Axes:
    """A DET curve with its operating points."""
    fresh = ax is None
    ax = axes_for(ax, (COLUMN[0], COLUMN[0]))
    shade = color_at(ax, color)
    if len(d.far):
        ax.plot(ndtri(d.far), ndtri(d.frr), color=shade, label=label_of(name) if name else None)
    for p in d.points:
        if 0 < p.far < 1 and 0 < p.frr < 1:
            text = f"{p.label} {(p.far + p.frr) / 2:.2%}" if p.label == "EER" and not name else p.label
            marker = MARKS.get(p.label, "o")
            ax.plot(
                [ndtri(p.far)], [ndtri(p.frr)], marker, color=shade, ms=4.5, mfc="white", label=text if fresh else None
            )
    if fresh:
        _det_axes(ax, d)
    return finish(
        ax, f"false-alarm rate ({d.negative} accepted), %", f"miss rate ({d.positive} rejected), %", "upper right"
    )


def _det_axes(ax: Axes, d: DetDisplay) -> None:
    low, high = det_range(np.array([max(p.far, p.frr) for p in d.points] or [0.01]) / 8)
    ticks = [t for t in (0.0002, 0.0005, *TICKS) if low <= t <= high]
    places, texts = ndtri(np.array(ticks)), [f"{100 * t:g}" for t in ticks]
    ends = (float(ndtri(low)), float(ndtri(high)))
    ax.set_xticks(places, texts)
    ax.set_yticks(places, texts)
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    ax.plot(ends, ends, color=GREY, lw=0.7, ls=":")


def draw_roc(d: RocDisplay, ax: Axes | None, name: str | None, color: str | None) -> Axes:
    """A ROC curve with its operating points."""
    fresh = ax is None
    ax = axes_for(ax, (COLUMN[0], COLUMN[0]))
    shade = color_at(ax, color)
    if fresh:
        ax.plot([0, 1], [0, 1], color=GREY, lw=0.7, ls=":")
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.plot(d.fpr, d.tpr, color=shade, label=label_of(area_text(name or "AUC", d.area) or name or "ROC"))
    for p in d.points:
        ax.plot([p.far], [1 - p.frr], MARKS.get(p.label, "o"), color=shade, ms=4, mfc="white")
    return finish(ax, f"false-alarm rate ({d.negative} accepted)", f"hit rate ({d.positive} accepted)", "lower right")


def draw_pr(d: PrDisplay, ax: Axes | None, name: str | None, color: str | None) -> Axes:
    """A precision–recall curve above the precision of accepting everything."""
    fresh = ax is None
    ax = axes_for(ax)
    if fresh:
        ax.set(xlim=(0, 1), ylim=(0, 1.02))
        ax.axhline(d.prevalence, color=GREY, lw=0.7, ls=":", label="accept everything")
    label = area_text(name or "average precision", d.area) or name or "precision"
    ax.plot(d.recall, d.precision, color=color_at(ax, color), label=label_of(label))
    return finish(ax, f"recall ({d.positive} found)", f"precision ({d.positive} among accepted)", "lower left")


def draw_histogram(d: HistogramDisplay, ax: Axes | None, name: str | None, color: str | None) -> Axes:
    """Both classes as shares of themselves."""
    ax = axes_for(ax)
    prefix = f"{name}: " if name else ""
    for shares, shade, label, n in (
        (d.negatives, FAKE, d.negative, d.n_negative),
        (d.positives, color or REAL, d.positive, d.n_positive),
    ):
        ax.stairs(shares, d.edges, fill=True, color=shade, alpha=0.3, lw=0)
        ax.stairs(shares, d.edges, color=shade, lw=1.1, label=label_of(f"{prefix}{label} ({n:,})"))
    for p in d.points:
        if d.edges[0] <= p.threshold <= d.edges[-1]:
            ax.axvline(p.threshold, color=GREY, lw=0.9, ls="--", label=p.label)
    ax.set_ylim(0, 1.08 * max(float(d.positives.max()), float(d.negatives.max())))
    return finish(ax, f"score (higher = {d.positive})", "share of the class")


def draw_reliability(d: ReliabilityDisplay, ax: Axes | None, name: str | None, color: str | None) -> Axes:
    """What happened against what was stated, with the diagonal of perfect calibration."""
    fresh = ax is None
    ax = axes_for(ax, (COLUMN[0], COLUMN[0]))
    if fresh:
        ax.plot([0, 1], [0, 1], color=GREY, lw=0.7, ls=":")
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    bars = np.maximum([d.happened - d.low, d.high - d.happened], 0.0)
    style: dict[str, Any] = {"fmt": "o-", "ms": 3.5, "capsize": 2, "elinewidth": 0.8}
    ax.errorbar(d.stated, d.happened, bars, color=color_at(ax, color), label=label_of(name) if name else None, **style)
    if d.of == "confidence":
        return finish(ax, "stated confidence", "share of verdicts that are right", "upper left")
    return finish(ax, f"stated probability of {d.positive}", f"share that is {d.positive}", "upper left")


def draw_bayes_error(d: BayesErrorDisplay, ax: Axes | None, name: str | None, color: str | None) -> Axes:
    """Error rates over priors: actual, least, and by the prior alone."""
    fresh = ax is None
    ax = axes_for(ax)
    shade, prefix = color_at(ax, color), f"{name}: " if name else ""
    if fresh:
        ax.plot(d.prior, d.default, color=GREY, lw=0.8, ls=":", label="by the prior alone")
        ax.set(xlim=(float(d.prior[0]), float(d.prior[-1])))
    ax.plot(d.prior, d.actual, color=shade, label=label_of(f"{prefix}actual"))
    ax.plot(d.prior, d.least, color=shade, ls=DASHES[1], label=label_of(f"{prefix}after PAV"))
    highest = float(max(d.actual.max(), d.least.max()))
    ax.set_ylim(0, max(1.15 * min(highest, 0.5), ax.get_ylim()[1] if not fresh else 0))
    return finish(ax, f"prior log-odds of {d.positive}", "error rate")


def draw_tippett(d: TippettDisplay, ax: Axes | None, name: str | None, color: str | None) -> Axes:
    """Cumulative shares of both classes over the likelihood ratio."""
    fresh = ax is None
    ax = axes_for(ax)
    shade, prefix = color_at(ax, color), f"{name}: " if name else ""
    if fresh:
        ax.axvline(0, color=GREY, lw=0.7, ls=":")
        ax.set_ylim(0, 1.02)
    ax.plot(d.positive_lr, d.positive_share, color=shade, label=label_of(f"{prefix}{d.positive}"))
    ax.plot(d.negative_lr, d.negative_share, color=shade, ls=DASHES[1], label=label_of(f"{prefix}{d.negative}"))
    return finish(ax, "log₁₀ likelihood ratio at least", "share of the class")


def draw_risk_coverage(d: RiskCoverageDisplay, ax: Axes | None, name: str | None, color: str | None) -> Axes:
    """Wrong verdicts among the kept answers."""
    fresh = ax is None
    ax = axes_for(ax)
    ax.plot(d.coverage, d.risk, color=color_at(ax, color), label=label_of(name) if name else None)
    if fresh:
        ax.set(xlim=(0, 1))
    ax.set_ylim(0, max(1.1 * float(d.risk.max()), 0.01, ax.get_ylim()[1] if not fresh else 0))
    return finish(ax, "share of answers kept, most confident first", "share of them that is wrong", "best")


def draw_robustness(d: RobustnessDisplay, ax: Axes | None, name: str | None, color: str | None) -> Axes:
    """A figure over strength: a line an attack in its interval, its control dotted in the same colour."""
    ax = axes_for(ax)
    shade = {of: PALETTE[i % len(PALETTE)] for i, of in enumerate(dict.fromkeys(own.of for own in d.lines))}
    prefix = f"{name}: " if name else ""
    for own in d.lines:
        tone = color or shade[own.of]
        style: dict[str, Any] = {"ls": ":", "lw": 1.0} if own.is_control else {"marker": "o", "ms": 3.5}
        ax.plot(
            own.x, own.value, color=tone, label=label_of(f"{prefix}{own.name}") if not own.is_control else None, **style
        )
        if not own.is_control:
            ax.fill_between(own.x, own.low, own.high, color=tone, alpha=0.13, lw=0)
    if any(own.is_control for own in d.lines):
        ax.plot([], [], color=GREY, ls=":", lw=1.0, label="noise of the same norm")
    if d.clean is not None:
        ax.axhline(d.clean, color=GREY, lw=0.8, ls="--", label="clean")
    return finish(ax, d.across, explain(d.metric).title)


DRAWN: Final[Mapping[str, Callable[[Any, Axes | None, str | None, str | None], Axes]]] = {
    "det": draw_det,
    "roc": draw_roc,
    "pr": draw_pr,
    "histogram": draw_histogram,
    "reliability": draw_reliability,
    "bayes_error": draw_bayes_error,
    "tippett": draw_tippett,
    "risk_coverage": draw_risk_coverage,
}
"""Who draws which kind of display."""
