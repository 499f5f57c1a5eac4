"""Two costs on the same trials of which one shows few errors: their difference by the trials on which the runs differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.engine.columns import Sample
from hitmiss.engine.paired_draws import PairedDraws
from hitmiss.engine.paired_samples import Both, PairedSample
from hitmiss.engine.paired_shares import Mask
from hitmiss.stats.forms.at_threshold import AtThreshold
from hitmiss.stats.forms.base import Functional
from hitmiss.stats.forms.least_cost import MinimumCost
from hitmiss.stats.random import Ints
from hitmiss.stats.students_t import MANY, t_quantile

ADDED: Final = 0.25
"""Trials that are added to each kind of disagreement.

With none, or with draws, pairs of equal systems at an EER of 1 to 2 % were called different in 9 to 12 of 100 cases
instead of 5; with a quarter in 3 to 4, and with a half in 1 to 2 (the thresholds are chosen on the same trials).
"""


def discordant_costs(question: Both, sample: PairedSample, draws: PairedDraws) -> tuple[float, float] | None:
    """Return the difference of two costs and its standard error; None with weights, repeats, or other metrics.

    Each run is decided at its own threshold. Of n trials of a class, b are wrong in the second run alone and c in the
    first alone: p = (b + ¼) / (n + ½), q = (c + ¼) / (n + ½); the difference is Σ w (p − q) over the two classes, w the
    cost of all errors of a class, and its variance Σ w² (p + q − (p − q)²) / (n + ½) (Agresti & Min 2005; Bonett & Price
    2012). Over units b, c and n count as so many independent trials as they are worth (see `_worth`).
    """
    if len(sample.parts) > 1 or sample.parts[0].a.weight is not None:
        return None
    part = sample.parts[0]
    forms = [_fixed(q.form, side) for q, side in zip(question, (part.a, part.b), strict=True)]
    first, second = forms
    if first is None or second is None:
        return None
    wrong = [
        np.asarray((side.score >= form.threshold) != side.positive)
        for form, side in ((first, part.a), (second, part.b))
    ]
    n1, n0 = float(part.a.n_positive), float(part.a.n - part.a.n_positive)
    nothing = float(first.combine(0.0, n1, 0.0, n0))
    weights = float(first.combine(n1, n1, 0.0, n0)) - nothing, float(first.combine(0.0, n1, n0, n0)) - nothing
    classes = part.positive, ~part.positive
    gained, lost = wrong[1] & ~wrong[0], wrong[0] & ~wrong[1]
    units = [draws.a.codes(name)[part.a.rows] for name in draws.plan.unit]
    worth = _worth(gained.astype(np.float64) - lost, classes, weights, units, draws.plan.level)
    delta = variance = 0.0
    for inside, weight in zip(classes, weights, strict=True):
        n = worth * int(inside.sum()) + 2.0 * ADDED
        p, q = ((worth * int((own & inside).sum()) + ADDED) / n for own in (gained, lost))
        delta += weight * (p - q)
        variance += weight**2 * (p + q - (p - q) ** 2) / n
    return delta, math.sqrt(variance)


def _worth(
    signed: Floats, classes: tuple[Mask, Mask], weights: tuple[float, float], units: Sequence[Ints], level: float
) -> float:
    """Return as how many independent trials each trial counts, where whole units are drawn.

    `signed` is 1 where the second run alone is wrong and −1 where the first alone is. The worth is 1 over the design
    effect of the difference of both classes, what several columns of units add added up, times (z / t)² for few units
    (see `few_errors`): a class in which the runs do not differ does not show how they would.
    """
    share = np.zeros(len(signed))
    for own, weight in zip(classes, weights, strict=True):
        share[own] = weight * (signed[own] - signed[own].mean()) / own.sum()
    effect, degrees, alone = 1.0, MANY, float((share**2).sum())
    for unit in units:
        # bona fide trials have no attack: they vary with the other unit alone
        varying = [own for own in classes if len(np.unique(unit[own])) > 1]
        if not varying:
            continue
        varied = np.logical_or.reduce(varying)
        count = len(np.unique(unit[varied]))
        degrees = min(degrees, count - 1.0)
        between = count / (count - 1.0) * float((np.bincount(unit[varied], share[varied]) ** 2).sum())
        effect += max(between / alone - 1.0, 0.0) if alone > 0.0 else 0.0
    half = 0.5 + level / 2.0
    return (t_quantile(half, MANY) / t_quantile(half, degrees)) ** 2 / effect


def _fixed(form: Functional, sample: Sample) -> AtThreshold | None:
    """Return a cost at the threshold at which a run is decided."""
    found = form.at_best(sample.tally) if isinstance(form, MinimumCost) and sample.tally.has_both_classes else form
    return found if isinstance(found, AtThreshold) else None
