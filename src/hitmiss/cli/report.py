"""`hitmiss report`: write one HTML file about runs."""

from __future__ import annotations

from typing import Annotated

from hitmiss.cli import common
from hitmiss.cli.options import arg, fields
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import READING, WRITING, opt

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


def report(
    runs: Annotated[list[str], arg(RUNS, "RUN…")],
    output: Annotated[str, opt("The HTML file to write.", WRITING, "--output", "-o", common=True)] = "report.html",
    key: Annotated[
        list[str] | None, opt("Key of the score files; once for all, or once per file.", READING, common=True)
    ] = None,
    *,
    asked: Annotated[Design, fields(without=("matrix",), bootstrap=1000)],
    reading: ReadSpec,
    name: Annotated[list[str] | None, opt("A name for each run, in order.", WRITING)] = None,
    title: Annotated[str, opt("The title of the report.", WRITING)] = "",
    static: Annotated[bool, opt("No scripts: figures as SVG, for mail and archives.", WRITING)] = False,
    no_samples: Annotated[bool, opt("Show nothing about single trials: no ids, no texts.", WRITING)] = False,
    redact_text: Annotated[
        bool,
        opt("Show only the ids of the worst errors: no text, sound, image or signal.", WRITING),
    ] = False,
    samples: Annotated[int, opt("Worst errors of each kind and run to show.", WRITING)] = 30,
    budget: Annotated[
        int, opt("Bytes that samples may take in the file.", WRITING, "--samples-budget", "--budget")
    ] = BUDGET,
    media: Annotated[list[str] | None, opt(MEDIA, READING, metavar="PLACE")] = None,
    lossless: Annotated[bool, opt("Keep sounds unchanged (FLAC); raise --samples-budget for more.")] = False,
    human: Annotated[
        str | None, opt("Verdicts of people on the items of a triage (`hitmiss review --export`).", READING)
    ] = None,
    pdf: Annotated[str | None, opt("Print the report here too, with page numbers (needs Chromium).", WRITING)] = None,
    json: Annotated[bool, opt("What was written, as JSON to stdout.", WRITING)] = False,
) -> None:
    """Write one self-contained HTML file: summary, curves, domains, comparison, worst errors, provenance, glossary.

    $ hitmiss report scores.tsv --key key.tsv -p asvspoof5 -o report.html
    """
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
