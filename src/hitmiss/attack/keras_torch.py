"""Keras models on TensorFlow as torch functions: values and gradients by a GradientTape, so that every attack works on them.

A model that ends in a sigmoid or softmax is asked without it: the last layer's activation is set aside while it is called.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hitmiss.detect.detector import need

ACTIVATIONS = ("sigmoid", "softmax")


def is_keras(model: Any) -> bool:
    """Whether a model is one of Keras that computes with TensorFlow."""
    keras = sys.modules.get("keras")
    if keras is None or "tensorflow" not in sys.modules or not isinstance(model, keras.Model):
        return False
    return str(keras.backend.backend()) == "tensorflow"


def last_activation(model: Any) -> str | None:
    """`sigmoid` or `softmax`, where the last layer has one; None where its outputs are something else."""
    name = getattr(getattr(model.layers[-1], "activation", None), "__name__", None) if model.layers else None
    return name if name in ACTIVATIONS else None


@contextmanager
def without_activation(model: Any) -> Iterator[None]:
    """The model with the sigmoid or softmax of its last layer set aside."""
    if last_activation(model) is None:
        yield
        return
    layer = model.layers[-1]
    before = layer.activation
    layer.activation = sys.modules["keras"].activations.linear
    try:
        yield
    finally:
        layer.activation = before


def logits_of(model: Any, x: Any) -> Any:
    """The logits of signals (record × sample × lead) as numpy."""
    with without_activation(model):
        return np.asarray(model(np.asarray(x, dtype=np.float32), training=False))


def torch_function(model: Any) -> Any:
    """A torch function from record × sample × lead to logits, with gradients."""
    torch, tensorflow = need("torch", "torch"), sys.modules["tensorflow"]

    class Asked(torch.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            given = tensorflow.convert_to_tensor(x.detach().cpu().numpy())
            with tensorflow.GradientTape() as tape, without_activation(model):
                tape.watch(given)
                found = model(given, training=False)
            context.kept = (tape, given, found)
            return torch.from_numpy(np.array(found)).to(x.device)

        @staticmethod
        def backward(context: Any, upstream: Any) -> Any:
            tape, given, found = context.kept
            weights = tensorflow.convert_to_tensor(upstream.cpu().numpy())
            slope = tape.gradient(found, given, output_gradients=weights)
            return torch.from_numpy(np.array(slope)).to(upstream.device)

    return Asked.apply
