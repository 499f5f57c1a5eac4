"""What went wrong, derived from errors of providers and inspect_ai: the kind of a failed call, and why a run stopped."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from hitmiss.core.artifacts import FULL, disk_full
from hitmiss.core.errors import EnvironmentFault
from hitmiss.llm.secrets import Secrets
from hitmiss.runs.segments import SAFE
from hitmiss.runs.worker import Fault

LONGEST_ERROR: Final = 600


def failure(error: BaseException, kind: str = "exception") -> dict[str, object]:
    """Return the record of a failed call.

    >>> failure(ValueError("no answer"))
    {'error': 'ValueError: no answer', 'error_type': 'exception'}
    """
    said = getattr(error, "provider_message", None) or str(error)
    text = " ".join([f"{type(error).__name__}:", *str(said).split()])
    return {"error": text.removesuffix(":")[:LONGEST_ERROR], "error_type": kind}


def now() -> str:
    """Return the time in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


CODE: Final = re.compile(r"Error code: (\d{3})\b")
NOTHING_LEFT: Final = "insufficient_quota"
"""What OpenAI and others say with status 429 if an account is used up."""
KINDS_BY_CODE: Final = {"401": "authentication", "403": "permission", "404": "not_found", "429": "rate_limit"}


class StatusError(Exception):
    """A server's refusal, with its status.

    >>> kind_of(StatusError(429, "slow down", {})), StatusError(429, "", {"retry-after-ms": "20"}).wait
    ('rate_limit', 0.02)
    """

    def __init__(self, status: int, said: str, headers: Mapping[str, str]) -> None:
        super().__init__(f"Error code: {status} - {said}")
        self.status, self.headers = status, headers

    @property
    def is_final(self) -> bool:
        """Whether waiting does not help, although the status says so: the account has nothing left."""
        return NOTHING_LEFT in str(self)

    @property
    def wait(self) -> float | None:
        """How many seconds the server asks to wait."""
        for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
            with suppress(KeyError, ValueError):
                return max(float(self.headers[name]) * scale, 0.0)
        return None


class MalformedAnswer(Exception):
    """The body of an answer is not JSON; the same request may succeed later."""


def fault_of(kind: str) -> Fault:
    """Return whose fault a failure of this kind is.

    >>> fault_of("authentication"), fault_of("rate_limit"), fault_of("exception")
    ('refused', 'service', 'item')
    """
    if kind in ("authentication", "not_found", "redirect", "quota"):
        return "refused"
    return "service" if kind in ("permission", "rate_limit", "timeout", "connection", "server") else "item"


def inner(error: BaseException) -> BaseException:
    """Return the error that made the last retry fail, if retries were given up."""
    attempt = getattr(error, "last_attempt", None)
    found = attempt.exception() if attempt is not None else None
    return found if isinstance(found, BaseException) else error


def kind_of(error: BaseException) -> str:
    """Return the kind of a failure, as written in the rows.

    >>> kind_of(TimeoutError()), kind_of(ValueError()), kind_of(ValueError("Error code: 403 - no"))
    ('timeout', 'exception', 'permission')
    """
    name = type(error).__name__.lower()
    if NOTHING_LEFT in str(error):
        return "quota"
    code = CODE.search(str(error))  # inspect_ai may have wrapped the provider's error
    if code is not None and (code[1] in KINDS_BY_CODE or code[1][0] in "35"):
        return KINDS_BY_CODE.get(code[1], "redirect" if code[1].startswith("3") else "server")
    kinds = {
        "timeout": "timeout",
        "ratelimit": "rate_limit",
        "authentication": "authentication",
        "connect": "connection",
        "protocol": "connection",
        "readerror": "connection",
        "writeerror": "connection",
        "internalserver": "server",
        "malformed": "server",
    }
    return next((kind for part, kind in kinds.items() if part in name), "exception")


def broken(error: BaseException, secrets: Secrets) -> EnvironmentFault:
    """Explain in a sentence what made inspect_ai itself fail; a full disk is checked first."""
    found = list(_reasons(error))
    full = next((e for e in found if isinstance(e, OSError) and e.errno in FULL), found[-1])
    return stopped(f"{type(full).__name__}: {full}", secrets)


def stopped(said: str, secrets: Secrets) -> EnvironmentFault:
    """Return why inspect_ai ended a task by itself.

    >>> str(stopped("OSError: [Errno 28] No space left on device", Secrets())).partition(";")[0]
    'the disk is full (No space left on device)'
    """
    full = next((text for text in map(os.strerror, FULL) if text in said), None)
    if full is not None:
        return disk_full(full, then=SAFE)
    why = secrets.redact(" ".join(said.split())[:LONGEST_ERROR])
    return EnvironmentFault.of("inspect-stopped", why=why)


def _reasons(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, those inside it if it is a group, and its causes."""
    if error is None:
        return
    yield error
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield from _reasons(inner)
    yield from _reasons(error.__cause__ or error.__context__)
