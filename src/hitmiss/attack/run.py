"""Attacks on many records: every configuration on every record, in batches, into a run folder or into memory.

Each (record, configuration) has a generator of its own, named after both; whatever the batch size, the order, or how often
the run was interrupted, the same changes come out. Beside each attack goes a control: random signs under the same window,
with the same L2 norm, so that what a mere disturbance of that size does stands next to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.random import Generator
from numpy.typing import NDArray

from hitmiss.attack.batch import Floats
from hitmiss.attack.config import PerturbationConfig
from hitmiss.attack.data import Recordings
from hitmiss.attack.model import Classifier
from hitmiss.attack.perform import Records, binarize, perform
from hitmiss.attack.result import norms, smoothness, snr_db
from hitmiss.attack.search import minimal_strength
from hitmiss.attack.window import hann_windows
from hitmiss.campaign import CLEAN, CONTROL
from hitmiss.detect.extract import to_probability
from hitmiss.errors import DataError, UsageError
from hitmiss.io.runs import start
from hitmiss.results import finite, infinite
from hitmiss.stats.seeds import generator
from hitmiss.trials import Header, Trials

MINIMAL: Final = "minimal"
NUMBERS: Final = ("delta_l2", "delta_linf", "snr_db", "smoothness", "zero_gradient", "budget", "budget_used")
PART: Final = 64
"""Records that are worked on together; it changes no result."""
Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """What is done: configurations, searches for the least strength, controls, and the seed."""

    configs: tuple[PerturbationConfig, ...]
    searches: tuple[PerturbationConfig, ...] = ()
    control: bool = True
    rounds: int = 7
    seed: int = 0

    @property
    def steps(self) -> list[tuple[str, PerturbationConfig | None]]:
        """Every step in order: the clean records, the attacks, the searches."""
        named = [(str(c), c) for c in self.configs]
        named += [(f"{MINIMAL} {c}", c) for c in self.searches]
        if len({name for name, _ in named}) != len(named):
            twice = next(name for name, _ in named if [n for n, _ in named].count(name) > 1)
            raise UsageError(f"the attack {twice!r} is asked for twice")
        return [(CLEAN, None), *named]

    @property
    def pinned(self) -> dict[str, Any]:
        """What a resumed run must agree on."""
        return {
            "attacks": [name for name, _ in self.steps],
            "control": self.control,
            "rounds": self.rounds,
            "seed": self.seed,
        }


def sweep(
    families: Sequence[str],
    strengths: Sequence[float],
    *,
    center_time: float = 0.0,
    window_seconds: float | None = None,
    aims: Sequence[tuple[str, str]] = (),
    extra: dict[str, dict[str, Any]] | None = None,
) -> tuple[PerturbationConfig, ...]:
    """Every family at every strength, and at every aim (class, mode) where there are some; `extra` by family.

    >>> [str(c) for c in sweep(["band_noise"], [0.1, 0.2])]
    ['band_noise 0.1', 'band_noise 0.2']
    """
    made = []
    for family in families:
        own = dict((extra or {}).get(family, {}))
        for aim, mode in aims or ((None, None),):
            made += [PerturbationConfig(family, s, center_time, window_seconds, aim, mode, own) for s in strengths]
    return tuple(made)


@dataclass(eq=False)
class Campaigner:
    """Recordings under a plan: makes the record of any step and any recording, one batch at a time."""

    recordings: Recordings
    model: Classifier
    plan: Plan
    threshold: Any = 0.5
    peaks: Sequence[Any] | None = None
    batch: int = 32
    records: Records = field(init=False)

    def __post_init__(self) -> None:
        data = self.recordings
        self.records = Records(
            data.x, data.y.astype(np.float64), data.fs, self.model, data.classes, self.threshold, self.peaks, self.batch
        )
        for _, config in self.plan.steps:
            if config is not None:
                self.records.target_of(config)
                self.model.need_gradient(config.family) if config.needs_gradient else None
        width = self.records.clean.shape[1]
        if width != len(data.classes):
            raise DataError(f"{self.model.name} gives {width} outputs and the data has {len(data.classes)} classes")

    def rng(self, row: int, *names: object) -> Generator:
        """The generator of one record and one thing that is drawn for it."""
        return generator(self.plan.seed, "attack", self.recordings.ids[row], *names)

    def step(self, at: int, rows: Sequence[int]) -> list[dict[str, Any]]:
        """What comes of one step for some records, as the run store keeps it."""
        name, config = self.plan.steps[at]
        if config is None:
            clean = self.records.clean[list(rows)]
            return [{"log_odds": _stored(row)} for row in clean]
        if name.startswith(f"{MINIMAL} "):
            return self._search(config, rows)
        return self._attack([config] * len(rows), rows, name)

    def _attack(self, configs: Sequence[PerturbationConfig], rows: Sequence[int], name: str) -> list[dict[str, Any]]:
        done = perform(self.records, rows, configs, [self.rng(row, name) for row in rows])
        log_odds = self.model.log_odds(done.x)
        made = []
        for i, row in enumerate(rows):
            facts = _facts(self.recordings.x[row], done.x[i], done.norm[i], float(done.budget[i]))
            facts |= {
                "log_odds": _stored(log_odds[i]),
                "zero_gradient": float(done.zero_gradient[i]),
                "notes": list(done.notes[i]),
            }
            made.append(facts)
        if self.plan.control:
            self._beside(made, configs, rows, done.x, name)
        return made

    def _beside(
        self,
        made: list[dict[str, Any]],
        configs: Sequence[PerturbationConfig],
        rows: Sequence[int],
        x: Floats,
        name: str,
    ) -> None:
        """Put the control beside each attack."""
        noisy = self.recordings.x[list(rows)].copy()
        windows = hann_windows(
            noisy.shape[1], self.recordings.fs, [c.center_time for c in configs], [c.window_seconds for c in configs]
        )
        for i, row in enumerate(rows):
            size = float(np.linalg.norm(x[i] - noisy[i]))
            noisy[i] += same_norm_noise(noisy[i].shape, windows[i], size, self.rng(row, name, "control"))
        log_odds = self.model.log_odds(noisy)
        for i, row in enumerate(rows):
            made[i]["control"] = {**_facts(self.recordings.x[row], noisy[i]), "log_odds": _stored(log_odds[i])}

    def _search(self, config: PerturbationConfig, rows: Sequence[int]) -> list[dict[str, Any]]:
        """The least strength of each record, and what it does there (at strength 1 where it never flips)."""
        least = self.least(config, rows)
        there = [replace(config, strength=float(min(s, 1.0))) for s in least]
        made = self._attack(there, rows, f"{MINIMAL} {config}")
        for record, strength in zip(made, least.tolist(), strict=True):
            record["minimal_strength"] = finite(strength)
        return made

    def least(self, config: PerturbationConfig, rows: Sequence[int]) -> Floats:
        """The least strength at which each record was seen to flip; infinite where it never does."""
        criterion, places = config.criterion, np.asarray(rows)
        target = self.records.target_of(config)
        quick = replace(config, extra={**config.extra, "early_stop": True}) if config.needs_gradient else config

        def attempt(at: NDArray[np.int64], strength: Floats) -> Any:
            tried = [replace(quick, strength=float(s)) for s in strength]
            rngs = [self.rng(int(row), f"{MINIMAL} {config}") for row in places[at]]
            done = perform(self.records, places[at].tolist(), tried, rngs)
            bits = binarize(self.model.proba(done.x), self.threshold)
            return criterion(self.records.clean_bits[places[at]], bits, target)

        return minimal_strength(attempt, len(places), rounds=self.plan.rounds)


def same_norm_noise(shape: tuple[int, ...], window: Floats, size: float, rng: Generator) -> Floats:
    """Random signs under a window, of a given L2 norm.

    >>> noise = same_norm_noise((50, 2), np.ones(50), 0.3, np.random.default_rng(0))
    >>> round(float(np.linalg.norm(noise)), 12), len(np.unique(np.abs(noise).round(12)))
    (0.3, 1)
    """
    signs = rng.choice([-1.0, 1.0], size=shape) * window[:, None]
    length = float(np.linalg.norm(signs))
    return signs * (size / length) if length > 0 else signs


def _facts(x: Floats, changed: Floats, norm: str = "", budget: float = np.inf) -> dict[str, Any]:
    """Norms, signal-to-noise ratio and smoothness of a change."""
    delta = changed - x
    l2, linf = norms(delta)
    used = {"linf": linf, "l2": l2}.get(norm, float("nan"))
    numbers = {"delta_l2": l2, "delta_linf": linf, "snr_db": snr_db(x, delta), "smoothness": smoothness(delta)}
    return {name: finite(float(v)) for name, v in {**numbers, "budget": budget, "budget_used": used}.items()}


def _stored(log_odds: Floats) -> list[Any]:
    return [finite(float(v)) for v in log_odds]


def run_campaign(
    campaigner: Campaigner, output: str | Path | None = None, *, resume: bool = False, report: Report | None = None
) -> Trials:
    """Carry out a plan and give its trials. With `output` it is a run folder: interrupted, it goes on with `resume=True`."""
    n = len(campaigner.recordings.ids)
    steps = campaigner.plan.steps
    made: dict[int, dict[str, Any]] = {}
    if output is None:
        for at, record in _work(campaigner, iter(range(n * len(steps))), report):
            made[at] = record
        return Trials.from_frame(_table(campaigner, made), _header(campaigner, made))
    items = [f"{name} / {record}" for name, _ in steps for record in campaigner.recordings.ids]
    with start(output, kind="attack", config=_pinned(campaigner), items=items, resume=resume) as run:
        for at, record in _work(campaigner, run.todo(), report):
            run.add(at, record)
        made = dict(run.records())
        table, header = _table(campaigner, made), _header(campaigner, made)
        facts: dict[str, Any] = {
            "positive": header.positive,
            "negative": header.negative,
            "score_kind": header.score_kind,
        }
        words = [
            pl.col(c).replace_strict({1: header.positive, 0: header.negative}, return_dtype=pl.String)
            for c in ("label", "decision")
        ]
        run.finish(
            table.with_columns(words), **facts, has_labels=True, runs=list(header.runs), numbers=list(header.numbers),
            n_scored=table.height, n_failed=0, notes=list(header.notes),
        )  # fmt: skip
    return Trials.from_frame(table, header)


def _work(campaigner: Campaigner, todo: Iterator[int], report: Report | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Positions (step-major) worked off in batches that belong to one step."""
    n, total = len(campaigner.recordings.ids), len(campaigner.recordings.ids) * len(campaigner.plan.steps)
    waiting: list[int] = []
    done = 0

    def flush() -> Iterator[tuple[int, dict[str, Any]]]:
        nonlocal done
        rows = [at % n for at in waiting]
        yield from zip(list(waiting), campaigner.step(waiting[0] // n, rows), strict=True)
        done += len(rows)
        waiting.clear()
        if report is not None:
            report(done, total)

    for at in todo:
        if waiting and (at // n != waiting[0] // n or len(waiting) >= PART):
            yield from flush()
        waiting.append(at)
    if waiting:
        yield from flush()


def _pinned(campaigner: Campaigner) -> dict[str, Any]:
    data, model = campaigner.recordings, campaigner.model
    threshold = np.asarray(campaigner.threshold, dtype=np.float64).tolist()
    about = {"data": data.digest, "classes": list(data.classes), "fs": data.fs, "layout": model.layout}
    return {
        **campaigner.plan.pinned,
        **about,
        "model": {"name": model.name, **model.identity},
        "outputs": model.outputs,
        "threshold": threshold,
    }


def _header(campaigner: Campaigner, made: dict[int, dict[str, Any]]) -> Header:
    notes = sorted({note for record in made.values() for note in record.get("notes", ())})
    least = ("minimal_strength",) if campaigner.plan.searches else ()
    return Header(
        "present", "absent", "logit", runs=_runs(campaigner), slices=tuple(campaigner.recordings.columns),
        numbers=(*NUMBERS, *least), notes=tuple(notes),
    )  # fmt: skip


def _runs(campaigner: Campaigner) -> tuple[str, ...]:
    """The run columns: aim and place only where some attack has one."""
    configs = [c for _, c in campaigner.plan.steps if c is not None]
    aims = ("aim",) if any(c.target_class for c in configs) else ()
    return ("attack", "strength", *aims, *(("place",) if any(c.window_seconds for c in configs) else ()))


def _table(campaigner: Campaigner, made: dict[int, dict[str, Any]]) -> pl.DataFrame:
    """One row a record, class, attack and strength."""
    n, rows = len(campaigner.recordings.ids), []
    for at in sorted(made):
        step, row = divmod(at, n)
        name, config = campaigner.plan.steps[step]
        run = _run_of(name, config)
        rows.append((run, row, made[at]))
        if "control" in made[at]:
            rows.append(({**run, "attack": CONTROL + run["attack"]}, row, made[at]["control"]))
    return _frame(campaigner, rows)


def _run_of(name: str, config: PerturbationConfig | None) -> dict[str, str]:
    if config is None:
        return {"attack": CLEAN, "strength": "0", "aim": "any", "place": "whole"}
    aim = "any" if config.target_class is None else f"{config.mode} {config.target_class}"
    place = "whole" if config.window_seconds is None else f"{config.center_time:g} s"
    strength = MINIMAL if name.startswith(f"{MINIMAL} ") else f"{config.strength:g}"
    return {"attack": config.family, "strength": strength, "aim": aim, "place": place}


def _frame(campaigner: Campaigner, rows: Sequence[tuple[dict[str, str], int, dict[str, Any]]]) -> pl.DataFrame:
    data, header = campaigner.recordings, _header(campaigner, {})
    classes, at = len(data.classes), np.array([row for _, row, _ in rows], dtype=np.int64)
    score = np.array([[infinite(v) for v in record["log_odds"]] for _, _, record in rows], dtype=np.float64)
    decision = binarize(to_probability(score), campaigner.threshold)
    columns: dict[str, Any] = {
        "item": np.repeat(np.array(data.ids, dtype=object)[at], classes).tolist(),
        "target": list(data.classes) * len(rows),
        "label": data.y[at].reshape(-1).astype(np.int8),
        "score": score.reshape(-1),
        "decision": decision.reshape(-1),
    }
    for name in header.runs:
        columns[name] = [run[name] for run, _, _ in rows for _ in range(classes)]
    for name, values in data.columns.items():
        columns[name] = np.repeat(np.array(values, dtype=object)[at], classes).tolist()
    for name in header.numbers:
        own = [infinite(record.get(name)) for _, _, record in rows]
        columns[name] = np.repeat(np.array([np.nan if v is None else v for v in own], dtype=np.float64), classes)
    return pl.DataFrame(columns)
