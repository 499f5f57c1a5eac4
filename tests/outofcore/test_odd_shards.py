"""Odd shards: said as the door says it, or measured to the digits and warnings of memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.outofcore.conftest import simulated, write, write_shards

from hitmiss.cli.main import run

PROTOCOL = ("-p", "asvspoof5")
ASKED = ("--by", "codec", "--bootstrap", "20", "-m", "eer", "-m", "min_dcf", "-m", "roc_auc", "--json")


def outcome(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    """Exit code, the figures that were printed but for the signature, and what was said."""
    code = run(["score", *arguments])
    out, err = capsys.readouterr()
    if code:
        return code, None, err
    return (
        code,
        {k: v for k, v in json.loads(out).items() if k not in ("signature", "digest", "content", "questions")}
        if out
        else None,
        err,
    )


def test_a_shard_with_a_header_alone_is_refused_as_in_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_shards(simulated(500), tmp_path, ".csv", 2)
    (tmp_path / "z.csv").write_text("item,codec,attack,label,score\n")
    files = str(tmp_path / "*.csv")
    assert outcome(capsys, files, *PROTOCOL, *ASKED, "--stream") == outcome(capsys, files, *PROTOCOL, *ASKED)


@pytest.mark.parametrize("column", ["item", "score", "codec"])
def test_a_page_that_cannot_be_read_is_the_fault_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], column: str
) -> None:
    path = tmp_path / "a.parquet"
    frame = simulated(40_000)[::-1]
    names = [column, *(c for c in frame.columns if c != column)]
    frame.select(names).write_parquet(path, row_group_size=8000)
    data = bytearray(path.read_bytes())
    data[4:5] = b"\xff"  # the header of the first page, which is of the first column
    path.write_bytes(bytes(data))
    code, out, err = outcome(capsys, str(path), *PROTOCOL, *ASKED, "--stream")
    assert (code, out) == (3, None)
    assert "a.parquet: the Parquet file is damaged" in err


@pytest.mark.usefixtures("few_are_many")
def test_ids_that_cannot_be_read_are_found_when_they_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.parquet"
    frame = simulated(40_000)[::-1]  # in no order: ids are read after the first pass
    frame = frame.select("item", "codec", "attack", "label", "score")
    frame.write_parquet(path, compression="uncompressed", use_pyarrow=False, row_group_size=8000)
    data = bytearray(path.read_bytes())
    # The ids of the third row group: the lengths before them say more than there is.
    at = data.index(b"E_00239")
    data[at - 4 : at] = b"\xff\xff\xff\x7f"
    path.write_bytes(bytes(data))
    code, out, err = outcome(capsys, str(path), *PROTOCOL, *ASKED, "--stream", "--memory", "10MB")
    assert (code, out) == (3, None)
    assert "a.parquet: the Parquet file is damaged" in err


def test_utf16_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_bytes(simulated(50).write_csv(None).encode("utf-16"))
    code, _, err = outcome(capsys, str(tmp_path / "a.csv"), *PROTOCOL, "--stream")
    assert code == 3
    assert "the text is UTF-16, and only UTF-8 is streamed; convert the file, or leave --stream out" in err


def test_very_large_scores_are_no_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(simulated(500).with_columns(score=pl.col("score") * 1e307), tmp_path / "a.parquet")
    here, there = (
        outcome(capsys, str(tmp_path / "a.parquet"), *PROTOCOL, *ASKED, *more) for more in ((), ("--stream",))
    )
    assert here == there


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("score", [0.5, 0.3, float("inf")])
def test_one_score_for_all_is_said_of_bins_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], score: float
) -> None:
    write(simulated(500).with_columns(score=pl.lit(score)), tmp_path / "a.parquet")
    asked = (str(tmp_path / "a.parquet"), *PROTOCOL, *ASKED)
    here, there = outcome(capsys, *asked), outcome(capsys, *asked, "--stream", "--memory", "10MB")
    assert here == there
    assert f"all 500 scores are {score!r}: they do not separate the classes" in there[1]["warnings"]
    write(simulated(500).with_columns(score=0.3 + pl.int_range(pl.len()) * 1e-15), tmp_path / "a.parquet")
    here, there = outcome(capsys, *asked), outcome(capsys, *asked, "--stream", "--memory", "10MB")
    assert here == there
