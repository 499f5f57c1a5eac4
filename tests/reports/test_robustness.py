"""Curves over strength, reports of attacks and of repeated trials, against counting by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import hitmiss as hm
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError
from hitmiss.core.header import Header
from hitmiss.core.results import Estimate, Results
from hitmiss.core.trials import Trials
from hitmiss.reports import campaigns
from hitmiss.reports.displays.display import plate_of
from hitmiss.reports.evaluations import RunData, evaluations
from hitmiss.reports.figures import RobustnessDisplay
from hitmiss.reports.html import render
from hitmiss.reports.page import compose
from hitmiss.reports.pictures import pictures
from hitmiss.reports.plate import Dots
from hitmiss.reports.sources import Measuring, measured
from hitmiss.reports.svg import svg_of
from hitmiss.robustness.attacks import measure_attacks
from hitmiss.verdicts.stability import measure_repeated

CLASSES = ("CD", "MI", "NORM")
STRENGTHS = ("0.1", "0.5", "1")


@pytest.fixture(scope="module")
def bits() -> dict[str, Any]:
    """Truth and answers of 40 records: clean, and under two attacks with a control each."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, (40, 3))
    clean = np.where(rng.random((40, 3)) < 0.1, 1 - truth, truth)
    made: dict[str, Any] = {"truth": truth, "clean": clean}
    for attack, harm in (("pgd", 0.5), ("noise ~ pgd", 0.05), ("wander", 0.2), ("noise ~ wander", 0.05)):
        for s in STRENGTHS:
            made[attack, s] = np.where(rng.random((40, 3)) < harm * float(s), 1 - clean, clean)
    return made


@pytest.fixture(scope="module")
def attacked(bits: dict[str, Any]) -> Trials:
    rows: dict[str, list[Any]] = {name: [] for name in ("item", "target", "attack", "strength", "sex")}
    label, decision = [], []
    cells = {("clean", "0"): bits["clean"], **{k: v for k, v in bits.items() if isinstance(k, tuple)}}
    for (attack, strength), answer in cells.items():
        for i in range(40):
            for k, name in enumerate(CLASSES):
                for column, value in zip(rows, (f"r{i:02d}", name, attack, strength, "fm"[i % 2]), strict=True):
                    rows[column].append(value)
                label.append(bits["truth"][i, k])
                decision.append(answer[i, k])
    score = 2.0 * np.array(decision) - 1 + np.random.default_rng(0).normal(size=len(label)) / 10
    frame = pl.DataFrame({**rows, "label": label, "decision": decision, "score": score})
    return Trials.from_frame(frame, Header("present", "absent", "logit", runs=("attack", "strength"), slices=("sex",)))


def test_lines_are_the_shares_counted_by_hand(attacked: Trials, bits: dict[str, Any]) -> None:
    results = measure_attacks(attacked)
    display = RobustnessDisplay.from_results(results, "changed")
    assert [line.name for line in display.lines] == ["pgd", "noise ~ pgd", "wander", "noise ~ wander"]
    for line in display.lines:
        counted = [(bits[line.name, s] != bits["clean"]).any(axis=1).mean() for s in STRENGTHS]
        assert line.x.tolist() == [float(s) for s in STRENGTHS]
        np.testing.assert_allclose(line.value, counted, atol=1e-12)
        assert (line.low <= line.value).all() and (line.value <= line.high).all()
        assert line.is_control == line.name.startswith("noise") and line.of == line.name.removeprefix("noise ~ ")
    right = (bits["clean"] == bits["truth"]).all(axis=1)
    exact = RobustnessDisplay.from_results(results, "exact_match")
    assert exact.clean == pytest.approx(right.mean())
    with pytest.raises(DataError, match="no eer of an attack"):
        RobustnessDisplay.from_results(results, "eer")


def test_the_figure_holds_every_point_and_names_are_escaped(attacked: Trials) -> None:
    display = RobustnessDisplay.from_results(measure_attacks(attacked), "robust_accuracy")
    drawn = [m for m in plate_of((("", display),)).marks if isinstance(m, Dots)]
    assert len(drawn) == 4
    assert all(np.allclose(m.x, [0.1, 0.5, 1.0], atol=0.03) for m in drawn)
    hostile = Estimate("changed", 0.5, run={"attack": "<b>x</b>", "strength": "1"})
    plate = plate_of((("", RobustnessDisplay.from_results(Results((hostile,)), "changed")),))
    assert "<b>" not in svg_of(plate, "id") and "&lt;b&gt;x" in svg_of(plate, "id")
    axes = display.plot()
    assert axes.get_xlabel() == "strength" and len(axes.get_lines()) >= 4


def test_a_search_for_least_strengths_is_no_greatest_strength(attacked: Trials) -> None:
    """Beside attacks at strengths a search speaks for none of them: tiles, maps and the worst attack leave it out."""
    found = attacked.frame.filter(pl.col("attack") == "pgd", pl.col("strength") == "1")
    searched = found.with_columns(strength=pl.lit("minimal"), decision=1 - pl.col("decision"))
    both = Trials(pl.concat([attacked.frame, searched]), attacked.header)
    page = compose([RunData("run", measure_attacks(both, by=["sex"]), (), both)])
    said = render(page)
    assert "at minimal" not in said and "at 3 strengths" in said


def test_a_report_of_attacks_counts_records_and_names_the_worst_attack(attacked: Trials, bits: dict[str, Any]) -> None:
    results = measure_attacks(attacked, by=["target", "sex"])
    page = compose([RunData("run", results, (), attacked)])
    (part,) = page.parts
    assert f"40 records, {int(bits['truth'].any(axis=1).sum())} of them with a label" in part.summary.tested
    right = (bits["clean"] == bits["truth"]).all(axis=1)
    robust = {
        (a, s): (right & (bits[a, s] == bits["truth"]).all(axis=1)).mean() for a in ("pgd", "wander") for s in STRENGTHS
    }
    worst = min(robust, key=lambda key: robust[key])
    (name, head), *_ = part.summary.headlines
    assert name == "" and head.title.endswith(f"{worst[0]} at {worst[1]}")
    assert float(head.value.removesuffix("\u00a0%")) == pytest.approx(100 * robust[worst], abs=0.51)
    figures, domains = part.section("curves").figures, part.section("domains")
    assert {f.kind for f in figures} == {"robustness"} and len(figures) == 4
    assert [t.title for t in domains.tables] == ["by target", "by sex"] and domains.maps
    assert len(part.section("numbers").tables) == 1 and not part.section("versus").blocks
    text = render(page)
    assert "negative)" not in text and "of them with a label, under" in text
    assert render(page, static=True).count('<svg class="plate"') == 4


def test_records_are_ranked_by_how_easily_they_flip(attacked: Trials, bits: dict[str, Any]) -> None:
    found = campaigns.fragile(attacked, "run", 40, 10**6, None)
    cells = [(a, s) for a in ("pgd", "wander") for s in STRENGTHS]
    flips = {f"r{i:02d}": [(bits[c][i] != bits["clean"][i]).any() for c in cells] for i in range(40)}
    shown = [s.item for s in found.false_alarms]
    assert set(shown) == {item for item, own in flips.items() if any(own)}
    counts = [sum(flips[item]) for item in shown]
    assert counts == sorted(counts, reverse=True)
    told = dict(found.false_alarms[0].slices)
    assert told["flips in"] == f"{counts[0]} of 6"
    kept = sum(not any(own) for own in flips.values())
    assert found.rule.startswith(f"{kept} of 40 records kept")


def test_families_of_manipulations_become_small_figures() -> None:
    values = {
        "clean": 0.1,
        "noise(snr=20)": 0.2,
        "noise(snr=10)": 0.4,
        "noise(color=pink, snr=20)": 0.3,
        "gain(db=3)": 0.1,
    }
    rows = tuple(Estimate("eer", v, slice={"manipulation": m}) for m, v in values.items())
    (display,) = RobustnessDisplay.from_slices(Results(rows), "manipulation", "eer")
    assert (display.across, display.title, display.clean) == ("snr", "noise", 0.1)
    lines = {line.name: (line.x.tolist(), line.value.tolist()) for line in display.lines}
    assert lines == {"noise": ([10.0, 20.0], [0.4, 0.2]), "noise, pink": ([20.0], [0.3])}
    assert RobustnessDisplay.from_slices(Results(rows), "codec", "eer") == []


def test_a_drift_table_is_a_report_without_a_whole() -> None:
    rows = [
        Estimate("far", v, n=9, slice={"manipulation": m})
        for m, v in (("clean", 0.1), ("noise(snr=5)", 0.6), ("noise(snr=9)", 0.4))
    ]
    page = compose([RunData("drift", Results(tuple(rows)))])
    (part,) = page.parts
    assert not part.section("numbers").blocks and len(part.section("levels").figures) == 1
    assert part.summary.headlines[0][1].title == "False acceptance, at worst: manipulation noise(snr=5)"
    assert "60.00\u00a0%" in render(page)


def repeated() -> Trials:
    """Two configurations, three trials each, of 50 items."""
    rng = np.random.default_rng(3)
    label = np.tile((np.arange(50) < 25).astype(int), 6)
    decision = np.where(rng.random(300) < 0.15, 1 - label, label)
    run = {"tools": np.repeat(["no", "yes"], 150), "trial": np.tile(np.repeat(["0", "1", "2"], 50), 2)}
    head = Header("fake", "real", runs=("tools", "trial"))
    items = [f"i{k % 50}" for k in range(300)]
    return Trials.of(label, decision=decision, confidence=rng.random(300), item=items, header=head, **run)


def test_repeated_trials_are_one_run_with_the_mean_as_headline() -> None:
    trials = repeated()
    results = measure_repeated(trials, Design.of(["accuracy"], bootstrap=20))
    data = RunData("r", results, tuple(pictures(trials, results)), trials)
    (evaluation,) = evaluations([data])
    assert [member.name for member in evaluation.members] == ["no", "yes"]
    assert all(member.picture is not None and len(member.trials or ()) == 150 for member in evaluation.members)
    part = compose([data]).parts[0]
    shown = {name: float(head.value.removesuffix("\u00a0%")) for name, head in part.summary.headlines}
    frame = trials.frame
    for name in ("no", "yes"):
        own = frame.filter(tools=name)
        each = [float((t["label"] == t["decision"]).mean()) for _, t in own.group_by("trial")]
        assert shown[name] == pytest.approx(100 * float(np.mean(each)), abs=0.051)
        head = dict(part.summary.headlines)[name]
        assert f"sd {100 * np.std(each, ddof=1):.2g}\u00a0%" in head.interval
    overall = part.section("numbers").tables[0]
    assert overall.name == "all" and len(overall.rows) == 6 and part.section("repeats").tables


def test_seeds_stay_runs_of_their_own() -> None:
    from hitmiss.core.trials import stack
    from hitmiss.engine.repeats import over_repeats

    one = Trials.of([1, 1, 0, 0, 1, 0], [3.0, 1.0, 2.0, 0.0, 2.5, 0.3], item=list("abcdef"))
    seeds = stack({"1": one, "2": one}, "seed")
    results = over_repeats(hm.measure(seeds, ["eer"]), "seed")
    (evaluation,) = evaluations([RunData("s", results, tuple(pictures(seeds, results)), seeds)])
    assert [member.name for member in evaluation.members] == ["1", "2"]


def test_the_unit_that_is_drawn_is_no_column_to_split_by() -> None:
    rng = np.random.default_rng(0)
    label = np.arange(60) % 2
    trials = Trials.of(
        label, rng.normal(size=60) + label, speaker=[f"s{i % 5}" for i in range(60)], codec=list("ab") * 30
    )
    made = measured(trials, "r", Measuring(Design.of(["eer"], bootstrap=10, unit="speaker")))
    assert {tuple(e.slice) for e in made.results if e.slice} == {("codec",)}
