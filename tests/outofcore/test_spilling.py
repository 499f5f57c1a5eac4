"""What memory does not hold goes to disk for a while: nothing is lost, nothing stays, and the figures are the same."""

from __future__ import annotations

import pickle
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.outofcore.conftest import processes, simulated, write, write_shards

from hitmiss.core.errors import DataError, EnvironmentFault, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.evaluation.evaluate import evaluate
from hitmiss.outofcore import coarse_cells, repeated_ids
from hitmiss.outofcore.disk import Disk
from hitmiss.outofcore.stream import evaluate_streamed

LITTLE = 10**7
ASKED: dict[str, Any] = {"metrics": ["eer", "min_dcf", "roc_auc", "min_cllr"], "by": ["codec"]}


def elsewhere(function: Any, arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """An executor like a cluster's: what is given travels, and its disk is another one."""
    for values in arguments:
        yield pickle.loads(pickle.dumps(function(*pickle.loads(pickle.dumps(values)))))


def test_a_disk_without_room_is_said_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="GB of temporary disk space are needed"):
        Disk(str(tmp_path), 10).refuse_small(10**17)
    with pytest.raises(UsageError, match="there is no such folder"):
        Disk(str(tmp_path / "none"), 10).refuse_small(1)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("few_are_many")
def test_a_disk_that_fills_up_is_said_and_nothing_stays(tmp_path: Path) -> None:
    """The limit on the size of a file makes the same call fail that a full disk does, after some of it is written."""
    write(simulated(3000), tmp_path / "a.parquet")
    (tmp_path / "scratch").mkdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        with pytest.raises(EnvironmentFault) as err:
            evaluate_streamed(
                str(tmp_path / "a.parquet"), "asvspoof5", memory=LITTLE, scratch=str(tmp_path / "scratch"), **ASKED
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert err.value.code == "no-room"
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("kind", ["normal", "tied"])
@pytest.mark.parametrize("suffix", [".parquet", ".tsv"])
def test_whoever_puts_them_there_the_figures_are_the_same(tmp_path: Path, suffix: str, kind: str) -> None:
    paths = list(map(str, write_shards(simulated(5000, kind=kind), tmp_path / "in", suffix, 3)))
    (tmp_path / "scratch").mkdir()
    here = evaluate_streamed(paths, "asvspoof5", memory=LITTLE, scratch=str(tmp_path / "scratch"), **ASKED)
    there = evaluate_streamed(paths, "asvspoof5", memory=LITTLE, run=elsewhere, **ASKED)
    assert here.results == there.results
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.usefixtures("few_are_many")
def test_a_file_that_is_read_in_another_way_half_way_counts_once(tmp_path: Path) -> None:
    frame = simulated(150_000).with_columns(
        codec=pl.when(pl.int_range(pl.len()) > 149_900).then(pl.lit("LATE")).otherwise("codec"),
        score=pl.when(pl.int_range(pl.len()) == 149_990).then(float("nan")).otherwise("score"),
    )
    write(frame, tmp_path / "a.parquet")
    asked = {"metrics": ["roc_auc"], "by": ["codec"]}
    whole = evaluate(str(tmp_path / "a.parquet"), None, "asvspoof5", on_nan="drop", **asked)
    found = evaluate_streamed(
        str(tmp_path / "a.parquet"), "asvspoof5", memory=10**9, reading=ReadSpec(on_nan="drop"), **asked
    )
    assert [(e.value, e.n) for e in found.results] == [(e.value, e.n) for e in whole]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_when_it_is_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    write(simulated(3000), tmp_path / "a.parquet")
    (tmp_path / "scratch").mkdir()
    script = f"""
import os
from hitmiss.outofcore import coarse_cells, stream
from hitmiss.stats import sketch
sketch.LARGE, stream.KEY_BYTES, coarse_cells.STRETCH_BYTES = 4, 10**9, 10**4
def interrupted(self, *given):
    assert len(self.cells[0].parts[0].bins)
    os.kill(os.getpid(), {int(number)})
coarse_cells.CoarseCells._sum = interrupted
from hitmiss.cli.main import run
arguments = ["-p", "asvspoof5", "-m", "roc_auc", "--stream", "--memory", "10MB", "--scratch", {str(tmp_path / "scratch")!r}]
raise SystemExit(run(["score", {str(tmp_path / "a.parquet")!r}, *arguments]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == (-number if number == signal.SIGKILL else 130), done.stderr
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("where", ["here", "processes", "elsewhere"])
def test_repeated_ids_are_found_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    run: Any = {"here": None, "processes": processes, "elsewhere": elsewhere}[where]
    asked: dict[str, Any] = {"memory": LITTLE, **({"run": run} if run else {}), "metrics": ["eer"]}
    monkeypatch.setattr(repeated_ids, "HASH_BYTES", 10**4)
    frame = simulated(3000)
    paths = write_shards(frame, tmp_path, ".parquet", 3)
    evaluate_streamed(list(map(str, paths)), "asvspoof5", **asked)
    pl.concat([pl.read_parquet(paths[2]), frame[700:701]]).write_parquet(paths[2])
    with pytest.raises(DataError, match=r"2 rows of repeated ids.*'E_0000700'"):
        evaluate_streamed(list(map(str, paths)), "asvspoof5", **asked)
    last = frame[700:701].with_columns(item=pl.lit(""))
    pl.concat([pl.read_parquet(paths[2])[:-1], last]).write_parquet(paths[2])
    with pytest.raises(DataError, match="1 row without an id"):
        evaluate_streamed(list(map(str, paths)), "asvspoof5", **asked)


@pytest.mark.parametrize("at", [0, 69_000])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.usefixtures("few_are_many")
def test_order_of_ids_excuses_no_repeat(tmp_path: Path, suffix: str, at: int) -> None:
    frame = simulated(70_000)
    item = frame["item"].to_list()
    item[at], item[at + 1] = item[at + 1], item[at]
    write(frame.with_columns(item=pl.Series(item)), tmp_path / f"a{suffix}")
    evaluate_streamed(str(tmp_path / f"a{suffix}"), "asvspoof5", memory=LITTLE, metrics=["eer"])
    item[at + 1] = item[at + 2]
    write(frame.with_columns(item=pl.Series(item)), tmp_path / f"a{suffix}")
    with pytest.raises(DataError, match="2 rows of repeated ids"):
        evaluate_streamed(str(tmp_path / f"a{suffix}"), "asvspoof5", memory=LITTLE, metrics=["eer"])
    write(frame[:100], tmp_path / f"b{suffix}")  # in order, and all of them in the other shard too
    with pytest.raises(DataError, match="repeated ids"):
        evaluate_streamed(str(tmp_path / f"*{suffix}"), "asvspoof5", memory=LITTLE, metrics=["eer"])


@pytest.mark.usefixtures("few_are_many")
def test_scores_that_many_share_are_grouped_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stretch cannot be cut where one score is that of more trials than the memory holds: it comes as counts."""
    monkeypatch.setattr(coarse_cells, "STRETCH_BYTES", 10**6)
    write(simulated(3000).with_columns(score=(pl.int_range(pl.len()) % 7) / 8), tmp_path / "a.parquet")
    whole = evaluate(str(tmp_path / "a.parquet"), None, "asvspoof5", **ASKED)
    found = evaluate_streamed(str(tmp_path / "a.parquet"), "asvspoof5", memory=LITTLE, **ASKED).results
    for x, y in zip(whole, found, strict=True):
        assert y.value == pytest.approx(x.value, rel=1e-12)


@pytest.mark.usefixtures("few_are_many")
def test_a_file_that_is_written_to_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(simulated(3000), path)

    def rewriting(function: Any, arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        for values in arguments:
            found = function(*values)
            write(simulated(3000, seed=1), path)
            yield found

    with pytest.raises(DataError, match=r"a\.parquet changed while it was read"):
        evaluate_streamed(str(path), "asvspoof5", memory=LITTLE, run=rewriting, metrics=["eer"])
