"""From shards to Results: the evaluation of files that need not fit into memory, by the engine that measures in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hitmiss.core import progress
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.question import OPTION, SYSTEM, Design, Gap, Protocol, ReadSpec, find
from hitmiss.core.registry import find_metric, resolve
from hitmiss.core.results import Results
from hitmiss.core.schema import Spec, parse
from hitmiss.core.trials import ANSWERS
from hitmiss.engine.counted import TalliedTrials
from hitmiss.engine.measure import form_of
from hitmiss.evaluation.protocol import find_protocol, measure_trials
from hitmiss.io.diagnostics import Ledger
from hitmiss.io.parse import expand
from hitmiss.io.reader import FinishedRun, open_finished
from hitmiss.io.remote import fetched
from hitmiss.io.tables import find_reshaping
from hitmiss.scale.assembling import assemble
from hitmiss.scale.cells import ExactCells, Resident, coarsened
from hitmiss.scale.coarse import (
    CoarseCells,
    Rehearsal,
    fetch_open,
    needs_every_score,
    needs_whole,
    refine,
)
from hitmiss.scale.counting import joined
from hitmiss.scale.covering import Covering, settle_coverage, with_key
from hitmiss.scale.engines import find_engine
from hitmiss.scale.looking import look
from hitmiss.scale.passes import first_pass, second_pass
from hitmiss.scale.passing_by import Stretches
from hitmiss.scale.plan import Shard, ShardPlan, Window
from hitmiss.scale.plugged import Plugged, plugged
from hitmiss.scale.reading import Opened
from hitmiss.scale.repeats import refuse_repeats
from hitmiss.scale.running import Executor, sequential
from hitmiss.scale.singles import single_scores
from hitmiss.scale.stamps import Stamps
from hitmiss.scale.sums import read_sums
from hitmiss.scale.tallies import Cell, ShardTally, merge_tallies
from hitmiss.stats import sketch
from hitmiss.stats.forms import Form
from hitmiss.stats.sketch import COARSE, EXACT

MEMORY: Final = 10**9
BYTES_A_TRIAL: Final = 56
"""What a trial costs where every score is kept: its key, the tallies of all and of its slice, and what sorting takes."""
UNIT_BYTES: Final = 200
"""The same where units are drawn: beside it the trials in the order of their scores, each with its unit."""


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
    """As `evaluate`, for files that need not fit into memory.

    `scores` is a path, a pattern or a list of these; the files carry their labels, or `key` does. `memory` bounds (in
    bytes) what is kept of them; what does not fit is put on disk for a while, in a folder made in `scratch`. `engine`
    counts a shard: polars or duckdb. `run` makes the passes over the shards: here one after the other, or any executor of
    the same shape. Whoever counts, the figures are the same to the last bit. `design` is what is asked;
    keywords instead of it are those of `Design.of`: metrics, by, gap, threshold, bootstrap, unit, seed, level, interval.
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
    """What an evaluation is made with: who makes the passes, who counts, how much memory, which folder for a while."""

    run: Executor
    engine: str
    memory: int
    scratch: str | None


def _evaluate(
    files: Plugged, said: ReadSpec, design: Design, key: str | Sequence[str] | None, means: _Means
) -> Streamed:
    find_engine(means.engine)
    scores, reads, run, scratch = files.scores, files.options, means.run, means.scratch
    chosen, threshold = design.protocol, design.threshold
    wanted = list(design.metrics) or list(chosen.metrics if chosen else ())
    finished = open_finished(scores, reads)
    if finished is not None:  # a run folder stands for the table inside it
        scores, reads = finished.table, finished.options
    units = design.unit if design.bootstrap else ()
    columns = list(dict.fromkeys((*asked_columns(design), *reads.where)))
    refuse_what_needs_trials(design, wanted, columns, reads)
    shards = [Shard(str(path), system) for path in expand(scores) for system in reads.score_columns or (None,)]
    reads = reads if not reads.score_columns else reads.changed(runs=(*reads.runs, SYSTEM))
    unchanged = Stamps.of(shards)
    looked = look(shards, key, reads, columns, means.memory)
    opened, memory, columns = looked.opened, looked.memory, list(looked.columns)
    keep = kept_columns(opened[0], wanted, columns, threshold, reads)
    expected = looked.expected
    is_exact = expected <= sketch.LARGE or expected * (UNIT_BYTES if units else BYTES_A_TRIAL) <= memory
    if units and not is_exact:
        raise too_many_for_units(units, expected)
    forms = asked_forms(wanted, chosen, reads)
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
    return Streamed(measure_trials(trials, design), trials)


def _as_run_says(trials: TalliedTrials, run: FinishedRun) -> TalliedTrials:
    """The trials of a run folder, with what the run tells of itself in their header."""
    head = trials.header
    told = replace(head, notes=(*run.notes, *head.notes), choices=(*run.choices, *head.choices), coverage=run.coverage)
    return replace(trials, header=told)


@dataclass(frozen=True)
class _Rehearsing:
    """A measurement that is made for nothing but to see which samples it asks for."""

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
    """The cells that `where` keeps, and what the signature says of it: trials are counted by its columns, then chosen."""
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
    """Trials as bins, with the scores on which the figures of a measurement depend: fetched, or picked from all."""
    assert isinstance(trials.scored, ExactCells)
    resident = trials.scored if isinstance(fetch, Resident) else None
    binned = list(trials.scored.binned)
    cuts = sketch.thresholds(forms)
    if resident is not None:
        binned = [coarsened(b, cuts) for b in binned]
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
    """The forms of the metrics that will be measured on scores."""
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
    """What the caller says about the files, by a spec or its fields, over what the protocol says."""
    said = reading if isinstance(reading, ReadSpec) else ReadSpec().changed(**(reading or {}))
    return (said.over(protocol.read) if protocol else said).with_own_names()


def asked_design(protocol: str | Path | Protocol | None, asked: Mapping[str, Any]) -> Design:
    """A design from keywords."""
    return Design.of(**asked, protocol=find_protocol(protocol) if protocol is not None else None)


def asked_columns(design: Design) -> list[str]:
    """The columns that groupings, the gap and units need."""
    gap_columns = [design.gap.column] if isinstance(design.gap, Gap) else []
    units = () if design.unit == ("item",) and not design.bootstrap else design.unit  # a misspelt one is refused anyway
    derived = design.protocol.expressions(design.metrics) if design.protocol else ()
    across = [c for one in derived for term in one.terms for c in term.columns]
    return list(dict.fromkeys([*(c for grouping in design.groupings for c in grouping), *gap_columns, *units, *across]))


def too_many_for_units(units: Sequence[str], expected: int) -> UsageError:
    """Why units cannot be drawn."""
    return UsageError(
        f"drawing whole units of {', '.join(units)} needs every score at once, and there are about {expected:,} trials; raise "
        f"--memory to {expected * UNIT_BYTES / 1e9 + 0.1:.1f}GB, or leave --unit out",
        code="units-beyond-memory",
    )


def _needs_columns(text: str) -> bool:
    """Whether a metric looks at more of each trial than its score and its decision."""
    _, entry, settings = resolve(text)
    return form_of(entry, settings).kind == "columns"


def refuse_what_needs_trials(design: Design, wanted: Sequence[str], columns: Sequence[str], options: ReadSpec) -> None:
    """One sentence for what cannot be told from counts."""
    protocol = design.protocol
    if not wanted:
        raise UsageError(
            "say what to measure: a protocol (-p asvspoof5) or metrics (-m eer -m min_dcf)", code="no-metric"
        )
    if protocol is not None and (protocol.reader or (protocol.measured_by and not design.metrics)):
        raise UsageError(
            f"the protocol {protocol.name} reads and measures its files as a whole; leave --stream out",
            code="needs-every-trial",
        )
    single = [name for name in columns if name in ("item", "label", *ANSWERS)]
    if single:
        raise UsageError(
            f"{single[0]} is not counted by: trials are grouped and drawn by slices, as codec; leave {single[0]} out",
            code="not-a-slice",
        )
    own = [name for name in columns if name in options.itself]
    if own:
        named = f" {protocol.name}" if protocol is not None else ""
        raise UsageError(
            f"a trial whose {own[0]} is {options.itself[own[0]]!r} stands for itself by the protocol{named}, so "
            f"{own[0]} has too many values to be counted by; leave --stream out, or {own[0]}",
            code="too-many-values",
        )
    unread = ["match"] if options.match == "stem" else []
    if options.where:  # what is left out is counted all the same, so that these would tell of it, too
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
    """The columns that cells are told apart by: runs, target and decision where they matter, slices."""
    has_decision = threshold is not None or "decision" in opened.match.picks
    asks = any("decision" in find_metric(parse(text).name).columns for text in wanted)
    others = ["target"] if "target" in opened.match.picks else []
    others += ["decision"] if has_decision and asks else []
    return tuple(dict.fromkeys((*options.runs, *others, *columns)))


def _count(shards: Sequence[Shard], plan: ShardPlan, run: Executor, memory: int) -> tuple[ShardTally, Covering | None]:
    """All shards counted, each id once; and what they cover of the key, where there is one."""
    tally = merge_tallies(_told(run(first_pass, [(shard, plan) for shard in shards]), len(shards), "shards counted"))
    if tally.findings:
        ledger = Ledger(list(joined(tally.findings)))  # one finding of a kind, whichever shard it stands in
        raise ledger.error()
    covering = settle_coverage(tally, shards, plan, run) if plan.key is not None else None
    if covering is None:
        refuse_repeats(tally, shards, plan, run, memory)
    return replace(tally, ids=None), covering


def _told(tallies: Iterator[ShardTally], total: int, what: str) -> Iterator[ShardTally]:
    """The tallies as they come; each is a part of the whole, whose own rows are told where they are counted here."""
    with progress.step(what, total):
        while True:
            with progress.part():
                tally = next(tallies, None)
            if tally is None:
                return
            yield tally
