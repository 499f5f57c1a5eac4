"""Measure unintended bias by identity: subgroup, BPSN and BNSP AUC, power means and the final number, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.finding import Remark
from hitmiss.core.results import Estimate
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.core.weights import refuse_sampling
from hitmiss.engine.columns import Columns
from hitmiss.engine.draws import RunUnits, why_too_few
from hitmiss.engine.interval import Interval, area_without_draws, expanded_interval
from hitmiss.engine.measurement import with_interval
from hitmiss.metrics.bias import KINDS, OVERALL_WEIGHT, POWER, bias_score, power_mean_slopes
from hitmiss.stats.enough_units import error_units
from hitmiss.stats.forms.sums import PairShare
from hitmiss.stats.influence import Expansion, Units, combined, expand_area

IDENTITY: Final = "identity"
FEW: Final = 10
Mask = NDArray[np.bool_]


def measure_bias(
    trials: Trials, members: Mapping[str, Mask], *, level: float = 0.95, unit: Sequence[str] = ()
) -> tuple[list[Estimate], list[str]]:
    """Return estimates for each identity, their power means and the final number, and notes for the reader.

    An identity is a mask of the trials that mention it. `unit` names the columns (an author, the texts of several labels)
    whose trials are not independent: intervals are then over whole units. They need no draws; those of the means come from
    what each unit adds to every AUC, so identities may share texts.
    """
    refuse_sampling(trials, "the bias of identities")
    texts = Texts.of(trials, unit, level)
    inside = {name: np.asarray(member)[texts.order] for name, member in members.items()}
    rows = [texts.estimate(*area) for area in texts.areas(inside)]
    values = {k: [math.nan if e.value is None else e.value for e in rows if e.metric == k] for k in KINDS}
    up, down = texts.positive, ~texts.positive
    final = bias_score(PairShare().value(Tally.of_classes(texts.score[up], texts.score[down])), values)
    row = Estimate("bias_score", _known(final.final), n=len(trials), n_positive=trials.n_positive, best="high")
    row = replace(row, slice={IDENTITY: "*"}, average="power mean", settings={"p": POWER})
    averages = [replace(row, metric=k, value=_known(v), note=_used(values[k])) for k, v in final.power_means.items()]
    if math.isnan(final.overall_auc):
        return [*rows, *averages, row], _remarks(rows)
    rows, means = _expanded(texts, inside, rows, values)
    averages = [texts.with_error(e, means.get(e.metric)) for e in averages]
    return [*rows, *averages, texts.with_error(row, _of_final(texts, means))], _remarks(rows)


@dataclass(frozen=True, eq=False)
class Texts:
    """The trials in the order of their scores, with their units."""

    order: NDArray[np.intp]
    score: Floats
    positive: Mask
    units: Units
    unit: tuple[str, ...]
    is_split: bool
    level: float

    @classmethod
    def of(cls, trials: Trials, unit: Sequence[str], level: float) -> Texts:
        """Sort trials once for all areas, and number their units as they are drawn for other numbers."""
        order = np.argsort(trials.score, kind="stable")
        columns, every = Columns(trials), np.arange(len(trials))
        found = [RunUnits.of(columns, name, every) for name in unit]
        lone = found[0].with_trials_of_lone(columns, every, 0) if len(found) == 1 else None
        codes = tuple(own.code[order] for own in ([lone] if lone is not None else found))
        positive = np.asarray(trials.label == 1)[order]
        return cls(order, trials.score[order], positive, Units(codes), tuple(unit), lone is not None, level)

    def areas(self, inside: Mapping[str, Mask]) -> Iterator[tuple[str, str, Mask, Mask]]:
        """Return the kind, the identity, the positives and the negatives of every AUC."""
        up, down = self.positive, ~self.positive
        for name, member in inside.items():
            sides = ((up & member, down & member), (up & ~member, down & member), (up & member, down & ~member))
            for kind, (positives, negatives) in zip(KINDS, sides, strict=True):
                yield kind, name, positives, negatives

    def estimate(self, kind: str, name: str, positives: Mask, negatives: Mask) -> Estimate:
        """Return an AUC, with its interval if trials are independent."""
        ups, downs = self.score[positives], self.score[negatives]
        n1, n0 = len(ups), len(downs)
        row = Estimate(kind, None, n=n1 + n0, n_positive=n1, slice={IDENTITY: name}, best="high")
        if not n1 or not n0:
            return replace(row, note=Remark.of("undefined/no-text", part="toxic" if not n1 else "non-toxic"))
        tally, few = Tally.of_classes(ups, downs), min(n1, n0)
        part = "toxic" if n1 == few else "non-toxic"
        note = Remark.of("few-of-class/identity", few=few, part=part) if few < FEW else None
        row = replace(row, value=PairShare().value(tally), note=note)
        return row if self.unit else with_interval(row, area_without_draws(tally, self.level))

    def with_error(self, row: Estimate, of: Expansion | str | None) -> Estimate:
        """Return an estimate with the interval by what units add to it, or with the reason why it has none."""
        value = row.value
        if value is None or of is None:
            return row
        if isinstance(of, str):
            return with_interval(row, Interval(note=of))
        if self.unit:
            row = replace(row, units=of.count(self.is_split), units_effective=of.counted())
        little = self._too_few(of)
        return with_interval(row, Interval(note=little) if little else expanded_interval(value, of, self.level))

    def _too_few(self, of: Expansion) -> str | None:
        if not self.unit:
            return None
        return why_too_few(of.count(self.is_split), of.counted(error_units), self.unit, self.level)


def _expanded(
    texts: Texts, inside: Mapping[str, Mask], rows: Sequence[Estimate], values: Mapping[str, Sequence[float]]
) -> tuple[list[Estimate], dict[str, Expansion | str]]:
    """Return the estimates with intervals over units, and what units add to each power mean, or why it has no interval."""
    slopes = {k: iter(_slopes(own)) for k, own in values.items()}
    means: dict[str, Expansion | str] = {}
    made = []
    for row, (kind, name, positives, negatives) in zip(rows, texts.areas(inside), strict=True):
        if row.value is None:
            made.append(row)
            continue
        own, slope = expand_area(texts.score, positives, negatives, texts.units), next(slopes[kind])
        made.append(texts.with_error(row, own) if texts.unit else row)
        before = means.get(kind)
        if made[-1].low is None or not own.variance > 0.0 or not math.isfinite(slope):
            means[kind] = before if isinstance(before, str) else Remark.of("no-interval/part", part=name)
        elif not isinstance(before, str):
            means[kind] = own.times(slope) if before is None else before.plus(own, slope)
    return made, means


def _slopes(values: Sequence[float]) -> Floats:
    """Return the slopes of a power mean in the values that are defined; NaN if one of them is 0."""
    known = np.array([v for v in values if not math.isnan(v)])
    return power_mean_slopes(known) if (known > 0.0).all() else np.full(len(known), math.nan)


def _of_final(texts: Texts, means: Mapping[str, Expansion | str]) -> Expansion | str | None:
    """Return what units add to the final number, or why it has no interval."""
    whole = expand_area(texts.score, texts.positive, ~texts.positive, texts.units)
    parts = [(OVERALL_WEIGHT, whole)]
    for kind in KINDS:
        own = means.get(kind)
        if own is None or isinstance(own, str):
            return own
        parts.append(((1.0 - OVERALL_WEIGHT) / len(KINDS), own))
    return combined(parts)


def _used(values: list[float]) -> str | None:
    defined = sum(not math.isnan(v) for v in values)
    return (
        None
        if defined == len(values)
        else Remark.of("mean-over-some/identities", defined=defined, n_values=len(values))
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _remarks(rows: list[Estimate]) -> list[str]:
    absent = list(dict.fromkeys(e.slice[IDENTITY] for e in rows if e.metric == "subgroup_auc" and e.n == 0))
    return [f"no text mentions {', '.join(absent)}"] if absent else []
