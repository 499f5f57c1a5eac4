"""The inner layers of a model: which of its parts they are, which of their axes is time, and their average over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detection.outputs import Outputs, pick_output

if TYPE_CHECKING:
    from torch.nn import Module

T = TypeVar("T")
CHANNELS_FIRST: Final = (
    "Conv",
    "BatchNorm",
    "GroupNorm",
    "InstanceNorm",
    "MaxPool",
    "AvgPool",
    "AveragePool",
    "Adaptive",
)
"""Parts whose outputs are clip × channel × time, where their length does not show it."""
TIME_FIRST: Final = ("Linear", "LayerNorm", "Transformer", "MultiheadAttention", "LSTM", "GRU", "RNN", "Embedding")
"""Parts whose outputs are clip × time × dimension, where their length does not show it."""
AXIS: Final = "@"
"""Between the name of a layer and the axis that is its time, where the caller declares it: `block@2`."""


def run_with_layers(
    module: Module,
    layers: Sequence[str],
    run: Callable[[], Outputs],
    axes: dict[str, int],
    longer: Callable[[], object],
    usual: int | None = None,
) -> tuple[Outputs, dict[str, Outputs]]:
    """Return the result of a run of the module, and the outputs of some of its parts, averaged over time.

    `axes` holds the axis of time of each part; those that are not there yet are found by `longer`, which runs the module
    on longer items. `usual` is the axis where that does not show it; None: known parts have theirs, others are refused.
    """
    kept: dict[str, object] = {}
    outputs = _kept_in(kept, module, layers, run)
    new = [name for name in layers if name not in axes]
    if new:
        grown: dict[str, object] = {}
        with suppress(Exception):  # a module may take one length only; its first parts may have shown their axes
            _kept_in(grown, module, new, longer)
        parts = dict(module.named_modules())
        for name in new:
            known = usual or _axis_of_part(type(parts[name]).__name__)
            axes[name] = time_axis(name, shape_of(kept[name]), shape_of(grown.get(name)), len(outputs), known)
    return outputs, {name: pooled(kept[name], len(outputs), axes[name]) for name in layers}


def _kept_in(kept: dict[str, object], module: Module, layers: Sequence[str], run: Callable[[], T]) -> T:
    """Return the result of a run; keep what some parts of the module gave in it."""
    found = dict(module.named_modules())
    hooks = [found[name].register_forward_hook(_keep(kept, name)) for name in layers]
    try:
        return run()
    finally:
        for hook in hooks:
            hook.remove()


def _axis_of_part(kind: str) -> int | None:
    """Return the axis of time of a part, if its kind is known."""
    return 2 if kind.startswith(CHANNELS_FIRST) else 1 if kind.startswith(TIME_FIRST) else None


def shape_of(value: Any) -> tuple[int, ...] | None:
    """Return the shape of what a layer gave; None if it gave nothing."""
    if value is None:
        return None
    return tuple(int(n) for n in np.shape(value[0] if isinstance(value, tuple | list) else value))


def time_axis(
    name: str, shape: tuple[int, ...] | None, longer: tuple[int, ...] | None, n: int, known: int | None
) -> int:
    """Return the axis of a layer that is its time: the one that grows with the clips, else the one that is known.

    `shape` and `longer` are the layer's shapes for n clips and for n longer ones.

    >>> time_axis("block", (4, 24, 100), (4, 24, 200), 4, None), time_axis("block", (4, 24, 100), None, 4, 1)
    (2, 1)
    """
    shape = shape or ()
    is_turned = len(shape) >= 3 and shape[0] != n and shape[1] == n  # time × clip × dimension
    if len(shape) < 3:
        return 1
    if is_turned:
        return 1
    grown = [i for i, pair in enumerate(zip(shape, longer or shape, strict=False)) if pair[0] != pair[1]]
    if len(grown) == 1 and longer is not None and len(longer) == len(shape) and grown[0] > 0:
        return grown[0]
    if len(shape) == 4 and known is None:
        return 3  # a picture: clip × channel × height × width
    if known is None:
        raise UsageError.of("which-axis", name=name, shape=" × ".join(map(str, shape)), n=n, AXIS=AXIS)
    return known


def declared_axes(
    layers: Sequence[str], find: Callable[[tuple[str, ...]], Sequence[str]]
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Split `block@2` into the layers of a name and the axis that is their time."""
    found: list[str] = []
    axes: dict[str, int] = {}
    for text in layers:
        name, _, axis = text.rpartition(AXIS) if text.rpartition(AXIS)[2].isdigit() else (text, "", "")
        own = find((name or text,))
        found += own
        axes |= {one: int(axis) for one in own if axis}
    return tuple(dict.fromkeys(found)), axes


def pooled(value: object, n: int, time: int = 1) -> Outputs:
    """Return a layer's output as clip × dimension: the average over time, and over both axes of an image.

    The axis of the clips is found by its size: the first if it fits, else the second (time × clip × dimension).
    """
    array = pick_output(value if not isinstance(value, tuple | list) else value[0])
    if array.ndim >= 3 and array.shape[0] != n and array.shape[1] == n:
        array = np.swapaxes(array, 0, 1)
    if array.shape[0] != n:
        raise DataError.of("output-shape", name="a layer", shape=str(array.shape), n=n, what="clips")
    if array.ndim == 4 and time != 1:  # clip × channel × height × width
        return np.asarray(array.mean(axis=(2, 3)))
    if array.ndim >= 3:
        return np.asarray(array.mean(axis=min(time, array.ndim - 1))).reshape(n, -1)
    return array.reshape(n, -1)


def _keep(kept: dict[str, object], name: str) -> Callable[[Module, object, object], None]:
    def hook(_module: Module, _inputs: object, output: object) -> None:
        kept[name] = output

    return hook


def find_layers(module: Module, names: tuple[str, ...]) -> list[str]:
    """Return the modules of these names; `encoder.layers.*` matches all at that place."""
    known = [name for name, _ in module.named_modules() if name]
    found: list[str] = []
    for name in names:
        head, star, _ = name.partition("*")
        hits = (
            [k for k in known if k.startswith(head) and "." not in k[len(head) :]]
            if star
            else [k for k in known if k == name]
        )
        if not hits:
            raise UnknownName("layer", name, known)
        found += hits
    return list(dict.fromkeys(found))
