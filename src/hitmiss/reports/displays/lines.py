"""The lines of a figure, one per run: their colours, labels and key, and how numbers are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np

from hitmiss.findings.wording import per_cent
from hitmiss.reports.plate import MUTED, Axis, ticks

D = TypeVar("D")
Lines = Sequence[tuple[str, D]]
AnyLines = Sequence[tuple[str, Any]]
"""Displays of one kind, whichever it is."""
NumberRows = tuple[tuple[str, ...], list[tuple[str, list[str]]]]
"""The header of a figure's numbers, and the name and the texts of each row."""
MOST_COLOURED: Final = 7
"""Number of runs with their own colour and label; beyond it, the best are named and the others drawn in grey."""
MOST_NAMED: Final = 5


@dataclass(frozen=True)
class PlateOptions:
    """Settings of a plate besides its lines: whether trials are independent, so that bands can be drawn, whether a
    single run is named too, because others may be added to the same axes, the order of all runs, the best first, so
    that a run has one colour in every figure, and how the page writes numbers that stand elsewhere on it."""

    independent: bool = True
    named: bool = False
    order: tuple[str, ...] = ()
    written: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """How the page writes the value of a metric of a run, where it was measured."""

    def text(self, run: str, metric: str, otherwise: str) -> str:
        """Return how a value is written: as elsewhere on the page, or else as here."""
        return self.written.get((run, metric), otherwise)


@dataclass(frozen=True)
class MarkStyle:
    """The colour, the label and the width of a run's marks."""

    color: int
    label: str
    width: float


def mark_styles(lines: Lines[D], order: Callable[[D], float], how: PlateOptions) -> list[MarkStyle]:
    """Choose colours and labels: for all of a few runs; of many, for the best ones, with the others in grey."""
    names = [name for name, _ in lines]
    ranked = [name for name in how.order if name in names]
    if len(ranked) < len(names):  # no common order of the runs was given, so this figure decides
        known = dict(lines)
        ranked = names if len(lines) <= MOST_COLOURED else sorted(known, key=lambda name: order(known[name]))
    if len(lines) <= MOST_COLOURED:
        named = len(lines) > 1 or how.named
        place = {name: i for i, name in enumerate(how.order if set(names) <= {*how.order} else names)}
        return [MarkStyle(place[name], name if named else "", 2.0) for name in names]
    best = ranked[:MOST_NAMED]
    return [MarkStyle(best.index(n), n, 2.0) if n in best else MarkStyle(MUTED, "", 1.0) for n in names]


def key_of(styles: Sequence[MarkStyle], words: Sequence[str], dash: str = "") -> tuple[tuple[int, str, str], ...]:
    """Return the key: the words of the runs that have a label, and how many others are grey; none for a single run without a name."""
    named = [(d.color, dash, word) for d, word in zip(styles, words, strict=True) if d.label]
    grey = sum(not d.label for d in styles) if len(styles) > 1 else 0
    return (*named, *(((MUTED, dash, f"{grey} more runs"),) if grey else ()))


def share_axis(title: str, high: float = 1.0) -> Axis:
    """Return an axis of shares, from 0."""
    return Axis(title, 0.0, high, ticks(0.0, high, percent=True))


def share_text(value: float) -> str:
    """Return a share as the numbers behind a figure write it."""
    return per_cent(value, 2)


def area_text(value: float) -> str:
    """Return an area, which curves from bins of scores may not know."""
    return "not measured" if np.isnan(value) else f"{value:.4f}"
