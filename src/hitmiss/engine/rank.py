"""Compare more than two runs: all on the same draws, every pair judged at once, with letters and ranks.

Every run is measured on one shared stream of weights, so the work grows with the number of runs, not of pairs. Pairs
are judged together by step-down max-T (see `stats.simultaneous`): intervals, p values, letters and ranks hold for all pairs at
once. Without a `unit`, trials are resampled; if there are very many, in random blocks of equal size.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Final, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss._version import __version__
from hitmiss.core.artifacts import SHORT
from hitmiss.core.columns import ColumnKeywords
from hitmiss.core.completeness import Completeness
from hitmiss.core.design import By, ComparisonRules, Design, Grouping
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.expressions import Derived
from hitmiss.core.finding import Remark
from hitmiss.core.machine import cores
from hitmiss.core.metric_spec import MetricSpec
from hitmiss.core.progress import each
from hitmiss.core.protocol import Protocol
from hitmiss.core.registry import resolve
from hitmiss.core.results import Estimate, Results, prefixed
from hitmiss.core.sampling import BY_CLASS, OF_ALL, SamplingPlan
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.trials import Trials, TrialsLike, demanded
from hitmiss.core.weights import refuse_sampling
from hitmiss.derive.confidences import with_confidence
from hitmiss.engine.columns import Columns, OneClassColumns, Sample
from hitmiss.engine.comparability import breaches_of, facts, unchecked_of
from hitmiss.engine.compare import compare_design, digest, turned, unused_unit, with_sides
from hitmiss.engine.comparison import IDENTICAL, Comparison, Difference, judged
from hitmiss.engine.contrasts import TESTS
from hitmiss.engine.draws import Draws
from hitmiss.engine.interval import area_interval
from hitmiss.engine.measure import usual_metrics
from hitmiss.engine.measurement import Measurement
from hitmiss.engine.natural_unit import with_natural_unit
from hitmiss.engine.paired_samples import each_once, same_columns
from hitmiss.engine.pairing import REPEATS, SHOWN, completed, in_order, incomplete, pair, size_of
from hitmiss.engine.prepare import prepare_metric, prepared_for
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.engine.ranking import MAX_T, Duel, RankedRun, Ranking
from hitmiss.engine.samples import samples_of_runs, samples_of_slices
from hitmiss.engine.score_checks import check_scores
from hitmiss.engine.signature import render
from hitmiss.stats.corrections import CORRECTIONS, adjusted
from hitmiss.stats.enough_units import effective_units, enough, unit_sizes
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.least_cost import MinimumCost
from hitmiss.stats.letters import letters
from hitmiss.stats.p_value import detectable
from hitmiss.stats.random import generator
from hitmiss.stats.simultaneous import Simultaneous, Unseen, max_t, ranks, spread_out
from hitmiss.stats.units import draw_units

LARGE: Final = 1 << 17
"""From this many trials on, runs are measured several at a time; numpy holds a lock while it works on short arrays."""
MOST_AT_ONCE: Final = 8
MOST_BLOCKS: Final = 2000
"""Number of blocks that the trials of a class are divided into; with fewer trials, each is drawn on its own."""


def compare_all(
    runs: Mapping[str, TrialsLike | Results] | Sequence[TrialsLike | Results],
    metrics: str | Sequence[str | MetricSpec] = (),
    *,
    by: By = (),
    bootstrap: int = 1000,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    correction: str = "auto",
    test: str = "auto",
    allow_missing: bool = False,
    force: bool = False,
    protocol: Protocol | None = None,
    **reading: Unpack[ColumnKeywords],
) -> Ranking:
    """Compare every pair of runs, judged at once, and rank the runs.

    Parameters
    ----------
    runs
        Trials by name, two or more, on the same questions; or files or tables, which are read as `hm.read` does. Those in a
        list are named by their files, or `run 1`, `run 2`, ….
    metrics, by, bootstrap, unit, seed, level, allow_missing, force, protocol, **reading
        As for `compare`.
    correction
        `auto` is `max-t`: over all pairs; in tables by slice over all pairs and slices of a metric and grouping.
        `holm`, `bh` and `none` adjust the p values of the studentised differences instead.
    test
        `auto` or `bootstrap`: a ranking is tested on its shared replicates.

    Returns
    -------
    Ranking
        The numbers of all runs with letters and ranks, and all pairs.

    Raises
    ------
    UsageError
        For fewer than two runs, or a test that is only for two runs.
    DataError
        If runs cannot be compared.

    >>> label, right, wrong = [1] * 6 + [0] * 6, [*range(6, 12), *range(6)], [*range(12)]
    >>> runs = {"x": right, "y": right, "z": wrong}
    >>> found = compare_all({n: Trials.of(label, s) for n, s in runs.items()}, ["roc_auc"], force=True)
    >>> [(s.run, s.value, s.letters, s.rank_low, s.rank_high) for s in found.standings]
    [('x', 1.0, 'a', 1, 2), ('y', 1.0, 'a', 1, 2), ('z', 0.0, 'b', 3, 3)]
    """
    named = runs if isinstance(runs, Mapping) else _named(runs)
    trials = {str(name): demanded(run, "rank", reading) for name, run in named.items()}
    if len(trials) < 2:
        raise UsageError.of("one-run", n=len(trials))
    if not metrics and protocol is None:
        metrics = usual_metrics(list(trials.values()))
    contest = ComparisonRules(test=test, correction=correction, allow_missing=allow_missing, force=force)
    asked = Design.of(
        metrics, by=by, unit=unit, bootstrap=bootstrap, seed=seed, level=level, protocol=protocol, contest=contest
    )
    return rank_design({name: with_confidence(run, asked.metrics) for name, run in trials.items()}, asked)


def _named(runs: object) -> dict[str, TrialsLike | Results]:
    """Return the runs of a list by name."""
    if isinstance(runs, str) or not isinstance(runs, Sequence):
        raise UsageError.of("not-runs", name=type(runs).__name__)
    names = [Path(run).stem if isinstance(run, str | Path) else f"run {i}" for i, run in enumerate(runs, 1)]
    if len({*names}) < len(names):
        raise UsageError.of("same-name/runs")
    return dict(zip(names, runs, strict=True))


def compare_runs(runs: Mapping[str, Trials], design: Design, derived: Sequence[Derived] = ()) -> Comparison | Ranking:
    """Compare two runs, or every pair of more than two; a ranking has no `derived` numbers, and says so."""
    if len(runs) > 2:
        made = rank_design(runs, design)
        left = ", ".join(one.name for one in derived)
        said = (f"{left} left out: a ranking tests metrics, and this is made of several",) if left else ()
        return replace(made, warnings=(*made.warnings, *said))
    if len(runs) < 2:
        raise UsageError.of("one-run", n=len(runs) or "none")
    (name_a, a), (name_b, b) = runs.items()
    return compare_design(a, b, design, (name_a, name_b), derived)


def rank_design(runs: Mapping[str, Trials], design: Design) -> Ranking:
    """Rank several runs as a design asks, with all pairs judged at once."""
    for run in runs.values():
        refuse_sampling(run, "a ranking of several runs")
    design = with_natural_unit(design, next(iter(runs.values())))
    chosen, contest, groupings = design.rules, design.contest or ComparisonRules(), design.groupings
    correction = _correction(contest.correction, contest.test)
    found = Field.of(runs, design.metrics, design.units, groupings, contest.allow_missing, chosen)
    plan = SamplingPlan(design.bootstrap, found.unit, design.seed, design.level, "percentile")
    warnings = found.refuse(found.breaches(), contest.force)
    cells, alarmed = found.cells(plan, groupings, chosen)
    warnings += found.refuse(alarmed.turned(found), contest.force) + found.remarks() + alarmed.found
    duels = [duel for own in _families(cells) for duel in own.duels(found.names, plan, correction)]
    first = [duel.difference for duel in duels if (duel.a, duel.b) == found.names[:2]]
    pairs = [*zip(found.questions[0], found.questions[1], strict=True)]
    warnings += unused_unit((found.columns[0], found.columns[1]), pairs, plan, chosen, first)
    if not plan.bootstrap:
        warnings.append(
            "no replicates were drawn (--bootstrap 0), so nothing was tested and every run has the same letter"
        )
    made = Ranking(
        found.names,
        tuple(
            alarmed.with_intervals(ranked_runs(found.names, duels, 1.0 - plan.level)),
        ),
        tuple(duels),
        "",
        tuple(dict.fromkeys(warnings)),
        plan.level,
        correction,
        tuple(groupings),
        with_sides(design, runs),
    )
    return replace(made, signature=_sign(made, found, plan, groupings, chosen, contest.force))


def _correction(wanted: str, test: str) -> str:
    if test not in TESTS:
        raise UnknownName("test", test, TESTS)
    if test not in ("auto", "bootstrap"):
        raise UsageError.of("ranking-test", test=test)
    if wanted == "auto":
        return MAX_T
    if wanted != MAX_T and wanted not in CORRECTIONS:
        raise UnknownName("correction", wanted, (MAX_T, *CORRECTIONS))
    return wanted


@dataclass(frozen=True, eq=False)
class Together:
    """The same trials answered by every run: one part, or one part per repetition. `rows` fit any run."""

    parts: tuple[Sample, ...]
    slice: Mapping[str, str]
    average: str | None = None

    @cached_property
    def n(self) -> int:
        """The number of questions; every pair of runs asks for it."""
        return len(each_once(self.parts))

    @cached_property
    def n_positive(self) -> int:
        """The number of positive questions."""
        return int(np.concatenate([p.positive for p in self.parts])[each_once(self.parts)].sum())

    def of(self, columns: Columns) -> list[Sample]:
        """Return the samples of one run."""
        return [columns.sample(p.rows, p.run, p.slice) for p in self.parts]


@dataclass(frozen=True, eq=False)
class RankedSlice:
    """One metric on one sample: the number and the replicates of every run."""

    question: PreparedMetric
    sample: Together
    values: Floats
    drawn: Floats
    units: float
    family: tuple[object, ...]
    unseen: Floats | None = None
    """By how much one error of a kind (miss, false alarm) that a run does not show would change its number (run × kind)."""

    def hides(self, i: int, j: int, level: float) -> bool:
        """Return whether such an error would matter for the difference of two runs (see `too_few_errors`)."""
        if self.unseen is None or not (effect := float(self.unseen[[i, j]].max())):
            return False
        half = NormalDist().inv_cdf(0.5 + level / 2.0) * float(np.nanstd(self.drawn[j] - self.drawn[i]))
        return effect > self.question.form.most_of_width * 2.0 * half

    def open_costs(self, run: int, plan: SamplingPlan) -> Unseen:
        """Return by how much a run's cost may be higher because of kinds of error that it does not show."""
        assert self.unseen is not None
        one = self.sample.parts[0]
        trials = [one.n_positive, one.n - one.n_positive]
        costs = [effect * n for effect, n in zip(self.unseen[run].tolist(), trials, strict=True)]
        # At worst all trials of a unit are wrong together, so that only units count.
        return Unseen.of(costs, [self.units] * 2 if plan.unit else trials)

    def pairs(self) -> list[tuple[int, int]]:
        """Every pair of runs."""
        return list(combinations(range(len(self.values)), 2))


@dataclass(frozen=True, eq=False)
class Field:
    """All runs, aligned to the same questions in the same order."""

    names: tuple[str, ...]
    columns: tuple[Columns, ...]
    questions: tuple[tuple[PreparedMetric, ...], ...]
    unit: tuple[str, ...]
    key: tuple[str, ...]
    left_out: Mapping[str, int]
    zero_undefined: bool = False
    there: Completeness | None = None
    first: tuple[str, ...] = ()
    """Ids of the first questions that not every run has."""

    @classmethod
    def of(
        cls,
        runs: Mapping[str, Trials],
        metrics: Sequence[str | MetricSpec],
        unit: tuple[str, ...],
        groupings: Sequence[Grouping],
        allow_missing: bool,
        protocol: Protocol,
    ) -> Field:
        """Match every run with the first; if allowed, leave out questions that not every run has."""
        if len(runs) < 2:
            raise UsageError.of("one-run", n=len(runs))
        on_scores = any("score" in resolve(m)[1].columns for m in metrics)
        names, given = tuple(runs), list(runs.values())
        base, trials = given[0], given
        key: tuple[str, ...] = ()
        repeats: tuple[str, ...] = ()
        for _ in range(2):  # the first round finds what every run has
            matched = []
            for name, own in zip(names[1:], given[1:], strict=True):
                found = pair(
                    base, own, names=(names[0], name), allow_missing=allow_missing, scores=on_scores, ordered=False
                )
                base, key, repeats = found.a, found.key, found.repeats
                matched.append(found.b)
            trials = [base, *matched]
            if all(len(t) == len(base) for t in trials) and len(base) == len(given[0]):
                break
        if not len(base):
            raise DataError.of("no-pairs")
        untouched = all(t is own for t, own in zip(trials, given, strict=True))  # only if the same rows were found
        alike = untouched or all(t.frame[name].equals(base.frame[name]) for t in trials[1:] for name in key)
        trials = in_order(trials, key) if alike else [own for t in trials for own in in_order([t], key)]
        base = trials[0]
        lost = {n: len(all_) - len(base) for n, all_ in zip(names, given, strict=True) if len(all_) > len(base)}
        kept = base.frame["item"].implode()
        gone = [own.frame["item"].filter(~own.frame["item"].is_in(kept)) for n, own in runs.items() if n in lost]
        first = tuple(pl.concat(gone).unique(maintain_order=True).head(SHOWN)) if gone else ()
        trials, there = completed(trials, key)
        units = base.unit_names(unit) or (("item",) if repeats else ())
        shared = dict.fromkeys([c for g in groupings for c in g] + [u for u in units if u != "item"])
        columns = same_columns(
            trials, names, key, [*shared], OneClassColumns(protocol.negative_only, protocol.positive_only)
        )
        questions = tuple(tuple(prepare_metric(m, c.trials, protocol) for m in metrics) for c in columns)
        return cls(names, tuple(columns), questions, units, key, lost, protocol.zero_undefined, there, first)

    @cached_property
    def facts(self) -> list[dict[str, str]]:
        """Return what is known about how each run was made."""
        return [facts(c.trials) for c in self.columns]

    def breaches(self) -> list[str]:
        """Return every rule of comparability that two of the runs break."""
        pairs = combinations(zip(self.names, self.facts, strict=True), 2)
        return [
            f"{one} and {other} cannot be compared: {breach}"
            for (one, known), (other, theirs) in pairs
            if known != theirs  # alike runs break no rule, and of many runs most are alike
            for breach in breaches_of(known, theirs, same_items=not self.left_out)
        ]

    def refuse(self, wrong: list[str], force: bool) -> list[str]:
        """Refuse runs that cannot be compared; if forced, return the reasons as the first warning instead."""
        if wrong and not force:
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            raise DataError.of("incomparable/many", wrong=wrong[0], more=more)
        return [Remark.of("comparison-forced/invalid", breach=text) for text in wrong]

    def remarks(self) -> list[str]:
        """Return what was left out, and what could not be checked."""
        found = []
        if self.left_out:
            left = ", ".join(f"{n:,} of {who}" for who, n in self.left_out.items())
            first = f", as {', '.join(map(repr, self.first))}" if self.first else ""
            found.append(f"different sample sizes: left out, because not every run has them: {left}{first}")
        found += incomplete(self.there) if self.there is not None else []
        for known, theirs in combinations(self.facts, 2):
            found += unchecked_of(known, theirs) if known != theirs else []
        return found + [
            prefixed(f"{n}: ", note)
            for n, c in zip(self.names, self.columns, strict=True)
            for note in c.trials.header.notes
        ]

    def cells(
        self, plan: SamplingPlan, groupings: Sequence[Grouping], protocol: Protocol
    ) -> tuple[list[RankedSlice], Alarmed]:
        """Compute every metric on every sample, run by run, and collect the warnings about each run's numbers."""
        wholes = self.wholes_of_runs()
        pieces = [(whole, g, self._slices(whole, g)) for whole in wholes for g in groupings]
        samples = wholes + [s for _, _, parts in pieces for s in parts]
        narrow = protocol.slice_metrics
        asked = [
            [i for i, q in enumerate(self.questions[0]) if s < len(wholes) or not narrow or q.metric.name in narrow]
            for s in range(len(samples))
        ]
        alarmed = Alarmed()
        shape = (len(samples), len(self.questions[0]), len(self.names))
        values, drawn = np.full(shape, np.nan), np.full((*shape, plan.bootstrap), np.nan)
        unseen, units = np.zeros((*shape, 2)), np.zeros(len(samples))
        owners = [(plan, whole) for whole in wholes]
        owners += [(plan.within(grouping), whole) for whole, grouping, parts in pieces for _ in parts]
        groups = [*dict.fromkeys(owners)]
        for group in each(groups, "", [whole.n for _, whole in groups]):
            draws = Shared.of(group[0], self, group[1])
            mine = [s for s, owner in enumerate(owners) if owner == group]
            units[mine] = [draws.units(samples[s]) for s in mine]

            def measure_run(k: int, draws: Shared = draws, mine: list[int] = mine) -> Alarmed:
                warned = Alarmed()
                for s in mine:
                    own = samples[s].of(self.columns[k])
                    work = None
                    if plan.bootstrap and s < len(wholes) == len(own) == 1:  # of repeated runs the standing is a mean
                        work = draws.measurement(k, own[0], protocol)
                        warned.own.update({(e.metric, self.names[k]): e for e in work.estimates(own[0])})
                    draws.fill(k, own, asked[s], values[s, :, k], drawn[s, :, k], work)
                    unseen[s, :, k] = [unseen_errors(prepared_for(q, own[0]), own) for q in self.questions[k]]
                    if s < len(wholes):
                        warned.look(self.names[k], own, self.questions[k])
                return warned

            # Runs share nothing but the weights, so how many are measured at a time changes no digit.
            with ThreadPoolExecutor(self._at_once) as pool:
                done = pool.map(measure_run, range(len(self.names)))
                for _, warned in zip(each(range(len(self.names)), "runs"), done, strict=True):
                    alarmed.found.extend(warned.found)
                    alarmed.areas.extend(warned.areas)
                    alarmed.own.update(warned.own)
        found = {
            (s, i): RankedSlice(
                self.questions[0][i],
                sample,
                values[s, i],
                drawn[s, i],
                float(units[s]),
                (self.questions[0][i].text, *(("slices", *sample.slice) if s >= len(wholes) else sample.slice.items())),
                unseen[s, i],
            )
            for s, sample in enumerate(samples)
            for i in asked[s]
        }
        place = {id(sample): s for s, sample in enumerate(samples)}
        averages = []
        for whole, grouping, parts in pieces:
            for i in asked[place[id(parts[0])]]:
                averages.append(_macro(whole, grouping, [found[place[id(p)], i] for p in parts]))
        return [*found.values(), *averages], alarmed

    @property
    def _at_once(self) -> int:
        """How many runs are measured at a time: one per core if their arrays are large, because numpy then shares cores."""
        return min(cores(), MOST_AT_ONCE) if len(self.columns[0].trials) >= LARGE else 1

    def wholes_of_runs(self) -> list[Together]:
        parts: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
        for sample in samples_of_runs(self.columns[0]):
            shared = tuple((k, v) for k, v in sample.run.items() if k not in REPEATS)
            parts.setdefault(shared, []).append(sample)
        return [Together(tuple(own), dict(shared)) for shared, own in parts.items()]

    def _slices(self, whole: Together, grouping: Grouping) -> list[Together]:
        parts: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
        for part in whole.parts:
            for sample in samples_of_slices(part, grouping):
                parts.setdefault(tuple(sample.slice.items()), []).append(sample)
        return [Together(tuple(own), {**whole.slice, **dict(key)}) for key, own in parts.items()]


def unseen_errors(question: PreparedMetric, samples: Sequence[Sample]) -> tuple[float, ...]:
    """Return by how much one error of a kind that a sample of a run does not show would change a cost, kind by kind."""
    if not isinstance(question.form, Form) or not question.form.fewest_errors:
        return 0.0, 0.0
    errors = [own for sample in samples if (own := question.form.errors(sample))]
    return tuple(max((0.0 if own[k].seen else own[k].effect for own in errors), default=0.0) for k in range(2))


@dataclass(frozen=True, eq=False)
class Alarmed:
    """Warnings about single runs, the interval of each run's AUC if it was computed, and the numbers of each run."""

    found: list[str] = field(default_factory=list)
    areas: list[tuple[float, float]] = field(default_factory=list)
    own: dict[tuple[str, str], Estimate] = field(default_factory=dict)
    """The number over all trials, as `measure` gives it, by metric and run."""

    def look(self, name: str, samples: list[Sample], questions: Sequence[PreparedMetric]) -> None:
        """Check the samples of a run."""
        self.found.extend(
            prefixed(f"{name}: ", alarm) for sample in samples for alarm in check_scores(sample, questions)
        )
        if any("score" in q.metric.columns for q in questions) and 0 < samples[0].n_positive < samples[0].n:
            self.areas.append(area_interval(samples[0].steps))

    def with_intervals(self, standings: list[RankedRun]) -> list[RankedRun]:
        """Return the standings with the interval of each run's own number over all trials."""
        return [
            replace(s, low=e.low, high=e.high) if (e := self.own.get((s.metric, s.run))) is not None else s
            for s in standings
        ]

    def turned(self, runs: Field) -> list[str]:
        """Return the runs whose scores point the wrong way while those of another run point the right way."""
        areas = self.areas[: len(runs.names)]
        right = next((i for i, (low, _) in enumerate(areas) if low > 0.5), None)
        if right is None:
            return []
        return [
            f"{runs.names[right]} and {runs.names[i]} cannot be compared: "
            f"{turned(runs.names[i], runs.columns[i].trials.header.negative)}"
            for i, (_, high) in enumerate(areas)
            if high < 0.5
        ]


@dataclass(frozen=True, eq=False)
class Stream:
    """One set of draws for all runs: the trials drawn from, the unit of each, and how often each unit is drawn."""

    rows: NDArray[np.intp]
    unit: NDArray[np.int64]
    weights: Array

    def draws(self, plan: SamplingPlan, columns: Columns) -> Draws:
        """Return the draws for one run."""
        return Draws(plan, columns, self.rows, self.unit, self.weights, self.weights.shape[1], self.weights)


@dataclass(frozen=True, eq=False)
class Shared:
    """The streams of a ranking: trials within each class, and from all trials for numbers that depend on prevalence."""

    plan: SamplingPlan
    runs: Field
    by_class: Stream | None
    free: Stream | None
    own: Draws | None = None
    """The draws of units, by which the own interval of each run is found too; None if trials are drawn."""

    @classmethod
    def of(cls, plan: SamplingPlan, runs: Field, whole: Together, most_blocks: int = MOST_BLOCKS) -> Shared:
        """Draw once, for all runs and all slices of some trials; trials of a class in at most so many blocks."""
        if not plan.bootstrap:
            return cls(plan, runs, None, None)
        first, rows = runs.columns[0], np.concatenate([part.rows for part in whole.parts])
        if plan.unit:
            drawn = Draws.prepare(replace(plan, method="auto"), first, rows)
            assert drawn.unit is not None and drawn.weights is not None and drawn.free is not None
            streams = Stream(rows, drawn.unit, drawn.weights), Stream(rows, drawn.unit, drawn.free)
            return cls(plan, runs, *streams, drawn)
        asked = {q.metric.prevalence for q in runs.questions[0] if q.metric.interval}
        place = _random_order(first, rows, runs.key, plan.seed)
        both = [
            _trial_stream(first, rows, place, plan, kind, most_blocks) if kind in asked else None
            for kind in (False, True)
        ]
        return cls(plan, runs, both[0], both[1])

    def units(self, sample: Together) -> float:
        """Return the effective number of units (or trials, without units) behind an estimate of both classes."""
        rows = np.concatenate([p.rows for p in sample.parts])
        positive = self.runs.columns[0].positive[rows]
        if not self.plan.unit:
            return float(min(n for n in (int(positive.sum()), int((~positive).sum())) if n))
        if self.by_class is not None and len(self.plan.unit) == 1:
            codes = [self.by_class.unit[rows]]
        else:
            codes = [self.runs.columns[0].asked_codes(name)[0][rows] for name in self.plan.unit]
        return effective_units(*(unit_sizes(code, positive) for code in codes))

    def measurement(self, k: int, sample: Sample, protocol: Protocol) -> Measurement:
        """Return the measurement of one run by itself, on the draws of units that all runs share."""
        columns = self.runs.columns[k]
        draws = self.own.of_run(columns) if self.own else None
        draws = draws or Draws.prepare(replace(self.plan, method="auto"), columns, sample.rows)
        return Measurement(columns, [*self.runs.questions[k]], draws, protocol)

    def fill(
        self,
        k: int,
        samples: list[Sample],
        asked: list[int],
        values: Floats,
        drawn: Floats,
        measured: Measurement | None = None,
    ) -> None:
        """Compute numbers and replicates of one run on one sample, as the mean over repetitions.

        `measured`: the run by itself; its replicates are these if units are drawn.
        """
        questions = [prepared_for(q, samples[0]) for q in self.runs.questions[k]]
        for stream, kind in ((self.by_class, False), (self.free, True)):
            at = [i for i in asked if questions[i].metric.interval and questions[i].metric.prevalence == kind]
            if stream is None or not at:
                continue
            if measured is not None and self.own is not None:
                parts = [[measured.replicates[sample.name][i] for i in at] for sample in samples]
            else:
                draws = stream.draws(self.plan, self.runs.columns[k])
                parts = [draws.replicates([questions[i] for i in at], sample) for sample in samples]
            for j, i in enumerate(at):
                drawn[i] = np.mean([p[j] for p in parts], axis=0)
                if self.runs.zero_undefined and questions[i].metric.zero:
                    np.nan_to_num(drawn[i], copy=False)
        for i in asked:
            zero = self.runs.zero_undefined and questions[i].metric.zero
            own = [float(questions[i].value(sample)) for sample in samples]
            values[i] = math.fsum(0.0 if zero and math.isnan(v) else v for v in own) / len(own)


def _random_order(columns: Columns, rows: NDArray[np.intp], key: Sequence[str], seed: int) -> NDArray[np.int64]:
    """Give each of these trials a random position that depends on the questions, not on the order of the rows."""
    frame = columns.trials.frame.select(*key)[rows].with_row_index("_row").sort(*key)
    place = np.empty(frame.height, dtype=np.int64)
    place[frame["_row"].to_numpy()] = generator(seed, "blocks").permutation(frame.height)
    return place


def _trial_stream(
    columns: Columns,
    rows: NDArray[np.intp],
    place: NDArray[np.int64],
    plan: SamplingPlan,
    prevalence: bool,
    most_blocks: int,
) -> Stream:
    """Use trials as units: each on its own, or, if there are very many, in random blocks."""
    positive = columns.positive[rows]
    most = most_blocks * (2 if prevalence else 1)
    own = spread_out(positive, place, most, not prevalence)
    n_units = int(own.max()) + 1
    rng = generator(plan.seed, "ranking", OF_ALL if prevalence else BY_CLASS)
    weights = draw_units(own, positive, n_units, plan.bootstrap, rng, by_class=not prevalence)
    unit = np.zeros(len(columns.positive), dtype=np.int64)
    unit[rows] = own
    return Stream(rows, unit, weights)


def _macro(whole: Together, grouping: Grouping, cells: list[RankedSlice]) -> RankedSlice:
    """Return the mean over the slices in which every run's number is defined.

    All slices use the same draws, so this is also correct for slices that share trials.
    """
    good = [c for c in cells if not np.isnan(c.values).any()]
    sample = Together(whole.parts, {**whole.slice, **dict.fromkeys(grouping, "*")}, "macro")
    family = (cells[0].question.text, "macro", *sample.slice.items())
    if not good:
        nothing = np.full_like(cells[0].values, np.nan), np.full_like(cells[0].drawn, np.nan)
        return RankedSlice(cells[0].question, sample, *nothing, 0.0, family)
    means = np.mean([c.values for c in good], axis=0), np.mean([c.drawn for c in good], axis=0)
    return RankedSlice(cells[0].question, sample, *means, min(c.units for c in good), family)


@dataclass(frozen=True, eq=False)
class Family:
    """The cells that are judged together: a single one, or the slices of a table."""

    cells: list[RankedSlice]

    def duels(self, names: tuple[str, ...], plan: SamplingPlan, correction: str) -> list[Duel]:
        """Return every pair in every cell."""
        places = [(cell, i, j) for cell in self.cells for i, j in combinations(range(len(names)), 2)]
        hidden = {at for at, (cell, i, j) in enumerate(places) if cell.hides(i, j, plan.level)}
        found = self._judged(places, plan, hidden)
        p_adjusted: list[float | None] = list(map(_known, found.adjusted))
        if correction != MAX_T:
            p_adjusted = adjusted(list(map(_known, found.p_values)), correction)
        rows = [self._row(at, place, found, plan, at in hidden) for at, place in enumerate(places)]
        return [
            Duel(names[i], names[j], _verdict(replace(row, p_adjusted=p), cell, i, j, plan.level))
            for (cell, i, j), row, p in zip(places, rows, p_adjusted, strict=True)
        ]

    def _judged(self, places: list[tuple[RankedSlice, int, int]], plan: SamplingPlan, hidden: set[int]) -> Simultaneous:
        """Judge all differences at once; where a run hides a kind of error, with as many as its trials leave open."""
        least = enough(plan.level)
        deltas = np.array([math.nan if c.units < least else c.values[j] - c.values[i] for c, i, j in places])
        degrees = np.array([max(c.units - 1.0, 1.0) for c, _, _ in places])
        behind = {(id(c), run): (c, run) for c, i, j in map(places.__getitem__, hidden) for run in (i, j)}
        opened = {place: cell.open_costs(run, plan) for place, (cell, run) in behind.items()}
        unseen = {at: (opened[id(c), i], opened[id(c), j]) for at in hidden for c, i, j in (places[at],)}

        def replicates(at: int) -> Floats:
            cell, i, j = places[at]
            with np.errstate(invalid="ignore"):
                return np.asarray(cell.drawn[j] - cell.drawn[i])

        is_least = np.array([isinstance(c.question.form, MinimumCost) for c, _, _ in places])
        return max_t(deltas, replicates, plan.bootstrap, degrees, plan.level, unseen, is_least)

    def _row(
        self, at: int, place: tuple[RankedSlice, int, int], found: Simultaneous, plan: SamplingPlan, hidden: bool
    ) -> Difference:
        cell, i, j = place
        a, b = _known(cell.values[i]), _known(cell.values[j])
        tested = not math.isnan(found.p_values[at])
        # errors that were not seen can make the ends larger than two numbers can differ
        least, greatest = cell.question.metric.range
        low, high = np.clip([found.low[at], found.high[at]], least - greatest, greatest - least).tolist()
        return Difference(
            metric=cell.question.text,
            a=a,
            b=b,
            delta=None if a is None or b is None else b - a,
            low=_known(low),
            high=_known(high),
            p_value=_known(found.p_values[at]),
            test="bootstrap" if tested else None,
            n_pairs=cell.sample.n,
            n_positive=cell.sample.n_positive,
            mdd=detectable(float(found.errors[at]), plan.level) if tested else None,
            slice=dict(cell.sample.slice),
            average=cell.sample.average,
            note=(LEFT_OPEN if hidden else None) if tested else _why_not(cell, i, j, plan),
            best=cell.question.metric.best,
        )


LEFT_OPEN: Final = "a run shows no error of one kind at its threshold: tested with as many as its trials leave open"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _why_not(cell: RankedSlice, i: int, j: int, plan: SamplingPlan) -> str | None:
    """Say why a pair has no test; None if it has one."""
    if np.isnan(cell.values[[i, j]]).any():
        return Remark.of("undefined/one-run")
    if not cell.question.metric.interval:
        return Remark.of("no-test/biased", metric_name=cell.question.metric.name)
    if not plan.bootstrap:
        return Remark.of("no-test/undrawn")
    if cell.units < enough(plan.level):
        what = f"effective units ({', '.join(plan.unit)})" if plan.unit else "trials of a class"
        return Remark.of("no-test/too-few", units=cell.units, what=what, level=plan.level)
    if cell.hides(i, j, plan.level):
        return Remark.of("no-test/no-error")
    return None


def _verdict(row: Difference, cell: RankedSlice, i: int, j: int, level: float) -> Difference:
    """Add the verdict that follows from the adjusted p value; `identical` if all replicates of both runs are equal."""
    if row.delta == 0.0 and len(cell.drawn[i]) and np.array_equal(cell.drawn[i], cell.drawn[j]):
        return replace(row, verdict=IDENTICAL)
    return judged(row, level)


def _families(cells: Sequence[RankedSlice]) -> list[Family]:
    found: dict[tuple[object, ...], list[RankedSlice]] = {}
    for cell in cells:
        found.setdefault(cell.family, []).append(cell)
    return [Family(own) for own in found.values()]


def is_sliced(where: Mapping[str, str], groupings: Sequence[Grouping]) -> bool:
    """Return whether a number belongs to a table by slice."""
    return any({*grouping} <= {*where} for grouping in groupings)


def ranked_runs(names: tuple[str, ...], duels: Sequence[Duel], alpha: float) -> list[RankedRun]:
    """Return, per metric and slice, the runs from best to worst with their letters and ranks."""
    found: list[RankedRun] = []
    cells: dict[tuple[object, ...], list[Duel]] = {}
    for duel in duels:
        d = duel.difference
        cells.setdefault((d.metric, d.average, tuple(d.slice.items())), []).append(duel)
    for own in cells.values():
        values = {d.a: d.difference.a for d in own} | {d.b: d.difference.b for d in own}
        one = own[0].difference
        order = sorted(names, key=lambda n: _place(values.get(n), one.best))
        told = [(d.a, d.b) for d in own if d.difference.p_adjusted is not None and d.difference.p_adjusted < alpha]
        place = {name: i for i, name in enumerate(order)}
        better = [(a, b) if place[a] < place[b] else (b, a) for a, b in told]
        defined = [name for name in order if values.get(name) is not None]
        tested = any(d.difference.p_adjusted is not None for d in own)
        between = ranks(order, better, defined) if tested else {}
        signs = letters(order, told)
        for n in order:
            low, high = between.get(n, (None, None))
            sign = signs[n] if n in defined else ""
            row = RankedRun(
                title_of(one), n, values.get(n), sign, one.best, dict(one.slice), one.average, one.n_pairs, low, high
            )
            found.append(row)
    return found


def _sign(
    made: Ranking, runs: Field, plan: SamplingPlan, groupings: Sequence[Grouping], protocol: Protocol, force: bool
) -> str:
    """Return one line that records every choice and a hash of the numbers."""
    head = runs.columns[0].trials.header
    figures = "\n".join(
        repr(
            (
                d.a,
                d.b,
                e.metric,
                sorted(e.slice.items()),
                e.average,
                *map(_rounded, (e.a, e.b, e.low, e.high, e.p_adjusted)),
            )
        )
        for d in made.duels
        for e in (d.difference,)
    )
    parts = {
        "hitmiss": __version__,
        "compare": "all-pairs",
        "protocol": protocol.name or "none",
        "metrics": "+".join(
            str(MetricSpec.of(q.metric.name, **q.settings)).replace(" ", "") for q in runs.questions[0]
        ),
        "pos": head.positive,
        "kind": head.score_kind,
        "by": ",".join("*".join(g) for g in groupings) or "none",
        "correction": made.correction,
        "boot": str(plan),
        "level": f"{plan.level:g}",
        "forced": "yes" if force else "none",
        "left-out": "/".join(str(n) for n in runs.left_out.values()) or "none",
        "complete": "none" if runs.there is None or runs.there.is_full else f"{runs.there.n}/{runs.there.of}",
        "n": "/".join(map(str, size_of(runs.columns[0].trials))),
        "runs": "+".join(dict.fromkeys(digest(c.trials) for c in runs.columns)),
        "numpy": np.__version__,
        "out": hashlib.sha256(figures.encode()).hexdigest()[:SHORT],
    }
    return render(parts)


def _rounded(value: float | None) -> str:
    return "-" if value is None else f"{value:.9e}"


def title_of(d: Difference) -> str:
    """Return a metric with the slice and the average of a number, as text."""
    where = ", ".join(f"{k}={v}" for k, v in d.slice.items())
    return f"{f'{d.average} ' if d.average else ''}{d.metric}{f' [{where}]' if where else ''}"


def _place(value: float | None, best: str) -> tuple[bool, float]:
    if value is None:
        return True, 0.0
    return False, value if best == "low" else -value
