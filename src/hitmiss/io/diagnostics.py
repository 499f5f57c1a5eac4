"""What the reader finds wrong: findings group places, are reported in one sentence, and can be listed one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hitmiss.core.errors import DataError, Fault
from hitmiss.core.finding import Finding, Place, Subject, Value, as_value
from hitmiss.core.text import quoted
from hitmiss.findings.catalogue import entry_of
from hitmiss.findings.render import filled

SHOWN: Final = 5
LISTED: Final = 12
OF_THE_FIRST: Final = ("fix", "first")
"""Values that only the first of several like findings says: what to do about the words that stand where numbers should."""


@dataclass(frozen=True)
class FaultGroup:
    """One kind of fault with all its places."""

    code: str
    values: Mapping[str, Value]
    """What is wrong, without the places; a value `n` is the number of faults, where not all places are listed."""
    places: tuple[Place, ...]
    column: str | None = None
    choices: tuple[Mapping[str, str], ...] = ()

    @property
    def kind(self) -> str:
        """The kind of its faults: the code without the word that tells several sentences apart."""
        return self.code.partition("/")[0]

    @property
    def likeness(self) -> tuple[object, ...]:
        """What findings have in common that are reported as one."""
        return self.code, self.column, {k: v for k, v in self.values.items() if k not in OF_THE_FIRST}

    @property
    def found(self) -> Finding:
        """The finding with its places, whose sentence says where, what, how often, the first ids, and how to fix it."""
        values = {"n": len(self.places), **self.values}
        return Finding(self.code, Subject(places=self.places), values)

    @property
    def fix(self) -> str:
        """What to do."""
        return filled(entry_of(self.code).fix, self.found)

    def faults(self) -> Iterable[Fault]:
        """Yield one fault per place."""
        entry = entry_of(self.code)
        message = filled(entry.short or entry.text, Finding(self.code, values={**self.values, "n": 1}))
        for p in self.places:
            about = f"{message}, id {quoted(p.item)}" if p.item is not None else message
            yield Fault(self.kind, about, p.file, p.row, p.column or self.column, p.value)

    @property
    def names_place(self) -> bool:
        """Whether its sentence names the only place with all there is to say of it."""
        return len(self.places) == 1 and not entry_of(self.code).short and self.places[0].value is None


@dataclass
class Diagnostics:
    """The findings, notes and choices collected while reading."""

    findings: list[FaultGroup] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)

    def add(
        self,
        code: str,
        places: Sequence[Place],
        column: str | None = None,
        choices: Sequence[Mapping[str, str]] = (),
        /,
        **values: object,
    ) -> None:
        """Record a finding; a finding without places is ignored, and one like an earlier one is merged with it.

        `choices` are options of which one settles the question.

        >>> ledger = Diagnostics()
        >>> for row in (2, 9):
        ...     ledger.add("empty-id", [Place("s.tsv", row)])
        >>> [len(finding.places) for finding in ledger.findings], ledger.error().message
        ([2], 's.tsv, row 2: 2 rows without an id; give every row its id')
        """
        if places:
            known = {name: as_value(value) for name, value in values.items()}
            self._record(FaultGroup(code, known, tuple(places), column, tuple(choices)))

    def _record(self, new: FaultGroup) -> None:
        for at, known in enumerate(self.findings):
            if known.likeness == new.likeness:
                self.findings[at] = replace(known, places=(*known.places, *new.places))
                return
        self.findings.append(new)

    def stop(self, code: str, places: Sequence[Place], column: str | None = None, /, **values: object) -> Stop:
        """Record a finding after which reading cannot continue, and return the exception to raise."""
        self.add(code, places, column, **values)
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
        told = first.found
        if others:
            left = len(others) - SHOWN
            more = Finding("more-kinds-of-faults", values={"n": left}) if left > 0 else None
            also = tuple(other.found for other in others[:SHOWN])
            told = Finding("several-faults", values={"first": told, "also": also, "more": more})
        made = DataError.coded(told, first.kind).with_faults(self.faults).settled_by(self.open_choices)
        made.names_place = not others and first.names_place
        return made

    @property
    def open_choices(self) -> tuple[Mapping[str, str], ...]:
        """Return the options of which one settles what is open."""
        return next((finding.choices for finding in self.findings if finding.choices), ())


class Stop(Exception):
    """Reading cannot continue; the ledger says why. This exception never leaves the package."""


def listed(names: Sequence[str]) -> str:
    """Return the first names of a list, quoted, and how many more there are.

    >>> listed(["id", "score"]), listed([str(i) for i in range(99)])[-11:]
    ("'id', 'score'", 'and 87 more')
    """
    rest = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(quoted, names[:LISTED])) + rest


def near_or_listed(near: str | None, names: Sequence[str]) -> Finding:
    """Return what to do about a name that is not there: take the nearest one, or one of those that are."""
    return (
        Finding("did-you-mean", values={"near": quoted(near)})
        if near
        else Finding("there-are", values={"names": listed(names)})
    )
