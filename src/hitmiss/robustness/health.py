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
from hitmiss.core.tally import Tally
from hitmiss.engine.interval import area_interval
from hitmiss.robustness.campaign import CONTROL, AttackCondition, Campaign, strength_of
from hitmiss.stats.mcnemar import exact

OVER: Final = 1e-9
SIGNIFICANT: Final = 0.01
GRADIENT: Final = ("fgsm", "pgd", "pgd_l2", "sap", "smooth_adv")
BLACK_BOX: Final = ("random_search", "hop_skip_jump")


def health(campaign: Campaign) -> list[Remark]:
    """Find what is wrong with the model or with the attacks of a campaign."""
    found = [*_constant(campaign), *_reversed(campaign)]
    for cell in campaign.cells:
        if not cell.is_control:
            found += [*_zero_gradient(cell), *_over_budget(cell), *_no_better_than_noise(campaign, cell)]
    return [*found, *_idle(campaign), *_falling(campaign), *_beaten(campaign)]


def _constant(campaign: Campaign) -> Iterator[Remark]:
    score = campaign.clean.score
    if len(score) > 1 and (score == score[0]).all():
        yield Remark.of("scores-constant/attacked")


def _reversed(campaign: Campaign) -> Iterator[Remark]:
    """Find classes whose clean scores go with the wrong label, by more than chance."""
    for k, name in enumerate(campaign.classes):
        truth, score = campaign.truth[:, k], campaign.clean.score[:, k]
        if 0 < truth.sum() < len(truth):
            low, high = area_interval(Tally.of(truth, score))
            if high < 0.5:
                yield Remark.of("scores-reversed/class", name=name, low=low, high=high)


def _named(cell: AttackCondition) -> str:
    return " ".join(cell.run.values())


def _zero_gradient(cell: AttackCondition) -> Iterator[Remark]:
    zero = cell.numbers.get("zero_gradient")
    if zero is not None and np.nansum(zero) > 0:
        yield Remark.of("attack-suspect/gradient", attack=_named(cell), n=int(np.nansum(zero)), total=len(zero))


def _over_budget(cell: AttackCondition) -> Iterator[Remark]:
    budget, norm = cell.numbers.get("budget"), cell.numbers.get("budget_used")
    if budget is None or norm is None:
        return
    over = norm > budget * (1 + OVER) + OVER
    if over.any():
        worst = float(np.nanmax((norm - budget)[over]))
        yield Remark.of("attack-suspect/budget", attack=_named(cell), n=int(over.sum()), worst=worst)


def _no_better_than_noise(campaign: Campaign, cell: AttackCondition) -> Iterator[Remark]:
    control = next((c for c in campaign.cells if c.is_control and _partner(c) == _partner(cell)), None)
    if control is None or cell.family not in (*GRADIENT, *BLACK_BOX):
        return
    own, noise = (campaign.changed(c) for c in (cell, control))
    if noise >= own and noise > 0:
        yield Remark.of("attack-suspect/noise", attack=_named(cell), own=f"{own:.1%}", noise=f"{noise:.1%}")


def _partner(cell: AttackCondition) -> tuple[str, ...]:
    return tuple(v.removeprefix(CONTROL) if k == "attack" else v for k, v in cell.run.items())


def _idle(campaign: Campaign) -> Iterator[Remark]:
    """Find an attack that searches for flips and finds none at any strength."""
    most: dict[tuple[str, ...], list[AttackCondition]] = defaultdict(list)
    for cell in campaign.cells:
        if cell.family in (*GRADIENT, *BLACK_BOX):
            most[tuple(v for k, v in cell.run.items() if k != "strength")].append(cell)
    for key, cells in most.items():
        if not any((campaign.clean.bits != c.bits).any() for c in cells):
            yield Remark.of("attack-suspect/idle", attack=" ".join(key))


def _falling(campaign: Campaign) -> Iterator[Remark]:
    """Find success that falls as strength rises, by more than chance (exact McNemar between neighbouring strengths)."""
    series: dict[tuple[str, ...], list[tuple[float, AttackCondition]]] = defaultdict(list)
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
                steps_of = {"before": f"{before.mean():.1%}", "after": f"{after.mean():.1%}"}
                yield Remark.of("attack-suspect/falling", attack=" ".join(key), low=low, high=high, **steps_of)


def _beaten(campaign: Campaign) -> Iterator[Remark]:
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
                rate, best = f"{rates[name]:.1%}", f"{max(white):.1%}"
                yield Remark.of("attack-suspect/masked", strength=strength, name=name, rate=rate, best=best)
