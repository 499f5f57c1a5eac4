"""Where models are asked: addresses without secrets, and whether a server can be reached."""

from __future__ import annotations

import os
import re
import socket
import urllib.request
from typing import Final
from urllib.parse import SplitResult, urlsplit

from hitmiss.core.errors import EnvironmentFault, UsageError

OPENAI: Final = "https://api.openai.com/v1"
VARIABLE: Final = "OPENAI_BASE_URL"
ANY_VARIABLE: Final = re.compile(r"_(BASE_URL|ENDPOINT)$")
ELSEWHERE: Final = ("openai/azure/", "openai/bedrock/")
SECONDS: Final = 10.0
"""How long a server may take to accept a connection."""


def checked_address(url: str, name: str = "--base-url") -> tuple[str, str | None]:
    """Return a base URL without secrets, and a warning if it is neither encrypted nor on this machine.

    >>> checked_address("http://127.0.0.1:8000/v1")
    ('http://127.0.0.1:8000/v1', None)
    """
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https"):
        raise UsageError.of("bad-url", name=name)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError.of("bad-url/secret", name=name)
    is_near = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme == "http" and not is_near:
        return url, f"{parts.hostname} is asked without encryption: items and key can be read on the way"
    return url, None


def require_plain_environment() -> None:
    """Refuse an environment address with a user name or a password: it would be logged with the address."""
    for name, value in os.environ.items():
        parts = _split(value) if ANY_VARIABLE.search(name) else None
        if parts is not None and (parts.username or parts.password):
            raise UsageError.of("bad-url/variable", name=name)


def is_openai(model: str, base_url: str | None, provider: str | None) -> bool:
    """Return whether a model is one of OpenAI's own: a bare name, or `openai/name`.

    >>> is_openai("gpt-5.1", None, None), is_openai("anthropic/claude", None, None), is_openai("m", "http://h/v1", None)
    (True, False, False)
    """
    if provider is not None or base_url is not None:
        return provider == "openai"
    return "/" not in model or (model.startswith("openai/") and not model.startswith(ELSEWHERE))


def server_of(model: str, base_url: str | None, provider: str | None) -> str | None:
    """Return the address that the user gave for a model: `--base-url`, or OPENAI_BASE_URL for OpenAI's."""
    if base_url is None and is_openai(model, base_url, provider):
        return os.environ.get(VARIABLE) or None
    return base_url


def require_server(address: str) -> None:
    """Raise if nothing accepts a connection at an address; with a proxy in between, this cannot be checked."""
    parts = urlsplit(address)
    host, port = str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)
    proxies = urllib.request.getproxies()
    if (proxies.get(parts.scheme) or proxies.get("all")) and not urllib.request.proxy_bypass(host):
        return
    try:
        socket.create_connection((host, port), timeout=SECONDS).close()
    except OSError as error:
        why = "no answer within 10 seconds" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise EnvironmentFault.of("unreachable/server", host=host, port=port, why=why) from None


def refuse_redirects(api: object) -> None:
    """Stop a provider's client from following redirects: a server must not forward items to another."""
    for holder in (api, getattr(api, "client", None)):
        for name in ("http_client", "_client"):
            client = getattr(holder, name, None)
            if client is not None and hasattr(client, "follow_redirects"):
                client.follow_redirects = False


def leave_retries_to_inspect(api: object) -> None:
    """Stop a provider's client from repeating requests by itself: `--max-retries` says how often, and all are counted."""
    client = getattr(api, "client", None)
    if isinstance(getattr(client, "max_retries", None), int):
        client.max_retries = 0  # type: ignore[union-attr]


def _split(url: str) -> SplitResult | None:
    """Return the parts of an address; None if it is not one."""
    try:
        parts = urlsplit(url)
        return parts if parts.hostname and parts.port != 0 else None
    except ValueError:
        return None
