"""`hitmiss gate`: check whether a run meets its limits. Exit code 0 if every rule holds, 1 if not."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import JSON, KEY
from hitmiss.core.design import Design
from hitmiss.core.gate_spec import GateSpec
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import CERTAINTY, MEASURING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.claims.gate import GateAsked
    from hitmiss.evaluation.gate import GateOutcome

RUN = "Results (what `hitmiss score -o` writes), a folder with results.json, or a score file with --key and -p."
RULES = (
    "File with the rules, their owners and the baseline; by default gate.toml of this folder where no rule is given."
)
SUMMARY = "GITHUB_STEP_SUMMARY"


def gate(
    run: Annotated[str, arg(RUN)],
    key: Annotated[str | None, KEY] = None,
    rules: Annotated[str | None, opt(RULES, MEASURING, metavar="FILE", common=True)] = None,
    *,
    limits: GateSpec,
    asked: Annotated[Design, fields(without=("metrics", "matrix"))],
    reading: ReadSpec,
    require_signed: Annotated[
        str | None,
        opt("File of trusted keys: the run must be signed or attested by one of them.", CERTAINTY, metavar="SIGNERS"),
    ] = None,
    junit: Annotated[str | None, opt("Write JUnit XML here.", WRITING)] = None,
    sarif: Annotated[str | None, opt("Write SARIF here.", WRITING)] = None,
    comment: Annotated[str | None, opt("Write a comment of at most 12 lines (Markdown) here.", WRITING)] = None,
    post: Annotated[
        Literal["github", "gitlab"] | None,
        opt("Post the comment on the pull request of this job, once; the next gate writes it anew.", WRITING),
    ] = None,
    texts: Annotated[
        list[str] | None, opt("File(s) with id and text, to quote in the comment.", WRITING, takes_words=True)
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Check a run against limits and a baseline. Equal passes, unknown names are errors, undefined numbers fail.

    $ hitmiss gate results.json --fail-if 'eer > 0.05'
    """
    from hitmiss.claims.gate import GateAsked, judge
    from hitmiss.core.errors import GateFailed
    from hitmiss.core.finding import Finding
    from hitmiss.evaluation.gate import parse_rules

    spec = _spec(limits, asked, rules)
    parse_rules(spec, spec.baseline is not None)  # before files are read, which may take long
    if require_signed is not None:
        _require_signed([run, *([spec.baseline] if spec.baseline else [])], require_signed)
    asking = GateAsked(spec, asked, reading)
    outcome = judge(asking, run, spec.baseline, key)
    outcome = replace(outcome, warnings=(*_on_criteria(asked, run, key), *outcome.warnings))
    _write(run, asking, outcome, junit, json)
    if sarif:
        from hitmiss.core import artifacts
        from hitmiss.reports import gate_report

        artifacts.write(sarif, gate_report.sarif(run, outcome.checks))
    if comment or post:
        _comment(outcome, comment, post, texts)
    failed = [c for c in outcome.checks if not c.passed]
    if failed:
        listed = tuple(
            Finding("check-failed", values={"figure": c.figure, "reason": c.reason, "rule": c.rule}) for c in failed
        )
        more = Finding("more-checks", values={"n": len(failed) - 5}) if len(failed) > 5 else None
        raise GateFailed.of("gate-failed", n=len(failed), total=len(outcome.checks), listed=listed[:5], more=more)


def _comment(
    outcome: GateOutcome, path: str | None, post: Literal["github", "gitlab"] | None, texts: list[str] | None
) -> None:
    from hitmiss.core import artifacts
    from hitmiss.reports import gate_report

    quoted: dict[str, str] = {}
    if texts:
        from hitmiss.io.texts import read_texts

        frame = read_texts(printing.expanded(texts))
        quoted = dict(zip(frame["item"], frame["text"], strict=True))
    text = gate_report.comment(outcome, quoted)
    if path:
        artifacts.write(path, text)
    if post:
        from hitmiss.bridges.pull_request import post_comment

        printing.note(post_comment(text, gate_report.MARK, post))


def _spec(limits: GateSpec, asked: Design, rules: str | None) -> GateSpec:
    """Return the rules of the command over those of a file; the folder's `gate.toml` where the command has none."""
    from pathlib import Path

    from hitmiss.core.gate_spec import NAME, load_gate

    said = replace(limits, require=asked.require)
    if rules is None and not said.all_rules and Path(NAME).is_file():
        rules = NAME
    if rules is None:
        return said
    printing.note(f"rules of {rules}")
    return said.over(load_gate(rules))


def _require_signed(runs: list[str], signers: str) -> None:
    """Refuse a run that nobody among the signers signed."""
    from hitmiss.claims.attestation import require_signed

    for run in runs:
        printing.note(f"{run}: signed by {require_signed(run, signers)}")


def _on_criteria(asked: Design, run: str, key: str | None) -> tuple[str, ...]:
    """Say whether locked criteria came before the results, and what changed since."""
    from hitmiss.claims.criteria import remarks_on
    from hitmiss.claims.open import is_results
    from hitmiss.core.results import Results

    results = Results.load(run) if is_results(run) else Results((), design=asked)
    return tuple(remarks_on(results, asked.criteria, run, [run, key] if key is not None else []))


def _write(run: str, asking: GateAsked, outcome: GateOutcome, junit: str | None, json: bool) -> None:
    from hitmiss.conclude.verdict import conclude_gate
    from hitmiss.core import artifacts
    from hitmiss.reports import gate_report, terminal

    checks, warnings = list(outcome.checks), outcome.warnings
    if junit:
        artifacts.write(junit, gate_report.junit(run, checks))
    if os.environ.get(SUMMARY):
        gate_report.append_summary(os.environ[SUMMARY], gate_report.markdown(run, checks, warnings))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in gate_report.error_lines(checks):
            printing.note(line)
    if json:
        from hitmiss.claims.gate import gate_document

        printing.out_json(artifacts.sealed({**gate_document(run, asking, outcome), **printing.taken()}))
        return
    baseline = asking.limits.baseline
    printing.out(f"run {run}" + (f" against baseline {baseline}" if baseline else ""))
    terminal.write_tables([gate_report.table(checks)])
    failed = sum(not c.passed for c in checks)
    noun = "check" if len(checks) == 1 else "checks"
    printing.out(
        f"\n{conclude_gate(checks).headline}\n{len(checks)} {noun}: {len(checks) - failed} passed, {failed} failed"
    )
    for warning in warnings:
        printing.out(f"\n! {warning}")
