"""Triage rows in other words: classes, abstentions, booleans, confidences, names, and facts that are told twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hitmiss.cli.main import run
from hitmiss.core.columns import FIXED, user_name
from hitmiss.core.errors import DataError
from hitmiss.core.trials import Trials
from hitmiss.io.triage import read_results
from hitmiss.protocols.triage import evaluate_trials

SAID = ["fake", "fake", "real", "uncertain", "real", "real", "fake", "real"]


def rows(**changes: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"s{i}", "label": "fake" if i < 4 else "real", "prediction": said, "confidence": 0.9, **changes}
        for i, said in enumerate(SAID)
    ]


def write(path: Path, given: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in given), encoding="utf-8")
    return path


def figures(trials: Trials) -> dict[str, float | None]:
    found = evaluate_trials(trials, bootstrap=0).figures
    return {e.metric: e.value for e in found if not e.slice}


def test_other_words_for_the_classes_and_for_no_answer(
    tmp_path: Path, plain: dict[str, float | None], capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"fake": "ai", "real": "human", "uncertain": "dunno"}
    other = [
        {"sample_id": r["id"], "gold": words[r["label"]], "answer": words[r["prediction"]].title(), "conf": "90%"}
        for r in rows()
    ]
    path = tmp_path / "r.json"
    path.write_text(json.dumps(other, indent=1), encoding="utf-8")
    columns = {"item": "sample_id", "label": "gold", "verdict": "answer", "confidence": "conf"}
    trials = read_results(path, positive="ai", negative="human", abstain=("dunno",), columns=columns)
    assert figures(trials) == plain and any("ai is read as fake" in note for note in trials.header.notes)
    said = [part for ours, theirs in columns.items() for part in ("--column", f"{ours}={theirs}")]
    asked = ["--positive", "ai", "--negative", "human", "--abstain", "dunno", "--bootstrap", "0", "--json"]
    assert run(["triage", str(path), *said, *asked]) == 0
    shown_rows = json.loads(capsys.readouterr().out)["estimates"]
    assert {e["metric"]: e["value"] for e in shown_rows if not e["slice"]} == pytest.approx(plain, rel=1e-11)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float | None]:
    """The figures of the rows as they are documented."""
    return figures(read_results(write(tmp_path_factory.mktemp("plain") / "p.jsonl", rows())))


@pytest.mark.parametrize("said", [False, "false", "False", 0, "0", "none", "None", None, "", "no", "null", "NaN"])
def test_no_error_in_any_spelling_is_no_error(tmp_path: Path, plain: dict[str, float | None], said: object) -> None:
    assert figures(read_results(write(tmp_path / "e.jsonl", rows(error=said)))) == plain


@pytest.mark.parametrize("said", [True, "timeout", "1"])
def test_an_error_is_one(tmp_path: Path, said: object) -> None:
    trials = read_results(write(tmp_path / "e.jsonl", rows(error=said)))
    assert trials.column("decision").null_count() == len(trials)


@pytest.mark.parametrize(
    ("spellings", "name"), [((True, "True", "true", 1, "yes"), "tools"), ((False, "False", "0", 0, "no"), "no-tools")]
)
def test_tools_in_any_spelling_are_one_run(tmp_path: Path, spellings: tuple[object, ...], name: str) -> None:
    given = [{**row, "use_tools": spellings[i % len(spellings)]} for i, row in enumerate(rows())]
    trials = read_results(write(tmp_path / "t.jsonl", given))
    assert trials.column("tools").unique().to_list() == [name]


def test_trials_are_numbers(tmp_path: Path) -> None:
    given = [{**row, "trial": ("0", "00", "0.0")[i % 3]} for i, row in enumerate(rows())]
    assert read_results(write(tmp_path / "t.jsonl", given)).column("trial").unique().to_list() == ["0"]
    twice = [{**row, "trial": trial} for row in rows()[:1] for trial in ("1", "01")]
    with pytest.raises(DataError) as error:
        read_results(write(tmp_path / "d.jsonl", twice))
    assert error.value.code == "duplicate-id"


@pytest.mark.parametrize("confidence", [None, "", "n/a", "NaN", "quite"])
def test_a_verdict_without_confidence_counts(
    tmp_path: Path, plain: dict[str, float | None], confidence: object
) -> None:
    given = rows()
    given[0]["confidence"] = confidence
    trials = read_results(write(tmp_path / "c.jsonl", given))
    assert {k: v for k, v in figures(trials).items() if k == "accuracy"} == {"accuracy": plain["accuracy"]}
    assert trials.column("confidence").to_list() == [None, *[0.9] * 7]


NAMES = (*FIXED, "unparsed", "label_word", "system", "model", "trial", "tools", "cache", "key", "y_true", "llr", "seconds",
         "prediction", "verdict", "id", "cost", "retries", "yes", "no", "asked", "served", "component", "user:score", ":n")  # fmt: skip


Cut = list[tuple[str, str, float | None]]


def with_meta(folder: Path, called: str) -> tuple[dict[str, float | None], Cut]:
    """The figures of rows with a field of meta of that name: of all of them, and by that field."""
    given = [{**row, "meta": {called: row.get(called, "a" if i % 2 else "b")}} for i, row in enumerate(rows())]
    trials = read_results(write(folder / "m.jsonl", given))
    if called in rows()[0]:
        return figures(trials), []
    sliced = evaluate_trials(trials, bootstrap=0, by=[(called,)]).figures
    cut = [(e.metric, e.slice[called], e.value) for e in sliced if called in e.slice and e.average is None]
    assert cut and called in map(user_name, trials.header.slices)
    return figures(trials), cut


@pytest.fixture(scope="module")
def by_a_harmless_name(tmp_path_factory: pytest.TempPathFactory) -> Cut:
    return with_meta(tmp_path_factory.mktemp("meta"), "harmless")[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_field_of_meta_may_be_called_anything(
    tmp_path: Path, plain: dict[str, float | None], by_a_harmless_name: Cut, name: str
) -> None:
    whole, cut = with_meta(tmp_path, name)
    assert whole == plain and (not cut or cut == by_a_harmless_name)


def test_meta_that_says_otherwise_than_its_row_is_refused_with_both_values(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        read_results(write(tmp_path / "m.jsonl", rows(meta={"confidence": 0.1})))
    assert error.value.code == "column-conflict" and "0.1 and 0.9" in str(error.value)
    same = read_results(write(tmp_path / "s.jsonl", rows(meta={"confidence": 0.90})))
    assert figures(same) == figures(read_results(write(tmp_path / "p.jsonl", rows())))


def test_runs_told_apart_by_a_column_of_ones_own(tmp_path: Path) -> None:
    given = [*rows(config="a"), *rows(config="b")]
    path = write(tmp_path / "r.jsonl", given)
    with pytest.raises(DataError) as error:
        read_results(path)
    assert error.value.code == "conflicting-id"
    assert read_results(path, runs=("config",)).header.runs == ("config",)
    assert run(["triage", str(path), "--run-column", "config", "--bootstrap", "0"]) == 0


def test_a_dataset_in_the_same_words(tmp_path: Path) -> None:
    words = {"fake": "machine", "real": "person", "uncertain": "uncertain"}
    dataset = write(tmp_path / "d.jsonl", [{"id": r["id"], "label": words[r["label"]]} for r in rows()])
    said = [{"id": r["id"], "prediction": words[r["prediction"]], "confidence": 0.9} for r in rows()]
    trials = read_results(write(tmp_path / "r.jsonl", said), dataset, positive="machine", negative="person")
    assert figures(trials) == figures(read_results(write(tmp_path / "p.jsonl", rows())))


def test_labels_as_codes_beside_verdicts_as_words(tmp_path: Path) -> None:
    coded = [{**row, "label": int(row["label"] == "fake")} for row in rows()]
    trials = read_results(write(tmp_path / "c.jsonl", coded), positive_value="1")
    assert figures(trials) == figures(read_results(write(tmp_path / "p.jsonl", rows())))


def test_one_verdict_twice_in_an_object_is_refused_with_both(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": "a", "label": "fake", "verdict": "fake", "verdict": "real"}\n', encoding="utf-8")
    with pytest.raises(DataError) as error:
        read_results(path)
    assert error.value.code == "ragged-row" and "'fake' and 'real'" in str(error.value)


@pytest.mark.parametrize("codes", [("fake", "real"), (1, 0), ("1", "0"), (True, False)])
def test_verdicts_may_be_words_or_codes_where_labels_are_codes(tmp_path: Path, codes: tuple[Any, Any]) -> None:
    words = {"fake": codes[0], "real": codes[1], "uncertain": "uncertain"}
    given = [{**row, "label": int(row["label"] == "fake"), "prediction": words[row["prediction"]]} for row in rows()]
    own = figures(read_results(write(tmp_path / "a.jsonl", rows())))
    positive = "true" if codes[0] is True else "1"
    if positive == "true":
        given = [{**row, "label": bool(row["label"])} for row in given]
    assert figures(read_results(write(tmp_path / "b.jsonl", given), positive_value=positive)) == own


@pytest.mark.parametrize("column", ["meta", "models"])
def test_a_name_twice_in_a_cell_is_refused(tmp_path: Path, column: str) -> None:
    """A CSV cell may hold an object; lines of JSON are refused for the same."""
    cell = '"{""a"": ""x"", ""a"": ""y""}"'
    lines = [f"s{i},{'fake' if i % 2 else 'real'},fake,{cell if i == 3 else ''}" for i in range(6)]
    path = tmp_path / "r.csv"
    path.write_text("\n".join([f"id,label,prediction,{column}", *lines]) + "\n")
    with pytest.raises(DataError) as refused:
        read_results(path)
    assert {(fault.row, fault.column) for fault in refused.value.faults} == {(5, "a")}
    assert "x" in str(refused.value) and "y" in str(refused.value)


def test_a_coverage_that_was_not_reached_is_the_reason(tmp_path: Path) -> None:
    few = [{**row, "prediction": "fake" if i < 2 else "uncertain"} for i, row in enumerate(rows())]
    found = evaluate_trials(read_results(write(tmp_path / "r.jsonl", few)), bootstrap=0).figures
    (own,) = (e for e in found if e.metric == "accuracy_at_coverage")
    assert own.value is None and own.note is not None and "25.0%" in own.note and "80.0%" in own.note


@pytest.mark.parametrize(
    ("change", "is_refused"),
    [
        ({"verdict": "real"}, True),
        ({"verdict": "Deepfake"}, False),
        ({"verdict": "", "ground_truth": None}, False),
        ({"ground_truth": "real"}, True),
        ({"ground_truth": "FAKE"}, False),
        ({"verdict": "real", "error": "timeout"}, False),
    ],
)
def test_a_fact_under_two_names_must_be_one_fact(tmp_path: Path, change: dict[str, object], is_refused: bool) -> None:
    """`prediction` and `verdict`, `label` and `ground_truth`: neither wins in silence."""
    rows = [
        {"id": f"i{k}", "model": "m", "label": "fake", "prediction": "fake", "confidence": 0.9, **(change if k else {})}
        for k in range(3)
    ]
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(["triage", str(path), "--bootstrap", "0"]) == (3 if is_refused else 0)
