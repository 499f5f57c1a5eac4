"""Prevalence arranged as a table."""

from __future__ import annotations

from collections.abc import Sequence

from hitmiss.evaluation.prevalence import DetectorRates, GroupPrevalence
from hitmiss.reports.table import Table, TableCell
from hitmiss.reports.table_style import bracketed
from hitmiss.stats.prevalence import Prevalence


def prevalence_table(found: Sequence[GroupPrevalence], rates: DetectorRates | None, level: float) -> Table:
    """Return the flagged share and the prevalence of each group."""
    names = list(dict.fromkeys(name for one in found for name in one.group))
    kinds = [kind for kind in ("corrected", "labelled") if any(getattr(one, kind) for one in found)]
    titles = {"corrected": "prevalence, corrected", "labelled": "prevalence, from labels"}
    rows = tuple(
        (
            *(TableCell(one.group.get(name, "")) for name in names or [""]),
            TableCell(f"{one.n:,}"),
            TableCell(f"{one.flagged / one.n:.4f}" if one.n else "–"),
            *(_cell(getattr(one, kind)) for kind in kinds),
        )
        for one in found
    )
    header = (*(names or [""]), "n", "flagged", *(titles[kind] for kind in kinds))
    note = ""
    if rates is not None:
        parts = [
            f"{name} {rate.value:.4f} (known from {rate.n:,.0f} items)"
            for name, rate in (("sensitivity", rates.sensitivity), ("specificity", rates.specificity))
        ]
        note = f"{', '.join(parts)}; the detector is taken to err here as often as it did there."
    return Table(f"prevalence, {level:.0%}", header, rows, labels=max(1, len(names)), counts=1, note=note)


def _cell(found: Prevalence | None) -> TableCell:
    if found is None:
        return TableCell("")
    if found.value is None:
        return TableCell("–", about="sensitivity + specificity is at most 1: the detector tells nothing")
    return TableCell(f"{found.value:.4f}", bracketed(found.low, found.high), strong=True)
