"""Class-stratified replicates against brute force: same law for every form, alone or together, with ties and without."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.nightly import by_day

from hitmiss.core.tally import Tally
from hitmiss.metrics.calibration import brier_form, log_loss_form
from hitmiss.metrics.detection import cllr_form, dcf_at_form, eer_form, hull_eer, min_cllr_of_tally, min_dcf_form
from hitmiss.metrics.ranking import average_precision_of_tally, fpr_at_tpr_form, tpr_at_fpr_form
from hitmiss.stats.cells import cut
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.sums import ClassSums, PairShare
from hitmiss.stats.forms.whole import Whole
from hitmiss.stats.replicates import count_replicates, draw_cells, read_whole, resampled, trial_replicates
from hitmiss.stats.sums import class_sum, ordered_pairs

Floats = NDArray[np.float64]
Sample = tuple[Floats, Floats]

FORMS: dict[str, Callable[[], Form]] = {
    "eer grouped": lambda: eer_form("grouped"),
    "eer official": lambda: eer_form("official"),
    "eer interpolated": lambda: eer_form("interpolated"),
    "min_dcf 0.95": lambda: min_dcf_form(0.95, 1.0, 10.0, True),
    "min_dcf 0.5": lambda: min_dcf_form(0.5, 1.0, 1.0, False),
    "min_dcf 0.01": lambda: min_dcf_form(0.01, 10.0, 1.0, True),
    "tpr_at_fpr": lambda: tpr_at_fpr_form(0.05),
    "fpr_at_tpr": lambda: fpr_at_tpr_form(0.9),
    "dcf_at": lambda: dcf_at_form(0.95, 1.0, 10.0, True, 0.5),
    "auc": PairShare,
    "cllr": cllr_form,
    "average_precision": lambda: Whole(average_precision_of_tally),
    "min_cllr": lambda: Whole(min_cllr_of_tally),
    "hull eer": lambda: Whole(hull_eer),
}
EXACT = [name for name in FORMS if name.split()[0] in {"eer", "min_dcf", "tpr_at_fpr", "fpr_at_tpr", "dcf_at"}]


def gaussian(n1: int, n0: int, seed: int, gap: float = 2.0) -> Sample:
    rng = np.random.default_rng(seed)
    return rng.normal(gap, 1.0, size=n1), rng.normal(0.0, 1.0, size=n0)


def in_steps(sample: Sample, step: float) -> Sample:
    return np.round(sample[0] / step) * step, np.round(sample[1] / step) * step


def uneven(seed: int) -> Sample:
    """Groups of 1 or 40 trials by turns: the halves of a cell hold very different shares of it."""
    rng = np.random.default_rng(seed)
    levels = np.arange(600.0)
    sizes = [rng.choice([1, 40], size=600, p=[0.7, 0.3]) for _ in range(2)]
    return np.repeat(levels, sizes[0]) + 150.0, np.repeat(levels, sizes[1])


SAMPLES: dict[str, Sample] = {
    "no ties": gaussian(120, 200, 1),
    "ties": in_steps(gaussian(150, 90, 2), 1.0),
    "three and three": (np.array([0.2, 0.7, 0.9]), np.array([0.1, 0.2, 0.8])),
    "infinite": (
        np.append(gaussian(60, 0, 3)[0], [np.inf, np.inf, -np.inf]),
        np.append(gaussian(0, 50, 4)[1], [-np.inf, np.inf]),
    ),
    "more scores than cells": gaussian(500, 900, 5, 1.5),
}


def by_brute_force(sample: Sample, forms: Sequence[Form], replicates: int, seed: int) -> list[Floats]:
    """Draw the trials of each class and count them anew."""
    rng = np.random.default_rng(seed)
    values = np.empty((len(forms), replicates))
    for r in range(replicates):
        tally = Tally.of_classes(*(rng.choice(s, size=len(s)) for s in sample))
        values[:, r] = [f.value(tally) for f in forms]
    return list(values)


def same_law(a: Floats, b: Floats) -> float:
    """Kolmogorov–Smirnov on 10 decimals: equal figures summed in another order differ in the last place."""
    assert np.array_equal(np.isnan(a).any(), np.isnan(b).any())
    return float(stats.ks_2samp(a.round(10), b.round(10)).pvalue)


@pytest.mark.parametrize("kind", by_day("ties", "three and three", of=SAMPLES))
def test_law_of_every_form_asked_together(kind: str) -> None:
    sample, replicates = SAMPLES[kind], 2000
    forms = [make() for make in FORMS.values()]
    fast = trial_replicates(Tally.of_classes(*sample), forms, replicates, np.random.default_rng(11))
    slow = by_brute_force(sample, forms, replicates, 12)
    chance = {name: same_law(a, b) for name, a, b in zip(FORMS, fast, slow, strict=True)}
    assert min(chance.values()) > 1e-4, chance


@pytest.mark.nightly
def test_law_where_cells_are_split() -> None:
    """Crossings and minima alone, on far more groups than cells: each split must follow the shares of its halves."""
    sample, forms = uneven(8), [FORMS[name]() for name in EXACT]
    fast = trial_replicates(Tally.of_classes(*sample), forms, 3000, np.random.default_rng(13))
    slow = by_brute_force(sample, forms, 2000, 14)
    chance = {name: same_law(a, b) for name, a, b in zip(EXACT, fast, slow, strict=True)}
    assert min(chance.values()) > 1e-4, chance


@pytest.fixture(scope="module")
def together() -> dict[str, Floats]:
    forms = [make() for make in FORMS.values()]
    tally = Tally.of_classes(*SAMPLES["more scores than cells"])
    return dict(zip(FORMS, trial_replicates(tally, forms, 4000, np.random.default_rng(22)), strict=True))


@pytest.mark.nightly
@pytest.mark.parametrize("name", FORMS)
def test_law_of_a_form_asked_alone_is_the_same(name: str, together: dict[str, Floats]) -> None:
    tally = Tally.of_classes(*SAMPLES["more scores than cells"])
    replicates = 2000 if isinstance(FORMS[name](), Whole) else 8000
    alone = trial_replicates(tally, [FORMS[name]()], replicates, np.random.default_rng(21))[0]
    assert same_law(alone, together[name]) > 1e-4


@pytest.mark.nightly
def test_figures_of_the_whole_curve_on_more_scores_than_cells() -> None:
    """Cells are coarser than the scores here: the law is approximate, and must still pass."""
    sample, forms = gaussian(2500, 4000, 6, 1.5), [FORMS[n]() for n in ("average_precision", "min_cllr", "auc", "cllr")]
    fast = trial_replicates(Tally.of_classes(*sample), forms, 1500, np.random.default_rng(31))
    slow = by_brute_force(sample, forms, 1500, 32)
    assert min(same_law(a, b) for a, b in zip(fast, slow, strict=True)) > 1e-4


@pytest.mark.nightly
@pytest.mark.parametrize("form", [brier_form(), log_loss_form()], ids=["brier", "log_loss"])
def test_law_of_sums_over_probabilities(form: Form) -> None:
    rng = np.random.default_rng(7)
    sample = rng.beta(3, 1, size=400), rng.beta(1, 2, size=300)
    fast = trial_replicates(Tally.of_classes(*sample), [form], 4000, np.random.default_rng(41))[0]
    slow = by_brute_force(sample, [form], 4000, 42)[0]
    assert same_law(fast, slow) > 1e-4


@pytest.mark.parametrize("kind", ["no ties", "ties"])
def test_joint_law_of_two_forms(kind: str) -> None:
    """Sum, difference and correlation of EER and minDCF: the forms are read off the same replicates."""
    sample, forms = SAMPLES[kind], [FORMS["eer interpolated"](), FORMS["min_dcf 0.95"]()]
    a, b = trial_replicates(Tally.of_classes(*sample), forms, 20_000, np.random.default_rng(51))
    c, d = by_brute_force(sample, forms, 4000, 52)
    assert same_law(a + b, c + d) > 1e-4
    assert same_law(b - 2 * a, d - 2 * c) > 1e-4
    ours, theirs = (math.atanh(np.corrcoef(x, y)[0, 1]) for x, y in ((a, b), (c, d)))
    assert theirs > 0.3, "the two figures must depend on each other for this to prove anything"
    assert abs(ours - theirs) < 4.5 / math.sqrt(4000)


def every_resample(sample: Sample, form: Form) -> dict[float, Fraction]:
    """The exact law: all resamples of both classes, each alike."""
    law: Counter[float] = Counter()
    for pos in itertools.product(sample[0], repeat=len(sample[0])):
        for neg in itertools.product(sample[1], repeat=len(sample[1])):
            law[round(form.value(Tally.of_classes(np.array(pos), np.array(neg))), 9)] += 1
    return {value: Fraction(times, law.total()) for value, times in law.items()}


@pytest.mark.parametrize("name", [n for n in FORMS if n != "hull eer"])
@pytest.mark.parametrize(
    "sample",
    [
        (np.array([0.2, 0.7, 0.9]), np.array([0.1, 0.2, 0.8])),
        (np.array([1.0, 2.0, 2.0]), np.array([2.0, 1.0])),
        (np.array([0.4]), np.array([0.4, 0.1, 0.6])),
    ],
    ids=["3+3", "3+2 tied", "1+3"],
)
def test_frequencies_agree_with_the_exact_law(name: str, sample: Sample) -> None:
    form, replicates = FORMS[name](), 4000
    law = every_resample(sample, form)
    drawn = trial_replicates(Tally.of_classes(*sample), [form], replicates, np.random.default_rng(61))[0]
    seen = Counter(np.round(drawn, 9).tolist())
    assert set(seen) <= set(law), "a figure that no resample has"
    expected = np.array([float(p) * replicates for p in law.values()])
    if len(law) == 1:
        assert seen[next(iter(law))] == replicates
        return
    observed = np.array([seen[v] for v in law], dtype=float)
    assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_infinite_evidence_is_as_frequent_as_it_is_drawn() -> None:
    """One of 63 positives at −∞ and one of 52 negatives at +∞ make Cllr infinite when drawn, and only then."""
    sample = SAMPLES["infinite"]
    drawn = trial_replicates(Tally.of_classes(*sample), [cllr_form()], 20_000, np.random.default_rng(71))[0]
    finite = (1 - 1 / 63) ** 63 * (1 - 1 / 52) ** 52
    assert stats.binomtest(int(np.isfinite(drawn).sum()), 20_000, finite).pvalue > 1e-4


def test_infinite_log_loss_is_as_frequent_as_it_is_drawn() -> None:
    """A probability of exactly 0 for one of 400 positives; its many neighbours near 0 must not share its infinity."""
    rng = np.random.default_rng(8)
    pos, neg = np.append(rng.uniform(0.0, 1.0, size=399), 0.0), rng.uniform(0.0, 0.9, size=400)
    form = log_loss_form()
    drawn = trial_replicates(Tally.of_classes(pos, neg), [form], 10_000, np.random.default_rng(72))[0]
    assert stats.binomtest(int(np.isinf(drawn).sum()), 10_000, 1 - (1 - 1 / 400) ** 400).pvalue > 1e-4
    slow = by_brute_force((pos, neg), [form], 3000, 73)[0]
    assert same_law(drawn[np.isfinite(drawn)], slow[np.isfinite(slow)]) > 1e-4


@pytest.mark.nightly
def test_one_extreme_term_that_makes_most_of_the_sum() -> None:
    """Cllr hangs on how often the one absurd log-likelihood ratio is drawn; its neighbours must not blur that."""
    rng = np.random.default_rng(0)
    low = np.append(rng.uniform(-7.0, -6.0, size=8), -5000.0)
    sample = np.append(rng.normal(2, 1, size=2000), low), rng.normal(-2, 1, size=3000)
    fast = trial_replicates(Tally.of_classes(*sample), [cllr_form()], 10_000, np.random.default_rng(74))[0]
    slow = by_brute_force(sample, [cllr_form()], 3000, 75)[0]
    assert same_law(fast, slow) > 1e-4


@pytest.mark.parametrize("name", ["cllr", "auc"])
def test_noise_makes_up_for_coarse_cells(name: str) -> None:
    """A handful of cells only: counts of cells alone would miss a good part of the spread."""
    sample, form = gaussian(700, 900, 9, 1.5), FORMS[name]()
    cells = cut(Tally.of_classes(*sample), [], 3)
    rng = np.random.default_rng(76)
    p, q = draw_cells(cells, 20_000, rng)
    if isinstance(form, ClassSums):
        tally = cells.tally
        sums = [
            class_sum(cells, counts, drawn, term, rng)
            for counts, drawn, term in (
                (tally.positive_counts, p, form.positive),
                (tally.negative_counts, q, form.negative),
            )
        ]
        fast = form.combine(sums[0], 700, sums[1], 900)
    else:
        fast, bare = ordered_pairs(cells, p, q, rng), ordered_pairs(cells, p, q, None)
        assert bare.std() < 0.98 * fast.std(), "noise too small to prove anything"
    slow = by_brute_force(sample, [form], 4000, 77)[0]
    assert same_law(fast, slow) > 1e-4
    assert fast.std() == pytest.approx(slow.std(), rel=4.5 / math.sqrt(2 * 4000))


def test_figures_of_coarse_curves_are_centred_on_the_sample() -> None:
    sample, form = gaussian(700, 900, 10, 1.5), Whole(average_precision_of_tally)
    tally = Tally.of_classes(*sample)
    cells = cut(tally, [], 24)
    assert abs(form.value(cells.coarse()) - form.value(tally)) > 0.002, "cells too fine to prove anything"
    fast = read_whole(form, cells, *draw_cells(cells, 4000, np.random.default_rng(78)))
    slow = by_brute_force(sample, [form], 4000, 79)[0]
    assert fast.mean() == pytest.approx(slow.mean(), abs=4.5 * slow.std() / math.sqrt(2000))


def test_one_class_is_undefined() -> None:
    forms = [make() for make in FORMS.values()]
    for sample in ((np.array([1.0, 2.0]), np.zeros(0)), (np.zeros(0), np.array([1.0]))):
        for values in trial_replicates(Tally.of_classes(*sample), forms, 5, np.random.default_rng(0)):
            assert values.shape == (5,)
            assert np.isnan(values).all()


def test_constant_scores_leave_nothing_to_chance() -> None:
    tally = Tally.of_classes(np.full(7, 3.0), np.full(9, 3.0))
    forms = [make() for make in FORMS.values()]
    drawn = trial_replicates(tally, forms, 50, np.random.default_rng(0))
    for name, form, values in zip(FORMS, forms, drawn, strict=True):
        assert values == pytest.approx(np.full(50, form.value(tally)), abs=1e-12), name
    assert FORMS["eer official"]().value(tally) == 1.0


def test_perfect_scores_have_no_error_in_any_replicate() -> None:
    tally = Tally.of_classes(np.array([2.0, 3.0, 4.0]), np.array([-1.0, 0.0]))
    for name in ("eer grouped", "eer official", "eer interpolated", "min_dcf 0.95", "min_dcf 0.01"):
        assert not trial_replicates(tally, [FORMS[name]()], 200, np.random.default_rng(1))[0].any(), name


def test_same_seed_same_bits() -> None:
    tally, forms = Tally.of_classes(*SAMPLES["more scores than cells"]), [make() for make in FORMS.values()]
    first, second = (trial_replicates(tally, forms, 300, np.random.default_rng(9)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    other = trial_replicates(tally, forms, 300, np.random.default_rng(10))
    assert not np.array_equal(first[0], other[0])


def test_order_of_the_exact_forms_does_not_matter() -> None:
    """Crossings, minima and fixed thresholds are read from one search: any order of the same forms gives the same bits.
    (Another *set* of forms gives other digits of the same law; sums draw their noise in the order asked.)"""
    tally, forms = Tally.of_classes(*SAMPLES["more scores than cells"]), [FORMS[n]() for n in EXACT]
    forward = trial_replicates(tally, forms, 300, np.random.default_rng(9))
    backward = trial_replicates(tally, forms[::-1], 300, np.random.default_rng(9))
    assert all(np.array_equal(a, b) for a, b in zip(forward, backward[::-1], strict=True))


DIGEST = """
import hashlib, numpy as np
from hitmiss.metrics.detection import cllr_form, eer_form, min_dcf_form
from hitmiss.stats.replicates import trial_replicates
from hitmiss.stats.forms import PairShare
from hitmiss.core.tally import Tally
rng = np.random.default_rng(0)
tally = Tally.of_classes(rng.normal(2, 1, size=40_000), rng.normal(0, 1, size=60_000))
forms = [eer_form("grouped"), min_dcf_form(0.95, 1.0, 10.0, True), PairShare(), cllr_form()]
values = trial_replicates(tally, forms, 2000, np.random.default_rng(1))
print(*(hashlib.sha256(v.tobytes()).hexdigest() for v in values))
"""


def test_number_of_threads_does_not_change_a_bit() -> None:
    digests = []
    for threads in ("1", "2"):
        env = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        run = subprocess.run([sys.executable, "-c", DIGEST], capture_output=True, text=True, check=True, env=env)
        digests.append(run.stdout)
    assert digests[0] == digests[1]
    assert len(set(digests[0].split())) == 4


def test_counts_of_decisions_keep_the_size_of_each_class() -> None:
    outcomes = np.array([30, 8, 5, 50, 2, 0])
    drawn = count_replicates(outcomes, 20_000, np.random.default_rng(2))
    assert (drawn[:, [0, 2, 4]].sum(axis=1) == 37).all()
    assert (drawn[:, [1, 3, 5]].sum(axis=1) == 58).all()
    for k, n in ((0, 37), (1, 58), (2, 37), (4, 37)):
        law = stats.binom(n, outcomes[k] / n)
        support = np.arange(n + 1)
        expected = law.pmf(support) * 20_000
        rare = expected < 5
        observed = np.bincount(drawn[:, k].astype(int), minlength=n + 1)
        bins = [np.append(x[~rare], x[rare].sum()) for x in (observed, expected)]
        assert stats.chisquare(bins[0], bins[1] * bins[0].sum() / bins[1].sum()).pvalue > 1e-4
    assert not drawn[:, 5].any()


def test_counts_of_decisions_of_one_class() -> None:
    drawn = count_replicates(np.array([4, 0, 6, 0, 0, 0]), 100, np.random.default_rng(3))
    assert (drawn.sum(axis=1) == 10).all()
    assert not drawn[:, [1, 3, 5]].any()


def test_resampling_trials_keeps_the_classes() -> None:
    positive, score = np.array([True, True, False, False, False]), np.array([1.0, 2.0, 10.0, 20.0, 30.0])

    def check(label: NDArray[np.int8], drawn: Floats) -> float:
        assert set(drawn[label == 1]) <= {1.0, 2.0}
        assert set(drawn[label == 0]) <= {10.0, 20.0, 30.0}
        assert (label == 1).sum() == 2
        return float(drawn.sum())

    values = resampled(check, positive, score, 400, np.random.default_rng(4))
    law: Counter[float] = Counter(
        sum(p) + sum(q)
        for p in itertools.product((1.0, 2.0), repeat=2)
        for q in itertools.product((10.0, 20.0, 30.0), repeat=3)
    )
    seen = Counter(values.tolist())
    expected = np.array([400 * times / law.total() for times in law.values()])
    assert stats.chisquare([seen[v] for v in law], expected).pvalue > 1e-4
