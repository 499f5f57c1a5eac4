"""Columns under the names that published files use; what is missing is named at once, with the option for that file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.errors import DataError

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> tuple[int, str, str]:
        code = run([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


def saved(folder: Path, text: str, name: str = "t.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


NAMES = {
    "question and truth": "question_id,ground_truth,fake_probability",
    "pictures": "image_path,gold,prob_fake",
    "Kaggle": "id,target,score",
    "speech": "flac_file,true_label,spoof_score",
    "comments": "comment_id,label,probability",
}


@pytest.mark.parametrize("header", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("verb", ["score", "stream", "validate", "gate"])
def test_names_of_published_files(header: str, verb: str, tmp_path: Path, command: Run) -> None:
    path = saved(tmp_path, f"{header}\na,real,0.1\nb,fake,0.9\nc,fake,0.4\nd,real,0.5\n")
    words = {
        "score": ("score", path, "-m", "roc_auc", "--json"),
        "stream": ("score", path, "-m", "roc_auc", "--json", "--stream"),
        "validate": ("validate", path, "--json"),
        "gate": ("gate", path, "--fail-if", "roc_auc < 0.7", "--json"),
    }[verb]
    code, text, errors = command(*words, "--positive", "fake")
    assert code == 0, errors
    if verb in ("score", "stream"):
        assert json.loads(text)["estimates"][0]["value"] == 0.75
    trials = hm.read(path, positive="fake")
    assert trials.items == ["a", "b", "c", "d"] and trials.label.tolist() == [0, 1, 1, 0]


def test_an_alias_applies_only_if_its_values_fit(tmp_path: Path) -> None:
    path = saved(tmp_path, "id,label,target,score\na,spoof,CD,1\nb,bonafide,MI,2\n")
    assert hm.read(path).header.slices == ("user:target",)
    both = saved(tmp_path, "id,label,key,score\na,spoof,k17,1\nb,bonafide,k18,2\n")
    assert hm.read(both).label.tolist() == [0, 1]
    shares = saved(tmp_path, "id,target,score\na,0.7,1\nb,0.2,2\nc,0.4,2\n")
    with pytest.raises(DataError, match="no column is the label"):
        hm.read(shares)


def test_a_usual_name_comes_before_a_published_one(tmp_path: Path) -> None:
    path = saved(tmp_path, "id,image_path,label,ground_truth,score,fake_probability\na,x.png,spoof,bonafide,1,0\n")
    trials = hm.read(path)
    assert trials.items == ["a"] and trials.label.tolist() == [0] and trials.score.tolist() == [1.0]


@pytest.mark.parametrize("name", ["spk", "speaker_id", "SPEAKER_ID", "speaker"])
@pytest.mark.parametrize("engine", [(), ("--stream",)])
def test_a_column_is_asked_for_by_the_name_in_its_file(
    name: str, engine: tuple[str, ...], tmp_path: Path, command: Run
) -> None:
    lines = [f"u{i},{'bonafide' if i % 2 else 'spoof'},{i % 7},s{i % 12}" for i in range(96)]
    path = saved(tmp_path, "\n".join([f"utt,label,score,{name}", *lines]) + "\n")
    found = []
    for asked in (name, "speaker"):
        code, text, errors = command(
            "score", path, "-m", "roc_auc", "--unit", asked, "--by", asked, "--bootstrap", "50", "--json", *engine
        )
        assert code == 0, errors
        estimates = json.loads(text)["estimates"]
        assert estimates[0]["low"] < estimates[0]["value"] < estimates[0]["high"]
        found.append([e["value"] for e in estimates])
    assert found[0] == found[1] and len(found[0]) > 12


def test_attack_labels_of_published_protocols(tmp_path: Path, command: Run) -> None:
    path = saved(tmp_path, "flac_file,speaker_id,attack_label,key,score\na,s,A1,spoof,1\nb,s,-,bonafide,2\n")
    code, text, errors = command("score", path, "-m", "roc_auc", "--by", "attack_label", "--json")
    assert code == 0, errors
    assert {e["slice"].get("attack", e["slice"].get("attack_label")) for e in json.loads(text)["estimates"]} >= {
        "A1",
        "-",
    }


@pytest.mark.parametrize("verb", ["score", "validate"])
def test_all_missing_columns_are_named_at_once(verb: str, tmp_path: Path, command: Run) -> None:
    path = saved(tmp_path, "utt,kind,value\na,x,1\nb,y,2\n")
    options = ["-m", "roc_auc"] if verb == "score" else []
    code, text, errors = command(verb, path, *options)
    assert code == 3
    assert "--column label=NAME" in text + errors and "--column score=NAME" in text + errors


@pytest.mark.parametrize("verb", ["score", "validate"])
def test_a_column_that_the_key_lacks_is_named_with_the_option_for_the_key(
    verb: str, tmp_path: Path, command: Run
) -> None:
    scores = saved(tmp_path, "utt,score\na,1\nb,2\n", "s.csv")
    key = saved(tmp_path, "utt,kind\na,bonafide\nb,spoof\n", "k.csv")
    options = ["-m", "roc_auc"] if verb == "score" else []
    code, text, errors = command(verb, scores, "--key", key, *options)
    assert code == 3 and "--key-column label=NAME" in text + errors
    code, text, errors = command(verb, scores, "--key", key, *options, "--key-column", "label=kind")
    assert code == 0, errors


def test_triage_without_a_verdict_asks_for_one(tmp_path: Path, command: Run) -> None:
    path = saved(tmp_path, "id,label,says\na,fake,fake\nb,real,real\n")
    code, _, errors = command("triage", path)
    assert code == 3 and "--column verdict=NAME" in errors
    code, _, errors = command("triage", path, "--column", "verdict=says", "--bootstrap", "0")
    assert code == 0, errors


def test_column_8_of_the_2021_pa_key_is_the_replay_device(tmp_path: Path) -> None:
    key = saved(
        tmp_path,
        "PA_0010 PA_E_1 R1 M1 D1 - - - - bonafide notrim eval\nPA_0011 PA_E_2 R2 M2 d3 r4 m2 s3 c2 spoof notrim eval\n",
        "key.txt",
    )
    trials = hm.read(saved(tmp_path, "PA_E_1 1.5\nPA_E_2 -0.5\n", "s.txt"), key)
    assert trials.column("replay_device").to_list() == ["-", "s3"]
    assert trials.column("attack_to_speaker").to_list() == ["-", "c2"]
