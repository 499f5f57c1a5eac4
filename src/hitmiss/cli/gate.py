"""`hitmiss gate`: check whether a run meets its limits. Exit code 0 if every rule holds, 1 if not."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import JSON, KEY
from hitmiss.core.design import ComparisonRules, Design, parse_by
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import CERTAINTY, MEASURING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.core.results import Results
    from hitmiss.core.trials import Trials
    from hitmiss.engine.comparison import Comparison
    from hitmiss.engine.regression import Regression
    from hitmiss.engine.requirement import Check, Requirement, Target

RUN = "Results (what `hitmiss score -o` writes), a folder with results.json, or a score file with --key and -p."
FAIL_IF = "A rule, as 'eer > 0.05', 'eer[codec=C05] > 0.1', 'eer.high > 0.1', 'worst eer > 0.2'; may be repeated."
REGRESSION_BY = (
    "point, bound (fails if the interval does not rule it out) or shown (fails only if the interval shows it)."
)
SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True)
class Scoring:
    """How a score file is read and what is measured on it."""

    key: str | None
    reading: ReadSpec
    design: Design


def gate(
    run: Annotated[str, arg(RUN)],
    fail_if: Annotated[list[str] | None, opt(FAIL_IF, MEASURING, common=True)] = None,
    baseline: Annotated[
        str | None, opt("The run to compare with, given in the same way.", MEASURING, common=True)
    ] = None,
    max_regression: Annotated[
        list[str] | None,
        opt("How much worse than the baseline, as eer=0.005; may be repeated.", MEASURING, common=True),
    ] = None,
    regression_by: Annotated[Literal["point", "bound", "shown"], opt(REGRESSION_BY, MEASURING)] = "point",
    key: Annotated[str | None, KEY] = None,
    *,
    asked: Annotated[Design, fields(without=("metrics", "matrix"))],
    reading: ReadSpec,
    force: Annotated[bool, opt("Accept a baseline that is not comparable, with a warning.", CERTAINTY)] = False,
    junit: Annotated[str | None, opt("Write JUnit XML here.", WRITING, common=True)] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Check a run against limits and a baseline. Equal passes, unknown names are errors, undefined figures fail.

    $ hitmiss gate results.json --fail-if 'eer > 0.05'
    """
    from hitmiss.core.errors import GateFailed
    from hitmiss.core.finding import Finding
    from hitmiss.engine.requirement import read_requirements

    required = read_requirements(asked.require)
    rules, regressions = _rules(fail_if or [], max_regression or [], baseline, bool(required))
    targets = [r.target for r in rules] + [r.target for r in regressions]
    scoring = Scoring(key, reading, asked)
    results = _results(run, targets, scoring)
    before = _results(baseline, targets, scoring) if baseline and regressions else None
    forced = _comparable(results, before, regressions, force)
    # a baseline that was forced may have other items; then the figures decide alone, unless an interval must
    is_paired = bool(regressions) and (not forced or regression_by != "point")
    paired = _paired(run, baseline, regressions, scoring, force) if baseline and is_paired else None
    checks = _checks(rules, required, regressions, results, before, regression_by, paired)
    _write(run, baseline, checks, (*forced, *results.warnings), junit, json)
    failed = [c for c in checks if not c.passed]
    if failed:
        listed = tuple(
            Finding("check-failed", values={"figure": c.figure, "reason": c.reason, "rule": c.rule}) for c in failed
        )
        more = Finding("more-checks", values={"n": len(failed) - 5}) if len(failed) > 5 else None
        raise GateFailed.of("gate-failed", n=len(failed), total=len(checks), listed=listed[:5], more=more)


def _rules(
    fail_if: list[str], max_regression: list[str], baseline: str | None, is_required: bool
) -> tuple[list[Requirement], list[Regression]]:
    from hitmiss.core.errors import UsageError
    from hitmiss.engine.regression import parse_regression
    from hitmiss.engine.requirement import parse_rule

    if not fail_if and not max_regression and not is_required:
        raise UsageError.of("no-rule")
    if max_regression and baseline is None:
        raise UsageError.of("no-baseline")
    if baseline is not None and not max_regression:
        raise UsageError.of("no-rule/baseline")
    return [parse_rule(t) for t in fail_if], [parse_regression(t) for t in max_regression]


def _results(run: str, targets: list[Target], scoring: Scoring) -> Results:
    """Load results from a file or a folder, or measure them now: only what the rules need."""
    from pathlib import Path

    from hitmiss.claims.open import is_results
    from hitmiss.core.errors import DataError, UsageError
    from hitmiss.core.results import Results

    path = Path(run)
    if scoring.reading.weight is not None and not _is_trials(run):
        raise UsageError.of("unread-option", run=run, weight=scoring.reading.weight)
    if (path / "results.json").is_file():
        return Results.load(path / "results.json")
    if path.is_dir() and not (path / "manifest.json").is_file():
        raise DataError.of("no-results", run=run)
    if path.suffix == ".json" and (
        is_results(path) or not (scoring.key or scoring.design.protocol or scoring.reading.layout)
    ):
        return Results.load(path)
    return _measured(run, targets, scoring)


def _measured(run: str, targets: list[Target], scoring: Scoring) -> Results:
    from hitmiss.evaluation.protocol import measure_trials

    trials = _trials(run, scoring)
    return measure_trials(trials, _design(targets, trials, scoring))


def _is_trials(run: str) -> bool:
    """Say whether a run is given as trials, which can be paired, and not as results."""
    from pathlib import Path

    from hitmiss.claims.open import is_results

    return not (Path(run) / "results.json").is_file() and not is_results(run)


def _paired(run: str, baseline: str, regressions: list[Regression], scoring: Scoring, force: bool) -> Comparison | None:
    """Compare both runs pair by pair, where both are given as trials."""
    from hitmiss.engine.comparison import Comparison
    from hitmiss.evaluation.protocol import compare_trials

    if not (_is_trials(run) and _is_trials(baseline)):
        return None
    before, trials = (_trials(text, scoring) for text in (baseline, run))
    design = _design([r.target for r in regressions], trials, scoring)
    made = compare_trials({"baseline": before, "run": trials}, replace(design, contest=ComparisonRules(force=force)))
    assert isinstance(made, Comparison)  # two runs are compared; only more are ranked
    return made


def _trials(run: str, scoring: Scoring) -> Trials:
    from hitmiss.claims.open import open_run
    from hitmiss.evaluation.protocol import decided

    return decided(open_run(run, scoring.key, scoring.design.protocol, scoring.reading), scoring.design)


def _design(targets: list[Target], trials: Trials, scoring: Scoring) -> Design:
    """Return what the rules need to be measured: a rule may be about any metric in any slice."""
    return scoring.design.changed(metrics=_metrics(targets), by=parse_by(_slices(targets, trials, scoring)))


def _metrics(targets: list[Target]) -> list[str]:
    return list(dict.fromkeys(str(t.metric) for t in targets))


def _slices(targets: list[Target], trials: Trials, scoring: Scoring) -> list[str]:
    slices = [tuple(k for k, _ in t.cells if k not in trials.header.runs) for t in targets]
    return list(dict.fromkeys([*(",".join(g) for g in scoring.design.by), *(",".join(s) for s in slices if s)]))


def _comparable(
    results: Results, before: Results | None, regressions: list[Regression], force: bool
) -> tuple[str, ...]:
    from hitmiss.core.errors import DataError
    from hitmiss.core.finding import Remark
    from hitmiss.engine.regression import incomparable

    wrong = incomparable(results, before, regressions) if before is not None else []
    if wrong and not force:
        raise DataError.of("incomparable/baseline", wrong="; ".join(wrong))
    return (*(Remark.of("comparison-forced", w=w) for w in wrong), *results.warnings)


def _checks(
    rules: list[Requirement],
    required: list[Requirement],
    regressions: list[Regression],
    results: Results,
    before: Results | None,
    decide: str,
    paired: Comparison | None,
) -> list[Check]:
    from hitmiss.engine.regression import check_regression
    from hitmiss.engine.requirement import check_requirement, check_rule

    found = [c for rule in rules for c in check_rule(rule, results)]
    found += [c for one in required for c in check_requirement(one, results)]
    if before is not None:
        found += [c for rule in regressions for c in check_regression(rule, results, before, decide, paired)]
    return found


def _write(
    run: str, baseline: str | None, checks: list[Check], warnings: tuple[str, ...], junit: str | None, json: bool
) -> None:
    from hitmiss.conclude.verdict import conclude_gate
    from hitmiss.core import artifacts
    from hitmiss.reports import gate_report, terminal

    if junit:
        artifacts.write(junit, gate_report.junit(run, checks))
    if os.environ.get(SUMMARY):
        gate_report.append_summary(os.environ[SUMMARY], gate_report.markdown(run, checks, warnings))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in gate_report.error_lines(checks):
            printing.note(line)
    if json:
        passed = all(c.passed for c in checks)
        found = {"run": run, "passed": passed, "warnings": list(warnings), "checks": printing.plain(checks)}
        told = {**found, **printing.taken(), "verdict": conclude_gate(checks, run).to_dict()}
        printing.out_json(artifacts.sealed({"schema": 1, "kind": "gate", **told}))
        return
    printing.out(f"run {run}" + (f" against baseline {baseline}" if baseline else ""))
    terminal.write_tables([gate_report.table(checks)])
    failed = sum(not c.passed for c in checks)
    noun = "check" if len(checks) == 1 else "checks"
    printing.out(
        f"\n{conclude_gate(checks).headline}\n{len(checks)} {noun}: {len(checks) - failed} passed, {failed} failed"
    )
    for warning in warnings:
        printing.out(f"\n! {warning}")
