"""Several columns of scores in streamed files: each is a system, with the digits of memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.outofcore.conftest import simulated, write_shards
from tests.outofcore.test_key import assert_alike

from hitmiss.cli.main import run
from hitmiss.core.read_spec import ReadSpec
from hitmiss.evaluation.evaluate import evaluate
from hitmiss.outofcore.coarse_cells import CoarseCells
from hitmiss.outofcore.stream import evaluate_streamed

SYSTEMS = {"score_columns": ("weak", "good", "stuck")}


def wide(n: int) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    whole = simulated(n)
    return whole.drop("score").with_columns(
        good=whole["score"],
        weak=whole["score"] + pl.Series(rng.normal(size=n)),
        stuck=pl.Series(np.where(rng.random(n) < 0.1, np.inf, whole["score"].round(1).to_numpy())),
    )


@pytest.mark.parametrize("suffix", [".parquet", ".tsv", ".jsonl"])
def test_systems_are_runs_as_in_memory(tmp_path: Path, suffix: str) -> None:
    frame = wide(1200) if suffix != ".jsonl" else wide(1200).with_columns(stuck=pl.col("weak").round(1))
    paths = list(map(str, write_shards(frame, tmp_path, suffix, 3)))
    asked: dict[str, Any] = {"by": ["codec"], "bootstrap": 30, "gap": None}
    found = evaluate_streamed(paths, "asvspoof5", reading=ReadSpec(**SYSTEMS), **asked).results
    assert_alike(evaluate(paths, None, "asvspoof5", **asked, **SYSTEMS), found)
    assert {e.run["system"] for e in found} == {"weak", "good", "stuck"}


@pytest.mark.usefixtures("few_are_many")
def test_systems_beyond_memory_and_with_a_key(tmp_path: Path) -> None:
    frame = wide(1500)
    paths = list(map(str, write_shards(frame.drop("label", "codec"), tmp_path / "s", ".parquet", 2)))
    key = str(tmp_path / "key.tsv")
    frame.select("item", "label", "codec")[::-1].write_csv(key, separator="\t")
    asked: dict[str, Any] = {"metrics": ["eer", "min_dcf", "roc_auc"], "by": ["codec"], "bootstrap": 20}
    found = evaluate_streamed(paths, "asvspoof5", key=key, memory=10**8, reading=ReadSpec(**SYSTEMS), **asked)
    assert isinstance(found.trials.scored, CoarseCells)
    assert_alike(evaluate(paths, key, "asvspoof5", **asked, **SYSTEMS), found.results)


def test_missing_ids_are_counted_once_for_all_systems(tmp_path: Path) -> None:
    frame = wide(300)
    paths = list(map(str, write_shards(frame[4:].drop("label", "codec"), tmp_path / "s", ".tsv", 2)))
    key = str(tmp_path / "key.tsv")
    frame[:-7].select("item", "label", "codec").write_csv(key, separator="\t")
    asked: dict[str, Any] = {"by": ["codec"]}
    reading = {**SYSTEMS, "allow_missing": True}
    found = evaluate_streamed(paths, "asvspoof5", key=key, reading=ReadSpec(**reading), **asked).results
    memory = evaluate(paths, key, "asvspoof5", **asked, **reading)
    assert found.estimates == memory.estimates and found.warnings == memory.warnings
    assert "coverage:289/293+unlisted:7" in found.signature and "coverage:289/293+unlisted:7" in memory.signature


def test_what_is_wrong_with_one_system_is_said_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = wide(300).with_columns(weak=pl.when(pl.int_range(pl.len()) == 7).then(float("nan")).otherwise("weak"))
    frame.write_csv(tmp_path / "a.tsv", separator="\t")
    asked = ["score", str(tmp_path / "a.tsv"), "-p", "asvspoof5", "--score-column", "good", "--score-column", "weak"]
    for how in ([], ["--stream"]):
        assert run([*asked, *how]) == 3
        assert "a.tsv, row 9: 1 NaN score (id 'E_0000007')" in capsys.readouterr().err
        assert run([*asked, "--score-column", "best", *how]) == 3
        assert "there is no column 'best'" in capsys.readouterr().err
    frame.drop("weak").write_csv(tmp_path / "b.tsv", separator="\t")
    assert (
        run(
            [
                "score",
                str(tmp_path / "b.tsv"),
                str(tmp_path / "b.tsv"),
                "-p",
                "asvspoof5",
                "--score-column",
                "good",
                "--stream",
            ]
        )
        == 3
    )
    assert "the shard was given twice" in capsys.readouterr().err
