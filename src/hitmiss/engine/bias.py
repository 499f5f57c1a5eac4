"""Measure unintended bias by identity: subgroup, BPSN and BNSP AUC, power means and the final number, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.finding import Remark
from hitmiss.core.protocol import EVERY
from hitmiss.core.results import Estimate
from hitmiss.core.stacked import stacked
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.core.weights import refuse_sampling
from hitmiss.engine.columns import Columns
from hitmiss.engine.draws import RunUnits, why_too_few
from hitmiss.engine.interval import Interval, area_without_draws, expanded_interval
from hitmiss.engine.measurement import with_interval
from hitmiss.metrics.bias import AVERAGE, FINAL, IDENTITY, KINDS, OVERALL_WEIGHT, POWER, bias_score, power_mean_slopes
from hitmiss.stats.enough_units import error_units
from hitmiss.stats.influence import Expansion, Ranked, Side, Units, combined

FEW: Final = 10
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Part:
    """One number about identities: its value (None if undefined), and what units add to it, or why that is unknown."""

    metric: str
    identity: str
    value: float | None
    of: Expansion | str | None = None
    sides: tuple[int, int] = (0, 0)
    """The numbers of toxic and of non-toxic texts that it compares."""

    @property
    def is_mean(self) -> bool:
        """Whether it is a mean over identities."""
        return self.identity == EVERY


@dataclass(frozen=True, eq=False)
class Grouped:
    """The units of all trials of a table: those of single trials, of the columns of a unit, or none."""

    units: Units
    names: tuple[str, ...] = ()
    is_split: bool = False
    """Whether the trials of a lone unit, all that one class has, are units of their own."""

    @classmethod
    def of(cls, trials: Trials, names: Sequence[str], rows: Rows) -> Grouped:
        """Number the units of some trials as they are drawn for other numbers."""
        alone = stacked(trials.frame) if tuple(names) == ("item",) else None
        if alone is not None:  # the texts of several labels; numbering them anew would hash millions of ids
            return cls(Units((rows.astype(np.int64) % alone,)), tuple(names))
        columns = Columns(trials)
        found = [RunUnits.of(columns, name, rows) for name in names]
        lone = found[0].with_trials_of_lone(columns, rows, 0) if len(found) == 1 else None
        codes = tuple(own.code for own in ([lone] if lone is not None else found))
        return cls(Units(codes), tuple(names), lone is not None)

    def count(self, of: Expansion) -> int:
        """Return how many units are behind a number."""
        return of.count(self.is_split)

    def too_few(self, of: Expansion, level: float) -> str | None:
        """Say why there are too few units for an interval; None if there are enough, or if trials are independent."""
        if not self.names:
            return None
        return why_too_few(self.count(of), of.counted(error_units), self.names, level)


def measure_bias(
    trials: Trials,
    members: Mapping[str, Mask],
    *,
    level: float = 0.95,
    unit: Sequence[str] = (),
    rows: Rows | None = None,
    run: Mapping[str, str] | None = None,
) -> tuple[list[Estimate], list[str]]:
    """Return estimates for each identity, their power means and the final number, and notes for the reader.

    An identity is a mask of the trials that mention it. `unit` names the columns (an author, the texts of several labels)
    whose trials are not independent: intervals are then over whole units. They need no draws; those of the means come from
    what each unit adds to every AUC, so identities may share texts. `rows` are the trials of one `run`.
    """
    refuse_sampling(trials, "the bias of identities")
    rows = np.arange(len(trials)) if rows is None else rows
    grouped = Grouped.of(trials, unit, rows)
    positive = np.asarray(trials.label == 1)[rows]
    ranked = Ranked.of(trials.score[rows], positive, grouped.units)
    inside = {name: np.asarray(member)[rows] for name, member in members.items()}
    made: list[Estimate] = []
    for part in bias_parts(ranked, inside, grouped, level):
        row = _estimate(part, ranked, inside, grouped, level)
        if part.is_mean:
            own = [e.value for e in made if e.metric == part.metric]
            size = {"n": len(rows), "n_positive": int(positive.sum()), "average": AVERAGE}
            note = row.note if row.note is not None else _used(own)
            row = replace(row, **size, settings={"p": POWER} if part.metric == FINAL else {}, note=note)  # type: ignore[arg-type]
        made.append(replace(row, run=run or {}))
    absent = [e.slice[IDENTITY] for e in made if e.metric == KINDS[0] and e.average is None and e.n == 0]
    return made, [f"no text mentions {', '.join(absent)}"] if absent else []


def bias_parts(ranked: Ranked, inside: Mapping[str, Mask], grouped: Grouped, level: float) -> Iterator[Part]:
    """Yield the AUCs of each identity, then their power means and the final number, with what units add to them.

    They are yielded one by one, because what units add may be millions of numbers.
    """
    means = {kind: _MeanSoFar() for kind in KINDS}
    for name, member in inside.items():
        for part in _of_identity(ranked, name, member):
            means[part.metric].add(part, grouped, level)
            yield part
    whole: tuple[float, Expansion | None] = (math.nan, None)
    if ranked.positive.any() and not ranked.positive.all():
        whole = ranked.area(*ranked.classes)
    final = bias_score(whole[0], {k: own.values for k, own in means.items()})
    of = {k: own.expansion() for k, own in means.items()}
    for kind in KINDS:
        yield Part(kind, EVERY, _known(final.power_means[kind]), of[kind])
    yield Part(FINAL, EVERY, _known(final.final), _of_final(whole[1], of))


@dataclass(eq=False)
class _MeanSoFar:
    """A power mean while its values come in: what units add to it is a sum over them, up to one factor."""

    values: list[float] = field(default_factory=list)
    total: Expansion | None = None
    lacking: str | None = None

    def add(self, part: Part, grouped: Grouped, level: float) -> None:
        """Take in one value; NaN if it is undefined."""
        self.values.append(math.nan if part.value is None else part.value)
        if part.value is None:
            return
        own = part.of
        assert isinstance(own, Expansion)
        if grouped.too_few(own, level) or not own.variance > 0.0 or not own.degrees > 0.0:
            self.lacking = Remark.of("no-interval/part", part=part.identity)
        elif self.lacking is None:
            share = part.value ** (POWER - 1.0)  # the slope of the mean goes with it
            self.total = own.times(share) if self.total is None else self.total.plus(own, share)

    def expansion(self) -> Expansion | str | None:
        """Return what units add to the mean, or why that is unknown."""
        if self.total is None or self.lacking is not None:
            return self.lacking
        known = [v for v in self.values if not math.isnan(v)]
        return self.total.times(float(power_mean_slopes(known)[0]) / known[0] ** (POWER - 1.0))


def _of_identity(ranked: Ranked, name: str, member: Mask) -> Iterator[Part]:
    """Yield the three AUCs of one identity."""
    for kind, (up, down) in zip(KINDS, _pairs(ranked, member), strict=True):
        sizes = len(up.places), len(down.places)
        value, of = ranked.area(up, down) if min(sizes) else (None, None)
        yield Part(kind, name, value, of, sizes)


def _pairs(ranked: Ranked, member: Mask) -> tuple[tuple[Side, Side], ...]:
    """Return the positives and the negatives of every kind of AUC."""
    there, up = member[ranked.order], ranked.positive
    whole = ranked.classes
    inside = ranked.side(up & there), ranked.side(~up & there)
    outside = [
        all_.less(own, np.flatnonzero(mask & ~there)) for all_, own, mask in zip(whole, inside, (up, ~up), strict=True)
    ]
    return (inside, (outside[0], inside[1]), (inside[0], outside[1]))


def _of_final(whole: Expansion | None, of: Mapping[str, Expansion | str | None]) -> Expansion | str | None:
    """Return what units add to the final number, or why that is unknown."""
    if whole is None:
        return None
    parts = [(OVERALL_WEIGHT, whole)]
    for kind in KINDS:
        own = of[kind]
        if own is None or isinstance(own, str):
            return own
        parts.append(((1.0 - OVERALL_WEIGHT) / len(KINDS), own))
    return combined(parts)


def _estimate(part: Part, ranked: Ranked, inside: Mapping[str, Mask], grouped: Grouped, level: float) -> Estimate:
    """Return a number with its interval, or with the reason why it has none."""
    ups, downs = part.sides
    row = Estimate(part.metric, part.value, n=ups + downs, n_positive=ups, slice={IDENTITY: part.identity}, best="high")
    if part.is_mean:
        return _with_error(row, part.of, grouped, level)
    if not ups or not downs:
        return replace(row, note=Remark.of("undefined/no-text", part="toxic" if not ups else "non-toxic"))
    few = min(ups, downs)
    if few < FEW:
        row = replace(
            row, note=Remark.of("few-of-class/identity", few=few, part="toxic" if ups == few else "non-toxic")
        )
    if grouped.names:
        return _with_error(row, part.of, grouped, level)
    up, down = _pairs_of(ranked, part, inside)
    return with_interval(row, area_without_draws(Tally.of_classes(ranked.score[up], ranked.score[down]), level))


def _pairs_of(ranked: Ranked, part: Part, inside: Mapping[str, Mask]) -> tuple[Mask, Mask]:
    """Return the masks of the positives and the negatives of one AUC, in the order of scores."""
    there = inside[part.identity][ranked.order]
    of_up, of_down = {KINDS[0]: (True, True), KINDS[1]: (False, True), KINDS[2]: (True, False)}[part.metric]
    return ranked.positive & (there == of_up), ~ranked.positive & (there == of_down)


def _with_error(row: Estimate, of: Expansion | str | None, grouped: Grouped, level: float) -> Estimate:
    """Return an estimate with the interval by what units add to it, or with the reason why it has none."""
    value = row.value
    if value is None or of is None:
        return row
    if isinstance(of, str):
        return with_interval(row, Interval(note=of))
    if grouped.names:
        row = replace(row, units=grouped.count(of), units_effective=of.counted())
    little = grouped.too_few(of, level)
    return with_interval(row, Interval(note=little) if little else expanded_interval(value, of, level))


def _used(values: Sequence[float | None]) -> str | None:
    defined = sum(v is not None for v in values)
    return (
        None
        if defined == len(values)
        else Remark.of("mean-over-some/identities", defined=defined, n_values=len(values))
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
