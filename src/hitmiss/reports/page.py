"""Composition of a report: evaluations become the parts of a page. Nothing here depends on HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from hitmiss.conclude.slices import weak_slices
from hitmiss.core import progress
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError
from hitmiss.core.kinds import FAILED
from hitmiss.core.results import REPEATED, Estimate, Results
from hitmiss.core.scale import ROUNDING
from hitmiss.core.trials import Trials
from hitmiss.engine.counted import TalliedTrials
from hitmiss.findings.wording import Entry, explain, told
from hitmiss.metrics.counts import Counts
from hitmiss.reports import campaigns
from hitmiss.reports.curve_displays import DetDisplay
from hitmiss.reports.dumbbells import Dumbbells, dumbbells
from hitmiss.reports.evaluations import FEW_RUNS, RUN, EvaluatedRun, Evaluation, RunData, evaluations, signature_part
from hitmiss.reports.explorer import Explorer, explorer
from hitmiss.reports.flow_plate import FlowPath, flow_plate
from hitmiss.reports.grids import Grid, Row, by_slice, groupings, runs
from hitmiss.reports.heat import HeatMap, heat_map
from hitmiss.reports.histogram_display import HistogramDisplay
from hitmiss.reports.pictures import costs_of
from hitmiss.reports.plate import GuideLine, Plate
from hitmiss.reports.plates import PlateOptions, histogram_plate, plate_of
from hitmiss.reports.readings import FLOW, LEVELS, READINGS, ROBUSTNESS, Reading, numbers_of
from hitmiss.reports.result_tables import gap_tables, of_grid, over_repeats, overall_table
from hitmiss.reports.robustness_display import RobustnessDisplay
from hitmiss.reports.summary import Summary, summarize
from hitmiss.reports.table import Table, TableCell
from hitmiss.reports.table_style import PAGE
from hitmiss.reports.triage_tables import beside_tables, confusion_table, flows, over_trials
from hitmiss.reports.versus import versus
from hitmiss.reports.worst_errors import BUDGET, MOST, RunEvidence, WorstErrors, worst_errors

MOST_HISTOGRAMS: Final = FEW_RUNS
MOST_MULTIPLES: Final = 12
"""Number of slices that are drawn one by one: the worst."""
SMALL_BINS: Final = 30
MOST_MAPS: Final = 2
"""Number of metrics that get a heat map: the first ones of the slices."""
MOST_TABLED: Final = 6
"""Number of runs whose slices are listed one by one; of more, the best."""
WORDS: Final = 20_000
"""Bytes that the samples of an evaluation take if they are ids and short texts."""
MOST_FLOWS: Final = 4
"""Number of runs whose trials are followed to their outcome, in one figure each."""
MOST_LEVELS: Final = 12
"""Number of small figures of manipulations at several levels."""
IN_BINS: Final = (
    "Drawn from counts: scores where no figure is decided are known by narrow bins (1/256 of the score, at most one trial in 512). "
    "Each point of a curve is exact; a mark or a bar may be off by one bin. The figures in the tables are those of the scores."
)
NO_TRIALS: Final = (
    "Left out: the trials were counted, not kept, so the worst of them cannot be shown. A report of score files without --stream, "
    "--cluster or --counts shows them."
)


@dataclass(frozen=True)
class Options:
    """What a report shows: samples or none, their texts, how many bytes of them, and how runs are compared."""

    title: str = ""
    samples: bool = True
    texts: bool = True
    most: int = MOST
    budget: int = BUDGET
    compare: Design = field(default_factory=lambda: Design(bootstrap=1000))


@dataclass(frozen=True, eq=False)
class FigureView:
    """A figure: its plate for the renderer, the words around it, and its numbers."""

    id: str
    kind: str
    reading: Reading
    plate: Plate
    numbers: Table
    subtitle: str = ""

    @property
    def title(self) -> str:
        """Return what the figure shows, in a sentence; its kind if there is no such sentence."""
        return self.plate.finding or self.reading.title


@dataclass(frozen=True, eq=False)
class Domain:
    """One grouping of one run: its table, heat maps if it crosses two columns, and its worst slices one by one."""

    title: str
    table: Table
    maps: tuple[HeatMap, ...]
    folded: bool
    multiples: tuple[FigureView, ...] = ()


@dataclass(frozen=True)
class OfCounts:
    """Remarks for trials that were counted and not kept: about the curves, and about what is left out."""

    curves: str = ""
    errors: str = ""


@dataclass(frozen=True, eq=False)
class Part:
    """Everything about one evaluation."""

    id: str
    summary: Summary
    overall: Table | None
    figures: tuple[FigureView, ...]
    confusion: Table | None
    domains: tuple[Domain, ...]
    repeats: tuple[Table, ...]
    gaps: tuple[Table, ...]
    not_tabled: int
    """Number of runs whose slices are in the maps alone."""
    verdicts: tuple[str, ...]
    comparison: tuple[Table, ...]
    comparison_notes: tuple[str, ...]
    levels: tuple[FigureView, ...]
    errors: tuple[WorstErrors, ...]
    of_counts: OfCounts
    warnings: tuple[str, ...]
    provenance: Table
    signatures: tuple[str, ...]
    explorer: Explorer | None = None
    side_by_side: tuple[Dumbbells, ...] = ()
    across: tuple[HeatMap, ...] = ()
    flows: tuple[FigureView, ...] = ()
    asides: tuple[Table, ...] = ()
    dossier: Table | None = None


@dataclass(frozen=True, eq=False)
class Page:
    """A whole report."""

    title: str
    parts: tuple[Part, ...]
    glossary: tuple[Entry, ...]
    embeds: tuple[str, ...]


def compose(sources: Sequence[RunData], options: Options | None = None) -> Page:
    """Compose the page of some runs."""
    chosen = options or Options()
    found = evaluations(sources)
    budget = chosen.budget
    parts = []
    for i, evaluation in enumerate(progress.each(found, "figures"), start=1):
        errors = _errors(evaluation, chosen, _share(budget, found[i - 1 :]))
        budget -= sum(own.n_bytes for own in errors)
        part = _part(f"e{i}", evaluation, errors, chosen)
        parts.append(part if _is_alone(evaluation, found) else _named(part, evaluation))
    metrics = [e.metric for evaluation in found for e in evaluation.results]
    title = chosen.title or (found[0].title if len(found) == 1 else f"{len(found)} evaluations")
    return Page(title, tuple(parts), tuple(glossary(metrics)), tuple(_embeds(parts, chosen)))


def _share(budget: int, coming: Sequence[Evaluation]) -> int:
    """Return the share of the budget for an evaluation: equal shares for those with files, little for words alone."""
    hungry = [any(member.source.finder is not None for member in e.members) for e in coming]
    if not hungry[0]:
        return min(budget, max(budget // len(coming), WORDS))
    return max((budget - WORDS * (len(hungry) - sum(hungry))) // sum(hungry), budget // len(coming))


def _is_alone(evaluation: Evaluation, found: Sequence[Evaluation]) -> bool:
    return sum(other.title == evaluation.title for other in found) == 1


def _named(part: Part, evaluation: Evaluation) -> Part:
    """Distinguish parts of one protocol by their runs."""
    names = ", ".join(dict.fromkeys(member.source.name for member in evaluation.members))
    return replace(part, summary=replace(part.summary, title=f"{part.summary.title} · {names}"))


def _part(id: str, evaluation: Evaluation, errors: tuple[WorstErrors, ...], options: Options) -> Part:
    results = evaluation.results
    whole = overall_table(results, _counted(evaluation), PAGE)
    compared = versus(evaluation, options.compare)
    campaign = evaluation.is_campaign
    return Part(
        id,
        campaigns.summarize(evaluation) if campaign else summarize(evaluation, compared.compared),
        whole if whole.rows else None,
        tuple(_strengths(id, evaluation) if campaign else _figures(id, evaluation)),
        _confusion(evaluation),
        tuple(_campaign_domains(evaluation) if campaign else _domains(id, evaluation)),
        (
            *over_repeats(results, (), PAGE),
            *(t for names in groupings(results) for t in over_repeats(results, names, PAGE)),
        ),
        tuple(gap_tables(results, PAGE)),
        0 if campaign else len(runs(results)) - len(_tabled(evaluation)),
        compared.verdicts,
        compared.tables,
        compared.notes,
        tuple(_levels(id, evaluation)),
        errors,
        _of_counts(evaluation, options),
        results.warnings,
        _provenance(evaluation),
        (*results.signature.splitlines(), *filter(None, (compared.signature,))),
        None if campaign else explorer(evaluation, costs_of(results)),
        () if campaign else dumbbells(evaluation, compared.compared),
        () if campaign else _across(evaluation),
        tuple(_flows(id, evaluation)),
        tuple(t for s in _sources(evaluation) if s.asides is not None for t in beside_tables(s.asides)),
        _dossier(evaluation),
    )


def _sources(evaluation: Evaluation) -> list[RunData]:
    return list(dict.fromkeys(member.source for member in evaluation.members))


def _flows(id: str, evaluation: Evaluation) -> list[FigureView]:
    """Draw, for a triage, the outcomes of the trials of each run: by the system, by people, and how they ended."""
    made = list[FigureView]()
    for source in _sources(evaluation):
        for name, titles, ways in flows(source.asides)[:MOST_FLOWS] if source.asides is not None else []:
            plate = flow_plate(titles, ways, _flow_finding(ways))
            numbers = [(*map(TableCell, way.stages), TableCell(f"{way.n:,}")) for way in ways]
            table = Table("What became of the trials", (*titles, "trials"), tuple(numbers), len(titles))
            subtitle = " · ".join(filter(None, (source.name if name == "value" else name,)))
            made.append(FigureView(f"{id}-flow-{len(made)}", "flow", FLOW, plate, table, subtitle))
    return made


def _flow_finding(ways: Sequence[FlowPath]) -> str:
    ends = {end: sum(way.n for way in ways if way.stages[-1] == end) for end in ("right", "wrong", "open")}
    total = sum(ends.values()) or 1
    return f"{ends['right'] / total:.1%} right, {ends['wrong'] / total:.1%} wrong, {ends['open'] / total:.1%} undecided"


def _dossier(evaluation: Evaluation) -> Table | None:
    """Describe what was tested, from the manifests of the runs."""
    sources = _sources(evaluation)
    rows = [(TableCell(s.name), TableCell(what), TableCell(value)) for s in sources for what, value in s.dossier]
    if not rows:
        return None
    return Table("What was tested", ("run", "what", "value"), tuple(rows), 3)


def _across(evaluation: Evaluation) -> tuple[HeatMap, ...]:
    """Draw, for many runs, a map of run × slice of the primary metric."""
    if len(evaluation.members) < 3:
        return ()
    results, made = evaluation.results, list[HeatMap]()
    for names in (names for names in groupings(results) if len(names) == 1):
        own = [e for e in results if tuple(e.slice) == names and e.average is None and RUN in e.run]
        metric = (
            evaluation.primary if any(e.metric == evaluation.primary for e in own) else (own[0].metric if own else "")
        )
        order = [e.run[RUN] for e in sorted(_whole(results, metric), key=_goodness)]
        crossed = [replace(e, run={}, slice={RUN: e.run[RUN], **e.slice}) for e in own if e.metric == metric]
        crossed += [replace(e, run={}, slice={RUN: e.run[RUN]}) for e in _whole(results, metric)]
        found = heat_map(Results(tuple(crossed)), (RUN, names[0]), metric, {})
        if found is not None:
            rows = sorted(found.rows, key=lambda row: order.index(row[0]) if row[0] in order else -1)
            title = f"{explain(metric).title} of every run by {names[0]}, the best run first"
            made.append(replace(found, rows=tuple(rows), title=title))
    return tuple(made)


def _whole(results: Results, metric: str) -> list[Estimate]:
    return [e for e in results if e.metric == metric and not e.slice and e.average in (None, "mean") and RUN in e.run]


def _goodness(e: Estimate) -> float:
    return float("inf") if e.value is None else e.value if e.best == "low" else -e.value


def _counted(evaluation: Evaluation) -> str:
    """Return the heading of the number of positives; for records with several classes, of those that have any."""
    return "with a label" if evaluation.is_campaign else evaluation.classes[0]


def _figures(id: str, evaluation: Evaluation) -> list[FigureView]:
    found, how = [], PlateOptions(_is_independent(evaluation))
    for kind, reading in READINGS.items():
        lines = evaluation.leading(kind) if reading.single else evaluation.lines(kind)
        alone = [(line,) for line in lines[:MOST_HISTOGRAMS]] if reading.single else [tuple(lines)] if lines else []
        for i, own in enumerate(alone):
            subtitle = own[0][0] if len(own) == 1 and len(evaluation.members) > 1 else ""
            numbers = numbers_of(kind, own)
            plate = plate_of(kind, own, how)
            found.append(FigureView(f"{id}-{kind}-{i}", kind, reading, plate, numbers, subtitle))
    return found


def _strengths(id: str, evaluation: Evaluation) -> list[FigureView]:
    """Draw attacks: one figure per metric over strength."""
    made = []
    for i, display in enumerate(campaigns.curves(evaluation.results)):
        entry = explain(display.metric)
        reading = Reading(
            f"{entry.title} over strength", f"{entry.gist[:1].upper()}{entry.gist[1:].rstrip('.')}. {ROBUSTNESS.text}"
        )
        made.append(_robustness(f"{id}-robustness-{i}", display, reading))
    return made


def _levels(id: str, evaluation: Evaluation) -> list[FigureView]:
    """Draw manipulations that were tried at several levels: one small figure per family, of the primary metric."""
    if evaluation.is_campaign:
        return []
    made = list[FigureView]()
    for names in groupings(evaluation.results):
        for run in _tabled(evaluation) if len(names) == 1 else []:
            results = evaluation.by_run[tuple(run.items())]
            sliced = {e.metric for e in results if tuple(e.slice) == names and e.average is None and dict(e.run) == run}
            first = evaluation.primary if evaluation.primary in sliced else next(iter(sorted(sliced)), "")
            wanted = ("far", "frr") if first == "far" else (first,)
            for display in (d for m in wanted for d in RobustnessDisplay.from_slices(results, names[0], m, run)):
                title = f"{explain(display.metric).title} under {display.title}"
                reading = Reading(title, LEVELS.text)
                view = _robustness(f"{id}-levels-{len(made)}", display, reading)
                made.append(replace(view, subtitle=run.get(RUN, "")))
    return made[:MOST_LEVELS]


def _robustness(id: str, display: RobustnessDisplay, reading: Reading) -> FigureView:
    lines = (("", display),)
    return FigureView(id, display.kind, reading, plate_of(display.kind, lines), numbers_of(display.kind, lines))


def _is_independent(evaluation: Evaluation) -> bool:
    """Say whether trials can be treated as independent: nothing repeats, and no unit was named."""
    if any("unit=" in member.source.results.signature for member in evaluation.members):
        return False
    noted = any(e.note == REPEATED or e.average == "mean" for e in evaluation.results)
    tables = [
        member.trials
        for member in evaluation.members
        if member.trials is not None and not isinstance(member.trials, TalliedTrials)
    ]
    return not noted and all(t.frame.select("item", "target").is_unique().all() for t in tables)


def _campaign_domains(evaluation: Evaluation) -> list[Domain]:
    """Show attacks by class or group of records: one table per grouping, and a map at the greatest strength."""
    found = []
    for grid in campaigns.grids(evaluation.results):
        table = of_grid(grid, _counted(evaluation), PAGE)
        found.append(Domain(grid.title, table, tuple(campaigns.maps(evaluation.results, grid)), True))
    return found


def _domains(id: str, evaluation: Evaluation) -> list[Domain]:
    found = list[Domain]()
    weak = weak_slices(evaluation.results, evaluation.primary).weak
    for names in groupings(evaluation.results):
        for run in _tabled(evaluation):
            results = evaluation.by_run[tuple(run.items())]
            grid = by_slice(results, names, run)
            if not grid.rows:
                continue
            named = f" · {run[RUN]}" if RUN in run else ""
            maps: list[HeatMap] = []
            if len(names) == 2:
                made = [heat_map(results, (names[0], names[1]), metric, run) for metric in _mapped(evaluation, grid)]
                maps = [m for m in made if m is not None and m.is_crossed]
            grid = _worst_first(grid, evaluation.primary)
            own = {tuple(w.e.slice.values()) for w in weak if tuple(w.e.slice) == names and dict(w.e.run) == dict(run)}
            forest = of_grid(grid, evaluation.classes[0], PAGE, bars=not maps, weak=own)
            table = replace(forest, title=f"{grid.title}{named}, the worst first")
            maps = [replace(m, title=m.title + named) for m in maps]
            folded = bool(maps) or len(evaluation.members) > 2
            small = _multiples(f"{id}-{len(found)}", evaluation, grid, names, run) if len(names) == 1 else ()
            found.append(Domain(grid.title + named, table, tuple(maps), folded, tuple(small)))
    return found


def _tabled(evaluation: Evaluation) -> list[dict[str, str]]:
    """Return the runs whose slices get tables of their own: all of a few; of many the best, as the maps show every run."""
    every = runs(evaluation.results)
    if len(every) <= MOST_TABLED:
        return every
    order = {name: i for i, name in enumerate(evaluation.best_first)}
    return sorted(every, key=lambda run: order.get(run.get(RUN, ""), len(order)))[:MOST_TABLED]


def _worst_first(grid: Grid, primary: str) -> Grid:
    """Sort the slices of a grid by the primary metric; undefined ones follow, averages come last."""
    at = grid.metrics.index(primary) if primary in grid.metrics else 0

    def badness(row: Row) -> tuple[bool, float]:
        e = row.cells[at]
        value = e.value if e is not None else None
        return value is None, -value if value is not None and e is not None and e.best == "low" else value or 0.0

    slices = sorted((row for row in grid.rows if row.average is None), key=badness)
    return replace(grid, rows=(*slices, *(row for row in grid.rows if row.average is not None)))


def _multiples(
    id: str, evaluation: Evaluation, grid: Grid, names: tuple[str, ...], run: Mapping[str, str]
) -> list[FigureView]:
    """Draw the scores of the worst slices, each in a small figure on one common axis."""
    member = next((member for member in evaluation.members if member.name == run.get(RUN, member.name)), None)
    if (
        member is None
        or member.trials is None
        or isinstance(member.trials, TalliedTrials)
        or len(evaluation.members) > 2
    ):
        return []
    whole = member.picture.of("histogram") if member.picture is not None else None
    if not isinstance(whole, HistogramDisplay):
        return []
    ends = float(whole.edges[0]), float(whole.edges[-1])
    made = list[FigureView]()
    for row in [row for row in grid.rows if row.average is None][:MOST_MULTIPLES]:
        own = member.trials.keep(pl.col(names[0]) == row.labels[0])
        try:
            display = HistogramDisplay.from_trials(own, bins=SMALL_BINS)
        except DataError:
            continue
        e = row.cells[0]
        plate = replace(histogram_plate(display, ends), finding="", note="", key=())
        plate = replace(
            plate, marks=(*plate.marks, *(GuideLine(p.threshold) for p in whole.points if p.label == "EER"))
        )
        title = f"{row.labels[0]}: {told(e)}" if e is not None else row.labels[0]
        reading = Reading(title, f"n = {len(own):,}")
        lines = (("", display),)
        made.append(
            FigureView(
                f"{id}-m{len(made)}",
                "histogram",
                reading,
                plate,
                numbers_of("histogram", lines),
                row.labels[0],
            )
        )
    return made


def _mapped(evaluation: Evaluation, grid: Grid) -> list[str]:
    """Return the metrics that get a map: the primary one, then those that come first."""
    first = [evaluation.primary] if evaluation.primary in grid.metrics else []
    return [*first, *(m for m in grid.metrics if m not in first)][:MOST_MAPS]


def _confusion(evaluation: Evaluation) -> Table | None:
    """Return what was decided for each class, if decisions were made."""
    three = [c for s in _sources(evaluation) if s.asides is not None for c in over_trials(s.asides.confusions)]
    if three:
        note = "Unparsed: an answer that was not understood. Error: a call that gave no answer."
        return replace(confusion_table(three, "Verdicts"), note=note)
    positive, negative = evaluation.classes
    rows: list[tuple[TableCell, ...]] = []
    for member in evaluation.members:
        if member.trials is None or "decision" not in member.trials.frame.columns:
            continue
        c = _decided(member.trials)
        lines = (
            (positive, c.tp, c.fn, c.abstained_positive, c.failed_positive),
            (negative, c.fp, c.tn, c.abstained_negative, c.failed_negative),
        )
        rows += [
            (TableCell(member.name), TableCell(name), *(TableCell(f"{n:,}") for n in counts)) for name, *counts in lines
        ]
    if not rows:
        return None
    header = ("run", "in truth", f"called {positive}", f"called {negative}", "abstained", "failed")
    note = "Abstained: the detector declined to decide. Failed: its call gave no answer."
    return Table("Decisions", header, tuple(rows), 2, note=note)


def _decided(trials: Trials) -> Counts[float]:
    if isinstance(trials, TalliedTrials):
        return trials.whole.counts
    return Counts.of(trials.label, trials.column("decision").fill_null(FAILED).to_numpy())


def _of_counts(evaluation: Evaluation, options: Options) -> OfCounts:
    counted = [member.trials for member in evaluation.members if isinstance(member.trials, TalliedTrials)]
    if not counted:
        return OfCounts()
    return OfCounts(IN_BINS if any(own.is_short for own in counted) else "", NO_TRIALS if options.samples else "")


def _errors(evaluation: Evaluation, options: Options, budget: int) -> tuple[WorstErrors, ...]:
    """Return the worst errors of each run; the remaining budget is shared evenly between the remaining runs."""
    if not options.samples:
        return ()
    if evaluation.is_campaign:
        share = budget // len(evaluation.members)
        return tuple(
            campaigns.fragile(s.trials, s.name, options.most, share, s.finder if options.texts else None)
            for s in _sources(evaluation)
            if s.trials is not None and not isinstance(s.trials, TalliedTrials)
        )
    rank = {name: i for i, name in enumerate(evaluation.best_first)}
    found = [
        RunEvidence(member.name, member.trials, _eer_threshold(member), s.finder, s.rationales, s.people, s.texts)
        for member, s in (
            (member, member.source) for member in sorted(evaluation.members, key=lambda member: rank[member.name])
        )
        if member.trials is not None and not isinstance(member.trials, TalliedTrials)
    ]
    if not found:
        return ()
    most = max(options.most // (1 + len(found) // 4), 2) if len(found) > 2 else options.most
    return (worst_errors(found, most=most, texts=options.texts, budget=budget),)


def _eer_threshold(member: EvaluatedRun) -> float | None:
    """Return the score of the trials from which on, at equal error rates, they are decided positive if not decided."""
    det = member.picture.of("det") if member.picture is not None else None
    found = next((p.threshold for p in det.points if p.label == "EER"), None) if isinstance(det, DetDisplay) else None
    if found is None or member.trials is None or not member.trials.header.scale.is_reversed:
        return found
    return member.trials.header.scale.turned(found) - 2 * ROUNDING  # the points of a reversed file hold its own scores


def _provenance(evaluation: Evaluation) -> Table:
    """Return the provenance of the figures: per run its data, its settings, its files with hashes; never a folder."""
    rows = []
    for member in evaluation.members:
        signature = member.source.results.signature
        said = [
            (name, signature_part(signature, name)) for name in ("hitmiss", "protocol", "kind", "boot", "data", "out")
        ]
        rows += [(TableCell(member.name), TableCell(name), TableCell(value)) for name, value in said if value]
        sources = member.source.trials.header.sources if member.source.trials is not None else ()
        rows += [(TableCell(member.name), TableCell("file"), TableCell(s.name, f"SHA-256 {s.sha256}")) for s in sources]
    return Table("provenance", ("run", "what", "value"), tuple(rows), 3)


def _embeds(parts: Sequence[Part], options: Options) -> list[str]:
    """Say what is inside the file, for people who pass it on."""
    shown = [s for part in parts for e in part.errors for s in e.samples]
    said = ["Figures, thinned curves, names of runs, classes and slices, file names without folders, and hashes."]
    if not options.samples:
        return [*said, "No samples: the report was made with --no-samples."]
    texts = sum(bool(s.text) for s in shown)
    if shown:
        kinds = [s.media.kind for s in shown if s.media is not None]
        with_media = [f", {kinds.count(kind):,} with their {kind}" for kind in dict.fromkeys(kinds)]
        said.append(
            f"{len(shown):,} ids of wrongly answered trials, {texts:,} of them with their text{''.join(with_media)}."
        )
    return said


def glossary(metrics: Iterable[str]) -> list[Entry]:
    """Return the metrics that were shown, each once, by title."""
    found = {explain(m).title: explain(m) for m in dict.fromkeys(metrics)}
    return sorted(found.values(), key=lambda entry: entry.title.lower())
