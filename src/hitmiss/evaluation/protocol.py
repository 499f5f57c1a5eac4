"""Find protocols by name or file, and read, measure and compare files by one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.columns import FIXED, find_column
from hitmiss.core.convert import InvalidField
from hitmiss.core.criteria import ENDING, Criteria, load_criteria
from hitmiss.core.design import Design, Grouping, names_of, parse_by
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.metric_spec import parse
from hitmiss.core.number_bands import with_bands
from hitmiss.core.protocol import Gap, Protocol, make_protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.registry import all_of, find, find_metric
from hitmiss.core.results import Results
from hitmiss.core.trials import Trials, stack
from hitmiss.core.weights import refuse_sampling
from hitmiss.engine.measure import measure_design, usual_metrics
from hitmiss.engine.natural_unit import USUAL_UNITS
from hitmiss.evaluation.few_errors import few_errors
from hitmiss.evaluation.fitting import comparable, fitting, lack_of, left_out
from hitmiss.verdicts.stability import is_repeated, measure_repeated

if TYPE_CHECKING:
    from hitmiss.engine.comparison import Comparison
    from hitmiss.engine.ranking import Ranking


__all__ = ["Protocol", "compare_trials", "find_protocol", "load_protocol", "measure_trials", "protocols", "read_trials"]


def load_protocol(path: str | Path) -> Protocol:
    """Read a protocol from a TOML file. If it is invalid, the error says in one sentence what is wrong."""
    import tomllib  # needed only where a protocol is named

    try:
        artifacts.note_input(path)
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        return make_protocol(data)
    except FileNotFoundError:
        raise UsageError.of("missing-file", what="protocol file", file=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError.of("not-a-file", file=Path(path).name, what="TOML", error=error) from None
    except InvalidField as fault:
        raise UsageError.of("bad-protocol", name=Path(path).name, fault=fault) from None


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


def locked(require: str | Sequence[str]) -> Criteria | None:
    """Return the locked criteria among requirements; one file of them at most."""
    texts = [require] if isinstance(require, str) else require
    found = [load_criteria(text) for text in texts if text.endswith(ENDING)]
    if len(found) > 1:
        raise UsageError.of("several-criteria")
    return found[0] if found else None


def requirement_texts(require: str | Sequence[str]) -> tuple[str, ...]:
    """Return requirements as texts, those of files too."""
    if not require:
        return ()
    from hitmiss.engine.requirement import read_requirements

    return tuple(map(str, read_requirements(require)))


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

    rules = protocol or Protocol()
    asked = said.over(rules.read) if protocol else said
    if not (rules.claims_speaker or rules.split or said.asv is not None or said.asv_key is not None):
        return read(scores, key, asked, memory=memory, needed=needed)
    from hitmiss.evaluation.tandem import complete, with_speaker_column

    asked = with_speaker_column(asked, key) if rules.claims_speaker else asked
    return complete(read(scores, key, asked, memory=memory, needed=needed), key, rules, said)


def read_runs(
    paths: Sequence[str], key: object, protocol: Protocol | None, spec: ReadSpec | None = None, column: str = "seed"
) -> Trials:
    """Read several score files as runs of one experiment (for example seeds), named after their files."""
    names = [Path(p).name.split(".")[0] for p in paths]
    if len(set(names)) != len(names):
        raise UsageError.of("same-name/files", names=next(n for n in names if names.count(n) > 1))
    runs = {n: read_trials(p, key, protocol, spec) for n, p in zip(names, paths, strict=True)}
    made = _with_same_items(stack(runs, column), column, allow_missing=spec is not None and spec.allow_missing)
    return _with_notes(made, _alike(runs))


def _with_same_items(trials: Trials, column: str, *, allow_missing: bool) -> Trials:
    """Refuse runs that lack items of other runs, as their mean would follow the items; or keep the items that all have."""
    there = trials.completeness
    if not there.short:
        return trials
    if not allow_missing:
        raise DataError.of("incomplete-runs", said=there.text, column=column)
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
    protocol, wanted, design = design.protocol, list(design.metrics), with_identities(design)
    metrics, groupings = _required(design, trials.header.runs)
    if not protocol:
        wanted = with_names(wanted or (() if metrics else usual_metrics([trials])), metrics)
    refuse_layouts(trials, protocol)
    if protocol and protocol.measured_by:
        design.refuse_identities(f"verdicts of {protocol.name}")
        refuse_sampling(trials, f"the protocol {protocol.name}")
        module, _, name = protocol.measured_by.partition(":")
        measured: Results = getattr(import_module(module), name)(trials, design)
        return measured
    warnings: list[str] = []
    derived = protocol.expressions(wanted) if protocol else ()
    if protocol and not wanted:
        wanted, unfit = fitting(list(protocol.metrics), trials, protocol)
        warnings += left_out({m: lack for m, lack in unfit.items() if m not in elsewhere}, trials, protocol)
        derived = tuple(d for d in derived if not {t.metric for t in d.terms} & {str(parse(m)) for m in unfit})
    elif derived:  # a derived number was asked for by name: the metrics it is made of are measured, too
        own = [name for name in wanted if name not in protocol.derived] if protocol else wanted
        wanted = list(dict.fromkeys([*own, *(term.metric for d in derived for term in d.terms)]))
    if protocol and metrics:
        wanted = with_names(wanted, [m for m in metrics if m not in protocol.derived])
    asked = {grouping[0] for grouping in design.groupings if len(grouping) == 1}
    if protocol:
        warnings += [text for column, text in protocol.remarks.items() if column in asked]
    warnings += _pooled(trials, protocol)
    by = tuple(dict.fromkeys([*design.by, *groupings]))
    settled = replace(design, metrics=tuple(wanted), gap=_gap(design, trials, asked), by=by)
    narrow = () if design.metrics or protocol is None else protocol.slice_metrics  # what is asked for is in every table
    if trials.header.graded_by and is_repeated(trials):
        made = measure_repeated(trials, settled, warnings)
    else:
        made = measure_design(trials, settled, warnings, derived, narrow)
    if protocol and protocol.rule_of_30:
        made = replace(made, warnings=(*made.warnings, *few_errors(made, protocol.rule_of_30)))
    return replace(made, design=replace(design, unit=made.design.unit if made.design else design.unit))


def with_identities(design: Design) -> Design:
    """Return the design with the columns of identities that its requirements name."""
    if not design.require:
        return design
    from hitmiss.engine.requirement import identities_of, read_requirements

    named = identities_of(r.target for r in read_requirements(design.require))
    return replace(design, identity=tuple(dict.fromkeys((*design.identity, *named))))


def _required(design: Design, runs: Sequence[str]) -> tuple[list[str], tuple[Grouping, ...]]:
    """Return the metrics and the groupings that requirements are about; `runs` are no columns to group by."""
    if not design.require:
        return [], ()
    from hitmiss.engine.requirement import metrics_of, read_requirements, slices_of

    required = read_requirements(design.require)
    return metrics_of(required), parse_by(slices_of(required, runs))


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
    """Warn about columns whose values are pooled in the numbers of all trials, although they should be scored apart."""
    told = dict(protocol.pooled) if protocol else {}
    if any(layout.startswith("asvspoof2021") for layout in _layouts(trials)):
        told.setdefault("subset", "official numbers are those of eval alone")
    found = []
    for column, why in told.items():
        if column in trials.frame.columns and (n := trials.frame[column].n_unique()) > 1:
            values = ", ".join(map(str, trials.frame[column].unique().sort().to_list()[:5]))
            found.append(
                f"the numbers of all trials pool {n} values of {column} ({values}): {why}; --where {column}=VALUE keeps one"
            )
    return found


def compare_trials(runs: Mapping[str, Trials], design: Design) -> Comparison | Ranking:
    """Compare several runs as a design asks: by the protocol's metrics that fit all runs, or by its own comparison."""
    from hitmiss.engine.rank import compare_runs  # imported here, so that measuring alone does not load it

    protocol, wanted = design.protocol, design.metrics
    if design.gaps and len(runs) > 2:
        raise UsageError.of("gaps-of-many", gap=str(design.gaps[0]), n=len(runs))
    if design.identity and len(runs) > 2:
        raise UsageError.of("identities-of-many", names=" ".join(design.identity), n=len(runs))
    for run in runs.values():
        refuse_layouts(run, protocol)
    if protocol and protocol.compared_by:
        design.refuse_identities(f"verdicts of {protocol.name}")
        return _compared_by(protocol, runs, design)
    design = with_identities(design)
    required, groupings = _required(design, next(iter(runs.values())).header.runs)
    if not wanted and protocol is None and not required:
        wanted = usual_metrics(list(runs.values()))
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
        lacking = fitting([m for m in protocol.metrics if m not in wanted], first, protocol)[1]
        lost = {m: lack for m, lack in lacking.items() if lack == "weight"}
        made = replace(made, warnings=(*made.warnings, *left_out(lost, first, protocol)))
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

    `is_whole`: with all columns, as hashes of the rows need them; otherwise with those that the numbers need.
    """
    if design.seeds:
        return decided(read_runs([str(path) for path in scores], key, design.protocol, reading), design)
    given = list(scores) if len(scores) > 1 else scores[0]
    asked, further = _used(design)
    needed = None if is_whole or design.rules.measured_by else (*asked, *further)
    trials = read_trials(given, key, design.protocol, reading, memory, needed)
    if needed is not None and not all(find_column(name, trials.frame.columns) for name in asked):
        trials = read_trials(given, key, design.protocol, reading, memory)  # what is refused is said with all columns
    return decided(trials, design)


def _used(design: Design) -> tuple[list[str], list[str]]:
    """Return the columns that a design asks for, and those that it uses if they exist."""
    protocol, design = design.rules, with_identities(design)
    required = [name for grouping in _required(design, ())[1] for name in grouping]
    wanted = [text for text in design.metrics if text not in protocol.derived] or protocol.metrics
    own = [column for text in wanted for column in find_metric(parse(text).name).columns if column not in FIXED]
    units = protocol.natural or USUAL_UNITS if design.bootstrap else ()
    further = [*protocol.pooled, "subset", *(name for unit in units for name in names_of(unit))]
    return [*design.columns, *own], [*further, *required]


def decided(trials: Trials, design: Design) -> Trials:
    """Decide trials at the threshold of a design; that of a protocol does not replace decisions in the data.

    The metrics that the caller names find the confidences that they need in declared probabilities.
    """
    protocol, threshold = design.protocol, design.threshold
    is_own = protocol is not None and threshold == protocol.threshold and "decision" in trials.frame.columns
    if threshold is not None and not is_own:
        from hitmiss.derive.decisions import at_threshold

        trials = at_threshold(trials, threshold, design.threshold_origin)
    named = [text for text in (*design.metrics, *_required(design, ())[0]) if text not in design.rules.derived]
    if not named:
        return trials
    from hitmiss.derive.confidences import with_confidence

    return with_confidence(trials, named)


def with_frozen_threshold(design: Design, development: Trials, at: str | None) -> Design:
    """Return the design with the threshold that a metric has on development data, and both error rates measured at it."""
    from hitmiss.derive.thresholds import best_threshold
    from hitmiss.metrics.operating_points import ERROR_RATES, OWN_THRESHOLD

    if design.threshold is not None:
        raise UsageError.of("threshold-twice")
    chosen, name = best_threshold(development, at or OWN_THRESHOLD), development.header.sources[0].name
    own = design.metrics or (design.protocol.metrics if design.protocol else ())
    return design.changed(
        threshold=chosen.threshold,
        threshold_origin=f"{chosen.metric} {chosen.value:.6g} on {name}",
        metrics=tuple(dict.fromkeys((*own, *ERROR_RATES))),
    )


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
    own = [m for m in design.metrics or design.rules.metrics if m not in derived]
    unfit = {name: [m for m in own if lack_of(m, side, design.protocol) == "kind"] for name, side in sides.items()}
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
