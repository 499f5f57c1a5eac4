"""Numbers of tandems, streamed: the digits, intervals and warnings of memory, or a refusal that says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hitmiss.cli.main import run

FOLDER = Path(__file__).parent.parent / "official_reference" / "tandem"
THREE_CLASSES = {"min_a_dcf", "min_t_dcf", "t_eer", "sasv_eer", "sv_eer", "spf_eer"}


def track2(key: str, *asked: str, kind: str = "tandem") -> list[str]:
    files = FOLDER / f"track2_{kind}" / "01_plain"
    protocol = {"tandem": "asvspoof5-track2", "single": "asvspoof5-track2-single"}[kind]
    return [str(files / "sasv_scores.tsv"), "--key", str(files / key), "-p", protocol, *asked]


def of_2021(track: str, *asked: str, with_asv: bool = True) -> list[str]:
    files = FOLDER / f"asvspoof2021_{track.lower()}" / "01_plain"
    keys = files / "keys" / track
    verifier = keys / "ASV"
    asv = ["--asv", str(verifier / "ASVTorch_Kaldi" / "score.txt"), "--asv-key", str(verifier / "trial_metadata.txt")]
    protocol = ["-p", f"asvspoof2021-{track.lower()}"]
    key = ["--key", str(keys / "CM" / "trial_metadata.txt")]
    return [str(files / "score.txt"), *key, *protocol, *(asv if with_asv else ()), *asked]


def of_2019(*asked: str) -> list[str]:
    files = FOLDER / "asvspoof2019_la" / "01_plain"
    return [str(files / "cm_scores.txt"), "-p", "asvspoof2019-la", "--asv", str(files / "asv_scores.txt"), *asked]


def of_2022(*asked: str) -> list[str]:
    files = FOLDER / "sasv2022" / "01_plain"
    return [str(files / "scores.txt"), "--key", str(files / "trials.txt"), "-p", "sasv2022", *asked]


ASV5 = ("--asv", str(FOLDER / "track2_tandem" / "01_plain" / "asv_org.tsv"))
BOTH_COSTS = ("-m", "min_t_dcf", "-m", "min_t_dcf_legacy")
FIXED = ("-m", "min_t_dcf(asv=fixed)", "-m", "min_t_dcf_legacy")
OWN = ("-m", "min_t_dcf(asv=own)", "-m", "min_t_dcf_legacy(asv=own)")
CASES: dict[str, tuple[list[str], set[str]]] = {
    "track 2": (track2("sasv_key.tsv", "--unit", "speaker"), THREE_CLASSES),
    "track 2 by attack and codec": (
        track2("sasv_key_full.txt", "--by", "attack,codec", "--unit", "speaker"),
        THREE_CLASSES,
    ),
    "track 2 with the ASV's trials": (
        track2("sasv_key_full.txt", "--by", "codec", *ASV5, "--unit", "speaker"),
        THREE_CLASSES,
    ),
    "track 2 over trials": (track2("sasv_key_full.txt", "--by", "codec", "--unit", "none"), THREE_CLASSES),
    "track 2 with one score": (
        track2("sasv_key_full.txt", "--by", "codec", "--unit", "speaker", kind="single"),
        {"min_a_dcf", "sasv_eer", "sv_eer", "spf_eer"},
    ),
    "2021 LA": (of_2021("LA", "--by", "codec", "--unit", "speaker"), {"min_t_dcf"}),
    "2021 LA over both": (of_2021("LA", "--by", "attack", "--unit", "speaker,attack"), {"min_t_dcf"}),
    "2021 LA with fixed rates": (
        of_2021("LA", *FIXED, "--by", "codec", "--unit", "speaker", with_asv=False),
        {"min_t_dcf(asv=fixed)", "min_t_dcf_legacy"},
    ),
    "2021 PA": (of_2021("PA", "--by", "talker_distance", "--unit", "speaker"), {"min_t_dcf"}),
    "2019": (of_2019("--by", "attack"), {"min_t_dcf", "min_t_dcf_legacy"}),
    "2019 over attacks": (of_2019(*BOTH_COSTS, "--unit", "attack"), {"min_t_dcf", "min_t_dcf_legacy"}),
    "2019 by attack": (of_2019(*OWN, "--by", "attack"), {"min_t_dcf(asv=own)", "min_t_dcf_legacy(asv=own)"}),
    "2022": (of_2022("--unit", "speaker"), {"min_a_dcf", "sasv_eer", "sv_eer", "spf_eer"}),
}


def scored(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["score", *arguments, "--bootstrap", "30", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("name", CASES)
def test_streamed_tandems_have_the_digits_of_memory(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every estimate of every slice, gap and average: value, interval, units, note; and the warnings."""
    arguments, metrics = CASES[name]
    memory = scored(capsys, *arguments)
    pooled = {e["metric"]: e for e in memory["estimates"] if not e["slice"]}
    for metric in metrics:  # the law says nothing about numbers that are not there
        assert pooled[metric]["low"] < pooled[metric]["high"], (metric, pooled[metric])
    for limits in ((), ("--memory", "10MB")):
        stream = scored(capsys, *arguments, "--stream", *limits)
        assert stream["estimates"] == memory["estimates"]
        assert stream["warnings"] == memory["warnings"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (track2("sasv_key.tsv"), "the protocol asvspoof5-track2 needs the rows, which counts do not have"),
        (of_2021("PA"), "the protocol asvspoof2021-pa needs the rows, which counts do not have"),
        (of_2022(), "the protocol sasv2022 needs the rows, which counts do not have"),
    ],
)
def test_another_engine_says_why_it_cannot_count_a_tandem(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["score", *arguments, "--stream", "--engine", "duckdb", "--json"]) == 2
    heard = capsys.readouterr()
    assert said in heard.err + heard.out
    assert "needs-every-trial" in heard.err + heard.out
