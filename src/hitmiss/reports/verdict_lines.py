"""A verdict as lines for exports: what is good, what fails, and the checks that did not pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hitmiss.core.finding import FAILED, OPEN, PASSED, State
from hitmiss.core.verdict import Check, Verdict
from hitmiss.findings.render import Surface, text

STATES: Final[Mapping[State, str]] = {PASSED: "Shown:", FAILED: "FAILED:", OPEN: "Open:"}
"""How a line begins; a paper and a sheet have no ticks and crosses."""


def telling(verdict: Verdict, surface: Surface) -> Iterator[tuple[str, str]]:
    """Yield a mark with its name, and the sentence as the output writes it; checks that passed are left out."""
    for _, lines in verdict.sections:
        for line in lines:
            if isinstance(line, Check) and line.state == PASSED:
                continue
            finding = line.finding if isinstance(line, Check) else line
            name = f" {line.name}:" if line.name else ""
            yield f"{STATES[line.state]}{name}", text(finding, surface)
