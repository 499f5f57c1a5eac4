"""Tables of a triage evaluation: what was said, the figures by kind, repetitions, reliability, times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from hitmiss.bands import Point
from hitmiss.metrics.counts import Counts
from hitmiss.protocols.triage import CHANCE, Confusion, Triage, repeats_of
from hitmiss.report.tables import Cell, Table, by_slice, groupings, short_interval, titled
from hitmiss.results import Estimate, Results, number
from hitmiss.spec import Spec
from hitmiss.verdicts.reliability import Bin

SECTIONS: Final = (
    (
        "of all trials",
        ("accuracy", "coverage", "coverage_fake", "coverage_real", "abstain_rate", "unparsed_rate", "error_rate"),
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
OTHERS: Final = "further metrics"


def tables(evaluation: Triage) -> list[Table]:
    """Every table: the confusion, the figures by kind, slices, repetitions, times."""
    title = "verdicts, all trials together" if evaluation.repeated else "verdicts"
    found = [confusion_table(over_trials(evaluation.confusions), title), *figure_tables(evaluation.figures)]
    figures = evaluation.figures
    runs = [dict(r) for r in dict.fromkeys(tuple(e.run.items()) for e in figures if e.slice)]
    found += [by_slice(_wholes(figures), names, run, "fake") for names in groupings(figures) for run in runs]
    if evaluation.repeated:
        found.append(repeats_table(evaluation))
    return found + ([latency_table(evaluation.latency)] if len(evaluation.latency) else [])


def _wholes(figures: Results) -> Results:
    """The slices, and as the pooled row what stands for the whole run."""
    whole = [replace(e, average=None) for e in repeats_of(figures)]
    return replace(figures, estimates=(*whole, *(e for e in figures if e.slice)))


def over_trials(confusions: Sequence[Confusion]) -> list[Confusion]:
    """The confusions of the trials of each run together."""
    groups: dict[tuple[Any, ...], list[Confusion]] = defaultdict(list)
    for c in confusions:
        groups[tuple((k, v) for k, v in c.run.items() if k != "trial")].append(c)
    names = [f.name for f in fields(Counts)]
    return [
        Confusion(
            dict(run),
            Counts(*(sum(getattr(c.counts, name) for c in own) for name in names)),
            (sum(c.unparsed[0] for c in own), sum(c.unparsed[1] for c in own)),
        )
        for run, own in groups.items()
    ]


def confusion_table(confusions: Sequence[Confusion], title: str = "verdicts") -> Table:
    """Truth down, verdicts across; unparsed verdicts and failed calls apart."""
    names = _run_names([dict(c.run) for c in confusions])
    rows: list[tuple[Cell, ...]] = []
    for c in confusions:
        n, run = c.counts, tuple(Cell(c.run.get(k, "")) for k in names)
        said = (
            ("fake", n.fn, n.tp, n.abstained_positive, c.unparsed[0], n.failed_positive),
            ("real", n.tn, n.fp, n.abstained_negative, c.unparsed[1], n.failed_negative),
        )
        for truth, real, fake, silent, unparsed, failed in said:
            counts = (real, fake, silent - unparsed, unparsed, failed, real + fake + silent + failed)
            rows.append((*run, Cell(truth), *(Cell(f"{int(k):,}") for k in counts)))
    header = (*names, "truth", "said real", "said fake", "uncertain", "unparsed", "error", "n")
    return Table(title, header, tuple(rows), len(names) + 1)


def figure_tables(figures: Results) -> list[Table]:
    """The figures of whole runs, one table a kind: a row a metric, a column a run, with sd where runs were repeated."""
    shown = repeats_of(figures)
    spread = {(e.metric, tuple(e.run.items())): e for e in figures if e.average == "sd"}
    runs = list(dict.fromkeys(tuple(e.run.items()) for e in shown))
    known = {name for _, names in SECTIONS for name in names}
    rest = tuple(dict.fromkeys(base(e.metric) for e in shown if base(e.metric) not in known))
    sections = (*SECTIONS, (OTHERS, rest))
    found = [
        _figures(title, [e for e in shown if base(e.metric) in names], names, runs, spread) for title, names in sections
    ]
    return [table for table in found if table.rows]


def base(metric: str) -> str:
    """A metric's name without its settings."""
    return metric.partition("(")[0]


def _figures(
    title: str,
    own: list[Estimate],
    names: Sequence[str],
    runs: Sequence[tuple[tuple[str, str], ...]],
    spread: Mapping[tuple[str, Any], Estimate],
) -> Table:
    columns = [part for run in runs for part in ((_named(run), "sd") if spread else (_named(run),))]
    metrics = sorted(dict.fromkeys(e.metric for e in own), key=lambda m: names.index(base(m)))
    rows = []
    for metric in metrics:
        by_run = {tuple(e.run.items()): e for e in own if e.metric == metric}
        cells = [c for run in runs for c in _run_cells(by_run.get(run), spread.get((metric, run)), bool(spread))]
        rows.append((Cell(_metric_name(next(iter(by_run.values())))), *cells))
    return Table(title, ("metric", *columns), tuple(rows))


def _metric_name(e: Estimate) -> str:
    """A metric with all its settings and the better direction; the figure of chance has none."""
    if base(e.metric) == CHANCE:
        return "  … by chance, at most"
    return titled(replace(e, metric=str(Spec.of(base(e.metric), **dict(e.settings)))))


def _run_cells(e: Estimate | None, deviation: Estimate | None, spread: bool) -> list[Cell]:
    cell = Cell("") if e is None else Cell("–" if e.value is None else number(e.value), short_interval(e))
    sd = Cell(number(deviation.value) if deviation is not None and deviation.value is not None else "–")
    return [cell, sd] if spread else [cell]


def _named(run: Sequence[tuple[str, str]]) -> str:
    return "|".join(v for _, v in run) or "value"


def _run_names(runs: Sequence[Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(k for run in runs for k in run))


def repeats_table(evaluation: Triage) -> Table:
    """Per run: how many verdicts flip between trials, and the figures of the majority vote."""
    rows = [*evaluation.flips, *evaluation.majority]
    runs = list(dict.fromkeys(tuple(e.run.items()) for e in rows))
    metrics = list(
        dict.fromkeys((e.metric, e.metric if "flip" in e.metric else f"{e.metric} of the majority") for e in rows)
    )
    lines = []
    for metric, shown in metrics:
        own = {tuple(e.run.items()): e for e in rows if e.metric == metric}
        arrow = titled(next(iter(own.values()))).removeprefix(metric)
        cells = [_run_cells(own.get(run), None, False)[0] for run in runs]
        lines.append((Cell(shown + arrow), *cells))
    n = evaluation.trials.frame["trial"].n_unique()
    return Table(f"over {n} trials", ("", *(_named(run) for run in runs)), tuple(lines))


def latency_table(latency: Results) -> Table:
    """Per run and component, cache hits and misses apart: median and 95th percentile of the seconds."""
    cells: dict[tuple[Any, ...], dict[str, Estimate]] = {}
    for e in latency:
        cells.setdefault((tuple(e.run.items()), tuple(e.slice.items())), {})[e.metric] = e
    names = _run_names([dict(e.run) for e in latency])
    rows = []
    for (run, served), own in sorted(cells.items(), key=lambda kv: [v for _, v in kv[0][0]]):
        first = next(iter(own.values()))
        figures = [_seconds(own.get(m)) for m in ("median_seconds", "p95_seconds")]
        rows.append(
            (
                *(Cell(dict(run).get(k, "")) for k in names),
                Cell(served[0][1]),
                Cell(f"{int(first.of or 0):,}"),
                *figures,
            )
        )
    return Table("seconds", (*names, "cache", "n", "median", "95th percentile"), tuple(rows), len(names) + 1)


def _seconds(e: Estimate | None) -> Cell:
    if e is None or e.value is None:
        return Cell("–")
    ends = f"[{e.low:.2f}, {e.high:.2f}]" if e.low is not None and e.high is not None else ""
    return Cell(f"{e.value:.2f}", ends)


def reliability_table(bins: Sequence[Bin]) -> Table:
    """Stated confidence against the share right, bin by bin."""
    names = _run_names([b.run for b in bins])
    rows = [
        (
            *(Cell(b.run.get(k, "")) for k in names),
            Cell(f"{b.edges[0]:g}–{b.edges[1]:g}"),
            Cell(f"{b.n:,}"),
            Cell(number(b.confidence)),
            Cell(number(b.accuracy), f"[{b.low:.4f}, {b.high:.4f}]".replace("[0.", "[.").replace(" 0.", " .")),
            Cell(f"{b.accuracy - b.confidence:+.4f}"),
        )
        for b in bins
    ]
    return Table(
        "reliability", (*names, "confidence", "n", "mean stated", "share right", "gap"), tuple(rows), len(names) + 1
    )


def sweep_table(points: Sequence[Point]) -> Table:
    """Pairs of thresholds with what they let slip, flag wrongly and send to review."""
    distinct = {(p.bands.low, p.bands.high): p for p in points}
    rows = [
        (
            Cell(f"{p.bands.low:.4f}"),
            Cell(f"{p.bands.high:.4f}"),
            Cell(number(float(p.slip))),
            Cell(number(float(p.false_flag))),
            Cell(number(float(p.review))),
            Cell(f"{p.review.hits:,.0f}"),
        )
        for p in sorted(distinct.values(), key=lambda p: (float(p.slip), float(p.false_flag)))
    ]
    header = ("low", "high", "fake_slip_rate ↓", "real_false_flag_rate ↓", "review ↓", "items")
    return Table("pairs of thresholds on this data", header, tuple(rows), 0)
