"""Comparisons of two runs arranged as tables."""

from __future__ import annotations

from collections.abc import Sequence

from hitmiss.conclude.comparison import DRAWN_TESTS, draws_behind, is_sliced
from hitmiss.core.protocol import EVERY
from hitmiss.core.results import Estimate
from hitmiss.engine.comparison import A_BETTER, B_BETTER, Comparison, Difference, Discordance
from hitmiss.engine.ranking import Ranking
from hitmiss.findings.wording import p_text
from hitmiss.metrics.bias import FINAL
from hitmiss.metrics.counts import ONE_LESS
from hitmiss.reports.compared_numbers import TERMINAL, ComparedNumbers
from hitmiss.reports.result_tables import SPREADS
from hitmiss.reports.table import ARROW, Table, TableCell

VERDICT = "verdict"
MOST_SLICES, SHOWN_SLICES = 16, 6
"""With more slices than the first number, those that differ most are shown first."""
LEGEND = (
    "better/same/worse: on how many pairs the answer of B is better than that of A, equally good, or worse. "
    "detectable: the least true difference that this many pairs show in 80 % of repetitions."
)


def tables(
    comparison: Comparison,
    positive: str = "positives",
    numbers: ComparedNumbers = TERMINAL,
    *,
    full: bool = True,
) -> list[Table]:
    """Return all pairs, then one table per metric and grouping, then McNemar's tables.

    Without `full`, all pairs and the first metric of the first grouping; the verdict names every slice that is worse.
    """
    whole = [d for d in comparison if (not d.average and not is_sliced(d, comparison)) or d.metric == FINAL]
    gaps = [d for d in comparison if d.average in SPREADS]
    if not full:
        names = {d.metric for d in whole}
        whole = [d for d in whole if ONE_LESS.get(d.metric) not in names]
    found = [_overall(whole, comparison, numbers)] if whole else []
    families = dict.fromkeys(
        (tuple(d.slice), d.metric)
        for d in comparison
        if is_sliced(d, comparison) and d not in gaps and d.metric != FINAL
    )
    kept = list(families) if full else list(families)[:1]
    found += [_by_slice(comparison, names, metric, positive, numbers, full) for names, metric in kept]
    kept_gaps = gaps if full else [d for d in gaps if d.metric == gaps[0].metric]
    found += [_gaps(kept_gaps, comparison, numbers)] if gaps else []
    if not full and found:
        return found
    for sliced in (False, True):
        own = [d for d in comparison.discordances if bool(d.slice) == sliced]
        found += [_mcnemar(own, comparison.correction)] if own else []
    return found


def _overall(rows: Sequence[Difference], comparison: Comparison, numbers: ComparedNumbers) -> Table:
    header = (
        "metric",
        "A",
        "B",
        f"B − A, {comparison.level:.0%} interval",
        "p",
        "test",
        "better/same/worse",
        "detectable",
    )
    lines = [
        (
            TableCell(_titled(d, comparison)),
            *_values(d, comparison, numbers),
            TableCell(_p(d.p_value, d, draws_behind(comparison))),
            TableCell(d.test or ""),
            TableCell(_wins(d)),
            TableCell(numbers.detectable(d)),
            TableCell(d.verdict, strong=d.verdict in (A_BETTER, B_BETTER)),
            TableCell(d.note or ""),
        )
        for d in rows
    ]
    return _arranged(Table("all pairs", (*header, VERDICT, ""), tuple(lines)), 3, numbers)


def _gaps(rows: Sequence[Difference], comparison: Comparison, numbers: ComparedNumbers) -> Table:
    header = ("gap", "metric", "A", "B", f"B − A, {comparison.level:.0%} interval", "")
    lines = []
    for d in rows:
        where = ", ".join(f"over {k}" if v == EVERY else f"{k} {v}" for k, v in d.slice.items())
        name = TableCell(f"{SPREADS[str(d.average)]}{_titled(d, comparison)}")
        lines.append((TableCell(where), name, *_values(d, comparison, numbers), TableCell(d.note or "")))
    return Table("gaps between groups", header, tuple(lines), 2).trimmed()


def _by_slice(
    comparison: Comparison, names: tuple[str, ...], metric: str, positive: str, numbers: ComparedNumbers, full: bool
) -> Table:
    own = [d for d in comparison if tuple(d.slice) == names and d.metric == metric and d.average not in SPREADS]
    pooled = [d for d in comparison if not d.slice and d.metric == metric]
    adjusted = f"p ({comparison.correction})" if comparison.correction != "none" else "p unadjusted"
    header = (
        *names,
        "pairs",
        positive,
        "A",
        "B",
        f"B − A, {comparison.level:.0%} interval",
        "p",
        adjusted,
        "better/same/worse",
    )

    def row(key: tuple[str, ...], d: Difference) -> tuple[TableCell, ...]:
        return _slice_row(key, d, _values(d, comparison, numbers), draws_behind(comparison))

    slices, macro = [d for d in own if not d.average], [d for d in own if d.average]
    n_slices = len(slices)
    if not full and n_slices > MOST_SLICES:
        most = sorted(slices, key=lambda d: (d.p_value if d.p_value is not None else 1.0, -abs(d.delta or 0.0)))
        slices = [d for d in slices if d in most[:SHOWN_SLICES]]
    rows = [row(tuple(d.slice.values()), d) for d in slices]
    blank = ("",) * (len(names) - 1)
    rows += [row(("pooled", *blank), d) for d in pooled]
    rows += [row((str(d.average), *blank), d) for d in macro]
    title = f"{_titled(own[0], comparison)} by {' × '.join(names)}"
    title += f"; the {SHOWN_SLICES} of {n_slices} that differ most (--full)" if len(slices) < n_slices else ""
    kinds = ("",) * len(slices) + ("pooled",) * len(pooled) + ("macro",) * len(macro)
    made = Table(title, (*header, VERDICT, ""), tuple(rows), len(names), kinds=kinds)
    return _arranged(made, len(names) + 4, numbers)


def _arranged(table: Table, difference: int, numbers: ComparedNumbers) -> Table:
    """Return the table without empty columns; on a page the verdict stands next to the difference, to be seen at once."""
    if not numbers.is_page:
        return table.trimmed()
    at, to = table.header.index(VERDICT), difference + 1
    return table.columns([*range(to), at, *(i for i in range(to, len(table.header)) if i != at)]).trimmed()


def _p(p: float | None, d: Difference, draws: int | None) -> str:
    """Format a p value of a row; one from replicates is not stated below what they can show."""
    return p_text(p, draws if d.test in DRAWN_TESTS else None)


def _slice_row(
    key: tuple[str, ...], d: Difference, values: tuple[TableCell, ...], draws: int | None
) -> tuple[TableCell, ...]:
    return (
        *(TableCell(k) for k in key),
        TableCell(f"{d.n_pairs:,}"),
        TableCell(f"{d.n_positive:,}"),
        *values,
        TableCell(_p(d.p_value, d, draws)),
        TableCell(_p(d.p_adjusted, d, draws) if not d.average and d.slice else ""),
        TableCell(_wins(d)),
        TableCell(d.verdict, strong=d.verdict in (A_BETTER, B_BETTER)),
        TableCell(d.note or ""),
    )


def _values(d: Difference, comparison: Comparison, numbers: ComparedNumbers) -> tuple[TableCell, TableCell, TableCell]:
    """Return the cells of both runs and of their difference."""
    shown = [
        TableCell(numbers.value(Estimate(d.metric, value, slice=d.slice), run, d))
        for value, run in zip((d.a, d.b), comparison.names, strict=True)
    ]
    return shown[0], shown[1], TableCell(*numbers.difference(d), strong=True)


def _titled(d: Difference, comparison: Comparison) -> str:
    return f"{called(d.metric, comparison)} {ARROW[d.best]}"


def called(metric: str, made: Comparison | Ranking) -> str:
    """Return a metric by the name that the protocol gives it in tables, such as APCER for fpr."""
    protocol = made.design.protocol if made.design is not None else None
    return protocol.names.get(metric, metric) if protocol is not None else metric


def _wins(d: Difference) -> str:
    if d.delta is None or not d.wins + d.ties + d.losses:
        return ""
    return f"{d.wins:,}/{d.ties:,}/{d.losses:,}{' slices' if d.average else ''}"


def _mcnemar(rows: Sequence[Discordance], correction: str) -> Table:
    names = tuple(dict.fromkeys(k for d in rows for k in d.slice))
    header = (*names, "reading", "pairs", "both right", "only A", "only B", "both wrong", "p exact", "mid-p")
    adjusted = (f"exact ({correction})",) if names and correction != "none" else ()
    lines = [
        (
            *(TableCell(d.slice.get(k, "")) for k in names),
            TableCell(d.reading),
            *(TableCell(f"{n:,}") for n in (d.n_pairs, d.both_right, d.only_a, d.only_b, d.both_wrong)),
            TableCell(p_text(d.p_exact)),
            TableCell(p_text(d.p_mid)),
            *(TableCell(p_text(d.p_adjusted)) for _ in adjusted),
        )
        for d in rows
    ]
    title = "McNemar: pairs whose decisions differ" + (f", by {' × '.join(names)}" if names else "")
    if all(d.p_exact is None for d in rows):
        title += " (no p: items repeat or units are drawn, so pairs are not independent)"
    return Table(title, (*header, *adjusted), tuple(lines), len(names) + 1)
