"""Python calls as a newcomer writes them: each does what is meant, or says in our words what was expected."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
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


def test_a_threshold_is_chosen_for_any_metric_and_decides(trials: hm.Trials) -> None:
    best = hm.best_threshold(LABEL, SCORE, "accuracy")
    assert best == hm.best_threshold(LABEL, SCORE, maximize="accuracy") == hm.best_threshold(trials, "accuracy")
    assert best.value == max(np.mean(np.equal(LABEL, np.greater_equal(SCORE, t))) for t in SCORE)
    assert hm.best_threshold(trials, "f1", "grid") == hm.best_threshold(trials, maximize="f1", search="grid")
    said = hm.decide(trials, best)  # type: ignore[arg-type]
    assert said.column("decision").to_list() == np.greater_equal(SCORE, best.threshold).astype(int).tolist()


def test_categories_of_pandas_are_values() -> None:
    pandas = pytest.importorskip("pandas")
    truth = pandas.Categorical(np.where(LABEL == 1, "fake", "real"))
    made = hm.evaluate(truth, SCORE, positive="fake", by=pandas.Categorical(GENERATOR))
    assert made["eer"].value == hm.metrics.eer(LABEL, SCORE)


def test_metrics_have_their_usual_names() -> None:
    assert hm.metrics.auc(LABEL, SCORE) == hm.metrics.roc_auc(LABEL, SCORE)
    assert hm.metrics.EER(LABEL, SCORE) == hm.metrics.eer(LABEL, SCORE)
    with pytest.raises(AttributeError, match="no attribute 'eeer'"):
        hm.metrics.eeer(LABEL, SCORE)


def test_gaps_are_texts(trials: hm.Trials) -> None:
    made = hm.measure(trials, "eer", gap=["generator=x", "generator=x:y"])
    figure = {name: hm.metrics.eer(LABEL[mask], SCORE[mask]) for name, mask in sides().items()}
    found = [e.value for e in made if e.average == "gap"]
    assert found == pytest.approx([figure["rest"] - figure["x"], figure["y"] - figure["x"]])


def sides() -> dict[str, np.ndarray]:
    return {"x": GENERATOR == "x", "y": GENERATOR == "y", "rest": GENERATOR != "x"}


TABLE = pl.DataFrame(
    {
        "clip": [f"c{i}" for i in range(240)],
        "truth": np.where(LABEL == 1, "fake", "real"),
        "p": SCORE,
        "generator": GENERATOR,
        "who": [f"w{i % 12}" for i in range(240)],
        "w": RNG.integers(1, 4, 240),
    }
)
ROLES = {"item": "clip", "label": "truth", "score": "p", "positive": "fake"}


def tables() -> dict[str, object]:
    """One table in every form in which people hold one."""
    pytest.importorskip("pandas")
    return {
        "polars": TABLE,
        "lazy": TABLE.lazy(),
        "pandas": TABLE.to_pandas(),
        "dicts": TABLE.to_dicts(),
        "columns": TABLE.to_dict(as_series=False),
        "arrays": {name: TABLE[name].to_numpy() for name in TABLE.columns},
        "arrow": TABLE.to_arrow(),
    }


@pytest.mark.parametrize("form", ["polars", "lazy", "pandas", "dicts", "columns", "arrays", "arrow"])
def test_a_table_in_any_form_gives_the_same_numbers(form: str, tmp_path: Path) -> None:
    TABLE.write_csv(tmp_path / "own.csv")
    asked = {"metrics": "eer", "by": "generator", "unit": "who", "bootstrap": 50}
    made = hm.evaluate(tables()[form], **ROLES, **asked)  # type: ignore[arg-type]
    assert made["eer"].value == pytest.approx(hm.metrics.eer(LABEL, SCORE))
    assert made.estimates == hm.evaluate(tmp_path / "own.csv", **ROLES, **asked).estimates  # type: ignore[arg-type]


@pytest.mark.extras
@pytest.mark.parametrize("form", ["dataset", "shuffled", "numpy", "streamed", "one split"])
def test_a_hugging_face_dataset_is_a_table(form: str) -> None:
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_list(TABLE.to_dicts())
    given = {
        "dataset": lambda: whole,
        "shuffled": lambda: whole.shuffle(seed=1),
        "numpy": lambda: whole.with_format("numpy"),
        "streamed": whole.to_iterable_dataset,
        "one split": lambda: datasets.DatasetDict({"train": whole}),
    }[form]()
    made = hm.evaluate(given, **ROLES, metrics="eer")
    assert made["eer"].value == pytest.approx(hm.metrics.eer(LABEL, SCORE))
    assert len(hm.read(given, **ROLES)) == TABLE.height


@pytest.mark.extras
def test_the_names_of_a_class_label_are_its_labels() -> None:
    """0 is fake here: without the names that the dataset declares, 1 would be taken for the positive class."""
    datasets = pytest.importorskip("datasets")
    coded = datasets.Dataset.from_dict({"label": (1 - LABEL).tolist(), "score": SCORE.tolist()})
    named = coded.cast_column("label", datasets.ClassLabel(names=["fake", "real"]))
    assert hm.evaluate(named, positive="fake", metrics="eer")["eer"].value == pytest.approx(
        hm.metrics.eer(LABEL, SCORE)
    )
    with pytest.raises(hm.DataError, match="'fake' and 'real'"):
        hm.evaluate(named, metrics="eer")


@pytest.mark.extras
def test_several_splits_are_named() -> None:
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_list(TABLE.to_dicts())
    with pytest.raises(hm.UsageError, match="train, test; give one"):
        hm.evaluate(datasets.DatasetDict({"train": whole, "test": whole}), metrics="eer")


def test_arrays_are_given_by_name() -> None:
    assert hm.evaluate(label=LABEL, score=SCORE, metrics="eer")["eer"].value == hm.metrics.eer(LABEL, SCORE)
    assert hm.read(label=LABEL.tolist(), score=SCORE.tolist()).score.tolist() == SCORE.tolist()
    words = np.where(LABEL == 1, "fake", "real")
    assert hm.evaluate(label=words, score=SCORE, positive="real", metrics="roc_auc")["roc_auc"].value == pytest.approx(
        1 - hm.metrics.roc_auc(LABEL, SCORE)
    )


def test_two_arrays_are_labels_and_scores() -> None:
    made = hm.evaluate(LABEL, SCORE)
    assert [(e.metric, e.value) for e in made] == [
        ("eer", hm.metrics.eer(LABEL, SCORE)),
        ("roc_auc", hm.metrics.roc_auc(LABEL, SCORE)),
    ]
    assert list(hm.evaluate(list(LABEL), list(SCORE))) == list(made)
    codec = np.where(np.arange(len(SCORE)) % 3 == 0, "a", "b")
    sliced = hm.evaluate(LABEL, SCORE, by={"codec": codec}, metrics="roc_auc")
    inside = codec == "a"
    assert sliced["roc_auc", "codec=a"].value == hm.metrics.roc_auc(np.array(LABEL)[inside], np.array(SCORE)[inside])
    assert hm.evaluate(LABEL, SCORE, by=codec)["eer", "by=b"].n == (~inside).sum()


def test_tables_are_read_wherever_trials_are_meant() -> None:
    said = ROLES
    trials = hm.read(TABLE, **said)
    assert list(hm.measure(TABLE, "eer", **said)) == list(hm.measure(trials, "eer"))
    assert hm.best_threshold(TABLE, **said) == hm.best_threshold(trials)
    assert hm.decide(TABLE, 0.5, **said).column("decision").equals(hm.decide(trials, 0.5).column("decision"))
    assert hm.compare(TABLE, TABLE, **said)["eer"].delta == 0
    assert {s.run for s in hm.rank({"a": TABLE, "b": TABLE}, **said).standings} == {"a", "b"}


def test_estimates_are_sorted_by_value_and_compared_with_numbers(results: hm.Results) -> None:
    ordered = sorted(results)
    assert [e.value for e in ordered] == sorted(e.value for e in results if e.value is not None)
    assert (results["eer"] < 1.0, results["eer"] > 1.0) == (True, False)


def test_a_missing_name_says_which_was_meant() -> None:
    with pytest.raises(AttributeError, match=r"did you mean hm\.metrics\.eer\?"):
        hm.eer  # noqa: B018
    with pytest.raises(AttributeError, match=r"did you mean hm\.Results\.load\?"):
        hm.load_results  # noqa: B018
    with pytest.raises(AttributeError, match=r"did you mean hm\.evaluate\?"):
        hm.evalute  # noqa: B018


def test_weights_and_runs_are_named() -> None:
    weighted = hm.evaluate(TABLE, **ROLES, metrics="roc_auc", weight="w", weight_kind="frequency")  # type: ignore[arg-type]
    often = TABLE["w"].to_numpy()
    assert weighted["roc_auc"].value == pytest.approx(
        hm.metrics.roc_auc(np.repeat(LABEL, often), np.repeat(SCORE, often))
    )
    two = pl.concat([TABLE.with_columns(model=pl.lit("a")), TABLE.with_columns(model=pl.lit("b"), p=-pl.col("p"))])
    both = hm.evaluate(two, **ROLES, run="model", metrics="roc_auc")  # type: ignore[arg-type]
    assert both["roc_auc", "model=a"].value == pytest.approx(hm.metrics.roc_auc(LABEL, SCORE))
    assert both["roc_auc", "model=b"].value == pytest.approx(1 - hm.metrics.roc_auc(LABEL, SCORE))
    with pytest.raises(hm.UsageError, match="name one of 'model=a', 'model=b'"):
        both["roc_auc"]


def test_rows_are_taken_by_name(results: hm.Results, trials: hm.Trials) -> None:
    mask = GENERATOR == "x"
    expected = hm.metrics.eer(LABEL[mask], SCORE[mask])
    assert results["eer", "generator=x"].value == results["eer", {"generator": "x"}].value == pytest.approx(expected)
    assert results["EER", "generator=x"] is results.one("eer", generator="x")
    assert float(results["eer", "worst"]) == max(float(results["eer", f"generator={g}"]) for g in ("real", "x", "y"))
    assert "eer" in results and ("eer", "generator=x") in results and results[0] in results
    assert "roc_auc" not in results and ("eer", "generator=z") not in results
    found = hm.compare(trials, trials.retitle(), "eer", by="generator", names=("a", "b"))
    assert found["eer"].delta == 0 and found["eer", "generator=x"].a == pytest.approx(expected)
    assert [*found] == [found[i] for i in range(len(found))] and "eer" in found


def test_rankings_are_read_like_results(trials: hm.Trials) -> None:
    worse = hm.Trials.of(LABEL, RNG.normal(SCORE, 3.0), generator=GENERATOR)
    ranked = hm.rank([worse, trials], "eer", by="generator")
    assert [row.run for row in ranked["eer"]] == ["run 2", "run 1"]
    assert ranked["eer", "run=run 2"].value == pytest.approx(hm.metrics.eer(LABEL, SCORE))
    assert len(ranked) == len([*ranked]) == ranked.to_frame().height
    assert "run 2" in str(ranked) and "<Ranking" in repr(ranked)


def test_an_estimate_is_formatted_and_rounded_as_its_number(results: hm.Results) -> None:
    number = hm.metrics.eer(LABEL, SCORE)
    assert f"{results['eer']:.3f}" == f"{number:.3f}" and f"{results['eer']:.1%}" == f"{number:.1%}"
    assert round(results["eer"], 3) == round(number, 3)  # type: ignore[call-overload]
    assert f"{results['eer']}" == str(results["eer"])


def test_true_and_false_beside_labels_are_decisions() -> None:
    for said in (SCORE > 0.5, (SCORE > 0.5).tolist()):
        made = hm.evaluate(LABEL, said)
        assert [e.metric for e in made] == ["accuracy", "f1"]
        assert made["accuracy"].value == np.mean((SCORE > 0.5) == LABEL)


def test_functions_of_metrics_name_them(trials: hm.Trials) -> None:
    named = hm.measure(trials, ["eer", "roc_auc"])
    assert hm.measure(trials, [hm.metrics.eer, "roc_auc"]).signature == named.signature  # type: ignore[list-item]
    assert hm.evaluate(trials, metrics=[hm.metrics.eer]).estimates == named.estimates[:1]  # type: ignore[list-item]


def test_an_accumulator_has_usual_metrics() -> None:
    seen = hm.Accumulator()
    seen.update(LABEL, SCORE)
    assert seen.compute() == {"eer": hm.metrics.eer(LABEL, SCORE), "roc_auc": hm.metrics.roc_auc(LABEL, SCORE)}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("auc", "hm.metrics.roc_auc"),
        ("f1_score", "hm.metrics.f1"),
        ("score", "hm.evaluate"),
        ("plot", "results.plot()"),
        ("compute_eer", "hm.metrics.eer"),
        ("triage", r"hitmiss triage, in Python hm.run(['triage', …])"),
    ],
)
def test_names_of_other_packages_and_verbs_lead_to_ours(name: str, meant: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(hm, name)
    assert str(raised.value).rstrip("?").endswith(meant)


def test_attributes_that_are_missing_say_which_was_meant(results: hm.Results, trials: hm.Trials) -> None:
    found = hm.compare(trials, trials.retitle(), "eer")
    for thing, name, meant in [
        (results, "eer", "results['eer']"),
        (results, "verdikt", "verdict"),
        (results, "estimate", "estimates"),
        (results, "to_csv", "to_frame().write_csv('x.csv')"),
        (results["eer"], "ci", "low and high"),
        (found, "to_frames", "to_frame"),
        (found["eer"], "p", "p_value"),
        (hm.figures, "roc", "hm.figures.RocDisplay.from_trials(trials).plot()"),
    ]:
        with pytest.raises(AttributeError) as raised:
            getattr(thing, name)
        assert str(raised.value).endswith(f"did you mean {meant}?")
    assert not hasattr(results, "nothing_like_it") and not hasattr(results, "__array__")


def test_what_is_shown_reported_and_drawn(results: hm.Results, trials: hm.Trials, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    comparison = hm.compare(trials, trials.retitle(), "eer", names=("ours", "theirs"))
    ranking = hm.rank({"ours": trials, "theirs": trials.retitle()}, "eer")
    for found in (results, comparison, ranking):
        assert "<table>" in found._repr_html_() and "eer" in str(found)
        assert len(repr(found)) < 120
        assert found.to_frame().height == len(found) == len(found.to_pandas())
        assert found.report(tmp_path / "x.html").stat().st_size > 10_000
        assert found.plot()._repr_png_()[:4] == b"\x89PNG"
        assert found.verdict.claim in found.findings and len(found.findings) > 1
    page = hm.report({"ours": results, "theirs": results}, tmp_path / "two.html").read_text(encoding="utf-8")
    assert "ours" in page and "theirs" in page


def test_no_two_lines_read_alike(trials: hm.Trials) -> None:
    design = hm.Design(metrics=("eer", "roc_auc", "eer(ties=hull)"), by="generator", bootstrap=50, gap="generator=x")  # type: ignore[arg-type]
    made = hm.measure(trials, design)
    lines = [line.partition(" = ")[0] for line in str(made).splitlines()]
    assert len(lines) > 15 and sorted(lines) == sorted(set(lines))


def test_a_file_of_results_is_not_one_of_scores(results: hm.Results, tmp_path: Path) -> None:
    file = str(tmp_path / "r.json")
    results.save(file)
    for call in (hm.evaluate, hm.read, lambda f: hm.compare(f, f), lambda f: hm.rank({"a": f, "b": f})):
        with pytest.raises(hm.DataError, match="holds results, not scores") as raised:
            call(file)
        assert raised.value.code == "results-file"
    with pytest.raises(hm.UsageError, match=r"hm\.verify\(.*, 'scores.csv'") as without:
        hm.verify(file)
    assert without.value.code == "no-scores"


def test_files_and_tables_where_trials_are_meant(tmp_path: Path) -> None:
    noisy = np.round(RNG.normal(SCORE, 2.0), 6)
    for name, scores in (("a", SCORE), ("b", noisy)):
        pl.DataFrame({"item": TABLE["clip"], "label": LABEL, "score": scores}).write_csv(tmp_path / f"{name}.csv")
    a, b = tmp_path / "a.csv", pl.read_csv(tmp_path / "b.csv")
    assert hm.measure(a, "roc_auc")["roc_auc"].value == pytest.approx(hm.metrics.roc_auc(LABEL, SCORE))
    assert hm.compare(a, b, "roc_auc")["roc_auc"].b == pytest.approx(hm.metrics.roc_auc(LABEL, noisy))
    assert {row.run for row in hm.rank([a, tmp_path / "b.csv"], "eer")} == {"a", "b"}
    assert hm.best_threshold(a) == hm.best_threshold(LABEL, SCORE) == hm.best_threshold(hm.read(a))
    ours, theirs = hm.measure(a, "eer"), hm.measure(b, "eer")
    assert hm.compare(ours, theirs)["eer"].a == ours["eer"].value


def test_warnings_are_python_warnings() -> None:
    turned = hm.Trials.of(1 - LABEL, SCORE)
    with pytest.warns(hm.ResultWarning) as caught:
        made = hm.measure(turned, "roc_auc", bootstrap=100)
    assert [str(w.message) for w in caught] == [
        text.replace("--higher negative", "higher='negative'") for text in made.warnings
    ]
    assert "higher='negative'" in str(caught[0].message), "Python is told of keywords"
    assert {w.filename for w in caught} == {__file__}


Call = Callable[[hm.Trials, hm.Results], object]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t, _: hm.rank(t, "eer"), "rank takes runs by name or in a list"),
        (lambda _, r: r.report("x.pdf"), "a report is an HTML file, and x.pdf is not; write x.html"),
        (lambda *_: hm.Trials.of(TABLE, positive="fake"), "this is a table; read it: hm.read(table"),
        (lambda *_: hm.evaluate(LABEL, SCORE, metrics="eeer"), "did you mean 'eer'"),
        (lambda *_: hm.rank({}), "needs two runs or more; found 0"),
        (lambda t, _: hm.rank({"a": t, "b": t}, metric="eer"), "did you mean 'metrics'?"),
        (lambda t, _: hm.compare(t, t, positive="fake"), "trials, which are read already"),
        (lambda *_: hm.compare(LABEL, SCORE, SCORE), "compare takes trials"),
        (lambda *_: hm.evaluate(TABLE, "truth", "p"), "name columns by keyword, as label='truth'"),
        (lambda *_: hm.evaluate(SCORE, LABEL), "labels come first"),
        (lambda *_: hm.evaluate(LABEL, SCORE[:9]), "equally long; found 240 values of 'label' and 9 of 'score'"),
        (lambda *_: hm.evaluate(TABLE, by=LABEL), "by takes names of columns, and these are values"),
        (lambda *_: hm.evaluate(42), "found something of the type int"),
        (lambda t, _: hm.rank({"a": t, "b": "b.csv"}, "eer"), "there is no file b.csv"),
        (lambda *_: hm.read("nowhere.csv"), "there is no file nowhere.csv"),
        (lambda *_: hm.evaluate(LABEL, metrics="eer"), "hm.evaluate(label=y, score=s, metrics='eer')"),
        (lambda *_: hm.evaluate(metrics="eer"), "give a file or a table"),
        (lambda *_: hm.evaluate(TABLE, label=LABEL, metrics="eer"), "label= names a column"),
        (lambda *_: hm.evaluate([{"a": 1}, {"a": "x"}], metrics="eer"), "no column is the"),
        (lambda *_: hm.evaluate({"label": [1, 0], "score": [1.0]}), "found 2 values of 'label' and 1 of 'score'"),
        (lambda *_: hm.evaluate(TABLE, label="trth", score="p", metrics="eer"), "did you mean 'truth'?"),
        (lambda t, _: hm.measure(t, metric="eer"), "hm.measure: "),
        (lambda t, _: hm.measure(t, "eer", unit=3), "unit takes names of columns"),
        (lambda t, _: hm.decide(t, "0.5"), "a threshold must be a number"),
        (lambda *_: hm.decide(LABEL, SCORE), "decide takes trials"),
        (lambda *_: hm.calibrate(3, 4), "calibrate takes trials"),
        (lambda _, r: r["err"], "there is no 'err' here; there is eer"),
        (lambda _, r: r["eer", "generator=z"], "there is 'all trials', 'generator=real', 'generator=x'"),
        (lambda _, r: r["eer", 3], "results['eer', 'codec=C01']"),
        (lambda *_: hm.best_threshold(SCORE), "best_threshold takes trials"),
        (lambda *_: hm.Trials.of(LABEL, SCORE, codec=["a", "b"]), "must be flat and equally long; found 240 and 2"),
        (lambda *_: hm.Trials.of(LABEL, SCORE, item=["a", "b"]), "must be flat and equally long; found 240 and 2"),
        (lambda *_: hm.Trials.of(LABEL, SCORE, decision=[1, 0]), "must be flat and equally long; found 240 and 2"),
        (lambda *_: hm.gate({"eer": 0.1}, "eer > 0.2"), "gate takes results"),
        (lambda t, _: hm.report(t), "report takes results"),
        (lambda t, _: hm.measure(t, "eer", by=3), "by takes names of columns"),
        (lambda t, _: hm.measure(t, "f1"), "hm.decide(trials, 0.5)"),
        (lambda _, r: r[1.5], "rows are taken by place or by name"),
        (lambda *_: hm.evaluate(y_true=LABEL, y_score=SCORE), "unknown option 'y_true'; did you mean 'label'?"),  # type: ignore[call-arg]
        (lambda *_: hm.evaluate(TABLE, group_by="generator"), "did you mean 'by'?"),  # type: ignore[call-arg]
        (lambda *_: hm.evaluate(TABLE, n_boot=10), "did you mean 'bootstrap'?"),  # type: ignore[call-arg]
        (lambda *_: hm.best_threshold(LABEL, SCORE, metric="f1"), "did you mean 'maximize'?"),  # type: ignore[call-arg]
        (lambda t, _: hm.evaluate(LABEL, np.stack([SCORE, SCORE], 1)), "shape (240, 2); take the column"),
        (lambda *_: hm.evaluate(io.StringIO("label,score")), "this is an open file; give its path"),
        (lambda *_: hm.metrics.eer(LABEL, ["a"] * 240), "each score must be a number"),
        (lambda *_: hm.metrics.f1(LABEL, SCORE), "decide scores at a threshold: score >= 0.5"),
        (lambda _, r: hm.gate(r, {"eer": 0.1}), "hm.gate: fail_if must be a str or Sequence; found a dict"),  # type: ignore[arg-type]
        (lambda t, _: hm.fuse([t, t], [t, t]), "hm.fuse: fit_on must be a Mapping; found a list"),  # type: ignore[arg-type]
        (lambda *_: hm.drift(TABLE), "hm.drift: trials must be a Trials; found a DataFrame"),  # type: ignore[arg-type]
        (lambda *_: hm.attack(print, np.zeros(3)), "data must be a str or Path or Recordings; found a ndarray"),  # type: ignore[arg-type]
        (lambda _, r: hm.report(r, "x.html", positive="fake"), "unexpected keyword argument 'positive'"),  # type: ignore[call-arg]
        (lambda *_: hm.Design(metric="eer"), "unknown option 'metric'; did you mean 'metrics'?"),  # type: ignore[call-arg]
        (lambda *_: hm.ReadSpec(postive="fake"), "did you mean 'positive'?"),  # type: ignore[call-arg]
        (lambda *_: hm.Results("r.json"), "hm.Results.load('r.json')"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_meant_is_said_in_our_words(
    call: Call, words: str, trials: hm.Trials, results: hm.Results
) -> None:
    with pytest.raises(hm.HitmissError) as caught:
        call(trials, results)
    assert words in str(caught.value) and len(str(caught.value)) < 500
