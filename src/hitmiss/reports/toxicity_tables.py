"""The results of a toxicity run as a CSV file, as the documented table, and as tables for a terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Final

from hitmiss.core.finding import has_code
from hitmiss.core.registry import find_metric
from hitmiss.core.results import Estimate, number
from hitmiss.protocols.toxicity import AVERAGES, FIRST, LATER, Board, Row
from hitmiss.reports.table import ARROW, Table, TableCell
from hitmiss.reports.table_style import short_interval

COUNTS: Final = ("true_positives", "true_negatives", "false_positives", "false_negatives")
N_DOCUMENTED: Final = 8
PLACES: Final = 4


def records(board: Board) -> list[dict[str, object]]:
    """Return one mapping per row: the eight documented columns, counts and error rates, then all the rest."""
    return [_record(row, board.run.group) for row in board.rows]


def _record(row: Row, group: str) -> dict[str, object]:
    figures = {name: _value(row.figures.get(name)) for name in (*FIRST, *LATER)}
    counts = row.counts
    four = (counts.tp, counts.tn, counts.fp, counts.fn) if counts is not None else (None,) * len(COUNTS)
    ends = {
        f"{name}_{end}": getattr(e, end) if (e := row.figures.get(name)) else None
        for name in FIRST
        for end in ("low", "high")
    }
    return {
        group: row.name,
        "n_samples": row.n or None,
        "positive_rate": row.positive_rate,
        **{name: figures[name] for name in FIRST},
        **dict(zip(COUNTS, four, strict=True)),
        **{name: figures[name] for name in LATER},
        "n_positive": row.n_positive,
        "threshold": row.rule.threshold if row.rule else None,
        "threshold_source": row.rule.origin if row.rule else None,
        "f1_always_toxic": row.always_f1,
        "roc_auc_within": _value(row.within),
        **ends,
        "note": row.note or None,
    }


def _value(e: Estimate | None) -> float | None:
    return None if e is None else e.value


def csv_text(board: Board) -> str:
    """Return the metrics file: full precision (the shortest text that reads back the same), blank if undefined."""
    rows = records(board)
    return _csv(list(rows[0]), [[_exact(v) for v in row.values()] for row in rows])


def documented_text(board: Board) -> str:
    """Return the documented table: eight columns, four places, languages then macro and micro."""
    rows = [list(row.items())[:N_DOCUMENTED] for row in records(board) if row[board.run.group] != "worst"]
    return _csv([name for name, _ in rows[0]], [[_short(v) for _, v in row] for row in rows])


def _csv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _exact(value: object) -> str:
    return "" if value is None else repr(float(value)) if isinstance(value, float) else str(value)


def _short(value: object) -> str:
    return f"{value:.{PLACES}f}" if isinstance(value, float) else _exact(value)


MOST_IDENTITIES: Final = 3
"""With more identities, the worst of them are shown first."""


def tables(board: Board, full: bool = True) -> list[Table]:
    """Return ranking and F1, decisions and counts, each narrow enough for a terminal; bias by identity if asked for.

    Without `full`, one table: intervals of the two main metrics, and the numbers of the decisions.
    """
    found = [_ranking(board), _decided(board), _counted(board)] if full else [_summary(board)]
    return [*found, _bias(board, full)] if any("identity" in e.slice for e in board.results) else found


def _summary(board: Board) -> Table:
    rows = []
    for row in board.rows:
        plain = [c if row.name == "worst" else TableCell(c.text) for c in _cells(board, row, FIRST[2:])]
        rows.append(
            (TableCell(row.name), _count(row.n or None), _count(row.n_positive), *_cells(board, row, FIRST[:2]), *plain)
        )
    header = (board.run.group, "n", "toxic", *map(_titled, FIRST))
    return Table(f"by {board.run.group}", header, tuple(rows), kinds=_kinds(board))


def _ranking(board: Board) -> Table:
    rows = []
    for row in board.rows:
        sizes = (_count(row.n or None), _count(row.n_positive), _share(row.positive_rate))
        rows.append((TableCell(row.name), *sizes, *_cells(board, row, FIRST[:2]), _share(row.always_f1)))
    header = (board.run.group, "n", "toxic", "rate", *map(_titled, FIRST[:2]), "always")
    return Table(
        f"by {board.run.group} (always: the F1 of calling every text toxic)", header, tuple(rows), kinds=_kinds(board)
    )


def _decided(board: Board) -> Table:
    rows = [(TableCell(row.name), TableCell(_threshold(row)), *_cells(board, row, FIRST[2:])) for row in board.rows]
    return Table(
        "decisions", (board.run.group, "threshold", *map(_titled, FIRST[2:])), tuple(rows), kinds=_kinds(board)
    )


def _counted(board: Board) -> Table:
    rows = []
    for row in board.rows:
        c = row.counts
        four = (
            [TableCell(f"{n:,}") for n in (c.tp, c.fp, c.fn, c.tn)] if c is not None else [TableCell("")] * len(COUNTS)
        )
        shares = _cells(board, row, LATER)
        rows.append((TableCell(row.name), *four, *(c if row.name == "worst" else TableCell(c.text) for c in shares)))
    return Table(
        "errors", (board.run.group, "TP", "FP", "FN", "TN", *map(_titled, LATER)), tuple(rows), kinds=_kinds(board)
    )


def _kinds(board: Board) -> tuple[str, ...]:
    """Return for each row which average it is; empty for a group."""
    return tuple(row.name if row.name in AVERAGES else "" for row in board.rows)


def _titled(name: str) -> str:
    return f"{name} {ARROW[find_metric(name).best]}"


def _share(value: float | None) -> TableCell:
    return TableCell(number(value) if value is not None else "")


def _cells(board: Board, row: Row, names: Sequence[str]) -> list[TableCell]:
    worst = _where_worst(board, row)
    return [_cell(row.figures.get(name), worst.get(name)) for name in names]


def _where_worst(board: Board, row: Row) -> dict[str, str]:
    """Return, for the row of the worst, which group each number is from."""
    if row.name != "worst":
        return {}
    return {name: e.slice.get(board.run.group, "") for name, e in row.figures.items()}


def _cell(e: Estimate | None, where: str | None = None) -> TableCell:
    if e is None:
        return TableCell("")
    if e.value is None:
        return TableCell("–", "undefined")
    mark = "*" if has_code(e.note, "few-of-class", "zero-by-convention", "mean-over-some") else ""
    return TableCell(number(e.value) + mark, where if where is not None else short_interval(e))


def _count(n: int | None) -> TableCell:
    return TableCell(f"{n:,}" if n is not None else "")


def _threshold(row: Row) -> str:
    if row.rule is None:
        return ""
    return f"{row.rule.threshold:.4g}" if row.rule.threshold is not None else row.rule.origin.removeprefix("column ")


def _bias(board: Board, full: bool) -> Table:
    """Return the identities, of many only the worst unless all are asked for, and their power means."""
    cells = [e for e in board.results if "identity" in e.slice]
    kinds = list(dict.fromkeys(e.metric for e in cells if e.metric != "bias_score"))
    rows = []
    lowest: dict[str, float] = {}
    for e in cells:
        if e.average is None and e.value is not None:
            lowest[e.slice["identity"]] = min(e.value, lowest.get(e.slice["identity"], 1.0))
    names = list(dict.fromkeys(e.slice["identity"] for e in cells))
    is_short = not full and len(names) - 1 > MOST_IDENTITIES
    worst = sorted(lowest, key=lambda name: lowest[name])[:MOST_IDENTITIES] if is_short else names
    for name in (name for name in names if name in worst or name == "*"):
        own = {e.metric: e for e in cells if e.slice["identity"] == name}
        inside = own["subgroup_auc"]
        sizes = (_count(inside.n), _count(inside.n_positive)) if name != "*" else (TableCell(""), TableCell(""))
        rows.append((TableCell(name if name != "*" else "power mean"), *sizes, *(_cell(own.get(k)) for k in kinds)))
    final = next(e for e in cells if e.metric == "bias_score")
    title = (
        f"unintended bias by identity; final number {number(final.value)} (power means, p = {final.settings['p']:g})"
    )
    title += f"; the {MOST_IDENTITIES} worst of {len(names) - 1} (--full)" if is_short else ""
    return Table(title, ("identity", "mentions", "toxic", *(f"{k} {ARROW['high']}" for k in kinds)), tuple(rows))


def remarks(board: Board) -> list[str]:
    """Return the lines under the tables: how it was decided, marks, pooled and within-language AUC, useless F1s."""
    run = board.run
    origins: dict[str, list[str]] = {}
    for group in run.groups:
        origins.setdefault(run.rules[group].origin, []).append(group)
    decided = "; ".join(f"{o}: {', '.join(g)}" if len(origins) > 1 else o for o, g in origins.items())
    sign = "<" if run.measured.header.scale.is_reversed else ">="
    found = [f"decided by {decided}; toxic where score {sign} threshold", *_intervals(board)]
    marked = [f"{row.name}: {row.note}" for row in board.rows if row.note and row.name != "worst"]
    found += [f"* {text}" for text in marked]
    found += _pooled(board)
    below = [row.name for row in board.rows if _is_useless(row)]
    if below:
        found.append(f"F1 is not above that of calling everything toxic (always f1): {', '.join(below)}")
    return found


def _intervals(board: Board) -> list[str]:
    """Describe the brackets: the level of the intervals, and their methods."""
    methods: dict[str, list[str]] = {}
    for row in board.rows:
        for name in FIRST:
            e = row.figures.get(name)
            if e is not None and e.method:
                kind = {"delong": "DeLong", "wilson": "Wilson"}.get(e.method, e.how.kind)
                methods.setdefault(kind, []).append("macro" if row.name == "macro" else name)
    told = [f"{kind} ({', '.join(dict.fromkeys(names))})" for kind, names in methods.items()]
    return [f"in brackets: {board.level:.0%} intervals by {', '.join(told)}"] if told else []


def _pooled(board: Board) -> list[str]:
    within = next((row.within for row in board.rows if row.within is not None), None)
    micro = next(row for row in board.rows if row.name == "micro").figures["roc_auc"]
    if within is None or within.value is None or micro.value is None:
        return []
    return [
        f"micro roc_auc {micro.value:.4f} orders the scores of all groups together; over the pairs inside a {board.run.group} "
        f"it is {within.value:.4f} {short_interval(within)}".rstrip()
    ]


def _is_useless(row: Row) -> bool:
    f1 = row.figures.get("f1")
    return (
        row.name != "worst"
        and f1 is not None
        and f1.value is not None
        and row.always_f1 is not None
        and f1.value <= row.always_f1
    )
