"""Two models under the same attacks: what each attack does to both, paired by record, with the test that the pairs allow.

A share of the same records in both runs (changed, robust accuracy, exact match) is tested by McNemar's exact test where records
are independent, and by exchanging whole patients between the runs (a permutation test) where a patient has several. Figures
whose records differ between the models (changed among those that each had right) and areas get the test of the paired
bootstrap over patients. All intervals are of that bootstrap.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from hitmiss._version import __version__
from hitmiss.core.artifacts import SHORT
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.question import Contest, Design, Protocol, parse_by
from hitmiss.core.trials import Trials
from hitmiss.engine.compare import Comparison, Difference, judged, with_sides
from hitmiss.engine.pairing import Breach, breaches, unchecked
from hitmiss.engine.signature import render
from hitmiss.metrics import robustness as figures
from hitmiss.metrics.ranking import roc_auc
from hitmiss.metrics.robustness import Floats, Terms
from hitmiss.robustness.attacks import LOW, masks_of, shares_of
from hitmiss.robustness.campaign import Campaign, Cell
from hitmiss.robustness.draws import Draws, Mask
from hitmiss.stats import tests
from hitmiss.stats.bootstrap import Random, generator
from hitmiss.stats.intervals import enough, percentile
from hitmiss.stats.paired import detectable, p_of_replicates
from hitmiss.stats.tests import adjusted, sign_flip

TESTS: Final = ("auto", "bootstrap", "permutation")
PERMUTATIONS: Final = 10_000
SHOWN: Final = 3
ORDER: Final = (
    "changed", "changed_correct", "robust_accuracy", "exact_match", "macro_auc", "target_success", "target_eligible", "target_base",
    "flipped", "lost", "induced", "roc_auc",
)  # fmt: skip


def compare_attacks(
    a: Trials,
    b: Trials,
    *,
    names: tuple[str, str] = ("A", "B"),
    by: Sequence[str | Sequence[str]] | str = (),
    bootstrap: int = 1000,
    unit: str | None = None,
    seed: int = 0,
    level: float = 0.95,
    correction: str = "auto",
    test: str = "auto",
    allow_missing: bool = False,
    force: bool = False,
    protocol: Protocol | None = None,
) -> Comparison:
    """Every figure of two attack runs on the same records: B − A for each attack and strength that both have.

    p values are adjusted over the attacks and strengths of one figure. `by="sex"`: for each group of records too; `by="target"`:
    for each class. Controls are left out: they are there for the attack of their own run.
    """
    if test not in TESTS:
        raise UsageError(
            f"attack runs are compared with the test auto, bootstrap or permutation; found {test!r}",
            code="unknown-test",
        )
    one, other, warnings = _paired(a, b, names, allow_missing)
    cells = _shared(one, other, names, warnings)
    warnings += _checked(a, b, cells, names, force, any("left out" in w for w in warnings))
    work = _Work(one, other, Draws.of(one, bootstrap, unit, seed, level), test, generator(seed, "exchanged"))
    everyone = np.ones(len(one.records), dtype=bool)
    rows = [row for pair in cells for row in work.rows(*pair, everyone, {})]
    for grouping in parse_by(by):
        if grouping == ("target",):
            rows += [row for k in range(len(one.classes)) for pair in cells for row in work.class_rows(*pair, k)]
            continue
        for value, mask in masks_of(one, grouping).items():
            group = dict(zip(grouping, value, strict=True))
            rows += [row for pair in cells for row in work.rows(*pair, mask, group)]
    rows.sort(key=lambda row: ORDER.index(row.metric))
    correction = "holm" if correction == "auto" else correction
    made = [judged(row, level) for row in _adjusted(rows, correction)]
    found = Comparison(names, tuple(made), (), "", tuple(dict.fromkeys(warnings)), level, correction, "ecg-attacks")
    asked = Design.of(by=by, unit=unit, bootstrap=bootstrap, seed=seed, level=level, protocol=protocol)
    contest = Contest(test=test, correction=correction, allow_missing=allow_missing, force=force)
    found = replace(found, design=with_sides(replace(asked, contest=contest), {names[0]: a, names[1]: b}))
    return replace(found, signature=_signed(found, a, b, work, test, by, force))


def _paired(a: Trials, b: Trials, names: tuple[str, str], allow_missing: bool) -> tuple[Campaign, Campaign, list[str]]:
    """Both runs about the same records, in one order; other labels, classes or (unless it is allowed) records are refused."""
    items = [set(t.frame["item"].to_list()) for t in (a, b)]
    only = [sorted(items[0] - items[1]), sorted(items[1] - items[0])]
    warnings = []
    if any(only):
        said = " and ".join(
            f"{len(own):,} only in {name} ({', '.join(own[:SHOWN])}{', …' * (len(own) > SHOWN)})"
            for name, own in zip(names, only, strict=True) if own
        )  # fmt: skip
        if not allow_missing:
            raise DataError(
                f"the runs are not about the same records: {said}; --allow-missing compares what both have",
                code="missing-records",
            )
        if not items[0] & items[1]:
            raise DataError(f"no record is in both runs: {said}", code="no-pairs")
        warnings.append(f"left out, for want of a partner: {said}")
        common = pl.col("item").is_in(sorted(items[0] & items[1]))
        a, b = a.keep(common), b.keep(common)
    one, other = Campaign.of(a), Campaign.of(b)
    if one.classes != other.classes:
        raise DataError(
            f"the classes differ: {', '.join(one.classes)} and {', '.join(other.classes)}", code="other-classes"
        )
    wrong = (one.truth != other.truth).any(axis=1)
    if wrong.any():
        first = one.records[int(np.argmax(wrong))]
        raise DataError(
            f"{int(wrong.sum())} records have other labels in {names[1]} than in {names[0]}, the first is {first!r}",
            code="label-conflict",
        )
    return one, other, warnings


def _shared(one: Campaign, other: Campaign, names: tuple[str, str], warnings: list[str]) -> list[tuple[Cell, Cell]]:
    """The cells of both, clean first and without controls; what only one run has is said."""
    keys = [{_key(c): c for c in campaign.cells if not c.is_control} for campaign in (one, other)]
    for own, theirs, name in ((keys[0], keys[1], names[0]), (keys[1], keys[0], names[1])):
        alone = [" ".join(v for _, v in key) for key in own if key not in theirs]
        if alone:
            warnings.append(f"only in {name}, so not compared: {'; '.join(alone[:6])}{' …' * (len(alone) > 6)}")
    both = [(cell, keys[1][key]) for key, cell in keys[0].items() if key in keys[1]]
    if not both:
        raise UsageError("the two runs have no attack and strength in common", code="nothing-shared")
    return [(one.clean, other.clean), *both]


def _key(cell: Cell) -> tuple[tuple[str, str], ...]:
    """What a cell is, whether its run has a column of aims and places or not."""
    return tuple((k, v) for k, v in sorted(cell.run.items()) if (k, v) not in (("aim", "any"), ("place", "whole")))


def _checked(
    a: Trials, b: Trials, cells: Sequence[tuple[Cell, Cell]], names: tuple[str, str], force: bool, are_missing: bool
) -> list[str]:
    """What makes the comparison invalid is refused, or printed where it is forced; what cannot be checked is said."""
    told = [t.header.provenance.get("attacks", {}) for t in (a, b)]
    wrong = breaches(a, b, same_items=not are_missing)
    for cell, _ in cells[1:]:
        name = " ".join(v for _, v in _key(cell))
        said = [t.get(name) for t in told]
        if None not in said and said[0] != said[1]:
            wrong.append(
                Breach("different attacks", f"{name} was another attack in {names[1]}", (str(said[0]), str(said[1])))
            )
    if wrong and not force:
        raise DataError(
            f"{names[0]} and {names[1]} cannot be compared: {'; '.join(map(str, wrong[:SHOWN]))}. "
            "--force compares them all the same and says so in the report",
            code="incomparable",
        )
    found = [f"INVALID COMPARISON, forced: {breach}" for breach in wrong] + unchecked(a, b)
    if not all(told):
        found.append("different attacks? Not both runs record the settings of their attacks, so this was not checked")
    seeds = [t.header.provenance.get("seed") for t in (a, b)]
    if None not in seeds and seeds[0] != seeds[1]:
        found.append(f"the runs drew other noise (seeds {seeds[0]} and {seeds[1]}): a part of the difference is chance")
    return found + [f"{name}: {note}" for t, name in ((a, names[0]), (b, names[1])) for note in t.header.notes]


class _Figures(NamedTuple):
    """A figure of both runs: its values, the replicates of their difference, and what each record gains."""

    a: float
    b: float
    deltas: Callable[[], Floats]
    gains: Floats | None
    """hits of B less hits of A, a record; None where the records that count differ."""
    counted: Mask


@dataclass(frozen=True, eq=False)
class _Work:
    """Two campaigns and how their differences are judged."""

    one: Campaign
    other: Campaign
    draws: Draws
    test: str
    rng: Random

    def rows(self, cell: Cell, theirs: Cell, mask: Mask, group: dict[str, str]) -> Iterator[Difference]:
        """The differences of one cell over some of the records."""
        where = {**dict(cell.run), **group}
        n, labels = int(mask.sum()), int(self.one.truth[mask].sum())
        both = shares_of(self.one, cell), shares_of(self.other, theirs)
        for name in both[0]:
            found = self._share(both[0][name].where(mask), both[1][name].where(mask))
            yield self._row(name, found, "low" if name in LOW else "high", where, n, labels)
        yield self._row("macro_auc", self._area(cell, theirs, mask), "high", where, n, labels)

    def class_rows(self, cell: Cell, theirs: Cell, k: int) -> Iterator[Difference]:
        """The differences of one class of one cell."""
        where, n = {**dict(cell.run), "target": self.one.classes[k]}, len(self.one.records)
        labels = int(self.one.truth[:, k].sum())
        for name in () if cell is self.one.clean else ("flipped", "lost", "induced"):
            sides = (self.one, cell), (self.other, theirs)
            both = [getattr(figures, name)(campaign.clean.bits, own.bits, k) for campaign, own in sides]
            yield self._row(name, self._share(*both), "low", where, n, labels)
        everyone = np.ones(n, dtype=bool)
        yield self._row("roc_auc", self._area(cell, theirs, everyone, (k,)), "high", where, n, labels)

    def _share(self, a: Terms, b: Terms) -> _Figures:
        shared = np.array_equal(a.of, b.of)
        return _Figures(
            float(a.rate), float(b.rate), lambda: b.replicates(self.draws.weights) - a.replicates(self.draws.weights),
            b.hits - a.hits if shared else None, (a.of > 0) | (b.of > 0),
        )  # fmt: skip

    def _area(self, cell: Cell, theirs: Cell, mask: Mask, classes: Sequence[int] | None = None) -> _Figures:
        """The mean area over the classes (or some of them) that have both labels here."""
        truth = self.one.truth[mask]
        both = [
            k for k in (range(truth.shape[1]) if classes is None else classes) if 0 < truth[:, k].sum() < len(truth)
        ]
        sides = [side.score[mask] for side in (cell, theirs)]
        value = [float(np.mean([roc_auc(truth[:, k], s[:, k]) for k in both])) if both else math.nan for s in sides]

        def deltas() -> Floats:
            weights = self.draws.weights[:, mask]
            each = [[figures.auc_replicates(truth[:, k], s[:, k], weights) for k in both] for s in sides]
            return np.asarray(np.mean(each[1], axis=0) - np.mean(each[0], axis=0))

        return _Figures(value[0], value[1], deltas, None, mask)

    def _row(self, name: str, found: _Figures, best: str, where: dict[str, str], n: int, labels: int) -> Difference:
        row = Difference(
            name, _known(found.a), _known(found.b), None, n_pairs=n, n_positive=labels, slice=where, best=best
        )
        if math.isnan(found.a) or math.isnan(found.b):
            return replace(row, note="undefined: no record counts here, or every class has one label only")
        row = replace(row, delta=found.b - found.a)
        if found.gains is not None:
            better = found.gains if best == "high" else -found.gains
            wins, losses = int((better > 0).sum()), int((better < 0).sum())
            row = replace(row, wins=wins, losses=losses, ties=int(found.counted.sum()) - wins - losses)
            if not wins and not losses:
                return replace(
                    row, p_value=1.0, test=self._test(found.gains), note="no interval: the answers are alike"
                )
        units = len(np.unique(self.draws.codes[found.counted]))
        few = units < enough(self.draws.level)
        p = self._p(found)
        deltas = found.deltas() if len(self.draws.weights) and not few else None
        if deltas is None:
            note = f"no interval: {units} of {self.draws.unit} alone" if few else None
            return replace(row, p_value=p, test=self._test(found.gains) if p is not None else None, note=note)
        low, high = percentile(deltas, self.draws.level)
        p = _known(p_of_replicates(deltas, units - 1.0)) if p is None else p
        error = float(np.nanstd(deltas, ddof=1))
        row = replace(row, p_value=p, test=self._test(found.gains), mdd=detectable(error, self.draws.level))
        if low == high or math.isnan(low):
            return replace(row, note="no interval: the replicates hardly differ")
        return replace(row, low=low, high=high)

    def _test(self, gains: Floats | None) -> str:
        if gains is None or self.test == "bootstrap":
            return "bootstrap"
        return "mcnemar" if self.draws.is_independent and self.test == "auto" else "permutation"

    def _p(self, found: _Figures) -> float | None:
        """The p value of a test that needs no replicates; None where the bootstrap's is wanted."""
        kind = self._test(found.gains)
        if found.gains is None or kind == "bootstrap":
            return None
        if kind == "mcnemar":
            return tests.exact(int((found.gains < 0).sum()), int((found.gains > 0).sum()))
        by_unit = np.asarray(np.bincount(self.draws.codes, weights=found.gains), dtype=np.float64)
        return sign_flip(by_unit, PERMUTATIONS, self.rng)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _adjusted(rows: Sequence[Difference], correction: str) -> list[Difference]:
    """p values adjusted over the attacks, strengths and groups of one figure; without an attack nothing is one of several."""
    families: dict[tuple[str, ...], list[int]] = {}
    for i, row in enumerate(rows):
        families.setdefault((row.metric, *row.slice), []).append(i)
    new: dict[int, float | None] = {}
    for places in families.values():
        new.update(zip(places, adjusted([rows[i].p_value for i in places], correction), strict=True))
    return [replace(row, p_adjusted=new[i]) for i, row in enumerate(rows)]


def _signed(
    made: Comparison, a: Trials, b: Trials, work: _Work, test: str, by: Sequence[str | Sequence[str]] | str, force: bool
) -> str:
    """One line that pins every choice and the figures."""
    told = "\n".join(repr((d.metric, sorted(d.slice.items()), d.a, d.b, d.low, d.high, d.p_value)) for d in made)
    parts = {
        "hitmiss": __version__, "compare": "attacks", "protocol": "ecg-attacks",
        "by": ",".join("*".join(g) for g in parse_by(by)) or "none", "test": test, "correction": made.correction,
        "boot": work.draws.text.removeprefix("bootstrap "), "forced": "yes" if force else "none", "n": str(len(work.one.records)),
        "a": a.digest, "b": b.digest, "numpy": np.__version__, "out": hashlib.sha256(told.encode()).hexdigest()[:SHORT],
    }  # fmt: skip
    return render(parts)
