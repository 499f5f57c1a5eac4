"""Figures that no registered metric stands for (they need a clean side to compare with), in words: attacks and drift."""

from __future__ import annotations

from typing import Final, NamedTuple

SHARE, DIFFERENCE = "0..1", "−1..1"
"""Ranges of shares of records, and of differences between them."""
DESCRIBES: Final = "It describes the attack."


class Words(NamedTuple):
    """A figure in words: its title, one sentence, what else is to be said, which way is better, and the range of a share."""

    title: str
    gist: str
    more: str = ""
    best: str = ""
    range: str = ""

    @property
    def text(self) -> str:
        """All that follows the first sentence."""
        ends = (f"Best: {self.best}." if self.best else "", f"Range: {self.range}." if self.range else "")
        return " ".join(filter(None, (self.more, *ends)))


WORDS: Final = {
    "changed": Words("Changed answers", "Share of the records with any label that differs from the clean answer", "The documented success rate of an attack; truth plays no part.", "low", SHARE),
    "changed_correct": Words("Changed answers that were right", "The same among the records that were right in every label before", "The literature's success rate.", "low", SHARE),
    "exact_match": Words("Exact match", "Share of the records that are right in every label", "", "high", SHARE),
    "robust_accuracy": Words("Robust accuracy", "Share of the records that are right in every label both before and after", "Accuracy that an attacker who may choose cannot take away.", "high", SHARE),
    "macro_auc": Words("Macro AUC", "Mean over the classes of the area under the ROC curve", "Classes with one label only are left out and named. Range: 0..1.", "high"),
    "target_success": Words("Targeted success", "Share of all records whose label ends as the attack wants it", "Force: the label is 1 afterwards; suppress: it goes from 1 to 0.", "low", SHARE),
    "target_eligible": Words("Targeted success where possible", "The same among the records whose label could change", "", "low", SHARE),
    "target_base": Words("Already as aimed", "Share of the records that needed no attack", "", "", SHARE),
    "flipped": Words("Flipped labels", "Share of the records whose label of this class differs", "", "low", SHARE),
    "lost": Words("Lost labels", "The label goes from 1 to 0, among those at 1", "", "low", SHARE),
    "induced": Words("Induced labels", "The label goes from 0 to 1, among those at 0", "", "low", SHARE),
    "median_minimal_strength": Words("Median least strength", "The strength at which half of the records have flipped", "Infinite where most never flip.", "high"),
    "l2_mv": Words("Size of the change (L2)", "Mean Euclidean norm of the change, in mV", DESCRIBES),
    "linf_uv": Words("Greatest change of a sample", "Mean largest change of any sample, in µV", DESCRIBES),
    "snr_db": Words("Signal to noise", "Mean ratio of signal to change, in dB", DESCRIBES),
    "smoothness_uv2": Words("Roughness", "Mean squared difference of neighbouring samples of the change, in µV²", f"{DESCRIBES} A low one is hard to see."),
    "far": Words("False acceptance", "Share of the fakes accepted at the frozen threshold", "", "low", SHARE),
    "frr": Words("False rejection", "Share of the reals rejected at the frozen threshold", "", "low", SHARE),
    "far_drift": Words("Drift of false acceptance", "False acceptance less that of the same clips when clean", "", "low", DIFFERENCE),
    "frr_drift": Words("Drift of false rejection", "False rejection less that of the same clips when clean", "", "low", DIFFERENCE),
    "shift_fake": Words("Shift of fakes", "Mean change of the scores of fakes", "", "low"),
    "shift_real": Words("Shift of reals", "Mean change of the scores of reals", "", "high"),
    "ece_by_chance": Words("Calibration error by chance", "What a calibrated detector with these confidences exceeds in one of twenty cases", "An ECE below it shows nothing."),
}  # fmt: skip
"""By name in tables."""
SHARES: Final = frozenset(name for name, words in WORDS.items() if words.range)
"""Those that are shares of records."""
