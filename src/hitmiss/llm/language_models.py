"""Open language models: plainly, or through inspect_ai with its providers, connections, retries and cache."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Final

from hitmiss.core.ask_spec import AskSpec
from hitmiss.core.errors import EnvironmentFault, UsageError
from hitmiss.detection.detector import need
from hitmiss.llm.addresses import (
    OPENAI,
    is_openai,
    leave_retries_to_inspect,
    refuse_redirects,
    require_plain_environment,
    require_server,
    server_of,
)
from hitmiss.llm.answers import schema_of
from hitmiss.llm.chat import ChatModel
from hitmiss.llm.inspect_models import InspectModel
from hitmiss.llm.ledger import Ledger, keep_ledger
from hitmiss.llm.plain_models import PlainModel, is_plain
from hitmiss.llm.question import Question
from hitmiss.llm.secrets import Secrets, redact_api

if TYPE_CHECKING:
    from inspect_ai.model import BatchConfig, ResponseSchema
    from inspect_ai.model import Model as LanguageModel

SERVICE: Final = "hitmiss"
NO_KEY: Final = "none-needed"
BATCHERS: Final = ("_batcher", "_completions_batcher")
"""What a provider of inspect_ai has that can send requests in batches."""
SECONDS: Final = 15.0
"""How long a batch that is not full waits for more requests, and how often the provider is asked whether it is done."""
MARKUP: Final = re.compile(r"\[/?[a-z ]+\]")
"""The colour markup in inspect_ai's errors."""


class ModelOpener:
    """Opens the models of a run: behind an address, for requests without tools, plainly; else through inspect_ai."""

    def __init__(self, key: str | None, secrets: Secrets, ledger: Ledger | None = None) -> None:
        self.key, self.secrets, self.ledger = key, secrets, ledger
        self._reached: set[str] = set()
        self._opened: dict[tuple[object, ...], ChatModel] = {}

    def open(self, name: str, settings: AskSpec, *, is_last: bool = True, use_tools: bool = False) -> ChatModel:
        """Open a model once, after checking that its server, as far as known, can be reached.

        `is_last`: whether its message is the answer, which must follow the schema.
        """
        asked = settings.base_url, settings.provider
        address = server_of(name, *asked) or (OPENAI if is_openai(name, *asked) else None)
        is_lean = is_plain(name, settings) and not use_tools
        what = name, settings, is_last, is_lean
        if what not in self._opened:
            if is_lean:
                plain = PlainModel(name, settings, self.key, self.secrets, self.ledger, has_schema=is_last)
                self._opened[what] = plain
            else:
                opened = open_model(name, settings, self.key, self.secrets, is_last, self.ledger)
                self._opened[what] = InspectModel(opened, settings.answer_cache)
            if address is not None and address not in self._reached:
                require_server(address)
                self._reached.add(address)
        return self._opened[what]

    async def aclose(self) -> None:
        """Close all connections."""
        for model in self._opened.values():
            with suppress(Exception):
                await model.aclose()


def open_model(
    name: str,
    settings: AskSpec,
    key: str | None,
    secrets: Secrets,
    is_last: bool = True,
    ledger: Ledger | None = None,
) -> LanguageModel:
    """Return the model as inspect_ai names it: `provider/name`, a bare name (OpenAI), or any name with `--base-url`.

    `is_last`: whether its message is the answer, which must follow the schema.
    """
    require_plain_environment()
    model = need("inspect_ai.model", "llm")
    logging.getLogger("inspect_ai").setLevel(logging.CRITICAL)  # failures are reported by our own rows
    connections = {"max_connections": settings.max_connections} if settings.max_connections else {}
    patience = {"timeout": settings.timeout, "attempt_timeout": min(settings.attempt_timeout, settings.timeout)}
    config = model.GenerateConfig(
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        reasoning_effort=settings.reasoning_effort,
        reasoning_summary="none",  # otherwise inspect_ai makes an extra request to see whether summaries are allowed
        seed=settings.seed,
        max_retries=settings.max_retries,
        response_schema=_schema(model, Question.of(settings)) if is_last else None,
        **({"logprobs": True} if settings.logprobs else {}),
        **(patience | connections if settings.batch is None else {"batch": _batches_of(model, settings.batch)}),
    )
    server = server_of(name, settings.base_url, settings.provider)
    full, given = address_of(name, settings), {"base_url": server, "api_key": key}
    if full.startswith(f"openai-api/{SERVICE}/"):
        given["api_key"] = key or NO_KEY  # an OpenAI key must not be sent to other hosts
    try:
        found = model.get_model(full, config=config, memoize=False, **given)
    except Exception as error:
        why = MARKUP.sub("", secrets.redact(str(error) or type(error).__name__)).removeprefix("ERROR: ")
        raise EnvironmentFault.of("model-unavailable", name=name, why=" ".join(why.split())) from None
    if settings.batch is not None and not any(hasattr(found.api, name) for name in BATCHERS):
        raise UsageError.of("no-batches", name=full)
    refuse_redirects(found.api)
    leave_retries_to_inspect(found.api)
    if ledger is not None:
        keep_ledger(found.api, ledger, name, in_batches=settings.batch is not None)
    redact_api(found, secrets)
    return found


def address_of(name: str, settings: AskSpec) -> str:
    """Return a model's name for inspect_ai.

    >>> address_of("gpt-5.1", AskSpec()), address_of("anthropic/claude", AskSpec())
    ('openai/gpt-5.1', 'anthropic/claude')
    >>> address_of("org/model", AskSpec(base_url="http://127.0.0.1:1/v1"))
    'openai-api/hitmiss/org/model'
    """
    if settings.provider is not None:
        return f"{settings.provider}/{name}"
    if settings.base_url is not None:
        return f"openai-api/{SERVICE}/{name}"
    return name if "/" in name else f"openai/{name}"


def _batches_of(model: ModuleType, size: int) -> BatchConfig:
    """Return how requests are put into batches. A batch may take a day: no time-out ends it, and nothing is printed."""
    told = need("inspect_ai.model._providers.util.batch_log", "llm")
    told.set_batch_log_callback(lambda message: None)
    made: BatchConfig = model.BatchConfig(size=size, max_size=size, send_delay=SECONDS, tick=SECONDS)
    return made


def _schema(model: ModuleType, question: Question) -> ResponseSchema:
    util = need("inspect_ai.util", "llm")
    return model.ResponseSchema(
        name="verdict", json_schema=util.JSONSchema.model_validate(schema_of(question.words)), strict=True
    )
