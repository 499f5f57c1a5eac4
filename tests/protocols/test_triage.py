"""The document's evaluation from files to its metrics file, and its names on plain records."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hitmiss.cli.main import run
from hitmiss.core.errors import UnknownName
from hitmiss.protocols.triage import compute_metrics, evaluate_triage, repeats_of, write_metrics
from hitmiss.protocols.triage_file import HEADLINES, metrics_file
from hitmiss.stats.intervals import wilson

COUNTS = {"tp": 76, "fp": 25, "fn": 2, "tn": 44}
SILENT = {("fake", "uncertain"): 167, ("real", "uncertain"): 183, ("fake", "error"): 2, ("real", "error"): 1}
SAID = {"tp": ("fake", "fake"), "fp": ("real", "fake"), "fn": ("fake", "real"), "tn": ("real", "real")}

DOCUMENTED = (
    *("total", "correct", "answered", "accuracy", "accuracy_answered", "coverage", "precision_fake", "recall_fake"),
    *("f1_fake", "precision_real", "recall_real", "f1_real", "balanced_accuracy", "balanced_accuracy_answered"),
    *("precision_fake_answered", "recall_fake_answered", "f1_fake_answered", "precision_real_answered"),
    *("recall_real_answered", "f1_real_answered", "avg_confidence", "avg_latency_seconds", "avg_tool_count"),
    *("avg_tool_seconds_total", "abstain_count", "abstain_count_fake", "abstain_count_real", "error_count"),
    *("abstain_rate", "abstain_rate_fake", "abstain_rate_real", "error_rate", "coverage_fake", "coverage_real"),
    *("fake_slip_rate", "real_false_flag_rate", "fake_catch_rate", "real_pass_rate", "confusion", "support"),
)
"""The keys of a trial in the published metrics files, in their order."""


def records(trials: int = 1, tools: tuple[bool, ...] = (True,)) -> list[dict[str, Any]]:
    """Rows with the counts of a published run of 500, all with the same times and tools."""
    cells = [(label, said) for name, n in COUNTS.items() for label, said in [SAID[name]] * n]
    cells += [cell for cell, n in SILENT.items() for _ in range(n)]
    rows = []
    for use_tools in tools:
        for trial in range(trials):
            for i, (label, said) in enumerate(cells):
                row = {"id": f"s{i}", "model": "gpt-5-mini", "use_tools": use_tools, "trial": trial, "label": label}
                row |= {"prediction": "uncertain" if said == "error" else said, "confidence": 0.7}
                row |= {
                    "latency_seconds": 2.0,
                    "tool_usage": ["a"] * 3,
                    "tool_details": [{"tool": "a", "seconds": 0.5}],
                }
                rows.append(row | ({"error": "x", "error_type": "exception"} if said == "error" else {}))
    return rows


def save(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_published_run_comes_out_as_published() -> None:
    found = compute_metrics(records())
    assert tuple(found)[: len(DOCUMENTED)] == DOCUMENTED
    want = {"total": 500, "correct": 120, "answered": 147, "abstain_count": 350, "error_count": 3}
    want |= {"abstain_count_fake": 167, "abstain_count_real": 183}
    assert {k: found[k] for k in want} == want
    assert found["confusion"] == COUNTS and found["support"] == {"real": 253, "fake": 247}
    figures = {"accuracy": 0.24, "accuracy_answered": 0.8163265306122449, "f1_fake": 0.8491620111731845}
    figures |= {"f1_real": 0.7652173913043478, "balanced_accuracy": 0.806020066889632, "abstain_rate": 0.7}
    figures |= {"fake_slip_rate": 0.008097165991902834, "real_false_flag_rate": 0.09881422924901186}
    for name, value in figures.items():
        assert found[name] == pytest.approx(value, abs=1e-15), name
    assert found["avg_confidence"] == pytest.approx(0.7) and found["avg_latency_seconds"] == 2.0
    assert (found["avg_tool_count"], found["avg_tool_seconds_total"]) == (3.0, 0.5)
    assert found["ece"] == pytest.approx(abs(120 / 147 - 0.7)) and found["unparsed_count"] == 0
    assert found["brier"] == pytest.approx((120 * 0.3**2 + 27 * 0.7**2) / 147)
    assert found["wilson_95"]["accuracy"] == pytest.approx(wilson(120, 500))


def test_undefined_is_null_or_the_documents_zero() -> None:
    rows = [{"id": "a", "label": "fake", "prediction": "uncertain"}, {"id": "b", "label": "real", "prediction": "real"}]
    null, zero = compute_metrics(rows), compute_metrics(rows, "zero")
    assert null["precision_fake"] is None and null["mcc"] is None and null["f1_fake"] is None
    assert zero["precision_fake"] == 0.0 == zero["mcc"]
    assert null["fake_slip_rate"] == 0.0 and null["recall_real"] == 1.0
    assert "accuracy" in null["wilson_95"] and "precision_fake" not in null["wilson_95"]


def test_the_metrics_file_has_the_published_shape(tmp_path: Path) -> None:
    rows = records(trials=2, tools=(True, False))
    for row in rows:
        if row["trial"] == 1 and row["id"] == "s0":
            row["prediction"] = "real"
    evaluation = evaluate_triage(str(save(tmp_path, rows)), bootstrap=20)
    write_metrics(evaluation, tmp_path / "metrics.json", made_at=1.5)
    found = json.loads((tmp_path / "metrics.json").read_text())
    assert list(found) == ["_meta", "gpt-5-mini|no-tools", "gpt-5-mini|tools"]
    meta = found["_meta"]
    assert (meta["trials"], meta["completed_records"], meta["generated_at_unix"]) == (2, 2000, 1.5)
    assert meta["signature"] == evaluation.figures.signature and "dataset" in meta
    group = found["gpt-5-mini|tools"]
    assert list(group) == ["per_trial", "summary"] and list(group["per_trial"]) == ["0", "1"]
    values = [group["per_trial"][t]["accuracy"] for t in ("0", "1")]
    assert values == [0.24, 0.238]
    assert tuple(group["summary"]["mean"]) == HEADLINES == tuple(group["summary"]["std"])
    assert group["summary"]["mean"]["accuracy"] == pytest.approx(np.mean(values))
    assert group["summary"]["std"]["accuracy"] == pytest.approx(np.std(values, ddof=1))
    assert group["summary"]["totals"] == {"avg_total": 500, "avg_support_fake": 247, "avg_support_real": 253}
    one = metrics_file(evaluate_triage(str(save(tmp_path, records())), bootstrap=20))
    assert one["gpt-5-mini|tools"]["summary"]["std"]["accuracy"] == 0.0  # as the document has it for one trial


def test_every_figure_of_the_document_has_an_interval_or_a_reason(tmp_path: Path) -> None:
    found = evaluate_triage(str(save(tmp_path, records())), bootstrap=100)
    for e in found.figures:
        assert e.value is None or e.low is not None or (e.note or "").startswith(("no interval", "a calibrated")), (
            e.metric
        )
        assert e.value is not None or e.note, e.metric
    accuracy = found.figures.one("accuracy", model="gpt-5-mini", tools="tools", trial="0")
    assert (accuracy.method, accuracy.of) == ("wilson", 500)
    slip = found.figures.one("fake_slip_rate", model="gpt-5-mini", tools="tools", trial="0")
    assert (slip.low, slip.high) == pytest.approx(wilson(2, 247)) and slip.of == 247
    ece = found.figures.one("ece", model="gpt-5-mini", tools="tools", trial="0")
    assert ece.low is None and ece.of == 147
    chance = found.figures.one("ece_by_chance", model="gpt-5-mini", tools="tools", trial="0")
    assert chance.value is not None and 0.05 < chance.value < 0.12


def test_zero_on_request_is_told_and_signed(tmp_path: Path) -> None:
    rows = [{"id": f"s{i}", "label": "fake" if i % 2 else "real", "prediction": "uncertain"} for i in range(20)]
    path = str(save(tmp_path, rows))
    null, zero = evaluate_triage(path, bootstrap=20), evaluate_triage(path, bootstrap=20, undefined="zero")
    assert null.figures.one("precision_fake").value is None
    assert null.figures.one("precision_fake").note == "undefined: nothing was answered"
    assert zero.figures.one("precision_fake").value == 0.0
    assert "0 by convention" in (zero.figures.one("precision_fake").note or "")
    assert "undefined:zero" in zero.figures.signature and "undefined" not in null.figures.signature
    with pytest.raises(UnknownName, match="undefined numbers"):
        evaluate_triage(path, undefined="hope")


EDGES: dict[str, list[tuple[str, str]]] = {
    "all abstain": [("fake", "uncertain"), ("real", "uncertain")],
    "a class is absent": [("fake", "fake"), ("fake", "real")],
    "nothing answered in a class": [("fake", "uncertain"), ("real", "real")],
    "one row": [("fake", "fake")],
}


@pytest.mark.parametrize("case", EDGES)
def test_edges_give_figures_or_reasons_and_never_nan(case: str, tmp_path: Path) -> None:
    rows = [{"id": str(i), "label": y, "prediction": p, "confidence": 0.8} for i, (y, p) in enumerate(EDGES[case])]
    found = evaluate_triage(str(save(tmp_path, rows)), bootstrap=20)
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert "NaN" not in text
    for e in repeats_of(found.figures):
        if e.value is None:
            assert (e.note or "").startswith("undefined"), e.metric
        else:
            assert not math.isnan(e.value), e.metric
    json.dumps(metrics_file(found), allow_nan=False)


def test_confusion_keeps_errors_and_unparsed_apart(tmp_path: Path) -> None:
    rows = records()
    rows[-20] |= {"prediction": "???"}
    (c,) = evaluate_triage(str(save(tmp_path, rows)), bootstrap=20).confusions
    assert (c.counts.tp, c.counts.abstained, c.counts.failed) == (76, 350, 3)
    assert sum(c.unparsed) == 1


def test_a_run_with_fewer_trials_is_in_every_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = records(trials=3) + [{**row, "model": "other"} for row in records(trials=1)]
    assert run(["triage", str(save(tmp_path, rows)), "--bootstrap", "20"]) == 0
    tables = [t for t in capsys.readouterr().out.split("\n\n") if "metric " in t]
    assert len(tables) >= 5 and all("gpt-5-mini|tools" in t and "other|tools" in t for t in tables)
    alone = evaluate_triage(save(tmp_path, rows[-500:]), bootstrap=20)
    both = evaluate_triage(save(tmp_path, rows), bootstrap=20)
    own = {e.metric: e.value for e in repeats_of(both.figures) if e.run["model"] == "other"}
    assert own == {e.metric: e.value for e in repeats_of(alone.figures)}


def test_runs_with_other_numbers_of_trials_are_compared_by_their_means(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(3)
    rows = []
    for model, times in (("a", 3), ("b", 2)):
        for trial in range(times):
            for i in range(50):
                label = ("fake", "real")[i % 2]
                said = label if rng.random() < 0.8 else "uncertain"
                rows.append({"id": f"s{i}", "model": model, "trial": trial, "label": label, "prediction": said})
    path = str(save(tmp_path, [{**row, "use_tools": False, "confidence": 0.5} for row in rows]))
    words = ["compare", f"{path}[model=a]", f"{path}[model=b]", "-p", "triage", "-m", "accuracy", "--bootstrap", "50"]
    assert run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["differences"][0]
    for side, model in (("a", "a"), ("b", "b")):
        own = [row["label"] == row["prediction"] for row in rows if row["model"] == model]
        assert found[side] == pytest.approx(sum(own) / len(own))
