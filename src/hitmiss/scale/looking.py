"""The first look at shards and their key: what the columns are, how many trials to expect, which way scores point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hitmiss.core import progress
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.question import SYSTEM, ReadSpec, find, shown
from hitmiss.core.trials import FIXED
from hitmiss.io.columns import Reading, Role, refuse_undeclared, same_class, understand
from hitmiss.io.diagnostics import Ledger, Place, Stop
from hitmiss.scale.keyfile import beside, files_of, look_at_key, read_key
from hitmiss.scale.plan import KeyFiles, Shard
from hitmiss.scale.reading import Opened, open_shard, trials_expected

LEAST: Final = 10**7
"""What is left of the memory for the scores, however large the key is."""


@dataclass(frozen=True)
class Looked:
    """What a first look tells.

    opened     the shards with their columns, those of the key included
    key        the key, where there is one; it was read and checked
    expected   about how many trials there are
    turned     whether a higher score means the negative class
    memory     what the key leaves of it
    columns    the wanted columns, by the names that they are stored under
    """

    opened: Sequence[Opened]
    key: KeyFiles | None
    expected: int
    turned: bool
    memory: int
    columns: Sequence[str]


def look(
    shards: Sequence[Shard], key: str | Sequence[str] | None, options: ReadSpec, columns: Sequence[str], memory: int
) -> Looked:
    """Recognise the columns of every shard and of the key, which is read; `columns` are wanted from either."""
    opened = look_at_shards(shards, options, "both" if key is None else "scores")
    ledger = Ledger()
    try:
        if key is None:
            refuse_undeclared(options, _names(opened), opened[0].name, ledger)
            columns = found_columns(columns, opened[0])
            return Looked(opened, None, trials_expected(opened), is_turned(opened, options), memory, columns)
        return _with_key(opened, key, options, columns, memory, ledger)
    except Stop:
        raise ledger.error() from None


def _with_key(
    opened: Sequence[Opened],
    given: str | Sequence[str],
    options: ReadSpec,
    columns: Sequence[str],
    memory: int,
    ledger: Ledger,
) -> Looked:
    if set(options.runs) - {SYSTEM}:
        raise UsageError("a key is not joined with several runs at a time; leave --stream out")
    sides = look_at_key(given, options, ledger)
    refuse_undeclared(options, (*_names(opened), *_names(sides)), opened[0].name, ledger)
    columns = found_columns(columns, opened[0], sides[0])
    files = files_of(sides, opened[0], columns)
    key = read_key(files, options, ledger, memory)
    if ledger.findings:
        raise ledger.error()
    joined = [beside(one, files) for one in opened]
    expected = min(trials_expected(opened), key.height)
    return Looked(joined, files, expected, _is_reversed(key.reading, options), max(memory - key.bytes, LEAST), columns)


def found_columns(columns: Sequence[str], *sides: Opened) -> list[str]:
    """Columns to group or draw by, as they are stored; one that no file has is refused."""
    there = list(dict.fromkeys(name for side in sides for name in side.match.picks))
    found = {name: find(name, there) for name in columns}
    for name, column in found.items():
        if column is None:
            raise UnknownName("column", name, [shown(c) for c in there if c not in FIXED])
    return [column for column in found.values() if column is not None]


def look_at_shards(shards: Sequence[Shard], options: ReadSpec, role: Role = "both") -> list[Opened]:
    """Recognise the columns of every shard; all must be of one kind."""
    ledger = Ledger()
    found: list[Opened] = []
    for shard in progress.each(shards, "looking at the shards"):
        try:
            found.append(open_shard(shard, options, ledger, role))
            first = next(one for one in found if one.shard.system == shard.system)
            if set(found[-1].match.picks) != set(first.match.picks):
                what = f"its columns differ from those of {first.name}"
                ledger.add("shards-differ", what, "give shards of one kind", [Place(found[-1].name, 1)])
        except Stop:
            continue
    if ledger.findings:
        raise ledger.error()
    return found


def _names(opened: Sequence[Opened]) -> tuple[str, ...]:
    """The names of all columns; where there is no header, positions in both spellings."""
    found: dict[str, None] = {}
    for one in opened:
        if one.match.has_header:
            found |= dict.fromkeys(one.shape.names or one.shape.first[0])
        else:
            found |= dict.fromkeys(said.format(i + 1) for i in range(one.shape.width) for said in ("{}", "column_{}"))
    return tuple(found)


def is_turned(opened: Sequence[Opened], options: ReadSpec) -> bool:
    """Whether a higher score means the negative class, as far as the caller and the first rows tell."""
    if options.higher is None:
        return False
    rows = {
        row[o.match.picks["label"]]
        for o in opened
        for row in o.shape.first[o.match.has_header and o.shape.names is None :]
    }
    return _is_reversed(understand(sorted(rows), options.positive, options.negative, options.positive_value), options)


def _is_reversed(reading: Reading, options: ReadSpec) -> bool:
    higher = options.higher
    return higher is not None and same_class(higher, reading.negative) and not same_class(higher, reading.positive)
