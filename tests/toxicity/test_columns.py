"""Columns of prediction files beside the documented ones: decisions under other names, and what rows belong to."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from sklearn.metrics import f1_score

from hitmiss.cli.main import run

Capture = pytest.CaptureFixture[str]
LABELS, SCORES, DECISIONS = [1, 0, 1, 0, 1, 0], [0.9, 0.1, 0.6, 0.6, 0.8, 0.3], [1, 0, 0, 1, 1, 0]
OF_COLUMN = f1_score(LABELS, DECISIONS)
OF_SCORES = f1_score(LABELS, [score >= 0.5 for score in SCORES])


def table(path: Path, name: str, cells: list[object], score: str = "y_prob") -> Path:
    rows = zip(LABELS, SCORES, cells, strict=True)
    lines = [f"t{n},{label},{value},{cell},en" for n, (label, value, cell) in enumerate(rows)]
    path.write_text("\n".join([f"id,y_true,{score},{name},language", *lines, ""]))
    return path


def f1(words: list[str], capsys: Capture) -> float:
    assert run([*words, "--bootstrap", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["estimates"]
    return next(float(e["value"]) for e in found if e["metric"] == "f1" and not e["slice"] and not e["average"])


@pytest.mark.parametrize("cells", [DECISIONS, [bool(d) for d in DECISIONS], [f"{d}.0" for d in DECISIONS]])
@pytest.mark.parametrize("name", ["y_pred", "pred", "prediction", "predicted", "y_hat", "flagged"])
def test_a_binary_column_beside_the_score_decides(
    name: str, cells: list[object], tmp_path: Path, capsys: Capture
) -> None:
    assert OF_COLUMN != OF_SCORES
    for score in ("y_prob", "score"):
        path = str(table(tmp_path / "texts.csv", name, cells, score))
        named = str(table(tmp_path / "texts_en.csv", name, cells, score))
        for words in (["toxicity", path], ["toxicity", named], ["score", path, "-p", "toxicity"]):
            assert f1(words, capsys) == pytest.approx(OF_COLUMN, abs=1e-12), words
        assert f1(["score", named, "-p", "toxicity"], capsys) == pytest.approx(OF_COLUMN, abs=1e-12)


@pytest.mark.parametrize("name", ["pred", "prediction"])
def test_a_column_that_is_not_binary_does_not_decide(name: str, tmp_path: Path, capsys: Capture) -> None:
    path = table(tmp_path / "texts.csv", name, [0.2, 0.4, 0.7, 0.1, 0.5, 0.6])
    assert f1(["toxicity", str(path)], capsys) == pytest.approx(OF_SCORES, abs=1e-12)
    assert run(["toxicity", str(path), "--bootstrap", "0"]) == 0
    assert f"the column '{name}' is not binary" in " ".join("".join(capsys.readouterr()).split())


def test_two_binary_columns_are_refused(tmp_path: Path, capsys: Capture) -> None:
    path = table(tmp_path / "texts.csv", "pred,flagged", [f"{d},{1 - d}" for d in DECISIONS])
    assert run(["toxicity", str(path), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "ambiguous-column"
    assert f1(["toxicity", str(path), "--column", "decision=pred"], capsys) == pytest.approx(OF_COLUMN, abs=1e-12)


def test_minus_one_is_no_decision_unless_declared(tmp_path: Path, capsys: Capture) -> None:
    path = table(tmp_path / "texts_en.csv", "y_pred", [1 if decision else -1 for decision in DECISIONS])
    for words in (["toxicity", str(path)], ["score", str(path), "-p", "toxicity"]):
        assert run([*words, "--bootstrap", "0", "--json"]) == 3
        error = json.loads(capsys.readouterr().out)["error"]
        assert error["code"] == "unknown-decision"
        assert [f["row"] for f in error["faults"]] == [n + 2 for n, decision in enumerate(DECISIONS) if not decision]
        assert run([*words, "--bootstrap", "0", "--json", "--abstain", "-1"]) == 0
        capsys.readouterr()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs in two languages, by authors who wrote several texts each."""
    for tag in ("base", "new"):
        draw = Random(tag)
        for language in ("en", "es"):
            truth = Random(language)
            rows = []
            for n in range(80):
                label, author = int(truth.random() < 0.4), truth.randrange(25)
                score = round(0.4 * label + 0.6 * draw.random(), 4)
                rows.append(f"{n},{label},{score},{language}{author},{'web' if n % 2 else 'app'},a text {language} {n}")
            head = "id,y_true,y_prob,author,platform,comment_text"
            (tmp_path / f"{tag}_{language}.csv").write_text("\n".join([head, *rows, ""]))
    return tmp_path


def test_texts_of_one_author_are_drawn_together_by_every_command(runs: Path, capsys: Capture) -> None:
    draws = ["--unit", "author", "--bootstrap", "100"]
    files = [str(runs / f"base_{language}.csv") for language in ("en", "es")]
    told = {}
    for name, words in {
        "toxicity": ["toxicity", *files, *draws],
        "score": ["score", *files, "-p", "toxicity", "--by", "language", *draws],
        "compare": ["compare", f"{runs}:base", f"{runs}:new", "-p", "toxicity", "-m", "f1", *draws],
    }.items():
        assert run([*words, "--json"]) == 0, capsys.readouterr().err
        told[name] = json.loads(capsys.readouterr().out)
        assert "unit=author" in told[name]["signature"], name
    values = [
        {(e["metric"], str(e["slice"])): e["value"] for e in told[name]["estimates"] if not e["average"]}
        for name in ("toxicity", "score")
    ]
    assert values[0] == values[1]
    rule = ["--fail-if", "f1.low < 0.01"]
    assert run(["gate", f"{runs}:base", "-p", "toxicity", *rule, *draws]) == 0, capsys.readouterr().err
    report = runs / "report.html"
    assert run(["report", f"{runs}:base", "-p", "toxicity", *draws, "-o", str(report)]) == 0, capsys.readouterr().err
    assert "unit=author" in report.read_text()


def test_other_columns_of_files_named_after_languages_are_slices(runs: Path, capsys: Capture) -> None:
    words = ["score", str(runs / "base_en.csv"), "-p", "toxicity", "--by", "platform", "--bootstrap", "0", "--json"]
    assert run(words) == 0
    found = json.loads(capsys.readouterr().out)["estimates"]
    assert {e["slice"].get("platform") for e in found} >= {"web", "app"}
