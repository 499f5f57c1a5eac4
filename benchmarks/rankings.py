"""Rankings of many systems: the family-wise error without any difference, what is shown where there is one, and the cost.

    python benchmarks/rankings.py [--workers N] [--minutes M] [--trials N] [--json FILE | --from-json FILE]

Error: systems of equal skill that share part of their noise; the share of data sets in which any pair is called different,
with 300 replicates at 95 %; least costs with few errors too, where a system often shows none of one kind, and with systems
of other shapes but the same cost; `--json` keeps the counts, and a run goes on from what the file holds. Power: the same
for half of the systems being worse by the stated difference of d', the share of those pairs that are called different. Shown:
nine systems with an EER from 0.3 % to 41.9 % on 1,500 trials. Cost: fifty systems against one on the same trials with 150 speakers, by the
clock (runs are measured side by side, one per core) and in brackets in processor time; `--trials` scales it.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import math
import time
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

import rounds
from hitmiss.core.header import Header, Source
from hitmiss.core.trials import Trials
from hitmiss.engine.measure import measure
from hitmiss.engine.rank import compare_all
from hitmiss.engine.ranking import Ranking
from hitmiss.stats.intervals import wilson

ENOUGH = {2: 200, 8: 200, 30: 200, 100: 100}
"""How many data sets there are of each number of systems."""
SYSTEMS = tuple(ENOUGH)
EERS = (0.003, 0.012, 0.03, 0.06, 0.10, 0.16, 0.23, 0.32, 0.419)
METRICS = ("eer", "min_dcf", "roc_auc")

Row = dict[str, Any]


def field(
    rng: np.random.Generator, eers: tuple[float, ...], n1: int, n0: int, units: int = 0, shared: float = 0.6
) -> dict[str, Trials]:
    """Systems with these equal error rates on the same trials; `shared` of the noise is common to all."""
    n = n1 + n0
    label, common = np.repeat([1, 0], [n1, n0]), rng.normal(size=n)
    item = np.char.add("E_", np.char.zfill(np.arange(n).astype(str), 10))  # in order, as the ids of challenges are
    speaker = rng.integers(0, units, n) if units else None
    header = Header(sources=(Source("simulated.tsv", "0" * 64),))  # as if from a file, whose hash is known
    runs = {}
    for i, eer in enumerate(eers):
        noise = shared * common + np.sqrt(1.0 - shared**2) * rng.normal(size=n)
        if speaker is not None:
            noise = np.sqrt(0.75) * noise + 0.5 * rng.normal(size=units)[speaker]
        made = Trials.of(label, noise - 2.0 * NormalDist().inv_cdf(eer) * label, header=header, item=item)
        if speaker is not None:
            made = made.put(speaker=np.char.add("s", speaker.astype(str))).retitle(slices=("speaker",))
        runs[f"X{i:02d}"] = made
    return runs


class Null(NamedTuple):
    """Systems of equal skill: equal error rate, positives, negatives, speakers (0: trials are drawn), metrics.

    With `wrong`, every other system is one whose errors are certain: this share of positives and of negatives is scored
    like the other class; the others are normal and have the same least cost.
    """

    eer: float
    n1: int
    n0: int
    units: int = 0
    metrics: tuple[str, ...] = ("eer", "roc_auc")
    wrong: tuple[float, float] | None = None

    def __str__(self) -> str:
        skill = f"EER {self.eer:.0%}" if self.wrong is None else "certain errors {:.1%} / {:.1%}".format(*self.wrong)
        return f"{skill}, {self.n1} + {self.n0}" + (f", {self.units} speakers" if self.units else "")

    def runs(self, rng: np.random.Generator, systems: int) -> dict[str, Trials]:
        """Draw the systems."""
        if self.wrong is None:
            return field(rng, (self.eer,) * systems, self.n1, self.n0, self.units)
        label = np.repeat([1, 0], [self.n1, self.n0])
        shift = _same_cost(self.wrong)
        certain = [rng.random(len(label)) < np.where(label == 1, *self.wrong) for _ in range(systems)]
        scores = [
            rng.normal(size=len(label)) + (10.0 * (label ^ certain[i]) if i % 2 == 0 else shift * label)
            for i in range(systems)
        ]
        return {f"X{i:02d}": Trials.of(label, score) for i, score in enumerate(scores)}


def _same_cost(wrong: tuple[float, float]) -> float:
    """Return the d' of normal scores whose least cost (the default one) is that of these certain errors."""
    law, thresholds = NormalDist(), np.linspace(-4.0, 8.0, 1201)
    rejected = np.array([law.cdf(t) for t in thresholds])

    def cost(shift: float) -> float:
        missed = np.array([law.cdf(t - shift) for t in thresholds])
        return float(np.min(1.9 * missed + 1.0 - rejected))

    low, high = 0.0, 8.0
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if cost(middle) > 1.9 * wrong[0] + wrong[1] else (low, middle)
    return high


DATA = (
    Null(0.1, 100, 400),
    Null(0.02, 300, 1200),
    Null(0.1, 150, 450, 20),
    Null(0.1, 100, 400, metrics=("min_dcf",)),
    Null(0.02, 300, 1200, metrics=("min_dcf",)),
    Null(0.01, 100, 400, metrics=("min_dcf",)),
    Null(0.02, 150, 450, 20, metrics=("min_dcf",)),
    Null(0.0, 100, 400, metrics=("min_dcf",), wrong=(0.03, 0.005)),
    Null(0.0, 300, 1200, metrics=("min_dcf",), wrong=(0.05, 0.002)),
)


WORSE = 0.5
"""By how much less every other system keeps the classes apart (d') where power is measured."""


def calls(systems: int, at: int, k: int) -> dict[str, tuple[float, float]]:
    """Whether any pair of equal systems is called different, and which share of unequal pairs is, metric by metric."""
    data = DATA[at]
    rng = np.random.default_rng([k, systems, at])
    options: dict[str, Any] = {"unit": "speaker" if data.units else None, "force": True, "bootstrap": 300, "seed": k}
    equal = compare_all(data.runs(rng, systems), data.metrics, **options)
    unequal = None if data.wrong else compare_all(_unequal(data, rng, systems), data.metrics, **options)
    return {
        metric: (float(any(_called(equal, metric))), float(np.mean(_called(unequal, metric, True) or [math.nan])))
        for metric in data.metrics
    }


def _called(ranking: Ranking | None, metric: str, unequal: bool = False) -> list[bool]:
    """Whether each pair is called different; `unequal`: only pairs of one of either kind."""
    duels = [d for d in ranking.duels if d.difference.metric == metric] if ranking else []
    kept = [d.difference for d in duels if not unequal or int(d.a[1:]) % 2 != int(d.b[1:]) % 2]
    return [(1.0 if d.p_adjusted is None else d.p_adjusted) < 0.05 for d in kept]


def _unequal(data: Null, rng: np.random.Generator, systems: int) -> dict[str, Trials]:
    law = NormalDist()
    worse = law.cdf(law.inv_cdf(data.eer) + WORSE / 2.0)
    return field(rng, tuple((data.eer, worse)[i % 2] for i in range(systems)), data.n1, data.n0, data.units)


def error_rows(given: argparse.Namespace) -> Iterator[Row]:
    """The family-wise error, in rounds over the settings until each has enough data sets or the time is over."""
    counts: dict[str, list[float]] = rounds.kept_in(given.from_json or given.json)
    begun = {name.rpartition(" ")[0]: cell[1] for name, cell in counts.items()}
    tasks = (
        (m, at, j * (1 + (m == 100)) * (8 if at == 1 else 1))
        for j in range(max(ENOUGH.values()))
        for m in SYSTEMS
        for at in range(len(DATA))
        if begun.get(f"{m} {at}", 0) <= j < ENOUGH[m] and (m < 30 or at < 3)
    )

    def note(task: tuple[Any, ...], found: dict[str, tuple[float, float]]) -> None:
        for metric, (called, shown) in found.items():
            cell = counts.setdefault(f"{task[0]} {task[1]} {metric}", [0, 0, 0.0])
            cell[0] += int(called)
            cell[1] += 1
            cell[2] += shown

    if not given.from_json:
        rounds.carry_out(calls, tasks, note, given, counts)
    for systems, at, metric, called, done, shown in sorted(
        (int(n.split()[0]), *n.split()[1:], *c) for n, c in counts.items()
    ):
        low, high = wilson(called, done, 0.95)
        yield {
            "systems": systems,
            "data": str(DATA[int(at)]),
            "metric": metric,
            "family-wise error": f"{called / done:.1%}",
            "95 %": f"[{low:.1%}, {high:.1%}]",
            "power": "" if math.isnan(shown) else f"{shown / done:.0%}",
            "data sets": done,
        }


def shown_rows() -> Iterator[Row]:
    """How many groups the nine systems fall into."""
    for metric in METRICS:
        found = compare_all(field(np.random.default_rng(1), EERS, 300, 1200), [metric])
        yield {"metric": metric, "groups": len({letter for s in found.standings for letter in s.letters})}


def cost_rows(trials: int, systems: int = 50, units: int = 150) -> Iterator[Row]:
    """Time by the clock (and processor time) of one system measured with its intervals, and of the ranking of fifty."""
    n1 = round(0.2 * trials)
    runs = field(np.random.default_rng(0), (0.1,) * systems, n1, trials - n1, units)
    metrics = ("eer", "min_dcf")
    measure(runs["X01"], metrics, bootstrap=10, unit="speaker")  # what is loaded once counts for neither
    one = _spent(lambda: measure(runs["X00"], metrics, bootstrap=1000, unit="speaker"))
    own = _spent(lambda: compare_all({"a": runs["X00"], "b": runs["X01"]}, metrics, unit="speaker"))
    every = _spent(lambda: compare_all(runs, metrics, unit="speaker"))
    yield {
        "trials": f"{trials:,}",
        "systems": systems,
        "one measured": f"{one[0]:.2f} s ({one[1]:.2f} s)",
        "two ranked": f"{own[0]:.2f} s ({own[1]:.2f} s)",
        "all ranked": f"{every[0]:.2f} s ({every[1]:.2f} s)",
        "all / one": f"{every[0] / one[0]:.1f} ({every[1] / one[1]:.1f})",
    }


def _spent(work: Any) -> tuple[float, float]:
    """Time by the clock, and processor time, which counts both of two cores."""
    begun, busy = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begun, time.process_time() - busy


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--trials", type=int, default=680_774, help="of the fifty systems whose cost is measured; 0: none"
    )
    rounds.add_options(parser, 10.0)
    given = parser.parse_args()
    cost = cost_rows(given.trials) if given.trials and not given.from_json else ()
    for rows in (shown_rows(), error_rows(given), cost):
        for i, row in enumerate(rows):
            if i == 0:
                print("\n| " + " | ".join(row) + " |\n|" + "---|" * len(row))
            print("| " + " | ".join(map(str, row.values())) + " |", flush=True)


if __name__ == "__main__":
    main()
