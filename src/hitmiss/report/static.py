"""Figures of a report without scripts: drawn with matplotlib, as SVG images inside the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

from hitmiss.report.matplots import STYLE, label_of

SIZE = (4.6, 3.9)


def image_of(kind: str, lines: Sequence[tuple[str, Any]]) -> str:
    """The figure of some runs as a data address. An image cannot run scripts, whatever the names in it say."""
    from matplotlib import rc_context

    with rc_context({**STYLE, "svg.fonttype": "none", "font.family": "sans-serif"}):
        ax = None
        for name, display in lines:
            ax = display.plot(ax=ax, name=name if len(lines) > 1 else None)
        assert ax is not None
        figure: Any = ax.figure
        figure.set_size_inches(*SIZE)
        packed = io.BytesIO()
        figure.savefig(packed, format="svg", metadata={"Date": None, "Title": label_of(kind)})
    return f"data:image/svg+xml;base64,{base64.b64encode(packed.getvalue()).decode()}"
