"""Attacked signals kept in a run (`hitmiss attack --save-signals`), and how to read them.

    run/signals/0000000064.npy     signals of one part of one attack: record × sample × lead, float32, mV
    run/signals/index.parquet      the file and row of each record, attack, strength, aim and place

Models are given float32, so a stored signal gives exactly the answer that the run counted. A file is put in place
atomically before its answers are recorded, and each answer names its file: a run that was killed makes again what was
not finished, and leaves no stale files. Files are not compressed: the last bits of a changed signal are noise and
hardly compress.

    ids, x = read_signals("run", attack="band_noise", strength=0.5)
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError, IncompleteRun, UsageError
from hitmiss.core.frames import parquet
from hitmiss.runs.manifest import as_manifest, load_manifest
from hitmiss.runs.segments import replace_file

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
    >>> from hitmiss.attacks.campaign import attack as run_attack
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/x.npz", x=np.ones((2, 200, 2)), y=[[1], [0]], classes=["MI"], fs=100.0)
    ...     _ = run_attack(lambda x: x.mean(axis=(1, 2))[:, None], f"{folder}/x.npz", f"{folder}/run",
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
        raise UsageError.of("no-such-attack", folder=folder, what=what, asked=asked, listed=listed)
    names = own["record"].to_list() if records is None else list(records)
    places = dict(
        zip(own["record"].to_list(), zip(own["file"].to_list(), own["row"].to_list(), strict=True), strict=True)
    )
    missing = [name for name in names if name not in places]
    if missing:
        raise DataError.of("no-such-record", folder=folder, missing=missing[0], n_missing=len(missing))
    parts = {file: np.load(io.BytesIO(_read(folder, file, pinned))) for file in {places[name][0] for name in names}}
    found = [parts[file][row] for file, row in map(places.__getitem__, names)]
    return names, np.stack(found) if found else np.zeros((0, 0, 0), dtype=np.float32)


def _pinned(folder: Path) -> dict[str, str]:
    """Return the digests of the signal files of a finished run."""
    manifest = load_manifest(folder)
    if manifest["state"] != "complete":
        raise IncompleteRun.of("run-unfinished", folder=folder, state=manifest["state"])
    if not has_signals(folder):
        raise UsageError.of("signals-not-kept", folder=folder)
    return dict(as_manifest(manifest).files)


def _read(folder: Path, name: str, pinned: Mapping[str, str]) -> bytes:
    """Read a file and check that it is unchanged since the run ended."""
    path = folder / FOLDER / name
    if not path.is_file():
        raise DataError.of("damaged-run/signals", folder=folder, FOLDER=FOLDER, name=name)
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != pinned.get(f"{FOLDER}/{name}"):
        raise DataError.of("changed-run/signals", folder=folder, FOLDER=FOLDER, name=name)
    return data


def _text(strength: float | str) -> str:
    return strength if isinstance(strength, str) else f"{strength:g}"
