"""Bounds of samples without an error: exact laws, an independent solution of the score equation, coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq

from hitmiss.core.header import Header
from hitmiss.core.trials import Trials
from hitmiss.derive.decisions import at_threshold
from hitmiss.engine.compare import compare
from hitmiss.engine.interval import FEW_ERRORS
from hitmiss.engine.measure import measure
from hitmiss.engine.rank import compare_all
from hitmiss.metrics.detection import min_dcf_form
from hitmiss.stats.intervals import area_score_interval
from hitmiss.stats.unseen import equal_error_at_most, unseen_share

sizes = st.integers(2, 3000)


@given(n=sizes, level=st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_the_unseen_share_is_clopper_and_pearsons_upper_end_of_no_errors(n: int, level: float) -> None:
    found = stats.binomtest(0, n).proportion_ci(level, method="exact")
    assert unseen_share(n, level) == pytest.approx(found.high, rel=1e-12)


@pytest.mark.parametrize(("n1", "n0", "gap"), [(4, 4, 2.0), (6, 20, 2.5), (15, 15, 4.0)])
def test_bounds_are_broken_no_more_often_than_the_level_says(n1: int, n0: int, gap: float) -> None:
    """Normal scores of known EER and known least cost: separated samples whose bound lies below the truth are rare."""
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(gap, size=(40_000, n1)), rng.normal(size=(40_000, n0))
    apart = float((positive.min(axis=1) > negative.max(axis=1)).mean())
    assert apart > 0.01, "this must be about samples without an error"
    form = min_dcf_form(0.5, 1.0, 1.0, True)
    truth = stats.norm.sf(gap / 2)  # both error rates midway, and with equal costs the least cost is twice that
    assert apart * (equal_error_at_most(n1, n0, 0.95) < truth) <= 0.05
    assert apart * (form.most_unseen(n1, n0, 0.95) < 2 * truth) <= 0.05
    # The two events that the bound stands on, each of probability 0.025 exactly, whatever was separated.
    missed = stats.norm.cdf(positive.min(axis=1) - gap) > unseen_share(n1)
    accepted = stats.norm.sf(negative.max(axis=1)) > unseen_share(n0)
    for broken in (missed, accepted):
        assert stats.binomtest(int(broken.sum()), len(broken), 0.025).pvalue > 1e-4


@given(n1=sizes, n0=sizes, share=st.floats(0.0, 1.0), level=st.sampled_from([0.9, 0.95]))
def test_the_score_interval_solves_newcombes_equation(n1: int, n0: int, share: float, level: float) -> None:
    z, k = stats.norm.ppf(0.5 + level / 2), (n1 + n0) / 2 - 1

    def gap(theta: float) -> float:
        factor = 1 + k * (1 - theta) / (2 - theta) + k * theta / (1 + theta)
        return (share - theta) ** 2 - z**2 * theta * (1 - theta) * factor / (n1 * n0)

    low, high = area_score_interval(share, n1, n0, level)
    assert 0.0 <= low <= share <= high <= 1.0 and low < high
    for end, edge in ((low, 0.0), (high, 1.0)):
        if abs(share - edge) < 1e-9:
            assert end == pytest.approx(edge, abs=1e-9)
        elif gap(edge) > 0 > gap(share):
            assert end == pytest.approx(brentq(gap, edge, share, xtol=1e-15), abs=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize(("n1", "n0"), [(5, 5), (10, 40), (40, 10)])
def test_the_score_interval_covers(n1: int, n0: int) -> None:
    """Close to the level even for areas near 1, where DeLong's covers far too seldom (it has no width without an error)."""
    rng, gap = np.random.default_rng(1), 2.2
    positive, negative = rng.normal(gap, size=(4000, n1, 1)), rng.normal(size=(4000, 1, n0))
    areas, truth = (positive > negative).mean(axis=(1, 2)), stats.norm.cdf(gap / np.sqrt(2))
    ends = {a: area_score_interval(float(a), n1, n0) for a in np.unique(areas)}
    covered = np.mean([ends[a][0] <= truth <= ends[a][1] for a in areas])
    assert 0.93 < covered <= 1.0


# ----------------------------------------------------------------------
# Figures that rest on a handful of errors: draws contain no kind of error that was not seen.

RARE = "min_dcf(p_target=0.05, c_miss=1, c_fa=1)"


def normal_trials(rng: np.random.Generator, n1: int, n0: int, gap: float) -> Trials:
    label = np.repeat([1, 0], [n1, n0])
    return Trials.of(label, rng.normal(size=n1 + n0) + gap * label, header=Header(score_kind="llr"))


@pytest.mark.nightly
def test_intervals_of_costs_hold_the_truth_whether_they_rest_on_a_handful_of_errors_or_on_many() -> None:
    """At 5 % positives, misses are many and false alarms few; intervals by draws alone held the truth 80 % of the time."""
    gap, held = 2.6, dict[bool, list[bool]]({True: [], False: []})
    at = gap / 2 + np.log(19.0) / gap
    truth = stats.norm.cdf(at - gap) + 19.0 * stats.norm.sf(at)
    for k in range(150):
        (found,) = measure(normal_trials(np.random.default_rng(k), 120, 280, gap), [RARE], bootstrap=200, seed=k)
        assert found.low is not None and found.high is not None
        held[found.method == FEW_ERRORS].append(found.low <= truth <= found.high)
    for own in held.values():
        assert len(own) > 30
        assert stats.binomtest(sum(own), len(own), 0.93, alternative="less").pvalue > 0.01


@pytest.mark.parametrize("metric", [RARE, "dcf_at(threshold=2.5, p_target=0.05, c_miss=1, c_fa=1)"])
def test_a_cost_without_a_false_alarm_has_an_interval_by_counting_alone_and_compared(metric: str) -> None:
    score = np.r_[np.linspace(1.0, 3.0, 40), np.linspace(-2.0, 0.9, 60)]
    first = Trials.of(np.repeat([1, 0], [40, 60]), score)
    second = Trials.of(np.repeat([1, 0], [40, 60]), score + np.r_[np.tile([0.0, -0.3], 20), np.zeros(60)])
    if metric == RARE:  # two negatives above most positives: without false alarms, a third of the positives is missed
        first, second = (t.put(score=np.r_[t.score[:98], 1.7, 1.71]) for t in (first, second))
    (alone,) = measure(first, [metric], bootstrap=200)
    assert alone.method == FEW_ERRORS
    assert alone.value is not None and alone.low is not None and alone.high is not None
    # 60 negatives without a false alarm leave a rate of 4 % open (Jeffreys), and each 1 % costs 0.19.
    unseen = 19.0 * stats.beta.ppf(0.975, 0.5, 60.5)
    assert alone.low < alone.value and alone.high > min(1.0, alone.value + 0.8 * unseen)
    (paired,) = compare(first, second, [metric], bootstrap=200, force=True)
    assert paired.test == "wald" and paired.note is not None and "few errors at the threshold" in paired.note
    assert paired.delta is not None and paired.low is not None and paired.high is not None
    assert paired.low < 0.0 < paired.delta < paired.high
    assert paired.p_value is not None and paired.p_value > 0.05


def test_balanced_accuracy_without_errors_of_a_class_has_an_interval_by_counting() -> None:
    label, decision = np.repeat([1, 0], [40, 12]), np.repeat([1, 0], [37, 15])
    trials = at_threshold(Trials.of(label, decision.astype(float)), 0.5)
    balanced, recall, specificity = measure(trials, ["balanced_accuracy", "recall", "specificity"], bootstrap=200)
    assert balanced.method == FEW_ERRORS
    assert balanced.value is not None and balanced.low is not None and balanced.high is not None
    assert balanced.low < balanced.value <= balanced.high < 1.0
    assert recall.low is not None and specificity.low is not None
    # Half of what either class leaves open: it cannot reach lower than both together.
    assert balanced.low > (recall.low + specificity.low) / 2


@pytest.mark.parametrize(("positives", "said"), [(1, "one positive alone"), (5, "5 positives alone"), (6, None)])
def test_figures_of_both_classes_need_six_trials_of_each(positives: int, said: str | None) -> None:
    """One trial of a class is right or wrong in all draws, so its draws say nothing about its own error."""
    label = np.repeat([1, 0], [positives, 60])
    decision = np.r_[np.arange(positives) % 3 != 1, np.arange(60) % 6 == 0]
    trials = at_threshold(Trials.of(label, decision.astype(float)), 0.5)
    for row in measure(trials, ["balanced_accuracy", "mcc", "f1"], bootstrap=200):
        assert row.value is not None and (row.low is None) == (said is not None), row
        assert said is None or str(row.note).endswith(f"no interval: {said}")


def test_a_rate_read_at_the_end_of_its_range_has_no_interval() -> None:
    rng = np.random.default_rng(3)
    trials = normal_trials(rng, 30, 60, 3.5)
    (found,) = measure(trials, ["tpr_at_fpr(fpr=0.3)"], bootstrap=200)
    assert found.value == 1.0 and found.low is None
    assert found.note is not None and found.note.startswith("no interval")


def test_a_ranking_leaves_open_how_many_false_alarms_were_not_seen() -> None:
    """300 negatives without a false alarm leave a rate of 1 % open, which costs 0.99: nothing can be shown."""
    rng = np.random.default_rng(6)
    label, base = np.repeat([1, 0], [100, 300]), rng.normal(size=400)
    runs = {
        name: Trials.of(label, base + 0.4 * rng.normal(size=400) + gap * label)
        for name, gap in {"a": 2.0, "b": 2.2, "c": 2.4}.items()
    }
    found = compare_all(runs, ["min_dcf(p_target=0.01, c_miss=1, c_fa=1)", "eer"], bootstrap=200, force=True)
    told = {d.difference.metric.split("(")[0]: d.difference for d in found.duels}
    cost = told["min_dcf"]
    assert cost.p_adjusted is not None and cost.p_adjusted > 0.5
    assert cost.low is not None and cost.high is not None and -1.0 <= cost.low < 0.0 < cost.high <= 1.0
    assert "no error of one kind" in (cost.note or "") and told["eer"].p_adjusted is not None
