"""The quick way through a sound Parquet file: columns coded by polars on all cores, nothing looked at row by row.

Whatever is odd (an empty score, NaN, a label that is not understood) is left to the careful way, which tells what and where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np
import polars as pl

from hitmiss.io.names import SYSTEM_PREFIX
from hitmiss.io.options import ReadOptions
from hitmiss.io.words import understand
from hitmiss.scale.plan import ShardPlan
from hitmiss.scale.reading import Opened
from hitmiss.scale.tallies import Cell
from hitmiss.tally import Floats

MOST_CELLS: Final = 1 << 16
SAMPLE: Final = 1 << 13


class Odd(Exception):
    """The file is not for the quick way."""


class Unseen(Odd):
    """A value that the first rows do not show."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows: the place of each row's cell among all combinations, its score, and its id where asked for."""

    code: Any
    score: Floats
    items: pl.Series | None


@dataclass(frozen=True, eq=False)
class Quick:
    """A Parquet file that is read by codes."""

    opened: Opened
    plan: ShardPlan
    values: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, opened: Opened, plan: ShardPlan, is_all: bool = False) -> Quick:
        """With the values of the first rows, or of all. Raises `Odd` where the careful way must be gone."""
        names = ("label", *plan.keep)
        picks = opened.match.picks
        if not opened.is_parquet or "score" not in picks or "decision" in names or any(n not in picks for n in names):
            raise Odd
        if plan.key is not None or any(name.startswith(SYSTEM_PREFIX) for name in picks):
            raise Odd
        quick = cls(opened, plan, ())
        lazy = quick._lazy if is_all else quick._lazy.head(SAMPLE)
        found = lazy.select(quick._text(name).unique().implode().alias(name) for name in names).collect()
        values = tuple(tuple(sorted(found[name][0].to_list())) for name in names)
        options = plan.options
        reading = understand(values[0], options.positive, options.negative, options.positive_value)
        if prod(map(len, values)) > MOST_CELLS or reading.problems:
            raise Odd
        return cls(opened, plan, values)

    @property
    def cells(self) -> list[Cell]:
        """All combinations of values, with values renamed as the options say."""
        names = ("label", *self.plan.keep)
        rename = self.plan.options.rename
        settled = [[rename.get(n, {}).get(v, v) for v in values] for n, values in zip(names, self.values, strict=True)]
        return list(product(*settled))

    def pieces(self, with_ids: bool) -> Iterator[Piece]:
        """The rows, many at a time."""
        names = ("label", *self.plan.keep)
        code = pl.lit(0, dtype=pl.UInt32)
        for name, values in zip(names, self.values, strict=True):
            code = code * len(values) + _place(self._text(name), values)
        columns = [code.alias("code"), pl.col(self._theirs("score")).cast(pl.Float64).alias("score")]
        if with_ids:
            columns.append(self._item().alias("item"))
        try:
            for frame in self._lazy.select(columns).collect_batches(maintain_order=with_ids):
                yield self._piece(frame, with_ids)
        except pl.exceptions.PolarsError as error:  # a score that is text, say
            raise Odd from error

    def _piece(self, frame: pl.DataFrame, with_ids: bool) -> Piece:
        score = frame["score"]
        if frame["code"].null_count():
            raise Unseen
        if score.null_count():
            raise Odd
        values = score.to_numpy()
        if not is_sound(values, self.plan.options):
            raise Odd
        if self.plan.turned:
            values = 1 - values if self.plan.options.score_kind == "probability" else -values
        items = frame["item"] if with_ids else None
        return Piece(frame["code"].to_numpy(), values, items)

    @property
    def _lazy(self) -> pl.LazyFrame:
        return pl.scan_parquet(self.opened.shard.path, glob=False)

    def _theirs(self, name: str) -> str:
        names = self.opened.shape.names
        assert names is not None
        return names[self.opened.match.picks[name]]

    def _text(self, name: str) -> pl.Expr:
        return pl.col(self._theirs(name)).cast(pl.String).fill_null("")

    def _item(self) -> pl.Expr:
        """The id, of files whose ids alone name their trials."""
        key = [n for n in ("item", "target", *self.plan.options.runs) if n in self.opened.match.picks]
        if key != ["item"]:
            raise Odd
        return self._text("item")


def _place(text: pl.Expr, values: tuple[str, ...]) -> pl.Expr:
    """The place of a text among values; null where it is none of them. Two are told apart quicker by comparing."""
    if len(values) == 2:
        known = pl.when(text == values[0]).then(pl.lit(0, dtype=pl.UInt32)).when(text == values[1])
        return known.then(pl.lit(1, dtype=pl.UInt32)).otherwise(None)
    return text.cast(pl.Enum(list(values)), strict=False).to_physical().cast(pl.UInt32)


def is_sound(score: Floats, options: ReadOptions) -> bool:
    """Whether the scores are numbers that the options allow."""
    with np.errstate(invalid="ignore"):  # the sum is NaN where a score is, or where both infinities are there
        if np.isnan(np.add.reduce(score)) and np.isnan(score).any():
            return False
    return options.score_kind != "probability" or bool(score.min() >= 0.0 and score.max() <= 1.0)
