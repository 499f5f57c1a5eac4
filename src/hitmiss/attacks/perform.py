"""Run perturbations: any mix of configurations on any records, with those of one kind together in one batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from hitmiss.attacks import queries
from hitmiss.attacks.arrays import Floats
from hitmiss.attacks.batched import batched_families, check_signals, deviations, make_records, pick
from hitmiss.attacks.config import STEERING, PerturbationConfig, same_kind
from hitmiss.attacks.criteria import Mask
from hitmiss.attacks.gradient import Problem, random_start, solve, within_budget
from hitmiss.attacks.hop_skip_jump import RecordUnderAttack, hop_skip_jump
from hitmiss.attacks.leads import consistent, need_twelve
from hitmiss.attacks.methods import METHODS, Method, find_method
from hitmiss.attacks.minimal import AttemptResult, Ints, minimal_strength
from hitmiss.attacks.model import Classifier, ahead, binarize
from hitmiss.attacks.peaks import detect_all
from hitmiss.attacks.queries import margins
from hitmiss.attacks.result import powers
from hitmiss.attacks.windows import hann_windows
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detection.outputs import to_probability

RECORDS_TOGETHER = 32
"""Records that are perturbed together: few enough to stay in the CPU cache."""
MOST_THREADS = 2
"""More threads slow each other down: much of the work is in Python."""
DETECTED = "R peaks detected by hitmiss"
Bits = NDArray[np.int8]
Notes = tuple[str, ...] | list[tuple[str, ...]]
"""Notes about all records, or about each."""
Changed = tuple[Floats, Floats, str, Mask | bool, Notes]
"""Changed signals, budgets and their norm, which records have a zero gradient, notes."""
Gradients = dict[int, NDArray[np.float32]]
"""The gradient of each record (by position) at the start of an attack: it is the same for every strength."""


@dataclass(eq=False)
class Records:
    """Records with their signals, truth, model, and the clean predictions, which are computed once."""

    x: Floats
    y: Floats | None
    fs: float
    model: Classifier | None = None
    classes: tuple[str, ...] = ()
    threshold: ArrayLike = 0.5
    peaks: Sequence[ArrayLike | None] | None = None
    batch: int = 32
    _clean: Floats | None = field(default=None, repr=False)
    _found: dict[int, Ints] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.x = check_signals(self.x)
        if self.y is not None:
            self.y = np.atleast_2d(np.asarray(self.y, dtype=np.float64))
            if len(self.y) != len(self.x):
                raise DataError.of("bad-truth/rows", n_x=len(self.x), n_y=len(self.y))
            if not np.isin(self.y, (0.0, 1.0)).all():
                wrong = self.y[~np.isin(self.y, (0.0, 1.0))]
                raise DataError.of("bad-truth", wrong=wrong[0], n_wrong=len(wrong))
        if not 0.0 < self.fs < np.inf:
            raise UsageError.of("out-of-range/above", name="the sample rate, fs,", low=0, found=self.fs)
        if self.peaks is not None and len(self.peaks) != len(self.x):
            raise DataError.of("bad-peaks/count", n_x=len(self.x), n_peaks=len(self.peaks))

    def bits(self, proba: ArrayLike) -> Bits:
        """Return the model's answers as bits."""
        return binarize(proba, self.threshold) if self.model is None else self.model.bits(proba, self.threshold)

    @cached_property
    def clean(self) -> Floats:
        """The log-odds of the unchanged records."""
        if self._clean is not None:
            return self._clean
        if self.model is None:
            raise UsageError.of("needs-model", what="this")
        return self.model.log_odds(self.x)

    @cached_property
    def spread(self) -> Floats:
        """The deviation of each lead, computed once for every strength."""
        return deviations(self.x)

    @cached_property
    def power(self) -> Floats:
        """The power of each record, computed once for every strength."""
        return powers(self.x)

    def beats(self, rows: Sequence[int]) -> tuple[list[ArrayLike], bool]:
        """Return the R peaks of some records, and whether any had to be detected; detected ones are cached."""
        given = [None if self.peaks is None else self.peaks[at] for at in rows]
        missing = [at for at, own in zip(rows, given, strict=True) if own is None]
        new = [at for at in missing if at not in self._found]
        self._found.update(zip(new, detect_all(self.x[new], self.fs), strict=True))
        return [self._found[at] if own is None else own for at, own in zip(rows, given, strict=True)], bool(missing)

    @property
    def clean_bits(self) -> Bits:
        """The clean predictions as bits."""
        return self.bits(to_probability(self.clean))

    @property
    def limits(self) -> Floats:
        """The thresholds as log-odds, one per class."""
        cut = np.broadcast_to(np.asarray(self.threshold, dtype=np.float64), self.clean.shape[1:])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(cut) - np.log1p(-cut))

    def target_of(self, config: PerturbationConfig) -> int:
        """Return the position of the class that a configuration targets, −1 for none."""
        if config.target_class is None:
            return -1
        if config.target_class not in self.classes:
            raise UnknownName("class", config.target_class, self.classes)
        width = None if self.model is None else self.clean.shape[1]
        if width not in (None, len(self.classes)):
            raise UsageError.of("output-count", name="the model", n=width, n_classes=len(self.classes))
        return self.classes.index(config.target_class)


@dataclass(frozen=True, eq=False)
class Performed:
    """The changed signals, and notes about each record."""

    x: Floats
    zero_gradient: Mask
    budget: Floats
    """The allowed norm; infinite if a family has no budget."""
    norm: list[str]
    notes: list[tuple[str, ...]]

    def share_used(self, x: Floats) -> Floats:
        """Return the share of its budget that each record used, 0 to 1; 1 if a family has no budget."""
        flat = np.abs(self.x - x).reshape(len(x), -1)
        is_l2 = np.array([norm == "l2" for norm in self.norm])
        used = np.where(is_l2, np.linalg.norm(flat, axis=1), flat.max(axis=1, initial=0.0))
        return np.where(np.isinf(self.budget), 1.0, np.minimum(used / np.maximum(self.budget, 1e-300), 1.0))

    def take(self, places: NDArray[np.int64], other: Performed, which: Mask) -> None:
        """Replace some records by those of another result."""
        for name in ("x", "zero_gradient", "budget"):
            getattr(self, name)[places] = getattr(other, name)[which]
        for at, source in zip(places.tolist(), np.flatnonzero(which).tolist(), strict=True):
            self.norm[at], self.notes[at] = other.norm[source], other.notes[source]


def perform(
    records: Records,
    rows: Sequence[int],
    configs: Sequence[PerturbationConfig],
    rngs: Sequence[Generator],
    first: Gradients | None = None,
) -> Performed:
    """Run one configuration on each of some records (by position), each with its own generator.

    `first` caches gradients between attempts that differ only in their strength.
    """
    n = len(rows)
    if not n == len(configs) == len(rngs):
        raise UsageError.of("unequal-counts", n=n, n_configs=len(configs), n_each=len(rngs), what="generators")
    out = Performed(
        np.empty((n, *records.x.shape[1:])), np.zeros(n, dtype=bool), np.full(n, np.inf), [""] * n, [()] * n
    )
    for places in same_kind(configs).values():
        acting = [at for at in places if configs[at].strength > 0.0]
        for at in set(places).difference(acting):
            out.x[at] = records.x[rows[at]]
        if acting:
            _Group(
                records, [rows[at] for at in acting], [configs[at] for at in acting], [rngs[at] for at in acting], first
            ).into(out, acting)
    return out


def _threaded(work: Callable[[int], None], starts: Sequence[int]) -> None:
    """Run independent parts on a few threads: numpy releases the interpreter lock in its long loops."""
    if len(starts) < 2:
        for start in starts:
            work(start)
        return
    with ThreadPoolExecutor(min(os.cpu_count() or 1, MOST_THREADS)) as pool:
        list(pool.map(work, starts))


@dataclass(eq=False)
class _Group:
    """Configurations of one kind, and their records."""

    records: Records
    rows: list[int]
    configs: list[PerturbationConfig]
    rngs: list[Generator]
    gradients: Gradients | None = None

    @property
    def first(self) -> PerturbationConfig:
        return self.configs[0]

    @property
    def strength(self) -> Floats:
        return np.array([c.strength for c in self.configs])

    @cached_property
    def window(self) -> Floats:
        """The windows: record × sample."""
        centers = [c.center_time for c in self.configs]
        return hann_windows(self.records.x.shape[1], self.records.fs, centers, [c.window_seconds for c in self.configs])

    @cached_property
    def target(self) -> NDArray[np.int64]:
        return np.array([self.records.target_of(c) for c in self.configs], dtype=np.int64)

    @property
    def value(self) -> Floats:
        return np.array([c.target_value for c in self.configs])

    @property
    def is_consistent(self) -> bool:
        return bool(self.first.extra.get("lead_consistent", False))

    def into(self, out: Performed, places: Sequence[int]) -> None:
        """Run it and store the results at their positions."""
        if not self.first.needs_model:
            self._without_model(out.x, places, out.notes)
            return
        found, budget, norm, zero, notes = self.changed()
        out.x[places], out.budget[places], out.zero_gradient[places] = found, budget, zero
        for i, at in enumerate(places):
            out.norm[at], out.notes[at] = norm, notes[i] if isinstance(notes, list) else notes

    def changed(self) -> Changed:
        """Return the changed signals, the budgets and their norm, the zero-gradient records, and notes."""
        if self.first.family in METHODS:
            return self._by_gradient()
        return self._by_ensemble() if self.first.family == "worst_case" else self._by_asking()

    def _without_model(self, out: Floats, places: Sequence[int], notes: list[tuple[str, ...]]) -> None:
        """Process a few records at a time, and store each while it is still in the cache."""
        entry, records = batched_families()[self.first.family], self.records
        peaks, are_found = records.beats(self.rows) if entry.needs_peaks else (None, False)
        spread, strength = records.spread, self.strength

        def few(start: int) -> None:
            at = slice(start, start + RECORDS_TOGETHER)
            rows, configs = self.rows[at], self.configs[at]
            batch = make_records(
                pick(records.x, rows), strength[at], self.rngs[at], fs=records.fs, center_time=[c.center_time for c in configs],
                window_seconds=[c.window_seconds for c in configs], peaks=None if peaks is None else peaks[at],
                spread=spread[rows],
            )  # fmt: skip
            out[places[at]] = entry.apply(batch, lead_consistent=self.is_consistent, **self.first.settings)

        _threaded(few, range(0, len(self.rows), RECORDS_TOGETHER))
        for at in places:
            notes[at] = (DETECTED,) if are_found else ()

    def _by_gradient(self) -> Changed:
        method = find_method(self.first.family, **self.first.settings)
        budget = self.strength * method.eps_max
        batch = min(self.records.batch, self._model.fixed or self.records.batch)
        problem = self._problem(method)
        outcome = solve(self._model, problem, method, self.first.family, batch)
        if self.gradients is not None:
            self.gradients.update(zip(self.rows, outcome.first, strict=True))
        found = self.records.x[self.rows] + outcome.delta
        if method.restarts > 1:
            found = self._restarted(found, replace(problem, first=None), method, batch)
        return found, budget, method.norm, outcome.zero_gradient, ()

    def _restarted(self, x: Floats, problem: Problem, method: Method, batch: int) -> Floats:
        """Return the best of several attempts: records that have not flipped start again from a random point."""
        best = _BestSoFar(self, x)
        for _ in range(1, method.restarts):
            left = best.left
            if not len(left):
                break
            rngs, budget = [self.rngs[at] for at in left], problem.budget[left]
            again = replace(problem.part(left), start=random_start(rngs, budget, x.shape[1:], method.norm))
            best.offer(left, again.x + solve(self._model, again, method, self.first.family, batch).delta)
        return best.x

    def _by_ensemble(self) -> Changed:
        """Return, per record, the best of the fixed ensemble: each member works on the records not yet flipped."""
        settings = {**queries.BLACKBOX_SETTINGS["worst_case"], **self.first.settings}
        members = {
            "pgd": {"steps": settings["steps"], "restarts": settings["restarts"]},
            "apgd": {"steps": settings["steps"]},
            "square": {"queries": settings["queries"]},
        }
        if self._model.differentiable is None:
            members = {"square": members["square"]}
        best, zero = _BestSoFar(self, self.records.x[self.rows]), np.zeros(len(self.rows), dtype=bool)
        notes: list[tuple[str, ...]] = [("worst_case: no member flipped it",) for _ in self.rows]
        steering = {key: value for key, value in self.first.extra.items() if key in STEERING}
        for family, own in members.items():
            left = best.left
            if not len(left):
                break
            extra = {**steering, **own, "eps_max": settings["eps_max"]}
            group = _Group(
                self.records,
                [self.rows[at] for at in left],
                [replace(self.configs[at], ptype=family, extra=extra) for at in left],
                [self.rngs[at] for at in left],
            )
            found, _, _, flat, _ = group.changed()
            zero[left] |= flat
            best.offer(left, found)
            for at in np.setdiff1d(left, best.left).tolist():
                notes[at] = (f"worst_case: flipped by {family}",)
        return best.x, self.strength * settings["eps_max"], "linf", zero, notes

    def _problem(self, method: Method) -> Problem:
        records = self.records
        return Problem(
            records.x[self.rows], self._reference(), self.target, self.value, self.strength * method.eps_max, self.window,
            records.fs, self.is_consistent, self.first.target_loss == "vector",
            self._judge() if self.first.extra.get("early_stop") else None, self._known(),
            self._model.single_label, self.first.loss,
        )  # fmt: skip

    def _known(self) -> NDArray[np.float32] | None:
        """Return the gradients at the start of the attack, if all of them are known."""
        kept = self.gradients or {}
        return np.stack([kept[at] for at in self.rows]) if all(at in kept for at in self.rows) else None

    @property
    def _model(self) -> Classifier:
        if self.records.model is None:
            raise UsageError.of("needs-model", what=self.first.family)
        return self.records.model

    def _reference(self) -> Floats:
        """The bits from which an untargeted attack moves away."""
        records = self.records
        if self.first.attack_from == "prediction":
            return records.clean_bits[self.rows].astype(np.float64)
        if records.y is None:
            raise UsageError.of("no-truth", family=self.first.family)
        return records.y[self.rows]

    def flips(self, at: NDArray[np.int64], x: Floats) -> Mask:
        """Return whether signals of records (by position in the group) have flipped."""
        return np.asarray(self._judge()(at, self._model.proba(x)))

    def _judge(self) -> Callable[[Ints, Floats], Mask]:
        """Return a function that says whether records (by position in the group) have flipped at probabilities."""
        clean, criterion, target = self.records.clean_bits[self.rows], self.first.criterion, self.target
        return lambda at, p: criterion(clean[at], self.records.bits(p), target[at])

    def _by_asking(self) -> Changed:
        settings = {**queries.BLACKBOX_SETTINGS[self.first.family], **self.first.settings}
        budget, x = self.strength * settings.pop("eps_max"), self.records.x[self.rows]
        shape = consistent if self.is_consistent else (lambda delta: delta)
        if self.is_consistent:
            need_twelve(x.shape[2])
        if self.first.family == "hop_skip_jump":
            return self._by_hopping(x, budget, shape, settings)
        delta, _ = queries.random_search(
            x, self.margin, budget, self.window[:, :, None], self.rngs, shape=shape, **settings
        )
        return x + delta, budget, "linf", False, ()

    def _by_hopping(
        self, x: Floats, budget: Floats, shape: Callable[[Floats], Floats], settings: dict[str, Any]
    ) -> Changed:
        """Process one record after another: how many queries each takes depends on the answers."""
        if (self.target >= 0).any():
            raise UsageError.of("target-unused/any-bit")
        stop = bool(self.first.extra.get("early_stop"))
        changed = x.copy()
        notes: list[tuple[str, ...]] = []
        for i, record in enumerate(x):

            def windowed(free: Floats, window: Floats = self.window[i][:, None]) -> Floats:
                return shape(free) * window

            aim = RecordUnderAttack(record, windowed, self._bits, float(budget[i]), self.rngs[i])
            delta, remark = hop_skip_jump(aim, early_stop=stop, **settings)
            changed[i] += within_budget(delta[None], budget[i : i + 1], "l2")[0]
            notes.append((remark,) if remark else ())
        return changed, budget, "l2", False, notes

    def _bits(self, x: Floats) -> Bits:
        return self.records.bits(self._model.proba(x))

    def margin(self, at: NDArray[np.int64], x: Floats) -> Floats:
        clean, odds, limits = self.records.clean_bits[self.rows][at], self._model.log_odds(x), self.records.limits
        if self._model.single_label:  # the lead of each class over the best other: above 0 only for the answer
            odds, limits = ahead(odds), np.zeros_like(limits)
        return queries.margins(odds, limits, clean, self.target[at], self.value[at])


class _BestSoFar:
    """The best result so far of each record of a group: one that flips it, else the nearest."""

    def __init__(self, group: _Group, x: Floats) -> None:
        self.group, self.x = group, x.copy()
        every = np.arange(len(x))
        self.has_flipped, self.margin = group.flips(every, x), group.margin(every, x)

    @property
    def left(self) -> NDArray[np.int64]:
        """Return the records (by position) that have not flipped."""
        return np.flatnonzero(~self.has_flipped)

    def offer(self, at: NDArray[np.int64], x: Floats) -> None:
        """Take in another result of some records that have not flipped."""
        flips, margin = self.group.flips(at, x), self.group.margin(at, x)
        better = flips | (margin < self.margin[at])
        self.x[at[better]], self.margin[at[better]] = x[better], margin[better]
        self.has_flipped[at] |= flips


def least_strengths(
    records: Records,
    config: PerturbationConfig,
    rows: Sequence[int],
    rng_of: Callable[[int], Generator],
    *,
    rounds: int = 7,
) -> tuple[Floats, Performed]:
    """Return the minimum strength at which each record flipped (infinite if it never does), and what flipped it.

    An attack that flips a record with less than its budget has flipped it at that smaller strength. Every attempt at a
    record uses the same generator, so that noise grows with strength but keeps its shape.
    """
    if records.model is None:
        raise UsageError.of("needs-model", what="a search for least strengths")
    model, places = records.model, np.asarray(rows, dtype=np.int64)
    criterion, target, clean = config.criterion, records.target_of(config), records.clean_bits
    quick = replace(config, extra={**config.extra, "early_stop": True}) if config.needs_gradient else config
    best: list[Performed] = []
    first: Gradients = {}

    def attempt(at: NDArray[np.int64], strength: Floats) -> AttemptResult:
        own = places[at]
        tried = [replace(quick, strength=float(s)) for s in strength]
        done = perform(records, own.tolist(), tried, [rng_of(int(row)) for row in own], first)
        log_odds = model.log_odds(done.x)
        flips = criterion(clean[own], records.bits(to_probability(log_odds)), np.full(len(own), target))
        best.append(done) if not best else best[0].take(at[flips], done, flips)
        used = strength * done.share_used(records.x[own])
        return AttemptResult(np.where(flips, used, np.inf), _margin(records, config, own, log_odds))

    start = _margin(records, config, places, records.clean[places])
    return minimal_strength(attempt, len(places), rounds=rounds, start=start), best[0]


def _margin(records: Records, config: PerturbationConfig, rows: NDArray[np.int64], log_odds: Floats) -> Floats:
    """Return the distance of records from flipping the target bit, or any."""
    target, value = np.full(len(rows), records.target_of(config)), np.full(len(rows), config.target_value)
    return margins(log_odds, records.limits, records.clean_bits[rows], target, value)
