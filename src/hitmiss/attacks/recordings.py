"""Recordings with several labels, as `hitmiss attack --data` reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.attacks.arrays import Floats
from hitmiss.attacks.batched import check_signals
from hitmiss.attacks.leads import LEADS, expansion, lead_name, standard_order
from hitmiss.attacks.model import LAYOUTS
from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.finding import Finding
from hitmiss.detection.pinning import digest_of_files, file_digest
from hitmiss.media.wfdb import Record, is_wfdb, read_records

IDS: Final = ("record", "record_id", "ecg_id", "item", "id")
RESERVED: Final = (
    "item", "target", "label", "score", "decision", "confidence", "error", "attack", "strength", "aim", "place", "delta_l2",
    "delta_linf", "snr_db", "smoothness", "zero_gradient", "budget", "budget_used", "minimal_strength",
)  # fmt: skip
"""Columns of the trials that are made from the records; no column of the data may have these names."""
RENAMED: Final = {"patient_id": "patient"}


@dataclass(frozen=True, eq=False)
class Recordings:
    """Signals, truth, ids and further columns about each record."""

    x: Floats
    y: NDArray[np.int8]
    fs: float
    classes: tuple[str, ...]
    ids: list[str]
    columns: Mapping[str, list[str]] = field(default_factory=dict)
    digest: str = ""
    path: Path | None = None
    failures: Mapping[str, str] = field(default_factory=dict)
    """Records that were left out, and why."""
    leads: tuple[str, ...] | None = None
    """The names of the leads, in the order of x; None if the data has none."""
    stored_leads: tuple[str, ...] | None = None
    """The names in the order of the files, where x has the twelve standard leads in another order than these."""

    def __post_init__(self) -> None:
        if not len(self.x):
            first = next((f": {name}: {why}" for name, why in self.failures.items()), "")
            raise DataError.of("no-records/2", first=first)
        if len(set(self.classes)) != len(self.classes):
            raise DataError.of("class-names/twice", classes=tuple(self.classes))
        taken = [name for name in self.columns if name in RESERVED]
        if taken:
            raise DataError.of("reserved-name/column", taken=taken[0])
        if len(set(self.ids)) != len(self.ids):
            twice = next(i for i in self.ids if self.ids.count(i) > 1)
            raise DataError.of("duplicate-id/record", twice=twice)
        if self.y.shape != (len(self.x), len(self.classes)):
            raise DataError.of("bad-truth/table", n_x=len(self.x), n_classes=len(self.classes), shape=str(self.y.shape))
        if not np.isin(self.y, (0, 1)).all():
            wrong = np.argwhere(~np.isin(self.y, (0, 1)))[0]
            found, name = self.y[tuple(wrong)], self.classes[int(wrong[1])]
            raise DataError.of("bad-truth/record", ids=self.ids[int(wrong[0])], found=found, name=name)

    def first(self, n: int) -> Recordings:
        """Return only the first records."""
        return self.where(np.arange(len(self.x)) < n)

    def where(self, mask: NDArray[np.bool_]) -> Recordings:
        """Return some of the records."""
        at = np.flatnonzero(mask).tolist()
        kept = {name: [values[i] for i in at] for name, values in self.columns.items()}
        return replace(self, x=self.x[mask], y=self.y[mask], ids=[self.ids[i] for i in at], columns=kept)

    def without(self, failures: Mapping[int, str]) -> Recordings:
        """Return the records without those (by position) that cannot be used; these are remembered with the reason."""
        if not failures:
            return self
        told = {**self.failures, **{self.ids[at]: why for at, why in failures.items()}}
        return replace(self, failures=told).where(~np.isin(np.arange(len(self.x)), list(failures)))


def read_recordings(
    path: str | Path, *, layout: str = "sample_lead", fs: float | None = None, labels: str | Path | None = None
) -> Recordings:
    """Read an `.npz` (nothing is unpickled), or WFDB records: a `.hea` file, a `RECORDS` file or a folder of them.

    Parameters
    ----------
    path
        The file or folder.
    layout
        `lead_sample`: x of an `.npz` is record × lead × sample.
    fs
            Samples per second, if an `.npz` does not give it.
    labels
        For WFDB records: a table with a column `record` and a column of 0 and 1 per class. Without it the classes are the codes
        of the headers' comments (`#Dx: 426783006,164889003`).

    Returns
    -------
    The records. Those that hold NaN, or cannot be read, are left out and named in `failures`.
    """
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, LAYOUTS)
    if is_wfdb(path):
        return _from_wfdb(Path(path), labels)
    if labels is not None:
        raise UsageError.of("labels-unused")
    try:
        artifacts.note_input(path)
        arrays = artifacts.load_arrays(Path(path), ".npz", Path(path).name)
    except FileNotFoundError:
        raise UsageError.of("missing-file", what="file", file=path) from None
    except DataError as error:
        if error.code == "oversized-archive":
            raise
        # numpy's own message would advise unpickling it
        raise DataError.coded(Finding("not-plain-arrays", values={"file": Path(path).name}), error.code) from None
    x = _signals(arrays, layout, Path(path).name)
    for name in ("y", "classes"):
        if name not in arrays:
            raise DataError.of("no-array", name=Path(path).name, name_2=name, arrays=tuple(sorted(arrays)))
    rate = fs if fs is not None else float(arrays["fs"]) if "fs" in arrays else None
    if rate is None:
        raise UsageError.of("no-sample-rate", name=Path(path).name)
    ids = next((arrays[name] for name in IDS if name in arrays), np.arange(len(x)))
    used = {"y", "classes", "fs", "leads", "x", "x_uv", "x8_delta", *IDS}
    columns = {
        RENAMED.get(name, name): [str(v) for v in values.tolist()]
        for name, values in arrays.items()
        if name not in used and values.shape == (len(x),)
    }
    classes = tuple(map(str, arrays["classes"]))
    try:
        names = LEADS if "x8_delta" in arrays else _named_leads(arrays.get("leads"), x.shape[2])
        x, leads, stored = _ordered(x, names)
        return Recordings(
            x,
            np.asarray(arrays["y"]),
            rate,
            classes,
            list(map(str, ids.tolist())),
            columns,
            file_digest(path),
            Path(path),
            leads=leads,
            stored_leads=stored,
        ).without(not_finite(x))
    except DataError as error:
        raise DataError.of("recordings-refused", name=Path(path).name, error=error) from None


def _named_leads(names: NDArray[np.generic] | None, width: int) -> tuple[str, ...] | None:
    """Return the names of the leads; each has one of its own."""
    if names is None:
        return None
    found = tuple(lead_name(str(name)) for name in names.reshape(-1).tolist())
    if len(found) != width or len(set(found)) != width:
        raise DataError.of("lead-names", n_found=len(found), found=tuple(found[:12]), width=width)
    return found


def _ordered(x: Floats, names: tuple[str, ...] | None) -> tuple[Floats, tuple[str, ...] | None, tuple[str, ...] | None]:
    """Bring the twelve standard leads into their usual order, by their names; others stay as they are."""
    order = standard_order(names) if names is not None else None
    if order is None or order == list(range(len(order))):
        return x, names, None
    return np.ascontiguousarray(x[..., order]), LEADS, names


def not_finite(x: Floats) -> dict[int, str]:
    """Return the records, by position, that hold NaN or infinite values."""
    wrong = np.flatnonzero(~np.isfinite(x).all(axis=(1, 2)))
    return {int(at): "its signal holds values that are NaN or infinite" for at in wrong}


def _from_wfdb(path: Path, labels: str | Path | None) -> Recordings:
    """Read WFDB records with their labels.

    Records that cannot be read, or differ from most in length, leads or rate, are left out.
    """
    found, failures = read_records(path)
    alike = Counter((r.fs, r.signal.shape) for r in found)
    usual = max(alike, key=lambda kind: alike[kind]) if alike else None
    for record in found:
        if usual is not None and (record.fs, record.signal.shape) != usual:
            (samples, leads), rate = record.signal.shape, record.fs
            failures[record.name] = (
                f"{samples} samples × {leads} leads at {rate:g} Hz; most have {usual[1][0]} × {usual[1][1]} at {usual[0]:g} Hz"
            )
    _leave_out_other_leads(found, failures)
    kept = [r for r in found if r.name not in failures]
    if usual is None or not kept:
        first = next((f": {name}: {why}" for name, why in failures.items()), "")
        raise DataError.of("no-records", path_name=path.name, first=first)
    ids = [r.name for r in kept]
    classes, y, columns = _labels_of(labels, ids) if labels is not None else _codes_of(kept)
    digest = digest_of_files(file for r in kept for file in r.files)
    ordered = [_ordered(r.signal, names) for r, names in zip(kept, map(_leads_of, kept), strict=True)]
    x, leads = np.stack([signal for signal, _, _ in ordered]), ordered[0][1]
    stored = next((names for _, _, names in ordered if names is not None), None)
    made = Recordings(x, y, usual[0], classes, ids, columns, digest, None, failures, leads=leads, stored_leads=stored)
    return made.without(not_finite(x))


def _leads_of(record: Record) -> tuple[str, ...] | None:
    """Return the names of a record's leads; None if its header does not name each."""
    found = tuple(map(lead_name, record.leads))
    return found if len(set(found)) == len(found) else None


def _leave_out_other_leads(records: Sequence[Record], failures: dict[str, str]) -> None:
    """Leave out records whose leads are not those of most; the twelve standard ones may be in any order."""
    kept = [r for r in records if r.name not in failures]
    sets = {r.name: LEADS if (own := _leads_of(r)) is not None and standard_order(own) else own for r in kept}
    common = Counter(sets.values()).most_common(1)
    for name, own in sets.items():
        if own != common[0][0]:
            said = [", ".join(leads) if leads else "no names" for leads in (own, common[0][0])]
            failures[name] = f"its leads are {said[0]}; most have {said[1]}"


def _codes_of(records: Sequence[Record]) -> tuple[tuple[str, ...], NDArray[np.int8], dict[str, list[str]]]:
    """Return classes from the comments of the headers, in the format of the PhysioNet challenges."""
    codes = [[c.strip() for c in r.comments.get("dx", "").split(",") if c.strip()] for r in records]
    classes = tuple(sorted({code for own in codes for code in own}))
    if not classes:
        raise DataError.of("no-labels")
    y = np.array([[name in own for name in classes] for own in codes], dtype=np.int8)
    columns = {name: [r.comments.get(name, "") for r in records] for name in ("age", "sex")}
    return classes, y, {name: values for name, values in columns.items() if any(values)}


def _labels_of(path: str | Path, ids: list[str]) -> tuple[tuple[str, ...], NDArray[np.int8], dict[str, list[str]]]:
    """Return classes from a table: a column `record`, a 0/1 column per class; other columns are kept unchanged."""
    artifacts.note_input(path)
    separator = "\t" if Path(path).suffix in (".tsv", ".txt") else ","
    try:
        table = pl.read_csv(path, separator=separator, infer_schema=False)
    except FileNotFoundError:
        raise UsageError.of("missing-file", what="file", file=path) from None
    key = next((name for name in IDS if name in table.columns), None)
    if key is None:
        raise DataError.of("no-record-column", name=Path(path).name, IDS=IDS[0], columns=tuple(table.columns))
    places = {name: at for at, name in enumerate(table[key].to_list())}
    missing = [name for name in ids if name not in places]
    if missing or len(places) < table.height:
        twice = "" if missing else " twice"
        name = missing[0] if missing else next(n for n in places if table[key].to_list().count(n) > 1)
        raise DataError.of("label-rows", name=Path(path).name, name_2=name, twice=twice or " not at all")
    rows = table[[places[name] for name in ids]]
    others = [name for name in table.columns if name != key]
    classes = tuple(name for name in others if rows[name].is_in(["0", "1"]).all())
    if not classes:
        raise DataError.of("no-labels/column", name=Path(path).name)
    y = np.stack([rows[name].cast(pl.Int8).to_numpy() for name in classes], axis=1)
    kept = {RENAMED.get(n, n): rows[n].fill_null("").to_list() for n in others if n not in classes}
    return classes, y, kept


def _signals(arrays: Mapping[str, NDArray[np.floating]], layout: str, name: str) -> Floats:
    if "x8_delta" in arrays:
        microvolts = np.cumsum(arrays["x8_delta"].astype(np.float64), axis=2)
        return np.asarray(microvolts.transpose(0, 2, 1) @ expansion().T / 1000.0)
    if "x_uv" in arrays:
        x = arrays["x_uv"] / 1000.0
    elif "x" in arrays:
        x = arrays["x"]
        if x.dtype.kind in "iub":
            raise DataError.of("microvolts", name=name)
    else:
        raise DataError.of("no-array/signals", name=name, arrays=tuple(sorted(arrays)))
    try:
        return check_signals(x.transpose(0, 2, 1) if layout == "lead_sample" and x.ndim == 3 else x, finite=False)
    except DataError as error:
        how = str(error).replace("use layout='lead_sample'", "use --data-layout lead_sample")
        raise DataError.of("recordings-refused/layout", name=name, how=how) from None
