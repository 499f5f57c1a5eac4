"""The quick way through a sound Parquet file: columns coded by polars on all cores, nothing looked at row by row.

Whatever is odd (an empty score, NaN, a label that is not understood) is left to the careful way, which tells what and where.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from math import prod
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.question import ReadSpec
from hitmiss.core.tally import Floats
from hitmiss.io import tables
from hitmiss.io.columns import SYSTEM_PREFIX, understand
from hitmiss.scale.counters import STEP
from hitmiss.scale.plan import ShardPlan
from hitmiss.scale.reading import Opened
from hitmiss.scale.tallies import Cell

Codes = NDArray[Any]

MOST_CELLS: Final = 1 << 16
SAMPLE: Final = 1 << 13
FEW: Final = 3
"""Values that a text is compared with one by one."""
SLOTS: Final = 1 << 12
MOST_KNOWN: Final = 1 << 14
_known: dict[tuple[Any, ...], tuple[tuple[str, ...], ...]] = {}
SCORE, ITEM = " score", " item"
"""Names that no column of ours has: one may be kept that is called so."""


class Odd(Exception):
    """The file is not for the quick way."""


class Unseen(Odd):
    """A value that the first rows do not show."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows: the place of each row's cell among all combinations, its score, and its id where asked for."""

    code: Codes
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
        if plan.key is not None or opened.shard.system is not None or any(n.startswith(SYSTEM_PREFIX) for n in picks):
            raise Odd
        careful = cls(opened, plan, ())
        if not tables.is_plain_number(careful._lazy.collect_schema()[careful._theirs("score")]):
            raise Odd  # dates, booleans and the like are no scores, long whole numbers may not fit
        values = careful._values(is_all)
        options = plan.options
        reading = understand(values[0], options.positive, options.negative, options.positive_value)
        if prod(map(len, values)) > MOST_CELLS or reading.problems:
            raise Odd
        return cls(opened, plan, values)

    def _values(self, is_all: bool) -> tuple[tuple[str, ...], ...]:
        """The values of each column, as far as they were looked for; files are passed several times, so they are kept."""
        status = Path(self.opened.shard.path).stat()
        names = ("label", *self.plan.keep)
        place = (self.opened.shard.path, status.st_mtime_ns, status.st_size, tuple(map(self._theirs, names)))
        if is_all or place not in _known:
            lazy = self._lazy if is_all else self._lazy.head(SAMPLE)
            try:
                found = lazy.select(self._text(name).unique().implode().alias(name) for name in names).collect()
            except pl.exceptions.PolarsError as error:  # a page that cannot be read
                raise Odd from error
            while len(_known) >= MOST_KNOWN:
                _known.popitem()
            _known[place] = tuple(tuple(sorted(found[name][0].to_list())) for name in names)
        return _known[place]

    @property
    def begins_in_order(self) -> bool:
        """Whether the first ids are in ascending order, and ids alone name the trials: all of them may be so."""
        if not self._is_named_by_item:
            return False
        first = [row[self.opened.match.picks["item"]] for row in self.opened.shape.first]
        return all(a < b for a, b in pairwise(first))

    @property
    def cells(self) -> list[Cell]:
        """All combinations of values, with values renamed as the options say."""
        names = ("label", *self.plan.keep)
        rename = self.plan.options.rename
        settled = [[rename.get(n, {}).get(v, v) for v in values] for n, values in zip(names, self.values, strict=True)]
        return list(product(*settled))

    def pieces(self, with_ids: bool) -> Iterator[Piece]:
        """The rows, many at a time."""
        columns = [place_of(values).expression(self._text(name)).alias(name) for name, values in self._coded]
        columns.append(pl.col(self._theirs("score")).cast(pl.Float64).alias(SCORE))
        if with_ids:
            columns.append(self._item().alias(ITEM))
        try:
            for frame in self._lazy.select(columns).collect_batches(maintain_order=with_ids):
                yield self._piece(frame, with_ids)
        except pl.exceptions.PolarsError as error:  # a score that is text, say
            raise Odd from error

    def _piece(self, frame: pl.DataFrame, with_ids: bool) -> Piece:
        score = frame[SCORE]
        if score.null_count():
            raise Odd
        values = score.to_numpy()
        if not is_sound(values, self.plan.options):
            raise Odd
        if self.plan.turned:
            values = 1 - values if self.plan.options.score_kind == "probability" else -values
        items = frame[ITEM] if with_ids else None
        return Piece(self._codes(frame), values, items)

    @property
    def _coded(self) -> list[tuple[str, tuple[str, ...]]]:
        return list(zip(("label", *self.plan.keep), self.values, strict=True))

    def _codes(self, frame: pl.DataFrame) -> Codes:
        code = np.zeros(frame.height, dtype=np.int64)
        columns = [(place_of(values), frame[name].to_numpy()) for name, values in self._coded]
        for start in range(0, frame.height, STEP):  # what is worked on stays in the cache
            own = code[start : start + STEP]
            for (_, values), (placing, column) in zip(self._coded, columns, strict=True):
                own *= len(values)
                own += placing.places(column[start : start + STEP])
        return code

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
        if not self._is_named_by_item:
            raise Odd
        return self._text("item")

    @property
    def _is_named_by_item(self) -> bool:
        return [n for n in ("item", "target", *self.plan.options.runs) if n in self.opened.match.picks] == ["item"]


class Placing(Protocol):
    """How the place of a text among known values is told: polars makes a number of the text, numpy a place of that."""

    def expression(self, text: pl.Expr) -> pl.Expr:
        """The number."""

    def places(self, column: NDArray[Any]) -> Codes:
        """The places. Raises `Unseen` for a text that is none of the values."""


@lru_cache(maxsize=1024)
def place_of(values: tuple[str, ...]) -> Placing:
    """The quickest way for some values: few are compared with, more are told by their hashes."""
    return _Compared(values) if len(values) <= FEW else _Hashed.of(values) or _Listed(values)


def placed(column: pl.Series, values: Sequence[str]) -> Codes:
    """The place of each text among values. Raises `Unseen` for a text that is none of them.

    >>> placed(pl.Series(["b", "a", "b"]), ["a", "b"]).tolist()
    [1, 0, 1]
    """
    if not len(column):
        return np.zeros(0, dtype=np.int64)
    placing = place_of(tuple(values))
    numbers = column.to_frame().select(placing.expression(pl.first()).alias(" place")).to_series().to_numpy()
    return placing.places(numbers)


@dataclass(frozen=True)
class _Compared:
    values: tuple[str, ...]

    def expression(self, text: pl.Expr) -> pl.Expr:
        found = pl.lit(len(self.values), dtype=pl.UInt8)
        for place, value in reversed(list(enumerate(self.values))):
            found = pl.when(text == value).then(pl.lit(place, dtype=pl.UInt8)).otherwise(found)
        return found

    def places(self, column: NDArray[Any]) -> Codes:
        if len(column) and column.max() == len(self.values):
            raise Unseen
        return column


@dataclass(frozen=True, eq=False)
class _Hashed:
    """By 64-bit hashes: some of their bits, which differ among the values, lead to a place, and the rest must agree."""

    hashes: NDArray[np.uint64]
    shift: np.uint64
    place: NDArray[np.uint16]

    @classmethod
    def of(cls, values: tuple[str, ...]) -> _Hashed | None:
        """None where no bits tell the values apart."""
        hashes = pl.Series(values).hash().to_numpy()
        if len(values) >= SLOTS // 4 or len(np.unique(hashes)) < len(values):
            return None
        for shift in map(np.uint64, range(48)):
            slots = (hashes >> shift) & np.uint64(SLOTS - 1)
            if len(np.unique(slots)) == len(values):
                place = np.zeros(SLOTS, dtype=np.uint16)
                place[slots] = np.arange(len(values))
                return cls(hashes, shift, place)
        return None

    def expression(self, text: pl.Expr) -> pl.Expr:
        return text.hash()

    def places(self, column: NDArray[Any]) -> Codes:
        slots = column >> self.shift
        slots &= np.uint64(SLOTS - 1)
        found = self.place[slots.view(np.int64)]
        if (self.hashes[found] != column).any():
            raise Unseen
        return found


@dataclass(frozen=True)
class _Listed:
    values: tuple[str, ...]

    def expression(self, text: pl.Expr) -> pl.Expr:
        place = text.cast(pl.Enum(list(self.values)), strict=False).to_physical().cast(pl.UInt32)
        return place.fill_null(len(self.values))

    def places(self, column: NDArray[Any]) -> Codes:
        if len(column) and column.max() == len(self.values):
            raise Unseen
        return column


def is_sound(score: Floats, options: ReadSpec) -> bool:
    """Whether the scores are numbers that the options allow."""
    with np.errstate(invalid="ignore", over="ignore"):  # the sum is NaN where a score is, or where both infinities are
        if np.isnan(np.add.reduce(score)) and np.isnan(score).any():
            return False
    return options.score_kind != "probability" or bool(score.min() >= 0.0 and score.max() <= 1.0)
