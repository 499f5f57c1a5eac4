"""Replicates of sums over all trials (Cllr, Brier, AUC) for two systems at once, from the counts of joint categories.

Of the trials of a category the drawn ones are any of them alike, so the sums over a category have a known mean and a known
covariance, between the systems and between the figures too. The mean is exact; the covariance within categories is added
back as Gaussian noise. Trials drawn one by one, among them the most extreme, count exactly. The AUC enters through the
placements of trials (the share of the other class each is rightly ordered against); what that leaves out of its variance
is less than a hundredth in samples of the size for which this is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hitmiss.stats.forms import Form, Summed
from hitmiss.stats.pieces import UNPACK, Draw
from hitmiss.stats.seeds import Random
from hitmiss.stats.windows import Indices, Mask
from hitmiss.tally import Array, Floats

LEAST = 5000
"""Trials of each class from which on sums are drawn by category; below, every trial is drawn."""
EXTREMES = 16
"""Trials at each end of each class and system that are drawn one by one: few extreme terms can make most of a sum."""
_ROWS = 4096


def by_category(positive: Mask, forms: Sequence[Form]) -> list[int]:
    """Which forms are drawn as sums by category."""
    n1 = int(positive.sum())
    large = min(n1, len(positive) - n1) >= LEAST
    return [i for i, form in enumerate(forms) if large and form.is_summed]


def extreme_trials(positive: Mask, scores: Sequence[Floats], forms: Sequence[Summed]) -> Indices:
    """The trials at the ends of each class, and all with an infinite term."""
    found = []
    for score in scores:
        for members in (np.flatnonzero(positive), np.flatnonzero(~positive)):
            order = np.argpartition(score[members], [EXTREMES, len(members) - EXTREMES])
            found += [members[order[:EXTREMES]], members[order[-EXTREMES:]]]
        found += [np.flatnonzero(~np.isfinite(f.terms(positive, score))) for f in forms]
    return np.unique(np.concatenate(found))


@dataclass(frozen=True, eq=False)
class OfClass:
    """The terms of one class: those of trials drawn one by one, mean and covariance of each category of the others.

    One row a (system, form); infinite terms are 0 in `drawn` and marked in `infinite`.
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
        """Gather the terms of trials `drawn` one by one and summarise those of the `members` of categories."""
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
        """Replicates of the sums, (system, form) × replicate."""
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
        spread = np.where(spread > 1e-12 * spread[:, -1:], spread, 0.0)  # rounding: the two systems may be one
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
        """Terms of both systems; `drawn` lists positives first, `category` is −1 for them."""
        terms = [form.terms(positive, score) for score in scores for form in forms]
        first = int(positive[drawn].sum())
        classes = []
        for mask, rows in ((positive, slice(0, first)), (~positive, slice(first, len(drawn)))):
            members = np.flatnonzero(mask & (category >= 0))
            classes.append(OfClass.of(terms, rows, drawn[rows], members, category[members], size))
        areas = [float(t[positive].mean()) for t in terms]  # for placements: the AUC
        return cls(forms, classes, areas)

    def figures(self, draw: Draw, rng: Random) -> Iterator[tuple[int, int, Floats]]:
        """For each system and form its place and its replicates."""
        sum1, sum0 = (c.sums(draw, which, rng) for which, c in enumerate(self.classes))
        for k in range(2 * len(self.forms)):
            system, place = divmod(k, len(self.forms))
            form = self.forms[place]
            yield system, place, form.of_sums(sum1[k], draw.sizes[0], sum0[k], draw.sizes[1], self.areas[k])
