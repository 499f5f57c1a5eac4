"""The look of the review: templates in which every text is escaped, the style, the script, and the error pages."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hitmiss.core.templates import escaping_templates
from hitmiss.core.text import escape_invisible

if TYPE_CHECKING:
    from jinja2 import Environment


TEMPLATES: Final = Path(__file__).parent / "templates"
ASSETS: Final = {"review.css": "text/css", "review.js": "text/javascript"}
SORRY: Final = {
    400: "That was not a valid request.",
    403: "This form is out of date. Go back, load the page again and repeat what you did; nothing was lost.",
    404: "There is nothing here.",
    413: "That was too long.",
    503: "Your verdict was NOT saved: the review file cannot be written now (is the disk full?). Nothing that was saved before is lost. Try again.",
}


def page(name: str, **values: object) -> str:
    """Fill in a template."""
    return environment().get_template(name).render(**values)


def sorry(status: int) -> str:
    """Return a page with a sentence about what went wrong."""
    return page("sorry.html", who=None, text=SORRY.get(status, SORRY[400]))


def asset(name: str) -> str:
    """Return the style or the script."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Create the templates: every text is escaped and invisible characters are shown, except in judged texts."""
    return escaping_templates(TEMPLATES, _seen)


def _seen(value: object) -> object:
    return escape_invisible(value, keep="\n\t") if isinstance(value, str) and not hasattr(value, "__html__") else value
