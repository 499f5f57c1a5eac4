"""The domain probe: how well can a linear classifier predict the domain (codec, speaker, …) from frozen embeddings?

        probe_layers({"0": first, "1": second}, labels=codec, groups=speaker)     # one row of numbers per layer

Low accuracy means that the representation does not carry the domain. Accuracy alone says little, so two baselines are
reported with it: the share of the largest class, and the same probe on shuffled labels. If items come in groups (the
coded copies of one utterance, the utterances of one speaker), folds must not split a group, or the probe recognises the
utterance instead of the codec: give `groups`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss._version import __version__
from hitmiss.core import progress
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.finding import Remark
from hitmiss.core.header import Header
from hitmiss.core.packages import need_package
from hitmiss.core.results import Estimate, Results, merged
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.sorting import Array
from hitmiss.core.trials import Trials
from hitmiss.engine.interval import share_interval
from hitmiss.engine.measure import measure_share
from hitmiss.stats.random import Random, generator

Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]

MAX_ITER = 1000
REPLICATES = 1000


@dataclass(frozen=True)
class ProbeResult:
    """The result of the probe in one layer.

    `accuracy` is the mean over the folds; low and high are the ends of its interval, NaN if there were too few units to
    resample. `n_units` is the number of units, None if items are independent.
    """

    accuracy: float
    low: float
    high: float
    balanced_accuracy: float
    majority: float
    shuffled: float | None
    n: int
    n_classes: int
    n_groups: int | None
    folds: int
    notes: tuple[str, ...] = ()
    n_units: int | None = None
    units_effective: float | None = None

    @property
    def chance(self) -> float:
        """The balanced accuracy of a guess: one over the number of classes."""
        return 1 / self.n_classes

    def estimates(self, layer: str | None = None) -> tuple[Estimate, ...]:
        """Return the numbers as rows of results, in the cell of that layer."""
        cell = {} if layer is None else {"layer": layer}
        known = not math.isnan(self.low)
        over = "wilson over items" if self.n_units is None else f"bootstrap over {self.n_units} units"
        row = Estimate("probe_majority", self.majority, n=self.n, slice=cell, settings={"folds": self.folds})
        first = replace(row, metric="probe_accuracy", value=self.accuracy, note="; ".join(self.notes) or None)
        first = replace(first, units=self.n_units, units_effective=self.units_effective)
        return (
            replace(first, low=self.low, high=self.high, method=over) if known else first,
            replace(row, metric="probe_balanced_accuracy", value=self.balanced_accuracy),
            row,
            replace(
                row, metric="probe_shuffled", value=self.shuffled, note="not run" if self.shuffled is None else None
            ),
        )


def probe(
    embeddings: ArrayLike,
    labels: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    unit: ArrayLike | None = None,
    folds: int = 5,
    seed: int = 0,
    level: float = 0.95,
    standardise: bool = True,
    shuffles: int = 5,
) -> ProbeResult:
    """Measure the cross-validated accuracy of a linear probe (logistic regression), with baselines and interval.

    Parameters
    ----------
    embeddings
        Item × dimension.
    labels
        The domain of each item.
    groups
        The group of each item; folds keep each group whole.
    unit
        The unit of each item, for the interval (by default `groups`).
    folds
        The number of stratified folds.
    seed
        The seed of the shuffles and of the resampling.
    level
        The confidence level of the interval.
    standardise
        Scale each dimension to mean 0 and deviation 1 on the training part of each fold.
    shuffles
        The number of label permutations for the shuffled baseline.

    Returns
    -------
    ProbeResult
        The numbers of the table below.

    Raises
    ------
    DataError
        For NaN, infinite or identical embeddings, one class, or a class with fewer items (or groups) than folds.

    Notes
    -----
    | number            | meaning                                                                                  |
    |-------------------|------------------------------------------------------------------------------------------|
    | accuracy          | mean over stratified folds; with `groups`, folds keep each group whole                   |
    | balanced accuracy | mean recall of the classes over all held-out items; a guess gets 1 / classes             |
    | majority          | share of the largest class: what always answering it gets                                |
    | shuffled          | mean accuracy of the same probe on `shuffles` label permutations that respect groups     |
    | low, high         | Wilson over items; with `unit` (default: `groups`) whole units of the held-out answers   |
    |                   | are resampled, Student's interval (Wilson over units if all answers are right, or all    |
    |                   | wrong); the fitted probes are kept fixed                                                 |

    Without `standardise` and without groups, `accuracy` is exactly `cross_val_score(LogisticRegression(max_iter=1000),
    …, cv=5).mean()`. As there, folds are cut in the order of the items, so whether ungrouped copies leak between folds
    depends on how the items are sorted.

    >>> result = probe([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]], ["a", "a", "a", "b", "b", "b"], folds=3, shuffles=0)
    >>> result.accuracy, result.majority, result.n_classes
    (1.0, 0.5, 2)
    """
    x, y = _check_embeddings(embeddings), _check_column(labels, "labels")
    group = None if groups is None else _check_column(groups, "groups")
    drawn = group if unit is None else _check_column(unit, "units")
    _check_sizes(x, y, group, drawn)
    _check_folds(y, group, folds)
    need_package("sklearn", "a probe", "hitmiss[probes]", "scikit-learn")
    answers, settled = _held_out(x, y, _split(x, y, group, folds), standardise)
    notes = (() if settled else (f"a fold did not converge in {MAX_ITER} steps",)) + _copies(x, group)
    low, high, held, few = _interval(answers, drawn, seed, level)
    return ProbeResult(
        accuracy=answers.accuracy,
        low=low,
        high=high,
        balanced_accuracy=float(np.mean([answers.hit[y == c].mean() for c in np.unique(y)])),
        majority=float(np.unique(y, return_counts=True)[1].max() / len(y)),
        shuffled=_shuffled_accuracy(x, y, group, folds, standardise, shuffles, seed),
        n=len(y),
        n_classes=len(np.unique(y)),
        n_groups=None if group is None else len(np.unique(group)),
        folds=folds,
        notes=notes + few,
        n_units=None if held is None else held[0],
        units_effective=None if held is None else held[1],
    )


def accuracy_as_documented(embeddings: ArrayLike, labels: ArrayLike) -> float:
    """Return only the documented number: five stratified folds, no scaling, no groups.

    >>> x = [[0.0], [0.1], [0.2], [0.3], [0.4], [5.0], [5.1], [5.2], [5.3], [5.4]]
    >>> accuracy_as_documented(x, [0] * 5 + [1] * 5)
    1.0
    """
    return probe(embeddings, labels, standardise=False, shuffles=0).accuracy


def probe_layers(
    layers: Mapping[str, ArrayLike],
    labels: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    unit: ArrayLike | None = None,
    folds: int = 5,
    seed: int = 0,
    level: float = 0.95,
    standardise: bool = True,
    shuffles: int = 5,
    data: str = "",
    unit_name: str = "",
) -> Results:
    """Probe each layer, with the same folds in all layers; return results with `slice={"layer": name}`.

    `data` names the data in the signature (a digest), `unit_name` is the column name of `unit`.

    >>> layer = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> found = probe_layers({"0": layer, "1": layer}, ["a", "a", "a", "b", "b", "b"], folds=3, shuffles=0)
    >>> found.one("probe_accuracy", layer="1").value
    1.0
    """
    if not layers:
        raise DataError.of("no-layers/probe")
    groups = None if groups is None else own_groups(groups)
    unit = None if unit is None else own_groups(unit)
    found = {
        name: probe(
            x,
            labels,
            groups=groups,
            unit=unit,
            folds=folds,
            seed=seed,
            level=level,
            standardise=standardise,
            shuffles=shuffles,
        )
        for name, x in progress.each(list(layers.items()), "layers")
    }
    rows = tuple(row for name, result in found.items() for row in result.estimates(name))
    notes = tuple(f"layer {name}: {note}" for name, result in found.items() for note in result.notes)
    scaled, kept = "standardised" if standardise else "unscaled", "grouped" if groups is not None else "ungrouped"
    first = next(iter(found.values()))
    n, held = first.n, first.n_units
    drawn = "" if held is None else f"|unit:{unit_name or 'groups'}({held}),{REPLICATES}"
    drawn += "" if level == 0.95 else f"|level:{level:g}"
    signature = (
        f"hitmiss:{__version__}|probe:logistic_regression(C=1,max_iter={MAX_ITER},{scaled})|folds:{folds},stratified,"
        f"{kept}|shuffles:{shuffles}|seed:{seed}{drawn}|n:{n}{f'|data:{data}' if data else ''}"
    )
    return Results(rows, signature, merged((), notes))


def own_groups(groups: ArrayLike) -> Array:
    """Return groups in which each `-` ("no group") is a group of its own, instead of one group of all such items.

    >>> own_groups(["E_7", "-", "-", "E_7"]).tolist()
    ['E_7', '- 1', '- 2', 'E_7']
    """
    return np.array([f"- {i}" if str(g) == "-" else str(g) for i, g in enumerate(np.asarray(groups).tolist())])


@dataclass(frozen=True)
class _Answers:
    """Which held-out items were predicted correctly, and the fold in which each was held out."""

    hit: NDArray[np.bool_]
    fold: NDArray[np.intp]

    @property
    def weight(self) -> NDArray[np.float64]:
        """The share of each item in the mean over folds."""
        return np.asarray(1.0 / np.bincount(self.fold)[self.fold])

    @property
    def accuracy(self) -> float:
        return float(np.mean([self.hit[self.fold == f].mean() for f in range(self.fold.max() + 1)]))


def _held_out(x: Array, y: Array, folds: Folds, standardise: bool) -> tuple[_Answers, bool]:
    """Return a probe's answers for the items it was not trained on, and whether every fit converged."""
    hit, fold, settled = np.zeros(len(y), dtype=bool), np.zeros(len(y), dtype=np.intp), True
    for k, (train, test) in enumerate(folds):
        answer, converged = _fit_and_answer(x[train], y[train], x[test], standardise)
        hit[test], fold[test], settled = answer == y[test], k, settled and converged
    return _Answers(hit, fold), settled


def _fit_and_answer(x: Array, y: Array, new: Array, standardise: bool) -> tuple[Array, bool]:
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if (y == y[0]).all():  # a shuffle may leave only one class to train on
        return np.full(len(new), y[0]), True
    classifier = LogisticRegression(max_iter=MAX_ITER)
    model = make_pipeline(StandardScaler(), classifier) if standardise else classifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        answer = model.fit(x, y).predict(new)
    return answer, bool(classifier.n_iter_.max() < MAX_ITER)


def _split(x: Array, y: Array, group: Array | None, folds: int) -> Folds:
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    if group is None:
        return list(StratifiedKFold(folds).split(x, y))
    return [(train, test) for train, test in StratifiedGroupKFold(folds).split(x, y, group) if len(test)]


def _shuffled_accuracy(
    x: Array, y: Array, group: Array | None, folds: int, standardise: bool, shuffles: int, seed: int
) -> float | None:
    found = []
    for k in range(shuffles):
        progress.report("labels shuffled", k + 1, shuffles + 1)
        mixed = _shuffle(y, group, generator(seed, "probe", "shuffle", k))
        found.append(_held_out(x, mixed, _split(x, mixed, group, folds), standardise)[0].accuracy)
    return float(np.mean(found)) if found else None


def _shuffle(y: Array, group: Array | None, rng: Random) -> Array:
    """Permute labels; with groups, the labels of a group stay together but move to other groups' items."""
    if group is None:
        return np.asarray(rng.permutation(y))
    items = np.argsort(group, kind="stable")
    blocks = list(_blocks(group[items]))
    moved = np.concatenate([rng.permutation(y[items][blocks[k]]) for k in rng.permutation(len(blocks))])
    mixed = np.empty_like(y)
    mixed[items] = moved
    return mixed


def _blocks(ordered: Array) -> Iterator[slice]:
    edges = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(ordered)]
    return (slice(a, b) for a, b in pairwise(edges))


def _interval(
    answers: _Answers, unit: Array | None, seed: int, level: float
) -> tuple[float, float, tuple[int, float] | None, tuple[str, ...]]:
    """Return the ends, the number of resampled units (all, effective), and notes."""
    accuracy, n = answers.accuracy, len(answers.hit)
    if unit is None:
        return *share_interval(accuracy * n, n, level), None, ()
    held = len(np.unique(unit))
    if held < 2:
        return math.nan, math.nan, (held, float(held)), (Remark.of("no-interval/unit-alone"),)
    header = Header(numbers=("hit", "share"))
    items = Trials.of(np.ones(n), header=header, hit=answers.hit, share=answers.weight, unit=unit)
    (found,) = measure_share(items, "hit", SamplingPlan(REPLICATES, ("unit",), seed, level), of="share")
    low, high = (math.nan if end is None else end for end in (found.low, found.high))
    few = () if found.low is not None or found.note is None else (found.note,)
    return low, high, (held, found.units_effective or 0.0), few


def _copies(x: Array, group: Array | None) -> tuple[str, ...]:
    again = len(x) - len({hash(row.tobytes()) for row in x}) if group is None else 0
    return (f"{again} items repeat another item exactly; give groups, or folds share them",) if again else ()


def _check_embeddings(embeddings: ArrayLike) -> Array:
    x = np.asarray(embeddings)
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    if x.ndim != 2 or 0 in x.shape:
        raise DataError.of("wrong-shape", name="embeddings", form="items × dimensions", shape=str(x.shape))
    if not np.isfinite(x).all():
        rows = np.flatnonzero(~np.isfinite(x).all(axis=1))
        raise DataError.of("not-finite/embeddings", n_rows=len(rows), n_x=len(x), rows=rows[0])
    if (x == x[0]).all():
        raise DataError.of("equal-embeddings")
    return x


def _check_column(values: ArrayLike, what: str) -> Array:
    column = np.asarray(values)
    if column.ndim != 1:
        raise DataError.of("not-flat", name=what, shape=str(column.shape))
    missing = [i for i, v in enumerate(column.tolist()) if v is None or v != v]
    if missing:
        raise DataError.of(
            "missing-values", n_missing=len(missing), n_column=len(column), what=what, missing=missing[0]
        )
    return column.astype(str) if column.dtype == object else column


def _check_sizes(x: Array, y: Array, group: Array | None, unit: Array | None) -> None:
    sizes = {"embeddings": len(x), "labels": len(y)} | ({} if group is None else {"groups": len(group)})
    sizes |= {} if unit is None else {"units": len(unit)}
    if len(set(sizes.values())) > 1:
        raise DataError.of("unequal-counts/probe", sizes=sizes)


def _check_folds(y: Array, group: Array | None, folds: int) -> None:
    """Check that every class can occur in every fold."""
    if folds < 2:
        raise UsageError.of("out-of-range/least", name="folds", least=2, found=folds)
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise DataError.of("one-class/probe", y=y[0])
    of = "items"
    if group is not None:
        counts, of = np.array([len(np.unique(group[y == c])) for c in classes]), "groups"
    scarce = [f"{c} ({n})" for c, n in zip(classes, counts, strict=True) if n < folds]
    if scarce:
        raise DataError.of("too-many-folds", of=of, folds=folds, scarce=tuple(scarce))
