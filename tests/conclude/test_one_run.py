"""One detector whose truth is known: what the verdict must say about it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.conclude.worlds import failed, labels, scores, screen, slices, trials, where

import hitmiss as hm
from hitmiss.conclude.verdict import conclude_gate
from hitmiss.core.finding import FAILED, OPEN, PASSED, Amount
from hitmiss.core.header import Header
from hitmiss.core.results import Estimate, Results
from hitmiss.core.trials import Trials
from hitmiss.core.verdict import NOT_SHOWN, REFUTED, SHOWN
from hitmiss.engine.bias import measure_bias
from hitmiss.protocols.triage import evaluate_triage

WORDS = ("spoof", "bonafide")


def test_a_good_detector_is_better_than_chance() -> None:
    found = hm.measure(trials(scores(2000, 3.0), codec=slices(2000, 5)), ["eer"], by=["codec"], bootstrap=200).verdict
    assert (found.code, found.status, found.state) == ("better-than-chance", SHOWN, PASSED)
    assert found.fails == () and found.subject.metric == "eer"
    assert found.effect is not None and found.effect.high is not None and found.effect.high < 0.5
    screen("good", found)


def test_a_coin_is_not_shown_to_be_better_and_has_no_green_ticks() -> None:
    found = hm.measure(trials(scores(2000, 0.0), codec=slices(2000, 5)), ["eer"], by=["codec"], bootstrap=200).verdict
    assert (found.code, found.status, found.state) == ("not-better-than-chance", NOT_SHOWN, FAILED)
    assert found.slices == () and {c.name: c.state for c in found.checks}["direction"] == OPEN
    screen("coin", found)


def test_reversed_scores_are_refuted_and_fail_the_check_of_direction() -> None:
    found = hm.measure(trials(-scores(2000, 2.0), codec=slices(2000, 5)), ["eer"], by=["codec"], bootstrap=200).verdict
    assert (found.code, found.status) == ("worse-than-chance", REFUTED)
    assert "direction" in failed(found) and found.headline.startswith("Worse than chance")
    screen("reversed", found)


def test_shifted_scores_are_named_by_their_column() -> None:
    away = 12.0 * (np.arange(3000) // 2 % 5)
    found = hm.measure(
        trials(scores(3000, 2.6) + away, codec=slices(3000, 5)), ["eer"], by=["codec"], bootstrap=200
    ).verdict
    (shift,) = [f for f in found.fails if f.code == "scores-shift"]
    assert list(shift.subject.slice) == ["codec"] and found.state == FAILED
    screen("shifted", found)


def test_a_perfect_detector_has_no_worst_looking_slice() -> None:
    found = hm.measure(trials(scores(600, 40.0), codec=slices(600, 5)), ["eer"], by=["codec"], bootstrap=200).verdict
    assert (found.code, found.status, found.state) == ("better-than-chance", SHOWN, PASSED)
    assert found.effect is not None and found.effect.value == 0.0
    assert found.fails == () and not any("worst" in f.text for f in found.looked)
    screen("perfect", found)


def test_one_bad_slice_is_the_only_one_named() -> None:
    codec = slices(4000, 20)
    apart = np.where(np.array(codec) == "c07", 0.2, 2.6)
    found = hm.measure(trials(scores(4000, apart), codec=codec), ["eer"], by=["codec"], bootstrap=200).verdict
    assert found.status == SHOWN and where(found) == {("", "c07")} and found.state == FAILED
    assert found.headline == "Better than chance, but weak on codec c07."
    screen("one_bad_slice", found)


def test_an_outlier_of_many_slices_keeps_its_own_number() -> None:
    """One slice of a hundred is bad: its number stands as it is, beside that of the others."""
    codec = slices(10_000, 100)
    apart = np.where(np.array(codec) == "c41", 0.6, 3.2)
    made = hm.measure(hm.decide(trials(scores(10_000, apart), codec=codec), 0.0), ["accuracy"], by=["codec"])
    (weak,) = [f for f in made.verdict.fails if f.code == "weak-slice"]
    value = made.one("accuracy", codec="c41").value
    assert (
        weak.subject.slice == {"codec": "c41"}
        and isinstance(shown := weak.values["value"], Amount)
        and shown.value == value
    )
    assert f"{100 * float(value or 0):.0f}" in weak.text and "shrunk" not in weak.text
    screen("outlier", made.verdict)


@pytest.mark.parametrize("seed", range(3))
def test_of_twenty_alike_none_is_weak(seed: int) -> None:
    made = trials(scores(4000, 1.75, seed=90 + seed), codec=slices(4000, 20))
    found = hm.measure(made, ["eer"], by=["codec"], bootstrap=200).verdict
    assert found.fails == () and [f.code for f in found.looked] == ["slices-alike"]
    if not seed:
        screen("twenty_alike", found)


def speakers(n: int, per: int, seed: int, spread: float) -> Trials:
    """Trials of speakers; the scores of one speaker lie together, whatever their class."""
    rng = np.random.default_rng(seed)
    speaker = np.repeat(np.arange(n // per), per)
    label = np.repeat(rng.permutation(np.tile([1, 0], n // per // 2)), per)  # a speaker is of one class
    score = 0.55 * label + rng.normal(size=n) * (1 - spread) + spread * 1.5 * rng.normal(size=n // per)[speaker]
    return Trials.of(label, score, item=[f"i{k}" for k in range(n)], speaker=[f"s{k}" for k in speaker])


def test_units_that_overturn_the_conclusion_change_it() -> None:
    """Forty speakers of one class each: what looks sure over trials is not shown over speakers."""
    made = speakers(1600, 40, 3, 0.75)
    found = hm.measure(made, ["eer"], bootstrap=200).verdict
    whole = hm.measure(made, ["eer"], unit="speaker", bootstrap=200).one("eer")
    plain = hm.measure(made, ["eer"], bootstrap=200).one("eer")
    assert plain.high is not None and plain.high < 0.5, "over trials it looks better than chance"
    assert whole.high is not None and whole.high > 0.5, "over speakers it does not"
    assert (found.code, found.status, found.state) == ("unit-overturns", NOT_SHOWN, FAILED)
    assert "independence" in failed(found)
    screen("units_overturn", found)


def test_units_that_change_nothing_fail_no_check() -> None:
    n = 2000
    speaker = [f"s{k % 100}" for k in range(n)]  # independent of the scores
    found = hm.measure(trials(scores(n, 2.0, seed=6), speaker=speaker), ["roc_auc"], bootstrap=500).verdict
    (check,) = [c for c in found.checks if c.name == "independence"]
    assert check.state == PASSED and found.status == SHOWN and "independence" not in found.headline


def test_missing_trials_that_could_overturn_the_conclusion_change_it(tmp_path: Path) -> None:
    """Half of the trials are missing, and nobody knows how they would have been answered."""
    score, label = scores(400, 2.0), labels(400)
    key, some = tmp_path / "key.csv", tmp_path / "half.csv"
    key.write_text("id,label\n" + "".join(f"i{k},{WORDS[y]}\n" for k, y in enumerate(label)))
    some.write_text("id,score\n" + "".join(f"i{k},{s:.6f}\n" for k, s in enumerate(score[:160])))
    results = hm.evaluate(str(some), key=str(key), metrics=["eer"], bootstrap=200, allow_missing=True)
    found = results.verdict
    assert found.code == "missing-overturns" and found.status == NOT_SHOWN and "completeness" in failed(found)
    assert found.claim.values["missing"] == 240 and found.claim.values["total"] == 400
    screen("missing_overturns", found)


def test_few_missing_trials_fail_the_check_and_not_the_conclusion(tmp_path: Path) -> None:
    score, label = scores(400, 3.0), labels(400)
    key, most = tmp_path / "key.csv", tmp_path / "most.csv"
    key.write_text("id,label\n" + "".join(f"i{k},{WORDS[y]}\n" for k, y in enumerate(label)))
    most.write_text("id,score\n" + "".join(f"i{k},{s:.6f}\n" for k, s in enumerate(score[:390])))
    found = hm.evaluate(str(most), key=str(key), metrics=["eer"], bootstrap=200, allow_missing=True).verdict
    assert (found.code, found.status) == ("better-than-chance", SHOWN) and "completeness" in failed(found)
    screen("few_missing", found)


@pytest.mark.parametrize(("excess", "state"), [(0.0, PASSED), (1e-15, PASSED), (0.0004, FAILED)])
def test_a_calibration_error_at_its_chance_level_is_no_failure(excess: float, state: str) -> None:
    rows = (
        Estimate("accuracy", 0.9, 0.85, 0.94, n=300, n_positive=150, best="high"),
        Estimate("ece", 0.143 + excess, n=300, n_positive=150),
        Estimate("ece_by_chance", 0.143, n=300, n_positive=150),
    )
    found = Results(rows).verdict
    (check,) = [c for c in found.checks if c.name == "calibration"]
    assert check.state == state
    if state == FAILED:
        assert "0.1434, by chance at most 0.1430" in check.text, "the digits show that they differ"


def toxic(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, n), rng.normal(size=n), rng


def test_low_bpsn_of_one_identity_is_a_bias() -> None:
    """Harmless texts that mention one identity score as high as toxic ones; inside the group nothing is wrong."""
    label, noise, rng = toxic(4000, 0)
    member = {name: rng.random(4000) < 0.15 for name in ("quiet", "hurt", "other")}
    logit = 2.4 * label + noise + 1.4 * member["hurt"]  # both classes of the group are pushed up
    made = trials_of(label, logit)
    rows, _ = measure_bias(made, member)
    results = hm.measure(made, ["roc_auc"], bootstrap=0)
    found = Results((*results.estimates, *rows)).verdict
    biased = {(f.subject.slice["identity"], f.subject.metric) for f in found.fails if f.code == "biased"}
    assert ("hurt", "bpsn_auc") in biased and not any(who != "hurt" for who, _ in biased)
    assert ("hurt", "subgroup_auc") not in biased and found.state == FAILED and "hurt" in found.headline
    screen("bpsn_low", found)


def trials_of(label: np.ndarray, score: np.ndarray, **columns: list[str]) -> Trials:
    return Trials.of(label, score, item=[f"i{k}" for k in range(len(label))], **columns)


def test_slices_without_positives_are_not_weak_by_precision() -> None:
    """As HateCheck: each functionality has one class. Harmless ones have precision 0 by construction."""
    rng = np.random.default_rng(1)
    names = [f"hate{k}" for k in range(6)] + [f"fine{k}" for k in range(6)]
    slice_ = np.repeat(names, 100)
    label = np.array([int(name.startswith("hate")) for name in slice_])
    wrong = rng.random(1200) < np.where(slice_ == "fine3", 0.6, np.where(slice_ == "hate2", 0.5, 0.08))
    made = Trials.of(
        label, item=[f"i{k}" for k in range(1200)], decision=np.where(wrong, 1 - label, label).tolist(),
        functionality=slice_.tolist(), header=Header("hateful", "harmless"),
    )  # fmt: skip
    found = hm.measure(made, ["precision", "recall", "fpr", "f1"], by=["functionality"]).verdict
    weak = {f.subject.slice["functionality"]: f.subject.metric for f in found.fails if f.code == "weak-slice"}
    assert weak == {"fine3": "fpr", "hate2": "recall"}
    screen("hatecheck", found)


def answered(n: int, share: float, right: float, seed: int = 0, always: int | None = None) -> Results:
    """A system that answers a share of the items, so many of them right, or always the same class."""
    rng = np.random.default_rng(seed)
    label = labels(n)
    said = np.where(rng.random(n) < right, label, 1 - label) if always is None else np.full(n, always)
    asked = rng.random(n) < share if always is None else label == always
    decision = np.where(asked, said, -1)
    made = Trials.of(label, item=[f"i{k}" for k in range(n)], decision=decision.tolist(), header=Header("fake", "real"))
    return hm.measure(made, ["accuracy", "accuracy_answered", "coverage", "coverage_fake", "coverage_real"])


def test_a_system_that_abstains_on_most_is_judged_by_what_it_answered() -> None:
    """8 % of the items answered, 95 % of them right: better than saying one class on as many items."""
    found = answered(2000, 0.08, 0.95).verdict
    assert (found.code, found.status) == ("better-than-chance", SHOWN)
    assert found.subject.metric == "accuracy_answered" and "coverage" in str(found.claim.values["by"])
    screen("abstains", found)


def test_a_system_that_answers_one_class_alone_is_not_better_than_the_trivial_one() -> None:
    found = answered(2000, 1.0, 1.0, always=1).verdict
    assert found.code == "not-better-than-chance" and found.status == NOT_SHOWN


def test_p_values_are_never_below_what_the_draws_can_show() -> None:
    codec = slices(2000, 5)
    apart = np.where(np.array(codec) == "c03", 0.0, 5.0)
    found = hm.measure(trials(scores(2000, apart), codec=codec), ["eer"], by=["codec"], bootstrap=500).verdict
    (weak,) = [f for f in found.fails if f.code == "weak-slice"]
    assert "adjusted p < 0.002 (500 draws)" in weak.text
    assert weak.to_dict()["values"]["p"]["p"] == pytest.approx(1 / 501)  # type: ignore[index]


def test_the_verdict_of_a_file_names_it_and_json_carries_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.csv"
    rows = [f"i{k},{WORDS[y]},{s:.6f}" for k, (y, s) in enumerate(zip(labels(400), scores(400, 2.5), strict=True))]
    file.write_text("id,label,score\n" + "\n".join(rows) + "\n")
    assert hm.run(["score", str(file), "-m", "eer", "--bootstrap", "200", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["verdict"]
    assert found["subject"]["run"] == "mine" and found["status"] == "shown" and found["code"] == "better-than-chance"
    assert {c["state"] for c in found["checks"]} <= {"passed", "failed", "not checked"}


def test_a_failed_gate_is_refuted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.json"
    hm.measure(trials(scores(400, 1.0)), ["eer"], bootstrap=200).save(file)
    assert hm.run(["gate", str(file), "--fail-if", "eer > 0.01", "--fail-if", "eer > 0.9", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["verdict"]
    assert (found["code"], found["status"]) == ("gate-broken", "refuted")
    assert [a["state"] for a in found["answers"]] == ["failed", "passed"]


def test_the_screen_of_a_failed_gate() -> None:
    results = hm.measure(trials(scores(400, 1.0)), ["eer"], bootstrap=200)  # the true EER is 30.9 %
    found = conclude_gate(hm.gate(results, ["eer > 0.01", "eer > 0.9"]), "run")
    assert (found.subject.run, found.status, found.state) == ("run", REFUTED, FAILED)
    screen("gate_failed", found)


@pytest.mark.parametrize(
    ("name", "n", "apart", "limit", "outcome"),
    [
        ("requirement_met", 2000, 3.0, 0.12, "PASS"),  # the true EER is 6.7 %
        ("requirement_not_shown", 400, 3.0, 0.085, "NOT SHOWN"),
        ("requirement_broken", 400, 1.0, 0.2, "FAIL"),  # the true EER is 30.9 %
    ],
)
def test_a_verdict_ends_in_what_is_required(name: str, n: int, apart: float, limit: float, outcome: str) -> None:
    found = hm.evaluate(trials(scores(n, apart)), metrics=["eer"], bootstrap=200, require=f"eer <= {limit}").verdict
    assert found.outcome == outcome and found.headline.split(". ")[1].startswith(outcome)
    assert found.state == (FAILED if outcome == "FAIL" else PASSED)
    (requirement,) = found.requirements
    if outcome == "NOT SHOWN":
        needed = requirement.values["needed"]
        assert isinstance(needed, int) and needed > n, "more trials than there are would show it"
    screen(name, found)


def test_a_system_that_answers_nothing_is_not_called_worse_than_one_that_answers() -> None:
    """At its coverage the trivial system says nothing either, and an accuracy of 0 is one by construction."""
    found = answered(400, 0.0, 1.0).verdict
    assert (found.code, found.status, found.fails) == ("nothing-answered", NOT_SHOWN, ())
    screen("silent", found)


@pytest.mark.parametrize(("name", "lift", "state"), [("calibrated", 0.0, PASSED), ("overconfident", 0.25, FAILED)])
def test_confidences_are_judged_by_what_chance_gives(name: str, lift: float, state: str, tmp_path: Path) -> None:
    """Confidences that are the true chances of being right, and the same raised by a quarter."""
    rng = np.random.default_rng(3)
    n, label = 1200, labels(1200)
    chance = rng.uniform(0.55, 0.75, n)
    said = np.where(rng.random(n) < chance, label, 1 - label)
    words = np.array(["real", "fake"])
    rows = [f"i{k},{words[label[k]]},{words[said[k]]},{chance[k] + lift:.6f}" for k in range(n)]
    (tmp_path / "judge.csv").write_text("\n".join(["id,label,prediction,confidence", *rows]))
    found = evaluate_triage(tmp_path / "judge.csv", bootstrap=0).figures.verdict
    (check,) = [c for c in found.checks if c.name == "calibration"]
    assert (found.status, check.state) == (SHOWN, state)
    screen(name, found)
