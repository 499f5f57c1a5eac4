"""Attacks in batches against a loop over records and against ART, on one network and the same records.

    python benchmarks/attacks.py [--device cuda] [--records 224] [--threads 2]

"The document's loop" calls `run_attack_on_sample` for one record after another, as its workflow is written; "a bare loop" is
the same in a few lines of plain torch and numpy without any of our code. Seconds on the clock, best of three;
with one thread (`--threads 1`) seconds of processor time, which a busy machine does not stretch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ecg_parts import printed, recordings, train
from hitmiss.attack.config import PerturbationConfig
from hitmiss.attack.model import as_classifier
from hitmiss.attack.run import Campaigner, Plan, run_campaign, sweep
from hitmiss.protocols.ecg_attacks import compute_untargeted_asr, run_attack_on_sample, run_attacks_on_samples
from peers import ecg_loops

EPS, STEPS = 0.05, 20


def seconds(work: Callable[[], Any], device: str, repeats: int = 3) -> tuple[float, Any]:
    """The best of some runs, and what the last gave."""
    import torch

    clock = time.process_time if device == "cpu" and torch.get_num_threads() == 1 else time.perf_counter
    best, found = float("inf"), None
    for _ in range(repeats):
        begun = clock()
        found = work()
        if device != "cpu":
            torch.cuda.synchronize()
        best = min(best, clock() - begun)
    return best, found


def documented(model: Any, x: Any, y: Any, config: PerturbationConfig) -> float:
    """The document's workflow: one record after another; the share that changes."""
    results = []
    for idx in range(len(x)):
        res, _ = run_attack_on_sample(model, x[idx], y[idx], config, fs=100)
        results.append(res)
    return float(compute_untargeted_asr(results))


def art_pgd(module: Any, x: Any, y: Any, device: str) -> Callable[[], Any] | None:
    """ART's PGD with a loss that takes several labels; None where ART is not installed."""
    import torch

    try:
        from art.attacks.evasion import ProjectedGradientDescentPyTorch
        from art.estimators.classification import PyTorchClassifier
    except ImportError:
        return None

    class Loss(torch.nn.Module):  # type: ignore[misc,name-defined]
        reduction = "mean"

        def forward(self, logits: Any, aim: Any) -> Any:
            return torch.nn.functional.binary_cross_entropy_with_logits(logits, aim.float())

    wrapped = PyTorchClassifier(module, Loss(), (12, x.shape[1]), 5, device_type="gpu" if device == "cuda" else "cpu")
    attack = ProjectedGradientDescentPyTorch(
        wrapped, norm=np.inf, eps=EPS, eps_step=2.5 * EPS / STEPS, max_iter=STEPS, batch_size=64, verbose=False
    )
    signals = np.ascontiguousarray(x.transpose(0, 2, 1), dtype=np.float32)

    def work() -> float:
        adv = attack.generate(signals, y.astype(np.float32))
        before, after = (wrapped.predict(part) > 0 for part in (signals, adv))
        return float((before != after).any(axis=1).mean())

    return work


def rows(device: str = "cpu", records: int = 224, threads: int = 2) -> list[dict[str, object]]:
    """The table: what, ours, theirs, the ratio."""
    import torch

    if device == "cpu":
        torch.set_num_threads(threads)
    train_part, _, test, source = recordings(records)
    module = train(train_part, epochs=4, device=device)
    x, y = test.x, test.y
    model = as_classifier(module, layout="lead_sample", outputs="logit", device=device)
    batch = 64 if device == "cpu" else 256
    table = [
        *_fixed(model, module, x, y, device, batch),
        _early(model, x, y, batch),
        *_minimal(model, module, test, device, batch),
        *_corruption(model, module, test, device),
    ]
    for line in table:
        line["remark"] = "; ".join(filter(None, (str(line["remark"]), f"{len(x)} records, {source}; {device}")))
    return table


def row(what: str, ours: float, theirs: float, remark: str) -> dict[str, object]:
    """One row of the table."""
    return {"what": what, "hitmiss": ours, "theirs": theirs, "ratio": theirs / ours, "remark": remark}


def _fixed(model: Any, module: Any, x: Any, y: Any, device: str, batch: int) -> list[dict[str, object]]:
    config = PerturbationConfig("pgd", 1.0, 0.0, extra={"eps_max": EPS, "steps": STEPS})
    ours, found = seconds(lambda: run_attacks_on_samples(model, x, y, config, fs=100, batch=batch)[0], device)
    rate = float(np.mean([r.untargeted_success for r in found]))
    said, told = seconds(lambda: documented(model, x, y, config), device, 2)
    loop, looped = seconds(lambda: ecg_loops.attack_all(module, x, y, EPS, STEPS, device), device, 2)
    what = "PGD 50 µV, 20 steps, with predictions, s"
    made = [
        row(f"{what}; the document's loop", ours, said, f"changed {rate:.3f} and {told:.3f} of the records"),
        row(f"{what}; a bare loop", ours, loop, f"changed {rate:.3f} and {looped:.3f}"),
    ]
    art = art_pgd(module, x, y, device)
    if art is not None:
        theirs, rate_art = seconds(art, device)
        made.append(row("the same, s; ART 1.20 PGD, batch 64", ours, theirs, f"changed {rate:.3f} and {rate_art:.3f}"))
    return made


def _early(model: Any, x: Any, y: Any, batch: int) -> dict[str, object]:
    extra = {"eps_max": EPS, "steps": STEPS, "attack_from": "prediction"}
    passes, rates = [], []
    for stop in (True, False):
        config = PerturbationConfig("pgd", 1.0, 0.0, extra={**extra, "early_stop": stop})
        before = model.n_forward
        found, _ = run_attacks_on_samples(model, x, y, config, fs=100, batch=batch)
        passes.append(model.n_forward - before - 2 * len(x))
        rates.append(np.mean([r.untargeted_success for r in found]))
    agree = f"changed {rates[0]:.3f} and {rates[1]:.3f}"
    return row("PGD 50 µV, forward passes with early stop; all steps", float(passes[0]), float(passes[1]), agree)


def _minimal(model: Any, module: Any, test: Any, device: str, batch: int) -> list[dict[str, object]]:
    config = PerturbationConfig("pgd", 1.0, 0.0, extra={"eps_max": EPS, "steps": 10})
    campaigner = Campaigner(test, model, Plan((), (config,)), batch=batch)
    ours, least = seconds(lambda: campaigner.search(config, range(len(test.x)))[0], device, 1)
    few = range(12)
    scale = len(test.x) / len(few)
    said, _ = seconds(lambda: [_documented_least(model, test.x[i], test.y[i], config) for i in few], device, 1)
    loop, looped = seconds(
        lambda: [ecg_loops.least(module, test.x[i], test.y[i], EPS, 10, 7, device) for i in few], device, 1
    )
    medians = [1000 * EPS * float(np.median(v)) for v in (least[: len(few)], looped)]
    agree = f"theirs: {len(few)} records, scaled; their median {medians[0]:.2f} and {medians[1]:.2f} µV"
    what = "least strength, 7 rounds of PGD-10, s"
    return [
        row(f"{what}; the document's loop", ours, said * scale, agree),
        row(f"{what}; a bare loop", ours, loop * scale, agree),
    ]


def _documented_least(model: Any, x: Any, y: Any, config: PerturbationConfig) -> float:
    """Bisection for one record with the documented function."""

    def flips(strength: float) -> bool:
        return run_attack_on_sample(model, x, y, replace(config, strength=strength), fs=100)[0].untargeted_success

    low, high = 0.0, 1.0 if flips(1.0) else float("inf")
    for _ in range(7 if high == 1.0 else 0):
        middle = (low + high) / 2
        low, high = (low, middle) if flips(middle) else (middle, high)
    return high


def _corruption(model: Any, module: Any, test: Any, device: str) -> list[dict[str, object]]:
    """A sweep over four strengths; the loops ask for the clean prediction at every attempt, as the document does."""
    x, y, strengths = test.x, test.y, (0.1, 0.2, 0.35, 0.5)
    plan = Plan(sweep(["band_noise"], strengths), control=False)
    ours, _ = seconds(lambda: run_campaign(Campaigner(test, model, plan)), device)
    said, _ = seconds(lambda: [documented(model, x, y, c) for c in plan.configs], device, 2)
    loop, _ = seconds(lambda: [ecg_loops.band_noise(module, x, 100.0, device) for _ in strengths], device, 2)
    what = "band noise at four strengths, with predictions, s"
    return [row(f"{what}; the document's loop", ours, said, ""), row(f"{what}; a bare loop", ours, loop, "")]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--records", type=int, default=224)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    printed(rows(chosen.device, chosen.records, chosen.threads))


if __name__ == "__main__":
    main()
