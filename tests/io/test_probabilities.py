"""A column that is named as probabilities holds probabilities, in every command, unless the caller says otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hitmiss.cli.main import run

HEAD = "id,label,{}\n"
ROWS = "a,1,0.9\nb,0,0.2\nc,1,1.7\nd,0,0.4\n"


@pytest.mark.parametrize("column", ["y_prob", "prob", "Probability", "toxic_probability", "prob-toxic", "y_proba"])
@pytest.mark.parametrize("words", [("score", "-m", "roc_auc"), ("score", "-m", "roc_auc", "--stream")])
def test_a_score_above_one_is_refused_where_the_name_says_probability(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], column: str, words: tuple[str, ...]
) -> None:
    file = tmp_path / "s.csv"
    file.write_text(HEAD.format(column) + ROWS)
    declared = ("--column", f"score={column}", "--positive", "1", "--bootstrap", "0", "--json")
    assert run([*words[:1], str(file), *words[1:], *declared]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "not-a-probability"
    assert [(f["row"], f["value"]) for f in error["faults"]] == [(4, "1.7")]
    assert run([*words[:1], str(file), *words[1:], *declared, "--score-kind", "raw"]) == 0


def test_a_column_that_is_not_named_so_may_hold_any_number(tmp_path: Path) -> None:
    file = tmp_path / "s.csv"
    file.write_text(HEAD.format("score") + ROWS)
    assert run(["score", str(file), "-m", "roc_auc", "--positive", "1", "--bootstrap", "0"]) == 0


def test_the_verb_of_predictions_refuses_the_same_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.csv"
    file.write_text(HEAD.format("y_prob") + ROWS)
    assert run(["toxicity", str(file), "--bootstrap", "0", "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["faults"][0]["row"]) == ("not-a-probability", 4)
