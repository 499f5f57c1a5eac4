"""Recordings under a plan: every configuration on every record, in batches, each attack beside its control.

Each (record, configuration) has a generator of its own, named after both; whatever the batch size or the order, the same
changes come out. A control is random signs under the same window, with the same L2 norm, so that what a mere disturbance of
that size does stands next to the attack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from hitmiss.attack.batch import Floats, pick
from hitmiss.attack.config import PerturbationConfig
from hitmiss.attack.data import Recordings
from hitmiss.attack.least import least_strengths
from hitmiss.attack.model import Classifier
from hitmiss.attack.perform import Performed, Records, perform
from hitmiss.attack.result import describe
from hitmiss.attack.signals import read_signals
from hitmiss.attack.sweeps import Plan
from hitmiss.attack.table import MINIMAL
from hitmiss.attack.window import hann_windows
from hitmiss.errors import DataError
from hitmiss.results import finite
from hitmiss.robustness.campaign import Campaign, Cell
from hitmiss.stats.seeds import noise_generator
from hitmiss.trials import Trials

Keep = Callable[[str, Sequence[int], Floats], str]
"""The name of a step, recordings by place, and their changed signals, to the name of the file that keeps them."""


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
        return noise_generator(self.plan.seed, "attack", self.recordings.ids[row], *names)

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
