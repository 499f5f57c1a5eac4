"""Turn scores into decisions: at one threshold, or per group with the thresholds that the data contain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
import polars as pl

from hitmiss.core.columns import ColumnKeywords
from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Remark
from hitmiss.core.header import Header, Threshold
from hitmiss.core.scale import ScoreScale
from hitmiss.core.text_codes import stretches
from hitmiss.core.trials import Trials, TrialsLike, demanded
from hitmiss.metrics.counts import Counts, f1


def at_threshold(
    trials: TrialsLike, threshold: float, origin: str = "given", **reading: Unpack[ColumnKeywords]
) -> Trials:
    """Decide trials at a threshold of the scores as their file has them. It is recorded in the header with its origin.

    The class that a higher score means is decided where score >= threshold. Normally this is the positive class. If the
    trials were read with `higher=` the negative class, the positive class is decided where the file has a score below
    the threshold.

    Parameters
    ----------
    trials
        Trials with scores.
    threshold
        The threshold, on the scale and in the direction of the file; or what `best_threshold` chose.
    origin
        Where the threshold comes from. `this data` adds a note that numbers at this threshold are optimistic.
    **reading
        What the columns of a table are, as for `hm.read`: `label="truth"`, `score="p"`, `positive="fake"`, …

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
    trials = demanded(trials, "decide", reading)
    threshold = getattr(threshold, "threshold", threshold)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number) or math.isnan(threshold):
        raise UsageError.of("bad-threshold/number", threshold=threshold)
    decided = trials.header.scale.accepts(trials.column("score"), threshold).cast(pl.Int8)
    notes = trials.header.notes
    if origin == "this data":
        notes = (*notes, Remark.of("chosen-on-same-data/threshold", threshold=float(threshold)))
    bound = Threshold(threshold, origin)
    return trials.put(decision=decided).retitle(
        threshold=bound, decided=describe_threshold(bound, trials.header), notes=notes
    )


def describe_threshold(bound: Threshold, header: Header) -> str:
    """Say what a threshold means for scores of the file, and where it comes from."""
    return f"{header.scale.threshold_text(bound.value, header.positive, header.negative)} ({bound.origin})"


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
class GroupThreshold:
    """How the trials of one group were decided.

    `threshold` is None if the data hold decisions, or one threshold per row.
    """

    threshold: float | None
    origin: str
    by_file: bool = False
    """Whether a column of the file decides."""

    def __str__(self) -> str:
        return self.origin if self.threshold is None else f"{self.threshold!r} ({self.origin})"


@dataclass(frozen=True)
class Decided:
    """The decisions, the rule of each group, the threshold of each row (null: not known), and notes for the reader.

    `bound` has a single entry if all rows share one threshold. All thresholds are those of the file.
    """

    decision: pl.Series
    bound: pl.Series
    rules: Mapping[str, GroupThreshold]
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
    notes = [*_rule_lines(rules, names), *_disagreements(frame, decision, at_bound, bounds, rules, names)]
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


def _rule(decided: bool, bound: float | None, deciding: Deciding, names: Mapping[str, str]) -> GroupThreshold:
    if deciding.given is not None:
        return GroupThreshold(deciding.given, "given")
    if decided:
        return GroupThreshold(None, f"column {names['decision']}", by_file=True)
    if bound is not None and deciding.per_row:
        return GroupThreshold(None, f"column {names['threshold']}, row by row", by_file=True)
    if bound is not None:
        return GroupThreshold(bound, f"column {names['threshold']}", by_file=True)
    if deciding.default is None:
        raise UsageError.of("no-default-threshold", threshold=names["threshold"], decision=names["decision"])
    return GroupThreshold(deciding.default, deciding.default_origin)


def _bounds(
    frame: pl.DataFrame, bounds: Mapping[str, float | None], rules: Mapping[str, GroupThreshold], deciding: Deciding
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


def _rule_lines(rules: Mapping[str, GroupThreshold], names: Mapping[str, str]) -> list[str]:
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
    rules: Mapping[str, GroupThreshold],
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
    value = float(f1.of(Counts.of(label.to_numpy(), decision.to_numpy())))
    return 0.0 if value != value else value


def decided_trials(trials: Trials, decided: Decided) -> Trials:
    """Return trials with the decisions of their groups; a threshold that all groups share is recorded in the header."""
    shared = {(rule.threshold, rule.origin) for rule in decided.rules.values()}
    threshold = None
    if len(shared) == 1:
        value, origin = next(iter(shared))
        threshold = Threshold(value, origin) if value is not None else None
    said = describe_threshold(threshold, trials.header) if threshold is not None else ""
    notes = (*trials.header.notes, *decided.notes)
    header = replace(trials.header, threshold=threshold, decided=said, notes=notes)
    return trials.put(header, decision=decided.decision)
