"""What a report is about: runs from one or many files, combined where they belong to the same evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import polars as pl

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.results import Estimate, Results, prefixed
from hitmiss.core.trials import Trials
from hitmiss.engine.signature import read_signature
from hitmiss.evaluation.protocol import Protocol, find_protocol
from hitmiss.protocols.triage import TriageExtras
from hitmiss.reports.displays.display import Display
from hitmiss.reports.grids import RUN, is_campaign, runs
from hitmiss.reports.item_texts import Rationales, Texts
from hitmiss.reports.media_finder import MediaFinder
from hitmiss.reports.pictures import Picture, runs_of
from hitmiss.verdicts.stability import TRIAL, pooled

FEW_RUNS: Final = 4
"""Maximum number of runs that are shown one by one in the order of their files; of more, the best come first."""
MOST_TABLED: Final = 6
"""Number of runs whose slices are listed one by one; of more, the best."""


@dataclass(frozen=True, eq=False)
class RunData:
    """The content of one file: its name, results and pictures, the trials if available, their files, and its records."""

    name: str
    results: Results
    pictures: tuple[Picture, ...] = ()
    trials: Trials | None = None
    finder: MediaFinder | None = None
    dossier: tuple[tuple[str, str], ...] = ()
    extras: TriageExtras | None = None
    """The parts of a triage besides its numbers: confusions, flips, times, costs, people."""
    rationales: Rationales | None = None
    people: Mapping[str, str] = field(default_factory=dict)
    """The verdicts of people on each item."""
    texts: Texts | None = None


@dataclass(frozen=True, eq=False)
class EvaluatedRun:
    """One run of an evaluation: its name in this report, and what is known about it."""

    name: str
    source: RunData
    picture: Picture | None
    trials: Trials | None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Runs on the same trials under the same protocol; the column `run` of `results` distinguishes them."""

    results: Results
    members: tuple[EvaluatedRun, ...]
    protocol: Protocol | None

    @property
    def title(self) -> str:
        """The protocol's title, else the names of the runs."""
        if self.protocol is not None:
            return self.protocol.title
        names, more = [member.name for member in self.members], len(self.members) - 3
        return self.results.protocol or ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")

    @property
    def classes(self) -> tuple[str, str]:
        """The names of the positive and of the other class."""
        for member in self.members:
            if member.trials is not None:
                return member.trials.header.positive, member.trials.header.negative
            if member.picture is not None and member.picture.displays:
                return member.picture.displays[0].positive, member.picture.displays[0].negative
        said = signature_part(self.members[0].source.results.signature, "pos")
        return (said, f"not {said}") if said else ("positive", "negative")

    @cached_property
    def primary(self) -> str:
        """The primary metric: the protocol's, else the first that was measured."""
        whole = [e for e in self.results if not e.slice and e.average is None]
        measured = list(dict.fromkeys(e.metric for e in whole or self.results))
        if self.protocol is not None and self.protocol.primary in measured:
            return self.protocol.primary
        return measured[0] if measured else ""

    @property
    def is_campaign(self) -> bool:
        """Say whether it is one detector under attacks, not several detectors."""
        return is_campaign(self.results)

    @cached_property
    def sources(self) -> list[RunData]:
        """Return the files behind the runs, each once."""
        return list(dict.fromkeys(member.source for member in self.members))

    @property
    def counted(self) -> str:
        """The heading of the number of positives; for records with several classes, of those that have any."""
        return "with a label" if self.is_campaign else self.classes[0]

    @cached_property
    def tabled(self) -> list[dict[str, str]]:
        """Return the runs whose slices get tables of their own: all of a few; of many the best."""
        every = runs(self.results)
        if len(every) <= MOST_TABLED:
            return every
        order = {name: i for i, name in enumerate(self.best_first)}
        return sorted(every, key=lambda run: order.get(run.get(RUN, ""), len(order)))[:MOST_TABLED]

    @property
    def wholes(self) -> list[Estimate]:
        """Return the numbers over all trials of each run; for repeated runs the mean over the repetitions."""
        own = [e for e in self.results if not e.slice]
        means = [e for e in own if e.average == "mean"]
        return means or [e for e in own if e.average is None]

    @cached_property
    def by_run(self) -> dict[tuple[tuple[str, str], ...], Results]:
        """Return the results of each run by themselves, summaries over runs included, in order."""
        found: dict[tuple[tuple[str, str], ...], list[Estimate]] = {}
        for e in self.results:
            found.setdefault(tuple(e.run.items()), []).append(e)
        return {run: replace(self.results, estimates=tuple(own)) for run, own in found.items()}

    @cached_property
    def best_first(self) -> list[str]:
        """Return the names of the runs in their order; of many, the best by the primary metric first."""
        names = [member.name for member in self.members]
        if len(names) <= FEW_RUNS:
            return names
        own = {e.run.get(RUN, ""): e for e in self.wholes if e.metric == self.primary and e.value is not None}
        sign = {"low": 1.0, "high": -1.0}
        return sorted(names, key=lambda n: sign[own[n].best] * (own[n].value or 0.0) if n in own else math.inf)

    def leading(self, kind: str) -> list[tuple[str, Display]]:
        """Return the displays of one kind in the order of `best_first`."""
        found = dict(self.lines(kind))
        return [(name, found[name]) for name in self.best_first if name in found]

    def lines(self, kind: str) -> list[tuple[str, Display]]:
        """Return the displays of one kind, by the name of their run."""
        found = [(member.name, member.picture.of(kind)) for member in self.members if member.picture is not None]
        return [(name, display) for name, display in found if display is not None]


def evaluations(sources: Sequence[RunData]) -> list[Evaluation]:
    """Combine files: those with the same protocol, metrics and number of trials are runs of one evaluation."""
    if not sources:
        raise UsageError.of("nothing-to-report")
    groups: dict[tuple[object, ...], list[RunData]] = {}
    for source in sources:
        groups.setdefault(_kin(source.results), []).append(source)
    return [_together(own) for own in groups.values()]


def _kin(results: Results) -> tuple[object, ...]:
    """Return what results must share to be shown side by side: protocol, class, metrics, and number of trials."""
    if is_campaign(results):
        return ("attacks", results.protocol)
    whole = [e for e in results if not e.slice and e.average is None]
    metrics = frozenset(e.metric for e in whole)
    return (
        results.protocol,
        signature_part(results.signature, "pos"),
        metrics,
        frozenset((e.n, e.n_positive) for e in whole),
    )


def signature_part(signature: str, name: str) -> str | None:
    """Return a part of a signature; None if it is missing."""
    try:
        return read_signature(signature.splitlines()[0]).get(name) if signature else None
    except UsageError:
        return None


def _together(sources: Sequence[RunData]) -> Evaluation:
    first = sources[0].results
    if is_campaign(first):
        return _campaigns(sources)
    _refuse_two_labels(sources)
    members: list[EvaluatedRun] = []
    rows: list[Estimate] = []
    n_runs = sum(len(configurations(s.results)) for s in sources)
    for source in sources:
        inner = configurations(source.results)
        names = {tuple(run.items()): _name(source, run, len(sources) > 1, len(inner) > 1) for run in inner}
        for run in inner:
            name = names[tuple(run.items())]
            members.append(EvaluatedRun(name, source, _picture(source, run), _trials(source, run)))
        rows += [
            replace(e, run=_renamed(e.run, names) if n_runs > 1 else _repetition(e.run, names)) for e in source.results
        ]
    warnings = _warnings(sources)
    results = Results(
        tuple(rows), "\n".join(dict.fromkeys(s.results.signature for s in sources)), warnings, first.protocol
    )
    return Evaluation(results, tuple(members), _protocol(first.protocol))


def _refuse_two_labels(sources: Sequence[RunData]) -> None:
    """Refuse files that are shown side by side and give an item two labels."""
    known = {s.name: s.trials for s in sources if s.trials is not None and s.trials.has_rows}
    named = {name: trials for name, trials in known.items() if trials.header.unnamed is None}
    if len(named) < 2:
        return
    asked = [t.frame.select("item", "target", "label", pl.lit(name).alias(RUN)) for name, t in named.items()]
    low, high = (end("label").over("item", "target") for end in (pl.min, pl.max))
    both = pl.concat(asked).filter(low != high)
    if both.height:
        own = both.filter(pl.col("item") == both["item"][0]).unique("label", maintain_order=True)
        head = next(iter(named.values())).header
        told = [f"{(head.negative, head.positive)[label]} in {name}" for label, name in own.select("label", RUN).rows()]
        raise DataError.of(
            "both-labels/items", item=both["item"].n_unique(), item_2=both["item"][0], told=" and ".join(told)
        )


def _campaigns(sources: Sequence[RunData]) -> Evaluation:
    """Combine attacks on several detectors, or on one before and after a defence; the run distinguishes them."""
    members = tuple(EvaluatedRun(source.name, source, None, None) for source in sources)
    first = sources[0].results
    if len(sources) == 1:
        return Evaluation(first, members, _protocol(first.protocol))
    rows = [replace(e, run={RUN: source.name, **e.run}) for source in sources for e in source.results]
    signature = "\n".join(dict.fromkeys(s.results.signature for s in sources))
    return Evaluation(
        Results(tuple(rows), signature, _warnings(sources), first.protocol), members, _protocol(first.protocol)
    )


def configurations(results: Results) -> list[dict[str, str]]:
    """Return the runs to show side by side; trials of one configuration are left out where their mean is present."""
    means = [dict(e.run) for e in results if e.average == "mean" and not e.slice]
    found = [{k: v for k, v in run.items() if k != TRIAL} if TRIAL in run else run for run in runs(results)]
    collapsed = all(run in means for run in found)
    return [dict(r) for r in dict.fromkeys(tuple(r.items()) for r in (found if collapsed else runs(results)))]


def _repetition(run: Mapping[str, str], names: Mapping[tuple[tuple[str, str], ...], str]) -> dict[str, str]:
    """Return which repetition of its configuration a run is; a summary over runs is left as it is."""
    if tuple(run.items()) in names:
        return {}
    rest = tuple((k, v) for k, v in run.items() if k != TRIAL)
    return {TRIAL: run[TRIAL]} if TRIAL in run and rest in names else dict(run)


def _renamed(run: Mapping[str, str], names: Mapping[tuple[tuple[str, str], ...], str]) -> dict[str, str]:
    """Return a run under its name in this report."""
    left = _repetition(run, names)
    key = tuple((k, v) for k, v in run.items() if k not in left or tuple(run.items()) in names)
    return {RUN: names[key], **left} if key in names else dict(run)


def _warnings(sources: Sequence[RunData]) -> tuple[str, ...]:
    """Return each warning once, with the runs that it is about if it is not about all of them."""
    about: dict[str, list[str]] = {}
    for source in sources:
        for text in source.results.warnings:
            about.setdefault(text, []).append(source.name)
    return tuple(
        t if len(names) == len(sources) else prefixed(f"{', '.join(names)}: ", t) for t, names in about.items()
    )


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
    every = [*runs_of(source.trials), *(runs_of(pooled(source.trials)) if TRIAL in source.trials.header.runs else [])]
    return next((own for key, own in every if key == run), None)


def _protocol(name: str | None) -> Protocol | None:
    """Return the protocol of that name; a user's own protocol file need not exist here."""
    if name is None:
        return None
    try:
        return find_protocol(name)
    except UsageError:
        return None
