"""Shards whose columns are known: the first look at them, and the direction of their scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hitmiss.core import progress
from hitmiss.core.classes import Reading, same_class
from hitmiss.core.columns import find_column, user_name
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.finding import Place
from hitmiss.core.number_bands import NumberBands
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.trials import FIXED
from hitmiss.io import tables
from hitmiss.io.columns import Match, Role, recognise, refuse_undeclared
from hitmiss.io.diagnostics import Diagnostics, Stop
from hitmiss.io.formats import GZIP
from hitmiss.io.labels import understand
from hitmiss.io.sides import look_by_plugin, names_in
from hitmiss.io.source import Kinds, ReadProgress, SourceHead, Table
from hitmiss.outofcore.plan import Shard

PACKED: Final = 6
"""How much longer a compressed text becomes, roughly."""


@dataclass(frozen=True)
class OpenedShard:
    """A shard whose columns are known: its first rows, what they were recognised as, and about how many trials it has."""

    shard: Shard
    shape: SourceHead
    match: Match
    trials: int = 0

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return self.shard.name

    @property
    def is_parquet(self) -> bool:
        """Whether the file is a Parquet file."""
        return self.shape.content is None

    def pieces(
        self, names: Sequence[str], read: ReadProgress, ledger: Diagnostics, kinds: Kinds | None = None
    ) -> Iterator[Table]:
        """Yield columns of the file in pieces (see `io.tables.pieces`)."""
        picks = {name: at for name, at in self.match.picks.items() if name in names}
        match = self.match
        for piece in tables.pieces(
            self.shard.path, self.shape, match.has_header, match.numeric, picks, read, ledger, kinds
        ):
            progress.report(f"rows of {self.name}", read.rows, None)
            yield piece


def open_shard(shard: Shard, options: ReadSpec, ledger: Diagnostics, role: Role = "both") -> OpenedShard:
    """Look at the beginning of a file and recognise its columns, like the in-memory reader."""
    shape = look_by_plugin(shard.path, role, options, ledger) or tables.look_at_head(shard.path, options, ledger)
    return OpenedShard(shard, shape, recognise(shape, role, options, ledger), _trials_of(shard, shape))


def _trials_of(shard: Shard, shape: SourceHead) -> int:
    """Return as many trials as a Parquet file declares; of a text, about how many, judged by its size."""
    if shape.is_read and shape.frame is not None:
        return shape.frame.height
    path = Path(shard.path)
    if shape.content is None:
        return shape.rows
    with path.open("rb") as file:
        times = PACKED if file.read(2) == GZIP else 1
    seen = shape.content.data
    return int(path.stat().st_size * times * max(seen.count(b"\n"), 1) / max(len(seen), 1)) + 1


def found_columns(columns: Sequence[str], there: Iterable[str]) -> list[str]:
    """Return columns to group or resample by, under their stored names; refuse bands, and a column that no file has."""
    known = list(there)
    found = {name: find_column(name, known) for name in columns}
    for name, column in found.items():
        if column is None:
            if NumberBands.parse(name) is not None:
                raise UsageError.of("needs-every-trial/bands", bands=name)
            raise UnknownName("column", name, [user_name(c) for c in known if c not in FIXED])
    return [column for column in found.values() if column is not None]


def look_at_shards(shards: Sequence[Shard], options: ReadSpec, role: Role) -> list[OpenedShard]:
    """Recognise the columns of every shard; all must be of one kind."""
    found, ledger = list[OpenedShard](), Diagnostics()
    for shard in progress.each(shards, "looking at the shards"):
        with suppress(Stop):
            one = open_shard(shard, options, ledger, role)
            # of a file that a plug-in has read, only the first rows are kept
            found.append(replace(one, shape=replace(one.shape, frame=None)) if one.shape.is_read else one)
            if set(one.match.picks) != set(found[0].match.picks):
                ledger.add("shards-differ", [Place(found[-1].name, 1)], other=found[0].name)
    if role == "both" and not ledger.findings:
        with suppress(Stop):
            refuse_undeclared(options, names_of_shards(found), found[0].name, ledger)
    if ledger.findings:
        raise ledger.error()
    return found


def names_of_shards(opened: Sequence[OpenedShard]) -> tuple[str, ...]:
    """Return the names of all columns that the shards have."""
    return tuple(dict.fromkeys(name for one in opened for name in names_in([one.shape], one.match)))


def is_negated(opened: Sequence[OpenedShard], options: ReadSpec) -> bool:
    """Return whether a higher score means the negative class, judged from the options and the first rows."""
    if options.higher is None:
        return False
    words = {
        row[o.match.picks["label"]]
        for o in opened
        for row in o.shape.first[o.match.has_header and o.shape.names is None :]
    }
    return is_for_negative(
        understand(sorted(words), options.positive, options.negative, options.positive_value), options
    )


def is_for_negative(reading: Reading, options: ReadSpec) -> bool:
    """Return whether a higher score means the negative class."""
    higher = options.higher
    return higher is not None and same_class(higher, reading.negative) and not same_class(higher, reading.positive)
