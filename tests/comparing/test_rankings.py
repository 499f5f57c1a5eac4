"""More than two runs: every pair, one family, letters."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import polars as pl
import pytest

from hitmiss.comparing.comparison import compare
from hitmiss.comparing.rankings import compare_all
from hitmiss.errors import UnknownName, UsageError
from hitmiss.report.comparison_tables import ranking_tables
from hitmiss.stats.multiple import holm
from hitmiss.trials import Trials


def runs(n: int = 600) -> dict[str, Trials]:
    rng = np.random.default_rng(1)
    label, base = np.arange(n) % 2, rng.normal(size=n)
    skills = {"good": 2.5, "twin": 2.5, "poor": 0.8}
    return {name: Trials.of(label, base + s * label + 0.6 * rng.normal(size=n)) for name, s in skills.items()}


def test_every_pair_is_there_and_adjusted_as_one_family() -> None:
    given = runs()
    found = compare_all(given, ["roc_auc"])
    pairs = [("good", "twin"), ("good", "poor"), ("twin", "poor")]
    assert [(d.a, d.b) for d in found.duels] == pairs
    alone = [compare(given[a], given[b], ["roc_auc"]).one("roc_auc") for a, b in pairs]
    assert [d.difference.p_value for d in found.duels] == [r.p_value for r in alone]
    assert [d.difference.p_adjusted for d in found.duels] == pytest.approx(holm([r.p_value or 0.0 for r in alone]))


def test_letters_go_from_best_to_worst() -> None:
    found = compare_all(runs(), ["roc_auc", "eer"])
    for metric in ("roc_auc", "eer"):
        own = [s for s in found.standings if s.metric == metric]
        assert own[-1].run == "poor" and [s.letters for s in own] == ["a", "a", "b"]
    values = [s.value for s in found.standings if s.metric == "eer"]
    assert values == sorted(values)


def test_json_and_tables() -> None:
    found = compare_all(runs(), ["roc_auc"])
    data = json.loads(found.to_json())
    assert (data["schema"], data["kind"], data["runs"]) == (1, "ranking", ["good", "twin", "poor"])
    assert [(p["run_a"], p["run_b"]) for p in data["pairs"]] == [("good", "twin"), ("good", "poor"), ("twin", "poor")]
    assert found.signature.count("+") == 2 and "compare:all-pairs" in found.signature
    (table,) = ranking_tables(found)
    order = [row[0].text for row in table.rows]
    at = {row[0].text: {name: cell.text for name, cell in zip(order, row[3:], strict=True)} for row in table.rows}
    assert float(at["good"]["poor"]) == -float(at["poor"]["good"]) > 0 and at["good"]["good"] == ""


def test_what_cannot_be_ranked() -> None:
    given = runs(20)
    with pytest.raises(UsageError, match="two runs or more; found 1"):
        compare_all({"one": given["good"]}, ["eer"])
    with pytest.raises(UnknownName, match="codec"):
        compare_all(given, ["eer"], by=["codec"])


def test_slices_are_one_family_with_all_pairs_and_each_has_letters_of_its_own() -> None:
    given = {}
    for name, trials in runs(900).items():
        codec = pl.Series("codec", ["x", "y", "z"] * 300)
        given[name] = trials.put(codec=codec).retitle(slices=("codec",))
    found = compare_all(given, ["roc_auc"], by=["codec"])
    alone = [
        compare(given[a], given[b], ["roc_auc"], by=["codec"], correction="none") for a, b in combinations(given, 2)
    ]
    slices = [row for c in alone for row in c if row.slice and row.average is None]
    wanted = dict(zip(((r.a, r.b) for r in slices), holm([r.p_value or 0.0 for r in slices]), strict=True))
    sliced = [d.difference for d in found.duels if d.difference.slice and d.difference.average is None]
    assert len(sliced) == 9 and {(d.a, d.b): d.p_adjusted for d in sliced} == pytest.approx(wanted)
    pooled = [d.difference for d in found.duels if not d.difference.slice]
    assert [d.p_adjusted for d in pooled] == pytest.approx(holm([d.p_value or 0.0 for d in pooled]))
    for codec in "xyz":
        own = [s for s in found.standings if s.slice == {"codec": codec} and s.average is None]
        assert {s.run for s in own} == {*given} and own[-1].run == "poor" and own[-1].letters == "b"
        assert {s.run: s.value for s in own}["poor"] == alone[1].one("roc_auc", codec=codec).b
    macro = [s for s in found.standings if s.average == "macro"]
    assert len(macro) == 3 and macro[0].metric == "macro roc_auc [codec=*]"
    whole, table = ranking_tables(found)
    assert whole.header[:3] == ("run", "value", "group")
    assert table.header == ("codec", "pairs", "good", "twin", "poor")
    assert [row[0].text for row in table.rows] == ["x", "y", "z", "macro"]
    assert [row[4].below for row in table.rows[:3]] == ["b"] * 3


def test_an_undefined_run_stays_without_a_letter() -> None:
    a, b = (Trials.of([1, 1, 0], decision=d) for d in ([0, 0, 0], [1, 0, 0]))
    found = compare_all({"silent": a, "says": b, "again": b}, ["precision"])
    assert [(s.run, s.value, s.letters) for s in found.standings] == [
        ("says", 1.0, "a"),
        ("again", 1.0, "a"),
        ("silent", None, ""),
    ]
