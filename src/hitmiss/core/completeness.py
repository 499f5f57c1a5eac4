"""Questions × runs as one matrix: how many trials there should be, how many there are, and which are missing.

A run is a model, a system, a seed, a trial …, in any combination; each of them should answer every question once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from hitmiss.core.columns import user_name

SHOWN = 3
"""How many missing questions, and how many runs that lack some, are named."""
QUESTION = ("item", "target")
MOST_ROUNDS = 60
"""A run whose repetitions lack items is completed to at most so many rounds."""
ROW = ":row"
"""The column that holds the row from which a row of a completed table was copied."""


@dataclass(frozen=True)
class Completeness:
    """How many trials there are, of how many that there should be.

    Parameters
    ----------
    n, of
        The trials that there are, and that there should be.
    questions
        How many questions each run should answer.
    runs
        Each run, with the number of questions that it answers.
    first
        The first questions that a run lacks, by their ids.
    """

    n: int
    of: int
    questions: int
    runs: tuple[tuple[Mapping[str, str], int], ...] = ()
    first: tuple[str, ...] = ()

    @property
    def is_full(self) -> bool:
        """Whether every run answers every question."""
        return self.n >= self.of

    @property
    def short(self) -> tuple[tuple[Mapping[str, str], int], ...]:
        """The runs that lack a question."""
        return tuple((run, n) for run, n in self.runs if n < self.questions)

    def __str__(self) -> str:
        return f"{self.n:,} of {self.of:,}"

    @property
    def text(self) -> str:
        """What is missing, in one sentence."""
        size = f"{self.questions:,} items × {len(self.runs)} runs"
        told = [f"{', '.join(f'{k} {v}' for k, v in run.items())} has {n:,}" for run, n in self.short[:SHOWN]]
        more = f" and {len(self.short) - SHOWN} more lack some" if len(self.short) > SHOWN else ""
        first = f"; the first missing: {', '.join(self.first)}" if self.first else ""
        return f"incomplete: {self} trials ({size}); {', '.join(told)}{more} of {self.questions:,}{first}"


def completeness(frame: pl.DataFrame, runs: Sequence[str]) -> Completeness:
    """Return the matrix of a table with one row per trial, without repeated ones.

    >>> frame = pl.DataFrame({"item": ["a", "b", "a"], "target": ["x"] * 3, "trial": ["0", "0", "1"]})
    >>> found = completeness(frame, ["trial"])
    >>> str(found), found.short, found.first
    ('3 of 4', (({'trial': '1'}, 1),), ('b',))
    """
    if not runs:
        return Completeness(frame.height, frame.height, frame.height)
    asked = frame.select(*QUESTION).unique(maintain_order=True)
    cells = counted_runs(frame.group_by(runs, maintain_order=True).len(name=":n"), runs)
    made = Completeness(frame.height, asked.height * len(cells), asked.height, cells)
    return made if made.is_full else Completeness(made.n, made.of, made.questions, cells, _first(frame, runs, asked))


def counted_runs(table: pl.DataFrame, runs: Sequence[str]) -> tuple[tuple[Mapping[str, str], int], ...]:
    """Return the runs of a table with their numbers of trials (`:n`), in the order of their names."""
    rows = table.sort(runs).iter_rows(named=True)
    return tuple(({user_name(name): str(row[name]) for name in runs}, row[":n"]) for row in rows)


def _first(frame: pl.DataFrame, runs: Sequence[str], asked: pl.DataFrame) -> tuple[str, ...]:
    """Return the ids of the first questions that a run lacks."""
    for _, own in frame.group_by(runs, maintain_order=True):
        if own.height < asked.height:
            lacking = asked.join(own, on=list(QUESTION), how="anti", maintain_order="left")["item"]
            return tuple(lacking.unique(maintain_order=True).head(SHOWN).to_list())
    return ()


def lacks_items(frame: pl.DataFrame, repeats: Sequence[str]) -> bool:
    """Return whether a table of one run has repetitions that lack questions which other repetitions have."""
    asked, times = (frame.select(names).n_unique() for names in (list(QUESTION), list(repeats)))
    return asked * times > frame.height


def in_rounds(frame: pl.DataFrame, repeats: Sequence[str]) -> tuple[pl.DataFrame, bool]:
    """Complete a run whose repetitions lack items: rounds in which every question occurs once, answered in turn.

    A question that was asked m times is answered by each of its own m answers equally often, so that a mean over the
    rounds is a mean over the questions, each by the mean of its own answers. With all questions in all repetitions, the
    rounds would be the repetitions. The rounds take the place of the values of the first column of `repeats`.

    Returns
    -------
    tuple
        The completed table, with the row that each row was copied from, and whether the answers of a question count
        alike exactly; not if that takes more than `MOST_ROUNDS` rounds.

    >>> frame = pl.DataFrame({"item": ["a", "b", "a"], "target": ["x"] * 3, "trial": ["0", "0", "1"]})
    >>> table, _ = in_rounds(frame, ["trial"])
    >>> table.select("item", "trial", ":row").rows()
    [('a', '1', 0), ('b', '1', 1), ('b', '2', 1), ('a', '2', 2)]
    """
    numbered = frame if ROW in frame.columns else frame.with_row_index(ROW)
    asked = numbered.sort(repeats, maintain_order=True)
    asked = asked.with_columns(
        pl.int_range(pl.len()).over(QUESTION).alias(":turn"), pl.len().over(QUESTION).alias(":times")
    )
    times = asked[":times"].unique().to_list()
    whole, most = math.lcm(*times), max(times)
    rounds = whole if whole <= MOST_ROUNDS else max(MOST_ROUNDS // most * most, most)
    each = pl.DataFrame({":round": pl.int_range(rounds, eager=True)})
    made = asked.join(each, how="cross").filter(pl.col(":round") % pl.col(":times") == pl.col(":turn"))
    named = [pl.lit("").alias(name) for name in repeats[1:]]
    made = made.with_columns((pl.col(":round") + 1).cast(pl.String).alias(repeats[0]), *named)
    return made.sort(":round", ROW).drop(":turn", ":times", ":round"), rounds == whole
