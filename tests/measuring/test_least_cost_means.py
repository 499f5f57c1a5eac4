"""Means over slices of a minimum over thresholds: each slice is too low in its own sample, and so is their mean."""

from __future__ import annotations

import numpy as np

from hitmiss.core.trials import Trials
from hitmiss.engine.measure import measure
from hitmiss.metrics.tandem_trials import min_a_dcf_of_trials
from hitmiss.stats.forms.three_classes import CLASSES

MEANS = {"target": 3.0, "nontarget": 0.0, "spoof": 0.5}


def tandem(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Classes and scores of a whole system."""
    kind = np.array(CLASSES)[rng.integers(0, 3, n)]
    return kind, rng.normal(size=n) + np.array([MEANS[own] for own in kind])


def test_the_mean_of_a_dcf_over_slices_holds_the_truth() -> None:
    """The slices are alike, so the truth is that of one population. Not corrected for it, 22 of 40 held it."""
    rng = np.random.default_rng(5)
    true = min_a_dcf_of_trials(*tandem(400_000, rng))
    held = 0
    for seed in range(40):
        kind, score = tandem(450, rng)
        trials = Trials.of(kind != "spoof", score, codec=np.tile(["a", "b", "c"], 150), asv_label=kind)
        found = measure(trials.put(sasv_score=score), ["min_a_dcf"], by="codec", bootstrap=100, seed=seed)
        (mean,) = (e for e in found if e.average == "macro")
        assert mean.low is not None and mean.high is not None
        held += mean.low <= true <= mean.high
    assert held >= 34
