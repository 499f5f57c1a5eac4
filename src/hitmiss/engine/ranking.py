"""The rows of a ranking: the runs with their letters and ranks, and the differences between all pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hitmiss.core.design import Design, Grouping
from hitmiss.core.metric import Best
from hitmiss.core.results import SCHEMA, number, warning_fields
from hitmiss.core.rows import one_named, rows_named
from hitmiss.engine.comparison import Difference, row_as_dict
from hitmiss.engine.judged_rows import JudgedRows

MAX_T: Final = "max-t"
"""All differences of a family are judged by the distribution of the largest studentised difference if none is real."""


@dataclass(frozen=True)
class RankedRun:
    """A run's number in a slice, with its letters and its rank.

    Runs that share a letter were not shown to differ. The true rank lies between `rank_low` and `rank_high`, for all
    runs at once. `low` and `high` are the ends of the interval of the run's own number.
    """

    metric: str
    run: str
    value: float | None
    letters: str
    best: Best
    slice: Mapping[str, str] = field(default_factory=dict)
    average: str | None = None
    n_pairs: int = 0
    rank_low: int | None = None
    rank_high: int | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Duel:
    """The difference of one metric between two named runs; interval and adjusted p value hold for all pairs at once."""

    a: str
    b: str
    difference: Difference


@dataclass(frozen=True)
class Ranking(JudgedRows[RankedRun]):
    """A ranking: the numbers and ranks of all runs, and the differences between all pairs.

    Parameters
    ----------
    names
        The names of the runs.
    standings
        One `RankedRun` per metric, run and slice.
    duels
        One `Duel` per metric, pair of runs and slice.
    signature
        One line that records every choice behind the ranking.
    warnings
        What a reader of the ranking should know.
    level
        The level of the intervals and ranks, for all pairs at once.
    correction
        How p values were adjusted for multiple tests.
    groupings
        The slice columns of its tables.
    design
        What was asked, and how each run was read.
    """

    names: tuple[str, ...]
    standings: tuple[RankedRun, ...]
    duels: tuple[Duel, ...]
    signature: str = ""
    warnings: tuple[str, ...] = ()
    level: float = 0.95
    correction: str = MAX_T
    groupings: tuple[Grouping, ...] = ()
    design: Design | None = field(default=None, repr=False)
    """What was asked, and how each run was read."""

    @property
    def _rows(self) -> tuple[RankedRun, ...]:
        return self.standings

    def __getitem__(self, key: int | str | tuple[object, ...]) -> RankedRun | tuple[RankedRun, ...]:
        """Return a row by its place, or the runs of a metric, the best first: `ranking["eer", "codec=C01"]`.

        With `"run=ours"` in the key, that of one run.
        """
        if isinstance(key, int):
            return self.standings[key]
        runs = {place: {"run": row.run} for place, row in enumerate(self.standings)}
        found = rows_named(self.standings, key, runs)
        if any(isinstance(part, str) and part.startswith("run=") for part in key[1:]) and not isinstance(key, str):
            return one_named(self.standings, key, runs)
        return tuple(sorted(found, key=_better_first))

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form: `{"schema": 1, "kind": "ranking", "runs": […], "standings": [{…}], "pairs": [{…}]}`."""
        unknown = ("wins", "ties", "losses", "n_positive")  # known only for two runs: see `compare`
        pairs = [{"run_a": d.a, "run_b": d.b, **row_as_dict(d.difference)} for d in self.duels]
        return {
            "schema": SCHEMA,
            "kind": "ranking",
            "runs": list(self.names),
            "level": self.level,
            "correction": self.correction,
            **warning_fields(self.warnings),
            "signature": self.signature,
            "design": self.design.to_plain() if self.design is not None else None,
            "standings": [row_as_dict(s) for s in self.standings],
            "pairs": [{k: v for k, v in row.items() if k not in unknown} for row in pairs],
        }

    def __str__(self) -> str:
        lines = []
        for row in self:
            where = ", ".join(f"{k}={v}" for k, v in row.slice.items())
            name = " ".join(filter(None, (row.average, row.metric, f"[{where}]" if where else "", row.run)))
            rank = f" rank {row.rank_low} to {row.rank_high}" if row.rank_low is not None else ""
            lines.append(f"{name} = {number(row.value)}{rank} {row.letters}".rstrip())
        return "\n".join([*lines, *(f"warning: {w}" for w in self.warnings), self.signature]).strip()

    def __repr__(self) -> str:
        metrics = ", ".join(dict.fromkeys(row.metric for row in self))
        return f"<Ranking: {', '.join(self.names)} by {metrics or 'nothing'}>"


def _better_first(row: RankedRun) -> tuple[bool, float]:
    value = row.value if row.value is not None else math.nan
    return math.isnan(value), value if row.best == "low" else -value
