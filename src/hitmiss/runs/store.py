"""The run store: a folder that survives crashes of the processes that write it.

    run/manifest.json      what was asked (the configuration), the state, and at the end the digest of every file
    run/items/*.jsonl      one append-only segment per writer, one line per item
    run/trials.parquet     the finished table, put in place atomically
    run/owner.json         which process works on it now

    with start("run", kind="detect", config={...}, items=ids) as run:
        for at in run.todo():                       # positions of items that are not done yet
            run.add(at, {"score": 0.5})             # or {"error": "cannot be decoded"}
        if run.is_done:
            run.finish(table)

Started again with `resume=True`, it continues where it stopped; a different configuration is refused with the
differences. With `join=True` several processes share the work.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

import numpy as np
import polars as pl

from hitmiss._version import __version__
from hitmiss.core import artifacts
from hitmiss.core.errors import HitmissError, IncompleteRun, UsageError
from hitmiss.core.frames import parquet
from hitmiss.runs.manifest import (
    CLAIMS,
    ITEMS,
    MANIFEST,
    OWNER,
    SCHEMA,
    TABLE,
    Places,
    RecordIndex,
    as_manifest,
    chosen,
    differences,
    items_digest,
    load_manifest,
    sealed,
    segments,
)
from hitmiss.runs.owner import BEAT_SECONDS, Claims, Owner
from hitmiss.runs.segments import SegmentReader, SegmentWriter, cut_torn_tail, replace_file

PART: Final = 64
"""How many items a process claims at once."""


class Run:
    """A run in progress; see `start`."""

    def __init__(
        self,
        folder: Path,
        manifest: dict[str, object],
        items: Sequence[str],
        owner: Owner,
        claims: Claims,
        may_grow: bool = False,
    ) -> None:
        self.folder, self.manifest, self.items = folder, manifest, items
        self.torn, self.is_new = 0, False
        self.has_error = np.zeros(len(items), dtype=bool)
        self._done = np.zeros(len(items), dtype=bool)
        self._owner, self._claims = owner, claims
        self._readers: dict[Path, SegmentReader] = {}
        self._places, self._may_grow = Places(items, may_grow), may_grow
        self._writer = SegmentWriter(folder / ITEMS)
        self._end = threading.Event()
        self._heart = threading.Thread(target=self._beat, daemon=True)
        self._heart.start()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(error)

    @property
    def n_done(self) -> int:
        """How many items are known to be done, by any process."""
        return int(self._done.sum())

    @property
    def is_done(self) -> bool:
        """Whether every item is done, including what other processes have written."""
        if not self._done.all():
            self._look()
        return bool(self._done.all())

    def todo(self, retry: bool = False) -> Iterator[int]:
        """Yield positions of items neither done nor claimed, claiming part by part. `retry`: failed ones too."""
        again = self.has_error.copy() if retry else None
        for start in range(0, len(self.items), PART):
            part = slice(start, start + PART)
            open_ = ~self._done[part] if again is None else ~self._done[part] | again[part]
            if not open_.any() or not self._claims.take(start // PART):
                continue
            self._look()  # the previous holder of this part may have done some of it since
            open_ = ~self._done[part] if again is None else ~self._done[part] | (again[part] & self.has_error[part])
            yield from (start + np.flatnonzero(open_)).tolist()

    def add(self, at: int, record: Mapping[str, object]) -> None:
        """Record the result of an item. Once this returns, it is safe. An `error` in it marks the item as failed."""
        self._writer.append({"at": at, "item": self.items[at], **record})
        self._done[at] = True
        self.has_error[at] = "error" in record

    def records(self) -> Iterator[tuple[int, dict[str, object]]]:
        """Yield position and record of every item done, once each: its first success, else a failure."""
        yield from chosen(self.folder, self.items, len(self.items), self._may_grow)

    def records_of(self, positions: Iterable[int]) -> Iterator[tuple[int, dict[str, object]]]:
        """Yield position and record of these items, in this order; those that are not done are left out."""
        yield from RecordIndex(self.folder, self.items, len(self.items), self._may_grow).read(positions)

    @property
    def segment(self) -> str:
        """The name of this writer's segment."""
        return self._writer.path.stem

    def sync(self) -> None:
        """Flush the written records to disk."""
        self._writer.sync()

    def finish(self, table: pl.DataFrame, files: Sequence[str] = (), **facts: object) -> None:
        """Put the table in place, record the digest of every file, and mark the run complete.

        `files` are further files of the folder to include in the digests; `facts` go into the manifest.
        """
        self.sync()
        with self._claims.guard():
            replace_file(self.folder / TABLE, parquet(table))
            names = [TABLE, *files, *(f"{ITEMS}/{p.name}" for p in segments(self.folder))]
            self.manifest |= {
                "facts": facts,
                "files": {n: artifacts.file_digest(self.folder / n) for n in sorted(names)},
            }
            self._save("complete")

    def close(self, error: BaseException | None = None) -> None:
        """Sync, leave, and record how the run ended unless it is complete."""
        if self._end.is_set():
            return
        self._end.set()
        self._heart.join()
        self._writer.close()
        with suppress(OSError, HitmissError):
            if self._owner.is_held and str(load_manifest(self.folder)["state"]) != "complete":
                self._save("interrupted" if isinstance(error, KeyboardInterrupt) else "stopped")
            if self._owner.is_held and error is not None and self.is_new and self._is_bare():
                self._remove()
        self._owner.leave()
        self._claims.close()
        with suppress(OSError):
            self.folder.rmdir()  # only if it is empty

    def _is_bare(self) -> bool:
        """Return whether the folder holds nothing but what every run begins with."""
        return not segments(self.folder) and {p.name for p in self.folder.iterdir()} <= {MANIFEST, CLAIMS, OWNER, ITEMS}

    def _remove(self) -> None:
        """Remove a run that this process began and that ended before its first result."""
        for name in (MANIFEST, CLAIMS):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / ITEMS).rmdir()

    def _save(self, state: str) -> None:
        self.manifest |= {"state": state, "ended": _now()}
        replace_file(self.folder / MANIFEST, sealed(self.manifest), is_final=state == "complete")

    def _look(self) -> None:
        """Read what the segments have gained since the last look."""
        for path in segments(self.folder):
            if path == self._writer.path:
                continue
            reader = self._readers.setdefault(path, SegmentReader(path))
            for record in reader.records():
                at = self._places.of(record, path)
                self.has_error[at] = "error" in record and (self.has_error[at] or not self._done[at])
                self._done[at] = True

    def _beat(self) -> None:
        while not self._end.wait(BEAT_SECONDS):
            self._owner.beat()
            with suppress(OSError):
                self._writer.sync()


def start(
    folder: str | Path,
    *,
    kind: str,
    config: Mapping[str, object],
    items: Sequence[str],
    resume: bool = False,
    join: bool = False,
    grows: Collection[str] = (),
) -> Run:
    """Begin a run, continue one (`resume`), or work beside its owner (`join`).

    `config` pins everything that could change a result; a resumed run must have the same configuration. A folder that
    already holds a run is refused unless the run is resumed or joined. A run in which nothing succeeded begins afresh.
    `grows`: parts of the configuration to which something may be added when a run is resumed, and items with them.
    """
    folder = Path(folder)
    wanted = json.loads(json.dumps(config))
    fresh = _is_fresh(folder, resume or join)
    folder.mkdir(parents=True, exist_ok=True)
    claims, owner = Claims(folder / CLAIMS), Owner(folder / OWNER)
    try:
        with claims.guard():
            is_alone = not join or owner.standing() is None
            if is_alone:
                owner.take()
                if not fresh and _has_no_success(folder):
                    for path in segments(folder):
                        path.unlink()
                    fresh = True
            manifest = (
                _begin(folder, kind, wanted, items)
                if fresh
                else _continue(folder, kind, wanted, items, grows if is_alone else ())
            )
            torn = sum(map(cut_torn_tail, segments(folder)))
        run = Run(folder, manifest, items, owner, claims, bool(grows))
        run.torn, run.is_new = torn, fresh
        run._look()
    except BaseException:
        owner.leave()
        claims.close()
        raise
    return run


def _is_fresh(folder: Path, may_exist: bool) -> bool:
    if not (folder / MANIFEST).exists():
        if folder.is_dir() and any(p.name not in (CLAIMS, OWNER) for p in folder.iterdir()):
            raise UsageError.of("folder-taken", folder=folder)
        return True
    if may_exist or _has_no_success(folder):
        return False
    state = load_manifest(folder)["state"]
    if state == "complete":
        raise UsageError.of("run-finished", folder=folder)
    raise IncompleteRun.of("run-unfinished/begun", folder=folder, state=state)


def _has_no_success(folder: Path) -> bool:
    """Return whether nothing has succeeded in a run that is not finished, and no process works on it.

    An unreadable record may be a success.
    """
    try:
        myself = os.getpid(), socket.gethostname()
        if load_manifest(folder)["state"] == "complete" or Owner(folder / OWNER).standing() not in (None, myself):
            return False
        return all("error" in record for path in segments(folder) for record in SegmentReader(path).records())
    except HitmissError:
        return False


def _begin(folder: Path, kind: str, config: dict[str, object], items: Sequence[str]) -> dict[str, object]:
    manifest = {
        "schema": SCHEMA,
        "kind": kind,
        "hitmiss": __version__,
        "config": config,
        "n_items": len(items),
        "items_digest": items_digest(items),
        "state": "running",
        "started": _now(),
    }
    replace_file(folder / MANIFEST, sealed(manifest))
    return manifest


def _continue(
    folder: Path, kind: str, config: dict[str, object], items: Sequence[str], grows: Collection[str]
) -> dict[str, object]:
    manifest = load_manifest(folder)
    known = as_manifest(manifest)
    now: dict[str, object] = {"n_items": len(items), "items_digest": items_digest(items), "config": config}
    has_grown = now != {name: manifest[name] for name in now}
    before = {"kind": known.kind, "items": [known.n_items, known.items_digest], **known.config}
    wanted = {"kind": kind, "items": [len(items), now["items_digest"]], **config}
    if has_grown and grows:
        _require_growth(folder, before, wanted, items, grows)
    differing = differences(before, wanted)
    if differing:
        raise IncompleteRun.of("other-configuration", folder=folder, differing="; ".join(differing))
    if manifest["state"] != "complete" or has_grown:
        manifest |= {**now, "state": "running"}
        replace_file(folder / MANIFEST, sealed(manifest))
    return manifest


def _require_growth(
    folder: Path, before: dict[str, object], wanted: dict[str, object], items: Sequence[str], grows: Collection[str]
) -> None:
    """Leave of two configurations what may not differ: additions are left out if every item that is done is still asked for."""
    asked = set(items)
    if all(record["item"] in asked for path in segments(folder) for record in SegmentReader(path).records()):
        before["items"] = wanted["items"]
    for name in grows:
        old, new = before.get(name), wanted.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            wanted[name] = {key: new.get(key) for key in old}
        else:
            before[name] = new


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
