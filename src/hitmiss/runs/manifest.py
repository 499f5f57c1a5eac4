"""The manifest of a run: what was asked, its state, its facts, and at the end the digest of every file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

import numpy as np

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, IncompleteRun, UsageError
from hitmiss.runs.segments import SegmentReader

SCHEMA: Final = 1
MANIFEST, TABLE, ITEMS, OWNER, CLAIMS = "manifest.json", "trials.parquet", "items", "owner.json", "claims"
FILES, MEDIA = "files.parquet", "media"
"""The table with the file of each item, and the fact with the path of those files, relative to the run's folder."""


def load_manifest(folder: str | Path) -> dict[str, object]:
    """Read the manifest of a run; refuse a folder without one, with another schema, or with a broken seal."""
    path = Path(folder) / MANIFEST
    for name in (MANIFEST, TABLE):
        artifacts.note_input(Path(folder) / name)
    try:
        data = path.read_bytes()
        manifest = json.loads(data)
    except FileNotFoundError:
        raise UsageError.of("not-a-run", folder=folder, MANIFEST=MANIFEST) from None
    except ValueError:
        raise DataError.of("damaged-run/json", path=path) from None
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema != SCHEMA:
        raise DataError.of("run-schema", folder=folder, schema=schema, SCHEMA=SCHEMA)
    try:
        is_sound = data == sealed(manifest)
    except ValueError:  # NaN or a number beyond every float, which no manifest holds
        is_sound = False
    if not is_sound:
        raise DataError.of("damaged-run/seal", path=path)
    _check_form(manifest)
    return dict(manifest)


@dataclass(frozen=True)
class Manifest:
    """The fields of a manifest."""

    schema: int
    kind: str
    hitmiss: str
    config: Mapping[str, object]
    n_items: int
    items_digest: str
    state: str
    started: str
    ended: str | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    seal: str = ""


@dataclass(frozen=True)
class RunFacts:
    """The facts of a finished run that readers use; a run may record others."""

    positive: str | None = None
    negative: str | None = None
    has_labels: bool = False
    score_kind: str = "raw"
    numbers: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    n_scored: int = 0
    n_failed: int = 0
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, object] = field(default_factory=dict)
    rows: str | None = None
    layout: str | None = None
    media: str | None = None


def run_facts(manifest: Mapping[str, object]) -> RunFacts:
    """Return the facts of a manifest that readers use."""
    own = {f.name for f in fields(RunFacts)}
    told = {k: v for k, v in as_manifest(manifest).facts.items() if k in own}
    return artifacts.check(RunFacts, told, "run facts", ("facts",))


def as_manifest(manifest: Mapping[str, object]) -> Manifest:
    """Return the fields of a manifest, each checked."""
    return artifacts.check(Manifest, manifest, "run facts")


def _check_form(manifest: Mapping[str, object]) -> None:
    """Refuse a manifest whose fields differ from what this version writes: anyone can make a valid seal."""
    known, facts = as_manifest(manifest), run_facts(manifest)
    if facts.rows is not None and facts.rows not in known.files:
        raise DataError.of("malformed-run-facts", rows=facts.rows)
    if facts.rows is not None and None in (facts.layout, facts.positive, facts.negative):
        raise DataError.of("malformed-run-facts/names")


def require_complete(folder: str | Path) -> dict[str, object]:
    """Return the manifest of a finished run with unchanged files; an unfinished run is exit code 4."""
    manifest = load_manifest(folder)
    if manifest["state"] != "complete":
        done = len({record.get("item") for _, record in _all(Path(folder), None)})
        raise IncompleteRun.of(
            "run-unfinished/items", folder=folder, state=manifest["state"], done=done, n_items=manifest["n_items"]
        )
    manifest.setdefault("facts", {})
    wrong = verify(folder)
    if wrong:
        raise DataError.of("changed-run", folder=folder, wrong="; ".join(wrong[:5]))
    return manifest


def verify(folder: str | Path) -> list[str]:
    """Return the differences from the digests of a finished run, if any.

    This makes changes evident; it is not a proof against a deliberate forgery.
    """
    folder = Path(folder)
    wrong: list[str] = []
    known = as_manifest(load_manifest(folder)).files
    for name in sorted({*known, *(f"{ITEMS}/{p.name}" for p in segments(folder))}):
        path = folder / name
        if name not in known:
            wrong.append(f"{name} was added")
        elif not path.is_file():
            wrong.append(f"{name} is missing")
        elif artifacts.file_digest(path) != known[name]:
            wrong.append(f"{name} was changed")
    return wrong


def segments(folder: Path) -> list[Path]:
    """Return the non-empty segments of a run, in order."""
    return [p for p in sorted((folder / ITEMS).glob("*.jsonl")) if p.stat().st_size]


class RecordIndex:
    """Where the record of each of `n` items is: its first success, else its last failure.

    Only places are kept in memory; a record is read from its segment when it is asked for. With `items`, the ids are
    checked; in a run that may grow, they decide the position.
    """

    def __init__(self, folder: Path, items: Sequence[str] | None, n: int, may_grow: bool = False) -> None:
        self._paths = segments(folder)
        self._file, self._offset = np.full(n, -1, dtype=np.int32), np.zeros(n, dtype=np.int64)
        is_good, places = np.zeros(n, dtype=bool), Places(items, may_grow)
        for number, path in enumerate(self._paths):
            reader, start = SegmentReader(path), 0
            for record in reader.records():
                at = places.of(record, path)
                if not is_good[at]:
                    self._file[at], self._offset[at], is_good[at] = number, start, "error" not in record
                start = reader.offset

    def read(self, positions: Iterable[int] | None = None) -> Iterator[tuple[int, dict[str, object]]]:
        """Yield position and record of the items that have one: of these positions, or of all as they were written."""
        known = self._file >= 0
        order = np.lexsort((self._offset, self._file)) if positions is None else positions
        with ExitStack() as stack:
            files = [stack.enter_context(path.open("rb")) for path in self._paths]
            for at in order:
                if known[at]:
                    file = files[self._file[at]]
                    file.seek(int(self._offset[at]))
                    yield int(at), json.loads(file.readline())


def chosen(
    folder: Path, items: Sequence[str] | None, n: int, may_grow: bool = False
) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield position and record of each of `n` items, as they were written: its first success, else its last failure."""
    yield from RecordIndex(folder, items, n, may_grow).read()


def sealed(manifest: Mapping[str, object]) -> bytes:
    """Return the bytes of a manifest, with a seal over all its other fields."""
    return json.dumps(artifacts.sealed(manifest, "seal"), indent=1, sort_keys=True).encode() + b"\n"


def differences(one: object, other: object, name: str = "") -> list[str]:
    """Describe where two configurations differ.

    >>> differences({"cut": 4, "model": {"sha": "a"}}, {"cut": 5, "model": {"sha": "a"}})
    ['cut: 4 before, 5 now']
    """
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted({*one, *other})
        return [d for k in keys for d in differences(one.get(k), other.get(k), f"{name}.{k}" if name else k)]
    return [] if one == other else [f"{name}: {json.dumps(one)} before, {json.dumps(other)} now"]


def items_digest(items: Sequence[str]) -> str:
    """Return a short hash of ids in their order."""
    return hashlib.sha256("\x1f".join(items).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _all(folder: Path, items: Sequence[str] | None, may_grow: bool = False) -> Iterator[tuple[int, dict[str, object]]]:
    places = Places(items, may_grow)
    for path in segments(folder):
        for record in SegmentReader(path).records():
            yield places.of(record, path), record


class Places:
    """Positions of records: as they say, or by the name of their item if the run has grown since."""

    def __init__(self, items: Sequence[str] | None, may_grow: bool = False) -> None:
        self._items, self._may_grow = items, may_grow
        self._by_name: dict[str, int] | None = None

    def of(self, record: Mapping[str, object], path: Path) -> int:
        """Return the position of a record; refuse one of an item that is not in the run."""
        at, name, items = record.get("at"), record.get("item"), self._items
        if not isinstance(at, int) or at < 0:
            raise _foreign(path, name)
        if items is None or (at < len(items) and items[at] == name):
            return at
        if self._by_name is None:
            self._by_name = {item: i for i, item in enumerate(items)} if self._may_grow else {}
        if name not in self._by_name:
            raise _foreign(path, name)
        return self._by_name[str(name)]


def _foreign(path: Path, name: object) -> DataError:
    return DataError.of("damaged-run/record", path_name=path.name, name=name)
