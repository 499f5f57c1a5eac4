"""ASVspoof 5 Track 1, with the function names of the ASVspoof 5 evaluation document.

Conventions
-----------
Positive = bona fide, higher score = bona fide. `scores` and `labels` may be lists, numpy arrays, pandas Series with any
index, or polars Series: they are matched by position, never by index.

Labels. Words say themselves what they mean ("bonafide", "spoof"). Numbers and truth values do not, and the evaluation
document reads them in opposite ways: its docstring has 0 = bona fide and 1 = spoof, its per-domain code passes
`key == "bonafide"`, so True means bona fide. Say which label is bona fide: `bonafide=0`, `bonafide=1` or
`bonafide=True`. Without it both are read as documented, and a warning (`AssumedMeaning`) names the mapping.

minDCF. `compute_min_dcf` keeps the documented defaults (costs 1 and 1, p_target = P(bona fide) = 0.05). The
official parameters are P_spoof 0.05, C_miss 1, C_fa 10, i.e. `compute_min_dcf(s, y, **OFFICIAL)`. The two are different
numbers; the result shows its parameters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.classes import understand
from hitmiss.core.errors import AssumedMeaning, DataError, UsageError
from hitmiss.core.registry import all_metrics
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally, check_trials
from hitmiss.engine.drawn import Drawn
from hitmiss.engine.interval import ends_of_draws
from hitmiss.engine.prepare import form_of
from hitmiss.metrics import detection
from hitmiss.probes.domain import accuracy_as_documented
from hitmiss.stats import jackknife
from hitmiss.stats.cells import cut
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.trials import OfCounts
from hitmiss.stats.forms.whole import Whole
from hitmiss.stats.random import Random, generator
from hitmiss.stats.replicates import resampled, trial_replicates

if TYPE_CHECKING:
    import pandas as pd

OFFICIAL: Final = {"c_miss": 1.0, "c_fa": 10.0, "p_target": 0.95}
"""The parameters of the official evaluation package, for `compute_min_dcf(scores, labels, **OFFICIAL)`."""

NONE: Final = "NONE"


class MinDcf(float):
    """A minimum cost that also shows the parameters it was computed with.

    >>> MinDcf(0.5, {"p_target": 0.95, "c_miss": 1.0, "c_fa": 10.0})
    MinDcf(0.5; p_target=0.95, c_miss=1, c_fa=10)
    """

    parameters: dict[str, float]

    def __new__(cls, value: float, parameters: dict[str, float]) -> MinDcf:
        made = super().__new__(cls, value)
        made.parameters = parameters
        return made

    def __repr__(self) -> str:
        return f"MinDcf({float(self)!r}; {', '.join(f'{k}={v:g}' for k, v in self.parameters.items())})"


Values = Iterable[object]
"""Scores or labels: a list, an array or a pandas Series."""
MetricFunction = Callable[..., float | tuple[float, ...]]
Bonafide = int | bool | str | None
"""The label that means bona fide; None: as documented, with a warning where labels are numbers or truth values."""


def compute_min_dcf(
    scores: Values,
    labels: Values,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    p_target: float = 0.05,
    *,
    bonafide: Bonafide = None,
) -> float:
    """Compute the minimum detection cost, normalised by the better trivial system; p_target is P(bona fide).

    >>> compute_min_dcf([0.9, 0.6, 0.4, 0.1], ["bonafide", "bonafide", "spoof", "spoof"])
    MinDcf(0.0; p_target=0.05, c_miss=1, c_fa=1)
    """
    positive = is_bonafide(labels, bonafide)
    value = detection.min_dcf(positive, _array(scores), p_target=p_target, c_miss=c_miss, c_fa=c_fa)
    return MinDcf(value, {"p_target": p_target, "c_miss": c_miss, "c_fa": c_fa})


def compute_eer(scores: Values, labels: Values, *, bonafide: Bonafide = None) -> tuple[float, float]:
    """Compute the official equal error rate and its threshold (the last rejected score: accept if score > threshold).

    `bonafide` says which label is bona fide. Without it integers are read as documented (0 = bona fide, 1 = spoof) and
    truth values as "is it bona fide?", each with a warning that says so.

    >>> compute_eer([0.9, 0.6, 0.4, 0.1], ["bonafide", "bonafide", "spoof", "spoof"])
    (0.0, 0.4)
    >>> compute_eer([0.9, 0.6, 0.4, 0.1], [0, 0, 1, 1], bonafide=0)
    (0.0, 0.4)
    >>> compute_eer([0.9, 0.6, 0.4, 0.1], [True, True, False, False], bonafide=True)
    (0.0, 0.4)
    """
    positive, values = is_bonafide(labels, bonafide), _array(scores)
    rate = detection.eer(positive, values, ties="official")
    return rate, detection.eer_threshold(positive, values, ties="official")


def evaluate_per_domain(
    df: pd.DataFrame,
    score_col: str = "score",
    label_col: str = "key",
    domain_col: str = "codec",
    *,
    bonafide: Bonafide = None,
) -> pd.DataFrame:
    """Compute EER and minDCF of each domain, with the documented columns domain, n_samples, eer and min_dcf, and more.

    The domain is normalised (`-`, and `0` for CODEC_Q, become NONE), so no row is lost. `min_dcf` has the documented
    default parameters, `min_dcf_official` the official ones. A domain with one class has NaN and the reason.
    """
    import pandas as pd

    scores, labels, domains = (_column(df, c) for c in (score_col, label_col, domain_col))
    positive, values = is_bonafide(labels, bonafide), _array(scores)
    named = normalize_domain(domains, domain_col)
    rows = [_domain_row(d, positive[named == d], values[named == d]) for d in sorted(set(named.tolist()))]
    return pd.DataFrame(rows)


def _domain_row(domain: str, positive: NDArray[np.bool_], values: Floats) -> dict[str, object]:
    n, n_bonafide = len(values), int(positive.sum())
    note = "" if 0 < n_bonafide < n else f"undefined: only {'bonafide' if n_bonafide else 'spoof'} here"
    return {
        "domain": domain,
        "n_samples": n,
        "eer": detection.eer(positive, values, ties="official"),
        "min_dcf": detection.min_dcf(positive, values, p_target=0.05, c_miss=1.0, c_fa=1.0),
        "min_dcf_official": detection.min_dcf(positive, values),  # the defaults are the official ones
        "n_bonafide": n_bonafide,
        "note": note,
    }


def normalize_domain(values: Values, column: str = "codec") -> Array:
    """Normalise domain values for reporting: `-` becomes NONE, and so does `0` in a quality column (CODEC_Q).

    >>> normalize_domain(["-", "C01"]).tolist(), normalize_domain(["0", 2, "-"], "CODEC_Q").tolist()
    (['NONE', 'C01'], ['NONE', '2', 'NONE'])
    """
    uncoded = {"-", "0"} if column.lower() in ("codec_q", "codec_quality", "quality") else {"-"}
    return np.array([NONE if str(v) in uncoded else str(v) for v in _list(values)], dtype=object)


def train_domain_probe(embeddings: ArrayLike, domain_labels: Values) -> float:
    """Return the accuracy of a linear classifier that predicts the domain from embeddings (five folds, as documented).

    Lower is more domain-invariant; `hitmiss.probes.domain.probe` adds balanced accuracy, baselines, an interval and
    folds that keep copies of one utterance together.
    """
    return accuracy_as_documented(np.asarray(embeddings), np.asarray(_list(domain_labels)))


def bootstrap_ci(
    scores: Values,
    labels: Values,
    metric_fn: MetricFunction,
    n_bootstrap: int = 1000,
    ci: float = 0.95,
    *,
    seed: int = 0,
    bonafide: Bonafide = None,
) -> tuple[float, float, float]:
    """Return (estimate, low, high): the sample's value and its percentile interval, trials drawn within each class.

    A minimum cost (`compute_min_dcf`) gets an interval that is corrected for the optimism of a minimum.

    `metric_fn(scores, labels)` may be any function; where it returns a tuple, its first entry counts. The functions of
    this module and of `hitmiss.metrics` take the fast way. The same seed gives the same digits.

    >>> key = ["bonafide", "bonafide", "spoof", "spoof", "bonafide", "spoof"]
    >>> estimate, low, high = bootstrap_ci([3, 2, 1, 0, 2.5, 0.5], key, compute_min_dcf, n_bootstrap=200)
    >>> low <= estimate <= high
    True
    """
    positive, values = is_bonafide(labels, bonafide), _array(scores)
    check_trials(positive, values)
    rng = generator(seed, "bootstrap_ci")
    form = _form_of(metric_fn)
    if form is None:
        given = np.asarray(_list(labels))
        estimate = _first(metric_fn(values, given))
        drawn = Drawn(estimate, replicates=_resampled(metric_fn, given, positive, values, n_bootstrap, rng))
        return estimate, *ends_of_draws(Whole(lambda _: estimate), drawn, SamplingPlan(level=ci, method="percentile"))
    tally = Tally.of(positive, values)
    estimate, second = form.value(tally), form.beside(tally)
    replicates = trial_replicates(tally, [form] if second is None else [form, second], n_bootstrap, rng)
    if second is None:
        drawn = Drawn(estimate, replicates=replicates[0])
        return estimate, *ends_of_draws(form, drawn, SamplingPlan(level=ci, method="percentile"))
    # a minimum cost is optimistic; its percentile interval covers too rarely
    drawn = Drawn(
        estimate,
        (0.0, 1.0),
        replicates=replicates[0],
        beside=(second, replicates[1]),
        acceleration=lambda own: jackknife.acceleration_of_trials(own, cut(tally, [own])),
    )
    return estimate, *ends_of_draws(form, drawn, SamplingPlan(level=ci))


def _resampled(
    metric_fn: MetricFunction,
    labels: Array,
    positive: NDArray[np.bool_],
    values: Floats,
    n: int,
    rng: Random,
) -> Floats:
    """Resample any function by brute force: it gets the drawn scores and labels exactly as the caller wrote them."""
    places = np.arange(len(values), dtype=np.float64)  # drawn like scores, so that both arrays can be indexed

    def figure(_: object, drawn: Floats) -> float:
        rows = drawn.astype(np.intp)
        return _first(metric_fn(values[rows], labels[rows]))

    return resampled(figure, positive, places, n, rng)


def _form_of(metric_fn: MetricFunction) -> Form | None:
    """Return the engine's form of a function that it knows, with the defaults of that function."""
    if metric_fn is compute_eer:
        return detection.eer_form("official")
    if metric_fn is compute_min_dcf:
        return detection.min_dcf_form(0.05, 1.0, 1.0, True)
    entry = next((m for m in all_metrics().values() if m.function is metric_fn), None)
    if entry is None or entry.form is None:
        return None
    form = form_of(entry, entry.defaults)
    if isinstance(form, OfCounts):
        raise UsageError.of("metric-of-decisions", entry_name=entry.name)
    return form if isinstance(form, Form) else None


def _first(value: float | tuple[float, ...]) -> float:
    return float(value[0] if isinstance(value, tuple) else value)


def is_bonafide(labels: Values, bonafide: Bonafide = None) -> NDArray[np.bool_]:
    """Convert labels to a mask; `bonafide` says which label of numbers or truth values is bona fide.

    >>> is_bonafide([0, 1], 1).tolist(), is_bonafide([True, False], True).tolist(), is_bonafide(["real", "spoof"]).tolist()
    ([False, True], [True, False], [True, False])
    """
    given = np.asarray(_list(labels))
    if given.dtype == np.bool_:
        return np.asarray(given == _meant(bonafide, "truth values", True))
    if given.dtype.kind in "iu" or (given.dtype.kind == "f" and np.isin(given, (0, 1)).all()):
        wrong = ~np.isin(given, (0, 1))
        if wrong.any():
            raise DataError.of("bad-bonafide", given=given[wrong][0])
        return np.asarray(given == int(_meant(bonafide, "integers", 0)))
    words = given.astype(str)
    named = bonafide if isinstance(bonafide, str) else "bonafide"
    reading = understand(sorted(set(words.tolist())), named, None if isinstance(bonafide, str) else "spoof")
    if reading.problems:
        first = reading.problems[0]
        hint = f"; did you mean {first.meant!r}?" if first.meant else ""
        raise DataError.of("unknown-label", part=int((words == first.word).sum()), word=first.word, hint=hint)
    return np.isin(words, reading.positive_words)


def _meant(bonafide: Bonafide, what: str, documented: int | bool) -> int | bool:
    """Return the label that is bona fide: as declared, else as documented, with a warning that names the mapping."""
    if bonafide is None:
        other = not documented if isinstance(documented, bool) else 1 - documented
        warnings.warn(
            f"labels that are {what} were read as documented: {documented} = bona fide, {other} = spoof; say "
            f"bonafide={documented} if this is so, bonafide={other} if not",
            AssumedMeaning,
            stacklevel=4,
        )
        return documented
    if bonafide not in (0, 1):
        raise UsageError.of("bad-bonafide/word", what=what, bonafide=bonafide)
    return bool(bonafide) if isinstance(documented, bool) else int(bonafide)


def _column(df: pd.DataFrame, name: str) -> pd.Series:
    if name not in df.columns:
        raise UsageError.of("missing-column/frame", name=name, columns=str(list(df.columns)))
    return df[name]


def _list(values: Values) -> Array | list[object]:
    """Return values by position: the index of a pandas Series must be ignored."""
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    return values if isinstance(values, np.ndarray) else list(values)


def _array(values: Values) -> Floats:
    return np.asarray(_list(values), dtype=np.float64)
