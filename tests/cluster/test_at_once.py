"""Tallies that the processes make while they score: the figures of the run's table, and never a trial twice."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import polars as pl
import pytest
from detect_parts import KillsOnce, broken_clip, clip, corpus, two_logits

from hitmiss.cli.main import run
from hitmiss.cluster.ray import Cluster
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detection.cluster import Fleet
from hitmiss.detection.detector import as_detector
from hitmiss.detection.loop import run_detector
from hitmiss.detection.outputs import Extraction
from hitmiss.detection.scoring import Settings
from hitmiss.evaluation.protocol import evaluate
from hitmiss.io.manifest import Manifest, read_manifest
from hitmiss.outofcore.at_once import Tallying, evaluate_tallies, settle
from hitmiss.outofcore.plan import ShardTally, sealed

LOGITS = Settings(extraction=Extraction(kind="logit"))
ASKED = {"metrics": ["eer", "min_dcf", "roc_auc"], "by": ["codec"], "bootstrap": 50, "seed": 1}


def coded(n: int = 90) -> Manifest:
    return corpus(n, codec=["NONE", "C01", "C02"] * (n // 3))


def save(folder: Path, tallies: dict[str, ShardTally]) -> None:
    """As a run that has ended leaves them."""
    for name, tally in zip(tallies, sealed(list(tallies.values())), strict=True):
        (folder / f"{name}.tally").write_bytes(tally.to_bytes())


def counted(cluster: Cluster, folder: Path, load: object = clip) -> Tallying:
    """A run on two processes that count what they score."""
    with Fleet(cluster, partial(as_detector, two_logits, sample_rate=16000), actors=2) as fleet:
        fleet.tallying = Tallying.of(coded(), LOGITS, ["codec"])
        run_detector(fleet, coded(), LOGITS, output=folder, load=load)  # type: ignore[arg-type]
        return fleet.tallying


@pytest.mark.extras
def test_tallies_of_a_run_give_its_figures_whoever_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    tallying = counted(cluster, folder, KillsOnce("c0033", str(tmp_path / "marker")))
    assert (tmp_path / "marker").exists()
    n = len(list((folder / "tallies").iterdir()))
    assert n > 1 and settle(folder, tallying) == n, "they are the whole run as they are"
    found = evaluate_tallies(str(folder / "tallies" / "*.tally"), **ASKED)
    assert found.results.estimates == evaluate(str(folder), **ASKED).estimates

    lost = sorted((folder / "tallies").iterdir())[1]
    twice = lost.with_name("999999999.tally")
    twice.write_bytes(lost.read_bytes())
    with pytest.raises(DataError, match="given twice"):
        evaluate_tallies(str(folder / "tallies" / "*.tally"), **ASKED)
    assert settle(folder, tallying) == 1, "counted afresh from the table"
    assert evaluate_tallies(str(folder / "tallies" / "*.tally"), **ASKED).results.estimates == found.results.estimates
    sorted((folder / "tallies").iterdir())[0].unlink()
    assert settle(folder, tallying) == 1
    assert evaluate_tallies(str(folder / "tallies" / "*.tally"), **ASKED).results.estimates == found.results.estimates


@pytest.mark.extras
def test_items_that_failed_are_told_of(cluster: Cluster, tmp_path: Path) -> None:
    tallying = counted(cluster, tmp_path / "run", broken_clip)
    settle(tmp_path / "run", tallying)
    found = evaluate_tallies(str(tmp_path / "run" / "tallies" / "*.tally"), **ASKED)
    whole = evaluate(str(tmp_path / "run"), **ASKED)
    assert found.results.estimates == whole.estimates
    assert "failed(9)" in found.results.signature and "failed(9)" in whole.signature


def test_tallies_of_tables_merge_as_the_tables_do(tmp_path: Path) -> None:
    """Without a cluster: what a process does with its part, put together, is what one does with all."""
    table = pl.DataFrame(
        {
            "item": [f"u{i}" for i in range(60)],
            "label": ["real", "fake"] * 30,
            "codec": ["NONE", "C01", "C02"] * 20,
            "score": [((7 * i) % 23) / 8 + (i % 2 == 0) for i in range(60)],
        }
    )
    tallying = Tallying.of(coded(), LOGITS, ["codec"])
    save(
        tmp_path,
        {
            name: tallying.counted(part)
            for name, part in zip("abc", (table[:17], table[17:40], table[40:]), strict=True)
        },
    )
    save(tmp_path, {"again": tallying.counted(table[10:20])})
    table.write_parquet(tmp_path / "all.parquet")
    found = evaluate_tallies([tmp_path / f"{name}.tally" for name in "bca"], **ASKED)
    whole = evaluate(str(tmp_path / "all.parquet"), score_kind="logit", positive="real", negative="fake", **ASKED)
    assert found.results.estimates == whole.estimates and len(whole) > 9
    with pytest.raises(DataError, match=r"1 of the 3 tallies of run [0-9a-f]+ are missing"):
        evaluate_tallies([tmp_path / "a.tally", tmp_path / "c.tally"], **ASKED)
    with pytest.raises(DataError, match="10 items are in more than one of the tallies"):
        evaluate_tallies([tmp_path / f"{name}.tally" for name in ("a", "b", "c", "again")], **ASKED)
    other = Tallying.of(coded(), LOGITS, [])
    save(tmp_path, {"other": other.counted(table[:17])})
    with pytest.raises(DataError, match="counted with other settings"):
        evaluate_tallies([tmp_path / "other.tally", tmp_path / "b.tally"], **ASKED)
    with pytest.raises(DataError, match="another version of hitmiss"):
        tally = tallying.counted(table[:17])
        facts = {**tally.shards[0].facts, "positive": "fake", "negative": "real"}
        tally.shards[0].facts.clear()  # type: ignore[attr-defined]
        tally.shards[0].facts.update(facts)  # type: ignore[attr-defined]
        save(tmp_path, {"turned": tally})
        evaluate_tallies([tmp_path / "turned.tally"], **ASKED)


def test_scored_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pl.DataFrame(
        {
            "item": [f"u{i}" for i in range(40)],
            "label": ["real", "fake"] * 20,
            "codec": ["NONE", "C01"] * 10 + ["C01", "NONE"] * 10,
            "score": [i % 7 / 4 + (i % 2 == 0) for i in range(40)],
        }
    )
    tallying = Tallying.of(coded(), LOGITS, ["codec"])
    save(tmp_path, {"a": tallying.counted(table[:15]), "b": tallying.counted(table[15:])})
    table.write_parquet(tmp_path / "all.parquet")
    words = ["-m", "eer", "-m", "roc_auc", "--by", "codec", "--bootstrap", "50"]
    assert run(["score", str(tmp_path / "*.tally"), *words]) == 0
    found = capsys.readouterr().out.splitlines()
    assert run(["score", str(tmp_path / "all.parquet"), "--score-kind", "logit", *words]) == 0
    assert found[:-1] == capsys.readouterr().out.splitlines()[:-1], "all but the signature"
    assert run(["score", str(tmp_path / "*.tally"), *words, "--threshold", "0.5"]) == 2
    assert "--threshold was settled when the tallies were made" in capsys.readouterr().err


def test_what_cannot_be_counted_at_once_is_refused() -> None:
    with pytest.raises(UsageError, match="outputs='logit' or probability"):
        Tallying.of(coded(), Settings(), ["codec"])
    with pytest.raises(UnknownName, match=r"column for tally 'codc'; did you mean 'codec'"):
        Tallying.of(coded(), LOGITS, ["codc"])
    with pytest.raises(UsageError, match="no labels"):
        Tallying.of(read_manifest(pl.DataFrame({"file": ["1.wav"]})), LOGITS, [])
