"""Measure one system on every data set of a board: its numbers, its replicates, and what is wrong with its files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import polars as pl

from hitmiss.boards.numbers import BoardNumber
from hitmiss.boards.plan import BoardPlan, Dataset
from hitmiss.core import artifacts
from hitmiss.core.columns import find_column
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, HitmissError, message_of
from hitmiss.core.finding import findings_of
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import CONSTANT, REVERSED, Results, code_of
from hitmiss.core.trials import Trials
from hitmiss.engine.shared_replicates import RunReplicates, SharedDraws
from hitmiss.evaluation.protocol import find_protocol, measure_trials, read_trials

__all__ = ["MeasuredSystem", "Rejected", "SystemMeasurer"]

POOLED: Final = ""
"""The place of all data sets together among the data sets."""
UNREADABLE: Final = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
"""What is wrong with a file; every other fault of reading is one of this machine, and ends the command."""
ALARMS: Final = (REVERSED, CONSTANT)
"""Warnings that reject a submission: a number would be that of a mistake."""


@dataclass(frozen=True)
class Rejected:
    """A submission that a board leaves out, with the reason."""

    system: str
    dataset: str
    file: str
    code: str
    text: str

    def to_dict(self) -> dict[str, str]:
        """Return the JSON form; the file by its name alone."""
        found = {"system": self.system, "dataset": self.dataset, "file": Path(self.file).name}
        return {**found, "code": self.code, "text": self.text}


@dataclass(frozen=True)
class MeasuredSystem:
    """What a board knows of one system.

    `numbers` holds, for each data set, each metric and each slice (`codec=C01`; empty for all trials), the number;
    `replicates` those of the ranked metric by data set, with all data sets together under an empty name.
    """

    name: str
    numbers: Mapping[str, Mapping[str, Mapping[str, BoardNumber]]] = field(default_factory=dict)
    replicates: Mapping[str, RunReplicates] = field(default_factory=dict)
    rejected: tuple[Rejected, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    """The hash of each score file."""


class SystemMeasurer:
    """Measures systems one after the other on draws that all of them share."""

    def __init__(self, plan: BoardPlan, design: Design, reading: ReadSpec, metric: str) -> None:
        self.plan, self.design, self.reading, self.metric = plan, design, reading, metric
        self.draws = {name: SharedDraws(metric, self._seeded(name)) for name in (*plan.names, POOLED)}

    def measure(self, name: str) -> MeasuredSystem:
        """Read, check and measure the files of a system; what cannot be used is listed, and the rest goes on."""
        found: dict[str, Trials] = {}
        numbers: dict[str, dict[str, dict[str, BoardNumber]]] = {}
        replicates: dict[str, RunReplicates] = {}
        rejected: list[Rejected] = []
        digests = {dataset: file_digest(path) for dataset, path in self.plan.files[name].items()}
        for dataset in self.plan.datasets:
            path = self.plan.files[name].get(dataset.name)
            if path is None:
                continue
            try:
                trials = self._read(path, dataset)
                results = measure_trials(trials, self._of(dataset))
                _refuse_alarms(results)
                replicates[dataset.name] = self.draws[dataset.name].replicate(trials)
            except HitmissError as error:
                rejected.append(Rejected(name, dataset.name, path, error.code, message_of(error)))
                continue
            except UNREADABLE as error:
                rejected.append(Rejected(name, dataset.name, path, "unreadable", message_of(error)))
                continue
            found[dataset.name] = trials
            numbers[dataset.name] = numbers_of(results)
        if len(found) == len(self.plan.datasets) > 1:
            whole = pooled(found, self.design)
            alone = replace(self.design, by=(), gap="none")
            numbers[POOLED] = numbers_of(measure_trials(whole, alone))
            replicates[POOLED] = self.draws[POOLED].replicate(whole)
        return MeasuredSystem(name, numbers, replicates, tuple(rejected), digests)

    def _read(self, path: str, dataset: Dataset) -> Trials:
        protocol = self._of(dataset).protocol
        reading = self.reading if not dataset.positive else self.reading.changed(positive=dataset.positive)
        return read_trials(path, dataset.key, protocol, reading)

    def _of(self, dataset: Dataset) -> Design:
        """Return the design for a data set, which may have a protocol of its own."""
        protocol = self.design.protocol if dataset.protocol is None else find_protocol(dataset.protocol)
        return replace(self.design, protocol=protocol)

    def _seeded(self, dataset: str) -> Design:
        """Return the design with a seed of the data set's own, so that data sets are drawn independently."""
        text = f"{self.design.seed} {dataset}".encode()
        return replace(self.design, seed=int.from_bytes(hashlib.sha256(text).digest()[:4], "big"))


def numbers_of(results: Results) -> dict[str, dict[str, BoardNumber]]:
    """Return the numbers of results by metric and slice; averages over slices are left out."""
    found: dict[str, dict[str, BoardNumber]] = {}
    for e in results:
        if e.average in (None, "pooled"):
            where = ",".join(f"{k}={v}" for k, v in e.slice.items())
            found.setdefault(e.metric, {})[where] = BoardNumber.of(e)
    return found


def pooled(parts: Mapping[str, Trials], design: Design) -> Trials:
    """Return the trials of several data sets as one set, for numbers under one threshold; ids and units stay apart."""
    first = next(iter(parts.values()))
    frames = []
    for name, trials in parts.items():
        frame = trials.frame
        units = [
            u for unit in trials.unit_names(design.units) if unit != "item" and (u := find_column(unit, frame.columns))
        ]
        apart = [pl.format("{}/{}", pl.lit(name), pl.col(column)).alias(column) for column in ("item", *units)]
        frames.append(frame.select("target", "label", "score", *apart))
    kinds = {trials.header.score_kind for trials in parts.values()}
    sources = tuple(dict.fromkeys(s for trials in parts.values() for s in trials.header.sources))
    slices = tuple(c for c in frames[0].columns if c not in ("item", "target", "label", "score"))
    header = replace(
        first.header,
        slices=slices,
        runs=(),
        numbers=(),
        sources=sources,
        score_kind=first.header.score_kind if len(kinds) == 1 else "raw",
    )
    return Trials(pl.concat(frames), header)


def _refuse_alarms(results: Results) -> None:
    for warning in results.warnings:
        if (code := code_of(warning)) in ALARMS:
            raise DataError.coded(replace(findings_of(warning)[0], written=str(warning)), code)


def file_digest(path: str) -> str:
    """Return the SHA-256 of a file; empty if it cannot be read."""
    try:
        return artifacts.file_digest(path)
    except UNREADABLE:
        return ""
