"""Audit samples: the weighted numbers of scikit-learn, intervals that hold, plans that reach their width."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score

from hitmiss.cli.main import run
from hitmiss.evaluation.auditing import Stratum, audit, plan_audit

Capture = pytest.CaptureFixture[str]
STRATA = {
    ("en", "high", "yes"): (4000, 120, 0.9),
    ("en", "near", "no"): (9000, 200, 0.1),
    ("en", "low", "no"): (80000, 300, 0.01),
    ("tr", "high", "yes"): (500, 80, 0.7),
    ("tr", "low", "no"): (6000, 150, 0.05),
}


def written(folder: Path) -> tuple[str, str, list[tuple[str, int, int, float]]]:
    """Write a population and a sample; return them with the language, decision, label and weight of each item."""
    rng = np.random.default_rng(5)
    population, sample, items = ["language,band,flagged,n,expected"], ["id,language,band,flagged,label"], []
    for (language, band, flagged), (n, labelled, share) in STRATA.items():
        population.append(f"{language},{band},{flagged},{n},{share}")
        for label in (rng.random(labelled) < share).astype(int):
            sample.append(f"a{len(items)},{language},{band},{flagged},{label}")
            items.append((language, int(flagged == "yes"), int(label), n / labelled))
    (folder / "strata.csv").write_text("\n".join(population) + "\n")
    (folder / "sample.csv").write_text("\n".join(sample) + "\n")
    return str(folder / "sample.csv"), str(folder / "strata.csv"), items


def test_numbers_are_those_of_sampling_weights(tmp_path: Path, capsys: Capture) -> None:
    sample, population, items = written(tmp_path)
    table = tmp_path / "dsa.csv"
    words = ["audit", sample, "--population", population, "--by", "language", "-o", str(table), "--json"]
    assert run(words) == 0
    rows = {row["language"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert table.read_text().splitlines()[0].startswith("language,n,flagged,labelled,precision,precision_low")
    for language in ("en", "tr", "all"):
        own = [item for item in items if language in (item[0], "all")]
        said, label, weight = (np.array([item[k] for item in own]) for k in (1, 2, 3))
        for name, function in (("precision", precision_score), ("recall", recall_score)):
            wanted = function(label, said, sample_weight=weight)
            assert rows[language][name] == pytest.approx(wanted, abs=1e-12)
            assert rows[language][f"{name}_low"] < wanted < rows[language][f"{name}_high"]
        assert rows[language]["prevalence"] == pytest.approx(np.average(label, weights=weight), abs=1e-12)


@pytest.mark.parametrize("missed", [0.002, 0.02])
def test_intervals_hold_the_truth(missed: float) -> None:
    """Few positives among passed items: at 0.002 half of all samples find none, and the interval must say what that means."""
    rng, repeats, held = np.random.default_rng(3), 1000, np.zeros(3)
    sizes, labelled, share = (2000, 3000, 50000), (100, 150, 400), np.array([0.9, 0.5, missed])
    flagged = (True, True, False)
    caught, lost = 2000 * 0.9 + 3000 * 0.5, 50000 * missed
    truth = (caught / 5000, caught / (caught + lost), (caught + lost) / 55000)
    for _ in range(repeats):
        found = rng.binomial(labelled, share)
        strata = [Stratum({}, f, n, k, int(y)) for f, n, k, y in zip(flagged, sizes, labelled, found, strict=True)]
        (row,) = audit(strata)
        for k, (own, true) in enumerate(zip((row.precision, row.recall, row.prevalence), truth, strict=True)):
            assert own is not None
            held[k] += own[1] <= true <= own[2]
    assert (held / repeats >= 0.93).all(), held


def test_a_census_is_certain() -> None:
    (row,) = audit([Stratum({}, True, 10, 10, 8), Stratum({}, False, 20, 20, 2)])
    assert row.recall == (0.8, 0.8, 0.8) and row.precision == (0.8, 0.8, 0.8)


def test_a_plan_reaches_its_width() -> None:
    strata = [
        Stratum({"language": language}, flagged == "yes", n, expected=share)
        for (language, _, flagged), (n, _, share) in STRATA.items()
    ]
    plan = plan_audit(strata, ["language"], width=0.2)
    rng = np.random.default_rng(9)
    for language in ("en", "tr"):
        own = [p for p in plan if p.stratum.cells["language"] == language]
        widths = []
        for _ in range(60):
            seen = [
                Stratum({}, p.stratum.flagged, p.stratum.n, p.labels, int(rng.binomial(p.labels, p.stratum.expected)))
                for p in own
            ]
            (row,) = audit(seen)
            assert row.recall is not None and row.precision is not None
            widths.append(max(row.recall[2] - row.recall[1], row.precision[2] - row.precision[1]))
        assert 0.15 < np.median(widths) < 0.24
        assert sum(p.labels for p in own) < 0.25 * sum(p.stratum.n for p in own)


def test_a_plan_of_so_many_labels_and_what_it_needs(tmp_path: Path, capsys: Capture) -> None:
    sample, population, _ = written(tmp_path)
    assert run(["audit", "--population", population, "--labels", "1000", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert 990 <= sum(row["labels"] for row in rows) <= 1000
    assert all(row["rate"] == pytest.approx(row["labels"] / row["n"]) for row in rows)
    for words, code in (
        (["audit", sample], "no-population"),
        (["audit", "--population", population], "no-audit-plan"),
        (["audit", sample, "--population", population, "--by", "platform"], "audit-by"),
        (["audit", sample, "--population", sample], "audit-column"),
    ):
        assert run([*words, "--json"]) in (2, 3)
        assert json.loads(capsys.readouterr().out)["error"]["code"] == code


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("a,en,high,perhaps,1", "audit-cell"),
        ("a,en,high,yes,2", "audit-cell"),
        ("a,fr,high,yes,1", "audit-unknown-stratum"),
    ],
)
def test_a_bad_row_is_named(line: str, code: str, tmp_path: Path, capsys: Capture) -> None:
    sample, population, _ = written(tmp_path)
    path = Path(sample)
    path.write_text(path.read_text() + line + "\n")
    assert run(["audit", sample, "--population", population, "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == code and f"row {len(path.read_text().splitlines())}" in error["message"]


def test_a_stratum_without_labels_is_refused(tmp_path: Path, capsys: Capture) -> None:
    sample, population, _ = written(tmp_path)
    Path(population).write_text(Path(population).read_text() + "tr,near,no,100,0.1\n")
    assert run(["audit", sample, "--population", population, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "audit-labels"
    Path(population).write_text(Path(population).read_text() + "tr,near,no,100,0.1\n")
    assert run(["audit", sample, "--population", population, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "audit-stratum-twice"
