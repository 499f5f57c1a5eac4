"""Two run tags are paired by (language, id), whatever the order of the rows; the page shows what the command prints."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import metrics as sk
from statsmodels.stats.multitest import multipletests

from hitmiss.cli.main import run

ROOT = Path(__file__).resolve().parents[2]


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


def test_the_order_of_rows_does_not_matter(rebuilt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for language in ("es", "it", "tr"):
        rows = read(rebuilt / "predictions" / f"baseline_{language}.csv")
        write(tmp_path / f"a_{language}.csv", rows)
        changed = [{**r, "y_prob": repr(float(r["y_prob"]) ** (0.9 if r["y_true"] == "1" else 1.1))} for r in rows]
        write(tmp_path / f"b_{language}.csv", changed)
        write(tmp_path / f"c_{language}.csv", changed[::-1])
    seen = []
    for other in ("b", "c"):
        words = [
            "compare",
            f"{tmp_path}:a",
            f"{tmp_path}:{other}",
            "-p",
            "toxicity",
            "--by",
            "language",
            "-m",
            "roc_auc",
        ]
        assert run([*words, "--languages", "es", "it", "tr", "--json", "--bootstrap", "0"]) == 0
        text = capsys.readouterr().out
        data = json.loads(text)
        seen.append([{k: v for k, v in row.items() if k != "run"} for row in data["differences"]])
    assert seen[0] == seen[1] and len(seen[0]) >= 4


def test_the_page_shows_what_the_command_prints(rebuilt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--pred_dir", str(rebuilt / "predictions"), "--run_tag", "baseline", "--languages", "en", "es", "it", "tr"]
    assert run(["toxicity", *where]) == 0
    printed = capsys.readouterr().out
    page = (ROOT / "docs" / "toxicity.md").read_text(encoding="utf-8")
    block = page.split("```text\n")[1].split("```")[0]
    assert block in printed


def test_a_signature_can_be_verified_from_its_files(rebuilt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = rebuilt / "predictions"
    words = ["--pred_dir", str(folder), "--run_tag", "baseline", "--languages", "es", "it", "--bootstrap", "200"]
    assert run(["toxicity", *words]) == 0
    signature = capsys.readouterr().out.strip().splitlines()[-1]
    files = [str(folder / f"baseline_{language}.csv") for language in ("es", "it")]
    assert run(["verify", signature, *files]) == 0
    assert "verified" in capsys.readouterr().out
    assert run(["verify", signature, files[0], str(folder / "baseline_tr.csv")]) == 1


LANGUAGES = ("en", "es", "it")
Side = dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Side, Side]:
    """Two runs that share most of their noise: an unpaired test would see nothing. The rows of the second are shuffled."""
    rng = np.random.default_rng(3)
    folder = tmp_path_factory.mktemp("runs")
    a: Side = {}
    b: Side = {}
    for at, language in enumerate(LANGUAGES):
        label = (rng.random(150) < 0.35).astype(int)
        score = np.round(np.clip(0.4 + 0.2 * label + 0.2 * rng.standard_normal(150), 0, 1), 3)  # some ties
        better = np.round(np.clip(score + 0.04 * at * label + 0.03 * rng.standard_normal(150), 0, 1), 3)
        a[language], b[language] = (label, score, score >= 0.5), (label, better, better >= 0.48)
        for tag, values, threshold in (("a", score, 0.5), ("b", better, 0.48)):
            order = rng.permutation(150) if tag == "b" else np.arange(150)
            rows = [f"{i:03},{label[i]},{values[i]!r},{threshold}" for i in order.tolist()]
            text = "\n".join(["id,y_true,y_prob,best_threshold", *rows])
            (folder / f"{tag}_{language}.csv").write_text(text.replace("np.float64(", "").replace(")", "") + "\n")
    return folder, a, b


@pytest.fixture(scope="module")
def compared(sides: tuple[Path, Side, Side]) -> dict[tuple[str, str], dict[str, Any]]:
    """(metric, language) -> what `hitmiss compare` says; `*` is macro."""
    folder = sides[0]
    words = ["compare", f"{folder}:a", f"{folder}:b", "-p", "toxicity", "--by", "language", "-m", "roc_auc", "-m", "f1"]
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        assert run([*words, "--bootstrap", "4000", "--json"]) == 0
    return {(d["metric"], d["slice"].get("language", "")): d for d in json.loads(text.getvalue())["differences"]}


def paired_delong(label: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """The difference of two AUCs and its variance, from every pair (DeLong et al. 1988, eq. 4 to 6)."""
    wins = [np.sign(s[label == 1][:, None] - s[label == 0][None, :]) / 2 + 0.5 for s in (a, b)]
    of_positives = np.cov([w.mean(axis=1) for w in wins])
    of_negatives = np.cov([w.mean(axis=0) for w in wins])
    both = of_positives / (label == 1).sum() + of_negatives / (label == 0).sum()
    return float(wins[1].mean() - wins[0].mean()), float(both[0, 0] + both[1, 1] - 2 * both[0, 1])


def two_sided(delta: float, variance: float) -> float:
    return float(2 * norm.sf(abs(delta) / np.sqrt(variance)))


def test_areas_are_compared_by_paired_delong_and_holm(
    sides: tuple[Path, Side, Side], compared: dict[tuple[str, str], dict[str, Any]]
) -> None:
    _, a, b = sides
    found = {language: paired_delong(a[language][0], a[language][1], b[language][1]) for language in LANGUAGES}
    plain = [two_sided(*found[language]) for language in LANGUAGES]
    adjusted = multipletests(plain, method="holm")[1]
    for at, language in enumerate(LANGUAGES):
        said = compared["roc_auc", language]
        delta, variance = found[language]
        assert said["a"] == pytest.approx(sk.roc_auc_score(a[language][0], a[language][1]), abs=1e-12)
        assert said["delta"] == pytest.approx(delta, abs=1e-12)
        assert said["p_value"] == pytest.approx(plain[at], rel=1e-9)
        assert said["p_adjusted"] == pytest.approx(adjusted[at], rel=1e-9)
        assert (said["high"] - said["low"]) / 2 == pytest.approx(norm.ppf(0.975) * variance**0.5, rel=1e-9)
    deltas, variances = zip(*found.values(), strict=True)
    macro = compared["roc_auc", "*"]
    assert macro["delta"] == pytest.approx(np.mean(deltas), abs=1e-12)
    assert macro["p_value"] == pytest.approx(two_sided(float(np.mean(deltas)), sum(variances) / 9), rel=1e-9)


def test_f1_is_compared_on_the_same_draws(
    sides: tuple[Path, Side, Side], compared: dict[tuple[str, str], dict[str, Any]]
) -> None:
    _, a, b = sides
    rng = np.random.default_rng(0)
    drawn: list[np.ndarray] = []
    for language in LANGUAGES:
        label, first, second = a[language][0], a[language][2], b[language][2]
        wanted = sk.f1_score(label, second) - sk.f1_score(label, first)
        assert compared["f1", language]["delta"] == pytest.approx(wanted, abs=1e-12)
        classes = [np.flatnonzero(label == 1), np.flatnonzero(label == 0)]
        rows = [np.concatenate([rng.choice(c, len(c)) for c in classes]) for _ in range(2000)]
        drawn.append(np.array([sk_f1(label[r], second[r]) - sk_f1(label[r], first[r]) for r in rows]))
    for name, values in (*zip(LANGUAGES, drawn, strict=True), ("*", np.mean(drawn, axis=0))):
        said = compared["f1", name]
        spread = (said["high"] - said["low"]) / (2 * 1.96)
        assert spread == pytest.approx(values.std(), rel=0.2)  # an unpaired one is twice to three times as wide
    unpaired = np.hypot(*(np.std([sk_f1(a["es"][0][r], side["es"][2][r]) for r in rows]) for side in (a, b)))
    assert unpaired > 1.5 * drawn[1].std()


def sk_f1(label: np.ndarray, decision: np.ndarray) -> float:
    """F1 by its counts: scikit-learn's own takes a thousand times as long."""
    tp = np.sum((label == 1) & decision)
    return float(2 * tp / (2 * tp + np.sum((label == 1) != decision)))
