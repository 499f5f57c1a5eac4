"""The triage evaluation document: its evaluation from files, and its metrics file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.classes import about_spoofing, code_of, named_classes
from hitmiss.core.convert import fit
from hitmiss.core.design import Design
from hitmiss.core.design import TriageRules as TriageDesign
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.metric_spec import parse
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import Estimate, Results, rows_of
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.derive.bands import at_bands, at_sureness, halves
from hitmiss.derive.recalibration import recalibrate
from hitmiss.engine.columns import Columns, Sample
from hitmiss.engine.measure import measure_design
from hitmiss.engine.natural_unit import with_natural_unit
from hitmiss.engine.samples import samples_of_runs
from hitmiss.evaluation.fitting import fitting, left_out
from hitmiss.evaluation.protocol import Protocol, find_protocol, read_trials
from hitmiss.io.json_lines import cell_text
from hitmiss.metrics.confidence import calibrated_ece, judged
from hitmiss.metrics.counts import Counts
from hitmiss.protocols.triage_file import documented, metrics_file
from hitmiss.verdicts.latency import latency, spending
from hitmiss.verdicts.people import HumanMachineResults
from hitmiss.verdicts.readings import by_confidence, by_parser
from hitmiss.verdicts.stability import flips, is_repeated, majority, measure_repeated, uneven

UNDEFINED: Final = ("null", "zero")
TABLES: Final = (
    (
        "of all trials",
        (
            "accuracy",
            "coverage",
            "coverage_fake",
            "coverage_real",
            "abstain_rate",
            "unparsed_rate",
            "refused_rate",
            "cut_rate",
            "filtered_rate",
            "error_rate",
        ),
    ),
    ("of all fakes, of all reals", ("fake_slip_rate", "real_false_flag_rate", "fake_catch_rate", "real_pass_rate")),
    (
        "of the answered trials",
        (
            *("accuracy_answered", "precision_fake", "recall_fake", "f1_fake"),
            *("precision_real", "recall_real", "f1_real", "balanced_accuracy", "mcc"),
        ),
    ),
    (
        "confidence, of the answered trials",
        ("ece", "ece_by_chance", "max_calibration_error", "smooth_ece", "brier_confidence"),
    ),
    (
        "answering only where confidence is high",
        ("aurc", "e_aurc", "augrc", "accuracy_at_coverage", "coverage_at_accuracy"),
    ),
)
"""The tables of a triage: their titles and metrics; further metrics have one of their own."""
CHANCE: Final = "ece_by_chance"
"""The ECE that a calibrated detector with the same confidences exceeds in one of twenty cases."""


@dataclass(frozen=True, eq=False)
class Confusion:
    """Outcomes of the trials of one run per class: answers, abstentions (of which `unparsed`), and failures."""

    run: Mapping[str, str]
    counts: Counts[float]
    unparsed: tuple[int, int]
    classes: tuple[str, str] = ("fake", "real")

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form: per class, how many were called what."""
        n, (positive, negative) = self.counts, self.classes
        said = (n.tp, n.fn, n.abstained_positive, self.unparsed[0], n.failed_positive)
        other = (n.fp, n.tn, n.abstained_negative, self.unparsed[1], n.failed_negative)
        return {
            "run": dict(self.run),
            positive: dict(zip(OUTCOMES, said, strict=True)),
            negative: dict(zip(OUTCOMES, other, strict=True)),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Confusion:
        """Read the JSON form."""
        positive, negative = (name for name in data if name != "run")
        sides = [fit(dict[str, object], data[name], (name,)) for name in (positive, negative)]
        yes, no = (tuple(_counted(side[k]) for k in OUTCOMES) for side in sides)
        run = fit(dict[str, str], data["run"], ("run",))
        counts = Counts(tp=yes[0], fn=yes[1], abstained_positive=yes[2], failed_positive=yes[4],
                        fp=no[0], tn=no[1], abstained_negative=no[2], failed_negative=no[4])  # fmt: skip
        return cls(run, counts, (yes[3], no[3]), (positive, negative))


def own_classes(trials: Trials) -> tuple[str, str]:
    """Return the caller's own words for the classes, which the layout reads as fake and real; else the usual ones."""
    head, said = trials.header, trials.header.reading
    if said is None or said.positive is None or about_spoofing(said.positive) or code_of(said.positive) is not None:
        return head.positive, head.negative
    return named_classes(said.positive, said.negative or head.negative)


def _counted(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise ValueError(f"{str(value)[:40]!r} is not a number of trials")
    return value


OUTCOMES: Final = ("fake", "real", "uncertain", "unparsed", "error")
"""Names of the outcomes of a class in the JSON form; `uncertain` includes the unparsed ones."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TriageExtras:
    """The parts of a triage besides its numbers: three-way confusions, flips and majority votes of repeated runs, times,
    costs, and what people add to the system."""

    confusions: tuple[Confusion, ...] = ()
    flips: Results = field(default_factory=lambda: Results(()))
    majority: Results = field(default_factory=lambda: Results(()))
    latency: Results = field(default_factory=lambda: Results(()))
    spending: Results = field(default_factory=lambda: Results(()))
    parsers: Results = field(default_factory=lambda: Results(()))
    """The main numbers by how answers are read, if that matters."""
    confidences: Results = field(default_factory=lambda: Results(()))
    """Calibration by each source of confidence, if there are several."""
    people: HumanMachineResults | None = None

    def asides_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        estimates = {name: getattr(self, name).to_dict()["estimates"] for name in LISTS}
        people = {"people": self.people.to_dict()} if self.people is not None else {}
        return {"confusion": [c.to_dict() for c in self.confusions], **estimates, **people}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> TriageExtras | None:
        """Read the additional parts of a results file; None if it has none."""
        if "confusion" not in data:
            return None
        try:
            lists = {name: rows_of(data.get(name, [])) for name in LISTS}
            people = data.get("people")
            return cls(
                confusions=tuple(map(Confusion.from_dict, fit(list[dict[str, object]], data["confusion"]))),
                people=HumanMachineResults.from_dict(fit(dict[str, object], people)) if people else None,
                **lists,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError.of("malformed-results", error=error) from None


OUTCOME_RATES: Final = ("unparsed_rate", "refused_rate", "cut_rate", "filtered_rate")
"""Metrics that need rows which say what came of each call."""
LISTS: Final = ("flips", "majority", "latency", "spending", "parsers", "confidences")


@dataclass(frozen=True, eq=False, kw_only=True)
class Triage(TriageExtras):
    """A triage evaluation: the numbers and the additional parts."""

    trials: Trials
    figures: Results

    @property
    def repeated(self) -> bool:
        """Say whether runs were repeated."""
        return is_repeated(self.trials)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form: that of the results, with the other parts added."""
        provenance = {k: v for k, v in self.trials.header.provenance.items() if k != "rename"}
        return {**self.figures.to_dict(), **self.asides_dict(), "provenance": provenance}


def evaluate_triage(
    results: object,
    dataset: object = None,
    *,
    metrics: Sequence[str] = (),
    by: Sequence[str | Sequence[str]] = (),
    bootstrap: int = 1000,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    undefined: str = "null",
    **reading: object,
) -> Triage:
    """Measure every number of the triage evaluation document from results files (labels may come from a dataset)."""
    trials = read_trials(results, dataset, find_protocol("triage"), ReadSpec().changed(**reading))
    return evaluate_trials(
        trials, metrics=metrics, by=by, bootstrap=bootstrap, unit=unit, seed=seed, level=level, undefined=undefined
    )


def evaluate_trials(
    trials: Trials,
    *,
    metrics: Sequence[str] = (),
    by: Sequence[str | Sequence[str]] = (),
    bootstrap: int = 1000,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    undefined: str = "null",
) -> Triage:
    """Measure every documented number for trials with verdicts; `unit` names what is drawn as a whole."""
    if undefined not in UNDEFINED:
        raise UnknownName("rule for undefined numbers", undefined, UNDEFINED)
    design = Design.of(
        metrics, by=by, gap=False, undefined=undefined, bootstrap=bootstrap, unit=unit, seed=seed, level=level
    )
    return evaluate_design(trials, replace(design, protocol=find_protocol("triage"), triage=TriageDesign()))


def evaluate_design(trials: Trials, design: Design) -> Triage:
    """Measure what a design asks of trials with verdicts, with the additional parts of a triage."""
    design = with_natural_unit(design, trials)
    protocol = design.rules
    if protocol.zero_undefined:
        trials = trials.retitle(choices=(*trials.header.choices, "undefined:zero"))
    plan = SamplingPlan(design.bootstrap, trials.unit_names(design.units), design.seed, design.level)
    wanted, warnings = _wanted(design.metrics, protocol, trials)
    work = measure_repeated if is_repeated(trials) else measure_design
    is_protocols = [parse(m).name for m in wanted] == fitting(list(protocol.metrics), trials)[0]
    narrow = protocol.slice_metrics if is_protocols else ()  # what is asked for is in every table
    figures = work(trials, Design.by_plan(plan, wanted, design.by, protocol), warnings, narrow=narrow)
    figures = _with_reference(figures, trials, design.level, design.seed)
    own = replace(figures, design=design, reading=trials.header.reading)
    return Triage(trials=trials, figures=own, **vars(extras_of(trials, protocol, plan)))


def extras_of(trials: Trials, protocol: Protocol, plan: SamplingPlan) -> TriageExtras:
    """Return the additional parts for trials with verdicts."""
    repeated = is_repeated(trials)
    return TriageExtras(
        confusions=tuple(confusions(trials)),
        flips=flips(trials, plan) if repeated else Results(()),
        majority=_majority(trials, protocol, plan) if repeated else Results(()),
        latency=latency(trials, plan),
        spending=spending(trials),
        parsers=by_parser(trials, protocol, plan),
        confidences=by_confidence(trials, protocol, plan),
    )


def _wanted(metrics: Sequence[str], protocol: Protocol, trials: Trials) -> tuple[list[str], list[str]]:
    """Return the requested metrics, or else the documented ones that the columns allow."""
    if metrics:
        return list(metrics), []
    fits, rest = fitting(list(protocol.metrics), trials)
    return fits, left_out({m: lack for m, lack in rest.items() if m not in OUTCOME_RATES}, trials)


def _majority(trials: Trials, protocol: Protocol, plan: SamplingPlan) -> Results:
    metrics = ("accuracy", *protocol.slice_metrics)
    return measure_design(majority(trials), Design.by_plan(plan, metrics, protocol=protocol))


def _with_reference(results: Results, trials: Trials, level: float, seed: int) -> Results:
    """Add after each ECE of a whole run its value by chance: the `level` quantile for a calibrated detector."""
    if not any(e.metric.startswith("ece") for e in results):
        return results
    samples = {tuple(s.run.items()): s for s in samples_of_runs(Columns(trials))}
    chance = {
        (e.metric, run): _chance(e, samples[run], level, seed)
        for e in results
        if (run := tuple(e.run.items())) in samples and e.metric.startswith("ece") and not e.slice and e.average is None
    }
    lacking = uneven(trials) if is_repeated(trials) else {}
    rows = [row for e in results for row in (e, *([] if tuple(e.run.items()) in lacking else _beside(e, chance)))]
    return replace(results, estimates=tuple(rows))


def _chance(e: Estimate, sample: Sample, level: float, seed: int) -> Estimate:
    if e.value is None:
        return replace(e, metric=CHANCE)
    c, bins, closed = sample.columns, fit(int, e.settings["bins"]), fit(str, e.settings["closed"])
    tally = judged(sample.label, c.named("decision")[sample.rows], c.named("confidence")[sample.rows])
    mean, most = calibrated_ece(tally, level=level, seed=seed, bins=bins, closed=closed)
    note = f"a calibrated detector shows {mean:.4f} on average and more than this with odds {1 - level:.2g}"
    return replace(e, metric=CHANCE, value=most, low=None, high=None, note=note)


def _beside(e: Estimate, chance: Mapping[tuple[str, tuple[tuple[str, str], ...]], Estimate]) -> list[Estimate]:
    """Return the chance row that follows a row of ECE: its own, or the mean over the trials of a repeated run."""
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
    """Count the three-way confusion of every run, with failures separate."""
    found, classes = [], own_classes(trials)
    for sample in samples_of_runs(Columns(trials)):
        unparsed = (0, 0)
        if "unparsed" in trials.frame.columns:
            marked = sample.columns.named("unparsed")[sample.rows] == 1
            unparsed = int((marked & sample.positive).sum()), int((marked & ~sample.positive).sum())
        found.append(Confusion(sample.run, sample.counts, unparsed, classes))
    return found


def compute_metrics(records: Iterable[Mapping[str, object]], undefined: str = "null") -> dict[str, object]:
    """Compute the documented metrics of result records of one run; undefined ones are None (0 with `zero`).

    >>> rows = [{"id": "a", "label": "fake", "prediction": "fake", "confidence": 0.9},
    ...         {"id": "b", "label": "real", "prediction": "uncertain", "confidence": 0.4}]
    >>> found = compute_metrics(rows)
    >>> found["accuracy"], found["coverage"], found["fake_catch_rate"], found["recall_real"]
    (0.5, 0.5, 1.0, None)
    """

    table = records_frame(records)
    trials = read_trials(table, None, find_protocol("triage"))
    (found,) = documented(trials, undefined).values()
    return found


def records_frame(records: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Convert records to the form that the reader finds in a file: one text column per field, nested fields as JSON."""
    rows = [{k: cell_text(v) for k, v in record.items()} for record in records]
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame(
        {name: [row.get(name, "") for row in rows] for name in names}, schema=dict.fromkeys(names, pl.String)
    )


def write_metrics(evaluation: Triage, path: str | Path, undefined: str = "null", made_at: float | None = None) -> None:
    """Write the documented metrics file (`--metrics-output`)."""

    text = json.dumps(metrics_file(evaluation, undefined, made_at), indent=2, ensure_ascii=False, allow_nan=False)
    artifacts.write(path, text + "\n")


def repeats_of(figures: Results) -> list[Estimate]:
    """Return the numbers of whole runs: the mean over trials where runs were repeated, else the run's own."""
    means = [e for e in figures if e.average == "mean"]
    return means or [e for e in figures if e.average is None and not e.slice]


def unit_of(design: Design) -> str | None:
    """Return the single unit used for guarantees and for halving; None if rows are independent."""
    if len(design.units) > 1:
        raise UsageError.of("guarantee-units/guarantees", unit=tuple(design.unit))
    return design.units[0] if design.units else None


def decided(trials: Trials, design: Design, development: Trials | None = None) -> Trials:
    """Return the trials to judge: without the half used to choose thresholds, with verdicts by the thresholds, and
    with confidences recalibrated on other rows."""
    triage = design.triage or TriageDesign()
    if triage.half:
        trials = halves(trials, design.seed, unit_of(design))[1]
    if triage.bands is not None:
        trials = at_bands(trials, triage.bands)
    if triage.sureness is not None:
        trials = at_sureness(trials, triage.sureness)
    if triage.recalibration is None:
        return trials
    if development is None:
        raise UsageError.of("no-development/confidences")
    return recalibrate(development, trials, triage.recalibration, "confidence")
