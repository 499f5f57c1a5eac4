"""Measure what a manipulation does to a detector at a threshold that was frozen on clean data.

A detector in use has one threshold. The EER of manipulated data moves the threshold and hides the harm; the drift table
keeps the threshold of the clean data and shows how FAR and FRR change, and by how much each clip's score changes. Each
clip is paired with its clean version, so the drift has its own interval. Decisions are `score > threshold`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.columns import find_column, user_name
from hitmiss.core.design import Design, Drift
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.finding import Remark, has_code
from hitmiss.core.header import Threshold
from hitmiss.core.results import Estimate, Results
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.core.weights import refuse_sampling
from hitmiss.engine.measure import measure_design
from hitmiss.engine.signature import USUAL_LEVEL, signed
from hitmiss.metrics.detection import eer, eer_point
from hitmiss.metrics.drift import DRIFT_METRICS, DRIFT_TABLE, DRIFTS
from hitmiss.metrics.usual import ERROR

CLEAN_NAMES: Final = ("clean", "NONE", "-")
CHANGED: Final = Remark.of("only-fakes-changed")
BETWEEN: Final = " × "


def equal_error(label: ArrayLike, score: ArrayLike) -> tuple[float, float]:
    """Return the EER and its threshold for decisions `score > threshold`: the highest score that is rejected there.

    If nothing is rejected, it lies a little below the lowest score. FAR and FRR at it average to the EER, with or
    without ties.

    >>> equal_error([1, 1, 0, 0], [0.9, 0.6, 0.4, 0.1])
    (0.0, 0.4)
    """
    tally = Tally.of(label, score)
    if not tally.has_both_classes:
        raise DataError.of("one-class", what="an equal error rate")
    at = eer_point(tally)
    lowest = float(tally.score[0])
    below = min(lowest - 0.001, float(np.nextafter(lowest, -np.inf)))
    return eer(label, score), float(tally.score[at - 1]) if at else below


def drift(
    trials: Trials,
    by: str = "manipulation",
    *,
    clean: str | None = None,
    pair_by: str | None = None,
    threshold: float | None = None,
    bootstrap: int = 1000,
    unit: str | None = None,
    seed: int = 0,
    level: float = 0.95,
) -> Results:
    """Measure FAR, FRR, their drift from clean, and the shift of scores, for each condition at one threshold.

    Parameters
    ----------
    trials
        Scores of clips under several conditions, including the clean ones.
    by
        The column of the conditions, or several columns (`codec,codec_q`).
    clean
        The value of the unchanged clips (by default one of clean, NONE, -).
    pair_by
        The column that says which clips belong together (by default `source`, else `codec_seed`).
    threshold
        A threshold that was chosen elsewhere; None freezes the EER threshold of the clean clips.
    bootstrap
        The number of bootstrap replicates.
    unit
        The column of the units that are resampled (by default the source clips).
    seed
        The seed of the bootstrap.
    level
        The confidence level of the intervals.

    Returns
    -------
    Results
        One row per condition and number.

    Raises
    ------
    DataError
        If no clip of a condition has a clean partner, or a clip occurs more than once.

    >>> import polars as pl
    >>> from hitmiss.io import read
    >>> rows = [(f"{i} {m}", i, m, "real" if i < 4 else "fake", (i < 4) * 2.0 + i / 9 - (m == "noise") * (i < 4) * 2.0)
    ...         for m in ("clean", "noise") for i in range(8)]
    >>> names = ["id", "source", "manipulation", "label", "score"]
    >>> found = drift(read(pl.DataFrame(rows, schema=names, orient="row"), positive="real"), bootstrap=0)
    >>> found.one("frr", manipulation="clean").value, found.one("frr", manipulation="noise").value
    (0.0, 1.0)
    """
    asked = Design.of(by=by, unit=unit, bootstrap=bootstrap, seed=seed, level=level, threshold=threshold)
    return drift_of(trials, replace(asked, gap="none", drift=Drift(clean, pair_by)))


def drift_of(trials: Trials, asked: Design) -> Results:
    """Measure a drift table for a design: ordinary metrics, by condition, of trials paired with clean ones."""
    return drift_parts(trials, asked, [trials])


def drift_parts(trials: Trials, asked: Design, parts: Iterable[Trials]) -> Results:
    """Measure a drift table part by part, for clips that do not fit into memory.

    `trials` are all clips, kept or counted. Each part holds some of the conditions and all clean clips, whose units
    are those that are drawn; so it does not matter how the conditions are cut.
    """
    refuse_sampling(trials, "a drift table")
    how, bootstrap, seed, level = asked.drift or Drift(), asked.bootstrap, asked.seed, asked.level
    rows: list[Estimate] = []
    notes: list[str] = []
    frozen: Threshold | None = None
    for given in parts:
        part, by = _joined(given, ",".join(asked.by[0] if asked.by else ("manipulation",)))
        base = _base(part, by, how.clean)
        linked = how.pair_by or next((c for c in ("source", "codec_seed") if c in part.frame.columns), "item")
        paired = beside_clean(part, by, clean=base, pair_by=linked, threshold=asked.threshold)
        frozen, unit = paired.header.threshold, asked.units if asked.unit else (linked,)
        plan = {"bootstrap": bootstrap, "seed": seed, "level": level}
        design = Design.of(DRIFT_METRICS, by=[(user_name(by),)], unit=unit, gap=False, **plan)
        own = _arranged(measure_design(paired, design), paired, by, base)
        rows += [e for e in own if e.slice[user_name(by)] != base] if rows else own
        notes += [note for note in paired.header.notes if note not in given.header.notes]
    if frozen is None:
        raise DataError.of("no-trials")
    sign = "<" if trials.header.scale.is_reversed else ">"
    told = f"decisions: score {sign} {frozen.value:.6g}, a threshold {frozen.origin}"
    made = Results(tuple(rows), warnings=(told, *_fakes_only(rows), *notes), behind=trials)
    made = replace(made, reading=trials.header.reading, design=asked)
    over = f"{bootstrap},unit={'*'.join(unit)},auto,{level:g},seed={seed}" if bootstrap else "none"
    named = ",".join("*".join(grouping) for grouping in asked.by)
    signature = signed(
        made,
        trials.retitle(threshold=frozen),
        drift=f"clean={base},linked={linked}",
        by=named,
        boot=over,
        level="none" if bootstrap or level == USUAL_LEVEL else f"{level:g}",
    )
    return replace(made, signature=signature)


def clean_rows(trials: Trials, asked: Design) -> pl.Expr:
    """Return the condition that holds for the rows of clean clips, by the columns of the conditions."""
    names = asked.by[0] if asked.by else ("manipulation",)
    joined, by = _joined(trials, ",".join(names))
    base = _base(joined, by, asked.drift.clean if asked.drift else None)
    first = joined.frame.filter(pl.col(by) == base).row(0, named=True)
    return pl.all_horizontal(pl.col(name) == first[trials.own(name)] for name in names)


def beside_clean(
    trials: Trials,
    by: str = "manipulation",
    *,
    clean: str | None = None,
    pair_by: str = "source",
    threshold: float | None = None,
) -> Trials:
    """Decide the trials at one threshold, and add to each the detector's answer for the same clip without changes.

    Parameters
    ----------
    trials
            Scores of clips under several conditions, including the unchanged ones.
    by
        The column of the conditions.
    clean
            The value of the unchanged clips (by default one of clean, NONE, -).
    pair_by
        The column that says which clips belong together.
    threshold
        Accept `score > threshold` (`<` in a file whose higher scores mean the other class); None freezes the threshold
        of the clean clips' own EER.

    Returns
    -------
    Trials
        With the columns `decision`, `decision_clean` and `score_clean`, so that `far_drift`, `frr_drift`, `shift_fake`
        and `shift_real` can be measured, sliced and compared like any metric. Clips without a partner are left out, and
        a note in the header says how many.

    Raises
    ------
    DataError
            If no clip of a condition has a clean partner, or a clip occurs more than once.
    """
    linked = find_column(pair_by, trials.frame.columns)
    if linked is None:
        raise UnknownName("column that links copies", pair_by, map(user_name, ("item", *trials.header.slices)))
    base, pair_by = _base(trials, by, clean), linked
    start = _scores_by(trials.where(**{by: base}), pair_by, base)
    frozen = _frozen(start, threshold)
    parts, alone = [], []
    for value in trials.column(by).unique(maintain_order=True).to_list():
        now = _scores_by(trials.where(**{by: value}), pair_by, value)
        here, there, missing = _partners(start, now, pair_by, value)
        parts.append(now.frame[there].with_columns(score_clean=pl.Series(start.score[here])))
        alone += [missing] if missing else []
    limit = trials.header.scale.turned(frozen.value)
    accepted, accepted_clean = pl.col("score") > limit, pl.col("score_clean") > limit
    frame = pl.concat(parts).with_columns(
        decision=accepted.cast(pl.Int8), decision_clean=accepted_clean.cast(pl.Float64)
    )
    head = trials.header
    numbers = (*head.numbers, *(n for n in ("decision_clean", "score_clean") if n not in head.numbers))
    return Trials(frame, replace(head, numbers=numbers, threshold=frozen, notes=(*head.notes, *alone)))


def _arranged(measured: Results, paired: Trials, by: str, base: str) -> list[Estimate]:
    """Return one row per condition and number, clean first without drifts; each number on the clips of its class."""
    name = user_name(by)
    values = [base, *(v for v in paired.column(by).unique(maintain_order=True).to_list() if v != base)]
    at = {(e.slice[name], e.metric): e for e in measured if name in e.slice and e.average is None}
    if len(values) == 1:  # a table by a single condition is trivial, and not made
        at = {(base, e.metric): replace(e, slice={name: base}) for e in measured if not e.slice}
    fakes_only = _changed_fakes_only(paired, by)
    rows = []
    for value in values:
        for metric, (title, side) in DRIFT_TABLE.items():
            if value == base and metric in DRIFTS:
                continue
            e = replace(at[value, metric], metric=title)
            if side is not None:
                n = e.n_positive if side else e.n - e.n_positive
                e = replace(e, n=n, n_positive=n if side else 0)
            rows.append(replace(e, note=CHANGED) if side is None and value in fakes_only else e)
    return rows


def _changed_fakes_only(paired: Trials, by: str) -> set[str]:
    """Return the conditions in which every fake clip may have changed and no real clip has."""
    moved = pl.col("score") != pl.col("score_clean")
    is_real = pl.col("label") == 1
    table = paired.frame.group_by(by).agg(real=(moved & is_real).any(), fake=(moved & ~is_real).any())
    return {row[by] for row in table.iter_rows(named=True) if row["fake"] and not row["real"]}


def _joined(trials: Trials, by: str) -> tuple[Trials, str]:
    """Join several columns, `codec,codec_q`, into one: codec × codec_q."""
    names = [name.strip() for name in by.split(",")]
    if len(names) == 1:
        return trials, trials.own(by)
    parts = [trials.column(trials.own(name)).to_list() for name in names]
    together = [values[0] if len(set(values)) == 1 else BETWEEN.join(values) for values in zip(*parts, strict=True)]
    name = BETWEEN.join(names)
    return Trials(trials.frame.with_columns(pl.Series(name, together)), trials.header), name


def _base(trials: Trials, by: str, clean: str | None) -> str:
    column = trials.column(by)
    if column.dtype != pl.String:
        raise UsageError.of("not-a-slice/condition", by=by)
    values = column.unique().to_list()
    if clean is not None:
        if clean not in values:
            raise UnknownName(f"value of {by}", clean, values)
        return clean
    found = [name for name in CLEAN_NAMES if name in values]
    if not found:
        raise UsageError.of("no-clean", by=by, values_2=tuple(sorted(values)))
    return found[0]


def _frozen(clean: Trials, threshold: float | None) -> Threshold:
    """Return the given threshold, or the clean clips' EER threshold as in `compute_eer`: the same rule everywhere."""
    if threshold is not None:
        return Threshold(threshold, "that was given")
    last = equal_error(clean.label, clean.score)[1]
    return Threshold(clean.header.scale.turned(last), "at the EER of these clean clips, so their own row is optimistic")


def _scores_by(trials: Trials, linked: str, value: str) -> Trials:
    """Return the trials in the order of the pairing column; each clip must occur once."""
    ordered = Trials(trials.frame.sort(linked), trials.header)
    if ordered.frame[linked].n_unique() != len(ordered):
        raise DataError.of("repeated-clip", value=value, linked=linked)
    return ordered


def _partners(
    start: Trials, now: Trials, linked: str, value: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], str | None]:
    """Return the positions of clips that have both a clean and a changed score, and a note on those with only one."""
    before, after = start.frame[linked].to_numpy(), now.frame[linked].to_numpy()
    common, here, there = np.intersect1d(before, after, assume_unique=True, return_indices=True)
    if not len(common):
        raise DataError.of("no-partners", value=value, n_after=len(after), linked=linked)
    wrong = start.label[here] != now.label[there]
    if wrong.any():
        raise DataError.of("partners-disagree", value=value, wrong=int(wrong.sum()), common=str(common[wrong][0]))
    lone = (len(before) - len(common), len(after) - len(common))
    if not any(lone):
        return here, there, None
    said = f"{value}: {lone[0]:,} of {len(before):,} clean clips have no score here"
    said += f" and {lone[1]:,} clips here have no clean score" if lone[1] else ""
    return here, there, f"{said}; the row is over the {len(common):,} that have both"


def _fakes_only(rows: Sequence[Estimate]) -> list[str]:
    marked = sum(has_code(e.note, CHANGED.code) for e in rows)
    return [f"† {marked} of {sum(e.metric == ERROR for e in rows) - 1} conditions: {CHANGED}"] if marked else []
