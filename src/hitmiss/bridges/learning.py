"""Metrics in training loops: on arrays, batch by batch, as scikit-learn scorers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, EnvironmentFault, UsageError
from hitmiss.core.kinds import one_or_several
from hitmiss.core.registry import Metric, MetricSpec, Setting, resolve
from hitmiss.core.sorting import Array
from hitmiss.core.tally import Tally, merge
from hitmiss.detection.outputs import to_probability
from hitmiss.engine.prepare import form_of
from hitmiss.stats.forms.base import Form

# ----------------------------------------------------------------------
# Metrics by name on plain arrays, for loops that have no table of trials.

Asked = tuple[str, Metric, dict[str, Setting]]


def asked(metrics: str | MetricSpec | Sequence[str | MetricSpec]) -> list[Asked]:
    """Return metrics with their settings; refuse one that needs more than labels, scores and decisions."""
    given: tuple[str | MetricSpec, ...] = one_or_several(metrics)
    found = [resolve(m) for m in given]
    for spec, entry, _ in found:
        beyond = [c for c in entry.columns if c not in ("label", "score", "decision")]
        if beyond:
            raise UsageError(f"{spec} needs {', '.join(beyond)}; measure trials that have it with hm.measure")
    return [(str(spec), entry, settings) for spec, entry, settings in found]


def figures(
    questions: Sequence[Asked], label: object, score: object, threshold: float | None = None
) -> dict[str, float]:
    """Return every metric by its text; decisions are `score >= threshold`."""
    truth, values = array(label), array(score)
    decision: NDArray[np.int8] | None = None
    if any("decision" in entry.columns for _, entry, _ in questions):
        if threshold is None:
            names = ", ".join(text for text, entry, _ in questions if "decision" in entry.columns)
            raise UsageError(f"{names} judge decisions: give the threshold, decided is score >= threshold")
        decision = (values >= threshold).astype(np.int8)
    columns = {"label": truth, "score": values, "decision": decision}
    return {
        text: float(entry.function(**{c: columns[c] for c in entry.columns}, **settings))
        for text, entry, settings in questions
    }


def array(values: object) -> Array:
    """Convert anything like an array to numpy; a torch tensor is first detached and moved to the CPU.

    >>> array([1, 2]).tolist()
    [1, 2]
    """
    if hasattr(values, "detach"):
        tensor = values.detach().cpu()
        return np.asarray(tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy())
    return np.asarray(values)


# ----------------------------------------------------------------------
# An accumulator like those of torchmetrics: update batch by batch, merge over processes, compute at the end.
#
#     seen = Accumulator(["eer", "min_dcf"])
#     for batch in loader:
#         seen.update(labels, scores)         # numpy, lists or torch tensors
#     seen.compute()                          # {"eer": 0.08, "min_dcf": 0.21}
#
# It holds tallies, so its figures are exactly those of all trials together, in any order and division into shards.

MOST_PARTS: Final = 64
"""Number of batches that are kept separate before they are merged."""


class Accumulator:
    """Metrics of scores over batches; exact, mergeable, without torch.

    Parameters
    ----------
    metrics
        One metric of scores or several, by name or with settings.

    Raises
    ------
    UsageError
        For a metric that needs more than labels and scores.

    >>> a, b = Accumulator(["roc_auc"]), Accumulator(["roc_auc"])
    >>> a.update([1, 0], [0.9, 0.6])
    >>> b.update([1, 0], [0.4, 0.1])
    >>> a.merge(b).compute()
    {'roc_auc': 0.75}
    """

    def __init__(self, metrics: str | MetricSpec | Sequence[str | MetricSpec]) -> None:
        self._forms: dict[str, Form] = {}
        for text, entry, settings in asked(metrics):
            form = form_of(entry, settings)
            if not isinstance(form, Form):
                raise UsageError(
                    f"{text} is not a metric of scores that can be accumulated; measure it with hm.measure"
                )
            self._forms[text] = form
        self._parts: list[Tally] = []

    def update(self, label: object, score: object) -> None:
        """Count a batch; label 1 = positive, higher score = positive."""
        self._parts.append(Tally.of(array(label).reshape(-1), array(score).reshape(-1)))
        if len(self._parts) > MOST_PARTS:
            self._parts = [merge(self._parts)]

    def merge(self, *others: Accumulator) -> Accumulator:
        """Return this accumulator with the trials of others added; they must have the same metrics."""
        for other in others:
            if [*other._forms] != [*self._forms]:
                raise UsageError("accumulators of other metrics cannot be merged")
            self._parts = [merge([*self._parts, *other._parts])]
        return self

    def compute(self) -> dict[str, float]:
        """Compute every metric over all counted trials; NaN where it is undefined."""
        tally = self.tally
        if not len(tally.score):
            raise DataError("nothing was counted yet: call update first")
        return {text: float(form.value(tally)) for text, form in self._forms.items()}

    @property
    def tally(self) -> Tally:
        """Return the tally of everything counted."""
        self._parts = [merge(self._parts)]
        return self._parts[0]

    def reset(self) -> None:
        """Discard all counts."""
        self._parts = []

    def state(self) -> dict[str, object]:
        """Return arrays to send to another process or store in a file; `Accumulator.add_state` reads them."""
        tally = self.tally
        return {"score": tally.score, "positive": tally.positive_counts, "negative": tally.negative_counts}

    def add_state(self, state: dict[str, object]) -> None:
        """Add the counts in the `state` of another accumulator."""
        counts = [np.asarray(state[name]) for name in ("score", "positive", "negative")]
        self._parts.append(Tally.of_counts(*counts))

    def __len__(self) -> int:
        tally = self.tally
        return int(tally.n_positive + tally.n_negative)


# ----------------------------------------------------------------------
# Metrics for choosing and training models: a scikit-learn scorer, and `compute_metrics` for transformers' Trainer.
#
# cross_val_score(model, X, y, scoring=scorer("min_dcf"))
# Trainer(..., compute_metrics=compute_metrics(["eer", "roc_auc"]))

NEEDS_SKLEARN = "a scorer needs scikit-learn: pip install scikit-learn"


@dataclass(frozen=True)
class Figure:
    """A metric as a function of (y_true, y_score or y_pred). It can be pickled, so folds can run in other processes."""

    metric: str
    positive: object = 1

    @property
    def __name__(self) -> str:
        """The metric's name, which scikit-learn shows."""
        return asked([self.metric])[0][1].name

    def __call__(self, y_true: object, y_score: object, pos_label: object = None) -> float:
        """Compute the figure. scikit-learn passes `pos_label`; it is not used, as the positive class is known."""
        del pos_label
        questions = asked([self.metric])
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
    ((text, _, _),) = asked([metric])
    return Figure(text, positive)


def scorer(metric: str | MetricSpec, positive: object = 1) -> object:
    """Return a scorer for `cross_val_score`, `GridSearchCV` and others; metrics where low is better are negated.

    Metrics of probabilities (brier, log_loss) get the probability of the positive class, other metrics of scores the
    decision function where there is one, metrics of decisions get predictions. A figure that is undefined in a fold is
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
    try:
        from sklearn.metrics import make_scorer
    except ImportError:
        raise EnvironmentFault(NEEDS_SKLEARN) from None
    ((_, entry, _),) = asked([metric])
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
        Takes a prediction of the Trainer and returns the figures by name.

    Raises
    ------
    UsageError
        For a metric that needs more than labels, scores and decisions.

    >>> compute_metrics(["roc_auc"])(([[2.0, -1.0], [0.0, 3.0]], [0, 1]))
    {'roc_auc': 1.0}
    """
    questions = asked(metrics)

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
        raise DataError(f"a prediction is a pair of logits and labels; found {type(prediction).__name__}")
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
        raise DataError(f"logits must have the shape (n,), (n, 1) or (n, classes); found {values.shape}")
    if positive_index is None and values.shape[1] > 2:
        raise UsageError(f"{values.shape[1]} classes: say which is positive with positive_index")
    index = 1 if positive_index is None else positive_index
    if not 0 <= index < values.shape[1]:
        raise UsageError(f"positive_index {index} is not one of the {values.shape[1]} classes")
    rest = np.delete(values, index, axis=1)
    return values[:, index] - np.logaddexp.reduce(rest, axis=1), index
