"""What the functions of numbers refuse: arrays, settings, fits and plans that mean nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.findings.producing import Case, assert_produces

import hitmiss as hm
from hitmiss.core import artifacts
from hitmiss.core.design import Design, LeastConfidence
from hitmiss.core.header import Header
from hitmiss.core.metric_spec import parse
from hitmiss.core.number_bands import NumberBands
from hitmiss.core.read_spec import ReadSpec, refuse_unkind
from hitmiss.core.results import SCHEMA
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials, stack
from hitmiss.derive import bands
from hitmiss.derive.calibration import fit_affine, fit_pav
from hitmiss.derive.cross_validation import cross_validate
from hitmiss.derive.decisions import at_threshold
from hitmiss.derive.fusion import score_matrix
from hitmiss.derive.recalibration import fit_platt, fit_temperature, recalibrate
from hitmiss.derive.score_model import fit_calibration, fit_fused, read_model
from hitmiss.metrics import detection, latency, robustness, selective, tandem, triage
from hitmiss.stats import mcnemar, planning, prevalence
from hitmiss.testing import check_metric

MASKED = np.ma.masked_array([1.0, 0.0], [True, False])
LABELS, SCORES = [1, 0, 1, 0, 1, 0], [3.0, 1.0, 2.0, 0.5, 0.4, 1.5]
ONE_CLASS = Tally.of([1, 1], [0.2, 0.8])


def trials(**columns: object) -> Trials:
    """Six trials with ids."""
    return Trials.of(LABELS, SCORES, item=[f"i{k}" for k in range(6)], **columns)  # type: ignore[arg-type]


def positive(name: str) -> Trials:
    """Six trials whose positive class has this name."""
    made = trials()
    return Trials(made.frame, Header(name, "other", "raw"))


CORE: Sequence[tuple[str, Case]] = [
    ("bad-bands/numbers", lambda: NumberBands.parse("year:1,two")),
    ("bad-bands/order", lambda: NumberBands.parse("year:3,2")),
    ("not-a-number/bands", lambda: NumberBands("year", (1.0,), "year:1").of(pl.Series(["3", "many"]))),
    ("nan-threshold", lambda: LeastConfidence(float("nan"), 0.5)),
    ("design-and-options", lambda: hm.measure(trials(), Design.of(["eer"]), by="codec")),
    ("no-gap", lambda: Design.of(["eer"], gap=True)),
    ("bad-setting", lambda: hm.measure(trials(), "min_dcf(normalize=5)")),
    ("bad-setting/number", lambda: hm.measure(trials(), "min_dcf(p_target=word)")),
    ("bad-call", lambda: hm.measure(trials(), "eer", 1, 2, 3)),  # type: ignore
    ("weight-way", lambda: refuse_unkind("w", None)),
    ("weight-kind/column", lambda: refuse_unkind(None, "frequency")),
    ("several-rows", lambda: hm.measure(stack({"a": trials(), "b": trials()}, "system"), "eer", bootstrap=0)["eer"]),
    ("bad-unit/crossed", lambda: SamplingPlan(unit=("a", "b", "c"))),
    ("bad-draws", lambda: SamplingPlan.parse("a handful of draws")),
    ("not-a-column", lambda: Trials.of([1, 0], [1.0, 2.0], codec="mp3")),
    ("masked-value", lambda: Trials.of([1, 0], [1.0, 2.0], decision=MASKED)),
    ("too-many-rows", lambda: hm.evaluate(
        pl.DataFrame({"id": ["a", "b"], "label": [1, 0], "score": [1.0, 0.0], "w": [10**9, 1]}),
        metrics="eer", weight="w", weight_kind="frequency",
    )),
    ("bad-metric/setting", lambda: parse("eer(**all)")),
    ("bad-metric/value", lambda: parse("eer(ties=f(2))")),
    ("bad-metric/twice", lambda: parse("min_dcf(p_target=0.1, p_target=0.2)")),
    ("metric-without-weight", lambda: hm.metric(best="low")(lambda label, score: 0.0)),
    ("masked-value", lambda: Tally.of([1, 0], MASKED)),
    ("masked-value", lambda: Tally.of(MASKED, [1.0, 0.0])),
    ("unequal-length", lambda: Tally.of([1, 0], [1.0, 2.0, 3.0])),
    ("not-flat", lambda: Tally.of([[1, 0]], [1.0, 2.0])),
    ("not-a-label", lambda: Tally.of([1, 2], [1.0, 2.0])),
    ("unequal-length", lambda: Tally.of_counts([1.0, 2.0], [1], [0, 1])),
    ("unequal-length", lambda: Trials.of([1, 0], [1.0, 2.0, 3.0])),
    ("unlike-headers", lambda: stack({"a": positive("spoof"), "b": positive("fake")}, "system")),
    ("bad-field", lambda: ReadSpec.checked("label_cut", "half")),
    ("bad-form", lambda: Design.from_plain({"level": "high"})),
    ("bad-weight/values", lambda: Trials.of([1, 0], [1.0, 2.0], weight=[1.0, -1.0], weight_kind="frequency")),
    ("empty-score/values", lambda: Trials.from_frame(
        trials().frame.with_columns(score=pl.Series([None, *SCORES[1:]])), trials().header
    )),
    ("nan-score/values", lambda: Trials.of([1, 0], [1.0, float("nan")])),
    ("not-a-probability/values", lambda: Trials.of(
        [1, 0], [0.5, 7.0], header=Header("positive", "negative", "probability")
    )),
    ("labels-name-no-class", lambda: Trials.of(["bonafide", "spoof", "teapot"], [1.0, 2.0, 3.0])),
    ("labels-name-no-class/meant", lambda: Trials.of(["bonafide", "spoof", "bonafied"], [1.0, 2.0, 3.0])),
    ("not-allowed", lambda: Trials.of([1, 0], [1.0, 2.0], decision=[1, 7])),
    ("which-class/label", lambda: Trials.of(["cat", "dog"], [1.0, 2.0])),
    ("open-class/word", lambda: Trials.of(["cat", "dog"], [1.0, 2.0])),
    ("not-registered", lambda: check_metric(lambda label, score, weight=None: 0.0)),
    ("missing-file", lambda: hm.evaluate("nowhere.csv", "eer")),
]  # fmt: skip

METRICS: Sequence[tuple[str, Case]] = [
    ("not-bits", lambda: robustness.changed([0.5, 1.0])),
    ("wrong-shape", lambda: robustness.macro_auc([[1, 0]], [[0.5, 0.5], [0.5, 0.5]])),
    ("bad-confidence", lambda: hm.metrics.ece([1, 0], [1, 0], [0.5, 1.7])),
    ("out-of-range/least", lambda: hm.metrics.ece([1, 0], [1, 0], [0.5, 0.7], bins=0)),
    ("bad-prior/extreme", lambda: detection.bayes_threshold(1.0 - 1e-16, 1.0, 1.0)),
    ("nan-threshold", lambda: hm.metrics.dcf_at([1, 0], [1.0, 0.0], threshold=float("nan"))),
    ("bad-seconds", lambda: latency.p95_seconds([-1.0, 2.0])),
    ("out-of-range/up-to", lambda: selective.accuracy_at_coverage([1, 0], [1, 0], [0.5, 0.7], coverage=0.0)),
    ("out-of-range/up-to", lambda: selective.coverage_at_accuracy([1, 0], [1, 0], [0.5, 0.7], accuracy=1.5)),
    ("cm-asv-kinds", lambda: tandem.t_eer([[1.0]], [[1.0]])),
    ("cm-asv-trials", lambda: tandem.t_eer([[1.0, 2.0], [1.0], [1.0]], [[1.0], [1.0], [1.0]])),
    ("not-flat", lambda: tandem.t_eer([[[1.0]], [1.0], [1.0]], [[1.0], [1.0], [1.0]])),
    ("nan-score", lambda: tandem.t_eer([[float("nan")], [1.0], [1.0]], [[1.0], [1.0], [1.0]])),
    ("bad-prior/sum", lambda: tandem.TandemCosts(p_target=0.9, p_nontarget=0.9, p_spoof=0.1)),
    ("bad-costs/trivial", lambda: tandem.TandemCosts(c_miss=0.0, c_fa=0.0, c_fa_spoof=0.0)),
    ("not-bits", lambda: triage.unparsed_rate([0.5])),
]

STATS: Sequence[tuple[str, Case]] = [
    ("bad-plan/unit", lambda: planning.by_units(1.0, 0.5, 0.1)),
    (
        "no-rate",
        lambda: prevalence.corrected_prevalence(5, 10, sensitivity=1.5, positives=10, specificity=0.9, negatives=10),
    ),
    (
        "unlabelled-group",
        lambda: prevalence.labelled_prevalence(
            5, 10, flagged_positive=0, flagged_labelled=0, passed_positive=1, passed_labelled=3
        ),
    ),
    ("bad-counts/pairs", lambda: mcnemar.exact(-1, 2)),
]

DERIVE: Sequence[tuple[str, Case]] = [
    (
        "no-score",
        lambda: score_matrix(
            {
                "a": trials(),
                "b": Trials.from_frame(
                    trials().frame.with_columns(
                        score=pl.Series([None, *SCORES[1:]]), error=pl.Series(["gone", *[""] * 5])
                    ),
                    trials().header,
                ),
            }
        ),
    ),
    ("other-class", lambda: fit_fused({"a": positive("spoof"), "b": positive("fake")})),
    ("bad-costs/negative", lambda: bands.by_cost(Tally.of(LABELS, SCORES), -1.0, 1.0, 1.0)),
    ("out-of-range", lambda: bands.by_budget(Tally.of(LABELS, SCORES), 1.5)),
    ("one-class", lambda: bands.by_budget(ONE_CLASS, 0.5)),
    ("out-of-range/above", lambda: fit_pav(LABELS, SCORES, misleading=0.0)),
    ("one-class/counted", lambda: fit_affine([1, 1], [0.5, 0.7])),
    ("infinite-score", lambda: fit_affine([1, 0], [float("inf"), 0.7])),
    ("not-probabilities/temperature", lambda: recalibrate(trials(), trials(), "temperature", "score")),
    ("one-class/counted", lambda: fit_platt([1, 1], [0.5, 0.7])),
    ("infinite-score", lambda: fit_platt([1, 0], [float("inf"), 0.7])),
    ("not-probabilities/temperature", lambda: fit_temperature([1, 0], [1.5, 0.7])),
    ("fitted-otherwise/class", lambda: fit_calibration(positive("spoof")).apply(positive("fake"))),
    ("mixed-fit-set", lambda: fit_calibration(stack({"a": trials(), "b": trials()}, "system"))),
    ("out-of-range/least", lambda: cross_validate({"a": trials()}, lambda t: fit_calibration(t["a"]), folds=1)),
    (
        "one-unit",
        lambda: cross_validate({"a": trials(speaker=["s"] * 6)}, lambda t: fit_calibration(t["a"]), unit="speaker"),
    ),
    ("chosen-on-same-data/threshold", lambda: at_threshold(trials(), 1.0, "this data")),
]

CASES = [*CORE, *METRICS, *STATS, *DERIVE]


@pytest.mark.parametrize(("code", "case"), CASES, ids=[case[0] for case in CASES])
def test_produced(code: str, case: Case, tmp_path: Path) -> None:
    assert_produces(code, case, tmp_path)


@pytest.mark.parametrize(
    ("code", "content"),
    [
        ("not-a-file", "{"),
        ("not-a-file/object", "[1]"),
        ("not-a-file/nested", "[" * 100_000),
        ("not-a-file", '{"a": 1, "a": 2}'),
        ("malformed", json.dumps(artifacts.sealed({"schema": SCHEMA, "estimates": 3}))),
    ],
)
def test_files_that_are_not_ours(code: str, content: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(content)
    assert_produces(code, lambda: hm.Results.load("results.json"), tmp_path)


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results.json").write_text("{}" * 20)
    monkeypatch.setattr(artifacts, "MOST_JSON", 10)
    assert_produces("not-a-file/large", lambda: hm.Results.load("results.json"), tmp_path)


def test_a_score_model_of_another_kind(tmp_path: Path) -> None:
    fit_calibration(trials()).write(tmp_path / "m.json")
    data = json.loads((tmp_path / "m.json").read_text())
    assert_produces("not-score-model", lambda: read_model(_sealed(tmp_path, {**data, "schema": 99})), tmp_path)
    assert_produces(
        "malformed-score-model/slopes",
        lambda: read_model(_sealed(tmp_path, {**data, "systems": data["systems"] * 2})),
        tmp_path,
    )


def _sealed(folder: Path, data: dict[str, object]) -> Path:
    data.pop("digest", None)
    (folder / "other.json").write_text(json.dumps(artifacts.sealed(data)))
    return folder / "other.json"
