"""Rules of a gate that say nothing are refused, and everything that is printed can be gated."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as sk

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.registry import all_metrics

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def results() -> hm.Results:
    rng = np.random.default_rng(2)
    label = rng.integers(0, 2, 400)
    score = rng.normal(label * 1.5, 1.0)
    language = rng.choice(["en", "tr"], 400)
    trials = hm.decide(hm.Trials.of(label, score, language=language), 0.7)
    return hm.measure(trials, ["fpr", "fnr", "f1", "mcc", "roc_auc"], by="language", gap="language=en")


@pytest.mark.parametrize(
    ("rule", "meant"),
    [
        ("fpr > 5", "never fails: fpr lies between 0 and 1; for per cent write 'fpr > 5%'"),
        ("fnr[language=tr] > 20", "for per cent write 'fnr[language=tr] > 20%'"),
        ("fpr > 1", "never fails"),
        ("fpr > 100%", "never fails"),
        ("fpr > -0.01", "always fails"),
        ("f1 < 0", "never fails"),
        ("f1 < 1.01", "always fails"),
        ("mcc < -1", "never fails: mcc lies between -1 and 1"),
        ("worst fpr.high > 2", "never fails"),
        ("gap fpr > 1", "never fails: gap fpr lies between -1 and 1"),
        ("fnr < 0.1", "fails where fnr is good: lower is better; to fail where it is too high, write 'fnr > 0.1'"),
        ("macro f1.low > 0.9", "higher is better; to fail where it is too low, write 'macro f1.low < 0.9'"),
    ],
)
def test_a_rule_that_says_nothing_is_refused(rule: str, meant: str, results: hm.Results) -> None:
    with pytest.raises(hm.UsageError) as caught:
        hm.gate(results, rule)
    assert caught.value.code == "vain-rule" and meant in str(caught.value)


@pytest.mark.parametrize("rule", ["fpr > 0", "f1 < 1", "fpr > 99.9%", "mcc < -0.5", "gap fpr < -0.5", "gap fpr > 0.5"])
def test_rules_that_can_hold_and_fail_stay(rule: str, results: hm.Results) -> None:
    assert hm.gate(results, rule)


@pytest.mark.parametrize("rule", ["f1=5", "f1=1", "mcc=2", "worst fpr=1"])
def test_a_regression_beyond_the_range_is_refused(rule: str, results: hm.Results) -> None:
    with pytest.raises(hm.UsageError, match="never fails") as caught:
        hm.gate(results, max_regression=rule, baseline=results)
    assert caught.value.code == "vain-rule"
    name, _, limit = rule.partition("=")
    assert hm.gate(results, max_regression=f"{name}={limit}pp", baseline=results)


def test_every_metric_is_judged_by_its_own_declaration() -> None:
    """Limits beyond both ends of the range are refused whatever the metric; one inside is taken on the worse side."""
    for name, metric in all_metrics().items():
        low, high = metric.range_of({})
        middle = (max(low, -10.0) + min(high, 10.0)) / 2
        made = hm.Results((hm.Estimate(name, middle, best=metric.best),))
        worse, better = (">", "<") if metric.best == "low" else ("<", ">")
        assert hm.gate(made, f"{name} {worse} {middle!r}")[0].passed
        if not metric.two_sided:
            with pytest.raises(hm.UsageError, match="is good"):
                hm.gate(made, f"{name} {better} {middle!r}")
        for limit in (low - 1.0, high + 1.0):
            if math.isfinite(limit):
                for sign in "<>":
                    with pytest.raises(hm.UsageError, match=r"never fails|always fails"):
                        hm.gate(made, f"{name} {sign} {limit!r}")


def test_the_range_follows_the_settings() -> None:
    """A cost that is not divided by that of a trivial system may exceed 1: here it is at most 10 · 0.5."""
    label, score = [1, 0] * 50, [0.0] * 100
    made = hm.measure(hm.Trials.of(label, score), ["min_dcf(c_miss=10, c_fa=10, normalize=False, p_target=0.5)"])
    assert made[0].value == pytest.approx(5.0)
    assert not hm.gate(made, f"{made[0].metric} > 2")[0].passed
    with pytest.raises(hm.UsageError, match="lies between 0 and 5"):
        hm.gate(made, f"{made[0].metric} > 5")


def test_a_command_exits_with_the_code_of_a_wrong_request(tmp_path: Path, results: hm.Results, capsys: Capture) -> None:
    results.save(tmp_path / "r.json")
    assert run(["gate", str(tmp_path / "r.json"), "--fail-if", "fpr > 5", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "vain-rule"


# ----------------------------------------------------------------------
# Everything that is printed can be gated.


def write_toxicity(folder: Path) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    label, language = rng.integers(0, 2, 900), rng.choice(["en", "tr"], 900)
    score = np.clip(rng.normal(0.35 + 0.3 * label, 0.2), 0, 1).round(4)
    identity = {name: (rng.random(900) < 0.3).astype(int) for name in ("female", "muslim")}
    for name in ("en", "tr"):
        lines = [
            f"t{i},{label[i]},{score[i]},{identity['female'][i]},{identity['muslim'][i]}"
            for i in range(900)
            if language[i] == name
        ]
        (folder / f"base_{name}.csv").write_text("\n".join(["id,y_true,y_prob,female,muslim", *lines]) + "\n")
    return {"label": label, "score": score, "language": language, **identity}


def bias(data: dict[str, np.ndarray]) -> float:
    """Return the final score of the unintended-bias competition, as its page defines it."""

    def mean(values: list[float]) -> float:
        return float(np.mean(np.array(values) ** -5.0) ** (1 / -5.0))

    label, score = data["label"], data["score"]
    parts: list[list[float]] = [[], [], []]
    for name in ("female", "muslim"):
        inside, toxic = data[name] == 1, label == 1
        for part, mask in zip(
            parts, (inside, (inside & ~toxic) | (~inside & toxic), (inside & toxic) | (~inside & ~toxic)), strict=True
        ):
            part.append(float(sk.roc_auc_score(label[mask], score[mask])))
    return 0.25 * (float(sk.roc_auc_score(label, score)) + sum(map(mean, parts)))


def test_micro_macro_worst_and_the_power_mean_are_gated(tmp_path: Path) -> None:
    data = write_toxicity(tmp_path)
    results = str(tmp_path / "r.json")
    words = ["toxicity", "--pred-dir", str(tmp_path), "--run-tag", "base", "--identity", "female", "muslim"]
    assert run([*words, "--results", results]) == 0
    decided = data["score"] >= 0.5
    each = [sk.f1_score(data["label"][m], decided[m]) for m in (data["language"] == "en", data["language"] == "tr")]
    truth = {
        "micro f1": sk.f1_score(data["label"], decided),
        "macro f1": float(np.mean(each)),
        "worst f1": min(each),
        "power mean bias_score": bias(data),
    }
    for name, value in truth.items():
        assert run(["gate", results, "--fail-if", f"{name} < {value - 1e-6!r}"]) == 0, name
        assert run(["gate", results, "--fail-if", f"{name} < {value + 1e-6!r}"]) == 1, name


PROTOCOL = """
name = "pad"
primary = "acer"
metrics = ["fpr", "fnr"]
threshold = 0.7
[read]
positive = "bonafide"
negative = "spoof"
[names]
fpr = "APCER"
acer = "ACER"
[derived]
acer = "(max(APCER, species) + fnr) / 2"
"""


def test_derived_figures_and_printed_names_are_gated(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    label, species = rng.integers(0, 2, 500), rng.choice(["mask", "print"], 500)
    score = rng.normal(label * 1.2, 1.0).round(5)
    words = np.where(label == 1, "bonafide", "spoof")
    lines = [f"i{i},{words[i]},{score[i]},{species[i]}" for i in range(500)]
    (tmp_path / "s.csv").write_text("\n".join(["item,label,score,species", *lines]) + "\n")
    (tmp_path / "pad.toml").write_text(PROTOCOL)
    accepted = score >= 0.7
    attacks = [accepted[(label == 0) & (species == name)].mean() for name in ("mask", "print")]
    truth = {
        "APCER": float(accepted[label == 0].mean()),
        "acer": float(max(attacks) + (~accepted[label == 1]).mean()) / 2,
        "ACER": float(max(attacks) + (~accepted[label == 1]).mean()) / 2,
    }
    source = ["gate", str(tmp_path / "s.csv"), "-p", str(tmp_path / "pad.toml")]
    for name, value in truth.items():
        assert run([*source, "--fail-if", f"{name} > {value + 1e-6!r}"]) == 0, name
        assert run([*source, "--fail-if", f"{name} > {value - 1e-6!r}"]) == 1, name
    assert run([*source, "--fail-if", "acer > 1"]) == 2


# ----------------------------------------------------------------------
# Baselines.


def test_what_differs_in_the_baseline_is_named(tmp_path: Path, capsys: Capture) -> None:
    """As many trials but other classes: the numbers that differ are in the sentence."""
    rng = np.random.default_rng(6)
    files = []
    for name, shift in (("new", 0), ("old", 1)):
        lines = [f"i{i},{('spoof', 'bonafide')[int(i % 4 < 2 + shift)]},{rng.normal():.5f}" for i in range(400)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["item,label,score", *lines]) + "\n")
        files.append(str(tmp_path / f"{name}.json"))
        assert run(["score", str(tmp_path / f"{name}.csv"), "-m", "eer", "-o", files[-1]]) == 0
    capsys.readouterr()
    assert run(["gate", files[0], "--baseline", files[1], "--max-regression", "eer=0.5"]) == 3
    said = capsys.readouterr().err
    assert "200 and 300 positives" in said and "400 and 400" not in said


def test_runs_given_as_files_are_paired_whatever_decides(tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(7)
    label = np.arange(600) % 2
    common = rng.normal(label * 1.5, 1.0)
    files = []
    for name in ("new", "old"):
        score = common + rng.normal(0, 0.3, 600)
        lines = [f"i{i},{('spoof', 'bonafide')[label[i]]},{score[i]:.6f}" for i in range(600)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["item,label,score", *lines]) + "\n")
        files.append(str(tmp_path / f"{name}.csv"))
    assert run(["compare", files[1], files[0], "-m", "roc_auc", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["differences"]
    assert run(["gate", files[0], "--baseline", files[1], "--max-regression", "roc_auc=0.2", "--json"]) == 0
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert f"{-row['high']:.6g} to {-row['low']:.6g} (paired)" in check["reason"]
