"""`hitmiss score`: compute numbers from score files, in memory, streamed, on a cluster or from counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import CALIBRATE_KEY, JSON, KEY, RESULTS
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import CERTAINTY, MEASURING, WRITING, opt
from hitmiss.outofcore.evaluate import Counting, evaluate_counted, refuse_together

if TYPE_CHECKING:
    from hitmiss.core.results import Results
    from hitmiss.core.trials import Trials
    from hitmiss.core.verdict import Verdict
    from hitmiss.reports.pictures import Picture


FILES = (
    "Score file(s): shards of one run, or one file per run with --seeds. `-` is stdin; globs and .gz are understood."
)


def score(
    scores: Annotated[list[str], arg(FILES)],
    key: Annotated[str | None, KEY] = None,
    *,
    asked: Annotated[Design, fields(bootstrap=1000)],
    seeds: Annotated[bool, opt("Each file is one seed: mean, sd, min, max.", MEASURING)] = False,
    reading: ReadSpec,
    calibrate_on: Annotated[str | None, opt("Development scores to fit a calibration on.", MEASURING)] = None,
    calibrate_key: Annotated[str | None, CALIBRATE_KEY] = None,
    calibration: Annotated[
        Literal["affine", "pav"], opt("How scores are calibrated on the development scores.", MEASURING)
    ] = "affine",
    threshold_on: Annotated[
        str | None, opt("Development scores that fix the threshold; both error rates are measured at it.", MEASURING)
    ] = None,
    threshold_key: Annotated[str | None, opt("Key of the scores that fix the threshold.", MEASURING)] = None,
    threshold_at: Annotated[
        str | None, opt("The metric whose threshold it is: eer (default), min_dcf, tpr_at_fpr, f1 …", MEASURING)
    ] = None,
    counting: Counting,
    strict: Annotated[bool, opt("Fail if the scores are reversed or constant.", CERTAINTY)] = False,
    output: Annotated[str | None, RESULTS] = None,
    report: Annotated[
        str | None, opt("Write a report (HTML) here too; more in `hitmiss report`.", WRITING, common=True)
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Compute metrics from score files, overall and per domain, with intervals, averages, warnings and a signature.

    $ hitmiss score scores.tsv --key key.tsv -m eer --by codec --bootstrap 1000
    """
    asked = asked.changed(seeds=seeds, calibration=calibration if calibrate_on else None)
    development: Trials | None = None
    if threshold_on is not None:
        from hitmiss.evaluation.protocol import read_side, with_frozen_threshold

        frozen_on = read_side([threshold_on], threshold_key, reading, replace(asked, seeds=False))
        asked = with_frozen_threshold(asked, frozen_on, threshold_at)
    if counting.is_asked(scores):
        refuse_together(counting.flag, {"--seeds": seeds, "--calibrate-on": calibrate_on})
        results, trials = evaluate_counted(scores, key, reading, asked, counting, printing.note)
    else:
        from hitmiss.evaluation.protocol import measure_files, read_side

        is_whole = bool(json or output or report or calibrate_on)
        trials = read_side(printing.expanded(scores) if seeds else scores, key, reading, asked, is_whole=is_whole)
        if calibrate_on is not None:
            development = read_side([calibrate_on], calibrate_key, reading, replace(asked, seeds=False, threshold=None))
        results = measure_files(trials, development, asked)
    if output or report:
        from hitmiss.reports.pictures import drawn_of

        drawn = drawn_of(trials, results, development, calibration)
        _keep(results, trials, drawn, output, report, asked, scores[0])
    found = _emit(results, trials, json, asked, output)
    _refuse_alarms(results, strict)
    printing.refuse_unmet(found)


def _keep(
    results: Results,
    trials: Trials,
    drawn: list[Picture],
    output: str | None,
    report: str | None,
    asked: Design,
    source: str,
) -> None:
    """Write the results with their curves, and a report if one was asked for."""
    from pathlib import Path

    from hitmiss.core import artifacts
    from hitmiss.reports.pictures import to_json

    if output:
        artifacts.write(output, to_json(results, drawn) + "\n")
    if report:
        from hitmiss.reports.evaluations import RunData
        from hitmiss.reports.html import write_report
        from hitmiss.reports.media_finder import finder_beside

        name = Path(trials.header.sources[0].name).stem if trials.header.sources else "scores"
        finder = finder_beside(source, trials) if trials.has_rows else None
        run = RunData(name, results, tuple(drawn), trials, finder)
        size = write_report([run], report, compare=asked)
        printing.note(f"wrote {report}: {size / 1e6:.2f} MB")


def _emit(results: Results, trials: Trials, json: bool, asked: Design, output: str | None) -> Verdict:
    from hitmiss.conclude.verdict import conclude

    found = conclude(results, asked.protocol.primary if asked.protocol else "")
    if json:
        printing.out_with_verdict(results.to_dict(), found)
        return found
    from hitmiss.reports import grids, result_tables, terminal
    from hitmiss.reports.heading import heading

    head = trials.header
    natural = results.design.units if results.design is not None and not asked.unit else ()
    printing.out(heading(trials, asked.protocol, natural))
    shown = result_tables.tables(results, head.positive)
    if asked.matrix:
        names = asked.matrix
        metrics = dict.fromkeys(e.metric for e in results if tuple(e.slice) == names)
        shown = [t for t in shown if t.name != ",".join(names)]
        shown += [
            result_tables.matrix(results, names[0], names[1], m, run) for run in grids.runs(results) for m in metrics
        ]
    terminal.write_tables(shown)
    terminal.write_verdict(found, results.warnings, brief=printing.is_quiet())
    printing.sampled(results)
    printing.out_signature(results.signature, output)
    return found


def _refuse_alarms(results: Results, strict: bool) -> None:
    from hitmiss.core.errors import DataError
    from hitmiss.core.finding import ALARM, findings_of

    bad = [w for w in results.warnings if any(f.severity == ALARM for f in findings_of(w))]
    if strict and bad:
        raise DataError.coded(replace(findings_of(bad[0])[0], written=str(bad[0])), "alarm")
