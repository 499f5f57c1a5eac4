"""Two thresholds for triage: how often does a pair that was chosen to keep slip and false flag at 5 % break that on new data?

    python benchmarks/triage_guarantee.py [repeats]

Each repeat draws a calibration set of fakes and reals, chooses a pair on it, and looks up its true rates: the scores are
probabilities whose distributions are known, so no test set blurs the answer. Empirical: the fewest reviews among the
pairs that keep both rates on the calibration set. Guarantee: exact binomial (ours), and MAPIE's learn-then-test where
the package is there; both promise that at most 5 % of repeats break a rate. Review: true share of items between.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.special import logit
from scipy.stats import norm

from hitmiss.core.tally import Tally
from hitmiss.derive.bands import Bands, Choice, by_rates, guaranteed, judge
from hitmiss.stats.intervals import wilson

REPEATS = 2000
SLOW = 100
STEPS = 30
"""Steps of the grid on which MAPIE tests pairs of thresholds."""
TARGET = 0.05
SIZES = (200, 500, 2000)
SPREAD = 1.6
CENTRE = 2.0

Row = dict[str, Any]


def draw(n: int, rng: np.random.Generator) -> Tally:
    """A calibration set: log-odds are Gaussian, around +2 for fakes and −2 for reals."""
    z = rng.normal(0.0, SPREAD, n) + np.repeat([CENTRE, -CENTRE], [n // 2, n - n // 2])
    return Tally.of(np.repeat([1, 0], [n // 2, n - n // 2]), 1 / (1 + np.exp(-z)))


def truth(choice: Choice) -> tuple[float, float, float]:
    """True slip, false flag and review share (at equal classes) of a chosen pair."""
    assert choice.point is not None
    with np.errstate(divide="ignore"):
        low, high = (float(logit(min(1.0, t))) for t in (choice.point.bands.low, choice.point.bands.high))
    slip, flag = norm.cdf(low, CENTRE, SPREAD), norm.sf(high, -CENTRE, SPREAD)
    between = [norm.cdf(high, c, SPREAD) - norm.cdf(low, c, SPREAD) for c in (CENTRE, -CENTRE)]
    return float(slip), float(flag), float(np.mean(between))


def choose(way: str, tally: Tally) -> Choice:
    """The pair that a way chooses."""
    if way == "empirical":
        return by_rates(tally, TARGET, TARGET)
    return by_mapie(tally, TARGET, TARGET) if "MAPIE" in way else guaranteed(tally, TARGET, TARGET)


def by_mapie(tally: Tally, max_slip: float, max_flag: float, confidence: float = 0.95) -> Choice:
    """Learn-then-test with MAPIE over a grid of pairs of probabilities: of those that pass, the one with the least review."""
    from mapie.risk_control import BinaryClassificationController, BinaryRisk

    counts = [tally.positive_counts.astype(int), tally.negative_counts.astype(int)]
    score = np.concatenate([np.repeat(tally.score, c) for c in counts])
    grid = np.linspace(0.0, 1.0, STEPS + 1)
    pairs = np.array([(low, high) for low in grid for high in grid if low <= high])
    slips = BinaryRisk(lambda y, said: (y == 1) & (said == 0), lambda y, said: y == 1, higher_is_better=False)
    flags = BinaryRisk(lambda y, said: (y == 0) & (said == 1), lambda y, said: y == 0, higher_is_better=False)
    looks = BinaryRisk(lambda y, said: np.isnan(said), lambda y, said: np.ones_like(y, bool), higher_is_better=False)
    controller = BinaryClassificationController(
        lambda s, low, high: np.where(np.asarray(s) >= high, 1.0, np.where(np.asarray(s) < low, 0.0, np.nan)),
        [slips, flags],
        [max_slip, max_flag],
        confidence,
        best_predict_param_choice=looks,
        list_predict_params=pairs,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where no pair passes
        best = controller.calibrate(score, np.repeat([1, 0], [c.sum() for c in counts])).best_predict_param
    if best is None:
        return Choice(None, "no pair passes the test")
    return Choice(judge(tally, Bands(float(best[0]), float(best[1]))))


def rows(repeats: int = REPEATS) -> Iterator[Row]:
    """One row a way and size."""
    ways = ["empirical", "guarantee, binomial", *(["guarantee, MAPIE"] if find_spec("mapie") else [])]
    for n in SIZES:
        for way in ways:
            times = min(repeats, SLOW) if "MAPIE" in way else repeats
            rng, start = np.random.default_rng(n), time.process_time()
            found = [choose(way, draw(n, rng)) for _ in range(times)]
            spent = (time.process_time() - start) / times
            true = [truth(c) for c in found if c.point is not None]
            broken = sum(slip > TARGET or flag > TARGET for slip, flag, _ in true)
            low, high = wilson(broken, times)
            yield {
                "choice": way,
                "calibration rows": f"{n:,}",
                "repeats": f"{times:,}",
                "broke 5 % on new data": f"{broken / times:.1%}",
                "95 % interval": f"{low:.1%} to {high:.1%}",
                "found no pair": f"{sum(c.point is None for c in found) / times:.1%}",
                "review": f"{np.mean([r for *_, r in true]):.1%}" if true else "–",
                "ms a choice": f"{1000 * spent:.1f}",
            }


def main(repeats: int = REPEATS) -> None:
    """Print the table."""
    found = list(rows(repeats))
    print("| " + " | ".join(found[0]) + " |\n|" + "---|" * len(found[0]))
    for row in found:
        print("| " + " | ".join(map(str, row.values())) + " |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
