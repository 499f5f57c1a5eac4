"""One home for the choice of interval: no other module computes the ends of one, and one number has one interval."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np
import pytest
from tests.source import SOURCE, trees

import hitmiss as hm
from hitmiss.core.expressions import Derived
from hitmiss.core.registry import forget
from hitmiss.core.trials import Trials
from hitmiss.engine.measure import measure_design

CHOOSER = SOURCE / "engine" / "interval.py"
FORMULAS = tuple(SOURCE / "stats" / f"{name}.py" for name in ("intervals", "prevalence", "changed_rate"))
"""Formulas, and those that are made of formulas."""


def imported(tree: ast.Module) -> Iterator[str]:
    """Every dotted name that a file imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def users(tree: ast.Module) -> bool:
    return any(f"{name}.".startswith("hitmiss.stats.intervals.") for name in imported(tree))


def test_only_the_chooser_imports_the_formulas() -> None:
    found = [path for path, tree in trees(r"\bintervals\b") if path not in FORMULAS and users(tree)]
    assert found == [CHOOSER]


def test_no_form_and_no_steps_compute_an_interval() -> None:
    """A method called `interval` outside the chooser would be a second home."""
    own = [
        f"{path.name}:{node.name}"
        for path, tree in trees(r"def (interval|by_units)\b")
        if path.relative_to(SOURCE).parts[0] in ("stats", "engine")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name in ("interval", "by_units") and path not in FORMULAS
    ]
    assert own in ([], ["planning.py:by_units"])  # an error over units, not an interval


@pytest.mark.parametrize("unit", [None, "speaker"])
@pytest.mark.parametrize("metric", ["eer", "roc_auc", "accuracy"])
def test_worst_is_the_greatest(metric: str, unit: str | None) -> None:
    """`worst` in a table and `max()` (or `min()`) in an expression are one number with one interval."""
    rng = np.random.default_rng(4)
    n = 600
    label = rng.random(n) < 0.4
    speaker = rng.integers(0, 25, n)
    score = rng.normal(size=n) + 1.6 * label + 0.3 * rng.normal(size=25)[speaker]
    trials = Trials.of(
        label,
        score,
        codec=np.array(["a", "b", "c"])[rng.integers(0, 3, n)],
        speaker=np.char.add("s", speaker.astype(str)),
    )
    trials = hm.decide(trials, 0.8)
    design = hm.Design.of([metric], by="codec", bootstrap=100, unit=unit)
    greatest = "min" if metric in ("roc_auc", "accuracy") else "max"
    results = measure_design(trials, design, derived=[Derived.parse("extreme", f"{greatest}({metric}, codec)")])
    worst = next(e for e in results if e.average == "worst")
    extreme = next(e for e in results if e.metric == "extreme")
    assert (extreme.value, extreme.low, extreme.high) == (worst.value, worst.low, worst.high)
    assert worst.low is not None


def test_a_metric_that_repeats_trials_has_an_interval_over_units() -> None:
    """Blocks of units are left out by weights that are numbers of trials: whole, as those of replicates."""
    rng = np.random.default_rng(5)
    label, speaker = rng.integers(0, 2, 400), rng.integers(0, 20, 400)
    seen: list[np.dtype[np.generic]] = []

    @hm.metric(name="own_gap", best="high", range=(-np.inf, np.inf), one_by_one=True)
    def own_gap(label: np.ndarray, score: np.ndarray, weight: np.ndarray | None = None) -> float:
        """Distance of the class means."""
        if weight is not None:
            seen.append(weight.dtype)
            label, score = np.repeat(label, weight), np.repeat(score, weight)
        return float(score[label == 1].mean() - score[label == 0].mean())

    try:
        trials = Trials.of(label, label + rng.normal(size=400), speaker=speaker.astype(str))
        found = hm.measure(trials, "own_gap", unit="speaker", bootstrap=50).estimates[0]
    finally:
        forget("own_gap", "metric")
    assert found.low is not None and found.high is not None and found.low < 1 < found.high
    assert seen and all(np.issubdtype(kind, np.integer) for kind in seen)


def test_a_metric_that_repeats_trials_has_the_interval_of_its_weighted_twin() -> None:
    """Where an attack is left out, the other 5 count 6/5 times: repeated, 6 trials for every 5 of the other class."""
    rng = np.random.default_rng(6)
    n = 600
    label, speaker, attack = rng.integers(0, 2, n), rng.integers(0, 15, n), rng.integers(0, 6, n)
    score = label + rng.normal(size=n) + 0.3 * rng.normal(size=15)[speaker] + 0.3 * rng.normal(size=6)[attack]

    @hm.metric(name="repeated_gap", best="high", range=(-np.inf, np.inf), one_by_one=True)
    def repeated_gap(label: np.ndarray, score: np.ndarray, weight: np.ndarray | None = None) -> float:
        """Distance of the class means in standard deviations of all scores."""
        if weight is not None:
            label, score = np.repeat(label, weight), np.repeat(score, weight)
        return float((score[label == 1].mean() - score[label == 0].mean()) / score.std())

    @hm.metric(name="weighted_gap", best="high", range=(-np.inf, np.inf))
    def weighted_gap(label: np.ndarray, score: np.ndarray, weight: np.ndarray | None = None) -> float:
        """Return the same by sums of weights."""
        each = np.ones(len(label)) if weight is None else np.asarray(weight, dtype=np.float64)
        above, below = (np.average(score[label == k], weights=each[label == k]) for k in (1, 0))
        centre = np.average(score, weights=each)
        return float((above - below) / np.sqrt(np.average((score - centre) ** 2, weights=each)))

    try:
        names = np.where(label == 1, "-", np.char.add("A", attack.astype(str)))
        trials = Trials.of(label, score, speaker=speaker.astype(str), attack=names)
        both = ["repeated_gap", "weighted_gap"]
        one, other = hm.measure(trials, both, unit=["speaker", "attack"], bootstrap=50).estimates
    finally:
        forget("repeated_gap", "metric")
        forget("weighted_gap", "metric")
    assert one.low is not None and other.low is not None
    assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-9)
