"""What people add to a system: a paired comparison of the same items, decided by the exact sign test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hitmiss.core.finding import Amount, Finding, PValue, Subject, Value
from hitmiss.core.results import Estimate
from hitmiss.core.verdict import Basis, Check
from hitmiss.metrics.triage import WRONG
from hitmiss.protocols.triage import repeats_of
from hitmiss.stats.corrections import adjusted
from hitmiss.stats.mcnemar import exact
from hitmiss.verdicts.people import SYSTEM, TOGETHER, WHO, HumanMachineResults, Pairs

if TYPE_CHECKING:
    from hitmiss.protocols.triage import TriageExtras

LEVEL: Final = 0.05
ALPHA: Final = 0.667
"""Krippendorff's alpha below which, by his own rule, no conclusion should be based on people's answers."""
SIGN_TEST: Final = "exact sign test of items"


@dataclass(frozen=True)
class Added:
    """What people change in one number of one run."""

    finding: Finding
    basis: Basis | None
    effect: Amount | None


def added_by_people(work: HumanMachineResults, metric: str) -> list[Added]:
    """Test for each run whether more items got better than worse, in one number; p values are adjusted over the runs."""
    whole = {(_run(e), e.run.get(WHO)): e for e in repeats_of(work.figures) if e.metric == metric}
    runs = list(dict.fromkeys(run for run, _ in whole))
    known = []
    for run in runs:
        alone, both = whole.get((run, SYSTEM)), whole.get((run, TOGETHER))
        if alone is None or both is None or alone.value is None or both.value is None:
            continue
        pairs = next((p for p in work.pairs if p.metric == metric and tuple(p.run.items()) == run), None)
        known.append(("|".join(v for _, v in run), alone, both, pairs))
    p_values = adjusted([None if pairs is None else exact(pairs.losses, pairs.gains) for *_, pairs in known], "holm")
    return [
        _added(metric, name if len(runs) > 1 else "", name, alone, both, pairs, p)
        for (name, alone, both, pairs), p in zip(known, p_values, strict=True)
    ]


def _run(e: Estimate) -> tuple[tuple[str, str], ...]:
    return tuple((k, v) for k, v in e.run.items() if k != WHO)


def _added(
    metric: str, who: str, name: str, alone: Estimate, both: Estimate, pairs: Pairs | None, adjusted_p: float | None
) -> Added:
    subject, named = Subject(name, metric=metric), {"who": who} if who else {}
    if pairs is None or adjusted_p is None:
        return Added(Finding("people-not-tested", subject, {**named}), None, None)
    p = PValue(adjusted_p)
    values: dict[str, Value] = {
        "gains": pairs.gains, "losses": pairs.losses, "p": p, "both": Amount.of(both), "alone": Amount.of(alone), **named,
    }  # fmt: skip
    assert both.value is not None and alone.value is not None
    code = "people-open"
    if p.p < LEVEL:
        code = "people-gain" if pairs.gains > pairs.losses else "people-lose"
    effect = Amount(both.value - alone.value, metric, signed=True)
    return Added(Finding(code, subject, values), Basis(SIGN_TEST, True, p), effect)


def raised_by_people(work: HumanMachineResults) -> list[Finding]:
    """Return the error rates that people are shown to raise."""
    found = []
    for metric in WRONG:
        for added in added_by_people(work, metric):
            if added.finding.code == "people-lose":
                found.append(Finding("people-raise", added.finding.subject, added.finding.values))
    return found


def agreement(work: HumanMachineResults | None) -> list[Check]:
    """Check whether people agree enough to base a conclusion on their answers."""
    if work is None:
        return []
    a, name = work.agreement, "agreement of people"
    if a.alpha is None or a.low is None or a.high is None:
        return [Check(name, Finding("people-agreement-undefined", values={"note": a.note or "too few answers"}))]
    values: dict[str, Value] = {
        "alpha": Amount(a.alpha, "", a.low, a.high, like=(a.alpha - 0.3, a.alpha + 0.3)), "n": a.n_items, "least": f"{ALPHA:g}",
    }  # fmt: skip
    code = "people-agree" if a.low >= ALPHA else "people-disagree" if a.high < ALPHA else "people-agreement-open"
    return [Check(name, Finding(code, values=values))]


def failed_calls(asides: TriageExtras) -> int:
    """Return how many calls of a triage failed: its numbers count them as wrong, so no row is missing."""
    return sum(int(c.counts.failed_positive + c.counts.failed_negative) for c in asides.confusions)
