"""How often 95 % intervals of least costs (minDCF) and of the difference of two cover the truth.

    python benchmarks/least_cost_differences.py [REPEATS]

Two systems with normal scores, correlated at 0.6 within each class, on the same trials; d' is how far apart the classes are.
300 repeats with 500 replicates each, so ± 1.3 points. The true least costs are computed from the normal distributions.

percentile: of the paired replicates of the difference, what `hitmiss compare` takes. basic: the same turned round the
estimate. shifted: moved by the optimism that the interval of a single least cost is moved by. at best: costs at the
sample's own best thresholds, each raised by its optimism, as averages over slices take them.

The second table: intervals of single least costs, and of differences as `hitmiss compare` takes them (the wider of percentiles
and the studentised interval), by the number of errors of the rarer kind at the best threshold (of differences in either run).
"""

from __future__ import annotations

import math
import sys
from statistics import NormalDist

import numpy as np

from hitmiss.core.tally import Tally
from hitmiss.stats.cells import cut
from hitmiss.stats.forms.least_cost import MinimumCost
from hitmiss.stats.intervals import of_least_cost, percentile
from hitmiss.stats.jackknife import acceleration_of_trials
from hitmiss.stats.optimism import OPTIMISM, growth_of_least_cost
from hitmiss.stats.paired import paired_replicates

COSTS = {"P 0.95, C 1/10": (0.95, 1.0, 10.0), "P 0.5, C 1/1": (0.5, 1.0, 1.0), "P 0.01, C 1/1": (0.01, 1.0, 1.0)}
SIZES = ((100, 300), (500, 3000))
SKILLS = ((2.0, 2.0), (2.0, 2.6))
REPLICATES, SHARED = 500, 0.6
NORMAL = NormalDist()


def true_cost(skill: float, cost: MinimumCost) -> float:
    """The least cost where positives are N(d', 1) and negatives N(0, 1): at the threshold of equal weighted densities."""
    at = skill / 2 + math.log(cost.false_alarm / cost.miss) / skill
    found = cost.miss * NORMAL.cdf(at - skill) + cost.false_alarm * (1 - NORMAL.cdf(at))
    return min(found / cost.unit, cost.trivial)


def intervals(positive: np.ndarray, a: np.ndarray, b: np.ndarray, cost: MinimumCost, rng: np.random.Generator):
    """The four intervals of one pair of runs."""
    tallies = [Tally.of_classes(s[positive], s[~positive]) for s in (a, b)]
    own = [cost.at_best(t) for t in tallies]
    value_a, value_b = (cost.value(t) for t in tallies)
    first, second = paired_replicates(positive, a, b, [cost, *own], REPLICATES, rng)
    delta, deltas = value_b - value_a, second[0] - first[0]
    low, high = percentile(deltas)
    optimism = [OPTIMISM * max(v - float(np.mean(r)), 0.0) for v, r in ((value_a, first[0]), (value_b, second[0]))]
    raised = second[2] * growth_of_least_cost(second[0], value_b) - first[1] * growth_of_least_cost(first[0], value_a)
    return {
        "percentile": (low, high),
        "basic": (2 * delta - high, 2 * delta - low),
        "shifted": percentile(deltas - deltas.mean() + delta + optimism[1] - optimism[0]),
        "at best": percentile(raised),
    }


def covered(cost: MinimumCost, size: tuple[int, int], skills: tuple[float, float], repeats: int) -> dict[str, float]:
    """The share of repeats in which each interval covers the truth."""
    truth = true_cost(skills[1], cost) - true_cost(skills[0], cost)
    rng, n = np.random.default_rng(0), sum(size)
    positive = np.arange(n) < size[0]
    hits: dict[str, int] = {}
    for _ in range(repeats):
        base = math.sqrt(SHARED) * rng.standard_normal(n)
        a, b = (base + math.sqrt(1 - SHARED) * rng.standard_normal(n) + d * positive for d in skills)
        for name, (low, high) in intervals(positive, a, b, cost, rng).items():
            hits[name] = hits.get(name, 0) + (low <= truth <= high)
    return {name: n / repeats for name, n in hits.items()}


KINDS = ((0, 0), (1, 1), (2, 2), (3, 3), (4, 5), (6, 8), (9, 10**9))
"""Numbers of errors of the rarer kind that are counted together."""


def rarest(cost: MinimumCost, tally: Tally) -> int:
    """How many errors of the rarer kind there are at the best threshold."""
    point = cost.best_point(tally)
    return min(int(tally.positives[point]), int(tally.n_negative - tally.negatives[point]))


def by_errors(repeats: int) -> dict[str, dict[tuple[int, int], list[bool]]]:
    """Whether intervals hold the truth, by the number of errors behind them."""
    found: dict[str, dict[tuple[int, int], list[bool]]] = {"minDCF": {}, "difference of two minDCF": {}}
    rng = np.random.default_rng(1)

    def note(what: str, errors: int, held: bool) -> None:
        found[what].setdefault(next(k for k in KINDS if k[0] <= errors <= k[1]), []).append(held)

    for p, miss, false_alarm in (*COSTS.values(), (0.05, 1.0, 1.0)):
        cost = MinimumCost(miss * p, false_alarm * (1 - p), min(miss * p, false_alarm * (1 - p)))
        for n1, n0 in ((40, 93), (120, 280), (100, 300), (300, 1200), (500, 3000)):
            positive = np.arange(n1 + n0) < n1
            for skills in (*SKILLS, (2.6, 3.0)):
                truth = [true_cost(d, cost) for d in skills]
                for _ in range(repeats):
                    base = math.sqrt(SHARED) * rng.standard_normal(n1 + n0)
                    own = math.sqrt(1 - SHARED)
                    sides = [base + own * rng.standard_normal(n1 + n0) + d * positive for d in skills]
                    tallies = [Tally.of_classes(s[positive], s[~positive]) for s in sides]
                    fixed = [cost.at_best(t) for t in tallies]
                    values, errors = [cost.value(t) for t in tallies], [rarest(cost, t) for t in tallies]
                    drawn = paired_replicates(positive, *sides, [cost, *fixed], REPLICATES, rng)
                    for i in (0, 1):
                        a = acceleration_of_trials(fixed[i], cut(tallies[i], [fixed[i]]))
                        low, high = of_least_cost(drawn[i][0], drawn[i][1 + i], values[i], a)
                        note("minDCF", errors[i], low <= truth[i] <= min(high, max(cost.trivial, values[i])))
                    deltas, delta = drawn[1][0] - drawn[0][0], values[1] - values[0]
                    half = NORMAL.inv_cdf(0.975) * float(np.std(deltas, ddof=1))
                    low, high = percentile(deltas)
                    inside = min(low, delta - half) <= truth[1] - truth[0] <= max(high, delta + half)
                    note("difference of two minDCF", min(errors), inside)
    return found


def main(repeats: int = 300) -> None:
    """Print the tables."""
    names = ("percentile", "basic", "shifted", "at best")
    print(f"| costs | trials | d' | {' | '.join(names)} |\n|{'---|' * (3 + len(names))}")
    for told, (p, miss, false_alarm) in COSTS.items():
        a, b = miss * p, false_alarm * (1 - p)
        cost = MinimumCost(a, b, min(a, b))
        for size in SIZES:
            for skills in SKILLS:
                found = covered(cost, size, skills, repeats)
                cells = " | ".join(f"{found[n]:.1%}" for n in names)
                print(f"| {told} | {size[0]} + {size[1]} | {skills[0]}, {skills[1]} | {cells} |", flush=True)
    names = [str(low) if low == high else f"{low} to {high}" if high < 100 else f"{low} or more" for low, high in KINDS]
    print(f"\n| errors of the rarer kind | {' | '.join(names)} |\n|{'---|' * (1 + len(names))}")
    for what, held in by_errors(max(repeats // 2, 1)).items():
        cells = [f"{np.mean(held[k]):.1%} of {len(held[k]):,}" if k in held else "" for k in KINDS]
        print(f"| {what} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:2]))
