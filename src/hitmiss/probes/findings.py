"""What `probes` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "probe-needs-sklearn": Entry(
        ERROR, "a probe needs the package scikit-learn ({error}): pip install 'hitmiss[probes]'"
    ),
    "no-layer-probe": Entry(ERROR, "there is no layer to probe"),
    "embeddings-items-dimensions": Entry(ERROR, "embeddings must be items × dimensions; found shape {shape}"),
    "embeddings-hold-nan-infinity": Entry(
        ERROR, "{n_rows} of {n_x} embeddings hold NaN or infinity, the first at position {rows}"
    ),
    "all-embeddings-identical-nothing": Entry(ERROR, "all embeddings are identical; there is nothing to probe"),
    "flat-found-shape": Entry(ERROR, "{what} must be flat; found shape {shape}"),
    "missing-first-position": Entry(
        ERROR, "{n_missing} of {n_column} {what} are missing, the first at position {missing}"
    ),
    "item-needs-embedding-label": Entry(ERROR, "each item needs one embedding, one label and one group; found {sizes}"),
    "folds-least": Entry(ERROR, "folds must be at least 2; found {folds}"),
    "probe-needs-least-classes": Entry(ERROR, "a probe needs at least two classes; every label is {y}"),
    "class-needs-least-many": Entry(
        ERROR,
        "each class needs at least as many {of} as folds ({folds}); too few in: {scarce}. Take fewer folds, or leave these classes out",
    ),
    "shortcut-probe-needs-labels": Entry(ERROR, "the shortcut probe needs labels"),
    "shortcut-probe-needs": Entry(ERROR, "the shortcut probe needs both classes; all of these are {label}"),
    "too-few-speakers-without": Entry(ERROR, "too few speakers: without one fold of them, a class is empty"),
}
