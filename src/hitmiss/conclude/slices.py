"""Where does it fail? Each slice against the others, identities against all texts, gaps, and scores that shift."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from hitmiss.core.finding import Amount, Finding, PValue, Subject, Value, run_of
from hitmiss.core.protocol import GROUPS
from hitmiss.core.registry import metric_of
from hitmiss.core.results import Estimate
from hitmiss.findings.wording import is_bounded, name_of
from hitmiss.metrics.usual import AREA
from hitmiss.stats.corrections import holm
from hitmiss.stats.group_spread import level_of_pairs, range_tail
from hitmiss.stats.slice_tests import Figure, Tested, against_others, against_whole, shift

FEW: Final = 10
"""Number of trials of a class that a slice needs to be tested."""
MATERIAL: Final = 0.1
"""A shift of scores is reported if it moves the number by this share; in a million trials any shift is significant."""
BIAS: Final = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
"""The areas by which bias towards an identity is judged, all of them with one correction."""


@dataclass(frozen=True)
class Weak:
    """A slice that was shown to be worse: its number, that of the others, and the corrected p value."""

    e: Estimate
    test: Tested
    p: float

    @property
    def where(self) -> str:
        """The slice in words."""
        return Subject.of(self.e).where

    def finding(self, code: str, who: str) -> Finding:
        """Return it as a finding."""
        own = Amount.of(self.e)
        values: dict[str, Value] = {
            "value": own, "others": own.beside(self.test.others), "p": PValue(self.p, draws_of(self.e)), "n": self.e.n,
            **({"who": who} if who else {}),
        }  # fmt: skip
        return Finding(code, Subject.of(self.e), values)


@dataclass(frozen=True)
class Slices:
    """The outcome of testing slices: those that are worse, how many were tested, and which could not be."""

    weak: tuple[Weak, ...] = ()
    tested: int = 0
    columns: tuple[str, ...] = ()
    few: int = 0
    bare: int = 0
    one_sided: int = 0
    lonely: int = 0
    worst: Estimate | None = None


def draws_of(e: Estimate) -> int | None:
    """Return how many replicates an interval is from; None if it is from a formula."""
    return e.how.draws


def level_of(e: Estimate) -> float:
    """Return the level of an estimate's interval, as its method records it; 0.95 if it does not."""
    return e.how.level


def says_something(e: Estimate) -> bool:
    """Say whether a number can differ between detectors: precision without positives is 0 whatever the detector does."""
    metric = metric_of(e.metric)
    return metric is None or metric.is_telling(e.n_positive, e.n)


def weak_slices(results: Iterable[Estimate], metric: str) -> Slices:
    """Test every slice of every run and grouping against the others; one correction covers all tested slices.

    Parameters
    ----------
    results
        The estimates; those of other metrics and averages are ignored.
    metric
        The metric to test by; slices of one class in which it says nothing are left out.

    Returns
    -------
    Slices
        The slices that survive, the least p value first, then the worst number, and what was looked at.
    """
    return _tested([e for e in results if e.metric == metric and e.slice and e.average is None])


def _tested(own: Sequence[Estimate]) -> Slices:
    """Test slices within each run, metric, grouping and kind of slice (of positives, of negatives, of both)."""
    families: dict[tuple[object, ...], list[Estimate]] = {}
    few = bare = one_sided = 0
    for e in own:
        if e.value is None or not says_something(e):
            one_sided += 1
        elif e.low is None or e.high is None or not all(map(math.isfinite, (e.value, e.low, e.high))):
            bare += 1
        elif rare(e) < FEW:
            few += 1
        else:
            kind = "both" if 0 < e.n_positive < e.n else "positives" if e.n_positive else "negatives"
            families.setdefault((tuple(e.run.items()), tuple(e.slice), e.metric, kind), []).append(e)
    pairs = [(e, test) for family in families.values() for e, test in zip(family, _tests(family), strict=False)]
    lonely = sum(map(len, families.values())) - len(pairs)
    adjusted = holm([test.p for _, test in pairs]) if pairs else []
    level = level_of(pairs[0][0]) if pairs else 0.95
    weak = [
        Weak(e, test, p)
        for (e, test), p in zip(pairs, adjusted, strict=True)
        if p < 1.0 - level and test.is_above == (e.best == "low")
    ]
    weak.sort(key=lambda w: (w.p, -_badness(w.e)))
    columns = tuple(dict.fromkeys(" × ".join(e.slice) for e, _ in pairs))
    worst = max((e for e, _ in pairs), key=_badness, default=None)
    return Slices(tuple(weak), len(pairs), columns, few, bare, one_sided, lonely, worst)


def _badness(e: Estimate) -> float:
    value = e.value if e.value is not None else math.nan
    return value if e.best == "low" else -value


def rare(e: Estimate) -> int:
    """Return the number of trials of the rarer class; for numbers over one class, those of that class."""
    n = int(e.of) if e.of is not None else min(e.n_positive, e.n - e.n_positive)
    return n if n else e.n


def _figure(e: Estimate) -> Figure:
    assert e.value is not None and e.low is not None and e.high is not None
    return Figure(e.value, e.low, e.high, rare(e))


def _tests(family: Sequence[Estimate]) -> list[Tested]:
    first = family[0]
    return against_others([_figure(e) for e in family], level=level_of(first), bounded=is_bounded(first.metric))


# --- bias and gaps: one correction for subgroup, BPSN, BNSP and gaps of rates ----------------------------------------------


def unfair(results: Sequence[Estimate], wholes: Sequence[Estimate]) -> list[Finding]:
    """Test the areas of every identity against that of all texts, and every gap against 0, corrected together.

    A spread over groups is tested against 0, too.
    """
    tested: list[tuple[Estimate, Tested, str]] = []
    area = {run_of(e): e for e in wholes if name_of(e.metric) == AREA and _has_ends(e)}
    for e in results:
        if e.average == "gap" and _has_ends(e) and (p := p_of_zero(e)) is not None:
            assert e.value is not None
            tested.append((e, Tested(0.0, p, e.value > 0), "gap-shown"))
        elif e.average == "spread" and _has_ends(e):
            tested.append((e, Tested(0.0, p_of_spread(e), True), "spread-shown"))
        elif e.metric in BIAS and e.average is None and _has_ends(e) and rare(e) >= FEW and run_of(e) in area:
            whole = area[run_of(e)]
            tested.append((e, against_whole(_figure(e), _figure(whole), level=level_of(whole)), "biased"))
    adjusted = holm([test.p for _, test, _ in tested]) if tested else []
    many = len({run_of(e) for e in results if e.run}) > 1
    made = []
    for (e, test, code), p in sorted(zip(tested, adjusted, strict=True), key=lambda pair: pair[1]):
        if p >= 1.0 - level_of(e) or test.is_above != (e.best == "low"):
            continue
        who = run_of(e) if many else ""
        if code == "biased":
            made.append(Weak(e, test, p).finding(code, who))
            continue
        assert e.value is not None
        delta = Amount(e.value, e.metric, e.low, e.high, signed=True)
        domain = ", ".join(f"{k}: {v}" for k, v in e.slice.items())
        values: dict[str, Value] = {
            "delta": delta,
            "domain": domain,
            "p": PValue(p, draws_of(e)),
            **({"who": who} if who else {}),
        }
        made.append(Finding(code, Subject.of(e), values))
    return made


def p_of_spread(e: Estimate) -> float:
    """Return the p value of groups that are all alike, from the distance of the interval's lower end; 1 if it is 0."""
    assert e.value is not None and e.low is not None
    groups = int(float(str(e.settings[GROUPS])))
    if not 0.0 < e.low < e.value:
        return 1.0
    z = NormalDist().inv_cdf(0.5 + level_of_pairs(groups, level_of(e)) / 2.0) * e.value / (e.value - e.low)
    return range_tail(z * math.sqrt(2.0), groups)


def _has_ends(e: Estimate) -> bool:
    return e.value is not None and e.low is not None and e.high is not None


def p_of_zero(e: Estimate) -> float | None:
    """Return the two-sided p value of a zero difference, from its interval's half width; None without a width."""
    assert e.value is not None and e.low is not None and e.high is not None
    width = (e.high - e.low) / 2
    if not width > 0 or not math.isfinite(width):
        return None
    z = abs(e.value) / width * NormalDist().inv_cdf(0.5 + level_of(e) / 2)
    return math.erfc(z / math.sqrt(2.0))


# --- all trials against their slices -----------------------------------------------------------------------------------


def shifted(results: Sequence[Estimate], wholes: Sequence[Estimate], metric: str) -> list[Finding]:
    """Return groupings whose slices are all better than the whole: scores have a different meaning in each slice."""
    found = []
    many = len({run_of(e) for e in wholes}) > 1
    for whole in (e for e in wholes if e.metric == metric and _has_ends(e)):
        own = [
            e for e in results if e.metric == metric and dict(e.run) == dict(whole.run) and e.slice and not e.average
        ]
        for names in dict.fromkeys(tuple(e.slice) for e in own if len(e.slice) == 1):
            slices = [e for e in own if tuple(e.slice) == names and _has_ends(e) and rare(e) >= FEW]
            test = shift(_figure(whole), [_figure(e) for e in slices], [e.n for e in slices], level=level_of(whole))
            if test is None or test.p >= 1.0 - level_of(whole) or not _is_material(test.whole, test.within, whole):
                continue
            numbers, value = sorted(e.value for e in slices if e.value is not None), Amount.of(whole)
            values: dict[str, Value] = {
                "column": names[0], "value": value, "least": value.beside(numbers[0]), "most": value.beside(numbers[-1]),
                "within": value.beside(test.within), "p": PValue(test.p, draws_of(whole)),
                **({"who": run_of(whole)} if many else {}),
            }  # fmt: skip
            found.append(Finding("scores-shift", Subject(run_of(whole), {names[0]: "*"}, metric), values))
    return found


def _is_material(whole: float, within: float, e: Estimate) -> bool:
    """Say whether the whole is worse than its slices by more than a small amount."""
    if e.best == "low":
        return whole > within * (1 + MATERIAL)
    return (1 - whole) > (1 - within) * (1 + MATERIAL) if is_bounded(e.metric) else whole < within * (1 - MATERIAL)


# --- put together ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Places:
    """Where a detector fails, and what was looked at."""

    fails: tuple[Finding, ...]
    looked: tuple[Finding, ...]


def places(results: Sequence[Estimate], wholes: Sequence[Estimate], primary: str, *, holds: bool) -> Places:
    """Find every slice, identity and gap that a test shows to be worse; `holds`: the whole itself is good."""
    biased = unfair(results, wholes)
    plain = [e for e in results if e.metric not in BIAS]
    metric, judged = judged_slices(plain, primary)
    if not judged:
        looked = () if any(e.metric in BIAS for e in results) else (Finding("slices-not-measured"),)
        return Places(tuple(biased), looked)
    found = _tested(judged)
    many = len({run_of(e) for e in results if e.slice}) > 1
    weak = [w.finding("weak-slice", run_of(w.e) if many else "") for w in found.weak]
    shifts = shifted(results, wholes, metric)
    return Places(
        (*biased, *shifts, *weak), tuple(_looked_at(found, metric, bool(weak), holds, any(map(draws_of, wholes))))
    )


ONE_CLASS: Final = ("accuracy", "recall", "fpr", "fnr", "specificity")
"""The metrics that judge slices in which the main one says nothing, in order."""


def judged_slices(results: Sequence[Estimate], primary: str) -> tuple[str, list[Estimate]]:
    """Return the metric that slices are tested by, and the number of each: of one class, one that says something there."""
    sliced = [e for e in results if e.slice and e.average is None]
    telling = [e for e in sliced if e.low is not None and says_something(e)]
    names = list(dict.fromkeys(e.metric for e in telling)) or list(dict.fromkeys(e.metric for e in sliced))
    if not names:
        return "", []
    first = primary if primary in names else names[0]
    order = [first, *(m for name in ONE_CLASS for m in names if name_of(m) == name and m != first)]
    own: dict[tuple[object, ...], Estimate] = {}
    for metric in order:
        for e in (e for e in telling if e.metric == metric):
            own.setdefault((tuple(e.run.items()), tuple(e.slice.items())), e)
    rest = [e for e in sliced if e.metric == first and (tuple(e.run.items()), tuple(e.slice.items())) not in own]
    return first, [*own.values(), *rest]


def _looked_at(found: Slices, metric: str, any_weak: bool, holds: bool, drawn: bool) -> list[Finding]:
    """Say what was tested, so that silence is never taken as a good result; `drawn`: replicates were drawn."""
    left = {
        "slices-few": found.few,
        "slices-bare": found.bare,
        "slices-one-sided": found.one_sided,
        "slices-lonely": found.lonely if found.tested else 0,
    }
    why_left = tuple(Finding(code, values={"n": n, "least": FEW}) for code, n in left.items() if n)
    rest = Finding("slices-left", values={"parts": why_left}) if why_left else None
    subject = Subject(metric=metric)
    if not found.tested:
        why = "too-few-slices"
        if found.bare:
            why = "no-slice-intervals" if drawn else "no-slice-intervals/undrawn"
        return [Finding("slices-not-tested", subject, {"why": Finding(why), "left": rest})]
    values: dict[str, Value] = {"n": found.tested, "columns": found.columns, "left": rest}
    if any_weak:
        return [Finding("slices-tested", subject, values)] if rest else []
    if not holds:
        return [Finding("slices-alike-failing", subject, values)]
    return [Finding("slices-alike", subject, {**values, "seen": _worst_looking(found.worst)})]


def _worst_looking(worst: Estimate | None) -> Finding | None:
    """Name the slice that looks worst, with its number; nothing if even that one is perfect."""
    if worst is None or worst.value is None:
        return None
    best = 0.0 if worst.best == "low" else 1.0
    if is_bounded(worst.metric) and worst.value == best:
        return None
    return Finding("worst-looking", Subject.of(worst), {"value": Amount.of(worst)})
