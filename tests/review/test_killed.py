"""kill -9 in the middle of a review, and two servers on one file: nothing lost, nothing doubled."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.review.review_parts import Client, Server, asked, start, write_results

pytestmark = pytest.mark.extras
pytest.importorskip("starlette", reason="starlette is not installed; make test-extras")
pytest.importorskip("uvicorn", reason="uvicorn is not installed; make test-extras")
ITEMS, K, PEOPLE = 30, 2, 3


class Person(threading.Thread):
    """Judges until there is nothing left or the server is gone; keeps what was acknowledged."""

    def __init__(self, port: int, name: str, cookie: str = "") -> None:
        super().__init__()
        self.client, self.who = Client(port), name
        self.client.cookie = cookie
        self.acknowledged: list[tuple[str, str]] = []
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            if self.client.get("/review").status == 303:
                self.client.sign_in(self.who)
            while True:
                page = self.client.get("/review")
                if 'action="/verdict"' not in page.text:
                    return
                item = page.field("item")
                fields = {"form_token": page.field("form_token"), "item": item, "verdict": "positive"}
                answer = self.client.post("/verdict", fields)
                if answer.headers.get("location") == "/review?saved=1":
                    self.acknowledged.append((item, self.who))
        except Exception as error:  # the server is gone, and http.client has several ways to say so
            self.failed = error


def standing(path: Path) -> list[tuple[str, str]]:
    assert asked(path, "PRAGMA integrity_check") == [("ok",)]
    joined = "verdicts v JOIN items i ON i.at = v.item JOIN reviewers r ON r.id = v.reviewer"
    return [(str(key), str(name)) for key, name in asked(path, f"SELECT i.key, r.name FROM {joined}")]


def exactly(path: Path) -> None:
    found = standing(path)
    assert len(found) == len(set(found)) == ITEMS * K, "no person twice on an item"
    assert set(Counter(key for key, _ in found).values()) == {K}


def test_killed_again_and_again(tmp_path: Path) -> None:
    results = write_results(tmp_path, texts=[f"text {i}" for i in range(ITEMS)])
    store, chance = tmp_path / "results.review.sqlite", random.Random(4)
    acknowledged: set[tuple[str, str]] = set()
    cookies = dict.fromkeys(map(str, range(PEOPLE)), "")
    rounds = 0
    while rounds == 0 or (len(standing(store)) < ITEMS * K and rounds < ITEMS * K):
        rounds += 1
        server = start(results, "--per-item", K)
        people = [Person(server.port, name, cookie) for name, cookie in cookies.items()]
        for person in people:
            person.start()
        enough = chance.randint(1, 12)
        while sum(len(p.acknowledged) for p in people) < enough and any(p.is_alive() for p in people):
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.03))
        server.kill()
        for person in people:
            person.join(60)
            acknowledged |= set(person.acknowledged)
            cookies[person.who] = person.client.cookie
        assert acknowledged <= set(standing(store)), "a verdict that was acknowledged is lost"
    exactly(store)
    assert rounds >= 3, "it was killed in the middle"


def test_two_servers_on_one_review(tmp_path: Path) -> None:
    results = write_results(tmp_path, texts=[f"text {i}" for i in range(ITEMS)])
    servers: list[Server] = [start(results, "--per-item", K) for _ in range(2)]
    try:
        people = [Person(servers[i % 2].port, f"p{i}") for i in range(4)]
        for person in people:
            person.client.sign_in(person.who)  # both servers are up before anybody begins
        for person in people:
            person.start()
        for person in people:
            person.join(120)
            assert person.failed is None
    finally:
        for server in servers:
            server.kill()
    exactly(tmp_path / "results.review.sqlite")
    assert all(any(person.acknowledged for person in people[i::2]) for i in range(2)), "both servers took verdicts"
