"""Gates: whether the numbers of a run keep their limits, and are no worse than those of a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.kinds import one_or_several
from hitmiss.core.results import Results, demanded_results
from hitmiss.engine.regression import POINT, check_regression, incomparable, parse_regression
from hitmiss.engine.requirement import Check, check_requirement, check_rule, parse_rule, read_requirements


def gate(
    results: Results | str | Path,
    fail_if: str | Sequence[str] = (),
    *,
    require: str | Sequence[str] = (),
    baseline: Results | str | Path | None = None,
    max_regression: str | Sequence[str] = (),
    decide: str = POINT,
) -> list[Check]:
    """Check results against rules, as `hitmiss gate` does.

    Parameters
    ----------
    results
        The results to check, or their file.
    fail_if
        A rule such as `eer.high > 0.05` or `worst eer [codec=*] > 10%`, or several.
    require
        A requirement such as `eer.high <= 0.05` or `precision >= 0.9 at prevalence 1%`, a file `requirements.toml`, or
        several; only what is shown to be met passes.
    baseline
        Earlier results, or their file, for `max_regression`.
    max_regression
        How much worse than the baseline a figure may be, such as `eer=0.005`; or several.
    decide
        What decides about a difference: `point` (the figures), `bound` (the worst end of the interval) or `shown` (its
        best end).

    Returns
    -------
    list[Check]
        One check per rule and figure. The gate holds if every `passed` is true.

    Raises
    ------
    UsageError
        For a rule that cannot be parsed, that cannot fail or can only fail, a figure that the results do not have, or
        no rule at all.
    DataError
        If the baseline cannot be compared with these results.

    >>> from hitmiss.core.trials import Trials
    >>> from hitmiss.engine.measure import measure
    >>> found = measure(Trials.of([1, 1, 0, 0], [4, 3, 2, 1]), ["roc_auc"])
    >>> [check.passed for check in gate(found, ["roc_auc < 0.9"])]
    [True]
    """
    results = demanded_results(results, "gate")
    baseline = None if baseline is None else demanded_results(baseline, "gate")
    fail_if, max_regression = one_or_several(fail_if), one_or_several(max_regression)
    if not fail_if and not max_regression and not require:
        raise UsageError.of("no-rule")
    if max_regression and baseline is None:
        raise UsageError.of("no-baseline")
    checks = [check for text in fail_if for check in check_rule(parse_rule(text), results)]
    checks += [check for found in read_requirements(require) for check in check_requirement(found, results)]
    rules = [parse_regression(text) for text in max_regression]
    if baseline is not None and rules:
        wrong = incomparable(results, baseline, rules)
        if wrong:
            raise DataError.of("not-comparable", wrong="; ".join(wrong))
        checks += [check for rule in rules for check in check_regression(rule, results, baseline, decide)]
    return checks
