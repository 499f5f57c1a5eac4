"""The simulated ASVspoof 5: the published counts to the last trial, and systems that behave believably."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from hitmiss.metrics.detection import eer
from hitmiss.simulate import asvspoof5
from hitmiss.simulate.asvspoof5 import DEVELOPMENT, EVALUATION, QUALITIES, Split
from hitmiss.simulate.asvspoof5_scores import SYSTEMS

NAME = r"^E_\d{10}$"


def read(folder: Path, split: Split) -> pl.DataFrame:
    """A protocol file with the scores of both systems beside it."""
    file = folder / asvspoof5.protocol_file(split)
    table = pl.read_csv(file, separator=" ", has_header=False, infer_schema=False, new_columns=list(asvspoof5.COLUMNS))
    for system in SYSTEMS:
        scores = pl.read_csv(folder / asvspoof5.score_file(split, system), separator="\t")
        assert scores.columns == ["filename", "cm-score"]
        assert scores["filename"].equals(table["FLAC_FILE_NAME"], check_names=False)
        table = table.with_columns(scores["cm-score"].alias(system))
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asvspoof5.write(tmp_path_factory.mktemp("asvspoof5"))


@pytest.fixture(scope="module")
def evaluation(folder: Path) -> pl.DataFrame:
    return read(folder, EVALUATION)


@pytest.fixture(scope="module")
def development(folder: Path) -> pl.DataFrame:
    return read(folder, DEVELOPMENT)


def counts(table: pl.DataFrame, column: str) -> dict[str, int]:
    return dict(table[column].value_counts().iter_rows())


def label(table: pl.DataFrame) -> NDArray[np.bool_]:
    return (table["KEY"] == "bonafide").to_numpy()


def error(table: pl.DataFrame, system: str = "a") -> float:
    return eer(label(table), table[system].to_numpy())


def test_the_evaluation_has_the_published_counts(evaluation: pl.DataFrame) -> None:
    assert evaluation.shape == (680_774, 12)
    assert counts(evaluation, "KEY") == {"bonafide": 138_688, "spoof": 542_086}
    assert counts(evaluation, "CODEC") == {
        "-": 171_602, "C01": 47_253, "C02": 47_426, "C03": 47_987, "C04": 47_699, "C05": 47_541, "C06": 41_554,
        "C07": 47_348, "C08": 46_678, "C09": 41_599, "C10": 47_477, "C11": 46_610,
    }  # fmt: skip
    attacks = counts(evaluation.filter(KEY="spoof"), "ATTACK_LABEL")
    assert sorted(attacks) == [f"A{number}" for number in range(17, 33)]
    assert (min(attacks.values()), max(attacks.values())) == (30_860, 34_414)
    assert evaluation["SPEAKER_ID"].n_unique() == 737
    assert evaluation["FLAC_FILE_NAME"].n_unique() == 680_774


def test_the_development_set_has_the_published_counts(development: pl.DataFrame) -> None:
    assert counts(development, "KEY") == {"bonafide": 31_334, "spoof": 109_616}
    for column in ("CODEC", "CODEC_Q", "CODEC_SEED"):
        assert counts(development, column) == {"-": 140_950}


def test_the_columns_read_as_in_the_real_protocol(evaluation: pl.DataFrame) -> None:
    assert evaluation["FLAC_FILE_NAME"].str.contains(NAME).all()
    assert set(evaluation["SPEAKER_GENDER"]) == {"F", "M"} and set(evaluation["TMP"]) == {"-"}
    bonafide, spoof = evaluation.filter(KEY="bonafide"), evaluation.filter(KEY="spoof")
    assert set(bonafide["ATTACK_LABEL"]) == {"bonafide"} and set(bonafide["ATTACK_TAG"]) == {"-"}
    assert set(spoof["ATTACK_TAG"]) == {"AC1", "AC2", "AC3"}
    assert evaluation.group_by("SPEAKER_ID").agg(pl.col("SPEAKER_GENDER").n_unique())["SPEAKER_GENDER"].max() == 1


def test_the_qualities_are_those_of_each_codec(evaluation: pl.DataFrame) -> None:
    assert counts(evaluation.filter(CODEC="-"), "CODEC_Q") == {"0": 171_602}
    for codec, qualities in QUALITIES.items():
        sizes = counts(evaluation.filter(CODEC=codec), "CODEC_Q")
        assert sorted(sizes) == [str(q) for q in range(1, qualities + 1)]
        assert max(sizes.values()) - min(sizes.values()) <= 1
    assert all(5_800 < counts(evaluation, "CODEC_Q")[q] < 5_840 for q in "678")


def test_seeds_point_at_uncoded_originals_of_the_same_speaker_and_attack(evaluation: pl.DataFrame) -> None:
    originals = evaluation.filter(CODEC="-")
    assert set(originals["CODEC_SEED"]) == {"-"}
    copies = evaluation.filter(pl.col("CODEC") != "-")
    same = ["SPEAKER_ID", "SPEAKER_GENDER", "ATTACK_TAG", "ATTACK_LABEL", "KEY"]
    joined = copies.join(originals, left_on=["CODEC_SEED", *same], right_on=["FLAC_FILE_NAME", *same], how="inner")
    assert joined.height == copies.height


def test_the_file_has_single_spaces_and_no_header(folder: Path) -> None:
    with (folder / "ASVspoof5.eval.track_1.tsv").open() as file:
        first = file.readline()
    assert first.startswith("E_") and first.count(" ") == 9 and "\t" not in first and '"' not in first
    score = (folder / "scores_a.tsv").read_text()[:200].splitlines()[1].split("\t")[1]
    assert len(score.partition(".")[2]) == 6


def test_the_systems_behave_believably(evaluation: pl.DataFrame, development: pl.DataFrame) -> None:
    assert 0.07 < error(evaluation, "a") < error(evaluation, "b") < 0.13
    assert error(development, "a") < error(evaluation, "a")
    uncoded, mp3, encodec = (error(evaluation.filter(CODEC=codec)) for codec in ("-", "C05", "C04"))
    assert uncoded < mp3 < encodec
    by_quality = [error(evaluation.filter(CODEC="C04", CODEC_Q=str(q))) for q in range(1, 6)]
    assert by_quality == sorted(by_quality, reverse=True)


def test_system_a_is_nearly_calibrated_and_b_is_bounded(evaluation: pl.DataFrame) -> None:
    near_zero = evaluation.filter(pl.col("a").abs() < 0.25)
    ratio = (label(near_zero).sum() / 138_688) / ((~label(near_zero)).sum() / 542_086)
    assert 0.6 < ratio < 1.7, "where the score says 'even', both classes are about equally likely"
    assert evaluation["b"].abs().max() < 1


def test_speakers_and_recordings_cluster(evaluation: pl.DataFrame) -> None:
    spoof = evaluation.filter(KEY="spoof")
    means = spoof.group_by("SPEAKER_ID").agg(pl.col("a").mean(), pl.len(), pl.col("a").std().alias("sd"))
    expected_if_independent = (means["sd"] / means["len"].sqrt()).mean()
    assert means["a"].std() > 3 * expected_if_independent


def test_the_same_seed_gives_the_same_bytes_and_nothing_is_made_twice(tmp_path: Path) -> None:
    made = (("one", 7), ("two", 7), ("other", 8))
    one, two, other = (asvspoof5.write(tmp_path / name, share=0.005, seed=seed) for name, seed in made)
    for name in asvspoof5.FILES:
        assert (one / name).read_bytes() == (two / name).read_bytes() != (other / name).read_bytes()
    stamps = {name: (one / name).stat().st_mtime_ns for name in asvspoof5.FILES}
    asvspoof5.write(one, share=0.005, seed=7)
    assert stamps == {name: (one / name).stat().st_mtime_ns for name in asvspoof5.FILES}


def test_what_was_interrupted_or_differs_is_made_anew(tmp_path: Path) -> None:
    asvspoof5.write(tmp_path, share=0.005, seed=7)
    before = (tmp_path / "scores_a.tsv").read_bytes()
    (tmp_path / "README.txt").unlink()
    (tmp_path / "scores_a.tsv").write_bytes(before[:100])
    asvspoof5.write(tmp_path, share=0.005, seed=7)
    assert (tmp_path / "scores_a.tsv").read_bytes() == before
    asvspoof5.write(tmp_path, share=0.01, seed=7)
    assert (tmp_path / "scores_a.tsv").stat().st_size > 1.8 * len(before)


def test_the_readme_says_that_it_is_simulated(tmp_path: Path) -> None:
    text = (asvspoof5.write(tmp_path, share=0.005) / "README.txt").read_text()
    assert text.startswith("This data is SIMULATED.") and "hitmiss" in text
