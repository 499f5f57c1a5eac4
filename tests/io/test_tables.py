"""Tables stacked: shards of one run need not be of one format."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitmiss.core.errors import DataError
from hitmiss.io.reader import read
from hitmiss.io.separated import read_even
from hitmiss.io.source import SourceHead

ROWS = pl.DataFrame(
    {"item": ["a", "b", "c", "d"], "label": ["bonafide", "spoof"] * 2, "score": [0.1, 1 / 3, 1e-320, float("inf")]}
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


CELLS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.text("0123456789.+-eE naif_x", min_size=1, max_size=8),
    st.sampled_from(
        ["", " 0.5", "1e-400", "1e400", "-Infinity", "NULL", "0x10", "1_0", "9007199254740993", "4.9e-324"]
    ),
)


@given(cells=st.lists(CELLS, min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_numbers_that_are_parsed_at_once_are_those_that_the_text_says(cells: list[str]) -> None:
    shape = SourceHead("x.csv", (("id", "score", "z"),), separator=",")
    data = ("id,score,z\n" + "".join(f"a{i},{cell},q\n" for i, cell in enumerate(cells))).encode()
    found = read_even(shape, data, True, {"item": 0, "score": 1}, {"score": pl.Float64})
    if found is None:
        return
    for number, cell in zip(found["score"], cells, strict=True):
        wanted = None if not cell.strip() else float(cell)
        assert number == wanted or (number != number and wanted != wanted), (number, cell)


def test_a_fault_is_told_as_the_file_says_it_though_other_scores_are_parsed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("id,score,label\na,0.50,bonafide\nb,1.70,spoof\nc,0.2,bonafide\n")
    with pytest.raises(DataError) as caught:
        read(path, score_kind="probability")
    assert [(f.kind, f.row, f.value) for f in caught.value.faults] == [("not-a-probability", 3, "1.70")]
