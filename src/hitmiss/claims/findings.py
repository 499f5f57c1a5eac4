"""What `claims` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "no-rows": Entry(ERROR, "{text}: no row has {cells}"),
    "bad-choice": Entry(ERROR, "{text!r}: choose a run by column=value, as {path}[model=m]"),
    "results-not-trials": Entry(
        ERROR,
        "{name} holds figures, not trials, so there is nothing to pair",
        fix="give the score files that it was made from",
    ),
    "claim-of-tallies": Entry(
        ERROR,
        "the claim was made from *.tally files, which this version does not read: score the folders of the runs again (hitmiss score RUN... {--stream?}), and verify that claim",
    ),
    "no-development": Entry(
        ERROR, "this claim was made on calibrated scores", fix="give the development files with {--calibrate-on?}"
    ),
    "other-runs": Entry(ERROR, "the claim is about {n_sides} runs and {n_words} were given"),
    "keys": Entry(ERROR, "{--key?} was given {n_keys} times for {n_sides} runs", fix="give it once, or once per run"),
    "key-of-counts": Entry(ERROR, "counts have no ids to join a key with", fix="leave {--key?} out"),
    "comparison-signature": Entry(
        ERROR,
        "the signature of a comparison does not say how its runs were read",
        fix="give the file that `compare -o` wrote",
    ),
    "calibrated-signature": Entry(
        ERROR, "this claim was made on calibrated scores", fix="give its results file, and {--calibrate-on?}"
    ),
    "several-keys": Entry(ERROR, "one claim has one key", fix="give {--key?} once"),
    "key-not-a-table": Entry(ERROR, "the key of a table is a table of the same database"),
}
