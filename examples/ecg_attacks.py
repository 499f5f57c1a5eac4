"""How robust is an ECG classifier? One record at a time as documented, then all records, with noise beside each attack."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import hitmiss as hm
from hitmiss.protocols.ecg_attacks import (
    PerturbationConfig,
    compute_targeted_success,
    compute_untargeted_asr,
    plot_asr_vs_strength,
    run_attack_on_sample,
)


def features(x: np.ndarray) -> np.ndarray:
    """The mean absolute value of each lead in 20 stretches of time."""
    return np.abs(x).reshape(len(x), 20, -1, x.shape[2]).mean(axis=2).reshape(len(x), -1)


def main(folder: Path) -> None:
    """Simulate ECGs, train a small classifier, and perturb it."""
    hm.demo_data("ecg", folder, share=0.1)
    train, test = np.load(folder / "train.npz"), np.load(folder / "test.npz")
    fitted = OneVsRestClassifier(LogisticRegression(max_iter=2000)).fit(features(train["x"]), train["y"])

    def model(x: np.ndarray) -> np.ndarray:  # or anything with .predict, a torch module, an ONNX session
        return fitted.predict_proba(features(x))

    # One record at a time, as documented: a search for signals in which the model sees an infarction.
    results = []
    for strength in (0.2, 1.0):
        config = PerturbationConfig(
            "random_search", strength, center_time=5.0, target_class="MI", extra={"queries": 40}
        )
        for idx in range(20):
            rng = np.random.default_rng([123, idx])
            res, _ = run_attack_on_sample(model, test["x"][idx], test["y"][idx], config, fs=float(test["fs"]), rng=rng)
            results.append(res)
    print("changed:", compute_untargeted_asr(results))
    print("MI forced:", compute_targeted_success(results, "MI", "force"))
    print("of those without it:", compute_targeted_success(results, "MI", "force", eligible_only=True))
    plot_asr_vs_strength(results)[0].savefig(folder / "asr.png")

    # All records at once, each attack beside noise of the same norm, intervals over patients.
    how = {"families": ["band_noise", "random_search"], "strengths": [0.5, 1.0], "outputs": "probability"}
    trials = hm.attack(model, folder / "test.npz", folder / "attacked", **how)
    measured = hm.evaluate(trials, protocol="ecg-attacks", bootstrap=500)
    for estimate in measured.where(lambda e: e.metric in ("changed", "macro_auc")):
        print(estimate)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/ecg"))
