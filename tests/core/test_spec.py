"""A metric as text: it prints and parses as the same thing, and nothing else is read."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.core.errors import UsageError
from hitmiss.core.metric_spec import MetricSpec, parse
from hitmiss.core.registry import resolve

names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(lambda n: n not in RESERVED)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.sampled_from(["None", "True", "inf", "-inf", "nan", "lambda", "official", "a b", "'", '"', "\\", "é", "1e5"]),
)
RESERVED = {"as", "in", "is", "if", "or", "and", "not", "for", "def", "del", "try", "pass", "else", "elif", "from"}
RESERVED |= {"with", "None", "True", "class", "raise", "False", "yield", "while", "break", "async", "await"}
RESERVED |= {"lambda", "return", "import", "global", "except", "assert", "finally", "continue", "nonlocal"}


@given(names, st.dictionaries(names, values, max_size=4))
def test_text_and_back(name: str, settings: dict[str, object]) -> None:
    spec = MetricSpec.of(name, **settings)  # type: ignore[arg-type]
    again = parse(str(spec))
    assert again == spec
    assert hash(again) == hash(spec)
    assert [type(v) is bool for _, v in again.settings] == [type(v) is bool for _, v in spec.settings]
    assert str(again) == str(spec)


def test_the_order_of_settings_does_not_matter() -> None:
    one, other = parse("min_dcf(p_target=0.95, c_fa=10)"), parse(" min_dcf( c_fa = 10 ,p_target=.95)")
    assert one == other
    assert str(one) == "min_dcf(c_fa=10, p_target=0.95)"


def test_whole_numbers_print_short() -> None:
    assert str(MetricSpec.of("min_dcf", c_fa=10.0)) == "min_dcf(c_fa=10)"
    assert MetricSpec.of("min_dcf", c_fa=10.0) == parse("min_dcf(c_fa=10)")


def test_words_need_no_quotes_and_infinities_are_numbers() -> None:
    assert parse("eer(ties=official)") == parse("eer(ties='official')")
    assert dict(parse("dcf_at(threshold=-inf)").settings) == {"threshold": -math.inf}
    assert dict(parse("dcf_at(threshold=inf)").settings) == {"threshold": math.inf}
    assert math.isnan(dict(parse("dcf_at(threshold=nan)").settings)["threshold"])  # type: ignore[arg-type]


def test_a_spec_parses_to_itself() -> None:
    spec = MetricSpec("eer")
    assert parse(spec) is spec
    assert parse("eer()") == spec


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "eer(",
        "eer)",
        "1",
        "eer(1)",
        "eer(ties)",
        "eer(**x)",
        "eer(*x)",
        "a.b",
        "a.b(c=1)",
        "eer; roc_auc",
        "eer(ties=[1])",
        "eer(ties={[]: 1})",
        "eer(ties=1j)",
        "eer(ties=b'x')",
        "eer(ties=f(1))",
        "eer(ties=f'{1}')",
        "eer(a=1, a=2)",
        "eer(ties=__import__('os'))",
        "lambda: 0",
        "\0",
        "eer(a=" + "-" * 5000 + "1)",
        "(" * 5000,
        "min dcf",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert len(str(caught.value)) < 11_000


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        spec = parse(text)
    except UsageError:
        return
    assert parse(str(spec)) == spec or "nan" in str(spec)


@pytest.mark.parametrize("name", ["name", "cls", "self", "settings"])
def test_a_setting_may_have_any_name(name: str) -> None:
    assert parse(f"eer({name}=3)").settings == ((name, 3),)
    with pytest.raises(UsageError, match=name):
        resolve(f"eer({name}=3)")
