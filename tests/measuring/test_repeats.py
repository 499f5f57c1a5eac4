"""Figures over seeds."""

from __future__ import annotations

import statistics

import pytest

from hitmiss.core.errors import UsageError
from hitmiss.core.results import Estimate, Results
from hitmiss.engine.repeats import over_repeats


def seeded(*values: float | None, **cell: str) -> tuple[Estimate, ...]:
    return tuple(Estimate("eer", v, run={"seed": str(i)}, slice=cell) for i, v in enumerate(values))


def test_mean_sd_min_max_per_metric_and_slice() -> None:
    results = over_repeats(Results(seeded(0.1, 0.13, 0.4) + seeded(0.2, 0.3, 0.5, codec="C01")))
    got = {(e.average, tuple(e.slice.values())): e.value for e in results if e.average}
    assert got["mean", ()] == pytest.approx(statistics.mean([0.1, 0.13, 0.4]))
    assert got["sd", ()] == pytest.approx(statistics.stdev([0.1, 0.13, 0.4]))
    assert (got["min", ("C01",)], got["max", ("C01",)]) == (0.2, 0.5)


def test_undefined_seeds_are_left_out_and_counted() -> None:
    rows = [e for e in over_repeats(Results(seeded(0.1, None, 0.3))) if e.average]
    assert rows[0].value == pytest.approx(0.2) and rows[0].note == "2 of 3 runs"


def test_one_seed_has_no_deviation() -> None:
    rows = {e.average: e.value for e in over_repeats(Results(seeded(0.1)))}
    assert rows["mean"] == 0.1 and rows["sd"] is None


def test_results_without_seeds_are_refused() -> None:
    with pytest.raises(UsageError, match="no run column 'seed'"):
        over_repeats(Results((Estimate("eer", 0.1),)))
