"""A page as one HTML file that needs nothing else: no network, no eval, and scripts only by their hash.

Every text goes through Jinja's autoescape after its invisible characters were made visible; figures travel as JSON, and
Plotly as it is, both packed (gzip, base64) in blocks that no browser runs and unpacked by the page itself.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hitmiss import artifacts
from hitmiss._version import __version__
from hitmiss.report.evaluations import RunData
from hitmiss.report.page import Options, Page, compose
from hitmiss.visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment

HERE: Final = Path(__file__).parent
PLOTLY: Final = HERE / "vendor" / "plotly-basic.min.js.gz"
PLOTLY_SHA256: Final = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
"""Of the unpacked script, as the npm package plotly.js-basic-dist-min 4.1.1 has it."""
NOTHING: Final = hashlib.sha256(b"").digest()
"""Plotly makes an empty style element and adds its rules one by one."""


def write_report(
    sources: Sequence[RunData], path: str | Path, options: Options | None = None, *, static: bool = False
) -> int:
    """Write the report of some runs; its size in bytes."""
    text = render(compose(sources, options), static=static)
    artifacts.write(path, text)
    return len(text.encode("utf-8"))


def render(page: Page, *, static: bool = False) -> str:
    """The whole file as text. `static`: figures as SVG images, no script at all."""
    css, js = _asset("report.css"), _asset("report.js")
    figures = [f for part in page.parts for f in (*part.figures, *part.levels)]
    context: dict[str, Any] = {
        "page": page,
        "version": __version__,
        "static": static,
        "css": _raw(css),
        "policy": policy(css, () if static else (js,), static, plotly=bool(figures) and not static),
    }
    if static:
        from hitmiss.report.static import image_of

        context["images"] = {f.id: image_of(f.kind, f.lines) for f in figures}
    else:
        packed = base64.b64encode(PLOTLY.read_bytes()).decode() if figures else ""
        context |= {
            "js": _raw(js),
            "plotly": _raw(packed),
            "figures": _raw(packed_json({f.id: f.spec for f in figures})),
        }
    return _environment().get_template("report.html").render(context)


def packed_json(value: Any) -> str:
    """JSON as the page holds it: gzip and base64, so that no text in it can be markup, and a third of its size."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8"), 9, mtime=0)).decode()


def policy(css: str, scripts: Sequence[str], static: bool, *, plotly: bool = False) -> str:
    """What the page may do: run these very scripts, use this very style, show images inside it. Nothing else."""
    hashes = [_hash(script.encode()) for script in scripts]
    hashes += [f"'sha256-{base64.b64encode(bytes.fromhex(PLOTLY_SHA256)).decode()}'"] if plotly else []
    styles = [_hash(css.encode()), *([] if static else [f"'sha256-{base64.b64encode(NOTHING).decode()}'"])]
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(hashes) or "'none'",
        "style-src": " ".join(styles),
        "img-src": "data:" if static else "data: blob:",
        "media-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash(content: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}'"


@lru_cache(maxsize=4)
def _asset(name: str) -> str:
    return (HERE / "templates" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,
    )
    made.filters["code"] = code
    return made


def _seen(value: Any) -> Any:
    """What is put into the page: text with its invisible characters shown; what is markup already stays."""
    return visible(value, keep="\n") if isinstance(value, str) and not hasattr(value, "__html__") else value


def code(text: str) -> Any:
    """Text in which `backticks` mean code.

    >>> str(code("a `b<c` d"))
    'a <code>b&lt;c</code> d'
    """
    from markupsafe import Markup, escape

    parts = re.split(r"`([^`]*)`", visible(text, keep="\n"))
    return Markup("").join(Markup("<code>{}</code>").format(p) if i % 2 else escape(p) for i, p in enumerate(parts))


def _raw(text: str) -> Any:
    """Our own files, put in as they are."""
    from markupsafe import Markup

    return Markup(text)
