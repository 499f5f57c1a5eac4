"""What `metrics` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "bad-asv-label/word": Entry(ERROR, "asv_label is target, nontarget or spoof; found {word!r}"),
    "nan-score/named": Entry(
        ERROR, "{n:,} of {of:,} scores are missing", fix="drop these trials, or give their scores"
    ),
    "not-bits": Entry(ERROR, "{name} must be a flat column of 0 and 1 (NaN: does not count)"),
    "not-a-table": Entry(ERROR, "labels and scores must be record × class; found {shape} and {shape_2}"),
    "power-mean-numbers": Entry(ERROR, "a power mean is of numbers that are not negative; found {held}"),
    "bias-score-needs-exactly": Entry(ERROR, "a bias score needs exactly {KINDS}; found {per_identity}"),
    "overall-weight-lie": Entry(ERROR, "overall_weight must lie between 0 and 1; found {overall_weight}"),
    "label-member-equally-long": Entry(ERROR, "label and member must be equally long; found {shape} and {shape_2}"),
    "probabilities-lie": Entry(
        ERROR,
        "probabilities must lie in 0..1; found {score:g}..{score_2:g}",
        fix="calibrate or convert the scores first",
    ),
    "decision-confidence-equally-long": Entry(
        ERROR, "decision and confidence must be equally long; found {shape} and {shape_2}"
    ),
    "confidence-lie-found-position": Entry(ERROR, "confidence must lie in 0..1; found {stated:g} at position {first}"),
    "least-bin": Entry(ERROR, "there must be at least one bin; found {bins!r}"),
    "label-decision-equally-long": Entry(ERROR, "label and decision must be equally long; found {shape} and {shape_2}"),
    "decision-abstained-failed": Entry(
        ERROR, "decision must be 1, 0, -1 (abstained) or -2 (failed); found {said!r} at position {wrong}"
    ),
    "target-lie": Entry(ERROR, "p_target must lie between 0 and 1; found {p_target}"),
    "bad-accepted": Entry(
        ERROR, "accepted is 1 or 0 for every attack; found {found!r}", fix="give what the whole system decided"
    ),
    "bad-merge": Entry(ERROR, "merge is a number of neighbouring segments, 1 or more; found {merge}"),
    "segments-torn": Entry(
        ERROR, "merged segments of one utterance are not drawn one by one", fix="add {--unit utterance}"
    ),
    "segment-twice": Entry(
        ERROR,
        "segment {segment} of {utterance} occurs twice, so that segments cannot be merged",
        fix="number them; if trials were drawn, add {--unit utterance}",
    ),
    "bad-operating-points": Entry(
        ERROR,
        "cannot read the operating points {text!r}",
        fix="write priors, as 0.01+0.005, or priors with the costs of a miss and a false alarm, as 0.01:1:10",
    ),
    "costs-positive-finite": Entry(ERROR, "costs must be positive and finite; found c_miss={c_miss}, c_fa={c_fa}"),
    "target-too-near-bayes": Entry(ERROR, "p_target is too near 0 or 1 for a Bayes threshold; found {p_target}"),
    "threshold-nan": Entry(ERROR, "the threshold is NaN"),
    "ties-official-walks-through": Entry(
        ERROR, 'ties="official" walks through tied trials one by one, so weights must be whole numbers'
    ),
    "seconds-flat-column-times": Entry(ERROR, "seconds must be a flat column of times that are not negative"),
    "lie": Entry(ERROR, "{name} must lie between 0 and 1; found {value}"),
    "no-minimal-strengths": Entry(ERROR, "there are no minimal strengths"),
    "coverage-lie-excluded": Entry(ERROR, "coverage must lie in 0..1, 0 excluded; found {coverage}"),
    "accuracy-lie-excluded": Entry(ERROR, "accuracy must lie in 0..1, 0 excluded; found {accuracy}"),
    "cm-scores-fewer-distinct": Entry(
        ERROR, "the CM scores have fewer than 3 distinct values; t-DCF needs scores, not decisions"
    ),
    "errs-much-missing-target": Entry(
        ERROR, "{asv} errs so much that missing a target would lower the cost", fix="check the ASV rates"
    ),
    "error-rates-asv-need": Entry(ERROR, "error rates of an ASV need target, nontarget and spoof trials"),
    "ties-official-walks-through-2": Entry(
        ERROR, "ties='official' walks through single trials; weights must be whole numbers"
    ),
    "cm-asv-need-target": Entry(
        ERROR, "cm and asv each need (target, nontarget, spoof); found {n_cm} and {n_asv} arrays"
    ),
    "cm-asv-score-same": Entry(
        ERROR, "cm and asv must score the same trials; found {sizes} and {sizes_2} of each kind"
    ),
    "scores-flat-found-shape": Entry(ERROR, "scores must be flat; found shape {shape}"),
    "scores-nan": Entry(ERROR, "{n} of {n_values} scores are NaN", fix="drop or fix them"),
    "weight-needs-array-class": Entry(ERROR, "weight needs one array for each class ({n_scores}); found {n_weight}"),
    "priors-least-sum-costs": Entry(
        ERROR, "priors must be at least 0 and sum to 1, costs at least 0; found {priors} and {costs}"
    ),
    "costs-system-accepts-all": Entry(
        ERROR, "with these costs a system that accepts all, or rejects all, costs nothing"
    ),
    "error-rates-fractions": Entry(ERROR, "error rates are fractions between 0 and 1; found {self_2}"),
    "unparsed-flat-column-verdict": Entry(ERROR, "{name} must be a flat column of 1 (so it came out) and 0"),
}
