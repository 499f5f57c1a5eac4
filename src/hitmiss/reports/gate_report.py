"""The outcome of a gate for other tools: Markdown for a step summary, JUnit XML, lines of an annotated log."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from hitmiss._version import __version__
from hitmiss.core.protocol import EVERY
from hitmiss.engine.requirement import Check
from hitmiss.evaluation.gate import Flip, GateOutcome
from hitmiss.reports.markdown import md
from hitmiss.reports.table import Table, TableCell

COMMENT_ROWS: Final = 4
COMMENT_IDS: Final = 5
MARK: Final = "<!-- hitmiss gate -->"
"""By which a comment is found again, so that a pull request has one."""
SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"
SUMMARY_LIMIT: Final = 900_000
"""Maximum bytes of a step summary; GitHub drops one above 1 MiB completely."""


def table(checks: Sequence[Check]) -> Table:
    """Return one line per check, failed ones first."""
    ordered = sorted(checks, key=lambda c: c.passed)
    rows = [
        (
            TableCell(c.mark, strong=not c.passed),
            TableCell(c.figure),
            TableCell(c.fails_if),
            TableCell(_found(c)),
        )
        for c in ordered
    ]
    return Table("gate", ("", "metric", "fails if", "found"), tuple(rows), 4)


def _found(check: Check) -> str:
    """Return what was found, why it matters, and who answers for the rule."""
    return "; ".join(filter(None, (check.reason, check.why, ", ".join(check.owners))))


def markdown(run: str, checks: Sequence[Check], warnings: Sequence[str] = ()) -> str:
    """Return the outcome as a Markdown section.

    >>> print(markdown("run|1", [Check("eer > 0.1", "eer", 0.2, 0.1, False, "0.2")]))
    ### hitmiss gate: 1 of 1 checks failed
    <BLANKLINE>
    run: run\\|1
    <BLANKLINE>
    | | metric | fails if | found |
    |---|---|---|---|
    | ❌ | eer | eer &gt; 0.1 | 0.2 |
    <BLANKLINE>
    """
    failed = sum(not c.passed for c in checks)
    title = f"{failed} of {len(checks)} checks failed" if failed else f"all {len(checks)} checks passed"
    lines = [
        f"### hitmiss gate: {title}",
        "",
        f"run: {md(run)}",
        "",
        "| | metric | fails if | found |",
        "|---|---|---|---|",
    ]
    for c in sorted(checks, key=lambda c: c.passed):
        lines.append(f"| {'✅' if c.passed else '❌'} | {md(c.figure)} | {md(c.fails_if)} | {md(_found(c))} |")
    return "\n".join([*lines, "", *(f"> ⚠ {md(w)}" for w in warnings)])


def append_summary(path: str | Path, text: str) -> None:
    """Append to a step summary; text that would make the file too long is cut, and a note says so."""
    file = Path(path)
    room = SUMMARY_LIMIT - (file.stat().st_size if file.exists() else 0)
    note = "\n\n… cut: the summary is longer than a step may show; the log has the rest.\n"
    data = (text + "\n").encode()
    if len(data) > room:
        keep = max(room - len(note.encode()), 0)
        data = data[:keep].decode(errors="ignore").rpartition("\n")[0].encode() + note.encode()
    with file.open("ab") as out:
        out.write(data)


def junit(run: str, checks: Sequence[Check]) -> str:
    """Return the outcome as JUnit XML, with one test case per check."""
    failed = str(sum(not c.passed for c in checks))
    root = ElementTree.Element("testsuites", tests=str(len(checks)), failures=failed)
    suite = ElementTree.SubElement(
        root, "testsuite", name=f"hitmiss gate {_printable(run)}", tests=str(len(checks)), failures=failed
    )
    for c in checks:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname="hitmiss.gate",
            name=_printable(_title(c)),
        )
        if not c.passed:
            ElementTree.SubElement(case, "failure", message=_printable(f"{c.rule}: {c.reason}"))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _title(check: Check) -> str:
    """Return what holds where a check passes.

    >>> _title(Check("eer worse than the baseline by more than 0.01", "eer [codec=C05]", 0.0, 0.01, True, "", before=0.1))
    'eer [codec=C05] is worse by at most 0.01 than the baseline'
    """
    if check.before is not None:
        return f"{check.figure} is worse by at most {check.limit:g} than the baseline"
    return f"{check.figure}: {check.rule}" if check.is_required else f"{check.figure}: not {check.rule}"


def comment(outcome: GateOutcome, texts: Mapping[str, str] | None = None) -> str:
    """Return the outcome as a comment of a pull request, at most 12 lines: what got worse where comes first.

    Parameters
    ----------
    outcome
        What the gate found.
    texts
        The texts of items, where they may be shown.
    """
    failed = [c for c in outcome.checks if not c.passed]
    n, of = len(failed), len(outcome.checks)
    where = list(dict.fromkeys(_place(c) for c in failed))
    named = ", ".join(where[:3]) + (f" and {len(where) - 3} more" if len(where) > 3 else "")
    head = f"**Stopped by hitmiss: worse in {md(named)}**" if any(c.before is not None for c in failed) else ""
    head = head or (f"**Stopped by hitmiss: {md(named)}**" if failed else "**hitmiss: nothing got worse**")
    lines = [f"{head} ({n} of {of} checks failed)" if failed else f"{head} ({of} checks passed)"]
    rows = [_before_after(c) for c in failed[:COMMENT_ROWS]]
    if rows:
        lines += ["", "| where | number | before → after | interval | limit |", "|---|---|---|---|---|", *rows]
    if n > len(rows):
        lines[0] += f"; {len(rows)} shown"
    flips = _first(outcome, failed)
    if outcome.flips.lost:
        shown = ", ".join(_flip(f, texts or {}) for f in flips)
        more = f"{len(outcome.flips.lost):,} answers became wrong, {outcome.flips.n_won:,} right"
        lines += ["", f"{more}; wrong now: {shown}"]
    owners = list(dict.fromkeys(o for c in failed for o in c.owners))
    return "\n".join([*lines, *([f"Owners: {md(', '.join(owners))}"] if owners else []), MARK]) + "\n"


def _place(check: Check) -> str:
    return ", ".join(f"over {k}" if v == EVERY else f"{k} {v}" for k, v in check.slice.items()) or "all items"


def _before_after(check: Check) -> str:
    def number(value: float | None) -> str:
        return "undefined" if value is None else f"{value:.4g}"

    moved = number(check.after) if check.before is None else f"{number(check.before)} → {number(check.after)}"
    ends = "" if check.low is None or check.high is None else f"{check.low:.4g} to {check.high:.4g}"
    what = f"{ends} worse" if ends and check.before is not None else ends
    limit = f"worse by {check.limit:g}" if check.before is not None else check.fails_if
    return f"| {md(_place(check))} | {md(check.figure.partition(' [')[0])} | {moved} | {what} | {md(limit)} |"


def _first(outcome: GateOutcome, failed: Sequence[Check]) -> list[Flip]:
    """Return the first flips, those of the slices that failed before others."""
    places = [dict(c.slice) for c in failed if c.slice]

    def is_elsewhere(flip: Flip) -> bool:
        return not any(place.items() <= dict(flip.slice).items() for place in places)

    return sorted(outcome.flips.lost, key=is_elsewhere)[:COMMENT_IDS]


def _flip(flip: Flip, texts: Mapping[str, str]) -> str:
    name = f"{flip.item} ({flip.target})" if flip.target else flip.item
    text = texts.get(flip.item)
    return f"`{_code(name)}`" + (f" “{md(text[:80])}”" if text else "")


def _code(text: str) -> str:
    return _printable(text).replace("`", "'")


def sarif(run: str, checks: Sequence[Check]) -> str:
    """Return the failed checks as SARIF 2.1.0, which code hosts show beside the file of the run."""
    failed = [c for c in checks if not c.passed]
    rules = list(dict.fromkeys(c.rule for c in failed))
    results = [
        {
            "ruleId": f"gate-{rules.index(c.rule) + 1}",
            "level": "error",
            "message": {"text": f"{c.figure}: {_found(c)} (fails if {c.fails_if})"},
            "locations": [
                {"physicalLocation": {"artifactLocation": {"uri": Path(run).as_posix()}, "region": {"startLine": 1}}}
            ],
        }
        for c in failed
    ]
    driver = {
        "name": "hitmiss gate",
        "version": __version__,
        "rules": [{"id": f"gate-{i}", "shortDescription": {"text": rule}} for i, rule in enumerate(rules, 1)],
    }
    made = {"$schema": SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _printable(text: str) -> str:
    """Remove control characters, which XML cannot represent."""
    return "".join(c if unicodedata.category(c) not in ("Cc", "Cs") else "\ufffd" for c in text)


def error_lines(checks: Sequence[Check]) -> list[str]:
    """Return one line per failed check, which a GitHub log shows as an error.

    >>> error_lines([Check("eer > 0.1", "eer", 0.2, 0.1, False, "50%")])
    ['::error title=hitmiss gate::eer: fails if eer > 0.1, found 50%25']
    """
    texts = [f"{c.figure}: fails if {c.fails_if}, found {c.reason}" for c in checks if not c.passed]
    escaped = [t.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A") for t in texts]
    return [f"::error title=hitmiss gate::{t}" for t in escaped]
