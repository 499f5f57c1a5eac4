"""`hitmiss compare` from files: what it prints, what it refuses, with which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from hitmiss.cli.main import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A key with codecs, and two systems' scores in another order."""
    rng = np.random.default_rng(3)
    label = rng.permutation(np.arange(200) < 60)
    codec = rng.choice(["C01", "C02"], 200)
    rows = [f"E_{i}\t{'bonafide' if y else 'spoof'}\t{c}" for i, (y, c) in enumerate(zip(label, codec, strict=True))]
    (tmp_path / "key.tsv").write_text("\n".join(["filename\tcm-label\tcodec", *rows]) + "\n")
    base = rng.normal(size=200)
    for name, skill in (("old", 0.6), ("new", 2.0), ("same", 2.0)):
        order = rng.permutation(200)
        score = base + skill * label + 0.3 * np.random.default_rng(len(name)).normal(size=200)
        lines = [f"E_{i}\t{float(score[i])!r}" for i in order]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["filename\tcm-score", *lines]) + "\n")
    return {name: str(tmp_path / f"{name}.tsv") for name in ("key", "old", "new", "same")}


def printed(words: list[str], capsys: Capture) -> str:
    assert run(words) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def failed(words: list[str], capsys: Capture, code: int) -> str:
    assert run(words) == code
    seen = capsys.readouterr()
    assert seen.out == ""
    return seen.err


def as_json(words: list[str], capsys: Capture) -> dict[str, Any]:
    return dict(json.loads(printed([*words, "--json"], capsys)))


def test_two_score_files(files: dict[str, str], capsys: Capture) -> None:
    words = ["compare", files["old"], files["new"], "--key", files["key"], "-p", "asvspoof5", "--by", "codec"]
    text = printed(words, capsys)
    lines = text.splitlines()
    assert lines[:3] == ["A = old.tsv", "B = new.tsv", "200 pairs: 60 bonafide, 140 spoof"]
    assert "min_dcf ↓ by codec" in lines and "better/same/worse" in text
    assert [line.split()[0] for line in lines if line.startswith(("C0", "pooled", "macro"))][:4] == [
        "C01",
        "C02",
        "pooled",
        "macro",
    ]
    assert lines[-1].startswith("hitmiss:") and "|compare:paired|protocol:asvspoof5|" in lines[-1]
    data = as_json(words, capsys)
    area = next(d for d in data["differences"] if d["metric"] == "roc_auc" and not d["slice"])
    assert area["verdict"] == "B better" and area["test"] == "delong"
    read = {n: dict(line.split("\t") for line in Path(files[n]).read_text().splitlines()[1:]) for n in ("old", "new")}
    key = {r.split("\t")[0]: r.split("\t")[1] == "bonafide" for r in Path(files["key"]).read_text().splitlines()[1:]}
    for side, name in (("a", "old"), ("b", "new")):
        truth = roc_auc_score(list(key.values()), [float(read[name][i]) for i in key])
        assert area[side] == pytest.approx(truth, abs=1e-12)


def test_a_named_metric_is_in_every_table(files: dict[str, str], capsys: Capture) -> None:
    words = [
        "compare",
        files["old"],
        files["new"],
        "--key",
        files["key"],
        "-p",
        "asvspoof5",
        "--by",
        "codec",
        "-m",
        "roc_auc",
    ]
    assert "roc_auc ↑ by codec" in printed(words, capsys)


def test_more_than_two_runs(files: dict[str, str], capsys: Capture) -> None:
    words = ["compare", files["old"], files["new"], files["same"], "--key", files["key"], "-m", "roc_auc"]
    data = as_json(words, capsys)
    assert data["kind"] == "ranking" and len(data["pairs"]) == 3
    assert {s["run"]: s["letters"] for s in data["standings"]} == {"same.tsv": "a", "new.tsv": "a", "old.tsv": "b"}
    assert "runs that share a letter were not shown to differ" in printed(words, capsys)


def test_systems_of_one_file(files: dict[str, str], tmp_path: Path, capsys: Capture) -> None:
    scores = {n: dict(r.split("\t") for r in Path(files[n]).read_text().splitlines()[1:]) for n in ("old", "new")}
    rows = [f"{i}\t{scores['old'][i]}\t{scores['new'][i]}" for i in scores["old"]]
    (tmp_path / "both.tsv").write_text("\n".join(["id\told\tnew", *rows]) + "\n")
    words = [
        "compare",
        str(tmp_path / "both.tsv"),
        "--key",
        files["key"],
        "-m",
        "eer",
        "--score-column",
        "old",
        "--score-column",
        "new",
    ]
    there = as_json(words, capsys)
    apart = as_json(["compare", files["old"], files["new"], "--key", files["key"], "-m", "eer"], capsys)
    assert (there["a"], there["b"]) == ("old", "new")
    assert there["differences"][0]["delta"] == apart["differences"][0]["delta"]


def test_thresholds_once_or_once_a_run(files: dict[str, str], capsys: Capture) -> None:
    words = ["compare", files["old"], files["new"], "--key", files["key"], "-m", "accuracy"]
    text = printed([*words, "--threshold", "0.5", "--threshold", "1.0", "--full"], capsys)
    assert "McNemar: pairs whose decisions differ" in text and "mcnemar" in text
    assert "needs decisions" in failed(words, capsys, 2)
    err = failed([*words, *["--threshold", "1"] * 3], capsys, 2)
    assert "--threshold was given 3 times for 2 runs" in err


def test_the_output_file_holds_the_json(files: dict[str, str], tmp_path: Path, capsys: Capture) -> None:
    words = ["compare", files["old"], files["new"], "--key", files["key"], "-m", "eer"]
    printed([*words, "-o", str(tmp_path / "out.json")], capsys)
    shown, kept = as_json(words, capsys), json.loads((tmp_path / "out.json").read_text())
    assert {k: v for k, v in shown.items() if k not in ("verdict", "digest")} == {
        k: v for k, v in kept.items() if k != "digest"
    }
    assert shown["verdict"]["subject"]["run"] in (kept["a"], kept["b"]) and "verdict" not in kept


def test_usage(files: dict[str, str], capsys: Capture) -> None:
    assert "give two runs or more" in failed(["compare", files["old"], "--key", files["key"], "-m", "eer"], capsys, 2)
    words = ["compare", files["old"], files["new"], "--key", files["key"], "-m", "eer"]
    assert "did you mean 'holm'" in failed([*words, "--correction", "hulm"], capsys, 2)
    assert "did you mean 'delong'" in failed([*words, "--test", "delongs"], capsys, 2)
    assert "unknown column to group by 'codex'" in failed([*words, "--by", "codex"], capsys, 2)
    assert "there is no file" in failed(
        ["compare", files["old"], "absent.tsv", "--key", files["key"], "-m", "eer"], capsys, 3
    )


def test_toxicity_run_tags(tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(0)
    for language in ("en", "tr"):
        label = rng.integers(0, 2, 120)
        for tag, skill in (("baseline", 0.15), ("tuned", 0.4)):
            score = np.clip(0.5 + skill * (label - 0.5) + rng.normal(0, 0.2, 120), 0, 1)
            rows = [f"{i},{y},{float(s)!r},0.5" for i, (y, s) in enumerate(zip(label, score, strict=True))]
            head = "id,y_true,y_prob,best_threshold"
            (tmp_path / f"{tag}_{language}.csv").write_text("\n".join([head, *rows]) + "\n")
    words = [
        "compare",
        f"{tmp_path}:baseline",
        f"{tmp_path}:tuned",
        "-p",
        "toxicity",
        "--by",
        "language",
        "-m",
        "roc_auc",
        "-m",
        "f1",
    ]
    data = as_json(words, capsys)
    assert {d["slice"].get("language") for d in data["differences"]} == {None, "en", "tr", "*"}
    macro = [d for d in data["differences"] if d["average"] == "macro"]
    assert [d["metric"] for d in macro] == ["roc_auc", "f1"] and all(d["verdict"] == "B better" for d in macro)
    assert {d["test"] for d in macro} == {"delong", "bootstrap"}
    english = as_json([*words, "--languages", "en"], capsys)
    assert english["differences"][0]["n_pairs"] == 120 < data["differences"][0]["n_pairs"] == 240


def triage(path: Path, seed: int, tools: bool, skill: float, **config: object) -> str:
    """A results file of the triage document: 60 images, some abstentions."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(60):
        label, draw = ("fake", "real")[i % 2], rng.random()
        other = "real" if label == "fake" else "fake"
        said = label if draw < skill else other if draw < skill + 0.1 else "uncertain"
        row = {"id": f"img-{i}", "model": "m1", "use_tools": tools, "trial": 1, "label": label, "prediction": said}
        lines.append(json.dumps({**row, "confidence": 0.9, "run_config": {"temperature": 0.0, **config}}))
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_triage_results(tmp_path: Path, capsys: Capture) -> None:
    a, b = triage(tmp_path / "no_tools.jsonl", 1, False, 0.5), triage(tmp_path / "tools.jsonl", 2, True, 0.9)
    words = ["--layout", "triage", "--positive", "fake", "-m", "accuracy", "-m", "coverage"]
    data = as_json(["compare", a, b, *words], capsys)
    said = {n: [json.loads(r) for r in Path(f).read_text().splitlines()] for n, f in (("a", a), ("b", b))}
    right = {n: [r["prediction"] == r["label"] for r in rows] for n, rows in said.items()}
    only = [
        sum(x and not y for x, y in zip(*pair, strict=True))
        for pair in ((right["a"], right["b"]), (right["b"], right["a"]))
    ]
    wrong, answered = data["mcnemar"]
    assert [wrong["only_a"], wrong["only_b"]] == only and wrong["n_pairs"] == 60 > answered["n_pairs"]
    assert {d["metric"]: d["test"] for d in data["differences"]} == {"accuracy": "mcnemar", "coverage": "mcnemar"}
    assert data["differences"][0]["p_value"] == wrong["p_exact"] < 0.05

    both = tmp_path / "both.jsonl"
    both.write_text(Path(a).read_text() + Path(b).read_text())
    for runs in ([str(both)], [f"{both}[tools=no-tools]", f"{both}[tools=tools]"]):
        again = as_json(["compare", *runs, *words], capsys)
        assert [d["delta"] for d in again["differences"]] == [d["delta"] for d in data["differences"]]


def test_triage_results_that_are_not_comparable(tmp_path: Path, capsys: Capture) -> None:
    a = triage(tmp_path / "a.jsonl", 1, False, 0.5, cache_state="off")
    b = triage(tmp_path / "b.jsonl", 2, False, 0.9, cache_state="on", temperature=0.7)
    words = ["compare", a, b, "--layout", "triage", "--positive", "fake", "-m", "accuracy"]
    err = failed(words, capsys, 3)
    assert (
        "mixed cache states (off and on): latency is not comparable" in err
        and "different temperatures (0.0 and 0.7)" in err
    )
    out = printed([*words, "--force"], capsys)
    assert out.count("INVALID COMPARISON, forced:") == 2 and "|forced:yes|" in out
