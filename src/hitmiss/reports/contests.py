"""A saved comparison, ranking or gate as a separate page: the same three questions, then the tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

from hitmiss.claims.open import json_object, load_contest
from hitmiss.conclude.verdict import conclude_comparison, conclude_gate
from hitmiss.core.convert import InvalidField, declare, fit
from hitmiss.core.errors import DataError
from hitmiss.core.results import coded
from hitmiss.core.verdict import Verdict
from hitmiss.engine.comparison import Comparison, Difference, Discordance
from hitmiss.engine.ranking import Duel, RankedRun, Ranking
from hitmiss.engine.requirement import Check
from hitmiss.findings.wording import explain
from hitmiss.reports import comparison_tables, gate_report, ranking_tables
from hitmiss.reports.compared_numbers import TERMINAL, ComparedNumbers
from hitmiss.reports.page import Page, Part, glossary
from hitmiss.reports.ranking_tables import groups_of
from hitmiss.reports.readings import RANKS
from hitmiss.reports.section import Block, FiguresBlock, FigureView, Section, TableBlock, TextBlock
from hitmiss.reports.sections.provenance import origin
from hitmiss.reports.slice_plates import ranks_plate
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
    data = load_contest(path, KINDS)
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
        raise DataError.of("not-a-comparison", name=Path(path).name, error=error) from None


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


def contest_tables(found: Comparison | Ranking | list[Check], numbers: ComparedNumbers = TERMINAL) -> list[Table]:
    """Return the tables of a comparison, a ranking or a gate."""
    if isinstance(found, Comparison):
        return comparison_tables.tables(found, numbers=numbers)
    return ranking_tables.ranking_tables(found, numbers) if isinstance(found, Ranking) else [gate_report.table(found)]


def contest_verdict(found: Comparison | Ranking | list[Check]) -> Verdict:
    """Return the verdict of a comparison, a ranking or a gate."""
    return conclude_gate(found) if isinstance(found, list) else conclude_comparison(found)


def contest_page(given: str | Path | Comparison | Ranking, title: str = "") -> Page:
    """Compose the page of a comparison, a ranking or a gate, or of a file that holds one."""
    found = read_contest(given) if isinstance(given, str | Path) else given
    tables = tuple(map(TableBlock, contest_tables(found, ComparedNumbers(is_page=True))))
    if isinstance(found, Comparison):
        name = f"{found.names[0]} against {found.names[1]}"
        first = found.differences[0] if found.differences else None
        tested = f"{first.n_pairs:,} pairs ({first.n_positive:,} positive)" if first is not None else "no pairs"
        blocks: tuple[Block, ...] = (
            *tables,
            TextBlock(f"A = {found.names[0]}, B = {found.names[1]}."),
            TextBlock(comparison_tables.LEGEND),
        )
        card = Summary(title or name, tested, (), (), contest_verdict(found))
        return _page(card, blocks, found.signature, [d.metric for d in found])
    if isinstance(found, Ranking):
        card = Summary(title or f"{len(found.names)} runs", "every pair compared", (), (), contest_verdict(found))
        blocks = (*_ranks(found), *tables)
        return _page(card, blocks, found.signature, [d.difference.metric for d in found.duels])
    rules = f"{len(found)} rule{'s' if len(found) != 1 else ''}"
    return _page(Summary(title or "Gate", rules, (), (), contest_verdict(found)), tables, "", [])


def _ranks(found: Ranking) -> list[Block]:
    """Draw the ranks of the runs with their simultaneous intervals, by the first metric."""
    whole = [s for s in found.standings if not s.slice and not s.average]
    own = [s for s in whole if s.metric == whole[0].metric]
    plate = ranks_plate(own, *groups_of(found, own))
    if not plate.y.ticks:
        return []
    rows = tuple((TableCell(s.run), TableCell(f"{s.rank_low} to {s.rank_high}")) for s in own if s.rank_low is not None)
    numbers = Table(RANKS.title, ("run", "rank"), rows)
    return [FiguresBlock((FigureView("e1-ranks", "ranks", RANKS, plate, numbers, explain(own[0].metric).title),))]


def _page(card: Summary, blocks: tuple[Block, ...], signature: str, metrics: list[str]) -> Page:
    rows = tuple(
        (TableCell(part.partition(":")[0]), TableCell(part.partition(":")[2]))
        for part in signature.split("|")
        if ":" in part
    )
    files = Table("provenance", ("what", "value"), rows, 2)
    last = origin((), card.verdict.notes, tuple(filter(None, (signature,))), files)
    sections = (Section("versus", "Runs compared" if signature else "Rules", blocks), last)
    embeds = ("Numbers and tests, names of runs and slices, and hashes.",)
    return Page(
        card.title, (Part("e1", card, tuple(s for s in sections if s.blocks)),), tuple(glossary(metrics)), embeds
    )
