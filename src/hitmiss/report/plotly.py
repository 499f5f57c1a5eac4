"""Displays as Plotly figures: plain dictionaries, colours as tokens that the page resolves (`@0` … `@6`, `@muted`).

Plotly takes `<b>`, `<a>` and entities in names for markup, so every text from outside is escaped before it comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from hitmiss.report.displays import DetDisplay, Display, Point, PrDisplay, RocDisplay, area_text
from hitmiss.report.glossary import explain, is_share
from hitmiss.report.robustness_display import RobustnessDisplay, StrengthLine
from hitmiss.report.score_displays import (
    BayesErrorDisplay,
    HistogramDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    TippettDisplay,
)
from hitmiss.visible import visible

Lines = Sequence[tuple[str, Any]]
Figure = dict[str, Any]
TICKS: Final = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
SYMBOLS: Final = {"EER": "square", "min DCF": "triangle-down", "act DCF": "circle", "threshold": "diamond"}
DASHES: Final = ("solid", "dash", "dot")
COLORS: Final = 7
MUTED: Final = "@muted"
LONGEST: Final = 64
"""Characters of a name that a figure has room for."""


def safe(text: str) -> str:
    """A text as Plotly shows it letter for letter.

    >>> safe("<b>C01</b> & co")
    '&lt;b&gt;C01&lt;/b&gt; &amp; co'
    """
    whole = visible(text)
    shown = whole if len(whole) <= LONGEST else f"{whole[: LONGEST - 1]}…"
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def numbers(values: ArrayLike, digits: int = 5) -> list[float | None]:
    """Numbers with few digits; what is not finite is null."""
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in np.asarray(values, dtype=float).tolist()]


def line(x: ArrayLike, y: ArrayLike, name: str, i: int, **more: Any) -> Figure:
    """A line in the colour of its run; runs beyond the palette are dashed."""
    style = {"color": f"@{i % COLORS}", "width": 2, "dash": DASHES[i // COLORS % len(DASHES)], **more.pop("line", {})}
    base = {"type": "scatter", "mode": "lines", "x": numbers(x), "y": numbers(y), "name": safe(name), "line": style}
    return {**base, **more}


def reference(x: ArrayLike, y: ArrayLike, name: str = "") -> Figure:
    """A thin dotted line to compare with."""
    made = line(x, y, name, 0, line={"color": MUTED, "width": 1, "dash": "dot"}, hoverinfo="skip")
    return {**made, "showlegend": bool(name)}


def layout(x: Figure, y: Figure, *, legend: bool, **more: Any) -> Figure:
    """Axes with their titles; the page adds fonts and colours."""
    return {"xaxis": x, "yaxis": y, "showlegend": legend, "hovermode": "closest", **more}


def axis(title: str, **more: Any) -> Figure:
    """An axis."""
    return {"title": {"text": safe(title)}, **more}


def det(lines: Lines) -> Figure:
    """DET curves on normal-deviate axes."""
    shown: list[DetDisplay] = [d for _, d in lines]
    data: list[Figure] = []
    low, high = _det_range(shown)
    for i, (name, d) in enumerate(lines):
        hover = _hover(
            name, "miss %{customdata[1]:.2%}, false alarm %{customdata[0]:.2%}<br>threshold %{customdata[2]:.4g}"
        )
        far, frr, at = (values[_in_sight(d, low, high)] for values in (d.far, d.frr, d.threshold))
        custom = [list(p) for p in zip(numbers(far, 4), numbers(frr, 4), numbers(at, 4), strict=True)]
        data.append(line(ndtri(far), ndtri(frr), name, i, customdata=custom, hovertemplate=hover))
        data += [m for p in d.points if 0 < p.far < 1 and 0 < p.frr < 1 for m in [_mark(p, name, i, ndtri)]]
    ends = [float(ndtri(low)), float(ndtri(high))]
    ticks = _ticks(low, high)
    scale: Figure = {
        "range": [round(e, 4) for e in ends],
        "tickvals": numbers(ndtri(np.array(ticks))),
        "ticktext": [f"{100 * t:g}" for t in ticks],
        "constrain": "domain",
        "zeroline": False,
    }
    x = axis(f"false-alarm rate, % ({shown[0].negative} accepted)", **scale)
    y = axis(f"miss rate, % ({shown[0].positive} rejected)", scaleanchor="x", **scale)
    return {"data": [reference(ends, ends), *_shared_marks(data, lines)], "layout": layout(x, y, legend=True)}


def _det_range(shown: Sequence[DetDisplay]) -> tuple[float, float]:
    """Around the points of balanced errors and of least cost; a curve's tails are worth a decade, not four."""
    points = [p for d in shown for p in d.points if p.label != "act DCF"]
    worst = max((max(p.far, p.frr) for p in points), default=0.1)
    least = min((min(p.far, p.frr) for p in points if min(p.far, p.frr) > 0), default=0.01)
    return float(np.clip(least / 6, 2e-4, 0.02)), float(np.clip(1.5 * worst, 0.5, 0.9))


def _in_sight(d: DetDisplay, low: float, high: float) -> slice:
    """The points from the last before the axes to the first behind them: what lies beyond is never seen."""
    inside = (d.far >= low) & (d.far <= high) & (d.frr >= low) & (d.frr <= high)
    at = np.flatnonzero(inside)
    return slice(max(int(at[0]) - 1, 0), int(at[-1]) + 2) if len(at) else slice(None)


def _ticks(low: float, high: float) -> list[float]:
    """The rates to write at an axis: none nearer to the next than a fifteenth of the axis."""
    room = (ndtri(high) - ndtri(low)) / 15
    kept: list[float] = []
    for tick in (t for t in TICKS if low <= t <= high):
        if not kept or ndtri(tick) - ndtri(kept[-1]) >= room:
            kept.append(tick)
    return kept


def _mark(p: Point, name: str, i: int, place: Callable[[float], float], down: bool = True) -> Figure:
    """An operating point: hollow, in the colour of its run."""
    y = p.frr if down else 1 - p.frr
    rates = f"miss {p.frr:.2%}, false alarm {p.far:.2%}<br>threshold {p.threshold:.4g}"
    return {
        "type": "scatter", "mode": "markers", "x": numbers([place(p.far)]), "y": numbers([place(y)]), "name": p.label,
        "marker": {"symbol": SYMBOLS.get(p.label, "x"), "size": 10, "color": "@surface", "line": {"color": f"@{i % COLORS}", "width": 2}},
        "hovertemplate": f"{p.label}, {safe(name)}<br>{rates}<extra></extra>", "legendgroup": p.label, "cliponaxis": down,
    }  # fmt: skip


def _shared_marks(data: list[Figure], lines: Lines) -> list[Figure]:
    """Lines first; each kind of mark stands in the legend once; one run alone needs no line there."""
    data = sorted(data, key=lambda trace: "legendgroup" in trace)
    seen: set[str] = set()
    for trace in data:
        if "legendgroup" in trace:
            trace["showlegend"] = trace["legendgroup"] not in seen
            seen.add(trace["legendgroup"])
        elif len(lines) == 1:
            trace["showlegend"] = False
    return data


def _hover(name: str, text: str) -> str:
    return f"{safe(name)}<br>{text}<extra></extra>"


def roc(lines: Lines) -> Figure:
    """ROC curves with their areas."""
    data: list[Figure] = [reference([0, 1], [0, 1])]
    for i, (name, d) in enumerate(lines):
        hover = _hover(name, "hit %{y:.2%}, false alarm %{x:.2%}<br>threshold %{customdata:.4g}")
        label = name + area_text(" · AUC", d.area)
        data.append(line(d.fpr, d.tpr, label, i, customdata=numbers(d.threshold, 4), hovertemplate=hover))
        data += [_mark(p, name, i, float, down=False) | {"showlegend": False} for p in d.points]
    first: RocDisplay = lines[0][1]
    x = axis(f"false-alarm rate ({first.negative} accepted)", range=[-0.01, 1.01], constrain="domain")
    y = axis(f"hit rate ({first.positive} accepted)", range=[-0.01, 1.01], scaleanchor="x", constrain="domain")
    return {"data": data, "layout": layout(x, y, legend=True)}


def pr(lines: Lines) -> Figure:
    """Precision–recall curves."""
    first: PrDisplay = lines[0][1]
    data: list[Figure] = [reference([0, 1], [first.prevalence] * 2, "accept everything")]
    for i, (name, d) in enumerate(lines):
        hover = _hover(name, "precision %{y:.2%} at recall %{x:.2%}<br>threshold %{customdata:.4g}")
        label = name + area_text(" · AP", d.area)
        data.append(line(d.recall, d.precision, label, i, customdata=numbers(d.threshold, 4), hovertemplate=hover))
    x = axis(f"recall ({first.positive} found)", range=[0, 1.01])
    y = axis(f"precision ({first.positive} among accepted)", range=[0, 1.03])
    return {"data": data, "layout": layout(x, y, legend=True)}


def histogram(lines: Lines) -> Figure:
    """Both classes of one run as bars, one behind the other."""
    d: HistogramDisplay = lines[0][1]
    middle, width = (d.edges[:-1] + d.edges[1:]) / 2, float(d.edges[1] - d.edges[0])
    data = [
        {
            "type": "bar", "x": numbers(middle), "y": numbers(shares, 4), "width": float(f"{width:.5g}"), "opacity": 0.6,
            "marker": {"color": color, "line": {"width": 0}}, "name": safe(f"{label} ({n:,})"),
            "hovertemplate": f"{safe(label)}: %{{y:.2%}} near %{{x:.3g}}<extra></extra>",
        }
        for shares, color, label, n in ((d.negatives, "@1", d.negative, d.n_negative), (d.positives, "@0", d.positive, d.n_positive))
    ]  # fmt: skip
    top = 1.05 * float(max(d.positives.max(), d.negatives.max()))
    inside = [p for p in d.points if d.edges[0] <= p.threshold <= d.edges[-1]]
    marks = [reference([p.threshold] * 2, [0, top], f"{p.label} at {p.threshold:.3g}") for p in inside]
    x, y = (
        axis(f"score (higher = {d.positive})", zeroline=False),
        axis("share of the class", range=[0, top], tickformat=".0%"),
    )
    return {"data": [*data, *marks], "layout": layout(x, y, legend=True, barmode="overlay", bargap=0)}


def reliability(lines: Lines) -> Figure:
    """What happened against what was stated."""
    data: list[Figure] = [reference([0, 1], [0, 1])]
    for i, (name, d) in enumerate(lines):
        bars = {
            "type": "data",
            "symmetric": False,
            "array": numbers(np.maximum(d.high - d.happened, 0), 4),
            "thickness": 1.2,
            "width": 3,
        }
        bars["arrayminus"] = numbers(np.maximum(d.happened - d.low, 0), 4)
        hover = _hover(name, "stated %{x:.2%}, happened %{y:.2%}<br>%{customdata:,} trials")
        more = {"mode": "lines+markers", "error_y": bars, "customdata": numbers(d.n, 9), "hovertemplate": hover}
        data.append(
            {**line(d.stated, d.happened, name, i), **more, "marker": {"size": 7}, "showlegend": len(lines) > 1}
        )
    first: ReliabilityDisplay = lines[0][1]
    stated = "stated confidence" if first.of == "confidence" else f"stated probability of {first.positive}"
    happened = "share of verdicts that are right" if first.of == "confidence" else f"share that is {first.positive}"
    x = axis(stated, range=[-0.02, 1.02], constrain="domain")
    return {
        "data": data,
        "layout": layout(
            x, axis(happened, range=[-0.02, 1.02], scaleanchor="x", constrain="domain"), legend=len(lines) > 1
        ),
    }


def bayes_error(lines: Lines) -> Figure:
    """Error rates of Bayes decisions over priors."""
    first: BayesErrorDisplay = lines[0][1]
    data: list[Figure] = [reference(first.prior, first.default, "by the prior alone")]
    for i, (name, d) in enumerate(lines):
        prefix = f"{name}: " if len(lines) > 1 else ""
        for y, label, more in (
            (d.actual, "actual", {}),
            (d.least, "after PAV", {"line": {"dash": "dash", "width": 1.5}}),
        ):
            hover = _hover(name, f"{label} %{{y:.3%}} at prior log-odds %{{x:.1f}}")
            data.append(line(d.prior, y, f"{prefix}{label}", i, hovertemplate=hover, **more))
    top = 1.12 * min(0.5, max(float(max(d.actual.max(), d.least.max())) for _, d in lines))
    x = axis(
        f"prior log-odds of {first.positive}", zeroline=False, range=[float(first.prior[0]), float(first.prior[-1])]
    )
    return {"data": data, "layout": layout(x, axis("error rate", range=[0, top], tickformat="~%"), legend=True)}


def tippett(lines: Lines) -> Figure:
    """Cumulative shares of both classes over the likelihood ratio."""
    data: list[Figure] = [reference([0, 0], [0, 1])]
    for i, (name, d) in enumerate(lines):
        prefix = f"{name}: " if len(lines) > 1 else ""
        hover = _hover(name, "%{y:.2%} have a log₁₀ LR of %{x:.2f} or more")
        dash = {"line": {"dash": "dash", "width": 1.5}}
        data.append(line(d.positive_lr, d.positive_share, f"{prefix}{d.positive}", i, hovertemplate=hover))
        data.append(line(d.negative_lr, d.negative_share, f"{prefix}{d.negative}", i, hovertemplate=hover, **dash))
    shown: list[TippettDisplay] = [d for _, d in lines]
    ends = [
        min(float(min(d.negative_lr.min(), d.positive_lr.min())) for d in shown),
        max(float(max(d.negative_lr.max(), d.positive_lr.max())) for d in shown),
    ]
    x = axis("log₁₀ likelihood ratio, at least", zeroline=False, range=[max(ends[0], -12), min(ends[1], 12)])
    return {
        "data": data,
        "layout": layout(x, axis("share of the class", range=[0, 1.02], tickformat=".0%"), legend=True),
    }


def risk_coverage(lines: Lines) -> Figure:
    """Wrong verdicts among the kept answers."""
    data = []
    for i, (name, d) in enumerate(lines):
        hover = _hover(name, "%{y:.2%} wrong among the %{x:.1%} most confident<br>confidence from %{customdata:.3g}")
        more = {"customdata": numbers(d.confidence, 4), "hovertemplate": hover, "showlegend": len(lines) > 1}
        data.append(line(d.coverage, d.risk, name, i, **more))
    shown: list[RiskCoverageDisplay] = [d for _, d in lines]
    top = max(1.1 * max(float(d.risk.max()) for d in shown), 0.01)
    x = axis("share of answers kept, most confident first", range=[0, 1.01], tickformat=".0%")
    return {
        "data": data,
        "layout": layout(
            x, axis("share of them that is wrong", range=[0, top], tickformat="~%"), legend=len(lines) > 1
        ),
    }


def robustness(lines: Lines) -> Figure:
    """A figure over strength: a line an attack with its intervals, its control dotted in the same colour.

    Attacks stand a little beside each other, so that intervals at one strength can be told apart.
    """
    d: RobustnessDisplay = lines[0][1]
    shade = {name: i for i, name in enumerate(dict.fromkeys(own.of for own in d.lines))}
    every = np.unique(np.concatenate([own.x for own in d.lines]))
    step = 0.012 * float(every[-1] - every[0] or 1.0)
    aside = {name: step * (i - (len(shade) - 1) / 2) for name, i in shade.items()}
    drawn = [_strength_line(d, own, shade[own.of], aside[own.of]) for own in d.lines]
    clean = [reference(every[[0, -1]], [d.clean] * 2, "clean")] if d.clean is not None else []
    if any(own.is_control for own in d.lines):
        dotted = {"color": MUTED, "width": 1.5, "dash": "dot"}
        drawn.append({**reference([np.nan], [np.nan], "noise of the same norm"), "line": dotted})
    share = {"tickformat": ".0%"} if is_share(d.metric) else {}
    y = axis(explain(d.metric).title, **share, **({"rangemode": "tozero"} if d.best == "low" else {}))
    x = axis(d.across, tickvals=numbers(every), ticktext=[f"{value:g}" for value in every])
    return {"data": [*clean, *drawn], "layout": layout(x, y, legend=True)}


def _strength_line(d: RobustnessDisplay, own: StrengthLine, i: int, aside: float) -> Figure:
    unit = ":.2%" if is_share(d.metric) else ":.4f"
    ends = [f"[{a:.3f}, {b:.3f}]" if np.isfinite(a) else "" for a, b in zip(own.low, own.high, strict=True)]
    told = [list(pair) for pair in zip(numbers(own.x), ends, strict=True)]
    hover = _hover(own.name, f"{safe(d.across)} %{{customdata[0]}}: %{{y{unit}}} %{{customdata[1]}}")
    more: Figure = {"mode": "lines+markers", "marker": {"size": 4 if own.is_control else 7}, "customdata": told}
    more |= {"hovertemplate": hover, "legendgroup": safe(own.of), "showlegend": not own.is_control}
    if own.is_control:
        return line(own.x + aside, own.value, own.name, i, line={"dash": "dot", "width": 1.5}, **more)
    if np.isfinite(own.low).any():
        above, below = own.high - own.value, own.value - own.low
        bars = {"type": "data", "symmetric": False, "thickness": 1.2, "width": 3}
        more["error_y"] = {
            **bars,
            "array": numbers(np.maximum(above, 0), 4),
            "arrayminus": numbers(np.maximum(below, 0), 4),
        }
    return line(own.x + aside, own.value, own.name, i, **more)


FIGURES: Final[dict[str, Callable[[Lines], Figure]]] = {
    "det": det,
    "roc": roc,
    "pr": pr,
    "histogram": histogram,
    "reliability": reliability,
    "bayes_error": bayes_error,
    "tippett": tippett,
    "risk_coverage": risk_coverage,
    "robustness": robustness,
}


def figure_of(kind: str, lines: Sequence[tuple[str, Display]]) -> Figure:
    """The Plotly figure of one kind of display, one line a run."""
    return FIGURES[kind](lines)
