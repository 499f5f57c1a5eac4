"""`hitmiss triage`: the numbers of the triage evaluation document with intervals; two thresholds, chosen or given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import JSON, METRICS_OUTPUT, RESULTS, UNDEFINED, field_option
from hitmiss.core.design import Bands, Design, LeastConfidence
from hitmiss.core.design import TriageRules as TriageDesign
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import MEASURING, READING, Spec, opt
from hitmiss.outofcore.evaluate import Counting, memory_size

if TYPE_CHECKING:
    from hitmiss.core.tally import Tally
    from hitmiss.core.trials import Trials
    from hitmiss.core.verdict import Verdict
    from hitmiss.derive.bands import Answered, Choice
    from hitmiss.protocols.triage import Triage
    from hitmiss.reports.table import Table
    from hitmiss.verdicts.people import HumanMachineResults

FILES = "Results (documented JSON lines, or any table with id, label and a verdict or a score)."
CHOOSE = (
    "rates, guarantee, cost or budget: choose two thresholds (or, of verdicts, least confidences: rates or guarantee) on "
    "--choose-on, or on half of the items."
)
LEAST = "Answer from this confidence on and leave the rest to people; two numbers: for real and for fake verdicts."


@dataclass(frozen=True)
class Choosing(Spec):
    """How the two thresholds are chosen: the way, the rows to choose on, and the settings of each way."""

    choose: Annotated[Literal["rates", "guarantee", "cost", "budget"] | None, opt(CHOOSE, MEASURING, common=True)] = (
        None
    )
    choose_on: Annotated[str | None, opt("Other rows to choose the thresholds on.", MEASURING)] = None
    max_slip: Annotated[float, opt("For rates and guarantee: most fakes passed.", MEASURING)] = 0.05
    max_false_flag: Annotated[float, opt("For rates and guarantee: most reals flagged.", MEASURING)] = 0.05
    confidence: Annotated[float, opt("For guarantee: the confidence level.", MEASURING)] = 0.95
    costs: Annotated[
        tuple[float, ...], opt("For cost: cost of a slip, a false flag and a review.", MEASURING, takes_words=True)
    ] = ()
    looks: Annotated[str | None, opt("For budget: reviews of items, as 50/1000.", MEASURING)] = None


@dataclass(frozen=True)
class Bins(Spec):
    """The bins of calibration errors: how many, and which end of each is closed."""

    bins: Annotated[int, opt("Bins of ece and of the reliability table.", MEASURING)] = 10
    closed: Annotated[
        Literal["left", "right"], opt("Which end of a bin is closed: [lo, hi) or (lo, hi].", MEASURING)
    ] = "left"


def triage(
    results: Annotated[list[str], arg(FILES)],
    dataset: Annotated[
        str | None, opt("The dataset, for labels and meta.", READING, "--dataset", "--key", common=True)
    ] = None,
    human: Annotated[str | None, opt("Verdicts of people (`hitmiss review --export`).", READING, common=True)] = None,
    human_decides: Annotated[
        Literal["unanswered", "reviewed"],
        opt("What people decide: what the system left open, or all that they judged.", MEASURING),
    ] = "unanswered",
    thresholds: Annotated[
        list[float] | None,
        opt(
            "Two numbers: real below the first, fake from the second on; other way round with --higher real.",
            MEASURING,
            takes_words=True,
            common=True,
        ),
    ] = None,
    least_confidence: Annotated[list[float] | None, opt(LEAST, MEASURING, takes_words=True)] = None,
    sweep: Annotated[bool, opt("Show pairs of thresholds, or of least confidences, on these rows.")] = False,
    recalibrate_on: Annotated[str | None, opt("Other rows to fit a recalibration on.", MEASURING)] = None,
    recalibration: Annotated[
        Literal["platt", "temperature", "isotonic"], opt("How confidences are recalibrated.", MEASURING)
    ] = "platt",
    reliability: Annotated[bool, opt("Show confidence against accuracy by bins.")] = False,
    undefined: Annotated[Literal["null", "zero"], UNDEFINED] = "null",
    metrics_output: Annotated[str | None, METRICS_OUTPUT] = None,
    output: Annotated[str | None, RESULTS] = None,
    *,
    question: Annotated[
        Design, fields(without=("protocol", "matrix", "interval", "stratify", "gap", "threshold"), bootstrap=1000)
    ],
    reading: ReadSpec,
    asked: Choosing,
    rule: Bins,
    stream: Annotated[
        bool, opt("Read the files piece by piece: their texts need not fit into memory.", READING)
    ] = False,
    memory: Annotated[str, field_option(Counting, "memory")] = "1GB",
    json: Annotated[bool, JSON] = False,
) -> None:
    """Score three-way verdicts (real, fake, uncertain): slip, false flag, coverage, calibration, repeats and times.

    $ hitmiss triage results.jsonl --by generator
    """
    from hitmiss.derive.bands import halves
    from hitmiss.evaluation.protocol import find_protocol
    from hitmiss.protocols.triage import decided, evaluate_design, unit_of, write_metrics

    room = memory_size(memory) if stream else None
    trials = _read(results, dataset, reading, room)
    unit = unit_of(question) if asked.choose is not None else None
    extra: list[Table] = _swept(trials) if sweep else []
    given, choice = _given(trials, thresholds, least_confidence, asked), None
    if asked.choose is not None:
        if asked.choose_on is None:
            learned = halves(trials, question.seed, unit)[0]
            where = f"{len(learned):,} of the {len(trials):,} rows"
        else:
            learned, where = _read([asked.choose_on], dataset, reading, room), Path(asked.choose_on).name
        given, choice = _chosen_on(learned, asked, unit, where)
    settled = TriageDesign(
        given if isinstance(given, Bands) else None,
        choice is not None and asked.choose_on is None,
        recalibration if recalibrate_on else None,
        given if isinstance(given, LeastConfidence) else None,
    )
    design = question.changed(protocol=find_protocol("triage"), gap="none", triage=settled, undefined=undefined)
    development = _read([recalibrate_on], dataset, reading, room) if recalibrate_on else None
    trials = decided(trials, design, development)
    design = design.changed(metrics=tuple(_metrics(list(question.metrics), trials, rule)))
    evaluation = evaluate_design(trials, design)
    team = _team(trials, human, human_decides, question)
    evaluation = replace(evaluation, people=team)
    if metrics_output:
        import time

        write_metrics(evaluation, metrics_output, undefined, time.time())
    if output:
        from hitmiss.reports.pictures import save

        save(evaluation.figures, evaluation.trials, output, printing.plain_object(evaluation.asides_dict()))
    if json:
        document = {**printing.plain_object(evaluation.to_dict()), "choice": printing.plain(choice)}
        printing.out_with_verdict(document, _concluded(evaluation))
        return
    if reliability:
        extra.append(_reliability(trials, rule, question))
    _show(evaluation, choice, asked, extra, rule, output)
    if team is not None:
        printing.out(f"with people:\n{team.figures.signature}")


def _read(results: list[str], dataset: str | None, reading: ReadSpec, room: int | None) -> Trials:
    from hitmiss.core.weights import refuse_sampling
    from hitmiss.evaluation.protocol import find_protocol, read_trials

    trials = read_trials(results if len(results) > 1 else results[0], dataset, find_protocol("triage"), reading, room)
    refuse_sampling(trials, "the triage evaluation")
    return trials


def _team(trials: Trials, human: str | None, where: str, design: Design) -> HumanMachineResults | None:
    """Measure the system, people, and both together, where verdicts of people are given."""
    if human is None:
        return None
    from hitmiss.io.people import read_verdicts
    from hitmiss.verdicts.people import evaluate_teamwork

    said = read_verdicts(human, trials.header.positive, trials.header.negative)
    return evaluate_teamwork(trials, said, design.plan, where=where)  # type: ignore[arg-type]


def _swept(trials: Trials) -> list[Table]:
    from hitmiss.derive.bands import for_file, sweep, sweep_sureness
    from hitmiss.reports.triage_tables import sureness_table, sweep_table

    if _by_verdicts(trials):
        return [sureness_table(sweep_sureness(_of_one_run(trials)))]
    tally, scale = _tally(trials), trials.header.scale
    return [sweep_table([for_file(point, tally, scale) for point in sweep(tally)])]


def _by_verdicts(trials: Trials) -> bool:
    """Say whether the rows have verdicts with a confidence but no scores; a least confidence is chosen then."""
    return {"decision", "confidence"} <= {*trials.frame.columns} and "score" not in trials.frame.columns


def _of_one_run(trials: Trials) -> Trials:
    from hitmiss.core.errors import UsageError

    head = trials.header
    if head.runs and trials.frame.select(head.runs).n_unique() > 1:
        raise UsageError.of("several-runs/thresholds")
    return trials


def _tally(trials: Trials) -> Tally:
    from hitmiss.core.tally import Tally

    own = _of_one_run(trials)
    return Tally.of(own.label, own.score)


def _given(
    trials: Trials, thresholds: list[float] | None, least: list[float] | None, asked: Choosing
) -> Bands | LeastConfidence | None:
    """Return thresholds or least confidences as they were given; None keeps verdicts, or they are chosen."""
    from hitmiss.core.errors import DataError, UsageError

    if sum(way is not None for way in (thresholds, least, asked.choose)) > 1:
        raise UsageError.of("several-rules")
    if least is not None:
        if len(least) > 2:
            raise UsageError.of("least-confidences", n_least=len(least))
        return LeastConfidence(least[0], least[-1])
    if thresholds is not None:
        if len(thresholds) != 2:
            raise UsageError.of("two-thresholds", n=len(thresholds))
        return Bands(thresholds[0], thresholds[1])
    if asked.choose is None and "decision" not in trials.frame.columns:
        raise DataError.of("no-verdicts")
    return None


def _chosen_on(
    learned: Trials, asked: Choosing, unit: str | None, where: str
) -> tuple[Bands | LeastConfidence, Choice | Answered]:
    """Return thresholds or least confidences that are chosen on rows, and the choice."""
    from hitmiss.core.errors import DataError
    from hitmiss.derive.bands import for_file

    if _by_verdicts(learned):
        answered = _chosen_sureness(_of_one_run(learned), asked, unit)
        if answered.sureness is None:
            raise DataError.of("no-least-confidence", reason=answered.reason)
        return replace(answered.sureness, origin=answered.sureness.origin.replace("this data", where)), answered
    choice = _chosen(learned, asked, unit)
    if choice.point is None:
        raise DataError.of("no-thresholds", reason=choice.reason)
    choice = replace(choice, point=for_file(choice.point, _tally(learned), learned.header.scale))
    assert choice.point is not None
    bands = choice.point.bands
    return Bands(bands.low, bands.high, bands.origin.replace("this data", where)), choice


def _chosen_sureness(trials: Trials, asked: Choosing, unit: str | None) -> Answered:
    from hitmiss.core.errors import UnknownName
    from hitmiss.derive.bands import by_confidence

    if asked.choose not in ("rates", "guarantee"):
        raise UnknownName("way to choose least confidences of verdicts", str(asked.choose), ("rates", "guarantee"))
    sure = asked.confidence if asked.choose == "guarantee" else None
    return by_confidence(trials, asked.max_slip, asked.max_false_flag, confidence=sure, unit=unit)


def _chosen(trials: Trials, asked: Choosing, unit: str | None) -> Choice:
    from hitmiss.core.errors import UsageError
    from hitmiss.derive import bands

    tally, way, slip, flag = _tally(trials), asked.choose, asked.max_slip, asked.max_false_flag
    if way == "rates":
        return bands.by_rates(tally, slip, flag)
    if way == "guarantee":
        units = bands.Units.of(trials, unit) if unit else None
        return bands.guaranteed(tally, slip, flag, asked.confidence, units)
    if way == "cost":
        if len(asked.costs) != 3:
            raise UsageError.of("no-costs")
        return bands.by_cost(tally, *asked.costs)
    return bands.by_budget(tally, _share(asked.looks))


def _share(looks: str | None) -> float:
    """Convert `50/1000` (50 looks for every 1000 items) to a share."""
    from hitmiss.core.errors import UsageError

    try:
        few, _, many = (looks or "").partition("/")
        return float(few) / float(many)
    except (ValueError, ZeroDivisionError):
        raise UsageError.of("no-looks", looks=looks) from None


def _metrics(metric: list[str], trials: Trials, rule: Bins) -> list[str]:
    """Return the metrics to measure: those of the triage evaluation document, with other bins if asked for."""
    if metric or rule == Bins() or "confidence" not in trials.frame.columns:
        return metric
    from hitmiss.core.registry import find_metric
    from hitmiss.evaluation.fitting import fitting
    from hitmiss.evaluation.protocol import find_protocol

    fits = fitting(list(find_protocol("triage").metrics), trials)[0]
    is_binned = {m: {"bins", "closed"} <= find_metric(m).defaults.keys() for m in fits}
    return [f"{m}(bins={rule.bins}, closed={rule.closed})" if is_binned[m] else m for m in fits]


def _reliability(trials: Trials, rule: Bins, design: Design) -> Table:
    from hitmiss.reports.triage_tables import reliability_table
    from hitmiss.verdicts.reliability import reliability
    from hitmiss.verdicts.stability import pooled

    return reliability_table(reliability(pooled(trials), design.plan, bins=rule.bins, closed=rule.closed))


def _show(
    evaluation: Triage,
    choice: Choice | Answered | None,
    asked: Choosing,
    extra: list[Table],
    rule: Bins,
    output: str | None,
) -> None:
    from hitmiss.reports import terminal
    from hitmiss.reports.triage_tables import tables

    printing.out(_title(evaluation, rule))
    if choice is not None:
        printing.out(_judgement(evaluation, choice, asked))
    terminal.write_tables([*tables(evaluation), *extra])
    warnings = dict.fromkeys((*evaluation.figures.warnings, *_notes(evaluation), *evaluation.latency.warnings))
    terminal.write_verdict(_concluded(evaluation), warnings, brief=printing.is_quiet())
    printing.sampled(evaluation.figures)
    printing.out_signature(evaluation.figures.signature, output)


def _concluded(evaluation: Triage) -> Verdict:
    from hitmiss.conclude.verdict import Beside, conclude
    from hitmiss.evaluation.protocol import find_protocol

    return conclude(evaluation.figures, find_protocol("triage").primary, beside=Beside(asides=(evaluation,)))


def _title(evaluation: Triage, rule: Bins) -> str:
    from hitmiss.protocols.triage import own_classes
    from hitmiss.verdicts.stability import uneven

    trials, figures = evaluation.trials, evaluation.figures
    items = trials.frame.unique(["item", "target"])
    fakes = int(items["label"].sum())
    there = trials.completeness
    n_runs = trials.frame.select(trials.header.runs).n_unique() if trials.header.runs else 1
    many = f" × {n_runs} runs" if n_runs > 1 else ""
    many += f" = {len(trials):,} trials" if many and there.is_full else ""
    many += "" if there.is_full else f", incomplete: {there} trials"
    many = many if trials.header.unnamed is None else f": rows without ids{f', of {n_runs} runs' if n_runs > 1 else ''}"
    positive, negative = own_classes(trials)
    lines = [
        f"Triage: three-way verdicts ({negative}, {positive}, uncertain); positive = {positive}",
        f"{items.height:,} items ({fakes:,} {positive}, {items.height - fakes:,} {negative}){many}",
    ]
    if trials.header.settled:
        lines.append(trials.header.settled)
    if positive != trials.header.positive:
        lines.append(f"in the names of metrics, fake means {positive} and real means {negative}")
    if evaluation.repeated:
        mean = "over trials" if not uneven(trials) else "over items, each by its own trials"
        lines.append(f"value: mean {mean} [interval over items]; sd: over trials, what comes from the run alone")
    lines += [
        c
        for c in trials.header.choices
        if c.startswith(("thresholds", "least-confidence", "recalibration", "undefined"))
    ]
    if trials.header.decided:
        lines.append(f"decisions: {trials.header.decided}")
    if any({"bins", "closed"} <= e.settings.keys() for e in figures):
        edges = "[lo, hi), the last closed" if rule.closed == "left" else "(lo, hi], the first closed"
        lines.append(f"ece: {rule.bins} equal bins, {edges}; no interval, as resampling inflates it")
    return "\n".join(lines)


def _judgement(evaluation: Triage, choice: Choice | Answered, asked: Choosing) -> str:
    """Say whether the target rates hold on rows that were not used to choose the rule."""
    from hitmiss.derive.bands import Answered
    from hitmiss.metrics.triage import WRONG

    point = choice if isinstance(choice, Answered) else choice.point
    assert point is not None
    told = [f"where chosen: slip {point.slip:.4f}, false flag {point.false_flag:.4f}, review {point.review:.4f}"]
    if asked.choose in ("rates", "guarantee"):
        targets = dict(zip(WRONG, (asked.max_slip, asked.max_false_flag), strict=True))
        for e in evaluation.figures:
            if e.metric in targets and not e.slice and e.value is not None:
                held = "kept" if e.value <= targets[e.metric] else "BROKEN"
                told.append(f"on the rows shown here: {e}; target {targets[e.metric]:g} {held}")
    return "\n".join(told)


def _notes(evaluation: Triage) -> list[str]:
    """Collect the reasons for undefined numbers, once for all trials of a run."""
    found: dict[str, None] = {}
    for e in evaluation.figures:
        if e.value is None and e.average is None and not e.slice and e.note:
            where = "|".join(v for k, v in e.run.items() if k != "trial")
            found[f"{f'{where}: ' if where else ''}{e.metric} is {e.note}"] = None
    return list(found)
