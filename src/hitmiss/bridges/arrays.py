"""Metrics by name on plain arrays, for loops that have no table of trials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import UsageError
from hitmiss.core.kinds import one_or_several
from hitmiss.core.metric import Metric
from hitmiss.core.metric_spec import MetricSpec, Setting
from hitmiss.core.registry import resolve
from hitmiss.core.sorting import Array

AskedMetric = tuple[str, Metric, dict[str, Setting]]


def asked_metrics(metrics: str | MetricSpec | Sequence[str | MetricSpec]) -> list[AskedMetric]:
    """Return metrics with their settings; refuse one that needs more than labels, scores and decisions."""
    given: tuple[str | MetricSpec, ...] = one_or_several(metrics)
    found = [resolve(m) for m in given]
    for spec, entry, _ in found:
        beyond = [c for c in entry.columns if c not in ("label", "score", "decision")]
        if beyond:
            raise UsageError.of("missing-column/metric", spec=spec, beyond=tuple(beyond))
    return [(str(spec), entry, settings) for spec, entry, settings in found]


def figures(
    questions: Sequence[AskedMetric], label: object, score: object, threshold: float | None = None
) -> dict[str, float]:
    """Return every metric by its text; decisions are `score >= threshold`."""
    truth, values = array(label), array(score)
    decision: NDArray[np.int8] | None = None
    if any("decision" in entry.columns for _, entry, _ in questions):
        if threshold is None:
            names = ", ".join(text for text, entry, _ in questions if "decision" in entry.columns)
            raise UsageError.of("no-threshold", names=names)
        decision = (values >= threshold).astype(np.int8)
    columns = {"label": truth, "score": values, "decision": decision}
    return {
        text: float(entry.function(**{c: columns[c] for c in entry.columns}, **settings))
        for text, entry, settings in questions
    }


def array(values: object) -> Array:
    """Convert anything like an array to numpy; a torch tensor is first detached and moved to the CPU.

    >>> array([1, 2]).tolist()
    [1, 2]
    """
    if hasattr(values, "detach"):
        tensor = values.detach().cpu()
        return np.asarray(tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy())
    return np.asarray(values)
