"""The reference data of the project is read whole, row for row."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from hitmiss.io import examine, read

SYSTEMS = ("w2v2_erm", "w2v2_dann", "w2v2_dann_v2", "wavlm_erm")


def rows_of(path: Path) -> list[dict[str, str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t" if ".tsv" in path.name else ","))


def test_every_reference_set_says_what_the_file_says(reference: Path) -> None:
    paths = [p for p in sorted(reference.glob("*.csv")) if p.name[:2] not in ("17", "20")]
    assert len(paths) == 17
    for path in paths:
        rows, trials = rows_of(path), read(path)
        assert trials.items == [row["filename"] for row in rows], path.name
        assert trials.score.tolist() == [float(row["score"]) for row in rows], path.name
        assert trials.label.tolist() == [int(row["label"] == "bonafide") for row in rows], path.name


def test_nan_set_is_refused_at_its_rows(reference: Path) -> None:
    path = reference / "17_nan_scores.csv"
    expected = [n for n, row in enumerate(rows_of(path), 2) if row["score"] == "nan"]
    assert [(f.kind, f.row) for f in examine(path).faults] == [("nan-score", n) for n in expected]


def test_realistic_set_keeps_every_column_as_text(reference: Path) -> None:
    trials = read(reference / "19_realistic_4k.csv.gz", score_columns=("score", "score_b"))
    rows = rows_of(reference / "19_realistic_4k.csv.gz")
    assert len(trials) == 2 * len(rows)
    first = trials.where(system="score")
    assert first.n_positive == sum(row["KEY"] == "bonafide" for row in rows)
    for ours, theirs in {
        "codec": "CODEC",
        "codec_q": "CODEC_Q",
        "speaker": "SPEAKER_ID",
        "attack": "ATTACK_LABEL",
    }.items():
        assert first.frame[ours].to_list() == [row[theirs] for row in rows]


def test_track_two_set(reference: Path) -> None:
    rows = rows_of(reference / "20_sasv_900.csv")
    whole = read(reference / "20_sasv_900.csv")
    assert whole.score.tolist() == [float(row["sasv_score"]) for row in rows]
    assert whole.label.tolist() == [int(row["asv_label"] == "target") for row in rows]
    spoofing = read(reference / "20_sasv_900.csv", positive="bonafide")
    assert spoofing.score.tolist() == [float(row["cm_score"]) for row in rows]
    assert spoofing.label.tolist() == [int(row["cm_label"] == "bonafide") for row in rows]


def test_four_published_systems_in_one_file(published: Path) -> None:
    path = published / "asvspoof5_eval50k_scores.tsv.gz"
    trials = read(path, score_columns=SYSTEMS, score_kind="probability")
    rows = rows_of(path)
    assert (len(trials), trials.n_positive) == (4 * 50_000, 4 * 10_183)
    for system in SYSTEMS:
        assert trials.where(system=system).score.tolist() == [float(row[system]) for row in rows]
    assert any("w2v2_dann_v2: 29.8% of the probabilities" in note for note in trials.header.notes)


def test_a_published_file_of_the_other_direction(published: Path) -> None:
    path = published / "asvspoof2019_la_eval_air.tsv.gz"
    trials = read(path, columns={"score": "air_ocsoftmax"}, higher="spoof", slices=("attack",))
    assert trials.score.tolist() == [-float(row["air_ocsoftmax"]) for row in rows_of(path)]
    assert trials.n_positive == 7_355


@pytest.mark.parametrize(("column", "positives"), [("asv_score", 1_484), ("cm_score", 1_484)])
def test_a_published_file_without_ids_and_with_three_words(published: Path, column: str, positives: int) -> None:
    path = published / "asvspoof2019_la_dev_sasv_asv_cm.tsv.gz"
    assert [f.kind for f in examine(path).faults] == ["ambiguous-column"]
    trials = read(path, columns={"score": column})
    assert trials.n_positive == positives
    words = trials.frame["label_word"].value_counts()
    assert dict(words.iter_rows()) == {"target": 1_484, "nontarget": 5_768, "spoof": 22_296}
