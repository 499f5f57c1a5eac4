"""The rows of a ranking: the runs with their letters and ranks, and the differences between all pairs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.design import Design, Grouping
from hitmiss.core.errors import UsageError
from hitmiss.core.metric import Best
from hitmiss.core.results import SCHEMA, number, warning_fields
from hitmiss.core.rows import Presented, one_named, rows_named
from hitmiss.core.verdict import Verdict
from hitmiss.engine.comparison import Difference, told

if TYPE_CHECKING:
    import pandas as pd


MAX_T: Final = "max-t"
"""All differences of a family are judged by the distribution of the largest studentised difference if none is real."""


@dataclass(frozen=True)
class RankedRun:
    """A run's figure in a slice, with its letters and its rank.

    Runs that share a letter were not shown to differ. The true rank lies between `rank_low` and `rank_high`, for all
    runs at once. `low` and `high` are the ends of the interval of the run's own figure.
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
class Ranking(Presented):
    """A ranking: the figures and ranks of all runs, and the differences between all pairs.

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

    def __iter__(self) -> Iterator[RankedRun]:
        return iter(self.standings)

    def __len__(self) -> int:
        return len(self.standings)

    def __contains__(self, key: object) -> bool:
        """Return whether there are rows of this name, or this row."""
        if isinstance(key, RankedRun):
            return key in self.standings
        try:
            return bool(rows_named(self.standings, key))
        except UsageError:
            return False

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

    @property
    def verdict(self) -> Verdict:
        """What this ranking allows to conclude, as data: which run is best, and where another one is better."""
        made: Verdict = import_module("hitmiss.conclude.verdict").conclude_comparison(self)  # by name: a higher layer
        return made

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form: `{"schema": 1, "kind": "ranking", "runs": […], "standings": [{…}], "pairs": [{…}]}`."""
        unknown = ("wins", "ties", "losses", "n_positive")  # known only for two runs: see `compare`
        pairs = [{"run_a": d.a, "run_b": d.b, **told(d.difference)} for d in self.duels]
        return {
            "schema": SCHEMA,
            "kind": "ranking",
            "runs": list(self.names),
            "level": self.level,
            "correction": self.correction,
            **warning_fields(self.warnings),
            "signature": self.signature,
            "design": self.design.to_plain() if self.design is not None else None,
            "standings": [told(s) for s in self.standings],
            "pairs": [{k: v for k, v in row.items() if k not in unknown} for row in pairs],
        }

    def to_json(self, indent: int | None = 1) -> str:
        """Return the JSON form as text."""
        return json.dumps(artifacts.sealed(self.to_dict()), indent=indent, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write the JSON form to a file."""
        artifacts.write(path, self.to_json() + "\n")

    def plot(self, ax: object = None) -> object:
        """Draw the runs with their intervals, one below the other (needs matplotlib)."""
        return import_module("hitmiss.reports.forest").forest(self, ax)  # by name: a higher layer

    def to_polars(self) -> pl.DataFrame:
        """Return a polars frame with one row per metric, run and slice; slices become columns."""
        names = sorted({k for row in self for k in row.slice})
        rows = [{**asdict(row), **{k: row.slice.get(k) for k in names}} for row in self]
        return pl.DataFrame([{k: v for k, v in row.items() if k != "slice"} for row in rows], infer_schema_length=None)

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame with one row per metric, run and slice (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.to_polars().to_dicts())

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
