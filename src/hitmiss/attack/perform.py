"""Perturbations carried out: any mix of configurations on any records, those of one kind together in one batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from hitmiss.attack import blackbox
from hitmiss.attack.batch import Floats, batched_families, check_signals, deviations, make_records, pick
from hitmiss.attack.config import PerturbationConfig, same_kind
from hitmiss.attack.criterion import any_bit
from hitmiss.attack.gradient import Mask, Problem, solve, within_budget
from hitmiss.attack.hop_skip_jump import Aim, hop_skip_jump
from hitmiss.attack.leads import consistent, need_twelve
from hitmiss.attack.methods import METHODS, Method, find_method
from hitmiss.attack.model import Classifier, ahead, binarize
from hitmiss.attack.peaks import detect_all
from hitmiss.attack.result import powers
from hitmiss.attack.window import hann_windows
from hitmiss.detect.extract import to_probability
from hitmiss.errors import DataError, UnknownName, UsageError

FEW = 32
"""Records that are perturbed together: so few that they stay in the processor's cache."""
MOST_THREADS = 2
"""More hinder each other: a good part of the work is Python's."""
DETECTED = "R peaks detected by hitmiss"
Bits = NDArray[np.int8]
Notes = tuple[str, ...] | list[tuple[str, ...]]
"""What there is to say about all records, or about each."""
Gradients = dict[int, NDArray[np.float32]]
"""The gradient of each record (by place) where an attack begins: it is the same for every strength."""


@dataclass(eq=False)
class Records:
    """Records with what is known of them: signals, truth, the model, and the clean predictions, computed once."""

    x: Floats
    y: Floats | None
    fs: float
    model: Classifier | None = None
    classes: tuple[str, ...] = ()
    threshold: ArrayLike = 0.5
    peaks: Sequence[Any] | None = None
    batch: int = 32
    _clean: Floats | None = field(default=None, repr=False)
    _found: dict[int, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.x = check_signals(self.x)
        if self.y is not None:
            self.y = np.atleast_2d(np.asarray(self.y, dtype=np.float64))
            if len(self.y) != len(self.x):
                raise DataError(f"{len(self.x)} records and {len(self.y)} rows of truth")
            if not np.isin(self.y, (0.0, 1.0)).all():
                wrong = self.y[~np.isin(self.y, (0.0, 1.0))]
                raise DataError(f"y_true holds 0 and 1; found {wrong[0]:g} ({len(wrong)} values are neither)")
        if not 0.0 < self.fs < np.inf:
            raise UsageError(f"a sample rate is a number of samples a second above 0; found fs={self.fs}")
        if self.peaks is not None and len(self.peaks) != len(self.x):
            raise DataError(f"{len(self.x)} records and R peaks of {len(self.peaks)}")

    def bits(self, proba: ArrayLike) -> Bits:
        """What the model answers, as bits."""
        return binarize(proba, self.threshold) if self.model is None else self.model.bits(proba, self.threshold)

    @cached_property
    def clean(self) -> Floats:
        """Log-odds of the records as they are."""
        if self._clean is not None:
            return self._clean
        if self.model is None:
            raise UsageError("this needs a model")
        return self.model.log_odds(self.x)

    @cached_property
    def spread(self) -> Floats:
        """The deviation of each lead, computed once for every strength."""
        return deviations(self.x)

    @cached_property
    def power(self) -> Floats:
        """The power of each record, computed once for every strength."""
        return powers(self.x)

    def beats(self, rows: Sequence[int]) -> tuple[list[Any], bool]:
        """The R peaks of some records, and whether any had to be found; what was found is kept for the next strength."""
        given = [None if self.peaks is None else self.peaks[at] for at in rows]
        missing = [at for at, own in zip(rows, given, strict=True) if own is None]
        new = [at for at in missing if at not in self._found]
        self._found.update(zip(new, detect_all(self.x[new], self.fs), strict=True))
        return [self._found[at] if own is None else own for at, own in zip(rows, given, strict=True)], bool(missing)

    @property
    def clean_bits(self) -> Bits:
        """The clean predictions, decided."""
        return self.bits(to_probability(self.clean))

    @property
    def limits(self) -> Floats:
        """The thresholds as log-odds, one a class."""
        cut = np.broadcast_to(np.asarray(self.threshold, dtype=np.float64), self.clean.shape[1:])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(cut) - np.log1p(-cut))

    def target_of(self, config: PerturbationConfig) -> int:
        """The place of the class that a configuration aims at, −1 for none."""
        if config.target_class is None:
            return -1
        if config.target_class not in self.classes:
            raise UnknownName("class", config.target_class, self.classes)
        width = None if self.model is None else self.clean.shape[1]
        if width not in (None, len(self.classes)):
            raise UsageError(
                f"the model gives {width} outputs and {len(self.classes)} classes are named; name each: classes=…"
            )
        return self.classes.index(config.target_class)


@dataclass(frozen=True, eq=False)
class Performed:
    """The changed signals, and what there is to say about each record."""

    x: Floats
    zero_gradient: Mask
    budget: Floats
    """The norm that was allowed; infinite where a family has no budget."""
    norm: list[str]
    notes: list[tuple[str, ...]]

    def share_used(self, x: Floats) -> Floats:
        """How much of its budget each record used, 0 to 1; 1 where a family has none."""
        flat = np.abs(self.x - x).reshape(len(x), -1)
        is_l2 = np.array([norm == "l2" for norm in self.norm])
        used = np.where(is_l2, np.linalg.norm(flat, axis=1), flat.max(axis=1, initial=0.0))
        return np.where(np.isinf(self.budget), 1.0, np.minimum(used / np.maximum(self.budget, 1e-300), 1.0))

    def take(self, places: NDArray[np.int64], other: Performed, which: Mask) -> None:
        """Put some records of another outcome in the place of ours."""
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
    """Carry out one configuration on each of some records (by place), each with its own generator.

    `first` remembers gradients from one attempt to the next, for attempts that differ in nothing but their strength.
    """
    n = len(rows)
    if not n == len(configs) == len(rngs):
        raise UsageError(f"{n} records, {len(configs)} configurations and {len(rngs)} generators; one each is needed")
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
    """Parts that do not touch each other, on a few threads: numpy lets go of the interpreter in its long loops."""
    if len(starts) < 2:
        for start in starts:
            work(start)
        return
    with ThreadPoolExecutor(min(os.cpu_count() or 1, MOST_THREADS)) as pool:
        list(pool.map(work, starts))


@dataclass(eq=False)
class _Group:
    """Configurations of one kind, and the records that they are for."""

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
        """Record × sample."""
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
        """Do it and put what came of it where it belongs."""
        if not self.first.needs_model:
            self._without_model(out.x, places, out.notes)
            return
        if self.first.family in METHODS:
            found, budget, norm, zero, notes = self._by_gradient()
        else:
            found, budget, norm, zero, notes = self._by_asking()
        out.x[places], out.budget[places], out.zero_gradient[places] = found, budget, zero
        for i, at in enumerate(places):
            out.norm[at], out.notes[at] = norm, notes[i] if isinstance(notes, list) else notes

    def _without_model(self, out: Floats, places: Sequence[int], notes: list[tuple[str, ...]]) -> None:
        """A few records at a time, each put where it belongs while it is still in the cache."""
        entry, records = batched_families()[self.first.family], self.records
        peaks, are_found = records.beats(self.rows) if entry.needs_peaks else (None, False)
        spread, strength = records.spread, self.strength

        def few(start: int) -> None:
            at = slice(start, start + FEW)
            rows, configs = self.rows[at], self.configs[at]
            batch = make_records(
                pick(records.x, rows), strength[at], self.rngs[at], fs=records.fs, center_time=[c.center_time for c in configs],
                window_seconds=[c.window_seconds for c in configs], peaks=None if peaks is None else peaks[at],
                spread=spread[rows],
            )  # fmt: skip
            out[places[at]] = entry.apply(batch, lead_consistent=self.is_consistent, **self.first.settings)

        _threaded(few, range(0, len(self.rows), FEW))
        for at in places:
            notes[at] = (DETECTED,) if are_found else ()

    def _by_gradient(self) -> tuple[Floats, Any, str, Any, Notes]:
        method = find_method(self.first.family, **self.first.settings)
        budget = self.strength * method.eps_max
        batch = min(self.records.batch, self._model.fixed or self.records.batch)
        outcome = solve(self._model, self._problem(method), method, self.first.family, batch)
        if self.gradients is not None:
            self.gradients.update(zip(self.rows, outcome.first, strict=True))
        return self.records.x[self.rows] + outcome.delta, budget, method.norm, outcome.zero_gradient, ()

    def _problem(self, method: Method) -> Problem:
        records = self.records
        return Problem(
            records.x[self.rows], self._reference(), self.target, self.value, self.strength * method.eps_max, self.window,
            records.fs, self.is_consistent, self.first.target_loss == "vector",
            self._judge() if self.first.extra.get("early_stop") else None, self._known(),
            self._model.single_label, self.first.loss,
        )  # fmt: skip

    def _known(self) -> NDArray[np.float32] | None:
        """The gradients where the attack begins, if all of them are known."""
        kept = self.gradients or {}
        return np.stack([kept[at] for at in self.rows]) if all(at in kept for at in self.rows) else None

    @property
    def _model(self) -> Classifier:
        if self.records.model is None:
            raise UsageError(f"{self.first.family} needs a model")
        return self.records.model

    def _reference(self) -> Floats:
        """The bits that an untargeted attack climbs away from."""
        records = self.records
        if self.first.attack_from == "prediction":
            return records.clean_bits[self.rows].astype(np.float64)
        if records.y is None:
            raise UsageError(f"{self.first.family} needs y_true, or extra={{'attack_from': 'prediction'}}")
        return records.y[self.rows]

    def _judge(self) -> Callable[[Any, Floats], Mask]:
        """Whether records (by place in the group) have flipped at these probabilities."""
        clean, criterion, target = self.records.clean_bits[self.rows], self.first.criterion, self.target
        return lambda at, p: criterion(clean[at], self.records.bits(p), target[at])

    def _by_asking(self) -> tuple[Floats, Any, str, Any, Notes]:
        settings = {**blackbox.SETTINGS[self.first.family], **self.first.settings}
        budget, x = self.strength * settings.pop("eps_max"), self.records.x[self.rows]
        shape = consistent if self.is_consistent else (lambda delta: delta)
        if self.is_consistent:
            need_twelve(x.shape[2])
        if self.first.family == "hop_skip_jump":
            return self._by_hopping(x, budget, shape, settings)
        delta, _ = blackbox.random_search(
            x, self._margin, budget, self.window[:, :, None], self.rngs, shape=shape, **settings
        )
        return x + delta, budget, "linf", False, ()

    def _by_hopping(
        self, x: Floats, budget: Floats, shape: Callable[[Floats], Floats], settings: dict[str, Any]
    ) -> tuple[Floats, Any, str, Any, Notes]:
        """One record after another: how many questions each takes depends on the answers."""
        if (self.target >= 0).any() or self.first.criterion is not any_bit:
            raise UsageError("hop_skip_jump flips any bit; it cannot aim at a class or at another criterion")
        stop = bool(self.first.extra.get("early_stop"))
        changed = x.copy()
        notes: list[tuple[str, ...]] = []
        for i, record in enumerate(x):
            window = self.window[i][:, None]
            aim = Aim(record, lambda free, w=window: shape(free) * w, self._bits, float(budget[i]), self.rngs[i])  # type: ignore[misc]
            delta, remark = hop_skip_jump(aim, early_stop=stop, **settings)
            changed[i] += within_budget(delta[None], budget[i : i + 1], "l2")[0]
            notes.append((remark,) if remark else ())
        return changed, budget, "l2", False, notes

    def _bits(self, x: Any) -> Bits:
        return self.records.bits(self._model.proba(x))

    def _margin(self, at: NDArray[np.int64], x: Floats) -> Floats:
        clean, odds, limits = self.records.clean_bits[self.rows][at], self._model.log_odds(x), self.records.limits
        if self._model.single_label:  # how far each class is ahead of the best other: above 0 for the answer alone
            odds, limits = ahead(odds), np.zeros_like(limits)
        return blackbox.margins(odds, limits, clean, self.target[at], self.value[at])
