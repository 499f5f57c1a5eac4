"""Presentation attack detection: a protocol in one short file, and that of ISO/IEC 30107-3, against plain arithmetic."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hitmiss.cli.main import run

PROTOCOL = Path(__file__).parent / "pad-with-average.toml"
SPECIES = {"print": 0.30, "replay": 0.12, "mask": 0.05}
"""How often an attack of each species passes."""


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    rng = np.random.default_rng(7)
    made = []
    for i in range(900):
        species = ["", "print", "replay", "mask"][i % 4] if i >= 300 else ""
        passes = rng.random() < (0.9 if not species else SPECIES[species])
        score = rng.uniform(0.5, 1.0) if passes else rng.uniform(0.0, 0.4999)
        kind = "attack" if species else "bonafide"
        made.append({"id": f"c{i}", "label": kind, "score": f"{score:.6f}", "attack_type": species or "none"})
        made[-1]["subject"] = f"p{i % 60}"
    return made


@pytest.fixture(scope="module")
def claimed(rows: list[dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pad")
    with (folder / "pad.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    words = ["score", str(folder / "pad.csv"), "-p", str(PROTOCOL), "-o", str(folder / "claim.json"), "--json"]
    assert run(words) == 0
    return folder / "pad.csv", folder / "claim.json"


def estimates(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["estimates"]
    return found


def rate(rows: list[dict[str, str]], species: str, accepted: bool) -> float:
    own = [float(r["score"]) >= 0.5 for r in rows if r["attack_type"] == species]
    return sum(a == accepted for a in own) / len(own)


def test_the_file_is_short() -> None:
    assert len(PROTOCOL.read_text().splitlines()) <= 20


def test_figures_are_those_of_plain_arithmetic(rows: list[dict[str, str]], claimed: tuple[Path, Path]) -> None:
    found = {(e["metric"], e["slice"].get("species"), e["average"]): e for e in estimates(claimed[1])}
    apcer = {species: rate(rows, species, accepted=True) for species in SPECIES}
    bpcer = rate(rows, "none", accepted=False)
    for species, expected in apcer.items():
        assert found["fpr", species, None]["value"] == pytest.approx(expected, abs=1e-12)
        assert found["fpr", species, None]["title"] == "APCER"
    assert ("fpr", "none", None) not in found, "bona fide trials are no species"
    assert found["fnr", None, None]["value"] == pytest.approx(bpcer, abs=1e-12)
    assert found["worst", None, None]["value"] == pytest.approx(max(apcer.values()), abs=1e-12)
    assert found["acer", None, None]["value"] == pytest.approx((max(apcer.values()) + bpcer) / 2, abs=1e-12)
    for name in ("worst", "acer"):
        e = found[name, None, None]
        assert e["low"] < e["value"] < e["high"]
        assert "unit=subject" in e["method"]


def test_the_interval_is_that_of_whole_subjects(rows: list[dict[str, str]], claimed: tuple[Path, Path]) -> None:
    """Against a bootstrap of subjects written here; ends agree within what 1,000 replicates leave open."""
    rng = np.random.default_rng(0)
    subject = np.array([int(r["subject"][1:]) for r in rows])
    accepted = np.array([float(r["score"]) >= 0.5 for r in rows])
    species = np.array([r["attack_type"] for r in rows])

    def acer(weight: Any) -> float:
        worst = max(np.average(accepted[species == s], weights=weight[species == s]) for s in SPECIES)
        return float((worst + np.average(~accepted[species == "none"], weights=weight[species == "none"])) / 2)

    value = acer(np.ones(len(rows)))
    drawn = [acer(np.bincount(rng.integers(0, 60, 60), minlength=60)[subject]) for _ in range(3000)]
    expected = 2 * value - np.quantile(drawn, [0.975, 0.025])
    e = next(e for e in estimates(claimed[1]) if e["metric"] == "acer")
    assert [e["low"], e["high"]] == pytest.approx(expected.tolist(), abs=0.012)


def test_tables_use_the_names_of_the_standard(claimed: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["score", str(claimed[0]), "-p", str(PROTOCOL), "--bootstrap", "50"]) == 0
    shown = capsys.readouterr().out
    assert "APCER" in shown and "BPCER" in shown and "ACER" in shown and "fpr" not in shown.split("hitmiss:")[0]


def test_the_claim_verifies_and_an_edited_one_does_not(claimed: tuple[Path, Path], tmp_path: Path) -> None:
    assert run(["verify", str(claimed[1]), str(claimed[0])]) == 0
    data = json.loads(claimed[1].read_text())
    next(e for e in data["estimates"] if e["metric"] == "acer")["value"] -= 0.01
    (tmp_path / "edited.json").write_text(json.dumps(data))
    assert run(["verify", str(tmp_path / "edited.json"), str(claimed[0])]) == 1


def test_streamed_figures_are_the_same(claimed: tuple[Path, Path], tmp_path: Path) -> None:
    words = ["score", str(claimed[0]), "-p", str(PROTOCOL), "--stream", "-o", str(tmp_path / "s.json"), "--json"]
    assert run(words) == 0
    assert [(e["metric"], e["value"], e["low"]) for e in estimates(tmp_path / "s.json")] == [
        (e["metric"], e["value"], e["low"]) for e in estimates(claimed[1])
    ]


def test_the_protocol_of_the_standard_names_the_worst_species(
    rows: list[dict[str, str]], claimed: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["score", str(claimed[0]), "-p", "iso30107-pad", "--threshold", "0.5", "--bootstrap", "0", "--json"]
    assert run([*words, "-o", str(tmp_path / "iso.json")]) == 0
    found = {
        (e["metric"], e["slice"].get("species"), e["average"]): e["value"] for e in estimates(tmp_path / "iso.json")
    }
    apcer = {species: rate(rows, species, accepted=True) for species in SPECIES}
    for species, expected in apcer.items():
        assert found["fpr", species, None] == pytest.approx(expected, abs=1e-12)
    assert found["worst", None, None] == pytest.approx(max(apcer.values()), abs=1e-12)
    assert found["fnr", None, None] == pytest.approx(rate(rows, "none", accepted=False), abs=1e-12)
    assert not any("acer" in metric for metric, _, _ in found), "ACER is no figure of the standard"
    capsys.readouterr()
    assert run([*words[:-1]]) == 0
    shown = capsys.readouterr().out
    assert "worst APCER" in shown and "BPCER20" in shown and "ACER" not in shown


@pytest.mark.parametrize(("name", "most"), [("bpcer10", 0.1), ("bpcer20", 0.05), ("bpcer100", 0.01)])
def test_bona_fide_errors_are_read_where_no_species_passes_more_often(
    rows: list[dict[str, str]], claimed: tuple[Path, Path], tmp_path: Path, name: str, most: float
) -> None:
    """By trying every score as the threshold."""
    words = ["score", str(claimed[0]), "-p", "iso30107-pad", "--threshold", "0.5", "--bootstrap", "0", "--json"]
    assert run([*words, "-o", str(tmp_path / "iso.json")]) == 0
    score = np.array([float(r["score"]) for r in rows])
    species = np.array([r["attack_type"] for r in rows])
    allowed = [
        np.mean(score[species == "none"] < t)
        for t in [*sorted(score), np.inf]
        if all(np.mean(score[species == s] >= t) <= most for s in SPECIES)
    ]
    found = next(e for e in estimates(tmp_path / "iso.json") if e["metric"] == name)
    assert found["value"] == pytest.approx(min(allowed), abs=1e-12)
