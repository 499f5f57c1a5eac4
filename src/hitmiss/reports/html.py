"""A page as one self-contained HTML file: no network, no eval, and scripts only by their hash.

Every text is escaped by Jinja after its invisible characters were made visible. Figures are SVG inside the page, drawn
before any script runs, so that printed pages and browsers without scripts show them too.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from hitmiss._version import __version__
from hitmiss.core import artifacts
from hitmiss.core.design import Design
from hitmiss.core.errors import EnvironmentFault, UsageError
from hitmiss.core.kinds import one_or_several
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.report_spec import ReportSpec
from hitmiss.core.results import Results
from hitmiss.core.templates import escaping_templates
from hitmiss.core.text import escape_invisible
from hitmiss.core.trials import Trials, demanded
from hitmiss.engine.comparison import Comparison
from hitmiss.engine.ranking import Ranking
from hitmiss.reports.contests import contest_page, is_contest
from hitmiss.reports.evaluations import RunData
from hitmiss.reports.html_table import page_table
from hitmiss.reports.page import Page, compose
from hitmiss.reports.section import FigureView
from hitmiss.reports.sources import Measuring, measured, of_results, open_sources
from hitmiss.reports.svg import svg_of
from hitmiss.reports.table import Table

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

HERE: Final = Path(__file__).parent
CHROMIUMS: Final = ("chromium", "chromium-browser", "google-chrome")
Given: TypeAlias = "str | Path | Results | Comparison | Ranking | Trials"
"""What a report can be about."""


def report(
    runs: Given | Mapping[str, Given] | Sequence[Given],
    output: str | Path = "report.html",
    *,
    key: str | Path | None = None,
    design: Design | None = None,
    reading: ReadSpec | None = None,
    names: str | Sequence[str] = (),
    title: str = "",
    static: bool = False,
) -> Path:
    """Write one HTML file about some runs, as `hitmiss report` does.

    Parameters
    ----------
    runs
        Results, a comparison or a ranking; or results files, run folders or score files; `PROTOCOL=PATH` names the protocol
        with which a file is measured. One, or several in a list or by name.
    output
        The file to write.
    key
        The key of the score files.
    design, reading
        What is measured on score files and how they are read; results files contain both.
    names
        A name for each run, in order.
    title
        The title of the page.
    static
        No scripts, for mail and archives.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    UsageError, DataError
        Where a run cannot be read or measured.

    >>> import tempfile
    >>> from hitmiss import Trials, measure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     measure(Trials.of([1, 1, 0, 0], [3.0, 1.0, 2.0, 0.0]), ["eer"]).save(f"{folder}/ours.json")
    ...     report([f"{folder}/ours.json"], f"{folder}/report.html").stat().st_size > 10_000
    True
    """
    refuse_other_kinds(output)
    if isinstance(runs, Mapping):
        names, runs = [*map(str, runs)], [*runs.values()]
    given = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
    if len(given) == 1 and (isinstance(given[0], Comparison | Ranking) or _is_contest(given[0])):
        write_page(contest_page(given[0], title), output, static=static)  # type: ignore[arg-type]
        return Path(output)
    asked = design or Design(bootstrap=1000)
    sources = _sources(given, [str(key)] if key else [], Measuring(asked, reading or ReadSpec()), one_or_several(names))
    write_report(sources, output, ReportSpec(title=title, static=static), asked)
    return Path(output)


def _is_contest(run: object) -> bool:
    return isinstance(run, str | Path) and is_contest(str(run))


def _sources(runs: Sequence[Given], keys: Sequence[str], measuring: Measuring, names: Sequence[str]) -> list[RunData]:
    """Return runs in their order: results as they are, trials measured, files opened."""
    made = [run for run in runs if not isinstance(run, str | Path)]
    if not made:
        return open_sources([str(run) for run in runs], keys, measuring, names)
    if len(made) < len(runs):
        raise UsageError.of("mixed-runs")
    called = list(names) or (["results"] if len(made) == 1 else [f"run {i + 1}" for i in range(len(made))])
    if len(called) != len(made):
        raise UsageError.of("option-count/names", n=len(called), total=len(made))
    return [_source(run, name, measuring) for run, name in zip(made, called, strict=True)]


def _source(run: object, name: str, measuring: Measuring) -> RunData:
    if isinstance(run, Results):
        return of_results(run, name)
    if isinstance(run, Comparison | Ranking):
        raise UsageError.of("mixed-runs/comparison")
    design = measuring.design
    if not design.metrics and design.protocol is None:
        raise UsageError.of("not-results/report", name=type(run).__name__)
    return measured(demanded(run, "report"), name, measuring)


def write_report(
    sources: Sequence[RunData], path: str | Path, asked: ReportSpec | None = None, compare: Design | None = None
) -> int:
    """Write the report of some runs; return its size in bytes."""
    return write_page(compose(sources, asked, compare), path, static=asked is not None and asked.static)


def refuse_other_kinds(path: str | Path) -> None:
    """Refuse the name of a file of another kind than HTML, which its program could not open."""
    if not isinstance(path, str | Path):
        raise UsageError.of("report-order", name=type(path).__name__)
    if Path(path).suffix.lower() not in ("", ".html", ".htm"):
        raise UsageError.of("report-kind", path=str(path), html=Path(path).with_suffix(".html").name)


def write_page(page: Page, path: str | Path, *, static: bool = False) -> int:
    """Write a composed page; return its size in bytes."""
    text = render(page, static=static)
    artifacts.write(path, text)
    return len(text.encode("utf-8"))


def print_pdf(path: str | Path, pdf: str | Path) -> None:
    """Print a written report to PDF with page numbers, with a Chromium on this machine.

    Raises
    ------
    EnvironmentFault
        `no-chromium`: there is none, or it did not print.
    """
    import os
    import shutil
    import subprocess

    chromium = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if chromium is None:
        raise EnvironmentFault.of("no-chromium")
    words = [chromium, "--headless", "--disable-gpu", "--no-pdf-header-footer", f"--print-to-pdf={Path(pdf).resolve()}"]
    is_root = getattr(os, "geteuid", lambda: 1)() == 0  # Chromium has no sandbox for root, and ends at once
    for more in (["--no-sandbox"],) if is_root else ([], ["--no-sandbox"]):  # nor in a container without namespaces
        ended = subprocess.run(
            [*words, *more, Path(path).resolve().as_uri()], capture_output=True, text=True, timeout=120, check=False
        )
        if not ended.returncode and Path(pdf).is_file():
            return
    raise EnvironmentFault.of("no-chromium/not", stderr=ended.stderr.strip()[-200:])


def render(page: Page, *, static: bool = False) -> str:
    """Return the whole file as text. `static`: no script at all."""
    css, js = asset("report.css"), asset("report.js")
    context: dict[str, object] = {
        "page": page,
        "version": __version__,
        "static": static,
        "css": raw(css),
        "js": raw("" if static else js),
        "policy": policy(css, () if static else (js,)),
        "drawn": _drawn,
        "table": _table,
        "overview": _overview,
        "raw": raw,
    }
    return environment().get_template("report.html").render(context)


def _overview(page: Page) -> Markup:
    """Return the table of all evaluations; the name of each leads to its summary."""
    links = {part.summary.title: f"#{part.id}-summary" for part in page.parts}
    return raw(page_table(page.overview, "block", links=links) if page.overview is not None else "")


def _table(table: Table, classes: str = "", captioned: bool = True) -> Markup:
    """Return a table as markup; its texts are escaped by the writer."""
    return raw(page_table(table, classes, captioned=captioned))


def _drawn(figure: FigureView, small: bool = False) -> Markup:
    """Return a figure as markup; its texts are escaped by the renderer."""
    label = f"{figure.title}. {figure.reading.text} The numbers are in the table below."
    return raw(svg_of(figure.plate, figure.id, small=small, label=label))


def policy(css: str, scripts: Sequence[str]) -> str:
    """Return the content security policy: only these scripts, this style, and images inside the page are allowed."""
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(_hash(script.encode()) for script in scripts) or "'none'",
        "style-src": _hash(css.encode()),
        "img-src": "data:",
        "media-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash(content: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}'"


@lru_cache(maxsize=4)
def asset(name: str) -> str:
    """Return a file of the templates as text."""
    return (HERE / "templates" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the environment that escapes every text of a page."""
    made = escaping_templates(HERE / "templates", _seen)
    made.filters["code"] = code
    return made


def _seen(value: object) -> object:
    """Return text for the page with its invisible characters shown, arrows kept with their metric; markup as it is."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return escape_invisible(value, keep="\n").replace(" ↑", "\u00a0↑").replace(" ↓", "\u00a0↓")


def code(text: str) -> Markup:
    """Convert text in which `backticks` mean code.

    >>> str(code("a `b<c` d"))
    'a <code>b&lt;c</code> d'
    """
    from markupsafe import Markup, escape

    parts = re.split(r"`([^`]*)`", escape_invisible(text, keep="\n"))
    return Markup("").join(Markup("<code>{}</code>").format(p) if i % 2 else escape(p) for i, p in enumerate(parts))


def raw(text: str) -> Markup:
    """Return a file of hitmiss as it is, without escaping."""
    from markupsafe import Markup

    return Markup(text)
