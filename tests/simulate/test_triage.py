"""The simulated triage results: the document's form, two configurations, three trials, the same for the same seed."""

from __future__ import annotations

import json
from pathlib import Path

from hitmiss.io.triage import read_results
from hitmiss.simulate.triage import FILES, TRIALS, write


def test_the_files_are_those_of_the_document(tmp_path: Path) -> None:
    folder = write(tmp_path / "t", share=0.01)
    assert all((folder / name).is_file() for name in FILES)
    assert "SIMULATED" in (folder / "README.txt").read_text()
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert {(r["use_tools"], r["trial"]) for r in rows} == {(t, k) for t in (True, False) for k in range(TRIALS)}
    assert {"id", "model", "run_config", "prediction", "confidence", "models", "prompt_hashes", "timings"} <= set(
        rows[0]
    )
    assert any(r.get("error") for r in rows) and any("word" in r["prediction"] for r in rows)


def test_it_is_read_with_its_dataset(tmp_path: Path) -> None:
    folder = write(tmp_path / "t", share=0.01)
    trials = read_results(folder / "results.jsonl", folder / "dataset.jsonl")
    assert len(trials) == 200 * 2 * TRIALS and {*trials.header.slices} == {"source", "cache"}
    assert 0.4 < trials.n_positive / len(trials) < 0.6


def test_it_is_the_same_for_the_same_seed_and_not_for_another(tmp_path: Path) -> None:
    one, two, three = (write(tmp_path / name, share=0.01, seed=seed) for name, seed in (("a", 4), ("b", 4), ("c", 5)))
    same, other = ((folder / "results.jsonl").read_bytes() for folder in (two, three))
    assert (one / "results.jsonl").read_bytes() == same != other
    before = (one / "results.jsonl").stat().st_mtime_ns
    write(one, share=0.01)
    assert (one / "results.jsonl").stat().st_mtime_ns == before
