"""The queue: whatever people do in whatever order, each item gets exactly k verdicts of different people."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.review.review_parts import a_store, at

from hitmiss.core.errors import DataError, EnvironmentFault, IncompleteRun, UnknownName, UsageError
from hitmiss.review.disputes import decide, disputes, find_dispute, reopen
from hitmiss.review.queue import VERDICTS, Queue
from hitmiss.review.store import Item, Reviewer
from hitmiss.review.store_file import APPLICATION, begin, open_store
from hitmiss.review.summary import summarise
from hitmiss.review.verdict_rows import rows, write_verdicts

LEASE = 100.0
PEOPLE = 4
FAST = Path("/dev/shm") if Path("/dev/shm").is_dir() else None


class Reviewing(RuleBasedStateMachine):
    """Several people at one queue: take, judge (what is on their screen, however old), undo, leave, wait, two servers."""

    @initialize(k=st.integers(1, 3), n=st.integers(1, 4))
    def begin_review(self, k: int, n: int) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=FAST))
        self.k, self.n, self.now = k, n, 1_000.0
        store = a_store(self.folder / "r.sqlite", n, k)
        store._connection.execute("PRAGMA synchronous = OFF")  # no power is lost here
        self.queue = Queue(store, LEASE)
        self.store = store
        self.who = [store.sign_in(f"p{i}", self.now) for i in range(PEOPLE)]
        self.screen: dict[int, Item] = {}
        self.stands: dict[tuple[str, int], str] = {}
        self.order: list[tuple[str, int]] = []

    @rule(i=st.integers(0, PEOPLE - 1))
    def take(self, i: int) -> None:
        item = at(self.queue, self.now).take(self.who[i])
        if item is not None:
            assert (item.item, i) not in self.stands, "the same item twice to the same person"
            self.screen[i] = item

    @rule(i=st.integers(0, PEOPLE - 1), verdict=st.sampled_from(VERDICTS))
    def judge(self, i: int, verdict: str) -> None:
        if i not in self.screen:
            return
        item = self.screen[i]
        outcome = at(self.queue, self.now).judge(self.who[i], item.key, verdict)
        if outcome == "saved":
            assert (item.item, i) not in self.stands
            self.stands[item.item, i] = verdict
            self.order.append((item.item, i))
        elif outcome == "already":
            assert (item.item, i) in self.stands
        else:
            assert outcome == "taken"
            own = self.store.rows("SELECT count(*) FROM leases WHERE item = ? AND until > ?", item.at, self.now)[0][0]
            assert sum(key[0] == item.item for key in self.stands) + own >= self.k

    @rule(i=st.integers(0, PEOPLE - 1), verdict=st.sampled_from(VERDICTS), times=st.integers(1, 3))
    def work(self, i: int, verdict: str, times: int) -> None:
        for _ in range(times):
            self.take(i)
            self.judge(i, verdict)

    @rule(i=st.integers(0, PEOPLE - 1))
    def undo(self, i: int) -> None:
        mine = [key for key in self.order if key[1] == i]
        said = at(self.queue, self.now).undo(self.who[i])
        assert (said is None) == (not mine)
        if said is not None:
            assert said.item.item == mine[-1][0], "undo takes back the latest verdict"
            del self.stands[mine[-1]]
            self.order.remove(mine[-1])
            self.screen[i] = said.item
            again = at(self.queue, self.now).take(self.who[i])
            assert again is not None and again.item == said.item.item, "and gives the item back to its reviewer"

    @rule(i=st.integers(0, PEOPLE - 1))
    def leave(self, i: int) -> None:
        self.queue.leave(self.who[i])

    @rule(seconds=st.sampled_from([1.0, 60.0, 99.0, 101.0, 1e6, -500.0]))
    def wait(self, seconds: float) -> None:
        """Time passes; now and then the clock is set back."""
        self.now = max(1.0, self.now + seconds)

    @rule()
    def restart(self) -> None:
        """The server is gone and another one opens the file."""
        self.store.close()
        self.store = open_store(self.folder / "r.sqlite")
        self.store._connection.execute("PRAGMA synchronous = OFF")
        self.queue = Queue(self.store, LEASE)

    @invariant()
    def what_was_acknowledged_stands(self) -> None:
        if not hasattr(self, "store"):
            return
        kept = self.store.rows("SELECT i.item, v.reviewer, v.verdict FROM verdicts v JOIN items i ON i.at = v.item")
        assert {(item, who - 1): verdict for item, who, verdict in kept} == self.stands

    @invariant()
    def nobody_takes_a_place_too_many(self) -> None:
        if not hasattr(self, "store"):
            return
        verdicts = Counter(item for item, _ in self.stands)
        leases = self.store.rows("SELECT i.item, l.reviewer FROM leases l JOIN items i ON i.at = l.item")
        assert len({who for _, who in leases}) == len(leases), "one lease a person"
        for item, who in leases:
            assert (item, who - 1) not in self.stands
        held = Counter(item for item, _ in leases)
        assert all(verdicts[i] + held[i] <= self.k for i in {*verdicts, *held})

    @invariant()
    def the_log_tells_the_same(self) -> None:
        if not hasattr(self, "store"):
            return
        replayed: dict[tuple[int, int], str] = {}
        for kind, item, who, verdict in self.store.rows("SELECT kind, item, reviewer, verdict FROM events ORDER BY id"):
            if kind == "verdict":
                assert (item, who) not in replayed
                replayed[item, who] = verdict
            else:
                assert replayed.pop((item, who)) == verdict
        assert replayed == {(a, b): v for a, b, v in self.store.rows("SELECT item, reviewer, verdict FROM verdicts")}

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        self.now += 10 * LEASE  # one of them never comes back; the others finish the work
        for _ in range(PEOPLE * self.n):
            for i in range(PEOPLE - 1):
                self.take(i)
                self.judge(i, "positive")
        counts = Counter(item for item, _ in self.stands)
        assert [counts[f"i{i}"] for i in range(self.n)] == [self.k] * self.n
        assert all(at(self.queue, self.now).take(who) is None for who in self.who)
        self.what_was_acknowledged_stands()
        self.store.close()
        shutil.rmtree(self.folder)


TestReviewing = Reviewing.TestCase
TestReviewing.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def test_a_lease_returns_and_a_late_verdict_counts_where_its_place_is_free(tmp_path: Path) -> None:
    queue = Queue(a_store(tmp_path / "r.sqlite", n=1, k=1), LEASE)
    ann, bob = (queue.store.sign_in(name, 0.0) for name in ("Ann", "Bob"))
    item = at(queue, 0.0).take(ann)
    assert item is not None and at(queue, LEASE - 1).take(bob) is None
    assert at(queue, LEASE + 1).take(bob) is not None, "it ran out"
    assert at(queue, LEASE + 2).judge(ann, item.key, "negative") == "taken", "Bob looks at it now"
    queue.leave(bob)
    assert at(queue, LEASE + 3).judge(ann, item.key, "negative") == "saved"
    assert at(queue, LEASE + 4).judge(ann, item.key, "positive") == "already", "a form sent twice counts once"
    assert at(queue, LEASE + 5).judge(bob, item.key, "positive") == "taken"
    assert at(queue, LEASE + 5).judge(bob, "no-such-key", "positive") == "unknown"
    with pytest.raises(UnknownName):
        at(queue, 0.0).judge(bob, item.key, "maybe")
    with pytest.raises(UsageError, match="at most 2,000 letters"):
        at(queue, 0.0).judge(bob, item.key, "positive", note="n" * 2001)


def test_the_time_is_read_inside_the_transaction(tmp_path: Path) -> None:
    """A time from before the wait for the lock is older than the leases that others made meanwhile."""
    store = a_store(tmp_path / "r.sqlite", 2, 1)
    inside: list[bool] = []

    def clock() -> float:
        inside.append(store._connection.in_transaction)
        return 100.0 - len(inside) / 1000  # each reading a little older than the one before

    queue = Queue(store, LEASE, clock)
    ann, bob = (store.sign_in(name, 0.0) for name in ("Ann", "Bob"))
    first, second = queue.take(ann), queue.take(bob)
    assert first is not None and second is not None and first.key != second.key
    assert queue.judge(bob, second.key, "positive") == queue.judge(ann, first.key, "positive") == "saved"
    queue.undo(ann)
    assert inside and all(inside)


def test_fifty_people_at_once_lose_no_verdict(tmp_path: Path) -> None:
    """Five servers on one file, with clocks a second apart and leases of other lengths; ten people at each."""
    store = a_store(tmp_path / "r.sqlite", 30, 3)
    people = [store.sign_in(f"p{i}", 0.0) for i in range(50)]
    outcomes: list[str] = []

    def work(number: int, who: Reviewer) -> None:
        with closing(open_store(tmp_path / "r.sqlite")) as own:
            own._connection.execute("PRAGMA synchronous = OFF")
            queue = Queue(own, LEASE + 10 * (number % 5), lambda: time.time() + number % 5 / 4)
            while (item := queue.take(who)) is not None:
                time.sleep(0.001 * (number % 7))
                outcomes.append(queue.judge(who, item.key, "positive"))

    with ThreadPoolExecutor(50) as pool:
        for done in [pool.submit(work, i, who) for i, who in enumerate(people)]:
            done.result()
    assert Counter(outcomes) == {"saved": 90}


def test_a_note_is_still_there_after_undo(tmp_path: Path) -> None:
    queue = Queue(a_store(tmp_path / "r.sqlite", n=1, k=1), LEASE)
    ann = queue.store.sign_in("Ann", 0.0)
    item = at(queue, 0.0).take(ann)
    assert item is not None and queue.undone_note(ann, item) == ""
    at(queue, 1.0).judge(ann, item.key, "positive", note="odd shadow")
    at(queue, 2.0).undo(ann)
    assert queue.undone_note(ann, item) == "odd shadow"
    at(queue, 3.0).judge(ann, item.key, "negative", note="")
    assert queue.undone_note(ann, item) == ""


def test_a_clock_that_was_wrong_keeps_nothing_forever(tmp_path: Path) -> None:
    queue = Queue(a_store(tmp_path / "r.sqlite", n=1, k=1), LEASE)
    ann, bob = (queue.store.sign_in(name, 0.0) for name in ("Ann", "Bob"))
    assert at(queue, 1e9).take(ann) is not None
    assert at(queue, 5.0).take(bob) is not None, "the lease is from a future that never came"


def test_seconds_are_what_was_seen_and_never_more_than_passed(tmp_path: Path) -> None:
    queue = Queue(a_store(tmp_path / "r.sqlite", n=4, k=1), LEASE)
    ann = queue.store.sign_in("Ann", 0.0)
    for told, passed, kept in ((None, 4.0, 4.0), (2.5, 4.0, 2.5), (1e9, 4.0, 4.0)):
        item = at(queue, 10.0).take(ann)
        assert item is not None
        at(queue, 10.0 + passed).judge(ann, item.key, "positive", seconds=told)
        assert queue.store.rows("SELECT seconds FROM verdicts ORDER BY event DESC LIMIT 1")[0][0] == kept
    assert summarise(queue.store).seconds == 4.0


def test_names_are_people(tmp_path: Path) -> None:
    store = a_store(tmp_path / "r.sqlite")
    ann = store.sign_in("Ann Lee", 0.0)
    assert store.sign_in("  ann   LEE ", 1.0) == ann, "the same person"
    assert store.sign_in("Zo\u00eb", 0.0) == store.sign_in("Zoe\u0308", 0.0)
    for name in ("", "   ", "x" * 61, "evil\u202eman", "a\x1b[31m", "a\x00b"):
        with pytest.raises(UsageError, match="a name has"):
            store.sign_in(name, 0.0)


def test_adjudication(tmp_path: Path) -> None:
    queue = Queue(a_store(tmp_path / "r.sqlite", n=3, k=2), LEASE)
    store = queue.store
    ann, bob = (store.sign_in(name, 0.0) for name in ("Ann", "Bob"))
    store.appoint("Zoe", 0.0)
    zoe = store.sign_in("zoe", 0.0)
    said = {"Ann": ("positive", "positive", "uncertain"), "Bob": ("positive", "negative", "uncertain")}
    for who in (ann, bob):
        for verdict in said[who.name]:
            item = at(queue, 0.0).take(who)
            assert item is not None
            at(queue, 1.0).judge(who, item.key, verdict, note=f"{who.name} said so")
    (open_,) = disputes(store)
    assert open_.item.item == "i1" and [v for v, _ in open_.said] == ["positive", "negative"]
    with pytest.raises(UsageError, match="not an adjudicator"):
        decide(store, ann, open_.item.key, "positive", now=2.0)
    assert decide(store, zoe, open_.item.key, "negative", note="shadow", now=2.0) == "saved"
    assert decide(store, zoe, open_.item.key, "positive", now=3.0) == "taken", "decided once"
    assert decide(store, zoe, store.item_at(0).key, "negative", now=3.0) == "taken", "nobody disagrees there"
    last = queue.last(bob)
    assert last is not None and last.item.item == "i2"
    at(queue, 4.0).undo(bob)
    assert queue.last(bob) is not None and queue.last(bob).item.item == "i0", "what is decided cannot be undone"  # type: ignore[union-attr]
    assert {r["model"] for r in rows(store)} == {"human", "adjudication"}
    assert reopen(store, zoe, open_.item.key, 5.0) and find_dispute(store, open_.item.key).decision is None  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="cannot adjudicate"):
        store.appoint("Ann", 6.0)


def test_a_review_begun_in_another_way_is_refused_with_the_difference(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    store = a_store(path, n=3, k=2)
    store.close()
    a_store(path, n=3, k=2).close()
    with pytest.raises(IncompleteRun, match="per_item: 2 before, 3 now"):
        a_store(path, n=3, k=3)


def test_foreign_damaged_and_newer_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("id,label\n" * 100)
    with pytest.raises(DataError, match="not an SQLite file"):
        open_store(tmp_path / "text.sqlite")
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as db:
        db.executescript("CREATE TABLE t (x); PRAGMA user_version = 1;")
    with pytest.raises(DataError, match="another program"):
        open_store(tmp_path / "other.sqlite")
    a_store(tmp_path / "new.sqlite").close()
    with closing(sqlite3.connect(tmp_path / "new.sqlite", isolation_level=None)) as db:
        assert db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
        db.execute("PRAGMA user_version = 9")
    with pytest.raises(DataError, match="schema 9; this version of hitmiss reads reviews of schema 1"):
        open_store(tmp_path / "new.sqlite")
    with pytest.raises(UsageError, match="there is no review"):
        open_store(tmp_path / "none.sqlite")
    with pytest.raises(DataError, match="nothing to review"):
        begin(tmp_path / "empty.sqlite", {}, [])
    assert not (tmp_path / "empty.sqlite").exists()


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """SQLite's own limit stands for the disk's: the verdict is refused, and those before it stand."""
    queue = Queue(a_store(tmp_path / "r.sqlite", n=400, k=1), LEASE)
    store, ann = queue.store, queue.store.sign_in("Ann", 0.0)
    pages = store.rows("PRAGMA page_count")[0][0]
    store.rows(f"PRAGMA max_page_count = {pages + 2}")
    saved = 0
    with pytest.raises(EnvironmentFault, match="full"):
        for i in range(400):
            item = at(queue, float(i)).take(ann)
            assert item is not None
            at(queue, float(i)).judge(ann, item.key, "positive", note="n" * 1000)
            saved += 1
    store.close()
    again = open_store(tmp_path / "r.sqlite")
    assert 0 < saved < 400
    assert again.rows("SELECT count(*) FROM verdicts")[0][0] == saved
    assert again.rows("PRAGMA integrity_check") == [("ok",)]


def test_a_log_cut_off_anywhere_opens_and_holds_a_beginning(tmp_path: Path) -> None:
    """As a crash of the whole machine may leave it: whatever is missing is missing at the end, and nothing is half there."""
    queue = Queue(a_store(tmp_path / "r.sqlite", n=12, k=1), LEASE)
    ann = queue.store.sign_in("Ann", 0.0)
    for i in range(12):
        item = at(queue, float(i)).take(ann)
        assert item is not None
        at(queue, float(i)).judge(ann, item.key, "positive")
    main, log = (tmp_path / "r.sqlite").read_bytes(), (tmp_path / "r.sqlite-wal").read_bytes()
    seen = set()
    for cut in {*range(0, len(log), 997), len(log)}:
        torn = tmp_path / "torn" / "r.sqlite"
        shutil.rmtree(torn.parent, ignore_errors=True)
        torn.parent.mkdir()
        torn.write_bytes(main)
        (torn.parent / "r.sqlite-wal").write_bytes(log[:cut])
        store = open_store(torn)
        assert store.rows("PRAGMA integrity_check") == [("ok",)]
        judged = [at for (at,) in store.rows("SELECT item FROM verdicts ORDER BY event")]
        logged = [at for (at,) in store.rows("SELECT item FROM events ORDER BY id")]
        assert judged == logged == list(range(len(judged)))
        seen.add(len(judged))
        store.close()
    assert {0, 12} <= seen and len(seen) == 13


def test_export_is_exact_and_safe_for_spreadsheets(tmp_path: Path) -> None:
    import json

    import polars as pl

    queue = Queue(a_store(tmp_path / "r.sqlite", n=1, k=1), LEASE)
    ann = queue.store.sign_in("=Ann", 0.0)
    item = at(queue, 0.0).take(ann)
    assert item is not None
    note = "=cmd|' /C calc'!A0\n\u202eline"
    at(queue, 2.0).judge(ann, item.key, "positive", note=note)
    for name in ("v.jsonl", "v.csv", "v.parquet"):
        assert write_verdicts(queue.store, tmp_path / name) == 1
    row = json.loads((tmp_path / "v.jsonl").read_text())
    assert row["note"] == note and row["trial"] == "=Ann" and row["timestamp"] == "1970-01-01T00:00:02Z"
    assert pl.read_csv(tmp_path / "v.csv")["trial"].to_list() == ["'=Ann"]
    assert pl.read_parquet(tmp_path / "v.parquet")["note"].to_list() == [note]
    with pytest.raises(UnknownName, match="ending"):
        write_verdicts(queue.store, tmp_path / "v.html")


def test_a_store_with_a_damaged_page_is_a_sentence(tmp_path: Path) -> None:
    """SQLite opens such a file and finds out only when it reads the page."""
    path = tmp_path / "r.sqlite"
    store = a_store(path, 300, 2)
    store.close()
    data = bytearray(path.read_bytes())
    for place in range(4096, len(data), 4096):
        data[place : place + 64] = b"\xff" * 64
    path.write_bytes(data)
    with pytest.raises(DataError):
        opened = open_store(path)
        opened.rows("SELECT * FROM items")
        opened.rows("SELECT * FROM verdicts")


def test_rows_that_a_damaged_store_lost_are_a_sentence(tmp_path: Path) -> None:
    """Damage may leave tables that SQLite reads and that lack rows which others name."""
    import sqlite3

    path = tmp_path / "r.sqlite"
    a_store(path, 3, 1).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM items WHERE at = 1")
    opened = open_store(path)
    with pytest.raises(DataError) as caught:
        opened.item_at(1)
    assert caught.value.code == "damaged-review"
    opened.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM meta")
    with pytest.raises(DataError) as caught:
        open_store(path)
    assert caught.value.code == "damaged-review"
