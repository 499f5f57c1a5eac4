"""Rules: the grammar, the figures that they are about, and whether they hold."""

from __future__ import annotations

import math
import re
from keyword import iskeyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.metric_spec import MetricSpec
from hitmiss.core.results import Estimate, Results
from hitmiss.engine.regression import Evidence, Regression, check_regression, incomparable, parse_regression
from hitmiss.engine.requirement import OPPOSITE, Requirement, Target, check_rule, parse_requirement, parse_rule, select

SIGNATURE = "hitmiss:0.1.0|protocol:asvspoof5|pos:bonafide|kind:raw|n:100/40"


def results(scale: float = 1.0, **changes: object) -> Results:
    rows = (
        Estimate("eer", 0.1 * scale, 0.08 * scale, 0.12 * scale, n=100, n_positive=40, method="bootstrap"),
        Estimate("roc_auc", 0.9 / scale, n=100, n_positive=40, best="high"),
        Estimate("min_dcf(c_fa=1)", 0.3 * scale, n=100, n_positive=40),
        Estimate("eer", 0.05 * scale, slice={"codec": "C01"}, n=50, n_positive=20),
        Estimate("eer", 0.2 * scale, slice={"codec": "C05"}, n=30, n_positive=20),
        Estimate("eer", None, slice={"codec": "C07"}, n=20, note="undefined: only spoof here"),
        Estimate("eer", 0.04 * scale, slice={"codec": "C01", "q": "1"}, n=5, n_positive=2),
        Estimate("eer", 0.125 * scale, slice={"codec": "*"}, average="macro", n=100, n_positive=40),
        Estimate("eer", 0.2 * scale, slice={"codec": "C05"}, average="worst", n=30, n_positive=20),
    )
    return Results(rows, **{"signature": SIGNATURE, **changes})  # type: ignore[arg-type]


def verdicts(rule: str) -> list[tuple[str, bool]]:
    return [(c.figure, c.passed) for c in check_rule(parse_rule(rule), results())]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("eer > 0.05", [("eer", False)]),
        ("eer > 0.1", [("eer", True)]),
        ("roc_auc < 0.9", [("roc_auc", True)]),
        ("eer > 10%", [("eer", True)]),
        ("eer > 9.99pp", [("eer", False)]),
        ("pooled eer>.2", [("eer", True)]),
        ("roc_auc < 0.95", [("roc_auc", False)]),
        ("eer.high > 0.11", [("eer", False)]),
        ("eer.low > 0.09", [("eer", True)]),
        ("eer.value > 0.09", [("eer", False)]),
        ("eer[codec=C05] > 0.1", [("eer [codec=C05]", False)]),
        ("eer[ codec = C01 , q = 1 ] > 0.1", [("eer [codec=C01, q=1]", True)]),
        ("eer[codec=*] > 0.1", [("eer [codec=C01]", True), ("eer [codec=C05]", False), ("eer [codec=C07]", False)]),
        ("worst eer > 0.15", [("worst eer [codec=C05]", False)]),
        ("worst eer[codec=*] > 0.2", [("worst eer [codec=C05]", True)]),
        ("macro eer > 0.12", [("macro eer [codec=*]", False)]),
        ("min_dcf(c_fa=1) > 3e-1", [("min_dcf(c_fa=1)", True)]),
        ("min_dcf( c_fa = 1 ) > 0.2", [("min_dcf(c_fa=1)", False)]),
    ],
)
def test_rules(rule: str, expected: list[tuple[str, bool]]) -> None:
    assert verdicts(rule) == expected


@given(st.floats(0.0, 1.0), st.sampled_from([">", "<"]))
def test_equal_passes(limit: float, sign: str) -> None:
    rule = parse_rule(f"eer {sign} {limit!r}")
    assert not rule.is_broken(limit)
    beyond = limit + 1e-6 if sign == ">" else limit - 1e-6
    assert rule.is_broken(beyond) and not rule.is_broken(2 * limit - beyond)


def test_equal_passes_whatever_rounding_did() -> None:
    assert not parse_rule("eer > 0.3").is_broken(0.1 + 0.2)


def test_where_defined_leaves_out_slices_of_one_class() -> None:
    assert verdicts("eer[codec=*] > 0.3") == [
        ("eer [codec=C01]", True),
        ("eer [codec=C05]", True),
        ("eer [codec=C07]", False),
    ]
    assert verdicts("eer[codec=*] > 0.3 where defined") == [("eer [codec=C01]", True), ("eer [codec=C05]", True)]
    assert verdicts("eer[codec=*] > 0.1 where defined") == [("eer [codec=C01]", True), ("eer [codec=C05]", False)]
    assert verdicts("eer[codec=C07] > 0.1 where defined") == [("eer [codec=C07]", False)], "nothing is left to check"
    assert parse_rule("eer[codec=*]>30% where defined").fails_if == "eer[codec=*] > 0.3 where defined"


def test_undefined_figures_fail_with_the_reason() -> None:
    (check,) = check_rule(parse_rule("eer[codec=C07] > 0.9"), results())
    assert not check.passed and check.value is None and check.reason == "undefined: only spoof here"
    (check,) = check_rule(parse_rule("roc_auc.low < 0.1"), results())
    assert not check.passed and "no interval; score with --bootstrap" in check.reason


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("eeer > 0.1", "unknown metric in a rule 'eeer'; did you mean 'eer'"),
        ("min_dcf > 0.1", "unknown metric in a rule 'min_dcf'"),
        ("wurst eer > 0.1", "unknown average of eer in a rule 'wurst'; did you mean 'worst'"),
        ("macro roc_auc > 0.1", "unknown average of roc_auc in a rule 'macro'"),
        ("eer[codecs=C05] > 0.1", "unknown column in the rule on eer.*'codecs'; did you mean 'codec'"),
        ("eer[codec=C5] > 0.1", "unknown codec in the rule on eer.*'C5'; did you mean 'C05'"),
    ],
)
def test_unknown_names_are_errors_with_the_nearest(rule: str, words: str) -> None:
    with pytest.raises(UnknownName, match=words) as caught:
        check_rule(parse_rule(rule), results())
    assert caught.value.exit_code == 2


def test_a_table_that_is_not_there_is_an_error() -> None:
    with pytest.raises(
        UsageError, match=r"no number for eer\[q=1\]; the results have eer by all trials, codec, codec × q"
    ):
        select(parse_rule("eer[q=1] > 0.1").target, results())


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("eer", "cannot read the rule"),
        ("eer > ", "cannot read the rule"),
        ("eer > five", "cannot read the rule"),
        ("eer > 0.1 or f1 < 0.2", "cannot read the rule"),
        ("__import__('os').system('x') > 1", "cannot read the rule"),
        ("eer >= 0.1", "write > or <; a number that equals its limit passes"),
        ("eer == 0.1", "write > or <"),
        ("eer.hight > 0.1", "unknown part of a number.*'hight'; did you mean 'high'"),
        ("eer[codec] > 0.1", "a slice is written"),
        ("eer[] > 0.1", "a slice is written"),
    ],
)
def test_the_grammar_is_strict(rule: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_rule(rule)


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(lambda name: not iskeyword(name))
values = st.from_regex(r"[A-Za-z0-9_.\\-]{1,6}", fullmatch=True)
targets = st.builds(
    Target,
    names.map(MetricSpec.of),
    st.sampled_from([None, "worst", "macro", "gap", "mean of codec"]),
    st.lists(st.tuples(names, values | st.just("*")), max_size=2).map(tuple),
)
limits = st.floats(-10, 10).map(lambda x: float(f"{x:g}"))  # as a rule writes itself: six digits


@given(targets, st.sampled_from("<>"), limits, st.sampled_from(["value", "low", "high"]))
def test_a_rule_reads_back_as_it_writes_itself(target: Target, sign: str, limit: float, end: str) -> None:
    rule = Requirement(target, OPPOSITE[sign], limit, end)
    text = rule.fails_if
    assert parse_rule(text) == rule == parse_requirement(str(rule))
    assert parse_rule(f"  {text.replace(',', ' , ').replace(sign, f'  {sign}  ')} ") == rule


@given(targets, limits.map(abs))
def test_a_regression_reads_back(target: Target, allowed: float) -> None:
    assert (
        parse_regression(f"{target}={allowed:g}")
        == parse_regression(f" {target} = {allowed:g} ")
        == Regression(target, allowed)
    )


TOKENS = [
    "eer",
    "worst ",
    "[codec=C01]",
    "[codec=*]",
    "[]",
    ".high",
    ".x",
    " > ",
    "<",
    ">=",
    "=",
    "0.1",
    "1e-3",
    "%",
    "pp",
    "(",
    ")",
    " ",
]


@given(st.text(max_size=30) | st.lists(st.sampled_from(TOKENS), max_size=6).map("".join))
def test_any_text_is_a_whole_rule_or_a_usage_error_that_quotes_it(text: str) -> None:
    for read, sign in ((parse_rule, "[<>]"), (parse_regression, "=")):
        try:
            found = read(text)
        except UsageError as error:
            assert "\n" not in str(error) and (
                repr(text) in str(error) or isinstance(error, UnknownName) or "metric" in str(error)
            )
            continue
        assert re.search(sign, text) and found.target.metric.name in text  # nothing is read that does not stand there
        assert all(name in text and value in text for name, value in found.target.cells)
        limit = found.limit if isinstance(found, Requirement) else found.allowed
        assert math.isfinite(limit) and re.search(r"\d", text)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("eer=0.01", [("eer", True)]),
        ("eer=0.0099", [("eer", False)]),
        ("eer = 1pp", [("eer", True)]),
        ("roc_auc=0.05", [("roc_auc", False)]),
        ("roc_auc=0.09", [("roc_auc", True)]),
        ("worst eer=0.01", [("worst eer [codec=C05]", False)]),
        ("eer[codec=*]=0.01", [("eer [codec=C01]", True), ("eer [codec=C05]", False), ("eer [codec=C07]", False)]),
    ],
)
def test_regressions(rule: str, expected: list[tuple[str, bool]]) -> None:
    checks = check_regression(parse_regression(rule), results(1.1), results())
    assert [(c.figure, c.passed) for c in checks] == expected


def test_better_is_never_a_regression() -> None:
    for rule in ("eer=0", "roc_auc=0", "worst eer=0"):
        assert all(c.passed for c in check_regression(parse_regression(rule), results(0.9), results()))
        assert all(c.passed for c in check_regression(parse_regression(rule), results(), results()))


@pytest.mark.parametrize("rule", ["eer", "eer=", "eer=-0.1", "eer=5%", "eer > 0.1"])
def test_regressions_are_strict(rule: str) -> None:
    with pytest.raises(UsageError):
        parse_regression(rule)


def test_other_settings_are_no_baseline() -> None:
    one, other = (Results((Estimate("eer", 0.1, settings={"ties": t}),), SIGNATURE) for t in ("official", "grouped"))
    with pytest.raises(DataError, match="measured with other settings"):
        check_regression(parse_regression("eer=0.1"), one, other)


def test_runs_are_matched_with_the_same_run_of_the_baseline() -> None:
    rows = tuple(Estimate("eer", v, run={"system": s}, n=5) for s, v in (("a", 0.1), ("b", 0.3)))
    run, main = Results(rows, SIGNATURE), Results((rows[1], rows[0]), SIGNATURE)
    assert [c.passed for c in check_regression(parse_regression("eer=0"), run, main)] == [True, True]
    assert [c.passed for c in check_rule(parse_rule("eer > 0.2"), run)] == [True, False]
    assert [c.figure for c in check_rule(parse_rule("eer[system=a] > 0.2"), run)] == ["eer [system=a]"]
    third = Results((Estimate("eer", 0.1, run={"system": "c"}),), SIGNATURE)
    with pytest.raises(UsageError, match="the baseline has 0 numbers for eer"):
        check_regression(parse_regression("eer=0"), third, main)


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        (SIGNATURE.replace("asvspoof5", "toxicity"), "different protocols: asvspoof5 and toxicity"),
        (SIGNATURE.replace("bonafide", "spoof"), "different positive classes: bonafide and spoof"),
        (SIGNATURE.replace("raw", "llr"), "different score kinds: raw and llr"),
        ("", "carries no signature"),
    ],
)
def test_what_is_no_baseline(signature: str, words: str) -> None:
    assert words in "; ".join(incomparable(results(), results(signature=signature), []))


def test_sample_sizes_must_be_the_same() -> None:
    small = Results((Estimate("eer", 0.1, n=90, n_positive=40),), SIGNATURE)
    (found,) = incomparable(results(), small, [parse_regression("eer=0.1")])
    assert found == "different sample sizes for eer: 100 and 90 trials"
    assert incomparable(results(), results(2.0), [parse_regression("eer=0.1"), parse_regression("worst eer=0.1")]) == []


def with_ends(value: float, low: float | None, high: float | None, best: str = "low") -> Results:
    return Results((Estimate("m", value, low, high, n=100, n_positive=40, best=best),), SIGNATURE)


@pytest.mark.parametrize(
    ("now", "before", "best", "expected"),
    [
        ((0.11, 0.10, 0.12), (0.10, 0.09, 0.11), "low", (True, False, True)),  # worse by 0.01, -0.004 to 0.024
        ((0.20, 0.19, 0.21), (0.10, 0.09, 0.11), "low", (False, False, False)),  # worse by 0.1, 0.086 to 0.114
        ((0.12, 0.10, 0.14), (0.10, 0.08, 0.12), "low", (False, False, True)),  # worse by 0.02, -0.008 to 0.048
        ((0.05, 0.04, 0.06), (0.10, 0.09, 0.11), "low", (True, True, True)),  # better
        ((0.89, 0.88, 0.90), (0.90, 0.89, 0.91), "high", (True, False, True)),
        ((0.80, 0.79, 0.81), (0.90, 0.89, 0.91), "high", (False, False, False)),
        ((0.11, None, None), (0.10, 0.09, 0.11), "low", (True, False, False)),  # what cannot be decided does not pass
    ],
)
def test_a_regression_is_decided_by_point_by_bound_or_where_it_is_shown(
    now: tuple[float, float, float], before: tuple[float, float, float], best: str, expected: tuple[bool, ...]
) -> None:
    rule = parse_regression("m=0.015")
    sides = [with_ends(*side, best=best) for side in (now, before)]
    found = [check_regression(rule, sides[0], sides[1], Evidence(decide))[0] for decide in ("point", "bound", "shown")]
    assert tuple(c.passed for c in found) == expected
    if now[1] is None:
        assert "no interval" not in found[0].reason and all("no interval" in c.reason for c in found[1:])
    elif expected == (True, False, True):
        assert "more than 0.015 is not ruled out" in found[0].reason and "ruled out" not in found[1].reason
    half = math.hypot(0.01, 0.01)
    if now == (0.11, 0.10, 0.12):
        assert f"{0.01 - half:.6g} to {0.01 + half:.6g} (from both intervals)" in found[0].reason


def test_an_unknown_way_to_decide_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean 'bound'"):
        check_regression(parse_regression("eer=0.1"), results(), results(), Evidence("bounds"))
