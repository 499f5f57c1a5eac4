"""Plans: against statsmodels where there is a formula, by simulation where there is none, and from a pilot."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from statsmodels.stats.power import NormalIndPower, TTestPower
from statsmodels.stats.proportion import samplesize_confint_proportion

from hitmiss.cli.main import run
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.trials import Trials
from hitmiss.derive.decisions import at_threshold
from hitmiss.engine.measure import measure
from hitmiss.metrics import eer, roc_auc
from hitmiss.stats.planning import Error, by_units, deviation, needed, of_difference, quantiles

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(("value", "half", "level"), [(0.5, 0.05, 0.95), (0.9, 0.02, 0.95), (0.03, 0.01, 0.9)])
def test_a_share_needs_as_many_trials_as_statsmodels_says(value: float, half: float, level: float) -> None:
    found = needed(Error(deviation("accuracy", value), 1), half, level)
    assert found.count == int(np.ceil(samplesize_confint_proportion(value, half, alpha=1 - level)))
    assert found.reached <= half < found.reached * 1.01


@pytest.mark.parametrize(("difference", "power"), [(0.05, 0.8), (0.02, 0.9)])
def test_a_difference_needs_as_many_trials_as_statsmodels_says(difference: float, power: float) -> None:
    error = of_difference(deviation("accuracy", 0.8), deviation("accuracy", 0.8 + difference), 0.4)
    theirs = NormalIndPower().solve_power(effect_size=difference / error, alpha=0.05, power=power, ratio=0)
    assert needed(Error(error, 1), difference, power=power).count == int(np.ceil(theirs))


def test_units_need_nearly_what_the_noncentral_t_says() -> None:
    theirs = TTestPower().solve_power(effect_size=0.5, alpha=0.05, power=0.8)
    assert needed(Error(1.0, 1, True), 0.5, power=0.8).count == pytest.approx(theirs, abs=1.5)


def gaussians(rng: np.random.Generator, n: int, gap: float) -> tuple[np.ndarray, np.ndarray]:
    label = np.arange(n) < n // 3
    return label, rng.normal(size=n) + gap * label


@pytest.mark.parametrize(("metric", "value", "half"), [("eer", 0.1, 0.03), ("roc_auc", 0.9, 0.03)])
def test_the_planned_interval_is_as_wide_as_planned(metric: str, value: float, half: float) -> None:
    """The spread of the figure over data sets of the planned size is what the plan promised, to a tenth."""
    normal, rng = NormalDist(), np.random.default_rng(0)
    gap = -2 * normal.inv_cdf(value) if metric == "eer" else np.sqrt(2) * normal.inv_cdf(value)
    n = needed(Error(deviation(metric, value, 1 / 3), 1), half).count
    function = eer if metric == "eer" else roc_auc
    drawn = [float(function(*gaussians(rng, n, gap))) for _ in range(600)]
    assert normal.inv_cdf(0.975) * np.std(drawn) == pytest.approx(half, rel=0.12)


def test_alike_trials_of_a_unit_count_less() -> None:
    """Beta-binomial units with a correlation of 0.2: the spread of the share over data sets is as planned."""
    rng, each, alike, p = np.random.default_rng(1), 12, 0.2, 0.7
    units = needed(by_units(deviation("accuracy", p), each, alike), 0.05).count
    a = p * (1 - alike) / alike
    drawn = rng.binomial(each, rng.beta(a, a * (1 - p) / p, size=(4000, units))).mean(axis=1) / each
    assert 1.96 * drawn.std() == pytest.approx(0.05, rel=0.05)
    alone = needed(Error(deviation("accuracy", p), 1), 0.05).count
    assert units * each == pytest.approx(alone * (1 + (each - 1) * alike), rel=0.06)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: needed(Error(0.5, 1), 0.0),
        lambda: needed(Error(0.5, 1), 0.1, level=1.0),
        lambda: needed(Error(0.5, 1), 0.1, power=0.0),
        lambda: deviation("accuracy", 1.0),
        lambda: deviation("accuracy", 0.5, positives=0.0),
        lambda: of_difference(1.0, 1.0, 1.0),
        lambda: by_units(1.0, 0.5, 0.1),
    ],
)
def test_senseless_plans_are_refused(wrong: object) -> None:
    with pytest.raises(UsageError) as err:
        wrong()  # type: ignore[operator]
    assert err.value.code in ("bad-plan", "out-of-range")
    with pytest.raises(UnknownName):
        deviation("cllr", 0.3)


def written(path: Path, seed: int, n: int, speakers: int, shift: float = 0.0) -> str:
    rng = np.random.default_rng(seed)
    speaker, level = np.arange(n) % speakers, 0.7 * rng.normal(size=speakers)
    label = rng.random(n) < 0.5
    score = level[speaker] + rng.normal(size=n) + 2.2 * label
    if shift:
        score += shift * label + 0.5 * np.random.default_rng(99).normal(size=n)
    rows = [
        f"t{i},{'real' if y else 'fake'},{s:.5f},s{k}"
        for i, (y, s, k) in enumerate(zip(label, score, speaker, strict=True))
    ]
    path.write_text("id,label,score,speaker\n" + "\n".join(rows) + "\n")
    return str(path)


def test_a_pilot_says_how_many_speakers_are_needed(tmp_path: Path, capsys: Capture) -> None:
    """Of a pilot of 120 speakers: as many as it asks for give about the width that was wanted."""
    words = ["--positive", "real", "-m", "roc_auc", "--unit", "speaker", "--bootstrap", "300", "--json"]
    pilot = written(tmp_path / "pilot.csv", 0, 4800, 120)
    assert run(["plan", pilot, "--width", "0.02", *words]) == 0
    (need,) = json.loads(capsys.readouterr().out)["needs"]
    assert need["of"] == "speaker" and need["trials"] == 40 * need["count"]
    big = written(tmp_path / "big.csv", 1, need["trials"], need["count"])
    assert run(["score", big, *words]) == 0
    (row,) = json.loads(capsys.readouterr().out)["estimates"]
    assert row["high"] - row["low"] == pytest.approx(0.02, rel=0.3)


def test_two_pilots_say_what_a_difference_needs(tmp_path: Path, capsys: Capture) -> None:
    runs = [written(tmp_path / f"{name}.csv", 0, 800, 20, shift) for name, shift in (("a", 0.0), ("b", 0.05))]
    words = ["--positive", "real", "-m", "roc_auc", "--bootstrap", "200", "--json"]
    counts = []
    for difference in ("0.04", "0.02"):
        assert run(["plan", *runs, "--difference", difference, *words]) == 0
        counts.append(json.loads(capsys.readouterr().out)["needs"][0]["count"])
    assert counts[1] == pytest.approx(4 * counts[0], rel=0.01)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], "no-plan"),
        (["--width", "0.1"], "no-pilot"),
        (["--width", "0.1", "--difference", "0.1"], "no-plan"),
        (["a.csv", "--difference", "0.1"], "pilot-runs"),
    ],
)
def test_what_a_plan_lacks_is_said(words: list[str], code: str, capsys: Capture) -> None:
    assert run(["plan", *words, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == code


def test_a_plan_from_assumptions_is_printed(capsys: Capture) -> None:
    words = [
        "-m",
        "accuracy",
        "--value",
        "0.9",
        "--width",
        "0.04",
        "--per-unit",
        "20",
        "--alike",
        "0.2",
        "--unit",
        "speaker",
    ]
    assert run(["plan", *words]) == 0
    out = capsys.readouterr().out
    assert "needed for an interval of width 0.04" in out and "speaker" in out


def spoken(rng: np.random.Generator, speakers: int, each: int) -> Trials:
    """Decisions of speakers with a level of their own."""
    speaker, label = np.repeat(np.arange(speakers), each), (rng.random(speakers * each) < 0.4).astype(int)
    score = 2.0 * label + 0.5 * rng.normal(size=speakers)[speaker] + np.sqrt(0.75) * rng.normal(size=len(label))
    return at_threshold(Trials.of(label, score, speaker=np.char.add("s", speaker.astype(str))), 1.0)


def test_a_pilot_of_speakers_gives_the_width_that_it_promises() -> None:
    """Pilots of 30 speakers, plans for seven tenths of their width, and data sets of as many speakers as planned."""
    promised, got = [], []
    for k in range(40):
        (e,) = measure(spoken(np.random.default_rng(k), 30, 20), ["accuracy"], bootstrap=200, unit="speaker", seed=k)
        assert e.low is not None and e.high is not None and e.units_effective is not None
        half = (e.high - e.low) / 2.0
        spread = quantiles(e.units_effective, True, 0.95, None)
        found = needed(Error(half / spread, 30.0, True), 0.7 * half)
        fresh = spoken(np.random.default_rng([k, 7]), found.count, 20)
        (o,) = measure(fresh, ["accuracy"], bootstrap=200, unit="speaker", seed=k)
        assert o.low is not None and o.high is not None
        promised.append(2.0 * found.reached)
        got.append(o.high - o.low)
    assert np.mean(got) / np.mean(promised) == pytest.approx(1.0, abs=0.05)


def test_a_plan_says_why_a_pilot_has_no_interval(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "p.csv"
    trials = spoken(np.random.default_rng(0), 4, 30)
    rows = zip(trials.items, trials.label, trials.score, trials.column("speaker"), strict=True)
    path.write_text("id,label,score,speaker\n" + "".join(f"{i},{'ab'[y]},{s},{u}\n" for i, y, s, u in rows))
    words = ["plan", str(path), "--positive", "b", "-m", "eer", "--width", "0.02", "--unit", "speaker", "--json"]
    assert run(words) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"].startswith("bare-pilot") and "4" in error["message"] and "speaker" in error["message"]


def test_a_plan_over_crossed_units_says_which_of_them_is_counted(capsys: Capture) -> None:
    """The number is that of one of the two, not of their pairs."""
    words = [
        "-m",
        "accuracy",
        "--value",
        "0.9",
        "--width",
        "0.04",
        "--per-unit",
        "20",
        "--alike",
        "0.2",
        "--json",
        "--unit",
    ]
    needs = []
    for unit in ("speaker", "speaker,attack"):
        assert run(["plan", *words, unit]) == 0
        needs += json.loads(capsys.readouterr().out)["needs"]
    assert needs[0]["of"] == "speaker" and needs[0]["count"] == needs[1]["count"]
    assert needs[1]["of"] == "speaker or attack" and needs[1]["units"] == ["speaker", "attack"]
    assert run(["plan", *[word for word in words if word != "--json"], "speaker,attack"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "speaker or attack: the more numerous of them is counted; the other grows in proportion"
