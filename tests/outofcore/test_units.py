"""Units drawn as wholes from counted trials: the same draws, the same bits as in memory."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.nightly import by_day
from tests.outofcore.conftest import simulated, write, write_shards
from tests.outofcore.test_key import assert_alike
from tests.outofcore.test_spilling import elsewhere

from hitmiss.cli.main import run
from hitmiss.core.errors import EnvironmentFault
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import Results
from hitmiss.engine.counted import TalliedTrials
from hitmiss.evaluation.evaluate import evaluate
from hitmiss.outofcore import shard_tally, stream, units
from hitmiss.outofcore.stream import evaluate_streamed
from hitmiss.stats import sketch, stored, sums
from hitmiss.stats import units as drawn_units


def spoken(n: int, kind: str = "normal", seed: int = 0) -> pl.DataFrame:
    """Trials of speakers, whose scores go together."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, 29, n)
    frame = simulated(n, seed, kind).with_columns(speaker=pl.Series([f"S{i:02d}" for i in who]))
    return frame.with_columns(pl.col("score") + pl.Series(np.round(rng.normal(size=29), 1)[who]))


@pytest.mark.parametrize("kind", ["normal", "tied", "infinite"])
@pytest.mark.parametrize("unit", ["speaker", "speaker,attack", "codec"])
def test_every_form_of_figure_has_the_interval_of_memory(tmp_path: Path, kind: str, unit: str) -> None:
    paths = list(map(str, write_shards(spoken(2500, kind), tmp_path, ".parquet", 3)))
    metrics = ["eer", "min_dcf", "roc_auc", "tpr_at_fpr", "dcf_at(threshold=0.25)", "average_precision"]
    asked: dict[str, Any] = {"metrics": metrics, "by": ["codec", "attack"], "bootstrap": 40, "unit": unit}
    assert_alike(evaluate(paths, None, "asvspoof5", **asked), evaluate_streamed(paths, "asvspoof5", **asked).results)


@pytest.mark.parametrize("interval", ["auto", "percentile", "bca"])
def test_sums_over_units_are_exact(tmp_path: Path, interval: str) -> None:
    paths = list(map(str, write_shards(spoken(2000), tmp_path, ".csv", 2)))
    asked: dict[str, Any] = {
        "metrics": ["cllr", "act_dcf", "min_cllr"],
        "by": ["codec"],
        "bootstrap": 40,
        "unit": "speaker",
        "interval": interval,
    }
    memory = evaluate(paths, None, "asvspoof5", score_kind="llr", **asked)
    assert_alike(memory, evaluate_streamed(paths, "asvspoof5", reading=ReadSpec(score_kind="llr"), **asked).results)


def test_decisions_of_units_are_counted(tmp_path: Path) -> None:
    from hitmiss.core.design import Design
    from hitmiss.derive.decisions import at_threshold
    from hitmiss.evaluation.protocol import measure_trials, read_trials

    paths = list(map(str, write_shards(spoken(1500), tmp_path, ".tsv", 2)))
    asked: dict[str, Any] = {"metrics": ["f1", "accuracy"], "by": ["codec"], "bootstrap": 40, "unit": "speaker"}
    memory = measure_trials(at_threshold(read_trials(paths, None, None), 0.25), Design.of(**asked))
    assert_alike(memory, evaluate_streamed(paths, threshold=0.25, **asked).results)


@contextmanager
def little_memory() -> Iterator[None]:
    """Every score is too much for memory, and only a few trials are looked at at a time."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(sketch, "LARGE", 4)
        changed.setattr(stream, "UNIT_BYTES", 10**9)
        changed.setattr(stream, "KEY_BYTES", 10**9)
        for name, few in (("RUN", 400), ("STRETCH", 90), ("STEP", 8)):
            changed.setattr(stored, name, few)
        changed.setattr(drawn_units, "PART", 128)
        changed.setattr(sums, "PART", 128)
        changed.setattr(drawn_units, "OPEN_AT_ONCE", 512)
        yield


def beyond_memory(*given: Any, **asked: Any) -> Results:
    """The figures from trials on disk."""
    with little_memory():
        found = evaluate_streamed(*given, **asked)
    assert isinstance(found.trials, TalliedTrials) and isinstance(found.trials.scored, units.UnitCells)
    return found.results


FORMS = ["eer", "eer(ties=grouped)", "min_dcf", "roc_auc", "tpr_at_fpr", "dcf_at(threshold=0.25)", "average_precision"]


@pytest.mark.parametrize("kind", by_day("tied", of=["normal", "tied", "infinite"]))
@pytest.mark.parametrize("unit", ["speaker", "speaker,attack", "codec"])
def test_units_beyond_memory_have_the_intervals_of_memory(tmp_path: Path, kind: str, unit: str) -> None:
    paths = list(map(str, write_shards(spoken(2500, kind), tmp_path, ".parquet", 3)))
    asked: dict[str, Any] = {"metrics": FORMS, "by": ["codec", "attack"], "bootstrap": 40, "unit": unit}
    assert_alike(evaluate(paths, None, "asvspoof5", **asked), beyond_memory(paths, "asvspoof5", **asked))


@pytest.mark.parametrize("interval", ["auto", "percentile", "bca"])
def test_sums_over_units_beyond_memory_are_exact(tmp_path: Path, interval: str) -> None:
    paths = list(map(str, write_shards(spoken(2000), tmp_path, ".csv", 2)))
    more: dict[str, Any] = {"by": ["codec"], "bootstrap": 40, "unit": "speaker", "interval": interval}
    asked = {"metrics": ["cllr", "act_dcf", "min_cllr"], **more}
    memory = evaluate(paths, None, "asvspoof5", score_kind="llr", **asked)
    assert_alike(memory, beyond_memory(paths, "asvspoof5", reading=ReadSpec(score_kind="llr"), **asked))


@pytest.mark.parametrize(
    "shown", [["--gap", "codec=NONE:C01"], ["--where", "codec=C01"], ["--by", "speaker"], ["--threshold", "0.25"]]
)
def test_the_command_beyond_memory_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shown: list[str]
) -> None:
    write_shards(spoken(1500, "tied"), tmp_path, ".parquet", 3)
    metrics = ["-m", "f1", "-m", "accuracy"] if "--threshold" in shown else ["-p", "asvspoof5"]
    words = ["score", str(tmp_path / "*.parquet"), *metrics, "--bootstrap", "30", "--unit", "speaker", "--json", *shown]
    assert run(words) == 0
    memory = json.loads(capsys.readouterr().out)
    with little_memory():
        assert run([*words, "--stream", "--memory", "10MB", "--scratch", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [found[part] for part in ("estimates", "warnings")] == [memory[part] for part in ("estimates", "warnings")]
    assert len(list(tmp_path.iterdir())) == 3, "files stay"


def test_units_of_a_key_are_drawn_beyond_memory(tmp_path: Path) -> None:
    frame = spoken(1200)
    write(frame.select("item", "score"), tmp_path / "scores.csv")
    write(frame.drop("score"), tmp_path / "key.csv")
    paths, asked = [str(tmp_path / f"{name}.csv") for name in ("scores", "key")], {"bootstrap": 30, "unit": "speaker"}
    memory = evaluate(*paths, "asvspoof5", by=["codec"], **asked)
    assert_alike(memory, beyond_memory(paths[0], "asvspoof5", key=paths[1], by=["codec"], **asked))


def test_units_of_several_systems_are_drawn_beyond_memory(tmp_path: Path) -> None:
    frame = spoken(900).with_columns(other=-pl.col("score").sqrt().fill_nan(2.0))
    paths = list(map(str, write_shards(frame, tmp_path, ".parquet", 2)))
    asked: dict[str, Any] = {"metrics": ["eer", "roc_auc"], "by": ["codec"], "bootstrap": 30, "unit": "speaker"}
    both = ReadSpec(score_columns=("score", "other"))
    memory = evaluate(paths, None, "asvspoof5", score_columns=both.score_columns, **asked)
    assert_alike(memory, beyond_memory(paths, "asvspoof5", reading=both, **asked))


@pytest.mark.nightly
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(20, 160),
    shards=st.integers(1, 4),
    kind=st.sampled_from(["normal", "tied", "zeros", "narrow", "infinite"]),
    unit=st.sampled_from(["speaker", "speaker,attack", "codec"]),
)
@settings(max_examples=15, deadline=None)
def test_any_cut_gives_the_same_draws_beyond_memory(
    tmp_path_factory: pytest.TempPathFactory, seed: int, n: int, shards: int, kind: str, unit: str
) -> None:
    paths = list(map(str, write_shards(spoken(n, kind, seed), tmp_path_factory.mktemp("s"), ".parquet", shards, seed)))
    asked: dict[str, Any] = {"metrics": FORMS[:5], "by": ["codec"], "bootstrap": 15, "unit": unit, "seed": seed}
    assert_alike(evaluate(paths, None, "asvspoof5", **asked), beyond_memory(paths, "asvspoof5", **asked))


@pytest.mark.parametrize("how", ["counts", "elsewhere", "duckdb"])
def test_whoever_counts_units_are_drawn_beyond_memory(tmp_path: Path, how: str) -> None:
    frame = spoken(1500, "tied")
    paths = list(map(str, write_shards(frame, tmp_path / "in", ".parquet", 2)))
    asked: dict[str, Any] = {"metrics": FORMS[:5], "by": ["codec"], "bootstrap": 30, "unit": "speaker"}
    memory = evaluate(paths, None, "asvspoof5", **asked)
    if how == "counts":
        write(frame.group_by("label", "codec", "speaker", "score").agg(n=pl.len()), tmp_path / "counts.parquet")
        found = beyond_memory(str(tmp_path / "counts.parquet"), "asvspoof5", are_counts=True, **asked)
    elif how == "duckdb":
        pytest.importorskip("duckdb")
        found = beyond_memory(paths, "asvspoof5", engine="duckdb", **asked)
    else:
        found = beyond_memory(paths, "asvspoof5", run=elsewhere, **asked)
    assert found.estimates == memory.estimates


def test_too_many_units_in_all_shards_together_are_drawn_from_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spoken(400)
    for k in range(3):
        write(frame.filter(pl.col("speaker").str.slice(1).cast(int) % 3 == k), tmp_path / f"s{k}.parquet")
    monkeypatch.setattr(shard_tally, "MOST_CELLS", 40)
    asked: dict[str, Any] = {"metrics": ["eer"], "bootstrap": 30, "unit": "speaker", "gap": False}
    with little_memory():
        found = evaluate_streamed(str(tmp_path / "*.parquet"), "asvspoof5", **asked).results
    assert found.estimates == evaluate(str(tmp_path / "*.parquet"), None, "asvspoof5", **asked).estimates


def test_a_disk_without_room_for_units_is_said(tmp_path: Path) -> None:
    """The limit on the size of a file makes the same call fail that a full disk does."""
    write(spoken(3000), tmp_path / "a.parquet")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        with pytest.raises(EnvironmentFault) as err, little_memory():
            evaluate_streamed(str(tmp_path / "a.parquet"), "asvspoof5", bootstrap=20, unit="speaker")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert err.value.code == "no-room"


def test_counts_with_the_unit_beside_them_will_do(tmp_path: Path) -> None:
    frame = spoken(1500, "tied")
    write(frame, tmp_path / "trials.csv")
    write(frame.group_by("label", "codec", "speaker", "score").agg(n=pl.len()), tmp_path / "counts.parquet")
    asked: dict[str, Any] = {
        "metrics": ["eer", "min_dcf", "roc_auc"],
        "by": ["codec"],
        "bootstrap": 30,
        "unit": "speaker",
    }
    memory = evaluate(str(tmp_path / "trials.csv"), None, "asvspoof5", **asked)
    assert (
        evaluate_streamed(str(tmp_path / "counts.parquet"), "asvspoof5", are_counts=True, **asked).results.estimates
        == memory.estimates
    )


@given(seed=st.integers(0, 2**16), n=st.integers(20, 120), shards=st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_any_cut_gives_the_same_draws(tmp_path_factory: pytest.TempPathFactory, seed: int, n: int, shards: int) -> None:
    paths = list(
        map(str, write_shards(spoken(n, "tied", seed), tmp_path_factory.mktemp("s"), ".parquet", shards, seed))
    )
    asked: dict[str, Any] = {
        "metrics": ["eer", "min_dcf"],
        "by": ["codec"],
        "bootstrap": 15,
        "unit": "speaker",
        "seed": seed,
    }
    assert_alike(evaluate(paths, None, "asvspoof5", **asked), evaluate_streamed(paths, "asvspoof5", **asked).results)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--unit", "nobody"], "unknown column 'nobody'. Known: attack, codec"),
        (["--unit", "speaker", "--stratify"], "cannot stratify by class while drawing whole units of 'speaker'"),
        (["--unit", "one"], "there is only one one ('x'); units can be drawn only from two or more"),
    ],
)
def test_what_cannot_be_drawn_is_said(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.setattr(shard_tally, "MOST_CELLS", 100)
    frame = spoken(300).with_columns(codec_seed=pl.lit("-"), one=pl.lit("x"), number=pl.col("item"))
    write(frame, tmp_path / "a.csv")
    assert run(["score", str(tmp_path / "a.csv"), "-p", "asvspoof5", "--stream", "--bootstrap", "20", *arguments]) in (
        2,
        3,
    )
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("unit", ["codec_seed", "item", "number"])
def test_units_that_are_too_many_to_be_counted_are_drawn_from_the_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    monkeypatch.setattr(shard_tally, "MOST_CELLS", 100)
    write(spoken(300).with_columns(codec_seed=pl.lit("-"), number=pl.col("item")), tmp_path / "a.csv")
    words = ["score", str(tmp_path / "a.csv"), "-p", "asvspoof5", "--bootstrap", "20", "--unit", unit, "--json"]
    found = []
    for more in ([], ["--stream"]):
        assert run([*words, *more]) == 0
        found.append(json.loads(capsys.readouterr().out)["estimates"])
    assert found[0] == found[1]
