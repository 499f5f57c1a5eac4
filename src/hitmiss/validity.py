"""Which comparisons are invalid, as data: what must be the same in two runs, and why (the triage document's table).

What a run was made with is read from the header's provenance and from columns that hold one value throughout, by name.
A mismatch is refused with its reason; forced, it is printed into the report. What only one run records is noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hitmiss.columns import shown
from hitmiss.pairing import REPEATS
from hitmiss.trials import Trials

NO_FACTS: Final = ("files", "rename", "by_run")
"""Parts of the provenance that say nothing about how the answers were made, or say it by run."""


@dataclass(frozen=True)
class Rule:
    """Facts that must agree (any of their spellings), and the problem where they do not."""

    name: str
    facts: tuple[str, ...]
    problem: str


RULES: Final = (
    Rule("different datasets", ("dataset", "dataset_digest", "dataset_sha256"), "different difficulty"),
    Rule("different contents", ("dataset_content",), "the same ids stand for other files"),
    Rule("mixed cache states", ("cache", "cache_state", "tool_cache"), "latency is not comparable"),
    Rule("different prompts", ("prompts", "prompt_hashes", "prompt_hash"), "different behaviour"),
    Rule("different temperatures", ("temperature",), "one run is more random than the other"),
    Rule("different iteration limits", ("max_iterations",), "one run may try longer than the other"),
    Rule("different reasoning efforts", ("reasoning_effort",), "one run may think longer than the other"),
)
"""Control variables of the document: any difference makes a comparison invalid."""

FACTORS: Final = (
    Rule("model", ("model", "models.agent", "agent"), "the agent model"),
    Rule("tools", ("tools", "use_tools", "mode"), "the mode (tools or no tools)"),
    Rule("vision model", ("models.vision", "vision_model"), "the vision model"),
    Rule("structuring model", ("models.structuring", "structuring_model"), "the structuring model"),
)
"""What a comparison may be about. One of them may differ: with two, nobody knows which made the difference."""


@dataclass(frozen=True)
class Breach:
    """A rule that two runs break: the comparison, its problem, and what was found on each side."""

    name: str
    problem: str
    found: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.name} ({self.found[0]} and {self.found[1]}): {self.problem}"


def breaches(a: Trials, b: Trials, *, same_items: bool = True) -> list[Breach]:
    """Every rule that two runs break. Where items are known to be missing, other digests of the dataset say no more.

    >>> from hitmiss.trials import Header
    >>> one, other = (Trials.of([1, 0], [1.0, 0.0], header=Header(provenance={"cache": c})) for c in ("on", "off"))
    >>> print(*breaches(one, other))
    mixed cache states (on and off): latency is not comparable
    """
    return breaches_of(facts(a), facts(b), same_items=same_items)


def breaches_of(a: Mapping[str, str], b: Mapping[str, str], *, same_items: bool = True) -> list[Breach]:
    """The same of the facts of two runs."""
    rules = RULES if same_items else RULES[2:]
    found = [Breach(rule.name, rule.problem, pair) for rule in rules for pair in _differing(rule, a, b)]
    return found + _two_factors(a, b)


def _two_factors(a: Mapping[str, str], b: Mapping[str, str]) -> list[Breach]:
    differing = [(factor, pair) for factor in FACTORS for pair in _differing(factor, a, b)]
    if _is_one_model(differing) or len(differing) < 2:
        return []
    what = " and ".join(factor.problem for factor, _ in differing)
    sides = tuple(", ".join(pair[i] for _, pair in differing) for i in (0, 1))
    return [
        Breach("two things changed at once", f"{what} differ, so neither explains the result", (sides[0], sides[1]))
    ]


def _is_one_model(differing: list[tuple[Rule, tuple[str, str]]]) -> bool:
    """One model in several roles is one change."""
    return {factor.name for factor, _ in differing} <= {"model", "vision model", "structuring model"} and len(
        {pair for _, pair in differing}
    ) == 1


def unchecked(a: Trials, b: Trials) -> list[str]:
    """Notes about rules that could not be checked because one run alone records the fact."""
    return unchecked_of(facts(a), facts(b))


def unchecked_of(a: Mapping[str, str], b: Mapping[str, str]) -> list[str]:
    """The same of the facts of two runs."""
    halves = [rule for rule in RULES if (_value(rule, a) is None) != (_value(rule, b) is None)]
    return [f"{rule.name}? Only one run records {rule.facts[0]}, so this was not checked" for rule in halves]


def _differing(rule: Rule, a: Mapping[str, str], b: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    one, other = _value(rule, a), _value(rule, b)
    if one is not None and other is not None and one != other:
        yield _short(one), _short(other)


def _value(rule: Rule, known: Mapping[str, str]) -> str | None:
    """The fact under its first spelling that is known; a mapping counts with all that it holds."""
    for spelling in rule.facts:
        inside = {k: v for k, v in known.items() if k == spelling or k.startswith(f"{spelling}.")}
        if inside:
            plain = list(inside) == [spelling]
            return inside[spelling] if plain else "; ".join(f"{k}={inside[k]}" for k in sorted(inside))
    return None


def facts(trials: Trials) -> dict[str, str]:
    """What is known of how a run was made: provenance (nested names joined by dots), then columns with one value."""
    columns = {name: trials.frame[name] for name in (*trials.header.runs, *trials.header.slices)}
    constant = {shown(name): str(c[0]) for name, c in columns.items() if len(c) and c.n_unique() == 1}
    return {**constant, **dict(_flat(trials.header.provenance)), **_of_runs(trials)}


def _of_runs(trials: Trials) -> dict[str, str]:
    """What is told by run (`by_run`, keyed by the values of the run columns) of the runs that are here.

    Where several are, and they differ, all that is told of them counts: such trials agree only with the like.
    """
    told: Mapping[str, Mapping[str, Any]] = trials.header.provenance.get("by_run", {})
    columns = [name for name in trials.header.runs if name not in REPEATS]
    if not told or not columns:
        return dict(_flat(told.get("", {})))
    keys = trials.frame.select(columns).unique(maintain_order=True).rows()
    found: dict[str, dict[str, None]] = {}
    for key in ("|".join(map(str, values)) for values in keys):
        for name, value in _flat(told.get(key, {})):
            found.setdefault(name, {})[value] = None
    return {name: " / ".join(sorted(values)) for name, values in found.items()}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if name in NO_FACTS:
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is not None:
            yield f"{prefix}{name}", ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _short(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
