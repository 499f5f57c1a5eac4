"""Numbers at a declared share of positives: recall and FPR do not depend on it, so that others follow from them.

The interval combines those of recall and FPR, which come from different trials and are independent: the distances from
the value to the number with one end put in are added as squares (MOVER, Zou & Donner 2008; Newcombe 2011). Every number
here rises with recall and falls with FPR.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from hitmiss.core.finding import Remark
from hitmiss.core.results import Estimate

Rates = Callable[[float, float, float], float | None]


def _precision(share: float, recall: float, fpr: float) -> float | None:
    called = share * recall + (1 - share) * fpr
    return share * recall / called if called > 0 else None


def _accuracy(share: float, recall: float, fpr: float) -> float | None:
    return share * recall + (1 - share) * (1 - fpr)


def _f1(share: float, recall: float, fpr: float) -> float | None:
    return 2 * share * recall / (share * (1 + recall) + (1 - share) * fpr)


PARTS: Final[Mapping[str, Rates]] = {"precision": _precision, "accuracy": _accuracy, "f1": _f1}
"""The metrics that are known at another share of positives, from recall and FPR."""


def at_prevalence(metric: str, share: float, recall: Estimate, fpr: Estimate) -> Estimate:
    """Return a number as it would be with another share of positives.

    Parameters
    ----------
    metric
        One of `PARTS`.
    share
        The share of positives.
    recall, fpr
        Recall and false-positive rate of the same trials, with their intervals.

    Returns
    -------
    Estimate
        The number; undefined if recall or FPR is, or if nothing would be called positive.

    Examples
    --------
    >>> round(at_prevalence("precision", 0.01, Estimate("recall", 0.9), Estimate("fpr", 0.01)).value, 12)
    0.47619047619
    """
    of = PARTS[metric]
    title = f"{metric} at prevalence {share:g}"
    row = replace(
        recall, metric=metric, value=None, low=None, high=None, best="high", of=None, title=title, method=None
    )
    if recall.value is None or fpr.value is None:
        return replace(row, note=(recall if recall.value is None else fpr).note)
    value = of(share, recall.value, fpr.value)
    if value is None:
        return replace(row, note=Remark.of("undefined/nothing-called-positive"))
    row = replace(row, value=value, note=None)
    if recall.low is None or recall.high is None or fpr.low is None or fpr.high is None:
        return row
    ends = [(recall.low, fpr.high, -1.0), (recall.high, fpr.low, 1.0)]
    found = []
    for own, other, sign in ends:
        steps = [of(share, own, fpr.value), of(share, recall.value, other)]
        if None in steps:
            return row
        found.append(value + sign * math.hypot(*(step - value for step in steps if step is not None)))
    return replace(row, low=max(found[0], 0.0), high=min(found[1], 1.0), method="from recall and fpr")
