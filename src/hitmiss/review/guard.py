"""Checks on every request: the host name (Host), the site it comes from (Origin), the method, and the browser's rights.

DNS rebinding needs a name of the attacker in the Host header, so only known names are answered. A numeric address cannot
be rebound, and is answered if remote use was allowed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Final, cast

Headers = list[tuple[bytes, bytes]]
Scope = MutableMapping[str, object]
Receive = Callable[[], Awaitable[MutableMapping[str, object]]]
Send = Callable[[MutableMapping[str, object]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
MEDIA_POLICY: Final = "default-src 'none'; frame-ancestors 'none'; sandbox"
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
FORM: Final = "application/x-www-form-urlencoded"


def is_loopback(host: str) -> bool:
    """Say whether an address to listen on can be reached only from this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Hosts:
    """The host names under which the server answers. `remote`: numeric addresses too."""

    port: int
    named: tuple[str, ...] = ()
    remote: bool = False

    def knows(self, host: str) -> bool:
        """Say whether a Host header names one of them.

        >>> here = Hosts(8000)
        >>> here.knows("127.0.0.1:8000"), here.knows("evil.example:8000"), here.knows("127.0.0.1.evil.example:8000")
        (True, False, False)
        """
        name, port = _parts(host.lower())
        if name in self.named:
            return True
        if name in LOOPBACK:
            return port == str(self.port) or (port == "" and self.port in (80, 443))
        return self.remote and _is_address(name)


def _parts(host: str) -> tuple[str, str]:
    end = host.rfind("]")
    name, colon, port = host[end + 1 :].partition(":") if end >= 0 else host.partition(":")
    return (host[: end + 1] if end >= 0 else name), port if colon else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class Guard:
    """A wrapper around an application that checks requests and adds security headers to every response."""

    def __init__(self, app: App, hosts: Hosts) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        wrong = self._refusal(scope)
        if wrong is not None:
            await _refuse(send, *wrong)
            return
        await self._app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        hosts = _all(scope, b"host")
        if len(hosts) != 1 or not self._hosts.knows(hosts[0]):
            return 400, "This server is not known by that name."
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "This can only be read or posted to."
        return self._foreign(scope, hosts[0]) if scope["method"] == "POST" else None

    def _foreign(self, scope: Scope, host: str) -> tuple[int, str] | None:
        """Say whether a form comes from another site, or is not a form."""
        origins, sites = _all(scope, b"origin"), _all(scope, b"sec-fetch-site")
        if any(origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}") for origin in origins):
            return 403, "This came from another site."
        if any(site not in ("same-origin", "none") for site in sites):
            return 403, "This came from another site."
        kinds = [kind.partition(";")[0].strip().lower() for kind in _all(scope, b"content-type")]
        return None if kinds == [FORM] else (415, "Only forms are taken.")


def _all(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in cast(Headers, scope["headers"]) if key == name]


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, object]) -> None:
        if message["type"] == "http.response.start":
            own = cast(Headers, message["headers"])
            message["headers"] = [*own, *_encoded(HEADERS.items(), {key.lower() for key, _ in own})]
        await send(message)

    return sending


def _encoded(headers: Iterable[tuple[str, str]], given: set[bytes]) -> list[tuple[bytes, bytes]]:
    pairs = [(name.encode(), value.encode()) for name, value in headers]
    return [pair for pair in pairs if pair[0] not in given]


async def _refuse(send: Send, status: int, text: str) -> None:
    body = (text + "\n").encode()
    headers = [*_encoded(HEADERS.items(), set()), (b"content-type", b"text/plain; charset=utf-8")]
    headers += [(b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
