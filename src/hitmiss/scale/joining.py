"""Shards whose labels stand in a key: opened and read piece by piece like others, each piece with the key beside it.

A piece of scores gets the columns that are taken from the key, and `AT`: the row of the key that each id stands in. That
row names a trial exactly, so by it repeated ids are found, ids that the key lacks (`UNLISTED`), and those without a score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

import numpy as np
import polars as pl

from hitmiss.core.question import SYSTEM, ReadSpec
from hitmiss.io.checks import check_labels
from hitmiss.io.columns import Match, understand
from hitmiss.io.diagnostics import Ledger, Place
from hitmiss.io.parse import Table, expand
from hitmiss.io.tables import Stack
from hitmiss.scale.keyfile import Key, Rows, key_of
from hitmiss.scale.plan import KeyFiles, Shard, ShardPlan
from hitmiss.scale.reading import Opened, Piece, Read, digest, open_shard, pieces

AT: Final = "row of the key"
UNLISTED: Final = np.uint64(2**64 - 1)
FROM_KEY: Final = -1
"""The position of a column that the file of scores does not have."""
T = TypeVar("T", bound=Table)


@dataclass(frozen=True)
class Joined(Opened):
    """A file of scores and the key: `match` tells of the columns of both, `own` of those of the scores."""

    own: Match
    key: KeyFiles


def open_joined(shard: Shard, plan: ShardPlan, ledger: Ledger) -> Opened:
    """Recognise the columns of a shard, and with them those of its key."""
    if plan.key is None:
        return open_shard(shard, plan.options, ledger)
    return beside(open_shard(shard, plan.options, ledger, "scores"), plan.key)


def beside(opened: Opened, key: KeyFiles) -> Joined:
    """A file of scores with the columns that are taken from the key."""
    picks = {**opened.match.picks, **dict.fromkeys(key.columns, FROM_KEY)}
    theirs = {**{name: name for name in key.columns}, **opened.match.theirs}
    slices = tuple(dict.fromkeys((*opened.match.slices, *(name for name in key.columns if name != "label"))))
    match = replace(opened.match, picks=picks, theirs=theirs, slices=slices)
    return Joined(opened.shard, opened.shape, match, opened.match, key)


def look_at_key(given: str | Sequence[str], options: ReadSpec, ledger: Ledger) -> list[Opened]:
    """The files of a key, recognised; all must be of one kind."""
    opened = [open_shard(Shard(str(path)), options, ledger, "key") for path in expand(given)]
    for one in opened[1:]:
        if set(one.match.picks) != set(opened[0].match.picks):
            what = f"its columns differ from those of {opened[0].name}"
            raise ledger.stop("shards-differ", what, "give shards of one kind", [Place(one.name, 1)])
    return opened


def files_of(key: Sequence[Opened], scores: Opened, keep: Sequence[str]) -> KeyFiles:
    """What is taken from a key: the label, and the columns to be kept that it has."""
    theirs, ours = key[0].match.picks, scores.match.picks
    on = tuple(name for name in ("item", "target") if name in theirs and name in ours)
    shared = tuple(name for name in theirs if name in ours and name not in ("item", SYSTEM, *on))
    columns = tuple(
        dict.fromkeys(("label", *(name for name in ("target", *keep) if name in theirs and name not in on)))
    )
    paths = tuple(one.shard.path for one in key)
    return KeyFiles(paths, tuple(digest(path)[0] for path in paths), on, columns, shared)


def joined_pieces(
    opened: Opened, picks: Mapping[str, int], read: Read, ledger: Ledger, options: ReadSpec, quick: bool = False
) -> Iterator[Piece]:
    """The columns `picks` of a shard, piece by piece, each with its rows of the key where there is one."""
    if not isinstance(opened, Joined):
        yield from pieces(opened, picks, read, ledger, quick)
        return
    joining = _Joining(key_of(opened.key, options), picks, opened.own, options, opened.shard.system)
    plain = Opened(opened.shard, opened.shape, opened.own)
    guess = 0
    for piece in pieces(plain, joining.wanted, read, ledger, quick):
        if not piece.frame.height:
            continue
        found = joining.key.find(piece.frame, guess)
        guess = int(found[-1]) + 1
        again = partial(joining.again, piece, found) if piece.again is not None else None
        yield replace(joining.join(piece, found, ledger), again=again)


@dataclass(frozen=True, eq=False)
class _Joining:
    """How pieces of one shard are joined."""

    key: Key
    picks: Mapping[str, int]
    own: Match
    options: ReadSpec
    system: str | None

    @property
    def wanted(self) -> dict[str, int]:
        """The columns that are read of the scores: what is asked for, what names a trial, what both sides say."""
        names = (*self.picks, *self.key.files.on, *self.key.files.shared)
        return {name: at for name, at in self.own.picks.items() if name in names}

    @property
    def first(self) -> int:
        """What the first row of the key counts as: the rows of a further system follow on."""
        return 0 if self.system is None else self.options.score_columns.index(self.system) * self.key.height

    def again(self, piece: Piece, found: Rows, ledger: Ledger) -> Table:
        """The rows as the door reads them, joined."""
        return self.join(piece.careful(ledger), found, Ledger())  # conflicts were found the first time

    def join(self, table: T, found: Rows, ledger: Ledger) -> T:
        """Scores with the columns of the key beside them. What both say must be the same."""
        listed = found >= 0
        rows = pl.Series(found) if listed.all() else pl.Series(found).set(pl.Series(~listed), None)
        taken = {
            name: self._taken(name, rows) for name in dict.fromkeys((*self.key.files.columns, *self.key.files.shared))
        }
        self._refuse_conflicts(table, taken, pl.Series(listed), ledger)
        at = pl.Series(AT, np.where(listed, (found + self.first).astype(np.uint64), UNLISTED))
        own = [
            table.frame[name] for name in self.own.picks if name in self.picks and name not in self.key.files.columns
        ]
        others = [
            values.alias(name)
            for name, values in taken.items()
            if name in self.picks and name in self.key.files.columns
        ]
        return replace(table, frame=pl.DataFrame([*own, *others, at]))

    def _taken(self, name: str, rows: pl.Series) -> pl.Series:
        return self.key.stack.frame[name].gather(rows).cast(pl.String)

    def _refuse_conflicts(
        self, table: Table, taken: Mapping[str, pl.Series], listed: pl.Series, ledger: Ledger
    ) -> None:
        for name in self.key.files.shared:
            stack = Stack.of([table], self.own.theirs)
            ours, theirs = (self._said(name, values) for values in (table.frame[name], taken[name]))
            if name == "label":
                words = {*ours.unique(), *(w for w in theirs.unique() if w is not None)}
                reading = understand(
                    sorted(words), self.options.positive, self.options.negative, self.options.positive_value
                )
                check_labels(stack.put(ours.alias(name)), name, reading, ledger)
                ours, theirs = (values.is_in(list(reading.positive_words)) for values in (ours, theirs))
            differ = (ours != theirs) & listed
            if differ.any():
                kind = "label-conflict" if name == "label" else "column-conflict"
                what = f"{{n}} row{{s}} with another {name} than in the key"
                fix = "make both files say the same, or take the column out of one"
                places = stack.places(differ.fill_null(False), name)
                ledger.add(kind, what, fix, places, stack.title(name), f"the key says another {name}")

    def _said(self, name: str, values: pl.Series) -> pl.Series:
        return values.replace(dict(self.options.rename.get(name, {})))
