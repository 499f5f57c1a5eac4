"""Can it be trusted? Checks of data and design, each passed, failed or not checked; they read codes and numbers only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Amount, Decimals, Finding, Subject, Value, has_code, run_of
from hitmiss.core.registry import find_metric, metric_of
from hitmiss.core.results import (
    ATTACK_SUSPECT,
    COARSE,
    CONSTANT,
    FORCED,
    MIXED,
    REPEATED,
    REVERSED,
    SAME_DATA,
    SATURATED,
    SIMULATED,
    TIED,
    UNDIRECTED,
    UNUSED,
    Estimate,
    Results,
    code_of,
    values_of,
)
from hitmiss.core.trials import Trials
from hitmiss.core.verdict import Check
from hitmiss.engine.signature import read_signature
from hitmiss.findings.wording import figure, name_of

ENOUGH: Final = 30
"""Number of trials of each class that numbers over all trials need."""
MISCALIBRATED: Final = 0.1
"""The excess of the actual cost is reported if it is above this share of the minimum cost."""
WIDER: Final = 1.25
"""Units fail a check if drawing them would make an interval wider by more than this; the factor is a rough estimate."""
NEARLY: Final = 1e-9
"""Two numbers that differ by no more than this share are equal: only their rounding differs."""
CHECKED: Final = (
    REVERSED,
    UNDIRECTED,
    CONSTANT,
    COARSE,
    TIED,
    SATURATED,
    UNUSED,
    MIXED,
    SAME_DATA,
    SIMULATED,
    FORCED,
    ATTACK_SUSPECT,
)
"""Codes of warnings that a check repeats."""
LEFT_OUT: Final = ("failed(", "allow-missing", "missing", "on-nan", "nan", "drop", "skip", "unlisted")
"""How choices begin by which trials were left out."""


def checks(results: Results, wholes: Sequence[Estimate], *, holds: bool = True) -> tuple[list[Check], list[str]]:
    """Return the checks, and the warnings that no check covers; `holds`: the numbers are better than chance."""
    signatures = signatures_of(results.signature)
    warned = results.warnings
    found = [
        _direction(warned, wholes, holds),
        _informative(warned, wholes),
        _sizes(wholes, is_graded=any("graded:" in signature.get("choices", "") for signature in signatures)),
        _independent(signatures, wholes, warned),
        _thresholds(signatures, warned),
        *_calibrated(wholes),
        _complete(signatures, results),
        *(_repeated("conditions", w) for w in with_code(warned, MIXED)),
        _simulated(warned),
        provenance(signatures),
    ]
    found += [_repeated("validity", w) for w in with_code(warned, FORCED, ATTACK_SUSPECT)]
    return [c for c in found if c is not None], [w for w in warned if code_of(w) not in CHECKED]


def signatures_of(text: str) -> list[dict[str, str]]:
    """Return the parts of each signature; lines that are none are left out."""
    found = []
    for line in text.splitlines():
        try:
            found.append(read_signature(line))
        except UsageError:
            continue
    return found


def with_code(warnings: Iterable[str], *codes: str) -> list[str]:
    """Return the warnings with one of these codes."""
    return [w for w in warnings if code_of(w) in codes]


def _repeated(name: str, warning: str) -> Check:
    """Return a check that a warning decides, in the words of the warning."""
    code = code_of(warning)
    assert code is not None
    return Check(name, Finding(code, written=str(warning)))


def _ranks(e: Estimate) -> bool:
    """Say whether a number depends on the order of the scores."""
    metric = metric_of(e.metric)
    return metric is not None and metric.ranks


def _direction(warned: Sequence[str], wholes: Sequence[Estimate], holds: bool) -> Check | None:
    for code in (REVERSED, UNDIRECTED):
        if found := with_code(warned, code):
            return _repeated("direction", found[0])
    if not any(_ranks(e) for e in wholes):
        return None
    return Check("direction", Finding("direction-shown" if holds else "direction-open"))


def _informative(warned: Sequence[str], wholes: Sequence[Estimate]) -> Check | None:
    if found := with_code(warned, CONSTANT, COARSE, TIED, SATURATED):
        return _repeated("scores", found[0])
    if not any(_ranks(e) for e in wholes):
        return None
    return Check("scores", Finding("scores-informative"))


def _sizes(wholes: Sequence[Estimate], *, is_graded: bool) -> Check | None:
    """Check the number of trials of the rarer class; graded answers of other tools have one class."""
    sized = [
        (min(e.n_positive, e.n - e.n_positive), True) if _is_labelled(e) and not is_graded else (e.n, False)
        for e in wholes
        if e.n
    ]
    if not sized:
        return None
    rare, of_class = min(sized)
    return trials_enough(rare) if of_class else records_enough(rare, "trials")


def trials_enough(n: int) -> Check:
    """Check the number of trials of the rarer class."""
    return Check("size", Finding("few-trials" if n < ENOUGH else "enough-trials", values={"n": n, "least": ENOUGH}))


def records_enough(n: int, what: str) -> Check:
    """Check a number of trials or records that belong to no single class."""
    values: dict[str, Value] = {"n": n, "what": what, "least": ENOUGH}
    return Check("size", Finding("few-records" if n < ENOUGH else "enough-records", values=values))


def _is_labelled(e: Estimate) -> bool:
    """Say whether a number depends on which trials are positive; shares of changed records do not."""
    try:
        return "label" in find_metric(name_of(e.metric)).columns
    except UsageError:
        return True


def factors_of(warning: str) -> dict[str, float]:
    """Return by how much whole units would widen each interval, as the warning about them records it."""
    found = values_of(warning).get("factors")
    return {str(k): float(v) for k, v in found.items()} if isinstance(found, Mapping) else {}


def _independent(signatures: Sequence[Mapping[str, str]], wholes: Sequence[Estimate], warned: Sequence[str]) -> Check:
    name = "independence"
    for warning in with_code(warned, UNUSED):
        factors = factors_of(warning)
        if factors and max(factors.values()) <= WIDER:
            values: dict[str, Value] = {
                "unit": str(values_of(warning).get("unit", "")),
                "factor": Decimals(max(factors.values()), 1),
            }
            return Check(name, Finding("unit-not-needed", values=values))
        return _repeated(name, warning)
    if any(has_code(e.note, REPEATED) for e in wholes):
        return Check(name, Finding("items-repeat"))
    units = units_of(signatures)
    if units:
        return Check(name, Finding("units-drawn", values={"units": units}))
    if not any(e.low is not None for e in wholes):
        return Check(name, Finding("no-intervals"))
    return Check(name, Finding("independence-assumed"))


def units_of(signatures: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Return the units that were drawn as wholes, as signatures record them."""
    found = [part.split("unit=")[1].split(",")[0] for s in signatures if "unit=" in (part := s.get("boot", ""))]
    return tuple(sorted(set(found)))


def _thresholds(signatures: Sequence[Mapping[str, str]], warned: Sequence[str]) -> Check | None:
    if found := with_code(warned, SAME_DATA):
        return _repeated("threshold", found[0])
    stated = tuple(dict.fromkeys(s["threshold"] for s in signatures if "threshold" in s))
    return Check("threshold", Finding("threshold-stated", values={"threshold": stated[:3]})) if stated else None


# --- calibration -------------------------------------------------------------------------------------------------------


def _calibrated(wholes: Sequence[Estimate]) -> list[Check]:
    """Say what miscalibration costs if costs were measured; otherwise that it was not checked."""
    by_run: dict[tuple[tuple[str, str], ...], dict[str, Estimate]] = {}
    for e in wholes:
        by_run.setdefault(tuple(e.run.items()), {})[name_of(e.metric)] = e
    said = {name: metric for own in by_run.values() for name in own if (metric := metric_of(name)) is not None}
    pairs = [(own[m.at_best], own[n]) for own in by_run.values() for n, m in said.items() if {n, m.at_best} <= set(own)]
    known = [(a, b) for a, b in pairs if a.value and b.value is not None]
    if known:
        return [Check("calibration", _costs(known, len(by_run) > 1))]
    errors = [
        (own[n], own.get(m.by_chance)) for own in by_run.values() for n, m in said.items() if m.by_chance and n in own
    ]
    if stated := [(error, chance) for error, chance in errors if chance is not None]:
        return [Check("calibration", _stated(stated))]
    if alone := [figure(e.value, 4) for e, _ in errors if e.value is not None]:
        return [Check("calibration", Finding("calibration-open", values={"values": alone}))]
    return [Check("calibration", Finding("calibration-not-measured"))]


def _costs(known: Sequence[tuple[Estimate, Estimate]], many: bool) -> Finding:
    bad = []
    for least, actual in known:
        assert least.value is not None and actual.value is not None
        sure = actual.low is None or least.high is None or actual.low > least.high
        if actual.value - least.value > MISCALIBRATED * least.value and sure:
            bad.append((least, actual))
    if not bad:
        return Finding("calibrated-costs")
    least, actual = bad[0]
    own = Amount.of(actual)
    if least.low is not None and least.high is not None and own.low is not None and own.high is not None:
        wide = max((own.low, own.high), (least.low, least.high), key=lambda ends: ends[1] - ends[0])
        own = replace(own, like=wide)  # both costs get as many digits as the wider interval allows
    more = Finding("more-runs", values={"n": len(bad) - 1}) if len(bad) > 1 else None
    who: dict[str, Value] = {"who": run_of(actual)} if many else {}
    assert least.value is not None
    values: dict[str, Value] = {
        "actual": own,
        "least": replace(own, value=least.value, low=None, high=None),
        "more": more,
        **who,
    }
    return Finding("miscalibrated-costs", Subject.of(actual), values)


def exceeds(value: float, limit: float) -> bool:
    """Say whether a number is above a limit by more than rounding.

    >>> exceeds(0.1 + 0.2, 0.3), exceeds(0.31, 0.3)
    (False, True)
    """
    return value > limit and not math.isclose(value, limit, rel_tol=NEARLY, abs_tol=1e-12)


def _stated(pairs: Sequence[tuple[Estimate, Estimate]]) -> Finding:
    """Say whether the calibration error of stated confidences is larger than chance gives a calibrated detector."""
    sure = [(a, a.value, b.value) for a, b in pairs if a.value is not None and b.value is not None]
    if not sure:
        return Finding("confidences-undefined")
    bad = [(run_of(e), value, limit) for e, value, limit in sure if exceeds(value, limit)]
    if not bad:
        return Finding("confidences-calibrated")
    metric = name_of(sure[0][0].metric)
    parts = tuple(
        Finding("confidence-error", Subject(who, metric=metric), {"who": who, **_apart(value, limit)})
        for who, value, limit in bad
    )
    return Finding("confidences-off", Subject(bad[0][0], metric=metric), {"parts": parts})


def _apart(value: float, limit: float) -> dict[str, Value]:
    """Return a number and its limit with as many digits as it takes to see that they differ."""
    digits = next((d for d in range(3, 9) if figure(value, d) != figure(limit, d)), 9)
    return {"value": Decimals(value, digits), "limit": Decimals(limit, digits)}


# --- completeness, origin ----------------------------------------------------------------------------------------------


def _complete(signatures: Sequence[Mapping[str, str]], results: Results) -> Check:
    name = "completeness"
    failed = max((e.n_failed for e in results if not e.slice), default=0)
    choices = [c for s in signatures for c in s.get("choices", "").split("+") if c.startswith(LEFT_OUT)]
    choices += [f"left-out:{s['left-out']}" for s in signatures if "left-out" in s]
    said = [Finding("left-out-by", values={"choice": choice}) for choice in dict.fromkeys(choices)]
    there = dict.fromkeys(s["complete"] for s in signatures if "complete" in s)
    covered = coverage_of(results)
    if there:
        said = [
            *(Finding("trials-there", values={"n": int(n), "total": int(of)}) for n, of in map(_pair, there)),
            *said,
        ]
    elif covered is not None:
        said = [Finding("trials-unanswered", values={"n": covered[1] - covered[0], "total": covered[1]}), *said]
    if failed or said:
        parts = (Finding("some-calls-failed", values={"n": failed}),) * bool(failed) + tuple(said)
        return Check(name, Finding("trials-missing", values={"parts": parts}))
    return Check(name, Finding("complete" if signatures else "completeness-unknown"))


def _pair(text: str) -> tuple[int, int]:
    n, _, total = text.partition("/")
    return int(n), int(total)


def coverage_of(results: Results) -> tuple[int, int] | None:
    """Return how many of the trials of the key were answered, if some were not."""
    if isinstance(results.behind, Trials):
        return results.behind.header.coverage
    for s in signatures_of(results.signature):
        for choice in s.get("choices", "").split("+"):
            scored, _, total = choice.removeprefix("coverage:").partition("/")
            if choice.startswith("coverage:") and scored.isdecimal() and total.isdecimal():
                return int(scored), int(total)
    return None


def _simulated(warned: Sequence[str]) -> Check:
    found = with_code(warned, SIMULATED)
    return _repeated("data", found[0]) if found else Check("data", Finding("origin-unknown"))


def provenance(signatures: Sequence[Mapping[str, str]]) -> Check:
    """Check whether signatures pin the data."""
    pinned = signatures and all("data" in s or "a" in s or "runs" in s for s in signatures)
    return Check("provenance", Finding("pinned" if pinned else "not-pinned"))
