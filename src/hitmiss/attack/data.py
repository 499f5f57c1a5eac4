"""Recordings with several labels in one `.npz`, as `hitmiss attack --data` reads them.

x        record × sample × lead, in mV (or `x_uv`, whole microvolts, or `x8_delta`, the PTB-XL sample's differences)
y        record × class, 0 or 1
classes  names of the columns of y;  fs  samples a second
record   ids (or `ecg_id`);          patient (or `patient_id`), sex, …: any further column, one value a record
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss import artifacts
from hitmiss.attack.batch import Floats, check_signals
from hitmiss.attack.leads import expansion
from hitmiss.attack.model import LAYOUTS
from hitmiss.detect.pinning import file_digest
from hitmiss.errors import DataError, UnknownName, UsageError

IDS: Final = ("record", "record_id", "ecg_id", "item", "id")
RESERVED: Final = (
    "item", "target", "label", "score", "decision", "confidence", "error", "attack", "strength", "aim", "place", "delta_l2",
    "delta_linf", "snr_db", "smoothness", "zero_gradient", "budget", "budget_used", "minimal_strength",
)  # fmt: skip
"""Columns of the trials that are made of the records; no column of the data may be called so."""
RENAMED: Final = {"patient_id": "patient"}


@dataclass(frozen=True, eq=False)
class Recordings:
    """Signals, truth, ids and what else is known of each record."""

    x: Floats
    y: NDArray[np.int8]
    fs: float
    classes: tuple[str, ...]
    ids: list[str]
    columns: Mapping[str, list[str]] = field(default_factory=dict)
    digest: str = ""
    path: Path | None = None

    def __post_init__(self) -> None:
        if not len(self.x):
            raise DataError("there are no records")
        if len(set(self.classes)) != len(self.classes):
            raise DataError(f"two classes have one name: {', '.join(self.classes)}")
        taken = [name for name in self.columns if name in RESERVED]
        if taken:
            raise DataError(
                f"a column is called {taken[0]!r}, which is what trials call something else; give it another name"
            )
        if len(set(self.ids)) != len(self.ids):
            twice = next(i for i in self.ids if self.ids.count(i) > 1)
            raise DataError(f"two records are called {twice!r}; each must have an id of its own")
        if self.y.shape != (len(self.x), len(self.classes)):
            raise DataError(f"y must be {len(self.x)} records × {len(self.classes)} classes; found {self.y.shape}")
        if not np.isin(self.y, (0, 1)).all():
            wrong = np.argwhere(~np.isin(self.y, (0, 1)))[0]
            found, name = self.y[tuple(wrong)], self.classes[int(wrong[1])]
            raise DataError(f"y holds 0 and 1; record {self.ids[int(wrong[0])]!r} has {found} for {name}")

    def first(self, n: int) -> Recordings:
        """The first records only."""
        return self.where(np.arange(len(self.x)) < n)

    def where(self, mask: NDArray[np.bool_]) -> Recordings:
        """Some of the records."""
        at = np.flatnonzero(mask).tolist()
        kept = {name: [values[i] for i in at] for name, values in self.columns.items()}
        return Recordings(
            self.x[mask], self.y[mask], self.fs, self.classes, [self.ids[i] for i in at], kept, self.digest, self.path
        )


def read_recordings(path: str | Path, *, layout: str = "sample_lead", fs: float | None = None) -> Recordings:
    """Read an `.npz`; nothing is unpickled. `layout="lead_sample"`: x is record × lead × sample."""
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, LAYOUTS)
    try:
        artifacts.note_input(path)
        arrays = artifacts.load_arrays(Path(path), ".npz", Path(path).name)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except DataError as error:
        if error.code == "oversized-archive":
            raise
        raise DataError(  # numpy's own words would advise to unpickle it
            f"{Path(path).name} is no .npz of plain arrays, or is damaged; "
            "make one with numpy.savez(path, x=signals, y=labels, classes=names)",
            code=error.code,
        ) from None
    x = _signals(arrays, layout, Path(path).name)
    for name in ("y", "classes"):
        if name not in arrays:
            raise DataError(f"{Path(path).name} has no array {name!r}; it has {', '.join(sorted(arrays))}")
    rate = fs if fs is not None else float(arrays["fs"]) if "fs" in arrays else None
    if rate is None:
        raise UsageError(f"{Path(path).name} does not say its sample rate; say --fs")
    ids = next((arrays[name] for name in IDS if name in arrays), np.arange(len(x)))
    used = {"y", "classes", "fs", "leads", "x", "x_uv", "x8_delta", *IDS}
    columns = {
        RENAMED.get(name, name): [str(v) for v in values.tolist()]
        for name, values in arrays.items()
        if name not in used and values.shape == (len(x),)
    }
    classes = tuple(map(str, arrays["classes"]))
    try:
        return Recordings(
            x,
            np.asarray(arrays["y"]),
            rate,
            classes,
            list(map(str, ids.tolist())),
            columns,
            file_digest(path),
            Path(path),
        )
    except DataError as error:
        raise DataError(f"{Path(path).name}: {error}") from None


def _signals(arrays: Mapping[str, Any], layout: str, name: str) -> Floats:
    if "x8_delta" in arrays:
        microvolts = np.cumsum(arrays["x8_delta"].astype(np.float64), axis=2)
        return np.asarray(microvolts.transpose(0, 2, 1) @ expansion().T / 1000.0)
    if "x_uv" in arrays:
        x = arrays["x_uv"] / 1000.0
    elif "x" in arrays:
        x = arrays["x"]
        if x.dtype.kind in "iub":
            raise DataError(f"{name}: x is in mV and holds whole numbers only; microvolts are called x_uv")
    else:
        raise DataError(f"{name} has no array 'x' (mV) or 'x_uv' (µV); it has {', '.join(sorted(arrays))}")
    try:
        return check_signals(x.transpose(0, 2, 1) if layout == "lead_sample" and x.ndim == 3 else x)
    except DataError as error:
        how = str(error).replace("say layout='lead_sample'", "say --data-layout lead_sample")
        raise DataError(f"{name}: {how}") from None
