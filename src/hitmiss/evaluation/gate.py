"""Gates: whether the numbers of a run keep their limits, and are no worse than those of a baseline.

A run is given as trials, or as results that were measured before. Trials are measured for the rules alone, and two runs
on the same items are always paired. Two samples of one population are compared as such where that is said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import polars as pl

from hitmiss.core.columns import user_name
from hitmiss.core.design import ComparisonRules, Design, parse_by
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.finding import Remark
from hitmiss.core.gate_spec import GateRule, GateSpec, load_gate
from hitmiss.core.kinds import one_or_several
from hitmiss.core.protocol import EVERY, Gap, Protocol
from hitmiss.core.results import Results, demanded_results
from hitmiss.core.trials import Trials
from hitmiss.engine.comparison import Comparison
from hitmiss.engine.regression import (
    AUTO,
    POINT,
    SHOWN,
    Evidence,
    Regression,
    check_regression,
    incomparable,
    parse_regression,
)
from hitmiss.engine.requirement import (
    Check,
    Requirement,
    Target,
    check_requirement,
    check_rule,
    identities_of,
    parse_rule,
    read_requirements,
    select,
)
from hitmiss.metrics.bias import RANGES
from hitmiss.metrics.usual import AREA

DRAWS: Final = 1000
"""Replicates behind an interval that decides, where none were asked for."""
BEYOND: Final = 20
"""Replicates beyond each end of an interval, at least: joint intervals of many checks need more draws."""
MOST_DRAWS: Final = 20_000
KEY: Final = ("item", "target")
Parsed = tuple[GateRule, Requirement | Regression]


@dataclass(frozen=True)
class Flip:
    """A question that the baseline answers rightly and the run wrongly."""

    item: str
    target: str
    slice: Mapping[str, str]
    expected: str


@dataclass(frozen=True)
class Flips:
    """The questions that only the baseline answers rightly, and how many only the run does."""

    lost: tuple[Flip, ...] = ()
    n_won: int = 0


@dataclass(frozen=True)
class GateOutcome:
    """What a gate found: its checks, what a reader should know, and the answers that became wrong."""

    checks: tuple[Check, ...]
    warnings: tuple[str, ...] = ()
    flips: Flips = Flips()
    decide: str = POINT

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)


def gate(
    results: Results | Trials | str | Path,
    fail_if: str | Sequence[str] = (),
    *,
    require: str | Sequence[str] = (),
    baseline: Results | Trials | str | Path | None = None,
    max_regression: str | Sequence[str] = (),
    decide: Literal["auto", "point", "bound", "shown"] = "auto",
    unpaired: bool = False,
    rules: str | Path | None = None,
    protocol: str | Path | Protocol | None = None,
    design: Design | None = None,
) -> list[Check]:
    """Check a run against rules, as `hitmiss gate` does.

    Parameters
    ----------
    results
        The results to check, or their file; or the trials of a run (`hm.read`), which are measured for the rules.
    fail_if
        A rule such as `eer.high > 0.05` or `worst eer [codec=*] > 10%`, or several.
    require
        A requirement such as `eer.high <= 0.05` or `precision >= 0.9 at prevalence 1%`, a file `requirements.toml`, or
        several; only what is shown to be met passes.
    baseline
        Earlier results, their file, or trials, for `max_regression`.
    max_regression
        How much worse than the baseline a number may be, such as `eer=0.005`; or several.
    decide
        What decides about a difference: `point` (the numbers), `bound` (the worst end of the interval) or `shown` (its
        best end, for all checks together). `auto` is `shown` if both runs are trials, and `point` otherwise.
    unpaired
        The two runs are samples of one population with other items.
    rules
        A file `gate.toml`, whose rules are checked too.
    protocol, design
        How trials are measured; a design states the protocol, units and draws.

    Returns
    -------
    list[Check]
        One check per rule and number. The gate holds if every `passed` is true.

    Raises
    ------
    UsageError
        For a rule that cannot be parsed, that cannot fail or can only fail, a number that the results do not have, or
        no rule at all.
    DataError
        If the baseline cannot be compared with these results.

    >>> from hitmiss.core.trials import Trials
    >>> from hitmiss.engine.measure import measure
    >>> found = measure(Trials.of([1, 1, 0, 0], [4, 3, 2, 1]), ["roc_auc"])
    >>> [check.passed for check in gate(found, ["roc_auc < 0.9"])]
    [True]
    """
    from hitmiss.evaluation.protocol import find_protocol

    spec = GateSpec(
        fail_if=tuple(one_or_several(fail_if)),
        require=tuple(one_or_several(require)),
        max_regression=tuple(one_or_several(max_regression)),
        regression_by=decide,
        unpaired=unpaired,
    )
    if rules is not None:
        spec = spec.over(load_gate(rules))
    if baseline is None and spec.baseline is not None:
        baseline = spec.baseline
    sides = [
        one if isinstance(one, Trials) or one is None else demanded_results(one, "gate") for one in (results, baseline)
    ]
    made = design or Design(protocol=None if protocol is None else find_protocol(protocol))
    assert sides[0] is not None
    return list(judge_gate(sides[0], sides[1], spec, made).checks)


def judge_gate(run: Results | Trials, baseline: Results | Trials | None, spec: GateSpec, design: Design) -> GateOutcome:
    """Check a run, given as trials or results, against the rules of a gate.

    Trials are measured as the design asks, but only the numbers that the rules need.
    """
    rules = parse_rules(spec, baseline is not None)
    regressions = [r for _, r in rules if isinstance(r, Regression)]
    targets = [r.target for rule, r in rules if rule.kind != "require"]
    design = replace(design, require=tuple(rule.text for rule in spec.all_rules if rule.kind == "require"))
    decide: str = spec.regression_by
    if decide == AUTO:
        decide = SHOWN if isinstance(run, Trials) and isinstance(baseline, Trials) and not spec.force else POINT
    if regressions and decide != POINT and (spec.unpaired or any(r.target.average for r in regressions)):
        design = replace(design, bootstrap=design.bootstrap or DRAWS)
    results = _measured(run, targets, design)
    if baseline is None or not regressions:
        return GateOutcome(tuple(_limits(rules, results)), results.warnings, decide=decide)
    before = _measured(baseline, targets, design)
    forced = _comparable(results, before, regressions, spec)
    level = results.design.level if results.design is not None else design.level
    together = sum(len(select(r.target, results)) for r in regressions) if decide == SHOWN else 1
    by = Evidence(decide, None, level, together, spec.unpaired, spec.regression_by == AUTO)
    flips = Flips()
    if isinstance(run, Trials) and isinstance(baseline, Trials) and not spec.unpaired:
        # a baseline that was forced may have other items; then the numbers decide alone, unless an interval must
        if not forced or decide != POINT:
            joint = replace(design, level=by.joint, bootstrap=_draws(design, by))
            by = replace(by, paired=_compared(run, baseline, regressions, joint, spec.force))
        flips = Flips() if forced else flipped(run, baseline)
    checks = _limits(rules, results)
    for rule, one in rules:
        if isinstance(one, Regression):
            checks += [_owned(check, rule) for check in check_regression(one, results, before, by)]
    return GateOutcome(tuple(checks), (*forced, *results.warnings), flips, decide)


def parse_rules(spec: GateSpec, has_baseline: bool) -> list[Parsed]:
    """Read the rules, and refuse a gate that checks nothing."""
    rules = spec.all_rules
    kinds = {rule.kind for rule in rules}
    if not rules:
        raise UsageError.of("no-rule")
    if "max_regression" in kinds and not has_baseline:
        raise UsageError.of("no-baseline")
    if has_baseline and "max_regression" not in kinds:
        raise UsageError.of("no-rule/baseline")
    found: list[Parsed] = []
    for rule in rules:
        if rule.kind == "require":
            found += [(rule, one) for one in read_requirements(rule.text)]
        else:
            found.append((rule, parse_rule(rule.text) if rule.kind == "fail_if" else parse_regression(rule.text)))
    return found


def _measured(run: Results | Trials, targets: Sequence[Target], design: Design) -> Results:
    """Return the numbers that rules are about, which may be any metric in any slice."""
    if isinstance(run, Results):
        return run
    from hitmiss.evaluation.protocol import measure_trials

    return measure_trials(run, _for_rules(targets, run, design))


def _for_rules(targets: Sequence[Target], run: Trials, design: Design) -> Design:
    about = [t for t in targets if t.metric.name in RANGES]  # numbers about identities follow from their columns
    design = replace(design, identity=tuple(dict.fromkeys((*design.identity, *identities_of(about)))))
    targets = [t for t in targets if t not in about]
    spreads = [t for t in targets if t.average in ("spread", "ratio")]
    slices = [tuple(k for k, _ in t.cells if k not in run.header.runs) for t in targets if t not in spreads]
    own = [Gap(names[-1], (EVERY,), within=names[:-1]) for t in spreads if (names := tuple(k for k, _ in t.cells))]
    gaps = tuple(dict.fromkeys((*design.gaps, *own)))
    design = replace(design, gap=gaps if len(gaps) > 1 else gaps[0]) if gaps else design
    by = dict.fromkeys([*(",".join(g) for g in design.by), *(",".join(s) for s in slices if s)])
    metrics = list(dict.fromkeys(str(t.metric) for t in targets)) or ([AREA] if about else [])
    return design.changed(metrics=metrics, by=parse_by(list(by)))


def _draws(design: Design, by: Evidence) -> int:
    """Return enough replicates for intervals of a high level."""
    wanted = max(design.bootstrap or DRAWS, math.ceil(2 * BEYOND / (1.0 - by.joint)))
    return wanted if by.together == 1 else min(wanted, max(MOST_DRAWS, design.bootstrap))


def _compared(
    run: Trials, baseline: Trials, regressions: Sequence[Regression], design: Design, force: bool
) -> Comparison:
    """Compare both runs pair by pair."""
    from hitmiss.evaluation.protocol import compare_trials

    asked = _for_rules([r.target for r in regressions], run, replace(design, require=()))
    rules = ComparisonRules(force=force, allow_missing=force)
    made = compare_trials({"baseline": baseline, "run": run}, replace(asked, contest=rules))
    assert isinstance(made, Comparison)  # two runs are compared; only more are ranked
    return made


def _comparable(
    results: Results, before: Results, regressions: Sequence[Regression], spec: GateSpec
) -> tuple[str, ...]:
    wrong = incomparable(results, before, regressions, unpaired=spec.unpaired)
    if wrong and not spec.force:
        others = not spec.unpaired and any(w.startswith(("different items", "different sample sizes")) for w in wrong)
        raise DataError.of("incomparable/other-items" if others else "incomparable/baseline", wrong="; ".join(wrong))
    return tuple(Remark.of("comparison-forced", w=w) for w in wrong)


def _limits(rules: Sequence[Parsed], results: Results) -> list[Check]:
    found: list[Check] = []
    for rule, one in rules:
        if isinstance(one, Requirement):
            check = check_requirement if rule.kind == "require" else check_rule
            found += [_owned(c, rule) for c in check(one, results)]
    return found


def _owned(check: Check, rule: GateRule) -> Check:
    return replace(check, owners=rule.owners, why=rule.why)


def flipped(run: Trials, baseline: Trials) -> Flips:
    """Return the questions that only the baseline answers rightly, and how many only the run does; none without decisions."""
    if not all("decision" in t.frame.columns for t in (run, baseline)) or run.frame.select(KEY).is_duplicated().any():
        return Flips()
    names = [name for name in run.header.slices if name in run.frame.columns]
    before = baseline.frame.select(*KEY, (pl.col("decision") == pl.col("label")).alias(":before"))
    both = run.frame.select(*KEY, *names, "label", (pl.col("decision") == pl.col("label")).alias(":now")).join(
        before, on=list(KEY), how="inner"
    )
    lost = both.filter(pl.col(":before") & ~pl.col(":now")).sort(*KEY)
    head = run.header
    return Flips(
        tuple(
            Flip(
                row["item"],
                row["target"] if run.has_targets else "",
                {user_name(name): str(row[name]) for name in names},
                head.positive if row["label"] else head.negative,
            )
            for row in lost.iter_rows(named=True)
        ),
        both.filter(pl.col(":now") & ~pl.col(":before")).height,
    )
