"""`hitmiss report`: runs to one HTML file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hitmiss.cli import groups, printing
from hitmiss.cli.groups import grouped
from hitmiss.readspec import ReadSpec

RUNS = (
    "Results (`hitmiss score -o`), folders with results, run folders, or score files with --key and -p. "
    "`toxicity=predictions:baseline` names a protocol for one run."
)
MEDIA = (
    "Where the sounds, images or signals of the trials lie: a folder, a manifest, or an .npz; by default where the run "
    "says. May be repeated."
)
BUDGET = 300_000


@grouped(reading=groups.reading)
def report(
    runs: Annotated[list[str], typer.Argument(help=RUNS, metavar="RUN…")],
    output: Annotated[str, typer.Option("--output", "-o", help="The HTML file to write.")] = "report.html",
    key: Annotated[list[str] | None, typer.Option(help="Key of the score files; once for all, or once a file.")] = None,
    protocol: Annotated[str | None, typer.Option("--protocol", "-p", help="A protocol, or a .toml file.")] = None,
    metric: Annotated[list[str] | None, typer.Option("--metric", "-m", help="A metric; may be repeated.")] = None,
    by: Annotated[list[str] | None, typer.Option(help="Slice column(s); by default those with few values.")] = None,
    bootstrap: Annotated[int, typer.Option(help="Replicates of the bootstrap; 0 for none.")] = 1000,
    unit: Annotated[str | None, typer.Option(help="Column drawn as a whole, `speaker` or `speaker,attack`.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    *,
    reading: ReadSpec,
    threshold: Annotated[float | None, typer.Option(help="Decide at this threshold (score >= t).")] = None,
    name: Annotated[list[str] | None, typer.Option(help="A name for each run, in order.")] = None,
    title: Annotated[str, typer.Option(help="The title of the report.")] = "",
    static: Annotated[
        bool, typer.Option("--static", help="No scripts: figures as SVG, for mail and archives.")
    ] = False,
    no_samples: Annotated[
        bool, typer.Option("--no-samples", help="Nothing of single trials: no ids, no texts.")
    ] = False,
    redact_text: Annotated[
        bool, typer.Option("--redact-text", help="Ids of the worst errors alone: no text, sound, image or signal.")
    ] = False,
    samples: Annotated[int, typer.Option(help="Worst errors of each kind to show.")] = 10,
    budget: Annotated[
        int, typer.Option("--samples-budget", "--budget", help="Bytes that samples may take in the file.")
    ] = BUDGET,
    media: Annotated[list[str] | None, typer.Option(metavar="PLACE", help=MEDIA)] = None,
    json: Annotated[bool, typer.Option("--json", help="What was written, as JSON to stdout.")] = False,
) -> None:
    """One self-contained HTML file: summary, curves, domains, comparison, worst errors, provenance, glossary."""
    from hitmiss.protocol import find_protocol
    from hitmiss.report.html import write_report
    from hitmiss.report.page import Options
    from hitmiss.report.sources import Measuring, open_sources

    drawn: dict[str, Any] = {"bootstrap": bootstrap, "unit": unit, "seed": seed, "level": level}
    chosen = find_protocol(protocol) if protocol else None
    measuring = Measuring(chosen, tuple(metric or ()), tuple(by or ()), threshold, drawn, reading, tuple(media or ()))
    sources = open_sources(runs, key or [], measuring, name or [])
    shown = Options(title, not no_samples, not redact_text, samples, budget, drawn)
    size = write_report(sources, output, shown, static=static)
    tell(output, size, [source.name for source in sources], json)


def tell(path: str, size: int, names: list[str], json: bool) -> None:
    """Say what was written."""
    if json:
        printing.out_json({"schema": 1, "report": path, "bytes": size, "runs": names})
    else:
        printing.note(f"wrote {path}: {size / 1e6:.2f} MB, {len(names)} run{'s' if len(names) != 1 else ''}")
