"""Turn scores into decisions: at one threshold, per group, or at the best threshold of a tally."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.registry import MetricSpec, resolve
from hitmiss.core.results import SAME_DATA, Remark
from hitmiss.core.scale import ScoreScale
from hitmiss.core.tally import Array, Floats, Tally
from hitmiss.core.trials import Header, Threshold, Trials, demanded, stretches
from hitmiss.core.weights import refuse_sampling
from hitmiss.metrics.counts import Counts, f1_of
from hitmiss.stats.forms import OfCounts

# ----------------------------------------------------------------------
# The best threshold of a tally: over all observed scores (exact), or over the grid that baselines use.

SEARCHES: Final = ("exact", "grid")
GRID: Final = tuple(k / 100 for k in range(10, 91))
"""0.10, 0.11, … 0.90: 81 points."""


@dataclass(frozen=True)
class Choice:
    """A threshold, the value of the metric at it on the data it was chosen on, and how it was searched for."""

    threshold: float
    value: float
    metric: str
    search: str


def best_threshold(
    tally: Tally | Trials,
    maximize: str | MetricSpec = "f1",
    search: str = "exact",
    scale: ScoreScale | None = None,
) -> Choice:
    """Find the threshold (accept if score >= t) at which a metric of decisions is best.

    Parameters
    ----------
    tally
        Trials with scores, or counted trials, as `Tally.of(label, score)` makes them.
    maximize
        The metric. One for which low values are better (`fpr`) is minimised.
    search
        `exact` tries every observed score, so no threshold that accepts at least one trial is better. `grid` tries
        0.10, 0.11, … 0.90.
    scale
        How the scores of a file became those of the tally: the threshold is one of the file. Trials know theirs; the
        scores of a tally are by default those of the file.

    Returns
    -------
    Choice
        The threshold and the value at it; of several equally good thresholds, the lowest. Thresholds at which the
        metric is undefined are never chosen.

    Raises
    ------
    UsageError
        For an unknown search, or a metric that is not computed from decisions.
    DataError
        If there are no trials, or the metric is undefined at every threshold.

    >>> t = Tally.of([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.1])
    >>> best_threshold(t)
    Choice(threshold=0.6, value=0.8571428571428571, metric='f1', search='exact')
    >>> best_threshold(t, search="grid").threshold
    0.11
    """
    if search not in SEARCHES:
        raise UnknownName("search", search, SEARCHES)
    if not isinstance(tally, Tally):
        trials = demanded(tally, "best_threshold")
        refuse_sampling(trials, "the choice of a threshold")
        tally, scale = Tally.of(trials.label, trials.score), scale or trials.header.scale
    scale = scale or ScoreScale()
    if not len(tally.score):
        raise DataError("there are no trials to choose a threshold on")
    is_exact = search == "exact"
    candidates = tally.score if is_exact else np.array([scale.to_inside(t) for t in GRID])
    values = figures_at(tally, candidates, maximize)
    _, entry, _ = resolve(maximize)
    gain = np.where(np.isnan(values), -np.inf, values if entry.best == "high" else -values)
    if not np.isfinite(gain).any():
        raise DataError(f"{maximize} is undefined at every threshold: both classes are needed to choose one")
    best = np.flatnonzero(gain == gain.max())
    place = int(best[-1] if is_exact and scale.is_reversed else best[0])  # the lowest threshold of the file
    threshold = scale.threshold_of(tally, place) if is_exact else GRID[place]
    return Choice(threshold, float(values[place]), str(maximize), search)


def figures_at(tally: Tally, thresholds: ArrayLike, metric: str | MetricSpec = "f1") -> Floats:
    """Compute a metric of decisions at each threshold; NaN where it is undefined.

    >>> figures_at(Tally.of([1, 1, 0], [0.9, 0.4, 0.6]), [0.5, 0.4], "recall")
    array([0.5, 1. ])
    """
    spec, entry, settings = resolve(metric)
    form = entry.form(**settings) if entry.form is not None else None
    if not isinstance(form, OfCounts):
        raise UsageError(f"{spec} is not a metric of decisions; a threshold can be chosen by f1, accuracy, mcc …")
    return form.of_counts(counts_at(tally, thresholds))


def counts_at(tally: Tally, thresholds: ArrayLike) -> Counts[Floats]:
    """Count the decisions at each threshold."""
    points = np.searchsorted(tally.score, np.asarray(thresholds, dtype=np.float64), side="left")
    missed, passed = _wide(tally.positives[points]), _wide(tally.negatives[points])
    return Counts(tp=tally.n_positive - missed, fp=tally.n_negative - passed, fn=missed, tn=passed)


def _wide(counts: Array) -> Array:
    return counts.astype(np.int64) if counts.dtype.kind == "i" else counts


# ----------------------------------------------------------------------
# Scores to decisions: at one threshold, or per group with the thresholds that the data contain.


def at_threshold(trials: Trials, threshold: float, origin: str = "given") -> Trials:
    """Decide trials at a threshold of the scores as their file has them. It is recorded in the header with its origin.

    The class that a higher score means is decided where score >= threshold. Normally this is the positive class. If the
    trials were read with `higher=` the negative class, the positive class is decided where the file has a score below
    the threshold.

    Parameters
    ----------
    trials
        Trials with scores.
    threshold
        The threshold, on the scale and in the direction of the file.
    origin
        Where the threshold comes from. `this data` adds a note that figures at this threshold are optimistic.

    Returns
    -------
    Trials
        The same trials with a column `decision`.

    Raises
    ------
    UsageError
        If the threshold is NaN.

    >>> at_threshold(Trials.of([1, 0], [0.7, 0.2]), 0.5).column("decision").to_list()
    [1, 0]
    """
    if threshold != threshold:
        raise UsageError("a threshold must be a number; found NaN")
    decided = trials.header.scale.accepts(trials.column("score"), threshold).cast(pl.Int8)
    notes = trials.header.notes
    if origin == "this data":
        text = f"the threshold {threshold:g} was chosen on this very data: figures at it are optimistic"
        notes = (*notes, Remark(text, SAME_DATA))
    bound = Threshold(threshold, origin)
    return trials.put(decision=decided).retitle(threshold=bound, decided=told(bound, trials.header), notes=notes)


def told(bound: Threshold, header: Header) -> str:
    """Say what a threshold means for scores of the file, and where it comes from."""
    return f"{header.scale.told(bound.value, header.positive, header.negative)} ({bound.origin})"


@dataclass(frozen=True)
class Deciding:
    """What decides a row: `given` if there is one, else a decision in the data, else its threshold, else `default`.

    With `per_row` every row may have its own threshold.
    """

    given: float | None = None
    default: float | None = 0.5
    default_origin: str = "default"
    per_row: bool = False


@dataclass(frozen=True)
class Rule:
    """How the trials of one group were decided.

    `threshold` is None if the data hold decisions, or one threshold per row.
    """

    threshold: float | None
    origin: str

    def __str__(self) -> str:
        return self.origin if self.threshold is None else f"{self.threshold!r} ({self.origin})"


@dataclass(frozen=True)
class Decided:
    """The decisions, the rule of each group, the threshold of each row (null: not known), and notes for the reader.

    `bound` has a single entry if all rows share one threshold. All thresholds are those of the file.
    """

    decision: pl.Series
    bound: pl.Series
    rules: Mapping[str, Rule]
    notes: tuple[str, ...] = ()


def decide_groups(
    frame: pl.DataFrame,
    deciding: Deciding,
    titles: Mapping[str, str] | None = None,
    scale: ScoreScale = ScoreScale(),  # noqa: B008
) -> Decided:
    """Decide rows with `group, label, score, decision, threshold`; the last two may be null. `>=` means positive.

    Thresholds are those of the file; `scale` says how its scores became those of the frame.

    >>> rows = pl.DataFrame({"group": ["en", "es"], "label": [1, 0], "score": [0.6, 0.6], "decision": [0, None],
    ...                      "threshold": [None, 0.7]}, schema_overrides={"decision": pl.Int8, "threshold": pl.Float64})
    >>> found = decide_groups(rows, Deciding())
    >>> found.decision.to_list(), [str(rule) for rule in found.rules.values()]
    ([0, 0], ['column y_pred', '0.7 (column best_threshold)'])
    """
    names = {"decision": "y_pred", "threshold": "best_threshold", **(titles or {})}
    facts = _facts(frame)
    rows = facts.iter_rows(named=True)
    rules = {row["group"]: _rule(row["decided"], row["bound"], deciding, names) for row in rows}
    bounds = dict(zip(facts["group"], facts["bound"], strict=True))
    bound = _bounds(frame, bounds, rules, deciding)
    at_bound = scale.accepts(frame["score"], bound).cast(pl.Int8)
    decision = at_bound if deciding.given is not None else frame["decision"].fill_null(at_bound)
    notes = [*_said_aloud(rules, names), *_disagreements(frame, decision, at_bound, bounds, rules, names)]
    return Decided(decision.rename("decision"), bound, rules, tuple(notes))


def _facts(frame: pl.DataFrame) -> pl.DataFrame:
    """Return for each group whether it has decisions, and its first threshold."""
    if not frame["decision"].null_count() and not frame["threshold"].null_count():
        found = stretches(frame["group"])
        if found is not None:  # only the first row of each stretch can be the first of its group
            frame = frame[np.cumsum(found[1]) - found[1]]
        firsts = frame.select("group", "threshold").unique("group", keep="first", maintain_order=True)
        return firsts.select("group", decided=pl.lit(True), bound="threshold")
    return frame.group_by("group", maintain_order=True).agg(
        decided=pl.col("decision").count() > 0, bound=pl.col("threshold").drop_nulls().first()
    )


def _rule(decided: bool, bound: float | None, deciding: Deciding, names: Mapping[str, str]) -> Rule:
    if deciding.given is not None:
        return Rule(deciding.given, "given")
    if decided:
        return Rule(None, f"column {names['decision']}")
    if bound is not None and deciding.per_row:
        return Rule(None, f"column {names['threshold']}, row by row")
    if bound is not None:
        return Rule(bound, f"column {names['threshold']}")
    if deciding.default is None:
        raise UsageError(
            "the scores are not probabilities, so there is no default threshold; give one with --threshold, or a "
            f"column {names['threshold']} or {names['decision']}"
        )
    return Rule(deciding.default, deciding.default_origin)


def _bounds(
    frame: pl.DataFrame, bounds: Mapping[str, float | None], rules: Mapping[str, Rule], deciding: Deciding
) -> pl.Series:
    """Return the threshold of each row, or one for all rows; null where a group has decisions but no threshold."""
    if deciding.given is not None:
        return pl.Series([deciding.given])
    if deciding.per_row:
        return frame["threshold"] if deciding.default is None else frame["threshold"].fill_null(deciding.default)
    known = {g: bounds[g] if bounds[g] is not None else rules[g].threshold for g in rules}
    if len(set(known.values())) == 1:
        return pl.Series([*known.values()][:1], dtype=pl.Float64)
    return frame["group"].replace_strict(known, return_dtype=pl.Float64)


def _said_aloud(rules: Mapping[str, Rule], names: Mapping[str, str]) -> list[str]:
    silent = [group for group, rule in rules.items() if rule.origin not in ("given",) and "column" not in rule.origin]
    if not silent:
        return []
    rule = rules[silent[0]]
    return [
        f"{', '.join(silent)}: no column {names['decision']} and no {names['threshold']}, "
        f"so decided at {rule.threshold!r} ({rule.origin})"
    ]


def _disagreements(
    frame: pl.DataFrame,
    decision: pl.Series,
    at_bound: pl.Series,
    bounds: Mapping[str, float | None],
    rules: Mapping[str, Rule],
    names: Mapping[str, str],
) -> list[str]:
    """Say where the decisions in the data are not those of its own threshold: how often, and what the F1 would be."""
    both = [g for g, rule in rules.items() if rule.threshold is None and "row by row" not in rule.origin]
    both = [g for g in both if bounds[g] is not None]
    if not both or (decision == at_bound).all():
        return []
    rows = frame.select("group", "label").with_columns(decision=decision, other=at_bound)
    found = []
    for group in both:
        own = rows.filter(pl.col("group") == group)
        differ = int((own["decision"] != own["other"]).sum())
        if differ:
            f1 = [_f1(own["label"], own[column]) for column in ("decision", "other")]
            found.append(
                f"{group}: {names['decision']} and {names['threshold']} ({bounds[group]!r}) disagree on {differ:,} of "
                f"{own.height:,} rows; {names['decision']} decides: F1 {f1[0]:.4f}, at the threshold it would be {f1[1]:.4f}"
            )
    return found


def _f1(label: pl.Series, decision: pl.Series) -> float:
    value = float(f1_of(Counts.of(label.to_numpy(), decision.to_numpy())))
    return 0.0 if value != value else value


def decided_trials(trials: Trials, decided: Decided) -> Trials:
    """Return trials with the decisions of their groups; a threshold that all groups share is recorded in the header."""
    shared = {(rule.threshold, rule.origin) for rule in decided.rules.values()}
    threshold = None
    if len(shared) == 1:
        value, origin = next(iter(shared))
        threshold = Threshold(value, origin) if value is not None else None
    said = told(threshold, trials.header) if threshold is not None else ""
    notes = (*trials.header.notes, *decided.notes)
    header = replace(trials.header, threshold=threshold, decided=said, notes=notes)
    return trials.put(header, decision=decided.decision)
