"""The best threshold against brute force in exact fractions; the command that writes it into files."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.tally import Tally
from hitmiss.derive.thresholds import GRID, best_threshold, figures_at
from hitmiss.protocols.toxicity import evaluate_run, load_run

TRIALS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20).map(lambda k: k / 20)), min_size=1, max_size=30)


def f1(rows: list[tuple[int, float]], threshold: float) -> Fraction:
    tp = sum(y == 1 and s >= threshold for y, s in rows)
    wrong = sum((s >= threshold) != (y == 1) for y, s in rows)
    return Fraction(2 * tp, 2 * tp + wrong) if tp + wrong else Fraction(0)


@given(TRIALS.filter(lambda rows: any(y for y, _ in rows)))
def test_exact_search_beats_every_threshold_and_takes_the_lowest(rows: list[tuple[int, float]]) -> None:
    label, score = zip(*rows, strict=True)
    found = best_threshold(Tally.of(label, score))
    best = max(f1(rows, k / 1000) for k in range(1001))
    assert f1(rows, found.threshold) == best and found.value == pytest.approx(float(best), abs=1e-15)
    assert found.threshold == min(s for s in score if f1(rows, s) == best)


@given(TRIALS.filter(lambda rows: any(y for y, _ in rows)))
def test_grid_search_takes_the_first_best_of_81_points(rows: list[tuple[int, float]]) -> None:
    label, score = zip(*rows, strict=True)
    found = best_threshold(Tally.of(label, score), search="grid")
    values = [f1(rows, t) for t in GRID]
    assert len(GRID) == 81 and (GRID[0], GRID[-1]) == (0.10, 0.90)
    assert found.threshold == GRID[values.index(max(values))]


@given(TRIALS)
def test_figures_at_any_threshold_are_counted(rows: list[tuple[int, float]]) -> None:
    label, score = zip(*rows, strict=True)
    places = [-1.0, 0.0, 0.33, 0.5, 1.0, 2.0]
    right = [sum((s >= t) == (y == 1) for y, s in rows) / len(rows) for t in places]
    assert figures_at(Tally.of(label, score), places, "accuracy").tolist() == right


def test_what_has_no_best_threshold_is_refused() -> None:
    tally = Tally.of([1, 0], [0.9, 0.1])
    with pytest.raises(UsageError, match="not a metric of decisions"):
        best_threshold(tally, "roc_auc")
    with pytest.raises(UnknownName, match="search"):
        best_threshold(tally, search="all")
    with pytest.raises(DataError, match="undefined at every threshold"):
        best_threshold(Tally.of([1, 1], [0.9, 0.1]), "specificity")
    with pytest.raises(DataError, match="no trials"):
        best_threshold(Tally.of([], []))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    made = []
    for name, shift in (("val", 0), ("test", 7)):
        (tmp_path / name).mkdir()
        for language in ("en", "es"):
            rows = [(i, int((i * 5 + shift) % 11 < 4), ((i * 7 + shift) % 50) / 50) for i in range(80)]
            lines = [f'{i},"a, ""b""\nc",{y},{min(1.0, s * 0.5 + 0.4 * y)!r},0' for i, y, s in rows]
            (tmp_path / name / f"base_{language}.csv").write_text(
                "\n".join(["id,text,y_true,y_prob,y_pred", *lines]) + "\n"
            )
        made.append(tmp_path / name)
    return made[0], made[1]


def files(folder: Path) -> list[str]:
    return [str(folder / f"base_{language}.csv") for language in ("en", "es")]


def test_the_command_shows_the_drop_and_writes_what_toxicity_uses(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    val, test = folders
    before = pl.read_csv(test / "base_en.csv", infer_schema=False)
    assert run(["threshold", *files(val), "--test", *files(test), "--maximize", "f1", "--write", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["thresholds"]
    after = pl.read_csv(test / "base_en.csv", infer_schema=False)
    assert after.drop("y_pred", "best_threshold").equals(before.drop("y_pred"))
    assert set(after["best_threshold"]) == {repr(rows[0]["threshold"])}
    board = evaluate_run(load_run(test, "base"), bootstrap=0)
    assert board.rows[0].figures["f1"].value == pytest.approx(rows[0]["test"], abs=1e-12)
    assert rows[0]["drop"] == pytest.approx(rows[0]["choices"]["exact"]["value"] - rows[0]["test"])
    assert not any("disagree" in w for w in board.results.warnings)


def test_a_copy_leaves_the_test_files_alone(folders: tuple[Path, Path], tmp_path: Path) -> None:
    val, test = folders
    before = (test / "base_en.csv").read_bytes()
    assert run(["threshold", *files(val), "--test", *files(test), "--output_dir", str(tmp_path / "new")]) == 0
    assert (test / "base_en.csv").read_bytes() == before
    assert "best_threshold" in (tmp_path / "new" / "base_en.csv").read_text()


def test_tuning_on_the_test_set_is_called_optimistic(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["threshold", *files(folders[0]), "--test", *files(folders[0])]) == 0
    assert "optimistic" in capsys.readouterr().out


def test_languages_must_be_the_same_on_both_sides(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["threshold", files(folders[0])[0], "--test", files(folders[1])[1]]) == 3
    assert "validation has en and test has es" in capsys.readouterr().err
    assert run(["threshold", files(folders[0])[0], "--write"]) == 2


def test_our_own_outputs_are_left_out_of_patterns(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    val, _ = folders
    (val / "base_metrics.csv").write_text("language,f1\nen,1\n")
    (val / "base_errors_en.csv").write_text("id,y_true,y_prob\n")
    assert run(["threshold", str(val / "base_*.csv")]) == 0
    said = capsys.readouterr().out
    assert "left out, as hitmiss wrote them and they are not predictions: base_errors_en.csv, base_metrics.csv" in said


@pytest.mark.parametrize("search", ["exact", "grid"])
@pytest.mark.parametrize("metric", ["f1", "accuracy", "balanced_accuracy"])
def test_the_command_finds_what_trying_every_threshold_with_scikit_learn_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], metric: str, search: str
) -> None:
    rng = np.random.default_rng(11)
    figure = {"f1": sk.f1_score, "accuracy": sk.accuracy_score, "balanced_accuracy": sk.balanced_accuracy_score}[metric]
    data = {}
    for side in ("val", "test"):
        (tmp_path / side).mkdir()
        for language in ("en", "es"):
            label = rng.integers(0, 2, 60)
            score = np.round(np.clip(0.3 + 0.3 * label + 0.2 * rng.standard_normal(60), 0, 1), 2)  # ties
            data[side, language] = label, score
            rows = [f"{i},{y},{s}" for i, (y, s) in enumerate(zip(label.tolist(), score.tolist(), strict=True))]
            (tmp_path / side / f"base_{language}.csv").write_text("id,y_true,y_prob\n" + "\n".join(rows) + "\n")
    words = ["threshold", f"{tmp_path}/val:base", "--test", f"{tmp_path}/test:base", "--maximize", metric]
    assert run([*words, "--search", search, "--output_dir", str(tmp_path / "new"), "--json"]) == 0
    found = {row["group"]: row for row in json.loads(capsys.readouterr().out)["thresholds"]}
    for language in ("en", "es"):
        label, score = data["val", language]
        tried = sorted(set(score.tolist())) if search == "exact" else [round(0.1 + 0.01 * k, 2) for k in range(81)]
        figures = [figure(label, score >= t) for t in tried]
        best = tried[int(np.argmax(np.array(figures) > max(figures) - 1e-12))]  # the lowest among equals
        assert found[language]["threshold"] == best
        label, score = data["test", language]
        assert found[language]["test"] == pytest.approx(figure(label, score >= best), abs=1e-12)
        assert found[language]["drop"] == pytest.approx(max(figures) - figure(label, score >= best), abs=1e-12)
        written = pl.read_csv(tmp_path / "new" / f"base_{language}.csv", infer_schema=False)
        assert {float(t) for t in written["best_threshold"]} == {best}
