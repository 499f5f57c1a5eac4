"""Two runs' paired samples to the rows of a comparison: contrasts, averages over slices, families, verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import NormalDist
from typing import Final

import numpy as np

from hitmiss.comparing.contrasts import NO_TEST, NO_WIDTH, RIGHT, Contrast, choose_test, contrast, ends_of
from hitmiss.comparing.differences import (
    ALL,
    BOTH,
    WRONG,
    Difference,
    Discordance,
    judged,
)
from hitmiss.comparing.few import degrees
from hitmiss.comparing.paired_samples import Both, PairedDraws, PairedSample, outcomes, slices
from hitmiss.comparing.shares import Mask
from hitmiss.design import Grouping, Plan
from hitmiss.measuring.measurement import FEW
from hitmiss.pairing import Pair
from hitmiss.progress import each, part, step
from hitmiss.stats import mcnemar
from hitmiss.stats.differences import detectable, p_of_replicates
from hitmiss.stats.multiple import adjusted
from hitmiss.tally import Floats

ANSWERED: Final = 4
"""Outcomes below this one are answers."""


@dataclass(frozen=True, eq=False)
class Cell:
    """A question's contrast on one sample, with the replicates of the difference where they were drawn."""

    question: Both
    sample: PairedSample
    found: Contrast
    deltas: Floats | None


@dataclass(frozen=True, eq=False)
class Work:
    """What is asked of the samples, and how."""

    questions: list[Both]
    draws: PairedDraws
    test: str
    correction: str
    paired: Pair

    @property
    def plan(self) -> Plan:
        """How sure."""
        return self.draws.plan

    def everything(
        self, samples: list[PairedSample], groupings: list[Grouping], narrow: tuple[str, ...]
    ) -> tuple[list[Difference], list[Discordance]]:
        """The rows of all samples, then of their slices with averages; p values adjusted within each family."""
        asked = [q for q in self.questions if not narrow or q[0].metric.name in narrow]
        with step("comparing", 1 + len(groupings)):
            return self._told(samples, groupings, asked)

    def _told(
        self, samples: list[PairedSample], groupings: list[Grouping], asked: list[Both]
    ) -> tuple[list[Difference], list[Discordance]]:
        with part():
            rows = [self.row(cell) for s in _in_turn(samples, "all pairs") for cell in self.cells(s, self.questions)]
        averages: list[Difference] = []
        inside: list[PairedSample] = []
        for grouping in groupings:
            with part():
                for whole in _in_turn(samples, f"by {' × '.join(grouping)}"):
                    parts = slices(whole, grouping)
                    cells = [self.cells(sample, asked) for sample in _in_turn(parts, "")]
                    rows += [self.row(cell) for own in cells for cell in own]
                    averages += [self.macro(whole, grouping, [own[i] for own in cells]) for i in range(len(asked))]
                    inside += parts
        decided = any("decision" in q[0].metric.columns for q in self.questions)
        tables = [d for sample in (*samples, *inside) for d in self.discordances(sample)] if decided else []
        own = [judged(d, self.plan.level) for d in _adjusted(rows, self.correction)]
        return own + [judged(d, self.plan.level) for d in averages], _adjusted_tables(tables, self.correction)

    def cells(self, sample: PairedSample, questions: list[Both]) -> list[Cell]:
        """Every question on one sample; replicates are drawn together, for those that need them."""
        tests = [choose_test(q, sample, self.test, bool(self.plan.unit)) for q in questions]
        need = [i for i, t in enumerate(tests) if self.plan.bootstrap and t not in ("delong", NO_TEST)]
        drawn = self.draws.deltas([questions[i] for i in need], sample) if need else []
        deltas = dict(zip(need, drawn, strict=True))
        return [
            Cell(q, sample, contrast(q, sample, t, self.draws, deltas.get(i)), deltas.get(i))
            for i, (q, t) in enumerate(zip(questions, tests, strict=True))
        ]

    def row(self, cell: Cell) -> Difference:
        """A cell as a row; its p value is not adjusted yet."""
        found, sample, question = cell.found, cell.sample, cell.question[0]
        p = _known(found.p_value)
        counted = found.is_too_few and not self.plan.unit  # the note says how few there are
        notes = [_undefined(cell, self.paired.names), None if counted else _few(sample), found.note]
        return Difference(
            metric=question.text,
            a=_known(found.a),
            b=_known(found.b),
            delta=_known(found.delta),
            low=_known(found.low),
            high=_known(found.high),
            p_value=p,
            p_adjusted=p,
            test=found.test or None,
            n_pairs=sample.n,
            n_positive=sample.n_positive,
            wins=found.wins,
            ties=found.ties,
            losses=found.losses,
            mdd=detectable(found.error, self.plan.level),
            slice=dict(sample.slice),
            note="; ".join(n for n in notes if n) or None,
            best=question.metric.best,
        )

    def macro(self, whole: PairedSample, grouping: Grouping, cells: list[Cell]) -> Difference:
        """The mean over the slices where both figures are defined; wins, ties and losses count slices."""
        good = [c for c in cells if not math.isnan(c.found.delta)]
        sign = -1.0 if cells[0].question[0].metric.best == "low" else 1.0
        gains = [sign * c.found.delta for c in good]
        row = Difference(cells[0].question[0].text, None, None, None, average="macro", n_pairs=whole.n)
        row = replace(row, slice={**whole.slice, **dict.fromkeys(grouping, "*")}, n_positive=whole.n_positive)
        row = replace(row, best=cells[0].question[0].metric.best)
        if not good:
            return replace(row, note="undefined: in no slice defined")
        wins, losses = sum(g > 0 for g in gains), sum(g < 0 for g in gains)
        means = [math.fsum(getattr(c.found, side) for c in good) / len(good) for side in ("a", "b")]
        row = replace(row, a=means[0], b=means[1], delta=means[1] - means[0], wins=wins, losses=losses)
        note = None if len(good) == len(cells) else f"over {len(good)} of {len(cells)} slices"
        row = replace(row, ties=len(good) - wins - losses, note=note)
        if good[0].found.test == NO_TEST:
            return replace(row, note="; ".join(filter(None, (note, good[0].found.note))))
        shares = bool(whole.parts[0].a.columns.one_class.of(grouping)[0]) and not self.plan.unit
        if shares:
            return replace(
                row, note="; ".join(filter(None, (note, "no test: these slices share trials; draw a --unit")))
            )
        unknown = sum(c.found.is_too_few for c in good)
        if unknown:
            why = f"no interval: in {unknown} of {len(cells)} slices there is too little for one"
            return replace(row, note="; ".join(filter(None, (note, why))))
        return self._macro_tested(row, good)

    def _macro_tested(self, row: Difference, good: list[Cell]) -> Difference:
        """Slices are apart, so errors of areas add up; replicates of everything else are averaged."""
        assert row.delta is not None
        if all(c.found.test == "delong" for c in good):
            error = math.sqrt(math.fsum(c.found.error**2 for c in good)) / len(good)
            if not error > 0.0:
                return row
            half = NormalDist().inv_cdf(0.5 + self.plan.level / 2) * error
            p = math.erfc(abs(row.delta) / error / math.sqrt(2.0))
            row = replace(row, low=row.delta - half, high=row.delta + half, p_value=p, p_adjusted=p, test="delong")
            return replace(row, mdd=detectable(error, self.plan.level))
        drawn = [c.deltas for c in good if c.deltas is not None]
        if len(drawn) < len(good):
            return row
        deltas = np.mean(drawn, axis=0)
        freedom = self._degrees(good)
        low, high = ends_of(deltas, row.delta or 0.0, freedom, self.plan)
        p = p_of_replicates(deltas, freedom, bool(self.plan.unit))
        if math.isnan(p):
            return row
        error = float(np.nanstd(deltas, ddof=1))
        row = replace(row, p_value=p, p_adjusted=p, test="bootstrap", mdd=detectable(error, self.plan.level))
        if low == high:
            return replace(row, note="; ".join(filter(None, (row.note, f"no interval: {NO_WIDTH}"))))
        return replace(row, low=low, high=high)

    def _degrees(self, good: list[Cell]) -> float:
        """Degrees of freedom of a mean over slices: units go through all of them, trials add up."""
        found = [degrees(c.question, c.sample, self.draws) for c in good]
        return max(found) if self.plan.unit else math.fsum(found)

    def discordances(self, sample: PairedSample) -> list[Discordance]:
        """McNemar's tables of a sample: abstentions wrong, and only pairs with two answers where that is another set."""
        codes = [
            np.concatenate([outcomes(s) for s in sides])
            for sides in ([p.a for p in sample.parts], [p.b for p in sample.parts])
        ]
        right = [np.isin(code, RIGHT) for code in codes]
        both = (codes[0] < ANSWERED) & (codes[1] < ANSWERED)
        everything = np.ones(len(both), dtype=bool)
        readings = {ALL: everything} if both.all() else {WRONG: everything, BOTH: both}
        independent = len(sample.parts) == 1 and not self.plan.unit
        return [
            _table(reading, inside, right[0], right[1], independent, sample.slice)
            for reading, inside in readings.items()
        ]


def _in_turn(samples: list[PairedSample], what: str) -> Iterator[PairedSample]:
    """The samples one after the other, counted by their pairs for whoever looks on."""
    return each(samples, what, [sample.n for sample in samples])


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _table(
    reading: str, inside: Mask, right_a: Mask, right_b: Mask, independent: bool, where: Mapping[str, str]
) -> Discordance:
    """McNemar's table of the pairs inside a reading."""
    both, only_a, only_b, neither = (
        int((inside & (right_a == x) & (right_b == y)).sum()) for x in (True, False) for y in (True, False)
    )
    row = Discordance(reading, int(inside.sum()), both, only_a, only_b, neither, slice=dict(where))
    if not independent:
        return row
    p = mcnemar.exact(only_a, only_b)
    return replace(row, p_exact=p, p_mid=mcnemar.mid_p(only_a, only_b), p_adjusted=p)


def _undefined(cell: Cell, names: tuple[str, str]) -> str | None:
    if not math.isnan(cell.found.delta):
        return None
    sample, head = cell.sample, cell.sample.parts[0].a.columns.trials.header
    if sample.n_positive in (0, sample.n):
        return f"undefined: only {head.positive if sample.n_positive else head.negative} here"
    where = [name for name, value in zip(names, (cell.found.a, cell.found.b), strict=True) if math.isnan(value)]
    return f"undefined in {' and '.join(where)}: an empty denominator" if where else "undefined: both are infinite"


def _few(sample: PairedSample) -> str | None:
    head = sample.parts[0].a.columns.trials.header
    for name, n in ((head.positive, sample.n_positive), (head.negative, sample.n - sample.n_positive)):
        if 0 < n < FEW:
            return f"only {n} {name}"
    return None


def _families(rows: Sequence[Difference]) -> list[tuple[tuple[object, ...], list[Difference]]]:
    """Rows of one metric over the slices of one grouping."""
    ordered = sorted(rows, key=lambda d: (d.metric, tuple(d.slice)))
    return [(key, list(own)) for key, own in groupby(ordered, key=lambda d: (d.metric, tuple(d.slice)))]


def _adjusted(rows: list[Difference], correction: str) -> list[Difference]:
    """The rows in their order, p values adjusted within each family."""
    new = {
        id(row): p
        for _, own in _families(rows)
        for row, p in zip(own, adjusted([r.p_value for r in own], correction), strict=True)
    }
    return [replace(row, p_adjusted=new[id(row)]) for row in rows]


def _adjusted_tables(rows: list[Discordance], correction: str) -> list[Discordance]:
    found: dict[tuple[object, ...], list[Discordance]] = {}
    for row in rows:
        found.setdefault((row.reading, tuple(row.slice)), []).append(row)
    new = {
        id(row): p
        for own in found.values()
        for row, p in zip(own, adjusted([r.p_exact for r in own], correction), strict=True)
    }
    return [replace(row, p_adjusted=new[id(row)]) for row in rows]
