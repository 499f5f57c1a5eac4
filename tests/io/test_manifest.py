"""Manifests and score files out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hitmiss as hm
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.header import Header
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.trials import Trials
from hitmiss.io.manifest import inside, read_manifest
from hitmiss.io.write import write_scores


def written(tmp_path: Path, text: str, name: str = "m.tsv") -> Path:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


def test_ids_stay_text_and_columns_become_slices(tmp_path: Path) -> None:
    path = written(tmp_path, "file\tkey\tcodec\tspeaker\n0001\tbonafide\tNA\t007\n0002\tspoof\t-\tNone\n")
    manifest = read_manifest(path, suffix=".flac")
    assert manifest.items == ["0001", "0002"] and manifest.frame["file"].to_list() == ["0001.flac", "0002.flac"]
    assert manifest.frame["label"].to_list() == ["bonafide", "spoof"]
    assert manifest.frame["codec"].to_list() == ["NA", "-"] and manifest.frame["speaker"].to_list() == ["007", "None"]
    assert manifest.slices == ("codec", "speaker") and manifest.root == tmp_path


def test_an_id_beside_a_path_is_the_item(tmp_path: Path) -> None:
    manifest = read_manifest(written(tmp_path, "id,path,label\na,x/1.wav,bonafide\nb,x/2.wav,spoof\n"))
    assert manifest.items == ["a", "b"] and manifest.row(1)["file"] == "x/2.wav"


def test_a_protocol_without_header_is_a_manifest(tmp_path: Path) -> None:
    path = written(tmp_path, "S1 E_1 F - - - - bonafide bonafide -\nS2 E_2 M C01 2 s AC1 A17 spoof -\n")
    manifest = read_manifest(path)
    assert manifest.items == ["E_1", "E_2"] and manifest.frame["attack"].to_list() == ["bonafide", "A17"]


def test_a_blind_set_has_no_labels(tmp_path: Path) -> None:
    manifest = read_manifest(written(tmp_path, "file\tcodec\na\tC1\nb\tC2\n"))
    assert not manifest.has_labels and manifest.slices == ("codec",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file\tlabel\na\treal\na\tfake\n", "both labels"),
        ("file\tlabel\na\treal\na\treal\n", "repeated row"),
        ("file\tlabel\na\treel\nb\tfake\n", "did you mean 'real'"),
        ("file\tlabel\na\treal\nb\tfake\n", "positive='fake'"),
        ("file\tlabel\tseconds\na\treal\t1\nb\tfake\t2\n", "column 'seconds'"),
        ("file\tlabel\n\treal\nb\tfake\n", "without an id"),
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_manifest(written(tmp_path, text))


def test_codes_are_labels_when_declared(tmp_path: Path) -> None:
    options = ReadSpec(positive="real", negative="fake", positive_value="1")
    manifest = read_manifest(written(tmp_path, "file\tlabel\na\t1\nb\t0\n"), options=options)
    assert manifest.frame["label"].to_list() == ["real", "fake"]


@pytest.mark.parametrize("file", ["../secret", "/etc/passwd", "a/../../x", "link/x"])
def test_a_path_that_leads_out_is_refused(tmp_path: Path, file: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(DataError, match="leads out"):
        inside(root, file)
    assert inside(root, "a/b.wav") == (root / "a" / "b.wav").resolve()


def test_rows_are_chosen_and_crossed() -> None:
    frame = pl.DataFrame(
        {"file": list("abc"), "label": ["bonafide", "spoof", "spoof"], "split": ["dev", "eval", "eval"]}
    )
    manifest = read_manifest(frame).where(split="eval")
    assert manifest.items == ["b", "c"]
    crossed = manifest.crossed([{"codec": "NONE"}, {"codec": "C01"}])
    assert crossed.items == ["b@NONE", "c@NONE", "b@C01", "c@C01"]
    assert crossed.frame["source"].to_list() == ["b", "c", "b", "c"] and crossed.digest != manifest.digest
    with pytest.raises(UnknownName, match="spli"):
        manifest.where(spli="eval")
    with pytest.raises(DataError, match="no row"):
        manifest.where(split="train")


@pytest.fixture
def trials() -> Trials:
    header = Header(positive="real", negative="fake", score_kind="logit")
    score = [0.1 + 0.2, -1e-300, 800.0, -np.pi]
    return Trials.of([1, 0, 1, 0], score, item=["a", "b b", "c", "d"], header=header, codec=["-", "C1", "C1", "-"])


def test_a_table_comes_back_to_the_last_bit(trials: Trials, tmp_path: Path) -> None:
    write_scores(trials, tmp_path / "s.tsv")
    back = hm.read(tmp_path / "s.tsv", positive="real")
    assert back.header.score_kind == "logit"
    assert back.score.tolist() == trials.score.tolist() and back.items == trials.items
    assert back.label.tolist() == trials.label.tolist() and back.header.slices == ("codec",)


def test_the_documents_lines_hold_probabilities(trials: Trials, tmp_path: Path) -> None:
    write_scores(trials, tmp_path / "s.txt", "unpaired")
    lines = (tmp_path / "s.txt").read_text().splitlines()
    assert lines[1] == "- - fake 0.5" and lines[2] == "- - real 1.0" and len(lines) == 4
    back = hm.read(tmp_path / "s.txt", positive="real")
    assert back.label.tolist() == [1, 0, 1, 0] and "unpaired" in " ".join(back.header.notes)
    write_scores(trials, tmp_path / "odds.txt", "unpaired", probability=False)
    assert hm.read(tmp_path / "odds.txt", positive="real").score.tolist() == trials.score.tolist()


def test_the_official_form_and_unknown_forms(trials: Trials, tmp_path: Path) -> None:
    write_scores(trials, tmp_path / "o.tsv", "official")
    assert (tmp_path / "o.tsv").read_text().splitlines()[0] == "filename\tcm-score"
    with pytest.raises(UnknownName, match="official"):
        write_scores(trials, tmp_path / "x", "offical")  # type: ignore[arg-type]
    raw = trials.retitle(score_kind="raw")
    with pytest.raises(UsageError, match="not probabilities"):
        write_scores(raw, tmp_path / "x", "unpaired", probability=True)


def test_reading_options_are_about_manifests_too(tmp_path: Path) -> None:
    text = "utt;klasse;codec\na;echt;-\nb;falsch;C1\nb;falsch;C1\n"
    said = ReadSpec(columns={"label": "klasse"}, positive="echt", negative="falsch", separator=";", dedupe=True)
    manifest = read_manifest(written(tmp_path, text), options=said)
    assert manifest.items == ["a", "b"] and manifest.frame["label"].to_list() == ["echt", "falsch"]
    renamed = said.changed(rename={"codec": {"-": "NONE"}}, where={"codec": ["NONE"]})
    assert read_manifest(written(tmp_path, text), options=renamed).items == ["a"]
    with pytest.raises(UnknownName):
        read_manifest(written(tmp_path, text), options=said.changed(where={"codec": ["C9"]}))


def test_a_label_column_that_is_not_there_is_never_taken_for_no_labels(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_manifest(written(tmp_path, "file\tcodec\na\tC1\n"), options=ReadSpec(columns={"label": "clas"}))
    assert caught.value.faults[0].kind == "missing-column"
