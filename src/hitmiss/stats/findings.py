"""What `stats` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "bad-plan": Entry(ERROR, "a plan needs a positive target and a positive error; found {target:g} and {error:g}"),
    "bad-plan/value": Entry(ERROR, "without a pilot, the value of {metric} must lie between 0 and 1; found {value:g}"),
    "bad-plan/correlation": Entry(ERROR, "a correlation lies between -1 and 1; found {correlation:g}"),
    "bad-plan/unit": Entry(
        ERROR, "a unit has at least one trial, and their correlation lies in 0..1; found {each:g} and {alike:g}"
    ),
    "bad-plan/unreachable": Entry(ERROR, "no plan reaches {target:g}"),
    "impossible-counts": Entry(ERROR, "{flagged} flagged of {n} items cannot be"),
    "no-rate": Entry(
        ERROR,
        "a {name} of {rate:g} known from {known:g} items is no rate",
        fix="give a rate in 0..1 and a number above 0",
    ),
    "impossible-counts/positive": Entry(
        ERROR, "{positive} positive of {labelled} labelled of {size} {name} items cannot be"
    ),
    "unlabelled-group": Entry(ERROR, "no {name} item is labelled; label some at random"),
    "tally-too-large": Entry(
        ERROR, "this metric needs the whole tally, and the trials are too many to keep", fix="raise {--memory?}"
    ),
    "bad-counts/pairs": Entry(ERROR, "counts of discordant pairs cannot be negative; found {only_a} and {only_b}"),
    "strata-and-units": Entry(
        ERROR,
        "cannot stratify by class while drawing whole units of {name!r}: {mixed} of {n_units} hold both classes",
        fix="leave out the strata or choose another unit",
    ),
}
