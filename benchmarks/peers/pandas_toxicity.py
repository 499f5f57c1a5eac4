"""The usual way: pandas reads the predictions, scikit-learn computes, macro and micro by hand.

python pandas_toxicity.py FOLDER OUTPUT [--draws N] LANGUAGE...
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import metrics as sk

COUNTS = ["true_negatives", "false_positives", "false_negatives", "true_positives"]


def figures(y: np.ndarray, p: np.ndarray, d: np.ndarray) -> dict[str, float]:
    """The documented figures of one language."""
    counts = dict(zip(COUNTS, sk.confusion_matrix(y, d, labels=[0, 1]).ravel(), strict=True))
    tn, fp, fn, tp = counts.values()
    return {
        "n_samples": len(y),
        "positive_rate": y.mean(),
        "roc_auc": sk.roc_auc_score(y, p),
        "f1": sk.f1_score(y, d, zero_division=0),
        "precision": sk.precision_score(y, d, zero_division=0),
        "recall": sk.recall_score(y, d, zero_division=0),
        "accuracy": sk.accuracy_score(y, d),
        **counts,
        "specificity": tn / (tn + fp),
        "fpr": fp / (fp + tn),
        "fnr": fn / (fn + tp),
    }


def main(folder: Path, output: Path, languages: list[str], draws: int) -> None:
    """Read, compute, write; with draws also bootstrap F1 and AUC of each language."""
    rows, parts = [], []
    for language in languages:
        frame = pd.read_csv(folder / f"run_{language}.csv")
        part = tuple(frame[c].to_numpy() for c in ("y_true", "y_prob", "y_pred"))
        parts.append(part)
        rows.append({"language": language, **figures(*part)})
    table = pd.DataFrame(rows)
    macro = {"language": "macro", **table.drop(columns=["language", *COUNTS]).mean().to_dict()}
    micro = {"language": "micro", **figures(*(np.concatenate(column) for column in zip(*parts, strict=True)))}
    pd.concat([table, pd.DataFrame([macro, micro])]).to_csv(output, index=False)
    rng = np.random.default_rng(0)
    for y, p, d in parts:
        for _ in range(draws):
            at = np.concatenate([rng.choice(m, len(m)) for m in (np.flatnonzero(y == 1), np.flatnonzero(y == 0))])
            sk.f1_score(y[at], d[at])
            sk.roc_auc_score(y[at], p[at])


if __name__ == "__main__":
    words = sys.argv[1:]
    n = int(words.pop(words.index("--draws") + 1)) if "--draws" in words else 0
    words = [w for w in words if w != "--draws"]
    main(Path(words[0]), Path(words[1]), words[2:], n)
