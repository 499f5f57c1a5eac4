"""Shards: files whose columns are known, read in pieces by the reader (`io.tables.pieces`)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from hitmiss.core import registry
from hitmiss.core.question import SYSTEM, ReadSpec
from hitmiss.core.trials import Header, Source
from hitmiss.io import tables
from hitmiss.io.checks import stems
from hitmiss.io.columns import SYSTEM_PREFIX, Match, Role, recognise
from hitmiss.io.parse import GZIP, STDIN, Kinds, Ledger, Place, Shape, Table, digest, expand
from hitmiss.io.tables import Read, frame_of
from hitmiss.outofcore.plan import Shard

PACKED: Final = 6
"""How much longer a compressed text becomes, roughly."""
CONSTANT: Final = -1
"""The position of a column that the file does not have: the name of the system."""


@dataclass(frozen=True)
class Opened:
    """A shard whose columns are known: its first rows and what they were recognised as.

    `by_stem`: its ids are read without folder and suffix.
    """

    shard: Shard
    shape: Shape
    match: Match
    by_stem: bool = field(default=False, kw_only=True)

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return Path(self.shard.path).name

    @property
    def is_parquet(self) -> bool:
        """Whether the file is a Parquet file."""
        return self.shape.content is None


def open_shard(shard: Shard, options: ReadSpec, ledger: Ledger, role: Role = "both") -> Opened:
    """Look at the beginning of a file and recognise its columns, like the in-memory reader."""
    if str(shard.path) == STDIN:
        what = "stdin can be read once, and streaming may read a file twice"
        raise ledger.stop("unreadable-file", what, "write it to a file, or leave --stream out", [Place("stdin")])
    shape = tables.look_at_head(shard.path, options, ledger)
    match = recognise(shape, role, options, ledger)
    match = match if shard.system is None else _of_one_system(match, shard.system)
    return Opened(shard, shape, match, by_stem=options.matching == "stem")


def _of_one_system(match: Match, system: str) -> Match:
    """Return a match with one system's scores as the scores, and its name as the run."""
    column = SYSTEM_PREFIX + system
    picks = {name: at for name, at in match.picks.items() if not name.startswith(SYSTEM_PREFIX)}
    if column in match.picks:  # otherwise the absence is reported later: see `keyed`
        picks["score"] = match.picks[column]
    return replace(match, picks={**picks, SYSTEM: CONSTANT}, theirs={**match.theirs, "score": system})


def rows_of_parquet(path: str) -> int:
    """Return the number of rows that a Parquet file declares."""
    return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())


def trials_expected(opened: Sequence[Opened]) -> int:
    """Estimate the number of trials: from the row counts of Parquet files, and from the size of texts."""
    return sum(rows_of_parquet(o.shard.path) if o.is_parquet else _lines_expected(o) for o in opened)


def _lines_expected(opened: Opened) -> int:
    path = Path(opened.shard.path)
    with path.open("rb") as file:
        times = PACKED if file.read(2) == GZIP else 1
    shown = opened.shape.content.data if opened.shape.content else b"\n"
    return int(path.stat().st_size * times * max(shown.count(b"\n"), 1) / max(len(shown), 1)) + 1


def pieces(
    opened: Opened, picks: Mapping[str, int], read: Read, ledger: Ledger, kinds: Kinds | None = None
) -> Iterator[Table]:
    """Yield the columns `picks` of a shard in pieces (see `io.tables.pieces`), ids by their stems if requested."""
    own = {name: at for name, at in picks.items() if at != CONSTANT}
    added = [pl.lit(opened.shard.system).alias(SYSTEM)] if len(own) < len(picks) else []
    added += [stems(pl.col("item"))] if opened.by_stem and "item" in own else []
    for piece in tables.pieces(opened.shard.path, opened.shape, opened.match, own, read, ledger, kinds):
        yield replace(piece, frame=piece.frame.with_columns(added)) if added else piece


# ----------------------------------------------------------------------
# Files that need a plug-in's reader, streamed: temporarily converted to Parquet files of the same names.


@dataclass(frozen=True)
class Plugged:
    """What to count, how to read it, and the original file of each (by the hash of the converted file)."""

    scores: Any
    options: ReadSpec
    made_from: Mapping[str, Source] = field(default_factory=dict)

    def named(self, header: Header) -> Header:
        """Return a header whose sources are the original files."""
        return replace(header, sources=tuple(self.made_from.get(s.sha256, s) for s in header.sources))


@contextmanager
def plugged(scores: Any, options: ReadSpec, scratch: str | None) -> Iterator[Plugged]:
    """Convert files of a plug-in's reader to tables in a folder made in `scratch`; leave other files unchanged."""
    reader = registry.find("reader", options.layout) if options.layout is not None else None
    if not callable(reader):
        yield Plugged(scores, options)
        return
    with tempfile.TemporaryDirectory(prefix="hitmiss-", dir=scratch) as folder:
        made = [_made(reader, path, Path(folder) / str(at)) for at, path in enumerate(map(str, expand(scores)))]
        yield Plugged(
            [str(path) for path, _, _ in made], replace(options, layout=None), {sha: was for _, sha, was in made}
        )


def _made(reader: Callable[..., Any], path: str | Path, folder: Path) -> tuple[Path, str, Source]:
    folder.mkdir()
    table = folder / Path(path).name
    frame_of(reader(path)).write_parquet(table)
    return table, digest(str(table))[0], Source(table.name, digest(str(path))[0])
