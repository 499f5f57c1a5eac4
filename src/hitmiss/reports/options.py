"""What a report shows, and what its sections are given besides the evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field

from hitmiss.core.design import Design
from hitmiss.reports.versus import Versus
from hitmiss.reports.worst_errors import BUDGET, MOST, WorstErrors


@dataclass(frozen=True)
class Options:
    """What a report shows: samples or none, their texts, how many bytes of them, and how runs are compared."""

    title: str = ""
    samples: bool = True
    texts: bool = True
    most: int = MOST
    budget: int = BUDGET
    compare: Design = field(default_factory=lambda: Design(bootstrap=1000))


@dataclass(frozen=True, eq=False)
class Context:
    """What a section is given besides its evaluation: a prefix for its ids, the options, and what was prepared once."""

    id: str
    options: Options
    compared: Versus
    errors: tuple[WorstErrors, ...]
