"""Thresholds with a guarantee: broken in at most 5 % of simulated validations, whatever the scores look like."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.tally import Tally
from hitmiss.derive.operating_points import guaranteed_threshold
from hitmiss.engine.tuning import Guarantee

REPEATS = 2000
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(("rate", "limit", "n"), [("fpr", 0.05, 200), ("fpr", 0.01, 500), ("recall", 0.8, 150)])
def test_guarantees_are_broken_in_at_most_five_per_cent(rate: str, limit: float, n: int) -> None:
    """Gaussian scores, whose true rates are known; and not far below 5 %, so the guarantee is not bought by idleness."""
    rng = np.random.default_rng(1)
    label = np.repeat([1, 0], [n, n])
    broken = 0
    for _ in range(REPEATS):
        tally = Tally.of(label, rng.normal(size=2 * n) + 2.0 * label)
        threshold = guaranteed_threshold(tally, rate, limit).threshold
        true = norm.sf(threshold) if rate == "fpr" else norm.sf(threshold - 2.0)
        broken += true > limit if rate == "fpr" else true < limit
    assert broken <= binom.ppf(0.999, REPEATS, 0.05)
    assert broken >= 0.005 * REPEATS


def test_ties_keep_the_guarantee() -> None:
    tally = Tally.of([1] * 50 + [0] * 100, [3.0] * 50 + [1.0] * 60 + [2.0] * 40)
    assert guaranteed_threshold(tally, "fpr", 0.05).threshold == 3.0
    with pytest.raises(DataError, match="the highest scores are negatives"):
        guaranteed_threshold(Tally.of([1] * 5 + [0] * 100, [1.0] * 5 + [2.0] * 100), "fpr", 0.05)


def test_too_few_say_how_many() -> None:
    with pytest.raises(DataError, match="give 59 or more"):  # the rule of 0.95 ** 59 < 0.05
        guaranteed_threshold(Tally.of([1, 0] * 20, range(40)), "fpr", 0.05)
    for text in ("fpr >= 0.1", "recall <= 0.9", "f1 >= 0.5"):
        with pytest.raises(UsageError):
            guarantee = Guarantee.parse(text)
            guaranteed_threshold(Tally.of([1, 0] * 200, range(400)), guarantee.rate, guarantee.limit)


def test_each_language_has_its_threshold_judged_on_test(tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(3)
    for part in ("val", "test"):
        for language in ("en", "tr"):
            label = rng.integers(0, 2, 600)
            score = norm.cdf(rng.normal(size=600) + 2.0 * label - 1.0)
            rows = [f"{i},{y},{s:.9f}" for i, (y, s) in enumerate(zip(label, score, strict=True))]
            (tmp_path / f"{part}_{language}.csv").write_text("\n".join(["id,y_true,y_prob", *rows]) + "\n")
    words = ["threshold", f"{tmp_path}:val", "--guarantee", "fpr <= 5%", "--test", f"{tmp_path}:test"]
    assert run([*words, "--bootstrap", "50", "--json"]) == 0
    for row in json.loads(capsys.readouterr().out)["thresholds"]:
        pairs = [line.split(",") for line in (tmp_path / f"test_{row['group']}.csv").read_text().splitlines()[1:]]
        negatives = [float(p) for _, y, p in pairs if y == "0"]
        assert row["test"] == pytest.approx(np.mean([p >= row["threshold"] for p in negatives]), abs=1e-12)
        assert row["choices"]["exact"]["value"] < 0.05
    assert run([*words, "--bootstrap", "0"]) == 0
    assert "thresholds that keep fpr <= 0.05, guaranteed at 95%" in capsys.readouterr().out
