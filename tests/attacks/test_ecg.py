"""Families without a model: identity, laws, and the same record in any company."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.attacks.batched import batched_families, make_records
from hitmiss.attacks.family import find_attack
from hitmiss.attacks.leads import LEADS, consistent, violation
from hitmiss.attacks.peaks import detect_all
from hitmiss.attacks.windows import hann_window
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.stats.random import noise_generator

BATCHED = batched_families()
FAMILIES = (
    "band_noise", "baseline_wander", "electrode_motion", "lead_loss", "lead_swap", "morph_amp", "morph_time", "muscle", "powerline",
)  # fmt: skip
each_family = pytest.mark.parametrize("name", FAMILIES)


def heart(n: int = 4, seed: int = 0) -> np.ndarray:
    """Records of ten seconds with a beat a second, twelve leads that obey the lead equations."""
    rng = np.random.default_rng(seed)
    t = np.arange(1000) / 100.0
    beats = sum(np.exp(-0.5 * ((t - c) / 0.02) ** 2) for c in np.arange(0.5, 10.0, 0.9))
    x = beats[None, :, None] * rng.uniform(0.4, 1.5, (n, 1, 12)) + 0.02 * rng.standard_normal((n, 1000, 12))
    return consistent(x)


X = heart()


def rngs(ids: range | list[int], name: str = "a") -> list[np.random.Generator]:
    return [noise_generator(0, name, i) for i in ids]


@each_family
def test_strength_nought_is_the_record_to_the_last_bit(name: str) -> None:
    entry = find_attack(name)
    out = entry.apply(X[0], 0.0, rngs([0])[0])
    assert np.array_equal(out, X[0]) and out is not X[0]
    mixed = BATCHED[name].apply(make_records(X, [0.0, 1.0, 0.0, 1.0], rngs(range(4)), fs=100.0))
    assert np.array_equal(mixed[[0, 2]], X[[0, 2]])
    assert not np.array_equal(mixed[1], X[1]) and not np.array_equal(mixed[3], X[3])


@each_family
def test_a_record_is_the_same_in_any_company_and_order(name: str) -> None:
    whole = BATCHED[name].apply(make_records(X, [0.3, 0.5, 0.7, 1.0], rngs(range(4)), fs=100.0))
    order = [2, 0, 3, 1]
    turned = BATCHED[name].apply(make_records(X[order], [0.7, 0.3, 1.0, 0.5], rngs(order), fs=100.0))
    assert np.array_equal(turned, whole[order])
    for i, strength in enumerate((0.3, 0.5, 0.7, 1.0)):
        alone = find_attack(name).apply(X[i], strength, rngs([i])[0], fs=100.0)
        assert np.array_equal(alone, whole[i])


@each_family
def test_outside_the_window_nothing_changes(name: str) -> None:
    where = {"center_time": 5.0, "window_seconds": 2.0}
    changed = BATCHED[name].apply(make_records(X, 1.0, rngs(range(4)), fs=100.0, **where))
    reach = 40 if name.startswith("morph") else 0  # a beat inside the window reaches beyond it
    delta = np.abs(changed - X).max(axis=2)
    assert delta[:, : 400 - reach].max() < 1e-3 and delta[:, 601 + reach :].max() < 1e-3
    assert delta[:, 400:600].max() > 0


@each_family
def test_more_strength_is_a_larger_change(name: str) -> None:
    sizes = []
    for strength in (0.1, 0.3, 0.6, 1.0):
        out = BATCHED[name].apply(make_records(X, strength, rngs(range(4)), fs=100.0))
        sizes.append(np.linalg.norm((out - X).reshape(4, -1), axis=1))
    assert (np.diff(sizes, axis=0) > 0).all()


@each_family
def test_leads_stay_consistent_when_asked(name: str) -> None:
    out = BATCHED[name].apply(make_records(X, 1.0, rngs(range(4)), fs=100.0), lead_consistent=True)
    assert violation(out) < 1e-9


@pytest.mark.parametrize(("name", "setting"), [("band_noise", "beta"), ("powerline", "level"), ("muscle", "level")])
def test_noise_has_the_deviation_it_promises(name: str, setting: str) -> None:
    out = BATCHED[name].apply(make_records(X, 0.5, rngs(range(4)), fs=100.0), **{setting: 0.2})
    np.testing.assert_allclose((out - X).std(axis=1), 0.5 * 0.2 * X.std(axis=1), rtol=1e-9)


def test_wander_has_its_amplitude_and_frequency() -> None:
    out = BATCHED["baseline_wander"].apply(make_records(X, 1.0, rngs(range(4)), fs=100.0))
    delta = out - X
    assert (np.abs(delta).max(axis=1) <= 0.1 * X.std(axis=1) + 1e-12).all()
    power = np.abs(np.fft.rfft(delta * np.hanning(1000)[None, :, None], axis=1)) ** 2
    assert power[:, :10].sum() / power.sum() > 0.99


def test_band_noise_lies_in_its_band() -> None:
    out = BATCHED["band_noise"].apply(make_records(X, 1.0, rngs(range(4)), fs=100.0), low=10.0, high=20.0)
    power = np.abs(np.fft.rfft(out - X, axis=1)) ** 2
    hertz = np.fft.rfftfreq(1000, 0.01)
    assert power[:, (hertz < 10) | (hertz > 20)].sum() / power.sum() < 1e-20


def test_morph_amp_is_a_gain_at_the_peaks() -> None:
    peaks = detect_all(X, 100.0)
    out = BATCHED["morph_amp"].apply(make_records(X, 1.0, rngs(range(4)), fs=100.0, peaks=peaks), sigma_ms=20.0)
    ratio = out[0, peaks[0], 1] / X[0, peaks[0], 1]
    drawn = rngs([0])[0].uniform(-1, 1, len(peaks[0]))
    np.testing.assert_allclose(ratio, 1 + 0.15 * drawn, rtol=1e-6)


def test_morph_time_leaves_the_peaks_and_makes_no_steps() -> None:
    peaks = detect_all(X, 100.0)
    smooth = consistent(np.repeat(np.sin(np.arange(1000) / 15.0)[None, :, None], 12, axis=2))
    out = BATCHED["morph_time"].apply(make_records(smooth, 1.0, rngs([0]), fs=100.0, peaks=peaks[:1]), epsilon_max=0.3)
    np.testing.assert_allclose(out[0, peaks[0]], smooth[0, peaks[0]], atol=1e-12)
    assert np.abs(np.diff(out, axis=1)).max() < 2 * np.abs(np.diff(smooth, axis=1)).max()


def test_arms_exchanged_twice_are_as_they_were() -> None:
    for kind in ("la_ra", "la_ll", "v1_v2"):
        once = BATCHED["lead_swap"].apply(make_records(X, 1.0, rngs(range(4)), fs=100.0), kind=kind)
        twice = BATCHED["lead_swap"].apply(make_records(once, 1.0, rngs(range(4)), fs=100.0), kind=kind)
        np.testing.assert_allclose(twice, X, atol=1e-12)
        assert violation(once) < 1e-12  # an exchange of electrodes is a thing that bodies can send
    np.testing.assert_allclose(
        BATCHED["lead_swap"].apply(make_records(X, 1.0, rngs(range(4)), fs=100.0))[..., LEADS.index("I")], -X[..., 0]
    )


def test_lost_leads_are_flat() -> None:
    out = BATCHED["lead_loss"].apply(make_records(X, 1.0, rngs(range(4)), fs=100.0), leads=3)
    assert ((np.abs(out).max(axis=1) < 1e-12).sum(axis=1) == 3).all()


@pytest.mark.parametrize("bad", [np.zeros((2, 3)), np.full((1, 10, 2), np.nan)])
def test_strange_signals_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(DataError):
        make_records(bad, 0.5, rngs(range(len(bad))), fs=100.0)


def test_wrong_settings_are_named() -> None:
    with pytest.raises(UnknownName, match="alpha"):
        find_attack("Baseline_Wander").apply(X[0], 0.5, rngs([0])[0], alhpa=1.0)
    with pytest.raises(UsageError, match="12 standard leads"):
        find_attack("lead_swap").apply(X[0][:, :2], 0.5, rngs([0])[0])
    with pytest.raises(UsageError, match="sample numbers"):
        make_records(X, 0.5, rngs(range(4)), fs=100.0, peaks=[np.array([2000])] * 4)
    with pytest.raises(UsageError, match="between 0 and 1"):
        make_records(X, 1.5, rngs(range(4)), fs=100.0)


@given(center=st.floats(0, 10), seconds=st.floats(0.05, 20))
def test_windows_are_whole_tapers_cut_at_the_ends(center: float, seconds: float) -> None:
    window = hann_window(1000, 100.0, center, seconds)
    wide = hann_window(3000, 100.0, center + 10.0, seconds)
    np.testing.assert_allclose(window, wide[1000:2000], atol=1e-9)
    assert window.min() >= 0.0 and window.max() <= 1.0


def test_windows_outside_are_refused() -> None:
    with pytest.raises(UsageError, match="runs from 0 to 10"):
        hann_window(1000, 100.0, 11.0, 2.0)


def test_peaks_of_simulated_beats_are_found() -> None:
    found = detect_all(X[:1], 100.0)[0]
    np.testing.assert_allclose(found, np.arange(50, 1000, 90), atol=1)
    assert len(detect_all(np.zeros((1, 1000, 12)), 100.0)[0]) == 0
    with pytest.raises(DataError, match="at least 1 s"):
        detect_all(X[:1, :50], 100.0)


def test_band_noise_is_white_within_its_band() -> None:
    """Coefficients drawn in the band are what filtering white noise leaves: flat power, half the rate included."""
    from hitmiss.attacks.ecg import _noise

    x = np.zeros((200, 100, 2))
    records = make_records(x, 1.0, [np.random.default_rng(i) for i in range(200)], fs=100.0)
    noise = _noise(records, 20.0, 50.0, np.ones((200, 1, 2)))
    np.testing.assert_allclose(noise.std(axis=1), 1.0, rtol=1e-9)
    power = (np.abs(np.fft.rfft(noise, axis=1)) ** 2).mean(axis=(0, 2))
    assert power[:20].max() < 1e-20
    inside = power[20:]  # 30 frequencies that stand for two coefficients each, and one (half the rate) for itself
    np.testing.assert_allclose(inside, inside.mean(), rtol=0.25)
    kurtosis = (noise**4).mean()
    assert kurtosis == pytest.approx(3.0, abs=0.15)


@given(samples=st.integers(1, 700), hertz=st.floats(0.01, 400.0), phase=st.floats(0.0, 7.0))
def test_sines_of_coarse_and_fine_places_are_sines(samples: int, hertz: float, phase: float) -> None:
    from hitmiss.attacks.ecg import _sines

    records = make_records(np.zeros((1, samples, 2)), 1.0, rngs([0]), fs=360.0)
    found = _sines(records, np.full((1, 1, 2), hertz), np.full((1, 1, 2), phase))
    expected = np.sin(2 * np.pi * hertz * np.arange(samples) / 360.0 + phase)
    np.testing.assert_allclose(found[0, :, 1], expected, atol=1e-10)


def test_morphology_is_what_the_formulas_say_over_the_whole_record() -> None:
    """Beats are worked on where they reach; the same from every beat at every sample, written down as it stands."""
    peaks = [np.array([2, 130, 138, 998]), np.array([], dtype=np.int64)]  # at both ends, two that overlap, and none
    records = make_records(X[:2], 0.8, rngs(range(2)), fs=100.0, peaks=peaks)
    t = np.arange(1000.0)
    gain = rngs([0])[0].uniform(-1, 1, 4) @ np.exp(-0.5 * ((t - peaks[0][:, None]) / 8.0) ** 2)
    out = BATCHED["morph_amp"].apply(records)
    np.testing.assert_allclose(out[0], X[0] * (1 + 0.8 * 0.15 * gain[:, None]), rtol=1e-12, atol=1e-15)
    assert np.array_equal(out[1], X[1])
    records = make_records(X[:2], 0.8, rngs(range(2)), fs=100.0, peaks=peaks)
    away = t - peaks[0][:, None]
    part = np.minimum(np.where(away < 0, -away / 6.0, away / 8.0), 1.0)
    stretch = 1.0 + 0.8 * 0.1 * rngs([0])[0].uniform(-1, 1, 4)[:, None]
    shift = (0.5 * (1 + np.cos(np.pi * part)) * (away / stretch - away)).sum(axis=0)
    out = BATCHED["morph_time"].apply(records)
    expected = np.stack([np.interp(t + shift, t, lead) for lead in X[0].T], axis=1)
    np.testing.assert_allclose(out[0], expected, rtol=1e-12, atol=1e-12)
    assert np.array_equal(out[1], X[1])
    with pytest.raises(UsageError, match="more than 0 ms"):
        BATCHED["morph_time"].apply(records, pre_ms=0.0)


def test_peaks_of_many_records_are_those_of_each() -> None:
    many = np.concatenate([heart(7, 1), heart(6, 2)])
    found = detect_all(many, 100.0)
    assert all(np.array_equal(a, detect_all(x[None], 100.0)[0]) for a, x in zip(found, many, strict=True))


def test_values_that_are_large_and_finite_are_no_error() -> None:
    x = X[:1] * 1e307  # their sum is infinite, and each is a number
    assert np.isfinite(make_records(x, 0.5, rngs([0]), fs=100.0).x).all()
