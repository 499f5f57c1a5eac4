"""Thresholds of a toxicity run: chosen on validation files, judged on test files, written as `best_threshold`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import polars as pl

from hitmiss.core.design import ComparisonRules, Design
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.protocol import Protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.scale import ScoreScale
from hitmiss.core.trials import Trials
from hitmiss.derive.decisions import Deciding, at_threshold
from hitmiss.derive.thresholds import SEARCHES
from hitmiss.engine.compare import compare_design
from hitmiss.engine.measure import measure_design
from hitmiss.engine.tuning import DEFAULT, Bench, Tuned, load_of, tune
from hitmiss.io.languages import files_of, without_own_outputs
from hitmiss.io.write import write_csv
from hitmiss.protocols.toxicity import Run, load_any

WRITABLE: Final = ".csv"
SMALL: Final = 1000
"""Validation sets smaller than this tune on noise more than on signal."""


@dataclass(frozen=True)
class Tuning:
    """The thresholds of every group, and the data that they were chosen on."""

    rows: tuple[Tuned, ...]
    by: Bench
    group: str
    test: Run | None
    test_paths: tuple[Path, ...]
    warnings: tuple[str, ...]
    plan: SamplingPlan | None = None


def tune_files(
    validation: Sequence[str],
    test: Sequence[str] = (),
    *,
    by: Bench | None = None,
    group: str | None = None,
    spec: ReadSpec | None = None,
    plan: SamplingPlan | None = None,
    key: str | None = None,
    test_key: str | None = None,
) -> Tuning:
    """Choose the threshold of each group on validation files, and judge it on test files if there are any.

    With a `plan`, the numbers on test data have intervals; its unit is a column of the test files. `key` and `test_key`
    are the labels of both, if their files have none.
    """
    by = by or Bench()
    how = spec or ReadSpec()
    kept, left = without_own_outputs(files_of(validation))
    kept_test, left_test = without_own_outputs(files_of(test))
    own = load_sides(kept, group, how, key=key)
    other = (
        load_sides(kept_test, group, how.changed(slices=plan.unit or None) if plan else how, whole=True, key=test_key)
        if test
        else None
    )
    if other is not None and set(own.groups) != set(other.groups):
        raise DataError.of("groups-differ", groups=tuple(own.groups), groups_2=tuple(other.groups))
    judged = other.trials if other else None
    rows = tune(own.trials, own.group, own.groups, test=judged, by=by)
    if judged is not None and plan is not None and plan.bootstrap:
        rows = [_with_intervals(r, judged.where(**{own.group: r.group}), by.metric, plan) for r in rows]
    if by.prevalence or by.volume:
        sides = own.trials if judged is None else judged
        drawn = replace(plan or SamplingPlan(), unit=plan.unit if plan and judged is not None else ())
        rows = [_with_load(r, sides.where(**{own.group: r.group}), drawn, judged is not None) for r in rows]
    paths = tuple(map(Path, kept_test))
    skipped = sorted({Path(p).name for p in (*left, *left_test)})
    said = [f"left out, as hitmiss wrote them and they are not predictions: {', '.join(skipped)}"] if skipped else []
    return Tuning(tuple(rows), by, own.group, other, paths, (*said, *_warnings(rows, own, other)), plan)


def _with_intervals(row: Tuned, test: Trials, maximize: str, plan: SamplingPlan) -> Tuned:
    """Add the interval of the number on test data and of its gain over 0.5, both from draws of trials or units."""
    at = [at_threshold(test, t) for t in (DEFAULT, row.chosen.threshold)]
    design = Design.by_plan(plan, [maximize], protocol=Protocol(zero_undefined=True))
    whole = measure_design(at[1], design).one(maximize)
    differences = compare_design(at[0], at[1], replace(design, contest=ComparisonRules(test="bootstrap", force=True)))
    (gain,) = [d for d in differences if not d.slice and d.average is None]
    note = "; ".join(dict.fromkeys(filter(None, (whole.note, gain.note)))) or None
    return replace(
        row,
        test_low=whole.low,
        test_high=whole.high,
        gain_low=gain.low,
        gain_high=gain.high,
        units=whole.units,
        note=note,
    )


def _with_load(row: Tuned, trials: Trials, plan: SamplingPlan, is_judged: bool) -> Tuned:
    """Add what the threshold means in use."""
    assert row.use is not None
    return replace(row, load=load_of(at_threshold(trials, row.chosen.threshold), row.use, plan, is_judged))


def load_sides(
    paths: Sequence[str], group: str | None, spec: ReadSpec, *, whole: bool = False, key: str | None = None
) -> Run:
    """Load files of any shape that `load_any` reads; decisions are made at 0.5."""
    if not paths:
        raise UsageError.of("no-predictions")
    return load_any(paths, group, key=key, spec=spec, deciding=Deciding(given=0.5), whole=whole)


def _warnings(rows: Sequence[Tuned], own: Run, other: Run | None) -> list[str]:
    found = [*own.trials.header.notes, *(other.trials.header.notes if other else ())]
    if other is not None:
        seen = {s.sha256: s.name for s in own.trials.header.sources}
        same = [s.name for s in other.trials.header.sources if s.sha256 in seen]
        if same:
            found.append(
                f"{', '.join(same)}: the test file is the validation file, so its numbers at this threshold are optimistic"
            )
    small = [row.group for row in rows if row.n < SMALL and row.chosen.search in SEARCHES]
    if small:
        found.append(
            f"fewer than {SMALL:,} validation rows: {', '.join(small)}; a threshold tuned on so few may lose on test"
        )
    worse = [
        r.group
        for r in rows
        if r.chosen.search in SEARCHES
        and r.test is not None
        and r.test_at_default is not None
        and r.test < r.test_at_default
    ]
    if worse:
        shown = [r.group for r in rows if r.gain_high is not None and r.gain_high < 0.0]
        sure = f"; shown by the interval of the difference: {', '.join(shown)}" if shown else ""
        found.append(f"on test 0.5 would have been better than the tuned threshold: {', '.join(worse)}{sure}")
    full = [r.group for r in rows if r.load and r.load.queue and r.use and r.use.capacity is not None
            and r.load.queue.high is not None and r.load.queue.high > r.use.capacity]  # fmt: skip
    if full:
        found.append(f"more than the capacity is not ruled out: {', '.join(full)}; more non-toxic texts would show it")
    return list(dict.fromkeys(found))


def write_thresholds(tuning: Tuning, folder: Path | None = None) -> dict[Path, str]:
    """Write the thresholds to the test files (or copies in `folder`) as `best_threshold`; return what was done to each.

    A file with decisions gets new ones, because decisions take precedence over thresholds; other cells are unchanged.
    """
    assert tuning.test is not None  # the command line checks for test files first
    run = tuning.test
    if any(choice.startswith(("where:", "dedupe")) for choice in run.predictions.choices):
        raise UsageError.of("partial-file")
    if run.predictions.is_reshaped:
        raise UsageError.of("thresholds-of-labels")
    thresholds = {row.group: row.chosen.threshold for row in tuning.rows}
    written: dict[Path, str] = {}
    for at, path in enumerate(tuning.test_paths):
        if path.suffix != WRITABLE:
            raise UsageError.of("not-csv", path_name=path.name)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        rows = run.predictions.frame.filter(pl.col("file") == at)
        raw = run.predictions.raw[at]
        if rows.height != raw.height:
            raise UsageError.of("lossy-write", path_name=path.name)
        frame, note = _with_threshold(raw, rows, thresholds, run.predictions.titles[at], run.measured.header.scale)
        target = folder / path.name if folder is not None else path
        write_csv(frame, target, replaces_input=folder is None)
        written[target] = note
    return written


def _with_threshold(
    raw: pl.DataFrame,
    rows: pl.DataFrame,
    thresholds: Mapping[str, float],
    titles: Mapping[str, str],
    scale: ScoreScale,
) -> tuple[pl.DataFrame, str]:
    bound = rows["group"].replace_strict(thresholds, return_dtype=pl.Float64)
    changes = [bound.alias(titles.get("threshold", "best_threshold"))]
    note = ""
    if "decision" in titles:
        changes.append(scale.accepts(rows["score"], bound).cast(pl.Int8).alias(titles["decision"]))
        note = f", {titles['decision']} decided anew"
    return raw.with_columns(*changes), note
