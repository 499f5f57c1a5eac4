"""A substitute for a model: a local server with the OpenAI protocol, for the demo and the examples.

It is NOT a language model. Behind the protocol there is a fixed rule on a few measurements: it looks at the picture
that it is sent, and, if tools are offered, calls them and uses their results. It listens on this machine only.

    python -m hitmiss.llm.standin --port 8765
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import random
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from hitmiss.core.convert import fit
from hitmiss.llm.openai_forms import as_chat, as_response, object_in, objects_in

if TYPE_CHECKING:
    from hitmiss.llm.items import Item

NAME: Final = "stand-in"
NOTE: Final = "a stand-in that measures the picture by a fixed rule; it is not a language model"
DOUBT: Final = 0.6
"""Log-odds below which it answers `uncertain`."""


@dataclass(frozen=True)
class Seen:
    """A request as the server saw it: its number, the hash of the item, what was offered, and how often it came."""

    number: int
    model: str
    item: str
    has_tools: bool
    n_results: int
    times: int
    key: str
    text: str
    length: int = 0
    data: bytes = field(default=b"", repr=False)
    parameters: Mapping[str, object] = field(default_factory=dict)
    id: str = ""
    """The name that the client gave the request."""


Evidence = Mapping[str, Mapping[str, object]]
"""What the tools found, by the tool's name."""


class QuietServer(ThreadingHTTPServer):
    """A server that prints nothing when a client is killed in the middle of a request."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """Ignore clients that are gone; show everything else."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Handles one request."""

    owner: StandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Read a request to `/v1/chat/completions` or `/v1/responses`, and answer it."""
        length = int(self.headers["Content-Length"])
        data = self.rfile.read(length)
        if len(data) < length:  # the client was killed while it was sending
            self.close_connection = True
            return
        body = as_chat(json.loads(data)) if self.is_response else json.loads(data)
        key = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        self.name = self.headers.get("X-Client-Request-Id") or ""
        self.respond(body, self.owner.note(body, key, length, self.name))

    def respond(self, body: Mapping[str, object], seen: Seen) -> None:
        """Answer a request that was noted."""
        self.answer(completion(body, seen))

    @property
    def is_response(self) -> bool:
        """Whether the newer of the protocol's two forms is used."""
        return self.path.endswith("/responses")

    def answer(self, value: Mapping[str, object]) -> None:
        """Send a completion in the form that was asked for."""
        self.reply(200, as_response(value) if self.is_response else value)

    def reply(self, status: int, value: Mapping[str, object], headers: Mapping[str, str] | None = None) -> None:
        """Send a JSON body."""
        self.send(status, json.dumps(value).encode(), headers)

    def send(self, status: int, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send bytes; a client that is gone is ignored."""
        try:
            self.send_response(status)
            told = {"Content-Type": "application/json", "Content-Length": str(len(data)), **(headers or {})}
            for name, text in told.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing on stderr."""


class StandIn:
    """The server; `requests` lists all requests."""

    handler: type[Handler] = Handler

    def __init__(self, *, port: int = 0) -> None:
        self.requests: list[Seen] = []
        self._times: Counter[tuple[object, ...]] = Counter()
        self._lock = threading.Lock()
        self._server = QuietServer(("127.0.0.1", port), type("Bound", (self.handler,), {"owner": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL, for `--base-url`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def note(self, body: Mapping[str, object], key: str, length: int = 0, name: str = "") -> Seen:
        """Record a request, with how often the same one came before."""
        item, text = item_of(body)
        results = sum(m.get("role") == "tool" for m in objects_in(body, "messages"))
        mark = (body.get("model"), hashlib.sha256(item).hexdigest(), "tools" in body, results)
        with self._lock:
            self._times[mark] += 1
            number, times = len(self.requests) + 1, self._times[mark]
            own = {name: body[name] for name in ("temperature", "seed") if name in body}
            seen = Seen(number, str(mark[0]), mark[1], mark[2], results, times, key, text, length, item, own, name)
            self.requests.append(seen)
        return seen


def completion(body: Mapping[str, object], seen: Seen) -> dict[str, object]:
    """Return a proper answer: tool calls if tools are offered and none was called yet, else a verdict."""
    if seen.has_tools and not seen.n_results:
        calls = [
            {
                "id": f"call-{seen.number}-{i}",
                "type": "function",
                "function": {"name": object_in(t, "function")["name"], "arguments": "{}"},
            }
            for i, t in enumerate(objects_in(body, "tools"))
        ]
        return chat_completion(body, seen, {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls")
    results = {str(m["tool_call_id"]): m for m in objects_in(body, "messages") if m.get("role") == "tool"}
    evidence = _evidence(body, results) if results else None
    found = judge(seen.data, evidence, temperature=fit(float, body.get("temperature") or 0.0), draw=seen.times)
    return said(body, seen, json.dumps({**found, "rationale": f"{found['rationale']} (answer {seen.number})"}))


def said(body: Mapping[str, object], seen: Seen, text: str) -> dict[str, object]:
    """Return a completion with this text."""
    return chat_completion(body, seen, {"role": "assistant", "content": text}, "stop")


def chat_completion(
    body: Mapping[str, object], seen: Seen, message: Mapping[str, object], why: str
) -> dict[str, object]:
    """Return a completion with this message, and why it ended."""
    n_in, n_out = seen.length // 400 + 1, len(json.dumps(message)) // 4 + 1
    usage = {"prompt_tokens": n_in, "completion_tokens": n_out, "total_tokens": n_in + n_out}
    choice = {"index": 0, "finish_reason": why, "message": message}
    about = {"id": f"answer-{seen.number}", "object": "chat.completion", "created": int(time.time())}
    return {**about, "model": f"{body.get('model')}-2026-01", "choices": [choice], "usage": usage}


def item_of(body: Mapping[str, object]) -> tuple[bytes, str]:
    """Return the bytes of the item in a request (the picture, else the last user turn's text), and all user text."""
    texts: list[str] = []
    found = b""
    for message in objects_in(body, "messages"):
        if message.get("role") != "user":
            continue
        content = message["content"]
        if isinstance(content, str):
            texts.append(content)
            continue
        for part in objects_in(message, "content"):
            if part["type"] == "text":
                texts.append(str(part["text"]))
            elif part["type"] == "image_url":
                found = base64.b64decode(str(object_in(part, "image_url")["url"]).partition(",")[2])
            elif part["type"] == "input_audio":
                sound = str(object_in(part, "input_audio")["data"])
                found = base64.b64decode(sound.partition(",")[2] or sound)
    text = "\n".join(texts)
    return found or text.encode(), text


def _evidence(body: Mapping[str, object], results: Mapping[str, Mapping[str, object]]) -> Evidence:
    """Return the results of the tools, by the tool's name."""
    calls = [call for message in objects_in(body, "messages") for call in objects_in(message, "tool_calls")]
    names = {call["id"]: str(object_in(call, "function")["name"]) for call in calls}
    found: dict[str, Mapping[str, object]] = {}
    for call_id, message in results.items():
        content = message["content"]
        parts = [] if isinstance(content, str) else objects_in(message, "content")
        text = content if isinstance(content, str) else "".join(str(p.get("text", "")) for p in parts)
        try:
            found[names.get(call_id, "")] = json.loads(text)
        except ValueError:
            continue
    return found


def judge(
    item: bytes, evidence: Evidence | None = None, *, temperature: float = 0.0, draw: int = 1
) -> dict[str, object]:
    """Apply the rule. Without tools it measures the noise itself; with them it uses their spectrum and residual.

    `temperature` adds noise to the log-odds, drawn again each time the same request comes.
    """
    odds, why = _log_odds(item, evidence)
    noise = random.Random(f"{hashlib.sha256(item).hexdigest()}{draw}{bool(evidence)}")
    odds += temperature * noise.gauss(0.0, 0.8)
    sureness = 1 / (1 + math.exp(-abs(odds)))
    verdict = "uncertain" if abs(odds) < DOUBT else "fake" if odds > 0 else "real"
    return {"verdict": verdict, "confidence": round(min(0.99, sureness), 2), "rationale": f"{why}; {NOTE}"}


def _log_odds(item: bytes, evidence: Evidence | None) -> tuple[float, str]:
    from hitmiss.core.errors import DataError
    from hitmiss.llm.tools.pictures import noise_residual

    if evidence and "sound_spectrum" in evidence:
        height = fit(float, evidence["sound_spectrum"].get("highest_over_half_rate") or 0.0)
        return 8.0 * (0.8 - height), f"the sound ends at {height:.2f} of half its sample rate"
    if evidence and "noise_residual" in evidence:
        noise, power = evidence.get("noise_residual", {}), evidence.get("frequency_spectrum", {})
        right, slope = fit(float, noise.get("correlation_right") or 0.0), fit(float, power.get("slope") or -3.2)
        return 12.0 * (right - 0.05) + 1.5 * (-3.25 - slope), f"correlation {right:.3f}, slope {slope:.2f}"
    try:
        deviation = fit(float, noise_residual(item)["deviation"])
    except DataError:  # not a picture: a text is judged by how often it repeats its words
        words = item.decode("utf-8", "replace").lower().split()
        share = len(set(words)) / max(1, len(words))
        return 8.0 * (0.75 - share), f"{share:.2f} of the words are distinct"
    return 4.0 * (1.05 - deviation), f"noise {deviation:.3f}"


def look(item: Item) -> dict[str, object]:
    """Apply the same rule as a plain function for `--models hitmiss.llm.standin:look`: no server, no tools."""
    return judge(item.load())


def main() -> None:
    """Serve until interrupted."""
    import argparse

    parser = argparse.ArgumentParser(description="A local server that speaks the OpenAI protocol: " + NOTE)
    parser.add_argument("--port", type=int, default=8765)
    with StandIn(port=parser.parse_args().port) as server:
        print(f"{NAME} at {server.url}: {NOTE}")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()
