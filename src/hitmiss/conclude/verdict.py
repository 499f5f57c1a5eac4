"""The verdict on some results, on a comparison, on a gate: the claim, what fails, and the checks, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hitmiss.conclude.chance import Tried, counted, each_run, is_better
from hitmiss.conclude.checks import checks, coverage_of, factors_of, provenance, signatures_of, units_of, with_code
from hitmiss.conclude.slices import places
from hitmiss.core.finding import FAILED, PASSED, Amount, Finding, Subject, Value, run_of
from hitmiss.core.results import FORCED, UNUSED, Estimate, Results, code_of, values_of
from hitmiss.core.trials import Trials
from hitmiss.core.verdict import NOT_SHOWN, REFUTED, SHOWN, Basis, Check, Status, Verdict
from hitmiss.findings.wording import is_bounded

if TYPE_CHECKING:
    from hitmiss.conclude.comparison import Contrast
    from hitmiss.engine.comparison import Comparison
    from hitmiss.engine.ranking import Ranking
    from hitmiss.engine.requirement import Check as GateCheck
    from hitmiss.protocols.triage import TriageExtras


@dataclass(frozen=True)
class Beside:
    """What a run was compared with besides chance: other runs, the limits of a gate, requirements; parts of a triage."""

    compared: Comparison | Ranking | None = None
    gate: tuple[GateCheck, ...] = ()
    require: tuple[str, ...] = ()
    asides: tuple[TriageExtras, ...] = ()


def conclude(results: Results, primary: str = "", *, beside: Beside | None = None) -> Verdict:
    """Return what some results allow to conclude.

    Parameters
    ----------
    results
        The numbers of one run, or of several.
    primary
        The metric that counts most; by default the first that was measured.
    beside
        A comparison or the checks of a gate, where there are some.

    Returns
    -------
    Verdict
        The claim with its test, every failure, and the checks.

    Examples
    --------
    >>> coin = Results((Estimate("eer", 0.498, 0.478, 0.522, n=2000, n_positive=1000),))
    >>> found = conclude(coin)
    >>> found.code, found.status, found.headline
    ('not-better-than-chance', 'not shown', 'Not shown to be better than chance.')
    """
    given = beside or Beside()
    made = _concluded(results, primary, given)
    return replace(made, requirements=_required(given.require or required_of(results), results))


def _concluded(results: Results, primary: str, given: Beside) -> Verdict:
    """Return the verdict without what is required."""
    if is_campaign(results):
        from hitmiss.conclude.attacks import conclude_attacks

        return conclude_attacks(results)
    wholes = wholes_of(results)
    if not wholes:
        from hitmiss.conclude.drift import conclude_drift, is_of_drifts

        if is_of_drifts(results):
            return conclude_drift(results)
    chief = primary or (wholes[0].metric if wholes else "")
    plain = each_run(wholes, chief)
    tried = {name: _corrected(t, results) for name, t in plain.items()}
    contrast = _contrast(given.compared, chief)
    rules = [_rule(c) for c in given.gate]
    alone = [*_by_chance(tried, wholes), *rules]
    holds = not tried or any(t.finding.state != FAILED for t in tried.values())
    where = places(list(results), wholes, chief, holds=holds)
    directed = not plain or any(t.finding.state != FAILED for t in plain.values())
    found, notes = checks(results, wholes, holds=directed)
    made = _joined(contrast, alone, tried, where.fails, where.looked)
    made = replace(made, checks=tuple(found), notes=tuple(notes))
    for asides in given.asides:
        made = _with_asides(made, asides)
    return _named(_without_ticks(made), results)


def _without_ticks(made: Verdict) -> Verdict:
    """Return the verdict so that nothing looks good among failures: slices that are alike are then no good news."""
    if made.state != FAILED:
        return made
    looked = [replace(f, code="slices-alike-open") if f.code == "slices-alike" else f for f in made.looked]
    return replace(made, looked=tuple(looked))


def wholes_of(results: Results) -> list[Estimate]:
    """Return the numbers over all trials of each run; for repeated runs, the mean over the repetitions."""
    own = [e for e in results if not e.slice]
    means = [e for e in own if e.average == "mean"]
    return means or [e for e in own if e.average is None]


def is_campaign(results: Results) -> bool:
    """Say whether the runs of some results are attacks at strengths."""
    found = [e.run for e in results if e.average is None]
    return bool(found) and all("attack" in run and "strength" in run for run in found)


def _by_chance(tried: Mapping[str, Tried], wholes: Sequence[Estimate]) -> list[Finding]:
    if not wholes:
        return [Finding("nothing-measured")]
    return counted(tried) or [Finding("no-chance-level", Subject.of(wholes[0]))]


def _contrast(compared: Comparison | Ranking | None, primary: str) -> Contrast | None:
    if compared is None:
        return None
    from hitmiss.conclude.comparison import conclude_two
    from hitmiss.conclude.ranking import conclude_many
    from hitmiss.engine.ranking import Ranking

    return conclude_many(compared, primary) if isinstance(compared, Ranking) else conclude_two(compared, primary)


def required_of(results: Results) -> tuple[str, ...]:
    """Return what the design of some results requires."""
    return results.design.require if results.design is not None else ()


def _required(texts: Sequence[str], results: Results) -> tuple[Finding, ...]:
    """Judge what is required of some results."""
    if not texts:
        return ()
    from hitmiss.engine.requirement import judge, read_requirements

    return tuple(j.finding for requirement in read_requirements(texts) for j in judge(requirement, results))


def _rule(c: GateCheck) -> Finding:
    values: dict[str, Value] = {"figure": c.figure, "reason": c.reason, "rule": c.rule}
    return Finding("rule-kept" if c.passed else "rule-broken", values=values)


def _joined(
    contrast: Contrast | None,
    alone: Sequence[Finding],
    tried: Mapping[str, Tried],
    fails: Sequence[Finding],
    looked: Sequence[Finding],
) -> Verdict:
    """Return the verdict before its checks: a comparison comes first, chance second."""
    if contrast is not None:
        answers = (contrast.claim, *contrast.answers, *alone)
        everything = (*contrast.fails, *fails)
        return Verdict(
            contrast.claim,
            contrast.status,
            contrast.basis,
            contrast.effect,
            answers,
            everything,
            (*looked, *contrast.looked),
        )
    claim = next((f for f in alone if f.state == FAILED), alone[0])
    own = next((t for t in tried.values() if t.finding == claim), next(iter(tried.values()), None))
    effect = Amount.of(own.e) if own is not None else None
    basis = own.basis if own is not None else None
    ordered = (claim, *(f for f in alone if f is not claim))
    return Verdict(claim, status_of(claim), basis, effect, ordered, tuple(fails), tuple(looked))


def status_of(claim: Finding) -> Status:
    """Return the status of a claim that stands alone."""
    if claim.code in ("worse-than-chance", "people-lose", "attack-takes", "gate-broken", "rule-broken", "drift-shown"):
        return REFUTED
    return SHOWN if claim.state == PASSED else NOT_SHOWN


# --- checks that change the conclusion ---------------------------------------------------------------------------------


def _corrected(tried: Tried, results: Results) -> Tried:
    """Return a run against chance as it stands with whole units drawn, and with its missing trials wrong."""
    if tried.finding.code != "better-than-chance":
        return tried
    return _without_units(tried, results) or _without_trials(tried, results) or tried


def _without_units(tried: Tried, results: Results) -> Tried | None:
    e = tried.e
    assert e.value is not None and e.low is not None and e.high is not None
    for warning in with_code(results.warnings, UNUSED):
        factor = factors_of(warning).get(e.metric)
        if factor is None or factor <= 1.0:
            continue
        wider = _clipped(e, e.value - factor * (e.value - e.low), e.value + factor * (e.high - e.value))
        assert wider.low is not None and wider.high is not None
        if not is_better(wider.low, wider.high, tried.level.value, e.best):
            values: dict[str, Value] = {
                **tried.finding.values,
                "unit": str(values_of(warning).get("unit", "")),
                "wider": wider,
            }
            return replace(tried, finding=Finding("unit-overturns", tried.finding.subject, values))
    return None


def _without_trials(tried: Tried, results: Results) -> Tried | None:
    e, covered = tried.e, coverage_of(results)
    if covered is None or not is_bounded(e.metric):
        return None
    assert e.value is not None and e.low is not None and e.high is not None
    share = covered[0] / covered[1]
    worst = 1.0 if e.best == "low" else 0.0
    ends = [share * end + (1 - share) * worst for end in (e.low, e.high)]
    if is_better(ends[0], ends[1], tried.level.value, e.best):
        return None
    wider = Amount(share * e.value + (1 - share) * worst, e.metric, like=(e.low, e.high))
    values: dict[str, Value] = {
        **tried.finding.values,
        "missing": covered[1] - covered[0],
        "total": covered[1],
        "wider": wider,
    }
    return replace(tried, finding=Finding("missing-overturns", tried.finding.subject, values))


def _clipped(e: Estimate, low: float, high: float) -> Amount:
    assert e.value is not None
    ends = (max(low, 0.0), min(high, 1.0)) if is_bounded(e.metric) else (low, high)
    return Amount(e.value, e.metric, *ends)


# --- people and machine ------------------------------------------------------------------------------------------------


def _with_asides(made: Verdict, asides: TriageExtras) -> Verdict:
    """Add what people change, how verdicts repeat, and how people agree."""
    from hitmiss.conclude.people import added_by_people, agreement, failed_calls, raised_by_people

    n = failed_calls(asides)
    lost = Check("completeness", Finding("calls-failed", values={"n": n}))
    kept = tuple(lost if c.name == "completeness" and c.state != FAILED and n else c for c in made.checks)
    made = replace(made, checks=(*kept, _repetition(asides), *agreement(asides.people)))
    if asides.people is None:
        return made
    added = added_by_people(asides.people, "accuracy")
    made = replace(made, fails=(*raised_by_people(asides.people), *made.fails))
    if not added:
        return made
    order = ("people-lose", "people-gain")  # a loss comes first, and what is shown before what is not
    first = min(added, key=lambda a: order.index(a.finding.code) if a.finding.code in order else len(order))
    answers = (first.finding, *(a.finding for a in added if a is not first), *made.answers)
    return replace(
        made,
        claim=first.finding,
        status=status_of(first.finding),
        test=first.basis,
        effect=first.effect,
        answers=answers,
    )


def _repetition(asides: TriageExtras) -> Check:
    """Say how often verdicts flip between trials, if items were asked more than once."""
    own = [e for e in asides.flips if e.metric == "flip_rate" and e.value is not None]
    if not own:
        return Check("repetition", Finding("asked-once"))
    parts = tuple(
        Finding("flip-share", Subject.of(e), {"value": Amount.of(e), **({"who": run_of(e)} if e.run else {})})
        for e in own
    )
    return Check("repetition", Finding("asked-again", values={"parts": parts}))


def _named(made: Verdict, results: Results) -> Verdict:
    """Name the run of a single file, which the numbers themselves do not."""
    if made.subject.run or not isinstance(results.behind, Trials) or not results.behind.header.sources:
        return made
    if any(f.subject.run for f in (*made.answers, *made.fails)):
        return made
    name = results.behind.header.sources[0].name.rpartition("/")[2].partition(".")[0]
    claim = replace(made.claim, subject=replace(made.claim.subject, run=name))
    return replace(made, claim=claim, answers=tuple(claim if f is made.claim else f for f in made.answers))


# --- comparisons and gates alone ---------------------------------------------------------------------------------------


def conclude_comparison(compared: Comparison | Ranking, primary: str = "") -> Verdict:
    """Return the verdict of a comparison or a ranking alone: which run is better, and where it is not."""
    from hitmiss.conclude.comparison import left_out

    found = _contrast(compared, primary)
    missing = left_out(compared)
    known = signatures_of(compared.signature)
    there = next((s["complete"] for s in known if "complete" in s), "")
    complete = Finding("pairs-left-out", values={"missing": missing}) if missing else Finding("pairs-complete")
    if there and not missing:
        n, _, of = there.partition("/")
        complete = Finding(
            "trials-missing", values={"parts": (Finding("trials-there", values={"n": int(n), "total": int(of)}),)}
        )
    own = [Check("validity", Finding(FORCED, written=str(w))) for w in with_code(compared.warnings, FORCED)]
    own += [_pair_units(compared), Check("completeness", complete), provenance(known)]
    notes = tuple(w for w in compared.warnings if code_of(w) != FORCED)
    required = _required_of_runs(compared)
    if found is None:
        return Verdict(Finding("nothing-measured"), NOT_SHOWN, checks=tuple(own), notes=notes, requirements=required)
    return Verdict(
        found.claim, found.status, found.basis, found.effect, (found.claim, *found.answers), found.fails, found.looked,
        tuple(own), notes, required,
    )  # fmt: skip


def _required_of_runs(compared: Comparison | Ranking) -> tuple[Finding, ...]:
    """Judge what a comparison requires: of the difference of two runs, or of each of many."""
    from hitmiss.engine.comparison import IDENTICAL, Comparison
    from hitmiss.engine.requirement import DELTA

    texts = compared.design.require if compared.design is not None else ()
    if isinstance(compared, Comparison):
        rows = []
        for d in compared:
            ends = (0.0, 0.0) if d.verdict == IDENTICAL else (d.low, d.high)
            kind = f"{DELTA} {d.average}" if d.average else DELTA
            rows.append(
                Estimate(
                    d.metric, d.delta, *ends, d.n_pairs, d.n_positive, slice=d.slice, average=kind, note=d.note, best=d.best
                )
            )  # fmt: skip
    else:
        rows = [
            Estimate(s.metric, s.value, s.low, s.high, s.n_pairs, run={"run": s.run}, slice=s.slice, average=s.average)
            for s in compared.standings
        ]
    return _required(texts, Results(tuple(rows), design=compared.design))


def _pair_units(compared: Comparison | Ranking) -> Check:
    units = units_of(signatures_of(compared.signature))
    for warning in with_code(compared.warnings, UNUSED):
        factors = factors_of(warning)
        from hitmiss.conclude.checks import WIDER

        if not factors or max(factors.values()) > WIDER:
            return Check("independence", Finding(UNUSED, written=str(warning)))
    if units:
        return Check("independence", Finding("pairs-by-unit", values={"units": units}))
    return Check("independence", Finding("pairs-assumed-independent"))


def conclude_gate(checked: Sequence[GateCheck], run: str = "") -> Verdict:
    """Return the verdict of a gate: each limit, kept or broken."""
    answers = [_rule(c) for c in checked]
    broken = sum(c.mark == "FAIL" for c in checked)
    unshown = sum(not c.passed for c in checked) - broken
    values: dict[str, Value] = {"n": broken or unshown or len(checked), "total": len(checked)}
    code = "gate-broken" if broken else "gate-not-shown" if unshown else "gate-kept"
    status = REFUTED if broken else NOT_SHOWN if unshown else SHOWN
    return Verdict(Finding(code, Subject(run), values), status, Basis("limits"), answers=tuple(answers))
