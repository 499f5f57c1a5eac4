"""What is wrong with streamed files is said in one sentence, with file and row, and ends with its own exit code."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.outofcore.conftest import simulated, write, write_shards

from hitmiss.cli.main import run

STREAM = ("-p", "asvspoof5", "--stream")


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("score", float("nan"), "row {row}: 1 NaN score (id 'E_0000700')"),
        (
            "label",
            "bonafied",
            "row {row}: 1 row with the unknown label 'bonafied' (id 'E_0000700'); did you mean 'bonafide'?",
        ),
        ("item", "", "row {row}: 1 row without an id"),
        ("item", "E_0000003", "row {first}: 2 rows of repeated ids (id 'E_0000003')"),
    ],
)
def test_a_bad_row_is_found_where_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str, column: str, value: object, sentence: str
) -> None:
    changed = pl.when(pl.int_range(pl.len()) == 700).then(pl.lit(value)).otherwise(column)
    path = tmp_path / f"s{suffix}"
    write(simulated(1000).with_columns(changed.alias(column)), path)
    assert run(["score", str(path), *STREAM]) == 3
    header = 1 if suffix == ".csv" else 0
    assert f"s{suffix}, " + sentence.format(row=701 + header, first=4 + header) in said(capsys)


@pytest.mark.usefixtures("few_are_many")
def test_repeated_ids_of_two_shards_are_found_part_by_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hitmiss.outofcore import repeated_ids

    monkeypatch.setattr(repeated_ids, "HASH_BYTES", 10**5)  # ten parts
    frame = simulated(1000)
    write(frame[:600], tmp_path / "a.parquet")
    write(pl.concat([frame[600:], frame[41:42]]), tmp_path / "b.parquet")
    assert run(["score", str(tmp_path / "*.parquet"), *STREAM, "--memory", "10MB"]) == 3
    assert "a.parquet, row 42: 2 rows of repeated ids (id 'E_0000041')" in said(capsys)


@pytest.mark.usefixtures("few_are_many")
def test_an_empty_id_is_found_where_ids_are_not_carried_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = pl.when(pl.int_range(pl.len()) == 30).then(pl.lit("")).otherwise("item")
    write(simulated(200).with_columns(changed.alias("item")), tmp_path / "a.parquet")
    assert run(["score", str(tmp_path / "a.parquet"), *STREAM]) == 3
    assert "a.parquet, row 31: 1 row without an id" in capsys.readouterr().err


def test_shards_of_different_kinds_and_the_same_shard_twice_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = simulated(300)
    write(frame, tmp_path / "a.csv")
    write(frame, tmp_path / "b.csv")
    assert run(["score", str(tmp_path / "*.csv"), *STREAM]) == 3
    assert "b.csv has the same content as a.csv: the shard was given twice" in said(capsys)
    write(frame.drop("codec"), tmp_path / "b.csv")
    assert run(["score", str(tmp_path / "*.csv"), *STREAM]) == 3
    assert "b.csv, row 1: its columns differ from those of a.csv" in said(capsys)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--seeds"], 2, "--seeds needs every trial at once; leave it or --stream out"),
        (["--dedupe", "--engine", "duckdb"], 2, "--dedupe and layouts of nested files need the rows"),
        (["-m", "eer_threshold", "--engine", "duckdb"], 2, "eer_threshold needs the rows, which counts do not have"),
        (["--by", "codex"], 2, "unknown column 'codex'; did you mean 'codec'?"),
        (["--memory", "little"], 2, "--memory 'little': write a size of at least 10MB"),
        (["--encoding", "latin-1"], 2, "only UTF-8 is streamed"),
        (["--column", "item=utt"], 3, "there is no column 'utt'"),
        (["--higher", "toxic"], 2, "unknown class for a higher score 'toxic'"),
    ],
)
def test_what_cannot_be_streamed_is_said_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, sentence: str
) -> None:
    write(simulated(100), tmp_path / "a.parquet")
    assert run(["score", str(tmp_path / "a.parquet"), *STREAM, *arguments]) == code
    assert sentence in said(capsys)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "holds no rows"),
        (b"item,label,score\n", "there is a header and no row under it"),
        (b"item,label,score\na,bonafide,1\nb,spoof\n", "row 3: 1 row with another number of fields"),
        (b"item,label,score\na,bonafide,1\nb,spoof,\xff\n", "row 3: the text is not UTF-8"),
        (b"\x1f\x8b\x08\x00broken", "gzip archive is damaged"),
        (b"PAR1 nothing", "Parquet file is damaged"),
        (b"item,label,score\na,bonafide,1\nb,spoof,x1\n", "row 3: 1 unreadable score (id 'b')"),
        (b"item,label,score\na,bonafide,1\nb,spoof,\n", "row 3: 1 empty score (id 'b')"),
    ],
)
def test_damaged_files_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, sentence: str
) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    assert run(["score", str(tmp_path / "a.csv"), *STREAM]) == 3
    assert sentence in said(capsys)


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["score", str(tmp_path / "none.csv"), *STREAM])
        == run(["score", str(tmp_path / "none.csv"), "-m", "eer"])
        != 0
    )
    assert run(["score", str(tmp_path / "*.csv"), *STREAM]) == 2
    assert "no file matches" in said(capsys)


def test_the_command_prints_the_tables_of_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_shards(simulated(2000), tmp_path, ".parquet", 3)
    arguments = ["score", str(tmp_path / "*.parquet"), "-p", "asvspoof5", "--by", "codec", "--bootstrap", "50"]
    assert run(arguments) == 0
    expected = capsys.readouterr().out
    assert run([*arguments, "--stream"]) == 0
    assert capsys.readouterr().out.replace("choices:stream|", "") == expected
    assert run([*arguments, "--stream", "-o", str(tmp_path / "r.json")]) == 0
    from hitmiss.core.results import Results

    assert "choices:stream" in Results.load(tmp_path / "r.json").signature
