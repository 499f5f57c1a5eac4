"""Which texts mention an identity: columns of yes and no, or of the share of annotators who said so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.columns import prefixed
from hitmiss.core.finding import Place, Remark
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.text_codes import is_text, text_codes
from hitmiss.core.trials import Trials
from hitmiss.io.cells import read_share
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.loaded import LoadedRows
from hitmiss.io.source import Table

MEMBER: Final = 0.5
"""A text mentions an identity if at least half of its annotators said so."""
Mask = NDArray[np.bool_]


def mentions(trials: Trials, names: Sequence[str]) -> tuple[dict[str, Mask], list[str]]:
    """Return, for each column, the trials that mention the identity, and a note for each that has blank cells."""
    found: dict[str, Mask] = {}
    notes: list[str] = []
    ledger = Diagnostics()
    spec = trials.header.reading or ReadSpec()
    head = trials.header
    source = head.sources[0].name if len(head.sources) == 1 else ""
    for name in names:
        rows = trials.frame.select("item", pl.col(trials.own(name)).alias(prefixed(name)))
        shares = read_shares(
            LoadedRows.of([Table(source, rows, first_line=2)], {prefixed(name): name}),
            name,
            spec,
            ledger,
            are_lines=_are_lines(trials, spec),
        )
        found[name] = (shares >= MEMBER).fill_null(False).to_numpy()
        if blank := shares.null_count():
            notes.append(Remark.of("blank-mentions", column=name, n=blank))
    if ledger.findings:
        raise ledger.error()
    return found, notes


def _by_ids(places: Sequence[Place]) -> tuple[Place, ...]:
    """Return each cell once and without its row: trials may be joined, chosen, or one row for each label of a text."""
    return tuple(dict.fromkeys(replace(place, row=None) for place in places))


def _are_lines(trials: Trials, spec: ReadSpec) -> bool:
    """Return whether the trials are the lines of one file of texts, below its header."""
    sources = trials.header.sources
    is_text = len(sources) == 1 and Path(sources[0].name).suffix in (".csv", ".tsv", ".txt")
    return is_text and not (trials.has_targets or spec.where or spec.dedupe)


def read_shares(
    rows: LoadedRows, name: str, spec: ReadSpec, ledger: Diagnostics, *, are_lines: bool = False
) -> pl.Series:
    """Return the shares of a user's column; there are few different ones, so each is read once if all can be read.

    `are_lines`: the rows are the lines of a file, so that faults name them.
    """
    title = prefixed(name)
    cells = rows.frame[title]
    if cells.dtype == pl.Float64:
        return cells
    cells, trial = cells if is_text(cells.dtype) else cells.cast(pl.String), Diagnostics()
    codes, texts = text_codes(cells.fill_null(""))
    values = pl.DataFrame({title: texts}, schema={title: pl.String})
    read = read_share(LoadedRows.of([Table("", values)], {}), title, spec, trial)
    if not trial.findings:
        return read.gather(codes)
    shares = read_share(
        replace(rows.put(cells.cast(pl.String)), theirs={title: name}), title, spec, found := Diagnostics()
    )
    for group in found.findings:
        ledger.add(
            group.code,
            group.places if are_lines else _by_ids(group.places),
            group.column,
            group.choices,
            **group.values,
        )
    return shares
