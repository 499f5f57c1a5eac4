"""The spread over repeated runs."""

from __future__ import annotations

from typing import Final

from hitmiss.reports.context import Context
from hitmiss.reports.evaluations import Evaluation
from hitmiss.reports.grids import groupings
from hitmiss.reports.result_tables import over_repeats
from hitmiss.reports.section import Section, TableBlock
from hitmiss.reports.table_style import PAGE

PLACE: Final = 60


def repeats(evaluation: Evaluation, context: Context) -> Section:
    """Return mean, standard deviation, minimum and maximum over repetitions, over all trials and by slice."""
    del context
    found = [t for names in ((), *groupings(evaluation.results)) for t in over_repeats(evaluation.results, names, PAGE)]
    return Section("repeats", "Repeated runs", tuple(map(TableBlock, found)))
