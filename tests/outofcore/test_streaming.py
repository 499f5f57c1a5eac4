"""The same digits from memory and from the stream, however the trials are cut into files."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.outofcore.conftest import processes, simulated, write, write_shards

from hitmiss.core.errors import DataError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import Results
from hitmiss.evaluation.evaluate import evaluate
from hitmiss.evaluation.protocol import find_protocol
from hitmiss.outofcore import coarse_cells, stream
from hitmiss.outofcore.binned import Binned
from hitmiss.outofcore.coarse_cells import CoarseCells
from hitmiss.outofcore.counting import first_pass
from hitmiss.outofcore.plan import Shard, ShardPlan
from hitmiss.outofcore.repeated_ids import hashes_of
from hitmiss.outofcore.shard_tally import merge_tallies
from hitmiss.outofcore.stream import evaluate_streamed
from hitmiss.stats import sketch

LITTLE = 10**7
"""Memory that keeps next to nothing: runs on disk, and several stretches of scores."""
COSTS = (
    "min_dcf",
    "min_dcf(p_target=0.5, c_fa=1)",
    "dcf_at(threshold=0.25)",
    "eer(ties=grouped)",
    "eer(ties=interpolated)",
)
SUMS = ("roc_auc", "min_cllr", "average_precision", "eer(ties=hull)", "tpr_at_fpr", "fpr_at_tpr")


def both(paths: list[Path], memory: int, **asked: Any) -> tuple[Results, Results, stream.Streamed]:
    """The results in memory and in the stream."""
    protocol, reading = asked.pop("protocol", "asvspoof5"), asked.pop("reading", {})
    in_memory = evaluate(list(map(str, paths)), None, protocol, **asked, **reading)
    streamed = evaluate_streamed(list(map(str, paths)), protocol, memory=memory, reading=ReadSpec(**reading), **asked)
    return in_memory, streamed.results, streamed


def assert_same(a: Results, b: Results, close: tuple[str, ...] = ()) -> None:
    """Every figure, interval, note and warning alike; `close` names metrics that may differ in the last place."""
    assert len(a.estimates) == len(b.estimates)
    for x, y in zip(a, b, strict=True):
        if x.metric in close and x.value is not None:
            assert y.value == pytest.approx(x.value, rel=1e-12, abs=1e-15)
            if x.low is not None and x.high is not None:
                assert (y.low, y.high) == pytest.approx((x.low, x.high), rel=1e-9, abs=1e-12)
            x, y = (replace(e, value=None, low=None, high=None) for e in (x, y))
        assert x == y
    assert a.warnings == b.warnings


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv", ".jsonl", ".tsv.gz"])
def test_every_format_gives_the_digits_of_memory(tmp_path: Path, suffix: str) -> None:
    paths = write_shards(simulated(4000), tmp_path, suffix, 3)
    a, b, _ = both(paths, 10**9, by=["codec", "attack"], bootstrap=50, reading={"score_kind": "llr"})
    assert_same(a, b)
    assert "|choices:stream|" in b.signature
    assert b.signature.replace("choices:stream|", "") == a.signature


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("kind", ["normal", "tied", "narrow", "saturated", "zeros", "infinite"])
def test_scores_on_disk_give_the_digits_of_memory(tmp_path: Path, kind: str) -> None:
    paths = write_shards(simulated(6000, kind=kind), tmp_path, ".parquet", 3)
    a, b, found = both(paths, LITTLE, metrics=[*COSTS, *SUMS], by=["codec"], bootstrap=60)
    assert isinstance(found.trials.scored, CoarseCells)
    assert_same(a, b, close=("average_precision", "min_cllr", "eer(ties=hull)"))


@pytest.mark.usefixtures("few_are_many")
def test_sums_of_log_likelihood_ratios_and_probabilities_are_exact(tmp_path: Path) -> None:
    paths = write_shards(simulated(70_000), tmp_path, ".parquet", 2)
    asked = ["cllr", "act_dcf", "eer"]
    a, b, _ = both(paths, LITTLE, metrics=asked, by=["codec"], bootstrap=40, reading={"score_kind": "llr"})
    assert_same(a, b)
    more = write_shards(simulated(5000, kind="saturated"), tmp_path / "p", ".csv", 2)
    a, b, _ = both(
        more, LITTLE, metrics=["brier", "log_loss", "roc_auc"], bootstrap=40, reading={"score_kind": "probability"}
    )
    assert_same(a, b)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("kind", ["normal", "tied"])
def test_an_auc_without_replicates_has_the_interval_of_memory(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coarse_cells, "PIECE_SCORES", 7)
    paths = write_shards(simulated(3000, kind=kind), tmp_path, ".parquet", 2)
    a, b, _ = both(paths, LITTLE, metrics=["roc_auc"], by=["codec"])
    for x, y in zip(a, b, strict=True):
        assert x.value == y.value
        assert (y.low, y.high) == ((None, None) if x.low is None else pytest.approx((x.low, x.high), rel=1e-12))


@given(
    score=st.lists(
        st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 1e-310, 0.25, 0.2500001, 0.3, 1e300, np.inf]) | st.floats(-4, 4),
        min_size=8,
        max_size=60,
    ),
    cuts=st.lists(st.integers(0, 5), min_size=60, max_size=60),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=15, deadline=None)
def test_any_sharding_in_any_order_gives_the_same_bits(score: list[float], cuts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({"item": [str(i) for i in range(len(score))], "score": score})
    positive = rng.random(len(score)) < 0.5
    positive[:4] = [True, True, False, False]
    frame = frame.with_columns(label=pl.Series(np.where(positive, "bonafide", "spoof")))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketch, "LARGE", 4)
        one = Path(folder) / "one.csv"
        write(frame, one)
        parts = []
        for k in sorted(set(cuts[: len(score)])):
            part = frame.filter(pl.Series(cuts[: len(score)]) == k)
            parts.append(Path(folder) / f"part{k}.parquet")
            write(part[rng.permutation(part.height).tolist()], parts[-1])
        rng.shuffle(parts)
        asked: dict[str, Any] = {"metrics": ["eer", "min_dcf", "roc_auc", "tpr_at_fpr"], "bootstrap": 20}
        whole = evaluate(str(one), None, "asvspoof5", **asked)
        exact = evaluate_streamed(list(map(str, parts)), "asvspoof5", **asked)
        assert whole.estimates == exact.results.estimates
        patch.setattr(stream, "KEY_BYTES", 10**9)
        coarse = evaluate_streamed(list(map(str, parts)), "asvspoof5", memory=LITTLE, **asked)
        assert isinstance(coarse.trials.scored, CoarseCells)
        assert whole.estimates == coarse.results.estimates


def test_processes_find_what_one_finds(tmp_path: Path) -> None:
    paths = write_shards(simulated(2000), tmp_path, ".parquet", 3)
    asked: dict[str, Any] = {"by": ["codec"], "bootstrap": 20}
    here = evaluate_streamed(list(map(str, paths)), "asvspoof5", **asked)
    there = evaluate_streamed(list(map(str, paths)), "asvspoof5", run=processes, **asked)
    assert here.results == there.results


def test_decisions_at_a_threshold_are_counted(tmp_path: Path) -> None:
    paths = write_shards(simulated(1500), tmp_path, ".tsv", 2)
    asked: dict[str, Any] = {"metrics": ["f1", "accuracy", "recall"], "by": ["codec"], "bootstrap": 30}
    from hitmiss.core.design import Design
    from hitmiss.derive.decisions import at_threshold
    from hitmiss.evaluation.protocol import find_protocol, measure_trials, read_trials

    protocol = find_protocol("asvspoof5")
    trials = at_threshold(read_trials(list(map(str, paths)), None, protocol), 0.25)
    streamed = evaluate_streamed(list(map(str, paths)), protocol, threshold=0.25, **asked)
    assert_same(measure_trials(trials, Design.of(**asked, protocol=protocol)), streamed.results)


@pytest.mark.parametrize(
    ("labels", "decisions", "reading", "code"),
    [
        (("real", "fake"), ("1", "0"), {"positive": "real"}, "ambiguous-label"),
        (("1", "0"), ("toxic", "non-toxic"), {"positive": "toxic", "positive_value": "1"}, None),
        (("1", "0"), ("1", "0"), {"positive": "toxic", "positive_value": "1"}, None),
        (("real", "fake"), ("bonafide", "abstain"), {"positive": "real"}, None),
    ],
)
def test_words_of_decisions_mean_what_they_mean_in_memory(
    tmp_path: Path, labels: tuple[str, str], decisions: tuple[str, str], reading: dict[str, str], code: str | None
) -> None:
    frame = simulated(300)
    positive = frame["label"] == "bonafide"
    said = positive ^ (pl.int_range(300, eager=True) % 7 == 0)
    words = [pl.Series(np.where(which, *pair)) for which, pair in ((positive, labels), (said, decisions))]
    write(frame.select("item", "score").with_columns(label=words[0], decision=words[1]), tmp_path / "a.csv")
    asked: dict[str, Any] = {"metrics": ["accuracy", "f1"]}
    if code is not None:
        for call in (
            lambda: evaluate(str(tmp_path / "a.csv"), **asked, **reading),
            lambda: evaluate_streamed(str(tmp_path / "a.csv"), reading=ReadSpec(**reading), **asked),
        ):
            with pytest.raises(DataError) as err:
                call()
            assert err.value.code == code
        return
    memory = evaluate(str(tmp_path / "a.csv"), **asked, **reading)
    found = evaluate_streamed(str(tmp_path / "a.csv"), reading=ReadSpec(**reading), **asked)
    assert found.results.estimates == memory.estimates


def test_scores_that_point_the_other_way_are_turned_round(tmp_path: Path) -> None:
    frame = simulated(2000).with_columns(score=-pl.col("score"))
    write(frame, tmp_path / "a.parquet")
    a, b, _ = both([tmp_path / "a.parquet"], 10**9, by=["codec"], reading={"higher": "spoof"})
    assert_same(a, b)
    a, b, _ = both([tmp_path / "a.parquet"], 10**9, by=["codec"])
    assert any("REVERSED" in w for w in b.warnings)
    assert_same(a, b)


def test_nan_is_dropped_or_made_the_worst_as_told(tmp_path: Path) -> None:
    frame = simulated(1000).with_columns(
        score=pl.when(pl.int_range(pl.len()) % 97 == 3).then(float("nan")).otherwise("score")
    )
    write(frame, tmp_path / "a.csv")
    for rule in ("drop", "worst"):
        a, b, _ = both([tmp_path / "a.csv"], 10**9, by=["codec"], bootstrap=20, reading={"on_nan": rule})
        assert_same(a, b)
        assert f"on-nan:{rule}(11)+stream" in b.signature


def test_a_pass_is_the_same_over_a_file_of_the_engine_and_over_one_of_ours(tmp_path: Path) -> None:
    frame = simulated(3000, kind="zeros")[::-1]  # the ids are not in ascending order
    write(frame, tmp_path / "a.parquet")
    write(frame, tmp_path / "a.csv")
    plan = ShardPlan(find_protocol("asvspoof5").read, ("codec",))
    quick, careful = (first_pass(Shard(str(tmp_path / name)), plan) for name in ("a.parquet", "a.csv"))
    assert quick.cells.keys() == careful.cells.keys()
    for cell, binned in quick.cells.items():
        other = careful.cells[cell]
        assert isinstance(binned, Binned) and isinstance(other, Binned)
        assert (binned.bins.tolist(), binned.each.tolist()) == (other.bins.tolist(), other.each.tolist())
    ids = [first_pass(Shard(str(tmp_path / name)), plan, hashes_of).ids for name in ("a.parquet", "a.csv")]
    assert isinstance(ids[0], Binned) and isinstance(ids[1], Binned)
    assert ids[0].bins.tolist() == ids[1].bins.tolist() and ids[0].total == 3000
    assert merge_tallies([quick]).n == 3000


def test_a_value_that_the_first_rows_do_not_show_is_counted(tmp_path: Path) -> None:
    frame = simulated(70_000).with_columns(
        codec=pl.when(pl.int_range(pl.len()) > 69_900).then(pl.lit("LATE")).otherwise("codec")
    )
    write(frame, tmp_path / "a.parquet")
    a, b, _ = both([tmp_path / "a.parquet"], 10**9, by=["codec"], metrics=["eer"])
    assert_same(a, b)
    assert any(e.slice == {"codec": "LATE"} for e in b)


@pytest.mark.usefixtures("few_are_many")
def test_very_many_slices_are_counted_as_few_are(tmp_path: Path) -> None:
    frame = simulated(9000, kind="zeros").with_columns(codec=pl.int_range(pl.len()).mod(700).cast(pl.String))
    write(frame, tmp_path / "a.parquet")
    a, b, _ = both([tmp_path / "a.parquet"], 10**8, by=["codec"], metrics=["eer", "dcf_at(threshold=0.25)", "roc_auc"])
    assert_same(a, b, close=("roc_auc",))
    assert len(b.estimates) > 1400
