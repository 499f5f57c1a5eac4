"""The counting plan: what is counted, the same for every engine and every task."""

from __future__ import annotations

from dataclasses import dataclass

from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.scale import ScoreScale


@dataclass(frozen=True)
class Shard:
    """One file of trials. Shards are distinguished by content, never by path."""

    path: str

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return self.path.replace("\\", "/").rpartition("/")[2]


@dataclass(frozen=True)
class KeyFiles:
    """The key of the scores, sent as the paths of its files: each process that makes a pass reads it once.

    sha256    of each file
    on        the columns that identify a trial on both sides
    columns   what is taken from the key: the label, slices
    shared    columns of both sides, which must agree
    there     all columns that it has
    """

    paths: tuple[str, ...]
    sha256: tuple[str, ...]
    on: tuple[str, ...] = ("item",)
    columns: tuple[str, ...] = ("label",)
    shared: tuple[str, ...] = ()
    there: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShardPlan:
    """How shards are read and counted.

    options      how files are read, as in the in-memory reader
    keep         the columns that define the cells, besides the label: runs, slices of the groupings, `decision`
    turned       whether a higher score means the negative class in the file
    threshold    decide with it, on the scale of the files, if `decision` is kept and no column has it
    ids          whether the hash of every id (with a key: its row there) is carried along, to find repeats
    key          the key that the shards are joined with; None if they hold their labels
    engine       what counts: `polars` or `duckdb`; the counts are the same
    is_counted   whether a row stands for as many trials as its column `n` says
    are_probabilities  whether scores outside 0..1 are refused
    """

    options: ReadSpec
    keep: tuple[str, ...] = ()
    turned: bool = False
    threshold: float | None = None
    ids: bool = True
    key: KeyFiles | None = None
    engine: str = "polars"
    is_counted: bool = False
    are_probabilities: bool = False

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns that define the cells."""
        return ("label", *self.keep)

    @property
    def read_cells(self) -> tuple[str, ...]:
        """Those that are read from rows: decisions at a threshold are made here, whatever the rows say."""
        return tuple(name for name in self.cells if not (name == "decision" and self.decides))

    @property
    def scale(self) -> ScoreScale:
        """How the scores of the files become those that are counted."""
        return ScoreScale(self.turned, self.options.score_kind == "probability")

    @property
    def decides(self) -> bool:
        """Whether trials are counted by their decision at the threshold."""
        return "decision" in self.keep and self.threshold is not None
