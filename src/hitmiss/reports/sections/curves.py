"""The curves of every run, and the threshold that a reader can move; of attacks, every number over strength."""

from __future__ import annotations

from typing import Final

from hitmiss.core.finding import has_code
from hitmiss.core.results import REPEATED
from hitmiss.findings.wording import explain, shown
from hitmiss.reports import campaigns
from hitmiss.reports.context import Context
from hitmiss.reports.displays.display import numbers_of, plate_of
from hitmiss.reports.displays.kinds import KINDS
from hitmiss.reports.displays.lines import PlateOptions
from hitmiss.reports.displays.robustness import RobustnessDisplay
from hitmiss.reports.evaluations import FEW_RUNS, Evaluation
from hitmiss.reports.explorer import explorer
from hitmiss.reports.grids import RUN
from hitmiss.reports.pictures import costs_of
from hitmiss.reports.readings import Reading
from hitmiss.reports.section import Block, ExplorerBlock, FiguresBlock, FigureView, Section, TextBlock

PLACE: Final = 30

IN_BINS: Final = (
    "Drawn from counts: scores where no number is decided are known by narrow bins (1/256 of the score, at most one trial in 512). "
    "Each point of a curve is exact; a mark or a bar may be off by one bin. The numbers in the tables are those of the scores."
)


def curves(evaluation: Evaluation, context: Context) -> Section:
    """Return every figure that the trials allow."""
    if evaluation.is_campaign:
        drawn = tuple(_strengths(context.id, evaluation))
        return Section("curves", "Curves", (FiguresBlock(drawn),) if drawn else ())
    drawn = tuple(_figures(context.id, evaluation))
    if not drawn:
        return Section("curves", "Curves", ())
    is_short = any(m.trials is not None and m.trials.is_short for m in evaluation.members)
    blocks: list[Block] = [TextBlock(IN_BINS)] if is_short else []
    explored = explorer(evaluation, costs_of(evaluation.results))
    blocks += [ExplorerBlock(explored)] if explored is not None else []
    return Section("curves", "Curves", (*blocks, FiguresBlock(drawn)))


def _figures(id: str, evaluation: Evaluation) -> list[FigureView]:
    found, how = (
        [],
        PlateOptions(_is_independent(evaluation), order=tuple(evaluation.best_first), written=_written(evaluation)),
    )
    for kind, display in KINDS.items():
        reading = display.reading
        lines = evaluation.leading(kind) if reading.single else evaluation.lines(kind)
        alone = [(line,) for line in lines[:FEW_RUNS]] if reading.single else [tuple(lines)] if lines else []
        for i, own in enumerate(alone):
            subtitle = own[0][0] if len(own) == 1 and len(evaluation.members) > 1 else ""
            plate, numbers = plate_of(own, how), numbers_of(own)
            found.append(FigureView(f"{id}-{kind}-{i}", kind, reading, plate, numbers, subtitle))
    return found


def _written(evaluation: Evaluation) -> dict[tuple[str, str], str]:
    """Return how the tables write the value of each metric of each run."""
    alone = evaluation.members[0].name
    return {(e.run.get(RUN, alone), e.metric): shown(e).value for e in evaluation.wholes if e.value is not None}


def _strengths(id: str, evaluation: Evaluation) -> list[FigureView]:
    """Draw attacks: one figure per metric over strength."""
    made = []
    for i, display in enumerate(campaigns.curves(evaluation.results)):
        entry = explain(display.metric)
        gist = f"{entry.gist[:1].upper()}{entry.gist[1:].rstrip('.')}. {RobustnessDisplay.reading.text}"
        made.append(robustness_view(f"{id}-robustness-{i}", display, Reading(f"{entry.title} over strength", gist)))
    return made


def robustness_view(id: str, display: RobustnessDisplay, reading: Reading) -> FigureView:
    """Return the figure of a number over strength."""
    lines = (("", display),)
    return FigureView(id, display.kind, reading, plate_of(lines), numbers_of(lines))


def _is_independent(evaluation: Evaluation) -> bool:
    """Say whether trials can be treated as independent: nothing repeats, and no unit was named."""
    if any("unit=" in member.source.results.signature for member in evaluation.members):
        return False
    noted = any(has_code(e.note, REPEATED) or e.average == "mean" for e in evaluation.results)
    tables = [m.trials for m in evaluation.members if m.trials is not None and m.trials.has_rows]
    return not noted and all(t.frame.select("item", "target").is_unique().all() for t in tables)
