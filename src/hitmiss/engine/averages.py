"""Estimates made of slices: the macro average, the worst slice, pairs within slices, and the gap between domains."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hitmiss.core.design import Grouping
from hitmiss.core.errors import UsageError
from hitmiss.core.progress import each
from hitmiss.core.protocol import Gap
from hitmiss.core.results import (
    Estimate,
)
from hitmiss.engine.columns import Sample
from hitmiss.engine.measurement import Measurement, blank, outside, weighed, why_rare, with_interval
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.engine.samples import samples_of_slices
from hitmiss.stats import intervals, students_t
from hitmiss.stats.forms.crossing import Crossing


def by_slices(work: Measurement, whole: Sample, grouping: Grouping, warnings: list[str]) -> list[Estimate]:
    """Return every figure of every slice, then their averages; a grouping with a single slice is left out."""
    samples = samples_of_slices(whole, grouping)
    if len(samples) == 1:
        value = ", ".join(f"{k}={v}" for k, v in samples[0].slice.items())
        warnings.append(f"a table by {' × '.join(grouping)} is trivial here: every trial has {value}")
        return []
    told = each(samples, f"by {' × '.join(grouping)}", [sample.n for sample in samples])
    rows = [e for sample in told for e in _slice_rows(work, sample)]
    warnings += _one_sided(work, grouping, samples, rows)
    size = len(work.questions)
    averages = []
    for i, question in enumerate(work.questions):
        cells = rows[i::size]
        averages += [_macro(work, whole, grouping, i, question, samples, cells), *_worst(work, i, samples, cells)]
        if work.protocol.within and question.form.is_area:
            averages.append(_within(work, whole, grouping, i, question, samples, cells))
    return rows + averages


def _slice_rows(work: Measurement, sample: Sample) -> list[Estimate]:
    """Return every figure of a slice; averages need the draws of all slices together, whatever its own are."""
    own, rows = work.of(sample), work.estimates(sample)
    return rows if own is work else own.estimates(sample)


def _one_sided(work: Measurement, grouping: Grouping, samples: list[Sample], rows: list[Estimate]) -> list[str]:
    """Say what to do if figures are undefined because every slice has only one class, as with a column of attacks."""
    held = [0 < sample.n_positive < sample.n for sample in samples]
    if any(held) or all(e.value is not None for e in rows):
        return []
    head = work.columns.trials.header
    kinds = {"negative": head.negative, "positive": head.positive}
    many = "negative" if 2 * sum(s.n_positive == 0 for s in samples) >= len(samples) else "positive"
    other = head.positive if many == "negative" else head.negative
    name = grouping[0] if len(grouping) == 1 else "COLUMN"
    return [
        f"by {' × '.join(grouping)}: every slice holds one class only, so what compares the classes is undefined; "
        f"--{many}-only {name} sets each slice of {kinds[many]} trials against all {other} trials"
    ]


def _macro(
    work: Measurement,
    whole: Sample,
    grouping: Grouping,
    i: int,
    question: PreparedMetric,
    samples: list[Sample],
    cells: list[Estimate],
) -> Estimate:
    """Return the simple mean over the slices where the figure is defined, with the mean of their replicates."""
    defined = [(s, e) for s, e in zip(samples, cells, strict=True) if e.value is not None]
    everywhere = dict.fromkeys(grouping, "*")
    row = replace(weighed(blank(question, whole.n, whole.n_positive, whole.run, everywhere), whole), average="macro")
    if not defined:
        return replace(row, note="undefined: in no slice defined")
    values = [e.value for _, e in defined if e.value is not None]
    note = None if len(defined) == len(cells) else f"over {len(defined)} of {len(cells)} slices"
    row = replace(row, value=float(np.mean(values)), note=note)
    if not work.draws.plan.bootstrap:
        return row
    bound, is_positive = work.columns.one_class.of(grouping)
    if not work.draws.plan.unit and bound:
        head = work.columns.trials.header
        other = head.negative if is_positive else head.positive
        shared = f"no interval: these slices share their {other} trials; resample a --unit to get one"
        return replace(row, note="; ".join(filter(None, (note, shared))))
    if not work.draws.plan.unit and whole.is_repeated and "target" in grouping:
        shared = "no interval: these slices share their items; resample whole items (unit=item)"
        return replace(row, note="; ".join(filter(None, (note, shared))))
    drawn = np.mean([work.drawn(s, i) for s, _ in defined], axis=0)
    centre = float(np.mean([work.corrected(s, i) for s, _ in defined]))
    without = [left for s, _ in defined if (left := work.left(s, i)) is not None]
    left = np.mean(without, axis=0) if without else None
    return with_interval(row, drawn, work, [whole], question, centre, left)


def _within(
    work: Measurement,
    whole: Sample,
    grouping: Grouping,
    i: int,
    question: PreparedMetric,
    samples: list[Sample],
    cells: list[Estimate],
) -> Estimate:
    """Return the AUC over pairs within one slice: the mean over slices, weighted by their numbers of pairs."""
    defined = [(s, e.value) for s, e in zip(samples, cells, strict=True) if e.value is not None]
    row = replace(blank(question, whole.n, whole.n_positive, whole.run, dict.fromkeys(grouping, "*")), average="within")
    row = weighed(row, whole)
    if not defined:
        return replace(row, note="undefined: in no slice defined")
    pairs = np.array([s.size_of_pairs for s, _ in defined], dtype=np.float64)
    note = None if len(defined) == len(cells) else f"over {len(defined)} of {len(cells)} slices"
    row = replace(row, value=float(pairs @ [v for _, v in defined] / pairs.sum()), note=note)
    if not work.draws.plan.bootstrap:
        return row
    drawn = pairs @ np.array([work.replicates[s.name][i] for s, _ in defined]) / pairs.sum()
    return with_interval(row, drawn, work, [whole], question, float(row.value or 0.0))


def _worst(work: Measurement, i: int, samples: list[Sample], cells: list[Estimate]) -> list[Estimate]:
    """Return the slice with the worst figure, with an interval of its true figure that allows for having picked it.

    The end on the side of worse figures is that of the slice's own interval; see `intervals.tail_of_worst` for the other.
    """
    defined = [(s, e) for s, e in zip(samples, cells, strict=True) if e.value is not None]
    if not defined:
        return []
    level, sign = work.draws.plan.level, 1.0 if work.questions[i].metric.best == "low" else -1.0
    value, *ends = (sign * np.array([getattr(e, end) for _, e in defined], float) for end in ("value", "low", "high"))
    sample, worst = defined[int(np.argmax(value))]
    said = f"worst of {len(defined)}"
    row = replace(worst, average="worst", note="; ".join(filter(None, (said, worst.note))))
    if worst.low is None or len(defined) == 1:
        return [row]
    degrees = students_t.MANY if worst.units_effective is None else max(worst.units_effective - 1.0, 1.0)
    low, high = ends if sign > 0.0 else reversed(ends)
    tail, several = intervals.tail_of_worst(value, low, high, level, degrees)
    said += f"; {several} of them may be the worst, and the interval allows for that" if several > 1 else ", clearly"
    if several == 1:  # it keeps its own interval
        return [replace(row, note=said)]
    found = work.of(sample).at_level(i, sample, 1.0 - 2.0 * tail)
    if found.low is None:
        return [replace(row, low=None, high=None, method=None, note="; ".join(filter(None, (said, found.note))))]
    better = {"low": found.low} if sign > 0.0 else {"high": found.high}
    return [replace(row, **better, method=found.method, note=said)]


def gap_rows(work: Measurement, whole: Sample, gap: Gap) -> list[Estimate]:
    """Return figure(out) − figure(in) for every question."""
    codes, values = work.columns.asked_codes(gap.column)
    unknown = [v for v in (*gap.inside, *gap.outside) if v not in values]
    if unknown:
        raise UsageError(f"no {gap.column} is {unknown[0]!r}; there are {', '.join(values)}", code="unknown-gap-value")
    own = codes[whole.rows]
    inside = {*gap.inside}
    outside = {*gap.outside} or {values[code] for code in np.unique(own).tolist()} - inside
    # A side is named by what it holds, so that the order in which values were given changes no draw.
    sides = [
        work.columns.sample(
            whole.rows[np.isin(own, [values.index(v) for v in held])],
            whole.run,
            {gap.column: f"{name} {sorted(inside)} {sorted(outside)}"},
        )
        for name, held in (("in", inside), ("out", outside))
    ]
    pairs = [work.estimates(side) for side in sides]
    return [
        _gap_row(work, i, gap, sides, within, beyond) for i, (within, beyond) in enumerate(zip(*pairs, strict=True))
    ]


def _gap_row(work: Measurement, i: int, gap: Gap, sides: list[Sample], within: Estimate, beyond: Estimate) -> Estimate:
    row = replace(
        beyond,
        slice={gap.column: gap.label},
        average="gap",
        n=within.n + beyond.n,
        value=None,
        low=None,
        high=None,
        method=None,
    )
    row = replace(row, n_positive=within.n_positive + beyond.n_positive)
    if within.weight is not None and beyond.weight is not None:
        positive = (within.weight_positive or 0.0) + (beyond.weight_positive or 0.0)
        row = replace(row, weight=within.weight + beyond.weight, weight_positive=positive)
    if within.value is None or beyond.value is None:
        return replace(row, note=within.note or beyond.note)
    row = replace(row, value=beyond.value - within.value, note=f"{beyond.value:.4f} out, {within.value:.4f} in")
    if not work.draws.plan.bootstrap:
        return row
    first, second = (work.drawn(side, i) for side in sides)
    inner, outer = (work.corrected(side, i) for side in sides)
    plan = work.draws.plan
    ends = [e for e in (within.low, within.high, beyond.low, beyond.high) if e is not None and math.isfinite(e)]
    if plan.unit or plan.method != "auto" or len(ends) < 4:
        without = [work.left(side, i) for side in sides]
        left = None if without[0] is None or without[1] is None else without[1] - without[0]
        question, found = work.questions[i], (row, second - first, work, sides, work.questions[i], outer - inner, left)
        if not isinstance(question.form, Crossing):
            return with_interval(*found)
        # What units add to a figure that is read at a quantile does not show how skewed it is; its scale does.
        both = (inner, first), (outer, second), question.metric.range
        return with_interval(*found, lambda ends: intervals.on_both_scales(ends, *both))
    # The two sides share no trial, so each keeps its own interval, which is better than percentiles of the difference.
    # Rates of few errors change in steps, so either interval may be too short: the wider end is used.
    low, high = intervals.of_difference((inner, ends[0], ends[1]), (outer, ends[2], ends[3]))
    if not isinstance(work.questions[i].form, Crossing):
        first, second = (work.replicates[side.name][i] for side in sides)
        steps = intervals.percentile(second - first, plan.level)
        low, high = min(low, steps[0]), max(high, steps[1])
    rare = why_rare(work.questions[i], sides, high - low)
    if rare is not None:
        return replace(row, note=f"{row.note}; {rare}")
    row = replace(row, low=low, high=high, method=beyond.method if beyond.method == within.method else within.method)
    return outside(row, outer - inner)
