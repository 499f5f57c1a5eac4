"""The file of a review: created completely, opened only if it is a review, continued only with the same settings."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hitmiss._version import __version__
from hitmiss.core.errors import DataError, IncompleteRun, UsageError
from hitmiss.review.store import Entry, Store
from hitmiss.runs.manifest import differences

SCHEMA: Final = 1
APPLICATION: Final = 0x484D5256
"""Marks the file as a review of hitmiss: "HMRV"."""
BUSY_SECONDS: Final = 30.0
TABLES: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE items (at INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, item TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
    source TEXT NOT NULL, shown TEXT NOT NULL);
CREATE TABLE reviewers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, folded TEXT NOT NULL UNIQUE, role TEXT NOT NULL,
    since REAL NOT NULL);
CREATE TABLE leases (reviewer INTEGER PRIMARY KEY REFERENCES reviewers, item INTEGER NOT NULL REFERENCES items,
    shown REAL NOT NULL, until REAL NOT NULL);
CREATE TABLE verdicts (item INTEGER NOT NULL REFERENCES items, reviewer INTEGER NOT NULL REFERENCES reviewers,
    verdict TEXT NOT NULL, note TEXT NOT NULL, seconds REAL, time REAL NOT NULL, event INTEGER NOT NULL,
    PRIMARY KEY (item, reviewer));
CREATE TABLE decisions (item INTEGER PRIMARY KEY REFERENCES items, reviewer INTEGER NOT NULL REFERENCES reviewers,
    verdict TEXT NOT NULL, note TEXT NOT NULL, seconds REAL, time REAL NOT NULL, event INTEGER NOT NULL);
CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, kind TEXT NOT NULL, item INTEGER NOT NULL,
    reviewer INTEGER NOT NULL, verdict TEXT NOT NULL, note TEXT NOT NULL, seconds REAL);
CREATE INDEX leases_of_item ON leases (item);
CREATE INDEX verdicts_of_reviewer ON verdicts (reviewer, event);
"""


def open_store(path: str | Path) -> Store:
    """Open a review that was started; refuse any other file with an error message."""
    path = Path(path)
    if not path.is_file():
        raise UsageError.of("no-review", path_name=path.name)
    connection = _connect(path)
    try:
        application, version = (
            connection.execute(f"PRAGMA {p}").fetchone()[0] for p in ("application_id", "user_version")
        )
    except sqlite3.DatabaseError:
        connection.close()
        raise DataError.of("not-a-review", path_name=path.name) from None
    if application != APPLICATION or version != SCHEMA:
        connection.close()
        found = f"schema {version}" if application == APPLICATION else "another program's tables"
        raise DataError.of("review-schema", path_name=path.name, found=found, SCHEMA=SCHEMA)
    return Store(path, connection)


def begin(path: str | Path, config: Mapping[str, object], entries: Sequence[Entry]) -> Store:
    """Start a review, or continue the one in the file if its settings are the same; otherwise report the difference."""
    path, wanted = Path(path), json.loads(json.dumps(config))
    if path.exists():
        store = open_store(path)
        differing = differences(store.config, wanted)
        if differing:
            store.close()
            raise IncompleteRun.of("begun-otherwise", path_name=path.name, differing="; ".join(differing))
        return store
    if not entries:
        raise DataError.of("nothing-to-review")
    if not path.parent.is_dir():
        raise UsageError.of("no-folder/review", parent=path.parent)
    _create(path, wanted, entries)
    return open_store(path)


def _create(path: Path, config: Mapping[str, object], entries: Sequence[Entry]) -> None:
    """Create the file under a temporary name and move it into place, so that no half-made review can exist."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    beside.touch(mode=0o600)
    try:
        connection = sqlite3.connect(beside, isolation_level=None)
        try:
            connection.executescript(f"BEGIN;{TABLES}")
            facts = {"config": json.dumps(config), "secret": secrets.token_hex(32), "hitmiss": __version__}
            connection.executemany("INSERT INTO meta VALUES (?, ?)", facts.items())
            rows = [
                (at, secrets.token_urlsafe(12), e.item, e.kind, e.source, json.dumps(dict(e.shown)))
                for at, e in enumerate(entries)
            ]
            connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", rows)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
            connection.execute("COMMIT")
        finally:
            connection.close()
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.DatabaseError:
        connection.close()
        raise DataError.of("not-a-review", path_name=path.name) from None
    return connection
