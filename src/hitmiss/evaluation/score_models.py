"""Judge a fitted score model: the numbers before and after it, on other data or on held-out folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hitmiss.core.design import Design
from hitmiss.core.errors import UsageError
from hitmiss.core.results import Results
from hitmiss.core.trials import Trials
from hitmiss.derive.cross_validation import cross_validate
from hitmiss.derive.score_model import ScoreModel, cost_prior
from hitmiss.evaluation.protocol import measure_sides
from hitmiss.metrics.detection import OF_SCORE_MODELS

__all__ = ["judge_applied", "judge_held_out", "operating_prior"]


def judge_applied(model: ScoreModel, systems: Mapping[str, Trials], mapped: Trials, design: Design) -> Results:
    """Measure trials as they were and as the model maps them, side by side."""
    return measure_sides({**_before(systems), f"after {model.method}": mapped}, _asked(design))


def judge_held_out(
    systems: Mapping[str, Trials],
    fit: Callable[[Mapping[str, Trials]], ScoreModel],
    method: str,
    design: Design,
    folds: int,
) -> Results:
    """Measure trials as they were and as models map them that were fitted without them, whole units held out."""
    held = cross_validate(systems, fit, unit=design.units, folds=folds, seed=design.seed)
    return measure_sides({**_before(systems), f"{method}, {folds} held-out folds": held}, _asked(design))


def operating_prior(prior: float, costs: str | None) -> float:
    """Return the prior of an operating point: a prior, moved by the costs of a miss and of a false alarm.

    >>> round(operating_prior(0.95, "1,10"), 3), operating_prior(0.3, None)
    (0.655, 0.3)
    """
    if costs is None:
        return cost_prior(prior)
    try:
        miss, false_alarm = map(float, costs.split(","))
    except ValueError:
        raise UsageError.of("bad-costs", costs=costs) from None
    return cost_prior(prior, miss, false_alarm)


def _before(systems: Mapping[str, Trials]) -> dict[str, Trials]:
    if len(systems) == 1:
        return {"before": next(iter(systems.values()))}
    return dict(systems)


def _asked(design: Design) -> Design:
    if design.metrics or design.protocol is not None:
        return design
    return replace(design, metrics=OF_SCORE_MODELS)
