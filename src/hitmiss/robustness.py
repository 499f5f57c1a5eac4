"""Trials of attacks to Results: what each attack at each strength changes, with intervals over records or patients.

The trials have run columns `attack` and `strength` (and `aim`, `place` where attacks have those), the untouched records under
attack `clean`; `noise ~ pgd` is the control of `pgd`: random signs of the same norm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.campaign import Campaign, Cell
from hitmiss.errors import UsageError
from hitmiss.grouping import parse_by
from hitmiss.metrics import robustness as figures
from hitmiss.metrics.ranking import roc_auc
from hitmiss.metrics.robustness import Floats, Terms
from hitmiss.results import Estimate, Results
from hitmiss.robustness_health import health
from hitmiss.stats.binomial import wilson
from hitmiss.stats.intervals import percentile
from hitmiss.stats.quantiles import quantile_interval
from hitmiss.stats.seeds import generator
from hitmiss.trials import Trials

MEANS: Final = {
    "l2_mv": ("delta_l2", 1.0),
    "linf_uv": ("delta_linf", 1e3),
    "snr_db": ("snr_db", 1.0),
    "smoothness_uv2": ("smoothness", 1e6),
}
"""Means over the records: the name, the column, and what it is multiplied by (columns are in mV)."""
LEAST: Final = "minimal_strength"
LOW: Final = ("changed", "changed_correct", "target_success", "target_eligible", "flipped", "lost", "induced")


@dataclass(frozen=True, eq=False)
class _Draws:
    """Weights a replicate and record, and how an interval is made."""

    weights: Floats
    codes: NDArray[np.int64]
    unit: str
    is_independent: bool
    level: float
    text: str

    @classmethod
    def of(cls, campaign: Campaign, bootstrap: int, unit: str | None, seed: int, level: float) -> _Draws:
        if bootstrap < 0 or bootstrap == 1:
            raise UsageError(f"an interval needs at least 2 replicates (0 for none); found {bootstrap}")
        name, codes = campaign.unit_codes(unit)
        n = int(codes.max()) + 1
        drawn = generator(seed, "attacks").multinomial(n, np.full(n, 1 / n), size=bootstrap)
        text = f"bootstrap {bootstrap},unit={name},percentile,{level:g},seed={seed}"
        return cls(drawn[:, codes].astype(np.float64), codes, name, n == len(codes), level, text)

    def rate(self, terms: Terms, mask: NDArray[np.bool_]) -> dict[str, Any]:
        """The value and the interval of a share of some of the records."""
        kept = terms.where(mask)
        rate = kept.rate
        if math.isnan(rate):
            return {"value": None, "note": "undefined: no record counts here"}
        found: dict[str, Any] = {"value": float(rate), "of": rate.of}
        if rate in (0.0, 1.0) and not self.is_independent:  # every replicate would say the same, which is no interval
            n = len(np.unique(self.codes[kept.of > 0]))
            low, high = wilson(float(rate) * n, n, self.level)
            return found | {"low": low, "high": high, "method": f"wilson over {n} of {self.unit}"}
        if len(self.weights) and not self.is_independent:
            return found | self._ends(kept.replicates(self.weights))
        if self.is_independent:
            low, high = wilson(rate.hits, rate.of, self.level)
            return found | {"low": low, "high": high, "method": "wilson"}
        return found | {"note": f"no interval: a {self.unit} has several records; draw them with --bootstrap 1000"}

    def figure(self, value: float, replicates: Callable[[], Floats], of: float) -> dict[str, Any]:
        """A figure that only replicates give an interval."""
        if math.isnan(value):
            return {"value": None, "note": "undefined: one class only, or nothing to average"}
        ends = self._ends(replicates()) if len(self.weights) and math.isfinite(value) else {}
        return {"value": value, "of": of} | ends

    def median(self, values: Floats, mask: NDArray[np.bool_]) -> dict[str, Any]:
        """The (lower) median of some of the records; infinite values are values."""
        order = np.flatnonzero(mask)[np.argsort(values[mask], kind="stable")]
        ordered = values[order]
        never = f"{int(np.isinf(ordered).sum())} of {len(ordered)} records never flip"
        found: dict[str, Any] = {
            "value": float(ordered[(len(ordered) - 1) // 2]),
            "of": float(len(ordered)),
            "note": never,
        }
        if self.is_independent:
            low, high = quantile_interval(ordered.tolist(), 0.5, self.level)
            return found if math.isnan(low) else found | {"low": low, "high": high, "method": "order statistics"}
        if not len(self.weights):
            return found
        below = np.cumsum(self.weights[:, order], axis=1)
        return found | self._ends(ordered[np.argmax(below >= below[:, -1:] / 2, axis=1)])

    def _ends(self, replicates: Floats) -> dict[str, Any]:
        low, high = percentile(replicates, self.level)
        return {} if math.isnan(low) else {"low": low, "high": high, "method": self.text}


def measure_attacks(
    trials: Trials,
    *,
    by: Sequence[str | Sequence[str]] | str = (),
    bootstrap: int = 0,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    interval: str = "percentile",
    **_others: Any,
) -> Results:
    """Every figure of every attack; `by="target"` per class, `by="sex"` per group of records.

    Shares of independent records get Wilson's interval; where a patient has several records, and for areas and means, the
    interval comes from drawing patients (`bootstrap`). `unit` is the column drawn as a whole, by default `patient`, else the record.
    """
    if interval not in ("auto", "percentile"):
        raise UsageError(f"intervals of attacks are percentile intervals; found {interval!r}")
    campaign = Campaign.of(trials)
    wanted = unit if unit is None or isinstance(unit, str) else ",".join(unit)
    draws = _Draws.of(campaign, bootstrap, wanted, seed, level)
    everyone = np.ones(len(campaign.records), dtype=bool)
    rows = [e for cell in (campaign.clean, *campaign.cells) for e in _estimates(campaign, cell, draws, everyone, {})]
    for grouping in parse_by(by):
        rows += list(_grouped(campaign, draws, grouping))
    several = (
        []
        if bootstrap or draws.is_independent
        else [f"no intervals: a {draws.unit} has several records, which are no independent draws; add --bootstrap 1000"]
    )
    warnings = (*trials.header.notes, *several, *health(campaign))
    signature = f"ecg-attacks|records={len(campaign.records)}|classes={','.join(campaign.classes)}|unit={draws.unit}|{draws.text if bootstrap else 'no bootstrap'}|data={trials.digest}"
    return Results(tuple(rows), signature, tuple(dict.fromkeys(warnings)), "ecg-attacks")


def _grouped(campaign: Campaign, draws: _Draws, grouping: tuple[str, ...]) -> Iterator[Estimate]:
    if grouping == ("target",):
        for cell in (campaign.clean, *campaign.cells):
            for at, name in enumerate(campaign.classes):
                yield from _class_estimates(campaign, cell, draws, at, {"target": name})
        return
    for name in grouping:
        if name not in campaign.columns:
            raise UsageError(
                f"there is no column {name!r} to group by; there are {', '.join(['target', *campaign.columns])}"
            )
    values = list(zip(*(campaign.columns[name] for name in grouping), strict=True))
    for value in sorted(set(values)):
        mask = np.array([v == value for v in values])
        for cell in (campaign.clean, *campaign.cells):
            yield from _estimates(campaign, cell, draws, mask, dict(zip(grouping, value, strict=True)))


def _estimates(
    campaign: Campaign, cell: Cell, draws: _Draws, mask: NDArray[np.bool_], slice_: dict[str, str]
) -> Iterator[Estimate]:
    """The figures of one cell, over some of the records."""
    truth, before, after = campaign.truth, campaign.clean.bits, cell.bits
    common: dict[str, Any] = {
        "n": int(mask.sum()),
        "n_positive": int(truth[mask].sum()),
        "run": dict(cell.run),
        "slice": slice_,
    }
    shares = {"exact_match": figures.exact_match(truth, after)}
    if cell is not campaign.clean:
        shares = {
            "changed": figures.changed(before, after),
            "changed_correct": figures.changed_correct(truth, before, after),
            **shares,
            "robust_accuracy": figures.robust_accuracy(truth, before, after),
            **_aimed(campaign, cell),
        }
    for name, terms in shares.items():
        yield Estimate(name, **draws.rate(terms, mask), best="low" if name in LOW else "high", **common)
    yield Estimate("macro_auc", **_macro_auc(campaign, cell, draws, mask), best="high", **common)
    if cell is not campaign.clean:
        yield from _numbers(cell, draws, mask, common)


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


def _numbers(cell: Cell, draws: _Draws, mask: NDArray[np.bool_], common: dict[str, Any]) -> Iterator[Estimate]:
    """Means of norms, signal-to-noise and smoothness; the median of minimal strengths."""
    for name, (column, factor) in MEANS.items():
        values = factor * cell.numbers.get(column, np.zeros(0))
        known = mask & np.isfinite(values) if len(values) else mask & False
        if known.any():
            mean, of = (
                float(values[known].mean()),
                float(known.sum()),
            )  # it describes the attack; nothing is inferred from it
            yield Estimate(name, mean, of=of, best="high" if name == "snr_db" else "low", **common)
    least = cell.numbers.get(LEAST)
    if least is not None and not np.isnan(least[mask]).any():
        yield Estimate(f"median_{LEAST}", **draws.median(least, mask), best="high", **common)


def _macro_auc(campaign: Campaign, cell: Cell, draws: _Draws, mask: NDArray[np.bool_]) -> dict[str, Any]:
    """The mean over the classes whose area is defined, and the mean of their replicates."""
    both = [k for k in range(len(campaign.classes)) if 0 < campaign.truth[mask, k].sum() < mask.sum()]
    if not both:
        return {"value": None, "note": "undefined: every class has one label only"}
    truth, score = campaign.truth[mask], cell.score[mask]
    value = float(np.mean([roc_auc(truth[:, k], score[:, k]) for k in both]))
    absent = [name for k, name in enumerate(campaign.classes) if k not in both]

    def replicates() -> Floats:
        each = [figures.auc_replicates(truth[:, k], score[:, k], draws.weights[:, mask]) for k in both]
        return np.asarray(np.mean(each, axis=0))

    found = draws.figure(value, replicates, float(mask.sum()))
    return found | ({"note": f"over {len(both)} classes, without {', '.join(absent)}"} if absent else {})


def _class_estimates(
    campaign: Campaign, cell: Cell, draws: _Draws, at: int, slice_: dict[str, str]
) -> Iterator[Estimate]:
    """The figures of one class of one cell."""
    before, after, everyone = campaign.clean.bits, cell.bits, np.ones(len(campaign.records), dtype=bool)
    truth = campaign.truth[:, at]
    common: dict[str, Any] = {"n": len(truth), "n_positive": int(truth.sum()), "run": dict(cell.run), "slice": slice_}
    if cell is not campaign.clean:
        for name in ("flipped", "lost", "induced"):
            terms: Terms = getattr(figures, name)(before, after, at)
            yield Estimate(name, **draws.rate(terms, everyone), best="low", **common)
    is_mixed = 0 < truth.sum() < len(truth)
    value = float(roc_auc(truth, cell.score[:, at])) if is_mixed else math.nan
    drawn = draws.figure(
        value, lambda: figures.auc_replicates(truth, cell.score[:, at], draws.weights), float(len(truth))
    )
    yield Estimate("roc_auc", **drawn, best="high", **common)
