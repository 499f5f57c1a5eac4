"""Evaluate the system alone, people alone, and the two together: who decides, how well, and the workload for people.

People have judged an item when all requested verdicts are there; their decision is the adjudicator's if there is one,
else the strict majority; a tie or "cannot tell" decides nothing. Together: the system's answer if it answered, else
people's decision. An item whose review is not finished keeps the system's result, and is counted. Nothing is guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core import artifacts
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, Fault, UnknownName
from hitmiss.core.header import Header
from hitmiss.core.kinds import ABSTAIN
from hitmiss.core.rates import Rate
from hitmiss.core.results import Results, rows_of
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials, stack
from hitmiss.engine.measure import measure_design
from hitmiss.io.people import HUMAN, PeoplesVerdicts
from hitmiss.metrics.counts import accuracy
from hitmiss.metrics.triage import OF_PEOPLE, fake_slip_rate, real_false_flag_rate
from hitmiss.verdicts.agreement import Agreement, agreement, answer_counts
from hitmiss.verdicts.stability import TRIAL, USUAL, is_repeated, majority, measure_repeated

Where = Literal["unanswered", "reviewed"]
WHERE: Final = get_args(Where)
SYSTEM, PEOPLE, TOGETHER = "system", "people", "together"
WHO: Final = "decided by"


@dataclass(frozen=True)
class Load:
    """What one run leaves to people, in items.

    Sent (the run gave no answer), settled, left open by people (they could not tell or disagreed), begun but short of
    verdicts, and not looked at.
    """

    run: Mapping[str, str]
    n: int
    sent: int
    settled: int
    open: int
    begun: int
    unseen: int

    @property
    def share(self) -> Rate:
        """The share of all items that the run leaves to people."""
        return Rate(self.sent, self.n)


@dataclass(frozen=True)
class Path:
    """How many trials of one run share the same truth, system answer, people's answer and final result."""

    run: Mapping[str, str]
    truth: str
    system: str
    people: str
    outcome: str
    n: int


RIGHT, WRONG, UNDECIDED = "right", "wrong", "open"
NOT_ASKED, NOT_TOLD, UNSEEN = "not asked", "cannot tell", "no verdict"


@dataclass(frozen=True)
class Pairs:
    """On how many items of one run people make one number better, and on how many worse; trials of an item together."""

    run: Mapping[str, str]
    metric: str
    gains: int
    losses: int


@dataclass(frozen=True, eq=False)
class HumanMachineResults:
    """The numbers of all three, the load of each run, the paths of all trials, people's agreement, and their time."""

    figures: Results
    loads: tuple[Load, ...]
    paths: tuple[Path, ...]
    agreement: Agreement
    decided_agreement: Agreement
    n_verdicts: int
    n_reviewers: int
    n_adjudicated: int
    seconds: float | None
    where: Where
    pairs: tuple[Pairs, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        about = {k: getattr(self, k) for k in ("n_verdicts", "n_reviewers", "n_adjudicated", "seconds", "where")}
        loads = [
            {**vars(load), "run": dict(load.run), "share": None if not load.n else float(load.share)}
            for load in self.loads
        ]
        agreements = {k: vars(getattr(self, k)) for k in ("agreement", "decided_agreement")}
        figures = {"estimates": self.figures.to_dict()["estimates"], "signature": self.figures.signature}
        paths = [{**vars(path), "run": dict(path.run)} for path in self.paths]
        pairs = [{**vars(own), "run": dict(own.run)} for own in self.pairs]
        return {**figures, "loads": loads, "paths": paths, "pairs": pairs, **agreements, **about}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> HumanMachineResults:
        """Make it from the JSON form; a file of an older version has no paths."""
        stored = artifacts.check(_Stored, data, "results")
        loads = [{k: v for k, v in load.items() if k != "share"} for load in stored.loads]
        return cls(
            figures=rows_of(stored.estimates, stored.signature),
            loads=tuple(artifacts.check(Load, load, "results") for load in loads),
            paths=stored.paths,
            agreement=stored.agreement,
            decided_agreement=stored.decided_agreement,
            n_verdicts=stored.n_verdicts,
            n_reviewers=stored.n_reviewers,
            n_adjudicated=stored.n_adjudicated,
            seconds=stored.seconds,
            where=stored.where,
            pairs=stored.pairs,
        )


@dataclass(frozen=True)
class _Stored:
    """The JSON form of `HumanMachineResults`."""

    estimates: tuple[Mapping[str, object], ...]
    signature: str
    loads: tuple[Mapping[str, object], ...]
    agreement: Agreement
    decided_agreement: Agreement
    n_verdicts: int
    n_reviewers: int
    n_adjudicated: int
    seconds: float | None
    where: Where
    paths: tuple[Path, ...] = ()
    pairs: tuple[Pairs, ...] = ()


def evaluate_teamwork(
    system: Trials, said: PeoplesVerdicts, plan: SamplingPlan = USUAL, *, where: Where = "unanswered"
) -> HumanMachineResults:
    """Measure every number for the system alone, people alone, and the two together."""
    people = words_of_people(system, said)
    both = together(system, people, where)
    figures = _figures(system, people, both, plan)

    judged = said.reviews.partition_by("item", maintain_order=True) if said.reviews.height else []
    rows = [dict(zip(own["reviewer"], map(str, own["decision"]), strict=True)) for own in judged]
    wider = [name for name in plan.unit if name not in ("item", *system.header.runs)]
    first = system.frame.unique("item", keep="first", maintain_order=True)
    units = {name: dict(zip(first["item"], first[system.own(name)], strict=True)) for name in wider}
    drawn = {name: [value[own["item"][0]] for own in judged] for name, value in units.items()}

    def agreeing(counts: NDArray[np.floating]) -> Agreement:
        return agreement(counts, bootstrap=plan.bootstrap, seed=plan.seed, level=plan.level, units=drawn)

    seconds = said.frame["seconds"].drop_nulls()
    return HumanMachineResults(
        figures=figures,
        loads=tuple(_loads(system, people, said)),
        paths=tuple(paths_of(system, people, both)),
        agreement=agreeing(answer_counts(rows)),
        decided_agreement=agreeing(answer_counts(rows, missing=[str(ABSTAIN)])),
        n_verdicts=said.reviews.height,
        n_reviewers=said.reviews["reviewer"].n_unique(),
        n_adjudicated=said.adjudications.height,
        seconds=float(seconds.sum()) if len(seconds) else None,
        where=where,
        pairs=tuple(pairs_of(system, both)),
    )


def _figures(system: Trials, people: Trials, both: Trials, plan: SamplingPlan) -> Results:
    """Measure the three. For repeated runs, the mean over trials; people have judged each item once."""
    unit = plan.unit
    design = Design.by_plan(plan, OF_PEOPLE)
    machine = stack({SYSTEM: _bare(system, unit), TOGETHER: _bare(both, unit)}, WHO)
    repeated = is_repeated(machine)
    figures = (measure_repeated if repeated else measure_design)(machine, design)
    if not len(people):
        return figures
    runs = system.header.runs
    named = replace(people, frame=people.frame.with_columns(pl.lit("-").alias(name) for name in runs)).retitle(
        runs=runs
    )
    alone = measure_design(stack({PEOPLE: _bare(named, unit)}, WHO), design)
    rows = [replace(e, run={k: v for k, v in e.run.items() if k != TRIAL}, average="mean") for e in alone]
    return figures + (replace(alone, estimates=tuple(rows)) if repeated else alone)


def human_trials(system: Trials, said: PeoplesVerdicts) -> Trials:
    """Return every single verdict as a trial of the run `human`, one trial per reviewer, with the items' labels."""
    known = system.frame.unique("item", maintain_order=True).select("item", "target", "label", *system.header.slices)
    strangers = sorted(set(said.frame["item"]) - set(known["item"]))
    if strangers:
        faults = [
            Fault("unknown-item", "people judged an item that the results do not have", value=s) for s in strangers
        ]
        raise DataError.of("unknown-item/judged", n=len(strangers), first=strangers[0]).with_faults(faults)
    frame = said.reviews.join(known, on="item", maintain_order="left").select(
        "item", "target", "label", "decision", *system.header.slices,
        model=pl.lit(HUMAN), trial="reviewer", seconds="seconds",
    )  # fmt: skip
    head = system.header
    header = Header(head.positive, head.negative, runs=("model", "trial"), slices=head.slices, numbers=("seconds",))
    clean = replace(header, slices=tuple(s for s in head.slices if s not in ("model", "trial", "seconds")))
    return Trials.from_frame(frame, replace(clean, sources=(said.source,) if said.source else ()))


def words_of_people(system: Trials, said: PeoplesVerdicts) -> Trials:
    """Return one trial for each finished item: the adjudicator's decision, else the strict majority."""
    every = human_trials(system, said)
    decided = dict(said.adjudications.select("item", "decision").iter_rows())
    full = said.reviews.group_by("item").len().filter(pl.col("len") == said.per_item)["item"]
    finished = every.keep(pl.col("item").is_in([*full, *decided]))
    if not len(finished):
        return finished.retitle(runs=("model",))
    voted = majority(finished)
    word = (
        pl.col("item").replace_strict(decided, default=None, return_dtype=pl.Int8) if decided else pl.lit(None, pl.Int8)
    )
    return voted.put(decision=pl.coalesce(word, pl.col("decision")).cast(pl.Int8))


def together(system: Trials, people: Trials, where: Where = "unanswered") -> Trials:
    """Return the system's answers completed by people's: where it gave none, or (`reviewed`) all that people gave."""
    if where not in WHERE:
        raise UnknownName("place for people's verdicts", where, WHERE)
    if not len(people):
        return system
    words = dict(people.frame.select("item", "decision").iter_rows())
    word = pl.col("item").replace_strict(words, default=None, return_dtype=pl.Int8)
    answered = pl.col("decision").is_in([0, 1]).fill_null(False)
    takes = word.is_in([0, 1]) & ~answered if where == "unanswered" else word.is_in([0, 1])
    decided = pl.when(takes.fill_null(False)).then(word).otherwise(pl.col("decision"))
    sources = tuple(dict.fromkeys((*system.header.sources, *people.header.sources)))
    return system.put(decision=decided).retitle(sources=sources)


def _bare(trials: Trials, unit: Sequence[str]) -> Trials:
    """Return the question, the truth, the decision and the resampled units: the columns that all three have."""
    own = tuple(dict.fromkeys(trials.own(name) for name in unit if name not in ("item", *trials.header.runs)))
    head = replace(trials.header, slices=own, numbers=(), notes=(), choices=())
    return Trials(trials.frame.select("item", "target", "label", "decision", *head.runs, *own), head)


def paths_of(system: Trials, people: Trials, both: Trials) -> list[Path]:
    """Return the paths of all trials, with the repetitions of a run together."""
    head, runs = system.header, [name for name in system.header.runs if name != TRIAL]
    called: dict[int | None, str] = {1: head.positive, 0: head.negative, ABSTAIN: "uncertain"}
    words = dict(people.frame.select("item", "decision").iter_rows())
    counts: Counter[tuple[tuple[str, ...], tuple[str, str, str, str]]] = Counter()
    columns = [*runs, "item", "label", "decision"]
    for row, end in zip(system.frame.select(columns).iter_rows(), both.column("decision"), strict=True):
        item, label, first = row[-3:]
        answered, word = first in (0, 1), words.get(item)
        taken = word in (0, 1) and end == word and (not answered or end != first)
        said = called[word] if taken else NOT_ASKED if answered else UNSEEN if word is None else NOT_TOLD
        outcome = (RIGHT if end == label else WRONG) if end in (0, 1) else UNDECIDED
        truth = head.positive if label == 1 else head.negative
        counts[tuple(map(str, row[:-3])), (truth, called.get(first, "failed"), said, outcome)] += 1
    return [Path(dict(zip(runs, run, strict=True)), *way, n) for (run, way), n in counts.items()]


GOOD_WHERE: Final[Mapping[str, Callable[[int, int | None], bool]]] = {
    accuracy.__name__: lambda label, decision: decision == label,
    fake_slip_rate.__name__: lambda label, decision: not (label == 1 and decision == 0),
    real_false_flag_rate.__name__: lambda label, decision: not (label == 0 and decision == 1),
}
"""The numbers that are compared item by item, and where the outcome of a trial is good by each."""


def pairs_of(system: Trials, both: Trials) -> list[Pairs]:
    """Count, for each run and number, the items on which people make the outcome better or worse."""
    runs = [name for name in system.header.runs if name != TRIAL]
    change: dict[tuple[str, ...], dict[str, Counter[str]]] = {}
    rows = system.frame.select(*runs, "item", "label", "decision").iter_rows()
    for row, end in zip(rows, both.column("decision"), strict=True):
        run, (item, label, first) = tuple(map(str, row[:-3])), row[-3:]
        own = change.setdefault(run, {metric: Counter() for metric in GOOD_WHERE})
        for metric, is_good in GOOD_WHERE.items():
            own[metric][item] += is_good(label, end) - is_good(label, first)
    return [
        Pairs(
            dict(zip(runs, run, strict=True)), metric, sum(n > 0 for n in by.values()), sum(n < 0 for n in by.values())
        )
        for run, own in change.items()
        for metric, by in own.items()
    ]


def _loads(system: Trials, people: Trials, said: PeoplesVerdicts) -> list[Load]:
    words = dict(people.frame.select("item", "decision").iter_rows())
    begun = set(said.frame["item"]) - set(words)
    runs = list(system.header.runs)
    groups = system.frame.partition_by(runs, as_dict=True, maintain_order=True) if runs else {(): system.frame}
    found = []
    for key, own in groups.items():
        sent = own.filter(~pl.col("decision").is_in([0, 1]).fill_null(False))["item"].to_list()
        settled = sum(words.get(i, ABSTAIN) in (0, 1) for i in sent)
        looked = sum(i in words for i in sent)
        short = sum(i in begun for i in sent)
        run = dict(zip(runs, map(str, key), strict=True))
        counts = (own.height, len(sent), settled, looked - settled, short, len(sent) - looked - short)
        found.append(Load(run, *counts))
    return found
