"""Bands of a number column as a slice: `--by seconds:0,2,5,10`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import polars as pl

from hitmiss.core.columns import find_column
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.trials import Trials


@dataclass(frozen=True)
class NumberBands:
    """A column of numbers, and the edges at which it is cut; a band holds its lower edge and not its upper one.

    >>> bands = NumberBands.parse("seconds:0,2,5,10")
    >>> bands.labels
    ('[ 0, 2)', '[ 2, 5)', '[ 5, 10)', '[10, ∞)')
    """

    column: str
    edges: tuple[float, ...]
    text: str

    @classmethod
    def parse(cls, text: str) -> NumberBands | None:
        """Read bands from their text; None if it names a column only."""
        column, colon, numbers = text.partition(":")
        if not colon:
            return None
        try:
            edges = tuple(float(number) for number in numbers.split(","))
        except ValueError:
            raise UsageError.of("bad-bands/numbers", bands=text) from None
        if not column or any(low >= high for low, high in pairwise(edges)):
            raise UsageError.of("bad-bands/order", bands=text)
        return cls(column, edges, text)

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each band, from the first edge up, so that they sort in their order."""
        texts = [f"{edge:g}" for edge in self.edges]
        decimals = max(len(text.partition(".")[2]) for text in texts)
        texts = [f"{edge:.{decimals}f}" for edge in self.edges]
        width = max(map(len, texts))
        return tuple(f"[{low:>{width}}, {high})" for low, high in pairwise((*texts, "∞")))

    @property
    def below(self) -> str:
        """The name of what lies below the first edge."""
        return f"(-∞, {self.edges[0]:g})"

    def of(self, values: pl.Series) -> pl.Series:
        """Return the band of each value; `-` for one that is missing."""
        numbers = values.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False).fill_nan(None)
        written = values.cast(pl.String).fill_null("").str.strip_chars()
        wrong = numbers.is_null() & ~written.is_in(["", "-", "nan", "NaN", "NA"])
        if wrong.any():
            first = int(wrong.arg_max() or 0)
            raise DataError.of("not-a-number/bands", column=self.column, value=written[first], row=first + 1)
        place = pl.Series(self.edges).search_sorted(numbers.fill_null(0.0), side="right")
        names = pl.Series((self.below, *self.labels))
        return pl.select(pl.when(numbers.is_null()).then(pl.lit("-")).otherwise(names.gather(place))).to_series()


def with_bands(trials: Trials, groupings: Sequence[Sequence[str]]) -> Trials:
    """Return the trials with a slice column for all bands that groupings name; a column of the whole name comes first."""
    known = trials.frame.columns
    named = dict.fromkeys(name for grouping in groupings for name in grouping)
    for bands in [NumberBands.parse(name) for name in named if find_column(name, known) is None]:
        if bands is not None:
            column = bands.of(trials.column(trials.own(bands.column)))
            head = replace(trials.header, slices=(*trials.header.slices, bands.text))
            trials = trials.put(head, **{bands.text: column})
    return trials
