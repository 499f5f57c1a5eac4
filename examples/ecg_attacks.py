"""How robust is an ECG classifier? The document's loop, then the same for many records, with noise beside each attack."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from hitmiss.attacks.campaign import Campaigner, Plan, read_recordings, run_campaign, sweep
from hitmiss.attacks.model import as_classifier
from hitmiss.protocols.ecg_attacks import (
    PerturbationConfig,
    compute_targeted_success,
    compute_untargeted_asr,
    plot_asr_vs_strength,
    run_attack_on_sample,
)
from hitmiss.robustness.attacks import measure_attacks
from hitmiss.simulate.ecg import ConvBaseline, write


def main(folder: Path) -> None:
    """Simulate ECGs, train a small classifier without torch, and perturb it."""
    write(folder, share=0.1)
    train, test = read_recordings(folder / "train.npz"), read_recordings(folder / "test.npz")
    model = ConvBaseline.fit(train.x, train.y)  # anything with .predict, a callable, a torch module, an ONNX session

    # One record at a time, as documented: a search for signals in which the model sees an infarction.
    results = []
    for strength in (0.2, 1.0):
        config = PerturbationConfig(
            "random_search", strength, center_time=5.0, target_class="MI", extra={"queries": 40}
        )
        for idx in range(20):
            rng = np.random.default_rng([123, idx])
            res, _ = run_attack_on_sample(model, test.x[idx], test.y[idx], config, fs=test.fs, rng=rng)
            results.append(res)
    print("changed:", compute_untargeted_asr(results))
    print("MI forced:", compute_targeted_success(results, "MI", "force"))
    print("of those without it:", compute_targeted_success(results, "MI", "force", eligible_only=True))
    plot_asr_vs_strength(results)[0].savefig(folder / "asr.png")

    # All records at once, each attack beside noise of the same norm, intervals over patients.
    plan = Plan(sweep(["band_noise", "random_search"], [0.5, 1.0]))
    trials = run_campaign(Campaigner(test, as_classifier(model), plan), folder / "run")
    for estimate in measure_attacks(trials, bootstrap=500).where(lambda e: e.metric in ("changed", "macro_auc")):
        print(estimate)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/ecg"))
