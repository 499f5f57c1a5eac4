"""The tally: counting, merging, thresholds, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.core.errors import DataError
from hitmiss.core.sorting import order_of
from hitmiss.core.tally import Tally, check_label, check_trials, check_weight, merge

scores = st.one_of(st.integers(-2, 2).map(float), st.sampled_from([-0.0, 0.0, math.inf, -math.inf, 5e-324, -5e-324]))
trials = st.lists(st.tuples(st.integers(0, 1), scores, st.integers(0, 3)), max_size=30)
Trials = list[tuple[int, float, int]]


def counted(some: Trials, *, is_weighted: bool = False) -> tuple[list[float], list[int], list[int]]:
    """The tally of rows, by looking at each distinct score."""
    rows = [(label, score, weight if is_weighted else 1) for label, score, weight in some]
    distinct = sorted({score + 0.0 for _, score, weight in rows if weight})

    def below(kind: int) -> list[int]:
        counts = [sum(w for y, s, w in rows if y == kind and s <= d) for d in distinct]
        return [0, *counts]

    return distinct, below(1), below(0)


def columns(some: Trials) -> tuple[list[int], list[float], list[int]]:
    return [r[0] for r in some], [r[1] for r in some], [r[2] for r in some]


def same(tally: Tally, expected: tuple[list[float], list[int], list[int]]) -> bool:
    found = (tally.score.tolist(), tally.positives.tolist(), tally.negatives.tolist())
    return found == expected


@given(trials)
def test_counts(some: Trials) -> None:
    label, score, weight = columns(some)
    assert same(Tally.of(label, score), counted(some))
    assert same(Tally.of(label, score, np.array(weight, dtype=int)), counted(some, is_weighted=True))


@given(trials)
def test_weights_may_be_fractions(some: Trials) -> None:
    label, score, weight = columns(some)
    tally = Tally.of(label, score, [w / 4 for w in weight])
    distinct, positives, negatives = counted(some, is_weighted=True)
    assert tally.score.tolist() == distinct
    assert (tally.positives * 4).tolist() == positives  # quarters are exact
    assert (tally.negatives * 4).tolist() == negatives


@given(trials, st.integers(1, 5), st.randoms(use_true_random=False))
def test_any_split_merges_into_the_whole(some: Trials, parts: int, dice: Any) -> None:
    split: list[Trials] = [[] for _ in range(parts)]
    for row in some:
        dice.choice(split).append(row)
    merged = merge(Tally.of(*columns(part)[:2]) for part in split)
    assert same(merged, counted(some))


def test_nothing_merges_into_the_empty_tally() -> None:
    empty = merge([])
    assert (len(empty.score), empty.n_positive, empty.n_negative, empty.tied_mass) == (0, 0, 0, 0.0)
    assert not empty.has_both_classes
    assert same(Tally.of([], []), ([], [0], [0]))
    assert same(merge([empty, Tally.of([1], [2.0])]), ([2.0], [0, 1], [0, 0]))


@given(trials, scores)
def test_a_point_rejects_what_lies_below_its_threshold(some: Trials, threshold: float) -> None:
    label, score, _ = columns(some)
    tally = Tally.of(label, score)
    point = tally.point_at(threshold)
    assert tally.positives[point] == sum(y == 1 and s < threshold for y, s, _ in some)
    assert tally.negatives[point] == sum(y == 0 and s < threshold for y, s, _ in some)
    assert tally.threshold_of(point) >= threshold or point == len(tally.score)
    assert tally.threshold_of(len(tally.score)) == math.inf


@given(trials)
def test_tied_mass_is_the_share_of_scores_that_both_classes_have(some: Trials) -> None:
    label, score, _ = columns(some)
    shared = {s for y, s in zip(label, score, strict=True) if y} & {
        s for y, s in zip(label, score, strict=True) if not y
    }
    expected = sum(s in shared for s in score) / len(some) if some else 0.0
    assert Tally.of(label, score).tied_mass == pytest.approx(expected)


@given(trials)
def test_rescoring_by_a_coarser_map_is_counting_the_mapped_scores(some: Trials) -> None:
    finite = [(y, s, w) for y, s, w in some if math.isfinite(s)]
    label, score, _ = columns(finite)
    tally = Tally.of(label, score)
    mapped = [(y, float(math.floor(s / 2)), w) for y, s, w in finite]
    assert same(tally.rescored(np.floor(tally.score / 2)), counted(mapped))


def test_counts_arrive_in_any_order_and_with_repeats() -> None:
    tally = Tally.of_counts([3.0, 1.0, 3.0], [1, 0, 2], [0, 5, 1])
    assert same(tally, ([1.0, 3.0], [0, 0, 3], [0, 5, 6]))


def test_numbers_of_trials_are_plain_numbers() -> None:
    tally = Tally.of([1, 0, 0], [1.0, 2.0, 3.0])
    assert (type(tally.n_positive), tally.n_positive, tally.n_negative) == (int, 1, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8, bool])
def test_any_kind_of_number_is_a_score(dtype: Any) -> None:
    assert same(Tally.of([1, 0], np.array([1, 0], dtype=dtype)), ([0.0, 1.0], [0, 0, 1], [0, 1, 1]))


# --- what is refused --------------------------------------------------------------------------------------------


def test_nan_scores_are_refused_with_count_and_place() -> None:
    with pytest.raises(DataError, match="2 of 3 scores are NaN, the first at position 1"):
        Tally.of([1, 0, 1], [1.0, math.nan, math.nan])
    with pytest.raises(DataError, match="1 of 2 scores are NaN"):
        Tally.of_counts([1.0, math.nan], [1, 1], [0, 1])
    with pytest.raises(DataError, match="NaN"):
        Tally.of([1, 0], [1.0, None])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "label", [[1, 2], [1, -1], [0.5, 1], ["bonafide", "spoof"], ["1", "0"], [1, math.nan], [1, None]]
)
def test_other_labels_are_refused(label: list[Any]) -> None:
    with pytest.raises(DataError, match="label must be 1"):
        check_label(label)


def test_a_wrong_label_is_named_with_its_place() -> None:
    with pytest.raises(DataError, match=r"found .*7.* at position 2"):
        check_label([1, 0, 7])


@pytest.mark.parametrize("label", [[True, False], [1, 0], [1.0, 0.0], np.array([1, 0], dtype=np.int8)])
def test_labels_of_any_sound_kind(label: Any) -> None:
    assert check_label(label).tolist() == [True, False]


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="equally long"):
        check_trials([1, 0], [1.0])
    with pytest.raises(DataError, match="flat"):
        check_trials([1, 0], [[1.0], [2.0]])
    with pytest.raises(DataError, match="flat"):
        check_label([[1], [0]])
    with pytest.raises(DataError, match="equally long"):
        Tally.of_counts([1.0, 2.0], [1], [1, 1])


@pytest.mark.parametrize("weight", [[1.0, -1.0], [1.0, math.nan], [1.0, math.inf]])
def test_senseless_weights_are_refused(weight: list[float]) -> None:
    with pytest.raises(DataError, match="finite and not negative"):
        check_weight(weight, 2)
    with pytest.raises(DataError, match="finite and not negative"):
        Tally.of_counts([1.0, 2.0], weight, [1, 1])


def test_weights_of_another_length_are_refused() -> None:
    with pytest.raises(DataError, match=r"one number per trial \(2\)"):
        Tally.of([1, 0], [1.0, 2.0], [1.0])


def test_masked_values_are_refused_not_unmasked() -> None:
    holed = np.ma.array([1.0, 2.0], mask=[True, False])
    with pytest.raises(DataError, match="score are masked"):
        Tally.of([1, 0], holed)
    with pytest.raises(DataError, match="label are masked"):
        Tally.of(np.ma.array([1, 0], mask=[True, False]), [1.0, 2.0])


def test_order_of_long_arrays_whose_values_differ_in_the_last_bits_only() -> None:
    """The last bits make room for the place of a value, so such values must be put in order afterwards."""
    rng = np.random.default_rng(4)
    base = rng.choice([-2.5, -1e-300, 0.0, 1.0, 3e8], size=20_000)
    values = np.concatenate([base * (1.0 + np.finfo(float).eps * rng.integers(0, 50, 20_000)), [-np.inf, np.inf, -0.0]])
    values = rng.permutation(values)
    assert np.array_equal(values[order_of(values)], np.sort(values))
    assert np.array_equal(np.sort(order_of(values)), np.arange(len(values)))
