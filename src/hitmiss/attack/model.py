"""The model under attack, whatever it is: signals (record × sample × lead) in, one log-odds a class out.

| given                              | what it must give               | gradients |
|------------------------------------|---------------------------------|-----------|
| torch module                       | logits, or probabilities        | yes       |
| ONNX file, ONNX session            | logits, or probabilities        | with torch and onnx, where its operators are known |
| Keras model on TensorFlow          | logits, or probabilities        | with torch beside it, by a GradientTape |
| scikit-learn estimator             | probabilities or decision function of flattened records | no |
| anything with `.predict`, callable | probabilities                   | no        |

Whether outputs are logits or probabilities is declared (`outputs=`), or told by the last layer, the name of the output or
values outside 0..1; where nothing tells, it is asked for. Predictions go through in parts of a fixed size.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.attack.channels_last import channels_last
from hitmiss.attack.keras_torch import is_keras, last_activation, logits_of, torch_function
from hitmiss.detect.detector import CallableDetector, Detector, EstimatorDetector, need
from hitmiss.detect.endings import Settled
from hitmiss.detect.extract import OutputKind, pick_output, pick_raw, to_log_odds, to_probability
from hitmiss.errors import DataError, EnvironmentFault, HitmissError, UnknownName, UsageError

Floats = NDArray[np.float64]
Layout = Literal["sample_lead", "lead_sample"]
LAYOUTS: Final = ("sample_lead", "lead_sample")
PART: Final = 64
"""Records in one call of the model."""


@dataclass(eq=False)
class Classifier:
    """A model as the attacks see it. `differentiable` is a torch function from signals (record × lead × sample) to logits."""

    function: Callable[[NDArray[Any]], Any]
    name: str = "model"
    outputs: OutputKind = "auto"
    layout: Layout = "sample_lead"
    classes: tuple[str, ...] | None = None
    differentiable: Any = None
    device: str = "cpu"
    identity: dict[str, Any] = field(default_factory=dict)
    part: int = PART
    single_label: bool = False
    """Whether one class alone is true (softmax): the largest output is the answer, not every one above a threshold."""
    fixed: int | None = None
    """How many records the model takes at a time, no more and no fewer; None where it takes any number."""
    takes_views: bool = False
    """Whether signals may be handed over turned round in memory, which spares a copy."""
    n_forward: int = 0
    """Records that went through the model so far."""

    def log_odds(self, x: Any) -> Floats:
        """One log-odds a record and class."""
        signals = np.asarray(x)
        if not len(signals):
            return np.zeros((0, len(self.classes or ())))
        size = self.fixed or self.part
        parts = [self._part(signals[i : i + size]) for i in range(0, len(signals), size)]
        return self._settled(np.concatenate(parts))

    def proba(self, x: Any) -> Floats:
        """One probability a record and class."""
        return to_probability(self.log_odds(x))

    def _part(self, x: NDArray[Any]) -> Floats:
        if self.fixed is not None and len(x) < self.fixed:  # filled up with the first record, whose answers are cut off
            return self._part(np.concatenate([x, np.repeat(x[:1], self.fixed - len(x), axis=0)]))[: len(x)]
        self.n_forward += len(x)
        given = np.ascontiguousarray(x, dtype=np.float32)
        if self.layout == "lead_sample":
            given = given.transpose(0, 2, 1) if self.takes_views else np.ascontiguousarray(given.transpose(0, 2, 1))
        raw = self._answer(given)
        found = np.asarray(pick_output(raw), dtype=np.float64)
        if found.ndim == 1 and len(found) == len(x):
            found = found[:, None]
        if found.ndim != 2 or len(found) != len(x):
            raise DataError(
                f"{self.name} gave the shape {found.shape} for {len(x)} records; one row a record is needed"
            )
        if not np.isfinite(found).all():
            raise DataError(f"{self.name} gave values that are not finite")
        return found

    def _answer(self, given: NDArray[Any]) -> Any:
        """What the model says; its own complaints in one sentence."""
        try:
            return self.function(given)
        except HitmissError:
            raise
        except Exception as error:  # whatever a model of the user's may raise
            axes = "record × lead × sample" if self.layout == "lead_sample" else "record × sample × lead"
            shape = " × ".join(map(str, given.shape))
            raise DataError(
                f"{self.name} did not take signals of {shape} ({axes}): {type(error).__name__}: {str(error).strip()[:300]}"
            ) from error

    def bits(self, proba: Any, threshold: Any = 0.5) -> NDArray[np.int8]:
        """What the model answers: 1 where `proba >= threshold`; of classes that exclude each other the largest alone."""
        values = np.asarray(proba, dtype=np.float64)
        if not self.single_label:
            return binarize(values, threshold)
        return np.asarray(values.argmax(axis=-1)[..., None] == np.arange(values.shape[-1]), dtype=np.int8)

    def _settled(self, outputs: Floats) -> Floats:
        if self.outputs == "auto":
            self.outputs = self._told(outputs)
        if self.single_label:
            return self._of_one(outputs)
        if self.outputs in ("logit", "multilabel"):  # bits that exclude nothing, either way
            return outputs
        self._check_probabilities(outputs)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(outputs) - np.log1p(-outputs))

    def _of_one(self, outputs: Floats) -> Floats:
        """Log-odds of each class against the others together; the probability of each is the softmax."""
        if outputs.shape[1] < 2:
            raise UsageError(f"{self.name} has one output; classes that exclude each other need two", code="one-output")
        if self.outputs == "probability":
            self._check_probabilities(outputs)
            with np.errstate(divide="ignore"):
                outputs = np.log(outputs)
        return np.stack([to_log_odds(outputs, positive_index=k, kind="logit") for k in range(outputs.shape[1])], axis=1)

    def _check_probabilities(self, outputs: Floats) -> None:
        if ((outputs < 0) | (outputs > 1)).any():
            raise DataError(f"{self.name} is to give probabilities and gave {outputs.min():g} to {outputs.max():g}")

    def _told(self, outputs: Floats) -> OutputKind:
        if ((outputs < 0) | (outputs > 1)).any():
            return "logit"
        raise DataError(
            f"all outputs of {self.name} lie in 0..1: they may be probabilities or logits; say which: "
            f"classifier(model, outputs='probability') or 'logit', --outputs on the command line",
            code="outputs-unknown",
        )

    def need_gradient(self, family: str) -> Any:
        """The torch function, or an error that says why there is none."""
        if self.differentiable is None:
            raise UsageError(
                f"{family} needs gradients and {self.name} gives none: hand over a torch module (or an ONNX model, with torch "
                f"and onnx installed), or use a family that needs none, as random_search"
            )
        return self.differentiable


def as_classifier(
    model: Any,
    *,
    outputs: OutputKind = "auto",
    layout: Layout = "sample_lead",
    classes: Sequence[str] | None = None,
    device: str = "cpu",
    single_label: bool | None = None,
) -> Classifier:
    """A classifier from whatever the caller has (see the table above).

    `single_label`: whether one class alone is true. None: where the last step is a softmax.

    >>> as_classifier(lambda x: x.mean(axis=1)).proba(np.full((1, 10, 2), 0.25)).tolist()
    [[0.25, 0.25]]
    """
    if isinstance(model, Classifier):
        return model
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, LAYOUTS)
    made = _made(model, outputs, layout, device)
    made.classes = tuple(classes) if classes is not None else made.classes
    made.single_label = made.single_label if single_label is None else single_label
    return made


def _made(model: Any, outputs: OutputKind, layout: Layout, device: str) -> Classifier:
    if isinstance(model, EstimatorDetector):
        return _made(model.estimator, outputs, layout, device)
    if isinstance(model, CallableDetector):
        return _made(model.function, outputs, layout, device)
    if hasattr(model, "module") and hasattr(model, "autocast"):  # a TorchDetector, of `hitmiss detect`
        return _of_torch(model.module, outputs, layout, model.device)
    if _is_torch(model):
        return _of_torch(model, outputs, layout, device)
    if is_keras(model):
        return _of_keras(model, outputs, layout)
    if hasattr(model, "get_inputs") and hasattr(model, "run"):
        return _of_session(model, outputs, layout)
    if hasattr(model, "_session") and hasattr(model, "path"):
        return _of_onnx(model, outputs, layout, device)
    if isinstance(model, Detector) and not isinstance(model, type):
        return _of_detector(model, outputs, layout)
    if hasattr(model, "fit") and (hasattr(model, "predict_proba") or hasattr(model, "decision_function")):
        return _of_estimator(model, layout)
    kind: OutputKind = "probability" if outputs == "auto" else outputs
    if hasattr(model, "predict"):
        return Classifier(_predict(model), type(model).__name__, kind, layout)
    if callable(model):
        name = getattr(model, "__name__", type(model).__name__)
        return Classifier(model, name, kind, layout, differentiable=getattr(model, "differentiable", None))
    raise UsageError(
        f"a {type(model).__name__} is no model; give something with .predict, a callable or a torch module"
    )


def _of_keras(model: Any, outputs: OutputKind, layout: Layout) -> Classifier:
    """A Keras model on TensorFlow: probabilities as documented, or the logits before its last sigmoid or softmax."""
    ending = last_activation(model)
    kind: OutputKind = ("logit" if ending else "probability") if outputs == "auto" else outputs
    is_logits = ending is not None and outputs == "auto"
    made = Classifier(
        (lambda x: logits_of(model, x)) if is_logits else _predict(model), type(model).__name__, kind, layout
    )
    made.single_label = ending == "softmax"
    try:
        made.differentiable = _oriented(torch_function(model), layout, lambda: "logit" if ending else kind)
    except EnvironmentFault:  # without torch the families that need no gradient are left
        made.differentiable = None
    return made


def _of_detector(model: Any, outputs: OutputKind, layout: Layout) -> Classifier:
    """Anything with `outputs`; it may say what they are (`output_kind`) and bring a torch function (`differentiable`)."""
    kind: OutputKind = getattr(model, "output_kind", "auto") if outputs == "auto" else outputs
    made = Classifier(model.outputs, model.name, kind, layout, getattr(model, "labels", None))
    made.differentiable = getattr(model, "differentiable", None)
    made.identity = dict(getattr(model, "identity", {}))
    return made


def _predict(model: Any) -> Callable[[NDArray[Any]], Any]:
    """`.predict` as a function, told to be quiet where it can be."""
    try:
        is_quiet = "verbose" in inspect.signature(model.predict).parameters
    except (TypeError, ValueError):
        is_quiet = False
    return (lambda x: model.predict(x, verbose=0)) if is_quiet else model.predict


def _of_estimator(model: Any, layout: Layout) -> Classifier:
    """An estimator on flattened records; a list of probabilities a class (multi-output) becomes columns."""

    def positive(x: NDArray[Any]) -> Any:
        found = model.predict_proba(x.reshape(len(x), -1))
        return np.stack([p[:, -1] for p in found], axis=1) if isinstance(found, list) else np.asarray(found)

    def decide(x: NDArray[Any]) -> Any:
        return np.asarray(model.decision_function(x.reshape(len(x), -1)))

    name = type(model).__name__
    if hasattr(model, "predict_proba"):
        return Classifier(positive, name, "probability", layout)
    return Classifier(decide, name, "logit", layout)


def _of_session(session: Any, outputs: OutputKind, layout: Layout) -> Classifier:
    """An onnxruntime session: its first input, its first output."""
    given, answer = session.get_inputs()[0].name, session.get_outputs()[0].name
    kind = _kind_of_name(answer) if outputs == "auto" else outputs
    return Classifier(
        lambda x: session.run([answer], {given: x})[0], "onnx session", kind, layout, fixed=_fixed_batch(session)
    )


def _fixed_batch(session: Any) -> int | None:
    """The number of records that a graph was exported for; None where it is free (its first dimension has a name)."""
    shape = session.get_inputs()[0].shape
    return int(shape[0]) if shape and isinstance(shape[0], int) and shape[0] > 0 else None


def _of_onnx(detector: Any, outputs: OutputKind, layout: Layout, device: str) -> Classifier:
    """An ONNX detector; with gradients where torch, onnx and its operators allow it."""
    from hitmiss.attack.onnx_torch import onnx_function

    kind = _kind_of_name(detector._answer) if outputs == "auto" else outputs
    made = Classifier(detector.outputs, detector.name, kind, layout, detector.labels, identity=dict(detector.identity))
    made.differentiable = _oriented(onnx_function(detector.path, detector._answer, device), layout, lambda: kind)
    made.device, made.fixed = device, detector.max_batch
    return made


def _kind_of_name(name: str) -> OutputKind:
    """Whether an output is called logits or probabilities; any other name tells nothing."""
    lower = name.lower()
    return "logit" if "logit" in lower else "probability" if lower.startswith("prob") else "auto"


def _of_torch(module: Any, outputs: OutputKind, layout: Layout, device: str) -> Classifier:
    """A torch module in evaluation mode."""
    from hitmiss.detect.torch_device import pick_device
    from hitmiss.detect.torch_model import parameters_digest

    torch = need("torch", "torch")
    place = pick_device(device)
    module = module.to(place).eval()
    # What the last step is, is known at the first batch: logits are taken from before a sigmoid or softmax.
    settled = Settled(module, outputs)

    def forward(x: NDArray[Any]) -> Any:
        with torch.inference_mode(), channels_last(place, len(x)):
            found = settled(torch.from_numpy(x).to(place))
        if made.outputs == "auto":
            made.outputs = settled.kind
            made.single_label = made.single_label or settled.activation == "softmax"
        return found

    name = type(module).__name__
    identity = {"name": name, "parameters": parameters_digest(module)}
    made = Classifier(forward, name, outputs, layout, device=place, identity=identity, takes_views=True)
    made.differentiable = _oriented(settled, layout, lambda: settled.kind)
    return made


def _oriented(function: Any, layout: Layout, kind: Callable[[], OutputKind]) -> Any:
    """A torch function from record × lead × sample to logits, for a model of either layout and kind."""
    if function is None:
        return None

    def logits(x: Any) -> Any:
        raw = pick_raw(function(x if layout == "lead_sample" else x.transpose(1, 2)))
        return raw.clamp(1e-7, 1 - 1e-7).logit() if kind() == "probability" else raw

    return logits


def ahead(log_odds: Floats) -> Floats:
    """How far each class's log-probability is ahead of the best of the others.

    >>> ahead(np.array([[1.0, -1.0]])).round(3).tolist()
    [[1.0, -1.0]]
    """
    logs = -np.logaddexp(0.0, -log_odds)
    others = np.stack([np.delete(logs, k, axis=1).max(axis=1) for k in range(logs.shape[1])], axis=1)
    return np.asarray(logs - others)


def binarize(proba: ArrayLike, threshold: ArrayLike = 0.5) -> NDArray[np.int8]:
    """1 where `proba >= threshold`; the threshold may be one for each class.

    >>> binarize([0.2, 0.5, 0.9]).tolist(), binarize([[0.2, 0.5]], [0.1, 0.6]).tolist()
    ([0, 1, 1], [[1, 0]])
    """
    values, cut = np.asarray(proba, dtype=np.float64), np.asarray(threshold, dtype=np.float64)
    if np.isnan(values).any():
        raise DataError(
            f"{int(np.isnan(values).sum())} probabilities are NaN, which is neither above nor below a threshold"
        )
    if cut.ndim and (cut.ndim > 1 or not values.ndim or len(cut) != values.shape[-1]):
        classes = values.shape[-1] if values.ndim else 1
        raise UsageError(f"a threshold is one number, or one for each of the {classes} classes; found {cut.size}")
    if not ((cut >= 0.0) & (cut <= 1.0)).all():
        raise UsageError(f"thresholds are probabilities, 0 to 1; found {cut}")
    return np.asarray(values >= cut, dtype=np.int8)


def _is_torch(thing: Any) -> bool:
    import sys

    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)
