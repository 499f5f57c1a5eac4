"""Requirements: limits on the numbers of a run, written in a small strict grammar, and whether each is met.

    eer <= 0.05                      met if the whole interval lies within the limit; equal is within
    eer.high <= 5%                   the same, said in full: the upper end decides; .low the lower, .value the number alone
    eer[codec=C05] <= 0.1            the number of a slice (or of a run, by its columns)
    eer[codec=*] <= 0.2              every slice of a table
    delta eer <= 0.005               of two runs that are compared: the second less the first
    worst eer <= 0.2                 an average: worst, macro, gap, mean, power mean, …; micro is pooled
    spread fpr[language=*] <= 0.1    greatest − least over the values of a column (`--gap language=*`); ratio: least / greatest
    min_dcf(c_fa=1) <= 0.3           a metric with settings, as the results name it
    eer[codec=*] <= 0.2 where defined      every slice that has both classes; one at least must
    precision >= 0.9 at prevalence 1%      with this share of positives instead of the file's

A gate's rule is the same with what must not be, decided by the number alone: `eer > 0.05` fails above 0.05. A name that
is not in the results is an error, never a requirement that is met. An undefined number is not met, with the reason,
unless the text ends in `where defined`. What no number can break, every number breaks, or better numbers break is an
error.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from hitmiss.core import artifacts
from hitmiss.core.criteria import load_criteria
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.finding import Amount, Finding, Subject, Value
from hitmiss.core.metric_spec import MetricSpec, parse
from hitmiss.core.protocol import EVERY, GROUPS
from hitmiss.core.registry import all_metrics, find_metric, known_text
from hitmiss.core.results import Estimate, Results
from hitmiss.engine.at_prevalence import at_prevalence
from hitmiss.metrics.bias import IDENTITY, RANGES
from hitmiss.metrics.counts import FROM_RATES
from hitmiss.stats.planning import Error, needed, quantiles

Outcome = Literal["PASS", "FAIL", "NOT SHOWN"]
PASS: Final[Outcome] = "PASS"
FAIL: Final[Outcome] = "FAIL"
NOT_SHOWN: Final[Outcome] = "NOT SHOWN"

NEARLY: Final = 1e-12
"""A number this close to its limit counts as equal to it."""
POOLED: Final = "pooled"
WHOLE: Final = (POOLED, "micro")
"""What tables call the number of all trials."""
DELTA: Final = "delta"
"""Stands before a metric for the difference of two runs, the second less the first: `delta eer <= 0.005`."""
INTERVAL: Final = "interval"
VALUE: Final = "value"
ENDS: Final = (VALUE, "low", "high")
OPPOSITE: Final = {"<=": ">", ">=": "<", "<": ">=", ">": "<="}
POWER: Final = 0.8
"""How often the planned number of trials would show a requirement that the true value meets as the measured one does."""
SUFFIXES: Final = (".toml", ".json")
"""Endings of files that hold requirements: a list, or criteria that were locked (see `hitmiss.claims.criteria`)."""

_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_TARGET: Final = (
    r"(?:(?P<average>[a-z]+(?: [a-z]+)*)\s+)?(?P<metric>[A-Za-z_]\w*(?:\([^()]*\))?)\s*"
    rf"(?:\[(?P<cells>(?:{_QUOTED}|[^\[\]\"])*)\])?"
)
_PART: Final = re.compile(rf'((?:{_QUOTED}|[^,"])*)(?:,|$)')
_SIDES: Final = re.compile(rf'\s*(?P<name>{_QUOTED}|[^="]+?)\s*=\s*(?P<value>{_QUOTED}|[^"]+?)\s*')
_PLAIN: Final = re.compile(r'[^\s,=\[\]"\\](?:[^,=\[\]"\\]*[^\s,=\[\]"\\])?')
_NUMBER: Final = r"(?P<limit>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<scale>%|pp)?"
_PREVALENCE: Final = r"(?:at\s+prevalence\s+(?P<prevalence>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<share>%)?)?"
_DEFINED: Final = r"(?P<defined>where\s+defined)?"
_RULE: Final = re.compile(
    rf"\s*{_TARGET}(?:\.(?P<end>\w+))?\s*(?P<sign><=|>=|==|!=|<|>)\s*{_NUMBER}\s*{_PREVALENCE}\s*{_DEFINED}\s*"
)


@dataclass(frozen=True)
class Target:
    """Which numbers a requirement is about."""

    metric: MetricSpec
    average: str | None = None
    cells: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{f'{self.average} ' if self.average else ''}{self.metric}{cells_text(self.cells)}"


@dataclass(frozen=True)
class Requirement:
    """A limit that a number must keep.

    Parameters
    ----------
    target
        Which numbers it is about.
    sign, limit
        What must hold: `<=`, `>=`, `<` or `>`, and the limit.
    end
        What decides: the whole `interval`, the `value` alone, or one end of the interval, `low` or `high`.
    where_defined
        Whether undefined numbers are left out, if others remain.
    prevalence
        The share of positives for which the number is wanted; None: that of the file.

    >>> print(parse_requirement("worst eer[codec=*].high <= 10%"))
    worst eer[codec=*].high <= 0.1
    >>> parse_requirement("eer <= 5%").fails_if
    'eer.interval > 0.05'
    """

    target: Target
    sign: str
    limit: float
    end: str = INTERVAL
    where_defined: bool = False
    prevalence: float | None = None

    def __str__(self) -> str:
        return self._text(self.sign, "" if self.end == INTERVAL else f".{self.end}")

    @property
    def fails_if(self) -> str:
        """The requirement as the rule of a gate: what must not be."""
        return self._text(OPPOSITE[self.sign], "" if self.end == VALUE else f".{self.end}")

    def in_per_cent(self) -> str:
        """Return the rule of a gate with its limit in per cent."""
        return replace(self).fails_if.replace(f"{self.limit:g}", f"{self.limit * 100:g}%")

    def _text(self, sign: str, end: str) -> str:
        at = "" if self.prevalence is None else f" at prevalence {self.prevalence:g}"
        return f"{self.target}{end} {sign} {self.limit:g}{at}{' where defined' if self.where_defined else ''}"

    @property
    def is_upper(self) -> bool:
        """Whether the limit is an upper one."""
        return self.sign in ("<=", "<")

    def is_broken(self, value: float) -> bool:
        """Return whether a number breaks it; one that equals the limit does not, unless the sign is strict."""
        if math.isclose(value, self.limit, rel_tol=NEARLY, abs_tol=NEARLY):
            return self.sign in ("<", ">")
        return value > self.limit if self.is_upper else value < self.limit


@dataclass(frozen=True)
class Check:
    """One requirement on one number: what was found, and whether it is met."""

    rule: str
    figure: str
    value: float | None
    limit: float
    passed: bool
    reason: str
    outcome: Outcome | None = None
    needed: int | None = None
    is_required: bool = False
    """Whether `rule` says what must be shown, not what must not be."""
    metric: str = ""
    before: float | None = None
    """The number of the baseline; None where there is none."""
    after: float | None = None
    low: float | None = None
    high: float | None = None
    """The interval of the number, or of how much worse it is than the baseline's."""
    detectable: float | None = None
    """The least true loss that this check stops in four of five cases; None where that is not known."""
    slice: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[str, ...] = ()
    why: str = ""

    @property
    def fails_if(self) -> str:
        """What makes it fail, in words."""
        return f"not shown: {self.rule}" if self.is_required else self.rule

    @property
    def mark(self) -> str:
        """Its outcome in a table."""
        return "pass" if self.passed else NOT_SHOWN if self.outcome == NOT_SHOWN and self.is_required else FAIL


@dataclass(frozen=True)
class Judged:
    """A requirement judged on one number.

    `needed` is how many trials or units (`of`) would show that it is met, if the true value is the measured one.
    """

    requirement: Requirement
    e: Estimate
    outcome: Outcome
    value: float | None
    needed: int | None = None
    of: str = "trials"

    @property
    def finding(self) -> Finding:
        """What was found, as data."""
        values: dict[str, Value] = {
            "rule": str(self.requirement),
            "figure": figure_name(self.e),
            "outcome": self.outcome,
        }
        if self.e.value is None:
            return Finding("requirement-undefined", Subject.of(self.e), {**values, "note": self.e.note or "undefined"})
        is_signed = bool({"gap", DELTA} & set((self.e.average or "").split()))
        values["value"] = replace(Amount.of(self.e), signed=is_signed)
        if self.outcome != NOT_SHOWN:
            return Finding(f"requirement-{'met' if self.outcome == PASS else 'broken'}", Subject.of(self.e), values)
        if self.value is None:
            return Finding("requirement-not-shown/no-interval", Subject.of(self.e), values)
        if self.needed is None:
            return Finding("requirement-not-shown", Subject.of(self.e), values)
        return Finding(
            "requirement-not-shown/needs", Subject.of(self.e), {**values, "needed": self.needed, "of": self.of}
        )


def parse_requirement(text: str) -> Requirement:
    """Read a requirement from its text.

    >>> parse_requirement("precision >= 0.9 at prevalence 1%").prevalence
    0.01
    """
    found = _RULE.fullmatch(text)
    if found is None:
        raise UsageError.of("bad-requirement", text=text)
    if found["sign"] in ("==", "!="):
        raise UsageError.of("bad-requirement/equal", text=text)
    return _made(found, text, found["sign"], INTERVAL)


def parse_rule(text: str) -> Requirement:
    """Read the rule of a gate, which says what must not be, from its text.

    >>> print(parse_rule("eer[codec=C05].high > 10%"))
    eer[codec=C05].high <= 0.1
    """
    found = _RULE.fullmatch(text)
    if found is None:
        raise UsageError.of("bad-rule", text=text)
    if found["sign"] not in ("<", ">"):
        raise UsageError.of("bad-rule/sign", text=text)
    return _made(found, text, OPPOSITE[found["sign"]], VALUE)


def _made(found: re.Match[str], text: str, sign: str, default: str) -> Requirement:
    end = found["end"] or default
    if end not in (*ENDS, default):
        raise UnknownName(f"part of a number in the rule {text!r}", end, ENDS)
    share = None
    if found["prevalence"] is not None:
        share = float(found["prevalence"]) * (0.01 if found["share"] else 1.0)
        if not 0.0 < share < 1.0:
            raise UsageError.of("bad-prevalence", text=text)
    return Requirement(read_target(found, text), sign, read_number(found), end, found["defined"] is not None, share)


def read_target(found: re.Match[str], text: str) -> Target:
    """Return the target of a text that was matched."""
    parts = [] if found["cells"] is None else _PART.findall(f"{found['cells']},")[:-1]
    sides = [_SIDES.fullmatch(part) for part in parts]
    if not all(sides):
        raise UsageError.of("bad-rule/slice", text=text)
    cells = tuple((_unquoted(side["name"]), _unquoted(side["value"])) for side in sides if side)
    average = None if found["average"] in WHOLE else found["average"]
    return Target(parse(found["metric"]), average, cells)


def _unquoted(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text


def cells_text(cells: Iterable[tuple[str, str]]) -> str:
    """Return slices as a rule writes them; what would be misread is quoted.

    >>> cells_text([("codec", "C05"), ("topic", "war, peace")])
    '[codec=C05, topic="war, peace"]'
    """
    parts = ["=".join(v if _PLAIN.fullmatch(v) else json.dumps(v, ensure_ascii=False) for v in cell) for cell in cells]
    return f"[{', '.join(parts)}]" if parts else ""


def read_number(found: re.Match[str]) -> float:
    """Return the limit of a text that was matched."""
    limit = float(found["limit"]) * (0.01 if found["scale"] else 1.0)
    if not math.isfinite(limit):
        raise UsageError.of("no-limit", limit=found["limit"])
    return limit


def read_requirements(texts: str | Sequence[str]) -> list[Requirement]:
    """Read requirements; a text that ends in `.toml` is a file with the list `require`, one in `.json` locked criteria.

    Such a file holds `require = ["eer.high <= 0.05", "eer[codec=*] <= 10%"]`.
    """
    found: list[Requirement] = []
    for text in [texts] if isinstance(texts, str) else texts:
        if text.endswith(SUFFIXES):
            found += map(parse_requirement, _listed(Path(text)))
        else:
            found.append(parse_requirement(text))
    return found


def _listed(path: Path) -> list[str]:
    if path.suffix == SUFFIXES[1]:
        return list(load_criteria(path).require)
    artifacts.note_input(path)
    try:
        held = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError.of("not-a-file", file=str(path), what="TOML", error=str(error)) from None
    return _texts(held.get("require") if set(held) == {"require"} else None, path)


def _texts(texts: object, path: Path) -> list[str]:
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        raise DataError.of("bad-requirements-file", file=str(path))
    return texts


def judge(requirement: Requirement, results: Results) -> list[Judged]:
    """Judge a requirement on every number that it is about.

    Parameters
    ----------
    requirement
        The requirement.
    results
        The numbers; at another prevalence also those that it is computed from, recall and FPR.

    Returns
    -------
    list[Judged]
        One for each number; PASS and FAIL are shown, everything else is NOT SHOWN.
    """
    about = _numbers(requirement, results)
    for e in about:
        refuse_vain(requirement, e, results)
    defined = [e for e in about if e.value is not None]
    level = results.design.level if results.design is not None else 0.95
    return [_judged(requirement, e, level) for e in (defined if requirement.where_defined and defined else about)]


def _numbers(requirement: Requirement, results: Results) -> list[Estimate]:
    if requirement.prevalence is None:
        return select(requirement.target, results)
    metric = find_metric(requirement.target.metric.name)
    if not metric.from_rates:
        known = tuple(name for name, entry in all_metrics().items() if entry.from_rates)
        raise UsageError.of("prevalence-unknown", metric=metric.name, known=known)
    tables = [select(replace(requirement.target, metric=parse(part)), results) for part in FROM_RATES]
    found = []
    for recall in tables[0]:
        same = [e for e in tables[1] if (e.run, e.slice, e.average) == (recall.run, recall.slice, recall.average)]
        found.append(at_prevalence(metric, requirement.prevalence, recall, same[0]))
    return found


def metrics_of(requirements: Iterable[Requirement]) -> list[str]:
    """Return the metrics that must be measured to judge requirements."""
    found = []
    for r in requirements:
        if r.target.metric.name in RANGES:  # these follow from the columns of identities
            continue
        found += [str(r.target.metric)] if r.prevalence is None else [*FROM_RATES]
    return list(dict.fromkeys(found))


def slices_of(requirements: Iterable[Requirement], runs: Sequence[str] = ()) -> list[str]:
    """Return the groupings that must be measured to judge requirements; columns of runs are none."""
    sliced = [r.target for r in requirements if r.target.metric.name not in RANGES]
    groups = [tuple(name for name, _ in target.cells if name not in runs) for target in sliced]
    return list(dict.fromkeys(",".join(names) for names in groups if names))


def identities_of(targets: Iterable[Target]) -> tuple[str, ...]:
    """Return the columns of identities that rules name, as `bpsn_auc[identity=women]` does."""
    about = [t for t in targets if t.metric.name in RANGES]
    return tuple(dict.fromkeys(value for t in about for name, value in t.cells if name == IDENTITY and value != EVERY))


def _judged(requirement: Requirement, e: Estimate, level: float) -> Judged:
    good, bad = ("high", "low") if requirement.is_upper else ("low", "high")
    end = good if requirement.end == INTERVAL else requirement.end
    value = getattr(e, end)
    if e.value is None or value is None:
        return Judged(requirement, e, NOT_SHOWN, None)
    if not requirement.is_broken(value):
        return Judged(requirement, e, PASS, value)
    if end != good:
        return Judged(requirement, e, FAIL, value)
    other = getattr(e, bad)
    if other is not None and requirement.is_broken(other):
        return Judged(requirement, e, FAIL, value)
    count, of = _needed(requirement, e, value, level)
    return Judged(requirement, e, NOT_SHOWN, value, count, of)


def _needed(requirement: Requirement, e: Estimate, end: float, level: float) -> tuple[int | None, str]:
    """Return how many trials or units would show the requirement; None if the number itself does not meet it."""
    assert e.value is not None
    margin, half = abs(requirement.limit - e.value), abs(end - e.value)
    by_units = e.units is not None
    count = float(e.units or e.n)
    if requirement.is_broken(e.value) or not margin > 0.0 or not 0.0 < half < math.inf or count < 2:
        return None, "trials"
    spread = quantiles(e.units_effective or count, by_units, level, None)
    try:
        found = needed(Error(half / spread, count, by_units), margin, level, POWER)
    except UsageError:  # no number that can be planned reaches it
        return None, "trials"
    return found.count, "units" if by_units else "trials"


def check_requirement(requirement: Requirement, results: Results) -> list[Check]:
    """Judge a requirement as a check of a gate, which passes only what is shown to be met."""
    return [replace(_check(str(requirement), j), is_required=True) for j in judge(requirement, results)]


def check_rule(rule: Requirement, results: Results) -> list[Check]:
    """Judge the rule of a gate; the check names what must not be."""
    return [_check(rule.fails_if, j) for j in judge(rule, results)]


def _check(rule: str, j: Judged) -> Check:
    value = j.value
    row = Check(
        rule, figure_name(j.e), value, j.requirement.limit, False, "", j.outcome,
        metric=j.e.metric, after=j.e.value, low=j.e.low, high=j.e.high, slice={**j.e.run, **j.e.slice},
    )  # fmt: skip
    if value is None:
        missing = j.e.note if j.e.value is None else "there is no interval; score with --bootstrap"
        return replace(row, reason=missing or "undefined")
    end = j.requirement.end
    if end == INTERVAL:
        end = "high" if j.requirement.is_upper else "low"
    kind = "" if end == VALUE else f" ({end} end of the interval, {j.e.method or 'method unknown'})"
    more = (
        f"; about {j.needed:,} {j.of} would show it" if j.needed is not None and j.requirement.end == INTERVAL else ""
    )
    reason = f"{value:.6g}{kind}{more}"
    return replace(row, passed=j.outcome == PASS, reason=reason, needed=j.needed)


def refuse_vain(rule: Requirement, e: Estimate, results: Results) -> None:
    """Refuse what cannot fail, can only fail, or fails where the number is better than its limit."""
    low, high = range_of(e, results)
    name = " ".join(filter(None, (e.average, e.metric)))
    text = rule.fails_if if rule.end != INTERVAL else str(rule)
    never, always = (rule.limit >= high, rule.limit < low) if rule.is_upper else (rule.limit <= low, rule.limit > high)
    if never or always:
        lies = Finding(
            "number-lies" if math.isfinite(high - low) else "number-lies/above",
            values={"name": name, "low": f"{low:g}", "high": f"{high:g}"},
        )
        share = replace(rule, limit=rule.limit / 100)
        is_share = low < share.limit < high and rule.limit > high
        meant = Finding("per-cent-meant", values={"meant": share.in_per_cent()}) if is_share else None
        code = f"vain-rule/{'never' if never else 'always'}"
        raise UsageError.of(code, rule=text, lies=lies, meant=meant)
    best = _better(e)
    if best is not None and rule.is_upper == (best == "high"):
        turned = replace(rule, sign={"<=": ">=", ">=": "<=", "<": ">", ">": "<"}[rule.sign])
        meant_text = turned.fails_if if rule.end != INTERVAL else str(turned)
        better, worse = ("higher", "low") if best == "high" else ("lower", "high")
        raise UsageError.of(
            "vain-rule/turned", rule=text, metric=e.metric, better=better, worse=worse, turned=meant_text
        )


def range_of(e: Estimate, results: Results) -> tuple[float, float]:
    """Return the least and greatest possible values of a number, from the declaration of its metric."""
    low, high = _declared_range(e, results)
    kinds = (e.average or "").split()
    if {"gap", DELTA} & set(kinds):
        low, high = low - high, high - low
    if "ratio" in kinds:
        return 0.0, 1.0
    return (0.0, high - low) if {"sd", "spread"} & set(kinds) else (low, high)


def _declared_range(e: Estimate, results: Results) -> tuple[float, float]:
    protocol = results.design.protocol if results.design is not None else None
    if protocol is not None and e.metric in protocol.derived:
        (derived,) = protocol.expressions([e.metric])
        specs = [parse(term.metric) for term in derived.terms]
        return derived.range([find_metric(s.name).range_of(dict(s.settings)) for s in specs])
    spec = parse(e.metric)
    entry = all_metrics().get(spec.name)
    if entry is not None:
        own = {name: value for name, value in e.settings.items() if name != GROUPS}
        return entry.range_of({**dict(spec.settings), **own})
    return RANGES.get(e.metric, (-math.inf, math.inf))


def _better(e: Estimate) -> str | None:
    """Return which end of a number is better; None if a limit makes sense on either side."""
    kinds = (e.average or "").split()
    if "sd" in kinds:
        return "low"
    if {"spread", "ratio"} & set(kinds):
        return e.best
    return None if {"gap", DELTA} & set(kinds) or is_two_sided(e) else e.best


def is_two_sided(e: Estimate) -> bool:
    """Say whether neither a higher nor a lower number is better."""
    entry = all_metrics().get(parse(e.metric).name)
    return entry is not None and entry.two_sided


def select(target: Target, results: Results) -> list[Estimate]:
    """Return the numbers that a rule matches; an unknown name is an error that gives the nearest known one."""
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
        raise UsageError.of("no-number", target=target, metric=target.metric, columns=tuple(sorted(columns)))
    return found


def _named(metric: MetricSpec, results: Results) -> list[Estimate]:
    """Return the numbers of a metric by the name in the results, by its title there, or by a usual synonym."""
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
    """Return whether a rule matches an estimate: it must name all slices, except for averages; runs may be left out."""
    cell = {**e.run, **e.slice}
    wanted = dict(target.cells)
    if any(cell.get(k) is None or v not in ("*", cell[k]) for k, v in wanted.items()):
        return False
    asked = [k for k in wanted if k in e.slice]
    return len(asked) == len(e.slice) or (target.average is not None and not asked)


def figure_name(e: Estimate) -> str:
    """Return a number in words: `worst eer [codec=C05]`."""
    where = cells_text((*e.run.items(), *e.slice.items()))
    return f"{f'{e.average} ' if e.average else ''}{e.metric}{f' {where}' if where else ''}"
