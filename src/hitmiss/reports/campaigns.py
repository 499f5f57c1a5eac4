"""Attacks on one detector as parts of a page: summary, curves over strength, tables and maps, records that flip."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.results import Estimate, Results
from hitmiss.core.tally import Floats
from hitmiss.core.trials import Trials
from hitmiss.reports.assessment import ENOUGH, FAILED, OPEN, PASSED, Assessment, Line, Shown, checks, shown, told
from hitmiss.reports.displays import RobustnessDisplay, attack_name
from hitmiss.reports.evaluations import RUN, Evaluation
from hitmiss.reports.evidence import Errors, Sample, Shelf, within
from hitmiss.reports.heat import HeatMap, heat_map
from hitmiss.reports.summary import Summary
from hitmiss.reports.tabular import Grid, Row, explain, groupings
from hitmiss.robustness.attacks import NORMS
from hitmiss.robustness.campaign import CLEAN, CONTROL, Campaign, Cell, strength_of

CURVES: Final = ("changed", "robust_accuracy", "exact_match", "macro_auc", "target_success", "target_eligible")
HEADLINE: Final = "robust_accuracy"
MAPPED: Final = ("flipped", "lost", "changed")
NO_LABEL: Final = "nothing"
MOST_OF_EACH: Final = 2
"""Number of attacks per detector that a card names if there are several detectors."""
MOST_ATTACKS: Final = 4
"""Number of attacks that a card names one by one."""


def summarize(evaluation: Evaluation) -> Summary:
    """Summarise the accuracy that remains under the worst attack, the clean accuracy, and the effect of each attack."""
    results = evaluation.results
    whole = [e for e in results if not e.slice and e.average is None and e.value is not None]
    clean = [e for e in whole if e.run["attack"] == CLEAN]
    attacked = [e for e in whole if not e.run["attack"].startswith((CLEAN, CONTROL))]
    attacked = [e for e in attacked if _strength(e) >= 0.0] or attacked  # a search does not belong to one strength
    worst = min((e for e in attacked if e.metric == HEADLINE), key=_value, default=None)
    heads: list[tuple[str, Shown]] = []
    if worst is not None:
        heads.append(("", replace(shown(worst), title=f"Robust accuracy under the worst attack, {_where(worst)}")))
    names = [lane.name for lane in evaluation.lanes]
    if len(names) > 1:
        own = {name: [e for e in attacked if e.metric == HEADLINE and e.run[RUN] == name] for name in names}
        least = [(name, min(found, key=_value)) for name, found in own.items() if found]
        least.sort(key=lambda pair: -_value(pair[1]))
        title = "Robust accuracy under the worst attack on each"
        heads = [(name, replace(shown(e), title=title)) for name, e in least]
        assessment = assess_attack_runs(results, names)
        return Summary(evaluation.title, _tested(evaluation, whole), tuple(heads), (), assessment)
    tiles = [replace(shown(e), title=f"{explain(e.metric).title}, clean") for e in clean]
    strongest = sorted(_strongest(attacked, "changed"), key=_value, reverse=True)
    tiles += [replace(shown(e), title=f"Changed by {_where(e)}") for e in strongest[: 6 - len(tiles)]]
    return Summary(evaluation.title, _tested(evaluation, whole), tuple(heads), tuple(tiles), assess_attacks(results))


def _value(e: Estimate) -> float:
    return e.value if e.value is not None else math.nan


def _where(e: Estimate) -> str:
    return f"{attack_name(e.run)} at {e.run['strength']}"


def _tested(evaluation: Evaluation, whole: list[Estimate]) -> str:
    first = whole[0]
    attacks = list(dict.fromkeys(attack_name(_without_run(e.run)) for e in whole if e.run["attack"] != CLEAN))
    strengths = list(
        dict.fromkeys(e.run["strength"] for e in whole if e.run["attack"] != CLEAN and _strength(e) >= 0.0)
    )
    named = ", ".join(attacks[:6]) + (f" and {len(attacks) - 6} more" if len(attacks) > 6 else "")
    return (
        f"{', '.join(lane.name for lane in evaluation.lanes)} · {first.n:,} records, {first.n_positive:,} of them with a label, "
        f"under {named} at {len(strengths)} strength{'s' if len(strengths) != 1 else ''}"
    )


def _strongest(own: list[Estimate], metric: str) -> list[Estimate]:
    """Return each attack's row at its greatest strength."""
    found: dict[str, Estimate] = {}
    for e in own:
        name = attack_name(e.run)
        if e.metric == metric and (name not in found or _strength(e) > _strength(found[name])):
            found[name] = e
    return list(found.values())


def _strength(e: Estimate) -> float:
    """Return the strength of an attack; below 0 for a search for the minimal strength."""
    found = strength_of(e.run)
    return -1.0 if found is None else found


def assess_attacks(results: Results) -> Assessment:
    """Say what attacks show: how much clean accuracy is left, which attacks beat noise, and whether to trust it."""
    whole = [e for e in results if not e.slice and e.average is None and e.value is not None]
    clean = [e for e in whole if e.run["attack"] == CLEAN]
    attacked = [e for e in whole if not e.run["attack"].startswith((CLEAN, CONTROL)) and _strength(e) >= 0.0]
    worst = min((e for e in attacked if e.metric == HEADLINE), key=_value, default=None)
    good = _left(worst, next((e for e in clean if e.metric == "exact_match"), None))
    fails = _beyond_noise(whole, attacked)
    trust, notes = checks(results, clean or whole)
    trust = [line if line.name != "size" else _records(whole) for line in trust]
    broken = sum(line.status == FAILED for line in fails)
    parts = [good.text.split(": ")[0], f"{broken} attacks do more than noise of the same norm" * bool(broken)]
    bad = [line.name for line in trust if line.status == FAILED and line.name]
    parts += [f"failed checks: {', '.join(dict.fromkeys(bad))}"] if bad else []
    return Assessment("; ".join(filter(None, parts)) + ".", (good,), tuple(fails), tuple(trust), tuple(notes))


def _without_run(run: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in run.items() if name != RUN}


def assess_attack_runs(results: Results, names: Sequence[str]) -> Assessment:
    """Compare several attacked detectors, such as one before and after a defence: which keeps more, per attack.

    One is said to keep more where the intervals of the two lie apart, which is stricter than a paired test.
    """
    own = {
        name: replace(
            results, estimates=tuple(replace(e, run=_without_run(e.run)) for e in results if e.run[RUN] == name)
        )
        for name in names
    }
    alone = {name: assess_attacks(found) for name, found in own.items()}
    contests = _kept(results, names[0], names[1]) if len(names) == 2 else []
    good = [*contests, *(Line(line.status, f"{name}: {line.text}") for name, a in alone.items() for line in a.good)]
    worst = {name: [line for line in a.fails if line.status == FAILED] or list(a.fails) for name, a in alone.items()}
    fails = [
        Line(line.status, f"{name}: {line.text}") for name, lines in worst.items() for line in lines[:MOST_OF_EACH]
    ]
    first = next(iter(alone.values()))
    verdict = contests[0].text.split(": ")[0] if contests else good[0].text.split(": ")[0]
    bad = list(
        dict.fromkeys(line.name for a in alone.values() for line in a.trust if line.status == FAILED and line.name)
    )
    said = f"{verdict}; failed checks: {', '.join(bad)}." if bad else f"{verdict}."
    return Assessment(said, tuple(good), tuple(fails), first.trust, first.notes)


def _kept(results: Results, a: str, b: str) -> list[Line]:
    """Compare the robust accuracy of two runs at each attack and strength: which keeps more, if shown."""
    at: dict[tuple[tuple[str, str], ...], dict[str, Estimate]] = {}
    for e in results:
        plain = _without_run(e.run)
        attacked = not e.run["attack"].startswith((CLEAN, CONTROL))
        if e.metric == HEADLINE and not e.slice and e.average is None and e.value is not None and attacked:
            at.setdefault(tuple(plain.items()), {})[e.run[RUN]] = e
    pairs = [(own[a], own[b]) for own in at.values() if {a, b} <= set(own)]
    if not pairs:
        return [Line(OPEN, f"{a} and {b} share no attack at the same strength: nothing was compared.")]
    ahead: dict[str, list[tuple[Estimate, Estimate]]] = {a: [], b: []}
    for one, other in pairs:
        if None not in (one.low, one.high, other.low, other.high):
            if one.low > other.high:  # type: ignore[operator]
                ahead[a].append((one, other))
            elif other.low > one.high:  # type: ignore[operator]
                ahead[b].append((other, one))
    shown_ = [name for name in (a, b) if ahead[name]]
    if not shown_:
        return [
            Line(
                OPEN, f"Neither {a} nor {b} was shown to keep more: {len(pairs)} attacks at their strengths, all alike."
            )
        ]
    lines = []
    for name in sorted(shown_, key=lambda name: -len(ahead[name])):
        won, lost = max(ahead[name], key=lambda pair: _value(pair[0]) - _value(pair[1]))
        rival = b if name == a else a
        where = _where(replace(won, run=_without_run(won.run)))
        said = f"{len(ahead[name])} of {len(pairs)} attacks and strengths, most under {where}: {told(won)} against {told(lost)}."
        lines.append(Line(PASSED, f"{name} keeps more under attack than {rival}: {said}"))
    return lines


def _records(whole: Sequence[Estimate]) -> Line:
    """Check whether there are enough records; they have several labels, so they do not belong to single classes."""
    n = min(e.n for e in whole)
    if n < ENOUGH:
        return Line(FAILED, f"{n:,} records: fewer than {ENOUGH} are too few for a reliable figure.", "size")
    return Line(PASSED, f"{n:,} records.", "size")


def _left(worst: Estimate | None, before: Estimate | None) -> Line:
    """Say how much of the clean accuracy the worst attack removes, if its interval shows any loss."""
    if worst is None or before is None or before.value is None or worst.high is None:
        return Line(OPEN, "Not tested: no robust accuracy with an interval beside the clean one.")
    if not before.value > 0.0:
        return Line(
            FAILED,
            "The model is right about no untouched record: attacks have nothing to take away. Its classes, their order, its "
            "outputs, or the leads and units of the data are not what they were taken for.",
        )
    said = f"{_where(worst)} leaves {told(worst)} of the records right; untouched, {told(before)} are."
    if worst.high >= before.value:
        return Line(PASSED, f"No attack was shown to take accuracy away: {said}")
    return Line(FAILED, f"Attacks take accuracy away: {said}")


def _beyond_noise(whole: list[Estimate], attacked: list[Estimate]) -> list[Line]:
    """Compare each attack at its greatest strength with noise of the same norm: worse if intervals are apart."""
    noise = {
        (attack_name(e.run), e.run["strength"]): e
        for e in whole
        if e.metric == "changed" and e.run["attack"].startswith(CONTROL)
    }
    strongest = sorted(_strongest(attacked, "changed"), key=_value, reverse=True)
    if not strongest:
        return [Line(OPEN, "Not checked: nothing says how many answers each attack changes.")]
    found, alike, untested = [], [], []
    for e in strongest:
        control = noise.get((attack_name(e.run), e.run["strength"]))
        if control is None or e.low is None or control.high is None:
            untested.append(_where(e))
        elif e.low > control.high:
            found.append(
                Line(FAILED, f"{_where(e)} changes {told(e)} of the answers; noise of the same norm {told(control)}.")
            )
        else:
            alike.append(_where(e))
    lines = found[:MOST_ATTACKS]
    lines += (
        [Line(FAILED, f"{len(found) - MOST_ATTACKS} more attacks do more than noise.")]
        if len(found) > MOST_ATTACKS
        else []
    )
    lines += [Line(OPEN, f"Not shown to do more than noise of the same norm: {', '.join(alike)}.")] if alike else []
    lines += [Line(OPEN, f"Without a control of noise: {', '.join(untested)}.")] if untested else []
    return lines


def curves(results: Results) -> list[RobustnessDisplay]:
    """Draw every figure that was measured at strengths."""
    measured = {
        e.metric
        for e in results
        if not e.slice
        and e.average is None
        and e.value is not None
        and e.run["attack"] != CLEAN
        and _strength(e) >= 0.0
    }
    return [RobustnessDisplay.from_results(results, metric) for metric in CURVES if metric in measured]


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
    metric = next((m for m in MAPPED if m in grid.metrics), None)
    if metric is None or len(names) != 1:
        return []
    own = [e for e in results if e.metric == metric and tuple(e.slice) == names and e.average is None]
    kept = []
    for value in dict.fromkeys(e.slice[names[0]] for e in own):
        attacked = [e for e in own if e.slice[names[0]] == value and not e.run["attack"].startswith((CLEAN, CONTROL))]
        kept += _strongest(attacked, metric)
    crossed = tuple(replace(e, run={}, slice={"attack": _where(e), **e.slice}) for e in kept)
    made = heat_map(Results(crossed), ("attack", names[0]), metric, {})
    title = f"{explain(metric).title} by attack at its greatest strength and {names[0]}"
    return [replace(made, title=title)] if made is not None else []


def fragile(trials: Trials, run: str, most: int, budget: int, shelf: Shelf | None) -> Errors:
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
        Errors(run, rule, ("Records whose answer flips most easily", ""), (), ()), (samples, []), budget, shelf
    )


def _fragile(campaign: Campaign, cells: list[Cell], flips: NDArray[np.bool_], strengths: Floats, i: int) -> Sample:
    cell = _first(cells, flips, strengths)
    said = (
        ("clean answer", _labels(campaign, campaign.clean, i)),
        ("flips in", f"{int(flips.sum())} of {len(cells)}"),
        ("first at", f"{attack_name(cell.run)} {cell.run['strength']}"),
        ("then", _labels(campaign, cell, i)),
    )
    truth = ", ".join(name for name, bit in zip(campaign.classes, campaign.truth[i], strict=True) if bit) or NO_LABEL
    return Sample(campaign.records[i], truth, None, None, said)


def _first(cells: list[Cell], flips: NDArray[np.bool_], strengths: Floats) -> Cell:
    """Return the cell of lowest strength in which a record flips."""
    return cells[min(np.flatnonzero(flips), key=lambda at: strengths[at])]


def _labels(campaign: Campaign, cell: Cell, i: int) -> str:
    return ", ".join(name for name, bit in zip(campaign.classes, cell.bits[i], strict=True) if bit) or NO_LABEL
