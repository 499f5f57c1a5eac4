"""Comparisons: laws, independent truth for each test, averages, repetitions, edge cases."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.metrics import f1_score, roc_auc_score
from statsmodels.stats.contingency_tables import mcnemar

from hitmiss import compare
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.header import Header
from hitmiss.core.protocol import Protocol
from hitmiss.core.registry import all_metrics
from hitmiss.core.trials import Trials, stack
from hitmiss.derive.decisions import at_threshold
from hitmiss.engine.measure import measure
from hitmiss.engine.shares import share_of
from hitmiss.stats.forms.trials import OfCounts

seeds = st.integers(0, 2**32 - 1)
METRICS = ["eer", "roc_auc", "min_dcf", "accuracy", "f1", "recall", "mcc"]


def two_runs(seed: int, n: int = 80, skill: tuple[float, float] = (1.0, 1.4)) -> tuple[Trials, Trials]:
    """Two systems whose scores share most of their noise, decided at 0.5, in two codecs."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.arange(n) < max(2, n // 3)).astype(int)
    base, codec = rng.normal(size=n), rng.choice(["C01", "C02"], size=n)
    speaker = rng.integers(0, 8, size=n)
    return tuple(  # type: ignore[return-value]
        at_threshold(
            Trials.of(label, np.round(base + s * label + 0.5 * rng.normal(size=n), 2), codec=codec, speaker=speaker),
            0.5,
        )
        for s in skill
    )


@settings(max_examples=25)
@example(3204, {"test": "bootstrap"})  # an end halfway between two numbers of ten digits
@example(445, {"unit": "speaker"})  # one speaker alone changes the accuracy of a slice
@given(seeds, st.sampled_from([{}, {"unit": "speaker"}, {"test": "bootstrap"}, {"test": "permutation"}]))
def test_exchanging_the_runs_changes_signs_and_nothing_else(seed: int, options: dict[str, Any]) -> None:
    a, b = two_runs(seed, 40)
    metrics = METRICS if options.get("test") != "permutation" else ["eer", "f1"]
    one, other = (compare(x, y, metrics, by="codec", bootstrap=60, **options) for x, y in ((a, b), (b, a)))
    for there, back in zip(one, other, strict=True):
        assert (there.metric, there.slice, there.n_pairs) == (back.metric, back.slice, back.n_pairs)
        assert (there.a, there.b) == (back.b, back.a)
        assert (there.wins, there.ties, there.losses) == (back.losses, back.ties, back.wins)
        for x, y in ((there.delta, back.delta), (there.low, back.high), (there.high, back.low)):
            assert (x is None) == (y is None) and (x is None or x == pytest.approx(-y, abs=1e-12))
        for x, y in ((there.p_value, back.p_value), (there.p_adjusted, back.p_adjusted), (there.mdd, back.mdd)):
            assert (x is None) == (y is None) and (x is None or x == pytest.approx(y, rel=1e-9, abs=1e-12))
        swap = {"A better": "B better", "B better": "A better"}
        assert there.verdict == swap.get(back.verdict, back.verdict)


@settings(max_examples=20)
@given(seeds, st.sampled_from(["auto", "bootstrap", "permutation"]))
def test_identical_runs_do_not_differ(seed: int, test: str) -> None:
    a, _ = two_runs(seed, 30)
    for row in compare(a, a, ["eer", "roc_auc", "accuracy", "f1"], by="codec", bootstrap=50, test=test):
        if row.delta is not None:
            assert row.delta == 0.0 and row.p_value in (1.0, None)
            assert row.verdict in ("identical", "not tested") or row.average
            assert row.wins == row.losses == 0 and row.mdd is None
            assert row.low is None and row.high is None  # certainty that nobody has


@given(seeds)
def test_figures_are_those_of_measure(seed: int) -> None:
    a, b = two_runs(seed, 40)
    made = compare(a, b, METRICS, by="codec", bootstrap=0)
    for side, trials in (("a", a), ("b", b)):
        results = measure(trials, METRICS, by="codec")
        for row in made:
            expected = results.one(row.metric, average=row.average, **row.slice).value
            if row.average is None:
                assert getattr(row, side) == expected
            elif expected is not None and row.delta is not None and not row.note:
                assert getattr(row, side) == pytest.approx(expected)


def test_accuracy_is_judged_by_mcnemar() -> None:
    a, b = two_runs(3, 300)
    row = compare(a, b, ["accuracy"]).one("accuracy")
    right = [np.asarray(t.column("decision")) == t.label for t in (a, b)]
    only_a, only_b = int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())
    truth = mcnemar([[0, only_a], [only_b, 0]], exact=True).pvalue
    assert row.test == "mcnemar" and row.p_value == pytest.approx(truth, rel=1e-12)
    assert (row.wins, row.losses, row.ties) == (only_b, only_a, 300 - only_a - only_b)
    n = 300
    deviation = math.sqrt((only_a + only_b) / n - ((only_b - only_a) / n) ** 2) / math.sqrt(n)
    assert row.mdd == pytest.approx((1.959963985 + 0.841621234) * deviation, rel=1e-8)
    assert row.delta == pytest.approx((only_b - only_a) / n)


def test_recall_is_judged_on_the_positives_alone() -> None:
    a, b = two_runs(4, 300)
    row = compare(a, b, ["recall"]).one("recall")
    inside = a.label == 1
    said = [np.asarray(t.column("decision"))[inside] == 1 for t in (a, b)]
    truth = mcnemar([[0, int((said[0] & ~said[1]).sum())], [int((said[1] & ~said[0]).sum()), 0]], exact=True).pvalue
    assert row.test == "mcnemar" and row.p_value == pytest.approx(truth, rel=1e-12)
    assert row.wins + row.ties + row.losses == int(inside.sum())


def test_every_share_of_the_registry_is_recognised_as_what_it_is() -> None:
    """`share_of` finds shares by trying them out; what it finds must be the metric's own arithmetic."""
    rng = np.random.default_rng(0)
    label, decision = rng.integers(0, 2, 500), rng.choice([1, 0, -1], 500)
    seen = set()
    for name, metric in all_metrics().items():
        form = metric.form(**metric.defaults) if metric.form and metric.columns == ("label", "decision") else None
        share = share_of(form) if isinstance(form, OfCounts) else None
        if share is not None:
            code = np.where(decision == 1, np.where(label == 1, 0, 1), np.where(label == 1, 2, 3))
            code = np.where(decision == -1, np.where(label == 1, 4, 5), code)
            hits, of = (np.asarray(side)[code].sum() for side in share)
            assert hits / of == pytest.approx(metric.function(label, decision, **metric.defaults), rel=1e-12)
            seen.add(name)
    assert {"accuracy", "recall", "precision", "fpr"} <= seen and not {"f1", "mcc", "balanced_accuracy"} & seen


def test_precision_has_a_denominator_of_its_own_in_each_run() -> None:
    a, b = two_runs(5, 200)
    assert compare(a, b, ["precision"]).one("precision").test == "bootstrap"
    with pytest.raises(UsageError, match="'mcnemar' is for a share of the same trials in both runs"):
        compare(a, b, ["precision"], test="mcnemar")
    with pytest.raises(UsageError, match="'delong' is for the ROC AUC"):
        compare(a, b, ["eer"], test="delong")
    with pytest.raises(UnknownName, match="did you mean 'bootstrap'"):
        compare(a, b, ["eer"], test="bootstraps")


def f1_of_draws(label: np.ndarray, decision: np.ndarray) -> np.ndarray:
    """2 TP / (2 TP + FP + FN) of every row."""
    hits = (label * decision).sum(axis=1)
    return 2 * hits / (label.sum(axis=1) + decision.sum(axis=1))


def auc_of_draws(label: np.ndarray, score: np.ndarray) -> np.ndarray:
    """The area under the ROC curve of every row, by ranks (Mann–Whitney)."""
    n1 = label.sum(axis=1)
    ranks = (rankdata(score, axis=1) * label).sum(axis=1)
    return (ranks - n1 * (n1 + 1) / 2) / (n1 * (label.shape[1] - n1))


@pytest.mark.parametrize(
    ("name", "metric", "theirs", "column"),
    [("f1", f1_of_draws, f1_score, "decision"), ("roc_auc", auc_of_draws, roc_auc_score, "score")],
)
def test_intervals_agree_with_resampling_by_hand(name: str, metric: Any, theirs: Any, column: str) -> None:
    a, b = two_runs(6, 400)
    rng = np.random.default_rng(9)
    drawn = np.hstack([rng.choice(np.flatnonzero(a.label == k), (3000, (a.label == k).sum())) for k in (1, 0)])
    sides = [t.frame[column].to_numpy()[drawn] for t in (a, b)]
    assert metric(a.label[drawn], sides[0])[0] == pytest.approx(theirs(a.label[drawn[0]], sides[0][0]))
    truth = metric(a.label[drawn], sides[1]) - metric(a.label[drawn], sides[0])
    row = compare(a, b, [name], bootstrap=4000, test="bootstrap").one(name)
    assert row.mdd == pytest.approx(2.8016 * truth.std(ddof=1), rel=0.08)
    assert [row.low, row.high] == pytest.approx(np.quantile(truth, [0.025, 0.975]), abs=0.25 * truth.std())


def test_units_widen_what_they_share() -> None:
    """Each speaker's trials are copies: over speakers the interval is wider by the root of their number."""
    a, b = two_runs(7, 120)
    copies = [
        Trials.from_frame(
            pl.concat(
                [t.frame.with_columns(item=t.frame["item"] + f"_{k}", speaker=t.frame["item"]) for k in range(9)]
            ),
            t.header,
        )
        for t in (a, b)
    ]
    narrow = compare(*copies, ["eer", "accuracy"])
    wide = compare(*copies, ["eer", "accuracy"], unit="speaker")
    for metric in ("eer", "accuracy"):
        one, other = narrow.one(metric), wide.one(metric)
        assert one.delta == other.delta
        assert (other.high - other.low) / (one.high - one.low) == pytest.approx(3.0, rel=0.35)
    assert wide.one("accuracy").test == "permutation"
    single = compare(a, b, ["accuracy"]).one("accuracy")
    assert wide.one("accuracy").p_value == pytest.approx(single.p_value, abs=0.02)


def test_repetitions_are_averaged_and_items_drawn() -> None:
    sides = [two_runs(seed, 60) for seed in (1, 2, 3)]
    same = [[Trials.of(sides[0][0].label, t.score, header=Header()) for t in (x, y)] for x, y in sides]
    a, b = (stack({str(k): same[k][side] for k in range(3)}, "trial") for side in (0, 1))
    row = compare(a, b, ["eer"], bootstrap=200).one("eer")
    each = [compare(x, y, ["eer"], bootstrap=0).one("eer") for x, y in same]
    assert row.a == pytest.approx(np.mean([e.a for e in each]))
    assert row.delta == pytest.approx(np.mean([e.delta for e in each]))
    assert "unit=item" in compare(a, b, ["eer"], bootstrap=200).signature
    with_decisions = [stack({str(k): at_threshold(same[k][s], 0.5) for k in range(3)}, "trial") for s in (0, 1)]
    made = compare(*with_decisions, ["accuracy"], bootstrap=200)
    assert made.one("accuracy").test == "permutation"
    assert [d.p_exact for d in made.discordances] == [None]


def test_several_targets_and_models_stay_apart() -> None:
    a, b = two_runs(8, 60)
    both = [
        Trials.from_frame(pl.concat([t.frame.with_columns(target=pl.lit(k)) for k in ("MI", "CD")]), t.header)
        for t in (a, b)
    ]
    rows = compare(*both, ["eer"], bootstrap=0).differences
    assert [r.slice for r in rows] == [{"target": "CD"}, {"target": "MI"}]
    models = [stack({"m1": a, "m2": b}, "model"), stack({"m1": b, "m2": a}, "model")]
    rows = compare(*models, ["eer"], bootstrap=0).differences
    assert [r.slice for r in rows] == [{"model": "m1"}, {"model": "m2"}] and rows[0].delta == -rows[1].delta


def test_macro_of_areas_adds_up_the_errors() -> None:
    a, b = two_runs(10, 400)
    made = compare(a, b, ["roc_auc"], by="codec", bootstrap=500)
    row = made.one("roc_auc", average="macro", codec="*")
    cells = [made.one("roc_auc", codec=c) for c in ("C01", "C02")]
    assert row.delta == pytest.approx(np.mean([c.delta for c in cells])) and row.test == "delong"
    assert row.mdd == pytest.approx(math.hypot(*(c.mdd for c in cells)) / 2)
    drawn = compare(a, b, ["roc_auc"], by="codec", bootstrap=4000, test="bootstrap").one(
        "roc_auc", average="macro", codec="*"
    )
    assert [drawn.low, drawn.high] == pytest.approx([row.low, row.high], abs=0.15 * (row.high - row.low))
    assert (row.wins, row.ties, row.losses) == (sum(c.delta > 0 for c in cells), 0, sum(c.delta < 0 for c in cells))


def test_slices_that_share_trials_have_no_macro_test() -> None:
    a, b = (
        Trials.of([1, 1, 1, 0, 0, 0, 0], s, attack=["-", "-", "-", "A1", "A1", "A2", "A2"])
        for s in ([5, 3, 4, 1, 3.5, 2, 0], [5, 4, 6, 1, 2, 4.5, 0])
    )
    protocol = Protocol(negative_only=("attack",))
    row = compare(a, b, ["eer"], by="attack", protocol=protocol).one("eer", average="macro", attack="*")
    assert row.p_value is None and "share trials" in (row.note or "") and row.verdict == "not tested"
    assert compare(a, b, ["eer"], by="attack", protocol=protocol).one("eer", attack="A1").n_pairs == 5


def test_two_readings_of_abstentions() -> None:
    label, a = [1] * 6 + [0] * 4, [1, 1, 1, -1, -1, 0, 0, 0, -1, 1]
    b = [1, 0, -1, 1, -1, 0, 0, 1, 0, 0]
    sides = [Trials.of(label, decision=d) for d in (a, b)]
    wrong, answered = compare(*sides, ["accuracy"]).discordances
    assert (wrong.reading, answered.reading) == ("abstention = wrong", "both answered")
    assert (wrong.n_pairs, wrong.both_right, wrong.only_a, wrong.only_b, wrong.both_wrong) == (10, 2, 3, 3, 2)
    assert (answered.n_pairs, answered.only_a, answered.only_b) == (6, 2, 1)
    assert wrong.p_exact == 1.0 and answered.p_exact == 1.0 and answered.p_mid == pytest.approx(0.625)


def test_zero_by_convention_counts_as_zero() -> None:
    a, b = (Trials.of([1, 1, 0, 0] * 3, decision=d * 3) for d in ([0, 0, 0, 0], [1, 0, 1, 0]))
    assert compare(a, b, ["precision"]).one("precision").delta is None
    row = compare(a, b, ["precision"], protocol=Protocol(zero_undefined=True)).one("precision")
    assert (row.a, row.b, row.delta) == (0.0, 0.5, 0.5) and row.low is not None


def test_a_slice_with_one_class_is_undefined_and_stays() -> None:
    a, b = (Trials.of([1, 0, 1, 1], s, codec=["x", "x", "y", "y"]) for s in ([1, 0, 1, 1], [1, 2, 1, 1]))
    made = compare(a, b, ["eer", "roc_auc"], by="codec")
    row = made.one("roc_auc", codec="y")
    assert (
        row.delta is None
        and row.verdict == "undefined"
        and row.note == "undefined: only positive here; only 2 positive"
    )
    assert str(made.one("roc_auc", average="macro", codec="*").note).startswith("over 1 of 2 slices; no interval")


def test_one_pair() -> None:
    a, b = (Trials.of([1], decision=[d]) for d in (0, 1))
    row = compare(a, b, ["accuracy"]).one("accuracy")
    assert (row.delta, row.p_value, row.verdict) == (1.0, 1.0, "no difference shown")
    assert compare(Trials.of([1], [0.5]), Trials.of([1], [0.7]), ["eer"]).one("eer").delta is None


def test_no_pair_at_all() -> None:
    empty = Trials.of(np.zeros(0, dtype=int), np.zeros(0))
    with pytest.raises(DataError, match="there are no pairs to compare"):
        compare(empty, empty, ["eer"])


def test_a_reversed_run_is_refused() -> None:
    a, _ = two_runs(11, 200)
    b = a.put(score=-a.frame["score"])
    with pytest.raises(DataError, match="higher scores of B go with negative; read it with higher"):
        compare(a, b, ["eer"])
    assert any("different directions" in w for w in compare(a, b, ["eer"], force=True).warnings)
    assert compare(b, b, ["eer"]).one("eer").delta == 0.0


def test_few_replicates_show_a_large_difference_in_a_large_family() -> None:
    """The least p that 100 replicates can count is 0.02, times 30 slices no difference at all: the tail goes on."""
    rng = np.random.default_rng(0)
    label, slices = np.tile([1, 0], 1500), np.repeat(np.arange(30), 100)
    a, b = (Trials.of(label, rng.normal(size=3000) + skill * label, codec=slices) for skill in (0.2, 4.0))
    found = compare(a, b, ["eer"], by="codec", bootstrap=100, force=True)
    rows = [d for d in found if d.slice and not d.average]
    assert len(rows) == 30 and all(d.verdict == "B better" and (d.p_adjusted or 1.0) < 0.01 for d in rows)
    same = compare(a, a, ["eer"], by="codec", bootstrap=100, force=True)
    assert not any(d.verdict in ("A better", "B better") for d in same)


def test_slices_must_say_the_same_in_both_runs() -> None:
    a, b = (Trials.of([1, 0], [1.0, 0.0], codec=c) for c in (["x", "y"], ["x", "z"]))
    with pytest.raises(DataError, match="1 pairs have another codec in A than in B"):
        compare(a, b, ["eer"], by="codec")
    assert len(compare(a, b, ["eer"])) == 1
    plain = Trials.of([1, 0], [1.0, 0.0])
    assert [r.slice for r in compare(plain, b, ["eer"], by="codec", bootstrap=0)][1:3] == [
        {"codec": "x"},
        {"codec": "z"},
    ]


def test_the_same_seed_gives_the_same_digits_and_another_does_not() -> None:
    a, b = two_runs(12, 100)
    one, again, other = (compare(a, b, ["eer", "f1"], seed=s) for s in (0, 0, 1))
    assert one == again and one.signature != other.signature
    assert one.one("f1").low != other.one("f1").low or one.one("f1").p_value != other.one("f1").p_value


def test_a_metric_without_a_form_is_resampled_by_hand() -> None:
    from hitmiss.core.registry import forget, metric

    @metric(best="high")
    def spread(label: Any, score: Any, weight: Any = None) -> float:  # noqa: ARG001
        return float(np.mean(score[label == 1]) - np.mean(score[label == 0]))

    try:
        a, b = two_runs(13, 200)
        row = compare(a, b, ["spread"], bootstrap=2000).one("spread")
        gained = b.score - a.score
        error = math.sqrt(sum(np.var(gained[a.label == k], ddof=1) / (a.label == k).sum() for k in (0, 1)))
        assert row.mdd == pytest.approx(2.8016 * error, rel=0.08) and row.test == "bootstrap"
        assert row.delta == pytest.approx(gained[a.label == 1].mean() - gained[a.label == 0].mean())
        with pytest.raises(UsageError, match="use the bootstrap"):
            compare(a, b, ["spread"], test="permutation")
    finally:
        forget("spread")


@pytest.mark.parametrize("name", ["aurc", "e_aurc", "augrc", "brier_confidence", "accuracy_at_coverage(coverage=0.4)"])
def test_confidences_are_counted_as_the_metric_counts_them(name: str) -> None:
    """The same draws, once counted by confidence and once through the function alone, as a metric of a user is.

    Units are drawn alike for all metrics; trials are drawn for each metric, so that those are given here.
    """
    from hitmiss.core.protocol import Protocol
    from hitmiss.core.registry import forget, metric, resolve
    from hitmiss.engine.columns import Columns
    from hitmiss.engine.paired_draws import _figures
    from hitmiss.engine.prepare import prepare_metric

    _, entry, chosen = resolve(name)

    @metric(best=entry.best, prevalence=entry.prevalence)
    def plainly(label: Any, decision: Any, confidence: Any, weight: Any = None) -> float:
        return entry.function(label, decision, confidence, weight, **chosen)

    rng = np.random.default_rng(4)
    label = np.arange(200) % 2
    sides = [
        Trials.of(
            label,
            decision=np.where(rng.random(200) < skill, label, rng.choice([0, 1, -1], 200)),
            confidence=np.where(rng.random(200) < 0.1, np.nan, np.round(rng.random(200), 1)),
        )
        for skill in (0.4, 0.7)
    ]
    try:
        both = name, "plainly"
        quick, slow = (compare(*sides, [asked], bootstrap=150, unit="item").differences[0] for asked in both)
        places = [rng.integers(0, 200, 200) for _ in range(20)]
        sample = Columns(sides[0]).sample(np.arange(200))
        forms = [prepare_metric(asked, sides[0], Protocol()).form for asked in both]
        drawn = [_figures(form, sample, places) for form in forms]
    finally:
        forget("plainly")
    assert slow.low is not None and slow.p_value is not None
    assert (quick.delta, quick.low, quick.high, quick.p_value, quick.mdd) == pytest.approx(
        (slow.delta, slow.low, slow.high, slow.p_value, slow.mdd), rel=1e-9
    )
    assert drawn[0] == pytest.approx(drawn[1], rel=1e-9)


def test_views() -> None:
    a, b = two_runs(14, 60)
    made = compare(a, b, ["eer", "accuracy"], by="codec", names=("<old>", "new"))
    data = json.loads(made.to_json())
    assert (data["schema"], data["kind"], data["a"], data["b"]) == (1, "comparison", "<old>", "new")
    assert len(data["differences"]) == len(made) == made.to_polars().height
    assert data["differences"][0]["delta"] == made.one("eer").delta
    assert {"codec", "p_adjusted", "verdict"} <= set(made.to_polars().columns)
    html = made._repr_html_()
    assert "A = &lt;old&gt;, B = new" in html and "<old>" not in html
    assert all(f"<th>{d.slice['codec']}</th>" in html for d in made if d.slice and not d.average)
    with pytest.raises(UsageError, match="0 differences of 'eer'"):
        made.one("eer", codec="C99")


def test_what_else_is_asked_changes_no_digit() -> None:
    a, b = two_runs(15, 100)
    alone = {m: compare(a, b, [m]).one(m) for m in ("f1", "mcc", "accuracy")}
    together = compare(a, b, ["mcc", "eer", "f1", "accuracy"], by="codec")
    assert all(together.one(m) == row for m, row in alone.items())


def test_wins_of_precision_are_right_answers() -> None:
    """Whether a trial counts for precision depends on the answer itself, so wins cannot be counted among hits."""
    a, b = (Trials.of([1, 1, 0, 0], decision=d) for d in ([1, 0, 1, 1], [1, 1, 0, 1]))
    row = compare(a, b, ["precision"]).one("precision")
    assert (row.wins, row.ties, row.losses) == (2, 2, 0)


def test_what_resampling_inflates_gets_no_interval_and_no_test() -> None:
    rng = np.random.default_rng(3)
    label = np.arange(300) % 2
    sides = []
    for _ in range(2):
        confidence = np.round(rng.uniform(0.5, 1.0, 300), 2)
        decision = np.where(rng.random(300) < confidence, label, 1 - label)
        codec = ["x" if i % 3 else "y" for i in range(300)]
        sides.append(Trials.of(label, decision=decision, confidence=confidence, codec=codec))
    found = compare(sides[0], sides[1], ["ece", "accuracy", "smooth_ece"], by=["codec"], bootstrap=100)
    for row in found:
        if row.metric == "accuracy":
            assert row.low is not None and row.p_value is not None
        else:
            assert row.a is not None and row.delta == pytest.approx((row.b or 0.0) - row.a)
            assert (row.low, row.high, row.p_value, row.test, row.mdd) == (None,) * 5
            assert row.verdict == "not tested" and f"resampling biases {row.metric}" in (row.note or "")
    alone = compare(sides[0], sides[1], ["accuracy"], by=["codec"], bootstrap=100)
    assert [d for d in found if d.metric == "accuracy"] == list(alone)  # what else is asked changes no digit
