"""What `robustness` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ALARM, ERROR, NOTE, WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "no-trials": Entry(ERROR, "there are no trials to measure"),
    "bad-grouping": Entry(
        ERROR, "{--by <name>} cannot be combined: its numbers are those of one class, over all records"
    ),
    "no-metric": Entry(ERROR, "{on_records} cannot be compared for these attacks; compared are {COMPARED}"),
    "nothing-shared": Entry(ERROR, "the two runs have no attack and strength in common"),
    "not-a-slice/condition": Entry(
        ERROR, "{by} is not a text column", fix="name the column that says how items were changed"
    ),
    "no-clean": Entry(ERROR, "which {by} is the clean one? Say clean=…; there are {values_2}"),
    "repeated-clip": Entry(
        ERROR,
        "{value}: a {linked} occurs more than once",
        fix="name every column that distinguishes the copies, such as codec,codec_q",
    ),
    "no-partners": Entry(
        ERROR,
        "{value}: none of its {n_after:,} clips has a clean partner by {linked}",
        fix="say which column links a clip's copies ({--pair-by?})",
    ),
    "partners-disagree": Entry(
        ERROR, "{value}: {wrong:,} clips have another label than their clean partners, the first is {common!r}"
    ),
    "no-clean/records": Entry(
        ERROR, "there are no {CLEAN} records among the trials, so nothing can be compared with them"
    ),
    "no-run-column/attack": Entry(ERROR, "these trials have no run column {name!r}: make them with `hitmiss attack`"),
    "other-records": Entry(ERROR, "{run} is not about the same records and classes as the clean ones"),
    "only-fakes-changed": Entry(
        NOTE, "only fakes were changed: an EER of this mix is not an error rate of a detector; read FAR"
    ),
    "scores-constant/attacked": Entry(
        ALARM,
        "the model gives the same answer for every record, so it cannot be attacked; that does not make it robust",
    ),
    "scores-reversed/class": Entry(
        ALARM,
        "the scores of {name} look REVERSED: their ROC AUC lies in [{low:.4f}, {high:.4f}]",
        fix="are the columns of y in the order of the model's outputs?",
    ),
    "attack-suspect/gradient": Entry(
        WARNING,
        "ATTACK FAILED? {attack}: the gradient is exactly 0 for {n} of {total} records; a saturated or masked model looks robust this way",
    ),
    "attack-suspect/budget": Entry(
        WARNING, "ATTACK INVALID: {attack}: {n} records are over their budget, by up to {worst:.3g}"
    ),
    "attack-suspect/noise": Entry(
        WARNING,
        "ATTACK FAILED? {attack} changes {own} of the records and random noise of the same norm {noise}; "
        "an attack must beat noise",
    ),
    "attack-suspect/idle": Entry(
        WARNING,
        "ATTACK FAILED? {attack} changes no record at any strength: before the model is called robust, give it more budget "
        "or more steps",
    ),
    "attack-suspect/falling": Entry(
        WARNING,
        "ATTACK FAILED? {attack}: from strength {low:g} to {high:g} success falls from {before} to {after}; more budget should never help less",
    ),
    "attack-suspect/masked": Entry(
        WARNING,
        "ATTACK FAILED? at strength {strength} {name} changes {rate} without gradients and the best gradient attack {best}: "
        "gradients may be masked",
    ),
    "only-in-one/attack": Entry(NOTE, "only in {name}, so not compared: {attacks:;}"),
}
