"""The folder of a finished run, streamed: read as the run says, and refused where it is unfinished or changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.outofcore.conftest import simulated
from tests.outofcore.test_key import assert_alike

from hitmiss.cli.main import run
from hitmiss.evaluation.evaluate import evaluate
from hitmiss.outofcore.stream import evaluate_streamed
from hitmiss.runs.store import start


def finished(folder: Path, table: pl.DataFrame, **facts: Any) -> str:
    with start(folder, kind="detect", config={"a": 1}, items=table["item"].to_list()) as begun:
        for at in begun.todo():
            begun.add(at, {"score": 0.0})
        begun.finish(table, **{"score_kind": "logit", "n_scored": table.height, "n_failed": 0, **facts})
    return str(folder)


@pytest.mark.parametrize("n_failed", [0, 3])
def test_a_run_is_read_as_it_says(tmp_path: Path, n_failed: int) -> None:
    facts = {
        "positive": "bonafide",
        "negative": "spoof",
        "has_labels": True,
        "n_failed": n_failed,
        "notes": ["made in haste"],
    }
    folder = finished(tmp_path / "run", simulated(400), **facts)
    asked: dict[str, Any] = {"by": ["codec"], "bootstrap": 20}
    memory, stream = evaluate(folder, None, "asvspoof5", **asked), evaluate_streamed(folder, "asvspoof5", **asked)
    assert_alike(memory, stream.results)
    assert "kind:logit" in memory.signature and "made in haste" in stream.results.warnings
    assert stream.trials.header.coverage == ((400, 403) if n_failed else None)


def test_a_run_without_labels_takes_a_key(tmp_path: Path) -> None:
    whole = simulated(300)
    folder = finished(
        tmp_path / "run", whole.select("item", "score"), positive="bonafide", negative="spoof", has_labels=False
    )
    whole.drop("score").write_csv(tmp_path / "key.tsv", separator="\t")
    asked: dict[str, Any] = {"by": ["codec"], "bootstrap": 20}
    key = str(tmp_path / "key.tsv")
    assert_alike(
        evaluate(folder, key, "asvspoof5", **asked), evaluate_streamed(folder, "asvspoof5", key=key, **asked).results
    )


def test_a_run_that_was_changed_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = finished(tmp_path / "run", simulated(100), positive="bonafide", negative="spoof", has_labels=True)
    simulated(100, seed=2).write_parquet(tmp_path / "run" / "trials.parquet")
    said = []
    for how in ([], ["--stream"]):
        assert run(["score", folder, "-p", "asvspoof5", *how]) == 3
        said.append(capsys.readouterr().err)
    assert said[0] == said[1] and "trials.parquet" in said[0]


def test_several_runs_are_parts_of_one_evaluation(tmp_path: Path) -> None:
    whole, facts = simulated(600), {"positive": "bonafide", "negative": "spoof", "has_labels": True}
    parts = {"one": whole[:250], "two": whole[250:430], "three": whole[430:]}
    folders = [
        finished(tmp_path / name, part, n_failed=at, notes=["made in haste"], **facts)
        for at, (name, part) in enumerate(parts.items())
    ]
    everything = finished(tmp_path / "all", whole, n_failed=3, notes=["made in haste"], **facts)
    asked: dict[str, Any] = {"by": ["codec"], "bootstrap": 20}
    once = evaluate(everything, None, "asvspoof5", **asked)
    memory, stream = evaluate(folders, None, "asvspoof5", **asked), evaluate_streamed(folders, "asvspoof5", **asked)
    assert_alike(memory, stream.results)
    assert memory.estimates == once.estimates and "failed(3)" in memory.signature
    assert stream.trials.header.coverage == (600, 603) and stream.results.warnings == once.warnings


def test_an_item_of_two_runs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, facts = simulated(100), {"positive": "bonafide", "negative": "spoof", "has_labels": True}
    one = finished(tmp_path / "one", whole[:60], **facts)
    two = finished(tmp_path / "two", whole[59:].reverse(), **facts)
    other = finished(tmp_path / "other", whole[60:], **(facts | {"score_kind": "llr"}))
    item = whole["item"][59]
    for how in ([], ["--stream"]):
        assert run(["score", one, two, "-p", "asvspoof5", *how]) == 3
        assert item in capsys.readouterr().err
        assert run(["score", one, other, "-p", "asvspoof5", *how]) == 2
        assert "other has other classes, columns or kinds of scores than" in capsys.readouterr().err
        assert run(["score", one, str(tmp_path / "x.csv"), "-p", "asvspoof5", *how]) == 2
        assert "x.csv is not the folder of a run" in capsys.readouterr().err
