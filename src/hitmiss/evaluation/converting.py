"""Scores on another scale, for a file that others read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from scipy.special import expit

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.scale import ScoreScale
from hitmiss.core.trials import Trials
from hitmiss.derive.calibration import LogOdds

__all__ = ["SCALES", "converted", "read_any"]

SCALES = ("same", "log-odds", "probability")


def read_any(scores: str, key: str | None, reading: ReadSpec) -> Trials:
    """Read scores with a key, with labels of their own, or without any."""
    from hitmiss.io.reader import read
    from hitmiss.io.unlabelled import read_unlabelled

    try:
        return read(scores, key, reading)
    except DataError as error:
        if key is not None or error.code != "missing-column":
            raise
    if reading.positive is None:
        raise UsageError.of("no-class", scores=scores)
    return read_unlabelled(scores, reading, reading.positive)


def converted(trials: Trials, scale: str = "same", higher: str | None = None) -> Trials:
    """Return trials whose scores are on another scale: probabilities as log-odds, or log-odds as probabilities.

    Raises
    ------
    UnknownName
        For a scale or a class that there is not.
    UsageError
        If the scores are not of a kind that has this scale; raw scores have none.

    >>> trials = Trials.of([1, 0], [0.9, 0.2]).retitle(score_kind="probability")
    >>> converted(trials, "log-odds").score.round(3).tolist()
    [2.197, -1.386]
    """
    if scale not in SCALES:
        raise UnknownName("scale", scale, SCALES)
    head, kind = trials.header, trials.header.score_kind
    if scale != "same" and kind not in ("probability", "logit", "llr"):
        raise UsageError.of("raw-scores", kind=kind)
    scores = trials.column("score")
    values = scores.fill_null(0.5).to_numpy()
    now = kind
    if scale == "log-odds" and kind == "probability":
        values, now = LogOdds.of(trials.keep(pl.col("score").is_not_null())).apply(values), "logit"
    elif scale == "probability" and kind != "probability":
        values, now = np.asarray(expit(values)), "probability"
    if higher is not None and higher != head.positive:
        if higher != head.negative:
            raise UnknownName("class", higher, (head.positive, head.negative))
        values = 1.0 - values if now == "probability" else -values
        head = replace(head, positive=head.negative, negative=head.positive)
        trials = trials.put(label=1 - pl.col("label"))
    found = pl.Series("score", values).zip_with(scores.is_not_null(), pl.Series([None] * len(scores), dtype=pl.Float64))
    return trials.put(replace(head, score_kind=now, scale=ScoreScale(), threshold=None), score=found)
