"""Numbers at a declared share of positives: recall and FPR do not depend on it, so that others follow from them.

The interval combines those of recall and FPR, which come from different trials and are independent: the distances from
the value to the number with one end put in are added as squares (MOVER, Zou & Donner 2008; Newcombe 2011). Every number
here rises or falls with each of them.
"""

from __future__ import annotations

import math
from dataclasses import replace

from hitmiss.core.finding import Remark
from hitmiss.core.metric import Metric
from hitmiss.core.results import Estimate
from hitmiss.metrics.counts import at_share
from hitmiss.stats.forms.trials import OfCounts


def _at(metric: Metric, share: float, recall: float, fpr: float) -> float | None:
    """Return the number of the outcomes that two rates give at a share of positives; None if it is undefined."""
    form = metric.form() if metric.form is not None else None
    assert isinstance(form, OfCounts), metric.name
    value = float(form.of_counts(at_share(share, recall, fpr)))
    return None if math.isnan(value) else value


def at_prevalence(metric: Metric, share: float, recall: Estimate, fpr: Estimate) -> Estimate:
    """Return a number as it would be with another share of positives.

    Parameters
    ----------
    metric
        One that says that it follows from these rates.
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
    >>> from hitmiss.core.registry import find_metric
    >>> round(at_prevalence(find_metric("precision"), 0.01, Estimate("recall", 0.9), Estimate("fpr", 0.01)).value, 12)
    0.47619047619
    """
    title = f"{metric.name} at prevalence {share:g}"
    row = replace(
        recall, metric=metric.name, value=None, low=None, high=None, best="high", of=None, title=title, method=None
    )
    if recall.value is None or fpr.value is None:
        return replace(row, note=(recall if recall.value is None else fpr).note)
    value = _at(metric, share, recall.value, fpr.value)
    if value is None:
        return replace(row, note=Remark.of("undefined/no-positive-calls"))
    row = replace(row, value=value, note=None)
    if recall.low is None or recall.high is None or fpr.low is None or fpr.high is None:
        return row
    steps = [[_at(metric, share, own, fpr.value) for own in (recall.low, recall.high)]]
    steps += [[_at(metric, share, recall.value, own) for own in (fpr.low, fpr.high)]]
    if any(None in own for own in steps):
        return row
    found = [
        value + sign * math.hypot(*(max(sign * (step - value) for step in own if step is not None) for own in steps))
        for sign in (-1.0, 1.0)
    ]
    return replace(row, low=max(found[0], 0.0), high=min(found[1], 1.0), method="from recall and fpr")
