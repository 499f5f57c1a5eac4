"""Scores that no model has seen: each trial is mapped by a model fitted on the other units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.trials import Trials
from hitmiss.derive.score_model import ScoreModel
from hitmiss.stats.random import generator

__all__ = ["cross_validate", "folds_of"]

Fit = Callable[[Mapping[str, Trials]], ScoreModel]


def cross_validate(
    systems: Mapping[str, Trials], fit: Fit, *, unit: str | Sequence[str] = (), folds: int = 5, seed: int = 0
) -> Trials:
    """Return the trials of the first system with scores of models that were fitted without them.

    Whole units (speakers, say) are held out together, so that no model is judged on a unit that it was fitted on. The
    header of the result says how it was made, and has no note about trials that were also fitted on.

    Parameters
    ----------
    systems
        The trials of each system, by name; one or several.
    fit
        Fits a model to the trials of each system, as `fit_calibration` and `fit_fused` do.
    unit
        The columns that name a unit; without one, each item is a unit.
    folds
        The number of models; with more folds than units, there are as many as units.
    seed
        Decides which units are held out together.

    Raises
    ------
    UsageError
        For fewer than two folds.
    DataError
        If there are fewer than two units, or what is left of a fold has one class only.

    >>> from hitmiss.derive.score_model import fit_calibration
    >>> label = [1, 0] * 20
    >>> trials = Trials.of(label, [y + (i * 7 % 11) / 5 for i, y in enumerate(label)], speaker=[str(i // 4) for i in range(40)])
    >>> held_out = cross_validate({"a": trials}, lambda s: fit_calibration(s["a"]), unit="speaker")
    >>> held_out.header.score_kind, len(held_out)
    ('llr', 40)
    """
    if folds < 2:
        raise UsageError.of("out-of-range/least", name="folds", least=2, found=folds)
    first = next(iter(systems.values()))
    place = folds_of(first, (unit,) if isinstance(unit, str) else unit, folds, seed)
    key = ["item", "target"]
    held = first.frame.select(key).with_columns(pl.Series("fold", place))
    scores = np.full(len(first), np.nan)
    kept: Trials | None = None
    for fold in range(int(place.max()) + 1):
        inside = held.filter(pl.col("fold") == fold).select(key)
        rest = {name: _joined(t, inside, "anti") for name, t in systems.items()}
        own = {name: _joined(t, inside, "semi") for name, t in systems.items()}
        made = fit(rest).apply(own)
        kept = kept or made
        scores[place == fold] = made.column("score").cast(pl.Float64).fill_null(np.nan).to_numpy()
    assert kept is not None
    named = ", ".join((unit,) if isinstance(unit, str) else unit) or "item"
    choice = f"cross-validated over {int(place.max()) + 1} folds by {named} (seed {seed})"
    header = replace(
        first.header,
        score_kind="llr",
        threshold=None,
        scale=kept.header.scale,
        choices=(*first.header.choices, choice),
        provenance={**first.header.provenance, "cross_validation": {"folds": int(place.max()) + 1, "unit": named}},
    )
    found = pl.Series("score", scores, nan_to_null=True)
    return first.put(header, score=found)


def folds_of(trials: Trials, unit: Sequence[str], folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each trial: whole units, at random, in folds of about equal numbers of units."""
    columns = [trials.own(name) for name in trials.unit_names(unit)] or ["item"]
    names = trials.frame.select(pl.concat_str(columns, separator="\x1f").alias("unit"))["unit"]
    values = names.unique().sort()
    if len(values) < 2:
        raise DataError.of("one-unit", columns=tuple(columns))
    order = generator(seed, "folds").permutation(len(values))
    fold = dict(zip(values.to_list(), (order % min(folds, len(values))).tolist(), strict=True))
    return np.array([fold[name] for name in names.to_list()], dtype=np.int64)


def _joined(trials: Trials, inside: pl.DataFrame, how: str) -> Trials:
    frame = trials.frame.join(inside, on=["item", "target"], how=how, maintain_order="left")  # type: ignore[arg-type]
    return replace(trials, frame=frame)
