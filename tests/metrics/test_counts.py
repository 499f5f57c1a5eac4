"""Decisions counted: abstentions, weights, undefined figures, and many replicates at once."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss import metrics as m
from hitmiss.core.errors import DataError
from hitmiss.core.rates import Rate
from hitmiss.core.registry import all_metrics
from hitmiss.metrics.counts import Counts, outcome
from hitmiss.stats.forms.trials import OfCounts

LABEL = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
SAID = [1, 1, 0, -1, 1, 0, 0, 0, -1, -2]  # TP 2, FN 1, FP 1, TN 3; one of each class abstained, one call failed

OUTCOMES = len(fields(Counts))
ON_COUNTS = {name: entry for name, entry in all_metrics().items() if entry.columns == ("label", "decision")}


def test_outcomes() -> None:
    counts = Counts.of(LABEL, SAID)
    assert counts == Counts(2, 1, 1, 3, abstained_positive=1, abstained_negative=1, failed_negative=1)
    assert (counts.n, counts.answered) == (10, 7)
    assert Counts(2, 1, 1, 3).n == 7  # nobody abstains and nothing fails unless it is said
    assert outcome(LABEL, SAID).tolist() == [0, 0, 2, 4, 1, 3, 3, 3, 5, 7]


def test_no_answer_is_wrong_for_accuracy_and_absent_elsewhere() -> None:
    assert m.accuracy(LABEL, SAID) == 5 / 10
    assert m.precision(LABEL, SAID) == 2 / 3
    assert m.recall(LABEL, SAID) == 2 / 3
    assert m.specificity(LABEL, SAID) == 3 / 4
    assert m.fnr(LABEL, SAID) == 1 / 3
    assert m.fpr(LABEL, SAID) == 1 / 4
    assert m.f1(LABEL, SAID) == 4 / 6
    assert m.balanced_accuracy(LABEL, SAID) == pytest.approx((2 / 3 + 3 / 4) / 2)
    assert m.mcc(LABEL, SAID) == pytest.approx((2 * 3 - 1 * 1) / math.sqrt(3 * 3 * 4 * 4))


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=20), st.integers(0, 5))
def test_what_was_not_answered_changes_accuracy_only(rows: list[tuple[int, int]], silent: int) -> None:
    label, said = [r[0] for r in rows], [r[1] for r in rows]
    more = label + [k % 2 for k in range(silent)], said + [-1 - k % 3 // 2 for k in range(silent)]
    for name, entry in ON_COUNTS.items():
        if name != "accuracy" and entry.function.__module__ == m.accuracy.__module__:
            assert entry.function(*more) == pytest.approx(entry.function(label, said), nan_ok=True)
    assert m.accuracy(*more) == pytest.approx(m.accuracy(label, said) * len(rows) / (len(rows) + silent))


def test_binomial_proportions_remember_their_counts() -> None:
    for name in ("accuracy", "precision", "recall", "specificity", "fpr", "fnr"):
        assert isinstance(ON_COUNTS[name].function(LABEL, SAID), Rate)
    for name in ("f1", "balanced_accuracy", "mcc"):  # no proportions of trials: Wilson's interval would be wrong
        assert not isinstance(ON_COUNTS[name].function(LABEL, SAID), Rate)
    assert (m.recall(LABEL, SAID).hits, m.recall(LABEL, SAID).of) == (2, 3)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "label", "said"),
    [
        ("accuracy", [], []),
        ("precision", [1, 0], [0, 0]),
        ("recall", [0, 0], [1, 0]),
        ("recall", [1, 0], [-1, 0]),
        ("specificity", [1, 1], [1, 0]),
        ("fpr", [1, 1], [1, 0]),
        ("fnr", [0, 0], [1, 0]),
        ("f1", [0, 0], [0, 0]),
        ("balanced_accuracy", [1, 1], [1, 0]),
        ("mcc", [1, 0], [1, 1]),
        ("mcc", [1, 1], [1, 0]),
    ],
)
def test_an_empty_denominator_is_undefined(name: str, label: list[int], said: list[int]) -> None:
    assert math.isnan(ON_COUNTS[name].function(label, said))


def test_f1_is_zero_where_nothing_was_found() -> None:
    assert m.f1([1, 0], [0, 0]) == 0.0
    assert m.f1([0, 0], [1, 0]) == 0.0


def test_large_counts_do_not_overflow() -> None:
    big = 3_000_000_000
    weight = np.array([big, big, big, big], dtype=np.int64)
    assert m.mcc([1, 1, 0, 0], [1, 0, 0, 1], weight) == 0.0
    assert m.mcc([1, 1, 0, 0], [1, 1, 0, 0], weight) == pytest.approx(1.0)
    assert Counts.of([1, 1, 0, 0], [1, 0, 0, 1], weight).tp == big


def test_whole_weights_count_whole_trials() -> None:
    counts = Counts.of([1, 0], [1, 1], [3, 2])
    assert (counts.tp, type(counts.tp), counts.fp) == (3, int, 2)
    assert Counts.of([1, 0], [1, 1], [0.5, 2.0]).tp == 0.5


@given(st.lists(st.lists(st.integers(0, 9), min_size=OUTCOMES, max_size=OUTCOMES), min_size=1, max_size=5))
def test_many_replicates_at_once_are_each_alone(tables: list[list[int]]) -> None:
    together = Counts(*np.array(tables).T)
    for entry in ON_COUNTS.values():
        form: Any = entry.form() if entry.form else None
        assert isinstance(form, OfCounts)
        found = form.function(together)
        alone = [float(form.function(Counts(*table))) for table in tables]
        assert found == pytest.approx(alone, nan_ok=True)


@pytest.mark.parametrize("said", [[1, 2], [1, 0.5], [1, math.nan], ["fake", "real"], [1, -3]])
def test_other_decisions_are_refused(said: list[Any]) -> None:
    with pytest.raises(DataError, match="decision must be 1, 0"):
        m.accuracy([1, 0], said)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(DataError, match="equally long"):
        m.accuracy([1, 0], [1])
    with pytest.raises(DataError, match="one number per trial"):
        m.accuracy([1, 0], [1, 0], [1.0])
