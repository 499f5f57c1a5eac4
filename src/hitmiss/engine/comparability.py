"""Which comparisons are invalid, as data: what must be equal in two runs, and why (from the triage evaluation document).

How a run was made is read by name from the header's provenance and from columns with a single value. A mismatch is
refused with its reason; if the comparison is forced, the report shows the reason. A fact that only one run records is
noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from hitmiss.core.columns import user_name
from hitmiss.core.trials import Trials
from hitmiss.engine.pairing import REPEATS

NO_FACTS: Final = ("files", "rename", "by_run")
"""Parts of the provenance that do not describe how the answers were made, or describe it per run."""


@dataclass(frozen=True)
class ComparabilityRule:
    """Facts that must be equal in both runs (under any of their names), and the problem if they are not."""

    name: str
    facts: tuple[str, ...]
    problem: str


RULES: Final = (
    ComparabilityRule("different datasets", ("dataset", "dataset_digest", "dataset_sha256"), "different difficulty"),
    ComparabilityRule("different contents", ("dataset_content",), "the same ids refer to other files"),
    ComparabilityRule("mixed cache states", ("cache", "cache_state", "tool_cache"), "latency is not comparable"),
    ComparabilityRule("different prompts", ("prompts", "prompt_hashes", "prompt_hash"), "different behaviour"),
    ComparabilityRule("different temperatures", ("temperature",), "one run is more random than the other"),
    ComparabilityRule("different iteration limits", ("max_iterations",), "one run may try longer than the other"),
    ComparabilityRule("different reasoning efforts", ("reasoning_effort",), "one run may think longer than the other"),
)
"""Control variables of the triage evaluation document: any difference makes a comparison invalid."""
FACTORS: Final = (
    ComparabilityRule("model", ("model", "models.agent", "agent"), "the agent model"),
    ComparabilityRule("tools", ("tools", "use_tools", "mode"), "the mode (tools or no tools)"),
    ComparabilityRule("vision model", ("models.vision", "vision_model"), "the vision model"),
    ComparabilityRule("structuring model", ("models.structuring", "structuring_model"), "the structuring model"),
)
"""What a comparison may be about. Only one may differ: with two, the cause of a difference would be unknown."""


@dataclass(frozen=True)
class Breach:
    """A rule that two runs break: the comparison, its problem, and what was found on each side."""

    name: str
    problem: str
    found: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.name} ({self.found[0]} and {self.found[1]}): {self.problem}"


def breaches(a: Trials, b: Trials, *, same_items: bool = True) -> list[Breach]:
    """Return every rule that two runs break.

    If items are known to be missing, different digests of the dataset are expected and not reported again.

    >>> from hitmiss.core.trials import Header
    >>> one, other = (Trials.of([1, 0], [1.0, 0.0], header=Header(provenance={"cache": c})) for c in ("on", "off"))
    >>> print(*breaches(one, other))
    mixed cache states (on and off): latency is not comparable
    """
    return breaches_of(facts(a), facts(b), same_items=same_items)


def breaches_of(a: Mapping[str, str], b: Mapping[str, str], *, same_items: bool = True) -> list[Breach]:
    """Return every rule that the facts of two runs break."""
    # The first two rules compare the data sets as a whole, which differ where items are missing.
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


def _is_one_model(differing: list[tuple[ComparabilityRule, tuple[str, str]]]) -> bool:
    """Return whether one model was exchanged in several roles, which counts as one change."""
    return {factor.name for factor, _ in differing} <= {"model", "vision model", "structuring model"} and len(
        {pair for _, pair in differing}
    ) == 1


def unchecked(a: Trials, b: Trials) -> list[str]:
    """Return notes about rules that could not be checked because only one run records the fact."""
    return unchecked_of(facts(a), facts(b))


def unchecked_of(a: Mapping[str, str], b: Mapping[str, str]) -> list[str]:
    """Return the same notes from the facts of two runs."""
    halves = [rule for rule in RULES if (_value(rule, a) is None) != (_value(rule, b) is None)]
    return [f"{rule.name}? Only one run records {rule.facts[0]}, so this was not checked" for rule in halves]


def _differing(rule: ComparabilityRule, a: Mapping[str, str], b: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    one, other = _value(rule, a), _value(rule, b)
    if one is not None and other is not None and one != other:
        yield _short(one), _short(other)


def _value(rule: ComparabilityRule, known: Mapping[str, str]) -> str | None:
    """Return the fact under the first of its names that is known; a mapping counts with its whole content."""
    for spelling in rule.facts:
        inside = {k: v for k, v in known.items() if k == spelling or k.startswith(f"{spelling}.")}
        if inside:
            plain = list(inside) == [spelling]
            return inside[spelling] if plain else "; ".join(f"{k}={inside[k]}" for k in sorted(inside))
    return None


def facts(trials: Trials) -> dict[str, str]:
    """Return what is known about how a run was made: provenance (nested names with dots), then constant columns."""
    columns = {name: trials.frame[name] for name in (*trials.header.runs, *trials.header.slices)}
    constant = {user_name(name): str(c[0]) for name, c in columns.items() if _is_constant(c)}
    # Later ones win: what a run recorded of itself is more certain than a column, and what it recorded per run even more.
    return {**constant, **dict(_flat(trials.header.provenance)), **_of_runs(trials)}


def _is_constant(values: pl.Series) -> bool:
    # The ends tell most columns apart: counting the distinct texts of millions of rows takes long.
    return bool(len(values)) and values[0] == values[-1] and values.n_unique() == 1


def decisive(trials: Trials) -> dict[str, str]:
    """Return the facts that some rule checks. Results keep them, so that a gate refuses what a comparison refuses."""
    names = {spelling for rule in (*RULES, *FACTORS) for spelling in rule.facts}
    return {k: v for k, v in facts(trials).items() if any(k == n or k.startswith(f"{n}.") for n in names)}


def _of_runs(trials: Trials) -> dict[str, str]:
    """Return the facts that are recorded per run (`by_run`, keyed by the run columns) for the runs in these trials.

    If several runs differ, all their facts count together: such trials agree only with trials that have the same facts.
    """
    told = trials.header.facts("by_run")
    columns = [name for name in trials.header.runs if name not in REPEATS]
    if not told or not columns:
        return dict(_flat(told.get("")))
    keys = trials.frame.select(columns).unique(maintain_order=True).rows()
    found: dict[str, dict[str, None]] = {}
    for key in ("|".join(map(str, values)) for values in keys):
        for name, value in _flat(told.get(key)):
            found.setdefault(name, {})[value] = None
    return {name: " / ".join(sorted(values)) for name, values in found.items()}


def _flat(values: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items() if isinstance(values, Mapping) else ():
        if name in NO_FACTS:
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is not None:
            yield f"{prefix}{name}", ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _short(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
