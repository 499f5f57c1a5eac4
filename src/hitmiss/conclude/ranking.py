"""Who is best of many runs, who is not shown to differ from it, and in which tier each run is: by the pairwise tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hitmiss.conclude.comparison import Contrast, draws_behind, p_of
from hitmiss.core.finding import Amount, Finding, PValue, Subject, Value
from hitmiss.core.verdict import NOT_SHOWN, SHOWN, Basis, Status
from hitmiss.engine.comparison import A_BETTER, B_BETTER, Difference
from hitmiss.engine.rank import title_of
from hitmiss.engine.ranking import Duel, RankedRun, Ranking

MOST_LETTERS: Final = 6
"""Groups up to which letters can be read; with more, runs are in tiers."""
MOST_NAMED: Final = 3


def conclude_many(ranked: Ranking, primary: str = "") -> Contrast | None:
    """Say which run is the best of many, and which runs the tests do not show to differ from it."""
    whole = [s for s in ranked.standings if not s.slice and not s.average and s.value is not None]
    metric = primary if any(s.metric == primary for s in whole) else (whole[0].metric if whole else "")
    own = [s for s in whole if s.metric == metric]
    if not own:
        return None
    best, rest = own[0], own[1:]
    duels = duels_of(ranked, metric)
    alike = [s.run for s in rest if not is_shown(duels, best.run, s.run)]
    assert best.value is not None
    draws = draws_behind(ranked)
    ends = (best.low, best.high) if best.low is not None and best.high is not None else (None, None)
    values: dict[str, Value] = {"value": Amount(best.value, metric, *ends), "n": len(rest) - len(alike)}
    subject = Subject(best.run, metric=metric)
    untested = all(d.p_adjusted is None for d in duels.values())
    status: Status = SHOWN if len(alike) < len(rest) else NOT_SHOWN
    if untested:
        claim = Finding("ranking-not-tested", subject, values)
    elif not alike:
        claim = Finding("best-of-all", subject, values)
    elif len(alike) == len(rest):
        claim = Finding("best-not-shown", subject, values)
    else:
        named = (*alike[:MOST_NAMED], *((f"{len(alike) - MOST_NAMED} more",) if len(alike) > MOST_NAMED else ()))
        claim = Finding("best-shared", subject, {**values, "level": named})
    nearest = duels.get(frozenset((best.run, rest[0].run))) if rest else None
    basis = (
        None if untested or nearest is None else Basis(f"all pairs, {ranked.correction}", True, p_of(nearest, draws))
    )
    effect = _effect(nearest, best, ranked) if nearest is not None else None
    return Contrast(claim, status, basis, effect, (), tuple(_lost(ranked, best.run, draws)))


def duels_of(ranked: Ranking, title: str) -> dict[frozenset[str], Difference]:
    """Return the differences of all pairs in one table, named by metric, slice and average."""
    return {frozenset((d.a, d.b)): d.difference for d in ranked.duels if title_of(d.difference) == title}


def is_shown(duels: Mapping[frozenset[str], Difference], one: str, other: str) -> bool:
    """Say whether the test of a pair shows a difference."""
    d = duels.get(frozenset((one, other)))
    return d is not None and d.verdict in (A_BETTER, B_BETTER)


def _effect(d: Difference, best: RankedRun, ranked: Ranking) -> Amount | None:
    """Return the difference of the best to the next one, so that below 0 a lower number is the best's."""
    if d.delta is None:
        return None
    duel = next(x for x in ranked.duels if x.difference is d)
    sign = 1.0 if duel.b == best.run else -1.0
    return Amount.turned(d.delta, d.metric, d.low, d.high, sign=sign)


def _lost(ranked: Ranking, best: str, draws: int | None) -> list[Finding]:
    """Return every slice, average or metric in which a test shows another run to be better than the best."""
    lost: dict[str, list[Duel]] = {}
    for duel in ranked.duels:
        if best not in (duel.a, duel.b):
            continue
        worse = duel.difference.verdict == (B_BETTER if duel.a == best else A_BETTER)
        if worse:
            lost.setdefault(title_of(duel.difference), []).append(duel)
    found = []
    for own in lost.values():
        duel = max(own, key=lambda d: abs(d.difference.delta or 0.0))
        d, other = duel.difference, duel.b if duel.a == best else duel.a
        assert d.a is not None and d.b is not None and d.delta is not None
        mine, rival = (d.a, d.b) if duel.a == best else (d.b, d.a)
        sign = 1.0 if duel.b == best else -1.0
        delta = Amount.turned(d.delta, d.metric, d.low, d.high, sign=sign)
        values: dict[str, Value] = {
            "other": other,
            "own": delta.beside(mine),
            "rival": delta.beside(rival),
            "delta": delta,
            "p": p_of(d, draws) or PValue(1.0),
        }
        code = "worse-in-slice" if d.slice else "worse-by-metric"
        found.append(Finding(code, Subject(best, dict(d.slice), d.metric, d.average), values))
    return found


def tiers(order: Sequence[str], duels: Mapping[frozenset[str], Difference]) -> dict[str, int]:
    """Return the tier of each run: a tier ends at the first run that is shown to differ from the tier's best.

    Every later run is in a later tier, so tiers follow the order of the runs.
    """
    found: dict[str, int] = {}
    tier, head = 0, ""
    for name in order:
        if not tier or is_shown(duels, head, name):
            tier, head = tier + 1, name
        found[name] = tier
    return found
