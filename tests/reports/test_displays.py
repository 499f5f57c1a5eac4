"""Displays: their numbers are the metrics' numbers, they survive JSON, and they draw."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from hitmiss import metrics
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.header import Header
from hitmiss.core.results import Results
from hitmiss.core.trials import Trials, stack
from hitmiss.reports import figures as F
from hitmiss.reports.pictures import load, pictures, read_display, save


@pytest.fixture(scope="module")
def trials() -> Trials:
    rng = np.random.default_rng(1)
    label = rng.random(3000) < 0.3
    score = 1.8 * (rng.normal(size=3000) + 2.0 * label - 1.0)
    confidence = rng.beta(5, 2, 3000)
    decision = np.where(rng.random(3000) < confidence, label, ~label).astype(int)
    decision[:20] = -1
    return Trials.of(label, score, decision=decision, confidence=confidence, header=Header("bonafide", "spoof", "llr"))


def test_every_kind_is_there_for_llrs_with_confidences(trials: Trials) -> None:
    kinds = [d.kind for d in F.displays(trials, F.Costs())]
    assert kinds == ["det", "roc", "pr", "histogram", "bayes_error", "tippett", "reliability", "risk_coverage"]


def test_points_are_where_the_metrics_are(trials: Trials) -> None:
    det = F.DetDisplay.from_trials(trials, costs=F.Costs())
    points = {p.label: p for p in det.points}
    label, score = trials.label, trials.score
    assert (points["EER"].far + points["EER"].frr) / 2 == pytest.approx(metrics.eer(label, score))
    for name, metric in (("min DCF", metrics.min_dcf), ("act DCF", metrics.act_dcf)):
        p = points[name]
        cost = (0.95 * p.frr + 10 * 0.05 * p.far) / min(0.95, 0.5)
        assert cost == pytest.approx(metric(label, score), abs=1e-12)
        assert metrics.dcf_at(label, score, threshold=p.threshold) == pytest.approx(cost)


def test_areas_are_the_metrics(trials: Trials) -> None:
    assert F.RocDisplay.from_trials(trials).area == pytest.approx(metrics.roc_auc(trials.label, trials.score))
    pr = F.PrDisplay.from_trials(trials)
    assert pr.area == pytest.approx(metrics.average_precision(trials.label, trials.score))
    assert pr.prevalence == pytest.approx(trials.label.mean())


def test_histograms_hold_every_trial(trials: Trials) -> None:
    h = F.HistogramDisplay.from_trials(trials)
    assert h.positives.sum() == pytest.approx(1) and h.negatives.sum() == pytest.approx(1)
    wild = Trials.of([1, 1, 0, 0], [1e9, 2.0, -np.inf, 1.0])
    far = F.HistogramDisplay.from_trials(wild)
    assert far.positives.sum() == pytest.approx(1) and np.isfinite(far.edges).all()


def test_bayes_errors_are_the_costs_at_their_priors(trials: Trials) -> None:
    ape = F.BayesErrorDisplay.from_trials(trials)
    for i in (20, 70, 110):
        prior = float(expit(ape.prior[i]))
        settings = {"p_target": prior, "c_miss": 1.0, "c_fa": 1.0, "normalize": False}
        assert ape.actual[i] == pytest.approx(
            metrics.dcf_at(trials.label, trials.score, threshold=-ape.prior[i], **settings)
        )
        assert ape.least[i] == pytest.approx(metrics.min_dcf(trials.label, trials.score, **settings), abs=1e-12)
        assert ape.least[i] <= min(ape.actual[i], ape.default[i]) + 1e-12


def test_tippett_shares_are_counted(trials: Trials) -> None:
    t = F.TippettDisplay.from_trials(trials)
    at = np.interp(0.0, t.positive_lr, t.positive_share)
    assert at == pytest.approx(float((trials.score[trials.label == 1] >= 0).mean()), abs=2e-3)


def test_reliability_of_probabilities_and_of_confidences(trials: Trials) -> None:
    stated = F.ReliabilityDisplay.from_trials(trials)
    assert stated.of == "confidence" and stated.n.sum() == 2980
    assert np.abs(stated.happened - stated.stated)[stated.n > 100].max() < 0.08
    p = Trials.of([1, 0, 1, 1], [0.95, 0.05, 0.05, 0.91], header=Header(score_kind="probability"))
    made = F.ReliabilityDisplay.from_trials(p)
    assert made.of == "probability" and made.happened.tolist() == [0.5, 1.0] and made.n.tolist() == [2, 2]


def test_risk_rises_to_the_error_rate(trials: Trials) -> None:
    curve = F.RiskCoverageDisplay.from_trials(trials)
    answered = trials.frame.filter(pl.col("decision") != -1)
    assert curve.coverage[-1] == 1 and curve.risk[-1] == pytest.approx(
        (answered["decision"] != answered["label"]).mean()
    )


def test_what_cannot_be_shown_is_refused_with_a_reason(trials: Trials) -> None:
    raw = trials.retitle(score_kind="raw")
    for display in (F.BayesErrorDisplay, F.TippettDisplay):
        with pytest.raises(DataError, match="needs llr scores"):
            display.from_trials(raw)
    with pytest.raises(DataError, match="every trial is positive"):
        F.DetDisplay.from_trials(Trials.of([1, 1], [1.0, 2.0]))
    assert [d.kind for d in F.displays(Trials.of([1, 1], [1.0, 2.0]))] == []


def test_perfect_separation_has_points_at_infinity_only() -> None:
    det = F.DetDisplay.from_trials(Trials.of([1, 1, 0, 0], [4.0, 3.0, 2.0, 1.0]))
    assert len(det.far) == 0
    det.plot()


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_figures_draw_without_global_state_and_the_same_twice(trials: Trials, tmp_path: Path, ending: str) -> None:
    for display in F.displays(trials, F.Costs()):
        paths = [tmp_path / f"{display.kind}{i}.{ending}" for i in (0, 1)]
        for path in paths:
            ax = display.plot(name="_a $x$ \x1b[31m")
            assert display.plot(ax=ax, name="b") is ax
            F.save(ax, path, dpi=60)
        assert paths[0].read_bytes() == paths[1].read_bytes() and paths[0].stat().st_size > 1000
    with pytest.raises(UsageError, match="must end in"):
        F.save(ax, tmp_path / "x.gif")


def test_drawing_needs_no_pyplot(tmp_path: Path) -> None:
    code = (
        "import sys; from hitmiss.core.trials import Trials; from hitmiss.reports.figures import RocDisplay, save;"
        "save(RocDisplay.from_trials(Trials.of([1, 0], [2.0, 1.0])).plot(), sys.argv[1]);"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "x.svg")], check=True)


def test_two_runs_get_two_colours(trials: Trials) -> None:
    ax = F.RocDisplay.from_trials(trials).plot(name="a")
    F.RocDisplay.from_trials(trials).plot(ax=ax, name="b")
    lines = [line for line in ax.get_lines() if len(line.get_xdata()) > 2]
    assert len({line.get_color() for line in lines}) == 2
    assert [t.get_text().split(" ")[0] for t in ax.get_legend().get_texts()] == ["a", "b"]


def test_displays_survive_json(trials: Trials) -> None:
    for display in F.displays(trials, F.Costs()):
        data = json.loads(json.dumps(display.to_dict(), allow_nan=False))
        again = read_display(data)
        assert type(again) is type(display) and again.to_dict() == data
    with pytest.raises(DataError, match="unknown kind of curve"):
        read_display({"kind": "pie"})
    with pytest.raises(DataError, match="not the det curve"):
        read_display({"kind": "det"})


def test_results_carry_pictures_of_each_run(trials: Trials, tmp_path: Path) -> None:
    both = stack({"a": trials, "b": trials}, "system")
    import hitmiss as hm

    results = hm.measure(both, ["eer", "min_dcf"])
    save(results, both, tmp_path / "r.json")
    again, drawn = load(tmp_path / "r.json")
    assert again == Results.load(tmp_path / "r.json")
    assert again.to_dict() == results.to_dict(), "the figures as JSON has them, to 13 digits"
    assert [p.run for p in drawn] == [{"system": "a"}, {"system": "b"}]
    assert [p.label for p in drawn[0].of("det").points] == ["EER", "min DCF", "act DCF"]  # type: ignore[union-attr]
    assert [p.run for p in pictures(trials)] == [{}]
    results.save(tmp_path / "plain.json")
    assert load(tmp_path / "plain.json")[1] == []
