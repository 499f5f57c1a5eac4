"""The run store: a folder of append-only segments that survives crashes of the processes that write it."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Final

import numpy as np
import polars as pl

from hitmiss._version import __version__
from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, EnvironmentFault, Fault, HitmissError, IncompleteRun, UsageError
from hitmiss.io.write import parquet

# ----------------------------------------------------------------------
# Who works on a run: an owner with a heartbeat, and claims on parts of the work that end with their process.

BEAT_SECONDS: Final = 2.0
EXPIRY_SECONDS: Final = 30.0
"""An owner without a heartbeat for this long is considered dead."""

GUARD: Final = 2**40
"""The byte of the claims file that guards short steps: taking the lock, finishing. Parts are far below it."""


class Owner:
    """The one process that owns a run. Other processes are refused with a message that names it, or join it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_held = False

    def take(self, can_join: bool = True) -> None:
        """Become the owner; an owner that no longer runs is replaced."""
        standing = self.standing()
        if standing is not None:
            beside = ", or work beside it with --join" if can_join else ""
            raise EnvironmentFault(f"process {standing[0]} on {standing[1]} works on this run; wait for it{beside}")
        self.path.unlink(missing_ok=True)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(fd, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
        os.close(fd)
        self.is_held = True

    def standing(self) -> tuple[int, str] | None:
        """Return the process id and host of the running owner, or None."""
        try:
            known = json.loads(self.path.read_bytes())
            pid, host = int(known["pid"]), str(known["host"])
            age = time.time() - self.path.stat().st_mtime
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        if age > EXPIRY_SECONDS or (host == socket.gethostname() and not _is_alive(pid)):
            return None
        return pid, host

    def beat(self) -> None:
        """Update the heartbeat, which shows that the owner still runs."""
        if self.is_held:
            with suppress(OSError):
                os.utime(self.path)

    def leave(self) -> None:
        """Give up ownership."""
        if self.is_held:
            self.path.unlink(missing_ok=True)
            self.is_held = False


class Claims:
    """Parts of the work, each a byte of a file that one process locks. The system frees the locks when it ends."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def take(self, part: int) -> bool:
        """Claim a part; return False if another running process holds it."""
        fcntl = _needed_locks()
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, part)
        except OSError:
            return False
        return True

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Enter a section that only one process at a time may run."""
        fcntl = _needed_locks()
        fcntl.lockf(self._fd, fcntl.LOCK_EX, 1, GUARD)
        try:
            yield
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, GUARD)

    def close(self) -> None:
        """Release all claims."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def file_locks() -> ModuleType | None:
    """Return the system's file locks; None if it has none (Windows)."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


def _needed_locks() -> ModuleType:
    found = file_locks()
    if found is None:
        raise EnvironmentFault(
            "runs are written with file locks, which this system does not have (detect, attack and llm run on Linux and macOS); "
            "score, toxicity, triage, compare, gate and report need none",
            code="no-file-locks",
        )
    return found


# ----------------------------------------------------------------------
# Append-only segments: one file per writer, one JSON object per line, each line written by one call.
#
# If a process is killed, every record whose `append` has returned is kept; if the machine loses power, at most the
# records since the last fsync (0.5 s or 64 lines) are lost. An incomplete last line is recognised and cut off.

SYNC_SECONDS: Final = 0.5
SYNC_LINES: Final = 64
SAFE: Final = "what was written before is safe: free some space and run again with --resume"


class SegmentWriter:
    """Writes one segment. While open it holds a lock on the file, which other processes can see."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self._fd = _create(folder)
        self._size = self._unsynced = 0
        self._synced_at = time.monotonic()
        artifacts.sync_folder(folder)

    def append(self, record: Mapping[str, object]) -> None:
        """Write one record. Once this returns, killing the process cannot lose it."""
        line = json.dumps(record, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        write_whole(self._fd, line, self._size)
        self._size += len(line)
        self._unsynced += 1
        if self._unsynced >= SYNC_LINES or time.monotonic() - self._synced_at >= SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Flush the written records to disk."""
        if self._unsynced and self._fd >= 0:
            self._unsynced = 0
            self._synced_at = time.monotonic()
            os.fsync(self._fd)

    def close(self) -> None:
        """Sync and close; a segment without a line is removed."""
        if self._fd < 0:
            return
        with suppress(OSError):
            self.sync()
        if not self._size:
            with suppress(OSError):
                self.path.unlink()
        os.close(self._fd)
        self._fd = -1


@dataclass
class SegmentReader:
    """Reads the complete records of a segment, and continues from there on the next call."""

    path: Path
    offset: int = 0
    line: int = 0

    def records(self) -> Iterator[dict[str, object]]:
        """Yield the complete records since the last call. Anything after the last complete one is left for later."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            for raw in file:
                record = _record(raw)
                if record is None:
                    self._refuse_damage(raw, file.read())
                    return
                self.offset += len(raw)
                self.line += 1
                yield record

    def _refuse_damage(self, raw: bytes, rest: bytes) -> None:
        """Refuse a line that is not a record, unless it is an incomplete tail: no complete record follows it."""
        if any(_record(line) is not None for line in rest.splitlines(keepends=True)):
            fault = Fault(
                "damaged-run", "the line is not a record", self.path.name, self.line + 1, value=repr(raw[:60])
            )
            raise DataError(f"the run is damaged: {fault}; the lines after it are whole", [fault])


def cut_torn_tail(path: Path) -> int:
    """Cut off what follows the last complete record of a segment without a running writer; return the bytes removed."""
    if is_live(path):
        return 0
    reader = SegmentReader(path)
    for _ in reader.records():
        pass
    torn = path.stat().st_size - reader.offset
    if torn:
        with path.open("r+b") as file:
            file.truncate(reader.offset)
            os.fsync(file.fileno())
    return torn


def is_live(path: Path) -> bool:
    """Return whether a running process holds the file."""
    fd = os.open(path, os.O_RDWR)
    try:
        return not _lock(fd)
    finally:
        os.close(fd)


def write_whole(fd: int, data: bytes, size: int) -> None:
    """Write all of `data` in one call; if the disk takes less, cut the file back to `size` and report a disk error."""
    try:
        if artifacts.push(fd, data) == len(data):
            return
        reason = "the disk took only a part of a record"
    except OSError as error:
        if error.errno not in artifacts.FULL:
            raise
        reason = os.strerror(error.errno or 0)
    with suppress(OSError):
        os.ftruncate(fd, size)
    raise artifacts.disk_full(reason, then=SAFE)


def replace_file(path: Path, data: bytes, *, is_final: bool = False) -> None:
    """Replace a file of a run atomically: completely or not at all."""
    artifacts.write(path, data, then=SAFE, is_state=True, is_final=is_final)


def _record(raw: bytes) -> dict[str, object] | None:
    if not raw.endswith(b"\n"):
        return None
    try:
        record = json.loads(raw)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _create(folder: Path) -> tuple[Path, int]:
    """Create a file with the next free number, locked by this process."""
    number = 1 + max((int(p.stem) for p in folder.glob("*.jsonl") if p.stem.isdigit()), default=0)
    while True:
        path = folder / f"{number:06d}.jsonl"
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | artifacts.BINARY, 0o644)
        except FileExistsError:
            number += 1
            continue
        _lock(fd)
        return path, fd


def _lock(fd: int) -> bool:
    fcntl = file_locks()
    if fcntl is None:
        return True  # no other process can hold it: sharing a run between processes requires locks (see `Claims`)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# ----------------------------------------------------------------------
# The run store: a folder that survives crashes of the processes that write it.
#
#     run/manifest.json      what was asked (the configuration), the state, and at the end the digest of every file
#     run/items/*.jsonl      one append-only segment per writer, one line per item
#     run/trials.parquet     the finished table, put in place atomically
#     run/owner.json         which process works on it now
#
#     with start("run", kind="detect", config={...}, items=ids) as run:
#         for at in run.todo():                       # positions of items that are not done yet
#             run.add(at, {"score": 0.5})             # or {"error": "cannot be decoded"}
#         if run.is_done:
#             run.finish(table)
#
# Started again with `resume=True`, it continues where it stopped; a different configuration is refused with the
# differences. With `join=True` several processes share the work. Detection, attacks and the export of LLM runs all use
# it.

SCHEMA: Final = 1
PART: Final = 64
"""How many items a process claims at once."""
MANIFEST, TABLE, ITEMS, OWNER, CLAIMS = "manifest.json", "trials.parquet", "items", "owner.json", "claims"
FILES, MEDIA = "files.parquet", "media"
"""The table with the file of each item, and the fact with the path of those files, relative to the run's folder."""


class Run:
    """A run in progress; see `start`."""

    def __init__(
        self, folder: Path, manifest: dict[str, object], items: Sequence[str], owner: Owner, claims: Claims
    ) -> None:
        self.folder, self.manifest, self.items = folder, manifest, items
        self.torn = 0
        self.has_error = np.zeros(len(items), dtype=bool)
        self._done = np.zeros(len(items), dtype=bool)
        self._owner, self._claims = owner, claims
        self._readers: dict[Path, SegmentReader] = {}
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
        yield from chosen(self.folder, self.items, len(self.items))

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
            self.manifest |= {"facts": facts, "files": {n: _sha(self.folder / n) for n in sorted(names)}}
            self._save("complete")

    def close(self, error: BaseException | None = None) -> None:
        """Sync, leave, and record how the run ended unless it is complete."""
        if self._end.is_set():
            return
        self._end.set()
        self._heart.join()
        self._writer.close()
        with suppress(OSError, HitmissError):
            if self._owner.is_held and _state(self.folder) != "complete":
                self._save("interrupted" if isinstance(error, KeyboardInterrupt) else "stopped")
        self._owner.leave()
        self._claims.close()

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
                at = _position(record, self.items, path)
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
    can_join: bool = True,
) -> Run:
    """Begin a run, continue one (`resume`), or work beside its owner (`join`, if the verb supports it: `can_join`).

    `config` pins everything that could change a result; a resumed run must have the same configuration. A folder that
    already holds a run is refused unless the run is resumed or joined.
    """
    folder = Path(folder)
    wanted = json.loads(json.dumps(config))
    fresh = _is_fresh(folder, resume or join)
    folder.mkdir(parents=True, exist_ok=True)
    claims, owner = Claims(folder / CLAIMS), Owner(folder / OWNER)
    try:
        with claims.guard():
            if not join or owner.standing() is None:
                owner.take(can_join)
            manifest = _begin(folder, kind, wanted, items) if fresh else _continue(folder, kind, wanted, items)
            torn = sum(map(cut_torn_tail, segments(folder)))
        run = Run(folder, manifest, items, owner, claims)
        run.torn = torn
        run._look()
    except BaseException:
        owner.leave()
        claims.close()
        raise
    return run


def load_manifest(folder: str | Path) -> dict[str, object]:
    """Read the manifest of a run; refuse a folder without one, with another schema, or with a broken seal."""
    path = Path(folder) / MANIFEST
    for name in (MANIFEST, TABLE):
        artifacts.note_input(Path(folder) / name)
    try:
        data = path.read_bytes()
        manifest = json.loads(data)
    except FileNotFoundError:
        raise UsageError(f"{folder} is not a run: it has no {MANIFEST}") from None
    except ValueError:
        raise DataError(f"{path} is not JSON: the run was edited or damaged") from None
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema != SCHEMA:
        raise DataError(f"{folder}: the run has schema {schema!r}; this version of hitmiss reads schema {SCHEMA}")
    try:
        is_sound = data == sealed(manifest)
    except ValueError:  # NaN or a number beyond every float, which no manifest holds
        is_sound = False
    if not is_sound:
        raise DataError(f"{path} does not match its own seal: the run was edited or damaged")
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
        raise DataError(f"the run names rows ({facts.rows}) that are not among its files", code="malformed-run-facts")
    if facts.rows is not None and None in (facts.layout, facts.positive, facts.negative):
        raise DataError("the run names rows and not how to read them", code="malformed-run-facts")


def require_complete(folder: str | Path) -> dict[str, object]:
    """Return the manifest of a finished run with unchanged files; an unfinished run is exit code 4."""
    manifest = load_manifest(folder)
    if manifest["state"] != "complete":
        done = len({at for at, _ in _all(Path(folder), None)})
        raise IncompleteRun(
            f"{folder}: the run is not finished ({manifest['state']}, {done:,} of {manifest['n_items']:,} items); "
            f"go on with the same command and --resume"
        )
    manifest.setdefault("facts", {})
    wrong = verify(folder)
    if wrong:
        raise DataError(f"{folder}: the run was changed after it was finished: {'; '.join(wrong[:5])}")
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
        elif _sha(path) != known[name]:
            wrong.append(f"{name} was changed")
    return wrong


def segments(folder: Path) -> list[Path]:
    """Return the non-empty segments of a run, in order."""
    return [p for p in sorted((folder / ITEMS).glob("*.jsonl")) if p.stat().st_size]


def chosen(folder: Path, items: Sequence[str] | None, n: int) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield position and record of each of `n` items: its first success, else its last failure.

    With `items`, the ids are checked.
    """
    best, is_good = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=bool)
    for line, (at, record) in enumerate(_all(folder, items)):
        if not is_good[at]:
            best[at], is_good[at] = line, "error" not in record
    yield from ((at, record) for line, (at, record) in enumerate(_all(folder, items)) if best[at] == line)


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


def _is_fresh(folder: Path, may_exist: bool) -> bool:
    if not (folder / MANIFEST).exists():
        if folder.is_dir() and any(p.name not in (CLAIMS, OWNER) for p in folder.iterdir()):
            raise UsageError(f"{folder} exists and holds no run; give an empty or a new folder")
        return True
    if may_exist:
        return False
    state = load_manifest(folder)["state"]
    if state == "complete":
        raise UsageError(f"{folder} holds a finished run; give another folder")
    raise IncompleteRun(f"{folder} holds a run that is not finished ({state}); go on with --resume")


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


def _continue(folder: Path, kind: str, config: dict[str, object], items: Sequence[str]) -> dict[str, object]:
    manifest = load_manifest(folder)
    known = as_manifest(manifest)
    before = {"kind": known.kind, "items": [known.n_items, known.items_digest], **known.config}
    differing = differences(before, {"kind": kind, "items": [len(items), items_digest(items)], **config})
    if differing:
        raise IncompleteRun(
            f"{folder} was begun with another configuration: {'; '.join(differing)}; "
            f"give what it was begun with, or another folder",
            code="other-configuration",
        )
    if manifest["state"] != "complete":
        manifest["state"] = "running"
        replace_file(folder / MANIFEST, sealed(manifest))
    return manifest


def items_digest(items: Sequence[str]) -> str:
    """Return a short hash of ids in their order."""
    return _hash("\x1f".join(items).encode("utf-8", "surrogatepass"))[:16]


def _all(folder: Path, items: Sequence[str] | None) -> Iterator[tuple[int, dict[str, object]]]:
    for path in segments(folder):
        for record in SegmentReader(path).records():
            yield _position(record, items, path), record


def _position(record: dict[str, object], items: Sequence[str] | None, path: Path) -> int:
    at = record.get("at")
    if (
        not isinstance(at, int)
        or at < 0
        or (items is not None and (at >= len(items) or items[at] != record.get("item")))
    ):
        raise DataError(
            f"{path.name} holds a record of {record.get('item')!r}, which is not among the items of the run"
        )
    return at


def _state(folder: Path) -> str:
    return str(load_manifest(folder)["state"])


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _sha(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
