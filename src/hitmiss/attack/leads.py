"""The twelve leads of an ECG: eight are independent, the other four follow from them.

III = II − I, aVR = −(I + II)/2, aVL = I − II/2, aVF = II − I/2. An attack that moves twelve leads freely makes a signal
that no body can send; `consistent` keeps what it did to the eight and derives the rest.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.errors import UsageError

Floats = NDArray[np.float64]
LEADS: Final = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
INDEPENDENT: Final = (0, 1, 6, 7, 8, 9, 10, 11)
"""Places of I, II and V1 to V6."""


def expansion() -> Floats:
    """The matrix (12 × 8) from the independent leads to all."""
    matrix = np.zeros((12, 8))
    matrix[INDEPENDENT, range(8)] = 1.0
    matrix[2, :2] = (-1.0, 1.0)
    matrix[3, :2] = (-0.5, -0.5)
    matrix[4, :2] = (1.0, -0.5)
    matrix[5, :2] = (-0.5, 1.0)
    return matrix


def need_twelve(n_leads: int) -> None:
    """Refuse anything but the twelve standard leads where their equations are asked for."""
    if n_leads != 12:
        raise UsageError(f"the lead equations hold for the 12 standard leads ({', '.join(LEADS)}); found {n_leads}")


def consistent(delta: Any) -> Floats:
    """A change (…, sample, lead) with the four dependent leads derived from the eight others.

    >>> consistent(np.eye(12)[None, :2]).shape
    (1, 2, 12)
    >>> violation(consistent(np.random.default_rng(0).normal(size=(5, 12)))) < 1e-12
    True
    """
    changed = np.asarray(delta, dtype=np.float64)
    need_twelve(changed.shape[-1])
    return np.asarray(changed[..., INDEPENDENT] @ expansion().T)


def violation(x: Any) -> float:
    """By how much (in the unit of x) a signal breaks the lead equations, at worst."""
    signal = np.asarray(x, dtype=np.float64)
    return float(np.abs(signal - consistent(signal)).max(initial=0.0))
