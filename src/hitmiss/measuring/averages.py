"""Figures made of slices: the macro average, the worst slice, pairs within slices, and the gap between domains."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hitmiss.design import Gap, Grouping
from hitmiss.errors import UsageError
from hitmiss.measuring.asking import Work, blank, with_interval
from hitmiss.measuring.grouping import Sample, samples_of_slices
from hitmiss.measuring.uncertainty import Question
from hitmiss.progress import each
from hitmiss.results import Estimate


def by_slices(work: Work, whole: Sample, grouping: Grouping, warnings: list[str]) -> list[Estimate]:
    """Every figure of every slice, then their averages; a grouping with one slice is called trivial and left out."""
    samples = samples_of_slices(whole, grouping)
    if len(samples) == 1:
        value = ", ".join(f"{k}={v}" for k, v in samples[0].slice.items())
        warnings.append(f"a table by {' × '.join(grouping)} is trivial here: every trial has {value}")
        return []
    told = each(samples, f"by {' × '.join(grouping)}", [sample.n for sample in samples])
    rows = [e for sample in told for e in work.estimates(sample)]
    warnings += _one_sided(work, grouping, samples, rows)
    size = len(work.questions)
    averages = []
    for i, question in enumerate(work.questions):
        cells = rows[i::size]
        averages += [_macro(work, whole, grouping, i, question, samples, cells), *_worst(work, i, samples, cells)]
        if work.protocol.within and question.form.is_area:
            averages.append(_within(work, whole, grouping, i, question, samples, cells))
    return rows + averages


def _one_sided(work: Work, grouping: Grouping, samples: list[Sample], rows: list[Estimate]) -> list[str]:
    """What to do where figures are undefined since every slice holds one class only, as with a column of attacks."""
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
    work: Work,
    whole: Sample,
    grouping: Grouping,
    i: int,
    question: Question,
    samples: list[Sample],
    cells: list[Estimate],
) -> Estimate:
    """The simple mean over the slices where the figure is defined, with the mean of their replicates."""
    defined = [(s, e) for s, e in zip(samples, cells, strict=True) if e.value is not None]
    everywhere = dict.fromkeys(grouping, "*")
    row = replace(blank(question, whole.n, whole.n_positive, whole.run, everywhere), average="macro")
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
        shared = f"no interval: these slices share their {other} trials; draw a --unit for one"
        return replace(row, note="; ".join(filter(None, (note, shared))))
    drawn = np.mean([work.drawn(s, i) for s, _ in defined], axis=0)
    centre = float(np.mean([work.corrected(s, i) for s, _ in defined]))
    return with_interval(row, drawn, work, [whole], question, centre)


def _within(
    work: Work,
    whole: Sample,
    grouping: Grouping,
    i: int,
    question: Question,
    samples: list[Sample],
    cells: list[Estimate],
) -> Estimate:
    """The AUC over the pairs of which both are in one slice: the mean of the slices, each by its number of pairs."""
    defined = [(s, e.value) for s, e in zip(samples, cells, strict=True) if e.value is not None]
    row = replace(blank(question, whole.n, whole.n_positive, whole.run, dict.fromkeys(grouping, "*")), average="within")
    if not defined:
        return replace(row, note="undefined: in no slice defined")
    pairs = np.array([s.n_positive * (s.n - s.n_positive) for s, _ in defined], dtype=np.float64)
    note = None if len(defined) == len(cells) else f"over {len(defined)} of {len(cells)} slices"
    row = replace(row, value=float(pairs @ [v for _, v in defined] / pairs.sum()), note=note)
    if not work.draws.plan.bootstrap or work.draws.plan.unit:
        return row
    drawn = pairs @ np.array([work.replicates[s.name][i] for s, _ in defined]) / pairs.sum()
    return with_interval(row, drawn, work, [whole], question, float(row.value or 0.0))


def _worst(work: Work, i: int, samples: list[Sample], cells: list[Estimate]) -> list[Estimate]:
    """The slice with the worst figure; its interval is one that would hold for any of them, so that picking it costs nothing.

    Of K slices each gets the level `level^(1/K)` (Šidák): all K intervals hold together, and so does that of the worst.
    """
    defined = [(s, e) for s, e in zip(samples, cells, strict=True) if e.value is not None]
    if not defined:
        return []
    pick = max if work.questions[i].metric.best == "low" else min
    sample, worst = pick(defined, key=lambda pair: pair[1].value if pair[1].value is not None else math.nan)
    row = replace(worst, average="worst", note=f"worst of {len(defined)}")
    if worst.low is None:
        return [row]
    ends = work.at_level(i, sample, work.draws.plan.level ** (1.0 / len(defined)))
    said = f"worst of {len(defined)}; the interval would hold for any of them"
    return [replace(row, low=ends.low, high=ends.high, method=ends.method, note=said)]


def gap_rows(work: Work, whole: Sample, gap: Gap) -> list[Estimate]:
    """figure(out) − figure(in) for every question."""
    codes, values = work.columns.asked_codes(gap.column)
    unknown = [v for v in (*gap.inside, *gap.outside) if v not in values]
    if unknown:
        raise UsageError(f"no {gap.column} is {unknown[0]!r}; there are {', '.join(values)}", code="unknown-gap-value")
    inside = np.isin(codes, [values.index(v) for v in gap.inside])
    outside = np.isin(codes, [values.index(v) for v in gap.outside]) if gap.outside else ~inside
    sides = [
        work.columns.sample(whole.rows[mask[whole.rows]], whole.run, {gap.column: f"{name} {gap.label}"})
        for name, mask in (("in", inside), ("out", outside))
    ]
    pairs = [work.estimates(side) for side in sides]
    return [
        _gap_row(work, i, gap, sides, within, beyond) for i, (within, beyond) in enumerate(zip(*pairs, strict=True))
    ]


def _gap_row(work: Work, i: int, gap: Gap, sides: list[Sample], within: Estimate, beyond: Estimate) -> Estimate:
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
    if within.value is None or beyond.value is None:
        return replace(row, note=within.note or beyond.note)
    row = replace(row, value=beyond.value - within.value, note=f"{beyond.value:.4f} out, {within.value:.4f} in")
    if not work.draws.plan.bootstrap:
        return row
    drawn = work.drawn(sides[1], i) - work.drawn(sides[0], i)
    centre = work.corrected(sides[1], i) - work.corrected(sides[0], i)
    return with_interval(row, drawn, work, sides, work.questions[i], centre)
