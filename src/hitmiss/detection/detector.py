"""What a detector is, how it is named on a command line, and what its outputs are."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, UsageError
from hitmiss.core.registry import add, all_of, find
from hitmiss.detection.outputs import OutputKind, Outputs, pick_raw
from hitmiss.detection.pinning import code_digest, source_digest

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from hitmiss.detection.contract import Origin
    from hitmiss.detection.torch import Staged

# ----------------------------------------------------------------------
# What a detector is, and how it is named on a command line.
#
# A detector takes a batch and returns outputs; `extract` turns them into scores. Any object with `name`, `sample_rate`
# and `outputs` is a detector. `Base` has defaults for everything else that the loop may use:
#
#     ragged        whether clips of different lengths may share a batch without affecting each other's outputs
#     labels        the classes of its columns, if the model names them
#     max_batch     the maximum number of clips per batch
#     is_async      whether `launch` returns before the model is done and `collect` waits, so that batches overlap
#     identity      what pins it in the configuration of a run: a run cannot be resumed with another detector
#     prepare       moves a batch to where the model needs it; runs in another thread, in parallel with the model
#     with_layers   outputs and pooled hidden layers, for `hitmiss probe`
#     loop_class    the loop that runs it, if not the loop of one process (see `Fleet`)

Array = NDArray[np.generic]
Item = Array | str
"""A clip, a picture or a text."""
Batch: TypeAlias = "Array | Sequence[Item] | Staged"
"""Clips of one shape as an array (clip × sample), or a list: clips of several lengths, or texts."""


def arrays_of(batch: Batch) -> list[Array]:
    """Return the clips or pictures of a batch."""
    found = [item for item in batch if isinstance(item, np.ndarray)]
    if len(found) < len(batch):
        raise UsageError("this detector takes sound or pictures, not texts", code="not-arrays")
    return found


@dataclass(frozen=True)
class Opening:
    """The caller's options for a detector besides its text; an opener uses those that apply to its model."""

    weights: str | Path | None = None
    device: str = "auto"
    precision: str = "auto"
    sample_rate: int | None = None
    layers: tuple[str, ...] = ()
    compiled: bool = False

    def refuse(self, what: str, *options: str) -> None:
        """Stop if the caller gave an option that does not apply to this kind of detector: none is silently ignored."""
        flags = {"weights": "--weights", "layers": "--embed", "precision": "--precision", "compiled": "--compile"}
        given = {"weights": self.weights is not None, "layers": bool(self.layers), "compiled": self.compiled}
        given["precision"] = self.precision not in ("auto", "float32")
        for option in options:
            if given[option]:
                raise UsageError(f"{what} does not use {flags[option]}: leave it out", code=f"{option}-unused")


def opener_of(text: str) -> str | None:
    """Return the registered kind that opens a text, by its prefix or its suffix; None for a user's own object."""
    known, kind = all_of("detector"), text.partition(":")[0]
    return kind if ":" in text and kind in known else ending if (ending := Path(text).suffix) in known else None


def _kinds() -> str:
    """Return the ways to write a detector."""
    known = [f"model{name}" if name.startswith(".") else f"{name}:…" for name in all_of("detector")]
    return ", ".join(["module:name", "file.py:name", *known])


@runtime_checkable
class Detector(Protocol):
    """Takes a batch and returns outputs: one row per clip, one column per class (or a single column)."""

    name: str
    sample_rate: int | None

    def outputs(self, batch: Batch) -> Outputs:
        """Return the raw outputs of the model, one row per clip."""
        ...


class Base:
    """The defaults of the detector interface."""

    name: str = "detector"
    sample_rate: int | None = None
    ragged: bool = False
    labels: tuple[str, ...] | None = None
    sides: tuple[str, ...] | None = None
    """The two classes of a single output, the one that a higher output means last."""
    output_kind: OutputKind = "auto"
    kind_from: Origin = "the model"
    """How `output_kind` is known."""
    activation: str | None = None
    """The sigmoid or softmax that was taken off the model's last step; `outputs` are then logits."""
    max_batch: int | None = None
    is_async: bool = False
    layers: tuple[str, ...] = ()

    @property
    def identity(self) -> Mapping[str, object]:
        """What pins the detector; it must include everything that could change a score."""
        return {"name": self.name}

    def prepare(self, batch: Batch) -> Batch:
        """Return a batch in the form that `outputs` prefers."""
        return batch

    def outputs(self, batch: Batch) -> Outputs:
        """Return the raw outputs of the model, one row per clip."""
        raise NotImplementedError(f"{type(self).__name__} must give outputs for {len(batch)} clips")

    def launch(self, batch: Batch) -> object:
        """Start the model on a batch."""
        return self.outputs(batch)

    def collect(self, launched: Any) -> Outputs:
        """Return the raw outputs of a batch that was launched."""
        return np.asarray(launched)

    def with_layers(self, batch: Batch) -> tuple[Outputs, dict[str, Outputs]]:
        """Return the outputs, and each requested layer as clip × dimension."""
        del batch
        raise UsageError(f"{self.name} has no layers to take embeddings from; a torch or ONNX model has")

    def in_float32(self) -> Detector | None:
        """Return the same detector in float32, if it uses a lower precision; used to measure the effect of rounding."""
        return None

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether an error means that the batch was too large."""
        return isinstance(error, MemoryError)

    def close(self) -> None:
        """Release the detector's resources."""


class CallableDetector(Base):
    """Wraps any function from a batch to outputs.

    >>> detector = CallableDetector(lambda batch: batch.mean(axis=1))
    >>> detector.outputs(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [2.0, 0.0]
    """

    def __init__(
        self, function: Callable[..., object], name: str = "", sample_rate: int | None = None, ragged: bool = False
    ) -> None:
        self.function = function
        self.name = name or getattr(function, "__qualname__", type(function).__name__)
        self.sample_rate = sample_rate or getattr(function, "sample_rate", None)
        self.ragged = ragged or bool(getattr(function, "ragged", False))

    @property
    def identity(self) -> Mapping[str, object]:
        """The function's name and the hash of the file that defines it."""
        return {"name": self.name, "source": source_digest(self.function)}

    def outputs(self, batch: Batch) -> Outputs:
        """Return the result of the function."""
        return np.asarray(self.function(batch))


class EstimatorDetector(Base):
    """A fitted scikit-learn estimator: its log-probabilities, decision function or probabilities, in this order."""

    METHODS: Final = ("predict_log_proba", "decision_function", "predict_proba")

    def __init__(self, estimator: object, name: str = "", sample_rate: int | None = None) -> None:
        self.estimator = estimator
        self.source: str | None = None
        self.name = name or type(estimator).__name__
        self.sample_rate = sample_rate
        self.method = next((m for m in self.METHODS if hasattr(estimator, m)), None)
        if self.method is None:
            raise UsageError(f"{self.name} has none of {', '.join(self.METHODS)}; a score needs one of them")
        classes = getattr(estimator, "classes_", None)
        has_columns = self.method != "decision_function" or (classes is not None and len(classes) > 2)
        # Numbers are names too: which of 0 and 1 is the positive class is not known by itself.
        self.labels = tuple(map(str, classes)) if has_columns and classes is not None else None
        self.sides = tuple(map(str, classes)) if not has_columns and classes is not None else None
        self.output_kind = "probability" if self.method == "predict_proba" else "logit"

    @property
    def identity(self) -> Mapping[str, object]:
        """Its class and settings; its fitted parameters are pinned by the code that built it."""
        built = {"source": self.source} if self.source is not None else {}
        return {"name": self.name, "estimator": repr(self.estimator), "method": self.method, **built}

    def outputs(self, batch: Batch) -> Outputs:
        """Return the estimator's output for each row of the batch."""
        return np.asarray(getattr(self.estimator, str(self.method))(np.asarray(batch)))


def as_detector(thing: object, *, name: str = "", sample_rate: int | None = None) -> Detector:
    """Return a detector made from a detector, a torch module, an estimator, or a function.

    >>> as_detector(len).name
    'len'
    """
    if isinstance(thing, Detector) and not isinstance(thing, type):
        return thing
    if is_torch_module(thing):
        from hitmiss.detection.torch import TorchDetector

        return TorchDetector(thing, name=name, sample_rate=sample_rate)
    if hasattr(thing, "fit") and any(hasattr(thing, m) for m in EstimatorDetector.METHODS):
        return EstimatorDetector(thing, name, sample_rate)
    if callable(thing):
        return CallableDetector(thing, name, sample_rate)
    raise UsageError(f"a {type(thing).__name__} is not a detector; give a function, an estimator or a torch module")


def open_detector(
    text: str,
    *,
    weights: str | Path | None = None,
    device: str = "auto",
    precision: str = "auto",
    sample_rate: int | None = None,
    layers: Sequence[str] = (),
    compiled: bool = False,
) -> Detector:
    """Open a detector: `model.onnx`, `module:name`, `file.py:name`, `beats:checkpoint.pt`, `hf-audio:folder`, ….

    A name that refers to a function without required parameters is a factory: it is called, and `weights` are loaded
    into the torch module that it returns.
    """
    how = Opening(weights, device, precision, sample_rate, tuple(layers), compiled)
    kind = opener_of(text)
    if kind is None:
        return _from_name(text, how)
    opened = find("detector", kind)(text if kind.startswith(".") else text.partition(":")[2], how)
    return as_detector(opened, sample_rate=sample_rate)  # a plug-in may return a plain function


def _open_onnx(path: str, how: Opening) -> Detector:
    """An ONNX model: model.onnx."""
    from hitmiss.detection.onnx import OnnxDetector

    how.refuse(path, "weights", "compiled")
    return OnnxDetector(
        path, device=how.device, sample_rate=how.sample_rate, layers=how.layers, precision=how.precision
    )


def _open_beats(path: str, how: Opening) -> Detector:
    """A BEATs checkpoint: beats:checkpoint.pt."""
    from hitmiss.detection.beats import BeatsDetector

    # `--compile` changes nothing: it is compiled wherever that is faster
    return BeatsDetector.load(path, head=how.weights, device=how.device, precision=how.precision, layers=how.layers)


def _open_transformers(path: str, how: Opening, *, medium: str) -> Detector:
    """A folder of a transformers model: hf-audio:folder, hf-text:folder, hf-image:folder."""
    from hitmiss.detection.transformers import TransformersDetector

    how.refuse(f"a folder of transformers ({path})", "weights", "compiled")
    return TransformersDetector(path, medium, device=how.device, precision=how.precision, layers=how.layers)


def _open_program(command: str, how: Opening) -> Detector:
    """A program that reads files and writes scores: program:command."""
    from hitmiss.detection.program import ProgramDetector

    how.refuse("a program", "weights", "layers", "precision", "compiled")
    return ProgramDetector(command, sample_rate=how.sample_rate)


def _from_name(text: str, how: Opening) -> Detector:
    thing = made = find_object(text)
    weights, sample_rate = how.weights, how.sample_rate
    if isinstance(thing, type) or _is_factory(thing):
        made = _by_user(text, thing)
    if is_torch_module(made):
        from hitmiss.detection.torch import TorchDetector, load_weights, parameters_digest

        digest = load_weights(made, weights) if weights is not None else None
        loaded = {"weights": digest} if digest is not None else {"parameters": parameters_digest(made)}
        pinned = {"source": source_digest(thing), **loaded}
        return TorchDetector(
            made, name=text, sample_rate=sample_rate, device=how.device, precision=how.precision, layers=how.layers,
            pinned=pinned, compiled=how.compiled,
        )  # fmt: skip
    found = as_detector(made, name=text, sample_rate=sample_rate)
    own = tuple(getattr(found, "layers", ()))
    unused = ["weights", "precision", "compiled", *([] if own and own == how.layers else ["layers"])]
    how.refuse(f"{text}, which gives a {type(made).__name__},", *unused)
    return found if isinstance(found, CallableDetector) else _pinned(found, text)


def _pinned(detector: Detector, text: str) -> Detector:
    """Add the hash of the code that built a detector: a fitted estimator does not expose its parameters."""
    place = text.rpartition(":")[0]
    file = place if place.endswith(".py") else getattr(sys.modules.get(place), "__file__", None)
    if isinstance(detector, EstimatorDetector) and file is not None and Path(file).is_file():
        detector.source = code_digest(file)
    return detector


def find_object(text: str) -> Any:
    """Return the object that `module:name` or `path/to/file.py:name` names. This runs the user's own code.

    >>> find_object("math:sqrt")(9.0)
    3.0
    """
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise UsageError(f"{text!r} is not a detector; write one of {_kinds()}")
    module = _module_of(place)
    try:
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise UsageError(f"{place} has no {name!r}") from None
    return found


def _module_of(place: str) -> ModuleType:
    if place.endswith(".py"):
        return _loaded_file(Path(place))
    _add_to_path(Path.cwd())  # as `python -m` does, so that a file in the current folder is found
    try:
        return cast("ModuleType", _by_user(place, partial(importlib.import_module, place)))
    except ModuleNotFoundError as error:
        raise UsageError(f"{place!r} cannot be imported: {error}; a detector is one of {_kinds()}") from None


_BESIDE: Final[dict[Path, dict[str, ModuleType]]] = {}
"""For each folder of a user's file, the modules beside it that it imported. Two folders may each have a `models.py`."""


def _loaded_file(path: Path) -> ModuleType:
    """Load the module of a user's file. Modules in its folder are its own, even if another file uses their names."""
    full = path.resolve()
    name = f"hitmiss_user_{hashlib.sha256(str(full).encode()).hexdigest()[:8]}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError(f"there is no file {path}")
    artifacts.note_input(path)
    for folder, modules in _BESIDE.items():
        for known in modules if folder != full.parent else ():
            if sys.modules.get(known) is modules[known]:
                del sys.modules[known]
    for known in _hiding(full.parent):
        del sys.modules[known]
    sys.modules.update(_BESIDE.get(full.parent, {}))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # As `python file.py` does: modules beside the file can be imported first, then those in the current folder.
    _add_to_path(Path.cwd())
    _add_to_path(full.parent)
    before = set(sys.modules)
    _prefer_folders(full.parent)
    try:
        _by_user(str(path), partial(spec.loader.exec_module, module))
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{path} imports something that is not there: {error}; modules are looked for in its own folder, in the "
            f"current one and among installed packages",
            code="missing-module",
        ) from None
    beside = {known: sys.modules[known] for known in set(sys.modules) - before if _is_beside(sys.modules[known], full)}
    _BESIDE.setdefault(full.parent, {}).update(beside)
    return module


def _hiding(folder: Path) -> list[str]:
    """Return the modules imported from elsewhere that hide those of the same names in a folder.

    Installed packages and the standard library are never replaced: other modules hold parts of them.
    """
    own = {place.stem for place in folder.iterdir() if place.suffix in ("", ".py")} - sys.stdlib_module_names
    loaded = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in own}
    found = {name: _places_of(getattr(module, "__spec__", None)) for name, module in loaded.items()}
    return [
        name
        for name, places in found.items()
        if places and not any(place.is_relative_to(folder) or _is_installed(place) for place in places)
    ]


def _prefer_folders(folder: Path) -> None:
    """Import the packages without `__init__.py` in a folder for which Python would take a file from elsewhere.

    Such a package loses to a module of its name anywhere in the search path, which holds the folders of earlier files.
    """
    for place in folder.iterdir():
        name = place.name
        if not (name.isidentifier() and place.is_dir()) or name in sys.modules or (place / "__init__.py").exists():
            continue
        usual, own = importlib.util.find_spec(name), PathFinder.find_spec(name, [str(folder)])
        places = _places_of(usual)
        if own is not None and places and not any(p.is_relative_to(folder) or _is_installed(p) for p in places):
            sys.modules[name] = importlib.util.module_from_spec(own)


def _is_beside(module: ModuleType, file: Path) -> bool:
    """Return whether a module is in the folder of a file, and is not an installed package there."""
    places = _places_of(getattr(module, "__spec__", None))
    return any(place.is_relative_to(file.parent) and not _is_installed(place) for place in places)


def _places_of(spec: object) -> list[Path]:
    """Return the file of a module and the folders of a package."""
    if not isinstance(spec, ModuleSpec):  # some packages put other kinds of objects among the modules
        return []
    return [Path(place).resolve() for place in (spec.origin, *(spec.submodule_search_locations or ())) if place]


def _is_installed(place: Path) -> bool:
    return bool({"site-packages", "dist-packages"} & set(place.parts))


def _add_to_path(folder: Path) -> None:
    """Put a folder first in the module search path."""
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))


def need(package: str, extra: str) -> ModuleType:
    """Import a package of an extra, or raise an error that says how to install it. Heavy packages load only on use.

    >>> need("json", "torch").__name__
    'json'
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise EnvironmentFault(
            f"this needs the package {package!r} ({error}): pip install 'hitmiss[{extra}]'"
        ) from None


def _is_factory(thing: object) -> bool:
    """Return whether a name refers to a function that makes a detector: it needs no argument and takes no batch.

    A model itself (a torch module, an estimator) is none, and neither is `def score(*batches)`.
    """
    if not callable(thing) or hasattr(thing, "fit") or is_torch_module(thing) or isinstance(thing, Detector):
        return False
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return False
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return False
    return all(p.default is not p.empty or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def _by_user(what: str, call: Callable[[], Any]) -> Any:
    """Return the result of a user's own code; its errors are the user's, said with their last line."""
    try:
        return call()
    except (HitmissError, ModuleNotFoundError, OSError, MemoryError):
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        if isinstance(error, SyntaxError) and error.filename:
            place = traceback.FrameSummary(error.filename, error.lineno, "", line=(error.text or "").strip())
        line = f": {place.line}" if place.line else ""
        raise UsageError(
            f"{what} failed with its own error, {type(error).__name__}: {str(error).strip()[:300]} "
            f"({Path(place.filename).name}, line {place.lineno}{line})",
            code="users-code",
        ) from error


def is_torch_module(thing: object) -> TypeGuard[Module]:
    """Return whether an object is a torch module; torch is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)


_OPENERS: Final[Mapping[str, Callable[[str, Opening], Detector]]] = {
    ".onnx": _open_onnx,
    "beats": _open_beats,
    "program": _open_program,
    **{f"hf-{medium}": partial(_open_transformers, medium=medium) for medium in ("audio", "image", "text")},
}
for _name, _opener in _OPENERS.items():
    add("detector", _name, _opener, origin=__name__)


# ----------------------------------------------------------------------
# The kind of a torch module's outputs, derived from the operations that made them: logits, or probabilities from a
# sigmoid or softmax.
#
# One clip is sent through the module while every torch function call is recorded. From the output the calls are traced
# back: through changes of shape, to a sigmoid or softmax (its input, the logits, is used instead because it does not
# saturate), or to a product or convolution (the output is logits). Values are not used: five logits that happen to lie
# in 0..1 are still logits.

SIGMOIDS: Final = ("sigmoid", "sigmoid_", "expit")
SOFTMAXES: Final = ("softmax", "_softmax", "softmax_")
LINEAR: Final = (
    "linear", "matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "conv1d", "conv2d", "conv3d", "bilinear",
    "einsum", "log_softmax", "batch_norm", "layer_norm", "group_norm", "cosine_similarity",
)  # fmt: skip
PRODUCTS: Final = ("matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "baddbmm", "einsum")
"""Products that are logits only if one factor is constant: a mixture of probabilities is a product too."""
SHAPES: Final = (
    "squeeze", "unsqueeze", "view", "reshape", "flatten", "unflatten", "contiguous", "float", "double", "to", "detach",
    "clone", "permute", "transpose", "type",
)  # fmt: skip
"""Steps that keep every value unchanged: what is done after a sigmoid can also be done to its input."""
SUMS: Final = (
    "add", "__add__", "__radd__", "__iadd__", "add_", "sub", "__sub__", "__rsub__", "rsub", "subtract", "neg", "__neg__",
    "cat", "concat", "stack", "__getitem__", "select", "index_select", "gather", "narrow", "mean", "sum", "max", "amax",
    "maximum", "min", "amin", "minimum", "logsumexp", "dropout", "max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d",
)  # fmt: skip
"""Steps whose results are as unbounded as what they take."""
SCALES: Final = (
    "mul",
    "__mul__",
    "__rmul__",
    "mul_",
    "multiply",
    "div",
    "__truediv__",
    "true_divide",
    "divide",
    "div_",
)
"""Steps that keep logits what they are if the other operand is constant, as a temperature is."""
SAME: Final = 1e-3
"""How far a removed sigmoid or softmax, applied again, may be from the model's own output."""
DEEPEST: Final = 40


@dataclass
class Step:
    """A call: its name, the function, its arguments, and which argument tensors came from which call."""

    name: str
    function: Callable[..., object]
    arguments: tuple[object, ...]
    keywords: dict[str, object]
    made: object


@dataclass
class Trace:
    """The calls of one forward pass, by their results."""

    steps: dict[int, Step] = field(default_factory=dict)

    def note(
        self, function: Callable[..., object], arguments: tuple[object, ...], keywords: dict[str, object], made: object
    ) -> None:
        """Keep a call; the tensors are held, so that no other object gets their identity."""
        if hasattr(made, "detach"):
            name = getattr(function, "__name__", "")
            self.steps[id(made)] = Step(name, function, arguments, keywords, made)

    def kind(self, output: object) -> OutputKind:
        """Return the kind of the output; `auto` if the calls do not show it."""
        found = self._ends(output, 0)
        if found == {"logit"}:
            return "logit"
        return "probability" if self.activation(output) is not None else "auto"

    def logits(self, output: object) -> object | None:
        """Return the input of the sigmoid or softmax behind the output, in the output's shape, if there is one."""
        step = self.steps.get(id(output))
        if step is None or (not step.arguments and "input" not in step.keywords):
            return None
        source = step.arguments[0] if step.arguments else step.keywords["input"]
        if step.name in SIGMOIDS + SOFTMAXES:
            return source
        if step.name not in SHAPES:
            return None
        inner = self.logits(source)
        return None if inner is None else step.function(inner, *step.arguments[1:], **step.keywords)

    def activation(self, output: object) -> str | None:
        """Return `sigmoid` or `softmax` if one of them made the output."""
        step = self.steps.get(id(output))
        if step is None:
            return None
        if step.name in SIGMOIDS:
            return "sigmoid"
        if step.name in SOFTMAXES:
            return "softmax"
        source = step.arguments[0] if step.arguments else step.keywords.get("input")
        return self.activation(source) if step.name in (*SHAPES, "__getitem__", "select") else None

    def _ends(self, value: object, depth: int) -> set[str]:
        """Return the origins of a value: `logit` for products, another word for activations and for steps that may bound
        or reshape their values, nothing for constants.
        """
        step = self.steps.get(id(value))
        if step is None or depth > DEEPEST:
            return {"unknown"} if depth > DEEPEST or depth == 0 else set()
        if step.name in SIGMOIDS + SOFTMAXES:
            return {"activation"}
        if step.name in LINEAR and step.name not in PRODUCTS:
            return {"logit"}
        given = [v for v in (*step.arguments, *step.keywords.values()) if hasattr(v, "detach")]
        given += [v for a in step.arguments if isinstance(a, list | tuple) for v in a if hasattr(v, "detach")]
        ends = [found for v in given if (found := self._ends(v, depth + 1))]
        if step.name in PRODUCTS:
            return {"logit"} if len(ends) < 2 else {"unknown"}
        if step.name in SCALES:
            return ends[0] if len(ends) == 1 else {"unknown"} if ends else set()
        if step.name in SHAPES + SUMS or not ends:
            return set().union(*ends)
        return {"unknown"}


def traced(call: Callable[[], object]) -> tuple[object, Trace]:
    """Return the result of a call, and the torch functions that it called."""
    torch = need("torch", "torch")
    trace = Trace()

    class Noting(torch.overrides.TorchFunctionMode):  # type: ignore[misc,name-defined]
        def __torch_function__(
            self,
            function: Callable[..., object],
            types: object,
            args: Sequence[object] = (),
            kwargs: Mapping[str, object] | None = None,
        ) -> object:
            made = function(*args, **(kwargs or {}))
            trace.note(function, tuple(args), dict(kwargs or {}), made)
            return made

    with Noting():
        return call(), trace


class Settled:
    """A torch module that returns logits if its last step allows it; `kind` is set by the first batch.

    `activation` is the sigmoid or softmax that was removed, or None.
    """

    def __init__(self, module: Module, kind: OutputKind = "auto") -> None:
        self.module, self.kind = module, kind
        self.activation: str | None = None
        self._has_looked = kind != "auto"
        self._takes_logits = False

    def __call__(self, batch: Tensor) -> object:
        """Return the module's output for a batch: logits if its last step is a sigmoid or softmax."""
        if not self._has_looked:
            self.look(batch[:1])
        if not self._takes_logits:
            return self.module(batch)
        raw, trace = traced(lambda: self.module(batch))
        logits = trace.logits(pick_raw(raw))
        if logits is None:
            raise DataError(
                "the model ended otherwise for this batch than for the first: say outputs=…", code="two-endings"
            )
        return logits

    def look(self, one: Tensor) -> None:
        """Decide the kind of outputs from one item."""
        torch = need("torch", "torch")
        with torch.no_grad():
            raw, trace = traced(lambda: self.module(one))
        output = pick_raw(raw)
        self.kind, self._has_looked = trace.kind(output), True
        logits, activation = trace.logits(output), trace.activation(output)
        if logits is not None and _is_result(torch, activation, logits, output):
            # The input of the last sigmoid or softmax does not saturate; the scores are the same function of it.
            self._takes_logits, self.activation = True, activation
            has_sigmoids = self.activation == "sigmoid" and output.ndim > 1 and output.shape[1] > 1
            self.kind = "multilabel" if has_sigmoids else "logit"
        elif logits is not None:
            self.kind = "auto"  # a softmax along another axis: its values are looked at


def _is_result(torch: ModuleType, activation: str | None, logits: object, output: Tensor) -> bool:
    """Return whether a sigmoid, or a softmax over the columns, of the logits of one item is what the model gave."""
    flat = torch.as_tensor(logits).detach().flatten().double()
    if activation == "softmax" and len(flat) < 2:
        return False
    again = torch.sigmoid(flat) if activation == "sigmoid" else torch.softmax(flat, 0)
    return bool((again - output.detach().flatten().double()).abs().max() <= SAME)
