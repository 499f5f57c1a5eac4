"""Replicates of one run on draws that every run on the same questions shares, so that runs can be ranked one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hitmiss.core.design import Design
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.sorting import Floats
from hitmiss.core.trials import Trials
from hitmiss.engine.columns import OneClassColumns
from hitmiss.engine.paired_samples import same_columns
from hitmiss.engine.pairing import in_order
from hitmiss.engine.prepare import prepare_metric
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.engine.rank import Family, Field, RankedSlice, Shared, ranked_runs, unseen_errors
from hitmiss.engine.ranking import Duel, RankedRun

__all__ = ["RunReplicates", "SharedDraws", "rank_replicates"]

KEY = ("item", "target")
"""What tells the questions of a run apart."""
BLOCKS = 500
"""Blocks that the trials of a class are divided into: enough to know a spread to 3 %, in a quarter of a ranking's time."""


@dataclass(frozen=True)
class RunReplicates:
    """One metric of one run: its value and its replicates on shared draws.

    Two of them can be compared only if their `questions` are equal: the same ids, classes and units in the same draws.
    """

    value: float
    drawn: Floats
    unseen: tuple[float, float]
    """By how much one miss or one false alarm that the run does not show would change a cost."""
    units: float
    n: int
    n_positive: int
    questions: str


class SharedDraws:
    """Draws for one metric of a design: made once for each set of questions, and used for every run that answers them.

    What is drawn depends on the questions and on the seed alone, so runs that are measured on different days share
    their draws too.
    """

    def __init__(self, metric: str, design: Design) -> None:
        self.metric, self.design = metric, design
        self._made: dict[str, Shared] = {}

    def replicate(self, trials: Trials) -> RunReplicates:
        """Measure a run, and its replicates on the draws of its questions."""
        design, chosen = self.design, self.design.rules
        (ordered,) = in_order([trials], KEY)
        unit = ordered.unit_names(design.units)
        only = OneClassColumns(chosen.negative_only, chosen.positive_only)
        (columns,) = same_columns([ordered], ("",), KEY, [name for name in unit if name != "item"], only)
        question = prepare_metric(self.metric, ordered, chosen)
        alone = Field(("",), (columns,), ((question,),), unit, KEY, {}, chosen.zero_undefined)
        (whole,) = alone.wholes_of_runs()
        questions = _questions(ordered, unit)
        if questions not in self._made:
            plan = SamplingPlan(design.bootstrap, unit, design.seed, design.level, "percentile")
            self._made[questions] = Shared.of(plan, alone, whole, BLOCKS)
        draws = replace(self._made[questions], runs=alone)
        samples = whole.of(columns)
        values, drawn = np.full(1, np.nan), np.full((1, design.bootstrap), np.nan)
        draws.fill(0, samples, [0], values, drawn)
        missed, accepted = unseen_errors(question, samples)
        n, n_positive = whole.n, whole.n_positive
        return RunReplicates(
            float(values[0]), drawn[0], (missed, accepted), draws.units(whole), n, n_positive, questions
        )


def _questions(trials: Trials, unit: Sequence[str]) -> str:
    """Return a hash of the questions in their order: ids, classes and units."""
    names = [*KEY, "label", *(trials.own(name) for name in unit if name != "item")]
    rows = trials.frame.select(names).hash_rows(seed=1).to_numpy()
    return hashlib.sha256(rows.tobytes()).hexdigest()


@dataclass(frozen=True)
class BoardSample:
    """What a ranking needs to know of the questions of a cell."""

    n: int
    n_positive: int
    slice: Mapping[str, str] = field(default_factory=dict)
    average: str | None = None

    @property
    def parts(self) -> tuple[BoardSample, ...]:
        """The questions, as one part."""
        return (self,)


def rank_replicates(
    runs: Mapping[str, RunReplicates], question: PreparedMetric, design: Design, sample: BoardSample
) -> tuple[list[RankedRun], list[Duel]]:
    """Judge every pair of runs at once on their shared replicates, and rank the runs."""
    found = [*runs.values()]
    cell = RankedSlice(
        question,
        sample,  # type: ignore[arg-type]
        np.array([r.value for r in found]),
        np.array([r.drawn for r in found]),
        min(r.units for r in found),
        (question.text,),
        np.array([r.unseen for r in found]),
    )
    plan = SamplingPlan(design.bootstrap, design.units, design.seed, design.level, "percentile")
    duels = Family([cell]).duels(tuple(runs), plan, "max-t")
    return ranked_runs(tuple(runs), duels, 1.0 - design.level), duels
