"""From shards to Results: evaluate files that need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core import shared
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.question import OPTION, SYSTEM, Design, Gap, Protocol, ReadSpec, find, names_of
from hitmiss.core.registry import Spec, find_metric, parse, resolve
from hitmiss.core.results import UNUSED, Remark, Results
from hitmiss.core.tally import COARSE, EXACT, Keys, Tally, bins_of, first_key, keys_of, scores_of
from hitmiss.core.trials import ANSWERS, Header, Source, Threshold, Trials
from hitmiss.derive.decisions import at_threshold
from hitmiss.engine.measure import USUAL_UNITS, form_of, ties_differ
from hitmiss.engine.resample import Rows, TalliedTrials
from hitmiss.evaluation.protocol import find_protocol, measure_trials
from hitmiss.io.columns import Reading, same_class, understand
from hitmiss.io.parse import Ledger, expand, fetched, quoted
from hitmiss.io.reader import SATURATED, FinishedRun, open_finished, read
from hitmiss.io.tables import find_reshaping
from hitmiss.outofcore.count import (
    Covering,
    find_engine,
    first_pass,
    joined,
    refuse_repeats,
    second_pass,
    settle_coverage,
    with_key,
)
from hitmiss.outofcore.keyed import look
from hitmiss.outofcore.plan import (
    Binned,
    Cell,
    ExactCells,
    Executor,
    Resident,
    Shard,
    ShardPlan,
    ShardTally,
    Stamps,
    Window,
    coarsened,
    merge_tallies,
    ranges_of,
    sequential,
    single_scores,
)
from hitmiss.outofcore.shards import Opened, Plugged, plugged
from hitmiss.outofcore.sums import SampleKey, Stretches, read_sums
from hitmiss.robustness.attacks import measure_parts
from hitmiss.robustness.campaign import CLEAN
from hitmiss.stats import sketch
from hitmiss.stats.forms import Form, ReadTally
from hitmiss.stats.intervals import Steps
from hitmiss.stats.sketch import LEVELS, condense, heavy_bins, leaves, opened, thresholds

# ----------------------------------------------------------------------
# From counted shards to trials for `measure`: interpret labels, write the header, note unusual data.


def assemble(
    tally: ShardTally, plan: ShardPlan, how: str = "stream", singles: Mapping[Cell, float] = MappingProxyType({})
) -> TalliedTrials:
    """Return the trials of a merged tally; bins represent the scores until the scores are fetched.

    `how` they were counted goes into the header's choices, and so into the signature. `singles`: see `single_scores`.
    """
    if not tally.cells:
        raise DataError("there are no trials to measure")
    reading = _read_words(tally, plan)
    order = sorted(tally.cells)
    binned = [tally.cells[cell] for cell in order]
    notes = (*_unpaired(tally), *_notes(order, binned, plan, reading, singles))
    header = _header(tally, plan, reading, notes, how)
    frame = _frame(order, tally.names, reading)
    size = np.array([b.total for b in binned], dtype=np.int64)
    return TalliedTrials.of_cells(frame, header, size, ExactCells(binned))


def _read_words(tally: ShardTally, plan: ShardPlan) -> Reading:
    """Interpret the labels of all shards together."""
    options = plan.options
    words = sorted({cell[0] for cell in tally.cells})
    reading = understand(words, options.positive, options.negative, options.positive_value)
    if reading.problems:
        word = reading.problems[0].word
        n = sum(binned.total for cell, binned in tally.cells.items() if cell[0] == word)
        known = ", ".join((*reading.positive_words, *reading.negative_words)) or "none"
        raise DataError(
            f"{n:,} rows have the label {quoted(word)}, which beside the labels of the other shards names no class; known "
            f"here: {known}. Declare the classes with --positive and --negative, or say --positive-value"
        )
    higher = options.higher
    if higher is not None and not any(same_class(higher, name) for name in (reading.positive, reading.negative)):
        raise UnknownName("class for a higher score", higher, (reading.positive, reading.negative))
    is_turned = higher is not None and same_class(higher, reading.negative) and not same_class(higher, reading.positive)
    if is_turned != plan.turned:
        raise DataError(
            "the first rows of the shards do not show which class is positive; declare it with --positive and --negative"
        )
    return reading


def _frame(order: Sequence[Cell], names: Sequence[str], reading: Reading) -> pl.DataFrame:
    columns: dict[str, Any] = {name: [cell[i] for cell in order] for i, name in enumerate(names)}
    columns["label"] = [int(word in reading.positive_words) for word in columns["label"]]
    if "decision" in columns:
        columns["decision"] = [None if text == "" else int(text) for text in columns["decision"]]
    frame = pl.DataFrame(
        columns, schema_overrides={"label": pl.Int8, "decision": pl.Int8} if "decision" in columns else None
    )
    return frame.with_columns(score=pl.lit(0.0))


def _header(tally: ShardTally, plan: ShardPlan, reading: Reading, notes: tuple[str, ...], how: str) -> Header:
    options = plan.options
    fixed = ("label", "target", "decision", *options.runs)
    choices = [f"{name}({n})" for name, n in sorted(tally.noted.items())]
    if plan.turned:
        choices.append(f"higher:{reading.negative}")
    first = {s.sha256: s for s in reversed(tally.shards)}.values()  # for several systems in one file, the first
    shards = [s for s in tally.shards if s in first]
    files = [{"name": s.name, "sha256": s.sha256, "rows": s.rows, "bytes": s.bytes, **s.facts} for s in shards]
    return Header(
        positive=reading.positive,
        negative=reading.negative,
        score_kind=options.kind,
        runs=options.runs,
        slices=tuple(name for name in tally.names if name not in fixed),
        threshold=None if plan.threshold is None else Threshold(plan.threshold, "given"),
        sources=tuple(Source(s.name, s.sha256) for s in shards),
        choices=(*choices, how),
        notes=notes,
        provenance={
            "files": files,
            "rename": {name: dict(values) for name, values in options.rename.items()},
            how: {"plan": tally.plan, "bits": plan.bits},
        },
    )


def _unpaired(tally: ShardTally) -> Iterator[str]:
    """Yield the reader's notes about files without ids."""
    first = tally.shards[0]
    if first.facts.get("has_ids") is False:
        yield f"{first.name}: unpaired, it has no ids; rows are numbered, and cannot be matched with other files"


def _notes(
    order: Sequence[Cell], binned: Sequence[Binned], plan: ShardPlan, reading: Reading, singles: Mapping[Cell, float]
) -> Iterator[str]:
    """Yield the reader's notes about trials that are valid but unusual (see `io.reader.note_oddities`)."""
    if plan.turned:
        how = "1 - p" if plan.options.score_kind == "probability" else "their sign changed"
        yield f"a higher score meant {reading.negative} in the file: the scores were reversed ({how})"
    positive = sum(b.total for cell, b in zip(order, binned, strict=True) if cell[0] in reading.positive_words)
    n = sum(b.total for b in binned)
    if positive in (0, n):
        name = reading.positive if positive else reading.negative
        yield f"all {n:,} trials are {name}: nothing that compares the classes is defined"
    for run, who, own in _runs(order, binned, plan):
        for note in _score_notes(own, plan, singles.get(run)):
            yield who + note


def _runs(order: Sequence[Cell], binned: Sequence[Binned], plan: ShardPlan) -> Iterator[tuple[Cell, str, list[Binned]]]:
    """Yield the cells of each run, and the beginning of notes about it; systems in the order they were named."""
    names = plan.options.runs
    groups: dict[Cell, list[Binned]] = {(system,): [] for system in plan.options.score_columns if len(names) == 1}
    for cell, own in zip(order, binned, strict=True):
        groups.setdefault(cell[1 : 1 + len(names)], []).append(own)
    for run, members in groups.items():
        if members:
            yield run, "".join(f"{name} {value}: " for name, value in zip(names, run, strict=True)), members


def _score_notes(binned: Sequence[Binned], plan: ShardPlan, single: float | None) -> Iterator[str]:
    n = sum(b.total for b in binned)
    ends = [(b.bins[0], b.bins[-1]) for b in binned if len(b.bins)]
    low, high = min(e[0] for e in ends), max(e[1] for e in ends)
    if low == high and plan.is_exact:
        single = scores_of(np.array([low], dtype=np.uint64))[0].item()
    if single is not None and n > 1:
        yield f"all {n:,} scores are {single!r}: they do not separate the classes"
    infinite = _count_at(binned, -np.inf) + _count_at(binned, np.inf)
    if infinite:
        yield f"{infinite:,} scores are infinite: metrics of the order are defined, those of the value are not"
    stuck = (_count_at(binned, 0.0) + _count_at(binned, 1.0)) / n
    if plan.options.score_kind == "probability" and stuck > SATURATED:
        yield f"{stuck:.1%} of the probabilities are exactly 0 or 1, so their order is lost; give log-odds if there are any"


def _count_at(binned: Sequence[Binned], score: float) -> int:
    """Return how many trials have this score.

    The bins of the infinities, of 0 and (for probabilities) of 1 hold only that one score.
    """
    key = keys_of([score])[0]
    total = 0
    for b in binned:
        at = int(np.searchsorted(b.bins, key))
        if at < len(b.bins) and b.bins[at] == key:
            total += int(b.each[at])
    return total


# ----------------------------------------------------------------------
# Cells of which only bins were counted, and what is fetched so that every figure is that of the exact scores.
#
# 1  A rehearsal of the measurement shows which samples will be requested (`Rehearsal`).
# 2  Bins that hold too much of a sample are counted again, finer (`refine`).
# 3  The scores of leaves that may contain a crossing or a minimum cost are fetched (`fetch_open`).
# 4  Figures that need every score (AUC, Cllr, PAV) are computed from a stream of the scores, in stretches (see `sums`).

Fetch = Callable[[Window], ShardTally]
"""Makes a second pass over all shards and merges the results."""
TIED: Final = 32
"""A bin with this many bits that is still heavy is probably one score with many trials: its scores are fetched."""
NO_KEYS: Final[Keys] = np.zeros(0, dtype=np.uint64)
ROW_BYTES: Final = 96
"""The memory per fetched score: its key, two copies while sorting, and its entry in a tally."""


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """Replaces the scores while `measure` is rehearsed, and records which samples are requested."""

    cells: ExactCells
    asked: dict[SampleKey, Tally] = field(default_factory=dict)

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """Return the bins of some cells as if they were scores."""
        key = _key(positive, negative)
        if key not in self.asked:
            self.asked[key] = self.cells.tally(positive, negative)
        return self.asked[key]

    def steps(self, positive: Rows, negative: Rows) -> Steps:
        """Return the same for an AUC."""
        return Steps.of_tally(self.tally(positive, negative))


@dataclass(frozen=True, eq=False)
class CoarseCells:
    """Cells with exact scores where they matter and bins elsewhere, and the figures that needed every score."""

    cells: ExactCells
    forms: tuple[Form, ...]
    figures: Mapping[SampleKey, Mapping[Form, float]] = field(default_factory=dict)
    areas: Mapping[SampleKey, Steps] = field(default_factory=dict)
    tied: Mapping[SampleKey, float] = field(default_factory=dict)
    resident: ExactCells | None = None
    """All scores, if they are in memory."""

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """Return the tally of some cells, shortened, with its figures."""
        short = condense(self.cells.tally(positive, negative), self.forms)
        key = _key(positive, negative)
        tied = self.tied.get(key)
        if self.resident is not None and short.has_both_classes and ties_differ(short):
            tied = self.resident.tally(positive, negative).tied_mass
        return ReadTally(short.score, short.positives, short.negatives, self.figures.get(key, {}), tied)

    def steps(self, positive: Rows, negative: Rows) -> Steps:
        """Return the steps of the AUC of some cells; from their bins if nothing depends on its exact value."""
        found = self.areas.get(_key(positive, negative))
        if found is None and self.resident is not None:
            return self.resident.steps(positive, negative)
        return found if found is not None else Steps.of_tally(self.cells.tally(positive, negative))


def _key(positive: Rows, negative: Rows) -> SampleKey:
    return tuple(positive.tolist()), tuple(negative.tolist())


def refine(
    binned: list[Binned],
    cells: Sequence[Cell],
    asked: Mapping[SampleKey, Tally],
    fetch: Fetch,
    cuts: tuple[float, ...] = (),
) -> tuple[list[Binned], Mapping[SampleKey, Tally]]:
    """Count bins that are heavy in some sample again by finer bins, level by level; also return the tallies."""
    # Only heavy bins are split further: a light bin holds few trials, so fetching it whole (see `fetch_open`) is cheap. The
    # number of bins therefore stays small at every level, although the bins of the last level are single scores.
    for bits, finer in pairwise(LEVELS):
        wanted: dict[int, list[Keys]] = {}
        for (positive, negative), tally in asked.items():
            heavy = heavy_bins(tally, bits)
            for row in (*positive, *negative) if len(heavy) else ():
                wanted.setdefault(row, []).append(heavy)
        if not wanted:
            break
        width = np.uint64((1 << (EXACT - bits)) - 1)
        firsts = {row: np.unique(np.concatenate(keys)) for row, keys in wanted.items()}
        ranges = {row: (keys, keys | width) for row, keys in firsts.items()}
        # A bin that is still heavy after several levels is probably one score with many trials: more levels would not split
        # it, so the exact scores are counted at once.
        is_tied = bits >= TIED
        every = ranges_of(*_union(list(ranges.values()), binned))
        binned = _replaced(binned, cells, ranges, fetch(Window(EXACT if is_tied else finer, every, cuts)))
        asked = {key: _tally(ExactCells(binned), key) for key in asked}
        if is_tied:
            break
    return binned, asked


def _tally(source: ExactCells, key: SampleKey) -> Tally:
    return source.tally(np.array(key[0], dtype=np.intp), np.array(key[1], dtype=np.intp))


def fetch_open(
    binned: list[Binned],
    cells: Sequence[Cell],
    asked: Mapping[SampleKey, Tally],
    forms: Sequence[Form],
    fetch: Fetch,
    memory: int,
) -> list[Binned]:
    """Fetch the scores of leaves that may contain a crossing or a minimum cost of a sample or its replicates."""
    found: dict[int, list[tuple[Keys, Keys]]] = {}
    for (positive, negative), tally in asked.items():
        starts, lowest = leaves(tally, thresholds(forms))
        is_open = opened(tally, starts, forms)
        first = keys_of(lowest)
        last = np.append(first[1:], np.uint64(2**64 - 1)) - np.uint64(1)
        # A leaf ends with its bin, not where the next leaf begins: another sample may have trials in between.
        last = np.minimum(last, _end_of_bin(first))
        for row in (*positive, *negative):
            found.setdefault(row, []).append((first[is_open], last[is_open]))
    # Checked before fetching: the bins already show how many trials lie in the ranges.
    ranges = {row: _union(parts) for row, parts in found.items()}
    rows = sum(_held(binned[row], *ends) for row, ends in ranges.items())
    if rows * ROW_BYTES > memory:
        raise DataError(
            f"about {rows:,} trials lie where the figures are decided, which is more than the memory allowed; "
            f"raise --memory to {rows * ROW_BYTES / 1e9 + 0.1:.1f}GB, or group by less"
        )
    for first, last in _in_turns(binned, list(ranges.values()), max(memory // ROW_BYTES, 1)):
        inside = {row: _within(ends, first[0], last[-1]) for row, ends in ranges.items()}
        binned = _replaced(binned, cells, inside, fetch(Window(EXACT, ranges_of(first, last))))
    return binned


def _in_turns(binned: Sequence[Binned], ranges: Sequence[tuple[Keys, Keys]], most: int) -> Iterator[tuple[Keys, Keys]]:
    """Split all ranges into parts with about `most` trials each: one pass fetches a part for all cells together."""
    first, last = _union(ranges, binned)
    if not len(first):
        return
    held = np.array([sum(_held(b, first[i : i + 1], last[i : i + 1]) for b in binned) for i in range(len(first))])
    turn = (np.cumsum(held) - 1) // most
    for number in np.unique(turn):
        yield first[turn == number], last[turn == number]


def _within(ends: tuple[Keys, Keys], low: np.uint64, high: np.uint64) -> tuple[Keys, Keys]:
    """Return the ranges between two keys: if ranges are fetched in turns, each range belongs to one turn."""
    chosen = (ends[0] >= low) & (ends[1] <= high)
    return ends[0][chosen], ends[1][chosen]


def needs_whole(forms: Sequence[Form]) -> bool:
    """Return whether some form needs every score, and not only their order."""
    return any(f.every_score and not f.is_area for f in forms)


def needs_every_score(source: CoarseCells, samples: Iterable[SampleKey], forms: Sequence[Form]) -> bool:
    """Return whether a figure, or a warning that quotes one, needs more than the scores that were fetched."""
    if any(f.every_score for f in forms):
        return True
    for positive, negative in samples:
        rows = np.array(positive, dtype=np.intp), np.array(negative, dtype=np.intp)
        tally = source.tally(*rows)
        if tally.has_both_classes and (source.steps(*rows).area < 0.51 or ties_differ(tally)):
            return True
    return False


def _replaced(
    binned: Sequence[Binned], cells: Sequence[Cell], ranges: Mapping[int, tuple[Keys, Keys]], fetched: ShardTally
) -> list[Binned]:
    """Replace the content of the ranges of a cell by what was fetched for them."""
    out = []
    for row, cell in enumerate(cells):
        own, (first, last) = binned[row], ranges.get(row, (NO_KEYS, NO_KEYS))
        outside = ~_inside(own.bins, first, last)
        parts = [Binned(own.bins[outside], own.each[outside])]
        if cell in fetched.cells:
            new = fetched.cells[cell]
            mine = _inside(new.bins, first, last)
            parts.append(Binned(new.bins[mine], new.each[mine]))
        out.append(_joined(parts))
    return out


def _joined(parts: Sequence[Binned]) -> Binned:
    bins, counts = np.concatenate([p.bins for p in parts]), np.concatenate([p.each for p in parts])
    order = np.argsort(bins, kind="stable")
    return Binned(bins[order], counts[order])


def _end_of_bin(first: Keys) -> Keys:
    """Return the last key of the coarsest bin that contains each key."""
    return first_key(bins_of(first, COARSE), COARSE) | np.uint64((1 << (EXACT - COARSE)) - 1)


def _union(parts: Sequence[tuple[Keys, Keys]], binned: Sequence[Binned] = ()) -> tuple[Keys, Keys]:
    """Merge overlapping ranges; given the bins of all trials, also merge ranges with no trial between them."""
    first, last = (np.concatenate([NO_KEYS, *(p[i] for p in parts)]) for i in (0, 1))
    order = np.argsort(first, kind="stable")
    first, last = first[order], np.maximum.accumulate(last[order])
    apart = np.append(True, first[1:] > last[:-1])[: len(first)]
    if binned and len(first):
        bins = np.unique(np.concatenate([b.bins for b in binned]))
        before = np.searchsorted(bins, first[1:], side="left") > np.searchsorted(bins, last[:-1], side="right")
        apart[1:] &= before
    ends = np.append(np.flatnonzero(apart)[1:], len(first)) - 1 if len(first) else np.zeros(0, dtype=np.intp)
    return first[apart], last[ends]


def _inside(keys: Keys, first: Keys, last: Keys) -> NDArray[np.bool_]:
    at = np.searchsorted(first, keys, side="right")
    if not len(first):
        return np.zeros(len(keys), dtype=bool)
    return np.asarray((at > 0) & (keys <= last[np.maximum(at, 1) - 1]))


def _held(binned: Binned, first: Keys, last: Keys) -> int:
    return int(binned.each[_inside(binned.bins, first, last)].sum())


# ----------------------------------------------------------------------
# From shards to Results: files that need not fit into memory, evaluated by the same engine as in-memory trials.

MEMORY: Final = 10**9
BYTES_A_TRIAL: Final = 56
"""The memory per trial if every score is kept: its key, the tallies of all trials and of its slice, and sorting."""
ORDER_SHARE: Final = 0.7
"""The share of it that suffices if figures need only the order of the scores: half was measured for 10 million trials."""
UNIT_BYTES: Final = 200
"""The same if units are resampled: also the trials in the order of their scores, each with its unit."""


@dataclass(frozen=True, eq=False)
class Streamed:
    """The figures of a streamed evaluation, and the counted trials behind them."""

    results: Results
    trials: TalliedTrials


def evaluate_streamed(
    scores: Any,
    protocol: str | Path | Protocol | None = None,
    *,
    run: Executor = sequential,
    engine: str = "polars",
    memory: int = MEMORY,
    scratch: str | None = None,
    key: str | Sequence[str] | None = None,
    reading: ReadSpec | Mapping[str, object] | None = None,
    design: Design | None = None,
    **asked: object,
) -> Streamed:
    """Evaluate like `evaluate`, for files that need not fit into memory.

    Parameters
    ----------
    scores
        A path, a pattern or a list of these. The files hold their labels unless `key` is given.
    protocol
        What to measure; see `evaluate`.
    run
        Runs the passes over the shards: one after the other by default, or any executor of the same form.
    engine
        Counts a shard: `polars` or `duckdb`.
    memory
        Bound (in bytes) on what is kept of the files; the rest is temporarily written to disk.
    scratch
        The folder in which the temporary folder is made.
    key
        The files with the labels, if the score files do not have them.
    reading
        How to read the files, as a spec or its fields.
    design
        What is asked for.
    **asked
        Instead of `design`, the keywords of `Design.of`: metrics, by, gap, threshold, bootstrap, unit, seed, level,
        interval.

    Returns
    -------
    Streamed
        The figures, equal to the last bit for every engine and executor, and the counted trials.

    Raises
    ------
    UsageError
        For an unknown protocol, metric, column or option.
    DataError
        If the files cannot be scored as they are.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "scores.csv").write_text("id,label,score\\nx,real,2\\ny,fake,1\\nz,real,0\\n")
    ...     evaluate_streamed(f"{folder}/*.csv", metrics=["roc_auc"], reading={"positive": "real"}).results.one("roc_auc").value
    0.5
    """
    design = design or asked_design(protocol, asked)
    said = read_options(design.protocol, reading)
    with (
        fetched(scores, scratch) as found,
        fetched(key, scratch) as labels,
        plugged(found, said, scratch) as files,
    ):
        return _evaluate(files, said, design, labels, _Means(run, engine, memory, scratch))


@dataclass(frozen=True)
class _Means:
    """The resources of an evaluation: executor, engine, memory limit and temporary folder."""

    run: Executor
    engine: str
    memory: int
    scratch: str | None


def _evaluate(files: Plugged, said: ReadSpec, design: Design, key: object, means: _Means) -> Streamed:
    find_engine(means.engine)
    scores, reads, run, scratch = files.scores, files.options, means.run, means.scratch
    chosen, threshold, whole = design.protocol, design.threshold, design
    finished = open_finished(scores, reads)
    in_parts = chosen is not None and bool(chosen.measured_by)
    if in_parts:  # trials are only counted here; their figures are measured run by run
        if finished is None:
            raise UsageError(
                f"the protocol {design.settled.name} can stream only the folder of a run (`hitmiss attack -o`); "
                "leave --stream out",
                code="needs-every-trial",
            )
        design = replace(design, protocol=None, metrics=(), by=(), matrix=(), unit=(), bootstrap=0, gap="none")
    wanted = list(design.metrics) or list(chosen.metrics if chosen else ())
    if finished is not None:  # a run folder is read through the table inside it
        scores, reads = finished.table, finished.options
    units = design.unit if design.bootstrap else ()
    columns = list(dict.fromkeys((*asked_columns(design), *reads.where)))
    refuse_what_needs_trials(design, wanted, columns, reads.changed(match=None))  # files have ids that can be matched
    shards = [Shard(str(path), system) for path in expand(scores) for system in reads.score_columns or (None,)]
    reads = reads if not reads.score_columns else reads.changed(runs=(*reads.runs, SYSTEM))
    unchanged = Stamps.of(shards)
    looked = look(shards, key, reads, columns, means.memory)
    opened, memory, columns = looked.opened, looked.memory, list(looked.columns)
    keep = kept_columns(opened[0], wanted, columns, threshold, reads)
    expected = looked.expected
    forms = asked_forms(wanted, chosen, reads)
    each = UNIT_BYTES if units else BYTES_A_TRIAL * (1.0 if needs_whole(forms) else ORDER_SHARE)
    is_exact = expected <= sketch.LARGE or expected * each <= memory
    if units and not is_exact:
        raise too_many_for_units(units, expected)
    plan = ShardPlan(reads, keep, EXACT, turned=looked.turned, threshold=threshold, key=looked.key, engine=means.engine)
    if not is_exact:
        plan = replace(plan, bits=COARSE, cuts=sketch.thresholds(forms), ids=plan.key is not None)
    tally, covering = _count(shards, plan, run, memory)
    if not is_exact and tally.n <= sketch.LARGE:
        plan = replace(plan, bits=EXACT, cuts=(), ids=plan.key is not None)
        tally, covering = _count(shards, plan, run, memory)
    tally, kept = keep_cells(tally, reads)
    singles = {} if plan.is_exact else single_scores(tally, plan, _Fetching(shards, plan, run))
    trials = assemble(tally, plan, singles=singles)
    trials = trials if finished is None else _as_run_says(trials, finished)
    if covering is not None:
        trials = with_key(trials, plan, covering)
    head = replace(trials.header, reading=said, choices=(*kept, *trials.header.choices))
    trials = replace(trials, header=files.named(head))
    if in_parts and finished is not None:
        found = measure_parts(trials, whole, _parts(trials, finished, threshold))
        unchanged.refuse_changes()
        return Streamed(found, trials)
    fetch: Callable[[Window], ShardTally] | None = None
    if not plan.is_exact:
        fetch = _Fetching(shards, plan, run)
    elif not units and tally.n > sketch.LARGE and not needs_whole(forms):
        fetch = Resident(tally.plan, tally.names, tally.cells)
    if fetch is not None:
        rehearse = _Rehearsing(replace(design, bootstrap=0))
        cells = tuple(sorted(tally.cells))
        stretches = Stretches(shards, plan, run, cells, memory, scratch)
        trials = _sharpened(trials, cells, forms, fetch, stretches, rehearse)
    unchanged.refuse_changes()
    found = measure_trials(trials, design)
    return Streamed(replace(found, warnings=(*found.warnings, *_unused_unit(design, looked.there))), trials)


def _parts(trials: TalliedTrials, run: FinishedRun, threshold: float | None) -> Iterator[Trials]:
    """Yield the attacks of a run folder one by one, each with the records without an attack."""
    table, names = pl.scan_parquet(run.table), trials.header.runs
    asked = trials.frame.select(names).unique().sort(names).rows(named=True)
    where = {name: values for name, values in run.options.where.items() if name not in names}
    options = run.options.changed(where=where)
    attacks = [own for own in asked if own["attack"] != CLEAN]
    for own in shared.each(attacks or asked, "attacks"):
        is_own = pl.all_horizontal(pl.col(name).cast(pl.String) == value for name, value in own.items())
        part = read(table.filter(is_own | (pl.col("attack") == CLEAN)).collect(), None, options)
        part = part.retitle(notes=trials.header.notes)
        yield part if threshold is None else at_threshold(part, threshold)


def _unused_unit(design: Design, there: Sequence[str]) -> list[str]:
    """Say that the files have a natural unit that was not drawn; what it would change is not known from counts."""
    if design.unit or not design.bootstrap:
        return []
    named = map(names_of, design.settled.natural or USUAL_UNITS)
    unit = next((names for names in named if all(find(name, there) for name in names)), ())
    if not unit:
        return []
    name, option = " × ".join(unit), ",".join(unit)
    return [
        Remark(
            f"trials were drawn one by one, and those of one {name} are not independent; "
            f"--unit {option} draws them whole, which widens the intervals",
            UNUSED,
        )
    ]


def _as_run_says(trials: TalliedTrials, run: FinishedRun) -> TalliedTrials:
    """Return the trials of a run folder, with what the run records about itself in their header."""
    head = trials.header
    told = replace(head, notes=(*run.notes, *head.notes), choices=(*run.choices, *head.choices), coverage=run.coverage)
    return replace(trials, header=told)


@dataclass(frozen=True)
class _Rehearsing:
    """A measurement made only to see which samples it requests."""

    design: Design

    def __call__(self, trials: TalliedTrials) -> None:
        measure_trials(trials, self.design)


@dataclass(frozen=True)
class _Fetching:
    """Second passes over all shards."""

    shards: Sequence[Shard]
    plan: ShardPlan
    run: Executor

    def __call__(self, window: Window) -> ShardTally:
        calls = [(shard, self.plan, window) for shard in self.shards]
        tally = merge_tallies(_told(self.run(second_pass, calls), len(calls), "shards read again"))
        return keep_cells(tally, self.plan.options, is_first=False)[0]


def keep_cells(tally: ShardTally, options: ReadSpec, *, is_first: bool = True) -> tuple[ShardTally, list[str]]:
    """Return the cells that `where` keeps, and its entry in the signature.

    Trials are first counted by the columns of `where`, then selected.
    """
    cells, said = tally.cells, list[str]()
    for name, values in options.where.items():
        column = find(name, tally.names) or name
        at, renamed = tally.names.index(column), options.rename.get(column, {})
        wanted, known = {*values, *(renamed.get(v, v) for v in values)}, {*(cell[at] for cell in cells), *renamed}
        unknown = [value for value in values if value not in known] if is_first else []
        if unknown:
            raise UnknownName(f"value of {name}", unknown[0], sorted(known)[:20])
        whole = sum(cell.total for cell in cells.values())
        cells = {cell: own for cell, own in cells.items() if cell[at] in wanted}
        n = sum(cell.total for cell in cells.values())
        if is_first and not n:
            raise DataError(f"no row has {name}={values[0]}; check --where", code="no-rows")
        said.append(f"where:{name}={' & '.join(values)}({n}/{whole})")
    return (replace(tally, cells=cells) if options.where else tally), said


def _sharpened(
    trials: TalliedTrials,
    cells: Sequence[Cell],
    forms: Sequence[Form],
    fetch: Callable[[Window], ShardTally],
    stretches: Stretches,
    rehearse: Callable[[TalliedTrials], None],
) -> TalliedTrials:
    """Return trials as bins, with the exact scores that decide the figures: fetched, or picked from all scores."""
    assert isinstance(trials.scored, ExactCells)
    resident = trials.scored if isinstance(fetch, Resident) else None
    binned = list(trials.scored.binned)
    cuts = sketch.thresholds(forms)
    if resident is not None:
        binned = [coarsened(b, cuts) for b in binned]
    # The rehearsal runs the whole measurement on bins; its figures are thrown away, only the requested samples matter.
    stage = Rehearsal(ExactCells(binned))
    rehearse(replace(trials, scored=stage))
    binned, asked = refine(binned, cells, stage.asked, fetch, cuts)
    mixed = fetch_open(binned, cells, asked, forms, fetch, stretches.memory)
    source = CoarseCells(ExactCells(mixed), tuple(forms), resident=resident)
    if resident is not None or not needs_every_score(source, asked, forms):
        return replace(trials, scored=source)
    found = read_sums(binned, asked, forms, stretches)
    return replace(trials, scored=replace(source, figures=found.figures, areas=found.areas, tied=found.tied))


def asked_forms(wanted: Sequence[str], protocol: Protocol | None, options: ReadSpec) -> list[Form]:
    """Return the forms of the metrics that will be measured on scores."""
    found: list[Form] = []
    for text in wanted:
        spec, entry, _ = resolve(text)
        settled = {**(protocol.settings.get(spec.name, {}) if protocol else {}), **dict(spec.settings)}
        if "score" not in entry.columns or entry.form is None or (entry.kinds and options.kind not in entry.kinds):
            continue
        form = form_of(entry, entry.settings(Spec.of(spec.name, **settled)))
        if isinstance(form, Form):
            found.append(form)
    return found


def read_options(protocol: Protocol | None, reading: ReadSpec | Mapping[str, object] | None) -> ReadSpec:
    """Return the caller's reading options, a spec or its fields, applied over those of the protocol."""
    said = reading if isinstance(reading, ReadSpec) else ReadSpec().changed(**(reading or {}))
    return (said.over(protocol.read) if protocol else said).with_own_names()


def asked_design(protocol: str | Path | Protocol | None, asked: Mapping[str, Any]) -> Design:
    """Return a design from keywords."""
    return Design.of(**asked, protocol=find_protocol(protocol) if protocol is not None else None)


def asked_columns(design: Design) -> list[str]:
    """Return the columns that groupings, the gap and units need."""
    gap_columns = [design.gap.column] if isinstance(design.gap, Gap) else []
    # a misspelt unit is refused anyway
    units = () if design.unit == ("item",) and not design.bootstrap else design.unit
    derived = design.protocol.expressions(design.metrics) if design.protocol else ()
    across = [c for one in derived for term in one.terms for c in term.columns]
    return list(dict.fromkeys([*(c for grouping in design.groupings for c in grouping), *gap_columns, *units, *across]))


def too_many_for_units(units: Sequence[str], expected: int) -> UsageError:
    """Return the error that units cannot be resampled, with the reason."""
    return UsageError(
        f"drawing whole units of {', '.join(units)} needs every score at once, and there are about {expected:,} trials; raise "
        f"--memory to {expected * UNIT_BYTES / 1e9 + 0.1:.1f}GB, or leave --unit out",
        code="units-beyond-memory",
    )


def _needs_columns(text: str) -> bool:
    """Return whether a metric uses more of each trial than its score and its decision."""
    _, entry, settings = resolve(text)
    return form_of(entry, settings).kind == "columns"


def refuse_what_needs_trials(design: Design, wanted: Sequence[str], columns: Sequence[str], options: ReadSpec) -> None:
    """Refuse, in one sentence, what cannot be computed from counts."""
    protocol = design.protocol
    if not wanted:
        raise UsageError(
            "say what to measure: a protocol (-p asvspoof5) or metrics (-m eer -m min_dcf)", code="no-metric"
        )
    if protocol is not None and (protocol.reader or protocol.measured_by):
        raise UsageError(
            f"the protocol {protocol.name} reads and measures its files as a whole; leave --stream out",
            code="needs-every-trial",
        )
    single = [name for name in columns if name in ("item", "label", *ANSWERS)]
    if single:
        raise UsageError(
            f"trials cannot be counted by {single[0]}, only by slice columns such as codec; leave {single[0]} out",
            code="not-a-slice",
        )
    own = [name for name in columns if name in options.itself]
    if own:
        named = f" {protocol.name}" if protocol is not None else ""
        raise UsageError(
            f"by the protocol{named}, each trial whose {own[0]} is {options.itself[own[0]]!r} is a group of its own, so "
            f"{own[0]} has too many values to be counted by; leave --stream out, or {own[0]}",
            code="too-many-values",
        )
    unread = ["match"] if options.match == "stem" else []
    if options.where:  # trials that `where` leaves out are counted too, so these figures would include them
        unread += [name for name in ("allow_missing", "on_nan") if name in options.said]
    if unread:
        raise UsageError(
            f"--{OPTION.get(unread[0], unread[0])} needs the whole table{' beside --where' if options.where else ''}; "
            "leave --stream out",
            code="unread-option",
        )
    if options.dedupe or find_reshaping(options) is not None:
        raise UsageError(
            "--dedupe and layouts of nested files need the whole table; leave --stream out", code="needs-every-trial"
        )
    if options.encoding not in (None, "utf-8"):
        raise UsageError("only UTF-8 is streamed; convert the files, or leave --stream out", code="stream-encoding")
    unfit = [text for text in wanted if _needs_columns(text)]
    if unfit:
        raise UsageError(
            f"{unfit[0]} needs every trial at once and cannot be streamed; leave --stream out, or the metric",
            code="needs-every-trial",
        )


def kept_columns(
    opened: Opened, wanted: Sequence[str], columns: Sequence[str], threshold: float | None, options: ReadSpec
) -> tuple[str, ...]:
    """Return the columns that define the cells: runs, target and decision where they matter, slices."""
    has_decision = threshold is not None or "decision" in opened.match.picks
    asks = any("decision" in find_metric(parse(text).name).columns for text in wanted)
    others = ["target"] if "target" in opened.match.picks else []
    others += ["decision"] if has_decision and asks else []
    return tuple(dict.fromkeys((*options.runs, *others, *columns)))


def _count(shards: Sequence[Shard], plan: ShardPlan, run: Executor, memory: int) -> tuple[ShardTally, Covering | None]:
    """Count all shards, each id once; return also how much of the key they cover, if there is one."""
    tally = merge_tallies(_told(run(first_pass, [(shard, plan) for shard in shards]), len(shards), "shards counted"))
    if tally.findings:
        ledger = Ledger(list(joined(tally.findings)))  # one finding per kind, over all shards
        raise ledger.error()
    covering = settle_coverage(tally, shards, plan, run) if plan.key is not None else None
    if covering is None:
        refuse_repeats(tally, shards, plan, run, memory)
    return replace(tally, ids=None), covering


def _told(tallies: Iterator[ShardTally], total: int, what: str) -> Iterator[ShardTally]:
    """Yield the tallies with progress reports, one part per tally; rows are reported where they are counted here."""
    with shared.step(what, total):
        while True:
            with shared.part():
                tally = next(tallies, None)
            if tally is None:
                return
            yield tally
