"""Check whether an attack worked at all: an attack that failed looks just like a robust model.

It finds zero gradients, exceeded budgets, attacks that change nothing, success that falls as strength rises, noise of
the same norm that does as much, and a black-box attack that beats the gradient. (Carlini et al. 2019, On evaluating
adversarial robustness.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from hitmiss.core.finding import Remark
from hitmiss.core.results import ATTACK_SUSPECT, CONSTANT, REVERSED
from hitmiss.core.tally import Tally
from hitmiss.engine.interval import area_interval
from hitmiss.robustness.campaign import CONTROL, Campaign, Cell, strength_of
from hitmiss.stats.mcnemar import exact

OVER: Final = 1e-9
SIGNIFICANT: Final = 0.01
GRADIENT: Final = ("fgsm", "pgd", "pgd_l2", "sap", "smooth_adv")
BLACK_BOX: Final = ("random_search", "hop_skip_jump")


def health(campaign: Campaign) -> list[str]:
    """Describe what is wrong with the model or with the attacks of a campaign."""
    model = [*(Remark(text, CONSTANT) for text in _constant(campaign))]
    model += [Remark(text, REVERSED) for text in _reversed(campaign)]
    found: list[str] = []
    for cell in campaign.cells:
        if not cell.is_control:
            found += [*_zero_gradient(cell), *_over_budget(cell), *_no_better_than_noise(campaign, cell)]
    found += [*_idle(campaign), *_falling(campaign), *_beaten(campaign)]
    return [*model, *(Remark(text, ATTACK_SUSPECT) for text in found)]


def _constant(campaign: Campaign) -> Iterator[str]:
    score = campaign.clean.score
    if len(score) > 1 and (score == score[0]).all():
        yield "the model gives the same answer for every record, so it cannot be attacked; that does not make it robust"


def _reversed(campaign: Campaign) -> Iterator[str]:
    """Find classes whose clean scores go with the wrong label, by more than chance."""
    for k, name in enumerate(campaign.classes):
        truth, score = campaign.truth[:, k], campaign.clean.score[:, k]
        if 0 < truth.sum() < len(truth):
            low, high = area_interval(Tally.of(truth, score))
            if high < 0.5:
                yield (
                    f"the scores of {name} look REVERSED: their ROC AUC without an attack lies in [{low:.4f}, {high:.4f}]; are the columns "
                    f"of y in the order of the model's outputs?"
                )


def _named(cell: Cell) -> str:
    return " ".join(cell.run.values())


def _zero_gradient(cell: Cell) -> Iterator[str]:
    zero = cell.numbers.get("zero_gradient")
    if zero is not None and np.nansum(zero) > 0:
        n = int(np.nansum(zero))
        yield (
            f"ATTACK FAILED? {_named(cell)}: the gradient is exactly 0 for {n} of {len(zero)} records, so the attack cannot move "
            f"them; a saturated or masked model looks robust this way"
        )


def _over_budget(cell: Cell) -> Iterator[str]:
    budget, norm = cell.numbers.get("budget"), cell.numbers.get("budget_used")
    if budget is None or norm is None:
        return
    over = norm > budget * (1 + OVER) + OVER
    if over.any():
        worst = float(np.nanmax((norm - budget)[over]))
        yield f"ATTACK INVALID: {_named(cell)}: {int(over.sum())} records are over their budget, by up to {worst:.3g}"


def _no_better_than_noise(campaign: Campaign, cell: Cell) -> Iterator[str]:
    control = next((c for c in campaign.cells if c.is_control and _partner(c) == _partner(cell)), None)
    if control is None or cell.family not in (*GRADIENT, *BLACK_BOX):
        return
    own, noise = (campaign.changed(c) for c in (cell, control))
    if noise >= own and noise > 0:
        yield (
            f"ATTACK FAILED? {_named(cell)} changes {own:.1%} of the records and random noise of the same norm {noise:.1%}; "
            f"an attack must beat noise"
        )


def _partner(cell: Cell) -> tuple[str, ...]:
    return tuple(v.removeprefix(CONTROL) if k == "attack" else v for k, v in cell.run.items())


def _idle(campaign: Campaign) -> Iterator[str]:
    """Find an attack that searches for flips and finds none at any strength."""
    most: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell in campaign.cells:
        if cell.family in (*GRADIENT, *BLACK_BOX):
            most[tuple(v for k, v in cell.run.items() if k != "strength")].append(cell)
    for key, cells in most.items():
        if not any((campaign.clean.bits != c.bits).any() for c in cells):
            yield (
                f"ATTACK FAILED? {' '.join(key)} changes no record at any strength: before the model is called robust, give it more budget "
                f"or more steps"
            )


def _falling(campaign: Campaign) -> Iterator[str]:
    """Find success that falls as strength rises, by more than chance (exact McNemar between neighbouring strengths)."""
    series: dict[tuple[str, ...], list[tuple[float, Cell]]] = defaultdict(list)
    for cell in campaign.cells:
        strength = strength_of(cell.run)
        if not cell.is_control and cell.family in (*GRADIENT, *BLACK_BOX) and strength is not None:
            key = tuple(v for k, v in cell.run.items() if k != "strength")
            series[key].append((strength, cell))
    for key, steps in series.items():
        steps.sort(key=lambda step: step[0])
        for (low, a), (high, b) in pairwise(steps):
            before, after = ((campaign.clean.bits != c.bits).any(axis=1) for c in (a, b))
            fallen, risen = int((before & ~after).sum()), int((~before & after).sum())
            if fallen > risen and exact(fallen, risen) < SIGNIFICANT:
                yield (
                    f"ATTACK FAILED? {' '.join(key)}: from strength {low:g} to {high:g} success falls from {before.mean():.1%} to "
                    f"{after.mean():.1%}; more budget should never help less (more steps, or another step size)"
                )


def _beaten(campaign: Campaign) -> Iterator[str]:
    """Find a black-box attack that does more than every gradient attack at the same strength."""
    strengths = {c.run["strength"] for c in campaign.cells}
    for strength in sorted(strengths):
        rates: dict[str, float] = {}
        for c in campaign.cells:
            if c.run["strength"] == strength and c.run.get("aim", "any") == "any":
                rates[c.family] = max(rates.get(c.family, 0.0), campaign.changed(c))
        white = [rates[name] for name in GRADIENT if name in rates]
        for name in BLACK_BOX:
            if white and name in rates and rates[name] > max(white):
                yield (
                    f"ATTACK FAILED? at strength {strength} {name} changes {rates[name]:.1%} without gradients and the best gradient "
                    f"attack {max(white):.1%}: gradients may be masked"
                )
