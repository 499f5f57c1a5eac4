"""Krippendorff's alpha: against its definition in exact arithmetic, against another package, and its laws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.core.errors import UsageError
from hitmiss.verdicts.agreement import agreement, answer_counts, krippendorff_alpha

ANSWERS = st.lists(
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["real", "fake", "uncertain"]), max_size=4),
    min_size=1,
    max_size=12,
)


def exact_alpha(items: list[dict[str, str]]) -> Fraction | None:
    """Alpha by its definition: the matrix of coincidences, pair by pair, in fractions."""
    together: dict[tuple[str, str], Fraction] = {}
    for item in items:
        answers = list(item.values())
        for one, other in itertools.permutations(range(len(answers)), 2):
            pair = (answers[one], answers[other])
            together[pair] = together.get(pair, Fraction(0)) + Fraction(1, len(answers) - 1)
    totals: dict[str, Fraction] = {}
    for (one, _), weight in together.items():
        totals[one] = totals.get(one, Fraction(0)) + weight
    n = sum(totals.values(), Fraction(0))
    expected = sum((totals[a] * totals[b] for a, b in itertools.permutations(totals, 2)), Fraction(0))
    if not expected:
        return None
    observed = sum((w for (a, b), w in together.items() if a != b), Fraction(0))
    return 1 - (n - 1) * observed / expected


@given(ANSWERS)
def test_alpha_is_its_definition(items: list[dict[str, str]]) -> None:
    exact, found = exact_alpha(items), krippendorff_alpha(answer_counts(items))
    assert math.isnan(found) if exact is None else found == pytest.approx(float(exact), abs=1e-12)


def test_every_tiny_case_of_two_people() -> None:
    for said in itertools.product(itertools.product("ab", repeat=2), repeat=3):
        items = [dict(zip("xy", pair, strict=True)) for pair in said]
        exact = exact_alpha(items)
        found = agreement(answer_counts(items), bootstrap=0).alpha
        assert found is None if exact is None else found == pytest.approx(float(exact), abs=1e-12)


@given(ANSWERS, st.randoms())
def test_alpha_does_not_depend_on_order_or_names(items: list[dict[str, str]], random: object) -> None:
    swap = {"real": "fake", "fake": "uncertain", "uncertain": "real"}
    mixed = [{who: swap[said] for who, said in item.items()} for item in items]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    before, after = krippendorff_alpha(answer_counts(items)), krippendorff_alpha(answer_counts(mixed))
    assert (math.isnan(before) and math.isnan(after)) or before == pytest.approx(after, abs=1e-12)


def test_undefined_says_why() -> None:
    assert agreement(answer_counts([{"a": "real"}, {"b": "fake"}])).note == "no item has two answers"
    same = agreement(answer_counts([{"a": "real", "b": "real"}] * 5))
    assert same.alpha is None and same.agreeing == 1.0 and "the same" in same.note
    assert agreement(np.zeros((0, 0))).alpha is None
    one = agreement(answer_counts([{"a": "real", "b": "fake"}]))
    assert one.alpha == 0.0 and one.low is None and one.note
    with pytest.raises(UsageError, match="whole numbers"):
        krippendorff_alpha(np.array([[0.5, 1.0]]))


def test_a_rare_answer_has_no_interval() -> None:
    """Drawn items often hold one answer alone; the others would tell a story that is too good."""
    rare = agreement(answer_counts([{"a": "real", "b": "real"}] * 30 + [{"a": "real", "b": "fake"}]))
    assert rare.alpha is not None and rare.low is None and "one answer alone" in rare.note


@pytest.mark.parametrize("n", [10, 40, 200])
def test_people_who_never_disagreed_may_yet_do_so(n: int) -> None:
    """If people disagreed on a larger share of items than the bound says, n items without any would be too rare."""
    items = [{"a": said, "b": said} for said in ("r", "f") * (n // 2)]
    found = agreement(answer_counts(items))
    assert found.alpha == found.high == 1.0 and found.low is not None
    share = (
        (1.0 - found.low) * n / (2 * n - 1)
    )  # expected disagreement of two answers drawn from 2 n, half of each kind
    assert 0.01 < (1.0 - share) ** n <= 0.05


def test_whole_units_of_items_are_drawn() -> None:
    """Items that repeat each other inside a unit say no more than one of them: the interval is that of one per unit."""
    rng = np.random.default_rng(3)
    items = [{p: str(rng.choice(["r", "f"], p=[0.3, 0.7])) for p in "xyz"} for _ in range(40)]
    alone = agreement(answer_counts(items), bootstrap=2000, seed=5)
    copies = [item for item in items for _ in range(4)]
    unit = [str(i // 4) for i in range(160)]
    drawn = agreement(answer_counts(copies), bootstrap=2000, seed=5, units={"speaker": unit})
    narrow = agreement(answer_counts(copies), bootstrap=2000, seed=5)
    width = [a.high - a.low for a in (alone, drawn, narrow)]  # type: ignore[operator]
    assert width[1] == pytest.approx(width[0], rel=0.1) and width[2] < 0.6 * width[0]


@pytest.mark.nightly
def test_the_interval_holds_the_truth() -> None:
    """Answers that agree with a known probability: the interval of 95 % covers alpha of the whole world about as often."""
    rng = np.random.default_rng(11)

    def world(n: int) -> list[dict[str, str]]:
        truth = rng.random(n) < 0.5
        right = rng.random((n, 2)) < 0.85
        return [{str(p): "f" if t == bool(ok[p]) else "r" for p in (0, 1)} for t, ok in zip(truth, right, strict=True)]

    whole = krippendorff_alpha(answer_counts(world(100_000)))
    held = 0
    for seed in range(200):
        found = agreement(answer_counts(world(120)), bootstrap=300, seed=seed)
        held += found.low <= whole <= found.high  # type: ignore[operator]
    assert 180 <= held <= 199


@pytest.mark.extras
@given(ANSWERS)
def test_alpha_is_that_of_the_package(items: list[dict[str, str]]) -> None:
    package = pytest.importorskip("krippendorff")
    codes = {"real": 0.0, "fake": 1.0, "uncertain": 2.0}
    table = [[codes[item[p]] if p in item else np.nan for item in items] for p in "abcd"]
    ours = krippendorff_alpha(answer_counts(items))
    if math.isnan(ours):
        return  # the package raises, or calls perfect agreement on one answer 1
    assert ours == pytest.approx(package.alpha(reliability_data=table, level_of_measurement="nominal"), abs=1e-12)


def test_krippendorffs_own_example() -> None:
    """Four observers, twelve units, missing values: computed by hand in Krippendorff 2011, section C (alpha 0.743)."""
    rows = ("1 2 3 3 2 1 4 1 2 * * *", "1 2 3 3 2 2 4 1 2 5 * 3", "* 3 3 3 2 3 4 2 2 5 1 *", "1 2 3 3 2 4 4 1 2 5 1 *")
    units = zip(*(row.split() for row in rows), strict=True)
    items = [{str(who): said for who, said in enumerate(unit) if said != "*"} for unit in units]
    assert krippendorff_alpha(answer_counts(items)) == pytest.approx(0.743, abs=5e-4)
