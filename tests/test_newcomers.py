"""Python calls as a newcomer writes them: each does what is meant, or says in our words what was expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hitmiss as hm

RNG = np.random.default_rng(0)
LABEL = RNG.integers(0, 2, 240)
SCORE = RNG.normal(LABEL * 1.5, 1.0)
GENERATOR = RNG.choice(["real", "x", "y"], 240)


@pytest.fixture(scope="module")
def trials() -> hm.Trials:
    return hm.Trials.of(LABEL, SCORE, generator=GENERATOR)


@pytest.fixture(scope="module")
def results(trials: hm.Trials) -> hm.Results:
    return hm.measure(trials, "eer", by="generator")


def test_one_text_is_one_name(results: hm.Results) -> None:
    assert hm.gate(results, "eer > 0.1") == hm.gate(results, ["eer > 0.1"])
    assert hm.gate(results, max_regression="eer=0.1", baseline=results)[0].passed
    assert hm.Design(by="generator") == hm.Design(by=["generator"]) == hm.Design(by=(("generator",),))  # type: ignore[arg-type]
    assert hm.Design(positive_only="generator") == hm.Design(positive_only=("generator",))  # type: ignore[arg-type]
    assert hm.Design(metrics="eer", unit="a,b").unit == ("a", "b")  # type: ignore[arg-type]
    assert hm.Design().changed(by="generator", metrics="eer").by == (("generator",),)
    assert hm.ReadSpec(runs="config").runs == ("config",)  # type: ignore[arg-type]
    one, several = hm.Accumulator("eer"), hm.Accumulator(["eer"])
    for seen in (one, several):
        seen.update(LABEL, SCORE)
    assert one.compute() == several.compute() == {"eer": hm.metrics.eer(LABEL, SCORE)}
    logits = np.stack([-SCORE, SCORE], axis=1)
    assert hm.compute_metrics("roc_auc")((logits, LABEL)) == hm.compute_metrics(["roc_auc"])((logits, LABEL))


def test_slices_of_one_class_are_measured_with_the_other(trials: hm.Trials) -> None:
    """`positive_only="generator"` is one column, so that each slice of positives meets all negatives."""
    made = hm.measure(trials, hm.Design(metrics="roc_auc", by="generator", positive_only="generator", gap="none"))  # type: ignore[arg-type]
    for name in ("real", "x", "y"):
        mask = (LABEL == 0) | np.equal(GENERATOR, name)
        assert made.one("roc_auc", generator=name).value == pytest.approx(hm.metrics.roc_auc(LABEL[mask], SCORE[mask]))


def test_results_are_a_sequence(results: hm.Results) -> None:
    assert results[0] is results.estimates[0] and results[-1] is results.estimates[-1]
    assert results[:2] == results.estimates[:2] and results["eer"] == results.one("eer")
    assert [results[i] for i in range(len(results))] == list(results)
    with pytest.raises(IndexError):
        results[len(results)]


def test_reports_of_results_and_of_one_file(results: hm.Results, tmp_path: Path) -> None:
    results.save(tmp_path / "r.json")
    for runs in (results, [results, results], str(tmp_path / "r.json"), tmp_path / "r.json"):
        page = hm.report(runs, tmp_path / "x.html").read_text(encoding="utf-8")
        assert "eer" in page and f"{results['eer'].value:.2%}"[:4] in page


def test_the_best_threshold_of_trials(trials: hm.Trials) -> None:
    best = hm.best_threshold(trials)
    tried = [(hm.metrics.f1(LABEL, np.greater_equal(SCORE, t)), -t) for t in SCORE]
    assert (best.value, best.threshold) == pytest.approx((max(tried)[0], -max(tried)[1]))


def test_gaps_are_texts(trials: hm.Trials) -> None:
    made = hm.measure(trials, "eer", gap=["generator=x", "generator=x:y"])
    figure = {name: hm.metrics.eer(LABEL[mask], SCORE[mask]) for name, mask in sides().items()}
    found = [e.value for e in made if e.average == "gap"]
    assert found == pytest.approx([figure["rest"] - figure["x"], figure["y"] - figure["x"]])


def sides() -> dict[str, np.ndarray]:
    return {"x": GENERATOR == "x", "y": GENERATOR == "y", "rest": GENERATOR != "x"}


Call = Callable[[hm.Trials, hm.Results], object]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t, _: hm.rank([t, t]), "rank takes trials by the names of their runs"),
        (lambda t, _: hm.rank({"a": t, "b": t}), "say what to compare"),
        (lambda t, _: hm.rank({"a": t, "b": "b.csv"}, "eer"), "read it first"),
        (lambda *_: hm.best_threshold(SCORE), "best_threshold takes trials"),
        (lambda *_: hm.Trials.of(LABEL, SCORE, codec=["a", "b"]), "must be equally long; found 240 and 2"),
        (lambda *_: hm.Trials.of(LABEL, SCORE, item=["a", "b"]), "must be equally long; found 240 and 2"),
        (lambda *_: hm.Trials.of(LABEL, SCORE, decision=[1, 0]), "must be equally long; found 240 and 2"),
        (lambda *_: hm.gate({"eer": 0.1}, "eer > 0.2"), "gate takes results"),
        (lambda t, _: hm.report(t), "report takes results or files"),
        (lambda t, _: hm.measure(t, "eer", by=3), "by takes names of columns"),
        (lambda t, _: hm.measure(t, "f1"), "hm.decide(trials, 0.5)"),
        (lambda _, r: r[1.5], "results[0] or results['eer']"),
    ],
)
def test_what_cannot_be_meant_is_said_in_our_words(
    call: Call, words: str, trials: hm.Trials, results: hm.Results
) -> None:
    with pytest.raises(hm.HitmissError) as caught:
        call(trials, results)
    assert words in str(caught.value)
