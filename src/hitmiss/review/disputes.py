"""Where people disagree, an adjudicator decides: once per item, and only when all its verdicts are in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hitmiss.core.errors import UsageError
from hitmiss.review.queue import Outcome, check, log
from hitmiss.review.store import Item, Reviewer, Store

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
        raise UsageError.of("not-adjudicator", who_name=who.name)
