"""What `protocols` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "raw-outputs": Entry(ERROR, "raw scores have no probability; hitmiss detect {--outputs?} raw scores them"),
    "repeated-language": Entry(ERROR, "two files are of the language {twice!r}", fix="give one of each"),
    "unknown-language": Entry(ERROR, "no row has {absent!r}; there are {there}"),
    "no-predictions": Entry(ERROR, "no file of predictions was given"),
    "unknown-language/no": Entry(ERROR, "no file is of {absent}"),
    "reserved-name": Entry(
        ERROR, "a {group} is called {clash!r}, which is the name of an average here", fix="rename it"
    ),
    "bad-threshold": Entry(ERROR, "a threshold of {given!r} decides nothing; {fix}"),
    "guarantee-units/guarantees": Entry(ERROR, "guarantees and halves go by one unit; found {unit}"),
    "no-development/confidences": Entry(
        ERROR, "confidences were recalibrated on other rows", fix="give them with {--calibrate-on?}"
    ),
    "malformed-results": Entry(ERROR, "its parts of a triage are not of the form that hitmiss writes: {error}"),
    "thresholds-of-labels": Entry(
        ERROR,
        "thresholds are written into files of one label, and these have several side by side or a key",
        fix="leave {--write} out, and keep the printed thresholds",
    ),
    "partial-file": Entry(
        ERROR,
        "thresholds are written into whole files, and only some rows were read",
        fix="leave {--where?} and {--dedupe?} out",
    ),
    "metric-of-decisions": Entry(
        ERROR, "{entry_name} needs decisions, not scores", fix="decide at a threshold inside a function of your own"
    ),
    "unknown-label": Entry(ERROR, "{part} labels are {word!r}, which is not a known class{hint}"),
    "bad-bonafide/word": Entry(
        ERROR, "the labels are {what}; bonafide says which one is bona fide, found {bonafide!r}"
    ),
    "missing-column/frame": Entry(ERROR, "no column {name!r}; the frame has {columns}"),
    "bad-bonafide": Entry(ERROR, "integer labels are 0 and 1, and bonafide=0 or bonafide=1 says which; found {given}"),
    "bad-score-form": Entry(ERROR, "scores are 'probability' or 'log-odds'; found {form!r}"),
    "one-class/eer": Entry(ERROR, "an EER needs scores of both classes; found {n_real} real and {n_fake} fake"),
    "no-scores": Entry(ERROR, "there are no scores"),
    "not-finite/scores": Entry(
        ERROR, "the model gave {wrong} scores that are NaN or infinite, the first for clip {first}"
    ),
    "bad-batch": Entry(ERROR, "a batch is (audio, labels) or (audio, speaker, labels); found {size}"),
    "bad-batch/lengths": Entry(ERROR, "a batch has {n_audio} clips and {n_label} labels"),
    "bad-batch/uneven": Entry(
        ERROR,
        "the clips of a batch have {n_lengths} lengths ({lengths} to {lengths_2} samples)",
        fix="say cut_length=…",
    ),
    "no-clips": Entry(ERROR, "the loader gave no clips"),
    "duplicate-id/noise": Entry(
        ERROR, "two records have the same id, and would draw the same noise; each needs one of its own"
    ),
    "bad-truth/outputs": Entry(ERROR, "y_true must have one value for each of the {n_before} outputs of the model"),
    "bad-truth/shape": Entry(ERROR, "truth and probabilities must have one shape; found {shape} and {shape_2}"),
    "class-names": Entry(
        ERROR, "each of the {shape} classes needs a name of its own, none of them macro; found {names}"
    ),
    "groups-differ": Entry(ERROR, "validation has {groups} and test has {groups_2}", fix="give both for the same ones"),
    "not-csv": Entry(ERROR, "{path_name}: thresholds are written into .csv files", fix="convert it first"),
    "lossy-write": Entry(
        ERROR, "{path_name}: rows without a label or score would be lost", fix="fix them before writing"
    ),
    "missing-column/language": Entry(
        ERROR,
        "{file}: neither a column nor the name of the file says its language",
        fix="say which column it is with {--column group=NAME}",
    ),
    "not-real-or-fake": Entry(ERROR, "labels are 1 (real) or 0 (fake); found {found!r}"),
}
