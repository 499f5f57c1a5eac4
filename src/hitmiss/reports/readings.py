"""How to read a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Reading:
    """A figure's title, how to read it, and whether it shows a single run."""

    title: str
    text: str
    single: bool = False


FLOW: Final = Reading(
    "What became of the trials",
    "Each box is as high as it has trials; ribbons show where they went next, coloured by how they ended.",
)
RANKS: Final = Reading(
    "Ranks", "The rank of each run; the line holds its true rank, of all runs at once with the level of the ranking."
)
SYSTEMS: Final = Reading("Runs, the best first", "Each dot is a run, the line its own interval.")
LEVELS: Final = Reading("Robustness", "The value at each level of this manipulation; dotted, the untouched items.")
