"""Runs of attacks as ordinary trials: each record together with the model's answer for it without an attack.

A run of `hitmiss attack` has one row per record, class, attack and strength, with the unchanged records under attack
`clean` (`noise ~ pgd` is the control of `pgd`: random signs of the same norm). Numbers of whole records are measured on
`records_of`, one row per record; numbers of single classes (`by="target"`) on `classes_of`. The rest is done by
`measure`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core.columns import prefixed
from hitmiss.core.design import INDEPENDENT, ComparisonRules, Design, Grouping
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.finding import Remark
from hitmiss.core.metric_spec import parse
from hitmiss.core.registry import find_metric
from hitmiss.core.results import Estimate, Results
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.trials import Trials
from hitmiss.engine.comparability import Breach
from hitmiss.engine.compare import compare_design, digest_of, with_sides
from hitmiss.engine.comparison import Comparison, Difference
from hitmiss.engine.measure import measure_design
from hitmiss.engine.pairing import pair
from hitmiss.engine.signature import GAPS_JOIN, read_signature, render, signed
from hitmiss.metrics.attack_families import AIMED, COMPARED, NORMS, OF_CLASSES, OF_RECORDS, UNTOUCHED
from hitmiss.robustness.campaign import CLEAN, CONTROL, AttackCondition, Campaign
from hitmiss.robustness.health import health

TARGET: Final = ("target",)
PATIENTS: Final = ("patient", "patient_id")
USUAL: Final = {"aim": "any", "place": "whole"}
"""The values for attacks of a run without such a column."""
SHOWN: Final = 3


def records_of(trials: Trials) -> Trials:
    """Return one row per record, attack and strength, with the columns for attack metrics (see `metrics.robustness`).

    The label says whether a record has any of the classes. Slices, numbers and run columns are kept.
    """
    campaign = Campaign.of(trials)
    frame = pl.concat([_rows(campaign, cell) for cell in (campaign.clean, *campaign.cells)])
    taken = {name: prefixed(name) for name in trials.header.slices if name in frame.columns}
    slices = pl.DataFrame(
        {taken.get(name, name): values * (1 + len(campaign.cells)) for name, values in campaign.columns.items()},
        schema={taken.get(name, name): pl.String for name in campaign.columns},
    )
    head = trials.header.renamed(taken)
    made = [name for name in frame.columns if name not in ("item", "label", *head.runs)]
    numbers = tuple(name for name in made if frame.schema[name].is_numeric())
    return Trials.from_frame(pl.concat([frame, slices], how="horizontal"), replace(head, numbers=numbers))


def _rows(campaign: Campaign, cell: AttackCondition) -> pl.DataFrame:
    truth, before, after, n = campaign.truth, campaign.clean.bits, cell.bits, len(campaign.records)
    reached, open_ = aim_of(campaign, cell)
    columns: dict[str, list[str] | pl.Series | Array] = {
        "item": campaign.records,
        "label": np.asarray(truth.any(axis=1), dtype=np.int8),
        **{name: pl.Series([value]).new_from_index(0, n) for name, value in cell.run.items()},
        **{name: values.astype(np.float64) for name, values in cell.numbers.items()},
        "changed_any": _nothing(n) if cell is campaign.clean else (before != after).any(axis=1).astype(np.float64),
        "right_all": (truth == after).all(axis=1).astype(np.float64),
        "right_clean": (truth == before).all(axis=1).astype(np.float64),
        "aim_reached": reached,
        "aim_open": open_,
        "class_labels": pl.Series(truth, dtype=pl.Array(pl.Int8, truth.shape[1])),
        "class_scores": pl.Series(cell.score, dtype=pl.Array(pl.Float64, truth.shape[1])),
    }
    return pl.DataFrame(columns)


def _nothing(n: int) -> Floats:
    return np.full(n, np.nan)


def aim_of(campaign: Campaign, cell: AttackCondition) -> tuple[Floats, Floats]:
    """Return whether each record's label is as the attack wants it, and whether it could change; NaN without an aim."""
    mode, _, name = cell.run.get("aim", "any").partition(" ")
    if name not in campaign.classes:
        return _nothing(len(campaign.records)), _nothing(len(campaign.records))
    at, wanted = campaign.classes.index(name), 1 if mode == "force" else 0
    before, after = campaign.clean.bits[:, at], cell.bits[:, at]
    reached = after == 1 if wanted else (before == 1) & (after == 0)
    return reached.astype(np.float64), (before != wanted).astype(np.float64)


def classes_of(trials: Trials) -> Trials:
    """Return the rows of all classes, each with `decision_clean`: the model's answer for the unchanged record."""
    clean = trials.frame.filter(attack=CLEAN).select(
        "item", "target", decision_clean=pl.col("decision").cast(pl.Float64)
    )
    frame = trials.frame.drop("decision_clean", strict=False)
    frame = frame.join(clean, on=["item", "target"], how="left", maintain_order="left")
    numbers = tuple(dict.fromkeys((*trials.header.numbers, "decision_clean")))
    return Trials(frame, replace(trials.header, numbers=numbers))


def measure_attacks(trials: Trials, design: Design | None = None, **asked: object) -> Results:
    """Measure every number of every attack, as a design (or the keywords of `Design.of`) asks.

    `by="target"` gives the numbers of single classes, other groupings those of groups of records. The unit is the
    patient if some patient has several records, else the record.
    """
    return measure_parts(trials, design or Design.of(**asked), [trials])  # type: ignore[arg-type]


def measure_parts(trials: Trials, design: Design, parts: Iterable[Trials]) -> Results:
    """Measure a run of attacks part by part, for runs that do not fit into memory.

    `trials` are the whole run, kept or counted. Each part holds some of the attacks and the records without an attack.
    Numbers belong to one attack, and records or patients, which all parts share, are drawn; so it does not matter how
    a run is cut. Of earlier parts only the answers are kept.
    """
    campaign: Campaign | None = None
    of_records: list[Results] = []
    of_classes: list[Results] = []
    for part in parts:
        own = Campaign.of(part)
        measured = _measured(part, own, design)
        for made, kept in zip(measured, (of_records, of_classes), strict=True):
            rows = [e for e in made if campaign is None or e.run["attack"] != CLEAN]
            kept.append(replace(made, estimates=tuple(rows), behind=None))
        campaign = own if campaign is None else campaign.joined(own)
    if campaign is None:
        raise DataError.of("no-trials")
    found = [*of_records, *of_classes]
    rows = _arranged([e for made in found for e in made], campaign, design.groupings)
    warnings = dict.fromkeys((*(w for made in found for w in made.warnings), *health(campaign)))
    results = Results(tuple(rows), warnings=tuple(warnings), protocol="ecg-attacks", behind=trials)
    results = replace(results, reading=trials.header.reading, design=design)
    by = ",".join("*".join(names) for names in design.groupings)
    boot = str(replace(design, unit=_unit(design, campaign)).plan)
    gap = GAPS_JOIN.join(map(str, design.gaps)) or "none"
    metrics = "+".join(design.metrics) or "none"
    return replace(results, signature=signed(results, trials, by=by or "none", boot=boot, gap=gap, metrics=metrics))


def _measured(trials: Trials, campaign: Campaign, design: Design) -> tuple[Results, Results]:
    """Measure the numbers of records and the numbers of classes of some attacks."""
    records, classes = _asked(design)
    groupings = [g for g in design.groupings if g != TARGET]
    for name in (n for g in groupings for n in g if n == "target" and prefixed(n) not in trials.header.slices):
        raise UsageError.of("bad-grouping", name=name)
    unit = _unit(design, campaign)
    of_records = of_classes = Results(())
    if records:
        made = records_of(trials)
        fitting = [m for m in records if all(c in made.frame.columns for c in find_metric(parse(m).name).columns)]
        own = replace(design, metrics=tuple(fitting), by=tuple(groupings), matrix=(), unit=unit)
        of_records = measure_design(made, own)
    if classes and (TARGET in design.groupings or not records):
        pooled = unit if unit not in ((), INDEPENDENT) else (("item",) if design.bootstrap else ())
        own = replace(design, metrics=tuple(classes), by=(TARGET,), matrix=(), unit=pooled, gap="none")
        measured = measure_design(classes_of(trials), own)
        of_classes = replace(measured, estimates=tuple(e for e in measured if e.slice))
    return of_records, of_classes


def _asked(design: Design) -> tuple[list[str], list[str]]:
    """Return the record metrics and the class metrics that a design asks for: by name, or all."""
    if not design.metrics:
        return list(OF_RECORDS), list(OF_CLASSES)
    own = [m for m in design.metrics if parse(m).name in OF_RECORDS]
    return own, [m for m in design.metrics if m not in own]


def _unit(design: Design, campaign: Campaign) -> Grouping:
    """Return the unit that is drawn: that of the design, or the patient, if some patient has several records."""
    if design.unit:
        return design.unit
    name = next((c for c in PATIENTS if c in campaign.columns), None)
    return (name,) if name is not None and len(set(campaign.columns[name])) < len(campaign.records) else ()


def _arranged(rows: Sequence[Estimate], campaign: Campaign, groupings: Sequence[Grouping]) -> list[Estimate]:
    """Return the meaningful rows, by grouping, then by attack and strength, with each control after its attack."""
    runs = {tuple(sorted(cell.run.items())): i for i, cell in enumerate((campaign.clean, *campaign.cells))}
    tables = {(): -1, **{tuple(g): i for i, g in enumerate(groupings)}}
    kept = [  # a norm describes an attack, without inference
        replace(e, low=None, high=None, method=None, note=None) if e.metric in NORMS else e
        for e in rows
        if _is_of(e, campaign)
    ]
    return sorted(kept, key=lambda e: (tables.get(tuple(e.slice), len(tables)), runs[tuple(sorted(e.run.items()))]))


def _is_of(e: Estimate, campaign: Campaign) -> bool:
    """Return whether a number applies: unchanged records have no success, and an attack without an aim no target."""
    if e.run["attack"] == CLEAN:
        return e.metric.partition("(")[0] in UNTOUCHED
    if e.metric in AIMED:
        return e.run.get("aim", "any").partition(" ")[2] in campaign.classes
    if e.metric in (*NORMS, "median_minimal_strength"):
        return e.value is not None and (e.average is None or e.metric not in NORMS)
    return True


def compare_attacks(a: Trials, b: Trials, design: Design, names: tuple[str, str] = ("A", "B")) -> Comparison:
    """Compare two models under the same attacks: B − A for each attack and strength that both have, paired by record.

    Controls are left out: they belong to the attack of their own run.
    """
    contest = design.contest or ComparisonRules()
    for trials in (a, b):
        Campaign.of(trials)
    (one, other), warnings = _shared(a, b, names)
    clean = [t.where(attack=CLEAN) for t in (one, other)]
    pair(
        *clean, names=names, allow_missing=contest.allow_missing
    )  # the same records, and the same labels of each class
    warnings += _checked(one, other, names, contest.force)
    unit = _unit(design, Campaign.of(one))
    on_records, on_classes = _asked(design)
    own = [m for m in on_records if m in COMPARED and (m not in AIMED or _is_aimed(one))]
    if not own and not on_classes:
        raise UsageError.of("no-metric", on_records=tuple(on_records), COMPARED=tuple(COMPARED))
    asked = replace(design, contest=contest, unit=unit, matrix=())
    parts = []
    if own:
        groupings = tuple(g for g in design.groupings if g != TARGET)
        of_records = replace(asked, metrics=tuple(own), by=groupings)
        parts.append(compare_design(records_of(one), records_of(other), of_records, names))
    if on_classes and (TARGET in design.groupings or not own):
        of_target = replace(asked, metrics=tuple(on_classes), by=(TARGET,))
        of_classes = compare_design(classes_of(one), classes_of(other), of_target, names)
        parts.append(replace(of_classes, differences=tuple(d for d in of_classes if "target" in d.slice)))
    rows = [d for part in parts for d in part if _is_difference(d)]
    rows.sort(key=lambda d: [*COMPARED, *OF_CLASSES, d.metric].index(d.metric))
    said = dict.fromkeys((*warnings, *(w for part in parts for w in part.warnings)))
    made = replace(parts[0], differences=tuple(rows), discordances=(), warnings=tuple(said))
    made = replace(made, design=with_sides(replace(design, contest=contest), {names[0]: a, names[1]: b}))
    by = ",".join("*".join(g) for g in design.groupings) or "none"
    told = {"compare": "attacks", "protocol": "ecg-attacks", "metrics": "+".join(design.metrics) or "none", "by": by}
    signature = read_signature(made.signature) | told | {"out": digest_of(made)}
    return replace(made, protocol="ecg-attacks", signature=render(signature))


def _shared(a: Trials, b: Trials, names: tuple[str, str]) -> tuple[tuple[Trials, Trials], list[str]]:
    """Return both runs with their common attacks, including clean records but not controls; note what one lacks."""
    runs = tuple(dict.fromkeys((*a.header.runs, *b.header.runs)))
    sides, keys = [], []
    for trials in (a, b):
        absent = [pl.lit(USUAL.get(name, "")).alias(name) for name in runs if name not in trials.header.runs]
        frame = trials.frame.with_columns(absent).filter(~pl.col("attack").str.starts_with(CONTROL))
        sides.append(replace(trials.retitle(runs=runs), frame=frame, unique_over=None))
        keys.append(frame.select(runs).unique())
    both = keys[0].join(keys[1], on=runs, how="semi")
    warnings: list[str] = []
    for own, name in zip(keys, names, strict=True):
        alone = own.join(both, on=runs, how="anti").sort("attack", "strength").iter_rows()
        said = [" ".join(v for v in row if v not in USUAL.values()) for row in alone]
        if said:
            warnings.append(Remark.of("only-in-one/attack", name=name, attacks=[*said[:6], *["…"] * (len(said) > 6)]))
    if both.filter(pl.col("attack") != CLEAN).is_empty():
        raise UsageError.of("nothing-shared")
    one, other = (replace(t, frame=t.frame.join(both, on=runs, how="semi", maintain_order="left")) for t in sides)
    return (one, other), warnings


def _checked(a: Trials, b: Trials, names: tuple[str, str], force: bool) -> list[str]:
    """Refuse attacks that differ, or report them if forced; note what cannot be checked."""
    told = [t.header.facts("attacks") for t in (a, b)]
    wrong = []
    for run in a.frame.select(a.header.runs).unique().sort("attack", "strength").iter_rows(named=True):
        name = " ".join(v for k, v in sorted(run.items()) if USUAL.get(k) != v)
        said = [t.get(name) for t in told]
        if None not in said and said[0] != said[1]:
            wrong.append(
                Breach("different attacks", f"{name} was another attack in {names[1]}", (str(said[0]), str(said[1])))
            )
    if wrong and not force:
        raise DataError.of("incomparable", first=names[0], second=names[1], wrong="; ".join(map(str, wrong[:SHOWN])))
    found: list[str] = [Remark.of("comparison-forced/invalid", breach=breach) for breach in wrong]
    if not all(told):
        found.append("different attacks? Not both runs record the settings of their attacks, so this was not checked")
    seeds = [t.header.provenance.get("seed") for t in (a, b)]
    if None not in seeds and seeds[0] != seeds[1]:
        found.append(f"the runs drew other noise (seeds {seeds[0]} and {seeds[1]}): a part of the difference is chance")
    return found


def _is_aimed(trials: Trials) -> bool:
    return "aim" in trials.header.runs and bool((trials.frame["aim"] != USUAL["aim"]).any())


def _is_difference(d: Difference) -> bool:
    """Return whether a difference applies to its attack (see `_is_of`)."""
    if d.slice["attack"] == CLEAN:
        return d.metric.partition("(")[0] in UNTOUCHED
    return d.metric not in AIMED or d.slice.get("aim", USUAL["aim"]) != USUAL["aim"]
