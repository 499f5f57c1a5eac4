"""`hitmiss report`: write one HTML file about runs."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from hitmiss.cli import common
from hitmiss.cli.common import grouped, without
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec

RUNS = (
    "Results (`hitmiss score -o`), folders with results, run folders, or score files with --key and -p; or one comparison "
    "(`hitmiss compare -o`) or gate (`hitmiss gate --json`). "
    "`toxicity=predictions:baseline` names a protocol for one run."
)
MEDIA = (
    "Where the sounds, images or signals of the trials are: a folder, a manifest, or an .npz; by default where the run "
    "says. May be repeated."
)
BUDGET = 300_000


@grouped(asked=partial(without(common.design, "matrix"), bootstrap=1000), reading=common.reading)
def report(
    runs: Annotated[list[str], typer.Argument(help=RUNS, metavar="RUN…")],
    output: Annotated[str, typer.Option("--output", "-o", help="The HTML file to write.")] = "report.html",
    key: Annotated[
        list[str] | None, typer.Option(help="Key of the score files; once for all, or once per file.")
    ] = None,
    *,
    asked: Design,
    reading: ReadSpec,
    name: Annotated[list[str] | None, typer.Option(help="A name for each run, in order.")] = None,
    title: Annotated[str, typer.Option(help="The title of the report.")] = "",
    static: Annotated[
        bool, typer.Option("--static", help="No scripts: figures as SVG, for mail and archives.")
    ] = False,
    no_samples: Annotated[
        bool, typer.Option("--no-samples", help="Show nothing about single trials: no ids, no texts.")
    ] = False,
    redact_text: Annotated[
        bool,
        typer.Option("--redact-text", help="Show only the ids of the worst errors: no text, sound, image or signal."),
    ] = False,
    samples: Annotated[int, typer.Option(help="Worst errors of each kind and run to show.")] = 30,
    budget: Annotated[
        int, typer.Option("--samples-budget", "--budget", help="Bytes that samples may take in the file.")
    ] = BUDGET,
    media: Annotated[list[str] | None, typer.Option(metavar="PLACE", help=MEDIA)] = None,
    lossless: Annotated[
        bool, typer.Option("--lossless", help="Keep sounds unchanged (FLAC); raise --samples-budget for more.")
    ] = False,
    human: Annotated[
        str | None, typer.Option(help="Verdicts of people on the items of a triage (`hitmiss review --export`).")
    ] = None,
    pdf: Annotated[
        str | None, typer.Option(help="Print the report here too, with page numbers (needs Chromium).")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="What was written, as JSON to stdout.")] = False,
) -> None:
    """Write one self-contained HTML file: summary, curves, domains, comparison, worst errors, provenance, glossary."""
    from hitmiss.reports.contests import contest_page, is_contest
    from hitmiss.reports.html import write_page, write_report
    from hitmiss.reports.page import Options
    from hitmiss.reports.sources import Measuring, open_sources

    if len(runs) == 1 and is_contest(runs[0]):
        size = write_page(contest_page(runs[0], title), output, static=static)
        tell(output, size, [runs[0]], json, f"from {runs[0]}")  # which may hold any number of runs
        _printed(output, pdf)
        return
    measuring = Measuring(asked, reading, tuple(media or ()), human, lossless)
    sources = open_sources(runs, key or [], measuring, name or [])
    shown = Options(title, not no_samples, not redact_text, samples, budget, asked)
    size = write_report(sources, output, shown, static=static)
    tell(output, size, [source.name for source in sources], json)
    _printed(output, pdf)


def _printed(path: str, pdf: str | None) -> None:
    if pdf is None:
        return
    from hitmiss.reports.html import print_pdf

    print_pdf(path, pdf)
    common.note(f"wrote {pdf}")


def tell(path: str, size: int, names: list[str], json: bool, about: str = "") -> None:
    """Report what was written."""
    if json:
        common.out_json({"schema": 1, "report": path, "bytes": size, "runs": names, **common.taken()})
    else:
        about = about or f"{len(names)} run{'s' if len(names) != 1 else ''}"
        common.note(f"wrote {path}: {size / 1e6:.2f} MB, {about}")
