"""How long answers took, per component, with cache hits, misses and retried calls separate; and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from hitmiss.core.columns import user_name
from hitmiss.core.design import Design
from hitmiss.core.results import Estimate, Results
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.engine.measure import measure_design
from hitmiss.metrics.latency import median_seconds, p95_seconds
from hitmiss.verdicts.stability import TRIAL, USUAL, is_repeated, pooled

SUFFIX: Final = "_seconds"
SERVED: Final = "served"
HIT_BELOW: Final = 0.25
"""Seconds below which an answer is probably a cache hit, by the triage evaluation document; it only causes a note."""
METRICS: Final = (median_seconds.__name__, p95_seconds.__name__)


def by_component(trials: Trials, unit: Sequence[str] = ()) -> Trials | None:
    """Return one row per trial and timing component: seconds, how it was served, and its units; None without times."""
    head = trials.header
    names = [name for name in head.numbers if name.endswith(SUFFIX)]
    own = [trials.own(name) for name in unit if name != "item"]
    keep = dict.fromkeys(["item", "target", "label", *head.runs, SERVED, *own])
    served = trials.frame.with_columns(_served(trials).alias(SERVED))
    parts = [
        served.select(*keep, component=pl.lit(name.removesuffix(SUFFIX)), seconds=pl.col(name)).drop_nulls("seconds")
        for name in names
    ]
    if not parts or not any(part.height for part in parts):
        return None
    header = replace(
        head,
        runs=(*head.runs, "component"),
        slices=(SERVED, *(c for c in own if c not in head.runs)),
        numbers=("seconds",),
        notes=(),
    )
    return Trials.from_frame(pl.concat(parts).sort("seconds"), header)


def _served(trials: Trials) -> pl.Expr:
    """Return `hit`, `miss` or `unknown`; `retried` if a call had to be made again."""
    known = pl.col("cache") if "cache" in trials.frame.columns else pl.lit("unknown")
    if "retries" not in trials.frame.columns:
        return known
    return pl.when(pl.col("retries") > 0).then(pl.lit("retried")).otherwise(known)


def latency(trials: Trials, plan: SamplingPlan = USUAL) -> Results:
    """Measure median and 95th percentile of each component, by how the answer was served; hits and misses never mix.

    Intervals are from order statistics, or over items if those repeat, or over the unit of the plan.
    """
    over = plan.unit or (("item",) if is_repeated(trials) else ())
    times = by_component(trials, over)
    if times is None:
        return Results(())
    drawn = replace(plan, unit=over, bootstrap=plan.bootstrap if over else 0)
    found = measure_design(pooled(times, TRIAL), Design.by_plan(drawn, METRICS, ((SERVED,),)))
    apart = {tuple(e.run.items()) for e in found if e.slice and e.average is None}
    rows = [e for e in found if e.average is None and (e.slice or tuple(e.run.items()) not in apart)]
    return Results(tuple(_placed(e, times) for e in rows), warnings=_doubts(times))


def _placed(e: Estimate, times: Trials) -> Estimate:
    """Return a row with how it was served, also if all of a component was served in the same way."""
    if e.slice:
        return e
    own = times.frame.filter(pl.all_horizontal(pl.col(k) == v for k, v in e.run.items()))
    return replace(e, slice={SERVED: own[SERVED][0]})


def _doubts(times: Trials) -> tuple[str, ...]:
    unknown = times.frame.filter(pl.col(SERVED) == "unknown")
    fast = unknown.filter(pl.col("seconds") < HIT_BELOW).height
    if not unknown.height:
        return ()
    told = f"; {fast:,} of {unknown.height:,} times are below {HIT_BELOW:g} s, as cache hits are" if fast else ""
    return (f"the results do not say which answers came from a cache, so the times may mix hits and misses{told}",)


TOKENS: Final = "tokens_"
COST: Final = "cost"


def spending(trials: Trials) -> Results:
    """Return the cost of each run's answers: the sum, and the mean per trial with a known cost; and their tokens.

    A trial whose cost is not known (no price, from a cache) is left out and counted in the note; it never counts as 0.

    >>> from hitmiss.core.trials import Header
    >>> head = Header("fake", "real", runs=("model",), numbers=("cost",))
    >>> rows = {"item": ["a", "b"], "target": ["", ""], "label": [1, 0], "model": ["m", "m"], "cost": [0.5, None]}
    >>> found = spending(Trials.from_frame(pl.DataFrame(rows), head))
    >>> [(e.metric, e.value, e.note) for e in found]
    [('total_cost', 0.5, '1 of 2 trials have no known cost'), ('mean_cost', 0.5, '1 of 2 trials have no known cost')]
    """
    head = trials.header
    runs = [name for name in head.runs if name != TRIAL]
    names = [name for name in head.numbers if name == COST or name.startswith(TOKENS)]
    groups = trials.frame.partition_by(runs, as_dict=True, maintain_order=True) if runs else {(): trials.frame}
    found = []
    for key, own in groups.items():
        run = dict(zip(map(user_name, runs), map(str, key), strict=True))
        row = Estimate("", None, n=own.height, n_positive=int(own["label"].sum()), run=run, best="low")
        for name in names:
            known = own[name].drop_nulls().drop_nans()
            lacking = own.height - len(known)
            note = f"{lacking:,} of {own.height:,} trials have no known {name.replace('_', ' ')}" if lacking else None
            if len(known):
                total, mean = float(known.sum()), known.mean()
                for metric, value in ((f"total_{name}", total), (f"mean_{name}", mean)):
                    found.append(replace(row, metric=metric, value=value, note=note))  # type: ignore[arg-type]
    return Results(tuple(found))
