"""What `probes` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "no-layers/probe": Entry(ERROR, "there is no layer to probe"),
    "not-finite/embeddings": Entry(
        ERROR, "{n_rows} of {n_x} embeddings hold NaN or infinity, the first at position {rows}"
    ),
    "equal-embeddings": Entry(ERROR, "all embeddings are identical; there is nothing to probe"),
    "missing-values": Entry(ERROR, "{n_missing} of {n_column} {what} are missing, the first at position {missing}"),
    "unequal-counts/probe": Entry(ERROR, "each item needs one embedding, one label and one group; found {sizes}"),
    "one-class/probe": Entry(ERROR, "a probe needs at least two classes; every label is {y}"),
    "too-many-folds": Entry(
        ERROR,
        "each class needs at least as many {of} as folds ({folds}); too few in: {scarce}. Take fewer folds, or leave these classes out",
    ),
    "no-labels/shortcut": Entry(ERROR, "the shortcut probe needs labels"),
    "too-few-speakers": Entry(ERROR, "too few speakers: without one fold of them, a class is empty"),
}
