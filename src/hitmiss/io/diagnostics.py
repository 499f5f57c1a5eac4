"""What the reader finds wrong: findings group places, are reported in one sentence, and can be listed one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hitmiss.core.errors import DataError, Fault

SHOWN: Final = 5
LONGEST_QUOTE: Final = 60
LISTED: Final = 12


@dataclass(frozen=True)
class Place:
    """The place of a fault: file, line (from 1), the value found there, the id of its row, and its column if it varies."""

    file: str | None = None
    row: int | None = None
    value: str | None = None
    item: str | None = None
    column: str | None = None


@dataclass(frozen=True)
class Finding:
    """One kind of fault with all its places. `what` may use {n} and {s} (the plural s); `fix` says what to do."""

    kind: str
    what: str
    fix: str
    places: tuple[Place, ...]
    column: str | None = None
    each: str = ""
    choices: tuple[Mapping[str, str], ...] = ()

    @property
    def likeness(self) -> tuple[str | None, ...]:
        """What findings have in common that are reported as one; the fix for words as numbers quotes the first word."""
        return self.kind, self.what, self.fix if self.kind != "not-a-number" else "", self.column, self.each

    @property
    def count(self) -> str:
        """Return what is wrong, how often, and the first ids."""
        n = len(self.places)
        return counted(self.what, n) + _ids(self.places)

    @property
    def sentence(self) -> str:
        """Return one sentence: where, what, how often, the first ids, and how to fix it."""
        return f"{_where(self.places)}{self.count}; {self.fix}"

    def faults(self) -> Iterable[Fault]:
        """Yield one fault per place."""
        message = self.each or counted(self.what, 1)
        for p in self.places:
            about = f"{message}, id {quoted(p.item)}" if p.item is not None else message
            yield Fault(self.kind, about, p.file, p.row, p.column or self.column, p.value)


@dataclass
class Diagnostics:
    """The findings, notes and choices collected while reading."""

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
        choices: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Record a finding; a finding without places is ignored, and one like an earlier one is merged with it.

        `choices` are options of which one settles the question.

        >>> ledger = Diagnostics()
        >>> for row in (2, 9):
        ...     ledger.add("nan-score", "{n} NaN score{s}", "fix them", [Place("s.tsv", row)])
        >>> [len(finding.places) for finding in ledger.findings]
        [2]
        """
        if places:
            self._record(Finding(kind, what, fix, tuple(places), column, each, tuple(choices)))

    def _record(self, new: Finding) -> None:
        for at, known in enumerate(self.findings):
            if known.likeness == new.likeness:
                self.findings[at] = replace(known, places=(*known.places, *new.places))
                return
        self.findings.append(new)

    def stop(
        self,
        kind: str,
        what: str,
        fix: str,
        places: Sequence[Place],
        column: str | None = None,
        each: str = "",
    ) -> Stop:
        """Record a finding after which reading cannot continue, and return the exception to raise."""
        self.add(kind, what, fix, places, column, each)
        return Stop()

    def take(self, other: Diagnostics) -> None:
        """Append the contents of another ledger to this one."""
        for finding in other.findings:
            self._record(finding)
        self.notes += other.notes
        self.choices += other.choices

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Return every fault at every place."""
        return tuple(fault for finding in self.findings for fault in finding.faults())

    def error(self) -> DataError:
        """Return all findings as one error: the sentence of the first, then a summary of the others."""
        first, *others = self.findings
        more = "".join(f"; also {f.count}" for f in others[:SHOWN])
        more += f"; and {len(others) - SHOWN:,} more kinds of faults" if len(others) > SHOWN else ""
        made = DataError(first.sentence + more, self.faults, choices=self.open_choices)
        made.names_place = len(made.faults) == 1 and first.each in ("", first.what) and first.places[0].value is None
        return made

    @property
    def open_choices(self) -> tuple[Mapping[str, str], ...]:
        """Return the options of which one settles what is open."""
        return next((finding.choices for finding in self.findings if finding.choices), ())


class Stop(Exception):
    """Reading cannot continue; the ledger says why. This exception never leaves the package."""


def counted(what: str, n: int) -> str:
    """Fill in the number. `str.format` cannot be used: the text may quote a file that contains braces.

    >>> counted("{n} label{s} '{x}'", 2)
    "2 labels '{x}'"
    """
    return what.replace("{n}", f"{n:,}").replace("{s}", "" if n == 1 else "s")


def quoted(text: str | None) -> str:
    r"""Return text from a file in the form shown in messages: quoted, control characters escaped, shortened if long.

    >>> print(quoted("E_01\x1b[31m\u202e"))
    'E_01\x1b[31m\u202e'
    >>> quoted("x" * 100)[-4:]
    "xx…'"
    """
    text = text or ""
    return repr(text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…")


def listed(names: Sequence[str]) -> str:
    """Return the first names of a list, quoted, and how many more there are.

    >>> listed(["id", "score"]), listed([str(i) for i in range(99)])[-11:]
    ("'id', 'score'", 'and 87 more')
    """
    rest = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(quoted, names[:LISTED])) + rest


def shown(name: str) -> str:
    r"""Return a file's name with its control characters escaped.

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
