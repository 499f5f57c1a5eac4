"""`hitmiss gate`: the exit code, the failed rules, the files for others."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from hitmiss.cli.main import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def scored(tmp_path: Path, capsys: Capture) -> dict[str, str]:
    """Two runs with codecs: score files, and their results as `hitmiss score -o` writes them."""
    for name, wrong in (("main", 4), ("branch", 6)):
        rows = []
        for i in range(80):
            label = "bonafide" if i % 2 else "spoof"
            score = (1 if (label == "bonafide") != (i % 20 < wrong) else -1) * (1 + i / 100)
            rows.append(f"E_{i},{label},{score},C0{1 + (i % 4) // 2}")
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,label,score,codec", *rows]) + "\n")
        folder = tmp_path / name
        folder.mkdir()
        words = ["score", str(tmp_path / f"{name}.csv"), "-m", "eer", "-m", "roc_auc", "--positive", "bonafide"]
        assert run([*words, "--by", "codec", "--bootstrap", "100", "-o", str(folder / "results.json")]) == 0
    capsys.readouterr()
    return {name: str(tmp_path / name) for name in ("main", "branch")}


def test_a_gate_that_holds(scored: dict[str, str], capsys: Capture) -> None:
    assert run(["gate", scored["main"], "--fail-if", "eer > 0.5", "--fail-if", "roc_auc < 0.5"]) == 0
    seen = capsys.readouterr()
    assert seen.err == "" and "2 checks: 2 passed, 0 failed" in seen.out


def test_a_gate_that_fails_names_the_rules(scored: dict[str, str], capsys: Capture) -> None:
    words = [
        "gate",
        scored["branch"],
        "--fail-if",
        "eer > 0.1",
        "--fail-if",
        "eer > 0.9",
        "--fail-if",
        "worst eer > 0.01",
    ]
    assert run(words) == 1
    seen = capsys.readouterr()
    assert seen.err.startswith("hitmiss: 2 of 3 checks failed: eer: 0.3 (eer > 0.1); worst eer [codec=")
    lines = [line for line in seen.out.splitlines() if line.startswith(("FAIL", "pass"))]
    assert [line[:4] for line in lines] == ["FAIL", "FAIL", "pass"]


def test_the_baseline(scored: dict[str, str], capsys: Capture) -> None:
    words = ["gate", scored["branch"], "--baseline", scored["main"], "--max-regression"]
    assert run([*words, "eer=0.1"]) == 0
    assert run([*words, "eer=0.09"]) == 1
    assert "0.2 → 0.3, worse by 0.1" in capsys.readouterr().err
    assert run(["gate", scored["main"], "--baseline", scored["branch"], "--max-regression", "eer=0"]) == 0


def test_a_score_file_is_measured_for_the_rules(scored: dict[str, str], capsys: Capture) -> None:
    words = [
        "gate",
        f"{scored['branch']}.csv",
        "-p",
        "asvspoof5",
        "--fail-if",
        "eer > 0.2",
        "--fail-if",
        "roc_auc[codec=C01].low < 0.01",
    ]
    assert run(words) == 1
    out = capsys.readouterr().out
    assert "FAIL  eer" in out and "pass  roc_auc [codec=C01]" in out and "low end of the interval, delong" in out


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--fail-if", "eeer > 0.1"], 2, "unknown metric in a rule 'eeer'; did you mean 'eer'"),
        (["--fail-if", "eer[codec=C1] > 0.1"], 2, "did you mean 'C01'"),
        (["--fail-if", "eer >= 0.1"], 2, "a number that equals its limit passes"),
        ([], 2, "a gate needs a rule"),
        (["--max-regression", "eer=0.1"], 2, "--max-regression needs --baseline"),
        (["--fail-if", "eer > 0.1", "--baseline", "x"], 2, "--baseline alone checks nothing"),
        (["--baseline", "absent.json", "--max-regression", "eer=0.1"], 3, "there is no file absent.json"),
    ],
)
def test_a_gate_that_cannot_decide_never_passes(
    words: list[str], code: int, sentence: str, scored: dict[str, str], capsys: Capture
) -> None:
    assert run(["gate", scored["main"], *words]) == code
    seen = capsys.readouterr()
    assert sentence in seen.err and seen.out == ""


def test_a_folder_without_results(tmp_path: Path, capsys: Capture) -> None:
    assert run(["gate", str(tmp_path), "--fail-if", "eer > 0.1"]) == 3
    assert "has no results.json" in capsys.readouterr().err


def test_a_baseline_of_another_size_is_refused(scored: dict[str, str], tmp_path: Path, capsys: Capture) -> None:
    rows = Path(f"{scored['main']}.csv").read_text().splitlines()
    (tmp_path / "small.csv").write_text("\n".join(rows[:61]) + "\n")
    small = str(tmp_path / "small.json")
    assert run(["score", str(tmp_path / "small.csv"), "-m", "eer", "--positive", "bonafide", "-o", small]) == 0
    words = ["gate", scored["main"], "--baseline", small, "--max-regression", "eer=0.9"]
    assert run(words) == 3
    assert "different sample sizes for eer: 80 and 60 trials" in capsys.readouterr().err
    assert run([*words, "--force"]) == 0
    assert "INVALID BASELINE, forced: different sample sizes" in capsys.readouterr().out


def test_files_for_others(
    scored: dict[str, str], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    words = ["gate", scored["branch"], "--fail-if", "eer > 0.1", "--junit", str(tmp_path / "gate.xml"), "--json"]
    assert run(words) == 1
    seen = capsys.readouterr()
    data = json.loads(seen.out)
    assert (data["schema"], data["kind"], data["passed"]) == (1, "gate", False)
    assert data["checks"][0]["value"] == pytest.approx(0.3) and not data["checks"][0]["passed"]
    assert seen.err.splitlines()[0] == "::error title=hitmiss gate::eer: fails if eer > 0.1, found 0.3"
    assert "hitmiss gate: 1 of 1 checks failed" in (tmp_path / "summary.md").read_text()
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("failures") == "1"


def test_runs_given_as_answers_are_paired_for_the_bound(scored: dict[str, str], capsys: Capture) -> None:
    files = [f"{scored[name]}.csv" for name in ("branch", "main")]
    reading = ["-p", "asvspoof5", "--bootstrap", "200", "--json"]
    words = ["gate", files[0], "--baseline", files[1], "--max-regression", "roc_auc=0.3", *reading]
    seen = {}
    for decide in ("point", "bound", "shown"):
        run([*words, "--regression-by", decide])
        seen[decide] = json.loads(capsys.readouterr().out)["checks"][0]
    assert all("paired" in seen[decide]["reason"] for decide in seen)
    run(["compare", files[1], files[0], "-p", "asvspoof5", "-m", "roc_auc", "--json", "--bootstrap", "200"])
    (row,) = (d for d in json.loads(capsys.readouterr().out)["differences"] if not d["slice"])
    assert f"interval of worse {-row['high']:.6g} to {-row['low']:.6g} (paired)" in seen["bound"]["reason"]
    assert seen["bound"]["passed"] == (-row["low"] <= 0.3) and seen["shown"]["passed"] == (-row["high"] <= 0.3)
    assert (
        run(
            [
                "gate",
                scored["branch"],
                "--baseline",
                scored["main"],
                "--max-regression",
                "eer=1",
                "--regression-by",
                "x",
            ]
        )
        == 2
    )


def verdicts(path: Path, first: int, **meta: object) -> str:
    """Forty answers about items that count from `first`, and what they were made with; the results as `triage -o` writes them."""
    rows = [
        {"id": f"i{first + i}", "label": ("real", "fake")[i % 2], "verdict": ("real", "fake")[(i % 2) ^ (i % 9 == 0)],
         "confidence": 0.8, "model": "m", "use_tools": False, **meta}
        for i in range(40)
    ]  # fmt: skip
    path.with_suffix(".jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    words = ["triage", str(path.with_suffix(".jsonl")), "--bootstrap", "0", "-o", str(path)]
    assert run(words) == 0
    return str(path)


PROMPTS = {"prompt_hashes": {"user": "ab"}, "run_config": {"temperature": 0.0}}


@pytest.mark.parametrize(
    ("first", "meta", "why"),
    [
        (0, PROMPTS, ""),
        (500, PROMPTS, "different items"),
        (0, {**PROMPTS, "prompt_hashes": {"user": "cd"}}, "different prompts"),
        (0, {**PROMPTS, "run_config": {"temperature": 0.7}}, "different temperatures"),
    ],
)
def test_a_gate_refuses_what_a_comparison_refuses(
    tmp_path: Path, capsys: Capture, first: int, meta: dict[str, object], why: str
) -> None:
    """Same numbers of trials, but other items, prompts or temperatures: from results files, and from the rows alike."""
    before, now = verdicts(tmp_path / "a.json", 0, **PROMPTS), verdicts(tmp_path / "b.json", first, **meta)
    for end in (".json", ".jsonl"):
        runs = [str(Path(p).with_suffix(end)) for p in (now, before)]
        words = ["gate", runs[0], "--baseline", runs[1], "--max-regression", "fake_slip_rate=0.1"]
        words += ["-p", "triage"] if end == ".jsonl" else []
        capsys.readouterr()
        assert run(words) == (3 if why else 0)
        assert why in capsys.readouterr().err
        assert run([*words, "--force"]) == 0
        assert why in capsys.readouterr().out


def test_a_limit_beyond_every_number_is_no_limit(scored: dict[str, str], capsys: Capture) -> None:
    assert run(["gate", scored["main"], "--fail-if", "eer > 1e400"]) == 2
    assert run(["gate", scored["main"], "--baseline", scored["main"], "--max-regression", "eer=1e400"]) == 2
    assert "1e400" in capsys.readouterr().err


LEADS = """import numpy as np
def {name}(x):
    found = np.stack([np.abs(x).mean((1, 2)), np.abs(np.diff(x, axis=1)).mean((1, 2))], axis=1)
    return 1 / (1 + np.exp(-(found * {slope} - [1.6, 2.2])))
"""


@pytest.fixture
def attacked(tmp_path: Path, capsys: Capture) -> dict[str, str]:
    """Two models under the same attack, with other answers."""
    rng = np.random.default_rng(3)
    truth = np.array([[k % 2, k // 2 % 2] for k in range(24)])
    names, classes = np.array([f"r{k}" for k in range(24)]), np.array(["MI", "STTC"])
    signals = 0.2 * rng.normal(size=(24, 120, 2))
    np.savez(tmp_path / "ecg.npz", x=signals, y=truth, classes=classes, fs=np.array(100.0), record=names)
    for name, slope in (("calm", 10.0), ("other", 9.8)):
        (tmp_path / f"{name}.py").write_text(LEADS.format(name=name, slope=slope))
        words = ["attack", "--detector", f"{tmp_path / name}.py:{name}", "--data", str(tmp_path / "ecg.npz")]
        way = ["--family", "band_noise(beta=3)", "--strengths", "0.01", "1", "--outputs", "probability"]
        assert run([*words, *way, "-o", str(tmp_path / name)]) == 0
    capsys.readouterr()
    return {name: str(tmp_path / name) for name in ("calm", "other")}


def test_attack_runs_have_gates(attacked: dict[str, str], tmp_path: Path, capsys: Capture) -> None:
    """From the run and from its results: the same figures, that `score` prints; every attack and strength is checked."""
    results = str(tmp_path / "r.json")
    assert run(["score", attacked["calm"], "-p", "ecg-attacks", "--bootstrap", "0", "-o", results]) == 0
    figures = {
        (e["run"]["attack"], e["run"]["strength"]): e["value"]
        for e in json.loads(Path(results).read_text())["estimates"]
        if e["metric"] == "changed" and e["average"] is None
    }
    least, most = min(figures.values()), max(figures.values())
    assert least < most and len(figures) == 4
    for source in ([results], [attacked["calm"], "-p", "ecg-attacks", "--bootstrap", "0"]):
        for limit, code in ((most, 0), (most - 1e-6, 1), (least, 1)):
            capsys.readouterr()
            assert run(["gate", *source, "--fail-if", f"changed > {limit!r}", "--json"]) == code
            found = json.loads(capsys.readouterr().out)["checks"]
            assert sorted(c["value"] for c in found) == pytest.approx(sorted(figures.values()))
            assert [c["passed"] for c in found] == [c["value"] <= limit + 1e-9 for c in found]
        assert run(["gate", *source, "--fail-if", f"changed[attack=band_noise,strength=1] > {most!r}"]) == 0
        assert run(["gate", *source, "--fail-if", "changed[attack=pgd] > 0"]) == 2


def test_attack_runs_are_paired_with_their_baseline(attacked: dict[str, str], capsys: Capture) -> None:
    """A model against itself has not become worse, whatever decides; the other one's interval is that of `compare`."""
    asked = ["-p", "ecg-attacks", "--bootstrap", "100"]
    for decide in ("point", "shown", "bound"):
        more = ["--max-regression", "macro_auc[attack=band_noise]=0.001", "--regression-by", decide]
        assert run(["gate", attacked["calm"], "--baseline", attacked["calm"], *asked, *more]) == 0, decide
    capsys.readouterr()
    more = ["--max-regression", "exact_match[attack=clean]=0", "--regression-by", "bound", "--json"]
    run(["gate", attacked["other"], "--baseline", attacked["calm"], *asked, *more])
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert run(["compare", attacked["calm"], attacked["other"], *asked, "-m", "exact_match", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["differences"]
    (row,) = (d for d in rows if d["slice"]["attack"] == "clean")
    assert f"interval of worse {-row['high']:.6g} to {-row['low']:.6g} (paired)" in check["reason"]


def test_what_only_describes_an_attack_is_not_compared(attacked: dict[str, str], capsys: Capture) -> None:
    both = [attacked["calm"], attacked["other"], "-p", "ecg-attacks"]
    capsys.readouterr()
    assert run(["compare", *both, "-m", "l2_mv"]) == 2
    assert "l2_mv" in capsys.readouterr().err
    assert run(["compare", *both, "-m", "changed"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "." not in said and any(line.startswith(("In ", "calm", "other")) for line in said)


def test_a_rule_is_decided_by_the_same_number_whatever_other_rules_there_are(tmp_path: Path, capsys: Capture) -> None:
    """The end of an interval that a rule looks at is that of `score` for this metric alone."""
    rng = np.random.default_rng(3)
    rows = [
        f"E_{i},{'bonafide' if i % 2 else 'spoof'},{rng.normal() + 1.2 * (i % 2):.3f},C0{1 + (i % 4) // 2}"
        for i in range(160)
    ]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["id,label,score,codec", *rows]) + "\n")
    asked = [str(file), "--positive", "bonafide", "--by", "codec", "--bootstrap", "100"]
    rules = {
        "macro eer.high > 0.9": ("eer", "macro", "high"),
        "macro min_dcf.low > 0.999": ("min_dcf", "macro", "low"),
        "roc_auc.low < 0.1": ("roc_auc", None, "low"),
    }
    words = [word for rule in rules for word in ("--fail-if", rule)]
    assert run(["gate", *asked, *words, "--json"]) == 0
    checks = {check["rule"]: check["value"] for check in json.loads(capsys.readouterr().out)["checks"]}
    for rule, (metric, average, end) in rules.items():
        assert run(["gate", *asked, "--fail-if", rule, "--json"]) == 0
        alone = json.loads(capsys.readouterr().out)["checks"][0]["value"]
        assert run(["score", *asked, "-m", metric, "--json"]) == 0
        estimates = json.loads(capsys.readouterr().out)["estimates"]
        told = next(e for e in estimates if e.get("average") == average and (average or not e.get("slice")))
        assert checks[rule] == alone == told[end]
