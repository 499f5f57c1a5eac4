"""What a run asks: every item, of every model, with and without tools, so many times; and what pins it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hitmiss.errors import UnknownName, UsageError
from hitmiss.llm.addresses import server_of
from hitmiss.llm.items import Item, content_digest
from hitmiss.llm.prompts import Prompts
from hitmiss.llm.tools import BY_KIND, Tool

MODES: Final = {"both": (False, True), "tools": (True,), "on": (True,), "no-tools": (False,), "off": (False,)}


@dataclass(frozen=True)
class Settings:
    """How models are asked. Those of `pinned` change answers; the others only how fast and how patiently."""

    temperature: float | None = 0.0
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    seed: int | None = None
    max_iterations: int = 15
    thresholds: tuple[float, float] = (0.5, 0.5)
    base_url: str | None = None
    provider: str | None = None
    tool_cache: bool = True
    answer_cache: bool = False
    max_connections: int | None = None
    max_retries: int = 6
    timeout: int = 600

    @property
    def cache_state(self) -> str:
        """What may be served from a cache: nothing (`off`), results of tools, answers, or both."""
        parts = [name for name, is_on in (("tools", self.tool_cache), ("answers", self.answer_cache)) if is_on]
        return "+".join(parts) or "off"

    @property
    def run_config(self) -> dict[str, Any]:
        """The settings that stand in every row, by the document's names where it has them."""
        names = ("temperature", "max_iterations", "reasoning_effort", "max_tokens", "seed")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Call:
    """One question: an item put to a model, with or without tools, for the trial-th time."""

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
class Plan:
    """The whole of a run. `detectors` names the models that are functions or classic detectors, with their identity."""

    items: Sequence[Item]
    models: Sequence[str]
    modes: Sequence[bool] = (False,)
    trials: int = 1
    settings: Settings = field(default_factory=Settings)
    prompts: Prompts = field(default_factory=Prompts)
    canaries: Sequence[Item] = ()
    detectors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UsageError(f"--trials takes 1 or more; found {self.trials}")
        if not self.models or len(set(self.models)) != len(self.models) or any("|" in m or not m for m in self.models):
            raise UsageError(f"--models takes one or more different names without `|`; found {', '.join(self.models)}")
        if True in self.modes and not self.tools and set(self.models) - set(self.detectors):
            raise UsageError(
                "there are tools for pictures and sounds, and the dataset has neither; ask with --tools no-tools"
            )

    @property
    def kinds(self) -> list[str]:
        """The kinds of items there are."""
        return sorted({item.kind for item in self.items})

    @property
    def tools(self) -> list[Tool]:
        """The tools that are offered: none, or those for the kinds of items there are."""
        return [tool for kind in self.kinds for tool in BY_KIND.get(kind, ())] if True in self.modes else []

    @property
    def cells(self) -> list[tuple[str, bool]]:
        """Model and mode, in order; tools are for language models."""
        return [(m, t) for m in self.models for t in (self.modes if m not in self.detectors else (False,))]

    def server(self, model: str) -> str | None:
        """The address that the user named for a model, if any."""
        return server_of(model, self.settings.base_url, self.settings.provider)

    def _asked(self, model: str) -> dict[str, Any]:
        """What pins a language model; `--base-url`, which all share, stands by itself."""
        named = {} if self.settings.base_url else {"base_url": self.server(model)}
        return {"provider": self.settings.provider, **{k: v for k, v in named.items() if v}}

    @property
    def calls(self) -> list[Call]:
        """Every question, in order: first those about items, then the canaries."""
        asked = [Call(m, t, k, item) for m, t in self.cells for k in range(self.trials) for item in self.items]
        tested = [Call(m, t, 0, item, True) for m, t in self.cells for item in self.canaries]
        return asked + tested

    @property
    def config(self) -> dict[str, Any]:
        """Everything that could change an answer: what a resumed run must agree on."""
        return {
            "dataset": content_digest(self.items),
            "canaries": content_digest(self.canaries) if self.canaries else None,
            "prompts": self.prompts.hashes(self.kinds),
            "models": {m: dict(self.detectors.get(m) or self._asked(m)) for m in self.models},
            "base_url": self.settings.base_url,
            "modes": ["tools" if t else "no-tools" for t in self.modes],
            "tools": {tool.name: tool.identity for tool in self.tools},
            "trials": self.trials,
            "settings": self.settings.run_config,
            "thresholds": list(self.settings.thresholds) if self.detectors else None,
            "cache": self.settings.cache_state,
        }


def modes_of(text: str) -> tuple[bool, ...]:
    """With tools or without: what `--tools` means.

    >>> modes_of("both"), modes_of("no-tools")
    ((False, True), (False,))
    """
    if text not in MODES:
        raise UnknownName("way to use tools", text, ("both", "tools", "no-tools"))
    return MODES[text]
