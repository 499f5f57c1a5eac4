"""Agreement of people beyond chance: Krippendorff's alpha for nominal answers, with an interval over the items."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.errors import UsageError
from hitmiss.core.finding import has_code
from hitmiss.core.header import Header
from hitmiss.core.metric import Metric
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.engine.columns import Columns
from hitmiss.engine.draws import Draws
from hitmiss.engine.interval import SAME, share_interval
from hitmiss.engine.measurement import Measurement
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.engine.samples import samples_of_runs
from hitmiss.stats.forms.trials import OfWeights

Counts = NDArray[np.float64]
Answers = Iterable[Mapping[str, str]]
MOST_UNDEFINED: Final = 0.05
"""With a larger share of undefined replicates than this, the others give no valid interval."""


@dataclass(frozen=True)
class Agreement:
    """Alpha with its interval, the share of pairs that agree, and how many items and answers could be paired.

    `alpha` is None if it is undefined, and `note` says why; the same holds for the interval.
    """

    alpha: float | None
    low: float | None
    high: float | None
    agreeing: float | None
    n_items: int
    n_answers: int
    note: str = ""


def answer_counts(items: Answers, missing: Iterable[str] = ()) -> Counts:
    """Count how many people gave which answer, item × answer. `items`: for each item, each person's answer.

    >>> answer_counts([{"ann": "fake", "bob": "real"}, {"ann": "fake", "bob": "?"}], missing=["?"]).tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """
    left_out, rows = set(missing), [list(item.values()) for item in items]
    values = sorted({answer for row in rows for answer in row} - left_out)
    return np.array([[row.count(value) for value in values] for row in rows], dtype=np.float64).reshape(
        len(rows), len(values)
    )


def krippendorff_alpha(counts: NDArray[np.floating]) -> float:
    """Return Krippendorff's alpha for nominal answers; people may have left items out.

    α = 1 − D_o / D_e. With n_u answers to item u (items with fewer than two are left out), n_uc of them c, n_c and n in
    all: D_o = Σ_u (n_u² − Σ_c n_uc²) / (n_u − 1) / n and D_e = (n² − Σ_c n_c²) / (n (n − 1)). Best: 1; 0 is agreement
    by chance; below 0 is less than chance. Undefined (NaN) if no item has two answers, or all answers are the same:
    then nothing shows that people can distinguish the classes. Reference: Krippendorff 2011, "Computing Krippendorff's
    Alpha-Reliability".

    >>> krippendorff_alpha(np.array([[2, 0], [0, 2], [1, 1], [0, 1]]))
    0.4444444444444444
    """
    answers = _checked(counts)
    return _alpha_of(answers[answers.sum(axis=1) >= 2])


class _Alpha(OfWeights):
    """Alpha as a form: `answers` holds, for each item, how many people gave which answer."""

    def of_weights(self, arrays: Mapping[str, NDArray[np.generic]], weights: Counts) -> Counts:
        """Return alpha of every replicate; `weights` say how often each item was drawn."""
        return _alphas(arrays["answers"].astype(np.float64), weights)


def _alpha_of(answers: Counts) -> float:
    return float(_alphas(answers, np.ones((1, len(answers))))[0])


def agreement(
    counts: NDArray[np.floating],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    units: Mapping[str, Sequence[str]] | None = None,
) -> Agreement:
    """Return alpha with an interval from items drawn with all their answers, or from wider units of items.

    `units`: one or two columns, such as the speaker of each item, whose values are drawn whole.

    >>> agreement(np.array([[2, 0], [2, 0]])).note
    'all answers are the same'
    """
    table = _checked(counts)
    paired = table.sum(axis=1) >= 2
    answers = table[paired]
    n_items, n = len(answers), int(answers.sum())
    if not n_items:
        return Agreement(None, None, None, None, 0, 0, "no item has two answers")
    sizes = answers.sum(axis=1)
    pairs = (sizes * (sizes - 1)).sum()
    agreeing = float((answers * (answers - 1)).sum() / pairs)
    if math.isnan(_alpha_of(answers)):
        return Agreement(None, None, None, agreeing, n_items, n, "all answers are the same")
    over = {name: [v for v, held in zip(values, paired, strict=True) if held] for name, values in (units or {}).items()}
    plan = SamplingPlan(bootstrap, tuple(over) or ("item",), seed, level)
    alpha, low, high, note = _measured(answers, over, plan)
    return Agreement(alpha, low, high, agreeing, n_items, n, note)


def _measured(
    answers: Counts, units: Mapping[str, list[str]], plan: SamplingPlan
) -> tuple[float | None, float | None, float | None, str]:
    """Measure alpha on items as trials, like any other number; return it with its ends and a note."""
    if not plan.bootstrap:
        return _alpha_of(answers), None, None, "no bootstrap was asked for"
    if any(len({*values}) < 2 for values in (*units.values(), range(len(answers)))):
        return _alpha_of(answers), None, None, f"one {plan.unit[0]} has no spread"
    frame = pl.DataFrame(
        {
            "item": [str(i) for i in range(len(answers))],
            "label": np.ones(len(answers), dtype=np.int8),
            "answers": pl.Series(answers, dtype=pl.Array(pl.Float64, answers.shape[1])),
            **units,
        }
    )
    columns = Columns(Trials.from_frame(frame, Header(slices=tuple(units)), is_unique=True))
    # The plain scale: near 1, where alpha often lies, a scale bounded by 1 makes one disagreement look like many.
    entry = Metric("alpha", _alpha_of, "high", (-math.inf, math.inf), ("answers",), {})
    (sample,) = samples_of_runs(columns)
    question = PreparedMetric("alpha", entry, {}, _Alpha(_alpha_of, ("answers",)))
    work = Measurement(columns, [question], Draws.prepare(plan, columns, sample.rows))
    (found,) = work.estimates(sample)
    lost = int(np.isnan(work.replicates[sample.name][0]).sum())
    if lost > MOST_UNDEFINED * plan.bootstrap:
        return found.value, None, None, f"{lost:,} of {plan.bootstrap:,} replicates hold one answer alone"
    if (
        has_code(found.note, SAME.code) and found.value == 1.0
    ):  # nobody disagreed: the share of items on which people may yet do so
        totals, unseen = answers.sum(axis=0), share_interval(0.0, found.units_effective or 0.0, plan.level)[1]
        expected = 1.0 - float((totals * (totals - 1.0)).sum()) / (totals.sum() * (totals.sum() - 1.0))
        return 1.0, max(1.0 - unseen / expected, -1.0), 1.0, ""
    if found.low is None or found.high is None:
        return found.value, None, None, found.note or ""
    return found.value, max(found.low, -1.0), min(found.high, 1.0), ""


def _checked(counts: NDArray[np.floating]) -> Counts:
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or not (np.isfinite(table).all() and (table >= 0).all() and (table == np.floor(table)).all()):
        raise UsageError.of("bad-answers")
    return table


def _alphas(answers: Counts, weights: Counts) -> Counts:
    """Return alpha for each row of weights, which say how often each item was drawn."""
    sizes = answers.sum(axis=1)
    apart = (sizes**2 - (answers**2).sum(axis=1)) / np.maximum(sizes - 1.0, 1.0)
    values = weights @ answers
    n = values.sum(axis=1)
    expected = n**2 - (values**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 1.0 - (n - 1.0) * (weights @ apart) / expected
    return np.asarray(np.where(expected > 0, found, np.nan))
