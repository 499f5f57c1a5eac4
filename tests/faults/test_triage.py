"""Broken triage files: each is refused with its place, and none gives a figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError
from hitmiss.io.triage import read_results

GOOD: list[dict[str, Any]] = [
    {"id": f"s{i}", "model": "m", "use_tools": False, "trial": 0, "label": word, "prediction": word, "confidence": 0.8}
    for i, word in enumerate(["fake", "real"] * 4)
]

FAULTS: dict[str, tuple[dict[int, dict[str, Any]], str, str]] = {
    "a confidence above 1": ({3: {"confidence": 1.2}}, "not-a-probability", "outside 0..1"),
    "a negative confidence": ({0: {"confidence": -0.1}}, "not-a-probability", "outside 0..1"),
    "an id twice": ({4: {"id": "s2"}}, "duplicate-id", "'s2'"),
    "an id twice with other verdicts": ({4: {"id": "s2", "prediction": "real"}}, "conflicting-id", "'s2'"),
    "an id with both labels": ({1: {"id": "s0"}}, "both-labels", "both labels"),
    "an unknown label": ({5: {"label": "reel"}}, "unknown-label", "did you mean 'real'"),
    "no label": ({5: {"label": None}}, "missing-label", "1 missing label"),
    "no id": ({5: {"id": None}}, "empty-id", "without an id"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_broken_row_is_refused_with_its_place(case: str, tmp_path: Path) -> None:
    changes, kind, words = FAULTS[case]
    path = tmp_path / "results.jsonl"
    rows = [{**row, **changes.get(i, {})} for i, row in enumerate(GOOD)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_results(path)
    assert kind in {f.kind for f in caught.value.faults}
    assert words in str(caught.value)
    places = {f.row for f in caught.value.faults if f.kind == kind}
    assert {i + 1 for i in changes} <= places
    assert run(["triage", str(path)]) == 3


def test_half_a_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(GOOD[0]) + "\n" + json.dumps(GOOD[1])[:40] + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="row 2"):
        read_results(path)


def test_results_that_miss_items_of_the_dataset_are_refused(tmp_path: Path) -> None:
    results, dataset = tmp_path / "results.jsonl", tmp_path / "dataset.jsonl"
    results.write_text("".join(json.dumps(row) + "\n" for row in GOOD[:-1]), encoding="utf-8")
    dataset.write_text("".join(json.dumps({"id": r["id"], "label": r["label"]}) + "\n" for r in GOOD), encoding="utf-8")
    with pytest.raises(DataError, match="s7"):
        read_results(results, dataset)
    assert read_results(results, dataset, allow_missing=True).header.coverage == (7, 8)


def test_a_label_that_the_dataset_contradicts_is_refused(tmp_path: Path) -> None:
    results, dataset = tmp_path / "results.jsonl", tmp_path / "dataset.jsonl"
    results.write_text("".join(json.dumps(row) + "\n" for row in GOOD), encoding="utf-8")
    labels = ["real" if r["id"] == "s0" else r["label"] for r in GOOD]
    rows = [{"id": r["id"], "label": label} for r, label in zip(GOOD, labels, strict=True)]
    dataset.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(DataError, match="label than in the key"):
        read_results(results, dataset)
