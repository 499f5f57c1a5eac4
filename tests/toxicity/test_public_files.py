"""Files as people have them: a key that repeats columns, no language anywhere, shares in other spellings, identities."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from hitmiss.cli.main import run

Capture = pytest.CaptureFixture[str]
DRAW = Random(11)
IDS = [f"c{n}" for n in range(60)]
LABELS = [int(DRAW.random() < 0.4) for _ in IDS]
SCORES = [round(0.35 * label + 0.6 * DRAW.random(), 4) for label in LABELS]
AUC = roc_auc_score(LABELS, SCORES)
TEXTS = [f"a comment, number {n}" for n in range(60)]


def told(words: list[str], capsys: Capture) -> tuple[int, dict[str, object]]:
    code = run([*words, "--bootstrap", "0", "--json"])
    return code, json.loads(capsys.readouterr().out)


def auc(words: list[str], capsys: Capture) -> float:
    code, found = told(words, capsys)
    assert code == 0, found
    whole = [e for e in found["estimates"] if e["metric"] == "roc_auc" and not e["slice"] and not e["average"]]  # type: ignore[attr-defined]
    return float(whole[0]["value"])


def refusal(words: list[str], capsys: Capture) -> dict[str, object]:
    code, found = told(words, capsys)
    assert code in (2, 3), found
    return found["error"]  # type: ignore[return-value]


def write(path: Path, **columns: object) -> str:
    pl.DataFrame(columns).write_csv(path)
    return str(path)


def test_a_key_may_repeat_columns_of_the_predictions(tmp_path: Path, capsys: Capture) -> None:
    facts = {"comment_text": TEXTS, "platform": ["web", "app"] * 30, "length": list(range(60))}
    scores = write(tmp_path / "p_en.csv", id=IDS, y_prob=SCORES, **facts)
    for name in ("y_true", "label", "toxic"):
        turned = {column: cells[::-1] for column, cells in facts.items()}
        key = write(tmp_path / "key.csv", id=IDS[::-1], **{name: LABELS[::-1]}, **turned)
        assert auc(["toxicity", scores, "--key", key], capsys) == pytest.approx(AUC, abs=1e-12)


def test_what_a_key_says_otherwise_is_refused(tmp_path: Path, capsys: Capture) -> None:
    scores = write(tmp_path / "p_en.csv", id=IDS, y_prob=SCORES, platform=["web"] * 60, y_true=LABELS)
    key = write(tmp_path / "key.csv", id=IDS, y_true=LABELS, platform=["app", *["web"] * 59])
    error = refusal(["toxicity", scores, "--key", key], capsys)
    assert error["code"] == "column-conflict"
    assert [(f["file"], f["column"], f["value"]) for f in error["faults"]] == [("p_en.csv", "platform", "web")]  # type: ignore[attr-defined]
    key = write(tmp_path / "key.csv", id=IDS, y_true=[f"{label}.0" for label in LABELS], platform=["web"] * 60)
    assert auc(["toxicity", scores, "--key", key], capsys) == pytest.approx(AUC, abs=1e-12)
    key = write(tmp_path / "key.csv", id=IDS, y_true=[1 - LABELS[0], *LABELS[1:]])
    assert refusal(["toxicity", scores, "--key", key], capsys)["code"] == "label-conflict"


def test_types_side_by_side_may_stand_beside_texts(tmp_path: Path, capsys: Capture) -> None:
    scores = write(tmp_path / "submission.csv", id=IDS, comment_text=TEXTS, toxic=SCORES, insult=SCORES[::-1])
    key = write(tmp_path / "key.csv", id=IDS, comment_text=TEXTS, toxic=LABELS, insult=LABELS[::-1])
    code, found = told(["toxicity", scores, "--key", key], capsys)
    assert code == 0, found
    values = {e["slice"].get("type"): e["value"] for e in found["estimates"] if e["metric"] == "roc_auc"}  # type: ignore[attr-defined]
    assert values["toxic"] == values["insult"] == pytest.approx(AUC, abs=1e-12)


def test_the_columns_of_a_key_can_be_declared(tmp_path: Path, capsys: Capture) -> None:
    scores = write(tmp_path / "p_en.csv", id=IDS, y_prob=SCORES)
    noise = [1 - label for label in LABELS]
    key = write(tmp_path / "key.csv", name=IDS, gold=LABELS, y_true=noise)
    words = ["toxicity", scores, "--key", key, "--key-column", "item=name", "--key-column", "label=gold"]
    assert auc(words, capsys) == pytest.approx(AUC, abs=1e-12)
    error = refusal([*words[:-1], "label=gould"], capsys)
    assert error["code"] == "missing-column" and "did you mean 'gold'?" in str(error["message"])


def test_texts_without_a_language_are_one_group(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path / "civil.csv", id=IDS, y_true=LABELS, y_prob=SCORES)
    assert auc(["toxicity", path], capsys) == pytest.approx(AUC, abs=1e-12)
    assert run(["toxicity", path, "--bootstrap", "0", "--results", str(tmp_path / "r.json")]) == 0
    assert "nothing names the languages" in " ".join("".join(capsys.readouterr()).split())
    assert run(["verify", str(tmp_path / "r.json"), path]) == 0
    capsys.readouterr()
    named = write(tmp_path / "civil_en.csv", id=IDS, y_true=LABELS, y_prob=SCORES)
    error = refusal(["toxicity", path, named], capsys)
    assert error["code"] == "missing-column" and "civil.csv" in str(error["message"])
    shares = [0.9 * label for label in LABELS]
    path = write(tmp_path / "shares.csv", id=IDS, target=shares, y_prob=SCORES)
    assert auc(["toxicity", path, "--label-cut", "0.5"], capsys) == pytest.approx(AUC, abs=1e-12)


def test_shares_of_annotators_in_other_spellings(tmp_path: Path, capsys: Capture) -> None:
    shares = [0.6 if label else 0.3 for label in LABELS]
    path = write(tmp_path / "t_en.csv", id=IDS, toxicity=shares, y_prob=SCORES)
    assert auc(["toxicity", path, "--label-cut", "0.5"], capsys) == pytest.approx(AUC, abs=1e-12)
    rows = [
        f"{i};{str(t).replace('.', ',')};{str(p).replace('.', ',')}"
        for i, t, p in zip(IDS, shares, SCORES, strict=True)
    ]
    (tmp_path / "d_en.csv").write_text("\n".join(["id;target;y_prob", *rows, ""]))
    words = ["toxicity", str(tmp_path / "d_en.csv"), "--label-cut", "0.5"]
    assert auc([*words, "--decimal", ","], capsys) == pytest.approx(AUC, abs=1e-12)
    error = refusal(words, capsys)
    assert error["code"] == "bad-share" and "--decimal" in str(error["message"])
    kinds = [fault["kind"] for fault in error["faults"]]  # type: ignore[attr-defined]
    assert kinds.count("bad-share") == kinds.count("not-a-number") == 60, "shares and scores alike"
    assert error["faults"][0]["row"] == 2 and error["faults"][0]["value"] in ("0,6", "0,3")  # type: ignore[index]
    for cut in ("50", "0", "nan", "-1"):
        assert refusal(["toxicity", path, "--label-cut", cut], capsys)["code"] == "bad-label-cut"


@pytest.mark.parametrize("yes", [("yes", "no"), ("YES", "NO"), ("hate", "ok")])
def test_a_value_of_the_positive_class_can_be_any_word(yes: tuple[str, str], tmp_path: Path, capsys: Capture) -> None:
    words = [yes[0] if label else yes[1] for label in LABELS]
    decided = [int(score >= 0.5) for score in SCORES]
    path = write(tmp_path / "w_en.csv", id=IDS, y_true=words, y_prob=SCORES, y_pred=decided)
    for command in (["toxicity", path], ["score", path, "-p", "toxicity"]):
        assert auc([*command, "--positive-value", yes[0]], capsys) == pytest.approx(AUC, abs=1e-12)


@pytest.mark.parametrize("yes", [("True", "False"), ("yes", "no"), ("1", "0"), ("1.0", "0.0"), ("TRUE", "")])
def test_identities_may_be_yes_or_no_in_any_spelling(yes: tuple[str, str], tmp_path: Path, capsys: Capture) -> None:
    is_member = [n % 3 == 0 for n in range(60)]
    cells = [yes[0] if member else yes[1] for member in is_member]
    path = write(tmp_path / "i_en.csv", id=IDS, y_true=LABELS, y_prob=SCORES, women=cells)
    code, found = told(["toxicity", path, "--identity", "women"], capsys)
    assert code == 0, found
    values = [e["value"] for e in found["estimates"] if e["metric"] == "subgroup_auc"]  # type: ignore[attr-defined]
    inside = [(label, score) for label, score, member in zip(LABELS, SCORES, is_member, strict=True) if member]
    assert values and all(v == pytest.approx(roc_auc_score(*zip(*inside, strict=True)), abs=1e-12) for v in values)
    pl.DataFrame({"id": IDS, "y_true": LABELS, "y_prob": SCORES, "women": is_member}).write_parquet(
        tmp_path / "i_en.parquet"
    )
    code, typed = told(["toxicity", str(tmp_path / "i_en.parquet"), "--identity", "women"], capsys)
    assert code == 0 and [e["value"] for e in typed["estimates"] if e["metric"] == "subgroup_auc"] == values  # type: ignore[attr-defined]
