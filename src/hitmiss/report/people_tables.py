"""Tables of what people add to a system: the three side by side, what was left to people, and how they agree."""

from __future__ import annotations

from hitmiss.core.results import Estimate, number
from hitmiss.protocols.triage import repeats_of
from hitmiss.report.tables import Cell, Table, short_interval, titled
from hitmiss.stats.agreement import Agreement
from hitmiss.stats.intervals import wilson
from hitmiss.verdicts.people import PEOPLE, SYSTEM, TOGETHER, WHO, Load, Teamwork


def people_tables(work: Teamwork) -> list[Table]:
    """The figures, the load and the agreement."""
    return [figures_table(work), load_table(work), agreement_table(work)]


def figures_table(work: Teamwork) -> Table:
    """A row a metric; for every run the system alone and together with people, and people alone."""
    shown = repeats_of(work.figures)
    runs = list(dict.fromkeys(tuple(e.run.items()) for e in shown))
    order = {SYSTEM: 0, PEOPLE: 1, TOGETHER: 2}
    runs.sort(key=lambda run: order[dict(run)[WHO]])
    at = {(e.metric, tuple(e.run.items())): e for e in shown}
    names = list(dict.fromkeys(e.metric for e in shown))
    rows = []
    for metric in names:
        own = [at.get((metric, run)) for run in runs]
        first = next(e for e in own if e is not None)
        rows.append((Cell(titled(first)), *(_figure(e) for e in own)))
    counts = [next(e for (_, run), e in at.items() if run == wanted).n for wanted in runs]
    rows.append((Cell("n"), *(Cell(f"{n:,}") for n in counts)))
    title = "the system alone, people alone, and the two together"
    return Table(title, ("metric", *(_named(dict(run)) for run in runs)), tuple(rows))


def load_table(work: Teamwork) -> Table:
    """What each run left to people, and what became of it."""
    names = tuple(dict.fromkeys(k for load in work.loads for k in load.run))
    header = (*names, "items", "left to people", "share", "settled", "still open", "short of verdicts", "not looked at")
    return Table("what was left to people", header, tuple(_load(load, names) for load in work.loads), len(names))


def agreement_table(work: Teamwork) -> Table:
    """Krippendorff's alpha, with "cannot tell" as an answer and without."""
    header = ("agreement of people", "Krippendorff's alpha ↑", "pairs that agree", "items", "answers")
    rows = (
        _agreement('with "cannot tell" as an answer', work.agreement),
        _agreement('without "cannot tell"', work.decided_agreement),
    )
    return Table(summary(work), header, rows)


def summary(work: Teamwork) -> str:
    """Who looked, and for how long."""
    people = f"{work.n_verdicts:,} verdicts of {work.n_reviewers:,} reviewer{'s' if work.n_reviewers != 1 else ''}"
    decided = f", {work.n_adjudicated:,} adjudicated" if work.n_adjudicated else ""
    return f"{people}{decided}" + (f", {work.seconds / 60:.1f} minutes of looking" if work.seconds is not None else "")


def _named(run: dict[str, str]) -> str:
    rest = "|".join(v for k, v in run.items() if k != WHO and v != "-")
    return f"{run[WHO]} {rest}".strip()


def _figure(e: Estimate | None) -> Cell:
    return Cell("–") if e is None or e.value is None else Cell(number(e.value), short_interval(e))


def _load(load: Load, names: tuple[str, ...]) -> tuple[Cell, ...]:
    counts = (load.settled, load.open, load.begun, load.unseen)
    low, high = wilson(load.sent, load.n)
    share = Cell(number(float(load.share)), f"[{low:.4f}, {high:.4f}]") if load.n else Cell("–")
    return (
        *(Cell(load.run.get(k, "")) for k in names),
        *(Cell(f"{n:,}") for n in (load.n, load.sent)),
        share,
        *(Cell(f"{n:,}") for n in counts),
    )


def _agreement(name: str, a: Agreement) -> tuple[Cell, ...]:
    ends = f"[{a.low:.4f}, {a.high:.4f}]" if a.low is not None and a.high is not None else ""
    alpha = Cell(number(a.alpha), ends) if a.alpha is not None else Cell("undefined", a.note)
    agreeing = Cell("–" if a.agreeing is None else number(a.agreeing))
    return Cell(name), alpha, agreeing, Cell(f"{a.n_items:,}"), Cell(f"{a.n_answers:,}")
