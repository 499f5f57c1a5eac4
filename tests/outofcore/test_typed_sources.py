"""What memory and stream take is the same: typed columns, files of other kinds, archives that unfold without an end."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hitmiss.cli.main import run

N = 40
RNG = np.random.default_rng(0)
POSITIVE = np.arange(N) % 2 == 0
SCORE = RNG.normal(size=N) + POSITIVE
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=k) for k in range(N)]
SERIES: dict[str, pl.Series] = {
    "float64": pl.Series(SCORE),
    "float32": pl.Series(SCORE.astype(np.float32)),
    "int64": pl.Series((SCORE * 100).astype(np.int64)),
    "uint8": pl.Series((SCORE * 10 + 50).astype(np.uint8)),
    "decimal": pl.Series(SCORE).cast(pl.Decimal(10, 3)),
    "text": pl.Series([repr(float(s)) for s in SCORE]),
    "categorical": pl.Series([repr(float(s)) for s in SCORE]).cast(pl.Categorical),
    "with a null": pl.Series([None, *SCORE[1:]]),
    "nulls": pl.Series([None] * N),
    "bool": pl.Series(SCORE > 0),
    "date": pl.Series(DAYS),
    "datetime": pl.Series([dt.datetime(2020, 1, 1) + dt.timedelta(hours=k) for k in range(N)]),
    "time": pl.Series([dt.time(k % 24, k) for k in range(N)]),
    "duration": pl.Series([dt.timedelta(days=k) for k in range(N)]),
    "struct": pl.Series([{"a": 1.0}] * N),
    "list": pl.Series([[1.0]] * N),
    "bytes": pl.Series([b"\xff\xfe%d" % k for k in range(N)]),
    "bytes of text": pl.Series([b"%d" % k for k in range(N)]),
    "long integers": pl.Series([2**60 + k for k in range(N)]),
    "long integers that fit": pl.Series([2**60 + 1024 * k for k in range(N)]),
}
NUMBERS = {
    "float64",
    "float32",
    "int64",
    "uint8",
    "decimal",
    "text",
    "categorical",
    "long integers that fit",
    "bytes of text",
}


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, Any]:
    """Exit code, and figures and warnings or the first line of the sentence."""
    capsys.readouterr()
    code = run([str(word) for word in words])
    out, err = capsys.readouterr()
    if code:
        return code, err.splitlines()[0]
    data = json.loads(out)
    return 0, (data["estimates"], data["warnings"])


@pytest.mark.parametrize("name", SERIES)
def test_scores_of_every_type(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.parquet"
    label = np.where(POSITIVE, "bonafide", "spoof")
    pl.DataFrame({"item": [f"i{k}" for k in range(N)], "label": label, "score": SERIES[name]}).write_parquet(path)
    memory = answer(capsys, "score", path, "-m", "eer", "--json")
    stream = answer(capsys, "score", path, "-m", "eer", "--json", "--stream")
    assert memory == stream
    assert memory[0] == (0 if name in NUMBERS else 3), memory


@pytest.mark.parametrize("name", SERIES)
def test_slices_of_every_type(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.parquet"
    label = np.where(POSITIVE, "bonafide", "spoof")
    columns = {"item": [f"i{k}" for k in range(N)], "label": label, "score": SCORE, "codec": SERIES[name]}
    pl.DataFrame(columns).write_parquet(path)
    memory = answer(capsys, "score", path, "-m", "accuracy", "--threshold", "0", "--by", "codec", "--json")
    stream = answer(capsys, "score", path, "-m", "accuracy", "--threshold", "0", "--by", "codec", "--json", "--stream")
    assert memory == stream and memory[0] == (3 if name == "bytes" else 0)


@pytest.mark.parametrize("shape", ["index", "trailing", "both"])
def test_tables_as_pandas_writes_them(shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"i{k},{'bonafide' if POSITIVE[k] else 'spoof'},{float(SCORE[k])!r},C0{k % 3}" for k in range(N)]
    plain = ["item,label,score,codec", *rows]
    made = (
        [f",{line}" if i == 0 else f"{i - 1},{line}" for i, line in enumerate(plain)] if shape != "trailing" else plain
    )
    made = [f"{line}," for line in made] if shape != "index" else made
    for name, lines in (("plain", plain), ("made", made)):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    words = ["-m", "eer", "--by", "codec", "--json"]
    expected = answer(capsys, "score", tmp_path / "plain.csv", *words)
    assert expected[0] == 0
    for how in ((), ("--stream",)):
        assert answer(capsys, "score", tmp_path / "made.csv", *words, *how) == expected


def test_an_arrow_file_is_read_as_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    label = np.where(POSITIVE, "bonafide", "spoof")
    frame = pl.DataFrame({"item": [f"i{k}" for k in range(N)], "label": label, "score": SCORE})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_ipc(tmp_path / "t.arrow")
    words = ["-m", "eer", "--json"]
    assert answer(capsys, "score", tmp_path / "t.arrow", *words) == answer(
        capsys, "score", tmp_path / "t.parquet", *words
    )
    code, sentence = answer(capsys, "score", tmp_path / "t.arrow", *words, "--stream")
    assert code == 3 and "Arrow" in sentence


def zipped(path: Path, inside: str = "notes.xml") -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(inside, "<x/>")


OTHERS: dict[str, Callable[[Path], object]] = {
    "zstd": lambda path: path.write_bytes(b"\x28\xb5\x2f\xfd\x00\x01\x02"),
    "zip": zipped,
    "workbook": lambda path: zipped(path, "xl/workbook.xml"),
    "NumPy": lambda path: np.save(path.open("wb"), SCORE),
    "pickle": lambda path: path.write_bytes(pickle.dumps({"a": 1})),
    "SQLite": lambda path: path.write_bytes(b"SQLite format 3\x00" + bytes(90)),
}


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_files_of_other_kinds_are_called_what_they_are(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    OTHERS[kind](tmp_path / "t.bin")
    for how in ((), ("--stream",)):
        code, sentence = answer(capsys, "score", tmp_path / "t.bin", "-m", "eer", *how)
        assert code == 3 and kind in sentence and "NUL" not in sentence


@pytest.mark.parametrize("address", ["hf://datasets/x", "ftp://host/x.csv", "file:///x.csv"])
def test_addresses_are_told_from_paths(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    for how in ((), ("--stream",)):
        code, sentence = answer(capsys, "score", address, "-m", "eer", *how)
        assert code == 2 and address in sentence and "fetch it first" in sentence


def test_files_that_unfold_beyond_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = 12_000_000
    same = pl.DataFrame({"score": pl.zeros(rows, dtype=pl.Float64, eager=True)})
    same.write_parquet(tmp_path / "bomb.parquet", compression_level=9, row_group_size=rows)
    with gzip.open(tmp_path / "line.gz", "wb", compresslevel=1) as file:
        file.write(b"item,label,score\na,bonafide,1.5\nb,spoof,0.5\n")
        for _ in range(70):
            file.write(b"x" * 2**20)
    for name, hows in (("bomb.parquet", ((), ("--stream",))), ("line.gz", ((), ("--stream",)))):
        for how in hows:
            code, sentence = answer(capsys, "score", tmp_path / name, "-m", "eer", *how)
            assert code == 3 and ("unfold" in sentence or "longer than" in sentence), sentence
