"""What `bridges` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "no-pull-request": Entry(
        ERROR,
        "there is no pull request to comment on: the environment of a {host} job has {needs}",
        fix="leave {--post?} out elsewhere",
    ),
    "comment-not-posted": Entry(ERROR, "{host} did not take the comment: {why}", fix="check the token's permissions"),
    "nothing-counted-yet-call": Entry(ERROR, "nothing was counted yet: call update first"),
    "not-metric-scores-accumulated": Entry(
        ERROR, "{text} is not a metric of scores that can be accumulated", fix="measure it with hm.measure"
    ),
    "accumulators-other-metrics-cannot": Entry(ERROR, "accumulators of other metrics cannot be merged"),
    "needs": Entry(ERROR, "{spec} needs {beyond}", fix="measure trials that have it with hm.measure"),
    "judge-decisions-give-threshold": Entry(
        ERROR, "{names} judge decisions: give the threshold, decided is score >= threshold"
    ),
    "logits-shape-classes": Entry(ERROR, "logits must have the shape (n,), (n, 1) or (n, classes); found {shape}"),
    "classes-say-positive-positive": Entry(ERROR, "{shape} classes: say which is positive with positive_index"),
    "positive-index-not-classes": Entry(ERROR, "positive_index {index} is not one of the {shape} classes"),
    "prediction-pair-logits-labels": Entry(ERROR, "a prediction is a pair of logits and labels; found {name}"),
    "cannot-log-known-mlflow": Entry(
        ERROR, "cannot log to {to!r}; known: mlflow, wandb, or a TensorBoard SummaryWriter"
    ),
    "no-run-active-call": Entry(ERROR, "no W&B run is active: call wandb.init first"),
    "logging-needs-package-pip": Entry(ERROR, "logging to {name} needs the package: pip install {name}"),
    "scorer-needs-sklearn": Entry(ERROR, "a scorer needs scikit-learn: pip install 'hitmiss[probes]'"),
}
