"""Trials of attacks to Results: what each attack at each strength changes, with intervals over records or patients.

The trials have run columns `attack` and `strength` (and `aim`, `place` where attacks have those), the untouched records under
attack `clean`; `noise ~ pgd` is the control of `pgd`: random signs of the same norm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from hitmiss.core.errors import UsageError
from hitmiss.core.question import Design, Gap
from hitmiss.core.results import Estimate, Results
from hitmiss.core.trials import Trials
from hitmiss.engine.signature import signed
from hitmiss.metrics import robustness as figures
from hitmiss.metrics.ranking import roc_auc
from hitmiss.metrics.robustness import Floats, Terms
from hitmiss.robustness.campaign import Campaign, Cell
from hitmiss.robustness.draws import Draws, Figure, Mask
from hitmiss.robustness.health import health

MEANS: Final = {
    "l2_mv": ("delta_l2", 1.0),
    "linf_uv": ("delta_linf", 1e3),
    "snr_db": ("snr_db", 1.0),
    "smoothness_uv2": ("smoothness", 1e6),
}
"""Means over the records: the name, the column, and what it is multiplied by (columns are in mV)."""
LEAST: Final = "minimal_strength"
LOW: Final = ("changed", "changed_correct", "target_success", "target_eligible", "flipped", "lost", "induced")


def measure_attacks(trials: Trials, design: Design | None = None, **asked: object) -> Results:
    """Every figure of every attack; `by="target"` per class, `by="sex"` per group of records.

    Shares of independent records get Wilson's interval; where a patient has several records, and for areas and means, the
    interval comes from drawing patients (`bootstrap`). `unit` is the column drawn as a whole, by default `patient`, else the
    record. Keywords instead of a design are those of `Design.of`; what attacks do not have (a gap, strata, other
    intervals) is refused.
    """
    design = design or Design.of(**asked)  # type: ignore[arg-type]
    _refuse_unfit(design)
    campaign = Campaign.of(trials)
    bootstrap, wanted = design.bootstrap, ",".join(design.unit) or None
    draws = Draws.of(campaign, bootstrap, wanted, design.seed, design.level)
    everyone = np.ones(len(campaign.records), dtype=bool)
    whole = [r for cell in (campaign.clean, *campaign.cells) for r in _rows(campaign, cell, draws, everyone, {})]
    groupings = design.groupings
    rows = [r.estimate for r in whole] + [e for names in groupings for e in _grouped(campaign, draws, names)]
    several = (
        []
        if bootstrap or draws.is_independent
        else [f"no intervals: a {draws.unit} has several records, which are no independent draws; add --bootstrap 1000"]
    )
    warnings = (*trials.header.notes, *several, *health(campaign))
    made = Results(tuple(rows), warnings=tuple(dict.fromkeys(warnings)), protocol="ecg-attacks")
    by = ",".join("*".join(names) for names in groupings)
    made = replace(made, reading=trials.header.reading, design=design, content=trials.content)
    return replace(made, signature=signed(made, trials, by=by or "none", boot=draws.text.removeprefix("bootstrap ")))


def _refuse_unfit(design: Design) -> None:
    """What may be asked of trials and has no meaning for attacks."""
    if design.interval not in ("auto", "percentile"):
        raise UsageError(
            f"intervals of attacks are percentile intervals; found {design.interval!r}", code="interval-of-attacks"
        )
    if isinstance(design.gap, Gap):
        raise UsageError(
            f"figures of attacks have no gap; leave --gap {design.gap} out, or write --by {design.gap.column}",
            code="gap-of-attacks",
        )
    if design.stratify is not None:
        raise UsageError(
            "records of attacks have several labels and no strata; leave --stratify out", code="stratify-of-attacks"
        )


class _Row(NamedTuple):
    """An estimate, and the figure that it was made of."""

    estimate: Estimate
    figure: Figure


def _row(name: str, figure: Figure, best: str, common: dict[str, Any]) -> _Row:
    return _Row(Estimate(name, **figure.facts, best=best, **common), figure)


def _grouped(campaign: Campaign, draws: Draws, grouping: tuple[str, ...]) -> Iterator[Estimate]:
    """The figures of every group of every cell, each cell's with their mean and their worst."""
    masks = {} if grouping == ("target",) else masks_of(campaign, grouping)
    for cell in (campaign.clean, *campaign.cells):
        if grouping == ("target",):
            rows = [r for at in range(len(campaign.classes)) for r in _class_rows(campaign, cell, draws, at)]
        else:
            named = {value: dict(zip(grouping, value, strict=True)) for value in masks}
            rows = [r for value, mask in masks.items() for r in _rows(campaign, cell, draws, mask, named[value])]
        yield from (r.estimate for r in rows)
        yield from _averages(rows, draws, grouping)


def masks_of(campaign: Campaign, grouping: tuple[str, ...]) -> dict[tuple[str, ...], Mask]:
    """The records of each group, by the values that it has in some columns."""
    values = _values(campaign, grouping)
    return {value: np.array([v == value for v in values]) for value in sorted(set(values))}


def _values(campaign: Campaign, grouping: tuple[str, ...]) -> list[tuple[str, ...]]:
    """To which group each record belongs."""
    for name in grouping:
        if name == "target":
            raise UsageError(
                "`--by target` stands alone: its figures are those of one class, over all records", code="bad-grouping"
            )
        if name not in campaign.columns:
            raise UsageError(
                f"there is no column {name!r} to group by; there are {', '.join(['target', *campaign.columns])}",
                code="unknown-column",
            )
    return list(zip(*(campaign.columns[name] for name in grouping), strict=True))


def _averages(rows: Sequence[_Row], draws: Draws, grouping: tuple[str, ...]) -> Iterator[Estimate]:
    """The mean over the groups, and the worst of them, of every figure that judges (norms only describe)."""
    for name in dict.fromkeys(r.estimate.metric for r in rows if r.estimate.metric not in MEANS):
        own = [r for r in rows if r.estimate.metric == name]
        known = [r.estimate for r in own if r.estimate.value is not None]
        first = own[0].estimate
        n, positive = (sum(getattr(r.estimate, field) for r in own) for field in ("n", "n_positive"))
        common: dict[str, Any] = {"run": first.run, "slice": dict.fromkeys(grouping, "*"), "best": first.best}
        mean = draws.mean([r.figure for r in own]).facts
        yield Estimate(name, **mean, n=n, n_positive=positive, average="macro", **common)
        if known:
            pick = max if first.best == "low" else min
            worst = pick(known, key=lambda e: e.value if e.value is not None else math.nan)
            yield replace(worst, average="worst", note=f"worst of {len(known)}")


def _rows(campaign: Campaign, cell: Cell, draws: Draws, mask: Mask, slice_: dict[str, str]) -> Iterator[_Row]:
    """The figures of one cell, over some of the records."""
    common: dict[str, Any] = {
        "n": int(mask.sum()),
        "n_positive": int(campaign.truth[mask].sum()),
        "run": dict(cell.run),
        "slice": slice_,
    }
    for name, terms in shares_of(campaign, cell).items():
        yield _row(name, draws.rate(terms, mask), "low" if name in LOW else "high", common)
    yield _row("macro_auc", _macro_auc(campaign, cell, draws, mask), "high", common)
    if cell is not campaign.clean:
        yield from _numbers(cell, draws, mask, common)


def shares_of(campaign: Campaign, cell: Cell) -> dict[str, Terms]:
    """Every share of records that a cell tells."""
    truth, before, after = campaign.truth, campaign.clean.bits, cell.bits
    exact = figures.exact_match(truth, after)
    if cell is campaign.clean:
        return {"exact_match": exact}
    return {
        "changed": figures.changed(before, after),
        "changed_correct": figures.changed_correct(truth, before, after),
        "exact_match": exact,
        "robust_accuracy": figures.robust_accuracy(truth, before, after),
        **_aimed(campaign, cell),
    }


def _aimed(campaign: Campaign, cell: Cell) -> dict[str, Terms]:
    """The targeted figures, where the cell aims at a class."""
    mode, _, name = cell.run.get("aim", "any").partition(" ")
    if name not in campaign.classes:
        return {}
    at, before = campaign.classes.index(name), campaign.clean.bits
    return {
        "target_success": figures.target_success(before, cell.bits, at, mode),
        "target_eligible": figures.target_eligible(before, cell.bits, at, mode),
        "target_base": figures.target_base(before, at, mode),
    }


def _numbers(cell: Cell, draws: Draws, mask: Mask, common: dict[str, Any]) -> Iterator[_Row]:
    """Means of norms, signal-to-noise and smoothness; the median of minimal strengths."""
    for name, (column, factor) in MEANS.items():
        values = factor * cell.numbers.get(column, np.zeros(0))
        known = mask & np.isfinite(values) if len(values) else mask & False
        if known.any():  # it describes the attack; nothing is inferred from it
            mean = Figure({"value": float(values[known].mean()), "of": float(known.sum())})
            yield _row(name, mean, "high" if name == "snr_db" else "low", common)
    least = cell.numbers.get(LEAST)
    if least is not None and not np.isnan(least[mask]).any():
        yield _row(f"median_{LEAST}", draws.median(least, mask), "high", common)


def _macro_auc(campaign: Campaign, cell: Cell, draws: Draws, mask: Mask) -> Figure:
    """The mean over the classes whose area is defined, and the mean of their replicates."""
    both = [k for k in range(len(campaign.classes)) if 0 < campaign.truth[mask, k].sum() < mask.sum()]
    if not both:
        return Figure({"value": None, "note": "undefined: every class has one label only"})
    truth, score = campaign.truth[mask], cell.score[mask]
    value = float(np.mean([roc_auc(truth[:, k], score[:, k]) for k in both]))
    absent = [name for k, name in enumerate(campaign.classes) if k not in both]

    def replicates() -> Floats:
        each = [figures.auc_replicates(truth[:, k], score[:, k], draws.weights[:, mask]) for k in both]
        return np.asarray(np.mean(each, axis=0))

    found = draws.figure(value, replicates, float(mask.sum()))
    note = {"note": f"over {len(both)} classes, without {', '.join(absent)}"} if absent else {}
    return Figure(found.facts | note, found.drawn)


def _class_rows(campaign: Campaign, cell: Cell, draws: Draws, at: int) -> Iterator[_Row]:
    """The figures of one class of one cell."""
    before, after, everyone = campaign.clean.bits, cell.bits, np.ones(len(campaign.records), dtype=bool)
    truth, slice_ = campaign.truth[:, at], {"target": campaign.classes[at]}
    common: dict[str, Any] = {"n": len(truth), "n_positive": int(truth.sum()), "run": dict(cell.run), "slice": slice_}
    if cell is not campaign.clean:
        for name in ("flipped", "lost", "induced"):
            terms: Terms = getattr(figures, name)(before, after, at)
            yield _row(name, draws.rate(terms, everyone), "low", common)
    is_mixed = 0 < truth.sum() < len(truth)
    value = float(roc_auc(truth, cell.score[:, at])) if is_mixed else math.nan
    drawn = draws.figure(
        value, lambda: figures.auc_replicates(truth, cell.score[:, at], draws.weights), float(len(truth))
    )
    yield _row("roc_auc", drawn, "high", common)
