"""A metric says all of itself: title, formula, range, direction, chance level, what it needs, when it is undefined."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest

import hitmiss as hm
from hitmiss.core.metric import Chance, Metric
from hitmiss.core.registry import all_metrics, forget, metric_of

SOURCE = Path(__file__).parent.parent.parent / "src" / "hitmiss"
BUILT_IN = {name: entry for name, entry in all_metrics().items() if entry.function.__module__.startswith("hitmiss.")}

each_metric = pytest.mark.parametrize("entry", BUILT_IN.values(), ids=list(BUILT_IN))


@each_metric
def test_it_says_what_it_is_and_how_it_is_computed(entry: Metric) -> None:
    assert entry.title and entry.gist
    assert entry.formula
    assert entry.undefined, "say when it is undefined"


@each_metric
def test_what_is_written_for_people_is_what_the_engine_uses(entry: Metric) -> None:
    if "Best: " in entry.text and not entry.two_sided:
        assert re.search(r"Best: (low|high)", entry.text)[1] == entry.best
    found = re.search(r"Range: (−?\d+(?:\.\d+)?)\.\.(−?\d+(?:\.\d+)?)?", entry.text)
    if found:
        low, high = (float(g.replace("−", "-")) if g else math.inf for g in found.groups())
        if entry.name == "augrc":  # at most 0.5; its interval is formed on the scale of 0..1, like that of `aurc`
            low, high = entry.range
        assert entry.range == (low, high)


@each_metric
def test_the_chance_level_lies_in_the_range(entry: Metric) -> None:
    level = entry.chance_level(0.3, {})
    low, high = entry.range_of({})
    assert level is None or low <= level <= high


SCORES = ("eer", "roc_auc", "average_precision", "min_dcf", "min_cllr", "tpr_at_fpr")


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_scores_without_information_reach_the_chance_level(name: str, share: float) -> None:
    rng = np.random.default_rng(3)
    label = (np.arange(60_000) < share * 60_000).astype(int)
    found = BUILT_IN[name].function(label, rng.normal(size=len(label)))
    level = BUILT_IN[name].chance_level(share, {})
    if name in ("min_dcf", "min_cllr"):  # the best threshold is never worse than the trivial system
        assert level - 0.01 < found <= level
    else:
        assert found == pytest.approx(level, abs=0.012)


TRIVIAL = {
    "accuracy": lambda label, share: np.full_like(label, int(share > 0.5)),
    "f1": lambda label, share: np.ones_like(label),
    "balanced_accuracy": lambda label, share: np.ones_like(label),
}


@pytest.mark.parametrize("name", TRIVIAL)
@pytest.mark.parametrize("share", [0.25, 0.75])
def test_the_trivial_system_reaches_the_chance_level_of_decisions(name: str, share: float) -> None:
    label = (np.arange(400) < share * 400).astype(int)
    found = BUILT_IN[name].function(label, TRIVIAL[name](label, share))
    assert found == pytest.approx(BUILT_IN[name].chance_level(share, {}))


def test_the_share_of_positives_stated_for_every_trial_reaches_the_chance_level_of_brier() -> None:
    label = (np.arange(400) < 100).astype(int)
    assert hm.metrics.brier(label, np.full(400, 0.25)) == pytest.approx(BUILT_IN["brier"].chance_level(0.25, {}))


def test_a_cost_that_is_not_in_units_of_the_trivial_system_has_no_level() -> None:
    assert BUILT_IN["min_dcf"].chance_level(0.5, {"normalize": False}) is None
    assert BUILT_IN["tpr_at_fpr"].chance_level(0.5, {"fpr": 0.05}) == 0.05


@pytest.mark.parametrize(
    ("name", "of_positives", "of_negatives"),
    [("recall", True, False), ("fpr", False, True), ("accuracy", True, True), ("precision", False, False)],
)
def test_what_a_metric_is_over_says_where_it_means_something(name: str, of_positives: bool, of_negatives: bool) -> None:
    entry = BUILT_IN[name]
    assert (entry.is_telling(5, 5), entry.is_telling(0, 5)) == (of_positives, of_negatives)
    assert entry.is_telling(2, 5)


def test_a_metric_of_a_user_states_all_of_itself_and_reports_use_it() -> None:
    from hitmiss.conclude.chance import chance_level
    from hitmiss.core.results import Estimate
    from hitmiss.findings.wording import explain, is_share

    @hm.metric(
        best="high",
        title="Lab score",
        formula="hits / n",
        undefined="without trials",
        chance=0.25,
        of="all",
        share=True,
    )
    def lab_score(score, weight=None):
        """The share of hits of our lab."""
        return float(np.average(score, weights=weight))

    try:
        entry = metric_of("lab_score")
        assert (entry.title, entry.formula, entry.undefined) == ("Lab score", "hits / n", "without trials")
        assert explain("lab_score").title == "Lab score"
        assert "hits / n" in explain("lab_score").text and "without trials" in explain("lab_score").text
        assert chance_level(Estimate("lab_score", 0.5)).value == 0.25
        assert is_share("lab_score")
    finally:
        forget("lab_score")


def test_a_chance_level_may_say_what_gives_it() -> None:
    assert Chance(lambda share, settings: share * settings["times"], "two coins").level(0.2, {"times": 2}) == 0.4


LEFT = {
    "cli": 5,
    "conclude": 8,
    "evaluation": 11,
    "io": 1,
    "llm": 2,
    "reports": 15,
    "robustness": 1,
    "stats": 1,
    "verdicts": 1,
}
"""Literals of metric names that are still outside metrics and protocols, per package: they may only become fewer.

Those of `io` and `llm` are names that other tools give to their own metrics.
"""
OTHER_WORDS = {"precision", "coverage", "changed", "lost", "snr_db"}
"""Names of metrics that are also plain words or columns elsewhere."""


def test_metric_names_are_no_literals_outside_metrics_and_protocols() -> None:
    found: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if part in ("metrics", "protocols"):
            continue
        for line, value in literals(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(part, []).append(f"{path.relative_to(SOURCE)}:{line} {value}")
    over = {part: places for part, places in found.items() if len(places) > LEFT.get(part, 0)}
    assert not over, over


def literals(tree: ast.Module) -> list[tuple[int, str]]:
    """Return the texts of a tree that are names of metrics, with or without settings; docstrings are left out."""
    said = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and isinstance(node.body[:1] and node.body[0], ast.Expr)
    }
    texts = [
        n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in said
    ]
    names = set(BUILT_IN) - OTHER_WORDS
    return [(n.lineno, n.value) for n in texts if n.value.split("(")[0] in names]


def test_the_finder_finds_names_and_leaves_docstrings() -> None:
    tree = ast.parse('"""eer"""\nx = ["eer", "min_dcf(c_fa=1)", "beer"]\n')
    assert [value for _, value in literals(tree)] == ["eer", "min_dcf(c_fa=1)"]
