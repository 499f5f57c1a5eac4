"""The outcome of a gate for other tools: Markdown for a step summary, JUnit XML, lines of an annotated log."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from hitmiss.engine.requirement import Check
from hitmiss.reports.markdown import md
from hitmiss.reports.table import Table, TableCell

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
            TableCell(c.reason),
        )
        for c in ordered
    ]
    return Table("gate", ("", "figure", "fails if", "found"), tuple(rows), 4)


def markdown(run: str, checks: Sequence[Check], warnings: Sequence[str] = ()) -> str:
    """Return the outcome as a Markdown section.

    >>> print(markdown("run|1", [Check("eer > 0.1", "eer", 0.2, 0.1, False, "0.2")]))
    ### hitmiss gate: 1 of 1 checks failed
    <BLANKLINE>
    run: run\\|1
    <BLANKLINE>
    | | figure | fails if | found |
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
        "| | figure | fails if | found |",
        "|---|---|---|---|",
    ]
    for c in sorted(checks, key=lambda c: c.passed):
        lines.append(f"| {'✅' if c.passed else '❌'} | {md(c.figure)} | {md(c.fails_if)} | {md(c.reason)} |")
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
            name=_printable(f"{c.figure}: {c.rule}" if c.is_required else f"{c.figure}: not {c.rule}"),
        )
        if not c.passed:
            ElementTree.SubElement(case, "failure", message=_printable(f"{c.rule}: {c.reason}"))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


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
