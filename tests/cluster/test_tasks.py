"""Tallies counted by Ray tasks: the same bits as here, whoever is killed; and what must not be merged is not."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cluster_parts import Killed, half, suicide, where

from hitmiss.cli.main import run
from hitmiss.cluster.ray import Cluster
from hitmiss.cluster.tasks import RayTasks
from hitmiss.core.errors import DataError, EnvironmentFault
from hitmiss.core.read_spec import ReadSpec
from hitmiss.evaluation.evaluate import evaluate
from hitmiss.outofcore.binned import Binned
from hitmiss.outofcore.counting import first_pass
from hitmiss.outofcore.plan import Shard, ShardPlan
from hitmiss.outofcore.shard_tally import ShardTally, merge_tallies
from hitmiss.outofcore.stream import evaluate_streamed

pytestmark = pytest.mark.extras
METRICS = ["eer", "min_dcf", "roc_auc", "cllr"]
PLAN = ShardPlan(ReadSpec(), keep=("codec",))


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Shard]:
    """Five files of trials with ties, of different sizes."""
    folder, rng = tmp_path_factory.mktemp("shards"), np.random.default_rng(7)
    for k in range(5):
        n = 300 * (k + 1)
        real = rng.random(n) < 0.3
        frame = pl.DataFrame(
            {
                "item": [f"u{k}_{i}" for i in range(n)],
                "label": np.where(real, "bonafide", "spoof"),
                "score": np.round(rng.normal(size=n) + 2 * real, 2),
                "codec": rng.choice(["NONE", "C01", "C02"], n),
            }
        )
        frame.write_parquet(folder / f"part-{k}.parquet")
    return [Shard(str(path)) for path in sorted(folder.glob("*.parquet"))]


def counted(cluster: Cluster, shards: list[Shard], plan: ShardPlan = PLAN, function: object = first_pass) -> ShardTally:
    return merge_tallies(RayTasks(cluster)(function, [(shard, plan) for shard in shards]))  # type: ignore[arg-type]


def bits(tally: ShardTally) -> object:
    """All that a tally holds."""
    kept = {**tally.cells, (): tally.ids}
    cells = {cell: (own.bins.tobytes(), own.each.tobytes()) for cell, own in kept.items() if isinstance(own, Binned)}
    return tally.shards, cells, tally.findings, tally.noted


def test_scores_beyond_memory_give_the_digits_of_memory(
    cluster: Cluster, shards: list[Shard], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums over all scores: the tasks send them, a few at a time, and whoever asked puts them on disk."""
    from hitmiss.outofcore import coarse_cells, repeated_ids, stream
    from hitmiss.stats import sketch

    paths = [shard.path for shard in shards]
    asked = {"metrics": METRICS, "by": ["codec"], "bootstrap": 20, "score_kind": "llr"}
    monkeypatch.setattr(sketch, "LARGE", 4)
    expected = evaluate(paths, None, "asvspoof5", **asked)
    monkeypatch.setattr(stream, "KEY_BYTES", 10**9)
    monkeypatch.setattr(coarse_cells, "STRETCH_BYTES", 10**5)
    monkeypatch.setattr(repeated_ids, "HASH_BYTES", 10**5)
    asked["reading"] = {"score_kind": asked.pop("score_kind")}
    found = evaluate_streamed(paths, "asvspoof5", run=RayTasks(cluster), memory=10**7, **asked)
    assert found.results.estimates == expected.estimates


def test_results_come_in_order_from_other_processes(cluster: Cluster) -> None:
    assert list(RayTasks(cluster)(half, [(2 * i,) for i in range(50)])) == list(range(50))
    places = list(RayTasks(cluster)(where, [(i,) for i in range(6)]))
    assert os.getpid() not in {pid for pid, _ in places}
    assert {folder for _, folder in places} == {str(Path.cwd())}, "relative paths mean what they mean here"


def test_few_results_lie_about(cluster: Cluster) -> None:
    asked: list[int] = []

    def numbers() -> Iterator[tuple[int]]:
        for i in range(100):
            asked.append(i)
            yield (2 * i,)

    results = RayTasks(cluster)(half, numbers())  # type: ignore[arg-type]
    next(results)
    assert len(asked) <= 2 * cluster.cpus, "the next tasks are begun when results have been taken"
    results.close()  # type: ignore[attr-defined]


def test_stopping_early_again_and_again_ends_nothing(cluster: Cluster) -> None:
    """A cancelled task that ended at that moment made Ray abort this process, once in some hundred times."""
    for _ in range(100):
        results = RayTasks(cluster)(half, [(2 * i,) for i in range(20)])
        assert next(results) == 0
        results.close()  # type: ignore[attr-defined]


def test_errors_come_back_as_they_were_raised(cluster: Cluster) -> None:
    with pytest.raises(DataError, match="3 is odd") as caught:
        list(RayTasks(cluster)(half, [(2,), (3,)]))
    assert caught.value.faults[0].row == 3
    with pytest.raises(EnvironmentFault, match=r"a\.parquet: 4 processes died over it"):
        list(RayTasks(cluster)(suicide, [(Shard("a.parquet"),)]))


def test_a_killed_worker_changes_no_bit(cluster: Cluster, shards: list[Shard], tmp_path: Path) -> None:
    here = merge_tallies(first_pass(shard, PLAN) for shard in shards)
    dying = Killed(first_pass, "part-3", str(tmp_path / "marker"))
    there = counted(cluster, shards, function=dying)
    assert (tmp_path / "marker").exists(), "a worker was killed with the shard in its hands"
    assert bits(there) == bits(here)
    assert bits(counted(cluster, shards[::-1])) == bits(here), "in any order"


def test_figures_are_those_of_one_process(cluster: Cluster, shards: list[Shard]) -> None:
    paths = [shard.path for shard in shards]
    asked = {"metrics": METRICS, "by": ["codec"], "bootstrap": 100, "seed": 3}
    kind = {"score_kind": "llr"}
    there = evaluate_streamed(paths, run=RayTasks(cluster), reading=ReadSpec(**kind), **asked)
    memory = evaluate(paths, **kind, **asked)
    assert len(memory) > 12 and there.results.estimates == memory.estimates


def test_what_does_not_belong_together_is_refused(cluster: Cluster, shards: list[Shard]) -> None:
    with pytest.raises(DataError, match="given twice"):
        counted(cluster, [*shards, shards[1]])


@pytest.mark.parametrize("engine", ["ray", "duckdb"])
def test_engines_of_the_command_line_count_on_the_cluster(
    engine: str, cluster: Cluster, shards: list[Shard], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.machines == 1  # `auto` means the cluster that the process has joined
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    words = ["score", *(shard.path for shard in shards), "-m", "eer", "-m", "roc_auc", "--by", "codec", "--json"]
    assert run(words) == 0
    memory = json.loads(capsys.readouterr().out)
    more = ["--engine", "duckdb", "--cluster", "auto"] if engine == "duckdb" else ["--engine", "ray"]
    assert run([*words, *more]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["estimates"] == memory["estimates"] and f"cluster: {cluster}" in printed.err
