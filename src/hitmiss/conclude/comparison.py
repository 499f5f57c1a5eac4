"""Which of two runs is better, and where it is not: decided by the paired tests of the comparison alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Amount, Decimals, Finding, PValue, Subject, Value
from hitmiss.core.results import UNUSED, code_of, values_of
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.verdict import NOT_SHOWN, SHOWN, Basis, Status
from hitmiss.engine.comparison import A_BETTER, B_BETTER, IDENTICAL, NOT_TESTED, UNDEFINED, Comparison, Difference
from hitmiss.engine.signature import read_signature

if TYPE_CHECKING:
    from hitmiss.engine.ranking import Ranking

DRAWN_TESTS: Final = ("bootstrap", "permutation")
"""Tests whose p value is from replicates."""


def signature_of(made: Comparison | Ranking) -> Mapping[str, str]:
    """Return the parts of the signature of a comparison; empty without one."""
    try:
        return read_signature(made.signature.splitlines()[0]) if made.signature else {}
    except UsageError:
        return {}


def draws_behind(made: Comparison | Ranking) -> int | None:
    """Return how many replicates a comparison was tested on; None if there were none."""
    if made.design is not None:
        return made.design.bootstrap or None
    try:
        return SamplingPlan.parse(signature_of(made).get("boot", "")).bootstrap or None
    except (UsageError, ValueError):
        return None


def p_of(d: Difference, draws: int | None) -> PValue | None:
    """Return the adjusted p value of a difference with the draws behind it."""
    p = d.p_adjusted if d.p_adjusted is not None else d.p_value
    return None if p is None else PValue(p, draws if d.test in DRAWN_TESTS else None)


@dataclass(frozen=True)
class Contrast:
    """The conclusion from two runs: the claim with its status, test and effect, other findings, and failures."""

    claim: Finding
    status: Status
    basis: Basis | None
    effect: Amount | None
    answers: tuple[Finding, ...]
    fails: tuple[Finding, ...]
    looked: tuple[Finding, ...] = ()


def conclude_two(made: Comparison, primary: str = "") -> Contrast | None:
    """Say which of two runs is better, and every row in which that run (or, without one, the second) is shown worse."""
    whole = [d for d in made if not d.average and not is_sliced(d, made)]
    if not whole:
        return _only_slices(made)
    chief = next((d for d in whole if d.metric == primary), whole[0])
    draws = draws_behind(made)
    claim, status = _claim(chief, made, draws)
    p = p_of(chief, draws)
    basis = Basis(chief.test or "none", paired=True, p=p) if p is not None else None
    delta = None if chief.delta is None else Amount(chief.delta, chief.metric, chief.low, chief.high, signed=True)
    who = claim.subject.run
    other = made.names[0] if who == made.names[1] else made.names[1]
    loses = A_BETTER if who == made.names[1] else B_BETTER
    wins = B_BETTER if who == made.names[1] else A_BETTER
    rows = [d for d in made if d is not chief]
    fails = [_worse(d, who, other, made, draws) for d in rows if d.verdict == loses]
    fails.sort(key=lambda f: (bool(f.subject.slice), _p(f)))
    return Contrast(
        claim, status, basis, delta, tuple(_others(made, chief, whole, who, wins)), tuple(fails), tuple(_open(made))
    )


def _only_slices(made: Comparison) -> Contrast | None:
    """Conclude from slices alone, where nothing was compared over all of them, as with attacks at strengths."""
    rows = [d for d in made if not d.average]
    if not rows:
        return None
    ahead = {
        name: [d for d in rows if d.verdict == v] for name, v in zip(made.names, (A_BETTER, B_BETTER), strict=True)
    }
    total = len({tuple(d.slice.items()) for d in rows})
    who = made.names[0] if ahead[made.names[0]] and not ahead[made.names[1]] else made.names[1]
    other = made.names[1] if who == made.names[0] else made.names[0]
    draws = draws_behind(made)
    fails = [_worse(d, who, other, made, draws) for d in ahead[other]]
    found = _others(made, rows[0], [], who, A_BETTER if who == made.names[0] else B_BETTER)
    if not found:
        values: dict[str, Value] = {"first": made.names[0], "second": made.names[1], "total": total}
        claim = Finding("no-difference-anywhere", Subject(who), values)
        return Contrast(claim, NOT_SHOWN, None, None, (), tuple(fails))
    best = min(ahead[who], key=lambda d: d.p_adjusted if d.p_adjusted is not None else 1.0)
    basis = Basis(best.test or "none", True, p_of(best, draws))
    return Contrast(found[-1], SHOWN, basis, None, (), tuple(fails), tuple(_open(made)))


def _p(f: Finding) -> float:
    p = f.values.get("p")
    return p.p if isinstance(p, PValue) else 1.0


def is_sliced(d: Difference, made: Comparison) -> bool:
    """Say whether a row is one of a family: a slice, or a target of several."""
    return bool(d.slice) and any(tuple(e.slice) == tuple(d.slice) and e.slice != d.slice for e in made)


def _claim(d: Difference, made: Comparison, draws: int | None) -> tuple[Finding, Status]:
    """Return what the main row shows; the subject is the run that is better, without one the second."""
    names = {"first": made.names[0], "second": made.names[1]}
    subject = Subject(made.names[1], dict(d.slice), d.metric)
    if d.delta is None or d.a is None or d.b is None:
        return Finding("difference-not-tested", subject, {**names, "note": d.note or "undefined"}), NOT_SHOWN
    if d.verdict == IDENTICAL:
        return Finding("identical", subject, names), NOT_SHOWN
    delta = Amount(d.delta, d.metric, d.low, d.high, signed=True)
    values: dict[str, Value] = {
        **names, "a": delta.beside(d.a), "b": delta.beside(d.b), "delta": delta, "p": p_of(d, draws) or "–", "least": "",
    }  # fmt: skip
    if d.p_adjusted is None:
        return Finding("difference-not-tested", subject, {**values, "note": d.note or "no test"}), NOT_SHOWN
    if d.verdict not in (A_BETTER, B_BETTER):
        if d.mdd is not None:
            values["least"] = Finding("would-have-shown", subject, {"delta": delta.as_far(d.mdd)})
        return Finding("no-difference", subject, values), NOT_SHOWN
    overturned = _overturned(d, made, values)
    if overturned is not None:
        return Finding(overturned, subject, values), NOT_SHOWN
    better, other = made.names if d.verdict == A_BETTER else made.names[::-1]
    return Finding("better-than-other", Subject(better, dict(d.slice), d.metric), {**values, "other": other}), SHOWN


def _overturned(d: Difference, made: Comparison, values: dict[str, Value]) -> str | None:
    """Return the code of a check that turns a difference into none: units that were not drawn, pairs left out."""
    assert d.delta is not None
    if d.low is None or d.high is None:
        return None
    for warning in made.warnings:
        known = values_of(warning)
        factors = known.get("factors")
        if code_of(warning) == UNUSED and isinstance(factors, Mapping) and isinstance(factors.get(d.metric), float):
            factor = float(factors[d.metric])
            low, high = d.delta - factor * (d.delta - d.low), d.delta + factor * (d.high - d.delta)
            if factor > 1.0 and low <= 0.0 <= high:
                values.update(unit=str(known.get("unit", "")), factor=Decimals(factor, 1))
                return "difference-unit-overturns"
    missing = left_out(made)
    if missing:
        share = missing / (d.n_pairs + missing)
        if min(abs(d.low), abs(d.high)) * (1 - share) < share:  # as if every pair that is missing spoke against it
            values["missing"] = missing
            return "difference-missing-overturns"
    return None


def left_out(made: Comparison | Ranking) -> int:
    """Return how many pairs were left out because a run does not have them."""
    said = signature_of(made).get("left-out", "none")
    return sum(int(n) for n in said.split("/") if n.isdecimal())


def _worse(d: Difference, who: str, other: str, made: Comparison, draws: int | None) -> Finding:
    """Return a row in which a run is shown to be worse, whatever its kind: slice, label, average or another metric."""
    assert d.delta is not None and d.a is not None and d.b is not None
    own, rival = (d.a, d.b) if who == made.names[0] else (d.b, d.a)
    sign = 1.0 if who == made.names[1] else -1.0
    delta = Amount.turned(d.delta, d.metric, d.low, d.high, sign=sign)
    values: dict[str, Value] = {
        "other": other,
        "own": delta.beside(own),
        "rival": delta.beside(rival),
        "delta": delta,
        "p": p_of(d, draws) or "–",
    }
    code = "worse-in-slice" if d.slice else "worse-by-metric"
    return Finding(code, Subject(who, dict(d.slice), d.metric, d.average), values)


def _others(made: Comparison, chief: Difference, whole: Sequence[Difference], who: str, wins: str) -> list[Finding]:
    """Return what the other metrics say, and in which slices the run is better."""
    found = []
    rest: dict[str, list[str]] = {}
    for d in whole:
        if d is not chief:
            rest.setdefault(d.verdict, []).append(d.metric)
    parts = [_by_metrics(verdict, tuple(metrics), made) for verdict, metrics in rest.items()]
    found += [Finding("other-metrics", values={"parts": tuple(parts)})] if parts else []
    sliced = [d for d in made if d.slice and not d.average and d not in whole]
    better = list(dict.fromkeys(Subject(slice=dict(d.slice)).where for d in sliced if d.verdict == wins))
    total = len({tuple(d.slice.items()) for d in sliced})
    if better:
        named = tuple(better[:3]) + ((f"{len(better) - 3} more",) if len(better) > 3 else ())
        found.append(Finding("better-in-slices", Subject(who), {"n": len(better), "total": total, "slices": named}))
    return found


def _by_metrics(verdict: str, metrics: tuple[str, ...], made: Comparison) -> Finding:
    """Say what some metrics show."""
    better = {A_BETTER: made.names[0], B_BETTER: made.names[1]}.get(verdict)
    if better is None:
        return Finding("metrics-say", values={"verdict": verdict, "metrics": metrics})
    return Finding("metrics-better", Subject(better), {"metrics": metrics})


def _open(made: Comparison) -> list[Finding]:
    sliced: dict[tuple[tuple[str, str], ...], set[str]] = {}
    for d in made:
        if d.slice and not d.average and is_sliced(d, made):
            sliced.setdefault(tuple(d.slice.items()), set()).add(d.verdict)
    total, empty = len(sliced), sum(verdicts <= {UNDEFINED, NOT_TESTED} for verdicts in sliced.values())
    n = sum(not verdicts & {A_BETTER, B_BETTER} for verdicts in sliced.values()) - empty
    found = [Finding("slices-open", values={"n": n, "total": total})] if n else []
    return [*found, *([Finding("slices-untestable", values={"n": empty, "total": total})] if empty else [])]
