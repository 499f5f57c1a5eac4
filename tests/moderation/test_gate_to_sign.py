"""A gate that can be signed: paired or two samples, for all checks together; its file; every printed number has a rule."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.gates import ALL, BROKEN, LANGUAGE, ONE, detectable, judged, pull_request

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.gate_spec import load_gate
from hitmiss.core.results import Results
from hitmiss.core.trials import Trials
from hitmiss.engine.requirement import figure_name, parse_rule, select
from hitmiss.evaluation.gate import gate

Capture = pytest.CaptureFixture[str]


def written(trials: Trials, path: Path) -> str:
    """Write a run as a file of predictions."""
    frame = trials.frame
    rows = zip(frame["item"], frame["label"], frame["score"], frame["language"], strict=True)
    lines = [f"{i},{y},{1 / (1 + math.exp(-s)):.9f},{g}" for i, y, s, g in rows]
    path.write_text("\n".join(["id,y_true,y_prob,language", *lines]) + "\n")
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A baseline, a run that changes nothing, one that breaks Turkish, and the texts of another month."""
    same, before = pull_request(1)
    broken, _ = pull_request(1, loss=0.25)
    month, _ = pull_request(2, unpaired=True)
    runs = {"before": before, "same": same, "broken": broken, "month": month}
    return {name: written(trials, tmp_path / f"{name}.csv") for name, trials in runs.items()}


def gated(capsys: Capture, *words: str) -> tuple[int, dict[str, object]]:
    capsys.readouterr()
    code = run(["gate", *words, "-p", "toxicity", "--threshold", "0.5", "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_broken_language_is_stopped_and_no_change_is_not(files: dict[str, str], capsys: Capture) -> None:
    rules = ["--baseline", files["before"], "--max-regression", "roc_auc[language=*]=0"]
    assert gated(capsys, files["same"], *rules)[0] == 0
    code, found = gated(capsys, files["broken"], *rules)
    failed = [c for c in found["checks"] if not c["passed"]]
    assert code == 1 and [c["slice"] for c in failed] == [{"language": BROKEN}]
    assert "paired; 7 checks together" in failed[0]["reason"] and failed[0]["low"] > 0.0


def test_the_interval_that_decides_is_that_of_compare_at_the_level_of_all_checks(
    files: dict[str, str], capsys: Capture
) -> None:
    _, found = gated(capsys, files["same"], "--baseline", files["before"], "--max-regression", "roc_auc[language=*]=0")
    level = 1.0 - 0.05 / 7
    words = ["compare", files["before"], files["same"], "-p", "toxicity", "-m", "roc_auc", "--by", "language"]
    assert run([*words, "--level", repr(level), "--json"]) == 0
    theirs = {
        d["slice"]["language"]: (-d["high"], -d["low"])
        for d in json.loads(capsys.readouterr().out)["differences"]
        if d["slice"] and d["average"] is None
    }
    for check in found["checks"]:
        assert (check["low"], check["high"]) == pytest.approx(theirs[check["slice"]["language"]], abs=1e-12)


def test_two_months_are_two_samples(files: dict[str, str], capsys: Capture) -> None:
    """DeLong intervals of two independent samples, combined by hand; without the declaration other items are refused."""
    rules = ["--baseline", files["before"], "--max-regression", "roc_auc=0"]
    assert run(["gate", files["month"], *rules, "-p", "toxicity"]) == 3
    said = capsys.readouterr().err
    assert "different items" in said and "--unpaired" in said
    code, found = gated(capsys, files["month"], *rules, "--unpaired")
    (check,) = found["checks"]
    assert code == 0 and "two samples" in check["reason"]
    ends = []
    for name in ("month", "before"):
        words = ["score", files[name], "-p", "toxicity", "-m", "roc_auc", "--bootstrap", "1000", "--json"]
        assert run(words) == 0
        (e,) = (e for e in json.loads(capsys.readouterr().out)["estimates"] if not e["slice"] and not e["average"])
        ends.append((e["value"], e["low"], e["high"]))
    (now, low, high), (before, low_2, high_2) = ends
    worse = before - now
    assert check["value"] == pytest.approx(worse, abs=1e-12)
    assert check["low"] == pytest.approx(worse - math.hypot(high - now, before - low_2), abs=1e-9)
    assert check["high"] == pytest.approx(worse + math.hypot(now - low, high_2 - before), abs=1e-9)


def test_the_same_items_are_no_two_samples(files: dict[str, str], capsys: Capture) -> None:
    words = ["gate", files["same"], "--baseline", files["before"], "--max-regression", "roc_auc=0", "--unpaired"]
    assert run([*words, "-p", "toxicity"]) == 3
    assert "the same items, which are paired" in capsys.readouterr().err


def test_a_triage_refuses_other_items_as_its_document_does(tmp_path: Path, capsys: Capture) -> None:
    for name, first in (("a", 0), ("b", 500)):
        rows = [
            {"id": f"i{first + i}", "label": ("real", "fake")[i % 2], "verdict": ("real", "fake")[(i % 2) ^ (i % 9 == 0)],
             "confidence": 0.8, "model": "m", "use_tools": False}
            for i in range(40)
        ]  # fmt: skip
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    files = [str(tmp_path / f"{name}.jsonl") for name in "ba"]
    words = ["gate", files[0], "--baseline", files[1], "--max-regression", "fake_slip_rate=0.1", "-p", "triage"]
    assert run([*words, "--unpaired"]) == 3
    assert "different items" in capsys.readouterr().err


@pytest.mark.parametrize("unpaired", [False, True])
def test_pull_requests_without_change_pass(unpaired: bool) -> None:
    """Twelve of them, 14 checks each; a binomial with 5 % is above 3 in 2 of 1,000. The benchmark has 200 of each kind."""
    stopped = sum(not judged(seed, ALL, unpaired=unpaired).passed for seed in range(12))
    assert stopped <= 3


@pytest.mark.parametrize("rules", [ONE, LANGUAGE])
def test_what_is_called_detectable_is_stopped(rules: tuple[str, ...]) -> None:
    """Four of five; a binomial of 15 with 80 % is below 8 in 4 of 1,000."""
    loss = detectable(rules)
    assert sum(not judged(7000 + seed, rules, loss=loss).passed for seed in range(15)) >= 8


def test_a_gate_file_holds_rules_baseline_and_owners(
    files: dict[str, str], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gate.toml").write_text(
        'baseline = "before.csv"\nowners = ["@safety"]\nmax_regression = ["roc_auc[language=*]=0"]\n'
        'require = "roc_auc >= 0.6"\n'
        f'[[rules]]\nfail_if = "fnr[language={BROKEN}] > 0.9"\nowners = ["@desk"]\nwhy = "agreed in June"\n'
    )
    code, found = gated(capsys, files["broken"], "--rules", str(tmp_path / "gate.toml"))
    owners = {c["rule"]: (c["owners"], c["why"]) for c in found["checks"]}
    assert code == 1 and len(found["checks"]) == 9
    assert owners[f"fnr[language={BROKEN}] > 0.9"] == (["@desk"], "agreed in June")
    assert owners["roc_auc >= 0.6"] == (["@safety"], "")
    monkeypatch.chdir(tmp_path)
    assert gated(capsys, files["same"])[0] == 0  # the folder's gate.toml, where no rule is given
    assert gated(capsys, files["same"], "--fail-if", "roc_auc < 0.99")[0] == 1
    assert len(gated(capsys, files["same"], "--fail-if", "roc_auc < 0.99")[1]["checks"]) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fail-if = ['eer > 1']", "unknown key of a gate 'fail-if'; did you mean 'fail_if'"),
        ("fail_if = 3", "fail_if"),
        ("rules = 3", "rules are tables"),
        ("[[rules]]\nfail_if = 'a > 1'\nrequire = 'a <= 1'", "rule 1: a rule is one text"),
        ("[[rules]]\nfail_when = 'a > 1'", "unknown key of rule 1 'fail_when'"),
        ("x = ", "gate.toml: "),
    ],
)
def test_a_gate_file_is_read_strictly(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "gate.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        load_gate(tmp_path / "gate.toml")
    assert words in str(caught.value)
    with pytest.raises(UsageError, match="there is no gate file"):
        load_gate(tmp_path / "absent.toml")


def test_python_pairs_trials_and_reads_the_file(tmp_path: Path) -> None:
    broken, before = pull_request(1, loss=0.25)
    (tmp_path / "gate.toml").write_text('max_regression = "roc_auc[language=*]=0"\n')
    found = gate(broken, rules=tmp_path / "gate.toml", baseline=before)
    assert [c.slice["language"] for c in found if not c.passed] == [BROKEN]
    with pytest.raises(DataError, match="different items"):
        gate(pull_request(3, unpaired=True)[0], baseline=before, max_regression="roc_auc=0")


def test_every_number_that_is_printed_has_its_rule(tmp_path: Path) -> None:
    """Averages, gaps, power means, final scores, and slices whose names hold commas and brackets."""
    rng = np.random.default_rng(5)
    n = 400
    label = rng.integers(0, 2, n)
    odd = ["a, b", "c=d", 'quote"d', "[x]", "plain", " lead"]
    lines = [
        json.dumps({"id": f"t{i}", "y_true": int(label[i]), "y_prob": float(np.clip(rng.normal(0.3 + 0.4 * label[i], 0.2), 0, 1)),
                    "language": odd[i % 6], "female": int(rng.random() < 0.3), "muslim": int(rng.random() < 0.3)})
        for i in range(n)
    ]  # fmt: skip
    (tmp_path / "p.jsonl").write_text("\n".join(lines) + "\n")
    words = ["toxicity", str(tmp_path / "p.jsonl"), "--identity", "female", "muslim", "--bootstrap", "50"]
    assert run([*words, "--results", str(tmp_path / "r.json")]) == 0
    assert run(
        ["score", str(tmp_path / "p.jsonl"), "-p", "toxicity", "--by", "language", "--gap", "language=plain",
         "--bootstrap", "50", "-o", str(tmp_path / "s.json")]
    ) == 0  # fmt: skip
    kinds = set()
    for name in ("r.json", "s.json"):
        results = Results.load(tmp_path / name)
        for e in results:
            found = select(parse_rule(f"{figure_name(e)} < 0.5").target, results)
            assert [other for other in found if other == e] == [e] and len(found) == 1, figure_name(e)
            kinds.add(e.average)
    assert {"macro", "worst", "power mean", "gap", None} <= kinds
