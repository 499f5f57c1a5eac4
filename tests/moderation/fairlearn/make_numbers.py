"""Write what fairlearn gives for the groups of `groups.csv`: `python make_numbers.py groups.csv > numbers.json`.

`make test-peers` runs it with fairlearn in an environment of its own, and compares. The file that is here was written by
fairlearn 0.15.0.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from fairlearn.metrics import MetricFrame, false_negative_rate, false_positive_rate, selection_rate
from sklearn.metrics import accuracy_score, precision_score, recall_score

METRICS = {
    "fpr": false_positive_rate,
    "fnr": false_negative_rate,
    "flag_rate": selection_rate,
    "accuracy": accuracy_score,
    "recall": recall_score,
    "precision": precision_score,
}


def plain(found: dict[str, object]) -> dict[str, object]:
    """Return a series or frame as plain numbers by their index."""
    return {name: {_key(k): v for k, v in own.items()} if isinstance(own, dict) else own for name, own in found.items()}


def _key(place: object) -> str:
    return ",".join(place) if isinstance(place, tuple) else str(place)


def main(path: str) -> None:
    """Print the numbers."""
    with Path(path).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    truth = [int(r["y_true"]) for r in rows]
    said = [int(float(r["y_prob"]) >= 0.5) for r in rows]
    made: dict[str, object] = {}
    for control in (None, "platform"):
        frame = MetricFrame(
            metrics=METRICS,
            y_true=truth,
            y_pred=said,
            sensitive_features={"language": [r["language"] for r in rows]},
            control_features={control: [r[control] for r in rows]} if control else None,
        )
        found = {
            "difference": frame.difference(method="between_groups"),
            "ratio": frame.ratio(method="between_groups"),
            "by_group": frame.by_group,
        }
        made[control or "none"] = {name: plain(own.to_dict()) for name, own in found.items()}
    json.dump(made, sys.stdout, indent=1, sort_keys=True)


if __name__ == "__main__":
    main(sys.argv[1])
