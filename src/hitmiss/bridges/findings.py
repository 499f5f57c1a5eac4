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
    "nothing-counted": Entry(ERROR, "nothing was counted yet: call update first"),
    "not-accumulated": Entry(
        ERROR, "{text} is not a metric of scores that can be accumulated", fix="measure it with hm.measure"
    ),
    "unlike-accumulators": Entry(ERROR, "accumulators of other metrics cannot be merged"),
    "missing-column/metric": Entry(ERROR, "{spec} needs {beyond}", fix="measure trials that have it with hm.measure"),
    "no-threshold": Entry(ERROR, "{names} judge decisions: give the threshold, decided is score >= threshold"),
    "bad-prediction": Entry(ERROR, "a prediction is a pair of logits and labels; found {name}"),
    "unknown-tracker": Entry(ERROR, "cannot log to {to!r}; known: mlflow, wandb, or a TensorBoard SummaryWriter"),
    "no-wandb-run": Entry(ERROR, "no W&B run is active: call wandb.init first"),
}
