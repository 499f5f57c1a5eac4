"""Cells with very many trials: every estimate is that of the exact scores, and a sample needs little memory.

1. The coarse bins of a sample are counted finer where they hold much of it.
2. The scores of leaves (see `stats.sketch`) that may contain a crossing or a minimum cost, of the sample or of a
   replicate, are fetched; everywhere else bins are enough.
3. Estimates that need every score (AUC, Cllr, PAV) are computed while the scores are read in ascending order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core import progress
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.score_keys import EXACT, Keys, keys_of
from hitmiss.core.tally import Tally
from hitmiss.engine.columns import Rows
from hitmiss.engine.score_checks import ties_differ
from hitmiss.outofcore.binned import HIGHEST, NO_KEYS, Binned, Counts, Ends, KeptKeys, merge_binned, stretches
from hitmiss.outofcore.exact_cells import classes_of, tally_of, tally_together
from hitmiss.stats.delong import PassingSteps, RocSteps
from hitmiss.stats.forms.base import Form, Passing
from hitmiss.stats.forms.tallies import ReadTally
from hitmiss.stats.sketch import LEVELS, condense, heavy_bins, leaves, opened, thresholds
from hitmiss.stats.units import UnitSample

TIED_BITS: Final = 32
"""A bin with this many bits that is still heavy is probably one score with many trials: its scores are counted."""
ROW_BYTES: Final = 96
"""The memory per fetched score: its key, two copies while sorting, and its entry in a tally."""
STRETCH_BYTES: Final = 96
"""The memory per score of a stretch: its key, copies of it while sorting, and its entries in tallies."""
MOST_STRETCHES: Final = 1000
"""The maximum number of stretches."""
PIECE_SCORES: Final = 1 << 18
SampleKey = tuple[tuple[int, ...], tuple[int, ...]]
"""A sample, given by its positive and its negative cells."""


@dataclass(frozen=True, eq=False)
class CoarseCells:
    """Cells with very many trials: tallies are exact where it matters and hold the numbers that need every score."""

    cells: Sequence[KeptKeys]
    forms: tuple[Form, ...]
    memory: int
    _known: dict[SampleKey, tuple[Tally, RocSteps]] = field(default_factory=dict)
    is_short: ClassVar[bool] = True

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """Return the tally of some cells, shortened, with its numbers."""
        return self._sample(positive, negative)[0]

    def steps(self, positive: Rows, negative: Rows) -> RocSteps:
        """Return the steps of the AUC of some cells; from their bins if nothing depends on its exact value."""
        return self._sample(positive, negative)[1]

    def unit_sample(self, rows: Rows, positive: NDArray[np.bool_], unit: Counts, n_units: int) -> UnitSample:
        """Refuse: the trials of these cells are not known by their units (see `outofcore.units`)."""
        del rows, positive, unit, n_units
        raise UsageError.of("needs-every-trial/units")

    def _sample(self, positive: Rows, negative: Rows) -> tuple[Tally, RocSteps]:
        key = tuple(positive.tolist()), tuple(negative.tolist())
        if key not in self._known:
            self._known[key] = self._read([[self.cells[row] for row in rows] for rows in key])
        return self._known[key]

    def _read(self, sides: list[list[KeptKeys]]) -> tuple[Tally, RocSteps]:
        cuts = thresholds(self.forms)
        binned = self._refined(sides, [merge_binned([kept.coarse(cuts) for kept in side]) for side in sides], cuts)
        coarse = tally_of(binned)
        short = condense(tally_of(self._opened(sides, binned, coarse, cuts)), self.forms)
        steps, figures, tied = RocSteps.of_tally(coarse), dict[Form, float](), None
        # besides numbers, warnings about reversed scores and about ties quote a value that needs every score
        is_quoted = short.has_both_classes and (steps.area < 0.51 or ties_differ(short))
        if is_quoted or any(form.every_score for form in self.forms):
            n1, n0 = int(coarse.n_positive), int(coarse.n_negative)
            own = {form: found for form in self.forms if (found := form.passing(n1, n0)) is not None}
            pairs = PassingSteps(n1, n0, steps.area if n1 and n0 else 0.5)
            self._sum(
                sides, stretches(binned, max(self.memory // STRETCH_BYTES, (n1 + n0) // MOST_STRETCHES)), own, pairs
            )
            figures, steps = {form: one.value() for form, one in own.items()}, pairs.whole()
            tied = pairs.tied / max(n1 + n0, 1)
        return ReadTally(short.score, short.positives, short.negatives, figures, tied), steps

    def _refined(self, sides: list[list[KeptKeys]], binned: list[Binned], cuts: tuple[float, ...]) -> list[Binned]:
        """Return the bins of a sample; those that are heavy are counted by finer bins, level by level."""
        for bits, next_bits in pairwise(LEVELS):
            first = heavy_bins(tally_of(binned), bits)
            if not len(first):
                break
            last, finer = first | np.uint64((1 << (EXACT - bits)) - 1), EXACT if bits >= TIED_BITS else next_bits
            binned = [_replaced(own, side, first, last, finer, cuts) for own, side in zip(binned, sides, strict=True)]
            if finer == EXACT:
                break
        return binned

    def _opened(
        self, sides: list[list[KeptKeys]], binned: list[Binned], tally: Tally, cuts: tuple[float, ...]
    ) -> list[Binned]:
        """Return the bins with the scores of leaves that may contain a crossing or a minimum cost."""
        starts, lowest = leaves(tally, cuts)
        is_open, first = opened(tally, starts, self.forms), keys_of(lowest)
        last = np.append(first[1:], HIGHEST) - np.uint64(1)
        edges = (tally.positives + tally.negatives)[np.append(starts, len(tally.score))]
        rows = int(np.diff(edges)[is_open].sum())
        if rows * ROW_BYTES > self.memory:
            raise DataError.of("needs-more-memory/trials", rows=rows, rows_2=rows * ROW_BYTES / 1000000000.0 + 0.4)
        first, last = first[is_open], last[is_open]
        return [_replaced(own, side, first, last, EXACT, ()) for own, side in zip(binned, sides, strict=True)]

    def _sum(
        self, sides: list[list[KeptKeys]], ends: list[Ends], own: Mapping[Form, Passing], pairs: PassingSteps
    ) -> None:
        """Read all scores of a sample in ascending order, one stretch after the other."""
        for low, high in progress.each(ends, "reading sums over all scores"):
            held = [[piece for kept in side for piece in kept.pieces(low, high)] for side in sides]
            classes = None if own else classes_of(held)
            if classes is not None:
                for both in _class_pieces(*classes):
                    pairs.add(RocSteps.of_classes(*both, is_positive=True))
                continue
            for piece in _in_pieces(tally_together(held)):
                pairs.add(RocSteps.of_tally(piece, is_positive=True))
                for reader in own.values():
                    reader.add(piece)


def _replaced(
    binned: Binned, side: Sequence[KeptKeys], first: Keys, last: Keys, bits: int, cuts: tuple[float, ...]
) -> Binned:
    """Return bins whose content between some keys is replaced by that of finer bins (or by the scores)."""
    at = np.searchsorted(first, binned.bins, side="right")
    outside = (at == 0) | (binned.bins > np.append(last, HIGHEST)[at - 1]) if len(first) else np.ones(len(at), bool)
    runs = np.flatnonzero(np.append(True, first[1:] != last[:-1] + np.uint64(1))[: len(first)])
    ends = zip(first[runs], last[np.append(runs[1:], len(first)) - 1] if len(first) else NO_KEYS, strict=True)
    inside = [kept.between(low, high).by_bits(bits, cuts) for low, high in ends for kept in side]
    return merge_binned([Binned(binned.bins[outside], binned.each[outside]), *inside])


def _in_pieces(tally: Tally) -> Iterator[Tally]:
    """Split a tally into several, from low to high, so that intermediate arrays stay small."""
    for start in range(0, len(tally.score), PIECE_SCORES):
        p, q = (c[start : start + PIECE_SCORES + 1] for c in (tally.positives, tally.negatives))
        yield Tally(tally.score[start : start + PIECE_SCORES], p - p[0], q - q[0])


def _class_pieces(positive: Keys, negative: Keys) -> Iterator[tuple[Keys, Keys]]:
    """Split ascending keys into pieces with few positives each, so that intermediate arrays stay small; ties stay together."""
    cuts = positive[PIECE_SCORES::PIECE_SCORES]
    ends = [np.append(np.searchsorted(keys, cuts), len(keys)) for keys in (positive, negative)]
    at = 0, 0
    for end in zip(*ends, strict=True):
        yield positive[at[0] : end[0]], negative[at[1] : end[1]]
        at = end
