"""The engine: metrics × runs × slices, averages, gap, intervals, alarms, signature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import hitmiss as hm
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.protocol import Gap, Protocol
from hitmiss.core.trials import stack
from hitmiss.engine.measure import measure
from hitmiss.stats.intervals import wilson


def simulated(n: int = 3000, seed: int = 0, **header: object) -> hm.Trials:
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.3
    speaker = rng.integers(0, 40, n)
    score = rng.normal(0, 1, n) + 2.0 * label + rng.normal(0, 0.7, 40)[speaker]
    codec = rng.choice(["NONE", "C01", "C02"], n, p=[0.5, 0.3, 0.2])
    attack = np.where(label, "bonafide", rng.choice(["A17", "A18"], n))
    head = hm.Header(positive="bonafide", negative="spoof", **{"score_kind": "llr", **header})
    return hm.Trials.of(label, score, codec=codec, speaker=speaker.astype(str), attack=attack, header=head)


def test_figures_equal_the_metric_functions_on_the_same_rows() -> None:
    trials = simulated()
    results = measure(
        trials, ["eer", "min_dcf", "act_dcf", "cllr", "min_cllr", "roc_auc", "average_precision"], by=["codec"]
    )
    for e in results:
        if e.average is None:
            part = trials.where(**e.slice)
            assert e.value == pytest.approx(getattr(hm.metrics, e.metric)(part.label, part.score), abs=1e-12)
            assert (e.n, e.n_positive) == (len(part), part.n_positive)


def test_slices_cover_all_trials_and_pooled_is_the_whole() -> None:
    trials = simulated()
    rows = [e for e in measure(trials, ["eer"], by=["codec", "codec,attack"]) if e.average is None]
    assert sum(e.n for e in rows if tuple(e.slice) == ("codec",)) == len(trials) == rows[0].n


def test_macro_is_the_mean_of_slices_and_worst_the_worst() -> None:
    for metric, pick in (("eer", max), ("roc_auc", min)):
        results = measure(simulated(), [metric], by=["codec"])
        values = [e.value for e in results if e.slice and e.average is None]
        assert results.one(metric, average="macro", codec="*").value == pytest.approx(np.mean(values), abs=1e-15)
        assert [e.value for e in results if e.average == "worst"] == [pick(values)]


def test_an_attack_is_paired_with_all_positives_of_the_same_domain() -> None:
    trials = simulated()
    protocol = Protocol(negative_only=("attack",))
    results = measure(trials, ["eer"], by=["attack", "attack,codec"], protocol=protocol)
    codec, attack = trials.column("codec").to_numpy(), trials.column("attack").to_numpy()
    keep = (trials.label == 1) | (attack == "A17")
    assert results.one("eer", attack="A17").value == hm.metrics.eer(trials.label[keep], trials.score[keep])
    keep &= codec == "C01"
    assert results.one("eer", attack="A17", codec="C01").value == hm.metrics.eer(trials.label[keep], trials.score[keep])
    assert all("bonafide" not in e.slice.values() for e in results)


def test_without_that_rule_a_slice_of_one_class_is_undefined_and_says_so() -> None:
    results = measure(simulated(), ["eer"], by=["attack"])
    row = results.one("eer", attack="A17")
    assert row.value is None and row.note == "undefined: only spoof here" and row.n > 0
    assert results.one("eer", attack="bonafide").note == "undefined: only bonafide here"
    assert results.one("eer", average="macro", attack="*").value is None


def test_a_slice_of_one_class_is_undefined_under_units_too() -> None:
    results = measure(simulated(), ["eer", "min_dcf", "roc_auc"], by=["attack"], bootstrap=20, unit="speaker")
    assert results.one("eer", attack="A17").value is None and results.one("eer").low is not None


def test_macro_says_how_many_slices_it_used() -> None:
    trials = hm.Trials.of([1, 0, 1, 0, 1], [2, 1, 3, 0, 1], codec=["a", "a", "b", "b", "c"])
    macro = measure(trials, ["roc_auc"], by=["codec"]).one("roc_auc", average="macro", codec="*")
    assert macro.value == 1.0 and macro.note == "over 2 of 3 slices"


def test_macro_over_slices_that_share_their_positives_claims_no_interval_without_a_unit() -> None:
    protocol = Protocol(negative_only=("attack",))
    plain = measure(simulated(), ["eer"], by=["attack"], bootstrap=50, protocol=protocol)
    row = plain.one("eer", average="macro", attack="*")
    assert row.low is None and row.note is not None and "share their bonafide" in row.note
    united = measure(simulated(), ["eer"], by=["attack"], bootstrap=50, unit="speaker", protocol=protocol)
    assert united.one("eer", average="macro", attack="*").low is not None


def test_gap_is_out_minus_in_with_an_interval() -> None:
    trials = simulated()
    gap = measure(trials, ["eer"], gap=Gap("codec", ("NONE",)), bootstrap=300).find(average="gap", codec="rest − NONE")
    inside = trials.where(codec="NONE")
    outside = trials.keep(trials.column("codec") != "NONE")
    expected = hm.metrics.eer(outside.label, outside.score) - hm.metrics.eer(inside.label, inside.score)
    (row,) = gap.estimates
    assert row.value == pytest.approx(expected, abs=1e-15) and row.low < row.value < row.high
    with pytest.raises(UsageError, match="no codec is 'C99'"):
        measure(trials, ["eer"], gap=Gap("codec", ("C99",)))


def test_runs_are_never_pooled() -> None:
    first = simulated(seed=1)
    noise = np.random.default_rng(2).normal(0, 1, len(first))
    runs = {"a": first, "b": first.put(score=first.column("score") + noise)}
    results = measure(stack(runs, "system"), ["roc_auc"], by=["codec"])
    for name, alone in runs.items():
        assert results.one("roc_auc", system=name).value == pytest.approx(
            roc_auc_score(alone.label, alone.score), abs=1e-12
        )
    assert not any(e.run == {} for e in results)


def test_same_seed_same_digits_whatever_else_is_asked() -> None:
    trials = simulated()
    alone = measure(trials, ["eer", "min_dcf"], by=["codec"], bootstrap=100, seed=3)
    again = measure(trials, ["eer", "min_dcf"], by=["codec,attack", "codec"], bootstrap=100, seed=3)
    assert alone.one("eer", codec="C01") == again.one("eer", codec="C01")
    assert measure(trials, ["eer"], bootstrap=100, seed=4).one("eer").low != alone.one("eer").low


@pytest.mark.parametrize(
    "options",
    [{}, {"unit": "speaker"}, {"unit": "speaker,room"}, {"interval": "bca"}, {"unit": "speaker", "interval": "bca"}],
)
def test_every_interval_holds_its_estimate(options: dict[str, str]) -> None:
    metrics = [
        "eer",
        "eer(ties=official)",
        "eer(ties=interpolated)",
        "eer(ties=hull)",
        "min_dcf",
        "act_dcf",
        "cllr",
        "roc_auc",
    ]
    trials = simulated(1500).put(room=np.char.add("r", (np.arange(1500) % 13).astype(str)))
    for e in measure(trials, metrics, bootstrap=300, **options):
        if e.metric == "eer(ties=hull)" and not options:  # a hull is fitted: draws of trials cover 90 % there
            assert e.low is None and "fitted" in (e.note or "")
            continue
        assert e.low is not None and e.low <= e.value <= e.high, e


def test_a_fitted_figure_has_no_interval_in_averages_and_gaps_either() -> None:
    trials = simulated(900).put(codec=np.array(["a", "b", "c"])[np.arange(900) % 3])
    found = measure(trials, ["eer(ties=hull)"], by="codec", gap=Gap("codec", ("a",)), bootstrap=200)
    made = {e.average: e for e in found if e.average in ("macro", "gap")}
    assert {*made} == {"macro", "gap"} and all(e.low is None and "fitted" in (e.note or "") for e in made.values())


def test_speakers_as_units_give_wider_intervals_than_trials() -> None:
    trials = simulated()
    trial, speaker = (measure(trials, ["roc_auc"], bootstrap=400, unit=u).one("roc_auc") for u in (None, "speaker"))
    assert speaker.high - speaker.low > 1.5 * (trial.high - trial.low)


def test_rates_get_wilson_and_auc_gets_delong_without_a_bootstrap() -> None:
    trials = hm.Trials.of([1, 1, 0, 0, 1], [3, 1, 2, 0, 4], decision=[1, 0, 1, 0, 1])
    results = measure(trials, ["recall", "roc_auc", "f1"])
    recall = results.one("recall")
    assert (recall.low, recall.high) == pytest.approx(wilson(2, 3)) and recall.method == "wilson"
    assert results.one("roc_auc").method == "delong"
    assert results.one("f1").low is None


def test_units_that_hold_both_classes_cannot_be_stratified() -> None:
    with pytest.raises(DataError, match="hold both classes"):
        measure(simulated(), ["eer"], bootstrap=10, unit="speaker", stratify=True)
    row = measure(simulated(), ["eer"], bootstrap=10, unit="attack", stratify=True).one("eer")
    assert row.value is not None and row.note == "no interval: only 2 of attack to draw from"


def test_a_unit_with_one_value_is_refused() -> None:
    trials = hm.Trials.of([1, 0], [1.0, 0.0], speaker=["x", "x"])
    with pytest.raises(DataError, match="only one speaker"):
        measure(trials, ["eer"], bootstrap=10, unit="speaker")


def test_metrics_that_need_llrs_are_refused_for_other_scores() -> None:
    with pytest.raises(DataError, match="act_dcf needs llr scores and these are declared 'raw'"):
        measure(simulated(score_kind="raw"), ["act_dcf"])
    with pytest.raises(DataError, match="brier needs probability"):
        measure(simulated(), ["brier"])


def test_reversed_scores_are_named_and_not_flipped() -> None:
    trials = simulated()
    turned = trials.put(score=-trials.column("score"))
    results = measure(turned, ["roc_auc"])
    assert any("REVERSED" in w and "--higher spoof" in w for w in results.warnings)
    assert results.one("roc_auc").value == pytest.approx(
        1 - measure(trials, ["roc_auc"]).one("roc_auc").value, abs=1e-12
    )
    assert not any("REVERSED" in w for w in measure(trials, ["roc_auc"]).warnings)


def test_constant_scores_and_useless_operating_points_are_named() -> None:
    trials = hm.Trials.of([1, 0, 1, 0], [5.0, 5.0, 5.0, 5.0])
    warnings = measure(trials, ["eer", "min_dcf"]).warnings
    assert any("every score is 5" in w for w in warnings)
    assert any("min_dcf is 1" in w for w in warnings)
    assert any("ties matter: the EER is 1.0000 by the official rule and 0.5000" in w for w in warnings)


def test_both_eers_appear_where_ties_matter_and_only_there() -> None:
    protocol = Protocol("asvspoof5", settings={"eer": {"ties": "official"}}, both_eers=True)
    rounded = simulated().put(score=simulated().column("score").round(0))
    assert [e.metric for e in measure(rounded, ["eer"], protocol=protocol)] == ["eer", "eer(ties=grouped)"]
    assert [e.metric for e in measure(simulated(), ["eer"], protocol=protocol)] == ["eer"]
    assert measure(simulated(), ["eer"], protocol=protocol).one("eer").settings == {"ties": "official"}


def test_a_single_domain_is_called_trivial_and_not_tabled() -> None:
    trials = hm.Trials.of([1, 0], [1.0, 0.0], codec=["NONE", "NONE"])
    results = measure(trials, ["eer"], by=["codec"])
    assert len(results) == 1 and any("trivial" in w for w in results.warnings)


def test_few_trials_are_marked() -> None:
    trials = hm.Trials.of([1] * 3 + [0] * 30, np.arange(33.0))
    assert measure(trials, ["eer"]).one("eer").note == "only 3 positive"


def test_wrong_questions_get_one_sentence() -> None:
    trials = simulated(50)
    for wrong, kind in (
        ("eeer", UnknownName),
        ("eer(tie=1)", UnknownName),
        ("eer(", UsageError),
        ("min_dcf(p_target=2)", UsageError),
    ):
        with pytest.raises(kind):
            measure(trials, [wrong])
    with pytest.raises(UnknownName, match="did you mean 'codec'"):
        measure(trials, ["eer"], by=["codek"])
    for options in ({"bootstrap": 1}, {"bootstrap": 10, "level": 1.5}, {"interval": "bcaa"}, {"unit": "a,b,c"}):
        with pytest.raises(UsageError):
            measure(trials, ["eer"], **options)
    with pytest.raises(DataError, match="no trials"):
        measure(trials.where(codec="nothing"), ["eer"])


def test_the_signature_pins_choices_and_figures() -> None:
    trials = simulated()
    one = measure(trials, ["eer"], by=["codec"], bootstrap=20, seed=1).signature
    assert one == measure(trials, ["eer"], by=["codec"], bootstrap=20, seed=1).signature
    for change in ({"seed": 2}, {"by": []}, {"unit": "speaker"}, {"bootstrap": 30}):
        assert one != measure(trials, ["eer"], **{"by": ["codec"], "bootstrap": 20, "seed": 1, **change}).signature
    other = trials.put(score=trials.column("score") + 1e-6 * trials.label)
    assert one != measure(other, ["eer"], by=["codec"], bootstrap=20, seed=1).signature


def test_a_metric_without_a_form_is_resampled_by_brute_force() -> None:
    @hm.metric(best="high", range=(-math.inf, math.inf))
    def mean_gap(label, score, weight=None):  # type: ignore[no-untyped-def]
        return float(
            np.average(score, weights=weight)
            if label.sum() in (0, len(label))
            else score[label == 1].mean() - score[label == 0].mean()
        )

    try:
        row = measure(simulated(400), ["mean_gap"], bootstrap=200).one("mean_gap")
        assert row.low < row.value < row.high
    finally:
        from hitmiss.core.registry import forget

        forget("mean_gap")


@pytest.mark.parametrize(("level", "least"), [(0.9, 5), (0.95, 6), (0.99, 8)])
def test_few_units_give_no_interval_and_say_why(level: float, least: int) -> None:
    """Even the whole range of k units is an interval at no higher level than 1 − 2^(1 − k)."""
    assert 1 - 2.0 ** (1 - least) >= level > 1 - 2.0 ** (2 - least)
    rng = np.random.default_rng(0)
    n = 24 * least
    label, speaker = np.arange(n) % 2, [f"s{i // 24}" for i in range(n)]
    part = ["few" if i < 24 * (least - 1) else "one" for i in range(n)]
    trials = hm.Trials.of(label, rng.normal(size=n) + label, speaker=speaker, part=part)
    results = hm.measure(trials, ["eer", "roc_auc"], by=["part"], bootstrap=50, unit="speaker", level=level)
    for e in results:
        if e.average is None and e.slice:
            why = "one speaker alone" if e.slice["part"] == "one" else f"only {least - 1} of speaker to draw from"
            assert e.low is None and e.high is None and f"no interval: {why}" in (e.note or "")
        elif e.average != "worst":
            assert e.low is not None and e.high is not None and e.low < e.high


@pytest.mark.parametrize(("least", "is_warned"), [(2**53, True), (2**52, False)])
def test_whole_numbers_that_a_float_cannot_tell_apart_are_named(least: int, is_warned: bool) -> None:
    trials = hm.Trials.of([k % 2 for k in range(40)], [float(least + k) for k in range(40)])
    assert any("beyond 2^53" in text for text in measure(trials, ["eer"]).warnings) == is_warned


def test_the_order_of_rows_changes_no_interval_of_any_function() -> None:
    """`eer_threshold` has no form of its own: each replicate is drawn row by row."""
    rng = np.random.default_rng(4)
    label, score = np.arange(60) % 2, rng.normal(size=60) + np.arange(60) % 2
    order = rng.permutation(60)
    found = [
        [(e.value, e.low, e.high) for e in measure(hm.Trials.of(y, s), ["eer_threshold"], bootstrap=40)]
        for y, s in ((label, score), (label[order], score[order]))
    ]
    assert found[0] == found[1] and found[0][0][1] != found[0][0][2]
