"""Outcomes, parsers and sources of confidence: counted by hand, and in tables, comparisons and gates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hitmiss.cli.main import run
from hitmiss.io.triage import read_results
from hitmiss.protocols.triage import TriageExtras, evaluate_trials


def answers(n_refused: int = 2) -> list[dict[str, Any]]:
    """Two trials of 20 items: some answers are refused, and every fourth verdict is read by the lenient parser alone."""
    rows = []
    for trial in range(2):
        for i in range(20):
            label = "fake" if i % 2 else "real"
            said = label if (i + trial) % 5 else {"fake": "real", "real": "fake"}[label]
            row = {"id": f"i{i}", "model": "m", "use_tools": False, "trial": trial, "label": label, "prediction": said}
            row |= {"confidence": 0.8, "outcome": "answered", "strict_verdict": said if i % 4 else None}
            row |= {"confidence_logprobs": 0.5 + i / 40}
            if i < n_refused:
                row |= {"prediction": None, "outcome": "refused", "confidence": None, "strict_verdict": None}
            rows.append(row)
    return rows


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_numbers_by_parser_are_those_of_their_verdicts(tmp_path: Path) -> None:
    rows = answers()
    made = evaluate_trials(read_results(written(tmp_path / "r.jsonl", rows)), bootstrap=0)
    found = {(e.run["parser"], e.metric): e.value for e in made.parsers}
    for parser, name in (("as read", "prediction"), ("strict", "strict_verdict")):
        said = [row for row in rows if row[name]]
        right = sum(row[name] == row["label"] for row in said)
        assert found[parser, "accuracy"] == right / len(rows)
        assert found[parser, "accuracy_answered"] == pytest.approx(right / len(said))
        assert found[parser, "coverage"] == len(said) / len(rows)
    again = TriageExtras.from_dict(json.loads(json.dumps(made.asides_dict())))
    assert again is not None and len(again.parsers) == len(made.parsers)


def test_nothing_is_said_if_both_parsers_agree(tmp_path: Path) -> None:
    rows = [{**row, "strict_verdict": row["prediction"]} for row in answers()]
    made = evaluate_trials(read_results(written(tmp_path / "r.jsonl", rows)), bootstrap=0)
    assert not len(made.parsers)


def test_confidences_are_judged_side_by_side(tmp_path: Path) -> None:
    rows = answers()
    made = evaluate_trials(read_results(written(tmp_path / "r.jsonl", rows)), bootstrap=0)
    found = {e.run["confidence"]: e.value for e in made.confidences if e.metric == "brier_confidence"}
    said = [row for row in rows if row["prediction"]]
    by_item = {i: [r["prediction"] for r in said if r["id"] == i] for i in {r["id"] for r in said}}

    def brier(sure: Any) -> float:
        return sum((sure(r) - (r["prediction"] == r["label"])) ** 2 for r in said) / len(said)

    assert found["stated"] == pytest.approx(brier(lambda r: 0.8))
    assert found["logprobs"] == pytest.approx(brier(lambda r: r["confidence_logprobs"]))
    agreement = brier(lambda r: by_item[r["id"]].count(r["prediction"]) / len(by_item[r["id"]]))
    assert found["agreement"] == pytest.approx(agreement)


def test_outcomes_have_rates_in_comparisons_and_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (written(tmp_path / f"{n}.jsonl", answers(n)) for n in (0, 8))
    assert run(["compare", str(a), str(b), "-p", "triage", "-m", "refused_rate", "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["differences"]
    assert (row["a"], row["b"]) == (0.0, 8 / 20) and row["low"] > 0
    assert run(["triage", str(b), "-o", str(tmp_path / "b.json"), "--bootstrap", "0"]) == 0
    assert run(["gate", str(tmp_path / "b.json"), "--fail-if", "refused_rate > 0.05"]) == 1


def test_a_repair_and_a_structuring_model_are_parsers_too(tmp_path: Path) -> None:
    rows = answers(0)
    for i, row in enumerate(rows):
        row["strict_verdict"] = row["prediction"]
        row["first_verdict"] = row["prediction"] if i % 3 else None  # it had to be asked again
        row["agent_verdict"] = "uncertain" if i % 2 else row["prediction"]
    made = evaluate_trials(read_results(written(tmp_path / "r.jsonl", rows)), bootstrap=0)
    found = {(e.run["parser"], e.metric): e.value for e in made.parsers}
    assert {parser for parser, _ in found} == {"as read", "without repair", "without structuring"}
    right = [row["prediction"] == row["label"] for row in rows]
    n = len(rows)
    assert found["as read", "accuracy"] == sum(right) / n
    assert found["without repair", "accuracy"] == sum(r for i, r in enumerate(right) if i % 3) / n
    assert found["without repair", "coverage"] == sum(i % 3 > 0 for i in range(n)) / n
    assert found["without structuring", "accuracy"] == sum(r for i, r in enumerate(right) if i % 2 == 0) / n
