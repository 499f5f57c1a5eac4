"""The rules of biometric tests for few errors: of 30, and of 3 if none was seen."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from hitmiss.core.finding import Remark
from hitmiss.core.registry import find_metric
from hitmiss.core.results import Results

LEAST_ERRORS: Final = 30
"""So many errors give a rate to ± 30 % at a level of 90 % (the rule of 30: 1.645 / √30 = 0.30)."""


def few_errors(results: Results, metrics: Collection[str]) -> list[str]:
    """Name the rates that rest on fewer errors than the rule of 30 asks, and the bound of the rule of 3 for no error."""
    few, none = [], []
    for e in results:
        if e.metric not in metrics or e.average is not None or e.value is None:
            continue
        of = e.n_positive if find_metric(e.metric).of == "positives" else e.n - e.n_positive
        name, errors = " ".join([e.title or e.metric, *e.slice.values()]), round(e.value * of)
        if errors == 0:
            none.append(f"{name} (0 of {of:,}): below {min(1.0, 3 / of):.3g}")
        elif errors < LEAST_ERRORS:
            few.append(f"{name} ({errors:,} of {of:,})")
    return [
        *([Remark.of("few-errors/rule-of-30", named=", ".join(few))] if few else []),
        *([Remark.of("few-errors/rule-of-3", named=", ".join(none))] if none else []),
    ]
