"""Crossing: read where a condition begins to hold along the thresholds (EER, TPR at an FPR)."""

# ruff: noqa: ARG002  (a method of the base class answers for the forms that need nothing)

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from hitmiss.core.errors import UnknownName
from hitmiss.core.sorting import Array, Floats, Number
from hitmiss.core.tally import Tally
from hitmiss.stats.unseen import equal_error_at_most

if TYPE_CHECKING:
    from hitmiss.stats.curve import Curve
    from hitmiss.stats.search import Stretches
from hitmiss.stats.forms.at_threshold import AtThreshold
from hitmiss.stats.forms.base import Form, Located, Mask

Ties = Literal["grouped", "official", "interpolated"]


@dataclass(frozen=True)
class Crossing(Located):
    """A number read at the first threshold at which a condition holds; from there on it always holds.

    `passed(cp, cn, n1, n0)`: whether the point that rejects `cp` positives and `cn` negatives is past the crossing;
    `read(cp, cn, p, q, n1, n0)`: the number, given the counts below and inside the group of equal scores that crosses;
    `unseen(n1, n0, level)`: the upper end if the number is 0 and no error was seen, if it is known.
    """

    passed: Callable[[Number, Number, Number, Number], bool | Mask]
    read: Callable[[Number, Number, Number, Number, Number, Number], Number]
    unseen: Callable[[int, int, float], float] | None = None
    linear: Callable[[Tally, int], Form] | None = None
    """For a tally and the point before the crossing: a form at a fixed threshold that changes alike, to first order."""
    read_at: Literal["before", "after", "nearest"] = "nearest"
    """Which side of the crossing is read; the nearest is that with the smaller difference of both error rates."""

    def value(self, tally: Tally) -> float:
        """Return the number at the crossing; NaN without both classes."""
        if not tally.has_both_classes:
            return float("nan")
        n1, n0 = float(tally.n_positive), float(tally.n_negative)
        low = self.point(tally)
        # Where even the first point is past the crossing there is no group to read inside: it is empty.
        high = min(low + 1, len(tally.score)) if not self.passed(0.0, 0.0, n1, n0) else low
        cp, cn, cp_high, cn_high = (float(c[i]) for i in (low, high) for c in (tally.positives, tally.negatives))
        return float(self.read(cp, cn, cp_high - cp, cn_high - cn, n1, n0))

    def place(self, tally: Tally) -> int:
        """Return the point of the error curve at which it is read; of two equally near ones, the first."""
        low = self.point(tally)
        if self.read_at != "nearest":
            return low if self.read_at == "before" else min(low + 1, len(tally.score))
        gaps = [
            abs(tally.positives[at] / tally.n_positive - (tally.n_negative - tally.negatives[at]) / tally.n_negative)
            for at in (low, low + 1)
        ]
        return low if gaps[0] <= gaps[1] else low + 1

    def point(self, tally: Tally) -> int:
        """Return the last point of the error curve that is not past the crossing (0 if all are)."""
        n1, n0 = float(tally.n_positive), float(tally.n_negative)
        # Once the condition holds it always holds, so halving finds the place among millions of points.
        low, high = 0, len(tally.score) + 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.passed(float(tally.positives[middle]), float(tally.negatives[middle]), n1, n0):
                high = middle
            else:
                low = middle
        return low

    def past(self, cp: Number, cn: Number, n1: Number, n0: Number) -> Mask:
        """Return which of many points are past the crossing."""
        return np.asarray(self.passed(cp, cn, n1, n0), dtype=np.bool_)

    def at_ends(self, n1: Number, n0: Number, zero: Floats) -> Floats:
        """Return what is read if the crossing lies before the first or after the last group."""
        return np.asarray(
            np.where(
                self.passed(zero, zero, n1, n0),
                self.read(zero, zero, zero, zero, n1, n0),
                self.read(zero + n1, zero + n0, zero, zero, n1, n0),
            ),
            dtype=np.float64,
        )

    def open_between(self, cp: Floats, cn: Floats, n1: Number, n0: Number) -> Mask:
        """Return where the condition begins to hold."""
        passed = self.past(cp, cn, n1, n0)
        # The condition holds from one point on, so at most one stretch per curve is open.
        return np.asarray(~passed[..., :-1] & passed[..., 1:])

    def begin(self, cp: Floats, cn: Floats) -> tuple[Floats, Mask]:
        """Return the ends of the curves, and the cell with the crossing."""
        n1, n0 = cp[:, -1], cn[:, -1]
        return self.at_ends(n1, n0, np.zeros(len(n1))), self.open_between(cp, cn, n1[:, None], n0[:, None])

    def can_be_in(self, found: Floats, s: Stretches, n1: Floats, n0: Floats) -> Mask:
        """Return whether the condition begins to hold inside."""
        return np.asarray(~self.past(s.cp, s.cn, n1, n0) & self.past(s.cp + s.p, s.cn + s.q, n1, n0))

    def note_groups(self, found: Floats, s: Stretches, n1: Floats, n0: Floats) -> None:
        """Read the number there."""
        found[s.replicate] = self.read(s.cp, s.cn, s.p, s.q, n1, n0)

    def note_inside(self, found: Floats, s: Stretches, cp: Floats, cn: Floats, n1: Floats, n0: Floats) -> None:
        """Read the number at the first point past the crossing."""
        row = np.flatnonzero(self.can_be_in(found, s, n1, n0))
        # The group that crosses begins where the point before it ends: at the start of the stretch for the first point.
        first = np.argmax(self.passed(cp[row], cn[row], n1[row, None], n0[row, None]), axis=1)
        a, b = (
            np.where(first > 0, c[row, np.maximum(first, 1) - 1], start[row]) for c, start in ((cp, s.cp), (cn, s.cn))
        )
        found[s.replicate[row]] = self.read(a, b, cp[row, first] - a, cn[row, first] - b, n1[row], n0[row])

    def most_unseen(self, n_positive: int, n_negative: int, level: float) -> float | None:
        """See `unseen`."""
        return None if self.unseen is None else self.unseen(n_positive, n_negative, level)

    def linearised(self, tally: Tally) -> Form | None:
        """Return a smooth form with the same influence of each trial, whose jackknife is valid; None if none is known."""
        return None if self.linear is None or not tally.has_both_classes else self.linear(tally, self.point(tally))

    def points(self, tally: Tally) -> list[int]:
        """Return both sides of the sample's own crossing."""
        low = self.point(tally)
        return [low, low + 1]

    def can_hold(self, cp: Floats, cn: Floats, n1: float, n0: float, deviations: float) -> Mask:
        """Return where the condition begins to hold within this many standard deviations of the counts."""
        # The number of drawn trials below a point is binomial. More of either class bring the crossing forward, fewer put
        # it off.
        away = [deviations * np.sqrt(c * (n - c) / n) for c, n in ((cp, n1), (cn, n0))]
        early = self.past(np.minimum(cp + away[0], n1), np.minimum(cn + away[1], n0), n1, n0)
        late = self.past(np.maximum(cp - away[0], 0.0), np.maximum(cn - away[1], 0.0), n1, n0)
        return np.asarray(early[1:] & ~late[:-1])

    def expected(self, tally: Tally, deviations: float) -> tuple[int, int] | None:
        """Return the groups between the crossings with this many standard deviations more and fewer."""
        n1, n0 = float(tally.n_positive), float(tally.n_negative)

        def first_passed(away: float) -> int:
            # As in `point`, on the curve moved by this many standard deviations; replicates that leave it are found later.
            low, high = -1, len(tally.score) + 1
            while high - low > 1:
                middle = (low + high) // 2
                cp, cn = float(tally.positives[middle]), float(tally.negatives[middle])
                cp += away * np.sqrt(cp * (n1 - cp) / n1)
                cn += away * np.sqrt(cn * (n0 - cn) / n0)
                low, high = (low, middle) if self.passed(cp, cn, n1, n0) else (middle, high)
            return high

        return first_passed(deviations) - 1, first_passed(-deviations)

    def on_curve(self, curve: Curve) -> tuple[Floats, Mask] | None:
        """See `Curve.at_crossing`."""
        return curve.at_crossing(self)


@dataclass(frozen=True)
class CrossingWithDensities(Crossing):
    """A crossing whose short tally also keeps the scores by which `linearised` estimates densities."""

    @classmethod
    def of(cls, form: Form) -> Form:
        """Return a crossing that is linearised in this form; others as they are."""
        if not isinstance(form, Crossing) or form.linear is None:
            return form
        return cls(form.passed, form.read, form.unseen, form.linear, form.read_at)

    def can_hold(self, cp: Floats, cn: Floats, n1: float, n0: float, deviations: float) -> Mask:
        """Return where the condition begins to hold, and where the trials are that densities are estimated from."""
        found = super().can_hold(cp, cn, n1, n0, deviations)
        own = np.flatnonzero(super().can_hold(cp, cn, n1, n0, 0.0))
        if not len(own):
            return found
        edges = own[0], own[-1] + 1
        for below, n, errors in ((cp, n1, cp / n1), (cn, n0, 1.0 - cn / n0)):
            # Both ends rise with the place of the crossing, so those of the edges of its leaf bound them.
            lowest, highest = (_near(float(below[at]), n, float(errors[at])) for at in edges)
            for first, last in zip(lowest, highest, strict=True):
                found = found | ((below[:-1] <= last + 1.0) & (below[1:] > first - 1.0))
        return found


def equal_error(ties: Ties) -> Crossing:
    """Return the form of the equal error rate under a rule for ties."""
    if ties not in _AT_TIES:
        raise UnknownName("tie rule", ties, (*_AT_TIES, "hull"))
    # Strictly above: a point with equal rates is then the near end of the group that is read, and gives its own rate.
    return Crossing(
        lambda cp, cn, n1, n0: cp / n1 > (n0 - cn) / n0, _AT_TIES[ties], equal_error_at_most, _linear_equal_error
    )


LEAST_NEAR = 4
"""Trials of a class on each side of the threshold by which its density there is estimated, at least."""


def _linear_equal_error(tally: Tally, point: int) -> Form:
    """Return w₁ · miss rate + w₀ · false-alarm rate at the threshold of the EER, w₁ = f₀ / (f₁ + f₀), w₀ = f₁ / (f₁ + f₀).

    f are the densities of the scores of the classes there: more misses move the crossing the less, the steeper the
    false alarms fall. They are estimated from the nearest trials, half as many on each side as there are errors.
    """
    rates = [abs(_miss_rate(tally, at) - _alarm_rate(tally, at)) for at in (point, point + 1)]
    best = point if rates[0] <= rates[1] else point + 1
    miss, alarm = _miss_rate(tally, best), _alarm_rate(tally, best)
    positives = _density(tally.score, tally.positives, best, miss)
    negatives = _density(tally.score, tally.negatives, best, alarm)
    total = positives + negatives
    weight = negatives / total if total > 0.0 and math.isfinite(total) else 0.5

    def cost(missed: Number, n1: Number, accepted: Number, n0: Number) -> Number:
        return weight * (missed / n1) + (1.0 - weight) * (accepted / n0)

    return AtThreshold(tally.threshold_of(best), cost)


def _miss_rate(tally: Tally, point: int) -> float:
    return float(tally.positives[point]) / float(tally.n_positive)


def _alarm_rate(tally: Tally, point: int) -> float:
    return 1.0 - float(tally.negatives[point]) / float(tally.n_negative)


def _density(score: Floats, below: Array, point: int, errors: float) -> float:
    """Return the density of a class at a point, from its cumulative counts and its error rate there."""
    n = float(below[-1])
    first, last = _near(float(below[point]), n, errors)
    ends = score[np.minimum(np.searchsorted(below, [first, last], side="right") - 1, len(score) - 1)]
    width = float(ends[1] - ends[0])
    return (last - first) / (n * width) if width > 0.0 else math.inf


def _near(here: float, n: float, errors: float) -> tuple[float, float]:
    """Return the places of the first and the last trial of a class by which its density at a point is estimated."""
    near = max(LEAST_NEAR, math.ceil(errors * n / 2.0))
    return max(here - near, 0.0), min(here + near, n) - 1.0


def _nearest_end(cp: Number, cn: Number, p: Number, q: Number, n1: Number, n0: Number) -> Number:
    frr, far = cp / n1, (n0 - cn) / n0
    frr_after, far_after = (cp + p) / n1, (n0 - cn - q) / n0
    # Between two points there is no threshold: the nearer one is reported, of two equally near ones the first.
    first = np.abs(frr - far) <= np.abs(frr_after - far_after)
    return np.where(first, (frr + far) / 2, (frr_after + far_after) / 2)


def _on_the_straight_line(cp: Number, cn: Number, p: Number, q: Number, n1: Number, n0: Number) -> Number:
    frr, far = cp / n1, (n0 - cn) / n0
    rise, fall = p / n1, q / n0
    step = rise + fall
    # An empty group has no length to go along; its point is read.
    return frr + rise * ((far - frr) / np.where(step > 0, step, 1.0))


def _along_the_tie(cp: Number, cn: Number, p: Number, q: Number, n1: Number, n0: Number) -> Number:
    """Walk the tied trials one by one, positives first, and stop where the two rates are nearest."""
    if isinstance(cp, float):  # a single point, of which a jackknife asks for thousands: plain numbers are far quicker
        return _along_one_tie(cp, float(cn), float(p), float(q), float(n1), float(n0))
    steps = tie_steps(cp, cn, p, q, n1, n0)
    frr = np.stack([np.asarray((cp + i) / n1, dtype=np.float64) for i, _ in steps])
    far = np.stack([np.asarray((n0 - (cn + j)) / n0, dtype=np.float64) for _, j in steps])
    nearest = np.argmin(np.abs(frr - far), axis=0)  # the first of equal ones, as in the official package
    pick = np.expand_dims(nearest, 0)
    return np.asarray((np.take_along_axis(frr, pick, 0)[0] + np.take_along_axis(far, pick, 0)[0]) / 2)


def _along_one_tie(cp: float, cn: float, p: float, q: float, n1: float, n0: float) -> float:
    """Do the same for one tie, with the operations of `tie_steps` in the same order, so that no bit differs."""
    up, down = math.floor((n0 - cn) / n0 * n1 - cp), math.floor((n0 - cn) - (cp + p) / n1 * n0)
    nearest, found = math.inf, math.nan
    for i, j in (
        *((min(max(up + d, 0.0), p), 0.0) for d in (-1, 0, 1, 2)),
        *((p, min(max(down + d, 0.0), q)) for d in (-1, 0, 1, 2)),
    ):
        frr, far = (cp + i) / n1, (n0 - (cn + j)) / n0
        if abs(frr - far) < nearest:
            nearest, found = abs(frr - far), (frr + far) / 2
    return found


def tie_steps(cp: Number, cn: Number, p: Number, q: Number, n1: Number, n0: Number) -> list[tuple[Number, Number]]:
    """Return the steps (positives taken, negatives taken) around the crossing inside one tie, in walking order."""
    up = np.floor((n0 - cn) / n0 * n1 - cp)  # positives that fit before the miss rate overtakes
    down = np.floor((n0 - cn) - (cp + p) / n1 * n0)  # then negatives, if all positives fit
    # The nearest step is next to the crossing; one more on each side allows for rounding of the division.
    positives = [np.clip(up + d, 0, p) for d in (-1, 0, 1, 2)]
    negatives = [np.clip(down + d, 0, q) for d in (-1, 0, 1, 2)]
    return [(i, np.zeros_like(i)) for i in positives] + [(p + np.zeros_like(j), j) for j in negatives]


_AT_TIES = {"grouped": _nearest_end, "official": _along_the_tie, "interpolated": _on_the_straight_line}
