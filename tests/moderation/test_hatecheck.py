"""HateCheck as it is published: a functionality has mostly one class, so accuracy is its number, by target too."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import polars as pl
import pytest
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
from tests.moderation.test_public_formats import is_in_row

import hitmiss as hm
from hitmiss.cli.main import run

Capture = pytest.CaptureFixture[str]
FUNCTIONALITIES = {
    "derog_neg_emote_h": 1,
    "threat_dir_h": 1,
    "negate_neg_nh": 0,
    "profanity_nh": 0,
    "spell_space": None,
}
TARGETS = ("women", "trans people", "Muslims")


@pytest.fixture
def suite(tmp_path: Path) -> tuple[str, pl.DataFrame]:
    """The columns of `test_suite_cases.csv`, its nameless row numbers included, and a model's probability."""
    draw = Random(3)
    rows = []
    for n in range(240):
        name, fixed = draw.choice(list(FUNCTIONALITIES.items()))
        hateful = draw.random() < 0.5 if fixed is None else bool(fixed)
        rows.append(
            {
                "": n,
                "functionality": name,
                "case_id": n + 1,
                "test_case": f'I like "cats", number {n}.',
                "label_gold": "hateful" if hateful else "non-hateful",
                "target_ident": draw.choice(TARGETS) if name != "profanity_nh" else None,
                "direction": "directed" if hateful else None,
                "ref_case_id": draw.choice([None, n]),
                "templ_id": draw.randint(1, 9),
                "prob_hateful": round(0.4 * hateful + 0.6 * draw.random(), 4),
            }
        )
    frame = pl.DataFrame(rows)
    frame.write_csv(tmp_path / "cases.csv")
    told = frame.with_columns(truth=frame["label_gold"] == "hateful", said=frame["prob_hateful"] >= 0.5)
    return str(tmp_path / "cases.csv"), told


def accuracies(told: dict[str, object], *names: str) -> dict[tuple[str, ...], tuple[float, int]]:
    own = [e for e in told["estimates"] if e["metric"] == "accuracy" and not e["average"]]  # type: ignore[attr-defined]
    return {tuple(e["slice"][n] for n in names): (e["value"], e["n"]) for e in own if {*e["slice"]} == {*names}}


def test_each_functionality_and_target_has_its_accuracy(suite: tuple[str, pl.DataFrame], capsys: Capture) -> None:
    path, frame = suite
    words = ["score", path, "--positive", "hateful", "-m", "accuracy", "--threshold", "0.5", "--bootstrap", "0"]
    assert run([*words, "--by", "functionality", "--by", "functionality,target_ident", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    one = accuracies(told, "functionality")
    assert len(one) == len(FUNCTIONALITIES)
    for (name,), rows in frame.group_by("functionality"):
        assert one[(str(name),)] == (pytest.approx(accuracy_score(rows["truth"], rows["said"]), abs=1e-12), rows.height)
    two = accuracies(told, "functionality", "target_ident")
    for (name, target), rows in frame.group_by("functionality", "target_ident"):
        value, n = two[str(name), str(target or "")]
        assert (value, n) == (pytest.approx(accuracy_score(rows["truth"], rows["said"]), abs=1e-12), rows.height)


def test_the_other_verbs_read_the_same_cases(suite: tuple[str, pl.DataFrame], tmp_path: Path, capsys: Capture) -> None:
    path, frame = suite
    auc = float(roc_auc_score(frame["truth"], frame["prob_hateful"]))
    words = ["--positive", "hateful", "--bootstrap", "0", "--json"]
    assert run(["toxicity", path, "--group", "functionality", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    whole = [e for e in told["estimates"] if e["metric"] == "roc_auc" and not e["slice"] and not e["average"]]
    assert whole[0]["value"] == pytest.approx(auc, abs=1e-12)
    groups = accuracies(told, "functionality")
    for (name,), rows in frame.group_by("functionality"):
        assert groups[(str(name),)][0] == pytest.approx(accuracy_score(rows["truth"], rows["said"]), abs=1e-12)
    other = tmp_path / "other.csv"
    pl.read_csv(path).with_columns(pl.col("prob_hateful").shuffle(seed=1)).write_csv(other)
    asked = ["--positive", "hateful", "-m", "roc_auc", "--by", "functionality", "--bootstrap", "50"]
    assert run(["compare", path, str(other), *asked, "--json"]) == 0
    rows_found = json.loads(capsys.readouterr().out)["differences"]
    assert next(d for d in rows_found if not d["slice"])["a"] == pytest.approx(auc, abs=1e-12)
    for limit, code in ((auc - 1e-6, 0), (auc + 1e-6, 1)):
        rule = ["--fail-if", f"roc_auc < {limit!r}"]
        assert run(["gate", path, "--positive", "hateful", "--bootstrap", "0", *rule]) == code


def test_a_report_a_threshold_and_python_read_the_same_cases(
    suite: tuple[str, pl.DataFrame], tmp_path: Path, capsys: Capture
) -> None:
    path, frame = suite
    page = tmp_path / "page.html"
    words = [path, "--positive", "hateful", "--threshold", "0.5", "-m", "accuracy", "--bootstrap", "0"]
    assert run(["report", *words, "--by", "functionality", "-o", str(page)]) == 0
    results = hm.evaluate(path, positive="hateful", threshold=0.5, metrics=["accuracy"], by="functionality")
    told = {e.slice["functionality"]: e.value for e in results if e.slice and not e.average}
    for (name,), rows in frame.group_by("functionality"):
        value = float(accuracy_score(rows["truth"], rows["said"]))
        assert told[str(name)] == pytest.approx(value, abs=1e-12)
        assert is_in_row(page.read_text(), str(name), value)
    assert run(["threshold", path, "--positive", "hateful", "--bootstrap", "0", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["thresholds"]
    best = max(float(f1_score(frame["truth"], frame["prob_hateful"] >= t)) for t in frame["prob_hateful"])
    assert row["choices"]["exact"]["value"] == pytest.approx(best, abs=1e-12)
