"""One home for the choice of interval: no other module computes the ends of one, and one number has one interval."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hitmiss as hm
from hitmiss.core.expressions import Derived
from hitmiss.core.trials import Trials
from hitmiss.engine.measure import measure_design

SOURCE = Path(__file__).parents[2] / "src" / "hitmiss"
CHOOSER = SOURCE / "engine" / "interval.py"
FORMULAS = tuple(SOURCE / "stats" / f"{name}.py" for name in ("intervals", "prevalence", "changed_rate"))
"""Formulas, and those that are made of formulas."""


def imported(path: Path) -> Iterator[str]:
    """Every dotted name that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def users(path: Path) -> bool:
    return any(f"{name}.".startswith("hitmiss.stats.intervals.") for name in imported(path))


def test_only_the_chooser_imports_the_formulas() -> None:
    found = [path for path in SOURCE.rglob("*.py") if path not in FORMULAS and users(path)]
    assert found == [CHOOSER]


def test_no_form_and_no_steps_compute_an_interval() -> None:
    """A method called `interval` outside the chooser would be a second home."""
    own = [
        f"{path.name}:{node.name}"
        for part in ("stats", "engine")
        for path in (SOURCE / part).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
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
