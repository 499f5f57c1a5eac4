"""What a manipulation does to a detector at the threshold that was frozen on clean data.

A detector in use has one threshold. The EER of manipulated data moves it along and hides the harm; the drift table leaves
it where the clean data put it and shows how FAR and FRR move, and by how much each clip's score moves. Clips are paired
with their clean selves, so the drift has an interval of its own. Decisions are `score > threshold`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from hitmiss.columns import shown
from hitmiss.design import Design, Drift
from hitmiss.errors import DataError, UnknownName, UsageError
from hitmiss.measuring.signature import USUAL_LEVEL, signed
from hitmiss.metrics.detection import eer, eer_point
from hitmiss.results import Estimate, Results
from hitmiss.stats.intervals import percentile
from hitmiss.stats.seeds import generator
from hitmiss.tally import Floats, Tally
from hitmiss.trials import Threshold, Trials

CLEAN_NAMES: Final = ("clean", "NONE", "-")
CHANGED: Final = "fakes changed, reals as they were: an EER of this mix is no error rate of a detector, read FAR"
BETWEEN: Final = " × "
Mask = NDArray[np.bool_]


def equal_error(label: ArrayLike, score: ArrayLike) -> tuple[float, float]:
    """The EER and its threshold for decisions `score > threshold`: the highest score that is rejected there.

    Where nothing is rejected it lies a little below the lowest score. FAR and FRR at it average to the EER, ties or not.

    >>> equal_error([1, 1, 0, 0], [0.9, 0.6, 0.4, 0.1])
    (0.0, 0.4)
    """
    tally = Tally.of(label, score)
    if not tally.has_both_classes:
        raise DataError("an equal error rate needs scores of both classes", code="one-class")
    at = eer_point(tally)
    lowest = float(tally.score[0])
    below = min(lowest - 0.001, float(np.nextafter(lowest, -np.inf)))
    return eer(label, score), float(tally.score[at - 1]) if at else below


def drift(
    trials: Trials,
    by: str = "manipulation",
    *,
    clean: str | None = None,
    pair_by: str | None = None,
    threshold: float | None = None,
    bootstrap: int = 1000,
    unit: str | None = None,
    seed: int = 0,
    level: float = 0.95,
) -> Results:
    """FAR, FRR, their drift from clean, and the shift of scores, for each value of a column (or of several, `codec,codec_q`), at one threshold.

    `clean` is the value of the untouched clips (by default one of clean, NONE, -), `pair_by` the column that says which
    clips belong together (by default `source`, else `codec_seed`). `threshold` is one that was chosen elsewhere; without it the clean
    clips' own EER threshold is frozen. Intervals are drawn over `unit` (by default the source clips).
    """
    asked = Design.of(by=by, unit=unit, bootstrap=bootstrap, seed=seed, level=level, threshold=threshold)
    return drift_of(trials, replace(asked, gap="none", drift=Drift(clean, pair_by)))


def drift_of(trials: Trials, asked: Design) -> Results:
    """What a design asks of a drift table."""
    how, reading = asked.drift or Drift(), trials.header.reading
    clean, pair_by, unit = how.clean, how.pair_by, ",".join(asked.unit) or None
    bootstrap, seed, level, threshold = asked.bootstrap, asked.seed, asked.level, asked.threshold
    trials, by = _joined(trials, ",".join(asked.by[0] if asked.by else ("manipulation",)))
    base = _base(trials, by, clean)
    linked = pair_by or next((c for c in ("source", "codec_seed") if c in trials.frame.columns), "item")
    start = _scores_by(trials.where(**{by: base}), linked, base)
    frozen = _frozen(trials.where(**{by: base}), threshold)
    others = [v for v in trials.column(by).unique(maintain_order=True).to_list() if v != base]
    units = _units(start, unit, linked)
    weights = _weights(int(units.max()) + 1, bootstrap, seed)
    rows: list[Estimate] = []
    alone: list[str] = []
    for value in (base, *others):
        now = _scores_by(trials.where(**{by: value}), linked, value)
        here, there, missing = _partners(start, now, linked, value)
        alone += [missing] if missing else []
        changed = Trials(now.frame[there], now.header)
        cell = _Cell(start.label[here] == 1, start.score[here], changed.score, frozen.value, units[here], weights)
        rows += cell.estimates({shown(by): value}, level, unit or linked, is_clean=value == base)
    notes = [f"decisions: score > {frozen.value:.6g}, a threshold {frozen.origin}", *_fakes_only(rows), *alone]
    made = Results(tuple(rows), warnings=tuple(notes), reading=reading, design=asked, content=trials.content)
    over = f"{bootstrap},unit={unit or linked},percentile,{level:g},seed={seed}" if bootstrap else "none"
    named = ",".join("*".join(grouping) for grouping in asked.by)
    signature = signed(
        made,
        trials.retitle(threshold=frozen),
        drift=f"clean={base},linked={linked}",
        by=named,
        boot=over,
        level="none" if bootstrap or level == USUAL_LEVEL else f"{level:g}",
    )
    return replace(made, signature=signature)


def _joined(trials: Trials, by: str) -> tuple[Trials, str]:
    """Several columns, `codec,codec_q`, as one: codec × codec_q."""
    names = [name.strip() for name in by.split(",")]
    if len(names) == 1:
        return trials, trials.own(by)
    parts = [trials.column(trials.own(name)).to_list() for name in names]
    together = [values[0] if len(set(values)) == 1 else BETWEEN.join(values) for values in zip(*parts, strict=True)]
    name = BETWEEN.join(names)
    return Trials(trials.frame.with_columns(pl.Series(name, together)), trials.header), name


def _base(trials: Trials, by: str, clean: str | None) -> str:
    column = trials.column(by)
    if column.dtype != pl.String:
        raise UsageError(f"{by} is no column of texts: name the one that says how items were changed", code="not-text")
    values = column.unique().to_list()
    if clean is not None:
        if clean not in values:
            raise UnknownName(f"value of {by}", clean, values)
        return clean
    found = [name for name in CLEAN_NAMES if name in values]
    if not found:
        raise UsageError(
            f"which {by} is the clean one? Say clean=…; there are {', '.join(sorted(values))}", code="no-clean"
        )
    return found[0]


def _frozen(clean: Trials, threshold: float | None) -> Threshold:
    """The given threshold, or the EER threshold of the clean clips as `compute_eer` gives it: one rule everywhere."""
    if threshold is not None:
        return Threshold(threshold, "that was given")
    last = equal_error(clean.label, clean.score)[1]
    return Threshold(last, "at the EER of these clean clips, so their own row is optimistic")


def _scores_by(trials: Trials, linked: str, value: str) -> Trials:
    """The trials in the order of what links them; each clip must be there once."""
    ordered = Trials(trials.frame.sort(linked), trials.header)
    if ordered.frame[linked].n_unique() != len(ordered):
        raise DataError(
            f"{value}: a {linked} is there more than once; name every column that tells the copies apart, as codec,codec_q",
            code="repeated-clip",
        )
    return ordered


def _partners(
    start: Trials, now: Trials, linked: str, value: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], str | None]:
    """Where the clips that have a score clean and changed are among either, and how many have one alone."""
    before, after = start.frame[linked].to_numpy(), now.frame[linked].to_numpy()
    common, here, there = np.intersect1d(before, after, assume_unique=True, return_indices=True)
    if not len(common):
        raise DataError(
            f"{value}: none of its {len(after):,} clips has a clean partner by {linked}; say which column links a clip's "
            f"copies (--pair-by)",
            code="no-partners",
        )
    wrong = start.label[here] != now.label[there]
    if wrong.any():
        raise DataError(
            f"{value}: {int(wrong.sum()):,} clips have another label than their clean partners, the first is "
            f"{str(common[wrong][0])!r}",
            code="partners-disagree",
        )
    lone = (len(before) - len(common), len(after) - len(common))
    if not any(lone):
        return here, there, None
    said = f"{value}: {lone[0]:,} of {len(before):,} clean clips have no score here"
    said += f" and {lone[1]:,} clips here have no clean score" if lone[1] else ""
    return here, there, f"{said}; the row is over the {len(common):,} that have both"


def _units(start: Trials, unit: str | None, linked: str) -> NDArray[np.int64]:
    values = start.column(start.own(unit) if unit else linked)
    return np.asarray(values.rank("dense").to_numpy(), dtype=np.int64) - 1


def _weights(n: int, bootstrap: int, seed: int) -> Floats:
    if bootstrap < 2:
        return np.zeros((0, n))
    return generator(seed, "drift").multinomial(n, np.full(n, 1 / n), size=bootstrap).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Cell:
    """One condition beside the clean one, clip by clip."""

    real: Mask
    before: Floats
    after: Floats
    threshold: float
    unit: NDArray[np.int64]
    weights: Floats

    @cached_property
    def taken(self) -> Floats:
        """Which changed clips are accepted."""
        return np.asarray(self.after > self.threshold, dtype=np.float64)

    @cached_property
    def taken_before(self) -> Floats:
        return np.asarray(self.before > self.threshold, dtype=np.float64)

    def estimates(self, cell: dict[str, str], level: float, unit: str, *, is_clean: bool) -> list[Estimate]:
        """FAR, FRR, drifts and shifts of this condition."""
        fake = ~self.real
        moved = self.taken - self.taken_before
        with np.errstate(invalid="ignore"):
            shift = np.where(self.after == self.before, 0.0, self.after - self.before)
        asked = [("far", self.taken, fake, "low"), ("frr", 1 - self.taken, self.real, "low")]
        if not is_clean:
            asked += [("far_drift", moved, fake, "low"), ("frr_drift", -moved, self.real, "low")]
            asked += [("shift_fake", shift, fake, "low"), ("shift_real", shift, self.real, "high")]
        method = f"bootstrap over {unit}" if len(self.weights) else None
        rows = [self._mean(name, values, mask, cell, level, method, best) for name, values, mask, best in asked]
        note = CHANGED if not is_clean and self._only_fakes_changed(shift) else None
        value = eer(self.real, self.after) if 0 < self.real.sum() < len(self.real) else None
        return [*rows, Estimate("eer", value, n=len(self.real), n_positive=int(self.real.sum()), slice=cell, note=note)]

    def _only_fakes_changed(self, shift: Floats) -> bool:
        return bool((shift[self.real] == 0).all() and (shift[~self.real] != 0).any())

    def _mean(
        self, name: str, values: Floats, mask: Mask, cell: dict[str, str], level: float, method: str | None, best: str
    ) -> Estimate:
        """The mean over a class, with the interval from drawing units."""
        size = self.weights.shape[1]
        n = int(mask.sum())
        common: dict[str, Any] = {"n": n, "n_positive": int((mask & self.real).sum()), "slice": cell, "best": best}
        if not n:
            return Estimate(name, None, note="undefined: no such clips here", **common)
        value = float(values[mask].mean())
        if method is None or not np.isfinite(value):
            return Estimate(name, value, **common)
        total = np.bincount(self.unit[mask], weights=values[mask], minlength=size)
        count = np.bincount(self.unit[mask], minlength=size)
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = percentile((self.weights @ total) / (self.weights @ count), level)
        return Estimate(name, value, low, high, method=method, **common)


def _fakes_only(rows: Sequence[Estimate]) -> list[str]:
    marked = sum(e.note == CHANGED for e in rows)
    return [f"† {marked} of {sum(e.metric == 'eer' for e in rows) - 1} conditions: {CHANGED}"] if marked else []
