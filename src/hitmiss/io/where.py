"""The rows that `where` keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from hitmiss.core.columns import INNER, user_name
from hitmiss.core.errors import UnknownName
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io import loaded
from hitmiss.io.columns import Match


@dataclass(frozen=True)
class Choice:
    """The effect of `where` on one column: its values, how many rows were kept, and out of how many."""

    known: frozenset[str]
    kept: int
    total: int


def choose(stack: loaded.LoadedRows, match: Match, options: ReadSpec) -> tuple[loaded.LoadedRows, list[Choice]]:
    """Return the rows of a table that `where` keeps, and for each column used the choice that was made."""
    choices = []
    for name, values in options.where.items():
        column = match.own(name)
        if column is None:
            raise no_such_column(name, [match])
        is_kept, known = rows_among(stack.frame[column], name, values, options)
        total = stack.frame.height
        stack = stack.keep(is_kept)
        choices.append(Choice(known, stack.frame.height, total))
    return stack, choices


def keep_rows(stack: loaded.LoadedRows, match: Match, options: ReadSpec) -> loaded.LoadedRows:
    """Return the rows that `where` keeps; a value that no row has is an error that suggests the nearest value."""
    stack, choices = choose(stack, match, options)
    for (name, values), choice in zip(options.where.items(), choices, strict=True):
        for value in values:
            if value not in choice.known:
                raise UnknownName(f"value of {name}", value, sorted(choice.known)[:20])
    return stack


def rows_among(
    column: pl.Series, name: str, values: Sequence[str], options: ReadSpec
) -> tuple[pl.Series, frozenset[str]]:
    """Return which rows have one of the values, as spelt in the file or after renaming, and all values."""
    texts = column.cast(pl.String)
    renamed = texts.replace(dict(options.rename.get(column.name, options.rename.get(name, {}))))
    wanted = list(values)
    return texts.is_in(wanted) | renamed.is_in(wanted), frozenset((*texts.unique(), *renamed.unique()))


def no_such_column(name: str, matches: Sequence[Match]) -> UnknownName:
    there = tuple(dict.fromkeys(user_name(n) for match in matches for n in match.picks if not n.startswith(INNER)))
    return UnknownName("column to choose rows by", name, there)
