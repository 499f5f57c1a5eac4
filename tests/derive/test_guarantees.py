"""Guarantees over units, and for verdicts with a confidence: kept on new data as often as they promise."""

from __future__ import annotations

import numpy as np
import pytest

from hitmiss.core.design import LeastConfidence
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.derive.bands import Units, at_sureness, by_confidence, guaranteed, judge_sureness, least_confidence


def clips(rng: np.random.Generator, items: int, frames: int) -> Trials:
    """Items with several frames each that are much alike (a share of 0.8 of the variance)."""
    label = rng.random(items) < 0.5
    level = np.sqrt(0.8) * rng.normal(size=items) + 1.5 * label
    unit = np.repeat(np.arange(items), frames)
    score = level[unit] + np.sqrt(0.2) * rng.normal(size=items * frames)
    return Trials.of(label[unit], score, clip=np.char.add("c", unit.astype(str)))


def tally_of(trials: Trials) -> Tally:
    positive = trials.label == 1
    return Tally.of_classes(trials.score[positive], trials.score[~positive])


@pytest.mark.nightly
def test_a_guarantee_over_units_holds_where_one_over_rows_does_not() -> None:
    """Ten frames per item: over rows the promise broke in more than a fifth of the repeats, promised 5 %."""
    rng, repeats = np.random.default_rng(0), 150
    new = clips(rng, 20_000, 3)
    positive, score = new.label == 1, new.score
    broken = {"rows": 0, "units": 0}
    for _ in range(repeats):
        seen = clips(rng, 300, 10)
        for name, units in (("rows", None), ("units", Units.of(seen, "clip"))):
            point = guaranteed(tally_of(seen), 0.1, 0.1, units=units).point
            assert point is not None
            slip = float((score[positive] < point.bands.low).mean())
            flag = float((score[~positive] >= point.bands.high).mean())
            broken[name] += slip > 0.1 or flag > 0.1
    assert broken["units"] <= 0.05 * repeats and broken["rows"] > 0.15 * repeats


def test_too_few_units_give_no_guarantee_and_say_how_many_it_needs() -> None:
    seen = clips(np.random.default_rng(1), 40, 10)
    found = guaranteed(tally_of(seen), 0.05, 0.05, units=Units.of(seen, "clip"))
    assert found.point is None and "needs 72 units" in found.reason


def verdicts(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Wrong verdicts are likelier where the confidence is low."""
    confidence = np.round(rng.random(n), 2)
    return rng.random(n) < 0.35 * (1 - confidence), confidence, rng.random(n) < 0.5


@pytest.mark.nightly
def test_the_least_confidence_keeps_the_slip_on_new_data() -> None:
    rng, repeats, broken = np.random.default_rng(2), 400, 0
    grid = np.round(np.arange(0, 1.01, 0.01), 2)
    chance = np.full(101, 0.01)
    chance[[0, -1]] = 0.005
    for _ in range(repeats):
        found = least_confidence(*verdicts(rng, 600), 0.05)
        assert found.least is not None
        inside = grid >= found.least
        broken += float((chance * 0.35 * (1 - grid))[inside].sum()) > 0.05
    assert broken <= 0.05 * repeats + 2 * np.sqrt(0.05 * 0.95 * repeats)


def test_the_least_confidence_over_units_is_no_lower_and_needs_enough_of_them() -> None:
    wrong, confidence, positive = verdicts(np.random.default_rng(3), 2000)
    unit = np.repeat(np.arange(400), 5)
    alone = least_confidence(wrong, confidence, positive, 0.05)
    whole = least_confidence(wrong, confidence, positive, 0.05, unit=unit)
    assert alone.least is not None and whole.least is not None and whole.least >= alone.least
    few = least_confidence(wrong[:50], confidence[:50], positive[:50], 0.05)
    assert few.least is None and "needs 59 positives" in few.reason
    bad = least_confidence(np.ones(300, dtype=bool), np.full(300, 0.9), np.ones(300, dtype=bool), 0.05)
    assert bad.least is None and "most confident" in bad.reason


@pytest.mark.nightly
def test_least_confidences_of_both_verdicts_keep_both_rates_on_new_data() -> None:
    """Two limits chosen at once: at most 5 % of the draws break either of them, with and without units."""
    rng, repeats, broken = np.random.default_rng(4), 150, {"rows": 0, "units": 0}
    new = _judged(rng, 40_000, 1)
    for _ in range(repeats):
        for name, each in (("rows", 1), ("units", 5)):
            seen = _judged(rng, 800, each)
            found = by_confidence(seen, 0.1, 0.1, unit="clip" if each > 1 else None)
            if found.sureness is not None:
                then = judge_sureness(new, found.sureness)
                assert then.slip is not None and then.false_flag is not None
                broken[name] += float(then.slip) > 0.1 or float(then.false_flag) > 0.1
    assert max(broken.values()) <= 0.05 * repeats + 2 * np.sqrt(0.05 * 0.95 * repeats)


def _judged(rng: np.random.Generator, n: int, each: int) -> Trials:
    """Verdicts that are right more often where the confidence is high; rows of one clip share label and confidence."""
    unit = np.arange(n) // each
    label, sure = rng.random(n)[unit] < 0.5, np.round(rng.random(n), 2)[unit]
    right = (rng.random(n)[unit] if each > 1 else rng.random(n)) > 0.4 * (1 - sure)
    said = np.where(rng.random(n) < 0.1, -1, label == right).astype(np.int8)
    return Trials.of(label, decision=said, confidence=sure, clip=np.char.add("c", unit.astype(str)))


def test_a_verdict_without_a_confidence_is_left_to_people() -> None:
    trials = Trials.of([1, 0, 1], decision=[1, 0, 0], confidence=[0.9, float("nan"), 0.2])
    found = at_sureness(trials, LeastConfidence(0.0, 0.0))
    assert found.column("decision").to_list() == [1, -1, 0]
    assert by_confidence(trials, 0.5, 0.5, confidence=None).sureness is not None
