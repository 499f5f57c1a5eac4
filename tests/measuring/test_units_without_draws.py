"""Without draws nothing over units has an interval: one over single trials would be another question's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hitmiss.cli.main import run
from hitmiss.core.trials import Trials
from hitmiss.engine.bias import measure_bias


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Ten texts of each of 30 authors, whose texts are alike."""
    rng = np.random.default_rng(3)
    author = np.repeat(np.arange(30), 10)
    label = rng.random(300) < rng.uniform(0.2, 0.8, 30)[author]
    score = label + rng.normal(size=30)[author] + rng.normal(size=300)
    lines = enumerate(zip(label, score, author, strict=True))
    rows = [f"t{i},{'bad' if y else 'ok'},{s:.6f},a{a}" for i, (y, s, a) in lines]
    path = tmp_path / "texts.csv"
    path.write_text("\n".join(["item,label,score,author", *rows]) + "\n")
    return path


@pytest.mark.parametrize("engine", [[], ["--stream"]], ids=["memory", "stream"])
@pytest.mark.parametrize("metric", ["roc_auc", "eer", "cllr"])
def test_no_interval_over_units_is_one_over_trials(
    texts: Path, engine: list[str], metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["score", str(texts), "--positive", "bad", "--negative", "ok", "-m", metric, "--bootstrap", "0", "--json"]
    if metric == "cllr":
        given += ["--score-kind", "llr"]
    found = {}
    for unit in ([], ["--unit", "author"]):
        assert run([*given, *engine, *unit]) == 0
        found[bool(unit)] = json.loads(capsys.readouterr().out)["estimates"][0]
    assert found[True]["value"] == found[False]["value"]
    assert found[True]["low"] is None and found[True]["method"] is None
    if metric == "roc_auc":
        assert found[False]["low"] is not None and found[False]["method"] == "delong"


def test_a_perfect_identity_names_the_method_of_its_interval() -> None:
    trials = Trials.of([1, 1, 1, 0, 0, 0], [0.9, 0.8, 0.7, 0.3, 0.2, 0.1])
    rows, _ = measure_bias(trials, {"women": np.ones(6, dtype=bool)})
    row = next(r for r in rows if r.metric == "subgroup_auc")
    assert row.value == 1.0 and row.low is not None and 0.0 < row.low < 1.0
    assert row.method == "newcombe"
