"""`hitmiss report`: write one HTML file about runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import JSON
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.report_spec import ReportSpec
from hitmiss.core.spec import READING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.reports.evaluations import RunData

RUNS = (
    "Results (`hitmiss score -o`), folders with results, run folders, or score files with --key and -p; or one comparison "
    "(`hitmiss compare -o`) or gate (`hitmiss gate --json`). "
    "`toxicity=predictions:baseline` names a protocol for one run."
)


def report(
    runs: Annotated[list[str], arg(RUNS, "RUN…")],
    output: Annotated[str, opt("The HTML file to write.", WRITING, "--output", "-o", common=True)] = "report.html",
    key: Annotated[
        list[str] | None, opt("Key of the score files; once for all, or once per file.", READING, common=True)
    ] = None,
    *,
    asked: Annotated[Design, fields(without=("matrix",), bootstrap=1000)],
    reading: ReadSpec,
    page: ReportSpec,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Write one self-contained HTML file: summary, curves, domains, comparison, worst errors, provenance, glossary.

    $ hitmiss report scores.tsv --key key.tsv -p asvspoof5 -o report.html
    """
    from hitmiss.reports.contests import contest_page, is_contest
    from hitmiss.reports.html import refuse_other_kinds, write_page, write_report
    from hitmiss.reports.sources import Measuring, open_sources

    refuse_other_kinds(output)
    if len(runs) == 1 and is_contest(runs[0]):
        size = write_page(contest_page(runs[0], page.title), output, static=page.static)
        tell(output, size, [runs[0]], json, f"from {runs[0]}")  # which may hold any number of runs
        _printed(output, page.pdf)
        return
    measuring = Measuring(asked, reading, page.media, page.human, page.lossless)
    sources = open_sources(runs, key or [], measuring, page.name)
    sources = [_with_criteria(source, asked) for source in sources]
    if asked.require:
        sources = [_requiring(source, asked) for source in sources]
    size = write_report(sources, output, page, asked)
    tell(output, size, [source.name for source in sources], json)
    _printed(output, page.pdf)


def _requiring(source: RunData, asked: Design) -> RunData:
    """Return a run of which something is required."""
    own = source.results.design or Design()
    design = replace(own, require=asked.require, criteria=asked.criteria or own.criteria)
    return replace(source, results=replace(source.results, design=design))


def _with_criteria(source: RunData, asked: Design) -> RunData:
    """Return a run that says of locked criteria whether they came first, and what changed since."""
    from hitmiss.claims.criteria import remarks_on

    results = source.results
    return replace(source, results=replace(results, warnings=(*remarks_on(results, asked.criteria), *results.warnings)))


def _printed(path: str, pdf: str | None) -> None:
    if pdf is None:
        return
    from hitmiss.reports.html import print_pdf

    print_pdf(path, pdf)
    printing.note(f"wrote {pdf}")


def tell(path: str, size: int, names: list[str], json: bool, about: str = "") -> None:
    """Report what was written."""
    if json:
        printing.out_json({"schema": 1, "report": path, "bytes": size, "runs": names, **printing.taken()})
    else:
        about = about or f"{len(names)} run{'s' if len(names) != 1 else ''}"
        printing.note(f"wrote {path}: {size / 1e6:.2f} MB, {about}")
