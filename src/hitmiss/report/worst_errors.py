"""The worst errors of a run: the trials that were taken for the other class most confidently, within a budget of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final

import polars as pl

from hitmiss.core.question import shown
from hitmiss.core.trials import Trials
from hitmiss.report.media import Media, Refusal
from hitmiss.report.shelves import COLUMNS, Shelf

MOST: Final = 10
"""Errors of each kind that are shown."""
BUDGET: Final = 300_000
"""Bytes that all samples of a report may take together."""
LONGEST: Final = 600
"""Characters of a text that are shown; a longer one is cut, and says so."""
TEXTS: Final = ("text", "comment_text", "comment", "sentence", "transcript")
SHOWN_SLICES: Final = 4
MOST_REFUSALS: Final = 5
"""Files that are not shown, named one by one."""


@dataclass(frozen=True)
class Sample:
    """One wrongly answered trial."""

    item: str
    truth: str
    score: float | None
    confidence: float | None
    slices: tuple[tuple[str, str], ...]
    text: str = ""
    media: Media | None = None

    @property
    def size(self) -> int:
        """Bytes of what is shown in words."""
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
    notes: tuple[str, ...] = ()

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All of them."""
        return (*self.false_alarms, *self.misses)

    @property
    def n_bytes(self) -> int:
        """What they take of the budget."""
        return sum(s.size + (s.media.n_bytes if s.media else 0) for s in self.samples)


Kinds = tuple[list[tuple[Sample, Mapping[str, Any]]], ...]


def worst_errors(
    trials: Trials,
    run: str,
    *,
    most: int = MOST,
    texts: bool = True,
    budget: int = BUDGET,
    shelf: Shelf | None = None,
) -> Errors:
    """The worst errors of one run; what does not fit into the budget is counted and left out.

    Where there are decisions, an error is a wrong one, by confidence, else by score. Without decisions: the negatives with
    the highest and the positives with the lowest scores. `shelf` gives the sounds, images or signals of the trials.

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
    kinds: Kinds = ([], [])
    for label in (0, 1):
        descending = order == "confidence" or label == 0
        own = frame.filter(pl.col("label") == label).drop_nulls(order)
        own = own.sort(order, "item", descending=[descending, False])
        own = own.unique("item", keep="first", maintain_order=True).head(most)  # of repeated trials the worst
        kinds[label].extend((_sample(trials, row, texts), row) for row in own.iter_rows(named=True))
    return within(Errors(run, rule, titles, (), ()), kinds, budget, shelf if texts else None)


def _sample(trials: Trials, row: dict[str, Any], texts: bool) -> Sample:
    head = trials.header
    column = next((c for c in TEXTS if c in trials.frame.columns), None)
    text = str(row[column] or "") if column and texts else ""
    cut = f"{text[:LONGEST]}… ({len(text):,} characters)" if len(text) > LONGEST else text
    slices = [(shown(c), str(row[c])[:80]) for c in head.slices if c not in (*TEXTS, *COLUMNS, "source")][:SHOWN_SLICES]
    truth = head.positive if row["label"] == 1 else head.negative
    numbers = [row.get(name) for name in ("score", "confidence")]
    score, confidence = (float(v) if isinstance(v, int | float) else None for v in numbers)
    return Sample(str(row["item"])[:200], truth, score, confidence, tuple(slices), cut)


def within(bare: Errors, kinds: Kinds, budget: int, shelf: Shelf | None) -> Errors:
    """Samples of both kinds in turn until the budget is spent: first all words, then as much to hear and see as fits."""
    kept: Kinds = ([], [])
    left = budget
    for i, sample, row in _in_turn(kinds):
        if sample.size <= left:
            left -= sample.size
            kept[i].append((sample, row))
    left_out = sum(map(len, kinds)) - sum(map(len, kept))
    shown, notes = _with_media(kept, left, shelf) if shelf is not None else (kept, ())
    alarms, misses = (tuple(sample for sample, _ in own) for own in shown)
    return replace(bare, false_alarms=alarms, misses=misses, left_out=left_out, notes=notes)


def _in_turn(kinds: Kinds) -> Iterable[tuple[int, Sample, Mapping[str, Any]]]:
    """The worst of each kind, then the second of each, and so on."""
    for pair in zip_longest(*kinds):
        yield from ((i, *found) for i, found in enumerate(pair) if found is not None)


def _with_media(kinds: Kinds, left: int, shelf: Shelf) -> tuple[Kinds, tuple[str, ...]]:
    shown: Kinds = ([], [])
    refused: list[Refusal] = []
    beyond = 0
    for i, sample, row in _in_turn(kinds):
        found = shelf.find(row) if left > 0 else None
        fits = isinstance(found, Media) and found.n_bytes <= left
        if isinstance(found, Refusal):
            refused.append(found)
        elif not fits and (found is not None or left <= 0):
            beyond += 1
        if isinstance(found, Media) and fits:
            left -= found.n_bytes
            sample = replace(sample, media=found)
        shown[i].append((sample, row))
    return shown, tuple(_notes(refused, beyond))


def _notes(refused: list[Refusal], beyond: int) -> list[str]:
    """What is not shown, and why."""
    said = [f"{r.name} is not shown: {r.reason}." for r in refused[:MOST_REFUSALS]]
    rest = len(refused) - MOST_REFUSALS
    said += [f"{rest} more files are not shown."] if rest > 0 else []
    return said + ([f"{beyond} files did not fit into the budget of bytes; raise --samples-budget."] if beyond else [])
