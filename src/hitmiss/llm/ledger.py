"""The ledger: every request to a model, written and synced before it is sent; then what came of it.

    run/ledger/000001.jsonl    one line per request ("sent") and one per outcome, of one process

A request without an outcome is in doubt: the process was killed, or lost power, while it was under way, and nobody here
knows whether it was answered and what it cost. Everything that a server saw is in the ledger, whoever asked: the
agent, the models of other roles, first attempts and repeated ones.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hitmiss.detection.detector import need
from hitmiss.llm.failures import kind_of, now
from hitmiss.llm.prices import Prices
from hitmiss.llm.secrets import Secrets
from hitmiss.llm.wire import parameters
from hitmiss.runs.segments import SegmentReader, SegmentWriter

if TYPE_CHECKING:
    from httpx import Request, Response

FOLDER: Final = "ledger"
HEADER: Final = "X-Client-Request-Id"
"""The header with the name of a request, by which a provider can find it again."""
MINUTE: Final = 60.0


@dataclass
class Asking:
    """The conversation that sends requests now, in one of the roles; and the requests that it has sent."""

    call: str
    role: str = "agent"
    attempts: list[str] = field(default_factory=list)


_asking: ContextVar[Asking | None] = ContextVar("asking", default=None)


@contextmanager
def asking(conversation: Asking) -> Iterator[None]:
    """Note requests that are sent in this block under a conversation."""
    token = _asking.set(conversation)
    try:
        yield
    finally:
        _asking.reset(token)


class Ledger:
    """Writes the ledger of a run, and keeps to its rates: requests and tokens per minute."""

    def __init__(
        self,
        folder: Path,
        prices: Prices,
        secrets: Secrets,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
    ) -> None:
        self._writer = SegmentWriter(folder / FOLDER)
        self._prices, self._secrets = prices, secrets
        self._requests, self._tokens = Rate(requests_per_minute), Rate(tokens_per_minute)
        self._n = 0
        self._running: asyncio.Future[None] | None = None
        self._next: asyncio.Future[None] | None = None

    async def sent(self, model: str, address: str, body: Mapping[str, object], size: int) -> str:
        """Write that a request is about to be sent; return its name when this is on the disk."""
        self._n += 1
        found, name = _asking.get(), f"{self._writer.path.stem}-{self._n}"
        who = {"call": found.call, "role": found.role} if found is not None else {}
        if found is not None:
            found.attempts.append(name)
        what = {"model": model, "address": address, "parameters": parameters(body), "bytes": size}
        self._writer.append({"id": name, "event": "sent", "at": now(), **who, **what})
        try:
            await self._sync()
        except BaseException:
            self.ended(name, model, 0.0, error="exception", why="it was not sent")
            raise
        return name

    async def _sync(self) -> None:
        """Wait until everything written so far is on the disk; requests that come together share one sync."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._sync_after(self._running))
        await asyncio.shield(self._next)

    async def _sync_after(self, before: asyncio.Future[None] | None) -> None:
        """Sync in a thread, when the sync before this one has ended: what is written until then is in this one."""
        if before is not None:
            await asyncio.wait([before])
        self._running, self._next = self._next, None
        await asyncio.get_running_loop().run_in_executor(None, self._writer.sync)

    def ended(self, name: str, model: str, seconds: float, **facts: object) -> None:
        """Write what came of a request."""
        tokens = facts.get("tokens")
        cost = self._prices.cost(model, tokens)[0] if isinstance(tokens, dict) else None
        if isinstance(tokens, dict):
            self._tokens.add(tokens["input"] + tokens["output"])
        known = {k: self._secrets.clean(v) for k, v in {**facts, "cost": cost}.items() if v is not None}
        self._writer.append({"id": name, "event": "outcome", "at": now(), "seconds": round(seconds, 6), **known})

    async def turn(self) -> None:
        """Wait until another request may be sent."""
        anyio = need("anyio", "llm")
        while (pause := max(self._requests.pause(), self._tokens.pause())) > 0:
            await anyio.sleep(min(pause, 1.0))
        self._requests.add(1)

    def close(self) -> None:
        """Sync and close; a ledger without a request leaves nothing."""
        self._writer.close()
        with suppress(OSError):
            self._writer.path.parent.rmdir()


@dataclass
class Rate:
    """How much was used in the last minute, and how long to wait before more may be used.

    >>> rate = Rate(10)
    >>> rate.add(10); 0 < rate.pause() <= 60, Rate(None).pause()
    (True, 0.0)
    """

    most: float | None
    _used: deque[tuple[float, float]] = field(default_factory=deque)

    def add(self, n: float) -> None:
        """Note that so much was used now."""
        if self.most is not None:
            self._used.append((time.monotonic(), n))

    def pause(self) -> float:
        """Return the seconds until the use of the last minute is below the limit."""
        if self.most is None:
            return 0.0
        since = time.monotonic() - MINUTE
        while self._used and self._used[0][0] < since:
            self._used.popleft()
        if sum(n for _, n in self._used) < self.most:
            return 0.0
        return max(self._used[0][0] - since, 0.001)


def keep_ledger(api: object, ledger: Ledger, model: str, *, in_batches: bool = False) -> None:
    """Have every request of a provider's client go through the ledger: off the wire where it uses httpx.

    Of requests that go in batches, the wire shows files only: each is noted when it is put into a batch.
    """
    if in_batches:
        _listen_to_calls(api, ledger, model)
        return
    for holder in (api, getattr(api, "client", None)):
        for name in ("http_client", "_client"):
            client = getattr(holder, name, None)
            if hasattr(client, "_transport") and hasattr(client, "_mounts"):
                _listen_to(client, ledger)
                return
    _listen_to_calls(api, ledger, model)


def _listen_to(client: object, ledger: Ledger) -> None:
    """Put the ledger between an httpx client and its connections."""
    httpx = need("httpx", "llm")

    class Transport(httpx.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        def __init__(self, inner: object) -> None:
            self.inner = inner

        async def handle_async_request(self, request: Request) -> Response:
            data = await request.aread()
            body = object_of(data)
            await ledger.turn()
            model = str(body.get("model", ""))
            name, began = await ledger.sent(model, str(request.url), body, len(data)), time.perf_counter()
            request.headers[HEADER] = f"hitmiss-{name}"
            try:
                response = await self.inner.handle_async_request(request)  # type: ignore[attr-defined]
                found = object_of(await response.aread())
            except BaseException as error:
                ledger.ended(name, model, time.perf_counter() - began, error=kind_of(error), why=type(error).__name__)
                raise
            about = {"answered": found.get("model"), "tokens": tokens_in(found), "body": None if found else "malformed"}
            ledger.ended(name, model, time.perf_counter() - began, status=response.status_code, **about)
            if not found and response.status_code == 200:
                raise httpx.RemoteProtocolError("the body of the answer is not JSON")  # which is repeated
            return response

        async def aclose(self) -> None:
            await self.inner.aclose()  # type: ignore[attr-defined]

    client._transport = Transport(client._transport)  # type: ignore[attr-defined]
    mounts = client._mounts.items()  # type: ignore[attr-defined]
    client._mounts = {k: None if t is None else Transport(t) for k, t in mounts}  # type: ignore[attr-defined]


def _listen_to_calls(api: object, ledger: Ledger, model: str) -> None:
    """Note the calls of a provider whose connections cannot be seen: one entry per attempt of inspect_ai."""
    original = api.generate  # type: ignore[attr-defined]

    async def generate(*args: object, **kwargs: object) -> object:
        await ledger.turn()
        name, began = await ledger.sent(model, type(api).__name__, {}, 0), time.perf_counter()
        try:
            result = await original(*args, **kwargs)
        except BaseException as error:
            ledger.ended(name, model, time.perf_counter() - began, error=kind_of(error), why=type(error).__name__)
            raise
        output = result[0] if isinstance(result, tuple) else result
        usage = getattr(output, "usage", None)
        tokens = None if usage is None else {"input": usage.input_tokens, "output": usage.output_tokens}
        ledger.ended(name, model, time.perf_counter() - began, answered=getattr(output, "model", None), tokens=tokens)
        return result

    api.generate = generate  # type: ignore[attr-defined]


def tokens_in(body: Mapping[str, object]) -> dict[str, int] | None:
    """Return the tokens that a provider's answer reports, in the spelling of any of them.

    >>> tokens_in({"usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    {'input': 7, 'output': 2}
    >>> tokens_in({"usage": {"input_tokens": 7, "output_tokens": 2, "cache_read_input_tokens": 3}})
    {'input': 10, 'output': 2, 'cached_input': 3}
    """
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        return None
    given = usage.get("prompt_tokens", usage.get("input_tokens"))
    made = usage.get("completion_tokens", usage.get("output_tokens"))
    if not isinstance(given, int) or not isinstance(made, int):
        return None
    details = usage.get("prompt_tokens_details", usage.get("input_tokens_details"))
    inside = details.get("cached_tokens") if isinstance(details, Mapping) else None
    apart = usage.get("cache_read_input_tokens")  # those of Anthropic are not among the input tokens
    if isinstance(apart, int) and apart:
        return {"input": given + apart, "output": made, "cached_input": apart}
    return {"input": given, "output": made, **({"cached_input": inside} if isinstance(inside, int) and inside else {})}


def object_of(data: bytes) -> dict[str, object]:
    """Return the JSON object of a body; empty if it holds none."""
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class Account:
    """What the ledger of a run adds up to."""

    requests: int = 0
    answered: int = 0
    failed: int = 0
    in_doubt: int = 0
    """Requests without an outcome: whether they were answered is not known."""
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    """Answered requests whose cost is not known."""

    def __str__(self) -> str:
        doubt = f", {self.in_doubt:,} in doubt" if self.in_doubt else ""
        cost = f", cost {self.cost:.6g}" if self.answered > self.unpriced else ""
        return f"{self.requests:,} requests, {self.failed:,} failed{doubt}, {self.tokens:,} tokens{cost}"


def read_ledger(folder: str | Path) -> list[dict[str, object]]:
    """Return every request of a run, with what came of it; one without an outcome has none (`"outcome": None`)."""
    found: dict[str, dict[str, object]] = {}
    for line in _lines(folder):
        if line["event"] == "sent":
            found[str(line["id"])] = {**line, "outcome": None}
        else:
            found[str(line["id"])]["outcome"] = {k: v for k, v in line.items() if k not in ("id", "event")}
    return list(found.values())


def _lines(folder: str | Path) -> Iterator[dict[str, object]]:
    for path in sorted((Path(folder) / FOLDER).glob("*.jsonl")):
        yield from SegmentReader(path).records()


def account_of(folder: str | Path) -> Account:
    """Add up the ledger of a run, line by line."""
    n, cost = Counter[str](), 0.0
    for line in _lines(folder):
        n[str(line["event"])] += 1
        if line["event"] == "sent":
            continue
        tokens, own = line.get("tokens"), line.get("cost")
        n["tokens"] += tokens["input"] + tokens["output"] if isinstance(tokens, dict) else 0
        if "error" in line or "body" in line or int(str(line.get("status", 200))) >= 300:
            continue
        n["answered"] += 1
        n["priced"] += isinstance(own, int | float)
        cost += own if isinstance(own, int | float) else 0.0
    failed, in_doubt = n["outcome"] - n["answered"], n["sent"] - n["outcome"]
    return Account(n["sent"], n["answered"], failed, in_doubt, n["tokens"], cost, n["answered"] - n["priced"])
