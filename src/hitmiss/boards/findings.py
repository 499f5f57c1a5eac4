"""What `boards` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, NOTE, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "no-metric/board": Entry(ERROR, "say what to rank by: a protocol ({-p asvspoof5}) or a metric ({-m eer})"),
    "unpaired/not": Entry(ERROR, "{able} and {unlike} were not measured on the same trials"),
    "not-published": Entry(
        ERROR, "{file_name} is neither a result.yaml of the Arena nor a list of Hugging Face's results"
    ),
    "unpublished-data-set": Entry(
        ERROR,
        "no data set of the board says where it is published",
        fix='give [datasets.NAME] id = "ORG/NAME" in board.toml',
    ),
    "same-name/systems": Entry(ERROR, "two systems would be written as {twice!r}", fix="give them names that differ"),
    "not-published/lacks": Entry(ERROR, "{file_name} lacks or misstates a field: {error}"),
    "no-folder/submissions": Entry(ERROR, "{folder} is no folder", fix="give the folder of the submissions"),
    "no-data-set": Entry(
        ERROR, "{plain} names no data set, and there are {n_datasets}", fix="use SYSTEM/DATASET{suffix} folders"
    ),
    "mixed-folders": Entry(
        ERROR,
        "{by_dataset} is named like a data set, {folders} is not",
        fix="use SYSTEM/DATASET or DATASET/SYSTEM folders, or a board.toml",
    ),
    "no-submission": Entry(ERROR, "{folder} holds no submission"),
    "no-key/say": Entry(ERROR, "say where the keys are: a key, a folder of keys, or keys by data set"),
    "no-folder/keys": Entry(ERROR, "there is no {truth}", fix="give the key, or the folder of the keys"),
    "no-key/holds": Entry(ERROR, "{truth} holds no key; it needs one file for each data set"),
    "bad-board": Entry(
        ERROR, "{file} names no {part}", fix="give submissions and keys, or [datasets.NAME] and [systems.NAME]"
    ),
    "bad-board/table": Entry(ERROR, "{file}: [{name}] must be a table"),
    "bad-board/path": Entry(ERROR, "{file}: `{name}` must be a path; submissions and keys go together"),
    "no-data-set/file": Entry(
        ERROR, "{system} is one file, and there are {n_datasets} data sets", fix="give {{data set: file}}"
    ),
    "bad-board/form": Entry(ERROR, "{file} cannot be read as a board: {error}"),
    "bad-weight/number": Entry(ERROR, "{file}: the weight of {name} must be a number above 0"),
    "same-name/counts": Entry(ERROR, "{where_2}: {name} and {path_name} have one name; which of them counts?"),
    "bad-submissions": Entry(ERROR, "no submission can be scored:\n{rejected:lines}"),
    "no-submission/given": Entry(NOTE, "no submission"),
    "data-sets-missing": Entry(NOTE, "{n} of {total} data sets are missing"),
}
