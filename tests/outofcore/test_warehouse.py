"""Tables that Spark and DuckDB count give the figures of memory, to the bit; faults are told with their ids."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.outofcore.conftest import simulated, write

from hitmiss.cli.main import run
from hitmiss.core.errors import UsageError
from hitmiss.io.addresses import table_of

pytestmark = pytest.mark.extras
ASKED = ["-p", "asvspoof5", "--score-kind", "llr", "--by", "codec,attack", "--bootstrap", "30", "--json"]
KINDS = ("normal", "tied", "zeros", "infinite")


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = run(["score", *words])
    return code, json.loads(capsys.readouterr().out)


def assert_same(capsys: pytest.CaptureFixture[str], table: str, file: Path, *more: str) -> None:
    """A table and a file of the same trials: the same figures."""
    here, there = answer(capsys, str(file), *ASKED, *more), answer(capsys, table, *ASKED, *more)
    assert here[0] == there[0] == 0, (here[1], there[1])
    assert here[1]["estimates"] and there[1]["estimates"] == here[1]["estimates"]
    assert "stream|n:" in there[1]["signature"]


def faulty(frame: pl.DataFrame) -> pl.DataFrame:
    """The trials with a NaN, a missing score and a misspelt label."""
    at = pl.int_range(pl.len())
    score = pl.when(at == 7).then(float("nan")).when(at == 8).then(None).otherwise("score")
    return frame.with_columns(score=score, label=pl.when(at == 9).then(pl.lit("spooof")).otherwise("label"))


def assert_faults_are_told(capsys: pytest.CaptureFixture[str], bad: str, twice: str) -> None:
    code, told = answer(capsys, bad, *ASKED)
    assert code == 3 and {"E_0000007", "E_0000008", "E_0000009"} <= set(told["error"]["message"].split("'"))
    kinds = {(fault["kind"], fault["column"], fault["row"]) for fault in told["error"]["faults"]}
    assert kinds == {("nan-score", "score", None), ("empty-score", "score", None), ("unknown-label", "label", None)}
    code, told = answer(capsys, twice, *ASKED)
    assert code == 3 and told["error"]["code"] == "duplicate-id" and "'E_0000003'" in told["error"]["message"]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database file with tables of trials."""
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "results.db"
    connection = duckdb.connect(str(path))
    for kind in KINDS:
        write(simulated(2000, kind=kind), tmp_path / f"{kind}.parquet")
        connection.execute(f"CREATE TABLE {kind} AS SELECT * FROM '{tmp_path / kind}.parquet'")
    write(faulty(simulated(60)), tmp_path / "faulty.parquet")
    connection.execute(f"CREATE TABLE bad AS SELECT * FROM '{tmp_path / 'faulty.parquet'}'")
    connection.execute(
        "CREATE TABLE twice AS SELECT * FROM normal UNION ALL SELECT * FROM normal WHERE item = 'E_0000003'"
    )
    connection.execute("CREATE TABLE words AS SELECT * REPLACE ('high' AS score) FROM normal")
    connection.close()
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_duckdb_counts_the_trials_of_memory(kind: str, database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_same(capsys, f"duckdb:{database}#{kind}", database.parent / f"{kind}.parquet")


def test_duckdb_counts_what_else_is_asked(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = database.parent / "normal.parquet"
    assert_same(capsys, f"duckdb:{database}#main.normal", file, "-m", "accuracy", "-m", "f1", "--threshold", "0.25")
    assert_same(capsys, f"duckdb:{database}#normal", file, "--higher", "spoof")
    assert_same(capsys, f"duckdb:{database}#normal", file, "--where", "codec=C01")


def test_faults_in_a_table_are_told_with_their_ids(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_faults_are_told(capsys, f"duckdb:{database}#bad", f"duckdb:{database}#twice")
    for table, code, name in (
        (f"duckdb:{database}#absent", 3, "engine-refused"),
        (f"duckdb:{database}#words", 3, "engine-refused"),
        (f"duckdb:{database}x#normal", 3, "missing-file"),
        (f"duckdb:{database.parent / 'normal.parquet'}#normal", 3, "engine-refused"),
    ):
        found = answer(capsys, table, *ASKED)
        assert (found[0], found[1]["error"]["code"]) == (code, name), found


def test_figures_of_a_table_are_verified(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the table, and by a file with its rows in another order."""
    results, file = str(database.parent / "r.json"), str(database.parent / "again.csv")
    assert answer(capsys, f"duckdb:{database}#tied", *ASKED, "-o", results)[0] == 0
    pl.read_parquet(database.parent / "tied.parquet").reverse().write_csv(file)
    for source, code in ((f"duckdb:{database}#tied", 0), (file, 0), (f"duckdb:{database}#normal", 1)):
        assert run(["verify", results, source]) == code, source
        capsys.readouterr()
    assert run(["validate", f"duckdb:{database}#tied", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "table-address"


def two_tables(folder: Path, scores: pl.DataFrame, key: pl.DataFrame) -> tuple[list[str], list[str]]:
    """Scores and their key as files, and as tables of a database: what a command is given of either."""
    duckdb = pytest.importorskip("duckdb")
    files = [str(folder / "scores.parquet"), str(folder / "key.parquet")]
    for frame, path in zip((scores, key), files, strict=True):
        frame.write_parquet(path)
    with duckdb.connect(str(folder / "two.db")) as connection:
        for name, path in zip(("scores", "key"), files, strict=True):
            connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM '{path}'")
    tables = [f"duckdb:{folder / 'two.db'}#{name}" for name in ("scores", "key")]
    return [files[0], "--key", files[1]], [tables[0], "--key", tables[1]]


def sides(n: int = 800, kind: str = "normal") -> tuple[pl.DataFrame, pl.DataFrame]:
    """Scores, and a key in another order with other names."""
    frame = simulated(n, kind=kind).with_columns(speaker=pl.format("S{}", pl.int_range(pl.len()) % 23))
    return frame.select(pl.col("item").alias("utt"), "score"), frame.drop("score").rename({"item": "file"}).reverse()


def faults_of(told: dict[str, Any]) -> set[tuple[str, str]]:
    """The kinds of faults, with the ids."""
    return {(f["kind"], f["message"].rpartition(", id ")[2]) for f in told["error"]["faults"]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_in_a_table_is_joined_by_the_engine(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, tables = two_tables(tmp_path, *sides(kind=kind))
    for more in ([], ["--unit", "speaker"], ["--higher", "spoof", "--where", "codec=C01"]):
        here, there = (answer(capsys, *words, *ASKED, *more) for words in (files, tables))
        assert here[0] == there[0] == 0, (here[1], there[1])
        assert here[1]["estimates"] and there[1]["estimates"] == here[1]["estimates"]


def test_ids_that_one_table_lacks_are_told_or_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores, key = sides()
    files, tables = two_tables(tmp_path, scores[5:], key[3:])
    here, there = (answer(capsys, *words, *ASKED) for words in (files, tables))
    assert here[0] == there[0] == 3 and there[1]["error"]["code"] == here[1]["error"]["code"]
    told = [faults_of(found[1]) for found in (here, there)]
    assert told[0] == told[1] and len(told[0]) == 8
    here, there = (answer(capsys, *words, *ASKED, "--allow-missing") for words in (files, tables))
    assert here[0] == there[0] == 0, there[1]
    assert there[1]["estimates"] == here[1]["estimates"]
    assert any(
        text.startswith("3 scored ids are not in the key and were left out, as ") for text in there[1]["warnings"]
    )
    assert all("coverage:792/797+unlisted:3" in found[1]["signature"] for found in (here, there))


@pytest.mark.parametrize(
    "fault", ["twice scored", "twice listed", "conflict", "label", "spelling", "no id", "suffix", "NaN"]
)
def test_faults_of_two_tables_are_those_of_files(
    fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, key = sides()
    third = pl.int_range(pl.len()) == 2
    if fault == "twice scored":
        scores = pl.concat([scores, scores[2:3]])
    elif fault == "twice listed":
        key = pl.concat([key, key[2:3]])
    elif fault == "conflict":
        scores = scores.join(key.select(utt="file", codec="codec"), on="utt", how="left", maintain_order="left")
        scores = scores.with_columns(codec=pl.when(third).then(pl.lit("C09")).otherwise("codec"))
    elif fault in ("label", "spelling"):
        scores = scores.join(key.select(utt="file", label="label"), on="utt", how="left", maintain_order="left")
        other = pl.when(pl.col("label") == "spoof").then(pl.lit("bonafide")).otherwise(pl.lit("spoof"))
        other = other if fault == "label" else pl.col("label").replace({"bonafide": "bona-fide"})
        scores = scores.with_columns(label=pl.when(third | (fault == "spelling")).then(other).otherwise("label"))
    elif fault == "no id":
        scores = scores.with_columns(utt=pl.format("x{}", "utt"))
    elif fault == "suffix":
        scores = scores.with_columns(utt=pl.format("{}.flac", "utt"))
    else:
        scores = scores.with_columns(score=pl.when(third).then(float("nan")).otherwise("score"))
    files, tables = two_tables(tmp_path, scores, key)
    here, there = (answer(capsys, *words, *ASKED) for words in (files, tables))
    assert here[0] == there[0] == (0 if fault == "spelling" else 3), there[1]
    if fault == "spelling":
        assert there[1]["estimates"] == here[1]["estimates"]
        return
    assert there[1]["error"]["code"] == here[1]["error"]["code"]
    if fault not in ("no id", "suffix"):  # of ids that are all wrong, two are named
        assert faults_of(there[1]) and faults_of(there[1]) <= faults_of(here[1])


def test_figures_of_two_tables_are_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files, tables = two_tables(tmp_path, *sides())
    assert answer(capsys, *tables, *ASKED, "-o", str(tmp_path / "r.json"))[0] == 0
    for words in (tables, files):
        assert run(["verify", str(tmp_path / "r.json"), *words]) == 0, capsys.readouterr()


def test_an_unknown_label_is_found_in_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores, key = sides()
    key = key.with_columns(label=pl.when(pl.int_range(pl.len()) == 2).then(pl.lit("maybe")).otherwise("label"))
    tables = two_tables(tmp_path, scores, key)[1]
    code, found = answer(capsys, *tables, *ASKED)
    assert (code, found["error"]["code"]) == (3, "unknown-label")
    assert found["error"]["message"].startswith(f"{tables[2].rpartition('#')[2]}: 1 row with the unknown label 'maybe'")


def test_a_key_elsewhere_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files, tables = two_tables(tmp_path, *sides(60))
    other = tables[2].replace("two.db", "one.db")
    for words, code in (
        ([tables[0], "--key", files[2]], "key-not-a-table"),
        ([tables[0], "--key", other], "other-database"),
        ([tables[0], "--key", "spark:key"], "other-database"),
        ([files[0], "--key", tables[2]], "table-address"),
        ([tables[0], "--key", tables[2], "--counts"], "needs-every-trial"),
    ):
        found = answer(capsys, *words, *ASKED)
        assert (found[0], found[1]["error"]["code"]) == (2, code), found


def test_the_statement_with_a_key_is_what_the_engine_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    duckdb = pytest.importorskip("duckdb")
    scores, key = sides()
    files, _ = two_tables(tmp_path, scores.rename({"utt": "item"}), key.rename({"file": "item"}))
    assert run(["sql", "scores", "--key", "key", "--by", "codec", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    with duckdb.connect(str(tmp_path / "two.db"), read_only=True) as connection:
        for check in ("repeats", "key_repeats", "only_in_key", "only_in_scores"):
            assert not connection.execute(told[check]).fetchall()
        connection.execute(f"COPY ({told['counts']}) TO '{tmp_path / 'counts.parquet'}'")
    asked = ["-p", "asvspoof5", "--by", "codec", "--bootstrap", "20", "--unit", "none", "--json"]
    here = answer(capsys, *files, *asked)
    there = answer(capsys, str(tmp_path / "counts.parquet"), "--counts", *asked)
    assert there[1]["estimates"] == here[1]["estimates"]


def test_what_a_table_cannot_be_asked(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = f"duckdb:{database}#normal"
    for words, name in (
        (["-m", "ece"], "needs-every-trial"),
        (["--key", "key.tsv"], "key-not-a-table"),
        (["--cluster", "auto"], "needs-every-trial"),
        ([table], "several-tables"),
        (["--engine", "spark"], "other-engine"),
        (["--engine", "bigquery"], "unknown-value"),
    ):
        found = answer(capsys, table, *words, *ASKED)
        assert (found[0], found[1]["error"]["code"]) == (2, name), found
    with pytest.raises(UsageError) as caught:
        table_of("duckdb:results.db")
    assert caught.value.code == "bad-address"


WRITER = """
import duckdb, sys, time
connection = duckdb.connect(sys.argv[1])
print("open", flush=True)
time.sleep(300)
"""


def test_a_database_that_another_process_writes_to_is_told_at_once(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (f"duckdb:{database}#normal", *ASKED)
    whole = answer(capsys, *words)
    with subprocess.Popen([sys.executable, "-c", WRITER, str(database)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "open\n"
        began = time.monotonic()
        found = answer(capsys, *words)
        writer.kill()
    assert (found[0], found[1]["error"]["code"]) == (5, "locked-database") and time.monotonic() - began < 30
    assert answer(capsys, *words) == whole and whole[0] == 0


LOST = """
import os, signal, sys
from hitmiss.cli.main import run
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
session.read.parquet(sys.argv[1]).createOrReplaceTempView("t")
proxy = session._jvm.java.lang.ProcessHandle.current().pid()
real = type(session).sql
def sql(self, statement):
    if "COUNT" in statement.upper():
        os.kill(proxy, signal.SIGKILL)
    return real(self, statement)
type(session).sql = sql
os._exit(run(["score", "spark:t", "-m", "eer", "--json"]))
"""


def test_a_spark_that_dies_is_one_sentence(tmp_path: Path) -> None:
    """Its Java process is killed when the first counts are asked for."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("there is no Java here")
    write(simulated(500), tmp_path / "t.parquet")
    words = [sys.executable, "-c", LOST, str(tmp_path / "t.parquet")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 5, done.stderr[-2000:]
    assert json.loads(done.stdout)["error"]["code"] == "lost-engine"


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A cluster of Spark: a driver and two workers, each in a JVM of its own."""
    pytest.importorskip("pyspark")
    pytest.importorskip("sqlglot")
    if shutil.which("java") is None:
        pytest.skip("there is no Java here")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "4")
        session = builder.config("spark.executor.memory", "512m").config("spark.log.level", "FATAL").getOrCreate()
        try:
            yield session
        finally:
            session.stop()


@pytest.mark.filterwarnings("ignore")
def test_spark_counts_the_trials_of_memory(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("normal", "zeros", "infinite"):
        file = tmp_path / f"{kind}.parquet"
        write(simulated(2000, kind=kind), file)
        spark.read.parquet(str(file)).repartition(5).createOrReplaceTempView(kind)
        assert_same(capsys, f"spark:{kind}", file)
    file = tmp_path / "zeros.parquet"
    here, there = answer(capsys, str(file), *ASKED), answer(capsys, str(file), *ASKED, "--engine", "spark")
    assert here[0] == there[0] == 0 and there[1]["estimates"] == here[1]["estimates"]
    write(faulty(simulated(60)), tmp_path / "faulty.parquet")
    spark.read.parquet(str(tmp_path / "faulty.parquet")).createOrReplaceTempView("bad")
    twice = "CREATE OR REPLACE TEMP VIEW twice AS SELECT * FROM normal UNION ALL SELECT * FROM normal WHERE item = 'E_0000003'"
    spark.sql(twice)
    assert_faults_are_told(capsys, "spark:bad", "spark:twice")
    key = pl.read_parquet(file).drop("score").reverse()[5:]
    for name, frame in (("scores", pl.read_parquet(file).select(utt="item", score="score")), ("key", key)):
        frame.write_parquet(tmp_path / f"{name}.parquet")
        spark.read.parquet(str(tmp_path / f"{name}.parquet")).repartition(3).createOrReplaceTempView(name)
    assert answer(capsys, "spark:scores", "--key", "spark:key", *ASKED)[1]["error"]["code"] == "only-in-scores"
    words = [
        [str(tmp_path / "scores.parquet"), "--key", str(tmp_path / "key.parquet")],
        ["spark:scores", "--key", "spark:key"],
    ]
    here, there = (answer(capsys, *own, *ASKED, "--allow-missing") for own in words)
    assert here[0] == there[0] == 0 and there[1]["estimates"] == here[1]["estimates"]
    found = answer(capsys, "spark:absent", *ASKED)
    assert (found[0], found[1]["error"]["code"]) == (3, "engine-refused")


def executors() -> set[int]:
    """The processes that count."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"CoarseGrainedExecutorBackend" in path.read_bytes() and is_ours(int(path.parent.name)):
                found.add(int(path.parent.name))
        except OSError:
            continue
    return found


def is_ours(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


@pytest.mark.filterwarnings("ignore")
def test_a_worker_of_spark_that_is_killed_changes_no_digit(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, notes = tmp_path / "t.parquet", tmp_path / "notes"
    notes.mkdir()
    write(simulated(3000), file)
    folder = str(notes)

    def slowly(rows: Iterator[Any]) -> Iterator[Any]:
        (Path(folder) / str(time.monotonic_ns())).touch()
        time.sleep(0.3)
        return rows

    frame = spark.read.parquet(str(file)).repartition(8)
    spark.createDataFrame(frame.rdd.mapPartitions(slowly), frame.schema).createOrReplaceTempView("slow")
    before, killed = executors(), []
    assert len(before) == 2

    def kill() -> None:
        end = time.monotonic() + 60
        while not any(notes.iterdir()) and time.monotonic() < end:
            time.sleep(0.01)
        killed.append(min(before))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    assert_same(capsys, "spark:slow", file)
    killer.join()
    assert killed and killed[0] not in executors() and any(notes.iterdir())
