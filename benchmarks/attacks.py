"""Attacks in batches against loops over records and against ART, on one network and the same records.

    python benchmarks/attacks.py [--threads 2] [--records 224] [--device cpu]

Seconds on the clock, best of some runs; with `--threads 1` seconds of processor time, which a busy machine does not stretch.
In brackets how many times ours. "The document's loop" calls `run_attack_on_sample` for one record after another, as its workflow
is written; "a bare loop" does the same in a few lines of plain torch and numpy (`peers/ecg_loops.py`), without any of our
code. Both ask for the clean prediction at every attempt, as the document does; R peaks are given to all. Asked for: 3 times the
document's loop and 1.5 times ART for PGD, 5 times fewer forward passes with early stop, 8 times for least strengths, 5 for corruptions.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ecg_parts import printed, recordings, train
from hitmiss.attacks.batched import batched_families
from hitmiss.attacks.config import PerturbationConfig
from hitmiss.attacks.model import as_classifier, binarize
from hitmiss.attacks.peaks import detect_all
from hitmiss.attacks.perform import Records, least_strengths, perform
from hitmiss.attacks.result import describe
from hitmiss.stats.random import generator
from peers import ecg_loops

EPS, STEPS, ROUNDS = 0.05, 20, 7
STRENGTHS = (0.1, 0.2, 0.35, 0.5)
LOOPED = 24
"""Records that the loops search least strengths of, spread over all; their time is scaled up."""


class Bench:
    """One network, the records and the clock. `documented`: with the loop through `hitmiss.protocols`, which needs polars."""

    def __init__(self, device: str, records: int, threads: int, documented: bool, epochs: int = 4) -> None:
        import torch

        if device == "cpu":
            torch.set_num_threads(threads)
        self.torch, self.device, self.documented = torch, device, documented
        train_part, _, self.test, source = recordings(records)
        self.module = train(train_part, epochs=epochs, device=device)
        self.model = as_classifier(self.module, layout="lead_sample", outputs="logit", device=device)
        self.x, self.y = self.test.x, self.test.y
        self.peaks = detect_all(self.x, 100.0)
        self.batch = 64 if device == "cpu" else 256
        self.is_processor_time = device == "cpu" and threads == 1
        clock = "processor" if self.is_processor_time else "clock"
        place = f"cpu, {threads} thread{'s' * (threads > 1)}" if device == "cpu" else torch.cuda.get_device_name()
        self.about = f"{len(self.x)} records ({source}); {place}; {clock} seconds"

    def seconds(self, work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
        """The best of some runs, and what the last gave."""
        clock = time.process_time if self.is_processor_time else time.perf_counter
        best, found = float("inf"), None
        for _ in range(repeats):
            begun = clock()
            found = work()
            if self.device != "cpu":
                self.torch.cuda.synchronize()
            best = min(best, clock() - begun)
        return best, found

    def records(self) -> Records:
        """The records as an attack takes them, nothing predicted yet."""
        return Records(
            self.x,
            self.y.astype(np.float64),
            100.0,
            self.model,
            tuple(self.test.classes),
            peaks=self.peaks,
            batch=self.batch,
        )

    def attacked(self, config: PerturbationConfig, records: Records | None = None) -> float:
        """All records in batches, with predictions before and after, norms, SNR and smoothness; the share that changes."""
        records = self.records() if records is None else records
        rows = range(len(self.x))
        done = perform(records, rows, [config] * len(self.x), [generator(0, i, str(config)) for i in rows])
        after = binarize(self.model.proba(done.x))
        describe(records.x, done.x, records.power)
        return float((after != records.clean_bits).any(axis=1).mean())

    def as_documented(self, config: PerturbationConfig) -> float:
        """The document's workflow: one record after another; the share that changes."""
        from hitmiss.protocols.ecg_attacks import compute_untargeted_asr, run_attack_on_sample

        results = []
        for idx in range(len(self.x)):
            res, _ = run_attack_on_sample(self.model, self.x[idx], self.y[idx], config, fs=100, r_peaks=self.peaks[idx])
            results.append(res)
        return float(compute_untargeted_asr(results))


def row(what: str, ours: float, theirs: dict[str, float], remark: str) -> dict[str, object]:
    """One row of the table."""
    cells = {name: f"{theirs[name]:.3g} ({theirs[name] / ours:.1f}×)" if name in theirs else "" for name in LOOPS}
    return {"what": what, "hitmiss": ours, **cells, "remark": remark}


LOOPS = ("the document's loop", "a bare loop", "ART 1.20")


def fixed(bench: Bench) -> dict[str, object]:
    """PGD with a fixed number of steps."""
    config = PerturbationConfig("pgd", 1.0, 0.0, extra={"eps_max": EPS, "steps": STEPS})
    ours, rate = bench.seconds(lambda: bench.attacked(config))
    theirs, rates = {}, [rate]
    if bench.documented:
        theirs[LOOPS[0]], found = bench.seconds(lambda: bench.as_documented(config), 2)
        rates.append(found)
    loop = lambda: ecg_loops.attack_all(bench.module, bench.x, bench.y, EPS, STEPS, bench.device)  # noqa: E731
    theirs[LOOPS[1]], found = bench.seconds(loop, 2)
    rates.append(found)
    art = art_pgd(bench)
    if art is not None:
        theirs[LOOPS[2]], found = bench.seconds(art)
        rates.append(found)
    agree = "changed " + ", ".join(f"{r:.3f}" for r in rates)
    return row(f"PGD 50 µV, {STEPS} steps, with predictions, s", ours, theirs, agree)


def art_pgd(bench: Bench) -> Callable[[], Any] | None:
    """ART's PGD with a loss that takes several labels; None where ART is not installed."""
    try:
        from art.attacks.evasion import ProjectedGradientDescentPyTorch
        from art.estimators.classification import PyTorchClassifier
    except ImportError:
        return None
    torch = bench.torch

    class Loss(torch.nn.Module):  # type: ignore[misc,name-defined]
        reduction = "mean"

        def forward(self, logits: Any, aim: Any) -> Any:
            return torch.nn.functional.binary_cross_entropy_with_logits(logits, aim.float())

    kind = "gpu" if bench.device == "cuda" else "cpu"
    wrapped = PyTorchClassifier(bench.module, Loss(), (12, bench.x.shape[1]), 5, device_type=kind)
    attack = ProjectedGradientDescentPyTorch(
        wrapped, norm=np.inf, eps=EPS, eps_step=2.5 * EPS / STEPS, max_iter=STEPS, batch_size=64, verbose=False
    )
    signals = np.ascontiguousarray(bench.x.transpose(0, 2, 1), dtype=np.float32)

    def work() -> float:
        adv = attack.generate(signals, bench.y.astype(np.float32))
        before, after = (wrapped.predict(part) > 0 for part in (signals, adv))
        return float((before != after).any(axis=1).mean())

    return work


def early(bench: Bench) -> dict[str, object]:
    """Forward passes with early stop and without."""
    extra = {"eps_max": EPS, "steps": STEPS, "attack_from": "prediction"}
    passes, rates = [], []
    for stop in (True, False):
        before = bench.model.n_forward
        rates.append(bench.attacked(PerturbationConfig("pgd", 1.0, 0.0, extra={**extra, "early_stop": stop})))
        passes.append(float(bench.model.n_forward - before - 2 * len(bench.x)))
    agree = f"changed {rates[0]:.3f}, {rates[1]:.3f}; a loop makes all steps"
    return row("PGD 50 µV, forward passes with early stop", passes[0], {LOOPS[1]: passes[1]}, agree)


def least(bench: Bench) -> dict[str, object]:
    """Least strengths by PGD, to 1/128."""
    config = PerturbationConfig("pgd", 1.0, 0.0, extra={"eps_max": EPS, "steps": 10})
    rows = range(len(bench.x))

    def search() -> Any:
        return least_strengths(bench.records(), config, rows, lambda at: generator(0, at), rounds=ROUNDS)[0]

    ours, found = bench.seconds(search, 2)
    few = np.unique(np.linspace(0, len(rows) - 1, LOOPED).astype(int)).tolist()
    scale, theirs = len(rows) / len(few), {}
    if bench.documented:
        said = bench.seconds(lambda: [documented_least(bench, i, config) for i in few], 1)[0]
        theirs[LOOPS[0]] = scale * said
    one = lambda i: ecg_loops.least(bench.module, bench.x[i], bench.y[i], EPS, 10, ROUNDS, bench.device)  # noqa: E731
    looped, values = bench.seconds(lambda: [one(i) for i in few], 1)
    theirs[LOOPS[1]] = scale * looped
    medians = [1000 * EPS * float(np.median(v)) for v in (found[few], values)]
    agree = f"loops: {len(few)} of the records, scaled; their median {medians[0]:.2f} and {medians[1]:.2f} µV"
    return row("least strength to 1/128 by PGD-10, s", ours, theirs, agree)


def documented_least(bench: Bench, i: int, config: PerturbationConfig) -> float:
    """Bisection for one record with the documented function."""
    from hitmiss.protocols.ecg_attacks import run_attack_on_sample

    def flips(strength: float) -> bool:
        tried = replace(config, strength=strength)
        return run_attack_on_sample(bench.model, bench.x[i], bench.y[i], tried, fs=100)[0].untargeted_success

    low, high = 0.0, 1.0 if flips(1.0) else float("inf")
    for _ in range(ROUNDS if high == 1.0 else 0):
        middle = (low + high) / 2
        low, high = (low, middle) if flips(middle) else (middle, high)
    return high


def corruption(bench: Bench, family: str) -> dict[str, object]:
    """A family that needs no model at four strengths; where the tables can be had, as a campaign with its table."""
    configs = [PerturbationConfig(family, s, 0.0) for s in STRENGTHS]
    theirs = {}
    if bench.documented:
        from hitmiss.attacks.campaign import run_campaign
        from hitmiss.attacks.plan import AttackPlan
        from hitmiss.attacks.worker import PlannedAttacks

        plan = AttackPlan(tuple(configs), control=False)
        campaign = lambda: run_campaign(PlannedAttacks(bench.test, bench.model, plan, peaks=bench.peaks))  # noqa: E731
        ours = bench.seconds(campaign, 5)[0]
        theirs[LOOPS[0]] = bench.seconds(lambda: [bench.as_documented(c) for c in configs], 2)[0]
    else:
        every = lambda records: [bench.attacked(c, records) for c in configs]  # noqa: E731
        ours = bench.seconds(lambda: every(bench.records()), 5)[0]  # the clean prediction once, as in a campaign
    if family in ecg_loops.MADE:
        one = lambda s: ecg_loops.corrupt(bench.module, bench.x, 100.0, bench.device, family, bench.peaks, s)  # noqa: E731
        theirs[LOOPS[1]] = bench.seconds(lambda: [one(s) for s in STRENGTHS], 2)[0]
    return row(
        f"{family}, s",
        ours,
        theirs,
        "at four strengths, with predictions" + " and a table of trials" * bench.documented,
    )


def measured(bench: Bench) -> list[dict[str, object]]:
    """The table."""
    return [
        fixed(bench),
        early(bench),
        least(bench),
        *(corruption(bench, family) for family in sorted(batched_families())),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--records", type=int, default=224)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    bench = Bench(chosen.device, chosen.records, chosen.threads, documented=True)
    printed(measured(bench))
    print(f"\n{bench.about}.")


if __name__ == "__main__":
    main()
