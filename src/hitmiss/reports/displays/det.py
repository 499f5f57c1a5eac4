"""Detection error trade-off: both error rates at every threshold, on normal-deviate axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
from scipy.special import ndtri

from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.findings.wording import per_cent
from hitmiss.metrics.curves import det_of_tally
from hitmiss.reports.displays.band import band_note, band_of
from hitmiss.reports.displays.display import Costs, Display, Point, facts, light, operating_points, tally_of
from hitmiss.reports.displays.lines import Lines, NumberRows, PlateOptions, key_of, mark_styles, share_text
from hitmiss.reports.plate import MUTED, Axis, Curve, Dots, Mark, Plate
from hitmiss.reports.readings import Reading

PER_DEVIATE: Final = 200.0
"""Pixels of a DET plot per normal deviate: 600 for the three from 0.1 % to 50 %."""
RATES: Final = (*(float(f"{d}e{e}") for e in range(-7, -1) for d in (1, 2, 5)), 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.9)
"""Rates that a DET axis may show as ticks."""
SHAPES: Final = {"EER": "square", "min DCF": "triangle", "act DCF": "circle", "threshold": "diamond"}


@dataclass(frozen=True, eq=False)
class DetDisplay(Display):
    """Detection error trade-off on normal-deviate axes. Rates of 0 and 1 lie at infinity and are not drawn.

    >>> d = DetDisplay.from_trials(Trials.of([1, 1, 1, 0, 0, 0], [3.0, 2.0, 0.5, 1.0, 0.0, -1.0]))
    >>> [(p.label, round(p.far, 3), round(p.frr, 3)) for p in d.points]
    [('EER', 0.333, 0.333)]
    """

    kind: ClassVar[str] = "det"
    reading: ClassVar[Reading] = Reading(
        "Detection error trade-off",
        "Both kinds of error at every threshold, on normal-deviate axes. Nearer to the lower left is better.",
    )
    metric: ClassVar[str] = "eer"
    far: Floats
    frr: Floats
    threshold: Floats
    points: tuple[Point, ...] = ()
    higher: str = ""
    """The class that higher scores of the file mean, if it is not the positive one."""
    worth_negative: Floats = field(default_factory=lambda: np.zeros(0))
    """As how many independent trials the false alarms at each point are known, if whole units are drawn."""
    worth_positive: Floats = field(default_factory=lambda: np.zeros(0))
    over: str = ""
    """The units."""

    @classmethod
    def from_trials(cls, trials: Trials, *, costs: Costs | None = None, tally: Tally | None = None) -> DetDisplay:
        """Compute the curve of scored trials with operating points; `costs` marks the minimum and the actual cost."""
        points = {"is_llr": trials.header.score_kind == "llr", "threshold": trials.header.decided_from}
        tally = tally_of(trials, tally)
        marks = operating_points(tally, costs=costs, **points)  # type: ignore[arg-type]
        return cls.from_tally(tally, *facts(trials, tally)[:2], marks).on_scale_of(trials)

    @classmethod
    def from_tally(
        cls, tally: Tally, positive: str = "positive", negative: str = "negative", points: Sequence[Point] = ()
    ) -> DetDisplay:
        """Compute the curve of a tally."""
        curve = det_of_tally(tally)
        drawn = (curve.far > 0) & (curve.far < 1) & (curve.frr > 0) & (curve.frr < 1)
        far, frr, threshold = curve.far[drawn], curve.frr[drawn], curve.thresholds[drawn]
        kept = light(PER_DEVIATE * ndtri(far), PER_DEVIATE * ndtri(frr))
        counts = int(tally.n_positive), int(tally.n_negative)
        return cls(positive, negative, *counts, far[kept], frr[kept], threshold[kept], tuple(points))

    @staticmethod
    def plate(lines: Lines[DetDisplay], how: PlateOptions) -> Plate:
        """Draw both error rates at every threshold, down to what this number of trials can show."""
        shown: list[DetDisplay] = [d for _, d in lines]
        low = max(min(0.5 / max(d.n_positive, d.n_negative, 1) for d in shown), 1e-7)
        high = float(np.clip(1.5 * max((max(p.far, p.frr) for d in shown for p in d.points), default=0.4), 0.5, 0.95))
        low = min(low, 0.02)

        def place(rate: Floats | float) -> Floats:
            return np.asarray(ndtri(np.clip(rate, low, high)))

        styles = mark_styles(lines, _eer, how)
        marks: list[Mark] = [
            Curve(np.array([ndtri(low), ndtri(high)]), np.array([ndtri(low), ndtri(high)]), MUTED, dash="dot", width=1)
        ]
        for (name, d), style in zip(lines, styles, strict=True):
            held = _inside(d.far, d.frr, low, high)
            far, frr = d.far[held], d.frr[held]
            if not len(far):  # no threshold has errors of both kinds: the curve is the two axes
                far, frr = np.array([low, low, high]), np.array([high, low, low])
            band = band_of(d, held, far, frr, place, how) if len(d.far) and len(lines) <= 2 else None
            marks.append(
                Curve(place(far), place(frr), style.color, name, width=style.width, band=band, label=style.label)
            )
        for (name, d), style in zip(lines, styles, strict=True):
            if style.color == MUTED and len(lines) > 1:
                continue
            for p in d.points:
                if 0 < p.far < 1 and 0 < p.frr < 1:
                    marks.append(
                        _marked(p, name, style.color, float(place(p.far)), float(place(p.frr)), len(lines) == 1)
                    )
        spaced = _spaced(low, high)
        ends = float(ndtri(low)), float(ndtri(high))
        x = Axis(f"false alarms, % ({shown[0].negative} accepted)", *ends, spaced)
        y = Axis(f"misses, % ({shown[0].positive} rejected)", *ends, spaced)
        note = band_note(shown, how)
        if any(not len(d.far) for d in shown):
            note = "A curve along the axes: at some threshold no trial is wrong, which these axes cannot show."
        key = key_of(styles, [n for n, _ in lines])
        return Plate(x, y, tuple(marks), _det_finding(lines, how), True, key, note)

    @staticmethod
    def numbers(lines: Lines[DetDisplay]) -> NumberRows:
        """Return the numbers behind the figure."""
        rows = [
            (n, [p.label, share_text(p.frr), share_text(p.far), f"{p.threshold:.4g}"])
            for n, d in lines
            for p in d.points
        ]
        return ("point", "miss rate", "false-alarm rate", "threshold"), rows


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
    return said if who else said[:1].upper() + said[1:]


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
