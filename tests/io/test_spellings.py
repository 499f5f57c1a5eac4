"""One file in many spellings (`spellings.toml`): every command reads the same numbers, or refuses the same cells."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import f1_score, roc_auc_score

import hitmiss as hm
from hitmiss.cli.main import run

SPELLINGS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("spellings.toml").read_text())["spelling"]
GOOD = [one for one in SPELLINGS if "faults" not in one]
FAULTY = [one for one in SPELLINGS if "faults" in one]
LABELS, SCORES = [1, 0, 1, 0, 1, 0], [0.9, 0.1, 0.4, 0.6, 0.8, 0.3]
AUC, F1 = roc_auc_score(LABELS, SCORES), f1_score(LABELS, [score >= 0.5 for score in SCORES])

DECLARED = ("--positive", "toxic", "--score-kind", "probability")
COMMANDS = {
    "score": ("score", "FILE", *DECLARED, "-m", "roc_auc", "-m", "f1", "--threshold", "0.5"),
    "score --stream": ("score", "FILE", *DECLARED, "-m", "roc_auc", "-m", "f1", "--threshold", "0.5", "--stream"),
    "score -p toxicity": ("score", "FILE", "-p", "toxicity", "--threshold", "0.5"),
    "score -p toxicity, language in the name": ("score", "FILE_EN", "-p", "toxicity", "--threshold", "0.5"),
    "toxicity": ("toxicity", "FILE"),
}
"""Commands that print estimates."""
OTHERS = {
    "compare": ("compare", "PLAIN", "FILE", "-p", "toxicity", "-m", "roc_auc"),
    "gate": ("gate", "FILE", "-p", "toxicity", "--fail-if", "roc_auc < 0.5"),
    "report": ("report", "FILE", "-p", "toxicity", "-o", "REPORT"),
}


def write(folder: Path, spelling: dict[str, Any]) -> dict[str, str]:
    """Write the file under its two names and the plain one; return the words of commands that stand for them."""
    end = "\r\n" if spelling.get("has_windows_line_ends") else "\n"
    data = "".join(line + end for line in spelling["lines"]).encode()
    data = b"\xef\xbb\xbf" + data if spelling.get("has_byte_order_mark") else data
    paths = {"FILE": folder / "texts.csv", "FILE_EN": folder / "texts_en.csv", "PLAIN": folder / "plain.csv"}
    for path in paths.values():
        path.write_bytes(data)
    paths["PLAIN"].write_text("".join(line + "\n" for line in GOOD[0]["lines"]))
    return {**{name: str(path) for name, path in paths.items()}, "REPORT": str(folder / "report.html")}


def told(words: tuple[str, ...], paths: dict[str, str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    drawn = () if words[0] in ("gate", "compare", "report") else ("--bootstrap", "0")
    code = run([*(paths.get(word, word) for word in words), *drawn, "--json"])
    return code, json.loads(capsys.readouterr().out)


def names(spellings: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in spellings]


@pytest.mark.parametrize("spelling", GOOD, ids=names(GOOD))
def test_a_spelling_gives_the_same_numbers(
    spelling: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = write(tmp_path, spelling)
    for command, words in COMMANDS.items():
        code, found = told(words, paths, capsys)
        assert code == 0, (command, found)
        whole = {e["metric"]: e["value"] for e in found["estimates"] if not e["slice"] and not e["average"]}
        assert whole["roc_auc"] == pytest.approx(AUC, abs=1e-12), command
        assert whole["f1"] == pytest.approx(F1, abs=1e-12), command
    for command, words in OTHERS.items():
        assert told(words, paths, capsys)[0] == 0, command
    trials = hm.read(paths["FILE"], positive="toxic", positive_value="1", score_kind="probability")
    assert (trials.label.tolist(), trials.score.tolist()) == (LABELS, SCORES)


@pytest.mark.parametrize("spelling", FAULTY, ids=names(FAULTY))
def test_a_faulty_cell_gives_the_same_code_and_place(
    spelling: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths, wanted = write(tmp_path, spelling), {tuple(fault.values()) for fault in spelling["faults"]}
    for command, words in {**COMMANDS, **OTHERS}.items():
        code, found = told(words, paths, capsys)
        assert (code, found["error"]["code"]) == (3, spelling["faults"][0]["kind"]), (command, found)
        faults = [(f["kind"], f["row"], f["column"], f["value"]) for f in found["error"]["faults"]]
        assert len(faults) == len(wanted) and set(faults) == wanted, command
        assert {f["file"] for f in found["error"]["faults"]} <= {"texts.csv", "texts_en.csv"}
    with pytest.raises(hm.DataError) as caught:
        hm.read(paths["FILE"], positive="toxic", positive_value="1", score_kind="probability")
    assert caught.value.code == spelling["faults"][0]["kind"]
    assert {(f.kind, f.row, f.column, f.value) for f in caught.value.faults} == wanted


def test_as_many_faults_are_listed_by_every_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"t{n},{'maybe' if n % 2 else 'perhaps'},0.5,en\n" for n in range(3000))
    path = tmp_path / "many.csv"
    path.write_text(f"id,y_true,y_prob,language\n{rows}")
    for words in (["score", "-p", "toxicity"], ["toxicity"], ["gate", "-p", "toxicity", "--fail-if", "f1 < 0.1"]):
        assert run([words[0], str(path), *words[1:]]) == 3
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 7 and lines[0].startswith("hitmiss: many.csv, row ") and "unknown label" in lines[0]
        assert lines[-1] == "  … and 2995 more; `hitmiss validate` lists all"


def test_a_column_of_other_texts_is_one_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("id,y_true,y_prob,language\n" + "".join(f"t{n},some text {n},0.5,en\n" for n in range(300)))
    for words in (["score", "-p", "toxicity"], ["toxicity"]):
        assert run([words[0], str(path), *words[1:]]) == 3
        first = capsys.readouterr().err.splitlines()[0]
        assert "300 rows with 300 unknown labels" in first and len(first) < 300
