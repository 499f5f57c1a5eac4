"""Small values: a rate that remembers its counts."""

from __future__ import annotations

import copy
import math
import pickle

import pytest

from hitmiss.core.errors import UnknownName
from hitmiss.core.header import Header
from hitmiss.core.kinds import SCORE_KINDS
from hitmiss.core.rates import Rate


def test_a_rate_is_a_number_with_counts() -> None:
    rate = Rate(3, 4)
    assert (rate, rate.hits, rate.of) == (0.75, 3, 4)
    assert isinstance(rate, float)
    assert type(rate + 0) is float
    assert f"{rate:.1%}" == "75.0%"


def test_a_rate_of_nothing_is_undefined() -> None:
    rate = Rate(0, 0)
    assert math.isnan(rate)
    assert (rate.hits, rate.of) == (0, 0)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda rate: pickle.loads(pickle.dumps(rate))])
def test_copies_remember_the_counts(copied: object) -> None:
    again = copied(Rate(1, 3))  # type: ignore[operator]
    assert (type(again), again, again.hits, again.of) == (Rate, 1 / 3, 1, 3)


@pytest.mark.parametrize("kind", SCORE_KINDS)
def test_score_kinds_are_those_of_the_header(kind: str) -> None:
    assert Header(score_kind=kind).score_kind == kind  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match=f"did you mean '{kind}'"):
        Header(score_kind=f"{kind}s")  # type: ignore[arg-type]
