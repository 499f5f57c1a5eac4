"""The quick way through a file in which nothing is odd reads what the careful way reads, and leaves all else to it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hitmiss.core.errors import DataError
from hitmiss.io import tables
from hitmiss.io.predictions import read_predictions
from hitmiss.io.separated import read_even
from hitmiss.io.source import SourceHead

HEADER = ["id", "y_true", "y_prob", "y_pred", "best_threshold"]
written = st.one_of(
    st.floats(0, 1).map(repr),
    st.floats(0, 1, allow_subnormal=True).map(lambda x: f"{x:.25f}"),
    st.decimals(0, 1, places=30).map(str),
    st.sampled_from(["0", "1", ".5", "1.", "5e-1", "+0.5", "0.30000000000000004", "1e-400"]),
)


def rows_of(scores: list[str]) -> list[list[str]]:
    return [[f"{i:03}", str(i % 2), score, str(i % 3 // 2), "0.4"] for i, score in enumerate(scores)]


@given(scores=st.lists(written, min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_both_ways_read_the_same_to_the_last_bit(scores: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("both")
    lines = [HEADER, *rows_of(scores)]
    plain, quoted = folder / "plain.csv", folder / "quoted.csv"
    plain.write_text("".join(",".join(line) + "\n" for line in lines))
    quoted.write_text("".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines))
    frames = [read_predictions([("en", path)]).frame for path in (plain, quoted)]  # quotes: cell by cell
    assert frames[0].equals(frames[1]) and frames[0].schema == frames[1].schema
    assert frames[0]["score"].to_list() == [float(s) for s in scores]


def test_a_sound_file_takes_the_quick_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [repr(x) for x in np.random.default_rng(0).random(50).tolist()]
    assert is_quick(tmp_path, rows_of(scores), monkeypatch)


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        *[(0, ""), (0, "001"), (1, ""), (1, "2"), (1, "-1"), (1, "0.7"), (1, "NA"), (1, "toxic"), (2, ""), (2, "nan")],
        *[
            (2, "inf"),
            (2, "1.7"),
            (2, "-0.1"),
            (2, "0;5"),
            (2, "x"),
            (3, ""),
            (3, "2"),
            (4, ""),
            (4, "0.5"),
            (4, "1.5"),
        ],
        *[(4, "NA"), (4, "0.4,9")],
    ],
)
def test_whatever_is_odd_goes_the_careful_way(
    tmp_path: Path, column: int, cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(["0.1", "0.2", "0.3", "0.4"])
    rows[2][column] = cell
    assert not is_quick(tmp_path, rows, monkeypatch)


def test_a_short_row_and_a_long_one_that_balance_go_the_careful_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(["0.1", "0.2", "0.3", "0.4"])
    rows[1], rows[2] = rows[1][:-1], [*rows[2], "0.4"]
    assert not is_quick(tmp_path, rows, monkeypatch)


def is_quick(folder: Path, rows: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the file was read with its types, and not as text afterwards."""
    path, asked = folder / "run_en.csv", []
    path.write_text("".join(",".join(row) + "\n" for row in [HEADER, *rows]))

    def spied(*given: object, plain: object = tables.read_plain) -> object:
        found = plain(*given)  # type: ignore[operator]
        asked.append(found.frame.schema.get("score") == pl.Float64)
        return found

    monkeypatch.setattr(tables, "read_plain", spied)
    with contextlib.suppress(DataError):
        read_predictions([("en", path)])
    return asked == [True]


CELL = st.sampled_from(["", "a", "0", "1", "0.5", "1e-3", " 1", "x y", "é"])
ROW = st.one_of(
    st.tuples(
        st.sampled_from(["a", "b", "c"]), st.sampled_from("01"), st.sampled_from(["0.5", "1e-3"]), st.just("0.4")
    ),
    st.lists(CELL, min_size=1, max_size=6).filter(lambda row: row != [""]),  # a blank line is no row
)


@given(rows=st.lists(ROW, min_size=1, max_size=6), picked=st.sets(st.integers(1, 3)), end=st.sampled_from(["", "\n"]))
@example(rows=[["", "", "", "", ""], ["", "", ""]], picked=set(), end="")
@example(rows=[["a", "0", "0.5", "0.4"], ["", "", ""], ["", "", "", "", ""]], picked=set(), end="")
@settings(max_examples=300, deadline=None)
def test_what_is_read_quickly_is_what_splitting_every_line_reads(
    rows: list[Sequence[str]], picked: set[int], end: str
) -> None:
    """Rows too short or too long, wherever they stand and however they balance, never come through."""
    data = ("\n".join(["id,y_true,y_prob,t", *(",".join(row) for row in rows)]) + end).encode()
    shape = SourceHead("x.csv", (("id", "y_true", "y_prob", "t"),), separator=",")
    names = {1: ("label", pl.Int8), 2: ("score", pl.Float64), 3: ("threshold", pl.Float64)}
    picks = {"item": 0, **{names[at][0]: at for at in sorted(picked)}}
    found = read_even(shape, data, True, picks, dict(names[at] for at in picked))
    if found is None:
        return
    assert all(len(row) == 4 for row in rows)
    assert found["item"].to_list() == [row[0] for row in rows]
    for at in picked:
        wanted = [None if row[at] == "" else float(row[at]) for row in rows]
        assert found[names[at][0]].to_list() == wanted


def test_a_sound_table_of_any_columns_is_read_quickly() -> None:
    data = b"id,y_true,y_prob,t\na,1,0.5,0.4\nb,0,1e-3,0.4\n"
    shape = SourceHead("x.csv", (("id", "y_true", "y_prob", "t"),), separator=",")
    for picks in ({"item": 0, "score": 2}, {"item": 0, "label": 1, "score": 2, "threshold": 3}):
        found = read_even(shape, data, True, picks, {"score": pl.Float64})
        assert found is not None and found["score"].to_list() == [0.5, 1e-3]
