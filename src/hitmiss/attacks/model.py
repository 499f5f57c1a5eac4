"""The model under attack: torch, Keras, ONNX or a function.

| given                              | what it must return             | gradients |
|------------------------------------|---------------------------------|-----------|
| torch module                       | logits, or probabilities        | yes       |
| ONNX file, ONNX session            | logits, or probabilities        | with torch and onnx, for known operators |
| Keras model on TensorFlow          | logits, or probabilities        | if torch is installed, by a GradientTape |
| scikit-learn estimator             | probabilities or decision function of flattened records | no |
| anything with `.predict`, callable | probabilities                   | no        |

Whether outputs are logits or probabilities is declared (`outputs=`), or derived from the last layer, the name of the
output or values outside 0..1; if none of these decides, the caller must declare it. Predictions are made in parts of
a fixed size.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, UnknownName, UsageError
from hitmiss.detection.checkpoints import parameters_digest
from hitmiss.detection.contract import Origin
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.detector import CallableDetector, Detector, EstimatorDetector, is_torch_module, need
from hitmiss.detection.on_device import pick_device
from hitmiss.detection.onnx import OnnxDetector
from hitmiss.detection.outputs import (
    are_distributions,
    pick_output,
    pick_raw,
    settled_kind,
    to_log_odds,
    to_probability,
)
from hitmiss.detection.pinning import source_digest
from hitmiss.detection.torch import TorchDetector
from hitmiss.detection.tracing import Settled

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from torch import Tensor
    from torch.nn import Module
from hitmiss.attacks.channels_last import channels_last
from hitmiss.attacks.keras import KerasModel, TensorFunction, is_keras, last_activation, logits_of, torch_function
from hitmiss.attacks.onnx_gradients import onnx_function

Signals = NDArray[np.float32]
Floats = NDArray[np.float64]
Layout = Literal["sample_lead", "lead_sample"]
LAYOUTS: Final = ("sample_lead", "lead_sample")
PART: Final = 64
"""Records in one call of the model."""
SMALLEST: Final = 1e-7
"""Probabilities are kept this far from 0 and 1 where a gradient needs their logarithm."""


@dataclass(eq=False)
class Classifier:
    """A model as the attacks see it.

    `differentiable` is a torch function from signals (record × lead × sample) to logits.
    """

    function: Callable[[Signals], object]
    name: str = "model"
    outputs: OutputKind = "auto"
    layout: Layout = "sample_lead"
    classes: tuple[str, ...] | None = None
    differentiable: TensorFunction | None = None
    device: str = "cpu"
    identity: dict[str, object] = field(default_factory=dict)
    part: int = PART
    single_label: bool = False
    """Whether exactly one class is true (softmax): the largest output is the answer, without a threshold."""
    fixed: int | None = None
    """The exact number of records that the model takes at a time; None if it takes any number."""
    takes_views: bool = False
    """Whether signals may be passed as transposed views, which saves a copy."""
    n_forward: int = 0
    """Records that went through the model so far."""
    kind_from: Origin = "its values"
    """How the kind of outputs is known."""
    says_single: bool | None = None
    """Whether the caller declared that exactly one class is true, or that each is by itself; None: neither."""
    ending: str | None = None
    """The last step of the model, sigmoid or softmax, where it is known."""
    leads: tuple[str, ...] | None = None
    """The leads that the model takes, in its order, if it says so."""
    order: tuple[int, ...] | None = None
    """Where the leads of the model are among those of the signals; None: they are the same."""
    sample_rate: float | None = None
    """Samples per second that the model was made for, if it says so."""

    def log_odds(self, x: ArrayLike) -> Floats:
        """Return one log-odds per record and class."""
        signals = np.asarray(x)
        return self.from_raw(self.raw(signals)) if len(signals) else np.zeros((0, len(self.classes or ())))

    def raw(self, x: ArrayLike) -> Floats:
        """Return the outputs of the model as they are, one row per record."""
        signals, size = np.asarray(x), self.fixed or self.part
        return np.concatenate([self._part(signals[i : i + size]) for i in range(0, len(signals), size)])

    def proba(self, x: ArrayLike) -> Floats:
        """Return one probability per record and class."""
        return to_probability(self.log_odds(x))

    def _part(self, x: NDArray[np.floating]) -> Floats:
        # padded with the first record, whose extra answers are removed
        if self.fixed is not None and len(x) < self.fixed:
            return self._part(np.concatenate([x, np.repeat(x[:1], self.fixed - len(x), axis=0)]))[: len(x)]
        self.n_forward += len(x)
        given = np.ascontiguousarray(x if self.order is None else x[..., list(self.order)], dtype=np.float32)
        if self.layout == "lead_sample":
            given = given.transpose(0, 2, 1) if self.takes_views else np.ascontiguousarray(given.transpose(0, 2, 1))
        raw = self._answer(given)
        found = np.asarray(pick_output(raw), dtype=np.float64)
        if found.ndim == 1 and len(found) == len(x):
            found = found[:, None]
        if found.ndim != 2 or len(found) != len(x):
            raise DataError.of("output-shape", name=self.name, shape=str(found.shape), n=len(x), what="records")
        if not np.isfinite(found).all():
            raise DataError.of("not-finite", name=self.name)
        return found

    def _answer(self, given: Signals) -> object:
        """Return the model's answer; its own errors become one sentence."""
        try:
            return self.function(given)
        except HitmissError:
            raise
        except Exception as error:  # a user's model may raise anything
            axes = "record × lead × sample" if self.layout == "lead_sample" else "record × sample × lead"
            shape = " × ".join(map(str, given.shape))
            raise DataError.of(
                "model-refused",
                name=self.name,
                shape=shape,
                axes=axes,
                name_2=type(error).__name__,
                error=str(error).strip()[:300],
            ) from error

    def bits(self, proba: ArrayLike, threshold: ArrayLike = 0.5) -> NDArray[np.int8]:
        """Return the model's bits: 1 where `proba >= threshold`; for exclusive classes only the largest."""
        values = np.asarray(proba, dtype=np.float64)
        if not self.single_label:
            return binarize(values, threshold)
        return np.asarray(values.argmax(axis=-1)[..., None] == np.arange(values.shape[-1]), dtype=np.int8)

    def settle(self, outputs: Floats) -> None:
        """Decide once, by the values of some outputs, whether they are logits or probabilities."""
        if self.outputs == "auto":
            self.outputs, self.kind_from = self._kind_by_values(outputs), "its values"
        elif self.kind_from == "its last step" and self.ending is None:
            self.outputs = settled_kind(outputs, self.outputs)
            self.kind_from = "its last step" if self.outputs == "logit" else "its values"

    def from_raw(self, outputs: Floats) -> Floats:
        """Return one log-odds per record and class from the outputs of the model."""
        self.settle(outputs)
        if self.single_label:
            return self._of_one(outputs)
        if self.outputs in ("logit", "multilabel"):  # independent bits in both cases
            return outputs
        self._check_probabilities(outputs)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(outputs) - np.log1p(-outputs))

    def _of_one(self, outputs: Floats) -> Floats:
        """Return log-odds of each class against all others; the probabilities are the softmax."""
        if outputs.shape[1] < 2:
            raise UsageError.of("one-output", name=self.name)
        if self.outputs == "probability":
            self._check_probabilities(outputs)
            with np.errstate(divide="ignore"):
                outputs = np.log(outputs)
        return np.stack([to_log_odds(outputs, positive_index=k, kind="logit") for k in range(outputs.shape[1])], axis=1)

    def _check_probabilities(self, outputs: Floats) -> None:
        if ((outputs < 0) | (outputs > 1)).any():
            raise DataError.of(
                "not-probabilities", name=f"outputs of {self.name}", low=outputs.min(), high=outputs.max()
            )

    def _kind_by_values(self, outputs: Floats) -> OutputKind:
        if ((outputs < 0) | (outputs > 1)).any():
            return "logit"
        if are_distributions(outputs):
            return "probability"
        raise DataError.of("outputs-unknown", name=self.name)

    def need_gradient(self, family: str) -> TensorFunction:
        """Return the torch function, or raise an error that says why there is none."""
        if self.differentiable is None:
            raise UsageError.of("no-gradients", family=family, name=self.name)
        return self.differentiable


def as_classifier(
    model: object,
    *,
    outputs: OutputKind = "auto",
    layout: Layout = "sample_lead",
    classes: Sequence[str] | None = None,
    device: str = "cpu",
    single_label: bool | None = None,
) -> Classifier:
    """Return a classifier from what the caller has (see the table above).

    `single_label`: whether exactly one class is true. None: if the last step is a softmax.

    >>> as_classifier(lambda x: x.mean(axis=1)).proba(np.full((1, 10, 2), 0.25)).tolist()
    [[0.25, 0.25]]
    """
    if isinstance(model, Classifier):
        return model
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, LAYOUTS)
    if outputs == "raw":
        raise UsageError.of("raw-outputs/attack")
    made = _made(model, outputs, layout, device)
    made.classes = tuple(classes) if classes is not None else made.classes
    made.single_label = made.single_label if single_label is None else single_label
    made.says_single = single_label
    made.kind_from = "declared" if outputs != "auto" else made.kind_from
    leads, rate = _own(model, "leads"), _own(model, "sample_rate")
    made.leads = tuple(map(str, leads)) if isinstance(leads, tuple | list) else made.leads
    made.sample_rate = float(rate) if isinstance(rate, int | float) and rate else made.sample_rate
    return made


def _own(model: object, name: str) -> object:
    """Return what a model says about itself, or the object of the user inside a detector."""
    inner = [getattr(model, part, None) for part in ("module", "function", "estimator")]
    return next((found for one in (model, *inner) if (found := getattr(one, name, None)) is not None), None)


def _made(model: object, outputs: OutputKind, layout: Layout, device: str) -> Classifier:
    if isinstance(model, EstimatorDetector | CallableDetector):
        inside = model.estimator if isinstance(model, EstimatorDetector) else model.function
        made = _made(inside, outputs, layout, device)
        made.identity = {**model.identity, **made.identity}
        return made
    if isinstance(model, TorchDetector):
        return _of_torch(model.module, outputs, layout, model.device)
    if is_torch_module(model):
        return _of_torch(model, outputs, layout, device)
    if is_keras(model):
        return _of_keras(model, outputs, layout)
    if hasattr(model, "get_inputs") and hasattr(model, "run"):
        return _of_session(model, outputs, layout)
    if isinstance(model, OnnxDetector):
        return _of_onnx(model, outputs, layout, device)
    if isinstance(model, Detector) and not isinstance(model, type):
        return _of_detector(model, outputs, layout)
    if hasattr(model, "fit") and (hasattr(model, "predict_proba") or hasattr(model, "decision_function")):
        return _of_estimator(model, layout)
    kind: OutputKind = "probability" if outputs == "auto" else outputs
    if hasattr(model, "predict"):
        return Classifier(_predict(model), type(model).__name__, kind, layout, kind_from="assumed")
    if callable(model):
        name, own = getattr(model, "__name__", type(model).__name__), getattr(model, "differentiable", None)
        pinned: dict[str, object] = {"source": source_digest(model)}
        return Classifier(model, name, kind, layout, differentiable=own, kind_from="assumed", identity=pinned)
    raise UsageError.of("not-a-model", name=type(model).__name__)


def _of_keras(model: KerasModel, outputs: OutputKind, layout: Layout) -> Classifier:
    """Wrap a Keras model on TensorFlow: documented probabilities, or the logits before its last sigmoid or softmax."""
    ending = last_activation(model)
    kind: OutputKind = ("logit" if ending else "probability") if outputs == "auto" else outputs
    is_logits = ending is not None and outputs == "auto"
    made = Classifier(
        (lambda x: logits_of(model, x)) if is_logits else _predict(model), type(model).__name__, kind, layout
    )
    made.single_label, made.ending = ending == "softmax", ending
    made.kind_from = "its last step" if ending else "assumed"
    try:
        made.differentiable = _oriented(torch_function(model), made, lambda: "logit" if ending else made.outputs)
    except EnvironmentFault:  # without torch, only the families that need no gradient are available
        made.differentiable = None
    return made


def _of_detector(model: Detector, outputs: OutputKind, layout: Layout) -> Classifier:
    """Wrap an object with `outputs`; it may declare `output_kind` and bring a torch function (`differentiable`)."""
    kind: OutputKind = getattr(model, "output_kind", "auto") if outputs == "auto" else outputs
    made = Classifier(model.outputs, model.name, kind, layout, getattr(model, "labels", None))
    made.kind_from = "its values" if kind == "auto" else "the model"
    made.differentiable = _reordered(getattr(model, "differentiable", None), made)
    made.identity = dict(getattr(model, "identity", {}))
    return made


def _reordered(function: TensorFunction | None, made: Classifier) -> TensorFunction | None:
    """Return a model's own torch function of its leads as one of the leads of the signals."""
    if function is None:
        return None
    return lambda x: function(x if made.order is None else x[:, list(made.order)])


def _predict(model: Any) -> Callable[[Signals], object]:
    """Return `.predict` as a function, with progress output turned off if possible."""
    try:
        is_quiet = "verbose" in inspect.signature(model.predict).parameters
    except (TypeError, ValueError):
        is_quiet = False
    return (lambda x: model.predict(x, verbose=0)) if is_quiet else model.predict


def _of_estimator(model: Any, layout: Layout) -> Classifier:
    """Wrap an estimator on flattened records; a list of probabilities per class (multi-output) becomes columns."""

    def positive(x: Signals) -> object:
        found = model.predict_proba(x.reshape(len(x), -1))
        if not isinstance(found, list):
            return np.asarray(found)
        narrow = [at for at, p in enumerate(found) if p.shape[1] != 2]
        if narrow:
            raise DataError.of("class-values", narrow=narrow[0] + 1, name=name, shape=found[narrow[0]].shape[1])
        return np.stack([p[:, 1] for p in found], axis=1)

    def decide(x: Signals) -> object:
        return np.asarray(model.decision_function(x.reshape(len(x), -1)))

    name, classes = type(model).__name__, getattr(model, "classes_", None)
    words = tuple(classes) if isinstance(classes, np.ndarray) and classes.dtype.kind in "US" else None
    named = tuple(map(str, words)) if words is not None and len(words) > 1 else None
    if hasattr(model, "predict_proba"):
        return Classifier(positive, name, "probability", layout, named, kind_from="the model")
    return Classifier(decide, name, "logit", layout, named if named and len(named) > 2 else None, kind_from="the model")


def _of_session(session: InferenceSession, outputs: OutputKind, layout: Layout) -> Classifier:
    """Wrap an onnxruntime session: its first input, its first output."""
    given, answer = session.get_inputs()[0].name, session.get_outputs()[0].name
    kind = _kind_of_name(answer) if outputs == "auto" else outputs
    return Classifier(
        lambda x: session.run([answer], {given: x})[0], "onnx session", kind, layout, fixed=_fixed_batch(session)
    )


def _fixed_batch(session: InferenceSession) -> int | None:
    """Return the batch size that a graph was exported for; None if it is free (its first dimension has a name)."""
    shape = session.get_inputs()[0].shape
    return int(shape[0]) if shape and isinstance(shape[0], int) and shape[0] > 0 else None


def _of_onnx(detector: OnnxDetector, outputs: OutputKind, layout: Layout, device: str) -> Classifier:
    """Wrap an ONNX detector, with gradients if torch, onnx and its operators allow it."""

    kind = _kind_of_name(detector._answer) if outputs == "auto" else outputs
    made = Classifier(detector.outputs, detector.name, kind, layout, detector.labels, identity=dict(detector.identity))
    made.kind_from = "its values" if kind == "auto" else "the model"
    made.differentiable = _oriented(onnx_function(detector.path, detector._answer, device), made, lambda: made.outputs)
    made.leads, made.sample_rate = detector.leads, detector.sample_rate
    made.device, made.fixed = device, detector.max_batch
    return made


def _kind_of_name(name: str) -> OutputKind:
    """Return whether an output is named logits or probabilities; `auto` for any other name."""
    lower = name.lower()
    return "logit" if "logit" in lower else "probability" if lower.startswith("prob") else "auto"


def _of_torch(module: Module, outputs: OutputKind, layout: Layout, device: str) -> Classifier:
    """Wrap a torch module in evaluation mode."""
    torch = need("torch", "torch")
    place = pick_device(device)
    module = module.to(place).eval()
    # The last step is known after the first batch: logits are taken from before a sigmoid or softmax.
    settled = Settled(module, outputs)

    def forward(x: Signals) -> object:
        with torch.inference_mode(), channels_last(place, len(x)):
            found = settled(torch.from_numpy(x).to(place))
        if made.outputs == "auto":
            made.outputs, made.kind_from, made.ending = settled.kind, "its last step", settled.activation
            made.single_label = made.single_label or settled.activation == "softmax"
        return found

    name = type(module).__name__
    identity: dict[str, object] = {"name": name, "parameters": parameters_digest(module)}
    made = Classifier(forward, name, outputs, layout, device=place, identity=identity, takes_views=True)
    made.differentiable = _oriented(settled, made, lambda: settled.kind if made.outputs == "auto" else made.outputs)
    return made


def _oriented(
    function: Callable[[Tensor], object] | None, made: Classifier, kind: Callable[[], OutputKind]
) -> TensorFunction | None:
    """Return a torch function from record × lead × sample to logits, for a model of either layout and kind.

    Probabilities of exclusive classes become their logarithms: the softmax of those are the probabilities again.
    """
    if function is None:
        return None

    def logits(x: Tensor) -> Tensor:
        given = x if made.order is None else x[:, list(made.order)]
        raw = pick_raw(function(given if made.layout == "lead_sample" else given.transpose(1, 2)))
        if kind() != "probability":
            return raw
        return raw.clamp(SMALLEST, 1).log() if made.single_label else raw.clamp(SMALLEST, 1 - SMALLEST).logit()

    return logits


def ahead(log_odds: Floats) -> Floats:
    """Return how far each class's log-probability is ahead of the best other.

    >>> ahead(np.array([[1.0, -1.0]])).round(3).tolist()
    [[1.0, -1.0]]
    """
    logs = -np.logaddexp(0.0, -log_odds)
    others = np.stack([np.delete(logs, k, axis=1).max(axis=1) for k in range(logs.shape[1])], axis=1)
    return np.asarray(logs - others)


def binarize(proba: ArrayLike, threshold: ArrayLike = 0.5) -> NDArray[np.int8]:
    """Return 1 where `proba >= threshold`; there may be one threshold per class.

    >>> binarize([0.2, 0.5, 0.9]).tolist(), binarize([[0.2, 0.5]], [0.1, 0.6]).tolist()
    ([0, 1, 1], [[1, 0]])
    """
    values, cut = np.asarray(proba, dtype=np.float64), np.asarray(threshold, dtype=np.float64)
    if np.isnan(values).any():
        raise DataError.of("nan-probabilities", n=int(np.isnan(values).sum()))
    if cut.ndim and (cut.ndim > 1 or not values.ndim or len(cut) != values.shape[-1]):
        classes = values.shape[-1] if values.ndim else 1
        raise UsageError.of("bad-threshold/classes", classes=classes, size=cut.size)
    if not ((cut >= 0.0) & (cut <= 1.0)).all():
        raise UsageError.of("bad-threshold/probability", cut=cut)
    return np.asarray(values >= cut, dtype=np.int8)
