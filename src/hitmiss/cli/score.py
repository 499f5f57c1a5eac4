"""`hitmiss score`: score files to figures with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hitmiss.cli import groups, printing
from hitmiss.cli.groups import grouped
from hitmiss.readspec import ReadSpec

if TYPE_CHECKING:
    from hitmiss.measuring.measurement import Gap
    from hitmiss.protocol import Protocol
    from hitmiss.report.pictures import Picture
    from hitmiss.results import Results
    from hitmiss.trials import Trials

FILES = "Score file(s): shards of one run, or one file a run with --seeds. `-` is stdin; globs and .gz are understood."

CLUSTER = "Count the files on a Ray cluster: auto (this machine's cores), HOST:PORT or ray://HOST:PORT."


@grouped(reading=groups.reading)
def score(
    scores: Annotated[list[str], typer.Argument(help=FILES)],
    key: Annotated[str | None, typer.Option(help="Key or protocol file with the labels.")] = None,
    protocol: Annotated[str | None, typer.Option("--protocol", "-p", help="A protocol, or a .toml file.")] = None,
    metric: Annotated[list[str] | None, typer.Option("--metric", "-m", help="A metric; may be repeated.")] = None,
    by: Annotated[list[str] | None, typer.Option(help="Slice column(s), `codec` or `codec,codec_q`.")] = None,
    matrix: Annotated[str | None, typer.Option(help="Two slice columns as a matrix, `attack,codec`.")] = None,
    bootstrap: Annotated[int, typer.Option(help="Replicates of the bootstrap; 0 for none.")] = 0,
    unit: Annotated[str | None, typer.Option(help="Column drawn as a whole, `speaker` or `speaker,attack`.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    interval: Annotated[str, typer.Option(help="auto, percentile or bca.")] = "auto",
    stratify: Annotated[
        bool | None, typer.Option(help="Draw units within each class (refused if they hold both).")
    ] = None,
    gap: Annotated[str, typer.Option(help="In-domain value(s), `codec=NONE` or `codec=in:out`; or none.")] = "auto",
    seeds: Annotated[bool, typer.Option("--seeds", help="Each file is one seed: mean, sd, min, max.")] = False,
    *,
    reading: ReadSpec,
    threshold: Annotated[
        float | None, typer.Option(help="Decide at this threshold (score >= t), for accuracy, f1 …")
    ] = None,
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
    from hitmiss.protocol import find_protocol

    chosen = find_protocol(protocol) if protocol else None
    groupings = [*(by or []), *_matrix_groupings(matrix)]
    options: dict[str, Any] = {
        "metrics": metric or [],
        "by": groupings,
        "bootstrap": bootstrap,
        "unit": unit,
        "seed": seed,
        "level": level,
        "interval": interval,
        "stratify": stratify,
        "gap": _gap(gap),
    }
    if stream or counts or cluster or all(name.endswith(".tally") for name in scores):
        from hitmiss.cli import streaming

        needing = {"--seeds": seeds, "--calibrate-on": calibrate_on}
        how = {
            "key": key,
            "counts": counts,
            "cluster": cluster,
            "memory": memory,
            "scratch": scratch,
            "threshold": threshold,
        }
        results, trials = streaming.evaluated(scores, chosen, reading, options, needing, **how)  # type: ignore[arg-type]
        development = None
    else:
        trials = _read(scores, key, chosen, reading, seeds, threshold)
        development = _development(calibrate_on, calibrate_key, chosen, reading)
        results = _measure(trials, chosen, options, development, calibration)
    if seeds:
        from hitmiss.measuring.repeats import over_repeats

        results = over_repeats(results, "seed")
    if output or report:
        from hitmiss.report.pictures import drawn_of

        drawn = drawn_of(trials, results, development, calibration)
        compare = {k: options[k] for k in ("bootstrap", "unit", "seed", "level")}
        _keep(results, trials, drawn, output, report, compare, scores[0])
    _emit(results, trials, json, matrix, chosen)
    _refuse_alarms(results, strict)


def _read(
    scores: list[str],
    key: str | None,
    protocol: Protocol | None,
    reading: ReadSpec,
    seeds: bool,
    threshold: float | None,
) -> Trials:
    from hitmiss.decisions import at_threshold
    from hitmiss.protocol import read_runs, read_trials

    if seeds:
        trials = read_runs(printing.expanded(scores), key, protocol, reading)
    else:
        trials = read_trials(scores if len(scores) > 1 else scores[0], key, protocol, reading)
    return trials if threshold is None else at_threshold(trials, threshold)


def _development(path: str | None, key: str | None, protocol: Protocol | None, reading: ReadSpec) -> Trials | None:
    if path is None:
        return None
    from hitmiss.protocol import read_trials

    return read_trials(path, key, protocol, reading)


def _measure(
    trials: Trials, protocol: Protocol | None, options: dict[str, Any], development: Trials | None, method: str
) -> Results:
    from hitmiss.protocol import measure_calibrated, measure_trials

    if development is None:
        return measure_trials(trials, protocol, **options)
    return measure_calibrated(trials, development, protocol, method=method, **options)


def _gap(text: str) -> Gap | bool | None:
    if text in ("auto", "none"):
        return None if text == "auto" else False
    from hitmiss.measuring.measurement import Gap

    return Gap.parse(text)


def _matrix_groupings(matrix: str | None) -> list[str]:
    if matrix is None:
        return []
    from hitmiss.errors import UsageError

    names = [n.strip() for n in matrix.split(",")]
    if len(names) != 2:
        raise UsageError(f"--matrix {matrix!r}: write two columns, as attack,codec")
    return [names[0], names[1], f"{names[0]},{names[1]}"]


def _keep(
    results: Results,
    trials: Trials,
    drawn: list[Picture],
    output: str | None,
    report: str | None,
    compare: dict[str, Any],
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
        size = write_report([run], report, Options(compare=compare))
        printing.note(f"wrote {report}: {size / 1e6:.2f} MB")


def _emit(results: Results, trials: Trials, json: bool, matrix: str | None, protocol: Protocol | None) -> None:
    if json:
        printing.out(results.to_json())
        return
    from hitmiss.report import tables, text

    head = trials.header
    printing.out(_title(trials, protocol))
    shown = tables.tables(results, head.positive)
    if matrix:
        names = [n.strip() for n in matrix.split(",")]
        grouped = f"by {names[0]} × {names[1]}"
        metrics = dict.fromkeys(e.metric for e in results if tuple(e.slice) == tuple(names))
        shown = [t for t in shown if not t.title.startswith(grouped)]
        shown += [tables.matrix(results, names[0], names[1], m, run) for run in tables.runs(results) for m in metrics]
    text.write(shown)
    for warning in results.warnings:
        printing.out(f"\n! {warning}")
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
        raise DataError(bad[0])
