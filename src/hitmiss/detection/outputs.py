"""Turn outputs of models into scores: log-odds of the positive class, from which the probability follows.

| outputs                        | kind          | log-odds of the positive class                           |
|--------------------------------|---------------|----------------------------------------------------------|
| one column, any number         | logit         | the column                                               |
| one column in 0..1             | probability   | ln p − ln(1 − p)                                         |
| two columns or more            | logit         | column − log-sum-exp of the others (two: the difference) |
| two columns or more            | multilabel    | the one column (a sigmoid per label)                     |
| two columns or more, sum 1     | probability   | ln p − ln(1 − p)                                         |
| several in 0..1, not sum 1     | probability   | the same, of the one column (a sigmoid per class)        |
| columns with sum of exp 1      | logit         | log-probabilities are logits                             |
| any number, higher = positive  | raw           | none: the one column is the score as it is               |

Log-odds are kept because probabilities saturate: a softmax in float32 ties thousands of scores at exactly 1. A
probability is never passed through a sigmoid again; one column that could be either is refused until the caller
declares which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeGuard, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.classes import same_class, understand
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detection.detect_spec import OutputKind

Floats = NDArray[np.float64]
Outputs = NDArray[np.floating]
"""Outputs of a model: one row per clip, in the precision of the model."""
OUTPUT_KINDS: Final = get_args(OutputKind)
SUM_TOLERANCE: Final = 1e-3
EXACT_SUM: Final = 1e-5
"""For one row alone, which may come near 1 by chance."""
SAY: Final = "--outputs probability, --outputs logit or --outputs raw (any scale, no probability)"
FIELDS: Final = ("logits", "scores", "probabilities", "probs")
"""Fields that hold the outputs if a model returns a mapping or an object, in this order."""


@dataclass(frozen=True)
class Extraction:
    """How scores are made from outputs; it is part of the configuration of a run.

    `positive_index`: the column of the positive class (None: column 1 of two). `is_reversed`: the single column is
    about the other class.
    """

    positive_index: int | None = None
    kind: OutputKind = "auto"
    is_reversed: bool = False
    says_higher: bool = False
    """Whether the caller declared the class that a higher output means."""

    def settled(self, detector: object, positive: str, width: int | None = None) -> Extraction:
        """Complete it with what the detector declares: the kind of outputs, and which column is the positive class.

        `width`: the number of output columns, if known.
        """
        labels = getattr(detector, "labels", None)
        index = self.positive_index
        if index is None and labels is not None and width != 1:
            index = positive_index_of(labels, positive)
        own: OutputKind = getattr(detector, "output_kind", "auto")
        # The sigmoid or softmax that makes a model's probabilities was taken off: what it gives here are logits.
        is_before = self.kind == "probability" and getattr(detector, "activation", None) is not None
        kind: OutputKind = own if self.kind == "auto" or (is_before and own != "auto") else self.kind
        sides = getattr(detector, "sides", None)
        is_reversed = self.is_reversed
        if sides is not None and width == 1 and not self.says_higher:
            is_reversed = positive_index_of(sides, positive, "--higher, the class that a higher output means") == 0
        return replace(self, positive_index=index, kind=kind, is_reversed=is_reversed)

    def log_odds(self, outputs: object) -> Floats:
        """Return the log-odds of each row."""
        found = to_log_odds(outputs, positive_index=self.positive_index, kind=self.kind)
        return -found if self.is_reversed else found


def to_log_odds(outputs: object, *, positive_index: int | None = None, kind: OutputKind = "auto") -> Floats:
    """Return log-odds of the positive class, one per row; of raw scores the column itself.

    >>> to_log_odds(np.array([[1.0, 3.0], [2.0, 0.0]])).tolist()
    [2.0, -2.0]
    >>> to_log_odds(np.array([0.5]), kind="probability").tolist(), to_log_odds(np.array([2.5])).tolist()
    ([0.0], [2.5])
    >>> to_log_odds(np.array([[0.25, 0.75]])).round(4).tolist()  # sums to 1: already a probability
    [1.0986]
    >>> to_log_odds(np.array([[1.0, 3.0]]), positive_index=0, kind="multilabel").tolist()  # labels that exclude nothing
    [1.0]
    """
    if kind not in OUTPUT_KINDS:
        raise UnknownName("output kind", kind, OUTPUT_KINDS)
    columns = _columns(pick_output(outputs))
    settled = _settle(columns) if kind == "auto" else kind
    if columns.shape[1] == 1:
        return columns[:, 0] if settled != "probability" else _log_odds(_checked(columns)[:, 0])
    at = _index(columns.shape[1], positive_index)
    if settled in ("multilabel", "raw"):
        return columns[:, at]
    if settled == "logit":
        others = np.delete(columns, at, axis=1)
        return np.asarray(columns[:, at] - _log_sum_exp(others))
    return _log_odds_of_column(_checked(columns), at)


def settled_kind(outputs: object, traced: OutputKind = "auto") -> OutputKind:
    """Return whether the outputs of several items are logits or probabilities; raise an error if this is ambiguous.

    `traced` is what the steps of the model show; rows of 0..1 that sum to 1 are probabilities whatever made them.

    >>> settled_kind(np.array([[0.25, 0.75], [0.5, 0.5]])), settled_kind(np.array([0.3, -1.5]))
    ('probability', 'logit')
    >>> settled_kind(np.array([[0.25, 0.75], [0.5, 0.5]]), "logit"), settled_kind(np.array([0.3, 0.5]), "logit")
    ('probability', 'logit')
    """
    columns = _columns(pick_output(outputs))
    if traced == "auto":
        return _settle(columns)
    return "probability" if traced == "logit" and are_distributions(columns) else traced


def are_distributions(columns: Floats) -> bool:
    """Return whether every row holds two or more probabilities that sum to 1; a single row must do so exactly."""
    if columns.ndim != 2 or columns.shape[1] < 2 or not len(columns):
        return False
    inside = bool(((columns >= 0) & (columns <= 1)).all())
    tolerance = SUM_TOLERANCE if len(columns) > 1 else EXACT_SUM
    return inside and bool(np.allclose(columns.sum(axis=1), 1.0, atol=tolerance, rtol=0))


def to_probability(log_odds: ArrayLike) -> Floats:
    """Convert log-odds to probabilities.

    >>> to_probability([0.0, -1000.0, np.inf]).tolist()
    [0.5, 0.0, 1.0]
    """
    x = np.asarray(log_odds, dtype=np.float64)
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def pick_output(raw: object) -> Outputs:
    """Return the array of outputs in the result of a model.

    Arrays and tensors are used directly; a mapping or an object by its field `logits` (or scores, probabilities,
    probs); of a tuple the only array with one row per clip and one or two dimensions, or the only such with one or two
    columns, as in the `(hidden, logits)` of many spoofing detectors. Anything else is an error that names the shapes.

    >>> pick_output((np.zeros((3, 160)), np.ones((3, 2)))).shape
    (3, 2)
    """
    value = pick_raw(raw)
    if hasattr(value, "detach"):  # a torch tensor; bfloat16 has no numpy form
        value = value.detach().cpu().float().numpy() if value.is_floating_point() else value.detach().cpu().numpy()
    array = np.atleast_1d(np.asarray(value))
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def pick_raw(raw: object) -> Any:
    """Return what `pick_output` picks, in the form that the model returned."""
    if _is_array(raw):
        return raw
    for field in FIELDS:
        inner = raw.get(field) if isinstance(raw, Mapping) else getattr(raw, field, None)
        if _is_array(inner):
            return inner
    parts = list(raw.values()) if isinstance(raw, Mapping) else list(raw) if isinstance(raw, tuple | list) else []
    arrays = [part for part in parts if _is_array(part)]
    shapes = [tuple(np.shape(part)) for part in arrays]
    fitting = [part for part, shape in zip(arrays, shapes, strict=True) if len(shape) in (1, 2) and _is_float(part)]
    narrow = [part for part in fitting if len(np.shape(part)) == 1 or np.shape(part)[1] <= 2]
    if len(fitting) == 1 or len(narrow) == 1:
        return fitting[0] if len(fitting) == 1 else narrow[0]
    raise UsageError.of("which-output", shapes=", ".join(map(str, shapes)) or type(raw).__name__, FIELDS=FIELDS[0])


def positive_index_of(labels: Sequence[str], positive: str, option: str = "--positive-index") -> int:
    """Return the column whose label names the positive class; synonyms count, case is ignored.

    >>> positive_index_of(["Fake", "Real"], "bonafide")
    1
    """
    hits = [i for i, label in enumerate(labels) if same_class(label.strip(), positive)]
    if not hits:  # codes, where the class says what 1 means
        reading = understand([label.strip() for label in labels], positive)
        known = () if reading.problems else reading.positive_words
        hits = [i for i, label in enumerate(labels) if label.strip() in known]
    if len(hits) != 1:
        raise UsageError.of("which-class", labels=tuple(labels[:8]), positive=positive, option=option)
    return hits[0]


def _is_array(value: object) -> TypeGuard[ArrayLike]:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fiub"
    is_list = isinstance(value, list) and bool(value) and all(isinstance(v, int | float | list) for v in value)
    return hasattr(value, "detach") or is_list or isinstance(value, float | np.floating)


def _is_float(value: ArrayLike) -> bool:
    ask = getattr(value, "is_floating_point", None)  # a tensor's
    return bool(ask()) if ask is not None else np.asarray(value).dtype.kind == "f"


def _columns(array: Outputs) -> Floats:
    """Return outputs as row × column; with a single output per row the second axis may be absent."""
    values = np.asarray(array, dtype=np.float64)
    if values.ndim <= 1:
        return values.reshape(-1, 1)
    if values.ndim == 2 and values.shape[1]:
        return values
    squeezed = values.reshape(values.shape[0], *(n for n in values.shape[1:] if n != 1))
    if squeezed.ndim > 2 or not values.size:
        raise DataError.of(
            "wrong-shape", name="outputs", form="one row per clip and one column per class", shape=str(values.shape)
        )
    return squeezed.reshape(len(values), -1)


def _settle(columns: Floats) -> OutputKind:
    """Return whether outputs are logits or probabilities, if this is clear."""
    inside = bool(((columns >= 0) & (columns <= 1)).all())
    if not inside or not len(columns):
        return "logit"
    if columns.shape[1] == 1:
        raise DataError.of("outputs-unknown/all-lie", n_columns=len(columns), SAY=SAY)
    if np.allclose(columns.sum(axis=1), 1.0, atol=SUM_TOLERANCE, rtol=0):
        return "probability"
    raise DataError.of("outputs-unknown/all", columns=columns[0].sum(), SAY=SAY)


def _index(n: int, positive_index: int | None) -> int:
    if positive_index is None:
        if n > 2:
            raise UsageError.of("which-column", n=n, positive="the positive class")
        return 1
    if not -n <= positive_index < n:
        raise UsageError.of("no-output-column", index=positive_index, n=n)
    return positive_index % n


def _checked(columns: Floats) -> Floats:
    wrong = (columns < 0) | (columns > 1)
    if wrong.any():
        raise DataError.of("not-probabilities/outputs", wrong=int(wrong.sum()), columns=columns[wrong][0])
    return columns


def _log_odds_of_column(columns: Floats, at: int) -> Floats:
    """Return the log-odds of a column; the other columns are summed, because 1 − p would lose digits near 1."""
    is_softmax = np.allclose(columns.sum(axis=1), 1.0, atol=SUM_TOLERANCE, rtol=0)
    if not is_softmax:
        return _log_odds(columns[:, at])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(columns[:, at]) - np.log(np.delete(columns, at, axis=1).sum(axis=1)))


def _log_odds(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))


def _log_sum_exp(values: Floats) -> Floats:
    top = values.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = safe + np.log(np.exp(values - safe[:, None]).sum(axis=1))
    return np.asarray(np.where(np.isfinite(top), total, top))
