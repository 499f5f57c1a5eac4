"""What `outofcore` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, WARNING, Entry

_NO_ROWS = "which counts do not have; leave it out, or score the files without an engine or a cluster"

ENTRIES: Final[Mapping[str, Entry]] = {
    "no-rows/where": Entry(ERROR, "no row has {name}={values_2}", fix="check {--where?}"),
    "engine-refused": Entry(ERROR, "{engine} does not answer: {quoted}"),
    "locked-database": Entry(
        ERROR,
        "another process writes to {place} and has it for itself",
        fix="run again when it is done, or give a copy",
    ),
    "lost-engine": Entry(
        ERROR,
        "{engine} was lost ({error})",
        fix="start it and run again: nothing was written, and the numbers are the same",
    ),
    "no-spark": Entry(
        ERROR,
        "no Spark session could be started ({error})",
        fix="it needs Java or SPARK_REMOTE; its master is named in spark-defaults.conf or PYSPARK_SUBMIT_ARGS",
    ),
    "no-room": Entry(
        ERROR,
        "the scores cannot be written to {folder} ({strerror})",
        fix="name a folder with more room by {--scratch?}, or allow more by {--memory?}",
    ),
    "key-beyond-memory": Entry(
        ERROR,
        "a key of {size:,.0f} MB does not fit into half of {--memory?}",
        fix="raise {--memory?} to {size_2:.1f}GB, or write the labels into the score files",
    ),
    "too-many-values": Entry(
        ERROR,
        "{names} have more than {MOST_CELLS:,} combinations of values, too many to be counted apart",
        fix="leave one of them out, or {--stream?}",
    ),
    "inexact-step": Entry(ERROR, "{--step?} must be a power of two, so that rounding is exact; found {step}"),
    "taken-name": Entry(ERROR, "a slice cannot be called {taken!r}: the counts have a column of that name"),
    "table-name": Entry(ERROR, "{table}: {dialect} counts tables, not files", fix="give the name of one"),
    "several-scores": Entry(
        ERROR, "a file of counts has one column of scores", fix="name it with {--column score=NAME}"
    ),
    "missing-column/no": Entry(
        ERROR,
        "{name} has no column {absent!r}; a file of counts has the label, the score, the slices and n (see hitmiss sql)",
    ),
    "needs-every-trial": Entry(
        ERROR,
        "{why}, and {named} may say which run a row belongs to: say {--run-column <named>}, or leave {--stream?} out",
    ),
    "needs-every-trial/attacks": Entry(
        ERROR,
        "attacks and conditions are streamed only from the folder of a run (`hitmiss attack -o`, `hitmiss detect -o`)",
        fix="leave {--stream?} out",
    ),
    "several-scores/table": Entry(
        ERROR, "a table is counted for one column of scores", fix="name it with {--column score=NAME}"
    ),
    "other-database": Entry(ERROR, "scores and key must be tables of the same engine and database"),
    "key-of-runs": Entry(ERROR, "a key is joined with the scores of one run", fix="give a table of one run"),
    "needs-more-memory": Entry(
        ERROR,
        "{table} has more than {most:,} different scores",
        fix="give more {--memory?}, or count scores that are rounded (hitmiss sql {--step?}, then {--counts?})",
    ),
    "labels-name-no-class/shards": Entry(
        ERROR,
        "{n:,} rows have the label {word}, which names no class beside other shards ({known})",
        fix="declare {--positive?} and {--negative?}, or {--positive-value?}",
    ),
    "which-class/shards": Entry(
        ERROR,
        "the first rows of the shards do not show which class is positive",
        fix="declare it with {--positive?} and {--negative?}",
    ),
    "needs-every-trial/units": Entry(
        ERROR, "drawing units needs every score at once, and these are too many to keep", fix="raise {--memory?}"
    ),
    "needs-more-memory/trials": Entry(
        ERROR,
        "about {rows:,} trials lie where the numbers are decided, which is more than the memory allowed",
        fix="raise {--memory?} to {rows_2:.1f}GB, or group by less",
    ),
    "no-folder/scratch": Entry(
        ERROR, "{--scratch <base>}: there is no such folder", fix="make it, or name another one"
    ),
    "no-room/needed": Entry(
        ERROR,
        "{size:.1f} GB of temporary disk space are needed and {base} has {free:.1f} GB",
        fix="name a folder with more room by {--scratch?}, or allow more by {--memory?}",
    ),
    "key-of-runs/stream": Entry(ERROR, "a key is not joined with several runs at a time", fix="leave {--stream?} out"),
    "changed-while-read/key": Entry(ERROR, "{name}: the key has changed since it was first read; begin again"),
    "no-tally": Entry(ERROR, "there is no tally to merge", fix="count at least one shard"),
    "shard-twice": Entry(
        ERROR, "{shard_name} has the same content as {seen}: the shard was given twice", fix="leave one out"
    ),
    "needs-every-trial/some-units": Entry(
        ERROR, "numbers of some units alone need every score, and these are too many", fix="raise {--memory?}"
    ),
    "needs-every-trial/bands": Entry(
        ERROR,
        "bands of numbers ({bands}) need the rows, which counts do not have",
        fix="leave them out, or score the files without an engine or a cluster",
    ),
    "needs-every-trial/stream": Entry(ERROR, "{given} needs every trial at once", fix="leave it or {flag} out"),
    "bad-memory": Entry(ERROR, "{--memory?} {size!r}: write a size of at least 10MB, as 500MB or 2GB"),
    "several-tables": Entry(ERROR, "one table is counted at a time", fix="give it alone"),
    "key-not-a-table/same": Entry(
        ERROR,
        "the key of a table is a table of the same database",
        fix="load {key} there (CREATE TABLE key AS SELECT * FROM '{key}'), and give {--key duckdb}:FILE#key",
    ),
    "other-engine": Entry(ERROR, "{files} is counted by {engine}", fix="leave {--engine?} {engine_2} out"),
    "counted-already": Entry(ERROR, "counts are counted already", fix="leave {--engine?} out"),
    "needs-every-trial/asv": Entry(
        ERROR, "costs of a tandem with the trials of its ASV need every score in memory", fix="raise {--memory?}"
    ),
    "unit-not-used/counted": Entry(
        WARNING,
        "trials were drawn one by one, and those of one {name} are not independent; {--unit?} {option} draws them whole, which may widen the intervals",
    ),
    "needs-every-trial/protocol": Entry(
        ERROR, "the protocol {protocol} reads and measures its files as a whole", fix="leave {--stream?} out"
    ),
    "needs-every-trial/rows": Entry(ERROR, f"{{what}} the rows, {_NO_ROWS}"),
    "needs-every-trial/option": Entry(ERROR, f"{{option}} needs the rows, {_NO_ROWS}"),
    "needs-every-trial/dedupe": Entry(ERROR, f"{{--dedupe?}} and layouts of nested files need the rows, {_NO_ROWS}"),
    "unread-option/weight": Entry(ERROR, f"{{--weight?}} needs the rows, {_NO_ROWS}"),
    "not-a-slice/counts": Entry(
        ERROR, "trials cannot be counted by {name}, only by slice columns such as codec", fix="leave {name} out"
    ),
    "too-many-values/itself": Entry(
        ERROR,
        "by the protocol{protocol}, each trial whose {name} is {value!r} is a group of its own: too many to be counted by",
        fix="leave {--stream?} out, or {name}",
    ),
    "unread-option/match": Entry(ERROR, "{--match?} needs the whole table", fix="leave {--stream?} out"),
    "unread-option/match-where": Entry(
        ERROR, "{--match?} needs the whole table beside {--where?}", fix="leave {--stream?} out"
    ),
    "unread-option/beside-where": Entry(
        ERROR, "{option} needs the whole table beside {--where?}", fix="leave {--stream?} out"
    ),
    "stream-encoding": Entry(ERROR, "only UTF-8 is streamed", fix="convert the files, or leave {--stream?} out"),
}
