"""The confidence of a decision, where scores are declared to be probabilities: that of the decided class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from hitmiss.core.finding import Remark
from hitmiss.core.metric_spec import parse
from hitmiss.core.registry import find_metric
from hitmiss.core.trials import Trials

MORE_PROBABLE: Final = 0.5
"""The threshold at which the more probable of two classes is decided."""


def with_confidence(trials: Trials, metrics: Sequence[str]) -> Trials:
    """Return trials with the confidences that metrics need, if probabilities say them; otherwise the same trials.

    Without decisions, the more probable class is decided, unless a metric needs decisions alone: those depend on the
    threshold, which somebody must choose.

    Parameters
    ----------
    trials
        Trials; probabilities are those of the positive class.
    metrics
        The metrics that are asked for.

    >>> from hitmiss.core.header import Header
    >>> trials = Trials.of([1, 0, 1], [0.9, 0.2, 0.4], header=Header(score_kind="probability"))
    >>> with_confidence(trials, ["ece"]).column("confidence").to_list()
    [0.9, 0.8, 0.6]
    """
    own = trials.frame.columns
    if not metrics or "confidence" in own or trials.header.score_kind != "probability":
        return trials
    needs = [find_metric(parse(text).name).columns for text in metrics]
    if not any("confidence" in columns for columns in needs):
        return trials
    if "decision" not in own:
        if any("decision" in columns and "confidence" not in columns for columns in needs):
            return trials
        from hitmiss.derive.decisions import at_threshold

        trials = at_threshold(trials, MORE_PROBABLE, "the more probable class")
    decision, score = pl.col("decision"), pl.col("score")
    confidence = pl.when(decision == 1).then(score).when(decision == 0).then(1.0 - score)
    header = trials.header
    return trials.put(confidence=trials.frame.select(confidence.alias("confidence")).to_series()).retitle(
        notes=(*header.notes, Remark.of("confidence-derived")), choices=(*header.choices, "confidence:probability")
    )
