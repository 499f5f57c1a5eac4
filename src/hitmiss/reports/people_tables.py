"""Tables of what people add to a system: the three side by side, what was left to people, and their agreement."""

from __future__ import annotations

from hitmiss.core.results import number
from hitmiss.engine.interval import share_interval
from hitmiss.protocols.triage import repeats_of
from hitmiss.reports.table import Table, TableCell, crossed
from hitmiss.reports.table_style import TEXT, TableStyle, bracketed, titled
from hitmiss.verdicts.agreement import Agreement
from hitmiss.verdicts.people import PEOPLE, SYSTEM, TOGETHER, WHO, HumanMachineResults, Load


def people_tables(work: HumanMachineResults, style: TableStyle = TEXT) -> list[Table]:
    """Return the tables of numbers, load and agreement."""
    return [figures_table(work, style), load_table(work, style), agreement_table(work)]


def figures_table(work: HumanMachineResults, style: TableStyle = TEXT) -> Table:
    """Return one row per metric; for every run the system alone and with people, and people alone."""
    order = {SYSTEM: 0, PEOPLE: 1, TOGETHER: 2}
    shown = sorted(repeats_of(work.figures), key=lambda e: order[e.run[WHO]])
    names = dict.fromkeys(e.metric for e in repeats_of(work.figures))
    ranked = sorted(shown, key=lambda e: list(names).index(e.metric))
    columns = tuple(dict.fromkeys(_named_people(dict(e.run)) for e in shown))
    cells = [((titled(e),), _named_people(dict(e.run)), style.cell_with_unit(e)) for e in ranked]
    cells += [(("n",), _named_people(dict(e.run)), TableCell(f"{e.n:,}")) for e in reversed(shown)]
    return crossed("the system alone, people alone, and the two together", ("metric",), cells, columns, "–")


def load_table(work: HumanMachineResults, style: TableStyle = TEXT) -> Table:
    """Show what each run left to people, and the outcome."""
    names = tuple(dict.fromkeys(k for load in work.loads for k in load.run))
    header = (*names, "items", "left to people", "share", "settled", "still open", "short of verdicts", "not looked at")
    return Table("what was left to people", header, tuple(_load(load, names, style) for load in work.loads), len(names))


def agreement_table(work: HumanMachineResults) -> Table:
    """Show Krippendorff's alpha, with "cannot tell" as an answer and without."""
    header = ("agreement of people", "Krippendorff's alpha ↑", "pairs that agree", "items", "answers")
    rows = (
        _agreement('with "cannot tell" as an answer', work.agreement),
        _agreement('without "cannot tell"', work.decided_agreement),
    )
    return Table(summary(work), header, rows)


def summary(work: HumanMachineResults) -> str:
    """Say who reviewed, and for how long."""
    people = f"{work.n_verdicts:,} verdicts of {work.n_reviewers:,} reviewer{'s' if work.n_reviewers != 1 else ''}"
    decided = f", {work.n_adjudicated:,} adjudicated" if work.n_adjudicated else ""
    return f"{people}{decided}" + (f", {work.seconds / 60:.1f} minutes of looking" if work.seconds is not None else "")


def _named_people(run: dict[str, str]) -> str:
    rest = "|".join(v for k, v in run.items() if k != WHO and v != "-")
    return f"{run[WHO]} {rest}".strip()


def _load(load: Load, names: tuple[str, ...], style: TableStyle) -> tuple[TableCell, ...]:
    counts = (load.settled, load.open, load.begun, load.unseen)
    low, high = share_interval(load.sent, load.n)
    share = style.share(float(load.share), low, high) if load.n else TableCell("–")
    return (
        *(TableCell(load.run.get(k, "")) for k in names),
        *(TableCell(f"{n:,}") for n in (load.n, load.sent)),
        share,
        *(TableCell(f"{n:,}") for n in counts),
    )


def _agreement(name: str, a: Agreement) -> tuple[TableCell, ...]:
    alpha = (
        TableCell(number(a.alpha), bracketed(a.low, a.high)) if a.alpha is not None else TableCell("undefined", a.note)
    )
    agreeing = TableCell("–" if a.agreeing is None else number(a.agreeing))
    return TableCell(name), alpha, agreeing, TableCell(f"{a.n_items:,}"), TableCell(f"{a.n_answers:,}")
