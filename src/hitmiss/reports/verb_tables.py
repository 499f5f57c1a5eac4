"""Tables of single verbs: comparisons, drift, shortcuts, thresholds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Final

from hitmiss.conclude.comparison import DRAWN_TESTS, draws_behind
from hitmiss.conclude.ranking import MOST_LETTERS, duels_of, tiers
from hitmiss.core.design import Grouping
from hitmiss.core.results import Estimate, Results, number
from hitmiss.engine.compare import Comparison, Difference, Discordance
from hitmiss.engine.rank import Duel, Ranking, Standing, is_sliced, title_of
from hitmiss.engine.tuning import DEFAULT, Tuned
from hitmiss.findings.wording import PLACES, p_text
from hitmiss.protocols.tuning import Tuning
from hitmiss.reports.tabular import ARROW, TEXT, Cell, Table, bracketed, crossed, short_interval
from hitmiss.robustness.manipulation import CHANGED

# ----------------------------------------------------------------------
# Comparisons arranged as tables of text; drawing them is done in `tabular`.

VERDICT = "verdict"
MOST_IN_MATRIX = 10
"""Maximum number of runs for which every pair is in the table; with more, each is compared with the best."""
LEGEND = (
    "better/same/worse: on how many pairs the answer of B is better than that of A, equally good, or worse. "
    "detectable: the least true difference that this many pairs show in 80 % of repetitions."
)


TIERS = "Tier: no run was shown to differ from the best run of its tier"


def tables(comparison: Comparison, positive: str = "positives") -> list[Table]:
    """Return all pairs, then one table per metric and grouping, then McNemar's tables."""
    whole = [d for d in comparison if not d.average and not _is_sliced(d, comparison)]
    found = [_overall(whole, comparison)] if whole else []
    families = dict.fromkeys((tuple(d.slice), d.metric) for d in comparison if _is_sliced(d, comparison))
    found += [_by_slice(comparison, names, metric, positive) for names, metric in families]
    for sliced in (False, True):
        own = [d for d in comparison.discordances if bool(d.slice) == sliced]
        found += [_mcnemar(own, comparison.correction)] if own else []
    return found


def _is_sliced(d: Difference, comparison: Comparison) -> bool:
    """Say whether a row is one of a family: a slice, or a target of several."""
    return bool(d.slice) and any(tuple(e.slice) == tuple(d.slice) and e.slice != d.slice for e in comparison)


def _overall(rows: Sequence[Difference], comparison: Comparison) -> Table:
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
            Cell(_titled(d, comparison)),
            *_figures(d),
            Cell(_p(d.p_value, d, draws_behind(comparison))),
            Cell(d.test or ""),
            Cell(_wins(d)),
            Cell("±" + f"{d.mdd:.4f}" if d.mdd is not None else "–"),
            Cell(d.verdict, strong=d.verdict.endswith("better")),
            Cell(d.note or ""),
        )
        for d in rows
    ]
    return Table("all pairs", (*header, VERDICT, ""), tuple(lines)).trimmed()


def _by_slice(comparison: Comparison, names: tuple[str, ...], metric: str, positive: str) -> Table:
    own = [d for d in comparison if tuple(d.slice) == names and d.metric == metric]
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
    draws = draws_behind(comparison)
    rows = [_slice_row(tuple(d.slice.values()), d, draws) for d in own if not d.average]
    blank = ("",) * (len(names) - 1)
    rows += [_slice_row(("pooled", *blank), d, draws) for d in pooled]
    rows += [_slice_row(("macro", *blank), d, draws) for d in own if d.average]
    title = f"{_titled(own[0], comparison)} by {' × '.join(names)}"
    return Table(title, (*header, VERDICT, ""), tuple(rows), len(names)).trimmed()


def _p(p: float | None, d: Difference, draws: int | None) -> str:
    """Format a p value of a row; one from replicates is not stated below what they can show."""
    return p_text(p, draws if d.test in DRAWN_TESTS else None)


def _slice_row(key: tuple[str, ...], d: Difference, draws: int | None) -> tuple[Cell, ...]:
    return (
        *(Cell(k) for k in key),
        Cell(f"{d.n_pairs:,}"),
        Cell(f"{d.n_positive:,}"),
        *_figures(d),
        Cell(_p(d.p_value, d, draws)),
        Cell(_p(d.p_adjusted, d, draws) if not d.average and d.slice else ""),
        Cell(_wins(d)),
        Cell(d.verdict, strong=d.verdict.endswith("better")),
        Cell(d.note or ""),
    )


def _figures(d: Difference) -> tuple[Cell, Cell, Cell]:
    shown = [Cell("–" if value is None else f"{value:.4f}") for value in (d.a, d.b)]
    ends = f"[{d.low:+.4f}, {d.high:+.4f}]" if d.low is not None and d.high is not None else ""
    return shown[0], shown[1], Cell("–" if d.delta is None else f"{d.delta:+.4f}", ends, strong=True)


def _titled(d: Difference, comparison: Comparison) -> str:
    return f"{_called(d.metric, comparison)} {ARROW[d.best]}"


def _called(metric: str, made: Comparison | Ranking) -> str:
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
            *(Cell(d.slice.get(k, "")) for k in names),
            Cell(d.reading),
            *(Cell(f"{n:,}") for n in (d.n_pairs, d.both_right, d.only_a, d.only_b, d.both_wrong)),
            Cell(p_text(d.p_exact)),
            Cell(p_text(d.p_mid)),
            *(Cell(p_text(d.p_adjusted)) for _ in adjusted),
        )
        for d in rows
    ]
    title = "McNemar: pairs whose decisions differ" + (f", by {' × '.join(names)}" if names else "")
    if all(d.p_exact is None for d in rows):
        title += " (no p: items repeat or units are drawn, so pairs are not independent)"
    return Table(title, (*header, *adjusted), tuple(lines), len(names) + 1)


def ranking_tables(ranking: Ranking) -> list[Table]:
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
                Cell(s.run),
                Cell("–" if s.value is None else f"{s.value:.4f}", bracketed(s.low, s.high), strong=True),
                Cell(_rank(s)),
                Cell(groups[s.run]),
                *(_against(s.run, other, duels, draws) for other in against),
            )
            for s in own
        ]
        title = (
            f"{_called(metric, ranking)} {ARROW[own[0].best]}: row − column, p ({ranking.correction}) over all pairs"
        )
        header = ("run", "value", f"rank, {ranking.level:.0%}", group, *against)
        about = TIERS if group == "tier" else ""
        note = ". ".join(filter(None, (about, _about_pairs(list(duels.values())))))
        found.append(Table(title, header, tuple(lines), note=note))
    return found + [t for grouping in ranking.groupings for t in _ranked_by_slice(ranking, grouping)]


def groups_of(ranking: Ranking, own: Sequence[Standing]) -> tuple[str, dict[str, str]]:
    """Return how runs are grouped, and the group of each: letters where they can be read, tiers where there are many."""
    longest = len({letter for s in own for letter in _letters(s.letters)})
    if longest <= MOST_LETTERS:
        return "group", {s.run: s.letters for s in own}
    found = tiers([s.run for s in own], duels_of(ranking, own[0].metric))
    return "tier", {s.run: str(found[s.run]) if s.value is not None else "" for s in own}


def _letters(text: str) -> list[str]:
    """Return the letters of a run one by one; after z they go on as a1, b1, …"""
    return re.findall(r"[a-z]\d*", text)


def _about_pairs(duels: Sequence[Duel]) -> str:
    """Say for how many pairs there is what to know, such as why they were not tested."""
    counts = Counter(d.difference.note for d in duels if d.difference.note)
    return ". ".join(f"{n:,} of {len(duels):,} pairs: {note}" for note, n in counts.items())


def _rank(standing: Standing) -> str:
    """Format the range of ranks that a run may truly have."""
    low, high = standing.rank_low, standing.rank_high
    return "–" if low is None else f"{low}" if low == high else f"{low}–{high}"


def _ranked_by_slice(ranking: Ranking, grouping: Grouping) -> list[Table]:
    """Return one table per metric: one row per slice with the figure of every run and its letters."""
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
            figures = (
                Cell("–" if (v := runs[n].value) is None else f"{v:.4f}", runs[n].letters) for n in ranking.names
            )
            lines.append((*map(Cell, key), Cell(f"{d.n_pairs:,}"), *figures))
        if lines:
            best = ARROW[next(iter(own.values())).best]
            title = f"{_called(metric, ranking)} {best} by {' × '.join(grouping)}: in a row, runs that share a letter were not shown to differ"
            title += f" (p {ranking.correction}, over all pairs and slices)" if ranking.correction != "none" else ""
            found.append(Table(title, (*grouping, "pairs", *ranking.names), tuple(lines), len(grouping)))
    return found


def _against(run: str, other: str, duels: dict[frozenset[str], Duel], draws: int | None) -> Cell:
    duel = duels.get(frozenset((run, other)))
    if run == other or duel is None or duel.difference.delta is None:
        return Cell("")
    delta = duel.difference.delta if duel.b == run else -duel.difference.delta
    return Cell(f"{delta:+.4f}", f"p {p_text(duel.difference.p_adjusted, draws)}")


# ----------------------------------------------------------------------
# The drift table: one row per condition, FAR and FRR at the fixed threshold, their drift, and the score shift.

COLUMNS: Final = {
    "far": "FAR ↓",
    "far_drift": "drift",
    "frr": "FRR ↓",
    "frr_drift": "drift",
    "shift_fake": "fake shift",
    "shift_real": "real shift",
    "eer": "EER ↓",
}
SIGNED: Final = ("far_drift", "frr_drift", "shift_fake", "shift_real")


def drift_table(results: Results) -> Table:
    """Return the results of `manipulation.drift` as a table; the clean row comes first."""
    by = next(iter(results.estimates[0].slice))
    cells = [((e.slice[by],), e.metric, _cell(e)) for e in results]
    table = crossed(f"drift by {by}, at the threshold of the first row", (by,), cells, tuple(COLUMNS))
    return replace(table, header=(by, *COLUMNS.values()))


def _cell(e: Estimate) -> Cell:
    if e.value is None:
        return Cell("–")
    text = f"{e.value:+.4f}" if e.metric in SIGNED else f"{e.value:.4f}"
    return Cell(text + ("†" if e.note == CHANGED else ""), short_interval(e))


# ----------------------------------------------------------------------
# The shortcut table: the AUC of each shortcut alone in each slice.


def shortcut_table(results: Results, by: str) -> Table:
    """Return the AUC of every shortcut (rows) in every value of a slice column (columns)."""
    own = [e for e in results if e.metric == "roc_auc" and e.average is None and set(e.slice) == {by}]
    cells = [((e.run["shortcut"],), e.slice[by], TEXT.cell(e, PLACES)) for e in own]
    across = sorted({e.slice[by] for e in own})
    return crossed(f"roc_auc ↑ of shortcuts by {by}", ("shortcut",), cells, across)


# ----------------------------------------------------------------------
# Thresholds and their figures as a table and as plain records.


def records(tuning: Tuning) -> list[dict[str, object]]:
    """Return one mapping per group: both searches, and the figures on test data if there are any."""
    rows = []
    for row in tuning.rows:
        facts = asdict(row)
        rows.append({**facts, "threshold": row.chosen.threshold, "drop": row.drop, "gain": row.gain})
    return rows


def table(tuning: Tuning) -> Table:
    """Return one row per group: the chosen threshold, validation against test, and 0.5 on both."""
    m, default = tuning.maximize, f"{DEFAULT:g}"
    other = "grid" if tuning.search == "exact" else "exact"
    header = [
        tuning.group,
        "n",
        "toxic",
        f"threshold ({tuning.search})",
        f"{m} validation",
        f"at {default}",
        f"{other} ({m})",
    ]
    judged = tuning.test is not None
    header += ["test n", f"{m} test", "drop", f"test at {default}", f"gain over {default}"] if judged else []
    rows = tuple(_row(row, other, judged) for row in tuning.rows)
    return Table(f"thresholds that maximise {m} on validation", tuple(header), rows)


def _row(row: Tuned, other: str, judged: bool) -> tuple[Cell, ...]:
    rival = row.choices[other]
    cells = [
        Cell(row.group),
        Cell(f"{row.n:,}"),
        Cell(f"{row.n_positive:,}"),
        Cell(f"{row.chosen.threshold:.6g}", strong=True),
        Cell(number(row.chosen.value)),
        Cell(number(row.at_default)),
        Cell(f"{rival.threshold:.4g} ({number(rival.value)})"),
    ]
    if judged:
        drop = f"{row.drop:+.4f}" if row.drop is not None else ""
        gain = f"{row.gain:+.4f}" if row.gain is not None else ""
        cells += [
            Cell(f"{row.test_n:,}"),
            Cell(number(row.test), bracketed(row.test_low, row.test_high)),
            Cell(drop),
            Cell(number(row.test_at_default)),
            Cell(gain, bracketed(row.gain_low, row.gain_high)),
        ]
    return tuple(cells)
