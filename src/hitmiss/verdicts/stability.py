"""Repeated runs: how much variation comes from the run, how much from the items, and which verdicts flip.

Run noise is the standard deviation of a number over the trials of a run; item noise is its interval over the items,
which are resampled with all their trials. The two are never mixed, and repeated rows of an item never count as new
items. A mean over repetitions is a mean over items: where some trials of a run lack items, every item counts the same,
however often it was asked (see `completed`), because a mean over trials of unequal size would follow the smallest one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core.columns import user_name
from hitmiss.core.completeness import MOST_ROUNDS, ROW, in_rounds, lacks_items
from hitmiss.core.design import Design, Grouping
from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Remark, joined
from hitmiss.core.kinds import ABSTAIN, FAILED
from hitmiss.core.results import Estimate, Results, merged
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.engine.measure import measure_design, measure_share
from hitmiss.engine.natural_unit import with_natural_unit
from hitmiss.engine.signature import digest_of, read_signature, render

TRIAL: Final = "trial"
USUAL: Final = SamplingPlan(1000)
"""How intervals of verdicts are made unless the caller says otherwise."""
FLIPS: Final = ("flip_rate", "hard_flip_rate")
Cell = tuple[tuple[str, str], ...]
"""A run, as pairs of column and value."""


def is_repeated(trials: Trials, column: str = TRIAL) -> bool:
    """Return whether some run was made more than once."""
    return column in trials.header.runs and trials.frame[column].n_unique() > 1


def pooled(trials: Trials, column: str = TRIAL) -> Trials:
    """Return the trials of all repetitions as one run; the repetition becomes a slice."""
    head = trials.header
    if column not in head.runs:
        return trials
    return trials.retitle(runs=tuple(r for r in head.runs if r != column), slices=(*head.slices, column))


def uneven(trials: Trials, column: str = TRIAL) -> dict[Cell, int]:
    """Return the runs in which some repetition lacks items that another has, each with its number of questions.

    >>> from hitmiss.core.trials import Header
    >>> t = Trials.of([1, 0, 1], item=list("aba"), decision=[1, 0, 0], trial=list("001"), header=Header(runs=("trial",)))
    >>> uneven(t)
    {(): 2}
    """
    found: dict[Cell, int] = {}
    for run, own in _by_run(trials, column):
        if lacks_items(own, [column]):
            found[run] = own.select("item", "target").n_unique()
    return found


def _by_run(trials: Trials, column: str) -> list[tuple[Cell, pl.DataFrame]]:
    """Return the rows of each run, with all its repetitions."""
    names = [name for name in trials.header.runs if name != column]
    if not names:
        return [((), trials.frame)]
    parts = trials.frame.group_by(names, maintain_order=True)
    return [(tuple(zip(map(user_name, names), map(str, key), strict=True)), own) for key, own in parts]


def completed(trials: Trials, column: str = TRIAL) -> tuple[Trials, bool]:
    """Return the runs whose repetitions lack items, in rounds that have all of them (see `core.completeness.in_rounds`).

    The second value says whether all answers of an item count alike exactly.
    """
    made = [in_rounds(own, [column]) for _, own in _by_run(trials, column) if lacks_items(own, [column])]
    frame = pl.concat([table for table, _ in made]).drop(ROW)
    return replace(trials, frame=frame), all(is_exact for _, is_exact in made)


def measure_repeated(
    trials: Trials,
    design: Design,
    remarks: Sequence[str] = (),
    column: str = TRIAL,
    *,
    narrow: Collection[str] = (),
) -> Results:
    """Measure each repetition; then `mean` over them with the interval over items, and `sd` over them.

    Slices cover all repetitions together, with intervals over items, or over a unit of the design that is wider than
    items (speakers, sources), resampled with all their items and repetitions. `narrow`: see `measure_design`.
    """
    if not is_repeated(trials, column):
        raise UsageError.of("nothing-repeated", column=column)
    design = with_natural_unit(design, trials)
    each = measure_design(trials, replace(design, by=()), remarks)
    over = replace(design, unit=design.units or ("item",))
    wide = replace(over, by=((column,),))
    together = measure_design(pooled(trials, column), wide)
    lacking = uneven(trials, column)
    means = [
        replace(e, average="mean", slice={}, note=e.note or f"mean over the values of {column}")
        for e in together
        if e.average == "macro" and tuple(e.run.items()) not in lacking
    ]
    means += _over_items(trials, wide, lacking, column) if lacking else []
    means += _made_once(each, means, column)
    sliced = _sliced(trials, over, lacking, column, narrow) if design.by else Results(())
    rows = (*each, *means, *_deviations(each, column, lacking), *(e for e in sliced if e.slice))
    warnings = merged(each.warnings, sliced.warnings)
    return replace(each, estimates=rows, warnings=warnings, signature=_signed(each, together, rows, design.by))


def _over_items(trials: Trials, design: Design, lacking: Mapping[Cell, int], column: str) -> list[Estimate]:
    """Return the means of the runs whose repetitions lack items: over items, each by its own repetitions."""
    rounds, is_exact = completed(trials, column)
    sizes = {run: _size(trials.where(**dict(run)), column, questions) for run, questions in lacking.items()}
    near = "" if is_exact else f"; the answers of an item count alike to within 1 in {MOST_ROUNDS}"
    found = []
    for e in measure_design(pooled(rounds, column), design):
        run = tuple(e.run.items())
        if e.average == "macro" and run in sizes:
            n, positive, of = sizes[run]
            note = f"mean over items; incomplete: {n:,} of {of:,} trials{near}"
            row = replace(e, average="mean", slice={}, n=n, n_positive=positive)
            found.append(replace(row, note=joined(note, e.note)))
    return found


def _sliced(
    trials: Trials, design: Design, lacking: Mapping[Cell, int], column: str, narrow: Collection[str]
) -> Results:
    """Return the numbers over all repetitions together; where repetitions lack items, every item counts the same."""
    if not lacking:
        return measure_design(pooled(trials, column), design, narrow=narrow)
    others = [own for run, own in _by_run(trials, column) if run not in lacking]
    frame = pl.concat([*others, completed(trials, column)[0].frame])
    found = measure_design(pooled(replace(trials, frame=frame, unique_over=None), column), design, narrow=narrow)
    return replace(found, estimates=tuple(_counted(e, trials) for e in found if e.slice))


def _counted(e: Estimate, trials: Trials) -> Estimate:
    """Return an estimate of a completed run with the number of trials that there are."""
    cells = {name: value for name, value in e.slice.items() if e.average in (None, "worst") and value != "*"}
    own = trials.where(**e.run, **cells)
    return replace(e, n=len(own), n_positive=own.n_positive, of=None)


def _size(own: Trials, column: str, questions: int) -> tuple[int, int, int]:
    """Return how many trials a run has, how many of them are positive, and how many there should be."""
    return len(own), own.n_positive, questions * own.frame[column].n_unique()


def _made_once(each: Results, means: list[Estimate], column: str) -> list[Estimate]:
    """Return the numbers of runs with one repetition as the mean over that one, so that tables show every run."""
    have = {(e.metric, *sorted(e.run.items())) for e in means}
    rows = [
        replace(e, run={k: v for k, v in e.run.items() if k != column}, average="mean", note=e.note or f"one {column}")
        for e in each
        if e.average is None and not e.slice
    ]
    return [row for row in rows if (row.metric, *sorted(row.run.items())) not in have]


def _deviations(each: Results, column: str, lacking: Mapping[Cell, int]) -> list[Estimate]:
    """Return the sample standard deviation over the repetitions of each run; undefined for a single repetition.

    Repetitions that lack items are left out: their numbers differ because their items do.
    """
    cells: dict[tuple[object, ...], list[Estimate]] = {}
    for e in each:
        rest = {k: v for k, v in e.run.items() if k != column}
        cells.setdefault((e.metric, *rest.items()), []).append(replace(e, run=rest))
    return [_deviation(own, lacking.get(tuple(own[0].run.items()))) for own in cells.values()]


def _deviation(own: list[Estimate], questions: int | None) -> Estimate:
    whole = own if questions is None else [e for e in own if e.n == questions]
    values = [e.value for e in whole if e.value is not None]
    left_out = len(own) - len(whole)
    note = Remark.of("over-trials/some" if left_out else "over-trials", n_values=len(values), left_out=left_out)
    row = replace(own[0], average="sd", low=None, high=None, method=None, of=None, note=note)
    return replace(row, value=float(np.std(values, ddof=1)) if len(values) > 1 else None)


def _signed(each: Results, together: Results, rows: tuple[Estimate, ...], by: Sequence[Grouping]) -> str:
    parts = {k: v for k, v in read_signature(together.signature).items() if k not in ("out", "by")}
    groupings = ",".join("*".join(g) for g in by)
    there = read_signature(each.signature).get("complete", "none")
    return render({**parts, "complete": there, "by": groupings or "none", "repeats": TRIAL, "out": digest_of(rows)})


def flips(trials: Trials, plan: SamplingPlan = USUAL, column: str = TRIAL) -> Results:
    """Return, per run, the share of items whose verdict differs between trials, and of those given both classes.

    A failed call counts as a separate verdict. Items asked once are left out. Intervals are Wilson's over items, or
    bootstrap intervals over a wider unit of the plan (over items, if each is asked about several targets).

    >>> from hitmiss.core.trials import Header
    >>> t = Trials.of([1, 1, 0, 0], item=list("aabb"), decision=[1, 0, 0, 0], trial=["1", "2", "1", "2"],
    ...               header=Header(runs=("trial",)))
    >>> [(e.metric, e.value) for e in flips(t)]
    [('flip_rate', 0.5), ('hard_flip_rate', 0.5)]
    """
    head = trials.header
    rest = tuple(r for r in head.runs if r != column)
    said = pl.col("decision").fill_null(FAILED)
    units = tuple(name for name in plan.unit if name != "item") or (("item",) if trials.has_targets else ())
    kept = tuple(dict.fromkeys(trials.own(name) for name in units if name != "item"))
    items = trials.frame.group_by(["item", "target", *rest], maintain_order=True).agg(
        pl.col("label", *kept).first(),
        pl.len().alias(":asked"),
        flip_rate=(said.n_unique() > 1).cast(pl.Float64),
        hard_flip_rate=((said == 1).any() & (said == 0).any()).cast(pl.Float64),
    )
    once = replace(head, runs=rest, slices=kept, numbers=FLIPS, notes=(), choices=())
    asked = Trials.from_frame(items.filter(pl.col(":asked") > 1).drop(":asked"), once)
    plan = replace(plan, unit=units)
    rows = [_explained(e, plan) for name in FLIPS for e in measure_share(asked, name, plan)] if len(asked) else []
    return Results(tuple(sorted(rows, key=lambda e: tuple(e.run.values()))))


def _explained(e: Estimate, plan: SamplingPlan) -> Estimate:
    """Return a number without an interval together with what to do about it."""
    asked = e.low is not None or plan.bootstrap or not plan.unit
    return e if asked else replace(e, note=Remark.of("no-interval/undrawn"))


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
