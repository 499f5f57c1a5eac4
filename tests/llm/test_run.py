"""Runs without a language model: functions and detectors, rows and trials, resuming, refusals. No inspect_ai is needed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from llm_parts import rows_of, write_dataset
from tests.llm.running import run_llm

from hitmiss.cli.main import run
from hitmiss.core.ask_spec import AskSpec
from hitmiss.core.errors import IncompleteRun, UsageError
from hitmiss.core.run_spec import RunSpec
from hitmiss.engine.comparability import breaches, unchecked
from hitmiss.io.triage import read_results
from hitmiss.llm.detectors import Model, open_models
from hitmiss.llm.items import Item, read_items
from hitmiss.llm.plan import CallPlan
from hitmiss.runs.manifest import require_complete

FUNCTIONS = '''
import os, time

def by_label(item):
    """Knows nothing but the last digit of the size of the file."""
    n = len(item.load()) % 10
    if n == 0:
        raise ValueError("cannot be done")
    if n == 1:
        return {"verdict": "perhaps", "confidence": 0.5}
    if n == 2:
        return "uncertain"
    return {"verdict": "fake" if n % 2 else "real", "confidence": n / 10, "rationale": f"size ends in {n}"}

def probability(item):
    return (len(item.load()) % 100) / 100

def slow(item):
    with open(os.environ["CALLS"], "a") as file:
        file.write(item.id + "\\n")
    time.sleep(0.01)
    return 0.9

def factory():
    return probability
'''


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FUNCTIONS)
    return path


def plan_of(items: list[Item], models: dict[str, Model], **more: Any) -> CallPlan:
    return CallPlan(items, list(models), detectors={name: model.identity for name, model in models.items()}, **more)


def test_every_outcome_of_a_function_has_its_row(pictures: Path, functions: Path, tmp_path: Path) -> None:
    items = read_items(pictures)
    models = open_models([f"{functions}:by_label"])
    outcome = run_llm(plan_of(items, models, trials=2), output=tmp_path / "r.jsonl", models=models)
    rows = rows_of(tmp_path / "r.jsonl")
    assert [(r["trial"], r["id"]) for r in rows] == [(t, i.id) for t in (0, 1) for i in items]
    for row, item in zip(rows, items * 2, strict=True):
        n = len(item.load()) % 10
        if n == 0:
            assert row["error"] == "ValueError: cannot be done" and row["prediction"] is None
        elif n == 1:
            assert row["prediction"] is None and "perhaps" in row["problem"] and "error" not in row
        elif n == 2:
            assert (row["prediction"], row["confidence"]) == ("uncertain", None)
        else:
            assert (row["prediction"], row["confidence"]) == ("fake" if n % 2 else "real", n / 10)
        assert row["cost"] is None and row["cost_reason"] and row["label"] == item.label
    assert len(outcome.trials) == 48


def test_trials_hold_what_the_rows_hold(pictures: Path, functions: Path, tmp_path: Path) -> None:
    models = open_models([f"{functions}:by_label"])
    outcome = run_llm(plan_of(read_items(pictures), models), output=tmp_path / "r.jsonl", models=models)
    rows = rows_of(tmp_path / "r.jsonl")
    trials = read_results(tmp_path / "r.jsonl")
    assert trials.frame.equals(outcome.trials.frame)
    frame = trials.frame.sort("item")
    said = {"fake": 1, "real": 0}
    expected = [
        None if "error" in r else said.get(r["prediction"] or "", -1) for r in sorted(rows, key=lambda r: str(r["id"]))
    ]
    abstain = frame["decision"].to_list()
    assert [
        d if d in (0, 1) else None if e else -1 for d, e in zip(abstain, frame["error"].to_list(), strict=True)
    ] == expected
    assert int(frame["unparsed"].sum()) == sum(bool(r["problem"]) for r in rows)
    assert frame["source"].to_list() == [r["meta"]["source"] for r in sorted(rows, key=lambda r: str(r["id"]))]
    assert frame["latency_seconds"].to_list() == [
        r["latency_seconds"] for r in sorted(rows, key=lambda r: str(r["id"]))
    ]
    assert set(trials.header.slices) == {"source", "cache"}  # nothing else of the rows became a slice
    told = trials.header.provenance
    assert told["dataset_content"] and told["packages"]["hitmiss"] and told["models"]["agent"].endswith("by_label")
    manifest = require_complete(tmp_path / "r.run")
    assert manifest["kind"] == "llm" and pl.read_parquet(tmp_path / "r.run" / "trials.parquet").height == 24


def test_probabilities_become_verdicts_by_two_thresholds(pictures: Path, functions: Path, tmp_path: Path) -> None:
    items = read_items(pictures)
    models = open_models([f"{functions}:probability"], thresholds=(0.3, 0.7))
    run_llm(plan_of(items, models), output=tmp_path / "r.jsonl", models=models)
    for row, item in zip(rows_of(tmp_path / "r.jsonl"), items, strict=True):
        p = (len(item.load()) % 100) / 100
        assert row["prediction"] == ("fake" if p >= 0.7 else "real" if p < 0.3 else "uncertain")
        assert row["confidence"] == pytest.approx(p if p >= 0.7 else 1 - p if p < 0.3 else max(p, 1 - p))


def test_a_classic_detector_is_asked_about_the_same_items(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "fitted.py").write_text(
        "import numpy as np\nfrom sklearn.linear_model import LogisticRegression\n"
        "rng = np.random.default_rng(0)\n"
        "model = LogisticRegression().fit(rng.normal(size=(20, 48 * 48 * 3)), ['real', 'fake'] * 10)\n"
    )
    import importlib.util

    import numpy as np
    from PIL import Image

    name = f"{tmp_path / 'fitted.py'}:model"
    models = open_models([name])
    items = read_items(pictures)
    run_llm(plan_of(items, models), output=tmp_path / "r.jsonl", models=models)
    spec = importlib.util.spec_from_file_location("fitted_again", tmp_path / "fitted.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for row, item in zip(rows_of(tmp_path / "r.jsonl"), items, strict=True):
        assert item.path is not None
        pixels = np.asarray(Image.open(item.path).convert("RGB"), dtype=np.float64) / 255
        p = module.model.predict_proba(pixels.transpose(2, 0, 1).reshape(1, -1))[0][
            list(module.model.classes_).index("fake")
        ]
        assert row["prediction"] == ("fake" if p >= 0.5 else "real")
        assert row["confidence"] == pytest.approx(max(p, 1 - p), abs=1e-5)


@pytest.mark.skipif(find_spec("inspect_ai") is not None, reason="inspect_ai is here")
def test_without_inspect_ai_a_language_model_is_a_sentence(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["llm", "--dataset", str(pictures), "--models", "gpt-5.1", "-o", str(tmp_path / "r.jsonl")]) == 5
    assert "hitmiss[llm]" in capsys.readouterr().err


class TestCommand:
    def words(self, dataset: Path, functions: Path, out: Path) -> list[str]:
        return [
            "llm",
            "--dataset",
            str(dataset),
            "--models",
            f"{functions}:by_label",
            "hitmiss.llm.standin:look",
            "-o",
            str(out),
        ]

    def test_files_and_summary(
        self, pictures: Path, functions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out, metrics = tmp_path / "r.jsonl", tmp_path / "m.json"
        assert (
            run(
                [
                    *self.words(pictures, functions, out),
                    "--trials",
                    "2",
                    "--metrics-output",
                    str(metrics),
                    "--canaries",
                    "4",
                ]
            )
            == 0
        )
        seen = capsys.readouterr()
        assert "cost is undefined" in seen.out and seen.out.count("canaries: ") == 2
        assert len(rows_of(out)) == 96 and len(rows_of(tmp_path / "r.run" / "canaries.jsonl")) == 16
        written = json.loads(metrics.read_text())
        assert set(written) - {"_meta"} == {f"{functions}:by_label|no-tools", "hitmiss.llm.standin:look|no-tools"}
        assert run(["triage", str(out)]) == 0
        shown = capsys.readouterr().out
        assert run(["triage", str(tmp_path / "r.run")]) == 0  # the run stands for its rows
        assert capsys.readouterr().out.partition("!")[0] == shown.partition("!")[0]
        pair = [f"{out}[model={m}]" for m in (f"{functions}:by_label", "hitmiss.llm.standin:look")]
        assert run(["compare", *pair, "-p", "triage", "-m", "accuracy"]) == 0

    def test_json(self, pictures: Path, functions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run([*self.words(pictures, functions, tmp_path / "r.jsonl"), "--limit", "3", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert [cell["calls"] for cell in told["cells"]] == [3, 3] and told["schema"] == 1

    @pytest.mark.parametrize(
        ("extra", "why", "code"),
        [
            (["--tools", "some"], "no-tools", 2),
            (["--trials", "0"], "--trials", 2),
            (["--limit", "0"], "--limit", 2),
            (["--thresholds", "0.8", "0.2"], "low threshold must not exceed", 2),
            (["--thresholds", "0.8"], "two numbers", 2),
            (["--base-url", "nowhere"], "http or https", 2),
            (["--canaries", "-1"], "--canaries", 2),
            (["--api-key-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE", 2),
            (["--prices", "no.toml"], "no.toml", 3),
            (["--metrics-output", "nowhere/m.json"], "there is no folder nowhere", 2),
            (["--base-url", "http://127.0.0.1:99999/v1"], "http or https", 2),
            (["--base-url", "http://me:secret-word@127.0.0.1/v1"], "no user name", 2),
        ],
    )
    def test_wrong_words(
        self,
        extra: list[str],
        why: str,
        code: int,
        pictures: Path,
        functions: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        assert run([*self.words(pictures, functions, tmp_path / "r.jsonl"), *extra]) == code
        said = capsys.readouterr().err
        assert why in said and "secret-word" not in said and not (tmp_path / "r.run").exists()

    def test_a_run_without_an_answer_is_a_failure(
        self, pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "bad.py").write_text("def f(item):\n    raise OSError('the camera is off')\n")
        words = [
            "llm",
            "--dataset",
            str(pictures),
            "--models",
            f"{tmp_path / 'bad.py'}:f",
            "-o",
            str(tmp_path / "r.jsonl"),
        ]
        assert run([*words, "--limit", "3"]) == 5 and "all 3 calls failed" in capsys.readouterr().err
        assert run(words) == 5  # of 24: given up after 20
        said = capsys.readouterr().err
        assert "the first 20 calls all failed" in said and "OSError: the camera is off" in said
        assert not (tmp_path / "r.jsonl").exists(), "there are no rows"
        (tmp_path / "bad.py").write_text("def f(item):\n    return 0.9\n")
        assert run(words) == 0 and len(rows_of(tmp_path / "r.jsonl")) == 24

    def test_a_stranger_s_folder_is_left_alone(
        self, pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "bad.py").write_text("def f(item):\n    raise OSError('off')\n")
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "notes.txt").write_text("keep")
        words = ["llm", "--dataset", str(pictures), "--models", f"{tmp_path / 'bad.py'}:f"]
        assert run([*words, "-o", str(tmp_path / "r.jsonl"), "--run", str(tmp_path / "mine")]) == 2
        assert "holds no run" in capsys.readouterr().err and (tmp_path / "mine" / "notes.txt").read_text() == "keep"

    def test_leaks_are_warned_of(self, functions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        rows = [{"id": f"{lab}-{i}", "text": f"t {i}", "label": lab} for i in range(6) for lab in ("real", "fake")]
        dataset = write_dataset(tmp_path, rows)
        assert (
            run(
                [
                    "llm",
                    "--dataset",
                    str(dataset),
                    "--models",
                    f"{functions}:probability",
                    "-o",
                    str(tmp_path / "r.jsonl"),
                ]
            )
            == 0
        )
        assert "! the ids give the answer away" in capsys.readouterr().err


class TestResuming:
    def test_a_file_of_somebody_else_is_left_alone(self, pictures: Path, functions: Path, tmp_path: Path) -> None:
        models, out = open_models([f"{functions}:probability"]), tmp_path / "r.jsonl"
        out.write_text("mine\n")
        for resume in (False, True):
            with pytest.raises(UsageError, match="give another output"):
                run_llm(plan_of(read_items(pictures), models), output=out, models=models, spec=RunSpec(resume=resume))
        assert out.read_text() == "mine\n"
        with pytest.raises(UsageError, match="there is no folder"):
            run_llm(plan_of(read_items(pictures), models), output=tmp_path / "no" / "r.jsonl", models=models)

    def test_what_changed_is_told(self, pictures: Path, functions: Path, tmp_path: Path) -> None:
        name = f"{functions}:probability"
        models = open_models([name])
        items = read_items(pictures)
        run_llm(plan_of(items, models), output=tmp_path / "r.jsonl", models=models)
        changed = {
            "items": lambda: run_llm(
                plan_of(items[:-1], models), output=tmp_path / "r.jsonl", models=models, spec=RunSpec(resume=True)
            ),
            "settings.temperature": lambda: run_llm(
                plan_of(items, models, settings=AskSpec(temperature=1.0)),
                output=tmp_path / "r.jsonl",
                models=models,
                spec=RunSpec(resume=True),
            ),
        }
        for what, again in changed.items():
            with pytest.raises(IncompleteRun, match=f"{what}: .* before, .* now"):
                again()
        functions.write_text(FUNCTIONS + "\n# another version\n")
        other = open_models([name])
        with pytest.raises(IncompleteRun, match=r"source: .* before, .* now"):
            run_llm(plan_of(items, other), output=tmp_path / "r.jsonl", models=other, spec=RunSpec(resume=True))
        with pytest.raises(UsageError, match="finished run; give another output"):
            run_llm(plan_of(items, models), output=tmp_path / "r.jsonl", models=models)

    def test_failed_calls_are_asked_again_only_on_request(self, pictures: Path, tmp_path: Path) -> None:
        flag, path = tmp_path / "fixed", tmp_path / "flaky.py"
        path.write_text(
            f"import os\ndef f(item):\n    if not os.path.exists({str(flag)!r}) and item.id.endswith('1'):\n        raise ValueError('no')\n    return 0.9\n"
        )
        models = open_models([f"{path}:f"])
        plan, out = plan_of(read_items(pictures), models), tmp_path / "r.jsonl"
        first = run_llm(plan, output=out, models=models)
        n = sum("error" in row for row in first.rows)
        assert n == 3
        flag.touch()
        assert (
            sum("error" in row for row in run_llm(plan, output=out, models=models, spec=RunSpec(resume=True)).rows) == n
        )
        assert (
            sum(
                "error" in row
                for row in run_llm(plan, output=out, models=models, spec=RunSpec(resume=True, retry=True)).rows
            )
            == 0
        )

    def test_a_killed_run_loses_and_repeats_nothing(self, pictures: Path, functions: Path, tmp_path: Path) -> None:
        calls, out = tmp_path / "calls", tmp_path / "r.jsonl"
        calls.touch()
        words = ["llm", "--dataset", str(pictures), "--models", f"{functions}:slow", "--trials", "4", "-o", str(out)]
        command = [sys.executable, "-m", "hitmiss", *words, "--resume"]
        env = {**os.environ, "CALLS": str(calls)}
        for goal in (7, 31):
            process = subprocess.Popen(command, env=env)
            while len(calls.read_text().splitlines()) < goal and process.poll() is None:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.wait()
        kept = sum(path.read_bytes().count(b"\n") for path in (tmp_path / "r.run" / "items").glob("*.jsonl"))
        before = len(calls.read_text().splitlines())
        assert kept <= before <= kept + 2  # at most the one call that was under way at each kill
        assert subprocess.run(command, env=env, capture_output=True).returncode == 0
        assert len(calls.read_text().splitlines()) - before == 96 - kept
        assert len({(r["id"], r["trial"]) for r in rows_of(out)}) == len(rows_of(out)) == 96
        # the same as a run that nobody killed, in another time zone, language and order of hashes
        other = {**env, "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
        whole = [*command[:-2], str(tmp_path / "whole.jsonl")]
        assert subprocess.run(whole, env=other, capture_output=True).returncode == 0
        rows = rows_of(tmp_path / "whole.jsonl")
        ages = [datetime.now(UTC) - datetime.fromisoformat(r["timestamp"]) for r in rows]
        assert all(timedelta(0) <= age < timedelta(hours=1) for age in ages)
        assert [lasting(r) for r in rows] == [lasting(r) for r in rows_of(out)]


def lasting(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what differs from one moment to the next."""
    return {k: v for k, v in row.items() if k not in ("timestamp", "timings", "latency_seconds")}


def test_runs_over_other_files_cannot_be_compared(pictures: Path, functions: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in pictures.read_text().splitlines()]
    swapped = [{**row, "image": other["image"]} for row, other in zip(rows, rows[4:] + rows[:4], strict=True)]
    dataset = write_dataset(pictures.parent, swapped, "swapped.jsonl")
    found = []
    for name, path in (("a", pictures), ("b", dataset)):
        models = open_models([f"{functions}:probability"])
        found.append(
            run_llm(plan_of(read_items(path), models), output=tmp_path / f"{name}.jsonl", models=models).trials
        )
    assert [b.name for b in breaches(*found)] == ["different contents"]
    assert breaches(found[0], found[0]) == [] and unchecked(*found) == []
