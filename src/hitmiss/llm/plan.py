"""What a run asks: every item, of every model, with and without tools, repeated; and what pins it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.llm.addresses import server_of
from hitmiss.llm.items import Item, content_digest
from hitmiss.llm.prompts import ROLES, Prompts
from hitmiss.llm.tools import BY_KIND, Tool

MODES: Final = {"both": (False, True), "tools": (True,), "on": (True,), "no-tools": (False,), "off": (False,)}


@dataclass(frozen=True)
class Settings:
    """How models are asked. Those in `pinned` change answers; the others only speed and patience."""

    temperature: float | None = 0.0
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    seed: int | None = None
    max_iterations: int = 15
    thresholds: tuple[float, float] = (0.5, 0.5)
    base_url: str | None = None
    provider: str | None = None
    vision_model: str | None = None
    structuring_model: str | None = None
    tool_cache: bool = True
    answer_cache: bool = False
    max_connections: int | None = None
    max_retries: int = 6
    timeout: int = 600
    attempt_timeout: int = 150
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    @property
    def cache_state(self) -> str:
        """What may be served from a cache: nothing (`off`), results of tools, answers, or both."""
        parts = [name for name, is_on in (("tools", self.tool_cache), ("answers", self.answer_cache)) if is_on]
        return "+".join(parts) or "off"

    @property
    def roles(self) -> dict[str, str]:
        """The models of the roles that the agent does not do itself."""
        given = zip(ROLES, (self.vision_model, self.structuring_model), strict=True)
        return {role: name for role, name in given if name is not None}

    @property
    def run_config(self) -> dict[str, object]:
        """The settings that are in every row, under the names of the triage evaluation document where it has them."""
        names = ("temperature", "max_iterations", "reasoning_effort", "max_tokens", "seed")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Call:
    """One question: an item given to a model, with or without tools, in one trial."""

    model: str
    use_tools: bool
    trial: int
    item: Item
    is_canary: bool = False

    @property
    def key(self) -> str:
        """Its name in the run."""
        return f"{self.model}|{'tools' if self.use_tools else 'no-tools'}|{self.trial}|{self.item.id}"


@dataclass(frozen=True)
class CallPlan:
    """The whole of a run. `detectors` maps the models that are functions or classic detectors to their identity."""

    items: Sequence[Item]
    models: Sequence[str]
    modes: Sequence[bool] = (False,)
    trials: int = 1
    settings: Settings = field(default_factory=Settings)
    prompts: Prompts = field(default_factory=Prompts)
    canaries: Sequence[Item] = ()
    detectors: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UsageError.of("takes-more", trials=self.trials)
        if not self.models or len(set(self.models)) != len(self.models) or any("|" in m or not m for m in self.models):
            raise UsageError.of("takes-more-different-names", models=tuple(self.models))
        alone = [name for name in self.models if name in self.detectors]
        if alone and self.settings.roles:
            raise UsageError.of("one-role", alone=alone[0])
        if True in self.modes and not self.tools and set(self.models) - set(self.detectors):
            raise UsageError.of("tools-pictures-sounds-dataset")

    @property
    def kinds(self) -> list[str]:
        """The kinds of items in the dataset."""
        return sorted({item.kind for item in self.items})

    @property
    def tools(self) -> list[Tool]:
        """The tools that are offered: none, or those for the kinds of items in the dataset."""
        return [tool for kind in self.kinds for tool in BY_KIND.get(kind, ())] if True in self.modes else []

    @property
    def cells(self) -> list[tuple[str, bool]]:
        """Return model and mode, in order; only language models have tools."""
        return [(m, t) for m in self.models for t in (self.modes if m not in self.detectors else (False,))]

    def server(self, model: str) -> str | None:
        """Return the address that the user gave for a model, if any."""
        return server_of(model, self.settings.base_url, self.settings.provider)

    def _asked(self, model: str) -> dict[str, object]:
        """Return what pins a language model; `--base-url`, which all share, is separate."""
        named = {} if self.settings.base_url else {"base_url": self.server(model)}
        return {"provider": self.settings.provider, **{k: v for k, v in named.items() if v}}

    @property
    def calls(self) -> list[Call]:
        """Return every question, in order: first those about items, then the canaries."""
        asked = [Call(m, t, k, item) for m, t in self.cells for k in range(self.trials) for item in self.items]
        tested = [Call(m, t, 0, item, True) for m, t in self.cells for item in self.canaries]
        return asked + tested

    @property
    def config(self) -> dict[str, object]:
        """Return everything that could change an answer: what a resumed run must agree on."""
        return {
            "dataset": content_digest(self.items),
            "canaries": content_digest(self.canaries) if self.canaries else None,
            "prompts": self.prompts.hashes(self.kinds, self.settings.roles),
            "models": {m: dict(self.detectors.get(m) or self._asked(m)) for m in self.models},
            "base_url": self.settings.base_url,
            "modes": ["tools" if t else "no-tools" for t in self.modes],
            "tools": {tool.name: tool.identity for tool in self.tools},
            "trials": self.trials,
            "settings": self.settings.run_config,
            "thresholds": list(self.settings.thresholds) if self.detectors else None,
            "cache": self.settings.cache_state,
            **self._roles(),
        }

    def _roles(self) -> dict[str, object]:
        """Return the models of further roles, and what pins each."""
        roles = {role: {"model": name, **self._asked(name)} for role, name in self.settings.roles.items()}
        return {"roles": roles} if roles else {}


def modes_of(text: str) -> tuple[bool, ...]:
    """Return the modes that `--tools` means: with tools, without, or both.

    >>> modes_of("both"), modes_of("no-tools")
    ((False, True), (False,))
    """
    if text not in MODES:
        raise UnknownName("way to use tools", text, ("both", "tools", "no-tools"))
    return MODES[text]
