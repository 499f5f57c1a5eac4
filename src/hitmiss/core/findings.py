"""What the core finds: warnings that every package shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, INFO, WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "two-bands": Entry(ERROR, "{--thresholds?} takes two numbers, as 0.2 0.8; found {n_thresholds}"),
    "bad-bands/numbers": Entry(ERROR, "bands are a column and numbers, as seconds:0,2,5,10; found {bands!r}"),
    "bad-bands/order": Entry(ERROR, "the edges of bands ascend, as in seconds:0,2,5,10; found {bands!r}"),
    "not-a-number/bands": Entry(
        ERROR,
        "{column} cannot be cut into bands: {value!r} in row {row} is not a number",
        fix="name a column of numbers",
    ),
    "free-text": Entry(WARNING, "{text}"),
    "free-refusal": Entry(ERROR, "{text}"),
    "settings-blamed": Entry(ERROR, "{what} ({said}; change it there, or switch it off with {--settings none})"),
    "bad-settings/placed": Entry(ERROR, "{place}: {what}"),
    "unknown-name": Entry(ERROR, "unknown {what} {name!r}{near} Known: {known}{more}"),
    "near-names": Entry(INFO, "; did you mean {names}?"),
    "more-names": Entry(INFO, " and {n:,} more"),
    "disk-full": Entry(ERROR, "the disk is full ({reason}){where_2}; {what}"),
    "edited-artifact": Entry(
        ERROR,
        "{file} does not match its own digest: it was edited or damaged after it was written",
        fix="make it again",
    ),
    "unsealed-artifact": Entry(
        ERROR,
        "{file_name} carries no digest: it was removed, or the file is older than 0.2; so changes to it cannot be detected, and it is not used",
        fix="make it again",
    ),
    "unreadable-file/no": Entry(ERROR, "{file} is no {what}: {broken!r} in it is not an array"),
    "no-folder/write": Entry(ERROR, "there is no folder {parent} to write {target_name} into"),
    "is-folder": Entry(ERROR, "{target} is a folder", fix="name a file in it"),
    "bad-label-cut": Entry(ERROR, "labels are cut at a share of annotators above 0 and at most 1; found {label_cut:g}"),
    "own-input": Entry(
        ERROR, "{target} is an input of this command ({read}): it would be lost", fix="name another file to write"
    ),
    "own-output": Entry(
        ERROR,
        "{target} was just written by this command ({written}): it would be lost",
        fix="give each output a name of its own",
    ),
    "oversized-archive": Entry(
        ERROR, "{file} unfolds to {total:,} bytes, beyond {limit:,}; unpack it by hand if you trust it"
    ),
    "unreadable-file/damaged": Entry(ERROR, "{file} is damaged, or is not a {what} ({reason})"),
    "bad-gap": Entry(ERROR, "{--gap <given>}: auto and none cannot be combined"),
    "bad-grouping/takes": Entry(ERROR, "by takes names of columns, as 'codec' or ['codec', 'attack']; found {by!r}"),
    "bad-unit": Entry(ERROR, "unit takes names of columns, as 'speaker'; found {unit!r}"),
    "bad-thresholds": Entry(ERROR, "the low threshold must not exceed the high one; found {low} and {high}"),
    "bad-least-confidence": Entry(ERROR, "a least confidence must be a number; found NaN"),
    "nan-threshold": Entry(ERROR, "a threshold must be a number; found NaN"),
    "bad-matrix": Entry(ERROR, "{--matrix <matrix>}: write two columns, as attack,codec"),
    "design-and-options": Entry(ERROR, "a design holds all settings", fix="remove the other options"),
    "no-gap": Entry(ERROR, "no protocol says which domain is in", fix="write {--gap column=value}"),
    "bad-grouping/cannot": Entry(ERROR, "cannot group by {grouping!r}", fix="name each column once"),
    "bad-expression": Entry(ERROR, "{name} = {text!r} names no metric; {HOW}"),
    "bad-expression/cannot": Entry(ERROR, "cannot read {name} = {text!r}; {HOW}"),
    "bad-setting": Entry(ERROR, "{spec_name}: {key} must be true or false; found {value!r}"),
    "bad-setting/number": Entry(ERROR, "{spec_name}: {key} must be a number; found {value!r}"),
    "bad-gap/write": Entry(ERROR, "gap {text!r}: write column=in, column=in1+in2 or column=in:out"),
    "bad-call": Entry(ERROR, "hm.{name}: {error}; it takes {parameters}"),
    "unreadable-file/cannot": Entry(ERROR, "{filename} cannot be read: {strerror}"),
    "unreadable-table": Entry(ERROR, "the table cannot be read: {error}"),
    "weight-way": Entry(INFO, "{--weight <weight>} {--weight-kind <kind>} ({said})"),
    "weight-kind": Entry(ERROR, "say what the weights in {weight!r} are, because intervals differ: {ways:or}"),
    "weight-kind/needs": Entry(
        ERROR, "{--weight-kind?} {kind} needs the column: {--weight COLUMN} {--weight-kind <kind>}"
    ),
    "bad-separator": Entry(ERROR, "a separator is one character; found {separator!r}"),
    "bad-decimal": Entry(ERROR, "the decimal sign is '.' or ','; found {decimal!r}"),
    "name-taken": Entry(ERROR, "{kind} {name!r} exists already{part}"),
    "not-results": Entry(
        ERROR,
        "{verb} takes results or their file, but this is a {name}",
        fix="make results with hm.measure or hm.evaluate",
    ),
    "results-schema": Entry(
        ERROR, "these results have schema {schema!r}; this version of hitmiss reads schema {SCHEMA}"
    ),
    "unknown-row": Entry(ERROR, "there is no {name!r} here; there is {dict}"),
    "bad-place": Entry(ERROR, "rows are taken by place or by name, as {HOW}; found {key!r}"),
    "unknown-row/no": Entry(ERROR, "there is no {metric} for {parts}; there is {cells}"),
    "several-rows": Entry(ERROR, "{key!r} names {n_found} rows", fix="name one of {cells!r}{part} beside the metric"),
    "bad-run-option": Entry(ERROR, "{option} must be greater than 0; found {value}"),
    "bad-bootstrap": Entry(ERROR, "an interval needs at least 2 replicates (0 for none); found {bootstrap}"),
    "bad-level": Entry(ERROR, "the level must lie between 0 and 1; found {level}"),
    "bad-unit/most": Entry(ERROR, "at most two units can be crossed; found {unit}"),
    "bad-plan/not": Entry(ERROR, "{text!r} does not say how intervals were drawn"),
    "threshold-too-small": Entry(
        ERROR,
        "a threshold of {threshold!r} is too close to 0 where probabilities are reversed as 1 - p",
        fix="declare {--positive?} instead of {--higher?}",
    ),
    "bad-settings": Entry(ERROR, "{file}: [{name}] must be a table; found {found!r}"),
    "missing-settings": Entry(ERROR, "no settings file {path}; `hitmiss init FILE` writes one"),
    "bad-settings/not": Entry(ERROR, "{file_name} is not TOML: {error}"),
    "bad-settings/belongs": Entry(ERROR, "{file_name}: {name} belongs into the table [{table}]"),
    "bad-settings/text": Entry(ERROR, "{file_name}: {name} must be a text; found {data!r}"),
    "missing-gate-file": Entry(ERROR, "there is no gate file {path}", fix="write the rules into it, see docs/gate.md"),
    "bad-gate-file": Entry(ERROR, "{file}: {why}"),
    "bad-gate-file/rules": Entry(ERROR, "{file}: rules are tables", fix="write [[rules]] above each"),
    "bad-gate-file/rule": Entry(
        ERROR,
        "{file}, rule {place}: a rule is one text",
        fix="write fail_if, require or max_regression, and if you like owners and why",
    ),
    "not-signed": Entry(ERROR, "{file_name} could not be signed: {done}"),
    "no-key": Entry(ERROR, "there is no key {key} to sign with", fix="make one with ssh-keygen -t ed25519"),
    "no-signers": Entry(ERROR, "there is no list of signers {signers}"),
    "no-signature": Entry(ERROR, "{file_name} is not signed: there is no {beside_name} beside it"),
    "unknown-signer": Entry(ERROR, "{file_name} is not signed by anybody in {name}"),
    "bad-signature": Entry(ERROR, "{file_name} is not what {names} signed: {done}"),
    "not-criteria": Entry(
        ERROR, "{file} holds no locked criteria", fix="write them with `hitmiss lock requirements.toml`"
    ),
    "several-criteria": Entry(
        ERROR, "only one file of locked criteria can be given", fix="lock all requirements together"
    ),
    "no-cryptography": Entry(
        ERROR, "attestations need the package cryptography", fix="install it with: pip install hitmiss[attest]"
    ),
    "not-attested": Entry(ERROR, "the key {key} cannot be used to attest: {why}"),
    "not-an-envelope": Entry(ERROR, "{file} is not an attestation: {why}"),
    "bad-signers": Entry(ERROR, "{file} holds a key that cannot be read: {why}"),
    "no-ssh-keygen": Entry(ERROR, "signatures need {PROGRAM} of OpenSSH, which is not on this machine"),
    "bad-pair/write": Entry(ERROR, "{spelling} {fault}: write name=value, for example item=utt"),
    "not-a-column": Entry(
        ERROR, "{name} is taken for a column and needs one value per trial, {n:,} in all; found {found}{hint}"
    ),
    "masked-value": Entry(ERROR, "some values of {name} are masked", fix="drop them first"),
    "masked-value/some": Entry(ERROR, "some values of decision are masked", fix="drop them first"),
    "not-a-number": Entry(ERROR, "each {column_name} must be a number; the column holds {dtype}"),
    "missing-column/no-trials": Entry(ERROR, "no column {user_name!r}; the trials have {columns}"),
    "both-labels": Entry(
        ERROR, "{item:,} items have two labels in different runs, the first is {first!r}: {told}; an item has one label"
    ),
    "empty-score": Entry(
        ERROR,
        "{values_2:,} of {n_values:,} trials failed and have no score",
        fix="leave them out, as trials.keep(pl.col('score').is_not_null()), and say how many they were",
    ),
    "not-a-number/2": Entry(ERROR, "each {name} must be a number; {error}"),
    "unequal-length": Entry(ERROR, "label and {name} must be equally long; found {n_is_positive:,} and {n_given:,}"),
    "sampling-weights": Entry(
        ERROR,
        "{what} cannot use the sampling weights in {column!r}",
        fix="leave them out, or declare frequency weights if a row stands for so many rows",
    ),
    "bad-weight": Entry(ERROR, "every weight in {title_2!r} is 0, so there is nothing to measure"),
    "too-many-rows": Entry(
        ERROR,
        "the weights in {title_2!r} stand for {total:,} rows, and {MOST_ROWS:,} is the most",
        fix="divide them by a common factor, or declare sampling weights",
    ),
    "duplicate-id/row": Entry(
        ERROR,
        "the id {taken!r} is that of a row, and the name of a copy that the weights in {title_2!r} ask for",
        fix="rename the row",
    ),
    "name-same-class": Entry(ERROR, "{positive!r} and {negative!r} name the same class"),
    "cannot-read-metric": Entry(ERROR, "cannot read {text!r} as a metric; {fix}"),
    "settings-written-setting-value": Entry(ERROR, "{text!r}: settings are written setting=value"),
    "setting-number-word-true": Entry(ERROR, "{text!r}: a setting must be a number, a word, True, False or None"),
    "cannot-read-metric-2": Entry(
        ERROR, "cannot read {text!r} as a metric", fix="write a name, or name(setting=value)"
    ),
    "setting-given-twice": Entry(ERROR, "{text!r}: a setting is given twice"),
    "metric-take-weight-none": Entry(ERROR, "metric {name!r} must take weight=None after its columns"),
    "no-plug-file": Entry(ERROR, "no plug-in file {path}"),
    "not-python-file": Entry(ERROR, "{path} is not a Python file"),
    "plug-not-loaded": Entry(ERROR, "the plug-in {path_name} could not be loaded: {name}: {error}"),
    "estimates-average-metrics": Entry(
        ERROR, "{n_found} estimates of {metric!r} for average={average!r}, {cell}; metrics: {part}"
    ),
    "some-scores-masked": Entry(ERROR, "some scores are masked", fix="drop them first"),
    "label-score-flat-equally": Entry(
        ERROR, "label and score must be flat and equally long; found {shape} and {shape_2}"
    ),
    "scores-nan-first-position-2": Entry(
        ERROR, "{n_places} of {n_values} scores are NaN, the first at position {places}", fix="drop or fix them"
    ),
    "some-labels-masked": Entry(ERROR, "some labels are masked", fix="drop them first"),
    "label-flat-found-shape": Entry(ERROR, "label must be flat; found shape {shape}"),
    "label-positive-found-position": Entry(
        ERROR, "label must be 1 (positive) or 0; found {given!r} at position {wrong}"
    ),
    "weight-number-per-trial": Entry(ERROR, "weight must have one number per trial ({n}); found shape {shape}"),
    "weights-finite-not-negative": Entry(ERROR, "weights must be finite and not negative"),
    "score-counts-flat-equally": Entry(ERROR, "score and counts must be flat and equally long; found {shapes}"),
    "counts-finite-not-negative": Entry(ERROR, "counts must be finite and not negative"),
    "label-flat-equally-long": Entry(ERROR, "label and {name} must be flat and equally long; found {part} and {shape}"),
    "rows-share-id-first": Entry(
        ERROR, "{height} rows share an id ({key}), the first is {item!r}; each trial must occur once"
    ),
    "where-others-cannot-combined": Entry(
        ERROR, "{name!r} has {field_name} {theirs!r} where the others have {ours!r}; they cannot be combined"
    ),
    "malformed": Entry(ERROR, "these {what} are not of the form that hitmiss writes: {where}: {fault}"),
    "not-a-file/large": Entry(ERROR, "{file} has more than {most:,} bytes: it is not a {what} file"),
    "not-a-file/nested": Entry(ERROR, "{file} is not a {what} file: it is nested too deeply"),
    "not-a-file/json": Entry(ERROR, "{file} is not a {what} file: {error}"),
    "not-a-file/object": Entry(ERROR, "{file} is not a {what} file: it holds no JSON object"),
    "missing-file/named": Entry(ERROR, "there is no file {file}"),
    "bad-field": Entry(ERROR, "{option} {fault}; found {found}"),
    "bad-form": Entry(ERROR, "the {form} that the file states is not of the known form: {fault}"),
    "bad-weight/values": Entry(
        ERROR,
        "{n:,} of {total:,} weights are not allowed, the first is {value} at position {first}",
        fix="a {kind} weight is {allowed}",
    ),
    "nan-score/values": Entry(
        ERROR,
        "{n:,} of {total:,} scores are NaN, the first is {value} at position {first}",
        fix="drop these trials, or give their scores",
    ),
    "empty-score/values": Entry(
        ERROR,
        "{n:,} of {total:,} scores are empty, the first is {value} at position {first}",
        fix="drop these trials, or give the reason in a column `error`",
    ),
    "not-a-probability/values": Entry(
        ERROR, "{n:,} of {total:,} values of {name} lie outside 0..1, the first is {value} at position {first}; {fix}"
    ),
    "labels-name-no-class": Entry(ERROR, "{n:,} labels are {word!r}, which names no class"),
    "labels-name-no-class/meant": Entry(
        ERROR, "{n:,} labels are {word!r}, which names no class", fix="did you mean {meant!r}?"
    ),
    "not-allowed": Entry(
        ERROR, "each {name} must be one of {allowed}; found {n} that are not, the first is {value} at position {first}"
    ),
    "not-registered": Entry(ERROR, "{name} is not registered", fix="put @hitmiss.metric(best=…) above it"),
    "which-class/label": Entry(ERROR, "{question}", fix="say it in one of these ways{way}"),
    "open-class/word": Entry(ERROR, "the {column}{words}, and nothing says which class is the positive one"),
    "open-class/number": Entry(ERROR, "the {column}{words}, and nothing says which of 1 and 0 is {positive}"),
}
