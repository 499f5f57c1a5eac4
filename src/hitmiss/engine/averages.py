"""Estimates made of slices: the macro average, the worst slice, pairs within slices, gaps and spreads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hitmiss.core.design import Grouping
from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Decimals, Option, Remark, joined
from hitmiss.core.progress import each
from hitmiss.core.protocol import EVERY, GROUPS, Gap
from hitmiss.core.results import Estimate
from hitmiss.engine.columns import Rows, Sample
from hitmiss.engine.drawn import Drawn, nothing
from hitmiss.engine.interval import choose_interval
from hitmiss.engine.measurement import Measurement, blank, weighed, with_interval, with_units
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.engine.samples import samples_of_slices
from hitmiss.stats.forms.composite import Difference, Extreme, Mean, Spread
from hitmiss.stats.students_t import MANY


def by_slices(work: Measurement, whole: Sample, grouping: Grouping, warnings: list[str]) -> list[Estimate]:
    """Return every number of every slice, then their averages; a grouping with a single slice is left out."""
    samples = samples_of_slices(whole, grouping)
    if len(samples) == 1:
        value = ", ".join(f"{k}={v}" for k, v in samples[0].slice.items())
        warnings.append(Remark.of("one-slice", by=" × ".join(grouping), value=value))
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
    """Return every estimate of a slice; averages need the draws of all slices together, whatever its own are."""
    own, rows = work.of(sample), work.estimates(sample)
    return rows if own is work else own.estimates(sample)


def _one_sided(work: Measurement, grouping: Grouping, samples: list[Sample], rows: list[Estimate]) -> list[str]:
    """Say what to do if numbers are undefined because every slice has only one class, as with a column of attacks."""
    held = [0 < sample.n_positive < sample.n for sample in samples]
    if any(held) or all(e.value is not None for e in rows):
        return []
    head = work.columns.trials.header
    kinds = {"negative": head.negative, "positive": head.positive}
    many = "negative" if 2 * sum(s.n_positive == 0 for s in samples) >= len(samples) else "positive"
    other = head.positive if many == "negative" else head.negative
    name = grouping[0] if len(grouping) == 1 else "COLUMN"
    return [
        Remark.of(
            "one-sided-slices",
            by=" × ".join(grouping),
            option=Option(f"{many}_only", name),
            kind=kinds[many],
            other=other,
        )
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
    """Return the simple mean over the slices where the number is defined, with the mean of their replicates."""
    defined = [(s, e) for s, e in zip(samples, cells, strict=True) if e.value is not None]
    everywhere = dict.fromkeys(grouping, "*")
    row = replace(weighed(blank(question, whole.n, whole.n_positive, whole.run, everywhere), whole), average="macro")
    if not defined:
        return replace(row, note=Remark.of("undefined/no-slice-defined"))
    values = [e.value for _, e in defined if e.value is not None]
    note = (
        None if len(defined) == len(cells) else Remark.of("mean-over-some", n_defined=len(defined), n_cells=len(cells))
    )
    row = replace(row, value=float(np.mean(values)), note=note)
    if not work.draws.plan.bootstrap:
        return row
    of_negatives, of_positives = work.columns.one_class.of(grouping)
    if not work.draws.plan.unit and (of_negatives or of_positives):
        head = work.columns.trials.header
        other = head.positive if of_negatives else head.negative
        shared = Remark.of("no-interval/shared-trials", other=other)
        return replace(row, note=joined(note, shared))
    if not work.draws.plan.unit and whole.is_repeated and "target" in grouping:
        shared = Remark.of("no-interval/shared-items")
        return replace(row, note=joined(note, shared))
    mean = Mean(question.form)
    drawn = work.combined(mean, [s for s, _ in defined], i, [whole], float(row.value or 0.0))
    row = with_units(row, work.draws, [whole], question.labelled)
    return with_interval(row, choose_interval(mean, drawn, work.draws.plan))


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
        return replace(row, note=Remark.of("undefined/no-slice-defined"))
    pairs = np.array([s.size_of_pairs for s, _ in defined], dtype=np.float64)
    note = (
        None if len(defined) == len(cells) else Remark.of("mean-over-some", n_defined=len(defined), n_cells=len(cells))
    )
    mean = Mean(question.form, pairs)
    row = replace(row, value=float(mean.combine([v for _, v in defined])), note=note)
    if not work.draws.plan.bootstrap:
        return row
    drawn = work.combined(mean, [s for s, _ in defined], i, [whole], float(row.value or 0.0))
    row = with_units(row, work.draws, [whole], question.labelled)
    return with_interval(row, choose_interval(mean, replace(drawn, without=nothing), work.draws.plan))


def _worst(work: Measurement, i: int, samples: list[Sample], cells: list[Estimate]) -> list[Estimate]:
    """Return the slice with the worst number, with an interval of its true number that allows for having picked it.

    The end on the side of worse numbers is that of the slice's own interval; see `intervals.tail_of_worst` for the other.
    """
    defined = [(s, e) for s, e in zip(samples, cells, strict=True) if e.value is not None]
    if not defined:
        return []
    form = Extreme(work.questions[i].form, 1.0 if work.questions[i].metric.best == "low" else -1.0)
    worst = defined[form.place([float(e.value or 0.0) for _, e in defined])][1]
    parts = tuple(work.of(s).part(s, i, e) for s, e in defined)
    degrees = MANY if worst.units_effective is None else max(worst.units_effective - 1.0, 1.0)
    found = choose_interval(form, Drawn(float(worst.value or 0.0), degrees=degrees, parts=parts), work.draws.plan)
    # Why the slice has no interval, or that it is small, is said as well.
    said = found.note if found.low is not None and len(defined) > 1 else joined(found.note, worst.note)
    return [with_interval(replace(worst, average="worst", note=None), replace(found, note=said))]


def gap_rows(work: Measurement, whole: Sample, gap: Gap) -> list[Estimate]:
    """Return the gap for every question: value(out) − value(in), of each other group, or the spread over all groups."""
    if gap.is_spread:
        levels: dict[tuple[str, ...], list[Sample]] = {}
        for sample in samples_of_slices(whole, gap.columns):
            levels.setdefault(tuple(sample.slice.values())[:-1], []).append(sample)
        return [e for samples in levels.values() for e in _spread_rows(work, whole, samples)]
    if not gap.within:
        return _gaps_of(work, whole, gap, whole.rows, {})
    parts = samples_of_slices(whole, gap.within)
    return [e for part in parts for e in _gaps_of(work, whole, gap, part.rows, part.slice)]


def _gaps_of(work: Measurement, whole: Sample, gap: Gap, rows: Rows, within: Mapping[str, str]) -> list[Estimate]:
    """Return the gaps of some trials; those against each other group hold together (Bonferroni)."""
    codes, values = work.columns.asked_codes(gap.column)
    own = codes[rows]
    there = [values[code] for code in np.unique(own).tolist()]
    each_one = gap.outside == (EVERY,)
    named = (*gap.inside, *(() if each_one else gap.outside))
    unknown = [v for v in named if v not in values]
    if unknown:
        raise UsageError.of("unknown-gap-value", column=gap.column, unknown=unknown[0], values_2=tuple(values))
    others = [v for v in there if v not in gap.inside]
    asked = [replace(gap, outside=(v,)) for v in others] if each_one else [gap]
    if each_one and len(others) > 1:
        plan = work.draws.plan
        joint = replace(plan, level=1.0 - (1.0 - plan.level) / len(others))
        work = replace(work, draws=replace(work.draws, plan=joint), replicates={})
    made = []
    for one in asked:
        inside = {*one.inside}
        outside = {*one.outside} or {*there} - inside
        # A side is named by what it holds, so that the order in which values were given changes no draw.
        sides = [
            work.columns.sample(
                rows[np.isin(own, [values.index(v) for v in held])],
                whole.run,
                {**within, gap.column: f"{name} {sorted(inside)} {sorted(outside)}"},
            )
            for name, held in (("in", inside), ("out", outside))
        ]
        pairs = zip(*(work.estimates(side) for side in sides), strict=True)
        label = {**within, gap.column: one.label}
        found = [_gap_row(work, i, label, sides, a, b) for i, (a, b) in enumerate(pairs)]
        together = Remark.of("gaps-together", n=len(asked))
        made += [
            replace(e, note=joined(e.note, together)) if e.low is not None and len(asked) > 1 else e for e in found
        ]
    return made


def _spread_rows(work: Measurement, whole: Sample, samples: list[Sample]) -> list[Estimate]:
    """Return greatest − least over groups for every question, and least / greatest where numbers start at 0."""
    cells = [_slice_rows(work, sample) for sample in samples]
    rows = []
    for i, question in enumerate(work.questions):
        own = [(s, found[i]) for s, found in zip(samples, cells, strict=True) if found[i].value is not None]
        kinds = (False, True) if question.metric.range[0] >= 0.0 else (False,)
        rows += [_spread_row(work, whole, i, question, samples, own, is_ratio) for is_ratio in kinds]
    return rows


def _spread_row(
    work: Measurement,
    whole: Sample,
    i: int,
    question: PreparedMetric,
    samples: list[Sample],
    own: list[tuple[Sample, Estimate]],
    is_ratio: bool,
) -> Estimate:
    *control, column = samples[0].slice
    n, n_positive = (sum(sizes) for sizes in zip(*((s.n, s.n_positive) for s in samples), strict=True))
    where = {**{name: samples[0].slice[name] for name in control}, column: EVERY}
    row = replace(blank(question, n, n_positive, whole.run, where), average="ratio" if is_ratio else "spread")
    row = replace(row, best="high" if is_ratio else "low", settings={**row.settings, GROUPS: len(own)})
    if len(own) < 2:
        return replace(row, note=Remark.of("undefined/one-group", n=len(own), column=column))
    form = Spread(question.form, is_ratio)
    values = [float(e.value or 0.0) for _, e in own]
    value = form.value(values)
    if np.isnan(value):
        return replace(row, note=Remark.of("undefined/zero-denominator"))
    at = [own[place(values)][0].slice[column] for place in (np.argmax, np.argmin)]
    some = None if len(own) == len(samples) else Remark.of("mean-over-some", n_defined=len(own), n_cells=len(samples))
    row = replace(row, value=value, note=joined(Remark.of("spread-of", most=at[0], least=at[1]), some))
    low, high = question.metric.range
    parts = tuple(work.of(s).part(s, i, e) for s, e in own)
    drawn = Drawn(value, (0.0, 1.0 if is_ratio else high - low), parts=parts)
    row = with_units(row, work.draws, [s for s, _ in own], question.labelled)
    return with_interval(row, choose_interval(form, drawn, work.draws.plan))


def _gap_row(
    work: Measurement, i: int, label: Mapping[str, str], sides: list[Sample], within: Estimate, beyond: Estimate
) -> Estimate:
    row = replace(
        beyond,
        slice=label,
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
    row = replace(
        row,
        value=beyond.value - within.value,
        note=Remark.of("gap-of", beyond=Decimals(beyond.value, 4), within=Decimals(within.value, 4)),
    )
    if not work.draws.plan.bootstrap:
        return row
    question, difference = work.questions[i], Difference(work.questions[i].form)
    drawn = work.combined(difference, sides, i, sides, float(row.value or 0.0))
    own = tuple(
        replace(part, ends=None if e.low is None or e.high is None else (e.low, e.high), method=e.method)
        for part, e in zip(drawn.parts, (within, beyond), strict=True)
    )
    found = choose_interval(difference, replace(drawn, parts=own), work.draws.plan)
    return with_interval(with_units(row, work.draws, sides, question.labelled), found)
