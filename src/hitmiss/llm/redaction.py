"""Keys taken out of what a provider says before inspect_ai can log it: servers have been seen to echo them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hitmiss.llm.secrets import Secrets
from hitmiss.llm.wire import heard


def redact_api(model: Any, secrets: Secrets) -> None:
    """Have every answer and every error of a model pass through `secrets` first; note what was sent."""
    original = model.api.generate

    async def generate(*args: Any, **kwargs: Any) -> Any:
        try:
            result = await original(*args, **kwargs)
        except Exception as error:
            raise redact_error(error, secrets) from None
        heard(result)
        if isinstance(result, tuple):
            return tuple(_redacted(part, secrets) for part in result)
        return _redacted(result, secrets)

    model.api.generate = generate


def _redacted(value: Any, secrets: Secrets) -> Any:
    if isinstance(value, BaseException):
        return redact_error(value, secrets)
    text = value.model_dump_json()
    clean = json.dumps(secrets.clean(json.loads(text)))
    return value if json.loads(clean) == json.loads(text) else type(value).model_validate_json(clean)


def redact_error(error: Any, secrets: Secrets) -> Any:
    """The same error with no key in its words; its kind stays, as retries depend on it.

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
