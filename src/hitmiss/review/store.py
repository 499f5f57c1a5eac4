"""What a review holds: one SQLite database. A verdict that was acknowledged survives kill -9.

    items       what is to be judged, in the order of asking; `key` is the name that the browser sees
    reviewers   the people who have signed in, and their role
    leases      which reviewer looks at which item now; one per reviewer
    verdicts    the current verdicts: one per reviewer and item
    decisions   the decisions of adjudicators: one per item
    events      everything that happened, in order; nothing is ever removed from it
    meta        how the review was started

It uses a write-ahead log (WAL), synced at every commit. A blind review contains no label and no verdict of a model.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import unicodedata
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hitmiss.core.convert import fit
from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, UsageError

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
                raise UsageError.of("not-adjudicator/judged", who_name=who.name)
            db.execute("UPDATE reviewers SET role = ? WHERE id = ?", (ADJUDICATOR, who.id))
            db.execute("DELETE FROM leases WHERE reviewer = ?", (who.id,))


def cleaned(name: str) -> str:
    """Normalise a name; one that is empty, too long or contains invisible characters is refused.

    >>> cleaned("  Ann   Lee ")
    'Ann Lee'
    """
    shown = " ".join(unicodedata.normalize("NFKC", name).split())
    if not shown or len(shown) > LONGEST_NAME or not shown.isprintable():
        raise UsageError.of("bad-reviewer-name", LONGEST_NAME=LONGEST_NAME)
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
    return DataError.of("damaged-review", error=error)


def _unwritten(error: sqlite3.OperationalError) -> EnvironmentFault:
    return EnvironmentFault.of("review-unwritten", error=error)
