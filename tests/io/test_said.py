"""What a caller may say about files: columns of the key, rows to keep, ids by stem, words for abstentions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hitmiss.core.errors import DataError, HitmissError, UnknownName
from hitmiss.io import examine, read

DF = "LA_0023 {} nocodec asvspoof A14 {} notrim {} traditional_vocoder - - - -\n"
PA = "PA_0010 {} R3 M3 d4 r1 m1 s4 c4 {} notrim {}\n"
ROWS = [
    ("E_1", "spoof", "eval"),
    ("E_2", "bonafide", "eval"),
    ("E_3", "spoof", "progress"),
    ("E_4", "bonafide", "hidden"),
]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def scores(tmp_path: Path, ids: str = "{}") -> Path:
    return write(tmp_path / "scores.txt", "".join(f"{ids.format(i)} {n}.5\n" for n, (i, *_) in enumerate(ROWS)))


def key(tmp_path: Path, line: str) -> Path:
    return write(tmp_path / "key.txt", "".join(line.format(*row) for row in ROWS))


@pytest.mark.parametrize(
    ("line", "layout", "slices"),
    [
        (DF, "asvspoof2021-df-key", {"codec": "nocodec", "attack": "A14", "vocoder": "traditional_vocoder"}),
        (PA, "asvspoof2021-pa-key", {"room": "R3", "attack_to_speaker": "c4"}),
        ("flac {} A11 {}\n", "asvspoof2019-key", {"attack": "A11"}),
    ],
)
def test_keys_of_the_challenges_are_recognised(tmp_path: Path, line: str, layout: str, slices: dict[str, str]) -> None:
    trials = read(scores(tmp_path), key(tmp_path, line))
    assert trials.label.tolist() == [0, 1, 0, 1]
    assert trials.header.provenance["files"][1]["layout"] == layout
    assert {name: trials.frame[name][0] for name in slices} == slices


def test_columns_of_the_key_alone(tmp_path: Path) -> None:
    odd = write(tmp_path / "key.txt", "".join(f"x x {i} x {label} x x\n" for i, label, _ in ROWS))
    with pytest.raises(DataError) as error:
        read(scores(tmp_path), odd, columns={"item": "3", "label": "5"})
    assert error.value.code == "missing-column"
    assert read(scores(tmp_path), odd, key_columns={"item": "3", "label": "5"}).label.tolist() == [0, 1, 0, 1]


def test_ids_by_stem(tmp_path: Path) -> None:
    given = scores(tmp_path, "eval/flac/{}.flac")
    with pytest.raises(DataError) as error:
        read(given, key(tmp_path, DF))
    assert error.value.code == "no-common-id" and "match='stem'" in str(error.value)
    assert read(given, key(tmp_path, DF), match="stem").items == [i for i, *_ in ROWS]
    twice = write(tmp_path / "twice.txt", "a/E_1.wav 1\nb/E_1.wav 2\n")
    with pytest.raises(DataError) as error:
        read(twice, key(tmp_path, DF), match="stem", allow_missing=True)
    assert error.value.code == "conflicting-id"


def test_rows_to_keep_are_chosen_before_anything_is_joined(tmp_path: Path) -> None:
    part = write(tmp_path / "s.txt", "E_1 0.5\nE_2 1.5\nE_3 2.5\n")  # the hidden trial has no score
    trials = read(part, key(tmp_path, DF), where={"subset": ("eval",)})
    assert trials.items == ["E_1", "E_2"] and "where:subset=eval(2/3)" in trials.header.choices
    both = read(part, key(tmp_path, DF), where={"subset": ("eval", "progress")})
    assert both.items == ["E_1", "E_2", "E_3"]
    for wrong in ({"subset": ("evil",)}, {"subsets": ("eval",)}):
        with pytest.raises(UnknownName):
            read(part, key(tmp_path, DF), where=wrong)


@pytest.mark.parametrize("value", ["1", "0"])
def test_labels_as_codes_beside_decisions_as_words(tmp_path: Path, value: str) -> None:
    other = {"1": "0", "0": "1"}[value]
    table = write(
        tmp_path / "t.csv",
        f"id,label,decision\na,{value},spoof\nb,{other},bonafide\nc,{value},unsure\nd,{other},spoof\n",
    )
    trials = read(table, positive="spoof", negative="bonafide", positive_value=value, abstain=("unsure",))
    assert trials.label.tolist() == [1, 0, 1, 0] and trials.column("decision").to_list() == [1, 0, -1, 1]


@pytest.mark.parametrize(
    ("header", "cells", "columns"),
    [
        ("confidence", ["85%", "50 %", "", "n/a"], {}),
        ("confidence_percent", ["85", "50", "", "none"], {}),
        ("conf", ["85", "50", "", "-"], {"confidence_percent": "conf"}),
        ("confidence", ["0.85", "0.5", "NaN", "very sure"], {}),
    ],
)
def test_confidence_in_per_cent_or_missing(
    tmp_path: Path, header: str, cells: list[str], columns: dict[str, str]
) -> None:
    rows = zip("abcd", ["bonafide", "spoof"] * 2, cells, strict=True)
    body = "".join(f"{i},{label},{label},{cell}\n" for i, label, cell in rows)
    table = write(tmp_path / "t.csv", f"id,label,verdict,{header}\n{body}")
    assert read(table, columns=columns).column("confidence").to_list() == [0.85, 0.5, None, None]


def test_confidence_beyond_one_says_how_to_declare_per_cent(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "id,label,verdict,conf\na,bonafide,bonafide,95\nb,spoof,spoof,60\n")
    with pytest.raises(DataError) as error:
        read(table, columns={"confidence": "conf"})
    assert error.value.code == "not-a-probability" and "columns={'confidence_percent': 'conf'}" in str(error.value)


def test_arrays_and_objects_of_json(tmp_path: Path) -> None:
    rows = [{"id": "a", "label": "bonafide", "score": 0.10}, {"id": "b", "label": "spoof", "score": -1}]
    for indent in (None, 2):
        trials = read(write(tmp_path / "a.json", json.dumps(rows, indent=indent)))
        assert trials.items == ["a", "b"] and trials.score.tolist() == [0.1, -1.0]
    flat = write(tmp_path / "o.json", json.dumps({i: n + 0.5 for n, (i, *_) in enumerate(ROWS)}, indent=1))
    assert read(flat, key(tmp_path, DF)).score.tolist() == [0.5, 1.5, 2.5, 3.5]
    wrong = write(
        tmp_path / "w.json",
        '[\n{"id": "a", "label": "bonafide", "score": 1},\n{"id": "b", "label": "cat", "score": 2}\n]',
    )
    fault = next(f for f in examine(wrong).faults if f.kind == "unknown-label")
    assert fault.row == 3


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "a", "verdict": "spoof", "verdict": "bonafide"}', "'spoof' and 'bonafide'"),
        ('{"id": "a", "confidence": nan}', "write null"),
        ('{"id": "a", "confidence": None}', "write null"),
        ("{'id': 'a'}", "double quotes"),
        ('{"results": [{"id": "a"}]}', ""),
    ],
)
def test_json_that_is_none_says_why(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(HitmissError) as error:
        read(write(tmp_path / "r.jsonl", line + "\n" + line + "\n"))
    assert says in str(error.value) and error.value.code != "data"


def test_an_object_of_very_many_ids_is_not_printed(tmp_path: Path) -> None:
    many = {f"id{i}": {"x": 1} for i in range(1000)}
    with pytest.raises(HitmissError) as error:
        read(write(tmp_path / "m.json", json.dumps(many)))
    assert len(str(error.value)) < 600


@pytest.mark.parametrize(
    "start", [b"\x93NUMPY\x01\x00v\x00", b"PK\x03\x04\x14\x00\x00\x00", b"\x80\x04\x95\x00\x00", b"\x89HDF\r\n\x1a\n\0"]
)
def test_files_that_are_no_text_are_called_what_they_are(tmp_path: Path, start: bytes) -> None:
    path = tmp_path / "scores.bin"
    path.write_bytes(start + bytes(range(256)))
    with pytest.raises(DataError) as error:
        read(path)
    assert error.value.code == "binary-file"
