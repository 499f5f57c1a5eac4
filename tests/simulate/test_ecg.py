"""Simulated ECGs: what they are, that they obey the lead equations, and that a small classifier learns them in seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.simulate.graphs import ecg_graph

from hitmiss.attacks.leads import violation
from hitmiss.attacks.peaks import detect_all
from hitmiss.metrics.ranking import roc_auc
from hitmiss.simulate.ecg import CLASSES, simulate, write
from hitmiss.simulate.ecg_detector import ConvBaseline, train
from hitmiss.simulate.saved_detectors import trained


def test_the_same_seed_is_the_same_heart() -> None:
    one, two, other = simulate(4), simulate(2), simulate(2, seed=1)
    assert np.array_equal(one.x[:2], two.x) and not np.array_equal(two.x, other.x)


def test_signals_are_such_as_a_body_could_send() -> None:
    some = simulate(40)
    assert violation(some.x) < 1e-12 and 0.3 < np.abs(some.x).max(axis=1).mean() < 3.0
    rates = [len(peaks) * 6 for peaks in detect_all(some.x, 100.0)]
    assert min(rates) >= 40 and max(rates) <= 130


def test_normal_excludes_the_rest_and_others_may_combine() -> None:
    y = simulate(300).y
    normal = y[:, CLASSES.index("NORM")] == 1
    assert y[normal].sum(axis=1).max() == 1 and y[~normal].sum(axis=1).min() == 1 and y.sum(axis=1).max() == 2
    assert (y.mean(axis=0) > 0.08).all()


def test_some_patients_come_twice_with_the_same_diagnosis() -> None:
    some = simulate(60)
    assert 40 < len(set(some.patient)) < 60
    for i, patient in enumerate(some.patient[1:], 1):
        if patient == some.patient[i - 1]:
            assert np.array_equal(some.y[i], some.y[i - 1]) and not np.array_equal(some.x[i], some.x[i - 1])


@pytest.mark.nightly
def test_a_classifier_learns_them(tmp_path: Path) -> None:
    folder = write(tmp_path, share=0.02)
    assert "SIMULATED" in (folder / "README.txt").read_text()
    assert train(folder) == trained(folder) == f"{folder / 'detector.py'}:detector"
    model, test = ConvBaseline.load(folder / "detector.npz"), simulate(200, 5, "other")
    proba = model.predict(test.x)
    assert np.mean([roc_auc(test.y[:, k], proba[:, k]) for k in range(5)]) > 0.9
    np.testing.assert_allclose(model.predict(test.x[:3]), proba[:3], rtol=1e-5)


@pytest.mark.extras
def test_torch_and_onnx_twins(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from hitmiss.detection.opening import open_detector

    torch.set_num_threads(1)
    some = simulate(60, 0, "train")
    model = ConvBaseline.fit(some.x, some.y)
    ecg_graph(model, tmp_path / "m.onnx")
    expected = model.outputs(some.x[:8])
    np.testing.assert_allclose(open_detector(str(tmp_path / "m.onnx")).outputs(some.x[:8]), expected, atol=1e-3)
    turned = torch.from_numpy(np.ascontiguousarray(some.x[:8].transpose(0, 2, 1), dtype=np.float32))
    np.testing.assert_allclose(model.differentiable(turned).numpy(), expected, atol=1e-3)
