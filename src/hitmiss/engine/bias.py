"""Measure unintended bias by identity: subgroup, BPSN and BNSP AUC with intervals, power means, the final number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.finding import Remark
from hitmiss.core.results import Estimate
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.core.weights import refuse_sampling
from hitmiss.engine.interval import area_interval
from hitmiss.metrics.bias import KINDS, POWER, bias_score
from hitmiss.stats.forms.sums import PairShare

IDENTITY: Final = "identity"
FEW: Final = 10


def measure_bias(
    trials: Trials, members: Mapping[str, NDArray[np.bool_]], *, level: float = 0.95
) -> tuple[list[Estimate], list[str]]:
    """Return estimates for each identity, their power means and the final number, and notes for the reader.

    An identity is a mask of the trials that mention it. The scores of the four groups (subgroup or background, toxic or
    not) are sorted once for the three AUCs.
    """
    refuse_sampling(trials, "the bias of identities")
    positive, score = np.asarray(trials.label == 1), trials.score
    rows = [e for name, member in members.items() for e in _identity(name, member, positive, score, level)]
    overall = PairShare().value(Tally.of_classes(score[positive], score[~positive]))
    values = {k: [math.nan if e.value is None else e.value for e in rows if e.metric == k] for k in KINDS}
    final = bias_score(overall, values)
    row = Estimate("bias_score", _known(final.final), n=len(trials), n_positive=trials.n_positive, best="high")
    row = replace(row, slice={IDENTITY: "*"}, average="power mean", settings={"p": POWER})
    means = final.power_means.items()
    averages = [replace(row, metric=k, value=_known(v), note=_used(values[k])) for k, v in means] + [row]
    return [*rows, *averages], _remarks(rows)


def _identity(
    name: str, member: NDArray[np.bool_], positive: NDArray[np.bool_], score: Floats, level: float
) -> list[Estimate]:
    corner = {(p, m): np.sort(score[(positive == p) & (member == m)]) for p in (True, False) for m in (True, False)}
    sides = (
        (corner[True, True], corner[False, True]),
        (corner[True, False], corner[False, True]),
        (corner[True, True], corner[False, False]),
    )
    return [_estimate(kind, name, *side, level) for kind, side in zip(KINDS, sides, strict=True)]


def _estimate(kind: str, name: str, positives: Floats, negatives: Floats, level: float) -> Estimate:
    n1, n0 = len(positives), len(negatives)
    row = Estimate(kind, None, n=n1 + n0, n_positive=n1, slice={IDENTITY: name}, best="high")
    if not n1 or not n0:
        return replace(row, note=Remark.of("undefined/no-text", part="toxic" if not n1 else "non-toxic"))
    tally = Tally.of_classes(positives, negatives)
    low, high = area_interval(tally, level)
    few = min(n1, n0)
    note = (
        Remark.of("few-of-class/identity", few=few, part="toxic" if n1 == few else "non-toxic") if few < FEW else None
    )
    row = replace(row, value=PairShare().value(tally), note=note)
    return row if math.isnan(low) else replace(row, low=low, high=high, method="delong")


def _used(values: list[float]) -> str | None:
    defined = sum(not math.isnan(v) for v in values)
    return (
        None
        if defined == len(values)
        else Remark.of("mean-over-some/identities", defined=defined, n_values=len(values))
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _remarks(rows: list[Estimate]) -> list[str]:
    absent = list(dict.fromkeys(e.slice[IDENTITY] for e in rows if e.metric == "subgroup_auc" and e.n == 0))
    return [f"no text mentions {', '.join(absent)}"] if absent else []
