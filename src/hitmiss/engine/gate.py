"""Gates: rules on the figures of a run, written in a small strict grammar, and the check whether they hold."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.kinds import one_or_several
from hitmiss.core.metric_spec import MetricSpec, parse
from hitmiss.core.registry import all_metrics, find_metric, known_text
from hitmiss.core.results import Estimate, Results, demanded_results
from hitmiss.engine.comparability import breaches_of
from hitmiss.engine.comparison import IDENTICAL, Comparison, Difference
from hitmiss.engine.signature import read_signature
from hitmiss.metrics.bias import RANGES

# ----------------------------------------------------------------------
# How much worse a figure is than the baseline's, with an interval: what a regression gate decides on.
#
# If the trials of both runs are available, their answers are paired and the interval is that of `compare`. From two
# tables of results the interval is combined from the two intervals (MOVER, Zou & Donner 2008) as if the runs were
# independent. Runs on the same trials mostly are not, so this interval is wider than necessary.

POINT, BOUND, SHOWN = "point", "bound", "shown"
DECIDE: Final = (POINT, BOUND, SHOWN)
"""`point`: the figures themselves decide. `bound`: the worst end of the interval decides, so a regression that is not
ruled out fails. `shown`: the best end decides, so only a regression that is shown fails."""
NEARLY: Final = 1e-12
"""A change that exceeds the limit by no more than this is allowed (rounding)."""


@dataclass(frozen=True)
class Change:
    """How much worse a figure is; above 0 is worse. `low` and `high` are None if there is no interval."""

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

    def told(self, allowed: float, decide: str) -> str:
        """Describe the change in words, with what decided."""
        words = f"worse by {self.worse:.6g}" if self.worse > 0 else f"better by {-self.worse:.6g}"
        words = "unchanged" if self.worse == 0 else words
        if self.high is None or self.low is None:
            lacking = "there is no interval to decide by; score with --bootstrap"
            return words if decide == POINT else f"{words}, and {lacking}"
        words += f", interval of worse {self.low:.6g} to {self.high:.6g} ({self.how})"
        open_ = decide != BOUND and self.passes(allowed, decide) and not self.passes(allowed, BOUND)
        return f"{words}; more than {allowed:g} is not ruled out" if open_ else words


def change(e: Estimate, base: Estimate, paired: Comparison | None = None) -> Change:
    """Return the change from the baseline's figure to this one; both must be defined."""
    assert e.value is not None and base.value is not None
    sign = 1.0 if e.best == "low" else -1.0
    row = _row(e, paired)
    if row is not None and row.low is not None and row.high is not None:
        return _turned(e.value - base.value, row.low, row.high, sign, "paired")
    if row is not None and row.verdict == IDENTICAL:
        return Change(0.0, 0.0, 0.0, "paired; the answers are alike")
    if None in (e.low, e.high, base.low, base.high):
        return Change(sign * (e.value - base.value))
    assert e.low is not None and e.high is not None and base.low is not None and base.high is not None
    delta = e.value - base.value
    low = delta - math.hypot(e.value - e.low, base.high - base.value)
    high = delta + math.hypot(e.high - e.value, base.value - base.low)
    return _turned(delta, low, high, sign, "from both intervals")


def _turned(delta: float, low: float, high: float, sign: float, how: str) -> Change:
    ends = sorted((sign * low, sign * high))
    return Change(sign * delta, ends[0], ends[1], how)


def _row(e: Estimate, paired: Comparison | None) -> Difference | None:
    """Return the row of a comparison for the same metric, slice and average."""
    cell = {**e.run, **e.slice}
    same = [d for d in paired or () if d.metric == e.metric and d.average == e.average and dict(d.slice) == cell]
    return same[0] if len(same) == 1 else None


# ----------------------------------------------------------------------
# Gates: rules on the figures of a run, written in a small strict grammar, and the check whether they hold.
#
#     fake_slip_rate > 0.05          fails above 0.05; equal passes
#     eer[codec=C05] > 0.1           the figure of a slice (or of a run, by its columns)
#     eer[codec=*] > 0.2             every slice of a table
#     eer.high > 0.1                 the upper end of the interval; .low the lower
#     worst eer > 0.2                an average: worst, macro, gap, mean, power mean, …; micro is pooled
#     min_dcf(c_fa=1) > 0.3          a metric with settings, as the results name it
#     eer[codec=*] > 0.2 where defined   every slice that has both classes; one at least must
#
# A regression rule is `eer=0.005`: no more than 0.005 worse than the baseline, judged by the figures or by their
# interval (see `DECIDE`). A name that is not in the results is an error, never a rule that passes. An undefined figure
# fails, with the reason, unless the rule ends in `where defined`. A rule that no figure can break, that every figure
# breaks, or that better figures break is an error.

GATES_NEARLY: Final = 1e-12
"""A figure this close to its limit counts as equal to it, and passes."""
POOLED: Final = "pooled"
WHOLE: Final = (POOLED, "micro")
"""What tables call the figure of all trials."""
ENDS: Final = ("value", "low", "high")

_TARGET = (
    r"(?:(?P<average>[a-z]+(?: [a-z]+)*)\s+)?(?P<metric>[A-Za-z_]\w*(?:\([^()]*\))?)\s*(?:\[(?P<cells>[^\[\]]*)\])?"
)
_NUMBER = r"(?P<limit>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<scale>%|pp)?"
_DEFINED = r"(?P<defined>where\s+defined)?"
_RULE = re.compile(rf"\s*{_TARGET}(?:\.(?P<end>\w+))?\s*(?P<sign><=|>=|==|!=|<|>)\s*{_NUMBER}\s*{_DEFINED}\s*")
_REGRESSION = re.compile(rf"\s*{_TARGET}\s*=\s*{_NUMBER}\s*")


@dataclass(frozen=True)
class Target:
    """Which figures a rule is about."""

    metric: MetricSpec
    average: str | None = None
    cells: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        cells = f"[{', '.join(f'{k}={v}' for k, v in self.cells)}]" if self.cells else ""
        return f"{f'{self.average} ' if self.average else ''}{self.metric}{cells}"


@dataclass(frozen=True)
class Rule:
    """A rule that fails if the figure (or an end of its interval) lies beyond the limit."""

    target: Target
    sign: str
    limit: float
    end: str = "value"
    where_defined: bool = False

    def __str__(self) -> str:
        return self.text()

    def text(self, unit: str = "") -> str:
        """Return the rule as it is written, with the limit as a number or, with `%`, in per cent."""
        end = "" if self.end == "value" else f".{self.end}"
        limit = f"{self.limit * 100:g}%" if unit else f"{self.limit:g}"
        return f"{self.target}{end} {self.sign} {limit}{' where defined' if self.where_defined else ''}"

    def is_broken(self, value: float) -> bool:
        """Return whether a figure breaks the rule; a figure equal to the limit does not."""
        if math.isclose(value, self.limit, rel_tol=GATES_NEARLY, abs_tol=GATES_NEARLY):
            return False
        return value > self.limit if self.sign == ">" else value < self.limit


@dataclass(frozen=True)
class Regression:
    """A rule that fails if a figure is worse than the baseline's by more than allowed."""

    target: Target
    allowed: float

    def __str__(self) -> str:
        return f"{self.target} worse than the baseline by more than {self.allowed:g}"


@dataclass(frozen=True)
class Check:
    """One rule on one figure: what was found, and whether it passes."""

    rule: str
    figure: str
    value: float | None
    limit: float
    passed: bool
    reason: str


def parse_rule(text: str) -> Rule:
    """Read a rule from its text.

    >>> parse_rule("eer[codec=C05].high > 10%")
    Rule(target=Target(metric=Spec(eer), average=None, cells=(('codec', 'C05'),)), sign='>', limit=0.1, end='high', where_defined=False)
    """
    found = _RULE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"cannot read the rule {text!r}; write it as 'eer > 0.05', 'worst eer > 0.2' or 'eer[codec=C05].high > 0.1'"
        )
    if found["sign"] not in ("<", ">"):
        raise UsageError(f"the rule {text!r}: write > or <; a figure that equals its limit passes")
    end = found["end"] or "value"
    if end not in ENDS:
        raise UnknownName(f"part of a figure in the rule {text!r}", end, ENDS)
    return Rule(_target(found, text), found["sign"], _number(found), end, found["defined"] is not None)


def parse_regression(text: str) -> Regression:
    """Read a regression rule from its text.

    >>> print(parse_regression("worst eer=0.5pp"))
    worst eer worse than the baseline by more than 0.005
    """
    found = _REGRESSION.fullmatch(text)
    if found is None:
        raise UsageError(f"cannot read the regression {text!r}; write it as 'eer=0.005' or 'eer[codec=C05]=0.5pp'")
    if found["scale"] == "%":
        raise UsageError(f"the regression {text!r}: % of what? Write 0.005, or 0.5pp for percentage points")
    allowed = _number(found)
    if allowed < 0:
        raise UsageError(f"the regression {text!r}: what is allowed cannot be negative")
    return Regression(_target(found, text), allowed)


def _target(found: re.Match[str], text: str) -> Target:
    pairs = [part.partition("=") for part in (found["cells"] or "").split(",")] if found["cells"] is not None else []
    cells = tuple((name.strip(), value.strip()) for name, _, value in pairs)
    if any(not name or not value for name, value in cells):
        raise UsageError(f"the rule {text!r}: a slice is written [column=value], [column=*] for each")
    average = None if found["average"] in WHOLE else found["average"]
    return Target(parse(found["metric"]), average, cells)


def _number(found: re.Match[str]) -> float:
    limit = float(found["limit"]) * (0.01 if found["scale"] else 1.0)
    if not math.isfinite(limit):
        raise UsageError(
            f"the limit {found['limit']} is beyond every number, so it would check nothing", code="no-limit"
        )
    return limit


# ----------------------------------------------------------------------
# Rules that say nothing: no figure can break them, every figure breaks them, or better figures do.


def refuse_vain(rule: Rule | Regression, e: Estimate, results: Results) -> None:
    """Refuse a rule that cannot fail, can only fail, or fails where the figure is better than its limit."""
    low, high = _range(e, results)
    if isinstance(rule, Regression):
        _refuse_vain_regression(rule, e, high - low)
        return
    name = " ".join(filter(None, (e.average, e.metric)))
    lies = f"{name} lies between {low:g} and {high:g}" if math.isfinite(high - low) else f"{name} is at least {low:g}"
    never, always = (
        (rule.limit >= high, rule.limit < low) if rule.sign == ">" else (rule.limit <= low, rule.limit > high)
    )
    if never or always:
        share = replace(rule, limit=rule.limit / 100)
        meant = f"; for per cent write {share.text('%')!r}" if low < share.limit < high and rule.limit > high else ""
        raise UsageError(
            f"the rule {str(rule)!r} {'never' if never else 'always'} fails: {lies}{meant}", code="vain-rule"
        )
    best = _better(e)
    if best is not None and (rule.sign == ">") == (best == "high"):
        turned = replace(rule, sign="<" if rule.sign == ">" else ">")
        better, worse = ("higher", "low") if best == "high" else ("lower", "high")
        raise UsageError(
            f"the rule {str(rule)!r} fails where {e.metric} is good: {better} is better; to fail where it is too {worse}, "
            f"write {str(turned)!r}",
            code="vain-rule",
        )


def _refuse_vain_regression(rule: Regression, e: Estimate, width: float) -> None:
    if _is_two_sided(e):
        raise UsageError(
            f"the regression of {rule.target}: neither a higher nor a lower {e.metric} is worse", code="vain-rule"
        )
    if rule.allowed >= width:
        points = (
            f"; for percentage points write '{rule.target}={rule.allowed:g}pp'" if rule.allowed < 100 * width else ""
        )
        raise UsageError(
            f"{str(rule)!r} never fails: {e.metric} cannot change by more than {width:g}{points}", code="vain-rule"
        )


def _range(e: Estimate, results: Results) -> tuple[float, float]:
    """Return the least and greatest possible values of a figure, from the declaration of its metric."""
    low, high = _declared_range(e, results)
    kinds = (e.average or "").split()
    if "gap" in kinds:
        low, high = low - high, high - low
    return (0.0, high - low) if "sd" in kinds else (low, high)


def _declared_range(e: Estimate, results: Results) -> tuple[float, float]:
    protocol = results.design.protocol if results.design is not None else None
    if protocol is not None and e.metric in protocol.derived:
        (derived,) = protocol.expressions([e.metric])
        specs = [parse(term.metric) for term in derived.terms]
        return derived.range([find_metric(s.name).range_of(dict(s.settings)) for s in specs])
    spec = parse(e.metric)
    entry = all_metrics().get(spec.name)
    if entry is not None:
        return entry.range_of({**dict(spec.settings), **e.settings})
    return RANGES.get(e.metric, (-math.inf, math.inf))


def _better(e: Estimate) -> str | None:
    """Return which end of a figure is better; None if a limit makes sense on either side."""
    kinds = (e.average or "").split()
    if "sd" in kinds:
        return "low"
    return None if "gap" in kinds or _is_two_sided(e) else e.best


def _is_two_sided(e: Estimate) -> bool:
    entry = all_metrics().get(parse(e.metric).name)
    return entry is not None and entry.two_sided


def gate(
    results: Results | str | Path,
    fail_if: str | Sequence[str] = (),
    *,
    baseline: Results | str | Path | None = None,
    max_regression: str | Sequence[str] = (),
    decide: str = POINT,
) -> list[Check]:
    """Check results against rules, as `hitmiss gate` does.

    Parameters
    ----------
    results
        The results to check, or their file.
    fail_if
        A rule such as `eer.high > 0.05` or `worst eer [codec=*] > 10%`, or several.
    baseline
        Earlier results, or their file, for `max_regression`.
    max_regression
        How much worse than the baseline a figure may be, such as `eer=0.005`; or several.
    decide
        What decides about a difference: `point` (the figures), `bound` (the worst end of the interval) or `shown` (its
        best end).

    Returns
    -------
    list[Check]
        One check per rule and figure. The gate holds if every `passed` is true.

    Raises
    ------
    UsageError
        For a rule that cannot be parsed, that cannot fail or can only fail, a figure that the results do not have, or
        no rule at all.
    DataError
        If the baseline cannot be compared with these results.

    >>> from hitmiss.core.trials import Trials
    >>> from hitmiss.engine.measure import measure
    >>> found = measure(Trials.of([1, 1, 0, 0], [4, 3, 2, 1]), ["roc_auc"])
    >>> [check.passed for check in gate(found, ["roc_auc < 0.9"])]
    [True]
    """
    results = demanded_results(results, "gate")
    baseline = None if baseline is None else demanded_results(baseline, "gate")
    fail_if, max_regression = one_or_several(fail_if), one_or_several(max_regression)
    if not fail_if and not max_regression:
        raise UsageError("a gate needs a rule; say fail_if=[…] or max_regression=[…]", code="no-rule")
    if max_regression and baseline is None:
        raise UsageError("max_regression needs a baseline to be worse than", code="no-baseline")
    checks = [check for text in fail_if for check in check_rule(parse_rule(text), results)]
    rules = [parse_regression(text) for text in max_regression]
    if baseline is not None and rules:
        wrong = incomparable(results, baseline, rules)
        if wrong:
            raise DataError(f"the baseline does not fit these results: {'; '.join(wrong)}", code="not-comparable")
        checks += [check for rule in rules for check in check_regression(rule, results, baseline, decide)]
    return checks


def check_rule(rule: Rule, results: Results) -> list[Check]:
    """Apply a rule to every figure that it matches. `where defined` skips undefined figures if others remain."""
    about = select(rule.target, results)
    for e in about:
        refuse_vain(rule, e, results)
    defined = [e for e in about if e.value is not None]
    return [_checked(rule, e) for e in (defined if rule.where_defined and defined else about)]


def _checked(rule: Rule, e: Estimate) -> Check:
    value = getattr(e, rule.end)
    if value is None:
        missing = e.note if e.value is None else "there is no interval; score with --bootstrap"
        return Check(str(rule), figure_name(e), None, rule.limit, False, missing or "undefined")
    broken = rule.is_broken(value)
    kind = "" if rule.end == "value" else f" ({rule.end} end of the interval, {e.method or 'method unknown'})"
    return Check(str(rule), figure_name(e), value, rule.limit, not broken, f"{value:.6g}{kind}")


def check_regression(
    rule: Regression, results: Results, baseline: Results, decide: str = POINT, paired: Comparison | None = None
) -> list[Check]:
    """Apply a regression rule to every figure that it matches, each against its counterpart in the baseline.

    `decide` is `point`, `bound` or `shown` (see `DECIDE`). `paired` is the comparison of both runs, if it could be
    made.
    """
    before = select(rule.target, baseline)
    found = [(e, _counterpart(e, before)) for e in select(rule.target, results)]
    for e, _ in found:
        refuse_vain(rule, e, results)
    return [_regressed(rule, e, base, decide, paired) for e, base in found]


def _regressed(rule: Regression, e: Estimate, base: Estimate, decide: str, paired: Comparison | None) -> Check:
    if e.value is None or base.value is None:
        which, note = ("here", e.note) if e.value is None else ("in the baseline", base.note)
        return Check(
            str(rule), figure_name(e), None, rule.allowed, False, f"undefined {which}: {note or 'no reason given'}"
        )
    found = change(e, base, paired)
    passed, told = found.passes(rule.allowed, decide), found.told(rule.allowed, decide)
    reason = f"{base.value:.6g} → {e.value:.6g}, {told}"
    return Check(str(rule), figure_name(e), found.worse, rule.allowed, passed, reason)


def _counterpart(e: Estimate, before: Sequence[Estimate]) -> Estimate:
    """Return the figure of the baseline for the same slice, and for the same run if it has several."""
    same = [b for b in before if b.average == e.average and (dict(b.slice) == dict(e.slice) or _is_moving(e, b))]
    if len({tuple(b.run.items()) for b in same}) > 1:
        same = [b for b in same if dict(b.run) == dict(e.run)]
    if len(same) != 1:
        raise UsageError(f"the baseline has {len(same)} figures for {figure_name(e)}; it must have one")
    if dict(same[0].settings) != dict(e.settings):
        raise DataError(
            f"{e.metric} of the baseline was measured with other settings: {dict(same[0].settings)} and {dict(e.settings)}"
        )
    return same[0]


def _is_moving(e: Estimate, base: Estimate) -> bool:
    """Return whether the figure is a worst slice, which may be another slice than in the baseline."""
    return e.average == "worst" and tuple(base.slice) == tuple(e.slice)


def select(target: Target, results: Results) -> list[Estimate]:
    """Return the figures that a rule matches; an unknown name is an error that gives the nearest known one."""
    own = _named(target.metric, results)
    if not own:
        raise UnknownName("metric in a rule", str(target.metric), {e.metric for e in results})
    averages = {e.average or POOLED for e in own}
    if (target.average or POOLED) not in averages:
        raise UnknownName(f"average of {target.metric} in a rule", target.average or POOLED, averages)
    inside = [e for e in own if e.average == target.average]
    for name, value in target.cells:
        _refuse_unknown(name, value, inside, target)
    found = [e for e in inside if _fits(e, target)]
    if not found:
        columns = {" × ".join(e.slice) or "all trials" for e in inside}
        raise UsageError(f"no figure for {target}; the results have {target.metric} by {', '.join(sorted(columns))}")
    return found


def _named(metric: MetricSpec, results: Results) -> list[Estimate]:
    """Return the figures of a metric by the name in the results, by its title there, or by a usual synonym."""
    known = parse(known_text(str(metric)))
    ways = (
        lambda e: parse(e.metric) == metric,
        lambda e: e.title is not None and e.title.lower() == str(metric).lower(),
        lambda e: parse(e.metric) == known,
    )
    return next((found for way in ways if (found := [e for e in results if way(e)])), [])


def _refuse_unknown(name: str, value: str, inside: Sequence[Estimate], target: Target) -> None:
    columns = {k for e in inside for k in (*e.run, *e.slice)}
    if name not in columns:
        raise UnknownName(f"column in the rule on {target}", name, columns)
    values = {c[name] for e in inside for c in (e.run, e.slice) if name in c}
    if value != "*" and value not in values:
        raise UnknownName(f"{name} in the rule on {target}", value, values)


def _fits(e: Estimate, target: Target) -> bool:
    """Return whether a rule matches a figure: it must name all slices, except for averages; runs may be left out."""
    cell = {**e.run, **e.slice}
    wanted = dict(target.cells)
    if any(cell.get(k) is None or v not in ("*", cell[k]) for k, v in wanted.items()):
        return False
    asked = [k for k in wanted if k in e.slice]
    return len(asked) == len(e.slice) or (target.average is not None and not asked)


def figure_name(e: Estimate) -> str:
    """Return a figure in words: `worst eer [codec=C05]`."""
    where = ", ".join(f"{k}={v}" for k, v in (*e.run.items(), *e.slice.items()))
    return f"{f'{e.average} ' if e.average else ''}{e.metric}{f' [{where}]' if where else ''}"


def incomparable(results: Results, baseline: Results, rules: Iterable[Regression]) -> list[str]:
    """Return why a baseline cannot be used.

    It may have other classes, score kinds, protocols, items or sizes, or differ in a way that `compare` refuses.
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
    if results.asked and baseline.asked and results.asked != baseline.asked:
        found.append("different items: the ids, or their true classes, are not the same")
    found += map(str, breaches_of(results.made_with, baseline.made_with))
    for rule in rules:
        for e in select(rule.target, results):
            base = _counterpart(e, select(rule.target, baseline))
            if e.n != base.n and e.average != "worst":
                found.append(f"different sample sizes for {figure_name(e)}: {e.n:,} and {base.n:,} trials")
            elif e.n_positive != base.n_positive and e.average != "worst":
                found.append(
                    f"different classes for {figure_name(e)}: {e.n_positive:,} and {base.n_positive:,} positives"
                )
    return found
