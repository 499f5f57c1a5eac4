"""How many independent trials a rate over whole units is worth (Korn & Graubard 1998)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.stats.enough_units import enough
from hitmiss.stats.students_t import MANY, t_quantile


def effective_trials(by_unit: Sequence[tuple[Floats, Floats]], level: float = 0.95) -> Floats | None:
    """Return for several rates of the same trials how many independent trials would know each as well.

    Per column of units: the hits of each unit at each rate (unit × rate), and its trials. The variance of a rate between
    units over that of independent trials is its design effect, at least 1; what several columns add is added up. Few
    units are worth less still: as much as Student's quantile is beyond the normal one. None if units are too few for the
    level. Wilson's interval of so many trials is then the band of a curve, rate by rate.

    >>> hits, of = np.array([[5.0], [1.0]] * 6), np.full(12, 10.0)
    >>> effective_trials([(hits, of)]).round(1).tolist()
    [45.8]
    """
    effect, fewest, trials = 1.0, MANY, 0.0
    for hits, of in by_unit:
        held = of > 0
        hits, of, units = hits[held], of[held], int(held.sum())
        trials = float(of.sum())
        if units < 2 and len(by_unit) > 1:  # a class without this unit: bona fide trials have no attack
            continue
        if units < enough(level):
            return None
        share = hits.sum(axis=0) / trials
        between = units / (units - 1.0) * ((hits - share * of[:, None]) ** 2).sum(axis=0) / trials**2
        alone = share * (1.0 - share) / trials
        added = np.divide(between, alone, out=np.ones_like(share), where=alone > 0.0) - 1.0
        effect, fewest = effect + np.maximum(added, 0.0), min(fewest, units - 1.0)
    if fewest == MANY:
        return None
    half = 0.5 + level / 2.0
    return np.asarray(trials / effect * (t_quantile(half, MANY) / t_quantile(half, fewest)) ** 2)
