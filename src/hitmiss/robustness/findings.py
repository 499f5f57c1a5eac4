"""What `robustness` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, NOTE, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "no-trials": Entry(ERROR, "there are no trials to measure"),
    "bad-grouping": Entry(
        ERROR, "{--by <name>} cannot be combined: its figures are those of one class, over all records"
    ),
    "no-metric": Entry(ERROR, "{on_records} cannot be compared for these attacks; compared are {COMPARED}"),
    "nothing-shared": Entry(ERROR, "the two runs have no attack and strength in common"),
    "incomparable": Entry(
        ERROR,
        "{names} and {names_2} cannot be compared: {wrong}. {--force} compares them anyway, with a warning in the report",
    ),
    "one-class": Entry(ERROR, "an equal error rate needs scores of both classes"),
    "not-text": Entry(ERROR, "{by} is not a text column", fix="name the column that says how items were changed"),
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
    "no-records-among-trials": Entry(
        ERROR, "there are no {CLEAN} records among the trials, so nothing can be compared with them"
    ),
    "trials-no-run-column": Entry(ERROR, "these trials have no run column {name!r}: make them with `hitmiss attack`"),
    "not-about-same-records": Entry(ERROR, "{run} is not about the same records and classes as the clean ones"),
    "only-fakes-changed": Entry(
        NOTE, "only fakes were changed: an EER of this mix is not an error rate of a detector; read FAR"
    ),
}
