"""Attacked signals kept in a run (`hitmiss attack --save-signals`), and how to get them back.

    run/signals/0000000064.npy     signals of one part of one attack: record × sample × lead, float32, mV
    run/signals/index.parquet      for each record, attack, strength, aim and place the file and the row in it

float32 is what models are given, so a stored signal gives the very answer that the run counted. A file is put in place whole
before its answers are written down, and each answer names its file: a run that was killed makes again what it had not
finished, and leaves nothing behind. Files are not compressed: the last bits of a changed signal are noise and hardly shrink.

    ids, x = read_signals("run", attack="band_noise", strength=0.5)
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.errors import DataError, IncompleteRun, UsageError
from hitmiss.io.outfiles import parquet
from hitmiss.io.runs import load_manifest
from hitmiss.io.segments import replace_file

FOLDER: Final = "signals"
INDEX: Final = "index.parquet"
COLUMNS: Final = ("attack", "strength", "aim", "place")
F32 = NDArray[np.float32]


def write_part(run: Path, first: int, x: Any) -> str:
    """Keep a part of one attack, which begins at a place of the run; the name of its file."""
    (run / FOLDER).mkdir(exist_ok=True)
    buffer, name = io.BytesIO(), f"{first:010d}.npy"
    np.save(buffer, np.asarray(x, dtype=np.float32))
    replace_file(run / FOLDER / name, buffer.getvalue())
    return name


def write_index(run: Path, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Write down where each signal lies and drop what no answer names; the files that the run is made of.

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
    """Whether a finished run kept its attacked signals."""
    return f"{FOLDER}/{INDEX}" in load_manifest(run).get("files", {})


def read_signals(
    run: str | Path,
    *,
    attack: str,
    strength: float | str,
    aim: str | None = None,
    place: str | None = None,
    records: Sequence[str] | None = None,
) -> tuple[list[str], F32]:
    """The ids and the signals (record × sample × lead, float32, mV) of one attack of a run that kept them.

    `strength` is a number, or "minimal" for a search; `aim` ("force MI") and `place` ("5 s") are needed where the run tried
    several. `records`: only these, in this order. A file that was changed since the run ended is refused.
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
    """The digests of the files of signals of a finished run."""
    manifest = load_manifest(folder)
    if manifest["state"] != "complete":
        raise IncompleteRun(f"{folder}: the run is not finished ({manifest['state']}); go on with --resume")
    if not has_signals(folder):
        raise UsageError(f"{folder} kept no signals; they are kept with `hitmiss attack … --save-signals`")
    return dict(manifest["files"])


def _read(folder: Path, name: str, pinned: Mapping[str, str]) -> bytes:
    """A file as it was when the run ended."""
    path = folder / FOLDER / name
    if not path.is_file():
        raise DataError(f"{folder}: {FOLDER}/{name} is missing")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != pinned.get(f"{FOLDER}/{name}"):
        raise DataError(f"{folder}: {FOLDER}/{name} was changed after the run was finished")
    return data


def _text(strength: float | str) -> str:
    return strength if isinstance(strength, str) else f"{strength:g}"
