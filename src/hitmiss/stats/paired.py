"""Two systems on the same resampled trials: paired replicates, and what a difference shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hitmiss.core import progress
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally
from hitmiss.stats.counts import Counts, uniform_counts
from hitmiss.stats.curve import Axis, Draw
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.sums import Summed
from hitmiss.stats.joint_sums import JointSums, by_category, extreme_trials
from hitmiss.stats.random import Random
from hitmiss.stats.replicates import class_sizes
from hitmiss.stats.windows import Indices, Mask, choose_windows

Pair = tuple[list[Floats], list[Floats]]
NUMBERS_AT_A_TIME = 1 << 22
EVEN_BLOCKS = 24
"""Number of parts that the scores of each system are cut into if sums over all trials are asked for."""
DEAR_CATEGORY = 24
"""A category with fewer trials than this is drawn trial by trial, which is then cheaper than counting it."""


def paired_replicates(
    positive: Mask,
    score_a: Floats,
    score_b: Floats,
    forms: Sequence[Form],
    replicates: int,
    rng: Random,
    by_class: bool = True,
    tallies: tuple[Tally, Tally] | None = None,
) -> Pair:
    """Return replicates of each form for both systems, with the same trials resampled for both.

    Trials are drawn within each class, or from all trials. In the second case class sizes vary between replicates, so
    every number except sums is completed trial by trial. `tallies`: those of the two systems, if they are known.
    """
    if positive.all() or not positive.any():
        nothing = [np.full(replicates, np.nan) for _ in forms]
        return nothing, [v.copy() for v in nothing]
    plan = PairedDrawPlan.of(positive, (score_a, score_b), forms, tallies)
    values = np.full((2, len(forms), replicates), np.nan)
    step = max(8, min(replicates, NUMBERS_AT_A_TIME // max(len(plan.drawn), 1)))
    for start in range(0, replicates, step):
        progress.report("replicates", start, replicates)
        part = values[:, :, start : start + step]
        _fill(part, plan, forms, plan.draw(part.shape[2], rng, by_class), rng)
    if np.array_equal(score_a, score_b):  # equal systems get equal numbers, to the last bit
        values[1] = values[0]
    return list(values[0]), list(values[1])


@dataclass(frozen=True, eq=False)
class Ordered:
    """Trials sorted by one system's score: any counts of trials become a tally without another sort."""

    order: Indices
    positive: Mask
    score: Floats
    ends: Indices

    @classmethod
    def of(cls, positive: Mask, score: Floats) -> Ordered:
        """Sort the trials once."""
        order = np.argsort(score, kind="stable")
        values = score[order]
        ends = np.flatnonzero(np.append(values[1:] != values[:-1], True))
        return cls(order, positive[order], values[ends], ends)

    def tally(self, counts: Array) -> Tally:
        """Return the tally in which trial i counts counts[i] times."""
        held = counts[self.order]
        both, positives = np.cumsum(held)[self.ends], np.cumsum(held * self.positive)[self.ends]
        return Tally(self.score, np.append(0, positives), np.append(0, both - positives))


def _figures(systems: Sequence[Ordered], forms: Sequence[Form], counts: Array) -> list[list[float]]:
    return [[form.value(tally) for form in forms] for tally in (s.tally(counts) for s in systems)]


@dataclass(frozen=True, eq=False)
class PairedDrawPlan:
    """Which trials are drawn one by one, and the categories of the other trials of each class."""

    positive: Mask
    scores: tuple[Floats, Floats]
    axes: list[Axis]
    drawn: Indices
    category: NDArray[np.int32]
    sizes: list[Counts]
    summed: list[int]
    sums: JointSums | None

    @classmethod
    def of(
        cls,
        positive: Mask,
        scores: tuple[Floats, Floats],
        forms: Sequence[Form],
        tallies: tuple[Tally, Tally] | None = None,
    ) -> PairedDrawPlan:
        """Choose the windows of both systems and sort the trials into them."""
        summed = by_category(positive, forms)
        of_sums = [f for f in (forms[i] for i in summed) if isinstance(f, Summed)]
        counted = tallies or tuple(Tally.of_classes(s[positive], s[~positive]) for s in scores)
        windows = [choose_windows(t, forms, EVEN_BLOCKS if summed else 1) for t in counted]
        stretch = [w.stretch_of(s) for w, s in zip(windows, scores, strict=True)]
        width = len(windows[1].is_open)
        # A category is a pair of stretches, one of each system. A trial is drawn one by one if either system must look
        # at it, or if its category is too small to be worth counting.
        joint = (stretch[0] * width + stretch[1]).astype(np.int32)
        one_by_one = (windows[0].is_open[:, None] | windows[1].is_open).reshape(-1)
        one_by_one |= np.bincount(joint, minlength=len(one_by_one)) < DEAR_CATEGORY
        active = one_by_one[joint]
        if summed:
            active[extreme_trials(positive, scores, of_sums)] = True
        drawn = np.flatnonzero(active)
        drawn = np.concatenate([drawn[positive[drawn]], drawn[~positive[drawn]]])
        used = [
            np.bincount(joint[mask], minlength=len(one_by_one)) for mask in (positive & ~active, ~(positive | active))
        ]
        kept = np.flatnonzero(~one_by_one & (used[0] + used[1] > 0))
        rank = np.full(len(one_by_one), -1, dtype=np.int32)
        rank[kept] = np.arange(len(kept))
        axes = [Axis.of(w, s[drawn], k) for w, s, k in zip(windows, scores, (kept // width, kept % width), strict=True)]
        category = np.where(active, -1, rank[joint]).astype(np.int32)
        sums = JointSums.of(positive, scores, of_sums, drawn, category, len(kept)) if summed else None
        return cls(positive, scores, axes, drawn, category, [u[kept] for u in used], summed, sums)

    def draw(self, replicates: int, rng: Random, by_class: bool = True) -> Draw:
        """Draw new replicates, one column each."""
        parts, others = [], []
        is_positive = self.positive[self.drawn]
        active = int(is_positive.sum()), int((~is_positive).sum())
        held = [int(sizes.sum()) + own for sizes, own in zip(self.sizes, active, strict=True)]
        drawn = class_sizes(held[0], held[1], replicates, rng, by_class)
        for sizes, own, n, size in zip(self.sizes, active, held, drawn, strict=True):
            counts = rng.multinomial(size, np.append(sizes, own) / n)
            others.append(counts[:, :-1])
            parts.append(uniform_counts(own, counts[:, -1], rng))
        packed = np.zeros((len(self.drawn) + 1, replicates), dtype=np.uint16)  # the last row stays 0: padding
        middle = len(parts[0])
        packed[:middle] = parts[0]
        np.left_shift(parts[1], 8, out=packed[middle:-1], dtype=np.uint16)
        return Draw(packed, others, drawn)

    @cached_property
    def ordered(self) -> list[Ordered]:
        """Both systems sorted completely, for replicates that must be completed."""
        return [Ordered.of(self.positive, s) for s in self.scores]

    @cached_property
    def members(self) -> list[Indices]:
        """The trials of each class that are not drawn one by one, in order of category."""
        rest = [np.flatnonzero(mask & (self.category >= 0)) for mask in (self.positive, ~self.positive)]
        return [i[np.argsort(self.category[i], kind="stable")] for i in rest]

    def completed(self, draw: Draw, replicate: int, rng: Random) -> Counts:
        """Return how often every trial is drawn: the counts of categories are distributed to their trials."""
        counts = np.zeros(len(self.positive), dtype=np.int64)
        column = draw.packed[:-1, replicate]
        counts[self.drawn] = (column & 255) + (column >> 8)
        for members, sizes, others in zip(self.members, self.sizes, draw.others, strict=True):
            dealt = others[replicate]
            first = np.repeat(np.cumsum(sizes) - sizes, dealt)
            counts += np.bincount(members[first + rng.integers(0, np.repeat(sizes, dealt))], minlength=len(counts))
        return counts


def _fill(values: Floats, plan: PairedDrawPlan, forms: Sequence[Form], draw: Draw, rng: Random) -> None:
    """Compute all numbers of some replicates (system × form × replicate); by brute force where one is in doubt."""
    doubtful = np.zeros(values.shape[2], dtype=bool)
    unread: list[int] = []
    if not draw.is_even:
        unread = [i for i in range(len(forms)) if i not in plan.summed]
    for system, axis in enumerate(plan.axes if draw.is_even else ()):
        curve = axis.curve(draw)
        answers = [form.on_curve(curve) for form in forms]
        unread = [i for i, answer in enumerate(answers) if answer is None and i not in plan.summed]
        for i, answer in enumerate(answers):
            if answer is not None:
                values[system, i] = answer[0]
                doubtful |= answer[1]
    # Completing a replicate uses the counts already drawn, so its other numbers stay consistent with the same draw.
    for r in range(values.shape[2]) if unread else np.flatnonzero(doubtful):
        counts = plan.completed(draw, int(r), rng)
        again = [i for i in range(len(forms)) if i not in plan.summed] if doubtful[r] else unread
        values[:, again, r] = _figures(plan.ordered, [forms[i] for i in again], counts)
    if plan.sums:
        for system, place, figures in plan.sums.figures(draw, rng):
            values[system, plan.summed[place]] = figures
