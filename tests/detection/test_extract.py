"""Scores from outputs: the documented ones, log-odds that do not saturate, and no guessing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detection.outputs import Extraction, pick_output, positive_index_of, to_log_odds, to_probability

logits = st.floats(-30, 30, width=32)


@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2)), elements=logits))
def test_two_logits_give_the_documented_softmax(outputs: np.ndarray) -> None:
    wanted = np.exp(outputs[:, 1]) / np.exp(outputs).sum(axis=1)
    found = to_probability(to_log_odds(outputs, kind="logit"))
    assert found == pytest.approx(wanted, abs=1e-12)


@given(arrays(np.float64, st.integers(1, 6), elements=logits))
def test_one_logit_gives_the_documented_sigmoid(outputs: np.ndarray) -> None:
    assert to_probability(to_log_odds(outputs, kind="logit")) == pytest.approx(1 / (1 + np.exp(-outputs)), abs=1e-12)


@given(arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(3, 6)), elements=logits), st.data())
def test_more_columns_need_the_positive_one(outputs: np.ndarray, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, outputs.shape[1] - 1))
    wanted = np.exp(outputs[:, at]) / np.exp(outputs).sum(axis=1)
    assert to_probability(to_log_odds(outputs, positive_index=at, kind="logit")) == pytest.approx(wanted, abs=1e-12)
    with pytest.raises(UsageError, match="positive_index"):
        to_log_odds(outputs, kind="logit")
    with pytest.raises(UsageError, match="no output column"):
        to_log_odds(outputs, positive_index=outputs.shape[1], kind="logit")


@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2)), elements=logits))
def test_what_is_a_probability_already_is_not_squashed_again(outputs: np.ndarray) -> None:
    softmax = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    softmax /= softmax.sum(axis=1, keepdims=True)
    assert to_log_odds(softmax) == pytest.approx(outputs[:, 1] - outputs[:, 0], abs=1e-6)


def test_log_odds_keep_the_order_where_probabilities_saturate() -> None:
    outputs = np.array([[-20.0, 20.0], [-21.0, 21.0], [-400.0, 500.0]])
    odds = to_log_odds(outputs)
    assert odds.tolist() == [40.0, 42.0, 900.0] and to_probability(odds).tolist() == [1.0, 1.0, 1.0]


def test_one_column_in_0_to_1_is_refused_until_it_is_said_what_it_is() -> None:
    with pytest.raises(DataError, match="probabilities or logits"):
        to_log_odds(np.array([0.2, 0.9]))
    assert to_log_odds(np.array([0.2, 0.9]), kind="logit").tolist() == [0.2, 0.9]
    assert to_log_odds(np.array([0.2, 1.0]), kind="probability") == pytest.approx([np.log(0.25), np.inf])
    with pytest.raises(DataError, match="do not sum to 1"):
        to_log_odds(np.array([[0.2, 0.9]]))
    with pytest.raises(DataError, match=r"not probabilities, the first is 1\.5"):
        to_log_odds(np.array([1.5]), kind="probability")
    with pytest.raises(UnknownName, match="logit"):
        to_log_odds(np.array([1.5]), kind="logits")  # type: ignore[arg-type]


def test_outputs_are_picked_by_an_explicit_rule() -> None:
    wanted = np.array([[1.0, 2.0]])
    hidden = np.zeros((1, 7, 3))
    for raw in (
        wanted,
        {"logits": wanted, "x": wanted},
        SimpleNamespace(logits=wanted),
        (hidden, wanted),
        (np.zeros((1, 160)), wanted),
        [[1.0, 2.0]],
    ):
        assert pick_output(raw).tolist() == [[1.0, 2.0]]
    for raw, shown in (((wanted, wanted), r"\(1, 2\), \(1, 2\)"), ("logits", "str")):
        with pytest.raises(UsageError, match=shown) as unclear:
            pick_output(raw)
        assert unclear.value.code == "which-output"
    assert to_log_odds(np.zeros((3, 1, 2)), kind="logit").shape == (3,)
    with pytest.raises(DataError, match=r"\(2, 4, 3\)"):
        to_log_odds(np.zeros((2, 4, 3)), kind="logit")


def test_label_names_give_the_polarity() -> None:
    assert positive_index_of(["Bonafide", "Spoof"], "real") == 0
    assert positive_index_of(["non-toxic", "toxic"], "toxic") == 1
    for labels in (["cat", "dog"], ["real", "human"]):
        with pytest.raises(UsageError, match="positive_index"):
            positive_index_of(labels, "real")


def test_a_single_output_may_speak_for_the_other_class() -> None:
    assert Extraction(is_reversed=True).log_odds(np.array([2.0, -3.0])).tolist() == [-2.0, 3.0]
