"""The identities that a design asks about: which trials mention them, and the numbers of one run or of two on the same texts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hitmiss.core.design import Design
from hitmiss.core.finding import Remark
from hitmiss.core.results import Estimate
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.core.weights import refuse_sampling
from hitmiss.engine.bias import FEW, Grouped, Mask, Part, bias_parts, measure_bias
from hitmiss.engine.columns import Sample
from hitmiss.engine.comparison import UNDEFINED, Difference, judged
from hitmiss.engine.interval import difference_interval
from hitmiss.engine.paired_samples import PairedSample
from hitmiss.io.mentions import mentions
from hitmiss.metrics.bias import AVERAGE, IDENTITY
from hitmiss.stats.corrections import adjusted
from hitmiss.stats.influence import Expansion, Ranked, combined
from hitmiss.stats.p_value import detectable, p_of_error


@dataclass(frozen=True, eq=False)
class Identities:
    """Which trials of a table mention each identity, and what is not independent among them."""

    members: Mapping[str, Mask]
    unit: tuple[str, ...] = ()
    level: float = 0.95
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, trials: Trials, design: Design, plan: SamplingPlan, pools_targets: bool) -> Identities:
        """Read the columns that a design names.

        The labels of one text are not independent, so where they are pooled, texts are units.
        """
        if not trials.has_rows:
            design.refuse_identities("counts instead of texts")
        if "score" not in trials.frame.columns:
            design.refuse_identities("decisions without scores")
        found, notes = mentions(trials, design.identity)
        unit = plan.unit or (("item",) if pools_targets and trials.has_targets else ())
        return cls(found, unit, plan.level, tuple(notes))

    def measure(self, trials: Trials, whole: Sample) -> tuple[list[Estimate], list[str]]:
        """Return the numbers of one run, and notes for the reader."""
        return measure_bias(trials, self.members, level=self.level, unit=self.unit, rows=whole.rows, run=whole.run)

    def compare(self, runs: tuple[Trials, Trials], whole: PairedSample, correction: str) -> list[Difference]:
        """Return the paired differences of all numbers; those of several identities are corrected together."""
        refuse_sampling(runs[0], "the bias of identities")
        grouped = Grouped.of(runs[0], self.unit, np.arange(len(runs[0])))
        sides = [
            [bias_parts(*self._ranked(run, part.a.rows, grouped), grouped, self.level) for part in whole.parts]
            for run in runs
        ]
        rows = []
        for each in zip(*(own for side in sides for own in side), strict=True):
            a, b = (_mean(own) for own in (each[: len(whole.parts)], each[len(whole.parts) :]))
            rows.append(self._difference(a, b, grouped, whole))
        for metric in dict.fromkeys(d.metric for d in rows):
            own = [i for i, d in enumerate(rows) if d.metric == metric and d.average is None]
            for i, p in zip(own, adjusted([rows[i].p_value for i in own], correction), strict=True):
                rows[i] = replace(rows[i], p_adjusted=p)
        return [judged(d, self.level) for d in rows]

    def _ranked(self, run: Trials, rows: np.ndarray, grouped: Grouped) -> tuple[Ranked, dict[str, Mask]]:
        units = grouped.units.of_rows(rows)
        ranked = Ranked.of(run.score[rows], np.asarray(run.label == 1)[rows], units)
        return ranked, {name: member[rows] for name, member in self.members.items()}

    def _difference(self, a: Part, b: Part, grouped: Grouped, whole: PairedSample) -> Difference:
        """Return one number of both runs, its paired difference, interval and test."""
        n, positives = (sum(a.sides), a.sides[0]) if not a.is_mean else (whole.n, whole.n_positive)
        row = Difference(a.metric, a.value, b.value, None, n_pairs=n, n_positive=positives, best="high")
        row = replace(row, slice={**whole.slice, IDENTITY: a.identity}, average=AVERAGE if a.is_mean else None)
        if a.value is None or b.value is None:
            return replace(row, verdict=UNDEFINED, note=Remark.of("undefined/no-text", part="toxic or non-toxic"))
        few = min(a.sides)
        note = Remark.of("few-of-class/identity", few=few, part="toxic or non-toxic") if 0 < few < FEW else None
        row = replace(row, delta=b.value - a.value, note=note)
        reason = next((of for of in (a.of, b.of) if isinstance(of, str)), None)
        if reason is not None or not (isinstance(a.of, Expansion) and isinstance(b.of, Expansion)):
            return replace(row, note=reason or note)
        less = b.of.less(a.of)
        if not less.variance > 0.0:
            same = row.delta == 0.0
            why = Remark.of("no-interval/alike", part="the answers are alike" if same else "the units hardly differ")
            return replace(row, ties=n if same else 0, note=why)
        if (little := grouped.too_few(b.of, self.level)) is not None:
            return replace(row, note=little)
        assert row.delta is not None
        error = math.sqrt(less.variance)
        degrees = less.degrees if grouped.names else math.inf
        found, p = difference_interval(row.delta, error, self.level, degrees), p_of_error(row.delta, error, degrees)
        row = replace(row, low=found.low, high=found.high, p_value=p, p_adjusted=p, test="delong")
        return replace(row, mdd=detectable(error, self.level))


def _mean(parts: Sequence[Part]) -> Part:
    """Return the mean of one number over repetitions, of which each has the same texts."""
    first = parts[0]
    values = [part.value for part in parts if part.value is not None]
    if len(parts) == 1 or len(values) < len(parts):
        return first if len(parts) == 1 else replace(first, value=None, of=None)
    lacking = [part.of for part in parts if not isinstance(part.of, Expansion)]
    shares = [(1.0 / len(parts), part.of) for part in parts if isinstance(part.of, Expansion)]
    return replace(first, value=math.fsum(values) / len(values), of=lacking[0] if lacking else combined(shares))
