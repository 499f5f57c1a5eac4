"""AskSpec: how models are asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Option
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import MEASURING, OTHERS, RUNNING, Spec, keyword, opt, options_of

READ: Final = options_of(ReadSpec)
"""The names of the classes are those of the dataset; the prompt and the answers use them too."""


@dataclass(frozen=True)
class AskSpec(Spec):
    """How models are asked. What is in `run_config` changes answers; the rest only speed and patience.

    Examples
    --------
    >>> AskSpec(temperature=0.7).cache_state
    'tools'
    """

    _form, _option = "ask", "option"
    temperature: Annotated[
        float | None, opt("Temperature of the answers; 0 if the model allows it.", OTHERS, common=True)
    ] = 0.0
    max_tokens: Annotated[int | None, opt("Most tokens of an answer.")] = None
    reasoning_effort: Annotated[str | None, opt("Reasoning effort as the provider names it, low to high.")] = None
    seed: Annotated[int | None, keyword("The seed that is sent to models that take one.")] = None
    max_iterations: Annotated[int, opt("Most requests about one item.")] = 15
    thresholds: Annotated[
        tuple[float, ...],
        opt("For functions and detectors: real below the first, fake from the second on.", MEASURING, takes_words=True),
    ] = (0.5, 0.5)
    base_url: Annotated[str | None, opt("Any server that speaks the OpenAI protocol.", OTHERS, common=True)] = None
    positive: Annotated[str, READ["positive"]] = "fake"
    negative: Annotated[str, READ["negative"]] = "real"
    abstention: Annotated[str, opt("What a model says if it cannot decide.")] = "uncertain"
    provider: Annotated[str | None, opt("Provider of inspect_ai for all models.")] = None
    vision_model: Annotated[
        str | None, opt("Another model sees each item and describes it; those of --models judge by what it says.")
    ] = None
    structuring_model: Annotated[
        str | None, opt("Another model puts what those of --models say into the verdict's form.")
    ] = None
    disable_tool_cache: Annotated[
        bool, opt("Compute every tool call, or keep results.", OTHERS, "--disable-tool-cache/--enable-tool-cache")
    ] = False
    answer_cache: Annotated[bool, opt("Take known answers from inspect_ai's cache.")] = False
    repair: Annotated[bool, opt("Ask once more for the form of an answer that cannot be read.")] = False
    logprobs: Annotated[
        bool, opt("Take a second confidence from the probability of the verdict's words, where a provider gives it.")
    ] = False
    max_connections: Annotated[
        int | None,
        opt(
            "Requests at once (default: 20, or adaptive through inspect_ai).",
            OTHERS,
            "--max-connections",
            "--num-workers",
        ),
    ] = None
    max_retries: Annotated[int, opt("How often a failed request is sent again.")] = 6
    timeout: Annotated[int, opt("Seconds for one request with its retries.")] = 600
    attempt_timeout: Annotated[int, opt("Seconds for one attempt; then it is repeated.")] = 150
    batch: Annotated[
        int | None,
        opt("Send requests by the provider's batch API, so many in one (through inspect_ai).", OTHERS, metavar="N"),
    ] = None
    requests_per_minute: Annotated[int | None, opt("Most requests in a minute.", RUNNING)] = None
    tokens_per_minute: Annotated[int | None, opt("Most tokens in a minute, as far as known.", RUNNING)] = None

    def __post_init__(self) -> None:
        self._read_fields()
        if len(self.thresholds) != 2:
            raise UsageError.of("two-thresholds", n=len(self.thresholds))
        if self.batch is not None and self.batch < 1:
            raise UsageError.of("out-of-range/least", name=Option("batch"), least=1, found=self.batch)

    @property
    def bands(self) -> tuple[float, float]:
        """The two thresholds of functions and detectors."""
        return self.thresholds[0], self.thresholds[1]

    @property
    def cache_state(self) -> str:
        """What may be served from a cache: nothing (`off`), results of tools, answers, or both."""
        parts = {"tools": not self.disable_tool_cache, "answers": self.answer_cache}
        return "+".join(name for name, is_on in parts.items() if is_on) or "off"

    @property
    def roles(self) -> dict[str, str]:
        """The models of the roles that the agent does not do itself."""
        given = {"vision": self.vision_model, "structuring": self.structuring_model}
        return {role: name for role, name in given.items() if name is not None}

    @property
    def run_config(self) -> dict[str, object]:
        """The settings that are in every row, under the names of the triage evaluation document where it has them."""
        names = ("temperature", "max_iterations", "reasoning_effort", "max_tokens", "seed")
        asked = {name: True for name in ("repair", "logprobs") if getattr(self, name)}
        return {**{name: getattr(self, name) for name in names}, **asked}
