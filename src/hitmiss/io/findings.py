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
}
