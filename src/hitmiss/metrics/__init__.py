"""Metrics: arrays in, a number out; `weight` is accepted by all, one class gives NaN, NaN scores are refused.

>>> from hitmiss import metrics
>>> metrics.roc_auc([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1])
0.75

A family of metrics is imported when one of its names is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hitmiss.metrics.by_domain import tpr_at_domain_fpr
    from hitmiss.metrics.calibration import brier, log_loss
    from hitmiss.metrics.confidence import brier_confidence, ece, max_calibration_error, smooth_ece
    from hitmiss.metrics.counts import accuracy, balanced_accuracy, f1, fnr, fpr, mcc, precision, recall, specificity
    from hitmiss.metrics.curves import DetCurve, PrCurve, RocCurve, det_curve, pr_curve, roc_curve
    from hitmiss.metrics.detection import act_dcf, bayes_threshold, cllr, dcf_at, eer, eer_threshold, min_cllr, min_dcf
    from hitmiss.metrics.drift import far_drift, frr_drift, shift_fake, shift_real
    from hitmiss.metrics.latency import median_seconds, p95_seconds
    from hitmiss.metrics.means import mean_grade
    from hitmiss.metrics.operating_points import accuracy_at_eer, act_c_primary, f1_at_eer, min_c_primary
    from hitmiss.metrics.presentation_attacks import iapar
    from hitmiss.metrics.ranking import average_precision, fpr_at_tpr, roc_auc, tpr_at_fpr
    from hitmiss.metrics.robustness import (
        changed,
        changed_correct,
        exact_match,
        flipped,
        induced,
        l2_mv,
        linf_uv,
        lost,
        macro_auc,
        median_minimal_strength,
        robust_accuracy,
        smoothness_uv2,
        snr_db,
        target_base,
        target_eligible,
        target_success,
    )
    from hitmiss.metrics.segments import segment_eer
    from hitmiss.metrics.selective import (
        RiskCoverage,
        accuracy_at_coverage,
        augrc,
        aurc,
        coverage_at_accuracy,
        e_aurc,
        risk_coverage,
    )
    from hitmiss.metrics.tandem import AsvRates, TandemCosts, asv_rates, min_a_dcf, min_t_dcf, t_eer
    from hitmiss.metrics.tandem_trials import min_t_dcf_legacy, sasv_eer, spf_eer, sv_eer
    from hitmiss.metrics.triage import (
        abstain_rate,
        accuracy_answered,
        coverage,
        coverage_fake,
        coverage_real,
        cut_rate,
        error_rate,
        f1_fake,
        f1_real,
        fake_catch_rate,
        fake_slip_rate,
        filtered_rate,
        precision_fake,
        precision_real,
        real_false_flag_rate,
        real_pass_rate,
        recall_fake,
        recall_real,
        refused_rate,
        unparsed_rate,
    )

_NAMES = {
    "by_domain": "tpr_at_domain_fpr",
    "calibration": "brier log_loss",
    "confidence": "brier_confidence ece max_calibration_error smooth_ece",
    "counts": "accuracy balanced_accuracy f1 fnr fpr mcc precision recall specificity",
    "curves": "DetCurve PrCurve RocCurve det_curve pr_curve roc_curve",
    "detection": "act_dcf bayes_threshold cllr dcf_at eer eer_threshold min_cllr min_dcf",
    "drift": "far_drift frr_drift shift_fake shift_real",
    "latency": "median_seconds p95_seconds",
    "means": "mean_grade",
    "operating_points": "accuracy_at_eer act_c_primary f1_at_eer min_c_primary",
    "presentation_attacks": "iapar",
    "ranking": "average_precision fpr_at_tpr roc_auc tpr_at_fpr",
    "robustness": "changed changed_correct exact_match flipped induced l2_mv linf_uv lost macro_auc median_minimal_strength robust_accuracy smoothness_uv2 snr_db target_base target_eligible target_success",
    "segments": "segment_eer",
    "selective": "RiskCoverage accuracy_at_coverage augrc aurc coverage_at_accuracy e_aurc risk_coverage",
    "tandem": "AsvRates TandemCosts asv_rates min_a_dcf min_t_dcf t_eer",
    "tandem_trials": "min_t_dcf_legacy sasv_eer spf_eer sv_eer",
    "triage": "abstain_rate accuracy_answered coverage coverage_fake coverage_real cut_rate error_rate f1_fake f1_real fake_catch_rate fake_slip_rate filtered_rate precision_fake precision_real real_false_flag_rate real_pass_rate recall_fake recall_real refused_rate unparsed_rate",
}
"""The families of metrics, each with its public names."""

HOMES = {name: f"hitmiss.metrics.{family}" for family, names in _NAMES.items() for name in names.split()}
"""Each public name, with the module of its family."""

__all__ = [
    "AsvRates",
    "DetCurve",
    "PrCurve",
    "RiskCoverage",
    "RocCurve",
    "TandemCosts",
    "abstain_rate",
    "accuracy",
    "accuracy_answered",
    "accuracy_at_coverage",
    "accuracy_at_eer",
    "act_c_primary",
    "act_dcf",
    "asv_rates",
    "augrc",
    "aurc",
    "average_precision",
    "balanced_accuracy",
    "bayes_threshold",
    "brier",
    "brier_confidence",
    "changed",
    "changed_correct",
    "cllr",
    "coverage",
    "coverage_at_accuracy",
    "coverage_fake",
    "coverage_real",
    "cut_rate",
    "dcf_at",
    "det_curve",
    "e_aurc",
    "ece",
    "eer",
    "eer_threshold",
    "error_rate",
    "exact_match",
    "f1",
    "f1_at_eer",
    "f1_fake",
    "f1_real",
    "fake_catch_rate",
    "fake_slip_rate",
    "far_drift",
    "filtered_rate",
    "flipped",
    "fnr",
    "fpr",
    "fpr_at_tpr",
    "frr_drift",
    "iapar",
    "induced",
    "l2_mv",
    "linf_uv",
    "log_loss",
    "lost",
    "macro_auc",
    "max_calibration_error",
    "mcc",
    "mean_grade",
    "median_minimal_strength",
    "median_seconds",
    "min_a_dcf",
    "min_c_primary",
    "min_cllr",
    "min_dcf",
    "min_t_dcf",
    "min_t_dcf_legacy",
    "p95_seconds",
    "pr_curve",
    "precision",
    "precision_fake",
    "precision_real",
    "real_false_flag_rate",
    "real_pass_rate",
    "recall",
    "recall_fake",
    "recall_real",
    "refused_rate",
    "risk_coverage",
    "robust_accuracy",
    "roc_auc",
    "roc_curve",
    "sasv_eer",
    "segment_eer",
    "shift_fake",
    "shift_real",
    "smooth_ece",
    "smoothness_uv2",
    "snr_db",
    "specificity",
    "spf_eer",
    "sv_eer",
    "t_eer",
    "target_base",
    "target_eligible",
    "target_success",
    "tpr_at_domain_fpr",
    "tpr_at_fpr",
    "unparsed_rate",
]


def __getattr__(name: str) -> object:
    """Return what is listed above, a family, a metric that is only registered, or one by another usual name: `metrics.auc`."""
    if name in _NAMES:
        return importlib.import_module(f"hitmiss.metrics.{name}")
    if name in HOMES:
        value = globals()[name] = getattr(importlib.import_module(HOMES[name]), name)
        return value
    from hitmiss.core.registry import all_metrics, known_name

    if name.startswith("_") or known_name(name) not in all_metrics():
        raise AttributeError(f"module 'hitmiss.metrics' has no attribute {name!r}")
    return all_metrics()[known_name(name)].function


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *HOMES})
