"""Exact rational arithmetic as the judge: every pattern of labels and ties up to seven trials, oracles from the definitions.

The oracles see single trials and know nothing of tallies, forms, bisection or the package's arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise

import pytest

from hitmiss import metrics as m

Trial = tuple[int, int]  # label, score
Pattern = tuple[Trial, ...]
Point = tuple[Fraction, Fraction]  # miss rate, false-alarm rate
MOST = 7


@cache
def patterns(n: int, level: int = 0) -> tuple[Pattern, ...]:
    """Every way to hand n trials, labelled and tied as one likes, to ascending scores."""
    if n == 0:
        return ((),)
    found = []
    for size in range(1, n + 1):
        for positives in range(size + 1):
            group = ((1, level),) * positives + ((0, level),) * (size - positives)
            found += [(*group, *rest) for rest in patterns(n - size, level + 1)]
    return tuple(found)


def scrambled(pattern: Pattern) -> tuple[list[int], list[float]]:
    """Labels and scores of a pattern, out of order."""
    rows = [*pattern[1::2], *pattern[::2][::-1]]
    return [label for label, _ in rows], [score / 8 for _, score in rows]


def all_patterns(least_positives: int = 1, least_negatives: int = 1) -> Iterator[Pattern]:
    for n in range(1, MOST + 1):
        for pattern in patterns(n):
            positives = sum(label for label, _ in pattern)
            if positives >= least_positives and n - positives >= least_negatives:
                yield pattern


def test_the_patterns_are_all_there() -> None:
    """Compositions of n into groups of k trials, each with 0 to k positives: 2, 7, 24, 82 …"""
    assert [len(set(patterns(n))) for n in range(1, 5)] == [2, 7, 24, 82]


# --- the definitions --------------------------------------------------------------------------------------------


def split(pattern: Pattern) -> tuple[list[int], list[int]]:
    return [s for label, s in pattern if label], [s for label, s in pattern if not label]


def share(hits: int, of: int) -> Fraction:
    return Fraction(hits, of)


def rates(pattern: Pattern, threshold: float) -> Point:
    positive, negative = split(pattern)
    return (
        share(sum(s < threshold for s in positive), len(positive)),
        share(sum(s >= threshold for s in negative), len(negative)),
    )


def curve(pattern: Pattern) -> list[Point]:
    """One point a threshold that exists, from accept-all to reject-all."""
    return [rates(pattern, t) for t in (*sorted({s for _, s in pattern}), math.inf)]


def walk(pattern: Pattern) -> list[Point]:
    """One point a trial, equal scores in the order positives, negatives."""
    positive, negative = split(pattern)
    rejected = [0, 0]
    points = [(Fraction(0), Fraction(1))]
    for label, _ in sorted(pattern, key=lambda trial: (trial[1], -trial[0])):
        rejected[label] += 1
        points.append((share(rejected[1], len(positive)), 1 - share(rejected[0], len(negative))))
    return points


def middle(point: Point) -> Fraction:
    return (point[0] + point[1]) / 2


def gap(point: Point) -> Fraction:
    return abs(point[0] - point[1])


def nearest(points: list[Point]) -> int:
    """The first point with the smallest gap between the rates as doubles.

    The official package compares doubles: where two points are equally near, rounding decides, and parity wants the
    same one. Rounding must never pick a point that is not among the nearest.
    """
    chosen = min(range(len(points)), key=lambda i: (abs(float(points[i][0]) - float(points[i][1])), i))
    assert gap(points[chosen]) == min(map(gap, points))
    return chosen


def meets_diagonal(one: Point, other: Point) -> Fraction | None:
    """Where the straight line between two points has equal rates."""
    a, b = one[0] - one[1], other[0] - other[1]
    if a == 0:
        return one[0]
    if a * b > 0 or a == b:
        return None
    return one[0] + (other[0] - one[0]) * a / (a - b)


def straight(pattern: Pattern) -> Fraction:
    points = curve(pattern)
    crossings = [meets_diagonal(p, q) for p, q in pairwise(points)]
    return next(c for c in crossings if c is not None)


def hull(pattern: Pattern) -> Fraction:
    """The lowest point of the diagonal that some mixture of two thresholds reaches."""
    found = [meets_diagonal(p, q) for p, q in combinations(curve(pattern), 2)]
    return min(c for c in found if c is not None)


def least_cost(pattern: Pattern, p_target: float, c_miss: float, c_fa: float) -> Fraction:
    miss, alarm = Fraction(c_miss) * Fraction(p_target), Fraction(c_fa) * (1 - Fraction(p_target))
    return min(miss * frr + alarm * far for frr, far in curve(pattern)) / min(miss, alarm)


def ordered_pairs(pattern: Pattern) -> Fraction:
    positive, negative = split(pattern)
    won = sum(Fraction((p > q) * 2 + (p == q), 2) for p in positive for q in negative)
    return won / (len(positive) * len(negative))


def precision_by_recall(pattern: Pattern) -> Fraction:
    positive, _ = split(pattern)
    total, reached = Fraction(0), Fraction(0)
    for t in sorted({s for _, s in pattern}, reverse=True):
        accepted = [label for label, s in pattern if s >= t]
        recall = share(sum(accepted), len(positive))
        total += (recall - reached) * share(sum(accepted), len(accepted))
        reached = recall
    return total


def isotonic(pattern: Pattern) -> list[Fraction]:
    """The best non-decreasing chance of positive at each level, by the max–min formula."""
    levels = sorted({s for _, s in pattern})
    groups = [[label for label, s in pattern if s == level] for level in levels]

    def mean(first: int, last: int) -> Fraction:
        together = [label for group in groups[first : last + 1] for label in group]
        return share(sum(together), len(together))

    size = len(levels)
    return [max(min(mean(a, b) for b in range(i, size)) for a in range(i + 1)) for i in range(size)]


def recalibrated_bits(pattern: Pattern) -> float:
    """Cllr of the likelihood ratios that the isotonic chances give: ½ Σ over classes of the mean of log2(1 + …)."""
    positive, negative = split(pattern)
    chance = dict(zip(sorted({s for _, s in pattern}), isotonic(pattern), strict=True))
    prior = Fraction(len(positive), len(negative))
    lost = [math.fsum(math.log2(1 + prior * (1 - chance[s]) / chance[s]) for s in positive) / len(positive)]
    lost += [math.fsum(math.log2(1 + chance[s] / (1 - chance[s]) / prior) for s in negative) / len(negative)]
    return sum(lost) / 2


def close(found: float, exact: Fraction | float) -> bool:
    return abs(found - float(exact)) <= 1e-12


# --- the metrics ------------------------------------------------------------------------------------------------


def test_grouped_eer() -> None:
    for pattern in all_patterns():
        points = curve(pattern)
        assert close(m.eer(*scrambled(pattern)), middle(points[nearest(points)])), pattern


def test_official_eer() -> None:
    for pattern in all_patterns():
        points = walk(pattern)
        assert close(m.eer(*scrambled(pattern), ties="official"), middle(points[nearest(points)])), pattern


def test_rounding_decides_between_points_that_are_equally_near() -> None:
    """Misses 1/3 and false alarms 1, or 2/3 and 0: both gaps are 2/3, yet 1 - 1/3 and 2/3 differ as doubles."""
    pattern = ((1, 0), (1, 1), (0, 1), (1, 2))
    points = curve(pattern)
    assert [gap(p) for p in points].count(Fraction(2, 3)) == 2
    assert close(m.eer(*scrambled(pattern)), Fraction(1, 3))
    assert close(m.eer(*scrambled(pattern), ties="interpolated"), straight(pattern))


def test_interpolated_and_hull_eer() -> None:
    for pattern in all_patterns():
        assert close(m.eer(*scrambled(pattern), ties="interpolated"), straight(pattern)), pattern
        assert close(m.eer(*scrambled(pattern), ties="hull"), hull(pattern)), pattern


def test_eer_thresholds() -> None:
    for pattern in all_patterns():
        scores = sorted(s / 8 for _, s in pattern)
        grouped = nearest(curve(pattern))
        assert m.eer_threshold(*scrambled(pattern)) == [*sorted(set(scores)), math.inf][grouped], pattern
        walked = nearest(walk(pattern))
        want = scores[walked - 1] if walked else scores[0] - 0.001
        assert m.eer_threshold(*scrambled(pattern), ties="official") == want, pattern


@pytest.mark.parametrize(("p_target", "c_miss", "c_fa"), [(0.95, 1, 10), (0.05, 1, 1), (0.5, 1, 1), (0.25, 3, 1)])
def test_min_dcf(p_target: float, c_miss: float, c_fa: float) -> None:
    for pattern in all_patterns():
        found = m.min_dcf(*scrambled(pattern), p_target=p_target, c_miss=c_miss, c_fa=c_fa)
        assert close(found, least_cost(pattern, p_target, c_miss, c_fa)), pattern


def test_dcf_at_every_threshold() -> None:
    for pattern in all_patterns():
        if len(pattern) < 6:
            for t in (-1, *(s for _, s in pattern), math.inf):
                frr, far = rates(pattern, t)
                exact = (frr / 2 + far / 2) * 2
                found = m.dcf_at(*scrambled(pattern), p_target=0.5, c_miss=1, c_fa=1, threshold=t / 8)
                assert close(found, exact), (pattern, t)


def test_roc_auc() -> None:
    for pattern in all_patterns():
        assert close(m.roc_auc(*scrambled(pattern)), ordered_pairs(pattern)), pattern


def test_average_precision() -> None:
    for pattern in all_patterns(least_negatives=0):
        assert close(m.average_precision(*scrambled(pattern)), precision_by_recall(pattern)), pattern


def test_points_of_the_curve() -> None:
    for pattern in all_patterns():
        points = curve(pattern)
        for limit in (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1)):
            hits = max(1 - frr for frr, far in points if far <= limit)
            alarms = min(far for frr, far in points if 1 - frr >= limit)
            assert close(m.tpr_at_fpr(*scrambled(pattern), fpr=float(limit)), hits), (pattern, limit)
            assert close(m.fpr_at_tpr(*scrambled(pattern), tpr=float(limit)), alarms), (pattern, limit)


def test_min_cllr() -> None:
    for pattern in all_patterns():
        assert close(m.min_cllr(*scrambled(pattern)), recalibrated_bits(pattern)), pattern


def test_cllr_and_brier() -> None:
    for pattern in all_patterns():
        positive, negative = split(pattern)
        missed = math.fsum(math.log2(1 + math.exp(-s / 8)) for s in positive) / len(positive)
        alarmed = math.fsum(math.log2(1 + math.exp(s / 8)) for s in negative) / len(negative)
        assert close(m.cllr(*scrambled(pattern)), (missed + alarmed) / 2), pattern
        squares = sum((Fraction(s, 8) - label) ** 2 for label, s in pattern)
        assert close(m.brier(*scrambled(pattern)), squares / len(pattern)), pattern


def test_one_class_is_undefined() -> None:
    for n in range(1, MOST + 1):
        for pattern in patterns(n):
            if len({label for label, _ in pattern}) == 1:
                for metric in (m.eer, m.min_dcf, m.roc_auc, m.cllr, m.min_cllr, m.tpr_at_fpr, m.fpr_at_tpr):
                    assert math.isnan(metric(*scrambled(pattern))), pattern
                for ties in ("official", "interpolated", "hull"):
                    assert math.isnan(m.eer(*scrambled(pattern), ties=ties)), pattern
