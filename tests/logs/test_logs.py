"""Logs that other tools wrote are read to the numbers of their own summaries, and compared by the exact paired test."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, HitmissError, UsageError
from hitmiss.io.logs.opening import find_tool
from hitmiss.io.reader import read
from hitmiss.io.triage import results_in

HERE = Path(os.environ.get("HITMISS_PEER_LOGS", Path(__file__).parent / "files"))
needs_zstd = pytest.mark.extras
PAIRS = {
    "inspect_ai": ("inspect_a.eval", "inspect_b.eval"),
    "lm-eval": ("lm_eval_a", "lm_eval_b"),
    "promptfoo": ("promptfoo_a.json", "promptfoo_b.json"),
}


def exact_p(only_a: int, only_b: int) -> float:
    """The two-sided exact test of a fair coin."""
    n, least = only_a + only_b, min(only_a, only_b)
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(least + 1)) / 2**n)


def unpaired_p(one: float, other: float, n: int) -> float:
    """The test of lm-eval's own comparator: z of the difference, by the standard errors of the two."""
    errors = [math.sqrt(p * (1 - p) / (n - 1)) for p in (one, other)]
    return math.erfc(abs(one - other) / math.hypot(*errors) / math.sqrt(2))


@pytest.fixture(params=[pytest.param(name, marks=needs_zstd if name == "inspect_ai" else ()) for name in PAIRS])
def pair(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    if request.param == "inspect_ai":
        pytest.importorskip("zipfile_zstd", reason="inspect_ai is not installed")
    a, b = PAIRS[request.param]
    if not (HERE / a).exists():
        pytest.skip(f"{a} was not made")
    return request.param, str(HERE / a), str(HERE / b)


def compared(a: str, b: str, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert run(["compare", a, b, "--json", *more]) == 0, capsys.readouterr().err
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


def test_a_known_table_gives_the_exact_paired_p(pair: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    [row] = compared(*pair[1:], capsys)["differences"]
    assert (row["a"], row["b"]) == (34 / 40, 28 / 40)
    assert row["p_value"] == pytest.approx(exact_p(6, 0)) == pytest.approx(0.03125)
    assert unpaired_p(34 / 40, 28 / 40, 40) > 0.1, "the same data, taken as unpaired, show nothing"


def test_the_number_is_that_of_the_tool(pair: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    tool, *paths = pair
    for path in paths:
        summary = read(path).header.provenance["summary"]
        own = {
            "inspect_ai": lambda s: s["match/accuracy"],
            "lm-eval": lambda s: s["table/exact_match,none"],
            "promptfoo": lambda s: s["successes"] / (s["successes"] + s["failures"] + s["errors"]),
        }[tool](summary)
        assert run(["score", path, "--json"]) == 0
        [estimate] = json.loads(capsys.readouterr().out)["estimates"]
        assert estimate["metric"] == "accuracy" and estimate["value"] == pytest.approx(own)


def test_the_log_says_how_it_was_made(pair: tuple[str, str, str]) -> None:
    tool, path, _ = pair
    trials = read(path)
    assert trials.header.provenance["tool"] == tool == find_tool(Path(path)).name  # type: ignore[union-attr]
    assert trials.header.runs == ("model",) or "model" in trials.header.runs
    assert len(trials) == 40 and trials.header.sources[0].sha256


def test_a_report_and_a_gate_follow(
    pair: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, a, b = pair
    page = tmp_path / "report.html"
    assert run(["report", a, b, "-o", str(page)]) == 0, capsys.readouterr().err
    assert re.search(r"85.%.and.70.%", page.read_text())
    assert run(["score", a, "--require", "accuracy >= 0.5"]) == 0
    assert run(["score", b, "--require", "accuracy >= 0.9"]) == 1


def test_a_gate_takes_logs_as_the_run_and_as_its_baseline(
    pair: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, a, b = pair
    limit = ["--max-regression", "accuracy=0.02", "--json"]
    assert run(["gate", a, "--baseline", b, *limit]) == 0
    assert run(["gate", b, "--baseline", a, *limit]) == 1, capsys.readouterr().err
    assert run(["gate", b, "--fail-if", "accuracy < 0.75"]) == 1
    assert run(["gate", a, "--fail-if", "accuracy < 0.75"]) == 0


def test_a_gate_over_epochs_draws_items(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grades = {f"i{k}": [float(k % 4 > 0), float(k % 4 > 1)] for k in range(40)}
    a = inspect_json(tmp_path / "a.json", grades)
    b = inspect_json(
        tmp_path / "b.json", {name: [own[0] * (i % 3 > 0), own[1]] for i, (name, own) in enumerate(grades.items())}
    )
    [row] = compared(str(a), str(b), capsys)["differences"]
    assert run(["gate", str(b), "--baseline", str(a), "--max-regression", "mean accuracy=0.02", "--json"]) == 1
    [check] = json.loads(capsys.readouterr().out)["checks"]
    assert (check["low"], check["high"]) == pytest.approx((-row["high"], -row["low"]))


def garak_report(path: Path, hits: list[list[float | None]], probe: str = "dan.Dan_11_0") -> None:
    """A report with the entries that garak 0.17 writes: each attempt before and after it was judged, then the sum."""
    setup = {
        "entry_type": "start_run setup",
        "_config.version": "0.17.1",
        "run.eval_threshold": 0.5,
        "plugins.target_type": "test",
        "plugins.target_name": "Blank",
    }
    lines: list[dict[str, Any]] = [setup]
    for i, own in enumerate(hits):
        attempt = {"entry_type": "attempt", "uuid": f"u{path.stem}{i}", "seq": i, "probe_classname": probe}
        lines.append({**attempt, "status": 1, "detector_results": {}})
        lines.append({**attempt, "status": 2, "detector_results": {"dan.DAN": own}})
    values = [v for own in hits for v in own]
    known = [v for v in values if v is not None]
    passed = sum(v < 0.5 for v in known)
    lines.append(
        {
            "entry_type": "eval",
            "probe": probe,
            "detector": "dan.DAN",
            "passed": passed,
            "fails": len(known) - passed,
            "nones": len(values) - len(known),
            "total_evaluated": len(known),
            "total_processed": len(values),
        }
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_garak_passes_are_those_of_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = tmp_path / "a.report.jsonl", tmp_path / "b.report.jsonl"
    garak_report(a, [[0.0], [0.4], [0.5], [1.0], [0.0], [0.1], [0.2], [0.0]])
    garak_report(b, [[1.0], [0.9], [0.5], [1.0], [1.0], [0.6], [0.7], [0.0]])
    own = read(a).header.provenance["summary"]
    [row] = compared(str(a), str(b), capsys)["differences"]
    assert row["a"] == own["dan.Dan_11_0/dan.DAN/passed"] / own["dan.Dan_11_0/dan.DAN/total"] == 0.75
    assert row["p_value"] == pytest.approx(exact_p(5, 0))


def test_garak_outputs_without_a_result_are_not_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = tmp_path / "a.report.jsonl"
    garak_report(a, [[0.0, None], [0.0, 1.0]])
    assert run(["score", str(a), "--json", "-m", "accuracy", "-m", "accuracy_answered"]) == 0
    made = json.loads(capsys.readouterr().out)
    means = {e["metric"]: e["value"] for e in made["estimates"] if e["average"] == "mean"}
    assert means["accuracy"] == 0.5
    assert any("1 of 4 answers have no grade" in w for w in made["warnings"])


def label_studio(path: Path) -> None:
    """An export as Label Studio documents it (guide/task_format): annotations of two people, a truth, a prediction."""

    def result(choice: str) -> list[dict[str, Any]]:
        return [{"from_name": "kind", "to_name": "text", "type": "choices", "value": {"choices": [choice]}}]

    tasks = []
    for i in range(10):
        truth = "toxic" if i < 4 else "clean"
        people = [
            {"id": 10 * i + p, "completed_by": p, "result": result(said), "ground_truth": False, "lead_time": 2.5}
            for p, said in ((1, truth), (2, "clean"))
        ]
        people[1] |= {"was_cancelled": True, "result": []} if i == 9 else {}
        own = [*people, {"id": 999, "completed_by": 3, "result": result(truth), "ground_truth": True}]
        said = "toxic" if i in (0, 1, 5) else "clean"
        predictions = [{"model_version": "m1", "score": 0.8, "result": result(said)}]
        tasks.append({"id": i, "data": {"text": f"t{i}"}, "annotations": own, "predictions": predictions})
    path.write_text(json.dumps(tasks))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (label_studio, {"annotator 1": (10, 10), "annotator 2": (5, 10), "m1": (7, 10)}),
        (None, {"annotator …1": (11, 12), "annotator …2": (8, 12), "model-1": (10, 12)}),
    ],
    ids=["label-studio", "argilla"],
)
def test_people_and_models_are_runs(
    make: Any, expected: dict[str, tuple[int, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = HERE / "argilla.json"
    if make is not None:
        path = tmp_path / "export.json"
        make(path)
    assert run(["score", str(path), "--positive", "toxic", "--negative", "clean", "-m", "accuracy", "--json"]) == 0
    found = {e["run"]["model"]: e["value"] for e in json.loads(capsys.readouterr().out)["estimates"]}
    short = {name.replace("00000000-0000-0000-0000-00000000000", "…"): value for name, value in found.items()}
    assert short == pytest.approx({name: right / n for name, (right, n) in expected.items()})


GRADED = {
    "version": 2,
    "status": "success",
    "eval": {"run_id": "r", "model": "m", "task": "t", "packages": {"inspect_ai": "0.3"}},
    "results": {"scores": [{"name": "judge", "metrics": {"mean": {"value": 0.4}}}]},
}


def inspect_json(path: Path, grades: dict[str, list[float | None]], status: str = "success") -> Path:
    """A log in the JSON form of inspect_ai, with the grades of each epoch."""
    samples = [
        {"id": i, "epoch": n + 1, "target": "", "scores": {} if g is None else {"judge": {"value": g}}}
        | ({"error": {"message": "it failed"}} if g is None else {})
        for i, own in grades.items()
        for n, g in enumerate(own)
    ]
    path.write_text(json.dumps({**GRADED, "status": status, "samples": samples}))
    return path


def test_grades_between_are_compared_by_item_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = {f"i{k}": [0.2 + 0.01 * k, 0.4 + 0.01 * k] for k in range(30)}
    two = {name: [g + 0.1 + 0.01 * (k % 3) for g in own] for k, (name, own) in enumerate(one.items())}
    a, b = inspect_json(tmp_path / "a.json", one), inspect_json(tmp_path / "b.json", two)
    [row] = compared(str(a), str(b), capsys)["differences"]
    assert row["metric"] == "mean_grade"
    means = [sum(map(sum, grades.values())) / 60 for grades in (one, two)]
    assert [row["a"], row["b"]] == pytest.approx(means)
    assert row["low"] < 0.11 < row["high"] and row["p_value"] < 0.05


def test_a_failed_sample_counts_as_wrong_and_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = inspect_json(tmp_path / "a.json", {"a": [1.0], "b": [1.0], "c": [0.0], "d": [None]})
    assert run(["score", str(path), "-m", "accuracy", "-m", "accuracy_answered", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    found = {e["metric"]: e["value"] for e in made["estimates"]}
    assert found == pytest.approx({"accuracy": 0.5, "accuracy_answered": 2 / 3})
    assert any("1 of 4 answers have no grade" in w for w in made["warnings"])


def test_refusals(tmp_path: Path) -> None:
    whole = inspect_json(tmp_path / "a.json", {"a": [1.0]})
    with pytest.raises(DataError, match="was not finished"):
        read(inspect_json(tmp_path / "b.json", {"a": [1.0]}, status="started"))
    with pytest.raises(DataError, match="no answer has a grade"):
        read(inspect_json(tmp_path / "c.json", {"a": [None]}))
    with pytest.raises(UsageError, match="one run each"):
        read([whole, tmp_path / "b.json"])
    with pytest.raises(HitmissError, match="scorer"):
        read(whole, where={"scorer": "nobody"})
    (tmp_path / "e.json").write_text(json.dumps({"evalId": "x", "results": {"results": [], "prompts": []}}))
    with pytest.raises(DataError, match="holds no answer"):
        read(tmp_path / "e.json")
    with pytest.raises(DataError, match="holds no results"):
        results_in(tmp_path)
    (tmp_path / "d.eval").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(DataError, match="damaged"):
        read(tmp_path / "d.eval")
    shutil.copytree(HERE / "lm_eval_a", tmp_path / "both")
    shutil.copytree(HERE / "lm_eval_b" / "b", tmp_path / "both" / "b")
    for file in (tmp_path / "both" / "b").glob("samples_table_*"):
        file.rename(file.with_name(file.name.replace("_table_", "_other_")))
    with pytest.raises(DataError, match="several models"):
        read(tmp_path / "both")


def test_other_files_are_read_as_before(tmp_path: Path) -> None:
    rows = [{"id": "a", "label": 1, "score": 0.5}, {"id": "b", "label": 0, "score": 0.1}]
    for name, text in (("s.json", json.dumps(rows)), ("s.jsonl", "\n".join(map(json.dumps, rows)))):
        (tmp_path / name).write_text(text)
        assert find_tool(tmp_path / name) is None
        assert len(read(tmp_path / name)) == 2
