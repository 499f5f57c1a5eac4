"""Whether a paired sample holds enough for an interval of a difference: of few units nothing can be resampled.

Fewer units than the level asks for (`stats.fewest`) get neither an interval nor a test by resampling; exact tests of the
pairs (McNemar, permutation) know how little they have.
"""

from __future__ import annotations

import numpy as np

from hitmiss.comparing.paired_samples import Both, PairedDraws, PairedSample
from hitmiss.comparing.shares import Mask, shared_denominator
from hitmiss.stats.fewest import effective, enough
from hitmiss.tally import Array


def too_few(question: Both, sample: PairedSample, draws: PairedDraws) -> str | None:
    """Why a difference gets no interval, where what it stands on is too little; None where it is enough.

    Shares of the same trials stand on those trials, figures that know no label on all of them, and everything else on
    both classes. Trials are counted, or what is drawn: of two crossed units the rarer.
    """
    behind = _behind(question, sample, draws)
    n, unit, whose = min(((len(sizes), u, w) for sizes, u, w in behind if len(sizes)), default=(0, "", ""))
    if n >= enough(draws.plan.level):
        return None
    kind = "unit" if unit else "trial" if whose else "pair"
    of = f" ({unit})" if unit else ""
    trials = f" of {whose} trials" if unit and whose else f" of {whose}" if whose else ""
    return f"no interval: {f'one {kind}' if n == 1 else f'{n} {kind}s'}{of}{trials} alone"


def degrees(question: Both, sample: PairedSample, draws: PairedDraws) -> float:
    """Degrees of freedom of the standard error of a difference: the effective number of units (or trials) less one."""
    return min((effective(sizes) - 1.0 for sizes, _, _ in _behind(question, sample, draws) if len(sizes)), default=1.0)


def _behind(question: Both, sample: PairedSample, draws: PairedDraws) -> list[tuple[Array, str, str]]:
    """How many pairs each unit (or trial) holds of what a figure stands on, with the unit and the class."""
    head = sample.parts[0].a.columns.trials.header
    shared = shared_denominator(question, sample)
    positive = [part.positive for part in sample.parts]
    if shared is not None:
        stands_on = {"": [inside for inside, _, _ in shared]}
    elif "label" in question[0].metric.columns:
        stands_on = {head.positive: positive, head.negative: [~mask for mask in positive]}
    else:
        stands_on = {"": [np.ones_like(mask) for mask in positive]}
    names = draws.plan.unit or ("",)
    found = [(_held(sample, masks, draws, unit), unit, whose) for whose, masks in stands_on.items() for unit in names]
    if len(names) < 2:
        return found
    return [row for row in found if len(row[0]) > 1] or found  # bona fide trials are all of one attack


def _held(sample: PairedSample, masks: list[Mask], draws: PairedDraws, unit: str) -> Array:
    """How many of the marked pairs each unit holds, of units that hold any; one each where trials are drawn."""
    rows = np.concatenate([part.a.rows[mask] for part, mask in zip(sample.parts, masks, strict=True)])
    if not unit:
        return np.ones(len(rows))
    sizes = np.bincount(draws.a.columns.asked_codes(unit)[0][rows])
    return sizes[sizes > 0]
