"""JSON lines, Parquet and frames say the same as the text file with the same trials."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hitmiss.core.errors import DataError
from hitmiss.io import examine, read

SCORES = [0.1, 1e-17, -3.3333333333333335]
FRAME = pl.DataFrame(
    {"id": ["0001", "b", "NA"], "label": ["bonafide", "spoof", "spoof"], "score": SCORES, "n": [1, 2, 3]}
)


def test_parquet(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "s.parquet")
    trials = read(tmp_path / "s.parquet")
    assert (trials.items, trials.score.tolist(), trials.frame["n"].to_list()) == (
        ["0001", "b", "NA"],
        SCORES,
        ["1", "2", "3"],
    )


def test_parquet_floats_of_half_the_size_keep_their_value(tmp_path: Path) -> None:
    FRAME.with_columns(pl.col("score").cast(pl.Float32)).write_parquet(tmp_path / "s.parquet")
    assert read(tmp_path / "s.parquet").score.tolist() == np.float32(SCORES).astype(float).tolist()


def test_damaged_and_empty_parquet(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "s.parquet")
    data = (tmp_path / "s.parquet").read_bytes()
    (tmp_path / "bad.parquet").write_bytes(data[:10] + bytes(20) + data[-30:])
    assert [f.kind for f in examine(tmp_path / "bad.parquet").faults] == ["unreadable-file"]
    FRAME.clear().write_parquet(tmp_path / "none.parquet")
    assert [f.kind for f in examine(tmp_path / "none.parquet").faults] == ["empty-file"]


def test_json_lines_keep_numbers_as_they_are_written(tmp_path: Path) -> None:
    rows = [{"id": i, "label": y, "score": s, "n": {"deep": 1}} for i, y, s, _ in FRAME.iter_rows()]
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n" + '{"id": 7, "label": "spoof", "score": NaN, "n": null}')
    trials = read(path, on_nan="drop")
    assert (trials.items, trials.score.tolist()) == (["0001", "b", "NA"], SCORES)
    fault = examine(path).faults[0]
    assert (fault.kind, fault.row, fault.value) == ("nan-score", 5, "NaN")


@pytest.mark.parametrize(
    "line", ['{"id": 1', "[1, 2]", '{"id": "a", "id": "b", "label": "spoof", "score": 1}', "null", '{"a":' * 200_000]
)
def test_json_lines_that_are_no_objects_are_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"id": "x", "label": "spoof", "score": 1}\n' + line + "\n")
    faults = examine(path).faults
    assert [(f.kind, f.row) for f in faults] == [("ragged-row", 2)]


def test_json_ids_that_are_numbers_stay_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"id": 1.10, "label": "bonafide", "score": 1}\n{"id": 1.1, "label": "spoof", "score": 2}\n')
    assert read(path).items == ["1.10", "1.1"]


def test_json_lines_without_a_key_are_empty_and_noted(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(
        '{"id": "x", "label": "spoof", "score": 1, "codec": "C1"}\n{"id": "y", "label": "bonafide", "score": 2}\n'
    )
    trials = read(path)
    assert trials.frame["codec"].to_list() == ["C1", ""]
    assert any("1 of 2 lines lack" in note for note in trials.header.notes)


def test_frames_of_pandas() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "id": ["0001", "b", "NA"],
            "label": ["bonafide", "spoof", "spoof"],
            "score": SCORES,
            "codec": ["C1", None, np.nan],
        }
    )
    trials = read(frame)
    assert (trials.items, trials.score.tolist()) == (["0001", "b", "NA"], SCORES)
    assert trials.frame["codec"].to_list() == ["C1", "", ""]
    frame.loc[1, "score"] = np.nan
    with pytest.raises(DataError, match="NaN score"):
        read(frame)


def test_lazy_frames_and_nulls() -> None:
    assert read(FRAME.lazy()).items == ["0001", "b", "NA"]
    holes = FRAME.with_columns(score=pl.Series([1.0, None, 2.0]), id=pl.Series(["a", "b", None]))
    assert [f.kind for f in examine(holes).faults] == ["empty-id", "empty-score"]
    assert [f.kind for f in examine(FRAME.clear()).faults] == ["empty-file"]
