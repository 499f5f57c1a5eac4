"""Metrics by name on plain arrays, for loops that have no table of trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitmiss.errors import UsageError
from hitmiss.registry import Metric, resolve
from hitmiss.spec import Setting, Spec

Asked = tuple[str, Metric, dict[str, Setting]]


def asked(metrics: Sequence[str | Spec]) -> list[Asked]:
    """Metrics with their settings; one that asks for more than labels, scores and decisions is refused."""
    found = [resolve(m) for m in metrics]
    for spec, entry, _ in found:
        beyond = [c for c in entry.columns if c not in ("label", "score", "decision")]
        if beyond:
            raise UsageError(f"{spec} needs {', '.join(beyond)}; measure trials that have it with hm.measure")
    return [(str(spec), entry, settings) for spec, entry, settings in found]


def figures(questions: Sequence[Asked], label: Any, score: Any, threshold: float | None = None) -> dict[str, float]:
    """Every metric by its text; decisions are `score >= threshold`."""
    truth, values = array(label), array(score)
    decision: NDArray[np.int8] | None = None
    if any("decision" in entry.columns for _, entry, _ in questions):
        if threshold is None:
            names = ", ".join(text for text, entry, _ in questions if "decision" in entry.columns)
            raise UsageError(f"{names} judge decisions: give the threshold, decided is score >= threshold")
        decision = (values >= threshold).astype(np.int8)
    columns = {"label": truth, "score": values, "decision": decision}
    return {
        text: float(entry.function(**{c: columns[c] for c in entry.columns}, **settings))
        for text, entry, settings in questions
    }


def array(values: Any) -> NDArray[Any]:
    """Anything like an array as numpy; a torch tensor is taken off its graph and its device first.

    >>> array([1, 2]).tolist()
    [1, 2]
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float().numpy() if values.is_floating_point() else values.numpy()
    return np.asarray(values)
