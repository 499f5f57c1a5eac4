"""The replacement of a classifier as tables, and as one page to sign."""

from __future__ import annotations

import math
from pathlib import Path

from hitmiss._version import __version__
from hitmiss.core import artifacts
from hitmiss.evaluation.replacing import CHANGED, FEW, SAME, ReplacedGroup, Replacement
from hitmiss.findings.wording import p_text
from hitmiss.metrics.counts import recall
from hitmiss.reports.html import asset, environment, policy
from hitmiss.reports.html import raw as unescaped
from hitmiss.reports.html_table import page_table
from hitmiss.reports.table import Table, TableCell
from hitmiss.reports.table_style import bracketed
from hitmiss.stats.changed_rate import ChangedRate

RATES = {"flag-rate": "flagged", "false-alarms": "false alarms", recall.__name__: recall.__name__}
WORSE = {"false-alarms": "More false alarms", recall.__name__: "Less recall"}
MOST_FLIPS = 20
"""Texts that the page lists; the file of flips has them all."""
SIGNATURES = ("Tested by", "Approved by")


def headline(found: Replacement) -> str:
    """Say what changes, in one or two sentences."""
    rate = RATES[found.keep]
    changed = [name_of(g) for g in found.groups if g.outcome == CHANGED]
    same = [g for g in found.groups if g.outcome == SAME]
    total = len(found.groups)
    if changed:
        first = f"The {rate} rate changes in {len(changed)} of {total} groups: {', '.join(changed[:5])}"
    elif len(same) == total:
        first = f"The {rate} rate stays within ± {found.margin:g}" + (f" in all {total} groups" if total > 1 else "")
    else:
        open_ = [name_of(g) for g in found.groups if g.outcome not in (SAME, CHANGED)]
        first = f"Not shown to stay within ± {found.margin:g}: {', '.join(open_[:5])}{' …' if open_[5:] else ''}"
    worse = [
        f"{WORSE[rate]} in {len(own)} of {total} groups: {', '.join(own[:5])}"
        for rate in WORSE
        if (own := [name_of(g) for g in found.groups if rate in g.worse])
    ]
    changed_texts = f"{found.flips.height:,} of {found.n:,} judged texts get another decision"
    return " ".join(f"{sentence}." for sentence in (first, *worse, changed_texts))


def name_of(group: ReplacedGroup) -> str:
    """Return the name of a group."""
    return ", ".join(group.group.values()) or "all texts"


def replacement_tables(found: Replacement) -> list[Table]:
    """Return the thresholds and the kept rate of every group, then the other rates."""
    heads = ("group", "n", "old threshold", "new threshold", "old", "new", "difference", "p", "outcome")
    rows = []
    for g in found.groups:
        few = "*" if g.n_behind < FEW else ""
        cells = (
            TableCell(name_of(g)),
            TableCell(f"{g.kept.n:,}"),
            TableCell(f"{g.old_threshold:.6g}"),
            TableCell(("none" if math.isinf(g.new_threshold) else f"{g.new_threshold:.6g}") + few),
            *_rate(g.kept),
            TableCell(p_text(g.p_adjusted) if g.p_adjusted is not None else "–"),
            TableCell(g.outcome),
        )
        rows.append(cells)
    note = f"Differences are new − old, {found.level:.0%} for all groups and rates together, p adjusted over groups (Holm)."
    if any(g.n_behind < FEW for g in found.groups):
        note += f" * fewer than {FEW} flagged texts chose the threshold."
    tables = [Table(f"{RATES[found.keep]}: kept", heads, tuple(rows), counts=1, note=note, name="thresholds")]
    for name in [r.name for r in found.groups[0].rates[1:]]:
        lines = tuple(
            (
                TableCell(name_of(g)),
                TableCell(f"{r.n:,}"),
                *_rate(r),
                TableCell(f"{r.only_old:,}"),
                TableCell(f"{r.only_new:,}"),
            )
            for g in found.groups
            for r in g.rates
            if r.name == name
        )
        header = ("group", "n", "old", "new", "difference", "only old", "only new")
        tables.append(Table(RATES[name], header, lines, counts=1, name=name))
    return tables


def write_page(found: Replacement, path: str | Path) -> int:
    """Write one page: the conclusion, thresholds and rates, the first texts that change, and lines to sign on."""
    style = asset("board.css")
    columns = [c for c in ("item", *found.groups[0].group, "old", "new", "label") if c in found.flips.columns]
    first = found.flips.select(columns).head(MOST_FLIPS)
    rows = tuple(tuple(TableCell(_text(value)) for value in row) for row in first.iter_rows())
    flips = Table(f"the first of {found.flips.height:,} texts whose decision changes", tuple(columns), rows)
    lines = tuple((TableCell(who), TableCell(" "), TableCell(" ")) for who in SIGNATURES)
    sign = Table("signatures", ("", "name", "date and signature"), lines, labels=3)
    tables = [*replacement_tables(found), *([flips] if rows else []), sign]
    made = (
        f"{found.share:.0%} of the texts chose the thresholds, {found.n:,} others were judged (seed {found.seed}). "
        f"Made with hitmiss {__version__}."
    )
    text = (
        environment()
        .get_template("board.html")
        .render(
            title=f"{found.names[1]} instead of {found.names[0]}",
            lead=headline(found),
            tables=tables,
            table=lambda table, links: unescaped(page_table(table, links=links)),
            links={},
            figure=unescaped(""),
            reading="",
            back="",
            made=made,
            css=unescaped(style),
            js=unescaped(""),
            policy=policy(style, ()),
        )
    )
    artifacts.write(path, text)
    return len(text.encode("utf-8"))


def _rate(rate: ChangedRate) -> tuple[TableCell, TableCell, TableCell]:
    if not rate.n:
        return TableCell("–"), TableCell("–"), TableCell("–")
    ends = bracketed(rate.low, rate.high)
    return TableCell(f"{rate.old:.4f}"), TableCell(f"{rate.new:.4f}"), TableCell(f"{rate.difference:+.4f}", ends, True)


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
