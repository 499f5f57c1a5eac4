"""Split the trials of attacks into cells: one cell per attack and strength, all about the same records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.errors import DataError
from hitmiss.core.sorting import Floats
from hitmiss.core.trials import Trials

Bits = NDArray[np.int8]
CLEAN: Final = "clean"
CONTROL: Final = "noise ~ "
"""The prefix of a control's name."""
AIMLESS: Final = ("any", "whole")
"""Values of `aim` and `place` of attacks without an aim or a place."""
CHECKED: Final = ("zero_gradient", "budget", "budget_used")
"""Numbers that show whether an attack worked (see `health`)."""


@dataclass(frozen=True, eq=False)
class AttackCondition:
    """One attack at one strength: bits, scores and numbers of every record, in the order of the records."""

    run: Mapping[str, str]
    bits: Bits
    score: Floats
    numbers: Mapping[str, Floats]

    @property
    def lean(self) -> AttackCondition:
        """The same without scores, and with only the numbers that show whether an attack worked."""
        numbers = {name: values for name, values in self.numbers.items() if name in CHECKED}
        return replace(self, score=np.zeros((0, 0)), numbers=numbers)

    @property
    def is_control(self) -> bool:
        """Whether it is the noise control of an attack."""
        return self.run["attack"].startswith(CONTROL)

    @property
    def family(self) -> str:
        """The kind of attack without its settings: `pgd` for `pgd(steps=40)`; a control has no kind."""
        return self.run["attack"].partition("(")[0]


@dataclass(frozen=True, eq=False)
class Campaign:
    """All cells of a run on the same records: their truth, their classes, and further columns."""

    records: list[str]
    classes: list[str]
    truth: Bits
    clean: AttackCondition
    cells: list[AttackCondition]
    columns: Mapping[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, trials: Trials) -> Campaign:
        """Split the trials; refuse records that some attack lacks, or classes that some record lacks."""
        for name in ("attack", "strength"):
            if name not in trials.header.runs:
                raise DataError.of("no-run-column/attack", name=name)
        frame = trials.frame.sort("item", "target")
        runs = frame.select(trials.header.runs).unique(maintain_order=False).sort("attack", "strength").to_dicts()
        parts = [(run, frame.filter(*(pl.col(k) == v for k, v in run.items()))) for run in runs]
        whole = next((part for run, part in parts if run["attack"] == CLEAN), None)
        if whole is None:
            raise DataError.of("no-clean/records", CLEAN=CLEAN)
        classes = whole["target"].unique().sort().to_list()
        shape = (-1, len(classes))
        records = whole["item"].unique().sort().to_list()
        for run, part in parts:
            if not part["item"].equals(whole["item"]) or not part["target"].equals(whole["target"]):
                raise DataError.of("other-records", run=tuple(run.values()))
        cells = [_cell(run, part, trials, shape) for run, part in parts]
        columns = {name: whole[name].to_list()[:: len(classes)] for name in trials.header.slices}
        clean = next(c for c in cells if c.run["attack"] == CLEAN)
        truth = whole["label"].to_numpy().reshape(shape)
        others = sorted((c for c in cells if c is not clean), key=_order)
        return cls(records, classes, truth, clean, others, columns)

    def joined(self, other: Campaign) -> Campaign:
        """Return the attacks of both on the same records; of the other, only answers and the numbers of its health."""
        return replace(self, cells=sorted([*self.cells, *(cell.lean for cell in other.cells)], key=_order))

    def changed(self, cell: AttackCondition) -> float:
        """Return the share of records with any bit that differs from the clean answer."""
        return float((self.clean.bits != cell.bits).any(axis=1).mean())


def _cell(run: dict[str, str], part: pl.DataFrame, trials: Trials, shape: tuple[int, int]) -> AttackCondition:
    numbers = {n: part[n].cast(pl.Float64).to_numpy().reshape(shape)[:, 0] for n in trials.header.numbers}
    return AttackCondition(
        run, part["decision"].to_numpy().reshape(shape), part["score"].to_numpy().reshape(shape), numbers
    )


def _order(cell: AttackCondition) -> tuple[str, ...]:
    """Sort attacks by name, each followed by its control, with strengths as numbers."""
    run, number = cell.run, strength_of(cell.run)
    strength = f"~{run['strength']}" if number is None else f"{number:020.9f}"
    others = tuple(v for k, v in sorted(run.items()) if k not in ("attack", "strength"))
    return (run["attack"].removeprefix(CONTROL), *others, strength, str(cell.is_control))


def attack_name(run: Mapping[str, str]) -> str:
    """Return the name of an attack with its aim and its place, without its strength.

    >>> attack_name({"attack": "noise ~ pgd", "strength": "1", "aim": "force MI", "place": "whole"})
    'pgd, force MI'
    """
    rest = [v for k, v in run.items() if k not in ("attack", "strength") and v not in AIMLESS]
    return ", ".join([run["attack"].removeprefix(CONTROL), *rest])


def strength_of(run: Mapping[str, str]) -> float | None:
    """Return the strength of an attack; None for a search for the minimal strength.

    >>> strength_of({"attack": "pgd", "strength": "0.5"}), strength_of({"attack": "pgd", "strength": "minimal"})
    (0.5, None)
    """
    try:
        return float(run.get("strength", ""))
    except ValueError:
        return None
