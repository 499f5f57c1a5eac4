"""Scoring on a real Ray cluster: the run store of one process, whatever dies on the way."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from cluster_parts import AfterTwo, Coarse, HostDetector, Levels
from detect_parts import KillsOnce, broken_clip, clip, corpus, deadly_clip, expected, louder, slow_clip, two_logits

import hitmiss as hm
from hitmiss.cluster.ray import Cluster
from hitmiss.core.errors import DataError, EnvironmentFault, IncompleteRun, UsageError
from hitmiss.core.run_spec import RunSpec
from hitmiss.detection.cluster import RayDetector
from hitmiss.detection.detector import as_detector
from hitmiss.detection.loop import run_detector
from hitmiss.detection.opening import open_detector
from hitmiss.detection.settings import Outcome, Settings
from hitmiss.io.manifest import Manifest
from hitmiss.runs.manifest import load_manifest, verify
from hitmiss.runs.progress import Progress

pytestmark = pytest.mark.extras
LEVEL = partial(as_detector, two_logits, sample_rate=16000)


def on_cluster(
    cluster: Cluster, output: Path, manifest: Manifest, opening: Any = LEVEL, load: Any = clip, **given: Any
) -> tuple[Outcome, RayDetector]:
    """A run on two processes of the cluster."""
    work = {name: given.pop(name) for name in ("transform", "fit", "report") if name in given}
    spec = RunSpec(resume=given.pop("resume", False))
    with RayDetector(cluster, opening, actors=given.pop("actors", 2), decoders=given.get("workers", 0)) as fleet:
        return run_detector(fleet, manifest, Settings(**given), spec, output=output, load=load, **work), fleet


def alone(output: Path, manifest: Manifest, opening: Any = LEVEL, load: Any = clip, **given: Any) -> Outcome:
    """The same in this process."""
    work = {name: given.pop(name) for name in ("transform", "fit") if name in given}
    spec = RunSpec(resume=given.pop("resume", False))
    return run_detector(opening(), manifest, Settings(**given), spec, output=output, load=load, **work)


def positions(folder: Path) -> Counter[int]:
    """How often each item stands in the segments."""
    lines = [line for path in folder.glob("items/*.jsonl") for line in path.read_bytes().splitlines()]
    return Counter(json.loads(line)["at"] for line in lines)


@pytest.mark.parametrize(
    "given",
    [{}, {"window": 4000, "hop": 2000, "pooling": "median", "transform": louder}],
    ids=["plain", "windows of changed clips"],
)
def test_the_run_is_that_of_one_process(cluster: Cluster, tmp_path: Path, given: dict[str, Any]) -> None:
    manifest = corpus(60, codec=["quiet", "loud"] * 30)
    outcome, _ = on_cluster(cluster, tmp_path / "many", manifest, **given)
    here = alone(tmp_path / "one", manifest, **given)
    assert (outcome.n_scored, outcome.is_complete, outcome.alarms) == (60, True, here.alarms)
    for name in ("trials.parquet", "windows.parquet"):
        if (tmp_path / "one" / name).exists():
            assert pl.read_parquet(tmp_path / "many" / name).equals(pl.read_parquet(tmp_path / "one" / name))
    many, one = (load_manifest(tmp_path / name) for name in ("many", "one"))
    kept = ("config", "items_digest", "n_items", "kind", "state")
    assert {k: many[k] for k in kept} == {k: one[k] for k in kept}, "the same provenance"
    assert many["facts"].keys() == one["facts"].keys() and many["facts"]["invariance"] == one["facts"]["invariance"]
    assert verify(tmp_path / "many") == [] and set(positions(tmp_path / "many").values()) == {1}


def test_the_effect_of_a_precision_is_measured_as_in_one_process(cluster: Cluster, tmp_path: Path) -> None:
    manifest = corpus(20)
    outcome, _ = on_cluster(cluster, tmp_path / "many", manifest, Coarse, actors=1)
    here = alone(tmp_path / "one", manifest, Coarse)
    told = [[n for n in found.notes if n.startswith("bfloat16: log-odds of 8 clips")] for found in (outcome, here)]
    assert told[0] == told[1] and len(told[0]) == 1


def test_embeddings_come_along(cluster: Cluster, tmp_path: Path) -> None:
    manifest = corpus(40)
    on_cluster(cluster, tmp_path / "many", manifest, Levels)
    alone(tmp_path / "one", manifest, Levels)
    with np.load(tmp_path / "many" / "embeddings.npz") as many, np.load(tmp_path / "one" / "embeddings.npz") as one:
        assert set(many.files) == set(one.files) and many["level"].shape == (40, 3)
        assert all(np.array_equal(many[name], one[name]) for name in one.files)


def test_a_process_killed_from_outside_loses_and_doubles_nothing(
    cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    manifest, fleets, killed = corpus(120), [], []

    def kill_one(progress: Progress) -> None:
        """After the first results, in the middle of the work of both."""
        if progress.n_done and not killed:
            victim = next(member.about for member in fleets[0].members if member.about is not None)
            os.kill(victim.pid, signal.SIGKILL)
            killed.append(victim.pid)

    with RayDetector(cluster, LEVEL, actors=2) as fleet:
        fleets.append(fleet)
        outcome = run_detector(fleet, manifest, Settings(), output=tmp_path / "run", load=slow_clip, report=kill_one)
    assert killed and fleet.deaths == 1 and "1 died" in fleet.words()
    assert positions(tmp_path / "run") == Counter(range(120)), "none lost, none doubled"
    assert (outcome.n_scored, outcome.n_failed) == (120, 0)
    assert hm.read(str(tmp_path / "run")).score.tolist() == expected(manifest).tolist()
    assert capfd.readouterr() == ("", ""), "Ray has nothing to say about it"


@pytest.mark.parametrize("workers", [0, 1], ids=["while scoring", "while decoding"])
def test_a_crash_in_the_middle_of_a_part_loses_and_doubles_nothing(
    cluster: Cluster, tmp_path: Path, workers: int
) -> None:
    manifest, load = corpus(80), KillsOnce("c0042", str(tmp_path / "marker"))
    outcome, fleet = on_cluster(cluster, tmp_path / "run", manifest, load=load, workers=workers)
    assert fleet.deaths == (0 if workers else 1) and (tmp_path / "marker").exists(), (
        "a worker is replaced on its machine"
    )
    assert positions(tmp_path / "run") == Counter(range(80)) and outcome.n_failed == 0
    assert hm.read(str(tmp_path / "run")).score.tolist() == expected(manifest).tolist()


def test_an_item_that_kills_every_process_is_to_blame_alone(cluster: Cluster, tmp_path: Path) -> None:
    outcome, fleet = on_cluster(cluster, tmp_path / "run", corpus(12), load=deadly_clip)
    assert (outcome.n_scored, outcome.n_failed) == (11, 1) and fleet.deaths >= 3
    assert outcome.failures == (("c0005", "3 processes that scored it died (killed, or a crash in native code)"),)


def test_bad_files_are_listed_as_in_one_process(cluster: Cluster, tmp_path: Path) -> None:
    outcome, _ = on_cluster(cluster, tmp_path / "many", corpus(50), load=broken_clip)
    here = alone(tmp_path / "one", corpus(50), load=broken_clip)
    assert outcome.failures == here.failures and outcome.n_failed == 5
    tables = [(tmp_path / name / "failures.tsv").read_bytes() for name in ("many", "one")]
    assert tables[0] == tables[1]


def test_when_all_fail_the_run_stops_early(cluster: Cluster, tmp_path: Path) -> None:
    def nothing(row: Any) -> Any:
        raise ValueError(f"{row['file']}: the disk is not mounted")

    with pytest.raises(DataError, match=r"first 20 items all failed .*the disk is not mounted"):
        on_cluster(cluster, tmp_path / "run", corpus(500), load=nothing)
    assert load_manifest(tmp_path / "run")["state"] == "stopped"


def test_begun_by_one_process_and_ended_by_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    """And the other way round: the run store does not know who scores."""

    def stop(progress: Progress) -> None:
        if progress.n_done >= 20:
            raise KeyboardInterrupt

    def on_both(cluster: Cluster, output: Path, manifest: Manifest) -> None:
        on_cluster(cluster, output, manifest, report=stop)

    def in_one(_: Cluster, output: Path, manifest: Manifest) -> None:
        run_detector(LEVEL(), manifest, Settings(batch_items=4), output=output, load=clip, report=stop)

    for name, begin in (("a", in_one), ("b", on_both)):
        with pytest.raises(KeyboardInterrupt):
            begin(cluster, tmp_path / name, corpus(100))
        assert load_manifest(tmp_path / name)["state"] == "interrupted"
        with pytest.raises(IncompleteRun, match=r"window: null before, 4000 now"):
            alone(tmp_path / name, corpus(100), resume=True, window=4000)
    on_cluster(cluster, tmp_path / "a", corpus(100), resume=True)
    alone(tmp_path / "b", corpus(100), resume=True)
    for name in ("a", "b"):
        assert positions(tmp_path / name) == Counter(range(100))
        assert hm.read(str(tmp_path / name)).score.tolist() == expected(corpus(100)).tolist()


def test_what_is_wrong_on_the_cluster_is_told_in_one_sentence(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"there is no model .*nowhere\.onnx"):
        on_cluster(cluster, tmp_path / "a", corpus(4), partial(open_detector, str(tmp_path / "nowhere.onnx")), actors=1)
    with pytest.raises(UsageError, match=r"do not open the same detector: pid: \d+ before, \d+ now; give device"):
        on_cluster(cluster, tmp_path / "b", corpus(40), partial(HostDetector, tmp_path), load=AfterTwo(tmp_path))
    with pytest.raises(UsageError, match="5 output columns"):
        on_cluster(cluster, tmp_path / "c", corpus(4), partial(as_detector, wide), actors=1)
    with pytest.raises(UsageError, match="the cluster has no GPU"):
        RayDetector(cluster, LEVEL, device="cuda")
    monkeypatch.setattr("hitmiss.detection.cluster.FUTILE", 2)
    with pytest.raises(EnvironmentFault, match="3 processes died one after the other"):
        on_cluster(cluster, tmp_path / "d", corpus(64), load=kill_always, actors=1)


def wide(batch: Any) -> Any:
    """Five columns, of which nobody says what they are."""
    return np.tile(two_logits(batch)[:, :1], 5)


def kill_always(row: Any) -> Any:
    """No item survives this."""
    os.kill(os.getpid(), signal.SIGKILL)
    return row
