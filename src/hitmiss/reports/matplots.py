"""Plates drawn with matplotlib: its Figure objects alone, no global state, sized for a column of a two-column paper.

One renderer for every figure: a plate says what is drawn, as for the page; here it becomes matplotlib artists.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from hitmiss.core import artifacts
from hitmiss.core.errors import UsageError
from hitmiss.core.packages import need_package
from hitmiss.core.text import escape_invisible
from hitmiss.reports.displays.display import plate_of
from hitmiss.reports.displays.lines import PlateOptions
from hitmiss.reports.plate import MUTED, Bars, Block, Curve, Dots, Mark, Plate, Ribbon

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hitmiss.reports.displays.display import Display
    from hitmiss.reports.displays.robustness import RobustnessDisplay

COLUMN: Final = (3.4, 2.9)
"""Inches: the width of a column of a two-column paper."""
PALETTE: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe & Ito: colours that people with colour-blindness can distinguish."""
GREY: Final = "#888888"
STYLES: Final[dict[str, Any]] = {"": "-", "dash": (0, (5, 2)), "dot": (0, (1, 1.4))}
SIGNS: Final = {"circle": "o", "square": "s", "triangle": "v", "diamond": "D", "cross": "x"}
FORMATS: Final = (".svg", ".pdf", ".png")
LONGEST_NAME: Final = 48
"""Maximum characters of a name in a figure."""
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


def require_matplotlib() -> None:
    """Refuse to draw where matplotlib is not installed, and say how to get it."""
    need_package("matplotlib", "drawing figures", "hitmiss[plots]")


def save(figure: Figure | Axes, path: str | Path, *, dpi: int = 300) -> None:
    """Write a figure (or the figure of these axes); the extension .svg, .pdf or .png decides the format."""
    require_matplotlib()
    from matplotlib import rc_context

    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise UsageError.of("figure-format", name=target.name, formats=tuple(FORMATS))
    whole = cast("Figure", getattr(figure, "figure", None) or figure)
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(target.suffix.lower(), {})
    with rc_context(STYLE):
        buffer = io.BytesIO()
        whole.savefig(buffer, format=target.suffix.lower()[1:], dpi=dpi, metadata=undated)
    artifacts.write(target, buffer.getvalue())


def axes_for(ax: Axes | None, size: tuple[float, float] = COLUMN) -> Axes:
    """Return these axes, or new ones in a new figure."""
    if ax is not None:
        return ax
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        made = Figure(figsize=size, layout="constrained").add_subplot()
        made.grid(color="#e2e2e2", linewidth=0.5)
        made.set_axisbelow(True)
        made.spines[["top", "right"]].set_visible(False)
    return made


def label_of(text: str) -> str:
    """Return a name as matplotlib shows it literally: no mathematics, no label hidden because of its underscore.

    >>> label_of("$x$"), label_of("_a"), label_of("fine")
    ('\\\\$x\\\\$', ' _a', 'fine')
    """
    whole = escape_invisible(text)
    shown = (whole if len(whole) <= LONGEST_NAME else f"{whole[: LONGEST_NAME - 1]}…").replace("$", "\\$")
    return f" {shown}" if shown.startswith("_") else shown


def plot(display: Display | RobustnessDisplay, ax: Axes | None, name: str | None, color: str | None) -> Axes:
    """Draw a display alone, or add it to axes that already hold others."""
    how = PlateOptions(independent=display.kind == "reliability", named=bool(name))
    return draw(plate_of([(name or "", display)], how), ax, color=color)


def together(kind: str, lines: Sequence[tuple[str, Display]], ax: Axes | None = None) -> Axes:
    """Draw the displays of several runs in the same axes, each under its name; histograms one after the other."""
    if kind == "histogram":
        for name, display in lines:
            ax = plot(display, ax, name if len(lines) > 1 else None, None)
        assert ax is not None
        return ax
    return draw(plate_of(lines, PlateOptions(independent=kind == "reliability")), ax)


def draw(
    plate: Plate, ax: Axes | None = None, *, color: str | None = None, size: tuple[float, float] | None = None
) -> Axes:
    """Draw a plate into these axes, or into new ones; axes that hold another plate keep their frame and get wider."""
    ax = axes_for(ax, size or ((COLUMN[0], COLUMN[0]) if plate.is_square else COLUMN))
    brush = _AxesMarks(ax, color)
    for mark in plate.marks:
        brush.mark(mark)
    for at, dash, word in plate.key:
        if word not in ax.get_legend_handles_labels()[1]:
            style: dict[str, Any] = {"lw": 5, "alpha": 0.55} if dash == "bar" else {"ls": STYLES[dash]}
            ax.plot([], [], color=brush.shade(at), label=label_of(word), **style)
    _frame(ax, plate, brush.is_first)
    labels = ax.get_legend_handles_labels()[1]
    if labels:
        columns = 1 if max(map(len, labels)) > 26 else 2 if max(map(len, labels)) > 14 else 3
        small = STYLE["legend.fontsize"]
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=columns, frameon=False, fontsize=small)
    elif plate.finding and brush.is_first:
        ax.set_title(label_of(plate.finding), fontsize=STYLE["axes.titlesize"], loc="left")
    return ax


def _frame(ax: Axes, plate: Plate, is_first: bool) -> None:
    """Set the names, ends and ticks of both axes."""
    x, y = plate.x, plate.y
    if not is_first:
        ax.set_xlim(min(ax.get_xlim()[0], x.low), max(ax.get_xlim()[1], x.high))
        ax.set_ylim(min(ax.get_ylim()[0], y.low), max(ax.get_ylim()[1], y.high))
        return
    ax.set_xlim(x.low, x.high)
    ax.set_ylim(y.low, y.high)
    ax.set_xlabel(label_of(x.title), fontsize=STYLE["axes.labelsize"])
    ax.set_ylabel(label_of(y.title), fontsize=STYLE["axes.labelsize"])
    for axis, put in ((x, ax.set_xticks), (y, ax.set_yticks)):
        inside = [(at, text) for at, text in axis.ticks if axis.low - 1e-9 <= at <= axis.high + 1e-9]
        put([at for at, _ in inside], [label_of(text) for _, text in inside])
    if plate.is_square:
        ax.set_aspect("equal")
    if plate.is_bare:
        ax.grid(visible=False)
        ax.spines[["left", "bottom"]].set_visible(False)
        ax.tick_params(length=0)


class _AxesMarks:
    """Draws marks as artists of some axes, in colours that these do not show yet."""

    def __init__(self, ax: Axes, color: str | None) -> None:
        self.ax, self.color = ax, color
        self.is_first = not ax.has_data()
        used = {line.get_color() for line in ax.get_lines()}
        self.free = [c for c in PALETTE if c not in used] or list(PALETTE)

    def shade(self, at: int) -> str:
        if at == MUTED:
            return GREY
        return self.color if at == 0 and self.color is not None else self.free[at % len(self.free)]

    def mark(self, mark: Mark) -> None:
        if isinstance(mark, Curve):
            self._curve(mark)
        elif isinstance(mark, Bars):
            shade = self.shade(mark.color)
            self.ax.stairs(mark.height, mark.edges, fill=True, color=shade, alpha=0.3, lw=0)
            self.ax.stairs(mark.height, mark.edges, color=shade, lw=1.1)
        elif isinstance(mark, Dots):
            self._dots(mark)
        elif isinstance(mark, Block):
            self._block(mark)
        elif isinstance(mark, Ribbon):
            self._ribbon(mark)
        else:
            drawn = self.ax.axvline if mark.is_upright else self.ax.axhline
            drawn(mark.at, color=GREY, lw=0.8, ls=STYLES["dot"], label=label_of(mark.label) if mark.label else None)

    def _curve(self, mark: Curve) -> None:
        if mark.color == MUTED and not mark.name and not self.is_first:
            return  # the diagonal is already there
        shade = self.shade(mark.color)
        self.ax.plot(mark.x, mark.y, color=shade, ls=STYLES[mark.dash], lw=0.7 * mark.width, gid=mark.name or None)
        if mark.band is not None:
            x, y = (np.concatenate([mark.band[i], mark.band[i + 2][::-1]]) for i in (0, 1))
            self.ax.fill(x, y, color=shade, alpha=0.15, lw=0)

    def _dots(self, mark: Dots) -> None:
        shade = self.shade(mark.color)
        style: dict[str, Any] = {"ms": 4.5, "mfc": "white"} if mark.is_hollow else {"ms": 3.5}
        ends: dict[str, Any] = {}
        if mark.low is not None and mark.high is not None:
            middle = mark.x if mark.is_sideways else mark.y
            ends = {"xerr" if mark.is_sideways else "yerr": np.maximum([middle - mark.low, mark.high - middle], 0.0)}
        self.ax.errorbar(mark.x, mark.y, fmt=SIGNS[mark.shape], color=shade, elinewidth=0.9, capsize=2, **ends, **style)
        if mark.label:
            place = (float(mark.x[0]), float(mark.y[0]))
            self.ax.annotate(label_of(mark.label), place, (5, 4), textcoords="offset points", fontsize=7)

    def _block(self, mark: Block) -> None:
        from matplotlib.patches import Rectangle

        (left, right), (low, high) = mark.x, mark.y
        alpha = mark.depth if mark.depth is not None else 1.0
        box = Rectangle((left, low), right - left, high - low, color=self.shade(mark.color), alpha=alpha, lw=0)
        self.ax.add_patch(box)
        if mark.label and mark.depth is not None:
            ink = "white" if mark.depth > 0.6 else "black"
            middle = (left + right) / 2, (low + high) / 2
            self.ax.text(*middle, label_of(mark.label), ha="center", va="center", fontsize=6.5, color=ink)
        elif mark.label:
            self.ax.text(right + 0.03, (low + high) / 2, label_of(mark.label), va="center", fontsize=6.5)

    def _ribbon(self, mark: Ribbon) -> None:
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path as Outline

        (left, right), (a, b), (c, d) = mark.x, mark.start, mark.end
        mid = (left + right) / 2
        points = [(left, b), (mid, b), (mid, d), (right, d), (right, c), (mid, c), (mid, a), (left, a), (left, b)]
        codes = [1, 4, 4, 4, 2, 4, 4, 4, 79]
        self.ax.add_patch(PathPatch(Outline(points, codes), color=self.shade(mark.color), alpha=0.38, lw=0))
