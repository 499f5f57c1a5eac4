"""Keys, addresses without secrets, redaction of provider messages, and the actual parameters of a request."""

from __future__ import annotations

import json
import os
import re
import socket
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar
from urllib.parse import SplitResult, urlsplit

from hitmiss.core.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    from inspect_ai.model import Model

# ----------------------------------------------------------------------
# The actual parameters of a request: providers silently drop parameters that a model does not accept.

Sent = dict[str, object]

SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "temperature": ("temperature",),
    "seed": ("seed",),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"),
    "reasoning_effort": ("reasoning_effort", "effort"),
}
"""Settings of a run, under the names that providers use."""
CONTENT: Final = ("messages", "input", "contents", "tools", "system", "response_format", "text", "output_config")
"""Parts of a request that hold the question; names in them are not parameters."""

_sent: ContextVar[Sent | None] = ContextVar("sent", default=None)


def listen(found: Sent | None = None) -> Sent:
    """Return a mapping (or the one given) that is filled with the parameters of this conversation's next requests."""
    found = {} if found is None else found
    _sent.set(found)
    return found


def heard(result: object) -> None:
    """Record the request that a provider returns with its answer."""
    found, call = _sent.get(), result[-1] if isinstance(result, tuple) and result else None
    request = getattr(call, "request", None)
    if found is not None and isinstance(request, Mapping) and request:
        found.update(parameters(request))


def parameters(request: Mapping[str, object]) -> Sent:
    """Return the settings that a request held; None for those that it did not.

    >>> parameters({"model": "m", "temperature": 0.0, "reasoning": {"effort": "low"}, "messages": [{"seed": 1}]})
    {'temperature': 0.0, 'seed': None, 'max_tokens': None, 'reasoning_effort': 'low'}
    """
    inside = dict(_flat(request))
    return {
        name: next((inside[spelling] for spelling in spellings if spelling in inside), None)
        for name, spellings in SPELLINGS.items()
    }


def _flat(request: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in request.items():
        if isinstance(value, Mapping) and name not in CONTENT:
            yield from _flat(value)
        elif isinstance(value, bool | int | float | str):
            yield name, value


# ----------------------------------------------------------------------
# Keys: read from the environment, passed to the provider, and removed from every text that is kept or shown.

NAMES: Final = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$", re.IGNORECASE)
BEARER: Final = re.compile(r"(?i)(bearer|api[-_ ]?key[\"']?\s*[:=])\s*[\"']?[A-Za-z0-9._~+/=-]{8,}")
SHORTEST: Final = 8
HIDDEN: Final = "[key removed]"


@dataclass(frozen=True, repr=False)
class Secrets:
    """Values that must not appear anywhere. It has no repr, so that a traceback cannot print them."""

    values: tuple[str, ...] = ()

    @classmethod
    def of_environment(cls, *more: str | None) -> Secrets:
        """Collect every environment value whose name marks it as secret, and those given."""
        named = [v for k, v in os.environ.items() if NAMES.search(k)]
        hidden = [_inside(v) for v in os.environ.values()]
        found = {v for v in (*named, *hidden, *more) if v and len(v) >= SHORTEST}
        return cls(tuple(sorted(found, key=len, reverse=True)))

    def redact(self, text: str) -> str:
        """Return the text without the secrets, and without what looks like a key after `Bearer` or `api_key=`.

        >>> Secrets(("sk-123456",)).redact("Incorrect API key provided: sk-123456; Bearer abcdefghij")
        'Incorrect API key provided: [key removed]; Bearer [key removed]'
        """
        for value in self.values:
            text = text.replace(value, HIDDEN)
        return BEARER.sub(lambda m: f"{m[1]} {HIDDEN}", text)

    def clean(self, value: object) -> object:
        """Do the same for every text inside a JSON-like value."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self.redact(str(k)): self.clean(v) for k, v in value.items()}
        return [self.clean(v) for v in value] if isinstance(value, list | tuple) else value


def _inside(value: str) -> str | None:
    """Return the password of an address; if it has only a user name, that is the secret.

    >>> _inside("http://me:pass-word@host/v1"), _inside("https://token-1234@host"), _inside("no address")
    ('pass-word', 'token-1234', None)
    """
    if "://" not in value or "@" not in value:
        return None
    try:
        parts = urlsplit(value)
    except ValueError:
        return None
    return parts.password or parts.username


def key_of(variable: str | None) -> str | None:
    """Return the key in an environment variable; a variable that is not set is an error."""
    if variable is None:
        return None
    value = os.environ.get(variable)
    if not value:
        raise UsageError(f"--api-key-env names {variable}, which is not set in the environment")
    return value


# ----------------------------------------------------------------------
# Keys are removed from provider messages before inspect_ai can log them: some servers echo them.


def redact_api(model: Model, secrets: Secrets) -> None:
    """Pass every answer and error of a model through `secrets` first; record what was sent."""
    original = model.api.generate

    async def generate(*args: object, **kwargs: object) -> object:
        try:
            result = await original(*args, **kwargs)
        except Exception as error:
            raise redact_error(error, secrets) from None
        heard(result)
        if isinstance(result, tuple):
            return tuple(_redacted(part, secrets) for part in result)
        return _redacted(result, secrets)

    model.api.generate = generate


class _Dumped(Protocol):
    """A pydantic object of inspect_ai."""

    def model_dump_json(self) -> str: ...
    @classmethod
    def model_validate_json(cls, json_data: str) -> object: ...


def _redacted(value: _Dumped | BaseException, secrets: Secrets) -> object:
    if isinstance(value, BaseException):
        return redact_error(value, secrets)
    text = value.model_dump_json()
    clean = json.dumps(secrets.clean(json.loads(text)))
    return value if json.loads(clean) == json.loads(text) else type(value).model_validate_json(clean)


E = TypeVar("E", bound=BaseException)


def redact_error(error: E, secrets: Secrets) -> E:
    """Return the same error without keys in its text; its class stays, because retries depend on it.

    >>> redact_error(ValueError("no access for sk-12345678"), Secrets(("sk-12345678",)))
    ValueError('no access for [key removed]')
    """
    error.args = tuple(secrets.clean(arg) for arg in error.args)
    for name in ("message", "body", "request_id", "code", "provider_message"):
        if isinstance(getattr(error, name, None), str | dict | list):
            with suppress(AttributeError):
                setattr(error, name, secrets.clean(getattr(error, name)))
    error.__cause__ = error.__context__ = None
    return error


# ----------------------------------------------------------------------
# Where models are asked: addresses without secrets, and whether a server can be reached.

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
        raise UsageError(f"{name} must be an http or https address, as https://host/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError(f"{name} must hold no user name, password, query or fragment; give a key by --api-key-env")
    is_near = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme == "http" and not is_near:
        return url, f"{parts.hostname} is asked without encryption: items and key can be read on the way"
    return url, None


def require_plain_environment() -> None:
    """Refuse an environment address with a user name or a password: it would be logged with the address."""
    for name, value in os.environ.items():
        parts = _split(value) if ANY_VARIABLE.search(name) else None
        if parts is not None and (parts.username or parts.password):
            raise UsageError(
                f"the environment variable {name} holds a user name or a password; put the key into a variable of its "
                f"own and name it with --api-key-env"
            )


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
        raise EnvironmentFault(
            f"there is no server at {host}:{port} ({why}); is the address right, and is it on?"
        ) from None


def refuse_redirects(api: object) -> None:
    """Stop a provider's client from following redirects: a server must not forward items to another."""
    for holder in (api, getattr(api, "client", None)):
        for name in ("http_client", "_client"):
            client = getattr(holder, name, None)
            if client is not None and hasattr(client, "follow_redirects"):
                client.follow_redirects = False


def _split(url: str) -> SplitResult | None:
    """Return the parts of an address; None if it is not one."""
    try:
        parts = urlsplit(url)
        return parts if parts.hostname and parts.port != 0 else None
    except ValueError:
        return None
