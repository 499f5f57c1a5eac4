"""The result of one perturbation of one record: the documented fields, and a few that are needed beside them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass
class AttackResult:
    """One attempt on one record.

    The first eighteen fields are those of the ECG attack evaluation document. `threshold` is the threshold of the bits;
    `classes` names the columns of the vectors; `notes` says what was done on the way; `budget` is the allowed norm
    (`budget_norm`).
    """

    record_id: object
    ptype: str
    strength: float
    center_time: float
    window_seconds: float | None
    target_class: str | None
    target_mode: str | None
    config_extra: dict[str, object]
    y_true: NDArray[np.int64]
    y_hat_clean: NDArray[np.int8]
    y_hat_adv: NDArray[np.int8]
    y_proba_clean: Floats
    y_proba_adv: Floats
    delta_norm_l2: float
    delta_norm_linf: float
    delta_smoothness: float | None
    untargeted_success: bool
    targeted_success: bool | None
    threshold: ArrayLike = 0.5
    classes: tuple[str, ...] = ()
    snr_db: float = float("nan")
    budget: float = float("inf")
    budget_norm: str = ""
    zero_gradient: bool = False
    notes: tuple[str, ...] = field(default=())

    @property
    def target_index(self) -> int | None:
        """The column of the target class."""
        return self.classes.index(self.target_class) if self.target_class in self.classes else None

    @property
    def is_eligible(self) -> bool | None:
        """Whether the target bit could change: off before a force, on before a suppression; None without a target."""
        at = self.target_index
        if at is None:
            return None
        return bool(self.y_hat_clean[at] == (1 if self.target_mode == "suppress" else 0))


def smoothness(delta: ArrayLike, fs: float | None = None) -> float:
    """Return the mean squared first difference along time (axis 0), over all leads; with `fs`, per second.

    >>> smoothness([[0.0], [1.0], [3.0]]), smoothness([[0.0], [1.0], [3.0]], fs=10.0)
    (2.5, 250.0)
    """
    steps = np.diff(np.asarray(delta, dtype=np.float64), axis=0).ravel()
    return float(steps @ steps / steps.size) * (1.0 if fs is None else fs**2) if steps.size else float("nan")


def snr_db(x: ArrayLike, delta: ArrayLike) -> float:
    """Return the signal-to-noise ratio in dB: the power of the signal (each lead without its mean) over the change's.

    It is infinite without a change.

    >>> round(snr_db(np.array([[1.0], [-1.0]]), np.array([[0.1], [0.1]])), 6)
    20.0
    """
    signal, change = np.asarray(x, dtype=np.float64), np.asarray(delta, dtype=np.float64)
    power, noise = float(signal.var(axis=0).mean()), float(np.vdot(change, change)) / max(change.size, 1)
    return _decibels(power, noise)


def norms(delta: ArrayLike) -> tuple[float, float]:
    """Return the L2 and the L∞ norm of a change, over the whole array, in float64."""
    change = np.asarray(delta, dtype=np.float64).ravel()
    return float(np.linalg.norm(change)), float(np.abs(change).max(initial=0.0))


def powers(x: Floats) -> Floats:
    """Return the power of each record (record × sample × lead) without the mean of its leads."""
    found = np.zeros(len(x))
    for i, record in enumerate(x):
        middle = record.mean(axis=0)
        found[i] = _squares(record) / record.size - _squares(middle) / len(middle)
    return found


def describe(x: Floats, changed: Floats, power: Floats | None = None) -> dict[str, Floats]:
    """Return norms, signal-to-noise ratio and smoothness of each change (record × sample × lead), in float64.

    `power`: that of the records, if already computed.
    """
    table, own = np.zeros((4, len(x))), powers(x) if power is None else power
    for i, (before, after) in enumerate(zip(x, changed, strict=True)):  # one at a time: a record stays in the cache
        delta = after - before
        squares, steps = _squares(delta), delta[1:] - delta[:-1]
        table[0, i], table[1, i] = squares**0.5, max(delta.max(initial=0.0), -delta.min(initial=0.0))
        table[2, i] = _decibels(float(own[i]), squares / delta.size)
        table[3, i] = _squares(steps) / steps.size if steps.size else np.nan
    return dict(zip(("delta_l2", "delta_linf", "snr_db", "smoothness"), table, strict=True))


def _squares(values: Floats) -> float:
    """Return the sum of squares, without BLAS: its threads cost more than a record's few thousand products."""
    flat = values.reshape(-1)
    return float(np.einsum("i,i->", flat, flat))


def _decibels(power: float, noise: float) -> float:
    if noise == 0.0:
        return float("inf")
    return 10.0 * float(np.log10(power / noise)) if power > 0.0 else float("-inf")
