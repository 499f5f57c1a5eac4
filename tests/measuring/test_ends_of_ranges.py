"""Numbers at the end of their range, of tied scores, and of few units: the interval that simulation supports, or its reason."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t

from hitmiss.core.trials import Trials
from hitmiss.engine.measure import measure
from hitmiss.stats.intervals import student


def of(n: int, step: float, seed: int = 0) -> Trials:
    """Trials of two normal classes; `step`: to which multiples scores are rounded."""
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.3
    score = 2.5 * label + rng.normal(size=n)
    return Trials.of(label, np.round(score / step) * step if step else score)


def test_the_threshold_of_tied_scores_has_no_interval() -> None:
    """It is one of few values; without ties it has an interval."""
    (tied,) = measure(of(600, 0.2), ["eer_threshold"], bootstrap=100)
    (free,) = measure(of(600, 0.0), ["eer_threshold"], bootstrap=100)
    assert tied.low is None and "values" in (tied.note or "")
    assert free.low is not None and free.high is not None and free.low < free.high


@pytest.mark.parametrize("degrees", [4.0, 9.0])
def test_the_error_of_few_units_is_carried_to_the_scale_by_its_slope(degrees: float) -> None:
    """The formula by hand: logit ± t · √(G / (G − 1)) · deviation / (v (1 − v)), moved out by the bias."""
    value, rng = 0.96, np.random.default_rng(1)
    drawn = np.clip(value + 0.015 * rng.normal(size=400), 0.8, 0.995)
    bias = float(np.mean(np.log(drawn / (1 - drawn))) - math.log(value / (1 - value)))
    error = np.std(drawn, ddof=1) / (value * (1 - value)) * math.sqrt((degrees + 1) / degrees)
    half = t.ppf(0.975, degrees) * error
    centre = math.log(value / (1 - value))
    by_hand = [centre - half - max(bias, 0.0), centre + half - min(bias, 0.0)]
    found = student(drawn, value, degrees, (0.0, 1.0))
    assert found == pytest.approx([1 / (1 + math.exp(-end)) for end in by_hand], rel=1e-9)


def test_many_units_keep_the_deviation_on_the_scale() -> None:
    """With 10,000 units nothing of the slope is left."""
    drawn = np.random.default_rng(2).beta(96, 4, size=400)
    value = 0.96
    on_scale = np.log(drawn / (1 - drawn))
    half = 1.96 * float(np.std(on_scale, ddof=1))
    low, high = student(drawn, value, 9_999.0, (0.0, 1.0))
    wide = math.log(high / (1 - high)) - math.log(low / (1 - low))
    assert wide == pytest.approx(2 * half, rel=2e-3)


def test_few_wrong_answers_widen_the_excess_of_the_risk() -> None:
    """Student's quantile of as many degrees as answers are wrong: far wider with 5 than with 500, in deviations."""
    ratios = []
    for n, seed in ((60, 3), (6000, 4)):
        rng = np.random.default_rng(seed)
        label = rng.random(n) < 0.5
        decision = label ^ (rng.random(n) < 0.08)
        sure = np.round(rng.uniform(0.5, 1.0, n), 3)
        trials = Trials.of(label, decision=decision.astype(int), confidence=sure)
        (found,) = measure(trials, ["augrc"], bootstrap=400)
        (inner,) = measure(trials, ["augrc"], bootstrap=400, interval="percentile")
        assert None not in (found.low, found.high, inner.low, inner.high)
        ratios.append((found.high - found.low) / (inner.high - inner.low))  # type: ignore[operator]
    assert ratios[0] > 1.05 * ratios[1]
