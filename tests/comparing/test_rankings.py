"""More than two runs: every pair, one family, letters."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.trials import Trials
from hitmiss.engine import rank
from hitmiss.engine.compare import compare
from hitmiss.engine.rank import compare_all
from hitmiss.reports.ranking_tables import ranking_tables
from hitmiss.stats.corrections import holm


def runs(n: int = 600) -> dict[str, Trials]:
    rng = np.random.default_rng(1)
    label, base = np.arange(n) % 2, rng.normal(size=n)
    skills = {"good": 2.5, "twin": 2.5, "poor": 0.8}
    return {name: Trials.of(label, base + s * label + 0.6 * rng.normal(size=n)) for name, s in skills.items()}


def test_every_pair_is_there_and_close_to_its_own_comparison() -> None:
    """Alone, a pair is tested by DeLong; in the ranking by the studentised difference of shared replicates."""
    given = runs()
    found = compare_all(given, ["roc_auc"], correction="none")
    pairs = [("good", "twin"), ("good", "poor"), ("twin", "poor")]
    assert [(d.a, d.b) for d in found.duels] == pairs
    for duel in found.duels:
        alone = compare(given[duel.a], given[duel.b], ["roc_auc"]).one("roc_auc")
        d = duel.difference
        assert (d.a, d.b, d.delta) == (alone.a, alone.b, alone.delta)
        assert norm.isf(d.p_value / 2) == pytest.approx(norm.isf((alone.p_value or 0.0) / 2), rel=0.15)
    holm_ = compare_all(given, ["roc_auc"], correction="holm")
    assert [d.difference.p_adjusted for d in holm_.duels] == pytest.approx(
        holm([d.difference.p_value or 0.0 for d in found.duels])
    )


def systems(eers: tuple[float, ...], n: int = 1500, seed: int = 0) -> dict[str, Trials]:
    """Systems with these equal error rates on the same trials."""
    rng = np.random.default_rng(seed)
    label, common = (np.arange(n) % 5 == 0).astype(int), rng.normal(size=n)
    return {
        f"X{i}": Trials.of(label, 2 * norm.isf(e) * label + 0.6 * common + 0.8 * rng.normal(size=n))
        for i, e in enumerate(eers)
    }


def test_nine_systems_from_excellent_to_poor_are_told_apart_at_defaults() -> None:
    """Holm over 36 bootstrap p values with the floor 2/1001 could show none of them."""
    found = compare_all(systems((0.003, 0.012, 0.03, 0.06, 0.10, 0.16, 0.23, 0.32, 0.419)), ["eer"])
    assert len({letter for s in found.standings for letter in s.letters}) >= 7
    assert [s.rank_low for s in found.standings][-1] == 9 and found.standings[0].rank_high in (1, 2)
    least = min(d.difference.p_adjusted or 1.0 for d in found.duels)
    assert least < 1e-9  # far beyond what 1,000 replicates can count
    for duel in found.duels:
        d = duel.difference
        if d.low is not None and d.high is not None and (d.low > 0 or d.high < 0):
            assert d.p_adjusted is not None and d.p_adjusted < 0.05


def test_equal_systems_are_rarely_told_apart() -> None:
    """Eight equal systems, 25 data sets: any false difference in about 5 % of them."""
    called = 0
    for seed in range(25):
        found = compare_all(systems((0.1,) * 8, n=500, seed=seed), ["eer"], bootstrap=200, seed=seed)
        called += any((d.difference.p_adjusted or 1.0) < 0.05 for d in found.duels if d.difference.metric == "eer")
    assert called <= 5  # 1.25 expected


def test_the_order_of_rows_and_of_runs_changes_no_figure() -> None:
    given = systems((0.1, 0.12, 0.2), n=300)
    order = np.random.default_rng(3).permutation(300)
    turned = {name: replace(t, frame=t.frame[order]) for name, t in given.items()}
    one, other = (compare_all(g, ["eer", "f1"][:1], bootstrap=100) for g in (given, turned))
    assert [asdict(d.difference) for d in one.duels] == [asdict(d.difference) for d in other.duels]
    back = compare_all(dict(reversed(given.items())), ["eer"], bootstrap=100)
    assert {s.run: s.letters for s in back.standings} == {s.run: s.letters for s in one.standings}


def test_runs_that_are_measured_side_by_side_give_the_same_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings included, in the order of the runs: one of them has scores of a single value."""
    given = {**systems((0.05, 0.1, 0.2, 0.3)), "flat": Trials.of((np.arange(1500) % 5 == 0).astype(int), np.ones(1500))}
    found = []
    for large in (1, 10**9):
        monkeypatch.setattr(rank, "LARGE", large)
        monkeypatch.setattr(rank, "cores", lambda: 3)
        found.append(compare_all(given, ["eer", "min_dcf", "roc_auc"], bootstrap=100).to_json())
    assert found[0] == found[1] and "flat: " in found[0]


def test_what_a_ranking_cannot_do_is_said() -> None:
    given = systems((0.1, 0.2, 0.3), n=100)
    with pytest.raises(UsageError) as err:
        compare_all(given, ["roc_auc"], test="delong")
    assert err.value.code == "ranking-test"
    silent = compare_all(given, ["eer"], bootstrap=0)
    assert any("nothing was tested" in w for w in silent.warnings)
    assert all(s.rank_low is None for s in silent.standings)
    few = {n: t.put(speaker=np.array(["a", "b", "c", "d", "e"])[np.arange(100) % 5]) for n, t in given.items()}
    found = compare_all(few, ["eer"], unit="speaker", bootstrap=100)
    assert all(d.difference.p_value is None and "too few" in str(d.difference.note) for d in found.duels)


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
    assert (
        found.signature.count("+") == 2
        and "correction:max-t" in found.signature
        and "compare:all-pairs" in found.signature
    )
    (table,) = ranking_tables(found)
    order = [row[0].text for row in table.rows]
    at = {row[0].text: {name: cell.text for name, cell in zip(order, row[4:], strict=True)} for row in table.rows}
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
    sliced = [d.difference for d in found.duels if d.difference.slice and d.difference.average is None]
    assert len(sliced) == 9
    single = compare_all({n: t.where(codec="x") for n, t in given.items()}, ["roc_auc"])
    wider = {(d.a, d.b): d.difference.p_adjusted for d in found.duels if d.difference.slice == {"codec": "x"}}
    for duel in single.duels:  # nine tests at once ask for more than three
        p = duel.difference.p_adjusted or 0.0  # tails below 1e-6 are beyond what 1,000 replicates can tell apart
        assert p < 1e-6 or (wider[duel.a, duel.b] or 0.0) >= 0.8 * p
    alone = compare(given["good"], given["poor"], ["roc_auc"], by=["codec"])
    for codec in "xyz":
        own = [s for s in found.standings if s.slice == {"codec": codec} and s.average is None]
        assert {s.run for s in own} == {*given} and own[-1].run == "poor" and own[-1].letters == "b"
        assert {s.run: s.value for s in own}["poor"] == alone.one("roc_auc", codec=codec).b
    macro = [s for s in found.standings if s.average == "macro"]
    assert len(macro) == 3 and macro[0].metric == "macro roc_auc [codec=*]"
    whole, table = ranking_tables(found)
    assert whole.header[:4] == ("run", "value", "rank, 95%", "group")
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


def test_a_run_without_an_error_of_one_kind_is_ranked() -> None:
    """Its cost may be higher than draws show, but hundreds of false alarms are more than its trials leave open."""
    label = np.repeat([1, 0], [300, 1200])
    noise = np.random.default_rng(8).random(1500)
    wrong = {"perfect": 0, "good": 3, "poor": 240}
    given = {name: Trials.of(label, noise + 9.0 * (np.arange(1500) < 300 + n)) for name, n in wrong.items()}
    found = compare_all(given, ["min_dcf"], bootstrap=300)
    pairs = {(d.a, d.b): d.difference for d in found.duels}
    assert all("leave open" in str(d.note) for d in pairs.values())
    assert (pairs["perfect", "poor"].p_adjusted or 1.0) < 1e-6 and (pairs["good", "poor"].p_adjusted or 1.0) < 1e-6
    assert all((d.low or 0.0) > 0.0 for (_, worse), d in pairs.items() if worse == "poor")
    assert (pairs["perfect", "good"].p_adjusted or 0.0) > 0.3
    assert [(s.run, s.letters, s.rank_low, s.rank_high) for s in found.standings] == [
        ("perfect", "a", 1, 2),
        ("good", "a", 1, 2),
        ("poor", "b", 3, 3),
    ]
    assert "3 of 3 pairs: a run shows no error" in ranking_tables(found)[0].note
