"""What manipulations do to error rates at a fixed threshold: each drift tested against 0, corrected for all."""

from __future__ import annotations

from hitmiss.conclude.checks import checks
from hitmiss.conclude.slices import draws_of, level_of, p_of_zero
from hitmiss.conclude.verdict import status_of
from hitmiss.core.finding import Amount, Finding, PValue, Subject, Value
from hitmiss.core.results import Results
from hitmiss.core.verdict import Basis, Verdict
from hitmiss.metrics.drift import RATES
from hitmiss.stats.corrections import holm


def is_of_drifts(results: Results) -> bool:
    """Return whether results say how far error rates at a fixed threshold move from those of unchanged trials."""
    return any(e.metric in RATES for e in results)


def conclude_drift(results: Results) -> Verdict:
    """Say how manipulations change error rates at a fixed threshold."""
    own = [e for e in results if e.metric in RATES and None not in (e.value, e.low, e.high)]
    tested = [(e, p) for e in own if (p := p_of_zero(e)) is not None]
    adjusted = holm([p for _, p in tested]) if tested else []
    level = level_of(own[0]) if own else 0.95
    worse = [
        (e, p, value)
        for (e, _), p in zip(tested, adjusted, strict=True)
        if p < 1.0 - level and (value := e.value) is not None and value > 0
    ]
    worse.sort(key=lambda found: -found[2])
    fails = []
    for e, p, value in worse:
        metric, rate = RATES[e.metric]
        delta = Amount(value, metric, e.low, e.high, signed=True)
        values: dict[str, Value] = {"rate": rate, "delta": delta, "p": PValue(p, draws_of(e))}
        fails.append(Finding("drifts", Subject.of(e), values))
    total = len({tuple(e.slice.items()) for e, _ in tested})
    n = len({tuple(e.slice.items()) for e, _, _ in worse})
    code = "drift-not-tested" if not tested else "drift-shown" if worse else "drift-not-shown"
    claim = Finding(code, values={"n": n, "total": total})
    found, notes = checks(results, [e for e in results if 0 < e.n_positive < e.n])
    least = min((PValue(p, draws_of(e)) for e, p, _ in worse), key=lambda p: p.p, default=None)
    basis = Basis("interval against 0, Holm", paired=True, p=least) if tested else None
    return Verdict(
        claim, status_of(claim), basis, None, (claim,), tuple(fails), checks=tuple(found), notes=tuple(notes)
    )
