"""Whoever counts, the figures are those of memory: the same bits from polars and from DuckDB, in bins and by whole scores."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.outofcore.conftest import simulated, write, write_shards

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.evaluation.evaluate import evaluate
from hitmiss.outofcore import stream
from hitmiss.outofcore.coarse_cells import CoarseCells
from hitmiss.outofcore.engines import ENGINES
from hitmiss.outofcore.stream import evaluate_streamed
from hitmiss.stats import sketch

ENGINE = [pytest.param(name, marks=pytest.mark.extras) if name == "duckdb" else name for name in ENGINES]
ASKED: dict[str, Any] = {"metrics": ["eer", "min_dcf", "roc_auc"], "by": ["codec"], "bootstrap": 15}


@pytest.mark.parametrize("engine", ENGINE)
@given(
    score=st.lists(
        st.sampled_from([-np.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 0.25, 0.2500001, 1e300, np.inf]) | st.floats(-4, 4),
        min_size=8,
        max_size=40,
    ),
    cuts=st.lists(st.integers(0, 3), min_size=40, max_size=40),
    seed=st.integers(0, 2**16),
    coarse=st.booleans(),
)
@settings(max_examples=8, deadline=None)
def test_any_sharding_order_and_engine_give_the_bits_of_memory(
    engine: str, score: list[float], cuts: list[int], seed: int, coarse: bool
) -> None:
    rng, n = np.random.default_rng(seed), len(score)
    positive = rng.random(n) < 0.5
    positive[:4] = [True, True, False, False]
    whole = pl.DataFrame(
        {
            "item": [f"u{i}" for i in rng.permutation(n)],
            "score": score,
            "label": np.where(positive, "bonafide", "spoof"),
            "codec": rng.choice(["-", "C'01"], n),
        }
    )
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        if coarse:
            patch.setattr(sketch, "LARGE", 4)
            patch.setattr(stream, "KEY_BYTES", 10**9)
        write(whole, Path(name) / "whole.csv")
        shards = []
        for k in sorted(set(cuts[:n])):
            part = whole.filter(pl.Series(cuts[:n]) == k)
            shards.append(Path(name) / f"part{k}.{('csv', 'parquet')[k % 2]}")
            write(part[rng.permutation(part.height).tolist()], shards[-1])
        rng.shuffle(shards)  # type: ignore[arg-type]
        memory = evaluate(str(Path(name) / "whole.csv"), None, "asvspoof5", **ASKED)
        found = evaluate_streamed(list(map(str, shards)), "asvspoof5", engine=engine, memory=10**8, **ASKED)
        assert found.results.estimates == memory.estimates
        assert isinstance(found.trials.scored, CoarseCells) == coarse


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("engine", ENGINE)
@pytest.mark.parametrize("suffix", [".parquet", ".tsv"])
def test_what_is_done_to_scores_is_done_alike(tmp_path: Path, engine: str, suffix: str) -> None:
    """Scores turned round, values renamed, a fixed threshold as a cut, trials without a score given the worst."""
    frame = simulated(1500, kind="zeros").with_columns(score=-pl.col("score"))
    frame = frame.with_columns(score=pl.when(pl.int_range(pl.len()) % 97 == 3).then(float("nan")).otherwise("score"))
    paths = list(map(str, write_shards(frame, tmp_path, suffix, 2)))
    reading = {"on_nan": "worst", "rename": {"codec": {"C01": "C-1"}}}
    asked = {**ASKED, "metrics": ["eer", "dcf_at(threshold=0.25)", "roc_auc"]}
    memory = evaluate(paths, None, "asvspoof5", **asked, **reading)
    found = evaluate_streamed(paths, "asvspoof5", engine=engine, memory=10**7, reading=ReadSpec(**reading), **asked)
    assert found.results.estimates == memory.estimates
    assert "on-nan:worst(16)" in found.results.signature


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kind", ["raw", "probability"])
def test_the_worst_score_is_the_worst_where_scores_point_the_other_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, large: bool
) -> None:
    """A trial without a score counts against the system, in memory and in the stream, whichever way scores point."""
    if large:
        monkeypatch.setattr(sketch, "LARGE", 4)
        monkeypatch.setattr(stream, "KEY_BYTES", 10**9)
    label = ["bonafide"] * 4 + ["spoof"] * 4
    score = [float("nan"), 0.2, 0.1, 0.3, 0.6, 0.7, 0.8, 0.9]  # a higher one means spoof
    write(pl.DataFrame({"item": list("abcdefgh"), "label": label, "score": score}), tmp_path / "a.parquet")
    reading = {"on_nan": "worst", "higher": "spoof", "score_kind": kind}
    memory = evaluate(str(tmp_path / "a.parquet"), metrics=["roc_auc"], **reading)
    found = evaluate_streamed(str(tmp_path / "a.parquet"), metrics=["roc_auc"], reading=ReadSpec(**reading)).results
    assert memory.one("roc_auc").value == found.one("roc_auc").value == 12 / 16  # the one without a score beats nobody


@pytest.mark.parametrize("engine", ENGINE)
@pytest.mark.parametrize("column", ["score", "label", "item"])
def test_faults_are_those_of_memory(tmp_path: Path, engine: str, column: str) -> None:
    bad = {"score": float("nan"), "label": "bonafied", "item": ""}[column]
    changed = pl.when(pl.int_range(pl.len()) == 70).then(pl.lit(bad)).otherwise(column).alias(column)
    write(simulated(200).with_columns(changed), tmp_path / "a.parquet")
    faults = []
    for call in (
        lambda: evaluate(str(tmp_path / "a.parquet"), None, "asvspoof5"),
        lambda: evaluate_streamed(str(tmp_path / "a.parquet"), "asvspoof5", engine=engine),
    ):
        with pytest.raises(DataError) as caught:
            call()
        faults.append([(f.kind, f.file, f.row, f.column) for f in caught.value.faults])
    assert faults[0] == faults[1] and faults[0][0][2] == 71


def test_an_engine_that_is_none_is_refused(tmp_path: Path) -> None:
    write(simulated(50), tmp_path / "a.parquet")
    with pytest.raises(UnknownName):
        evaluate_streamed(str(tmp_path / "a.parquet"), "asvspoof5", engine="ducks")


@pytest.mark.parametrize("engine", ENGINE)
def test_the_command_counts_by_an_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str) -> None:
    write(simulated(300), tmp_path / "a.parquet")
    asked = ["score", str(tmp_path / "a.parquet"), "-p", "asvspoof5", "--by", "codec"]
    assert run(asked) == 0
    memory = capsys.readouterr().out
    assert run([*asked, "--engine", engine]) == 0
    assert capsys.readouterr().out.replace("choices:stream|", "") == memory


def test_counts_need_no_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(pl.DataFrame({"label": ["bonafide", "spoof"], "score": [1.0, 0.0], "n": [2, 3]}), tmp_path / "a.csv")
    assert (
        run(["score", str(tmp_path / "a.csv"), "-m", "eer", "--counts", "--engine", "polars"]) == UsageError.exit_code
    )
    assert "leave --engine out" in capsys.readouterr().err
