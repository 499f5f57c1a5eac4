"""Tables of a triage evaluation, and of what people add to a system."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Final, cast

from hitmiss.core.metric_spec import MetricSpec, Setting
from hitmiss.core.rates import Rate
from hitmiss.core.results import Estimate, Results, number
from hitmiss.derive.bands import Answered, Point
from hitmiss.findings.wording import PLACES
from hitmiss.metrics.counts import Counts
from hitmiss.protocols.triage import CHANCE, TABLES, Confusion, Triage, TriageExtras, repeats_of
from hitmiss.reports.flow_plate import FlowPath
from hitmiss.reports.grids import groupings
from hitmiss.reports.people_tables import people_tables
from hitmiss.reports.result_tables import slice_table as by_slice
from hitmiss.reports.table import Table, TableCell, crossed
from hitmiss.reports.table_style import TEXT, TableStyle, bracketed, titled
from hitmiss.verdicts.latency import METRICS as OF_SECONDS
from hitmiss.verdicts.people import RIGHT, UNDECIDED, WRONG
from hitmiss.verdicts.reliability import Bin

OTHERS: Final = "further metrics"


def tables(evaluation: Triage) -> list[Table]:
    """Return every table: the confusion, the numbers by kind, slices, repetitions, times."""
    title = "verdicts, all trials together" if evaluation.repeated else "verdicts"
    found = [confusion_table(over_trials(evaluation.confusions), title), *figure_tables(evaluation.figures)]
    figures = evaluation.figures
    runs = [dict(r) for r in dict.fromkeys(tuple(e.run.items()) for e in figures if e.slice)]
    found += [by_slice(_wholes(figures), names, run, "fake") for names in groupings(figures) for run in runs]
    return found + beside_tables(evaluation)


def beside_tables(extras: TriageExtras, style: TableStyle = TEXT) -> list[Table]:
    """Return the tables of repetitions, times and costs, if there are any; then what people add."""
    found = [repeats_table(extras, style)] if len(extras.flips) else []
    found += [latency_table(extras.latency)] if len(extras.latency) else []
    found += [spending_table(extras.spending)] if len(extras.spending) else []
    found += [readings_table(extras.parsers, "how far numbers depend on the parser")] if len(extras.parsers) else []
    found += [readings_table(extras.confidences, "calibration by confidence")] if len(extras.confidences) else []
    return found + (people_tables(extras.people, style) if extras.people is not None else [])


def readings_table(results: Results, title: str) -> Table:
    """Show the numbers of each run by how its answers were read: the last run column says how."""
    names = list(dict.fromkeys(name for e in results for name in e.run))
    cells = [
        (
            tuple(e.run.get(name, "") for name in names),
            e.metric,
            TableCell("–" if e.value is None else f"{e.value:.4f}"),
        )
        for e in results
        if not e.slice and e.average is None
    ]
    return crossed(title, names, cells)


def flows(extras: TriageExtras) -> list[tuple[str, tuple[str, ...], list[FlowPath]]]:
    """Return for each run its name, the stages, and the trials on each path: truth, system, people, outcome."""
    if extras.people is not None and extras.people.paths:
        grouped: dict[str, list[FlowPath]] = defaultdict(list)
        for path in extras.people.paths:
            stages = (path.truth, f"said {path.system}", path.people, path.outcome)
            grouped["|".join(path.run.values())].append(FlowPath(stages, path.n))
        return [(name, ("in truth", "system", "people", "outcome"), ways) for name, ways in grouped.items()]
    return [
        ("|".join(c.run.values()), ("in truth", "system", "outcome"), _ways(c)) for c in over_trials(extras.confusions)
    ]


def _ways(c: Confusion) -> list[FlowPath]:
    """Count the system's answers for the trials of each class."""
    n, (positive, negative) = c.counts, c.classes
    found = (
        (positive, positive, RIGHT, n.tp),
        (positive, negative, WRONG, n.fn),
        (negative, negative, RIGHT, n.tn),
        (negative, positive, WRONG, n.fp),
        (positive, "uncertain", UNDECIDED, n.abstained_positive),
        (negative, "uncertain", UNDECIDED, n.abstained_negative),
        (positive, "failed", UNDECIDED, n.failed_positive),
        (negative, "failed", UNDECIDED, n.failed_negative),
    )
    return [FlowPath((truth, f"said {said}", end), int(k)) for truth, said, end, k in found if k]


def _wholes(figures: Results) -> Results:
    """Return the slices, with the number of the whole run as the pooled row."""
    whole = [replace(e, average=None) for e in repeats_of(figures)]
    return replace(figures, estimates=(*whole, *(e for e in figures if e.slice)))


def over_trials(confusions: Sequence[Confusion]) -> list[Confusion]:
    """Add up the confusions of the trials of each run."""
    groups: dict[tuple[tuple[str, str], ...], list[Confusion]] = defaultdict(list)
    for c in confusions:
        groups[tuple((k, v) for k, v in c.run.items() if k != "trial")].append(c)
    names = [f.name for f in fields(Counts)]
    return [
        Confusion(
            dict(run),
            Counts(*(sum(getattr(c.counts, name) for c in own) for name in names)),
            (sum(c.unparsed[0] for c in own), sum(c.unparsed[1] for c in own)),
            own[0].classes,
        )
        for run, own in groups.items()
    ]


def confusion_table(confusions: Sequence[Confusion], title: str = "verdicts") -> Table:
    """Show truth as rows and verdicts as columns; unparsed verdicts and failed calls are separate."""
    names = _run_names([dict(c.run) for c in confusions])
    rows: list[tuple[TableCell, ...]] = []
    for c in confusions:
        n, run = c.counts, tuple(TableCell(c.run.get(k, "")) for k in names)
        said = (
            (c.classes[0], n.fn, n.tp, n.abstained_positive, c.unparsed[0], n.failed_positive),
            (c.classes[1], n.tn, n.fp, n.abstained_negative, c.unparsed[1], n.failed_negative),
        )
        for truth, real, fake, silent, unparsed, failed in said:
            counts = (real, fake, silent - unparsed, unparsed, failed, real + fake + silent + failed)
            rows.append((*run, TableCell(truth), *(TableCell(f"{int(k):,}") for k in counts)))
    positive, negative = confusions[0].classes if confusions else ("fake", "real")
    header = (*names, "truth", f"said {negative}", f"said {positive}", "uncertain", "unparsed", "error", "n")
    return Table(title, header, tuple(rows), len(names) + 1)


def figure_tables(figures: Results) -> list[Table]:
    """Return one table per kind of figure: one row per metric, one column per run, with sd where runs were repeated."""
    shown = repeats_of(figures)
    spread = {(e.metric, tuple(e.run.items())): e for e in figures if e.average == "sd"}
    runs = list(dict.fromkeys(tuple(e.run.items()) for e in shown))
    known = {name for _, names in TABLES for name in names}
    rest = tuple(dict.fromkeys(base(e.metric) for e in shown if base(e.metric) not in known))
    sections = (*TABLES, (OTHERS, rest))
    found = [
        _figures(title, [e for e in shown if base(e.metric) in names], names, runs, spread) for title, names in sections
    ]
    return [table for table in found if table.rows]


def base(metric: str) -> str:
    """Return a metric's name without its settings."""
    return metric.partition("(")[0]


def _figures(
    title: str,
    own: list[Estimate],
    names: Sequence[str],
    runs: Sequence[tuple[tuple[str, str], ...]],
    spread: Mapping[tuple[str, tuple[tuple[str, str], ...]], Estimate],
) -> Table:
    metrics = sorted(own, key=lambda e: names.index(base(e.metric)))
    cells = []
    for e in metrics:
        run, key = tuple(e.run.items()), (_metric_name(e),)
        cells.append((key, _named(run), TEXT.cell(e, PLACES)))
        sd = spread.get((e.metric, run))
        cells += (
            [(key, f"sd {_named(run)}", TableCell(number(sd.value)))] if sd is not None and sd.value is not None else []
        )
    columns = [part for run in runs for part in ((_named(run), f"sd {_named(run)}") if spread else (_named(run),))]
    table = crossed(title, ("metric",), cells, columns)
    return replace(table, header=("metric", *("sd" if spread and i % 2 else c for i, c in enumerate(columns))))


def _metric_name(e: Estimate) -> str:
    """Return a metric with all its settings and the better direction; the number of chance has none."""
    if base(e.metric) == CHANCE:
        return "  … by chance, at most"
    return titled(replace(e, metric=str(MetricSpec.of(base(e.metric), **cast("Mapping[str, Setting]", e.settings)))))


def _named(run: Sequence[tuple[str, str]]) -> str:
    return "|".join(v for _, v in run) or "value"


def _run_names(runs: Sequence[Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(k for run in runs for k in run))


def repeats_table(extras: TriageExtras, style: TableStyle = TEXT) -> Table:
    """Show for each run how many verdicts flip between trials, and the numbers of the majority vote."""
    rows = [*extras.flips, *extras.majority]
    cells = []
    for e in rows:
        of = "" if "flip" in e.metric else " of the majority"
        arrow = titled(e).removeprefix(e.metric)
        cells.append(((f"{e.metric}{of}{arrow}",), _named(tuple(e.run.items())), style.cell_with_unit(e)))
    n = len({c.run.get("trial") for c in extras.confusions})
    return crossed(f"over {n} trials", ("metric",), cells)


def latency_table(latency: Results) -> Table:
    """Show median and 95th percentile of the seconds per run and component, cache hits and misses separate."""
    names = _run_names([dict(e.run) for e in latency])
    heads = dict(zip(OF_SECONDS, ("median", "95th percentile"), strict=True))
    cells = []
    for e in sorted(latency, key=lambda e: list(e.run.values())):
        served = next(iter(e.slice.values()))
        key = (*(e.run.get(k, "") for k in names), served, f"{int(e.of or 0):,}")
        cells += [(key, heads[e.metric], _seconds(e))] if e.metric in heads else []
    table = crossed("seconds", (*names, "cache", "n"), cells, tuple(heads.values()), "–")
    return replace(table, labels=len(names) + 1, counts=1)


def spending_table(spending: Results) -> Table:
    """Show for each run the cost of its answers, in total and per trial, and their tokens."""
    names = _run_names([dict(e.run) for e in spending])
    cells = [
        (tuple(e.run.get(k, "") for k in names), e.metric.replace("_", " "), TableCell(_amount(e.value), e.note or ""))
        for e in spending
    ]
    return crossed("cost", names, cells, missing="–")


def _amount(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _seconds(e: Estimate) -> TableCell:
    if e.value is None:
        return TableCell("–")
    ends = f"[{e.low:.2f}, {e.high:.2f}]" if e.low is not None and e.high is not None else ""
    return TableCell(f"{e.value:.2f}", ends)


def reliability_table(bins: Sequence[Bin]) -> Table:
    """Show stated confidence against the share right, bin by bin."""
    names = _run_names([b.run for b in bins])
    rows = [
        (
            *(TableCell(b.run.get(k, "")) for k in names),
            TableCell(f"{b.edges[0]:g}–{b.edges[1]:g}"),
            TableCell(f"{b.n:,}"),
            TableCell(number(b.confidence)),
            TableCell(number(b.accuracy), bracketed(b.low, b.high)),
            TableCell(f"{b.accuracy - b.confidence:+.4f}"),
        )
        for b in bins
    ]
    return Table(
        "reliability", (*names, "confidence", "n", "mean stated", "share right", "gap"), tuple(rows), len(names) + 1
    )


def sweep_table(points: Sequence[Point]) -> Table:
    """Show pairs of thresholds with their slip rate, false flag rate and share sent to review."""
    found = {(p.bands.low, p.bands.high): (p.slip, p.false_flag, p.review) for p in points}
    return _swept("pairs of thresholds on this data", ("low", "high"), found)


def sureness_table(points: Sequence[Answered]) -> Table:
    """Show least confidences of both verdicts with their slip rate, false flag rate and share left to people."""
    found = {
        (p.sureness.negative, p.sureness.positive): (p.slip, p.false_flag, p.review)
        for p in points
        if p.sureness is not None and p.slip is not None and p.false_flag is not None and p.review is not None
    }
    return _swept("least confidences on this data", ("real from", "fake from"), found)


def _swept(title: str, names: tuple[str, str], found: Mapping[tuple[float, float], tuple[Rate, Rate, Rate]]) -> Table:
    rows = [
        (
            *(TableCell(f"{end:.4f}") for end in ends),
            TableCell(number(float(slip))),
            TableCell(number(float(flag))),
            TableCell(number(float(review))),
            TableCell(f"{review.hits:,.0f}"),
        )
        for ends, (slip, flag, review) in sorted(found.items(), key=lambda row: tuple(map(float, row[1][:2])))
    ]
    return Table(title, (*names, "fake_slip_rate ↓", "real_false_flag_rate ↓", "review ↓", "items"), tuple(rows), 0)
