"""Bands of curves over whole units: by laws, and by the share of simulated curves that they hold."""

from __future__ import annotations

import numpy as np
from scipy import stats

import hitmiss as hm
from hitmiss.core.design import Design
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials
from hitmiss.engine.interval import share_interval
from hitmiss.engine.measure import measure_design
from hitmiss.reports.displays.det import DetDisplay
from hitmiss.reports.displays.display import plate_of
from hitmiss.reports.displays.lines import PlateOptions
from hitmiss.reports.displays.roc import RocDisplay
from hitmiss.reports.pictures import pictures
from hitmiss.reports.unit_bands import over_units


def spoken(rng: np.random.Generator, speakers: int, each: int, copies: int = 1, level: float = 0.0) -> Trials:
    """Scores of speakers with a level of their own; every trial `copies` times."""
    speaker = np.repeat(np.arange(speakers), each)
    label = np.tile(np.arange(each) % 2, speakers)
    score = 2.0 * label + level * rng.normal(size=speakers)[speaker] + rng.normal(size=len(label))
    speaker, label, score = (np.repeat(own, copies) for own in (speaker, label, score))
    return Trials.of(label, score, speaker=np.char.add("s", speaker.astype(str)))


def test_copies_of_a_trial_add_nothing() -> None:
    """Forty speakers with one trial of each class, each copied five times: worth as much as without the copies."""
    worth = []
    for copies in (1, 5):
        trials = spoken(np.random.default_rng(1), 40, 2, copies)
        made = over_units(DetDisplay.from_trials(trials), trials, ("speaker",))
        assert isinstance(made, DetDisplay) and made.over == "speaker"
        worth.append(made.worth_negative[np.argsort(made.far)])
    np.testing.assert_allclose(worth[0], worth[1])
    few = (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 39)) ** 2
    assert worth[0].max() <= 40 * few * (1.0 + 1e-9) and worth[0].min() > 0.9 * 40 * 39 / 40 * few


def test_the_band_at_a_threshold_holds_the_rate_of_the_population() -> None:
    """The true rate of false alarms at a score of 1 is known; single trials would hold it in 60 of 100 samples."""
    rng, held, alone, n = np.random.default_rng(3), 0, 0, 300
    true = stats.norm.sf(1.0 / np.sqrt(1.0 + 0.8**2))
    for _ in range(n):
        trials = spoken(rng, 30, 40, level=0.8)
        negatives = trials.label == 0
        roc = over_units(RocDisplay.from_trials(trials), trials, ("speaker",))
        assert isinstance(roc, RocDisplay)
        far = float(np.mean(trials.score[negatives] >= 1.0))
        worth = float(roc.worth_negative[np.argmin(np.abs(roc.fpr - far))])
        low, high = share_interval(far * worth, worth)
        held += low <= true <= high
        low, high = share_interval(far * negatives.sum(), float(negatives.sum()))
        alone += low <= true <= high
    assert stats.binomtest(held, n, 0.93, alternative="less").pvalue > 0.01
    assert alone < 0.8 * n


def test_pictures_have_bands_over_the_units_of_the_table() -> None:
    trials = spoken(np.random.default_rng(5), 20, 20, level=0.8)
    results = measure_design(trials, Design(metrics=("eer",), bootstrap=50, unit=("speaker",), gap="none"))
    (picture,) = pictures(trials, results)
    for kind in ("det", "roc"):
        display = picture.of(kind)
        assert display is not None and "worth_negative" in display.to_dict()
        assert type(display).from_dict(display.to_dict()).over == "speaker"  # type: ignore[attr-defined]
        plate = plate_of((("", display),), PlateOptions(independent=False))
        assert "over whole units (speaker)" in plate.note
        assert any(getattr(mark, "band", None) is not None for mark in plate.marks)
    single = measure_design(trials, Design(metrics=("eer",), bootstrap=50, unit=("none",), gap="none"))
    (plain,) = pictures(trials, single)
    assert "worth_negative" not in plain.of("det").to_dict()  # type: ignore[union-attr]


def test_bins_of_a_probability_have_intervals_over_units() -> None:
    rng = np.random.default_rng(7)
    speaker = np.repeat(np.arange(40), 30)
    p = np.clip(rng.beta(2, 2, size=len(speaker)), 0.01, 0.99)
    happened = rng.random(len(p)) < np.clip(p + 0.25 * rng.normal(size=40)[speaker], 0.0, 1.0)
    names = np.char.add("s", speaker.astype(str))
    trials = Trials.of(happened, p, header=Header(score_kind="probability"), speaker=names)
    display = hm.figures.ReliabilityDisplay.from_trials(trials)
    wide = over_units(display, trials, ("speaker",))
    assert isinstance(wide, hm.figures.ReliabilityDisplay) and wide.over == "speaker"
    np.testing.assert_array_equal(wide.happened, display.happened)
    full = display.n > 80
    assert np.median((wide.high - wide.low)[full] / (display.high - display.low)[full]) > 1.2
