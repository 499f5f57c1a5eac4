"""Find protocols by name or file, and evaluate files by a protocol (`evaluate`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.columns import FIXED, find_column
from hitmiss.core.convert import InvalidField
from hitmiss.core.design import Design, Grouping, Taken, as_gap, names_of, parse_by
from hitmiss.core.errors import DataError, HitmissError, UnknownName, UsageError
from hitmiss.core.metric import Metric
from hitmiss.core.metric_spec import MetricSpec, Setting, parse
from hitmiss.core.number_bands import with_bands
from hitmiss.core.protocol import Gap, Protocol, make_protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.registry import all_of, find, find_metric
from hitmiss.core.results import Results
from hitmiss.core.settings import Settings, blamed
from hitmiss.core.settings import find as find_settings
from hitmiss.core.spec import options_of
from hitmiss.core.trials import Trials, stack
from hitmiss.core.weights import refuse_sampling
from hitmiss.engine.measure import measure_design
from hitmiss.engine.natural_unit import USUAL_UNITS
from hitmiss.engine.weighted import needs_whole_trials, one_by_one
from hitmiss.evaluation.given import EvaluateKeywords, TableKeywords, reading_of, table_of
from hitmiss.evaluation.tandem import complete, with_speaker_column

if TYPE_CHECKING:
    from hitmiss.engine.comparison import Comparison
    from hitmiss.engine.ranking import Ranking


__all__ = [
    "Protocol",
    "compare_trials",
    "evaluate",
    "find_protocol",
    "load_protocol",
    "measure_trials",
    "protocols",
    "read",
    "read_trials",
]


def load_protocol(path: str | Path) -> Protocol:
    """Read a protocol from a TOML file. If it is invalid, the error says in one sentence what is wrong."""
    import tomllib  # needed only where a protocol is named

    try:
        artifacts.note_input(path)
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        return make_protocol(data)
    except FileNotFoundError:
        raise UsageError.of("missing-protocol", path=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError.of("bad-protocol", name=Path(path).name, error=error) from None
    except InvalidField as fault:
        raise UsageError.of("bad-protocol/refused", name=Path(path).name, fault=fault) from None


def find_protocol(name: str | Path | Protocol) -> Protocol:
    """Return a protocol by its name, or from a `.toml` file.

    >>> find_protocol("asvspoof5").primary
    'min_dcf'
    """
    if isinstance(name, Protocol):
        return name
    if str(name).endswith(".toml"):
        return load_protocol(name)
    found: Protocol = find("protocol", str(name))
    return found


def protocols() -> dict[str, Protocol]:
    """Return every known protocol by name."""
    return all_of("protocol")


def evaluate(
    scores: object = None,
    key: object = None,
    protocol: str | Path | Protocol | Design | None = None,
    *,
    settings: str | Path | None = None,
    **options: Unpack[EvaluateKeywords],
) -> Results:
    """Read files or tables, measure them by a protocol or a design, and return the results.

    Parameters
    ----------
    scores, key
        The score file(s) or table and those with the true classes, as for `read`; or trials that are read already.
    protocol
        A protocol, given by name, file or object; or a design, which then states everything else that is asked.
    settings
        A settings file, whose values hold where no keyword is given; None: `hitmiss.toml` of the working folder, if
        there is one; `"none"`: no file. A note of the results says what was taken from it.
    **options
        What is asked, the fields of `Design`: `metrics` instead of those of the protocol, `by`, `unit`, `bootstrap` (None:
        that of the protocol; 0: none), `seed`, `level`, `interval`, `threshold`, `matrix`, `stratify`, `gap` (as
        `codec=NONE`, or a list of gaps; None: that of the protocol, if its column is in `by`; False: none), `require`
        (what must be shown, such as `eer.high <= 0.05`; `results.verdict.outcome` is then PASS, FAIL or NOT SHOWN).
        And columns by their roles and read options, as for `read`: `label="truth"`, `score="p"`, `positive="fake"`,
        `run="model"`, `score_kind="llr"`, `allow_missing=True`, …

    Returns
    -------
    Results
        One estimate per metric, run and slice.

    Raises
    ------
    UsageError
        For an unknown protocol, metric, column or option, or if neither a protocol nor a metric is given.
    DataError
        If the files cannot be scored as they are.

    >>> made = evaluate(Trials.of([1, 1, 0, 0], [3.0, 1.0, 2.0, 0.0]), metrics=["eer", "roc_auc"])
    >>> made["roc_auc"].value
    0.75
    >>> print(evaluate(label=[1, 1, 0, 0], score=[3.0, 1.0, 2.0, 0.0], metrics="roc_auc", bootstrap=0)[0])
    roc_auc = 0.7500 [0.0470, 0.9946]
    """
    from hitmiss.evaluation.asking import make_design

    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if unknown := [name for name in given if name not in EvaluateKeywords.__annotations__]:
        raise UnknownName("option", unknown[0], EvaluateKeywords.__annotations__)
    asked = {name: given.pop(name) for name in options_of(Design) if name in given}
    asked = {name: value for name, value in asked.items() if value not in ((), [], "")}
    scores, reading = reading_of(scores, given)
    key = table_of(key)
    layer = AppliedSettings.found(settings)
    if isinstance(protocol, Design):
        design = protocol.alone(Design().changed(**{**asked, "gap": as_gap(asked.get("gap"), None)}), Design()).filled()
    else:
        chosen = layer.protocol(protocol)
        rules = find_protocol(chosen) if chosen is not None else None
        if "gap" in asked:
            asked["gap"] = as_gap(asked["gap"], rules)
        design, taken = make_design({"protocol": rules, **asked}, layer.settings)
        layer.take(taken)
    with layer:
        trials = layer.read(scores, key, design.protocol, ReadSpec().changed(**reading))
        return measure_trials(decided(layer.noted(trials), design), layer.signed(design))


def stated(require: str | Sequence[str]) -> tuple[str, ...]:
    """Return requirements as texts, those of files too."""
    if not require:
        return ()
    from hitmiss.engine.requirement import read_requirements

    return tuple(map(str, read_requirements(require)))


class AppliedSettings:
    """The settings of a folder as one layer of a call: below its keywords, above a protocol."""

    def __init__(self, settings: Settings | None) -> None:
        self.settings = settings
        self.taken = settings.taken() if settings is not None else None

    @classmethod
    def found(cls, named: str | Path | None) -> AppliedSettings:
        """Return the layer of a named file, or of that in the working folder; without a file it changes nothing."""
        return cls(find_settings(named))

    def __enter__(self) -> AppliedSettings:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Name the settings in an error that they may have caused."""
        if self.taken is not None and isinstance(error, HitmissError):
            blamed(error, self.taken)

    def protocol(self, said: str | Path | Protocol | None) -> str | Path | Protocol | None:
        """Return the protocol of the caller, or else that of the settings."""
        if said is None and self.settings is not None and self.settings.protocol is not None:
            self.take(self.settings.taken(protocol=self.settings.protocol))
            return self.settings.protocol
        return said

    def read(
        self,
        scores: object,
        key: object,
        protocol: Protocol | None,
        said: ReadSpec,
        memory: int | None = None,
        needed: Collection[str] | None = None,
    ) -> Trials:
        """Read files by the caller's options over the settings; trials that are read already stay as they are."""
        if self.settings is None or isinstance(scores, Trials):
            return read_trials(scores, key, protocol, said)
        spec, taken = self.settings.reading({name: getattr(said, name) for name in said.stated})
        self.take(taken)
        if key is None and self.settings.key is not None:
            self.take(self.settings.taken(key=self.settings.key))
            key = self.settings.key
        return read_trials(scores, key, protocol, spec, memory, needed)

    def noted(self, trials: Trials) -> Trials:
        """Return trials with a note of what was taken."""
        if self.taken is None or not self.taken.values:
            return trials
        return trials.retitle(notes=(str(self.taken), *trials.header.notes))

    def signed(self, design: Design) -> Design:
        """Return a design that states what was taken."""
        return design if self.taken is None or not self.taken.values else replace(design, taken=self.taken)

    def take(self, taken: Taken | None) -> None:
        """Note what was taken."""
        if taken is not None:
            self.taken = taken if self.taken is None else self.taken | taken


def read(
    scores: object = None,
    key: object = None,
    options: ReadSpec | None = None,
    *,
    memory: int | None = None,
    needed: Collection[str] | None = None,
    settings: str | Path | None = None,
    **changes: Unpack[TableKeywords],
) -> Trials:
    """Read trials from score files and, if those have no labels, a key.

    Parameters
    ----------
    scores
        A path, `-` for stdin, a pattern, a list of these (shards of one run), a table (a frame of polars or pandas, a
        Hugging Face dataset, an Arrow table, a list of dicts, a dict of columns), or nothing if arrays are given by name.
    key
        The labels, given in the same ways; None if the score files hold them.
    options
        How to read (columns, classes, score kind, …); None for the defaults.
    memory
        Read files in pieces, so that they need not fit into memory; what is kept of their rows may take so many bytes.
    needed
        The slices that are used; others may be left out, which saves time. None keeps all.
    settings
        A settings file, whose values hold where no option is given; None: `hitmiss.toml` of the working folder, if
        there is one; `"none"`: no file. A note in the header says what was taken from it.
    **changes
        Columns by their roles (`item`, `label`, `score`, `decision`, `confidence`, `run`), as names or as arrays, and
        single options, the fields of `ReadSpec`, that replace those in `options`.

    Returns
    -------
    Trials
        One row per trial; a higher score means the positive class.

    Raises
    ------
    DataError
        If the data cannot be scored: a single error that carries every fault.
    UsageError
        If the rows do not fit into `memory`.

    Examples
    --------
    >>> scores = pl.DataFrame({"utt": ["a", "b"], "score": [1.5, -0.5]})
    >>> read(scores, key=pl.DataFrame({"filename": ["b", "a"], "cm-label": ["spoof", "bonafide"]}))
    Trials(2 trials, 1 bonafide, 1 spoof, raw scores, slices [])
    >>> rows = [{"clip": "a", "truth": "fake", "p": 0.9}, {"clip": "b", "truth": "real", "p": 0.2}]
    >>> read(rows, item="clip", label="truth", score="p", positive="fake")
    Trials(2 trials, 1 fake, 1 real, raw scores, slices [])
    """
    from hitmiss.io.reader import read as read_files

    scores, stated_here = reading_of(scores, changes)
    key = table_of(key)

    layer, said = AppliedSettings.found(settings), (options or ReadSpec()).changed(**stated_here)
    if layer.settings is None:
        return read_files(scores, key, said, memory=memory, needed=needed)
    named = layer.protocol(None)
    rules = find_protocol(named) if named is not None else None
    with layer:
        return layer.noted(layer.read(scores, key, rules, said, memory, needed))


def read_trials(
    scores: object,
    key: object,
    protocol: Protocol | None,
    spec: ReadSpec | None = None,
    memory: int | None = None,
    needed: Collection[str] | None = None,
) -> Trials:
    """Read trials from files by the rules of a protocol; options of the caller come before those of the protocol.

    `memory`: read files in pieces, of whose rows so many bytes may be kept; `needed`: the slices that are used, if not
    all (see `io.read`).
    """
    said = spec or ReadSpec()
    if isinstance(scores, Trials):
        if key is not None or said != ReadSpec():
            raise UsageError.of("read-twice")
        return scores
    if protocol is not None and protocol.reader and key is None:
        module, _, name = protocol.reader.partition(":")
        found: Trials | None = getattr(import_module(module), name)(scores, said, needed)
        if found is not None:
            return found.retitle(reading=said)
    from hitmiss.io.reader import read

    asked = said.over(protocol.read) if protocol else said
    if protocol is not None and protocol.claims_speaker:
        asked = with_speaker_column(asked, key)
    trials = read(scores, key, asked, memory=memory, needed=needed)
    return complete(trials, key, protocol or Protocol(), said)


def read_runs(
    paths: Sequence[str], key: object, protocol: Protocol | None, spec: ReadSpec | None = None, column: str = "seed"
) -> Trials:
    """Read several score files as runs of one experiment (for example seeds), named after their files."""
    names = [Path(p).name.split(".")[0] for p in paths]
    if len(set(names)) != len(names):
        raise UsageError.of("same-name", names=next(n for n in names if names.count(n) > 1))
    runs = {n: read_trials(p, key, protocol, spec) for n, p in zip(names, paths, strict=True)}
    made = _with_same_items(stack(runs, column), column, allow_missing=spec is not None and spec.allow_missing)
    return _with_notes(made, _alike(runs))


def _with_same_items(trials: Trials, column: str, *, allow_missing: bool) -> Trials:
    """Refuse runs that lack items of other runs, as their mean would follow the items; or keep the items that all have."""
    there = trials.completeness
    if not there.short:
        return trials
    if not allow_missing:
        raise DataError.of("incomplete-runs", said=there.said, column=column)
    kept = trials.keep(pl.len().over("item", "target") == len(there.runs))
    if not len(kept):
        raise DataError.of("no-common-item", column=column)
    n, of = len(kept), max(there.of, there.questions * len(there.runs))
    note = f"{n:,} of {of:,} trials are of items that every {column} has; the others were left out, as {', '.join(there.first)}"
    head = kept.header
    return kept.retitle(coverage=(n, of), notes=(*head.notes, note), choices=(*head.choices, f"coverage:{n}/{of}"))


def _alike(runs: Mapping[str, Trials]) -> list[str]:
    """Return a remark for each file that has the same answers as an earlier one, which two seeds do not produce."""
    seen: dict[str, str] = {}
    found = []
    for name, trials in runs.items():
        content = trials.frame.select(sorted(trials.frame.columns)).sort("item")
        digest = replace(trials, frame=content, header=replace(trials.header, sources=())).digest
        if digest in seen:
            found.append(f"{seen[digest]} and {name} hold the same scores: they are one run, not two")
        seen.setdefault(digest, name)
    return found


def _with_notes(trials: Trials, notes: Sequence[str]) -> Trials:
    return trials.retitle(notes=(*trials.header.notes, *notes)) if notes else trials


def measure_trials(trials: Trials, design: Design, elsewhere: Collection[str] = ()) -> Results:
    """Measure what a design asks.

    That is: the metrics of the protocol that fit the score kind, with its settings, its gap and its remarks.
    `elsewhere`: metrics that are measured on the same trials with other scores, so nothing is said if they do not fit.
    """
    protocol, wanted = design.protocol, list(design.metrics)
    metrics, groupings = _required(design, trials)
    if not protocol:
        wanted = with_names(wanted, metrics)
    if not wanted and protocol is None:
        raise UsageError.of("no-metric/say")
    refuse_layouts(trials, protocol)
    if protocol and protocol.measured_by:
        refuse_sampling(trials, f"the protocol {protocol.name}")
        module, _, name = protocol.measured_by.partition(":")
        measured: Results = getattr(import_module(module), name)(trials, design)
        return measured
    warnings: list[str] = []
    derived = protocol.expressions(wanted) if protocol else ()
    if protocol and not wanted:
        wanted, unfit = fitting(list(protocol.metrics), trials, protocol)
        warnings += left_out([m for m in unfit if m not in elsewhere], trials, protocol)
        derived = tuple(d for d in derived if not {t.metric for t in d.terms} & {str(parse(m)) for m in unfit})
    elif derived:  # a derived figure was asked for by name: the metrics it is made of are measured, too
        own = [name for name in wanted if name not in protocol.derived] if protocol else wanted
        wanted = list(dict.fromkeys([*own, *(term.metric for d in derived for term in d.terms)]))
    if protocol:
        wanted = with_names(wanted, [m for m in metrics if m not in protocol.derived])
    asked = {grouping[0] for grouping in design.groupings if len(grouping) == 1}
    if protocol:
        warnings += [text for column, text in protocol.remarks.items() if column in asked]
    warnings += _pooled(trials, protocol)
    by = tuple(dict.fromkeys([*design.by, *groupings]))
    settled = replace(design, metrics=tuple(wanted), gap=_gap(design, trials, asked), by=by)
    narrow = () if design.metrics or protocol is None else protocol.slice_metrics  # what is asked for is in every table
    return replace(measure_design(trials, settled, warnings, derived, narrow), design=design)


def _required(design: Design, trials: Trials) -> tuple[list[str], tuple[Grouping, ...]]:
    """Return the metrics and the groupings that requirements are about."""
    if not design.require:
        return [], ()
    from hitmiss.engine.requirement import metrics_of, read_requirements, slices_of

    required = read_requirements(design.require)
    return metrics_of(required), parse_by(slices_of(required, trials.header.runs))


def with_names(metrics: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return metrics with further ones, each once, whatever its spelling.

    >>> with_names(["eer"], ["eer", "roc_auc"])
    ['eer', 'roc_auc']
    """
    known = {str(parse(m)) for m in metrics}
    return [*metrics, *(m for m in more if str(parse(m)) not in known)]


def refuse_layouts(trials: Trials, protocol: Protocol | None) -> None:
    """Refuse files that a protocol cannot score, and trials that claim a speaker, which have three classes."""
    layouts = _layouts(trials)
    for layout, why in (protocol.refuses if protocol else {}).items():
        if layout in layouts:
            raise DataError.of("wrong-layout", part=protocol.name if protocol else "", why=why)
    if trials.has_targets and any(layout.startswith("sasv-") for layout in layouts):
        raise DataError.of("track-two")


def _layouts(trials: Trials) -> set[str]:
    return {str(file.get("layout", "")) for file in trials.header.files}


def _pooled(trials: Trials, protocol: Protocol | None) -> list[str]:
    """Warn about columns whose values are pooled in the figures of all trials, although they should be scored apart."""
    told = dict(protocol.pooled) if protocol else {}
    if any(layout.startswith("asvspoof2021") for layout in _layouts(trials)):
        told.setdefault("subset", "official figures are those of eval alone")
    found = []
    for column, why in told.items():
        if column in trials.frame.columns and (n := trials.frame[column].n_unique()) > 1:
            values = ", ".join(map(str, trials.frame[column].unique().sort().to_list()[:5]))
            found.append(
                f"the figures of all trials pool {n} values of {column} ({values}): {why}; --where {column}=VALUE keeps one"
            )
    return found


def compare_trials(runs: Mapping[str, Trials], design: Design) -> Comparison | Ranking:
    """Compare several runs as a design asks: by the protocol's metrics that fit all runs, or by its own comparison."""
    from hitmiss.engine.rank import compare_runs  # imported here, so that measuring alone does not load it

    protocol, wanted = design.protocol, design.metrics
    for run in runs.values():
        refuse_layouts(run, protocol)
    if protocol and protocol.compared_by:
        return _compared_by(protocol, runs, design)
    if not wanted and protocol is None and not design.require:
        raise UsageError.of("no-metric/say-compare")
    required, groupings = _required(design, next(iter(runs.values())))
    design = replace(design, by=tuple(dict.fromkeys([*design.by, *groupings])))
    derived = protocol.expressions(wanted) if protocol else ()
    if protocol and wanted:  # a metric that the caller names is shown in every table, also by slice
        own = [name for name in wanted if name not in protocol.derived]
        wanted = tuple(dict.fromkeys([*own, *(term.metric for d in derived for term in d.terms)]))
        protocol = replace(protocol, slice_metrics=())
    elif protocol:
        wanted = comparable(protocol, list(runs.values()))
        derived = tuple(d for d in derived if {t.metric for t in d.terms} <= {str(parse(m)) for m in wanted})
    wanted = tuple(with_names(wanted, [m for m in required if protocol is None or m not in protocol.derived]))
    if not wanted:
        raise UsageError.of("no-metric/protocol")
    runs = {name: with_bands(run, design.groupings) for name, run in runs.items()}
    made = compare_runs(runs, replace(design, protocol=protocol, metrics=wanted), derived)
    if protocol and not design.metrics:
        first = next(iter(runs.values()))
        lost = [m for m in protocol.metrics if m not in wanted and _is_unweighted(m, first, protocol)]
        made = replace(made, warnings=(*made.warnings, *_unweighted(lost, protocol)))
    asked = made.design or design
    return replace(made, design=replace(asked, protocol=design.protocol, metrics=design.metrics))


def _compared_by(protocol: Protocol, runs: Mapping[str, Trials], design: Design) -> Comparison:
    """Run the comparison that a protocol defines itself."""
    for run in runs.values():
        refuse_sampling(run, f"a comparison by {protocol.name}")
    if len(runs) != 2:
        raise UsageError.of("two-runs", protocol_name=protocol.name)
    module, _, name = protocol.compared_by.partition(":")
    (name_a, a), (name_b, b) = runs.items()
    made: Comparison = getattr(import_module(module), name)(a, b, design, (name_a, name_b))
    return made


def read_side(
    scores: Sequence[object],
    key: object,
    reading: ReadSpec,
    design: Design,
    memory: int | None = None,
    *,
    is_whole: bool = True,
) -> Trials:
    """Read trials as a design asks: one run per file if it has seeds, with decisions at its threshold.

    `is_whole`: with all columns, as hashes of the rows need them; otherwise with those that the figures need.
    """
    if design.seeds:
        return decided(read_runs([str(path) for path in scores], key, design.protocol, reading), design)
    given = list(scores) if len(scores) > 1 else scores[0]
    asked, further = _used(design)
    needed = None if is_whole or design.settled.measured_by else (*asked, *further)
    trials = read_trials(given, key, design.protocol, reading, memory, needed)
    if needed is not None and not all(find_column(name, trials.frame.columns) for name in asked):
        trials = read_trials(given, key, design.protocol, reading, memory)  # what is refused is said with all columns
    return decided(trials, design)


def _used(design: Design) -> tuple[list[str], list[str]]:
    """Return the columns that a design asks for, and those that it uses if they exist."""
    protocol = design.settled
    wanted = [text for text in design.metrics if text not in protocol.derived] or protocol.metrics
    own = [column for text in wanted for column in find_metric(parse(text).name).columns if column not in FIXED]
    units = protocol.natural or USUAL_UNITS if design.bootstrap else ()
    further = [*protocol.pooled, "subset", *(name for unit in units for name in names_of(unit))]
    return [*design.columns, *own], further


def decided(trials: Trials, design: Design) -> Trials:
    """Decide trials at the threshold of a design; that of a protocol does not replace decisions in the data."""
    protocol = design.protocol
    if design.threshold is None:
        return trials
    if protocol is not None and design.threshold == protocol.threshold and "decision" in trials.frame.columns:
        return trials
    from hitmiss.derive.decisions import at_threshold

    return at_threshold(trials, design.threshold)


def measure_files(trials: Trials, development: Trials | None, design: Design) -> Results:
    """Measure what a design asks: before and after calibration if there is a development set, and over seeds."""
    from hitmiss.engine.repeats import over_repeats

    measured = (
        measure_trials(trials, design) if development is None else measure_calibrated(trials, development, design)
    )
    return over_repeats(measured, "seed") if design.seeds else measured


def measure_calibrated(trials: Trials, development: Trials, design: Design) -> Results:
    """Measure the numbers before and after a calibration that was fitted on a development set, as two runs."""
    from hitmiss.derive.score_model import calibrate

    method = design.calibration or "affine"
    return measure_sides({"before": trials, f"after {method}": calibrate(development, trials, method)}, design)


def measure_sides(sides: Mapping[str, Trials], design: Design) -> Results:
    """Measure the same trials with several scores, the last of which are likelihood ratios, as runs.

    Each side has the metrics that its kind of scores allows: cllr and actDCF are those of likelihood ratios.
    """
    after = [*sides][-1]
    derived = design.protocol.derived if design.protocol else {}
    own = [m for m in design.metrics or design.settled.metrics if m not in derived]
    unfit = {name: [m for m in own if not _of_kind(m, side)] for name, side in sides.items()}
    for name in sides:  # one that fits no side is refused by the scores of the file
        unfit[name] = [m for m in unfit[name] if m not in unfit[after]] if name != after else unfit[name]
    only_after = [m for m in own if any(m in unfit[name] for name in sides if name != after) and m not in unfit[after]]
    measured = {
        name: measure_trials(
            side, replace(design, metrics=tuple(m for m in design.metrics if m not in unfit[name])), own
        )
        for name, side in sides.items()
        if set(own) - {*unfit[name]} or derived
    }
    rows = [replace(e, run={"calibration": name, **e.run}) for name, r in measured.items() for e in r]
    said = [f"{' and '.join(only_after)}: after the calibration only, because likelihood ratios are needed"] * bool(
        only_after
    )
    warnings = tuple(dict.fromkeys((*said, *(w for r in measured.values() for w in r.warnings))))
    last = [*measured.values()][-1]
    return replace(last, estimates=tuple(rows), warnings=warnings, design=design)


def _gap(design: Design, trials: Trials, asked: set[str]) -> Gap | tuple[Gap, ...] | Literal["none"]:
    """Return the gaps that were asked for, or that of the protocol if its column is in `by` and has both sides."""
    if not isinstance(design.gap, str):
        return design.gap
    rule = design.protocol.gap if design.protocol is not None else None
    if design.gap == "none" or rule is None or rule.column not in asked:
        return "none"
    values = {*trials.column(trials.own(rule.column)).unique()}
    return rule if {*rule.inside} <= values and len(values) > 1 else "none"


def fitting(metrics: list[str], trials: Trials, protocol: Protocol | None = None) -> tuple[list[str], list[str]]:
    """Split metrics into those that the score kind, the columns and the weights allow, and the others."""
    fits: list[str] = []
    rest: list[str] = []
    for text in metrics:
        has_columns = all(c in trials.frame.columns for c in find_metric(parse(text).name).columns)
        is_fit = _of_kind(text, trials) and has_columns and not _is_unweighted(text, trials, protocol)
        is_fit = is_fit and not _lacks_asv(text, trials, protocol)
        (fits if is_fit else rest).append(text)
    return fits, rest


def _of_kind(text: str, trials: Trials) -> bool:
    """Return whether a metric takes scores of this kind."""
    kinds = find_metric(parse(text).name).kinds
    return not kinds or trials.header.score_kind in kinds


def _settings(text: str, protocol: Protocol | None) -> tuple[Metric, dict[str, Setting]]:
    """Return a metric and its settings under a protocol."""
    spec = parse(text)
    ruled, entry = dict(protocol.settings.get(spec.name, {})) if protocol else {}, find_metric(spec.name)
    return entry, entry.settings(MetricSpec.of(spec.name, **{**ruled, **dict(spec.settings)}))


def _is_unweighted(text: str, trials: Trials, protocol: Protocol | None) -> bool:
    """Return whether the trials have sampling weights that a metric cannot use."""
    return trials.header.weight is not None and needs_whole_trials(*_settings(text, protocol))


def _lacks_asv(text: str, trials: Trials, protocol: Protocol | None) -> bool:
    """Return whether a metric needs the trials of a speaker verifier that were not given."""
    return trials.header.brought is None and _settings(text, protocol)[1].get("asv") == "trials"


def comparable(protocol: Protocol, runs: Sequence[Trials]) -> tuple[str, ...]:
    """Return the metrics of a protocol that the score kind and the columns of all runs allow."""

    def fits(text: str) -> bool:
        entry = find_metric(parse(text).name)
        return all(
            (not entry.kinds or "score" not in entry.columns or t.header.score_kind in entry.kinds)
            and all(c in t.frame.columns for c in entry.columns)
            and not _is_unweighted(text, t, protocol)
            and not _lacks_asv(text, t, protocol)
            for t in runs
        )

    return tuple(text for text in protocol.metrics if fits(text))


def left_out(metrics: list[str], trials: Trials, protocol: Protocol | None = None) -> list[str]:
    """Return the warnings about metrics that these trials do not allow."""
    absent = {m: [c for c in find_metric(parse(m).name).columns if c not in trials.frame.columns] for m in metrics}
    columns = sorted({c for names in absent.values() for c in names})
    lacking = [f"{', '.join(m for m in metrics if absent[m])} left out: there is no {' and no '.join(columns)}"]
    there = [m for m in metrics if not absent[m]]
    alone = [m for m in there if _lacks_asv(m, trials, protocol)]
    tandem = [
        f"{' and '.join(alone)} left out: give the scores and the key of the speaker verifier, --asv and --asv-key"
    ]
    there = [m for m in there if m not in alone]
    kinds = {m: find_metric(parse(m).name).kinds for m in there}
    unfit = [m for m in there if kinds[m] and trials.header.score_kind not in kinds[m]]
    return (
        (lacking if columns else [])
        + (tandem if alone else [])
        + _unfit(unfit, trials)
        + _unweighted([m for m in there if m not in unfit], protocol)
    )


def _unweighted(metrics: Sequence[str], protocol: Protocol | None) -> list[str]:
    """Return the warnings about metrics that are left out because they cannot use sampling weights."""
    return [f"{m} left out: it {one_by_one(parse(m).name, _settings(m, protocol)[1])}" for m in metrics]


def _unfit(metrics: list[str], trials: Trials) -> list[str]:
    if not metrics:
        return []
    return [
        f"{' and '.join(metrics)} left out: they need natural-log likelihood ratios and these scores are declared "
        f"{trials.header.score_kind!r}; add --score-kind llr if they are LLRs, or --calibrate-on DEV to make them so"
    ]
