"""Replace a classifier: carry its thresholds over to another one, and judge what then changes.

The new thresholds are chosen on one part of the texts, and everything that is stated is measured on the others, so the
choice does not flatter the result.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.sorting import Floats
from hitmiss.core.trials import Trials
from hitmiss.stats.changed_rate import ChangedRate, changed_rate
from hitmiss.stats.corrections import holm

__all__ = ["KEEPS", "ReplacedGroup", "Replacement", "replace_classifier"]

Keep = Literal["flag-rate", "false-alarms", "recall"]
KEEPS: Final[tuple[Keep, ...]] = ("flag-rate", "false-alarms", "recall")
KEY: Final = ("item", "target")
FEW: Final = 10
"""Fewer flagged texts than this leave a carried-over threshold poorly known."""
Outcome = Literal["same", "changed", "not shown"]
SAME: Final[Outcome] = "same"
CHANGED: Final[Outcome] = "changed"
NOT_SHOWN: Final[Outcome] = "not shown"
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ReplacedGroup:
    """One group, such as a language: its thresholds, and what changes with the new ones."""

    group: Mapping[str, str]
    old_threshold: float
    new_threshold: float
    n_fit: int
    n_behind: int
    """Texts of the fit part that decided the new threshold: those that the old classifier flagged among them."""
    rates: tuple[ChangedRate, ...]
    outcome: Outcome
    p_adjusted: float | None = None
    """Of the kept rate, over all groups (Holm)."""

    @property
    def worse(self) -> tuple[str, ...]:
        """The rates that are shown to be worse: more false alarms, or less recall."""
        return tuple(
            r.name
            for r in self.rates
            if r.n and ((r.name == "false-alarms" and r.low > 0) or (r.name == "recall" and r.high < 0))
        )

    @property
    def kept(self) -> ChangedRate:
        """The rate that the new threshold was to keep."""
        return self.rates[0]

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        rates = [{**asdict(r), "difference": r.difference} for r in self.rates]
        return {**asdict(self), "group": dict(self.group), "rates": rates}


@dataclass(frozen=True)
class Replacement:
    """Every group with its new threshold, the texts whose decision changes, and how it was made."""

    groups: tuple[ReplacedGroup, ...]
    flips: pl.DataFrame = field(repr=False)
    keep: Keep
    margin: float
    level: float
    share: float
    seed: int
    positive: str
    names: tuple[str, str] = ("old", "new")
    n: int = 0

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form, without the texts."""
        made = {k: v for k, v in vars(self).items() if k not in ("groups", "flips", "names")}
        return {
            "schema": 1,
            "kind": "replacement",
            **made,
            "old": self.names[0],
            "new": self.names[1],
            "n_flips": self.flips.height,
            "groups": [group.to_dict() for group in self.groups],
        }


def replace_classifier(
    old: Trials,
    new: Trials,
    thresholds: float | Mapping[str, float],
    *,
    by: Sequence[str] = (),
    keep: str = "flag-rate",
    margin: float = 0.01,
    share: float = 0.5,
    seed: int = 0,
    level: float = 0.95,
    names: tuple[str, str] = ("old", "new"),
) -> Replacement:
    """Carry the thresholds of a classifier over to another one, and judge what changes on other texts.

    Parameters
    ----------
    old, new
        The scores of both on the same texts.
    thresholds
        The threshold of the old classifier on the scale of its file, or one for each group (`en`, or `en, x` for two
        columns).
    by
        Columns of the groups, such as the language; without one, all texts are one group.
    keep
        What each new threshold keeps: the `flag-rate`, the `false-alarms` (FPR) or the `recall`. The last two need labels.
    margin
        By how much the kept rate may change: `same` is said of a group if the whole interval lies within it.
    share, seed
        The share of texts on which thresholds are chosen, and how the texts are divided; the others are judged.
    level
        The level at which the intervals of all groups and rates hold together (Bonferroni).

    Raises
    ------
    UsageError
        For options that do not fit, or rates that need labels where there are none.
    DataError
        If the two files do not hold the same texts.
    """
    if keep not in KEEPS:
        raise UnknownName("rate to keep", keep, KEEPS)
    if not 0 < share < 1 or not 0 < margin < 1:
        raise UsageError.of("bad-share", share=share, margin=margin)
    if new.header.scale.is_reversed:
        raise UsageError.of("new-scores-reversed", negative=new.header.negative)
    chosen: Keep = next(one for one in KEEPS if one == keep)
    is_labelled = not (old.header.is_unlabelled or new.header.is_unlabelled)
    if not is_labelled and chosen != "flag-rate":
        raise UsageError.of("keep-needs-labels", keep=keep)
    table = _paired(old, new, by, names)
    inside = _fitted(table["item"], share, seed)
    cells = table.select([*by]).unique(maintain_order=True).sort([*by]).iter_rows(named=True) if by else iter([{}])
    groups = [_group(table, inside, dict(cell), thresholds, old, chosen, is_labelled) for cell in cells]
    if not any(len(one.table) for one in groups):
        raise DataError.of("no-texts-left", share=share, n=len(table))
    width = 1.0 - (1.0 - level) / (len(groups) * (len(KEEPS) if is_labelled else 1))
    judged = [one.judged(width, margin) for one in groups]
    adjusted = holm([one.kept.p for one in judged])
    found = tuple(replace(one, p_adjusted=p) for one, p in zip(judged, adjusted, strict=True))
    flips = pl.concat([one.flips() for one in groups])
    return Replacement(
        found, flips, chosen, margin, level, share, seed, old.header.positive, names, int((~inside).sum())
    )


@dataclass(frozen=True)
class _Group:
    """The texts of a group that are judged, with both decisions."""

    group: Mapping[str, str]
    table: pl.DataFrame
    old_threshold: float
    new_threshold: float
    n_fit: int
    n_behind: int
    keep: Keep
    is_labelled: bool

    def judged(self, level: float, margin: float) -> ReplacedGroup:
        """Measure the rates on the texts that did not choose the threshold."""
        before, after = (self.table[name].to_numpy() for name in ("flagged_old", "flagged_new"))
        every = np.ones(len(before), dtype=bool)
        among: dict[str, Mask] = {"flag-rate": every}
        if self.is_labelled:
            positive = self.table["label"].to_numpy() == 1
            among |= {"false-alarms": ~positive, "recall": positive}
        order = sorted(among, key=lambda name: name != self.keep)
        rates = tuple(changed_rate(name, before[among[name]], after[among[name]], level) for name in order)
        kept = rates[0]
        if not kept.n:
            outcome: Outcome = NOT_SHOWN
        elif -margin <= kept.low and kept.high <= margin:
            outcome = SAME
        elif kept.low > 0 or kept.high < 0:
            outcome = CHANGED
        else:
            outcome = NOT_SHOWN
        return ReplacedGroup(
            self.group, self.old_threshold, self.new_threshold, self.n_fit, self.n_behind, rates, outcome
        )

    def flips(self) -> pl.DataFrame:
        """Return the judged texts whose decision changes."""
        return self.table.filter(pl.col("flagged_old") != pl.col("flagged_new"))


def _group(
    table: pl.DataFrame,
    inside: Mask,
    cell: dict[str, str],
    thresholds: float | Mapping[str, float],
    old: Trials,
    keep: Keep,
    is_labelled: bool,
) -> _Group:
    own = np.ones(len(table), dtype=bool)
    for column, value in cell.items():
        own &= (table[column] == value).to_numpy()
    limit = _threshold(thresholds, cell)
    before = np.asarray(old.header.scale.accepts(table["old"].to_numpy(), limit))
    fit = own & inside
    among = fit
    if keep != "flag-rate":
        positive = table["label"].to_numpy() == 1
        among = fit & (positive if keep == "recall" else ~positive)
    scores = table["new"].to_numpy()
    n_behind = int(before[among].sum())
    inner = _matched(scores[among], n_behind)
    rest = own & ~inside
    judged = table.filter(pl.Series(rest)).with_columns(
        flagged_old=pl.Series(before[rest]), flagged_new=pl.Series(scores[rest] >= inner)
    )
    return _Group(cell, judged, limit, inner, int(fit.sum()), n_behind, keep, is_labelled)


def _threshold(thresholds: float | Mapping[str, float], cell: Mapping[str, str]) -> float:
    if not isinstance(thresholds, Mapping):
        return float(thresholds)
    name = ", ".join(cell.values())
    if name not in thresholds:
        raise UsageError.of("no-old-threshold", group=name or "all texts", known=tuple(thresholds))
    return float(thresholds[name])


def _matched(scores: Floats, n: int) -> float:
    """Return the threshold at which as many scores are reached as nearly as ties allow; the higher one of two as near.

    >>> _matched(np.array([0.1, 0.4, 0.4, 0.9]), 2), _matched(np.array([0.1, 0.4, 0.9]), 2), _matched(np.array([0.1]), 0)
    (0.9, 0.4, inf)
    """
    values, counts = np.unique(scores, return_counts=True)
    reached = np.append(counts[::-1].cumsum()[::-1], 0)
    best = int(np.flatnonzero(np.abs(reached - n) == np.abs(reached - n).min())[-1])
    return math.inf if best == len(values) else float(values[best])


def _paired(old: Trials, new: Trials, by: Sequence[str], names: tuple[str, str]) -> pl.DataFrame:
    """Return one row per text with both scores; a text that one file lacks, or another label, is refused."""
    columns = [pl.col(old.own(name)).alias(name) for name in by]
    left = old.frame.select(*KEY, "label", pl.col("score").alias("old"), *columns)
    right = new.frame.select(*KEY, pl.col("label").alias("other"), pl.col("score").alias("new"))
    if left.select(KEY).is_duplicated().any() or right.select(KEY).is_duplicated().any():
        raise DataError.of("repeated-texts")
    both = left.join(right, on=[*KEY], how="inner", maintain_order="left")
    for name, side in zip(names, (left, right), strict=True):
        if missing := side.height - both.height:
            lost = side.join(both, on=[*KEY], how="anti")["item"][0]
            raise DataError.of("texts-differ", n=missing, name=name, item=lost)
    is_labelled = not (old.header.is_unlabelled or new.header.is_unlabelled)
    if is_labelled and (both["label"] != both["other"]).any():
        raise DataError.of("labels-differ", item=both.filter(pl.col("label") != pl.col("other"))["item"][0])
    if both["old"].null_count() + both["new"].null_count():
        raise DataError.of("scores-missing", n=both["old"].null_count() + both["new"].null_count())
    return both.drop("other").with_columns(pl.col(name).cast(pl.String).fill_null("-") for name in by)


def _fitted(items: pl.Series, share: float, seed: int) -> Mask:
    """Return which texts choose the thresholds: by a hash of their ids, so that the order of rows does not matter."""
    known = {item: hashlib.sha256(f"{seed} {item}".encode()).digest()[:8] for item in items.unique().to_list()}
    limit = int(share * 2**64)
    return np.array([int.from_bytes(known[item], "big") < limit for item in items.to_list()])
