"""Keys: read from the environment, passed to the provider, and removed from every text that is kept or shown.

They are removed from provider messages before inspect_ai can log them: some servers echo them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol, TypeVar
from urllib.parse import urlsplit

from hitmiss.core.errors import HitmissError, UsageError

if TYPE_CHECKING:
    from inspect_ai.model import Model
from hitmiss.llm.wire import heard

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
        raise UsageError.of("no-api-key", variable=variable)
    return value


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
    if isinstance(error, HitmissError) and error.finding is not None:
        clean = {name: secrets.redact(v) if isinstance(v, str) else v for name, v in error.finding.values.items()}
        error.finding = replace(error.finding, values=clean)
    for name in ("message", "body", "request_id", "code", "provider_message"):
        if isinstance(getattr(error, name, None), str | dict | list):
            with suppress(AttributeError):
                setattr(error, name, secrets.clean(getattr(error, name)))
    error.__cause__ = error.__context__ = None
    return error
