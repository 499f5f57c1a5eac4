"""Repeated runs: how much variation comes from the run, how much from the items, and which verdicts flip.

Run noise is the standard deviation of a figure over the trials of a run; item noise is its interval over the items,
which are resampled with all their trials. The two are never mixed, and repeated rows of an item never count as new
items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core.errors import UsageError
from hitmiss.core.question import Plan, Protocol, names_of, parse_by
from hitmiss.core.registry import Spec
from hitmiss.core.results import Estimate, Results, merged
from hitmiss.core.shared import ABSTAIN, FAILED, Rate
from hitmiss.core.trials import Trials
from hitmiss.engine.measure import digest_of, measure, read_signature, render
from hitmiss.stats.bootstrap import generator, unit_share
from hitmiss.stats.intervals import wilson

TRIAL: Final = "trial"


def is_repeated(trials: Trials, column: str = TRIAL) -> bool:
    """Return whether some run was made more than once."""
    return column in trials.header.runs and trials.frame[column].n_unique() > 1


def pooled(trials: Trials, column: str = TRIAL) -> Trials:
    """Return the trials of all repetitions as one run; the repetition becomes a slice."""
    head = trials.header
    if column not in head.runs:
        return trials
    return trials.retitle(runs=tuple(r for r in head.runs if r != column), slices=(*head.slices, column))


def measure_repeated(
    trials: Trials,
    metrics: Sequence[str | Spec],
    *,
    by: Sequence[str | Sequence[str]] = (),
    bootstrap: int = 1000,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    protocol: Protocol | None = None,
    remarks: Sequence[str] = (),
    column: str = TRIAL,
) -> Results:
    """Measure each repetition; then `mean` over them with the interval over items, and `sd` over them.

    Slices cover all repetitions together, with intervals over items. `unit`: wider units than items (speakers,
    sources), resampled with all their items and repetitions.
    """
    if not is_repeated(trials, column):
        raise UsageError(f"no run has more than one {column}")
    own = partial(measure, bootstrap=bootstrap, seed=seed, level=level)
    each = own(trials, metrics, remarks=remarks, unit=unit, protocol=protocol)
    over = names_of(unit) or ("item",)
    wide = replace(protocol or Protocol(), slice_metrics=())
    together = own(pooled(trials, column), metrics, by=[column], unit=over, protocol=wide)
    means = [_mean(e, column) for e in together if e.average == "macro"]
    means += _made_once(each, means, column)
    sliced = own(pooled(trials, column), metrics, by=by, unit=over, protocol=protocol) if by else Results(())
    rows = (*each, *means, *_deviations(each, column), *(e for e in sliced if e.slice))
    return replace(
        each, estimates=rows, warnings=merged(each.warnings, sliced.warnings), signature=_signed(together, rows, by)
    )


def _mean(e: Estimate, column: str) -> Estimate:
    return replace(e, average="mean", slice={}, note=e.note or f"mean over the values of {column}")


def _made_once(each: Results, means: list[Estimate], column: str) -> list[Estimate]:
    """Return the figures of runs with one repetition as the mean over that one, so that tables show every run."""
    have = {(e.metric, *sorted(e.run.items())) for e in means}
    rows = [
        replace(e, run={k: v for k, v in e.run.items() if k != column}, average="mean", note=e.note or f"one {column}")
        for e in each
        if e.average is None and not e.slice
    ]
    return [row for row in rows if (row.metric, *sorted(row.run.items())) not in have]


def _deviations(each: Results, column: str) -> list[Estimate]:
    """Return the sample standard deviation over the repetitions of each run; undefined for a single repetition."""
    cells: dict[tuple[object, ...], list[Estimate]] = {}
    for e in each:
        rest = {k: v for k, v in e.run.items() if k != column}
        cells.setdefault((e.metric, *rest.items()), []).append(replace(e, run=rest))
    return [_deviation(own) for own in cells.values()]


def _deviation(own: list[Estimate]) -> Estimate:
    values = [e.value for e in own if e.value is not None]
    row = replace(own[0], average="sd", low=None, high=None, method=None, of=None, note=f"over {len(values)} trials")
    return replace(row, value=float(np.std(values, ddof=1)) if len(values) > 1 else None)


def _signed(together: Results, rows: tuple[Estimate, ...], by: Sequence[str | Sequence[str]]) -> str:
    parts = {k: v for k, v in read_signature(together.signature).items() if k not in ("out", "by")}
    groupings = ",".join("*".join(g) for g in parse_by(by))
    return render({**parts, "by": groupings or "none", "repeats": TRIAL, "out": digest_of(rows)})


def flips(
    trials: Trials,
    column: str = TRIAL,
    level: float = 0.95,
    *,
    bootstrap: int = 1000,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
) -> Results:
    """Return, per run, the share of items whose verdict differs between trials, and of those given both classes.

    A failed call counts as a separate verdict. Items asked once are left out. Intervals are Wilson's over items, or
    bootstrap intervals over a wider `unit`.

    >>> from hitmiss.core.trials import Header
    >>> t = Trials.of([1, 1, 0, 0], item=list("aabb"), decision=[1, 0, 0, 0], trial=["1", "2", "1", "2"],
    ...               header=Header(runs=("trial",)))
    >>> [(e.metric, e.value) for e in flips(t)]
    [('flip_rate', 0.5), ('hard_flip_rate', 0.5)]
    """
    rest = [r for r in trials.header.runs if r != column]
    said = pl.col("decision").fill_null(FAILED)
    units = tuple(name for name in names_of(unit) if name != "item")
    over = pl.col(trials.own(units[0])).first() if units else pl.lit("")
    items = trials.frame.group_by([*rest, "item", "target"], maintain_order=True).agg(
        pl.col("label").first(),
        over.alias(":unit"),
        pl.len().alias(":asked"),
        (said.n_unique() > 1).alias(":flipped"),
        ((said == 1).any() & (said == 0).any()).alias(":hard"),
    )
    items = items.filter(pl.col(":asked") > 1)
    groups = items.partition_by(rest, as_dict=True, maintain_order=True) if rest else {(): items}
    plan = Plan(bootstrap, units, seed, level)
    return Results(
        tuple(row for key, own in groups.items() for row in _flip_rows(dict(zip(rest, key, strict=True)), own, plan))
    )


def _flip_rows(run: Mapping[str, str], own: pl.DataFrame, plan: Plan) -> list[Estimate]:
    rows, method = [], f"bootstrap {plan}" if plan.unit else "wilson"
    for metric, column in (("flip_rate", ":flipped"), ("hard_flip_rate", ":hard")):
        rate = Rate(int(own[column].sum()), own.height)
        low, high = _over_units(own, column, plan) if plan.unit else wilson(rate.hits, rate.of, plan.level)
        known = not math.isnan(low)
        rows.append(
            Estimate(
                metric,
                float(rate),
                low if known else None,
                high if known else None,
                own.height,
                int(own["label"].sum()),
                run=dict(run),
                method=method if known else None,
                note=None if known else _why_none(plan),
                of=rate.of,
            )
        )
    return rows


def _why_none(plan: Plan) -> str:
    if len(plan.unit) > 1:
        return "no interval: shares of items are drawn over one unit, and two are crossed here"
    return f"no interval: too few of {plan.unit[0]}" if plan.bootstrap else "no interval: add --bootstrap 1000"


def _over_units(own: pl.DataFrame, column: str, plan: Plan) -> tuple[float, float]:
    if len(plan.unit) > 1:
        return math.nan, math.nan
    parts = own.group_by(":unit", maintain_order=True).agg(pl.col(column).sum().alias(":hits"), pl.len().alias(":n"))
    hits, sizes = (parts[name].to_numpy().astype(np.float64) for name in (":hits", ":n"))
    return unit_share(hits, sizes, plan.bootstrap, generator(plan.seed, "flips", column), plan.level)


def majority(trials: Trials, column: str = TRIAL) -> Trials:
    """Return one verdict per item by the majority of its trials: a tie abstains, failed calls do not vote.

    The confidence is the mean over the trials that voted for the verdict.

    >>> from hitmiss.core.trials import Header
    >>> t = Trials.of([1] * 5, item=list("aaabb"), decision=[1, 1, 0, 1, 0], trial=list("12312"),
    ...               header=Header(runs=("trial",)))
    >>> majority(t).column("decision").to_list()
    [1, -1]
    """
    head = trials.header
    rest = [r for r in head.runs if r != column]
    said, extra = pl.col("decision"), [s for s in head.slices if s != column]
    counts = {name: (said == code).sum() for name, code in ((":yes", 1), (":no", 0), (":silent", ABSTAIN))}
    means = {
        f":c{code}": pl.col("confidence").filter(said == code).mean()
        for code in (1, 0)
        if "confidence" in trials.frame.columns
    }
    votes = trials.frame.group_by(["item", "target", *rest], maintain_order=True).agg(
        pl.col("label", *extra).first(), **counts, **means
    )
    yes, no, silent = pl.col(":yes"), pl.col(":no"), pl.col(":silent")
    most = (
        pl.when(yes + no + silent == 0).then(None)
        .when((yes > no) & (yes > silent)).then(1)
        .when((no > yes) & (no > silent)).then(0)
        .otherwise(ABSTAIN)
        .cast(pl.Int8)
    )  # fmt: skip
    frame = votes.with_columns(decision=most)
    if means:
        stated = pl.when(pl.col("decision") == 1).then(":c1").when(pl.col("decision") == 0).then(":c0")
        frame = frame.with_columns(confidence=stated)
    header = replace(
        head, runs=tuple(rest), slices=tuple(extra), numbers=(), choices=(*head.choices, f"majority({column})")
    )
    return Trials.from_frame(frame.drop(*counts, *means), header)
