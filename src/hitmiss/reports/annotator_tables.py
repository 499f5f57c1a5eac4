"""Votes of annotators as tables: each annotator, and the numbers of a classifier by what the votes leave open."""

from __future__ import annotations

from hitmiss.core.results import number
from hitmiss.evaluation.annotators import Annotation
from hitmiss.reports.table import Table, TableCell
from hitmiss.reports.table_style import bracketed


def headline(study: Annotation, level: float) -> str:
    """Return how many votes there are and how far they agree, in two sentences."""
    alike = study.agreement
    alpha = f"no alpha ({alike.note})" if alike.alpha is None else f"Krippendorff's alpha {alike.alpha:.3f}"
    ends = "" if alike.low is None or alike.high is None else f" [{alike.low:.3f}, {alike.high:.3f}] ({level:.0%})"
    agreeing = "" if alike.agreeing is None else f"; {alike.agreeing:.1%} of pairs of votes agree"
    return (
        f"{study.n:,} texts, {study.n_votes:,} votes of {len(study.people):,} annotators; "
        f"{study.n_disputed:,} texts are disputed, {study.n_ties:,} of them a tie (in no majority)\n"
        f"{alpha}{ends}{agreeing}"
    )


def annotator_tables(study: Annotation, level: float) -> list[Table]:
    """Return the table of annotators and, with scores, that of numbers."""
    people = tuple(
        (
            TableCell(p.name),
            TableCell(f"{p.n:,}"),
            TableCell(number(p.share_positive)),
            TableCell("" if p.agrees is None else number(p.agrees)),
        )
        for p in study.people
    )
    made = [Table("annotators", ("annotator", "n", "says yes", "as the majority of the others"), people)]
    if study.numbers:
        header = ("metric", "majority", "soft labels", f"one vote each, {level:.0%} range", "people")
        rows = tuple(
            (
                TableCell(n.metric),
                TableCell(number(n.majority), bracketed(n.low, n.high)),
                TableCell(number(n.soft)),
                TableCell(bracketed(n.votes_low, n.votes_high)),
                TableCell("" if n.people is None else number(n.people)),
            )
            for n in study.numbers
        )
        made.append(Table("numbers by what the votes leave open", header, rows).trimmed())
    return made
