"""What `metrics` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "bad-asv-label/word": Entry(ERROR, "asv_label is target, nontarget or spoof; found {word!r}"),
    "not-bits": Entry(ERROR, "{name} must be a flat column of 0 and 1 (NaN: does not count)"),
    "bad-power-mean": Entry(ERROR, "a power mean is of numbers that are not negative; found {held}"),
    "bad-bias-kinds": Entry(ERROR, "a bias score needs exactly {KINDS}; found {per_identity}"),
    "bad-confidence": Entry(ERROR, "confidence must lie in 0..1; found {stated:g} at position {first}"),
    "bad-decision": Entry(
        ERROR,
        "decision must be 1, 0, -1 (abstained) or -2 (failed); found {said!r} at position {wrong}",
        fix="decide scores at a threshold: score >= 0.5",
    ),
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
    "bad-costs/positive": Entry(ERROR, "costs must be positive and finite; found c_miss={c_miss}, c_fa={c_fa}"),
    "bad-prior/extreme": Entry(ERROR, "p_target is too near 0 or 1 for a Bayes threshold; found {p_target}"),
    "bad-seconds": Entry(ERROR, "seconds must be a flat column of times that are not negative"),
    "few-distinct-scores": Entry(
        ERROR, "the CM scores have fewer than 3 distinct values; t-DCF needs scores, not decisions"
    ),
    "asv-too-weak": Entry(
        ERROR, "{asv} errs so much that missing a target would lower the cost", fix="check the ASV rates"
    ),
    "asv-kinds": Entry(ERROR, "error rates of an ASV need target, nontarget and spoof trials"),
    "cm-asv-kinds": Entry(ERROR, "cm and asv each need (target, nontarget, spoof); found {n_cm} and {n_asv} arrays"),
    "cm-asv-trials": Entry(ERROR, "cm and asv must score the same trials; found {sizes} and {sizes_2} of each kind"),
    "bad-weight/classes": Entry(ERROR, "weight needs one array for each class ({n_scores}); found {n_weight}"),
    "bad-prior/sum": Entry(
        ERROR, "priors must be at least 0 and sum to 1, costs at least 0; found {priors} and {costs}"
    ),
    "bad-costs/trivial": Entry(ERROR, "with these costs a system that accepts all, or rejects all, costs nothing"),
    "bad-asv-rates": Entry(ERROR, "error rates are fractions between 0 and 1; found {self_2}"),
    "fractional-weights": Entry(
        ERROR, "ties='official' walks through tied trials one by one, so weights must be whole numbers"
    ),
}
