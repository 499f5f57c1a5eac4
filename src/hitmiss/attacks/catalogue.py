"""Every family of perturbations and attacks, of every medium and method, in one list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from hitmiss.attacks import queries
from hitmiss.attacks.batched import batched_families
from hitmiss.attacks.family import all_attacks
from hitmiss.attacks.methods import FIXED, METHODS, SETTINGS, Method
from hitmiss.core.metric_spec import MetricSpec, Setting

GRADIENT: Final = {
    "fgsm": "One step along the sign of the gradient; at strength 1 `eps_max` mV in every sample (needs gradients).",
    "pgd": "Projected gradient descent within `eps_max` mV in every sample (needs gradients).",
    "pgd_l2": "Projected gradient descent within an L2 norm of `eps_max` (needs gradients).",
    "apgd": "PGD with momentum and steps that shorten where the loss stays (APGD, Croce & Hein 2020; needs gradients).",
    "apgd_l2": "The same within an L2 norm of `eps_max` (needs gradients).",
    "sap": "PGD whose change is smoothed by 25 Gaussian kernels (Han et al. 2020; needs gradients).",
    "smooth_adv": "Adam within an L2 norm of `eps_global_max`, with penalties for roughness and energy (needs gradients).",
}
ASKING: Final = {
    "random_search": "Stretches of leads set to ± `eps_max` mV, kept where they help; asks the model only.",
    "square": "The Square attack (Andriushchenko et al. 2020): stretches of all leads set to ± `eps_max` mV; asks the model only.",
    "worst_case": "The best per record of pgd with restarts, apgd and square, each on what the one before did not flip.",
    "hop_skip_jump": "HopSkipJump by ART on the powerset of the labels, L2 up to `eps_max`; asks the model only.",
}


@dataclass(frozen=True)
class Family:
    """A family: its name, what it changes (audio, ecg, image, text, any), its settings, and a one-line description."""

    name: str
    medium: str
    settings: Mapping[str, Setting]
    about: str

    @property
    def call(self) -> str:
        """Its text form with all settings.

        >>> Family("gain", "audio", {"db": -10.0}, "").call
        'gain(db=-10)'
        """
        return str(MetricSpec(self.name, tuple(self.settings.items())))


def catalogue() -> list[Family]:
    """Return every family, grouped by medium.

    >>> [f.name for f in catalogue() if f.medium == "text"]
    ['homoglyphs', 'typos']
    """
    batched = batched_families()
    plain = [
        Family(name, a.medium, batched[name].defaults if name in batched else _own(a.defaults), a.about)
        for name, a in all_attacks().items()
    ]
    gradient = [Family(name, "ecg", _settings(METHODS[name]), about) for name, about in GRADIENT.items()]
    asking = [Family(name, "ecg", queries.BLACKBOX_SETTINGS[name], about) for name, about in ASKING.items()]
    return sorted([*plain, *gradient, *asking], key=lambda f: (f.medium, f.name))


def _own(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return the settings without those that the caller supplies."""
    return {name: value for name, value in settings.items() if name != "sample_rate"}


def _settings(method: Method) -> dict[str, Setting]:
    """Return the settings of a gradient family, under the documented names (ECG attacks) if it has any."""
    theirs = {ours: name for name, ours in SETTINGS.items()} if method.adam is not None else {}
    found = {f.name: getattr(method, f.name) for f in fields(method) if f.name not in FIXED}
    return {theirs.get(name, name): value for name, value in found.items() if value not in (None, 0.0)}
