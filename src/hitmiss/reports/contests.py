"""A saved comparison, ranking or gate as a separate page: the same three questions, then the tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

from hitmiss.claims.open import json_object
from hitmiss.conclude.verdict import conclude_comparison, conclude_gate
from hitmiss.core import artifacts
from hitmiss.core.convert import InvalidField, declare, fit
from hitmiss.core.errors import DataError
from hitmiss.core.results import coded
from hitmiss.core.verdict import Verdict
from hitmiss.engine.comparison import Comparison, Difference, Discordance
from hitmiss.engine.ranking import Duel, RankedRun, Ranking
from hitmiss.engine.requirement import Check
from hitmiss.reports import comparison_tables, gate_report, ranking_tables
from hitmiss.reports.page import OfCounts, Page, Part, glossary
from hitmiss.reports.summary import Summary
from hitmiss.reports.table import Table, TableCell

KINDS: Final = ("comparison", "ranking", "gate")
T = TypeVar("T")


def is_contest(path: str | Path) -> bool:
    """Say whether a file holds a comparison, a ranking or the outcome of a gate."""
    return json_object(path).get("kind") in KINDS


def read_contest(path: str | Path) -> Comparison | Ranking | list[Check]:
    """Read the output of `hitmiss compare -o` or `hitmiss gate --json`.

    Raises
    ------
    DataError
        `not-a-comparison`: the file is of another form.
    """
    data = artifacts.load(path, "a comparison")
    try:
        if data["kind"] == "gate":
            return [*_rows(Check, data["checks"])]
        if data["kind"] == "ranking":
            return _ranking(data)
        return Comparison(
            (fit(str, data["a"]), fit(str, data["b"])),
            _rows(Difference, data["differences"]),
            _rows(Discordance, data["mcnemar"]),
            fit(str, data["signature"]),
            _warnings(data),
            fit(float, data["level"]),
            fit(str, data["correction"]),
            None if data.get("protocol") is None else fit(str, data["protocol"]),
        )
    except (KeyError, InvalidField) as error:
        raise DataError(
            f"{Path(path).name} is not of the form of a comparison: {error}", code="not-a-comparison"
        ) from None


def _rows(kind: type[T], rows: object) -> tuple[T, ...]:
    return tuple(declare(kind, row) for row in fit(list[object], rows))


def _warnings(data: Mapping[str, object]) -> tuple[str, ...]:
    """Return the warnings of a file with their codes and numbers."""
    codes = fit(list[str | None], data.get("warning_codes", []))
    values = fit(list[dict[str, object]], data.get("warning_values", []))
    return coded(fit(list[str], data["warnings"]), codes, values)


def _ranking(data: Mapping[str, object]) -> Ranking:
    duels = []
    for row in fit(list[dict[str, object]], data["pairs"]):
        inner = {k: v for k, v in row.items() if k not in ("run_a", "run_b")}
        duels.append(Duel(fit(str, row["run_a"]), fit(str, row["run_b"]), declare(Difference, inner)))
    return Ranking(
        tuple(fit(list[str], data["runs"])),
        _rows(RankedRun, data["standings"]),
        tuple(duels),
        fit(str, data["signature"]),
        _warnings(data),
        fit(float, data["level"]),
        fit(str, data["correction"]),
    )


def contest_tables(found: Comparison | Ranking | list[Check]) -> list[Table]:
    """Return the tables of a comparison, a ranking or a gate."""
    if isinstance(found, Comparison):
        return comparison_tables.tables(found)
    return ranking_tables.ranking_tables(found) if isinstance(found, Ranking) else [gate_report.table(found)]


def contest_page(given: str | Path | Comparison | Ranking, title: str = "") -> Page:
    """Compose the page of a comparison, a ranking or a gate, or of a file that holds one."""
    found = read_contest(given) if isinstance(given, str | Path) else given
    tables = tuple(contest_tables(found))
    if isinstance(found, Comparison):
        name = f"{found.names[0]} against {found.names[1]}"
        first = found.differences[0] if found.differences else None
        tested = f"{first.n_pairs:,} pairs ({first.n_positive:,} positive)" if first is not None else "no pairs"
        notes: tuple[str, ...] = (f"A = {found.names[0]}, B = {found.names[1]}.", comparison_tables.LEGEND)
        metrics = [d.metric for d in found]
        return _page(title or name, tested, conclude_comparison(found), tables, notes, found.signature, metrics)
    if isinstance(found, Ranking):
        name, tested = f"{len(found.names)} runs", "every pair compared"
        notes = ("Runs that share a letter were not shown to differ.",)
        metrics = [d.difference.metric for d in found.duels]
        return _page(title or name, tested, conclude_comparison(found), tables, notes, found.signature, metrics)
    return _page(title or "Gate", f"{len(found)} rules", conclude_gate(found), tables, (), "", [])


def _page(
    title: str,
    tested: str,
    verdict: Verdict,
    tables: tuple[Table, ...],
    notes: tuple[str, ...],
    signature: str,
    metrics: list[str],
) -> Page:
    rows = tuple(
        (TableCell(part.partition(":")[0]), TableCell(part.partition(":")[2]))
        for part in signature.split("|")
        if ":" in part
    )
    part = Part(
        "e1",
        Summary(title, tested, (), (), verdict),
        None,
        (),
        None,
        (),
        (),
        (),
        0,
        (),
        tables,
        notes,
        (),
        (),
        OfCounts(),
        verdict.notes,
        Table("provenance", ("what", "value"), rows, 2),
        tuple(filter(None, (signature,))),
    )
    embeds = ("Figures and tests, names of runs and slices, and hashes.",)
    return Page(title, (part,), tuple(glossary(metrics)), embeds)
