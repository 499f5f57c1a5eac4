"""The trials that were answered wrongly, the most confident first."""

from __future__ import annotations

from typing import Final

from hitmiss.reports.context import Context
from hitmiss.reports.evaluations import Evaluation
from hitmiss.reports.section import ErrorsBlock, Section, TextBlock

PLACE: Final = 80

NO_TRIALS: Final = (
    "Left out: the trials were counted, not kept, so the worst of them cannot be shown. A report of score files without --stream, "
    "--cluster or --counts shows them."
)


def errors(evaluation: Evaluation, context: Context) -> Section:
    """Return the worst errors of each run, or why there are none to show."""
    found = context.errors
    if found:
        return Section("errors", "Worst errors", tuple(ErrorsBlock(e, len(found) > 1) for e in found))
    counted = any(member.trials is not None and not member.trials.has_rows for member in evaluation.members)
    return Section(
        "errors", "Worst errors", (TextBlock(NO_TRIALS),) if counted and not context.asked.no_samples else ()
    )
