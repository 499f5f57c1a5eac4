"""`hitmiss score`: score files to figures with intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from hitmiss.cli import groups, printing
from hitmiss.cli.groups import grouped
from hitmiss.design import Design, Protocol
from hitmiss.readspec import ReadSpec

if TYPE_CHECKING:
    from hitmiss.report.pictures import Picture
    from hitmiss.results import Results
    from hitmiss.trials import Trials

FILES = "Score file(s): shards of one run, or one file a run with --seeds. `-` is stdin; globs and .gz are understood."

CLUSTER = "Count the files on a Ray cluster: auto (this machine's cores), HOST:PORT or ray://HOST:PORT."


@grouped(asked=groups.design, reading=groups.reading)
def score(
    scores: Annotated[list[str], typer.Argument(help=FILES)],
    key: Annotated[str | None, typer.Option(help="Key or protocol file with the labels.")] = None,
    *,
    asked: Design,
    seeds: Annotated[bool, typer.Option("--seeds", help="Each file is one seed: mean, sd, min, max.")] = False,
    reading: ReadSpec,
    calibrate_on: Annotated[str | None, typer.Option(help="Development scores to fit a calibration on.")] = None,
    calibrate_key: Annotated[str | None, typer.Option(help="Key of the development scores.")] = None,
    calibration: Annotated[str, typer.Option(help="affine or pav.")] = "affine",
    stream: Annotated[
        bool, typer.Option("--stream", help="Count the files piece by piece: they need not fit into memory.")
    ] = False,
    counts: Annotated[
        bool, typer.Option("--counts", help="The files hold counts by score, as `hitmiss sql` has them made.")
    ] = False,
    memory: Annotated[str, typer.Option(help="What --stream may keep of the files, as 500MB or 2GB.")] = "1GB",
    scratch: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Where --stream puts for a while what --memory does not hold.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(metavar="auto|ADDRESS", help=CLUSTER)] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Reversed or constant scores are a failure.")] = False,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write the results (JSON) here too.")] = None,
    report: Annotated[
        str | None, typer.Option(help="Write a report (HTML) here too; more in `hitmiss report`.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON to stdout instead of tables.")] = False,
) -> None:
    """Score files to figures: pooled, per domain, with intervals, averages, warnings and a signature."""
    asked = asked.changed(seeds=seeds, calibration=calibration if calibrate_on else None)
    development: Trials | None = None
    if stream or counts or cluster or all(name.endswith(".tally") for name in scores):
        from hitmiss.cli import streaming

        streaming.refuse_together(streaming.flag(counts, cluster), {"--seeds": seeds, "--calibrate-on": calibrate_on})
        how = streaming.How(key, counts, cluster, memory, scratch)
        results, trials = streaming.evaluated(scores, reading, asked, how)
    else:
        from hitmiss.protocol import measure_files, read_side

        trials = read_side(printing.expanded(scores) if seeds else scores, key, reading, asked)
        if calibrate_on is not None:
            development = read_side([calibrate_on], calibrate_key, reading, replace(asked, seeds=False, threshold=None))
        results = measure_files(trials, development, asked)
    if output or report:
        from hitmiss.report.pictures import drawn_of

        drawn = drawn_of(trials, results, development, calibration)
        _keep(results, trials, drawn, output, report, asked, scores[0])
    _emit(results, trials, json, asked)
    _refuse_alarms(results, strict)


def _keep(
    results: Results,
    trials: Trials,
    drawn: list[Picture],
    output: str | None,
    report: str | None,
    asked: Design,
    source: str,
) -> None:
    """Write the results with their pictures, and a report of them."""
    from pathlib import Path

    from hitmiss import artifacts
    from hitmiss.report.pictures import to_json

    if output:
        artifacts.write(output, to_json(results, drawn) + "\n")
    if report:
        from hitmiss.measuring.tallied import TalliedTrials
        from hitmiss.report.evaluations import RunData
        from hitmiss.report.html import write_report
        from hitmiss.report.page import Options
        from hitmiss.report.shelves import shelf_beside

        name = Path(trials.header.sources[0].name).stem if trials.header.sources else "scores"
        shelf = None if isinstance(trials, TalliedTrials) else shelf_beside(source, trials)
        run = RunData(name, results, tuple(drawn), trials, shelf)
        size = write_report([run], report, Options(compare=asked))
        printing.note(f"wrote {report}: {size / 1e6:.2f} MB")


def _emit(results: Results, trials: Trials, json: bool, asked: Design) -> None:
    if json:
        printing.out(results.to_json())
        return
    from hitmiss.report import tables, text
    from hitmiss.report.campaigns import assessed

    head = trials.header
    printing.out(_title(trials, asked.protocol))
    shown = tables.tables(results, head.positive)
    if asked.matrix:
        names = asked.matrix
        grouped = f"by {names[0]} × {names[1]}"
        metrics = dict.fromkeys(e.metric for e in results if tuple(e.slice) == names)
        shown = [t for t in shown if not t.title.startswith(grouped)]
        shown += [tables.matrix(results, names[0], names[1], m, run) for run in tables.runs(results) for m in metrics]
    text.write(shown)
    text.conclude(
        assessed(results, asked.protocol.primary if asked.protocol else ""), results.warnings, brief=printing.is_quiet()
    )
    printing.sampled(results)
    printing.out(f"\n{results.signature}")


def _title(trials: Trials, protocol: Protocol | None) -> str:
    head = trials.header
    n_runs = trials.frame.select(head.runs).n_unique() if head.runs else 1
    size = f"{len(trials) // n_runs:,} trials" + (f" × {n_runs} runs" if n_runs > 1 else "")
    positives = trials.n_positive // n_runs
    counts = f"{positives:,} {head.positive}, {len(trials) // n_runs - positives:,} {head.negative}"
    parts = [
        protocol.title if protocol else "",
        f"{size}: {counts}",
        f"{head.score_kind} scores, higher = {head.positive}",
    ]
    coverage = [f"covers {head.coverage[0]:,} of {head.coverage[1]:,} trials"] if head.coverage else []
    return "\n".join(filter(None, [*parts, *coverage]))


def _refuse_alarms(results: Results, strict: bool) -> None:
    from hitmiss.errors import DataError

    bad = [w for w in results.warnings if "REVERSED" in w or "every score is" in w]
    if strict and bad:
        raise DataError(bad[0], code="alarm")
