"""Metrics: arrays in, a number out; `weight` is accepted by all, one class gives NaN, NaN scores are refused.

>>> from hitmiss import metrics
>>> metrics.roc_auc([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1])
0.75
"""

from hitmiss.metrics.calibration import brier, log_loss
from hitmiss.metrics.counts import accuracy, balanced_accuracy, f1, fnr, fpr, mcc, precision, recall, specificity
from hitmiss.metrics.curves import DetCurve, PrCurve, RocCurve, det_curve, pr_curve, roc_curve
from hitmiss.metrics.detection import act_dcf, bayes_threshold, cllr, dcf_at, eer, eer_threshold, min_cllr, min_dcf
from hitmiss.metrics.ranking import average_precision, fpr_at_tpr, roc_auc, tpr_at_fpr
from hitmiss.metrics.tandem import AsvRates, TandemCosts, asv_rates, min_a_dcf, min_t_dcf, t_eer

__all__ = [
    "AsvRates",
    "DetCurve",
    "PrCurve",
    "RocCurve",
    "TandemCosts",
    "accuracy",
    "act_dcf",
    "asv_rates",
    "average_precision",
    "balanced_accuracy",
    "bayes_threshold",
    "brier",
    "cllr",
    "dcf_at",
    "det_curve",
    "eer",
    "eer_threshold",
    "f1",
    "fnr",
    "fpr",
    "fpr_at_tpr",
    "log_loss",
    "mcc",
    "min_a_dcf",
    "min_cllr",
    "min_dcf",
    "min_t_dcf",
    "pr_curve",
    "precision",
    "recall",
    "roc_auc",
    "roc_curve",
    "specificity",
    "t_eer",
    "tpr_at_fpr",
]
