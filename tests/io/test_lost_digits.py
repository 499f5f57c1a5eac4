"""A whole number that no float holds exactly is refused, whichever way it comes in; others are read as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hitmiss as hm
from hitmiss.core.errors import DataError
from hitmiss.io.addresses import table_of
from hitmiss.io.cells import plain_numbers
from hitmiss.outofcore.stream import evaluate_streamed
from hitmiss.outofcore.warehouse import evaluate_table

Number = int | float
Entrance = Callable[[Path, list[Number]], object]
LABELS = ["bonafide", "spoof"] * 3


def frame_of(scores: list[Number]) -> pl.DataFrame:
    names = [f"u{i}" for i in range(len(scores))]
    return pl.DataFrame({"id": names, "label": LABELS, "score": pl.Series(scores, strict=False)})


def written(folder: Path, kind: str, scores: list[Number]) -> Path:
    path, frame = folder / f"s.{kind}", frame_of(scores)
    if kind == "parquet":
        frame.write_parquet(path)
    elif kind == "jsonl":
        rows = [{**row, "score": score} for row, score in zip(frame.to_dicts(), scores, strict=True)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        cut = "\t" if kind == "tsv" else ","
        quote = '"' if kind == "quoted.csv" else ""
        lines = [
            cut.join((quote + a + quote, b, repr(c)))
            for (a, b), c in zip(frame.select("id", "label").rows(), scores, strict=True)
        ]
        path.write_text("\n".join((cut.join(frame.columns), *lines, "")))
    return path


def in_memory(kind: str) -> Entrance:
    return lambda folder, scores: hm.evaluate(written(folder, kind, scores), metrics="eer", bootstrap=0)


def streamed(kind: str, engine: str = "polars") -> Entrance:
    return lambda folder, scores: evaluate_streamed([written(folder, kind, scores)], metrics="eer", engine=engine)


def in_database(folder: Path, scores: list[Number]) -> object:
    import duckdb

    with duckdb.connect(str(folder / "s.duckdb")) as database:
        database.execute(f"CREATE TABLE trials AS SELECT * FROM '{written(folder, 'parquet', scores)}'")
    address = table_of(f"duckdb:{folder / 's.duckdb'}#trials")
    assert address is not None
    return evaluate_table(address, metrics="eer")


def evaluated(source: Callable[[list[Number]], object]) -> Entrance:
    return lambda _, scores: hm.evaluate(source(scores), metrics="eer", bootstrap=0)


IS_REAL = [word == "bonafide" for word in LABELS]
ENTRANCES: dict[str, Entrance] = {
    **{kind: in_memory(kind) for kind in ("csv", "tsv", "quoted.csv", "jsonl", "parquet")},
    **{f"stream {kind}": streamed(kind) for kind in ("csv", "tsv", "jsonl", "parquet")},
    "polars": evaluated(frame_of),
    "pandas": evaluated(lambda scores: __import__("pandas").DataFrame({"label": LABELS, "score": scores})),
    "rows": evaluated(lambda s: [{"label": label, "score": one} for label, one in zip(LABELS, s, strict=True)]),
    "columns": evaluated(lambda scores: {"label": LABELS, "score": scores}),
    "arrays": lambda _, scores: hm.evaluate(np.array(IS_REAL), np.array(scores), metrics="eer", bootstrap=0),
    "lists": lambda _, scores: hm.evaluate(IS_REAL, scores, metrics="eer", bootstrap=0),
    "duckdb engine": streamed("parquet", "duckdb"),
    "duckdb table": in_database,
}
EXTRAS = ("duckdb engine", "duckdb table", "pandas")
every_entrance = pytest.mark.parametrize(
    "entrance", [pytest.param(n, marks=pytest.mark.extras) if n in EXTRAS else n for n in ENTRANCES]
)


@every_entrance
@pytest.mark.parametrize("score", [2**53 + 1, -(2**53) - 1, 2**62 - 1])
def test_a_whole_number_that_would_be_rounded_is_refused_with_its_place(
    entrance: str, score: int, tmp_path: Path
) -> None:
    assert int(float(score)) != score
    with pytest.raises(DataError) as caught:
        ENTRANCES[entrance](tmp_path, [0, 1, 2, score, 4, 5])
    (fault,) = caught.value.faults
    assert (caught.value.code, fault.kind, fault.value) == ("inexact-number", "inexact-number", str(score))
    has_header = entrance.endswith(("csv", "tsv"))
    assert fault.row == (None if entrance == "duckdb table" else 4 + has_header)
    assert fault.file and fault.column


@every_entrance
@pytest.mark.filterwarnings("ignore::hitmiss.ResultWarning")
@pytest.mark.parametrize("score", [2**53, 2**53 + 2, -(2**60), 1e300, 0.12345678901234567, 9007199254740993.0])
def test_a_number_that_a_float_holds_is_scored(entrance: str, score: Number, tmp_path: Path) -> None:
    scores: list[Number] = [0, 1, 2, score, 4, 5] if isinstance(score, int) else [0.0, 1.0, 2.0, score, 4.0, 5.0]
    made = ENTRANCES[entrance](tmp_path, scores)
    results = getattr(made, "results", made)
    assert results["eer"].value == hm.metrics.eer(IS_REAL, np.array(scores, dtype=np.float64))  # type: ignore[index]


def test_names_of_trials_beyond_exact_floats_stay_apart() -> None:
    """2^53 and 2^53 + 1 are one float and two trials."""
    names = ["9007199254740991", "9007199254740992", "9007199254740993", "0007.0"]
    assert plain_numbers(pl.Series("trial", names)).to_list() == [*names[:3], "7"]
