"""A difference that stands on few units has no interval, says why, and is shown by no resampling: everywhere it is shown."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from hitmiss.cli.main import run
from hitmiss.core.trials import Trials
from hitmiss.derive.decisions import at_threshold
from hitmiss.engine.compare import compare
from hitmiss.engine.contrasts import enough
from hitmiss.engine.rank import compare_all


@pytest.mark.parametrize("level", [0.5, 0.8, 0.875, 0.9, 0.95, 0.99])
def test_enough_is_where_the_range_of_the_units_reaches_the_level(level: float) -> None:
    """Every way that k units can fall about the truth, counted."""

    def share_inside(k: int) -> float:
        return float(np.mean([min(signs) < 0 < max(signs) for signs in product((-1, 1), repeat=k)]))

    k = enough(level)
    assert share_inside(k) >= level > share_inside(k - 1)


def runs(speakers: int, each: int = 20, seed: int = 0) -> tuple[Trials, Trials]:
    """Two systems of which the second does better with every speaker."""
    rng = np.random.default_rng(seed)
    n = speakers * each
    label, speaker = np.arange(n) % 2, np.repeat([f"s{i}" for i in range(speakers)], each)
    return tuple(  # type: ignore[return-value]
        at_threshold(Trials.of(label, rng.normal(size=n) + skill * label, speaker=speaker), skill / 2)
        for skill in (0.5, 3.0)
    )


@pytest.mark.parametrize("speakers", [2, 3, 5])
@pytest.mark.parametrize("metric", ["eer", "roc_auc", "f1", "min_dcf"])
def test_few_units_show_nothing_by_resampling(speakers: int, metric: str) -> None:
    """Of two units that both lean one way every replicate does: that happens half the time without any difference."""
    row = compare(*runs(speakers), [metric], unit="speaker", bootstrap=200).one(metric)
    assert row.delta is not None and row.low is None and row.high is None and row.mdd is None
    assert row.p_value is None and row.verdict == "not tested"
    assert str(row.note).startswith(f"no interval: {speakers} units (speaker) of ")


def test_enough_units_do() -> None:
    row = compare(*runs(6), ["eer"], unit="speaker", bootstrap=200).one("eer")
    assert row.low is not None and row.p_value is not None and row.verdict == "B better"
    strict = compare(*runs(6), ["eer"], unit="speaker", bootstrap=200, level=0.99).one("eer")
    assert strict.low is None and str(strict.note).startswith("no interval: 6 units (speaker)")


def test_a_slice_of_one_unit_is_left_out_and_the_others_stay() -> None:
    sides = [side.put(room=np.where(side.frame["speaker"] == "s0", "small", "large")) for side in runs(8)]
    made = compare(*sides, ["eer", "accuracy"], by="room", unit="speaker", bootstrap=200)
    small, large = (made.one("eer", room=room) for room in ("small", "large"))
    assert small.low is None and "no interval: one unit (speaker) of" in str(small.note)
    assert large.low is not None and large.low < large.high  # type: ignore[operator]
    share = made.one("accuracy", room="small")
    assert share.low is None and share.test == "permutation" and share.p_value == 1.0  # one unit, exchanged or not
    macro = made.one("eer", average="macro", room="*")
    assert macro.low is None and macro.p_value is None and "in 1 of 2 slices" in str(macro.note)


def test_a_class_of_few_trials_is_too_little_for_both_classes_but_not_for_shares() -> None:
    rng = np.random.default_rng(1)
    label = np.array([1] * 3 + [0] * 200)
    a, b = (at_threshold(Trials.of(label, rng.normal(size=203) + s * label), 0.5) for s in (0.0, 2.0))
    made = compare(a, b, ["eer", "roc_auc", "accuracy", "recall"])
    assert made.one("eer").note == made.one("roc_auc").note == "no interval: 3 trials of positive alone"
    assert made.one("roc_auc").p_value is None
    assert made.one("accuracy").low is not None
    recall = made.one("recall")
    assert recall.low is None and recall.note == "no interval: 3 pairs alone"
    assert recall.test == "mcnemar" and recall.p_value is not None


def test_an_interval_of_no_width_is_left_out() -> None:
    label = np.tile([1, 0], 20)
    a, b = (Trials.of(label, decision=d) for d in (1 - label, label))
    row = compare(a, b, ["accuracy"]).one("accuracy")
    assert (row.delta, row.low, row.high) == (1.0, None, None) and row.verdict == "B better"
    assert row.note == "no interval: the replicates hardly differ"
    same = compare(a, a, ["accuracy"]).one("accuracy")
    assert same.low is None and same.verdict == "identical" and same.note == "no interval: the answers are alike"


def test_verdicts_of_many_runs_follow_the_adjusted_p() -> None:
    """What one pair alone would show, a family of pairs need not."""
    rng = np.random.default_rng(3)
    label, shared = np.tile([1, 0], 60), rng.normal(size=120)
    sides = {
        f"r{i}": Trials.of(label, shared + 0.4 * rng.normal(size=120) + (0.8 + 0.05 * i) * label) for i in range(6)
    }
    made = compare_all(sides, ["roc_auc"], correction="holm")
    assert any(d.difference.p_value < 0.05 <= d.difference.p_adjusted for d in made.duels)  # type: ignore[operator]
    for duel in made.duels:
        assert duel.difference.p_adjusted is not None
        assert duel.difference.verdict.endswith("better") == (duel.difference.p_adjusted < 0.05)


def test_every_surface_shows_the_reason_and_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, side in zip("ab", runs(3), strict=True):
        labels = np.where(side.label == 1, "bonafide", "spoof")
        frame = side.frame.select("item", "score", "speaker").with_columns(label=labels)
        frame.write_csv(tmp_path / f"{name}.csv")
    files, made = [str(tmp_path / f"{n}.csv") for n in "ab"], tmp_path / "made.json"
    words = ["-m", "eer", "--unit", "speaker", "--bootstrap", "100"]
    reason = "no interval: 3 units (speaker) of"
    assert run(["compare", *files, *words, "--output", str(made)]) == 0
    assert reason in " ".join(capsys.readouterr().out.split())
    row = json.loads(made.read_text())["differences"][0]
    assert row["low"] is None and row["high"] is None and row["note"].startswith(reason)
    report = tmp_path / "report.html"
    assert run(["report", *files, *words, "-o", str(report)]) == 0
    page = report.read_text()
    versus = page[page.index("B − A") :]
    assert reason in versus and "not tested" in versus
