"""Intervals where resampling shows no width: a bound, or none with its reason, never one of no width."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from hitmiss.core.header import Header
from hitmiss.core.results import Estimate
from hitmiss.core.trials import Trials
from hitmiss.engine.measure import measure
from hitmiss.stats.intervals import area_score_interval, wilson

METRICS = ["eer", "min_dcf(p_target=0.5, c_miss=1, c_fa=1)", "roc_auc", "brier", "tpr_at_fpr(fpr=0.1)"]


def trials(positive: list[float], negative: list[float]) -> Trials:
    n = len(positive) + len(negative)
    label, score = [1] * len(positive) + [0] * len(negative), [*positive, *negative]
    columns = {"half": ["a", "b"] * (n // 2), "speaker": [str(i % 4) for i in range(n)]}
    return Trials.of(label, score, **columns, header=Header(score_kind="probability"))


APART = trials([0.8, 0.85, 0.9, 0.95] * 3, [0.1, 0.2] * 10)


def rows(of: Trials, **options: object) -> dict[str, Estimate]:
    return {e.metric.partition("(")[0]: e for e in measure(of, METRICS, bootstrap=200, **options) if not e.slice}  # type: ignore[arg-type]


def test_classes_apart_get_what_so_few_trials_leave_open() -> None:
    found = rows(APART)
    missed, accepted = (stats.binomtest(0, n).proportion_ci(0.95).high for n in (12, 20))
    assert (found["eer"].low, found["eer"].high) == (0.0, pytest.approx(missed))
    assert (found["min_dcf"].low, found["min_dcf"].high) == (0.0, pytest.approx(missed + accepted))
    assert (found["roc_auc"].low, found["roc_auc"].high) == pytest.approx(area_score_interval(1.0, 12, 20))
    assert "no error seen" in str(found["eer"].note) and found["roc_auc"].method == "newcombe"
    assert found["tpr_at_fpr"].low is None and "same number" in str(found["tpr_at_fpr"].note)
    assert found["brier"].low is not None and found["brier"].method.startswith("bootstrap")  # type: ignore[union-attr]


def test_without_a_bootstrap_the_area_has_a_width_too() -> None:
    (row,) = measure(APART, ["roc_auc"])
    assert (row.low, row.high) == pytest.approx(area_score_interval(1.0, 12, 20)) and row.method == "newcombe"


@pytest.mark.parametrize("unit", [None, "speaker"])
@pytest.mark.parametrize(
    "of", [APART, trials([0.5] * 12, [0.5] * 20), trials([0.1] * 12, [0.9] * 20)], ids=["apart", "constant", "reversed"]
)
def test_no_interval_is_without_width(of: Trials, unit: str | None) -> None:
    for row in measure(of, METRICS, bootstrap=200, by=["half"], unit=unit):
        if row.average != "worst" and row.value is not None:
            assert row.low is None or row.low < row.high, row  # type: ignore[operator]
            assert row.low is not None or "no interval" in str(row.note), row
            assert row.low is None or unit is None or row.method.startswith("bootstrap")  # type: ignore[union-attr]


def test_a_single_error_is_resampled_as_ever() -> None:
    one = trials([0.8, 0.85, 0.9, 0.15] * 3, [0.1, 0.2] * 10)
    found = rows(one)
    assert found["eer"].method.startswith("bootstrap")  # type: ignore[union-attr]
    assert np.isfinite([found["eer"].low, found["eer"].high]).all()  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("n", [8, 20, 60])
def test_a_share_without_any_error_is_bounded_by_its_units(n: int, level: float) -> None:
    """The worst case: the trials of a speaker are right or wrong together. A larger share of wrong speakers than the
    bound would have shown up among n of them more often than the level allows."""
    speaker = [f"s{i // 5}" for i in range(5 * n)]
    trials = Trials.of([0, 1] * (5 * n // 2), decision=[0, 1] * (5 * n // 2), speaker=speaker)
    found = measure(trials, ["accuracy"], bootstrap=50, unit="speaker", level=level).one("accuracy")
    assert found.value == found.high == 1.0 and found.low is not None and found.method == "wilson over units"
    assert 0.1 * (1.0 - level) < found.low**n <= 1.0 - level


def test_a_share_of_some_trials_is_bounded_by_the_units_that_have_them() -> None:
    """Recall counts positives alone, which 10 of 30 speakers have: the other 20 say nothing about it."""
    n = 30
    speaker = [f"s{i // 4}" for i in range(4 * n)]
    label = [int(i // 4 < 10 and i % 2 == 0) for i in range(4 * n)]
    trials = Trials.of(label, decision=label, speaker=speaker)
    found = {e.metric: e for e in measure(trials, ["accuracy", "recall"], bootstrap=50, unit="speaker")}
    for name, units in (("accuracy", 30), ("recall", 10)):
        assert (found[name].low, found[name].high) == pytest.approx(wilson(units, units))


def _with_errors(errors: list[int], units: int = 60, each: int = 1) -> Estimate:
    """The miss rate with these positives missed, with an interval over speakers."""
    n = units * each
    label = [1] * n + [0] * units
    decision = [int(i not in errors) for i in range(n)] + [0] * units
    trials = Trials.of(
        label, decision=decision, speaker=[f"s{i // each}" for i in range(n)] + [f"s{i}" for i in range(units)]
    )
    return measure(trials, ["fnr"], bootstrap=200, unit="speaker").one("fnr")


@pytest.mark.parametrize("each", [1, 5])
def test_one_error_widens_the_interval_of_a_share_over_units_a_little(each: int) -> None:
    """None of 60 speakers gives at most 6 %; one wrong trial gave up to 38 %, since one unit alone showed the spread."""
    none, one, three = (_with_errors(wrong, each=each) for wrong in ([], [0], [0, 20, 59 * each]))
    expected = proportion_confint(60 * one.value, 60, method="wilson")  # type: ignore[operator]
    assert (one.low, one.high) == pytest.approx(expected) and one.method == "wilson over units"
    assert none.high < one.high < 0.1  # type: ignore[operator]
    widest = proportion_confint(60 * three.value, 60, method="wilson")  # type: ignore[operator]
    assert three.method.startswith("bootstrap")  # type: ignore[union-attr]
    assert widest[0] - 1e-9 <= three.low < three.value < three.high <= widest[1] + 1e-9  # type: ignore[operator]
