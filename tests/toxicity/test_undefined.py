"""Rates without a denominator are undefined; the zero of the document is that of precision, recall and F1."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hitmiss.cli.main import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Predictions in three languages: both classes, no toxic text, only toxic texts."""
    rng = np.random.default_rng(3)
    for name, label in {"en": rng.integers(0, 2, 300), "fr": np.zeros(200, int), "de": np.ones(100, int)}.items():
        score = np.clip(rng.normal(0.35 + 0.3 * label, 0.2), 0, 1).round(4)
        lines = [f"{name}{i},{y},{s}" for i, (y, s) in enumerate(zip(label, score, strict=True))]
        (tmp_path / f"base_{name}.csv").write_text("\n".join(["id,y_true,y_prob", *lines]) + "\n")
    return tmp_path


def rates(folder: Path, name: str) -> tuple[list[float], list[float]]:
    """Return the decisions on toxic texts and on the others, counted without hitmiss."""
    rows = [line.split(",") for line in (folder / f"base_{name}.csv").read_text().splitlines()[1:]]
    said = [(int(y), float(float(s) >= 0.5)) for _, y, s in rows]
    return [d for y, d in said if y], [d for y, d in said if not y]


def test_a_language_of_one_class_has_no_rate_of_the_other(folder: Path, capsys: Capture) -> None:
    assert run(["toxicity", "--pred-dir", str(folder), "--run-tag", "base", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)["estimates"]
    value = {(e["metric"], e["slice"].get("language"), e["average"]): e for e in made}
    for metric, language in (("fnr", "fr"), ("fpr", "de"), ("specificity", "de")):
        row = value[metric, language, None]
        assert row["value"] is None and "undefined" in row["note"]
    for metric in ("precision", "recall", "f1"):
        assert value[metric, "fr", None]["value"] == 0.0
    missed = [1 - np.mean(rates(folder, name)[0]) for name in ("en", "de")]
    macro = value["fnr", "*", "macro"]
    assert macro["value"] == pytest.approx(np.mean(missed)) and "2 of 3" in macro["note"]
    alarms = [np.mean(rates(folder, name)[1]) for name in ("en", "fr")]
    assert value["fpr", "*", "macro"]["value"] == pytest.approx(np.mean(alarms))


def test_a_gate_does_not_count_them_as_perfect(folder: Path) -> None:
    source = ["gate", f"{folder}:base", "-p", "toxicity"]
    assert run([*source, "--fail-if", "fnr[language=fr] > 0.9"]) == 1
    assert run([*source, "--fail-if", "fnr[language=*] > 0.9 where defined"]) == 0
    worst = max(1 - float(np.mean(rates(folder, name)[0])) for name in ("en", "de"))
    assert run([*source, "--fail-if", f"fnr[language=*] > {worst - 1e-6!r} where defined"]) == 1


def test_comparisons_and_rankings_leave_them_undefined(folder: Path, capsys: Capture) -> None:
    for tag, shift in (("other", 0.02), ("third", 0.04)):
        for name in ("en", "fr", "de"):
            head, *rows = (folder / f"base_{name}.csv").read_text().splitlines()
            moved = [
                f"{i},{y},{min(1.0, float(s) + shift if j % 3 else float(s)):.4f}"
                for j, (i, y, s) in enumerate(r.split(",") for r in rows)
            ]
            (folder / f"{tag}_{name}.csv").write_text("\n".join([head, *moved]) + "\n")
    runs = [f"{folder}:{tag}" for tag in ("base", "other", "third")]
    asked = ["-p", "toxicity", "-m", "fnr", "-m", "recall", "--by", "language", "--bootstrap", "50", "--json"]
    assert run(["compare", *runs[:2], *asked]) == 0
    rows = json.loads(capsys.readouterr().out)["differences"]
    found = {(d["metric"], d["slice"].get("language")): d["a"] for d in rows if d["average"] is None}
    assert found["fnr", "fr"] is None and found["recall", "fr"] == 0.0
    assert run(["compare", *runs, *asked]) == 0
    standings = json.loads(capsys.readouterr().out)["standings"]
    values = {s["metric"]: s["value"] for s in standings}
    assert values["fnr [language=fr]"] is None and values["recall [language=fr]"] == 0.0
