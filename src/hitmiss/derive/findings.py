"""What `derive` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, NOTE, WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "bad-guarantee": Entry(
        ERROR, "{rate} with the limit {limit:g} cannot be guaranteed", fix="write 'fpr <= 0.01' or 'recall >= 0.9'"
    ),
    "no-threshold-keeps": Entry(ERROR, "no threshold keeps this limit on {of}", fix="give another limit"),
    "no-threshold-fits": Entry(
        ERROR,
        "the queue holds {share:.3g} of all items, and even the highest threshold flags {least:.3g}",
        fix="give a larger capacity",
    ),
    "no-guarantee": Entry(
        ERROR,
        "{n:,} validation trials of this class cannot guarantee {rate} at {limit:g}",
        fix="give {needed:,} or more, or another limit",
    ),
    "no-guarantee/ties": Entry(
        ERROR,
        "no observed score guarantees {rate} at {limit:g}: the highest scores are negatives",
        fix="give another limit",
    ),
    "bad-rate": Entry(ERROR, "rates and the confidence must lie between 0 and 1; found {rate}"),
    "saturated-scores": Entry(
        ERROR,
        "every probability of the fit set is exactly 0 or 1, so there is nothing to calibrate",
        fix="give log-odds",
    ),
    "equal-scores": Entry(ERROR, "all scores of {same} in the fit set are equal"),
    "no-score": Entry(ERROR, "{missing} has trials without a score", fix="drop them first"),
    "infinite-score": Entry(ERROR, "{what} needs finite scores; {n:,} are infinite"),
    "unpaired": Entry(ERROR, "{first} and {name} do not have the same trials; fuse runs of one key"),
    "unlike-labels": Entry(ERROR, "{first} and {name} give some item different labels"),
    "one-system": Entry(ERROR, "a fusion needs two systems or more; found {n_fit_on}"),
    "other-class": Entry(ERROR, "the systems do not have one positive class: {positive!r} and {unlike!r}"),
    "bad-prior": Entry(
        ERROR,
        "a prior of {prior:g} with costs {miss_cost:g} and {false_alarm_cost:g} gives no operating point; the prior lies between 0 and 1, costs are above 0",
    ),
    "not-score-model": Entry(ERROR, "{name} is no score model of this version"),
    "other-systems": Entry(ERROR, "both sets must have the same systems; only one has {unlike}"),
    "malformed-score-model": Entry(ERROR, "{file}: unknown method {method!r}"),
    "malformed-score-model/slopes": Entry(ERROR, "{file}: {n} slopes for {n_systems} systems"),
    "bad-costs/negative": Entry(
        ERROR, "costs must be finite and not negative; found {slip}, {false_flag} and {review}"
    ),
    "no-fit": Entry(
        ERROR, "the affine calibration did not settle: the classes hardly overlap", fix="use {--method pav}"
    ),
    "no-fit/separated": Entry(
        ERROR,
        "a threshold separates the classes of the fit set, so an affine calibration has no finite slope",
        fix="fit on more or harder trials, or use {--method pav}",
    ),
    "equal-scores/all": Entry(ERROR, "all scores of the fit set are {values_2:g}; there is nothing to calibrate"),
    "no-default-threshold": Entry(
        ERROR,
        "the scores are not probabilities, so there is no default threshold",
        fix="give one with {--threshold?}, or a column {threshold} or {decision}",
    ),
    "not-probabilities/temperature": Entry(
        ERROR, "a temperature divides the log-odds of probabilities, which these scores are not"
    ),
    "fitted-otherwise/class": Entry(ERROR, "fitted on {positive!r} as the positive class, applied to {positive_2!r}"),
    "fitted-otherwise/kind": Entry(ERROR, "fitted on {score_kind} scores, applied to {score_kind_2} scores"),
    "mixed-fit-set": Entry(
        ERROR, "the fit set mixes {n_found} values of {name!r}, as {found}", fix="fit one at a time"
    ),
    "no-trials/threshold": Entry(ERROR, "there are no trials to choose a threshold on"),
    "undefined-everywhere": Entry(
        ERROR, "{maximize} is undefined at every threshold: both classes are needed to choose one"
    ),
    "not-a-threshold-metric": Entry(
        ERROR, "{spec} is not a metric of decisions; a threshold can be chosen by f1, accuracy, mcc …"
    ),
    "bad-threshold/number": Entry(ERROR, "a threshold must be a number; found {threshold!r:.80}"),
    "one-unit": Entry(ERROR, "there is one unit only ({columns}); nothing can be held out"),
    "chosen-on-same-data": Entry(WARNING, "the thresholds were chosen on this data: numbers at them are optimistic"),
    "chosen-on-same-data/least-confidences": Entry(
        WARNING, "the least confidences were chosen on this data: numbers at them are optimistic"
    ),
    "chosen-on-same-data/calibration": Entry(
        WARNING, "calibration: optimistic, {n_again} of {n_trials} trials were also fitted on"
    ),
    "no-fusion": Entry(
        ERROR,
        "the fusion has no finite fit: the systems separate the classes of the fit set, or one copies others",
        fix="fit on more trials, or leave a system out",
    ),
    "chosen-on-same-data/threshold": Entry(
        WARNING, "the threshold {threshold:g} was chosen on this data: numbers at it are optimistic"
    ),
    "chosen-on-same-data/recalibration": Entry(
        WARNING, "recalibration: optimistic, {n} of {total} trials were also fitted on"
    ),
    "confidence-derived": Entry(
        NOTE, "no confidence is stated: it is the probability of the decided class, the score or 1 − the score"
    ),
    "old-threshold": Entry(NOTE, "calibration: {what}"),
    "unscored-left-out/fit": Entry(NOTE, "calibration: {n} trials without a score were left out of the fit"),
    "scores-reversed/fit": Entry(
        NOTE, "calibration: in the fit set higher scores do not mean the positive class; are the scores reversed?"
    ),
}
