"""The table of invalid comparisons, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from hitmiss.core.errors import DataError
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials
from hitmiss.engine.comparability import RULES, breaches, facts, unchecked
from hitmiss.engine.compare import compare

INVALID: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"dataset": "3f9a"}, {"dataset": "77b0"}, "different datasets (3f9a and 77b0): different difficulty"),
    ({"cache": "on"}, {"cache": "off"}, "mixed cache states (on and off): latency is not comparable"),
    ({"prompt_hashes": {"agent": "a1"}}, {"prompt_hashes": {"agent": "b2"}}, "different prompts"),
    ({"temperature": 0.0}, {"temperature": 0.7}, "different temperatures (0.0 and 0.7)"),
    ({"max_iterations": 15}, {"max_iterations": 5}, "different iteration limits"),
    ({"reasoning_effort": "low"}, {"reasoning_effort": "high"}, "different reasoning efforts"),
    (
        {"model": "m1", "tools": "yes"},
        {"model": "m2", "tools": "no"},
        "two things changed at once (m1, yes and m2, no)",
    ),
    (
        {"models": {"agent": "m1", "vision": "v1"}},
        {"models": {"agent": "m2", "vision": "v2"}},
        "the agent model and the vision model differ, so neither explains the result",
    ),
]
VALID: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"dataset": "3f9a", "cache": "off", "model": "m1"}, {"dataset": "3f9a", "cache": "off", "model": "m2"}),
    ({"model": "m1", "tools": "yes"}, {"model": "m1", "tools": "no"}),
    ({"models": {"agent": "m1", "vision": "v1"}}, {"models": {"agent": "m1", "vision": "v2"}}),
    ({"models": {"agent": "m1", "vision": "m1"}}, {"models": {"agent": "m2", "vision": "m2"}}),
    ({"timestamp": "monday"}, {"timestamp": "tuesday"}),
]


def made_with(provenance: dict[str, Any], **columns: list[str]) -> Trials:
    return Trials.of([1, 0, 1, 0], [4.0, 1.0, 3.0, 2.0], header=Header(provenance=provenance), **columns)


@pytest.mark.parametrize(("one", "other", "words"), INVALID)
def test_each_invalid_comparison_is_refused_with_its_reason(
    one: dict[str, Any], other: dict[str, Any], words: str
) -> None:
    a, b = made_with(one), made_with(other)
    assert words in "; ".join(map(str, breaches(a, b)))
    with pytest.raises(DataError, match="cannot be compared") as caught:
        compare(a, b, ["roc_auc"])
    assert words in str(caught.value) and "force=True" in str(caught.value)


@pytest.mark.parametrize(("one", "other", "words"), INVALID)
def test_force_prints_the_reason_into_the_report(one: dict[str, Any], other: dict[str, Any], words: str) -> None:
    found = compare(made_with(one), made_with(other), ["roc_auc"], force=True)
    assert any(w.startswith("INVALID COMPARISON, forced: ") and words in w for w in found.warnings)
    assert "|forced:yes|" in found.signature


@pytest.mark.parametrize(("one", "other"), VALID)
def test_valid_comparisons_pass(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert breaches(made_with(one), made_with(other)) == []


def test_columns_with_one_value_are_facts() -> None:
    a, b = (made_with({}, tools=[t] * 4, codec=["x", "y", "x", "y"]) for t in ("yes", "no"))
    assert facts(a) == {"tools": "yes"}
    assert breaches(a, b) == []
    hot, cold = (made_with({}, temperature=[t] * 4) for t in ("0.0", "1.0"))
    assert [breach.name for breach in breaches(hot, cold)] == ["different temperatures"]


def test_what_one_run_alone_records_is_noted() -> None:
    a, b = made_with({"cache": "on"}), made_with({})
    assert unchecked(a, b) == ["mixed cache states? Only one run records cache, so this was not checked"]
    assert unchecked(a, a) == [] and breaches(a, b) == []


def test_every_rule_has_a_reason() -> None:
    assert all(rule.name and rule.problem and rule.facts for rule in RULES)


def test_what_is_told_by_run_counts_for_the_runs_that_are_there() -> None:
    told = {"by_run": {"m|tools": {"temperature": 0.0}, "m|none": {"temperature": 0.7}, "n|none": {"temperature": 0.7}}}

    def of(*runs: tuple[str, str]) -> Trials:
        items = [f"{i}" for i in range(4)]
        head = Header(provenance=told, runs=("model", "tools", "trial"))
        columns = {name: [run[at] for run in runs for _ in items] for at, name in enumerate(("model", "tools"))}
        label, score = [1, 0, 1, 0] * len(runs), [4.0, 1.0, 3.0, 2.0] * len(runs)
        return Trials.of(
            label, score, item=items * len(runs), header=head, trial=["1", "1", "1", "1"] * len(runs), **columns
        )

    cold, warm, other = of(("m", "tools")), of(("m", "none")), of(("n", "none"))
    assert facts(cold)["temperature"] == "0.0" and facts(warm)["temperature"] == "0.7"
    assert [b.name for b in breaches(cold, warm)] == ["different temperatures"]
    assert breaches(warm, other) == []
    both = of(("m", "tools"), ("m", "none"))
    assert facts(both)["temperature"] == "0.0 / 0.7"
    assert [b.name for b in breaches(both, warm)] == ["different temperatures"] and breaches(both, both) == []
