"""Rankings of many systems: the family-wise error without any difference, what is shown where there is one, and the cost.

    python benchmarks/rankings.py [--repeats N] [--seconds S] [--trials N]

Error: systems of equal skill that share part of their noise; the share of data sets in which any pair is called different,
at defaults (1,000 replicates, level 95 %). Shown: nine systems with an EER from 0.3 % to 41.9 % on 1,500 trials. Cost:
fifty systems against one on the same trials with 150 speakers (processor time); `--trials` scales it.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import time
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

import numpy as np

from hitmiss.comparing.rankings import compare_all
from hitmiss.measuring.measurement import measure
from hitmiss.stats.binomial import wilson
from hitmiss.trials import Trials

SYSTEMS = (2, 8, 30, 100)
EERS = (0.003, 0.012, 0.03, 0.06, 0.10, 0.16, 0.23, 0.32, 0.419)
METRICS = ("eer", "min_dcf", "roc_auc")

Row = dict[str, Any]


def field(
    rng: np.random.Generator, eers: tuple[float, ...], n1: int, n0: int, units: int = 0, shared: float = 0.6
) -> dict[str, Trials]:
    """Systems with these equal error rates on the same trials; `shared` of the noise is common to all."""
    n = n1 + n0
    label, common = np.repeat([1, 0], [n1, n0]), rng.normal(size=n)
    speaker = rng.integers(0, units, n) if units else None
    runs = {}
    for i, eer in enumerate(eers):
        noise = shared * common + np.sqrt(1.0 - shared**2) * rng.normal(size=n)
        if speaker is not None:
            noise = np.sqrt(0.75) * noise + 0.5 * rng.normal(size=units)[speaker]
        made = Trials.of(label, noise - 2.0 * NormalDist().inv_cdf(eer) * label)
        if speaker is not None:
            made = made.put(speaker=np.char.add("s", speaker.astype(str))).retitle(slices=("speaker",))
        runs[f"X{i:02d}"] = made
    return runs


def error_rows(repeats: int, seconds: float) -> Iterator[Row]:
    """The family-wise error of every metric, so many repeats as the time allows."""
    for systems in SYSTEMS:
        for eer, n1, n0, units in ((0.1, 300, 1200, 0), (0.02, 300, 1200, 0), (0.1, 300, 1200, 20)):
            called, done, begun = dict.fromkeys(METRICS, 0), 0, time.monotonic()
            while done < repeats and time.monotonic() - begun < seconds:
                rng = np.random.default_rng([done, systems, n1, units, round(1000 * eer)])
                runs = field(rng, (eer,) * systems, n1, n0, units)
                found = compare_all(runs, METRICS, seed=done, unit="speaker" if units else None, force=True)
                for metric in METRICS:
                    ps = [d.difference.p_adjusted for d in found.duels if d.difference.metric == metric]
                    called[metric] += any(p is not None and p < 0.05 for p in ps)
                done += 1
            for metric, n in called.items():
                low, high = wilson(n, done, 0.95)
                yield {
                    "systems": systems,
                    "data": f"EER {eer:.0%}, {n1} + {n0}" + (f", {units} speakers" if units else ""),
                    "metric": metric,
                    "family-wise error": f"{n / done:.1%}",
                    "95 %": f"[{low:.1%}, {high:.1%}]",
                    "data sets": done,
                }


def shown_rows() -> Iterator[Row]:
    """How many groups the nine systems fall into."""
    for metric in METRICS:
        found = compare_all(field(np.random.default_rng(1), EERS, 300, 1200), [metric])
        yield {"metric": metric, "groups": len({letter for s in found.standings for letter in s.letters})}


def cost_rows(trials: int, systems: int = 50, units: int = 150) -> Iterator[Row]:
    """Processor time of one system measured with its intervals, and of the ranking of fifty."""
    n1 = round(0.2 * trials)
    runs = field(np.random.default_rng(0), (0.1,) * systems, n1, trials - n1, units)
    metrics = ("eer", "min_dcf")
    one = _spent(lambda: measure(runs["X00"], metrics, bootstrap=1000, unit="speaker"))
    own = _spent(lambda: compare_all({"a": runs["X00"], "b": runs["X01"]}, metrics, unit="speaker"))
    every = _spent(lambda: compare_all(runs, metrics, unit="speaker"))
    yield {
        "trials": f"{trials:,}",
        "systems": systems,
        "one measured": f"{one:.2f} s",
        "two ranked": f"{own:.2f} s",
        "all ranked": f"{every:.2f} s",
        "all / one": f"{every / one:.1f}",
    }


def _spent(work: Any) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=600.0, help="per setting")
    parser.add_argument("--trials", type=int, default=680_774)
    given = parser.parse_args()
    for rows in (shown_rows(), cost_rows(given.trials), error_rows(given.repeats, given.seconds)):
        for i, row in enumerate(rows):
            if i == 0:
                print("\n| " + " | ".join(row) + " |\n|" + "---|" * len(row))
            print("| " + " | ".join(map(str, row.values())) + " |", flush=True)


if __name__ == "__main__":
    main()
