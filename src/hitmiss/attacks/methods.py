"""The step rules of gradient attacks: `fgsm`, `pgd`, `pgd_l2`, `apgd`, `apgd_l2`, `sap` (Han et al. 2020), `smooth_adv`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import UnknownName

Floats = NDArray[np.float64]
SAP_SIZES: Final = (5, 7, 11, 15, 19)
SAP_SIGMAS: Final = (1.0, 3.0, 5.0, 7.0, 10.0)
SAP_RATE: Final = 300.0
"""Kernels of Han et al. 2020: in samples at 300 Hz."""


@dataclass(frozen=True)
class Method:
    """The step rule of a gradient attack. `eps_max` is the budget at strength 1: in mV (L∞) or an L2 norm."""

    norm: Literal["linf", "l2"] = "linf"
    eps_max: float = 0.05
    steps: int = 20
    step: float | None = None
    """The size of a step as a share of the budget; None: 2.5 / steps, and the whole budget for one step."""
    smooth: bool = False
    adam: float | None = None
    """The rate of Adam, which is used instead of plain gradient steps."""
    lambda_smooth: float = 0.0
    lambda_energy: float = 0.0
    restarts: int = 1
    """Attempts: the first from the record itself, the others from random points within the budget; the best counts."""
    adaptive: bool = False
    """Whether steps have momentum and shorten when the loss does not improve (APGD, Croce & Hein 2020)."""

    @property
    def share(self) -> float:
        """The size of a step as a share of the budget."""
        return self.step if self.step is not None else min(1.0, 2.5 / self.steps)


METHODS: Final[dict[str, Method]] = {
    "fgsm": Method(steps=1),
    "pgd": Method(),
    "pgd_l2": Method(norm="l2", eps_max=1.0),
    "apgd": Method(steps=50, adaptive=True),
    "apgd_l2": Method(norm="l2", eps_max=1.0, steps=50, adaptive=True),
    "sap": Method(steps=40, step=0.1, smooth=True),
    "smooth_adv": Method(norm="l2", eps_max=0.5, steps=200, adam=0.01, lambda_smooth=10.0, lambda_energy=0.5),
}
FIXED: Final = ("norm", "smooth", "adaptive")
"""Fields that define a gradient family, and are not settings."""
SETTINGS: Final = {"eps_global_max": "eps_max", "lr": "adam"}
"""Names in the ECG attack evaluation document, and ours."""


def find_method(name: str, **settings: Any) -> Method:
    """Return a method by the name of its family, with the caller's settings.

    >>> find_method("smooth_adv", eps_global_max=0.8, steps=50).eps_max
    0.8
    """
    if name not in METHODS:
        raise UnknownName("gradient family", name, METHODS)
    ours = {SETTINGS.get(key, key): value for key, value in settings.items()}
    known = {f for f in Method.__dataclass_fields__ if f not in FIXED}
    for key in ours:
        if key not in known:
            raise UnknownName(f"setting of {name}", key, {*known, *SETTINGS})
    return replace(METHODS[name], **ours)


def sap_kernel(fs: float) -> Floats:
    """Return the mean of the 25 Gaussian kernels of Han et al., converted from 300 Hz to another rate; its sum is 1.

    >>> round(float(sap_kernel(100.0).sum()), 12), len(sap_kernel(300.0))
    (1.0, 19)
    """
    scale = fs / SAP_RATE
    half = max(round(max(SAP_SIZES) // 2 * scale), 1)
    at, kernel = np.arange(-half, half + 1), np.zeros(2 * half + 1)
    for size in SAP_SIZES:
        for sigma in SAP_SIGMAS:
            bell = np.exp(-0.5 * (at / (sigma * scale)) ** 2) * (np.abs(at) <= max(round(size // 2 * scale), 1))
            kernel += bell / bell.sum() / (len(SAP_SIZES) * len(SAP_SIGMAS))
    return kernel
