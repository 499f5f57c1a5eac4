"""What a run asks: every item, of every model, with and without tools, repeated; and what pins it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Final

from hitmiss.core.ask_spec import AskSpec
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.finding import Option
from hitmiss.llm.addresses import server_of
from hitmiss.llm.items import Item, content_digest
from hitmiss.llm.prompts import Prompts
from hitmiss.llm.tools import BY_KIND, Tool

MODES: Final = {"both": (False, True), "tools": (True,), "on": (True,), "no-tools": (False,), "off": (False,)}


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
class Variant:
    """How the model of one run is asked: its own name, its prompts and its settings."""

    model: str
    prompts: Prompts
    settings: AskSpec


@dataclass(frozen=True)
class CallPlan:
    """The whole of a run. `detectors` maps the models that are functions or classic detectors to their identity.

    `variants` says how the models among `models` are asked that differ from the rest, under the names of their runs.
    """

    items: Sequence[Item]
    models: Sequence[str]
    modes: Sequence[bool] = (False,)
    trials: int = 1
    settings: AskSpec = field(default_factory=AskSpec)
    prompts: Prompts = field(default_factory=Prompts)
    canaries: Sequence[Item] = ()
    detectors: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    variants: Mapping[str, Variant] = field(default_factory=dict)
    own_tools: Sequence[Tool] = ()
    servers: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """MCP servers whose tools are offered, with what they said of them."""

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UsageError.of("out-of-range/least", name=Option("trials"), least=1, found=self.trials)
        if not self.models or len(set(self.models)) != len(self.models) or any("|" in m or not m for m in self.models):
            raise UsageError.of("bad-models", models=tuple(self.models))
        alone = [name for name in self.models if name in self.detectors]
        if alone and self.settings.roles:
            raise UsageError.of("one-role", alone=alone[0])
        has_own = bool(self.own_tools or self.servers)
        if has_own and True not in self.modes:
            raise UsageError.of("tools-unused")
        if True in self.modes and not (self.tools or has_own) and set(self.models) - set(self.detectors):
            raise UsageError.of("tools-without-media")

    def variant(self, name: str) -> Variant:
        """Return how the model of a run is asked."""
        return self.variants.get(name) or Variant(name, self.prompts, self.settings)

    @property
    def is_labelled(self) -> bool:
        """Whether the classes of the items are known."""
        return bool(self.items[0].label)

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds of items in the dataset."""
        return sorted({item.kind for item in self.items})

    @cached_property
    def prompt_hashes(self) -> dict[str, dict[str, str]]:
        """The hashes of the prompts of each model."""
        repairs = self.settings.repair
        return {
            m: self.variant(m).prompts.hashes(self.kinds, self.settings.roles, repairs=repairs) for m in self.models
        }

    @property
    def tools(self) -> list[Tool]:
        """The built-in tools that are offered: none, or those for the kinds of items in the dataset."""
        return [tool for kind in self.kinds for tool in BY_KIND.get(kind, ())] if True in self.modes else []

    @cached_property
    def cells(self) -> list[tuple[str, bool]]:
        """Return model and mode, in order; only language models have tools."""
        return [(m, t) for m in self.models for t in (self.modes if m not in self.detectors else (False,))]

    def server(self, model: str) -> str | None:
        """Return the address that the user gave for a model, if any."""
        return server_of(self.variant(model).model, self.settings.base_url, self.settings.provider)

    def _asked(self, model: str) -> dict[str, object]:
        """Return what pins a language model; `--base-url`, which all share, is separate."""
        named = {} if self.settings.base_url else {"base_url": self.server(model)}
        pinned: dict[str, object] = {"provider": self.settings.provider, **{k: v for k, v in named.items() if v}}
        if model in self.variants:
            own = self.variants[model]
            pinned |= {
                "model": own.model,
                "prompts": own.prompts.hashes(self.kinds),
                "settings": own.settings.run_config,
            }
        return pinned

    @cached_property
    def calls(self) -> list[Call]:
        """Return every question, in the order of asking: all models about one item, then about the next; last, canaries."""
        asked = [Call(m, t, k, item) for k in range(self.trials) for item in self.items for m, t in self.cells]
        tested = [Call(m, t, 0, i, True) for i in self.canaries for m, t in self.cells if t or not i.order]
        return asked + tested

    @property
    def row_order(self) -> list[int]:
        """Return the positions of `calls` in the order of result rows: model, mode, trial, item; canaries last."""
        cell_of = {cell: at for at, cell in enumerate(self.cells)}
        calls = self.calls
        return sorted(
            range(len(calls)), key=lambda at: (calls[at].is_canary, cell_of[calls[at].model, calls[at].use_tools])
        )

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
            **self._offered(),
        }

    def _offered(self) -> dict[str, object]:
        """Return what pins the user's own tools, and those of MCP servers."""
        own = {tool.name: tool.identity for tool in self.own_tools}
        servers = {name: dict(about) for name, about in self.servers.items()}
        return {**({"own_tools": own} if own else {}), **({"mcp": servers} if servers else {})}

    def _roles(self) -> dict[str, object]:
        """Return the models of further roles, and what pins each."""
        roles = {role: {"model": name, **self._asked(name)} for role, name in self.settings.roles.items()}
        return {"roles": roles} if roles else {}


def matrix(
    models: Sequence[str], prompts: Mapping[str, Prompts], settings: AskSpec, varied: Mapping[str, Sequence[object]]
) -> dict[str, Variant]:
    """Return a variant for every combination of model, prompt and settings, under the name of its run.

    >>> sorted(matrix(["m"], {"": Prompts()}, AskSpec(), {"temperature": [0.0, 0.7]}))
    ['m@temperature=0.0', 'm@temperature=0.7']
    """
    found = {}
    for model in models:
        for name, words in prompts.items():
            for values in product(*varied.values()):
                own = dict(zip(varied, values, strict=True))
                parts = [*([name] if name else []), *(f"{k}={v}" for k, v in own.items())]
                found["@".join([model, *parts])] = Variant(model, words, settings.changed(**own))
    return found


def modes_of(text: str) -> tuple[bool, ...]:
    """Return the modes that `--tools` means: with tools, without, or both.

    >>> modes_of("both"), modes_of("no-tools")
    ((False, True), (False,))
    """
    if text not in MODES:
        raise UnknownName("way to use tools", text, ("both", "tools", "no-tools"))
    return MODES[text]


def kinds_with_tools(modes: Sequence[bool], has_own: bool) -> set[str]:
    """Return the kinds of items about which a model is offered tools.

    >>> sorted(kinds_with_tools((True,), False)), kinds_with_tools((False,), False)
    (['audio', 'image'], set())
    """
    return (set(BY_KIND) | ({"text"} if has_own else set())) if True in modes else set()
