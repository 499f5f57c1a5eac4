"""How far numbers depend on how answers were read: by each parser, and by each source of confidence.

The verdicts of a run of language models are read by a lenient parser, and beside it by one that accepts only the form
that was asked for; where a model was asked once more for the form, or another model brought the answer into it, the
answer before that counts beside it too. A confidence may be stated, be the probability of the verdict's words, or the agreement over trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import polars as pl

from hitmiss.core.design import Design
from hitmiss.core.protocol import Protocol
from hitmiss.core.results import Estimate, Results
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.engine.measure import measure_design
from hitmiss.metrics.selective import OF_CONFIDENCES
from hitmiss.metrics.triage import PARSED
from hitmiss.verdicts.stability import TRIAL, is_repeated, pooled

PARSERS: Final = {
    "strict": "decision_strict",
    "without repair": "decision_first",
    "without structuring": "decision_agent",
}
"""Other readings of an answer, and the columns of their verdicts."""
LOGPROBS: Final = "confidence_logprobs"


def by_parser(trials: Trials, protocol: Protocol, plan: SamplingPlan) -> Results:
    """Measure the main numbers by verdicts as they were read, and as other parsers read them.

    Empty if the rows do not say, or if all read every answer alike.
    """
    sides = {"as read": trials}
    for name, column in PARSERS.items():
        if column in trials.frame.columns:
            said = (
                pl.when(pl.col("decision").is_null()).then(None).otherwise(pl.col(column).cast(pl.Int8, strict=False))
            )
            other = replace(trials, frame=trials.frame.with_columns(decision=said))
            if not other.frame["decision"].equals(trials.frame["decision"], null_equal=True):
                sides[name] = other
    if len(sides) == 1:
        return Results(())
    return _side_by_side(sides, "parser", PARSED, protocol, plan)


def by_confidence(trials: Trials, protocol: Protocol, plan: SamplingPlan) -> Results:
    """Measure calibration by each confidence that there is: stated, of the verdict's words, and of repeated answers.

    Empty if there is one only.
    """
    there = trials.frame.columns
    if "decision" not in there or "confidence" not in there:
        return Results(())
    sources: dict[str, pl.Expr] = {"stated": pl.col("confidence")}
    if LOGPROBS in there:
        sources["logprobs"] = pl.col(LOGPROBS)
    if is_repeated(trials):
        run = [name for name in trials.header.runs if name != TRIAL]
        alike = pl.len().over("item", "target", *run, "decision") / pl.len().over("item", "target", *run)
        sources["agreement"] = alike.cast(pl.Float64)
    if len(sources) == 1:
        return Results(())
    sides = {
        name: replace(trials, frame=trials.frame.with_columns(confidence=source)) for name, source in sources.items()
    }
    return _side_by_side(sides, "confidence", OF_CONFIDENCES, protocol, plan)


def _side_by_side(
    sides: Mapping[str, Trials], column: str, metrics: tuple[str, ...], protocol: Protocol, plan: SamplingPlan
) -> Results:
    """Measure the same trials in several readings, each named in a run column."""
    asked = Design.by_plan(replace(plan, bootstrap=0), metrics, (), protocol)
    rows: list[Estimate] = []
    for name, side in sides.items():
        rows += [replace(e, run={**e.run, column: name}) for e in measure_design(pooled(side), asked)]
    return Results(tuple(rows))
