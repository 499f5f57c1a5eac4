"""What a classifier of several classes is taken for, as attacks take it: do its classes exclude each other?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import DataError, UsageError
from hitmiss.detection.contract import KIND_WORDS, TOLERANCE, Contract, Origin, Term, distance
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.outputs import Floats, are_distributions


def exclusive_classes(
    declared: bool | None, ending: str | None, kind: OutputKind, outputs: Floats, truth: ArrayLike, name: str
) -> tuple[bool, Origin]:
    """Return whether exactly one class is true, and how this is known; ask if two readings are possible.

    `ending` is the last step of the model (softmax, sigmoid) where it is known; `truth` is record × class, 0 or 1.

    >>> exclusive_classes(None, None, "probability", np.array([[0.3, 0.7], [0.9, 0.1]]), [[0, 1], [1, 0]], "m")
    (True, 'its values')
    """
    bits = np.asarray(truth)
    if declared is not None:
        return declared, "declared"
    if outputs.shape[1] < 2 or bits.ndim != 2 or bits.shape[1] < 2:
        return False, ""
    is_one_hot = bool((bits.sum(axis=1) == 1).all())
    if ending == "softmax" or (kind == "probability" and are_distributions(outputs)):
        origin: Origin = "its last step" if ending == "softmax" else "its values"
        if not is_one_hot:
            wrong = int(np.argmax(bits.sum(axis=1) != 1))
            raise UsageError.of("exclusive-unknown/outputs", name=name, wrong=wrong + 1, bits=int(bits[wrong].sum()))
        return True, origin
    if ending == "sigmoid" or kind in ("multilabel", "probability"):
        return False, "its last step" if ending == "sigmoid" else "its values" if kind == "probability" else "the model"
    if is_one_hot:
        raise UsageError.of("exclusive-unknown", name=name, shape=outputs.shape[1])
    return False, "the data"


def agree(converted: ArrayLike, own: ArrayLike, name: str) -> float:
    """Return how far the network that gives gradients is from the model itself on a batch; refuse another network."""
    apart = distance(np.clip(converted, -30.0, 30.0), np.clip(own, -30.0, 30.0))
    if apart > TOLERANCE:
        raise DataError.of("other-gradients", name=name, apart=apart)
    return apart


def classifier_contract(
    kind: OutputKind, kind_from: Origin, classes: Sequence[str], exclusive: tuple[bool, Origin], further: Iterable[Term]
) -> Contract:
    """Return what a classifier of several classes is taken for."""
    what = "exclusive classes" if exclusive[0] else "labels" if len(classes) > 1 else "label"
    shown = ", ".join(classes[:6]) + (" …" if len(classes) > 6 else "")
    terms = [
        Term("outputs", kind, KIND_WORDS.get(kind, str(kind)), kind_from),
        Term("exclusive", exclusive[0], f"{len(classes)} {what}", exclusive[1]),
        Term("classes", list(classes), f"in the order {shown}"),
    ]
    return Contract((*terms, *further))
