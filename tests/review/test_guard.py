"""The guard alone, with headers that an HTTP server may let through."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hitmiss.review.guard import Guard, Hosts

OWN, EVIL = b"127.0.0.1:8000", b"evil.example:8000"


@pytest.mark.parametrize(
    ("hosts", "status"),
    [([OWN], 200), ([EVIL], 400), ([], 400), ([OWN, EVIL], 400), ([EVIL, OWN], 400), ([OWN, OWN], 400)],
)
def test_one_host_that_is_known_is_answered(hosts: list[bytes], status: int) -> None:
    """Which of several hosts an application takes is not known, so none of them is."""
    sent: list[dict[str, Any]] = []

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", host) for host in hosts]}
    asyncio.run(Guard(application, Hosts(8000))(scope, None, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == status
