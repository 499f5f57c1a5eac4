"""Keras models on TensorFlow as torch functions: values and gradients by a GradientTape, so that every attack works on them.

A model that ends in a sigmoid or softmax is called without it: the last layer's activation is temporarily removed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.detection.detector import need

if TYPE_CHECKING:
    from torch import Tensor


TensorFunction: TypeAlias = "Callable[[Tensor], Tensor]"
"""A torch function from signals to logits, with gradients."""
ACTIVATIONS = ("sigmoid", "softmax")


class KerasLayer(Protocol):
    """A layer of a Keras model, as far as it is used here."""

    activation: Callable[..., object]


class KerasModel(Protocol):
    """A Keras model, as far as it is used here."""

    @property
    def layers(self) -> Sequence[KerasLayer]: ...

    def __call__(self, x: object, training: bool) -> object: ...


def is_keras(model: object) -> TypeGuard[KerasModel]:
    """Return whether a model is a Keras model that runs on TensorFlow."""
    keras = sys.modules.get("keras")
    if keras is None or "tensorflow" not in sys.modules or not isinstance(model, keras.Model):
        return False
    return str(keras.backend.backend()) == "tensorflow"


def last_activation(model: KerasModel) -> str | None:
    """Return `sigmoid` or `softmax` if the last layer has one; else None."""
    name = getattr(getattr(model.layers[-1], "activation", None), "__name__", None) if model.layers else None
    return name if name in ACTIVATIONS else None


@contextmanager
def without_activation(model: KerasModel) -> Iterator[None]:
    """Remove the sigmoid or softmax of the model's last layer for the block."""
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


def logits_of(model: KerasModel, x: ArrayLike) -> NDArray[np.floating]:
    """Return the logits of signals (record × sample × lead) as numpy."""
    with without_activation(model):
        return np.asarray(model(np.asarray(x, dtype=np.float32), training=False))


def torch_function(model: KerasModel) -> TensorFunction:
    """Return a torch function from record × sample × lead to logits, with gradients."""
    torch, tensorflow = need("torch", "torch"), sys.modules["tensorflow"]

    class Asked(torch.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(context: Any, x: Tensor) -> Tensor:
            given = tensorflow.convert_to_tensor(x.detach().cpu().numpy())
            with tensorflow.GradientTape() as tape, without_activation(model):
                tape.watch(given)
                found = model(given, training=False)
            context.kept = (tape, given, found)
            return torch.from_numpy(np.array(found)).to(x.device)

        @staticmethod
        def backward(context: Any, upstream: Tensor) -> Tensor:
            tape, given, found = context.kept
            weights = tensorflow.convert_to_tensor(upstream.cpu().numpy())
            slope = tape.gradient(found, given, output_gradients=weights)
            return torch.from_numpy(np.array(slope)).to(upstream.device)

    function: TensorFunction = Asked.apply
    return function
