"""Two systems on the same resampled trials: every figure exact, and the law that of resampling trials."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import stats
from tests.nightly import by_day

from hitmiss.core.tally import Tally
from hitmiss.metrics.detection import cllr_form, dcf_at_form, eer_form, min_dcf_form
from hitmiss.metrics.ranking import average_precision_of_tally, fpr_at_tpr_form, tpr_at_fpr_form
from hitmiss.stats import joint_sums, paired, windows
from hitmiss.stats.counts import uniform_counts
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.sums import PairShare
from hitmiss.stats.forms.whole import Whole
from hitmiss.stats.paired import PairedDrawPlan, paired_replicates
from hitmiss.stats.replicates import trial_replicates
from hitmiss.stats.units import UnitSample, draw_units, unit_replicates

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Trials = tuple[Mask, Floats, Floats]
Pair = tuple[list[Floats], list[Floats]]


def forms() -> list[Form]:
    return [
        eer_form("grouped"),
        eer_form("official"),
        eer_form("interpolated"),
        min_dcf_form(0.95, 1.0, 10.0, True),
        min_dcf_form(0.5, 1.0, 1.0, False),
        min_dcf_form(0.01, 10.0, 1.0, True),
        tpr_at_fpr_form(0.05),
        tpr_at_fpr_form(0.0),
        fpr_at_tpr_form(0.95),
        fpr_at_tpr_form(0.0),
        dcf_at_form(0.95, 1.0, 10.0, True, 0.7),
        dcf_at_form(0.5, 1.0, 1.0, True, -100.0),
        dcf_at_form(0.5, 1.0, 1.0, True, 100.0),
    ]


def two_systems(n1: int, n0: int, seed: int, step: float = 0.0, gaps: tuple[float, float] = (2.0, 1.7)) -> Trials:
    """Correlated Gaussian scores, rounded to a step if one is given."""
    rng = np.random.default_rng(seed)
    positive = rng.permutation(np.arange(n1 + n0) < n1)
    shared = rng.normal(size=n1 + n0)
    a, b = (0.8 * shared + 0.6 * rng.normal(size=n1 + n0) + gap * positive for gap in gaps)
    return (positive, np.round(a / step) * step, np.round(b / step) * step) if step else (positive, a, b)


def paired_by_trial(positive: Mask, a: Floats, b: Floats, asked: list[Form], replicates: int, rng: Generator) -> Pair:
    """By brute force: the trials of each replicate drawn one by one, and every figure from a tally of its own."""
    members = [np.flatnonzero(positive), np.flatnonzero(~positive)]
    values = np.empty((2, len(asked), replicates))
    for r in range(replicates):
        drawn = np.concatenate([rng.choice(m, size=len(m)) for m in members if len(m)])
        for system, score in enumerate((a, b)):
            tally = Tally.of(positive[drawn], score[drawn])
            values[system, :, r] = [form.value(tally) for form in asked]
    return list(values[0]), list(values[1])


def same_law(a: Floats, b: Floats) -> float:
    return float(stats.ks_2samp(a.round(10), b.round(10)).pvalue)


def figures_of(counts: NDArray[np.int64], trials: Trials, asked: list[Form]) -> list[list[float]]:
    """By brute force: every trial repeated as often as it was drawn."""
    positive, a, b = (np.repeat(x, counts) for x in trials)
    return [[f.value(Tally.of_classes(s[positive], s[~positive])) for f in asked] for s in (a, b)]


def compare_with_all_trials(trials: Trials, replicates: int, seed: int) -> float:
    """Read certified figures, deal the same draw out to all trials, compute anew. Returns the share certified."""
    asked, rng = forms(), np.random.default_rng(seed)
    plan = PairedDrawPlan.of(trials[0], trials[1:], asked)
    draw = plan.draw(replicates, rng)
    answers = [[f.on_curve(axis.curve(draw)) for f in asked] for axis in plan.axes]
    certain = 0
    for r in range(replicates):
        counts = plan.completed(draw, r, rng)
        assert counts[trials[0]].sum() == trials[0].sum()
        assert counts.sum() == len(counts)
        for answer, expected in zip(answers, figures_of(counts, trials, asked), strict=True):
            for form, found, figure in zip(asked, answer, expected, strict=True):
                assert found is not None
                certain += not found[1][r]
                if not found[1][r]:
                    assert found[0][r] == pytest.approx(figure, abs=1e-12), form
    return certain / (2 * len(asked) * replicates)


@pytest.mark.parametrize("step", [0.0, 0.001, 0.02, 0.5], ids=["no ties", "few ties", "ties", "big ties"])
def test_certified_figures_equal_those_of_all_trials(step: float) -> None:
    assert compare_with_all_trials(two_systems(9000, 21_000, 1, step), 12, 2) > 0.99


def test_figures_that_pass_for_certain_in_narrow_windows_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many replicates leave windows as narrow as these; those that are said to be certain must still be right."""
    monkeypatch.setattr(windows, "DEVIATIONS", 0.3)
    assert 0.3 < compare_with_all_trials(two_systems(9000, 21_000, 1), 30, 3) < 0.97


@given(st.integers(0, 2**32 - 1), st.integers(2, 80), st.sampled_from([0.0, 0.5, 2.0]), st.floats(0.1, 0.9))
def test_certified_figures_equal_those_of_all_trials_of_few(seed: int, n: int, step: float, share: float) -> None:
    n1 = round(n * share)
    assume(0 < n1 < n)
    assert compare_with_all_trials(two_systems(n1, n - n1, seed, step), 4, seed) > 0


LAWS = {
    "no ties": (two_systems(1200, 2800, 3), 1500),
    "ties": (two_systems(300, 500, 4, 0.5), 1500),
    "groups too big to draw": (two_systems(3000, 5000, 5, 2.0), 1000),
    "five and four": (two_systems(5, 4, 6), 2000),
}


@pytest.mark.parametrize("kind", by_day("ties", of=LAWS))
def test_law_of_both_systems_and_of_their_difference(kind: str) -> None:
    trials, replicates = LAWS[kind]
    fast = paired_replicates(*trials, forms(), replicates, np.random.default_rng(11))
    slow = paired_by_trial(*trials, forms(), replicates, np.random.default_rng(12))
    for i, (a, b, c, d) in enumerate(zip(*fast, *slow, strict=True)):
        chance = same_law(a, c), same_law(b, d), same_law(b - a, d - c)
        assert min(chance) > 1e-4, (i, chance)


@pytest.mark.nightly
@pytest.mark.parametrize("names", ["eer", "cost", "both"])
def test_law_where_windows_are_too_narrow(names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows so narrow that many replicates leave them: these are completed, and the law is the same."""
    monkeypatch.setattr(windows, "DEVIATIONS", 0.3)
    eer, cost = eer_form("interpolated"), min_dcf_form(0.95, 1.0, 10.0, True)
    trials, asked = two_systems(1200, 2800, 3), {"eer": [eer], "cost": [cost], "both": [eer, cost]}[names]
    plan = PairedDrawPlan.of(trials[0], trials[1:], asked)
    answer = asked[0].on_curve(plan.axes[0].curve(plan.draw(300, np.random.default_rng(0))))
    assert answer is not None
    assert 0.1 < answer[1].mean() < 0.99, "this must be about replicates in doubt"
    fast = paired_replicates(*trials, asked, 1500, np.random.default_rng(13))
    slow = paired_by_trial(*trials, asked, 1500, np.random.default_rng(14))
    for a, b, c, d in zip(*fast, *slow, strict=True):
        assert min(same_law(a, c), same_law(b, d), same_law(b - a, d - c)) > 1e-4


@pytest.mark.nightly
def test_law_of_each_system_is_that_of_the_unpaired_bootstrap() -> None:
    positive, a, b = two_systems(4000, 9000, 7)
    asked = [eer_form("grouped"), min_dcf_form(0.95, 1.0, 10.0, True), tpr_at_fpr_form(0.05)]
    paired = paired_replicates(positive, a, b, asked, 5000, np.random.default_rng(15))
    for score, found in zip((a, b), paired, strict=True):
        tally = Tally.of_classes(score[positive], score[~positive])
        alone = trial_replicates(tally, asked, 5000, np.random.default_rng(16))
        assert min(same_law(x, y) for x, y in zip(found, alone, strict=True)) > 1e-4


@pytest.mark.nightly
def test_law_of_figures_that_need_every_trial() -> None:
    trials = two_systems(60, 80, 8)
    asked = [eer_form("grouped"), PairShare(), cllr_form(), Whole(average_precision_of_tally)]
    fast = paired_replicates(*trials, asked, 2000, np.random.default_rng(17))
    slow = paired_by_trial(*trials, asked, 2000, np.random.default_rng(18))
    for a, b, c, d in zip(*fast, *slow, strict=True):
        assert min(same_law(a, c), same_law(b, d), same_law(b - a, d - c)) > 1e-4
    assert same_law(fast[0][0] + fast[0][1], slow[0][0] + slow[0][1]) > 1e-4  # joint: EER and AUC of one replicate


@pytest.mark.nightly
@pytest.mark.parametrize("blocks", [6, 2])
def test_law_of_sums_drawn_by_category(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in large samples: sums from the counts of joint categories, more of them or few and made up for by noise."""
    monkeypatch.setattr(joint_sums, "LEAST", 500)
    monkeypatch.setattr(paired, "EVEN_BLOCKS", blocks)
    trials, asked = two_systems(900, 1500, 22), [PairShare(), eer_form("grouped"), cllr_form()]
    plan = PairedDrawPlan.of(trials[0], trials[1:], asked)
    assert plan.summed == [0, 2]
    assert len(plan.drawn) < 1800, "most of this must be about trials that are not drawn one by one"
    fast = paired_replicates(*trials, asked, 10_000, np.random.default_rng(23))
    slow = paired_by_trial(*trials, asked, 3000, np.random.default_rng(24))
    for a, b, c, d in zip(*fast, *slow, strict=True):
        assert min(same_law(a, c), same_law(b, d), same_law(b - a, d - c)) > 1e-4
        assert (b - a).std() == pytest.approx((d - c).std(), rel=4.5 / np.sqrt(2 * 3000))
    ours, theirs = np.corrcoef(np.vstack(fast)), np.corrcoef(np.vstack(slow))
    assert np.abs(np.arctanh(ours - np.eye(6)) - np.arctanh(theirs - np.eye(6))).max() < 4.5 / np.sqrt(3000)


def test_infinite_terms_of_sums_drawn_by_category(monkeypatch: pytest.MonkeyPatch) -> None:
    """One positive of system a has all evidence against it: infinite Cllr when drawn, and only for that system."""
    monkeypatch.setattr(joint_sums, "LEAST", 500)
    positive, a, b = two_systems(600, 700, 25)
    a[np.flatnonzero(positive)[17]] = -np.inf
    first, second = paired_replicates(positive, a, b, [cllr_form()], 10_000, np.random.default_rng(26))
    assert stats.binomtest(int(np.isfinite(first[0]).sum()), 10_000, (1 - 1 / 600) ** 600).pvalue > 1e-4
    assert np.isfinite(second[0]).all()


def test_sums_of_systems_that_hardly_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores a millionth apart: the noise of both systems must be one and the same."""
    monkeypatch.setattr(joint_sums, "LEAST", 500)
    positive, a, _ = two_systems(600, 900, 27)
    first, second = paired_replicates(positive, a, a + 1e-6, [cllr_form()], 300, np.random.default_rng(28))
    assert first[0].std() > 1e-3
    assert np.abs(second[0] - first[0]).max() < 2e-6


def test_frequencies_agree_with_the_exact_joint_law() -> None:
    """All resamples of 3 positives and 2 negatives: the pair (EER of a, EER of b)."""
    positive = np.array([True, True, True, False, False])
    a, b = np.array([0.2, 0.7, 0.9, 0.1, 0.8]), np.array([0.5, 0.3, 0.9, 0.4, 0.3])
    form, replicates = eer_form("interpolated"), 20_000
    law: Counter[tuple[float, ...]] = Counter()
    for pos in itertools.product(range(3), repeat=3):
        for neg in itertools.product((3, 4), repeat=2):
            pair = (form.value(Tally.of_classes(s[list(pos)], s[list(neg)])) for s in (a, b))
            law[tuple(round(x, 9) for x in pair)] += 1
    found = paired_replicates(positive, a, b, [form], replicates, np.random.default_rng(19))
    seen = Counter(zip(found[0][0].round(9).tolist(), found[1][0].round(9).tolist(), strict=True))
    assert set(seen) <= set(law)
    expected = np.array([times / law.total() * replicates for times in law.values()])
    assert len(law) > 8
    assert stats.chisquare([seen[v] for v in law], expected).pvalue > 1e-4


def test_a_system_does_not_differ_from_itself() -> None:
    positive, a, _ = two_systems(400, 900, 9)
    asked = [*forms(), cllr_form()]
    first, second = paired_replicates(positive, a, a, asked, 300, np.random.default_rng(20))
    assert all(np.array_equal(x, y) for x, y in zip(first, second, strict=True))
    assert len(np.unique(first[0])) > 10


def test_a_monotone_map_changes_nothing() -> None:
    positive, a, _ = two_systems(400, 900, 10)
    asked = [eer_form("grouped"), min_dcf_form(0.95, 1.0, 10.0, True), fpr_at_tpr_form(0.9)]
    first, second = paired_replicates(positive, a, np.exp(a), asked, 300, np.random.default_rng(21))
    assert all(np.array_equal(x, y) for x, y in zip(first, second, strict=True))


def test_one_class_is_undefined() -> None:
    for positive in (np.ones(4, dtype=bool), np.zeros(4, dtype=bool)):
        for system in paired_replicates(positive, np.arange(4.0), np.arange(4.0), forms(), 6, np.random.default_rng(0)):
            assert np.isnan(system).all()
            assert np.shape(system) == (len(forms()), 6)


def test_constant_and_infinite_scores() -> None:
    positive = np.repeat([True, False], [6, 5])
    infinite = np.where(positive, np.inf, -np.inf)
    a, b = paired_replicates(positive, np.zeros(11), infinite, forms()[:6], 50, np.random.default_rng(1))
    tally = Tally.of(positive, np.zeros(11))
    for form, values in zip(forms()[:6], a, strict=True):
        assert values == pytest.approx(np.full(50, form.value(tally)), abs=1e-12)
    assert not np.any(b)


def test_same_seed_same_bits() -> None:
    trials = two_systems(2000, 3000, 11)
    runs = [paired_replicates(*trials, forms(), 200, np.random.default_rng(s)) for s in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_units_of_both_systems_share_their_weights() -> None:
    rng = np.random.default_rng(12)
    positive, a, b = two_systems(300, 500, 13)
    unit = rng.integers(0, 40, size=800)
    weights = draw_units(unit, positive, 40, 30, rng)
    samples = [UnitSample.of(positive, s, unit, 40) for s in (a, b)]
    found = [unit_replicates(sample, forms(), weights) for sample in samples]
    for r, row in enumerate(weights):
        expected = figures_of(row[unit].astype(np.int64), (positive, a, b), forms())
        assert [[v[r] for v in system] for system in found] == pytest.approx(np.array(expected), abs=1e-12)


@pytest.mark.parametrize(("n", "replicates"), [(2, 5000), (40, 3000), (20_000, 200)])
def test_uniform_counts_are_multinomial(n: int, replicates: int) -> None:
    """Each trial's count is binomial, and two trials' counts are as negatively correlated as they must be."""
    totals = np.full(replicates, n)
    counts = uniform_counts(n, totals, np.random.default_rng(14))
    assert counts.shape == (n, replicates)
    assert (counts.sum(axis=0, dtype=np.int64) == totals).all()
    some = counts[:1] if n < 1000 else counts  # among thousands, counts are nearly independent
    law = stats.binom(n, 1 / n).pmf(np.arange(9))
    expected = np.append(law, max(1 - law.sum(), 0)) * some.size
    observed = np.bincount(np.minimum(some.ravel(), 9), minlength=10)
    likely = expected > 3
    assert stats.chisquare(observed[likely], expected[likely], sum_check=False).pvalue > 1e-4
    assert observed[~likely].sum() <= 3 * expected[~likely].sum() + 5
    halves = counts[: n // 2].sum(axis=0, dtype=np.int64)
    assert (
        same_law(halves.astype(float), stats.binom(n, (n // 2) / n).rvs(20_000, random_state=15).astype(float)) > 1e-4
    )


def test_uniform_counts_of_unequal_totals() -> None:
    totals = np.array([0, 1, 2400, 2500, 2600])
    counts = uniform_counts(2500, totals, np.random.default_rng(16))
    assert counts.sum(axis=0, dtype=np.int64).tolist() == totals.tolist()
    assert (uniform_counts(1, totals[:2], np.random.default_rng(0)) == [[0, 1]]).all()
    assert uniform_counts(0, np.zeros(3, dtype=np.int64), np.random.default_rng(0)).shape == (0, 3)
