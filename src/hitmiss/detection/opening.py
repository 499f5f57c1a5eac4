"""Open a detector by its name on a command line."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from hitmiss.core import artifacts
from hitmiss.core.errors import HitmissError, UsageError
from hitmiss.core.registry import add, all_of, find
from hitmiss.detection.detector import CallableDetector, Detector, EstimatorDetector, as_detector, is_torch_module
from hitmiss.detection.pinning import code_digest, source_digest


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
        given = {"weights": self.weights is not None, "layers": bool(self.layers), "compiled": self.compiled}
        given["precision"] = self.precision not in ("auto", "float32")
        for option in options:
            if given[option]:
                raise UsageError.of(f"{option}-unused", what=what)


def opener_of(text: str) -> str | None:
    """Return the registered kind that opens a text, by its prefix or its suffix; None for a user's own object."""
    known, kind = all_of("detector"), text.partition(":")[0]
    return kind if ":" in text and kind in known else ending if (ending := Path(text).suffix) in known else None


def _kinds() -> str:
    """Return the ways to write a detector."""
    known = [f"model{name}" if name.startswith(".") else f"{name}:…" for name in all_of("detector")]
    return ", ".join(["module:name", "file.py:name", *known])


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
        from hitmiss.detection.checkpoints import load_weights, parameters_digest
        from hitmiss.detection.torch import TorchDetector

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
        raise UsageError.of("not-a-detector/text", text=text, kinds=_kinds())
    module = _module_of(place)
    try:
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise UsageError.of("missing-module/name", place=place, name=name) from None
    return found


def _module_of(place: str) -> ModuleType:
    if place.endswith(".py"):
        return _loaded_file(Path(place))
    _add_to_path(Path.cwd())  # as `python -m` does, so that a file in the current folder is found
    try:
        return cast("ModuleType", _by_user(place, partial(importlib.import_module, place)))
    except ModuleNotFoundError as error:
        raise UsageError.of("missing-module/detector", place=place, error=error, kinds=_kinds()) from None


_BESIDE: Final[dict[Path, dict[str, ModuleType]]] = {}
"""For each folder of a user's file, the modules beside it that it imported. Two folders may each have a `models.py`."""


def _loaded_file(path: Path) -> ModuleType:
    """Load the module of a user's file. Modules in its folder are its own, even if another file uses their names."""
    full = path.resolve()
    name = f"hitmiss_user_{hashlib.sha256(str(full).encode()).hexdigest()[:8]}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError.of("missing-file", what="file", file=path)
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
        raise UsageError.of("missing-module", path=path, error=error) from None
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
        raise UsageError.of(
            "users-code",
            what=what,
            name=type(error).__name__,
            error=str(error).strip()[:300],
            name_2=Path(place.filename).name,
            lineno=place.lineno,
            line=line,
        ) from error


_OPENERS: Final[Mapping[str, Callable[[str, Opening], Detector]]] = {
    ".onnx": _open_onnx,
    "beats": _open_beats,
    "program": _open_program,
    **{f"hf-{medium}": partial(_open_transformers, medium=medium) for medium in ("audio", "image", "text")},
}

for _name, _opener in _OPENERS.items():
    add("detector", _name, _opener, origin=__name__)
