"""Attacks on one detector as parts of a page: summary, curves over strength, tables and maps, records that flip."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.conclude.attacks import (
    HEADLINE,
    conclude_attack_runs,
    conclude_attacks,
    strength,
    strongest,
    where,
    without_run,
)
from hitmiss.core.results import Estimate, Results
from hitmiss.core.sorting import Floats
from hitmiss.core.trials import Trials
from hitmiss.findings.wording import Shown, explain, shown
from hitmiss.metrics.attack_families import AGAINST_STRENGTH, CHANGES, NORMS
from hitmiss.reports.displays.robustness import RobustnessDisplay
from hitmiss.reports.evaluations import Evaluation
from hitmiss.reports.grids import RUN, Grid, Row, groupings
from hitmiss.reports.heat import HeatMap, heat_map
from hitmiss.reports.media_finder import MediaFinder
from hitmiss.reports.summary import Summary
from hitmiss.reports.worst_errors import Sample, WorstErrors, within
from hitmiss.robustness.campaign import CLEAN, CONTROL, AttackCondition, Campaign, attack_name, strength_of

NO_LABEL: Final = "nothing"


def summarize(evaluation: Evaluation) -> Summary:
    """Summarise the accuracy that remains under the worst attack, the clean accuracy, and the effect of each attack."""
    results = evaluation.results
    whole = [e for e in results if not e.slice and e.average is None and e.value is not None]
    clean = [e for e in whole if e.run["attack"] == CLEAN]
    attacked = [e for e in whole if not e.run["attack"].startswith((CLEAN, CONTROL))]
    attacked = [e for e in attacked if strength(e) >= 0.0] or attacked  # a search does not belong to one strength
    worst = min((e for e in attacked if e.metric == HEADLINE), key=_value, default=None)
    heads: list[tuple[str, Shown]] = []
    if worst is not None:
        heads.append(("", replace(shown(worst), title=f"Robust accuracy under the worst attack, {where(worst)}")))
    names = [member.name for member in evaluation.members]
    if len(names) > 1:
        own = {name: [e for e in attacked if e.metric == HEADLINE and e.run[RUN] == name] for name in names}
        least = [(name, min(found, key=_value)) for name, found in own.items() if found]
        least.sort(key=lambda pair: -_value(pair[1]))
        title = "Robust accuracy under the worst attack on each"
        heads = [(name, replace(shown(e), title=title)) for name, e in least]
        verdict = conclude_attack_runs(results, names)
        return Summary(evaluation.title, _tested(evaluation, whole), tuple(heads), (), verdict)
    tiles = [replace(shown(e), title=f"{explain(e.metric).title}, clean") for e in clean]
    most = sorted(strongest(attacked, "changed"), key=_value, reverse=True)
    tiles += [replace(shown(e), title=f"Changed by {where(e)}") for e in most[: 6 - len(tiles)]]
    return Summary(evaluation.title, _tested(evaluation, whole), tuple(heads), tuple(tiles), conclude_attacks(results))


def _value(e: Estimate) -> float:
    return e.value if e.value is not None else math.nan


def _tested(evaluation: Evaluation, whole: list[Estimate]) -> str:
    first = whole[0]
    attacks = list(dict.fromkeys(attack_name(without_run(e.run)) for e in whole if e.run["attack"] != CLEAN))
    strengths = list(dict.fromkeys(e.run["strength"] for e in whole if e.run["attack"] != CLEAN and strength(e) >= 0.0))
    named = ", ".join(attacks[:6]) + (f" and {len(attacks) - 6} more" if len(attacks) > 6 else "")
    return (
        f"{', '.join(member.name for member in evaluation.members)} · {first.n:,} records, {first.n_positive:,} of them with a label, "
        f"under {named} at {len(strengths)} strength{'s' if len(strengths) != 1 else ''}"
    )


def curves(results: Results) -> list[RobustnessDisplay]:
    """Draw every figure that was measured at strengths."""
    measured = {
        e.metric
        for e in results
        if not e.slice and e.average is None and e.value is not None and e.run["attack"] != CLEAN and strength(e) >= 0.0
    }
    return [RobustnessDisplay.from_results(results, metric) for metric in AGAINST_STRENGTH if metric in measured]


def grids(results: Results) -> list[Grid]:
    """Return one grid per grouping: one row per attack, strength and slice; controls are in the overall table."""
    made = []
    attacked = [e for e in results if e.average is None and not e.run["attack"].startswith(CONTROL)]
    for names in groupings(results):
        own = [e for e in attacked if tuple(e.slice) == names]
        metrics = tuple(m for m in dict.fromkeys(e.metric for e in own) if m not in NORMS)
        columns = tuple(dict.fromkeys(k for e in own for k in e.run))
        cells: dict[tuple[str, ...], dict[str, Estimate]] = {}
        for e in own:
            key = (*(e.run.get(k, "") for k in columns), *e.slice.values())
            cells.setdefault(key, {})[e.metric] = e
        rows = tuple(Row(key, tuple(found.get(m) for m in metrics)) for key, found in cells.items())
        made.append(Grid(f"by {' × '.join(names)}", (*columns, *names), metrics, rows))
    return made


def maps(results: Results, grid: Grid) -> list[HeatMap]:
    """Return maps of attack × slice at each attack's greatest strength."""
    names = tuple(n for n in grid.names if n not in ("attack", "strength", "aim", "place"))
    metric = next((m for m in CHANGES if m in grid.metrics), None)
    if metric is None or len(names) != 1:
        return []
    own = [e for e in results if e.metric == metric and tuple(e.slice) == names and e.average is None]
    kept = []
    for value in dict.fromkeys(e.slice[names[0]] for e in own):
        attacked = [e for e in own if e.slice[names[0]] == value and not e.run["attack"].startswith((CLEAN, CONTROL))]
        kept += strongest(attacked, metric)
    crossed = tuple(replace(e, run={}, slice={"attack": where(e), **e.slice}) for e in kept)
    made = heat_map(Results(crossed), ("attack", names[0]), metric, {})
    title = f"{explain(metric).title} by attack at its greatest strength and {names[0]}"
    return [replace(made, title=title)] if made is not None else []


def fragile(trials: Trials, run: str, most: int, budget: int, finder: MediaFinder | None) -> WorstErrors:
    """Return the records whose answer flips most easily: under the most attacks, then at the lowest strength."""
    campaign = Campaign.of(trials)
    cells = [c for c in campaign.cells if not c.is_control]
    flips = np.array([(c.bits != campaign.clean.bits).any(axis=1) for c in cells]).reshape(len(cells), -1)
    strengths = np.array([math.inf if (s := strength_of(c.run)) is None else s for c in cells])
    least = np.where(flips, strengths[:, None], np.inf).min(axis=0, initial=np.inf)
    order = np.lexsort((np.arange(len(least)), least, -flips.sum(axis=0)))
    chosen = [int(i) for i in order if flips[:, i].any()][:most]
    samples: list[tuple[Sample, Mapping[str, object]]] = [
        (
            _fragile(campaign, cells, flips[:, i], strengths, i),
            {**_first(cells, flips[:, i], strengths).run, "item": campaign.records[i]},
        )
        for i in chosen
    ]
    never = int((~flips.any(axis=0)).sum())
    rule = f"{never:,} of {len(least):,} records kept their answer under every attack; these lost it most often"
    return within(
        WorstErrors(run, rule, ("Records whose answer flips most easily", ""), (), ()), (samples, []), budget, finder
    )


def _fragile(
    campaign: Campaign, cells: list[AttackCondition], flips: NDArray[np.bool_], strengths: Floats, i: int
) -> Sample:
    cell = _first(cells, flips, strengths)
    said = (
        ("clean answer", _labels(campaign, campaign.clean, i)),
        ("flips in", f"{int(flips.sum())} of {len(cells)}"),
        ("first at", f"{attack_name(cell.run)} {cell.run['strength']}"),
        ("then", _labels(campaign, cell, i)),
    )
    truth = ", ".join(name for name, bit in zip(campaign.classes, campaign.truth[i], strict=True) if bit) or NO_LABEL
    return Sample(campaign.records[i], truth, None, None, said)


def _first(cells: list[AttackCondition], flips: NDArray[np.bool_], strengths: Floats) -> AttackCondition:
    """Return the cell of lowest strength in which a record flips."""
    return cells[min(np.flatnonzero(flips), key=lambda at: strengths[at])]


def _labels(campaign: Campaign, cell: AttackCondition, i: int) -> str:
    return ", ".join(name for name, bit in zip(campaign.classes, cell.bits[i], strict=True) if bit) or NO_LABEL
