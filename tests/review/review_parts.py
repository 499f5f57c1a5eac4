"""What the tests of reviews share: small media, stores, a real server in a process of its own, and a plain HTTP client."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from hitmiss.review.queue import Queue
from hitmiss.review.store import Entry, Store
from hitmiss.review.store_file import begin

CONFIG = {"run": "r", "items": "x", "positive": "fake", "negative": "real", "question": "Real or fake?", "blind": True}


def png(width: int = 8, height: int = 8, value: int = 90) -> bytes:
    """A grey picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = (b"\0" + bytes([value]) * width) * min(height, 4096) if width < 4096 else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def wav(samples: int = 8000) -> bytes:
    """A second of silence at 8 kHz."""
    data = b"\0\0" * samples
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16)
    return (
        b"RIFF" + struct.pack("<I", 28 + len(data) + 8) + b"WAVE" + form + b"data" + struct.pack("<I", len(data)) + data
    )


def a_store(path: Path, n: int = 3, k: int = 2) -> Store:
    """A review of n texts."""
    return begin(path, {**CONFIG, "n_items": n, "per_item": k}, [Entry(f"i{i}", "text", f"text {i}") for i in range(n)])


def at(queue: Queue, now: float) -> Queue:
    """The queue at a time."""
    queue.clock = lambda: now
    return queue


def write_results(folder: Path, n: int = 6, texts: Sequence[str] = ()) -> Path:
    """Results whose items are all uncertain: pictures, or these texts."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for i in range(len(texts) or n):
        row = {"id": f"secret-{i}", "model": "agent", "label": "fake" if i % 2 else "real", "prediction": "uncertain"}
        if texts:
            row["text"] = texts[i]
        else:
            (folder / f"p{i}.png").write_bytes(png(value=20 * i))
            row["image"] = f"p{i}.png"
        rows.append(row)
    path = folder / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def asked(path: Path, question: str) -> list[tuple[Any, ...]]:
    """What a review's file answers to a question of SQL."""
    with closing(sqlite3.connect(path)) as db:
        return db.execute(question).fetchall()


@dataclass
class Server:
    """A review served by another process."""

    process: subprocess.Popen[str]
    url: str
    said: str

    @property
    def port(self) -> int:
        return int(urlsplit(self.url).port or 0)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.communicate()

    def stop(self, how: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Ask it to stop; its exit code and what it printed."""
        self.process.send_signal(how)
        out, _ = self.process.communicate(timeout=30)
        return self.process.returncode, self.said + out


def start(*arguments: object, **options: Any) -> Server:
    """Start `hitmiss review` on a free port and wait until it says where."""
    command = [sys.executable, "-m", "hitmiss", "review", *map(str, arguments), "--port", "0"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, **options
    )
    assert process.stdout is not None
    said = ""
    while "Ctrl-C" not in said:
        line = process.stdout.readline()
        assert line, f"the server did not start: {said}"
        said += line
    found = re.search(r"http://\S+", said)
    assert found is not None
    return Server(process, found[0], said)


@contextmanager
def serving(*arguments: object, **options: Any) -> Iterator[Server]:
    """A server for the time of a block."""
    server = start(*arguments, **options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.communicate()


@dataclass
class Answer:
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: bytes
    cookies: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.body.decode()

    def field(self, name: str) -> str:
        """The value of a form's field."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.text)
        assert found is not None, f"no field {name}: {self.text[:500]}"
        return found[1]


class Client:
    """A browser without a window: it keeps its cookie and sends what it is told to."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.port, self.host, self.cookie = port, host, ""

    def ask(self, method: str, path: str, body: bytes | None = None, headers: Sequence[tuple[str, str]] = ()) -> Answer:
        """One request. A Host header among `headers` replaces the right one."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            answer = self._asked(connection, method, path, body, headers)
        if answer.cookies:
            self.cookie = answer.cookies[0].partition(";")[0]
        return answer

    def _asked(
        self, connection: Any, method: str, path: str, body: bytes | None, headers: Sequence[tuple[str, str]]
    ) -> Answer:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        given = {name.lower() for name, _ in headers}
        every = [*headers]
        every += [("Host", f"{self.host}:{self.port}")] if "host" not in given else []
        every += [("Cookie", self.cookie)] if self.cookie and "cookie" not in given else []
        every += [("Content-Length", str(len(body)))] if body is not None and "content-length" not in given else []
        for name, value in every:
            connection.putheader(name, value)
        connection.endheaders(body)
        got = connection.getresponse()
        cookies = got.headers.get_all("set-cookie") or []
        return Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read(), cookies)

    def get(self, path: str, *headers: tuple[str, str]) -> Answer:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, fields: dict[str, str], *headers: tuple[str, str]) -> Answer:
        form = ("Content-Type", "application/x-www-form-urlencoded")
        return self.ask("POST", path, urlencode(fields).encode(), [*headers, form])

    def sign_in(self, name: str, **more: str) -> Answer:
        token = self.get("/").field("form_token")
        return self.post("/sign-in", {"form_token": token, "name": name, **more})

    def judge(self, verdict: str = "positive", **more: str) -> Answer | None:
        """Judge the next item; None where there is none."""
        page = self.get("/review")
        if 'action="/verdict"' not in page.text:
            return None
        fields = {"form_token": page.field("form_token"), "item": page.field("item"), "verdict": verdict, **more}
        return self.post("/verdict", fields)
