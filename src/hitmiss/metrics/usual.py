"""Which metrics are taken where nobody names one; the choice stands here, and not where it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OBJECTIVE: Final = "f1"
"""What a threshold maximises."""
AREA: Final = "roc_auc"
"""What says whether scores separate the classes at all, whatever the threshold."""
ERROR: Final = "eer"
"""The error rate of scores without a threshold."""
BY_COLUMN: Final[Mapping[str, tuple[str, ...]]] = {"score": (ERROR, AREA), "decision": ("accuracy", OBJECTIVE)}
"""The metrics to begin with, by what trials have."""
GRADED: Final[Mapping[bool, str]] = {True: "accuracy", False: "mean_grade"}
"""What graded answers of other tools are measured by: with decisions, and without."""
