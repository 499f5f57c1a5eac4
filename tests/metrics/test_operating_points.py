"""Operating points: mean costs against their definition, decisions at the EER against counting, frozen thresholds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

import hitmiss as hm
from hitmiss import metrics as m
from hitmiss.cli.main import run
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.tally import Tally

ROWS = st.lists(st.tuples(st.booleans(), st.integers(-4, 4)), min_size=2, max_size=30).filter(
    lambda rows: len({label for label, _ in rows}) == 2
)


def arena(label: np.ndarray, score: np.ndarray) -> tuple[float, float]:
    """F1 and accuracy as the Speech DF Arena computes them, in our own words: walk tied scores one by one, bona fide
    first, take the first point with the nearest rates, and accept from the score that was rejected last."""
    order = np.lexsort((~label, score))
    positive, value = label[order], score[order]
    frr = np.append(0, np.cumsum(positive)) / positive.sum()
    far = ((~positive).sum() - np.append(0, np.cumsum(~positive))) / (~positive).sum()
    at = int(np.argmin(np.abs(frr - far)))
    accepted = score >= (value[at - 1] if at else value[0] - 0.001)
    return f1_score(label, accepted), accuracy_score(label, accepted)


@given(rows=ROWS)
def test_at_the_eer_equals_counting(rows: list[tuple[bool, int]]) -> None:
    label, score = np.array([y for y, _ in rows]), np.array([float(s) for _, s in rows])
    t = m.eer_threshold(label, score)
    assert m.f1_at_eer(label, score) == pytest.approx(f1_score(label, score >= t), abs=1e-12)
    assert m.accuracy_at_eer(label, score) == pytest.approx(accuracy_score(label, score >= t), abs=1e-12)


@given(rows=ROWS.filter(lambda rows: len({s for _, s in rows}) == len(rows)))
def test_at_the_eer_of_the_arena(rows: list[tuple[bool, int]]) -> None:
    label, score = np.array([y for y, _ in rows]), np.array([float(s) for _, s in rows])
    ours = m.f1_at_eer(label, score, ties="official"), m.accuracy_at_eer(label, score, ties="official")
    assert ours == pytest.approx(arena(label, score), abs=1e-12)


@given(rows=ROWS, points=st.sampled_from(["0.01+0.005", "0.5", "0.05:1:10+0.3:2:1+0.9"]))
def test_mean_costs_are_means_of_costs(rows: list[tuple[bool, int]], points: str) -> None:
    label, score = [y for y, _ in rows], [float(s) for _, s in rows]
    each = [[float(w) for w in part.split(":")] for part in points.split("+")]
    for ours, single in ((m.min_c_primary, m.min_dcf), (m.act_c_primary, m.act_dcf)):
        own = [single(label, score, p_target=p, c_miss=(c or [1, 1])[0], c_fa=(c or [1, 1])[1]) for p, *c in each]
        assert ours(label, score, points=points) == pytest.approx(np.mean(own), abs=1e-12)


def trials(n: int = 3000, seed: int = 3) -> hm.Trials:
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.3
    speaker = rng.integers(0, 40, n)
    score = 2.0 * label + rng.normal(size=n) + 0.3 * rng.normal(size=40)[speaker]
    return hm.Trials.of(
        label=label,
        score=score,
        header=hm.Header(score_kind="llr"),
        speaker=speaker.astype(str),
        sex=np.where(speaker % 2, "f", "m"),
    )


@pytest.mark.parametrize("unit", [None, "speaker"])
@pytest.mark.parametrize(
    "metric",
    [
        "min_c_primary(points='0.1+0.3')",
        "act_c_primary(points='0.1+0.3')",
        "f1_at_eer",
        "accuracy_at_eer(ties=official)",
    ],
)
def test_they_are_ordinary_metrics(metric: str, unit: str | None) -> None:
    """Intervals that hold the number, slices, a gap, and a comparison that finds the worse system."""
    made = trials()
    found = hm.measure(made, [metric], by="sex", gap="sex=f", bootstrap=200, unit=unit)
    whole = next(e for e in found if not e.slice)
    assert whole.low is not None and whole.high is not None and whole.value is not None
    assert whole.low <= whole.value <= whole.high and whole.high - whole.low < 0.2
    assert sum(e.average is None and bool(e.slice) and e.value is not None for e in found) >= 2
    worse = hm.Trials.of(
        label=made.label,
        score=made.score + np.random.default_rng(0).normal(size=len(made)) * 2,
        header=hm.Header(score_kind="llr"),
        speaker=made.column("speaker").to_list(),
    )
    made_pair = hm.compare(made, worse, [metric], bootstrap=200, unit=unit)
    (row,) = list(made_pair)
    assert row.low is not None and row.high is not None and not row.low <= 0.0 <= row.high


def test_replicates_of_a_mean_are_means_of_replicates_of_the_same_draws() -> None:
    """By units the draws of every metric are shared: the mean must be that of its parts, replicate by replicate."""
    from hitmiss.metrics.detection import min_dcf_form
    from hitmiss.metrics.operating_points import min_c_primary_form
    from hitmiss.stats.units import UnitSample, unit_replicates

    made = trials(500)
    unit = np.array([int(s) for s in made.column("speaker")])
    sample = UnitSample.of(np.asarray(made.label) == 1, np.asarray(made.score), unit, 40)
    weights = np.random.default_rng(1).integers(0, 3, size=(50, 40)).astype(np.uint16)
    both = [min_dcf_form(p, 1.0, 1.0, True) for p in (0.01, 0.005)]
    mean, one, two = unit_replicates(sample, [min_c_primary_form("0.01+0.005"), *both], weights)
    assert mean == pytest.approx((one + two) / 2, abs=1e-12)


def test_what_cannot_be_read_is_refused() -> None:
    for points in ("", "0.01+x", "0.01:1", "0.01:1:1:1"):
        with pytest.raises(UsageError) as refused:
            m.min_c_primary([1, 0], [1.0, 0.0], points=points)
        assert refused.value.code == "bad-operating-points"
    with pytest.raises(UnknownName):
        m.f1_at_eer([1, 0], [1.0, 0.0], ties="hull")
    assert np.isnan(m.f1_at_eer([1, 1], [1.0, 0.0])) and np.isnan(m.min_c_primary([1, 1], [1.0, 0.0]))


@given(rows=ROWS, metric=st.sampled_from(["eer", "min_dcf", "tpr_at_fpr(fpr=0.2)", "fpr_at_tpr(tpr=0.7)"]))
def test_the_threshold_of_a_metric_gives_its_number(rows: list[tuple[bool, int]], metric: str) -> None:
    """At the threshold that is chosen, the error rates by counting are those that the metric is made of."""
    label, score = np.array([y for y, _ in rows]), np.array([float(s) for _, s in rows])
    chosen = hm.best_threshold(Tally.of(label, score), metric)
    frr, far = np.mean(score[label] < chosen.threshold), np.mean(score[~label] >= chosen.threshold)
    expected = {
        "eer": (frr + far) / 2,
        "min_dcf": (0.95 * frr + 0.5 * far) / 0.5,
        "tpr_at_fpr(fpr=0.2)": 1 - frr,
        "fpr_at_tpr(tpr=0.7)": far,
    }
    assert chosen.value == pytest.approx(expected[metric], abs=1e-12)
    assert metric != "tpr_at_fpr(fpr=0.2)" or far <= 0.2


def test_a_threshold_is_frozen_on_development_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(7)
    label: dict[str, np.ndarray] = {}
    score: dict[str, np.ndarray] = {}
    for name in ("dev", "eval"):
        label[name] = rng.random(400) < 0.4
        score[name] = np.round(label[name] * 1.5 + rng.normal(size=400), 3)
        rows = zip(label[name], score[name], strict=True)
        body = "".join(f"{name}{i},{'bonafide' if y else 'spoof'},{s}\n" for i, (y, s) in enumerate(rows))
        (tmp_path / f"{name}.csv").write_text("id,label,score\n" + body)
    files = [str(tmp_path / "eval.csv"), "--threshold-on", str(tmp_path / "dev.csv")]
    out = str(tmp_path / "r.json")
    assert run(["score", *files, "-m", "eer", "--bootstrap", "100", "-o", out]) == 0
    shown = capsys.readouterr().out
    t = m.eer_threshold(label["dev"], score["dev"])
    numbers = {e["metric"]: e for e in json.loads(Path(out).read_text())["estimates"]}
    assert numbers["fpr"]["value"] == pytest.approx(np.mean(score["eval"][~label["eval"]] >= t), abs=1e-12)
    assert numbers["fnr"]["value"] == pytest.approx(np.mean(score["eval"][label["eval"]] < t), abs=1e-12)
    assert numbers["fpr"]["low"] < numbers["fpr"]["value"] < numbers["fpr"]["high"]
    assert "dev.csv" in shown and "optimistic" not in shown
    assert run(["verify", out, files[0]]) == 0
    assert run(["score", *files, "--threshold", "0.5", "-m", "eer"]) == 2
