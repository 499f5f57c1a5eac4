"""Comparisons: do the tests hold their level when there is no difference, and how long does a comparison take?

    python benchmarks/comparisons.py [repeats]

Level: two systems of equal skill whose scores share most of their noise, one positive to two negatives, many times
over; a test at 5 % should call a difference in 5 % of the repeats. Speed: a paired comparison of EER and minDCF with
1,000 replicates at 680,774 trials (processor time), against drawing trials and computing both with scikit-learn (a few replicates, scaled).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.metrics import roc_curve

from hitmiss.core.trials import Header, Source, Trials
from hitmiss.derive.decisions import at_threshold
from hitmiss.engine.compare import compare
from hitmiss.stats.intervals import wilson

REPEATS = 1000
REPLICATES = 500
ALPHA = 0.05
SIZES = ((100, 200), (1000, 2000))
TRIALS = 680_774
POSITIVES = 138_688
SLOW = 3

Row = dict[str, Any]


def pair_of_equals(rng: np.random.Generator, n1: int, n0: int, skill: float = 1.5) -> tuple[Trials, Trials]:
    """Two systems with the same true figures on the same trials."""
    label = np.repeat([1, 0], [n1, n0])
    base = rng.normal(size=n1 + n0) + skill * label
    header = Header(sources=(Source("simulated.tsv", "0" * 64),))  # as if from a file, whose hash is known
    sides = [Trials.of(label, base + 0.6 * rng.normal(size=n1 + n0), header=header) for _ in range(2)]
    return at_threshold(sides[0], skill / 2), at_threshold(sides[1], skill / 2)


def p_values(seed: int, n1: int, n0: int) -> dict[str, float]:
    """The p values of every test in one repeat."""
    a, b = pair_of_equals(np.random.default_rng(seed), n1, n0)
    auto = compare(a, b, ["roc_auc", "accuracy", "eer", "min_dcf", "f1"], bootstrap=REPLICATES, seed=seed)
    area = compare(a, b, ["roc_auc"], bootstrap=REPLICATES, seed=seed, test="bootstrap")
    found = {f"{d.test}, {d.metric}": d.p_value for d in (*auto, *area)}
    found["mcnemar mid-p, accuracy"] = auto.discordances[0].p_mid
    return {name: 1.0 if p is None else p for name, p in found.items()}


def level_rows(repeats: int = REPEATS) -> Iterator[Row]:
    """The share of repeats in which each test calls a difference that is not there."""
    for n1, n0 in SIZES:
        drawn = [p_values(seed, n1, n0) for seed in range(repeats)]
        for name in sorted(drawn[0]):
            hits = sum(d[name] < ALPHA for d in drawn)
            low, high = wilson(hits, repeats)
            yield {
                "test, no true difference": name,
                "trials": f"{n1 + n0:,}",
                "repeats": repeats,
                "called different at 5 %": f"{hits / repeats:.1%}",
                "95 % interval": f"{low:.1%} to {high:.1%}",
            }


def resample_with_sklearn(a: Trials, b: Trials, rng: np.random.Generator) -> tuple[float, float]:
    """One replicate by hand: draw trials within each class, both curves, both EERs and both least costs."""
    members = [np.flatnonzero(a.label == k) for k in (1, 0)]
    drawn = np.concatenate([rng.choice(m, len(m)) for m in members])
    rates, costs = [], []
    for side in (a, b):
        false, true, _ = roc_curve(side.label[drawn], side.score[drawn], drop_intermediate=False)
        at = np.argmin(np.abs(1 - true - false))
        rates.append((1 - true[at] + false[at]) / 2)
        costs.append(np.min(0.95 * (1 - true) + 0.5 * false) / 0.5)
    return float(rates[1] - rates[0]), float(costs[1] - costs[0])


def speed_rows() -> Iterator[Row]:
    """One comparison at full size against resampling by hand."""
    rng = np.random.default_rng(0)
    a, b = pair_of_equals(rng, POSITIVES, TRIALS - POSITIVES)
    start = time.process_time()
    compare(a, b, ["eer", "min_dcf"], bootstrap=1000)
    ours = time.process_time() - start
    start = time.process_time()
    for _ in range(SLOW):
        resample_with_sklearn(a, b, rng)
    theirs = (time.process_time() - start) / SLOW * 1000
    start = time.process_time()
    compare(a, b, ["roc_auc"])
    area = time.process_time() - start
    yield {"work at 680,774 trials": "EER + minDCF, 1,000 paired replicates", "hitmiss s": f"{ours:.1f}",
           "scikit-learn s": f"{theirs:.0f}", "ratio": f"{theirs / ours:.0f}×"}  # fmt: skip
    yield {"work at 680,774 trials": "ROC AUC, paired DeLong", "hitmiss s": f"{area:.2f}", "scikit-learn s": "–",
           "ratio": "–"}  # fmt: skip


def rows(repeats: int = REPEATS) -> list[Row]:
    """Every line of both tables."""
    return [*level_rows(repeats), *speed_rows()]


def main() -> None:
    """Print the tables as Markdown."""
    found = rows(int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS)
    for header, own in groupby(found, key=tuple):
        print(f"\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
        for row in own:
            print(f"| {' | '.join(map(str, row.values()))} |")


if __name__ == "__main__":
    main()
