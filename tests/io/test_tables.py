"""Tables stacked: shards of one run need not be of one format."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hitmiss.core.errors import DataError
from hitmiss.io.reader import read

ROWS = pl.DataFrame(
    {"item": ["a", "b", "c", "d"], "label": ["real", "fake"] * 2, "score": [0.1, 1 / 3, 1e-320, float("inf")]}
)


def test_shards_of_text_and_of_parquet_are_read_together_to_the_last_bit(tmp_path: Path) -> None:
    ROWS[:2].write_parquet(tmp_path / "a.parquet")
    ROWS[2:].write_csv(tmp_path / "b.csv")
    assert read(str(tmp_path / "*")).score.tolist() == ROWS["score"].to_list()


def test_an_empty_score_of_either_is_found(tmp_path: Path) -> None:
    ROWS[:2].with_columns(score=pl.Series([None, 1.0])).write_parquet(tmp_path / "a.parquet")
    ROWS[2:].write_csv(tmp_path / "b.csv")
    with pytest.raises(DataError, match=r"a\.parquet, row 1: 1 empty score"):
        read(str(tmp_path / "*"))
