"""What a report is about: runs from one or many files, put together where they answer the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from hitmiss.errors import UsageError
from hitmiss.protocol import Protocol, find_protocol
from hitmiss.report.displays import Display
from hitmiss.report.pictures import Picture, runs_of
from hitmiss.report.tables import runs
from hitmiss.results import Estimate, Results
from hitmiss.signature import read_signature
from hitmiss.trials import Trials

RUN: Final = "run"
"""The run column under which runs of several files stand side by side."""


@dataclass(frozen=True, eq=False)
class RunData:
    """One file's worth: its name, its results, its pictures, and the trials where they are at hand."""

    name: str
    results: Results
    pictures: tuple[Picture, ...] = ()
    trials: Trials | None = None


@dataclass(frozen=True, eq=False)
class Lane:
    """One run of an evaluation: its name in this report, and what is known of it."""

    name: str
    source: RunData
    picture: Picture | None
    trials: Trials | None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Runs that answered the same questions under the same protocol; `results` tell them apart by the column `run`."""

    results: Results
    lanes: tuple[Lane, ...]
    protocol: Protocol | None

    @property
    def title(self) -> str:
        """The protocol's title, else the names of the runs."""
        if self.protocol is not None:
            return self.protocol.title
        return self.results.protocol or ", ".join(lane.name for lane in self.lanes[:3])

    @property
    def classes(self) -> tuple[str, str]:
        """The names of the positive and of the other class."""
        for lane in self.lanes:
            if lane.trials is not None:
                return lane.trials.header.positive, lane.trials.header.negative
            if lane.picture is not None and lane.picture.displays:
                return lane.picture.displays[0].positive, lane.picture.displays[0].negative
        said = signature_part(self.lanes[0].source.results.signature, "pos")
        return (said, f"not {said}") if said else ("positive", "negative")

    @property
    def primary(self) -> str:
        """The metric that counts most: the protocol's, else the first that was measured."""
        measured = list(dict.fromkeys(e.metric for e in self.results if not e.slice and e.average is None))
        if self.protocol is not None and self.protocol.primary in measured:
            return self.protocol.primary
        return measured[0] if measured else ""

    def lines(self, kind: str) -> list[tuple[str, Display]]:
        """The displays of one kind, by the name of their run."""
        found = [(lane.name, lane.picture.of(kind)) for lane in self.lanes if lane.picture is not None]
        return [(name, display) for name, display in found if display is not None]


def evaluations(sources: Sequence[RunData]) -> list[Evaluation]:
    """Files put together: those of the same protocol, metrics and number of trials are runs of one evaluation."""
    if not sources:
        raise UsageError("there is nothing to report on")
    groups: dict[tuple[object, ...], list[RunData]] = {}
    for source in sources:
        groups.setdefault(_kin(source.results), []).append(source)
    return [_together(own) for own in groups.values()]


def _kin(results: Results) -> tuple[object, ...]:
    """What results must share to stand side by side: protocol, class, metrics, and the trials by number."""
    whole = [e for e in results if not e.slice and e.average is None]
    metrics = frozenset(e.metric for e in whole)
    return (
        results.protocol,
        signature_part(results.signature, "pos"),
        metrics,
        frozenset((e.n, e.n_positive) for e in whole),
    )


def signature_part(signature: str, name: str) -> str | None:
    """A part of a signature; None where there is none."""
    try:
        return read_signature(signature.splitlines()[0]).get(name) if signature else None
    except UsageError:
        return None


def _together(sources: Sequence[RunData]) -> Evaluation:
    lanes: list[Lane] = []
    rows: list[Estimate] = []
    n_runs = sum(len(runs(s.results)) for s in sources)
    for source in sources:
        inner = runs(source.results)
        for run in inner:
            name = _name(source, run, len(sources) > 1, len(inner) > 1)
            lanes.append(Lane(name, source, _picture(source, run), _trials(source, run)))
            own = [e for e in source.results if dict(e.run) == run]
            rows += [replace(e, run={RUN: name} if n_runs > 1 else {}) for e in own]
        rows += [e for e in source.results if dict(e.run) not in inner]
    warnings = _warnings(sources)
    first = sources[0].results
    results = Results(
        tuple(rows), "\n".join(dict.fromkeys(s.results.signature for s in sources)), warnings, first.protocol
    )
    return Evaluation(results, tuple(lanes), _protocol(first.protocol))


def _warnings(sources: Sequence[RunData]) -> tuple[str, ...]:
    """Each warning once, with the runs that it is about where it is not about all of them."""
    about: dict[str, list[str]] = {}
    for source in sources:
        for text in source.results.warnings:
            about.setdefault(text, []).append(source.name)
    return tuple(t if len(names) == len(sources) else f"{', '.join(names)}: {t}" for t, names in about.items())


def _name(source: RunData, run: dict[str, str], several_files: bool, several_runs: bool) -> str:
    inside = ", ".join(run.values())
    if not several_runs or not inside:
        return source.name
    return f"{source.name} · {inside}" if several_files else inside


def _picture(source: RunData, run: dict[str, str]) -> Picture | None:
    return next((p for p in source.pictures if dict(p.run) == run), None)


def _trials(source: RunData, run: dict[str, str]) -> Trials | None:
    if source.trials is None:
        return None
    return next((own for key, own in runs_of(source.trials) if key == run), None)


def _protocol(name: str | None) -> Protocol | None:
    """The protocol of that name; a user's own file need not be here."""
    if name is None:
        return None
    try:
        return find_protocol(name)
    except UsageError:
        return None
