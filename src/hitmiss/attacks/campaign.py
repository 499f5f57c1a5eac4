"""Run a plan of attacks on records, into a run folder that survives any interruption."""

from __future__ import annotations

import hashlib
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final, TypedDict, cast

import numpy as np
import polars as pl
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from hitmiss.attacks.config import MODES, PerturbationConfig, describe, refuse_other_media
from hitmiss.attacks.config import families as known_families
from hitmiss.attacks.family import (
    LEADS,
    Floats,
    batched_families,
    check_signals,
    expansion,
    hann_windows,
    lead_name,
    pick,
    standard_order,
)
from hitmiss.attacks.methods import Criterion, Rule, find_criterion
from hitmiss.attacks.model import LAYOUTS, SMALLEST, Classifier, as_classifier
from hitmiss.attacks.perform import Performed, Records, least_strengths, perform
from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, IncompleteRun, UnknownName, UsageError
from hitmiss.core.header import Header
from hitmiss.core.registry import parse
from hitmiss.core.results import finite, infinite
from hitmiss.core.trials import Trials
from hitmiss.detection.contract import (
    TOGETHER,
    Contract,
    Probe,
    Term,
    agree,
    classifier_contract,
    exclusive_classes,
    probe,
)
from hitmiss.detection.detector import find_object, need, open_detector
from hitmiss.detection.outputs import to_probability
from hitmiss.detection.pinning import digest_of_files, file_digest
from hitmiss.io.runs import MEDIA, as_manifest, load_manifest, replace_file, start
from hitmiss.io.write import parquet
from hitmiss.media.wfdb import Record, is_wfdb, read_records
from hitmiss.robustness.campaign import CLEAN, CONTROL, Campaign, Cell
from hitmiss.stats.bootstrap import noise_generator

# ----------------------------------------------------------------------
# Recordings with several labels, as `hitmiss attack --data` reads them: WFDB records (see `hitmiss.media.wfdb`), or one
# `.npz`:
#
# x        record × sample × lead, in mV (or `x_uv`, whole microvolts, or `x8_delta`, the PTB-XL sample's differences)
# y        record × class, 0 or 1
# classes  names of the columns of y;  fs  samples per second;  leads  names of the leads (any order)
# record   ids (or `ecg_id`);          patient (or `patient_id`), sex, …: any further column, one value per record

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
            raise DataError(f"there are no records{first}", code="no-records")
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
        raise UsageError("labels are for WFDB records; an .npz has its own in y", code="labels-unused")
    try:
        artifacts.note_input(path)
        arrays = artifacts.load_arrays(Path(path), ".npz", Path(path).name)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except DataError as error:
        if error.code == "oversized-archive":
            raise
        raise DataError(  # numpy's own message would advise unpickling it
            f"{Path(path).name} is not an .npz of plain arrays, or is damaged; "
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
        raise DataError(f"{Path(path).name}: {error}") from None


def _named_leads(names: NDArray[np.generic] | None, width: int) -> tuple[str, ...] | None:
    """Return the names of the leads; each has one of its own."""
    if names is None:
        return None
    found = tuple(lead_name(str(name)) for name in names.reshape(-1).tolist())
    if len(found) != width or len(set(found)) != width:
        raise DataError(
            f"leads has {len(found)} names ({', '.join(found[:12])}) and x has {width} leads; each needs one of its own",
            code="lead-names",
        )
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
        raise DataError(f"there are no WFDB records in {path.name}{first}", code="no-records")
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
        raise DataError("the headers name no diagnoses (#Dx: …); say --labels FILE", code="no-labels")
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
        raise UsageError(f"there is no file {path}") from None
    key = next((name for name in IDS if name in table.columns), None)
    if key is None:
        raise DataError(
            f"{Path(path).name} has no column {IDS[0]!r}; it has {', '.join(table.columns)}", code="no-record-column"
        )
    places = {name: at for at, name in enumerate(table[key].to_list())}
    missing = [name for name in ids if name not in places]
    if missing or len(places) < table.height:
        twice = "" if missing else " twice"
        name = missing[0] if missing else next(n for n in places if table[key].to_list().count(n) > 1)
        raise DataError(
            f"{Path(path).name} has record {name!r}{twice or ' not at all'}; each record needs one row",
            code="label-rows",
        )
    rows = table[[places[name] for name in ids]]
    others = [name for name in table.columns if name != key]
    classes = tuple(name for name in others if rows[name].is_in(["0", "1"]).all())
    if not classes:
        raise DataError(f"{Path(path).name} has no column of 0 and 1: one per class is needed", code="no-labels")
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
            raise DataError(f"{name}: x is in mV and holds whole numbers only; microvolts are called x_uv")
    else:
        raise DataError(f"{name} has no array 'x' (mV) or 'x_uv' (µV); it has {', '.join(sorted(arrays))}")
    try:
        return check_signals(x.transpose(0, 2, 1) if layout == "lead_sample" and x.ndim == 3 else x, finite=False)
    except DataError as error:
        how = str(error).replace("use layout='lead_sample'", "use --data-layout lead_sample")
        raise DataError(f"{name}: {how}") from None


# ----------------------------------------------------------------------
# Attacked signals kept in a run (`hitmiss attack --save-signals`), and how to read them.
#
#     run/signals/0000000064.npy     signals of one part of one attack: record × sample × lead, float32, mV
#     run/signals/index.parquet      the file and row of each record, attack, strength, aim and place
#
# Models are given float32, so a stored signal gives exactly the answer that the run counted. A file is put in place
# atomically before its answers are recorded, and each answer names its file: a run that was killed makes again what was
# not finished, and leaves no stale files. Files are not compressed: the last bits of a changed signal are noise and
# hardly compress.
#
#     ids, x = read_signals("run", attack="band_noise", strength=0.5)

FOLDER: Final = "signals"
INDEX: Final = "index.parquet"
COLUMNS: Final = ("attack", "strength", "aim", "place")
F32 = NDArray[np.float32]


def write_part(run: Path, first: int, x: ArrayLike) -> str:
    """Write a part of one attack, which begins at a position of the run; return the name of its file."""
    (run / FOLDER).mkdir(exist_ok=True)
    buffer, name = io.BytesIO(), f"{first:010d}.npy"
    np.save(buffer, np.asarray(x, dtype=np.float32))
    replace_file(run / FOLDER / name, buffer.getvalue())
    return name


def write_index(run: Path, rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Write the index of the signals and remove files that no answer names; return the files of the run.

    A row has record, attack, strength, aim, place, file and row.
    """
    index = pl.DataFrame(list(rows), schema={"record": str, **dict.fromkeys(COLUMNS, str), "file": str, "row": int})
    (run / FOLDER).mkdir(exist_ok=True)
    replace_file(run / FOLDER / INDEX, parquet(index))
    kept = set(index["file"])
    for path in (run / FOLDER).glob("*.npy"):
        if path.name not in kept:
            path.unlink()
    return [f"{FOLDER}/{name}" for name in sorted({*kept, INDEX})]


def has_signals(run: str | Path) -> bool:
    """Return whether a finished run kept its attacked signals."""
    return f"{FOLDER}/{INDEX}" in as_manifest(load_manifest(run)).files


def read_signals(
    run: str | Path,
    *,
    attack: str,
    strength: float | str,
    aim: str | None = None,
    place: str | None = None,
    records: Sequence[str] | None = None,
) -> tuple[list[str], F32]:
    """Return the ids and the signals (record × sample × lead, float32, mV) of one attack of a run that kept them.

    `strength` is a number, or "minimal" for a search; `aim` ("force MI") and `place` ("5 s") are needed if the run
    tried several. `records`: only these, in this order. A file that was changed since the run ended is refused.

    Parameters
    ----------
    run
        The run folder, made with `save_signals`.
    attack, strength, aim, place
        Which attack.
    records
        Which records, and in which order; None for all.

    Returns
    -------
    tuple
        The ids, and the signals as record × sample × lead.

    Raises
    ------
    UsageError
        If the run kept no such signals, or several.
    IncompleteRun
        If a file was changed since the run ended.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/x.npz", x=np.ones((2, 200, 2)), y=[[1], [0]], classes=["MI"], fs=100.0)
    ...     _ = globals()["attack"](lambda x: x.mean(axis=(1, 2))[:, None], f"{folder}/x.npz", f"{folder}/run",
    ...                             families=["band_noise"], strengths=[1.0], save_signals=True)
    ...     ids, x = read_signals(f"{folder}/run", attack="band_noise", strength=1.0)
    >>> ids, x.shape
    (['0', '1'], (2, 200, 2))
    """
    folder, wanted = Path(run), {"attack": attack, "strength": _text(strength), "aim": aim, "place": place}
    pinned = _pinned(folder)
    index = pl.read_parquet(io.BytesIO(_read(folder, INDEX, pinned)))
    own = index.filter(*(pl.col(name) == value for name, value in wanted.items() if value is not None))
    kinds = own.select(COLUMNS).unique(maintain_order=True).rows()
    if len(kinds) != 1:
        asked = ", ".join(f"{k} {v}" for k, v in wanted.items() if v is not None)
        there = kinds or index.select(COLUMNS).unique(maintain_order=True).rows()
        listed = "; ".join(" · ".join(kind) for kind in there[:8]) + (" …" if len(there) > 8 else "")
        what = "several attacks are" if kinds else "no signals are of"
        raise UsageError(f"{folder}: {what} {asked}; there are (attack · strength · aim · place) {listed}")
    names = own["record"].to_list() if records is None else list(records)
    places = dict(
        zip(own["record"].to_list(), zip(own["file"].to_list(), own["row"].to_list(), strict=True), strict=True)
    )
    missing = [name for name in names if name not in places]
    if missing:
        raise DataError(f"{folder}: the run has no record {missing[0]!r} ({len(missing)} asked for are missing)")
    parts = {file: np.load(io.BytesIO(_read(folder, file, pinned))) for file in {places[name][0] for name in names}}
    found = [parts[file][row] for file, row in map(places.__getitem__, names)]
    return names, np.stack(found) if found else np.zeros((0, 0, 0), dtype=np.float32)


def _pinned(folder: Path) -> dict[str, str]:
    """Return the digests of the signal files of a finished run."""
    manifest = load_manifest(folder)
    if manifest["state"] != "complete":
        raise IncompleteRun(f"{folder}: the run is not finished ({manifest['state']}); go on with --resume")
    if not has_signals(folder):
        raise UsageError(f"{folder} kept no signals; they are kept with `hitmiss attack … --save-signals`")
    return dict(as_manifest(manifest).files)


def _read(folder: Path, name: str, pinned: Mapping[str, str]) -> bytes:
    """Read a file and check that it is unchanged since the run ended."""
    path = folder / FOLDER / name
    if not path.is_file():
        raise DataError(f"{folder}: {FOLDER}/{name} is missing")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != pinned.get(f"{FOLDER}/{name}"):
        raise DataError(f"{folder}: {FOLDER}/{name} was changed after the run was finished")
    return data


def _text(strength: float | str) -> str:
    return strength if isinstance(strength, str) else f"{strength:g}"


# ----------------------------------------------------------------------
# The records of a campaign as trials: one row per record, class, attack and strength.

MINIMAL: Final = "minimal"
SHOWN_FAILURES: Final = 5
LEFT_OUT: Final = "records left out"
HIGHEST: Final = 50.0
"""Millivolts that no ECG reaches."""
NUMBERS: Final = ("delta_l2", "delta_linf", "snr_db", "smoothness", "zero_gradient", "budget", "budget_used")


class Facts(TypedDict, total=False):
    """What the run store holds about a record under one step; numbers that are not finite are texts."""

    error: str
    log_odds: list[float | str | None]
    notes: list[str]
    signals: list[str | int]
    """The file of the changed signal, and its row there."""
    control: Facts
    minimal_strength: float | str | None
    delta_l2: float | str | None
    delta_linf: float | str | None
    snr_db: float | str | None
    smoothness: float | str | None
    zero_gradient: float | str | None
    budget: float | str | None
    budget_used: float | str | None


def header_of(campaigner: Campaigner, made: dict[int, Facts]) -> Header:
    """Return the header, which describes the columns."""
    notes = sorted({note for record in made.values() for note in record.get("notes", ())})
    left_out = failures_of(campaigner, made)
    if left_out:
        told = "; ".join(f"{name}: {why}" for name, why in list(left_out.items())[:SHOWN_FAILURES])
        more = f"; and {len(left_out) - SHOWN_FAILURES} more" if len(left_out) > SHOWN_FAILURES else ""
        notes.append(f"{len(left_out)} of {len(left_out) + _n_used(campaigner, made)} {LEFT_OUT}: {told}{more}")
    highest = float(np.abs(campaigner.recordings.x).max(initial=0.0))
    if highest > HIGHEST:
        notes.append(f"signals reach {highest:,.0f} mV; budgets are in mV: are these microvolts (x_uv)?")
    least = ("minimal_strength",) if campaigner.plan.searches else ()
    return Header(
        "present", "absent", "logit", runs=run_columns(campaigner), slices=tuple(campaigner.recordings.columns),
        numbers=(*NUMBERS, *least), notes=tuple(notes), provenance=_provenance(campaigner),
    )  # fmt: skip


def failures_of(campaigner: Campaigner, made: Mapping[int, Facts]) -> dict[str, str]:
    """Return the records that are not in the table, and why: a record that fails in one step is left out of all."""
    ids = campaigner.recordings.ids
    failed = {ids[at % len(ids)]: str(record["error"]) for at, record in sorted(made.items()) if "error" in record}
    return {**campaigner.recordings.failures, **failed}


def _n_used(campaigner: Campaigner, made: Mapping[int, Facts]) -> int:
    ids = campaigner.recordings.ids
    return len(ids) - len(set(ids) & set(failures_of(campaigner, made)))


def _provenance(campaigner: Campaigner) -> dict[str, object]:
    """Return how the answers were made: the data, the seed, and each attack's settings, by its name in tables."""
    plan, attacks = campaigner.plan, {}
    for name, config in plan.steps:
        if config is not None:
            run = {
                k: v for k, v in sorted(plan.cells[name].items()) if (k, v) not in (("aim", "any"), ("place", "whole"))
            }
            attacks[" ".join(run.values())] = name
    return {"dataset_digest": campaigner.recordings.digest, "seed": plan.seed, "attacks": attacks}


def run_columns(campaigner: Campaigner) -> tuple[str, ...]:
    """Return the run columns; aim and place are included only if some attack has one."""
    configs = [c for _, c in campaigner.plan.steps if c is not None]
    aims = ("aim",) if any(c.target_class for c in configs) else ()
    return ("attack", "strength", *aims, *(("place",) if any(c.window_seconds for c in configs) else ()))


def table_of(campaigner: Campaigner, made: dict[int, Facts]) -> pl.DataFrame:
    """Return one row per record, class, attack and strength."""
    n, rows = len(campaigner.recordings.ids), []
    failed = failures_of(campaigner, made)
    for at in sorted(made):
        step, row = divmod(at, n)
        if campaigner.recordings.ids[row] in failed:
            continue
        run = campaigner.plan.cells[campaigner.plan.steps[step][0]]
        rows.append((run, row, made[at]))
        if "control" in made[at]:
            rows.append(({**run, "attack": CONTROL + run["attack"]}, row, made[at]["control"]))
    return _frame(campaigner, rows)


def run_of(name: str, config: PerturbationConfig | None) -> dict[str, str]:
    """Return the values of the run columns of one step."""
    if config is None:
        return {"attack": CLEAN, "strength": "0", "aim": "any", "place": "whole"}
    aim = "any" if config.target_class is None else f"{config.mode} {config.target_class}"
    place = "whole" if config.window_seconds is None else f"{config.center_time:g} s"
    strength = MINIMAL if name.startswith(f"{MINIMAL} ") else f"{config.strength:g}"
    return {"attack": config.family, "strength": strength, "aim": aim, "place": place}


def _frame(campaigner: Campaigner, rows: Sequence[tuple[dict[str, str], int, Facts]]) -> pl.DataFrame:
    data, header = campaigner.recordings, header_of(campaigner, {})
    classes, at = len(data.classes), np.array([row for _, row, _ in rows], dtype=np.int64)
    score = np.array([[infinite(v) for v in record["log_odds"]] for _, _, record in rows], dtype=np.float64)
    decision = campaigner.model.bits(to_probability(score), campaigner.threshold)
    columns: dict[str, Sequence[object] | NDArray[np.generic]] = {
        "item": np.repeat(np.array(data.ids, dtype=object)[at], classes).tolist(),
        "target": list(data.classes) * len(rows),
        "label": data.y[at].reshape(-1).astype(np.int8),
        "score": score.reshape(-1),
        "decision": decision.reshape(-1),
    }
    for name in header.runs:
        columns[name] = [run[name] for run, _, _ in rows for _ in range(classes)]
    for name, values in data.columns.items():
        columns[name] = np.repeat(np.array(values, dtype=object)[at], classes).tolist()
    for name in header.numbers:
        own = [infinite(record.get(name)) for _, _, record in rows]
        columns[name] = np.repeat(np.array([np.nan if v is None else v for v in own], dtype=np.float64), classes)
    return pl.DataFrame(columns)


# ----------------------------------------------------------------------
# What is done to every record: families at strengths, searches for the minimum strength, controls, and the seed.


@dataclass(frozen=True)
class Plan:
    """What is done: configurations, searches for the minimum strength, controls, and the seed."""

    configs: tuple[PerturbationConfig, ...]
    searches: tuple[PerturbationConfig, ...] = ()
    control: bool = True
    rounds: int = 7
    seed: int = 0

    @cached_property
    def steps(self) -> list[tuple[str, PerturbationConfig | None]]:
        """Return every step in order: the clean records, the attacks, the searches."""
        named = [(str(c), c) for c in self.configs]
        named += [(f"{MINIMAL} {c}", c) for c in self.searches]
        if len({name for name, _ in named}) != len(named):
            twice = next(name for name, _ in named if [n for n, _ in named].count(name) > 1)
            raise UsageError(f"the attack {twice!r} is asked for twice")
        return [(CLEAN, None), *named]

    @cached_property
    def cells(self) -> dict[str, dict[str, str]]:
        """Return the run columns of each step; an attack used with several settings is named with its settings."""
        found = {CLEAN: run_of(CLEAN, None)}
        for group in (self.configs, self.searches):
            kinds: dict[str, set[str]] = {}
            for config in group:
                kinds.setdefault(config.family, set()).add(config.kind)
            for config in group:
                name = str(config) if group is self.configs else f"{MINIMAL} {config}"
                found[name] = run_of(name, config)
                if len(kinds[config.family]) > 1:
                    found[name]["attack"] = config.call
        return found

    @property
    def pinned(self) -> dict[str, object]:
        """Return what a resumed run must agree on."""
        return {
            "attacks": [name for name, _ in self.steps],
            "control": self.control,
            "rounds": self.rounds,
            "seed": self.seed,
        }


def sweep(
    families: Sequence[str],
    strengths: Sequence[float],
    *,
    center_time: float = 0.0,
    window_seconds: float | None = None,
    aims: Sequence[tuple[str, str]] = (),
    extra: Mapping[str, Mapping[str, object]] | None = None,
) -> tuple[PerturbationConfig, ...]:
    """Return every family at every strength, and at every aim (class, mode) if there are any; `extra` is by family.

    >>> [str(c) for c in sweep(["band_noise"], [0.1, 0.2])]
    ['band_noise 0.1', 'band_noise 0.2']
    """
    made = []
    for family in families:
        own = dict((extra or {}).get(family, {}))
        for aim, mode in aims or ((None, None),):
            made += [PerturbationConfig(family, s, center_time, window_seconds, aim, mode, own) for s in strengths]
    return tuple(made)


# ----------------------------------------------------------------------
# Recordings under a plan: every configuration on every record, in batches, each attack with its control.
#
# Each (record, configuration) has its own random generator, seeded from both, so the changes are the same for any batch
# size and order. A control is random signs under the same window, with the same L2 norm, to compare the attack with the
# effect of a mere disturbance of that size.

Keep = Callable[[str, Sequence[int], Floats], str]
"""Takes the name of a step, recordings by position, and their changed signals; returns the name of the file written."""


@dataclass(eq=False)
class Campaigner:
    """Recordings under a plan: makes the record of any step and any recording, one batch at a time.

    `keep`, if given, stores the changed signals of some recordings at a step, and returns the name of their file.
    """

    recordings: Recordings
    model: Classifier
    plan: Plan
    threshold: ArrayLike = 0.5
    peaks: Sequence[ArrayLike | None] | None = None
    batch: int = 32
    keep: Keep | None = None
    truth: ArrayLike | None = None
    """The labels of all records of the data, of which some may be attacked; they show whether classes exclude each other."""
    records: Records = field(init=False)
    contract: Contract = field(init=False)
    """What the model is taken for."""

    def __post_init__(self) -> None:
        given = self.recordings
        failures = not_finite(given.x)
        rows = [at for at in range(len(given.x)) if at not in failures]
        leads = agree_on_leads(self.model, given)
        found = _probe(self.model, given, rows)
        answers, unanswered = _answered(self.model, given.x, rows)
        failures |= unanswered
        data = self.recordings = given.without(failures)
        raw = np.stack([answers[at] for at in sorted(answers)])
        self.contract = self._contract(raw, found, leads)
        if self.peaks is not None:
            self.peaks = [own for at, own in enumerate(self.peaks) if at not in failures]
        self.records = Records(
            data.x, data.y.astype(np.float64), data.fs, self.model, data.classes, self.threshold, self.peaks, self.batch, self.model.from_raw(raw),
        )  # fmt: skip
        for _, config in self.plan.steps:
            if config is not None:
                self.records.target_of(config)
                self.model.need_gradient(config.family) if config.needs_gradient else None
        width = self.records.clean.shape[1]
        if width != len(data.classes):
            raise DataError(f"{self.model.name} gives {width} outputs and the data has {len(data.classes)} classes")

    def _contract(self, raw: Floats, found: Probe | None, leads: Term) -> Contract:
        """Settle what the outputs of the model are, and whether its classes exclude each other."""
        model, data = self.model, self.recordings
        model.settle(raw)
        truth = data.y if self.truth is None else self.truth
        ending = model.ending or ("softmax" if model.single_label and model.says_single is None else None)
        exclusive = exclusive_classes(model.says_single, ending, model.outputs, raw, truth, model.name)
        model.single_label = exclusive[0]
        further = [leads, Term("sample_rate", data.fs, f"{data.fs:g} Hz", "the data"), Term("units", "mV", "mV")]
        further += found.terms() if found is not None else []
        steps = [config for _, config in self.plan.steps if config is not None]
        if any(config.needs_gradient for config in steps) and model.differentiable is not None:
            apart = _gradient_network(model, data.x[:FIRST], raw[:FIRST])
            further.append(Term("gradients", apart, "gradients of the same network"))
        return classifier_contract(model.outputs, model.kind_from, data.classes, exclusive, further)

    def rng(self, row: int, *names: object) -> Generator:
        """Return the generator of one record and one random quantity."""
        return noise_generator(self.plan.seed, "attack", self.recordings.ids[row], *names)

    def step(self, at: int, rows: Sequence[int]) -> list[Facts]:
        """Return the results of one step for some records, in the form of the run store."""
        name, config = self.plan.steps[at]
        if config is None:
            clean = self.records.clean[list(rows)]
            return [{"log_odds": _stored(row)} for row in clean]
        is_search = name.startswith(f"{MINIMAL} ")
        try:
            return self._search(config, rows) if is_search else self._attack([config] * len(rows), rows, name)
        except DataError as error:  # a fault of one record: the others continue without it
            if len(rows) == 1:
                return [{"error": str(error)}]
            half = len(rows) // 2
            made = [*self.step(at, rows[:half]), *self.step(at, rows[half:])]
            if all("error" in record for record in made):
                raise
            return made

    def _attack(self, configs: Sequence[PerturbationConfig], rows: Sequence[int], name: str) -> list[Facts]:
        done = perform(self.records, rows, configs, [self.rng(row, name) for row in rows])
        return self._described(configs, rows, done, name)

    def _described(
        self, configs: Sequence[PerturbationConfig], rows: Sequence[int], done: Performed, name: str
    ) -> list[Facts]:
        """Return what was done in the form of the run store, with the control."""
        log_odds = self.model.log_odds(done.x)
        made = self._facts(rows, done)
        for i, facts in enumerate(made):
            facts["log_odds"], facts["notes"] = _stored(log_odds[i]), list(done.notes[i])
        if self.keep is not None:
            file = self.keep(name, rows, done.x)
            for i, facts in enumerate(made):
                facts["signals"] = [file, i]
        if self.plan.control:
            self._beside(made, configs, rows, done.x, name)
        return made

    def _facts(self, rows: Sequence[int], done: Performed) -> list[Facts]:
        """Return norms, signal-to-noise ratio, smoothness and budget of each change."""
        own = list(rows)
        numbers = describe(pick(self.records.x, own), done.x, self.records.power[own])
        used = np.array([numbers[f"delta_{n}"][i] if n else np.nan for i, n in enumerate(done.norm)])
        columns = {**numbers, "budget": done.budget, "budget_used": used, "zero_gradient": done.zero_gradient}
        return [_facts(columns, i) for i in range(len(own))]

    def _beside(
        self,
        made: list[Facts],
        configs: Sequence[PerturbationConfig],
        rows: Sequence[int],
        x: Floats,
        name: str,
    ) -> None:
        """Add the control to each attack."""
        noisy = self.recordings.x[list(rows)].copy()
        windows = hann_windows(
            noisy.shape[1], self.recordings.fs, [c.center_time for c in configs], [c.window_seconds for c in configs]
        )
        for i, row in enumerate(rows):
            size = float(np.linalg.norm(x[i] - noisy[i]))
            noisy[i] += same_norm_noise(noisy[i].shape, windows[i], size, self.rng(row, name, "control"))
        log_odds = self.model.log_odds(noisy)
        numbers = describe(self.recordings.x[list(rows)], noisy, self.records.power[list(rows)])
        for i, facts in enumerate(made):
            facts["control"] = _facts(numbers, i)
            facts["control"]["log_odds"] = _stored(log_odds[i])

    def _search(self, config: PerturbationConfig, rows: Sequence[int]) -> list[Facts]:
        """Return the minimum strength of each record, and the change that flipped it (strength 1 if it never flips)."""
        least, done = self.search(config, rows)
        made = self._described([config] * len(rows), rows, done, f"{MINIMAL} {config}")
        for record, strength in zip(made, least.tolist(), strict=True):
            record["minimal_strength"] = _number(strength)
        return made

    def search(self, config: PerturbationConfig, rows: Sequence[int]) -> tuple[Floats, Performed]:
        """Return the minimum strength of each record, and what flipped it: see `least_strengths`."""
        name = f"{MINIMAL} {config}"
        return least_strengths(self.records, config, rows, lambda row: self.rng(row, name), rounds=self.plan.rounds)

    def examples(self, trials: Trials, kept: str | Path | None = None) -> dict[str, tuple[Floats, Floats, float, str]]:
        """Return, for every kind of attack at its greatest strength, one record before and after.

        It is the first record that flips, else the first, with the sample rate and the model's answers. The signals
        come from a run folder that `kept` them, or are made again from the same generators.
        """
        campaign = Campaign.of(trials)
        place = {name: at for at, name in enumerate(self.recordings.ids)}
        chosen: dict[str, PerturbationConfig] = {}
        for config in sorted(self.plan.configs, key=lambda c: c.strength):
            chosen[str(replace(config, strength=1.0))] = config
        found = {}
        for config in chosen.values():
            run = self.plan.cells[str(config)]
            cell = next(c for c in campaign.cells if all(run[k] == v for k, v in c.run.items()))
            flips = (cell.bits != campaign.clean.bits).any(axis=1)
            chosen_one = int(np.argmax(flips))
            row = place[campaign.records[chosen_one]]
            after = self._again(config, row) if kept is None else _kept(kept, run, self.recordings.ids[row])
            title = f"{run['attack']} {config.strength:g}, record {self.recordings.ids[row]}"
            said = _said(campaign, cell, chosen_one)
            found[title] = (self.recordings.x[row], after, self.recordings.fs, said)
        return found

    def _again(self, config: PerturbationConfig, row: int) -> Floats:
        """Attack a record again in the same way, with the same generator."""
        return np.asarray(perform(self.records, [row], [config], [self.rng(row, str(config))]).x[0])


FIRST: Final = 8
"""Records on which the network that gives gradients is compared with the model."""


def agree_on_leads(model: Classifier, data: Recordings) -> Term:
    """Bring the leads of the data into the order that the model takes, by their names; ask if this is not known."""
    n = data.x.shape[2]
    if model.sample_rate is not None and data.fs > 0 and model.sample_rate != data.fs:
        raise DataError(
            f"{model.name} takes {model.sample_rate:g} samples per second and the data has {data.fs:g}: resample it",
            code="other-rate",
        )
    if model.leads is None:
        if data.stored_leads is not None:
            raise UsageError(
                f"the leads of the data are not in the usual order, and {model.name} does not say which order it takes: "
                f"say --leads standard ({', '.join(LEADS)}), or --leads {','.join(data.stored_leads)} as in the data",
                code="leads-unknown",
            )
        words = f"{n} leads as in the data" if data.leads is not None else f"{n} leads without names"
        return Term("leads", list(data.leads or ()), words, "assumed")
    wanted = tuple(map(lead_name, LEADS if [x.lower() for x in model.leads] == ["standard"] else model.leads))
    if data.leads is None:
        if len(wanted) != n:
            raise DataError(
                f"{model.name} takes {len(wanted)} leads ({', '.join(wanted)}) and the data has {n} without names",
                code="leads-missing",
            )
        return Term(
            "leads", list(wanted), f"{n} leads, in the data without names and taken to be in its order", "assumed"
        )
    missing = [lead for lead in wanted if lead not in data.leads]
    if missing:
        raise DataError(
            f"{model.name} takes the lead {missing[0]}, and the data has {', '.join(data.leads)}", code="leads-missing"
        )
    order = tuple(data.leads.index(lead) for lead in wanted)
    model.order = None if order == tuple(range(n)) else order
    return Term("leads", list(wanted), f"{len(wanted)} leads by their names", "declared")


def _probe(model: Classifier, data: Recordings, rows: Sequence[int]) -> Probe | None:
    """Score the first record twice and in a batch; an attack on one draw, or on a batch, would mean nothing."""
    before, chosen = model.n_forward, list(rows[:TOGETHER])
    try:
        found = probe(
            lambda at: model.raw(data.x[[chosen[i] for i in at]]),
            [data.ids[at] for at in chosen],
            batch=1 if model.fixed is not None else TOGETHER,
        )
    except (DataError, IndexError):  # a record without an answer; the records are tried one by one
        return None
    finally:
        model.n_forward = before
    if found.is_random:
        raise UsageError(
            f"{found.random_words(model.name)}; an attack on it would count its noise. Have it answer the same each time",
            code="randomised-model",
        )
    found.refuse_batch(model.name, "wrap it in a function that answers one record at a time")
    return found


def _gradient_network(model: Classifier, x: Floats, raw: Floats) -> float:
    """Compare the network that gives gradients with the model itself; return how far they are apart."""
    torch = need("torch", "torch")
    given = torch.as_tensor(np.ascontiguousarray(x.transpose(0, 2, 1)), dtype=torch.float32, device=model.device)
    with torch.no_grad():
        converted = np.asarray(model.need_gradient("a gradient")(given).double().cpu())
    if not model.single_label:
        return agree(converted, model.from_raw(raw), model.name)
    own = np.log(np.maximum(raw, SMALLEST)) if model.outputs == "probability" else raw
    return agree(_log_softmax(converted), _log_softmax(own), model.name)


def _log_softmax(values: Floats) -> Floats:
    return np.asarray(values - np.logaddexp.reduce(values, axis=1, keepdims=True))


def _answered(model: Classifier, x: Floats, rows: Sequence[int]) -> tuple[dict[int, Floats], dict[int, str]]:
    """Return the model's answers by position, and the records without one; if there is no answer at all, raise."""
    try:
        return dict(zip(rows, model.raw(x[list(rows)]), strict=True)), {}
    except DataError as error:
        if len(rows) < 2:
            return {}, {at: str(error) for at in rows}
        half = len(rows) // 2
        (some, bad), (others, worse) = _answered(model, x, rows[:half]), _answered(model, x, rows[half:])
        if not some and not others:
            raise
        return some | others, bad | worse


def _said(campaign: Campaign, cell: Cell, at: int) -> str:
    """Describe the model's answers for a record, before and after."""
    before, after = (
        " + ".join(name for name, bit in zip(campaign.classes, bits[at], strict=True) if bit) or "nothing"
        for bits in (campaign.clean.bits, cell.bits)
    )
    return f"{before} → {after}" if before != after else f"stays {before}"


def _kept(folder: str | Path, run: dict[str, str], record: str) -> Floats:
    return np.asarray(read_signals(folder, **run, records=[record])[1][0], dtype=np.float64)


def same_norm_noise(shape: tuple[int, ...], window: Floats, size: float, rng: Generator) -> Floats:
    """Return random signs under a window, with a given L2 norm.

    >>> noise = same_norm_noise((50, 2), np.ones(50), 0.3, np.random.default_rng(0))
    >>> round(float(np.linalg.norm(noise)), 12), len(np.unique(np.abs(noise).round(12)))
    (0.3, 1)
    """
    signs = rng.choice([-1.0, 1.0], size=shape) * window[:, None]
    length = float(np.linalg.norm(signs))
    return signs * (size / length) if length > 0 else signs


def _facts(columns: Mapping[str, Floats], at: int) -> Facts:
    """Return the numbers of one record."""
    return cast("Facts", {name: finite(float(values[at])) for name, values in columns.items()})


def _number(value: float) -> float | str | None:
    return cast("float | str | None", finite(value))


def _stored(log_odds: Floats) -> list[float | str | None]:
    return [_number(float(v)) for v in log_odds]


# ----------------------------------------------------------------------
# Run attacks on many records, in memory or into a run folder that survives any interruption.

PART: Final = 64
"""Records that are processed together; it changes no result."""
Report = Callable[[int, int], None]


def run_campaign(
    campaigner: Campaigner,
    output: str | Path | None = None,
    *,
    resume: bool = False,
    report: Report | None = None,
    save_signals: bool = False,
) -> Trials:
    """Run a plan and return its trials. With `output` it is a run folder: after an interruption, use `resume=True`.

    `save_signals`: keep the changed signals in the folder (see `read_signals`).
    """
    if save_signals and output is None:
        raise UsageError("signals are kept in a run folder; say output=…")
    n = len(campaigner.recordings.ids)
    steps = campaigner.plan.steps
    made: dict[int, Facts] = {}
    if output is None:
        for at, record in _work(campaigner, iter(range(n * len(steps))), report):
            made[at] = record
        return Trials.from_frame(table_of(campaigner, made), header_of(campaigner, made))
    items = [f"{name} / {record}" for name, _ in steps for record in campaigner.recordings.ids]
    pinned = _run_pinned(campaigner) | ({"signals": "float32"} if save_signals else {})
    with start(output, kind="attack", config=pinned, items=items, resume=resume) as run:
        campaigner.keep = _keeper(campaigner, Path(output)) if save_signals else None
        for at, record in _work(campaigner, run.todo(), report):
            run.add(at, record)
        made = cast("dict[int, Facts]", dict(run.records()))
        table, header = table_of(campaigner, made), header_of(campaigner, made)
        facts: dict[str, object] = {
            "positive": header.positive,
            "negative": header.negative,
            "score_kind": header.score_kind,
            "provenance": dict(header.provenance),
            "contract": campaigner.contract.stored,
        }
        if campaigner.recordings.path is not None:
            facts[MEDIA] = os.path.relpath(campaigner.recordings.path, output)
        words = [
            pl.col(c).replace_strict({1: header.positive, 0: header.negative}, return_dtype=pl.String)
            for c in ("label", "decision")
        ]
        run.finish(
            table.with_columns(words), _indexed(campaigner, made, Path(output)) if save_signals else (), **facts, has_labels=True, runs=list(header.runs), numbers=list(header.numbers),
            n_scored=table.height, n_failed=len(failures_of(campaigner, made)), notes=list(header.notes),
        )  # fmt: skip
    return Trials.from_frame(table, header)


def _keeper(campaigner: Campaigner, folder: Path) -> Keep:
    """Return the function that stores the signals of a part in the run folder, before its answers are recorded."""
    n, step_of = len(campaigner.recordings.ids), {name: at for at, (name, _) in enumerate(campaigner.plan.steps)}
    return lambda name, rows, x: write_part(folder, step_of[name] * n + rows[0], x)


def _indexed(campaigner: Campaigner, made: dict[int, Facts], folder: Path) -> list[str]:
    """Write the index of the signals that the answers name; return the files."""
    ids, rows = campaigner.recordings.ids, []
    for at in sorted(made):
        if "signals" in made[at]:
            name = campaigner.plan.steps[at // len(ids)][0]
            file, row = made[at]["signals"]
            rows.append({"record": ids[at % len(ids)], **campaigner.plan.cells[name], "file": file, "row": row})
    return write_index(folder, rows)


def _work(campaigner: Campaigner, todo: Iterator[int], report: Report | None) -> Iterator[tuple[int, Facts]]:
    """Process positions (step-major) in batches that belong to one step."""
    n, total = len(campaigner.recordings.ids), len(campaigner.recordings.ids) * len(campaigner.plan.steps)
    waiting: list[int] = []
    done = 0

    def flush() -> Iterator[tuple[int, Facts]]:
        nonlocal done
        rows = [at % n for at in waiting]
        yield from zip(list(waiting), campaigner.step(waiting[0] // n, rows), strict=True)
        done += len(rows)
        waiting.clear()
        if report is not None:
            report(done, total)

    for at in todo:
        if waiting and (at // n != waiting[0] // n or len(waiting) >= PART):
            yield from flush()
        waiting.append(at)
    if waiting:
        yield from flush()


def _run_pinned(campaigner: Campaigner) -> dict[str, object]:
    data, model = campaigner.recordings, campaigner.model
    threshold = np.asarray(campaigner.threshold, dtype=np.float64).tolist()
    about = {"data": data.digest, "classes": list(data.classes), "fs": data.fs, "layout": model.layout}
    about |= {"single_label": True} if model.single_label else {}
    about |= {"leads": [data.leads[at] for at in model.order]} if model.order is not None and data.leads else {}
    return {
        **campaigner.plan.pinned,
        **about,
        "model": {"name": model.name, **model.identity},
        "outputs": model.outputs,
        "threshold": threshold,
    }


# ----------------------------------------------------------------------
# What `hitmiss attack` and `hm.attack` do: from options to a plan, and from a plan to trials.


def attack(
    detector: object,
    data: str | Path | Recordings,
    output: str | Path | None = None,
    *,
    families: Sequence[str] = (),
    strengths: Sequence[float] = (),
    minimal: Sequence[str] = (),
    targets: Sequence[str] = (),
    window: float | None = None,
    centers: Sequence[float] = (),
    attack_from: str = "y_true",
    criterion: str | Criterion | Rule | None = None,
    early_stop: bool = True,
    lead_consistent: bool = False,
    control: bool = True,
    threshold: float | Sequence[float] = 0.5,
    weights: str | Path | None = None,
    layout: str = "sample_lead",
    data_layout: str = "sample_lead",
    labels: str | Path | None = None,
    fs: float | None = None,
    leads: str | Sequence[str] | None = None,
    outputs: str = "auto",
    single_label: bool | None = None,
    device: str = "cpu",
    batch: int = 32,
    limit: int | None = None,
    seed: int = 0,
    save_signals: bool = False,
    resume: bool = False,
) -> Trials:
    """Perturb and attack a classifier of signals and return the trials, as `hitmiss attack` does.

    `hm.evaluate(trials, protocol="ecg-attacks")` measures them. Each attack has noise of the same norm beside it, and
    the changes do not depend on the batch size or the order.

    Parameters
    ----------
    detector
        A function from signals to probabilities, an object with `predict`, a torch module, an ONNX session, an
        estimator; or the text of `--detector`.
    data
        An `.npz` with x (record × sample × lead, mV), y, classes and fs; or a folder of WFDB records.
    output
        A run folder to write, which can be resumed; without it the trials are only returned.
    families, strengths
        Families such as `band_noise` or `band_noise(beta=0.5)`, each at every strength between 0 and 1.
    minimal
        Families whose least successful strength is searched for each record.
    targets
        Classes to aim at, `MI` or `MI:suppress`; for families that can aim.
    window, centers
        The width and the centres of the changed window, in seconds; without them the whole record is changed.
    attack_from, criterion, early_stop, lead_consistent
        How gradient attacks are steered, and when one has succeeded.
    control
        Whether noise of the same norm is run beside each attack.
    threshold
        The probability from which a class is predicted; one for all classes or one per class.
    weights, layout, leads, outputs, single_label, device
        How the model is opened, what it takes (`leads="standard"`, or the names in its order) and what it gives.
    data_layout, labels, fs, limit
        How the records are read, and how many.
    batch, seed
        Records per batch of a gradient attack; the seed of everything that is drawn.
    save_signals, resume
        Keep the changed signals in the run folder; go on with the run in the folder.

    Returns
    -------
    Trials
        One trial per record, class and step: the clean records, every attack, every control.

    Raises
    ------
    UsageError
        For options that contradict each other, or an unknown family or class.
    DataError
        If the records cannot be read, or the classes of model and data differ.

    >>> import tempfile
    >>> x, y = np.zeros((4, 200, 2)), np.array([[1], [0], [1], [0]])
    >>> x[::2] = np.sin(np.arange(200) / 5)[:, None]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/x.npz", x=x, y=y, classes=["MI"], fs=100.0)
    ...     trials = attack(lambda x: x.std(axis=(1, 2))[:, None], f"{folder}/x.npz", families=["band_noise"], strengths=[1.0])
    >>> sorted(set(trials.frame["attack"]))
    ['band_noise', 'clean', 'noise ~ band_noise']
    """
    campaigner = prepare_campaign(
        detector,
        data,
        families=families,
        strengths=strengths,
        minimal=minimal,
        targets=targets,
        window=window,
        centers=centers,
        attack_from=attack_from,
        criterion=criterion,
        early_stop=early_stop,
        lead_consistent=lead_consistent,
        control=control,
        threshold=(threshold,) if isinstance(threshold, int | float) else threshold,
        weights=weights,
        layout=layout,
        data_layout=data_layout,
        labels=labels,
        fs=fs,
        leads=leads,
        outputs=outputs,
        single_label=single_label,
        device=device,
        batch=batch,
        limit=limit,
        seed=seed,
    )
    return run_campaign(campaigner, output, resume=resume, save_signals=save_signals)


def prepare_campaign(
    detector: object,
    data: str | Path | Recordings,
    *,
    families: Sequence[str],
    strengths: Sequence[float],
    minimal: Sequence[str],
    targets: Sequence[str],
    window: float | None,
    centers: Sequence[float],
    attack_from: str,
    criterion: str | Criterion | Rule | None,
    early_stop: bool,
    lead_consistent: bool,
    control: bool,
    threshold: Sequence[float],
    weights: str | Path | None,
    layout: str,
    data_layout: str,
    labels: str | Path | None,
    fs: float | None,
    leads: str | Sequence[str] | None,
    outputs: str,
    single_label: bool | None,
    device: str,
    batch: int,
    limit: int | None,
    seed: int,
) -> Campaigner:
    """Read the records, open the model and settle the plan; see `attack`."""
    recordings = (
        data if isinstance(data, Recordings) else read_recordings(data, layout=data_layout, fs=fs, labels=labels)
    )
    for name, value, least in (("limit", limit, 1), ("batch", batch, 1), ("seed", seed, 0)):
        if value is not None and value < least:
            raise UsageError(f"--{name} is at least {least}; found {value}")
    truth = recordings.y
    recordings = recordings if limit is None else recordings.first(limit)
    steering: dict[str, object] = {
        "attack_from": attack_from,
        "early_stop": early_stop,
        "lead_consistent": lead_consistent,
    }
    if criterion is not None:
        steering["criterion"] = _criterion(criterion)
    plan = _plan(families, strengths, minimal, targets, window, centers, steering, control, seed)
    _check_aims(targets, plan, recordings.classes)
    model = _model(detector, weights, device, outputs, layout, recordings, single_label)
    if leads is not None:
        names = leads.split(",") if isinstance(leads, str) else list(leads)
        model.leads = tuple(name.strip() for name in names if name.strip())
    _check_lead_equations(plan, recordings)
    cut: float | Sequence[float] = 0.5 if not threshold else threshold[0] if len(threshold) == 1 else threshold
    return Campaigner(recordings, model, plan, cut, batch=batch, truth=truth)


def _check_lead_equations(plan: Plan, data: Recordings) -> None:
    """Refuse what needs the twelve standard leads on data whose leads are others."""
    needs = [c for c in (*plan.configs, *plan.searches) if c.extra.get("lead_consistent") or c.family == "lead_swap"]
    if needs and data.leads is not None and data.leads != LEADS:
        raise UsageError(
            f"{needs[0].family} needs the lead equations of the 12 standard leads ({', '.join(LEADS)}); the data has "
            f"{', '.join(data.leads)}",
            code="other-leads",
        )


def _check_aims(targets: Sequence[str], plan: Plan, classes: tuple[str, ...]) -> None:
    """Refuse an aim that no family here can have; families that never ask the model cannot be steered."""
    for name, _, mode in (text.partition(":") for text in targets):
        if name not in classes:
            raise UnknownName("class", name, classes)
        if mode and mode not in MODES:
            raise UnknownName("target_mode", mode, MODES)
    if targets and not any(c.target_class for c in (*plan.configs, *plan.searches)):
        raise UsageError(
            "none of these families can aim at a class: --target is for gradient families and random_search"
        )


def _criterion(given: str | Criterion | Rule) -> object:
    """Return a criterion by its name, or a function (clean bits, changed bits, target) -> one yes or no per record."""
    if not isinstance(given, str):
        return find_criterion(given)
    return find_criterion(find_object(given)) if ":" in given else find_criterion(given).name


def _model(
    detector: object,
    weights: str | Path | None,
    device: str,
    outputs: str,
    layout: str,
    recordings: Recordings,
    single_label: bool | None,
) -> Classifier:
    """Open the model that is attacked; its classes must be those of the data."""
    opened = open_detector(detector, weights=weights, device=device) if isinstance(detector, str) else detector
    model = as_classifier(opened, outputs=outputs, layout=layout, device=device, single_label=single_label)  # type: ignore[arg-type]
    if model.classes is not None and tuple(model.classes) != tuple(recordings.classes):
        raise DataError(
            f"the model's classes are {', '.join(model.classes)} and the data's {', '.join(recordings.classes)}"
        )
    return model


def _plan(
    families: Sequence[str],
    strengths: Sequence[float],
    minimal: Sequence[str],
    targets: Sequence[str],
    window: float | None,
    centers: Sequence[float],
    steering: dict[str, object],
    control: bool,
    seed: int,
) -> Plan:
    if not families and not minimal:
        raise UsageError("say what to do: --family band_noise, or --minimal pgd")
    if families and not strengths:
        raise UsageError("give strengths: --strengths 0.1 0.2 0.35 0.5")
    if window is not None and not centers:
        raise UsageError("a window needs a centre: --center 5")
    aims = [(name, mode or "force") for name, _, mode in (text.partition(":") for text in targets)]
    where: list[tuple[float, float | None]] = [(c, window) for c in centers] if window is not None else [(0.0, None)]
    configs = [c for text in families for c in _configs(text, strengths, where, aims, steering)]
    searches = [c for text in minimal for c in _configs(text, [1.0], where, aims, steering)]
    return Plan(tuple(configs), tuple(searches), control, seed=seed)


def _configs(
    text: str,
    strengths: Sequence[float],
    where: list[tuple[float, float | None]],
    aims: list[tuple[str, str]],
    steering: dict[str, object],
) -> list[PerturbationConfig]:
    """Return the configurations of a family, without steering settings that it ignores, so that its name is short."""
    spec = parse(text)
    name = spec.name.lower()
    batched = batched_families()
    if name not in known_families():
        refuse_other_media(name)
        raise UnknownName("perturbation", spec.name, known_families())
    own = {k: v for k, v in steering.items() if k in ("lead_consistent", "criterion") or name not in batched}
    own = {k: v for k, v in own.items() if v not in (False, "y_true")}
    extra = {name: {**own, **dict(spec.settings)}}
    found: list[PerturbationConfig] = []
    for center, seconds in where:
        found += sweep(
            [name],
            strengths,
            center_time=center,
            window_seconds=seconds,
            aims=aims if name not in batched else (),
            extra=extra,
        )
    return found
