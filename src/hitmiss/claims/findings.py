"""What `claims` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, NOTE, WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "unread-option": Entry(
        ERROR,
        "{run} holds results, which were measured already",
        fix="give the score file to measure it with {--weight <weight>}, or leave {--weight?} out",
    ),
    "no-scores/claim": Entry(
        ERROR,
        "{claim} is recomputed from its files",
        fix="give them: hm.verify({claim!r}, 'scores.csv', key='key.csv')",
    ),
    "no-results": Entry(
        ERROR, "the folder {run} has no results.json", fix="write one with hitmiss score … {-o <run>/results.json}"
    ),
    "no-rows": Entry(ERROR, "{text}: no row has {cells}"),
    "bad-choice": Entry(ERROR, "{text!r}: choose a run by column=value, as {path}[model=m]"),
    "results-not-trials": Entry(
        ERROR,
        "{name} holds numbers, not trials, so there is nothing to pair",
        fix="give the score files that it was made from",
    ),
    "claim-of-tallies": Entry(
        ERROR,
        "the claim was made from *.tally files, which this version does not read",
        fix="score the runs again (hitmiss score RUN... {--stream?}), and verify that",
    ),
    "no-development": Entry(
        ERROR, "this claim was made on calibrated scores", fix="give the development files with {--calibrate-on?}"
    ),
    "other-runs": Entry(ERROR, "the claim is about {n_sides} runs and {n_words} were given"),
    "comparison-signature": Entry(
        ERROR,
        "the signature of a comparison does not say how its runs were read",
        fix="give the file that `compare -o` wrote",
    ),
    "calibrated-signature": Entry(
        ERROR, "this claim was made on calibrated scores", fix="give its results file, and {--calibrate-on?}"
    ),
    "attest-file": Entry(
        ERROR, "an attestation names the file of a claim, and this claim is a signature", fix="give its results file"
    ),
    "attest-both": Entry(ERROR, "{--attest?} and {--attest-key?} belong together: the file to write, and who signs it"),
    "not-the-attested": Entry(ERROR, "{file} is not the file that {attestation} is about"),
    "attested-failure": Entry(ERROR, "{attestation} states that the claim did not hold"),
    "no-signers-given": Entry(
        ERROR,
        "{attestation} is an attestation: its signature is checked first",
        fix="give the known keys with {--signers?}",
    ),
    "criteria-named": Entry(
        NOTE,
        "criteria {digest} came before these results, which name them; locked {locked} (stated, not proved)",
    ),
    "criteria-before": Entry(
        NOTE,
        "criteria {digest} were locked {locked}, before {name} was written ({written}); both times are stated, not proved",
    ),
    "criteria-after": Entry(
        WARNING,
        "criteria {digest} were locked {locked}, after {name} was written ({written}): they did not come before the results",
    ),
    "criteria-undated": Entry(
        NOTE, "criteria {digest} were locked {locked} (stated, not proved); when the results were made is not known"
    ),
    "criteria-changed": Entry(WARNING, "changed since the criteria were locked: {what}: {before} then, {now} now"),
    "claim-without-design": Entry(
        ERROR,
        "{file_name} does not state what was asked, so its words cannot be recomputed",
        fix="write it again (hitmiss score ... -o {file_name}), or verify its signature",
    ),
    "not-comparison": Entry(ERROR, "{name} is not a comparison", fix="write one with `hitmiss compare A B -o {name}`"),
    "several-keys": Entry(ERROR, "one claim has one key", fix="give {--key?} once"),
    "key-not-a-table": Entry(ERROR, "the key of a table is a table of the same database"),
}
