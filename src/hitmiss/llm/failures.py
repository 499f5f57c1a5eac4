"""What went wrong, out of what providers and inspect_ai raise: the kind of a failed call, and why a whole run stopped."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, Final

from hitmiss.artifacts import FULL, disk_full
from hitmiss.errors import EnvironmentFault
from hitmiss.io.segments import SAFE
from hitmiss.llm.recorder import LONGEST_ERROR
from hitmiss.llm.secrets import Secrets

CODE: Final = re.compile(r"Error code: (\d{3})\b")
KINDS_BY_CODE: Final = {"401": "authentication", "403": "permission", "404": "not_found", "429": "rate_limit"}


def inner(error: Any) -> Any:
    """The error that made the last retry fail, where retries were given up."""
    attempt = getattr(error, "last_attempt", None)
    return (attempt.exception() if attempt is not None else None) or error


def kind_of(error: BaseException) -> str:
    """The kind of a failure, as the rows have it.

    >>> kind_of(TimeoutError()), kind_of(ValueError()), kind_of(ValueError("Error code: 403 - no"))
    ('timeout', 'exception', 'permission')
    """
    name = type(error).__name__.lower()
    code = CODE.search(str(error))  # inspect_ai may have put its own error around the provider's
    if code is not None and (code[1] in KINDS_BY_CODE or code[1].startswith("3")):
        return KINDS_BY_CODE.get(code[1], "redirect")
    kinds = {
        "timeout": "timeout",
        "ratelimit": "rate_limit",
        "authentication": "authentication",
        "connection": "connection",
    }
    return next((kind for part, kind in kinds.items() if part in name), "exception")


def broken(error: BaseException, secrets: Secrets) -> EnvironmentFault:
    """What made inspect_ai itself fail, in a sentence: a disk that is full before all else."""
    found = list(_reasons(error))
    full = next((e for e in found if isinstance(e, OSError) and e.errno in FULL), found[-1])
    return stopped(f"{type(full).__name__}: {full}", secrets)


def stopped(said: str, secrets: Secrets) -> EnvironmentFault:
    """Why inspect_ai ended a task by itself.

    >>> str(stopped("OSError: [Errno 28] No space left on device", Secrets())).partition(";")[0]
    'the disk is full (No space left on device)'
    """
    full = next((text for text in map(os.strerror, FULL) if text in said), None)
    if full is not None:
        return disk_full(full, then=SAFE)
    why = secrets.redact(" ".join(said.split())[:LONGEST_ERROR])
    return EnvironmentFault(f"inspect_ai stopped: {why}; what was answered is kept, go on with --resume")


def _reasons(error: BaseException | None) -> Iterator[BaseException]:
    """An error, those inside it if it is a group, and those that it came from."""
    if error is None:
        return
    yield error
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield from _reasons(inner)
    yield from _reasons(error.__cause__ or error.__context__)
