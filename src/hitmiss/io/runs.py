"""The run store: a folder of append-only segments that survives whatever happens to the processes that write it."""

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
from types import TracebackType
from typing import Any, Final

import numpy as np
import polars as pl

from hitmiss._version import __version__
from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, EnvironmentFault, Fault, HitmissError, IncompleteRun, UsageError
from hitmiss.io.write import parquet

# ----------------------------------------------------------------------
# Who works on a run: an owner with a heartbeat, and claims on parts of the work that die with their process.

BEAT_SECONDS: Final = 2.0
EXPIRY_SECONDS: Final = 30.0
"""An owner whose heart has not beaten for this long is taken for dead."""

GUARD: Final = 2**40
"""The byte of the claims file that guards short steps: taking the lock, finishing. Parts are far below it."""


class Owner:
    """The one process that owns a run. Others are turned away with its name, or join."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_held = False

    def take(self, can_join: bool = True) -> None:
        """Become the owner; an owner that is gone is replaced."""
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
        """Process id and host of the living owner, or None."""
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
        """Show that the owner lives."""
        if self.is_held:
            with suppress(OSError):
                os.utime(self.path)

    def leave(self) -> None:
        """Stop being the owner."""
        if self.is_held:
            self.path.unlink(missing_ok=True)
            self.is_held = False


class Claims:
    """Parts of the work, each a byte of a file that one process locks. The system frees them when it dies."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def take(self, part: int) -> bool:
        """Claim a part; False where another living process has it."""
        fcntl = _needed_locks()
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, part)
        except OSError:
            return False
        return True

    @contextmanager
    def guard(self) -> Iterator[None]:
        """A step that one process at a time may take."""
        fcntl = _needed_locks()
        fcntl.lockf(self._fd, fcntl.LOCK_EX, 1, GUARD)
        try:
            yield
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, GUARD)

    def close(self) -> None:
        """Free all claims."""
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


def file_locks() -> Any:
    """The system's locks on files; None where it has none (Windows)."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


def _needed_locks() -> Any:
    found = file_locks()
    if found is None:
        raise EnvironmentFault(
            "runs are written with file locks, which this system has not (detect, attack and llm run on Linux and macOS); "
            "score, toxicity, triage, compare, gate and report need none",
            code="no-file-locks",
        )
    return found


# ----------------------------------------------------------------------
# Append-only segments: one file a writer, one JSON object a line, each line written by one call.
#
# A process that is killed loses nothing that `append` has returned from; a machine that loses power loses at most what was
# written since the last fsync (0.5 s or 64 lines). A torn last line is recognised and cut off.

SYNC_SECONDS: Final = 0.5
SYNC_LINES: Final = 64
SAFE: Final = "what was written before is safe: make room and run again with --resume"


class SegmentWriter:
    """Writes one segment of its own. While it lives it holds a lock on the file; others can see that it does."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self._fd = _create(folder)
        self._size = self._unsynced = 0
        self._synced_at = time.monotonic()
        artifacts.sync_folder(folder)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record. When this returns, killing the process cannot lose it."""
        line = json.dumps(record, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        write_whole(self._fd, line, self._size)
        self._size += len(line)
        self._unsynced += 1
        if self._unsynced >= SYNC_LINES or time.monotonic() - self._synced_at >= SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Have the disk hold what was written."""
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
    """Reads a segment as far as it is whole, and goes on from there when asked again."""

    path: Path
    offset: int = 0
    line: int = 0

    def records(self) -> Iterator[dict[str, Any]]:
        """The whole records since the last call. What follows the last whole one is left for later."""
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
        """A line that is no record is a torn tail only where no whole record follows it."""
        if any(_record(line) is not None for line in rest.splitlines(keepends=True)):
            fault = Fault("damaged-run", "the line is no record", self.path.name, self.line + 1, value=repr(raw[:60]))
            raise DataError(f"the run is damaged: {fault}; the lines after it are whole", [fault])


def cut_torn_tail(path: Path) -> int:
    """Cut off what follows the last whole record of a segment whose writer is gone; how many bytes that was."""
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
    """Whether a living process holds the file."""
    fd = os.open(path, os.O_RDWR)
    try:
        return not _lock(fd)
    finally:
        os.close(fd)


def write_whole(fd: int, data: bytes, size: int) -> None:
    """One write call for all of `data`; where the disk takes less, the file is cut back to `size` and the disk is blamed."""
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
    """Put a file of a run in place whole or not at all."""
    artifacts.write(path, data, then=SAFE, is_state=True, is_final=is_final)


def _record(raw: bytes) -> dict[str, Any] | None:
    if not raw.endswith(b"\n"):
        return None
    try:
        record = json.loads(raw)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _create(folder: Path) -> tuple[Path, int]:
    """The next free number as a new file, held by this process."""
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
        return True  # nobody else can hold it, as a run that several processes share needs locks (see `Claims`)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# ----------------------------------------------------------------------
# The run store: a folder that survives whatever happens to the processes that write it.
#
#     run/manifest.json      what was asked (the configuration), the state, and at the end the digest of every file
#     run/items/*.jsonl      one append-only segment a writer, one line an item
#     run/trials.parquet     the finished table, put in place whole
#     run/owner.json         who works on it now
#
#     with start("run", kind="detect", config={...}, items=ids) as run:
#         for at in run.todo():                       # positions of items that nobody has done
#             run.add(at, {"score": 0.5})             # or {"error": "cannot be decoded"}
#         if run.is_done:
#             run.finish(table)
#
# Started again with `resume=True` it goes on where it stopped; another configuration is refused with the difference. With
# `join=True` several processes share the work. Detection, attacks and the export of LLM runs all use it.

SCHEMA: Final = 1
PART: Final = 64
"""How many items a process claims at once."""
MANIFEST, TABLE, ITEMS, OWNER, CLAIMS = "manifest.json", "trials.parquet", "items", "owner.json", "claims"
FILES, MEDIA = "files.parquet", "media"
"""The table with the file of each item, and the fact that says where those files lay, seen from the run's folder."""


class Run:
    """A run in progress; see `start`."""

    def __init__(
        self, folder: Path, manifest: dict[str, Any], items: Sequence[str], owner: Owner, claims: Claims
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
        """How many items are done, by anybody, as far as is known."""
        return int(self._done.sum())

    @property
    def is_done(self) -> bool:
        """Whether every item is done; what other processes have written is looked up."""
        if not self._done.all():
            self._look()
        return bool(self._done.all())

    def todo(self, retry: bool = False) -> Iterator[int]:
        """Positions of the items that nobody has done or works on, claimed part by part. `retry`: failed ones too."""
        again = self.has_error.copy() if retry else None
        for start in range(0, len(self.items), PART):
            part = slice(start, start + PART)
            open_ = ~self._done[part] if again is None else ~self._done[part] | again[part]
            if not open_.any() or not self._claims.take(start // PART):
                continue
            self._look()  # its last owner may have done some of it since
            open_ = ~self._done[part] if again is None else ~self._done[part] | (again[part] & self.has_error[part])
            yield from (start + np.flatnonzero(open_)).tolist()

    def add(self, at: int, record: Mapping[str, Any]) -> None:
        """Write what came of an item. When this returns, it is safe. An `error` in it marks the item as failed."""
        self._writer.append({"at": at, "item": self.items[at], **record})
        self._done[at] = True
        self.has_error[at] = "error" in record

    def records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Position and record of every item done, each once: a success beats a failure, the first success the others."""
        yield from chosen(self.folder, self.items, len(self.items))

    @property
    def segment(self) -> str:
        """The name of this writer's segment."""
        return self._writer.path.stem

    def sync(self) -> None:
        """Have the disk hold what was written."""
        self._writer.sync()

    def finish(self, table: pl.DataFrame, files: Sequence[str] = (), **facts: Any) -> None:
        """Put the table in place, write down the digest of every file, and call the run complete.

        `files` are further files of the folder to be pinned; `facts` go into the manifest.
        """
        self.sync()
        with self._claims.guard():
            replace_file(self.folder / TABLE, parquet(table))
            names = [TABLE, *files, *(f"{ITEMS}/{p.name}" for p in segments(self.folder))]
            self.manifest |= {"facts": facts, "files": {n: _sha(self.folder / n) for n in sorted(names)}}
            self._save("complete")

    def close(self, error: BaseException | None = None) -> None:
        """Sync, leave, and write down how it ended unless the run is complete."""
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
        """Take note of what the segments say that was not known yet."""
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
    config: Mapping[str, Any],
    items: Sequence[str],
    resume: bool = False,
    join: bool = False,
    can_join: bool = True,
) -> Run:
    """Begin a run, go on with one (`resume`), or work beside its owner (`join`, where the verb has it: `can_join`).

    `config` pins everything that could change a result; a resumed run must have the same. A folder that holds a run
    already, and is neither resumed nor joined, is refused.
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


def load_manifest(folder: str | Path) -> dict[str, Any]:
    """The manifest of a run; a folder without one, of another schema, or whose seal is broken, is refused."""
    path = Path(folder) / MANIFEST
    for name in (MANIFEST, TABLE):
        artifacts.note_input(Path(folder) / name)
    try:
        data = path.read_bytes()
        manifest = json.loads(data)
    except FileNotFoundError:
        raise UsageError(f"{folder} is no run: it has no {MANIFEST}") from None
    except ValueError:
        raise DataError(f"{path} is no JSON: the run was edited or damaged") from None
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema != SCHEMA:
        raise DataError(f"{folder}: the run has schema {schema!r}; this version of hitmiss reads schema {SCHEMA}")
    if data != sealed(manifest):
        raise DataError(f"{path} does not match its own seal: the run was edited or damaged")
    _check_form(manifest)
    return dict(manifest)


@dataclass(frozen=True)
class _Manifest:
    """The fields of a manifest."""

    schema: int
    kind: str
    hitmiss: str
    config: Mapping[str, Any]
    n_items: int
    items_digest: str
    state: str
    started: str
    ended: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    seal: str = ""


@dataclass(frozen=True)
class _Facts:
    """Those facts of a finished run that readers go by; a run may state others."""

    positive: str | None = None
    negative: str | None = None
    has_labels: bool = False
    score_kind: str = "raw"
    numbers: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    n_scored: int = 0
    n_failed: int = 0
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    rows: str | None = None
    layout: str | None = None
    media: str | None = None


def _check_form(manifest: Mapping[str, Any]) -> None:
    """Refuse a manifest whose fields are not what this version writes: anybody can make a new seal."""
    known = artifacts.check(_Manifest, manifest, "run facts")
    own = {f.name for f in fields(_Facts)}
    facts = artifacts.check(_Facts, {k: v for k, v in known.facts.items() if k in own}, "run facts", ("facts",))
    if facts.rows is not None and facts.rows not in known.files:
        raise DataError(f"the run names rows ({facts.rows}) that are none of its files", code="malformed-run-facts")
    if facts.rows is not None and None in (facts.layout, facts.positive, facts.negative):
        raise DataError("the run names rows and not how to read them", code="malformed-run-facts")


def require_complete(folder: str | Path) -> dict[str, Any]:
    """The manifest of a finished run whose files are what they were; an unfinished one is exit code 4."""
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
    """What differs from the digests that a finished run wrote down; empty where nothing does. Tamper-evident, no proof."""
    folder = Path(folder)
    wrong: list[str] = []
    known = load_manifest(folder).get("files", {})
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
    """The segments of a run that hold anything, in order."""
    return [p for p in sorted((folder / ITEMS).glob("*.jsonl")) if p.stat().st_size]


def chosen(folder: Path, items: Sequence[str] | None, n: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Position and record of each of `n` items: its first success, else its last failure. With `items`, ids are checked."""
    best, is_good = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=bool)
    for line, (at, record) in enumerate(_all(folder, items)):
        if not is_good[at]:
            best[at], is_good[at] = line, "error" not in record
    yield from ((at, record) for line, (at, record) in enumerate(_all(folder, items)) if best[at] == line)


def sealed(manifest: Mapping[str, Any]) -> bytes:
    """The bytes of a manifest, with a seal over all its other fields."""
    return json.dumps(artifacts.sealed(manifest, "seal"), indent=1, sort_keys=True).encode() + b"\n"


def differences(one: Any, other: Any, name: str = "") -> list[str]:
    """Where two configurations differ, in words.

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


def _begin(folder: Path, kind: str, config: dict[str, Any], items: Sequence[str]) -> dict[str, Any]:
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


def _continue(folder: Path, kind: str, config: dict[str, Any], items: Sequence[str]) -> dict[str, Any]:
    manifest = load_manifest(folder)
    before = {"kind": manifest["kind"], "items": [manifest["n_items"], manifest["items_digest"]], **manifest["config"]}
    differing = differences(before, {"kind": kind, "items": [len(items), items_digest(items)], **config})
    if differing:
        raise IncompleteRun(
            f"{folder} was begun with another configuration: {'; '.join(differing)}; "
            f"give what it was begun with, or another folder"
        )
    if manifest["state"] != "complete":
        manifest["state"] = "running"
        replace_file(folder / MANIFEST, sealed(manifest))
    return manifest


def items_digest(items: Sequence[str]) -> str:
    """Short hash of ids in their order."""
    return _hash("\x1f".join(items).encode("utf-8", "surrogatepass"))[:16]


def _all(folder: Path, items: Sequence[str] | None) -> Iterator[tuple[int, dict[str, Any]]]:
    for path in segments(folder):
        for record in SegmentReader(path).records():
            yield _position(record, items, path), record


def _position(record: dict[str, Any], items: Sequence[str] | None, path: Path) -> int:
    at = record.get("at")
    if (
        not isinstance(at, int)
        or at < 0
        or (items is not None and (at >= len(items) or items[at] != record.get("item")))
    ):
        raise DataError(f"{path.name} holds a record of {record.get('item')!r}, which is none of the run's items")
    return at


def _state(folder: Path) -> Any:
    return load_manifest(folder)["state"]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _sha(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
