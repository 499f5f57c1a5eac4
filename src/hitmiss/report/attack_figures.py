"""Every picture that a run of attacks allows, drawn from its trials and its results alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from hitmiss.core.results import Estimate, Results
from hitmiss.core.tally import Floats
from hitmiss.core.trials import Trials
from hitmiss.drawing.attacks import classwise_metric_bars, minimal_strength_histogram, norm_boxes, success_map, triptych
from hitmiss.report.robustness_display import RobustnessDisplay, attack_name
from hitmiss.robustness.attacks import aim_of, measure_attacks
from hitmiss.robustness.campaign import CLEAN, Campaign, Cell

CURVES: Final = ("changed", "changed_correct", "exact_match", "macro_auc")
MOST_BARS: Final = 5
Examples = Mapping[str, tuple[Any, Any, float, str]]
"""By title: a record before and after (sample × lead), its sample rate, and what the model said of it."""


def save_figures(folder: str | Path, trials: Trials, results: Results, examples: Examples | None = None) -> list[Path]:
    """Draw into a folder, as PNG: curves over strength, norms, classes, places, least strengths, and records before and after."""
    target, campaign = Path(folder), Campaign.of(trials)
    target.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, figure in (
        *_curves(results),
        *_norms(campaign),
        *_classes(trials, campaign),
        *_places(campaign),
        *_least(campaign),
        *(
            (f"example_{_slug(title)}", triptych(x, y, fs, title=title, said=said))
            for title, (x, y, fs, said) in (examples or {}).items()
        ),
    ):
        drawn.append(target / f"{name}.png")
        figure.savefig(drawn[-1], dpi=150)
    return drawn


def _curves(results: Results) -> Iterator[tuple[str, Any]]:
    for metric in CURVES:
        if any(e.metric == metric and _is_attack(e) and _strength(e.run) is not None for e in results):
            yield metric, RobustnessDisplay.from_results(results, metric).plot().figure


def _norms(campaign: Campaign) -> Iterator[tuple[str, Any]]:
    """Boxes of the norms by family and strength, aims and places together; a control has the L2 norm of its attack."""
    norms: dict[tuple[str, float], tuple[list[float], list[float]]] = {}
    for cell in campaign.cells:
        strength = _strength(cell.run)
        if not cell.is_control and strength is not None and "delta_l2" in cell.numbers:
            two, peak = norms.setdefault((cell.run["attack"], strength), ([], []))
            two += cell.numbers["delta_l2"].tolist()
            peak += cell.numbers["delta_linf"].tolist()
    if norms:
        yield "norms", norm_boxes(dict(sorted(norms.items())))[0]


def _classes(trials: Trials, campaign: Campaign) -> Iterator[tuple[str, Any]]:
    """The AUC of every class, clean and under each attack at its greatest strength."""
    last: dict[str, Cell] = {}
    for cell in campaign.cells:
        if not cell.is_control and _strength(cell.run) is not None:
            last[attack_name(cell.run)] = cell  # cells are in the order of strength
    if not last:
        return
    by_class = [e for e in measure_attacks(trials, by="target") if e.metric == "roc_auc" and e.average is None]

    def bars(run: Mapping[str, str]) -> dict[str, dict[str, float]]:
        found = {e.slice["target"]: e.value for e in by_class if dict(e.run) == dict(run)}
        return {name: {"auc": float("nan") if value is None else value} for name, value in found.items()}

    shown = {f"{name}, strength {cell.run['strength']}": cell.run for name, cell in list(last.items())[:MOST_BARS]}
    yield (
        "classes",
        classwise_metric_bars({CLEAN: bars(campaign.clean.run), **{k: bars(v) for k, v in shown.items()}})[0],
    )


def _places(campaign: Campaign) -> Iterator[tuple[str, Any]]:
    """Where the window was × which true class the record has, for every attack that was tried in several places."""
    series: dict[str, list[tuple[float, Cell]]] = {}
    for cell in campaign.cells:
        place = cell.run.get("place", "whole")
        if not cell.is_control and place != "whole" and _strength(cell.run) is not None:
            name = " ".join(v for k, v in cell.run.items() if k != "place" and v != "any")
            series.setdefault(name, []).append((float(place.removesuffix(" s")), cell))
    for name, found in series.items():
        found.sort(key=lambda pair: pair[0])
        if len(found) > 1:
            success = np.stack([_success(campaign, cell) for _, cell in found])
            count = np.repeat(campaign.truth.sum(axis=0, dtype=np.int64)[:, None], len(found), axis=1)
            with np.errstate(invalid="ignore"):
                rate = (campaign.truth.T.astype(np.float64) @ success.T) / count
            places = [p for p, _ in found]
            yield f"places_{_slug(name)}", success_map(rate, count, campaign.classes, places, title=name)[0]


def _success(campaign: Campaign, cell: Cell) -> Floats:
    """Of each record whether the attack did what it aimed at, or changed any bit where it had no aim."""
    reached, _ = aim_of(campaign, cell)
    return (campaign.clean.bits != cell.bits).any(axis=1).astype(np.float64) if np.isnan(reached).any() else reached


def _least(campaign: Campaign) -> Iterator[tuple[str, Any]]:
    for cell in campaign.cells:
        least = cell.numbers.get("minimal_strength")
        if least is not None and cell.run["strength"] == "minimal" and not cell.is_control:
            yield (
                f"minimal_{_slug(attack_name(cell.run))}",
                minimal_strength_histogram(least, title=attack_name(cell.run))[0],
            )


def _is_attack(e: Estimate) -> bool:
    return e.run.get("attack", CLEAN) != CLEAN and not e.slice


def _strength(run: Mapping[str, str]) -> float | None:
    try:
        return float(run.get("strength", ""))
    except ValueError:
        return None


def _slug(name: str) -> str:
    """A name that any file system takes.

    >>> _slug("pgd, force MI 0.5")
    'pgd_force_MI_0.5'
    """
    return "_".join("".join(c if c.isalnum() or c in ".-_" else " " for c in name).split())
