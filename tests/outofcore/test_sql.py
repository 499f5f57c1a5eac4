"""Counts that another engine made give the figures of the trials."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.outofcore.conftest import simulated, write

from hitmiss.cli.main import run
from hitmiss.core.errors import UsageError
from hitmiss.evaluation.evaluate import evaluate
from hitmiss.outofcore.statements import DIALECTS, key_statements, repeats_statement, statement
from hitmiss.outofcore.stream import evaluate_streamed

ASKED: dict[str, Any] = {"by": ["codec"], "bootstrap": 40}


def test_counts_give_the_figures_of_the_trials(tmp_path: Path) -> None:
    frame = simulated(4000, kind="tied")
    write(frame, tmp_path / "trials.csv")
    counts = frame.group_by("codec", "label", "score").agg(n=pl.len())
    counts[:100].write_parquet(tmp_path / "a.parquet")
    counts[100:].write_parquet(tmp_path / "b.parquet")
    whole = evaluate(str(tmp_path / "trials.csv"), None, "asvspoof5", **ASKED)
    found = evaluate_streamed(str(tmp_path / "*.parquet"), "asvspoof5", are_counts=True, **ASKED)
    assert found.results.estimates == whole.estimates
    assert "|choices:counts|n:4000/" in found.results.signature


@pytest.mark.parametrize("wrong", ["0", "-3", "1.5", "many", ""])
def test_a_count_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    (tmp_path / "c.csv").write_text(f"label,score,n\nbonafide,1.5,3\nspoof,0.5,{wrong}\n")
    assert run(["score", str(tmp_path / "c.csv"), "-p", "asvspoof5", "--counts"]) == 3
    assert "c.csv, row 3: 1 row with a count that is not a whole number above 0" in capsys.readouterr().err


def test_a_group_that_is_counted_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.csv"
    asked = ["score", str(file), "--counts", "-m", "eer", "--positive", "bonafide", "--negative", "spoof"]
    file.write_text("label,score,codec,n\nbonafide,1.0,a,2\nspoof,0.5,a,2\nbonafide,1.0,a,2\n")
    assert run(asked) == 3
    assert "c.csv, row 2: 2 rows of groups that are counted in another row too" in capsys.readouterr().err
    file.write_text("label,score,codec,n\nbonafide,1.0,a,2\nspoof,0.5,a,2\nbonafide,1.0,b,2\n")
    assert run(asked) == 0  # another codec is another group, asked for or not
    assert "6 trials: 4 bonafide, 2 spoof" in capsys.readouterr().out


def test_a_file_without_counts_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(simulated(50), tmp_path / "t.csv")
    assert run(["score", str(tmp_path / "t.csv"), "-p", "asvspoof5", "--counts"]) == 2
    assert "t.csv has no column 'n'; a file of counts has the label" in capsys.readouterr().err


def test_questions_that_no_statement_answers_are_refused() -> None:
    for code, wrong in (
        ("unknown-SQL-dialect", {"dialect": "oracle"}),
        ("inexact-step", {"step": 1000}),
        ("taken-name", {"by": ["n"]}),
    ):
        with pytest.raises(UsageError) as caught:
            statement("t", **wrong)  # type: ignore[arg-type]
        assert caught.value.code == code
    with pytest.raises(UsageError) as caught:
        statement("folder/t.parquet", dialect="trino")
    assert caught.value.code == "table-name"


@pytest.mark.extras
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_reads_its_statement_as_the_same_question(dialect: str) -> None:
    """What is printed is read back by a parser of that dialect: the same tables, names and groups, all of them quoted."""
    sqlglot = pytest.importorskip("sqlglot")
    by = ['the "codec"', "co`dec", "select", "Größe", "a;--b"]
    made = statement("my-lake.trials", by, dialect=dialect, score="cm score", label="key", step=1024)
    [tree] = sqlglot.parse(made, read=dialect)
    select = tree.find(sqlglot.exp.With).expressions[0].this
    assert [table.parts for table in select.find_all(sqlglot.exp.Table)]
    assert [part.name for part in select.find(sqlglot.exp.Table).parts] == ["my-lake", "trials"]
    assert [one.alias_or_name for one in tree.expressions] == ["label", *by, "score", "n"]
    assert [one.name for one in tree.args["group"].expressions] == ["label", *by, "score"]
    assert {one.name for one in select.find_all(sqlglot.exp.Column)} == {"key", *by, "cm score"}
    assert all(name.quoted for name in tree.find_all(sqlglot.exp.Identifier))
    double = {"bigquery": "FLOAT64", "postgres": "DOUBLE PRECISION"}.get(dialect, "DOUBLE")
    assert f"AS {double})" in made
    [again] = sqlglot.parse(repeats_statement("my-lake.trials", {"item": 'the "id"'}, dialect=dialect), read=dialect)
    assert again.find(sqlglot.exp.Having) is not None
    assert {one.name for one in again.find_all(sqlglot.exp.Column)} == {'the "id"'}


@pytest.mark.extras
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_joins_a_key(dialect: str) -> None:
    sqlglot = pytest.importorskip("sqlglot")
    made = statement("scores", ["codec"], dialect=dialect, score="llr", key="lake.key", item='the "id"')
    [join] = list(sqlglot.parse_one(made, read=dialect).find_all(sqlglot.exp.Join))
    sides = {(one.table, one.name) for one in join.args["on"].find_all(sqlglot.exp.Column)}
    assert sides == {("s", 'the "id"'), ("k", 'the "id"')}
    taken = {(one.table, one.name) for one in join.parent.expressions[0].find_all(sqlglot.exp.Column)}
    assert taken == {("s", "llr")}, "a score is that of the scores, and the rest is in the key"
    checks = key_statements("scores", "lake.key", 'the "id"', dialect=dialect)
    for side, check in (("k", checks["only_in_key"]), ("s", checks["only_in_scores"])):
        tree = sqlglot.parse_one(check, read=dialect)
        assert {one.table for one in tree.expressions[0].find_all(sqlglot.exp.Column)} == {side}
        assert all(name.quoted for name in tree.find_all(sqlglot.exp.Identifier))


@pytest.mark.extras
def test_duckdb_rounds_scores_down(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("sqlglot")
    scores = [-0.26, -0.25, 0.0, 0.24, 0.25, 1e-300, 2.0**60, -(2.0**60) - 1e5, 1e308, float("inf"), float("-inf")]
    path = tmp_path / "t.parquet"
    pl.DataFrame({"label": ["a"] * len(scores), "score": scores}).write_parquet(path)
    found = dict(duckdb.sql(f"SELECT score, n FROM ({statement(str(path), step=4)})").fetchall())
    expected: dict[float, int] = {}
    for score in scores:
        exact = score if abs(score) > 2**53 else float(Fraction(math.floor(Fraction(score) * 4), 4))
        expected[exact] = expected.get(exact, 0) + 1
    assert found == expected


@pytest.mark.extras
def test_duckdb_makes_the_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    duckdb = pytest.importorskip("duckdb")
    frame = simulated(3000, kind="zeros").rename({"codec": 'the "codec"', "label": "key", "score": "cm score"})
    write(frame, tmp_path / "trials.parquet")
    pattern = str(tmp_path / "*.parquet")
    assert run(["sql", pattern, "--by", 'the "codec"', "--score", "cm score", "--label", "key", "--item", "item"]) == 0
    text = capsys.readouterr().out
    repeats, counting = text.split(";\n", 1)
    connection = duckdb.connect()
    assert connection.execute(repeats.removeprefix("-- must give no row: ")).fetchall() == []
    connection.execute(f"COPY ({counting}) TO '{tmp_path / 'counts.parquet'}' (FORMAT parquet)")
    _assert_same(
        tmp_path / "trials.parquet",
        tmp_path / "counts.parquet",
        {"item": "item", "label": "key", "score": "cm score"},
        'the "codec"',
    )


def _assert_same(trials: Path, counts: Path, columns: dict[str, str], by: str) -> None:
    asked: dict[str, Any] = {"by": [by], "bootstrap": 30, "metrics": ["eer", "min_dcf", "roc_auc"]}
    whole = evaluate(str(trials), None, "asvspoof5", columns=columns, **asked)
    found = evaluate_streamed(str(counts), "asvspoof5", are_counts=True, **asked)
    assert found.results.estimates == whole.estimates


@pytest.mark.extras
def test_spark_makes_the_counts(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark")
    import shutil
    import warnings

    if shutil.which("java") is None:
        pytest.skip("there is no Java here")
    del pyspark
    frame = simulated(2000, kind="tied")
    folder = tmp_path / "trials"
    folder.mkdir()
    write(frame, folder / "part.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        try:
            rows = session.sql(statement(str(folder), ["codec"], dialect="spark")).collect()
            assert session.sql(repeats_statement(str(folder), {"item": "item"}, dialect="spark")).collect() == []
            rounded = session.sql(statement(str(folder), ["codec"], dialect="spark", step=4)).collect()
        finally:
            session.stop()
    pl.DataFrame([row.asDict() for row in rows]).write_parquet(tmp_path / "counts.parquet")
    whole = evaluate(str(folder / "part.parquet"), None, "asvspoof5", **ASKED)
    assert (
        evaluate_streamed(str(tmp_path / "counts.parquet"), "asvspoof5", are_counts=True, **ASKED).results.estimates
        == whole.estimates
    )
    expected = frame.group_by("label", "codec", score=(pl.col("score") * 4).floor() / 4).agg(n=pl.len())
    assert sorted(map(tuple, rounded)) == sorted(expected.rows())


def test_counts_of_billions_give_the_exact_area(tmp_path: Path) -> None:
    """Pairs of some billions of trials are more than 64 bits hold."""
    rows = [
        ("bonafide", 0.5, 4 * 10**9),
        ("bonafide", 1.5, 3 * 10**9 + 1),
        ("spoof", 0.5, 2 * 10**9),
        ("spoof", 1.0, 9 * 10**9),
    ]
    pl.DataFrame(rows, schema=["label", "score", "n"], orient="row").write_parquet(tmp_path / "c.parquet")
    found = evaluate_streamed(
        str(tmp_path / "c.parquet"), "asvspoof5", are_counts=True, metrics=["roc_auc"]
    ).results.one("roc_auc")
    twice = sum(
        p * n * (2 if a > b else 1 if a == b else 0) for (_, a, p), (_, b, n) in itertools.product(rows[:2], rows[2:])
    )
    assert found.value == pytest.approx(float(Fraction(twice, 2 * (7 * 10**9 + 1) * 11 * 10**9)), rel=1e-15)
    assert found.low is not None and found.high is not None
    assert 0 < found.high - found.low < 1e-4


def test_rows_are_chosen_among_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = simulated(600, kind="tied")
    write(frame, tmp_path / "t.parquet")
    write(frame.group_by("label", "codec", "score").agg(n=pl.len()), tmp_path / "c.parquet")
    found = []
    for more in (["t.parquet"], ["c.parquet", "--counts"]):
        words = ["score", str(tmp_path / more[0]), *more[1:], "-m", "roc_auc", "--where", "codec=C01", "--json"]
        assert run(words) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0]["estimates"] == found[1]["estimates"]
    assert all(f"where:codec=C01({(frame['codec'] == 'C01').sum()}/600)" in one["signature"] for one in found)


def test_counts_are_joined_with_no_key(tmp_path: Path) -> None:
    write(pl.DataFrame({"label": ["real", "fake"], "score": [1.0, 0.0], "n": [2, 3]}), tmp_path / "c.csv")
    with pytest.raises(UsageError) as caught:
        evaluate_streamed(str(tmp_path / "c.csv"), are_counts=True, key=str(tmp_path / "c.csv"), metrics=["eer"])
    assert caught.value.code == "key-of-counts"


@pytest.mark.parametrize("rule", ["drop", "worst"])
def test_counted_trials_without_a_score_are_treated_as_in_memory(tmp_path: Path, rule: str) -> None:
    frame = simulated(400).with_columns(
        score=pl.when(pl.int_range(pl.len()) % 37 == 3).then(float("nan")).otherwise("score")
    )
    write(frame, tmp_path / "t.parquet")
    write(frame.group_by("label", "codec", "score").agg(n=pl.len()), tmp_path / "c.parquet")
    asked: dict[str, Any] = {"metrics": ["roc_auc", "eer"], "by": ["codec"]}
    whole = evaluate(str(tmp_path / "t.parquet"), None, "asvspoof5", on_nan=rule, **asked)
    reading = {"on_nan": rule}
    found = evaluate_streamed(str(tmp_path / "c.parquet"), "asvspoof5", are_counts=True, reading=reading, **asked)
    assert found.results.estimates == whole.estimates
    assert f"on-nan:{rule}(11)" in found.results.signature and f"on-nan:{rule}(11)" in whole.signature
