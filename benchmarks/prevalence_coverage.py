"""How often 95 % intervals of a corrected prevalence hold the true share, over a grid of surveys.

    python benchmarks/prevalence_coverage.py [REPEATS]

Corrected: a detector with this sensitivity and specificity, each known from a test of `known` items, flags items of a
survey. With labels: people label up to 100 of the flagged and of the passed items. The true share, the test and the
survey are drawn anew each time.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np

from hitmiss.stats.prevalence import corrected_prevalence, labelled_prevalence

SHARES = (0.02, 0.1, 0.3, 0.6)
RATES = ((0.9, 0.95), (0.7, 0.9), (0.95, 0.99))
SIZES = ((500, 100), (5000, 400))
LABELLED = 100


def coverage(share: float, rates: tuple[float, float], sizes: tuple[int, int], repeats: int) -> tuple[float, float]:
    """Return the shares of surveys whose two intervals held the true share."""
    rng = np.random.default_rng(17)
    (sensitivity, specificity), (n, known), held = rates, sizes, np.zeros(2)
    for _ in range(repeats):
        positives = int(rng.binomial(n, share))
        hits, alarms = int(rng.binomial(positives, sensitivity)), int(rng.binomial(n - positives, 1 - specificity))
        flagged, passed = hits + alarms, n - hits - alarms
        one = corrected_prevalence(
            flagged,
            n,
            sensitivity=rng.binomial(known, sensitivity) / known,
            positives=known,
            specificity=rng.binomial(known, specificity) / known,
            negatives=known,
        )
        seen, unseen = min(LABELLED, flagged), min(LABELLED, passed)
        other = labelled_prevalence(
            flagged,
            n,
            flagged_positive=int(rng.hypergeometric(hits, alarms, seen)) if seen else 0,
            flagged_labelled=seen,
            passed_positive=int(rng.hypergeometric(positives - hits, passed - positives + hits, unseen)),
            passed_labelled=unseen,
        )
        held += [one.low <= share <= one.high, other.low <= share <= other.high]
    return held[0] / repeats, held[1] / repeats


def main() -> None:
    """Print the table."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    print(f"Coverage of nominal 95 % intervals, {repeats:,} surveys a cell\n")
    print("| true share | sensitivity, specificity | survey, test | corrected | with labels |\n|---|---|---|---:|---:|")
    for share, rates, sizes in product(SHARES, RATES, SIZES):
        one, other = coverage(share, rates, sizes, repeats)
        print(f"| {share:g} | {rates[0]:g}, {rates[1]:g} | {sizes[0]:,}, {sizes[1]} | {one:.3f} | {other:.3f} |")


if __name__ == "__main__":
    main()
