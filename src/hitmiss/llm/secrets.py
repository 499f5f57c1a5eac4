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
        found = {v for v in (*named, *more) if v and len(v) >= SHORTEST}
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


def key_of(variable: str | None) -> str | None:
    """The key that an environment variable holds; a name that is not set is an error."""
    if variable is None:
        return None
    value = os.environ.get(variable)
    if not value:
        raise UsageError(f"--api-key-env names {variable}, which is not set in the environment")
    return value


def checked_address(url: str) -> tuple[str, str | None]:
    """A base URL without secrets in it, and a warning where it is neither encrypted nor this machine.

    >>> checked_address("http://127.0.0.1:8000/v1")
    ('http://127.0.0.1:8000/v1', None)
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("--base-url must be an http or https address, as https://host/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError("--base-url must hold no user name, password, query or fragment; give a key by --api-key-env")
    is_near = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme == "http" and not is_near:
        return url, f"{parts.hostname} is asked without encryption: items and key can be read on the way"
    return url, None
