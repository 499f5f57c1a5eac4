"""The runs compared pair by pair."""

from __future__ import annotations

from typing import Final

from hitmiss.reports.context import Context
from hitmiss.reports.evaluations import Evaluation
from hitmiss.reports.section import PointsBlock, Section, TableBlock, TextBlock

PLACE: Final = 70


def comparison(evaluation: Evaluation, context: Context) -> Section:
    """Return which run does better by which test, the tables, and what to know about them."""
    del evaluation
    found = context.compared
    points = (PointsBlock(found.verdicts),) if found.verdicts else ()
    return Section("versus", "Runs compared", (*points, *map(TableBlock, found.tables), *map(TextBlock, found.notes)))
