"""Templates of pages in which every text is escaped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hitmiss.core.text import escape_controls

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def escaping_templates(folder: Path, shown: Callable[[object], object]) -> Environment:
    """Return the templates of a folder; `shown` turns each value into what the page writes, before it is escaped.

    The filter `verbatim` keeps every character of a text.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    made.filters["verbatim"] = _verbatim
    return made


def _verbatim(text: str) -> Markup:
    from markupsafe import escape

    return escape(escape_controls(text))
