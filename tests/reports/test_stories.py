"""Golden stories: what the first screen says about data whose truth is known. Each failed with the summary of before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.reports import stories

from hitmiss.conclude.verdict import conclude as assess
from hitmiss.conclude.verdict import conclude_comparison as assess_comparison
from hitmiss.conclude.verdict import conclude_gate as assess_gate
from hitmiss.core.design import Design
from hitmiss.core.finding import FAILED, OPEN, PASSED
from hitmiss.core.results import Estimate, Results
from hitmiss.core.verdict import Verdict
from hitmiss.engine.compare import compare
from hitmiss.engine.requirement import Check
from hitmiss.reports.evaluations import RunData
from hitmiss.reports.page import compose
from hitmiss.reports.plate import Curve


def said(*sources: RunData, bootstrap: int = 200) -> Verdict:
    (part,) = compose(list(sources), compare=Design(bootstrap=bootstrap)).parts
    return part.summary.verdict


def of(assessment: Verdict, name: str) -> str:
    return {line.name: line.status for line in assessment.checks}[name]


def test_a_coin_flip_is_not_called_good() -> None:
    found = said(stories.coin_flip())
    assert found.headline.startswith("Not shown to be better than chance")
    assert found.answers[0].status == FAILED and "50\u00a0%" in found.answers[0].text
    assert not [line for line in found.fails if line.status == FAILED]


def test_shifted_scores_are_named_with_the_figures_within() -> None:
    found = said(stories.score_shift())
    (line,) = [line for line in found.fails if line.status == FAILED]
    assert line.text.startswith("Scores shift between codecs") and "One threshold does not fit" in line.text
    assert "shift" in found.headline.lower()


@pytest.mark.parametrize("seed", range(6))
def test_twenty_equal_slices_have_no_weakest_spot(seed: int) -> None:
    found = said(stories.homogeneous(seed))
    assert found.fails == () and [line.status for line in found.looked] == [PASSED]
    assert found.looked[0].text.startswith("No slice was shown to be worse")
    assert "20 slices of codec" in found.looked[0].text
    assert found.headline.startswith("Better than chance")


def test_one_truly_bad_slice_is_the_only_one_named() -> None:
    found = said(stories.one_bad_slice())
    bad = [line.text for line in found.fails if line.status == FAILED]
    assert len(bad) == 1 and bad[0].startswith("codec c07:") and "adjusted p" in bad[0] and "n = 200" in bad[0]
    assert found.headline == "Better than chance, but weak on codec c07."


def test_reversed_scores_are_worse_than_chance_and_fail_a_check() -> None:
    found = said(stories.backwards())
    assert found.headline.startswith("Worse than chance") and "direction" in found.headline
    assert of(found, "direction") == FAILED


def test_saturated_scores_fail_a_check() -> None:
    found = said(stories.saturated())
    assert of(found, "scores") == FAILED and "scores" in found.headline


def test_thirty_systems_name_the_best_and_what_was_shown() -> None:
    found = said(*stories.systems(30, size=300), bootstrap=0)
    assert any("30 of 30 runs better than chance" in line.text for line in found.answers), found.answers


def test_two_systems_say_who_does_better_on_the_first_screen() -> None:
    found = said(*stories.systems(2))
    assert found.answers[0].status == PASSED and found.answers[0].text.startswith("sys00 does better than sys01")
    assert found.headline.startswith("sys00 does better than sys01")


def test_a_comparison_alone_and_a_gate_alone_have_the_same_form() -> None:
    a, b = stories.systems(2)
    assert a.trials is not None and b.trials is not None
    made = compare(a.trials, b.trials, ["eer"], names=("a", "b"), by=["codec"], bootstrap=200, seed=0)
    found = assess_comparison(made)
    assert (
        found.headline.startswith("a does better than b")
        and found.checks
        and found.answers[1].code == "better-in-slices"
    )
    gate = assess_gate(
        [Check("eer > 0.1", "eer", 0.2, 0.1, False, "0.2"), Check("eer > 1", "eer", 0.2, 1, True, "0.2")]
    )
    assert gate.headline == "1 of 2 rules broken." and [line.status for line in gate.answers] == [FAILED, PASSED]


def test_triage_says_what_people_add_and_how_they_agree(tmp_path: Path) -> None:
    found = said(stories.triage_with_people(tmp_path))
    assert found.headline.startswith("Better with people")
    assert (
        found.answers[0].status == PASSED
        and "together" in found.answers[0].text
        and "system alone" in found.answers[0].text
    )
    assert of(found, "agreement of people") == PASSED and of(found, "repetition") == OPEN


def test_failed_calls_of_repeated_runs_are_missing_trials() -> None:
    """The mean over trials has no failures of its own; those of its trials count."""
    rows = [
        Estimate("accuracy", 0.9, 0.8, 0.95, n=100, n_positive=50, n_failed=k, run={"trial": str(k)}) for k in (0, 3)
    ]
    mean = Estimate("accuracy", 0.9, 0.8, 0.95, n=100, n_positive=50, average="mean")
    (line,) = [x for x in assess(Results((*rows, mean), "hitmiss:0|data:a")).checks if x.name == "completeness"]
    assert line.status == FAILED and "3 calls failed" in line.text


def test_the_flow_counts_every_trial_once(tmp_path: Path) -> None:
    asides = stories.triage_with_people(tmp_path).extras
    assert asides is not None and asides.people is not None
    paths = asides.people.paths
    assert sum(p.n for p in paths) == 400
    alone = sum(p.n for p in paths if p.people == "not asked" and p.outcome == "right")
    assert alone == asides.confusions[0].counts.tp + asides.confusions[0].counts.tn
    load = asides.people.loads[0]
    assert sum(p.n for p in paths if p.system == "uncertain" and p.people in ("fake", "real")) == load.settled
    together = asides.people.figures.one("accuracy", **{"decided by": "together"})
    assert together.value == sum(p.n for p in paths if p.outcome == "right") / 400


def attack_run(changed: float, noise: float) -> Results:
    def row(metric: str, value: float, attack: str, strength: str) -> Estimate:
        ends = max(value - 0.03, 0.0), min(value + 0.03, 1.0)
        return Estimate(
            metric, value, *ends, n=400, n_positive=500, run={"attack": attack, "strength": strength}, best="high"
        )

    rows = [
        row("exact_match", 0.9, "clean", "0"),
        row("robust_accuracy", 0.9 - changed, "pgd", "1"),
        row("changed", changed, "pgd", "1"),
        row("changed", noise, "noise ~ pgd", "1"),
    ]
    return Results(tuple(rows), "hitmiss:0|n:400/500|data:abc")


def test_an_attack_counts_only_beyond_noise_of_the_same_norm() -> None:
    strong, weak = (said(RunData("ecg", attack_run(*pair))) for pair in ((0.7, 0.05), (0.06, 0.05)))
    assert strong.headline.startswith("Attacks take accuracy away") and strong.fails[0].status == FAILED
    assert "pgd at 1 changes 70.0" in strong.fails[0].text and "noise of the same norm" in strong.fails[0].text
    assert weak.fails == () and "Not shown to do more than noise" in weak.looked[0].text


def test_of_two_attacked_runs_the_page_says_which_keeps_more_and_draws_both() -> None:
    base, defended = RunData("base", attack_run(0.7, 0.05)), RunData("defended", attack_run(0.2, 0.05))
    (part,) = compose([base, defended]).parts
    found = part.summary.verdict
    assert found.headline.startswith("defended keeps more under attack than base") and found.answers[0].status == PASSED
    assert "pgd at 1" in found.answers[0].text and [name for name, _ in part.summary.headlines] == ["defended", "base"]
    names = {mark.name for f in part.section("curves").figures for mark in f.plate.marks if isinstance(mark, Curve)}
    assert {"pgd, base", "pgd, defended"} <= names
    alike = said(base, RunData("again", attack_run(0.69, 0.05)))
    assert (
        alike.headline.startswith("Neither base nor again was shown to keep more") and alike.answers[0].status == OPEN
    )


def test_drift_is_tested_condition_by_condition_and_corrected() -> None:
    def rows(codec: str, drift: float, half: float = 0.03) -> list[Estimate]:
        cell = {"codec": codec}
        far = Estimate("far", 0.05 + drift, n=500, n_positive=0, slice=cell, best="low")
        ends = drift - half, drift + half
        return [far, Estimate("far_drift", drift, *ends, n=500, n_positive=0, slice=cell, best="low")]

    moved = Results((*rows("C01", 0.2), *(r for i in range(20) for r in rows(f"K{i:02d}", 0.03))), "hitmiss:0|data:a")
    found = assess(moved)
    assert found.headline.startswith("Errors grow under 1 of 21 conditions")
    assert [line.text.startswith("codec C01") for line in found.fails] == [True], "one of 21 at p 0.05 is chance"
    assert assess(Results(tuple(rows("C01", 0.0)), "hitmiss:0|data:a")).answers[0].status == PASSED


def test_what_was_not_checked_is_said() -> None:
    found = said(RunData("bare", Results((Estimate("eer", 0.1, n=100, n_positive=50),))))
    assert found.answers[0].status == OPEN and "interval" in found.answers[0].text
    assert found.fails == () and [line.status for line in found.looked] == [OPEN]
    assert {"independence", "calibration", "completeness", "provenance", "data"} <= {line.name for line in found.checks}


def test_the_test_of_slices_keeps_its_level() -> None:
    """Of 200 sets of twenty equal slices about one in twenty names any; by the ratio rule of before nearly all did."""
    from hitmiss.stats.corrections import holm
    from hitmiss.stats.slice_tests import Figure, against_others

    rng = np.random.default_rng(1)
    n, p, false = 150, 0.15, 0
    for _ in range(400):
        shares = rng.binomial(n, p, 20) / n
        half = 1.96 * np.sqrt(np.maximum(shares * (1 - shares), 1e-9) / n)
        tests = against_others(
            [Figure(float(s), max(float(s - h), 0), float(s + h), n) for s, h in zip(shares, half, strict=True)]
        )
        false += min(holm([t.p for t in tests])) < 0.05
    assert false <= 400 * 0.05 + 3 * np.sqrt(400 * 0.05 * 0.95)


def test_the_test_of_slices_finds_what_is_there() -> None:
    from hitmiss.stats.slice_tests import Figure, against_others

    rng = np.random.default_rng(2)
    found = 0
    for _ in range(100):
        shares = rng.binomial(300, [0.1] * 9 + [0.25]) / 300
        half = 1.96 * np.sqrt(shares * (1 - shares) / 300)
        tests = against_others(
            [Figure(float(s), float(s - h), float(s + h), 300) for s, h in zip(shares, half, strict=True)]
        )
        found += tests[-1].p * 10 < 0.05
    assert found >= 90
