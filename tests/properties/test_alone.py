"""An estimate with its interval, and a p value, are the same to the last bit whatever else is asked beside them."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.design import ComparisonRules, Design
from hitmiss.core.header import Header
from hitmiss.core.protocol import Gap, Protocol
from hitmiss.core.results import Estimate
from hitmiss.core.trials import Trials
from hitmiss.engine.rank import rank_design
from hitmiss.evaluation.protocol import measure_trials

SCORES = (
    "eer",
    "eer(ties=grouped)",
    "eer(ties=hull)",
    "min_dcf",
    "min_dcf(p_target=0.5, c_fa=1)",
    "act_dcf",
    "roc_auc",
    "cllr",
    "average_precision",
    "tpr_at_fpr(fpr=0.1)",
)
DECISIONS = ("accuracy", "f1", "mcc", "fpr", "balanced_accuracy")
CONFIDENCES = ("aurc", "brier_confidence")
METRICS = (*SCORES, *DECISIONS, *CONFIDENCES)
DERIVED = {
    "twice": "2 * eer",
    "worst_room": "max(eer, room)",
    "mean_room": "mean(roc_auc, room)",
    "both": "eer + roc_auc - max(f1, codec)",
}
GROUPINGS = (("room",), ("codec",), ("codec", "room"))
GAP = Gap("codec", ("c0",))
UNITS: tuple[tuple[str, ...], ...] = ((), ("speaker",), ("speaker", "attack"), ("item",))


def run_of(name: str, rng: Any, n: int, skill: float, speakers: str) -> dict[str, Any]:
    """The columns of one run, with rounded scores (so that some are equal) and speakers of its own.

    An item has the same label in every run.
    """
    label = np.array([crc32(str(k).encode()) % 2 for k in range(n)])
    label[:4] = 0, 1, 0, 1
    score = np.round(rng.normal(size=n) + skill * (2 * label - 1), 1)
    return {
        "item": [f"i{k}" for k in range(n)],
        "model": [name] * n,
        "label": label,
        "score": score,
        "decision": (score + rng.normal(size=n) > 0).astype(int),
        "confidence": np.round(0.5 + 0.5 * rng.random(n), 1),
        "room": [f"r{k}" for k in rng.integers(0, 3, n)],
        "codec": [f"c{k}" for k in rng.integers(0, 2, n)],
        "speaker": [f"{speakers}{k}" for k in rng.integers(0, 9, n)],
        "attack": np.where(label == 1, "-", [f"a{k}" for k in rng.integers(0, 7, n)]),
    }


def table(parts: list[dict[str, Any]]) -> Trials:
    """Trials of several runs, one after the other."""
    columns = {name: [v for part in parts for v in part[name]] for name in parts[0]}
    return Trials.of(**columns, header=Header(positive="yes", negative="no", score_kind="llr", runs=("model",)))


def shown(e: Estimate) -> tuple[Any, ...]:
    """What must not change."""
    return e.value, e.low, e.high, e.units, e.method, e.note


def key(e: Estimate) -> tuple[Any, ...]:
    """What an estimate is of."""
    return e.metric, tuple(e.run.items()), tuple(sorted(e.slice.items())), e.average


questions = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n": st.integers(30, 90),
        "metrics": st.lists(st.sampled_from(METRICS), min_size=1, max_size=5, unique=True),
        "derived": st.lists(st.sampled_from(sorted(DERIVED)), max_size=2, unique=True),
        "by": st.lists(st.sampled_from(GROUPINGS), max_size=3, unique=True),
        "gap": st.booleans(),
        "unit": st.sampled_from(UNITS),
        "interval": st.sampled_from(["auto", "percentile"]),
        "others": st.booleans(),
    }
)


def design(asked: Mapping[str, Any], metrics: list[str], by: list[Any], gap: bool, bootstrap: int = 25) -> Design:
    """What is asked, in part or as a whole."""
    return Design(
        metrics=tuple(metrics),
        by=tuple(by),
        gap=GAP if gap else "none",
        unit=asked["unit"],
        bootstrap=bootstrap,
        interval=asked["interval"],
        protocol=Protocol("p", derived=DERIVED, within=True),
    )


def needs(e: Estimate, asked: Mapping[str, Any]) -> tuple[list[str], list[Any], bool]:
    """The least that must be asked to get an estimate: the metric, the grouping, the gap."""
    columns = {*e.slice}
    by = [g for g in asked["by"] if {*g} == columns and e.average != "gap"]
    return [e.metric], by, e.average == "gap"


@given(questions)
@settings(max_examples=25)
def test_an_estimate_does_not_depend_on_what_else_is_asked(asked: dict[str, Any]) -> None:
    rng = np.random.default_rng(asked["seed"])
    one = run_of("one", rng, asked["n"], 0.8, "s")
    other = run_of("two", rng, asked["n"] + 7, 0.5, "t")
    everything = table([other, one] if asked["others"] else [one])
    alone = table([one])
    found = measure_trials(everything, design(asked, [*asked["metrics"], *asked["derived"]], asked["by"], asked["gap"]))
    rows = [e for e in found if e.run["model"] == "one"]
    assert rows
    asked_alone: dict[str, dict[Any, Estimate]] = {}
    for e in rows:
        wanted = needs(e, asked)
        name = repr(wanted)
        if name not in asked_alone:
            asked_alone[name] = {key(own): own for own in measure_trials(alone, design(asked, *wanted))}
        assert shown(asked_alone[name][key(e)]) == shown(e), key(e)


@given(questions, st.randoms(use_true_random=False))
@settings(max_examples=10)
def test_the_order_of_rows_metrics_and_slices_changes_nothing(asked: dict[str, Any], move: Any) -> None:
    rng = np.random.default_rng(asked["seed"])
    trials = table([run_of("one", rng, asked["n"], 0.8, "s")])
    order = list(range(len(trials)))
    move.shuffle(order)
    moved = replace(trials, frame=trials.frame[order])
    names = [*asked["metrics"], *asked["derived"]]
    first = measure_trials(trials, design(asked, names, asked["by"], asked["gap"]))
    second = measure_trials(moved, design(asked, names[::-1], asked["by"][::-1], asked["gap"]))
    for e in first:
        assert shown(next(o for o in second if key(o) == key(e))) == shown(e), key(e)


@given(questions, st.sampled_from(["auto", "bootstrap"]))
@settings(max_examples=12)
def test_a_difference_and_its_p_value_do_not_depend_on_what_else_is_asked(asked: dict[str, Any], test: str) -> None:
    rng = np.random.default_rng(asked["seed"])
    one = run_of("one", rng, asked["n"], 0.8, "s")
    noise = rng.normal(size=asked["n"])
    two = {**one, "model": ["two"] * asked["n"], "score": np.round(one["score"] + noise, 1)}
    two["decision"] = (two["score"] > 0).astype(int)
    a, b = table([one]), table([two])
    plan: dict[str, Any] = {"bootstrap": 25, "unit": asked["unit"], "test": test, "correction": "none"}
    whole = hm.compare(a, b, asked["metrics"], by=asked["by"], **plan)
    asked_alone: dict[str, Any] = {}
    for d in whole:
        by = [g for g in asked["by"] if {*g} == {*d.slice}]
        name = f"{d.metric} {by}"
        if name not in asked_alone:
            asked_alone[name] = hm.compare(a, b, [d.metric], by=by, **plan)
        own = next(o for o in asked_alone[name] if (dict(o.slice), o.average) == (dict(d.slice), d.average))
        assert (own.delta, own.low, own.high, own.p_value, own.mdd) == (d.delta, d.low, d.high, d.p_value, d.mdd)
    back = {
        (d.metric, tuple(d.slice.items()), d.average): d
        for d in hm.compare(b, a, asked["metrics"], by=asked["by"], **plan)
    }
    for d in whole:
        if d.p_value is not None:
            assert back[d.metric, tuple(d.slice.items()), d.average].p_value == pytest.approx(d.p_value, rel=1e-9)


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from(SCORES), min_size=2, max_size=4, unique=True))
@settings(max_examples=5)
def test_plain_p_values_of_a_ranking_do_not_depend_on_other_metrics(seed: int, metrics: list[str]) -> None:
    rng = np.random.default_rng(seed)
    one = run_of("one", rng, 60, 0.8, "s")
    runs = {}
    for name in ("x", "y", "z"):
        score = np.round(one["score"] + rng.normal(size=60), 1)
        runs[name] = table([{**one, "model": [name] * 60, "score": score}])
    asked = Design(metrics=tuple(metrics), bootstrap=30, contest=ComparisonRules())
    together = rank_design(runs, asked)
    for duel in together.duels:
        d = duel.difference
        alone = rank_design(runs, replace(asked, metrics=(d.metric,)))
        own = next(o.difference for o in alone.duels if (o.a, o.b) == (duel.a, duel.b))
        assert (own.delta, own.p_value, own.mdd, own.low) == (d.delta, d.p_value, d.mdd, d.low)


def said(words: list[str]) -> Iterator[dict[str, Any]]:
    """The estimates that a command prints as JSON."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert run([*words, "--json"]) == 0
    yield from json.loads(out.getvalue())["estimates"]


@given(st.integers(0, 2**32 - 1), st.sampled_from(UNITS[:2]))
@settings(max_examples=4)
def test_a_streamed_estimate_is_that_of_a_question_of_its_own_in_memory(seed: int, unit: tuple[str, ...]) -> None:
    rng = np.random.default_rng(seed)
    rows = run_of("one", rng, 80, 0.8, "s")
    metrics = ("eer", "min_dcf", "roc_auc", "cllr")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.csv"
        kept = {name: rows[name] for name in ("item", "label", "score", "room", "codec", "speaker")}
        pl.DataFrame({**kept, "label": np.where(rows["label"] == 1, "target", "nontarget")}).write_csv(file)
        base = ["score", str(file), "--positive", "target", "--score-kind", "llr", "--bootstrap", "30"]
        base += [word for name in unit for word in ("--unit", name)]
        asked = [word for m in metrics for word in ("-m", m)]
        streamed = list(said([*base, *asked, "--by", "room", "--by", "codec", "--gap", "codec=c0", "--stream"]))
        for m in metrics:
            for by in ("room", "codec"):
                for e in said([*base, "-m", m, "--by", by]):
                    same = [o for o in streamed if all(o.get(f) == e.get(f) for f in ("metric", "slice", "average"))]
                    assert [(o["value"], o.get("low"), o.get("high")) for o in same] == [
                        (e["value"], e.get("low"), e.get("high"))
                    ]
