"""Replicates of sums over all trials (Cllr, Brier, AUC) for two systems at once, from the counts of joint categories.

Every trial of a category is equally likely to be drawn, so the sums over a category have a known mean and a known
covariance, also between the systems and between the numbers. The mean is used exactly; the covariance within
categories is added as Gaussian noise. Trials drawn one by one, among them the most extreme, count exactly. The AUC is
a sum of placements (for each trial, the share of the other class that it is ordered correctly against); the part of
its variance that this leaves out is less than a hundredth in samples of the size for which this method is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hitmiss.core.sorting import Array, Floats
from hitmiss.stats.curve import UNPACK, Draw
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.sums import Summed
from hitmiss.stats.random import Random
from hitmiss.stats.windows import Indices, Mask

LEAST = 5000
"""With at least this many trials in each class, sums are drawn by category; with fewer, every trial is drawn."""
EXTREMES = 16
"""How many trials at each end of each class and system are drawn one by one: a few extreme terms can dominate a sum."""
_ROWS = 4096


def by_category(positive: Mask, forms: Sequence[Form]) -> list[int]:
    """Return which forms are drawn as sums by category."""
    n1 = int(positive.sum())
    large = min(n1, len(positive) - n1) >= LEAST
    return [i for i, form in enumerate(forms) if large and form.is_summed]


def extreme_trials(positive: Mask, scores: Sequence[Floats], forms: Sequence[Summed]) -> Indices:
    """Return the trials at the ends of each class, and all trials with an infinite term."""
    found = []
    for score in scores:
        for members in (np.flatnonzero(positive), np.flatnonzero(~positive)):
            order = np.argpartition(score[members], [EXTREMES, len(members) - EXTREMES])
            found += [members[order[:EXTREMES]], members[order[-EXTREMES:]]]
        found += [np.flatnonzero(~np.isfinite(f.terms(positive, score))) for f in forms]
    return np.unique(np.concatenate(found))


@dataclass(frozen=True, eq=False)
class OfClass:
    """The terms of one class: those of trials drawn one by one, and mean and covariance of each category of the others.

    There is one row per system and form; infinite terms are 0 in `drawn` and marked in `infinite`.
    """

    rows: slice
    drawn: Floats
    infinite: Mask
    mean: Floats
    covariance: Floats

    @classmethod
    def of(
        cls, terms: Sequence[Floats], rows: slice, drawn: Indices, members: Indices, category: Array, size: int
    ) -> OfClass:
        """Gather the terms of trials `drawn` one by one, and summarise those of the `members` of categories."""
        single = np.array([t[drawn] for t in terms])
        count = np.maximum(np.bincount(category, minlength=size), 1)
        others = [t[members] for t in terms]
        mean = np.array([np.bincount(category, weights=t, minlength=size) / count for t in others])
        covariance = np.zeros((size, len(terms), len(terms)))
        rest = [t - m[category] for t, m in zip(others, mean, strict=True)]
        for i, one in enumerate(rest):
            for j, other in enumerate(rest[: i + 1]):
                both = np.bincount(category, weights=one * other, minlength=size) / count
                covariance[:, i, j] = covariance[:, j, i] = both
        infinite = ~np.isfinite(single)
        return cls(rows, np.where(infinite, 0.0, single), infinite, mean, covariance)

    def sums(self, draw: Draw, which: int, rng: Random) -> Floats:
        """Return replicates of the sums, (system, form) × replicate."""
        others = draw.others[which].astype(np.float64)
        total = np.einsum("mk,rk->mr", self.mean, others)
        for start in range(self.rows.start, self.rows.stop, _ROWS):
            part = slice(start, min(start + _ROWS, self.rows.stop))
            counts = UNPACK[which](draw.packed[part]).astype(np.float64)
            here = slice(part.start - self.rows.start, part.stop - self.rows.start)
            total += np.einsum("mt,tr->mr", self.drawn[:, here], counts)
            for m, t in np.argwhere(self.infinite[:, here]):
                total[m, counts[t] > 0] = np.inf
        spread, axes = np.linalg.eigh(np.einsum("rk,kij->rij", others, self.covariance))
        spread = np.where(spread > 1e-12 * spread[:, -1:], spread, 0.0)  # rounding, as when both systems are the same
        noise = rng.standard_normal(spread.shape) * np.sqrt(spread)
        return np.asarray(total + np.einsum("rij,rj->ir", axes, noise))


@dataclass(frozen=True, eq=False)
class JointSums:
    """The sums of some forms for both systems."""

    forms: list[Summed]
    classes: list[OfClass]
    areas: list[float]

    @classmethod
    def of(
        cls, positive: Mask, scores: Sequence[Floats], forms: list[Summed], drawn: Indices, category: Array, size: int
    ) -> JointSums:
        """Compute the terms of both systems; `drawn` lists positives first, and `category` is −1 for these trials."""
        terms = [form.terms(positive, score) for score in scores for form in forms]
        first = int(positive[drawn].sum())
        classes = []
        for mask, rows in ((positive, slice(0, first)), (~positive, slice(first, len(drawn)))):
            members = np.flatnonzero(mask & (category >= 0))
            classes.append(OfClass.of(terms, rows, drawn[rows], members, category[members], size))
        areas = [float(t[positive].mean()) for t in terms]  # for placements: the AUC
        return cls(forms, classes, areas)

    def figures(self, draw: Draw, rng: Random) -> Iterator[tuple[int, int, Floats]]:
        """Yield the index and the replicates of each system and form."""
        sum1, sum0 = (c.sums(draw, which, rng) for which, c in enumerate(self.classes))
        sizes = [size.astype(np.float64) for size in draw.sizes]
        for k in range(2 * len(self.forms)):
            system, place = divmod(k, len(self.forms))
            form = self.forms[place]
            yield system, place, np.asarray(form.of_sums(sum1[k], sizes[0], sum0[k], sizes[1], self.areas[k]))
