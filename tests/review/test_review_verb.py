"""`hitmiss review` on the command line: what it refuses, what it reports, what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.review.review_parts import at, write_results

from hitmiss.cli.main import run
from hitmiss.review.answered import Wish
from hitmiss.review.choice import choose
from hitmiss.review.library import Library
from hitmiss.review.queue import Queue
from hitmiss.review.store_file import begin


def reviewed(folder: Path, k: int = 2) -> Path:
    """Results whose review is finished, save for the last item."""
    path = write_results(folder, texts=[f"text {i}" for i in range(4)])
    chosen = choose(str(path), Wish(), Library(folder))
    store = begin(folder / "results.review.sqlite", {**chosen.pinned, "per_item": k, "question": "?"}, chosen.entries)
    queue = Queue(store)
    for name in ("Ann\N{MIDDLE DOT}x", "Bob"):
        who = store.sign_in(name, 0.0)
        for i in range(4 if name == "Bob" else 3):
            item = at(queue, 10.0 * i).take(who)
            assert item is not None
            at(queue, 10.0 * i + 2.5).judge(who, item.key, "positive" if i % 2 else "negative")
    store.close()
    return path


def test_status_and_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = reviewed(tmp_path)
    assert run(["review", str(path), "--status"]) == 0
    out = capsys.readouterr().out
    assert "3 of 4 items have all verdicts (2 each)" in out and "Krippendorff's alpha: 1.0000" in out and "2.5 s" in out
    assert run(["review", str(path), "--status", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["done"], found["verdicts"], found["said"]["positive"]) == (3, 7, 3)
    target = tmp_path / "v.jsonl"
    assert run(["review", str(path), "--export", str(target)]) == 0
    captured = capsys.readouterr()
    assert "wrote 7 verdicts" in captured.err and "not finished: 3 of 4" in captured.err and not captured.out
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert {r["id"] for r in rows} == {f"secret-{i}" for i in range(4)} and {r["prediction"] for r in rows} == {
        "real",
        "fake",
    }
    assert str(tmp_path) not in target.read_text(), "no path of this machine"


def test_verdicts_are_results_like_any_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run called `human`, each reviewer a trial, labels from the dataset."""
    path = reviewed(tmp_path)
    dataset = tmp_path / "dataset.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    dataset.write_text("".join(json.dumps({"id": r["id"], "label": r["label"]}) + "\n" for r in rows))
    assert run(["review", str(path), "--export", str(tmp_path / "v.jsonl")]) == 0
    assert run(["triage", str(tmp_path / "v.jsonl"), "--dataset", str(dataset), "--allow-missing", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {e["run"].get("model") for e in found["estimates"]} == {"human"}


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--host", "0.0.0.0"], 2, "--allow-remote"),
        (["--host", "example.org"], 2, "--allow-remote"),
        (["--per-item", "0"], 2, "--per-item"),
        (["--thresholds", "0.5"], 2, "two numbers"),
        (["--verdicts", "purple"], 2, "unknown verdict"),
        (["--items", "nobody"], 3, "not in results.jsonl"),
        (["--store", "no/such/folder/r.sqlite"], 2, "no folder"),
        (["--status", "--store", "nothing.sqlite"], 2, "there is no review"),
    ],
)
def test_wrong_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, text: str
) -> None:
    path = write_results(tmp_path, texts=["a", "b"])
    assert run(["review", str(path), *words]) == code
    assert text in capsys.readouterr().err


def test_another_way_is_refused_with_the_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = reviewed(tmp_path)
    assert run(["review", str(path), "--per-item", "3"]) == 4
    assert "per_item: 2 before, 3 now" in capsys.readouterr().err
    path.write_text(path.read_text() + json.dumps({"id": "new", "text": "x", "prediction": "uncertain"}) + "\n")
    assert run(["review", str(path), "--per-item", "2", "--question", "?"]) == 4
    assert "n_items: 4 before, 5 now" in capsys.readouterr().err


def test_help_says_what_it_does_and_imports_little() -> None:
    import subprocess
    import sys

    code = "from hitmiss.cli.main import run; run(['review', '--help']); import sys; print(sorted({'numpy', 'polars', 'starlette', 'sqlite3', 'jinja2'} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "exactly k verdicts" in " ".join(done.stdout.split()) and done.stderr.strip() == "[]"
