"""Length rules, by laws that hold for every clip."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detection.detect_spec import LengthRule
from hitmiss.detection.length import CROPS, LENGTH_RULES, Crop, fit_length, pool, windows

lengths = st.integers(1, 60)


@given(lengths, lengths, st.sampled_from(LENGTH_RULES), st.sampled_from(CROPS))
def test_the_length_is_the_one_asked_for(n: int, cut: int, rule: LengthRule, crop: Crop) -> None:
    fitted = fit_length(np.arange(1.0, n + 1), cut, rule, crop=crop, rng=np.random.default_rng(0))
    assert len(fitted) == (min(n, cut) if rule == "truncate" else cut)
    assert set(fitted.tolist()) <= {0.0, *np.arange(1.0, n + 1)}
    assert 0.0 not in fitted or (rule == "zero" and n < cut)


@given(lengths, lengths)
def test_tiling_is_what_the_document_writes(n: int, cut: int) -> None:
    clip = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    documented = np.tile(clip, int(cut / n) + 1)[:cut] if n < cut else clip[:cut]
    assert np.array_equal(fit_length(clip, cut), documented)


@given(lengths, lengths, st.sampled_from(LENGTH_RULES))
def test_twice_is_once(n: int, cut: int, rule: LengthRule) -> None:
    once = fit_length(np.arange(n), cut, rule)
    assert np.array_equal(fit_length(once, cut, rule), once)


@given(st.integers(2, 30), lengths)
def test_a_mirror_has_no_jump(n: int, cut: int) -> None:
    fitted = fit_length(np.arange(n), cut, "mirror")
    assert np.abs(np.diff(fitted)).max(initial=0) <= 1


@given(st.integers(1, 8), st.integers(10, 40), st.integers(10, 40))
def test_a_clip_alone_and_in_a_batch(clips: int, n: int, cut: int) -> None:
    batch = np.random.default_rng(clips).standard_normal((clips, n))
    assert np.array_equal(fit_length(batch, cut), np.stack([fit_length(clip, cut) for clip in batch]))


def test_crops() -> None:
    clip = np.arange(9)
    assert fit_length(clip, 3, crop="first").tolist() == [0, 1, 2]
    assert fit_length(clip, 3, crop="centre").tolist() == [3, 4, 5]
    drawn = {tuple(fit_length(clip, 3, crop="random", rng=np.random.default_rng(s)).tolist()) for s in range(60)}
    assert drawn == {(i, i + 1, i + 2) for i in range(7)}


@given(st.integers(1, 80), st.integers(2, 20), st.integers(1, 20))
def test_windows_cover_everything(n: int, length: int, hop: int) -> None:
    clip = np.arange(n)
    hop = min(hop, length)
    cut = windows(clip, length, hop)
    assert cut.shape[1] == length
    assert set(cut.reshape(-1).tolist()) == set(range(n))
    assert cut[-1][-1] == n - 1 or n < length


def test_what_makes_no_sense_is_refused() -> None:
    clip = np.arange(3)
    with pytest.raises(UnknownName, match="did you mean 'tile'"):
        fit_length(clip, 5, "tiles")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="above 0"):
        fit_length(clip, 0)
    with pytest.raises(DataError, match="empty clip"):
        fit_length(np.zeros(0), 5)
    with pytest.raises(UsageError, match="needs a generator"):
        fit_length(clip, 2, crop="random")
    with pytest.raises(UsageError, match="advance"):
        windows(clip, 2, 3)
    with pytest.raises(DataError, match="no window scores"):
        pool([])
    with pytest.raises(UnknownName):
        pool([1.0], "softmax")  # type: ignore[arg-type]
