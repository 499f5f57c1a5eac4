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

__all__ = [
    "DetCurve",
    "PrCurve",
    "RocCurve",
    "accuracy",
    "act_dcf",
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
    "min_cllr",
    "min_dcf",
    "pr_curve",
    "precision",
    "recall",
    "roc_auc",
    "roc_curve",
    "specificity",
    "tpr_at_fpr",
]
