"""What is counted, settled once and for whoever counts: polars, DuckDB, a warehouse, the tasks of a cluster.

    ShardPlan    how shards are read and what their trials are told apart by: one for an evaluation
    Question     the same for one table whose columns are known: what an engine compiles
    Window       the scores that a pass is about (all of them in a first one), and how finely they are counted

An engine answers a question with counts: a row for each cell and score (or bin of scores) and how many trials it holds.
Counts are whole numbers, so tables may be cut and merged in any way. Scores are counted by an integer key in their order
(`stats.keys`); a bin is a prefix of its bits, so bins of any engine are the same bins. Pass one counts bins; pass two the
exact scores inside the windows where a figure is decided; figures that need every score read them all, window by window.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Literal

from hitmiss.core.question import OnNan, ReadSpec
from hitmiss.stats.sketch import EXACT

Turn = Literal["", "sign", "complement"]
"""What makes a higher score mean the positive class: nothing, −score, or 1 − score."""


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
    engine       who counts: `polars` or `duckdb`; the counts are the same
    """

    options: ReadSpec
    keep: tuple[str, ...] = ()
    bits: int = EXACT
    cuts: tuple[float, ...] = ()
    turned: bool = False
    threshold: float | None = None
    ids: bool = True
    key: KeyFiles | None = None
    engine: str = "polars"

    @property
    def is_exact(self) -> bool:
        """Whether every score is kept."""
        return self.bits == EXACT

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns that trials are told apart by."""
        return ("label", *self.keep)

    @property
    def turn(self) -> Turn:
        """What is done to every score."""
        if not self.turned:
            return ""
        return "complement" if self.options.score_kind == "probability" else "sign"

    @property
    def fingerprint(self) -> str:
        """A hash of every setting: tallies with the same one are of one kind, whoever counted them.

        >>> ShardPlan(ReadSpec()).fingerprint == ShardPlan(ReadSpec(), engine="duckdb").fingerprint
        True
        >>> ShardPlan(ReadSpec()).fingerprint == ShardPlan(ReadSpec(), bits=20).fingerprint
        False
        """
        told = [f.name for f in fields(self) if f.name not in ("ids", "engine", "key")]
        told += ["key"] if self.key is not None else []
        settings = [(name, getattr(self, name)) for name in told]
        return hashlib.sha256(repr(settings).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Question:
    """What is counted of one table whose columns are known. An engine compiles it (`to polars`, `to SQL`).

    columns      our names and those of the table: `score`, what the cells and the ids need
    cells        what trials are told apart by, `label` first; texts, and empty text where there is no value
    identity     the columns that name a trial; none where the table has no ids
    constants    cells that no column tells: the name of a system, the target
    rename       values of cells put in other words: (column, ((from, to), …))
    turn         what makes a higher score mean the positive class; done before anything below
    nan          scores that are NaN or null: `refuse` (counted as NaN, so that whoever asked finds them), `drop`, or
                 `worst`: −inf for labels in `positive`, inf for others
    positive     the words of the positive class, where `nan` or decisions need them
    threshold    where `decision` is a cell and this is given: '1' where score >= threshold, else '0'
    count        the column that says how many trials a row stands for; None: one
    """

    columns: Mapping[str, str]
    cells: tuple[str, ...] = ("label",)
    identity: tuple[str, ...] = ()
    constants: Mapping[str, str] = field(default_factory=dict)
    rename: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    turn: Turn = ""
    nan: OnNan = "refuse"
    positive: tuple[str, ...] = ()
    threshold: float | None = None
    count: str | None = None


@dataclass(frozen=True)
class Window:
    """The trials that a pass counts, and how finely.

    bits     of the keys that they are counted by: `EXACT`, or fewer for bins
    ranges   the scores, as ascending ranges (first, last) with both ends included; None: all
    cuts     scores at which bins are cut in two
    """

    bits: int = EXACT
    ranges: tuple[tuple[float, float], ...] | None = None
    cuts: tuple[float, ...] = ()

    @cached_property
    def mark(self) -> str:
        """A hash of it, for the fingerprint of what it is counted by."""
        return "+" + hashlib.sha256(repr(self).encode()).hexdigest()[:8]
