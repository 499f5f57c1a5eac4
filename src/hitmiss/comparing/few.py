"""Whether a paired sample holds enough for an interval of a difference: of few units nothing can be resampled.

Fewer units than the level asks for (`stats.fewest`) get neither an interval nor a test by resampling; exact tests of the
pairs (McNemar, permutation) know how little they have.
"""

from __future__ import annotations

import numpy as np

from hitmiss.comparing.paired_samples import Both, PairedDraws, PairedSample
from hitmiss.comparing.shares import Mask, shared_denominator
from hitmiss.stats.fewest import enough


def too_few(question: Both, sample: PairedSample, draws: PairedDraws) -> str | None:
    """Why a difference gets no interval, where what it stands on is too little; None where it is enough.

    Shares of the same trials stand on those trials, figures that know no label on all of them, and everything else on
    both classes. Trials are counted, or what is drawn: of two crossed units the rarer.
    """
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
    n, unit, whose = min(((n, u, w) for n, u, w in found if n), default=(0, "", ""))
    if n >= enough(draws.plan.level):
        return None
    kind = "unit" if unit else "trial" if whose else "pair"
    of = f" ({unit})" if unit else ""
    trials = f" of {whose} trials" if unit and whose else f" of {whose}" if whose else ""
    return f"no interval: {f'one {kind}' if n == 1 else f'{n} {kind}s'}{of}{trials} alone"


def _held(sample: PairedSample, masks: list[Mask], draws: PairedDraws, unit: str) -> int:
    """How many units, or trials where none are drawn, stand behind the pairs that are marked."""
    rows = np.concatenate([part.a.rows[mask] for part, mask in zip(sample.parts, masks, strict=True)])
    return len(np.unique(draws.a.columns.codes(unit)[0][rows])) if unit else len(rows)
