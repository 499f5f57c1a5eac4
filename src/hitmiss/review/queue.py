"""The queue: each item is judged by exactly k people, never twice by the same person.

A reviewer holds at most one lease. An item is handed out while its verdicts and others' leases are fewer than k.
A lease that expires returns to the queue; a late verdict is still accepted if its place is free. Undo turns the last
verdict into a lease again, so that its place stays reserved. Everything happens in one exclusive write transaction, so
the same holds for several servers on one file. The time is read inside the transaction, because a time from before the
wait for it would let leases expire that were made in the meantime.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.review.store import Item, Reviewer, Store

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
class GivenVerdict:
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

    def last(self, who: Reviewer) -> GivenVerdict | None:
        """Return the verdict that undo would take back: the latest one on which no adjudicator has decided."""
        found = self.store.rows(
            "SELECT item, verdict, note FROM verdicts v WHERE reviewer = ? "
            "AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.item = v.item) ORDER BY event DESC LIMIT 1",
            who.id,
        )
        return GivenVerdict(self.store.item_at(found[0][0]), found[0][1], found[0][2]) if found else None

    def undone_note(self, who: Reviewer, item: Item) -> str:
        """Return the note of a verdict that its reviewer has just taken back, so that it need not be written again."""
        found = self.store.rows(
            "SELECT kind, note FROM events WHERE item = ? AND reviewer = ? ORDER BY id DESC LIMIT 1", item.at, who.id
        )
        return str(found[0][1]) if found and found[0][0] == "undo" else ""

    def undo(self, who: Reviewer) -> GivenVerdict | None:
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
        raise UsageError.of("note-too-long", LONGEST_NOTE=LONGEST_NOTE, n_note=len(note))


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
