"""Figures that no registered metric stands for (they need a clean side to compare with), in words: attacks and drift."""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, tuple[str, str, str]]] = {
    "changed": (
        "Changed answers",
        "Share of the records with any label that differs from the clean answer",
        "The documented success rate of an attack; truth plays no part. Best: low. Range: 0..1.",
    ),
    "changed_correct": (
        "Changed answers that were right",
        "The same among the records that were right in every label before",
        "The literature's success rate. Best: low. Range: 0..1.",
    ),
    "exact_match": (
        "Exact match",
        "Share of the records that are right in every label",
        "Best: high. Range: 0..1.",
    ),
    "robust_accuracy": (
        "Robust accuracy",
        "Share of the records that are right in every label both before and after",
        "Accuracy that an attacker who may choose cannot take away. Best: high. Range: 0..1.",
    ),
    "macro_auc": (
        "Macro AUC",
        "Mean over the classes of the area under the ROC curve",
        "Classes with one label only are left out and named. Best: high. Range: 0..1.",
    ),
    "target_success": (
        "Targeted success",
        "Share of all records whose label ends as the attack wants it",
        "Force: the label is 1 afterwards; suppress: it goes from 1 to 0. Best: low. Range: 0..1.",
    ),
    "target_eligible": (
        "Targeted success where possible",
        "The same among the records whose label could change",
        "Best: low. Range: 0..1.",
    ),
    "target_base": (
        "Already as aimed",
        "Share of the records that needed no attack",
        "Range: 0..1.",
    ),
    "flipped": ("Flipped labels", "Share of the records whose label of this class differs", "Best: low. Range: 0..1."),
    "lost": ("Lost labels", "The label goes from 1 to 0, among those at 1", "Best: low. Range: 0..1."),
    "induced": ("Induced labels", "The label goes from 0 to 1, among those at 0", "Best: low. Range: 0..1."),
    "median_minimal_strength": (
        "Median least strength",
        "The strength at which half of the records have flipped",
        "Infinite where most never flip. Best: high.",
    ),
    "l2_mv": ("Size of the change (L2)", "Mean Euclidean norm of the change, in mV", "It describes the attack."),
    "linf_uv": ("Greatest change of a sample", "Mean largest change of any sample, in µV", "It describes the attack."),
    "snr_db": ("Signal to noise", "Mean ratio of signal to change, in dB", "It describes the attack."),
    "smoothness_uv2": (
        "Roughness",
        "Mean squared difference of neighbouring samples of the change, in µV²",
        "It describes the attack: a low one is hard to see.",
    ),
    "far": ("False acceptance", "Share of the fakes accepted at the frozen threshold", "Best: low. Range: 0..1."),
    "frr": ("False rejection", "Share of the reals rejected at the frozen threshold", "Best: low. Range: 0..1."),
    "far_drift": (
        "Drift of false acceptance",
        "False acceptance less that of the same clips when clean",
        "Best: low.",
    ),
    "frr_drift": ("Drift of false rejection", "False rejection less that of the same clips when clean", "Best: low."),
    "shift_fake": ("Shift of fakes", "Mean change of the scores of fakes", "Best: low."),
    "shift_real": ("Shift of reals", "Mean change of the scores of reals", "Best: high."),
    "ece_by_chance": (
        "Calibration error by chance",
        "What a calibrated detector with these confidences exceeds in one of twenty cases",
        "An ECE below it shows nothing.",
    ),
}
"""Name in tables: title, one sentence, the rest."""
SHARES: Final = frozenset(
    ("changed", "changed_correct", "exact_match", "robust_accuracy", "target_success", "target_eligible", "target_base",
     "flipped", "lost", "induced", "far", "frr", "far_drift", "frr_drift")
)  # fmt: skip
"""Those that are shares of records."""
