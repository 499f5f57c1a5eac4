"""The twelve leads of an ECG: eight are independent, the other four follow from them.

III = II − I, aVR = −(I + II)/2, aVL = I − II/2, aVF = II − I/2. An attack that changes twelve leads independently
makes a physically impossible signal; `consistent` keeps the changes of the eight and derives the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.attacks.arrays import Floats
from hitmiss.core.errors import UsageError

LEADS: Final = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
INDEPENDENT: Final = (0, 1, 6, 7, 8, 9, 10, 11)
"""Positions of I, II and V1 to V6."""


def lead_name(text: str) -> str:
    """Return the usual spelling of a standard lead; another name is only freed of spaces.

    >>> [lead_name(name) for name in ("AVR", "Lead II", "ecg_v1", "MLII")]
    ['aVR', 'II', 'V1', 'MLII']
    """
    plain = text.strip()
    bare = "".join(c for c in plain.casefold() if c not in " _-").removeprefix("ecg").removeprefix("lead")
    return next((lead for lead in LEADS if lead.casefold() == bare), plain)


def standard_order(names: Sequence[str]) -> list[int] | None:
    """Return where each of the twelve standard leads is among these; None if they are not these twelve.

    >>> standard_order(["II", "I", "III", "AVL", "AVR", "AVF", "V1", "V2", "V3", "V4", "V5", "V6"])[:5]
    [1, 0, 2, 4, 3]
    """
    found = [lead_name(name) for name in names]
    return [found.index(lead) for lead in LEADS] if sorted(found) == sorted(LEADS) else None


def expansion() -> Floats:
    """Return the matrix (12 × 8) from the independent leads to all."""
    matrix = np.zeros((12, 8))
    matrix[INDEPENDENT, range(8)] = 1.0
    matrix[2, :2] = (-1.0, 1.0)
    matrix[3, :2] = (-0.5, -0.5)
    matrix[4, :2] = (1.0, -0.5)
    matrix[5, :2] = (-0.5, 1.0)
    return matrix


def need_twelve(n_leads: int) -> None:
    """Refuse anything but the twelve standard leads if their equations are needed."""
    if n_leads != 12:
        raise UsageError.of("other-leads/count", LEADS=tuple(LEADS), n_leads=n_leads)


def consistent(delta: ArrayLike) -> Floats:
    """Return a change (…, sample, lead) with the four dependent leads derived from the eight others.

    >>> consistent(np.eye(12)[None, :2]).shape
    (1, 2, 12)
    >>> violation(consistent(np.random.default_rng(0).normal(size=(5, 12)))) < 1e-12
    True
    """
    changed = np.asarray(delta, dtype=np.float64)
    need_twelve(changed.shape[-1])
    return np.asarray(changed[..., INDEPENDENT] @ expansion().T)


def violation(x: ArrayLike) -> float:
    """Return the largest violation (in the unit of x) of the lead equations in a signal."""
    signal = np.asarray(x, dtype=np.float64)
    return float(np.abs(signal - consistent(signal)).max(initial=0.0))
