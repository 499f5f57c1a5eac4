"""`results.plot.det()` and its like: the curves of the very trials, from memory and from files."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.metrics import roc_curve

import hitmiss as hm
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.header import Header
from hitmiss.core.results import Estimate, Results
from hitmiss.core.trials import Trials, stack
from hitmiss.reports import pictures


def trials(shift: float = 2.0) -> Trials:
    rng = np.random.default_rng(1)
    label = rng.random(300) < 0.4
    return Trials.of(label, rng.normal(size=300) + shift * label, header=Header("bonafide", "spoof", "llr"))


def test_every_figure_is_one_call_and_shows_the_trials() -> None:
    data = trials()
    results = hm.measure(data, ["eer"])
    assert results.plot.kinds == ["det", "roc", "pr", "histogram", "reliability", "bayes_error", "tippett"]
    for kind in results.plot.kinds:
        assert getattr(results.plot, kind)().get_xlabel() and getattr(data.plot, kind)().get_xlabel()
    x, y = results.plot.roc().get_lines()[1].get_data()
    far, hit, _ = roc_curve(data.label, data.score, drop_intermediate=False)
    assert {(x[0], y[0]), (x[-1], y[-1])} == {(0.0, 0.0), (1.0, 1.0)}
    assert all(np.min(np.hypot(far - a, hit - b)) < 1e-12 for a, b in zip(x, y, strict=True)), "points are real ones"
    drawn = results.plot.det()
    det = max((line.get_data() for line in drawn.get_lines()), key=lambda pair: len(pair[0]))
    low, high = drawn.get_ylim()
    inside = (det[1] > low + 1e-9) & (det[1] < high - 1e-9)
    assert inside.sum() > 5
    assert np.isin(np.round(det[1][inside], 9), np.round(ndtri(1 - hit[(hit > 0) & (hit < 1)]), 9)).all()


def test_runs_share_axes_under_their_names() -> None:
    both = stack({"a": trials(2.0), "b": trials(0.5)}, "model")
    axes = hm.measure(both, ["eer"]).plot.det()
    assert {"a", "b"} <= {text.get_text() for text in axes.get_legend().get_texts()}


def test_results_from_a_file_keep_their_curves(tmp_path: Path) -> None:
    data = trials()
    results = hm.measure(data, ["eer"])
    pictures.save(results, data, tmp_path / "r.json")
    again = Results.load(tmp_path / "r.json")
    assert again.to_dict() == results.to_dict() and again.plot.kinds == results.plot.kinds
    written = again.plot.save(tmp_path / "figures", ".pdf")
    assert [p.name for p in written][:2] == ["det.pdf", "roc.pdf"] and all(
        p.read_bytes()[:4] == b"%PDF" for p in written
    )
    with pytest.raises(UsageError, match=r"\.svg"):
        again.plot.save(tmp_path, ".gif")


def test_what_has_no_curve_says_so() -> None:
    bare = Results((Estimate("eer", 0.1),))
    with pytest.raises(UsageError, match="do not know their trials"):
        bare.plot.det()
    with pytest.raises(DataError, match="there is no risk_coverage"):
        trials().plot.risk_coverage()
    with pytest.raises(UsageError, match="measure the attacks first"):
        trials().plot.robustness()
    with pytest.raises(UsageError, match="do not know"):
        (hm.measure(trials(), ["eer"]) + bare).plot.roc()


def test_trials_do_not_travel_with_pickled_results() -> None:
    results = hm.measure(trials(), ["eer"])
    sent = pickle.dumps(results)
    assert pickle.loads(sent) == results and pickle.loads(sent).behind is None
    assert len(sent) < 5_000


def test_a_figure_shows_itself_in_a_notebook() -> None:
    drawn = hm.measure(trials(), ["eer"]).plot.det()
    assert drawn._repr_png_().startswith(b"\x89PNG") and "<svg" in drawn._repr_svg_()
    assert drawn.get_xlabel() == drawn.ax.get_xlabel()
