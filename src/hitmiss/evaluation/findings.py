"""What `evaluation` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, NOTE, WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    # gates
    "comparison-forced": Entry(WARNING, "INVALID BASELINE, forced: {w}"),
    "incomparable/baseline": Entry(
        ERROR, "the baseline is not comparable: {wrong}. {--force} accepts it anyway, with a warning in the report"
    ),
    "incomparable/other-items": Entry(
        ERROR,
        "the baseline is not comparable: {wrong}. {--unpaired} compares two samples of one population, {--force} anything, "
        "with a warning",
    ),
    "no-threshold-in-use": Entry(
        ERROR, "say at which threshold the old classifier flags", fix="give {--threshold 0.8}, or one for each group"
    ),
    "audit-column": Entry(ERROR, "{name} has no column {column!r}, or several for it; there are {columns}"),
    "audit-cell": Entry(ERROR, "{name}, row {row}, column {column}: {value!r} cannot be read"),
    "audit-stratum-twice": Entry(ERROR, "{name}, row {row}: this stratum was listed before"),
    "audit-unknown-stratum": Entry(ERROR, "{name}, row {row}: the population has no such stratum ({stratum})"),
    "audit-labels": Entry(
        ERROR,
        "stratum {stratum}: {labelled:,} labels of {n:,} items; each stratum needs at least one label, and at most all",
    ),
    "audit-by": Entry(ERROR, "no column of the strata is {column!r}; there are {columns}"),
    "audit-expected": Entry(
        ERROR,
        "stratum {stratum}: a plan needs the share of positives that is expected",
        fix="add the column expected to the population",
    ),
    "no-audit-plan": Entry(
        ERROR,
        "a plan needs either a number of labels or a width",
        fix="add {--labels 2000} or {--width 0.1}, or give a sample",
    ),
    "no-population": Entry(ERROR, "how many items are there in each stratum?", fix="add {--population FILE}"),
    "bad-vote": Entry(
        ERROR,
        "{name}, row {row}: the vote {value!r} means neither yes nor no",
        fix="name the word for yes: {--yes WORD}",
    ),
    "vote-of-nobody": Entry(ERROR, "{name}, row {row}: a vote without an id or an annotator"),
    "two-votes": Entry(ERROR, "{name}, row {row}: {person} says both yes and no about {item}"),
    "no-votes": Entry(ERROR, "{name} has no votes, or none about the texts that are scored"),
    "votes-column": Entry(
        ERROR,
        "which column of {name} is the {role}? There are {columns}",
        fix="write {--column <role>=NAME}, or {--votes A,B,C}",
    ),
    "votes-and-scores": Entry(
        ERROR, "{n:,} texts have votes or scores, but not both; the first is {first!r}", fix="add {--allow-missing}"
    ),
    "votes-metric": Entry(
        ERROR, "{metric} needs more than a label and these scores", fix="add {--threshold 0.5} for decisions"
    ),
    "bad-share": Entry(
        ERROR,
        "a share of {share} with a margin of {margin} cannot be",
        fix="both lie between 0 and 1, without the ends",
    ),
    "keep-needs-labels": Entry(
        ERROR, "{keep} needs labels, and these files have none", fix="give {--key?}, or keep the flag-rate"
    ),
    "new-scores-reversed": Entry(
        ERROR,
        "a higher score of the new classifier means {negative}",
        fix="read both files with the positive class that a higher score means ({--positive?})",
    ),
    "no-score/system": Entry(
        ERROR,
        "the protocol judges a whole system with claimed speakers, and these trials have no score",
        fix="give a file with scores, or a protocol for verdicts",
    ),
    "no-old-threshold": Entry(ERROR, "there is no threshold of the old classifier for {group}", fix="known: {known}"),
    "no-texts-left": Entry(
        ERROR,
        "a share of {share:g} takes all {n:,} texts for choosing thresholds, so none is left to judge",
        fix="give more texts, or a smaller share",
    ),
    "repeated-texts": Entry(ERROR, "an id stands twice in a file; give one row for each text"),
    "texts-differ": Entry(
        ERROR,
        "{n:,} texts of {name} are not in the other file, the first is {item!r}",
        fix="give both classifiers' scores of the same texts",
    ),
    "labels-differ": Entry(ERROR, "the two files give {item!r} different labels"),
    "scores-missing": Entry(ERROR, "{n:,} texts have no score", fix="drop them from both files first"),
    "two-transforms": Entry(ERROR, "give transform, or codecs or manipulate, not both"),
    "no-manipulation": Entry(
        ERROR, "no manipulation is named in {manipulate!r}", fix="write for instance noise(snr=15)"
    ),
    "option-unused/picture": Entry(ERROR, "{--picture?} goes with {--input image}"),
    "picture-unknown": Entry(
        ERROR, "{model_name} does not say how it takes pictures: {--picture?} 'resize=256, crop=224, scale=imagenet'"
    ),
    "option-unused": Entry(ERROR, "{option} goes with {other}"),
    "same-name/files": Entry(ERROR, "two files are called {names!r}; runs need names of their own"),
    "incomplete-runs": Entry(
        ERROR,
        "{said}; a mean over {column}s needs the same items in each: complete the files, or score what all of them have with {--allow-missing}",
    ),
    "no-common-item": Entry(ERROR, "no item is in every {column}; there is nothing to take a mean over"),
    "track-two": Entry(
        ERROR,
        "files of ASVspoof 5 Track 2 have three classes; here spoof and nontarget would merge",
        fix="score them with {-p asvspoof5-track2} or {-p asvspoof5-track2-single}",
    ),
    "few-errors/rule-of-30": Entry(
        WARNING, "fewer than 30 errors, so the rate is not known to ± 30 % at a level of 90 % (rule of 30): {named}"
    ),
    "few-errors/rule-of-3": Entry(WARNING, "no error was seen; at a level of 95 % the rule of 3 shows: {named}"),
    "threshold-twice": Entry(
        ERROR, "a threshold is given and another is chosen on development scores", fix="leave one of them out"
    ),
    "no-asv/key": Entry(ERROR, "{--asv-key?} belongs to {--asv?}: give the scores of the speaker verifier too"),
    "unused-asv": Entry(ERROR, "{protocol_name} uses no scores of a speaker verifier", fix="leave {--asv?} out"),
    "bad-asv-label/trials": Entry(
        ERROR,
        "{n:,} trials have an asv-label that does not fit: {item} is {word!r} with the cm-label {label}",
        fix="targets and nontargets are bona fide",
    ),
    "bad-asv-key": Entry(ERROR, "the key of the ASV must say target, nontarget or spoof; {file} does not"),
    "no-metric/protocol": Entry(ERROR, "no metric of the protocol fits these runs", fix="name one with -m"),
    "two-runs": Entry(ERROR, "{protocol_name} compares two runs, each of one model", fix="give two"),
    "bad-protocol": Entry(ERROR, "{name}: {fault}"),
    "read-twice": Entry(ERROR, "these trials are read already; a key and read options belong to files"),
    "wrong-layout": Entry(ERROR, "{part} does not score these files: {why}"),
    "other-rate/asked": Entry(ERROR, "{model_name} wants sound at {own} Hz; {--sample-rate?} says {asked}"),
    "two-manipulations": Entry(ERROR, "{--codecs?} and {--manipulate?} are two runs; a clip goes through one of them"),
    "manipulation-unused": Entry(
        ERROR, "{--manipulate?} changes sound, texts and pictures, which {--input?} {input} does not load"
    ),
    "bad-column": Entry(
        ERROR,
        "{wrong}= names a column of the table, as {wrong}='name'; found a {name}",
        fix="for arrays leave the table out: {ARRAYS}",
    ),
    "columns-by-keyword": Entry(
        ERROR, "the second argument is a key with the labels; name columns by keyword, as label={key!r}, score='NAME'"
    ),
    "array-for-name": Entry(
        ERROR,
        "{name} takes names of columns, and these are values",
        fix="put them into the table as a column, and give its name: {name}='codec'",
    ),
    "swapped-arrays": Entry(
        ERROR,
        "the first array holds more than two values and the second at most two",
        fix="labels come first: {ARRAYS}",
    ),
    "unequal-columns": Entry(
        ERROR, "columns of a table are equally long; found {n:,} values of {first!r} and {m:,} of {other!r}"
    ),
    "nothing-to-read": Entry(ERROR, "give a file or a table, or arrays by name: {ARRAYS}; found neither"),
    "two-dimensional": Entry(
        ERROR,
        "scores are one number per trial, and these have the shape {shape}",
        fix="take the column of the positive class, as scores[:, 1]",
    ),
    "open-file": Entry(ERROR, "this is an open file", fix="give its path: {file!r}"),
    "nameless-array": Entry(
        ERROR,
        "this is a {name} of values, and nothing says which are labels and which scores",
        fix="name them: {ARRAYS}, or hm.Trials.of(y, s)",
    ),
    "several-splits": Entry(ERROR, "this dataset has the splits {value}", fix="give one of them"),
    "not-a-table": Entry(ERROR, "this is not a table: {error}"),
    "not-trials": Entry(
        ERROR,
        "{verb} takes trials, a file or a table, but this is a {name}",
        fix="make trials of arrays with hm.Trials.of(y, s)",
    ),
    "bad-columns": Entry(
        ERROR, "columns= takes our names with those of the file, as {{'label': 'truth'}}; found {value!r}"
    ),
    "no-class": Entry(
        ERROR,
        "{scores} has no labels, so it does not say which class a higher score means",
        fix="say it with {--positive?}",
    ),
    "raw-scores": Entry(
        ERROR,
        "these are {kind} scores, which have no probabilities",
        fix="declare what they are ({--score-kind probability} or logit), or calibrate them",
    ),
    "bad-costs": Entry(ERROR, "costs are two numbers, as 1,10; found {costs!r}"),
    "no-rates": Entry(
        ERROR, "{file} does not state the {name} of the detector", fix="measure it with {-m <plain>} and a threshold"
    ),
    "missing-column/counts": Entry(
        ERROR, "{name} needs a column of flagged items ({FLAGGED}) and one of all items ({TOTAL}); it has {columns}"
    ),
    "missing-column/labels": Entry(ERROR, "{name} has labels, but no column {lacking}"),
    "bad-rate/stated": Entry(ERROR, "{name} is stated as counts, as 180/200; found {text!r}"),
    "bad-count": Entry(
        ERROR, "{name}, row {row}, column {column}: a count is a whole number from 0 on; found {value!r}"
    ),
    "no-rates/given": Entry(
        ERROR,
        "say how well the detector does ({--detector results.json}, or {--sensitivity 180/200} {--specificity 380/400}), or give labels of some items",
    ),
    "several-runs": Entry(ERROR, "{file} holds several runs", fix="give the results of one detector"),
    "clad-without-noise": Entry(NOTE, "clad: its seven conditions of environmental noise need ESC-50: clad(FOLDER)"),
    "codec-left-out": Entry(NOTE, "codec {name} left out: {why}"),
}
