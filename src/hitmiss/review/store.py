"""The file that holds a review, the queue of items for reviewers, and the decisions where people disagree."""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
import time
import unicodedata
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from hitmiss._version import __version__
from hitmiss.core.convert import fit
from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, IncompleteRun, UnknownName, UsageError
from hitmiss.runs.manifest import differences

# ----------------------------------------------------------------------
# The file that holds a review: one SQLite database. A verdict that was acknowledged survives kill -9.
#
#     items       what is to be judged, in the order of asking; `key` is the name that the browser sees
#     reviewers   the people who have signed in, and their role
#     leases      which reviewer looks at which item now; one per reviewer
#     verdicts    the current verdicts: one per reviewer and item
#     decisions   the decisions of adjudicators: one per item
#     events      everything that happened, in order; nothing is ever removed from it
#     meta        how the review was started
#
# It uses a write-ahead log (WAL), synced at every commit. A blind review contains no label and no verdict of a model.

LONGEST_NAME: Final = 60
REVIEWER, ADJUDICATOR = "reviewer", "adjudicator"


@dataclass(frozen=True)
class Entry:
    """An item to be judged: its id, its kind (image, audio, text, ecg), where it is, and what may be shown about it."""

    item: str
    kind: str
    source: str
    shown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Item(Entry):
    """An entry at its place in the queue, with the name that the browser sees."""

    at: int = 0
    key: str = ""


@dataclass(frozen=True)
class Reviewer:
    """A person who has signed in."""

    id: int
    name: str
    role: str

    @property
    def is_adjudicator(self) -> bool:
        """Say whether this person decides where others disagree."""
        return self.role == ADJUDICATOR


class Store:
    """An open review. Threads share it; several processes may open the same file."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()
        weakref.finalize(self, connection.close)
        self.config: dict[str, object] = json.loads(self.meta("config"))

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Run an exclusive write transaction; when it returns, the change is on disk, or undone after an error."""
        with self._lock:
            _run(self._connection, "BEGIN IMMEDIATE")
            try:
                yield self._connection
                _run(self._connection, "COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    raise _unwritten(error) from None
                raise

    def rows(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._lock:
            try:
                return _run(self._connection, question, values).fetchall()
            except sqlite3.DatabaseError as error:  # a page that is read late
                raise _broken(error) from None

    def meta(self, name: str) -> str:
        """Return one fact about the review."""
        found = self.rows("SELECT value FROM meta WHERE name = ?", name)
        if not found:
            raise _broken(f"it does not say its {name}")
        return str(found[0][0])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @property
    def n_items(self) -> int:
        """The number of items to be judged."""
        return int(self.rows("SELECT count(*) FROM items")[0][0])

    @property
    def per_item(self) -> int:
        """The number of verdicts that each item gets."""
        return fit(int, self.config["per_item"])

    def item(self, key: str) -> Item | None:
        """Return the item that the browser knows by this name."""
        return next(iter(self._items("key = ?", key)), None)

    def item_at(self, at: int) -> Item:
        """Return the item at a place in the queue."""
        found = self._items("at = ?", at)
        if not found:  # a verdict on an item that a damaged page no longer shows
            raise _broken(f"item {at} is missing")
        return found[0]

    def items(self) -> list[Item]:
        """Return all items, in the order of asking."""
        return self._items("1 ORDER BY at")

    def _items(self, where: str, *values: object) -> list[Item]:
        found = self.rows(f"SELECT item, kind, source, shown, at, key FROM items WHERE {where}", *values)
        return [Item(i, kind, source, json.loads(shown), at, key) for i, kind, source, shown, at, key in found]

    def reviewer(self, id_: int) -> Reviewer | None:
        """Return a person by number."""
        found = self.rows("SELECT id, name, role FROM reviewers WHERE id = ?", id_)
        return Reviewer(*found[0]) if found else None

    def sign_in(self, name: str, now: float) -> Reviewer:
        """Return a person by name, adding new ones. Case, spaces and Unicode forms do not make another person."""
        shown = cleaned(name)
        with self.change() as db:
            db.execute(
                "INSERT INTO reviewers (name, folded, role, since) VALUES (?, ?, ?, ?) ON CONFLICT (folded) DO NOTHING",
                (shown, shown.casefold(), REVIEWER, now),
            )
            found = db.execute("SELECT id, name, role FROM reviewers WHERE folded = ?", (shown.casefold(),)).fetchone()
        return Reviewer(*found)

    def appoint(self, name: str, now: float) -> None:
        """Make a person an adjudicator; somebody who has judged items must not decide on them."""
        who = self.sign_in(name, now)
        with self.change() as db:
            if db.execute("SELECT 1 FROM verdicts WHERE reviewer = ?", (who.id,)).fetchone():
                raise UsageError(f"{who.name} has given verdicts and cannot adjudicate them; name somebody else")
            db.execute("UPDATE reviewers SET role = ? WHERE id = ?", (ADJUDICATOR, who.id))
            db.execute("DELETE FROM leases WHERE reviewer = ?", (who.id,))


def cleaned(name: str) -> str:
    """Normalise a name; one that is empty, too long or contains invisible characters is refused.

    >>> cleaned("  Ann   Lee ")
    'Ann Lee'
    """
    shown = " ".join(unicodedata.normalize("NFKC", name).split())
    if not shown or len(shown) > LONGEST_NAME or not shown.isprintable():
        raise UsageError(f"a name has 1 to {LONGEST_NAME} letters that can be seen")
    return shown


def _run(connection: sqlite3.Connection, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
    try:
        return connection.execute(statement, values)
    except sqlite3.DatabaseError as error:
        raise _broken(error) from None


def _broken(error: sqlite3.DatabaseError | str) -> HitmissError:
    """Say why the store failed: because of the machine, or because the file is damaged."""
    if isinstance(error, sqlite3.OperationalError):
        return _unwritten(error)
    return DataError(f"the review is damaged ({error}); take a copy of it that is whole", code="damaged-review")


def _unwritten(error: sqlite3.OperationalError) -> EnvironmentFault:
    return EnvironmentFault(f"the review could not be written or read: {error}")


# ----------------------------------------------------------------------
# The file of a review: created completely, opened only if it is a review, continued only with the same settings.

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
        raise UsageError(f"there is no review {path.name}; begin one with `hitmiss review RUN`")
    connection = _connect(path)
    try:
        application, version = (
            connection.execute(f"PRAGMA {p}").fetchone()[0] for p in ("application_id", "user_version")
        )
    except sqlite3.DatabaseError:
        connection.close()
        raise DataError(f"{path.name} is not a review: it is not an SQLite file, or it is damaged") from None
    if application != APPLICATION or version != SCHEMA:
        connection.close()
        found = f"schema {version}" if application == APPLICATION else "another program's tables"
        raise DataError(f"{path.name} holds {found}; this version of hitmiss reads reviews of schema {SCHEMA}")
    return Store(path, connection)


def begin(path: str | Path, config: Mapping[str, object], entries: Sequence[Entry]) -> Store:
    """Start a review, or continue the one in the file if its settings are the same; otherwise report the difference."""
    path, wanted = Path(path), json.loads(json.dumps(config))
    if path.exists():
        store = open_store(path)
        differing = differences(store.config, wanted)
        if differing:
            store.close()
            raise IncompleteRun(
                f"{path.name} was begun in another way: {'; '.join(differing)}; "
                "give what it was begun with, or another file with --store"
            )
        return store
    if not entries:
        raise DataError("there is nothing to review: no item was chosen")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} to keep the review in")
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
        raise DataError(f"{path.name} is not a review: it is not an SQLite file, or it is damaged") from None
    return connection


# ----------------------------------------------------------------------
# The queue: each item is judged by exactly k people, never twice by the same person.
#
# A reviewer holds at most one lease. An item is handed out while its verdicts and others' leases are fewer than k.
# A lease that expires returns to the queue; a late verdict is still accepted if its place is free. Undo
# turns the last verdict into a lease again, so that its place stays reserved. Everything happens in one exclusive write
# transaction, so the same holds for several servers on one file. The time is read inside the transaction, because a
# time from before the wait for it would let leases expire that were made in the meantime.

POSITIVE, NEGATIVE, UNSURE = "positive", "negative", "uncertain"
VERDICTS: Final = (NEGATIVE, POSITIVE, UNSURE)
LEASE_SECONDS: Final = 900.0
CLOCKS_APART: Final = 60.0
"""How many seconds the clocks of two servers on one file may differ; a lease further ahead is from a wrong clock."""
LONGEST_NOTE: Final = 2000
Outcome = Literal["saved", "already", "taken", "unknown"]

OPEN: Final = """
SELECT at FROM items
WHERE (SELECT count(*) FROM verdicts v WHERE v.item = at) + (SELECT count(*) FROM leases l WHERE l.item = at) < :k
  AND NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.item = at AND v.reviewer = :who)
ORDER BY at LIMIT 1
"""
TAKEN: Final = """
SELECT (SELECT count(*) FROM verdicts v WHERE v.item = :at)
     + (SELECT count(*) FROM leases l WHERE l.item = :at AND l.reviewer <> :who)
"""


@dataclass(frozen=True)
class Said:
    """A current verdict: by whom, on which item, what, and with which note."""

    item: Item
    verdict: str
    note: str


class Queue:
    """Hands out items and takes verdicts. `clock` gives the seconds since 1970."""

    def __init__(
        self, store: Store, lease_seconds: float = LEASE_SECONDS, clock: Callable[[], float] = time.time
    ) -> None:
        self.store, self.lease_seconds, self.clock = store, lease_seconds, clock

    def take(self, who: Reviewer) -> Item | None:
        """Return the item that a reviewer holds, or the next one open to them; None if there is no such item."""
        with self.store.change() as db:
            now = self.clock()
            self._expire(db, now)
            held = db.execute("SELECT item FROM leases WHERE reviewer = ?", (who.id,)).fetchone()
            if held is None:
                held = db.execute(OPEN, {"k": self.store.per_item, "who": who.id}).fetchone()
                if held is None:
                    return None
                self._lease(db, who, held[0], now)
            else:
                db.execute("UPDATE leases SET until = ? WHERE reviewer = ?", (now + self.lease_seconds, who.id))
        return self.store.item_at(held[0])

    def judge(self, who: Reviewer, key: str, verdict: str, *, note: str = "", seconds: float | None = None) -> Outcome:
        """Store a verdict. `saved`; `already`: the same person has judged it; `taken`: others have; `unknown` item.

        `seconds` is the viewing time that the browser reports; it is limited to the time since the item was shown.
        """
        check(verdict, note)
        item = self.store.item(key)
        if item is None:
            return "unknown"
        with self.store.change() as db:
            now = self.clock()
            took = spent(db, who, item.at, seconds, now)
            self._expire(db, now)
            if db.execute("SELECT 1 FROM verdicts WHERE item = ? AND reviewer = ?", (item.at, who.id)).fetchone():
                return "already"
            if db.execute(TAKEN, {"at": item.at, "who": who.id}).fetchone()[0] >= self.store.per_item:
                db.execute("DELETE FROM leases WHERE reviewer = ? AND item = ?", (who.id, item.at))
                return "taken"
            said = (item.at, who.id, verdict, note, took)
            event = log(db, "verdict", now, *said)
            db.execute("INSERT INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?)", (*said, now, event))
            db.execute("DELETE FROM leases WHERE reviewer = ?", (who.id,))
        return "saved"

    def last(self, who: Reviewer) -> Said | None:
        """Return the verdict that undo would take back: the latest one on which no adjudicator has decided."""
        found = self.store.rows(
            "SELECT item, verdict, note FROM verdicts v WHERE reviewer = ? "
            "AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.item = v.item) ORDER BY event DESC LIMIT 1",
            who.id,
        )
        return Said(self.store.item_at(found[0][0]), found[0][1], found[0][2]) if found else None

    def undone_note(self, who: Reviewer, item: Item) -> str:
        """Return the note of a verdict that its reviewer has just taken back, so that it need not be written again."""
        found = self.store.rows(
            "SELECT kind, note FROM events WHERE item = ? AND reviewer = ? ORDER BY id DESC LIMIT 1", item.at, who.id
        )
        return str(found[0][1]) if found and found[0][0] == "undo" else ""

    def undo(self, who: Reviewer) -> Said | None:
        """Take the last verdict back: its item is leased to the reviewer again. The item they held is released."""
        with self.store.change() as db:
            said = self.last(who)
            if said is None:
                return None
            now = self.clock()
            log(db, "undo", now, said.item.at, who.id, said.verdict, said.note, None)
            db.execute("DELETE FROM verdicts WHERE item = ? AND reviewer = ?", (said.item.at, who.id))
            db.execute("DELETE FROM leases WHERE reviewer = ?", (who.id,))
            self._lease(db, who, said.item.at, now)
        return said

    def leave(self, who: Reviewer) -> None:
        """Return the item that a reviewer holds to the queue."""
        with self.store.change() as db:
            db.execute("DELETE FROM leases WHERE reviewer = ?", (who.id,))

    def _expire(self, db: sqlite3.Connection, now: float) -> None:
        """Remove expired leases, and leases from the future made by a wrong clock. Servers may use any lease length."""
        db.execute("DELETE FROM leases WHERE until <= ? OR shown > ?", (now, now + CLOCKS_APART))

    def _lease(self, db: sqlite3.Connection, who: Reviewer, at: int, now: float) -> None:
        db.execute("INSERT INTO leases VALUES (?, ?, ?, ?)", (who.id, at, now, now + self.lease_seconds))


def check(verdict: str, note: str) -> None:
    """Refuse an invalid verdict, and a note that is too long to store."""
    if verdict not in VERDICTS:
        raise UnknownName("verdict", verdict, VERDICTS)
    if len(note) > LONGEST_NOTE:
        raise UsageError(f"a note has at most {LONGEST_NOTE:,} letters; this one has {len(note):,}")


def spent(db: sqlite3.Connection, who: Reviewer, at: int, seconds: float | None, now: float) -> float | None:
    """Return the viewing time: what the browser reports, at most the time since the item was shown; None if unknown."""
    shown = db.execute("SELECT shown FROM leases WHERE reviewer = ? AND item = ?", (who.id, at)).fetchone()
    told = None if seconds is None else max(0.0, seconds)
    if shown is None:
        return told
    passed = max(0.0, now - float(shown[0]))
    return round(passed if told is None else min(passed, told), 3)


def log(
    db: sqlite3.Connection, kind: str, now: float, item: int, who: int, verdict: str, note: str, seconds: float | None
) -> int:
    """Record an event and return its number."""
    values = (now, kind, item, who, verdict, note, seconds)
    found = db.execute("INSERT INTO events VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", values)
    return int(found.lastrowid or 0)


# ----------------------------------------------------------------------
# Where people disagree, an adjudicator decides: once per item, and only when all its verdicts are in.

DISPUTED: Final = """
SELECT item FROM verdicts GROUP BY item HAVING count(*) = ? AND count(DISTINCT verdict) > 1 ORDER BY item
"""


@dataclass(frozen=True)
class Dispute:
    """An item on which people disagree, their verdicts and notes, and the decision if there is one."""

    item: Item
    said: tuple[tuple[str, str], ...]
    decision: str | None
    note: str = ""


def disputes(store: Store) -> list[Dispute]:
    """Return every item whose verdicts are all in and not all the same, in the order of asking."""
    return [_dispute(store, at) for (at,) in store.rows(DISPUTED, store.per_item)]


def find_dispute(store: Store, key: str) -> Dispute | None:
    """Return the dispute about one item, if there is one."""
    item = store.item(key)
    is_disputed = item is not None and (item.at,) in store.rows(DISPUTED, store.per_item)
    return _dispute(store, item.at) if item is not None and is_disputed else None


def decide(
    store: Store, who: Reviewer, key: str, verdict: str, *, note: str = "", seconds: float | None = None, now: float
) -> Outcome:
    """Settle a dispute. `taken`: already decided, or no dispute any more; `unknown`: there is no such item."""
    _require_adjudicator(who)
    check(verdict, note)
    item = store.item(key)
    if item is None:
        return "unknown"
    with store.change() as db:
        decided = db.execute("SELECT 1 FROM decisions WHERE item = ?", (item.at,)).fetchone()
        if decided or (item.at,) not in db.execute(DISPUTED, (store.per_item,)).fetchall():
            return "taken"
        took = None if seconds is None else round(max(0.0, seconds), 3)
        said = (item.at, who.id, verdict, note, took)
        event = log(db, "decision", now, *said)
        db.execute("INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?)", (*said, now, event))
    return "saved"


def reopen(store: Store, who: Reviewer, key: str, now: float) -> bool:
    """Take a decision back; return whether there was one."""
    _require_adjudicator(who)
    item = store.item(key)
    if item is None:
        return False
    with store.change() as db:
        found = db.execute("SELECT verdict, note FROM decisions WHERE item = ?", (item.at,)).fetchone()
        if found is None:
            return False
        log(db, "reopen", now, item.at, who.id, found[0], found[1], None)
        db.execute("DELETE FROM decisions WHERE item = ?", (item.at,))
    return True


def _dispute(store: Store, at: int) -> Dispute:
    said = store.rows("SELECT verdict, note FROM verdicts WHERE item = ? ORDER BY event", at)
    decided = store.rows("SELECT verdict, note FROM decisions WHERE item = ?", at)
    return Dispute(store.item_at(at), tuple(said), *(decided[0] if decided else (None, "")))


def _require_adjudicator(who: Reviewer) -> None:
    if not who.is_adjudicator:
        raise UsageError(f"{who.name} is not an adjudicator; name one with --adjudicator")
