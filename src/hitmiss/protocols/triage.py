"""The triage document: its evaluation from files, its metrics file, and its names on plain records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from hitmiss import artifacts
from hitmiss.bands import at_bands, halves
from hitmiss.design import Design
from hitmiss.design import Triage as TriageDesign
from hitmiss.errors import DataError, UnknownName, UsageError
from hitmiss.measuring.grouping import Columns, Sample, samples_of_runs
from hitmiss.measuring.measurement import measure
from hitmiss.metrics.confidence import calibrated_ece, judged
from hitmiss.metrics.counts import Counts
from hitmiss.protocol import Protocol, find_protocol, fitting, left_out, read_trials
from hitmiss.readspec import ReadSpec
from hitmiss.recalibration import recalibrate
from hitmiss.results import Estimate, Results, rows_of
from hitmiss.trials import Trials
from hitmiss.verdicts.latency import latency, spending
from hitmiss.verdicts.people import Teamwork
from hitmiss.verdicts.stability import flips, is_repeated, majority, measure_repeated

UNDEFINED: Final = ("null", "zero")
CHANCE: Final = "ece_by_chance"
"""The ECE that a calibrated detector with the same confidences exceeds in one of twenty cases."""


@dataclass(frozen=True, eq=False)
class Confusion:
    """What became of the trials of one run: answers, abstentions (of which `unparsed`), failures, per class."""

    run: Mapping[str, str]
    counts: Counts
    unparsed: tuple[int, int]
    classes: tuple[str, str] = ("fake", "real")

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: per class, how many were called what."""
        n, (positive, negative) = self.counts, self.classes
        said = (n.tp, n.fn, n.abstained_positive, self.unparsed[0], n.failed_positive)
        other = (n.fp, n.tn, n.abstained_negative, self.unparsed[1], n.failed_negative)
        return {
            "run": dict(self.run),
            positive: dict(zip(OUTCOMES, said, strict=True)),
            negative: dict(zip(OUTCOMES, other, strict=True)),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Confusion:
        """From the JSON form."""
        positive, negative = (name for name in data if name != "run")
        yes, no = (tuple(data[name][k] for k in OUTCOMES) for name in (positive, negative))
        counts = Counts(tp=yes[0], fn=yes[1], abstained_positive=yes[2], failed_positive=yes[4],
                        fp=no[0], tn=no[1], abstained_negative=no[2], failed_negative=no[4])  # fmt: skip
        return cls(data["run"], counts, (yes[3], no[3]), (positive, negative))


OUTCOMES: Final = ("fake", "real", "uncertain", "unparsed", "error")
"""What became of the trials of a class, as the JSON form calls it; `uncertain` holds the unparsed ones too."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Asides:
    """What a triage has beside its figures: three-way confusions, flips and majority votes of repeated runs, times, costs,
    and what people add to the system."""

    confusions: tuple[Confusion, ...] = ()
    flips: Results = field(default_factory=lambda: Results(()))
    majority: Results = field(default_factory=lambda: Results(()))
    latency: Results = field(default_factory=lambda: Results(()))
    spending: Results = field(default_factory=lambda: Results(()))
    people: Teamwork | None = None

    def asides_dict(self) -> dict[str, Any]:
        """The JSON form."""
        estimates = {name: getattr(self, name).to_dict()["estimates"] for name in LISTS}
        people = {"people": self.people.to_dict()} if self.people is not None else {}
        return {"confusion": [c.to_dict() for c in self.confusions], **estimates, **people}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Asides | None:
        """The asides of a results file; None where it holds none."""
        if "confusion" not in data:
            return None
        try:
            lists = {name: rows_of(data.get(name, [])) for name in LISTS}
            people = Teamwork.from_dict(data["people"]) if data.get("people") else None
            return cls(confusions=tuple(map(Confusion.from_dict, data["confusion"])), people=people, **lists)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"its parts of a triage are not of the form that hitmiss writes: {error}", code="malformed-results"
            ) from None


LISTS: Final = ("flips", "majority", "latency", "spending")


@dataclass(frozen=True, eq=False, kw_only=True)
class Triage(Asides):
    """An evaluation: the figures, and what goes with them."""

    trials: Trials
    figures: Results

    @property
    def repeated(self) -> bool:
        """Whether runs were repeated."""
        return is_repeated(self.trials)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: that of the results, with the other parts beside it."""
        provenance = {k: v for k, v in self.trials.header.provenance.items() if k != "rename"}
        return {**self.figures.to_dict(), **self.asides_dict(), "provenance": provenance}


def evaluate_triage(
    results: Any,
    dataset: Any = None,
    *,
    metrics: Sequence[str] = (),
    by: Sequence[str | Sequence[str]] = (),
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    undefined: str = "null",
    **reading: object,
) -> Triage:
    """From results files (and, where they have no labels, the dataset) to every figure of the document."""
    trials = read_trials(results, dataset, find_protocol("triage"), ReadSpec().changed(**reading))
    return evaluate_trials(
        trials, metrics=metrics, by=by, bootstrap=bootstrap, seed=seed, level=level, undefined=undefined
    )


def evaluate_trials(
    trials: Trials,
    *,
    metrics: Sequence[str] = (),
    by: Sequence[str | Sequence[str]] = (),
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    undefined: str = "null",
) -> Triage:
    """Every figure of the document for trials with verdicts."""
    if undefined not in UNDEFINED:
        raise UnknownName("rule for undefined figures", undefined, UNDEFINED)
    design = Design.of(metrics, by=by, gap=False, bootstrap=bootstrap, seed=seed, level=level, undefined=undefined)
    return evaluate_design(trials, replace(design, protocol=find_protocol("triage"), triage=TriageDesign()))


def evaluate_design(trials: Trials, design: Design) -> Triage:
    """What a design asks of trials with verdicts, and what goes with it in a triage."""
    protocol = design.settled
    if protocol.zero_undefined:
        trials = trials.retitle(choices=(*trials.header.choices, "undefined:zero"))
    plan: dict[str, Any] = {"bootstrap": design.bootstrap, "seed": design.seed, "level": design.level}
    wanted, warnings = _wanted(design.metrics, protocol, trials)
    repeated = is_repeated(trials)
    work = measure_repeated if repeated else measure
    figures = work(trials, wanted, by=design.by, remarks=warnings, protocol=protocol, **plan)
    figures = _with_reference(figures, trials, design.level, design.seed)
    own = replace(figures, design=design, reading=trials.header.reading)
    return Triage(trials=trials, figures=own, **vars(asides_of(trials, protocol, plan)))


def asides_of(trials: Trials, protocol: Protocol, plan: Mapping[str, Any]) -> Asides:
    """What goes with the figures of trials with verdicts."""
    repeated = is_repeated(trials)
    return Asides(
        confusions=tuple(confusions(trials)),
        flips=flips(trials, level=plan["level"]) if repeated else Results(()),
        majority=_majority(trials, protocol, plan) if repeated else Results(()),
        latency=latency(trials, **plan),
        spending=spending(trials),
    )


def _wanted(metrics: Sequence[str], protocol: Protocol, trials: Trials) -> tuple[list[str], list[str]]:
    """The metrics asked for, else those of the document that the columns allow."""
    if metrics:
        return list(metrics), []
    fits, rest = fitting(list(protocol.metrics), trials)
    return fits, left_out([m for m in rest if m != "unparsed_rate"], trials)


def _majority(trials: Trials, protocol: Protocol, plan: Mapping[str, Any]) -> Results:
    voted = majority(trials)
    return measure(voted, ["accuracy", *protocol.slice_metrics], protocol=protocol, **plan)


def _with_reference(results: Results, trials: Trials, level: float, seed: int) -> Results:
    """After each ECE of a whole run, what chance alone would show: the `level` quantile for a calibrated detector."""
    if not any(e.metric.startswith("ece") for e in results):
        return results
    samples = {tuple(s.run.items()): s for s in samples_of_runs(Columns(trials))}
    chance = {
        (e.metric, run): _chance(e, samples[run], level, seed)
        for e in results
        if (run := tuple(e.run.items())) in samples and e.metric.startswith("ece") and not e.slice and e.average is None
    }
    rows = [row for e in results for row in (e, *_beside(e, chance))]
    return replace(results, estimates=tuple(rows))


def _chance(e: Estimate, sample: Sample, level: float, seed: int) -> Estimate:
    if e.value is None:
        return replace(e, metric=CHANCE)
    c, rule = sample.columns, {k: e.settings[k] for k in ("bins", "closed")}
    tally = judged(sample.label, c.named("decision")[sample.rows], c.named("confidence")[sample.rows])
    mean, most = calibrated_ece(tally, level=level, seed=seed, **rule)
    note = f"a calibrated detector shows {mean:.4f} on average and more than this with odds {1 - level:.2g}"
    return replace(e, metric=CHANCE, value=most, low=None, high=None, note=note)


def _beside(e: Estimate, chance: Mapping[tuple[str, Any], Estimate]) -> list[Estimate]:
    """The chance row that belongs after a row of ECE: its own, or the mean over the trials of a repeated run."""
    if not e.metric.startswith("ece") or e.slice:
        return []
    if e.average is None:
        return [chance[e.metric, tuple(e.run.items())]]
    own = [c for (metric, run), c in chance.items() if metric == e.metric and e.run.items() <= dict(run).items()]
    values = [c.value for c in own if c.value is not None]
    if e.average != "mean" or not values:
        return []
    return [replace(e, metric=CHANCE, value=float(np.mean(values)), note="mean over trials", low=None, high=None)]


def confusions(trials: Trials) -> list[Confusion]:
    """The three-way confusion of every run, failures apart."""
    found, classes = [], (trials.header.positive, trials.header.negative)
    for sample in samples_of_runs(Columns(trials)):
        unparsed = (0, 0)
        if "unparsed" in trials.frame.columns:
            marked = sample.columns.named("unparsed")[sample.rows] == 1
            unparsed = int((marked & sample.positive).sum()), int((marked & ~sample.positive).sum())
        found.append(Confusion(sample.run, sample.counts, unparsed, classes))
    return found


def compute_metrics(records: Iterable[Mapping[str, Any]], undefined: str = "null") -> dict[str, Any]:
    """The documented metrics of result records that belong to one run; undefined ones are None (0 with `zero`).

    >>> rows = [{"id": "a", "label": "fake", "prediction": "fake", "confidence": 0.9},
    ...         {"id": "b", "label": "real", "prediction": "uncertain", "confidence": 0.4}]
    >>> found = compute_metrics(rows)
    >>> found["accuracy"], found["coverage"], found["fake_catch_rate"], found["recall_real"]
    (0.5, 0.5, 1.0, None)
    """
    from hitmiss.protocols.triage_file import documented

    table = records_frame(records)
    trials = read_trials(table, None, find_protocol("triage"))
    (found,) = documented(trials, undefined).values()
    return found


def records_frame(records: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Records as the reader meets them in a file: a text column a field, nested fields as JSON."""
    rows = [{k: _field(v) for k, v in record.items()} for record in records]
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame(
        {name: [row.get(name, "") for row in rows] for name in names}, schema=dict.fromkeys(names, pl.String)
    )


def _field(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def write_metrics(evaluation: Triage, path: str | Path, undefined: str = "null", made_at: float | None = None) -> None:
    """Write the documented metrics file (`--metrics-output`)."""
    from hitmiss.protocols.triage_file import metrics_file

    text = json.dumps(metrics_file(evaluation, undefined, made_at), indent=2, ensure_ascii=False, allow_nan=False)
    artifacts.write(path, text + "\n")


def repeats_of(figures: Results) -> list[Estimate]:
    """The figures that stand for whole runs: the mean over trials where runs were repeated, else the run's own."""
    means = [e for e in figures if e.average == "mean"]
    return means or [e for e in figures if e.average is None and not e.slice]


def decided(trials: Trials, design: Design, development: Trials | None = None) -> Trials:
    """The trials that a triage judges: without the half that thresholds were chosen on, with verdicts by the thresholds, and
    with confidences recalibrated on other rows."""
    triage = design.triage or TriageDesign()
    if triage.half:
        trials = halves(trials, design.seed)[1]
    if triage.bands is not None:
        trials = at_bands(trials, triage.bands)
    if triage.recalibration is None:
        return trials
    if development is None:
        raise UsageError(
            "confidences were recalibrated on other rows; give them with --calibrate-on", code="no-development"
        )
    return recalibrate(development, trials, triage.recalibration, "confidence")
