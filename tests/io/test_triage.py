"""The triage document's files: every field, the words of verdicts, what is an error, how a run was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.core.errors import DataError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.trials import Trials
from hitmiss.evaluation.protocol import find_protocol, read_trials
from hitmiss.io.triage import dataset_digest, read_results
from hitmiss.io.verdicts import VERDICT_WORDS, read_verdict

ROW = {
    "id": "s1",
    "model": "m",
    "use_tools": True,
    "trial": 0,
    "label": "fake",
    "image": "images/s1.jpg",
    "meta": {"generator": "gan", "size": 512},
    "run_config": {"temperature": 0.0, "max_iterations": 15, "reasoning_effort": None},
    "prediction": "fake",
    "analysis_verdict": "fake",
    "parsed_verdict": "fake",
    "confidence": 0.9,
    "rationale": "hands",
    "raw_analysis": "…",
    "raw_parsed": {"verdict": "fake"},
    "models": {"agent": "m", "vision": "v", "structuring": "s"},
    "prompts": {"user": "?"},
    "prompt_hashes": {"user": "ab12", "system": "cd34"},
    "tool_usage": ["ela", "exif"],
    "tool_details": [{"tool": "ela", "seconds": 0.5}, {"tool": "exif", "seconds": 0.25}],
    "tool_results": [{}],
    "timings": {"vision_llm_seconds": 3.2, "agent_graph_seconds": 8.5, "total_seconds": 12.1},
    "latency_seconds": 12.5,
    "timestamp": "2025-01-06T09:00:00+00:00",
}


def write(folder: Path, rows: list[dict[str, Any]], name: str = "results.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(folder: Path, *rows: dict[str, Any], **changes: Any) -> Trials:
    return read_results(write(folder, [{**ROW, "id": f"s{i}", **row} for i, row in enumerate(rows)]), **changes)


def test_every_field_has_its_place(tmp_path: Path) -> None:
    trials = read(tmp_path, {}, {"label": "real", "prediction": "real"})
    head, row = trials.header, trials.frame.row(0, named=True)
    assert (head.positive, head.negative, head.runs) == ("fake", "real", ("model", "tools", "trial"))
    assert head.slices == ("generator", "size")
    assert (row["decision"], row["confidence"], row["unparsed"], row["error"]) == (1, 0.9, 0.0, "")
    assert (row["model"], row["tools"], row["trial"], row["generator"], row["size"]) == (
        "m",
        "tools",
        "0",
        "gan",
        "512",
    )
    seconds = {n: row[n] for n in head.numbers if n.endswith("_seconds")}
    assert seconds == {
        "vision_llm_seconds": 3.2,
        "agent_graph_seconds": 8.5,
        "total_seconds": 12.1,
        "latency_seconds": 12.5,
        "tools_seconds": 0.75,
    }
    assert row["tool_count"] == 2.0
    made = head.provenance
    assert made["models"] == {"agent": "m", "vision": "v", "structuring": "s"}
    assert made["prompt_hashes"] == {"user": "ab12", "system": "cd34"}
    assert (made["temperature"], made["max_iterations"], made["reasoning_effort"]) == (0.0, 15, None)
    assert made["timestamps"] == ["2025-01-06T09:00:00+00:00"] * 2
    assert made["dataset"] == dataset_digest(["s0", "s1"], ["fake", "real"])
    assert made["files"][0]["layout"] == "triage" and head.sources[0].name == "results.jsonl"
    assert not any("C:" in str(v) or "images/" in str(v) for v in row.values())  # no paths of anybody's machine


def test_errors_abstentions_and_unparsed_verdicts_are_three_things(tmp_path: Path) -> None:
    trials = read(
        tmp_path,
        {"prediction": "uncertain", "confidence": 0.0, "error": "boom", "error_type": "exception"},
        {"prediction": "uncertain", "error_type": "missing_image"},
        {"prediction": "uncertain", "analysis_verdict": "uncertain", "parsed_verdict": "uncertain"},
        {"prediction": None, "analysis_verdict": None, "parsed_verdict": None},
        {"prediction": "a mermaid", "analysis_verdict": "a mermaid", "parsed_verdict": None},
        {"prediction": "uncertain", "analysis_verdict": None, "parsed_verdict": "???"},
        {"prediction": "Synthetic."},
    )
    assert trials.column("decision").to_list() == [None, None, -1, -1, -1, -1, 1]
    assert trials.column("unparsed").to_list() == [0, 0, 0, 1, 1, 1, 0]
    assert trials.column("error").to_list() == ["boom", "missing_image", "", "", "", "", ""]
    assert "2 of 7 calls failed (1 exception, 1 missing_image)" in trials.header.notes[0]


@given(st.text(max_size=12))
def test_a_verdict_is_one_of_three_words_or_none(text: str) -> None:
    assert read_verdict(text) in ("fake", "real", "uncertain", None)


@pytest.mark.parametrize("word", VERDICT_WORDS)
def test_words_are_understood_in_any_case(word: str) -> None:
    assert read_verdict(f" {word.upper().replace(' ', '_')}! ") == VERDICT_WORDS[word]


def test_the_dataset_gives_labels_and_slices(tmp_path: Path) -> None:
    rows = [{k: v for k, v in ROW.items() if k not in ("label", "meta")} | {"id": i} for i in ("a", "b")]
    dataset = [
        {"id": "a", "image": "x/a.jpg", "label": "real", "meta": {"camera": "k"}},
        {"image_path": "C:\\pictures\\b.jpg", "ground_truth": "fake"},
    ]
    trials = read_results(write(tmp_path, rows), write(tmp_path, dataset, "dataset.jsonl"))
    assert dict(zip(trials.items, trials.label.tolist(), strict=True)) == {"a": 0, "b": 1}
    assert dict(zip(trials.items, trials.column("camera").to_list(), strict=True)) == {"a": "k", "b": "-"}


def test_files_of_two_runs_are_put_together(tmp_path: Path) -> None:
    one = write(tmp_path, [ROW], "one.jsonl")
    bare = {k: v for k, v in ROW.items() if k not in ("timings", "tool_details", "tool_usage", "meta")}
    two = write(tmp_path, [{**bare, "use_tools": False, "models": {"agent": "m", "vision": "w"}}], "two.jsonl")
    trials = read_results([str(one), str(two)])
    assert trials.column("tools").to_list() == ["tools", "no-tools"]
    assert trials.column("total_seconds").to_list() == [12.1, None]
    assert trials.header.provenance["models"]["vision"] == ["v", "w"]


def test_what_differs_between_runs_is_told_by_run(tmp_path: Path) -> None:
    trials = read(tmp_path, {}, {"use_tools": False, "run_config": {"temperature": 1.0}})
    made = trials.header.provenance
    assert "temperature" not in made
    assert {run: facts["temperature"] for run, facts in made["by_run"].items()} == {"m|tools": 0.0, "m|no-tools": 1.0}


CACHES = {
    "flag": ({"cache_hit": True}, "hit"),
    "no": ({"cached": False}, "miss"),
    "tool": ({"tool_details": [{"tool": "ela", "seconds": 0.1, "cached": True}]}, "hit"),
    "off": ({"run_config": {"tool_cache": "disabled"}}, "miss"),
}


@pytest.mark.parametrize("case", CACHES)
def test_cache_hits_are_known_where_the_rows_say(case: str, tmp_path: Path) -> None:
    told, want = CACHES[case]
    trials = read(tmp_path, told, {})
    assert trials.column("cache").to_list() == [want, "unknown"]
    assert "cache" not in read(tmp_path, {}, {"label": "real"}).frame.columns


def test_a_plain_table_is_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("id,label,source,p_fake\na,fake,x,0.9\nb,real,y,0.2\n", encoding="utf-8")
    trials = read_trials(str(path), None, find_protocol("triage"), ReadSpec(columns={"score": "p_fake"}))
    assert trials.score.tolist() == [0.9, 0.2] and trials.header.slices == ("source",)
    verdicts = tmp_path / "verdicts.csv"
    verdicts.write_text("id,label,verdict,confidence\na,fake,Fake,0.9\nb,real,inconclusive,0.2\n", encoding="utf-8")
    assert read_trials(str(verdicts), None, find_protocol("triage")).column("decision").to_list() == [1, -1]


def test_the_digest_is_of_items_and_labels() -> None:
    assert dataset_digest(["a"], ["fake"]) != dataset_digest(["a"], ["real"]) != dataset_digest(["b"], ["real"])


def test_lines_of_faults_are_lines_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    good, bad = json.dumps(ROW), json.dumps({**ROW, "id": "s2", "confidence": 1.5})
    path.write_text(f"{good}\n\n{bad}\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_results(path)
    assert [(f.row, f.column, f.value) for f in caught.value.faults] == [(3, "confidence", "1.5")]
