"""Do 95 % intervals hold the truth 95 % of the time?

    python benchmarks/interval_coverage.py [data sets]

Simulated scores with known figures: Gaussian classes three standard deviations apart, 30 % positives. "trials": trials
are independent, classes resampled apart. "units": 150 speakers whose own level makes up a quarter of the variance, whole
speakers resampled. Of each data set three intervals are formed from the same 1,000 replicates: percentile, BCa, and the
default of the command (`auto`: BCa, and for minDCF the interval that knows how optimistic a minimum is).
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from statistics import NormalDist
from typing import Any

import numpy as np

from hitmiss.metrics.detection import eer_form, min_dcf_form
from hitmiss.stats.binomial import wilson
from hitmiss.stats.bootstrap import trial_replicates
from hitmiss.stats.cells import cut
from hitmiss.stats.forms import Form, MinimumCost, PairShare
from hitmiss.stats.intervals import acceleration_of_trials, acceleration_of_units, bca, of_least_cost, percentile
from hitmiss.stats.units import UnitSample, draw_units, unit_replicates
from hitmiss.tally import Tally

DATA_SETS = 1000
REPLICATES = 1000
GAP = 3.0
POSITIVES = 0.3
UNITS = 150
UNIT_SPREAD = 0.5
SIZES = (500, 5000)
TARGET = (0.93, 0.97)
KINDS = ("auto", "BCa", "percentile")
LEAST_COST = 1  # the place of minDCF among the figures

Row = dict[str, Any]
Array = np.ndarray[Any, Any]


def forms() -> dict[str, Form]:
    """The figures under test."""
    return {
        "EER": eer_form("grouped"),
        "minDCF(p 0.95, 1, 10)": min_dcf_form(0.95, 1.0, 10.0, True),
        "AUC": PairShare(),
    }


def truth() -> list[float]:
    """Their true values: unit-variance Gaussians, `GAP` apart."""
    normal = NormalDist()
    threshold = GAP / 2 - np.log(0.95 / 0.5) / GAP  # where the likelihood ratio equals false-alarm cost over miss cost
    least = (0.95 * normal.cdf(threshold - GAP) + 0.5 * normal.cdf(-threshold)) / 0.5
    return [normal.cdf(-GAP / 2), least, normal.cdf(GAP / np.sqrt(2))]


def asked(tally: Tally) -> list[Form]:
    """The figures, then the cost at the best threshold of these trials, which the interval of a least cost needs."""
    own = list(forms().values())
    return [*own, *(f.at_best(tally) for f in own if isinstance(f, MinimumCost))]


def of_trials(n: int, rng: np.random.Generator) -> tuple[Array, list[float], list[float]]:
    """One data set of independent trials: replicates, estimates, accelerations."""
    n1 = round(POSITIVES * n)
    tally = Tally.of_classes(rng.normal(GAP, 1.0, size=n1), rng.normal(0.0, 1.0, size=n - n1))
    every = asked(tally)
    drawn = trial_replicates(tally, every, REPLICATES, rng)
    return np.array(drawn), [f.value(tally) for f in every], [acceleration_of_trials(f, cut(tally, [f])) for f in every]


def of_units(n: int, rng: np.random.Generator) -> tuple[Array, list[float], list[float]]:
    """One data set of speakers: the same marginal law, but trials of a speaker are alike."""
    unit = np.arange(n) % UNITS
    positive = rng.random(n) < POSITIVES
    level = rng.normal(0.0, UNIT_SPREAD, size=UNITS)
    score = GAP * positive + level[unit] + rng.normal(0.0, np.sqrt(1 - UNIT_SPREAD**2), size=n)
    sample = UnitSample.of(positive, score, unit, UNITS)
    every = asked(sample.tally)
    drawn = unit_replicates(sample, every, draw_units(unit, positive, UNITS, REPLICATES, rng))
    without = unit_replicates(sample, every, 1 - np.eye(UNITS, dtype=np.uint16))
    return np.array(drawn), [f.value(sample.tally) for f in every], [acceleration_of_units(v) for v in without]


def intervals_of(i: int, drawn: Array, estimates: list[float], accelerations: list[float]) -> dict[str, Any]:
    """The three kinds of interval of one figure; `auto` is the default of the command."""
    ours = bca(drawn[i], estimates[i], accelerations[i])
    auto = of_least_cost(drawn[i], drawn[-1], estimates[i], accelerations[-1]) if i == LEAST_COST else ours
    return {"auto": auto, "BCa": ours, "percentile": percentile(drawn[i])}


def one_data_set(kind: str, n: int, k: int) -> Array:
    """For each figure and each interval: whether the truth lies below, above, and the width."""
    make = {"trials": of_trials, "units": of_units}[kind]
    made = make(n, np.random.default_rng([n, len(kind), k]))
    found = np.zeros((len(truth()), len(KINDS), 3))
    for i, true in enumerate(truth()):
        for j, (low, high) in enumerate(intervals_of(i, *made)[name] for name in KINDS):
            found[i, j] = true < low, true > high, high - low
    return found


def coverage(kind: str, n: int, data_sets: int, pool: ProcessPoolExecutor) -> Iterator[Row]:
    """Coverage of the intervals of all figures."""
    many = pool.map(one_data_set, repeat(kind), repeat(n), range(data_sets), chunksize=20)
    means = np.mean(list(many), axis=0)
    for i, figure in enumerate(forms()):
        for j, name in enumerate(KINDS):
            below, above, width = means[i, j]
            share = 1 - below - above
            low, high = wilson(share * data_sets, data_sets)
            yield {
                "resampled": kind,
                "trials": n,
                "figure": figure,
                "interval": name,
                "coverage": f"{share:.1%}",
                "± (95 %)": f"{low:.1%} to {high:.1%}",
                "truth below / above": f"{below:.1%} / {above:.1%}",
                "mean width": f"{width:.4f}",
                "93 to 97 %": "yes" if TARGET[0] <= share <= TARGET[1] else "NO",
            }


def rows(data_sets: int = DATA_SETS) -> list[Row]:
    """All simulations."""
    with ProcessPoolExecutor() as pool:
        return [r for kind in ("trials", "units") for n in SIZES for r in coverage(kind, n, data_sets, pool)]


def table(found: list[Row]) -> str:
    """Markdown."""
    head = list(found[0])
    lines = [head, ["---"] * len(head), *([str(r[h]) for h in head] for r in found)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def main() -> None:
    """Print the table."""
    print(table(rows(*(int(a) for a in sys.argv[1:2]))))


if __name__ == "__main__":
    main()
