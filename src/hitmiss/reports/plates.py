"""The one model of a figure: axes, and marks on them. A display of trials becomes a plate; renderers draw plates.

A plate does not depend on SVG or matplotlib. Places on its axes are plain numbers; an axis may be transformed (the normal
deviates of a DET plot), and holds the places and the texts of its ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
from scipy.special import ndtri

from hitmiss.core.sorting import Floats
from hitmiss.engine.interval import share_interval
from hitmiss.findings.wording import explain, is_share, per_cent
from hitmiss.reports.confidence_displays import ReliabilityDisplay, RiskCoverageDisplay
from hitmiss.reports.curve_displays import DetDisplay, PrDisplay, RocDisplay
from hitmiss.reports.displays import Point
from hitmiss.reports.histogram_display import HistogramDisplay
from hitmiss.reports.likelihood_displays import BayesErrorDisplay, TippettDisplay
from hitmiss.reports.plate import MUTED, Axis, Bars, Curve, Dots, GuideLine, Mark, Plate, ticks
from hitmiss.reports.robustness_display import RobustnessDisplay

D = TypeVar("D")
Lines = Sequence[tuple[str, D]]
RATES: Final = (
    *tuple(float(f"{d}e{e}") for e in range(-7, -1) for d in (1, 2, 5)),
    0.1,
    0.2,
    0.3,
    0.4,
    0.5,
    0.6,
    0.8,
    0.9,
)
"""Rates that a DET axis may show as ticks."""
SHAPES: Final = {"EER": "square", "min DCF": "triangle", "act DCF": "circle", "threshold": "diamond"}
MOST_COLOURED: Final = 7
"""Number of runs with their own colour and label; beyond it, the best are named and the others drawn in grey."""
MOST_NAMED: Final = 5


@dataclass(frozen=True)
class PlateOptions:
    """Settings of a plate besides its lines: whether trials are independent, so that bands can be drawn, whether a
    single run is named too, because others may be added to the same axes, the order of all runs, the best first, so
    that a run has one colour in every figure, and how the page writes numbers that stand elsewhere on it."""

    independent: bool = True
    named: bool = False
    order: tuple[str, ...] = ()
    written: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """How the page writes the value of a metric of a run, where it was measured."""

    def text(self, run: str, metric: str, otherwise: str) -> str:
        """Return how a value is written: as elsewhere on the page, or else as here."""
        return self.written.get((run, metric), otherwise)


def plate_of(kind: str, lines: Lines[D], how: PlateOptions | None = None) -> Plate:
    """Return the plate of one kind of display, with one line per run.

    >>> from hitmiss.core.trials import Trials
    >>> plate = plate_of("roc", [("a", RocDisplay.from_trials(Trials.of([1, 1, 0, 0], [3.0, 1.0, 2.0, 0.0])))])
    >>> plate.finding
    'Area under the curve 0.7500'
    """
    return PLATES[kind](lines, how or PlateOptions())


@dataclass(frozen=True)
class MarkStyle:
    """The colour, the label and the width of a run's marks."""

    color: int
    label: str
    width: float


def _mark_styles(lines: Lines[D], order: Callable[[D], float], how: PlateOptions) -> list[MarkStyle]:
    """Choose colours and labels: for all of a few runs; of many, for the best ones, with the others in grey."""
    names = [name for name, _ in lines]
    ranked = [name for name in how.order if name in names]
    if len(ranked) < len(names):  # no common order of the runs was given, so this figure decides
        known = dict(lines)
        ranked = names if len(lines) <= MOST_COLOURED else sorted(known, key=lambda name: order(known[name]))
    if len(lines) <= MOST_COLOURED:
        named = len(lines) > 1 or how.named
        place = {name: i for i, name in enumerate(how.order if set(names) <= {*how.order} else names)}
        return [MarkStyle(place[name], name if named else "", 2.0) for name in names]
    best = ranked[:MOST_NAMED]
    return [MarkStyle(best.index(n), n, 2.0) if n in best else MarkStyle(MUTED, "", 1.0) for n in names]


def _key(styles: Sequence[MarkStyle], words: Sequence[str], dash: str = "") -> tuple[tuple[int, str, str], ...]:
    named = [(d.color, dash, word) for d, word in zip(styles, words, strict=True) if d.label]
    grey = sum(not d.label for d in styles) if len(styles) > 1 else 0
    return (*named, *(((MUTED, dash, f"{grey} more runs"),) if grey else ()))


def _det(lines: Lines[DetDisplay], how: PlateOptions) -> Plate:
    """Draw both error rates at every threshold, down to what this number of trials can show."""
    shown: list[DetDisplay] = [d for _, d in lines]
    low = max(min(0.5 / max(d.n_positive, d.n_negative, 1) for d in shown), 1e-7)
    high = float(np.clip(1.5 * max((max(p.far, p.frr) for d in shown for p in d.points), default=0.4), 0.5, 0.95))
    low = min(low, 0.02)

    def place(rate: Floats | float) -> Floats:
        return np.asarray(ndtri(np.clip(rate, low, high)))

    styles = _mark_styles(lines, _eer, how)
    marks: list[Mark] = [
        Curve(np.array([ndtri(low), ndtri(high)]), np.array([ndtri(low), ndtri(high)]), MUTED, dash="dot", width=1)
    ]
    for (name, d), style in zip(lines, styles, strict=True):
        held = _inside(d.far, d.frr, low, high)
        far, frr = d.far[held], d.frr[held]
        if not len(far):  # no threshold has errors of both kinds: the curve is the two axes
            far, frr = np.array([low, low, high]), np.array([high, low, low])
        band = _band(d, held, far, frr, place, how) if len(d.far) and len(lines) <= 2 else None
        marks.append(Curve(place(far), place(frr), style.color, name, width=style.width, band=band, label=style.label))
    for (name, d), style in zip(lines, styles, strict=True):
        if style.color == MUTED and len(lines) > 1:
            continue
        for p in d.points:
            if 0 < p.far < 1 and 0 < p.frr < 1:
                marks.append(_marked(p, name, style.color, float(place(p.far)), float(place(p.frr)), len(lines) == 1))
    ticks = _spaced(low, high)
    ends = float(ndtri(low)), float(ndtri(high))
    x = Axis(f"false alarms, % ({shown[0].negative} accepted)", *ends, ticks)
    y = Axis(f"misses, % ({shown[0].positive} rejected)", *ends, ticks)
    note = _band_note(shown, how)
    if any(not len(d.far) for d in shown):
        note = "A curve along the axes: at some threshold no trial is wrong, which these axes cannot show."
    return Plate(
        x,
        y,
        tuple(marks),
        _det_finding(lines, how),
        True,
        _key(styles, [n for n, _ in lines]) if len(lines) > 1 or how.named else (),
        note,
    )


def _band_note(shown: Sequence[DetDisplay | RocDisplay], how: PlateOptions) -> str:
    """Say what the bands of curves are, or why there are none."""
    over = next((d.over for d in shown if d.over), "")
    if len(shown) > 2:
        return ""
    if over:
        return f"Band: 95 % of each rate by itself, over whole units ({over})."
    if how.independent:
        return "Band: 95 % of each rate by itself (Wilson)."
    return "No bands: trials were drawn in whole units, and these would be too narrow."


def _eer(d: DetDisplay) -> float:
    return float(next((p.far + p.frr for p in d.points if p.label == "EER"), 2.0))


def _det_finding(lines: Lines[DetDisplay], how: PlateOptions) -> str:
    """Return the title: the equal error rate, and the miss rate at a strict false-alarm rate."""
    name, best = min(lines, key=lambda line: _eer(line[1]))
    who = f"{name} is lowest: " if len(lines) > 1 else ""
    said = f"{who}equal error rate {how.text(name, best.metric, per_cent(_eer(best) / 2))}"
    if best.n_negative >= 1000 and (best.far < 0.01).any():
        at = int(np.argmin(np.abs(best.far - 0.01)))
        said += f"; at 1\u00a0% false alarms {per_cent(best.frr[at], 0)} are missed"
    return said if who else _capital(said)


def _band(
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


def _inside(far: Floats, frr: Floats, low: float, high: float) -> slice:
    at = np.flatnonzero((far >= low) & (far <= high) & (frr >= low) & (frr <= high))
    return slice(max(int(at[0]) - 1, 0), int(at[-1]) + 2) if len(at) else slice(None)


def _spaced(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Return the rates to write at a DET axis: none nearer to the next than a twelfth of it."""
    room, kept = (ndtri(high) - ndtri(low)) / 12, list[float]()
    for tick in (t for t in RATES if low <= t <= high):
        if not kept or ndtri(tick) - ndtri(kept[-1]) >= room:
            kept.append(tick)
    return tuple((float(ndtri(t)), f"{100 * t:g}") for t in kept)


def _marked(p: Point, name: str, color: int, x: float, y: float, is_labelled: bool) -> Dots:
    said = f"{p.label}{f', {name}' if name else ''}: miss {per_cent(p.frr, 2)}, false alarm {per_cent(p.far, 2)}, threshold {p.threshold:.4g}"
    shape = SHAPES.get(p.label, "cross")
    return Dots(np.array([x]), np.array([y]), color, shape, about=(said,), label=p.label if is_labelled else "")


def _roc(lines: Lines[RocDisplay], how: PlateOptions) -> Plate:
    styles = _mark_styles(lines, lambda d: -d.area, how)
    marks: list[Mark] = [Curve(np.array([0.0, 1.0]), np.array([0.0, 1.0]), MUTED, dash="dot", width=1)]
    for (name, d), style in zip(lines, styles, strict=True):
        found = _band(d, slice(None), d.fpr, 1.0 - d.tpr, np.asarray, how) if len(lines) <= 2 else None
        band = None if found is None else (found[0], 1.0 - found[1], found[2], 1.0 - found[3])
        marks.append(Curve(d.fpr, d.tpr, style.color, name, width=style.width, band=band, label=style.label))
    first = lines[0][1]
    words = [f"{name} · AUC {how.text(name, d.metric, f'{d.area:.4f}')}" if d.has_area else name for name, d in lines]
    name, best = max(lines, key=lambda line: line[1].area if not np.isnan(line[1].area) else -1.0)
    who = f"{name} is highest: area" if len(lines) > 1 else "Area"
    value = how.text(name, best.metric, f"{best.area:.4f}")
    finding = f"{who} under the curve {value}" if best.has_area else ""
    x = _share_axis(f"false alarms ({first.negative} accepted)")
    y = _share_axis(f"hits ({first.positive} accepted)")
    key = _key(styles, words) if len(lines) > 1 or how.named else ()
    return Plate(x, y, tuple(marks), finding, True, key, _band_note([d for _, d in lines], how))


def _share_axis(title: str, high: float = 1.0) -> Axis:
    return Axis(title, 0.0, high, ticks(0.0, high, percent=True))


def _pr(lines: Lines[PrDisplay], how: PlateOptions) -> Plate:
    first: PrDisplay = lines[0][1]
    styles = _mark_styles(lines, lambda d: -d.area, how)
    marks: list[Mark] = [GuideLine(first.prevalence, False, "accept everything")]
    marks += [
        Curve(d.recall, d.precision, style.color, name, width=style.width, label=style.label)
        for (name, d), style in zip(lines, styles, strict=True)
    ]
    words = [f"{name} · AP {how.text(name, d.metric, f'{d.area:.4f}')}" if d.has_area else name for name, d in lines]
    name, best = max(lines, key=lambda line: line[1].area if not np.isnan(line[1].area) else -1.0)
    who = f"{name} is highest: average" if len(lines) > 1 else "Average"
    value = how.text(name, best.metric, f"{best.area:.3f}")
    finding = f"{who} precision {value}; accepting everything gives {first.prevalence:.3f}" if best.has_area else ""
    x, y = _share_axis(f"recall ({first.positive} found)"), _share_axis(f"precision ({first.positive} among accepted)")
    return Plate(x, y, tuple(marks), finding, key=_key(styles, words) if len(lines) > 1 or how.named else ())


def histogram_plate(d: HistogramDisplay, ends: tuple[float, float] | None = None) -> Plate:
    """Draw both classes as bars, one behind the other; `ends`: a range shared with other plates."""
    top = 1.08 * float(max(d.positives.max(), d.negatives.max()))
    overlap = float(np.minimum(d.positives, d.negatives).sum())
    marks: list[Mark] = [
        Bars(d.edges, d.negatives, 1, f"{d.negative} ({d.n_negative:,})"),
        Bars(d.edges, d.positives, 0, f"{d.positive} ({d.n_positive:,})"),
    ]
    low, high = ends or (float(d.edges[0]), float(d.edges[-1]))
    marks += [
        GuideLine(p.threshold, True, f"{p.label} {p.threshold:.3g}") for p in d.points if low <= p.threshold <= high
    ]
    x = Axis(f"score (higher = {d.higher or d.positive})", low, high, ticks(low, high))
    key = ((1, "bar", f"{d.negative} ({d.n_negative:,})"), (0, "bar", f"{d.positive} ({d.n_positive:,})"))
    finding = f"{per_cent(overlap, 0)} of the scores overlap"
    return Plate(
        x,
        _share_axis("share of the class", top),
        tuple(marks),
        finding,
        key=key,
        note="The outer bins hold what lies beyond.",
    )


def _histogram(lines: Lines[HistogramDisplay], how: PlateOptions) -> Plate:
    del how
    return histogram_plate(lines[0][1])


def _reliability(lines: Lines[ReliabilityDisplay], how: PlateOptions) -> Plate:
    first: ReliabilityDisplay = lines[0][1]
    styles = _mark_styles(lines, lambda d: float(np.abs(d.stated - d.happened).max(initial=0.0)), how)
    marks: list[Mark] = [Curve(np.array([0.0, 1.0]), np.array([0.0, 1.0]), MUTED, dash="dot", width=1)]
    for (name, d), style in zip(lines, styles, strict=True):
        marks.append(Curve(d.stated, d.happened, style.color, name, width=1.2))
        about = tuple(
            f"{name}: stated {per_cent(s)}, happened {per_cent(h)}, n = {int(n):,}"
            for s, h, n in zip(d.stated, d.happened, d.n, strict=True)
        )
        ends = (d.low, d.high) if how.independent or d.over else (None, None)
        marks.append(Dots(d.stated, d.happened, style.color, low=ends[0], high=ends[1], about=about, is_hollow=False))
    confident = first.of == "confidence"
    x = _share_axis("stated confidence" if confident else f"stated probability of {first.positive}")
    y = _share_axis("verdicts that are right" if confident else f"share that is {first.positive}")
    note = "No intervals: the rows repeat, and Wilson's would be too narrow."
    if first.over:
        note = f"95 % intervals over whole units ({first.over})."
    elif how.independent:
        note = "95 % Wilson intervals."
    return Plate(
        x,
        y,
        tuple(marks),
        _reliability_finding(lines),
        True,
        _key(styles, [n for n, _ in lines]) if len(lines) > 1 or how.named else (),
        note,
    )


def _reliability_finding(lines: Lines[ReliabilityDisplay]) -> str:
    if len(lines) > 1:
        return ""
    d = lines[0][1]
    away = float((d.n * (d.stated - d.happened)).sum() / d.n.sum()) if d.n.sum() else 0.0
    side = "too high" if away > 0 else "too low"
    return (
        f"Statements are {per_cent(abs(away))} {side} on average"
        if abs(away) >= 0.005
        else "On average, statements match what happened"
    )


def _bayes_error(lines: Lines[BayesErrorDisplay], how: PlateOptions) -> Plate:
    first: BayesErrorDisplay = lines[0][1]
    styles = _mark_styles(lines, lambda d: float(d.actual.max()), how)
    marks: list[Mark] = [Curve(first.prior, first.default, MUTED, "by the prior alone", "dot", 1.2)]
    for (name, d), style in zip(lines, styles, strict=True):
        marks += [
            Curve(d.prior, d.actual, style.color, f"{name} actual", label=style.label),
            Curve(d.prior, d.least, style.color, f"{name} after PAV", "dash", 1.5),
        ]
    top = 1.12 * min(0.5, max(float(max(d.actual.max(), d.least.max())) for _, d in lines))
    low, high = float(first.prior[0]), float(first.prior[-1])
    gap = max(float((d.actual - d.least).max()) for _, d in lines)
    key = ((0, "", "actual"), (0, "dash", "after the best recalibration (PAV)"), (MUTED, "dot", "by the prior alone"))
    x = Axis(f"prior log-odds of {first.positive}", low, high, ticks(low, high))
    return Plate(
        x,
        _share_axis("error rate", top),
        tuple(marks),
        f"Miscalibration costs at most {per_cent(gap)} errors",
        key=key if len(lines) == 1 and not how.named else (*_key(styles, [n for n, _ in lines]), *key[1:]),
    )


def _tippett(lines: Lines[TippettDisplay], how: PlateOptions) -> Plate:
    shown: list[TippettDisplay] = [d for _, d in lines]
    styles = _mark_styles(lines, lambda d: 0.0, how)
    marks: list[Mark] = [GuideLine(0.0)]
    for (name, d), style in zip(lines, styles, strict=True):
        marks += [
            Curve(d.positive_lr, d.positive_share, style.color, f"{name} {d.positive}", label=style.label),
            Curve(d.negative_lr, d.negative_share, style.color, f"{name} {d.negative}", "dash", 1.5),
        ]
    every = np.concatenate([np.concatenate([d.positive_lr, d.negative_lr]) for d in shown])
    low, high = max(float(every.min()), -12.0), min(float(every.max()), 12.0)
    key = ((0, "", shown[0].positive), (0, "dash", shown[0].negative))
    misled = max(float(np.interp(0.0, d.negative_lr, d.negative_share, left=1.0, right=0.0)) for d in shown)
    x = Axis("log₁₀ likelihood ratio, at least", low, high, ticks(low, high))
    finding = f"For {per_cent(misled)} of {shown[0].negative} the evidence misleads"
    return Plate(
        x,
        _share_axis("share of the class"),
        tuple(marks),
        finding,
        key=key
        if len(lines) == 1 and not how.named
        else (*_key(styles, [n for n, _ in lines]), (MUTED, "dash", shown[0].negative)),
    )


def _risk_coverage(lines: Lines[RiskCoverageDisplay], how: PlateOptions) -> Plate:
    shown: list[RiskCoverageDisplay] = [d for _, d in lines]
    styles = _mark_styles(lines, lambda d: float(d.risk[-1]), how)
    marks = tuple(
        Curve(d.coverage, d.risk, style.color, name, width=style.width, label=style.label)
        for (name, d), style in zip(lines, styles, strict=True)
    )
    top = max(1.1 * max(float(d.risk.max()) for d in shown), 0.01)
    half = [float(np.interp(0.5, d.coverage, d.risk)) for d in shown]
    finding = (
        f"Of the more confident half {per_cent(half[0])} are wrong, of all {per_cent(float(shown[0].risk[-1]))}"
        if len(lines) == 1
        else ""
    )
    x = _share_axis("answers kept, the most confident first")
    return Plate(
        x,
        _share_axis("share of them that is wrong", top),
        marks,
        finding,
        key=_key(styles, [n for n, _ in lines]) if len(lines) > 1 or how.named else (),
    )


def _robustness(lines: Lines[RobustnessDisplay], how: PlateOptions) -> Plate:
    """Draw a figure over strength: one line per attack with its intervals, its control dotted in the same colour."""
    del how
    d: RobustnessDisplay = lines[0][1]
    shade = {name: i for i, name in enumerate(dict.fromkeys(own.of for own in d.lines))}
    every = np.unique(np.concatenate([own.x for own in d.lines]))
    is_strength = d.across == "strength" and d.clean is not None
    span = float(every[-1] - (0.0 if is_strength else every[0])) or 1.0
    step = 0.012 * span
    marks: list[Mark] = [GuideLine(d.clean, False, "clean")] if d.clean is not None else []
    runs = list(dict.fromkeys(own.run for own in d.lines))
    for own in d.lines:
        i = shade[own.of]
        aside = step * (i - (len(shade) - 1) / 2)
        dash = "dot" if own.is_control else DASHES[runs.index(own.run) % len(DASHES)]
        marks.append(Curve(own.x + aside, own.value, i, own.name, dash, 1.4 if own.is_control else 2.0))
        about = tuple(f"{own.name} at {x:g}: {v:.3f}" for x, v in zip(own.x, own.value, strict=True))
        ends = (None, None) if own.is_control else (own.low, own.high)
        marks.append(Dots(own.x + aside, own.value, i, low=ends[0], high=ends[1], about=about, is_hollow=False))
    values = np.concatenate(
        [np.concatenate([o.value, o.low[np.isfinite(o.low)], o.high[np.isfinite(o.high)]]) for o in d.lines]
    )
    values = np.append(values, d.clean) if d.clean is not None else values
    share = is_share(d.metric)
    low = 0.0 if share or d.best == "low" else float(min(values.min(), 0.0))
    high = min(1.0, 1.06 * float(values.max())) if share else 1.06 * float(values.max())
    left = 0.0 if is_strength else float(every[0])
    x = Axis(
        d.across,
        left - (1 + len(shade) / 2) * step,
        float(every[-1]) + (1 + len(shade) / 2) * step,
        tuple((float(v), f"{v:g}") for v in ([0.0] if is_strength else []) + every.tolist()),
    )
    y = Axis(
        explain(d.metric).title,
        low,
        high if high > low else low + 1.0,
        ticks(low, high if high > low else low + 1.0, percent=share),
    )
    key = tuple((i, "", name) for name, i in shade.items())
    if len(runs) > 1:
        key = (*key, *((6, DASHES[i % len(DASHES)], run) for i, run in enumerate(runs)))
    if any(own.is_control for own in d.lines):
        key = (*key, (MUTED, "dot", "noise of the same norm"))
    return Plate(x, y, tuple(marks), _robust_finding(d), key=key)


def _robust_finding(d: RobustnessDisplay) -> str:
    own = [o for o in d.lines if not o.is_control and len(o.value)]
    if not own:
        return ""
    worst = (max if d.best == "low" or d.metric == "changed" else min)(own, key=lambda o: float(o.value[-1]))
    value = per_cent(worst.value[-1], 0) if is_share(d.metric) else f"{worst.value[-1]:.3f}"
    return f"{worst.name} is worst: {value} at {d.across} {worst.x[-1]:g}"


DASHES: Final = ("", "dash", "dot")
"""Line styles that distinguish runs where colours distinguish attacks."""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


PLATES: Final[dict[str, Callable[..., Plate]]] = {
    "det": _det,
    "roc": _roc,
    "pr": _pr,
    "histogram": _histogram,
    "reliability": _reliability,
    "bayes_error": _bayes_error,
    "tippett": _tippett,
    "risk_coverage": _risk_coverage,
    "robustness": _robustness,
}
