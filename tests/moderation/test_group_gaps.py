"""Gaps between groups: the numbers of fairlearn, intervals that hold where groups are alike, in every verb."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm, studentized_range

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.errors import UsageError
from hitmiss.core.protocol import Gap
from hitmiss.core.results import Estimate
from hitmiss.stats.group_spread import level_of_pairs, range_tail, ratio_interval, spread_interval

HERE = Path(__file__).parent / "fairlearn"
GROUPS = str(HERE / "groups.csv")
NUMBERS = json.loads(Path(os.environ.get("HITMISS_FAIRLEARN", HERE / "numbers.json")).read_text())
METRICS = ("fpr", "fnr", "flag_rate", "accuracy", "recall", "precision")
ASKED = ["-p", "toxicity", "--threshold", "0.5", "--bootstrap", "0"]
Capture = pytest.CaptureFixture[str]


def scored(capsys: Capture, *words: str) -> list[dict[str, object]]:
    metrics = [word for name in METRICS for word in ("-m", name)]
    assert run(["score", GROUPS, *ASKED, *metrics, *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["estimates"]  # type: ignore[no-any-return]


def test_spreads_and_ratios_are_those_of_fairlearn(capsys: Capture) -> None:
    told = scored(capsys, "--gap", "language=*")
    for name in METRICS:
        found = {e["average"]: e["value"] for e in told if e["metric"] == name and e["average"]}
        assert found["spread"] == pytest.approx(NUMBERS["none"]["difference"][name], abs=1e-12)
        assert found["ratio"] == pytest.approx(NUMBERS["none"]["ratio"][name], abs=1e-12)


def test_control_columns_are_those_of_fairlearn(capsys: Capture) -> None:
    told = scored(capsys, "--gap", "language=* within platform", "--by", "platform,language")
    for name in METRICS:
        own = [e for e in told if e["metric"] == name]
        for average, kind in (("spread", "difference"), ("ratio", "ratio")):
            found = {e["slice"]["platform"]: e["value"] for e in own if e["average"] == average}  # type: ignore[index]
            assert found == pytest.approx(NUMBERS["platform"][kind][name], abs=1e-12)
        cells = {",".join(e["slice"].values()): e["value"] for e in own if len(e["slice"]) == 2 and not e["average"]}  # type: ignore[attr-defined, arg-type]
        assert cells == pytest.approx(NUMBERS["platform"]["by_group"][name], abs=1e-12)


def test_each_group_against_a_reference(capsys: Capture) -> None:
    told = scored(capsys, "--gap", "language=en:*")
    by_group = NUMBERS["none"]["by_group"]["fpr"]
    found = {e["slice"]["language"]: e["value"] for e in told if e["average"] == "gap" and e["metric"] == "fpr"}  # type: ignore[index]
    assert found == pytest.approx({f"{g} − en": by_group[g] - by_group["en"] for g in ("de", "tr")}, abs=1e-12)


def test_compare_gate_and_python_show_the_same_spread(tmp_path: Path, capsys: Capture) -> None:
    spread = NUMBERS["none"]["difference"]["fpr"]
    for limit, code in ((spread + 1e-9, 0), (spread - 1e-9, 1)):
        assert run(["gate", GROUPS, *ASKED, "--fail-if", f"spread fpr[language=*] > {limit!r}"]) == code
    assert run(["gate", GROUPS, *ASKED, "--fail-if", "spread fpr[language=*] > 3"]) == 2
    other = tmp_path / "other.csv"
    other.write_text(Path(GROUPS).read_text())
    capsys.readouterr()
    words = ["-p", "toxicity", "--threshold", "0.5", "-m", "fpr", "--gap", "language=*", "--bootstrap", "100"]
    assert run(["compare", GROUPS, str(other), *words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["differences"]
    (row,) = [d for d in rows if d["average"] == "spread"]
    assert (row["a"], row["b"], row["delta"]) == (pytest.approx(spread), pytest.approx(spread), 0.0)
    assert row["low"] < 0.0 < row["high"]
    assert run(["compare", GROUPS, str(other), GROUPS, *words]) == 2, "gaps of more than two runs are refused"
    results = hm.evaluate(GROUPS, protocol="toxicity", metrics=["fpr"], threshold=0.5, gap="language=*")
    assert results["fpr", "spread"].value == pytest.approx(spread, abs=1e-12)


def test_a_report_and_the_verdict_name_groups_that_differ(tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(2)
    rows = ["id,language,y_true,y_prob"]
    for language, high in (("de", 0.1), ("en", 0.1), ("tr", 0.6)):
        rows += [f"{language}{i},{language},{i % 2},{0.9 if i % 2 or rng.random() < high else 0.1}" for i in range(400)]
    path = tmp_path / "apart.csv"
    path.write_text("\n".join(rows) + "\n")
    words = [str(path), "-p", "toxicity", "--threshold", "0.5", "-m", "fpr", "--gap", "language=*", "--bootstrap", "0"]
    assert run(["score", *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "spread-shown" in {f["code"] for f in told["verdict"]["fails"]}
    assert run(["report", *words, "-o", str(tmp_path / "page.html")]) == 0
    assert "greatest − least" in (tmp_path / "page.html").read_text()


def test_the_level_of_all_pairs_is_that_of_the_studentised_range() -> None:
    for groups in (2, 3, 7, 20):
        for level in (0.9, 0.95, 0.99):
            q = studentized_range.ppf(level, groups, np.inf)
            assert range_tail(q, groups) == pytest.approx(1.0 - level, abs=1e-6)
            assert level_of_pairs(groups, level) == pytest.approx(2.0 * norm.cdf(q / np.sqrt(2.0)) - 1.0, abs=1e-6)


@pytest.mark.parametrize("apart", [0.0, 0.15])
def test_intervals_hold_where_groups_are_alike_and_where_they_differ(apart: float) -> None:
    """Wilson intervals of 7 groups of 200; a bootstrap of max − min never holds 0 where all are alike."""
    rng, groups, n, repeats = np.random.default_rng(1), 7, 200, 1000
    rate = np.full(groups, 0.3)
    rate[-1] += apart
    z = norm.ppf(0.5 + level_of_pairs(groups, 0.95) / 2.0)
    held = np.zeros(2)
    for _ in range(repeats):
        p = rng.binomial(n, rate) / n
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        for k, (ends, true) in enumerate(
            (
                (spread_interval(p, middle - half, middle + half), apart),
                (ratio_interval(p, middle - half, middle + half), 0.3 / (0.3 + apart)),
            )
        ):
            held[k] += ends[0] <= true <= ends[1]
    assert (held / repeats >= 0.94).all(), held


def test_what_cannot_be_asked_is_refused() -> None:
    for text in ("language", "language=", "language=*:en", "language=* within language"):
        with pytest.raises(UsageError):
            Gap.parse(text)
    assert str(Gap.parse("language=en:* within platform,age")) == "language=en:* within platform,age"


def test_undefined_groups_are_counted_and_one_group_has_no_spread() -> None:
    trials = hm.Trials.of(
        [1, 0, 1, 1, 0, 1], [0.9, 0.1, 0.8, 0.7, 0.2, 0.3], g=["a", "a", "b", "b", "c", "c"], h=list("xxyyzz")
    )
    found = {e.average: e for e in hm.evaluate(trials, metrics=["roc_auc"], gap="g=*") if e.average}
    spread: Estimate = found["spread"]
    assert spread.value == 0.0 and "over 2 of 3 slices" in str(spread.note)
    lone = hm.evaluate(trials, metrics=["roc_auc"], gap="g=* within h")
    assert all(e.value is None for e in lone if e.average == "spread")
