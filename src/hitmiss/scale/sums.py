"""Figures that need every score (AUC, Cllr, Brier, PAV), for all samples of a measurement while the scores pass by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from hitmiss.core.tally import Tally
from hitmiss.scale.cells import ExactCells
from hitmiss.scale.summing import Pairs
from hitmiss.scale.tallies import Binned
from hitmiss.stats.forms import Form, Passing
from hitmiss.stats.intervals import Steps

SampleKey = tuple[tuple[int, ...], tuple[int, ...]]
"""A sample by its cells: the positive ones, and the negative ones."""
PIECE: Final = 1 << 18


@dataclass(frozen=True, eq=False)
class Sums:
    """What needed every score, sample by sample."""

    figures: Mapping[SampleKey, Mapping[Form, float]] = field(default_factory=dict)
    areas: Mapping[SampleKey, Steps] = field(default_factory=dict)
    tied: Mapping[SampleKey, float] = field(default_factory=dict)


def read_sums(
    binned: Sequence[Binned],
    asked: Mapping[SampleKey, Tally],
    forms: Sequence[Form],
    stretches: Callable[[Sequence[Binned]], Iterator[list[Binned]]],
) -> Sums:
    """The figures of all samples. `stretches` gives the scores of all cells, a stretch of them after the other."""
    readers: dict[SampleKey, tuple[dict[Form, Passing], Pairs]] = {}
    for key, tally in asked.items():
        n1, n0 = int(tally.n_positive), int(tally.n_negative)
        own = {form: found for form in forms if (found := form.passing(n1, n0)) is not None}
        readers[key] = own, Pairs(n1, n0, Steps.of_tally(tally).area if n1 and n0 else 0.5)
    passes: Any = stretches(binned)
    with closing(passes):
        for part in passes:
            for key, (own, pairs) in readers.items():
                _read(ExactCells(part), key, own, pairs)
    figures = {key: {form: reader.value() for form, reader in own.items()} for key, (own, _) in readers.items()}
    counted = {key: pairs for key, (_, pairs) in readers.items()}
    return Sums(figures, {k: p.steps() for k, p in counted.items()}, {k: p.tied_mass for k, p in counted.items()})


def _read(part: ExactCells, key: SampleKey, own: Mapping[Form, Passing], pairs: Pairs) -> None:
    positive, negative = (np.array(rows, dtype=np.intp) for rows in key)
    classes = None if own else part.classes(positive, negative)
    if classes is not None:
        pairs.add_classes(*classes)
        return
    for piece in _in_pieces(part.tally(positive, negative)):
        pairs.add(piece)
        for reader in own.values():
            reader.add(piece)


def _in_pieces(tally: Tally) -> Iterator[Tally]:
    """A tally as several, from low to high, so that what is computed from it stays small."""
    for start in range(0, len(tally.score), PIECE):
        p, q = (c[start : start + PIECE + 1] for c in (tally.positives, tally.negatives))
        yield Tally(tally.score[start : start + PIECE], p - p[0], q - q[0])
