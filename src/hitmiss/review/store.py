"""The file that holds a review: one SQLite database, safe against kill -9 once a verdict was acknowledged.

    items       what is to be judged, in the order of asking; `key` is the name under which a browser knows it
    reviewers   who has signed in, and as what
    leases      who looks at which item now; one a reviewer
    verdicts    what stands: one a reviewer and item
    decisions   what an adjudicator decided: one an item
    events      everything that ever happened, in order; nothing is ever taken out of it
    meta        how the review was begun

It is written ahead (WAL) and synced at every commit. No label and no verdict of a model is in it where a review is blind.
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

from hitmiss.errors import EnvironmentFault, UsageError

LONGEST_NAME: Final = 60
REVIEWER, ADJUDICATOR = "reviewer", "adjudicator"


@dataclass(frozen=True)
class Entry:
    """An item to be judged: its id, what it is (image, audio, text, ecg), where it lies, and what may be told of it."""

    item: str
    kind: str
    source: str
    shown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Item(Entry):
    """An entry in its place of the queue, with the name under which a browser knows it."""

    at: int = 0
    key: str = ""


@dataclass(frozen=True)
class Reviewer:
    """Somebody who has signed in."""

    id: int
    name: str
    role: str

    @property
    def is_adjudicator(self) -> bool:
        """Whether they decide where others disagree."""
        return self.role == ADJUDICATOR


class Store:
    """An open review. Threads share it; processes may have one each of the same file."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()
        weakref.finalize(self, connection.close)
        self.config: dict[str, Any] = json.loads(self.meta("config"))

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody else writes during; it is on the disk when this returns, or undone."""
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

    def rows(self, question: str, *values: Any) -> list[Any]:
        """What a question gives."""
        with self._lock:
            return _run(self._connection, question, values).fetchall()

    def meta(self, name: str) -> str:
        """One fact about the review."""
        return str(self.rows("SELECT value FROM meta WHERE name = ?", name)[0][0])

    def close(self) -> None:
        """Leave the file."""
        with self._lock:
            self._connection.close()

    @property
    def n_items(self) -> int:
        """How many items are to be judged."""
        return int(self.rows("SELECT count(*) FROM items")[0][0])

    @property
    def per_item(self) -> int:
        """How many verdicts each item gets."""
        return int(self.config["per_item"])

    def item(self, key: str) -> Item | None:
        """The item that a browser knows by this name."""
        return next(iter(self._items("key = ?", key)), None)

    def item_at(self, at: int) -> Item:
        """The item in a place of the queue."""
        return self._items("at = ?", at)[0]

    def items(self) -> list[Item]:
        """All items, in the order of asking."""
        return self._items("1 ORDER BY at")

    def _items(self, where: str, *values: Any) -> list[Item]:
        found = self.rows(f"SELECT item, kind, source, shown, at, key FROM items WHERE {where}", *values)
        return [Item(i, kind, source, json.loads(shown), at, key) for i, kind, source, shown, at, key in found]

    def reviewer(self, id_: int) -> Reviewer | None:
        """Somebody by their number."""
        found = self.rows("SELECT id, name, role FROM reviewers WHERE id = ?", id_)
        return Reviewer(*found[0]) if found else None

    def sign_in(self, name: str, now: float) -> Reviewer:
        """Somebody by their name, who may be new. Case, spaces and ways to write a letter do not make another person."""
        shown = cleaned(name)
        with self.change() as db:
            db.execute(
                "INSERT INTO reviewers (name, folded, role, since) VALUES (?, ?, ?, ?) ON CONFLICT (folded) DO NOTHING",
                (shown, shown.casefold(), REVIEWER, now),
            )
            found = db.execute("SELECT id, name, role FROM reviewers WHERE folded = ?", (shown.casefold(),)).fetchone()
        return Reviewer(*found)

    def appoint(self, name: str, now: float) -> None:
        """Make somebody an adjudicator; who has judged items does not decide on them."""
        who = self.sign_in(name, now)
        with self.change() as db:
            if db.execute("SELECT 1 FROM verdicts WHERE reviewer = ?", (who.id,)).fetchone():
                raise UsageError(f"{who.name} has given verdicts and cannot adjudicate them; name somebody else")
            db.execute("UPDATE reviewers SET role = ? WHERE id = ?", (ADJUDICATOR, who.id))
            db.execute("DELETE FROM leases WHERE reviewer = ?", (who.id,))


def cleaned(name: str) -> str:
    """A name as it is kept; one that is empty, too long or holds what cannot be seen is refused.

    >>> cleaned("  Ann   Lee ")
    'Ann Lee'
    """
    shown = " ".join(unicodedata.normalize("NFKC", name).split())
    if not shown or len(shown) > LONGEST_NAME or not shown.isprintable():
        raise UsageError(f"a name has 1 to {LONGEST_NAME} letters that can be seen")
    return shown


def _run(connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
    try:
        return connection.execute(statement, values)
    except sqlite3.OperationalError as error:
        raise _unwritten(error) from None


def _unwritten(error: sqlite3.OperationalError) -> EnvironmentFault:
    return EnvironmentFault(f"the review could not be written or read: {error}")
