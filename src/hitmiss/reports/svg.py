"""Plates as SVG: text that can be read and searched, colours by class so that theme and paper decide them, no script.

Everything from outside is escaped; coordinates have one decimal of a pixel, which is finer than the thinned curves.
"""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import Final

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.core.text import escape_invisible
from hitmiss.reports.plate import MUTED, Axis, Bars, Block, Curve, Dots, GuideLine, Mark, Plate, Ribbon
from hitmiss.reports.thinning import thin

WIDTH, HEIGHT, SQUARE = 460, 330, 420
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 46
LINE: Final = 20
"""Height of a line of a figure with names at its left."""
LONGEST_NAME: Final = 28
"""Maximum characters of a name inside a figure; the whole name is in its tooltip."""
GRAIN, GREY_GRAIN = 0.3, 1.0
"""How far in pixels a drawn line may be from its points; grey lines among many need less care."""
LETTER: Final = 6.2
"""Width in pixels of an average letter of a label."""


class _Frame:
    """Converts places on the axes to pixels."""

    def __init__(self, plate: Plate, width: int, height: int) -> None:
        self.x, self.y = plate.x, plate.y
        left, bottom = (4, 26) if plate.is_bare else (_left(plate), BOTTOM)
        self.left, self.right, self.top, self.bottom = left, width - RIGHT, TOP, height - bottom

    def across(self, value: float) -> float:
        return self.left + (value - self.x.low) / (self.x.high - self.x.low) * (self.right - self.left)

    def down(self, value: float) -> float:
        return self.bottom - (value - self.y.low) / (self.y.high - self.y.low) * (self.bottom - self.top)

    def points(self, x: Floats, y: Floats, grain: float = GRAIN) -> list[tuple[float, float]]:
        """Return the points of a line in pixels, without those that the eye would not miss."""
        held = np.isfinite(x) & np.isfinite(y)
        across = self.left + (x[held] - self.x.low) / (self.x.high - self.x.low) * (self.right - self.left)
        down = self.bottom - (y[held] - self.y.low) / (self.y.high - self.y.low) * (self.bottom - self.top)
        kept = thin(across, down, grain)
        return list(zip(across[kept].tolist(), down[kept].tolist(), strict=True))


def _left(plate: Plate) -> int:
    """Return the room for the texts at the left: more where they are names."""
    longest = max((len(_short(text)) for _, text in plate.y.ticks), default=0)
    return max(LEFT, round(LETTER * longest) + 12) if plate.rows else LEFT


def svg_of(plate: Plate, id: str, *, small: bool = False, label: str = "") -> str:
    """Return the figure as an SVG element."""
    width, height = (
        (300, 210)
        if small
        else (
            WIDTH,
            SQUARE if plate.is_square else max(LINE * plate.rows + TOP + BOTTOM, 150) if plate.rows else HEIGHT,
        )
    )
    frame = _Frame(plate, width, height)
    box = f'x="{frame.left}" y="{frame.top}" width="{frame.right - frame.left}" height="{frame.bottom - frame.top}"'
    parts = [
        f'<svg class="plate{" names" if plate.rows else ""}" viewBox="0 0 {width} {height}" role="img" aria-label="{_text(label)}" data-x="{plate.x.low:.6g} {plate.x.high:.6g} {frame.left} {frame.right}" data-y="{plate.y.low:.6g} {plate.y.high:.6g} {frame.bottom} {frame.top}">',
        f'<clipPath id="{id}-clip"><rect {box}/></clipPath>',
        _axes(plate, frame, small),
        f'<g clip-path="url(#{id}-clip)">',
        *(_drawn(mark, frame) for mark in sorted(plate.marks, key=_is_front)),
        "</g>",
        _labels(plate, frame) if not small else "",
        "</svg>",
    ]
    return "".join(parts)


def _is_front(mark: Mark) -> bool:
    """Say whether a mark is drawn above the grey lines."""
    return not (isinstance(mark, Curve) and mark.color == MUTED)


def _axes(plate: Plate, frame: _Frame, small: bool) -> str:
    if plate.is_bare:
        return "".join(
            f'<text class="axis" x="{frame.across(value):.1f}" y="{frame.bottom + 18}" text-anchor="middle">{_text(text)}</text>'
            for value, text in plate.x.ticks
        )
    parts = [
        f'<rect class="frame-line" x="{frame.left}" y="{frame.top}" width="{frame.right - frame.left}" height="{frame.bottom - frame.top}"/>'
    ]
    for value, text in _fitting(plate.x, frame, small):
        x = frame.across(value)
        parts.append(
            f'<path class="grid" d="M{x:.1f} {frame.top}V{frame.bottom}"/><text class="tick" x="{x:.1f}" y="{frame.bottom + 15}" text-anchor="middle">{_text(text)}</text>'
        )
    ticks = plate.y.ticks[:: 2 if small and len(plate.y.ticks) > 4 else 1]
    for value, text in ticks:
        if not plate.y.low - 1e-9 <= value <= plate.y.high + 1e-9:
            continue
        y = frame.down(value)
        parts.append(
            f'<path class="grid" d="M{frame.left} {y:.1f}H{frame.right}"/><text class="tick" x="{frame.left - 6}" y="{y + 4:.1f}" text-anchor="end">{_text(_short(text))}</text>'
        )
    middle = (frame.left + frame.right) / 2
    parts.append(
        f'<text class="axis" x="{middle:.0f}" y="{frame.bottom + 36}" text-anchor="middle">{_text(_short(plate.x.title, 52))}</text>'
    )
    across = (frame.top + frame.bottom) / 2
    parts.append(
        f'<text class="axis" transform="translate(14 {across:.0f}) rotate(-90)" text-anchor="middle">{_text(_short(plate.y.title, 30 if small else 44))}</text>'
    )
    return "".join(parts)


def _fitting(axis: Axis, frame: _Frame, small: bool) -> list[tuple[float, str]]:
    """Return the ticks that do not overlap."""
    kept: list[tuple[float, str]] = []
    edge = -1e9
    for value, text in axis.ticks:
        if not axis.low - 1e-9 <= value <= axis.high + 1e-9:
            continue
        half = LETTER * len(text) / 2 + (7 if small else 4)
        if frame.across(value) - half >= edge:
            kept.append((value, text))
            edge = frame.across(value) + half
    return kept


def _drawn(mark: Mark, frame: _Frame) -> str:
    if isinstance(mark, Curve):
        return _curve(mark, frame)
    if isinstance(mark, Bars):
        return _bars(mark, frame)
    if isinstance(mark, Dots):
        return _dots(mark, frame)
    if isinstance(mark, Block):
        return _block(mark, frame)
    if isinstance(mark, Ribbon):
        return _ribbon(mark, frame)
    return _rule(mark, frame)


def _class(color: int) -> str:
    return "muted" if color == MUTED else f"k{color % 7}"


def _path(points: list[tuple[float, float]]) -> str:
    """Return the path of a line as steps in tenths of a pixel, which take half the bytes of places."""
    if not points:
        return ""
    tens = [(round(10 * x), round(10 * y)) for x, y in points]
    steps = [f"{_tenth(c - a)} {_tenth(d - b)}" for (a, b), (c, d) in pairwise(tens)]
    start = f"M{_tenth(tens[0][0])} {_tenth(tens[0][1])}"
    return f"{start}l{' '.join(steps).replace(' -', '-')}" if steps else start


def _tenth(value: int) -> str:
    """Format tenths as a number without needless zeros.

    >>> [_tenth(v) for v in (123, -5, 40, 0)]
    ['12.3', '-.5', '4', '0']
    """
    whole, rest = divmod(abs(value), 10)
    return ("-" if value < 0 else "") + (f"{whole or ''}.{rest}" if rest else f"{whole}")


def _curve(mark: Curve, frame: _Frame) -> str:
    band = ""
    if mark.band is not None:
        low, high = frame.points(*mark.band[:2]), frame.points(*mark.band[2:])
        band = f'<path class="band {_class(mark.color)}" d="{_path([*low, *high[::-1]])}Z"/>'
    title = f"<title>{_text(mark.name)}</title>" if mark.name else ""
    dash = f" {mark.dash}" if mark.dash else ""
    width = f' stroke-width="{mark.width:g}"' if mark.width != 2.0 else ""
    return f'{band}<path class="line {_class(mark.color)}{dash}" d="{_path(frame.points(mark.x, mark.y, GREY_GRAIN if mark.color == MUTED else GRAIN))}"{width}>{title}</path>'


def _bars(mark: Bars, frame: _Frame) -> str:
    base = frame.down(max(frame.y.low, 0.0))
    parts = []
    for left, right, height in zip(mark.edges[:-1], mark.edges[1:], mark.height, strict=True):
        if height > 0:
            a, b, y = frame.across(float(left)), frame.across(float(right)), frame.down(float(height))
            parts.append(f"M{a:.1f} {base:.1f}V{y:.1f}H{b:.1f}V{base:.1f}Z")
    return f'<path class="bars {_class(mark.color)}" d="{"".join(parts)}"><title>{_text(mark.label)}</title></path>'


SIGNS: Final = {
    "circle": "M{x:.1f} {y:.1f}m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
    "square": "M{x:.1f} {y:.1f}m-4-4h8v8h-8z",
    "triangle": "M{x:.1f} {y:.1f}m-5-4h10l-5 9z",
    "diamond": "M{x:.1f} {y:.1f}m0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z",
    "cross": "M{x:.1f} {y:.1f}m-4-4l8 8m0-8l-8 8",
}


def _dots(mark: Dots, frame: _Frame) -> str:
    parts = []
    for i, (a, b) in enumerate(zip(mark.x, mark.y, strict=True)):
        if not (np.isfinite(a) and np.isfinite(b)):
            continue
        x, y = frame.across(float(a)), frame.down(float(b))
        if mark.is_sideways and mark.low is not None and mark.high is not None:
            low, high = frame.across(float(mark.low[i])), frame.across(float(mark.high[i]))
            parts.append(f'<path class="whisker {_class(mark.color)}" d="M{low:.1f} {y:.1f}H{high:.1f}"/>')
        elif mark.low is not None and mark.high is not None and np.isfinite(mark.low[i]):
            low, high = frame.down(float(mark.low[i])), frame.down(float(mark.high[i]))
            parts.append(f'<path class="whisker {_class(mark.color)}" d="M{x:.1f} {low:.1f}V{high:.1f}"/>')
        title = f"<title>{_text(mark.about[i])}</title>" if i < len(mark.about) else ""
        kind = "hollow" if mark.is_hollow else "dot"
        parts.append(
            f'<path class="{kind} {_class(mark.color)}" d="{SIGNS[mark.shape].format(x=x, y=y)}">{title}</path>'
        )
    return "".join(parts)


def _rule(mark: GuideLine, frame: _Frame) -> str:
    if mark.is_upright:
        return f'<path class="rule" d="M{frame.across(mark.at):.1f} {frame.top}V{frame.bottom}"/>'
    return f'<path class="rule" d="M{frame.left} {frame.down(mark.at):.1f}H{frame.right}"/>'


def _block(mark: Block, frame: _Frame) -> str:
    left, right, top, bottom = (*map(frame.across, mark.x), frame.down(mark.y[1]), frame.down(mark.y[0]))
    box = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{max(bottom - top, 0.8):.1f}"'
    return f'<rect class="block {_class(mark.color)}" {box}><title>{_text(mark.about)}</title></rect>'


def _ribbon(mark: Ribbon, frame: _Frame) -> str:
    left, right = map(frame.across, mark.x)
    middle = (left + right) / 2
    (a, b), (c, d) = (tuple(map(frame.down, ends)) for ends in (mark.start, mark.end))
    path = f"M{left:.1f} {b:.1f}C{middle:.1f} {b:.1f} {middle:.1f} {d:.1f} {right:.1f} {d:.1f}V{c:.1f}C{middle:.1f} {c:.1f} {middle:.1f} {a:.1f} {left:.1f} {a:.1f}Z"
    return f'<path class="ribbon {_class(mark.color)}" d="{path}"><title>{_text(mark.about)}</title></path>'


def _labels(plate: Plate, frame: _Frame) -> str:
    """Place the words at rules and marks; one that would overlap is moved down, and left out if there is no room."""
    taken: list[tuple[float, float, float]] = []
    parts = []

    def put(x: float, y: float, text: str, anchor: str = "start") -> None:
        short = _short(text)
        wide = LETTER * len(short)
        left = x if anchor == "start" else x - wide
        if left + wide > frame.right - 2:
            left, anchor = min(x - 8, frame.right - 2) - wide, "start"
            x = left
        for shift in range(0, 60, 13):
            at = y + shift
            if at < frame.bottom - 2 and all(abs(at - b) > 12 or left > c or left + wide < a for a, b, c in taken):
                taken.append((left, at, left + wide))
                parts.append(
                    f'<text class="word" x="{max(left, frame.left + 2):.1f}" y="{at:.1f}">{_text(short)}</text>'
                )
                return

    for mark in plate.marks:
        if isinstance(mark, GuideLine) and mark.label:
            if mark.is_upright:
                put(frame.across(mark.at) + 4, frame.top + 12, mark.label)
            else:
                put(frame.right - LETTER * len(_short(mark.label)) - 6, frame.down(mark.at) - 5, mark.label)
        elif isinstance(mark, Dots) and mark.label and len(mark.x):
            put(frame.across(float(mark.x[0])) + 9, frame.down(float(mark.y[0])) - 6, mark.label)
        elif isinstance(mark, Block) and mark.label:
            put(frame.across(mark.x[1]) + 4, frame.down((mark.y[0] + mark.y[1]) / 2) + 4, mark.label)
    return "".join(parts)


def _short(text: str, longest: int = LONGEST_NAME) -> str:
    whole = escape_invisible(text)
    return whole if len(whole) <= longest else f"{whole[: longest - 1]}…"


def _text(text: str) -> str:
    return escape(escape_invisible(text), quote=True)
