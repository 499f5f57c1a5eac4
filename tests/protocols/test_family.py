"""The ASVspoof family: files of one challenge are not scored under the name of another, nor three classes as two."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.errors import DataError

KEY_2019 = "".join(
    f"LA_{i % 3} E_{i} - {'A07' if i % 2 else '-'} {'spoof' if i % 2 else 'bonafide'}\n" for i in range(40)
)
KEY_2021 = "".join(
    f"LA_{i % 3} E_{i} alaw ita {'A07' if i % 2 else '-'} {'spoof' if i % 2 else 'bonafide'} notrim "
    f"{'progress' if i % 5 == 0 else 'eval'}\n"
    for i in range(40)
)
SCORES = "".join(f"E_{i} {0.1 * ((i * 7) % 11) - (i % 2)}\n" for i in range(40))
SASV = "spk\tfilename\tcm-score\tasv-score\tsasv-score\nT1\tE_01\t1\t2\t3\nT2\tE_01\t1\t-2\t-1\nT1\tE_02\t-4\t-1\t-3\n"
SASV_KEY = "spk\tfilename\tcm-label\tasv-label\nT1\tE_01\tbonafide\ttarget\nT2\tE_01\tbonafide\tnontarget\nT1\tE_02\tspoof\tspoof\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in {
        "s.txt": SCORES,
        "k19.txt": KEY_2019,
        "k21.txt": KEY_2021,
        "sasv.tsv": SASV,
        "sasv_key.tsv": SASV_KEY,
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("key", ["k19.txt", "k21.txt"])
def test_files_of_another_year_are_refused(files: Path, key: str) -> None:
    with pytest.raises(DataError) as refused:
        hm.evaluate(files / "s.txt", files / key, "asvspoof5")
    assert refused.value.code == "wrong-layout"
    assert f"asvspoof20{key[1:3]}" in str(refused.value)


@pytest.mark.parametrize("year", ["19", "21"])
def test_the_protocol_of_the_year_scores_them(files: Path, year: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", str(files / "s.txt"), "--key", str(files / f"k{year}.txt"), "-p", f"asvspoof20{year}"]
    assert run(words) == 0
    shown = capsys.readouterr().out
    assert f"ASVspoof 20{year}" in shown and "ASVspoof 5" not in shown
    assert run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    trials = hm.read(files / "s.txt", files / f"k{year}.txt", positive="bonafide")
    expected = hm.metrics.eer(trials.label, trials.score, ties="official")
    assert next(e for e in found["estimates"] if e["metric"] == "eer")["value"] == pytest.approx(expected)


@pytest.mark.parametrize("words", [["-p", "asvspoof2021"], ["-m", "eer"]])
def test_subsets_are_not_pooled_in_silence(files: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["score", str(files / "s.txt"), "--key", str(files / "k21.txt"), "--json", *words]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert any("pool 2 values of subset (eval, progress)" in w for w in warnings)


@pytest.mark.parametrize("words", [["-p", "asvspoof5"], ["-m", "eer"], ["-m", "eer", "--stream"]])
def test_claims_of_speakers_are_refused(files: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["score", str(files / "sasv.tsv"), "--key", str(files / "sasv_key.tsv"), *words]) != 0
    assert "Track 2" in capsys.readouterr().err
