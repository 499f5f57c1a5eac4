"""Verdicts and amounts in result files: read in any shape that says what it means, else refused with file and row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError
from hitmiss.io.people import read_verdicts
from hitmiss.io.triage import read_results

Capture = pytest.CaptureFixture[str]
SAID = [n % 2 == 0 if n % 5 else n % 2 == 1 for n in range(12)]
"""Whether each verdict is fake."""


def word(is_fake: bool) -> str:
    return "fake" if is_fake else "real"


def write(path: Path, shape: Callable[[bool], object], **changes: object) -> Path:
    rows = [
        {"id": f"i{n}", "label": word(n % 2 == 0), "prediction": shape(said), "model": "m", **changes}
        for n, said in enumerate(SAID)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


READ: dict[str, Callable[[bool], object]] = {
    "a word": word,
    "a word in capitals with spaces": lambda said: f" {word(said).upper()} ",
    "a JSON string": lambda said: json.dumps(word(said)),
    "an object": lambda said: {"verdict": word(said)},
    "an object with another name": lambda said: {"prediction": word(said), "why": "light"},
    "an object as text": lambda said: json.dumps({"verdict": word(said), "why": "light"}),
    "a list of one": lambda said: [word(said)],
}
CODES: dict[str, Callable[[bool], object]] = {
    "booleans": bool,
    "numbers": int,
    "decimal numbers": float,
    "numbers as text": lambda said: str(int(said)),
    "booleans as text": str,
    "an object with a boolean": lambda said: {"verdict": said},
}


@pytest.mark.parametrize("shape", READ.values(), ids=READ)
def test_a_verdict_is_read_in_any_shape(shape: Callable[[bool], object], tmp_path: Path) -> None:
    trials = read_results(write(tmp_path / "r.jsonl", shape))
    assert trials.column("decision").to_list() == [int(said) for said in SAID]
    assert sum(trials.column("unparsed").to_list()) == 0


@pytest.mark.parametrize("shape", CODES.values(), ids=CODES)
def test_a_code_as_verdict_means_the_positive_class_of_the_protocol(
    shape: Callable[[bool], object], tmp_path: Path, capsys: Capture
) -> None:
    path = write(tmp_path / "r.jsonl", shape)
    assert run(["triage", str(path), "--bootstrap", "0"]) == 0
    assert "12 verdicts are 1, 0, true or false: 1 and true mean fake" in "".join(capsys.readouterr())
    assert read_results(path).column("decision").to_list() == [int(said) for said in SAID]
    for value, one in (("1", 1), ("true", 1), ("0", 0), ("False", 0)):
        trials = read_results(path, positive_value=value)
        assert trials.column("decision").to_list() == [int(said) if one else int(not said) for said in SAID]


@pytest.mark.parametrize(
    "shape", [lambda _: "purple", lambda _: {"foo": 1}, lambda _: 7], ids=["word", "object", "number"]
)
def test_a_file_without_one_verdict_that_is_understood_is_refused(
    shape: Callable[[bool], object], tmp_path: Path, capsys: Capture
) -> None:
    path = write(tmp_path / "r.jsonl", shape)
    assert run(["triage", str(path), "--bootstrap", "0", "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "unknown-verdict" and error["message"].startswith("r.jsonl, row 1: 12 verdicts")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["prediction"] = "fake"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert sum(read_results(path).column("unparsed").to_list()) == 11


def test_the_confidence_inside_an_object_is_used(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", lambda said: {"verdict": word(said), "confidence": 0.75})
    assert read_results(path).column("confidence").to_list() == [0.75] * 12


@pytest.mark.parametrize(
    "cell",
    [{"verdict": "fake", "prediction": "real"}, '{"verdict": "fake", "verdict": "real"}'],
    ids=["two names", "one name twice"],
)
def test_two_verdicts_in_one_object_are_refused(cell: object, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_results(write(tmp_path / "r.jsonl", lambda _: cell))
    assert caught.value.code == "column-conflict"
    assert {(f.file, f.row) for f in caught.value.faults} == {("r.jsonl", n + 1) for n in range(12)}


@pytest.mark.parametrize(
    ("cell", "seconds"), [("1500 ms", 1.5), ("1.5", 1.5), (1.5, 1.5), ("1.5s", 1.5), ("2 sec", 2.0)]
)
def test_durations_may_have_a_unit(cell: object, seconds: float, tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", word, latency_seconds=cell, timings={"agent_seconds": cell})
    trials = read_results(path)
    assert trials.column("latency_seconds").to_list() == [seconds] * 12
    assert trials.column("agent_seconds").to_list() == [seconds] * 12


@pytest.mark.parametrize(
    ("changes", "column", "value"),
    [
        ({"latency_seconds": -1}, "latency_seconds", "-1"),
        ({"latency_seconds": "fast"}, "latency_seconds", "fast"),
        ({"latency_seconds": "3 min"}, "latency_seconds", "3 min"),
        ({"timings": {"agent_seconds": -0.5}}, "agent_seconds", "-0.5"),
        ({"cost": "$0.01"}, "cost", "$0.01"),
        ({"tokens": {"input": "many"}}, "tokens.input", "many"),
        ({"retries": -2}, "retries", "-2"),
    ],
)
def test_an_amount_that_is_none_is_refused_with_its_place(
    changes: dict[str, object], column: str, value: str, tmp_path: Path, capsys: Capture
) -> None:
    path = write(tmp_path / "r.jsonl", word)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[4].update(changes)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(["triage", str(path), "--bootstrap", "0", "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "bad-number"
    assert [(f["file"], f["row"], f["column"], f["value"]) for f in error["faults"]] == [("r.jsonl", 5, column, value)]


def test_the_seconds_of_people_are_checked_too(tmp_path: Path) -> None:
    row = {"id": "a", "model": "human", "trial": "Ann", "prediction": "fake", "per_item": "1"}
    path = tmp_path / "people.jsonl"
    path.write_text(json.dumps({**row, "latency_seconds": "1500 ms"}) + "\n")
    assert read_verdicts(path).frame["seconds"].to_list() == [1.5]
    path.write_text(json.dumps({**row, "latency_seconds": -1}) + "\n")
    with pytest.raises(DataError) as caught:
        read_verdicts(path)
    assert [(f.kind, f.row, f.value) for f in caught.value.faults] == [("bad-number", 1, "-1")]
