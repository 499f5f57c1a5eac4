"""From shards to Results: evaluate files that need not fit into memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from hitmiss.core.columns import SYSTEM, find_column, user_name
from hitmiss.core.design import INDEPENDENT, Design, names_of
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.finding import Option, Remark
from hitmiss.core.metric_spec import MetricSpec, parse
from hitmiss.core.protocol import Protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.registry import find_metric, resolve
from hitmiss.core.results import Results
from hitmiss.core.scale import ScoreScale
from hitmiss.core.trials import ANSWERS, Trials
from hitmiss.derive.decisions import at_threshold
from hitmiss.engine.counted import TalliedTrials
from hitmiss.engine.draws import RunUnits
from hitmiss.engine.natural_unit import USUAL_UNITS, natural_candidates
from hitmiss.engine.prepare import form_of, inside
from hitmiss.engine.weighted import columns_of_trials
from hitmiss.evaluation.protocol import find_protocol, measure_trials, read_side
from hitmiss.evaluation.tandem import with_verifier
from hitmiss.io.aliases import SYSTEM_PREFIX, may_name_runs, says_probability
from hitmiss.io.columns import unused_weights
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.fetch import Stamp, expand, refuse_changes, stamp
from hitmiss.io.finished import FinishedRun, open_finished
from hitmiss.io.join import Coverage, note_missing
from hitmiss.io.layouts import find_expanding
from hitmiss.io.reader import read
from hitmiss.io.remote import downloaded
from hitmiss.metrics.usual import BY_COLUMN, ERROR
from hitmiss.outofcore.assemble import assemble
from hitmiss.outofcore.count import count_all
from hitmiss.outofcore.coverage import KeyCoverage
from hitmiss.outofcore.disk import DISK_BYTES, Disk
from hitmiss.outofcore.engines import COUNT, ENGINES
from hitmiss.outofcore.executors import Executor, sequential
from hitmiss.outofcore.keys import LEAST_FOR_SCORES, open_key
from hitmiss.outofcore.plan import KeyFiles, Shard, ShardPlan
from hitmiss.outofcore.shards import (
    OpenedShard,
    found_columns,
    is_for_negative,
    is_negated,
    look_at_shards,
    names_of_shards,
)
from hitmiss.outofcore.units import DISK_BYTES as UNIT_DISK_BYTES
from hitmiss.outofcore.units import UnitRuns
from hitmiss.robustness.attacks import measure_parts
from hitmiss.robustness.campaign import CLEAN
from hitmiss.robustness.manipulation import clean_rows, drift_parts
from hitmiss.stats import sketch
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.crossing import CrossingWithDensities
from hitmiss.stats.stored import StoredTrials

MEMORY: Final = 10**9
KEY_BYTES: Final = 32
"""The memory per key that is kept, of a score or of an id: the key, and copies of it while keys are sorted."""
OVERHEAD: Final = 3 * 10**8
"""The memory of the program, of the table library and of the pieces that are being read."""
UNIT_BYTES: Final = 200
"""The memory per trial if units are resampled in memory: its score in its place in the order, with its unit."""


def beside_program(memory: int) -> int:
    """Return what of the allowed memory remains for scores; at least a quarter, however little is allowed."""
    return max(memory - OVERHEAD, memory // 4)


@dataclass(frozen=True, eq=False)
class Streamed:
    """The numbers of a streamed evaluation, and the trials behind them: counted, or kept if counts are not enough."""

    results: Results
    trials: Trials


def evaluate_streamed(
    scores: Any,
    protocol: str | Path | Protocol | None = None,
    *,
    run: Executor = sequential,
    engine: str = "polars",
    memory: int = MEMORY,
    scratch: str | None = None,
    key: str | Sequence[str] | None = None,
    are_counts: bool = False,
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
    are_counts
        Whether a row of the files stands for as many trials as its column `n` says (see `hitmiss sql`).
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
        The numbers, equal to the last bit for every engine and executor, and the counted (or kept) trials.

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
    means = _Means(run, engine, memory, scratch, are_counts)
    with downloaded(scores, scratch) as found, downloaded(key, scratch) as labels:
        try:
            return _evaluate(found, said, design, labels, means)
        except UsageError as error:
            if error.code not in NEEDS_ROWS:
                raise
            return _of_rows(found, labels, reading, design, means, error)


NEEDS_ROWS: Final = ("needs-every-trial", "not-a-slice", "too-many-values", "unread-option")
"""Codes of what counts cannot answer, and rows can."""


def _of_rows(
    scores: Any,
    key: object,
    reading: ReadSpec | Mapping[str, object] | None,
    design: Design,
    means: _Means,
    why: UsageError,
) -> Streamed:
    """Evaluate what counts cannot answer: files are read in pieces, and of their rows only the columns are kept."""
    protocol = design.protocol
    reads_itself = protocol is not None and bool(protocol.reader or protocol.measured_by)
    if reads_itself or means.are_elsewhere or design.drift is not None:
        raise why
    spec = reading if isinstance(reading, ReadSpec) else ReadSpec().changed(**(reading or {}))
    if spec.pairs:  # files that are read in pieces are not taken apart by label
        raise UsageError.of("needs-every-trial/stream", given="--pair", flag="--stream")
    sources = expand(scores)
    noted = {str(path): stamp(str(path)) for path in sources}
    trials = read_side(sources, key, spec, design, means.memory)
    refuse_changes(noted)
    return Streamed(measure_trials(trials, design), trials)


@dataclass(frozen=True)
class _Means:
    """The resources of an evaluation (executor, engine, memory limit, temporary folder), and whether files hold counts."""

    run: Executor
    engine: str
    memory: int
    scratch: str | None
    are_counts: bool

    @property
    def are_elsewhere(self) -> bool:
        """Whether rows cannot be read here: there are none, or another engine or a cluster reads them."""
        return self.are_counts or self.run is not sequential or self.engine != "polars"


@dataclass(frozen=True, eq=False)
class _Opened:
    """Score files and their key, recognised: what they hold, and what is left of the memory for the scores."""

    shards: list[Shard]
    heads: list[OpenedShard]
    reads: ReadSpec
    key: KeyFiles | None
    there: list[str]
    """The columns of both sides."""
    turned: bool
    """Whether higher scores mean the negative class."""
    expected: int
    """The number of trials, at most."""
    memory: int
    stamps: Mapping[str, Stamp]
    """The state of each file before it is read."""


def _evaluate(scores: object, said: ReadSpec, whole: Design, key: object, means: _Means) -> Streamed:
    if means.engine not in ENGINES:
        raise UnknownName("engine", means.engine, ENGINES)
    finished = None if means.are_counts else open_finished(scores, said)
    design, wanted = _counted_design(whole, finished)
    reads = said if finished is None else finished.options
    # files of trials have ids that can be matched
    asked = [*dict.fromkeys((*design.columns, *reads.where))]
    refuse_what_needs_trials(design, wanted, asked, reads if means.are_counts else reads.changed(match=None))
    found = _open(scores if finished is None else list(finished.tables), reads, asked, design, key, means)
    trials, covering, design = _counted(found, wanted, asked, design, whole.protocol, means)
    if finished is not None:  # what the run records about itself
        trials = _titled(trials, Diagnostics([], list(finished.notes), list(finished.choices)), finished.coverage)
    trials = covered(trials, covering).retitle(reading=said)
    if said.asv is not None:
        if trials.is_short:  # scores are kept exactly where a cost that is known before counting needs them
            raise UsageError.of("needs-every-trial/asv")
        trials = with_verifier(trials, key, whole.protocol or Protocol(), said)
    names = [*names_of_shards(found.heads), *(found.key.there if found.key else ())]
    trials = _titled(trials, Diagnostics([], unused_weights(names, "both", found.reads), []), trials.header.coverage)
    if finished is not None and _is_in_parts(whole):
        results = _measured_in_parts(trials, whole, finished, design.threshold)
        refuse_changes(found.stamps)
        return Streamed(results, trials)
    refuse_changes(found.stamps)
    results = measure_trials(trials, design)
    unused = _unused_unit(results.design or design, found.there)
    return Streamed(replace(results, warnings=(*results.warnings, *unused)), trials)


def _is_in_parts(design: Design) -> bool:
    """Whether numbers are measured attack by attack, or condition by condition."""
    return design.drift is not None or (design.protocol is not None and bool(design.protocol.measured_by))


def _counted_design(design: Design, finished: FinishedRun | None) -> tuple[Design, list[str]]:
    """Return what is asked of the counted trials, and the metrics; trials that are measured in parts are only counted."""
    chosen = design.protocol
    if not _is_in_parts(design):
        if not design.metrics and chosen is None:
            design = replace(design, metrics=BY_COLUMN["score"])
        return design, list(design.metrics) or list(chosen.metrics if chosen else ())
    if finished is None:
        raise UsageError.of("needs-every-trial/attacks")
    plain = replace(design, protocol=None, metrics=(), matrix=(), unit=(), bootstrap=0, gap="none")
    own = replace(plain, threshold=None) if design.drift is not None else replace(plain, by=())
    return own, list(chosen.metrics) if chosen else [ERROR]


def _open(scores: object, reads: ReadSpec, asked: Sequence[str], design: Design, key: object, means: _Means) -> _Opened:
    """Recognise the score files and read the key."""
    if means.are_counts and key is not None:
        raise UsageError.of("key-of-counts")
    if means.are_counts and reads.score_columns:
        raise UsageError.of("several-scores")
    shards = [Shard(str(path)) for path in expand(scores)]
    reads = reads if not reads.score_columns else reads.changed(runs=(*reads.runs, SYSTEM))
    stamps = {shard.path: stamp(shard.path) for shard in shards}
    heads = look_at_shards(shards, reads, "both" if key is None else "scores")
    match = heads[0].match
    if "item" not in match.picks and not means.are_counts:
        refuse_silent_runs(match.slices, reads, "the rows have no ids")
    there = [name for name in match.picks if not name.startswith(SYSTEM_PREFIX)]
    there, n_systems = there + [SYSTEM] * bool(reads.score_columns), max(len(reads.score_columns), 1)
    expected = n_systems * sum(one.trials for one in heads)
    if key is None:
        turned = is_negated(heads, reads)
        return _Opened(shards, heads, reads, None, there, turned, expected, means.memory, stamps)
    further = {name for unit in natural_candidates(design) for name in unit}
    own = open_key(key, reads, heads, asked, means.memory, further)
    there = [*dict.fromkeys((*there, *own.files.there))]
    expected, memory = min(expected, n_systems * own.height), max(means.memory - own.bytes, LEAST_FOR_SCORES)
    turned = is_for_negative(own.reading, reads)
    return _Opened(shards, heads, reads, own.files, there, turned, expected, memory, stamps)


def _counted(
    found: _Opened,
    wanted: Sequence[str],
    asked: Sequence[str],
    design: Design,
    protocol: Protocol | None,
    means: _Means,
) -> tuple[TalliedTrials, KeyCoverage | None, Design]:
    """Count the trials; return them, how much of the key they cover, and the design with the units that were counted."""
    there, reads, threshold = found.there, found.reads, design.threshold
    natural = [unit for unit in natural_candidates(design) if all(find_column(name, there) for name in unit)]
    units = (design.units or next(iter(natural), ())) if design.bootstrap else ()
    columns = found_columns([*asked, *(name for unit in natural for name in unit)], there)
    absent = [name for name in ("score", COUNT) if means.are_counts and name not in there]
    if absent:
        raise UsageError.of("missing-column/no", name=found.shards[0].name, absent=absent[0])
    keep = kept_columns(there, wanted, columns, threshold, reads)
    bounded = says_probability(found.heads[0].match.theirs.get("score", ""), reads.score_kind)
    is_counted = means.are_counts
    plan = ShardPlan(reads, keep, found.turned, threshold, not is_counted, found.key, means.engine, is_counted, bounded)
    forms = asked_forms(wanted, protocol, reads, plan.scale)
    beyond = None
    if units and found.expected > sketch.LARGE and found.expected * UNIT_BYTES > found.memory:
        alone = [*dict.fromkeys((*replace(design, unit=INDEPENDENT).columns, *reads.where))]
        others = kept_columns(there, wanted, found_columns(alone, there), threshold, reads)
        beyond = UnitRuns(plan.cells, frozenset(keep) - {*others}, StoredTrials(means.scratch))
        if len(units) > 1:  # the error of crossed units needs densities
            forms = [CrossingWithDensities.of(form) for form in forms]
        design = replace(design, unit=units)
    room = max(beside_program(means.memory) // KEY_BYTES, 2 * sketch.LARGE)
    disk = Disk(means.scratch, room, sketch.thresholds(forms)) if beyond or not units else None
    if disk is not None:
        disk.refuse_small(found.expected, UNIT_DISK_BYTES if beyond else DISK_BYTES)
    left = beside_program(found.memory)
    try:
        tally, covering = count_all(found.shards, plan, means.run, left, disk, beyond)
    except DataError as error:
        if {fault.kind for fault in error.faults} == {"duplicate-id"}:
            refuse_silent_runs(found.heads[0].match.slices, reads, "ids repeat")
        raise
    merged = plan if beyond is None else replace(plan, keep=tuple(name for name in keep if name not in beyond.units))
    share = 1 if beyond is None else 2  # half of what is left is for the trials with their units
    how = "counts" if is_counted else "stream"
    trials = assemble(tally, merged, how, None if disk is None else forms, left // share, beyond)
    if len(units) == 1 and beyond is None and not means.are_elsewhere and _has_lone_unit(trials, units[0]):
        raise UsageError.of("needs-every-trial/stream", given=f"--unit {units[0]}", flag="--stream")
    return trials, covering, design


def _measured_in_parts(
    trials: TalliedTrials, design: Design, finished: FinishedRun, threshold: float | None
) -> Results:
    """Measure a run folder attack by attack, or condition by condition: only the rows of one are in memory."""
    is_drift = design.drift is not None
    names = design.by[0] if is_drift else trials.header.runs
    kept = trials.frame.select(pl.col(trials.own(name)).alias(name) for name in names).unique()
    parts = finished.parts(kept, clean_rows(trials, design) if is_drift else pl.col("attack") == CLEAN)
    titled = (read(rows, None, own).retitle(notes=trials.header.notes) for rows, own in parts)
    decided = (
        titled if threshold is None else (at_threshold(part, threshold, design.threshold_origin) for part in titled)
    )
    return (drift_parts if is_drift else measure_parts)(trials, design, decided)


def _has_lone_unit(trials: TalliedTrials, unit: str) -> bool:
    """Whether all trials of a class are one unit: bona fide trials have no attack, and are drawn one by one, by id."""
    columns = columns_of_trials(trials)
    codes, values = columns.asked_codes(unit)
    return RunUnits(unit, codes, columns.positive, len(values)).lone is not None


def refuse_silent_runs(slices: Sequence[str], options: ReadSpec, why: str) -> None:
    """Refuse to count rows as one run where a column may say which run each belongs to: only the rows show it."""
    named = [user_name(name) for name in slices if may_name_runs(name) and name not in options.runs]
    if named:
        raise UsageError.of("needs-every-trial", why=why, named=named[0])


def covered(trials: TalliedTrials, covering: KeyCoverage | None) -> TalliedTrials:
    """Return counted trials whose header says how much of the key is scored."""
    if covering is None:
        return trials
    ledger, absent = Diagnostics(), covering.listed - covering.scored
    note_missing(covering.unlisted, absent, covering.listed, ledger, covering.first)
    return _titled(trials, ledger, (covering.scored, covering.listed) if absent else None)


def _titled(trials: TalliedTrials, ledger: Diagnostics, coverage: Coverage | None) -> TalliedTrials:
    head = trials.header
    notes, choices = (*ledger.notes, *head.notes), (*ledger.choices, *head.choices)
    return trials.retitle(notes=notes, choices=choices, coverage=coverage)


def _unused_unit(design: Design, there: Sequence[str]) -> list[str]:
    """Say that the files have a natural unit that was not drawn; what it would change is not known from counts."""
    if design.unit or not design.bootstrap:
        return []
    named = map(names_of, USUAL_UNITS)
    unit = next((names for names in named if all(find_column(name, there) for name in names)), ())
    if not unit:
        return []
    name, option = " × ".join(unit), ",".join(unit)
    return [Remark.of("unit-not-used/counted", name=name, option=option)]


def asked_forms(wanted: Sequence[str], protocol: Protocol | None, options: ReadSpec, scale: ScoreScale) -> list[Form]:
    """Return the forms of the metrics that will be measured on scores."""
    found: list[Form] = []
    for text in wanted:
        spec, entry, _ = resolve(text)
        settled = {**(protocol.settings.get(spec.name, {}) if protocol else {}), **dict(spec.settings)}
        if "score" not in entry.columns or entry.form is None or (entry.kinds and options.kind not in entry.kinds):
            continue
        form = form_of(entry, inside(entry.settings(MetricSpec.of(spec.name, **settled)), scale))
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


def refuse_what_needs_trials(design: Design, wanted: Sequence[str], columns: Sequence[str], options: ReadSpec) -> None:
    """Refuse, in one sentence, what cannot be computed from counts."""
    for code, values in _obstacles(design.protocol, wanted, columns, options):
        raise UsageError.of(code, **values)


def _obstacles(
    protocol: Protocol | None, wanted: Sequence[str], columns: Sequence[str], options: ReadSpec
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the code and the values of everything that cannot be computed from counts."""
    if protocol is not None and (protocol.reader or protocol.measured_by):
        yield "needs-every-trial/protocol", {"protocol": protocol.name}
    if protocol is not None and (protocol.claims_speaker or protocol.split):
        yield "needs-every-trial/rows", {"what": f"the protocol {protocol.name} needs"}
    for name in columns:
        if name in ("item", "label", *ANSWERS):
            yield "not-a-slice/counts", {"name": name}
    for name in (name for name in columns if name in options.itself):
        named = f" {protocol.name}" if protocol is not None else ""
        yield "too-many-values/itself", {"protocol": named, "name": name, "value": options.itself[name]}
    if options.match == "stem":
        yield ("unread-option/match-where" if options.where else "unread-option/match"), {}
    for name in ("allow_missing", "on_nan"):
        if options.where and name in options.stated:  # trials that `where` leaves out are counted too
            yield "unread-option/beside-where", {"option": Option(name)}
    for name in ("label_cut", "missing", "pairs"):
        if getattr(options, name):
            yield "needs-every-trial/option", {"option": Option(name)}
    if options.dedupe or find_expanding(options) is not None:
        yield "needs-every-trial/dedupe", {}
    if options.weight is not None:
        yield "unread-option/weight", {}
    if options.encoding not in (None, "utf-8"):
        yield "stream-encoding", {}
    for text in wanted:
        _, entry, settings = resolve(text)
        if form_of(entry, settings).kind == "columns":  # it uses more of each trial than its score and its decision
            yield "needs-every-trial/rows", {"what": f"{text} needs"}


def kept_columns(
    there: Collection[str], wanted: Sequence[str], columns: Sequence[str], threshold: float | None, options: ReadSpec
) -> tuple[str, ...]:
    """Return the columns that define the cells: runs, target and decision where they matter, slices."""
    has_decision = threshold is not None or "decision" in there
    asks = any("decision" in find_metric(parse(text).name).columns for text in wanted)
    others = ["target"] if "target" in there else []
    others += ["decision"] if has_decision and asks else []
    return tuple(dict.fromkeys((*options.runs, *others, *columns)))
