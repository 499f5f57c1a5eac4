"""What a pass over a shard does, settled once for all shards: a value that travels to whoever makes the pass."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from functools import cached_property

from hitmiss.readspec import ReadSpec
from hitmiss.stats.keys import EXACT


@dataclass(frozen=True)
class Shard:
    """One file of trials; of a file with the scores of several systems, those of one. Told apart by content, never by place."""

    path: str
    system: str | None = None

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return self.path.replace("\\", "/").rpartition("/")[2]


@dataclass(frozen=True)
class KeyFiles:
    """The key of the scores, which travels as the paths of its files: whoever makes a pass reads it once.

    sha256    of each file
    on        the columns that name a trial on both sides
    columns   what is taken from the key: the label, slices
    shared    columns of both sides, which must agree
    """

    paths: tuple[str, ...]
    sha256: tuple[str, ...]
    on: tuple[str, ...] = ("item",)
    columns: tuple[str, ...] = ("label",)
    shared: tuple[str, ...] = ()

    def __repr__(self) -> str:  # what a plan is told by: the content of the files, not where they lie
        return f"KeyFiles({sorted(self.sha256)}, {self.on}, {self.columns}, {self.shared})"


@dataclass(frozen=True)
class ShardPlan:
    """How shards are read and counted. Tallies made by different plans do not merge.

    options      how files are read, as at the door
    keep         the columns that cells are told apart by, besides the label: runs, slices of the groupings, `decision`
    bits         of the key that scores are counted by: `EXACT`, or fewer (bins)
    cuts         keys at which bins are cut in two: fixed thresholds, so that counts at them are exact
    turned       whether a higher score means the negative class in the file
    threshold    decide at it (score >= threshold), where `decision` is kept and no column has it
    ids          whether the hash of every id (with a key: its row there) is carried along, for finding repeats
    key          the key that the shards are joined with; None where they hold their labels
    """

    options: ReadSpec
    keep: tuple[str, ...] = ()
    bits: int = EXACT
    cuts: tuple[float, ...] = ()
    turned: bool = False
    threshold: float | None = None
    ids: bool = True
    key: KeyFiles | None = None

    @property
    def is_exact(self) -> bool:
        """Whether every score is kept."""
        return self.bits == EXACT

    @property
    def fingerprint(self) -> str:
        """A hash of every setting: tallies with the same one are of one kind.

        >>> ShardPlan(ReadSpec()).fingerprint == ShardPlan(ReadSpec()).fingerprint
        True
        >>> ShardPlan(ReadSpec()).fingerprint == ShardPlan(ReadSpec(), bits=20).fingerprint
        False
        """
        told = [f.name for f in fields(self) if f.name != "ids" and (f.name != "key" or self.key is not None)]
        settings = [(name, getattr(self, name)) for name in told]
        return hashlib.sha256(repr(settings).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Window:
    """The trials that a second pass fetches: those with a key in one of the ranges of their cell, both ends included.

    bits     of the keys that they are counted by: `EXACT`, or fewer for finer bins of a part of the scores
    cells    the cells by their values (label first, then `ShardPlan.keep`); None: the ranges are for all cells alike
    first    the lowest key of each range, ascending, for each cell (one list for all cells where `cells` is None)
    last     the highest key of each
    """

    bits: int = EXACT
    cells: tuple[tuple[str, ...], ...] | None = None
    first: tuple[tuple[int, ...], ...] = ()
    last: tuple[tuple[int, ...], ...] = ()

    @cached_property
    def mark(self) -> str:
        """A hash of it, for the fingerprint of what it is counted by."""
        return "+" + hashlib.sha256(repr(self).encode()).hexdigest()[:8]

    @classmethod
    def of_all(cls, first: int, last: int) -> Window:
        """All trials with a key in one range."""
        return cls(EXACT, None, ((first,),), ((last,),))
