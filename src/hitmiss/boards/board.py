"""A board: every system on every data set, with intervals, averages, ranks and tiers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from hitmiss._version import __version__
from hitmiss.boards.cache import BoardCache
from hitmiss.boards.numbers import BoardNumber, average, worst
from hitmiss.boards.plan import BoardPlan, Dataset, plan_of
from hitmiss.boards.system import POOLED, MeasuredSystem, Rejected, SystemMeasurer
from hitmiss.core import artifacts, progress
from hitmiss.core.design import By, Design
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.finding import Remark
from hitmiss.core.metric import Best, Metric
from hitmiss.core.protocol import Protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.registry import resolve
from hitmiss.engine.ranking import Duel
from hitmiss.engine.shared_replicates import BoardSample, RunReplicates, rank_replicates
from hitmiss.evaluation.protocol import find_protocol

__all__ = ["AVERAGE", "POOLED_RANK", "Board", "BoardRow", "board", "make_board"]

AVERAGE: Final = "average"
POOLED_RANK: Final = "pooled"
SCHEMA: Final = 1


@dataclass(frozen=True)
class BoardRow:
    """A system on a board. `rank`, its interval and its tier exist if the ranked number does."""

    system: str
    number: BoardNumber
    """What the board ranks by."""
    cells: Mapping[str, BoardNumber]
    average: BoardNumber
    pooled: BoardNumber
    worst: BoardNumber
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    tier: int | None = None
    missing: tuple[str, ...] = ()
    """Data sets without a usable submission."""
    details: Mapping[str, Mapping[str, Mapping[str, BoardNumber]]] = field(default_factory=dict)
    """Every number by data set, metric and slice."""

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        parts = {"average": self.average, "pooled": self.pooled, "worst": self.worst}
        return {
            "system": self.system,
            "rank": self.rank,
            "rank_low": self.rank_low,
            "rank_high": self.rank_high,
            "tier": self.tier,
            "number": self.number.to_dict(),
            **{name: number.to_dict() for name, number in parts.items()},
            "datasets": {name: number.to_dict() for name, number in self.cells.items()},
            "missing": list(self.missing),
            "details": {
                d: {m: {s: b.to_dict() for s, b in slices.items()} for m, slices in metrics.items()}
                for d, metrics in self.details.items()
            },
        }


@dataclass(frozen=True)
class Board:
    """Systems from best to worst, with the pairs that were tested and the submissions that were left out.

    Parameters
    ----------
    rows
        The systems, the ranked ones first.
    datasets
        The data sets, with their weights.
    metric, best
        The ranked metric, and whether low or high values are better.
    rank_by
        `average`, `pooled`, or the name of a data set.
    pairs
        Every pair of ranked systems, judged at once.
    rejected
        Submissions that could not be used, with their reasons.
    unknown
        Files that belong to no data set.
    """

    rows: tuple[BoardRow, ...]
    datasets: tuple[Dataset, ...]
    metric: str
    best: Best
    rank_by: str
    level: float
    draws: int
    pairs: tuple[Duel, ...] = field(default=(), repr=False)
    rejected: tuple[Rejected, ...] = ()
    unknown: tuple[str, ...] = ()
    title: str = ""
    unit: tuple[str, ...] = ()
    seed: int = 0
    design: Design | None = field(default=None, repr=False)
    """What was asked, for `verify`."""
    reading: ReadSpec | None = field(default=None, repr=False)

    def __getitem__(self, system: str) -> BoardRow:
        found = next((row for row in self.rows if row.system == system), None)
        if found is None:
            raise UnknownName("system", system, [row.system for row in self.rows])
        return found

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        pairs = [
            {
                "a": duel.a,
                "b": duel.b,
                "delta": duel.difference.delta,
                "low": duel.difference.low,
                "high": duel.difference.high,
                "p_adjusted": duel.difference.p_adjusted,
            }
            for duel in self.pairs
        ]
        return {
            "schema": SCHEMA,
            "kind": "board",
            "hitmiss": __version__,
            "title": self.title,
            "metric": self.metric,
            "best": self.best,
            "rank_by": self.rank_by,
            "level": self.level,
            "draws": self.draws,
            "unit": list(self.unit),
            "seed": self.seed,
            "datasets": [{"name": d.name, "weight": d.weight, "title": d.title} for d in self.datasets],
            "systems": [row.to_dict() for row in self.rows],
            "pairs": pairs,
            "rejected": [r.to_dict() for r in self.rejected],
            "unknown_files": [Path(path).name for path in self.unknown],
            "design": None if self.design is None else self.design.to_plain(),
            "reading": None if self.reading is None else self.reading.to_plain(),
        }

    def to_json(self) -> str:
        """Return the JSON form as sealed text."""
        return json.dumps(artifacts.sealed(self.to_dict()), indent=1, ensure_ascii=False, allow_nan=False)


def board(
    submissions: str | Path | Sequence[str | Path] | Mapping[str, str | Path | Mapping[str, str | Path]],
    keys: str | Path | Mapping[str, str | Path] | None = None,
    protocol: str | Path | Protocol | None = None,
    *,
    metrics: str | Sequence[str] = (),
    by: By = (),
    unit: str | Sequence[str] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    rank_by: str | None = None,
    cache: str | Path | None = None,
    **reading: object,
) -> Board:
    """Check, measure and rank the submissions to a challenge, as `hitmiss board` does.

    A submission that cannot be used is listed in `rejected` with its reason; the others go on.

    Parameters
    ----------
    submissions
        A folder (`SYSTEM/DATASET.tsv`, `DATASET/SYSTEM.tsv`, or `SYSTEM.tsv` for one data set), a `board.toml`, a list of
        files of one data set, or files by system, or by system and data set.
    keys
        The key of the data set, a folder with one key for each, or keys by the names of the data sets.
    protocol, metrics
        The protocol of the challenge, or metrics, the first of which is ranked.
    by, unit, bootstrap, seed, level
        As for `rank`.
    rank_by, cache
        As for `make_board`.
    **reading
        Read options, the fields of `ReadSpec`.

    Returns
    -------
    Board
        The systems from best to worst, the pairs that were tested, and what was left out.

    Raises
    ------
    UsageError
        For folders or names that do not fit together, or without a metric.
    DataError
        If not a single submission can be used.

    >>> import tempfile
    >>> label = ["real", "fake"] * 6
    >>> scores = {"ours": [9, 1, 8, 2, 7, 3, 6, 5, 9, 4, 8, 1], "theirs": [5, 4, 6, 7, 5, 3, 4, 6, 7, 5, 6, 4]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, values in scores.items():
    ...         rows = "".join(f"{i},{s}\\n" for i, s in enumerate(values))
    ...         _ = Path(folder, f"{name}.csv").write_text("id,score\\n" + rows)
    ...     rows = "".join(f"{i},{word}\\n" for i, word in enumerate(label))
    ...     _ = Path(folder, "key.txt").write_text("id,label\\n" + rows)
    ...     files = {n: f"{folder}/{n}.csv" for n in scores}
    ...     found = board(files, f"{folder}/key.txt", metrics="roc_auc", positive="real")
    >>> [(row.rank, row.system) for row in found.rows]
    [(1, 'ours'), (2, 'theirs')]
    """
    chosen = find_protocol(protocol) if protocol is not None else None
    wanted = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    design = Design.of(
        wanted, by=by, unit=unit, bootstrap=bootstrap, seed=seed, level=level, protocol=chosen, gap=False
    )
    plan = plan_of(submissions, keys)
    return make_board(plan, design, ReadSpec().changed(**reading), rank_by=rank_by, cache=cache)


def make_board(
    plan: BoardPlan,
    design: Design,
    reading: ReadSpec | None = None,
    *,
    rank_by: str | None = None,
    cache: str | Path | None = None,
) -> Board:
    """Measure every system of a plan on every data set, and rank those that have all that the ranking needs.

    Parameters
    ----------
    plan
        The systems, the data sets and their files.
    design
        Metrics, slices, units and draws. The first metric is ranked; without one, the protocol's first.
    reading
        Read options, for every data set.
    rank_by
        `average` over the data sets with their weights (the default for several), `pooled` under one threshold, or the
        name of a data set.
    cache
        A folder that keeps what was measured, so that one more system costs one reading.

    Raises
    ------
    UsageError
        If there is no metric, or `rank_by` names nothing.
    DataError
        If not a single submission can be used.
    """
    asked, reading = _settled(design), reading or ReadSpec()
    metric, entry = str(asked.metrics[0]), resolve(asked.metrics[0])[1]
    wanted = rank_by or plan.rank_by or (AVERAGE if len(plan.datasets) > 1 else plan.names[0])
    if wanted not in (AVERAGE, POOLED_RANK, *plan.names):
        raise UnknownName("order of a board", wanted, (AVERAGE, POOLED_RANK, *plan.names))
    if len(plan.datasets) == 1:
        wanted = plan.names[0]
    measurer = SystemMeasurer(plan, asked, reading, metric)
    kept = BoardCache(cache, plan, asked, reading, metric) if cache is not None else None
    systems = []
    for name in progress.each([*plan.files], "systems"):
        found = kept.get(name) if kept is not None else None
        if found is None:
            found = measurer.measure(name)
            if kept is not None:
                kept.put(found)
        systems.append(found)
    if not any(system.numbers for system in systems):
        rejected = tuple(f"{r.system}: {r.text}" for s in systems for r in s.rejected)
        raise DataError.of("bad-submissions", rejected=rejected)
    rows = {s.name: _row(s, plan, metric, entry, wanted, asked.level) for s in systems}
    ranked, pairs = _ranked(systems, rows, plan, asked, metric, wanted)
    return Board(
        tuple(ranked),
        plan.datasets,
        metric,
        entry.best,
        wanted,
        asked.level,
        asked.bootstrap,
        tuple(pairs),
        tuple(r for s in systems for r in s.rejected),
        plan.unknown,
        plan.title,
        asked.unit,
        asked.seed,
        asked,
        reading,
    )


def _settled(design: Design) -> Design:
    """Return the design with the metrics that are measured: those asked for, or those of the protocol."""
    metrics = design.metrics or (design.protocol.metrics if design.protocol is not None else ())
    if not metrics:
        raise UsageError.of("no-metric/board")
    if not design.metrics and design.protocol is not None and design.protocol.primary:
        first = design.protocol.primary
        metrics = (first, *(m for m in metrics if m != first))
    return replace(design, metrics=tuple(metrics), gap="none")


def _row(system: MeasuredSystem, plan: BoardPlan, metric: str, entry: Metric, wanted: str, level: float) -> BoardRow:
    nothing = BoardNumber(None, note=Remark.of("no-submission/given"))
    cells = {d: system.numbers.get(d, {}).get(metric, {}).get("", nothing) for d in plan.names}
    missing = tuple(d for d in plan.names if d not in system.numbers)
    gone = BoardNumber(None, note=Remark.of("data-sets-missing", n=len(missing), total=len(plan.names)))
    mean = gone if missing else average([*cells.values()], [d.weight for d in plan.datasets])
    whole = system.numbers.get(POOLED, {}).get(metric, {}).get("", gone)
    if len(plan.datasets) == 1:
        whole = cells[plan.names[0]]
    low = worst({d: b for d, b in cells.items() if d in system.numbers}, entry.best, level) if not missing else gone
    number = mean if wanted == AVERAGE else whole if wanted == POOLED_RANK else cells[wanted]
    return BoardRow(system.name, number, cells, mean, whole, low, missing=missing, details=system.numbers)


def _ranked(
    systems: Sequence[MeasuredSystem],
    rows: Mapping[str, BoardRow],
    plan: BoardPlan,
    design: Design,
    metric: str,
    wanted: str,
) -> tuple[list[BoardRow], list[Duel]]:
    """Return the rows in order, with ranks and tiers, and every pair that was tested."""
    from hitmiss.conclude.ranking import tiers
    from hitmiss.engine.prepare import prepare_metric

    able = {s.name: own for s in systems if rows[s.name].number.value is not None and (own := _drawn(s, plan, wanted))}
    others = [row for row in rows.values() if row.system not in able]
    if len(able) < 2 or not design.bootstrap:
        order = sorted(able, key=lambda name: _place(rows[name], resolve(design.metrics[0])[1].best))
        alone = [replace(rows[n], rank=i) for i, n in enumerate(order, 1)]
        return alone + others, []
    one = next(iter(able.values()))
    unlike = [name for name, own in able.items() if own.questions != one.questions]
    if unlike:
        raise DataError.of("unpaired/not", able=next(iter(able)), unlike=unlike[0])
    from hitmiss.core.trials import Trials

    question = prepare_metric(metric, Trials.of([1, 0], [1.0, 0.0]), design.rules)
    standings, duels = rank_replicates(able, question, design, BoardSample(one.n, one.n_positive))
    found = tiers([s.run for s in standings], {frozenset((d.a, d.b)): d.difference for d in duels})
    ranked = [
        replace(rows[s.run], rank=i, rank_low=s.rank_low, rank_high=s.rank_high, tier=found[s.run])
        for i, s in enumerate(standings, 1)
    ]
    return ranked + others, duels


def _drawn(system: MeasuredSystem, plan: BoardPlan, wanted: str) -> RunReplicates | None:
    """Return the replicates of the ranked number of a system; None if it has none."""
    own = system.replicates
    if wanted == POOLED_RANK:
        return own.get(POOLED)
    if wanted != AVERAGE:
        return own.get(wanted)
    if any(d not in own for d in plan.names):
        return None
    parts = [own[d] for d in plan.names]
    total = math.fsum(d.weight for d in plan.datasets)
    shares = np.array([d.weight / total for d in plan.datasets])
    return RunReplicates(
        float(shares @ np.array([p.value for p in parts])),
        shares @ np.array([p.drawn for p in parts]),
        # An error that one data set does not show changes the average by its share.
        (
            max(w * p.unseen[0] for w, p in zip(shares.tolist(), parts, strict=True)),
            max(w * p.unseen[1] for w, p in zip(shares.tolist(), parts, strict=True)),
        ),
        min(p.units for p in parts),
        sum(p.n for p in parts),
        sum(p.n_positive for p in parts),
        " ".join(p.questions for p in parts),
    )


def _place(row: BoardRow, best: Best) -> tuple[bool, float]:
    value = row.number.value
    return value is None, (value or 0.0) if best == "low" else -(value or 0.0)
