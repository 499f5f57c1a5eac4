"""A condensed tally: the figures of the whole one, and replicates of the same distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from hitmiss.core.tally import Tally
from hitmiss.metrics.detection import dcf_at_form
from hitmiss.metrics.ranking import tpr_at_fpr_form
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.crossing import equal_error
from hitmiss.stats.forms.least_cost import MinimumCost
from hitmiss.stats.replicates import trial_replicates
from hitmiss.stats.sketch import HEAVY, condense, leaves

FORMS: list[Form] = [
    equal_error("grouped"),
    equal_error("official"),
    equal_error("interpolated"),
    MinimumCost(0.95, 0.5, 0.5),
    MinimumCost(0.01, 0.99, 0.01),
    dcf_at_form(0.95, 1.0, 10.0, True, 0.25),
    tpr_at_fpr_form(0.05),
]
SCORES = st.lists(st.integers(-40, 40).map(lambda k: k / 8) | st.floats(-5, 5), min_size=1, max_size=80)


@given(SCORES, SCORES)
@settings(max_examples=60, deadline=None)
def test_figures_are_those_of_the_whole_tally(positive: list[float], negative: list[float]) -> None:
    whole = Tally.of_classes(np.array(positive) + 1.0, np.array(negative))
    short = condense(whole, FORMS)
    assert [f.value(short) for f in FORMS] == [f.value(whole) for f in FORMS]
    again = condense(short, FORMS)
    assert (again.score.tolist(), again.positives.tolist()) == (short.score.tolist(), short.positives.tolist())
    fewer = [condense(t, FORMS[:4]) for t in (whole, short)]
    assert fewer[0].score.tolist() == fewer[1].score.tolist()


@pytest.mark.parametrize("spread", [1.0, 1e-7])
def test_no_leaf_is_heavy_and_there_are_few(spread: float) -> None:
    rng = np.random.default_rng(0)
    whole = Tally.of_classes(1e3 + spread * rng.normal(1.0, size=40_000), 1e3 + spread * rng.normal(size=60_000))
    starts, lowest = leaves(whole)
    held = np.diff((whole.positives + whole.negatives)[np.append(starts, len(whole.score))])
    assert held.max() * HEAVY <= 100_000
    assert len(starts) < 20_000
    assert (lowest <= whole.score[starts]).all() and (np.diff(lowest) > 0).all()


def test_replicates_have_the_distribution_of_the_whole_tally() -> None:
    rng = np.random.default_rng(3)
    whole = Tally.of_classes(rng.normal(1.2, size=30_000), rng.normal(-1.2, size=70_000))
    forms: list[Form] = [equal_error("official"), MinimumCost(0.95, 0.5, 0.5)]
    short = condense(whole, forms)
    assert len(short.score) < len(whole.score) / 2
    a = trial_replicates(whole, forms, 3000, np.random.default_rng(1))
    b = trial_replicates(short, forms, 3000, np.random.default_rng(2))
    assert [ks_2samp(x, y).pvalue > 0.001 for x, y in zip(a, b, strict=True)] == [True, True]
