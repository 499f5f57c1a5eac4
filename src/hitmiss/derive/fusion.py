"""Fusion: one log-likelihood ratio from the scores of several systems, by the same fit as the affine calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl
from scipy.special import logit

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.scale import ScoreScale
from hitmiss.core.sorting import Floats
from hitmiss.core.trials import Trials
from hitmiss.core.weights import refuse_sampling
from hitmiss.derive.calibration import (
    AffineCalibrator,
    LogOdds,
    check_compatible,
    check_fit,
    fit_notes,
    fit_weights,
    is_separated,
    odds_of,
    scale_notes,
)

NO_FUSION: Final = (
    "the fusion has no finite fit: a combination of these systems separates the classes of the fit set, or one system "
    "is a copy of others; fit on more trials, or leave a system out"
)


def fuse(
    fit_on: Mapping[str, Trials], apply_to: Mapping[str, Trials], *, prior: float = 0.5, name: str = "fusion"
) -> Trials:
    """Fit a linear fusion of several systems on one set, and return the fused scores of another set.

    The fused score is offset + Σ slope × score, a natural-log likelihood ratio; slopes and offset are those of logistic
    regression with the classes weighted to `prior`. Trials are paired by item. The header records the slopes in
    `provenance["fusion"]`, and a choice for the signature.

    Parameters
    ----------
    fit_on
        The development trials of each system, by name.
    apply_to
        The trials to fuse, with the same names.
    prior
        The share of positives for which the fit is optimised; 0.5 minimises Cllr.
    name
        What the fused system is called in the header.

    Returns
    -------
    Trials
        The trials of the first system of `apply_to`, with the fused scores.

    Raises
    ------
    UsageError
        For fewer than two systems, names that differ, or a prior outside (0, 1).
    DataError
        If the systems do not have the same trials, a score is missing, or the fit does not exist (one class only, a
        combination that separates the classes, or systems that are copies of each other).

    >>> label, a, b = [1, 1, 1, 1, 0, 0, 0, 0], [3, 1, 0, 2, 1, 0, -1, 2], [0, 3, -1, 1, 1, -1, 2, 0]
    >>> dev = {"a": Trials.of(label, a), "b": Trials.of(label, b)}
    >>> fused = fuse(dev, dev)
    >>> fused.header.score_kind, sorted(fused.header.provenance["fusion"]["slopes"])
    ('llr', ['a', 'b'])
    """
    if not 0 < prior < 1:
        raise UsageError(f"prior must lie between 0 and 1, both excluded; found {prior}", code="bad-prior")
    if len(fit_on) < 2:
        raise UsageError(f"a fusion needs two systems or more; found {len(fit_on)}", code="one-system")
    if set(fit_on) != set(apply_to):
        unlike = sorted(set(fit_on) ^ set(apply_to))
        raise UsageError(
            f"both sets must have the same systems; only one has {', '.join(unlike)}", code="other-systems"
        )
    for own in fit_on:
        check_compatible(fit_on[own], apply_to[own])
        refuse_sampling(fit_on[own], "a fusion")
    known, odds = next(iter(fit_on.values())), {own: odds_of(trials) for own, trials in fit_on.items()}
    fitted = _beside({own: _linear(trials, odds[own]) for own, trials in fit_on.items()})
    positive, _, shares = check_fit(known.label, fitted[:, 0], None, prior, needs_spread=False)
    centre, spread = fitted.mean(axis=0), fitted.std(axis=0)
    if (same := [own for own, width in zip(fit_on, spread, strict=True) if width == 0]) or len(fitted) == 0:
        raise DataError(f"all scores of {', '.join(same)} in the fit set are equal", code="equal-scores")
    try:
        theta = fit_weights((fitted - centre) / spread, positive, shares, float(logit(prior)))
    except (np.linalg.LinAlgError, DataError):
        raise DataError(NO_FUSION, code="no-fusion") from None
    slopes = theta[:-1] / spread
    offset = float(theta[-1] - slopes @ centre)
    together = fitted @ slopes
    if is_separated(together[positive], together[~positive]):  # the slopes would grow without end
        raise DataError(NO_FUSION, code="no-fusion")
    first = next(own for own in fit_on)
    applied = apply_to[first]
    applied_scores = _beside({own: _linear(apply_to[own], odds[own]) for own in fit_on})
    weights = {own: float(w) for own, w in zip(fit_on, slopes, strict=True)}
    short = ", ".join(f"{own}={w:.6g}" for own, w in weights.items())
    choice = f"fusion({short}, offset={offset:.6g}) fitted on {known.digest} (n={len(known)})"
    described = {"method": "linear", "prior": prior, "slopes": weights, "offset": offset, "fit_n": len(known)}
    said = dict.fromkeys(
        note for own in fit_on for note in scale_notes(fit_on[own], apply_to[own], odds[own], "affine")
    )
    head = replace(
        applied.header,
        score_kind="llr",
        threshold=None,
        scale=ScoreScale(),
        choices=(*applied.header.choices, choice),
        sources=tuple(dict.fromkeys(s for own in fit_on for s in apply_to[own].header.sources)),
        notes=(*applied.header.notes, *said, *fit_notes(AffineCalibrator(1.0, 0.0), known, applied)),
        provenance={**applied.header.provenance, "fusion": {"name": name, **described}},
    )
    return applied.put(head, score=pl.Series("score", applied_scores @ slopes + offset))


def _linear(trials: Trials, odds: LogOdds | None) -> Trials:
    """Return trials whose scores can be added up: the log-odds of probabilities, other scores as they are."""
    if odds is None or trials.column("score").null_count():
        return trials
    return trials.put(replace(trials.header, score_kind="logit"), score=pl.Series("score", odds.apply(trials.score)))


def _beside(systems: Mapping[str, Trials]) -> Floats:
    """Return the scores of several systems as one column each, in the order of the trials of the first."""
    (first, known), *others = systems.items()
    key = ["item", "target"]
    table = known.frame.select(*key, "label", pl.col("score").alias(f"0 {first}"))
    for at, (name, trials) in enumerate(others, 1):
        other = trials.frame.select(*key, pl.col("label").alias("other"), pl.col("score").alias(f"{at} {name}"))
        met = table.join(other, on=key, how="left", maintain_order="left")
        if len(trials) != len(known) or met["other"].null_count():
            raise DataError(f"{first} and {name} do not have the same trials; fuse runs of one key", code="unpaired")
        if (met["other"] != met["label"]).any():
            raise DataError(f"{first} and {name} give some item different labels", code="unlike-labels")
        table = met.drop("other")
    scores = table.select(pl.exclude(*key, "label"))
    if missing := [c for c in scores.columns if scores[c].null_count()]:
        raise DataError(f"{missing[0].partition(' ')[2]} has trials without a score; drop them first", code="no-score")
    found = scores.to_numpy().astype(np.float64)
    if not np.isfinite(found).all():
        raise DataError("a fusion needs finite scores; some are infinite", code="infinite-score")
    return found
