"""The worst errors of a run: the trials that were taken for the other class most confidently, within a budget of bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import polars as pl

from hitmiss.trials import Trials

MOST: Final = 10
"""Errors of each kind that are shown."""
BUDGET: Final = 200_000
"""Bytes that all samples of a report may take together."""
LONGEST: Final = 600
"""Characters of a text that are shown; a longer one is cut, and says so."""
TEXTS: Final = ("text", "comment_text", "comment", "sentence", "transcript")
SHOWN_SLICES: Final = 4


@dataclass(frozen=True)
class Sample:
    """One wrongly answered trial."""

    item: str
    truth: str
    score: float | None
    confidence: float | None
    slices: tuple[tuple[str, str], ...]
    text: str = ""

    @property
    def size(self) -> int:
        """Bytes of what is shown."""
        parts = (self.item, self.truth, self.text, *(v for pair in self.slices for v in pair))
        return sum(len(p.encode("utf-8", "backslashreplace")) for p in parts)


@dataclass(frozen=True)
class Errors:
    """Wrongly answered trials of one run, the most confident first, under a title for each kind."""

    run: str
    rule: str
    titles: tuple[str, str]
    false_alarms: tuple[Sample, ...]
    misses: tuple[Sample, ...]
    left_out: int = 0


def worst_errors(trials: Trials, run: str, *, most: int = MOST, texts: bool = True, budget: int = BUDGET) -> Errors:
    """The worst errors of one run; what does not fit into the budget is counted and left out.

    Where there are decisions, an error is a wrong one, by confidence, else by score. Without decisions: the negatives with
    the highest and the positives with the lowest scores.

    >>> t = Trials.of([1, 1, 0, 0], [0.9, -0.4, 0.6, 0.1], item=["a", "b", "c", "d"])
    >>> found = worst_errors(t, "x", most=1)
    >>> [s.item for s in found.false_alarms], [s.item for s in found.misses]
    (['c'], ['b'])
    """
    frame, rule = trials.frame, "No decision was made, so these are the most misleading scores"
    head = trials.header
    titles = f"{head.negative} taken for {head.positive}", f"{head.positive} taken for {head.negative}"
    if "decision" in frame.columns:
        frame = frame.filter(pl.col("decision").is_in([0, 1]), pl.col("decision") != pl.col("label"))
        rule = "Wrong decisions, the most confident first"
    order = next((c for c in ("confidence", "score") if c in frame.columns), None)
    if order is None:
        return Errors(run, "There is no score to order them by", titles, (), ())
    kept: list[tuple[Sample, ...]] = []
    for label in (0, 1):
        descending = order == "confidence" or label == 0
        own = frame.filter(pl.col("label") == label).drop_nulls(order)
        own = own.sort(order, "item", descending=[descending, False]).head(most)
        kept.append(tuple(_sample(trials, row, texts) for row in own.iter_rows(named=True)))
    shown, left_out = _within(kept, budget)
    return Errors(run, rule, titles, shown[0], shown[1], left_out)


def _sample(trials: Trials, row: dict[str, object], texts: bool) -> Sample:
    head = trials.header
    column = next((c for c in TEXTS if c in trials.frame.columns), None)
    text = str(row[column] or "") if column and texts else ""
    cut = f"{text[:LONGEST]}… ({len(text):,} characters)" if len(text) > LONGEST else text
    slices = [(c, str(row[c])[:80]) for c in head.slices if c not in TEXTS][:SHOWN_SLICES]
    truth = head.positive if row["label"] == 1 else head.negative
    numbers = [row.get(name) for name in ("score", "confidence")]
    score, confidence = (float(v) if isinstance(v, int | float) else None for v in numbers)
    return Sample(str(row["item"])[:200], truth, score, confidence, tuple(slices), cut)


def _within(kinds: Iterable[tuple[Sample, ...]], budget: int) -> tuple[list[tuple[Sample, ...]], int]:
    """Samples of both kinds in turn until the budget is spent."""
    shown: list[tuple[Sample, ...]] = []
    left, left_out = budget, 0
    for own in kinds:
        fits: list[Sample] = []
        for sample in own:
            if sample.size <= left:
                left -= sample.size
                fits.append(sample)
            else:
                left_out += 1
        shown.append(tuple(fits))
    return shown, left_out
