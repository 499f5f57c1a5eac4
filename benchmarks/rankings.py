"""Rankings of many systems: the family-wise error without any difference, what is shown where there is one, and the cost.

    python benchmarks/rankings.py [--workers N] [--minutes M] [--trials N] [--json FILE]

Error: systems of equal skill that share part of their noise; the share of data sets in which any pair is called different,
with 300 replicates at 95 %; least costs with few errors too, where a system often shows none of one kind, and with systems
of other shapes but the same cost; `--json` keeps the counts, and a run goes on from what the file holds. Shown: nine systems with
an EER from 0.3 % to 41.9 % on 1,500 trials. Cost: fifty systems against one on the same trials with 150 speakers, by the
clock (runs are measured side by side, one per core) and in brackets in processor time; `--trials` scales it.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import json
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from hitmiss.core.header import Header, Source
from hitmiss.core.trials import Trials
from hitmiss.engine.measure import measure
from hitmiss.engine.rank import compare_all
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


def false_alarms(systems: int, at: int, k: int) -> dict[str, bool]:
    """Whether any pair of equal systems is called different, metric by metric."""
    data = DATA[at]
    runs = data.runs(np.random.default_rng([k, systems, at]), systems)
    unit = "speaker" if data.units else None
    found = compare_all(runs, data.metrics, seed=k, unit=unit, force=True, bootstrap=300)
    return {
        metric: any((d.difference.p_adjusted or 1.0) < 0.05 for d in found.duels if d.difference.metric == metric)
        for metric in data.metrics
    }


def error_rows(workers: int, minutes: float, kept: Path | None = None) -> Iterator[Row]:
    """The family-wise error, in rounds over the settings until each has enough data sets or the time is over."""
    counts: dict[str, list[int]] = json.loads(kept.read_text()) if kept and kept.exists() else {}
    ends = time.monotonic() + 60.0 * minutes
    begun = {name.rpartition(" ")[0]: of for name, (_, of) in counts.items()}
    tasks = (
        (m, at, j * (1 + (m == 100)) * (8 if at == 1 else 1))
        for j in range(max(ENOUGH.values()))
        for m in SYSTEMS
        for at in range(len(DATA))
        if begun.get(f"{m} {at}", 0) <= j < ENOUGH[m] and (m < 30 or at < 3)
    )
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        pending: dict[Future[dict[str, bool]], tuple[int, int]] = {}
        while time.monotonic() < ends:
            while len(pending) < 2 * workers and (task := next(tasks, None)) is not None:
                pending[pool.submit(false_alarms, *task)] = task[:2]
            if not pending:
                break
            for future in wait(pending, timeout=1.0, return_when=FIRST_COMPLETED)[0]:
                setting = pending.pop(future)
                for metric, called in future.result().items():
                    cell = counts.setdefault(f"{setting[0]} {setting[1]} {metric}", [0, 0])
                    cell[0] += called
                    cell[1] += 1
                if kept:
                    kept.write_text(json.dumps(counts, indent=1))
        for future in pending:
            future.cancel()
    for systems, at, metric, called, done in sorted((int(n.split()[0]), *n.split()[1:], *c) for n, c in counts.items()):
        low, high = wilson(called, done, 0.95)
        yield {
            "systems": systems,
            "data": str(DATA[int(at)]),
            "metric": metric,
            "family-wise error": f"{called / done:.1%}",
            "95 %": f"[{low:.1%}, {high:.1%}]",
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
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=10.0, help="for the family-wise error")
    parser.add_argument(
        "--trials", type=int, default=680_774, help="of the fifty systems whose cost is measured; 0: none"
    )
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    cost = cost_rows(given.trials) if given.trials else ()
    for rows in (shown_rows(), error_rows(given.workers, given.minutes, given.json), cost):
        for i, row in enumerate(rows):
            if i == 0:
                print("\n| " + " | ".join(row) + " |\n|" + "---|" * len(row))
            print("| " + " | ".join(map(str, row.values())) + " |", flush=True)


if __name__ == "__main__":
    main()
