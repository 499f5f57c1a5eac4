"""Requirements: what is shown to be met, shown to be broken, and not shown, on data whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hitmiss as hm
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.registry import find_metric
from hitmiss.core.results import Estimate, Results
from hitmiss.core.trials import Trials
from hitmiss.engine.at_prevalence import at_prevalence
from hitmiss.engine.requirement import FAIL, NOT_SHOWN, PASS, judge, parse_requirement, read_requirements
from hitmiss.stats.intervals import wilson


def estimate(value: float, low: float | None, high: float | None, **more: object) -> Results:
    made = Estimate("eer", value, low, high, n=1000, n_positive=500, **more)  # type: ignore[arg-type]
    return Results((made,))


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("eer <= 0.13", PASS),
        ("eer <= 0.12", PASS),  # the upper end equals the limit
        ("eer < 0.12", NOT_SHOWN),
        ("eer.high <= 0.11", NOT_SHOWN),
        ("eer <= 0.09", NOT_SHOWN),
        ("eer <= 0.08", NOT_SHOWN),  # the lower end equals the limit: not shown to be above it
        ("eer <= 0.07", FAIL),
        ("eer.value <= 0.1", PASS),
        ("eer.value <= 0.09", FAIL),
        ("eer.low <= 0.08", PASS),
        ("eer.low <= 0.07", FAIL),
    ],
)
def test_the_interval_decides_unless_the_text_says_otherwise(text: str, outcome: str) -> None:
    (found,) = judge(parse_requirement(text), estimate(0.1, 0.08, 0.12))
    assert found.outcome == outcome


def test_without_an_interval_nothing_is_shown() -> None:
    (found,) = judge(parse_requirement("eer <= 0.5"), estimate(0.1, None, None))
    assert found.outcome == NOT_SHOWN and found.finding.code == "requirement-not-shown/no-interval"
    (found,) = judge(parse_requirement("eer.value <= 0.5"), estimate(0.1, None, None))
    assert found.outcome == PASS


def test_a_number_that_breaks_its_limit_is_not_promised_by_more_trials() -> None:
    (found,) = judge(parse_requirement("eer <= 0.09"), estimate(0.1, 0.08, 0.12))
    assert found.needed is None
    (found,) = judge(parse_requirement("eer <= 0.11"), estimate(0.1, 0.08, 0.12))
    assert found.needed is not None and found.needed > 1000


def right(n: int, share: float, rng: np.random.Generator) -> Results:
    """Trials of one class, each right with this chance."""
    label = np.tile([1, 0], n // 2)
    decision = np.where(rng.random(n) < share, label, 1 - label)
    return hm.measure(Trials.of(label, decision=decision), ["accuracy"])


def test_what_is_not_true_is_rarely_passed_and_the_planned_number_of_trials_shows_what_is() -> None:
    rng = np.random.default_rng(5)
    limit = parse_requirement("accuracy >= 0.9")
    false = [judge(limit, right(400, 0.9, rng))[0].outcome for _ in range(400)]
    # at the limit itself the lower end lies above it in 2.5 % of data sets; a binomial of 400 stays below 22 nearly always
    assert false.count(PASS) < 22 and false.count(FAIL) < 22
    pilot = next(r for _ in range(100) if 0.917 < (r := right(400, 0.92, rng)).one("accuracy").value < 0.923)  # type: ignore[operator]
    (found,) = judge(limit, pilot)
    assert found.outcome == NOT_SHOWN and found.needed is not None
    shown = [judge(limit, right(2 * (found.needed // 2), 0.92, rng))[0].outcome for _ in range(300)]
    assert 0.7 < shown.count(PASS) / 300 < 0.9, "planned for a power of 0.8"


AT_SHARE = {
    "precision": lambda p, recall, fpr: p * recall / (p * recall + (1 - p) * fpr),
    "accuracy": lambda p, recall, fpr: p * recall + (1 - p) * (1 - fpr),
    "f1": lambda p, recall, fpr: 2 * p * recall / (p * (1 + recall) + (1 - p) * fpr),
}
"""The numbers at a share of positives, by Bayes."""


def rates(recall: tuple[int, int], fpr: tuple[int, int]) -> list[Estimate]:
    found = []
    for name, (k, n) in (("recall", recall), ("fpr", fpr)):
        low, high = wilson(k, n, 0.95)
        found.append(Estimate(name, k / n, low, high, n=recall[1] + fpr[1], n_positive=recall[1]))
    return found


@given(st.integers(1, 40), st.integers(0, 40), st.sampled_from(sorted(AT_SHARE)))
def test_at_the_share_of_the_file_the_number_is_that_of_the_file(hits: int, alarms: int, metric: str) -> None:
    label = [1] * 40 + [0] * 60
    decision = [1] * hits + [0] * (40 - hits) + [1] * alarms + [0] * (60 - alarms)
    measured = hm.measure(Trials.of(label, decision=decision), [metric]).one(metric).value
    found = at_prevalence(find_metric(metric), 0.4, *rates((hits, 40), (alarms, 60)))
    assert found.value == pytest.approx(measured, abs=1e-12)


@pytest.mark.parametrize("metric", sorted(AT_SHARE))
@pytest.mark.parametrize(
    ("share", "n", "recall", "fpr"), [(0.01, 300, 0.8, 0.05), (0.1, 1000, 0.9, 0.1), (0.5, 60, 0.7, 0.3)]
)
def test_the_interval_at_another_prevalence_holds_the_truth(
    metric: str, share: float, n: int, recall: float, fpr: float
) -> None:
    rng = np.random.default_rng(7)
    truth = AT_SHARE[metric](share, recall, fpr)
    held = total = 0
    for _ in range(1000):
        k1, k0 = rng.binomial(n, recall), rng.binomial(n, fpr)
        found = at_prevalence(find_metric(metric), share, *rates((int(k1), n), (int(k0), n)))
        if found.low is not None and found.high is not None:
            total += 1
            held += found.low <= truth <= found.high
    assert total > 990 and 0.93 <= held / total <= 0.975


def test_a_requirement_at_a_prevalence_is_judged_there() -> None:
    rng = np.random.default_rng(1)
    label = np.tile([1, 0], 1000)
    score = rng.normal(size=2000) + 4.0 * (label - 0.5)
    trials = hm.decide(Trials.of(label, score), 0.0)
    found = hm.evaluate(
        trials, metrics=["recall", "fpr"], require=["precision >= 0.9", "precision >= 0.9 at prevalence 1%"]
    )
    outcomes = [f.values["outcome"] for f in found.verdict.requirements]
    assert outcomes == [PASS, FAIL] and found.verdict.outcome == FAIL
    with pytest.raises(UsageError) as refused:
        judge(parse_requirement("eer <= 0.1 at prevalence 0.01"), estimate(0.1, 0.08, 0.12))
    assert refused.value.code == "prevalence-unknown"


def test_requirements_are_measured_stored_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    rows = ["id,label,score,codec"]
    for k in range(800):
        label = k % 2
        rows.append(f"u{k},{'bonafide' if label else 'spoof'},{rng.normal() + 3 * label:.4f},c{k // 2 % 2}")
    file, rules = tmp_path / "s.csv", tmp_path / "requirements.toml"
    file.write_text("\n".join(rows))
    rules.write_text('require = ["eer.high <= 0.2", "eer[codec=*] <= 30%"]\n')
    ask = ["score", str(file), "-m", "roc_auc", "--bootstrap", "200", "--require", str(rules)]
    assert hm.run([*ask, "-o", str(tmp_path / "r.json"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["verdict"]
    assert told["outcome"] == "PASS" and len(told["requirements"]) == 3
    rules.write_text('require = ["eer <= 0.9"')  # what was read is stored; the file is not needed again
    assert Results.load(tmp_path / "r.json").verdict.outcome == PASS
    with pytest.raises(DataError):
        read_requirements(str(rules))
    assert hm.run(["gate", str(tmp_path / "r.json"), "--require", "eer <= 0.001"]) == 1
    assert hm.run(["gate", str(tmp_path / "r.json"), "--require", "eer <= 0.2"]) == 0
    assert hm.run([*ask[:-1], "eer <= 0.001"]) == 1
    assert hm.run(["compare", str(file), str(file), "-m", "eer", "--require", "delta eer <= 0.01"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("eer", "bad-requirement"),
        ("eer == 0.1", "bad-requirement"),
        ("precision >= 0.9 at prevalence 2", "bad-prevalence"),
        ("eer[codec] <= 1", "bad-rule"),
        ("eer.hight <= 0.1", "unknown-part"),
    ],
)
def test_texts_that_cannot_be_read_are_refused(text: str, code: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_requirement(text)
    assert refused.value.code == code and text in str(refused.value)


@pytest.mark.parametrize("text", ["eer <= 1", "eer >= 0.05", "eer <= -1"])
def test_a_requirement_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        judge(parse_requirement(text), estimate(0.1, 0.08, 0.12))
    assert refused.value.code == "vain-rule" and text in str(refused.value)


def test_a_gate_passes_only_what_is_shown() -> None:
    results = estimate(0.1, 0.08, 0.12)
    assert [c.passed for c in hm.gate(results, require=["eer <= 0.12", "eer <= 0.11", "eer <= 0.07"])] == [
        True,
        False,
        False,
    ]
    assert [c.outcome for c in hm.gate(results, require=["eer <= 0.12", "eer <= 0.11", "eer <= 0.07"])] == [
        PASS,
        NOT_SHOWN,
        FAIL,
    ]


def test_a_report_ends_in_what_is_required(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    label = np.tile([1, 0], 200)
    results = hm.measure(
        Trials.of(label, rng.normal(size=400) + label), ["eer"], bootstrap=100
    )  # the true EER is 30.9 %
    results.save(tmp_path / "r.json")
    page = tmp_path / "r.html"
    assert hm.run(["report", str(tmp_path / "r.json"), "--require", "eer <= 0.1", "-o", str(page)]) == 0
    assert "FAIL: eer &lt;= 0.1" in page.read_text(encoding="utf-8")
