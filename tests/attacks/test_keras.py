"""Keras models have the gradients of their torch twins, on TensorFlow and (with KERAS_BACKEND=torch) on torch.

Keras and TensorFlow are in no lock: without them this is skipped.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

pytestmark = [
    pytest.mark.extras,
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]  # Keras's


@pytest.mark.parametrize("ending", ["sigmoid", "softmax"])
def test_a_keras_model_is_attacked_as_its_torch_twin(ending: str) -> None:
    torch = pytest.importorskip("torch")
    if os.environ.setdefault("KERAS_BACKEND", "tensorflow") == "tensorflow":
        pytest.importorskip("tensorflow", reason="TensorFlow is not installed; the adapter needs it")
    keras = pytest.importorskip("keras")
    from hitmiss.attacks.config import PerturbationConfig
    from hitmiss.attacks.model import as_classifier as classifier
    from hitmiss.protocols.ecg_attacks import run_attack_on_sample

    layers = keras.layers
    model = keras.Sequential([
        keras.Input((50, 2)), layers.Dense(8, activation="tanh"), layers.GlobalAveragePooling1D(),
        layers.Dense(3, activation=ending),
    ])  # fmt: skip
    (w1, b1), (w2, b2) = (layer.get_weights() for layer in (model.layers[0], model.layers[2]))

    class Twin(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            inner = torch.tanh(x @ torch.tensor(w1) + torch.tensor(b1)).mean(dim=1)
            logits = inner @ torch.tensor(w2) + torch.tensor(b2)
            return torch.sigmoid(logits) if ending == "sigmoid" else torch.softmax(logits, dim=1)

    x, y = np.random.default_rng(0).normal(0, 1, (50, 2)), np.array([1.0, 0.0, 0.0])
    for family in ("pgd", "smooth_adv"):
        config = PerturbationConfig(family, 1.0, 0.5, extra={"steps": 10})
        found = [run_attack_on_sample(classifier(m), x, y, config, fs=100.0) for m in (model, Twin())]
        assert found[0][1] == pytest.approx(found[1][1], abs=1e-4)
        assert found[0][0].y_proba_adv == pytest.approx(found[1][0].y_proba_adv, abs=1e-4)
    assert np.abs(model.predict(x[None], verbose=0)[0] - found[0][0].y_proba_clean).max() < 1e-5  # as it was before
