"""Composition of a report: evaluations become the parts of a page, and each part its sections. Nothing here is HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hitmiss.core import progress
from hitmiss.core.design import Design
from hitmiss.core.finding import MARKS
from hitmiss.core.report_spec import ReportSpec
from hitmiss.core.scale import ROUNDING
from hitmiss.findings.wording import Entry, explain
from hitmiss.reports import campaigns
from hitmiss.reports.context import Context
from hitmiss.reports.displays.det import DetDisplay
from hitmiss.reports.evaluations import EvaluatedRun, Evaluation, RunData, evaluations
from hitmiss.reports.section import Section
from hitmiss.reports.sections import all_sections
from hitmiss.reports.summary import Summary, summarize
from hitmiss.reports.table import Table, TableCell
from hitmiss.reports.versus import versus
from hitmiss.reports.worst_errors import RunEvidence, WorstErrors, worst_errors

__all__ = ["Page", "Part", "compose", "glossary"]

WORDS: Final = 20_000
"""Bytes that the samples of an evaluation take if they are ids and short texts."""


@dataclass(frozen=True, eq=False)
class Part:
    """Everything about one evaluation: the first screen, then its sections."""

    id: str
    summary: Summary
    sections: tuple[Section, ...]

    def section(self, name: str) -> Section:
        """Return the section of that name; one without blocks if there is none."""
        return next((s for s in self.sections if s.name == name), Section(name, "", ()))


@dataclass(frozen=True, eq=False)
class Page:
    """A whole report."""

    title: str
    parts: tuple[Part, ...]
    glossary: tuple[Entry, ...]
    embeds: tuple[str, ...]

    @property
    def overview(self) -> Table | None:
        """All evaluations of the page in one table, each with its runs, its first number and its verdict."""
        return _overview(self.parts) if len(self.parts) > 1 else None


def _overview(parts: Sequence[Part]) -> Table:
    rows = []
    for part in parts:
        card = part.summary
        name, first = card.headlines[0] if card.headlines else ("", None)
        number = f"{first.title} {first.value}" if first is not None else ""
        verdict = f"{MARKS[card.verdict.state]} {card.verdict.headline}"
        cells = (card.title, card.tested, ": ".join(filter(None, (name, number))), verdict)
        rows.append(
            (*map(TableCell, cells[:2]), TableCell(cells[2], first.interval if first else ""), TableCell(verdict))
        )
    return Table("All evaluations", ("evaluation", "tested", "first number", "verdict"), tuple(rows), 4)


def compose(sources: Sequence[RunData], asked: ReportSpec | None = None, compare: Design | None = None) -> Page:
    """Compose the page of some runs; `compare`: how runs are compared, with 1,000 draws if it is not said."""
    asked, compare = asked or ReportSpec(), compare or Design(bootstrap=1000)
    found = evaluations(sources)
    budget = asked.budget
    parts = []
    for i, evaluation in enumerate(progress.each(found, "figures"), start=1):
        wrong = _errors(evaluation, asked, _share(budget, found[i - 1 :]))
        budget -= sum(own.n_bytes for own in wrong)
        part = _part(evaluation, Context(f"e{i}", asked, versus(evaluation, compare), wrong))
        parts.append(part if _is_alone(evaluation, found) else _named(part, evaluation))
    metrics = [e.metric for evaluation in found for e in evaluation.results]
    title = asked.title or (found[0].title if len(found) == 1 else f"{len(found)} evaluations")
    return Page(title, tuple(parts), tuple(glossary(metrics)), tuple(_embeds(parts, asked)))


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


def _part(evaluation: Evaluation, context: Context) -> Part:
    compared = context.compared.compared
    summary = campaigns.summarize(evaluation) if evaluation.is_campaign else summarize(evaluation, compared)
    made = [section(evaluation, context) for section in all_sections()]
    return Part(context.id, summary, tuple(s for s in made if s.blocks))


def _errors(evaluation: Evaluation, asked: ReportSpec, budget: int) -> tuple[WorstErrors, ...]:
    """Return the worst errors of each run; the remaining budget is shared evenly between the remaining runs."""
    if asked.no_samples:
        return ()
    if evaluation.is_campaign:
        share = budget // len(evaluation.members)
        return tuple(
            campaigns.fragile(s.trials, s.name, asked.samples, share, None if asked.redact_text else s.finder)
            for s in evaluation.sources
            if s.trials is not None and s.trials.has_rows
        )
    rank = {name: i for i, name in enumerate(evaluation.best_first)}
    found = [
        RunEvidence(member.name, member.trials, _eer_threshold(member), s.finder, s.rationales, s.people, s.texts)
        for member, s in ((m, m.source) for m in sorted(evaluation.members, key=lambda m: rank[m.name]))
        if member.trials is not None and member.trials.has_rows
    ]
    if not found:
        return ()
    most = max(asked.samples // (1 + len(found) // 4), 2) if len(found) > 2 else asked.samples
    return (worst_errors(found, most=most, texts=not asked.redact_text, budget=budget),)


def _eer_threshold(member: EvaluatedRun) -> float | None:
    """Return the score of the trials from which on, at equal error rates, they are decided positive if not decided."""
    det = member.picture.of("det") if member.picture is not None else None
    found = next((p.threshold for p in det.points if p.label == "EER"), None) if isinstance(det, DetDisplay) else None
    if found is None or member.trials is None or not member.trials.header.scale.is_reversed:
        return found
    return member.trials.header.scale.turned(found) - 2 * ROUNDING  # the points of a reversed file hold its own scores


def _embeds(parts: Sequence[Part], asked: ReportSpec) -> list[str]:
    """Say what is inside the file, for people who pass it on."""
    shown = [s for part in parts for e in part.section("errors").errors for s in e.samples]
    said = ["Numbers, thinned curves, names of runs, classes and slices, file names without folders, and hashes."]
    if asked.no_samples:
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
