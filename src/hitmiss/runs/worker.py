"""What a run needs of the code that does the work: a worker takes positions of items and yields their results."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Fault = Literal["item", "service", "refused", "unread"]
"""Whose fault a failure is: the item's, that of a service that may recover, or a refusal that no item can cause.

`unread` is no failure: an answer came, and says nothing that can be used (refused by the model, not understood, cut).
"""


@dataclass(frozen=True)
class Result:
    """The result of one item: its record, which has an `error` if it failed, and what it has used."""

    at: int
    record: Mapping[str, object]
    fault: Fault = "item"
    is_decisive: bool = True
    """False if items that were taken before may still succeed: this failure does not yet show that all fail."""
    calls: int = 1
    tokens: int = 0
    cost: float = 0.0
    is_metered: bool = True
    """False if a service was used and does not say how much: no budget of tokens or money can be kept."""

    @property
    def has_failed(self) -> bool:
        """Whether the item failed."""
        return "error" in self.record


Results = Generator[Result, None, None]
"""Results in any order; closed, the worker stops."""


class Worker(Protocol):
    """Does the work of a run."""

    kind: str
    """The kind of run: detect, attack, llm."""
    grows: Collection[str]
    """Parts of the configuration to which something may be added when the run is resumed."""

    @property
    def items(self) -> Sequence[str]:
        """The names of the items, in order; each has one of its own."""

    @property
    def config(self) -> Mapping[str, object]:
        """Everything that could change a result: a run cannot be continued with anything else."""

    def work(self, todo: Iterator[int]) -> Results:
        """Take as many positions as it likes, and yield their results in any order; closed, it stops at once."""

    def leftovers(self) -> list[Result]:
        """Return the results that were ready and not yielded yet when the work was interrupted."""

    def changed_inputs(self, records: Iterator[tuple[int, dict[str, object]]]) -> list[str]:
        """Return the names of inputs that are not what they were when these records were made."""

    def details(self) -> str:
        """Return what it adds to the line about the progress."""


class Store(Protocol):
    """Where results are kept: a run folder, or the memory."""

    items: Sequence[str]
    has_error: NDArray[np.bool_]

    @property
    def n_done(self) -> int:
        """How many items are done."""

    @property
    def is_done(self) -> bool:
        """Whether every item is done."""

    def todo(self, retry: bool = False) -> Iterator[int]:
        """Yield the positions of items that are not done. `retry`: failed ones too."""

    def add(self, at: int, record: Mapping[str, object]) -> None:
        """Keep the result of an item."""


class InMemory:
    """Keeps results in memory, for work without a run folder."""

    def __init__(self, items: Sequence[str]) -> None:
        self.items = items
        self.has_error = np.zeros(len(items), dtype=bool)
        self.records: dict[int, Mapping[str, object]] = {}

    @property
    def n_done(self) -> int:
        """How many items are done."""
        return len(self.records)

    @property
    def is_done(self) -> bool:
        """Whether every item is done."""
        return len(self.records) == len(self.items)

    def todo(self, retry: bool = False) -> Iterator[int]:
        """Yield the positions of items that are not done. `retry`: failed ones too."""
        yield from (
            at for at in range(len(self.items)) if at not in self.records or (retry and bool(self.has_error[at]))
        )

    def add(self, at: int, record: Mapping[str, object]) -> None:
        """Keep the result of an item."""
        self.records[at] = record
        self.has_error[at] = "error" in record
