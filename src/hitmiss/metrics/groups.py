"""Metrics of many groups at once, from arrays: one sort of the scores, one count of the decisions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.errors import DataError, UsageError
from hitmiss.metrics.counts import OUTCOMES, Counts, outcome
from hitmiss.registry import Metric, resolve
from hitmiss.spec import Setting, Spec
from hitmiss.stats.forms import OfCounts
from hitmiss.stats.runs import PIECE, Runs, counted
from hitmiss.tally import check_label, check_trials


def by_group(
    metrics: Sequence[str | Spec],
    *,
    label: ArrayLike,
    group: ArrayLike,
    score: ArrayLike | None = None,
    decision: ArrayLike | None = None,
) -> dict[str, dict[str, float]]:
    """Each metric in each group: `{metric: {group: value}}`, NaN where it is undefined.

    Groups are texts or integers and come in sorted order. `score` is needed for metrics of scores, `decision` for those
    of decisions.

    >>> by_group(["roc_auc", "recall"], label=[1, 0, 1, 0], group=["en", "en", "es", "es"],
    ...          score=[0.9, 0.2, 0.3, 0.6], decision=[1, 0, 1, 1])
    {'roc_auc': {'en': 1.0, 'es': 0.0}, 'recall': {'en': 1.0, 'es': 1.0}}
    """
    codes, names = _codes(group)
    positive = check_label(label)
    if codes.shape != positive.shape:
        raise DataError(f"label and group must be equally long; found {positive.shape} and {codes.shape}")
    asked = [resolve(m) for m in metrics]
    _refuse_absent(asked, score, decision)
    runs = counts = None
    if score is not None and any("score" in entry.columns for _, entry, _ in asked):
        _, values, _ = check_trials(positive, score)
        runs = Runs.of(positive, values, codes, len(names))
    if decision is not None and any("decision" in entry.columns for _, entry, _ in asked):
        counts = _counts(positive, decision, codes, len(names))
    found = {}
    for spec, entry, settings in asked:
        found[str(spec)] = dict(zip(names, _values(entry, settings, runs, counts, len(names)), strict=True))
    return found


def _codes(group: ArrayLike) -> tuple[NDArray[np.integer], list[str]]:
    """Groups as numbers from 0, and the sorted names that they stand for."""
    given = np.asarray(group)
    if given.dtype.kind in "iu" and len(given) and given.min() >= 0 and given.max() < 2**16:
        held = np.flatnonzero(counted(given, int(given.max()) + 1))
        if len(held) == held[-1] + 1:
            return given, [str(g) for g in held]
        place = np.zeros(held[-1] + 1, dtype=np.int64)
        place[held] = np.arange(len(held))
        return place[given], [str(g) for g in held]
    names, codes = np.unique(given.astype(str) if given.dtype == object else given, return_inverse=True)
    return codes, [str(name) for name in names]


def _refuse_absent(asked: list[tuple[Spec, Metric, dict[str, Setting]]], score: object, decision: object) -> None:
    given = {"score": score, "decision": decision}
    for spec, entry, _ in asked:
        absent = [c for c in entry.columns if c != "label" and given.get(c) is None]
        if absent:
            raise UsageError(f"{spec} needs {absent[0]}, which was not given")
        if entry.form is None:
            raise UsageError(f"{spec} has no form that can be counted by group; measure it with `measure`")


def _counts(positive: NDArray[np.bool_], decision: ArrayLike, codes: NDArray[np.integer], n: int) -> Counts:
    """The outcomes of every group: each field an array with one entry a group."""
    happened, table = outcome(positive, decision), np.zeros(n * OUTCOMES, dtype=np.int64)
    for start in range(0, len(codes), PIECE):
        piece = slice(start, start + PIECE)
        place = codes[piece].astype(np.int64) * OUTCOMES + happened[piece]
        table += np.bincount(place, minlength=n * OUTCOMES)
    return Counts(*table.reshape(n, OUTCOMES).T)


def _values(
    entry: Metric, settings: dict[str, Setting], runs: Runs | None, counts: Counts | None, n: int
) -> list[float]:
    form = entry.form(**settings) if entry.form is not None else None
    if isinstance(form, OfCounts):
        return list(map(float, form.of_counts(counts)))
    assert runs is not None and form is not None  # `_refuse_absent` has seen to both
    if form.is_area:
        return [runs.pair_share(g) for g in range(n)]
    return [float(form.value(runs.tally(g))) for g in range(n)]
