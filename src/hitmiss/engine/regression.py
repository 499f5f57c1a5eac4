"""Regressions: how much worse a number is than that of a baseline, with an interval, and whether so much is allowed.

`eer=0.005` allows 0.005 more than the baseline. If the trials of both runs are available, their answers are paired and
the interval is that of `compare`. From two tables of results, and for two samples of one population, the interval is
combined from the two intervals (MOVER, Zou & Donner 2008), which is right for independent samples. Runs on the same
trials mostly are not independent, so for them this interval is wider than necessary.

Where a regression fails only if it is shown, the intervals of all checks hold together (Bonferroni): a run that changes
nothing then fails in at most 5 of 100 cases, however many languages are checked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.results import Estimate, Results
from hitmiss.engine.comparability import breaches_of
from hitmiss.engine.comparison import IDENTICAL, Comparison, Difference
from hitmiss.engine.requirement import (
    _NUMBER,
    _TARGET,
    Check,
    Target,
    figure_name,
    is_two_sided,
    range_of,
    read_number,
    read_target,
    select,
)
from hitmiss.engine.signature import read_signature
from hitmiss.stats.planning import quantiles

AUTO, POINT, BOUND, SHOWN = "auto", "point", "bound", "shown"
DECIDE: Final = (POINT, BOUND, SHOWN)
"""`point`: the numbers themselves decide. `bound`: the worst end of the interval decides, so a regression that is not
ruled out fails. `shown`: the best end decides, so only a regression that is shown fails."""
TRIAGE: Final = "triage"
"""The protocol whose document calls comparisons of different data sets or sample sizes invalid."""
MOVER: Final = "from both intervals"
SAMPLES: Final = "two samples"
NEARLY: Final = 1e-12
"""A change that exceeds the limit by no more than this is allowed (rounding)."""


@dataclass(frozen=True)
class Change:
    """How much worse a number is; above 0 is worse. `low` and `high` are None if there is no interval."""

    worse: float
    low: float | None = None
    high: float | None = None
    how: str = ""

    def passes(self, allowed: float, decide: str) -> bool:
        """Return whether the change is no worse than allowed. If this cannot be decided, it does not pass.

        >>> small = Change(0.01, -0.02, 0.04)
        >>> [small.passes(0.015, d) for d in DECIDE]
        [True, False, True]
        """
        if decide not in DECIDE:
            raise UnknownName("way to decide on a regression", decide, DECIDE)
        value = {POINT: self.worse, BOUND: self.high, SHOWN: self.low}[decide]
        return value is not None and (value <= allowed or math.isclose(value, allowed, rel_tol=NEARLY, abs_tol=NEARLY))

    def reason(self, allowed: float, decide: str) -> str:
        """Describe the change in words, with what decided."""
        words = f"worse by {self.worse:.6g}" if self.worse > 0 else f"better by {-self.worse:.6g}"
        words = "unchanged" if self.worse == 0 else words
        if self.high is None or self.low is None:
            lacking = "there is no interval to decide by; score with --bootstrap"
            return words if decide == POINT else f"{words}, and {lacking}"
        words += f", interval of worse {self.low:.6g} to {self.high:.6g} ({self.how})"
        open_ = decide != BOUND and self.passes(allowed, decide) and not self.passes(allowed, BOUND)
        return f"{words}; more than {allowed:g} is not ruled out" if open_ else words


@dataclass(frozen=True)
class Evidence:
    """By what regressions are judged.

    Parameters
    ----------
    decide
        `point`, `bound` or `shown` (see `DECIDE`).
    paired
        The comparison of both runs, if it could be made.
    level
        The level of the intervals of the results.
    together
        The number of checks whose intervals must hold together: `level` is kept by all of them at once.
    is_unpaired
        Whether the runs are two samples of one population.
    is_auto
        Whether a number that has no interval is decided by itself; otherwise it fails, because nothing can be shown.
    """

    decide: str = POINT
    paired: Comparison | None = None
    level: float = 0.95
    together: int = 1
    is_unpaired: bool = False
    is_auto: bool = False

    @property
    def joint(self) -> float:
        """The level of each interval (Bonferroni)."""
        return 1.0 - (1.0 - self.level) / max(self.together, 1)

    def widening(self, e: Estimate) -> float:
        """Return how much wider the interval of a number must be than at its own level."""
        if self.together < 2:
            return 1.0
        count, by_units = e.units_effective or float(e.units or e.n), e.units is not None
        return quantiles(count, by_units, self.joint, None) / quantiles(count, by_units, self.level, None)

    def how(self, kind: str) -> str:
        """Describe where an interval comes from."""
        return kind if self.together < 2 else f"{kind}; {self.together} checks together"


NUMBERS: Final = Evidence()
"""The numbers alone decide."""


def change(e: Estimate, base: Estimate, by: Evidence = NUMBERS) -> Change:
    """Return the change from the baseline's number to this one; both must be defined."""
    assert e.value is not None and base.value is not None
    sign = 1.0 if e.best == "low" else -1.0
    row = _row(e, base, by.paired)
    if row is not None and row.low is not None and row.high is not None:
        return _turned(e.value - base.value, row.low, row.high, sign, by.how("paired"))
    if row is not None and row.verdict == IDENTICAL:
        return Change(0.0, 0.0, 0.0, "paired; the answers are alike")
    if None in (e.low, e.high, base.low, base.high):
        return Change(sign * (e.value - base.value))
    assert e.low is not None and e.high is not None and base.low is not None and base.high is not None
    delta = e.value - base.value
    wide = by.widening(e), by.widening(base)
    low = delta - math.hypot((e.value - e.low) * wide[0], (base.high - base.value) * wide[1])
    high = delta + math.hypot((e.high - e.value) * wide[0], (base.value - base.low) * wide[1])
    return _turned(delta, low, high, sign, by.how(SAMPLES if by.is_unpaired else MOVER))


def _turned(delta: float, low: float, high: float, sign: float, how: str) -> Change:
    ends = sorted((sign * low, sign * high))
    return Change(sign * delta, ends[0], ends[1], how)


def _row(e: Estimate, base: Estimate, paired: Comparison | None) -> Difference | None:
    """Return the row of a comparison for the same metric, slice and average.

    Two files with a run each, of other names (two models), and repeated answers are compared as one pair: that row is
    taken if it is about the same two numbers.
    """
    own = [d for d in paired or () if d.metric == e.metric]
    same = [d for d in own if d.average == e.average and dict(d.slice) == {**e.run, **e.slice}]
    if not same and e.average in (None, "mean"):
        same = [d for d in own if d.average is None and dict(d.slice) == dict(e.slice) and _is_about(d, base, e)]
    return same[0] if len(same) == 1 else None


def _is_about(row: Difference, base: Estimate, e: Estimate) -> bool:
    sides = ((row.a, base.value), (row.b, e.value))
    return all(x is not None and y is not None and math.isclose(x, y, abs_tol=NEARLY) for x, y in sides)


_REGRESSION: Final = re.compile(rf"\s*{_TARGET}\s*=\s*{_NUMBER}\s*")


@dataclass(frozen=True)
class Regression:
    """A rule that fails if a number is worse than the baseline's by more than allowed."""

    target: Target
    allowed: float

    def __str__(self) -> str:
        return f"{self.target} worse than the baseline by more than {self.allowed:g}"


def parse_regression(text: str) -> Regression:
    """Read a regression rule from its text.

    >>> print(parse_regression("worst eer=0.5pp"))
    worst eer worse than the baseline by more than 0.005
    """
    found = _REGRESSION.fullmatch(text)
    if found is None:
        raise UsageError.of("bad-regression", text=text)
    if found["scale"] == "%":
        raise UsageError.of("bad-regression/percent", text=text)
    allowed = read_number(found)
    if allowed < 0:
        raise UsageError.of("bad-regression/negative", text=text)
    return Regression(read_target(found, text), allowed)


def _refuse_vain(rule: Regression, e: Estimate, results: Results) -> None:
    """Refuse a regression that cannot fail, or that neither direction is."""
    low, high = range_of(e, results)
    width = high - low
    if is_two_sided(e):
        raise UsageError.of("vain-rule", target=rule.target, metric=e.metric)
    if rule.allowed >= width:
        points = (
            f"; for percentage points write '{rule.target}={rule.allowed:g}pp'" if rule.allowed < 100 * width else ""
        )
        raise UsageError.of("vain-rule/never-fails", rule=str(rule), metric=e.metric, width=width, points=points)


def check_regression(rule: Regression, results: Results, baseline: Results, by: Evidence = NUMBERS) -> list[Check]:
    """Apply a regression rule to every number that it matches, each against its counterpart in the baseline."""
    before = select(rule.target, baseline)
    found = [(e, _counterpart(e, before)) for e in select(rule.target, results)]
    for e, _ in found:
        _refuse_vain(rule, e, results)
    return [_regressed(rule, e, base, by) for e, base in found]


def _regressed(rule: Regression, e: Estimate, base: Estimate, by: Evidence) -> Check:
    row = Check(
        str(rule), figure_name(e), None, rule.allowed, False, "",
        metric=e.metric, before=base.value, after=e.value, slice={**e.run, **e.slice},
    )  # fmt: skip
    if e.value is None or base.value is None:
        which, note = ("here", e.note) if e.value is None else ("in the baseline", base.note)
        return replace(row, reason=f"undefined {which}: {note or 'no reason given'}")
    found = change(e, base, by)
    decide = POINT if by.is_auto and found.low is None else by.decide
    reason = f"{base.value:.6g} → {e.value:.6g}, {found.reason(rule.allowed, decide)}"
    passed = found.passes(rule.allowed, decide)
    pair = _row(e, base, by.paired)
    row = replace(row, value=found.worse, passed=passed, reason=reason, low=found.low, high=found.high)
    if decide != SHOWN or pair is None or pair.mdd is None:
        return row
    return replace(row, detectable=rule.allowed + _loss(pair.mdd, base.value, 1.0 if e.best == "low" else -1.0))


def _loss(mdd: float, before: float, sign: float) -> float:
    """Return the loss that is detected as often as `mdd` promises, although a worse share or area varies more.

    The variance of a share or area goes with v (1 − v), so it grows as the number moves towards one half.

    >>> round(_loss(0.09, 0.8, -1.0), 3), _loss(0.09, 0.5, -1.0)
    (0.103, 0.09)
    """
    loss = mdd
    for _ in range(5):
        worse = before + sign * loss
        if not (0.0 < before < 1.0 and 0.0 < worse < 1.0):
            return mdd
        loss = mdd * max(1.0, math.sqrt(worse * (1.0 - worse) / (before * (1.0 - before))))
    return loss


def _counterpart(e: Estimate, before: Sequence[Estimate]) -> Estimate:
    """Return the number of the baseline for the same slice, and for the same run if it has several."""
    same = [b for b in before if b.average == e.average and (dict(b.slice) == dict(e.slice) or _is_moving(e, b))]
    if len({tuple(b.run.items()) for b in same}) > 1:
        same = [b for b in same if dict(b.run) == dict(e.run)]
    if len(same) != 1:
        raise UsageError.of("baseline-not-one", n_same=len(same), e=figure_name(e))
    if dict(same[0].settings) != dict(e.settings):
        raise DataError.of(
            "baseline-settings",
            metric=e.metric,
            settings=str(dict(same[0].settings)),
            settings_2=str(dict(e.settings)),
        )
    return same[0]


def _is_moving(e: Estimate, base: Estimate) -> bool:
    """Return whether the number is a worst slice, which may be another slice than in the baseline."""
    return e.average == "worst" and tuple(base.slice) == tuple(e.slice)


def incomparable(
    results: Results, baseline: Results, rules: Iterable[Regression], *, unpaired: bool = False
) -> list[str]:
    """Return why a baseline cannot be used.

    It may have other classes, score kinds, protocols, items or sizes, or differ in a way that `compare` refuses. Two
    samples of one population (`unpaired`) have other items and sizes, which a triage does not allow.
    """
    if not results.signature or not baseline.signature:
        return ["one of the results carries no signature, so it is not known whether they belong together"]
    one, other = (read_signature(r.signature.splitlines()[0]) for r in (results, baseline))
    words = {"protocol": "protocols", "pos": "positive classes", "kind": "score kinds"}
    found = [
        f"different {what}: {one.get(part, 'none')} and {other.get(part, 'none')}"
        for part, what in words.items()
        if one.get(part) != other.get(part)
    ]
    is_one_set = not unpaired or one.get("protocol") == TRIAGE
    if results.asked and baseline.asked and is_one_set and results.asked != baseline.asked:
        found.append("different items: the ids, or their true classes, are not the same")
    if unpaired and results.asked and results.asked == baseline.asked:
        found.append("they answer the same items, which are paired and not two samples")
    found += map(str, breaches_of(results.made_with, baseline.made_with, same_items=is_one_set))
    for rule in rules if is_one_set else ():
        for e in select(rule.target, results):
            base = _counterpart(e, select(rule.target, baseline))
            if e.n != base.n and e.average != "worst":
                found.append(f"different sample sizes for {figure_name(e)}: {e.n:,} and {base.n:,} trials")
            elif e.n_positive != base.n_positive and e.average != "worst":
                found.append(
                    f"different classes for {figure_name(e)}: {e.n_positive:,} and {base.n_positive:,} positives"
                )
    return found
