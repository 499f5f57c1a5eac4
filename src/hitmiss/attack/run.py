"""Attacks on many records: every configuration on every record, in batches, into a run folder or into memory.

Each (record, configuration) has a generator of its own, named after both; whatever the batch size, the order, or how often
the run was interrupted, the same changes come out. Beside each attack goes a control: random signs under the same window,
with the same L2 norm, so that what a mere disturbance of that size does stands next to it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.random import Generator

from hitmiss.attack.batch import Floats, pick
from hitmiss.attack.config import PerturbationConfig
from hitmiss.attack.data import Recordings
from hitmiss.attack.least import least_strengths
from hitmiss.attack.model import Classifier
from hitmiss.attack.perform import Performed, Records, perform
from hitmiss.attack.result import describe
from hitmiss.attack.signals import read_signals, write_index, write_part
from hitmiss.attack.table import MINIMAL, header_of, run_of, table_of
from hitmiss.attack.window import hann_windows
from hitmiss.errors import DataError, UsageError
from hitmiss.io.runs import MEDIA, start
from hitmiss.results import finite
from hitmiss.robustness.campaign import CLEAN, Campaign, Cell
from hitmiss.stats.seeds import generator
from hitmiss.trials import Trials

PART: Final = 64
"""Records that are worked on together; it changes no result."""
Report = Callable[[int, int], None]
Keep = Callable[[str, Sequence[int], Floats], str]


@dataclass(frozen=True)
class Plan:
    """What is done: configurations, searches for the least strength, controls, and the seed."""

    configs: tuple[PerturbationConfig, ...]
    searches: tuple[PerturbationConfig, ...] = ()
    control: bool = True
    rounds: int = 7
    seed: int = 0

    @cached_property
    def steps(self) -> list[tuple[str, PerturbationConfig | None]]:
        """Every step in order: the clean records, the attacks, the searches."""
        named = [(str(c), c) for c in self.configs]
        named += [(f"{MINIMAL} {c}", c) for c in self.searches]
        if len({name for name, _ in named}) != len(named):
            twice = next(name for name, _ in named if [n for n, _ in named].count(name) > 1)
            raise UsageError(f"the attack {twice!r} is asked for twice")
        return [(CLEAN, None), *named]

    @cached_property
    def cells(self) -> dict[str, dict[str, str]]:
        """The values of the run columns of each step; an attack that is there with several settings is called with them."""
        found = {CLEAN: run_of(CLEAN, None)}
        for group in (self.configs, self.searches):
            kinds: dict[str, set[str]] = {}
            for config in group:
                kinds.setdefault(config.family, set()).add(config.kind)
            for config in group:
                name = str(config) if group is self.configs else f"{MINIMAL} {config}"
                found[name] = run_of(name, config)
                if len(kinds[config.family]) > 1:
                    found[name]["attack"] = config.call
        return found

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
    """Recordings under a plan: makes the record of any step and any recording, one batch at a time.

    `keep` takes the changed signals of some recordings at a step, where somebody wants them, and names their file.
    """

    recordings: Recordings
    model: Classifier
    plan: Plan
    threshold: Any = 0.5
    peaks: Sequence[Any] | None = None
    batch: int = 32
    keep: Keep | None = None
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
        return self._described(configs, rows, done, name)

    def _described(
        self, configs: Sequence[PerturbationConfig], rows: Sequence[int], done: Performed, name: str
    ) -> list[dict[str, Any]]:
        """What was done as the run store keeps it, with the control beside it."""
        log_odds = self.model.log_odds(done.x)
        made = self._facts(rows, done)
        for i, facts in enumerate(made):
            facts |= {"log_odds": _stored(log_odds[i]), "notes": list(done.notes[i])}
        if self.keep is not None:
            file = self.keep(name, rows, done.x)
            for i, facts in enumerate(made):
                facts["signals"] = [file, i]
        if self.plan.control:
            self._beside(made, configs, rows, done.x, name)
        return made

    def _facts(self, rows: Sequence[int], done: Performed) -> list[dict[str, Any]]:
        """Norms, signal-to-noise ratio, smoothness and budget of each change."""
        own = list(rows)
        numbers = describe(pick(self.records.x, own), done.x, self.records.power[own])
        used = np.array([numbers[f"delta_{n}"][i] if n else np.nan for i, n in enumerate(done.norm)])
        columns = {**numbers, "budget": done.budget, "budget_used": used, "zero_gradient": done.zero_gradient}
        return [{name: finite(float(values[i])) for name, values in columns.items()} for i in range(len(own))]

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
        numbers = describe(self.recordings.x[list(rows)], noisy, self.records.power[list(rows)])
        for i, facts in enumerate(made):
            own = {key: finite(float(values[i])) for key, values in numbers.items()}
            facts["control"] = {**own, "log_odds": _stored(log_odds[i])}

    def _search(self, config: PerturbationConfig, rows: Sequence[int]) -> list[dict[str, Any]]:
        """The least strength of each record, and the change that flipped it there (at strength 1 where it never flips)."""
        least, done = self.search(config, rows)
        made = self._described([config] * len(rows), rows, done, f"{MINIMAL} {config}")
        for record, strength in zip(made, least.tolist(), strict=True):
            record["minimal_strength"] = finite(strength)
        return made

    def search(self, config: PerturbationConfig, rows: Sequence[int]) -> tuple[Floats, Performed]:
        """The least strength of each record, and what flipped it: see `least_strengths`."""
        name = f"{MINIMAL} {config}"
        return least_strengths(self.records, config, rows, lambda row: self.rng(row, name), rounds=self.plan.rounds)

    def examples(self, trials: Trials, kept: str | Path | None = None) -> dict[str, tuple[Floats, Floats, float, str]]:
        """Of every kind of attack at its greatest strength one record before and after: the first that flips, else the first.

        With the sample rate and what the model says of it.

        From a run folder that `kept` the signals, else made again from the same generators.
        """
        campaign = Campaign.of(trials)
        place = {name: at for at, name in enumerate(self.recordings.ids)}
        chosen: dict[str, PerturbationConfig] = {}
        for config in sorted(self.plan.configs, key=lambda c: c.strength):
            chosen[str(replace(config, strength=1.0))] = config
        found = {}
        for config in chosen.values():
            run = self.plan.cells[str(config)]
            cell = next(c for c in campaign.cells if all(run[k] == v for k, v in c.run.items()))
            flips = (cell.bits != campaign.clean.bits).any(axis=1)
            chosen_one = int(np.argmax(flips))
            row = place[campaign.records[chosen_one]]
            after = self._again(config, row) if kept is None else _kept(kept, run, self.recordings.ids[row])
            title = f"{run['attack']} {config.strength:g}, record {self.recordings.ids[row]}"
            said = _said(campaign, cell, chosen_one)
            found[title] = (self.recordings.x[row], after, self.recordings.fs, said)
        return found

    def _again(self, config: PerturbationConfig, row: int) -> Floats:
        """A record attacked as it was, from the same generator."""
        return np.asarray(perform(self.records, [row], [config], [self.rng(row, str(config))]).x[0])


def _said(campaign: Campaign, cell: Cell, at: int) -> str:
    """What the model says of a record, before and after."""
    before, after = (
        " + ".join(name for name, bit in zip(campaign.classes, bits[at], strict=True) if bit) or "nothing"
        for bits in (campaign.clean.bits, cell.bits)
    )
    return f"{before} → {after}" if before != after else f"stays {before}"


def _kept(folder: str | Path, run: dict[str, str], record: str) -> Floats:
    return np.asarray(read_signals(folder, **run, records=[record])[1][0], dtype=np.float64)


def same_norm_noise(shape: tuple[int, ...], window: Floats, size: float, rng: Generator) -> Floats:
    """Random signs under a window, of a given L2 norm.

    >>> noise = same_norm_noise((50, 2), np.ones(50), 0.3, np.random.default_rng(0))
    >>> round(float(np.linalg.norm(noise)), 12), len(np.unique(np.abs(noise).round(12)))
    (0.3, 1)
    """
    signs = rng.choice([-1.0, 1.0], size=shape) * window[:, None]
    length = float(np.linalg.norm(signs))
    return signs * (size / length) if length > 0 else signs


def _stored(log_odds: Floats) -> list[Any]:
    return [finite(float(v)) for v in log_odds]


def run_campaign(
    campaigner: Campaigner,
    output: str | Path | None = None,
    *,
    resume: bool = False,
    report: Report | None = None,
    save_signals: bool = False,
) -> Trials:
    """Carry out a plan and give its trials. With `output` it is a run folder: interrupted, it goes on with `resume=True`.

    `save_signals`: the changed signals are kept in the folder (see `signals`).
    """
    if save_signals and output is None:
        raise UsageError("signals are kept in a run folder; say output=…")
    n = len(campaigner.recordings.ids)
    steps = campaigner.plan.steps
    made: dict[int, dict[str, Any]] = {}
    if output is None:
        for at, record in _work(campaigner, iter(range(n * len(steps))), report):
            made[at] = record
        return Trials.from_frame(table_of(campaigner, made), header_of(campaigner, made))
    items = [f"{name} / {record}" for name, _ in steps for record in campaigner.recordings.ids]
    pinned = _pinned(campaigner) | ({"signals": "float32"} if save_signals else {})
    with start(output, kind="attack", config=pinned, items=items, resume=resume) as run:
        campaigner.keep = _keeper(campaigner, Path(output)) if save_signals else None
        for at, record in _work(campaigner, run.todo(), report):
            run.add(at, record)
        made = dict(run.records())
        table, header = table_of(campaigner, made), header_of(campaigner, made)
        facts: dict[str, Any] = {
            "positive": header.positive,
            "negative": header.negative,
            "score_kind": header.score_kind,
            "provenance": dict(header.provenance),
        }
        if campaigner.recordings.path is not None:
            facts[MEDIA] = os.path.relpath(campaigner.recordings.path, output)
        words = [
            pl.col(c).replace_strict({1: header.positive, 0: header.negative}, return_dtype=pl.String)
            for c in ("label", "decision")
        ]
        run.finish(
            table.with_columns(words), _indexed(campaigner, made, Path(output)) if save_signals else (), **facts, has_labels=True, runs=list(header.runs), numbers=list(header.numbers),
            n_scored=table.height, n_failed=0, notes=list(header.notes),
        )  # fmt: skip
    return Trials.from_frame(table, header)


def _keeper(campaigner: Campaigner, folder: Path) -> Keep:
    """What keeps the signals of a part in the run folder, before its answers are written down."""
    n, step_of = len(campaigner.recordings.ids), {name: at for at, (name, _) in enumerate(campaigner.plan.steps)}
    return lambda name, rows, x: write_part(folder, step_of[name] * n + rows[0], x)


def _indexed(campaigner: Campaigner, made: dict[int, dict[str, Any]], folder: Path) -> list[str]:
    """The index of the signals that the answers name; the files."""
    ids, rows = campaigner.recordings.ids, []
    for at in sorted(made):
        if "signals" in made[at]:
            name = campaigner.plan.steps[at // len(ids)][0]
            file, row = made[at]["signals"]
            rows.append({"record": ids[at % len(ids)], **campaigner.plan.cells[name], "file": file, "row": row})
    return write_index(folder, rows)


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
