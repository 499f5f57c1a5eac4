"""`hitmiss prevalence`, typed as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hitmiss as hm
from hitmiss.evaluation.prevalence import read_rates
from hitmiss.stats.intervals import wilson
from hitmiss.stats.prevalence import corrected_prevalence, effective_size, labelled_prevalence


def run(*words: object) -> int:
    """Run a command."""
    return hm.run([str(word) for word in words])


def test_counts_and_rates_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The row is that of the function, and the table says what is assumed."""
    words = ["120/1000", "--sensitivity", "180/200", "--specificity", "380/400"]
    assert run("prevalence", *words, "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    own = corrected_prevalence(120, 1000, sensitivity=0.9, positives=200, specificity=0.95, negatives=400)
    assert row["corrected"] == pytest.approx(vars(own))
    assert run("prevalence", *words) == 0
    shown = capsys.readouterr().out
    assert f"{own.value:.4f}" in shown and "taken to err here" in shown


def test_a_file_of_groups_with_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each row of the file is a group; labels need no rates."""
    file = tmp_path / "week.csv"
    head = "language,flagged,n,flagged_positive,flagged_labelled,passed_positive,passed_labelled"
    file.write_text(f"{head}\nen,900,10000,80,150,2,150\ntr,40,800,20,40,5,100\n")
    assert run("prevalence", file, "--json") == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["group"] for row in rows] == [{"language": "en"}, {"language": "tr"}]
    own = labelled_prevalence(
        900, 10000, flagged_positive=80, flagged_labelled=150, passed_positive=2, passed_labelled=150
    )
    assert rows[0]["labelled"] == pytest.approx(vars(own)) and rows[0]["corrected"] is None


def test_the_rates_of_results(tmp_path: Path) -> None:
    """Recall and specificity are taken from results; where units widen the interval, fewer items count."""
    rng = np.random.default_rng(4)
    units, per = 40, 25
    label = np.repeat(rng.random(units) < 0.5, per).astype(int)
    ease = np.repeat(rng.normal(size=units), per)
    score = 2.0 * label + ease + rng.normal(size=units * per)
    trials = hm.Trials.of(label, score, speaker=np.repeat([f"s{i}" for i in range(units)], per))
    decided = hm.decide(trials, 1.0)
    for unit in (None, "speaker"):
        found = hm.measure(decided, ["recall", "specificity"], unit=unit, bootstrap=300)
        (tmp_path / "results.json").write_text(found.to_json())
        rates = read_rates(tmp_path / "results.json")
        assert rates.sensitivity.value == found.one("recall").value
        n = int(label.sum())
        assert rates.sensitivity.n == pytest.approx(n) if unit is None else rates.sensitivity.n < n / 2
    assert run("prevalence", "50/400", "--detector", tmp_path / "results.json", "--rates", tmp_path / "r.json") == 0
    stored = json.loads((tmp_path / "r.json").read_text())
    assert stored["sensitivity"]["value"] == rates.sensitivity.value and "digest" in stored


def test_garak_reads_the_rates(tmp_path: Path) -> None:
    """Under a detector's name the file has the form in which garak looks rates up (`garak/analyze/detector_metrics.py`)."""
    words = ["120/1000", "--sensitivity", "180/200", "--specificity", "380/400", "--rates", tmp_path / "r.json"]
    assert run("prevalence", *words, "--name", "dan.DAN") == 0
    found = json.loads((tmp_path / "r.json").read_text())["results"]["dan.DAN"]["metrics"]
    low, high = wilson(180, 200)
    assert (found["hit_sensitivity"], found["hit_specificity"]) == (0.9, 0.95)
    assert (found["hit_sensitivity_low"], found["hit_sensitivity_high"]) == pytest.approx((low, high))
    assert run("prevalence", "1/10", "--sensitivity", "1/2", "--specificity", "1/2", "--name", "dan.DAN") == 2


def test_the_effective_size_undoes_the_interval() -> None:
    """An interval of so many independent items gives that number back."""
    for n in (20, 300, 5000):
        assert effective_size(0.8, 10_000, *wilson(0.8 * n, n)) == pytest.approx(n, rel=1e-6)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["120/1000"], "how well the detector does"),
        (["120/1000", "--sensitivity", "180/200"], "go together"),
        (["1200/1000", "--sensitivity", "1/2", "--specificity", "1/2"], "cannot be"),
        (["120/1000", "--sensitivity", "0.9", "--specificity", "1/2"], "180/200"),
        (["nowhere.csv", "--sensitivity", "1/2", "--specificity", "1/2"], "nowhere.csv"),
    ],
)
def test_wrong_calls_are_one_sentence(words: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is missing or impossible is said, without a number."""
    assert run("prevalence", *words) in (2, 3)
    shown = capsys.readouterr()
    assert part in shown.err and not shown.out


def test_a_count_that_is_none_is_named_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """File, row and column of a bad count."""
    (tmp_path / "c.csv").write_text("flagged,n\n5,10\nmany,10\n")
    assert run("prevalence", tmp_path / "c.csv", "--sensitivity", "9/10", "--specificity", "9/10") == 3
    assert "c.csv, row 3, column flagged" in capsys.readouterr().err
