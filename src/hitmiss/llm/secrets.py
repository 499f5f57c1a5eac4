"""Keys: found in the environment, handed to the provider, and taken out of every text that is kept or shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from hitmiss.errors import UsageError

NAMES: Final = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$", re.IGNORECASE)
BEARER: Final = re.compile(r"(?i)(bearer|api[-_ ]?key[\"']?\s*[:=])\s*[\"']?[A-Za-z0-9._~+/=-]{8,}")
SHORTEST: Final = 8
HIDDEN: Final = "[key removed]"


@dataclass(frozen=True, repr=False)
class Secrets:
    """Values that must appear nowhere. It has no repr, so that a traceback cannot print them."""

    values: tuple[str, ...] = ()

    @classmethod
    def of_environment(cls, *more: str | None) -> Secrets:
        """Every value whose name says that it is secret, and those given."""
        named = [v for k, v in os.environ.items() if NAMES.search(k)]
        hidden = [_inside(v) for v in os.environ.values()]
        found = {v for v in (*named, *hidden, *more) if v and len(v) >= SHORTEST}
        return cls(tuple(sorted(found, key=len, reverse=True)))

    def redact(self, text: str) -> str:
        """The text without the secrets, and without what looks like a key after `Bearer` or `api_key=`.

        >>> Secrets(("sk-123456",)).redact("Incorrect API key provided: sk-123456; Bearer abcdefghij")
        'Incorrect API key provided: [key removed]; Bearer [key removed]'
        """
        for value in self.values:
            text = text.replace(value, HIDDEN)
        return BEARER.sub(lambda m: f"{m[1]} {HIDDEN}", text)

    def clean(self, value: Any) -> Any:
        """The same for every text inside a JSON-like value."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self.redact(str(k)): self.clean(v) for k, v in value.items()}
        return [self.clean(v) for v in value] if isinstance(value, list | tuple) else value


def _inside(value: str) -> str | None:
    """The password of an address; where it has only a user name, that is the secret.

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
    """The key that an environment variable holds; a name that is not set is an error."""
    if variable is None:
        return None
    value = os.environ.get(variable)
    if not value:
        raise UsageError(f"--api-key-env names {variable}, which is not set in the environment")
    return value
