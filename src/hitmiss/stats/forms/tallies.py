"""Tallies that do not hold every score in memory, and what needs every score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hitmiss.core.sorting import let_go
from hitmiss.core.tally import Tally
from hitmiss.stats.forms.base import CHUNK, Form


@dataclass(frozen=True, eq=False)
class ReadTally(Tally):
    """A tally without all single scores, with the numbers that need every score, which were computed before."""

    figures: Mapping[Form, float] = field(default_factory=dict)
    known_tied_mass: float | None = None

    @property
    def tied_mass(self) -> float:
        """The share of trials whose score occurs in both classes, if it was computed."""
        return super().tied_mass if self.known_tied_mass is None else self.known_tied_mass

    @property
    def is_short(self) -> bool:
        """Always true."""
        return True

    def known(self, form: object) -> float | None:
        """Return the number of a form that needs every score."""
        # A number that nobody computed is a mistake in this package: better a KeyError than an estimate from bins.
        return self.figures[form]  # type: ignore[index]


@dataclass(frozen=True, eq=False)
class DiskTally(Tally):
    """A tally whose arrays are on disk (memory maps): what needs every score is computed while they are read."""

    def known(self, form: object) -> float | None:
        """Compute the number of a form that needs every score."""
        passing = form.passing(int(self.n_positive), int(self.n_negative)) if isinstance(form, Form) else None
        if passing is None:
            return None
        for start in range(0, len(self.score), CHUNK):
            p, q = (c[start : start + CHUNK + 1] for c in (self.positives, self.negatives))
            passing.add(Tally(self.score[start : start + CHUNK], p - p[0], q - q[0]))
            let_go(self.score, self.positives, self.negatives)
        return passing.value()
