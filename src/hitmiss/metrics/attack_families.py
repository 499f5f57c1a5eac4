"""Which metrics of attacks belong together: of whole records, of one class, of the attack itself."""

from __future__ import annotations

from typing import Final

NORMS: Final = ("l2_mv", "linf_uv", "snr_db", "smoothness_uv2")
"""Numbers that describe an attack: they have no better or worse direction."""
AIMED: Final = ("target_success", "target_eligible", "target_base")
OF_RECORDS: Final = (
    "changed", "changed_correct", "exact_match", "robust_accuracy", *AIMED, "macro_auc", *NORMS, "median_minimal_strength",
)  # fmt: skip
"""Numbers of whole records, in the order of the tables."""
OF_CLASSES: Final = ("flipped", "lost", "induced", "roc_auc")
"""Numbers of one class."""
UNTOUCHED: Final = ("exact_match", "macro_auc", "roc_auc")
"""Numbers that also exist for records without an attack."""
COMPARED: Final = ("changed", "changed_correct", "robust_accuracy", "exact_match", "macro_auc", *AIMED)
"""Record numbers by which two models are compared, in the order of the tables."""
AGAINST_STRENGTH: Final = (
    "changed",
    "robust_accuracy",
    "exact_match",
    "macro_auc",
    "target_success",
    "target_eligible",
)
"""What is drawn against the strength of an attack."""
CHANGES: Final = ("flipped", "lost", "changed")
"""What says how far an attack changes the labels of a class, the first that was measured."""
