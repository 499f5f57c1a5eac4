"""Which class is positive: declared, fixed by a field's words, or refused with both commands; in every verb and Python."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, UsageError

N = 40
IS_ONE = np.arange(N) % 3 == 0
SCORE = np.round(np.random.default_rng(5).normal(size=N) + IS_ONE, 3)
AUC = float(roc_auc_score(IS_ONE, SCORE))

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> tuple[int, str, str]:
        code = run([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


def rows(one: object, other: object) -> pl.DataFrame:
    label = pl.Series("label", [one if is_one else other for is_one in IS_ONE])
    return pl.DataFrame({"id": [f"i{i}" for i in range(N)], "label": label, "score": SCORE})


def written(folder: Path, one: str, other: str, name: str = "t.csv") -> Path:
    rows(one, other).write_csv(folder / name)
    return folder / name


def auc_of(text: str) -> float:
    return next(e["value"] for e in json.loads(text)["estimates"] if e["metric"] == "roc_auc")  # type: ignore[no-any-return]


VERBS = {
    "score": ("score", "-m", "roc_auc"),
    "score --stream": ("score", "-m", "roc_auc", "--stream"),
    "gate": ("gate", "--fail-if", "roc_auc < 0.1"),
    "report": ("report", "-m", "roc_auc", "--bootstrap", "0"),
    "validate": ("validate",),
    "compare": ("compare", "-m", "roc_auc"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("words", [("real", "fake"), ("genuine", "fake"), ("human", "deepfake"), ("cat", "dog")])
def test_words_that_nobody_fixes_are_refused_in_every_verb(
    verb: str, words: tuple[str, str], tmp_path: Path, command: Run
) -> None:
    name, *options = VERBS[verb]
    files = [written(tmp_path, *words)]
    files += [written(tmp_path, *words, name="b.csv")] if name == "compare" else []
    out = ["-o", tmp_path / "r.html"] if name == "report" else []
    code, text, errors = command(name, *files, *options, *out)
    assert code == 3
    assert "positive" in text + errors
    for word in words:
        assert f"--positive {word}" in text + errors


def test_both_commands_below_the_sentence_can_be_typed(tmp_path: Path, command: Run) -> None:
    path = written(tmp_path, "fake", "real")
    code, _, errors = command("score", path, "-m", "roc_auc", "--json")
    offered = [shlex.split(line) for line in errors.splitlines() if line.startswith("  hitmiss ")]
    assert code == 3 and len(offered) == 2
    found = {}
    for words in offered:
        code, text, _ = command(*words[1:])
        assert code == 0
        found[words[-1]] = auc_of(text)
    assert found["fake"] == pytest.approx(AUC, abs=1e-12)
    assert found["real"] == pytest.approx(1 - AUC, abs=1e-12)


def test_the_refusal_as_json_has_its_code_and_the_commands(tmp_path: Path, command: Run) -> None:
    _, text, _ = command("score", written(tmp_path, "fake", "real"), "-m", "roc_auc", "--json")
    error = json.loads(text)["error"]
    assert error["code"] == "undeclared-positive" and len(error["commands"]) == 2


def test_a_declaration_that_was_given_is_replaced_in_the_commands(tmp_path: Path, command: Run) -> None:
    path = written(tmp_path, "1", "0")
    code, _, errors = command("score", path, "--positive", "fake", "-m", "roc_auc")
    offered = [line for line in errors.splitlines() if line.startswith("  hitmiss ")]
    assert code == 3 and [line.count("--positive ") for line in offered] == [1, 1]
    assert [line.rpartition(" ")[2] for line in offered] == ["1", "0"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("bonafide", "spoof"), ("Bona Fide", "SPOOF"), ("bona-fide", "spoofed"), ("target", "nontarget"),
     ("toxic", "non-toxic"), ("Toxic", "non_toxic"), ("1", "0"), ("1.0", "0.0"), ("True", "False"), ("true", "false")],
)  # fmt: skip
def test_words_that_a_field_fixes_and_codes_say_it_themselves(
    one: str, other: str, tmp_path: Path, command: Run
) -> None:
    path = written(tmp_path, one, other)
    for options in ((), ("--stream",)):
        code, text, _ = command("score", path, "-m", "roc_auc", "--json", *options)
        assert code == 0 and auc_of(text) == pytest.approx(AUC, abs=1e-12)
        code, text, _ = command("score", path, "-m", "roc_auc", *options)
        assert code == 0 and "positive = " in "\n".join(text.splitlines()[:4])


@pytest.mark.parametrize(
    ("one", "other", "options"),
    [
        ("1", "0", ("--positive", "1")),
        ("1", "0", ("--positive", "true")),
        ("1", "0", ("--positive", "toxic")),
        ("1", "0", ("--negative", "0")),
        ("1", "0", ("--positive", "fake", "--positive-value", "1")),
        ("True", "False", ("--positive", "True")),
        ("True", "False", ("--positive-value", "1")),
        ("0", "1", ("--positive", "0")),
        ("yes", "no", ("--positive-value", "yes")),
        ("yes", "no", ("--positive", "yes")),
        ("yes", "no", ("--positive", "toxic", "--positive-value", "yes")),
        ("1", "-1", ("--positive", "1", "--negative", "-1")),
        ("-1", "1", ("--positive", "-1", "--negative", "1")),
        ("fake", "real", ("--negative", "real")),
        ("Fake", "REAL", ("--positive", "FAKE")),
        ("fake", "real", ("--positive", "spoof")),
        ("dog", "cat", ("--positive", "Dog")),
        ("dog", "cat", ("--negative", "cat")),
    ],
)
def test_every_way_to_declare(one: str, other: str, options: tuple[str, ...], tmp_path: Path, command: Run) -> None:
    path = written(tmp_path, one, other)
    for further in ((), ("--stream",)):
        code, text, errors = command("score", path, "-m", "roc_auc", "--json", *options, *further)
        assert code == 0, errors
        assert auc_of(text) == pytest.approx(AUC, abs=1e-12)


@pytest.mark.parametrize("labels", [("1", "-1"), ("2", "1"), ("a", "b")])
def test_the_offered_declarations_of_odd_values_work(labels: tuple[str, str], tmp_path: Path, command: Run) -> None:
    code, _, errors = command("score", written(tmp_path, *labels), "-m", "roc_auc", "--json")
    offered = [shlex.split(line)[1:] for line in errors.splitlines() if line.startswith("  hitmiss ")]
    assert code == 3 and len(offered) == 2
    found = sorted(auc_of(command(*words)[1]) for words in offered)
    assert found == pytest.approx(sorted((AUC, 1 - AUC)), abs=1e-12)


def test_a_misspelt_declaration_names_the_nearest_word(tmp_path: Path, command: Run) -> None:
    code, _, errors = command("score", written(tmp_path, "fake", "real"), "-m", "roc_auc", "--positive", "faek")
    assert code == 2 and "did you mean 'fake'" in errors


def test_the_positive_class_of_a_protocol_can_be_turned_round(tmp_path: Path, command: Run) -> None:
    path = written(tmp_path, "1", "0")  # in the deepfake audio document 1 is real
    code, text, _ = command("score", path, "-p", "deepfake-audio", "-m", "roc_auc", "--json")
    assert code == 0 and auc_of(text) == pytest.approx(AUC, abs=1e-12)
    code, text, _ = command("score", path, "-p", "deepfake-audio", "-m", "roc_auc", "--positive", "fake", "--json")
    assert code == 0 and json.loads(text)["estimates"][0]["n_positive"] == int((~IS_ONE).sum())


def test_under_a_protocol_whose_files_have_words_numbers_are_refused(tmp_path: Path, command: Run) -> None:
    code, _, errors = command("score", written(tmp_path, "1", "0"), "-p", "asvspoof5")
    assert code == 3 and "--positive-value 1" in errors and "--positive-value 0" in errors


@pytest.mark.parametrize("positive", [1, True, 1.0, np.bool_(True), "1", "true"])
@pytest.mark.parametrize("labels", [(1, 0), (True, False)])
def test_python_takes_labels_as_they_are(positive: object, labels: tuple[object, object]) -> None:
    frame = rows(*labels)
    for table in (frame, frame.to_pandas()):
        for options in ({}, {"positive": positive}, {"positive_value": str(labels[0])}):
            assert (hm.read(table, **options).label == IS_ONE).all()
    assert (hm.read(frame, positive=labels[1]).label == ~IS_ONE).all()
    assert hm.evaluate(frame, metrics=["roc_auc"], positive=positive).one("roc_auc").value == pytest.approx(AUC)


@pytest.mark.parametrize(
    "make", [lambda t, **k: hm.read(t, **k), lambda t, **k: hm.Trials.of(t["label"], t["score"], **k)]
)
def test_python_refuses_and_names_the_two_keywords(make: Callable[..., hm.Trials]) -> None:
    with pytest.raises(DataError) as refused:
        make(rows("fake", "real"))
    assert refused.value.code == "undeclared-positive"
    assert str(refused.value).splitlines()[1:] == ["  positive='real'", "  positive='fake'"]
    trials = make(rows("fake", "real"), positive="fake")
    assert (trials.label == IS_ONE).all() and (trials.header.positive, trials.header.negative) == ("fake", "real")
    assert (make(rows("bonafide", "spoof")).label == IS_ONE).all()


def test_arrays_of_words_are_read_as_files_are() -> None:
    assert hm.Trials.of(pd.Series(["Bona-fide", "spoof"]), [1.0, 0.0]).label.tolist() == [1, 0]
    assert hm.Trials.of([1, 0], [1.0, 0.0], positive="fake").header.positive == "fake"
    assert hm.Trials.of([1, 0], [1.0, 0.0], positive=0).label.tolist() == [0, 1]
    with pytest.raises(DataError, match="did you mean 'spoof'"):
        hm.Trials.of(["bonafide", "spooof"], [1.0, 0.0])


def test_the_name_of_a_score_column_says_its_direction(tmp_path: Path, command: Run) -> None:
    table = rows("fake", "real").rename({"score": "fake_probability", "id": "question_id", "label": "ground_truth"})
    table = table.with_columns(fake_probability=1 / (1 + (-pl.col("fake_probability")).exp()))
    table.write_csv(tmp_path / "t.csv")
    for further in ((), ("--stream",)):
        words = ("score", tmp_path / "t.csv", "-m", "roc_auc", "--json", *further)
        code, text, _ = command(*words, "--positive", "fake")
        assert code == 0 and auc_of(text) == pytest.approx(AUC, abs=1e-12)
        code, _, errors = command(*words, "--positive", "real")
        assert code == 2 and "fake_probability" in errors
        code, text, _ = command(*words, "--positive", "real", "--higher", "fake")
        assert code == 0 and auc_of(text) == pytest.approx(AUC, abs=1e-12)
        code, text, _ = command(*words, "--positive", "real", "--higher", "real")
        assert code == 0 and auc_of(text) == pytest.approx(1 - AUC, abs=1e-12)


@pytest.mark.parametrize(
    ("one", "other", "options"),
    [
        ("1", "0", ()),
        ("True", "False", ()),
        ("toxic", "Non-Toxic", ()),
        ("1", "0", ("--positive", "1")),
        ("0", "1", ("--positive", "0")),
        ("0", "1", ("--positive-value", "0")),
        ("yes", "no", ("--positive-value", "yes")),
        ("hateful", "non-hateful", ("--positive", "hateful")),
    ],
)
def test_predictions_of_texts_follow_the_same_rule(
    one: str, other: str, options: tuple[str, ...], tmp_path: Path, command: Run
) -> None:
    made = rows(one, other).with_columns(pl.lit("en").alias("language"), score=1 / (1 + (-pl.col("score")).exp()))
    made.write_csv(tmp_path / "t.csv")
    for verb in (("toxicity",), ("score", "-p", "toxicity", "-m", "roc_auc")):
        name, *further = verb
        code, text, errors = command(name, tmp_path / "t.csv", *further, "--json", "--bootstrap", "0", *options)
        assert code == 0, errors
        assert auc_of(text) == pytest.approx(AUC, abs=1e-12)


def test_triage_speaks_of_the_classes_of_the_caller(tmp_path: Path, command: Run) -> None:
    made = [
        {"id": f"i{i}", "label": "toxic" if one else "non-toxic", "prediction": "toxic" if one else "non-toxic"}
        for i, one in enumerate(IS_ONE)
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, made)) + "\n")
    code, text, errors = command("triage", tmp_path / "r.jsonl", "--positive", "toxic", "--bootstrap", "0")
    assert code == 0, errors
    head = text.partition("of all trials")[0]
    assert "positive = toxic" in head and f"{IS_ONE.sum()} toxic" in head and "said non-toxic" in head
    assert "said fake" not in head and "said real" not in head


def test_triage_is_about_fakes(tmp_path: Path, command: Run) -> None:
    made = [{"id": f"i{i}", "label": "fake" if one else "real", "prediction": "fake"} for i, one in enumerate(IS_ONE)]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, made)) + "\n")
    code, text, _ = command("triage", tmp_path / "r.jsonl", "--bootstrap", "0")
    assert code == 0 and "positive = fake" in text


def test_names_of_metrics_that_people_use(tmp_path: Path, command: Run) -> None:
    path = written(tmp_path, "1", "0")
    words = ("score", path, "--threshold", "0.5", "--json")
    code, text, errors = command(*words, "-m", "AUC", "-m", "far", "-m", "FRR", "-m", "EER")
    assert code == 0, errors
    found = {e["metric"].partition("(")[0]: e["value"] for e in json.loads(text)["estimates"]}
    said = SCORE >= 0.5
    assert found["roc_auc"] == pytest.approx(AUC) and "eer" in found
    assert found["fpr"] == pytest.approx(said[~IS_ONE].mean()) and found["fnr"] == pytest.approx((~said[IS_ONE]).mean())


def test_a_metric_of_decisions_names_a_function_that_exists() -> None:
    trials = hm.read(rows("1", "0"))
    with pytest.raises(UsageError, match=r"hm\.decide\(trials, 0\.5\)"):
        hm.measure(trials, ["f1"])
    assert hm.measure(hm.decide(trials, 0.5), ["f1"]).one("f1").value > 0


def test_a_detector_is_run_on_the_documents_own_labels(tmp_path: Path, command: Run) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\ndef score(texts):\n    return np.array([float(len(t)) for t in texts])\n"
    )
    lines = [f"i{i},{'xx' if one else 'x'},{int(one)}" for i, one in enumerate(IS_ONE)]
    (tmp_path / "t.csv").write_text("\n".join(["item,text,label", *lines]) + "\n")
    words = ("detect", "--data", tmp_path / "t.csv", "--detector", f"{tmp_path / 'mine.py'}:score", "--input", "text")
    code, _, errors = command(*words, "--outputs", "logit", "-p", "deepfake-audio", "-o", tmp_path / "run")
    assert code == 0, errors
    code, text, _ = command("score", tmp_path / "run", "-p", "deepfake-audio", "-m", "roc_auc", "--json")
    assert code == 0 and auc_of(text) == 1.0
    assert hm.read(str(tmp_path / "run")).header.positive == "real"
