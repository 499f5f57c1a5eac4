"""Presentation attacks on a whole system, detector and matcher together (ISO/IEC 30107-3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import DataError
from hitmiss.core.rates import Rate
from hitmiss.core.registry import metric
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import check_weight
from hitmiss.stats.forms.trials import OfTerms

COLUMNS = ("label", "accepted")
YES, NO = ("1", "1.0", "True", "true", "yes"), ("0", "0.0", "False", "false", "no")


def _terms(label: ArrayLike, accepted: ArrayLike) -> tuple[Floats, Floats]:
    """Return what each trial adds: an attack counts, and is a hit if the whole system accepts it."""
    attack = np.asarray(label) == 0
    said = np.char.strip(np.asarray(accepted).astype(str))
    yes, no = np.isin(said, YES), np.isin(said, NO)
    if (attack & ~yes & ~no).any():
        raise DataError.of("bad-accepted", found=str(said[attack & ~yes & ~no][0]))
    return (attack & yes).astype(np.float64), attack.astype(np.float64)


def _value(label: ArrayLike, accepted: ArrayLike, weight: ArrayLike | None = None) -> Rate:
    above, below = _terms(label, accepted)
    weights = check_weight(weight, len(above))
    if weights is not None:
        above, below = above * weights, below * weights
    return Rate(float(above.sum()), float(below.sum()))


@metric(
    best="low",
    form=lambda: OfTerms(_value, COLUMNS, terms=_terms, is_share=True),
    prevalence=False,
    of="negatives",
    share=True,
    symbol="IAPAR",
)
def iapar(label: ArrayLike, accepted: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Impostor attack presentation accept rate: the share of attacks that the whole system accepts.

    Attacks with accepted = 1, divided by all attacks; `accepted` is the decision of the detector and the matcher together
    (1 or 0; it is not looked at for bona fide presentations). Best: low. Range: 0..1. Undefined (NaN) without attacks. Reference: ISO/IEC
    30107-3:2023 (IAPAR).

    >>> iapar([1, 0, 0, 0, 0], [1, 1, 0, 0, 0])
    Rate(1/4 = 0.25)
    """
    return _value(label, accepted, weight)
