"""Does a plan keep its word: is the interval as wide, and a difference shown as often, as `hitmiss plan` says?

    python benchmarks/plans.py [--repeats N]

Pilots of speakers with levels of their own (30 for a width, 60 for a power) and of independent trials; a plan from each; a
new data set of the planned size. Printed: the mean width over the mean promised one, and the share of data sets in which
the true difference was shown (0.8 was asked for), each with its Monte Carlo error.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"), "1"))

import argparse
import math
from typing import Any

import numpy as np

from hitmiss.core.trials import Trials
from hitmiss.derive.decisions import at_threshold
from hitmiss.engine.compare import compare
from hitmiss.engine.measure import measure
from hitmiss.stats.planning import Error, needed, quantiles

LEVEL, POWER, LOSS = 0.95, 0.8, 0.25
DRAWS = 200


def systems(rng: np.random.Generator, speakers: int, each: int, level: float) -> list[Trials]:
    """Two systems on the same trials, the second a little worse; `level`: how far speakers differ."""
    speaker, label = np.repeat(np.arange(speakers), each), (rng.random(speakers * each) < 0.4).astype(int)
    shared = level * rng.normal(size=speakers)[speaker] + 0.6 * rng.normal(size=len(label))
    made = []
    for apart in (2.0, 2.0 - LOSS):
        own = 0.7 * level * rng.normal(size=speakers)[speaker] + 0.6 * rng.normal(size=len(label))
        names = np.char.add("s", speaker.astype(str))
        made.append(at_threshold(Trials.of(label, apart * label + shared + own, speaker=names), 1.0))
    return made


def widths(k: int, speakers: int, each: int, level: float, unit: str | None) -> list[tuple[str, float, float]]:
    """The promised width and that of a new data set of the planned size, per metric."""
    found = []
    pilot = systems(np.random.default_rng(k), speakers, each, level)[0]
    for e in measure(pilot, ["eer", "roc_auc", "accuracy"], bootstrap=DRAWS, unit=unit, seed=k):
        assert e.low is not None and e.high is not None
        half, count = (e.high - e.low) / 2.0, float(e.units or e.n)
        error = Error(
            half / quantiles(e.units_effective or count, unit is not None, LEVEL, None), count, unit is not None
        )
        plan = needed(error, half / math.sqrt(2.0), LEVEL)
        fresh = systems(np.random.default_rng([k, 7]), plan.count, each, level)[0]
        (new,) = measure(fresh, [e.metric], bootstrap=DRAWS, unit=unit, seed=k)
        assert new.low is not None and new.high is not None
        found.append((e.metric, 2.0 * plan.reached, new.high - new.low))
    return found


def shown(
    k: int, true: dict[str, float], speakers: int, each: int, level: float, unit: str | None
) -> list[tuple[str, bool]]:
    """Whether the true difference was shown on as many speakers as planned, per metric."""
    found = []
    options: dict[str, Any] = {"bootstrap": DRAWS, "unit": unit, "seed": k, "test": "bootstrap", "force": True}
    for d in compare(*systems(np.random.default_rng(k), speakers, each, level), [*true], **options):
        assert d.mdd is not None
        error = Error(d.mdd / quantiles(speakers, False, LEVEL, POWER), speakers, unit is not None)
        count = needed(error, true[d.metric], LEVEL, POWER).count
        fresh = systems(np.random.default_rng([k, 3]), count, each, level)
        (new,) = compare(*fresh, [d.metric], **options)
        found.append((d.metric, new.p_value is not None and new.p_value < 1.0 - LEVEL))
    return found


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=200)
    repeats = parser.parse_args().repeats
    print("| drawn | metric | width / promised | Monte Carlo error |\n| --- | --- | --- | --- |")
    for name, speakers, each, level, unit in (
        ("30 speakers", 30, 20, 0.5, "speaker"),
        ("400 trials", 400, 1, 0.0, None),
    ):
        rows = [row for k in range(repeats) for row in widths(k, speakers, each, level, unit)]
        for metric in dict.fromkeys(m for m, _, _ in rows):
            promised, got = (np.array([row[i] for row in rows if row[0] == metric]) for i in (1, 2))
            error = float((got / promised).std() / math.sqrt(len(got)))
            print(f"| {name} | {metric} | {got.mean() / promised.mean():.3f} | ± {1.96 * error:.3f} |")
    print("\n| drawn | metric | power (0.8 planned) | Monte Carlo error |\n| --- | --- | --- | --- |")
    for name, speakers, each, level, unit in (
        ("60 speakers", 60, 15, 0.5, "speaker"),
        ("800 trials", 800, 1, 0.0, None),
    ):
        many = systems(np.random.default_rng(5), 40_000, 15, level)
        true = {d.metric: abs(d.delta or 0.0) for d in compare(*many, ["roc_auc", "eer"], bootstrap=0, force=True)}
        told = [row for k in range(repeats) for row in shown(k, true, speakers, each, level, unit)]
        for metric in true:
            share = float(np.mean([is_shown for m, is_shown in told if m == metric]))
            print(f"| {name} | {metric} | {share:.3f} | ± {1.96 * math.sqrt(0.16 / repeats):.3f} |")


if __name__ == "__main__":
    main()
