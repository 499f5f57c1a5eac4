"""What is random in an interval: prevalence where the figure depends on it, units of which there may be few."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hitmiss.cli.main import run
from hitmiss.core.header import Header
from hitmiss.core.registry import all_metrics
from hitmiss.core.results import Estimate
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.derive.decisions import at_threshold
from hitmiss.engine.measure import measure
from hitmiss.stats.enough_units import effective_units, unit_sizes
from hitmiss.stats.intervals import student
from hitmiss.stats.jackknife import LeftOut
from hitmiss.stats.replicates import trial_replicates

FREE = {"eer", "roc_auc", "min_dcf", "act_dcf", "cllr", "recall", "specificity", "balanced_accuracy", "fpr", "fnr"}
DEPENDENT = {"f1", "mcc", "average_precision", "brier", "precision", "log_loss", "accuracy", "aurc"}


def test_every_metric_declares_whether_it_depends_on_prevalence() -> None:
    known = all_metrics()
    assert {n for n in FREE if known[n].prevalence} == set()
    assert {n for n in DEPENDENT if not known[n].prevalence} == set()


@pytest.mark.parametrize("name", sorted(FREE & {"recall", "specificity", "balanced_accuracy", "eer", "roc_auc"}))
def test_what_is_called_free_of_prevalence_is(name: str) -> None:
    """Twice as many negatives, each answered alike: the figure stays."""
    rng = np.random.default_rng(0)
    label, score = np.arange(60) % 3 == 0, rng.normal(size=60)
    more = np.concatenate([np.arange(60), np.flatnonzero(~label)])
    one, two = (at_threshold(Trials.of(label[i], score[i]), 0.2) for i in (np.arange(60), more))
    assert measure(one, [name]).one(name).value == pytest.approx(measure(two, [name]).one(name).value)


@pytest.mark.nightly
def test_the_interval_of_f1_holds_the_truth_at_ten_per_cent_positives() -> None:
    """With class sizes held fixed 87 to 91 % of the intervals did (250 samples: ± 3 points)."""
    rng, inside, repeats = np.random.default_rng(5), 0, 250
    hit, alarm, share = 0.7, 0.05, 0.1
    truth = 2 * share * hit / (share * hit + (1 - share) * alarm + share)
    for seed in range(repeats):
        label = rng.random(400) < share
        decision = np.where(label, rng.random(400) < hit, rng.random(400) < alarm).astype(int)
        found = measure(Trials.of(label, decision=decision), ["f1"], bootstrap=300, seed=seed).one("f1")
        inside += found.low is not None and found.high is not None and found.low <= truth <= found.high
    assert 0.90 <= inside / repeats <= 0.985


def test_class_sizes_vary_only_where_all_trials_are_drawn() -> None:
    from hitmiss.metrics.calibration import brier_form

    rng = np.random.default_rng(0)
    tally = Tally.of_classes(rng.random(30), rng.random(300))
    form = brier_form()
    fixed, free = (
        trial_replicates(tally, [form], 4000, np.random.default_rng(1), by_class=b)[0] for b in (True, False)
    )
    assert free.std() > fixed.std()
    assert free.mean() == pytest.approx(fixed.mean(), abs=4 * free.std() / np.sqrt(4000))


def test_method_signature_and_table_say_what_was_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    lines = [f"i{i}\t{rng.normal() + i % 2:.4f}\t{'yes' if i % 2 else 'no'}\tp{i % 9}" for i in range(180)]
    path = tmp_path / "scores.tsv"
    path.write_text("item\tscore\tlabel\tpatient\n" + "\n".join(lines) + "\n")
    words = ["score", str(path), "--positive", "yes", "--negative", "no", "--threshold", "0.5"]
    words += ["-m", "eer", "-m", "f1", "--bootstrap", "50"]
    assert run(words) == 0
    shown = capsys.readouterr().out
    assert "trials within each class (eer)" in shown and "how many are positive varies too (f1)" in shown
    assert run([*words, "--unit", "patient", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [e["units"] for e in data["estimates"]] == [9, 9]
    assert all(e["units_effective"] == pytest.approx(9.0, abs=0.2) for e in data["estimates"])
    assert "unit=patient" in data["signature"]


def test_few_and_uneven_units_are_counted_as_what_they_are_worth() -> None:
    positive = np.array([True, False] * 50)
    even, uneven = np.arange(100) // 10, np.minimum(np.arange(100) // 10, 1)
    assert effective_units(unit_sizes(even, positive)) == pytest.approx(10.0)
    assert effective_units(unit_sizes(uneven, positive)) == pytest.approx(100**2 / (10**2 + 90**2))
    attack = np.where(positive, 0, 1 + np.arange(100) // 2 % 5)
    assert effective_units(unit_sizes(even, positive), unit_sizes(attack, positive)) == pytest.approx(
        5.0
    )  # positives have no attack


@pytest.mark.nightly
@pytest.mark.parametrize("units, sides", [(6, "both"), (10, "both"), (20, "both"), (20, "one")])
def test_intervals_over_few_units_hold_the_truth(units: int, sides: str) -> None:
    """Speakers whose own level makes up a quarter of the variance; percentile intervals held 77 to 90 %."""
    rng, inside, repeats = np.random.default_rng(units), 0, 100
    gap, truth = 2.0, 0.9213503964748574  # Φ(2 / √2)
    for _ in range(repeats):
        speaker = np.repeat(np.arange(units), 24)
        label = (speaker < units // 2) if sides == "one" else (np.arange(len(speaker)) % 3 == 0)
        level = rng.normal(0, 0.5, units)[speaker]
        score = gap * label + level + np.sqrt(0.75) * rng.normal(size=len(speaker))
        trials = Trials.of(label, score, speaker=np.char.add("s", speaker.astype(str)))
        found = measure(trials, ["roc_auc"], bootstrap=200, unit="speaker").one("roc_auc")
        inside += found.low is not None and found.high is not None and found.low <= truth <= found.high
    assert inside / repeats >= 0.88


def test_student_is_the_book_s_interval_of_a_mean() -> None:
    """Replicates of a mean of ten numbers: the plain scale gives the t interval."""
    from scipy.stats import t as student_t

    values = np.random.default_rng(3).normal(size=10)
    drawn = values[np.random.default_rng(4).integers(0, 10, (20000, 10))].mean(axis=1)
    low, high = student(drawn, values.mean(), 9.0)
    half = student_t.ppf(0.975, 9) * values.std(ddof=1) / np.sqrt(10)
    assert (high - low) / 2 == pytest.approx(half, rel=0.02) and (low + high) / 2 == pytest.approx(values.mean())
    bounded = student(np.clip(drawn * 0.01 + 0.02, 0, 1), 0.02, 9.0, (0.0, 1.0))
    assert 0.0 < bounded[0] < 0.02 < bounded[1] < 1.0


def test_the_end_on_the_side_of_the_longer_tail_is_moved_out_and_no_end_in() -> None:
    """Costs of one unit in ten are large: a t interval of such a mean misses high truths more often than low ones."""
    values = np.array([1.0] * 18 + [6.0, 9.0])
    drawn = values[np.random.default_rng(4).integers(0, 20, (4000, 20))].mean(axis=1)
    left = np.array([np.delete(values, i).mean() for i in range(20)])
    plain, leaning = (
        student(drawn, values.mean(), 19.0),
        student(drawn, values.mean(), 19.0, without=LeftOut((left,), (20.0,))),
    )
    a = np.sum((values - values.mean()) ** 3) / (6.0 * np.sum((values - values.mean()) ** 2) ** 1.5)
    half = (plain[1] - plain[0]) / 2.0
    t = 2.093  # of 19 degrees of freedom
    assert leaning[0] == pytest.approx(plain[0], rel=0.02)
    assert leaning[1] - values.mean() == pytest.approx(half * (1.0 + a * (2.0 * t * t + 1.0) / t), rel=0.03)


def test_units_of_two_classes_have_the_degrees_of_freedom_of_welch() -> None:
    """A difference of two means, each from units of its own."""
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(5)
    few, many = rng.normal(0.0, 3.0, 7), rng.normal(0.0, 1.0, 30)
    without = [np.array([np.delete(own, i).mean() for i in range(len(own))]) for own in (few, many)]
    left = LeftOut((without[0] - many.mean(), few.mean() - without[1]), (7.0, 30.0))
    welch = ttest_ind(few, many, equal_var=False)
    assert left.degrees == pytest.approx(welch.df)
    assert np.sqrt(left.variance) == pytest.approx((few.mean() - many.mean()) / welch.statistic)


def test_crossed_units_count_what_is_inside_their_pairs_once() -> None:
    """A table of speakers × attacks of independent numbers: the variance of its mean is that of the cells alone."""
    rng = np.random.default_rng(6)
    ratios = []
    for _ in range(200):
        table = rng.normal(size=(12, 15))
        cells = (table.sum() - table.reshape(-1)) / (table.size - 1)
        rows, columns = (
            np.array([np.delete(table, i, axis).mean() for i in range(table.shape[axis])]) for axis in (0, 1)
        )
        left = LeftOut((rows, columns), (12.0, 15.0), cells=cells)
        ratios.append(left.variance / (table.var(ddof=1) / table.size))
        assert 3.0**-0.5 - 1e-9 <= left.narrowing < 1.0, "the variance inside pairs is counted at most three times"
    assert np.mean(ratios) == pytest.approx(1.2, abs=0.3)  # the larger of two estimates of it


def test_an_attack_that_changes_nothing_hardly_widens_what_speakers_show() -> None:
    """Bona fide trials have no attack: leaving that value out would leave no bona fide trial, and the shares of both
    classes are no part of what attacks vary."""
    rng, n = np.random.default_rng(9), 2400
    speaker, attack, label = rng.integers(0, 40, n), rng.integers(0, 12, n), rng.random(n) < 0.3
    trials = Trials.of(
        label,
        3.0 * label + 0.5 * rng.normal(size=40)[speaker] + rng.normal(size=n),
        speaker=np.char.add("s", speaker.astype(str)),
        attack=np.where(label, "none", np.char.add("A", attack.astype(str))),
    )
    decided = at_threshold(trials, 1.5)
    widths = {}
    for unit in ("speaker", "speaker,attack"):
        for e in measure(decided, ["accuracy", "recall", "f1"], bootstrap=300, unit=unit):
            assert e.low is not None and e.high is not None
            widths[unit, e.metric] = e.high - e.low
    for metric in ("accuracy", "recall", "f1"):
        assert widths["speaker,attack", metric] < 1.4 * widths["speaker", metric]


@pytest.mark.nightly
def test_the_worst_of_many_slices_has_an_interval_that_knows_it_was_picked() -> None:
    """Twelve slices of one true figure: the interval of the worst one holds it as often as it says."""
    rng, inside, repeats = np.random.default_rng(8), 0, 60
    for seed in range(repeats):
        label = np.arange(1200) % 2
        codec = np.char.add("c", (np.arange(1200) // 2 % 12).astype(str))
        trials = Trials.of(label, rng.normal(size=1200) + 2.0 * label, codec=codec)
        found = measure(trials, ["roc_auc"], by="codec", bootstrap=200, seed=seed)
        worst = next(e for e in found if e.average == "worst")
        own = found.one("roc_auc", **worst.slice)
        assert worst.low == own.low and worst.high is not None and own.high is not None and worst.high > own.high
        inside += worst.low <= 0.9213503964748574 <= (worst.high or 1.0)
    assert inside / repeats >= 0.9


@pytest.mark.parametrize("unit", [None, "speaker"])
def test_a_slice_that_is_clearly_the_worst_keeps_its_own_interval(unit: str | None) -> None:
    """Picking it was no choice, whether high figures are bad (EER) or low ones (AUC); of three alike none is clear."""
    rng, n = np.random.default_rng(9), 1800
    alike = "worst of 3; 3 of them may be the worst, and the interval allows for that"
    label, codec = np.arange(n) % 2, np.arange(n) // 2 % 3
    named = {
        "codec": np.char.add("c", codec.astype(str)),
        "speaker": np.char.add("s", (np.arange(n) // 6 % 40).astype(str)),
    }
    for shift, is_clear in (((3.0, 3.0, 0.5), True), ((2.0, 2.0, 2.0), False)):
        trials = Trials.of(label, rng.normal(size=n) + np.array(shift)[codec] * label, **named)
        found = measure(trials, ["eer", "roc_auc"], by="codec", bootstrap=200, unit=unit)
        for worst in (e for e in found if e.average == "worst"):
            own = found.one(worst.metric, **worst.slice)
            better, worse = ("low", "high") if worst.metric == "eer" else ("high", "low")
            assert getattr(worst, worse) == getattr(own, worse) is not None
            assert (getattr(worst, better) == getattr(own, better)) is is_clear
            assert worst.note == ("worst of 3, clearly" if is_clear else alike)


def test_the_worst_slice_draws_whole_units_and_says_why_it_has_no_interval() -> None:
    """Levels of speakers make up half the variance: the interval of the worst slice over speakers is much wider."""
    rng, n = np.random.default_rng(4), 1800
    speaker, codec = np.arange(n) % 30, np.arange(n) // 30 % 3
    label = (rng.random(n) < 0.4).astype(int)
    score = rng.normal(size=n) + rng.normal(size=30)[speaker] + (2.0 - 0.5 * codec) * label
    named = {"codec": np.char.add("c", codec.astype(str)), "speaker": np.char.add("s", speaker.astype(str))}
    trials = at_threshold(Trials.of(label, score, **named), 1.0)

    def worst(**asked: Any) -> Estimate:
        found = measure(trials, ["recall"], by="codec", bootstrap=300, **asked)
        (row,) = [e for e in found if e.average == "worst"]
        return row

    drawn, whole = worst(), worst(unit="speaker")
    assert drawn.slice == whole.slice == {"codec": "c2"} and drawn.units is None and whole.units == 30
    assert None not in (drawn.low, drawn.high, whole.low, whole.high)
    assert whole.high - whole.low > 1.5 * (drawn.high - drawn.low)  # type: ignore[operator]
    trials = trials.put(speaker=np.char.add("s", (speaker % 4).astype(str)))
    few = worst(unit="speaker")
    assert few.low is None and few.note == "worst of 3; no interval: only 4 of speaker to draw from"


def test_a_macro_minimum_outside_its_interval_says_why() -> None:
    rng = np.random.default_rng(1)
    label = np.arange(3000) % 2
    codec = np.char.add("c", (np.arange(3000) // 2 % 30).astype(str))
    trials = Trials.of(label, rng.normal(size=3000) + 1.5 * label, codec=codec)
    macro = measure(trials, ["min_dcf"], by="codec", bootstrap=300).one("min_dcf", average="macro", codec="*")
    assert macro.value is not None and macro.low is not None and macro.value < macro.low
    assert "optimistic" in str(macro.note)


def test_repeated_answers_widen_the_bins_of_reliability() -> None:
    from hitmiss.reports.displays.reliability import ReliabilityDisplay

    rng = np.random.default_rng(0)
    right = rng.random(150) < 0.7
    label = rng.random(150) < 0.5
    decision = np.where(right, label, ~label).astype(int)
    item = np.char.add("i", np.arange(150).astype(str))
    one = Trials.of(label, decision=decision, confidence=np.full(150, 0.75), item=item)
    three = Trials.of(
        np.tile(label, 3),
        decision=np.tile(decision, 3),
        confidence=np.full(450, 0.75),
        item=np.tile(item, 3),
        trial=np.repeat(["1", "2", "3"], 150),
        header=Header(runs=("trial",)),
    )
    alone, repeated = (ReliabilityDisplay.from_trials(t) for t in (one, three))
    assert repeated.high[0] - repeated.low[0] == pytest.approx(alone.high[0] - alone.low[0], rel=0.15)


def test_bootstrap_ci_of_a_least_cost_knows_its_optimism() -> None:
    from hitmiss.protocols.asvspoof5 import bootstrap_ci, compute_min_dcf

    rng = np.random.default_rng(4)
    labels = np.repeat([0, 1], [60, 200])
    scores = rng.normal(size=260) + 1.5 * (labels == 0)
    estimate, low, high = bootstrap_ci(scores, labels, compute_min_dcf, n_bootstrap=400, bonafide=0)
    assert low <= estimate <= high and high - estimate > estimate - low
