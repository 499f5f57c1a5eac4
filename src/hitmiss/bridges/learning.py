"""Metrics where models are chosen and trained: a scikit-learn scorer, and `compute_metrics` for transformers' Trainer.

cross_val_score(model, X, y, scoring=scorer("min_dcf"))
Trainer(..., compute_metrics=compute_metrics(["eer", "roc_auc"]))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitmiss.bridges.asking import array, asked, figures
from hitmiss.detect.extract import to_probability
from hitmiss.errors import DataError, EnvironmentFault, UsageError
from hitmiss.registry import Metric
from hitmiss.spec import Spec

NEEDS_SKLEARN = "a scorer needs scikit-learn: pip install scikit-learn"


@dataclass(frozen=True)
class Figure:
    """A metric as a function of (y_true, y_score or y_pred). It pickles, so that folds can run in other processes."""

    metric: str
    positive: Any = 1

    @property
    def __name__(self) -> str:
        """The metric's name, which scikit-learn shows."""
        return asked([self.metric])[0][1].name

    def __call__(self, y_true: Any, y_score: Any, pos_label: Any = None) -> float:
        """The figure. `pos_label`: scikit-learn hands it on, and the figure knows its own."""
        del pos_label
        questions = asked([self.metric])
        ((text, entry, _),) = questions
        label = (np.asarray(y_true) == self.positive).astype(np.int8)
        given = np.asarray(y_score)
        if "decision" in entry.columns:
            given = (given == self.positive).astype(np.float64)
        return figures(questions, label, given, 0.5)[text]


def score_function(metric: str | Spec, positive: Any = 1) -> Figure:
    """A metric as `make_scorer` wants it: a function of (y_true, y_score or y_pred).

    `positive` is the label of the positive class; every other label is negative.

    >>> score_function("roc_auc", positive="real")(["real", "fake"], [0.9, 0.1])
    1.0
    """
    ((text, _, _),) = asked([metric])
    return Figure(text, positive)


def scorer(metric: str | Spec, positive: Any = 1) -> Any:
    """A scorer for `cross_val_score`, `GridSearchCV` and the like: greater is better, so low-is-better is negated.

    Metrics of probabilities (brier, log_loss) get the probability of the positive class, other metrics of scores the
    decision function where there is one, metrics of decisions get predictions. A figure that is undefined in a fold is
    NaN there. The scorer pickles.
    """
    try:
        from sklearn.metrics import make_scorer
    except ImportError:
        raise EnvironmentFault(NEEDS_SKLEARN) from None
    ((_, entry, _),) = asked([metric])
    options: dict[str, Any] = {"response_method": ("decision_function", "predict_proba"), "pos_label": positive}
    if _of_probabilities(entry):
        options["response_method"] = "predict_proba"
    elif "decision" in entry.columns:
        options = {"response_method": "predict"}
    return make_scorer(score_function(metric, positive), greater_is_better=entry.best == "high", **options)


def _of_probabilities(entry: Metric) -> bool:
    return entry.kinds == ("probability",)


def compute_metrics(
    metrics: Sequence[str | Spec], *, positive_index: int | None = None, threshold: float = 0.0
) -> Callable[[Any], dict[str, float]]:
    """A `compute_metrics` for transformers' Trainer: logits to log-odds of the positive class, then every metric.

    Two columns: the second is positive unless `positive_index` says otherwise; more columns need it. One column is taken
    as log-odds. Metrics of decisions decide at `threshold` (log-odds >= 0, as the argmax of two columns); metrics of
    probabilities (brier, log_loss) get the probability that the log-odds stand for.

    >>> compute_metrics(["roc_auc"])(([[2.0, -1.0], [0.0, 3.0]], [0, 1]))
    {'roc_auc': 1.0}
    """
    questions = asked(metrics)

    def computed(prediction: Any) -> dict[str, float]:
        logits, labels = _parts(prediction)
        score, index = log_odds(logits, positive_index)
        label = (array(labels).reshape(-1) == index).astype(np.int8)
        found = figures([q for q in questions if not _of_probabilities(q[1])], label, score, threshold)
        found |= figures([q for q in questions if _of_probabilities(q[1])], label, to_probability(score))
        return {text: found[text] for text, _, _ in questions}

    return computed


def _parts(prediction: Any) -> tuple[Any, Any]:
    if hasattr(prediction, "predictions"):
        given, labels = prediction.predictions, prediction.label_ids
    else:
        given, labels = prediction
    if isinstance(given, tuple):
        given = given[0]
    return given, labels


def log_odds(logits: Any, positive_index: int | None = None) -> tuple[NDArray[np.float64], int]:
    """The log-odds of the positive class, and which label it is.

    >>> log_odds([[0.0, 2.0]])[0].tolist(), log_odds([[1.5]])[0].tolist()
    ([2.0], [1.5])
    """
    values = np.asarray(array(logits), dtype=np.float64)
    if values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1):
        return values.reshape(-1), 1 if positive_index is None else positive_index
    if values.ndim != 2:
        raise DataError(f"logits must have the shape (n,), (n, 1) or (n, classes); found {values.shape}")
    if positive_index is None and values.shape[1] > 2:
        raise UsageError(f"{values.shape[1]} classes: say which is positive with positive_index")
    index = 1 if positive_index is None else positive_index
    if not 0 <= index < values.shape[1]:
        raise UsageError(f"positive_index {index} is none of the {values.shape[1]} classes")
    rest = np.delete(values, index, axis=1)
    return values[:, index] - np.logaddexp.reduce(rest, axis=1), index
