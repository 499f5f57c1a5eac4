"""Is it better than chance, or than the trivial system? By the interval of a number against its chance level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hitmiss.core.finding import FAILED, OPEN, PASSED, Amount, Finding, Subject, Value, run_of
from hitmiss.core.registry import metric_of
from hitmiss.core.results import Estimate
from hitmiss.core.verdict import Basis
from hitmiss.findings.wording import name_of


@dataclass(frozen=True)
class Level:
    """The value of a number without any detector, and what gives that value."""

    value: float
    by: str


BY_INTERVAL: Final = "interval against chance level"


def chance_level(e: Estimate, beside: Mapping[str, Estimate] | None = None) -> Level | None:
    """Return the number of chance or of the trivial system; None if the metric alone does not determine it.

    `beside` are the other numbers of the run, by metric: those of coverage say what a system that abstains answered.

    >>> chance_level(Estimate("eer", 0.1)).value
    0.5
    >>> chance_level(Estimate("accuracy", 0.9, n=100, n_positive=20))
    Level(value=0.8, by='always saying the commoner class')
    """
    metric = metric_of(e.metric)
    if metric is None or metric.chance is None:
        return None
    share = _answered_share(e, beside or {}) if metric.of == "answered" else _share(e)
    value = metric.chance_level(share, e.settings)
    return None if value is None else Level(value, metric.chance.by)


def _share(e: Estimate) -> float | None:
    """Return the share of positives; None with one class only."""
    share = e.n_positive / e.n if e.n else 0.0
    if e.weight and e.weight_positive is not None:
        share = e.weight_positive / e.weight
    return share if 0.0 < share < 1.0 else None


def _answered_share(e: Estimate, beside: Mapping[str, Estimate]) -> float | None:
    """Return the share of positives among the answered trials; of all trials if coverage by class was not measured."""
    covered = [own.value if (own := _covering(of, beside)) is not None else None for of in ("positives", "negatives")]
    sizes = [float(e.n_positive), float(e.n - e.n_positive)]
    if covered[0] is not None and covered[1] is not None:
        sizes = [covered[0] * sizes[0], covered[1] * sizes[1]]
    return sizes[0] / sum(sizes) if sum(sizes) else None


def _covering(of: str, beside: Mapping[str, Estimate]) -> Estimate | None:
    """Return the share of these trials that was answered, if it was measured."""
    return next((e for name, e in beside.items() if (own := metric_of(name)) is not None and own.covers == of), None)


def judged_instead(first: Estimate, beside: Mapping[str, Estimate]) -> Estimate | None:
    """Return the number over the answered trials by which a run that leaves some without an answer is judged."""
    covered, metric = _covering("all", beside), metric_of(first.metric)
    if covered is None or covered.value is None or covered.value >= 1.0 or metric is None:
        return None
    return beside.get(metric.answered)


def against_chance(e: Estimate, level: Level, who: str = "") -> Finding:
    """Say whether a number is better than its chance level, by its interval.

    >>> against_chance(Estimate("eer", 0.25, best="low"), Level(0.5, "chance")).code
    'chance-not-tested'
    """
    own = Amount.of(e)
    values: dict[str, Value] = {
        "by": level.by,
        "value": own,
        "level": Amount(level.value, e.metric, plain=True),
    }
    return Finding(_side(e, level), Subject.of(e), values | ({"who": who} if who else {}))


def _of_silence(e: Estimate, level: Level, who: str = "") -> Finding:
    """Say that a run without any answer has nothing to compare: at its coverage the trivial system says nothing either."""
    return Finding("nothing-answered", Subject.of(e), {"by": level.by} | ({"who": who} if who else {}))


def _side(e: Estimate, level: Level) -> str:
    if e.low is None or e.high is None:
        return "chance-not-tested"
    if is_better(e.low, e.high, level.value, e.best):
        return "better-than-chance"
    worse = e.low > level.value if e.best == "low" else e.high < level.value
    return "worse-than-chance" if worse else "not-better-than-chance"


def is_better(low: float, high: float, level: float, best: str) -> bool:
    """Say whether the whole interval lies on the good side of the level."""
    return high < level if best == "low" else low > level


@dataclass(frozen=True)
class Tried:
    """A run against chance: the number that was tested, its chance level, and the finding."""

    e: Estimate
    level: Level
    finding: Finding

    @property
    def basis(self) -> Basis | None:
        """The test: the interval against the level."""
        return None if self.finding.state == OPEN else Basis(BY_INTERVAL)


def each_run(wholes: Sequence[Estimate], primary: str) -> dict[str, Tried]:
    """Test every run: by the primary metric, else by the first metric with a chance level and an interval.

    A run that abstains is judged on what it answered, against the trivial system at the same coverage.
    """
    runs = list(dict.fromkeys(run_of(e) for e in wholes))
    found: dict[str, Tried] = {}
    for name in runs:
        own = [e for e in wholes if run_of(e) == name and e.value is not None]
        beside = {name_of(e.metric): e for e in own}
        ordered = [e for e in own if e.metric == primary] + [e for e in own if e.metric != primary]
        if ordered and (instead := judged_instead(ordered[0], beside)) is not None:
            ordered = [instead, *ordered]
        levels = [(e, chance_level(e, beside)) for e in ordered]
        said = _of_silence if (all_ := _covering("all", beside)) is not None and all_.value == 0.0 else against_chance
        tried = [Tried(e, level, said(e, level, name if len(runs) > 1 else "")) for e, level in levels if level]
        tested = [t for t in tried if t.finding.state != OPEN] or tried
        if tested:
            found[name] = tested[0]
    return found


def counted(tried: Mapping[str, Tried]) -> list[Finding]:
    """Return the findings on runs: one as it is; of several, how many are better, then every one that is not."""
    findings = [t.finding for t in tried.values()]
    if len(findings) < 2:
        return findings
    n = {state: sum(f.state == state for f in findings) for state in (PASSED, FAILED, OPEN)}
    total = len(findings)
    made = [Finding("runs-better", values={"n": n[PASSED], "total": total})] if n[PASSED] else []
    made += [f for f in findings if f.state == FAILED]
    return [*made, *([Finding("runs-not-tested", values={"n": n[OPEN], "total": total})] if n[OPEN] else [])]
