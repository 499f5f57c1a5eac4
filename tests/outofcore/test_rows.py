"""Rows with verdicts, read piece by piece: however a file is cut or sharded, the figures are those of memory."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.errors import UsageError
from hitmiss.io import blocks
from hitmiss.protocols.triage import evaluate_design, evaluate_triage

Row = dict[str, Any]


def rows_of(n: int, seed: int, trials: int = 2) -> list[Row]:
    """Results as several detectors write them: fields that only some rows have, errors, words, nested times."""
    rng, rows = random.Random(seed), list[Row]()
    for i in range(n):
        label = rng.choice(["fake", "real"])
        for trial in range(trials):
            said = rng.choice(["fake", "real", "fake", "real", "uncertain", "who knows"])
            row: Row = {"id": f"s{i}", "model": "m", "trial": trial, "label": label, "prediction": said}
            row |= {"confidence": rng.choice([0.5, 0.75, 0.9, None]), "rationale": 'a "quoted" reason: 5" ' * 3}
            row |= {"meta": {"generator": rng.choice("AB"), **({"size": "L"} if i % 3 else {})}}
            if i > n // 2:
                row |= {
                    "timings": {f"tool{i % 2}_seconds": rng.random()},
                    "cache_hit": bool(i % 2),
                    "late": f"L{i % 2}",
                }
            if rng.random() < 0.1:
                row |= {"error": "timeout", "error_type": "timeout", "prediction": None}
            if rng.random() < 0.5:
                row |= {"latency_seconds": rng.random() * 3, "run_config": {"temperature": rng.choice([0, 1])}}
            rows.append(row)
    return rows


def put(path: Path, rows: list[Row]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run([*words, "--json"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ("triage", "--by", "generator", "--by", "late", "--bootstrap", "30"),
        ("triage", "--least-confidence", "0.6", "--unit", "size", "--bootstrap", "0"),
        ("triage", "--choose", "rates", "--max-slip", "0.9", "--max-false-flag", "0.9", "--bootstrap", "30"),
        ("score", "-p", "triage", "--bootstrap", "30", "--where", "generator=A"),
        ("score", "-p", "triage", "-m", "ece(bins=5)", "-m", "aurc", "--by", "generator"),
    ],
)
def test_every_figure_of_a_stream_is_that_of_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    trials = 1 if "--choose" in words else 2
    file = put(tmp_path / "results.jsonl", rows_of(60, 1, trials))
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2000)  # some twenty pieces
    verb, *rest = words
    assert printed(capsys, verb, file, *rest, "--stream") == printed(capsys, verb, file, *rest)


def test_labels_of_a_dataset_are_joined_in_a_stream(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(40, 2)
    items = {row["id"]: {"id": row["id"], "image": f"{row['id']}.png", "label": row.pop("label")} for row in rows}
    results, dataset = put(tmp_path / "results.jsonl", rows), put(tmp_path / "dataset.jsonl", [*items.values()])
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1500)
    words = ("triage", results, "--dataset", dataset, "--bootstrap", "20")
    assert printed(capsys, *words, "--stream") == printed(capsys, *words)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1000), st.integers(300, 6000), st.integers(1, 4), st.randoms(use_true_random=False))
@example(20, 900, 3, random.Random(20))  # a shard whose rows say nothing of a cache
@example(13, 900, 4, random.Random(13))  # a shard whose only verdict is not understood
def test_no_digit_depends_on_shards_pieces_or_order(seed: int, block: int, shards: int, rng: random.Random) -> None:
    rows = rows_of(8, seed)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        whole = evaluate_triage(put(folder / "whole.jsonl", rows), by=["generator", "late"], bootstrap=10)
        mixed = rng.sample(rows, len(rows))
        files = [put(folder / f"{i}.jsonl", mixed[i::shards]) for i in range(shards)]
        patch.setattr(blocks, "BLOCK_BYTES", block)
        assert whole.figures.design is not None
        trials = hm.read(rng.sample(files, shards), options=whole.figures.reading, memory=10**8)
        found = evaluate_design(trials, whole.figures.design)
    assert found.figures.estimates == whole.figures.estimates
    assert found.figures.content == whole.figures.content
    for part in ("flips", "majority", "latency", "spending"):
        assert getattr(found, part).estimates == getattr(whole, part).estimates, part
    assert [c.to_dict() for c in found.confusions] == [c.to_dict() for c in whole.confusions]


def test_a_streamed_claim_is_verified_gated_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, claim, page = rows_of(40, 3), str(tmp_path / "claim.json"), tmp_path / "page.html"
    file = put(tmp_path / "results.jsonl", rows)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 3000)
    assert run(["triage", file, "--stream", "--bootstrap", "20", "-o", claim]) == 0
    assert run(["verify", claim, file]) == 0
    assert run(["verify", claim, put(tmp_path / "results.jsonl", rows[::-1])]) == 0
    assert run(["verify", claim, put(tmp_path / "results.jsonl", rows[2:])]) == 1
    assert run(["gate", claim, "--fail-if", "coverage < 0.01"]) == 0
    assert run(["report", claim, "-o", str(page)]) == 0
    assert "fake_slip_rate" in page.read_text()


def test_a_fault_far_down_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of(30, 4)
    rows[50]["confidence"] = 7
    file = put(tmp_path / "results.jsonl", rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", 1000)
        assert run(["triage", file, "--stream", "--json"]) == 3
        found = json.loads(capsys.readouterr().out)["error"]
        Path(file).write_text(Path(file).read_text().replace('{"id": "s20"', '{"id" "s20"', 1))
        assert run(["triage", file, "--stream"]) == 3
        assert "row 41" in capsys.readouterr().err
    assert [fault["row"] for fault in found["faults"]] == [51]


def test_quotes_in_json_need_not_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(30, 5, trials=1)
    for row in rows:
        row.pop("rationale")
    rows[3]["rationale"] = '5" wide'
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 500)
    monkeypatch.setattr(blocks, "LONGEST_LINE", 2000)
    assert run(["triage", put(tmp_path / "results.jsonl", rows), "--stream", "--bootstrap", "0"]) == 0


def test_rows_beyond_the_memory_are_refused(tmp_path: Path) -> None:
    file = put(tmp_path / "results.jsonl", rows_of(60, 6))
    with pytest.raises(UsageError) as err:
        hm.read(file, layout="triage", positive="fake", negative="real", memory=10_000)
    assert err.value.code == "rows-beyond-memory"


@pytest.mark.parametrize("how", [("--engine", "duckdb"), ("--counts",)])
def test_rows_are_not_counted_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: tuple[str, ...]
) -> None:
    file = put(tmp_path / "results.jsonl", rows_of(20, 7))
    assert run(["score", file, "-p", "triage", *how, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "needs-every-trial"
