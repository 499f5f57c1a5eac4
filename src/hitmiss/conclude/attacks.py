"""What attacks show: how much accuracy is left, which attacks do more than noise, and which detector keeps more."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from hitmiss.conclude.checks import checks, records_enough
from hitmiss.conclude.verdict import status_of
from hitmiss.core.finding import Amount, Finding, Subject, Value
from hitmiss.core.results import Estimate, Results
from hitmiss.core.verdict import NOT_SHOWN, SHOWN, Basis, Check, Verdict
from hitmiss.robustness.campaign import CLEAN, CONTROL, attack_name, strength_of

HEADLINE: Final = "robust_accuracy"
RUN: Final = "run"
"""The run column that distinguishes attacked detectors."""
MOST_OF_EACH: Final = 2
"""Number of attacks per detector that a card names if there are several detectors."""


def conclude_attacks(results: Results) -> Verdict:
    """Say how much clean accuracy is left, which attacks beat noise, and whether to trust it."""
    whole = [e for e in results if not e.slice and e.average is None and e.value is not None]
    clean = [e for e in whole if e.run["attack"] == CLEAN]
    attacked = [e for e in whole if not e.run["attack"].startswith((CLEAN, CONTROL)) and strength(e) >= 0.0]
    worst = min((e for e in attacked if e.metric == HEADLINE), key=_value, default=None)
    claim = _left(worst, next((e for e in clean if e.metric == "exact_match"), None))
    beyond, looked = _beyond_noise(whole, attacked)
    found, notes = checks(results, clean or whole)
    n = min((e.n for e in whole), default=0)
    found = [c if c.name != "size" else records_enough(n, "records") for c in found]
    effect = Amount.of(worst) if worst is not None else None
    basis = Basis("interval against the clean accuracy") if worst is not None else None
    return Verdict(
        claim, status_of(claim), basis, effect, (claim,), tuple(beyond), tuple(looked), tuple(found), tuple(notes)
    )


def conclude_attack_runs(results: Results, names: Sequence[str]) -> Verdict:
    """Compare several attacked detectors, such as one before and after a defence: which keeps more, per attack.

    One is said to keep more where the intervals of the two lie apart, which is stricter than a paired test.
    """
    own = {
        name: replace(
            results, estimates=tuple(replace(e, run=without_run(e.run)) for e in results if e.run[RUN] == name)
        )
        for name in names
    }
    alone = {name: conclude_attacks(found) for name, found in own.items()}
    contests = _kept(results, names[0], names[1]) if len(names) == 2 else []
    single = [_of(f, name) for name, v in alone.items() for f in v.answers]
    fails = [_of(f, name) for name, v in alone.items() for f in v.fails[:MOST_OF_EACH]]
    answers = (*contests, *single)
    bad: dict[str, Check] = {}
    for v in alone.values():
        for c in v.checks:
            if c.name not in bad or (c.state == "failed" and bad[c.name].state != "failed"):
                bad[c.name] = c
    first = next(iter(alone.values()))
    status = status_of(answers[0]) if answers[0].code != "keeps-more" else SHOWN
    return Verdict(
        answers[0], status if contests else NOT_SHOWN, Basis("intervals apart"), None, answers, tuple(fails), (),
        tuple(bad.values()), first.notes,
    )  # fmt: skip


def _of(f: Finding, name: str) -> Finding:
    return replace(f, subject=replace(f.subject, run=name), values={**f.values, "who": name})


def without_run(run: Mapping[str, str]) -> dict[str, str]:
    """Return an attack without the name of the detector."""
    return {name: value for name, value in run.items() if name != RUN}


def _value(e: Estimate) -> float:
    return e.value if e.value is not None else math.nan


def strength(e: Estimate) -> float:
    """Return the strength of an attack; below 0 for a search for the minimal strength."""
    found = strength_of(e.run)
    return -1.0 if found is None else found


def where(e: Estimate) -> str:
    """Name the attack and its strength."""
    return f"{attack_name(e.run)} at {e.run['strength']}"


def strongest(own: Sequence[Estimate], metric: str) -> list[Estimate]:
    """Return each attack's row at its greatest strength."""
    found: dict[str, Estimate] = {}
    for e in own:
        name = attack_name(e.run)
        if e.metric == metric and (name not in found or strength(e) > strength(found[name])):
            found[name] = e
    return list(found.values())


def _left(worst: Estimate | None, before: Estimate | None) -> Finding:
    """Say how much of the clean accuracy the worst attack removes, if its interval shows any loss."""
    if worst is None or before is None or before.value is None or worst.high is None:
        return Finding("attack-not-tested")
    if not before.value > 0.0:
        return Finding("attack-on-nothing", Subject(metric=HEADLINE))
    values: dict[str, Value] = {"attack": where(worst), "value": Amount.of(worst), "clean": Amount.of(before)}
    taken = worst.high < before.value
    return Finding("attack-takes" if taken else "attack-takes-nothing", Subject(metric=HEADLINE), values)


def _beyond_noise(whole: Sequence[Estimate], attacked: Sequence[Estimate]) -> tuple[list[Finding], list[Finding]]:
    """Compare each attack at its greatest strength with noise of the same norm: worse if intervals are apart."""
    noise = {
        (attack_name(e.run), e.run["strength"]): e
        for e in whole
        if e.metric == "changed" and e.run["attack"].startswith(CONTROL)
    }
    tried = sorted(strongest(attacked, "changed"), key=_value, reverse=True)
    if not tried:
        return [], [Finding("attack-nothing-changed")]
    found, alike, untested = [], [], []
    for e in tried:
        control = noise.get((attack_name(e.run), e.run["strength"]))
        if control is None or e.low is None or control.high is None:
            untested.append(where(e))
        elif e.low > control.high:
            values: dict[str, Value] = {"attack": where(e), "value": Amount.of(e), "noise": Amount.of(control)}
            found.append(Finding("attack-beyond-noise", Subject(slice=dict(e.run), metric="changed"), values))
        else:
            alike.append(where(e))
    looked = [Finding("attack-like-noise", values={"attacks": tuple(alike)})] if alike else []
    looked += [Finding("attack-without-control", values={"attacks": tuple(untested)})] if untested else []
    return found, looked


def _kept(results: Results, a: str, b: str) -> list[Finding]:
    """Compare the robust accuracy of two runs at each attack and strength: which keeps more, if shown."""
    at: dict[tuple[tuple[str, str], ...], dict[str, Estimate]] = {}
    for e in results:
        attacked = not e.run["attack"].startswith((CLEAN, CONTROL))
        if e.metric == HEADLINE and not e.slice and e.average is None and e.value is not None and attacked:
            at.setdefault(tuple(without_run(e.run).items()), {})[e.run[RUN]] = e
    pairs = [(own[a], own[b]) for own in at.values() if {a, b} <= set(own)]
    names = {"first": a, "second": b}
    if not pairs:
        return [Finding("no-shared-attack", Subject(b, metric=HEADLINE), names)]
    ahead: dict[str, list[tuple[Estimate, Estimate]]] = {a: [], b: []}
    for one, other in pairs:
        if one.low is not None and one.high is not None and other.low is not None and other.high is not None:
            if one.low > other.high:
                ahead[a].append((one, other))
            elif other.low > one.high:
                ahead[b].append((other, one))
    shown = [name for name in (a, b) if ahead[name]]
    if not shown:
        return [Finding("keeps-alike", Subject(b, metric=HEADLINE), {**names, "total": len(pairs)})]
    found = []
    for name in sorted(shown, key=lambda name: -len(ahead[name])):
        won, lost = max(ahead[name], key=lambda pair: _value(pair[0]) - _value(pair[1]))
        values: dict[str, Value] = {
            "other": b if name == a else a, "n": len(ahead[name]), "total": len(pairs),
            "attack": where(replace(won, run=without_run(won.run))), "value": Amount.of(won), "rival": Amount.of(lost),
        }  # fmt: skip
        found.append(Finding("keeps-more", Subject(name, metric=HEADLINE), values))
    return found
