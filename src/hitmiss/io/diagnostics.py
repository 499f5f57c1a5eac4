"""What the door finds wrong: groups of places, told in one sentence, listed one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from hitmiss.core.errors import DataError, Fault

SHOWN: Final = 5
LONGEST: Final = 60
LISTED: Final = 12


@dataclass(frozen=True)
class Place:
    """Where: file, line of the file from 1, the value found there and the id of its row."""

    file: str | None = None
    row: int | None = None
    value: str | None = None
    item: str | None = None


@dataclass(frozen=True)
class Finding:
    """One kind of fault at all its places. `what` may use {n} and {s} (the plural s); `fix` tells what to do."""

    kind: str
    what: str
    fix: str
    places: tuple[Place, ...]
    column: str | None = None
    each: str = ""

    @property
    def count(self) -> str:
        """What is wrong, how often, and the first ids."""
        n = len(self.places)
        return counted(self.what, n) + _ids(self.places)

    @property
    def sentence(self) -> str:
        """Where, what, how often, the first ids, how to mend it."""
        return f"{_where(self.places)}{self.count}; {self.fix}"

    def faults(self) -> Iterable[Fault]:
        """One fault a place."""
        message = self.each or counted(self.what, 1)
        for p in self.places:
            about = f"{message}, id {quoted(p.item)}" if p.item is not None else message
            yield Fault(self.kind, about, p.file, p.row, self.column, p.value)


@dataclass
class Ledger:
    """Findings, notes and choices, as reading goes on."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)

    def add(
        self,
        kind: str,
        what: str,
        fix: str,
        places: Sequence[Place],
        column: str | None = None,
        each: str = "",
    ) -> None:
        """Write a finding down; one without places is none."""
        if places:
            self.findings.append(Finding(kind, what, fix, tuple(places), column, each))

    def stop(
        self,
        kind: str,
        what: str,
        fix: str,
        places: Sequence[Place],
        column: str | None = None,
        each: str = "",
    ) -> Stop:
        """Write down a finding after which nothing further can be read; to be raised."""
        self.add(kind, what, fix, places, column, each)
        return Stop()

    def take(self, other: Ledger) -> None:
        """Put what another ledger holds behind what this one has."""
        self.findings += other.findings
        self.notes += other.notes
        self.choices += other.choices

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Every fault at every place."""
        return tuple(fault for finding in self.findings for fault in finding.faults())

    def error(self) -> DataError:
        """All findings as one error: the sentence of the first, then what else there is."""
        first, *others = self.findings
        more = "".join(f"; also {f.count}" for f in others)
        return DataError(first.sentence + more, self.faults)


class Stop(Exception):
    """Reading cannot go on; the ledger says why. Never leaves the package."""


def counted(what: str, n: int) -> str:
    """The text with its number filled in. Not `str.format`: the text may quote a file that has braces.

    >>> counted("{n} label{s} '{x}'", 2)
    "2 labels '{x}'"
    """
    return what.replace("{n}", f"{n:,}").replace("{s}", "" if n == 1 else "s")


def quoted(text: str | None) -> str:
    r"""Text from a file as a message may show it: quoted, controls escaped, not too long.

    >>> print(quoted("E_01\x1b[31m\u202e"))
    'E_01\x1b[31m\u202e'
    >>> quoted("x" * 100)[-4:]
    "xx…'"
    """
    text = text or ""
    return repr(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def listed(names: Sequence[str]) -> str:
    """The first names of a list, quoted, and how many more there are.

    >>> listed(["id", "score"]), listed([str(i) for i in range(99)])[-11:]
    ("'id', 'score'", 'and 87 more')
    """
    rest = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(quoted, names[:LISTED])) + rest


def shown(name: str) -> str:
    r"""A file's name with its controls escaped.

    >>> print(shown("a\x1b[2J.tsv"), shown("scores.tsv"))
    a\x1b[2J.tsv scores.tsv
    """
    return name if name.isprintable() else repr(name)[1:-1]


def _where(places: Sequence[Place]) -> str:
    first = places[0]
    file = f"{shown(first.file)}" if first.file else ""
    row = f"row {first.row}" if first.row is not None else ""
    place = ", ".join(filter(None, (file, row)))
    return f"{place}: " if place else ""


def _ids(places: Sequence[Place]) -> str:
    ids = list(dict.fromkeys(p.item for p in places if p.item is not None))
    if not ids:
        return ""
    dots = ", …" if len(ids) > SHOWN else ""
    return f" (id{'s' if len(ids) > 1 else ''} {', '.join(map(quoted, ids[:SHOWN]))}{dots})"
