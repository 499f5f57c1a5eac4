"""A run of calls by one process, with the settings of a command that says nothing more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hitmiss.core.run_spec import RunSpec
from hitmiss.llm.plan import CallPlan
from hitmiss.llm.run import Outcome, work_on_calls


def run_llm(plan: CallPlan, spec: RunSpec | None = None, *, output: Path, **how: Any) -> Outcome:
    """Ask, and write the rows to `output`."""
    outcome = work_on_calls(plan, spec or RunSpec(), output=output, **how)
    assert outcome is not None, "nobody else works on it"
    return outcome
