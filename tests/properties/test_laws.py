"""The laws of every registered metric, and the contract checks that authors get: they pass the sound and catch the broken."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitmiss import metrics as m
from hitmiss.core.errors import HitmissError, UnknownName, UsageError
from hitmiss.core.metric_spec import parse
from hitmiss.core.registry import all_metrics, forget, metric, resolve
from hitmiss.core.tally import Tally, merge
from hitmiss.metrics.counts import Counts
from hitmiss.stats.forms.trials import OfCounts
from hitmiss.testing import BITS, LAWS, SIZES, ContractBroken, check_metric

WALKS = {"duplicate": "the official walk stops between equal scores, so twice as many trials are twice as fine"}

STEPS = {"duplicate": "the mean is over numbers of accepted trials, so twice as many trials are twice as fine"}
BETWEEN = {"duplicate": "the place share · (n − 1) moves with n"}

METRICS: dict[str, dict[str, Any]] = {
    "abstain_rate": {"mirror": "abstain_rate"},
    "accuracy": {"mirror": "accuracy"},
    "accuracy_answered": {"mirror": "accuracy_answered"},
    "accuracy_at_coverage(coverage=0.4)": {"mirror": "accuracy_at_coverage(coverage=0.4)"},
    "accuracy_at_eer": {"rank": True},
    "accuracy_at_eer(ties=official)": {"rank": True, "waive": WALKS},
    "act_c_primary": {},
    "act_c_primary(points='0.3:1:1+0.9:2:1')": {"mirror": "act_c_primary(points='0.7:1:1+0.1:1:2')"},
    "act_dcf": {"mirror": "act_dcf(p_target=0.05, c_miss=10, c_fa=1)"},
    "act_dcf(p_target=0.05, c_fa=1)": {"mirror": "act_dcf(p_target=0.95, c_fa=1)"},
    "augrc": {"mirror": "augrc"},
    "aurc": {"mirror": "aurc", "waive": STEPS},
    "average_precision": {"needs": "positive", "rank": True},
    "balanced_accuracy": {"needs": "both", "mirror": "balanced_accuracy"},
    "brier": {"mirror": "brier"},
    "brier_confidence": {"mirror": "brier_confidence"},
    "changed": {},
    "changed_correct": {},
    "cllr": {"mirror": "cllr"},
    "coverage": {"mirror": "coverage"},
    "coverage_at_accuracy(accuracy=0.7)": {"mirror": "coverage_at_accuracy(accuracy=0.7)"},
    "coverage_fake": {"needs": "positive", "mirror": "coverage_real"},
    "coverage_real": {"needs": "negative", "mirror": "coverage_fake"},
    "cut_rate": {},
    "dcf_at(threshold=0.123)": {"mirror": "dcf_at(threshold=-0.123, p_target=0.05, c_miss=10, c_fa=1)"},
    "decision_cost": {"mirror": "decision_cost"},
    "decision_cost(c_fp=1, c_fn=5)": {"mirror": "decision_cost(c_fp=5, c_fn=1)"},
    "e_aurc": {"mirror": "e_aurc", "waive": STEPS},
    "ece": {"mirror": "ece"},
    "ece(bins=15, closed=right)": {"mirror": "ece(bins=15, closed=right)"},
    "eer": {"rank": True},
    "eer(ties=official)": {"rank": True, "waive": WALKS},
    "eer(ties=interpolated)": {"rank": True, "mirror": "eer(ties=interpolated)"},
    "eer(ties=hull)": {"needs": "both", "rank": True, "mirror": "eer(ties=hull)"},
    "eer_threshold": {"needs": "both"},
    "eer_threshold(ties=official)": {"needs": "both", "waive": WALKS},
    "error_rate": {"mirror": "error_rate"},
    "exact_match": {},
    "f1": {},
    "f1_at_eer": {"rank": True},
    "f1_at_eer(ties=official)": {"rank": True, "waive": WALKS},
    "f1_fake": {"needs": "positive", "mirror": "f1_real"},
    "f1_real": {"needs": "negative", "mirror": "f1_fake"},
    "fake_catch_rate": {"needs": "positive", "mirror": "real_pass_rate"},
    "fake_slip_rate": {"needs": "positive", "mirror": "real_false_flag_rate"},
    "far_drift": {"needs": "negative"},
    "filtered_rate": {},
    "fbeta": {},
    "fbeta(beta=2)": {},
    "flag_rate": {},
    "flipped": {},
    "fnr": {"needs": "positive", "mirror": "fpr"},
    "fpr": {"needs": "negative", "mirror": "fnr"},
    "fpr_at_tpr": {"rank": True},
    "fpr_at_tpr(tpr=0.5)": {"rank": True},
    "frr_drift": {"needs": "positive"},
    "iapar": {"needs": "negative"},
    "induced": {},
    "l2_mv": {},
    "linf_uv": {},
    "log_loss": {"mirror": "log_loss"},
    "lost": {},
    "macro_auc": {},
    "max_calibration_error": {"mirror": "max_calibration_error"},
    "mcc": {"needs": "both", "mirror": "mcc"},
    "mean_grade": {},
    "median_minimal_strength": {},
    "median_seconds": {},
    "min_c_primary": {"rank": True},
    "min_c_primary(points='0.3:1:1+0.9:2:1')": {"rank": True, "mirror": "min_c_primary(points='0.7:1:1+0.1:1:2')"},
    "min_cllr": {"needs": "both", "rank": True, "mirror": "min_cllr"},
    "min_dcf": {"rank": True, "mirror": "min_dcf(p_target=0.05, c_miss=10, c_fa=1)"},
    "min_a_dcf": {},
    "min_dcf(p_target=0.3, c_fa=1)": {"rank": True, "mirror": "min_dcf(p_target=0.7, c_fa=1)"},
    "min_t_dcf": {"rank": True},
    "min_t_dcf_legacy": {"rank": True},
    "p95_seconds": {"waive": BETWEEN},
    "precision": {},
    "precision_fake": {"mirror": "precision_real"},
    "precision_real": {"mirror": "precision_fake"},
    "real_false_flag_rate": {"needs": "negative", "mirror": "fake_slip_rate"},
    "real_pass_rate": {"needs": "negative", "mirror": "fake_catch_rate"},
    "recall": {"needs": "positive", "mirror": "specificity"},
    "recall_fake": {"needs": "positive", "mirror": "recall_real"},
    "recall_real": {"needs": "negative", "mirror": "recall_fake"},
    "refused_rate": {},
    "robust_accuracy": {},
    "roc_auc": {"rank": True, "mirror": "roc_auc"},
    "sasv_eer": {},
    "segment_eer": {"needs": "both", "waive": WALKS},
    "segment_eer(ties=grouped)": {"needs": "both"},
    "shift_fake": {"needs": "negative"},
    "shift_real": {"needs": "positive"},
    "smooth_ece": {"mirror": "smooth_ece"},
    "smoothness_uv2": {},
    "snr_db": {},
    "specificity": {"needs": "negative", "mirror": "recall"},
    "spf_eer": {},
    "sv_eer": {},
    "t_eer": {},
    "target_base": {},
    "target_eligible": {},
    "target_success": {},
    "tpr_at_domain_fpr(fpr=0.5)": {},
    "tpr_at_fpr": {"rank": True},
    "tpr_at_fpr(fpr=0.5)": {"rank": True},
    "unparsed_rate": {},
}
"""Every metric with the laws that hold for it beyond those that hold for all. A new metric belongs here."""

each_metric = pytest.mark.parametrize("text", METRICS)
few = settings(max_examples=40)
"""A law draws rows once and holds every metric to them: drawing rows costs far more than measuring them."""

Rows = list[tuple[int, float, int, int]]  # label, level of the score, decision, weight
rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 6), st.sampled_from([-2, -1, 0, 1, 1, 0]), st.integers(0, 3)),
    max_size=24,
)
both_classes = rows.map(lambda some: [*some, (1, 3, 1, 1), (0, 2, 0, 2)])
moves = st.randoms(use_true_random=False)


def test_every_metric_declares_its_laws() -> None:
    assert {parse(text).name for text in METRICS} == set(all_metrics())


def value(text: str, some: Rows, ladder: list[float] | None = None, *, is_weighted: bool = False) -> float:
    """A metric of rows; `ladder` gives the score of each level."""
    _, entry, chosen = resolve(text)
    steps = ladder or (
        [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0] if "probability" in entry.kinds else [-3, -1, -0.5, 0, 0.3, 2, 9]
    )
    label, level, decision, weight = (np.array(column) for column in zip(*some, strict=True))
    columns = {
        "label": label,
        "score": np.array(steps, dtype=np.float64)[level],
        "decision": decision,
        "confidence": np.array([0.0, 0.3, 0.5, 0.7, 0.8, 0.95, 1.0])[level],
        "unparsed": (decision == -1) & (level > 3),
        "refused": (decision == -1) & (level == 4),
        "cut": (decision == -1) & (level == 5),
        "filtered": (decision == -1) & (level == 6),
        "grade": np.array([0.0, 0.25, 0.5, math.nan, 0.75, 0.9, 1.0])[level],
        "seconds": np.array([0.1, 0.2, 0.4, 1.0, 2.0, 5.0, 30.0])[level],
        "decision_clean": (level > 2).astype(int),
        **{name: ((level + shift) % 2).astype(float) for shift, name in enumerate(BITS)},
        **{name: np.array([0.1, 0.2, 0.4, 1.0, 2.0, 5.0, 30.0])[level] for name in SIZES},
        "class_labels": np.stack([label, 1 - label, np.ones_like(label)], axis=1),
        "class_scores": np.stack([level, -level, level % 3], axis=1).astype(float),
        "asv_label": np.where(label == 0, "spoof", np.where(level % 2 == 0, "target", "nontarget")),
        "asv_score": np.array([0.5, -1.0, 2.0, 0.25, 0.0, 7.0, -3.0])[level],
        "sasv_score": np.array([0.0, -1.0, 2.0, 2.0, 0.5, 3.0, 9.0])[level],
        "utterance": np.where(level % 2 == 0, "a", "b"),
        "segment": np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])[level],
        "domain": np.where(level == 0, "news", "poetry"),
        "attack": np.where(level == 5, "other", "none"),
        "accepted": np.where(level % 3 == 0, "1", "0"),
        "score_clean": np.array([0.5, -1.0, 2.0, 0.25, 0.0, 7.0, -3.0])[level],
    }
    given_weight = {"weight": weight} if is_weighted else {}
    return float(entry.function(**{name: columns[name] for name in entry.columns}, **given_weight, **chosen))


def same(one: float, other: float) -> bool:
    return one == pytest.approx(other, rel=1e-12, abs=1e-12, nan_ok=True)


# --- laws of all ------------------------------------------------------------------------------------------------


@few
@given(both_classes, moves)
def test_the_order_of_rows_does_not_matter(some: Rows, move: Any) -> None:
    moved = list(some)
    move.shuffle(moved)
    for text in METRICS:
        found, before = value(text, moved), value(text, some)
        assert found == before or (math.isnan(found) and math.isnan(before)), text


@few
@given(both_classes, st.integers(2, 4))
def test_repeating_every_row_changes_nothing(some: Rows, times: int) -> None:
    for text, laws in METRICS.items():
        if "duplicate" not in laws.get("waive", {}):
            assert same(value(text, some * times), value(text, some)), text


@few
@given(both_classes)
def test_a_whole_weight_is_a_repetition(some: Rows) -> None:
    repeated = [row for row in some for _ in range(row[3])]
    for text in METRICS:
        assert same(value(text, some, is_weighted=True), value(text, repeated)), text


@few
@given(both_classes)
def test_the_value_lies_in_its_range(some: Rows) -> None:
    for text in METRICS:
        low, high = resolve(text)[1].range
        found = value(text, some)
        assert math.isnan(found) or low - 1e-12 <= found <= high + 1e-12, text


ladders = st.one_of(
    st.lists(st.floats(allow_nan=False), min_size=7, max_size=7, unique=True).map(sorted),
    st.integers(-(2**40), 2**40).map(lambda k: [math.ldexp(k + i, -1074) for i in range(7)]),
    st.floats(-1e3, 1e3).map(lambda x: [float(np.nextafter(x, math.inf)) + i for i in range(7)]),
)


@few
@given(both_classes, ladders)
def test_only_the_order_of_scores_matters(some: Rows, ladder: list[float]) -> None:
    for text in (text for text, laws in METRICS.items() if laws.get("rank")):
        assert same(value(text, some, ladder), value(text, some)), text


@few
@given(both_classes)
def test_the_mirror(some: Rows) -> None:
    for text, mirror in ((text, laws["mirror"]) for text, laws in METRICS.items() if "mirror" in laws):
        ladder = [0.0, 0.125, 0.25, 0.5, 0.75, 0.875, 1.0]
        if "probability" not in resolve(text)[1].kinds:
            ladder = [-4.0, -2.0, -0.25, 0.0, 0.25, 2.0, 4.0]
        is_scored = "score" in resolve(text)[1].columns  # a confidence speaks for the verdict, whichever it is
        turned = [
            (1 - label, 6 - level if is_scored else level, {1: 0, 0: 1}.get(said, said), weight)
            for label, level, said, weight in some
        ]
        assert same(value(text, some, ladder), value(mirror, turned, ladder)), text


@few
@given(both_classes, st.lists(st.integers(0, 3), min_size=26, max_size=26))
def test_merged_parts_are_the_whole(some: Rows, shares: list[int]) -> None:
    ladder = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]
    parts = [[row for row, share in zip(some, shares, strict=False) if share == k] for k in range(4)]
    counted = [Counts.of([r[0] for r in part], [r[2] for r in part]) for part in parts]
    summed = Counts(*(sum(getattr(c, f.name) for c in counted) for f in fields(Counts)))
    merged = merge(Tally.of([r[0] for r in part], [ladder[int(r[1])] for r in part]) for part in parts)
    n_tested = 0
    for text in METRICS:
        _, entry, chosen = resolve(text)
        form = entry.form(**chosen) if entry.form is not None else None
        if form is None or form.kind == "columns":
            continue
        found = float(form.function(summed)) if isinstance(form, OfCounts) else form.value(merged)
        whole = value(text, some, ladder)
        assert found == whole or (math.isnan(found) and math.isnan(whole)), text
        n_tested += 1
    assert n_tested > 40


# --- laws between metrics ---------------------------------------------------------------------------------------

labelled = both_classes.map(lambda some: ([r[0] for r in some], [float(r[1]) for r in some]))


@given(labelled)
def test_eer_rules_surround_each_other(case: tuple[list[int], list[float]]) -> None:
    label, score = np.array(case[0]), np.array(case[1])
    straight, hull = m.eer(label, score, ties="interpolated"), m.eer(label, score, ties="hull")
    threshold = m.eer_threshold(label, score)
    frr, far = float(np.mean(score[label == 1] < threshold)), float(np.mean(score[label == 0] >= threshold))
    assert m.eer(label, score) == pytest.approx((frr + far) / 2, abs=1e-12)
    assert min(frr, far) - 1e-12 <= straight <= max(frr, far) + 1e-12
    curve = m.det_curve(label, score)
    assert float(np.min(curve.far + curve.frr)) / 2 - 1e-12 <= hull <= straight + 1e-12
    step = max(1 / np.sum(label == 1), 1 / np.sum(label == 0))
    assert m.eer(label, score, ties="official") >= straight - step / 2


@given(both_classes)
def test_official_and_grouped_eer_agree_without_repeated_scores(some: Rows) -> None:
    label = [row[0] for row in some]
    score = np.random.default_rng(len(some)).permutation(len(some))
    assert m.eer(label, score, ties="official") == m.eer(label, score)


def test_ties_inside_one_class_part_official_and_grouped() -> None:
    label, score = [1, 1, 0, 0], [1, 1, 0, 2]
    assert (m.eer(label, score), m.eer(label, score, ties="official")) == (0.25, 0.5)


@given(labelled, st.floats(0.01, 0.99), st.floats(0.1, 20), st.floats(-1, 8))
def test_no_threshold_beats_the_least_cost(
    case: tuple[list[int], list[float]], p_target: float, c_fa: float, threshold: float
) -> None:
    costs = {"p_target": p_target, "c_fa": c_fa}
    least = m.min_dcf(*case, **costs)
    assert least <= 1 + 1e-12
    assert least <= m.dcf_at(*case, **costs, threshold=threshold) + 1e-12
    assert least <= m.act_dcf(*case, **costs) + 1e-12
    unit = min(p_target, c_fa * (1 - p_target))
    assert m.min_dcf(*case, **costs, normalize=False) == pytest.approx(least * unit, rel=1e-12, abs=1e-12)


@given(labelled)
def test_recalibration_cannot_do_harm(case: tuple[list[int], list[float]]) -> None:
    assert m.min_cllr(*case) <= m.cllr(*case) + 1e-12


@given(labelled, st.floats(0, 1), st.floats(0, 1))
def test_points_of_the_curve_rise(case: tuple[list[int], list[float]], one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert m.tpr_at_fpr(*case, fpr=low) <= m.tpr_at_fpr(*case, fpr=high)
    assert m.fpr_at_tpr(*case, tpr=low) <= m.fpr_at_tpr(*case, tpr=high)


Three = list[tuple[str, int, int]]  # class, level of the SASV score, level of the ASV score
three = st.lists(
    st.tuples(st.sampled_from(["target", "nontarget", "spoof"]), st.integers(0, 6), st.integers(0, 6)), max_size=20
).map(lambda some: [*some, ("target", 4, 3), ("nontarget", 2, 1), ("spoof", 3, 5)])
OF_SASV = ("min_a_dcf", "sv_eer", "spf_eer", "sasv_eer")
SWAPPED = {"target": "target", "nontarget": "spoof", "spoof": "nontarget"}


def of_three(text: str, some: Three, ladder: list[float] | None = None) -> float:
    """A metric of three classes, the levels of all scores by one ladder."""
    _, entry, chosen = resolve(text)
    steps = np.array(ladder or range(7), dtype=np.float64)
    kind, sasv, asv = (np.array(own) for own in zip(*some, strict=True))
    columns = {"asv_label": kind, "sasv_score": steps[sasv], "score": steps[sasv], "asv_score": steps[asv]}
    return float(entry.function(**{name: columns[name] for name in entry.columns}, **chosen))


@given(three, ladders)
def test_only_the_order_of_scores_matters_to_three_classes(some: Three, ladder: list[float]) -> None:
    for text in (*OF_SASV, "t_eer", "t_eer(ties=official)"):
        assert same(of_three(text, some, ladder), of_three(text, some)), text


@given(three)
def test_nontargets_and_spoofs_change_places(some: Three) -> None:
    """Exchanged with what they cost, the a-DCF stays; SV-EER and SPF-EER change places, and SASV-EER pools both."""
    turned = [(SWAPPED[kind], *scores) for kind, *scores in some]
    cost = "min_a_dcf(p_target=0.9, p_nontarget={}, p_spoof={}, c_fa={}, c_fa_spoof={})"
    assert same(of_three(cost.format(0.07, 0.03, 5, 20), some), of_three(cost.format(0.03, 0.07, 20, 5), turned))  # type: ignore[arg-type]
    assert same(of_three("sv_eer", some), of_three("spf_eer", turned))  # type: ignore[arg-type]
    assert same(of_three("sasv_eer", some), of_three("sasv_eer", turned))  # type: ignore[arg-type]


@given(three)
def test_numbers_of_three_classes_bound_each_other(some: Three) -> None:
    """A trivial system bounds the a-DCF, and the pooled EER lies between those of its two kinds of impostors."""
    assert of_three("min_a_dcf", some) <= 1 + 1e-12
    sv, spf, sasv = (of_three(text, some) for text in ("sv_eer", "spf_eer", "sasv_eer"))
    assert min(sv, spf) - 1e-12 <= sasv <= max(sv, spf) + 1e-12


# --- the contract checks ----------------------------------------------------------------------------------------


@each_metric
def test_every_metric_keeps_its_contract(text: str) -> None:
    checked = set(check_metric(text, **METRICS[text]))
    columns = resolve(text)[1].columns
    wanted = {"number", "order", "duplicate", "weight", "range"} - set(METRICS[text].get("waive", {}))
    wanted |= {"nan"} if "score" in columns else set()
    wanted |= {"rank"} if METRICS[text].get("rank") else set()
    wanted |= {"mirror"} if "mirror" in METRICS[text] else set()
    assert wanted <= checked <= wanted | {"classes"}
    assert ("classes" in checked) >= ("needs" in METRICS[text])


@pytest.mark.parametrize("text", [text for text, laws in METRICS.items() if "waive" in laws])
def test_what_is_waived_is_really_broken(text: str) -> None:
    laws = dict(METRICS[text])
    for law in laws.pop("waive"):
        with pytest.raises(ContractBroken) as caught:
            check_metric(text, **laws)
        assert caught.value.law == law


def test_what_the_form_says_need_not_be_declared() -> None:
    assert {"classes", "rank"} <= set(check_metric("roc_auc")) & set(check_metric("min_dcf")) & set(check_metric(m.eer))
    assert "classes" in check_metric("cllr")
    assert not {"classes", "rank"} & set(check_metric("brier"))
    assert "rank" not in check_metric("act_dcf")
    assert "rank" not in check_metric("roc_auc", rank=False)


def mean(score: Any, weight: Any) -> float:
    if np.isnan(score).any():
        raise ValueError("NaN")
    return float(np.average(score, weights=weight))


def upset_by_ties(score: Any, weight: Any = None) -> float:
    if len(set(score)) < len(score):
        raise RuntimeError("ties!")
    return mean(score, weight)


def never_defined(score: Any, weight: Any = None) -> float:
    return mean(score, weight) * math.nan


def writes(score: Any, weight: Any = None) -> float:
    score -= score.min()
    return mean(score, weight)


def first_of_all(score: Any, weight: Any = None) -> float:
    del weight
    return float(score[0])


def how_many(label: Any, weight: Any = None) -> float:
    return float(len(label) if weight is None else np.sum(weight))


def heedless(score: Any, weight: Any = None) -> float:
    del weight
    return mean(score, None)


def at_least_one(score: Any, weight: Any = None) -> float:
    return mean(np.abs(score), weight) + 1.0


def scores_nan(score: Any, weight: Any = None) -> float:
    return float(np.average(np.nan_to_num(score), weights=weight))


def trips_over_nan(score: Any, weight: Any = None) -> float:
    if np.isnan(score).any():
        raise RuntimeError("oh")
    return mean(score, weight)


def zero_for_one_class(label: Any, score: Any, weight: Any = None) -> float:
    found = m.roc_auc(label, score, weight)
    return 0.0 if math.isnan(found) else found


def mean_score(score: Any, weight: Any = None) -> float:
    return mean(score, weight)


def only_positives(label: Any, decision: Any, weight: Any = None) -> float:
    return m.recall(label, decision, weight)


UNBOUNDED = (-math.inf, math.inf)
BROKEN: list[tuple[Callable[..., float], tuple[float, float], dict[str, Any], str, str]] = [
    (upset_by_ties, UNBOUNDED, {}, "number", "raised RuntimeError: ties!"),
    (never_defined, UNBOUNDED, {}, "number", "NaN on all of 60"),
    (writes, UNBOUNDED, {}, "number", "read-only"),
    (first_of_all, UNBOUNDED, {}, "order", "with the rows in the order"),
    (how_many, UNBOUNDED, {}, "duplicate", "2.0 became 4.0"),
    (heedless, UNBOUNDED, {}, "weight", "weight="),
    (at_least_one, (0.0, 1.0), {}, "range", "outside 0.0..1.0"),
    (scores_nan, UNBOUNDED, {}, "nan", "score=.*nan"),
    (trips_over_nan, UNBOUNDED, {}, "nan", "not RuntimeError"),
    (zero_for_one_class, (0.0, 1.0), {"needs": "both"}, "classes", "without label 0 it must be NaN, but is 0.0"),
    (mean_score, UNBOUNDED, {"rank": True}, "rank", "in the same order"),
    (only_positives, (0.0, 1.0), {"mirror": "only_positives"}, "mirror", "must equal only_positives"),
]


@pytest.fixture
def register() -> Iterator[Callable[..., None]]:
    names: list[str] = []

    def add(function: Callable[..., float], within: tuple[float, float]) -> None:
        metric(best="low", range=within)(function)
        names.append(function.__name__)

    yield add
    for name in names:
        forget(name)


@pytest.mark.parametrize(
    ("function", "within", "laws", "law", "says"), BROKEN, ids=[case[0].__name__ for case in BROKEN]
)
def test_a_broken_metric_is_caught(
    register: Callable[..., None],
    function: Callable[..., float],
    within: tuple[float, float],
    laws: dict[str, Any],
    law: str,
    says: str,
) -> None:
    register(function, within)
    with pytest.raises(ContractBroken, match=says) as caught:
        check_metric(function, **laws)
    assert caught.value.law == law
    assert f"{function.__name__} breaks the law {law!r}" in str(caught.value)
    assert all(f"{name}=" in str(caught.value) for name in caught.value.case)
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, HitmissError)


def test_every_law_has_a_metric_that_breaks_it() -> None:
    assert {case[3] for case in BROKEN} == set(LAWS)


def test_the_counterexample_is_small_and_the_same_each_time(register: Callable[..., None]) -> None:
    register(how_many, UNBOUNDED)
    texts = []
    for _ in range(2):
        with pytest.raises(ContractBroken) as caught:
            check_metric(how_many)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert len(caught.value.case["label"]) == 2


def test_sound_metrics_of_others_pass(register: Callable[..., None]) -> None:
    register(mean_score, UNBOUNDED)
    assert set(check_metric(mean_score)) == {"number", "order", "duplicate", "weight", "range", "nan"}


def test_wrong_questions_are_refused() -> None:
    with pytest.raises(UsageError, match="mean_score is not registered"):
        check_metric(mean_score)
    with pytest.raises(UnknownName, match="roc_auc"):
        check_metric("roc_acu")
    with pytest.raises(UnknownName, match="both"):
        check_metric("roc_auc", needs="bath")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="duplicate"):
        check_metric("roc_auc", waive={"duplicates": "because"})
