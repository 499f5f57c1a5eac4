"""The documents' scripts run as modules here, with the documents' flags."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hitmiss.cli.main import run
from hitmiss.simulate.toxicity import write

LOOK = """
def look(item):
    return 0.9 if item.id.startswith("f") else 0.2
"""


def module(name: str, *words: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"hitmiss.protocols.{name}", *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_score_py(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write(tmp_path)
    words = ["--config", str(data / "configs" / "detoxify_multilingual.yaml"), "--pred_dir", str(data / "predictions")]
    words += ["--run_tag", "baseline", "--languages", "en", "es", "--documented", "--output", str(tmp_path / "m.csv")]
    done = module("toxicity", *words)
    assert done.returncode == 0 and (tmp_path / "m.csv").is_file(), done.stderr
    assert run(["toxicity", *words]) == 0
    assert done.stdout == capsys.readouterr().out != ""


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    (tmp_path / "looking.py").write_text(LOOK)
    rows = [
        {"id": f"{label[0]}{i}", "text": f"{label} {i}", "label": label} for label in ("fake", "real") for i in range(4)
    ]
    rows.append({"id": "gone", "image": "gone.png", "label": "fake"})
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_evaluate_llms(dataset: Path) -> None:
    flags = ["--dataset", "d.jsonl", "--models", "looking.py:look", "--output", "r.jsonl", "--metrics-output", "m.json"]
    own = ["--num-workers", "2", "--shuffle", "--enable-tool-cache", "--tools", "no-tools", "--temperature", "0.0"]
    refused = module("evaluate_llms", *flags, *own, folder=dataset)
    assert refused.returncode == 3 and "gone.png" in refused.stderr
    other = module("evaluate_llms", *flags, *own, "--skip-missing-images", "--vision-model", "another", folder=dataset)
    assert other.returncode == 2 and "looking.py:look is not a language model" in other.stderr
    done = module("evaluate_llms", *flags, *own, "--skip-missing-images", folder=dataset)
    assert done.returncode == 0 and "1 items are left out" in done.stderr, done.stderr
    ids = [json.loads(line)["id"] for line in (dataset / "r.jsonl").read_text().splitlines()]
    assert sorted(ids) == sorted(f"{x}{i}" for x in "fr" for i in range(4)) and ids != sorted(ids)
    assert (dataset / "m.json").is_file()


def test_summarize_results(tmp_path: Path) -> None:
    rows = [
        {"id": f"s{i}", "model": "m", "use_tools": tools, "label": "fake", "prediction": said, "confidence": 0.9}
        for tools, wrong in ((False, 4), (True, 1))
        for i in range(10)
        for said in ["real" if i < wrong else "fake"]
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = module("summarize_results", tmp_path / "r.jsonl", "--bootstrap", "0")
    assert done.returncode == 0, done.stderr
    assert "McNemar" in done.stdout and "accuracy" in done.stdout
    (tmp_path / "dataset.jsonl").write_text('{"id": "s0", "image": "s0.png", "label": "fake"}\n')
    out, page = tmp_path / "summary.json", tmp_path / "summary.md"
    done = module("summarize_results", "--results-dir", tmp_path, "--out", out, "--out-md", page, "--bootstrap", "0")
    assert done.returncode == 0, done.stderr
    [(name, found)] = json.loads(out.read_text())["files"].items()
    assert name == "r.jsonl"
    values = {(e["run"]["tools"], e["metric"]): e["value"] for e in found["estimates"] if not e["slice"]}
    assert values["no-tools", "accuracy"] == 0.6 and values["tools", "accuracy"] == 0.9
    assert found["tools"]["m"]["differences"][0]["p_value"] == 2 * 0.5**3  # three pairs differ, all one way
    assert "## m: tools against no tools" in page.read_text() and "| 0.9000" in page.read_text()
    assert run(["triage", str(tmp_path), "--json", "--bootstrap", "0"]) == 0
