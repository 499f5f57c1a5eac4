"""What a section of a report is given besides the evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from hitmiss.core.report_spec import ReportSpec
from hitmiss.reports.versus import Versus
from hitmiss.reports.worst_errors import WorstErrors


@dataclass(frozen=True, eq=False)
class Context:
    """What a section is given besides its evaluation: a prefix for its ids, the options, and what was prepared once."""

    id: str
    asked: ReportSpec
    compared: Versus
    errors: tuple[WorstErrors, ...]
