"""What `io` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, INFO, NOTE, WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "mixed-conditions": Entry(WARNING, "{what}; {fix}"),
    "mixed-sources": Entry(ERROR, "{other} is not the folder of a run, unlike the others", fix="give one kind"),
    "runs-differ": Entry(
        ERROR, "{folder} has other classes, columns or kinds of scores than {sources}", fix="score them one by one"
    ),
    "no-results-in-folder": Entry(ERROR, "{folder} holds no results: JSON lines with a prediction"),
    "broken-log": Entry(ERROR, "{path_name}{line}: the log is damaged", fix="fetch it again, or make it anew"),
    "log-not-finished": Entry(
        ERROR, "{path_name}: the run was not finished (it is {state})", fix="finish it with the tool that began it"
    ),
    "log-packed": Entry(
        ERROR, "{path_name} is packed with Zstandard", fix="install what reads it: pip install 'hitmiss[llm]'"
    ),
    "log-empty": Entry(ERROR, "{path_name} holds no answer"),
    "log-not-graded": Entry(
        ERROR, "{path_name}: no answer has a grade", fix="score the log with the tool that wrote it"
    ),
    "log-several-models": Entry(
        ERROR, "{path_name} holds the samples of several models ({folders})", fix="give the folder of one of them"
    ),
    "several-logs": Entry(
        ERROR,
        "logs of other tools are one run each, and {path_name} is a second",
        fix="compare them: `hitmiss compare A B`",
    ),
    "no-rows/item": Entry(ERROR, "no item is left", fix="check {--where?}"),
    "rows-beyond-memory": Entry(
        ERROR,
        "these numbers need every row at once, and the rows read so far take {size:,.0f} MB",
        fix="raise {--memory?}, or give fewer rows",
    ),
    "not-utf8/column": Entry(
        ERROR, "the column {column_name} holds bytes that are not UTF-8 text", fix="write it as text"
    ),
    "missing-file/refused": Entry(ERROR, "{address} {what}"),
    "scratch-full": Entry(
        ERROR,
        "{what} is larger than what {folder} has room for: {free} MiB are left free",
        fix="name another folder with {--scratch?}, or fetch a part of it",
    ),
    "unreachable": Entry(ERROR, "{address} cannot be reached ({why})"),
    "no-match": Entry(ERROR, "no file matches {pattern!r}"),
    "remote-file": Entry(
        ERROR,
        "{address}: files are read from this machine, from {STORES} and https://; fetch it first and give its path",
    ),
    "password-in-address": Entry(
        ERROR,
        "{address}: an address with a password in it is not read, since addresses are kept in shells and logs",
        fix="use a signed link, or fetch the file first",
    ),
    "cut-short": Entry(ERROR, "{address}: {done:,} of {length} bytes came", fix="try again"),
    "forbidden-file": Entry(ERROR, "{address} {what}"),
    "ambiguous-column": Entry(
        ERROR, "{--weight <weight>}: the column is already used as the {ours}", fix="name the column of the weights"
    ),
    "score-direction": Entry(
        ERROR,
        "the column {column} says that a higher score means {named}, and the positive class is {positive}",
        fix="say which one holds, by {--higher?} or {--positive?}",
    ),
    "table-address": Entry(
        ERROR, "{path} is a table, which `hitmiss score` alone has counted", fix="write it as a Parquet file for this"
    ),
    "bad-address": Entry(ERROR, "{given}: a table of DuckDB is named duckdb:FILE#TABLE"),
    "no-classes": Entry(
        ERROR, "{folder} has no folder per class with files in it; a manifest is a table or such a folder"
    ),
    "bad-configuration/threshold": Entry(ERROR, "{name}: evaluation.default_threshold {what} (found {default!r})"),
    "bad-configuration/large": Entry(
        ERROR, "{source_name} is larger than {MOST_BYTES:,} bytes, which no configuration is"
    ),
    "bad-configuration": Entry(ERROR, "{source_name}: a configuration is a mapping of names; found {name}"),
    "bad-configuration/section": Entry(ERROR, "{name}: unknown section {key!r}; did you mean {near!r}?"),
    "bad-configuration/alias": Entry(
        ERROR, "{name}, line {line}: aliases (*{anchor}) are not read", fix="write it out"
    ),
    "bad-configuration/nested": Entry(ERROR, "{name}: nested deeper than {DEEPEST} levels"),
    "not-embeddings/format": Entry(
        ERROR, "{path_name} is none of {readers}", fix="save the embeddings as one of these"
    ),
    "not-embeddings/lengths": Entry(
        ERROR, "{file}: column {column_name!r} must hold lists of one length; found {lengths}"
    ),
    "not-embeddings": Entry(ERROR, "{file} holds no embeddings; it has {columns}"),
    "not-embeddings/sizes": Entry(ERROR, "{file}: all arrays must be about the same items; found {sizes}"),
    "missing-column/ids": Entry(ERROR, "{where_2} has no column of item ids ({ITEM_NAMES}); it has {known}"),
    "duplicate-id/key": Entry(ERROR, "the key names some items more than once, the first is {twice!r}"),
    "not-in-key": Entry(ERROR, "{n_missing} of {n_items} items are not in the key, the first is {missing!r}"),
    "not-embeddings/damaged": Entry(ERROR, "{path_name} cannot be read: {error!r} ({hint})"),
    "not-embeddings/array": Entry(
        ERROR, "{file}: array {name!r} has shape {shape} and type {dtype}", fix="see the docs"
    ),
    "bad-source": Entry(
        ERROR, "trials are read from files, tables, lists of dicts or arrays; found something of the type {name}"
    ),
    "no-folder/predictions": Entry(
        ERROR, "there is no folder {folder}", fix="say where the predictions are with {--pred_dir?}"
    ),
    "bad-run-tag": Entry(ERROR, "a run tag is the beginning of a file name; found {run_tag!r}"),
    "no-language-files": Entry(
        ERROR,
        "there is no file {run_tag}_<language>.csv in {directory_name}: {found}",
        fix="check {--run_tag?}, or name the languages with {--languages?}",
    ),
    "repeated-language/asked": Entry(
        ERROR, "the language {twice!r} was asked for twice; it would count twice in the macro average"
    ),
    "repeated-language/files": Entry(ERROR, "{paths} are the same language", fix="keep one of them"),
    "is-folder/run": Entry(ERROR, "{path} is a folder", fix="say which run in it, as {path}:baseline"),
    "no-rows/lacking": Entry(ERROR, "no row is left: every one lacks its label, score or decision"),
    "missing-column/review": Entry(
        ERROR, "{rows_name} has no column {missing!r}", fix="give a file that `hitmiss review --export` wrote"
    ),
    "mixed-reviews": Entry(ERROR, "{rows_name} says per_item {said}: give the verdicts of one review at a time"),
    "changed-while-read": Entry(
        ERROR, "{changed} changed while it was read; evaluate again when no other process writes to it"
    ),
    "missing-file/given": Entry(ERROR, "no file was given"),
    "unknown-encoding": Entry(ERROR, "unknown encoding {encoding!r}"),
    "missing-column/files": Entry(ERROR, "the manifest has no column {named!r} of files; it has {columns}"),
    "no-rows/manifest": Entry(ERROR, "no row of the manifest has {values_2}"),
    "not-probabilities/kind": Entry(
        ERROR, "{score_kind} scores are not probabilities", fix="write them with probability=False"
    ),
    "official-file/direction": Entry(
        ERROR,
        "in an official file a higher score means bonafide, in these trials {positive}",
        fix="read them with positive='bonafide'",
    ),
    "official-file/systems": Entry(
        ERROR, "an official file holds one system and each id once", fix="choose one run, as trials.where(system=…)"
    ),
    "unwritable-value": Entry(
        ERROR,
        "{broken} values of {name} hold a tab, a quote or a line end, the first is {value!r}; a TSV cannot hold them: take the run's trials.parquet",
    ),
    "several-systems": Entry(
        ERROR, "a table of predictions is of one system: give one {--score-column?}, or score the systems one by one"
    ),
    "no-rows/file": Entry(
        ERROR, "{empty}: no row has {name}={values_2}", fix="check {--where?}, or leave the file out"
    ),
    "several-runs/table": Entry(
        ERROR, "a table of predictions is of one run, and {name} names several ({values_2}): choose one with {--where?}"
    ),
    "unread-option/refused": Entry(ERROR, "{option_name} {why}", fix="leave it out"),
    "unread-option/predictions": Entry(ERROR, "{name} applies only to predictions ({-p toxicity})"),
    "missing-column/pair": Entry(ERROR, "{--pair?}: there is no column {absent!r}; there are {there}"),
    "holds-objects": Entry(
        ERROR,
        "{file} holds an array of Python objects, which is not read",
        fix="save text as np.array(names, dtype=str)",
    ),
    "missing-language": Entry(
        ERROR,
        "no predictions of {run_tag} for {missing} in {folder}: {there}; {hint}name only those that are there, or say {--missing_language skip}",
    ),
    "languages-meant": Entry(INFO, "did you mean {meant}? "),
    "path-outside": Entry(
        ERROR,
        "the path leads out of the folder of the files (found {file!r})",
        fix="put the files under one folder and name it with {--root?}",
    ),
    "unusable-verdicts": Entry(ERROR, "{n:rows} of {file} cannot be used: {why}"),
    "lines-lack-names": Entry(NOTE, "{file}: {n:,} of {total:,} lines lack some of the names {names}; read as empty"),
    "blank-mentions": Entry(NOTE, "{column}: {n:,} blank cells were taken as not mentioning it"),
    "rows-numbered": Entry(NOTE, "{file}: it has no ids; rows are numbered and cannot be paired with another run's"),
    "blank-column": Entry(NOTE, "{file}: the column {column} is blank and counts as absent"),
    "first-threshold": Entry(NOTE, "{group}: {spread}; the first, {first!r}, was used for all rows"),
    "blank-thresholds": Entry(NOTE, "{group}: {column} is blank in {n:,} of {total:,} rows; {used}"),
    "rows-dropped/groups": Entry(NOTE, "{n:,} rows without a label, score or decision were dropped ({parts})"),
    "no-language-seen": Entry(
        NOTE, "no language was seen in {files}: left out; name it with {--languages?} if it is one"
    ),
    "languages-inferred": Entry(NOTE, "languages inferred from file names: {languages}"),
    "quotes-as-text": Entry(NOTE, "{file}: its quote characters enclose no fields and were read as text"),
    "rows-dropped": Entry(NOTE, "{n:,} rows without a label or a score were dropped"),
    "one-class-only": Entry(NOTE, "all {n:,} trials are {name}: nothing that compares the classes is defined"),
    "unscored-left-out": Entry(
        NOTE, "{n:,} of {total:,} {what} of the key have a score: {absent:,} without one were left out{ids}"
    ),
    "unlisted-left-out": Entry(NOTE, "{n:,} scored ids are not in the key and were left out{ids}"),
    "other-sheets": Entry(NOTE, "{file}: the sheet {sheet} was read, and not {left}"),
    "encoding-guessed": Entry(NOTE, "{file}: read as {encoding}, which its NUL bytes show; it has no byte-order mark"),
    "encoding-guessed/latin": Entry(NOTE, "{file}: not UTF-8, read as latin-1; say {--encoding?} if that is wrong"),
    "not-binary": Entry(NOTE, "{file}: the column {column} is not binary, so it is not taken as the decision"),
    "no-slice-column": Entry(NOTE, "there is no column {columns} to slice by"),
    "missing-file/here": Entry(ERROR, "there is no such file", fix="check its name"),
    "unreadable-file/stdin": Entry(
        ERROR,
        "stdin can be read once, and streaming may read a file twice",
        fix="write it to a file, or leave {--stream?} out",
    ),
    "unreadable-file/broken": Entry(ERROR, "the {what} is damaged ({reason})", fix="make or fetch it again"),
    "unreadable-file/cut": Entry(
        ERROR, "it begins as a Parquet file and does not end as one", fix="make or fetch it again"
    ),
    "unreadable-file/suffix": Entry(
        ERROR,
        "its name ends in {suffix}, and its content is neither such a table nor text",
        fix="make or fetch it again",
    ),
    "unreadable-file/folder": Entry(
        ERROR, "it is a folder, but not a run of hitmiss", fix="give the files in it, as 'FOLDER/*.csv'"
    ),
    "unreadable-file/device": Entry(ERROR, "it is a device, which has no end", fix="give a file"),
    "unreadable-file/large": Entry(
        ERROR, "it has more than {most:,} bytes", fix="add {--stream?}, or fetch it and score the file"
    ),
    "unreadable-encoding/nul": Entry(ERROR, "the text holds a NUL byte", fix="fix the file, or say {--encoding?}"),
    "unreadable-encoding/neither": Entry(
        ERROR, "the text is neither UTF-8 nor latin-1", fix="say {--encoding?}, as cp1252"
    ),
    "unreadable-encoding/other": Entry(ERROR, "the text is not {encoding}", fix="say {--encoding?}"),
    "unreadable-encoding/half": Entry(ERROR, "the {encoding} text holds half a character", fix="fix the file"),
    "unreadable-encoding/utf16": Entry(
        ERROR, "the text is UTF-16, and only UTF-8 is streamed", fix="convert the file, or leave {--stream?} out"
    ),
    "unreadable-encoding/streamed": Entry(
        ERROR, "the text is not UTF-8, and only UTF-8 is streamed", fix="convert the file, or leave {--stream?} out"
    ),
    "stray-line-end": Entry(ERROR, "a line contains a lone carriage return", fix="use one kind of line end"),
    "oversized-line": Entry(
        ERROR, "a line, or a quoted field, is longer than {most:,} bytes", fix="give a table of scores"
    ),
    "oversized-archive/packed": Entry(
        ERROR, "the archive unfolds beyond {limit:,} bytes", fix="unpack it by hand if you trust it"
    ),
    "oversized-archive/workbook": Entry(
        ERROR, "the workbook unfolds beyond {limit:,} bytes", fix="save the table as CSV"
    ),
    "oversized-archive/table": Entry(
        ERROR,
        "its {rows:,} rows of {width} columns unfold beyond {limit:,} bytes",
        fix="write it again as CSV if you trust it",
    ),
    "binary-file": Entry(ERROR, "it is {kind}, not text", fix="{cure}"),
    "binary-file/arrow": Entry(
        ERROR, "it is an Arrow file, which is read whole", fix="write it as Parquet, or leave {--stream?} out"
    ),
    "binary-file/tally": Entry(
        ERROR,
        "it is a tally, which this version does not read",
        fix="score the folder of its run: `hitmiss score RUN --stream`",
    ),
    "empty-file": Entry(ERROR, "the file holds no rows", fix="give a file with rows"),
    "empty-file/table": Entry(ERROR, "the table holds no rows", fix="give a table with rows"),
    "empty-file/workbook": Entry(ERROR, "the workbook holds no rows", fix="give a file with rows"),
    "empty-file/header": Entry(ERROR, "there is a header and no row under it", fix="give a file with rows"),
    "empty-file/array": Entry(
        ERROR, "the JSON array is empty", fix="write an array of objects, or one object per line"
    ),
    "shards-differ": Entry(ERROR, "its columns differ from those of {other}", fix="give shards of one kind"),
    "ragged-row": Entry(
        ERROR,
        "{n:rows} with another number of fields than the {width} of the first row",
        "{width} fields were expected",
        fix="fix them, or say {--separator?} (it was taken to be {separator})",
    ),
    "results-file": Entry(
        ERROR,
        "this file holds results, not scores",
        fix="give the score files that it was made from; hitmiss report shows results",
    ),
    "ragged-row/json": Entry(
        ERROR,
        "{n:lines} without a JSON object that has one value per name ({why})",
        "a JSON object was expected",
        fix="write one object per line",
    ),
    "ragged-row/array": Entry(
        ERROR, "the JSON array cannot be read ({why})", fix="write an array of objects, or one object per line"
    ),
    "ragged-row/values": Entry(
        ERROR,
        "{n:values} of the JSON array that are no objects",
        fix="write an array of objects, or one object per line",
    ),
    "ambiguous-quotes": Entry(
        ERROR,
        "the quote characters can be read in two ways: round fields of several lines, or as ordinary characters",
        fix="write the file as CSV with commas",
    ),
    "bad-quotes": Entry(
        ERROR, "the quotes do not follow the rules of CSV ({reason})", fix="double the quotes inside quoted fields"
    ),
    "no-rows/condition": Entry(ERROR, "no row has {name}={value}", fix="check {--where?}"),
    "empty-id": Entry(ERROR, "{n:rows} without an id", "the id is empty", fix="give every row its id"),
    "duplicate-id/repeated": Entry(
        ERROR, "{n:repeated rows}", "the row occurs more than once", fix="merge identical rows with {--dedupe}"
    ),
    "duplicate-in-key": Entry(
        ERROR, "{n:repeated rows}", "the row occurs more than once", fix="merge identical rows with {--dedupe}"
    ),
    "duplicate-id/table": Entry(ERROR, "{n:ids} {how}", fix="remove the duplicate rows"),
    "duplicate-in-key/table": Entry(ERROR, "{n:ids} {how}", fix="remove the duplicate rows"),
    "duplicate-id/shards": Entry(
        ERROR,
        "{n:rows} of repeated ids",
        "the id occurs more than once",
        fix="each trial must occur once: take the others out, or merge identical rows with {--dedupe} and without {--stream?}",
    ),
    "duplicate-id/files": Entry(
        ERROR,
        "{n:rows} of ids that are in more than one file",
        "the id is also in another file",
        fix="keep one row of each",
    ),
    "conflicting-id": Entry(
        ERROR,
        "{n:differing rows} of shared ids",
        "the id has another row that differs",
        fix="keep the right row of each; rows that differ are never merged{apart}",
    ),
    "conflicting-in-key": Entry(
        ERROR,
        "{n:differing rows} of shared ids",
        "the id has another row that differs",
        fix="keep the right row of each; rows that differ are never merged{apart}",
    ),
    "told-apart-by": Entry(INFO, ". They differ in {names}: if that says which run answered, say {--run-column <one>}"),
    "both-labels/ids": Entry(
        ERROR,
        "{n:rows} of ids with both labels",
        "the id has both labels",
        fix="keep the right row of each; rows that differ are never merged{apart}",
    ),
    "both-labels/runs": Entry(
        ERROR,
        "{n:rows} of ids with two labels in different runs (here {here}, {other} in {place})",
        "another run has another label for this id",
        fix="an item has one label: correct the files",
    ),
    "repeated-group": Entry(
        ERROR,
        "{n:rows} of groups that are counted in another row too",
        fix="remove the duplicates, or add up the counts of each group first",
    ),
    "bad-count/rows": Entry(ERROR, "{n:rows} with a count that is not a whole number above 0", fix="fix them"),
    "empty-group": Entry(
        ERROR, "{n:rows} without a value to group by", "there is nothing to group by", fix="give every row its value"
    ),
    "several-runs/predictions": Entry(
        ERROR,
        "a table of predictions is of one run, and {name} names {of} ({values})",
        fix="choose one, as {--where <name>=<one>}",
    ),
    "language-spelling": Entry(ERROR, "the language {one} is also written {others:and}", fix="write it in one way"),
    "thresholds-differ": Entry(
        ERROR,
        "{group} has {spread}, but there must be one",
        "it is another one",
        fix="choose {--threshold_rule first} or {--threshold_rule per-row}",
    ),
    "missing-threshold": Entry(
        ERROR,
        "{n:rows} without a threshold",
        "the threshold is missing",
        fix="give each its own: no default fits scores of any kind",
    ),
    "ambiguous-column/roles": Entry(
        ERROR, "the {ours} could be any of the columns {columns}", fix="say which, as {way}"
    ),
    "ambiguous-column/twins": Entry(ERROR, "two columns are called {name}", fix="give each column a name of its own"),
    "reserved-column": Entry(
        ERROR, "the manifest has a column {name!r}", fix="rename it: a run writes a column of that name"
    ),
    "missing-column/named": Entry(ERROR, "there is no column {name}", fix="{hint}"),
    "missing-column/run": Entry(
        ERROR, "there is no column {quoted}", fix="say which one it is with {--column <name>=NAME}"
    ),
    "missing-column/target": Entry(
        ERROR, "there is no column for the target", fix="say which one it is with {--column target=NAME}"
    ),
    "missing-column/layout": Entry(
        ERROR,
        "the layout {layout} has {of} columns, the first row has {width}",
        fix="leave {--layout?} out, or say {--separator?}",
    ),
    "missing-column/no-header": Entry(
        ERROR,
        "there is no header, and the first row of {width} columns is {row}",
        fix="say which column is which by position, as {ways:beside}, or with `hitmiss init FILE`",
    ),
    "missing-column/position": Entry(
        ERROR, "there is no header, so the column {name} is not known", fix="give its position, from 1 to {width}"
    ),
    "missing-column/role": Entry(
        ERROR,
        "no column is the {ours}; there are {names}",
        fix="say {which} with {ways:beside}{or_else:together}, or once for all commands with `hitmiss init FILE`",
    ),
    "missing-column/documented": Entry(
        ERROR,
        "there is no {ours} column; it may be called {called}; there are {names}",
        fix="say {which} with {ways:beside}{or_else:together}, or once with `hitmiss init FILE`",
    ),
    "missing-column/weight": Entry(ERROR, "there is no column {name} with the weights", fix="{hint}"),
    "missing-column/texts": Entry(
        ERROR, "there is no column {aliases:or} among {names}", fix="give a file with ids and texts"
    ),
    "or-key": Entry(INFO, " or {--key KEY}"),
    "or-other-answers": Entry(INFO, " or {--score-column NAME}, or {--column verdict=NAME} if it holds decisions"),
    "did-you-mean": Entry(INFO, "did you mean {near}?"),
    "did-you-mean/weight": Entry(INFO, "did you mean {--weight <near>}?"),
    "there-are": Entry(INFO, "there are {names}"),
    "known-here": Entry(INFO, "known here: {known}"),
    "no-common-id": Entry(ERROR, "no id is in both files", fix="{hint}"),
    "check-pair": Entry(INFO, "check that they belong together"),
    "would-match": Entry(INFO, "{n:,} would match {how}"),
    "would-match/stem": Entry(INFO, "{n:,} would match {how}: say {--match stem}"),
    "would-match/view": Entry(INFO, "{n:,} would match {how} (a view can do that)"),
    "complete-files": Entry(INFO, "complete the files"),
    "only-in-key": Entry(
        ERROR,
        "{n:ids} of the key without a score",
        "the id has no score",
        fix="{hint}; or score what both have with {--allow-missing}, and every table says so",
    ),
    "only-in-scores": Entry(
        ERROR,
        "{n:scored ids} missing from the key",
        "the id is not in the key",
        fix="{hint}; or score what both have with {--allow-missing}, and every table says so",
    ),
    "label-conflict/key": Entry(
        ERROR,
        "{n:rows} with another {name} than in the key",
        "the key says another {name}",
        fix="make both files say the same, or take the column out of one",
    ),
    "column-conflict/key": Entry(
        ERROR,
        "{n:rows} with another {name} than in the key",
        "the key says another {name}",
        fix="make both files say the same, or take the column out of one",
    ),
    "column-conflict/language": Entry(
        ERROR,
        "{n:rows} of another language ({said}) than the name of the file ({named})",
        "the name of the file says {by}",
        fix="rename the file, or go by the column alone, with {--group <column>}",
    ),
    "column-conflict/beside": Entry(
        ERROR,
        "{n:rows} with another {name} in {inside} than beside it ({other} and {one})",
        fix="keep the right one, or rename the other",
    ),
    "column-conflict/twice": Entry(
        ERROR,
        "{n:rows} with {name} twice in {inside}, as {one} and {other}",
        fix="keep the right one, or rename the other",
    ),
    "inexact-number": Entry(
        ERROR,
        "{n:whole numbers} of {name} with more digits than a float holds",
        "a float would round it, and it could then equal another",
        fix="scale them, or write them as floats",
    ),
    "not-a-number/cells": Entry(ERROR, "{n:unreadable <what>s}", "it is not a number", fix="{fix}"),
    "fix-decimal-comma": Entry(INFO, "they have a decimal comma: use {--decimal ,}"),
    "if-decimal-comma": Entry(INFO, "; if they have a decimal comma, use {--decimal ,}"),
    "fix-per-cent": Entry(
        INFO, "some are in per cent (the first is {first}): write all of them in one way, as 0.4 or as 40%"
    ),
    "fix-words": Entry(INFO, "fix them (the first is {first})"),
    "nan-score/cells": Entry(
        ERROR,
        "{n:NaN scores}",
        "the score is NaN",
        fix="fix them, or choose {--on-nan drop}, or {--on-nan worst} (the worst score for the trial's own class)",
    ),
    "nan-score/classifier": Entry(
        ERROR,
        "{n:NaN scores}",
        "the score is NaN",
        fix="fix them, or leave such rows out with {--missing drop}; or choose {--on-nan worst}",
    ),
    "empty-score/cells": Entry(
        ERROR,
        "{n:empty scores}",
        "the score is empty",
        fix="fix them, or choose {--on-nan drop}, or {--on-nan worst} (the worst score for the trial's own class)",
    ),
    "empty-score/classifier": Entry(
        ERROR,
        "{n:empty scores}",
        "the score is empty",
        fix="fix them, or leave such rows out with {--missing drop}; or choose {--on-nan worst}",
    ),
    "not-a-probability/score": Entry(
        ERROR,
        "{n:scores} outside 0..1",
        "it is outside 0..1",
        fix="declare another score kind (raw, logit or llr), or fix them",
    ),
    "not-a-probability/classifier": Entry(
        ERROR,
        "{n:scores} outside 0..1",
        "it is outside 0..1",
        fix="if they are logits, allow them with {--scores any} and give a {--threshold?}; nothing is converted by guess",
    ),
    "not-a-probability/confidence": Entry(
        ERROR,
        "{n:confidences} outside 0..1",
        "it is outside 0..1",
        fix="if they are in per cent, say {--column confidence_percent=<title>}; if they are something else, {--column rating=<title>}",
    ),
    "bad-threshold/outside": Entry(ERROR, "{n:thresholds} outside 0..1", "it is outside 0..1", fix="fix them"),
    "share-outside": Entry(ERROR, "{n:values} of {name} outside 0..1", "it is outside 0..1", fix="fix them"),
    "bad-share/labels": Entry(
        ERROR,
        "{n:labels} that are no shares of annotators",
        "it is not a share of annotators from 0 to 1",
        fix="a share is a number from 0 to 1{comma}",
    ),
    "bad-number/negative": Entry(
        ERROR, "{n:values} of {name} that cannot be used", "it is below 0", fix="fix them, or leave them empty"
    ),
    "bad-number/seconds": Entry(
        ERROR,
        "{n:values} of {name} that cannot be used",
        "it is not a number of seconds",
        fix="fix them, or leave them empty",
    ),
    "bad-number/text": Entry(
        ERROR, "{n:values} of {name} that cannot be used", "it is not a number", fix="fix them, or leave them empty"
    ),
    "ambiguous-verdict": Entry(
        ERROR,
        "{n:verdicts} of 0, 1, true or false, which name no class",
        "it names no class",
        fix="say which one is positive, fake unless declared: {--positive-value 1} or {--positive-value 0}",
    ),
    "unknown-verdict": Entry(
        ERROR,
        "{n:verdicts}, not one of which is understood",
        "the verdict is not understood",
        fix="a verdict is a word such as real, fake or uncertain; declare others with {--positive?} and {--negative?}",
    ),
    "undeclared-positive": Entry(
        ERROR, "{question}", fix="say it in one of these ways, or once for all commands with `hitmiss init FILE`"
    ),
    "ambiguous-label/open": Entry(
        ERROR, "{question}", fix="say it in one of these ways, or once for all commands with `hitmiss init FILE`"
    ),
    "ambiguous-label/word": Entry(
        ERROR,
        "{n:<column>s} {word} without a known meaning",
        "the {column} names no class",
        fix="words and numbers are mixed: write all in one way, or say which value is positive with {--positive-value 1}",
    ),
    "unlabelled": Entry(
        ERROR,
        "{n:labels} of -1, which marks rows without a label",
        "-1 marks a row without a label",
        fix="fix them, or leave such rows out with {--missing drop}, or say {--negative -1} if it is a class",
    ),
    "negative-if-class": Entry(INFO, ", or say {--negative <word>} if it is a class"),
    "negative-if-other": Entry(INFO, "say {--negative <word>} if it is the other class"),
    "declare-class": Entry(INFO, "declare the class with {--positive?} or {--negative?}"),
    "missing-label": Entry(
        ERROR,
        "{n:missing <column>s}",
        "the {column} is missing",
        fix="fix them, or leave such rows out with {--missing drop}{if_class}",
    ),
    "unknown-label/number": Entry(
        ERROR,
        "{n:<column>s} neither 1 nor 0",
        "it is neither 1 nor 0",
        fix="a {column} is 1 or {positive}, 0 or {negative}; fix them",
    ),
    "unknown-label/several": Entry(
        ERROR,
        "the {column}s are {words}, and a detector has two classes",
        "more than two words are used as {column}s",
        fix="write each class with one word, or check that {title} is the column of {column}s",
    ),
    "unknown-label/many": Entry(
        ERROR,
        "{n:rows} with {many:,} unknown {column}s, as {word}",
        "the {column} is not known",
        fix="check that {title} is the column of {column}s",
    ),
    "unknown-label/word": Entry(
        ERROR,
        "{n:rows} with the unknown {column} {word}",
        "the {column} is not known, {hint}",
        fix="{hint}{stop} Fix the file, or {way}",
    ),
    "missing-decision": Entry(
        ERROR,
        "{n:missing <column>s}",
        "the {column} is missing",
        fix="fix them, or leave such rows out with {--missing drop}{if_class}",
    ),
    "unknown-decision/number": Entry(
        ERROR,
        "{n:<column>s} neither 1 nor 0",
        "it is neither 1 nor 0",
        fix="a {column} is 1 or {positive}, 0 or {negative}; fix them",
    ),
    "unknown-decision/several": Entry(
        ERROR,
        "the {column}s are {words}, and a detector has two classes",
        "more than two words are used as {column}s",
        fix="write each class with one word, or check that {title} is the column of {column}s",
    ),
    "unknown-decision/many": Entry(
        ERROR,
        "{n:rows} with {many:,} unknown {column}s, as {word}",
        "the {column} is not known",
        fix="check that {title} is the column of {column}s",
    ),
    "unknown-decision/word": Entry(
        ERROR,
        "{n:rows} with the unknown {column} {word}",
        "the {column} is not known, {hint}",
        fix="{hint}{stop} Fix the file, or {way}",
    ),
    "several-faults": Entry(ERROR, "{first}{also:also}{more}"),
    "more-kinds-of-faults": Entry(INFO, "; and {n:,} more kinds of faults"),
    "bad-weight/cells": Entry(
        ERROR,
        "{n:weights} that cannot be used",
        "a {kind} weight is {allowed}",
        fix="a {kind} weight is {allowed}",
    ),
}
