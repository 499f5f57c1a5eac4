"""Triage metrics: against scikit-learn on the answered rows, against published counts, and where they are undefined."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from hitmiss import metrics as m
from hitmiss.core.errors import DataError
from hitmiss.core.rates import Rate
from hitmiss.metrics.counts import Counts
from hitmiss.metrics.triage import f1_fake, f1_real

rows = st.lists(st.tuples(st.integers(0, 1), st.sampled_from([-2, -1, 0, 1])), min_size=1, max_size=40)

PUBLISHED = {
    "with tools": (
        {"tp": 76, "fp": 25, "fn": 2, "tn": 44, "abstained": (167, 183), "failed": (2, 1)},
        {
            "accuracy": 0.24,
            "accuracy_answered": 0.8163265306122449,
            "coverage": 0.294,
            "precision_fake": 0.7524752475247525,
            "recall_fake": 0.9743589743589743,
            "f1_fake": 0.8491620111731845,
            "precision_real": 0.9565217391304348,
            "recall_real": 0.6376811594202898,
            "f1_real": 0.7652173913043478,
            "balanced_accuracy": 0.806020066889632,
            "abstain_rate": 0.7,
            "error_rate": 0.006,
            "fake_slip_rate": 0.008097165991902834,
            "real_false_flag_rate": 0.09881422924901186,
            "fake_catch_rate": 0.3076923076923077,
            "real_pass_rate": 0.17391304347826086,
        },
    ),
    "without tools": (
        {"tp": 37, "fp": 2, "fn": 0, "tn": 0, "abstained": (210, 251), "failed": (0, 0)},
        {
            "accuracy": 0.074,
            "accuracy_answered": 0.9487179487179487,
            "coverage": 0.078,
            "precision_fake": 0.9487179487179487,
            "recall_fake": 1.0,
            "f1_fake": 0.9736842105263158,
            "coverage_fake": 0.14979757085020243,
            "coverage_real": 0.007905138339920948,
            "fake_slip_rate": 0.0,
            "real_false_flag_rate": 0.007905138339920948,
            "fake_catch_rate": 0.14979757085020243,
            "real_pass_rate": 0.0,
        },
    ),
}
"""Counts and figures of two runs in the metrics files that the document's project has published."""


def expand(counts: dict[str, Any]) -> tuple[list[int], list[int]]:
    (a1, a0), (f1, f0) = counts["abstained"], counts["failed"]
    sizes = ((1, 1, counts["tp"]), (0, 1, counts["fp"]), (1, 0, counts["fn"]), (0, 0, counts["tn"]))
    sizes += ((1, -1, a1), (0, -1, a0), (1, -2, f1), (0, -2, f0))
    return [y for y, _, n in sizes for _ in range(n)], [d for _, d, n in sizes for _ in range(n)]


@pytest.mark.parametrize("run", PUBLISHED)
def test_published_counts_give_the_published_figures(run: str) -> None:
    counts, want = PUBLISHED[run]
    label, decision = expand(counts)
    assert len(label) == 500
    for name, value in want.items():
        assert getattr(m, name)(label, decision) == pytest.approx(value, abs=1e-15), name


def test_failed_calls_are_not_answered_though_the_published_file_counts_them() -> None:
    label, decision = expand(PUBLISHED["with tools"][0])
    assert m.coverage_fake(label, decision) == 78 / 247  # the file says 80 / 247: its two errors count as answered
    assert m.coverage_real(label, decision) == 69 / 253


def test_an_empty_denominator_is_undefined_where_the_published_file_writes_0() -> None:
    label, decision = expand(PUBLISHED["without tools"][0])
    for name in ("precision_real", "f1_real"):
        assert math.isnan(getattr(m, name)(label, decision))
    assert m.recall_real(label, decision) == 0.0  # two reals were answered, and flagged


@given(rows)
def test_figures_of_answered_rows_are_those_of_scikit_learn(some: list[tuple[int, int]]) -> None:
    label, decision = np.array([r[0] for r in some]), np.array([r[1] for r in some])
    y, said = label[decision >= 0], decision[decision >= 0]
    for name, positive in (("fake", 1), ("real", 0)):
        if positive in y and positive in said:
            given = {"pos_label": positive}
            assert getattr(m, f"precision_{name}")(label, decision) == pytest.approx(
                sk.precision_score(y, said, **given)
            )
            assert getattr(m, f"recall_{name}")(label, decision) == pytest.approx(sk.recall_score(y, said, **given))
            assert getattr(m, f"f1_{name}")(label, decision) == pytest.approx(sk.f1_score(y, said, **given), abs=1e-12)
        else:
            assert math.isnan(getattr(m, f"f1_{name}")(label, decision))
    if len(y):
        assert m.accuracy_answered(label, decision) == pytest.approx(sk.accuracy_score(y, said))


@given(rows)
def test_shares_of_a_class_add_up(some: list[tuple[int, int]]) -> None:
    label, decision = [r[0] for r in some], [r[1] for r in some]
    total = m.coverage(label, decision) + m.abstain_rate(label, decision) + m.error_rate(label, decision)
    assert total == pytest.approx(1.0)
    if 1 in label:
        slip, catch = m.fake_slip_rate(label, decision), m.fake_catch_rate(label, decision)
        assert slip + catch == pytest.approx(m.coverage_fake(label, decision))
        if m.coverage_fake(label, decision) > 0:
            assert catch == pytest.approx(m.recall_fake(label, decision) * m.coverage_fake(label, decision))


UNDEFINED = {
    "all abstain": ([1, 0], [-1, -1], ("accuracy_answered", "precision_fake", "recall_fake", "f1_fake", "recall_real")),
    "no fakes": ([0, 0], [0, 1], ("fake_slip_rate", "fake_catch_rate", "coverage_fake", "recall_fake", "f1_fake")),
    "no reals": ([1, 1], [0, 1], ("real_false_flag_rate", "real_pass_rate", "coverage_real", "recall_real", "f1_real")),
    "no fake answered": ([1, 0], [-1, 0], ("recall_fake", "precision_fake", "f1_fake", "balanced_accuracy")),
    "one row": ([1], [1], ("precision_real", "recall_real", "f1_real", "real_pass_rate", "balanced_accuracy", "mcc")),
    "nothing": ([], [], ("accuracy", "coverage", "error_rate", "abstain_rate")),
}


@pytest.mark.parametrize("case", UNDEFINED)
def test_what_is_undefined(case: str) -> None:
    label, decision, names = UNDEFINED[case]
    for name in names:
        assert math.isnan(getattr(m, name)(label, decision)), name


def test_all_abstain_is_no_slip_and_no_catch() -> None:
    for name in ("fake_slip_rate", "fake_catch_rate", "real_false_flag_rate", "coverage", "accuracy"):
        found = getattr(m, name)([1, 0], [-1, -1])
        assert found == 0.0 and isinstance(found, Rate)


def test_unparsed_verdicts_are_counted_apart() -> None:
    assert m.unparsed_rate([0, 1, 1, 0, 0]) == 0.4
    assert m.unparsed_rate([0, 1], [3, 1]) == 0.25
    with pytest.raises(DataError, match="unparsed must be"):
        m.unparsed_rate([0, 2])


def test_f1_of_many_replicates_at_once() -> None:
    c = Counts(*np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 0, 0]]))  # the last has no answer at all
    assert f1_fake.of(c)[0] == pytest.approx(2 / 3)
    assert f1_fake.of(c)[1] == 0.0
    assert math.isnan(f1_fake.of(c)[2])
    assert f1_real.of(c)[0] == pytest.approx(2 / 3)
