"""The summary of an evaluation for people with one minute: what was tested, the headline, what to worry about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from hitmiss.report.evaluations import RUN, Evaluation
from hitmiss.report.glossary import explain, is_share
from hitmiss.report.grids import figure, interval, places
from hitmiss.results import Estimate

TILES: Final = 5
PER_CENT: Final = "\u00a0%"
"""Stays with its number at the end of a line."""
MOST_WORRIES: Final = 7
MISCALIBRATED: Final = 0.1
"""Share of the minimum cost above which the excess of the actual cost is worth a worry."""
MOST_SLICES: Final = 2
LOUD: Final = ("REVERSED", "INVALID", "ATTACK FAILED", "every score is", "optimistic")
"""Words of warnings after which a figure may be wrong."""
STANDS_OUT: Final = 1.25
"""How many times worse than the pooled figure a slice must be to be named."""


@dataclass(frozen=True)
class Shown:
    """A figure as a headline shows it."""

    title: str
    value: str
    interval: str
    gist: str
    metric: str = ""


@dataclass(frozen=True)
class Worry:
    """Something to worry about; `loud` where a figure may be wrong, not merely bad. The lowest rank comes first."""

    text: str
    loud: bool = False
    rank: int = 2


NOTED: Final = 3
"""The rank of what is to be known rather than worried about: what the readers of the files noted."""


@dataclass(frozen=True)
class Summary:
    """One evaluation in a card; `notes` are what a reader should know besides."""

    title: str
    tested: str
    headlines: tuple[tuple[str, Shown], ...]
    tiles: tuple[Shown, ...]
    worries: tuple[Worry, ...]
    notes: tuple[str, ...] = ()


def summarize(evaluation: Evaluation) -> Summary:
    """The card of an evaluation."""
    whole = evaluation.wholes
    primary = [e for e in whole if e.metric == evaluation.primary]
    deviations = {(e.metric, e.run.get(RUN)): e for e in evaluation.results if e.average == "sd" and not e.slice}
    heads = tuple(
        (e.run.get(RUN, ""), _with_spread(shown(e), e, deviations.get((e.metric, e.run.get(RUN)))))
        for e in sorted(primary, key=_rank)
    )
    heads = heads or tuple(_worst_slice(evaluation))
    others = [e for e in whole if e.metric != evaluation.primary] if len(primary) == 1 else []
    found = (*warned(evaluation), *_weak_spots(evaluation), *_unsure(whole))
    return Summary(evaluation.title, _tested(evaluation), heads, tuple(map(shown, others[:TILES])), *told(found))


def told(found: Iterable[Worry]) -> tuple[tuple[Worry, ...], tuple[str, ...]]:
    """The worries, the gravest first, and apart from them the notes; together no more than a card has room for."""
    ordered = sorted(dict.fromkeys(found), key=lambda worry: worry.rank)[:MOST_WORRIES]
    return tuple(w for w in ordered if w.rank < NOTED), tuple(w.text for w in ordered if w.rank >= NOTED)


def _worst_slice(evaluation: Evaluation) -> list[tuple[str, Shown]]:
    """Where nothing was measured over all trials, as in a drift table, the worst of the slices is the headline."""
    own = [e for e in evaluation.results if e.metric == evaluation.primary and e.slice and e.value is not None]
    if not own:
        return []
    worst = max(own, key=_rank)
    where = ", ".join(f"{k} {v}" for k, v in worst.slice.items())
    return [("", replace(shown(worst), title=f"{explain(worst.metric).title}, at worst: {where}"))]


def _with_spread(made: Shown, e: Estimate, deviation: Estimate | None) -> Shown:
    """A mean over repetitions says so, with their standard deviation."""
    if e.average != "mean":
        return made
    scale, unit = (100.0, PER_CENT) if is_share(e.metric) else (1.0, "")
    sd = deviation.value if deviation is not None else None
    spread = f"sd {scale * sd:.2g}{unit}" if sd is not None else ""
    ends = ", ".join(filter(None, (made.interval, spread)))
    return replace(made, interval=ends, gist=f"Mean over repeated runs. {made.gist}")


def _rank(e: Estimate) -> tuple[bool, float]:
    value = e.value if e.value is not None else 0.0
    return e.value is None, value if e.best == "low" else -value


def shown(e: Estimate) -> Shown:
    """An estimate for a headline: shares in per cent, everything with the digits that its interval allows."""
    entry, scale = explain(e.metric), 100.0 if is_share(e.metric) else 1.0
    digits = places([e], scale)
    unit = PER_CENT if scale != 1.0 and e.value is not None else ""
    value = f"{figure(e.value, digits, scale)}{unit}" if e.value is not None else "undefined"
    ends = interval(e, digits, scale)
    better = "lower is better" if e.best == "low" else "higher is better"
    said = e.note if e.value is None and e.note else entry.gist
    gist = f"{said[:1].upper()}{said[1:].rstrip('.')}; {better}." if said else f"{better.capitalize()}."
    return Shown(entry.title, value, f"{ends}{unit}" if ends else "", gist, e.metric)


def _tested(evaluation: Evaluation) -> str:
    first = next((e for e in evaluation.results if not e.slice and e.average is None), None)
    if first is None:
        return evaluation.lanes[0].name
    positive, negative = evaluation.classes
    counts = f"{first.n:,} trials ({first.n_positive:,} {positive}, {first.n - first.n_positive:,} {negative})"
    n = len(evaluation.lanes)
    return f"{n} runs on {counts}" if n > 1 else f"{evaluation.lanes[0].name} · {counts}"


def warned(evaluation: Evaluation) -> list[Worry]:
    """The warnings of the results; those after which a figure may be wrong come first."""
    loud = [any(word in text for word in LOUD) for text in evaluation.results.warnings]
    return [
        Worry(text, is_loud, 0 if is_loud else NOTED)
        for text, is_loud in zip(evaluation.results.warnings, loud, strict=True)
    ]


def _weak_spots(evaluation: Evaluation) -> list[Worry]:
    """The worst slices where they stand out, the gap to unseen domains, and what miscalibration costs."""
    pooled = {(e.metric, e.run.get(RUN)): e for e in evaluation.wholes}
    own = [e for e in evaluation.results if e.metric == evaluation.primary]
    weak = [
        e
        for e in own
        if e.average == "worst" and (whole := pooled.get((e.metric, e.run.get(RUN)))) and _stands_out(e, whole)
    ]
    weak = sorted(weak, key=_rank, reverse=True)[:MOST_SLICES]
    found = [Worry(_weak(e, pooled[e.metric, e.run.get(RUN)])) for e in weak]
    for e in own:
        if e.average == "gap" and _is_above_zero(e):
            domain = ", ".join(f"{k}: {v}" for k, v in e.slice.items())
            title = explain(e.metric).title.lower()
            found.append(Worry(f"{_who(e)}Worse outside the known domain: {title} {_signed(e)} ({domain}).", rank=1))
    return [*found, *_miscalibrated(pooled.values())]


def _weak(e: Estimate, whole: Estimate) -> str:
    where = ", ".join(f"{k} {v}" for k, v in e.slice.items())
    return (
        f"{_who(e)}Weakest spot: {where}. {explain(e.metric).title} {_text(e)}; over all trials {shown(whole).value}."
    )


def _stands_out(e: Estimate, whole: Estimate) -> bool:
    if not e.value or not whole.value or min(e.value, whole.value) <= 0:
        return False
    return (e.value / whole.value if e.best == "low" else (1 - e.value) / max(1 - whole.value, 1e-12)) >= STANDS_OUT


def _is_above_zero(e: Estimate) -> bool:
    """Whether a gap is clearly on the bad side."""
    if e.value is None or e.low is None or e.high is None:
        return False
    return e.low > 0 if e.best == "low" else e.high < 0


def _miscalibrated(whole: Iterable[Estimate]) -> list[Worry]:
    by_run: dict[str | None, dict[str, Estimate]] = {}
    for e in whole:
        by_run.setdefault(e.run.get(RUN), {})[e.metric] = e
    found = []
    for own in by_run.values():
        least, actual = own.get("min_dcf"), own.get("act_dcf")
        if least is None or actual is None or not least.value or actual.value is None:
            continue
        if actual.value - least.value > MISCALIBRATED * least.value:
            digits = min(places([actual]), places([least]))
            cost, best = (
                f"{figure(actual.value, digits)} {interval(actual, digits)}".strip(),
                figure(least.value, digits),
            )
            text = f"Miscalibrated: decisions by these scores cost {cost}, those at the best threshold {best}"
            found.append(Worry(f"{_who(actual)}{text}; calibrate on a development set.", rank=1))
    return found


def _unsure(whole: list[Estimate]) -> list[Worry]:
    """Figures without interval, and classes with few trials."""
    bare = [e for e in whole if e.value is not None and e.low is None]
    found = (
        [Worry("These figures have no interval; add --bootstrap 1000 to see how sure they are.")]
        if len(bare) == len(whole) and whole
        else []
    )
    return found + [Worry(f"{_who(e)}{e.metric}: {e.note}.") for e in whole if e.note and e.note.startswith("only")]


def _who(e: Estimate) -> str:
    return f"{e.run[RUN]}: " if RUN in e.run else ""


def _text(e: Estimate) -> str:
    made = shown(e)
    return f"{made.value} {made.interval}".strip()


def _signed(e: Estimate) -> str:
    """A difference: of shares in percentage points, which per cent would leave open."""
    made = shown(e)
    value, ends = (text.removesuffix(PER_CENT) for text in (made.value, made.interval))
    unit = " percentage points" if value != made.value else ""
    return f"{'+' if e.value is not None and e.value > 0 else ''}{value}{unit} {ends}".strip()
