"""Rankings of several runs arranged as tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hitmiss.conclude.comparison import draws_behind
from hitmiss.conclude.ranking import MOST_LETTERS, duels_of, tiers
from hitmiss.core.design import Grouping
from hitmiss.core.results import Estimate
from hitmiss.engine.rank import is_sliced, title_of
from hitmiss.engine.ranking import Duel, RankedRun, Ranking
from hitmiss.findings.wording import p_text
from hitmiss.reports.compared_numbers import TERMINAL, ComparedNumbers
from hitmiss.reports.comparison_tables import called
from hitmiss.reports.table import ARROW, Table, TableCell

if TYPE_CHECKING:
    from hitmiss.boards.board import BoardRow

MOST_IN_MATRIX = 10
"""Maximum number of runs for which every pair is in the table; with more, each is compared with the best."""
SHARED_LETTER = "Runs that share a letter were not shown to differ"
TIERS = "Tier: no run was shown to differ from the best run of its tier"


def ranking_tables(ranking: Ranking, numbers: ComparedNumbers = TERMINAL) -> list[Table]:
    """Return per metric the runs from best to worst with letters and the matrix of differences; then slices."""
    found = []
    whole = [s for s in ranking.standings if not is_sliced(s.slice, ranking.groupings)]
    for metric in dict.fromkeys(s.metric for s in whole):
        own = [s for s in whole if s.metric == metric]
        order = [s.run for s in own]
        duels = {frozenset((d.a, d.b)): d for d in ranking.duels if title_of(d.difference) == metric}
        against = order if len(order) <= MOST_IN_MATRIX else order[:1]
        group, groups = groups_of(ranking, own)
        draws = draws_behind(ranking)
        lines = [
            (
                TableCell(s.run),
                TableCell(numbers.value(_own(s), s.run), numbers.ends(_own(s)), strong=True),
                TableCell(rank_text(s)),
                TableCell(groups[s.run]),
                *(_against(s.run, other, duels, numbers, draws) for other in against),
            )
            for s in own
        ]
        title = f"{called(metric, ranking)} {ARROW[own[0].best]}: row − column, p ({ranking.correction}) over all pairs"
        header = ("run", "value", f"rank, {ranking.level:.0%}", group, *against)
        about = TIERS if group == "tier" else SHARED_LETTER if numbers.is_page else ""
        note = ". ".join(filter(None, (about, _about_pairs(list(duels.values())))))
        found.append(Table(title, header, tuple(lines), note=note))
    return found + [t for grouping in ranking.groupings for t in _ranked_by_slice(ranking, grouping, numbers)]


def _own(s: RankedRun) -> Estimate:
    """Return the value of a run with its own interval."""
    return Estimate(s.metric, s.value, s.low, s.high)


def groups_of(ranking: Ranking, own: Sequence[RankedRun]) -> tuple[str, dict[str, str]]:
    """Return how runs are grouped, and the group of each: letters where they can be read, tiers where there are many."""
    longest = len({letter for s in own for letter in re.findall(r"[a-z]\d*", s.letters)})  # z is followed by a1, b1, …
    if longest <= MOST_LETTERS:
        return "group", {s.run: s.letters for s in own}
    found = tiers([s.run for s in own], duels_of(ranking, own[0].metric))
    return "tier", {s.run: str(found[s.run]) if s.value is not None else "" for s in own}


def _about_pairs(duels: Sequence[Duel]) -> str:
    """Say for how many pairs there is what to know, such as why they were not tested."""
    counts = Counter(d.difference.note for d in duels if d.difference.note)
    return ". ".join(f"{n:,} of {len(duels):,} pairs: {note}" for note, n in counts.items())


def rank_text(row: RankedRun | BoardRow) -> str:
    """Format the range of ranks that a run may truly have."""
    low, high = row.rank_low, row.rank_high
    return "–" if low is None else f"{low}" if low == high else f"{low}–{high}"


def _ranked_by_slice(ranking: Ranking, grouping: Grouping, numbers: ComparedNumbers) -> list[Table]:
    """Return one table per metric: one row per slice with the value of every run and its letters."""
    found = []
    for metric in dict.fromkeys(d.difference.metric for d in ranking.duels):
        names = {title_of(d.difference): d.difference for d in ranking.duels if d.difference.metric == metric}
        own = {
            title: d for title, d in names.items() if is_sliced(d.slice, [grouping]) and len(d.slice) == len(grouping)
        }
        lines = []
        for title, d in own.items():
            runs = {s.run: s for s in ranking.standings if s.metric == title}
            key = tuple(d.slice.values()) if not d.average else (d.average, *("",) * (len(grouping) - 1))
            values = (
                TableCell(numbers.value(Estimate(metric, runs[n].value, slice=d.slice), n), runs[n].letters)
                for n in ranking.names
            )
            lines.append((*map(TableCell, key), TableCell(f"{d.n_pairs:,}"), *values))
        if lines:
            best = ARROW[next(iter(own.values())).best]
            title = f"{called(metric, ranking)} {best} by {' × '.join(grouping)}: in a row, runs that share a letter were not shown to differ"
            title += f" (p {ranking.correction}, over all pairs and slices)" if ranking.correction != "none" else ""
            found.append(Table(title, (*grouping, "pairs", *ranking.names), tuple(lines), len(grouping)))
    return found


def _against(
    run: str, other: str, duels: dict[frozenset[str], Duel], numbers: ComparedNumbers, draws: int | None
) -> TableCell:
    duel = duels.get(frozenset((run, other)))
    if run == other or duel is None or duel.difference.delta is None:
        return TableCell("")
    delta = duel.difference.delta if duel.b == run else -duel.difference.delta
    return TableCell(numbers.difference(duel.difference, delta)[0], f"p {p_text(duel.difference.p_adjusted, draws)}")
