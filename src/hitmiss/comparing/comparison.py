"""Compare: two runs on the same questions -> per metric and slice the difference, its interval, its test, a verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hitmiss._version import __version__
from hitmiss.comparing.differences import (
    Comparison,
    Difference,
)
from hitmiss.comparing.paired_samples import Both, PairedDraws, PairedSample, columns_of, wholes
from hitmiss.comparing.rows import Work
from hitmiss.design import By, Contest, Design, Grouping, Plan, Protocol, Side
from hitmiss.errors import DataError
from hitmiss.measuring.alarms import alarms
from hitmiss.measuring.asking import ask
from hitmiss.measuring.grouping import OneClass
from hitmiss.measuring.signature import render
from hitmiss.pairing import Pair, pair
from hitmiss.readspec import ReadSpec
from hitmiss.registry import resolve
from hitmiss.spec import Spec
from hitmiss.stats.delong import auc_interval
from hitmiss.trials import Trials, demanded
from hitmiss.validity import Breach, breaches, unchecked


def compare(
    a: Trials,
    b: Trials,
    metrics: Sequence[str | Spec] | Design,
    *,
    by: By = (),
    bootstrap: int = 1000,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    correction: str = "auto",
    test: str = "auto",
    names: tuple[str, str] = ("A", "B"),
    allow_missing: bool = False,
    force: bool = False,
    protocol: Protocol | None = None,
) -> Comparison:
    """Every metric of two runs on the same questions, pooled and per slice: B − A with its paired interval and test.

    `test` is `auto` or one of mcnemar, delong, bootstrap, permutation (see `contrasts`); `correction` (holm, bh, none;
    auto is holm) adjusts the p values of the slices of one metric and grouping. Where runs were repeated, figures are averaged over
    repetitions and items are drawn. What the rules of `validity` call invalid is refused; `force` puts it into the
    warnings instead.

    >>> label = [1, 1, 0, 0] * 3
    >>> a, b = Trials.of(label, [0.9, 0.4, 0.6, 0.1] * 3), Trials.of(label, [0.9, 0.7, 0.6, 0.1] * 3)
    >>> found = compare(a, b, ["roc_auc"]).one("roc_auc")
    >>> found.a, found.b, found.delta, found.verdict
    (0.75, 1.0, 0.25, 'no difference shown')
    """
    a, b = demanded(a, "compare"), demanded(b, "compare")
    contest = Contest(test=test, correction=correction, allow_missing=allow_missing, force=force)
    design = Design.of(
        () if isinstance(metrics, Design) else metrics,
        by=by,
        unit=unit,
        bootstrap=bootstrap,
        seed=seed,
        level=level,
        protocol=protocol,
        contest=contest,
    )
    if isinstance(metrics, Design):
        design = metrics.alone(design, Design(bootstrap=1000, contest=Contest()))
    return compare_design(a, b, design, names)


def compare_design(a: Trials, b: Trials, design: Design, names: tuple[str, str] = ("A", "B")) -> Comparison:
    """What a design asks of two runs, whose metrics it names."""
    chosen, contest, groupings = design.settled, design.contest or Contest(), list(design.groupings)
    on_scores = any("score" in resolve(m)[1].columns for m in design.metrics)
    paired = pair(a, b, names=names, allow_missing=contest.allow_missing, scores=on_scores)
    unit = design.unit or (("item",) if paired.repeats else ())
    plan = Plan(design.bootstrap, unit, design.seed, design.level)
    shared = [*dict.fromkeys([c for g in groupings for c in g] + [u for u in plan.unit if u != "item"])]
    columns = columns_of(paired, shared, OneClass(chosen.negative_only, chosen.positive_only))
    questions = [(ask(m, columns[0].trials, chosen), ask(m, columns[1].trials, chosen)) for m in design.metrics]
    if not len(paired):
        raise DataError("there are no pairs to compare", code="no-pairs")
    wholes_ = wholes(*columns)
    warnings = _warnings(paired, wholes_, questions, on_scores, contest.force)
    draws = PairedDraws.prepare(plan, *columns, chosen.zero_undefined)
    correction = "holm" if contest.correction == "auto" else contest.correction
    work = Work(questions, draws, contest.test, correction, paired)
    rows, tables = work.everything(wholes_, groupings, chosen.slice_metrics)
    made = Comparison(
        names,
        tuple(rows),
        tuple(tables),
        "",
        tuple(dict.fromkeys(warnings)),
        design.level,
        correction,
        chosen.name or None,
        with_sides(design, {names[0]: a, names[1]: b}),
    )
    return replace(made, signature=_sign(made, work, groupings, chosen, contest.force))


def with_sides(design: Design, runs: Mapping[str, Trials]) -> Design:
    """The design with what is known of how each run was read."""
    sides = tuple(
        Side(name, t.header.reading or ReadSpec(), t.header.threshold.value if t.header.threshold else None)
        for name, t in runs.items()
    )
    return replace(design, contest=replace(design.contest or Contest(), sides=sides))


def with_contents(design: Design, runs: Mapping[str, Trials]) -> Design:
    """The design of a comparison with the hash of each run's rows, for a file: no table needs it, and it takes a sort."""
    contest = design.contest or Contest()
    sides = tuple(replace(side, content=runs[side.name].content) for side in contest.sides)
    return replace(design, contest=replace(contest, sides=sides))


def _warnings(
    paired: Pair, samples: list[PairedSample], questions: Sequence[Both], on_scores: bool, force: bool
) -> list[str]:
    """Everything that a reader must be told; what makes the comparison invalid is refused unless it is forced."""
    wrong = breaches(paired.a, paired.b, same_items=not any(paired.left_out)) + (
        _directions(samples[0], paired.names) if on_scores else []
    )
    if wrong and not force:
        raise DataError(
            f"{paired.names[0]} and {paired.names[1]} cannot be compared: {'; '.join(map(str, wrong))}. "
            "--force compares them all the same and says so in the report",
            code="incomparable",
        )
    found = [f"INVALID COMPARISON, forced: {breach}" for breach in wrong]
    if any(paired.left_out):
        left = " and ".join(f"{n:,} of {who}" for n, who in zip(paired.left_out, paired.names, strict=True))
        found.append(f"different sample sizes: left out, for want of a partner: {left}")
    found += unchecked(paired.a, paired.b)
    for i, (trials, name) in enumerate(zip((paired.a, paired.b), paired.names, strict=True)):
        found += [f"{name}: {note}" for note in trials.header.notes]
        sides = [part.a if i == 0 else part.b for sample in samples for part in sample.parts]
        found += [f"{name}: {alarm}" for side in sides for alarm in alarms(side, [q[i] for q in questions])]
    return found


def _directions(sample: PairedSample, names: tuple[str, str]) -> list[Breach]:
    """Scores that point the right way in one run and the wrong way in the other."""
    part = sample.parts[0]
    if not 0 < part.a.n_positive < part.a.n:
        return []
    ends = [auc_interval(side.tally) for side in (part.a, part.b)]
    reversed_ = [high < 0.5 for _, high in ends]
    if reversed_[0] == reversed_[1] or not any(low > 0.5 for low, _ in ends):
        return []
    who = names[0] if reversed_[0] else names[1]
    negative = part.a.columns.trials.header.negative
    said = tuple("reversed" if t else "not reversed" for t in reversed_)
    return [Breach("different directions", turned(who, negative), (said[0], said[1]))]


def turned(who: str, negative: str) -> str:
    """What is said of a run whose scores point the wrong way."""
    return f"higher scores of {who} go with {negative}; read it with --higher"


def _sign(made: Comparison, work: Work, groupings: list[Grouping], protocol: Protocol, force: bool) -> str:
    """One line that pins every choice and the figures."""
    head, paired = work.paired.a.header, work.paired
    figures = "\n".join(
        repr(
            (d.metric, sorted(d.slice.items()), d.average, *(f"{x:.9e}" if x is not None else "-" for x in _numbers(d)))
        )
        for d in made
    )
    parts = {
        "hitmiss": __version__,
        "compare": "paired",
        "protocol": protocol.name or "none",
        "metrics": "+".join(str(Spec.of(q.metric.name, **q.settings)).replace(" ", "") for q, _ in work.questions),
        "pos": head.positive,
        "kind": head.score_kind,
        "by": ",".join("*".join(g) for g in groupings) or "none",
        "test": work.test,
        "correction": work.correction,
        "boot": str(work.plan),
        "level": f"{work.plan.level:g}",
        "forced": "yes" if force else "none",
        "left-out": "/".join(map(str, paired.left_out)) if any(paired.left_out) else "none",
        "n": f"{len(paired)}/{paired.a.n_positive}",
        "a": digest(paired.a),
        "b": digest(paired.b),
        "numpy": np.__version__,
        "out": hashlib.sha256(figures.encode()).hexdigest()[:12],
    }
    return render(parts)


def digest(trials: Trials) -> str:
    """The content of the files, and of the answers: two systems may stand in one file."""
    answers = [trials.frame[name] for name in ("score", "decision", "confidence") if name in trials.frame.columns]
    sha = hashlib.sha256(b"".join(column.to_numpy().tobytes() for column in answers))
    return f"{trials.digest}.{sha.hexdigest()[:6]}"


def _numbers(d: Difference) -> tuple[float | None, ...]:
    return d.a, d.b, d.low, d.high, d.p_value, d.p_adjusted
