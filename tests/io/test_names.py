"""Names: a user's column may be called anything, and the figures stay those of the same data under a harmless name.

Every engine column and reserved word × every reader × every verb. What cannot be served is refused with a code.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import hitmiss as hm
from hitmiss.columns import FIXED, INNER, MADE, OWN, SCORES, stored
from hitmiss.errors import HitmissError
from hitmiss.io.door import read
from hitmiss.results import Results
from hitmiss.trials import Header, Trials

HARMLESS = "condition"
INNER_NAMES = (
    "n",
    "count",
    "low",
    "high",
    "_at",
    "_row",
    "yes",
    "no",
    "silent",
    "asked",
    "file",
    "row",
    "group",
    "index",
)
WORDS = (
    "threshold",
    "language",
    "seconds",
    "text",
    "label_word",
    "literal",
    "key",
    "y_true",
    "llr",
    "served",
    "probability",
)
OWN_NAMES = (f"{OWN}score", f"{OWN}target", f"{SCORES}a", f"{INNER}n", "", " ", "a=b", "a,b", "Score", "TARGET")
NAMES = (*FIXED, *MADE, *INNER_NAMES, *WORDS, *OWN_NAMES)
RUN_NAMES = ("model", "tools", "trial", "cache", "retries", "component", "decided by", "cost")
N = 24
RNG = np.random.default_rng(11)
LABEL = RNG.integers(0, 2, N)
SCORE = np.round(np.clip(RNG.normal(0.4 + 0.2 * LABEL, 0.2), 0, 1), 3)
KIND = [("x", "y", "z")[i % 3] for i in range(N)]
ITEMS = [f"i{i:02}" for i in range(N)]

Figures = list[tuple[Any, ...]]


def figures(results: Results, name: str) -> Figures:
    """What was found, with the name under test taken out; refusing results that do not show it under its own name."""
    rows: Figures = []
    for e in results:
        assert not any(key.startswith((OWN, INNER)) and key != name for key in (*e.slice, *e.run)), (e.slice, e.run)
        where = {HARMLESS if key == name else key: value for key, value in e.slice.items()}
        rows.append((e.metric, e.average, tuple(sorted(where.items())), e.value, e.n, e.n_positive))
    return sorted(rows, key=repr)


def same_or_refused(found: Callable[[str], Figures], name: str) -> bool:
    """The figures under a name equal those under a harmless one (True), or the name is refused with a code (False)."""
    expected = found(HARMLESS)
    try:
        assert found(name) == expected
        return True
    except HitmissError as error:
        assert error.code not in ("error", "data"), f"{name!r}: {error} has no code"
        return False


def write_csv(path: Path, columns: dict[str, Sequence[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def of_trials(name: str) -> Figures:
    trials = Trials.of(LABEL, SCORE, item=ITEMS, **{name: KIND})
    return figures(hm.measure(trials, ["eer", "roc_auc"], by=[(name,)]), name)


def of_frame(name: str) -> Figures:
    rows = {"id": ITEMS, "y_true": LABEL, "y_prob": SCORE, name: KIND}
    trials = read(pl.DataFrame(rows), positive="toxic", positive_value="1")
    return figures(hm.measure(trials, ["eer", "roc_auc"], by=[(name,)]), name)


def of_trials_header(name: str) -> Figures:
    frame = pl.DataFrame({"item": ITEMS, "label": LABEL, "score": SCORE, stored(name): KIND})
    trials = Trials.from_frame(frame, Header(slices=(stored(name),)))
    return figures(hm.measure(trials, ["eer", "roc_auc"], by=[(name,)]), name)


def of_two(name: str) -> Figures:
    pair = [Trials.of(LABEL, s, item=ITEMS, **{name: KIND}) for s in (SCORE, SCORE[::-1])]
    found = hm.compare(*pair, ["eer"], by=[(name,)], bootstrap=0)
    assert {key for row in found.differences for key in row.slice} == {name}
    rows = [(r.metric, tuple(r.slice.values()), r.a, r.b, r.n_pairs) for r in found.differences]
    return sorted(rows, key=repr)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", [of_trials, of_trials_header, of_two])
def test_python(way: Callable[[str], Figures], name: str) -> None:
    if name in ("item", "score", "label", "decision", "confidence") and way is not of_trials_header:
        pytest.skip("these are parameters of Trials.of itself")
    assert same_or_refused(way, name) or not name  # a column without a name cannot be asked for
