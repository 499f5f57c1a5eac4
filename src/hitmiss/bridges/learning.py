"""Metrics for choosing and training models: a scikit-learn scorer, and `compute_metrics` for transformers' Trainer.

cross_val_score(model, X, y, scoring=scorer("min_dcf"))
Trainer(..., compute_metrics=compute_metrics(["eer", "roc_auc"]))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hitmiss.bridges.arrays import array, asked_metrics, figures
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.metric import Metric
from hitmiss.core.metric_spec import MetricSpec
from hitmiss.core.packages import need_package
from hitmiss.detection.outputs import to_probability


@dataclass(frozen=True)
class Figure:
    """A metric as a function of (y_true, y_score or y_pred). It can be pickled, so folds can run in other processes."""

    metric: str
    positive: object = 1

    @property
    def __name__(self) -> str:
        """The metric's name, which scikit-learn shows."""
        return asked_metrics([self.metric])[0][1].name

    def __call__(self, y_true: object, y_score: object, pos_label: object = None) -> float:
        """Compute the number. scikit-learn passes `pos_label`; it is not used, as the positive class is known."""
        del pos_label
        questions = asked_metrics([self.metric])
        ((text, entry, _),) = questions
        label = (np.asarray(y_true) == self.positive).astype(np.int8)
        given = np.asarray(y_score)
        if "decision" in entry.columns:
            given = (given == self.positive).astype(np.float64)
        return figures(questions, label, given, 0.5)[text]


def score_function(metric: str | MetricSpec, positive: object = 1) -> Figure:
    """Return a metric as `make_scorer` needs it: a function of (y_true, y_score or y_pred).

    `positive` is the label of the positive class; every other label is negative.

    >>> score_function("roc_auc", positive="real")(["real", "fake"], [0.9, 0.1])
    1.0
    """
    ((text, _, _),) = asked_metrics([metric])
    return Figure(text, positive)


def scorer(metric: str | MetricSpec, positive: object = 1) -> object:
    """Return a scorer for `cross_val_score`, `GridSearchCV` and others; metrics where low is better are negated.

    Metrics of probabilities (brier, log_loss) get the probability of the positive class, other metrics of scores the
    decision function where there is one, metrics of decisions get predictions. A number that is undefined in a fold is
    NaN there. The scorer pickles.

    Parameters
    ----------
    metric
        A metric by name or with settings.
    positive
        The label of the positive class.

    Returns
    -------
    object
        A scorer of scikit-learn.

    Raises
    ------
    UsageError
        For an unknown metric, or one that needs more than labels, scores and decisions.
    EnvironmentFault
        If scikit-learn is not installed.

    >>> from sklearn.linear_model import LogisticRegression
    >>> x, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> scorer("eer")(LogisticRegression().fit(x, y), x, y)
    -0.0
    """
    make_scorer = need_package("sklearn.metrics", "a scorer", "hitmiss[probes]", "scikit-learn").make_scorer
    ((_, entry, _),) = asked_metrics([metric])
    made = partial(make_scorer, score_function(metric, positive), greater_is_better=entry.best == "high")
    if _of_probabilities(entry):
        return made(response_method="predict_proba", pos_label=positive)
    if "decision" in entry.columns:
        return made(response_method="predict")
    return made(response_method=("decision_function", "predict_proba"), pos_label=positive)


def _of_probabilities(entry: Metric) -> bool:
    return entry.kinds == ("probability",)


def compute_metrics(
    metrics: Sequence[str | MetricSpec], *, positive_index: int | None = None, threshold: float = 0.0
) -> Callable[[object], dict[str, float]]:
    """Return `compute_metrics` for transformers' Trainer: logits become log-odds of the positive class, then metrics.

    Two columns: the second is positive unless `positive_index` says otherwise; more columns need it. One column is taken
    as log-odds. Metrics of decisions decide at `threshold` (log-odds >= 0, as the argmax of two columns); metrics of
    probabilities (brier, log_loss) get the probability that the log-odds represent.

    Parameters
    ----------
    metrics
        Metrics by name or with settings.
    positive_index
        The column of the positive class.
    threshold
        The log-odds from which a decision is positive.

    Returns
    -------
    function
        Takes a prediction of the Trainer and returns the numbers by name.

    Raises
    ------
    UsageError
        For a metric that needs more than labels, scores and decisions.

    >>> compute_metrics(["roc_auc"])(([[2.0, -1.0], [0.0, 3.0]], [0, 1]))
    {'roc_auc': 1.0}
    """
    questions = asked_metrics(metrics)

    def computed(prediction: object) -> dict[str, float]:
        logits, labels = _parts(prediction)
        score, index = log_odds(logits, positive_index)
        label = (array(labels).reshape(-1) == index).astype(np.int8)
        found = figures([q for q in questions if not _of_probabilities(q[1])], label, score, threshold)
        found |= figures([q for q in questions if _of_probabilities(q[1])], label, to_probability(score))
        return {text: found[text] for text, _, _ in questions}

    return computed


def _parts(prediction: object) -> tuple[object, object]:
    if hasattr(prediction, "predictions"):
        given, labels = prediction.predictions, getattr(prediction, "label_ids", None)
    elif isinstance(prediction, tuple | list) and len(prediction) == 2:
        given, labels = prediction
    else:
        raise DataError.of("bad-prediction", name=type(prediction).__name__)
    if isinstance(given, tuple):
        given = given[0]
    return given, labels


def log_odds(logits: object, positive_index: int | None = None) -> tuple[NDArray[np.float64], int]:
    """Return the log-odds of the positive class, and which label it is.

    >>> log_odds([[0.0, 2.0]])[0].tolist(), log_odds([[1.5]])[0].tolist()
    ([2.0], [1.5])
    """
    values = np.asarray(array(logits), dtype=np.float64)
    if values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1):
        return values.reshape(-1), 1 if positive_index is None else positive_index
    if values.ndim != 2:
        raise DataError.of("wrong-shape", name="logits", form="(n,), (n, 1) or (n, classes)", shape=str(values.shape))
    if positive_index is None and values.shape[1] > 2:
        raise UsageError.of("which-column", n=values.shape[1], positive="the positive class")
    index = 1 if positive_index is None else positive_index
    if not 0 <= index < values.shape[1]:
        raise UsageError.of("no-output-column", index=index, n=values.shape[1])
    rest = np.delete(values, index, axis=1)
    return values[:, index] - np.logaddexp.reduce(rest, axis=1), index
