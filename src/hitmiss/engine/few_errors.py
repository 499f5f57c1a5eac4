"""Whether an estimate rests on so few errors that its draws do not show how uncertain it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hitmiss.core.finding import Remark
from hitmiss.core.rates import Rate
from hitmiss.engine.columns import Sample
from hitmiss.engine.shares import share_of
from hitmiss.stats.enough_units import enough
from hitmiss.stats.forms.base import Errors, Functional
from hitmiss.stats.forms.trials import OfCounts

FEWEST_OF_CLASS: Final = enough(0.95)
"""Trials of each class below which a figure of decisions of both classes gets no interval."""


def too_few_errors(form: Functional, sample: Sample, width: float, fewest: int | None = None) -> str | None:
    """Say why a figure that rests on a handful of errors gets no interval; None if there are enough.

    Draws contain no kind of error that the sample does not contain, so a cost at a threshold with no false alarm looks
    certain, although one false alarm may cost more than everything else. `fewest` errors of each kind are needed (if
    not given, those of the form), unless one more would add little to the interval's width.
    """
    if not form.fewest_errors:
        return None
    if isinstance(form, OfCounts) and share_of(form) is None:
        # A class of so few trials says too little about its own errors: with one positive, 95 % intervals of MCC and
        # balanced accuracy held the truth 60 % of the time.
        own = {"positive": sample.n_positive, "negative": sample.n - sample.n_positive}
        for kind, n in own.items():
            if n < FEWEST_OF_CLASS:
                return Remark.of("no-interval/alone-class", part=f"one {kind}" if n == 1 else f"{n} {kind}s")
    for name, seen, effect in _errors_of_decisions(form, sample) if isinstance(form, OfCounts) else form.errors(sample):
        # Few errors do no harm where one more would hardly move the figure.
        if seen < (form.fewest_errors if fewest is None else fewest) and effect > form.most_of_width * width:
            return Remark.of("no-interval/threshold-more-change", seen=seen or "no", name=name, effect=effect)
    return None


def _errors_of_decisions(form: OfCounts, sample: Sample) -> tuple[Errors, ...]:
    """Return the errors behind a figure of decisions; a plain share has its own interval, whatever was seen."""
    counts = sample.counts
    now = form.function(counts)
    if isinstance(now, Rate):
        return ()
    # One more error, with the size of each class kept: an answer that was right becomes wrong.
    missed = replace(counts, tp=max(counts.tp - 1, 0), fn=counts.fn + 1) if counts.tp else counts
    accepted = replace(counts, tn=max(counts.tn - 1, 0), fp=counts.fp + 1) if counts.tn else counts
    return (
        Errors("miss", int(sample.seen.fn), abs(float(form.function(missed)) - float(now))),
        Errors("false alarm", int(sample.seen.fp), abs(float(form.function(accepted)) - float(now))),
    )
