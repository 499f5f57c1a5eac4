"""What the core finds: warnings that every package shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, INFO, WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "two-thresholds": Entry(ERROR, "{--thresholds?} takes two numbers, as 0.2 0.8; found {n}"),
    "bad-bands/numbers": Entry(ERROR, "bands are a column and numbers, as seconds:0,2,5,10; found {bands!r}"),
    "bad-bands/order": Entry(ERROR, "the edges of bands ascend, as in seconds:0,2,5,10; found {bands!r}"),
    "not-a-number/bands": Entry(
        ERROR,
        "{column} cannot be cut into bands: {value!r} in row {row} is not a number",
        fix="name a column of numbers",
    ),
    "table-for-labels": Entry(
        ERROR,
        "Trials.of takes labels and scores as arrays, and this is a table",
        fix="read it: hm.read(table, label='NAME', score='NAME')",
    ),
    "read-already": Entry(
        ERROR, "{verb} was given trials, which are read already; {names} belongs to hm.read, or give the table itself"
    ),
    "free-text": Entry(WARNING, "{text}"),
    "free-refusal": Entry(ERROR, "{text}"),
    "settings-blamed": Entry(ERROR, "{what} ({said}; change it there, or switch it off with {--settings none})"),
    "bad-settings/placed": Entry(ERROR, "{place}: {what}"),
    "unknown-name": Entry(ERROR, "unknown {what} {name!r}{near} Known: {known}{more}"),
    "unknown-name/many": Entry(ERROR, "unknown {what} {name!r}{near} There are {n:,} in all{listing}"),
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
    "unreadable-file/array": Entry(ERROR, "{file} is no {what}: {broken!r} in it is not an array"),
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
    "bad-grouping/type": Entry(ERROR, "by takes names of columns, as 'codec' or ['codec', 'attack']; found {by!r}"),
    "bad-unit": Entry(ERROR, "unit takes names of columns, as 'speaker'; found {unit!r}"),
    "bad-thresholds": Entry(ERROR, "the low threshold must not exceed the high one; found {low} and {high}"),
    "nan-threshold": Entry(ERROR, "a threshold must be a number; found NaN"),
    "bad-matrix": Entry(ERROR, "{--matrix <matrix>}: write two columns, as attack,codec"),
    "design-and-options": Entry(ERROR, "a design holds all settings", fix="remove the other options"),
    "no-gap": Entry(ERROR, "no protocol says which domain is in", fix="write {--gap column=value}"),
    "bad-grouping/twice": Entry(ERROR, "cannot group by {grouping!r}", fix="name each column once"),
    "bad-expression": Entry(ERROR, "{name} = {text!r} names no metric; {HOW}"),
    "bad-expression/form": Entry(ERROR, "cannot read {name} = {text!r}; {HOW}"),
    "bad-setting": Entry(ERROR, "{spec_name}: {key} must be true or false; found {value!r}"),
    "bad-setting/number": Entry(ERROR, "{spec_name}: {key} must be a number; found {value!r}"),
    "bad-gap/form": Entry(
        ERROR, "gap {text!r}: write column=in, column=in1+in2, column=in:out, column=in:* or column=*"
    ),
    "bad-call": Entry(ERROR, "hm.{name}: {error}; it takes {parameters}"),
    "results-of-file": Entry(ERROR, "results are read from their file", fix="write hm.Results.load({file!r})"),
    "bad-argument": Entry(ERROR, "hm.{name}: {argument} must be a {expected}; found a {found}"),
    "unreadable-file/refused": Entry(ERROR, "{filename} cannot be read: {strerror}"),
    "unreadable-table": Entry(ERROR, "the table cannot be read: {error}"),
    "weight-way": Entry(INFO, "{--weight <weight>} {--weight-kind <kind>} ({said})"),
    "weight-kind": Entry(ERROR, "say what the weights in {weight!r} are, because intervals differ: {ways:or}"),
    "weight-kind/column": Entry(
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
    "unknown-row/slice": Entry(ERROR, "there is no {metric} for {parts}; there is {cells}"),
    "several-rows": Entry(ERROR, "{key!r} names {n_found} rows", fix="name one of {cells!r}{part} beside the metric"),
    "bad-bootstrap": Entry(ERROR, "an interval needs at least 2 replicates (0 for none); found {bootstrap}"),
    "bad-level": Entry(ERROR, "the level must lie between 0 and 1; found {level}"),
    "bad-unit/crossed": Entry(ERROR, "at most two units can be crossed; found {unit}"),
    "bad-draws": Entry(ERROR, "{text!r} does not say how intervals were drawn"),
    "threshold-too-small": Entry(
        ERROR,
        "a threshold of {threshold!r} is too close to 0 where probabilities are reversed as 1 - p",
        fix="declare {--positive?} instead of {--higher?}",
    ),
    "bad-settings": Entry(ERROR, "{file}: [{name}] must be a table; found {found!r}"),
    "missing-settings": Entry(ERROR, "no settings file {path}; `hitmiss init FILE` writes one"),
    "bad-settings/table": Entry(ERROR, "{file_name}: {name} belongs into the table [{table}]"),
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
    "not-attested": Entry(ERROR, "the key {key} cannot be used to attest: {why}"),
    "not-an-envelope": Entry(ERROR, "{file} is not an attestation: {why}"),
    "bad-signers": Entry(ERROR, "{file} holds a key that cannot be read: {why}"),
    "no-ssh-keygen": Entry(ERROR, "signatures need {PROGRAM} of OpenSSH, which is not on this machine"),
    "bad-pair/form": Entry(ERROR, "{spelling} {fault}: write name=value, for example item=utt"),
    "not-a-column": Entry(
        ERROR, "{name} is taken for a column and needs one value per trial, {n:,} in all; found {found}{hint}"
    ),
    "masked-value": Entry(ERROR, "some values of {name} are masked", fix="drop them first"),
    "not-a-number": Entry(ERROR, "each {column_name} must be a number; the column holds {dtype}"),
    "missing-column/trials": Entry(ERROR, "no column {user_name!r}; the trials have {columns}"),
    "both-labels": Entry(
        ERROR, "{item:,} items have two labels in different runs, the first is {first!r}: {told}; an item has one label"
    ),
    "empty-score": Entry(
        ERROR,
        "{values_2:,} of {n_values:,} trials failed and have no score",
        fix="leave them out, as trials.keep(pl.col('score').is_not_null()), and say how many they were",
    ),
    "not-a-number/value": Entry(ERROR, "each {name} must be a number; {error}"),
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
    "duplicate-id/copy": Entry(
        ERROR,
        "the id {taken!r} is that of a row, and the name of a copy that the weights in {title_2!r} ask for",
        fix="rename the row",
    ),
    "same-class": Entry(ERROR, "{positive!r} and {negative!r} name the same class"),
    "bad-metric": Entry(ERROR, "cannot read {text!r} as a metric; {fix}"),
    "bad-metric/setting": Entry(ERROR, "{text!r}: settings are written setting=value"),
    "bad-metric/value": Entry(ERROR, "{text!r}: a setting must be a number, a word, True, False or None"),
    "bad-metric/form": Entry(ERROR, "cannot read {text!r} as a metric", fix="write a name, or name(setting=value)"),
    "bad-metric/twice": Entry(ERROR, "{text!r}: a setting is given twice"),
    "metric-without-weight": Entry(ERROR, "metric {name!r} must take weight=None after its columns"),
    "bad-plugin/python": Entry(ERROR, "{path} is not a Python file"),
    "bad-plugin": Entry(ERROR, "the plug-in {path_name} could not be loaded: {name}: {error}"),
    "not-a-label": Entry(ERROR, "label must be 1 (positive) or 0; found {given!r} at position {wrong}"),
    "bad-weight/shape": Entry(ERROR, "weight must have one number per trial ({n}); found shape {shape}"),
    "bad-weight/negative": Entry(ERROR, "weights must be finite and not negative"),
    "bad-counts": Entry(ERROR, "counts must be finite and not negative"),
    "duplicate-id/rows": Entry(
        ERROR, "{height} rows share an id ({key}), the first is {item!r}; each trial must occur once"
    ),
    "unlike-headers": Entry(
        ERROR, "{name!r} has {field_name} {theirs!r} where the others have {ours!r}; they cannot be combined"
    ),
    "malformed": Entry(ERROR, "these {what} are not of the form that hitmiss writes: {where}: {fault}"),
    "not-a-file/large": Entry(ERROR, "{file} has more than {most:,} bytes: it is not a {what} file"),
    "not-a-file/nested": Entry(ERROR, "{file} is not a {what} file: it is nested too deeply"),
    "not-a-file/object": Entry(ERROR, "{file} is not a {what} file: it holds no JSON object"),
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
    "incomparable": Entry(
        ERROR,
        "{first} and {second} cannot be compared: {wrong}. {--force} compares them anyway, with a warning in the report",
    ),
    "key-of-counts": Entry(
        ERROR,
        "counts have no ids to join a key with: their labels are those that they were counted by",
        fix="leave {--key?} out",
    ),
    "missing-file": Entry(ERROR, "there is no {what} {file}"),
    "missing-package": Entry(ERROR, "{what} needs the package {package!r} ({error}): pip install '{install}'"),
    "nan-score/at": Entry(
        ERROR,
        "{n:,} of {total:,} scores are NaN, the first at position {first}",
        fix="drop these trials, or give their scores",
    ),
    "nan-score": Entry(ERROR, "{n:,} of {total:,} scores are NaN", fix="drop these trials, or give their scores"),
    "no-output-column": Entry(ERROR, "there is no output column {index}; the model has {n}"),
    "no-sample-rate": Entry(ERROR, "{name} does not say its sample rate", fix="say {--fs?}"),
    "not-a-file": Entry(ERROR, "{file} is not a {what} file: {error}"),
    "not-finite": Entry(ERROR, "{name} gave values that are NaN or infinite"),
    "not-flat": Entry(ERROR, "{name} must be flat; found the shape {shape}"),
    "not-numeric": Entry(ERROR, "{name} must hold numbers; found {found}"),
    "not-one-row": Entry(ERROR, "{n} {what} of {metric!r} for average={average!r}, {cell}; metrics: {known}"),
    "not-probabilities": Entry(
        ERROR,
        "{name} must be probabilities, 0 to 1; found {low:g} to {high:g}",
        fix="convert or calibrate them first if they are logits or scores",
    ),
    "not-utf8": Entry(ERROR, "{file} is not UTF-8 text", fix="save it as UTF-8"),
    "one-class": Entry(ERROR, "{what} needs trials of both classes; all of these are of one"),
    "one-class/counted": Entry(ERROR, "{what} needs both classes; found {n:,} positives of {total:,}"),
    "one-run": Entry(ERROR, "a comparison needs two runs or more; found {n}"),
    "option-count": Entry(ERROR, "{option} was given {n:times} for {total:runs}", fix="give it once, or once per run"),
    "out-of-range": Entry(ERROR, "{name} must lie between {low:g} and {high:g}; found {found!r}"),
    "out-of-range/above": Entry(ERROR, "{name} must be above {low:g}; found {found!r}"),
    "out-of-range/inside": Entry(ERROR, "{name} must lie between {low:g} and {high:g}, ends excluded; found {found!r}"),
    "out-of-range/least": Entry(ERROR, "{name} must be {least:g} or more; found {found!r}"),
    "out-of-range/up-to": Entry(ERROR, "{name} must be above {low:g} and at most {high:g}; found {found!r}"),
    "output-count": Entry(ERROR, "{name} gives {n} outputs and {n_classes} classes are named", fix="name each of them"),
    "output-shape": Entry(ERROR, "{name} gave the shape {shape} for {n:,} {what}; one row for each is needed"),
    "run-finished": Entry(ERROR, "{folder} holds a finished run", fix="give another folder"),
    "run-unfinished": Entry(
        ERROR, "{folder}: the run is not finished ({state}); go on with the same command and {--resume}"
    ),
    "undecodable": Entry(ERROR, "{what} cannot be decoded: {why}"),
    "unequal-counts": Entry(
        ERROR, "{n:,} records, {n_configs:,} configurations and {n_each:,} {what}; one each is needed"
    ),
    "unequal-length": Entry(ERROR, "{names:and} must be flat and equally long; found {sizes:and}"),
    "unwritable-id": Entry(
        ERROR, "an id holds a tab, a quote or a line end, which this format cannot write: {first} ({n:,} in all)"
    ),
    "which-column": Entry(
        ERROR, "the model has {n} output columns", fix="say which is {positive}: {--positive-index?}"
    ),
    "wrong-shape": Entry(ERROR, "{name} must be {form}; found the shape {shape}"),
    "identity-unfit": Entry(
        ERROR,
        "{--identity <names>} compares scores of texts that mention an identity, and here are {why}",
        fix="leave it out, or give files of texts with scores",
    ),
}
