"""Repeated runs: run noise and item noise apart, flips, the majority; no row of a repeated item is a new item."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from hitmiss import measure
from hitmiss.core.design import Design
from hitmiss.core.errors import UsageError
from hitmiss.core.header import Header
from hitmiss.core.protocol import Protocol
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.stats.intervals import wilson
from hitmiss.verdicts.latency import by_component, latency
from hitmiss.verdicts.reliability import reliability
from hitmiss.verdicts.stability import flips, is_repeated, majority, measure_repeated, pooled

N, K = 120, 4


def repeated(seed: int = 0, spread: float = 0.15) -> Trials:
    """K trials of N items; each item has its own chance to be answered rightly, so rows of one item are alike."""
    rng = np.random.default_rng(seed)
    ease = np.clip(rng.beta(0.6, 0.4, N), spread / 2, 1 - spread / 2)
    label = rng.integers(0, 2, N)
    right = rng.random((K, N)) < ease
    decision = np.where(rng.random((K, N)) < 0.1, -1, np.where(right, label, 1 - label))
    header = Header(
        positive="fake", negative="real", runs=("model", "trial"), numbers=("total_seconds", "latency_seconds")
    )
    return Trials.of(
        np.tile(label, K),
        item=[f"i{k}" for _ in range(K) for k in range(N)],
        decision=decision.ravel(),
        confidence=rng.choice([0.7, 0.9], N * K),
        model=["m"] * (N * K),
        trial=np.repeat(np.arange(K), N),
        source=np.tile(np.where(np.arange(N) % 3 == 0, "a", "b"), K),
        total_seconds=rng.lognormal(1, 0.5, N * K),
        latency_seconds=rng.lognormal(1.2, 0.5, N * K),
        header=header,
    )


def test_mean_and_deviation_are_those_of_the_trials() -> None:
    trials = repeated()
    found = measure_repeated(trials, Design.of(["accuracy", "mcc", "aurc"], bootstrap=200))
    for metric in ("accuracy", "mcc", "aurc"):
        each = [found.one(metric, model="m", trial=str(k)).value for k in range(K)]
        assert found.one(metric, model="m", average="mean").value == pytest.approx(np.mean(each))
        assert found.one(metric, model="m", average="sd").value == pytest.approx(np.std(each, ddof=1))
        method = found.one(metric, model="m", average="mean").method
        assert method is not None and method.startswith("bootstrap 200,unit=item")
    assert "repeats:trial" in found.signature


def test_the_interval_is_over_items_and_so_wider_than_over_rows() -> None:
    trials = repeated()
    mean = measure_repeated(trials, Design.of(["accuracy"], bootstrap=2000)).one("accuracy", model="m", average="mean")
    assert mean.value is not None and mean.low is not None and mean.high is not None
    over_rows = wilson(mean.value * N * K, N * K)
    assert mean.high - mean.low > 1.3 * (over_rows[1] - over_rows[0])
    per_item = trials.frame["decision"].eq(trials.frame["label"]).to_numpy().reshape(K, N).mean(axis=0)
    expected = 2 * 1.96 * per_item.std() / np.sqrt(N)
    assert mean.high - mean.low == pytest.approx(expected, rel=0.12)


def test_pooled_rows_get_no_interval_without_their_items() -> None:
    """Wilson on repeated rows would be far too narrow: it is withheld, with the reason."""
    found = measure(pooled(repeated()), ["accuracy", "mcc"], bootstrap=100)
    for e in found:
        assert e.low is None and e.note is not None and "items repeat" in e.note
    drawn = measure(pooled(repeated()), ["accuracy"], bootstrap=100, unit="item").one("accuracy", model="m")
    assert drawn.low is not None and drawn.method is not None and drawn.method.startswith("bootstrap")


def test_each_trial_by_itself_has_wilson() -> None:
    one = measure_repeated(repeated(), Design.of(["accuracy"], bootstrap=100)).one("accuracy", model="m", trial="0")
    assert one.method == "wilson" and one.n == N and one.of == N
    assert (one.low, one.high) == pytest.approx(wilson(one.value * N, N))  # type: ignore[operator]


def test_slices_are_over_all_trials_and_by_items() -> None:
    found = measure_repeated(repeated(), Design.of(["accuracy"], by=["source"], bootstrap=100, protocol=Protocol()))
    row = next(e for e in found if e.slice == {"source": "a"} and e.average is None)
    assert row.n == 40 * K and row.method is not None and "unit=item" in row.method


def test_flips_are_counted_item_by_item() -> None:
    trials = repeated()
    said: dict[str, list[int]] = {}
    for item, decision in zip(trials.items, trials.column("decision").to_list(), strict=True):
        said.setdefault(item, []).append(decision)
    found = flips(trials)
    assert found.one("flip_rate", model="m").value == sum(len(set(v)) > 1 for v in said.values()) / N
    assert found.one("hard_flip_rate", model="m").value == sum({0, 1} <= set(v) for v in said.values()) / N
    assert found.one("flip_rate", model="m").of == N


def test_the_majority_is_that_of_a_counter() -> None:
    trials = repeated()
    voted = majority(trials)
    said: dict[str, list[int]] = {}
    for item, decision in zip(trials.items, trials.column("decision").to_list(), strict=True):
        said.setdefault(item, []).append(decision)
    for item, decision in zip(voted.items, voted.column("decision").to_list(), strict=True):
        (first, n), *rest = Counter(said[item]).most_common()
        assert decision == (-1 if rest and rest[0][1] == n else first)
    assert voted.header.runs == ("model",) and not voted.is_repeated
    assert voted.header.choices == ("majority(trial)",)


def test_failed_calls_do_not_vote() -> None:
    header = Header(runs=("trial",))
    trials = Trials.of([1, 1, 1, 0, 0, 0], item=list("aaabbb"), decision=[1, None, None, None, None, None],  # type: ignore[list-item]
                       confidence=[0.8, 0.1, 0.1, 0.1, 0.1, 0.1], trial=list("123123"), header=header)  # fmt: skip
    voted = majority(trials)
    assert voted.column("decision").to_list() == [1, None]
    assert voted.column("confidence").to_list() == [0.8, None]
    assert flips(trials).one("flip_rate").value == 0.5


def test_one_trial_is_no_repetition() -> None:
    alone = repeated().where(trial="0")
    assert not is_repeated(alone)
    with pytest.raises(UsageError, match="more than one trial"):
        measure_repeated(alone, Design.of(["accuracy"]))


def test_times_of_repeated_items_have_intervals_over_items() -> None:
    found = latency(repeated(), SamplingPlan(200))
    row = found.one("median_seconds", model="m", component="total", served="unknown")
    assert row.of == N * K and row.method is not None and "unit=item" in row.method
    assert row.value == pytest.approx(np.median(repeated().column("total_seconds").to_numpy()))
    assert any("do not say which answers came from a cache" in w for w in found.warnings)


def served(n: int = 300) -> Trials:
    rng = np.random.default_rng(2)
    cache = rng.choice(["hit", "miss"], n)
    header = Header(numbers=("vision_llm_seconds", "retries"), slices=("cache",))
    seconds = np.where(cache == "hit", rng.uniform(0.01, 0.2, n), rng.lognormal(1, 0.4, n))
    return Trials.of(np.arange(n) % 2, decision=np.arange(n) % 2, cache=cache, vision_llm_seconds=seconds,
                     retries=np.arange(n) % 50 == 0, header=header)  # fmt: skip


def test_hits_misses_and_retries_are_apart() -> None:
    trials = served()
    found = latency(trials)
    assert {e.slice["served"] for e in found} == {"hit", "miss", "retried"}
    assert sum(e.of or 0 for e in found if e.metric == "median_seconds") == 300
    hit = found.one("median_seconds", component="vision_llm", served="hit")
    assert hit.value is not None and hit.value < 0.25 and hit.method == "order statistics"
    assert not found.warnings


def test_no_times_no_table() -> None:
    trials = Trials.of([1, 0], decision=[1, 0])
    assert by_component(trials) is None and len(latency(trials)) == 0


def test_the_reliability_table_counts_what_it_should() -> None:
    trials = repeated()
    alone = reliability(trials.where(trial="0"))
    frame = trials.where(trial="0").frame.filter(trials.where(trial="0").frame["decision"] >= 0)
    for b in alone:
        own = frame.filter((frame["confidence"] >= b.edges[0]) & (frame["confidence"] < b.edges[1]))
        right = int((own["decision"] == own["label"]).sum())
        assert (b.n, b.accuracy, b.method) == (own.height, right / own.height, "wilson")
        assert (b.low, b.high) == pytest.approx(wilson(right, own.height))
    together = reliability(pooled(trials), SamplingPlan(500))
    assert sum(b.n for b in together) == int((trials.frame["decision"] >= 0).sum())
    for b in together:
        assert b.method.startswith("bootstrap 500,unit=item")
        assert b.low < b.accuracy < b.high
        rows = wilson(b.accuracy * b.n, b.n)
        assert b.high - b.low > rows[1] - rows[0]
