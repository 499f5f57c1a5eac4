"""Track 2 metrics against the official package's figures, against exact fractions, and against their laws."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.metrics.tandem import AsvRates, TandemCosts, asv_rates, min_a_dcf, min_t_dcf, t_eer

REFERENCE = Path(__file__).resolve().parents[1] / "official_reference"
KINDS = ("target", "nontarget", "spoof")
needs_reference = pytest.mark.skipif(not REFERENCE.is_dir(), reason="the official reference figures are not here")


# --- the official package ---------------------------------------------------------------------------------------


def official() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REFERENCE / "expected.json").read_text())
    block: dict[str, Any] = found["sets"]["20_sasv_900"]["official_asvspoof5"]
    return block


def column(name: str, label: str, value: str) -> np.ndarray:
    with (REFERENCE / "20_sasv_900.csv").open() as file:
        return np.array([float(row[name]) for row in csv.DictReader(file) if row[label] == value])


def by_class(name: str) -> tuple[np.ndarray, ...]:
    return tuple(column(name, "asv_label", kind) for kind in KINDS)


@needs_reference
def test_min_a_dcf_equals_the_official_package() -> None:
    assert min_a_dcf(*by_class("sasv_score")) == pytest.approx(official()["min_a_dcf"], abs=1e-12)


@needs_reference
def test_min_t_dcf_equals_the_official_package() -> None:
    cm = column("cm_score", "cm_label", "bonafide"), column("cm_score", "cm_label", "spoof")
    assert min_t_dcf(*cm) == pytest.approx(official()["min_t_dcf_with_organiser_asv_rates"], abs=1e-12)


@needs_reference
def test_own_asv_rates_and_the_package_reading_of_them() -> None:
    expected = official()["own_asv"]
    rates = asv_rates(*by_class("asv_score"))
    found = (rates.p_miss, rates.p_fa, rates.p_fa_spoof)
    assert found == pytest.approx((expected["P_miss"], expected["P_fa_nontarget"], expected["P_fa_spoof"]), abs=1e-12)
    cm = column("cm_score", "cm_label", "bonafide"), column("cm_score", "cm_label", "spoof")
    assert min_t_dcf(*cm, asv=rates) == pytest.approx(expected["min_t_dcf_with_P_fa_spoof"], abs=1e-12)
    mistaken = replace(rates, p_fa_spoof=1 - rates.p_fa_spoof)
    assert min_t_dcf(*cm, asv=mistaken) == pytest.approx(expected["min_t_dcf_as_the_package_computes_it"], abs=1e-12)


@needs_reference
@pytest.mark.parametrize("ties", ["official", "grouped"])
def test_t_eer_equals_the_official_package(ties: Any) -> None:
    found = t_eer(by_class("cm_score"), by_class("asv_score"), ties=ties)
    assert found == pytest.approx(official()["t_eer_percent"] / 100, abs=1e-12)


@needs_reference
def test_the_default_costs_are_the_official_ones() -> None:
    costs, expected = TandemCosts(), official()["cost_model"]
    priors = (costs.p_target, costs.p_nontarget, costs.p_spoof)
    assert priors == pytest.approx([expected[k] for k in ("P_target", "P_nontarget", "P_spoof")])
    charges = (costs.c_miss, costs.c_fa, costs.c_fa_spoof)
    assert charges == tuple(expected[k] for k in ("C_miss", "C_fa_nontarget", "C_fa_spoof"))


# --- exact fractions, every threshold tried ---------------------------------------------------------------------

few = st.lists(st.integers(0, 5), min_size=1, max_size=5)
COSTS = TandemCosts(p_target=0.5, p_nontarget=0.25, p_spoof=0.25, c_miss=1, c_fa=2, c_fa_spoof=8)


def below(scores: list[int], t: float) -> Fraction:
    return Fraction(sum(s < t for s in scores), len(scores))


def cuts(*classes: list[int]) -> list[float]:
    return [s - 0.5 for s in sorted({s for c in classes for s in c})] + [math.inf]


@given(few, few, few)
def test_min_a_dcf_tries_every_threshold(target: list[int], nontarget: list[int], spoof: list[int]) -> None:
    costs = [
        Fraction(1, 2) * below(target, t) + Fraction(1, 2) * (1 - below(nontarget, t)) + 2 * (1 - below(spoof, t))
        for t in cuts(target, nontarget, spoof)
    ]
    assert min_a_dcf(target, nontarget, spoof, costs=COSTS) == pytest.approx(float(min(costs) / Fraction(1, 2)))


@given(st.lists(st.integers(0, 5), min_size=3, max_size=5, unique=True), few)
def test_min_t_dcf_tries_every_threshold(bonafide: list[int], spoof: list[int]) -> None:
    fixed = Fraction(1, 2) * Fraction(1, 8) + Fraction(1, 2) * Fraction(1, 4)
    per_miss, per_spoof = Fraction(1, 2) - fixed, 2 * Fraction(3, 4)
    costs = [fixed + per_miss * below(bonafide, t) + per_spoof * (1 - below(spoof, t)) for t in cuts(bonafide, spoof)]
    found = min_t_dcf(bonafide, spoof, asv=AsvRates(p_miss=0.125, p_fa=0.25, p_fa_spoof=0.75), costs=COSTS)
    assert found == pytest.approx(float(min(costs) / (fixed + min(per_miss, per_spoof))))


Pairs = list[tuple[int, int]]
trial_pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4)


def exact_t_eer(target: Pairs, nontarget: Pairs, spoof: Pairs) -> Fraction | None:
    """The t-EER where exact arithmetic leaves one answer, else None."""
    cm, asv = [[[p[k] for p in c] for c in (target, nontarget, spoof)] for k in (0, 1)]
    best: list[tuple[Fraction, Fraction]] = []
    for t in cuts(*asv):
        asv_miss, asv_fa, asv_fa_spoof = below(asv[0], t), 1 - below(asv[1], t), 1 - below(asv[2], t)
        if asv_fa_spoof == 0 or asv_miss >= (asv_fa + asv_fa_spoof) / 2:
            continue
        rates = [(below(cm[0] + cm[1], u), 1 - below(cm[2], u)) for u in cuts(*cm)]
        off = [abs(m + (1 - m) * asv_miss - ((1 - m) * asv_fa + f * asv_fa_spoof) / 2) for m, f in rates]
        if off.count(min(off)) > 1:
            return None
        miss, fa = rates[off.index(min(off))]
        if miss < 1:
            best.append((abs(asv_fa / asv_fa_spoof - fa / (1 - miss)), asv_fa_spoof * fa))
    values = {v for d, v in best if d == min(best)[0]}
    return values.pop() if len(values) == 1 else None


@settings(max_examples=300)
@given(trial_pairs, trial_pairs, trial_pairs)
def test_t_eer_tries_every_pair_of_thresholds(target: Pairs, nontarget: Pairs, spoof: Pairs) -> None:
    classes = (target, nontarget, spoof)
    cm, asv = [tuple([p[k] for p in c] for c in classes) for k in (0, 1)]
    expected = exact_t_eer(*classes)
    assume(expected is not None)
    assert t_eer(cm, asv) == pytest.approx(float(expected or 0), abs=1e-12)


# --- the official coarse-to-fine search on a set large enough to need it ------------------------------------------


def curve(first: np.ndarray, *others: np.ndarray) -> list[np.ndarray]:
    kind = np.concatenate([np.full(len(c), k) for k, c in enumerate((first, *others))])
    kind = kind[np.argsort(np.concatenate((first, *others)), kind="stable")]
    rejected = [np.concatenate([[0], np.cumsum(kind == k)]) / np.sum(kind == k) for k in range(1 + len(others))]
    return [rejected[0], *(1 - r for r in rejected[1:])]


def search(cm: list[np.ndarray], asv: list[np.ndarray]) -> tuple[float, int, int]:
    best = (math.inf, math.nan, 0, 0)
    for j, (a_miss, a_fa, a_spoof) in enumerate(zip(*asv, strict=True)):
        if a_miss < (a_fa + a_spoof) / 2 and a_spoof > 0:
            off = np.abs(cm[0] + (1 - cm[0]) * a_miss - ((1 - cm[0]) * a_fa + cm[1] * a_spoof) / 2)
            k = int(np.argmin(off))
            distance = abs(a_fa / a_spoof - cm[1][k] / (1 - cm[0][k]))
            best = min(best, (distance, a_spoof * cm[1][k], j, k), key=lambda b: b[0])
    return best[1], best[2], best[3]


def test_the_exhaustive_search_finds_what_the_coarse_to_fine_search_finds() -> None:
    rng = np.random.default_rng(20)
    sizes = (3000, 2000, 4500)
    cm = [rng.normal(m, 1, n) for m, n in zip((1.5, 1.5, 0), sizes, strict=True)]
    asv = [rng.normal(m, 1, n) for m, n in zip((2, -1, 1), sizes, strict=True)]
    cm_curve, asv_curve = curve(np.concatenate(cm[:2]), cm[2]), curve(*asv)
    k = len(cm_curve[0]) // 3000
    assert k == 3
    _, at_asv, at_cm = search([c[::k] for c in cm_curve], [c[::k] for c in asv_curve])
    near_cm, near_asv = (slice(max(0, at * k - 1600), at * k + 1600) for at in (at_cm, at_asv))
    fine, _, _ = search([c[near_cm] for c in cm_curve], [c[near_asv] for c in asv_curve])
    assert t_eer(cm, asv, ties="official") == pytest.approx(fine, abs=1e-12)


# --- laws -------------------------------------------------------------------------------------------------------

weighted_pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=6)
Weighted = list[tuple[int, int, int]]


def spread(trials: Weighted, k: int) -> list[int]:
    return [t[k] for t in trials for _ in range(t[2])]


@given(weighted_pairs, weighted_pairs, weighted_pairs)
def test_a_whole_weight_is_a_repetition(target: Weighted, nontarget: Weighted, spoof: Weighted) -> None:
    classes = (target, nontarget, spoof)
    first, second, weight = ([[t[k] for t in c] for c in classes] for k in (0, 1, 2))
    once, again = ([spread(c, k) for c in classes] for k in (0, 1))
    assert min_a_dcf(*first, weight=weight) == pytest.approx(min_a_dcf(*once), nan_ok=True)
    for ties in ("grouped", "official"):
        found = t_eer(first, second, weight=weight, ties=ties)
        assert found == pytest.approx(t_eer(once, again, ties=ties), nan_ok=True)
    if len({*once[0], *once[2]}) >= 3:
        found = min_t_dcf(first[0], first[2], weight=[weight[0], weight[2]])
        assert found == pytest.approx(min_t_dcf(once[0], once[2]), nan_ok=True)


@given(few, few, few)
def test_only_the_order_of_scores_counts(target: list[int], nontarget: list[int], spoof: list[int]) -> None:
    grown = [np.exp(np.array(c, dtype=float)) for c in (target, nontarget, spoof)]
    assert min_a_dcf(*grown) == min_a_dcf(target, nontarget, spoof)


def test_a_useless_score_costs_as_much_as_the_better_trivial_system() -> None:
    assert min_a_dcf([1], [1], [1]) == pytest.approx(1.0)
    assert min_t_dcf([1, 2, 3], [1, 2, 3], costs=replace(COSTS, c_fa_spoof=0.001)) == pytest.approx(1.0)


def test_infinite_scores_keep_their_place() -> None:
    assert min_a_dcf([math.inf, 2.0], [-math.inf], [0.0]) == 0.0


# --- what is undefined or refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_an_absent_class_gives_nan(absent: int) -> None:
    classes: list[list[float]] = [[3.0, 4.0], [1.0, 2.0], [0.0, 5.0]]
    classes[absent] = []
    assert math.isnan(min_a_dcf(*classes))
    assert math.isnan(t_eer(classes, classes))


def test_an_absent_class_gives_nan_for_t_dcf() -> None:
    assert math.isnan(min_t_dcf([1, 2, 3], []))
    assert math.isnan(min_t_dcf([], [1, 2, 3]))
    assert math.isnan(min_t_dcf([1, 2, 3], [4], weight=[[1, 1, 1], [0]]))


def test_decisions_are_not_scores() -> None:
    with pytest.raises(DataError, match="fewer than 3 distinct"):
        min_t_dcf([1, 1, 0], [0, 0, 1])


def test_an_asv_worse_than_none_is_refused() -> None:
    with pytest.raises(DataError, match="check the ASV rates"):
        min_t_dcf([1, 2, 3], [0], asv=AsvRates(p_miss=1.0, p_fa=1.0, p_fa_spoof=1.0))


def test_nan_and_misfitting_input_is_refused() -> None:
    with pytest.raises(DataError, match="1 of 2 scores are NaN"):
        min_a_dcf([1, math.nan], [0], [0])
    with pytest.raises(DataError, match="same trials"):
        t_eer(([1], [2], [3]), ([1, 2], [2], [3]))
    with pytest.raises(UsageError, match="target, nontarget, spoof"):
        t_eer(([1], [2]), ([1], [2]))
    with pytest.raises(UsageError, match="one array for each class"):
        min_a_dcf([1], [2], [3], weight=[[1], [1]])
    with pytest.raises(UsageError, match="whole numbers"):
        t_eer(([1], [2], [3]), ([1], [2], [3]), weight=[[0.5], [1], [1]], ties="official")
    with pytest.raises(UnknownName, match="grouped"):
        t_eer(([1], [2], [3]), ([1], [2], [3]), ties="groups")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="need target, nontarget and spoof"):
        asv_rates([1], [2], [])


def test_costs_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="sum to 1"):
        TandemCosts(p_target=0.5)
    with pytest.raises(UsageError, match="costs nothing"):
        TandemCosts(c_miss=0)
    with pytest.raises(UsageError, match="fractions between 0 and 1"):
        AsvRates(p_miss=1.9)
